"""Nothing that was finished is lost or paid for twice."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, Command, one_line, timeless, unstamped, until
from servers import Received, Say, Server, answer, error, solution

import hallumaze
from hallumaze import CONCURRENCY, MOST_FAILURES, USAGE_KEYS, BenchmarkResult, Journal, UsageError

TRIALS, KILLS = 600, 50
SEEDS = f"0-{TRIALS - 1}"
ONE_BY_ONE = ("--concurrency", "1")


def model(server: Server) -> tuple[str, ...]:
    url = server.base_url("compatible")
    return "--model", "compatible/x", "--base-url", url, "--size", "5"


def journal_of(command: Command) -> Path:
    (path,) = (command.folder / "results").glob("*.jsonl")
    return path


def resumed(command: Command, server: Server, *args: str, **env: str) -> Any:
    url = server.base_url("compatible")
    return command.run("--resume", *args, COMPATIBLE_BASE_URL=url, **env)


# -- the whole of it -------------------------------------------------------------------------------


def test_killed_at_any_time_and_resumed_the_result_is_the_same(
    command: Command, server: Server, tmp_path: Path
) -> None:
    """SIGKILL at up to 50 random moments of one run of 600 trials, 8 of them at a time."""
    undisturbed = Command(tmp_path / "undisturbed")
    undisturbed.folder.mkdir()
    assert undisturbed.run(*model(server), "--seeds", SEEDS).code == 0
    server.requests.clear()

    rng = random.Random(7)

    def hesitating(request: Received) -> str:
        time.sleep(random.random() / 25)  # so that kills come before and between answers
        return solution(request)

    server.answer = hesitating
    prompts = {prompt(seed): seed for seed in range(TRIALS)}
    journaled: set[int] = set()
    kills, grown = 0, 0
    while True:
        first = not list((command.folder / "results").glob("*.jsonl"))
        args = (*model(server), "--seeds", SEEDS) if first else ("--resume",)
        process = command.start(*args, "--output", str(command.output))
        before = len(server.requests)
        if kills < KILLS:
            wanted = before + rng.randint(1, 2 * CONCURRENCY)
            until(lambda w=wanted, p=process: len(server.requests) >= w or p.poll() is not None)
            time.sleep(rng.random() / 25)
            process.kill()
        process.communicate(timeout=PATIENCE_S)
        calls = {prompts[request.turns[0][1]] for request in server.requests[before:]}
        assert not journaled & calls, "a finished trial was called again"
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        paths = list((command.folder / "results").glob("*.jsonl"))
        lines = paths[0].read_bytes().split(b"\n")[1:-1] if paths else []
        entries = [json.loads(line) for line in lines]
        seeds = [entry["result"]["maze_seed"] for entry in entries]
        assert seeds == [entry["number"] for entry in entries]  # one model, seeds from 0 on
        assert len(seeds) == len(set(seeds)) and journaled <= set(seeds), "one was lost"
        grown += len(seeds) > len(journaled)
        journaled = set(seeds)
    assert kills >= KILLS - 10  # 50, unless the machine was quick
    assert grown >= KILLS / 4, "hardly any kill came between two trials"
    document = json.loads(command.output.read_text("utf-8"))
    assert timeless(document) == timeless(undisturbed_document(undisturbed))
    counts = Counter(prompts[request.turns[0][1]] for request in server.requests)
    assert len(counts) == TRIALS
    # What a kill can cost is what was under way.
    assert counts.total() <= TRIALS + CONCURRENCY * kills


def prompt(seed: int) -> str:
    maze = hallumaze.MazeEngine(5, seed)
    return hallumaze.PromptBuilder(maze, hallumaze.MazeConfig(size=5)).build().user


def undisturbed_document(command: Command) -> Any:
    return json.loads(command.output.read_text("utf-8"))


def test_a_trial_that_ended_as_an_error_is_played_again(command: Command, server: Server) -> None:
    server.script(Say(), Say(status=401), Say())
    done = command.run(*model(server), "--seeds", "1-3", *ONE_BY_ONE)
    assert (done.code, len(server.requests)) == (1, 3)
    assert [trial["outcome"] for trial in done.results] == ["ok", "error", "ok"]
    again = resumed(command, server)
    assert (again.code, len(server.requests)) == (0, 4)
    assert [trial["outcome"] for trial in again.results] == ["ok"] * 3
    assert [trial["maze_seed"] for trial in again.results] == [1, 2, 3]
    assert [t["trial_id"] for t in again.results] == [t["trial_id"] for t in done.results]
    # What the server has not answered has cost nothing that anybody knows of.
    vain = {"n": 1, "usage": dict.fromkeys(USAGE_KEYS), "cost_usd": None}
    assert [trial["earlier_attempts"] for trial in again.results] == [None, vain, None]
    # Nothing is left to do: nobody is called.
    assert (resumed(command, server).code, len(server.requests)) == (0, 4)


def test_what_a_failed_attempt_has_used_is_counted(command: Command, server: Server) -> None:
    """Group C: the answer to the hint fails, twice, after the first answer was paid for.

    gpt-4o costs 2.5 USD a million tokens of input and 10 of output: 1000 and 200 are 0.0045 USD.
    """
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
    server.answer = lambda request: Say(answer("openai", solution(request), usage=usage))
    env = {"OPENAI_API_KEY": "sk-FAKE-openai-22", "OPENAI_BASE_URL": server.base_url("openai")}
    good, bad = Say(), error("openai", 500, "broken")
    server.script(good, bad)
    args = ("--model", "openai/gpt-4o", "--size", "5", "--seed", "1", "--group", "C")
    done = command.run(*args, "--retries", "0", **env)
    assert (done.code, len(server.requests)) == (1, 2)
    (failed,) = done.results
    once = {"input": 1000, "output": 200, "reasoning": None, "cached": None}
    assert (failed["outcome"], failed["usage"], failed["cost_usd"]) == ("error", once, 0.0045)
    assert (failed["earlier_attempts"], failed["error_retryable"]) == (None, True)
    assert failed["first_answer"]["raw_response"] == solution(server.requests[0])
    assert done.document["spending"] == {"usage": once, "cost_usd": 0.0045, "n_unpriced": 0}

    server.script(good, bad)
    done = command.run("--resume", **env)
    assert (done.code, len(server.requests)) == (1, 4)
    (failed,) = done.results
    assert failed["earlier_attempts"] == {"n": 1, "usage": once, "cost_usd": 0.0045}
    twice = {**once, "input": 2000, "output": 400}
    assert done.document["spending"] == {"usage": twice, "cost_usd": 0.009, "n_unpriced": 0}

    done = command.run("--resume", "--csv", **env)
    assert (done.code, len(server.requests)) == (0, 6)
    (trial,) = done.results
    assert (trial["outcome"], trial["nudge_sent"]) == ("ok", True)
    assert trial["earlier_attempts"] == {"n": 2, "usage": twice, "cost_usd": 0.009}
    assert (trial["usage"], trial["cost_usd"]) == (twice, 0.009)  # its own two calls
    four = {**once, "input": 4000, "output": 800}
    spending = {"usage": four, "cost_usd": 0.018, "n_unpriced": 0}
    (row,) = done.document["aggregate"]
    assert {key: row[key] for key in spending} == spending == done.document["spending"]
    table = done.out.split("Tokens and cost\n")[1].splitlines()
    assert table[1].split() == ["openai/gpt-4o", "C", "4,000", "800", "–", "–", "0.0180"]
    with command.output.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["cost_usd"], line["tokens_input"]) == ("0.009", "2000")
    # What is done is done: nothing is paid for again, nor counted again.
    again = command.run("--resume", **env)
    assert (again.code, len(server.requests)) == (0, 6)
    assert again.results == done.results and again.document["spending"] == spending


def test_max_cost_counts_what_earlier_attempts_have_cost(command: Command, server: Server) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
    server.answer = lambda request: Say(answer("openai", solution(request), usage=usage))
    env = {"OPENAI_API_KEY": "sk-FAKE-openai-22", "OPENAI_BASE_URL": server.base_url("openai")}
    server.script(Say(), error("openai", 500, "broken"))
    args = ("--model", "openai/gpt-4o", "--size", "5", "--seeds", "1-3", "--group", "C")
    first = command.run(*args, "--retries", "0", "--max-cost", "0.004", *ONE_BY_ONE, **env)
    assert (first.code, len(server.requests)) == (1, 2)  # 0.0045: no more is started
    (line,) = unstamped(first.err)
    run = journal_of(command).stem
    stopped = "--max-cost is reached: saving the trials that were finished: 1; go on with --resume"
    assert line == f"{stopped} {run}"
    # One trial costs 0.009: the second of this session begins at 0.0135 and is the last.
    again = command.run("--resume", "--max-cost", "0.014", *ONE_BY_ONE, **env)
    assert (again.code, len(server.requests)) == (1, 2 + 4)
    assert again.document["spending"]["cost_usd"] == 0.0225
    last = command.run("--resume", **env)
    assert (last.code, len(server.requests)) == (0, 2 + 6)
    assert [trial["outcome"] for trial in last.results] == ["ok"] * 3
    assert last.document["spending"]["cost_usd"] == 0.0315


def test_an_interrupted_run_says_how_to_go_on(command: Command, server: Server) -> None:
    server.script(Say(), Say(silence=PATIENCE_S))
    args = ("--seeds", "1-3", *ONE_BY_ONE, "--output", str(command.output))
    process = command.start(*model(server), *args)
    until(lambda: len(server.requests) == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    run = journal_of(command).stem
    assert process.returncode == 130
    (line,) = unstamped(err)
    assert line.startswith("interrupted: saving the trials that were finished: 1;")
    assert line.endswith(f" --resume {run}")
    done = command.run("--resume", run)
    assert (done.code, len(done.results)) == (0, 3)
    assert len(server.requests) == 2 + 2
    path = journal_of(command)
    (line,) = unstamped(done.out.splitlines()[0])
    assert line == f"{path}: 1 of 3 trials are finished; going on with the others"


def test_the_journal_stands_before_the_line_of_the_trial(command: Command, server: Server) -> None:
    held: list[int] = []

    def look(request: Received) -> str:
        path = journal_of(command)
        held.append(len(path.read_bytes().splitlines()) - 1)
        return solution(request)

    server.answer = look
    command.run(*model(server), "--seeds", "1-3", *ONE_BY_ONE)
    assert held == [0, 1, 2]


def test_side_by_side_the_journal_stands_before_the_line_too(
    command: Command, server: Server
) -> None:
    process = command.start(*model(server), "--seeds", "0-39", "--output", str(command.output))
    assert process.stdout is not None
    shown: set[int] = set()
    for line in process.stdout:
        if found := re.search(r" compatible/x seed (\d+) \| SR=", line):
            lines = journal_of(command).read_bytes().split(b"\n")[1:-1]
            shown.add(int(found[1]))
            assert shown <= {json.loads(entry)["result"]["maze_seed"] for entry in lines}
    assert process.wait(timeout=PATIENCE_S) == 0
    assert shown == set(range(40))
    seeds = [trial["maze_seed"] for trial in undisturbed_document(command)["results"]]
    assert seeds == sorted(seeds)  # whatever came first


def test_no_key_is_in_the_journal(command: Command, server: Server) -> None:
    done = command.run(*model(server), "--seed", "1", COMPATIBLE_API_KEY="sk-FAKE-compatible-1")
    assert done.code == 0  # every file of the results folder was looked through
    header, line = map(json.loads, journal_of(command).read_text("utf-8").splitlines())
    assert header["models"][0]["model"] == "x" and "api_key" not in header["models"][0]
    assert header["config"]["size"] == 5
    assert header["mazes"] == {"size": 5, "seeds": [1], "algorithm": "dfs"}
    assert (header["journal"], header["runs"], header["batch"]) == (2, 1, False)
    assert line == {"number": 0, "result": done.results[0]}


def test_keys_of_a_file_serve_a_resumed_run(command: Command, server: Server) -> None:
    url = server.base_url("openai")
    entry = {"provider": "openai", "model": "m", "api_key": "sk-FAKE-openai-22", "base_url": url}
    config = command.folder / "c.json"
    config.write_text(json.dumps({"providers": [entry]}))
    config.chmod(0o600)
    server.script(Say(status=400))
    assert command.run("--config", str(config), "--seed", "1").code == 1
    refused = command("--resume")
    assert refused.code == 2
    one_line(refused, "openai/m", "OPENAI_API_KEY")
    assert command.run("--resume", "--config", str(config)).code == 0


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def two(command: Command, server: Server) -> Path:
    """The journal of two finished trials."""
    assert command.run(*model(server), "--seeds", "1-2").code == 0
    return journal_of(command)


def test_a_torn_last_line_is_dropped_with_a_notice(
    two: Path, command: Command, server: Server
) -> None:
    whole = two.read_bytes()
    for cut in (1, 2, 100):
        two.write_bytes(whole[:-cut])
        before = len(server.requests)
        done = resumed(command, server)
        assert (done.code, len(server.requests)) == (0, before + 1)
        assert "never finished" in done.err and len(done.err.splitlines()) == 1
        assert len(two.read_bytes().splitlines()) == 3


def test_a_first_line_that_was_never_finished(two: Path, command: Command) -> None:
    two.write_bytes(two.read_bytes()[:40])
    done = command("--resume")
    assert done.code == 2
    one_line(done, "nothing to resume")


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (2, b"{broken"),
        (2, b"\xff\xfe"),
        (2, b'{"id": "x"}'),
        (2, b'{"id": "x", "result": {"colour": 1}}'),
        (2, b'{"number": 0}'),
        (2, b'{"number": 0, "result": {"colour": 1}}'),
        (2, b'{"number": 0, "result": []}'),
        (2, b'{"number": 0, "result": {"provider": "compatible"}}'),
        (2, b'{"batch": "b"}'),
        (2, b'{"batch": "b", "trials": 7}'),
        (2, b'{"batch": "b", "trials": [0]}'),
        (2, b'{"batch": "b", "trials": {"x": 9}}'),
        (1, b'{"journal": 99, "schema_version": 2}'),
        (1, b'{"journal": 1, "schema_version": 2}'),
        (1, b"{}"),
        (1, b"[]"),
    ],
)
def test_damage_in_the_middle_names_the_line(
    number: int, line: bytes, two: Path, command: Command, server: Server
) -> None:
    lines = two.read_bytes().split(b"\n")
    lines[number - 1] = line
    two.write_bytes(b"\n".join(lines))
    damaged, before = two.read_bytes(), len(server.requests)
    done = command("--resume")
    assert done.code == 2
    one_line(done, two.name, f"line {number}")
    assert (two.read_bytes(), len(server.requests)) == (damaged, before)


@pytest.mark.parametrize(
    ("number", "path", "value"),
    [
        (2, "result.mei", "high"),
        (2, "result.mei", float("nan")),
        (2, "result.steps.0.confidence", float("inf")),
        (2, "result.hallucination_count", True),
        (2, "result.run", 1.5),
        (2, "result.model", None),
        (2, "result.usage", None),
        (2, "result.usage.input", "12"),
        (2, "result.usage", [1]),
        (2, "result.steps", "none"),
        (2, "result.metacog_signals.0", 7),
        (2, "result.earlier_attempts", {"n": 1}),
        (2, "result.earlier_attempts", {"n": "1", "usage": {}, "cost_usd": None}),
        (2, "result.colour", 1),
        (2, "number", 2),
        (2, "number", True),
        (1, "models.0.concurrency", "8"),
        (1, "models.0.model", 7),
        (1, "models.0.colour", "red"),
        (1, "config.timeout", "long"),
        (1, "config.retries", None),
        (1, "config.lang", "fr"),
        (1, "mazes.seeds", ["1", "2"]),
        (1, "mazes.size", "5"),
        (1, "runs", True),
        (1, "runs", 0),
        (1, "environment", []),
    ],
)
def test_a_value_of_the_wrong_kind_names_the_line(
    number: int, path: str, value: object, lines_of_two: list[bytes], tmp_path: Path
) -> None:
    entry = thing = json.loads(lines_of_two[number - 1])
    *ways, last = (int(name) if name.isdigit() else name for name in path.split("."))
    for way in ways:
        thing = thing[way]
    if thing == []:
        thing.append(value)
    thing[last] = value
    lines = [*lines_of_two]
    lines[number - 1] = json.dumps(entry).encode()
    journal = tmp_path / "j.jsonl"
    journal.write_bytes(b"\n".join(lines))
    with pytest.raises(UsageError, match=rf"j\.jsonl: line {number} is ") as caught:
        hallumaze._journal_plan(Journal.load(journal), [], {})
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


@pytest.fixture(scope="module")
def lines_of_two(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a journal of two finished trials."""
    command = Command(tmp_path_factory.mktemp("two"))
    with Server() as server:
        server.answer = lambda request: Say(answer("openai", solution(request)))
        assert command.run(*model(server), "--seeds", "1-2").code == 0
    return journal_of(command).read_bytes().split(b"\n")


