"""Runs that nobody watches: the README's lines for cron, systemd and GitHub Actions, as they stand.

Each is taken out of the README and run in a checkout of the test's own, with the environment that
its starter would give and nothing else. Only the place of the checkout is replaced; a loopback
server is named beside the key.
"""

from __future__ import annotations

import configparser
import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, ROOT, SCRIPT, Command, Done, one_line, until
from servers import Received, Say, Server, error
from test_documents import blocks, read

import hallumaze

pytestmark = pytest.mark.skipif(os.name != "posix", reason="cron and systemd are POSIX")

PLACE = "/opt/hallumaze"  # where the README's lines have the checkout
KEY = "sk-FAKE-unattended-8888"
TRIALS = 60  # of the README's --seeds 1-60
CRON = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}  # cron's own, less HOME and LOGNAME
SYSTEMD = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "INVOCATION_ID": "0"}
TRIAL_FAILED = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 ! openai/gpt-4o seed \d+: error, not a score: "
)


def solution(request: Received) -> str:
    return hallumaze.REFERENCE_AGENTS["oracle"](hallumaze._read_task(request.turns[0][1]))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.answer = solution
        yield running


class Checkout:
    """A checkout as the README's lines expect it, with its file of keys."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.results.mkdir(parents=True)
        for name in ("hallumaze.py", "requirements.txt"):
            shutil.copy(ROOT / name, folder)
        python = folder / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        python.chmod(0o755)
        self.keys = folder / ".env"
        self.url = server.base_url("openai")
        (line,) = [x for block in blocks(read("README.md"), "bash") for x in key_file_lines(block)]
        assert self.sh(line, umask=0o022).code == 0
        self.set_keys(f"OPENAI_API_KEY={KEY}")

    def set_keys(self, *lines: str) -> None:
        self.keys.write_text("\n".join((*lines, f"OPENAI_BASE_URL={self.url}", "")))

    def here(self, text: str) -> str:
        """A line of the README for this checkout."""
        return text.replace(PLACE, str(self.folder))

    def sh(self, line: str, *, umask: int = -1, **env: str) -> Done:
        """What /bin/sh does with a line of the README, in another folder and a bare environment."""
        return self.call(["/bin/sh", "-c", self.here(line)], {**CRON, **env}, umask=umask)

    def call(self, argv: list[str], env: dict[str, str], **options: Any) -> Done:
        """The end of a command that has this environment and no more."""
        cwd = options.pop("cwd", self.folder.parent)
        ended = subprocess.run(
            argv,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
            **options,
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr, self.folder / "none.json")
        Command(self.folder).look_through(done, {"A_KEY": KEY})
        return done

    @property
    def log(self) -> list[str]:
        return (self.results / "cron.log").read_text(encoding="utf-8").splitlines()

    @property
    def outcomes(self) -> list[str]:
        """How the trials of the one run ended, after a look at its files."""
        (path,) = self.results.glob("hallumaze_results_*.json")
        document = json.loads(path.read_text(encoding="utf-8"))
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            rows = [row["outcome"] for row in csv.DictReader(file)]
        outcomes = [trial["outcome"] for trial in document["results"]]
        assert rows == outcomes
        seeds = [trial["maze_seed"] for trial in document["results"]]
        assert seeds == sorted(set(seeds))
        assert {(t["provider"], t["model"]) for t in document["results"]} == {("openai", "gpt-4o")}
        return outcomes


@pytest.fixture
def checkout(tmp_path: Path, server: Server) -> Checkout:
    return Checkout(tmp_path / "checkout", server)


def key_file_lines(block: str) -> list[str]:
    return [line for line in block.splitlines() if "chmod 600" in line and "/.env" in line]


# ---- what the README holds


def cron_command() -> str:
    """The command of the README's crontab line, as cron hands it to /bin/sh."""
    (block,) = blocks(read("README.md"), "cron")
    (line,) = block.splitlines()  # a crontab knows no continuation
    assert len(line) < 998, "cron cuts longer lines"
    *when, command = line.split(None, 5)
    assert len(when) == 5
    for field, most in zip(when, (59, 23, 31, 12, 7), strict=True):
        assert field == "*" or 0 <= int(field) <= most, field
    # Up to the first % that has no backslash; the rest would be the command's input.
    return re.split(r"(?<!\\)%", command)[0].replace(r"\%", "%")


