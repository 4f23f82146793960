"""How a run calls: how many at once, for how long, for how much; and what it says of that.

What the server says of tokens is chosen so that the sums are short: 1,000 read and 500 written cost
gpt-4o 0.0025 + 0.005 = 0.0075 USD, at 2.50 and 10 USD per million.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, ROOT, Command, Done, one_line, timeless, until
from servers import Received, Say, Server, answer, error, solution

import hallumaze
from hallumaze import (
    BenchmarkResult,
    Journal,
    LLMProvider,
    MazeConfig,
    MazeEngine,
    Mazes,
    Prompt,
    PromptBuilder,
    Trial,
)

SONNET = "claude-sonnet-4-20250514"
GPT = ("--model", "openai/gpt-4o", "--size", "5")
ANSWERS = ROOT.parent / "shared" / "responses" / "answers.jsonl"


def paid(request: Received, read: int = 1000, written: int = 500) -> Say:
    """An answer in openai's format that says what it used."""
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return Say(answer("openai", solution(request), usage=usage))


def env(server: Server, *providers: str) -> dict[str, str]:
    """Keys and addresses of these providers; of openai's without any."""
    found = {}
    for provider in providers or ("openai",):
        found[f"{provider.upper()}_API_KEY"] = f"sk-running-{provider}-0123"
        found[f"{provider.upper()}_BASE_URL"] = server.base_url(provider)
    return found


def model_of(request: Received) -> str:
    return str(request.body["model"])


def prompt(seed: int) -> Prompt:
    return PromptBuilder(MazeEngine(5, seed), MazeConfig(size=5)).build()


PROMPTS = {prompt(seed).user: seed for seed in range(1, 41)}


def seed_of(request: Received) -> int:
    return PROMPTS[request.turns[0][1]]


def journal_of(command: Command) -> Path:
    (path,) = (command.folder / "results").glob("*.jsonl")
    return path


def journaled(command: Command, model: str) -> list[int]:
    """The seeds of a model's trials in the journal, in the order in which they ended."""
    ended = results_in(journal_of(command).read_bytes())
    return [seed for name, seed in ended if name == model]


@lru_cache(maxsize=8)  # it is asked for until it is longer
def results_in(journal: bytes) -> list[tuple[str, int]]:
    results = [json.loads(line)["result"] for line in journal.split(b"\n")[1:-1]]
    return [(result["model"], result["maze_seed"]) for result in results]


def seeds(done: Done, model: str = "gpt-4o") -> list[int]:
    return [trial["maze_seed"] for trial in done.results if trial["model"] == model]


