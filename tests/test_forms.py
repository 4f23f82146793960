"""Forms that larger models write, each read as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest

import hallumaze

START = ((0, 0), (0, 1))

# text -> (cell, direction, to, confidence) of its one step; None: no step
STEPS: dict[str, Any] = {
    # the listing of the cell copied before the choice
    "STEP 1: (0,0) [E→ S↓] → E→ | Confidence: 90%": ((0, 0), "E", None, 90),
    "STEP 1: (0,0) [E S] → E": ((0, 0), "E", None, None),
    "STEP 1: (0,0) → [E→ S↓] | 90%": None,
    # prose around the move
    "STEP 1: Move East from (0,0) to (0,1) | 90%": ((0, 0), "E", (0, 1), 90),
    "STEP 1: From (0,0) move East": ((0, 0), "E", None, None),
    "STEP 1: From (0,0), I move south to (1,0)": ((0, 0), "S", (1, 0), None),
    "STEP 1: E from (0,0)": ((0, 0), "E", None, None),
    "STEP 5: (1,1) → back to (1,0)": ((1, 1), None, (1, 0), None),
    "STEP 5: Backtrack to (0,1)": (None, None, (0, 1), None),
    # a corrected step keeps its number
    "STEP 1 (corrected): (0,0) → E | 90%": ((0, 0), "E", None, 90),
    "CORRECTED STEP 1: (0,0) → E": ((0, 0), "E", None, None),
    "STEP 1 (수정): (0,0) → E": ((0, 0), "E", None, None),
    # other ways to write a cell
    "STEP 1: (row 0, col 1) → E": ((0, 1), "E", None, None),
    "STEP 1: r=0, c=1 → E": ((0, 1), "E", None, None),
    # LaTeX
    r"\textbf{STEP 3}: (0,0) → E": ((0, 0), "E", None, None),
    r"STEP 1: \((0,1) \to \text{E}\)": ((0, 1), "E", None, None),
    r"STEP 1: $(0,1) \rightarrow E$": ((0, 1), "E", None, None),
    # confidences out of ten and out of a hundred
    "STEP 1: (0,0) → E | Confidence: 9/10": ((0, 0), "E", None, 90),
    "STEP 1: (0,0) → E | 95/100": ((0, 0), "E", None, 95),
}

PATHS = {
    "FINAL_PATH: (0,0) →E→ (0,1) →S→ (1,1)": ((0, 0), (0, 1), (1, 1)),
    "FINAL_PATH: (0,0) → E → (0,1)": START,
    "FINAL_PATH:\n- (0,0)\n- (0,1)\n- (1,1)": ((0, 0), (0, 1), (1, 1)),
    "FINAL_PATH:\n1. (0,0)\n2. (0,1)": START,
    "FINAL_PATH: START → (0,0) → (0,1)": START,
    "FINAL_PATH: START (0,0) → (0,1)": START,
    "FINAL_PATH: (0,0)[START]→(0,1)": START,
    "FINAL_PATH (5 cells): (0,0)→(0,1)": START,
    "**FINAL_PATH** (from START to EXIT): (0,0)→(0,1)": START,
    "Final Path — (0,0)→(0,1)": START,
    "FINAL_PATH is (0,0)→(0,1)": START,
    "| FINAL_PATH | (0,0)→(0,1) |": START,
    "FINAL_PATH: 🏁 (0,0)→(0,1)": START,
    "FINAL_PATH: (0,0) – (0,1) – (1,1)": ((0, 0), (0, 1), (1, 1)),
    "FINAL_PATH: (0,0) | (0,1)": START,
    "FINAL_PATH: (0,0) to (0,1)": START,
    "FINAL_PATH: (0,0), (0,1), and (1,1)": ((0, 0), (0, 1), (1, 1)),
    r"\boxed{\text{FINAL\_PATH: } (0,0) \to (0,1)}": START,
    "FINAL_PATH: (0,0)→(r,c)→...→(N-1,N-1)": (),
    "FINAL_PATH: (0,0)→(0,1)\n(1,1) is next": START,
}

NO_SIGNALS = (
    "LOOP detected at: N/A",
    "LOOP detected at none",
    "LOOP detected - none",
    "DEAD_END at: none",
    "- DEAD_END: –",
    "백트래킹: 0회",
)


@pytest.mark.parametrize("text", STEPS)
def test_a_step(text: str) -> None:
    steps = hallumaze.ResponseParser().parse(text).steps
    read = [(step.cell, step.direction, step.to, step.confidence) for step in steps]
    assert read == ([STEPS[text]] if STEPS[text] else [])


@pytest.mark.parametrize("text", PATHS)
def test_a_path(text: str) -> None:
    assert hallumaze.ResponseParser().parse(text).final_path == PATHS[text]


@pytest.mark.parametrize("text", NO_SIGNALS)
def test_a_signal_that_is_denied(text: str) -> None:
    assert hallumaze.ResponseParser().parse(text).signals == ()


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_thinking_makes_no_claims(tag: str) -> None:
    text = f"<{tag}>\nSTEP 1: (0,0) → W | 10%\n</{tag}>\nSTEP 1: (0,0) → E | 90%"
    answer = hallumaze.ResponseParser().parse(text)
    assert [step.direction for step in answer.steps] == ["E"]
    assert answer.reasoning == "STEP 1: (0,0) → W | 10%"
    assert hallumaze.ResponseParser().parse(f"STEP 1: (0,0) → E\n<{tag}>on").truncated


def test_a_step_that_is_corrected_is_one_hallucination() -> None:
    """+---+---+
    | S     |      (0,0) is open to the east only, (0,1) to the west and the south,
    +---+   +      (1,1) to the north and the west
    |     X |
    +---+---+"""
    maze = hallumaze.MazeEngine.from_openings(["E", "SW", "E", "NW"])
    text = "STEP 1: (0,0) → W\nSTEP 1 (corrected): (0,0) → E\nSTEP 2: (0,1) → S"
    metrics = hallumaze.judge(hallumaze.ResponseParser().parse(text), maze)
    assert (metrics.hallucination_count, metrics.backtrack_count) == (1, 1)
    assert metrics.walk.corrected == (1,)
