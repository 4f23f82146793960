"""Nothing that was finished is lost or paid for twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, Command, one_line, until
from servers import Received, Say, Server

import hallumaze
from hallumaze import BenchmarkResult, Journal, UsageError

SEEDS = "0-39"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.answer = solution
        yield running


def solution(request: Received) -> str:
    return hallumaze.REFERENCE_AGENTS["explorer"](hallumaze._read_task(request.turns[0][1]))


def model(server: Server) -> tuple[str, ...]:
    url = server.base_url("compatible")
    return "--model", "compatible/x", "--base-url", url, "--size", "5"


def journal_of(command: Command) -> Path:
    (path,) = (command.folder / "results").glob("*.jsonl")
    return path


def numbers(document: Any) -> Any:
    """A result file without what depends on the hour."""
    timed = ("timestamp", "latency_s", "request_id")
    trials = [{k: v for k, v in t.items() if k not in timed} for t in document["results"]]
    rows = [{k: v for k, v in row.items() if k != "latency_s"} for row in document["aggregate"]]
    rest = {k: v for k, v in document.items() if k not in ("timestamp", "results", "aggregate")}
    return trials, rows, rest


def resumed(command: Command, server: Server, *args: str, **env: str) -> Any:
    url = server.base_url("compatible")
    return command.run("--resume", *args, COMPATIBLE_BASE_URL=url, **env)


# -- the whole of it -------------------------------------------------------------------------------


def test_killed_at_any_time_and_resumed_the_result_is_the_same(
    command: Command, server: Server, tmp_path: Path
) -> None:
    """SIGKILL at up to 50 random moments of one run of 40 trials."""
    undisturbed = Command(tmp_path / "undisturbed")
    undisturbed.folder.mkdir()
    assert undisturbed.run(*model(server), "--seeds", SEEDS).code == 0
    server.requests.clear()

    rng = random.Random(7)

    def hesitating(request: Received) -> str:
        time.sleep(0.02)  # so that about every other kill comes before the answer
        return solution(request)

    server.answer = hesitating
    journaled: set[str] = set()
    kills = 0
    while True:
        first = not list((command.folder / "results").glob("*.jsonl"))
        args = (*model(server), "--seeds", SEEDS) if first else ("--resume",)
        process = command.start(*args, "--output", str(command.output))
        before = len(server.requests)
        wanted = before + 1
        until(lambda w=wanted, p=process: len(server.requests) >= w or p.poll() is not None)
        time.sleep(rng.random() / 20 if kills < 50 else 1)
        process.kill()
        process.wait(timeout=PATIENCE_S)
        if process.returncode == 0:
            break
        kills += 1
        calls = Counter(request.turns[0][1] for request in server.requests[before:])
        assert not journaled & set(calls), "a finished trial was called again"
        paths = list((command.folder / "results").glob("*.jsonl"))
        lines = paths[0].read_bytes().split(b"\n")[1:-1] if paths else []
        finished = {json.loads(line)["result"]["maze_seed"] for line in lines}
        journaled = {prompt(seed) for seed in finished}
    assert kills >= 40  # 50, unless the machine was quick
    document = json.loads(command.output.read_text("utf-8"))
    assert numbers(document) == numbers(undisturbed_document(undisturbed))
    counts = Counter(request.turns[0][1] for request in server.requests)
    assert len(counts) == 40


def prompt(seed: int) -> str:
    maze = hallumaze.MazeEngine(5, seed)
    return hallumaze.PromptBuilder(maze, hallumaze.MazeConfig(size=5)).build().user


def undisturbed_document(command: Command) -> Any:
    return json.loads(command.output.read_text("utf-8"))


def test_a_trial_that_ended_as_an_error_is_played_again(command: Command, server: Server) -> None:
    server.script(Say(), Say(status=401), Say())
    done = command.run(*model(server), "--seeds", "1-3")
    assert (done.code, len(server.requests)) == (1, 3)
    assert [trial["outcome"] for trial in done.results] == ["ok", "error", "ok"]
    again = resumed(command, server)
    assert (again.code, len(server.requests)) == (0, 4)
    assert [trial["outcome"] for trial in again.results] == ["ok"] * 3
    assert [trial["maze_seed"] for trial in again.results] == [1, 2, 3]
    # Nothing is left to do: nobody is called.
    assert (resumed(command, server).code, len(server.requests)) == (0, 4)


def test_an_interrupted_run_says_how_to_go_on(command: Command, server: Server) -> None:
    server.script(Say(), Say(silence=PATIENCE_S))
    process = command.start(*model(server), "--seeds", "1-3", "--output", str(command.output))
    until(lambda: len(server.requests) == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    run = journal_of(command).stem
    assert process.returncode == 130 and f"--resume {run}" in err
    done = command.run("--resume", run)
    assert (done.code, len(done.results)) == (0, 3)


def test_the_journal_stands_before_the_line_of_the_trial(command: Command, server: Server) -> None:
    held: list[int] = []

    def answer(request: Received) -> str:
        path = journal_of(command)
        held.append(len(path.read_bytes().splitlines()) - 1)
        return solution(request)

    server.answer = answer
    command.run(*model(server), "--seeds", "1-3")
    assert held == [0, 1, 2]


def test_no_key_is_in_the_journal(command: Command, server: Server) -> None:
    done = command.run(*model(server), "--seed", "1", COMPATIBLE_API_KEY="sk-FAKE-compatible-1")
    assert done.code == 0  # every file of the results folder was looked through
    header = json.loads(journal_of(command).read_text("utf-8").splitlines()[0])
    assert header["models"][0]["model"] == "x" and "api_key" not in header["models"][0]
    assert header["config"]["size"] == 5


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
        (1, b'{"journal": 99, "schema_version": 2}'),
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


def test_a_disk_that_is_full_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal.create(path, {"journal": 1})
    journal.add("a", BenchmarkResult("p", "m"))
    whole = path.read_bytes()

    class Full:
        """A file whose disk has room for one byte more."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: bytes) -> None:
            self.file.write(data[:1])
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    journal._file = Full(journal._file)
    with pytest.raises(hallumaze.HalluMazeError, match="No space left"):
        journal.add("b", BenchmarkResult("p", "m"))
    assert path.read_bytes() == whole
    assert list(Journal.load(path).finished) == ["a"]


