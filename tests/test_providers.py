"""Section 4: the real SDKs against loopback servers that speak the vendors' wire formats.

Expected values come from the wire formats: what goes into the server must come out of the Reply.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from servers import Say, Server, answer, error, model_list

import hallumaze
from hallumaze import (
    LLMProvider,
    NotWiredError,
    ProviderError,
    Reply,
    UsageError,
    clean_key,
    price_usd,
    scrub,
)

KEY = "sk-test/SECRET+0123456789=abcdef"
MODEL = "model-x"
ASK = [{"role": "user", "content": "Where is the exit?"}]
WIRES = ("anthropic", "openai", "google")
PROVIDERS = (*WIRES, "deepseek", "compatible")
WIRE = {p: p if p in WIRES else "openai" for p in PROVIDERS}
LIMIT = {"anthropic": "max_tokens", "openai": "max_tokens", "google": "max_output_tokens"}
HTML = Say("<html><body><h1>Welcome</h1></body></html>", content_type="text/html")

Make = Callable[..., LLMProvider]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no key of this machine; base URLs of the environment that lead nowhere."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/nowhere")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "sk-of-the-environment")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    # Nothing here is encrypted, and reading the certificates is most of what a client costs.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    """A provider that talks to the loopback server and does not retry, unless told otherwise."""
    made: list[LLMProvider] = []

    def build(provider: str, **options: Any) -> LLMProvider:
        given: dict[str, Any] = {
            "model": MODEL,
            "api_key": KEY,
            "base_url": server.base_url(provider),
            "timeout": 10.0,
            "max_retries": 0,
        }
        made.append(LLMProvider(provider, **{**given, **options}))
        return made[-1]

    yield build
    for provider in made:
        provider.close()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody really sleeps; the seconds that were asked for."""
    asked: list[float] = []
    really_sleep = time.sleep

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        really_sleep(min(seconds, 0.001))

    monkeypatch.setattr(time, "sleep", sleep)
    return asked


def fails(provider: LLMProvider, *parts: str, max_tokens: int = 100) -> ProviderError:
    """The call fails with one line that holds the parts; no key and no SDK error is in it."""
    with pytest.raises(ProviderError) as caught:
        provider.complete("SYS", ASK, max_tokens)
    failure = caught.value
    shown = "".join(traceback.format_exception(failure))
    for form in (KEY, quote(KEY, ""), quote_plus(KEY), repr(KEY)[1:-1]):
        assert form not in shown
    assert failure.__context__ is None and failure.__cause__ is None
    text = str(failure)
    assert text.isprintable() and len(text) < 700
    for part in (f"{provider.provider}/{provider.model}", *parts):
        assert part.lower() in text.lower(), text
    return failure


# ---- answers


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_normal_answer(name: str, make: Make, server: Server) -> None:
    server.answer = lambda request: "FINAL_PATH: (0,0)→(0,1) 출구"
    reply = make(name).complete("SYS", ASK, 321)
    assert reply.text == "FINAL_PATH: (0,0)→(0,1) 출구"
    assert (reply.outcome, reply.reasoning) == ("ok", "")
    whole = {"anthropic": "end_turn", "openai": "stop", "google": "STOP"}
    assert reply.finish_reason == whole[WIRE[name]]
    assert reply.usage == {"input": 11, "output": 7, "reasoning": None, "cached": None}
    assert reply.params_sent == {
        "model": MODEL,
        LIMIT[WIRE[name]]: 321,
        "temperature": 0.0,
        "dropped": [],
    }
    assert 0 < reply.latency_s < 10
    assert reply.request_id in ("msg_1", "chatcmpl_1", "resp_1")


@pytest.mark.parametrize(
    ("name", "header"), [("anthropic", "request-id"), ("openai", "x-request-id")]
)
def test_the_request_id_is_the_one_that_support_asks_for(
    name: str, header: str, make: Make, server: Server
) -> None:
    provider = make(name)
    server.script(Say(headers={header: "req_7"}), Say())
    assert provider.complete("SYS", ASK, 321).request_id == "req_7"
    # The next answer names none: the one before is not its.
    assert provider.complete("SYS", ASK, 321).request_id in ("msg_1", "chatcmpl_1")


@pytest.mark.parametrize("name", PROVIDERS)
def test_what_the_server_receives(name: str, make: Make, server: Server) -> None:
    talk = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    make(name, temperature=0.5).complete("SYS", talk, 50)
    (request,) = server.requests
    assert request.system == "SYS"
    model = "model" if name == "google" else "assistant"
    assert request.turns == [("user", "one"), (model, "two"), ("user", "three")]
    if name == "google":
        assert request.path == f"/v1beta/models/{MODEL}:generateContent"
        assert request.headers["x-goog-api-key"] == KEY
        settings = request.body["generationConfig"]
        assert (settings["temperature"], settings["maxOutputTokens"]) == (0.5, 50)
        return
    path = {"anthropic": "/v1/messages"}.get(name, "/v1/chat/completions")
    assert request.path == path
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.body["model"], request.body["temperature"]) == (MODEL, 0.5)
    assert request.body["max_tokens"] == 50
    assert "max_completion_tokens" not in request.body


