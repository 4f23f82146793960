"""--batch: the vendors' batch interfaces, over loopback and the real SDKs."""

from __future__ import annotations

import json
import math
import signal
from collections import Counter
from typing import Any

import pytest
from commands import PATIENCE_S, Command, Done, until
from servers import Received, Say, Server, answer, error, solution

MODELS = {
    "anthropic": "claude-sonnet-4-20250514",
    "openai": "gpt-4o",
    "google": "gemini-2.5-flash",
}
# USD of 11 tokens read and 7 written, which is what the server says of every answer: list prices
# per million tokens are 3 and 15, 2.50 and 10, 0.30 and 2.50; a batch costs half.
COST = {"anthropic": 138e-6, "openai": 97.5e-6, "google": 20.8e-6}


def setting(provider: str, server: Server) -> dict[str, str]:
    name = provider.upper()
    return {f"{name}_API_KEY": "sk-batch-0123456789", f"{name}_BASE_URL": server.base_url(provider)}


def batch(command: Command, server: Server, provider: str, *args: str, **env: str) -> Done:
    given = ("--model", f"{provider}/{MODELS[provider]}", "--size", "5", "--batch", *args)
    return command.run(*given, **setting(provider, server), **env)


def resumed(command: Command, server: Server, provider: str, *args: str) -> Done:
    return command.run("--resume", *args, **setting(provider, server))


def calls(server: Server) -> list[Received]:
    """The requests for a single answer."""
    paths = ("/messages", "/chat/completions", ":generateContent")
    return [r for r in server.requests if r.method == "POST" and r.path.endswith(paths)]


@pytest.mark.parametrize("provider", MODELS)
def test_a_batch_scores_what_single_calls_score(
    command: Command, server: Server, provider: str
) -> None:
    args = ("--model", f"{provider}/{MODELS[provider]}", "--size", "5", "--seeds", "1-6")
    single = command.run(*args, **setting(provider, server))
    assert (single.code, len(server.requests)) == (0, 6)
    singly = single.results
    server.requests.clear()
    server.pending = 1
    done = batch(command, server, provider, "--seeds", "1-6", "--csv")
    assert (done.code, calls(server)) == (0, [])
    (sent,) = server.batches
    assert len(sent.requests) == 6
    scores = [[t["maze_seed"], t["hallumaze_score"], t["raw_response"]] for t in done.results]
    assert scores == [[t["maze_seed"], t["hallumaze_score"], t["raw_response"]] for t in singly]
    for alone, together in zip(singly, done.results, strict=True):
        assert together["batch_id"] == sent.id
        assert alone["batch_id"] == ""
        assert together["usage"]["input"] == 11
        assert together["cost_usd"] == round(COST[provider] / 2, 6)
        assert alone["cost_usd"] == round(COST[provider], 6)
        assert (together["latency_s"], alone["latency_s"] is None) == (None, False)
    assert done.document["spending"]["usage"]["output"] == 6 * 7


@pytest.mark.parametrize("provider", MODELS)
def test_each_trial_of_a_batch_has_its_own_fate(
    command: Command, server: Server, provider: str
) -> None:
    fates: list[Any] = [(400, "no such thing"), "expired", "missing", (529, "busy"), None]
    ids: list[str] = []

    def verdict(request: Received) -> Any:
        if request.custom_id not in ids:
            ids.append(request.custom_id)
        return fates[ids.index(request.custom_id)]

    server.verdict = verdict
    done = batch(command, server, provider, "--seeds", "1-5")
    assert done.code == 1
    outcomes = [trial["outcome"] for trial in done.results]
    assert outcomes == ["error"] * 4 + ["ok"]
    errors = [trial["error"] for trial in done.results]
    assert "no such thing" in errors[0]
    assert "expire" in errors[1].lower()
    assert "says nothing of it" in errors[2]
    assert "busy" in errors[3]
    assert [t["error_retryable"] for t in done.results[:4]] == [False, True, True, True]
    server.verdict = lambda request: None
    again = resumed(command, server, provider)  # by batch, as the run was begun
    assert (again.code, calls(server)) == (0, [])
    assert [len(b.requests) for b in server.batches] == [5, 4]
    assert [trial["outcome"] for trial in again.results] == ["ok"] * 5


