"""Sections 8, 10 and 11: every option of the command, through the real command.

Scores worked out by hand. The oracle walks the solution at 99 %: HC 0 and SR 1, so HRR, early and
esc are 1, MEI = 0.4 + 0.3 + 0.2 = 0.9, CE = |0.99 - 1| = 0.01, BRS = 1 and
Score = 0.5·0.9 + 0.3·0.99 + 0.2·1 = 0.947. The silent one has no readable claim: all are 0.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import (
    PATIENCE_S,
    ROOT,
    SCRIPT,
    STAMP,
    Command,
    Done,
    one_line,
    timeless,
    unstamped,
    until,
)
from servers import Received, Say, Server, error

from hallumaze import CONCURRENCY, USAGE_KEYS, LLMProvider, MazeConfig, MazeEngine, PromptBuilder

AGENTS = ["oracle", "explorer", "random-walk", "lured", "bluffer", "silent"]
KEYS = {
    "anthropic": "sk-ant-FAKE-anthropic-1111",
    "openai": "sk-FAKE-openai-2222",
    "google": "AIzaFAKE-google-3333",
    "deepseek": "sk-FAKE-deepseek-4444",
}
DEFAULTS = {
    "anthropic": "claude-sonnet-4-20250514",
    "openai": "gpt-4o",
    "google": "gemini-2.5-flash",
    "deepseek": "deepseek-reasoner",
}
ORACLE = ("--model", "reference/oracle")
SMALL = ("--size", "5", "--seed", "1")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.answer = solution
        yield running


def solution(request: Received) -> str:
    """What the oracle would answer to the first turn."""
    first = [{"role": "user", "content": request.turns[0][1]}]
    return LLMProvider("reference", "oracle").complete("", first, 1).text


def vendors(server: Server, *names: str) -> dict[str, str]:
    """Keys and base URLs of these providers (of all four), on the loopback server."""
    env = {}
    for name in names or KEYS:
        env[f"{name.upper()}_API_KEY"] = KEYS[name]
        env[f"{name.upper()}_BASE_URL"] = server.base_url(name)
    return env


def sender(request: Received) -> str:
    """Whose key came with a request."""
    shown = " ".join(request.headers.values())
    return next(name for name, key in KEYS.items() if key in shown)


def seeds_of(done: Done) -> list[int]:
    return [maze["seed"] for maze in done.document["mazes"]]


def prompt_of(done: Done, k: int = 0, **config: Any) -> Any:
    """The prompt that belongs to the k-th maze of a run, made anew from its size and seed."""
    maze = done.document["mazes"][k]
    engine = MazeEngine(maze["size"], maze["seed"], maze["algorithm"])
    return PromptBuilder(engine, MazeConfig(size=maze["size"], **config)).build()


# ---- no key


def test_without_a_key_the_reference_agents_run(command: Command, tmp_path: Path) -> None:
    copy = command.copy()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = command("--size", "5", "--seed", "42", script=copy, cwd=elsewhere)
    assert first.code == 0
    notice = first.err.splitlines()
    assert len(notice) == 1
    for word in ("reference agents", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "--base-url"):
        assert word in notice[0]
    # The file is beside hallumaze.py, wherever the command was given.
    assert list(elsewhere.iterdir()) == []
    (path,) = copy.parent.glob("results/*.json")
    assert re.fullmatch(r"hallumaze_results_\d{8}_\d{6}\.json", path.name)
    run = path.stem.removeprefix("hallumaze_results_")
    assert path.with_name(f"{run}.jsonl").is_file()  # the journal of the run
    assert f"JSON saved: {path}" in first.out
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    assert text.endswith("}\n") and sorted(document) == [
        "aggregate",
        "config",
        "environment",
        "hallumaze_version",
        "maze",
        "mazes",
        "results",
        "run",
        "schema_version",
        "spending",
        "timestamp",
    ]
    assert (document["hallumaze_version"], document["schema_version"]) == ("1.1", 2)
    assert document["timestamp"].endswith("+00:00")
    assert [r["model"] for r in document["results"]] == AGENTS
    assert {r["provider"] for r in document["results"]} == {"reference"}
    oracle, silent = document["results"][0], document["results"][-1]
    scores = ("sr", "mei", "ce", "brs", "hallumaze_score", "outcome")
    assert [oracle[key] for key in scores] == [1, 0.9, 0.01, 1, 0.947, "ok"]
    assert [silent[key] for key in scores] == [0, 0, None, 0, 0, "unreadable"]
    # They cost nothing, which is not the same as a cost that nobody knows.
    assert [r["cost_usd"] for r in document["results"]] == [0] * 6
    assert (document["spending"]["cost_usd"], document["spending"]["n_unpriced"]) == (0, 0)
    assert "Tokens and cost" not in first.out
    # What v1.1 shows; reference agents never rank.
    maze = document["maze"]
    assert (maze["size"], maze["seed"]) == (5, 42)
    facts = (
        f"size: 5×5 | solution: {maze['solution_length']} moves | dead ends: {maze['dead_ends']}"
        f" | mirages: {maze['mirage_traps']} | seed: 42"
    )
    assert facts in first.out
    log = [line for line in first.out.splitlines() if re.match(STAMP, line)]
    *lines, saved = unstamped("\n".join(log))
    assert lines[:6] == [f"▶ running: reference/{agent} (trials: 1)" for agent in AGENTS]
    assert [line.split()[1] for line in lines[6:]] == [f"reference/{agent}" for agent in AGENTS]
    numbers = r"SR=1\.00 \| MEI=0\.900● \| CE=0\.010 \| BRS=1\.000 \| Hall=0 BT=0 \| Score=0\.947"
    judges = "A 50 ≠ B 100"  # every keyword, and no ground for any
    signals = rf"\d+\.\ds \| {judges} \| ↳ metacognitive signals: none"
    assert re.fullmatch(rf"✓ reference/oracle seed 42 \| {numbers} \| {signals}", lines[6])
    assert saved == f"✓ JSON saved: {path}"
    assert "best score" not in first.out and "🥇" not in first.out
    # The same command again: a second file, the same scores.
    second = command("--size", "5", "--seed", "42", script=copy, cwd=elsewhere)
    assert second.code == 0
    (other,) = set(copy.parent.glob("results/*.json")) - {path}
    assert timeless(json.loads(other.read_text("utf-8"))) == timeless(document)


def test_run_is_the_command_without_a_name(command: Command) -> None:
    done = command("run", "--output", str(command.output), *SMALL, *ORACLE)
    assert (done.code, done.err) == (0, "")
    assert [r["model"] for r in done.results] == ["oracle"]


@pytest.mark.parametrize("words", [(), ("run",)])
@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, "sk-typed-by-nobody\n" * 20])
def test_without_key_and_terminal_nothing_waits(
    words: tuple[str, ...], stdin: int | str, command: Command
) -> None:
    done = command(*words, stdin=stdin)
    assert done.code == 2
    one_line(done, *(f"{name.upper()}_API_KEY" for name in KEYS), "GEMINI_API_KEY")


# ---- keys


def test_every_provider_whose_key_is_set_runs(command: Command, server: Server) -> None:
    done = command.run("--seed", "42", "--size", "5", "--csv", **vendors(server))
    assert (done.code, done.err) == (0, "")
    sent = {sender(request): request for request in server.requests}
    assert (len(server.requests), set(sent)) == (4, set(KEYS))
    google = sent["google"]
    assert google.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    models = {name: request.body.get("model") for name, request in sent.items()}
    assert models == {**DEFAULTS, "google": None}  # the model is in the path
    prompt = prompt_of(done)
    for request in server.requests:
        assert (request.system, request.turns[0][1]) == (prompt.system, prompt.user)
        settings = request.body.get("generationConfig", request.body)
        limit = settings.get("max_tokens") or settings.get("maxOutputTokens")
        assert (settings["temperature"], limit) == (0, 2500)
    assert [(r["provider"], r["model"]) for r in done.results] == list(DEFAULTS.items())
    for result in done.results:
        assert result["prompt_sha256"] == prompt.sha256
        assert result["raw_response"] == solution(server.requests[0])
        assert (result["hallumaze_score"], result["outcome"]) == (0.947, "ok")
        assert result["usage"]["input"] == 11 and result["usage"]["output"] == 7
        assert (result["earlier_attempts"], result["batch_id"]) == (None, "")
        assert re.fullmatch(r"[0-9a-f]{32}", result["trial_id"])
    assert len({r["trial_id"] for r in done.results}) == 4
    # 11 tokens at 3 USD a million and 7 at 15; at 2.5 and 10; at 0.3 and 2.5; and a cheap one.
    costs = [r["cost_usd"] for r in done.results]
    assert costs[:3] == pytest.approx([0.000138, 0.0000975, 0.0000208], abs=6e-7)
    assert 0 < costs[3] < 0.00003  # at night its tokens are cheaper
    spending = done.document["spending"]
    assert spending["cost_usd"] == pytest.approx(sum(costs), abs=1e-6)
    assert (spending["usage"]["input"], spending["usage"]["output"]) == (44, 28)
    assert spending["n_unpriced"] == 0
    table = done.out.split("Tokens and cost\n")[1].splitlines()[1:6]
    assert [line.split()[:3] for line in table] == [
        *([f"{name}/{model}", "11", "7"] for name, model in DEFAULTS.items()),
        ["*", "44", "28"],
    ]
    # Four models with the same score share the first place.
    assert done.out.count("🥇") == 4
    assert done.out.count("best score") == 4
    with command.output.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["provider"], row["model"]) for row in rows] == list(DEFAULTS.items())
    assert {(row["hallumaze_score"], row["sr"], row["path_valid"]) for row in rows} == {
        ("0.947", rows[0]["sr"], "true")
    }
    assert [float(row["cost_usd"]) for row in rows] == costs
    assert [row["trial_id"] for row in rows] == [r["trial_id"] for r in done.results]
    assert {row["batch_id"] for row in rows} == {""}
    assert f"CSV saved: {command.output.with_suffix('.csv')}" in done.out


def test_what_the_options_of_a_call_send(command: Command, server: Server) -> None:
    """Other models and GEMINI_API_KEY from the environment; options that reach the wire."""
    env = vendors(server)
    env["GEMINI_API_KEY"] = env.pop("GOOGLE_API_KEY")
    models = {"anthropic": "claude-x", "openai": "o-x", "google": "gemini-3-x", "deepseek": "d-x"}
    env |= {f"{name.upper()}_MODEL": model for name, model in models.items()}
    calls = "--temperature 0.7 --reasoning-effort low --max-tokens 1234 --group C"
    prompts = "--size 5 --seed 3 --no-confidence --no-mirage --lang en --algorithm wilson"
    done = command.run(*calls.split(), *prompts.split(), **env)
    assert (done.code, done.err) == (0, "")
    assert [(r["provider"], r["model"]) for r in done.results] == list(models.items())
    prompt = prompt_of(done, lang="en", use_mirage=False, use_confidence=False, algorithm="wilson")
    assert "확신도" not in prompt.user and "CONFIDENCE_LOG" not in prompt.user
    hints = {r["hint"] for r in done.results}
    assert len(hints) == 1
    (hint,) = hints
    # Group C: two calls each, the second in the same conversation.
    sent = [[r for r in server.requests if sender(r) == name] for name in KEYS]
    assert [len(requests) for requests in sent] == [2] * 4
    for k, request in enumerate(request for requests in sent for request in requests):
        assert request.turns[0] == ("user", prompt.user)
        assert len(request.turns) == (3 if k % 2 else 1)
        if k % 2:
            assert request.turns[1][1] == solution(request)
            assert request.turns[2] == ("user", hint)
        settings = request.body.get("generationConfig", request.body)
        assert settings["temperature"] == 0.7
        name = sender(request)
        if name == "google":
            assert settings["maxOutputTokens"] == 1234
            thinking = settings["thinkingConfig"]  # the API takes both spellings of the name
            level = thinking.get("thinkingLevel") or thinking["thinking_level"]
            assert level.lower() == "low"
            continue
        assert settings["max_tokens"] == 1234
        effort = settings["output_config"]["effort"] if name == "anthropic" else None
        assert (effort or settings["reasoning_effort"]) == "low"
    for result in done.results:
        assert (result["ariadne_group"], result["nudge_sent"]) == ("C", True)
        assert result["nudge_needed"] is False
        assert result["first_answer"]["raw_response"] == result["raw_response"]
        assert result["params_sent"]["dropped"] == []
        assert result["confidence_log"] == []
        assert result["maze_algorithm"] == "wilson"
    config = done.document["config"]
    expected = {
        "temperature": 0.7,
        "reasoning_effort": "low",
        "max_tokens": 1234,
        "ariadne_mode": "C",
        "use_mirage": False,
        "mirage": "off",
        "use_confidence": False,
        "lang": "en",
        "algorithm": "wilson",
        "size": 5,
    }
    assert {name: config[name] for name in expected} == expected


def test_a_rejected_temperature_is_dropped_once_and_recorded(
    command: Command, server: Server
) -> None:
    words = "Unsupported value: 'temperature' does not support 0 with this model."
    server.script(error("openai", 400, words, "unsupported_value", "temperature"))
    model = ("--model", "compatible/local", "--base-url", server.base_url("compatible"))
    one = ("--concurrency", "1")
    done = command.run(*model, *SMALL, "--runs", "2", *one)
    assert (done.code, done.err) == (0, "")
    assert ["temperature" in r.body for r in server.requests] == [True, False, False]
    for result in done.results:
        assert result["params_sent"]["dropped"] == ["temperature"]
        assert "temperature" not in result["params_sent"]
        assert result["outcome"] == "ok"
    assert [r["run"] for r in done.results] == [1, 2]
    assert done.document["config"]["models"][0]["base_url"] == server.base_url("compatible")
    assert "authorization" not in str(done.document).lower()


def test_calls_side_by_side_drop_what_is_rejected(command: Command, server: Server) -> None:
    """Each call learns of it at most once; none fails for what another has learnt."""
    words = "Unsupported value: 'temperature' does not support 0 with this model."
    rejected = error("openai", 400, words, "unsupported_value", "temperature")
    server.answer = lambda request: rejected if "temperature" in request.body else solution(request)
    model = ("--model", "compatible/local", "--base-url", server.base_url("compatible"))
    done = command.run(*model, *SMALL, "--runs", "20")
    assert (done.code, done.err) == (0, "")
    assert 21 <= len(server.requests) <= 20 + CONCURRENCY
    for result in done.results:
        assert result["params_sent"]["dropped"] == ["temperature"]
        assert "temperature" not in result["params_sent"]
    assert [(r["run"], r["outcome"]) for r in done.results] == [(n, "ok") for n in range(1, 21)]


def test_models_are_named_one_by_one(command: Command, server: Server) -> None:
    """--model wins over the keys of the environment, whatever their order; a `/` may follow."""
    named = ("--model", "compatible/org/model:7b", "--model", "reference/silent")
    url = server.base_url("compatible")
    done = command.run(*named, *SMALL, COMPATIBLE_BASE_URL=url, **vendors(server))
    assert (done.code, done.err) == (0, "")
    assert [(r["provider"], r["model"]) for r in done.results] == [
        ("compatible", "org/model:7b"),
        ("reference", "silent"),
    ]
    (request,) = server.requests
    assert request.body["model"] == "org/model:7b"
    # A key of another vendor never goes to this server.
    assert not any(key in str(request.headers) for key in KEYS.values())


# ---- wrong use

REFUSED = [
    (["--model", "nobody/x"], ["nobody", "anthropic", "compatible", "reference"]),
    (["--model", "gpt-4o"], ["gpt-4o"]),
    (["--model", "openai"], ["openai", "PROVIDER/MODEL"]),
    (["--model", "openai/"], ["PROVIDER/MODEL"]),
    (["--model", ""], ["--model"]),
    (["--model", "anthropic/x"], ["anthropic/x", "ANTHROPIC_API_KEY"]),
    (["--model", "google/x"], ["google/x", "GOOGLE_API_KEY", "GEMINI_API_KEY"]),
    ([*ORACLE, "--model", "deepseek/x"], ["deepseek/x", "DEEPSEEK_API_KEY"]),
    (["--model", "openai/x", "--model", "openai/x"], ["openai/x", "twice"]),
    (["--model", "reference/genius"], ["genius", *AGENTS]),
    (["--model", "compatible/x"], ["compatible/x", "--base-url"]),
    (["--model", "compatible/x", "--base-url", "localhost:11434"], ["http://"]),
    (["--model", "compatible/x", "--base-url", "ftp://h/v1"], ["http://"]),
    (["--model", "compatible/x", "--base-url", "http://[x"], ["http://"]),
    (["--base-url", "http://h/v1"], ["--base-url", "compatible"]),
    (["--model", "openai/x", "--base-url", "http://h/v1"], ["--base-url", "compatible"]),
    (["--seeds", "5-3"], ["--seeds", "5-3"]),
    (["--seeds", "1-60x"], ["--seeds", "1-60x"]),
    (["--seeds", ""], ["--seeds"]),
    (["--seeds", "1,,2"], ["--seeds"]),
    (["--seeds=-3"], ["--seeds", "-3"]),
    (["--seeds", "0-100000"], ["--seeds"]),  # a hundred thousand and one mazes: a slip
    (["--seed", "1", "--seeds", "1-3"], ["--seed", "--seeds"]),
    (["--seed", "-1"], ["--seed"]),
    (["--seed", "x"], ["--seed", "x"]),
    (["--runs", "0"], ["--runs"]),
    (["--runs", "1.5"], ["--runs"]),
    (["--size", "1"], ["--size", "2", "201"]),
    (["--size", "202"], ["--size", "2", "201"]),
    (["--size", "seven"], ["--size", "seven"]),
    (["--mirage", "trap", "--no-mirage"], ["--mirage", "--no-mirage"]),
    (["--mirage", "on"], ["--mirage", "trap", "balanced", "off"]),
    (["--algorithm", "magic"], ["--algorithm", "dfs", "wilson", "kruskal", "prim"]),
    (["--lang", "fr"], ["--lang", "ko", "en"]),
    (["--group", "D"], ["--group", "A", "B", "C"]),
    (["--temperature", "2.1"], ["--temperature"]),
    (["--temperature", "nan"], ["--temperature"]),
    (["--temperature", "-0.1"], ["--temperature"]),
    (["--reasoning-effort", "huge"], ["--reasoning-effort", "low"]),
    (["--max-tokens", "0"], ["--max-tokens"]),
    (["--temperature", "hot"], ["--temperature", "'hot' is no number from 0 to 2"]),
    (["--timeout", "0"], ["--timeout", "'0' is no number from 0.001 to 86400"]),
    (["--timeout", "inf"], ["--timeout", "'inf' is no number"]),
    (["--retries", "-1"], ["--retries", "0"]),
    (["--concurrency", "0"], ["--concurrency", "'0' is no whole number from 1 to 100"]),
    (["--concurrency", "101"], ["--concurrency", "101", "1 to 100"]),
    (["--max-cost", "nan"], ["--max-cost", "'nan' is no number from 0"]),
    (["--max-cost", "-1"], ["--max-cost"]),
    (["--max-time", "soon"], ["--max-time", "'soon' is no number from 0"]),
    (["--max-time", "-1"], ["--max-time"]),
    (["--batch", "--batch-wait", "x"], ["--batch-wait", "'x' is no number from 0"]),
    (["--batch-wait", "5"], ["--batch-wait", "--batch"]),
    (["--model", "openai/x", "--max-cost", "1"], ["openai/x", "price", "--max-cost"]),
    (["--dry-run", "--show"], ["--dry-run", "--show"]),
    (["--modle", "x"], ["--modle", "--help"]),
    (["--mod", "reference/oracle"], ["--mod"]),  # no abbreviations: they break when options grow
    (["nonsense"], ["nonsense"]),
    (["--size"], ["--size"]),
    (["--model", "\x1b[31mred\x1b[0m/x\n"], ["red"]),
]


@pytest.mark.parametrize(("args", "parts"), REFUSED, ids=[" ".join(a)[:40] for a, _ in REFUSED])
def test_wrong_use_is_one_line_before_anything_is_sent(
    args: list[str], parts: list[str], command: Command, server: Server
) -> None:
    env = vendors(server, "openai")
    done = command.run(*args, **env)
    assert done.code == 2
    one_line(done, *parts)
    assert server.requests == []
    assert not command.output.exists()


@pytest.mark.parametrize(
    "args",
    [
        ["--model", "openai/x"],
        [],
    ],
)
def test_a_broken_key_is_named_and_not_shown(
    args: list[str], command: Command, server: Server
) -> None:
    env = vendors(server, "openai")
    env["OPENAI_API_KEY"] = "sk-FAKE-“curly-7777"
    done = command.run(*args, *SMALL, **env)
    assert done.code == 2
    line = one_line(done, "OPENAI_API_KEY")
    assert "sk-FAKE" not in line and "7777" not in line
    assert server.requests == []


# ---- mazes


def test_seeds_are_a_range_and_a_list(command: Command) -> None:
    done = command.run(*ORACLE, "--seeds", "3, 5-7,6", "--size", "5", "--runs", "2")
    assert (done.code, done.err) == (0, "")
    assert seeds_of(done) == [3, 5, 6, 7]
    assert [(r["maze_seed"], r["run"]) for r in done.results] == [
        (seed, run) for seed in (3, 5, 6, 7) for run in (1, 2)
    ]
    assert "of 4 mazes" in done.out
    (row,) = done.document["aggregate"]
    assert (row["n"], row["n_mazes"], row["hallumaze_score"]) == (8, 4, 0.947)


def test_runs_repeat_the_maze_of_a_seed(command: Command) -> None:
    done = command.run(*ORACLE, "--seed", "0", "--size", "5", "--runs", "3")
    assert done.code == 0
    assert seeds_of(done) == [0]  # seed 0 is a seed like any other
    assert [(r["maze_seed"], r["run"]) for r in done.results] == [(0, 1), (0, 2), (0, 3)]


def test_runs_without_a_seed_are_fresh_mazes_the_same_for_every_model(command: Command) -> None:
    done = command.run(*ORACLE, "--model", "reference/silent", "--runs", "3", "--size", "5")
    assert done.code == 0
    seeds = seeds_of(done)
    assert len(set(seeds)) == 3
    assert [(r["model"], r["maze_seed"]) for r in done.results] == [
        (model, seed) for model in ("oracle", "silent") for seed in seeds
    ]
    # The seed that was drawn gives that maze again.
    again = command.run(*ORACLE, "--seed", str(seeds[0]), "--size", "5")
    assert seeds_of(again) == [seeds[0]]
    assert again.results[0]["prompt_sha256"] == done.results[0]["prompt_sha256"]


@pytest.mark.parametrize(("size", "notice"), [(2, True), (6, True), (11, False), (201, True)])
def test_sizes(size: int, notice: bool, command: Command) -> None:
    done = command.run(*ORACLE, "--seed", "1", "--size", str(size))
    assert done.code == 0
    assert done.document["maze"]["size"] == size
    assert done.results[0]["hallumaze_score"] == 0.947
    lines = done.err.splitlines()
    assert len(lines) == notice
    assert not notice or (str(size) in lines[0] and "5, 7, 9, 11" in lines[0])


def test_the_notices_keep_their_order(command: Command) -> None:
    done = command.run("--size", "4", "--seed", "1")
    assert done.code == 0
    first, second = done.err.splitlines()
    assert "reference agents" in first
    assert "standard size" in second


@pytest.mark.parametrize(
    ("args", "mirage"),
    [
        ([], "trap"),
        (["--mirage", "trap"], "trap"),
        (["--mirage", "balanced"], "balanced"),
        (["--mirage", "off"], "off"),
        (["--no-mirage"], "off"),
    ],
)
def test_mirages(args: list[str], mirage: str, command: Command) -> None:
    done = command.run(*ORACLE, "--seed", "1", *args)
    assert done.code == 0
    document = done.document
    hints = document["mazes"][0]["mirage_trap_list"]
    assert document["maze"]["mirage_traps"] == len(hints)
    assert f"mirages: {len(hints)} |" in done.out
    # This maze has three junctions on its way: three traps, as max(2, 7 // 2) allows, or one trap
    # and, at another junction, one hint that is right.
    kinds = [hint["right"] for hint in hints]
    expected = {"trap": [False] * 3, "balanced": [False, True], "off": []}
    assert sorted(kinds) == expected[mirage]
    assert document["config"]["mirage"] == mirage
    assert document["config"]["use_mirage"] == (mirage != "off")
    config = {"use_mirage": False} if mirage == "off" else {"mirage": mirage}
    assert done.results[0]["prompt_sha256"] == prompt_of(done, **config).sha256


def test_algorithms(command: Command) -> None:
    walls = set()
    for name in ("dfs", "wilson", "kruskal", "prim"):
        done = command.run(*ORACLE, "--seed", "1", "--algorithm", name)
        assert done.code == 0
        (maze,) = done.document["mazes"]
        assert maze["algorithm"] == done.document["config"]["algorithm"] == name
        assert maze["openings"] == MazeEngine(7, 1, name).openings()
        walls.add(maze["walls_sha256"])
    assert len(walls) == 4


def test_group_b_only_hints_when_it_is_needed(command: Command) -> None:
    done = command.run(*ORACLE, "--model", "reference/bluffer", *SMALL, "--group", "B")
    assert done.code == 0
    oracle, bluffer = done.results
    assert (oracle["nudge_sent"], oracle["nrs"], oracle["first_answer"]) == (False, None, None)
    # The bluffer has not escaped, and meets the hint with the same words again.
    assert (bluffer["nudge_sent"], bluffer["nudge_needed"]) == (True, True)
    assert (bluffer["nudge_responded"], bluffer["nrs"]) == (False, 0)
    assert bluffer["first_answer"]["raw_response"] == bluffer["raw_response"]
    assert "hint given: NRS=0.000" in done.out


# ---- languages


@pytest.mark.parametrize(
    ("args", "env", "console", "prompt"),
    [
        ([], {}, "en", "ko"),
        ([], {"LANG": "ko_KR.UTF-8"}, "ko", "ko"),
        ([], {"LANG": "en_US.UTF-8"}, "en", "ko"),
        ([], {"LANG": "ko_KR.UTF-8", "LC_ALL": "C.UTF-8"}, "en", "ko"),
        ([], {"LANG": "C.UTF-8", "LC_MESSAGES": "ko_KR.UTF-8"}, "ko", "ko"),
        ([], {"LANG": "ko_KR.UTF-8", "LC_ALL": ""}, "ko", "ko"),
        (["--lang", "en"], {"LANG": "ko_KR.UTF-8"}, "en", "en"),
        (["--lang", "ko"], {"LANG": "en_US.UTF-8"}, "ko", "ko"),
    ],
)
def test_languages(
    args: list[str], env: dict[str, str], console: str, prompt: str, command: Command
) -> None:
    done = command.run("--size", "4", "--seed", "1", *args, **env)
    assert done.code == 0
    titles = {"ko": ("미로 생성됨", "막다른 길", "실행 중", "종합 비교", "저장: ")}
    titles["en"] = ("Maze generated", "dead ends", "running", "comparison", "saved: ")
    for lang, words in titles.items():
        for word in words:
            assert (word in done.out) == (lang == console), word
    notices = {"ko": ("기준 에이전트", "표준 크기"), "en": ("reference agents", "standard size")}
    for line, word in zip(done.err.splitlines(), notices[console], strict=True):
        assert word in line
    assert done.document["config"]["lang"] == prompt
    assert {r["prompt_sha256"] for r in done.results} == {prompt_of(done, lang=prompt).sha256}


# ---- what is written


def test_output_in_a_new_folder_and_its_csv(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "new" / "한글 folder" / "result.json"
    done = command(*ORACLE, *SMALL, "--output", str(path), "--csv")
    assert (done.code, done.err) == (0, "")
    assert sorted(p.name for p in path.parent.iterdir()) == ["result.csv", "result.json"]
    assert json.loads(path.read_text("utf-8"))["results"][0]["hallumaze_score"] == 0.947
    assert f"JSON saved: {path}" in done.out
    # An existing file is replaced as a whole.
    path.write_text("x" * 1_000_000)
    assert command(*ORACLE, *SMALL, "--output", str(path)).code == 0
    assert json.loads(path.read_text("utf-8"))["results"]


def test_output_that_cannot_be_written_is_refused_before_the_run(
    command: Command, tmp_path: Path, server: Server
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    cases = [(file / "out.json", "file"), (tmp_path, "--output")]
    if os.name == "posix" and os.geteuid() != 0:
        cases.append((locked / "out.json", "locked"))
    for path, part in cases:
        args = ("--model", "openai/x", *SMALL, "--output", str(path))
        done = command(*args, **vendors(server, "openai"))
        assert done.code == 2
        one_line(done, part)
    assert server.requests == []
    assert file.read_text() == "mine"


def test_csv_does_not_overwrite_the_result_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    done = command(*ORACLE, *SMALL, "--output", str(path), "--csv")
    if done.code == 2:
        one_line(done, "--csv")
        return
    assert any(
        file.read_text("utf-8").startswith("{") for file in tmp_path.iterdir() if file.is_file()
    ), "the raw answers are gone: the CSV has taken the place of the result file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_output_replaces_nothing_but_files(command: Command, tmp_path: Path) -> None:
    """`--output /dev/null` by root must not turn the device into a file (a pipe stands for it)."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    command(*ORACLE, *SMALL, "--output", str(path))
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_second_run_in_the_same_folder_ends_at_once(command: Command, server: Server) -> None:
    """As when cron starts a line while the one before is still at work."""
    server.script(Say(silence=PATIENCE_S))
    args = ("--base-url", server.base_url("compatible"), *SMALL, "--model", "compatible/a")
    first = command.start(*args)
    until(lambda: len(server.requests) == 1)
    second = command(*args)
    assert second.code == 75
    one_line(second, "another run", "--results-dir")
    assert len(server.requests) == 1
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=PATIENCE_S) == 130
    server.script(Say())
    assert command(*args).code == 0  # the lock went with the run