@pytest.mark.parametrize("name", PROVIDERS)
def test_without_a_temperature_none_is_sent(name: str, make: Make, server: Server) -> None:
    reply = make(name, temperature=None).complete("SYS", ASK, 50)
    body = server.requests[0].body
    assert "temperature" not in body and "temperature" not in body.get("generationConfig", {})
    assert "temperature" not in reply.params_sent


@pytest.mark.parametrize("name", PROVIDERS)
def test_reasoning_is_kept_apart(name: str, make: Make, server: Server) -> None:
    server.script(Say(answer(WIRE[name], "the text", thinking="a thought")))
    reply = make(name).complete("SYS", ASK, 50)
    assert (reply.text, reply.reasoning, reply.outcome) == ("the text", "a thought", "ok")


def test_reasoning_under_its_other_names(make: Make, server: Server) -> None:
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "a thought"}]},
        {"type": "text", "text": "the "},
        {"type": "text", "text": "text"},
    ]
    server.script(
        Say(answer("openai", "the text", reasoning="a thought")),
        Say(answer("openai", None, content=blocks)),
    )
    provider = make("compatible")
    for _ in range(2):
        reply = provider.complete("SYS", ASK, 50)
        assert (reply.text, reply.reasoning) == ("the text", "a thought")


def test_blocks_are_joined(make: Make, server: Server) -> None:
    claude = answer("anthropic", None)
    claude["content"] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    gemini = answer("google", None)
    gemini["candidates"][0]["content"]["parts"] = [{"text": "a"}, {"text": "b"}]
    server.script(Say(claude), Say(gemini))
    assert make("anthropic").complete("SYS", ASK, 50).text == "ab"
    assert make("google").complete("SYS", ASK, 50).text == "ab"


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_content_is_an_empty_answer(name: str, make: Make, server: Server) -> None:
    server.script(Say(answer(WIRE[name], None)))
    reply = make(name).complete("SYS", ASK, 50)
    assert (reply.text, reply.outcome) == ("", "ok")


@pytest.mark.parametrize(
    ("wire", "finish", "outcome"),
    [
        ("anthropic", "max_tokens", "truncated"),
        ("anthropic", "model_context_window_exceeded", "truncated"),
        ("anthropic", "pause_turn", "truncated"),
        ("anthropic", "stop_sequence", "ok"),
        ("anthropic", "refusal", "refused"),
        ("openai", "length", "truncated"),
        ("openai", "content_filter", "refused"),
        ("google", "MAX_TOKENS", "truncated"),
        ("google", "SAFETY", "refused"),
        ("google", "PROHIBITED_CONTENT", "refused"),
        ("google", "BLOCKLIST", "refused"),
        ("google", "SPII", "refused"),
        ("google", "RECITATION", "refused"),
    ],
)
def test_finish_reasons(wire: str, finish: str, outcome: str, make: Make, server: Server) -> None:
    server.script(Say(answer(wire, "STEP 1", finish)), Say(answer(wire, None, finish)))
    provider = make(wire)
    for text in ("STEP 1", ""):
        reply = provider.complete("SYS", ASK, 50)
        assert (reply.text, reply.finish_reason, reply.outcome) == (text, finish, outcome)


def test_a_refusal_in_words(make: Make, server: Server) -> None:
    server.script(Say(answer("openai", None, refusal="I cannot help with that.")))
    reply = make("openai").complete("SYS", ASK, 50)
    assert (reply.text, reply.outcome) == ("I cannot help with that.", "refused")


