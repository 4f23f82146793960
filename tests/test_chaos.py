"""The real command against a mock that nobody here wrote, with faults switched on.

llmock speaks the wire formats of openai, anthropic and google, its errors among them. What it does
not do to a whole answer (cut it, garble it, hold it back) is done by a proxy in front of it, trial
by trial, so that every number below is worked out by hand, whatever the order of the calls.
"""

from __future__ import annotations

import json
import random
import re
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from typing import Any, NamedTuple

import pytest
from commands import PATIENCE_S, Command, Done, until
from llmock.scenarios import Fail, Match, Reply
from llmock.simulation import MockResponseSettings
from llmock.testing import LLMockServer
from llmock.verdict import judge
from servers import Received

from hallumaze import LLMProvider, MazeConfig, MazeEngine, PromptBuilder

KEYS = {
    "openai": "sk-FAKE-openai-2222",
    "anthropic": "sk-ant-FAKE-anthropic-1111",
    "google": "AIzaFAKE-google-3333",
}
PATHS = {"openai": "/v1", "anthropic": "/anthropic", "google": "/gemini"}
THREE = ("openai/gpt-4o", "anthropic/claude-sonnet-4-6", "google/gemini-2.5-pro")
FOUR = (*THREE, "compatible/gpt-4o-mini")
SMALL = ("--size", "5", "--lang", "en")
RETRY_AFTER_S = 0.05


# -- the mock, and the weather in front of it ------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[LLMockServer]:
    settings = MockResponseSettings(response_style="static")
    with LLMockServer(responses=settings) as server:
        yield server


@pytest.fixture
def mock(running: LLMockServer) -> LLMockServer:
    """The mock, with nothing queued and nothing recorded."""
    running.state.reset()
    return running


@pytest.fixture
def chaos(mock: LLMockServer) -> Iterator[Chaos]:
    with Chaos(mock) as proxy:
        yield proxy


class Trial(NamedTuple):
    """What is told apart by what is sent."""

    model: str
    prompt: str


class Call(NamedTuple):
    """One request, what was done to it ("": nothing), and what the mock had said."""

    trial: Trial
    fault: str
    said: str


class Chaos:
    """A proxy in front of the mock: `faults[trial]` are what the calls of a trial meet, in turn.

    429, 500, 529: the mock is told to fail so. cut: closed without a byte. half: closed in the
    middle of the body. garbled: half the body, as if it were all. slow: held back for ever.
    """

    def __init__(self, mock: LLMockServer) -> None:
        self.mock = mock
        self.faults: dict[Trial, deque[str]] = {}
        self.calls: list[Call] = []
        self.closing = threading.Event()
        self._locks: dict[str, threading.Lock] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Chaos:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def ask(self, request: Received) -> tuple[str, int, dict[str, str], bytes]:
        """(fault, status, headers, body) of what the mock says to this request.

        One of a model at a time, so that what is queued for a request is what this request gets.
        """
        trial = Trial(model_of(request), request.turns[0][1])
        only = Match(model=trial.model)
        planned: Any = Reply(solution(trial.prompt), match=only)
        with self._locks.setdefault(trial.model, threading.Lock()):
            faults = self.faults.get(trial)
            fault = faults.popleft() if faults else ""
            if fault.isdigit():
                planned = Fail(int(fault), retry_after=RETRY_AFTER_S, match=only)
            self.mock.state.scenarios.add(planned)
            status, headers, data = self._forward(request)
            said = "" if fault.isdigit() else text_of(request.wire, json.loads(data))
            self.calls.append(Call(trial, fault, said))
        return fault, status, headers, data

    def _forward(self, request: Received) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.mock.port, timeout=PATIENCE_S)
        try:
            sent = json.dumps(request.body)
            connection.request("POST", request.path, sent, {"content-type": "application/json"})
            response = connection.getresponse()
            kept = ("content-type", "retry-after", "retry-after-ms")
            headers = {name: value for name in kept if (value := response.getheader(name))}
            return response.status, headers, response.read()
        finally:
            connection.close()