def resume_line() -> str:
    lines = [x for block in blocks(read("README.md"), "bash") for x in block.splitlines()]
    (line,) = [x for x in lines if PLACE in x and "--resume" in x]
    return line


def units() -> dict[str, str]:
    """The README's unit files, by the end of their names."""
    found = blocks(read("README.md"), "ini")
    return {"timer" if "[Timer]" in text else "service": text for text in found}


def unit(kind: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(units()[kind])
    return parser


def workflow() -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (block,) = blocks(read("README.md"), "yaml")
    return yaml.safe_load(block)


def test_the_file_of_keys_is_its_owners(checkout: Checkout) -> None:
    """A second call of the line leaves the keys that are in it."""
    assert checkout.keys.stat().st_mode & 0o777 == 0o600
    (line,) = [x for block in blocks(read("README.md"), "bash") for x in key_file_lines(block)]
    assert checkout.sh(line).code == 0
    assert KEY in checkout.keys.read_text()
    assert ".env" in read(".gitignore").splitlines()


def test_the_table_has_every_exit_code() -> None:
    codes = {code for name, code in vars(hallumaze).items() if name.startswith("EXIT_")}
    assert codes <= {int(row) for row in re.findall(r"^\| (\d+) \| ", read("README.md"), re.M)}


# ---- cron


def test_a_good_night_of_cron_says_nothing(checkout: Checkout, server: Server) -> None:
    """From another folder, without HOME or a locale, and with the key in no process list."""
    seen: list[bool] = []

    def answer(request: Received) -> str:
        if not seen:
            seen.append(KEY in process_list())
        return solution(request)

    server.answer = answer
    done = checkout.sh(cron_command())
    assert (done.code, done.out, done.err, checkout.log) == (0, "", "", [])
    assert checkout.outcomes == ["ok"] * TRIALS == ["ok"] * len(server.requests)
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {KEY}"}
    assert seen and not any(seen)
    assert [path.name for path in checkout.folder.parent.iterdir()] == ["checkout"]


def process_list() -> str:
    """What `ps` would show of every process, where there is /proc."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:  # it has ended
            continue
    return "\n".join(lines)


def test_a_bad_night_of_cron_and_the_morning_after(checkout: Checkout, server: Server) -> None:
    server.script(Say(), Say(status=401), Say(), Say(status=400), Say(status=403))
    checkout.sh(cron_command())
    *failed, last = checkout.log
    assert len(failed) == 3 and all(TRIAL_FAILED.match(line) for line in failed)
    assert re.fullmatch(r"exit code 1 at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", last)
    assert Counter(checkout.outcomes) == {"ok": TRIALS - 3, "error": 3}
    done = checkout.sh(resume_line())
    assert (done.code, done.err) == (0, "")
    assert checkout.outcomes == ["ok"] * TRIALS
    assert len(server.requests) == TRIALS + 3


def test_cron_without_the_file_of_keys(checkout: Checkout, server: Server) -> None:
    checkout.keys.unlink()
    checkout.sh(cron_command())
    (line,) = checkout.log
    assert str(checkout.keys) in line
    assert server.requests == []


def test_cron_without_the_key(checkout: Checkout, server: Server) -> None:
    """The agents do not run in the place of the model."""
    checkout.set_keys()
    checkout.sh(cron_command())
    line, last = checkout.log
    assert "OPENAI_API_KEY" in line and last.startswith("exit code 2 at ")
    assert server.requests == []
    assert [path.name for path in checkout.results.iterdir()] == ["cron.log"]


def test_cron_while_the_night_before_is_still_at_work(checkout: Checkout, server: Server) -> None:
    from filelock import FileLock

    with FileLock(checkout.results / ".lock"):
        checkout.sh(cron_command())
    line, last = checkout.log
    assert "another run" in line and last.startswith("exit code 75 at ")
    assert server.requests == []


# ---- systemd


def started_by_systemd(checkout: Checkout) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the README's service, as systemd reads them."""
    service = unit("service")["Service"]
    assert service["Type"] == "oneshot"  # any other gives up on a long run, or never ends
    assert "%" not in service["ExecStart"]
    argv = shlex.split(checkout.here(service["ExecStart"]))
    assert Path(argv[0]).is_absolute()
    lines = Path(checkout.here(service["EnvironmentFile"])).read_text().splitlines()
    return argv, {**SYSTEMD, **dict(line.split("=", 1) for line in lines)}


def test_the_service_runs(checkout: Checkout, server: Server) -> None:
    argv, env = started_by_systemd(checkout)
    done = checkout.call(argv, env, cwd="/")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert checkout.outcomes == ["ok"] * TRIALS == ["ok"] * len(server.requests)


def test_a_service_that_is_stopped(checkout: Checkout, server: Server) -> None:
    """`systemctl stop` sends SIGTERM: what was finished is saved, the rest can be had later."""
    server.script(Say(), Say(), *[Say(silence=PATIENCE_S)] * hallumaze.CONCURRENCY)
    argv, env = started_by_systemd(checkout)
    process = subprocess.Popen(argv, env=env, cwd="/", stderr=subprocess.PIPE, encoding="utf-8")
    until(lambda: len(server.requests) == 2 + hallumaze.CONCURRENCY)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert len(err.splitlines()) == 1 and "--resume" in err
    assert checkout.outcomes == ["ok"] * 2
    assert checkout.sh(resume_line()).code == 0
    assert checkout.outcomes == ["ok"] * TRIALS


def test_a_service_whose_key_is_rejected(checkout: Checkout, server: Server) -> None:
    server.answer = lambda request: error("openai", 401, f"no such key: {KEY}", "invalid_api_key")
    argv, env = started_by_systemd(checkout)
    done = checkout.call(argv, env, cwd="/")
    assert (done.code, done.out) == (1, "")
    *failed, given_up = done.err.splitlines()
    # Calls that are in flight when the fifth has failed still end.
    most = hallumaze.MOST_FAILURES + hallumaze.CONCURRENCY - 1
    assert hallumaze.MOST_FAILURES <= len(failed) == len(server.requests) <= most
    assert all(TRIAL_FAILED.match(line) for line in failed)
    assert "--resume" in given_up


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_understands_the_units(checkout: Checkout, tmp_path: Path) -> None:
    """In the system, and with the README's changes for a checkout in a home."""
    system, home = tmp_path / "system", tmp_path / "home"
    for folder in (system, home, tmp_path / "runtime"):
        folder.mkdir(mode=0o700)
    (home / "hallumaze").symlink_to(checkout.folder)
    for kind, text in units().items():
        (system / f"hallumaze.{kind}").write_text(checkout.here(text))
        text = re.sub(r"^(?:User|Wants|After)=.*\n", "", text, flags=re.M)
        (home / f"hallumaze.{kind}").write_text(text.replace(PLACE, "%h/hallumaze"))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    env["XDG_RUNTIME_DIR"] = str(tmp_path / "runtime")

    def complaints(folder: Path) -> list[str]:
        manager = "--system" if folder == system else "--user"
        paths = [str(path) for path in sorted(folder.glob("hallumaze.*")) if path.is_file()]
        done = checkout.call(["systemd-analyze", manager, "verify", *paths], env)
        return [line for line in (done.out + done.err).splitlines() if "hallumaze." in line]

    assert complaints(system) == complaints(home) == []
    service = system / "hallumaze.service"
    service.write_text(service.read_text().replace("ExecStart=", "ExecStrat="))
    if not complaints(system):
        pytest.skip("systemd-analyze verifies nothing here")


def test_the_timer(checkout: Checkout) -> None:
    timer = unit("timer")
    assert timer["Install"]["WantedBy"] == "timers.target"
    when = timer["Timer"]["OnCalendar"]
    assert re.fullmatch(r"\*-\*-\* [0-2]\d:[0-5]\d:[0-5]\d", when)
    assert set(units()) == {"service", "timer"}  # a timer starts the service of its own name
    if shutil.which("systemd-analyze"):
        assert checkout.call(["systemd-analyze", "calendar", when], CRON).code == 0


# ---- GitHub Actions


def steps() -> list[dict[str, Any]]:
    (job,) = workflow()["jobs"].values()
    return job["steps"]


def workflow_run(checkout: Checkout) -> Done:
    """What the step that runs the benchmark does: bash -e, python in the PATH, the secret."""
    (step,) = [step for step in steps() if "hallumaze.py" in step.get("run", "")]
    env = {"CI": "true", "GITHUB_ACTIONS": "true", "OPENAI_BASE_URL": checkout.url}
    env["PATH"] = f"{checkout.folder / '.venv' / 'bin'}:/usr/bin:/bin"
    for name, value in step["env"].items():
        secret = re.fullmatch(r"\$\{\{ secrets\.(\w+) \}\}", value)
        assert secret and secret[1] == name, "a key in the file itself"
        env[name] = KEY
    return checkout.call(["/bin/sh", "-e", "-c", step["run"]], env, cwd=checkout.folder)


def test_the_workflow_runs(checkout: Checkout, server: Server) -> None:
    done = workflow_run(checkout)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert checkout.outcomes == ["ok"] * TRIALS == ["ok"] * len(server.requests)


def test_the_workflow_fails_and_keeps_what_was_finished(checkout: Checkout, server: Server) -> None:
    server.script(Say(), Say(status=401))
    done = workflow_run(checkout)
    assert done.code == 1 and TRIAL_FAILED.match(done.err)
    assert checkout.outcomes.count("error") == 1
    *_, upload = steps()
    assert upload["uses"].startswith("actions/upload-artifact@") and upload["if"] == "always()"
    assert (checkout.folder / upload["with"]["path"]).resolve() == checkout.results.resolve()


def test_the_workflow_is_started_and_limited() -> None:
    text = workflow()
    starts = text.get("on", text.get(True))  # YAML 1.1 reads the word as true
    assert "workflow_dispatch" in starts
    assert all(len(entry["cron"].split()) == 5 for entry in starts["schedule"])
    assert text["permissions"] == {"contents": "read"}
    *_, install, play, upload = steps()
    assert install["run"].endswith("-r requirements.txt")
    assert play["timeout-minutes"] < 360  # a job ends then, and what is uploaded after it too
    assert "run" not in upload


# ---- machines that have less than a terminal has


@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}])
def test_without_a_home(home: dict[str, str], command: Command, server: Server) -> None:
    """None of the vendors' packages needs one."""
    env = command.env()
    env.pop("HOME")
    env |= home
    args = ["--size", "5", "--seed", "1", "--output", str(command.output), "--quiet"]
    args += ["--results-dir", str(command.folder / "results")]
    for name in hallumaze.DEFAULT_MODELS:
        args += ["--model", f"{name}/x"]
        env |= {f"{name.upper()}_API_KEY": KEY, f"{name.upper()}_BASE_URL": server.base_url(name)}
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), *args],
        env=env,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    done = Done(ended.returncode, ended.stdout, ended.stderr, command.output)
    command.look_through(done, env)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert [trial["outcome"] for trial in done.results] == ["ok"] * len(hallumaze.DEFAULT_MODELS)
    names = {path.name for path in command.folder.iterdir()}
    assert names == {"out.json", "results"}


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"LANG": "C"}, "모델▓"),
        ({"PYTHONIOENCODING": "ascii:strict", "LC_ALL": "C"}, "모델▓"),
        # Here Python cannot even read such a name from the command line.
        ({"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "model"),
    ],
    ids=["LANG=C", "ascii", "POSIX"],
)
def test_korean_where_it_cannot_be_printed(
    env: dict[str, str], name: str, command: Command, server: Server
) -> None:
    """The name of a model and the words of a server too; the files hold them as they are."""
    words = "▓ 모델이 없습니다"
    url = server.base_url("compatible")
    args = ["--model", f"compatible/{name}", "--base-url", url, "--size", "5", "--seeds", "1-3"]
    args += ["--concurrency", "1"]
    for quiet in ([], ["--quiet"]):
        server.script(Say(), error("openai", 400, words))
        done = command.run(*args, "--lang", "ko", "--csv", *quiet, **env)
        assert done.code == 1
        if quiet:
            (line,) = done.err.splitlines()
            assert done.out == "" and "compatible/" in line and "HTTP 400" in line
        else:
            assert done.err == "" and "MEI=0.900" in done.out and "HTTP 400" in done.out
        assert [trial["outcome"] for trial in done.results] == ["ok", "error", "ok"]
        assert words in done.results[1]["error"]
        assert {trial["model"] for trial in done.results} == {name}
        assert name in done.output.with_suffix(".csv").read_text(encoding="utf-8-sig")


