"""Numbers follow from the raw answers, and the two judges keep their disagreement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from servers import Say, Server, error

import hallumaze
from hallumaze import BenchTask, deterministic_judge, disagree_runs, rubric_judge_a, write_raw

SIX = BenchTask("six", "…", ("alpha", "Beta", "gamma  ray", "delta", "epsilon", "zeta"))
ALL_SIX = "ALPHA beta\tgamma ray, delta and epsilon; zeta"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


# -- the judges, by hand ---------------------------------------------------------------------------

# (output, rubric) -> (A, B, markers)
BY_HAND: list[tuple[Any, tuple[str, ...], float, float, int]] = [
    # 6 of 6 keywords, no marker: A = 2.5 / 5, B = 6 / 6
    (ALL_SIX, SIX.rubric, 50.0, 100.0, 0),
    # 4 of 6, no marker: B = 66.666667, A half of it
    ("alpha beta delta zeta", SIX.rubric, 33.333333, 66.666667, 0),
    # 1 of 2 and 1 marker of 2: A = (1.25 + 1.25) / 5
    ("alpha because", ("alpha", "beta"), 50.0, 50.0, 1),
    # 1 of 1 and 3 markers: evidence is capped at one a keyword
    ("alpha: verified, exit code 0, 3 passed", ("alpha",), 100.0, 100.0, 3),
    ("alpha 왜냐하면 tests/test_a.py 검증", ("alpha",), 100.0, 100.0, 3),
    ("therefore alpha", ("alpha", "beta"), 50.0, 50.0, 1),
    # coordinates and step references are no grounds
    ("DEAD_END at (1,1), see STEP 3: E/S", ("DEAD_END at (1,1)",), 50.0, 100.0, 0),
    # zero rules
    ("", SIX.rubric, 0.0, 0.0, 0),
    (" \n\t", SIX.rubric, 0.0, 0.0, 0),
    (None, SIX.rubric, 0.0, 0.0, 0),
    (7, SIX.rubric, 0.0, 0.0, 0),
    ("alpha because", (), 0.0, 0.0, 0),
    ("alpha because", (" ", ""), 0.0, 0.0, 0),
    # an empty keyword is no keyword
    ("alpha", ("alpha", " "), 50.0, 100.0, 0),
]


@pytest.mark.parametrize(("output", "rubric", "a", "b", "markers"), BY_HAND)
def test_judges_by_hand(
    output: Any, rubric: tuple[str, ...], a: float, b: float, markers: int
) -> None:
    task = BenchTask("t", "", rubric)
    assert (rubric_judge_a(output, task), deterministic_judge(output, task)) == (a, b)
    first, second = disagree_runs(output, task)
    assert (first["judge"], second["judge"]) == ("A_rubric_quality_0_5", "B_rule_keyword_coverage")
    assert (first["score"], first["other_score"]) == (second["other_score"], second["score"])
    assert (first["score"], first["other_score"]) == (a, b)
    assert first["delta"] == second["delta"] == pytest.approx(abs(a - b), abs=1e-6)
    assert first["disagree"] == (abs(a - b) >= 25)
    assert first["quality_markers"] == markers


def test_the_golden_disagreement() -> None:
    assert disagree_runs(ALL_SIX, SIX)[0] == {
        "judge": "A_rubric_quality_0_5",
        "score": 50.0,
        "other_judge": "B_rule_keyword_coverage",
        "other_score": 100.0,
        "delta": 50.0,
        "disagree": True,
        "disagree_threshold": 25.0,
        "matched_count": 6,
        "rubric_count": 6,
        "quality_markers": 0,
    }


def test_raw_files_are_deterministic(tmp_path: Path) -> None:
    runs = disagree_runs(ALL_SIX, SIX)
    for name in ("a.json", "b.json"):
        write_raw(runs, tmp_path / name)
    raw = (tmp_path / "a.json").read_bytes()
    assert raw == (tmp_path / "b.json").read_bytes()
    assert raw.endswith(b"\n") and json.loads(raw) == list(runs)
    with pytest.raises(ValueError, match="JSON"):
        write_raw([{"score": float("nan")}], tmp_path / "c.json")


def test_a_trial_is_judged_by_what_its_events_call_for() -> None:
    """+---+---+
    | S     |   E then W: from (0,0) to the dead end (0,1) and back; then E again, a loop
    +   +---+
    |     X |   the walk never gets to the exit
    +---+---+"""
    maze = hallumaze.MazeEngine.from_openings(["ES", "W", "NE", "W"])
    text = (
        "STEP 1: (0,0) → E\nDEAD_END at (0,1) — backtracking\nSTEP 2: (0,1) → W\n"
        "STEP 3: (0,0) → E\nFINAL_PATH: (0,0)→(0,1)"
    )
    _, _, scored = hallumaze.score_answer(text, "ok", maze)
    # the rubric: DEAD_END at (0,1), LOOP detected at (0,1), FINAL_PATH; two of the three are there
    a, b = scored["judges"]
    assert (b["matched_count"], b["rubric_count"]) == (2, 3)
    assert (a["score"], b["score"]) == (33.333333, 66.666667)
    assert a["disagree"] is True


def test_the_judge_command(command: Command, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(
        json.dumps([{"id": "six", "prompt": "p", "rubric": list(SIX.rubric)}])
    )
    (tmp_path / "outputs.json").write_text(json.dumps({"six": ALL_SIX}))
    files = (str(tmp_path / "tasks.json"), str(tmp_path / "outputs.json"))
    raw = tmp_path / "bench" / "raw.json"
    done = command("judge", *files, "--raw", str(raw))
    assert done.code == 0
    assert done.out == "six: A 50 | B 100 | delta 50 | DISAGREE\n"
    runs = json.loads(raw.read_text())
    assert [(run["task"], run["score"]) for run in runs] == [("six", 50.0), ("six", 100.0)]
    before = raw.read_bytes()
    command("judge", *files, "--raw", str(raw))
    assert raw.read_bytes() == before


@pytest.mark.parametrize(
    ("tasks", "outputs", "code", "words"),
    [
        ("[]", "{}", 2, "at least one"),
        ("{}", "{}", 2, "list of tasks"),
        ("nope", "{}", 2, "no JSON"),
        ('[{"id": "a", "rubric": "x"}]', "{}", 2, "a list"),
        ('[{"id": "a", "rubric": [1]}]', "{}", 2, "strings"),
        ('[{"rubric": ["x"]}]', "{}", 2, "needs an id"),
        ('[{"id": "a", "colour": 1}]', "{}", 2, "unknown field"),
        ('[{"id": "a", "rubric": ["x"]}]', "[]", 2, "by task id"),
        ('[{"id": "a", "rubric": ["x"]}]', "{}", 70, "no output for task a"),
    ],
)
def test_bad_fixtures(
    tasks: str, outputs: str, code: int, words: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_text(tasks)
    (tmp_path / "o.json").write_text(outputs)
    raw = tmp_path / "raw.json"
    done = command("judge", str(tmp_path / "t.json"), str(tmp_path / "o.json"), "--raw", str(raw))
    assert (done.code, len(done.err.splitlines())) == (code, 1)
    assert words in done.err
    assert not raw.exists()


# -- rescoring -------------------------------------------------------------------------------------


@pytest.fixture
def result(command: Command) -> Path:
    """A result file of all agents in group B, so that it holds hinted trials."""
    done = command.run("--size", "5", "--seeds", "1-3", "--group", "B")
    assert done.code == 0
    return done.output


def changed(result: Path, change: Any) -> Path:
    document = json.loads(result.read_text("utf-8"))
    change(document)
    path = result.with_name("changed.json")
    path.write_text(json.dumps(document))
    return path


def test_an_untouched_file_follows_from_its_answers(command: Command, result: Path) -> None:
    document = json.loads(result.read_text("utf-8"))
    rescored, differences = hallumaze.rescore_document(document)
    assert differences == []
    for part in ("results", "aggregate", "spending"):
        assert hallumaze.json_text(rescored[part]) == hallumaze.json_text(document[part])
    done = command("rescore", str(result))
    assert (done.code, done.err) == (0, "")


def test_intervals_are_no_matter_where_one_side_has_no_numpy(
    command: Command, tmp_path: Path
) -> None:
    """They rest on it, and so do ranks: neither side's lack of them is a wrong number."""
    (tmp_path / "bare" / "numpy").mkdir(parents=True)
    (tmp_path / "bare" / "numpy" / "__init__.py").write_text("raise ImportError")
    without = {"PYTHONPATH": str(tmp_path / "bare")}
    args = ("--model", "reference/lured", "--size", "5", "--seeds", "1-7")
    for made, rescored in ((without, {}), ({}, without)):
        done = command.run(*args, **made)
        assert done.code == 0
        (row,) = done.document["aggregate"]
        assert bool(row["ci"]) == (made == {})
        again = command("rescore", str(done.output), **rescored)
        assert (again.code, again.err) == (0, "")


