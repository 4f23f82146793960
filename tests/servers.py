"""A loopback server that speaks the wire formats of anthropic, openai and google.

    with Server() as server:
        server.answer = lambda request: "the text to answer with"     # what it says by default
        server.script(error("openai", 429, "slow down"), Say(silence=60))   # what it says first

It answers every request in the format of the path that was asked for, and keeps what it received
in `server.requests`. `server.answer` may return a Say as well. Nothing leaves 127.0.0.1.

It also takes batches, and keeps them in `server.batches`:

    server.pending = 2                # so many polls find a batch at work; inf: until it is lowered
    server.verdict = lambda request: (429, "slow down") if request.custom_id == "b" else None
    server.batch_end = "expired"      # how a whole batch ends that does not complete

Every request of a batch goes to `server.answer` when the batch ends, unless `server.verdict`
decides: "expired", "canceled", "missing" (no word of it in the results), or (status, message).
A Say without a body in the script does what was asked, then cuts or waits; one with a body does
nothing. For openai a submission is two requests: the file, then the batch.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from batches import KINDS, Batch, Result, read_form

import hallumaze

Json = dict[str, Any]


@dataclass(frozen=True)
class Received:
    """One request as the server saw it; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Json
    custom_id: str = ""  # in a batch: what the client calls it; google: its first metadata
    metadata: Json = field(default_factory=dict)  # in a batch of google

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
        turns = [(m["role"], _text_of(m["content"])) for m in self.body["messages"]]
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


def _text_of(content: str | list[Json]) -> str:
    """The text of a message: a string, or anthropic's blocks."""
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


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


class _Listener(ThreadingHTTPServer):
    """One that lets as many clients connect at the same moment as any test starts."""

    daemon_threads = True
    request_queue_size = 128