def test_a_batch_of_who_has_none_names_the_line(two: Path, command: Command) -> None:
    lines = two.read_bytes().splitlines(keepends=True)
    two.write_bytes(b"".join(lines[:2]) + b'{"batch": "b", "trials": {"x": 1}}\n')
    done = command("--resume")
    assert done.code == 2
    one_line(done, two.name, "line 1", "batch")


@pytest.mark.parametrize("lines", [0, 1])
def test_a_disk_that_is_full_leaves_whole_lines(lines: int, tmp_path: Path) -> None:
    """Of trials that end together those are kept that it has room for."""
    path = tmp_path / "j.jsonl"
    journal = Journal.create(path, {"journal": 2})
    journal.add([(0, BenchmarkResult("p", "m", trial_id="a"))])
    whole = path.read_bytes()
    line = whole.splitlines(keepends=True)[1].replace(b'"a"', b'"b"').replace(b": 0, ", b": 1, ", 1)

    class Full:
        """A file whose disk has room for one byte more, behind so many lines."""

        def __init__(self, file: Any) -> None:
            self.file = file
            self.room = lines * len(line) + 1

        def write(self, data: bytes) -> int:
            written = self.file.write(data[: self.room])
            self.room -= written
            if not written:
                raise OSError(28, "No space left on device")
            return int(written)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    journal._file = Full(journal._file)
    with pytest.raises(hallumaze.HalluMazeError, match="No space left"):
        journal.add([(k, BenchmarkResult("p", "m", trial_id="b")) for k in (1, 2)])
    for held in (journal, Journal.load(path)):
        assert held.finished == ({0: "a", 1: "b"} if lines else {0: "a"})
        assert [result.trial_id for result in held.results()] == ["a", "b"][: 1 + lines]
    assert path.read_bytes() == whole + line * lines


