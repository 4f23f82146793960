"""The measures that v1.1 lacks: every number here was worked out by hand beside its case.

A walk is a list of lines. A step is written `(0,1) S`, `(0,1) S 90` with a confidence, and
`(0,1) S | because` with a reason; `answer_of` numbers it. Every other line stands in the answer as
it is. Lines count from 0, steps from 1.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

import hallumaze
from hallumaze import (
    EVENTS,
    FAILURE_MODES,
    REFERENCE_AGENTS,
    MazeConfig,
    MazeEngine,
    Mirage,
    PromptBuilder,
    Recognition,
    ResponseParser,
    Walk,
    calibration_bins,
    calibration_scores,
    confidence_pattern,
    judge,
    lure_counts,
    lure_scores,
    recognise,
    recognition_scores,
    recovery_counts,
    recovery_scores,
    score_answer,
    stated_confidences,
)

# Solution E S, dead end (1,0) beyond the exit.
#   +---+---+
#   | S     |
#   +---+   +
#   |     X |
#   +---+---+
TWO = ["E", "SW", "E", "NW"]

# Solution E E S S. Off (0,0): the branch (1,0) (2,0) (2,1). Off (0,1): the branch (1,1).
#   +---+---+---+
#   | S         |
#   +   +   +   +
#   |   |   |   |
#   +   +---+   +
#   |       | X |
#   +---+---+---+
THREE = ["ES", "ESW", "SW", "NS", "N", "NS", "NE", "W", "N"]

# Solution E S E S. At (1,1) all four sides are open: E is right, S and W are wrong.
#   +---+---+---+
#   | S         |
#   +---+   +---+
#   |           |
#   +   +   +   +
#   |   |   | X |
#   +---+---+---+
CROSS = ["E", "ESW", "W", "ES", "NESW", "SW", "N", "N", "N"]

# Solution S E N E E S S S. Off (1,0) a branch that forks at (2,0): one arm is (2,1), the other
# (3,0) (3,1) (3,2). Off (2,3): the branch (2,2) (1,2).
#   +---+---+---+---+
#   | S |           |
#   +   +   +---+   +
#   |       |   |   |
#   +   +---+   +   +
#   |       |       |
#   +   +---+---+   +
#   |           | X |
#   +---+---+---+---+
FOUR = ["S", "ES", "EW", "SW"]
FOUR += ["NES", "NW", "S", "NS"]
FOUR += ["NES", "W", "NE", "NSW"]
FOUR += ["NE", "EW", "W", "N"]

SOLVED = "FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)"  # in THREE

Lines = Sequence[str]

STEP = re.compile(r"(\(-?\d+,-?\d+\)) ([A-Z]+)(?: (\d+))?(?: \| (.*))?")


def answer_of(lines: Lines) -> str:
    """The text of an answer whose steps are written short."""
    written = []
    number = 0
    for line in lines:
        if step := STEP.fullmatch(line):
            number += 1
            cell, way, confidence, reason = step.groups()
            line = f"STEP {number}: {cell} → {way}"
            line += f" | 확신도: {confidence}%" if confidence else ""
            line += f" | {reason}" if reason else ""
        written.append(line)
    return "\n".join(written) + "\n"


def steps(maze: Sequence[str], ways: str) -> list[str]:
    """Legal steps from the start, each standing where the last one led: `E S` and so on."""
    engine = MazeEngine.from_openings(maze)
    here: Any = engine.start
    lines = []
    for way in ways.split():
        lines.append(f"({here[0]},{here[1]}) {way}")
        here = engine.destination(here, way)
    return lines


def walk_of(maze: Sequence[str], lines: Lines) -> Walk:
    """The verified walk of an answer."""
    return judge(ResponseParser().parse(answer_of(lines)), MazeEngine.from_openings(maze)).walk


def measures(
    maze: Sequence[str], lines: Lines, outcome: str = "ok", hints: Sequence[Mirage] = ()
) -> dict[str, Any]:
    """The fields of the result of an answer."""
    return score_answer(answer_of(lines), outcome, MazeEngine.from_openings(maze), hints)[2]


def verdicts_of(walk: Walk) -> str:
    return " ".join(str(v.verdict) for v in walk.verdicts)


def near(want: dict[str, float | None]) -> Any:
    """The same numbers, to the 6 places of a result; None is None."""
    return {k: v if v is None else pytest.approx(v, abs=5e-7) for k, v in want.items()}


@pytest.mark.parametrize(
    ("openings", "solution"), [(TWO, "ES"), (THREE, "EESS"), (CROSS, "ESES"), (FOUR, "SENEESSS")]
)
def test_the_mazes_are_as_drawn(openings: list[str], solution: str) -> None:
    maze = MazeEngine.from_openings(openings)
    here: Any = maze.start
    cells = [here]
    for way in solution:
        here = maze.destination(here, way)
        cells.append(here)
    assert [tuple(cell) for cell in maze.solution_path] == cells


# -- recognition -----------------------------------------------------------------------------------


def recognition_of(maze: Sequence[str], lines: Lines) -> Recognition:
    answer = ResponseParser().parse(answer_of(lines))
    return recognise(judge(answer, MazeEngine.from_openings(maze)).walk, answer.signals)


Three = tuple[int, int, int]
Four = tuple[int, int, int, int]
NONE: Three = (0, 0, 0)


class Noticed(NamedTuple):
    """(events, recognised, false alarms) by the kind of event."""

    name: str
    maze: list[str]
    lines: list[str]
    dead_end: Three = NONE
    loop: Three = NONE
    hallucination: Three = NONE


ENTER = ["(0,0) E", "(0,1) S"]  # in THREE: step 2 enters the dead end (1,1), on line 1
AGAIN = ["(0,0) E", "(0,1) W", "(0,0) E"]  # step 3 repeats step 1, and arrives at (0,1)
BUMP = ["(0,0) N"]  # the border: stood on (0,0), aimed at (-1,0)
PAST = ["(0,0) S", "(1,0) E"]  # in THREE a wall: stood on (1,0), aimed at (1,1)

DEAD_ENDS = [
    Noticed(
        # Line 2 is after line 1 and before STEP 5. The two signals on it are one declaration.
        "declared at once, with the word of going back",
        THREE,
        [*ENTER, "DEAD_END at (1,1) — backtracking", "(1,1) N", "(0,1) E", "(0,2) S"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        "a signal without a cell speaks of where the walk is",
        THREE,
        [*ENTER, "막다른 길", "(1,1) N"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        # After STEP 3 the walk is at (0,1), and that is what the bare signal speaks of.
        "a signal without a cell after the walk has left",
        THREE,
        [*ENTER, "(1,1) N", "DEAD_END"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        # Entered at step 2: the last chance is before STEP 5.
        "declared just before STEP k+3",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) E", "DEAD_END at (1,1)", "(0,2) S"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        "declared on the line of STEP k+2",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) E | DEAD_END at (1,1)", "(0,2) S"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        "declared on the line of STEP k+3",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) E", "(0,2) S | DEAD_END at (1,1)"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        "declared after STEP k+3",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) E", "(0,2) S", "DEAD_END at (1,1)"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        # Its own line is not after it.
        "declared on the line of the step itself",
        THREE,
        ["(0,0) E", "(0,1) S | DEAD_END at (1,1)", "(1,1) N"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        "declared before the step",
        THREE,
        ["(0,0) E", "DEAD_END at (1,1)", "(0,1) S", "(1,1) N"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        "another dead end is declared",
        THREE,
        [*ENTER, "DEAD_END at (2,1)", "(1,1) N"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        "a loop is declared there",
        THREE,
        [*ENTER, "LOOP detected at (1,1) — visited at step 1", "(1,1) N"],
        dead_end=(1, 0, 0),
        loop=(0, 0, 1),
    ),
    Noticed(
        # A signal of no kind of its own is counted with the hallucinations.
        "a change of strategy is no word of a dead end",
        THREE,
        [*ENTER, "STRATEGY_CHANGE — 다른 길", "(1,1) N"],
        dead_end=(1, 0, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        "a word of error is no word of a dead end",
        THREE,
        [*ENTER, "(1,1) was wrong", "(1,1) N"],
        dead_end=(1, 0, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        # The second one is no repeat: only words of no kind of their own are.
        "declared twice",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "DEAD_END at (1,1)", "(1,1) N"],
        dead_end=(1, 1, 1),
    ),
    Noticed(
        # Steps 2 and 4 enter (1,1), and step 4 repeats step 2, an unnoticed loop.
        "entered twice, declared once",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) S", "DEAD_END at (1,1)"],
        dead_end=(2, 1, 0),
        loop=(1, 0, 0),
    ),
    Noticed(
        "entered twice, declared twice",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "(1,1) N", "(0,1) S", "DEAD_END at (1,1)"],
        dead_end=(2, 2, 0),
        loop=(1, 0, 0),
    ),
    Noticed(
        # The wall south of (1,1) is believed, so step 3 enters the dead end (2,1): both are events
        # of step 3. One signal at (2,1), a cell aimed at, matches one of them: the dead end.
        "a wall walked through into a dead end",
        THREE,
        [*ENTER, "(1,1) S", "(2,1) W", "DEAD_END at (2,1)"],
        dead_end=(2, 1, 0),
        hallucination=(1, 0, 0),
    ),
    Noticed("denied", THREE, [*ENTER, "no dead end here", "(1,1) N"], dead_end=(1, 0, 0)),
]

LOOPS = [
    Noticed(
        "declared at the cell that it led to",
        THREE,
        [*AGAIN, "LOOP detected at (0,1) — visited at step 1"],
        loop=(1, 1, 0),
    ),
    Noticed("declared in Korean without a cell", THREE, [*AGAIN, "루프 감지"], loop=(1, 1, 0)),
    Noticed(
        "declared where it began",
        THREE,
        [*AGAIN, "LOOP detected at (0,0) — visited at step 1"],
        loop=(1, 0, 1),
    ),
    Noticed(
        # Steps 3 to 6 repeat steps 1 and 2: four loops, of which the two at (0,1) have a signal.
        # Step 3 has STEP 6 for its end, so that the signal of line 4 is in time; line 7 is for 5.
        "two of four",
        THREE,
        [*AGAIN, "(0,1) W", "LOOP detected at (0,1)", "(0,0) E", "(0,1) W", "LOOP at (0,1)"],
        loop=(4, 2, 0),
    ),
    Noticed(
        "declared as a dead end",
        THREE,
        [*AGAIN, "DEAD_END at (0,1)"],
        loop=(1, 0, 0),
        dead_end=(0, 0, 1),
    ),
    Noticed(
        # Step 4 is a loop and enters the dead end, which step 2 did as well.
        "a loop and a dead end at one step",
        THREE,
        [*ENTER, "(1,1) N", "(0,1) S", "LOOP detected at (1,1)", "DEAD_END at (1,1)"],
        dead_end=(2, 1, 0),
        loop=(1, 1, 0),
    ),
    Noticed("one step and no event", THREE, ["(0,0) E", "루프 없음"]),
]

HALLUCINATIONS = [
    Noticed(
        # A wall holds the walk at (0,0), which is what the bare signal speaks of.
        "a change of strategy",
        THREE,
        [*BUMP, "STRATEGY_CHANGE — 동쪽으로", "(0,0) E"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a dead end at the cell it stood on counts for the error",
        THREE,
        [*BUMP, "DEAD_END at (0,0) — backtracking", "(0,0) E"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a loop at the cell it aimed at counts for the error",
        THREE,
        [*PAST, "LOOP detected at (1,1)", "(1,0) N"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a signal at a cell that has nothing to do with it",
        THREE,
        [*PAST, "DEAD_END at (2,2)", "(1,0) N"],
        hallucination=(1, 0, 0),
        dead_end=(0, 0, 1),
    ),
    Noticed(
        "a word of error about the cell it aimed at, outside the grid",
        THREE,
        [*BUMP, "There is no cell (-1,0), I was wrong", "(0,0) E"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a word of error about another cell",
        THREE,
        [*PAST, "I was wrong about (2,2)", "(1,0) N"],
        hallucination=(1, 0, 1),
    ),
    Noticed(
        # It declares nothing, so it is in vain no more than in place.
        "a word of error without a cell",
        THREE,
        [*PAST, "I was wrong.", "(1,0) N"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        "a word of error in the reason of the next step, with a cell there",
        THREE,
        [*BUMP, "(0,0) E 90 | N of (0,0) was wrong"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # (0,0) stands in the step, not in its reason.
        "a word of error in a reason without a cell",
        THREE,
        [*BUMP, "(0,0) E 90 | that was wrong"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        "a word of error in a reason without a cell, and no confidence",
        THREE,
        [*BUMP, "(0,0) E | that was wrong"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        # Step 1 must be spoken of before STEP 4.
        "a word of error too late",
        THREE,
        [*BUMP, "(0,0) E", "(0,1) E", "(0,2) S", "(0,0) was wrong"],
        hallucination=(1, 0, 1),
    ),
    Noticed(
        "a word of error in time",
        THREE,
        [*BUMP, "(0,0) E", "(0,1) E", "(0,0) was wrong", "(0,2) S"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "two errors, one signal",
        THREE,
        [*BUMP, "(0,0) W", "STRATEGY_CHANGE — 동쪽으로", "(0,0) E"],
        hallucination=(2, 1, 0),
    ),
    Noticed(
        # Only the teleport names (2,2); it aims at (1,2).
        "a teleport",
        THREE,
        ["(2,2) N", "(2,2) was an error"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a direction that is none",
        THREE,
        ["(0,0) NE", "STRATEGY_CHANGE — 동쪽으로", "(0,0) E"],
        hallucination=(1, 1, 0),
    ),
]

NOBODY = [
    Noticed("nothing", THREE, []),
    Noticed("no step", THREE, ["STRATEGY_CHANGE — 다른 길"], hallucination=(0, 0, 1)),
    Noticed(
        # The path enters (1,1) and comes back; nothing stands between its moves.
        "a path alone: a dead end",
        THREE,
        ["DEAD_END at (1,1)", "FINAL_PATH: (0,0)→(0,1)→(1,1)→(0,1)", "DEAD_END at (1,1)"],
        dead_end=(1, 0, 2),
    ),
    Noticed(
        # The third move repeats the first.
        "a path alone: a loop",
        THREE,
        ["FINAL_PATH: (0,0)→(0,1)→(0,0)→(0,1)", "LOOP detected at (0,1)"],
        loop=(1, 0, 1),
    ),
    Noticed(
        # Two declarations, on two lines, and nothing that they could match.
        "a path alone: an error",
        THREE,
        ["FINAL_PATH: (0,0)→(0,1)→(2,2)", "(0,1) was wrong", "STRATEGY_CHANGE — (2,2)"],
        hallucination=(1, 0, 2),
    ),
]

REPEATS = [
    Noticed(
        "the dead end, then the word of going back on the next line",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "되돌아간다", "(1,1) N"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        "the change of strategy, then the dead end",
        THREE,
        [*ENTER, "STRATEGY_CHANGE — 다른 길", "DEAD_END at (1,1)", "(1,1) N"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        "the dead end, then everything else, its own STEP among it",
        THREE,
        [
            *ENTER,
            "DEAD_END at (1,1)",
            "STRATEGY_CHANGE — 다른 길",
            "(1,1) was wrong",
            "(1,1) N 90 | BACKTRACKING",
        ],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        # After STEP 3 the walk is at (0,1), where nothing happened.
        "the change of strategy at another cell",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "(1,1) N", "STRATEGY_CHANGE — 다른 길"],
        dead_end=(1, 1, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        # Line 4 is before STEP 5, on line 5.
        "the word of error in time",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "(1,1) N", "(1,1) was wrong", "(0,1) E", "(0,2) S"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        # The window of step 2 ends before STEP 5.
        "the word of error after the window",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "(1,1) N", "(0,1) E", "(0,2) S", "(1,1) was wrong"],
        dead_end=(1, 1, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        # Line 1 is before the step that enters the dead end.
        "the word of error before the window",
        THREE,
        ["(0,0) E", "(1,1) was wrong", "(0,1) S", "DEAD_END at (1,1)"],
        dead_end=(1, 1, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        "the loop, then the word of going back",
        THREE,
        [*AGAIN, "LOOP detected at (0,1)", "(0,1)에서 백트래킹"],
        loop=(1, 1, 0),
    ),
    Noticed(
        "the loop twice",
        THREE,
        [*AGAIN, "LOOP detected at (0,1)", "LOOP detected at (0,1)"],
        loop=(1, 1, 1),
    ),
    Noticed(
        "the dead end, then a loop at its cell",
        THREE,
        [*ENTER, "DEAD_END at (1,1)", "LOOP detected at (1,1)", "(1,1) N"],
        dead_end=(1, 1, 0),
        loop=(0, 0, 1),
    ),
    Noticed(
        "the error twice, in two words",
        THREE,
        [*BUMP, "(0,0) was wrong", "STRATEGY_CHANGE — 동쪽으로", "(0,0) E"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # The change of strategy is the match; what has a kind of its own is no repeat.
        "the error, then a dead end at its cell",
        THREE,
        [*BUMP, "STRATEGY_CHANGE — 동쪽으로", "DEAD_END at (0,0)", "(0,0) E"],
        dead_end=(0, 0, 1),
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # Two events at (0,0) and two declarations: one for each, and neither is a repeat.
        "two errors, two words",
        THREE,
        [*BUMP, "(0,0) W", "STRATEGY_CHANGE — 동쪽으로", "(0,0) was wrong", "(0,0) E"],
        hallucination=(2, 2, 0),
    ),
    Noticed(
        "two errors, three words",
        THREE,
        [*BUMP, "(0,0) W", "STRATEGY_CHANGE — 동쪽", "(0,0) was wrong", "(0,0) 잘못", "(0,0) E"],
        hallucination=(2, 2, 0),
    ),
]

TWO_ON_A_LINE = [
    Noticed(
        # Step 1 bumps at (0,0), step 3 enters (1,1); line 3 is before STEP 4.
        "a dead end and an error, both there",
        THREE,
        [*BUMP, *ENTER, "DEAD_END at (1,1) — I was wrong at (0,0)", "(1,1) N"],
        dead_end=(1, 1, 0),
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # Step 2 stood on (1,0) and aimed at (1,1); nobody was at (2,2).
        "a dead end that is none, and an error",
        THREE,
        [*PAST, "DEAD_END at (2,2) — I was wrong at (1,1)", "(1,0) N"],
        dead_end=(0, 0, 1),
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a dead end, and an error that is none",
        THREE,
        [*ENTER, "DEAD_END at (1,1) — I was wrong at (2,2)", "(1,1) N"],
        dead_end=(1, 1, 0),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        "a loop and an error, neither there",
        THREE,
        ["(0,0) E", "LOOP detected at (0,2) — I was wrong at (2,2)", "(0,1) E"],
        loop=(0, 0, 1),
        hallucination=(0, 0, 1),
    ),
    Noticed(
        # What is said of going back belongs to the dead end.
        "a dead end that is none, and going back",
        THREE,
        ["(0,0) E", "DEAD_END at (0,1) — backtracking", "(0,1) E"],
        dead_end=(0, 0, 1),
    ),
]

IN_A_STEP = [
    Noticed(
        # STEP 3 stands on (1,1), says why it leaves it, and so declares the dead end of step 2.
        "a bare signal speaks of where the STEP stands",
        THREE,
        [*ENTER, "(1,1) N 90 | 막다른 길"],
        dead_end=(1, 1, 0),
    ),
    Noticed(
        # STEP 2 stands on (0,0), where step 1 bumped, and arrives at (0,1).
        "a bare change of strategy speaks of where the STEP stands",
        THREE,
        [*BUMP, "(0,0) E 90 | 전략 변경"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # STEP 2 stands on (0,1), and its own line is not after it.
        "a bare signal on the line of the step itself",
        THREE,
        ["(0,0) E", "(0,1) S 90 | 막다른 길", "(1,1) N"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        # STEP 3 jumps: it names (0,0), not (1,1), where the walk was, nor (1,0), where it goes.
        "a bare signal in a STEP that jumps",
        THREE,
        [*ENTER, "(0,0) S 90 | 막다른 길"],
        dead_end=(1, 0, 1),
    ),
    Noticed(
        "a word of error behind the only bar",
        THREE,
        [*BUMP, "(0,0) E | N of (0,0) was wrong"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        "a word of error behind the second bar and a third",
        THREE,
        [*BUMP, "(0,0) E 90 | sorry | N of (0,0) was wrong"],
        hallucination=(1, 1, 0),
    ),
    Noticed(
        # Of two bars the second counts, and nothing behind it speaks of an error.
        "a word of error between two bars",
        THREE,
        [*BUMP, "(0,0) E | N of (0,0) was wrong | onward"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        "a word of error without a bar",
        THREE,
        [*BUMP, "STEP 2: (0,0) → E — I was wrong at (0,0)"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        # (0,0) is where the step stands; its reason names no cell.
        "a word of error without a bar and a cell",
        THREE,
        [*BUMP, "STEP 2: (0,0) → E (I was wrong before)"],
        hallucination=(1, 0, 0),
    ),
    Noticed(
        "a word of error behind a bar about another cell",
        THREE,
        [*BUMP, "(0,0) E 90 | (2,2) was wrong"],
        hallucination=(1, 0, 1),
    ),
]

NOTICED = [*DEAD_ENDS, *LOOPS, *HALLUCINATIONS, *NOBODY, *REPEATS, *TWO_ON_A_LINE, *IN_A_STEP]


@pytest.mark.parametrize("case", NOTICED, ids=lambda case: case.name)
def test_what_an_answer_recognises(case: Noticed) -> None:
    found = recognition_of(case.maze, case.lines).counts
    names = ("events", "recognised", "false_alarms")
    got = {kind: tuple(found[kind][name] for name in names) for kind in EVENTS}
    want = (case.dead_end, case.loop, case.hallucination)
    assert got == dict(zip(EVENTS, want, strict=True))


@pytest.mark.parametrize("case", NOTICED, ids=lambda case: case.name)
def test_false_alarms_are_those_of_all_kinds(case: Noticed) -> None:
    want = sum(alarms for _, _, alarms in (case.dead_end, case.loop, case.hallucination))
    assert measures(case.maze, case.lines)["false_alarms"] == want


@pytest.mark.parametrize(
    "words",
    [
        "I was wrong at (0,0).",
        "There was an error at (0,0).",
        "My mistake: (0,0) is closed in the north.",
        "(0,0)에서 북쪽은 틀렸다.",
        "(0,0)에서 잘못 갔다.",
        "오류: (0,0)의 북쪽은 벽이다.",
    ],
)
def test_words_of_error_recognise_a_hallucination(words: str) -> None:
    """The step bumps at (0,0); each line names that cell, and none is a signal."""
    found = recognition_of(THREE, [*BUMP, words, "(0,0) E"])
    assert [found.total(n) for n in ("events", "recognised", "false_alarms")] == [1, 1, 0]


@pytest.mark.parametrize(
    "words",
    [
        "(0,0) is not wrong.",
        "There was no error at (0,0).",
        "I left (0,0) without a mistake.",
        "(0,0)에서 틀리지 않았다.",
        "오류 없음: (0,0)",
        "(0,0)은 잘못이 아니다.",
        "Nothing was wrong at (0,0).",
        "(0,0) can't be wrong.",
        "(0,0)에서 오류가 발생하지 않았다.",
        "(0,0)은 틀린 곳이 아니다.",
        "(0,0)은 잘못된 길이 아니다.",
    ],
)
def test_negated_words_of_error_declare_nothing(words: str) -> None:
    """A person reads a denial in each of them: neither a match nor a false alarm."""
    found = recognition_of(THREE, [*BUMP, words, "(0,0) E"])
    assert [found.total(n) for n in ("events", "recognised", "false_alarms")] == [1, 0, 0]


Listed = tuple[int, str, set[tuple[int, int]], int | None]


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ([], []),
        (["(0,0) E"], []),
        ([*ENTER, "", "DEAD_END at (1,1)", "(1,1) N"], [(2, "dead_end", {(1, 1)}, 3)]),
        (
            [*BUMP, "(0,0) E", "(0,1) S", "DEAD_END at (1,1)", "STRATEGY_CHANGE — (0,0)"],
            # STEP 4 never comes, so line 4 is still in time for step 1.
            [(1, "hallucination", {(0, 0), (-1, 0)}, 4), (3, "dead_end", {(1, 1)}, 3)],
        ),
        (
            # Steps 3 and 4 repeat steps 1 and 2, and arrive at (0,1) and (0,0).
            [*AGAIN, "(0,1) W", "LOOP detected at (0,0)"],
            [(3, "loop", {(0, 1)}, None), (4, "loop", {(0, 0)}, 4)],
        ),
        (
            # A teleport names where it stands and where it aims; the walk itself was at (0,0).
            ["(0,0) E", "(0,1) W", "(2,2) N", "(1,2) was wrong"],
            [(3, "hallucination", {(0, 0), (2, 2), (1, 2)}, 3)],
        ),
        ([SOLVED.replace("(0,2)→", "")], [(2, "hallucination", {(0, 1), (1, 2)}, None)]),
    ],
)
def test_the_list_of_events(lines: Lines, want: list[Listed]) -> None:
    """Step, kind, the cells that a signal may name, and the line that does."""
    listed = measures(THREE, lines)["events"]
    names = {"step", "kind", "cells", "recognised_by_line"}
    assert all(set(event) == names for event in listed)
    got = [
        (e["step"], e["kind"], {(r, c) for r, c in e["cells"]}, e["recognised_by_line"])
        for e in listed
    ]
    assert got == want


@pytest.mark.parametrize(
    ("counts", "precision", "recall", "f1"),
    [
        ((4, 3, 3), 0.5, 0.75, 0.6),  # 3/6, 3/4, 6 / (6 + 3 + 1)
        ((2, 2, 0), 1, 1, 1),
        ((5, 1, 3), 0.25, 0.2, 2 / 9),  # 1/4, 1/5, 2 / (2 + 3 + 4)
        ((2, 0, 2), 0, 0, 0),
        ((0, 0, 3), 0, None, 0),  # no event, but false alarms
        ((3, 0, 0), None, 0, 0),  # events, but nothing declared
        ((0, 0, 0), None, None, None),
    ],
)
def test_recognition_scores(
    counts: Three, precision: float | None, recall: float | None, f1: float | None
) -> None:
    names = ("events", "recognised", "false_alarms")
    got = recognition_scores(dict(zip(names, counts, strict=True)))
    want = {"recognition_precision": precision, "recognition_recall": recall, "recognition_f1": f1}
    assert got == near(want)


@pytest.mark.parametrize(
    ("words", "precision", "recall", "f1"),
    [
        ([], None, 0, 0),
        (["(-1,0) was wrong"], 1, 0.5, 2 / 3),  # 1 of 1, 1 of 2, 2 / (2 + 0 + 1)
        (["(-1,0) was wrong", "(2,2) was wrong"], 0.5, 0.5, 0.5),  # 2 / (2 + 1 + 1)
        (["(2,2) was wrong"], 0, 0, 0),
        # The second is a repeat of the first, for only step 1 aimed at (-1,0).
        (["(-1,0) was wrong", "(-1,0)은 오류"], 1, 0.5, 2 / 3),
        # A change of strategy at (0,0), where both steps stood, is the other one's.
        (["(-1,0) was wrong", "STRATEGY_CHANGE — 동쪽으로"], 1, 1, 1),
    ],
)
def test_words_of_error_are_not_to_be_had_for_nothing(
    words: list[str], precision: float | None, recall: float, f1: float
) -> None:
    """Two bumps at (0,0): step 1 aimed at (-1,0), step 2 at (0,-1)."""
    found = measures(THREE, [*BUMP, "(0,0) W", *words, "(0,0) E"])
    names = ("recognition_precision", "recognition_recall", "recognition_f1")
    want = near(dict(zip(names, (precision, recall, f1), strict=True)))
    assert {name: found[name] for name in names} == want


# -- recovery --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "verdicts", "counts", "share"),
    [
        (["(0,0) E"], "ok", (0, 0), None),
        (["(0,0) N"], "wall", (1, 0), 0),  # nothing follows
        (["(0,0) N", "(0,0) E"], "wall ok", (1, 1), 1),
        (["(0,0) N", "(0,0) W", "(0,0) E"], "wall wall ok", (2, 1), 0.5),  # a wall follows the 1st
        (["(0,0) S", "(1,0) E", "(1,1) N"], "ok wall ok", (1, 0), 0),  # beyond the wall: persisted
        (["(0,0) NE", "(0,0) E"], "phantom_direction ok", (1, 1), 1),
        # Persisted at 2, corrected at 4, and the last one is the end.
        (
            ["(0,0) S", "(1,0) E", "(1,1) N", "(0,1) N", "(0,1) E", "(0,2) E"],
            "ok wall ok wall ok wall",
            (3, 1),
            1 / 3,
        ),
    ],
)
def test_hallucinations_recovered(
    lines: Lines, verdicts: str, counts: tuple[int, int], share: float | None
) -> None:
    """Recovered: not believed, and a legal move follows."""
    walk = walk_of(THREE, lines)
    assert verdicts_of(walk) == verdicts
    got = recovery_counts(walk, MazeEngine.from_openings(THREE))
    assert (got["hallucinations"], got["hallucinations_recovered"]) == counts
    found = recovery_scores(got)["hallucination_recovery"]
    assert found == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("ways", "counts", "share", "mean_steps"),
    [
        ("E E S S", (0, 0, 0), None, None),
        ("E", (0, 0, 0), None, None),
        ("S S", (1, 0, 0), 0, None),
        ("E S N E", (1, 1, 1), 1, 1),  # wrong at 2, back at 3
        ("S S E W N N E", (1, 1, 5), 1, 5),  # wrong at 1, back at 6
        ("S S N N E S N", (2, 2, 4), 1, 2),  # 1 to 4, and 6 to 7
        ("S N E S", (2, 1, 1), 0.5, 1),  # 1 to 2, and 4 for good
    ],
)
def test_wrong_turns_come_back_from(
    ways: str, counts: tuple[int, int, int], share: float | None, mean_steps: float | None
) -> None:
    """(wrong turns, come back from, the steps that it took in all)."""
    maze = MazeEngine.from_openings(THREE)
    got = recovery_counts(walk_of(THREE, steps(THREE, ways)), maze)
    names = ("wrong_turns", "wrong_turns_recovered", "steps_to_recover")
    assert tuple(got[name] for name in names) == counts
    scores = recovery_scores(got)
    assert (scores["wrong_turn_recovery"], scores["steps_to_recover"]) == (share, mean_steps)


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        # Wrong at 1; STEP 3 stands on (0,0) and moves on at once: 3 - 1.
        (["(0,0) S", "(1,0) S", "(0,0) E", "(0,1) E"], (1, 1, 2)),
        (["(0,0) S", "(0,0) E"], (1, 1, 1)),
        # STEP 3 jumps back and goes wrong again, for good.
        (["(0,0) S", "(1,0) S", "(0,0) S"], (2, 1, 2)),
        # And that once more: 3 - 1 and 5 - 3.
        (["(0,0) S", "(1,0) S", "(0,0) S", "(1,0) S", "(0,0) E"], (2, 2, 4)),
        # A jump half way out is not back; STEP 4 walks there: 4 - 1.
        (["(0,0) S", "(1,0) S", "(2,0) E", "(1,0) N"], (1, 1, 3)),
        # Wrong at 2, at (0,1). STEP 3 jumps beyond it, and walks there: 3 - 2.
        (["(0,0) E", "(0,1) S", "(0,0) E"], (1, 1, 1)),
        # STEP 3 jumps beyond it and goes wrong there; nobody is at (0,1) again.
        (["(0,0) E", "(0,1) S", "(0,0) S"], (2, 0, 0)),
    ],
)
def test_a_jump_to_where_it_went_wrong_is_coming_back(
    lines: Lines, counts: tuple[int, int, int]
) -> None:
    """(wrong turns, come back from, the steps that it took in all)."""
    walk = walk_of(THREE, lines)
    assert set(verdicts_of(walk).split()) == {"ok"}
    got = recovery_counts(walk, MazeEngine.from_openings(THREE))
    assert tuple(got[n] for n in ("wrong_turns", "wrong_turns_recovered", "steps_to_recover")) == (
        counts
    )


class Detour(NamedTuple):
    """The moves off the solution path, and the passages gone through there; None: no cost."""

    name: str
    maze: list[str]
    lines: list[str]
    moves: int
    passages: int
    cost: float | None


DETOURS = [
    Detour("the solution", THREE, steps(THREE, "E E S S"), 0, 0, None),
    Detour("one step", THREE, ["(0,0) E"], 0, 0, None),
    Detour("no step", THREE, [], 0, 0, None),
    # Three passages in, three out: 6 / (2 · 3).
    Detour("straight in and out", THREE, steps(THREE, "S S E W N N E"), 6, 3, 1),
    Detour("turned round half way", THREE, steps(THREE, "S S N N E"), 4, 2, 1),
    Detour("two branches", THREE, steps(THREE, "S S N N E S N E"), 6, 3, 1),
    Detour("beyond the exit", TWO, steps(TWO, "E S W E"), 2, 1, 1),
    # (1,0)-(2,0) is gone through four times: 8 / (2 · 3).
    Detour("to and fro", THREE, steps(THREE, "S S N S E W N N E"), 8, 3, 4 / 3),
    # (1,0)-(2,0) again, with nothing deeper: 6 / (2 · 2).
    Detour("to and fro at the deepest", THREE, steps(THREE, "S S N S N N E"), 6, 2, 1.5),
    # Each visit goes straight in and out: 4 / (2 · 2).
    Detour("the same branch twice", THREE, steps(THREE, "S N S N E"), 4, 2, 1),
    # Passages: the stem, one for the short arm, three for the long one. 10 moves / (2 · 5).
    Detour("a fork, both arms", FOUR, steps(FOUR, "S S E W S E E W W N N E"), 10, 5, 1),
    # The short arm twice: 12 moves / (2 · 5).
    Detour("a fork, one arm twice", FOUR, steps(FOUR, "S S E W S E E W W N E W N E"), 12, 5, 1.2),
    # Three moves in; back to (0,0) are three more, not written.
    Detour("a jump out", THREE, [*steps(THREE, "S S E"), "(0,0) E"], 6, 3, 1),
    # Three in; (2,1) (2,0) (1,0) are two left out, and one is written.
    Detour("a jump half way out", THREE, [*steps(THREE, "S S E"), "(1,0) N"], 6, 3, 1),
    # One in, one left out; the way from (0,1) to (0,0) is on the solution path.
    Detour("a jump out and further back", THREE, [*steps(THREE, "E S"), "(0,0) E"], 2, 1, 1),
    # The stem and the short arm are two moves, the jump to the fork leaves out one. The long arm is
    # three, and the jump to (1,0) leaves out four. 10 / (2 · 5).
    Detour(
        "a fork with jumps",
        FOUR,
        [*steps(FOUR, "S S E"), "(2,0) S", "(3,0) E", "(3,1) E", "(1,0) E"],
        10,
        5,
        1,
    ),
    Detour("never left", THREE, steps(THREE, "S S E"), 0, 0, None),
    # Only the first branch was left: 2 / (2 · 1).
    Detour("one left, one not", THREE, steps(THREE, "E S N W S S"), 2, 1, 1),
    # From (1,0) through the wall to (1,1), and out at (0,1).
    Detour("ended by an error", THREE, ["(0,0) S", "(1,0) E", "(1,1) N", "(0,1) E"], 0, 0, None),
    Detour("ended by a teleport", THREE, ["(0,0) S", "(1,2) S"], 0, 0, None),
    # The wall of step 2 holds the walk where it is.
    Detour("a bump on the way", THREE, ["(0,0) S", "(1,0) E", "(1,0) N", "(0,0) E"], 2, 1, 1),
    # An error leads into the branch; what follows is a detour again only from the path on.
    Detour(
        "begun by an error",
        THREE,
        ["(0,0) E", "(1,0) S", "(2,0) N", "(1,0) N", "(0,0) E", "(0,1) S", "(1,1) N"],
        2,
        1,
        1,
    ),
    # Steps 1 and 2: in and out, 2 / (2 · 1). Step 4 jumps from (0,1) to (1,0) in the branch that
    # was left, and nobody saw the way there, so that steps 4 to 6 are in no cost.
    Detour(
        "a jump into a branch left before",
        THREE,
        [*steps(THREE, "S N E"), "(1,0) S", "(2,0) N", "(1,0) N", "(0,0) E", "(0,1) E"],
        2,
        1,
        1,
    ),
    # The jump again, but then the other branch, in and out: 2 + 2 moves, 1 + 1 passages.
    Detour(
        "a jump into a branch left before, then another branch",
        THREE,
        [*steps(THREE, "S N E"), "(1,0) N", "(0,0) E", "(0,1) S", "(1,1) N", "(0,1) E"],
        4,
        2,
        1,
    ),
    # STEP 4 jumps into the branch and moves out of it at once.
    Detour("a jump in and a step out", THREE, [*steps(THREE, "S N E"), "(1,0) N"], 2, 1, 1),
    # Two in, two out; the jump to (2,0) and the jump from it to (0,1) are in no cost.
    Detour(
        "a jump into a branch left before, and a jump out",
        THREE,
        [*steps(THREE, "S S N N E"), "(2,0) E", "(0,1) E"],
        4,
        2,
        1,
    ),
]


@pytest.mark.parametrize("case", DETOURS, ids=lambda case: case.name)
def test_recovery_cost(case: Detour) -> None:
    maze = MazeEngine.from_openings(case.maze)
    got = recovery_counts(walk_of(case.maze, case.lines), maze)
    assert (got["moves_off"], got["passages_off"]) == (case.moves, case.passages)
    cost = recovery_scores(got)["recovery_cost"]
    assert cost == (case.cost if case.cost is None else pytest.approx(case.cost))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_no_legal_walk_has_a_cost_below_one(seed: int) -> None:
    rng = random.Random(seed)
    maze = MazeEngine(rng.randrange(2, 6), seed)
    path: list[Any] = [maze.start]
    for _ in range(rng.randrange(1, 40)):
        path.append(rng.choice(maze.neighbours(path[-1])))
    got = recovery_counts(hallumaze.verify_path(path, maze), maze)
    assert got["moves_off"] >= 2 * got["passages_off"]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 10**6))
def test_no_walk_that_jumps_back_has_a_cost_below_one(seed: int) -> None:
    """Each passage of a detour takes a way in and a way out, written or left out."""
    rng = random.Random(f"jumps {seed}")
    maze = MazeEngine(rng.randrange(2, 6), seed)
    here: Any = maze.start
    visited = [here]
    lines = []
    for _ in range(rng.randrange(1, 40)):
        here = rng.choice(visited) if rng.random() < 0.2 else here
        ahead: Any = rng.choice(maze.neighbours(here))
        lines.append(f"({here[0]},{here[1]}) {maze.direction(here, ahead)}")
        here = ahead
        visited.append(here)
    walk = judge(ResponseParser().parse(answer_of(lines)), maze).walk
    assert set(verdicts_of(walk).split()) == {"ok"}
    got = recovery_counts(walk, maze)
    assert got["moves_off"] >= 2 * got["passages_off"]


def test_recovery_scores_of_nothing_are_none() -> None:
    got = recovery_scores(recovery_counts(walk_of(TWO, []), MazeEngine.from_openings(TWO)))
    names = ("hallucination_recovery", "wrong_turn_recovery", "steps_to_recover", "recovery_cost")
    assert got == dict.fromkeys(names)


# -- calibration -----------------------------------------------------------------------------------

Stated = dict[tuple[float, bool], int]

# Both edges and both ends of the scale. n = 5.
EDGES: Stated = {(0, False): 1, (10, True): 1, (90, True): 2, (100, False): 1}
# Right 90, 80; wrong 80, 50.
PAIRS: Stated = {(90, True): 1, (80, True): 1, (80, False): 1, (50, False): 1}
EQUAL: Stated = {(50, True): 2, (50, False): 2}
RIGHT: Stated = {(80, True): 3}
WRONG: Stated = {(95, False): 1}

CALIBRATED = [
    # oce 1/5. uce (0.9 + 2·0.1)/5. brier (0 + 0.81 + 2·0.01 + 1)/5. Bins: 0.0 fits; 0.1 is off by
    # 0.9, weight 1/5; 0.9 holds three: |2.8/3 - 2/3| = 0.8/3, weight 3/5. ece 0.18 + 0.16.
    # Right 10, 90, 90 against wrong 0, 100: all three beat 0, none beats 100: 3 of 6.
    (EDGES, {"oce": 0.2, "uce": 0.22, "brier": 0.366, "ece": 0.34, "auroc2": 0.5}),
    # oce (0.8 + 0.5)/4. uce (0.1 + 0.2)/4. brier (0.01 + 0.04 + 0.64 + 0.25)/4. Bins: 0.9 off by
    # 0.1; 0.8 holds two, |0.8 - 0.5|; 0.5 off by 0.5: (0.1 + 0.6 + 0.5)/4.
    # Pairs: 90 beats both, 80 beats 50 and ties with 80: 3.5 of 4.
    (PAIRS, {"oce": 0.325, "uce": 0.075, "brier": 0.235, "ece": 0.3, "auroc2": 0.875}),
    # All equal: half the steps are off by 0.5 on either side, and the bin fits.
    (EQUAL, {"oce": 0.25, "uce": 0.25, "brier": 0.25, "ece": 0, "auroc2": 0.5}),
    (RIGHT, {"oce": 0, "uce": 0.2, "brier": 0.04, "ece": 0.2, "auroc2": None}),
    (WRONG, {"oce": 0.95, "uce": 0, "brier": 0.9025, "ece": 0.95, "auroc2": None}),
    ({}, {"oce": None, "uce": None, "brier": None, "ece": None, "auroc2": None}),
]


@pytest.mark.parametrize(("stated", "want"), CALIBRATED)
def test_calibration_scores(stated: Stated, want: dict[str, float | None]) -> None:
    assert calibration_scores(stated) == near(want)


@pytest.mark.parametrize(
    ("stated", "want"),
    [
        ({}, []),
        (EQUAL, [(0.5, 4, 0.5, 0.5)]),
        (EDGES, [(0.0, 1, 0, 0), (0.1, 1, 0.1, 1), (0.9, 3, 2.8 / 3, 2 / 3)]),
        (PAIRS, [(0.5, 1, 0.5, 0), (0.8, 2, 0.8, 0.5), (0.9, 1, 0.9, 1)]),
        # Just below an edge.
        ({(9.5, True): 1, (89.5, True): 1}, [(0.0, 1, 0.095, 1), (0.8, 1, 0.895, 1)]),
    ],
)
def test_calibration_bins(stated: Stated, want: list[tuple[float, ...]]) -> None:
    """(from, n, mean confidence, accuracy) of every bin that holds a step."""
    names = ("from", "n", "confidence", "accuracy")
    assert calibration_bins(stated) == [near(dict(zip(names, b, strict=True))) for b in want]


CONFIDENCES = st.one_of(st.integers(0, 100).map(float), st.floats(0, 100))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.tuples(CONFIDENCES, st.booleans()), min_size=1, max_size=30))
def test_over_and_under_confidence_add_up_to_the_gap(stated: list[tuple[float, bool]]) -> None:
    got = calibration_scores(Counter(stated))
    gap = fmean(abs(c / 100 - y) for c, y in stated)
    assert (got["oce"] or 0) + (got["uce"] or 0) == pytest.approx(gap, abs=1e-12)
    assert sum(b["n"] for b in calibration_bins(Counter(stated))) == len(stated)
    assert 0 <= (got["ece"] or 0) <= gap + 1e-12


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.sampled_from("NESW"), st.one_of(st.none(), st.integers(0, 100))), max_size=12
    )
)
def test_over_and_under_confidence_add_up_to_ce(said: list[tuple[str, int | None]]) -> None:
    """Steps that name no cell, so that some lead nowhere; CE comes from another function."""
    lines = [
        f"STEP {k}: {way}" + ("" if conf is None else f" | 확신도: {conf}%")
        for k, (way, conf) in enumerate(said, 1)
    ]
    got = measures(THREE, lines)
    if got["ce"] is None:
        assert got["oce"] is got["uce"] is got["brier"] is got["ece"] is got["auroc2"] is None
    else:
        assert got["oce"] + got["uce"] == pytest.approx(got["ce"], abs=2e-6)  # each is rounded


@pytest.mark.parametrize("seed", range(20))
def test_brier_and_auroc_agree_with_scikit_learn(seed: int) -> None:
    rng = random.Random(f"calibration {seed}")
    levels = [float(rng.randrange(101)) for _ in range(rng.randrange(2, 20))]  # so that ties occur
    stated = [(rng.choice(levels), rng.random() < 0.7) for _ in range(60)]
    right = [int(y) for _, y in stated]
    chances = [c / 100 for c, _ in stated]
    got = calibration_scores(Counter(stated))
    assert got["brier"] == pytest.approx(brier_score_loss(right, chances))
    assert got["auroc2"] == pytest.approx(roc_auc_score(right, chances))


@pytest.mark.parametrize(
    ("judged", "want"),
    [
        ([], {}),
        ([(90.0, "ok"), (90.0, "ok"), (90.0, "wall")], {(90, True): 2, (90, False): 1}),
        # Nothing stated, and a step outside the grid, which is not judged.
        ([(None, "ok"), (70.0, None), (70.0, "teleport")], {(70, False): 1}),
    ],
)
def test_stated_confidences(judged: list[tuple[float | None, str | None]], want: Stated) -> None:
    assert stated_confidences(judged) == want


# -- the pattern of confidence ---------------------------------------------------------------------

PATTERNS = [
    # The right steps have 90 on average; exactly 10 points less is a fall, 9 are none.
    (["(0,0) E 90", "(0,1) E 90", "(0,2) N 80"], "A"),
    (["(0,0) E 90", "(0,1) E 90", "(0,2) N 81"], "B"),
    (["(0,0) E 90", "(0,1) E 90", "(0,2) N 99"], "B"),
    # Right steps 90 and 60: 75. The step before the error has 60.
    (["(0,0) E 90", "(0,1) E 60", "(0,2) N 90"], "A"),
    # Right steps 90, 60, 90: 80. The 60 is two steps before the error, too early to tell of it.
    (["(0,0) E 60", "(0,1) E 90", "(0,2) N 90", "(0,2) S 90"], "B"),
    # Right steps that come later count as well: (50 + 90 + 90 + 90)/4 = 80, the error has 70.
    (["(0,0) E 50", "(0,1) N 70", "(0,1) E 90", "(0,2) S 90", "(1,2) S 90"], "A"),
    # Two errors: 50 is a fall from 90, the second 90 after a right 90 is none.
    (["(0,0) N 50", "(0,0) E 90", "(0,1) N 90"], "mixed"),
    # Two errors in a row: the second has the fall of the first before it.
    (["(0,0) E 90", "(0,1) N 50", "(0,1) N 90", "(0,1) E 90"], "A"),
    # A loop at the confidence of its first time, and one at another.
    (["(0,0) E 50", "(0,1) W 60", "(0,0) E 50"], "B"),
    (["(0,0) E 50", "(0,1) W 60", "(0,0) E 40"], None),
    # A loop without a confidence says nothing.
    (["(0,0) E", "(0,1) W", "(0,0) E"], None),
    # Right steps 90: a fall at the wall, and a loop without one.
    (["(0,0) E 90", "(0,1) W 90", "(0,0) E 90", "(0,1) N 50"], "mixed"),
    # Nothing to tell: no error; no right step; no confidence; none at the error.
    (["(0,0) E 90", "(0,1) E 50"], None),
    (["(0,0) N 50"], None),
    (["(0,0) E", "(0,1) N"], None),
    (["(0,0) E 90", "(0,1) N"], None),
    ([], None),
]


@pytest.mark.parametrize(("lines", "want"), PATTERNS)
def test_the_pattern_of_confidence(lines: Lines, want: str | None) -> None:
    assert confidence_pattern(walk_of(THREE, lines)) == want


# -- lures -----------------------------------------------------------------------------------------


def trap(cell: tuple[int, int], way: str) -> Mirage:
    """A hint on a wrong branch."""
    return Mirage(cell, way, 0, False)


class Lured(NamedTuple):
    """(traps, captured, controls, strayed)."""

    name: str
    maze: list[str]
    hints: list[Mirage]
    lines: list[str]
    counts: Four


# The junctions of THREE are (0,0) and (0,1), at both E is right and S wrong. Those of CROSS are
# (0,1), S right and E wrong, and (1,1), E right and S and W wrong.
LURES = [
    Lured("taken", THREE, [trap((0, 0), "S")], steps(THREE, "S N E E"), (1, 1, 1, 0)),
    Lured("passed", THREE, [trap((0, 0), "S")], steps(THREE, "E E S"), (1, 0, 1, 0)),
    Lured("passed, then strayed", THREE, [trap((0, 0), "S")], steps(THREE, "E S"), (1, 0, 1, 1)),
    Lured("no hint", THREE, [], steps(THREE, "S N E E"), (0, 0, 2, 1)),
    Lured(
        # (0,1) is left to the west first; what counts is the first way that is not back.
        "left backwards first, then taken",
        THREE,
        [trap((0, 1), "S")],
        steps(THREE, "E W E S"),
        (1, 1, 1, 0),
    ),
    Lured(
        # First E; the trap comes second. (0,1) was only left backwards, so nothing is known of it.
        "taken the second time only",
        THREE,
        [trap((0, 0), "S")],
        steps(THREE, "E W S"),
        (1, 0, 0, 0),
    ),
    Lured(
        "a hint on the right way is neither trap nor control",
        THREE,
        [Mirage((0, 0), "E", 0, True), trap((0, 1), "S")],
        steps(THREE, "E E S"),
        (1, 0, 0, 0),
    ),
    Lured(
        "against a hint on the right way",
        THREE,
        [Mirage((0, 0), "E", 0, True)],
        steps(THREE, "S N E E"),
        (0, 0, 1, 0),
    ),
    Lured(
        "the other wrong way is no trap taken",
        CROSS,
        [trap((1, 1), "W")],
        steps(CROSS, "E S S"),
        (1, 0, 1, 0),
    ),
    Lured(
        "two traps at one junction",
        CROSS,
        [trap((1, 1), "S"), trap((1, 1), "W")],
        steps(CROSS, "E S W"),
        (1, 1, 1, 0),
    ),
    Lured("a wall is no way", THREE, [trap((0, 0), "S")], ["(0,0) N", "(0,0) S"], (1, 1, 0, 0)),
    Lured("no step", THREE, [trap((0, 0), "S")], [], (0, 0, 0, 0)),
]


@pytest.mark.parametrize("case", LURES, ids=lambda case: case.name)
def test_lure_counts(case: Lured) -> None:
    maze = MazeEngine.from_openings(case.maze)
    got = lure_counts(walk_of(case.maze, case.lines), maze, maze.junctions, case.hints)
    names = ("traps", "captured", "controls", "strayed")
    assert got == dict(zip(names, case.counts, strict=True))


@pytest.mark.parametrize(
    ("counts", "capture", "control", "effect", "resistance"),
    [
        ((4, 3, 4, 1), 0.75, 0.25, 0.5, 0.5),
        ((1, 1, 1, 0), 1, 0, 1, 0),
        ((2, 1, 2, 1), 0.5, 0.5, 0, 1),
        ((4, 1, 2, 1), 0.25, 0.5, -0.25, 1),  # a hint that repels is no bias
        ((3, 2, 0, 0), 2 / 3, None, None, None),
        ((0, 0, 3, 1), None, 1 / 3, None, None),
        ((0, 0, 0, 0), None, None, None, None),
    ],
)
def test_lure_scores(
    counts: Four,
    capture: float | None,
    control: float | None,
    effect: float | None,
    resistance: float | None,
) -> None:
    names = ("traps", "captured", "controls", "strayed")
    assert lure_scores(dict(zip(names, counts, strict=True))) == near(
        {
            "trap_capture_rate": capture,
            "control_rate": control,
            "lure_effect": effect,
            "brs_lure": resistance,
        }
    )


# -- how it ended ----------------------------------------------------------------------------------

ENDS = [
    ("solved", "ok", [SOLVED]),
    ("truncated", "truncated", ["(0,0) E"]),
    ("refused", "refused", ["I cannot help with that."]),
    ("unreadable", "ok", ["I do not know."]),
    ("mirage_undetected", "ok", ["(0,0) N", "STRATEGY_CHANGE — 동쪽으로"]),
    ("detected_not_repaired", "ok", ["(0,0) N", "(0,0) E"]),  # corrected: a backtrack
    ("loop_trapped", "ok", steps(THREE, "E W E W")),  # steps 3 and 4 are loops
    ("gave_up", "ok", ["(0,0) E"]),
    ("other", "ok", steps(THREE, "E E S S")),  # at the exit, but without a path
]

PRECEDENCE = [
    # Solved, whatever else there is.
    ("solved", "truncated", [SOLVED]),
    ("solved", "refused", [SOLVED]),
    ("solved", "ok", ["(0,0) N", *steps(THREE, "E W E W"), SOLVED]),
    # How the call ended goes before what was read.
    ("truncated", "truncated", []),
    ("truncated", "ok", ["<think>so far"]),
    ("truncated", "truncated", ["(0,0) N"]),
    ("refused", "refused", []),
    ("refused", "refused", ["(0,0) N"]),
    ("unreadable", "ok", []),
    ("unreadable", "ok", ["DEAD_END at (1,1) — backtracking"]),
    # Errors go before loops; going back tells the two apart.
    ("mirage_undetected", "ok", ["(0,0) S", "(1,0) E", "(1,1) N", "(0,1) E"]),
    ("mirage_undetected", "ok", ["FINAL_PATH: (0,0)→(1,1)→(2,2)"]),
    ("detected_not_repaired", "ok", [*steps(THREE, "E W E W"), "(0,0) N"]),
    ("loop_trapped", "ok", [*steps(THREE, "E W E W E E S S")]),
    # One loop is no trap.
    ("gave_up", "ok", steps(THREE, "E W E")),
    ("gave_up", "ok", ["FINAL_PATH: (0,0)→(0,1)→(0,2)"]),
    ("other", "ok", [*steps(THREE, "E E S S"), "FINAL_PATH: (0,0)→(0,1)→(0,2)"]),
]


@pytest.mark.parametrize(("mode", "outcome", "lines"), [*ENDS, *PRECEDENCE])
def test_failure_mode(mode: str, outcome: str, lines: Lines) -> None:
    assert measures(THREE, lines, outcome)["failure_mode"] == mode


def test_every_failure_mode_has_its_case() -> None:
    assert tuple(mode for mode, _, _ in ENDS) == FAILURE_MODES


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ([], (0, 0, 0, 0)),
        (["(0,0) E"], (0, 0, 0, 0)),
        (["(0,0) N", "(0,0) W", "(0,0) NE"], (0, 1, 2, 0)),
        # (9,9) is nowhere; (2,2) is real, but not here; its north side is open.
        (["(9,9) N", "(0,0) E", "(2,2) N"], (1, 0, 0, 1)),
        # A wall under a teleport is a teleport; one error of each kind in all.
        (["(0,0) N", "(0,0) NE", "(2,1) N", "(-3,0) E"], (1, 1, 1, 1)),
        (["FINAL_PATH: (0,0)→(1,0)→(1,1)→(2,2)"], (0, 0, 1, 1)),
    ],
)
def test_tiers(lines: Lines, want: Four) -> None:
    """(phantom cells, phantom directions, walls, teleports): what is nowhere, what is not here."""
    cells, directions, walls, teleports = want
    assert measures(THREE, lines)["tiers"] == {
        "atomic": {"phantom_cell": cells, "phantom_direction": directions},
        "scope_bound": {"wall": walls, "teleport": teleports},
    }


# -- the reference agents --------------------------------------------------------------------------

SIZES = (5, 7, 9)
SEEDS = range(60)


@cache
def answers(name: str, size: int) -> tuple[str, ...]:
    """What an agent writes about each maze."""
    config = MazeConfig(size=size)
    prompts = (PromptBuilder(MazeEngine(size, seed), config).build().user for seed in SEEDS)
    return tuple(REFERENCE_AGENTS[name](hallumaze._read_task(user)) for user in prompts)


def scored(text: str, size: int, seed: int) -> dict[str, Any]:
    maze = MazeEngine(size, seed)
    return score_answer(text, "ok", maze, maze.mirages())[2]


@cache
def trials(name: str, size: int) -> tuple[dict[str, Any], ...]:
    """The fields of the result of every answer."""
    return tuple(scored(text, size, seed) for seed, text in enumerate(answers(name, size)))


def mean_of(name: str, size: int, measure: str) -> float | None:
    known = [t[measure] for t in trials(name, size) if t[measure] is not None]
    return fmean(known) if known else None


@pytest.mark.parametrize("size", SIZES)
def test_only_the_explorer_knows_where_it_went_wrong(size: int) -> None:
    """It enters each dead end once, and says so at once: nothing unsaid, nothing said in vain."""
    assert mean_of("explorer", size, "recognition_f1") == 1
    for name in REFERENCE_AGENTS:
        if name != "explorer":
            assert mean_of(name, size, "recognition_f1") in (None, 0), name


@pytest.mark.parametrize("size", SIZES)
def test_the_cost_of_recovery_tells_a_search_from_a_stroll(size: int) -> None:
    """The explorer and the lured walk go straight in and out, every arm of a branch once."""
    explorer, lured, stroll = (
        mean_of(name, size, "recovery_cost") for name in ("explorer", "lured", "random-walk")
    )
    assert explorer is not None and lured is not None and stroll is not None
    assert explorer <= lured <= stroll
    assert explorer == 1
    assert stroll > 1


@pytest.mark.parametrize("size", SIZES)
def test_the_bluffer_is_never_right_about_itself(size: int) -> None:
    assert {trial["recognition_precision"] for trial in trials("bluffer", size)} == {0}


@pytest.mark.parametrize("size", SIZES)
def test_boasts_change_nothing_that_is_verified(size: int) -> None:
    """Without the LOOP and the BACKTRACK_COUNT there is nothing declared; all else is the same."""
    own = {"recognition_precision", "recognition_f1", "false_alarms", "recognition"}
    own |= {"declared_backtracks", "declared_loops", "metacog_signals"}
    for seed, text in enumerate(answers("bluffer", size)):
        kept = [x for x in text.split("\n") if not x.startswith(("LOOP", "BACKTRACK_COUNT"))]
        assert len(kept) == text.count("\n") - 1
        loud, quiet = trials("bluffer", size)[seed], scored("\n".join(kept), size, seed)
        assert {k for k in loud if loud[k] != quiet[k]} <= own
        assert (loud["false_alarms"], quiet["false_alarms"]) == (1, 0)
        assert (loud["recognition_precision"], quiet["recognition_precision"]) == (0, None)
        assert loud["recognition_f1"] == 0
        assert quiet["recognition_f1"] == (0 if quiet["events"] else None)
        for kind in EVENTS:
            assert quiet["recognition"][kind]["false_alarms"] == 0
            boasted = {**quiet["recognition"][kind], "false_alarms": int(kind == "loop")}
            assert loud["recognition"][kind] == boasted
