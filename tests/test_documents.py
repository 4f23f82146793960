"""The files beside hallumaze.py say what it does, and agree with each other."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, SCRIPT, Command

from hallumaze import COMMANDS, UsageError, build_parser, main, read_config

DOCUMENTS = ("README.md", "README.ko.md", "DOCUMENTATION.md")


def read(name: str) -> str:
    path = ROOT / name
    assert path.is_file(), f"{name} is missing"
    return path.read_text(encoding="utf-8")


def blocks(text: str, language: str = r"\w*") -> list[str]:
    """The insides of the fenced blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_the_documented_help_is_the_help(tmp_path: Path) -> None:
    text = read("DOCUMENTATION.md")
    parts = re.findall(r"<!-- help begins -->\n(.*?)<!-- help ends -->", text, re.S)
    assert len(parts) == 1, "DOCUMENTATION.md needs one block between the help marks"
    (block,) = blocks(parts[0])
    done = Command(tmp_path)("--help", COLUMNS="80")
    assert block.strip("\n").splitlines() == done.out.strip("\n").splitlines()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_help_shows_no_mark_of_formatting(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: ") and "%%" not in text and "%(" not in text


def test_the_lines_that_a_newcomer_pastes() -> None:
    """One makes everything and runs, one tests; .ci/run takes both out of the README."""
    lines = [
        line
        for block in blocks(read("README.md"), "(?:bash|sh|console)")
        for line in block.splitlines()
    ]
    (start,) = [line for line in lines if line.startswith("python3 -m venv .venv")][:1]
    assert "-r requirements.txt" in start
    assert start.endswith("hallumaze.py --size 7 --seed 42")
    (test,) = [line for line in lines if "-m pytest" in line][:1]
    assert "-r requirements-dev.txt" in test
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def commands(text: str) -> list[list[str]]:
    """The words after hallumaze.py of every command line in the fenced blocks."""
    found = []
    for block in blocks(text):
        joined = re.sub(r"\\\n\s*", " ", block)
        joined = re.sub(r"\$\{?\w+\}?", "7", joined)  # the variable of a loop, e.g. over sizes
        for line in joined.splitlines():
            match = re.search(r"(?:^|[/\s])hallumaze\.py((?:\s.*)?)$", line)
            starts = re.match(r"\s*(?:\$ |[A-Z_]+=\S+ |[\w/.]*(?:python3?|uv)\b)", line)
            if match and starts and "[OPTIONS]" not in line:
                found.append(shlex.split(match[1], comments=True))
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_of_the_documents_is_understood(name: str) -> None:
    text = read(name)
    lines = commands(text)
    assert lines, f"{name} shows no command"
    for words in lines:
        stops = [k for k, word in enumerate(words) if word in ("|", "&&", ">", "2>", ";", "||")]
        given = words[: stops[0]] if stops else words
        if given[:1] != ["run"] and given[0] in COMMANDS:
            continue  # the tests of these commands run them
        try:
            build_parser().parse_args(given[1:] if given[:1] == ["run"] else given)
        except SystemExit:  # --help and --version
            pass
        except UsageError as error:
            pytest.fail(f"{name}: {shlex.join(given)}: {error}")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_and_sections_that_are_linked_exist(name: str) -> None:
    text = read(name)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, section = target.partition("#")
        if re.match(r"\w+:", path):
            continue
        other = ROOT / path if path else ROOT / name
        assert other.exists(), f"{name} links to {target}"
        if section and other.suffix == ".md":
            titles = re.findall(r"^#+ +(.*)$", other.read_text("utf-8"), re.M)
            assert section in {slug(title) for title in titles}, f"{name} links to {target}"


def slug(title: str) -> str:
    """The anchor that GitHub gives to a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def requirements(text: str) -> set[str]:
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return {line for line in lines if line and not line.startswith("-")}


def test_the_three_lists_of_dependencies_agree() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    match = re.search(r"^# /// script\n((?:#.*\n)+?)# ///$", SCRIPT.read_text("utf-8"), re.M)
    assert match, "hallumaze.py has no PEP 723 header"
    header = tomllib.loads("".join(line[2:] for line in match[1].splitlines(keepends=True)))
    assert header["requires-python"] == project["requires-python"]
    needed = requirements(read("requirements.txt"))
    assert needed == set(header["dependencies"]) == set(project["dependencies"])
    assert {re.split("[<>=]", line)[0] for line in needed} == {
        "anthropic",
        "openai",
        "google-genai",  # not the deprecated google-generativeai
        "rich",
        "filelock",
        "genai-prices",
        "scipy",
    }
    assert all("<" in line for line in needed), "the major is pinned"
    assert "-r requirements.txt" in read("requirements-dev.txt")


def test_the_example_of_a_configuration(tmp_path: Path) -> None:
    """Only known fields, v1.1's defaults; with keys in the placeholders' place it is valid."""
    example: dict[str, Any] = json.loads(read("config.example.json"))
    assert example["maze"] == {
        "size": 7,
        "use_mirage": True,
        "use_confidence": True,
        "ariadne_mode": "A",
        "max_tokens": 2500,
    }
    fields = {"provider", "model", "api_key", "api_key_env", "base_url", "temperature"}
    fields |= {"max_tokens", "concurrency"}
    used: set[str] = set()
    for entry in example["providers"]:
        used |= set(entry)
        if "api_key" in entry:
            assert entry["api_key"] == "YOUR_KEY_HERE"
            entry["api_key"] = "sk-FAKE-for-the-example"
    assert used == fields  # it shows each field that there is
    path = tmp_path / "config.json"
    path.write_text(json.dumps(example), encoding="utf-8")
    env = {f"{name}_API_KEY": "sk-FAKE-1234" for name in ("OPENAI", "GOOGLE", "DEEPSEEK")}
    _, specs = read_config(path, env)
    models = {spec.provider: spec.model for spec in specs}
    assert models.pop("compatible")
    assert models == {
        "anthropic": "claude-sonnet-4-20250514",
        "openai": "gpt-4o",
        "google": "gemini-2.5-flash",
        "deepseek": "deepseek-reasoner",
    }


def test_no_file_mentions_this_machine() -> None:
    """No path of a machine on which the project was made, no key, no private file."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git repository to list the project's files")
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in listed.decode("utf-8").split("\0") if name]
    assert "hallumaze.py" in names
    roots = "|".join(("work", "root", "home/[a-z]", "Users/[A-Za-z]", "tmp/w", "mnt", "opt/[a-z]"))
    machine = re.compile(rf"(?<![\w./:~>-])/(?:{roots})\b/?|\.\./shared|/shared/")
    for name in names:
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            text = path.read_bytes().decode("utf-8", "replace")
            found = machine.search(text)
            line = text[: found.start()].count("\n") + 1 if found else 0
            assert not found, f"{name}:{line} mentions {found and found[0]}"
        assert path.name != "config.json"
