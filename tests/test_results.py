"""From an answer to the files: outcomes, the result document, aggregates, ranking, CSV.

Answers are for this maze (solution E S, dead end (1,0)):

    +---+---+
    | S     |
    +---+   +
    |     X |
    +---+---+
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import ssl
import stat
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from commands import timeless
from servers import Received, Say, Server, answer, error

import hallumaze
from hallumaze import (
    USAGE_KEYS,
    BenchmarkResult,
    BenchmarkRunner,
    LLMProvider,
    MazeConfig,
    MazeEngine,
    PromptBuilder,
    Reply,
    aggregate,
    csv_text,
    environment,
    json_text,
    rank,
    result_document,
    score_answer,
    write_atomically,
)

TWO = MazeEngine.from_openings(["E", "SW", "E", "NW"], seed=5)
SOLVED = """STEP 1: (0,0) → E | 확신도: 90% | on
STEP 2: (0,1) → S | 확신도: 80% | down
BACKTRACK_COUNT: 3
HALLUCINATION_COUNT: 2
FINAL_PATH: (0,0)→(0,1)→(1,1)"""
HALF = "STEP 1: (0,0) → E | 확신도: 90% | on"
KEY = "sk-test/SECRET+0123456789=abcdef"

# SPEC 12, word for word.
TOP = {"hallumaze_version", "schema_version", "timestamp", "maze", "mazes", "config", "results"} | {
    "aggregate",
    "environment",
    "spending",
}
MAZE = {"size", "seed", "solution_length", "dead_ends", "mirage_traps", "solution_path"}
MAZES = MAZE | {"algorithm", "openings", "mirage_trap_list", "walls_sha256"}
CONFIG = {"use_mirage", "use_confidence", "ariadne_mode", "max_tokens"}
TRIAL = set(
    re.findall(
        r"\w+",
        """provider model maze_size maze_seed run ariadne_group outcome sr mei ce brs
    hallumaze_score
    hallucination_count first_hallucination_step backtrack_count loop_count hrr path_valid
    metacog_signals confidence_log latency_s declared_backtracks declared_hallucinations
    declared_loops steps final_path prompt_sha256 raw_response reasoning finish_reason usage
    params_sent error timestamp trial_id cost_usd earlier_attempts batch_id""",
    )
)
METRICS = ("sr", "mei", "ce", "brs", "hallumaze_score", "hallucination_count", "backtrack_count")

HUMAN = BenchmarkResult(
    provider="human",
    model="undergraduate_group_n30",
    maze_size=7,
    ariadne_group="A",
    sr=0.73,
    mei=0.61,
    hallucination_count=2.1,
    backtrack_count=3.4,
)


class Scripted(LLMProvider):
    """Answers one after the other, and then from the beginning."""

    def __init__(self, *says: str | Reply | Exception, model: str = "m") -> None:
        super().__init__("scripted", model, KEY)
        self.says = says
        self.calls = 0

    def _call_scripted(self, prompt: str, max_tokens: int, system: str) -> str | Reply:
        say = self.says[self.calls % len(self.says)]
        self.calls += 1
        if isinstance(say, Exception):
            raise say
        return say


def play(*says: str | Reply | Exception, runs: int = 1, size: int = 7) -> dict[str, Any]:
    """The parsed result file of a scripted model on one maze."""
    config = MazeConfig(size=size)
    mazes = [MazeEngine(size, 42)]
    results = BenchmarkRunner([Scripted(*says)], mazes, config, runs).run_all()
    return read(json_text(result_document(results, mazes, config, {"runs": runs}, environment())))


def read(text: str) -> dict[str, Any]:
    """A result file, proved well-formed: sorted keys, no NaN, at most 6 decimals."""

    def ordered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert keys == sorted(set(keys))
        return dict(pairs)

    def short(number: str) -> float:
        assert len(f"{float(number):.12f}".rstrip("0").split(".")[1]) <= 6, number
        return float(number)

    def refuse(word: str) -> Any:
        raise AssertionError(word)

    assert text.endswith("}\n") and "\r" not in text
    document = json.loads(text, object_pairs_hook=ordered, parse_float=short, parse_constant=refuse)
    assert isinstance(document, dict)
    return document


# -- outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "call", "outcome", "sr"),
    [
        (SOLVED, "ok", "ok", 1),
        (HALF, "ok", "ok", 0),  # readable, though no path
        ("", "ok", "unreadable", 0),
        ("I see no maze.", "ok", "unreadable", 0),
        ("BACKTRACK_COUNT: 99\nLOOP detected at (0,0)", "ok", "unreadable", 0),
        ("FINAL_PATH: (0,0)", "ok", "unreadable", 0),  # one cell is no path
        ("<think>" + SOLVED, "ok", "truncated", 0),
        ("<think>hm</think>" + SOLVED, "ok", "ok", 1),
        ("<think>hm</think>", "ok", "unreadable", 0),
        (SOLVED, "truncated", "truncated", 1),  # scored as it stands
        ("", "truncated", "truncated", 0),
        (SOLVED, "refused", "refused", 1),
        ("I cannot help with that.", "refused", "refused", 0),
        ("<think>" + SOLVED, "refused", "refused", 0),
    ],
)
def test_outcomes(text: str, call: str, outcome: str, sr: int) -> None:
    _, metrics, scored = score_answer(text, call, TWO)
    assert scored["outcome"] == outcome
    assert scored["sr"] == metrics.sr == sr
    if not metrics.readable:  # fail closed
        assert [scored[name] for name in ("sr", "mei", "brs", "hallumaze_score")] == [0] * 4


def test_scored_fields_by_hand() -> None:
    _, _, scored = score_answer(SOLVED, "ok", TWO)
    assert scored["steps"] == [
        {"step": 1, "cell": [0, 0], "direction": "E", "confidence": 90, "verdict": "ok"},
        {"step": 2, "cell": [0, 1], "direction": "S", "confidence": 80, "verdict": "ok"},
    ]
    assert scored["confidence_log"] == [{"step": 1, "conf": 90}, {"step": 2, "conf": 80}]
    assert scored["final_path"] == [[0, 0], [0, 1], [1, 1]]
    assert (scored["declared_backtracks"], scored["declared_hallucinations"]) == (3, 2)
    assert (scored["declared_loops"], scored["metacog_signals"]) == (0, [])
    assert scored["ce"] == pytest.approx((0.1 + 0.2) / 2)
    assert scored["mei"] == pytest.approx(0.9)


def test_scoring_is_pure() -> None:
    again = [score_answer(SOLVED, "ok", TWO)[2] for _ in range(2)]
    assert json_text(again[0]) == json_text(again[1])
    stored = json.loads(json_text(again[0]))
    assert stored["steps"][0]["cell"] == [0, 0]


def test_every_metric_but_events_is_in_the_result() -> None:
    names = {f.name for f in fields(BenchmarkResult)}
    assert set(score_answer(SOLVED, "ok", TWO)[2]) <= names


# -- the result document --------------------------------------------------------------------------


def test_every_field_of_the_result_file() -> None:
    document = play(SOLVED)
    assert set(document) == TOP
    assert (document["hallumaze_version"], document["schema_version"]) == ("1.1", 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", document["timestamp"])
    maze = MazeEngine(7, 42)
    traps = len(maze.mirage_traps)
    assert document["maze"] == {
        "size": 7,
        "seed": 42,
        "solution_length": len(maze.solution_path) - 1,
        "dead_ends": maze.dead_ends,
        "mirage_traps": traps,
        "solution_path": maze.solution_path,
    }
    (first,) = document["mazes"]
    assert set(first) >= MAZES
    assert {name: first[name] for name in MAZE} == document["maze"]
    assert first["openings"] == maze.openings()
    assert MazeEngine.from_openings(first["openings"]).sha256 == first["walls_sha256"]
    assert len(first["mirage_trap_list"]) == traps
    assert set(document["config"]) >= CONFIG
    (result,) = document["results"]
    assert set(result) >= TRIAL
    assert set(result["steps"][0]) == {"step", "cell", "direction", "confidence", "verdict"}
    assert set(result["confidence_log"][0]) == {"step", "conf"}
    assert (result["maze_size"], result["maze_seed"], result["run"]) == (7, 42, 1)
    assert (result["provider"], result["model"], result["error"]) == ("scripted", "m", None)
    assert result["raw_response"] == SOLVED
    assert result["params_sent"]["max_tokens"] == 2500
    assert re.fullmatch(r"[0-9a-f]{32}", result["trial_id"])
    assert (result["cost_usd"], result["earlier_attempts"], result["batch_id"]) == (None, None, "")
    (row,) = document["aggregate"]
    assert {"n", "n_error", "n_truncated", "n_unreadable", "n_refused", *METRICS} <= set(row)
    # One model: what the run has used is what it has used.
    spent = {"usage": dict.fromkeys(USAGE_KEYS), "cost_usd": None, "n_unpriced": 1}
    assert {key: row[key] for key in spent} == spent == document["spending"]
    prompt = PromptBuilder(maze, MazeConfig()).build()
    assert result["prompt_sha256"] == prompt.sha256


def test_environment() -> None:
    environment = play(SOLVED)["environment"]
    assert environment["python"] == ".".join(map(str, sys.version_info[:3]))
    packages = {"anthropic", "openai", "google-genai", "genai-prices", "rich"}
    assert set(environment["packages"]) >= packages
    own = hashlib.sha256(Path(hallumaze.__file__).read_bytes()).hexdigest()
    assert own in environment.values()


def test_config_says_all_that_shapes_a_prompt_or_a_call() -> None:
    config = MazeConfig(size=5, mirage="balanced", algorithm="prim", lang="en", temperature=None)
    mazes = [MazeEngine(5, 1, "prim")]
    results = BenchmarkRunner([Scripted(SOLVED)], mazes, config).run_all()
    told = read(json_text(result_document(results, mazes, config, {"runs": 1}, environment())))[
        "config"
    ]
    wanted = {"size": 5, "mirage": "balanced", "algorithm": "prim", "lang": "en"}
    assert {name: told[name] for name in wanted} == wanted
    assert told["temperature"] is None and "reasoning_effort" in told


def test_hints_off_in_the_file() -> None:
    config = MazeConfig(size=5, use_mirage=False)
    mazes = [MazeEngine(5, 1)]
    document = read(json_text(result_document([], mazes, config, {}, environment())))
    assert (document["maze"]["mirage_traps"], document["config"]["mirage"]) == (0, "off")
    assert document["mazes"][0]["mirage_trap_list"] == []


def test_json_rounds_sorts_and_refuses() -> None:
    text = json_text({"b": 1 / 3, "a": [(2 / 3, 1e-9)], "c": {"z": 1, "y": "환각"}, "n": 3})
    expected = {"a": [[0.666667, 0.0]], "b": 0.333333, "c": {"y": "환각", "z": 1}, "n": 3}
    assert read(text) == expected
    assert "환각" in text and list(json.loads(text)) == ["a", "b", "c", "n"]
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="JSON"):
            json_text({"x": [bad]})


@pytest.mark.parametrize("items", [[], [{}], [1, [0.666667, {"b": [], "a": "\n환각"}], None, "x"]])
def test_json_of_an_iterator_is_that_of_a_list(items: list[Any]) -> None:
    whole = {"b": items, "a": 1, "c": {"d": [1, {}]}, "e": items}
    texts = [json.dumps(item, sort_keys=True, ensure_ascii=False) for item in items]
    text = json_text({**whole, "b": iter(texts), "e": iter(texts)})
    assert text == json_text(whole)
    assert text == "".join(hallumaze.json_chunks({**whole, "b": iter(texts)}))


def test_a_result_document_is_written_piece_by_piece() -> None:
    """Neither all mazes nor all results are ever held as text."""
    config, mazes = MazeConfig(size=5), hallumaze.Mazes(5, range(30))
    results = [scored(k) for k in range(30)]
    chunks = list(hallumaze.json_chunks(result_document(results, mazes, config, {}, environment())))
    text = json_text(result_document(results, mazes, config, {}, environment()))
    assert len(read("".join(chunks))["results"]) == len(read(text)["mazes"]) == 30
    assert max(map(len, chunks)) < len(text) / 20


# Two thirds and other long fractions in every place that has a float.
LONG = Reply(
    """STEP 1: (0,0) → E | 33.33333333% | on
