"""Section 11: --config, through the real command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, Command, one_line
from servers import Server

KEY = "sk-FAKE-of-the-file-1234"
ORACLE = {"provider": "reference", "model": "oracle"}
OPENAI = {"provider": "openai", "model": "gpt-4o"}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a configuration file that only its owner can read."""
    file = tmp_path / "my config.json"
    file.touch(mode=0o600)
    return file


def write(path: Path, *providers: dict[str, Any], **maze: Any) -> Path:
    """A configuration file of these providers and settings."""
    path.write_text(json.dumps({"maze": maze, "providers": providers}), encoding="utf-8")
    return path


# ---- good files


def test_a_good_file(command: Command, path: Path) -> None:
    settings = {"size": 5, "use_mirage": False, "use_confidence": False}
    write(path, ORACLE, **settings, ariadne_mode="C", max_tokens=777)
    done = command.run("--config", str(path), "--seed", "1")
    assert (done.code, done.err) == (0, "")
    (result,) = done.results
    assert (result["model"], result["maze_size"], result["ariadne_group"]) == ("oracle", 5, "C")
    assert result["confidence_log"] == [] and result["nudge_sent"] is True
    config = done.document["config"]
    expected = {**settings, "ariadne_mode": "C", "max_tokens": 777, "mirage": "off"}
    assert {name: config[name] for name in expected} == expected
    # Without a confidence CE is None, and counts as 0.5: 0.5·0.9 + 0.3·0.5 + 0.2·1 = 0.8.
    assert (result["ce"], result["hallumaze_score"]) == (None, 0.8)


def test_a_named_model_has_the_server_and_key_of_its_own_entry(
    command: Command, path: Path, server: Server
) -> None:
    """Also when another entry of the same provider stands before it, and when resumed."""
    with Server() as other:
        one = {"provider": "compatible", "base_url": server.base_url("compatible")}
        two = {"provider": "compatible", "base_url": other.base_url("compatible")}
        first, second = "key-of-server-one", "key-of-server-two"
        write(
            path, {**one, "model": "a", "api_key": first}, {**two, "model": "b", "api_key": second}
        )
        assert (
            command.run("--config", str(path), "--model", "compatible/b", "--seed", "1").code == 0
        )
        assert (server.requests, len(other.requests)) == ([], 1)
        assert command.run("--config", str(path), "--seed", "1").code == 0
        journal = max((command.folder / "results").glob("*.jsonl"))
        journal.write_bytes(journal.read_bytes().split(b"\n")[0] + b"\n")
        assert command.run("--resume", str(journal), "--config", str(path)).code == 0
        for asked, key in ((server, first), (other, second)):
            assert {r.headers["authorization"] for r in asked.requests} == {f"Bearer {key}"}


def test_options_win_over_the_file(command: Command, path: Path) -> None:
    write(path, ORACLE, size=5, use_mirage=False, ariadne_mode="C", max_tokens=777)
    options = "--size 9 --mirage balanced --group A --max-tokens 99 --no-confidence"
    done = command.run("--config", str(path), "--seed", "1", *options.split())
    assert (done.code, done.err) == (0, "")
    config = done.document["config"]
    expected = {
        "size": 9,
        "use_mirage": True,
        "mirage": "balanced",
        "ariadne_mode": "A",
        "max_tokens": 99,
        "use_confidence": False,
    }
    assert {name: config[name] for name in expected} == expected
    # --model replaces the list of the file.
    done = command.run("--config", str(path), "--model", "reference/silent", "--seed", "1")
    assert [r["model"] for r in done.results] == ["silent"]
    assert done.document["maze"]["size"] == 5