class InFlight:
    """Counts the requests of each model that are being answered."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, model: str) -> Iterator[int]:
        """While one is being answered; how many of the model came before it."""
        with self._lock:
            before = self.arrived[model]
            self.arrived[model] += 1
            self.now[model] += 1
            self.most[model] = max(self.most[model], self.now[model])
        try:
            yield before
        finally:
            with self._lock:
                self.now[model] -= 1


def table(out: str, title: str) -> dict[str, list[str]]:
    """The rows of a table under their first cells, its titles under ""."""
    _, _, rest = out.partition(f"{title}\n")
    indented = itertools.takewhile(lambda line: line.startswith("  "), rest.splitlines())
    head, *rows = (re.split(r"\s{2,}", line.strip()) for line in indented)
    return {"": head, **{row[0]: row[1:] for row in rows if len(row) == len(head)}}


# -- side by side ----------------------------------------------------------------------------------


def test_who_answers_later_requests_first_changes_nothing(
    command: Command, server: Server, tmp_path: Path
) -> None:
    """Of 16 trials 8 are in flight at once, and of every 8 the last is over first."""
    given = ("--model", "openai/gpt-4o", "--model", f"anthropic/{SONNET}", "--size", "5")
    args = (*given, "--seeds", "1-16")
    keys = env(server, "openai", "anthropic")
    count = InFlight()

    def backwards(request: Received) -> str | Say:
        if "temperature" in request.body:
            return error(request.wire, 400, "temperature is not supported")
        model, k = model_of(request), seed_of(request) - 1
        with count.one(model):
            # All in flight at once, of both models, before the first is answered.
            until(lambda: count.arrived.total() >= 16)
            before = 8 * (k // 8) + 7 - k % 8
            until(lambda: len(journaled(command, model)) >= before)
            return solution(request)

    server.answer = backwards
    done = command.run(*args, **keys)
    assert done.code == 0
    assert count.most == {"gpt-4o": 8, SONNET: 8}
    for model in ("gpt-4o", SONNET):
        assert journaled(command, model) == [*range(8, 0, -1), *range(16, 8, -1)]
        assert seeds(done, model) == list(range(1, 17))
    assert [trial["model"] for trial in done.results] == ["gpt-4o"] * 16 + [SONNET] * 16

    alone = Command(tmp_path / "alone")
    alone.folder.mkdir()
    single = InFlight()

    def counted(request: Received) -> str | Say:
        if "temperature" in request.body:
            return error(request.wire, 400, "temperature is not supported")
        with single.one(model_of(request)):
            return solution(request)

    server.answer = counted
    one = alone.run(*args, "--concurrency", "1", **keys)
    assert one.code == 0
    assert single.most == {"gpt-4o": 1, SONNET: 1}
    assert timeless(one.document) == timeless(done.document)
    assert done.output.read_text("utf-8") == hallumaze.json_text(done.document)  # in one piece


def test_each_model_has_its_own_limit_and_the_option_wins(command: Command, server: Server) -> None:
    limits = {"two": 2, "five": 5, "eight": None}  # 8 is the default
    url, key = server.base_url("openai"), "sk-running-openai-0123"
    entry = {"provider": "openai", "api_key": key, "base_url": url}
    entries = [
        {**entry, "model": model, **({"concurrency": limit} if limit else {})}
        for model, limit in limits.items()
    ]
    config = command.folder / "c.json"
    config.write_text(json.dumps({"providers": entries}))
    config.chmod(0o600)

    def most(wanted: dict[str, int], *args: str) -> Counter[str]:
        count = InFlight()

        def crowded(request: Received) -> str:
            model = model_of(request)
            with count.one(model) as before:
                if before < wanted[model]:
                    until(lambda: all(count.most[m] >= n for m, n in wanted.items()))
                    time.sleep(0.3)  # so that one too many would come
                return solution(request)

        server.answer = crowded
        given = ("--config", str(config), "--size", "5", "--seeds", "1-20")
        done = command.run(*given, *args, OPENAI_API_KEY=key)  # so that it is looked for
        assert done.code == 0
        assert count.arrived == {"two": 20, "five": 20, "eight": 20}
        stored = [model["concurrency"] for model in done.document["config"]["models"]]
        assert stored == ([None] * 3 if args else [2, 5, None])
        return count.most

    assert most({"two": 2, "five": 5, "eight": 8}) == {"two": 2, "five": 5, "eight": 8}
    assert most({"two": 3, "five": 3, "eight": 3}, "--concurrency", "3") == dict.fromkeys(limits, 3)


@pytest.mark.parametrize("value", ["0", "101", "-1", "2.5", "x"])
def test_a_concurrency_that_is_none(command: Command, server: Server, value: str) -> None:
    done = command.run(*GPT, "--concurrency", value, **env(server))
    assert done.code == 2
    one_line(done, "--concurrency", "1 to 100")


# -- too fast for a server -------------------------------------------------------------------------


def make_lane(most: int) -> hallumaze._Lane:
    provider = LLMProvider("compatible", "m", base_url="http://127.0.0.1:9/v1")
    trial = Trial(0, "id", provider, MazeEngine(5, 1), prompt(1))
    return hallumaze._Lane(provider, itertools.repeat(trial), most)


def start(lane: hallumaze._Lane) -> int:
    """Start all that may start; how many that were."""
    count = 0
    while lane.peek():
        lane.start()
        count += 1
    return count


def end(lane: hallumaze._Lane, times: int = 1) -> None:
    trial = Trial(0, "id", lane.provider, MazeEngine(5, 1), prompt(1))
    for _ in range(times):
        lane.ended(trial, BenchmarkResult("compatible", "m"))


def test_a_limit_halves_and_grows_back_by_one_a_round() -> None:
    """From 4: 4.25, 4.49, 4.71, 4.92, 5.12 …, each time one part of what it is then."""
    lane, other = make_lane(8), make_lane(8)
    assert (start(lane), start(other)) == (8, 8)
    lane.provider.rate_limits += 5
    assert start(lane) == 0
    lane.provider.rate_limits += 3  # of calls that were under way already: not halved again
    started = []
    for _ in range(24):
        end(lane)
        started.append((start(lane), lane.running))
    assert started[:5] == [(0, 7), (0, 6), (0, 5), (0, 4), (2, 5)]
    # It passes 6 with the 10th end, 7 with the 17th (4² + 2·17 = 50), 8 with the 24th.
    assert [running for _, running in started[5:]] == [5] * 4 + [6] * 7 + [7] * 7 + [8]
    end(lane, 8)
    assert start(lane) == 8  # and never more
    end(other)
    assert (start(other), other.running) == (1, 8)


def test_a_second_burst_halves_again() -> None:
    lane = make_lane(8)
    start(lane)
    lane.provider.rate_limits += 8
    end(lane, 8)  # the limit is 5.69 now, and all that were warned are over
    assert start(lane) == 5
    lane.provider.rate_limits += 1
    end(lane)  # 2.84 + 1 / 2.84 = 3.20; 4 are under way
    assert start(lane) == 0
    end(lane)  # 3.51, and 3
    assert start(lane) == 0
    end(lane)  # 3.79, and 2
    assert (start(lane), lane.running) == (1, 3)


def test_one_call_at_a_time_is_always_allowed() -> None:
    lane = make_lane(2)
    assert start(lane) == 2
    for _ in range(5):
        lane.provider.rate_limits += 1
        assert start(lane) == 0
        end(lane, lane.running)
        lane.provider.rate_limits += 1
        assert start(lane) >= 1
    single = make_lane(1)
    single.provider.rate_limits += 1
    assert start(single) == 1


def test_a_server_that_answers_429_is_slowed_and_no_other(command: Command, server: Server) -> None:
    """Of openai's 8 calls all meet a 429 and come again; then 4 are under way, 5, … and 8 at last.

    One answer at a time, so that at every step it is known how many there must be.
    """
    count = InFlight()
    seen: list[tuple[int, int]] = []  # of openai: ended, in flight
    halved = threading.Event()

    def allowed(ended: int) -> int:
        """As above: 8 are under way when the limit is 4, which passes 5 with the 5th end."""
        steps = (24, 8), (17, 7), (10, 6), (5, 5)
        limit = next((limit for least, limit in steps if ended >= least), 8 - ended)
        return min(limit, 40 - ended)

    def slowed(request: Received) -> Say:
        with count.one("gpt-4o") as before:
            if before < 8:
                until(lambda: count.arrived["gpt-4o"] >= 8)
                return error("openai", 429, "slow down", headers={"retry-after-ms": "10"})
            ended = before - 8  # the next to be answered
            until(lambda: len(journaled(command, "gpt-4o")) == ended)
            until(lambda: count.now["gpt-4o"] >= allowed(ended))
            if ended == 4:
                halved.set()
                # Each of these is started when gpt-4o could have been given one more.
                until(lambda: count.arrived["deepseek-chat"] == 40)
            seen.append((ended, count.now["gpt-4o"]))
            return paid(request)

    def other(request: Received) -> Say:
        with count.one("deepseek-chat") as before:
            until(lambda: count.arrived["deepseek-chat"] >= 8)
            until(halved.is_set)
            if 8 <= before < 16:
                until(lambda: count.arrived["deepseek-chat"] >= 16)
            return paid(request)

    def both(request: Received) -> Say:
        return slowed(request) if model_of(request) == "gpt-4o" else other(request)

    server.answer = both
    args = (*GPT, "--model", "deepseek/deepseek-chat", "--seeds", "1-40")
    done = command.run(*args, **env(server, "openai", "deepseek"))
    assert done.code == 0
    assert Counter(trial["outcome"] for trial in done.results) == {"ok": 80}
    assert seen == [(ended, allowed(ended)) for ended in range(40)]
    assert [running for _, running in seen[:6]] == [8, 7, 6, 5, 4, 5]
    assert count.most == {"gpt-4o": 8, "deepseek-chat": 8}


# -- Ctrl-C ----------------------------------------------------------------------------------------


def test_ctrl_c_waits_a_while_for_the_calls_in_flight(command: Command, server: Server) -> None:
    """Of 4 in flight 3 are answered a second after Ctrl-C, and one never."""
    pressed = threading.Event()

    def answered(request: Received) -> Say:
        if seed_of(request) == 4:
            return Say(silence=PATIENCE_S)
        pressed.wait(PATIENCE_S)
        return Say(paid(request).body, silence=1.0)

    server.answer = answered
    args = (*GPT, "--seeds", "1-20", "--concurrency", "4", "--output", str(command.output))
    process = command.start(*args, env=command.env(**env(server)))
    until(lambda: len(server.requests) == 4)
    process.send_signal(signal.SIGINT)
    pressed.set()
    out, err = process.communicate(timeout=PATIENCE_S - 10)
    done = Done(process.returncode, out, err, command.output)
    command.look_through(done, command.env(**env(server)))
    assert (done.code, len(server.requests)) == (130, 4)
    assert seeds(done) == [1, 2, 3]
    assert all(trial["outcome"] == "ok" and trial["hallumaze_score"] > 0 for trial in done.results)
    assert f"--resume {journal_of(command).stem}" in err

    server.answer = paid
    again = command.run("--resume", **env(server))
    assert (again.code, len(server.requests)) == (0, 4 + 17)
    assert seeds(again) == list(range(1, 21))
    assert again.document["spending"]["cost_usd"] == 0.15  # 20 times 0.0075


def test_a_second_ctrl_c_waits_for_nothing(command: Command, server: Server) -> None:
    """The calls in flight would be answered 3 s after the first, when it alone still waits."""
    pressed = threading.Event()

    def answered(request: Received) -> Say:
        if seed_of(request) <= 2:
            return paid(request)
        pressed.wait(PATIENCE_S)
        return Say(paid(request).body, silence=3.0)

    server.answer = answered
    args = (*GPT, "--seeds", "1-20", "--concurrency", "4", "--output", str(command.output))
    process = command.start(*args, env=command.env(**env(server)))
    until(lambda: len(server.requests) == 6 and len(journaled(command, "gpt-4o")) == 2)
    process.send_signal(signal.SIGINT)
    pressed.set()
    while process.poll() is None:  # two that come together may be heard as one
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, out, err, command.output)
    command.look_through(done, command.env(**env(server)))
    assert (done.code, len(server.requests)) == (130, 6)
    assert seeds(done) == [1, 2]
    assert f"--resume {journal_of(command).stem}" in err


# -- budgets ---------------------------------------------------------------------------------------


def test_a_run_stops_at_its_cost_and_later_sessions_count_it(
    command: Command, server: Server
) -> None:
    """0.0075 USD a trial: 0.02 is passed with the 3rd, 0.025 with the 4th."""
    server.answer = paid
    first = command.run(
        *GPT, "--seeds", "1-12", "--concurrency", "1", "--max-cost", "0.02", **env(server)
    )
    assert (first.code, len(server.requests)) == (1, 3)
    assert first.document["spending"]["cost_usd"] == 0.0225
    run = journal_of(command).stem
    (said,) = first.err.splitlines()
    assert "--max-cost" in said and f"--resume {run}" in said and "3;" in said

    # What was spent before counts: nothing is left of 0.02.
    spent = command.run("--resume", "--max-cost", "0.02", **env(server))
    assert (spent.code, len(server.requests)) == (1, 3)
    assert "--max-cost" in spent.err
    assert spent.document["spending"]["cost_usd"] == 0.0225

    # 4 are under way when the first of them reaches it; all 4 are finished.
    count = InFlight()

    def together(request: Received) -> Say:
        with count.one("gpt-4o"):
            until(lambda: count.most["gpt-4o"] == 4)
            return paid(request)

    server.answer = together
    more = command.run("--resume", "--max-cost", "0.025", "--concurrency", "4", **env(server))
    assert (more.code, len(server.requests)) == (1, 7)
    assert more.document["spending"]["cost_usd"] == 0.0525
    assert seeds(more) == [1, 2, 3, 4, 5, 6, 7]

    server.answer = paid
    rest = command.run("--resume", "--max-cost", "5", **env(server))
    assert (rest.code, len(server.requests), rest.err) == (0, 12, "")
    assert seeds(rest) == list(range(1, 13))
    assert rest.document["spending"] == {
        "cost_usd": 0.09,
        "n_unpriced": 0,
        "usage": {"input": 12_000, "output": 6_000, "reasoning": None, "cached": None},
    }


def test_a_run_stops_after_its_time(command: Command, server: Server) -> None:
    """0.02 minutes are 1.2 s: they are over before the first 3 of 6 are answered."""
    server.answer = lambda request: Say(paid(request).body, silence=1.5)
    done = command.run(
        *GPT, "--seeds", "1-6", "--concurrency", "3", "--max-time", "0.02", **env(server)
    )
    assert (done.code, len(server.requests)) == (1, 3)
    assert seeds(done) == [1, 2, 3]
    (said,) = done.err.splitlines()
    assert "--max-time" in said and f"--resume {journal_of(command).stem}" in said
    server.answer = paid
    rest = command.run("--resume", "--max-time", "10", **env(server))  # of this session
    assert (rest.code, len(server.requests), rest.err) == (0, 6, "")
    assert seeds(rest) == [1, 2, 3, 4, 5, 6]


def test_what_a_server_does_not_count_is_counted_at_its_most(
    command: Command, server: Server
) -> None:
    """2,500 tokens of gpt-4o cost 0.025 USD, the prompt a little more: 0.05 is passed by two."""
    server.answer = lambda request: Say(answer("openai", solution(request), usage={"silent": True}))
    args = (*GPT, "--seeds", "1-6", "--concurrency", "1", "--max-cost", "0.05")
    done = command.run(*args, **env(server))
    assert (done.code, len(server.requests)) == (1, 2)
    assert done.document["spending"]["cost_usd"] is None
    again = command.run("--resume", "--max-cost", "0.05", **env(server))
    assert (again.code, len(server.requests)) == (1, 2)
    more = command.run("--resume", "--max-cost", "0.1", "--concurrency", "1", **env(server))
    assert (more.code, len(server.requests)) == (1, 4)


@pytest.mark.parametrize(
    ("option", "value"), [("--max-cost", "-1"), ("--max-cost", "nan"), ("--max-time", "x")]
)
def test_a_budget_that_is_none(command: Command, server: Server, option: str, value: str) -> None:
    done = command.run(*GPT, option, value, **env(server))
    assert (done.code, server.requests) == (2, [])
    one_line(done, option)


def test_the_unknown_price_of_a_vendor_stops_a_run_that_has_a_budget(
    command: Command, server: Server
) -> None:
    unknown = ("--model", "openai/gpt-0-mystery", "--size", "5", "--seeds", "1-2")
    refused = command.run(*unknown, "--max-cost", "1", **env(server))
    assert (refused.code, server.requests) == (2, [])
    one_line(refused, "openai/gpt-0-mystery", "price", "--max-cost")
    assert not list(command.folder.glob("results/*.jsonl"))


def test_an_unknown_price_is_no_price_of_zero(command: Command, server: Server) -> None:
    """A server of one's own beside a model with a price: the run goes on, and says so."""
    server.answer = paid
    mine = ("--model", "compatible/mine", "--base-url", server.base_url("compatible"))
    done = command.run(*GPT, *mine, "--seeds", "1-3", "--max-cost", "1", "--csv", **env(server))
    assert (done.code, len(server.requests)) == (0, 6)
    (note,) = done.err.splitlines()
    assert "compatible/mine" in note and "--max-cost" in note
    costs = [trial["cost_usd"] for trial in done.results]
    assert costs == [0.0075] * 3 + [None] * 3
    priced, unpriced = done.document["aggregate"]
    assert (priced["cost_usd"], priced["n_unpriced"]) == (0.0225, 0)
    assert (unpriced["cost_usd"], unpriced["n_unpriced"]) == (None, 3)
    assert unpriced["usage"]["input"] == 3000
    spending = done.document["spending"]
    assert (spending["cost_usd"], spending["n_unpriced"]) == (0.0225, 3)
    assert spending["usage"]["input"] == 6000
    rows = table(done.out, "Tokens and cost")
    assert rows["compatible/mine"] == ["3,000", "1,500", "–", "–", "–"]
    assert rows["openai/gpt-4o"] == ["3,000", "1,500", "–", "–", "0.0225"]
    assert rows["*"] == ["6,000", "3,000", "–", "–", "0.0225"]
    assert re.search(r"compatible/mine: .*\b3 trials\b.*unknown", done.out)
    written = list(csv.DictReader(io.StringIO(done.output.with_suffix(".csv").read_text("utf-8"))))
    assert [row["cost_usd"] for row in written] == ["0.0075"] * 3 + [""] * 3