def test_runs_of_the_same_second_keep_their_files(command: Command) -> None:
    copy = command.copy()
    (command.folder / "sitecustomize.py").write_text(
        "import datetime\n"
        "class Stopped(datetime.datetime):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None):\n"
        "        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)\n"
        "datetime.datetime = Stopped\n"
    )
    for _ in range(2):
        done = command(*SMALL, *ORACLE, script=copy, PYTHONPATH=str(command.folder))
        assert done.code == 0
    names = sorted(path.name for path in copy.parent.glob("results/*.json*"))
    run = "20260102_030405"
    assert names == [
        f"{run}.jsonl",
        f"{run}_2.jsonl",
        f"hallumaze_results_{run}.json",
        f"hallumaze_results_{run}_2.json",
    ]


def test_quiet(command: Command) -> None:
    done = command.run(*ORACLE, "--size", "4", "--seed", "1", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert done.results[0]["hallumaze_score"] == 0.947
    # A warning stays: nobody chose these agents.
    done = command.run(*SMALL, "--quiet")
    assert (done.code, done.out) == (0, "")
    assert "reference agents" in done.err


# ---- instead of a run


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_show_prints_the_exact_prompt(lang: str, command: Command) -> None:
    args = ["--size", "5", "--seeds", "1-2", "--mirage", "balanced", "--no-confidence"]
    done = command("--show", "--lang", lang, *args)
    assert (done.code, done.err) == (0, "")
    for seed in (1, 2):
        maze = MazeEngine(5, seed)
        config = MazeConfig(size=5, use_confidence=False, mirage="balanced", lang=lang)
        prompt = PromptBuilder(maze, config).build()
        block = f"--- system ---\n{prompt.system}\n--- user ---\n{prompt.user}\n"
        assert block in done.out
        assert prompt.sha256 in done.out
        assert maze.render(maze.solution_path, "balanced") in done.out
        assert f"MAZE 5×5 | START:(0,0) | EXIT:(4,4)\nSeed: {seed}\n" in done.out
    assert list(command.folder.iterdir()) == []


def test_show_calls_nobody(command: Command, server: Server) -> None:
    done = command("--show", *SMALL, **vendors(server))
    assert (done.code, done.err) == (0, "")
    assert server.requests == []
    # A hidden run would have written something.
    assert list(command.folder.iterdir()) == []
    plain = command("--show", *SMALL, "--no-mirage")
    assert "⚑ " not in plain.out.split("--- user ---")[1].split("===")[0]


def test_check_proves_key_and_model(command: Command, server: Server) -> None:
    """One is well, one has a wrong key, one a retired model; each says what to do."""

    def answer(request: Received) -> str | Say:
        model = request.body["model"]
        if model == "gpt-4o":
            words = f"Incorrect API key provided: {KEYS['openai']}."
            return error("openai", 401, words, "invalid_api_key")
        if model == "deepseek-reasoner":
            return error("openai", 404, "The model does not exist", "model_not_found")
        return "Hi"

    server.answer = answer
    env = vendors(server, "openai", "deepseek")
    models = ("compatible/good", "openai/gpt-4o", "deepseek/deepseek-reasoner")
    named = [word for model in models for word in ("--model", model)]
    done = command("--check", *named, COMPATIBLE_BASE_URL=server.base_url("compatible"), **env)
    assert done.code == 1
    assert [line.split(":")[0].strip() for line in done.out.splitlines()] == ["✓ compatible/good"]
    wrong, retired = done.err.splitlines()
    assert "openai/gpt-4o" in wrong and "OPENAI_API_KEY" in wrong and "HTTP 401" in wrong
    for part in ("deepseek-reasoner", "DEEPSEEK_MODEL", "--list-models", "HTTP 404"):
        assert part in retired
    assert [r.body["model"] for r in server.requests] == [m.split("/")[1] for m in models]
    # The cheapest call: one token, two letters.
    assert {r.body["max_tokens"] for r in server.requests} == {1}
    assert max(len(r.turns[0][1]) for r in server.requests) < 10
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize("action", ["--check", "--list-models"])
def test_without_a_key_there_is_nothing_to_check(action: str, command: Command) -> None:
    done = command(action)
    assert done.code == 2
    one_line(done, "ANTHROPIC_API_KEY")


@pytest.mark.parametrize("action", ["--check", "--list-models"])
def test_reference_agents_need_no_check(action: str, command: Command) -> None:
    done = command(action, *ORACLE)
    assert done.code in (0, 2)
    assert "square maze" not in done.err  # the agent was asked to play "Hi"
    assert "reference" in done.out + done.err


def test_list_models_asks_the_vendors_own_lists(command: Command, server: Server) -> None:
    server.models = ["model-b", "model-a", "evil\x1b[2J\x1b]0;title\x07"]
    env = vendors(server, "openai", "google")
    done = command("--list-models", "--model", "openai/x", "--model", "google/y", **env)
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if "model" in line] == [
        "openai/model-a",
        "openai/model-b",
        "google/model-a",
        "google/model-b",
    ]
    assert {r.method for r in server.requests} == {"GET"}
    assert "evil" in done.out