def test_a_disk_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path / "j.jsonl", {"journal": 2})

    def fails(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    for append in (
        lambda: journal.add([(0, BenchmarkResult("p", "m", trial_id="a"))]),
        lambda: journal.add_batch("b", {"a": 1}),
    ):
        with pytest.raises(hallumaze.HalluMazeError, match=r"j\.jsonl: cannot be .*Input/output"):
            append()
    assert journal.batches == {}


def test_a_journal_in_memory_is_the_one_on_the_disk(tmp_path: Path) -> None:
    """Results by number, each trial's latest; what failed before it is added up."""
    path = tmp_path / "j.jsonl"
    journal = Journal.create(path, {"journal": 2})
    failed = BenchmarkResult("p", "m", outcome="error", usage={"input": 3}, cost_usd=0.5)
    good = BenchmarkResult("p", "m", trial_id="환각", raw_response="\u2028\r\n", cost_usd=0.25)
    journal.add_batch("b", {"four": 4, "five": 5})
    journal.add([(2, replace(good, trial_id="c")), (0, failed), (4, good)])
    attempts = journal.earlier_attempts(0)
    assert attempts == {"n": 1, "cost_usd": 0.5, "usage": {**dict.fromkeys(USAGE_KEYS), "input": 3}}
    journal.add([(0, replace(failed, earlier_attempts=attempts))])
    for held in (journal, Journal.load(path)):
        assert held.finished == {2: "c", 4: "환각"}
        results = held.results()
        assert [result.trial_id for result in results] == ["", "c", "환각"]
        assert (len(results), results[-1]) == (3, good)
        twice = {"n": 2, "cost_usd": 1.0, "usage": {**dict.fromkeys(USAGE_KEYS), "input": 6}}
        assert held.earlier_attempts(0) == twice and held.earlier_attempts(2) is None
        assert (held.batches, held.open_batches()) == ({5: ("b", "five")}, {"b": {5: "five"}})
        assert held.cost_usd == 0.5 + 0.5 + 0.25 + 0.25
    journal.add([(0, good)])
    assert journal.finished[0] == "환각" and journal.results()[0] == good


# -- use -------------------------------------------------------------------------------------------


def test_resume_takes_its_settings_from_the_journal(two: Path, command: Command) -> None:
    for option in (
        *(("--size", "7"), ("--seed", "1"), ("--runs", "2"), ("--model", "openai/x")),
        *(("--seeds", "1"), ("--base-url", "http://h/v1"), ("--algorithm", "prim")),
        *(("--group", "C"), ("--lang", "en"), ("--mirage", "off"), ("--no-confidence",)),
        *(("--max-tokens", "9"), ("--temperature", "1"), ("--reasoning-effort", "low")),
        *(("--retries", "1"), ("--timeout", "9"), ("--interactive",)),
        *(("--show",), ("--dry-run",), ("--check",), ("--list-models",)),
    ):
        done = command("--resume", two.stem, *option)
        assert done.code == 2
        one_line(done, "--resume", option[0])


def test_what_bounds_a_run_may_be_given_anew(two: Path, command: Command, server: Server) -> None:
    """Concurrency, time and batches shape no number, so that no journal needs to hold them."""
    lines = two.read_bytes().splitlines(keepends=True)
    two.write_bytes(b"".join(lines[:-1]))
    before = len(server.requests)
    bounds = ("--concurrency", "2", "--batch", "--batch-wait", "1", "--max-time", "5")
    done = resumed(command, server, two.stem, *bounds, "--csv", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (len(server.requests), len(done.results)) == (before + 1, 2)
    # Of a server of one's own nobody knows the price: that is said, and it is played all the same.
    two.write_bytes(b"".join(lines[:-1]))
    done = resumed(command, server, "--max-cost", "0.001")
    assert (done.code, len(done.results)) == (0, 2)
    assert "compatible/x" in done.err and "--max-cost" in done.err
    # No time is left: nobody is called, and what there is stays.
    two.write_bytes(b"".join(lines[:-1]))
    done = resumed(command, server, "--max-time", "0")
    assert (done.code, len(done.results), len(server.requests)) == (1, 1, before + 2)
    (line,) = unstamped(done.err)
    assert line.startswith("--max-time is reached: saving the trials that were finished: 1;")


def test_there_must_be_a_journal(command: Command) -> None:
    done = command("--resume")
    assert done.code == 2
    one_line(done, "no journal")
    missing = command("--resume", "20990101_000000")
    assert missing.code == 2
    one_line(missing, "20990101_000000.jsonl")


def test_a_journal_by_its_path(two: Path, command: Command, server: Server) -> None:
    elsewhere = two.rename(command.folder / "mine.jsonl")
    done = resumed(command, server, str(elsewhere))
    assert (done.code, len(done.results)) == (0, 2)


def test_two_resumes_at_once(two: Path, command: Command, server: Server) -> None:
    lines = two.read_bytes().splitlines(keepends=True)
    two.write_bytes(b"".join(lines[:-1]))
    server.script(Say(silence=PATIENCE_S))
    before = len(server.requests)
    env = command.env(COMPATIBLE_BASE_URL=server.base_url("compatible"))
    first = command.start("--resume", env=env)
    until(lambda: len(server.requests) == before + 1)
    second = command("--resume")
    assert second.code == 75
    one_line(second, "another run")
    first.kill()
    first.wait(timeout=PATIENCE_S)
    assert resumed(command, server).code == 0  # the lock of a killed run is free


def test_a_stub_leaves_nothing(command: Command) -> None:
    copy = command.copy("def _call_mine(self, prompt, max_tokens, system):\n    pass")
    done = command("--model", "mine/x", "--seed", "1", script=copy)
    assert done.code == 70
    assert [p.name for p in copy.parent.glob("results/*") if p.name != ".lock"] == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_checkout_needs_a_results_folder(command: Command) -> None:
    copy = command.copy()
    copy.parent.chmod(0o500)
    done = command("--model", "reference/oracle", "--seed", "1", script=copy)
    assert done.code == 2
    one_line(done, "--results-dir")


def test_a_damaged_header_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"[1]\n")
    with pytest.raises(UsageError, match="line 1"):
        Journal.load(path)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1])
