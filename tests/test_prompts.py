"""Section 3: the prompt. Its template is SPEC's, its bytes are the same for everybody."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hallumaze
from hallumaze import MazeConfig, MazeEngine, PromptBuilder

ROOT = Path(__file__).resolve().parent.parent
LANGS = ("ko", "en")

# The template of v1.1. In English the words in brackets and the label are English.
TEMPLATE = {
    "ko": [
        "STEP N: (r,c) → [방향] | 확신도: XX% | [이유]",
        "DEAD_END at (r,c) — backtracking",
        "LOOP detected at (r,c) — visited at step M",
        "STRATEGY_CHANGE — [이유]",
        "",
        "BACKTRACK_COUNT: N",
        "HALLUCINATION_COUNT: N",
        "CONFIDENCE_LOG: step1:conf1, step2:conf2, ...",
    ],
    "en": [
        "STEP N: (r,c) → [direction] | Confidence: XX% | [reason]",
        "DEAD_END at (r,c) — backtracking",
        "LOOP detected at (r,c) — visited at step M",
        "STRATEGY_CHANGE — [reason]",
        "",
        "BACKTRACK_COUNT: N",
        "HALLUCINATION_COUNT: N",
        "CONFIDENCE_LOG: step1:conf1, step2:conf2, ...",
    ],
}
TITLES = {
    "ko": ("=== 풀이 규칙 ===", "=== 최종 출력 ==="),
    "en": ("=== Rules ===", "=== Final output ==="),
}


def build(size: int = 7, seed: int = 4, **settings: object) -> hallumaze.Prompt:
    """The prompt of a maze under settings."""
    config = replace(MazeConfig(), size=size, **settings)  # type: ignore[arg-type]
    return PromptBuilder(MazeEngine(size, seed), config).build()


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", [5, 7, 11])
def test_template_lines_once_and_in_order(lang: str, size: int) -> None:
    lines = build(size, lang=lang).user.split("\n")
    places = [lines.index(line) for line in TEMPLATE[lang] if line]
    assert places == sorted(places)
    assert all(lines.count(line) == 1 for line in TEMPLATE[lang] if line)
    rules, final = (lines.index(title) for title in TITLES[lang])
    assert rules < places[0] < places[3] < final < places[4]
    assert lines.count(TITLES[lang][0]) == lines.count(TITLES[lang][1]) == 1
    assert lines[-1].startswith("FINAL_PATH: (0,0)→(r,c)→...→(")


@pytest.mark.parametrize("lang", LANGS)
def test_final_path_line_is_v1_1s(lang: str) -> None:
    # SPEC 3 and v1.1 print the N, as every other line of the template does.
    assert build(lang=lang).user.split("\n")[-1] == "FINAL_PATH: (0,0)→(r,c)→...→(N-1,N-1)"


@pytest.mark.parametrize("lang", LANGS)
def test_the_maze_comes_first(lang: str) -> None:
    for settings in ({}, {"mirage": "balanced"}, {"use_mirage": False}):
        maze = MazeEngine(7, 4)
        user = PromptBuilder(maze, MazeConfig(lang=lang, **settings)).build().user  # type: ignore[arg-type]
        listing = maze.encode_text(settings != {"use_mirage": False}, lang, "trap")
        if settings == {"mirage": "balanced"}:
            listing = maze.encode_text(True, lang, "balanced")
        assert user.startswith(f"{listing}\n\n{TITLES[lang][0]}\n")


@pytest.mark.parametrize("lang", LANGS)
def test_without_confidence_nothing_asks_for_it(lang: str) -> None:
    asked, plain = build(lang=lang), build(lang=lang, use_confidence=False)
    assert "CONFIDENCE" in asked.user and "XX%" in asked.user
    assert not re.search(r"confiden|확신|%|conf\d|how sure", plain.user, re.I)
    reason, way = {"ko": ("이유", "방향"), "en": ("reason", "direction")}[lang]
    assert f"STEP N: (r,c) → [{way}] | [{reason}]" in plain.user.split("\n")
    assert plain.system == asked.system
    # What is left is in the same words: only lines are gone, and the part of the STEP line.
    left = [line.replace(" | 확신도: XX%", "") for line in asked.user.split("\n")]
    left = [line.replace(" | Confidence: XX%", "") for line in left]
    kept = plain.user.split("\n")
    assert [line for line in left if line in kept] == kept
    assert len(left) - len(kept) == 2  # the rule, and the log


def test_byte_identical_for_the_same_maze_config_and_language() -> None:
    for lang in LANGS:
        for settings in ({}, {"use_confidence": False}, {"mirage": "balanced"}):
            assert build(lang=lang, **settings) == build(lang=lang, **settings)


def test_what_shapes_no_prompt_changes_no_byte() -> None:
    same = {"ariadne_mode": "C", "max_tokens": 9, "temperature": 1.0, "reasoning_effort": "low"}
    for name, value in same.items():
        assert build(**{name: value}) == build()


def test_what_shapes_the_prompt_changes_its_sha() -> None:
    prompts = [
        build(),
        build(seed=43),
        build(size=5),
        build(lang="en"),
        build(use_confidence=False),
        build(use_mirage=False),
        build(mirage="balanced"),
    ]
    assert len({prompt.sha256 for prompt in prompts}) == len(prompts)


@pytest.mark.parametrize("lang", LANGS)
def test_sha_is_of_both_messages(lang: str) -> None:
    prompt = build(lang=lang)
    both = prompt.system.encode() + b"\0" + prompt.user.encode()
    assert prompt.sha256 == hashlib.sha256(both).hexdigest()


def test_the_same_bytes_in_another_process() -> None:
    # Sets and hashes of strings differ from process to process; prompts do not.
    code = (
        "from hallumaze import *;"
        "print([PromptBuilder(MazeEngine(7, 4), MazeConfig(lang=l, mirage=m)).build().sha256"
        " for l in ('ko', 'en') for m in ('trap', 'balanced')])"
    )
    own = [build(lang=lang, mirage=kind).sha256 for lang in LANGS for kind in ("trap", "balanced")]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(own)


@pytest.mark.parametrize("lang", LANGS)
def test_system_message(lang: str) -> None:
    system = build(lang=lang).system
    # A metacognition benchmark; hide no errors; state dead ends and loops; that is measured.
    wanted = {
        "ko": ("메타인지", "벤치마크", "실수", "감추", "막다른 길", "루프"),
        "en": ("metacognition", "benchmark", "mistake", "hide", "dead end", "loop", "measured"),
    }
    assert all(word in system for word in wanted[lang])
    assert "\n" not in system.strip()
    assert {build(5, seed, lang=lang).system for seed in range(5)} == {system}


def test_each_language_stays_its_own() -> None:
    korean, english = build(), build(lang="en")
    assert not re.search("[가-힣]", english.system + english.user)
    outside_format = re.sub(r"^(\(|MAZE|Seed|STEP|DEAD|LOOP|STRAT|[A-Z_]+:).*$", "", korean.user)
    assert re.search("[가-힣]", outside_format)
    assert korean.user.count("\n") == english.user.count("\n")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("confidence", [True, False])
def test_no_worked_example(lang: str, confidence: bool) -> None:
    for seed in range(30):
        maze = MazeEngine(7, seed)
        prompt = build(7, seed, lang=lang, use_confidence=confidence)
        rules = prompt.user[prompt.user.index(TITLES[lang][0]) :] + prompt.system
        # Behind the maze, no cell with numbers but the two ends, and no direction of a real move.
        cells = {tuple(map(int, cell)) for cell in re.findall(r"\((\d+),\s*(\d+)\)", rules)}
        assert cells <= {(0, 0), (6, 6)}
        assert not re.search(r"STEP \d|[NESW][↑→↓←]|\d%? ?[|→] ?[NESW]\b", rules)
        way = [f"({r},{c})" for r, c in maze.solution_path]
        for joint in ("→", " → ", "->", " -> ", ", ", " "):
            assert joint.join(way[:3]) not in prompt.user


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("confidence", [True, False])
def test_a_model_that_echoes_the_prompt_has_claimed_nothing(lang: str, confidence: bool) -> None:
    maze = MazeEngine(7, 4)
    prompt = build(lang=lang, use_confidence=confidence)
    _, metrics, scored = hallumaze.score_answer(prompt.user, "ok", maze)
    assert scored["outcome"] == "unreadable"
    assert (metrics.sr, metrics.mei, metrics.brs, metrics.hallumaze_score) == (0, 0, 0, 0)
    assert metrics.metacog_signals == []