def test_rescoring_needs_no_sdk(command: Command, result: Path, tmp_path: Path) -> None:
    for name in ("anthropic", "openai", "google"):
        (tmp_path / "poison").mkdir(exist_ok=True)
        (tmp_path / "poison" / f"{name}.py").write_text("raise SystemExit(99)")
    done = command("rescore", str(result), PYTHONPATH=str(tmp_path / "poison"))
    assert done.code == 0


def set_mei(document: Any) -> None:
    document["results"][0]["mei"] = 0.123


def set_first(document: Any) -> None:
    trial = next(t for t in document["results"] if t["first_answer"])
    trial["first_answer"]["hallucination_count"] = 77


def set_mean(document: Any) -> None:
    document["aggregate"][0]["hallumaze_score"] = 0.999


def set_cost(document: Any) -> None:
    document["aggregate"][0]["cost_usd"] = 5


def set_answer(document: Any) -> None:
    document["results"][0]["raw_response"] = "STEP 1: (0,0) → N | 90%"


def set_maze(document: Any) -> None:
    document["mazes"][1]["solution_length"] = 1


def set_judge(document: Any) -> None:
    document["results"][0]["judges"][0]["score"] = 100.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_mei, ["results[0] reference/oracle seed 1", "mei: claimed 0.123, recomputed 0.9"]),
        (set_first, ["first_answer"]),
        (set_mean, ["aggregate[0]", "hallumaze_score: claimed 0.999"]),
        (set_cost, ["aggregate[0]: cost_usd: claimed 5, recomputed 0"]),
        (set_answer, ["results[0]", "hallucination_count: claimed 0, recomputed 1"]),
        (set_maze, ["maze 2: solution_length: claimed 1"]),
        (set_judge, ["results[0]", "judges"]),
    ],
)
def test_a_claim_that_does_not_follow(
    change: Any, words: list[str], command: Command, result: Path
) -> None:
    path = changed(result, change)
    before = path.read_bytes()
    done = command("rescore", str(path))
    assert done.code == 70
    assert all(word in done.out for word in words), done.out
    assert path.read_bytes() == before