def poison(folder: Path, *modules: str) -> str:
    """A PYTHONPATH on which importing these ends the command."""
    for name in modules:
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    return str(folder)


def test_help_imports_no_sdk(command: Command, tmp_path: Path) -> None:
    sdks = ("anthropic", "openai", "google", "httpx", "pydantic", "rich")
    path = poison(tmp_path, *sdks, "genai_prices", "scipy")
    done = command("--help", PYTHONPATH=path, COLUMNS="80")
    assert (done.code, done.err) == (0, "")
    options = set(re.findall(r"--[a-z-]+", done.out))
    assert options >= {
        *("--config", "--size", "--runs", "--seed", "--max-tokens", "--group", "--no-mirage"),
        *("--no-confidence", "--output", "--csv", "--interactive"),  # v1.1
        *("--model", "--base-url", "--seeds", "--mirage", "--algorithm", "--lang"),
        *("--temperature", "--reasoning-effort", "--list-models", "--check", "--show"),
        *("--quiet", "--version", "--help", "--resume", "--results-dir", "--retries", "--timeout"),
        *("--concurrency", "--max-cost", "--max-time", "--batch", "--batch-wait", "--dry-run"),
    }
    for name in KEYS:
        for end in ("_API_KEY", "_MODEL", "_BASE_URL"):
            assert f"{name.upper()}{end}" in done.out
    assert "GEMINI_API_KEY" in done.out and "130" in done.out and "70" in done.out
    short = command("run", "-h", PYTHONPATH=path, COLUMNS="80")
    assert (short.code, short.out) == (0, done.out)
    # Nor does anything else that calls nobody.
    version = command("--version", PYTHONPATH=path)
    assert (version.code, version.err) == (0, "")
    assert re.fullmatch(r"HalluMaze \d+\.\d+\.\d+\n", version.out)
    assert command("--show", *SMALL, PYTHONPATH=path).code == 0
    assert command.run(*SMALL, PYTHONPATH=path).code == 0