# ---- a checkout that cannot be written


def read_only(folder: Path) -> list[str]:
    """What to put before a command so that it cannot write in the folder."""
    if os.geteuid() != 0:
        for path in (*(p for p in folder.rglob("*") if p.is_dir()), folder):
            path.chmod(0o555)
        return []
    # Modes do not bind root: a file system that is mounted read-only does.
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    before = ["unshare", "--mount", "/bin/sh", "-c", script, str(folder)]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("root writes everywhere, and nothing can be mounted here")
    return before


def test_a_read_only_checkout(checkout: Checkout, server: Server, tmp_path: Path) -> None:
    """Refused with the way out; with it, nothing but the named folder is written."""
    elsewhere = tmp_path / "elsewhere"
    before = read_only(checkout.folder)
    argv, env = started_by_systemd(checkout)
    held = sorted(path.name for path in checkout.folder.rglob("*"))
    refused = checkout.call([*before, *argv], env, cwd="/")
    assert refused.code == 2
    one_line(refused, str(checkout.results), "--results-dir")
    assert server.requests == []
    done = checkout.call([*before, *argv, "--results-dir", str(elsewhere)], env, cwd="/")
    assert (done.code, done.out, done.err) == (0, "", "")
    (journal,) = elsewhere.glob("*.jsonl")
    expected = [f"{journal.stem}.jsonl"]
    expected += [f"hallumaze_results_{journal.stem}.{end}" for end in ("csv", "json")]
    assert sorted(p.name for p in elsewhere.iterdir() if p.name != ".lock") == expected
    assert held == sorted(path.name for path in checkout.folder.rglob("*"))


