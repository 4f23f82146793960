"""Past runs, and whether a model has become worse since: paired by maze, with a 95 % interval."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import STAMP, Command, Done, one_line, unstamped
from terminals import Pty

import hallumaze
from hallumaze import MazeConfig, MazeEngine, PromptBuilder, bootstrap_interval, paired_differences

Json = dict[str, Any]

ANSWERS = "a.jsonl"
DIRECTIONS = {(-1, 0): "N", (0, 1): "E", (1, 0): "S", (0, -1): "W"}
SIX = "1,2,3,4,6,7"  # of these mazes the hints are part of the prompt, so --no-mirage changes it
SEEDS = tuple(map(int, SIX.split(",")))
NAME = f"replay/{ANSWERS}"
CANNOT_TELL = f"{NAME}: cannot tell whether it has become worse: mazes in common with an earlier"


def sha256(seed: int, **settings: Any) -> str:
    return PromptBuilder(MazeEngine(5, seed), MazeConfig(size=5, **settings)).build().sha256


def walk(seed: int, confidence: int) -> str:
    """The way out, stated with one confidence: MEI 0.9, BRS 1 and CE 1 - confidence/100, so its
    Score is 0.5·0.9 + 0.2 + 0.3·confidence/100: 0.65 for 0 to 0.95 for 100."""
    path = MazeEngine(5, seed).solution_path
    steps = [
        f"STEP {k}: ({r},{c}) → {DIRECTIONS[to[0] - r, to[1] - c]} | {confidence}%"
        for k, ((r, c), to) in enumerate(pairwise(path), 1)
    ]
    return "\n".join([*steps, "FINAL_PATH: " + "→".join(f"({r},{c})" for r, c in path)])


def store(
    command: Command,
    confidences: Mapping[int, int | Sequence[int]] | Sequence[int] | int,
    name: str = ANSWERS,
    **settings: Any,
) -> None:
    """Answers of these confidences: by seed (of each repeat), or those of SEEDS."""
    if isinstance(confidences, int):
        confidences = [confidences] * len(SEEDS)
    if not isinstance(confidences, Mapping):
        confidences = dict(zip(SEEDS, confidences, strict=True))
    lines = [
        {"prompt_sha256": sha256(seed, **settings), "run": run, "text": walk(seed, c)}
        for seed, given in confidences.items()
        for run, c in enumerate([given] if isinstance(given, int) else given, 1)
    ]
    (command.folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def run(command: Command, *args: str, seeds: str = SIX, model: str = NAME, **env: str) -> Done:
    """A run whose result file lies in the results folder."""
    done = command("--model", model, "--size", "5", "--seeds", seeds, *args, **env)
    assert done.code in (0, 1, 3), done.err
    return done


def compared(command: Command, *args: str, **given: Any) -> Done:
    return run(command, "--fail-on-regression", *args, **given)


def results(command: Command) -> list[Path]:
    """The result files, the oldest first."""
    paths = (command.folder / "results").glob("*.json")
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns)


def age(command: Command) -> None:
    """All that was run is an hour older now."""
    for path in results(command):
        stamp = path.stat().st_mtime_ns
        document = json.loads(path.read_text("utf-8"))
        then = datetime.fromisoformat(document["timestamp"]) - timedelta(hours=1)
        document["timestamp"] = then.isoformat(timespec="seconds")
        path.write_text(json.dumps(document))
        hallumaze.os.utime(path, ns=(stamp, stamp))


def finding(done: Done, name: str = NAME) -> tuple[str, str, str, str, str]:
    """Word, difference, low, high and number of mazes, wherever they are said."""
    where = done.err if done.code == 3 else done.out
    number = r"([+-]\d\.\d{3})"
    match = re.search(
        rf"{STAMP} {re.escape(name)}: (a|no) regression: score {number} "
        rf"\[95 % CI {number}, {number}\] over (\d+) common mazes, against (.+)\n",
        where,
    )
    assert match, done
    assert Path(match[6]).is_file()
    return match[1], match[2], match[3], match[4], match[5]


# -- a regression ----------------------------------------------------------------------------------


# (confidences before, after) -> word, mean difference, low, high
BY_HAND: list[tuple[Sequence[int] | int, Sequence[int] | int, tuple[str, str, str, str]]] = [
    # the same difference on every maze leaves nothing to chance
    (100, 90, ("a", "-0.030", "-0.030", "-0.030")),
    (90, 100, ("no", "+0.030", "+0.030", "+0.030")),
    (50, 50, ("no", "+0.000", "+0.000", "+0.000")),
    # 3 of 6 mazes are worse by 0.3: a resample has none of them with probability 1/64 = 1.6 % (less
    # than 2.5 %), one at most with 7/64: the interval goes from 5 to 1 of them
    (100, [0, 0, 0, 100, 100, 100], ("a", "-0.150", "-0.250", "-0.050")),
    # 2 of 6: none of them with probability (2/3)^6 = 8.8 %; five and more with 1.8 %, four and more
    # with 10 %: the interval goes from 4 to none
    (100, [0, 0, 100, 100, 100, 100], ("no", "-0.100", "-0.200", "+0.000")),
    # and the other way round
    (0, [100, 100, 100, 0, 0, 0], ("no", "+0.150", "+0.050", "+0.250")),
    # noise: three better, three worse; the interval is that of ±0.3 with 1 to 5 of 6 heads
    ([100, 100, 100, 0, 0, 0], [0, 0, 0, 100, 100, 100], ("no", "+0.000", "-0.200", "+0.200")),
]


@pytest.mark.parametrize(("word", "code"), [("a", 3), ("no", 0)])
def test_by_hand(word: str, code: int, command: Command) -> None:
    """Each case is a model of one run, as they are compared on their own."""
    cases = [case for case in BY_HAND if case[2][0] == word]
    names = [ANSWERS, *(f"{k}.jsonl" for k in range(1, len(cases)))]
    more = [arg for name in names[1:] for arg in ("--model", f"replay/{name}")]
    for name, (before, _, _) in zip(names, cases, strict=True):
        store(command, before, name)
    assert run(command, *more).code == 0
    for name, (_, after, _) in zip(names, cases, strict=True):
        store(command, after, name)
    done = compared(command, *more)
    assert done.code == code
    for name, (_, _, expected) in zip(names, cases, strict=True):
        assert finding(done, f"replay/{name}") == (*expected, "6"), name
    assert len(unstamped(done.err)) == (len(cases) if code else 0)
    assert command("rescore", *map(str, results(command))).code == 0


def test_too_few_mazes_in_common(command: Command) -> None:
    store(command, 100)
    first = compared(command, seeds="1-4")  # there is no earlier run at all
    assert (first.code, unstamped(first.err)) == (0, [f"{CANNOT_TELL} run: 0"])
    five = "1,2,3,4,6"
    store(command, 100)
    run(command)
    store(command, 0)
    done = compared(command, seeds=five)
    assert (done.code, unstamped(done.err)) == (0, [f"{CANNOT_TELL} run: 5"])
    # The run of five is the previous one now: six mazes have five in common with it.
    again = compared(command)
    assert (again.code, unstamped(again.err)) == (0, [f"{CANNOT_TELL} run: 5"])
    korean = compared(command, "--lang", "ko", seeds=five)
    assert korean.code == 0 and "5개" in korean.err
    # Repeats are no mazes: three mazes twice are three.
    store(command, {1: [0, 0], 2: [0, 0], 3: [0, 0]})
    twice = compared(command, "--runs", "2", seeds="1-3")
    assert (twice.code, unstamped(twice.err)) == (0, [f"{CANNOT_TELL} run: 3"])


def test_only_the_previous_run_counts(command: Command) -> None:
    store(command, 100)
    assert run(command).code == 0
    store(command, 50)
    assert compared(command).code == 3
    store(command, 60)  # better than the last, still worse than the first
    assert finding(compared(command)) == ("no", "+0.030", "+0.030", "+0.030", "6")
    store(command, 59)
    done = compared(command)
    assert (done.code, finding(done)) == (3, ("a", "-0.003", "-0.003", "-0.003", "6"))
    assert results(command)[-2].name in done.err


def test_the_previous_run_is_so_by_its_time(command: Command) -> None:
    """Neither by its name nor by the time of its file."""
    store(command, 0)
    run(command)
    (path,) = results(command)
    path.rename(path.with_name("z.json"))
    age(command)
    store(command, 100)
    run(command)
    path = results(command)[-1]
    path.rename(path.with_name("a.json"))
    age(command)
    store(command, 50)
    run(command)  # the run of the future is nobody's previous one
    path = results(command)[-1]
    document = json.loads(path.read_text("utf-8"))
    document["timestamp"] = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
    path.write_text(json.dumps(document))
    store(command, 80)
    done = compared(command)
    assert done.code == 3 and "/a.json" in done.err
    assert finding(done)[1] == "-0.060"


def test_other_conditions_do_not_compare(command: Command) -> None:
    store(command, 100)
    assert run(command).code == 0
    for settings, options in (
        ({"lang": "en"}, ("--lang", "en")),
        ({"use_mirage": False}, ("--no-mirage",)),
        ({}, ("--temperature", "1")),
        ({}, ("--max-tokens", "2400")),
        ({}, ("--group", "B")),
        ({}, ("--reasoning-effort", "high")),
    ):
        if settings:
            assert not {sha256(s, **settings) for s in SEEDS} & {sha256(s) for s in SEEDS}
        store(command, 0, **settings)
        done = compared(command, *options)
        assert (done.code, unstamped(done.err)) == (0, [f"{CANNOT_TELL} run: 0"]), options
    # What shapes no answer compares; and the runs between are no previous ones.
    store(command, 90)
    done = compared(command, "--retries", "0", "--concurrency", "1", "--timeout", "9", "--csv")
    assert (done.code, finding(done)[1]) == (3, "-0.030")
    # A run of another group compares with its own kind.
    store(command, -0)
    done = compared(command, "--group", "B")
    assert (done.code, finding(done)[1]) == (0, "+0.000")


def test_models_are_told_apart(command: Command) -> None:
    """One of several that is worse is enough; other models' runs are nobody's previous ones."""
    for name in (ANSWERS, "b.jsonl"):
        store(command, 100, name=name)
    both = ("--model", "replay/b.jsonl", "--model", "reference/oracle")
    assert run(command, *both).code == 0
    store(command, 0, name="b.jsonl")
    assert run(command, model="replay/b.jsonl").code == 0
    store(command, 70, name="b.jsonl")
    store(command, 90)
    done = compared(command, *both)
    assert done.code == 3
    assert finding(done) == ("a", "-0.030", "-0.030", "-0.030", "6")
    assert len(unstamped(done.err)) == 1  # b.jsonl is better than in its own last run
    assert "replay/b.jsonl: no regression: score +0.210" in done.out
    assert "reference/oracle: no regression: score +0.000" in done.out
    # A model that is new is told of, and hides nothing.
    store(command, 100, name="c.jsonl")
    store(command, 80)
    done = compared(command, "--model", "replay/c.jsonl")
    assert done.code == 3
    assert [line.split(":")[0] for line in unstamped(done.err)] == [NAME, "replay/c.jsonl"]


def test_repeats_are_averaged_first(command: Command) -> None:
    store(command, {seed: [100, 0] for seed in SEEDS})
    assert run(command, "--runs", "2").code == 0
    # 50 on every maze, from other repeats: nothing has changed.
    store(command, {seed: [40, 60] for seed in SEEDS})
    done = compared(command, "--runs", "2")
    assert (done.code, finding(done)) == (0, ("no", "+0.000", "+0.000", "+0.000", "6"))
    # 40 on average, once the mean of (0, 80) and (80, 0), once a single repeat.
    store(command, dict(zip(SEEDS, [[0, 80], [80, 0]] * 3, strict=True)))
    assert run(command, "--runs", "2").code == 0
    store(command, 30)
    done = compared(command)
    assert (done.code, finding(done)) == (3, ("a", "-0.030", "-0.030", "-0.030", "6"))


def test_errors_among_the_trials_pair_with_nothing(command: Command) -> None:
    seven = f"{SIX},8"
    store(command, dict.fromkeys((*SEEDS, 8), 100))
    assert run(command, seeds=seven).code == 0
    store(command, 100)  # seed 8 ends as an error, which is no score of 0
    done = compared(command, seeds=seven)
    assert (done.code, finding(done)) == (1, ("no", "+0.000", "+0.000", "+0.000", "6"))
    store(command, 90)  # ... and hides no regression
    done = compared(command, seeds=seven)
    assert (done.code, finding(done)) == (3, ("a", "-0.030", "-0.030", "-0.030", "6"))
    store(command, dict.fromkeys(SEEDS[:5], 0))
    done = compared(command, seeds=seven)
    assert (done.code, unstamped(done.err)[-1]) == (1, f"{CANNOT_TELL} run: 5")
    # Errors of the run before pair with nothing, either.
    store(command, 0)
    assert unstamped(compared(command).err) == [f"{CANNOT_TELL} run: 5"]
    # All of them errors.
    store(command, {9: 0})
    done = compared(command)
    assert (done.code, unstamped(done.err)[-1]) == (1, f"{CANNOT_TELL} run: 0")


def test_quiet_says_the_finding_alone(command: Command) -> None:
    store(command, 100)
    assert compared(command, "--quiet").out == ""
    store(command, 90)
    done = compared(command, "--quiet")
    assert (done.code, done.out, finding(done)[0]) == (3, "", "a")
    assert len(unstamped(done.err)) == 1
    done = compared(command, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = compared(command, "--quiet", seeds="1,2")
    assert (done.code, done.out, unstamped(done.err)) == (0, "", [f"{CANNOT_TELL} run: 2"])
    korean = {"LC_ALL": "ko_KR.UTF-8", "PYTHONIOENCODING": "ascii"}
    done = compared(command, seeds="1,2", **korean)
    assert done.code == 0 and f"{NAME}: " in done.err and "?" in done.err


# -- with --resume ---------------------------------------------------------------------------------


def cut_off(command: Command) -> None:
    """A good run of six mazes, and one that is worse and lacks a maze."""
    store(command, 100)
    assert run(command).code == 0
    store(command, dict.fromkeys(SEEDS[:5], 50))
    assert run(command).code == 1
    store(command, 50)


def test_a_resumed_run_is_compared_as_a_whole(command: Command) -> None:
    cut_off(command)
    assert command("--resume").code == 0
    assert len(results(command)) == 2
    # It is finished: the same again, and it is not compared with itself.
    done = command("--resume", "--fail-on-regression", "--quiet")
    assert (done.code, done.out, finding(done)[1]) == (3, "", "-0.150")


def test_a_resumed_run_is_not_compared_with_what_it_had_before(command: Command) -> None:
    """Its earlier result file, under another name, is the same run, not a previous one."""
    cut_off(command)
    done = command.run("--resume", "--fail-on-regression")
    assert done.code == 3
    assert finding(done) == ("a", "-0.150", "-0.150", "-0.150", "6")


def test_a_package_that_is_missing_is_told_before_any_call(command: Command) -> None:
    cut_off(command)
    site = command.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.modules['scipy'] = None\n")
    env = {"PYTHONPATH": str(site)}
    given = ("--fail-on-regression", "--model", NAME, "--size", "5", "--seeds", SIX)
    for args in (given, ("--resume", "--fail-on-regression")):
        done = command(*args, **env)
        assert done.code == 2
        one_line(done, "scipy")
    assert len(results(command)) == 2
    assert run(command, **env).code == 0


def test_a_fixed_output_is_compared_with_what_it_held(command: Command) -> None:
    latest = ("--output", str(command.folder / "results" / "latest.json"))
    store(command, 100)
    assert compared(command, *latest).code == 0
    store(command, 50)
    assert compared(command, *latest).code == 3


def test_a_run_that_was_saved_twice_is_one(command: Command) -> None:
    store(command, {1: 100})
    assert run(command, seeds="1-2").code == 1
    again = ("--resume", "--output", str(command.folder / "results" / "again.json"))
    assert command(*again).code == 1
    assert len(results(command)) == 2
    assert len([row for row in cells(command("history")) if NAME in " ".join(row)]) == 2


# -- files of others -------------------------------------------------------------------------------

ROW = {"provider": "p", "model": "m", "ariadne_group": "A", "n": 3, "n_error": 0}
ROW |= {"hallumaze_score": 0.5, "mei": 0.4, "sr": 1.0, "cost_usd": None}
CONFIG = {"max_tokens": 2500, "temperature": 0.0, "reasoning_effort": None, "ariadne_mode": "A"}
MODELS = [
    {"provider": "p", "model": "m", "temperature": None, "max_tokens": None},
    {"provider": "p", "model": "n", "temperature": None, "max_tokens": None},
]
THEN = "2026-01-01T10:00:00+00:00"


def document(time: Any = THEN, **row: Any) -> Json:
    """A result file of one row, without what history and comparison do not look at."""
    return {
        "hallumaze_version": "1.1",
        "schema_version": 2,
        "timestamp": time,
        "config": {**CONFIG, "models": MODELS},
        "mazes": [],
        "results": [],
        "aggregate": [{**ROW, **row}],
    }


NO_RESULTS: dict[str, Any] = {
    "broken": "[1,",
    "text": '"timestamp aggregate"',
    "number": "5",
    "null": "null",
    "list": "[]",
    "object": "{}",
    "no JSON": "\0\1",
    "deep": "[" * 99_999,
    "no list of rows": {**document(), "aggregate": {}},
    "no time": document(""),
    "rescored": {**document(), "rescored_from": "a.json"},
}
STRANGE: dict[str, Json] = {
    "a time and rows alone": {"timestamp": THEN, "aggregate": []},
    "rows that are none": {**document(), "aggregate": [1]},
    "empty rows": {**document(), "aggregate": [{}]},
    "rows without numbers": {**document(), "aggregate": [{"provider": "p", "model": "m"}]},
    "text as a score": document(hallumaze_score="x"),
    "no number": document(hallumaze_score=float("nan")),
    "infinite": document(hallumaze_score=float("inf")),
    "too large": document(hallumaze_score=10**400),
    "text as a cost": document(cost_usd="x"),
    "no count": {**document(), "aggregate": [{k: v for k, v in ROW.items() if k != "n"}]},
    "a number as the time": document(5),
    "results that are none": {**document(), "results": [5]},
    "settings that are none": {**document(), "config": 5},
    "models that are none": {**document(), "config": {**CONFIG, "models": [5]}},
}


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """One run that is a good one."""
    command = Command(tmp_path_factory.mktemp("past"))
    store(command, 100)
    run(command)
    store(command, 50)
    return command


def test_what_is_no_result_file_is_passed_over(past: Command) -> None:
    folder = past.folder / "results"
    for name, content in NO_RESULTS.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text)
    (folder / "folder.json").mkdir()
    try:
        done = past("history")
        assert (done.code, done.err) == (0, "")
        assert cells(done)[-1] == ["█", f"{NAME} A"] and len(cells(done)) == 3
        assert finding(compared(past, "--output", str(past.output)))[1] == "-0.150"
    finally:
        (folder / "folder.json").rmdir()
        for name in NO_RESULTS:
            (folder / f"{name}.json").unlink()


@pytest.mark.parametrize("name", STRANGE)
def test_strange_result_files_are_no_traceback(name: str, past: Command) -> None:
    foreign = past.folder / "results" / "foreign.json"
    foreign.write_text(json.dumps(STRANGE[name]))
    try:
        done = past("history")
        assert (done.code, done.err) == (0, "")
        assert f"{NAME} A" in done.out and "  █" in done.out
    finally:
        foreign.unlink()


def test_strange_result_files_compare_with_nothing(past: Command) -> None:
    folder = past.folder / "results"
    for name, content in STRANGE.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    try:
        # Nothing else compares, so that every file is looked at.
        done = compared(past, "--temperature", "1", "--output", str(past.output))
        assert (done.code, unstamped(done.err)) == (0, [f"{CANNOT_TELL} run: 0"])
    finally:
        for name in STRANGE:
            (folder / f"{name}.json").unlink()


# -- history ---------------------------------------------------------------------------------------


def write(command: Command, *documents: Json, folder: str = "results") -> Path:
    path = command.folder / folder
    path.mkdir(exist_ok=True)
    for k, document in enumerate(documents):
        (path / f"{k}.json").write_text(json.dumps(document))
    return path


def cells(done: Done) -> list[list[str]]:
    """The rows of the table under its title, and the lines of bars, cut at wide gaps."""
    return [re.split(r"\s{2,}", line.strip()) for line in done.out.splitlines()[2:]]


def test_runs_are_listed(command: Command) -> None:
    """0.95, 0.80 and 0.65 are 7.6, 6.4 and 5.2 eighths."""
    for confidence in (100, 50):
        store(command, confidence)
        assert run(command).code == 0
        age(command)
    store(command, dict.fromkeys(SEEDS[:4], 0))
    assert run(command, "--model", "reference/oracle").code == 1
    age(command)
    store(command, {9: 0})
    assert run(command).code == 1
    path = results(command)[-1]
    # A copy that was rescored is the same run.
    assert command("rescore", str(path), "--write").code == 0
    assert command("rescore", str(results(command)[0]), "--write").code == 0

    done = command("history")
    assert (done.code, done.err) == (0, "")
    rows = cells(done)
    assert rows[0] == ["date", "model", "n", "Score", "MEI", "SR", "USD", "errors"]
    for row in rows[1:6]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", row[0])
    assert [row[0] for row in rows[1:6]] == sorted(row[0] for row in rows[1:6])
    model = f"{NAME} A"
    table = [row[1:] for row in rows[1:6]]
    oracle = table.pop(3)
    assert table == [
        [model, "6", "0.950", "0.900", "1.00", "0.0000", "0"],
        [model, "6", "0.800", "0.900", "1.00", "0.0000", "0"],
        [model, "4", "0.650", "0.900", "1.00", "0.0000", "2"],
        [model, "0", "–", "–", "–", table[3][5], "6"],
    ]
    assert (oracle[0], oracle[1], oracle[-1]) == ("reference/oracle A", "6", "0")
    assert rows[6:] == [["█▇▆·", model], ["█", "reference/oracle A"]]
    assert command("rescore", *map(str, results(command))).code == 0

    # One model, by either name.
    for name in ("oracle", "reference/oracle"):
        done = command("history", "--model", name)
        assert (done.code, len(cells(done))) == (0, 3)
        assert NAME not in done.out
    done = command("history", "--model", NAME, "--lang", "ko")
    assert done.code == 0
    assert cells(done)[0] == ["날짜", "모델", "n", "Score", "MEI", "SR", "USD", "오류"]
    assert cells(done)[-1] == ["█▇▆·", model]
    missed = command("history", "--model", "reference")
    assert missed.code == 2
    one_line(missed, "reference")


def test_the_oldest_run_is_the_first(command: Command) -> None:
    times = ("2026-03-01T00:00:00+00:00", "2025-12-31T23:59:59+00:00", "2026-02-01T12:34:56+00:00")
    scores = (0.0, 1.0, 0.5)
    write(command, *(document(t, hallumaze_score=s) for t, s in zip(times, scores, strict=True)))
    rows = cells(command("history"))
    assert [row[0] for row in rows[1:4]] == [
        *("2025-12-31 23:59", "2026-02-01 12:34", "2026-03-01 00:00")
    ]
    assert rows[1] == ["2025-12-31 23:59", "p/m A", "3", "1.000", "0.400", "1.00", "–", "0"]
    assert rows[4] == ["█▅▁", "p/m A"]


def test_groups_have_rows_of_their_own(command: Command) -> None:
    write(command, *(document(ariadne_group=g, cost_usd=1234.5) for g in "ABA"))
    rows = cells(command("history"))
    assert [row[1] for row in rows[1:4]] == ["p/m A", "p/m B", "p/m A"]
    assert rows[1][6] == "1,234.5000"
    assert rows[4:] == [["▅▅", "p/m A"], ["▅", "p/m B"]]


def test_names_are_untrusted(command: Command) -> None:
    name = "\x1b[31m\u202ered\n\x07[bold red]x[/] \ud800 한글"
    write(command, document(model=name), document(provider="\x9b1m"))
    for env in ({}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "ko_KR.UTF-8"}):
        done = command("history", **env)  # which looks for control characters
        assert (done.code, done.err) == (0, "")
        assert "[bold red]x[/]" in done.out and "\u202e" not in done.out
        assert len(done.out.splitlines()) == 1 + 1 + 1 + 2 + 2
    missed = command("history", "--model", "\x1b[1mx\ny")
    assert missed.code == 2
    one_line(missed, "[1mx y")


def test_in_a_terminal(command: Command) -> None:
    folder = write(command, document(model="[bold red]x[/]\x1b[5m"), document(hallumaze_score=1))
    with Pty(command, "history", "--results-dir", str(folder)) as terminal:
        assert terminal.end() == 0
        text = terminal.text()
        assert b"\x1b[5m" not in terminal.raw
    assert "[bold red]x[/]" in text and "0.500" in text
    assert "▅" in text and "█" in text


def test_folders_without_runs(command: Command) -> None:
    (command.folder / "file").write_text("x")
    (command.folder / "empty").mkdir()
    broken = write(command, *({"a": 1}, {"timestamp": THEN}), folder="broken")
    (broken / "folder.json").mkdir()
    (broken / "journal.jsonl").write_text(json.dumps(document()))
    for name in ("file", "empty", "broken", "missing"):
        done = command("history", "--results-dir", str(command.folder / name))
        assert done.code == 2, name
        one_line(done, name)
    assert not (command.folder / "missing").exists()
    for args in (("--colour",), ("--lang", "fr"), ("--model",), ("x",)):
        done = command("history", *args)
        assert (done.code, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1


# -- statistics ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([0.0, 1.0, None], "▁█·"),
        # each bar from its eighth on
        ([0.124, 0.125, 0.249, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.874], "▁▂▂▃▄▅▆▇█▇"),
        ([-0.5, -0.01, 1.01, 7.0, 0, 1], "▁▁██▁█"),
        ([None, None], "··"),
    ],
)
def test_bars_by_hand(values: list[float | None], bars: str) -> None:
    assert hallumaze.spark_line(values) == bars
    assert hallumaze.spark_line(iter(values)) == bars


def percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two values whose places are nearest, by how near they are."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def resampled(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The percentile bootstrap as the books have it: draw as many, with replacement, 10,000 times;
    the means' 2.5 % and 97.5 %."""
    picks = np.random.RandomState(seed).randint(0, len(values), (10_000, len(values)))
    means = sorted(sum(values[k] for k in row) / len(values) for row in picks.tolist())
    return percentile(means, 0.025), percentile(means, 0.975)