def test_each_provider_has_its_own_settings(command: Command, path: Path, server: Server) -> None:
    """Option over entry over "maze" over default, as the server received it."""
    local = {"provider": "compatible", "base_url": server.base_url("compatible")}
    write(
        path,
        {
            **local,
            "model": "own",
            "temperature": 0.3,
            "max_tokens": 111,
            "concurrency": 3,
            "api_key": KEY,
        },
        {**local, "model": "plain"},
        max_tokens=222,
    )
    done = command.run("--config", str(path), "--seed", "1", FILE_KEY=KEY)
    assert (done.code, done.err) == (0, "")
    own, plain = sorted(server.requests, key=lambda request: request.body["model"])
    sent = [(r.body["model"], r.body["temperature"], r.body["max_tokens"]) for r in (own, plain)]
    assert sent == [("own", 0.3, 111), ("plain", 0, 222)]
    assert own.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(plain.headers)
    params = [
        (r["params_sent"]["temperature"], r["params_sent"]["max_tokens"]) for r in done.results
    ]
    assert params == [(0.3, 111), (0, 222)]
    assert done.document["config"]["models"][0] == {
        "provider": "compatible",
        "model": "own",
        "base_url": server.base_url("compatible"),
        "temperature": 0.3,
        "max_tokens": 111,
        "concurrency": 3,
    }
    assert done.document["config"]["models"][1]["concurrency"] is None
    server.requests.clear()
    options = ("--temperature", "1.5", "--max-tokens", "99")
    done = command.run("--config", str(path), "--seed", "1", *options, FILE_KEY=KEY)
    assert done.code == 0
    sent = {(r.body["model"], r.body["temperature"], r.body["max_tokens"]) for r in server.requests}
    assert sent == {("own", 1.5, 99), ("plain", 1.5, 99)} and len(server.requests) == 2


def test_base_url_of_the_command_line_wins(command: Command, path: Path, server: Server) -> None:
    """Else a run believes to test one server and tests another; --show would not tell."""
    with Server() as other:
        write(path, {"provider": "compatible", "model": "m", "base_url": other.url + "/v1"})
        args = ("--config", str(path), "--base-url", server.base_url("compatible"))
        done = command.run(*args, "--seed", "1")
        assert done.code == 0
        assert (len(other.requests), len(server.requests)) == (0, 1)


def test_base_url_of_the_command_line_is_enough(command: Command, path: Path) -> None:
    write(path, {"provider": "compatible", "model": "m"})
    done = command("--config", str(path), "--base-url", "http://127.0.0.1:9/v1", "--show")
    assert (done.code, done.err) == (0, "")


def test_keys_and_urls_from_the_environment(command: Command, path: Path, server: Server) -> None:
    """api_key_env names any variable; without it the provider's own; default model and URL."""
    write(path, {"provider": "openai", "api_key_env": "MY_LAB_KEY"}, {"provider": "deepseek"})
    env = {
        "MY_LAB_KEY": f" {KEY}\n",
        "DEEPSEEK_API_KEY": "sk-FAKE-deepseek-99",
        "OPENAI_API_KEY": "sk-FAKE-not-this-one",
        "OPENAI_BASE_URL": server.base_url("openai"),
        "DEEPSEEK_BASE_URL": server.base_url("deepseek"),
        "DEEPSEEK_MODEL": "deepseek-x",
    }
    done = command.run("--config", str(path), "--seed", "1", **env)
    assert (done.code, done.err) == (0, "")
    assert sorted((r.body["model"], r.headers["authorization"]) for r in server.requests) == [
        ("deepseek-x", "Bearer sk-FAKE-deepseek-99"),
        ("gpt-4o", f"Bearer {KEY}"),
    ]


@pytest.mark.parametrize("text", ['{"providers": []}', "{}", '{"maze": {"size": 5}}'])
def test_without_providers_the_file_only_has_settings(
    text: str, command: Command, path: Path
) -> None:
    path.write_text(text)
    done = command.run("--config", str(path), "--seed", "1")
    assert done.code == 0
    assert len(done.err.splitlines()) == 1 and "reference agents" in done.err
    assert len(done.results) == 6
    assert done.document["maze"]["size"] == (5 if "size" in text else 7)


def test_a_file_of_a_windows_editor(command: Command, path: Path) -> None:
    """A byte order mark, CRLF, and Korean."""
    text = json.dumps({"maze": {"size": 5}, "providers": [ORACLE]}, indent=1)
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    korean = path.rename(path.with_name("설정.json"))
    done = command.run("--config", str(korean), "--seed", "1")
    assert (done.code, done.err) == (0, "")
    assert done.document["maze"]["size"] == 5


# ---- files that are refused


def refused(command: Command, path: Path, *parts: str, **env: str) -> str:
    """One line that names the file and these parts; nothing is written."""
    done = command.run("--config", str(path), "--seed", "1", **env)
    assert done.code == 2, done.err
    assert not command.output.exists()
    return one_line(done, path.name, *parts)


def test_the_example_says_which_key_is_missing(command: Command, server: Server) -> None:
    env = {f"{n}_API_KEY": KEY for n in ("OPENAI", "GOOGLE", "DEEPSEEK", "ANTHROPIC")}
    example = ROOT / "config.example.json"
    refused(command, example, "providers[0].api_key", "placeholder", **env)
    assert server.requests == []