def test_retries_bound_the_calls_of_a_trial(retries: int, command: Command, server: Server) -> None:
    server.script(*[Say(status=500)] * 5)
    done = command.run(*model(server), "--seed", "1", "--retries", str(retries))
    assert (done.code, len(server.requests)) == (1, retries + 1)
    assert done.document["config"]["retries"] == retries


def test_the_timeout_bounds_a_call(command: Command, server: Server) -> None:
    server.script(Say(silence=PATIENCE_S))
    done = command.run(*model(server), "--seed", "1", "--retries", "0", "--timeout", "0.5")
    assert (done.code, len(server.requests)) == (1, 1)
    assert "within 0.5 seconds" in done.results[0]["error"]


def test_a_provider_that_fails_for_good_is_given_up(command: Command, server: Server) -> None:
    server.script(*[Say(status=401)] * 5)
    args = (*model(server), "--model", "reference/oracle", "--seeds", "1-9", *ONE_BY_ONE)
    done = command.run(*args)
    assert (done.code, len(server.requests)) == (1, 5)
    (line,) = unstamped(done.err)
    assert line.startswith("compatible/x: given up ") and "--resume" in line
    outcomes = Counter((trial["model"], trial["outcome"]) for trial in done.results)
    assert outcomes == {("x", "error"): 5, ("oracle", "ok"): 9}
    again = resumed(command, server)  # the server has mended meanwhile
    assert (again.code, len(server.requests)) == (0, 5 + 9)
    assert Counter(trial["model"] for trial in again.results) == {"x": 9, "oracle": 9}