@pytest.mark.parametrize("provider", MODELS)
def test_a_batch_that_is_left_is_collected_later(
    command: Command, server: Server, provider: str
) -> None:
    server.pending = math.inf
    done = batch(command, server, provider, "--seeds", "1-3", "--batch-wait", "0")
    assert done.code == 1
    assert "trials: 3" in done.err and "--resume" in done.err
    assert not done.output.exists()
    still = resumed(command, server, provider, "--batch-wait", "0")
    assert (still.code, len(server.batches)) == (1, 1)
    server.pending = 0
    again = resumed(command, server, provider)
    assert (again.code, len(server.batches), len(again.results)) == (0, 1, 3)
    assert Counter(trial["outcome"] for trial in again.results) == {"ok": 3}


@pytest.mark.parametrize(
    ("provider", "end"), [("anthropic", "expired"), ("openai", "failed"), ("google", "cancelled")]
)
def test_a_batch_that_ends_without_answers(
    command: Command, server: Server, provider: str, end: str
) -> None:
    server.batch_end = end
    done = batch(command, server, provider, "--seeds", "1-2")
    assert done.code == 1
    assert [trial["outcome"] for trial in done.results] == ["error"] * 2
    assert all(len(trial["error"]) > 20 for trial in done.results)
    server.batch_end = "completed"
    assert resumed(command, server, provider).code == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_run_that_ended_finds_its_batch_again(
    command: Command, server: Server, sent: signal.Signals, code: int
) -> None:
    server.pending = math.inf
    args = ("--model", "openai/gpt-4o", "--size", "5", "--seeds", "1-4", "--batch")
    running = command.start(*args, env=command.env(**setting("openai", server)))
    until(lambda: bool(server.batches) and server.batches[0].polls > 0)
    running.send_signal(sent)
    _, err = running.communicate()
    assert running.returncode == code
    assert ("trials: 4; collect them with --resume" in err) == (sent == signal.SIGINT)
    server.pending = 0
    done = resumed(command, server, "openai")
    assert (done.code, len(server.batches), len(done.results)) == (0, 1, 4)


def test_answers_to_other_prompts_are_asked_for_again(command: Command, server: Server) -> None:
    """As when the program has changed since: a trial of another id takes no old answer."""
    server.pending = math.inf
    assert batch(command, server, "openai", "--seeds", "1-3", "--batch-wait", "0").code == 1
    (path,) = command.folder.glob("results/*.jsonl")
    header, line = path.read_text().splitlines()
    entry = json.loads(line)
    entry["trials"] = {f"old-{name}" if n == 1 else name: n for name, n in entry["trials"].items()}
    path.write_text(f"{header}\n{json.dumps(entry)}\n")
    server.pending = 0
    done = resumed(command, server, "openai")
    assert (done.code, [len(b.requests) for b in server.batches]) == (0, [3, 1])
    assert [trial["outcome"] for trial in done.results] == ["ok"] * 3
    assert len({trial["batch_id"] for trial in done.results}) == 2


@pytest.mark.parametrize("provider", MODELS)
def test_a_batch_that_is_gone_is_named_and_stays_open(
    command: Command, server: Server, provider: str
) -> None:
    server.pending = math.inf
    assert batch(command, server, provider, "--seeds", "1-2", "--batch-wait", "0").code == 1
    (gone,) = server.batches
    server.batches.clear()
    lost = resumed(command, server, provider)
    assert (lost.code, server.batches) == (1, [])
    assert gone.id in lost.err and "not known" in lost.err and server.url in lost.err
    # As the message says: without its line its trials are submitted again.
    (path,) = command.folder.glob("results/*.jsonl")
    header, line = path.read_text().splitlines()
    path.write_text(f"{header}\n")
    server.pending = 0
    assert resumed(command, server, provider).code == 0
    assert len(server.batches) == 1
    # Found again, it is collected as if nothing had been.
    server.batches[:] = [gone]
    path.write_text(f"{header}\n{line}\n")
    assert resumed(command, server, provider).code == 0
    assert server.batches == [gone]


