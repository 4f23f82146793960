"""Judging: answers whose numbers were worked out by hand, and a second judge to compare with.

The first part holds answers on small mazes with every number worked out beside it. The second
compares `hallumaze` with the independent judge in `oracle.py` on thousands of random walks. The
third states properties.

Verdicts are written as one string: `.` for a step outside the grid that is not judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Cell, Grid, Walker

import hallumaze

# Two cells. Solution E S (2 moves), N² = 4, dead end (1,0).
#   +---+---+
#   | S     |
#   +---+   +
#   |     X |
#   +---+---+
TWO = ["E", "SW", "E", "NW"]

# Solution E E S S (4 moves), N² = 9, dead ends (1,1) and (2,1).
#   +---+---+---+
#   | S         |
#   +   +   +   +
#   |   |   |   |
#   +   +---+   +
#   |       | X |
#   +---+---+---+
THREE = ["ES", "ESW", "SW", "NS", "N", "NS", "NE", "W", "N"]

# Solution S E N E E S S S (8 moves), N² = 16, dead ends (1,2), (2,1) and (3,2).
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


@dataclass(frozen=True)
class Case:
    """An answer and everything that follows from it. None (but for ce): not stated here."""

    name: str
    maze: list[str]
    text: str
    walk: str = ""
    path: str | None = None
    hc: int = 0
    fhr: int = -1
    bt: int = 0
    lt: int = 0
    sr: int = 0
    hrr: float = 0
    early: float = 0
    esc: int = 0
    mei: float = 0
    ce: float | None = None
    brs: float = 1
    score: float = 0
    readable: bool = True
    persisted: tuple[int, ...] | None = ()
    corrected: tuple[int, ...] | None = ()
    stayed: tuple[int, ...] | None = ()
    wrong_turns: int | None = None
    dead_ends: int | None = None


EARLY_FOUR = 1 - 4 / 9  # first error at step 4 of a 3x3 maze

CASES = [
    Case(
        # HC 0 and SR 1: HRR = early = esc = BRS = 1. MEI = 0.4 + 0.3 + 0.2 = 0.9, the highest.
        # CE = mean |0.9 - 1| = 0.1. Score = 0.5*0.9 + 0.3*(1 - 0.1) + 0.2*1 = 0.92.
        "solved in Korean at 90 %",
        THREE,
        """STEP 1: (0,0) → E→ | 확신도: 90% | 출구 쪽