def test_a_blocked_prompt(make: Make, server: Server) -> None:
    counts = {"promptTokenCount": 11, "totalTokenCount": 11}
    server.script(
        Say({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": counts})
    )
    reply = make("google").complete("SYS", ASK, 50)
    assert (reply.text, reply.outcome) == ("", "refused")
    assert reply.finish_reason == "PROHIBITED_CONTENT"
    assert reply.usage == {"input": 11, "output": None, "reasoning": None, "cached": None}


def test_a_candidate_without_content(make: Make, server: Server) -> None:
    server.script(Say({"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]}))
    reply = make("google").complete("SYS", ASK, 50)
    assert (reply.text, reply.outcome) == ("", "truncated")


def test_lone_surrogates_can_be_stored(make: Make, server: Server) -> None:
    server.script(Say(answer("openai", "a\ud83db")))
    assert make("openai").complete("SYS", ASK, 50).text.encode("utf-8") == b"a?b"


# ---- no answers


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("openai", {**answer("openai", "x"), "choices": []}),
        ("openai", {"error": {"message": "upstream is gone", "code": 502}}),
        ("openai", {}),
        ("google", {}),
        ("google", {"candidates": []}),
    ],
)
def test_nothing_to_choose_from_is_an_error(
    wire: str, body: Any, make: Make, server: Server
) -> None:
    server.script(Say(body))
    words = ["upstream is gone"] if "error" in body else []
    assert fails(make(wire), *words).retryable


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_neither_says_nor_ends_is_an_error(
    wire: str, make: Make, server: Server
) -> None:
    server.script(Say(answer(wire, None, finish=None)))
    assert fails(make(wire), "broke off").retryable


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("openai", {**answer("openai", "x"), "choices": {"a": 1}}),
        ("openai", answer("openai", None, content=5)),
        ("anthropic", {**answer("anthropic", "x"), "content": 5}),
        ("google", {"candidates": [{"content": 5}]}),
    ],
)
def test_json_of_another_shape_is_an_error(
    wire: str, body: Any, make: Make, server: Server
) -> None:
    server.script(Say(body))
    assert not fails(make(wire), "JSON", "base URL").retryable


@pytest.mark.parametrize("finish", ["insufficient_system_resource", "error"])
def test_a_server_that_gives_up_is_an_error(finish: str, make: Make, server: Server) -> None:
    server.script(Say(answer("openai", "STEP 1", finish)))
    assert fails(make("deepseek"), finish).retryable


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
def test_a_web_page_is_an_error(name: str, content_type: str, make: Make, server: Server) -> None:
    server.script(Say("<html><body>Welcome</body></html>", content_type=content_type))
    assert not fails(make(name), "no JSON", "base URL").retryable


# ---- usage


def test_usage_of_anthropic_adds_the_cache_to_the_input(make: Make, server: Server) -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 3000,
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 40},
    }
    server.script(Say(answer("anthropic", "x", usage=usage)))
    reply = make("anthropic").complete("SYS", ASK, 50)
    assert reply.usage == {"input": 3210, "output": 50, "reasoning": 40, "cached": 200}