def test_side_by_side_what_is_under_way_still_counts(command: Command, server: Server) -> None:
    """Five failures in a row start no more calls; those that are under way then are not lost."""
    server.answer = lambda request: Say(status=401)
    done = command.run(*model(server), "--seeds", "1-40")
    calls = len(server.requests)
    assert done.code == 1 and MOST_FAILURES <= calls < MOST_FAILURES + CONCURRENCY
    assert [trial["outcome"] for trial in done.results] == ["error"] * calls
    (line,) = unstamped(done.err)
    assert line.startswith("compatible/x: given up ") and "--resume" in line
    server.answer = solution
    again = resumed(command, server)
    assert (again.code, len(server.requests)) == (0, calls + 40)
    assert [trial["outcome"] for trial in again.results] == ["ok"] * 40
    assert [trial["maze_seed"] for trial in again.results] == list(range(1, 41))


def test_failures_that_may_pass_give_nobody_up(command: Command, server: Server) -> None:
    server.script(*[Say(status=401)] * 4, Say(), *[Say(status=401)] * 4, *[Say(status=500)] * 6)
    done = command.run(*model(server), "--seeds", "1-15", "--retries", "0", *ONE_BY_ONE)
    assert (done.code, len(server.requests)) == (1, 15)
    assert "given up" not in done.err