@pytest.mark.parametrize("provider", MODELS)
def test_a_parameter_that_a_batch_rejects_is_dropped(
    command: Command, server: Server, provider: str
) -> None:
    def verdict(request: Received) -> Any:
        body = json.dumps(request.body)
        return (400, "temperature is not supported") if "temperature" in body else None

    server.verdict = verdict
    done = batch(command, server, provider, "--seeds", "1-3")
    assert (done.code, len(server.batches)) == (0, 2)
    assert [trial["params_sent"]["dropped"] for trial in done.results] == [["temperature"]] * 3
    assert all("temperature" not in trial["params_sent"] for trial in done.results)


@pytest.mark.parametrize("provider", MODELS)
def test_a_submission_that_is_refused_is_tried_again_and_one_that_is_cut_is_not(
    command: Command, server: Server, provider: str
) -> None:
    first = [Say()] if provider == "openai" else []  # its file is sent before
    server.script(*first, error(provider, 429, "slow down"))
    assert batch(command, server, provider, "--seeds", "1-2").code == 0
    assert len(server.batches) == 1
    server.script(*first, Say(cut=True))
    done = batch(command, server, provider, "--seeds", "1-2")
    assert (done.code, len(server.batches)) == (1, 2)
    assert all("cut" in trial["error"] for trial in done.results)


@pytest.mark.parametrize("provider", MODELS)
def test_a_hint_follows_an_answer_of_a_batch(
    command: Command, server: Server, provider: str
) -> None:
    done = batch(command, server, provider, "--seeds", "1-2", "--group", "C")
    assert (done.code, len(server.batches), len(calls(server))) == (0, 1, 2)
    for trial in done.results:
        assert trial["nudge_sent"] and trial["first_answer"]["raw_response"]
        assert trial["usage"]["input"] == 2 * 11
        assert trial["cost_usd"] == pytest.approx(1.5 * COST[provider], abs=2e-6)


def test_who_has_no_batches_is_called(command: Command, server: Server) -> None:
    env = {**setting("deepseek", server), **setting("openai", server)}
    args = ("--model", "deepseek/deepseek-chat", "--model", "openai/gpt-4o")
    done = command.run(*args, "--size", "5", "--seeds", "1-3", "--batch", **env)
    assert (done.code, len(server.batches), len(calls(server))) == (0, 1, 3)
    assert "deepseek/deepseek-chat has no batches" in done.err
    assert [t["provider"] for t in done.results] == ["deepseek"] * 3 + ["openai"] * 3


def test_a_batch_that_may_cost_too_much_is_not_sent(command: Command, server: Server) -> None:
    """At most 2,500 tokens at 10 USD a million, half of it: 0.0125 USD a trial, and its prompt."""
    done = batch(command, server, "openai", "--seeds", "1-9", "--max-cost", "0.05")
    assert done.code == 1
    assert "--max-cost is reached" in done.err
    assert [len(b.requests) for b in server.batches] == [3]