def test_usage_of_openai(make: Make, server: Server) -> None:
    usage = {
        "prompt_tokens": 3210,
        "completion_tokens": 50,
        "total_tokens": 3260,
        "prompt_tokens_details": {"cached_tokens": 200},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    server.script(Say(answer("openai", "x", usage=usage)))
    reply = make("deepseek").complete("SYS", ASK, 50)
    assert reply.usage == {"input": 3210, "output": 50, "reasoning": 40, "cached": 200}


def test_usage_of_google_adds_the_thoughts_to_the_output(make: Make, server: Server) -> None:
    usage = {
        "promptTokenCount": 3210,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 40,
        "cachedContentTokenCount": 200,
        "totalTokenCount": 3260,
    }
    server.script(Say(answer("google", "x", usage=usage)))
    reply = make("google").complete("SYS", ASK, 50)
    assert reply.usage == {"input": 3210, "output": 50, "reasoning": 40, "cached": 200}


@pytest.mark.parametrize("wire", WIRES)
def test_missing_usage(wire: str, make: Make, server: Server) -> None:
    body = answer(wire, "x")
    del body["usageMetadata" if wire == "google" else "usage"]
    server.script(Say(body))
    reply = make(wire).complete("SYS", ASK, 50)
    assert reply.text == "x"
    assert reply.usage == dict.fromkeys(("input", "output", "reasoning", "cached"))
    assert reply.cost_usd is None


# ---- cost

USED = {"input": 1000, "output": 200}


@pytest.mark.parametrize(
    ("provider", "model", "base_url", "usage", "cost"),
    [
        # 2.5 USD a million tokens read, 1.25 cached ones, 10 written
        ("openai", "gpt-4o", "", USED, 0.0045),
        ("openai", "gpt-4o", "", {**USED, "reasoning": 150}, 0.0045),  # part of what was written
        ("openai", "gpt-4o", "", {**USED, "cached": 400}, 0.004),
        ("openai", "gpt-4o", "", {**USED, "cached": 5000}, 0.00325),  # more than were read
        # 3, 0.3 and 15
        ("anthropic", "claude-sonnet-4-20250514", "", {**USED, "cached": 400}, 0.00492),
        # a server of somebody else by its address; one of one's own has no price
        ("compatible", "gpt-4o", "https://api.openai.com/v1", USED, 0.0045),
        ("compatible", "gpt-4o", "http://127.0.0.1:11434/v1", USED, None),
        ("mine", "gpt-4o", "", USED, None),
        ("openai", "no-such-model", "", USED, None),
        ("openai", "gpt-4o", "", {"input": 1000, "output": None}, None),
        ("openai", "gpt-4o", "", {"output": 200}, None),
    ],
)
def test_price(
    provider: str, model: str, base_url: str, usage: dict[str, int | None], cost: float | None
) -> None:
    assert price_usd(provider, model, base_url, usage) == (cost and pytest.approx(cost))


def test_a_reply_says_what_it_cost(make: Make, server: Server) -> None:
    counts = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
    server.script(*[Say(answer("openai", "x", usage=counts))] * 2)
    reply = make("openai", model="gpt-4o").complete("SYS", ASK, 50)
    assert reply.cost_usd == pytest.approx(0.0045)
    assert make("openai").complete("SYS", ASK, 50).cost_usd is None  # MODEL is nobody's


# ---- parameters

NO_TEMPERATURE = {
    "anthropic": error("anthropic", 400, "`temperature` is deprecated for this model."),
    "openai": error(
        "openai",
        400,
        "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default"
        " (1) value is supported.",
        "unsupported_value",
        "temperature",
    ),
    "google": error("google", 400, "temperature is not supported.", "INVALID_ARGUMENT"),
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_rejected_temperature_is_dropped_once(name: str, make: Make, server: Server) -> None:
    server.script(NO_TEMPERATURE[WIRE[name]])
    provider = make(name)
    for reply in (provider.complete("SYS", ASK, 50), provider.complete("SYS", ASK, 50)):
        assert reply.params_sent == {
            "model": MODEL,
            LIMIT[WIRE[name]]: 50,
            "dropped": ["temperature"],
        }
    assert len(server.requests) == 3
    bodies = [r.body.get("generationConfig", r.body) for r in server.requests]
    assert ["temperature" in body for body in bodies] == [True, False, False]


@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_only_the_text_names(status: int, make: Make, server: Server) -> None:
    words = "Unrecognized request argument supplied: reasoning_effort (known: temperature)"
    server.script(error("openai", status, words))
    reply = make("compatible", reasoning_effort="low").complete("SYS", ASK, 50)
    assert reply.params_sent["dropped"] == ["reasoning_effort"]
    assert server.requests[0].body["reasoning_effort"] == "low"
    assert "reasoning_effort" not in server.requests[1].body
    assert server.requests[1].body["temperature"] == 0.0


def refuses_limit(name: str, other: str) -> Say:
    words = f"Unsupported parameter: '{name}' is not supported with this model."
    return error("openai", 400, f"{words} Use '{other}' instead.", "unsupported_parameter", name)


def test_max_tokens_becomes_max_completion_tokens(make: Make, server: Server) -> None:
    server.script(refuses_limit("max_tokens", "max_completion_tokens"))
    provider = make("compatible")
    for _ in range(2):
        reply = provider.complete("SYS", ASK, 50)
        assert reply.params_sent["max_completion_tokens"] == 50
        assert reply.params_sent["dropped"] == ["max_tokens"]
    first, *later = [r.body for r in server.requests]
    assert first["max_tokens"] == 50 and len(later) == 2
    assert all(b["max_completion_tokens"] == 50 and "max_tokens" not in b for b in later)


def test_max_completion_tokens_becomes_max_tokens(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo

    def at_home(host: Any, *args: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host == "api.openai.com" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", at_home)
    server.script(refuses_limit("max_completion_tokens", "max_tokens"))
    provider = make("openai", base_url=f"http://api.openai.com:{server.port}/v1")
    reply = provider.complete("SYS", ASK, 50)
    assert reply.params_sent["max_tokens"] == 50
    first, second = [r.body for r in server.requests]
    assert first["max_completion_tokens"] == 50 and "max_tokens" not in first
    assert second["max_tokens"] == 50 and "max_completion_tokens" not in second


def test_a_negotiation_ends(make: Make, server: Server) -> None:
    swap = refuses_limit("max_tokens", "max_completion_tokens")
    back = refuses_limit("max_completion_tokens", "max_tokens")
    server.script(*[swap, back] * 9)
    fails(make("compatible"), "max_tokens")
    assert len(server.requests) == 3


def test_several_threads_negotiate_together(make: Make, server: Server) -> None:
    server.answer = lambda r: NO_TEMPERATURE["openai"] if "temperature" in r.body else "hello"
    provider = make("compatible")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: provider.complete("SYS", ASK, 50), range(24)))
    assert all(reply.text == "hello" for reply in replies)
    assert all(reply.params_sent["dropped"] == ["temperature"] for reply in replies)
    assert 25 <= len(server.requests) <= 32


def test_a_limit_that_is_too_large_keeps_its_name(make: Make, server: Server) -> None:
    words = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens"
    server.script(error("openai", 400, words, "invalid_value", "max_tokens"))
    fails(make("compatible"), "too large")
    assert len(server.requests) == 1


def test_everything_rejected_at_once(make: Make, server: Server) -> None:
    server.script(
        refuses_limit("max_tokens", "max_completion_tokens"),
        NO_TEMPERATURE["openai"],
        error("openai", 400, "no such effort", "unsupported_value", "reasoning_effort"),
    )
    reply = make("openai", reasoning_effort="max").complete("SYS", ASK, 50)
    assert reply.params_sent == {
        "model": MODEL,
        "max_completion_tokens": 50,
        "dropped": ["max_tokens", "reasoning_effort", "temperature"],
    }


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", MODEL, {"reasoning_effort": "high"}),
        ("anthropic", MODEL, {"output_config": {"effort": "high"}}),
        ("google", "gemini-3-pro", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google", "gemini-2.5-flash", {"thinkingBudget": 24576, "includeThoughts": True}),
    ],
)
def test_reasoning_effort(
    provider: str, model: str, expected: Any, make: Make, server: Server
) -> None:
    reply = make(provider, model=model, reasoning_effort="high").complete("SYS", ASK, 50)
    body = server.requests[0].body
    if provider == "google":
        config = body["generationConfig"]["thinkingConfig"]  # JSON of proto3: either case will do
        body = {re.sub("_([a-z])", lambda m: m[1].upper(), k): v for k, v in config.items()}
    assert expected.items() <= body.items()
    assert reply.params_sent["reasoning_effort"] == "high"


def test_rejected_efforts(make: Make, server: Server) -> None:
    words = {
        "anthropic": "This model does not support the effort parameter.",
        "google": "Thinking level is not supported for this model.",
    }
    for name in words:
        server.script(error(name, 400, words[name]))
        reply = make(name, reasoning_effort="low").complete("SYS", ASK, 50)
        assert reply.params_sent["dropped"] == ["reasoning_effort"]
        assert reply.params_sent["temperature"] == 0.0
    assert "output_config" in server.requests[0].body
    assert "output_config" not in server.requests[1].body
    assert "thinkingConfig" in server.requests[2].body["generationConfig"]
    assert "thinkingConfig" not in server.requests[3].body["generationConfig"]


@pytest.mark.parametrize("timeout", [300.0, 600.0])
def test_anthropic_takes_a_large_limit(timeout: float, make: Make, server: Server) -> None:
    make("anthropic", timeout=timeout).complete("SYS", ASK, 100_000)
    assert server.requests[0].body["max_tokens"] == 100_000


# ---- errors of servers

KEY_VARIABLE = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "compatible": "COMPATIBLE_API_KEY",
}


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_key(name: str, status: int, make: Make, server: Server) -> None:
    words = f"Incorrect API key provided: {KEY}. Tried ?key={quote(KEY, '')}&x=1, Bearer {KEY}."
    server.script(error(WIRE[name], status, words))
    failure = fails(make(name), KEY_VARIABLE[name], "key was rejected", str(status))
    assert (failure.status, failure.retryable) == (status, False)


