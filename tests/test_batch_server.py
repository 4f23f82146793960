"""The batch interfaces of the loopback server, as the real SDKs see them."""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors
from servers import Received, Say, Server, error

WIRES = ("anthropic", "openai", "google")
NAMES = list("abcde")
FAILURES = (anthropic.APIError, openai.APIError, errors.APIError)

Found = dict[str, tuple[str, Any]]


class Client:
    """What a user of the three SDKs would write."""

    def __init__(self, wire: str, server: Server) -> None:
        self.wire = wire
        url, key = server.base_url(wire), "k"
        if wire == "google":
            options = genai.types.HttpOptions(base_url=url, timeout=10_000)
            self.sdk: Any = genai.Client(api_key=key, vertexai=False, http_options=options)
        else:
            make = anthropic.Anthropic if wire == "anthropic" else openai.OpenAI
            self.sdk = make(api_key=key, base_url=url, max_retries=0)

    def submit(self, names: list[str]) -> str:
        turns = {name: [{"role": "user", "content": f"question {name}"}] for name in names}
        if self.wire == "anthropic":
            asked: list[Any] = [
                {"custom_id": n, "params": {"model": "m", "max_tokens": 9, "messages": turns[n]}}
                for n in names
            ]
            return str(self.sdk.messages.batches.create(requests=asked).id)
        if self.wire == "google":
            asked = [
                {
                    "contents": [{"role": "user", "parts": [{"text": turns[n][0]["content"]}]}],
                    "metadata": {"custom_id": n},
                    "config": {"max_output_tokens": 9, "system_instruction": "SYS"},
                }
                for n in names
            ]
            config = {"display_name": "five"}
            return str(self.sdk.batches.create(model="m", src=asked, config=config).name)
        url = "/v1/chat/completions"
        asked = [
            {
                "custom_id": n,
                "method": "POST",
                "url": url,
                "body": {"model": "m", "messages": turns[n]},
            }
            for n in names
        ]
        text = "".join(json.dumps(row) + "\n" for row in asked)
        file = self.sdk.files.create(file=("trials.jsonl", text.encode()), purpose="batch")
        made = self.sdk.batches.create(
            input_file_id=file.id, endpoint=url, completion_window="24h", metadata={"run": "1"}
        )
        return str(made.id)

    def poll(self, name: str) -> Any:
        if self.wire == "google":
            return self.sdk.batches.get(name=name)
        return (self.sdk.messages if self.wire == "anthropic" else self.sdk).batches.retrieve(name)

    def state(self, name: str) -> str:
        batch = self.poll(name)
        if self.wire == "google":
            return str(batch.state.name)
        return str(batch.processing_status if self.wire == "anthropic" else batch.status)

    def collect(self, name: str) -> Found:
        """What each id got: ("ok", text), ("error", words), ("expired", None)."""
        if self.wire == "anthropic":
            return dict(map(_from_anthropic, self.sdk.messages.batches.results(name)))
        batch = self.poll(name)
        if self.wire == "google":
            return dict(map(_from_google, batch.dest.inlined_responses))
        files = [file for file in (batch.output_file_id, batch.error_file_id) if file]
        texts = [self.sdk.files.content(file).content for file in files]
        return dict(_from_openai(json.loads(row)) for text in texts for row in text.splitlines())


def _from_anthropic(row: Any) -> tuple[str, tuple[str, Any]]:
    result = row.result
    if result.type == "succeeded":
        return row.custom_id, ("ok", result.message.content[0].text)
    if result.type == "errored":
        assert result.error.error.type == "rate_limit_error"
        return row.custom_id, ("error", result.error.error.message)
    return row.custom_id, (result.type, None)


def _from_google(row: Any) -> tuple[str, tuple[str, Any]]:
    name = row.metadata["custom_id"]
    if row.error is None:
        return name, ("ok", row.response.text)
    return name, ("expired", None) if row.error.code == 4 else ("error", row.error.message)


def _from_openai(row: Any) -> tuple[str, tuple[str, Any]]:
    name, said = row["custom_id"], row["response"]
    if said is None:
        return name, (row["error"]["code"].removeprefix("batch_"), None)
    if said["status_code"] == 200:
        completion = openai.types.chat.ChatCompletion.model_validate(said["body"])
        return name, ("ok", completion.choices[0].message.content)
    assert said["status_code"] == 429
    return name, ("error", said["body"]["error"]["message"])


@pytest.fixture(autouse=True)
def plain_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, and no certificates: nothing is encrypted, and to read them takes long."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.answer = lambda request: f"{request.custom_id}\u2028got {request.turns[0][1]}"
        yield running