def samples() -> Iterator[list[float]]:
    rng = np.random.RandomState(11)
    for n in (6, 7, 13, 60):
        yield [float(value) for value in rng.uniform(-0.3, 0.2, n)]
    yield [-0.3] * 3 + [0.0] * 3
    yield [0.1] * 9


@pytest.mark.parametrize("values", list(samples()), ids=len)
def test_the_interval_against_another_bootstrap(values: list[float]) -> None:
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(tuple(values))  # the same every time
    # The same stream of chance gives the same interval ...
    assert (low, high) == pytest.approx(resampled(values, 0), abs=1e-12)
    # ... and another one about the same: its ends are off by few hundredths of the spread.
    other = resampled(values, 12345)
    assert (low, high) == pytest.approx(other, abs=0.08 * float(np.std(values)) + 1e-12)
    assert min(values) - 1e-12 <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= max(values) + 1e-12


def test_the_interval_against_every_resample() -> None:
    """Of 6 values there are 6^6 resamples: no chance is left in their percentiles."""
    values = [-0.31, 0.02, -0.17, 0.08, -0.05, 0.11]
    means = sorted(sum(chosen) / 6 for chosen in product(values, repeat=6))
    exact = percentile(means, 0.025), percentile(means, 0.975)
    assert bootstrap_interval(values) == pytest.approx(exact, abs=0.01)