@pytest.mark.parametrize("name", ["x.jsonl", ".lock"])
def test_no_result_goes_where_a_journal_or_the_lock_lies(command: Command, name: str) -> None:
    output = command.folder / "results" / name
    done = command("--output", str(output), "--model", "reference/oracle", "--seed", "1")
    assert done.code == 2
    one_line(done, "--output", name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("runs", 0),
        ("runs", -1),
        ("models", []),
        ("config", {"lang": "xx"}),
        ("config", {"mirage": 5}),
    ],
    ids=str,
)
def test_a_first_line_that_is_odd(command: Command, server: Server, field: str, value: Any) -> None:
    assert command.run(*model(server), "--seed", "1").code == 0
    path = journal_of(command)
    header = json.loads(path.read_bytes().split(b"\n")[0])
    header[field] = {**header[field], **value} if isinstance(value, dict) else value
    path.write_bytes(json.dumps(header).encode() + b"\n")
    done = resumed(command, server)
    assert done.code == 2
    one_line(done, str(path), "line 1")


def test_resuming_nothing_makes_nothing(command: Command) -> None:
    gone = command.folder / "gone"
    for args in (("--resume", str(gone / "x.jsonl")), ("--resume", "--results-dir", str(gone))):
        done = command(*args)
        assert done.code == 2
        one_line(done, str(gone))
    assert not gone.exists()


def test_the_latest_journal_is_that_of_the_last_run(tmp_path: Path) -> None:
    for name in ("20260101_000000", "20260101_000000_2", "20260101_000000_10", "20251231_235959_3"):
        (tmp_path / f"{name}.jsonl").touch()
    assert hallumaze._latest_journal(tmp_path).stem == "20260101_000000_10"


def test_a_program_that_has_changed_is_told_of(command: Command, server: Server) -> None:
    """And the environment of the result is that of the run's beginning."""
    assert command.run(*model(server), "--seed", "1").code == 0
    path = journal_of(command)
    first, rest = path.read_bytes().split(b"\n", 1)
    header = json.loads(first)
    header["environment"]["hallumaze_sha256"] = "0" * 64
    path.write_bytes(json.dumps(header).encode() + b"\n" + rest)
    done = resumed(command, server)
    assert done.code == 0 and "the program has changed" in done.err
    assert done.document["environment"]["hallumaze_sha256"] == "0" * 64
    assert len(server.requests) == 1  # the prompt is the same