# ---- exit codes, and users' own providers

CUSTOM = """
def _call_custom(self, prompt, max_tokens, system):
    import json
    from urllib.request import Request, urlopen
    body = {"model": self.model, "max_tokens": max_tokens, "messages": [
        {"role": "system", "content": system}, {"role": "user", "content": prompt}]}
    request = Request(
        "URL/v1/chat", json.dumps(body).encode(),
        {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"})
    with urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]
"""


def test_a_provider_added_as_v1_1_shows(command: Command, server: Server) -> None:
    copy = command.copy(CUSTOM.replace("URL", server.url))
    args = ("--model", "custom/thing", *SMALL, "--group", "C", "--output", str(command.output))
    done = command(*args, script=copy, CUSTOM_API_KEY="FAKE-custom-5555")
    assert (done.code, done.err) == (0, "")
    (result,) = done.results
    assert (result["provider"], result["model"]) == ("custom", "thing")
    assert (result["hallumaze_score"], result["nudge_sent"]) == (0.947, True)
    assert result["params_sent"]["max_tokens"] == 2500
    first, second = server.requests
    prompt = prompt_of(done)
    assert first.headers["authorization"] == "Bearer FAKE-custom-5555"
    assert (first.system, first.turns) == (prompt.system, [("user", prompt.user)])
    # A conversation of several turns is flattened into one prompt, whole and in order.
    ((role, text),) = second.turns
    places = [text.index(part) for part in (prompt.user, result["raw_response"], result["hint"])]
    assert role == "user" and places == sorted(places)