@pytest.mark.parametrize("wire", WIRES)
def test_each_of_five_gets_its_own(wire: str, server: Server) -> None:
    verdicts: dict[str, Any] = {"b": (429, "slow down"), "c": "missing", "d": "expired"}
    server.verdict = lambda request: verdicts.get(request.custom_id)
    server.pending = 3
    client = Client(wire, server)
    name = client.submit(NAMES)
    batch = server.batches[0]
    assert (batch.id, [r.custom_id for r in batch.requests]) == (name, NAMES)
    assert {r.wire for r in batch.requests} == {wire}
    assert batch.requests[0].system == ("SYS" if wire == "google" else "")
    end = {"anthropic": "ended", "openai": "expired", "google": "JOB_STATE_SUCCEEDED"}[wire]
    seen = [client.state(name) for _ in range(4)]
    assert end not in seen[:3] and seen[3] == end
    found = client.collect(name)
    assert found == {
        "a": ("ok", "a\u2028got question a"),
        "b": ("error", "slow down"),
        "d": ("expired", None),
        "e": ("ok", "e\u2028got question e"),
    }
    ok = [n for n, (kind, _) in found.items() if kind == "ok"]
    assert ok == (["a", "e"] if wire == "google" else ["e", "a"])  # its vendor keeps the order


@pytest.mark.parametrize("wire", WIRES)
def test_a_batch_outlives_its_client(wire: str, server: Server) -> None:
    server.pending = math.inf
    first = Client(wire, server)
    name = first.submit(NAMES)
    assert len({first.state(name) for _ in range(9)}) <= 2
    if wire == "anthropic":
        with pytest.raises(anthropic.AnthropicError, match="results_url"):
            first.sdk.messages.batches.results(name)
    first.sdk.close()
    server.pending = 0
    second = Client(wire, server)
    second.poll(name)
    assert {kind for kind, _ in second.collect(name).values()} == {"ok"}


@pytest.mark.parametrize("wire", WIRES)
def test_the_script_comes_first(wire: str, server: Server) -> None:
    client = Client(wire, server)
    server.script(error(wire, 429, "slow down"))
    with pytest.raises(FAILURES):
        client.submit(NAMES)
    assert server.batches == []
    name = client.submit(NAMES)
    server.script(error(wire, 500, "oops"), Say(cut=True))
    with pytest.raises(FAILURES):
        client.poll(name)
    with pytest.raises(Exception, match=r"[Cc]onnection|peer closed"):
        client.poll(name)
    assert server.batches[0].polls == 1
    server.script(*[Say()] * (wire == "openai"), Say(cut=True))
    with pytest.raises(Exception, match=r"[Cc]onnection|peer closed"):
        client.submit(NAMES)
    assert len(server.batches) == 2  # it was taken all the same
    with pytest.raises(FAILURES):
        client.poll("batches/none" if wire == "google" else "none")


@pytest.mark.parametrize(
    ("wire", "end", "state"),
    [
        ("anthropic", "expired", "ended"),
        ("anthropic", "cancelled", "ended"),
        ("openai", "failed", "failed"),
        ("openai", "expired", "expired"),
        ("openai", "cancelled", "cancelled"),
        ("google", "failed", "JOB_STATE_FAILED"),
        ("google", "expired", "JOB_STATE_EXPIRED"),
        ("google", "cancelled", "JOB_STATE_CANCELLED"),
    ],
)
def test_a_whole_batch_fails(wire: str, end: str, state: str, server: Server) -> None:
    server.batch_end = end
    client = Client(wire, server)
    name = client.submit(NAMES)
    assert client.state(name) == state
    batch = client.poll(name)
    if wire == "google":
        assert (batch.dest, batch.error) == (None, None)  # the SDK drops the error
    elif end == "failed":
        assert batch.errors.data[0].message == "the batch is broken"
        assert (batch.output_file_id, batch.error_file_id) == (None, None)
    else:
        kinds = {"anthropic": {"cancelled": "canceled"}}.get(wire, {})
        assert client.collect(name) == dict.fromkeys(NAMES, (kinds.get(end, end), None))


def test_ids_are_judged_as_the_vendors_judge_them(server: Server) -> None:
    client = Client("anthropic", server)
    for names in (["a/b"], ["a" * 65], ["a", "a"]):
        with pytest.raises(anthropic.BadRequestError, match="custom_id"):
            client.submit(names)
    client = Client("openai", server)
    batch = client.poll(client.submit(["a", "a"]))
    assert (batch.status, batch.errors.data[0].code) == ("failed", "duplicate_custom_id")


def test_a_request_alone_is_still_answered(server: Server) -> None:
    seen: list[Received] = server.requests
    reply = Client("openai", server).sdk.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}]
    )
    assert reply.choices[0].message.content == "\u2028got hi"
    assert (seen[0].custom_id, server.batches) == ("", [])