def trials(*scores: tuple[str, float | None], **config: Any) -> Json:
    """A result file with these (prompt, score) of p/m."""
    common = {"provider": "p", "model": "m", "ariadne_group": "A"}
    return {
        "config": {**CONFIG, "models": MODELS, **config},
        "results": [{**common, "prompt_sha256": p, "hallumaze_score": s} for p, s in scores],
    }


def test_paired_differences_by_hand() -> None:
    before = trials(("a", 0.5), ("b", 0.25), ("c", 0.75), ("c", 0.25), ("d", None), ("e", 1.0))
    after = trials(("c", 1.0), ("a", 0.25), ("f", 0.5), ("d", 0.5), ("b", 0.5), ("b", 1.0))
    after["results"] += trials(("b", None), ("e", None))["results"]
    # c: 1 - (0.75 + 0.25)/2; a: 0.25 - 0.5; f is new; d and e ended as errors; b: 0.75 - 0.25
    assert paired_differences(before, after, ("p", "m", "A", "")) == [0.5, -0.25, 0.5]
    assert paired_differences(after, before, ("p", "m", "A", "")) == [0.25, -0.5, -0.5]  # a, b, c
    assert paired_differences(before, before, ("p", "m", "A", "")) == [0.0] * 4
    # Another model, another provider: no pair.
    assert paired_differences(before, after, ("p", "n", "A", "")) == []
    assert paired_differences(before, after, ("q", "m", "A", "")) == []
    other = trials(("a", 0.0))
    other["results"][0]["model"] = "n"
    assert paired_differences(before, other, ("p", "m", "A", "")) == []