STEP 2: (0,1) → S | 66.66666667% | down
STEP 3: (1,1) → W | 12.345678912% | on""",
    latency_s=1.23456789123,
)


def test_floats_are_rounded_everywhere() -> None:
    read(json_text(score_answer(LONG.text, "ok", TWO)[2]))
    document = play(LONG, HALF, runs=2)
    assert document["results"][0]["latency_s"] == 1.234568


def test_odd_answers_are_stored_whole() -> None:
    odd = "STEP 1: (0,0) → E\r\n\x00\x1b[2J \u2028 \ud800 🙂 ￿"
    document = play(odd)
    assert document["results"][0]["raw_response"] == odd.replace("\ud800", "?")


# -- a run with a key -----------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A loopback server; nothing of this machine's environment reaches the command."""
    for name in list(os.environ):
        if re.search(r"_API_KEY$|_BASE_URL$|_MODEL$|_proxy$", name, re.I):
            monkeypatch.delenv(name)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    with Server() as running:
        yield running


def run(server: Server, target: Path, *more: str) -> int:
    """One run of the command against the server."""
    url = server.base_url("compatible")
    arguments = ["--model", "compatible/m", "--base-url", url, "--output", str(target)]
    arguments += ["--results-dir", str(target.with_name("results"))]
    return hallumaze.main([*arguments, "--csv", "--lang", "en", *more])