def test_google_rejects_a_key_with_400(make: Make, server: Server) -> None:
    words = "API key not valid. Please pass a valid API key."
    server.script(error("google", 400, words, "INVALID_ARGUMENT"))
    fails(make("google"), "GOOGLE_API_KEY", "key was rejected")


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("anthropic", 404, "model: model-x"),
        ("openai", 404, "The model `model-x` does not exist or you do not have access to it."),
        ("openai", 403, "Project `p` does not have access to model `model-x`"),
        ("google", 404, "models/model-x is not found for API version v1beta"),
        ("deepseek", 400, "Model Not Exist"),
        ("compatible", 404, 'model "model-x" not found, try pulling it first'),
        ("compatible", 400, "The model `model-x` has been decommissioned"),
    ],
)
def test_a_model_that_is_not_there(
    name: str, status: int, words: str, make: Make, server: Server
) -> None:
    server.script(error(WIRE[name], status, words))
    variable = "--model" if name == "compatible" else f"{name.upper()}_MODEL"
    failure = fails(make(name), MODEL, variable, "--model", "--list-models")
    assert (failure.status, failure.retryable) == (status, False)


@pytest.mark.parametrize(
    ("name", "status", "words", "part"),
    [
        ("openai", 400, "This model's maximum context length is 4096 tokens.", "context"),
        ("compatible", 400, "the request exceeds the available context size", "context"),
        ("anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum", "context"),
        ("google", 400, "The input token count (9) exceeds the maximum number", "context"),
        ("anthropic", 400, "Your credit balance is too low to access the API", "credit"),
        ("deepseek", 402, "Insufficient Balance", "credit"),
        ("openai", 400, "the messages are malformed", "rejected"),
    ],
)
def test_what_a_retry_cannot_mend(
    name: str, status: int, words: str, part: str, make: Make, server: Server
) -> None:
    server.script(error(WIRE[name], status, words))
    assert not fails(make(name, max_retries=2), part, words[:20]).retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("status", "part"), [(429, "rate limit"), (500, "failed"), (503, "overload"), (529, "overload")]
)
def test_what_a_retry_may_mend(
    wire: str, status: int, part: str, make: Make, server: Server
) -> None:
    server.script(error(wire, status, "come back later"))
    failure = fails(make(wire), part, "come back later", str(status))
    assert (failure.status, failure.retryable) == (status, True)
    assert len(server.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", [408, 409, 500, 502, 504, 529])
def test_retries_until_it_works(
    wire: str, status: int, make: Make, server: Server, naps: list[float]
) -> None:
    server.script(error(wire, status, "come back later"))
    assert make(wire, max_retries=1).complete("SYS", ASK, 50).text == "hello"
    assert len(server.requests) == 2
    assert 0.3 < sum(naps) < 2


@pytest.mark.parametrize("wire", WIRES)
def test_retries_end(wire: str, make: Make, server: Server, naps: list[float]) -> None:
    server.script(*[error(wire, 500, "come back later")] * 9)
    fails(make(wire, max_retries=3), "failed")
    assert len(server.requests) == 4


@pytest.mark.parametrize("wire", WIRES)
def test_retry_after_is_honoured(wire: str, make: Make, server: Server) -> None:
    server.script(error(wire, 429, "slow down", headers={"retry-after": "2"}))
    started = time.monotonic()
    reply = make(wire, max_retries=1).complete("SYS", ASK, 50)
    assert time.monotonic() - started >= 2
    assert reply.text == "hello" and len(server.requests) == 2
    assert reply.latency_s < 2  # waiting is not answering


def test_google_says_in_the_body_how_long_to_wait(make: Make, server: Server) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}
    body = {"error": {"code": 429, "message": "slow down", "details": [info]}}
    server.script(Say(body, 429))
    started = time.monotonic()
    make("google", max_retries=1).complete("SYS", ASK, 50)
    assert time.monotonic() - started >= 2
    assert len(server.requests) == 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "header",
    [
        {"retry-after": "99999"},
        {"retry-after": "inf"},
        {"retry-after-ms": "99999000"},
        {"retry-after": "Fri, 31 Dec 2199 23:59:59 GMT"},
    ],
)
def test_retry_after_is_capped(
    wire: str,
    header: dict[str, str],
    make: Make,
    server: Server,
    naps: list[float],
) -> None:
    server.script(error(wire, 429, "slow down", headers=header))
    assert make(wire, max_retries=1).complete("SYS", ASK, 50).text == "hello"
    assert len(server.requests) == 2
    assert 100 < max(naps) <= 120