# -- the plan --------------------------------------------------------------------------------------


def test_a_dry_run_tells_the_price_and_calls_nobody(command: Command, server: Server) -> None:
    """8 trials of at most 2,500 tokens each: 20,000 written."""
    models = {
        "openai/gpt-4o": (2.50, 10.0),
        f"anthropic/{SONNET}": (3.0, 15.0),
        "google/gemini-2.5-flash": (0.30, 2.50),
        "openai/gpt-0-mystery": None,
        "compatible/mine": None,
    }
    named = [arg for model in models for arg in ("--model", model)]
    url = ("--base-url", server.base_url("compatible"))
    given = ("--dry-run", *named, *url, "--size", "5", "--seeds", "1-4", "--runs", "2")
    keys = env(server, "openai", "anthropic", "google")
    sizes = [len((prompt(s).system + prompt(s).user).encode()) for s in range(1, 5)]
    tokens = 2 * sum(round(size / 2.2) for size in sizes)

    def plan(*args: str) -> dict[str, list[str]]:
        done = command.run(*given, *args, **keys)
        assert (done.code, done.err, server.requests) == (0, "", [])
        kept = [p for p in command.folder.rglob("*") if not p.name.startswith(".coverage")]
        assert kept == []
        rows = table(done.out, "The plan (nobody was called)")
        assert {*rows} == {"", *models}
        unknown = [line.split(":")[0].strip() for line in done.out.splitlines() if ": " in line]
        assert unknown == ["openai/gpt-0-mystery", "compatible/mine"]
        return rows

    def expected(read: int, written: int) -> dict[str, list[str]]:
        counts = ["8", f"{read:,}", f"{written:,}"]
        rows = {}
        for model, price in models.items():
            cost = "–"
            if price:
                cost = f"{(read * price[0] + written * price[1]) / 1e6:.4f}"
            rows[model] = [*counts, cost]
        return rows

    def body(rows: dict[str, list[str]]) -> dict[str, list[str]]:
        return {name: row for name, row in rows.items() if name}

    whole = plan()
    assert whole[""][:2] == ["model", "trials"] and whole[""][4] == "USD (at most)"
    assert body(whole) == expected(tokens, 20_000)
    # A hint is given to every answer, after which all of it is sent once more.
    hinted = plan("--group", "C", "--max-tokens", "1000")
    assert body(hinted) == expected(2 * tokens + 8000, 16_000)