def test_no_key_in_any_file(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def echo(request: Received) -> str | Say:
        if len(server.requests) % 2:
            return SOLVED
        sent = request.headers["authorization"]
        return error("openai", 401, f"Incorrect API key provided: {sent}", "invalid_api_key")

    server.answer = echo
    monkeypatch.setenv("COMPATIBLE_API_KEY", KEY)
    target = tmp_path / "r.json"
    arguments = ("--size", "5", "--seed", "1", "--runs", "4", "--concurrency", "1")
    assert run(server, target, *arguments) == 1
    document = read(target.read_text(encoding="utf-8"))
    assert [r["outcome"] for r in document["results"]] == ["ok", "error"] * 2
    seen = capfd.readouterr()
    (journal,) = (tmp_path / "results").glob("*.jsonl")
    for text in (
        journal.read_text(encoding="utf-8"),
        target.read_text(encoding="utf-8"),
        target.with_suffix(".csv").read_text(encoding="utf-8"),
        seen.out,
        seen.err,
    ):
        assert KEY not in text and "SECRET" not in text and "0123456789" not in text
    assert all(KEY in request.headers["authorization"] for request in server.requests)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.csv", "r.json", "results"]


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("more", [(), ("--group", "C"), ("--mirage", "balanced", "--runs", "2")])
def test_same_seed_and_answers_same_bytes(
    server: Server, tmp_path: Path, more: tuple[str, ...], one_by_one: bool
) -> None:
    """One by one every answer is another; side by side every conversation has its own."""
    texts = []
    for name in ("one.json", "two.json"):
        count = len(server.requests)

        def say(request: Received, count: int = count) -> Say:
            asked = f"{len(server.requests) - count}" if one_by_one else f"{request.turns}"
            thinking = f"n {hashlib.sha256(asked.encode()).hexdigest()}"
            return Say(answer("openai", SOLVED, thinking=thinking))

        server.answer = say
        more = (*more, "--concurrency", "1") if one_by_one else more
        assert run(server, tmp_path / name, "--size", "5", "--seeds", "3,9", *more) == 0
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    first, second = (json_text(timeless(read(text))) for text in texts)
    assert first == second
    assert len(json.loads(first)["results"]) == (4 if "--runs" in more else 2)
    # And only those fields were taken out: what is left has the answers and the scores.
    assert "raw_response" in first and "hallumaze_score" in first and "params_sent" in first


# -- aggregate ------------------------------------------------------------------------------------


def scored(seed: int, run: int = 1, **values: Any) -> BenchmarkResult:
    given = {"sr": 1.0, "mei": 0.5, "brs": 0.5, "hallumaze_score": 0.5, "readable": True, **values}
    return BenchmarkResult("p", "m", maze_seed=seed, run=run, **given)


def test_the_unit_is_the_maze() -> None:
    # Maze 1 three times: SR 1, 1, 0 -> 2/3. Maze 2 once: SR 0. Their mean is 1/3, not 2/4.
    trials = [scored(1, 1), scored(1, 2), scored(1, 3, sr=0.0), scored(2, 1, sr=0.0)]
    (row,) = aggregate(trials)
    assert row["sr"] == pytest.approx(1 / 3)
    assert (row["n"], row["n_mazes"], row["n_error"]) == (4, 2, 0)
    assert aggregate(trials[::-1])[0]["sr"] == pytest.approx(1 / 3)  # in any order


def test_a_metric_that_is_none_is_left_out() -> None:
    # CE of maze 1: 0.2 and None -> 0.2; of maze 2: 0.4; of maze 3: none. Mean 0.3.
    trials = [scored(1, ce=0.2), scored(1, 2), scored(2, ce=0.4), scored(3)]
    assert aggregate(trials)[0]["ce"] == pytest.approx(0.3)
    assert aggregate([scored(1)])[0]["ce"] is None


def test_errors_are_in_no_mean_and_are_counted() -> None:
    failed = BenchmarkResult("p", "m", maze_seed=2, outcome="error", error="quota")
    (row,) = aggregate([scored(1, mei=0.8), failed, replace(failed, maze_seed=1, run=2)])
    assert (row["n"], row["n_error"], row["n_mazes"]) == (1, 2, 1)
    assert row["mei"] == pytest.approx(0.8)
    (row,) = aggregate([failed])
    assert (row["n"], row["n_error"]) == (0, 1)
    assert [row[name] for name in METRICS] == [None] * len(METRICS)
    # Even one that carries numbers.
    (row,) = aggregate([scored(1, mei=0.8), replace(failed, mei=0.0, sr=0.0)])
    assert (row["mei"], row["sr"]) == (0.8, 1)


def test_outcomes_are_counted() -> None:
    outcomes = ["ok", "ok", "truncated", "unreadable", "unreadable", "refused", "error"]
    trials = [
        scored(k, outcome=outcome, readable=outcome != "unreadable")
        for k, outcome in enumerate(outcomes)
    ]
    (row,) = aggregate(trials)
    counts = {"n_truncated": 1, "n_unreadable": 2, "n_refused": 1, "n_error": 1, "n": 6}
    assert {name: row[name] for name in counts} == counts
    assert row["unreadable_rate"] == pytest.approx(2 / 6)


def test_unreadable_answers_are_failures_in_the_means() -> None:
    document = play(SOLVED.replace("(1,1)", "(0,0)"), "nothing", runs=2)
    first, second = document["results"]
    (row,) = document["aggregate"]
    assert second["outcome"] == "unreadable" and second["hallumaze_score"] == 0
    assert row["hallumaze_score"] == pytest.approx(first["hallumaze_score"] / 2, abs=1e-6)


def test_models_and_groups_are_apart() -> None:
    trials = [
        scored(1),
        replace(scored(1), model="other", mei=0.1),
        replace(scored(1), ariadne_group="B", mei=0.2),
        replace(scored(1), provider="q", mei=0.3),
        scored(2, mei=0.7),
    ]
    rows = aggregate(trials)
    found = [(r["provider"], r["model"], r["ariadne_group"], round(r["mei"], 9)) for r in rows]
    assert found == [
        ("p", "m", "A", 0.6),
        ("p", "other", "A", 0.1),
        ("p", "m", "B", 0.2),
        ("q", "m", "A", 0.3),
    ]


def test_mazes_of_one_seed_but_another_kind_are_apart() -> None:
    # Seed 1 of size 5, of size 7 and of prim are three mazes: (0 + 0 + 1) / 3.
    base = scored(1, sr=0.0)
    trials = [base, replace(base, maze_size=5), replace(base, maze_algorithm="prim", sr=1.0)]
    trials += [replace(trials[2], run=2), replace(trials[2], run=3)]
    assert aggregate(trials)[0]["sr"] == pytest.approx(1 / 3)


def test_nothing_gives_nothing() -> None:
    assert aggregate([]) == []
    assert rank([]) == []


# -- ranking --------------------------------------------------------------------------------------


def ranked(**scores: float | None) -> list[tuple[int, str]]:
    trials = [replace(scored(1), model=model, hallumaze_score=s) for model, s in scores.items()]
    return [(place, row["model"]) for place, row in rank(aggregate(trials))]


def test_rank() -> None:
    assert ranked(a=0.2, b=0.9, c=0.5) == [(1, "b"), (2, "c"), (3, "a")]


def test_ties_share_a_place() -> None:
    assert ranked(a=0.5, b=0.9, c=0.5, d=0.1) == [(1, "b"), (2, "a"), (2, "c"), (4, "d")]
    assert ranked(a=0.5, b=0.5) == [(1, "a"), (1, "b")]
    # What the table prints alike is not broken by a decimal that nobody sees.
    assert ranked(a=0.80001, b=0.80004) == [(1, "a"), (1, "b")]


def test_who_does_not_rank() -> None:
    rows = aggregate(
        [
            replace(scored(1), provider="reference", model="oracle", hallumaze_score=0.94),
            scored(1),
            BenchmarkResult("p", "down", outcome="error", error="no"),
            HUMAN,
        ]
    )
    assert [(place, row["model"]) for place, row in rank(rows)] == [(1, "m")]


# -- tokens and cost ------------------------------------------------------------------------------

USED = {"input": 12_345, "output": 678, "reasoning": 90, "cached": None}


def test_spending_is_added_up() -> None:
    """An error's use counts, and that of attempts before it; of what is unknown nothing is said."""
    half = {"n": 2, "usage": {"input": 5, "output": None}, "cost_usd": 0.25}
    trials = [
        scored(1, usage=USED, cost_usd=0.5),
        scored(2, usage={"input": 1, "output": 1}, cost_usd=1.0, earlier_attempts=half),
        scored(3, usage={"input": 10}),  # its price is unknown
        scored(4, outcome="error", usage={"output": 100}, cost_usd=0.125, earlier_attempts=half),
        scored(5, outcome="error"),  # nothing came back: nothing to price
        replace(scored(1), model="free", cost_usd=0.0),
    ]
    model, free = rows = aggregate(trials)
    used = {"input": 12_345 + 1 + 5 + 10 + 5, "output": 678 + 1 + 100, "reasoning": 90}
    assert model["usage"] == {**used, "cached": None}
    assert (model["cost_usd"], model["n_unpriced"]) == (0.5 + 1 + 0.25 + 0.125 + 0.25, 1)
    assert (free["usage"], free["cost_usd"]) == (dict.fromkeys(USAGE_KEYS), 0)
    assert free["n_unpriced"] == 0
    total = {"usage": model["usage"], "cost_usd": 2.125, "n_unpriced": 1}
    assert hallumaze.total_spending(rows) == total
    unknown = {"usage": dict.fromkeys(USAGE_KEYS), "cost_usd": None, "n_unpriced": 1}
    assert hallumaze.total_spending(aggregate([HUMAN])) == unknown


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["ko", "en"])
@pytest.mark.parametrize("kind", ["Console", "RichConsole"])
def test_the_table_shows_everybody(
    lang: str, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    rows = aggregate(
        [
            scored(1, hallumaze_score=0.5125, usage=USED, cost_usd=0.0125),
            replace(scored(1), provider="reference", model="oracle", cost_usd=0.0),
            BenchmarkResult("p", "down", outcome="error", error="no"),
            HUMAN,
        ]
    )
    getattr(hallumaze, kind)(lang).tables(rows)
    lines = capsys.readouterr().out.split("\n")
    place = {
        name: next(k for k, line in enumerate(lines) if name in line)
        for name in ("p/m", "reference/oracle", "p/down", "human/undergraduate_group_n30")
    }
    assert "🥇" in lines[place["p/m"]]
    assert place["p/m"] < place["reference/oracle"]
    assert "0.73" in lines[place["human/undergraduate_group_n30"]]
    assert "0.610" in lines[place["human/undergraduate_group_n30"]]
    assert sum("🥇" in line for line in lines) == 1
    (best,) = [line for line in lines if "★" in line and "HalluScore" in line]
    assert "p/m" in best and "0.512" in best  # the best score is a model's
    # Below it: what was used, by whom it was used; who calls nobody is not there.
    title = {"ko": "토큰과 비용", "en": "Tokens and cost"}[lang]
    start = next(k for k, line in enumerate(lines) if title in line)
    assert start > lines.index(best)
    spent = [re.sub(r"[│┃]", " ", line).split() for line in lines[start:]]
    assert ["p/m", "12,345", "678", "90", "–", "0.0125"] in spent
    assert ["p/down", *"–––––"] in spent
    assert ["*", "12,345", "678", "90", "–", "0.0125"] in spent
    assert not any("reference/oracle" in line for line in lines[start:])
    assert not any("undergraduate_group_n30" in line for line in lines[start:])


@pytest.mark.parametrize("kind", ["Console", "RichConsole"])
def test_a_table_of_any_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of text stand left; a name that rich would draw, or colour, is as it is."""
    lines = [["a:cat:", "[red]1[/red]", "5"], ["미로", "–", "1,234"]]
    getattr(hallumaze, kind)("en").table("Title :dog:", ["name", "note", "n"], lines, 1)
    shown = capsys.readouterr().out
    cells = [re.sub(r"[│┃]", " ", line).split() for line in shown.splitlines()]
    assert ["Title", ":dog:"] in cells and ["name", "note", "n"] in cells
    assert all(line in cells for line in lines)
    getattr(hallumaze, kind)("en", quiet=True).table("Title", ["n"], [["1"]], 0)
    assert capsys.readouterr().out == ""


# -- people ---------------------------------------------------------------------------------------


def test_group_means_of_people_are_valid() -> None:
    (row,) = aggregate([HUMAN])
    assert (row["provider"], row["n"], row["n_error"]) == ("human", 1, 0)
    found = {name: row[name] for name in METRICS}
    assert found == {
        "sr": 0.73,
        "mei": 0.61,
        "hallucination_count": 2.1,
        "backtrack_count": 3.4,
        "ce": None,
        "brs": None,
        "hallumaze_score": None,
    }
    document = result_document(
        [HUMAN, scored(1)], [MazeEngine(7, 1)], MazeConfig(), {}, environment()
    )
    stored = read(json_text(document))
    assert stored["results"][0]["hallucination_count"] == 2.1
    assert stored["results"][0]["outcome"] == "ok"
    (line,) = list(csv.DictReader(io.StringIO(csv_text([HUMAN]))))
    assert (line["sr"], line["mei"], line["backtrack_count"]) == ("0.73", "0.61", "3.4")
    assert (line["ce"], line["maze_seed"]) == ("", "")


def test_people_are_not_unreadable() -> None:
    # Nobody read an answer of theirs: there is none.
    row = aggregate([HUMAN])[0]
    assert row["n_unreadable"] == 0
    assert row["unreadable_rate"] in (None, 0)


@pytest.mark.parametrize("kind", ["Console", "RichConsole"])
def test_the_line_of_a_trial_of_people(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(hallumaze, kind)("en").trial(HUMAN)
    shown = capsys.readouterr().out
    assert "SR=0.73" in shown and "MEI=0.610◑" in shown and "Hall=2.1" in shown


# -- CSV ------------------------------------------------------------------------------------------


def rows_of(results: list[BenchmarkResult]) -> list[dict[str, str]]:
    text = csv_text(results)
    assert text.endswith("\n") and "\r" not in text
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_row_per_trial_and_the_scalar_fields() -> None:
    runner = BenchmarkRunner(
        [Scripted(SOLVED, RuntimeError("down"), Reply("", usage={"input": 3, "output": 4}))],
        [MazeEngine(5, 1)],
        MazeConfig(size=5),
        runs=3,
    )
    results = runner.run_all()
    rows = rows_of(results)
    assert len(rows) == 3
    lists = {"confidence_log", "steps", "final_path", "metacog_signals"}
    texts = {"raw_response", "reasoning"}  # whole answers
    nested = {"usage", "params_sent", "earlier_attempts"}
    assert set(rows[0]) >= TRIAL - lists - texts - nested
    assert [row["outcome"] for row in rows] == ["ok", "error", "unreadable"]
    assert [row["run"] for row in rows] == ["1", "2", "3"]
    assert float(rows[0]["mei"]) == pytest.approx(results[0].mei, abs=5e-7)
    assert rows[1]["mei"] == "" and "down" in rows[1]["error"]
    assert rows[0]["path_valid"] in ("true", "false")
    assert (rows[2]["tokens_input"], rows[2]["tokens_output"]) == ("3", "4")
    assert [row["trial_id"] for row in rows] == [result.trial_id for result in results]
    assert len({row["trial_id"] for row in rows}) == 3
    assert not nested & set(rows[0])
    assert {(row["cost_usd"], row["batch_id"]) for row in rows} == {("", "")}


def test_csv_is_written_line_by_line() -> None:
    """A row leaves before the next trial is read."""
    read_up_to = 0

    def trials() -> Iterator[BenchmarkResult]:
        nonlocal read_up_to
        for read_up_to in (1, 2, 3):
            yield scored(read_up_to, cost_usd=0.25, batch_id="b")

    lines = hallumaze.csv_lines(trials())
    header = next(lines)
    assert read_up_to == 0 and header.startswith("provider,model,")
    first = next(lines)
    assert read_up_to == 1
    assert header + first == csv_text([scored(1, cost_usd=0.25, batch_id="b")])
    (row,) = csv.DictReader(io.StringIO(header + first))
    assert (row["cost_usd"], row["batch_id"]) == ("0.25", "b")
    assert len(list(lines)) == 2


def test_csv_numbers() -> None:
    (row,) = rows_of(
        [scored(1, mei=1 / 3, first_hallucination_step=-1, metacog_signals=["a", "b"])]
    )
    assert row["mei"] == "0.333333"
    assert row["first_hallucination_step"] == "-1"  # a number, not a formula
    assert row["metacog_signals"] == "a; b"


@pytest.mark.parametrize("first", ["=", "+", "-", "@"])
def test_csv_starts_no_formula(first: str) -> None:
    bad = f'{first}HYPERLINK("http://evil","x")'
    result = replace(scored(1), model=bad, error=bad, finish_reason=bad, request_id=bad)
    (row,) = rows_of([result])
    for name in ("model", "error", "finish_reason", "request_id"):
        assert row[name] == "'" + bad


@pytest.mark.parametrize("control", ["\t", "\r", "\n", "\x00"])
def test_csv_starts_with_no_control_character(control: str) -> None:
    # A spreadsheet skips them, and runs what comes after.
    (row,) = rows_of([scored(1, error=f"{control}=1+1")])
    assert row["error"][0] not in "=+-@\t\r\n\x00"
    assert row["error"].endswith("=1+1")


def test_csv_keeps_model_text_on_its_line() -> None:
    nasty = 'a\nb\r\nc\x1b[31m,"quoted";\x00 \u2028 환각 \ud800'
    results = [replace(scored(1), model=nasty, error=nasty, metacog_signals=[nasty]), scored(2)]
    text = csv_text(results)
    assert text.count("\n") == 3  # the header and two rows
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u2028\ud800]", text)
    text.encode("utf-8")
    rows = rows_of(results)
    assert len(rows) == 2
    assert rows[0]["error"].startswith("a b") and '"quoted"' in rows[0]["error"]
    assert "환각" in rows[0]["error"]
    assert rows[1]["maze_seed"] == "2"


# -- writing --------------------------------------------------------------------------------------


def test_write(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    for text in ("환각\n", "second\nline\n"):
        write_atomically(target, text)
        assert target.read_bytes() == text.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_write_mode(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    write_atomically(target, "x")
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    write_atomically(target, "y", 0o600)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_private_file_is_never_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    sync = os.fsync

    def look(handle: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        sync(handle)

    monkeypatch.setattr(os, "fsync", look)
    write_atomically(tmp_path / "config.json", "key", 0o600)
    assert modes == [0o600]


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failure_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.json"
    target.write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_text_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(target, "new \ud800")
    with pytest.raises(OSError, match=r"."):
        write_atomically(tmp_path / "missing" / "a.json", "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a.json", "new")
    assert list(tmp_path.iterdir()) == []
