"""The real command in a folder of its own, with nothing of this machine's environment.

    command = Command(tmp_path)
    done = command("--seed", "1", OPENAI_API_KEY="sk-…")     # code, out, err
    done = command.run("--seed", "1")                        # with --output: done.document as well

Every call is looked through for what must never be: a traceback, and the value of any *_API_KEY.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "hallumaze.py"
PATIENCE_S = 60  # a hang fails the test; nothing is measured
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"  # before a line of a run, without a terminal

# They have no results folder.
REPORTS = {("rescore",), ("judge",), ("compare",), ("ablate",), ("plan",), ("graph",)}

# Takes the terminal on stdin, if there is one, as its own, hears Ctrl-C and SIGHUP again even where
# pytest runs in the background or under nohup, and becomes the command.
_BECOME = """
import os, signal, sys
for name in ("SIGINT", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
if os.isatty(0) and os.getsid(0) == os.getpid():
    import fcntl, termios
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str
    output: Path

    @property
    def document(self) -> dict[str, Any]:
        """The result file."""
        return json.loads(self.output.read_text(encoding="utf-8"))

    @property
    def results(self) -> list[dict[str, Any]]:
        """Its trials."""
        return self.document["results"]


def secrets(env: dict[str, str]) -> list[str]:
    """The keys of an environment, without the blanks and quotes around them."""
    keys = [value.strip(" \n\r\t'\"“”") for name, value in env.items() if name.endswith("_KEY")]
    return [key for key in keys if len(key) > 3]


class Command:
    """`python hallumaze.py` in `folder`, which is its HOME and its working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "out.json"

    def env(self, script: Path = SCRIPT, **more: str) -> dict[str, str]:
        """The environment of a call: no key, model, URL, proxy or language of this machine."""
        kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        if script == SCRIPT:  # a copy is not what coverage is to measure
            env |= {k: v for k, v in os.environ.items() if k.startswith("COVERAGE")}
        return {**env, "HOME": str(self.folder), **more}

    def argv(self, *args: str, script: Path = SCRIPT) -> list[str]:
        """The command line that hears Ctrl-C, and owns its terminal."""
        return [sys.executable, "-c", _BECOME, str(script), *self.given(args, script)]

    def given(self, args: tuple[str, ...], script: Path) -> tuple[str, ...]:
        """The arguments, with a results folder of the test's own: tests run side by side."""
        elsewhere = script != SCRIPT or args[:1] in REPORTS
        if args in ((), ("run",)) or elsewhere or "--results-dir" in args:
            return args
        return (*args, "--results-dir", str(self.folder / "results"))

    def __call__(
        self,
        *args: str,
        script: Path = SCRIPT,
        stdin: int | str = subprocess.DEVNULL,
        cwd: Path | None = None,
        **env: str,
    ) -> Done:
        where = self.env(script, **env)
        given = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
        ended = subprocess.run(
            [sys.executable, str(script), *self.given(args, script)],
            env=where,
            cwd=cwd or self.folder,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=PATIENCE_S,
            check=False,
            **given,
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr, self.output)
        self.look_through(done, where)
        return done

    def run(self, *args: str, **env: str) -> Done:
        """A run whose result file is `output`."""
        return self("--output", str(self.output), *args, **env)

    def look_through(self, done: Done, env: dict[str, str]) -> None:
        """No traceback, no key, no control character, wherever it would be seen."""
        assert "Traceback" not in done.err, done.err
        assert "Exception ignored" not in done.err, done.err
        written = "".join(
            path.read_text(encoding="utf-8", errors="replace")
            for path in (
                self.output,
                self.output.with_suffix(".csv"),
                *self.folder.glob("results/*"),
            )
            if path.is_file()
        )
        for key in secrets(env):
            for place in (done.out, done.err, written):
                assert key not in place
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out + done.err)

    def start(self, *args: str, script: Path = SCRIPT, **options: Any) -> subprocess.Popen[str]:
        """The command in the background, with pipes for what it says unless told otherwise."""
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.env(script),
            "cwd": self.folder,
            "encoding": "utf-8",
        }
        return subprocess.Popen(self.argv(*args, script=script), **{**given, **options})

    def copy(self, method: str = "") -> Path:
        """A copy of hallumaze.py in a folder of its own, with a method more in LLMProvider."""
        text = SCRIPT.read_text(encoding="utf-8")
        start = text.index("\nclass LLMProvider:\n")
        end = text.index("\n\n\n", start)
        indented = "".join(f"    {line}\n" for line in method.strip().splitlines())
        path = self.folder / "program" / "hallumaze.py"
        path.parent.mkdir()
        path.write_text(f"{text[:end]}\n\n{indented}{text[end:]}", encoding="utf-8")
        return path


def timeless(document: Any) -> Any:
    """A result file without what depends on the hour, the name of its run included."""
    moving = ("timestamp", "latency_s", "request_id")

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in moving}
        return [without(item) for item in value] if isinstance(value, list) else value

    return without({key: item for key, item in document.items() if key != "run"})


def one_line(done: Done, *parts: str) -> str:
    """stderr is one line of ours that holds the parts, and stdout is empty; the line."""
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("hallumaze: "), done.err
    assert lines[0].isprintable() and len(lines[0]) < 700
    for part in parts:
        assert part.lower() in lines[0].lower(), lines[0]
    return lines[0]


def unstamped(text: str) -> list[str]:
    """Lines that all say when they were written, without that."""
    lines = text.splitlines()
    assert all(re.match(f"{STAMP} ", line) for line in lines), text
    return [line.split(" ", 1)[1] for line in lines]


def until(true: Callable[[], bool]) -> None:
    """Wait until it is true; a hang fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)