def _handler(chaos: Chaos) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            fault, *answer = chaos.ask(Received("POST", self.path, headers, body))
            if fault == "slow":
                chaos.closing.wait(PATIENCE_S)
            self.close_connection = fault in ("cut", "half", "slow")
            if fault not in ("cut", "slow"):
                self._send(fault, *answer)

        def _send(self, fault: str, status: int, headers: dict[str, str], data: bytes) -> None:
            shown = data[: len(data) // 2] if fault in ("half", "garbled") else data
            told = len(data) if fault == "half" else len(shown)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(told)}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(shown)

        def handle(self) -> None:
            with suppress(OSError):  # the client was killed: what some of these tests are about
                super().handle()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def model_of(request: Received) -> str:
    """The model that a request is for; google has it in the path."""
    found = re.search(r"/models/([^/:]+):generateContent$", request.path)
    return found[1] if found else request.body["model"]


def text_of(wire: str, body: Any) -> str:
    """What a whole answer says, by the wire formats' own documents."""
    if wire == "anthropic":
        return "".join(block["text"] for block in body["content"])
    if wire == "google":
        return "".join(part["text"] for part in body["candidates"][0]["content"]["parts"])
    return body["choices"][0]["message"]["content"]


@cache
def solution(prompt: str) -> str:
    """What the oracle answers, which scores 0.947 on every maze."""
    return LLMProvider("reference", "oracle").complete("", [turn(prompt)], 1).text


def turn(prompt: str) -> Any:
    return {"role": "user", "content": prompt}


@cache
def prompt_of(seed: int) -> str:
    return PromptBuilder(MazeEngine(5, seed), MazeConfig(size=5, lang="en")).build().user


# -- the command, and what it left -----------------------------------------------------------------


def environment(url: str) -> dict[str, str]:
    """Fake keys, and base URLs at this address."""
    env = {f"{name.upper()}_API_KEY": key for name, key in KEYS.items()}
    env |= {f"{name.upper()}_BASE_URL": url + path for name, path in PATHS.items()}
    return {**env, "COMPATIBLE_BASE_URL": f"{url}/v1"}


def models(names: Sequence[str]) -> tuple[str, ...]:
    """The options that name these models. An option for concurrency would belong here."""
    return tuple(word for name in names for word in ("--model", name))


def key_of(result: dict[str, Any]) -> tuple[str, int, int]:
    return f"{result['provider']}/{result['model']}", result["maze_seed"], result["run"]


def trial_of(result: dict[str, Any]) -> Trial:
    return Trial(result["model"], prompt_of(result["maze_seed"]))


def journal_of(command: Command) -> list[dict[str, Any]]:
    """The trials in the only journal, one a line behind its first; each line is whole."""
    (path,) = (command.folder / "results").glob("*.jsonl")
    return [json.loads(line)["result"] for line in path.read_text("utf-8").splitlines()[1:]]


def is_scored(result: dict[str, Any]) -> bool:
    """Whether a trial was scored; else it is an error record: a line, and no number at all."""
    numbers = [result[name] for name in ("sr", "mei", "brs", "hallumaze_score")]
    if result["outcome"] != "error":
        assert result["error"] is None and None not in numbers
        return True
    assert (numbers, result["raw_response"]) == ([None] * 4, None)
    line = result["error"]
    assert line.startswith(f"{result['provider']}/{result['model']}: ")
    assert line.isprintable() and len(line) < 500
    return False


def look_at(done: Done, errors: int) -> None:
    """So many trials failed, the output says why, and nothing else went wrong."""
    assert (done.code, done.err) == (1 if errors else 0, "")
    assert "Traceback" not in done.out
    failed = [result["error"] for result in done.results if not is_scored(result)]
    assert len(failed) == errors
    assert not [error for error in failed if error.partition(": ")[2] not in done.out]


