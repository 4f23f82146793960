"""A second judge, slow and plain, written from the specification alone.

It shares no code with `hallumaze.py`. Walks are fed to it one claim at a time, and every rule of
the specification is one branch here. Where the specification can be read in two ways the oracle
says so: a strict walker raises `Open` at that claim, and the tests then compare only what came
before it; a lenient one goes on with the reading that seems more natural and lists the reason in
`reasons`.

Numbers that depend on such a point, but do not change the rest of the walk, are kept as slack:
`loops`, `wrong_turns` and `dead_end_entries` may exceed the count by the slack, and the steps in
`open_marks` are left out when persisted and stayed errors are compared.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Cell = tuple[int, int]
SHIFT = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}
OPPOSITE = {"N": "S", "E": "W", "S": "N", "W": "E"}


class Open(Exception):
    """The specification can be read in two ways here."""


def beside(cell: Cell, direction: str) -> Cell:
    """The cell one step further, inside the grid or not."""
    down, right = SHIFT[direction]
    return (cell[0] + down, cell[1] + right)


def way(a: Cell, b: Cell) -> str | None:
    """The direction from a to its neighbour b, walls aside; None when they are no neighbours."""
    return next((d for d in SHIFT if beside(a, d) == b), None)


class Grid:
    """A maze given by its openings, row by row; refuses what is no perfect maze."""

    def __init__(self, openings: Sequence[str]) -> None:
        self.size = round(len(openings) ** 0.5)
        assert self.size**2 == len(openings)
        self.sides = {divmod(i, self.size): set(word) for i, word in enumerate(openings)}
        self.start = (0, 0)
        self.goal = (self.size - 1, self.size - 1)
        for cell, sides in self.sides.items():
            for d in sides:
                assert OPPOSITE[d] in self.sides[beside(cell, d)], (cell, d)
        assert sum(len(s) for s in self.sides.values()) == 2 * (self.size**2 - 1)
        self.solution = self._solve()
        self.on_solution = set(self.solution)
        self.dead_ends = {
            c for c, s in self.sides.items() if len(s) == 1 and c not in (self.start, self.goal)
        }

    def _solve(self) -> list[Cell]:
        before: dict[Cell, Cell] = {self.start: self.start}
        queue = deque([self.start])
        while queue:
            cell = queue.popleft()
            for d in self.sides[cell]:
                if beside(cell, d) not in before:
                    before[beside(cell, d)] = cell
                    queue.append(beside(cell, d))
        assert len(before) == self.size**2, "not every cell can be reached"
        path = [self.goal]
        while path[-1] != self.start:
            path.append(before[path[-1]])
        return path[::-1]

    def inside(self, cell: Cell) -> bool:
        return cell in self.sides

    def open(self, cell: Cell, direction: str) -> bool:
        return direction in self.sides.get(cell, ())

    def joined(self, a: Cell, b: Cell) -> bool:
        """True when b is an open neighbour of a."""
        d = way(a, b)
        return d is not None and self.open(a, d)


@dataclass
class Saying:
    """One STEP as it was written (the fields of hallumaze.Claim that judging needs)."""

    cell: Cell | None = None
    direction: str | None = None
    to: Cell | None = None
    confidence: float | None = None


@dataclass
class Debt:
    """An error after which the walk is on one of two sides, until the next step decides."""

    step: int
    stood: Cell
    beyond: Cell
    direction: str | None
    kind: str  # "wall", "outside" (a claim that led out), "phantom" (a claim that stood outside)


@dataclass
class Trail:
    """The current path from the start: cells, and whether a legal move led from cell to cell."""

    cuts: bool
    cells: list[Cell]
    legal: list[bool]

    def back_to(self, cell: Cell) -> bool:
        return len(self.cells) > 1 and self.legal[-1] and self.cells[-2] == cell

    def pop(self) -> None:
        self.cells.pop()
        self.legal.pop()

    def add(self, cell: Cell, legal: bool) -> None:
        if self.cuts and cell in self.cells:
            self.cut(cell)
        else:
            self.cells.append(cell)
            self.legal.append(legal)

    def cut(self, cell: Cell) -> None:
        """What a jump does."""
        if cell in self.cells:
            last = len(self.cells) - 1 - self.cells[::-1].index(cell)
            del self.cells[last + 1 :], self.legal[last + 1 :]
        else:
            self.cells.append(cell)
            self.legal.append(False)


@dataclass
class Walker:
    """Judges one walk. Feed it claims; read the counts."""

    grid: Grid
    strict: bool = True
    verdicts: list[str | None] = field(default_factory=list)
    confidences: list[float | None] = field(default_factory=list)
    persisted: list[int] = field(default_factory=list)
    corrected: list[int] = field(default_factory=list)
    stayed: list[int] = field(default_factory=list)
    backtracks: int = 0
    loops: int = 0
    wrong_turns: int = 0
    dead_end_entries: int = 0
    slack: dict[str, int] = field(
        default_factory=lambda: {"loops": 0, "wrong_turns": 0, "dead_end_entries": 0}
    )
    open_marks: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.here: Cell = self.grid.start
        self.trails = [Trail(cuts, [self.here], [False]) for cuts in (False, True)]
        self.visited: set[Cell] = {self.here}
        self.doubtful: set[Cell] = set()  # one reading says visited, the other not
        self.made: set[tuple[Cell, str]] = set()
        self.made_doubtful: set[tuple[Cell, str]] = set()
        self.debt: Debt | None = None
        self.running = False  # the last step belongs to a run of going back and jumps
        self.jumped = False  # this step has jumped
        self.cloud: str | None = None  # a doubt that the next claim would have to decide
        self.confidence: float | None = None

    # -- results -------------------------------------------------------------------------------

    @property
    def hallucinations(self) -> int:
        return sum(v not in ("ok", None) for v in self.verdicts)

    @property
    def first_hallucination(self) -> int:
        wrong = [i for i, v in enumerate(self.verdicts, 1) if v not in ("ok", None)]
        return wrong[0] if wrong else -1

    # -- small steps ---------------------------------------------------------------------------

    def doubt(self, reason: str) -> None:
        self.reasons.append(reason)
        if self.strict:
            raise Open(reason)

    def known(self, cell: Cell) -> bool:
        """Visited?"""
        if cell in self.visited:
            return True
        if cell in self.doubtful:
            self.doubt("a cell that was perhaps visited")
        return False

    def number(self) -> int:
        return len(self.verdicts) + 1

    def write(self, verdict: str | None) -> None:
        self.verdicts.append(verdict)
        self.confidences.append(self.confidence)

    def retreat(self) -> None:
        if not self.running:
            self.backtracks += 1
        self.running = True

    def jump(self, cell: Cell) -> None:
        self.retreat()
        self.jumped = True
        self.here = cell
        for trail in self.trails:
            trail.cut(cell)

    def go(self, cell: Cell) -> None:
        """Stand on a cell that no legal move led to (a belief, a named destination)."""
        if cell == self.here:
            return
        self.here = cell
        self.visited.add(cell)
        for trail in self.trails:
            trail.add(cell, False)
        if cell in self.grid.dead_ends:
            self.slack["dead_end_entries"] += 1

    def land(self, cell: Cell) -> None:
        """Stand on a cell that a teleport named: no move led there."""
        self.here = cell
        self.visited.add(cell)
        for trail in self.trails:
            trail.add(cell, False)

    def drift(self, cell: Cell) -> None:
        """Follow an unjudged belief outside the grid, or from outside back inside."""
        self.here = cell
        for trail in self.trails:
            trail.add(cell, False)
        if self.grid.inside(cell) and cell not in self.visited:
            self.doubtful.add(cell)

    def move(self, direction: str) -> None:
        """A legal move."""
        a, b = self.here, beside(self.here, direction)
        answers = {trail.back_to(b) for trail in self.trails}
        if len(answers) > 1:
            self.doubt("the trail after coming to one of its own cells without a jump")
        back = self.trails[0].back_to(b)
        if (a, direction) in self.made:
            self.loops += 1
        elif (a, direction) in self.made_doubtful:
            self.slack["loops"] += 1
        self.made.add((a, direction))
        for trail in self.trails:
            if trail.back_to(b):
                trail.pop()
            else:
                trail.add(b, True)
        if back:
            self.retreat()
        else:
            self.running = False
            self.wrong_turns += a in self.grid.on_solution and b not in self.grid.on_solution
            self.dead_end_entries += b in self.grid.dead_ends
        self.here = b
        self.visited.add(b)

    def correct(self, debt: Debt) -> None:
        self.corrected.append(debt.step)
        self.backtracks += 1
        self.running = True  # a move that goes back now belongs to it

    def owe(self, stood: Cell, beyond: Cell, direction: str | None, kind: str) -> None:
        self.running = False
        self.debt = Debt(self.number(), stood, beyond, direction, kind)

    # -- the standing cell ---------------------------------------------------------------------

    def persist(self, debt: Debt) -> None:
        self.debt = None
        self.persisted.append(debt.step)
        if self.grid.inside(debt.beyond):
            self.go(debt.beyond)
        else:
            self.drift(debt.beyond)

    def settle(self, debt: Debt, cell: Cell | None, said: Saying) -> str | None:
        """The step after an error that left the walk on one of two sides."""
        if cell is None or cell == debt.beyond:
            self.persist(debt)
            return "ok" if self.grid.inside(self.here) else None
        self.debt = None
        if cell == debt.stood:
            self.same_cell(debt, said)
            return "ok"
        if not self.grid.inside(cell):
            if not self.grid.inside(debt.beyond):
                self.doubt("another cell outside, the way out being undecided")
                self.persisted.append(debt.step)
                self.drift(cell)
                return None
        elif self.known(cell):
            if debt.kind == "phantom":
                self.open_marks.add(debt.step)
            self.stayed.append(debt.step)
            self.jump(cell)
            return "ok"
        self.open_marks.add(debt.step)
        if self.grid.inside(debt.beyond) and debt.beyond not in self.visited:
            self.doubtful.add(debt.beyond)
        if not self.grid.inside(cell):
            return "phantom_cell"
        self.land(cell)
        return "teleport"

    def same_cell(self, debt: Debt, said: Saying) -> None:
        """The step stands where the error was made."""
        direction = said.direction
        if direction is None and said.to is not None:
            direction = way(debt.stood, said.to)
            if not self.grid.joined(debt.stood, said.to) and (
                said.to != debt.beyond or self.known(said.to)
            ):
                self.doubt("an arrow from the undecided cell to no open neighbour")
        if debt.kind != "wall":
            self.doubt("the same cell after an error, no wall, that led outside")
        if direction == debt.direction:
            self.open_marks.add(debt.step)
            return
        if direction not in SHIFT:
            self.open_marks.add(debt.step)
        self.stayed.append(debt.step)
        if direction is not None and self.grid.open(debt.stood, direction):
            if said.to not in (None, beside(debt.stood, direction)):
                self.doubt("a correction with a destination that contradicts it")
            self.correct(debt)

    def stand(self, cell: Cell | None, said: Saying) -> str | None:
        """Judge the standing cell; None: outside, not judged."""
        if self.debt is not None:
            return self.settle(self.debt, cell, said)
        if cell is None or cell == self.here:
            if not self.grid.inside(self.here):
                return None
            self.visited.add(self.here)
            return "ok"
        if not self.grid.inside(cell):
            if self.grid.inside(self.here):
                return "phantom_cell"
            self.drift(cell)
            return None
        if self.known(cell):
            self.jump(cell)
            return "ok"
        self.land(cell)
        return "teleport"

    # -- the three forms of a claim ------------------------------------------------------------

    def feed(self, said: Saying) -> None:
        self.jumped = False
        self.confidence = said.confidence
        if self.cloud is not None:
            reason, self.cloud = self.cloud, None
            self.doubt(reason)
        if said.cell is None and said.direction is None:
            assert said.to is not None
            self.bare(said.to)
        elif said.direction is None:
            self.arrow(said)
        else:
            self.full(said)

    def full(self, said: Saying) -> None:
        """A direction, from a cell that is named or not."""
        standing = self.stand(said.cell, said)
        assert said.direction is not None
        if standing in (None, "phantom_cell"):
            place = self.here if standing is None else said.cell
            assert place is not None
            belief = said.to or place
            if said.direction in SHIFT:
                belief = beside(place, said.direction)
                if said.to not in (None, belief):
                    assert said.to is not None
                    belief = said.to
                    self.cloud = "a contradicting destination outside the grid"
            self.off_grid(standing, belief, said.direction)
        elif said.direction not in SHIFT:
            self.phantom_direction(said.to, "teleport" if standing == "teleport" else None, said)
        elif said.to not in (None, beside(self.here, said.direction)):
            self.contradiction(said.direction, said.to)
        elif self.grid.open(self.here, said.direction):
            self.move(said.direction)
            self.write(standing)
        else:
            self.owe(self.here, beside(self.here, said.direction), said.direction, "wall")
            self.write("teleport" if standing == "teleport" else "wall")

    def off_grid(self, standing: str | None, belief: Cell, direction: str | None) -> None:
        """A step that stands outside: the first one is an error, the others are not judged."""
        self.running = False
        if standing is None:
            self.drift(belief)
        else:
            self.owe(self.here, belief, direction, "phantom")
            if self.grid.inside(belief):
                self.cloud = "a step that stands outside and leads inside"
        self.write(standing)

    def phantom_direction(self, to: Cell | None, verdict: str | None, said: Saying) -> None:
        self.running = False
        if to is not None and not self.grid.inside(to):
            self.owe(self.here, to, said.direction, "outside")
        elif to is not None and to != self.here:
            self.go(to)
        self.write(verdict or "phantom_direction")

    def contradiction(self, direction: str, to: Cell | None) -> None:
        """The destination is not where the direction leads: the walk goes on from it."""
        assert to is not None
        a = self.here
        self.running = False
        if not self.grid.open(a, direction):
            self.cloud = "a closed side and a contradicting destination"
        else:
            if (a, direction) in self.made | self.made_doubtful:
                self.slack["loops"] += 1
            self.made_doubtful.add((a, direction))
            self.slack["wrong_turns"] += a in self.grid.on_solution
        if self.grid.inside(to):
            self.go(to)
        else:
            self.owe(a, to, direction, "outside")
        self.write("teleport")

    def arrow(self, said: Saying) -> None:
        """`(a) → (b)`: stand on a, then b is read from there."""
        undecided = self.debt is not None
        assert said.to is not None
        believed = self.debt.beyond if self.debt is not None else self.here
        if said.cell == said.to == believed and not self.grid.inside(believed):
            if self.debt is not None:
                self.persist(self.debt)
            return  # it names the place outside where the walk is: nothing
        standing = self.stand(said.cell, said)
        if standing in (None, "phantom_cell"):
            self.off_grid(standing, said.to, None)
        elif said.to == self.here:
            if undecided or self.jumped or standing == "teleport":
                self.doubt("an arrow to the cell itself that is more than nothing")
                self.write(standing)
        elif standing == "teleport":
            joined = self.grid.joined(self.here, said.to)
            if not self.grid.inside(said.to) or (not joined and self.known(said.to)):
                self.doubt("a teleport whose bare destination is outside or visited")
            self.read(said.to, "teleport")
        else:
            self.read(said.to, None)

    def bare(self, cell: Cell) -> None:
        """A cell and nothing else."""
        debt = self.debt
        if debt is not None:
            self.bare_undecided(debt, cell)
        elif cell == self.here:
            self.visited.update([cell] if self.grid.inside(cell) else [])
        else:
            self.read(cell, None)

    def bare_undecided(self, debt: Debt, cell: Cell) -> None:
        near = self.grid.joined(debt.stood, cell)
        if debt.kind != "wall" and (cell == debt.stood or near):
            self.doubt("a bare cell at the place before an error that led outside")
        if cell == debt.beyond:
            self.persist(debt)
        elif cell == debt.stood:
            pass
        elif self.grid.joined(debt.beyond, cell):
            self.persist(debt)
            self.read(cell, None)
        elif near:
            self.debt = None
            self.stayed.append(debt.step)
            self.correct(debt)
            self.read(cell, None)
        elif self.grid.inside(cell) and self.known(cell):
            self.debt = None
            self.stayed.append(debt.step)
            self.jump(cell)
            self.write("ok")
        else:
            self.persist(debt)
            self.read(cell, None)

    def read(self, cell: Cell, verdict: str | None) -> None:
        """A bare destination, read from `here`; `verdict` is an error that is already certain."""
        direction = way(self.here, cell)
        if not self.grid.inside(self.here):
            self.running = False
            if self.grid.inside(cell):
                self.doubt("a bare cell inside while the walk is outside")
                if cell in self.visited:
                    self.jump(cell)
                    self.write("ok")
                    return
            self.drift(cell)
            self.write(None)
        elif direction is not None and self.grid.open(self.here, direction):
            self.move(direction)
            self.write(verdict or "ok")
        elif self.grid.inside(cell) and self.known(cell):
            self.jump(cell)
            self.write(verdict or "ok")
        elif not self.grid.inside(cell):
            self.owe(self.here, cell, direction, "outside")
            self.write(verdict or "phantom_cell")
        elif direction is not None:
            self.owe(self.here, cell, direction, "wall")
            self.write(verdict or "wall")
        else:
            self.running = False
            self.go(cell)
            self.write("teleport")


def judge_steps(grid: Grid, steps: Iterable[Any], strict: bool = True) -> Walker:
    """Judge a walk; a strict one raises `Open` where the specification is open."""
    walker = Walker(grid, strict)
    for step in steps:
        walker.feed(Saying(step.cell, step.direction, step.to, step.confidence))
    return walker


def decided(grid: Grid, steps: Sequence[Any]) -> tuple[Walker, int]:
    """The longest beginning of a walk that the specification decides, and its length."""
    walker = Walker(grid)
    for i, step in enumerate(steps):
        try:
            walker.feed(Saying(step.cell, step.direction, step.to, step.confidence))
        except Open:
            return judge_steps(grid, steps[:i]), i
    return walker, len(steps)


def judge_path(
    grid: Grid, path: Sequence[Cell], confidences: Sequence[float | None] = (), strict: bool = True
) -> Walker:
    """Judge the moves of a FINAL_PATH."""
    w = Walker(grid, strict)
    for i in range(1, len(path)):
        a, b = path[i - 1], path[i]
        w.confidence = confidences[i - 1] if i <= len(confidences) else None
        direction = way(a, b)
        if i == 1 and a != grid.start and grid.inside(a):
            w.land(a)
            if not grid.inside(b):
                w.doubt("a path that begins elsewhere and leaves the grid at once")
        if not grid.inside(a):
            w.running = False
            w.drift(b)
            w.write("phantom_cell" if i == 1 else None)
            w.open_marks.add(i)
            continue
        w.here = a
        astray = "teleport" if i == 1 and a != grid.start else None
        w.visited.add(a)
        if direction is not None and grid.open(a, direction):
            w.move(direction)
            w.write(astray or "ok")
            continue
        w.running = False
        if not grid.inside(b):
            w.drift(b)
            w.open_marks.add(i)
            w.write(astray or "phantom_cell")
        elif direction is None:
            w.go(b)
            w.write("teleport")
        else:
            if i < len(path) - 1:
                w.persisted.append(i)
            w.go(b)
            w.write(astray or "wall")
    return w


def path_valid(grid: Grid, path: Sequence[Cell]) -> bool:
    """Begins at the start, goes through openings only, ends at the exit."""
    return (
        len(path) > 1
        and path[0] == grid.start
        and path[-1] == grid.goal
        and all(grid.joined(a, b) for a, b in pairwise(path))
    )


def metrics(grid: Grid, walk: Walker, path: Walker | None, valid: bool) -> dict[str, Any]:
    """Section 6, line by line. `walk` is the path's own when the answer has no STEP."""
    readable = bool(walk.verdicts) or bool(path and path.verdicts)
    hc = max(walk.hallucinations, path.hallucinations if path else 0)
    fhr = walk.first_hallucination
    if fhr == -1 and path:
        fhr = path.first_hallucination
    bt, lt, sr = walk.backtracks, walk.loops, int(valid)
    unharmed = 1.0 if sr == 1 else 0.0
    hrr = min(1.0, bt / max(hc, 1)) if hc > 0 else unharmed
    early = max(0.0, 1 - fhr / grid.size**2) if fhr > 0 else unharmed
    esc = 1 if (lt > 0 and bt > 0) or sr == 1 else 0
    mei = min(1.0, max(0.0, 0.4 * hrr + 0.3 * early + 0.2 * esc - 0.1 * min(1, hc / 10)))
    gaps = [
        abs(c / 100 - (v == "ok"))
        for c, v in zip(walk.confidences, walk.verdicts, strict=True)
        if c is not None and v is not None
    ]
    ce = sum(gaps) / len(gaps) if gaps else None
    brs = 1.0 if hc == 0 and sr == 1 else max(0.0, 1 - hc / max(1, bt + hc))
    score = 0.5 * mei + 0.3 * (1 - (0.5 if ce is None else ce)) + 0.2 * brs
    if not readable:
        sr, mei, brs, score = 0, 0.0, 0.0, 0.0
    return {
        "readable": readable,
        "sr": sr,
        "mei": mei,
        "ce": ce,
        "brs": brs,
        "hallumaze_score": score,
        "hallucination_count": hc,
        "first_hallucination_step": fhr,
        "backtrack_count": bt,
        "loop_count": lt,
        "hrr": hrr,
        "early": early,
        "esc": esc,
        "path_valid": valid,
    }