def test_a_dry_run_of_batches_costs_half(command: Command, server: Server) -> None:
    read = round(len((prompt(1).system + prompt(1).user).encode()) / 2.2)
    given = (*GPT, "--model", "deepseek/deepseek-chat", "--model", "reference/oracle")
    args = (*given, "--dry-run", "--seed", "1", "--max-tokens", "1000")
    keys = env(server, "openai", "deepseek")
    title = "The plan (nobody was called)"
    single = table(command.run(*args, **keys).out, title)
    batch = table(command.run(*args, "--batch", **keys).out, title)
    assert server.requests == []
    assert single["openai/gpt-4o"][3] == f"{(read * 2.5 + 10_000) / 1e6:.4f}"
    assert batch["openai/gpt-4o"][3] == f"{(read * 2.5 + 10_000) / 2e6:.4f}"
    assert batch["deepseek/deepseek-chat"] == single["deepseek/deepseek-chat"]  # it has no batches
    assert batch["reference/oracle"] == ["1", "0", "0", "0.0000"]


@pytest.mark.skipif(not ANSWERS.is_file(), reason="no stored answers of real models here")
def test_prompts_are_estimated_as_a_real_tokenizer_counts_them() -> None:
    with ANSWERS.open(encoding="utf-8") as lines:
        stored = [json.loads(line) for line in lines]
    ratios = {
        (entry["lang"], entry["size"], entry["seed"]): Prompt(
            entry["system"], entry["prompt"], ""
        ).tokens()
        / entry["usage"]["prompt_tokens"]
        for entry in stored
    }
    assert {lang for lang, *_ in ratios} == {"ko", "en"}
    assert all(abs(ratio - 1) <= 0.35 for ratio in ratios.values()), ratios


