"""Key hygiene: a key's text appears in no file, no stream, no traceback and no list of processes.

A key may have what copying adds around it, be given in four ways and go to five providers, and the
server may do anything with it. `Watch` runs the real command and keeps all that it says, every file
that it writes wherever that is, and every process that it starts; `Watch.find` looks through it
for each run of 8 characters of a secret.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from commands import PATIENCE_S, Command, Done, one_line, until
from servers import Received, Say, Server, answer, error, model_list
from terminals import CTRL_C, CTRL_D, Pty

from hallumaze import LLMProvider, ModelSpec, ProviderError, UsageError

PROVIDERS = ("anthropic", "openai", "google", "deepseek", "compatible")
ASKED = PROVIDERS[:4]  # those that the questions at a terminal are about
WIRES = PROVIDERS[:3]

# What stands before the secret part is no secret: every key of a vendor begins with it.
PREFIXES = {"anthropic": "sk-ant-", "openai": "sk-proj-", "google": "AIza", "deepseek": "sk-"}
CORES = {
    "anthropic": "Bq7Rk2Vx9Lm4Tb8Wd3Hn6Yc5Zf1",
    "openai": "Jw3Pg8Ns5Qe1Xa7Uk4Dr9Mv2Ci6",
    "google": "Hz6Ft1Ky9Bo3Wl8Gs2Ne7Jp4Ru5",
    "deepseek": "a4f09c7be35d1862fd90b7c41e8",
    "compatible": "Ti8Xm5Co2Zv7Eh4Lq9Da1Pb6Sw3",
}

# The characters that each way of quoting has a form of its own for; none of them is at the end,
# where copying might have added it.
AWKWARD = ('+/="', "\\%&<", "'>~?")


def key_of(provider: str, form: str = "") -> str:
    """The key of a provider, as a server is to receive it."""
    core = CORES[provider]
    if form == "awkward":
        thirds = (core[:9], core[9:18], core[18:])
        core = "".join(part + signs for part, signs in zip(thirds, AWKWARD, strict=True))
    return PREFIXES.get(provider, "") + core


def wire_of(provider: str) -> str:
    """The wire format that a provider speaks."""
    return provider if provider in WIRES else "openai"


def pieces(secrets: Iterable[str]) -> set[str]:
    """Every run of 8 characters of the secret parts."""
    cores = [re.sub(r"^(sk-(ant-|proj-)?|AIza)", "", secret) for secret in secrets]
    return {core[k : k + 8] for core in cores for k in range(len(core) - 7)}


# What copying adds around a key. On a terminal, a line end is what Enter is.
FORMS = {
    "plain": "{}",
    "newline": "{}\n",
    "blanks": " \t{}  ",
    "curly": "“{}”",
    "quotes": "'\"{}\"'",
    "unseen": "\ufeff\u200b{}\u00a0",
    "awkward": "{}",
}

# ---- what a server does


def received_key(request: Received) -> str:
    """The key that came with a request."""
    headers = request.headers
    names = ("x-api-key", "x-goog-api-key", "authorization")
    sent = next(headers[name] for name in names if name in headers)
    return sent.removeprefix("Bearer ")


def quoted(key: str) -> str:
    """A key in all the forms in which programs write text."""
    lower = re.sub("%..", lambda match: match[0].lower(), quote(key, ""))
    forms = (
        *(key, quote(key), quote(key, ""), quote_plus(key), lower, quote(quote(key, ""), "")),
        *(repr(key), json.dumps(key), json.dumps(json.dumps(key)), key.replace("/", "\\/")),
        *(
            escape(key),
            "".join(f"&#{ord(c)};" for c in key),
            "".join(f"&#x{ord(c):x};" for c in key),
        ),
        *("".join(f"\\u{ord(c):04x}" for c in key), "".join(f"\\x{ord(c):02X}" for c in key)),
    )
    return " | ".join(forms)


def page(request: Received) -> str:
    """A proxy's page that shows the request."""
    lines = (f"{name}: {value}" for name, value in request.headers.items())
    return f"<html><title>Oh no</title><p>{escape('; '.join(lines))}</p></html>"