# -- use -------------------------------------------------------------------------------------------


def test_resume_takes_its_settings_from_the_journal(two: Path, command: Command) -> None:
    for option in (("--size", "7"), ("--seed", "1"), ("--runs", "2"), ("--model", "openai/x")):
        done = command("--resume", two.stem, *option)
        assert done.code == 2
        one_line(done, "--resume", option[0])


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
    args = (*model(server), "--model", "reference/oracle", "--seeds", "1-9")
    done = command.run(*args)
    assert (done.code, len(server.requests)) == (1, 5)
    assert "given up" in done.err and "--resume" in done.err
    outcomes = Counter((trial["model"], trial["outcome"]) for trial in done.results)
    assert outcomes == {("x", "error"): 5, ("oracle", "ok"): 9}
    again = resumed(command, server)  # the server has mended meanwhile
    assert (again.code, len(server.requests)) == (0, 5 + 9)
    assert Counter(trial["model"] for trial in again.results) == {"x": 9, "oracle": 9}


def test_failures_that_may_pass_give_nobody_up(command: Command, server: Server) -> None:
    server.script(*[Say(status=401)] * 4, Say(), *[Say(status=401)] * 4, *[Say(status=500)] * 6)
    done = command.run(*model(server), "--seeds", "1-15", "--retries", "0")
    assert (done.code, len(server.requests)) == (1, 15)
    assert "given up" not in done.err
