"""A loopback server that speaks the wire formats of anthropic, openai and google.

    with Server() as server:
        server.answer = lambda request: "the text to answer with"     # what it says by default
        server.script(error("openai", 429, "slow down"), Say(silence=60))   # what it says first

It answers every request in the format of the path that was asked for, and keeps what it received
in `server.requests`. `server.answer` may return a Say as well. Nothing leaves 127.0.0.1.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Received:
    """One request as the server saw it; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def wire(self) -> str:
        """Whose format it is."""
        if "/messages" in self.path or "anthropic-version" in self.headers:
            return "anthropic"
        return "google" if "x-goog-api-key" in self.headers else "openai"

    @property
    def turns(self) -> list[tuple[str, str]]:
        """(role, text) of every turn, the roles in the words of the wire format."""
        if self.wire == "google":
            return [
                (turn["role"], "".join(part["text"] for part in turn["parts"]))
                for turn in self.body["contents"]
            ]
        turns = [(m["role"], m["content"]) for m in self.body["messages"]]
        return [turn for turn in turns if turn[0] != "system"]

    @property
    def system(self) -> str:
        """The system message, wherever the wire format has it."""
        if self.wire == "anthropic":
            return str(self.body.get("system", ""))
        if self.wire == "google":
            parts = self.body.get("systemInstruction", {}).get("parts", [])
            return "".join(part["text"] for part in parts)
        return "".join(m["content"] for m in self.body["messages"] if m["role"] == "system")


@dataclass(frozen=True)
class Say:
    """What the server says to one request."""

    body: Any = None  # sent as JSON; str: as it is; None: the default answer
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    silence: float = 0.0  # seconds without a byte before it
    drip: float = 0.0  # seconds during which a blank comes every 0.1 s, before the body
    cut: bool = False  # close the connection in the middle of the body


def answer(
    wire: str,
    text: str | None,
    finish: str | None = "",
    thinking: str = "",
    usage: Json | None = None,
    **extra: Any,
) -> Json:
    """A normal answer; `finish` "" is the word for a whole one; `extra` goes to its message."""
    if wire == "anthropic":
        blocks: list[Json] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "signature": "c2ln"})
        if text is not None:
            blocks.append({"type": "text", "text": text})
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": blocks,
            "stop_reason": "end_turn" if finish == "" else finish,
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7} if usage is None else usage,
            **extra,
        }
    if wire == "google":
        parts: list[Json] = [{"text": thinking, "thought": True}] if thinking else []
        parts += [{"text": text}] if text is not None else []
        counts = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        return {
            "candidates": [
                {
                    "content": {"role": "model", "parts": parts},
                    "finishReason": "STOP" if finish == "" else finish,
                    "index": 0,
                    **extra,
                }
            ],
            "usageMetadata": counts if usage is None else usage,
            "modelVersion": "m",
            "responseId": "resp_1",
        }
    message: Json = {"role": "assistant", "content": text, **extra}
    if thinking:
        message["reasoning_content"] = thinking
    counts = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "stop" if finish == "" else finish}
        ],
        "usage": counts if usage is None else usage,
    }


def error(
    wire: str,
    status: int,
    message: str,
    code: str = "",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Say:
    """An error as the vendor words it; `code` is openai's code, else the type or the status."""
    if wire == "anthropic":
        kind = code or "invalid_request_error"
        body: Json = {"type": "error", "error": {"type": kind, "message": message}}
    elif wire == "google":
        body = {"error": {"code": status, "message": message, "status": code or "UNKNOWN"}}
    else:
        body = {"error": {"message": message, "type": "e", "param": param, "code": code or None}}
    return Say(body, status, headers or {})


def model_list(wire: str, ids: list[str]) -> Json:
    """The vendor's own list of models."""
    if wire == "google":
        return {"models": [{"name": f"models/{name}", "displayName": name} for name in ids]}
    data: list[Json]
    if wire == "anthropic":
        data = [
            {"type": "model", "id": i, "display_name": i, "created_at": "2026-01-01T00:00:00Z"}
            for i in ids
        ]
        return {"data": data, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}
    data = [{"id": i, "object": "model", "created": 1, "owned_by": "o"} for i in ids]
    return {"object": "list", "data": data}


class Server:
    """Answers on 127.0.0.1 until the `with` block ends."""

    def __init__(self) -> None:
        self.answer: Callable[[Received], str | Say] = lambda request: "hello"
        self.models = ["model-b", "model-a"]
        self.requests: list[Received] = []
        self.closing = threading.Event()
        self._script: deque[Say] = deque()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        # The poll interval is what ending the server costs.
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def base_url(self, provider: str) -> str:
        """The base URL to give to a provider of that name."""
        return self.url if provider in ("anthropic", "google") else self.url + "/v1"

    def script(self, *says: Say) -> None:
        """Queue what to say to the next requests; after that it answers by default."""
        self._script.extend(says)

    def next_say(self, request: Received) -> Say:
        """What to say to this request: from the script, else the default."""
        with self._lock:
            self.requests.append(request)
            say = self._script.popleft() if self._script else Say()
        if say.body is not None:
            return say
        if request.method == "GET":
            return replace(say, body=model_list(request.wire, self.models))
        said = self.answer(request)
        return said if isinstance(said, Say) else replace(say, body=answer(request.wire, said))


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve({})

        def do_POST(self) -> None:
            self._serve(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _serve(self, body: Json) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.command, self.path, headers, body)
            say = server.next_say(request)
            server.closing.wait(say.silence)
            data = (say.body if isinstance(say.body, str) else json.dumps(say.body)).encode()
            blanks = round(say.drip * 10)
            try:
                self.send_response(say.status)
                self.send_header("content-type", say.content_type)
                self.send_header("content-length", str(len(data) + blanks))
                for name, value in say.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for _ in range(blanks):
                    self.wfile.write(b"\n")
                    server.closing.wait(0.1)
                self.wfile.write(data[: len(data) // 2] if say.cut else data)
            except OSError:
                pass  # the client did not wait: what these tests are about
            self.close_connection = self.close_connection or say.cut

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