STEP 2: (0,1) → E→ | 확신도: 90% | 계속
STEP 3: (0,2) → S↓ | 확신도: 90% | 아래
STEP 4: (1,2) → S↓ | 확신도: 90% | 출구
BACKTRACK_COUNT: 0
HALLUCINATION_COUNT: 0
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok",
        path="ok ok ok ok",
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.4 + 0.3 + 0.2,
        ce=0.1,
        brs=1,
        score=0.5 * 0.9 + 0.3 * (1 - 0.1) + 0.2 * 1,
        wrong_turns=0,
        dead_ends=0,
    ),
    Case(
        # The highest score there is: MEI 0.9, CE 0, BRS 1 -> 0.45 + 0.3 + 0.2 = 0.95.
        "solved in English at 100 %",
        THREE,
        """STEP 1: (0,0) → E | Confidence: 100% | towards the exit
STEP 2: (0,1) → E | Confidence: 100% | on
STEP 3: (0,2) → S | Confidence: 100% | down
STEP 4: (1,2) → S | Confidence: 100% | exit
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok",
        path="ok ok ok ok",
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        ce=0,
        brs=1,
        score=0.95,
    ),
    Case(
        # HC 0 but SR 0: HRR = early = esc = 0, MEI 0. BRS = 1 - 0/max(1, 0+0) = 1. CE = 0.
        # Score = 0 + 0.3*1 + 0.2*1 = 0.50: known and declared.
        "one legal step at 100 % and nothing more",
        THREE,
        "STEP 1: (0,0) → E | Confidence: 100% | go\n",
        walk="ok",
        ce=0,
        score=0.50,
    ),
    Case(
        # Nobody states a confidence: CE None, the score takes 0.5.
        # Score = 0.5*0.9 + 0.3*(1 - 0.5) + 0.2 = 0.80.
        "solved without confidence",
        TWO,
        """STEP 1: (0,0) → E | straight
STEP 2: (0,1) → S | down
FINAL_PATH: (0,0)→(0,1)→(1,1)
""",
        walk="ok ok",
        path="ok ok",
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        score=0.5 * 0.9 + 0.3 * 0.5 + 0.2,
    ),
    Case(
        # Step 2 runs against the wall east of (1,0); step 3 stands beyond it: persisted, and that
        # standing is no further error. HC 1, FHR 2, BT 0. HRR = min(1, 0/1) = 0;
        # early = 1 - 2/9 = 7/9; SR 1 -> esc 1. MEI = 0 + 0.3*7/9 + 0.2 - 0.1*(1/10).
        # CE = (|.8-1| + |.8-0| + 4*|.8-1|)/6 = (5*0.2 + 0.8)/6 = 0.3. BRS = 1 - 1/max(1, 0+1) = 0.
        "wall, then beyond it: persisted",
        THREE,
        """STEP 1: (0,0) → S | 확신도: 80% | 아래
STEP 2: (1,0) → E | 확신도: 80% | 벽
STEP 3: (1,1) → N | 확신도: 80% | 위
STEP 4: (0,1) → E | 확신도: 80% | 오른쪽
STEP 5: (0,2) → S | 확신도: 80% | 아래
STEP 6: (1,2) → S | 확신도: 80% | 출구
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok wall ok ok ok ok",
        path="ok ok ok ok",
        hc=1,
        fhr=2,
        sr=1,
        early=1 - 2 / 9,
        esc=1,
        mei=0.3 * 7 / 9 + 0.2 - 0.1 * 0.1,
        ce=0.3,
        brs=0,
        score=0.5 * (0.3 * 7 / 9 + 0.19) + 0.3 * 0.7,
        persisted=(2,),
        wrong_turns=1,
    ),
    Case(
        # Step 2 hits the wall, step 3 names no cell: it stands beyond. (1,1) N leads to (0,1).
        # HC 1, FHR 2, SR 0, esc 0. MEI = 0.3*(1 - 2/9) - 0.01. BRS 0. CE None.
        "wall, then a silent step: persisted",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → E
STEP 3: N↑
STEP 4: (0,1) → E
""",
        walk="ok wall ok ok",
        hc=1,
        fhr=2,
        early=1 - 2 / 9,
        mei=0.3 * 7 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 7 / 9 - 0.01) + 0.3 * 0.5,
        persisted=(2,),
    ),
    Case(
        # Step 4 goes west from (1,2), a wall; step 5 stands there again and takes the open side:
        # stayed and corrected. A corrected wall is a backtrack: BT 1. HC 1, FHR 4.
        # HRR = min(1, 1/1) = 1; early = 1 - 4/9; esc = SR = 1. MEI = 0.4 + 0.3*5/9 + 0.2 - 0.01.
        # BRS = 1 - 1/max(1, 1+1) = 0.5. CE = (0.1 + 0.1 + 0.1 + 0.5 + 0.1)/5 = 0.18.
        "wall, then another side that is open: corrected",
        THREE,
        """STEP 1: (0,0) → E | 확신도: 90% | 가자
STEP 2: (0,1) → E | 확신도: 90% | 가자
STEP 3: (0,2) → S | 확신도: 90% | 가자
STEP 4: (1,2) → W | 확신도: 50% | 힌트
STEP 5: (1,2) → S | 확신도: 90% | 다시
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok wall ok",
        path="ok ok ok ok",
        hc=1,
        fhr=4,
        bt=1,
        sr=1,
        hrr=1,
        early=EARLY_FOUR,
        esc=1,
        mei=0.4 + 0.3 * EARLY_FOUR + 0.2 - 0.01,
        ce=0.9 / 5,
        brs=0.5,
        score=0.5 * (0.59 + 0.3 * EARLY_FOUR) + 0.3 * (1 - 0.18) + 0.2 * 0.5,
        corrected=(4,),
        stayed=(4,),
    ),
    Case(
        # Step 3 corrects the wall of step 2 with a move that goes back (the trail's last step led
        # from (0,0) to (1,0)): the correction and the run are ONE. BT 1. HC 1, FHR 2.
        # HRR 1; early 7/9; esc 0 (no loop, SR 0). MEI = 0.4 + 0.3*7/9 - 0.01. BRS 0.5.
        "wall corrected by going back: one backtrack",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → E
STEP 3: (1,0) → N
STEP 4: (0,0) → E
""",
        walk="ok wall ok ok",
        hc=1,
        fhr=2,
        bt=1,
        hrr=1,
        early=7 / 9,
        mei=0.4 + 0.3 * 7 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 7 / 9) + 0.3 * 0.5 + 0.2 * 0.5,
        corrected=(2,),
        stayed=(2,),
        wrong_turns=1,
        dead_ends=0,
    ),
    Case(
        # Step 3 runs against the border west of (2,0); step 4 corrects it by going back, step 5
        # goes back further: the correction and both moves are ONE. BT 1.
        # HC 1, FHR 3: early = 1 - 3/16 = 13/16. LT 0. HRR 1. BRS 0.5.
        "a correction and the moves back that follow are one run",
        FOUR,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → S
STEP 3: (2,0) → W
STEP 4: (2,0) → N
STEP 5: (1,0) → N
""",
        walk="ok ok wall ok ok",
        hc=1,
        fhr=3,
        bt=1,
        hrr=1,
        early=1 - 3 / 16,
        mei=0.4 + 0.3 * 13 / 16 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 13 / 16) + 0.15 + 0.1,
        corrected=(3,),
        stayed=(3,),
        wrong_turns=1,
    ),
    Case(
        # The same wall twice: two hallucinations. Only the last wall can be corrected: (3,).
        # HC 2, FHR 2, BT 1 (correction; its move goes back: ONE). HRR = min(1, 1/2) = 0.5;
        # early = 7/9. MEI = 0.4*0.5 + 0.3*7/9 - 0.1*0.2. BRS = 1 - 2/max(1, 1+2) = 1/3.
        "the same wall twice, then corrected",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → E
STEP 3: (1,0) → E
STEP 4: (1,0) → N
""",
        walk="ok wall wall ok",
        hc=2,
        fhr=2,
        bt=1,
        hrr=0.5,
        early=7 / 9,
        mei=0.4 * 0.5 + 0.3 * 7 / 9 - 0.1 * 0.2,
        brs=1 / 3,
        score=0.5 * (0.18 + 0.3 * 7 / 9) + 0.15 + 0.2 / 3,
        corrected=(3,),
        stayed=None,  # whether step 2 stayed as well is not said
    ),
    Case(
        # Two different walls at one cell: both stayed, only the last is corrected (S: forward).
        # HC 2, FHR 2, BT 1. MEI = 0.4*0.5 + 0.3*7/9 - 0.02. BRS 1/3.
        "two walls at one cell: only the last is corrected",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → E
STEP 3: (1,0) → W
STEP 4: (1,0) → S
""",
        walk="ok wall wall ok",
        hc=2,
        fhr=2,
        bt=1,
        hrr=0.5,
        early=7 / 9,
        mei=0.4 * 0.5 + 0.3 * 7 / 9 - 0.1 * 0.2,
        brs=1 / 3,
        score=0.5 * (0.18 + 0.3 * 7 / 9) + 0.15 + 0.2 / 3,
        corrected=(3,),
        stayed=(2, 3),
    ),
    Case(
        # Step 4 stands on (0,0), visited, neither side of the wall: stayed, and a jump. BT 1 (the
        # jump), nothing corrected. HC 1, FHR 3. HRR 1; early = 1 - 3/9. esc 0.
        # Wrong turns: (0,1) S and (0,0) S. Dead end: (1,1) once.
        "wall, then a jump",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → S
STEP 3: (1,1) → S
STEP 4: (0,0) → S
""",
        walk="ok ok wall ok",
        hc=1,
        fhr=3,
        bt=1,
        hrr=1,
        early=1 - 3 / 9,
        mei=0.4 + 0.3 * 6 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.2) + 0.15 + 0.1,
        stayed=(3,),
        wrong_turns=2,
        dead_ends=1,
    ),
    Case(
        # Step 6 stands beyond the wall of step 5 on a cell visited before: persisted goes before
        # retreat, so it is no jump. BT 1 is step 2 (going back). HC 1, FHR 5. HRR 1; early 4/9.
        # (1,0) S is new: LT 0. Wrong turns: steps 1 and 4. Dead end: step 4 (1,1).
        "beyond the wall on a visited cell: persisted, no retreat",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → N
STEP 3: (0,0) → E
STEP 4: (0,1) → S
STEP 5: (1,1) → W
STEP 6: (1,0) → S
""",
        walk="ok ok ok ok wall ok",
        hc=1,
        fhr=5,
        bt=1,
        hrr=1,
        early=1 - 5 / 9,
        mei=0.4 + 0.3 * 4 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 4 / 9) + 0.15 + 0.1,
        persisted=(5,),
        wrong_turns=2,
        dead_ends=1,
    ),
    Case(
        # The way out through the border is ONE wall; the steps outside are not judged and not in
        # CE; step 4 stands inside where the walk came back. HC 1, FHR 1, BT 0.
        # early = 8/9. MEI = 0.3*8/9 - 0.01. CE over steps 1 and 4: (0.9 + 0.1)/2 = 0.5. BRS 0.
        "through the border and back inside",
        THREE,
        """STEP 1: (0,0) → N | 확신도: 90% | 위로
STEP 2: (-1,0) → E | 확신도: 90% | 밖
STEP 3: (-1,1) → S | 확신도: 90% | 안으로
STEP 4: (0,1) → E | 확신도: 90% | 안
""",
        walk="wall . . ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        ce=0.5,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.3 * 0.5,
        persisted=(1,),
    ),
    Case(
        # A silent step after the border wall stands outside as well. Then step 3 stands on (0,0),
        # visited and not where the walk is: a jump, BT 1. HC 1, FHR 1, HRR 1, early 8/9, BRS 0.5.
        "outside, then a jump back to the start",
        THREE,
        """STEP 1: (0,0) → N
STEP 2: N↑
STEP 3: (0,0) → E
""",
        walk="wall . ok",
        hc=1,
        fhr=1,
        bt=1,
        hrr=1,
        early=8 / 9,
        mei=0.4 + 0.3 * 8 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 8 / 9) + 0.15 + 0.1,
        persisted=(1,),
    ),
    Case(
        # Back inside on a cell that is neither where the walk is nor visited: a teleport. HC 2.
        # FHR 1, BT 0: HRR 0, early 8/9. MEI = 0.3*8/9 - 0.02. BRS = 1 - 2/2 = 0.
        "outside, then inside on a strange cell",
        THREE,
        """STEP 1: (0,0) → N
STEP 2: (-1,0) → N
STEP 3: (1,1) → N
""",
        walk="wall . teleport",
        hc=2,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.02,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.02) + 0.15,
        persisted=(1,),
    ),
    Case(
        # Step 2 stands on (2,1), never reached, and goes against a wall: ONE verdict, teleport.
        # Step 3 stands beyond: persisted, no error. HC 1, FHR 2, BT 0. MEI = 0.3*7/9 - 0.01.
        "a closed side under a teleport, persisted",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (2,1) → N
STEP 3: (1,1) → N
""",
        walk="ok teleport ok",
        hc=1,
        fhr=2,
        early=7 / 9,
        mei=0.3 * 7 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 7 / 9 - 0.01) + 0.15,
        persisted=(2,),
    ),
    Case(
        # The same, but step 3 takes the open side of the same cell: corrected, BT 1. W leads from
        # (2,1) to (2,0): no going back. HRR 1. BRS 0.5.
        "a closed side under a teleport, corrected",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (2,1) → N
STEP 3: (2,1) → W
""",
        walk="ok teleport ok",
        hc=1,
        fhr=2,
        bt=1,
        hrr=1,
        early=7 / 9,
        mei=0.4 + 0.3 * 7 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 7 / 9) + 0.15 + 0.1,
        corrected=(2,),
        stayed=(2,),
    ),
    Case(
        # A teleport with a legal move, then a move back over the teleport: the trail's last step
        # was no legal move, so step 1 (west) is no going back. BT 0, HC 1 (one wrong claim is ONE),
        # FHR 1. (0,0) S leaves the solution: one wrong turn.
        "back over a teleport is no going back",
        THREE,
        """STEP 1: (0,1) → W
STEP 2: (0,0) → S
""",
        walk="teleport ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
        wrong_turns=1,
    ),
    Case(
        # Step 2 stands outside the grid: phantom_cell; step 3 stands where it led: not judged.
        # Step 4 stands on (0,0), visited: a jump. HC 1, FHR 2, BT 1. (0,0) S is new. HRR 1.
        # CE over steps 1, 2, 4: (0.2 + 0.8 + 0.2)/3 = 0.4.
        "standing on a phantom cell",
        THREE,
        """STEP 1: (0,0) → E | 확신도: 80% | 가자
STEP 2: (5,5) → N | 확신도: 80% | 가자
STEP 3: (4,5) → N | 확신도: 80% | 가자
STEP 4: (0,0) → S | 확신도: 80% | 처음부터
""",
        walk="ok phantom_cell . ok",
        hc=1,
        fhr=2,
        bt=1,
        hrr=1,
        early=7 / 9,
        mei=0.4 + 0.3 * 7 / 9 - 0.01,
        ce=0.4,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 7 / 9) + 0.3 * 0.6 + 0.1,
        persisted=(2,),
    ),
    Case(
        # NE is no direction: the walk stays at (0,0), step 2 is plain. HC 1, FHR 1, BT 0.
        "a phantom direction without destination",
        THREE,
        """STEP 1: (0,0) → NE
STEP 2: (0,0) → E
""",
        walk="phantom_direction ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
    ),
    Case(
        # With a destination the walk goes there: step 2 stands on (0,1) without a further error.
        # No legal move led there, so W is no going back: BT 0. HC 1.
        "a phantom direction with its destination",
        THREE,
        """STEP 1: (0,0) → 대각선 → (0,1)
STEP 2: (0,1) → W
""",
        walk="phantom_direction ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
    ),
    Case(
        # East of (0,0) is (0,1), not (1,0): teleport, and the walk goes on from (1,0). HC 1.
        # Step 3 enters (2,1), a dead end.
        "a destination that contradicts its direction",
        THREE,
        """STEP 1: (0,0) → E → (1,0)
STEP 2: (1,0) → S → (2,0)
STEP 3: (2,0) → E
""",
        walk="teleport ok ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
        dead_ends=1,
    ),
    Case(
        # The bare cells, one after another:
        # 1 (1,0) open neighbour: move. - (1,0) same cell: nothing, and no step. 2 (2,0): move.
        # 3 (0,0) visited, no neighbour: jump. 4 (0,1) closed neighbour: wall. 5 (0,2) is an open
        # neighbour of the cell beyond: persisted, and a move. 6 (9,9) outside: phantom_cell.
        # - (9,9): persisted, nothing more. 7 (1,0) E: visited, a jump. 8 (3,3): neither
        # neighbour nor visited: teleport. - (3,3) → EXIT: arrival, no step.
        # HC 3, FHR 4, BT 2 (steps 3 and 7). HRR = 2/3; early = 1 - 4/16 = 0.75. SR 0, esc 0.
        # MEI = 0.4*2/3 + 0.3*0.75 - 0.03. BRS = 1 - 3/5 = 0.4.
        # Wrong turn: (1,0) to (2,0).
        "bare cells",
        FOUR,
        """STEP 1: (1,0)
STEP 2: (1,0)
STEP 3: (2,0)
STEP 4: (0,0)
STEP 5: (0,1)
STEP 6: (0,2)
STEP 7: (9,9)
STEP 8: (9,9)
STEP 9: (1,0) → E
STEP 10: (3,3)
STEP 11: (3,3) → EXIT
""",
        walk="ok ok ok wall ok phantom_cell ok teleport",
        hc=3,
        fhr=4,
        bt=2,
        hrr=2 / 3,
        early=0.75,
        mei=0.4 * 2 / 3 + 0.3 * 0.75 - 0.03,
        brs=0.4,
        score=0.5 * (0.4 * 2 / 3 + 0.225 - 0.03) + 0.15 + 0.2 * 0.4,
        persisted=(4, 6),
        wrong_turns=1,
        dead_ends=0,
    ),
    Case(
        # (1,1) is a closed neighbour of (1,0), but it was visited, which is read first: a jump.
        # Step 3 jumps to (0,0) and moves on, step 4 jumps again: two runs, BT 2. HC 0.
        "a bare visited cell is a jump even behind a wall",
        THREE,
        """STEP 1: (0,1)
STEP 2: (1,1)
STEP 3: (0,0) → S
STEP 4: (1,1)
""",
        walk="ok ok ok ok",
        bt=2,
        brs=1,  # 1 - 0/max(1, 2+0)
        score=0.15 + 0.2,
        wrong_turns=2,
        dead_ends=1,
    ),
    Case(
        # After the wall a bare (1,0) is nothing and decides nothing; step 4 corrects. S is forward.
        # The accepted steps: S, E (wall), S. HC 1, FHR 2, BT 1.
        "a bare cell on the near side of the wall leaves it undecided",
        THREE,
        """STEP 1: (1,0)
STEP 2: (1,0) → E
STEP 3: (1,0)
STEP 4: (1,0) → S
""",
        walk="ok wall ok",
        hc=1,
        fhr=2,
        bt=1,
        hrr=1,
        early=7 / 9,
        mei=0.4 + 0.3 * 7 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 7 / 9) + 0.15 + 0.1,
        corrected=(2,),
        stayed=(2,),
    ),
    Case(
        # Wall at once; the next bare cell is an open neighbour of the near side: stayed, corrected,
        # and the move. HC 1, FHR 1, BT 1, HRR 1, early = 15/16.
        "a bare open neighbour of the near side corrects the wall",
        FOUR,
        """STEP 1: (0,1)
STEP 2: (1,0)
""",
        walk="wall ok",
        hc=1,
        fhr=1,
        bt=1,
        hrr=1,
        early=15 / 16,
        mei=0.4 + 0.3 * 15 / 16 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.3 * 15 / 16) + 0.15 + 0.1,
        corrected=(1,),
        stayed=(1,),
    ),
    Case(
        # The next bare cell is far from both sides: persisted, and read from beyond: teleport.
        "a bare strange cell after a wall",
        FOUR,
        """STEP 1: (0,1)
STEP 2: (3,3)
""",
        walk="wall teleport",
        hc=2,
        fhr=1,
        early=15 / 16,
        mei=0.3 * 15 / 16 - 0.02,
        brs=0,
        score=0.5 * (0.3 * 15 / 16 - 0.02) + 0.15,
        persisted=(1,),
    ),
    Case(
        # Step 4 is the wall between (2,1) and (2,2). Step 5 names (0,0): visited, and no open
        # neighbour of either side: stayed, and a jump. HC 1, FHR 4, BT 1. early = 12/16.
        # HRR 1. Wrong turn: (1,0) S. Dead end: (2,1).
        "a bare visited cell after a wall",
        FOUR,
        """STEP 1: (1,0)
STEP 2: (2,0)
STEP 3: (2,1)
STEP 4: (2,2)
STEP 5: (0,0)
""",
        walk="ok ok ok wall ok",
        hc=1,
        fhr=4,
        bt=1,
        hrr=1,
        early=0.75,
        mei=0.4 + 0.3 * 0.75 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.225) + 0.15 + 0.1,
        stayed=(4,),
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # `(a) → (b)`: two moves, a closed neighbour (wall), then an open neighbour of the same
        # cell: corrected, and it goes back: ONE. HC 1, FHR 3, BT 1. early = 6/9.
        "destinations instead of directions",
        THREE,
        """STEP 1: (0,0) → (0,1)
STEP 2: (0,1) → (1,1)
STEP 3: (1,1) → (1,2)
STEP 4: (1,1) → (0,1)
""",
        walk="ok ok wall ok",
        hc=1,
        fhr=3,
        bt=1,
        hrr=1,
        early=6 / 9,
        mei=0.4 + 0.3 * 6 / 9 - 0.01,
        brs=0.5,
        score=0.5 * (0.39 + 0.2) + 0.15 + 0.1,
        corrected=(3,),
        stayed=(3,),
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # Standing on the exit without a direction is arrival: four steps, not five.
        # CE = 0.4/4 = 0.1 (the arrival's 10 % does not count).
        "arrival",
        THREE,
        """STEP 1: (0,0) → E → (0,1) | 확신도: 90% | 가자
STEP 2: (0,1) → E → (0,2) | 확신도: 90% | 가자
STEP 3: (0,2) → S → (1,2) | 확신도: 90% | 가자
STEP 4: (1,2) → S → (2,2) | 확신도: 90% | 가자
STEP 5: (2,2) → EXIT | 확신도: 10% | 도착
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok",
        path="ok ok ok ok",
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        ce=0.1,
        score=0.45 + 0.27 + 0.2,
    ),
    Case(
        # The jump to (1,0) cuts the trail to (0,0) (1,0), whose last step was legal: N goes back,
        # in the same run. BT 1. Step 5 repeats (0,0) S: LT 1. HC 0 and SR 0: HRR 0, early 0;
        # esc 1 (LT > 0 and BT > 0). MEI = 0.2. BRS = 1 - 0/max(1, 1) = 1. Score = 0.1+0.15+0.2.
        # The dead end is not reached: (3,0) has two openings.
        "a jump cuts the trail",
        FOUR,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → S
STEP 3: (2,0) → S
STEP 4: (1,0) → N
STEP 5: (0,0) → S
""",
        walk="ok ok ok ok ok",
        bt=1,
        lt=1,
        esc=1,
        mei=0.2,
        score=0.5 * 0.2 + 0.15 + 0.2,
        wrong_turns=1,
        dead_ends=0,
    ),
    Case(
        # (2,1) is entered (4th move: back) and left; steps 4 and 5 go back: BT 1. Step 6 goes on.
        # Step 7 jumps to (2,1), which the trail (0,0) (1,0) (1,1) does not hold: it is appended,
        # BT 2. W from there is written again (LT 1) and no going back, since no legal move led
        # to (2,1) this time; (2,0) N is written again (LT 2) and forward as well.
        # Wrong turn: (1,0) S once. Dead end: (2,1) once (a jump is no move).
        "a jump to a cell that the trail does not hold",
        FOUR,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → S
STEP 3: (2,0) → E
STEP 4: (2,1) → W
STEP 5: (2,0) → N
STEP 6: (1,0) → E
STEP 7: (2,1) → W
STEP 8: (2,0) → N
""",
        walk="ok ok ok ok ok ok ok ok",
        bt=2,
        lt=2,
        esc=1,
        mei=0.2,
        score=0.1 + 0.15 + 0.2,
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # A new beginning at the start cell is a jump: BT 1; (0,0) E is written again: LT 1.
        # HC 0, SR 1: MEI 0.9, BRS 1. CE = (0.2 + 0.2 + 4*0.1)/6 = 0.8/6.
        "restart at the start cell",
        THREE,
        """STEP 1: (0,0) → E | 확신도: 80% | 가자
STEP 2: (0,1) → S | 확신도: 80% | 가자
DEAD_END at (1,1) — backtracking
STRATEGY_CHANGE — 처음부터 다시
STEP 3: (0,0) → E | 확신도: 90% | 가자
STEP 4: (0,1) → E | 확신도: 90% | 가자
STEP 5: (0,2) → S | 확신도: 90% | 가자
STEP 6: (1,2) → S | 확신도: 90% | 가자
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok ok ok",
        path="ok ok ok ok",
        bt=1,
        lt=1,
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        ce=0.8 / 6,
        score=0.45 + 0.3 * (1 - 0.8 / 6) + 0.2,
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # In and out of a branch of depth 4: four moves back in a row are ONE backtrack.
        # No move is written twice: LT 0. Wrong turn 1, dead end (3,2) 1.
        # CONFIDENCE_LOG gives steps 1..15 70 %: CE = 0.3. Score = 0.45 + 0.3*0.7 + 0.2 = 0.86.
        "a run of going back is one backtrack",
        FOUR,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → S
STEP 3: (2,0) → S
STEP 4: (3,0) → E
STEP 5: (3,1) → E
DEAD_END at (3,2) — backtracking
STEP 6: (3,2) → W
STEP 7: (3,1) → W
STEP 8: (3,0) → N
STEP 9: (2,0) → N
STEP 10: (1,0) → E
STEP 11: (1,1) → N
STEP 12: (0,1) → E
STEP 13: (0,2) → E
STEP 14: (0,3) → S
STEP 15: (1,3) → S
STEP 16: (2,3) → S
BACKTRACK_COUNT: 4
CONFIDENCE_LOG: step1:70, step2:70, step3:70, step4:70, step5:70, step6:70, step7:70, step8:70
FINAL_PATH: (0,0)→(1,0)→(1,1)→(0,1)→(0,2)→(0,3)→(1,3)→(2,3)→(3,3)
""",
        walk=" ".join(["ok"] * 16),
        path=" ".join(["ok"] * 8),
        bt=1,
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        ce=0.3,
        score=0.45 + 0.21 + 0.2,
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # Two branches, two runs: BT 2. Wrong turns 2, dead end (1,1) once; (1,0) is none.
        # (0,0) E once, (0,1) E once: LT 0.
        "two separate runs are two backtracks",
        THREE,
        """STEP 1: (0,0) → S
STEP 2: (1,0) → N
STEP 3: (0,0) → E
STEP 4: (0,1) → S
STEP 5: (1,1) → N
STEP 6: (0,1) → E
STEP 7: (0,2) → S
STEP 8: (1,2) → S
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk=" ".join(["ok"] * 8),
        path="ok ok ok ok",
        bt=2,
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        score=0.45 + 0.15 + 0.2,
        wrong_turns=2,
        dead_ends=1,
    ),
    Case(
        # E W E W E: the third move repeats the first, the fourth the second (going back counts as
        # well), the fifth the first again: LT 3. Going back twice, apart: BT 2. SR 0, HC 0:
        # HRR 0, early 0, esc 1. MEI 0.2. BRS = 1 - 0/2 = 1. Score = 0.1 + 0.15 + 0.2.
        "loops count every repeat, going back included",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → W
STEP 3: (0,0) → E
STEP 4: (0,1) → W
STEP 5: (0,0) → E
LOOP detected at (0,1) — visited at step 1
""",
        walk="ok ok ok ok ok",
        bt=2,
        lt=3,
        esc=1,
        mei=0.2,
        score=0.1 + 0.15 + 0.2,
        wrong_turns=0,
        dead_ends=0,
    ),
    Case(
        # Behind the exit the walk is verified like any other: step 5 goes back (BT 1), step 6 is
        # a wall (HC 1, FHR 6). SR 1. HRR 1; early = 1 - 6/9; MEI = 0.4 + 0.1 + 0.2 - 0.01.
        # BRS = 1 - 1/2. CE = (5*0 + 1)/6.
        "steps after the exit",
        THREE,
        """STEP 1: (0,0) → E | Confidence: 100%
STEP 2: (0,1) → E | Confidence: 100%
STEP 3: (0,2) → S | Confidence: 100%
STEP 4: (1,2) → S | Confidence: 100%
STEP 5: (2,2) → N | Confidence: 100%
STEP 6: (1,2) → W | Confidence: 100%
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok ok wall",
        path="ok ok ok ok",
        hc=1,
        fhr=6,
        bt=1,
        sr=1,
        hrr=1,
        early=1 - 6 / 9,
        esc=1,
        mei=0.4 + 0.3 * 3 / 9 + 0.2 - 0.01,
        ce=1 / 6,
        brs=0.5,
        score=0.5 * 0.69 + 0.3 * 5 / 6 + 0.1,
    ),
    Case(
        # No STEP: the path is the walk. It walks into (1,1) and back: allowed, SR 1, BT 1, one
        # wrong turn, one dead end. HC 0: MEI 0.9.
        "only a path, walking back inside it",
        THREE,
        "FINAL_PATH: (0,0)→(0,1)→(1,1)→(0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="ok ok ok ok ok ok",
        path="ok ok ok ok ok ok",
        bt=1,
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        score=0.45 + 0.15 + 0.2,
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # No STEP: CONFIDENCE_LOG goes by the move's place. CE = (0.1+0.2+0.3+0.4)/4 = 0.25.
        "only a path, with a log by place",
        THREE,
        """CONFIDENCE_LOG: step1:90, step2:80, step3:70, step4:60
FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok",
        path="ok ok ok ok",
        sr=1,
        hrr=1,
        early=1,
        esc=1,
        mei=0.9,
        ce=0.25,
        score=0.45 + 0.3 * 0.75 + 0.2,
    ),
    Case(
        # No STEP, a path through a wall at move 2, and one confidence only, for that move:
        # CE = |0.6 - 0| = 0.6. HC 1, FHR 2, SR 0. early 7/9. MEI = 0.3*7/9 - 0.01. BRS 0.
        "only a path, through a wall",
        THREE,
        """CONFIDENCE_LOG: step2:60
FINAL_PATH: (0,0)→(1,0)→(1,1)→(0,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok wall ok ok ok ok",
        path="ok wall ok ok ok ok",
        hc=1,
        fhr=2,
        early=7 / 9,
        mei=0.3 * 7 / 9 - 0.01,
        ce=0.6,
        brs=0,
        score=0.5 * (0.3 * 7 / 9 - 0.01) + 0.3 * 0.4,
        persisted=(2,),
    ),
    Case(
        # The walk is clean; the path jumps from (1,1) to (0,2) at move 3: teleport. HC 1; FHR is
        # the path's, 3, as the walk has none. SR 0, BT 0. early = 6/9. MEI = 0.2 - 0.01.
        # BRS = 1 - 1/1 = 0. CE = 0 over the STEPs.
        "a path with a jump",
        THREE,
        """STEP 1: (0,0) → E | Confidence: 100%
STEP 2: (0,1) → E | Confidence: 100%
STEP 3: (0,2) → S | Confidence: 100%
STEP 4: (1,2) → S | Confidence: 100%
FINAL_PATH: (0,0)→(0,1)→(1,1)→(0,2)→(1,2)→(2,2)
""",
        walk="ok ok ok ok",
        path="ok ok teleport ok ok",
        hc=1,
        fhr=3,
        early=6 / 9,
        mei=0.3 * 6 / 9 - 0.01,
        ce=0,
        brs=0,
        score=0.5 * 0.19 + 0.3,
    ),
    Case(
        # A jump to a cell that the path has visited is a teleport as well (move 3).
        "a path with a jump back",
        THREE,
        "FINAL_PATH: (0,0)→(0,1)→(1,1)→(0,0)→(0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="ok ok teleport ok ok ok ok",
        path="ok ok teleport ok ok ok ok",
        hc=1,
        fhr=3,
        lt=1,  # (0,0) E is written again
        early=6 / 9,
        mei=0.3 * 6 / 9 - 0.01,
        brs=0,
        score=0.5 * 0.19 + 0.15,
    ),
    Case(
        # Two equal cells that follow each other: teleport at move 1. Begins and ends well, SR 0.
        "a path with equal cells",
        THREE,
        "FINAL_PATH: (0,0)→(0,0)→(0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="teleport ok ok ok ok",
        path="teleport ok ok ok ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
    ),
    Case(
        # Begun elsewhere: teleport at move 1, the rest goes on from there. SR 0.
        "a path that begins elsewhere",
        THREE,
        "FINAL_PATH: (0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="teleport ok ok",
        path="teleport ok ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
    ),
    Case(
        # Begun outside: phantom_cell at move 1; move 2 stands inside again and is judged. SR 0.
        "a path that begins outside the grid",
        THREE,
        "FINAL_PATH: (-1,0)→(0,0)→(0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="phantom_cell ok ok ok ok",
        path="phantom_cell ok ok ok ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
        persisted=None,
    ),
    Case(
        # Out at move 1: phantom_cell; moves 2 and 3 stand outside: not judged; move 4 stands on
        # (0,1) inside. HC 1, SR 0.
        "a path that leaves the grid and comes back",
        THREE,
        "FINAL_PATH: (0,0)→(-1,0)→(-1,1)→(0,1)→(0,2)→(1,2)→(2,2)\n",
        walk="phantom_cell . . ok ok ok",
        path="phantom_cell . . ok ok ok",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.15,
        persisted=None,
    ),
    Case(
        # The walk reaches the exit, the path ends early: no error in it, but not valid. SR 0, HC 0:
        # HRR = early = esc = 0, MEI 0. BRS = 1. Score = 0.15 + 0.2.
        "a path that ends early",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → E
STEP 3: (0,2) → S
STEP 4: (1,2) → S
FINAL_PATH: (0,0)→(0,1)→(0,2)
""",
        walk="ok ok ok ok",
        path="ok ok",
        score=0.15 + 0.2,
    ),
    Case(
        # The walk has one error (step 3), the path two (moves 1 and 2): HC is the larger, 2, not 3.
        # FHR is the walk's, 3. BT 0: HRR 0. early = 6/9. MEI = 0.2 - 0.02. BRS 0.
        "HC is the larger of the two counts, FHR the walk's",
        THREE,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → E
STEP 3: (0,2) → N
FINAL_PATH: (0,1)→(1,1)→(1,2)→(2,2)
""",
        walk="ok ok wall",
        path="teleport wall ok",
        hc=2,
        fhr=3,
        early=6 / 9,
        mei=0.3 * 6 / 9 - 0.1 * 0.2,
        brs=0,
        score=0.5 * 0.18 + 0.15,
    ),
    Case(
        # Declared counts and boasts enter nothing: the same numbers as without them. HC 1, BT 0.
        # CE = |0.95 - 0| = 0.95.
        "boasts are no facts",
        THREE,
        """STEP 1: (0,0) → N | 확신도: 95% | 지름길
LOOP detected at (0,0) — visited at step 1
BACKTRACK_COUNT: 99
HALLUCINATION_COUNT: 0
""",
        walk="wall",
        hc=1,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.01,
        ce=0.95,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.01) + 0.3 * 0.05,
    ),
    Case(
        # Nothing readable: a failure, with zeros, never a neutral score.
        "no readable claim",
        THREE,
        "죄송합니다. 이 미로는 풀 수 없습니다.\nHALLUCINATION_COUNT: 0\n",
        readable=False,
        brs=0,
    ),
    Case(
        # A path of one cell is no readable claim either.
        "a path of one cell",
        THREE,
        "FINAL_PATH: (0,0)\n",
        readable=False,
        brs=0,
    ),
    Case(
        # N² = 4, first error at step 6: early = 1 - 6/4 is clamped to 0. E W E W E: BT 2, LT 3.
        # HRR = min(1, 2/1) = 1; esc 1. MEI = 0.4 + 0 + 0.2 - 0.01. BRS = 1 - 1/3.
        "early is clamped",
        TWO,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → W
STEP 3: (0,0) → E
STEP 4: (0,1) → W
STEP 5: (0,0) → E
STEP 6: (0,1) → E
""",
        walk="ok ok ok ok ok wall",
        hc=1,
        fhr=6,
        bt=2,
        lt=3,
        hrr=1,
        esc=1,
        mei=0.59,
        brs=1 - 1 / 3,
        score=0.5 * 0.59 + 0.15 + 0.2 * 2 / 3,
    ),
    Case(
        # FHR 4 = N²: early 0; BT 0: HRR 0; esc 0. MEI = 0 - 0.01, clamped to 0. BRS 0.
        # The walk runs past the exit into the dead end (1,0) and against its north wall.
        "MEI is clamped",
        TWO,
        """STEP 1: (0,0) → E
STEP 2: (0,1) → S
STEP 3: (1,1) → W
STEP 4: (1,0) → N
""",
        walk="ok ok ok wall",
        hc=1,
        fhr=4,
        brs=0,
        score=0.15,
        wrong_turns=1,
        dead_ends=1,
    ),
    Case(
        # Twelve bumps: the penalty stops at 0.1. FHR 1: MEI = 0.3*8/9 - 0.1*min(1, 1.2).
        "more than ten hallucinations",
        THREE,
        "".join(f"STEP {i}: (0,0) → N | 확신도: 50% | 다시\n" for i in range(1, 13)),
        walk=" ".join(["wall"] * 12),
        hc=12,
        fhr=1,
        early=8 / 9,
        mei=0.3 * 8 / 9 - 0.1,
        ce=0.5,
        brs=0,
        score=0.5 * (0.3 * 8 / 9 - 0.1) + 0.15,
        stayed=None,
    ),
    Case(
        # Through a wall and on: one wrong claim is ONE hallucination, however long the belief is
        # followed. Korean direction words. HC 1, FHR 1, early 15/16.
        "one wrong claim is never a chain",
        FOUR,
        """단계 1: (0,0) → 동쪽 | 확신도: 70%
단계 2: (0,1) → 동쪽 | 확신도: 70%
단계 3: (0,2) → 동쪽 | 확신도: 70%
단계 4: (0,3) → 남쪽 | 확신도: 70%
""",
        walk="wall ok ok ok",
        hc=1,
        fhr=1,
        early=15 / 16,
        mei=0.3 * 15 / 16 - 0.01,
        ce=(0.7 + 3 * 0.3) / 4,
        brs=0,
        score=0.5 * (0.3 * 15 / 16 - 0.01) + 0.3 * 0.6,
        persisted=(1,),
        wrong_turns=0,
        dead_ends=0,
    ),
]


# -- helpers ---------------------------------------------------------------------------------------


def flat(openings: Sequence[Any]) -> list[str]:
    """The openings of a maze as one list, row by row."""
    return [w for row in openings for w in ([row] if isinstance(row, str) else row)]


def words(verdicts: Sequence[str | None]) -> str:
    return " ".join(v or "." for v in verdicts)


def seen(walk: Any) -> str:
    return words([v.verdict for v in walk.verdicts])


def as_claims(steps: Sequence[oracle.Saying]) -> list[Any]:
    return [
        hallumaze.Claim(
            line=line,
            number=line + 1,
            cell=said.cell,
            direction=said.direction,
            to=said.to,
            confidence=said.confidence,
        )
        for line, said in enumerate(steps)
    ]


def as_answer(steps: Sequence[Any], path: Sequence[Cell], log: Sequence[float | None]) -> Any:
    return hallumaze.Answer(
        steps=tuple(steps),
        signals=(),
        final_path=tuple(path),
        path_confidence=tuple(log),
        declared_backtracks=None,
        declared_hallucinations=None,
        malformed_lines=0,
        text="",
        reasoning="",
        truncated=False,
    )


def expected(case: Case) -> dict[str, Any]:
    return {
        "readable": case.readable,
        "sr": case.sr,
        "mei": case.mei,
        "ce": case.ce,
        "brs": case.brs,
        "hallumaze_score": case.score if case.readable else 0,
        "hallucination_count": case.hc,
        "first_hallucination_step": case.fhr,
        "backtrack_count": case.bt,
        "loop_count": case.lt,
        "hrr": case.hrr,
        "early": case.early,
        "esc": case.esc,
        "path_valid": bool(case.sr),
    }


def same(got: Any, want: Any) -> bool:
    if want is None or got is None:
        return want is got
    return bool(got == pytest.approx(want, abs=2e-6))  # results may be rounded to 6 places


def differences(got: dict[str, Any], want: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {k: (got[k], want[k]) for k in want if not same(got[k], want[k])}


def count(events: Any) -> int:
    """The module lists the steps of events, the second judge counts them."""
    return events if isinstance(events, int) else len(events)


def events(case: Case, walk: Any) -> None:
    """The step numbers and counts that stand beside the metrics."""
    for name in ("persisted", "corrected", "stayed"):
        if getattr(case, name) is not None:
            assert tuple(getattr(walk, name)) == getattr(case, name), name
    if case.wrong_turns is not None:
        assert count(walk.wrong_turns) == case.wrong_turns
    if case.dead_ends is not None:
        found = walk.dead_ends if hasattr(walk, "dead_ends") else walk.dead_end_entries
        assert count(found) == case.dead_ends


# -- 1. by hand ------------------------------------------------------------------------------------


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_answer_worked_out_by_hand(case: Case) -> None:
    maze = hallumaze.MazeEngine.from_openings(case.maze, seed=0)
    answer = hallumaze.ResponseParser().parse(case.text)
    result = hallumaze.judge(answer, maze)
    if case.walk:
        assert seen(result.walk) == case.walk
        assert [v.step for v in result.walk.verdicts] == list(range(1, len(case.walk.split()) + 1))
        events(case, result.walk)
    if case.path is not None:
        assert seen(hallumaze.verify_path(answer.final_path, maze)) == case.path
    want = expected(case)
    assert differences({k: getattr(result, k) for k in want}, want) == {}


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_the_second_judge_agrees_with_the_hand(case: Case) -> None:
    """Guards the hand-made numbers and the second judge against each other."""
    grid = Grid(case.maze)
    steps, path, log = oracle.read_plain(case.text)
    path_walk = oracle.judge_path(grid, path, log) if len(path) > 1 else None
    walk = oracle.judge_steps(grid, steps)
    if not walk.verdicts and path_walk is not None:
        walk = path_walk
    assert words(walk.verdicts) == case.walk
    events(case, walk)
    if case.path is not None:
        assert path_walk is not None
        assert words(path_walk.verdicts) == case.path
    got = oracle.metrics(grid, walk, path_walk, oracle.path_valid(grid, path))
    assert differences(got, expected(case)) == {}


def test_the_mazes_are_read_as_drawn() -> None:
    for openings, solution in ((TWO, "ES"), (THREE, "EESS"), (FOUR, "SENEESSS")):
        maze = hallumaze.MazeEngine.from_openings(openings, seed=0)
        cells: list[Cell] = [(0, 0)]
        for direction in solution:
            cells.append(oracle.beside(cells[-1], direction))
        assert [tuple(cell) for cell in maze.solution_path] == cells == Grid(openings).solution
        assert flat(maze.openings()) == openings


def test_declared_counts_change_nothing() -> None:
    maze = hallumaze.MazeEngine.from_openings(THREE, seed=0)
    for case in CASES:
        if case.maze is not THREE or not case.readable:
            continue
        results = []
        for boast in ("", "BACKTRACK_COUNT: 99\nHALLUCINATION_COUNT: 0\n"):
            answer = hallumaze.ResponseParser().parse(case.text + boast)
            results.append(hallumaze.judge(answer, maze))
        for name in expected(case):
            assert getattr(results[0], name) == getattr(results[1], name), (case.name, name)


# -- 2. against the second judge -------------------------------------------------------------------

PHANTOMS = ["NE", "SW", "FORWARD", "대각선", "UP-LEFT"]


def pick_cell(rng: random.Random, size: int, near: Cell) -> Cell:
    """Some cell: inside, just outside, or far outside."""
    kind = rng.random()
    if kind < 0.6:
        return (rng.randrange(size), rng.randrange(size))
    if kind < 0.9:
        return oracle.beside(near, rng.choice("NESW"))
    return rng.choice([(-1, rng.randrange(size)), (rng.randrange(size), size), (99, 99), (-1, -1)])


def random_walk(rng: random.Random, grid: Grid) -> Iterator[oracle.Saying]:
    """Claims such as a model might write: mostly legal moves, and everything that goes wrong.

    `at` is where the model thinks it is; it need not be where the judge thinks it is. Each walk has
    its own temper, so that long legal walks, bumping ones and wild ones all occur.
    """
    wild = rng.choice([0.0, 0.05, 0.15, 0.3, 0.6])
    bumps = rng.choice([0.02, 0.1, 0.3, 0.6])
    bare = rng.choice([0.0, 0.0, 0.1, 0.5, 1.0])
    silent = rng.choice([0.0, 0.1, 0.5])
    states = rng.choice([0.0, 0.5, 1.0])
    at: Cell = grid.start
    been: list[Cell] = [at]
    for _ in range(rng.randrange(1, 25)):
        confidence = float(rng.randrange(101)) if rng.random() < states else None
        if rng.random() < wild:
            at = rng.choice(been) if rng.random() < 0.6 else pick_cell(rng, grid.size, at)
        sides = sorted(grid.sides.get(at, ()))
        closed = rng.random() < bumps or not sides
        direction = rng.choice("NESW") if closed else rng.choice(sides)
        target = oracle.beside(at, direction)
        cell = None if rng.random() < silent else at
        to = target if rng.random() < 0.2 else None
        if rng.random() < bare:
            if rng.random() < wild:
                target = rng.choice([at, rng.choice(been), pick_cell(rng, grid.size, at)])
            arrow = cell is not None and rng.random() < 0.4
            yield oracle.Saying(cell if arrow else None, None, target, confidence)
        elif rng.random() < wild / 4:
            to = pick_cell(rng, grid.size, at) if rng.random() < 0.5 else None
            yield oracle.Saying(cell, rng.choice(PHANTOMS), to, confidence)
            target = to or at
        else:
            if rng.random() < wild / 3:
                to = target = pick_cell(rng, grid.size, at)
            yield oracle.Saying(cell, direction, to, confidence)
        if grid.joined(at, target) or rng.random() < 0.5:
            at = target
        if grid.inside(at):
            been.append(at)


def random_path(rng: random.Random, grid: Grid) -> list[Cell]:
    """The cells of a FINAL_PATH: the solution, a random walk, or either of them spoilt."""
    path = list(grid.solution)
    if rng.random() < 0.7:
        path = [grid.start]
        for _ in range(rng.randrange(1, 20)):
            sides = sorted(grid.sides[path[-1]])
            path.append(oracle.beside(path[-1], rng.choice(sides)))
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        i = rng.randrange(len(path))
        kind = rng.random()
        if kind < 0.4:
            path[i] = pick_cell(rng, grid.size, path[i])
        elif kind < 0.6:
            path.insert(i, path[i])
        elif kind < 0.8 and len(path) > 2:
            del path[i]
        else:
            path.insert(i, pick_cell(rng, grid.size, path[i]))
    return path


def random_maze(rng: random.Random) -> tuple[Any, Grid]:
    maze = hallumaze.MazeEngine(rng.randrange(2, 6), rng.randrange(10_000))
    grid = Grid(flat(maze.openings()))
    assert [tuple(c) for c in maze.solution_path] == grid.solution
    return maze, grid


COUNTED = {"loops": "loops", "wrong_turns": "wrong_turns", "dead_end_entries": "dead_ends"}


def unlike(walk: Any, mine: Walker) -> list[str]:
    """Where a Walk and the second judge differ, in words."""
    found = []

    def check(name: str, got: Any, want: Any) -> None:
        if got != want:
            found.append(f"{name}: {got}, expected {want}")

    check("verdicts", seen(walk), words(mine.verdicts))
    check("numbers", [v.step for v in walk.verdicts], list(range(1, len(mine.verdicts) + 1)))
    check("confidences", [v.confidence for v in walk.verdicts], mine.confidences)
    check("hallucinations", walk.hallucinations, mine.hallucinations)
    check("first", walk.first_hallucination, mine.first_hallucination)
    check("backtracks", len(walk.backtracks), mine.backtracks)
    check("corrected", list(walk.corrected), mine.corrected)
    for name in ("persisted", "stayed"):
        got = [n for n in getattr(walk, name) if n not in mine.open_marks]
        check(name, got, [n for n in getattr(mine, name) if n not in mine.open_marks])
    for name, slack in mine.slack.items():
        got, want = len(getattr(walk, COUNTED[name])), getattr(mine, name)
        if not want <= got <= want + slack:
            found.append(f"{name}: {got}, expected {want} (at most {slack} more)")
    return found


def shrink(items: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Drop what is not needed for the failure, so that a person can read it."""
    i = 0
    while i < len(items):
        shorter = items[:i] + items[i + 1 :]
        if shorter and fails(shorter):
            items, i = shorter, 0
        else:
            i += 1
    return items


def report(kind: str, openings: list[str], items: Sequence[Any], found: Sequence[Any]) -> str:
    lines = [f"{kind} on {openings}", *(f"  {item}" for item in items), *map(str, found)]
    return "\n".join(lines)


CHUNKS = range(20)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_walks_agree_with_the_second_judge(chunk: int) -> None:
    rng = random.Random(f"walks {chunk}")
    for _ in range(300):
        maze, grid = random_maze(rng)

        def compare(steps: list[Any], maze: Any = maze, grid: Grid = grid) -> list[str]:
            mine, length = oracle.decided(grid, steps)
            return unlike(hallumaze.verify_steps(as_claims(steps[:length]), maze), mine)

        steps = list(random_walk(rng, grid))
        if compare(steps):
            steps = shrink(steps, lambda s: bool(compare(s)))
            pytest.fail(report("walk", flat(maze.openings()), steps, compare(steps)))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_paths_agree_with_the_second_judge(chunk: int) -> None:
    rng = random.Random(f"paths {chunk}")
    for _ in range(200):
        maze, grid = random_maze(rng)

        def compare(path: list[Cell], maze: Any = maze, grid: Grid = grid) -> list[str]:
            if len(path) < 2:
                return []
            log = [float(i % 101) if i % 3 else None for i in range(len(path) - 1)]
            try:
                mine = oracle.judge_path(grid, path, log)
            except oracle.Open:
                return []
            return unlike(hallumaze.verify_path(path, maze, log), mine)

        path = random_path(rng, grid)
        if compare(path):
            path = shrink(path, lambda p: bool(compare(p)))
            pytest.fail(report("path", flat(maze.openings()), path, compare(path)))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_answers_agree_with_the_second_judge(chunk: int) -> None:
    """Section 6 on whole answers: STEPs, a path, both, or neither."""
    rng = random.Random(f"answers {chunk}")
    for _ in range(100):
        maze, grid = random_maze(rng)
        steps = list(random_walk(rng, grid)) if rng.random() < 0.8 else []
        mine, length = oracle.decided(grid, steps)
        if mine.slack["loops"] or (steps and not mine.verdicts):
            continue
        path = random_path(rng, grid) if rng.random() < 0.8 else []
        path = path if len(path) > 1 else []
        log = [float(rng.randrange(101)) for _ in path[1:]] if not steps else []
        try:
            path_walk = oracle.judge_path(grid, path, log) if path else None
        except oracle.Open:
            continue
        walk = path_walk if not steps and path_walk is not None else mine
        valid = oracle.path_valid(grid, path)
        want = oracle.metrics(grid, walk, path_walk, valid)
        result = hallumaze.judge(as_answer(as_claims(steps[:length]), path, log), maze)
        found = differences({k: getattr(result, k) for k in want}, want)
        items = [*steps[:length], path]
        assert not found, report("answer", flat(maze.openings()), items, [found])


def test_the_second_judge_decides_most_of_it() -> None:
    """The comparison above would be empty if the second judge called everything open."""
    rng = random.Random("how much is decided")
    whole = kept = total = 0
    for _ in range(500):
        _, grid = random_maze(rng)
        steps = list(random_walk(rng, grid))
        _, length = oracle.decided(grid, steps)
        whole += length == len(steps)
        kept += length
        total += len(steps)
    assert whole > 250
    assert kept > 0.6 * total


# -- 3. properties ---------------------------------------------------------------------------------

SEEDS = st.integers(0, 10**9)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(SEEDS)
def test_a_legal_walk_to_the_exit_is_perfect(seed: int) -> None:
    rng = random.Random(seed)
    maze, grid = random_maze(rng)
    cells, steps = [grid.start], []
    while cells[-1] != grid.goal:
        direction = rng.choice(sorted(grid.sides[cells[-1]]))
        steps.append(oracle.Saying(rng.choice([cells[-1], None]), direction, None, 100.0))
        cells.append(oracle.beside(cells[-1], direction))
    result = hallumaze.judge(as_answer(as_claims(steps), cells, ()), maze)
    assert (result.hallucination_count, result.first_hallucination_step) == (0, -1)
    assert (result.sr, result.brs, result.ce) == (1, 1, 0)
    assert same(result.mei, 0.9)
    assert same(result.hallumaze_score, 0.95)
    alone = hallumaze.judge(as_answer((), cells, ()), maze)
    assert (alone.hallucination_count, alone.sr) == (0, 1)
    assert alone.backtrack_count == result.backtrack_count
    assert alone.loop_count == result.loop_count


@settings(derandomize=True, deadline=None, max_examples=300)
@given(SEEDS)
def test_any_answer_keeps_to_the_ranges(seed: int) -> None:
    """Every walk, also where the specification is open: ranges, SR, HC, and the same twice."""
    rng = random.Random(seed)
    maze, grid = random_maze(rng)
    claims = as_claims(list(random_walk(rng, grid)))
    path = random_path(rng, grid)
    answer = as_answer(claims, path, ())
    result = hallumaze.judge(answer, maze)
    assert result == hallumaze.judge(answer, maze)
    valid = oracle.path_valid(grid, path)
    assert (result.path_valid, result.sr) == (valid, int(valid))
    on_foot = hallumaze.verify_steps(claims, maze)
    on_paper = hallumaze.verify_path(path, maze)
    if on_foot.verdicts:
        assert result.hallucination_count == max(on_foot.hallucinations, on_paper.hallucinations)
    assert 0 <= result.mei <= 0.9 + 1e-9
    assert 0 <= result.hallumaze_score <= 0.95 + 1e-9
    for name in ("hrr", "early", "esc", "brs"):
        assert 0 <= getattr(result, name) <= 1, name
    assert result.ce is None or 0 <= result.ce <= 1
    assert set(on_foot.corrected) <= set(on_foot.stayed)
    assert not set(on_foot.persisted) & set(on_foot.stayed)
    assert not on_paper.corrected
    assert len(on_foot.verdicts) <= len(claims)
    assert len(on_paper.verdicts) == max(0, len(path) - 1)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(SEEDS)
def test_confidence_changes_nothing_but_ce(seed: int) -> None:
    rng = random.Random(seed)
    maze, grid = random_maze(rng)
    steps = list(random_walk(rng, grid))
    mute = [oracle.Saying(s.cell, s.direction, s.to, None) for s in steps]
    loud = hallumaze.judge(as_answer(as_claims(steps), (), ()), maze)
    quiet = hallumaze.judge(as_answer(as_claims(mute), (), ()), maze)
    assert quiet.ce is None
    for name in expected(CASES[0]):
        if name not in ("ce", "hallumaze_score"):
            assert getattr(loud, name) == getattr(quiet, name), name


@settings(derandomize=True, deadline=None, max_examples=200)
@given(SEEDS)
def test_a_walk_is_judged_step_by_step(seed: int) -> None:
    """What is written later never changes an earlier verdict."""
    rng = random.Random(seed)
    maze, grid = random_maze(rng)
    claims = as_claims(list(random_walk(rng, grid)))
    whole = seen(hallumaze.verify_steps(claims, maze)).split()
    cut = rng.randrange(len(claims) + 1)
    part = seen(hallumaze.verify_steps(claims[:cut], maze)).split()
    assert whole[: len(part)] == part