def fields(wire: str, key: str) -> Any:
    """An answer with the key in every field that is kept."""
    return {
        **answer(wire, f"the answer {key}", f"stop-{key}", f"thought {key}"),
        **dict.fromkeys(("id", "responseId"), f"id {quoted(key)}"),
        **dict.fromkeys(("model", "modelVersion"), key),
    }


Act = tuple[Callable[[Received, str], "Say | str"], str]

# name -> (what the server says, what the error of the trial says; "" for an answer). Never five
# errors in a row that no retry can mend: the provider would be given up.
ACTS: dict[str, Act] = {
    "answer": (lambda request, key: "no step", ""),
    "400": (lambda request, key: error(request.wire, 400, f"no: {key}"), "HTTP 400"),
    "401": (
        lambda request, key: error(request.wire, 401, f"Incorrect API key provided: {key}"),
        "the key was rejected",
    ),
    "429": (
        lambda request, key: error(request.wire, 429, key, headers={"retry-after": key}),
        "the rate limit",
    ),
    "401 in JSON": (
        lambda request, key: error(request.wire, 401, json.dumps({"k": key, "r": repr(key)})),
        "the key was rejected",
    ),
    "401 quoted": (
        lambda request, key: error(request.wire, 401, quoted(key)),
        "the key was rejected",
    ),
    "500": (lambda request, key: error(request.wire, 500, f"at {key}"), "the server failed"),
    "403": (lambda request, key: Say(page(request), 403, content_type="text/html"), "HTTP 403"),
    "404": (lambda request, key: error(request.wire, 404, f"no {key}"), "is not known at"),
    "a page": (lambda request, key: Say(page(request), content_type="text/html"), "no JSON"),
    "cut": (lambda request, key: Say({"key": key}, cut=True), "was cut"),
    "a page as JSON": (lambda request, key: Say(page(request)), "no JSON"),
    "half of JSON": (lambda request, key: Say(f'{{"key": "{key}", '), "no JSON"),
    "error with 200": (lambda request, key: Say({"error": {"message": quoted(key)}}), "/"),
    "long error": (  # of which the line has no more than the beginning
        lambda request, key: Say({"error": {"message": "." * 280 + key}}),
        "/",
    ),
    "echo": (lambda request, key: f"{key} {page(request)}", ""),
    "quoted echo": (lambda request, key: quoted(key), ""),
    "every field": (lambda request, key: Say(fields(request.wire, key)), ""),
}


class Actor:
    """Does with the n-th request of each key what the n-th act says, and looks at the processes."""

    def __init__(self, acts: Iterable[Act], watch: Watch | None = None) -> None:
        self.acts = list(acts)
        self.watch = watch
        self.served: dict[str, int] = {}

    def __call__(self, request: Received) -> Say | str:
        key = received_key(request)
        number = self.served.setdefault(key, 0)
        self.served[key] += 1
        if self.watch and number == 0:
            self.watch.look_at_processes()
        return self.acts[number % len(self.acts)][0](request, key)


# ---- all that a command leaves behind

AUDIT = """
import json, os, sys
if sys.orig_argv[1:2] != ["-c"]:  # what becomes the command is not the command yet
    log = os.open(os.environ["AUDIT"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    starts = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork")
    def note(event, args):
        what = None
        if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR) and not isinstance(args[0], int):
            what = os.path.abspath(os.fsdecode(args[0]))
        elif event in starts or event == "socket.connect":
            what = repr(args[1:] if event == "socket.connect" else args)
        if what is not None:
            os.write(log, (json.dumps([event, what]) + "\\n").encode())
    sys.addaudithook(note)
"""