def test_a_subclass_in_a_script(command: Command, tmp_path: Path) -> None:
    copy = command.copy()
    script = copy.with_name("mine.py")
    script.write_text(
        "import hallumaze as h\n"
        "class Mine(h.LLMProvider):\n"
        "    def _call_mine(self, prompt, max_tokens, system):\n"
        "        assert self.api_key == 'FAKE-mine-6666' and self.model == 'm'\n"
        "        return h.LLMProvider('reference', 'oracle').complete(\n"
        "            system, [{'role': 'user', 'content': prompt}], max_tokens).text\n"
        "mazes = [h.MazeEngine(5, seed) for seed in (1, 2)]\n"
        "provider = Mine('mine', 'm', 'FAKE-mine-6666')\n"
        "for r in h.BenchmarkRunner([provider], mazes, h.MazeConfig(size=5)).run_all():\n"
        "    print(r.provider, r.model, r.maze_seed, r.outcome, round(r.hallumaze_score, 6))\n"
    )
    done = command(script=script)
    assert (done.code, done.err) == (0, "")
    assert done.out == "mine m 1 ok 0.947\nmine m 2 ok 0.947\n"


@pytest.mark.parametrize("stub", ["raise NotImplementedError", "pass"])
def test_wired_to_nothing_writes_nothing(stub: str, command: Command) -> None:
    copy = command.copy(f"def _call_stub(self, prompt, max_tokens, system):\n    {stub}")
    args = (*ORACLE, "--model", "stub/x", *SMALL, "--csv", "--output", str(command.output))
    done = command(*args, script=copy)
    assert done.code == 70
    assert "stub" in done.err and len(done.err.splitlines()) == 1
    assert not command.output.exists() and not command.output.with_suffix(".csv").exists()