def test_an_empty_account_is_not_asked_again(make: Make, server: Server) -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    server.script(*[error("openai", 429, words, "insufficient_quota")] * 3)
    failure = fails(make("openai", max_retries=2), "quota", "billing")
    assert (failure.status, failure.retryable) == (429, False)
    assert len(server.requests) == 1


def test_the_words_of_a_server_are_not_trusted(make: Make, server: Server) -> None:
    words = "a\x1b[31mb\r\nc\u202e\u2028d <b>bold</b> " + "x" * 5000
    server.script(error("openai", 400, words))
    text = str(fails(make("openai")))
    assert text.isprintable() and "<b>" not in text and "bold" in text


def test_shortening_leaves_no_beginning_of_a_key(make: Make, server: Server) -> None:
    key = "k3y/SECRET+0123456789=abcdef"
    server.script(*[error("openai", 400, "." * n + " " + key) for n in range(280, 300)])
    provider = make("openai", api_key=key)
    for _ in range(280, 300):
        assert "k3y" not in str(fails(provider))


def test_a_web_page_as_an_error(make: Make, server: Server) -> None:
    page = "<html><title>502 Bad Gateway</title><body>nginx</body></html>"
    server.script(*[Say(page, 502, content_type="text/html")] * 3)
    for wire in WIRES:
        assert fails(make(wire), "502", "Bad Gateway").retryable


# ---- errors on the way


@pytest.mark.parametrize("wire", WIRES)
def test_silence(wire: str, make: Make, server: Server) -> None:
    provider = make(wire, timeout=1.0)
    provider.list_models()  # the import of an SDK is not what is measured
    server.script(Say(silence=60))
    started = time.monotonic()
    failure = fails(provider, "1 second")
    assert time.monotonic() - started < 3
    assert failure.retryable and failure.status is None


@pytest.mark.parametrize("wire", WIRES)
def test_a_body_that_never_ends(wire: str, make: Make, server: Server) -> None:
    server.script(Say(drip=60))
    started = time.monotonic()
    assert fails(make(wire, timeout=1.0), "1 second").retryable
    assert time.monotonic() - started < 10


def test_blanks_before_the_body_are_nothing(make: Make, server: Server) -> None:
    server.script(Say(drip=0.3))
    assert make("deepseek").complete("SYS", ASK, 50).text == "hello"


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_cut_in_the_middle(wire: str, make: Make, server: Server) -> None:
    server.script(Say(cut=True))
    assert fails(make(wire), "connection", "cut").retryable