class Watch:
    """Runs the command, and keeps whatever it says, writes, starts and connects to."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.folder = command.folder
        self.pid: int | None = None
        self.said: dict[str, str] = {}
        self.log = self.folder / "audit" / "log"
        self.log.parent.mkdir()
        (self.folder / "tmp").mkdir()
        (self.log.parent / "sitecustomize.py").write_text(AUDIT)
        self.env = {
            "PYTHONPATH": str(self.log.parent),
            "AUDIT": str(self.log),
            "TMPDIR": str(self.folder / "tmp"),
        }

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        where = self.command.env(**self.env, **env)
        process = self.command.start(*args, "--output", str(self.command.output), env=where)
        self.pid = process.pid
        return process

    def end(self, process: subprocess.Popen[str]) -> Done:
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        self.keep(out, err)
        return Done(process.returncode, out, err, self.command.output)

    def run(self, *args: str, **env: str) -> Done:
        return self.end(self.start(*args, **env))

    def keep(self, out: str, err: str = "") -> None:
        """Add to what was said."""
        number = len(self.said)
        self.said |= {f"stdout {number}": out, f"stderr {number}": err}

    def look_at_processes(self) -> None:
        """Keep the command lines of the command and of all processes below it, as ps shows them."""
        if self.pid is None or not os.path.isdir(f"/proc/{self.pid}"):
            return  # not Linux: the audit hook has seen what was started
        parents = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                parent = path.read_text().rpartition(")")[2].split()[1]
                parents[int(path.parent.name)] = int(parent)
        family = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        lines = {}
        for pid in family:
            with contextlib.suppress(OSError):
                lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        assert "hallumaze.py" in lines[self.pid]
        self.said[f"processes {len(self.said)}"] = "\n".join(lines.values())

    def audited(self, *events: str) -> list[str]:
        entries = [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]
        return [what for event, what in entries if event in events]

    def texts(self, *but: Path) -> Iterator[tuple[str, str]]:
        """(where, text) of all there is to look through."""
        yield from self.said.items()
        for path in self.folder.rglob("*"):
            yield str(path), path.name
            if path.is_file() and path not in but:
                yield str(path), path.read_bytes().decode("utf-8", "replace")

    def find(self, secrets: Iterable[str], *but: Path) -> None:
        """No piece of a secret is anywhere, but for files in which a key was put on purpose."""
        assert all(path.is_file() for path in but)
        for where, text in self.texts(*but):
            found = [piece for piece in pieces(secrets) if piece in text]
            assert not found, (where, found, text[:3000])
        for where, text in self.said.items():
            assert "Traceback" not in text and "Exception ignored" not in text, (where, text)
        for path in self.audited("open"):
            elsewhere = Path(path).is_relative_to("/dev") or ".coverage" in Path(path).name
            assert elsewhere or Path(path).is_relative_to(self.folder), path


@pytest.fixture
def watch(command: Command) -> Watch:
    return Watch(command)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


# ---- the ways in which a key is given

WAYS = ("environment", "file", "variable", "typed")
KEY_QUESTION = "{} API key (hidden; Enter skips):"
SMALL = ("--size", "5", "--lang", "en")

Typed = Mapping[str, str]  # provider -> the key as it is typed, pasted or written


def given(way: str, watch: Watch, keys: Typed, urls: Mapping[str, str]) -> tuple[list[str], Any]:
    """(arguments, environment) that give these keys in this way."""
    env = {f"{name.upper()}_BASE_URL": url for name, url in urls.items()}
    if way == "environment":
        models = [word for name in keys for word in ("--model", f"{name}/m")]
        return models, {**env, **{f"{name.upper()}_API_KEY": key for name, key in keys.items()}}
    entries = []
    for name, key in keys.items():
        entry = {"provider": name, "model": "m", "base_url": urls[name]}
        if way == "file":
            entry["api_key"] = key
        else:
            entry["api_key_env"] = variable = f"MY_{name.upper()}_SECRET"
            env[variable] = key
        entries.append(entry)
    path = watch.folder / "mine.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"providers": entries}), encoding="utf-8")
    return ["--config", str(path)], env


def answer_questions(shown: Pty, keys: Typed) -> None:
    """Type the keys, take the defaults, save it all."""
    for name in ASKED:
        shown.question(KEY_QUESTION.format(name))
        typed = keys.get(name, "")
        shown.type(typed if typed.endswith("\n") else f"{typed}\r")
        if typed:
            shown.question("]:")
            assert shown.text().rsplit("\n", 1)[-1].startswith(f"{name} model [")
            shown.type("\r")
    for question in ("maze size", "linguistic mirages?", "ask for confidence?", "Ariadne group"):
        until(lambda: shown.text().rsplit("\n", 1)[-1].startswith(question))  # noqa: B023
        shown.type("\r")
    shown.answer("save this to config.json? (y/n) [n]:", "y")


def run_in_this_way(
    way: str, watch: Watch, keys: Typed, urls: Mapping[str, str], *args: str
) -> Done:
    """A run with keys that are given in this way."""
    if way != "typed":
        first, env = given(way, watch, keys, urls)
        return watch.run(*first, *SMALL, *args, **env)
    env = {f"{name.upper()}_BASE_URL": url for name, url in urls.items()}
    output = ("--output", str(watch.command.output))
    with Pty(watch.command, "--interactive", *SMALL, *args, *output, **watch.env, **env) as shown:
        watch.pid = shown.process.pid
        answer_questions(shown, keys)
        code, text = shown.end(), shown.text()
        watch.keep(text, shown.raw.decode("utf-8", "replace"))
    saved = watch.folder / "config.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    return Done(code, text, "", watch.command.output)


def files_with_keys(way: str, watch: Watch) -> list[Path]:
    """Where the user has put the key: asked for a file with it, or written one."""
    name = {"typed": "config.json", "file": "mine.json"}.get(way)
    return [watch.folder / name] if name else []


def forms_of(way: str, turn: int) -> dict[str, str]:
    """provider -> a form of key; from turn to turn each provider has the next form."""
    names = ASKED if way == "typed" else PROVIDERS
    forms = list(FORMS)
    return {name: forms[(k + turn) % len(forms)] for k, name in enumerate(names)}


# (way, turn): each way meets each form, each provider meets each form and each way, and all of
# them meet every act of the server.
TURNS = [
    *(("environment", 0), ("environment", 4), ("file", 1), ("file", 5), ("variable", 2)),
    *(("variable", 6), ("variable", 3), ("typed", 0), ("typed", 4)),
]


def test_the_turns_cover_every_pair() -> None:
    met = [(way, form, name) for way, turn in TURNS for name, form in forms_of(way, turn).items()]
    assert {(way, form) for way, form, _ in met} == {(way, form) for way in WAYS for form in FORMS}
    assert {(name, form) for _, form, name in met} == {(n, f) for n in PROVIDERS for f in FORMS}
    assert {(way, name) for way, _, name in met} >= {(w, n) for w in WAYS for n in ASKED}


def posix(way: str) -> None:
    if way == "typed" and os.name != "posix":
        pytest.skip("a POSIX terminal")


@pytest.mark.parametrize(("way", "turn"), TURNS)
def test_whatever_a_server_does(way: str, turn: int, watch: Watch, server: Server) -> None:
    posix(way)
    forms = forms_of(way, turn)
    secrets = {name: key_of(name, form) for name, form in forms.items()}
    keys = {name: FORMS[form].format(secrets[name]) for name, form in forms.items()}
    urls = {name: server.base_url(name) for name in forms}
    server.answer = actor = Actor(ACTS.values(), watch)
    # One call after the other, so that the acts come in the order of the seeds.
    args = ("--seeds", f"1-{len(ACTS)}", "--retries", "0", "--csv", "--concurrency", "1")
    done = run_in_this_way(way, watch, keys, urls, *args)
    assert done.code == 1, done.err
    # Each key came as it is meant, once for each act, and each act had its effect.
    assert actor.served == {secret: len(ACTS) for secret in secrets.values()}
    assert len(done.results) == len(ACTS) * len(forms)
    for result in done.results:
        name, (_, words) = list(ACTS.items())[result["maze_seed"] - 1]
        assert (result["outcome"] == "error") == bool(words), (name, result)
        assert words in (result["error"] or ""), (name, result)
        if "echo" in name:
            assert "***" in result["raw_response"]
    assert any(where.startswith("processes") for where in watch.said) or sys.platform != "linux"
    watch.find(secrets.values(), *files_with_keys(way, watch))


@pytest.mark.parametrize("turn", range(4))
def test_no_server_and_a_silent_one(turn: int, watch: Watch, server: Server) -> None:
    """By turns, no provider has its server, or one that says nothing; and the SDKs keep logs."""
    way = WAYS[turn]
    posix(way)
    forms = forms_of(way, 2 * turn)
    secrets = {name: key_of(name, form) for name, form in forms.items()}
    keys = {name: FORMS[form].format(secrets[name]) for name, form in forms.items()}
    silent = {name: (k + turn) % 2 == 0 for k, name in enumerate(forms)}
    nobody = "http://127.0.0.1:9"
    urls = {name: server.base_url(name) if silent[name] else nobody for name in forms}
    server.answer = lambda request: Say(silence=PATIENCE_S)
    args = ("--seed", "1", "--retries", "0", "--timeout", "0.5", "--csv")
    done = run_in_this_way(way, watch, keys, urls, *args)
    assert done.code == 1, done.err
    for result in done.results:
        words = "0.5 seconds" if silent[result["provider"]] else "no connection"
        assert words in result["error"]
    assert len(server.requests) == sum(silent.values())
    watch.find(secrets.values(), *files_with_keys(way, watch))


@pytest.mark.parametrize("name", WIRES)
def test_ctrl_c_in_a_call_and_the_resumed_run(name: str, watch: Watch, server: Server) -> None:
    """One trial is answered at the second try, the next is cut off, --resume plays it again."""
    secret = key_of(name, "awkward")
    failed = error(name, 500, secret, headers={"retry-after": "0"})
    says: dict[int, Say | str] = {0: failed, 2: Say(silence=PATIENCE_S)}
    numbers = count()
    server.answer = lambda request: says.get(next(numbers), f"{secret} {quoted(secret)}")
    folder = ("--results-dir", str(watch.folder / "results"))
    urls = {name: server.base_url(name)}
    args, env = given("environment", watch, {name: f"“{secret}”\n"}, urls)
    process = watch.start(*args, *SMALL, "--seeds", "1-2", "--retries", "1", *folder, **env)
    until(lambda: len(server.requests) == 3 or process.poll() is not None)
    watch.look_at_processes()
    process.send_signal(signal.SIGINT)
    done = watch.end(process)
    assert (done.code, len(done.results)) == (130, 1)
    watch.find([secret])
    bad = watch.run("--resume", *folder, **{**env, f"{name.upper()}_API_KEY": f"{secret}é{secret}"})
    assert bad.code == 2
    one_line(bad, f"{name.upper()}_API_KEY")
    assert len(server.requests) == 3
    path = watch.folder / "mine.json"
    path.touch(mode=0o600)
    entry = {"provider": name, "model": "m", "api_key": f" {secret}\n"}
    path.write_text(json.dumps({"providers": [entry]}), encoding="utf-8")
    last = watch.run("--resume", "--config", str(path), *folder, "--csv")
    assert (last.code, len(last.results), len(server.requests)) == (0, 2, 4)
    assert {received_key(request) for request in server.requests} == {secret}
    watch.find([secret], path)


@pytest.mark.parametrize("action", ["--list-models", "--check"])
def test_list_models_and_check(action: str, watch: Watch, server: Server) -> None:
    """Every second provider's server rejects the key, the others hand it back."""
    listing = action == "--list-models"
    forms = forms_of("environment", 2 if listing else 5)
    secrets = {name: key_of(name, form) for name, form in forms.items()}
    keys = {name: FORMS[form].format(secrets[name]) for name, form in forms.items()}
    rejected = [name for k, name in enumerate(forms) if k % 2 == listing]
    for name, secret in secrets.items():
        listed = model_list(wire_of(name), [f"m-{secret}", *quoted(secret).split(" | ")])
        good = Say(listed if listing else fields(wire_of(name), secret))
        bad = error(wire_of(name), 401, f"no: {quoted(secret)}")
        server.script(bad if name in rejected else good)
    args, env = given("environment", watch, keys, {n: server.base_url(n) for n in forms})
    done = watch.run(*args, action, "--retries", "0", **env)
    assert done.code == 1
    assert done.err.count("the key was rejected") == len(rejected)
    assert done.out.count("/m-***\n") == (len(forms) - len(rejected)) * listing
    assert [received_key(request) for request in server.requests] == list(secrets.values())
    watch.find(secrets.values())