def test_a_user_s_own_mistake_is_an_error_record(command: Command) -> None:
    method = (
        "def _call_mine(self, prompt, max_tokens, system):\n"
        "    raise KeyError(f'choices {self.api_key} \\x1b[31m')"
    )
    copy = command.copy(method)
    args = ("--model", "mine/x", *ORACLE, *SMALL, "--output", str(command.output))
    done = command(*args, script=copy, MINE_API_KEY="FAKE-mine-6666")
    assert done.code == 1
    failed, oracle = done.results
    assert (failed["outcome"], failed["sr"], failed["hallumaze_score"]) == ("error", None, None)
    assert "KeyError" in failed["error"] and "FAKE-mine" not in failed["error"]
    assert oracle["hallumaze_score"] == 0.947
    rows = {row["model"]: (row["n"], row["n_error"]) for row in done.document["aggregate"]}
    assert rows == {"x": (0, 1), "oracle": (1, 0)}


# a person, a timeout, a terminal that is gone
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_saves_what_was_finished(
    sent: signal.Signals, command: Command, server: Server
) -> None:
    server.script(Say(), Say(), Say(silence=PATIENCE_S))
    url = server.base_url("compatible")
    args = ("--model", "compatible/slow", "--base-url", url, *SMALL, "--runs", "5", "--csv")
    process = command.start(*args, "--concurrency", "1", "--output", str(command.output))
    until(lambda: len(server.requests) == 3)
    process.send_signal(sent)
    out, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, out, err, command.output)
    command.look_through(done, {})
    assert done.code == 130
    (line,) = unstamped(err)
    assert line.startswith("interrupted: saving the trials that were finished: 2; go on with --res")
    assert [(r["run"], r["hallumaze_score"]) for r in done.results] == [(1, 0.947), (2, 0.947)]
    assert command.output.with_suffix(".csv").exists()
    assert "JSON saved" in out
    assert len(server.requests) == 3