def test_write_stores_a_new_file(command: Command, result: Path) -> None:
    path = changed(result, set_mei)
    before = path.read_bytes()
    for name in ("changed_rescored.json", "changed_rescored_2.json"):
        assert command("rescore", str(path), "--write").code == 70
        document = json.loads(path.with_name(name).read_text("utf-8"))
        assert document["rescored_from"] == "changed.json"
        assert document["rescored_from_sha256"] == hashlib.sha256(before).hexdigest()
        assert document["results"][0]["mei"] == 0.9
    assert path.read_bytes() == before


def drop_answer(document: Any) -> None:
    del document["results"][2]["raw_response"]


def drop_mazes(document: Any) -> None:
    document["mazes"] = []


@pytest.mark.parametrize("change", [drop_answer, drop_mazes, lambda d: d.clear()])
def test_a_file_without_raw_answers_is_refused(change: Any, command: Command, result: Path) -> None:
    done = command("rescore", str(changed(result, change)), "--write")
    assert (done.code, len(done.err.splitlines())) == (70, 1)
    assert list(result.parent.glob("*rescored*")) == []


def test_errors_stay_what_they_are(command: Command, server: Server) -> None:
    server.script(Say(status=401), Say())
    url = server.base_url("compatible")
    args = ("--model", "compatible/x", "--base-url", url, "--size", "5", "--runs", "2")
    done = command.run(*args, "--concurrency", "1")
    assert [trial["outcome"] for trial in done.results] == ["error", "unreadable"]
    assert command("rescore", str(done.output)).code == 0


def test_what_was_used_follows_from_the_trials(command: Command, server: Server) -> None:
    """What attempts before have used included."""
    env = {"OPENAI_API_KEY": "sk-FAKE-openai-22", "OPENAI_BASE_URL": server.base_url("openai")}
    server.script(Say(), error("openai", 500, "broken"))
    args = ("--model", "openai/gpt-4o", "--size", "5", "--seeds", "1-2", "--group", "C")
    args = (*args, "--concurrency", "1", "--retries", "0")
    assert command.run(*args, **env).results[0]["outcome"] == "error"
    done = command.run("--resume", **env)
    assert done.results[0]["earlier_attempts"]["usage"]["input"] == 11
    assert done.document["spending"]["usage"]["input"] == 5 * 11
    assert (done.code, command("rescore", str(done.output)).code) == (0, 0)

    def forget(document: Any) -> None:
        document["results"][0]["earlier_attempts"] = None

    told = command("rescore", str(changed(done.output, forget)))
    assert told.code == 70 and "aggregate[0]: usage: claimed" in told.out


def test_a_file_from_before_there_were_costs(command: Command, result: Path) -> None:
    """A claim that is not made is none."""

    def remove(document: Any) -> None:
        del document["spending"]
        for row in document["aggregate"]:
            for name in ("usage", "cost_usd", "n_unpriced"):
                del row[name]
        for trial in document["results"]:
            for name in ("trial_id", "cost_usd", "earlier_attempts", "batch_id"):
                del trial[name]

    done = command("rescore", str(changed(result, remove)))
    assert (done.code, done.err) == (0, "")


def test_files_that_are_none(command: Command, tmp_path: Path) -> None:
    assert command("rescore", str(tmp_path / "no.json")).code == 2
    (tmp_path / "no.json").write_text("[1,")
    assert command("rescore", str(tmp_path / "no.json")).code == 2
    (tmp_path / "no.json").write_text("[1]")
    assert command("rescore", str(tmp_path / "no.json")).code == 70