@pytest.mark.parametrize("way", WAYS[:3])
def test_show(way: str, watch: Watch, server: Server) -> None:
    urls = {name: server.base_url(name) for name in PROVIDERS}
    args, env = given(way, watch, {name: key_of(name) for name in PROVIDERS}, urls)
    done = watch.run(*args, "--show", *SMALL, **env)
    assert (done.code, done.err, server.requests) == (0, "", [])
    assert watch.audited("socket.connect") == []
    watch.find(map(key_of, PROVIDERS), *files_with_keys(way, watch))


# ---- what is no key

INSIDE = {
    "newline": "\n",
    "carriage return": "\r",
    "blank": " ",
    "tab": "\t",
    "hard blank": "\u00a0",
    "curly quote": "’",
    "letter": "é",
    "Korean": "열쇠",
    "unseen": "\u200b",
    "bell": "\x07",
    "byte": "\udce9",
    "emoji": "🔑",
}
ACTIONS = ((), ("--check",), ("--list-models",), ("--show",))


@pytest.mark.parametrize("way", WAYS[:3])
@pytest.mark.parametrize("inside", INSIDE)
def test_what_is_inside_a_key_ends_the_command(
    inside: str, way: str, watch: Watch, server: Server
) -> None:
    """Exit 2 and one line that names where the key came from; nothing is sent."""
    if inside == "byte" and way == "file":
        pytest.skip("a file is UTF-8, or is refused before any key is read")
    turn = list(INSIDE).index(inside) + WAYS.index(way)
    name = PROVIDERS[turn % len(PROVIDERS)]
    secret = key_of(name, list(FORMS)[turn % len(FORMS)])
    key = secret[:20] + INSIDE[inside] + secret[20:]
    args, env = given(way, watch, {name: key}, {name: server.base_url(name)})
    done = watch.run(*args, *SMALL, *ACTIONS[turn % len(ACTIONS)], **env)
    assert done.code == 2
    source = {"environment": f"{name.upper()}_API_KEY", "file": "providers[0].api_key"}
    one_line(done, source.get(way, f"MY_{name.upper()}_SECRET"))
    assert server.requests == [] and watch.audited("socket.connect") == []
    assert not watch.command.output.exists()
    watch.find([secret], *files_with_keys(way, watch))