@pytest.mark.parametrize(
    "key",
    [
        *("YOUR_KEY_HERE", "your_key_here", " YOUR-API-KEY ", "<your key>", "<KEY>", ""),
        *("sk-...", "sk-ant-api03-...", "AIza...", "xxxxxxxx", "changeme", "sk-your-key", "  "),
    ],
)
def test_placeholders(key: str, command: Command, path: Path) -> None:
    """Those of v1.1's own examples, and the usual ones; a key of the environment is no rescue."""
    write(path, ORACLE, {**OPENAI, "api_key": key})
    refused(command, path, "providers[1].api_key", "placeholder", ALSO_API_KEY=KEY)


@pytest.mark.parametrize("key", ["sk-“curly-KEY-1234", "sk- blank-KEY-1234", "열쇠-KEY-1234"])
def test_what_is_no_key(key: str, command: Command, path: Path) -> None:
    write(path, {**OPENAI, "api_key": key})
    line = refused(command, path, "providers[0].api_key")
    assert "KEY-1234" not in line


WRONG: list[tuple[Any, list[str]]] = [
    ({"mazes": {}}, ["mazes", "maze, providers"]),
    ({"maze": {"sise": 7}}, ["maze", "sise", "size"]),
    ({"providers": [{**OPENAI, "apikey": "x"}]}, ["providers[0]", "apikey", "api_key"]),
    ({"providers": [ORACLE, {**ORACLE, "top_p": 1}]}, ["providers[1]", "top_p"]),
    ({"maze": {"\x1b[31mred": 7}}, ["maze", "red"]),
    ([], ["object"]),
    ("text", ["object"]),
    (None, ["object"]),
    ({"maze": []}, ["maze", "object"]),
    ({"providers": {}}, ["providers", "list"]),
    ({"providers": ["openai"]}, ["providers[0]", "object"]),
    ({"maze": {"size": "7"}}, ["maze.size", "whole number"]),
    ({"maze": {"size": 7.5}}, ["maze.size", "whole number"]),
    ({"maze": {"size": True}}, ["maze.size", "whole number"]),
    ({"maze": {"size": None}}, ["maze.size", "whole number"]),
    ({"maze": {"size": 1}}, ["maze.size", "2", "201"]),
    ({"maze": {"size": 10**30}}, ["maze.size", "2", "201"]),
    ({"maze": {"use_mirage": 1}}, ["maze.use_mirage", "true or false"]),
    ({"maze": {"use_confidence": "yes"}}, ["maze.use_confidence", "true or false"]),
    ({"maze": {"ariadne_mode": "D"}}, ["maze.ariadne_mode", "A, B, C"]),
    ({"maze": {"ariadne_mode": 1}}, ["maze.ariadne_mode", "string"]),
    ({"maze": {"max_tokens": 0}}, ["maze.max_tokens"]),
    ({"maze": {"max_tokens": "many"}}, ["maze.max_tokens", "whole number"]),
    ({"providers": [{"model": "x"}]}, ["providers[0].provider"]),
    ({"providers": [{"provider": "nobody", "model": "x"}]}, ["providers[0].provider", "nobody"]),
    ({"providers": [{"provider": 5}]}, ["providers[0].provider", "string"]),
    ({"providers": [{"provider": "compatible"}]}, ["providers[0].model"]),
    ({"providers": [{"provider": "reference"}]}, ["providers[0].model"]),
    ({"providers": [{**OPENAI, "model": 4}]}, ["providers[0].model", "string"]),
    ({"providers": [{**ORACLE, "temperature": "0"}]}, ["providers[0].temperature", "number"]),
    ({"providers": [{**ORACLE, "temperature": 3}]}, ["providers[0].temperature", "0 to 2"]),
    ({"providers": [{**ORACLE, "temperature": True}]}, ["providers[0].temperature", "number"]),
    ({"providers": [{**ORACLE, "max_tokens": 0}]}, ["providers[0].max_tokens"]),
    ({"providers": [{**ORACLE, "max_tokens": 1.5}]}, ["providers[0].max_tokens", "whole"]),
    ({"providers": [{**ORACLE, "concurrency": 0}]}, ["providers[0].concurrency"]),
    ({"providers": [{**ORACLE, "concurrency": 2.5}]}, ["providers[0].concurrency", "whole"]),
    ({"providers": [{**OPENAI, "api_key": 5}]}, ["providers[0].api_key", "string"]),
    (
        {"providers": [{**OPENAI, "api_key_env": "MY_LAB_KEY"}]},
        ["providers[0].api_key_env", "MY_LAB_KEY"],
    ),
    (
        {"providers": [{**OPENAI, "api_key_env": "\x1b[31mX"}]},
        ["providers[0].api_key_env"],
    ),
    ({"providers": [{**OPENAI, "model": "x\ud800"}]}, ["surrogate"]),
    (
        {"providers": [{**OPENAI, "api_key": KEY, "api_key_env": "MY_LAB_KEY"}]},
        ["providers[0]", "api_key and api_key_env"],
    ),
]