def test_calls_in_flight_may_end_after_an_interrupt(command: Command, server: Server) -> None:
    """What is paid for already is waited for, some seconds; nothing more is started."""
    server.script(*[Say(silence=1.5)] * CONCURRENCY)
    url = server.base_url("compatible")
    args = ("--model", "compatible/slow", "--base-url", url, *SMALL, "--runs", "20")
    process = command.start(*args, "--output", str(command.output))
    until(lambda: len(server.requests) == CONCURRENCY)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, out, err, command.output)
    command.look_through(done, {})
    assert (done.code, len(server.requests)) == (130, CONCURRENCY)
    assert [(r["run"], r["outcome"]) for r in done.results] == [(n, "ok") for n in range(1, 9)]
    (line,) = unstamped(err)
    assert line.startswith(f"interrupted: saving the trials that were finished: {CONCURRENCY};")


# ---- errors, keys and strangers' texts


def test_errors_never_carry_a_key(command: Command, server: Server) -> None:
    """Four vendors, four ways to hand the key back; two keys have dirt around them."""

    def answer(request: Received) -> Say:
        name, key = sender(request), KEYS[sender(request)]
        if name == "anthropic":
            return error("anthropic", 401, f"invalid x-api-key: {key}", "authentication_error")
        if name == "openai":
            return error("openai", 401, f"Incorrect API key provided: {key}", "invalid_api_key")
        if name == "google":
            return error("google", 400, f"API key not valid: {key}", "INVALID_ARGUMENT")
        headers = "<br>".join(f"{k}: {v}" for k, v in request.headers.items())
        page = f"<html><title>403</title><body>{headers}\x1b[31m</body></html>"
        return Say(page, 403, content_type="text/html")

    server.answer = answer
    env = vendors(server)
    env["OPENAI_API_KEY"] += "\n"
    env["DEEPSEEK_API_KEY"] = f"“{env['DEEPSEEK_API_KEY']}”"
    done = command.run(*SMALL, "--csv", **env)
    assert (done.code, done.err) == (1, "")
    assert [r["outcome"] for r in done.results] == ["error"] * 4
    for result in done.results:
        assert f"{result['provider'].upper()}_API_KEY" in result["error"]
        name = f"{result['provider']}/{result['model']}"
        assert result["error"].startswith(f"{name}: ")
        why = result["error"].removeprefix(f"{name}: ")
        (line,) = [line for line in done.out.splitlines() if f"! {name}" in line]
        assert unstamped(line) == [f"! {name} seed 1: error, not a score: {why}"]
        assert [result[key] for key in ("sr", "mei", "brs", "hallumaze_score")] == [None] * 4
    assert [row["n_error"] for row in done.document["aggregate"]] == [1] * 4
    nothing = {"usage": dict.fromkeys(USAGE_KEYS), "cost_usd": None, "n_unpriced": 0}
    assert done.document["spending"] == nothing
    assert "best score" not in done.out and "🥇" not in done.out
    assert sorted(map(sender, server.requests)) == sorted(KEYS)  # none is tried again


def test_quiet_still_says_why_it_failed(command: Command, server: Server) -> None:
    """Exit 1 without a word would leave whoever reads cron's mail with nothing."""
    server.answer = lambda request: error("openai", 401, "no such key", "invalid_api_key")
    done = command.run("--model", "openai/x", *SMALL, "--quiet", **vendors(server, "openai"))
    assert (done.code, done.out) == (1, "")
    (line,) = unstamped(done.err)
    assert line.startswith("! openai/x seed 1: error, not a score: ") and "HTTP 401" in line


def test_strangers_texts_never_steer_the_terminal(command: Command, server: Server) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold red]x[/] \u202egnp\u2028\x9b31m"
    says = iter([error("openai", 400, f"rejected {evil}"), f"{evil}\nSTEP 1: (0,0) → {evil}"])
    server.answer = lambda request: next(says)
    model = f"compatible/evil{evil}"
    url = server.base_url("compatible")
    more = ("--runs", "2", "--csv", "--concurrency", "1")
    done = command.run("--model", model, "--base-url", url, *SMALL, *more)
    assert done.code == 1  # Command has looked for control characters
    for sign in ("\u202e", "\u2028"):
        assert sign not in done.out + done.err
    assert "[bold red]x[/]" in done.out  # as it is, not as a colour
    first, second = done.results
    assert (first["outcome"], second["outcome"]) == ("error", "unreadable")
    assert second["raw_response"].startswith(evil)  # the answer itself is kept byte for byte
    assert second["model"] == f"evil{evil}"


def test_what_utf_8_cannot_hold_is_no_crash(command: Command, server: Server) -> None:
    """A byte of another encoding in a model's name: one line, or an error record."""
    model = os.fsdecode(b"compatible/caf\xe9")
    url = server.base_url("compatible")
    done = command.run("--model", model, "--base-url", url, *SMALL)
    assert done.code in (0, 1, 2)
    if done.code != 2:
        assert len(done.results) == 1


# ---- packages that are not there