def test_settings_of_a_call_leave_no_pair() -> None:
    before = trials(("a", 0.5))
    for name, value in (
        *(("temperature", 1.0), ("temperature", None), ("max_tokens", 100)),
        ("reasoning_effort", "low"),
    ):
        after = trials(("a", 0.25), **{name: value})
        assert paired_differences(before, after, ("p", "m", "A", "")) == [], name
    # Nor do other groups.
    assert paired_differences(before, trials(("a", 0.25)), ("p", "m", "B", "")) == []
    # A model's own setting goes before the run's, and only what results counts.
    own = [{**MODELS[0], "temperature": 1.0}, {**MODELS[1], "max_tokens": 7}]
    assert paired_differences(before, trials(("a", 0.25), models=own), ("p", "m", "A", "")) == []
    warm = trials(("a", 0.75), temperature=1.0)
    assert paired_differences(warm, trials(("a", 0.25), models=own), ("p", "m", "A", "")) == [-0.5]
    own = [{**MODELS[0], "temperature": 0.0}]
    assert paired_differences(before, trials(("a", 0.25), models=own), ("p", "m", "A", "")) == [
        -0.25
    ]
    # Others do not shape an answer.
    more = {"timeout": 9.0, "retries": 0, "runs": 3, "size": 5}
    assert paired_differences(before, trials(("a", 0.25), **more), ("p", "m", "A", "")) == [-0.25]
