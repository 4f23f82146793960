"""Stored answers, asked again: the same prompt gets the same answer, and so the same numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Done, one_line
from servers import Received, Say, Server, answer

import hallumaze
from hallumaze import MazeConfig, MazeEngine, PromptBuilder, StoredAnswers, TrialKey, UsageError

Json = dict[str, Any]

ANSWERS = "answers.jsonl"
ZERO = dict.fromkeys(hallumaze.USAGE_KEYS, 0)
# What tells of the call itself, and not of the answer.
OF_THE_CALL = {
    *("provider", "model", "usage", "params_sent", "latency_s", "request_id", "cost_usd"),
    *("n_unpriced", "timestamp", "trial_id", "rank"),
}
DIRECTIONS = {(-1, 0): "N", (0, 1): "E", (1, 0): "S", (0, -1): "W"}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def sha256(seed: int) -> str:
    return PromptBuilder(MazeEngine(5, seed), MazeConfig(size=5)).build().sha256


def walk(seed: int, confidence: int) -> str:
    """The way out, stated with one confidence: MEI 0.9, BRS 1 and CE 1 - confidence/100, so its
    Score is 0.5·0.9 + 0.2 + 0.3·confidence/100."""
    path = MazeEngine(5, seed).solution_path
    steps = [
        f"STEP {k}: ({r},{c}) → {DIRECTIONS[to[0] - r, to[1] - c]} | {confidence}%"
        for k, ((r, c), to) in enumerate(pairwise(path), 1)
    ]
    return "\n".join([*steps, "FINAL_PATH: " + "→".join(f"({r},{c})" for r, c in path)])


def score(confidence: int) -> float:
    return round(0.65 + 0.003 * confidence, 6)


def line(seed: int, confidence: int = 100, **more: Any) -> Json:
    return {"prompt_sha256": sha256(seed), "text": walk(seed, confidence), **more}


def store(command: Command, *entries: Json, name: str = ANSWERS) -> Path:
    path = command.folder / name
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), "utf-8")
    return path


def replay(command: Command, source: object, *args: str, **env: str) -> Done:
    return command.run("--model", f"replay/{source}", "--size", "5", *args, **env)


def scores(done: Done) -> list[float | None]:
    return [trial["hallumaze_score"] for trial in done.results]


def of_the_answer(document: Json) -> tuple[list[Json], list[Json]]:
    """The trials and rows of a result file without what tells of the calls."""

    def kept(entry: Json) -> Json:
        entry = {k: v for k, v in entry.items() if k not in OF_THE_CALL}
        if "ci" in entry:
            entry["ci"] = {k: v for k, v in entry["ci"].items() if k != "latency_s"}
        if entry.get("first_answer"):
            entry["first_answer"] = kept(entry["first_answer"])
        return entry

    return [kept(t) for t in document["results"]], [kept(r) for r in document["aggregate"]]


def keep(done: Done, name: str) -> Path:
    """The result file under a name of its own."""
    return done.output.replace(done.output.with_name(name))


def journal_of(command: Command) -> Path:
    (path,) = (command.folder / "results").glob("*.jsonl")
    return path


def left(command: Command) -> list[str]:
    """What a command has written."""
    paths = [*command.folder.glob("results/*"), command.output]
    return [path.name for path in paths if path.name != ".lock" and path.exists()]


def assert_follows(command: Command, *paths: Path) -> None:
    done = command("rescore", *map(str, paths))
    assert (done.code, done.err) == (0, ""), done.out


# -- a result file ---------------------------------------------------------------------------------


def original(command: Command, server: Server) -> Path:
    """Three mazes, three repeats each, with every kind of an answer."""
    says: list[Say] = []
    for text, finish, thinking in (
        (walk(1, 100), "", "I think\n\nof mazes"),
        ("<think>inside: DEAD_END at (0,1)</think>\n" + walk(1, 50), "", "outside"),
        (walk(1, 0), "", ""),
        (walk(2, 90)[:60], "length", "long"),
        ("I cannot do that.", "content_filter", ""),
        ("hello 안녕 ▁", "", ""),
        ("STEP 1: (0,0) → N | 90%\nSTEP 2: (0,0) → W | 90%", "", ""),
        ("<think>never closed", "", "before"),
        ("<think>only inside</think>" + walk(3, 40), "", ""),
    ):
        says.append(Say(answer("openai", text, finish, thinking)))
    server.script(*says)
    url = server.base_url("compatible")
    done = command.run(
        *("--model", "compatible/x", "--base-url", url, "--size", "5", "--seeds", "1-3"),
        *("--runs", "3", "--concurrency", "1"),
    )
    assert done.code == 0
    assert [t["outcome"] for t in done.results] == [
        *("ok", "ok", "ok", "truncated", "refused", "unreadable", "ok", "truncated", "ok"),
    ]
    return keep(done, "original.json")


def test_a_replayed_file_has_the_numbers_of_the_original(
    command: Command, server: Server, tmp_path: Path
) -> None:
    path = original(command, server)
    document = json.loads(path.read_text("utf-8"))
    expected = of_the_answer(document)
    assert expected[0][1]["reasoning"] == "outside\ninside: DEAD_END at (0,1)"
    assert expected[0][1]["reasoning_signals"]
    calls = len(server.requests)
    for name in ("anthropic", "openai", "google"):  # nobody is called, and no SDK is loaded
        (tmp_path / "poison").mkdir(exist_ok=True)
        (tmp_path / "poison" / f"{name}.py").write_text("raise SystemExit(99)")
    env = {"PYTHONPATH": str(tmp_path / "poison")}
    args = ("--seeds", "1-3", "--runs", "3")

    done = replay(command, path.name, *args, **env)
    assert (done.code, done.err) == (0, "")
    assert of_the_answer(done.document) == expected
    assert {t["provider"] for t in done.results} == {"replay"}
    assert {t["model"] for t in done.results} == {path.name}
    for spent in (*done.results, done.document["spending"], *done.document["aggregate"]):
        assert (spent["cost_usd"], spent["usage"]) == (0, ZERO)
    assert done.document["spending"]["n_unpriced"] == 0
    copy = keep(done, "copy.json")

    # A replay of the replay, of its journal, and of the file as one line, all by absolute paths.
    compact = tmp_path / "compact.json"
    compact.write_text(json.dumps(document))
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    journals = sorted((command.folder / "results").glob("*.jsonl"))
    assert len(journals) == 2  # the original's and the copy's
    for source in (copy, compact, marked, *journals):
        again = replay(command, source.resolve(), *args, "--csv", **env)
        assert (again.code, again.err) == (0, ""), source
        assert of_the_answer(again.document) == expected, source
    assert len(server.requests) == calls
    assert_follows(command, path, copy, compact, command.output)

    # Fewer mazes, in another order, and one that nobody has seen; run 1 only.
    some = replay(command, path.name, "--seeds", "3,1,4")
    assert (some.code, [t["outcome"] for t in some.results]) == (1, ["ok", "ok", "error"])
    trials = [expected[0][6], expected[0][0]]
    assert [t["raw_response"] for t in some.results[:2]] == [t["raw_response"] for t in trials]
    # A fourth repeat was never stored: the same prompt gets the same answer.
    more = replay(command, path.name, "--seed", "1", "--runs", "4")
    assert scores(more) == [score(100), score(50), score(0), score(100)]


@pytest.mark.parametrize("group", ["B", "C"])
def test_hints_and_second_answers_are_replayed(
    group: str, command: Command, server: Server
) -> None:
    half = "<think>hm</think>STEP 1: (0,0) → N | 90%"
    first = {1: [walk(1, 100), half], 2: [half, half]}  # by seed and run
    second = {1: [walk(1, 70), walk(1, 60)], 2: ["DEAD_END at (0,0)", walk(2, 30)]}
    asked: Counter[tuple[int, int]] = Counter()
    seeds = {PromptBuilder(MazeEngine(5, s), MazeConfig(size=5)).build().user: s for s in (1, 2)}

    def say(request: Received) -> Say:
        turns = request.turns
        seed = seeds[turns[0][1]]
        asked[seed, len(turns)] += 1
        if len(turns) == 1:
            return Say(answer("openai", first[seed][asked[seed, 1] - 1], thinking="t"))
        return Say(answer("openai", second[seed][asked[seed, 1] - 1]))

    server.answer = say
    args = ("--seeds", "1-2", "--runs", "2", "--group", group)
    url = server.base_url("compatible")
    done = command.run(
        *("--model", "compatible/x", "--base-url", url, "--size", "5", "--concurrency", "1"), *args
    )
    assert done.code == 0
    hinted = [t["nudge_sent"] for t in done.results]
    assert hinted == [group == "C", True, True, True]
    expected = of_the_answer(done.document)
    assert expected[0][1]["first_answer"]["raw_response"] == half
    assert [t["raw_response"] for t in expected[0][2:]] == second[2]
    path = keep(done, "original.json")
    journal = journal_of(command)
    calls = len(server.requests)

    for source in (path.name, journal.resolve()):
        again = replay(command, source, *args)
        assert (again.code, again.err) == (0, "")
        assert of_the_answer(again.document) == expected
        for trial in again.results:
            assert (trial["cost_usd"], trial["usage"]) == (0, ZERO)
    copy = keep(again, "copy.json")
    again = replay(command, copy.name, *args)
    assert of_the_answer(again.document) == expected
    assert_follows(command, path, copy, command.output)

    # In group A the first answers are asked for, which the file holds.
    plain = replay(command, path.name, "--seeds", "1-2", "--runs", "2", "--group", "A")
    assert plain.code == 0
    assert [t["raw_response"] for t in plain.results] == [*first[1], *first[2]]
    assert len(server.requests) == calls


def test_a_hint_to_which_no_answer_is_stored(command: Command) -> None:
    store(command, line(1), line(2))
    done = replay(command, ANSWERS, "--seeds", "1-2", "--group", "C")
    assert (done.code, [t["outcome"] for t in done.results]) == (1, ["error", "error"])
    for trial in done.results:  # what was answered before is kept
        assert trial["first_answer"]["hallumaze_score"] == score(100)
        assert trial["hint"] and "no stored answer" in trial["error"]
    assert_follows(command, command.output)


# -- what is not stored ----------------------------------------------------------------------------


def test_unknown_prompts_are_errors_and_never_give_the_provider_up(command: Command) -> None:
    store(command, line(9))
    done = replay(command, ANSWERS, "--seeds", "1-9")
    assert done.code == 1
    assert "given up" not in done.out + done.err
    assert [t["outcome"] for t in done.results] == ["error"] * 8 + ["ok"]
    for trial in done.results[:8]:
        assert trial["error"] == f"replay/{ANSWERS}: there is no stored answer to this prompt"
        assert trial["hallumaze_score"] is None
    row = done.document["aggregate"][0]
    assert (row["n"], row["n_error"], row["hallumaze_score"]) == (1, 8, score(100))
    assert_follows(command, command.output)
    # Other prompts are unknown: another language, no hints, no confidence.
    for option in (("--lang", "en"), ("--no-mirage",), ("--no-confidence",), ("--size", "6")):
        other = replay(command, ANSWERS, "--seeds", "9", *option)
        assert (other.code, [t["outcome"] for t in other.results]) == (1, ["error"]), option


def test_a_trial_that_ended_as_an_error_has_no_answer(command: Command) -> None:
    """Neither one of its own, nor that of another repeat."""
    names = {"provider": "p", "model": "m"}
    first = line(1, 100, run=1, outcome="error", error="the server failed", **names) | {"text": ""}
    store(command, first, line(1, 50, run=2, **names), line(2, 0, outcome="error", **names))
    done = replay(command, ANSWERS, "--seed", "2")
    assert (done.code, [t["outcome"] for t in done.results]) == (1, ["error"])
    done = replay(command, ANSWERS, "--seed", "1", "--runs", "2")
    assert (done.code, scores(done)) == (1, [None, score(50)])


# -- lines -----------------------------------------------------------------------------------------


def test_lines_by_the_id_of_a_trial(command: Command) -> None:
    store(command, line(5))
    asked = replay(command, ANSWERS, "--seeds", "1-2", "--runs", "2")
    ids = [trial["trial_id"] for trial in asked.results]
    assert len(set(ids)) == 4
    texts = [walk(1, 10), walk(1, 20), walk(2, 30), walk(2, 40)]
    lines = [{"trial_id": k, "text": text} for k, text in zip(ids, texts, strict=True)]
    other = store(command, *lines, line(1), line(3), name="by_id.jsonl")
    done = replay(command, other, "--seeds", "1-3", "--runs", "2")  # ids outlive the file's name
    assert done.code == 0
    assert scores(done) == [score(c) for c in (10, 20, 30, 40, 100, 100)]
    # Other settings make other trials.
    done = replay(command, other, "--seeds", "1-2", "--temperature", "1")
    assert [t["outcome"] for t in done.results] == ["ok", "error"]
    assert scores(done)[0] == score(100)


def test_a_hinted_conversation_is_another_prompt_than_that_of_the_id(command: Command) -> None:
    store(command, line(5))
    (trial,) = replay(command, ANSWERS, "--seed", "1", "--group", "C").results
    store(command, {"trial_id": trial["trial_id"], "text": walk(1, 10)})
    (trial,) = replay(command, ANSWERS, "--seed", "1", "--group", "C").results
    assert trial["first_answer"]["hallumaze_score"] == score(10)
    assert trial["outcome"] == "error"


def test_lines_with_runs(command: Command) -> None:
    store(command, line(1, 10, run=2), line(1, 20, run=1), line(1, 30, run=3))
    done = replay(command, ANSWERS, "--seed", "1", "--runs", "3")
    assert (done.code, scores(done)) == (0, [score(20), score(10), score(30)])


def test_two_lines_of_one_prompt_give_every_repeat_the_same(command: Command) -> None:
    """Without a run there is nothing that tells them apart: either is right, but only one."""
    store(command, line(1, 10), line(1, 20), line(1, 30))
    done = replay(command, ANSWERS, "--seed", "1", "--runs", "3")
    assert done.code == 0
    assert len(set(scores(done))) == 1, scores(done)


@pytest.mark.parametrize("reasoning", ["a\n", "a\n\n", "\n", "a"])
def test_reasoning_is_kept_to_its_last_character(reasoning: str, command: Command) -> None:
    store(
        command,
        line(1, reasoning=reasoning),
        {
            "prompt_sha256": sha256(2),
            "text": "<think>in</think>" + walk(2, 50),
            "reasoning": f"{reasoning}\nin",
        },
    )
    done = replay(command, ANSWERS, "--seeds", "1-2")
    assert [t["reasoning"] for t in done.results] == [reasoning, f"{reasoning}\nin"]


def test_forms_of_a_file_that_are_read(command: Command) -> None:
    path = command.folder / ANSWERS
    whole = json.dumps(line(1))
    quoting = json.dumps(line(3, note='"results":'))
    spaced = json.dumps({"results": [line(1)]}, indent=1)
    forms = {
        "no final newline": whole,
        "CRLF": f"{whole}\r\n{json.dumps(line(2))}\r\n",
        "a huge line": json.dumps({"prompt_sha256": "f" * 64, "text": "y" * 5_000_000})
        + f"\n{whole}",
        "words of a result file inside": f"{quoting}\n{whole}",
        "unescaped": json.dumps(line(1, model="모델", provider="p"), ensure_ascii=False),
        "results alone": spaced,
        "results in CRLF": spaced.replace("\n", "\r\n"),
        "results with a byte-order mark": f"\ufeff{spaced}",
    }
    for name, text in forms.items():
        path.write_bytes(text.encode())
        done = replay(command, ANSWERS, "--seed", "1")
        assert (done.code, scores(done)) == (0, [score(100)]), name
    # One huge answer is the answer; what no file can hold comes back as a question mark.
    store(command, line(1) | {"text": "STEP 1: (0,0) → \ud800" + " " * 10**5 + "\U0001f600"})
    done = replay(command, ANSWERS, "--seed", "1")
    assert done.code == 0
    assert done.results[0]["raw_response"] == "STEP 1: (0,0) → ?" + " " * 10**5 + "\U0001f600"
    assert_follows(command, command.output)


def test_other_ways_to_name_it(command: Command) -> None:
    store(command, line(1))
    config = command.folder / "c.json"
    config.write_text(json.dumps({"providers": [{"provider": "replay", "model": ANSWERS}]}))
    done = command.run("--config", str(config), "--size", "5", "--seed", "1", "--max-cost", "0.01")
    assert (done.code, scores(done)) == (0, [score(100)])
    assert command("--model", f"replay/{ANSWERS}", "--check").code == 0
    plan = command("--model", f"replay/{ANSWERS}", "--seeds", "1-9", "--dry-run")
    assert plan.code == 0 and "0.0000" in plan.out
    batched = replay(command, ANSWERS, "--seed", "1", "--batch")
    assert (batched.code, scores(batched)) == (0, [score(100)])


# -- several models --------------------------------------------------------------------------------


def test_several_models_must_be_told_apart(command: Command) -> None:
    done = command.run(
        *("--model", "reference/oracle", "--model", "reference/bluffer"),
        *("--size", "5", "--seeds", "1-2"),
    )
    both = of_the_answer(done.document)
    path = keep(done, "both.json")
    journal = journal_of(command).rename(command.folder / "both.jsonl")
    for source in (path, journal):
        (command.folder / "results" / ".lock").unlink(missing_ok=True)
        for old in (command.folder / "results").iterdir():
            old.unlink()
        refused = replay(command, source.name, "--seeds", "1-2")
        assert refused.code == 2 and left(command) == []
        one_line(refused, source.name, "reference/oracle", "reference/bluffer")
        for k, model in enumerate(("oracle", "bluffer")):
            picked = replay(command, f"{source.name}#reference/{model}", "--seeds", "1-2")
            assert picked.code == 0
            assert of_the_answer(picked.document)[0] == both[0][2 * k : 2 * k + 2]
        together = command.run(
            *("--model", f"replay/{source.name}#reference/oracle"),
            *("--model", f"replay/{source.name}#reference/bluffer", "--size", "5"),
            *("--seeds", "1-2"),
        )
        assert (together.code, of_the_answer(together.document)) == (0, both)
        assert_follows(command, command.output)
        command.output.unlink()
    for pick in ("reference/silent", "oracle"):
        missed = replay(command, f"both.json#{pick}", "--seed", "1")
        assert missed.code in (2, 70) and not command.output.exists()
        one_line(missed, f"both.json#{pick}")


def test_names_of_models_are_untrusted(command: Command) -> None:
    names = ("a\x1b[31m\nb", "\ud800", "\u202ered")
    store(command, *(line(1, provider="p", model=name) for name in names))
    refused = replay(command, ANSWERS, "--seed", "1")
    assert refused.code == 2
    one_line(refused, "several models")


# -- files that are none ---------------------------------------------------------------------------

HEADER = {"journal": 1, "schema_version": 2, "models": [], "mazes": {}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        json.dumps({"results": []}),
        json.dumps({"results": [line(1, outcome="error")]}),
        json.dumps(HEADER) + "\n",
        json.dumps(HEADER) + "\n" + json.dumps({"batch": "b", "trials": [0]}) + "\n",
        json.dumps({"number": 0, "result": line(1, outcome="error")}) + "\n",
    ],
    ids=["empty", "no results", "errors", "journal", "batches", "errors of a journal"],
)
def test_wired_to_nothing(text: str, command: Command) -> None:
    (command.folder / ANSWERS).write_text(text)
    done = replay(command, ANSWERS, "--seed", "1")
    assert (done.code, left(command)) == (70, [])
    one_line(done, ANSWERS, "wired to nothing")


GOOD = json.dumps(line(1)).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\xff\xfe\x80" * 999, ""),
        (b"\0" * 999, ""),
        (b"\xff\xfe}\n" + GOOD, "line 1"),
        (GOOD.decode().encode("utf-16"), ""),
        (GOOD + b"\n{broken\n" + GOOD, "line 2"),
        (GOOD + b"\n" + GOOD[:-9] + b"\n" + GOOD, "line 2"),
        (GOOD + b"\n\xff\n" + GOOD, "line 2"),
        (GOOD + b"\n[1]\n", "line 2"),
        (GOOD + b"\n5\n", "line 2"),
        (b"{broken\n" + GOOD, "line 1"),
        (b'{"prompt_sha256": "f", "text": "\xed\xa0\x80"}', "line 1"),
        (b'{"a":' * 99_999 + b"}" * 99_999, ""),
        (b"[" * 99_999, ""),
        (b"[1, 2]", "neither"),
        (b"[" + GOOD + b"]", "neither"),
        (b'"text"', "neither"),
        (b"null", "neither"),
        (b'{\n "a": 1\n}\n', "neither"),
        (b'{"a": 1}\n', "line 1"),
        (b"{}", "line 1"),
        (b'{"results": 5}', "neither"),
        (b'{"results": [5]}', ""),
        (b'{"results": [{"a": 1}]}', ""),
        (b"date;score\n1;2\n", ""),
        (GOOD + b'\n{"prompt_sha256": "f"}\n', "line 2"),
        (GOOD + b'\n{"text": "hello"}\n', "line 2"),
        (GOOD + b'\n{"prompt_sha256": "", "trial_id": "", "text": "hello"}\n', "line 2"),
        (GOOD + b'\n{"prompt_sha256": "f", "text": 5}\n', "line 2"),
        (GOOD + b'\n{"trial_id": "f", "text": null}\n', "line 2"),
    ],
    ids=(
        "junk|zeros|bytes before a brace|UTF-16|"
        "broken line|half a line|no UTF-8|a list as a line|"
        "a number as a line|broken first line|a raw surrogate|deep object|"
        "deep list|a list|a list of lines|a string|"
        "null|another object|another object as a line|an empty object|"
        "results that are none|a number as a result|another result|a CSV|"
        "no text|no key|empty keys|a number as the text|"
        "null as the text"
    ).split("|"),
)
def test_files_that_hold_no_answers(data: bytes, words: str, command: Command) -> None:
    (command.folder / ANSWERS).write_bytes(data)
    done = replay(command, ANSWERS, "--seed", "1")
    assert (done.code, left(command)) == (2, [])
    one_line(done, ANSWERS, words)


def test_a_mark_or_a_blank_line_is_named_or_passed_over(command: Command) -> None:
    """And so is a last line that was never finished: a journal of a run that was killed has it."""
    for data, words in (
        (b"\xef\xbb\xbf" + GOOD, "line 1"),
        (GOOD + b"\n\n", "line 2"),
        (GOOD + b'\n{"prompt_sha', "line 2"),
    ):
        (command.folder / ANSWERS).write_bytes(data)
        done = replay(command, ANSWERS, "--seed", "1")
        if done.code:
            assert done.code == 2
            one_line(done, ANSWERS, words)
        else:
            assert scores(done) == [score(100)]


def test_a_damaged_line_is_no_matter_of_resuming(command: Command) -> None:
    (command.folder / ANSWERS).write_bytes(GOOD + b"\n{broken}\n")
    done = replay(command, ANSWERS, "--seed", "1")
    assert "resumed" not in one_line(done, ANSWERS, "line 2", "damaged")


def test_paths_that_are_no_files(command: Command) -> None:
    (command.folder / "folder").mkdir()
    for source in ("no.jsonl", "folder", "folder/", ".", "#p/m", "no.jsonl#p/m", "/dev/null"):
        done = replay(command, source, "--seed", "1")
        assert (done.code, left(command)) == (2, []), source
        one_line(done, source)
    one_line(replay(command, ""), "PROVIDER/MODEL")


def test_a_path_that_is_too_long_for_a_file(command: Command) -> None:
    done = replay(command, "a" * 400, "--seed", "1")
    assert (done.code, left(command)) == (2, [])
    one_line(done, "aaa")


HINTED = {"hint": "h", "first_answer": {"raw_response": "a", "outcome": "ok"}}


@pytest.mark.parametrize(
    "more",
    [
        {"prompt_sha256": 5},
        {"prompt_sha256": [1]},
        {"prompt_sha256": {"a": 1}},
        {"prompt_sha256": None, "trial_id": [1]},
        {"prompt_sha256": None, "trial_id": 5},
        {"prompt_sha256": "\ud800", **HINTED},
        {"model": "m"},
        {"provider": "p"},
        {"provider": None, "model": [1]},
        {"first_answer": "a", "hint": "h"},
        {"first_answer": {"a": 1}, "hint": "h"},
        {"first_answer": {"raw_response": 5}, "hint": "h"},
        {"first_answer": {"raw_response": "a"}},
        {**HINTED, "hint": 5},
        {**HINTED, "hint": "\ud800"},
        {**HINTED, "first_answer": {"raw_response": "\ud800"}},
        {"run": "x"},
        {"run": [1]},
        {"outcome": "odd"},
        {"outcome": 5},
        {"outcome": [1]},
        {"outcome": None},
        {"reasoning": 5},
        {"reasoning": ["x"]},
        {"finish_reason": 5},
        {"finish_reason": {"a": 1}},
        {"result": 5},
        {"result": None},
        {"result": []},
        {"result": {}},
    ],
    ids=repr,
)
def test_strange_fields_are_no_traceback(more: Json, command: Command) -> None:
    """Either they are no matter, or the line is named before anything is asked."""
    path = store(command, line(2), line(1) | more)
    problem = f"{ANSWERS}: line 2"
    try:
        stored = StoredAnswers(str(path))
    except UsageError as error:
        stored, problem = None, str(error)
    assert f"{ANSWERS}: line 2" in problem
    if stored and (reply := stored(TrialKey(run=1), sha256(1))):
        for text in (reply.text, reply.reasoning, reply.finish_reason):
            assert isinstance(text, str)
        assert reply.outcome in ("ok", "truncated", "refused")


def test_strange_fields_end_the_command_with_a_line(command: Command) -> None:
    for more in ({"outcome": "odd"}, {"prompt_sha256": [1]}):
        store(command, line(2), line(1) | more)
        done = replay(command, ANSWERS, "--seed", "1")
        assert (done.code, left(command)) == (2, [])
        one_line(done, ANSWERS, "line 2")


def test_what_is_no_line_is_passed_over(command: Command) -> None:
    path = store(command, line(1, 10), line(2, 20))
    text = path.read_text(encoding="utf-8").replace("\n", "\r\n\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\n  \n")
    done = replay(command, ANSWERS, "--seeds", "1-2")
    assert (done.code, scores(done)) == (0, [score(10), score(20)])


def test_the_journal_of_a_killed_run_is_a_file_of_answers(command: Command) -> None:
    store(command, line(1, 10), line(2, 20))
    assert replay(command, ANSWERS, "--seeds", "1-2").code == 0
    torn = command.folder / "torn#1.jsonl"  # a name with the sign that sets a model apart
    torn.write_bytes(journal_of(command).read_bytes()[:-9])
    done = replay(command, torn.name, "--seeds", "1-2")
    assert (done.code, scores(done)) == (1, [score(10), None])


# -- going on --------------------------------------------------------------------------------------


def test_a_run_that_was_cut_off_goes_on(command: Command) -> None:
    path = store(command, *(line(seed, 10 * seed) for seed in range(1, 6)))
    whole = replay(command, ANSWERS, "--seeds", "1-5")
    expected = of_the_answer(whole.document)
    journal = journal_of(command)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    done = command.run("--resume")
    assert done.code == 0 and "never finished" in done.err
    assert of_the_answer(done.document) == expected
    assert_follows(command, command.output)
    # Nothing is left to do, and without the file there is nothing to ask.
    assert command.run("--resume").code == 0
    path.unlink()
    gone = command.run("--resume")
    assert gone.code == 2
    one_line(gone, ANSWERS)


def test_a_run_whose_answers_come_later(command: Command) -> None:
    store(command, line(1, 10), line(4, 40))
    done = replay(command, ANSWERS, "--seeds", "1-4")
    assert (done.code, scores(done)) == (1, [score(10), None, None, score(40)])
    # Those that are there are not asked for again.
    store(command, line(1, 99), line(2, 20))
    done = command.run("--resume")
    assert (done.code, scores(done)) == (1, [score(10), score(20), None, score(40)])
    store(command, line(3, 30))
    done = command.run("--resume")
    assert (done.code, scores(done)) == (0, [score(c) for c in (10, 20, 30, 40)])
    assert_follows(command, command.output)
    # The journal with its errors is a file of answers, too.
    again = replay(command, journal_of(command), "--seeds", "1-4")
    assert (again.code, scores(again)) == (0, scores(done))