class Server:
    """Answers on 127.0.0.1 until the `with` block ends."""

    def __init__(self) -> None:
        self.answer: Callable[[Received], str | Say] = lambda request: "hello"
        self.models = ["model-b", "model-a"]
        self.requests: list[Received] = []
        self.pending = 0.0
        self.verdict: Callable[[Received], str | tuple[int, str] | None] = lambda request: None
        self.batch_end = "completed"
        self.batch_fault = ("internal_error", "the batch is broken")
        self.batches: list[Batch] = []
        self._files: dict[str, str] = {}
        self._batch_lock = threading.Lock()
        self.closing = threading.Event()
        self._script: deque[Say] = deque()
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
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
        with self._batch_lock:
            batch = self._batch_say(request)
        if batch:
            kept = replace(say, body=batch.body, content_type=batch.content_type)
            return kept if batch.status == 200 else batch
        if request.method == "GET":
            return replace(say, body=model_list(request.wire, self.models))
        said = self.answer(request)
        return said if isinstance(said, Say) else replace(say, body=answer(request.wire, said))

    # ---- batches

    def _batch_say(self, request: Received) -> Say | None:
        """What the batch interface of the vendor says; None when the request is not for it."""
        path, wire, body = request.path.partition("?")[0], request.wire, request.body
        if request.method == "POST" and re.search(r"/batches$|:batchGenerateContent$", path):
            return self._submit(request)
        if request.method == "POST" and path.endswith("/files"):
            name = f"file-{len(self._files) + 1}"
            self._files[name] = body["file"]
            size = len(body["file"].encode())
            about = {"bytes": size, "created_at": 1, "filename": "b", "status": "processed"}
            return Say({"id": name, "object": "file", "purpose": body["purpose"], **about})
        if request.method == "GET" and (file := re.search(r"/files/([^/]+)/content$", path)):
            if file[1] not in self._files:
                return error(wire, 404, f"No such File object: {file[1]}")
            return Say(self._files[file[1]], content_type="application/octet-stream")
        if request.method == "GET" and (asked := re.search(r"/(batches/([^/]+))(/.*)?$", path)):
            name = asked[1] if wire == "google" else asked[2]
            found = [batch for batch in self.batches if (batch.wire, batch.id) == (wire, name)]
            if not found:
                return error(wire, 404, f"no batch {name}", _code(wire, 404))
            if asked[3] != "/results":
                self._poll(found[0])
                return Say(found[0].shown(self.url))
            if not found[0].end:
                return error(wire, 404, f"{name} has no results yet", _code(wire, 404))
            return Say(found[0].lines(), content_type="application/x-jsonl")
        return None

    def _submit(self, request: Received) -> Say:
        """Take a batch, or refuse it as the vendor would."""
        wire, body, number = request.wire, request.body, len(self.batches) + 1
        fault = ("", "")
        rows: list[tuple[str, Json, Json]]  # id, the body of the request, its metadata
        if wire == "anthropic":
            rows = [(r["custom_id"], r["params"], {}) for r in body["requests"]]
            path, name = "/v1/messages", f"msgbatch_{number}"
            for index, (custom_id, *_) in enumerate(rows):
                if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", custom_id):
                    wrong = "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
                    return error(wire, 400, f"requests.{index}.custom_id: {wrong}")
            if len({custom_id for custom_id, *_ in rows}) < len(rows):
                return error(wire, 400, "requests: custom_id must be unique within the batch")
        elif wire == "google":
            asked = body["batch"]["inputConfig"]["requests"]["requests"]
            given = [r.get("metadata", {}) for r in asked]
            names = [str(next(iter(d.values()), i)) for i, d in enumerate(given)]
            rows = [(n, r["request"], d) for n, r, d in zip(names, asked, given, strict=True)]
            path = request.path.replace(":batchGenerateContent", ":generateContent")
            name = f"batches/batch{number}"
        else:
            path, name = body["endpoint"], f"batch_{number}"
            if body["input_file_id"] not in self._files:
                return error(wire, 400, f"No such File object: {body['input_file_id']}")
            text = self._files[body["input_file_id"]]
            lines = [json.loads(line) for line in text.split("\n") if line]
            rows = [(line["custom_id"], line["body"], {}) for line in lines]
            if not rows:
                fault = ("empty_file", "The input file is empty.")
            elif len({custom_id for custom_id, *_ in rows}) < len(rows):
                fault = ("duplicate_custom_id", "The custom_id of a request is a duplicate.")
            elif len({params["model"] for _, params, _ in rows}) > 1:
                fault = ("mismatched_model", "All requests in a batch must use the same model.")
        requests = [Received("POST", path, request.headers, p, i, d) for i, p, d in rows]
        self.batches.append(Batch(name, wire, requests, body, fault=fault))
        return Say(self.batches[-1].shown(self.url))

    def _poll(self, batch: Batch) -> None:
        """Let a batch go on by one stage."""
        batch.polls += 1
        if batch.end:
            return
        if batch.polls <= self.pending:
            last = batch.polls == self.pending
            batch.stage = "validating" if batch.polls == 1 else "in_progress"
            batch.stage = "finalizing" if last else batch.stage
            return
        end = "failed" if batch.fault[0] else self.batch_end
        if end != "completed":
            batch.fault = batch.fault if batch.fault[0] else self.batch_fault
        if end != "failed" or batch.wire == "anthropic":  # which knows no failure of the whole
            found = (self._result(request, end) for request in batch.requests)
            batch.results = [result for result in found if result]
        batch.end = end
        if batch.wire == "openai":
            self._files[f"file-{batch.id}-output"] = batch.lines(good=True)
            self._files[f"file-{batch.id}-errors"] = batch.lines(good=False)

    def _result(self, request: Received, end: str) -> Result | None:
        """What a request gets in a batch that ends like this; None when it is missing."""
        whole: dict[str, str | tuple[int, str]] = {
            "expired": "expired",
            "cancelled": "canceled",
            "failed": (500, self.batch_fault[1]),
        }
        verdict = self.verdict(request) or whole.get(end)
        if isinstance(verdict, str):
            return None if verdict == "missing" else Result(request, verdict)
        if verdict:
            status, message = verdict
            said: str | Say = error(request.wire, status, message, _code(request.wire, status))
        else:
            said = self.answer(request)
        say = said if isinstance(said, Say) else Say(answer(request.wire, said))
        kind = "succeeded" if say.status == 200 else "errored"
        return Result(request, kind, say.status, say.body)


def _code(wire: str, status: int) -> str:
    """The vendor's word for a status; openai has none."""
    kind, _, name = KINDS.get(status, KINDS[500])
    return {"anthropic": kind, "google": name}.get(wire, "")


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve({})

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            form = self.headers.get("content-type", "")
            self._serve(read_form(form, data) if "multipart" in form else json.loads(data))

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


def solution(request: Received) -> str:
    """What an honest search answers to the first turn."""
    return hallumaze.REFERENCE_AGENTS["explorer"](hallumaze._read_task(request.turns[0][1]))


def move(request: Received, agent: str = "explorer") -> str:
    """What a reference agent answers to a turn of a game."""
    roles = {"user": "user", "assistant": "assistant", "model": "assistant"}
    turns = [{"role": roles[role], "content": text} for role, text in request.turns]
    scene = hallumaze._read_scene(turns)
    assert scene, turns[-1]
    return hallumaze.STEP_AGENTS[agent](scene)