# -- tokens and cost -------------------------------------------------------------------------------

# 1,000 read, 400 of them out of a cache; 500 written, 200 of them reasoning.
USAGES = {
    "openai": {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
    "anthropic": {
        "input_tokens": 600,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 0,
        "output_tokens": 500,
        "output_tokens_details": {"thinking_tokens": 200},
    },
    "google": {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 400,
        "candidatesTokenCount": 300,
        "thoughtsTokenCount": 200,
        "totalTokenCount": 1500,
    },
}
# USD per million: read, read out of the cache, written. And what the above costs by them.
# openai 2.50, 1.25, 10: 600 · 2.50 + 400 · 1.25 + 500 · 10 = 1500 + 500 + 5000 millionths
# anthropic 3, 0.30, 15: 1800 + 120 + 7500
# google 0.30, 0.03, 2.50: 180 + 12 + 1250
COSTS = {"openai": 0.007, "anthropic": 0.00942, "google": 0.001442}
MODELS = {"openai": "gpt-4o", "anthropic": SONNET, "google": "gemini-2.5-flash"}


def test_tokens_and_cost_of_three_vendors(command: Command, server: Server) -> None:
    server.answer = lambda request: Say(
        answer(request.wire, solution(request), usage=USAGES[request.wire])
    )
    named = [arg for item in MODELS.items() for arg in ("--model", "/".join(item))]
    done = command.run(*named, "--size", "5", "--seeds", "1-2", "--csv", **env(server, *MODELS))
    assert (done.code, len(server.requests)) == (0, 6)
    once = {"input": 1000, "output": 500, "reasoning": 200, "cached": 400}
    twice = {name: 2 * count for name, count in once.items()}
    for trial in done.results:
        assert trial["usage"] == once
        assert trial["cost_usd"] == COSTS[trial["provider"]]
        assert trial["earlier_attempts"] is None
    rows = done.document["aggregate"]
    assert [row["provider"] for row in rows] == list(MODELS)
    for row in rows:
        assert row["usage"] == twice
        assert row["cost_usd"] == round(2 * COSTS[row["provider"]], 6)
        assert row["n_unpriced"] == 0
    assert done.document["spending"] == {
        "usage": {"input": 6000, "output": 3000, "reasoning": 1200, "cached": 2400},
        "cost_usd": 0.035724,
        "n_unpriced": 0,
    }
    assert table(done.out, "Tokens and cost") == {
        "": ["model", "input", "output", "reasoning", "cached", "USD"],
        "openai/gpt-4o": ["2,000", "1,000", "400", "800", "0.0140"],
        f"anthropic/{SONNET}": ["2,000", "1,000", "400", "800", "0.0188"],
        "google/gemini-2.5-flash": ["2,000", "1,000", "400", "800", "0.0029"],
        "*": ["6,000", "3,000", "1,200", "2,400", "0.0357"],
    }
    written = list(csv.DictReader(io.StringIO(done.output.with_suffix(".csv").read_text("utf-8"))))
    assert len(written) == 6
    for row in written:
        counts = [row[f"tokens_{name}"] for name in ("input", "output", "reasoning", "cached")]
        assert counts == ["1000", "500", "200", "400"]
        assert row["cost_usd"] == str(COSTS[row["provider"]])


def test_prices() -> None:
    """2.50, of a cache 1.25, and 10 USD per million; what is not known costs nothing known."""
    price, vendor = hallumaze.price_usd, ("openai", "gpt-4o", "")
    assert price(*vendor, {"input": 10**6, "output": 10**6}) == 12.50
    assert price(*vendor, {"input": 10**6, "output": 0, "cached": 10**6}) == 1.25
    assert price(*vendor, {"input": 10**6, "output": 0, "cached": 10**9}) == 1.25
    assert price(*vendor, {"input": 0, "output": 0}) == 0
    for usage in ({"input": 5, "output": None}, {"input": None, "output": 5}, {}):
        assert price(*vendor, usage) is None
    known = {"input": 10**6, "output": 10**6}
    assert price("openai", "gpt-0-mystery", "", known) is None
    assert price("anthropic", "gpt-4o", "", known) is None  # it is another vendor's
    # A compatible server is known by its address, or not at all.
    assert price("compatible", "gpt-4o", "https://api.openai.com/v1", known) == 12.50
    assert price("compatible", "gpt-4o", "http://localhost:11434/v1", known) is None


def test_what_an_attempt_in_vain_has_cost_is_not_lost(command: Command, server: Server) -> None:
    """A first answer costs 0.0075; one to a hint 2,000 · 2.50 + 100 · 10 millionths = 0.006."""
    failing = {1}

    def talk(request: Received) -> Say:
        if len(request.turns) == 1:
            return paid(request)
        if seed_of(request) in failing:
            return error("openai", 400, "broken")
        return paid(request, 2000, 100)

    server.answer = talk
    done = command.run(*GPT, "--group", "C", "--seeds", "1-2", **env(server))
    assert (done.code, len(server.requests)) == (1, 4)
    failed, whole = done.results
    assert (failed["outcome"], failed["hallumaze_score"]) == ("error", None)
    assert failed["usage"] == {"input": 1000, "output": 500, "reasoning": None, "cached": None}
    assert (failed["cost_usd"], failed["earlier_attempts"]) == (0.0075, None)
    assert (whole["usage"]["input"], whole["usage"]["output"]) == (3000, 600)
    assert (whole["cost_usd"], whole["first_answer"]["cost_usd"]) == (0.0135, 0.0075)
    spending = done.document["spending"]
    assert (spending["cost_usd"], spending["n_unpriced"]) == (0.021, 0)
    assert (spending["usage"]["input"], spending["usage"]["output"]) == (4000, 1100)
    # Without what was spent in vain it would be 0.0135.
    spent = command.run("--resume", "--max-cost", "0.02", **env(server))
    assert (spent.code, len(server.requests)) == (1, 4)

    again = command.run("--resume", **env(server))
    assert (again.code, len(server.requests)) == (1, 6)
    assert again.results[0]["cost_usd"] == 0.0075
    assert again.results[0]["earlier_attempts"] == {
        "n": 1,
        "usage": {"input": 1000, "output": 500, "reasoning": None, "cached": None},
        "cost_usd": 0.0075,
    }
    assert again.document["spending"]["cost_usd"] == 0.0285

    failing.clear()
    last = command.run("--resume", **env(server))
    assert (last.code, len(server.requests)) == (0, 8)
    mended, untouched = last.results
    assert untouched == whole
    assert (mended["outcome"], mended["cost_usd"]) == ("ok", 0.0135)
    assert mended["earlier_attempts"] == {
        "n": 2,
        "usage": {"input": 2000, "output": 1000, "reasoning": None, "cached": None},
        "cost_usd": 0.015,
    }
    (row,) = last.document["aggregate"]
    for spent_on in (last.document["spending"], row):
        assert (spent_on["cost_usd"], spent_on["n_unpriced"]) == (0.042, 0)
        assert spent_on["usage"]["input"] == 2 * 1000 + 2 * 3000
        assert spent_on["usage"]["output"] == 2 * 500 + 2 * 600
    shown = table(last.out, "Tokens and cost")
    assert shown["openai/gpt-4o C"] == ["8,000", "2,200", "–", "–", "0.0420"]


# -- nothing is held whole -------------------------------------------------------------------------


def test_mazes_are_made_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original: Callable[..., MazeEngine] = hallumaze._maze

    def counted(size: int, seed: int, algorithm: str) -> MazeEngine:
        made.append(seed)
        return original(size, seed, algorithm)

    monkeypatch.setattr(hallumaze, "_maze", counted)
    many = Mazes(5, range(100_000), "prim")
    assert (len(many), made) == (100_000, [])
    assert many[99_999].sha256 == MazeEngine(5, 99_999, "prim").sha256
    assert (many[99_999].seed, many[-1].seed, made) == (99_999, 99_999, [99_999] * 3)
    assert [maze.seed for maze in Mazes(5, [3, 1, 2])] == [3, 1, 2]
    with pytest.raises(IndexError):
        many[100_000]


def test_fresh_seeds_are_drawn_once() -> None:
    fresh = Mazes(7, [None, 5, None])
    drawn = list(fresh.seeds)
    assert len(fresh) == 3 and drawn[1] == 5 and drawn[0] != drawn[2]
    assert all(isinstance(seed, int) and 0 <= seed < 10**9 for seed in drawn)
    for _ in range(2):
        assert [maze.seed for maze in fresh] == drawn
    for k, seed in enumerate(drawn):
        assert fresh[k].sha256 == MazeEngine(7, seed).sha256
    assert fresh.seeds == drawn


def test_every_model_and_session_has_the_same_fresh_mazes(command: Command) -> None:
    models = ("--model", "reference/oracle", "--model", "reference/silent")
    done = command.run(*models, "--size", "5", "--runs", "3")
    drawn = [maze["seed"] for maze in done.document["mazes"]]
    assert (done.code, len(set(drawn))) == (0, 3)
    assert seeds(done, "oracle") == seeds(done, "silent") == drawn
    path = journal_of(command)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    again = command.run("--resume")
    assert again.code == 0
    assert timeless(again.document) == timeless(done.document)


def test_json_in_pieces_is_the_json_of_the_whole() -> None:
    items: list[Any] = [
        {"b": 'two\nlines \u2028 and \u2029 more, \\n, "quoted" ', "a": 0.5},
        {},
        [],
        [[], {}, 2],
        "미로 →\r\n\t\x00",
        None,
        True,
        -1.25,
        12345678901234567890,
    ]
    whole: dict[str, Any] = {
        "z": {"nested": [], "deep": {"er": 1}},
        "none": [],
        "one": [{}],
        "items": items,
        "text": "two\nlines \u2028",
        "ünïcode": "→",
        "list": [1, {"a": []}],
        "number": 0.1,
    }

    def texts(name: str) -> Iterator[str]:
        return (json.dumps(item, sort_keys=True, ensure_ascii=False) for item in whole[name])

    iterated = {**whole, **{name: texts(name) for name in ("none", "one", "items")}}
    written = hallumaze.json_text(whole)
    assert json.loads(written) == whole
    assert "".join(hallumaze.json_chunks(iterated)) == written
    assert "".join(hallumaze.json_chunks(whole)) == written
    only = {"only": iter(())}
    assert hallumaze.json_text(only) == '{\n  "only": []\n}\n'
    assert hallumaze.json_text({}) == "{}\n"
    # Each trial stands on one line, as does each item of any other field of a document.
    deep = {
        "config": {"size": 5, "lang": "ko"},
        "results": [{"steps": [{"step": 1, "cell": [0, 1]}]}, {"steps": []}],
    }
    assert hallumaze.json_text(deep).splitlines() == [
        "{",
        '  "config": {',
        '    "lang": "ko",',
        '    "size": 5',
        "  },",
        '  "results": [',
        '    {"steps": [{"cell": [0, 1], "step": 1}]},',
        '    {"steps": []}',
        "  ]",
        "}",
    ]
    # Floats at 6 places, tuples as lists, and no NaN.
    assert hallumaze.json_text({"a": [(1 / 3, 2.0)]}) == (
        '{\n  "a": [\n    [0.333333, 2.0]\n  ]\n}\n'
    )
    with pytest.raises(ValueError, match="JSON"):
        hallumaze.json_text({"a": [math.nan]})


def test_json_in_pieces_takes_one_item_at_a_time() -> None:
    taken: list[int] = []
    written: list[str] = []

    def items() -> Iterator[str]:
        for k in range(5):
            assert sum("item" in chunk for chunk in written) == k  # the one before is written
            taken.append(k)
            yield f'{{"item": {k}}}'

    chunks = hallumaze.json_chunks({"a": 1, "rows": items(), "z": 2})
    for chunk in chunks:
        written.append(chunk)
        assert chunk.count("item") <= 1
    assert taken == [0, 1, 2, 3, 4]


def test_csv_line_by_line() -> None:
    taken: list[int] = []

    def results() -> Iterator[BenchmarkResult]:
        for k in range(3):
            taken.append(k)
            usage = {"input": 10 * k, "output": 7, "reasoning": None, "cached": 3}
            said = 'a "word",\nand \u2028 =1+1'
            yield BenchmarkResult("p", "m", maze_seed=k, usage=usage, cost_usd=0.5, error=said)

    lines = hallumaze.csv_lines(results())
    head = next(lines)
    assert taken == []
    first = next(lines)
    assert taken == [0]
    text = head + first + "".join(lines)
    assert text == hallumaze.csv_text(results())
    assert len(text.splitlines()) == 4 == text.count("\n")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["maze_seed"] for row in rows] == ["0", "1", "2"]
    assert [row["tokens_input"] for row in rows] == ["0", "10", "20"]
    assert {row["tokens_output"] for row in rows} == {"7"}
    assert {row["tokens_reasoning"] for row in rows} == {""}
    assert {row["tokens_cached"] for row in rows} == {"3"}
    assert {row["cost_usd"] for row in rows} == {"0.5"}
    assert {row["error"] for row in rows} == {'a "word", and   =1+1'}