@pytest.mark.skipif(os.name != "posix", reason="a POSIX terminal")
def test_what_is_inside_a_typed_key_asks_again(watch: Watch) -> None:
    """Of a pasted key with a line end inside, the rest is no answer to the next question."""
    secrets = {name: key_of(name, "awkward") for name in ASKED}
    question = KEY_QUESTION.format("anthropic")
    secret = secrets["anthropic"]
    with Pty(watch.command, "--interactive", **watch.env) as shown:
        watch.pid = shown.process.pid
        bad = [sign for sign in INSIDE.values() if not re.search(r"[\r\n]", sign)]
        for number, sign in enumerate(bad, 1):
            until(lambda: shown.text().count(question) == number)  # noqa: B023
            shown.question(question)
            shown.type(f"{secret[:20]}{sign}{secret[20:]}\r")
        until(lambda: shown.text().count(question) == len(bad) + 1)
        assert shown.text().count("this is no API key") >= len(bad) - 1  # a byte is no text at all
        shown.question(question)
        shown.type(f"{secret[:20]}\n{secret[20:]}\r")
        shown.question("]:")
        model = shown.text().rsplit("\n", 1)[-1]
        shown.type("\r")
        shown.question(KEY_QUESTION.format("openai"))
        watch.look_at_processes()
        shown.type(secrets["openai"] + CTRL_C)
        assert shown.end() == 130
        watch.keep(shown.text(), shown.raw.decode("utf-8", "replace"))
    assert model.startswith("anthropic model [")
    watch.find(secrets.values())