@pytest.mark.parametrize("wire", WIRES)
def test_nobody_listens(wire: str, make: Make) -> None:
    failure = fails(make(wire, base_url="http://127.0.0.1:9"), "http://127.0.0.1:9", "connection")
    assert failure.retryable


# ---- models, check


@pytest.mark.parametrize("name", PROVIDERS)
def test_list_models(name: str, make: Make, server: Server) -> None:
    assert make(name).list_models() == ["model-a", "model-b"]
    assert server.requests[0].method == "GET"


def test_list_models_over_pages(make: Make, server: Server) -> None:
    first = {**model_list("anthropic", ["b"]), "has_more": True}
    server.script(Say(first), Say(model_list("anthropic", ["a"])))
    assert make("anthropic").list_models() == ["a", "b"]
    server.script(Say({**model_list("google", ["b"]), "nextPageToken": "t"}))
    server.script(Say(model_list("google", ["a"])))
    assert make("google").list_models() == ["a", "b"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_list_models_fails_in_one_line(name: str, make: Make, server: Server) -> None:
    provider = make(name)
    server.script(error(WIRE[name], 401, f"wrong key {KEY}"), HTML)
    with pytest.raises(ProviderError, match="key was rejected") as caught:
        provider.list_models()
    assert KEY not in str(caught.value)
    with pytest.raises(ProviderError, match="no JSON"):
        provider.list_models()


@pytest.mark.parametrize("name", PROVIDERS)
def test_check_asks_for_one_token(name: str, make: Make, server: Server) -> None:
    cut = {"anthropic": "max_tokens", "openai": "length", "google": "MAX_TOKENS"}[WIRE[name]]
    server.script(Say(answer(WIRE[name], "H", cut)))
    reply = make(name).check()
    assert (reply.text, reply.outcome) == ("H", "truncated")
    assert reply.params_sent[LIMIT[WIRE[name]]] == 1


def test_check_asks_for_more_where_it_must(make: Make, server: Server) -> None:
    few = error("openai", 400, "Could not finish the message because max_tokens was reached.")
    server.script(few, few)
    make("openai").check()
    limits = [r.body["max_tokens"] for r in server.requests]
    assert limits == sorted(limits) and limits[0] == 1 and len(limits) == 3


def test_check_stops_at_a_real_error(make: Make, server: Server) -> None:
    server.script(*[error("openai", 401, "bad token")] * 3)
    with pytest.raises(ProviderError):
        make("openai").check()
    assert len(server.requests) == 1


# ---- keys, base URLs, packages


@pytest.mark.parametrize(
    "pasted", [" k3y-abc\r\n", '"k3y-abc"', "'k3y-abc'", "\ufeffk3y-abc", "\u201ck3y-abc\u201d"]
)
def test_what_copying_adds_to_a_key(pasted: str) -> None:
    assert clean_key(pasted, "OPENAI_API_KEY") == "k3y-abc"


@pytest.mark.parametrize("bad", ["k3y abc", "k3y\nabc", "k3y\u2019abc", "키abc", "k3y\x00abc"])
def test_what_is_no_key(bad: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        clean_key(bad, "OPENAI_API_KEY")
    assert bad not in str(caught.value) and "abc" not in str(caught.value)


def test_no_key_at_all() -> None:
    assert clean_key(" \n", "OPENAI_API_KEY") == ""


def test_scrub() -> None:
    key = 'a+b/c="d\\e'
    forms = (key, quote(key, ""), quote_plus(key), repr(key), f"?key={quote(key)}&")
    cleaned = scrub(" ".join(forms), key)
    assert not any(form in cleaned for form in (key, quote(key, ""), repr(key)[1:-1]))
    for stranger in (
        "https://user:hunter22@host/",
        "GET /x?key=hunter22&y=1",
        "{'x-api-key': 'hunter22'}",
        "Authorization: Bearer hunter22",
        "sk-hunter22",
    ):
        assert "hunter22" not in scrub(stranger)
    assert scrub("the key was rejected: task-force") == "the key was rejected: task-force"


def test_a_provider_cleans_its_key(make: Make, server: Server) -> None:
    make("openai", api_key=f" {KEY}\n").complete("SYS", ASK, 50)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(UsageError):
        make("openai", api_key="k3y\u2019abc")


@pytest.mark.parametrize("name", ["anthropic", "openai", "google", "deepseek"])
def test_without_a_key_nothing_is_sent(name: str, make: Make, server: Server) -> None:
    with pytest.raises(UsageError, match=KEY_VARIABLE[name]):
        make(name, api_key=None).complete("SYS", ASK, 50)
    assert not server.requests


def test_compatible_needs_an_address_but_no_key(make: Make, server: Server) -> None:
    assert make("compatible", api_key=None).complete("SYS", ASK, 50).text == "hello"
    assert "sk-of-the-environment" not in server.requests[0].headers["authorization"]
    with pytest.raises(UsageError, match="base URL"):
        LLMProvider("compatible", MODEL)
    for url in ("localhost:11434/v1", "ftp://host/v1", "http:///v1", "http://[v1"):
        with pytest.raises(UsageError, match="http://"):
            LLMProvider("compatible", MODEL, base_url=url)


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
def test_google_at_an_address_with_a_version(version: str, make: Make, server: Server) -> None:
    make("google", base_url=f"{server.url}/gemini/{version}/").complete("SYS", ASK, 50)
    assert server.requests[0].path == f"/gemini/{version}/models/{MODEL}:generateContent"


@pytest.mark.parametrize(
    ("name", "package"),
    [("anthropic", "anthropic"), ("compatible", "openai"), ("google", "google-genai")],
)
def test_a_missing_package(
    name: str, package: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"google-genai": "google.genai"}.get(package, package)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=f"pip install {package}$"):
        make(name).complete("SYS", ASK, 50)


def test_no_sdk_is_imported_before_it_is_used() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import hallumaze;"
        "hallumaze.LLMProvider('openai', 'm', 'k');"
        "print([m for m in ('anthropic', 'openai', 'google.genai') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.strip() == "[]"


def test_one_client_for_each_provider(make: Make, server: Server) -> None:
    provider = make("compatible")
    clients = set()
    for _ in range(3):
        provider.complete("SYS", ASK, 50)
        clients.add(id(provider._openai))
    assert len(clients) == 1
    provider.close()
    assert provider.complete("SYS", ASK, 50).text == "hello"


# ---- a user's own provider

TALK = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]