# -- two hundred trials ----------------------------------------------------------------------------

# What 15 of a model's 50 trials meet. With --retries 1 a session calls a trial twice at most.
MENDED = [["429"], ["500"], ["529"], ["cut"], ["half"], ["slow"]]
FAILED = [
    ["429", "429"],
    ["500", "529"],
    ["529", "500"],
    ["cut", "half"],
    ["half", "cut"],
    ["500", "slow"],
    ["garbled"],  # the server's own fault for good: not asked again
    ["429", "garbled"],
]
FAILED_TWICE = [["cut", "429", "half", "500"]]
WORDS = {
    "429": "the rate limit is reached",
    "500": "the server failed",
    "529": "the server is overloaded",
    "cut": "the connection was cut",
    "half": "the connection was cut",
    "slow": "no complete answer within 2 second",
    "garbled": "no JSON",
}


def deal(chaos: Chaos, names: Sequence[str], seeds: Sequence[int]) -> None:
    """Faults for 30 % of 50 trials of each model, at random but the same each time."""
    hands = MENDED + FAILED + FAILED_TWICE
    for name in names:
        met = random.Random(name).sample(seeds, len(hands))
        for seed, hand in zip(met, hands, strict=True):
            trial = Trial(name.partition("/")[2], prompt_of(seed))
            chaos.faults[trial] = deque(hand)


def test_two_hundred_trials_none_twice_none_lost(command: Command, chaos: Chaos) -> None:
    """Of each model's 50: 35 meet nothing, 6 are mended, 8 fail once, 1 fails twice.

    Calls of the first session: 35 + 6·2 + (6·2 + 1 + 2) + 2 = 64; of the second: 8 + 2 = 10; of
    the third: 1.
    """
    seeds = range(1, 51)
    deal(chaos, FOUR, seeds)
    env = environment(chaos.url)
    limits = ("--timeout", "2", "--retries", "1")
    done = command.run(*models(FOUR), *SMALL, "--seeds", "1-50", *limits, **env)

    seen = 0
    scored: set[Trial] = set()
    lines: list[dict[str, Any]] = []
    for errors, calls in ((4 * 9, 4 * 64), (4 * 1, 4 * 10), (0, 4 * 1)):
        if lines:
            done = command.run("--resume", **env)
        look_at(done, errors)
        assert [key_of(result) for result in done.results] == list(product(FOUR, seeds, [1]))

        heard, seen = chaos.calls[seen:], len(chaos.calls)
        assert len(heard) == calls
        assert not scored & {call.trial for call in heard}, "a finished trial was called again"
        last = {call.trial: call for call in heard}
        for result in done.results:
            trial = trial_of(result)
            if trial in scored:
                continue
            fault = last[trial].fault
            if is_scored(result):
                assert (fault, result["hallumaze_score"]) == ("", 0.947)
                assert result["raw_response"] == last[trial].said == solution(trial.prompt)
            else:
                assert WORDS[fault] in result["error"]
                assert result["error_retryable"] is (fault != "garbled")

        new = journal_of(command)[len(lines) :]
        played = [result for result in done.results if trial_of(result) in last]
        assert sorted(map(str, new)) == sorted(map(str, played))
        lines += new
        scored |= {trial_of(result) for result in done.results if is_scored(result)}

    assert len(scored) == 200 and len(lines) == 200 + 36 + 4
    finished = Counter(key_of(result) for result in lines if is_scored(result))
    assert finished == dict.fromkeys(product(FOUR, seeds, [1]), 1)
    assert not any(chaos.faults.values())  # all that was dealt was met
    # Nothing is left to do: nobody is called.
    assert (command.run("--resume", **env).code, len(chaos.calls)) == (0, seen)