@pytest.mark.parametrize(("document", "parts"), WRONG, ids=[json.dumps(d)[:50] for d, _ in WRONG])
def test_a_wrong_file_is_one_line_with_the_file_and_the_field(
    document: Any, parts: list[str], command: Command, path: Path
) -> None:
    path.write_text(json.dumps(document))
    refused(command, path, *parts, FILE_KEY=KEY)


def test_problems_found_after_reading_name_their_model(command: Command, path: Path) -> None:
    for entries, parts in (
        ([OPENAI], ["openai/gpt-4o", "OPENAI_API_KEY"]),
        ([ORACLE, ORACLE], ["reference/oracle", "twice"]),
        ([{"provider": "reference", "model": "genius"}], ["genius", "oracle"]),
        ([{"provider": "compatible", "model": "m"}], ["compatible/m", "base"]),
        ([{"provider": "compatible", "model": "m", "base_url": "localhost"}], ["http://"]),
    ):
        write(path, *entries)
        done = command("--config", str(path), "--seed", "1")
        assert done.code == 2
        one_line(done, *parts)


@pytest.mark.parametrize(
    "data",
    [
        b'{"maze": {"size": 7,}}',
        b'{"maze": {"size": 7}',
        b"size: 7",
        b"",
        b'{"maze": "\xff\xfe"}',
        b"[" * 100_000,
        b'{"maze": {"size": ' + b"9" * 5000 + b"}}",
        b'{"maze": {"max_tokens": NaN}}',
    ],
    ids=["comma", "unclosed", "yaml", "empty", "bytes", "deep", "long number", "NaN"],
)
def test_broken_json(data: bytes, command: Command, path: Path) -> None:
    path.write_bytes(data)
    refused(command, path)


def test_a_lone_surrogate_is_no_crash(command: Command, path: Path) -> None:
    """JSON allows it in a string, UTF-8 holds none."""
    path.write_text('{"providers": [{"provider": "reference", "model": "\\ud83d"}]}')
    done = command.run("--config", str(path), "--seed", "1")
    assert done.code == 2
    one_line(done)


def test_no_such_file(command: Command, path: Path) -> None:
    refused(command, path.with_name("missing.json"), "missing.json")
    refused(command, path.parent)


# ---- who can read it


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_key_that_others_can_read(command: Command, path: Path) -> None:
    write(path, {**OPENAI, "api_key": KEY})
    args = ("--config", str(path), "--show", "--seed", "1")
    quiet = command(*args, FILE_KEY=KEY)
    assert (quiet.code, quiet.err) == (0, "")
    for mode in (0o644, 0o640, 0o604):
        path.chmod(mode)
        loud = command(*args, FILE_KEY=KEY)
        assert loud.code == 0 and loud.out == quiet.out
        (line,) = loud.err.splitlines()
        assert "warning" in line and path.name in line and "600" in line
    korean = command(*args, "--lang", "ko", FILE_KEY=KEY)
    assert "경고" in korean.err


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_file_without_a_key_may_be_read(command: Command, path: Path) -> None:
    """The key is in the environment: there is nothing to hide in the file."""
    write(path, {**OPENAI, "api_key_env": "MY_LAB_KEY"}, ORACLE)
    path.chmod(0o644)
    done = command("--config", str(path), "--show", "--seed", "1", MY_LAB_KEY=KEY)
    assert (done.code, done.err) == (0, "")


def test_a_key_in_the_place_of_a_variable_is_not_shown(command: Command, path: Path) -> None:
    write(path, {"provider": "openai", "api_key_env": KEY})
    done = command("--config", str(path))
    assert done.code == 2
    assert KEY not in done.out + done.err
    assert "providers[0].api_key_env" in done.err and len(done.err.splitlines()) == 1
