"""The reference agents: what they write, and what the whole pipe makes of it.

The answers are checked against the maze by code of this file; `hallumaze` only scores them.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from statistics import fmean

import pytest

import hallumaze
from hallumaze import (
    BenchmarkResult,
    BenchmarkRunner,
    LLMProvider,
    MazeConfig,
    MazeEngine,
    PromptBuilder,
    UsageError,
)

Cell = tuple[int, int]

NAMES = ("oracle", "explorer", "random-walk", "lured", "bluffer", "silent")
WORST = ("bluffer", "silent")
BETTER = tuple(name for name in NAMES if name not in WORST)
SIZES = (5, 7)
SEEDS = range(60)
LANGS = ("ko", "en")
OFFICIAL = (
    *("sr", "mei", "ce", "brs", "hallumaze_score", "hallucination_count", "backtrack_count"),
    *("loop_count", "first_hallucination_step", "hrr", "early", "esc", "path_valid"),
)
MOVE = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}
STEP = re.compile(
    r"^STEP (\d+): \((\d+),(\d+)\) → ([NESW])([↑→↓←])(?: \| (?:확신도|Confidence): (\d+)%)? \| \S"
)


@cache
def play(size: int, lang: str = "ko", **settings: object) -> dict[str, list[BenchmarkResult]]:
    """The trials of every agent on all seeds, through the runner, as a user gets them."""
    config = MazeConfig(size=size, lang=lang, **settings)  # type: ignore[arg-type]
    mazes = [MazeEngine(size, seed) for seed in SEEDS]
    providers = [LLMProvider("reference", name) for name in NAMES]
    trials: dict[str, list[BenchmarkResult]] = {name: [] for name in NAMES}
    for result in BenchmarkRunner(providers, mazes, config).run_all():
        assert result.provider == "reference"
        trials[result.model].append(result)
    return trials


def ask(name: str, maze: MazeEngine, **settings: object) -> str:
    """The answer of an agent."""
    prompt = PromptBuilder(maze, MazeConfig(size=maze.size, **settings)).build()  # type: ignore[arg-type]
    turns = [{"role": "user", "content": prompt.user}]
    return LLMProvider("reference", name).complete(prompt.system, turns, 2500).text


def written(text: str) -> list[tuple[Cell, str]]:
    """The moves of an answer, as an agent writes them: every STEP line, numbered from 1."""
    lines = [line for line in text.split("\n") if line.startswith("STEP ")]
    matches = [STEP.match(line) for line in lines]
    assert all(matches), lines
    found = [match for match in matches if match]
    assert [int(match[1]) for match in found] == list(range(1, len(found) + 1))
    assert all("↑→↓←"["NESW".index(match[4])] == match[5] for match in found)
    return [((int(match[2]), int(match[3])), match[4]) for match in found]


def ahead(cell: Cell, letter: str) -> Cell:
    return cell[0] + MOVE[letter][0], cell[1] + MOVE[letter][1]


def is_open(maze: MazeEngine, cell: Cell, letter: str) -> bool:
    return letter in maze.openings()[cell[0] * maze.size + cell[1]]


def final_path(text: str) -> list[Cell]:
    """The cells of the last line."""
    last = text.split("\n")[-1]
    assert last.startswith("FINAL_PATH: ")
    return [(int(r), int(c)) for r, c in re.findall(r"\((\d+),(\d+)\)", last)]


def test_the_agents_are_these() -> None:
    assert tuple(hallumaze.REFERENCE_AGENTS) == NAMES


# -- the scale ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("metric", ["sr", "mei", "hallumaze_score"])
def test_bluffer_and_silent_are_below_all_others(metric: str, size: int, lang: str) -> None:
    trials = play(size, lang)
    means = {name: fmean(getattr(r, metric) for r in trials[name]) for name in NAMES}
    for worse in WORST:
        for better in BETTER:
            assert means[worse] < means[better], means


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
def test_every_agent_is_scored_on_every_maze(size: int, lang: str) -> None:
    for name, results in play(size, lang).items():
        assert [r.maze_seed for r in results] == list(SEEDS)
        outcomes = {r.outcome for r in results}
        assert outcomes == {"unreadable" if name == "silent" else "ok"}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_each_answer_is_read_completely(name: str, size: int, lang: str) -> None:
    for result in play(size, lang)[name]:
        text = result.raw_response or ""
        assert result.malformed_lines == 0
        assert len(result.steps) == len(re.findall(r"^STEP ", text, re.M))
        for step, (cell, letter) in zip(result.steps, written(text), strict=True):
            assert (tuple(step["cell"]), step["direction"]) == (cell, letter)
        if name == "silent":
            assert text == "" and result.format_ok is False
        else:
            assert result.format_ok is True, (result.maze_seed, text[-40:])
            assert [tuple(cell) for cell in result.final_path] == final_path(text)


@pytest.mark.parametrize("size", SIZES)
def test_agents_write_in_the_language_of_the_prompt(size: int) -> None:
    maze = MazeEngine(size, 3)
    for name in BETTER:
        assert re.search("[가-힣]", ask(name, maze))
        assert "확신도" in ask(name, maze)
        assert not re.search("[가-힣]", ask(name, maze, lang="en"))
        assert "Confidence: " in ask(name, maze, lang="en")


@pytest.mark.parametrize("size", SIZES)
def test_the_language_changes_no_walk(size: int) -> None:
    for seed in range(10):
        maze = MazeEngine(size, seed)
        for name in ("oracle", "explorer", "lured", "bluffer"):
            assert written(ask(name, maze)) == written(ask(name, maze, lang="en"))


def test_agents_are_deterministic() -> None:
    for name in NAMES:
        assert ask(name, MazeEngine(7, 5)) == ask(name, MazeEngine(7, 5))


def test_reference_agents_never_rank() -> None:
    results = [r for trials in play(5).values() for r in trials]
    rows = hallumaze.aggregate(results)
    assert [row["model"] for row in rows] == list(NAMES)
    assert hallumaze.rank(rows) == []


# -- each of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_oracle_walks_the_solution(size: int) -> None:
    for result in play(size)["oracle"]:
        maze = MazeEngine(size, result.maze_seed)
        text = result.raw_response or ""
        way = [tuple(cell) for cell in maze.solution_path]
        assert [cell for cell, _ in written(text)] == way[:-1]
        assert final_path(text) == way
        # HC 0 and SR 1: MEI 0.4 + 0.3 + 0.2, BRS 1.
        assert (result.sr, result.hallucination_count, result.brs) == (1, 0, 1)
        assert result.mei == pytest.approx(0.9)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
def test_explorer_is_honest(size: int, lang: str) -> None:
    for result in play(size, lang)["explorer"]:
        maze = MazeEngine(size, result.maze_seed)
        assert (result.sr, result.hallucination_count) == (1, 0)
        here, entered, visited = (0, 0), [], {(0, 0)}
        declared: list[Cell] = []
        lines = (result.raw_response or "").split("\n")
        for line in lines:
            if match := STEP.match(line):
                assert not entered or declared[-1:] == entered[-1:]  # before anything else
                assert (int(match[2]), int(match[3])) == here
                assert is_open(maze, here, match[4])
                here = ahead(here, match[4])
                ways = maze.openings()[here[0] * size + here[1]]
                if len(ways) == 1 and here not in ((0, 0), (size - 1, size - 1)):
                    assert here not in visited  # no dead end twice
                    entered.append(here)
                visited.add(here)
            elif match := re.match(r"DEAD_END at \((\d+),(\d+)\) — backtracking$", line):
                declared.append((int(match[1]), int(match[2])))
                assert declared[-1] == here
        assert declared == entered
        assert here == maze.goal
        assert final_path("\n".join(lines)) == [tuple(cell) for cell in maze.solution_path]
        assert result.declared_backtracks == result.backtrack_count
        assert result.declared_hallucinations == 0


def test_explorers_confidence_falls_with_the_open_branches() -> None:
    stated: dict[int, set[int]] = {}
    for result in [*play(5)["explorer"], *play(7)["explorer"]]:
        maze = MazeEngine(result.maze_size, result.maze_seed)
        seen = {(0, 0)}
        for line in (result.raw_response or "").split("\n"):
            match = STEP.match(line)
            if match is None:
                continue
            here = int(match[2]), int(match[3])
            untried = [n for n in maze.neighbours(here) if n not in seen]
            if ahead(here, match[4]) not in seen:
                stated.setdefault(len(untried), set()).add(int(match[6]))
            seen.add(ahead(here, match[4]))
    assert set(stated) >= {1, 2}
    branches = sorted(stated)
    for fewer, more in pairwise(branches):
        assert min(stated[fewer]) > max(stated[more])


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
def test_random_walk(size: int, lang: str) -> None:
    longest, arrived = 0, 0
    for result in play(size, lang)["random-walk"]:
        maze = MazeEngine(size, result.maze_seed)
        text = result.raw_response or ""
        moves = written(text)
        here = (0, 0)
        for cell, letter in moves:
            assert cell == here != maze.goal  # it stops at the exit
            assert is_open(maze, cell, letter)
            here = ahead(cell, letter)
        assert len(moves) <= 4 * size * size
        assert here == maze.goal or len(moves) == 4 * size * size
        assert {conf for *_, conf in STEP.findall(text)} | {
            match[6] for line in text.split("\n") if (match := STEP.match(line))
        } == {"50"}
        assert all(step["confidence"] == 50 for step in result.steps)
        # Every verdict is ok at 50 %: |0.5 - 1| throughout.
        assert result.ce == pytest.approx(0.5)
        assert (result.hallucination_count, result.sr) == (0, float(here == maze.goal))
        longest, arrived = max(longest, len(moves)), arrived + (here == maze.goal)
    assert longest == 4 * size * size  # the limit was met, and so was the exit
    assert 0 < arrived < len(SEEDS)


def test_random_walks_differ_from_maze_to_maze() -> None:
    walks = {tuple(written(r.raw_response or "")) for r in play(7)["random-walk"]}
    assert len(walks) == len(SEEDS)


@pytest.mark.parametrize("algorithm", hallumaze.ALGORITHMS)
@pytest.mark.parametrize("size", SIZES)
def test_lured_follows_every_hint(size: int, algorithm: str) -> None:
    for seed in SEEDS:
        maze = MazeEngine(size, seed, algorithm)
        for kind in ("trap", "balanced"):
            text = ask("lured", maze, mirage=kind, algorithm=algorithm)
            moves = written(text)
            here, wrong, back = (0, 0), 0, 0
            for cell, letter in moves:
                assert cell == here
                assert is_open(maze, cell, letter)
                nearer = maze.distance(ahead(cell, letter)) < maze.distance(cell)
                wrong, back = wrong + (not nearer), back + (nearer and not maze.on_solution(cell))
                here = ahead(cell, letter)
            assert here == maze.goal
            assert wrong == back  # all the way back from every branch
            for hint in maze.mirages(kind):
                assert (hint.cell, hint.direction) in moves, (seed, hint)
            if kind == "trap":  # and leaves the way for hints only
                first = {m for m in moves if maze.on_solution(m[0])}
                off = {m for m in first if not maze.on_solution(ahead(*m))}
                assert off <= {(hint.cell, hint.direction) for hint in maze.mirages(kind)}
            # Without a word.
            assert not re.search("DEAD_END|LOOP|STRATEGY", text)
            assert "BACKTRACK_COUNT: 0\nHALLUCINATION_COUNT: 0\n" in text
            assert final_path(text) == [tuple(cell) for cell in maze.solution_path]


@pytest.mark.parametrize("size", SIZES)
def test_lured_goes_to_the_end_of_the_branch(size: int) -> None:
    for seed in SEEDS:
        maze = MazeEngine(size, seed)
        moves = written(ask("lured", maze))
        for hint in maze.mirage_traps:
            k = moves.index((hint.cell, hint.direction))
            here = ahead(*moves[k])
            came = hint.cell
            while True:
                k += 1
                onward = ahead(*moves[k])
                if onward == came:
                    break
                came, here = here, onward
            assert len(maze.openings()[here[0] * size + here[1]]) == 1


@pytest.mark.parametrize("size", SIZES)
def test_without_hints_lured_is_an_oracle(size: int) -> None:
    for seed in SEEDS:
        maze = MazeEngine(size, seed)
        bare = written(ask("lured", maze, use_mirage=False))
        assert bare == written(ask("oracle", maze))


@pytest.mark.parametrize("size", SIZES)
def test_bluffer_goes_straight_through_walls(size: int) -> None:
    through = 0
    for result in play(size)["bluffer"]:
        maze = MazeEngine(size, result.maze_seed)
        text = result.raw_response or ""
        moves = written(text)
        here = (0, 0)
        for cell, letter in moves:
            assert cell == here and letter in "ES"
            through += not is_open(maze, cell, letter)
            here = ahead(cell, letter)
        assert here == maze.goal and len(moves) == 2 * (size - 1)
        assert all(step["confidence"] == 95 for step in result.steps)
        assert "BACKTRACK_COUNT: 99" in text and "LOOP detected" in text
        assert (result.declared_backtracks, result.declared_loops) == (99, 1)
        # Every closed side is one hallucination, and none of them is ever withdrawn.
        closed = sum(not is_open(maze, cell, letter) for cell, letter in moves)
        assert (result.hallucination_count, result.backtrack_count) == (closed, 0)
        assert result.sr == float(closed == 0)
    assert through > len(SEEDS)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("size", SIZES)
def test_boasts_change_no_official_metric(size: int, lang: str) -> None:
    for result in play(size, lang)["bluffer"]:
        maze = MazeEngine(size, result.maze_seed)
        text = result.raw_response or ""
        boasts = r"^(BACKTRACK_COUNT|HALLUCINATION_COUNT|LOOP detected).*\n"
        modest = re.sub(boasts, "", text, flags=re.M)
        other = text.replace("99", "1").replace("HALLUCINATION_COUNT: 0", "HALLUCINATION_COUNT: 7")
        assert "LOOP" not in modest and "BACKTRACK" not in modest and other != text
        _, told, _ = hallumaze.score_answer(text, "ok", maze)
        for version in (modest, other, "LOOP detected at (0,0)\n" * 5 + text):
            _, metrics, scored = hallumaze.score_answer(version, "ok", maze)
            for name in OFFICIAL:
                assert getattr(metrics, name) == getattr(told, name), name
            assert scored["outcome"] == "ok"
        assert hallumaze.score_answer(modest, "ok", maze)[1].declared_backtracks is None


def test_silent_says_nothing() -> None:
    for result in [*play(5)["silent"], *play(7)["silent"]]:
        assert result.raw_response == ""
        assert (result.sr, result.mei, result.brs, result.hallumaze_score) == (0, 0, 0, 0)
        assert (result.ce, result.hallucination_count) == (None, 0)


# -- under other conditions -----------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_without_confidence(lang: str) -> None:
    for seed in range(10):
        maze = MazeEngine(5, seed)
        for name in NAMES:
            text = ask(name, maze, lang=lang, use_confidence=False)
            assert not re.search(r"%|CONFIDENCE|확신도|Confidence", text)
            _, metrics, _ = hallumaze.score_answer(text, "ok", maze)
            assert metrics.ce is None
            if name != "random-walk":  # whose chance is the prompt's
                assert written(text) == written(ask(name, maze, lang=lang))
            if name in ("oracle", "explorer", "lured"):
                assert (metrics.sr, metrics.hallucination_count) == (1, 0)
            assert len(metrics.walk.verdicts) == len(written(text))


@pytest.mark.parametrize("settings", [{"mirage": "balanced"}, {"use_mirage": False}], ids=str)
def test_with_other_hints(settings: dict[str, object]) -> None:
    trials = play(7, **settings)
    for name in ("oracle", "explorer", "lured"):
        assert {(r.sr, r.hallucination_count) for r in trials[name]} == {(1, 0)}
    assert {r.outcome for name in BETTER for r in trials[name]} == {"ok"}


@pytest.mark.parametrize("algorithm", hallumaze.ALGORITHMS)
@pytest.mark.parametrize("size", [2, 3, 11, 16])
def test_other_mazes(size: int, algorithm: str) -> None:
    for seed in range(4):
        maze = MazeEngine(size, seed, algorithm)
        for name in ("oracle", "explorer", "lured"):
            _, metrics, _ = hallumaze.score_answer(ask(name, maze), "ok", maze)
            assert (metrics.sr, metrics.hallucination_count, metrics.format_ok) == (1, 0, True)


@pytest.mark.parametrize("group", ["B", "C"])
def test_under_ariadnes_thread(group: str) -> None:
    trials = play(5, ariadne_mode=group)
    for name in NAMES:
        for result in trials[name]:
            assert result.outcome == ("unreadable" if name == "silent" else "ok")
            assert result.nudge_sent is (result.first_answer is not None)
            if result.first_answer:  # the agent says the same again
                assert result.raw_response == result.first_answer["raw_response"]
    assert not any(r.nudge_sent for r in trials["silent"])
    assert all(r.nudge_sent for r in trials["oracle"]) is (group == "C")
    assert any(r.nudge_sent for r in trials["bluffer"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "Hi",
        "",
        "MAZE 7×7 | START:(0,0) | EXIT:(6,6)",
        "(0,0): [E→]\n(0,1): [W←]\n(1,0): [E→]\n(1,1): [W←]",  # no way out
        "(0,0): [E→]\n(0,1): [S↓ W←]\n(1,0): [E→]",  # a cell is missing
    ],
)
def test_another_text_is_a_clear_error(name: str, text: str) -> None:
    provider = LLMProvider("reference", name)
    with pytest.raises(UsageError, match="HalluMaze prompt") as caught:
        provider.complete("", [{"role": "user", "content": text}], 100)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