def test_ended_in_the_midst_of_it_and_resumed(command: Command, chaos: Chaos) -> None:
    """36 trials, every third of which fails at its first call, ended twice on the way."""
    seeds = range(1, 13)
    trials = [Trial(name.partition("/")[2], prompt_of(s)) for name, s in product(THREE, seeds)]
    for k, trial in enumerate(trials[::3]):
        chaos.faults[trial] = deque([("cut", "500", "429")[k % 3]])
    env = environment(chaos.url)
    args: tuple[str, ...] = (*models(THREE), *SMALL, "--seeds", "1-12", "--retries", "0")
    args += ("--output", str(command.output))
    for end, after in ((signal.SIGTERM, 5), (signal.SIGKILL, 9)):
        process = command.start(*args, env={**command.env(), **env})
        until(lambda w=after, p=process: len(chaos.calls) >= w or p.poll() is not None)
        process.send_signal(end)
        out, err = process.communicate(timeout=PATIENCE_S)
        # Where many are called at once, one that is told to end may have no more to do.
        assert process.returncode in (130, -9, 0, 1)
        assert "Traceback" not in out + err
        journaled = {trial_of(result) for result in journal_of(command) if is_scored(result)}
        before = len(chaos.calls)
        args = ("--resume", "--output", str(command.output))
    command.run("--resume", **env)  # meets what faults are left
    done = command.run("--resume", **env)
    look_at(done, 0)
    assert [key_of(result) for result in done.results] == list(product(THREE, seeds, [1]))
    called = {call.trial for call in chaos.calls[before:]}
    assert journaled and not journaled & called, "a finished trial was called again"
    assert called | journaled == set(trials)


# -- the mock's own faults, without a proxy --------------------------------------------------------


def test_a_burst_of_429s_passes(command: Command, mock: LLMockServer) -> None:
    """15 trials; each provider refuses three calls: 9 calls more.

    The mock's own verdict says whether each was repeated, and not before the time it had asked for.
    """
    for provider in ("openai", "anthropic", "gemini"):
        only = Match(provider=provider)
        mock.state.scenarios.add(Fail(429, retry_after=0.3, times=3, match=only))
    env = environment(mock.url)
    done = command.run(*models(THREE), *SMALL, "--seeds", "1-5", **env)
    look_at(done, 0)
    assert [key_of(result) for result in done.results] == list(product(THREE, range(1, 6), [1]))
    for result in done.results:
        assert result["raw_response"] == f"Mock response from {result['model']}."
    records = mock.state.journal.records(wait=PATIENCE_S)
    assert Counter(record.status for record in records) == {200: 15, 429: 9}
    verdict = judge(records)
    verdict.assert_ok(strict=True)
    assert (len(verdict.calls), verdict.faults) == (15, 9)


def test_429s_that_do_not_pass(command: Command, mock: LLMockServer) -> None:
    """12 trials of two calls each, all refused; resumed when the limit is lifted, 12 calls."""
    mock.state.scenarios.add(Fail(429, retry_after=RETRY_AFTER_S, times=None))
    env = environment(mock.url)
    args = (*models(THREE), *SMALL, "--seeds", "1-2", "--runs", "2", "--retries", "1")
    done = command.run(*args, **env)
    look_at(done, 12)  # nobody is given up: a limit passes
    wanted = list(product(THREE, (1, 2), (1, 2)))
    assert [key_of(result) for result in done.results] == wanted
    assert all(WORDS["429"] in result["error"] for result in done.results)
    records = mock.state.journal.records(wait=PATIENCE_S)
    assert [record.status for record in records] == [429] * 24
    mock.state.reset()
    done = command.run("--resume", **env)
    look_at(done, 0)
    assert [key_of(result) for result in done.results] == wanted
    assert len(mock.state.journal.records(wait=PATIENCE_S)) == 12
    # Each is in the journal twice: an error, then a score.
    assert Counter(map(key_of, journal_of(command))) == dict.fromkeys(wanted, 2)