def test_output_alone_serves_a_read_only_checkout(checkout: Checkout, tmp_path: Path) -> None:
    """The journal goes where the result file goes."""
    before = read_only(checkout.folder)
    argv, env = started_by_systemd(checkout)
    output = tmp_path / "elsewhere" / "night.json"
    done = checkout.call([*before, *argv, "--output", str(output)], env, cwd="/")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(list(output.parent.glob("*.jsonl"))) == 1
    assert output.is_file() and output.with_suffix(".csv").is_file()


def test_an_interrupted_run_beside_a_read_only_checkout_goes_on(
    checkout: Checkout, server: Server, tmp_path: Path
) -> None:
    before = [*read_only(checkout.folder), str(checkout.folder / ".venv/bin/python")]
    _, env = started_by_systemd(checkout)
    script = str(checkout.folder / "hallumaze.py")
    output = ["--output", str(tmp_path / "elsewhere" / "night.json"), "--quiet"]
    server.script(Say(status=400))
    first = [script, "--model", "openai/gpt-4o", "--seeds", "1-2", *output]
    assert checkout.call([*before, *first], env, cwd="/").code == 1
    assert len(server.requests) == 2
    alone = checkout.call([*before, script, "--resume"], env, cwd="/")
    assert alone.code == 2
    one_line(alone, str(checkout.results), "--results-dir")
    (journal,) = (tmp_path / "elsewhere").glob("*.jsonl")
    for run in ([], [journal.stem]):
        done = checkout.call([*before, script, "--resume", *run, *output], env, cwd="/")
        assert (done.code, done.out, done.err) == (0, "", "")
    assert len(server.requests) == 3


def test_a_lock_that_cannot_be_taken(command: Command) -> None:
    """As one that root has left: a folder stands for it, since nothing is another's to root."""
    (command.folder / "results" / ".lock").mkdir(parents=True)
    done = command("--model", "reference/oracle", "--seed", "1")
    assert done.code == 2
    one_line(done, ".lock", "--results-dir")


def test_a_working_directory_that_is_gone(command: Command) -> None:
    gone = command.folder / "gone"
    gone.mkdir()
    args = ["--model", "reference/oracle", "--seed", "1", "--quiet"]
    args += ["--results-dir", str(command.folder / "results")]
    for output, code in ([], 0), (["--output", "x.json"], 2):
        shell = 'cd "$0" && rmdir "$0" && "$@"; code=$?; mkdir "$0"; exit $code'
        argv = [sys.executable, str(SCRIPT), *args, *output]
        ended = subprocess.run(
            ["/bin/sh", "-c", shell, str(gone), *argv],
            env=command.env(),
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr, command.output)
        command.look_through(done, {})
        assert (done.code, done.out) == (code, "")
        assert not output or one_line(done, "--output")