@pytest.mark.skipif(os.name != "posix", reason="a POSIX terminal")
def test_a_key_that_is_never_entered(watch: Watch) -> None:
    """Typed, and left with Ctrl-D in place of Enter."""
    secret = key_of("anthropic")
    with Pty(watch.command, "--interactive", **watch.env) as shown:
        shown.question(KEY_QUESTION.format("anthropic"))
        shown.type(secret + CTRL_D + CTRL_D)
        shown.question("]:")
        shown.type(CTRL_D)
        assert shown.end() == 130
        watch.keep(shown.text(), shown.raw.decode("utf-8", "replace"))
    watch.find([secret])


# ---- keys where they do not belong


@pytest.mark.parametrize("name", ["google", "compatible"])
def test_a_key_in_the_place_of_a_variable(name: str, watch: Watch) -> None:
    """A key of letters and digits alone could be the name of a variable."""
    secret = key_of(name)
    path = watch.folder / "mine.json"
    path.touch(mode=0o600)
    entry = {"provider": "openai", "api_key_env": secret}
    path.write_text(json.dumps({"providers": [entry]}), encoding="utf-8")
    done = watch.run("--config", str(path))
    assert done.code == 2
    one_line(done, "providers[0].api_key_env")
    watch.find([secret], path)


def test_a_key_in_the_base_url(watch: Watch, server: Server) -> None:
    """As some gateways want it; given as the key as well, it is known and taken out."""
    secret = key_of("compatible", "awkward")
    server.answer = Actor([ACTS["echo"], ACTS["404"]])
    url = f"{server.url}/{quote(secret, '')}/v1"
    env = {"COMPATIBLE_API_KEY": secret, "COMPATIBLE_BASE_URL": url}
    done = watch.run("--model", "compatible/m", *SMALL, "--seeds", "1-2", "--csv", **env)
    assert (done.code, len(server.requests)) == (1, 2)
    watch.find([secret])