def without_packages(folder: Path, *names: str) -> str:
    """A PYTHONPATH that makes Python find none of these packages, as if never installed."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Finder(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        f"        hidden = name in {names!r}\n"
        "        return None if hidden else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(PathFinder)] = Finder\n"
    )
    return str(folder)


def test_v1_1_s_minimal_install(command: Command, server: Server, tmp_path: Path) -> None:
    """anthropic and rich alone: a missing package is missed when its provider is used."""
    path = without_packages(tmp_path, "openai", "google.genai", "genai_prices", "scipy", "filelock")
    env = vendors(server, "anthropic")
    done = command.run(*SMALL, PYTHONPATH=path, **env)
    assert (done.code, done.err) == (0, "")
    assert done.results[0]["hallumaze_score"] == 0.947
    # What was used is known; what that costs is not, and nobody believes it is nothing.
    spending = done.document["spending"]
    assert (spending["usage"]["input"], spending["cost_usd"], spending["n_unpriced"]) == (
        11,
        None,
        1,
    )
    assert "the price of 1 trials is unknown" in done.out
    server.requests.clear()
    command.output.unlink()
    cases = {
        "openai/x": "pip install openai",
        "deepseek/x": "pip install openai",
        "google/x": "pip install google-genai",
    }
    for model, words in cases.items():
        args = ("--model", "anthropic/x", "--model", model, *SMALL)
        refused = command.run(*args, PYTHONPATH=path, **vendors(server))
        assert refused.code == 2
        one_line(refused, words)
    assert server.requests == [] and not command.output.exists()


def test_a_package_that_does_not_import_loses_nothing(
    command: Command, server: Server, tmp_path: Path
) -> None:
    """A half-installed SDK: refused before anything is sent, or what was finished is saved."""
    (tmp_path / "openai.py").write_text("raise ImportError('no module named jiter')\n")
    args = ("--model", "google/x", "--model", "openai/x", *SMALL)
    done = command.run(*args, PYTHONPATH=str(tmp_path), **vendors(server, "google", "openai"))
    assert done.code in (1, 2)
    assert len(done.err.splitlines()) <= 1
    assert "openai" in done.out + done.err
    assert not server.requests or command.output.exists()


# ---- streams that cannot, or can no longer


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "ascii:strict", "LANG": "ko_KR.UTF-8"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "cp949"},
    ],
)
def test_a_stream_that_cannot_print_it_crashes_nothing(
    env: dict[str, str], command: Command, tmp_path: Path
) -> None:
    done = command.run("--size", "4", "--seed", "1", **env)
    assert done.code == 0
    assert "MEI=0.900" in done.out
    assert len(done.results) == len(AGENTS)
    assert "확신도" in done.results[0]["raw_response"]  # the file is UTF-8 whatever the stream is
    for action in ("--show", "--help"):
        assert command(action, "--lang", "ko", *SMALL, **env).code == 0
    config = tmp_path / "한글.json"
    config.write_text('{"maze": {"size": 5}, "providers": []}', encoding="utf-8")
    assert command.run("--config", str(config), "--seed", "1", **env).code == 0


def nobody_reads(command: Command, *args: str) -> Done:
    """The command with a stdout whose reader has gone, as after `| head -1`."""
    read, write = os.pipe()
    os.close(read)
    process = command.start(*args, stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, "", err, command.output)
    command.look_through(done, {})
    return done


@pytest.mark.parametrize("action", ["--help", "--version", "--show"])
def test_a_reader_who_has_gone(action: str, command: Command) -> None:
    done = nobody_reads(command, action)
    assert (done.code, done.err) == (0, "")


def test_a_run_whose_reader_has_gone_is_saved(command: Command) -> None:
    """`… | head -1` must not throw away answers that were paid for."""
    done = nobody_reads(command, *SMALL, *ORACLE, "--output", str(command.output))
    assert done.err == ""
    assert [r["hallumaze_score"] for r in done.results] == [0.947]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_under_the_log_is_one_line(command: Command) -> None:
    with open("/dev/full", "w") as full:
        process = command.start(*SMALL, *ORACLE, "--output", str(command.output), stdout=full)
        _, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, "", err, command.output)
    command.look_through(done, {})
    assert len(err.splitlines()) <= 1
    assert [r["hallumaze_score"] for r in done.results] == [0.947]


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_never_open(closed: str, command: Command) -> None:
    """As some daemons start their children."""
    shell = f'exec "$@" {closed}'
    argv = ["sh", "-c", shell, "sh", sys.executable, str(SCRIPT), *SMALL, *ORACLE]
    ended = subprocess.run(
        [*argv, "--output", str(command.output)],
        env=command.env(),
        cwd=command.folder,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    done = Done(ended.returncode, ended.stdout, ended.stderr, command.output)
    command.look_through(done, {})
    assert done.code == 0
    assert [r["hallumaze_score"] for r in done.results] == [0.947]


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell closes the streams")
def test_a_closed_stdin_is_no_terminal(command: Command) -> None:
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, str(SCRIPT)],
        env=command.env(),
        cwd=command.folder,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 2
    one_line(Done(2, ended.stdout, ended.stderr, command.output), "ANTHROPIC_API_KEY")


def test_nothing_was_left_in_the_repository() -> None:
    """These tests write in folders of their own; a bare run would write here."""
    assert not (ROOT / "config.json").exists()


# ---- what must never be lost, and what must never be shown


@pytest.mark.parametrize("field", ["id", "finish_reason", "content", "reasoning_content"])
def test_a_lone_surrogate_anywhere_in_an_answer_is_kept_out(
    field: str, command: Command, server: Server
) -> None:
    """JSON lets half a character pass, UTF-8 does not: the file must be written all the same."""
    message = {"role": "assistant", "content": "STEP 1: (0,0) → E | 90%"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body: dict[str, Any] = {"id": "x", "object": "chat.completion", "choices": [choice]}
    where = {"id": body, "finish_reason": choice}.get(field, message)
    where[field] = f"{where.get(field, '')}\ud800"
    server.script(Say(body=json.dumps(body)))
    url = server.base_url("compatible")
    done = command.run("--model", "compatible/odd", "--base-url", url, *SMALL)
    assert (done.code, len(done.results)) == (0, 1)


def test_an_output_that_is_a_link_is_written_through_it(command: Command) -> None:
    real, link = command.folder / "real.json", command.folder / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    done = command(*SMALL, *ORACLE, "--output", str(link))
    assert done.code == 0
    assert link.is_symlink()
    assert json.loads(real.read_text("utf-8"))["results"][0]["model"] == "oracle"


@pytest.mark.parametrize("between", [0.0, 0.5])
def test_a_second_interrupt_does_not_stop_the_saving(
    between: float, command: Command, server: Server
) -> None:
    """It ends the wait for the call in flight, whose answer would come in time after the first."""
    server.script(Say(), Say(silence=4.0))
    url = server.base_url("compatible")
    args = ("--model", "compatible/slow", "--base-url", url, *SMALL, "--runs", "5")
    process = command.start(*args, "--concurrency", "1", "--output", str(command.output))
    until(lambda: len(server.requests) == 2)
    process.send_signal(signal.SIGINT)
    time.sleep(between)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, out, err, command.output)
    command.look_through(done, {})
    assert (done.code, len(server.requests)) == (130, 2)
    (line,) = unstamped(err)
    # Two signals at the same moment may be one to the run: then the answer came, and is saved.
    finished = 1 if between else len(done.results)
    assert finished in (1, 2) and len(done.results) == finished
    assert line.startswith(f"interrupted: saving the trials that were finished: {finished};")


def test_actions_exclude_each_other(command: Command) -> None:
    done = command("--check", "--list-models", *ORACLE)
    assert done.code == 2
    one_line(done, "--list-models")


def test_runs_have_a_limit(command: Command) -> None:
    done = command("--runs", "1000000000000", *ORACLE)
    assert done.code == 2
    one_line(done, "--runs")


def test_a_run_under_nohup_outlives_its_terminal(command: Command, server: Server) -> None:
    server.script(Say(silence=1.0))
    url = server.base_url("compatible")
    args = ("--model", "compatible/slow", "--base-url", url, *SMALL)
    argv = command.argv(*args, "--output", str(command.output))
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", argv[0], *argv[3:]],  # as it is started
        env=command.env(),
        cwd=command.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: len(server.requests) == 1)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert len(json.loads(command.output.read_text("utf-8"))["results"]) == 1