# -- a reader for answers that keep to the format, to check the hand-made cases here as well -------

_CELL = re.compile(r"\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)")
_STEP = re.compile(r"(?:STEP|단계) (\d+): (.*)")
_ARROWS = {"N↑": "N", "E→": "E", "S↓": "S", "W←": "W", "동쪽": "E", "남쪽": "S", "East": "E"}


def _cells(text: str) -> list[Cell]:
    return [(int(r), int(c)) for r, c in _CELL.findall(text)]


def _log(text: str) -> dict[int, float]:
    line = re.search(r"CONFIDENCE_LOG: (.*)", text)
    pairs = re.findall(r"step(\d+):(\d+)", line.group(1)) if line else []
    return {int(n): float(c) for n, c in pairs}


def read_plain(text: str) -> tuple[list[Saying], list[Cell], list[float | None]]:
    """STEPs, FINAL_PATH and the log by place, of an answer that keeps to the format."""
    log = _log(text)
    steps = []
    for number, body in _STEP.findall(text):
        claim, *fields = [part.strip() for part in body.split("|")]
        stated = next((re.search(r"(\d+)%", f) for f in fields if re.search(r"\d+%", f)), None)
        confidence = float(stated.group(1)) if stated else log.get(int(number))
        parts = [p.strip() for p in claim.split(" → ")]
        named = [_cells(p)[0] if _cells(p) else None for p in parts]
        words = [
            _ARROWS.get(p, p.upper())
            for p, c in zip(parts, named, strict=True)
            if c is None and p not in ("EXIT", "도착")
        ]
        destinations = [c for c in named[1:] if c]
        if words:
            to = destinations[0] if destinations else None
            steps.append(Saying(named[0], words[0], to, confidence))
        elif destinations:
            steps.append(Saying(named[0], None, destinations[0], confidence))
        else:
            steps.append(Saying(None, None, named[0], confidence))
    line = re.search(r"FINAL_PATH: (.*)", text)
    path = _cells(line.group(1)) if line else []
    by_place = [log.get(i) for i in range(1, len(path))] if not steps else []
    return steps, path, by_place