# ---- in a program that uses the classes


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.filterwarnings("ignore::UserWarning")  # an SDK's own; the command silences them
@pytest.mark.parametrize("form", ["plain", "awkward"])
@pytest.mark.parametrize("name", PROVIDERS)
def test_no_traceback_shows_a_key(
    name: str, form: str, server: Server, at_home: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever catches nothing sees a traceback, with all that hangs on the exception."""
    secret = key_of(name, form)
    provider = LLMProvider(name, "m", f" {secret}\n", server.base_url(name), max_retries=0)
    server.answer = Actor(ACTS.values())
    seen, failed = [repr(provider), repr(ModelSpec(name, "m", secret))], 0
    ask = [{"role": "user", "content": "Hi"}]
    for _ in ACTS:
        try:
            seen.append(repr(provider.complete("", ask, 5)))
        except ProviderError as caught:
            failed += 1
            seen += [repr((caught.__context__, caught.__cause__)), repr(vars(caught))]
            seen += traceback.format_exception(caught)
    assert failed == sum(bool(words) for _, words in ACTS.values())
    server.script(Say(model_list(wire_of(name), [quoted(secret)])))
    seen.append(repr(provider.list_models()))
    for inside in INSIDE.values():
        with pytest.raises(UsageError) as refused:
            LLMProvider(name, "m", secret[:20] + inside + secret[20:], server.url)
        seen += traceback.format_exception(refused.value)
    provider.close()
    seen += capfd.readouterr()
    for text in seen:
        assert not [piece for piece in pieces([secret]) if piece in text], text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("name", WIRES)
def test_a_key_is_not_sent_on_to_another_host(
    name: str, status: int, server: Server, at_home: None
) -> None:
    """A redirect leads to a stranger."""
    secret = key_of(name)
    with Server() as stranger:
        elsewhere = stranger.url.replace("127.0.0.1", "localhost")
        server.answer = lambda request: Say({}, status, {"location": elsewhere + request.path})
        provider = LLMProvider(name, "m", secret, server.base_url(name), max_retries=0)
        with contextlib.suppress(ProviderError):  # without its key, a request may well fail
            provider.complete("", [{"role": "user", "content": "Hi"}], 5)
        provider.close()
        assert len(server.requests) == 1
        assert not any(secret in str(request.headers) for request in stranger.requests)