def test_an_error_with_details_does_not_hide_the_others(command: Command, server: Server) -> None:
    """Google's SDK cannot read such a batch; every answer in it has been paid for."""
    wrong = {"code": 3, "message": "odd", "details": [{"@type": "x", "field": [{"a": 1}]}]}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "thoughtsTokenCount": 3}

    def inlined(request: Received) -> Say:
        rows: list[Any] = []
        for k, asked in enumerate(server.batches[0].requests):
            text = {"content": {"parts": [{"text": solution(asked)}]}, "finishReason": "STOP"}
            said = {"candidates": [text], "usageMetadata": usage, "responseId": "r"}
            row = {"error": wrong} if k == 1 else {"response": said}
            rows.append({**row, "metadata": asked.metadata})
        output = {"inlinedResponses": {"inlinedResponses": rows}}
        metadata = {"state": "BATCH_STATE_SUCCEEDED", "output": output}
        return Say({"name": server.batches[0].id, "metadata": metadata, "done": True})

    server.pending = math.inf
    batch(command, server, "google", "--seeds", "1-3", "--batch-wait", "0")
    server.script(inlined(server.requests[0]))
    done = resumed(command, server, "google", "--batch-wait", "0")
    assert [trial["outcome"] for trial in done.results] == ["ok", "error", "ok"]
    assert "odd" in done.results[1]["error"]
    assert done.results[0]["usage"] == {"input": 11, "output": 10, "reasoning": 3, "cached": None}


@pytest.mark.parametrize("provider", MODELS)
def test_a_batch_that_cannot_be_asked_for_stays_open(
    command: Command, server: Server, provider: str
) -> None:
    server.pending = math.inf
    batch(command, server, provider, "--seeds", "1-3", "--batch-wait", "0")
    server.pending = 0
    server.script(error(provider, 401, "no such key"))
    done = resumed(command, server, provider)
    assert (done.code, done.output.exists()) == (1, False)
    assert "the key was rejected" in done.err.splitlines()[-1]
    again = resumed(command, server, provider)
    assert (again.code, len(again.results), len(server.batches)) == (0, 3, 1)


def test_a_budget_counts_what_is_at_work_and_waits_for_it(command: Command, server: Server) -> None:
    """At most 0.0125 USD a trial and its prompt: 0.03 are two; the oracle costs nothing."""
    free = ("--model", "reference/oracle", "--max-cost", "0.03")
    server.pending = math.inf
    done = batch(command, server, "openai", "--seeds", "1-6", "--batch-wait", "0", *free)
    assert done.code == 1
    assert [trial["model"] for trial in done.results] == ["oracle"] * 6
    waiting = resumed(command, server, "openai", "--max-cost", "0.03", "--batch-wait", "0")
    assert (waiting.code, [len(b.requests) for b in server.batches]) == (1, [2])
    server.pending = 1
    done = resumed(command, server, "openai", "--max-cost", "0.03")
    assert (done.code, len(done.results)) == (1, 2 + 6)
    whole = resumed(command, server, "openai")
    assert (whole.code, len(whole.results)) == (0, 12)
    silent = resumed(command, server, "openai", "--max-cost", "0.0001")
    assert (silent.code, silent.err) == (0, "")


def test_a_budget_that_another_model_has_spent_does_not_lose_a_batch(
    command: Command, server: Server
) -> None:
    def dear(request: Received) -> str | Say:
        if request.body["model"] == "gpt-4o":
            return solution(request)
        usage = {"prompt_tokens": 11, "completion_tokens": 10**6, "total_tokens": 10**6 + 11}
        return Say(answer("openai", solution(request), usage=usage))

    server.answer, server.pending = dear, 2
    args = ("--model", "deepseek/deepseek-chat", "--concurrency", "1", "--max-cost", "0.1")
    env = setting("deepseek", server)
    done = batch(command, server, "openai", "--seeds", "1-3", *args, **env)
    assert done.code == 1 and "--max-cost is reached" in done.err
    assert Counter(trial["provider"] for trial in done.results) == {"openai": 3, "deepseek": 1}


def test_a_submission_that_is_interrupted_is_told_of(command: Command, server: Server) -> None:
    server.script(Say(silence=PATIENCE_S))
    args = ("--model", f"anthropic/{MODELS['anthropic']}", "--size", "5", "--seed", "1", "--batch")
    running = command.start(*args, env=command.env(**setting("anthropic", server)))
    until(lambda: bool(server.requests))
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 130
    assert "it may have taken a batch" in out + err
