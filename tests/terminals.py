"""Two real terminals with one set of verbs: tmux, and the standard library's pty.

with Pty(command, "--interactive") as terminal:
    terminal.answer("maze size (5, 7, 9, 11) [7]:", "9")   # waits for the question, types
    code = terminal.end()                                  # waits for the end of the command
    terminal.text()                                        # everything that was on the screen
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from commands import PATIENCE_S, SCRIPT, Command

try:
    import fcntl
    import pty
    import struct
    import termios
except ImportError:  # not a POSIX system: the tests are skipped
    pass

CTRL_C, CTRL_D = "\x03", "\x04"
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\x07\x0e\x0f]")


class Terminal:
    """What the two have in common."""

    def text(self) -> str:
        """All that was on the screen so far, as lines."""
        raise NotImplementedError

    def type(self, keys: str) -> None:
        """Press these keys."""
        raise NotImplementedError

    def code(self) -> int | None:
        """The exit code of the command; None while it runs."""
        raise NotImplementedError

    def end(self) -> int:
        """The exit code of the command, once it has ended."""
        self._until(lambda text: self.code() is not None, "the end")
        return int(self.code() or 0)

    def see(self, part: str) -> None:
        """Wait until it stands somewhere on the screen."""
        self._until(lambda text: part in text, part)

    def question(self, part: str) -> None:
        """Wait until the screen ends with it: the command waits for an answer."""
        self._until(lambda text: text.rstrip().endswith(part), part)

    def answer(self, question: str, keys: str = "") -> None:
        """Wait for a question, type, and press Enter."""
        self.question(question)
        self.type(keys + "\r")

    def _until(self, true: Any, part: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            over = self.code() is not None or time.monotonic() > deadline
            if true(text := self.text()):
                return
            assert not over, f"{part!r} never came, but:\n{text}"
            time.sleep(0.01)


class Pty(Terminal):
    """A pseudo-terminal of the standard library; `raw` is every byte that came."""

    def __init__(
        self,
        command: Command,
        *args: str,
        script: Path = SCRIPT,
        width: int = 130,
        stderr: int | None = None,
        **env: str,
    ) -> None:
        self.raw = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        self.slave = slave  # kept open, so that its settings can be looked at afterwards
        where = command.env(script, **{"TERM": "xterm-256color", **env})
        self.process = command.start(
            *args,
            script=script,
            env=where,
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            start_new_session=True,
        )

    def __enter__(self) -> Pty:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def text(self) -> str:
        while select.select([self.master], [], [], 0)[0]:
            self.raw += os.read(self.master, 65536)
        return _STEERING.sub("", self.raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode("utf-8", "surrogateescape"))

    def code(self) -> int | None:
        return self.process.poll()

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)


class Tmux(Terminal):
    """A window of tmux, with a server of its own."""

    def __init__(
        self, command: Command, *args: str, script: Path = SCRIPT, width: int = 130, **env: str
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hm"))  # a socket's path must be short
        settings = self.folder / "tmux.conf"
        settings.write_text("set -g history-limit 5000\n")
        where = command.env(script, **{"TERM": "screen-256color", **env})
        words = [f"{name}={value}" for name, value in where.items()]
        line = shlex.join(["env", "-i", *words, *command.argv(*args, script=script)])
        # The shell hears Ctrl-C as well; it lives on, says the exit code, and keeps the window.
        line = f'trap : INT; {line}; echo "[exit $?]"; exec sleep 3600'
        size = ("-x", str(width), "-y", "50")
        start = ("-f", str(settings), "new-session", "-d", *size, "-c", str(command.folder), line)
        self._tmux(*start)

    def _tmux(self, *args: str) -> str:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        argv = [str(shutil.which("tmux")), "-u", "-S", str(self.folder / "socket"), *args]
        run = subprocess.run(
            argv, env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE_S, check=True
        )
        return run.stdout

    def __enter__(self) -> Tmux:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        shutil.rmtree(self.folder, ignore_errors=True)

    def text(self) -> str:
        return re.sub(r"\n?\[exit \d+\]\n+$", "", self._screen())

    def _screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    def type(self, keys: str) -> None:
        for part in re.findall(r"[\x00-\x1f]|[^\x00-\x1f]+", keys):
            names = {"\r": ["Enter"], CTRL_C: ["C-c"], CTRL_D: ["C-d"]}
            self._tmux("send-keys", *names.get(part, ["-l", "--", part]))

    def code(self) -> int | None:
        said = re.search(r"^\[exit (\d+)\]$", self._screen(), re.M)
        return int(said[1]) if said else None