class Custom(LLMProvider):
    def _call_custom(self, prompt: str, max_tokens: int, system: str) -> str:
        return f"{self.api_key}|{self.model}|{prompt}|{max_tokens}|{system}"


def test_a_method_on_a_subclass() -> None:
    reply = Custom("custom", "m", "k3y").complete("SYS", ASK, 50)
    assert isinstance(reply, Reply)
    assert reply.text == "k3y|m|Where is the exit?|50|SYS"
    assert reply.outcome == "ok" and reply.usage["input"] is None
    assert reply.params_sent["model"] == "m"


def test_a_method_put_on_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(self: LLMProvider, prompt: str, max_tokens: int, system: str) -> str:
        return f"{self.model}: {prompt}"

    monkeypatch.setattr(LLMProvider, "_call_mine", call, raising=False)
    assert LLMProvider("mine", "m").complete("SYS", ASK, 50).text == "m: Where is the exit?"


def test_a_conversation_reaches_it_as_one_prompt() -> None:
    text = Custom("custom", "m").complete("SYS", TALK, 50).text
    assert text.index("one") < text.index("two") < text.index("three")


def test_a_built_in_method_can_be_replaced(make: Make, server: Server) -> None:
    class Mine(LLMProvider):
        def _call_openai(self, prompt: Any, max_tokens: int, system: str) -> Any:
            assert isinstance(prompt, str)
            return "mine" if "local" in prompt else super()._call_openai(prompt, 9, system)

    provider = Mine("openai", MODEL, KEY, server.base_url("openai"))
    assert provider.complete("SYS", [{"role": "user", "content": "local"}], 50).text == "mine"
    assert provider.complete("SYS", ASK, 50).text == "hello"
    assert server.requests[0].turns == [("user", "Where is the exit?")]
    provider.close()


def test_a_stub_is_wired_to_nothing() -> None:
    class Stub(LLMProvider):
        def _call_none(self, prompt: str, max_tokens: int, system: str) -> None:
            return None

        def _call_later(self, prompt: str, max_tokens: int, system: str) -> str:
            raise NotImplementedError

    for name in ("none", "later"):
        with pytest.raises(NotWiredError) as caught:
            Stub(name, "m").complete("SYS", ASK, 50)
        assert caught.value.exit_code == 70


def test_what_a_users_method_raises_is_one_clean_line() -> None:
    class Failing(LLMProvider):
        def _call_bad(self, prompt: str, max_tokens: int, system: str) -> str:
            raise ValueError(f"line 1\nline 2 with {self.api_key}")

        def _call_odd(self, prompt: str, max_tokens: int, system: str) -> int:
            return 7

    fails(Failing("bad", "m", KEY), "ValueError", "line 1 line 2")
    with pytest.raises(ProviderError, match="int"):
        Failing("odd", "m", KEY).complete("SYS", ASK, 50)


def test_a_provider_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="nobody"):
        LLMProvider("nobody", "m").complete("SYS", ASK, 50)


def test_the_mark_of_the_built_in_methods() -> None:
    for name in PROVIDERS:
        assert getattr(LLMProvider, f"_call_{name}").takes_turns
    assert hallumaze.flatten([{"role": "user", "content": "alone"}]) == "alone"