def test_the_results_of_a_journal_are_read_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal.create(path, {"journal": 0})

    def result(seed: int, outcome: str = "ok", **more: Any) -> BenchmarkResult:
        return BenchmarkResult("p", "m", maze_seed=seed, outcome=outcome, **more)

    usage = {"input": 10, "output": 1, "reasoning": None, "cached": None}
    failed = result(3, "error", usage=usage, cost_usd=0.25)
    journal.add([(5, result(5, raw_response="미로\n\u2028")), (3, failed)])
    journal.add([(0, result(0, trial_id="zero"))])
    assert journal.earlier_attempts(3) == {"n": 1, "usage": usage, "cost_usd": 0.25}
    assert journal.finished == {5: "", 0: "zero"}
    journal.add([(3, result(3, cost_usd=0.5, earlier_attempts=journal.earlier_attempts(3)))])
    assert journal.cost_usd == 0.75
    journal.close()

    loaded = Journal.load(path)
    assert loaded.cost_usd == 0.75
    assert [loaded.finished[k] for k in (0, 3, 5)] == ["zero", "", ""]
    read: list[int] = []
    original = loaded.read

    def counted(number: int) -> BenchmarkResult:
        read.append(number)
        return original(number)

    monkeypatch.setattr(loaded, "read", counted)
    results = loaded.results()
    assert (len(results), read) == (3, [])
    assert results[2].raw_response == "미로\n\u2028" and read == [5]
    seen = [(r.maze_seed, r.outcome) for r in results]
    assert (seen, read) == ([(0, "ok"), (3, "ok"), (5, "ok")], [5, 0, 3, 5])
    (row,) = hallumaze.aggregate(results)
    assert (row["cost_usd"], row["usage"]["input"]) == (0.75, 10)
    loaded.close()
