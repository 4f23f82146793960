"""Sections 10 and 11 on a real terminal: the questions typed by keys, and what rich shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, STAMP, Command, Done, until
from servers import Received, Say, Server, error
from terminals import CTRL_C, CTRL_D, Pty, Terminal, Tmux

from hallumaze import LLMProvider, MazeConfig, MazeEngine, PromptBuilder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a POSIX terminal")

KEY = "sk-FAKE-typed-by-hand-8888"
NAMES = ("anthropic", "openai", "google", "deepseek")
SIZE = "maze size (5, 7, 9, 11) [7]:"
MIRAGE = "linguistic mirages? (y/n) [y]:"
CONFIDENCE = "ask for confidence? (y/n) [y]:"
GROUP = "Ariadne group (A, B, C, ALL) [A]:"
SAVE = "save this to config.json? (y/n) [n]:"
OVERWRITE = "config.json exists. Overwrite it? (y/n) [n]:"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.answer = solution
        yield running


@pytest.fixture(params=[Pty, Tmux])
def terminal(request: pytest.FixtureRequest) -> Any:
    """How to open each kind of terminal."""
    if request.param is Tmux and not shutil.which("tmux"):
        pytest.skip("tmux is not installed; the same is tested with the standard library's pty")
    return request.param


def solution(request: Received) -> str:
    """What the oracle would answer."""
    first = [{"role": "user", "content": request.turns[0][1]}]
    return LLMProvider("reference", "oracle").complete("", first, 1).text


def key_question(name: str) -> str:
    return f"{name} API key (hidden; Enter skips):"


def skip_keys(shown: Terminal, *but: str) -> None:
    for name in NAMES:
        if name not in but:
            shown.answer(key_question(name))


# ---- the questions


def test_no_key_on_a_terminal_asks(terminal: Any, command: Command) -> None:
    """`python hallumaze.py` and nothing more; no key is given, so the reference agents run."""
    copy = command.copy()
    with terminal(command, script=copy) as shown:
        skip_keys(shown)
        for wrong in (
            "seven",
            "1",
            "202",
            "-5",
            "7.0",
            "9" * 5000 if terminal is Pty else "9" * 50,
        ):
            shown.answer(SIZE, wrong[:1000])
            shown.see(f"{wrong[:1000]}: not an answer"[-60:])
        shown.answer(SIZE, "5")
        shown.answer(MIRAGE, "maybe")
        shown.see("maybe: not an answer")
        shown.answer(MIRAGE, "N")
        shown.answer(CONFIDENCE, "no")
        shown.answer(GROUP, "D")
        shown.see("D: not an answer")
        shown.answer(GROUP, "c")
        assert shown.end() == 0
        text = shown.text()
    assert "Traceback" not in text
    assert "config.json" not in text  # nothing was chosen that is worth a file
    assert "running the built-in reference agents" in text
    (path,) = copy.parent.glob("results/*.json")
    document = json.loads(path.read_text("utf-8"))
    assert [r["model"] for r in document["results"]][:2] == ["oracle", "explorer"]
    config = document["config"]
    assert (config["size"], config["ariadne_mode"]) == (5, "C")
    assert (config["use_mirage"], config["use_confidence"]) == (False, False)


def test_a_typed_key_runs_and_is_saved(terminal: Any, command: Command, server: Server) -> None:
    env = {
        "OPENAI_BASE_URL": server.base_url("openai"),
        "DEEPSEEK_API_KEY": "sk-FAKE-of-the-environment",
        "DEEPSEEK_BASE_URL": server.base_url("deepseek"),
    }
    args = ("--interactive", "--seed", "1", "--output", str(command.output))
    with terminal(command, *args, **env) as shown:
        shown.answer(key_question("anthropic"))
        shown.answer(key_question("openai"), "sk-“not a key”-8888")
        shown.see("openai: ")
        shown.answer(key_question("openai"), f" {KEY} ")
        shown.answer("openai model [gpt-4o]:", "gpt-x")
        shown.answer(key_question("google"))
        shown.answer("DEEPSEEK_API_KEY is set in the environment. Use it? (y/n) [y]:")
        shown.answer("deepseek model [deepseek-reasoner]:")
        shown.answer(SIZE, "5")
        shown.answer(MIRAGE)
        shown.answer(CONFIDENCE)
        shown.answer(GROUP)
        shown.answer(SAVE, "y")
        code, text = shown.end(), shown.text()
    for secret in (KEY, "sk-FAKE-of-the-environment", "not a key", "8888"):
        assert secret not in text
    assert code == 0, text
    done = Done(code, text, "", command.output)
    assert [(r["provider"], r["model"], r["hallumaze_score"]) for r in done.results] == [
        ("openai", "gpt-x", 0.947),
        ("deepseek", "deepseek-reasoner", 0.947),
    ]
    sent = {r.body["model"]: r.headers["authorization"] for r in server.requests}
    assert sent["gpt-x"] == f"Bearer {KEY}" and len(server.requests) == 2
    assert KEY not in command.output.read_text("utf-8")
    # The file that was saved: for its owner only, without the key that the environment holds.
    path = command.folder / "config.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    saved = json.loads(path.read_text("utf-8"))
    assert saved["maze"] == {
        "size": 5,
        "use_mirage": True,
        "use_confidence": True,
        "ariadne_mode": "A",
        "max_tokens": 2500,
    }
    assert saved["providers"] == [
        {
            "provider": "openai",
            "model": "gpt-x",
            "api_key": KEY,
            "base_url": server.base_url("openai"),
        },
        {
            "provider": "deepseek",
            "model": "deepseek-reasoner",
            "api_key_env": "DEEPSEEK_API_KEY",
            "base_url": server.base_url("deepseek"),
        },
    ]
    if terminal is Tmux:
        return
    # It works with --config, without a warning.
    env["FILE_KEY"] = KEY
    again = command.run("--config", "config.json", "--seed", "1", **env)
    assert (again.code, again.err) == (0, "")
    assert without_times(again.results) == without_times(done.results)


def without_times(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    moving = ("timestamp", "latency_s", "request_id")
    return [{k: v for k, v in result.items() if k not in moving} for result in results]


@pytest.mark.parametrize("overwrite", ["n", "y"])
def test_a_config_is_not_overwritten_unasked(overwrite: str, command: Command) -> None:
    """The run that follows fails at a closed port; the file is what this is about."""
    path = command.folder / "config.json"
    path.write_text("mine")
    path.chmod(0o644)
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with Pty(command, "--interactive", "--show", **env) as shown:
        shown.answer(key_question("anthropic"))
        shown.answer("OPENAI_API_KEY is set in the environment. Use it? (y/n) [y]:", "y")
        shown.answer("openai model [gpt-4o]:")
        skip_keys(shown, "anthropic", "openai")
        for question in (SIZE, MIRAGE, CONFIDENCE, GROUP):
            shown.answer(question)
        shown.answer(SAVE, "y")
        shown.answer(OVERWRITE, overwrite)
        assert shown.end() == 0
    if overwrite == "n":
        assert path.read_text() == "mine"
    else:
        assert json.loads(path.read_text())["providers"][0]["api_key_env"] == "OPENAI_API_KEY"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_questions_are_seen_when_stderr_is_not(command: Command) -> None:
    """`--interactive 2> log`: Python writes the prompt of input() to stderr unless told not to."""
    with Pty(command, "--interactive", "--show", stderr=subprocess.DEVNULL) as shown:
        skip_keys(shown)
        # What is typed before the hidden question is over would be lost.
        last = key_question(NAMES[-1])
        until(lambda: "\n" in shown.text().rpartition(last)[2])
        for _ in (SIZE, MIRAGE, CONFIDENCE, GROUP):
            shown.type("\r")  # blindly: a question that is not seen would never come
        assert shown.end() == 0
        text = shown.text()
    for question in (SIZE, MIRAGE, CONFIDENCE, GROUP):
        assert question in text


def test_questions_in_korean(command: Command) -> None:
    with Pty(command, "--interactive", "--show", "--seed", "1", LANG="ko_KR.UTF-8") as shown:
        for name in NAMES:
            shown.answer(f"{name} API 키 (입력은 보이지 않음, Enter는 건너뜀):")
        shown.answer("미로 크기 (5, 7, 9, 11) [7]:", "다섯")
        shown.see("다섯: 쓸 수 없는 답")
        shown.answer("미로 크기 (5, 7, 9, 11) [7]:", "5")
        shown.answer("Linguistic Mirage를 켤까요? (y/n) [y]:", "아니오")
        shown.answer("확신도를 물을까요? (y/n) [y]:", "네")
        shown.answer("Ariadne 그룹 (A, B, C, ALL) [A]:", "b")
        assert shown.end() == 0
        text = shown.text()
    assert "MAZE 5×5" in text and "확신도: XX%" in text and "⚑ N" not in text


def test_the_options_are_the_defaults_of_the_questions(command: Command) -> None:
    """Options that were given stand in the brackets; an answer wins over them."""
    options = ("--size", "9", "--no-mirage", "--no-confidence", "--group", "B", "--show")
    with Pty(command, "--interactive", *options) as shown:
        skip_keys(shown)
        shown.answer("maze size (5, 7, 9, 11) [9]:")
        shown.answer("linguistic mirages? (y/n) [n]:", "y")
        shown.answer("ask for confidence? (y/n) [n]:")
        shown.answer("Ariadne group (A, B, C, ALL) [B]:")
        assert shown.end() == 0
        text = shown.text()
    assert "MAZE 9×9" in text and "확신도: XX%" not in text
    assert "방향 힌트:" in text


@pytest.mark.parametrize("keys", [CTRL_C, CTRL_D], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize(
    ("env", "question"),
    [
        ({}, key_question("anthropic")),
        ({"ANTHROPIC_API_KEY": KEY}, "Use it? (y/n) [y]:"),
        ({}, SIZE),
        ({}, GROUP),
    ],
    ids=["key", "found", "size", "group"],
)
def test_the_questions_can_be_left(
    keys: str, env: dict[str, str], question: str, command: Command
) -> None:
    with Pty(command, "--interactive", **env) as shown:
        if question in (SIZE, GROUP):
            skip_keys(shown)
        if question == GROUP:
            for earlier in (SIZE, MIRAGE, CONFIDENCE):
                shown.answer(earlier)
        shown.question(question)
        before = shown.text()
        shown.type(keys)
        assert shown.end() == 130
        assert shown.echoes()
        said = shown.text()[len(before) :].replace("^C", "").replace("^D", "").split("\n")
    # The line of the question ends, one line is said, and the prompt of the shell has its own.
    assert [line for line in said if line.strip("\b \r")] == ["hallumaze: interrupted"]
    assert said[-1] == ""


@pytest.mark.parametrize("keys", [CTRL_C, CTRL_D], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed: see the pty test")
def test_the_questions_can_be_left_in_tmux(keys: str, command: Command) -> None:
    with Tmux(command, "--interactive") as shown:
        shown.answer(key_question("anthropic"))
        shown.question(key_question("openai"))
        shown.type(keys)
        assert shown.end() == 130
        lines = [line.strip() for line in shown.text().splitlines() if line.strip()]
    assert lines[-2:] == [key_question("openai"), "hallumaze: interrupted"]


@pytest.mark.parametrize("question", ["key", "size"])
def test_a_byte_of_another_encoding_is_no_crash(question: str, command: Command) -> None:
    """As a terminal in CP949 sends Korean to a program that expects UTF-8."""
    with Pty(command, "--interactive", "--show", LANG="C.UTF-8") as shown:
        if question == "size":
            skip_keys(shown)
        shown.question(SIZE if question == "size" else key_question("anthropic"))
        before = len(shown.text())
        shown.type("\udcb0\udca1\r")
        until(lambda: shown.process.poll() is not None or len(shown.text()) > before + 20)
        shown.type(CTRL_C)
        code, text = shown.end(), shown.text()
    assert "Traceback" not in text, text
    assert code in (2, 130)


# ---- without questions


def test_options_on_a_terminal_ask_nothing(command: Command) -> None:
    """SPEC section 11: only `no argument at all` asks; a cron line and a terminal do the same."""
    args = ("--size", "5", "--seed", "1", "--output", str(command.output))
    with Pty(command, *args) as shown:
        assert shown.end() == 0
        text = shown.text()
    assert text.startswith("No API key is set")
    assert "API key (hidden" not in text


def test_interactive_without_a_terminal(command: Command) -> None:
    for stdin in (None, "y\n" * 50):
        done = command.run("--interactive", **({"stdin": stdin} if stdin else {}))
        assert done.code == 2
        for name in (*NAMES, "gemini"):
            assert f"{name.upper()}_API_KEY" in done.err
        assert done.out == "" and len(done.err.splitlines()) == 1


# ---- what rich shows

WORDS = {
    "en": ("Maze generated", "dead ends", "▶ running", "HalluMaze comparison", "saved: "),
    "ko": ("미로 생성됨", "막다른 길", "▶ 실행 중", "HalluMaze 종합 비교", "저장: "),
}


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_panel_progress_and_table(
    lang: str, terminal: Any, command: Command, server: Server
) -> None:
    """Two models over three mazes: six trials, one of which ends as an error."""
    config = MazeConfig(size=5, lang=lang)
    second = PromptBuilder(MazeEngine(5, 2), config).build().user

    def answer(request: Received) -> str | Say:
        bad = request.turns[0][1] == second
        return error("openai", 400, "no [red]good[/red]") if bad else solution(request)

    server.answer = answer
    url = server.base_url("compatible")
    models = ("--model", "compatible/llama[b]7b", "--model", "reference/silent")
    args = (*models, "--base-url", url, "--seeds", "1-3", "--size", "5", "--lang", lang)
    with terminal(command, *args, "--output", str(command.output)) as shown:
        assert shown.end() == 1
        text = shown.text()
        raw = shown.raw if terminal is Pty else b""
    for word in WORDS[lang]:
        assert word in text
    assert "╭" in text and "╰" in text  # the panel
    assert "┏" in text and "┃" in text and "└" in text  # the table
    lines = [line.strip() for line in text.splitlines()]
    # Who reads a terminal needs no times, and has room for a second line.
    assert not re.search(STAMP, text)
    starts = [k for k, line in enumerate(lines) if WORDS[lang][2] in line]
    assert len(starts) == 2
    name, seed = "compatible/llama[b]7b", {"en": "seed", "ko": "시드"}[lang]
    numbers = "SR=1.00 | MEI=0.900● | CE=0.010 | BRS=1.000 | Hall=0 BT=0 | Score=0.947 | "
    for k in (1, 3):
        (facts,) = [n for n, line in enumerate(lines) if line.startswith(f"✓ {name} {seed} {k} |")]
        assert facts > starts[1] and lines[facts].startswith(f"✓ {name} {seed} {k} | {numbers}")
        below = [line for line in lines[facts + 1 :] if "0:00:" not in line]  # but the bar
        assert re.fullmatch(r"↳ .*: (none|없음)", below[0])
    (failed,) = [line for line in lines if line.startswith(f"! {name} {seed} 2: ")]
    assert lines.index(failed) > starts[1]
    assert "no [red]good[/red]" in failed  # a stranger's text is no markup
    assert name not in failed.removeprefix(f"! {name} ")
    rows = [line for line in text.splitlines() if "llama" in line and "│" in line]
    assert len(rows) == 2
    cells, spent = ([cell.strip() for cell in r.strip("│ \n").split("│")] for r in rows)
    assert spent == [name, "22", "14", "–", "–", "–"]
    assert {"en": "the price of 2 trials", "ko": "시행 2개는 값"}[lang] in text
    place = "🥇"
    expected = [place, name, "1.00", "0.900", "0.010", "1.000", "0.0"]
    assert [*cells[:8], *cells[9:]] == [*expected, "0.947", "2", "1"]
    assert float(cells[8]) > 1  # on the scale of the reference agents it is above explorer
    if raw:
        assert b"/6" in raw  # the bar counts trials
        assert raw.count(b"\x1b[?25l") == raw.count(b"\x1b[?25h")  # the cursor is back
    assert command.output.exists()


def test_a_narrow_terminal_shows_every_name_and_score(command: Command) -> None:
    """80 columns are what a terminal opens with: a ranking of six `referenc…` ranks nobody."""
    args = ("--seed", "1", "--output", str(command.output))
    with Pty(command, *args, width=80) as shown:
        assert shown.end() == 0
        lines = [line for line in shown.text().splitlines() if "│" in line or "╭" in line]
    assert max(len(line) for line in lines) <= 80
    table = [[c.strip() for c in line.split("│")] for line in lines if line.count("│") > 5]
    # A name may go on below its beginning.
    columns = ["".join(cells) for cells in zip_longest(*table, fillvalue="")]
    for name in ("oracle", "explorer", "random-walk", "lured", "bluffer", "silent"):
        assert any(f"reference/{name}" in column for column in columns), columns
    best = next(row for row in table if "0.947" in row)
    for number in ("1.00", "0.900", "0.010", "1.000", "0.947"):
        assert number in best


def test_terminal_codes_of_strangers_are_taken_out(command: Command, server: Server) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31mred"
    server.answer = lambda request: error("openai", 400, f"bad {evil}")
    args = ("--model", f"compatible/x{evil}", "--base-url", server.base_url("compatible"))
    with Pty(command, *args, "--seed", "1", "--output", str(command.output)) as shown:
        assert shown.end() == 1
        shown.text()
    assert b"\x1b]" not in shown.raw and b"\x1b[2J" not in shown.raw
    assert b"\x07" not in shown.raw and b"\xc2\x9b" not in shown.raw


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_a_run_on_a_terminal(
    presses: int, terminal: Any, command: Command, server: Server
) -> None:
    server.script(Say(), Say(silence=PATIENCE_S if presses == 1 else 4.0))
    args = ("--model", "compatible/slow", "--base-url", server.base_url("compatible"))
    more = ("--seed", "1", "--size", "5", "--runs", "3", "--output", str(command.output))
    with terminal(command, *args, *more, "--concurrency", "1") as shown:
        until(lambda: len(server.requests) == 2)
        shown.type(CTRL_C)
        if presses == 2:  # the second does not wait for the call in flight
            time.sleep(0.5)
            shown.type(CTRL_C)
        assert shown.end() == 130
        text = shown.text()
    assert "interrupted: saving the trials that were finished: 1" in text
    assert "Traceback" not in text
    assert len(json.loads(command.output.read_text("utf-8"))["results"]) == 1
    assert len(server.requests) == 2
    if terminal is Pty:
        assert shown.raw.count(b"\x1b[?25l") == shown.raw.count(b"\x1b[?25h")


def test_a_model_s_name_is_no_emoji(command: Command, server: Server) -> None:
    """`hf.co/org/name:tag:x` is a usual name at Ollama; rich would draw `:cat:` as a cat."""
    server.answer = lambda request: error("openai", 400, "no :dog:")
    args = ("--model", "compatible/a:cat:b", "--base-url", server.base_url("compatible"))
    with Pty(command, *args, "--seed", "1", "--output", str(command.output)) as shown:
        assert shown.end() == 1
        text = shown.text()
    assert "running: compatible/a:cat:b" in text
    assert "! compatible/a:cat:b seed 1: error, not a score: " in text and "no :dog:" in text


@pytest.mark.parametrize("why", ["TERM=dumb", "no rich", "NO_COLOR"])
def test_plain_terminals(why: str, command: Command, tmp_path: Path) -> None:
    env = {"TERM=dumb": {"TERM": "dumb"}, "NO_COLOR": {"NO_COLOR": "1"}}.get(why, {})
    if why == "no rich":
        (tmp_path / "rich.py").write_text("raise ImportError('rich is not installed')\n")
        env = {"PYTHONPATH": str(tmp_path)}
    args = ("--model", "reference/oracle", "--seed", "1", "--output", str(command.output))
    with Pty(command, *args, **env) as shown:
        assert shown.end() == 0
        text = shown.text()
    assert "MEI=0.900●" in text and "reference/oracle" in text
    if why == "NO_COLOR":
        assert not re.search(rb"\x1b\[[0-9;]*3\dm", shown.raw)
    else:
        assert b"\x1b" not in shown.raw
        assert "╭" not in text


def test_quiet_on_a_terminal(command: Command) -> None:
    args = ("--model", "reference/oracle", "--seed", "1", "--output", str(command.output))
    with Pty(command, *args, "--quiet") as shown:
        assert shown.end() == 0
        assert shown.text() == ""
    assert shown.raw == b""
