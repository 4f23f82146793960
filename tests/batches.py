"""What the batch interfaces of anthropic, openai and google put on the wire; for servers.py.

A batch is a list of ordinary requests, each with the id that its client gave it. Here is only its
shape at every stage; what each of the requests gets, and when, is up to the server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servers import Received

Json = dict[str, Any]

DATE = "2026-01-01T00:00:00Z"
# The words of an error whose status is all that a test gives: anthropic's type, google's number
# and name. A batch of anthropic tells the type only, a batch of google the number only.
KINDS = {
    400: ("invalid_request_error", 3, "INVALID_ARGUMENT"),
    401: ("authentication_error", 16, "UNAUTHENTICATED"),
    403: ("permission_error", 7, "PERMISSION_DENIED"),
    404: ("not_found_error", 5, "NOT_FOUND"),
    413: ("request_too_large", 3, "INVALID_ARGUMENT"),
    429: ("rate_limit_error", 8, "RESOURCE_EXHAUSTED"),
    500: ("api_error", 13, "INTERNAL"),
    503: ("api_error", 14, "UNAVAILABLE"),
    504: ("timeout_error", 4, "DEADLINE_EXCEEDED"),
    529: ("overloaded_error", 14, "UNAVAILABLE"),
}


@dataclass(frozen=True)
class Result:
    """What became of one request."""

    request: Received
    kind: str  # succeeded, errored, expired, canceled
    status: int = 200
    body: Any = None  # the answer or the error, as the same request alone would get it


@dataclass
class Batch:
    """A batch that was submitted; `requests` are as the same requests alone would arrive."""

    id: str
    wire: str
    requests: list[Received]
    submitted: Json  # the body that made it
    polls: int = 0
    end: str = ""  # completed, failed, expired or cancelled; "" while it is at work
    stage: str = "validating"  # of openai and google, while it is at work
    fault: tuple[str, str] = ("", "")  # code and message of one that failed as a whole
    results: list[Result] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(result.kind == kind for result in self.results)

    def shown(self, url: str) -> Json:
        """The batch as a poll shows it."""
        if self.wire == "anthropic":
            return self._shown_by_anthropic(url)
        return self._shown_by_google() if self.wire == "google" else self._shown_by_openai()

    def _shown_by_anthropic(self, url: str) -> Json:
        kinds = ("succeeded", "errored", "canceled", "expired")
        counts = {kind: self.count(kind) for kind in kinds}
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.end else "in_progress",
            "request_counts": {"processing": 0 if self.end else len(self.requests), **counts},
            "created_at": DATE,
            "expires_at": "2026-01-02T00:00:00Z",
            "ended_at": DATE if self.end else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{url}/v1/messages/batches/{self.id}/results" if self.end else None,
        }

    def _shown_by_openai(self) -> Json:
        status = self.end or self.stage
        if self.end == "completed" and self.count("expired"):
            status = "expired"  # what is late makes the whole batch late; the rest was answered
        elif self.end == "completed" and self.count("canceled"):
            status = "cancelled"
        failed = {"code": self.fault[0], "message": self.fault[1], "line": None, "param": None}
        return {
            "id": self.id,
            "object": "batch",
            **self.submitted,
            "status": status,
            "created_at": 1,
            "expires_at": 86401,
            f"{status}_at": 2,
            "errors": {"object": "list", "data": [failed]} if self.end == "failed" else None,
            "request_counts": {
                "total": 0 if self.end == "failed" else len(self.requests),
                "completed": self.count("succeeded"),
                "failed": self.count("errored"),
            },
            # A file that would be empty does not exist.
            "output_file_id": f"file-{self.id}-output" if self.lines(good=True) else None,
            "error_file_id": f"file-{self.id}-errors" if self.lines(good=False) else None,
        }

    def _shown_by_google(self) -> Json:
        states = {"validating": "PENDING", "in_progress": "RUNNING", "finalizing": "RUNNING"}
        state = "SUCCEEDED" if self.end == "completed" else self.end.upper()
        counts: Json = {"requestCount": str(len(self.requests))}
        for name, kind in (("successfulRequestCount", "succeeded"), ("failedRequestCount", "")):
            if number := self.count(kind) if kind else len(self.results) - self.count("succeeded"):
                counts[name] = str(number)
        if not self.end:
            counts["pendingRequestCount"] = counts["requestCount"]
        package = "type.googleapis.com/google.ai.generativelanguage.v1main"
        metadata = {
            "@type": f"{package}.GenerateContentBatch",
            "name": self.id,
            "displayName": self.submitted["batch"].get("displayName", ""),
            "model": re.sub(r".*/(models/[^:]+):.*", r"\1", self.requests[0].path),
            "createTime": DATE,
            "updateTime": DATE,
            "batchStats": counts,
            "state": f"BATCH_STATE_{state or states[self.stage]}",
        }
        shown: Json = {"name": self.id, "metadata": metadata}
        if self.end == "completed":
            answers = [self._answer_of_google(result) for result in self.results]
            output: Json = {"inlinedResponses": {"inlinedResponses": answers}}
            metadata |= {"endTime": DATE, "output": output}
            response = {"@type": f"{package}.GenerateContentBatchOutput", **output}
            shown |= {"done": True, "response": response}
        elif self.end:
            code = {"expired": 4, "cancelled": 1}.get(self.end, 13)
            metadata["endTime"] = DATE
            shown |= {"done": True, "error": {"code": code, "message": self.fault[1]}}
        return shown

    def lines(self, good: bool | None = None) -> str:
        """The results as JSON Lines, last first: of openai the good or the bad, else all."""
        rows = [
            self._row_of_anthropic(result)
            if self.wire == "anthropic"
            else self._row_of_openai(number, result)
            for number, result in enumerate(self.results)
            if good in (None, result.kind == "succeeded")
        ]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in reversed(rows))

    @staticmethod
    def _row_of_anthropic(result: Result) -> Json:
        row: Json = {"type": result.kind}
        if result.kind == "succeeded":
            row["message"] = result.body
        elif result.kind == "errored":
            row["error"] = {"request_id": None, **result.body}
        return {"custom_id": result.request.custom_id, "result": row}

    @staticmethod
    def _row_of_openai(number: int, result: Result) -> Json:
        row: Json = {
            "id": f"batch_req_{number}",
            "custom_id": result.request.custom_id,
            "response": None,
            "error": None,
        }
        if result.kind in ("succeeded", "errored"):
            said = {"status_code": result.status, "request_id": f"req_{number}"}
            row["response"] = {**said, "body": result.body}
        else:
            late = result.kind == "expired"
            why = "before the completion window expired" if late else "because it was cancelled"
            code = "batch_expired" if late else "batch_cancelled"
            row["error"] = {"code": code, "message": f"This request was not executed {why}."}
        return row

    @staticmethod
    def _answer_of_google(result: Result) -> Json:
        named: Json = {"metadata": result.request.metadata} if result.request.metadata else {}
        if result.kind == "succeeded":
            return {"response": result.body, **named}
        if result.kind == "errored":
            code = KINDS.get(result.status, KINDS[500])[1]
            return {"error": {"code": code, "message": result.body["error"]["message"]}, **named}
        # A single request of google neither expires nor is cancelled but by an error.
        late = result.kind == "expired"
        words = "Deadline expired before operation could complete." if late else "Cancelled."
        return {"error": {"code": 4 if late else 1, "message": words}, **named}


def read_form(content_type: str, data: bytes) -> Json:
    """The fields of a multipart form, files as text."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    form: Json = {}
    for part in data.split(b"--" + boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        if name := re.search(rb'name="([^"]*)"', head):
            form[name[1].decode()] = content.removesuffix(b"\r\n").decode()
    return form
