#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = [
#     "anthropic>=2,<3", "openai>=3,<4", "google-genai>=2.33,<4", "rich>=13,<16", "filelock>=3,<5",
#     "genai-prices>=0.1.13,<0.3", "scipy>=1.15,<2"
# ]
# ///
"""HalluMaze: when a language model is wrong, does it know, and does it get out again?

    python hallumaze.py --size 7 --seed 42                  every provider whose key is set
    python hallumaze.py --model openai/gpt-4o --seeds 1-60  one model, sixty mazes
    python hallumaze.py --size 7 --seed 42 --show           the maze and the exact prompt, no call
    python hallumaze.py --world wiki                        walks over the links of pages instead

A model gets a text maze with exactly one way out and seductive hints on the wrong branches. It
writes down its walk; every claim in that walk is checked against the maze. DOCUMENTATION.md says
what every number means. The sections of this file follow the way the data flows, and each uses
only those above it:

     1 vocabulary      6 judging           11 command line
     2 worlds          7 intervention      12 data: phrases and words in two languages
     3 prompts         8 running
     4 providers       9 statistics
     5 reading        10 output

Glossary: N is the size of a maze; r, c are row and column, from 0; a cell is (r, c); a direction
is one of N E S W; a page is known by its title, and so is a move to it. A claim is what an answer
says, a verdict what the world says about it, a walk the verdicts in order. A trial is one model in
one world under one condition, once.
"""

from __future__ import annotations

import argparse
import csv
import errno
import gc
import getpass
import glob
import gzip
import hashlib
import html
import importlib.util
import io
import json
import math
import os
import platform
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
import unicodedata
import warnings
import zlib
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from functools import cache, cached_property, lru_cache, partial
from itertools import combinations, islice, pairwise, product, takewhile, zip_longest
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread, local
from typing import (
    Any,
    BinaryIO,
    ClassVar,
    NamedTuple,
    Protocol,
    TextIO,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import quote, unquote, urlsplit

__version__ = "2.0.0"

# =================================================================================================
# 1  Vocabulary
# =================================================================================================

BENCHMARK_VERSION = "1.1"  # whose metrics these are (the HalluMaze v1.1 document)
SCHEMA_VERSION = 2  # of the result file
JOURNAL_VERSION = 2

DIRECTIONS = "NESW"  # always listed in this order
ARROWS = {"N": "↑", "E": "→", "S": "↓", "W": "←"}
MOVES = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}

_LETTER_OF = {move: letter for letter, move in MOVES.items()}

STANDARD_SIZES = (5, 7, 9, 11)
SMALLEST, LARGEST = 2, 201
RETRIES, TIMEOUT_S = 4, 300.0  # of a call, unless the run says otherwise
BATCH_WAIT_S = 24 * 3600.0  # the vendors' promise for a batch
CONCURRENCY = 8  # calls of one model at once, unless the run says otherwise
MIRAGES = ("trap", "balanced", "off")
GROUPS = ("A", "B", "C")
ALL_GROUPS = "ALL"  # each trial once in each of them
LANGUAGES = ("ko", "en")
WORLDS = ("maze", "wiki")
PROBES = ("none", "links")  # questions beside the walks over pages
PROBED_PAIRS = 1_000
PROTOCOLS = ("plan", "step")  # the whole walk in one answer (v1.1), or one move at a time
VIEWS = ("local", "map")  # what a game shows: the open sides of a place, or the whole listing too
MEMORIES = ("chat", "history", "none")  # of a game: the conversation, the places visited, neither
PLANTS = ("none", "wall", "branch", "loop")  # the wrong step that a trial opens with
PLANT_FORMS = ("own", "other")  # as the model's own earlier turn, or as a colleague's notes
BOTH_FORMS = "both"
MOST_HINTS = 3  # of one game
MOST_MOVES = 10**6
ASKED_AGAIN = 2  # times, when an answer of a game holds no move

MOST_LINKS = 50  # of a page that are shown
DIFFICULTIES = {"easy": (3, 4), "medium": (5, 6), "hard": (7, 8)}  # shortest distances
GAMES = {"easy": 200, "medium": 150, "hard": 100}  # of a run

# The verdicts on a step; every one but "ok" is a hallucination.
OK, WALL, TELEPORT = "ok", "wall", "teleport"
PHANTOM_CELL, PHANTOM_DIRECTION = "phantom_cell", "phantom_direction"

# What an answer may say about itself, in the order in which results list it.
SIGNALS = ("dead end", "backtracking", "loop detected", "strategy_change")
DEAD_END_SIGNAL, BACKTRACKING_SIGNAL, LOOP_SIGNAL, STRATEGY_SIGNAL = SIGNALS
ERROR_WORD = "error word"  # wrong, mistake, 틀렸 …: it admits a hallucination, and is no signal

# What may go wrong in a walk, and how a trial ended as a whole, the first that applies.
EVENTS = ("dead_end", "loop", "hallucination")
DEAD_END, LOOP, HALLUCINATION = EVENTS
FAILURE_MODES = (
    "solved",
    "truncated",
    "refused",
    "unreadable",
    "mirage_undetected",
    "detected_not_repaired",
    "loop_trapped",
    "gave_up",
    "other",
)
# Hallucination tiers: what exists nowhere, and what exists but not here.
TIERS = {"atomic": (PHANTOM_CELL, PHANTOM_DIRECTION), "scope_bound": (WALL, TELEPORT)}

# How a trial ended.
ANSWERED, UNREADABLE, TRUNCATED, REFUSED, ERROR = (
    "ok",
    "unreadable",
    "truncated",
    "refused",
    "error",
)

# Exit codes of the command.
EXIT_OK, EXIT_ERRORS, EXIT_USAGE, EXIT_REGRESSION = 0, 1, 2, 3
EXIT_NOT_WIRED, EXIT_LOCKED, EXIT_INTERRUPTED = 70, 75, 130

Place = Hashable  # a place in any world: a cell of the maze
Cell = tuple[int, int]
T = TypeVar("T")
K = TypeVar("K", bound=tuple[Any, ...])
N = TypeVar("N", int, float)
Message = dict[str, str]  # {"role": "user" or "assistant", "content": text}


class HalluMazeError(Exception):
    """The root of all errors that a user is told in one line; `exit_code` ends the command."""

    exit_code = EXIT_ERRORS


class UsageError(HalluMazeError):
    """Wrong use or configuration: nothing was sent."""

    exit_code = EXIT_USAGE


class LockedError(HalluMazeError):
    """Another run works in the same results folder."""

    exit_code = EXIT_LOCKED


class NotWiredError(HalluMazeError):
    """A provider that is a stub: whatever it "answers" is no measurement, so nothing is written."""

    exit_code = EXIT_NOT_WIRED


class ProviderError(HalluMazeError):
    """A call that failed for reasons outside the model (network, key, quota, server).

    status: the HTTP status, or None where no answer came. retryable: whether the same call may
    succeed later.
    """

    def __init__(self, text: str, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class MazeConfig:
    """What shapes a maze, its prompt and a call. The first five fields and their defaults: v1.1.

    size: cells per side. use_mirage: print hints. use_confidence: ask for a confidence per step.
    ariadne_mode: intervention group A, B or C, or ALL of them. max_tokens: of one answer. mirage:
    "trap" (hints on wrong branches only, v1.1) or "balanced" (as many on right ones). lang: of the
    prompt.
    temperature: None leaves it to the server. timeout: of one request, in seconds. retries: of a
    call that failed on the way.
    protocol, view, memory: one of PROTOCOLS, VIEWS, MEMORIES. step_budget: the moves of a game,
    None for 2·N². most_hints: of one game. hint_at: the move after which group C has its hint, None
    for N. plant: one of PLANTS, in the form plant_as, one of PLANT_FORMS or BOTH_FORMS.
    world: one of WORLDS. difficulty: of walks over pages, one of DIFFICULTIES. max_links: of a page
    that are shown. graph: where it lies, "" for the atlas. probe: one of PROBES.
    """

    size: int = 7
    use_mirage: bool = True
    use_confidence: bool = True
    ariadne_mode: str = "A"
    max_tokens: int = 2500
    mirage: str = "trap"
    algorithm: str = "dfs"
    lang: str = "ko"
    temperature: float | None = 0.0
    reasoning_effort: str | None = None
    timeout: float = TIMEOUT_S
    retries: int = RETRIES
    protocol: str = "plan"
    view: str = "local"
    memory: str = "chat"
    step_budget: int | None = None
    most_hints: int = MOST_HINTS
    hint_at: int | None = None
    plant: str = "none"
    plant_as: str = "own"
    world: str = "maze"
    difficulty: str = "easy"
    max_links: int = MOST_LINKS
    graph: str = ""
    probe: str = "none"

    @property
    def groups(self) -> tuple[str, ...]:
        """The intervention groups of the run."""
        return GROUPS if self.ariadne_mode == ALL_GROUPS else (self.ariadne_mode,)

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms of the planted error in the run; ("",) without one."""
        if self.plant == "none":
            return ("",)
        return PLANT_FORMS if self.plant_as == BOTH_FORMS else (self.plant_as,)

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """What a model plays each maze under: (group, form of the planted error)."""
        return tuple(product(self.groups, self.forms))

    @property
    def hints(self) -> str:
        """The kind of hints that the prompt has: one of MIRAGES."""
        return self.mirage if self.use_mirage else "off"


class Claim(NamedTuple):
    """One STEP as it was written.

    line: where in the answer, from 0. number: the one the model wrote. cell: where it says it
    stands; None when it does not say. direction: N, E, S or W, or another word that claims to be
    one ("NE", "FORWARD"). to: the destination it names; a STEP that names a cell only has it here
    and nothing else. confidence: 0..100.
    """

    line: int
    number: int | None = None
    cell: Place | None = None
    direction: str | None = None
    to: Place | None = None
    confidence: float | None = None


class Signal(NamedTuple):
    """What an answer says about itself: `kind` is one of SIGNALS, or ERROR_WORD with a cell that
    stands on the same line; `step` is the step that it refers to."""

    line: int
    kind: str
    cell: Place | None = None
    step: int | None = None


def declared_kinds(signals: Iterable[Signal]) -> list[str]:
    """The kinds of the signals, each once, in the order of SIGNALS."""
    declared = {signal.kind for signal in signals}
    return [kind for kind in SIGNALS if kind in declared]


@dataclass(frozen=True, slots=True)
class Answer:
    """All that was read out of one answer; nothing of it is verified yet.

    final_path: () when no path of at least two cells was readable. path_confidence: the
    CONFIDENCE_LOG by the moves of final_path, when the answer has no STEP line. malformed_lines:
    echoes of the prompt and STEP lines that are no move. text, reasoning: the answer without its
    thinking, and the thinking. truncated: the thinking was cut before an answer came.
    """

    steps: tuple[Claim, ...] = ()
    signals: tuple[Signal, ...] = ()
    final_path: tuple[Place, ...] = ()
    path_confidence: tuple[float | None, ...] = ()
    declared_backtracks: int | None = None
    declared_hallucinations: int | None = None
    malformed_lines: int = 0
    text: str = ""
    reasoning: str = ""
    truncated: bool = False

    @property
    def format_ok(self) -> bool:
        """Whether a FINAL_PATH and at least one STEP were readable."""
        return bool(self.steps) and bool(self.final_path)

    @property
    def declared_loops(self) -> int:
        """How many loops the answer says it found."""
        return sum(signal.kind == LOOP_SIGNAL for signal in self.signals)

    @property
    def metacog_signals(self) -> list[str]:
        """Which of the four kinds of signal were declared (v1.1)."""
        return declared_kinds(self.signals)


class Verdict(NamedTuple):
    """What the world says about one accepted step.

    step: its place among the accepted steps, from 1. cell: where it stood; None when it named a
    cell only. verdict: OK, WALL, TELEPORT, PHANTOM_CELL or PHANTOM_DIRECTION; None for a step
    outside the world, which is not judged. line: where in the answer it stands.
    """

    step: int
    cell: Place | None
    direction: str | None
    confidence: float | None
    verdict: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A verified walk: its verdicts and the events in them, as step numbers in rising order.

    backtracks: the step at which each run of going back began. retreats: every step that goes
    back, jumps back or withdraws a claim. loops, wrong_turns, dead_ends: the steps that are one
    (dead_ends with the cell). persisted, stayed, corrected: the erring steps whose claim the walk
    went on to believe, did not follow, or withdrew. moves: (from, to) of each legal move by step.
    places: where the walk stood after each step. erred: the places that each hallucination names,
    where it stood among them. written: whether the steps stand in the answer as STEPs; else they
    are the moves of a path. origin: where it began. A planted error counts as step 0 in persisted
    and stayed.
    """

    verdicts: tuple[Verdict, ...]
    backtracks: tuple[int, ...]
    retreats: tuple[int, ...]
    loops: tuple[int, ...]
    wrong_turns: tuple[int, ...]
    dead_ends: tuple[tuple[int, Place], ...]
    persisted: tuple[int, ...]
    stayed: tuple[int, ...]
    corrected: tuple[int, ...]
    moves: Mapping[int, tuple[Place, Place]]
    places: tuple[Place, ...] = ()
    erred: Mapping[int, frozenset[Place]] = field(default_factory=dict)
    written: bool = True
    origin: Place | None = None

    @property
    def errors(self) -> tuple[int, ...]:
        """The steps that are hallucinations."""
        return tuple(v.step for v in self.verdicts if v.verdict not in (OK, None))

    @property
    def hallucinations(self) -> int:
        """How many steps are hallucinations."""
        return len(self.errors)

    @property
    def first_hallucination(self) -> int:
        """The first step that is one, from 1; -1 if none is."""
        return next(iter(self.errors), -1)


class Plant(NamedTuple):
    """The beginning of a walk that holds one wrong step, its last but for steps into a branch.

    kind: one of PLANTS. steps: STEPs as a model would write them. wrong: the number of the wrong
    one, from 1. stood, aimed: where that stands, and where it leads or would lead.
    """

    kind: str
    steps: tuple[Claim, ...]
    wrong: int
    stood: Place
    aimed: Place


# =================================================================================================
# 2  Worlds
# =================================================================================================


class World(Protocol):
    """A graph whose truth we hold, with one walk through it to find. Places are hashable values."""

    @property
    def start(self) -> Place: ...
    @property
    def goal(self) -> Place: ...
    @property
    def budget(self) -> int:
        """The number of steps that the formulas of v1.1 are normed by (N² in a maze)."""

    def exists(self, place: Place) -> bool:
        """Whether the place is anywhere in this world."""

    def neighbours(self, place: Place) -> Sequence[Place]:
        """The places that one legal move leads to from an existing place."""

    def distance(self, place: Place) -> int:
        """The moves from an existing place to the goal."""

    def on_solution(self, place: Place) -> bool:
        """Whether the place lies on a shortest walk from start to goal."""

    def destination(self, place: Place, direction: str) -> Place | None:
        """Where the direction would lead, wall or no wall; None for a word that is no direction."""

    def direction(self, place: Place, other: Place) -> str | None:
        """The direction of a step from one place to the other; None when no step can join them."""


class TextWorld(World, Protocol):
    """A world that can be told in a text and played.

    Its kind chooses the words of its prompts, the reader of its moves and its reference agents; all
    else that depends on it stands in its class.
    """

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int:
        """With seed and algorithm, what tells it from every other world of its kind."""

    @property
    def seed(self) -> int: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of its truth."""

    @property
    def moves(self) -> int:
        """The moves of a game, unless the run says otherwise."""

    @property
    def hint_move(self) -> int:
        """After which move group C has its hint, unless the run says otherwise."""

    @property
    def solution(self) -> Sequence[Place]:
        """A shortest walk from start to goal, both included."""

    @property
    def unread(self) -> Claim | None:
        """The move that an answer without a readable one counts as; None when it is no move."""

    @property
    def junctions(self) -> Sequence[tuple[Place, str, list[str]]]:
        """The solution's places where hints may stand: the place, the right way, the wrong ones."""

    def closed(self, place: Place) -> Sequence[Place]:
        """Places next to an existing one that no legal move leads to from there."""

    def mirages(self, mirage: str) -> Sequence[Mirage]:
        """The hints of that kind."""

    def hint_texts(self, mirage: str, lang: str) -> Mapping[Place, str]:
        """What the hints of that kind add to the lines of their places."""

    def encode_text(self, use_mirage: bool, lang: str, mirage: str) -> str:
        """The whole of it as a text; UsageError where there is too much of it."""

    def header(self) -> list[str]:
        """The lines that say which one it is."""

    def facts(self, lang: str) -> dict[str, str]:
        """What the rules of a game say of it."""

    def line(self, place: Place, lang: str) -> str:
        """A place and what is open there, without hints."""

    def drawing(self, mirage: str) -> str:
        """It, with a shortest walk, for people."""

    def percentile(self, place: Place) -> float | None:
        """The share of places with fewer ways out, 0..1; None where that tells nothing."""

    def describe(self, mirage: str) -> dict[str, Any]:
        """It, as the result file holds it."""

    def fields(self) -> dict[str, Any]:
        """It, as a trial of the result file names it."""

    def stream(self, name: str) -> random.Random:
        """A seeded stream of its own, so that one use of chance never shifts another."""


class Task(ABC):
    """What a model is asked that is no walk.

    Its kind chooses the writer of its prompt (TASK_PROMPTS) and the judge of its answer
    (TASK_JUDGES); all else that depends on it stands in its class.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def sha256(self) -> str:
        """SHA-256 (hex) of its truth."""

    @abstractmethod
    def describe(self, mirage: str) -> dict[str, Any]:
        """It, as the result file holds it."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """It, as a trial of the result file names it."""


Problem = TextWorld | Task  # what a trial is about


def place_text(place: Any) -> str:
    """A place as texts write it: a cell (r,c), or its name."""
    return _cell_text(place) if isinstance(place, tuple) else str(place)


def way_text(direction: str | None) -> str:
    """A direction as texts write it: E→, or its name."""
    return f"{direction or ''}{ARROWS.get(direction or '', '')}"


# A cell's openings are four bits. A maze is one flat list of them, rows of N + 1 entries: the last
# of each row, and a row below the last, are no cells, so that a step over the border lands there.
_BIT = {"N": 1, "E": 2, "S": 4, "W": 8}
_OPPOSITE = (0, 4, 8, 0, 1, 0, 0, 0, 2)
_LETTERS = tuple("".join(d for d in DIRECTIONS if mask & _BIT[d]) for mask in range(16))
_WAYS = tuple(tuple(MOVES[d] for d in letters) for letters in _LETTERS)
_LISTED = {letters: " ".join(d + ARROWS[d] for d in letters) for letters in _LETTERS}


def _pick_table() -> tuple[int, ...]:
    """For each set of directions, 12 entries that hold each of its members equally often."""
    rows: list[int] = []
    for mask in range(16):
        bits = [bit for bit in (1, 2, 4, 8) if mask & bit] or [0]
        rows.extend(bits[k * len(bits) // 12] for k in range(12))
    return tuple(rows)


_PICK = _pick_table()


@lru_cache(maxsize=16)
def _blank(size: int) -> tuple[int, ...]:
    """For each entry of the flat list, the sides of the cell that have a neighbour."""
    last = size - 1
    rows: list[int] = []
    for r in range(size):
        vertical = (1 if r else 0) | (4 if r < last else 0)
        rows.extend(vertical | (8 if c else 0) | (2 if c < last else 0) for c in range(size))
        rows.append(0)
    return (*rows, *[0] * (size + 1))


@lru_cache(maxsize=16)
def _offsets(size: int) -> tuple[tuple[int, ...], ...]:
    """For each set of openings, how far in the flat list the cells behind them lie."""
    step = ((1, -size - 1), (2, 1), (4, size + 1), (8, -1))
    return tuple(tuple(far for bit, far in step if mask & bit) for mask in range(16))


def _carve_dfs(size: int, rand: Callable[[], float]) -> list[int]:
    """Depth-first backtracker from the start: long corridors, few dead ends (v1.1)."""
    width = size + 1
    far = (0, -width, 1, 0, width, 0, 0, 0, -1)
    free = list(_blank(size))  # the sides of each cell behind which nobody has been
    openings = [0] * len(free)
    stack: list[int] = []
    cell = 0
    free[1] &= 7
    free[width] &= 14
    while True:
        sides = free[cell]
        while sides:
            side = _PICK[sides * 12 + int(rand() * 12)]
            if side != sides:  # a cell with nothing left is no place to come back to
                stack.append(cell)
            openings[cell] |= side
            cell += far[side]
            openings[cell] |= _OPPOSITE[side]
            free[cell - width] &= 11
            free[cell + 1] &= 7
            free[cell + width] &= 14
            free[cell - 1] &= 13
            sides = free[cell]
        if not stack:
            return openings
        cell = stack.pop()


def _carve_wilson(size: int, rand: Callable[[], float]) -> list[int]:
    """Loop-erased random walks: every spanning tree is equally likely."""
    far = (0, -size - 1, 1, 0, size + 1, 0, 0, 0, -1)
    sides = _blank(size)
    openings = [0] * len(sides)
    inside = bytearray(len(sides))
    inside[0] = 1
    for first in (r * (size + 1) + c for r in range(size) for c in range(size)):
        leave: dict[int, int] = {}  # the last way out of each cell of the walk: loops are forgotten
        cell = first
        while not inside[cell]:
            leave[cell] = side = _PICK[sides[cell] * 12 + int(rand() * 12)]
            cell += far[side]
        cell = first
        while not inside[cell]:
            side = leave[cell]
            inside[cell] = 1
            openings[cell] |= side
            cell += far[side]
            openings[cell] |= _OPPOSITE[side]
    return openings


def _carve_kruskal(size: int, rand: Callable[[], float]) -> list[int]:
    """Walls fall in random order wherever they part two trees: many short dead ends."""
    width = size + 1
    sides = _blank(size)
    walls = [(cell, side) for cell, mask in enumerate(sides) for side in (2, 4) if mask & side]
    for k in range(len(walls) - 1, 0, -1):
        j = int(rand() * (k + 1))
        walls[k], walls[j] = walls[j], walls[k]
    openings = [0] * len(sides)
    parent = list(range(len(sides)))

    def root(cell: int) -> int:
        while parent[cell] != cell:
            parent[cell] = cell = parent[parent[cell]]
        return cell

    for cell, side in walls:
        other = cell + (1 if side == 2 else width)
        here, there = root(cell), root(other)
        if here != there:
            parent[here] = there
            openings[cell] |= side
            openings[other] |= _OPPOSITE[side]
    return openings


def _carve_prim(size: int, rand: Callable[[], float]) -> list[int]:
    """One tree grows at a random edge of itself: short branches everywhere."""
    far = (0, -size - 1, 1, 0, size + 1, 0, 0, 0, -1)
    sides = _blank(size)
    openings = [0] * len(sides)
    inside = bytearray(len(sides))
    inside[0] = 1
    edges = [(0, 2), (0, 4)]
    while edges:
        k = int(rand() * len(edges))
        edges[k], edges[-1] = edges[-1], edges[k]
        cell, side = edges.pop()
        other = cell + far[side]
        if not inside[other]:
            inside[other] = 1
            openings[cell] |= side
            openings[other] |= _OPPOSITE[side]
            edges.extend((other, new) for new in (1, 2, 4, 8) if sides[other] & new)
    return openings


_CARVERS: dict[str, Callable[[int, Callable[[], float]], list[int]]] = {
    "dfs": _carve_dfs,
    "wilson": _carve_wilson,
    "kruskal": _carve_kruskal,
    "prim": _carve_prim,
}
ALGORITHMS = tuple(_CARVERS)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Mirage(NamedTuple):
    """A hint: a phrase (by its number) that makes a direction of a cell feel near the exit."""

    cell: Cell
    direction: str
    phrase: int
    right: bool  # on the solution (only with "balanced"), not on a wrong branch


class MazeEngine:
    """A perfect maze: exactly one simple path between any two cells (v1.1 section 5).

    size: 2..201 cells per side. seed: a whole number from 0; None draws one and records it. The
    same (size, seed, algorithm) is the same maze on every machine and Python version. Implements
    `World`; a place is a cell (r, c).

    Raises ValueError for a size, seed or algorithm that is none.
    """

    def __init__(self, size: int = 7, seed: int | None = None, algorithm: str = "dfs") -> None:
        if not (_is_whole(size) and SMALLEST <= size <= LARGEST):
            raise ValueError(f"size must be {SMALLEST}..{LARGEST}, not {size!r}")
        if seed is not None and not (_is_whole(seed) and seed >= 0):
            raise ValueError(f"seed must be a whole number from 0, not {seed!r}")
        if algorithm not in _CARVERS:
            raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
        self.size = size
        self.seed = _fresh_seed() if seed is None else seed
        self.algorithm = algorithm
        self._walls = self._generate()
        self.solution_path = self._solve()

    @classmethod
    def from_openings(
        cls, openings: Sequence[str], seed: int = 0, algorithm: str = "dfs"
    ) -> MazeEngine:
        """The maze with these openings, as `openings()` lists them, whoever generated it.

        Raises ValueError when they are not those of a perfect maze.
        """
        size = math.isqrt(len(openings))
        if size * size != len(openings) or not SMALLEST <= size <= LARGEST:
            raise ValueError(f"{len(openings)} cells are no square maze")
        maze = cls.__new__(cls)
        maze.size, maze.seed, maze.algorithm = size, seed, algorithm
        if any(cell not in _LETTERS for cell in openings):
            raise ValueError(f"the openings of a cell are letters of {DIRECTIONS}, in that order")
        masks = [_LETTERS.index(cell) for cell in openings]
        rows = (masks[r * size : (r + 1) * size] for r in range(size))
        maze._walls = [mask for row in rows for mask in (*row, 0)] + [0] * (size + 1)
        maze._check_perfect()
        maze.solution_path = maze._solve()
        return maze

    def _check_perfect(self) -> None:
        """A maze is perfect when its openings agree, stay inside, join all and are n - 1."""
        blank, far = _blank(self.size), _offsets(self.size)
        for cell, mask in enumerate(self._walls):
            agree = all(
                self._walls[cell + far[bit][0]] & _OPPOSITE[bit]
                for bit in (1, 2, 4, 8)
                if mask & bit & blank[cell]
            )
            if mask & ~blank[cell] or not agree:
                raise ValueError(f"the openings of cell {divmod(cell, self.size + 1)} lead nowhere")
        cells = self.size * self.size
        passages = sum(mask.bit_count() for mask in self._walls) // 2
        if passages != cells - 1 or len(self._flood((self.size - 1) * (self.size + 2))) != cells:
            raise ValueError("the openings are not those of a perfect maze")

    def _generate(self) -> list[int]:
        """The openings of every cell, as bits in the flat list."""
        return _CARVERS[self.algorithm](self.size, random.Random(self.seed).random)

    def _solve(self) -> list[list[int]]:
        """Breadth-first from the exit: the cells [r, c] from start to exit, both included."""
        width = self.size + 1
        openings, far = self._walls, _offsets(self.size)
        exit_ = (self.size - 1) * (width + 1)
        toward = [0] * len(openings)  # the next cell on the way to the exit
        toward[exit_] = -1
        queue = [exit_]
        for cell in queue:
            if not cell:
                break
            back = toward[cell]
            for step in far[openings[cell]]:
                if (other := cell + step) != back:
                    toward[other] = cell
                    queue.append(other)
        path = [[0, 0]]
        cell = 0
        while cell != exit_:
            cell = toward[cell]
            path.append([cell // width, cell % width])
        return path

    def _flood(self, source: int) -> dict[int, int]:
        """The moves from the source to every cell that can be reached, by flat index."""
        far = _offsets(self.size)
        moves = {source: 0}
        queue = [source]
        for cell in queue:
            for step in far[self._walls[cell]]:
                if (other := cell + step) not in moves:
                    moves[other] = moves[cell] + 1
                    queue.append(other)
        return moves

    # -- the world -------------------------------------------------------------------------------

    kind = "maze"
    unread = None
    start: Cell = (0, 0)

    @property
    def goal(self) -> Cell:
        """The exit: the last cell of the last row."""
        return self.size - 1, self.size - 1

    @property
    def budget(self) -> int:
        """N² (v1.1 norms the first hallucination by it)."""
        return self.size * self.size

    @property
    def moves(self) -> int:
        """2·N²: as many as an explorer needs at most."""
        return 2 * self.budget

    @property
    def hint_move(self) -> int:
        """N."""
        return self.size

    @cached_property
    def _links(self) -> dict[Place, tuple[Cell, ...]]:
        """The cells behind the open sides of each cell."""
        width = self.size + 1
        links: dict[Place, tuple[Cell, ...]] = {}
        for r in range(self.size):
            for c in range(self.size):
                ways = _WAYS[self._walls[r * width + c]]
                links[r, c] = tuple([(r + down, c + right) for down, right in ways])
        return links

    @cached_property
    def _distances(self) -> dict[Place, int]:
        width = self.size + 1
        flood = self._flood((self.size - 1) * (width + 1))
        return {(cell // width, cell % width): moves for cell, moves in flood.items()}

    @cached_property
    def solution(self) -> list[Cell]:
        """The cells from start to exit, both included."""
        return [(r, c) for r, c in self.solution_path]

    @cached_property
    def _solution(self) -> frozenset[Place]:
        return frozenset(self.solution)

    def exists(self, place: Place) -> bool:
        """Whether the cell lies in the grid."""
        return place in self._links

    def neighbours(self, place: Place) -> tuple[Cell, ...]:
        """The cells behind the open sides of a cell of the grid, in the order N E S W."""
        return self._links[place]

    def distance(self, place: Place) -> int:
        """The moves from a cell of the grid to the exit."""
        return self._distances[place]

    def on_solution(self, place: Place) -> bool:
        """Whether the cell lies on the path from start to exit."""
        return place in self._solution

    def closed(self, place: Place) -> list[Cell]:
        """The cells of the grid behind the closed sides of this one, in the order N E S W."""
        beside = (self.destination(place, letter) for letter in DIRECTIONS)
        return [c for c in beside if c and self.exists(c) and c not in self.neighbours(place)]

    def destination(self, place: Place, direction: str) -> Cell | None:
        """The cell next to this one, in the grid or not; None for a word that is no direction."""
        move = MOVES.get(direction)
        if move is None:
            return None
        cell: Any = place
        return cell[0] + move[0], cell[1] + move[1]

    def direction(self, place: Place, other: Place) -> str | None:
        """The direction from a cell to a cell next to it; None for any other cell."""
        here: Any = place
        there: Any = other
        return _LETTER_OF.get((there[0] - here[0], there[1] - here[1]))

    # -- the text --------------------------------------------------------------------------------

    @property
    def solution_length(self) -> int:
        """The moves from start to exit."""
        return len(self.solution_path) - 1

    @property
    def dead_ends(self) -> int:
        """How many cells have exactly one opening and are neither start nor exit."""
        return sum(is_dead_end(self, cell) for cell in self._links)

    def openings(self) -> list[str]:
        """The open sides of every cell, row by row, e.g. "ES": all that a reader needs."""
        width = self.size + 1
        return [
            _LETTERS[self._walls[r * width + c]] for r in range(self.size) for c in range(self.size)
        ]

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of the openings, joined by blanks."""
        return hashlib.sha256(" ".join(self.openings()).encode()).hexdigest()

    @cached_property
    def junctions(self) -> list[tuple[Cell, str, list[str]]]:
        """The solution cells with wrong branches: the cell, the right direction, the wrong ones."""
        path, junctions = self.solution, []
        for k, (cell, ahead) in enumerate(pairwise(path)):
            back = path[k - 1] if k else None
            wrong = [n for n in self.neighbours(cell) if n not in (back, ahead)]
            if wrong:
                letters = [self.direction(cell, n) or "" for n in wrong]
                junctions.append((cell, self.direction(cell, ahead) or "", letters))
        return junctions

    def mirages(self, mirage: str = "trap") -> list[Mirage]:
        """The hints of this maze, in the order of the path; the same for every model and repeat.

        "trap" (v1.1): on at most max(2, N // 2) of all the wrong directions along the solution.
        "balanced": on as many wrong directions as right ones, each at a junction of its own.
        "off": none.
        """
        if mirage == "off":
            return []
        limit = max(2, self.size // 2)
        junctions = self.junctions
        rand = self.stream("mirage").random
        hints: list[tuple[Cell, str, bool]]
        if mirage == "trap":
            wrong = [(cell, letter, False) for cell, _, letters in junctions for letter in letters]
            hints = _sample(wrong, limit, rand)
        else:
            limit = min(limit, len(junctions) // 2)
            chosen = _sample(junctions, 2 * limit, rand)
            traps = {cell for cell, _, _ in _sample(chosen, limit, rand)}
            hints = [
                (cell, letters[int(rand() * len(letters))], False)
                if cell in traps
                else (cell, right, True)
                for cell, right, letters in chosen
            ]
        phrase = self.stream("phrase").random
        return [
            Mirage(cell, letter, int(phrase() * len(_MIRAGE_PHRASES["ko"])), right)
            for cell, letter, right in hints
        ]

    @cached_property
    def mirage_traps(self) -> list[Mirage]:
        """The hints of v1.1: on wrong branches only."""
        return self.mirages("trap")

    def stream(self, name: str) -> random.Random:
        """A seeded stream of its own, so that one use of chance never shifts another."""
        return random.Random(f"hallumaze {name} {self.size} {self.seed}")

    def encode_text(self, use_mirage: bool = True, lang: str = "ko", mirage: str = "trap") -> str:
        """The maze as the model sees it: a header, then every cell's open directions (v1.1)."""
        words = _LISTING_WORDS[lang]
        hints = self.hint_texts(mirage if use_mirage else "off", lang)
        lines = [*self.header(), "", words["intro"]]
        for place, letters in zip(self._links, self.openings(), strict=True):
            lines.append(f"{_cell_text(place)}: [{_LISTED[letters]}]{hints.get(place, '')}")
        return "\n".join(lines)

    def header(self) -> list[str]:
        """The lines that say which maze it is (v1.1)."""
        facts = self.facts()
        return [
            f"MAZE {facts['size']} | START:{facts['start']} | EXIT:{facts['goal']}",
            f"Seed: {self.seed}",
        ]

    def hint_texts(self, mirage: str, lang: str) -> dict[Place, str]:
        """What the hints of that kind add to the lines of their cells."""
        words = _LISTING_WORDS[lang]
        hints: dict[Place, str] = {}
        for cell, letter, phrase, _ in self.mirages(mirage):
            text = words["hint"].format(direction=letter, phrase=_MIRAGE_PHRASES[lang][phrase])
            hints[cell] = f"{hints.get(cell, '')}  ⚑ {text}"
        return hints

    def facts(self, lang: str = "") -> dict[str, str]:
        """Its size, start and exit, in any language."""
        return {
            "size": f"{self.size}×{self.size}",
            "start": _cell_text(self.start),
            "goal": _cell_text(self.goal),
        }

    def line(self, place: Place, lang: str) -> str:
        """A cell and its open sides as the listing has them in any language: (0,1): [E→ S↓]."""
        ways = (self.direction(place, cell) or "" for cell in self.neighbours(place))
        return f"{_cell_text(place)}: [{_LISTED[''.join(ways)]}]"

    def render(self, path: Sequence[Sequence[int]] = (), mirage: str = "trap") -> str:
        """The maze as a drawing: every wall, start S, exit X, the cells of a walk • (and × where it
        goes through a wall), and the hints ⚑ of that kind ("off": none), ✗ false and ✓ true."""
        walked = [(r, c) for r, c in path]
        crossed = {frozenset(pair) for pair in pairwise(walked)}
        hints = self.mirages(mirage)
        flagged = {hint.cell for hint in hints}
        marks = {**dict.fromkeys(walked, "•"), self.start: "S", self.goal: "X"}

        def side(cell: Cell, other: Cell, wall: str, gap: str, crossing: str) -> str:
            if self.exists(cell) and other in self.neighbours(cell):
                return gap
            return crossing if {cell, other} in crossed else wall

        lines = []
        for r in range(self.size + 1):
            above = (side((r - 1, c), (r, c), "---", "   ", "-×-") + "+" for c in range(self.size))
            lines.append("+" + "".join(above))
            if r < self.size:
                cells = [
                    f" {marks.get((r, c), ' ')}{'⚑' if (r, c) in flagged else ' '}"
                    for c in range(self.size)
                ]
                left = [side((r, c - 1), (r, c), "|", " ", "×") for c in range(self.size + 1)]
                lines.append("".join(a + b for a, b in zip(left, [*cells, ""], strict=True)))
        for hint in hints:
            way = f"{hint.direction}{ARROWS[hint.direction]}"
            lines.append(f"⚑ {_cell_text(hint.cell)} {way} {'✓' if hint.right else '✗'}")
        return "\n".join(lines)

    def drawing(self, mirage: str) -> str:
        """The maze with its solution and its hints."""
        return self.render(self.solution_path, mirage)

    def percentile(self, place: Place) -> None:
        """No cell of a maze is a hub."""

    def fields(self) -> dict[str, Any]:
        """What names the maze."""
        return {
            "maze_size": self.size,
            "maze_seed": self.seed,
            "maze_algorithm": self.algorithm,
        }

    def describe(self, mirage: str) -> dict[str, Any]:
        """The maze as the result file holds it (without its number in the run)."""
        hints = self.mirages(mirage)
        return {
            "size": self.size,
            "seed": self.seed,
            "algorithm": self.algorithm,
            "solution_length": self.solution_length,
            "solution_path": self.solution_path,
            "dead_ends": self.dead_ends,
            "mirage_traps": len(hints),
            "mirage_trap_list": [
                {
                    "cell": list(hint.cell),
                    "direction": hint.direction,
                    "phrase": hint.phrase,
                    "right": hint.right,
                }
                for hint in hints
            ],
            "openings": self.openings(),
            "walls_sha256": self.sha256,
        }


def _fresh_seed() -> int:
    return random.SystemRandom().randrange(10**9)


class Worlds(Protocol):
    """The worlds of a run, in order."""

    def __len__(self) -> int: ...
    def __getitem__(self, k: Any) -> Any: ...
    def entry(self) -> dict[str, Any]:
        """What a journal needs to make them again."""


class Mazes(Sequence[MazeEngine]):
    """The mazes of these seeds, each generated when it is asked for: any number takes no room.

    A seed that is None is drawn here, and recorded in `seeds`.
    """

    def __init__(self, size: int, seeds: Iterable[int | None], algorithm: str = "dfs") -> None:
        self.size = size
        self.seeds = [_fresh_seed() if seed is None else seed for seed in seeds]
        self.algorithm = algorithm

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, k: Any) -> Any:
        return _maze(self.size, self.seeds[k], self.algorithm)

    def entry(self) -> dict[str, Any]:
        """The arguments that make them again."""
        return {"size": self.size, "seeds": self.seeds, "algorithm": self.algorithm}


# Models that play side by side come to the same maze one soon after the other.
@lru_cache(maxsize=16)
def _maze(size: int, seed: int, algorithm: str) -> MazeEngine:
    return MazeEngine(size, seed, algorithm)


def is_dead_end(world: World, place: Place) -> bool:
    """Whether a place has exactly one way out and is neither start nor goal."""
    return len(world.neighbours(place)) == 1 and place not in (world.start, world.goal)


# -- graphs of pages ------------------------------------------------------------------------------

WIKI_MOVES, WIKI_HINT_MOVE = 30, 10  # of a game
UNREACHED = 255  # a distance that no walk has
_AT_ONCE = 1 << 22  # links that a search looks at together, which bounds its memory
_KEPT = 1 << 27  # bytes of distances


class Adjacency(NamedTuple):
    """The links of pages in compressed sparse rows: those of page p are
    indices[indptr[p] : indptr[p + 1]]. Arrays of int64 and int32, which may be mapped files."""

    indptr: Any
    indices: Any

    def of(self, page: int) -> Any:
        """The pages that a page is joined to."""
        return self.indices[self.indptr[page] : self.indptr[page + 1]]

    def of_all(self, pages: Any) -> Iterator[Any]:
        """The pages that any of these are joined to, doubles included, some at a time."""
        import numpy as np

        ends = np.cumsum(self.indptr[pages + 1] - self.indptr[pages])
        begin = done = 0
        while begin < len(pages):
            end = max(begin + 1, int(np.searchsorted(ends, done + _AT_ONCE, "right")))
            some = pages[begin:end]
            starts = self.indptr[some]
            counts = self.indptr[some + 1] - starts
            before = np.cumsum(counts) - counts
            yield self.indices[np.repeat(starts - before, counts) + np.arange(counts.sum())]
            begin, done = end, int(ends[end - 1])

    def joined(self, bits: Any) -> Any:
        """For each page the bits of all pages that it is joined to, of which it has one at least;
        some pages at a time."""
        import numpy as np

        parts, begin, pages = [], 0, len(self.indptr) - 1
        while begin < pages:
            done = int(self.indptr[begin])
            end = int(np.searchsorted(self.indptr, done + _AT_ONCE, "right")) - 1
            end = min(max(begin + 1, end), pages)
            some = bits[self.indices[done : self.indptr[end]]]
            parts.append(np.bitwise_or.reduceat(some, self.indptr[begin:end] - done))
            begin = end
        return np.concatenate(parts)


class Texts(NamedTuple):
    """Many texts as one array of UTF-8 bytes: text k is blob[offsets[k] : offsets[k + 1]]."""

    blob: Any
    offsets: Any

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Texts:
        """Texts that are UTF-8 already, in their order."""
        import numpy as np

        texts = list(texts)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(texts), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def at(self, k: int) -> bytes:
        """Text k."""
        return bytes(self.blob[self.offsets[k] : self.offsets[k + 1]])


def folded(name: str) -> bytes:
    """A name as it is looked up: whatever its case, its blanks and its Unicode form."""
    plain = unicodedata.normalize("NFC", name.replace("_", " ")).casefold()
    return " ".join(plain.split()).encode("utf-8", "replace")


class Graph:
    """Titled pages and the links between them, of which each can reach every other.

    name: what results call it. titles: of its pages, by number. ahead, behind: the links of each
    page, and those to it; no page links to itself, or to another twice. names: of titles, and of
    redirects to them. keys, named: the names folded, in rising order of that, and the page that
    each means, -1 for one outside of this graph. sha256: of titles and links.
    """

    def __init__(
        self,
        name: str,
        titles: Texts,
        ahead: Adjacency,
        behind: Adjacency,
        names: Texts,
        keys: Texts,
        named: Any,
        sha256: str,
    ) -> None:
        self.name = name
        self.titles = titles
        self.ahead = ahead
        self.behind = behind
        self.names = names
        self.keys = keys
        self.named = named
        self.sha256 = sha256
        self._distances: dict[int, Any] = {}
        self._lock = Lock()  # of the distances

    def __len__(self) -> int:
        return len(self.titles)

    def title(self, page: int) -> str:
        """The title of a page."""
        return self.titles.at(page).decode("utf-8", "replace")

    def find(self, name: str) -> int | None:
        """The page of exactly that name, or else the one page whose name is folded alike; None for
        no page of this graph, or more than one."""
        alike = self._alike(name)
        exact = [k for k in alike if self.names.at(k) == name.encode("utf-8", "replace")]
        pages = {int(self.named[k]) for k in exact or alike}
        page = pages.pop() if len(pages) == 1 else -1
        return page if page >= 0 else None

    def exists(self, name: str) -> bool:
        """Whether there is a page of that name, here or outside."""
        return len(self._alike(name)) > 0

    def _alike(self, name: str) -> range:
        """Which names are folded as this one."""
        key = folded(name)
        low = bisect_left(range(len(self.keys)), key, key=self.keys.at)
        high = low
        while high < len(self.keys) and self.keys.at(high) == key:
            high += 1
        return range(low, high)

    def distances(self, target: int) -> Any:
        """The moves to the target from every page, as an array of uint8 (UNREACHED: more than
        254). Those of the last targets are kept, up to _KEPT bytes of them."""
        with self._lock:
            found = self._distances.pop(target, None)
            if found is None:
                found = self._search(target)
            self._distances[target] = found
            if len(self._distances) * len(self) > _KEPT:
                del self._distances[next(iter(self._distances))]
            return found

    def _search(self, target: int) -> Any:
        """Breadth first, against the links; a whole level at once."""
        import numpy as np

        moves = np.full(len(self), UNREACHED, np.uint8)
        moves[target] = level = 0
        frontier = np.array([target])
        while len(frontier) and level < UNREACHED - 1:
            level += 1
            for pages in self.behind.of_all(frontier):
                moves[pages[moves[pages] == UNREACHED]] = level
            frontier = np.flatnonzero(moves == level)
        return moves

    @cached_property
    def out_degrees(self) -> Any:
        """How many links each page has."""
        import numpy as np

        return np.diff(self.ahead.indptr)

    @cached_property
    def in_degrees(self) -> Any:
        """How many links lead to each page."""
        import numpy as np

        return np.diff(self.behind.indptr)

    @cached_property
    def _sorted_degrees(self) -> Any:
        import numpy as np

        return np.sort(self.out_degrees)

    def percentile(self, page: int) -> float:
        """The share of pages with fewer links than this one, and half of those with as many."""
        degree = self.out_degrees[page]
        fewer, most = (int(self._sorted_degrees.searchsorted(degree, s)) for s in ("left", "right"))
        return (fewer + most) / 2 / len(self)


def make_graph(
    name: str,
    titles: Sequence[str],
    sources: Any,
    targets: Any,
    others: Iterable[tuple[str, int]] = (),
) -> Graph:
    """The largest strongly connected component of these pages and links, numbered by rising titles
    so that the same graph has the same numbers and SHA-256 wherever it was read from.

    titles: at least one; pages of one title are one page. sources, targets: arrays of int32, the
    two pages of each link; links to oneself and doubles are dropped. others: more names, each with
    the page that it leads to, or -1 for a page without links. Pages of other components, and names
    of such, remain as names that exist.
    """
    import numpy as np

    known = sorted(set(titles))
    places = {title: k for k, title in enumerate(known)}
    at = np.fromiter((places[title] for title in titles), np.int32, len(titles))
    inside, ahead, behind = _component(_link_matrix(at[sources], at[targets], len(known)))
    numbers = np.where(inside, np.cumsum(inside) - 1, -1)
    shown = Texts.of(known[k].encode() for k in np.flatnonzero(inside).tolist())
    named = {
        (folded(title), title.encode(), int(n)) for title, n in zip(known, numbers, strict=True)
    }
    for other, page in others:
        number = int(numbers[at[page]]) if page >= 0 else -1
        if other not in places:  # a page's own title means that page
            named.add((folded(other), other.encode(), number))
    listed = sorted(named)
    digest = hashlib.sha256()
    for part in (*shown, *ahead):
        digest.update(np.ascontiguousarray(part).data)
    return Graph(
        name,
        shown,
        ahead,
        behind,
        Texts.of(text for _, text, _ in listed),
        Texts.of(key for key, _, _ in listed),
        np.array([number for *_, number in listed], np.int32),
        digest.hexdigest(),
    )


def _link_matrix(sources: Any, targets: Any, count: int) -> Any:
    """The links between `count` pages as a matrix in compressed sparse rows, each once."""
    import numpy as np
    from scipy.sparse import coo_array

    proper = sources != targets
    ends = sources[proper], targets[proper]
    return coo_array((np.ones(len(ends[0]), np.int8), ends), (count, count)).tocsr()


def _component(whole: Any) -> tuple[Any, Adjacency, Adjacency]:
    """Which pages belong to the largest component, of several the first; its links, and the same
    backwards, as they are numbered there."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(whole, connection="strong")
    inside = labels == np.bincount(labels).argmax()
    kept = whole[inside][:, inside]
    ahead, behind = (
        Adjacency(rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False))
        for rows in (kept, kept.T.tocsr())
    )
    return inside, ahead, behind


def about_graph(graph: Graph, lang: str) -> str:
    """A sentence that says what its pages and links are."""
    about = _LISTING_WORDS[lang]["about"]
    return str(about.get(graph.name, about[""]))


class WikiWorld:
    """A walk over a graph of pages, from one to another (LLM-WikiRace, arXiv 2602.16902).

    source, target: numbers of pages. most_links: how many links of a page can be followed, those
    nearest to the target (ties by seeded order). budget: the moves of a game, which take the place
    of N² in the formulas. Implements `TextWorld`; a place is a title. size: the shortest distance.
    seed: source · pages + target. algorithm: the graph's name.
    """

    kind = "wiki"
    unread = Claim(0, direction="")  # it names no page
    hint_move = WIKI_HINT_MOVE
    junctions: tuple[tuple[Place, str, list[str]], ...] = ()

    def __init__(
        self,
        graph: Graph,
        source: int,
        target: int,
        most_links: int = MOST_LINKS,
        budget: int = WIKI_MOVES,
    ) -> None:
        self.graph = graph
        self.source, self.target = source, target
        self.most_links = most_links
        self.budget = self.moves = budget
        self.start: str = graph.title(source)
        self.goal: str = graph.title(target)
        self.algorithm = graph.name
        self.seed = source * len(graph) + target
        self._moves = graph.distances(target)
        self.size = int(self._moves[source])
        self._numbers: dict[Place, int | None] = {self.start: source, self.goal: target}
        self._links: dict[Place, tuple[str, ...]] = {}

    def _number(self, place: Place) -> int | None:
        """The number of the page of that title; None for a page outside the graph, or none."""
        if place not in self._numbers:
            page = self.graph.find(str(place))
            same = page is not None and self.graph.title(page) == place
            self._numbers[place] = page if same else None
        return self._numbers[place]

    def exists(self, place: Place) -> bool:
        """Whether there is a page of that title, in the graph or outside."""
        return self._number(place) is not None or self.graph.exists(str(place))

    def neighbours(self, place: Place) -> tuple[str, ...]:
        """The links that can be followed, in the order in which they are numbered."""
        if place not in self._links:
            page = self._number(place)
            chosen = [] if page is None else self._chosen(page, str(place))
            titles = [self.graph.title(link) for link in chosen]
            self._numbers.update(zip(titles, chosen, strict=True))
            self._links[place] = tuple(titles)
        return self._links[place]

    def _chosen(self, page: int, title: str) -> list[int]:
        rand = self.stream(f"links {title}").random
        links = [(int(self._moves[p]), rand(), int(p)) for p in self.graph.ahead.of(page)]
        shown = sorted(links)[: self.most_links]
        return [p for _, p in sorted((rand(), p) for _, _, p in shown)]

    def distance(self, place: Place) -> int:
        """The moves from a page of the graph to the target."""
        page = self._number(place)
        return UNREACHED if page is None else int(self._moves[page])

    @cached_property
    def _solution(self) -> frozenset[int]:
        """The pages of all shortest walks."""
        import numpy as np

        layer, pages = np.array([self.source]), [np.array([self.source])]
        for moves in range(self.size - 1, -1, -1):
            ahead = np.unique(np.concatenate(list(self.graph.ahead.of_all(layer))))
            layer = ahead[self._moves[ahead] == moves]
            pages.append(layer)
        return frozenset(np.concatenate(pages).tolist())

    def on_solution(self, place: Place) -> bool:
        """Whether the page lies on a shortest walk from source to target."""
        return self._number(place) in self._solution

    def destination(self, place: Place, direction: str) -> str | None:
        """The page that a number of a listed link, or a title, means; None where there is none."""
        links = self.neighbours(place)
        by_name = {folded(link): link for link in links}
        if listed := by_name.get(folded(direction)):
            return listed
        if numbered := _NUMBERED.match(direction):
            number, name = int(numbered[1]), numbered[2]
            if not name:
                return links[number - 1] if 0 < number <= len(links) else None
            if not self.graph.exists(direction):
                return self.destination(place, name)
        page = self.graph.find(direction)
        if page is not None:
            return self.graph.title(page)
        return direction if self.graph.exists(direction) else None

    def direction(self, place: Place, other: Place) -> str | None:
        """A move to a page is its title."""
        return str(other)

    def closed(self, place: Place) -> list[str]:
        """Up to most_links pages two links away, nearest to the target first, that are not one."""
        import numpy as np

        page = self._number(place) or 0
        links = self.graph.ahead.of(page)
        beyond = np.unique(np.concatenate(list(self.graph.ahead.of_all(np.array(links)))))
        closed = np.setdiff1d(beyond, np.append(links, page))
        nearest = closed[np.argsort(self._moves[closed], kind="stable")][: self.most_links]
        return [self.graph.title(int(p)) for p in nearest]

    @cached_property
    def solution(self) -> list[str]:
        """The titles of a shortest walk: of the links that lead nearer, the first page."""
        walk = [self.source]
        while walk[-1] != self.target:
            links = self.graph.ahead.of(walk[-1])
            walk.append(int(links[self._moves[links].argmin()]))
        return [self.graph.title(page) for page in walk]

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of the graph, the two pages, and how many links are shown."""
        truth = f"{self.graph.sha256} {self.seed} {self.most_links}"
        return hashlib.sha256(truth.encode()).hexdigest()

    def percentile(self, place: Place) -> float:
        """How much of a hub a page of the graph is, 0..1."""
        return self.graph.percentile(self._number(place) or 0)

    def stream(self, name: str) -> random.Random:
        """A seeded stream of its own, so that one use of chance never shifts another."""
        return random.Random(f"hallumaze {name} {self.algorithm} {self.seed}")

    # -- the text

    def mirages(self, mirage: str) -> tuple[Mirage, ...]:
        """None: a list of links has no place for them."""
        return ()

    def hint_texts(self, mirage: str, lang: str) -> dict[Place, str]:
        """None."""
        return {}

    def encode_text(self, use_mirage: bool, lang: str, mirage: str) -> str:
        """Raises UsageError: nobody can be shown a whole graph."""
        raise UsageError("a graph cannot be shown whole: --world wiki is played step by step")

    def header(self) -> list[str]:
        """The line that says which walk it is."""
        return [f"WIKI {self.graph.name} | START: {self.start} | TARGET: {self.goal}"]

    def facts(self, lang: str) -> dict[str, str]:
        """Where it begins, where it leads, and what its pages are."""
        return {
            "start": self.start,
            "goal": self.goal,
            "about": about_graph(self.graph, lang),
        }

    def line(self, place: Place, lang: str) -> str:
        """A page and its numbered links."""
        links = self.neighbours(place)
        listed = (f"{k}. {link}" for k, link in enumerate(links, 1))
        return "\n".join([str(place), _LISTING_WORDS[lang]["links"], *listed])

    def drawing(self, mirage: str) -> str:
        """A shortest walk."""
        return " → ".join(self.solution)

    def fields(self) -> dict[str, Any]:
        """What names the game."""
        return {
            "world": self.kind,
            "source": self.start,
            "target": self.goal,
            "maze_size": self.size,
            "maze_seed": self.seed,
            "maze_algorithm": self.algorithm,
        }

    def describe(self, mirage: str) -> dict[str, Any]:
        """The game as the result file holds it (without its number in the run)."""
        return {
            "world": self.kind,
            "size": self.size,
            "seed": self.seed,
            "algorithm": self.algorithm,
            "source": self.start,
            "target": self.goal,
            "max_links": self.most_links,
            "solution_length": self.size,
            "solution_path": self.solution,
            "graph_sha256": self.graph.sha256,
        }


@dataclass(frozen=True, slots=True)
class LinkQuestion(Task):
    """Whether the first page links to the second: a question about a graph, no walk over it."""

    graph: Graph
    source: int
    target: int
    kind = "links"

    @property
    def linked(self) -> bool:
        """The truth."""
        return bool((self.graph.ahead.of(self.source) == self.target).any())

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of the graph and the two pages."""
        truth = f"{self.graph.sha256} {self.source} {self.target}"
        return hashlib.sha256(truth.encode()).hexdigest()

    def facts(self, lang: str) -> str:
        """What the pages and links are."""
        return about_graph(self.graph, lang)

    def fields(self) -> dict[str, Any]:
        """What names the question."""
        return {
            "world": self.kind,
            "source": self.graph.title(self.source),
            "target": self.graph.title(self.target),
            "maze_size": 0,
            "maze_seed": self.source * len(self.graph) + self.target,
            "maze_algorithm": self.graph.name,
        }

    def describe(self, mirage: str) -> dict[str, Any]:
        """The question as the result file holds it."""
        named = self.fields()
        return {
            "world": self.kind,
            "size": 0,
            "seed": named["maze_seed"],
            "algorithm": named["maze_algorithm"],
            "source": named["source"],
            "target": named["target"],
            "linked": self.linked,
            "graph_sha256": self.graph.sha256,
        }


_NUMBERED = re.compile(r"\W*(\d{1,6})\b[.):\]]?\s*(.*)", re.S)


class WikiGames(Sequence[Any]):
    """The walks between these pairs of pages (their numbers), each made when it is asked for, and
    behind them the questions whether the first page of each probed pair links to the second."""

    def __init__(
        self,
        graph: Graph,
        pairs: Sequence[tuple[int, int]],
        most_links: int = MOST_LINKS,
        budget: int = WIKI_MOVES,
        probed: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.graph = graph
        self.pairs = pairs
        self.probed = probed
        self.most_links = most_links
        self.budget = budget
        self._made: dict[int, WikiWorld] = {}

    def __len__(self) -> int:
        return len(self.pairs) + len(self.probed)

    def __getitem__(self, k: Any) -> Any:
        if k >= len(self.pairs):
            return LinkQuestion(self.graph, *self.probed[k - len(self.pairs)])
        if k not in self._made:
            if len(self._made) >= 16:
                self._made.clear()
            source, target = self.pairs[k]
            self._made[k] = WikiWorld(self.graph, source, target, self.most_links, self.budget)
        return self._made[k]

    def entry(self) -> dict[str, Any]:
        """The pairs, by their numbers and by their titles, and the SHA-256 of the graph."""
        title = self.graph.title
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "titles": [[title(a), title(b)] for a, b in self.pairs],
            "probed": [list(pair) for pair in self.probed],
            "graph_sha256": self.graph.sha256,
        }


def sample_games(
    graph: Graph,
    least: int,
    most: int,
    count: int,
    seed: int,
    on_target: Callable[[int], None] = lambda found: None,
) -> list[tuple[int, int]]:
    """`count` pairs (source, target) whose shortest distance is least..most, fewer if the graph has
    not so many: the targets in seeded order, a source for each, and then a second one.

    on_target: told, before each search, how many are found.
    """

    rand = random.Random(f"hallumaze games {least} {most} {seed}").random
    targets = _sample_order(len(graph), rand)
    pairs: list[tuple[int, int]] = []
    taken: dict[int, int] = {}
    for _ in range(2):
        for target in _targets_within(graph, targets, least, most, lambda: on_target(len(pairs))):
            if len(pairs) == count:
                return pairs
            moves = graph.distances(target)
            far = ((moves >= least) & (moves <= most)).nonzero()[0]
            far = far[far != taken.get(target, -1)]
            if len(far):
                taken[target] = int(far[int(rand() * len(far))])
                pairs.append((taken[target], target))
        targets = [target for target in targets if target in taken]
    return pairs


def _targets_within(
    graph: Graph, targets: Sequence[int], least: int, most: int, on_search: Callable[[], None]
) -> Iterator[int]:
    """The targets that some page is least..most moves away from, 64 at a time: each page has a bit
    for each target that is within reach, which one move takes over from all pages that it links to.
    """
    import numpy as np

    for begin in range(0, len(targets), 64):
        on_search()
        some = targets[begin : begin + 64]
        near = np.zeros(len(graph), np.uint64)
        near[some] = np.uint64(1) << np.arange(len(some), dtype=np.uint64)
        there = np.uint64(0)
        for level in range(1, most + 1):
            nearer = near | graph.ahead.joined(near)
            if level >= least:
                there |= np.bitwise_or.reduce(nearer & ~near)
            near = nearer
        yield from (target for k, target in enumerate(some) if int(there) >> k & 1)


def sample_links(graph: Graph, count: int, seed: int) -> list[tuple[int, int]]:
    """Pairs of pages in random order, half of them linked, at most `count`.

    To each linked pair belongs one that is not: from the same page to one two links away (of which
    there is none for pages that link to all within reach) that as many pages link to, or about.
    """
    import numpy as np

    rand = random.Random(f"hallumaze probe {seed}").random
    links = len(graph.ahead.indices)
    chosen = {int(rand() * links): None for _ in range(2 * count)}
    in_degrees = graph.in_degrees
    pairs: dict[tuple[int, int], None] = {}
    for link in chosen:
        if len(pairs) > count - 2:
            break
        source = int(np.searchsorted(graph.ahead.indptr, link, "right")) - 1
        target = int(graph.ahead.indices[link])
        ahead = graph.ahead.of(source)
        beyond = np.unique(np.concatenate(list(graph.ahead.of_all(np.array(ahead)))))
        beyond = np.setdiff1d(beyond, np.append(ahead, source))
        nearest = np.argsort(abs(in_degrees[beyond] - in_degrees[target]), kind="stable")
        free = (int(beyond[k]) for k in nearest if (source, int(beyond[k])) not in pairs)
        other = next(free, None)
        if other is not None:
            pairs |= {(source, target): None, (source, other): None}
    return [pair for _, pair in sorted((rand(), pair) for pair in pairs)]


def _sample_order(count: int, rand: Callable[[], float]) -> list[int]:
    """The numbers below count in random order."""
    return [k for _, k in sorted((rand(), k) for k in range(count))]


# -- planted errors -------------------------------------------------------------------------------


def planted(world: TextWorld, kind: str) -> Plant | None:
    """The walk of 3 to 6 moves with one wrong step that a trial opens with; the same for every
    model. None for "none", and where the world has no room for one of this kind. Into a branch
    it is longer where the first one lies deeper.

    wall: the last move goes where none leads. loop: the last move was made before. branch: one
    move leaves the solution, those after it go on from there.
    """
    walks = {"wall": _into_walls, "loop": _in_loops, "branch": _into_branches}
    found = walks[kind](world) if kind in walks else []
    if not found:
        return None
    places, wrong = found[int(world.stream(f"plant {kind}").random() * len(found))]
    claims = [
        Claim(0, number, here, world.direction(here, ahead))
        for number, (here, ahead) in enumerate(pairwise(places), 1)
    ]
    return Plant(kind, tuple(claims), wrong, places[wrong - 1], places[wrong])


def _beginnings(world: TextWorld, fewest: int, most: int) -> list[list[Place]]:
    """The first places of the solution, after so many moves, short of the goal."""
    path = list(world.solution)
    return [path[: k + 1] for k in range(fewest, min(most, len(path) - 2) + 1)]


def _into_walls(world: TextWorld) -> list[tuple[list[Place], int]]:
    """(places, number of the wrong move) of every walk that ends where no move leads."""
    return [
        ([*places, beyond], len(places))
        for places in _beginnings(world, 2, 5)
        for beyond in world.closed(places[-1])
        if beyond != world.start
    ]


def _in_loops(world: TextWorld) -> list[tuple[list[Place], int]]:
    """The same of every walk that goes back a move and makes that move again."""
    return [
        ([*places, places[-2], places[-1]], len(places) + 1)
        for places in _beginnings(world, 2, 4)
        if places[-2] in world.neighbours(places[-1])
    ]


def _into_branches(world: TextWorld) -> list[tuple[list[Place], int]]:
    """The same of every walk that leaves the solution, and goes on if it is short till then;
    where the first junction lies too deep for 6 moves, of those that leave it there."""
    found: list[tuple[list[Place], int]] = []
    for places in _beginnings(world, 0, len(world.solution)):
        if found and len(places) > 6:
            break
        for lure in world.neighbours(places[-1]):
            walk = [*places, lure]
            while len(walk) < 4 and (on := _onward(world, walk)):
                walk.append(on)
            if not world.on_solution(lure) and len(walk) > 3:
                found.append((walk, len(places)))
    return found


def _onward(world: TextWorld, walk: Sequence[Place]) -> Place | None:
    """The first place that a walk can go on to without turning round."""
    return next((n for n in world.neighbours(walk[-1]) if n != walk[-2]), None)


def _sample(items: Sequence[Any], count: int, rand: Callable[[], float]) -> list[Any]:
    """`count` of the items (all, when there are fewer), each equally likely, in their order."""
    order = list(range(len(items)))
    for k in range(min(count, len(order))):
        j = k + int(rand() * (len(order) - k))
        order[k], order[j] = order[j], order[k]
    return [items[k] for k in sorted(order[:count])]


def _cell_text(cell: Any) -> str:
    return f"({cell[0]},{cell[1]})"


def path_text(path: Iterable[Any]) -> str:
    """A path as the prompt writes it: (0,0)→(0,1)."""
    return "→".join(_cell_text(cell) for cell in path)


# =================================================================================================
# 3  Prompts
# =================================================================================================


BYTES_PER_TOKEN = 2.2  # of a prompt, as Qwen 2.5's tokenizer counts it, in both languages


class Prompt(NamedTuple):
    """What is sent: the system message, the user message, and the SHA-256 (hex) of all of it.

    own: what the model is said to have answered, and the message after that; () for nothing.
    """

    system: str
    user: str
    sha256: str
    own: tuple[str, ...] = ()

    @property
    def messages(self) -> list[Message]:
        """The conversation."""
        contents = (self.user, *self.own)
        return [
            {"role": ("user", "assistant")[k % 2], "content": text}
            for k, text in enumerate(contents)
        ]

    def tokens(self) -> int:
        """About how many tokens it has; tokenizers differ by a third or so."""
        return round(len("".join((self.system, self.user, *self.own)).encode()) / BYTES_PER_TOKEN)


class PromptBuilder:
    """(world, config) -> the prompt, byte for byte the same for every model (v1.1 section 7).

    form: of the planted error, one of PLANT_FORMS; "" for none.
    """

    def __init__(self, world: TextWorld, config: MazeConfig, form: str = "") -> None:
        self.world = world
        self.config = config
        self.form = form
        self.words = _PROMPTS[config.lang]
        self.plant = planted(world, config.plant) if form else None

    def build(self) -> Prompt:
        """What the trial opens with: in a game all that comes before the first state."""
        lines = self._game_rules() if self.config.protocol == "step" else self._plan_rules()
        notes = self._planted_lines()
        own: tuple[str, ...] = ()
        if notes and self.form == "other":
            lines += ["", self._game_words()["notes"], *notes]
        elif notes:
            own = ("\n".join(notes),)
        if notes and self.config.protocol == "plan":
            own = (*own, self.words["go_on"]) if own else own
            lines += [] if own else ["", self.words["go_on"]]
        system, user = self.words["system"], "\n".join(lines)
        return Prompt(system, user, chain_sha256(system, user, *own), own)

    def _map(self) -> str:
        config = self.config
        return self.world.encode_text(config.use_mirage, config.lang, config.mirage)

    def _plan_rules(self) -> list[str]:
        """The encoded maze, the rules and the final block (v1.1)."""
        words, confidence = self.words, self.config.use_confidence
        return [
            self._map(),
            "",
            words["rules_title"],
            *words["rules"],
            *(words["rules_confidence"] if confidence else ()),
            words["step"].format(confidence=words["step_confidence"] if confidence else ""),
            *words["signals"],
            "",
            words["final_title"],
            words["final"],
            "BACKTRACK_COUNT: N",
            "HALLUCINATION_COUNT: N",
            *(["CONFIDENCE_LOG: step1:conf1, step2:conf2, ..."] if confidence else ()),
            "FINAL_PATH: (0,0)→(r,c)→...→(N-1,N-1)",
        ]

    def _game_rules(self) -> list[str]:
        """The rules of a game, and with the view "map" the encoded maze before them."""
        words, facts = self._game_words(), self.world.facts(self.config.lang)
        return [
            *([self._map()] if self.config.view == "map" else self.world.header()),
            "",
            self.words["rules_title"],
            *(rule.format(**facts) for rule in words["rules"]),
            *(self.words["rules_confidence"] if self.config.use_confidence else ()),
            words["signals_title"],
            *words["signals"],
            words["form"],
            self.move_form(),
        ]

    def _game_words(self) -> Mapping[str, Any]:
        return _GAMES[self.world.kind][self.config.lang]

    def move_form(self) -> str:
        """The line that a game asks for."""
        confidence = self.words["step_confidence"] if self.config.use_confidence else ""
        return str(self._game_words()["move"].format(confidence=confidence))

    def _planted_lines(self) -> list[str]:
        """The planted walk, as a model would have written it."""
        words, stated = self.words, ""
        if self.config.use_confidence:
            stated = words["step_confidence"].replace("XX", "90")
        return [
            f"STEP {step.number}: {place_text(step.cell)} → {way_text(step.direction)}"
            f"{stated} | {words['planted_reason']}"
            for step in (self.plant.steps if self.plant else ())
        ]


def question_prompt(question: LinkQuestion, config: MazeConfig) -> Prompt:
    """The prompt of a question about two pages."""
    words = _PROMPTS[config.lang]
    rules = _QUESTION[config.lang]
    stated = words["step_confidence"] if config.use_confidence else ""
    asked = rules["asked"].format(**question.fields())
    user = "\n".join([rules["intro"], question.facts(config.lang), asked, rules["form"] + stated])
    return Prompt(words["system"], user, chain_sha256(words["system"], user))


TASK_PROMPTS: Mapping[str, Callable[[Any, MazeConfig], Prompt]] = {
    LinkQuestion.kind: question_prompt
}


def opening(world: Problem, config: MazeConfig, form: str = "") -> tuple[Prompt, Plant | None]:
    """What a trial opens with, and the planted error in it."""
    if isinstance(world, Task):
        return TASK_PROMPTS[world.kind](world, config), None
    builder = PromptBuilder(world, config, form)
    return builder.build(), builder.plant


class StatePrompter:
    """What a game tells the model before each move; knows the world, not the model."""

    def __init__(self, world: TextWorld, config: MazeConfig) -> None:
        self.world = world
        self.config = config
        self.words = _GAMES[world.kind][config.lang]
        self._form = PromptBuilder(world, config).move_form()
        self._hints = world.hint_texts(config.hints, config.lang)

    def state(self, here: Place, last: str, left: int, visited: Iterable[Place]) -> str:
        """Where the model stands, what is open there, what the last move did, and what is left.

        visited: the places in the order of their first visit; () leaves them out.
        """
        words, world = self.words, self.world
        places = words["between"].join(map(place_text, visited))
        line = world.line(here, self.config.lang)
        return "\n".join(
            [
                *([last] if last else []),
                words["here"].format(line=f"{line}{self._hints.get(here, '')}"),
                words["goal"].format(goal=place_text(world.goal)),
                words["left"].format(left=left, budget=game_budget(world, self.config)),
                *([words["visited"].format(places=places)] if places else []),
                words["ask"],
            ]
        )

    def moved(self, direction: str | None, to: Place) -> str:
        """What is said of a move that was made."""
        return str(self.words["moved"].format(way=way_text(direction), to=place_text(to)))

    def blocked(self, claim: Claim, verdict: Verdict, here: Place) -> str:
        """What is said of a move that was not."""
        way, cell, to = verdict.direction, claim.cell, claim.to
        facts = {
            "here": place_text(here),
            "way": way,
            "cell": cell and place_text(cell),
            "to": place_text(cell if to is None else to) if cell or to else "",
        }
        if way == "":
            return self.unreadable()
        if verdict.verdict == PHANTOM_DIRECTION:
            kind = "no_direction"
        elif verdict.verdict == WALL:
            kind = "wall"
        elif way and cell not in (None, here):
            kind = "not_there"
        else:
            kind = "no_way"
        return str(self.words[kind].format(**facts))

    def unreadable(self) -> str:
        """What is said of an answer without a readable move."""
        return str(self.words["unreadable"].format(form=self._form))


def game_budget(world: TextWorld, config: MazeConfig) -> int:
    """The moves of a game: what was asked for, or as many as the world grants."""
    return world.moves if config.step_budget is None else config.step_budget


def chain_sha256(*texts: str) -> str:
    """The SHA-256 (hex) of a prompt (its system and user message), or of one (its SHA-256) with
    the answer to it and the message after that."""
    digest = texts[0]
    for text in texts[1:]:
        digest = hashlib.sha256(f"{digest}\0{text}".encode()).hexdigest()
    return digest


# =================================================================================================
# 4  Providers
# =================================================================================================

USAGE_KEYS = ("input", "output", "reasoning", "cached")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of one model, and how it came about.

    `outcome` is "ok", "truncated" or "refused"; `finish_reason` is the vendor's own word for it.
    `usage` counts tokens alike for all vendors: `input` includes cached ones and `output` includes
    reasoning; None where the server is silent. `params_sent` holds what was really sent, and under
    "dropped" what the server rejected before. `latency_s` is the time of the answered request.
    `cost_usd` is None where the price of the model, or what it used, is not known. `cache_written`:
    how many tokens of the input were put into the vendor's cache, where that has a price.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    outcome: str = "ok"
    usage: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(USAGE_KEYS))
    params_sent: Mapping[str, object] = field(default_factory=dict)
    latency_s: float = 0.0
    request_id: str = ""
    cost_usd: float | None = None
    cache_written: int | None = None


class TrialKey(NamedTuple):
    """What a stored answer may be looked up by: the id of its trial, and which repeat it is."""

    id: str = ""
    run: int = 1


NO_KEY = TrialKey()


class Request(NamedTuple):
    """A question that goes with a batch: the conversation that a trial opens with."""

    system: str
    messages: Sequence[Message]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Vendor:
    """Where a vendor answers, which environment variables hold its key, what limits an answer."""

    base_url: str
    key_names: tuple[str, ...]
    model: str = ""  # v1.1's, for a provider whose key is found
    limit_name: str = "max_tokens"


VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "claude-sonnet-4-20250514"
    ),
    "openai": Vendor("https://api.openai.com/v1", ("OPENAI_API_KEY",), "gpt-4o"),
    "google": Vendor(
        "https://generativelanguage.googleapis.com",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "gemini-2.5-flash",
        "max_output_tokens",
    ),
    "deepseek": Vendor("https://api.deepseek.com", ("DEEPSEEK_API_KEY",), "deepseek-reasoner"),
    "compatible": Vendor("", ("COMPATIBLE_API_KEY",)),
}
DEFAULT_MODELS = {name: vendor.model for name, vendor in VENDORS.items() if vendor.model}
CALLS_NOBODY = ("reference", "replay", "human")  # without a server: they cost nothing
BATCHES = ("anthropic", "openai", "google")
BATCH_DISCOUNT = 0.5  # of the list price, at all three


def _vendor(provider: str) -> Vendor:
    """What is known of a provider; of one that a user added, where its key would be."""
    return VENDORS.get(provider) or Vendor("", (f"{_variable(provider)}_API_KEY",))


def _variable(provider: str) -> str:
    """What the names of a provider's environment variables begin with."""
    return provider.upper().replace("-", "_")


def key_names(provider: str) -> tuple[str, ...]:
    """The environment variables that may hold the key of a provider."""
    return _vendor(provider).key_names


RETRY_STATUS = (408, 409, 429, 500, 502, 503, 504, 529)
RETRY_AFTER_CAP_S = 120.0  # a server that asks for more is asked again after this

# The words with which the vendors end an answer that is not a whole one. A pause_turn belongs to
# tools that a server runs for the model; HalluMaze sends none, so such an answer is cut short.
_OUTCOMES = {
    **dict.fromkeys(
        (
            *("max_tokens", "model_context_window_exceeded", "pause_turn"),  # anthropic
            *("length", "model_length"),  # openai, mistral
            "continuation",  # google
        ),
        "truncated",
    ),
    **dict.fromkeys(
        (
            *("refusal", "content_filter"),  # anthropic, openai
            *("safety", "recitation", "language", "blocklist", "prohibited_content"),  # google
            *("spii", "model_armor", "escalation", "image_safety", "jailbreak"),
        ),
        "refused",
    ),
}
_NO_ANSWER = {"error", "insufficient_system_resource", "pup_limited_disabled"}

# How a 400 names a parameter. The first one in its text that was really sent is the culprit.
_PARAMETER_NAMES = {
    "temperature": r"temperature",
    "reasoning_effort": r"reasoning.?effort|\beffort\b|output_config|thinking",
    "max_tokens": r"\bmax_tokens\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
}
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|extra input"
    r"|extra field|not permitted|not allowed|not recogni[sz]ed|instead",
    re.I,
)

# Thinking budgets that Google itself gives for the efforts of its models before Gemini 3.
_GEMINI_2_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}

_NO_JSON = "it answered with something that is no JSON; is the base URL right?"
_STRANGE = "it answered with JSON of another shape than this API's; is the base URL right?"

# What an error means: a pattern over "STATUS CODE WORDS", what to tell, whether a retry can help.
# What the words say goes before what the status says.
_FAULTS: Sequence[tuple[str, str, bool]] = (
    (
        r"insufficient_quota|insufficient.balance|credit balance|^402\b",
        "the account has no quota or credit left: see the vendor's billing page",
        False,
    ),
    (
        r"api.?key.{0,20}(not valid|invalid|expired|not found)|(invalid|incorrect).api.key",
        "the key was rejected: check {keys}",
        False,
    ),
    (
        r"^4(04|10)\b|model_not_found|access to model"
        r"|model.{0,80}(not exist|not found|retired|decommissioned|deprecated|no longer)",
        "the model {model} is not known at {base_url} (retired?): set another one with"
        " {how}, --list-models shows them",
        False,
    ),
    (
        r"^413\b|^(400|422)\b.*"
        r"(context.{0,20}(length|window|size|limit)|prompt is too long|too many tokens"
        r"|input token)",
        "prompt and answer do not fit into the model's context: a smaller --size or --max-tokens"
        " helps",
        False,
    ),
    (r"^40[13]\b", "the key was rejected, or has no right to this: check {keys}", False),
    (r"^429\b", "the rate limit is reached: wait, or run less at a time", True),
    (r"^(503|529)\b|overloaded", "the server is overloaded: try again later", True),
    (r"^(408|409|5\d\d)\b", "the server failed: try again later", True),
    (r"", "the request was rejected", False),
)


def takes_turns(method: T) -> T:
    """Mark a `_call_NAME` that takes the conversation as a list of messages, not as one prompt."""
    method.takes_turns = True  # type: ignore[attr-defined]
    return method


def flatten(messages: Sequence[Message]) -> str:
    """A conversation as ONE prompt; a single message stays as it is."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in messages)


def clean_key(text: str, source: str) -> str:
    """An API key without what copying adds around it; "" when nothing is left.

    Raises UsageError, which names `source` and never the key, for what no HTTP header can carry:
    an SDK would print it in its traceback.
    """
    key = text.strip(" \t\r\n\"'`\u2018\u2019\u201c\u201d\u00a0\u200b\ufeff")
    if key and not re.fullmatch(r"[!-~]+", key):
        raise UsageError(f"{source}: this is no API key (a blank or a non-ASCII character in it)")
    return key


# What keys look like in URLs, headers and the vendors' own words, should one not be ours.
_SECRETS = (
    re.compile(r"(://)[^/@\s]+(?=@)"),
    re.compile(r"(\b(?:bearer\s|api key provided:)\s*)[^\s,;'\")]+", re.I),
    re.compile(r"(\bkey=|\b(?:x-|x-goog-)?api[_-]key['\"]?\s*[=:]\s*['\"]?)[^\s&,;'\"]+", re.I),
    re.compile(r"()\b(?:sk-|AIza)[\w*.-]{4,}"),
)


@lru_cache(maxsize=64)
def _written(secret: str) -> re.Pattern[str]:
    """A secret, however it is written: %2B, \\/, \\u002b, &#43;, &lt;."""

    def forms(c: str) -> str:
        code, name = f"{ord(c):x}", html.escape(c)
        named = "" if name == c else f"|{name}"  # twice the same would be tried without an end
        coded = rf"%(?:25){{0,2}}{code}|\\{{1,8}}[ux]0{{0,4}}{code}|&#(?:x0*{code}|0*{ord(c)});"
        return rf"(?:\\{{0,8}}{re.escape(c)}{named}|(?i:{coded}))"

    return re.compile("".join(map(forms, secret)))


def _without(text: str, secret: str) -> str:
    return _written(secret).sub("***", text)


def scrub(text: str, *secrets: str) -> str:
    """`text` without the secrets, however they are quoted, and without what looks like a key."""
    for secret in sorted((s for s in secrets if len(s) >= 4), key=len, reverse=True):
        text = _without(text, secret)
    for pattern in _SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


_TAG = re.compile(
    r"</?(?:!doctype|html|head|body|title|meta|style|script|center|div|span|pre|code|h\d|hr|br|ul|ol"
    r"|li|p|a|b|i)\b[^<>]*>",
    re.I,
)


def one_line(text: str, limit: int = 300) -> str:
    """A stranger's text, fit for a terminal: no markup, no control characters, one short line."""
    text = _TAG.sub(" ", text[: 20 * limit])
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _dig(thing: Any, *path: str) -> Any:
    """The value at the end of a path of keys or attributes; None when the path breaks off."""
    for name in path:
        thing = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
    return thing


def _count(thing: Any, *path: str) -> int | None:
    """A token count out of a server's answer; None when there is none."""
    value = _dig(thing, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _sum(*numbers: N | None) -> N | None:
    """The sum of the counts or costs that are known; None when none is."""
    known = [n for n in numbers if n is not None]
    return sum(known[1:], known[0]) if known else None


def price_usd(
    provider: str,
    model: str,
    base_url: str,
    usage: Mapping[str, int | None],
    cache_written: int | None = None,
) -> float | None:
    """What the tokens cost, in USD, at the list price that the package genai-prices knows.

    None for a model that it does not know, for a server that does not tell what was used, and
    without the package. A model of `compatible` is looked up by the address of its server.
    """
    read, written = usage.get("input"), usage.get("output")
    if read is None or written is None:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    cached = min(usage.get("cached") or 0, read)
    used = Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=cached,
        cache_write_tokens=min(cache_written or 0, read - cached),
    )
    try:
        if provider in DEFAULT_MODELS:
            priced = calc_price(used, model, provider_id=provider)
        else:
            priced = calc_price(used, model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
    return float(priced.total_price)


def _blocks(content: Any) -> tuple[str, str]:
    """(text, reasoning) of a content that is a string, a list of blocks, or nothing."""
    if isinstance(content, str):
        return content, ""
    text: list[str] = []
    reasoning: list[str] = []
    for block in content or ():
        if thought := _dig(block, "thinking"):
            reasoning.append("".join(_blocks(thought)))
        elif isinstance(words := _dig(block, "text"), str):
            (reasoning if _dig(block, "thought") else text).append(words)
    return "".join(text), "".join(reasoning)


def _reply(content: Any, finish: Any, usage: Sequence[int | None], source: Any) -> Reply:
    """A Reply out of what the three wire formats have in common."""
    text, reasoning = _blocks(content)
    word = str(getattr(finish, "value", finish) or "")
    if word.lower() in _NO_ANSWER or not (word or text or reasoning):
        why = (
            f"finish reason: {word}"
            if word
            else "no text and no finish reason: is the base URL right?"
        )
        raise ProviderError(f"the answer broke off ({why})", None, True)
    request_id = _dig(source, "_request_id") or _dig(source, "response_id") or _dig(source, "id")
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=word,
        outcome=_OUTCOMES.get(word.lower(), "ok"),
        usage=dict(zip(USAGE_KEYS, usage, strict=True)),
        request_id=str(request_id or ""),
    )


class _BatchError(Exception):
    """What a batch says went wrong, in the form of an SDK's exception."""

    def __init__(self, words: str, status: int | None, code: str | None = None) -> None:
        super().__init__(words)
        self.status_code = status
        self.code = code


_ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_GOOGLE_STATUS = {1: 409, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}  # gRPC


def _anthropic_row(result: Any) -> Any:
    """The message of a request of a batch, or an exception that tells why there is none."""
    kind = _dig(result, "type")
    if kind == "succeeded":
        return _dig(result, "message")
    error = _dig(result, "error", "error")
    name = _dig(error, "type")
    words = _dig(error, "message") or f"the batch ended without an answer to this: {kind}"
    return _BatchError(words, _ANTHROPIC_STATUS.get(name, 504 if error is None else 500), name)


def _openai_row(row: Mapping[str, Any]) -> Any:
    """The same for openai."""
    status = _dig(row, "response", "status_code")
    if status == 200:
        return _dig(row, "response", "body")
    error = _dig(row, "error") or _dig(row, "response", "body", "error")
    return _BatchError(str(_dig(error, "message")), status or 504, _dig(error, "code"))


def _google_row(answer: Any) -> Any:
    """The same for google."""
    if (response := _dig(answer, "response")) is not None:
        return response
    code = _count(answer, "error", "code") or 13
    return _BatchError(str(_dig(answer, "error", "message")), _GOOGLE_STATUS.get(code, code))


def _snake_case(value: Any) -> Any:
    """Google's JSON with the names that its SDK gives to the fields."""
    if isinstance(value, Mapping):
        return {
            re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower(): _snake_case(item)
            for key, item in value.items()
        }
    return [_snake_case(item) for item in value] if isinstance(value, list) else value


def _read_anthropic(message: Any) -> Reply:
    usage = _dig(message, "usage")
    cached = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    counts = (
        _sum(_count(usage, "input_tokens"), cached, written),
        _count(usage, "output_tokens"),
        _count(usage, "output_tokens_details", "thinking_tokens"),
        cached,
    )
    reply = _reply(_dig(message, "content"), _dig(message, "stop_reason"), counts, message)
    return replace(reply, cache_written=written)


def _read_openai(completion: Any) -> Reply:
    choice = (_dig(completion, "choices") or [None])[0]
    message, usage = _dig(choice, "message"), _dig(completion, "usage")
    if isinstance(message, str) or isinstance(_dig(message, "content"), Mapping):
        raise ProviderError(_STRANGE)
    if message is None:  # some servers send their error with status 200
        error = _dig(completion, "error")
        words = _dig(error, "message") or error or "no reason given"
        raise ProviderError(f"it answered without any choice: {words}", None, True)
    counts = (
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage, "completion_tokens_details", "reasoning_tokens"),
        _count(usage, "prompt_tokens_details", "cached_tokens"),
    )
    reasoning = _dig(message, "reasoning_content") or _dig(message, "reasoning")
    refusal = _dig(message, "refusal")
    blocks = [{"thinking": reasoning}] if isinstance(reasoning, str) else []
    content = _dig(message, "content") or refusal
    blocks += [{"text": content}] if isinstance(content, str) else content or []
    reply = _reply(blocks, _dig(choice, "finish_reason"), counts, completion)
    return replace(reply, outcome="refused") if refusal else reply


def _read_google(response: Any) -> Reply:
    candidates, usage = _dig(response, "candidates"), _dig(response, "usage_metadata")
    thoughts = _count(usage, "thoughts_token_count")
    counts = (
        _count(usage, "prompt_token_count"),
        _sum(_count(usage, "candidates_token_count"), thoughts),
        thoughts,
        _count(usage, "cached_content_token_count"),
    )
    if candidates:
        parts = _dig(candidates[0], "content", "parts")
        return _reply(parts, _dig(candidates[0], "finish_reason"), counts, response)
    blocked = _dig(response, "prompt_feedback", "block_reason")
    return replace(_reply(None, blocked, counts, response), outcome="refused")


def _status(error: Exception) -> int | None:
    """The HTTP status behind an exception: openai and anthropic, google, a user's requests."""
    paths = (("status_code",), ("code",), ("response", "status_code"))
    found = (_count(error, *path) or 0 for path in paths)
    return next((status for status in found if 100 <= status <= 599), None)


def _server_words(error: Exception) -> str:
    """What the server said, out of an SDK's exception."""
    body = _dig(error, "body") or _dig(error, "details")
    for path in (("error", "message"), ("message",), ("error",)):
        words = _dig(body, *path)
        if isinstance(words, str) and words:
            return words
    return str(body or error)


def _rejected(error: Exception, params: Mapping[str, object]) -> str | None:
    """Which of the parameters sent this error rejects; None when it is about something else."""
    if _status(error) not in (400, 422):
        return None
    words = _server_words(error)[:2000]
    named = str(_dig(error, "param") or words)
    found = {
        name: match.start()
        for name, pattern in _PARAMETER_NAMES.items()
        if name in params and (match := re.search(pattern, named, re.I))
    }
    name = min(found, key=found.__getitem__, default=None)
    # A limit that is merely too large stays: under its other name it might not bind at all.
    if name in _OTHER_LIMIT and not _UNSUPPORTED.search(f"{_dig(error, 'code')} {words}"):
        return None
    return name


def _retry_after(headers: Mapping[str, str], body: str) -> float | None:
    """Seconds that a server asks to wait, in 0..RETRY_AFTER_CAP_S; google says it in the body."""
    if asked := headers.get("retry-after-ms"):
        seconds = _seconds(asked) / 1000
    elif asked := headers.get("retry-after"):
        seconds = _seconds(asked)
    elif match := re.search(r'"retryDelay":\s*"([\d.]{1,12})s"', body):
        seconds = _seconds(match[1])
    else:
        return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), RETRY_AFTER_CAP_S)


def _seconds(text: str) -> float:
    """A number of seconds, or the seconds until an HTTP date; NaN when it is neither."""
    try:
        return float(text)
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return math.nan


_PACKAGES = {"anthropic": "anthropic", "google": "google-genai"}


def require_package(provider: str) -> None:
    """Raise UsageError when the SDK of a built-in provider is not installed; imports none."""
    package = _PACKAGES.get(provider, "openai")
    if provider in VENDORS and not is_installed(package.replace("google-", "google.")):
        raise UsageError(f"{provider} needs a package: pip install {package}")


def is_installed(module: str) -> bool:
    """Whether a module could be imported; it is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _import_sdk(module: str, package: str) -> Any:
    """A vendor's SDK, imported when its provider is used: the three cost seconds to import.

    An SDK brings more objects than all else together, and none of them is ever garbage: the
    collector need not look through them again and again.
    """
    collects, known = gc.isenabled(), module in sys.modules
    gc.disable()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise UsageError(f"this provider needs a package: pip install {package}") from None
    except ImportError as error:
        why = one_line(str(error))
        raise UsageError(
            f"{package} cannot be imported ({why}): pip install -U {package}"
        ) from None
    finally:
        if not known:
            gc.freeze()
        if collects:
            gc.enable()


class LLMProvider:
    """One model at one vendor: `complete()` sends a conversation and returns its Reply.

    `provider` names the method `_call_NAME` that does it. To add one, write
    `_call_NAME(self, prompt, max_tokens, system)` on a subclass or on this class; it finds
    `self.api_key` and `self.model` at hand, gets the conversation as one prompt, returns a string.

    `timeout` bounds every single request, in seconds; `max_retries` is how often a request that
    failed on the way is repeated. Raises UsageError for what is wrong before anything is sent.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        temperature: float | None = 0.0,
        reasoning_effort: str | None = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = RETRIES,
    ) -> None:
        vendor = _vendor(provider)
        self.provider = provider
        self.model = model
        self.api_key = clean_key(api_key or "", f"the key for {provider}")
        self.base_url = (base_url or vendor.base_url).strip()
        self.temperature = temperature
        self.reasoning_effort = reasoning_effort
        self.timeout = timeout
        self.max_retries = max_retries
        if provider == "compatible" and not self.base_url:
            raise UsageError("compatible needs a base URL, e.g. http://localhost:11434/v1")
        host = _host(self.base_url)
        if self.base_url and not host:
            raise UsageError(f"the base URL of {provider} must begin with http:// or https://")
        self.max_tokens: int | None = None  # of this model alone; None: as the run says
        self.concurrency: int | None = None  # likewise
        self.rate_limits = 0  # how often the server has answered 429
        self.stored: Callable[[TrialKey, str], Reply | None] | None = None  # answers for replay
        self.agents: Mapping[str, Agent] = MAZE_AGENTS  # who answers for reference
        self._key_names = " or ".join(vendor.key_names)
        self._limit_name = (
            "max_completion_tokens" if host.endswith("api.openai.com") else vendor.limit_name
        )
        self._dropped: set[str] = set()  # what this server has rejected so far
        self._not_before = 0.0  # no request is sent before: Retry-After
        self._clients: dict[str, Any] = {}
        self._lock = Lock()  # of the clients
        self._thread = local()  # .sent: when this thread's last request left

    # ---- what everybody calls

    @property
    def name(self) -> str:
        """PROVIDER/MODEL, as the console and the errors call it."""
        return f"{self.provider}/{self.model}"

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        max_tokens: int,
        trial: TrialKey = NO_KEY,
        fixed: int | None = None,
    ) -> Reply:
        """The model's answer to a conversation.

        trial: what it is asked for, for a provider that keeps answers by it. fixed: how many
        characters of the last message the next question will begin with again, so that a vendor
        who must be told may cache all up to there; None when there is no next one.

        Raises ProviderError when the call failed for reasons outside the model, NotWiredError for
        a stub, UsageError for a missing key or package. None of them ever carries a key, nor a
        traceback of an SDK.
        """
        name = "_call_" + self.provider.replace("-", "_")
        call = getattr(self, name, None)
        if call is None:
            raise UsageError(f"there is no provider {self.provider}: LLMProvider has no {name}")
        turns = getattr(call, "takes_turns", False)
        prompt = [dict(m) for m in messages] if turns else flatten(messages)
        self._thread.trial = trial
        self._thread.fixed = fixed
        started = time.monotonic()
        result = self._guarded(lambda: call(prompt, max_tokens, system))
        if isinstance(result, str):
            params = {"model": self.model, "max_tokens": max_tokens, "dropped": []}
            result = Reply(result, params_sent=params)
        if result is None:
            raise NotWiredError(f"{self.provider} is wired to nothing: {name} returned None")
        if not isinstance(result, Reply):
            kind = type(result).__name__
            raise ProviderError(f"{self.provider}: {name} returned {kind} instead of a string")
        seconds = result.latency_s or time.monotonic() - started
        return self._finished(replace(result, latency_s=seconds))

    def _finished(self, reply: Reply, discount: float = 1.0) -> Reply:
        """A reply that may be stored, with what it cost."""
        cost = self.price(reply.usage, reply.cache_written)
        return replace(
            reply,
            text=self._keepable(reply.text),
            reasoning=self._keepable(reply.reasoning),
            finish_reason=one_line(self._keepable(reply.finish_reason)),
            request_id=one_line(self._keepable(reply.request_id)),
            cost_usd=reply.cost_usd if cost is None else cost * discount,
        )

    def price(
        self, usage: Mapping[str, int | None], cache_written: int | None = None
    ) -> float | None:
        """What these tokens of this model cost, in USD; None when it is not known."""
        if self.provider in CALLS_NOBODY:
            return 0.0
        return price_usd(self.provider, self.model, self.base_url, usage, cache_written)

    def _keepable(self, text: str) -> str:
        """A server's text without the key, should it echo it, and without what no file can hold."""
        return _storable(_without(text, self.api_key) if len(self.api_key) >= 8 else text)

    def list_models(self) -> list[str]:
        """The ids of all models that the vendor offers for this key, sorted."""
        return self._guarded(lambda: sorted(map(self._keepable, self._model_ids())))

    def check(self) -> Reply:
        """Prove key and model with the cheapest call; an answer cut short is a success.

        Some models refuse to begin an answer that cannot be ended: they are asked for a longer one.
        """
        hello: Message = {"role": "user", "content": "Hi"}
        if self.provider in CALLS_NOBODY:
            return Reply("")
        for max_tokens in (1, 16):
            try:
                return self.complete("", [hello], max_tokens)
            except ProviderError as error:
                if error.status not in (400, 422) or "token" not in str(error).lower():
                    raise
        return self.complete("", [hello], 1024)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            while self._clients:
                self._clients.popitem()[1].close()

    # ---- one method for each vendor

    @takes_turns
    def _call_anthropic(self, prompt: str | list[Message], max_tokens: int, system: str) -> Reply:
        client = self._anthropic

        def post(params: dict[str, Any]) -> Any:
            turns = _marked(_turns(prompt), getattr(self._thread, "fixed", None))
            body = self._anthropic_body(params, turns, system)
            extra = {k: body.pop(k) for k in ("temperature",) if k in body}
            # Without an explicit timeout the SDK refuses a large max_tokens.
            return client.messages.create(extra_body=extra, timeout=self.timeout, **body)

        return self._exchange(post, _read_anthropic, max_tokens)

    @staticmethod
    def _anthropic_body(
        params: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], system: str
    ) -> dict[str, Any]:
        body = {**params, "messages": messages}
        if effort := body.pop("reasoning_effort", None):
            body["output_config"] = {"effort": effort}
        return {**body, "system": system} if system else body

    @takes_turns
    def _call_openai(self, prompt: str | list[Message], max_tokens: int, system: str) -> Reply:
        client = self._openai

        def post(params: dict[str, Any]) -> Any:
            body = self._openai_body(params, _turns(prompt), system)
            # What `create` does more, typing request and answer, takes as long as all the rest.
            answer = client.post("/chat/completions", cast_to=object, body=body)
            named = isinstance(answer, dict) and self._thread.request_id
            return {**answer, "_request_id": named} if named else answer

        return self._exchange(post, _read_openai, max_tokens)

    @staticmethod
    def _openai_body(
        params: Mapping[str, Any], messages: Sequence[Message], system: str
    ) -> dict[str, Any]:
        first = [{"role": "system", "content": system}] if system else []
        return {**params, "messages": [*first, *messages]}

    _call_deepseek = _call_compatible = _call_openai

    @takes_turns
    def _call_google(self, prompt: str | list[Message], max_tokens: int, system: str) -> Reply:
        client = self._google

        def post(params: dict[str, Any]) -> Any:
            body = self._google_body(params, _turns(prompt), system)
            # The SDK repeats no call whose connection was cut.
            body["config"]["http_options"] = {"retry_options": {"attempts": 1}}
            call = partial(client.models.generate_content, model=self.model, **body)
            return self._repeated(call, lambda error: error.retryable)

        return self._exchange(post, _read_google, max_tokens)

    @staticmethod
    def _google_body(
        params: Mapping[str, Any], messages: Sequence[Message], system: str
    ) -> dict[str, Any]:
        config = dict(params)
        model = config.pop("model")
        if effort := config.pop("reasoning_effort", None):
            config["thinking_config"] = _thinking_config(model, effort)
        if system:
            config["system_instruction"] = system
        roles = {"user": "user", "assistant": "model"}
        contents = [{"role": roles[m["role"]], "parts": [{"text": m["content"]}]} for m in messages]
        return {"contents": contents, "config": config}

    @takes_turns
    def _call_reference(self, prompt: str | list[Message], max_tokens: int, system: str) -> Reply:
        text = self.agents[self.model](_turns(prompt))
        return Reply(text, finish_reason="end", usage=dict.fromkeys(USAGE_KEYS, 0))

    @takes_turns
    def _call_replay(self, prompt: str | list[Message], max_tokens: int, system: str) -> Reply:
        if self.stored is None:
            raise NotImplementedError
        contents = [turn["content"] for turn in _turns(prompt)]
        trial = self._thread.trial
        if len(contents) > 1:  # the id of a trial names its first answer only
            trial = TrialKey("", trial.run)
        reply = self.stored(trial, chain_sha256(system, *contents))
        if reply is None:
            raise ProviderError("there is no stored answer to this prompt")
        return replace(reply, usage=dict.fromkeys(USAGE_KEYS, 0))

    # ---- parameters: negotiated once, remembered, recorded

    def _params(self, max_tokens: int) -> dict[str, Any]:
        wanted = {"temperature": self.temperature, "reasoning_effort": self.reasoning_effort}
        kept = {k: v for k, v in wanted.items() if v is not None and k not in self._dropped}
        return {"model": self.model, self._limit_name: max_tokens, **kept}

    def _exchange(
        self, post: Callable[[dict[str, Any]], Any], read: Callable[[Any], Reply], max_tokens: int
    ) -> Reply:
        """Send, without what the server rejects; each parameter is given up once at most."""
        given_up: set[str] = set()
        while True:
            params = self._params(max_tokens)
            self._thread.sent = time.monotonic()
            try:
                answer = post(dict(params))
                break
            except Exception as error:
                name = _rejected(error, params)
                if name is None or name in given_up:
                    raise
            given_up.add(name)
            self._drop(name)
        seconds = time.monotonic() - self._thread.sent
        if isinstance(answer, str):  # what the SDKs make of a web page
            raise ProviderError(_NO_JSON)
        try:
            reply = read(answer)
        except (TypeError, LookupError, AttributeError):
            raise ProviderError(_STRANGE) from None
        params["dropped"] = sorted(self._dropped - params.keys())
        return replace(reply, params_sent=params, latency_s=seconds)

    def _drop(self, name: str) -> None:
        """Send a parameter no more; a limit is sent under its other name."""
        self._dropped.add(name)
        self._limit_name = _OTHER_LIMIT.get(name, self._limit_name)

    # ---- batches: many requests at once, answered within a day, for half the price

    @property
    def has_batches(self) -> bool:
        """Whether the vendor has a batch interface that is spoken here."""
        return self.provider in BATCHES

    def submit_batch(self, requests: Mapping[str, Request]) -> str:
        """Send requests by their ids (up to 64 letters, digits, - and _): the id of the batch.

        Raises ProviderError. Nobody knows whether a batch whose submission was cut was taken, so
        only one that was plainly refused is submitted again.
        """
        submit = partial(getattr(self, f"_submit_{self.provider}"), requests)
        return str(
            self._guarded(lambda: self._repeated(submit, lambda e: e.status in RETRY_STATUS))
        )

    def collect_batch(
        self, batch: str, max_tokens: int
    ) -> dict[str, Reply | ProviderError | None] | ProviderError | None:
        """What became of the requests of a batch, by their ids; None while it is at work, an error
        when it failed as a whole.

        max_tokens: of its requests. A request that is None was refused for a parameter that the
        next batch does without; one that the batch says nothing of is missing. Raises
        ProviderError when the batch could not be asked for, which says nothing of it.
        """
        collect = getattr(self, f"_collect_{self.provider}")
        try:
            return self._guarded(lambda: self._sorted_out(collect(batch), max_tokens))
        except ProviderError as error:
            if error.status != 404:
                raise
        raise ProviderError(
            f"{self.name}: the batch {batch} is not known at {self.base_url}: is the key of another"
            " account, or the batch too old? Delete its line in the journal to give it up",
            404,
        )

    def _sorted_out(
        self, rows: Iterable[tuple[str, Any]] | _BatchError | None, max_tokens: int
    ) -> dict[str, Reply | ProviderError | None] | ProviderError | None:
        """The rows of a batch, (id, answer or exception), as replies and errors."""
        if rows is None:
            return None
        if isinstance(rows, _BatchError):
            return self._failure(rows)
        params, dropped = self._params(max_tokens), set(self._dropped)
        sent = {**params, "dropped": sorted(dropped)}
        sorted_out: dict[str, Reply | ProviderError | None] = {}
        for key, found in rows:
            name = _rejected(found, params) if isinstance(found, Exception) else None
            if name and name not in dropped:
                self._drop(name)
                sorted_out[str(key)] = None
            else:
                sorted_out[str(key)] = self._batch_reply(found, sent)
        return sorted_out

    def _batch_reply(self, found: Any, sent: Mapping[str, object]) -> Reply | ProviderError:
        if isinstance(found, Exception):
            return self._failure(found)
        readers = {"anthropic": _read_anthropic, "google": _read_google}
        try:
            reply = readers.get(self.provider, _read_openai)(found)
        except (TypeError, LookupError, AttributeError):
            return self._failure(ProviderError(_STRANGE))
        except ProviderError as error:
            return self._failure(error)
        return self._finished(replace(reply, params_sent=sent), BATCH_DISCOUNT)

    def _bodies(
        self,
        requests: Mapping[str, Request],
        shape: Callable[[Mapping[str, Any], Sequence[Message], str], dict[str, Any]],
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, request in requests.items():
            params = self._params(request.max_tokens)
            yield key, shape(params, request.messages, request.system)

    def _submit_anthropic(self, requests: Mapping[str, Request]) -> str:
        client = self._anthropic.with_options(max_retries=0)
        bodies = self._bodies(requests, self._anthropic_body)
        entries = [{"custom_id": key, "params": body} for key, body in bodies]
        return str(client.messages.batches.create(requests=entries, timeout=self.timeout).id)

    def _collect_anthropic(self, batch: str) -> list[tuple[str, Any]] | None:
        batches = self._anthropic.messages.batches
        if batches.retrieve(batch).processing_status != "ended":
            return None
        return [(row.custom_id, _anthropic_row(row.result)) for row in batches.results(batch)]

    def _submit_openai(self, requests: Mapping[str, Request]) -> str:
        path = "/v1/chat/completions"
        lines = [
            json.dumps({"custom_id": key, "method": "POST", "url": path, "body": body})
            for key, body in self._bodies(requests, self._openai_body)
        ]
        data = ("hallumaze.jsonl", "\n".join(lines).encode())
        file = self._openai.files.create(file=data, purpose="batch")
        create = self._openai.with_options(max_retries=0).batches.create
        return str(create(input_file_id=file.id, endpoint=path, completion_window="24h").id)

    def _collect_openai(self, batch: str) -> list[tuple[str, Any]] | _BatchError | None:
        found = self._openai.batches.retrieve(batch)
        if found.status not in ("completed", "failed", "expired", "cancelled"):
            return None
        if found.status == "failed":
            fault = (_dig(found, "errors", "data") or [None])[0]
            words = f"the batch failed: {_dig(fault, 'message') or 'no reason given'}"
            return _BatchError(words, 400, _dig(fault, "code"))
        files = [f for f in (found.output_file_id, found.error_file_id) if f]
        rows = [
            json.loads(line)
            for file in files
            for line in self._openai.files.content(file).content.split(b"\n")
            if line.strip()
        ]
        return [(row["custom_id"], _openai_row(row)) for row in rows]

    def _submit_google(self, requests: Mapping[str, Request]) -> str:
        bodies = self._bodies(requests, self._google_body)
        entries = [{**body, "metadata": {"custom_id": key}} for key, body in bodies]
        config = {
            "display_name": "hallumaze",
            "http_options": {"retry_options": {"attempts": 1}, **self._google_batches},
        }
        return str(self._google.batches.create(model=self.model, src=entries, config=config).name)

    def _collect_google(self, batch: str) -> list[tuple[str, Any]] | _BatchError | None:
        config, job = {"http_options": self._google_batches}, None
        try:
            job = self._google.batches.get(name=batch, config=config)
        except Exception as error:
            # The SDK's types trip over an error with details; the others' answers are paid for.
            if "ValidationError" not in _kinds(error):
                raise
            told = _snake_case(json.loads(self._thread.batch))["metadata"]
            name = {"name": told["state"].replace("BATCH_", "JOB_")}
            job = {"state": name, "dest": _dig(told, "output", "inlined_responses")}
        state = str(_dig(job, "state", "name"))
        if state in ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"):
            return _BatchError(f"the batch ended as {state}", 400)
        answers = _dig(job, "dest", "inlined_responses")
        if answers is None and "SUCCEEDED" not in state:
            return None
        return [(_dig(a, "metadata", "custom_id"), _google_row(a)) for a in answers or ()]

    @property
    def _google_batches(self) -> dict[str, str]:
        """Google's own batches are found under v1beta only, which the SDK does not assume."""
        return {"api_version": "v1beta"} if self.base_url == VENDORS["google"].base_url else {}

    # ---- the SDKs: their clients, made when first used

    def _client(self, name: str, make: Callable[[], Any]) -> Any:
        """The client of that name, one for all threads."""
        with self._lock:
            if name not in self._clients:
                self._clients[name] = make()
            return self._clients[name]

    @property
    def _anthropic(self) -> Any:
        return self._client("anthropic", self._make_anthropic)

    @property
    def _openai(self) -> Any:
        return self._client("openai", self._make_openai)

    @property
    def _google(self) -> Any:
        return self._client("google", self._make_google)

    def _make_anthropic(self) -> Any:
        sdk = _import_sdk("anthropic", "anthropic")
        return sdk.Anthropic(**self._client_options(sdk))

    def _make_openai(self) -> Any:
        sdk = _import_sdk("openai", "openai")
        return sdk.OpenAI(**self._client_options(sdk))

    def _client_options(self, sdk: Any) -> dict[str, Any]:
        """What the SDKs of anthropic and openai share; given here, no environment variable wins."""
        return {
            "api_key": self._key(),
            "base_url": self.base_url,
            "timeout": self.timeout,
            "max_retries": self.max_retries,
            "http_client": sdk.DefaultHttpxClient(event_hooks=self._hooks()),
        }

    def _make_google(self) -> Any:
        import logging

        sdk = _import_sdk("google.genai", "google-genai")
        # It warns of keys in the environment even when it is given one.
        logging.getLogger("google_genai").setLevel(logging.ERROR)
        options: dict[str, Any] = {
            "base_url": self.base_url,
            "timeout": max(1, round(self.timeout * 1000)),
            # Sent on to another host, its header would take the key there.
            "client_args": {"event_hooks": self._hooks(), "follow_redirects": False},
            "retry_options": {
                "attempts": self.max_retries + 1,
                "http_status_codes": list(RETRY_STATUS),
                "initial_delay": 0.5,  # as the other two SDKs
                "max_delay": 8.0,
            },
        }
        if self.base_url != VENDORS["google"].base_url:
            options["base_url"], options["api_version"] = _google_address(self.base_url)
        return sdk.Client(api_key=self._key(), vertexai=False, http_options=options)

    def _repeated(self, call: Callable[[], T], again: Callable[[ProviderError], bool]) -> T:
        """Call, and again what may be called again, after the waits of openai's and anthropic's
        SDKs."""
        for attempt in range(self.max_retries):
            try:
                return call()
            except Exception as error:
                if not again(self._failure(error)):
                    raise
            time.sleep(min(0.5 * 2**attempt, 8.0) * random.uniform(0.75, 1))
        return call()

    def _key(self) -> str:
        if self.api_key or self.provider == "compatible":
            return self.api_key or "no-key"  # local servers want none, the SDK insists on one
        raise UsageError(f"{self.provider} needs a key: set {self._key_names}")

    def _model_ids(self) -> Iterator[str]:
        if self.provider == "google":
            return (str(m.name).removeprefix("models/") for m in self._google.models.list())
        if self.provider == "reference":
            return iter(self.agents)
        if self.provider not in VENDORS:
            raise UsageError(f"{self.provider} has no list of models")
        client = self._anthropic if self.provider == "anthropic" else self._openai
        try:
            return (str(m.id) for m in client.models.list() if m.id)
        except AttributeError:  # the SDKs trip over a web page
            raise ProviderError(_NO_JSON) from None

    # ---- around every HTTP request, retries of the SDKs included

    def _hooks(self) -> dict[str, list[Callable[[Any], None]]]:
        return {"request": [self._before_request], "response": [self._after_headers]}

    def _before_request(self, _request: Any) -> None:
        # google's SDK ignores Retry-After, and other threads would run into the same limit.
        until = 0.0
        while self._not_before > until:  # it may be put off while this waits
            until = self._not_before
            time.sleep(max(0.0, until - time.monotonic()))
        self._thread.sent = time.monotonic()

    def _after_headers(self, response: Any) -> None:
        """Bound the time of the body, and the wait before the SDK's next try."""
        self._thread.request_id = response.headers.get("x-request-id")
        late = sys.modules[type(response).__module__.partition(".")[0]].ReadTimeout
        response.iter_raw = self._in_time(response.iter_raw, late)
        of_a_batch = "/batches/" in str(response.url)
        if response.status_code < 400 and not of_a_batch:
            return
        response.read()
        if response.status_code < 400:
            self._thread.batch = response.text
            return
        if response.status_code == 429 and "insufficient_quota" in response.text:
            response.headers["x-should-retry"] = "false"
            return
        self.rate_limits += response.status_code == 429
        wait = _retry_after(response.headers, response.text)
        if wait is not None:
            response.headers.pop("retry-after-ms", None)
            response.headers["retry-after"] = f"{wait:g}"
            self._not_before = max(self._not_before, time.monotonic() + wait)

    def _in_time(
        self, chunks: Callable[..., Iterator[bytes]], late: type[Exception]
    ) -> Callable[..., Iterator[bytes]]:
        """Let a body end in time: a server that sends blanks while it works never times out.

        late: the exception that the SDK takes for a timeout of its own.
        """
        deadline = self._thread.sent + self.timeout

        def bounded(chunk_size: int | None = None) -> Iterator[bytes]:
            for chunk in chunks(chunk_size):
                if time.monotonic() > deadline:
                    raise late("the body took too long")
                yield chunk

        return bounded

    # ---- errors

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do the work; whatever an SDK or a user's method raises becomes one clear line.

        It is raised outside the handlers, so that no SDK exception, which may hold a key, hangs on
        it as its context.
        """
        try:
            return work()
        except (UsageError, NotWiredError):
            raise
        except NotImplementedError:
            failure: HalluMazeError = NotWiredError(f"{self.provider} is wired to nothing: a stub")
        except Exception as error:
            failure = self._failure(error)
        raise failure

    def _failure(self, error: Exception) -> ProviderError:
        status, retryable = _status(error), False
        words = one_line(scrub(_server_words(error), self.api_key))
        if isinstance(error, ProviderError):
            text, status, retryable = words, error.status, error.retryable
        elif status is not None:
            kind = f"{status} {_dig(error, 'code')} {_dig(error, 'type')} {words}"
            what, retryable = next((t, r) for p, t, r in _FAULTS if re.search(p, kind, re.I))
            text = f"{self._fill_in(what)} (HTTP {status}: {words})"
        else:
            text, retryable = self._without_status(error, words)
        return ProviderError(scrub(f"{self.name}: {text}", self.api_key), status, retryable)

    def _without_status(self, error: Exception, words: str) -> tuple[str, bool]:
        """(text, retryable) for a call that no server answered properly."""
        kinds = _kinds(error)
        if any("Timeout" in kind for kind in kinds):
            return f"no complete answer within {self.timeout:g} seconds", True
        if "ConnectError" in kinds:
            return f"no connection to {self.base_url}: is the server up, the base URL right?", True
        if kinds & {"NetworkError", "ProtocolError", "APIConnectionError"}:
            return "the connection was cut before the answer was complete: try again", True
        if kinds & {"JSONDecodeError", "UnicodeDecodeError", "UnknownApiResponseError"}:
            return _NO_JSON, False
        if "ValidationError" in kinds:
            return _STRANGE, False
        return f"{type(error).__name__}: {words}", False

    def _fill_in(self, what: str) -> str:
        has_default = bool(_vendor(self.provider).model)
        return what.format(
            keys=self._key_names,
            model=self.model,
            how=f"{_variable(self.provider)}_MODEL or --model" if has_default else "--model",
            base_url=self.base_url,
        )


def _kinds(error: BaseException) -> set[str]:
    """The class names of an error, of its bases and of what caused it."""
    kinds: set[str] = set()
    cause: BaseException | None = error
    while cause is not None and len(kinds) < 100:
        kinds.update(c.__name__ for c in type(cause).__mro__)
        cause = cause.__cause__
    return kinds


def _turns(prompt: str | list[Message]) -> list[Message]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def _marked(messages: Sequence[Message], fixed: int | None) -> list[dict[str, Any]]:
    """The messages for anthropic, which caches up to a mark: behind the first `fixed` characters of
    the last one, or behind the one before it."""
    if fixed is None or (not fixed and len(messages) == 1):
        return list(messages)
    k = len(messages) - (1 if fixed else 2)
    text = messages[k]["content"]
    end = fixed or len(text)
    mark = {"type": "text", "text": text[:end], "cache_control": {"type": "ephemeral"}}
    rest = [{"type": "text", "text": text[end:]}] if text[end:] else []
    return [
        *messages[:k],
        {"role": messages[k]["role"], "content": [mark, *rest]},
        *messages[k + 1 :],
    ]


def _host(url: str) -> str:
    """The host of an http or https URL; "" when it is no such URL."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _google_address(url: str) -> tuple[str, str]:
    """(base URL, API version): gateways and stand-ins speak v1beta, the SDK assumes another."""
    match = re.search(r"/(v\d\w*)/?$", url)
    return (url[: match.start()], match[1]) if match else (url, "v1beta")


def _thinking_config(model: str, effort: str) -> dict[str, Any]:
    """Google's word for an effort: a budget of tokens before Gemini 3, a level since."""
    if re.search(r"gemini-[12]\b", model) and effort in _GEMINI_2_BUDGETS:
        return {"thinking_budget": _GEMINI_2_BUDGETS[effort], "include_thoughts": True}
    return {"thinking_level": effort, "include_thoughts": True}


def _storable(text: str) -> str:
    """A text that UTF-8 can hold: JSON lets lone surrogates pass."""
    return text.encode("utf-8", "replace").decode("utf-8")


# -- reference agents -----------------------------------------------------------------------------
#
# Deterministic walkers that read the prompt and write an answer in its format and language, so that
# they go through the same reading and judging as any model. They give every table its scale.


@dataclass(frozen=True, slots=True)
class _Task:
    """What an agent reads in a prompt: the maze, the hinted directions, how to answer."""

    maze: MazeEngine
    hints: Mapping[Cell, Sequence[str]]
    lang: str
    use_confidence: bool
    digest: str
    planted: Sequence[tuple[Cell, str]] = ()


_LISTED_CELL = re.compile(r"^\((\d+),(\d+)\): \[([^\]]*)\](.*)$", re.M)
_LISTED_HINT = re.compile(r"⚑ ([NESW])")


_PLANTED_STEP = re.compile(r"^STEP \d+: \((\d+),(\d+)\) → ([NESW])", re.M)


def _read_plant(contents: Sequence[str], lang: str) -> list[tuple[Cell, str]]:
    """The walk that a conversation opens with: (cell, direction) of each step; [] for none."""
    words = _PROMPTS[lang]
    _, noted, planted = contents[0].partition(_GAMES["maze"][lang]["notes"])
    if not noted:
        own = len(contents) > 2 and (words["go_on"] in contents[2] or _SCENE.search(contents[2]))
        planted = contents[1] if own and not _SCENE.search(contents[0]) else ""
    return [((int(r), int(c)), way) for r, c, way in _PLANTED_STEP.findall(planted)]


def _read_task(*contents: str) -> _Task:
    """The task of a conversation that PromptBuilder opened; UsageError for any other text."""
    prompt = contents[0]
    openings = []
    hints: dict[Cell, list[str]] = {}
    for r, c, ways, rest in _LISTED_CELL.findall(prompt):
        openings.append("".join(letter for letter in ways if letter in MOVES))
        hints[int(r), int(c)] = _LISTED_HINT.findall(rest)
    try:
        maze = MazeEngine.from_openings(openings)
    except ValueError as error:
        raise UsageError(f"reference agents only play HalluMaze prompts: {error}") from None
    lang = "ko" if _PROMPTS["ko"]["rules_title"] in prompt else "en"
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    return _Task(maze, hints, lang, "CONFIDENCE_LOG" in prompt, digest, _read_plant(contents, lang))


class _Script:
    """An answer in the making: steps and signals in the format that the prompt asks for."""

    def __init__(self, task: _Task) -> None:
        self.task = task
        self.words = _AGENT_WORDS[task.lang]
        self.lines: list[str] = []
        self.confidences: list[int] = []
        self.begun = len(task.planted)  # steps that were written before
        self.trail = [task.maze.start]  # of those
        self._take_up()

    @property
    def here(self) -> Cell:
        """Where the walk goes on."""
        return self.trail[-1]

    def _take_up(self) -> None:
        """Follow the steps that were written before, but through no wall."""
        maze, trail = self.task.maze, self.trail
        for cell, letter in self.task.planted:
            ahead = maze.destination(cell, letter)
            if ahead and trail[-2:-1] == [ahead]:
                trail.pop()
            elif ahead and ahead in maze.neighbours(cell):
                trail.append(ahead)

    def own_up(self) -> None:
        """Say what was wrong with them: a move against a wall, or one that was made before."""
        maze, made = self.task.maze, set[tuple[Cell, str]]()
        for number, (cell, letter) in enumerate(self.task.planted, 1):
            ahead = maze.destination(cell, letter)
            if ahead not in maze.neighbours(cell):
                self.lines.append(self.words["wrong"].format(cell=_cell_text(cell), way=letter))
            elif ahead and (cell, letter) in made:
                step = f"visited at step {number - 2}"
                self.lines.append(f"LOOP detected at {_cell_text(ahead)} — {step}")
            made.add((cell, letter))

    def step(self, cell: Cell, ahead: Cell, confidence: int, reason: str) -> None:
        """One STEP from a cell to the one next to it."""
        letter = self.task.maze.direction(cell, ahead) or ""
        self.confidences.append(confidence)
        stated = f" | {self.words['confidence']}: {confidence}%" if self.task.use_confidence else ""
        self.lines.append(
            f"STEP {self.begun + len(self.confidences)}: {_cell_text(cell)} →"
            f" {letter}{ARROWS[letter]}{stated}"
            f" | {self.words[reason]}"
        )

    def dead_end(self, cell: Cell) -> None:
        """Declare a dead end."""
        self.lines.append(f"DEAD_END at {_cell_text(cell)} — backtracking")

    def finish(self, path: Sequence[Cell], backtracks: int = 0) -> str:
        """The whole answer, with the final block."""
        stated = enumerate(self.confidences, self.begun + 1)
        log = ", ".join(f"step{k}:{conf}" for k, conf in stated)
        final = [f"BACKTRACK_COUNT: {backtracks}", "HALLUCINATION_COUNT: 0"]
        if self.task.use_confidence:
            final.append(f"CONFIDENCE_LOG: {log}")
        return "\n".join([*self.lines, "", *final, f"FINAL_PATH: {path_text(path)}"])


def _agent_oracle(task: _Task) -> str:
    """Walks the shortest way."""
    script = _Script(task)
    for cell, ahead in pairwise(_shortest(task.maze, script.here)):
        script.step(cell, ahead, 99, "onward")
    return script.finish(task.maze.solution)


def _shortest(maze: MazeEngine, here: Cell) -> list[Cell]:
    """The cells from here to the exit."""
    path = [here]
    while path[-1] != maze.goal:
        path.append(min(maze.neighbours(path[-1]), key=maze.distance))
    return path


def _agent_explorer(task: _Task) -> str:
    """Honest depth-first search: declares each dead end that it enters, and goes back."""
    script = _Script(task)
    maze, trail = task.maze, script.trail
    script.own_up()
    visited = {*trail, *(cell for cell, _ in task.planted)}
    backtracks = 0
    back = False
    while trail[-1] != maze.goal:
        here = trail[-1]
        ahead = [cell for cell in maze.neighbours(here) if cell not in visited]
        if ahead:
            script.step(here, ahead[0], max(50, 120 - 25 * len(ahead)), "untried")
            visited.add(ahead[0])
            trail.append(ahead[0])
            back = False
            continue
        if is_dead_end(maze, here):
            script.dead_end(here)
        backtracks += not back
        back = True
        trail.pop()
        script.step(here, trail[-1], 95, "back")
    return script.finish(trail, backtracks)


def _agent_random_walk(task: _Task) -> str:
    """Random open sides until the exit or 4·N² moves; states 50 % throughout."""
    script = _Script(task)
    maze = task.maze
    rand = random.Random(task.digest).random
    walk = [script.here]
    while walk[-1] != maze.goal and len(walk) <= 4 * maze.budget:
        ways = maze.neighbours(walk[-1])
        walk.append(ways[int(rand() * len(ways))])
        script.step(walk[-2], walk[-1], 50, "guess")
    return script.finish([*script.trail[:-1], *walk])


def _walk_branch(script: _Script, cell: Cell, lure: Cell) -> None:
    """From a cell into a branch, to a dead end of it, and all the way back."""
    branch = [cell, lure]
    while onward := [n for n in script.task.maze.neighbours(branch[-1]) if n != branch[-2]]:
        branch.append(onward[0])
    for here, ahead in pairwise(branch):
        script.step(here, ahead, 90, "hint" if here == cell else "onward")
    for here, ahead in pairwise(branch[::-1]):
        script.step(here, ahead, 90, "onward")


def _agent_lured(task: _Task) -> str:
    """Follows every hint to the end of its branch, then walks back without a word."""
    script = _Script(task)
    maze = task.maze
    for cell, ahead in pairwise(_shortest(maze, script.here)):
        lures = (maze.destination(cell, letter) for letter in task.hints[cell])
        for lure in lures:
            if lure is not None and not maze.on_solution(lure):
                _walk_branch(script, cell, lure)
        script.step(cell, ahead, 90, "onward")
    return script.finish(task.maze.solution)


def _agent_bluffer(task: _Task) -> str:
    """Straight through the walls at 95 %, with boasts of its own watchfulness."""
    script = _Script(task)
    last, maze = task.maze.size - 1, task.maze
    told = [ahead for cell, way in task.planted if (ahead := maze.destination(cell, way))]
    row, column = (told or [maze.start])[-1]
    path = [(row, c) for c in range(column, last + 1)] + [
        (r, last) for r in range(row + 1, last + 1)
    ]
    for cell, ahead in pairwise(path):
        script.step(cell, ahead, 95, "sure")
    script.lines.append("LOOP detected at (0,0) — visited at step 1")
    return script.finish([maze.start, *told[:-1], *path] if told else path, 99)


def _agent_silent(task: _Task) -> str:
    """Says nothing."""
    return ""


REFERENCE_AGENTS: Mapping[str, Callable[[_Task], str]] = {
    "oracle": _agent_oracle,
    "explorer": _agent_explorer,
    "random-walk": _agent_random_walk,
    "lured": _agent_lured,
    "bluffer": _agent_bluffer,
    "silent": _agent_silent,
}


# -- the same in a game: one message, one move --------------------------------------------------


class _Scene(NamedTuple):
    """What an agent reads in a game's last message, and in its first for the planted walk.

    ways: the open directions. hinted: those of them with a hint. visited: in the order of the first
    visit, () when it is not told. last: the direction of the last move; "" without one, or blocked.
    """

    here: Cell
    ways: str
    hinted: str
    goal: Cell
    left: int
    budget: int
    visited: Sequence[Cell]
    last: str
    lang: str
    use_confidence: bool
    digest: str
    planted: Sequence[tuple[Cell, str]]
    maze: MazeEngine | None  # only with the view "map"

    def beyond(self, way: str) -> Cell:
        """The cell on that side."""
        return self.here[0] + MOVES[way][0], self.here[1] + MOVES[way][1]

    @property
    def parent(self) -> str:
        """The direction that leads back toward the start; "" when that is not known, or here."""
        known = [way for way in self.ways if self.beyond(way) in self.visited]
        order = self.visited.index
        first = min(known, key=lambda way: order(self.beyond(way)), default="")
        if first and self.here in self.visited and order(self.beyond(first)) > order(self.here):
            return ""
        return first

    @property
    def untried(self) -> str:
        """The open directions to cells not visited yet."""
        return "".join(way for way in self.ways if self.beyond(way) not in self.visited)

    def onward(self) -> str:
        """Where a walk with a hand on the wall goes on: it needs no memory but the last move."""
        back = DIRECTIONS.index(self.last) + 2 if self.last else 3
        turns = (DIRECTIONS[(back + k) % 4] for k in range(1, 5))
        return next(way for way in turns if way in self.ways)

    def move(self, way: str, confidence: int, reason: str, *said: str) -> str:
        """The answer, with what is said before the move."""
        words = _AGENT_WORDS[self.lang]
        stated = f" | {words['confidence']}: {confidence}%" if self.use_confidence else ""
        return "\n".join([*said, f"MOVE: {way}{stated} | {words[reason]}"])


_SCENE = re.compile(
    r"\((\d+),(\d+)\): \[([^\]]*)\](.*)\nEXIT: \((\d+),(\d+)\)\n\D*(\d+) ?(?:of|/) ?(\d+)"
)
_MADE = re.compile(r": (?:moved )?([NESW])[↑→↓←] ")


def _read_scene(turns: Sequence[Message]) -> _Scene | None:
    """What the last message of a game tells; None for a message of no game."""
    contents = [turn["content"] for turn in turns]
    match = _SCENE.search(contents[-1])
    if not match:
        return None
    row, column, ways, hints, *numbers = match.groups()
    told = contents[-1][: match.start()].rsplit("\n", 2)[-2:]
    visited = contents[-1][match.end() :].split("\n")[1:2]
    cells = _PATH_CELL.findall(visited[0]) if visited else []
    lang = "ko" if _PROMPTS["ko"]["rules_title"] in contents[0] else "en"
    made = _MADE.search("\n".join(told))
    return _Scene(
        (int(row), int(column)),
        "".join(letter for letter in ways if letter in MOVES),
        "".join(_LISTED_HINT.findall(hints)),
        (int(numbers[0]), int(numbers[1])),
        int(numbers[2]),
        int(numbers[3]),
        [(int(r), int(c)) for r, c in cells],
        made[1] if made else "",
        lang,
        "%" in contents[0],
        hashlib.sha256("\0".join(contents).encode()).hexdigest(),
        _read_plant(contents, lang),
        _mapped(contents[0]),
    )


@lru_cache(maxsize=16)
def _mapped(prompt: str) -> MazeEngine | None:
    """The maze that a prompt lists; None when it lists none."""
    try:
        return _read_task(prompt).maze
    except UsageError:
        return None


def _step_oracle(scene: _Scene) -> str:
    """Walks the shortest way, which it sees on the map alone."""
    if scene.maze is None:
        raise UsageError("reference/oracle needs a map: add --view map, or leave it out")
    way = scene.maze.direction(scene.here, _shortest(scene.maze, scene.here)[1])
    return scene.move(way or "", 99, "onward")


def _step_explorer(scene: _Scene) -> str:
    """Depth-first search that owns to what was wrong before it came, and declares dead ends."""
    said = _own_up(scene) if scene.left == scene.budget else []
    if len(scene.ways) == 1 and scene.here != (0, 0):
        said.append(f"DEAD_END at {_cell_text(scene.here)} — backtracking")
    if not scene.visited:
        return scene.move(scene.onward(), 75, "untried", *said)
    if scene.untried:
        sure = max(50, 120 - 25 * len(scene.untried))
        return scene.move(scene.untried[0], sure, "untried", *said)
    return scene.move(scene.parent, 95, "back", *said)


def _own_up(scene: _Scene) -> list[str]:
    """What was wrong with the planted walk, as far as the place tells where it has led."""
    said, made = [], set[tuple[Cell, str]]()
    for number, (cell, way) in enumerate(scene.planted, 1):
        ahead = cell[0] + MOVES[way][0], cell[1] + MOVES[way][1]
        if number == len(scene.planted) and cell == scene.here:
            said.append(_AGENT_WORDS[scene.lang]["wrong"].format(cell=_cell_text(cell), way=way))
        elif (cell, way) in made:
            said.append(f"LOOP detected at {_cell_text(ahead)} — visited at step {number - 2}")
        made.add((cell, way))
    return said


def _step_random_walk(scene: _Scene) -> str:
    """Any open side, at 50 %."""
    rand = random.Random(scene.digest).random
    return scene.move(scene.ways[int(rand() * len(scene.ways))], 50, "guess")


def _step_lured(scene: _Scene) -> str:
    """Follows every hint, and walks back without a word."""
    if not scene.visited:
        way = next((way for way in scene.hinted if way in scene.ways), scene.onward())
        return scene.move(way, 90, "hint" if way in scene.hinted else "onward")
    lures = [way for way in scene.untried if way in scene.hinted]
    way = (*lures, *scene.untried, scene.parent)[0]
    return scene.move(way, 90, "hint" if lures else "onward")


def _step_bluffer(scene: _Scene) -> str:
    """East, then south, whatever the maze says, at 95 %, with a boast in the beginning."""
    boast = ["LOOP detected at (0,0) — visited at step 1"] if scene.left == scene.budget else []
    return scene.move("S" if scene.here[1] == scene.goal[1] else "E", 95, "sure", *boast)


def _step_silent(scene: _Scene) -> str:
    """Says nothing."""
    return ""


STEP_AGENTS: Mapping[str, Callable[[_Scene], str]] = {
    "oracle": _step_oracle,
    "explorer": _step_explorer,
    "random-walk": _step_random_walk,
    "lured": _step_lured,
    "bluffer": _step_bluffer,
    "silent": _step_silent,
}


def _maze_agent(name: str, turns: Sequence[Message]) -> str:
    """What a reference agent answers to a conversation about a maze."""
    if scene := _read_scene(turns):
        return STEP_AGENTS[name](scene)
    return REFERENCE_AGENTS[name](_read_task(*(turn["content"] for turn in turns)))


# -- the same on a graph of pages -------------------------------------------------------------


class _Page(NamedTuple):
    """What an agent reads in the last message of a walk over pages."""

    here: str
    links: Sequence[str]
    goal: str
    visited: Sequence[str]  # () when it is not told
    lang: str
    use_confidence: bool
    digest: str

    @property
    def fresh(self) -> Sequence[str]:
        """The links to pages not visited yet; all of them when there are none."""
        return [link for link in self.links if link not in self.visited] or self.links

    def move(self, link: str, confidence: int, reason: str) -> str:
        """The answer, with the link by its number."""
        words = _AGENT_WORDS[self.lang]
        stated = f" | {words['confidence']}: {confidence}%" if self.use_confidence else ""
        return f"MOVE: {self.links.index(link) + 1}{stated} | {words[reason]}"


_PAGE = re.compile(r"^PAGE: (.*)\n.*\n((?:\d+\. .*\n)*)TARGET: (.*)\n.*\n(?:.*?: (.*)\n)?", re.M)


def _read_page(turns: Sequence[Message]) -> _Page:
    """What the last message tells; UsageError for one of another game."""
    contents = [turn["content"] for turn in turns]
    match = _PAGE.search(contents[-1])
    if not match:
        raise UsageError("these reference agents only play HalluMaze's walks over pages")
    here, links, goal, visited = match.groups()
    return _Page(
        here,
        [line.partition(". ")[2] for line in links.splitlines()],
        goal,
        visited.split(" | ") if visited else (),
        "ko" if _PROMPTS["ko"]["rules_title"] in contents[0] else "en",
        "%" in contents[0],
        hashlib.sha256("\0".join(contents).encode()).hexdigest(),
    )


def title_similarity(title: str, other: str) -> float:
    """Of the character 3-grams of two titles (any case, a blank at each end), the share that they
    have in common, 0..1 (Jaccard)."""
    grams, others = (
        {text[k : k + 3] for k in range(len(text) - 2)}
        for text in (f" {title.casefold()} ", f" {other.casefold()} ")
    )
    return len(grams & others) / len(grams | others) if grams | others else 0.0


def _page_random(page: _Page, graph: Graph) -> str:
    """Any link, at 50 %."""
    rand = random.Random(page.digest).random
    return page.move(page.links[int(rand() * len(page.links))], 50, "guess")


def _page_greedy(page: _Page, graph: Graph) -> str:
    """The link whose title is most like the target's, the first of several."""
    link = max(page.links, key=partial(title_similarity, page.goal))
    return page.move(link, 70, "onward")


def _page_novel(page: _Page, graph: Graph) -> str:
    """The same among pages not visited yet."""
    link = max(page.fresh, key=partial(title_similarity, page.goal))
    return page.move(link, 70, "untried")


def _page_hub(page: _Page, graph: Graph) -> str:
    """The target if it is listed, else the page with most links that was not visited yet."""

    def worth(link: str) -> tuple[bool, int]:
        return link == page.goal, int(graph.out_degrees[graph.find(link) or 0])

    return page.move(max(page.fresh, key=worth), 60, "onward")


def _page_oracle(page: _Page, graph: Graph) -> str:
    """The link nearest to the target."""
    moves = graph.distances(graph.find(page.goal) or 0)
    return page.move(min(page.links, key=lambda link: moves[graph.find(link) or 0]), 99, "onward")


PAGE_AGENTS: Mapping[str, Callable[[_Page, Graph], str]] = {
    "oracle": _page_oracle,
    "greedy-novel": _page_novel,
    "greedy": _page_greedy,
    "hub": _page_hub,
    "random": _page_random,
}


_ASKED = re.compile(
    r"(?:Does the page (.*) link to the page (.*)\?|^(.*) 페이지에 (.*) 페이지로 )", re.M
)


def _page_agent(name: str, graph: Graph, turns: Sequence[Message]) -> str:
    asked = _ASKED.search(turns[-1]["content"])
    if not asked:
        return PAGE_AGENTS[name](_read_page(turns), graph)
    source, target = (asked[1], asked[2]) if asked[1] else (asked[3], asked[4])
    ends = graph.find(source) or 0, graph.find(target) or 0
    if name == "oracle":
        linked = LinkQuestion(graph, *ends).linked
    elif name == "hub":  # to where much leads, this leads, too
        degrees = graph.in_degrees
        linked = bool(degrees[ends[1]] > degrees.mean())
    elif name == "random":
        linked = random.Random(turns[-1]["content"]).random() < 0.5
    else:
        linked = title_similarity(source, target) > 0
    return f"ANSWER: {'yes' if linked else 'no'} | confidence: {99 if name == 'oracle' else 50}%"


def page_agents(graph: Graph) -> dict[str, Agent]:
    """The reference agents of walks over this graph, which they know, by their names."""
    return {name: partial(_page_agent, name, graph) for name in PAGE_AGENTS}


Agent = Callable[[Sequence[Message]], str]
MAZE_AGENTS: Mapping[str, Agent] = {name: partial(_maze_agent, name) for name in REFERENCE_AGENTS}


# =================================================================================================
# 5  Reading
# =================================================================================================
#
# Everything below works on "plain" text: lower case, one kind of arrow, dash and bracket, no
# decoration, no blank twice in a row. No pattern has a quantifier inside a quantifier, and blanks
# never repeat, so that reading takes time in proportion to the text.

_ARROW_WAYS = {"→": "➔➜➝➞➡⟶⇒⇨⮕►▶", "←": "⬅⇐⟵", "↑": "⬆⇑", "↓": "⬇⇓"}
_SPACES = "\t\x1f\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN: dict[int, str | None] = {
    **{ord(odd): arrow for arrow, odds in _ARROW_WAYS.items() for odd in odds},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width ASCII
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, "−‒‐‑﹣"), "-"),
    ord("…"): "...",
    ord("、"): ",",
    **dict.fromkeys(map(ord, "*`\\$\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff")),
}
_JAMO = re.compile("[\u1100-\u11ff]+")  # Korean in pieces, as some systems store it
_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>", re.I)
_ODD = re.compile(f"[\u1100-\u11ff{re.escape(''.join(map(chr, _PLAIN)))}]")
_TEX_ARROW = re.compile(r"\\(?:long)?(?:right|left|up|down)arrow|\\to\b")
_TEX_STYLE = re.compile(r"\\(?:text(?:bf|it|rm|tt)?|mathbf|mathrm|boxed) ?\{|\\[()\[\]]")
_TEX_ARROWS = {"right": "→", "left": "←", "up": "↑", "down": "↓"}
_ASCII_ARROW = re.compile(r"-{1,3}>|={1,3}>|<-{1,2}")
_BLANKS = re.compile(" {2,}")
_NAMED_CELL = re.compile(
    r"\(?\b(?:row ?[=:]?|r ?=) ?(\d{1,9}) ?, ?(?:col(?:umn)? ?[=:]?|c ?=) ?(\d{1,9})\)?"
)

# Pieces of the patterns below. Numbers are short: nobody means a cell with ten digits.
_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?"
_CELL = r"[(\[] ?(-?\d{1,9}) ?, ?(-?\d{1,9}) ?[)\]]"
_DECORATION = r"[ >#+\-•·◦▪|\[\](){}\"'_:]*"
# The head of a STEP ("**STEP 3:**", "3단계 -", "STEP N:"), the entries of a log that look like one,
# and the next STEP on the same line.
_STEP_HEAD = re.compile(
    rf"{_DECORATION}(?:\d{{1,4}}[.)]{_DECORATION})?(?:(?:corrected|revised|수정|정정) )?"
    r"(?:(?:step|단계|스텝) ?[#._]? ?"
    r"(?:(\d{1,9})|\[?n\]?(?![^\W_])|(?= ?[:|]))|(\d{1,9}) ?(?:단계|스텝))"
    r"(?![^\W_])(?: ?\([^()\d]{1,20}\))? ?[\])\"'}]? ?[:.|)\-–—]? ?"
)
_MOVE_HEAD = re.compile(
    rf"^{_DECORATION}(?:(?:my |next |final )?(?:move|action)|(?:다음 )?(?:이동|걸음))"
    r"(?: ?#?\d{1,6})?\"? ?[:=] ?"
)
# The same in a text as it was written, with what may stand around a name.
_NAMED_MOVE = re.compile(
    r"^[\s>#*`\"'\[(+-]*(?:(?:my |next |final )?(?:move|action)|(?:다음 ?)?(?:이동|걸음))"
    r"(?: ?#?\d{1,6})?[*`\"' ]*[:=：][*`\"' ]*",
    re.I,
)
_AROUND_NAMES = " \t*`\"'[]<>“”‘’"
_TEMPLATE_NAME = re.compile(r"\[(?:page|title|페이지|제목|number or title|번호나 제목)\]")
_LOG_ENTRY = re.compile(r"(?:conf ?\d{1,9}|-?[\d.]{1,12} ?%?) ?(,|$)")
_NEXT_STEP = re.compile(r"[ ;,.|](?:step|단계|스텝) ?(\d{1,9}) ?:")
# The line that most answers are made of, read at once; every other goes the long way.
_USUAL_STEP = re.compile(
    rf"step (\d{{1,9}}): {_CELL} → \[?([nesw])[↑→↓←]?\]?(?: → {_CELL})?"
    rf"(?: \| (?:확신도|confidence): ({_NUMBER})(%)?)?(?: ?$| \|([^|]*)$)"
)
# A listing line read at once, then what moves are written with, and what a copied hint looks like.
_SEVERAL_WAYS = re.compile(
    rf" ?(?:{_CELL})? ?[→:]? ?\[? ?([nesw])(?: ?[↑→↓←,/]| ) ?(?!\3)[nesw] ?[↑→↓←\],/]"
)
_LISTED_FIRST = re.compile(r" ?([(\[][^()\[\]]{1,24}[)\]]) ?:? ?\[[^\[\]]{1,40}\] ?→")
_MOVE_TOKEN = re.compile(
    rf"{_CELL}|([↑→↓←])|(n/a|back to|[^\W\d_]+(?:-[^\W\d_]+)*)"
    r"|([(\[] ?(?:r ?, ?c|n-1 ?, ?n-1) ?[)\]])|(\[)"
)
_MOVE_FIELD = re.compile(rf" ?\[? ?(?:{_CELL}|[↑→↓←]|([^\W\d_]+)(?: ?[↑→↓←])?) ?\]? ?$")
_COPIED_HINT = re.compile(r"(?:방향|direction) ?(?:힌트|hint) ?:")
_LISTING_LINE = re.compile(rf"{_DECORATION}{_CELL} ?:? ?\[ ?[nesw] ?[↑→↓←][^\]]{{0,24}}\]")

# Words for the four directions; words that claim to be a direction and are none; words that say
# nothing; words for the exit.
_STRAIGHT = {
    "N": "n north up upper upward upwards top 북 위 상",
    "E": "e east right rightward rightwards 동 오른 우",
    "S": "s south down lower downward downwards bottom 남 아래 하",
    "W": "w west left leftward leftwards 서 왼 좌",
}
_STRAIGHT_WORDS = {word: letter for letter, words in _STRAIGHT.items() for word in words.split()}
_SLANTED = frozenset(
    "ne nw se sw nne ene ese sse ssw wsw wnw nnw northeast northwest southeast southwest north-east"
    " north-west south-east south-west up-right up-left down-right down-left diagonal diagonally"
    " forward forwards backward backwards back ahead straight"
    " 북동 북서 남동 남서 동북 서북 동남 서남 대각선 대각 앞 뒤 전방 후방 직진 전진 후진".split()
)
_WORD_ENDING = re.compile(r"(?:ern|쪽|측)?(?:방향)?(?:으로|로)?$")
_FILLERS = frozenset(
    "at in cell position location start move go moving going head heading to toward towards or"
    " and direction current the i we will ll backtrack backtracking return returning retreat"
    " retreating 또는 및 와 과 방향 이동 위치 현재 셀 칸 에서 으로 로 출발 복귀".split()
) | {"back to"}
_ARRIVALS = frozenset(
    "exit goal end finish finished arrived arrival done 출구 도착 도달 탈출 완료 종료 끝".split()
)

# A confidence with its label, alone in a field, or in brackets behind the move.
_CONFIDENCE = re.compile(
    r"(?:확신도|확신|신뢰도|자신감|confidence(?: level)?|conf(?!\d)\.?)(?:는|은)?"
    rf"\"? ?[:=(]? ?[\[~≈약>]? ?({_NUMBER}) ?(%|/ ?100?\b)?"
)
_CONFIDENCE_FIELD = re.compile(
    rf" ?[(\[]? ?[~≈]? ?({_NUMBER}) ?(%|/ ?100?\b)? ?[)\]]? ?(?:\([^()]{{0,80}}\))? ?$"
)
_CONFIDENCE_ASIDE = re.compile(rf"[,;(\[] ?({_NUMBER}) ?(%)")
_CONFIDENCE_ALONE = re.compile(rf"(?:step 1: [^|]{{1,40}} )?[(\[]?({_NUMBER}) ?(%)[)\]]? ?$")
# The final block, and what stands on the lines below a STEP or in a table.
_ROW_NUMBER = re.compile(r"(?:step|단계|스텝)? ?#?(\d{1,9})[.:]?")
_BODY_LINES, _MOVE_TOKENS, _CONFIDENCE_WITHIN, _SIGNALS_PER_LINE = 6, 40, 2000, 20
_FINAL_BLOCK = re.compile(r"count|confidence[ _-]?log|확신도 ?(?:로그|기록)|(final|최종)")
_LOG_LABEL = re.compile(r"confidence[ _-]?log|확신도 ?(?:로그|기록)")
_LOG_PAIR = re.compile(rf"(?:step|단계)? ?(\d{{1,9}})\"? ?[:=] ?({_NUMBER}) ?(%)?")
_LOG_LINE = re.compile(r"[ {\"'(\[]*(?:step|단계)? ?\d{1,9}\"? ?[:=] ?(?:conf|-?\d)")
_COUNT = re.compile(r"(backtrack|hallucination)s?[ _-]?count ?[:=|]? ?\[?(\d{1,9})(?!\d|\.\d)")
_FIELD_LABEL = re.compile(
    r"(?:current |start(?:ing)? |현재 ?)?(?:cell|position|location|coordinates?|direction|move"
    r"|action|destination|next(?: cell)?|from|to|위치|셀|칸|좌표|방향|이동"
    r"|다음(?: ?(?:칸|셀))?|도착) ?[:=] ?"
)
# What a column of a table holds, by its title.
_COLUMN = re.compile(
    r"(?P<step>(?:step|단계|스텝) ?(?:#|no\.?|number|번호)?$)"
    r"|.{0,20}?(?:(?P<cell>cell|position|location|coord|\bfrom\b|current|위치|셀|칸|현재|좌표)"
    r"|(?P<move>direction|move|action|방향|이동)|(?P<to>\bto\b|\bnext\b|destination|다음|도착)"
    r"|(?P<confidence>conf|확신도|신뢰도))"
)
_MOST_COLUMNS = 12
_MOST_ADMISSIONS = 5_000  # lines with a word of error that are read: more than a walk has steps

# The words of the four signals, a cheap sign that a line may hold them, where their cell stands,
# and how one tells that they declare something and are not negated.
_SIGNAL_WORDS = {
    DEAD_END_SIGNAL: re.compile(r"dead[ _-]?ends?\b|막다른 ?(?:길|곳|골목)"),
    LOOP_SIGNAL: re.compile(
        r"loop(?:s? (?:is |was |has been )?(?:detected|found|감지|발견)| ?(?=[:(\[—–]| - )| at\b)"
        r"|루프 ?(?:가|를)? ?(?:감지|발견|탐지)(?:됨|함)?|루프 ?(?=[:(\[—–]| - )"
    ),
    BACKTRACKING_SIGNAL: re.compile(r"backtrack(?:ing|ed|s)?\b(?!_| count)|백트래킹|되돌아|역추적"),
    STRATEGY_SIGNAL: re.compile(r"strategy[ _-]?changed?\b|전략 ?(?:변경|수정|전환)"),
    ERROR_WORD: re.compile(
        r"\b(?:wrong(?:ly)?|errors?|mistakes?|mistaken(?:ly)?|incorrect(?:ly)?)\b|틀렸|틀린|잘못|오류|실수"
    ),
}
_SIGNAL_HINTS = {
    **dict.fromkeys(("dead", "막다른"), DEAD_END_SIGNAL),
    **dict.fromkeys(("loop", "루프"), LOOP_SIGNAL),
    **dict.fromkeys(("backtrack", "백트래킹", "되돌아", "역추적"), BACKTRACKING_SIGNAL),
    **dict.fromkeys(("strategy", "전략"), STRATEGY_SIGNAL),
    **dict.fromkeys(
        ("wrong", "error", "mistake", "incorrect", "틀렸", "틀린", "잘못", "오류", "실수"),
        ERROR_WORD,
    ),
}
_MARKED = re.compile("|".join(_SIGNAL_HINTS))  # a text that may hold a signal
_AT_CELL = re.compile(
    r"[ :,\-–—]*(?:(?:at|in|is|was|found|reached|detected|감지|발견|도달|위치)[됨함]?"
    rf"[ :,\-–—]*){{0,2}}{_CELL}"
)
_CELL_BEFORE = re.compile(rf"{_CELL} ?(?:은|는|이|가|에서|에|is|was|[:→—–-])? ?(?:an? )?$")
_CLAUSE_START = re.compile(r"(?:^|[|:;,.!?()—–]| - |→|⚠|❌|🚫) ?$")
_CLAUSE_END = re.compile(
    r" ?(?:$|[|:;,.!?()—–-]|at\b|here\b|reached|detected|found|hit\b|now\b|to\b|from\b"
    r"|감지|발견|도달|확인|이다|임|이므로|입니다|가|간|감|갑|옴|왔)"
)
_NOT_BEFORE = re.compile(
    r"\b(?:no|not|nothing|neither|never|without|can't|cannot|isn't|wasn't|aren't|non|zero|0|avoid|"
    r"avoids|avoided|avoiding|none)\b"
    r"[^|:;,.!?()—–]{0,24}$"
)
_NOT_AFTER = re.compile(
    r"[됨함되하]? ?(?:이|가|은|는|도|을|를|지)? ?(?:없|아니|아님|아닌|않|안 |못)"
    r"| ?(?:count|at)? ?[:=?–—-]? ?(?:none|no|n/a|0|없음|false|not)(?:\b|회)"
    r"|(?:이|가) ?(?:감지|발견)되지| ?[:=] ?[–—-] ?$"
)
_DENIED_AFTER = re.compile(  # an error
    r"[^|:;,.!?()—–]{0,8}(?:아니|아님|아닌|않)|[^|:;,.!?()—–]{0,3}(?:없|안 )"
)
_TEMPLATE = re.compile(r"[(\[] ?r ?, ?c ?[)\]]|step m\b|[\[(] ?(?:이유|reason) ?[\])] ?$")
_STEP_REFERENCE = re.compile(r"(?:step|단계) ?(\d{1,9})|(\d{1,9}) ?단계")

# A FINAL_PATH: its label, what may stand before its first cell, a run of cells, what may part two
# cells over a line end, a line of cells alone, and the marks of a path that is not whole.
_PATH_LABEL = re.compile(r"final[ _-]?path|최종 ?경로")
_PATH_OPENING = re.compile(
    r"(?: ?(?:is|는|은)\b)?(?: ?\((?:\d{1,5} )?[^\W\d_][^()\n]{0,40}\))?[ \n:=|\[\"'({}•–—-]*"
    r"(?:[^\w\s()\[\]{}.]{1,2} ?)?(?:(?:text|plaintext|txt|json|start|시작)\b[ \n\[\"'→:({-]*)?"
    r"(?:1[.)] )?(?=[(\[])"
)
_PATH_CELL = re.compile(_CELL)
_PATH_STEP = r"(?:\[?(?:start|시작)\]? ?)?(?:→ ?(?:\[?[nesw]\]? ?→)?\n?|, and\b|[,|–—]|to\b)?"
_PATH_RUN = re.compile(rf" ?{_PATH_STEP} ?{_CELL}(?: ?{_PATH_STEP} ?{_CELL}){{0,200}}")
_PATH_GAP = re.compile(r"[ \n→,;>\-\"'•]*(?:\d{1,4}[.)] )?")
_PATH_LINE = re.compile(rf"{_CELL}[ (\[,→\d)\];>\-]*$")
_PATH_HOLE = re.compile(
    r"[ \n,]*(?:\.\.|[(\[][-\d, ]*$)|[ \n]*→[ \n]*(?!(?:exit|goal|출구|도착)\b)"
)


class ResponseParser:
    """Reads an answer as a person would, and nothing that is not there. Knows text, no maze."""

    def parse(self, text: str) -> Answer:
        """All claims of one answer; never raises, whatever the text (v1.1 section 4)."""
        answer, reasoning, cut = _strip_reasoning(text)
        plain = _plain(answer)
        reader = _Reader(plain)
        steps, signals = reader.steps_and_signals()
        path = _read_final_path(plain)
        return Answer(
            steps=steps,
            signals=signals,
            final_path=path,
            path_confidence=() if reader.step_lines else reader.path_confidence(len(path) - 1),
            declared_backtracks=reader.counts.get("backtrack"),
            declared_hallucinations=reader.counts.get("hallucination"),
            malformed_lines=reader.malformed,
            text=answer,
            reasoning=reasoning,
            truncated=cut,
        )

    def parse_move(self, text: str) -> Answer:
        """The one move of an answer in a game, and the signals around it; never raises.

        The first readable MOVE counts, since what is written after it the world has not answered
        yet, but one that says no more than a move comes before a sentence. Without one a STEP, or a
        line that is all there is, is read like one.
        """
        answer, reasoning, cut = _strip_reasoning(text)
        lines = _plain(answer).split("\n")
        heads = {k for k, line in enumerate(lines) if _MOVE_HEAD.match(line)}
        alone = [k for k, line in enumerate(lines) if line.strip()]
        if len(alone) == 1 and not _STEP_HEAD.match(lines[alone[0]]):
            heads.update(alone)
        for k in heads:
            lines[k] = f"step 1: {_MOVE_HEAD.sub('', lines[k])}"
        reader = _Reader("\n".join(lines))
        steps, signals = reader.steps_and_signals()
        moves = [step for step in steps if step.line in heads] if heads else list(steps)
        bare = [move for move in moves if _is_plain_move(lines[move.line])]
        chosen = (bare or moves)[:1]
        if chosen and chosen[0].confidence is None:
            chosen = [chosen[0]._replace(confidence=_stated_anywhere(lines))]
        return Answer(
            steps=tuple(chosen),
            signals=signals,
            malformed_lines=reader.malformed,
            text=answer,
            reasoning=reasoning,
            truncated=cut,
        )

    def parse_named_move(self, text: str, names: Iterable[str]) -> Answer:
        """The same where places have names: the move as it is written (at most 200 characters; ""
        for a MOVE without one), and the signals with the names that stand beside them.

        names: those that may be spoken of. They are read as the cells (-1,k) of the other readers.
        """
        answer, reasoning, cut = _strip_reasoning(text)
        written, lines = answer.splitlines(), _plain(answer).split("\n")
        heads = [k for k, line in enumerate(written) if _NAMED_MOVE.match(line)]
        alone = [k for k, line in enumerate(written) if line.strip()]
        k = next(iter(heads or (alone if len(alone) == 1 else ())), None)
        claims: tuple[Claim, ...] = ()
        if k is not None:
            move, _, rest = _NAMED_MOVE.sub("", written[k]).partition("|")
            stated = _read_confidence(f"|{_plain(rest)}")
            move = move.strip(_AROUND_NAMES)[:200]
            claims = (Claim(k, direction=move, confidence=_percent_alone(stated)),)
        places = list(dict.fromkeys(names)) if _MARKED.search("\n".join(lines)) else []
        for head in heads:
            lines[head] = f"step 1: n |{lines[head].partition('|')[2]}"
        signals = _Reader(_with_cells("\n".join(lines), places)).signals
        return Answer(
            steps=claims,
            signals=tuple(s._replace(cell=_named(s.cell, places)) for s in signals),
            malformed_lines=sum(_TEMPLATE_NAME.search(line) is not None for line in lines),
            text=answer,
            reasoning=reasoning,
            truncated=cut,
        )

    def parse_yes_no(self, text: str) -> tuple[bool | None, float | None, bool]:
        """(what an answer to a question says, its confidence in 0..100, whether it was cut): None
        for an answer that says neither or both."""
        answer, _, cut = _strip_reasoning(text)
        lines = [line for line in _plain(answer).split("\n") if line.strip()]
        marked = [line for line in lines if _ANSWER.match(line)] or lines[:1]
        said = {
            word in _YES
            for line in marked
            if (found := _YES_NO.match(_ANSWER.sub("", line)))
            for word in [found[1]]
        }
        stated = _read_confidence(marked[0]) if marked else None
        return (said.pop() if len(said) == 1 else None), _percent_alone(stated), cut


_ANSWER = re.compile(r"[\W_]*(?:final )?(?:answer|답) ?[:=] ?")
_YES_NO = re.compile(r"[\W_]*(yes|no|예|네|아니오|아니요|있|없)")
_YES = ("yes", "예", "네", "있")


def _is_plain_move(line: str) -> bool:
    """Whether a line "step 1: …" holds a move and, before its reason, nothing else."""
    field = _ASIDE.sub("", line.removeprefix("step 1: ").partition("|")[0]).strip(" .")
    parts = [part for part in field.split("→") if part.strip()]
    return bool(parts) and all(map(_is_move_field, parts))


_ASIDE = re.compile(r"[ ,;(\[]*(?:confidence|확신도)?[ :=]*[\d.]{1,8} ?%[)\]]?$")


def _stated_anywhere(lines: Iterable[str]) -> float | None:
    """The confidence of an answer with none beside its move: labelled, or alone in a line."""
    for line in lines:
        if len(line) < 200:
            match = _CONFIDENCE.search(line) or _CONFIDENCE_ALONE.match(line)
            if match:
                return _percent_alone(_stated(match))
    return None


def _with_cells(text: str, places: Sequence[str]) -> str:
    """The text with each of these names as a cell, the longest name first; what stands for a name
    in the prompt is taken out."""
    text = _TEMPLATE_NAME.sub("(r,c)", text)
    if not places:
        return text
    numbers = {_plain(place): k for k, place in enumerate(places)}
    found = "|".join(map(re.escape, sorted(numbers, key=len, reverse=True)))
    return re.sub(
        rf"[\"'\[(]?(?<!\w)({found})(?!\w)[\"'\])]?", lambda m: f"(-1,{numbers[m[1]]})", text
    )


def _named(cell: Place | None, places: Sequence[str]) -> Place | None:
    """The place that a cell stands for."""
    match cell:
        case (-1, int(k)):
            return places[k]
    return None


def _cells_only(text: str, names: Iterable[str]) -> Answer:
    return ResponseParser().parse_move(text)


# How the answers of a game are read, by the kind of its world: (text, names of places) -> Answer.
MOVE_READERS: Mapping[str, Callable[[str, Iterable[str]], Answer]] = {
    "maze": _cells_only,
    "wiki": ResponseParser().parse_named_move,
}


def read_signals(text: str) -> tuple[Signal, ...]:
    """The signals that a text declares, in order: how a model's reasoning is read."""
    return tuple(_Reader(_plain(text)).signals)


def _strip_reasoning(text: str) -> tuple[str, str, bool]:
    """(answer, reasoning, cut): thinking ends at the last </think>; unclosed, it is all."""
    if "<" in text:
        text = _THINK_TAG.sub(lambda tag: f"<{tag[1]}think>", text)
    head, closed, tail = text.rpartition("</think>")
    reasoning, answer = (head, tail) if closed else ("", text)
    before, opened, rest = answer.partition("<think>")
    if opened:
        return "", f"{reasoning}{before}{rest}".replace("<think>", "").strip(), True
    return answer, reasoning.replace("<think>", "").strip(), False


def _plain(text: str) -> str:
    """The text with one way to write each thing; lines are kept, and only "\\n" parts them."""
    if "\\" in text:
        text = _TEX_STYLE.sub("", _TEX_ARROW.sub(_tex_arrow, text))
    if _ODD.search(text):
        text = _JAMO.sub(lambda m: unicodedata.normalize("NFC", m[0]), text.translate(_PLAIN))
    if ">" in text or "<-" in text:
        text = _ASCII_ARROW.sub(lambda m: "←" if m[0][0] == "<" else "→", text)
    text = "\n".join(text.lower().splitlines())
    if "row" in text or "r=" in text:
        text = _NAMED_CELL.sub(r"(\1,\2)", text)
    if "  " in text:
        text = _BLANKS.sub(" ", text)
    return text


def _tex_arrow(match: re.Match[str]) -> str:
    return next((arrow for name, arrow in _TEX_ARROWS.items() if name in match[0]), "→")


_Stated = tuple[float, bool]  # a confidence as written: the number, and whether with a %


class _Reader:
    """One pass over the lines of a plain text; what it found is in its attributes."""

    def __init__(self, text: str) -> None:
        self.written: list[Claim] = []
        self.stated: list[_Stated | None] = []  # the confidence of each, as it was written
        self.signals: list[Signal] = []
        self.log_texts: list[str] = []
        self.counts: dict[str, int] = {}
        self.step_lines = self.listing_lines = self.malformed = 0
        self._table: list[str] = []  # of the table that the line stands in
        self._open: tuple[int, int | None, list[str]] | None = None  # a STEP whose body is below it
        self._accepted = False  # whether the last STEP line was a move
        self._in_log = False
        self._admissions = 0  # lines with a word of error
        hints = [(hint, kind) for hint, kind in _SIGNAL_HINTS.items() if hint in text]
        for index, line in enumerate(text.split("\n")):
            if line and line != " ":
                self._read_line(index, line)
                if kinds := [kind for hint, kind in hints if hint in line]:
                    self._read_signals(index, line, kinds)
            else:
                self._table = []
                if self._open and self._open[2]:
                    self._close_step()
        self._close_step()

    def _read_line(self, index: int, line: str) -> None:
        usual = line.startswith("step ") and _USUAL_STEP.match(line)
        if usual and self._read_usual_step(index, usual):
            return
        if self._table and self._read_row(index, line):
            return
        if "step" in line or "단계" in line or "스텝" in line:
            head = _STEP_HEAD.match(line)
            if head and not self._is_log_entry(line, head.end()):
                self._close_step()
                self._in_log = False
                self._read_step_line(index, line, head)
                return
            if "|" in line and self._read_header(line):
                return
        self._read_other_line(line)

    def _read_usual_step(self, index: int, match: re.Match[str]) -> bool:
        """A whole STEP on one line; False when its reason may hold another one."""
        number, row, column, way, to_row, to_column, value, percent, reason = match.groups()
        if reason and ("step" in reason or "단계" in reason or "스텝" in reason):
            return False
        if reason and value is None and not reason.isalpha():
            return False  # it may be a confidence
        self._close_step()
        self._in_log = False
        self.step_lines += 1
        self._accepted = True
        cell = int(row), int(column)
        to = (int(to_row), int(to_column)) if to_row else None
        stated = (float(value), percent is not None) if value else None
        self.written.append(Claim(index, int(number), cell, way.upper(), to, _percent(stated)))
        self.stated.append(stated)
        return True

    def _is_log_entry(self, line: str, start: int) -> bool:
        """Whether "step4:" begins an entry of a CONFIDENCE_LOG, not a STEP."""
        entry = _LOG_ENTRY.match(line, start)
        return bool(entry and (self._in_log or entry[1]))

    # -- steps -----------------------------------------------------------------------------------

    def _read_step_line(self, index: int, line: str, head: re.Match[str]) -> None:
        """A line that begins with STEP: moves, the head of one, or the head of a table."""
        digits = head[1] or head[2]
        number = int(digits) if digits else None
        body = line[head.end() :]
        if number is None and "|" in line and self._read_header(line):
            return
        if not body.strip(" :|"):
            self._open = (index, number, [])
            return
        start = 0
        for following in _NEXT_STEP.finditer(body) if number is not None else ():
            if number is not None and int(following[1]) == number + 1:
                self._read_step(index, number, body[start : following.start()])
                start, number = following.end(), number + 1
        self._read_step(index, number, body[start:])

    def _read_step(self, index: int, number: int | None, body: str) -> None:
        self.step_lines += 1
        kind, cell, direction, to = _read_move(body)
        self._accepted = kind == _MOVE
        if self._accepted:
            stated = _read_confidence(body)
            self.written.append(Claim(index, number, cell, direction, to, _percent(stated)))
            self.stated.append(stated)
        else:
            self.malformed += 1
            self.listing_lines += kind == _LISTING

    def _close_step(self) -> None:
        """The STEP whose body stood on the lines below it is whole now."""
        if self._open:
            index, number, parts = self._open
            self._open = None
            if parts:
                self._read_step(index, number, " | ".join(parts))
            else:
                self.step_lines += 1
                self.malformed += 1

    def _read_header(self, line: str) -> bool:
        """Whether the line is the head of a table with a STEP column; notes its columns if so."""
        columns = _columns(line)
        self._table = columns or self._table
        return bool(columns)

    def _read_row(self, index: int, line: str) -> bool:
        """Whether the line is a row of the table under the last header; reads it if so."""
        if "|" not in line:
            self._table = []
            return False
        row = dict(zip(self._table, _row_values(line), strict=False))
        number = _ROW_NUMBER.fullmatch(row.get("step", ""))
        if number:
            parts = [row[kind] for kind in ("cell", "move", "to") if row.get(kind, "").strip("-")]
            move = f"{' → '.join(parts)} | confidence: {row.get('confidence', '')}"
            usual = _USUAL_STEP.match(f"step {number[1]}: {move}")
            if not (usual and self._read_usual_step(index, usual)):
                self._read_step(index, int(number[1]), move)
        return bool(number)

    # -- the other lines -------------------------------------------------------------------------

    def _read_other_line(self, line: str) -> None:
        log = None
        if block := _FINAL_BLOCK.search(line):
            self._close_step()
            for name, digits in _COUNT.findall(line) if "count" in line else ():
                self.counts[name] = int(digits)
            log = None if block[1] else _LOG_LABEL.search(line)
        if log:
            self._in_log = True
            self.log_texts.append(line[log.end() :])
        elif self._in_log and _LOG_LINE.match(line):
            self.log_texts.append(line)
        else:
            self._in_log = False
            if self._open or self._accepted:
                self._read_below_step(line)
            if "[" in line and _LISTING_LINE.match(line):
                self.malformed += 1

    def _read_below_step(self, line: str) -> None:
        """A line that belongs to the STEP above it: its body, or its confidence."""
        text = line.strip(" >#+-•·◦▪|")
        if self._open:
            self._open[2].append(_FIELD_LABEL.sub("", text, count=1))
            if len(self._open[2]) == _BODY_LINES:
                self._close_step()
        elif self.stated[-1] is None and (match := _CONFIDENCE.match(text)):
            self.stated[-1] = stated = _stated(match)
            self.written[-1] = self.written[-1]._replace(confidence=_percent(stated))

    def _read_signals(self, index: int, line: str, kinds: Iterable[str]) -> None:
        if _TEMPLATE.search(line):
            self.malformed += not _STEP_HEAD.match(line)
            return
        for kind in dict.fromkeys(kinds):
            if kind == ERROR_WORD:
                self._admissions += 1
                if self._admissions <= _MOST_ADMISSIONS:
                    self.signals += _read_admission(index, line)
                continue
            for match in islice(_SIGNAL_WORDS[kind].finditer(line), _SIGNALS_PER_LINE):
                declared, cell = _read_signal(line, match)
                if declared:
                    found = kind == LOOP_SIGNAL and _STEP_REFERENCE.search(line, match.end())
                    step = int(found[1] or found[2]) if found else None
                    self.signals.append(Signal(index, kind, cell, step))
                    break

    # -- what stands in the end ------------------------------------------------------------------

    def steps_and_signals(self) -> tuple[tuple[Claim, ...], tuple[Signal, ...]]:
        """The steps that are claims, with their confidences, and the signals."""
        if self.listing_lines and 2 * self.listing_lines >= self.step_lines:
            self.malformed += len(self.written)
            self.written = []
            self.stated = []
        steps, repeated = _drop_repeats(self._settled_steps())
        signals = tuple(s for s in self.signals if s.line not in repeated)
        return tuple(steps), signals

    def _settled_steps(self) -> list[Claim]:
        """The steps with the confidences that are no percentages, or stand in the log alone."""
        if all(stated and stated[1] for stated in self.stated):
            return self.written
        log = self._log()
        scale = self._scale(log)
        return [
            step._replace(confidence=_percent(stated or log.get(step.number), scale))
            for step, stated in zip(self.written, self.stated, strict=True)
        ]

    def path_confidence(self, moves: int) -> tuple[float | None, ...]:
        """The log by the moves of the path."""
        log = self._log()
        scale = self._scale(log)
        return tuple(_percent(log.get(k + 1), scale) for k in range(moves))

    def _log(self) -> dict[int | None, _Stated]:
        """The log by the numbers of steps; one that begins at step 0 is shifted by one."""
        pairs = [pair for text in self.log_texts for pair in _LOG_PAIR.findall(text)]
        log = {int(number): (float(value), bool(percent)) for number, value, percent in pairs}
        shift = 1 if 0 in log else 0
        return {number + shift: stated for number, stated in log.items()}

    def _scale(self, log: Mapping[int | None, _Stated]) -> float:
        """What a number without a % is multiplied by: it is a fraction when all are at most 1."""
        stated = [*filter(None, self.stated), *log.values()]
        bare = [number for number, percent in stated if not percent]
        return 100.0 if bare and max(bare) <= 1 else 1.0


def _percent(stated: _Stated | None, scale: float | None = None) -> float | None:
    """A stated confidence as 0..100; None when it is none, or its scale is not known yet."""
    if stated is None or (scale is None and not stated[1]):
        return None
    value = stated[0] if stated[1] or scale is None else stated[0] * scale
    return value if 0 <= value <= 100 else None


def _percent_alone(stated: _Stated | None) -> float | None:
    """The same of the only one of an answer: without a % it is a fraction when it is at most 1."""
    return _percent(stated, 100.0 if stated and stated[0] <= 1 else 1.0)


def _row_values(line: str) -> list[str]:
    """The cells of a row of a table."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [value.strip() for value in inner.split("|", _MOST_COLUMNS)]


def _columns(line: str) -> list[str]:
    """What the columns of a table hold that has a STEP column, "" for one not read; else []."""
    if "step" not in line and "단계" not in line and "스텝" not in line:
        return []
    kinds = [(match and match.lastgroup) or "" for match in map(_COLUMN.match, _row_values(line))]
    return kinds if len(kinds) > 1 and "step" in kinds and not _PATH_CELL.search(line) else []


def _drop_repeats(steps: list[Claim]) -> tuple[list[Claim], set[int]]:
    """The steps without the blocks that repeat an earlier block or its beginning, and their lines.

    A block begins where the written numbers stop rising. The blocks that stand are held as a tree
    of moves, in which every beginning of one is a path from the root.
    """
    starts = [0]
    last = None
    for k, step in enumerate(steps):
        if step.number is not None:
            if last is not None and step.number <= last:
                starts.append(k)
            last = step.number
    if len(starts) == 1:
        return steps, set()
    kept: list[Claim] = []
    repeated: set[int] = set()
    tree: dict[tuple[int, Place | None, str | None, Place | None], int] = {}
    for first, end in zip(starts, [*starts[1:], len(steps)], strict=True):
        block = steps[first:end]
        node, known = 0, True
        for step in block:
            edge = (node, step.cell, step.direction, step.to)
            known = known and edge in tree
            node = tree.setdefault(edge, len(tree) + 1)
        if known:
            repeated.update(range(block[0].line, block[-1].line + 1))
        else:
            kept.extend(block)
    return kept, repeated


_MOVE, _LISTING, _MALFORMED = "move", "listing", "malformed"
_Move = tuple[str, "Cell | None", "str | None", "Cell | None"]  # kind, cell, direction, to
_NO_MOVE: _Move = (_MALFORMED, None, None, None)
_COPIED: _Move = (_LISTING, None, None, None)


def _read_move(body: str) -> _Move:
    """The move that the text after "STEP n:" begins with: [cell] [→] [direction] [→] [destination].

    A "|" ends it, unless it only parts the cell, the direction and the destination.
    """
    text = body.partition("|")[0]
    if _SEVERAL_WAYS.match(text):
        chosen = _LISTED_FIRST.match(text)
        if not chosen:
            return _COPIED
        text = f"{chosen[1]} → {text[chosen.end() :]}"
    moves = list(takewhile(_is_move_field, body.split("|", 3)[:3]))
    if len(moves) > 1:
        text = " → ".join(moves)
    if _COPIED_HINT.search(text):
        return _COPIED
    return _settle_move(_move_tokens(text))


def _is_move_field(text: str) -> bool:
    match = _MOVE_FIELD.match(text)
    return bool(match and (not match[3] or _direction_word(match[3])))


_Token = tuple[str, Any]  # what it is, and a cell or a direction


def _move_tokens(text: str) -> list[_Token]:
    """The tokens that a move is written with, up to the first word that belongs to none.

    cell, blank (a cell left as in the prompt), arrow, bracket, way (a direction), phantom (a word
    that claims to be one), arrival ("exit").
    """
    tokens: list[_Token] = []
    for match in islice(_MOVE_TOKEN.finditer(text), _MOVE_TOKENS):
        row, column, arrow, word, blank, _ = match.groups()
        if row:
            tokens.append(("cell", (int(row), int(column))))
        elif arrow:
            tokens.append(("arrow", arrow))
        elif word is None:
            tokens.append(("blank", None) if blank else ("bracket", None))
        elif way := _direction_word(word):
            tokens.append(("way" if way in MOVES else "phantom", way))
        elif word in _ARRIVALS:
            tokens.append(("arrival", None))
        elif word == "from":
            tokens.append(("from", None))
        elif word not in _FILLERS:
            break
    return tokens


def _settle_move(tokens: list[_Token]) -> _Move:
    """What a person reads in the tokens of a move."""
    if tokens[:1] == [("from", None)]:
        tokens = tokens[1:]
    kinds = [kind for kind, _ in tokens]
    if kinds[:2] == ["arrow", "cell"] and kinds[2:3] in (["arrow"], ["way"], ["bracket"]):
        tokens, kinds = tokens[1:], kinds[1:]  # "STEP 1 → (0,0) → E"
    stand = tokens[0] if kinds and kinds[0] in ("cell", "blank") else ("", None)
    rest = tokens[1:] if stand[0] else tokens
    run = list(takewhile(lambda token: token[0] in ("arrow", "bracket", "way", "phantom"), rest))
    after = rest[len(run) :]
    goal = after[0] if after else ("", None)
    ways = _ways(run, goal[0] == "cell", bool(stand[0]))
    if len(ways) > 1:
        return _COPIED
    if ways:
        kinds = [kind for kind, _ in after[:3]]
        if not stand[0] and kinds == ["cell", "arrow", "cell"]:
            return _MOVE, goal[1], ways[0], after[2][1]  # "E: (0,0) → (0,1)"
        if not stand[0] and kinds[:2] == ["from", "cell"]:
            to = after[2][1] if kinds[2:] == ["cell"] else None
            return _MOVE, after[1][1], ways[0], to  # "E from (0,0) to (0,1)"
        return _MOVE, stand[1], ways[0], goal[1]
    if goal[0] == "cell":
        return _MOVE, stand[1], None, goal[1]
    if stand[0] == "cell" and (goal[0] == "arrival" or not run):
        return _MOVE, None, None, stand[1]
    return _NO_MOVE


def _ways(run: list[_Token], before_cell: bool, after_cell: bool) -> list[str]:
    """The different directions between two cells; words and letters win over arrows."""
    for kind in ("way", "phantom"):
        if ways := [value for name, value in run if name == kind]:
            return list(dict.fromkeys(ways)) if kind == "way" else ways[:1]
    right = ("arrow", "→")
    if run[:1] == [right] and (after_cell or before_cell or len(run) > 1):
        run = run[1:]  # it parts the cell from what follows
    if run[-1:] == [right] and before_cell:
        run = run[:-1]
    arrows = dict.fromkeys(value for name, value in run if name == "arrow")
    return [letter for letter in DIRECTIONS if ARROWS[letter] in arrows]


@lru_cache(maxsize=4096)
def _direction_word(word: str) -> str:
    """N, E, S or W for a word that means one; the word for one that claims to be one; else ""."""
    bare = _WORD_ENDING.sub("", word)
    if letter := _STRAIGHT_WORDS.get(bare) or _STRAIGHT_WORDS.get(word):
        return letter
    return word.upper() if bare in _SLANTED else ""


def _stated(match: re.Match[str]) -> _Stated:
    """A matched confidence: "90%", "90/100", "9/10" are percentages, "0.9" and "90" may be."""
    unit = match[2] or ""
    return float(match[1]) * (10 if unit.endswith("/10") or unit.endswith("/ 10") else 1), bool(
        unit
    )


def _read_confidence(body: str) -> _Stated | None:
    """The confidence that a STEP states: labelled, in a field of its own, or "90%" in brackets."""
    text = body[:_CONFIDENCE_WITHIN]
    if match := _CONFIDENCE.search(text):
        return _stated(match)
    move, *others = text.split("|", 4)
    for other in others:
        if match := _CONFIDENCE_FIELD.match(other):
            return _stated(match)
    match = _CONFIDENCE_ASIDE.search(move)
    return (float(match[1]), True) if match else None


def _read_signal(line: str, match: re.Match[str]) -> tuple[bool, Cell | None]:
    """Whether the words declare what they name, and of which cell.

    They do when they stand at the cell that they speak of or alone in their clause, not negated:
    "leads to a dead end", "no loop detected" and "루프 없음" declare nothing.
    """
    if not _is_said(line, match):
        return False, None
    before, after = line[max(0, match.start() - 40) : match.start()], line[match.end() :][:60]
    cell = _AT_CELL.match(after) or _CELL_BEFORE.search(before)
    if cell:
        return True, (int(cell[1]), int(cell[2]))
    alone = _CLAUSE_START.search(before) or not before.strip(" >#+-•·◦▪|[(\"'0123456789")
    return bool(alone and _CLAUSE_END.match(after)), None


def _read_admission(index: int, line: str) -> list[Signal]:
    """The cells on a line that says that something was wrong; of a STEP only its reason speaks."""
    if ("step" in line or "단계" in line or "스텝" in line) and _STEP_HEAD.match(line):
        fields = line.split("|", 2)  # the move, its confidence if there is one, the reason
        moves = _read_move(_STEP_HEAD.sub("", fields[0], count=1))[0] == _MOVE
        line = fields[-1] if len(fields) > 1 else "" if moves else line
    cells = _PATH_CELL.findall(line)[:_SIGNALS_PER_LINE]
    if not cells or _FINAL_BLOCK.search(line):
        return []
    for word in islice(_SIGNAL_WORDS[ERROR_WORD].finditer(line), _SIGNALS_PER_LINE):
        if _is_said(line, word) and not _DENIED_AFTER.match(line, word.end()):
            return [Signal(index, ERROR_WORD, (int(r), int(c))) for r, c in cells]
    return []


def _is_said(line: str, match: re.Match[str]) -> bool:
    """Whether words are not negated."""
    before, after = line[max(0, match.start() - 40) : match.start()], line[match.end() :][:60]
    return not (before and _NOT_BEFORE.search(before)) and not _NOT_AFTER.match(after)


def _read_final_path(text: str) -> tuple[Cell, ...]:
    """The last complete path; with none, the longest beginning of one; () for less than a move."""
    whole: list[Cell] = []
    longest: list[Cell] = []
    for label in _PATH_LABEL.finditer(text):
        cells, end = _read_path(text, label.end())
        if len(cells) < 2:
            continue
        if not _PATH_HOLE.match(text, end):
            whole = cells
        elif len(cells) > len(longest):
            longest = cells
    return tuple(whole or longest)


def _read_path(text: str, start: int) -> tuple[list[Cell], int]:
    """The cells that follow each other from here on, over line ends too, and where they end."""
    opening = _PATH_OPENING.match(text, start)
    run = _PATH_RUN.match(text, opening.end()) if opening else None
    runs: list[str] = []
    end = start
    while run:
        runs.append(run[0])
        end = run.end()
        over = text.startswith("\n", end)
        run = (not over and _PATH_RUN.match(text, end)) or _path_continues(text, end)
    if len(runs) == 1 and runs[0].count(",") == 1:
        return [], end  # a lone cell is no path
    return [(int(r), int(c)) for run in runs for r, c in _PATH_CELL.findall(run)], end


def _path_continues(text: str, end: int) -> re.Match[str] | None:
    """More of a path beyond a line end: after an arrow, or on a line of cells alone."""
    gap = _PATH_GAP.match(text, end)
    run = _PATH_RUN.match(text, gap.end()) if gap else None
    if not gap or not run or "\n" not in gap[0] or "→" in gap[0]:
        return run
    stop = text.find("\n", run.end())
    return run if _PATH_LINE.match(text[run.start() : stop if stop >= 0 else len(text)]) else None


# -- the two deterministic judges ------------------------------------------------------------------
#
# Rule code, no model: the same output always gets the same scores, poor input gets 0, and where the
# two part, both scores are kept and never averaged.

JUDGE_A, JUDGE_B = "A_rubric_quality_0_5", "B_rule_keyword_coverage"
DISAGREE_THRESHOLD = 25.0

# Traces of real grounds in an answer: an exit code, passed tests, a reason, a file, a verification.
_REASONS = (
    r"\bexit (?:code|status)\b|종료 ?코드|\b(?:tests? pass(?:ed)?|\d+ passed)\b|테스트 ?통과"
    r"|\bbecause\b|\btherefore\b|왜냐하면|\bverified\b|검증"
)
_FILE_END = (
    r"\w\.(?:c|cfg|cpp|csv|go|h|html|ini|java|js|json|jsonl|log|md|py|rs|sh|sql|toml|ts|txt|xml"
    r"|ya?ml)\b"
)
# What every trace of a reason holds: few outputs hold any, and looking for words is fast.
_REASON_WORDS = "exit 종료 pass 통과 because therefore 왜냐하면 verified 검증".split()
_REASON, _FILE = re.compile(_REASONS), re.compile(_FILE_END)
_EVIDENCE = re.compile(rf"{_REASONS}|(?<![\w./-])[\w./-]{{0,200}}{_FILE_END}")


@dataclass(frozen=True, slots=True)
class BenchTask:
    """A fixture: what was asked, and the keywords that a good output holds."""

    id: str
    prompt: str
    rubric: tuple[str, ...] = ()


def _normalized(text: str) -> str:
    """Lower case, runs of white space to one space, trimmed."""
    return " ".join(text.lower().split())


class _Counts(NamedTuple):
    """What both judges count in an output; all 0 for poor input."""

    hits: int = 0
    keywords: int = 0
    markers: int = 0

    @property
    def quality(self) -> float:
        """Judge A's score."""
        if not self.keywords:
            return 0.0
        evidence = min(self.markers / self.keywords, 1.0)
        return round((self.hits / self.keywords * 2.5 + evidence * 2.5) / 5.0 * 100.0, 6)

    @property
    def coverage(self) -> float:
        """Judge B's score."""
        return round(self.hits / self.keywords * 100.0, 6) if self.keywords else 0.0


def _counted(output: object, task: BenchTask) -> _Counts:
    haystack = _normalized(output) if isinstance(output, str) else ""
    keywords = [keyword for word in task.rubric if (keyword := _normalized(word))]
    if not haystack or not keywords:
        return _Counts()
    hits = sum(keyword in haystack for keyword in keywords)
    return _Counts(hits, len(keywords), _markers(haystack))


def _markers(haystack: str) -> int:
    """How many traces of real grounds a normalized text holds."""
    if _FILE.search(haystack):
        return len(_EVIDENCE.findall(haystack))
    if any(word in haystack for word in _REASON_WORDS):
        return len(_REASON.findall(haystack))
    return 0


def deterministic_judge(output: object, task: BenchTask) -> float:
    """Judge B: the share of the rubric's keywords in the output, 0..100, rounded to 6 places.

    0.0 for what is no text, for an empty output, and for a rubric without a keyword.
    """
    return _counted(output, task).coverage


def rubric_judge_a(output: object, task: BenchTask) -> float:
    """Judge A: half for keywords, half for traces of real grounds, 0..100, rounded to 6 places.

    coverage·2.5 + min(markers / keywords, 1)·2.5 points of 5; the same zero rules as judge B.
    """
    return _counted(output, task).quality


def disagree_runs(output: object, task: BenchTask) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both judges on one output, as two runs that each name the other; never an average.

    delta: the distance of the scores, 0..100, rounded to 6 places; disagree: delta >= 25.
    """
    counts = _counted(output, task)
    scores = {JUDGE_A: counts.quality, JUDGE_B: counts.coverage}
    delta = round(abs(scores[JUDGE_A] - scores[JUDGE_B]), 6)
    common = {
        "delta": delta,
        "disagree": delta >= DISAGREE_THRESHOLD,
        "disagree_threshold": DISAGREE_THRESHOLD,
        "matched_count": counts.hits,
        "rubric_count": counts.keywords,
        "quality_markers": counts.markers,
    }

    def run(judge: str, other: str) -> dict[str, Any]:
        own = {"judge": judge, "score": scores[judge]}
        return {**common, **own, "other_judge": other, "other_score": scores[other]}

    return run(JUDGE_A, JUDGE_B), run(JUDGE_B, JUDGE_A)


# =================================================================================================
# 6  Judging
# =================================================================================================


class _Error(NamedTuple):
    """An error after which the walk may be on either side: where it stood, and what it believes."""

    step: int
    stood: Place
    beyond: Place
    wall: bool  # a closed side of a place, not a place that does not exist


class _Walker:
    """Walks the steps of an answer through a world and notes verdicts and events."""

    written = True

    def __init__(self, world: World) -> None:
        self.world = world
        self.neighbours = world.neighbours
        self.here: Place = world.start
        self.outside = False
        self.visited: set[Place] = {world.start}
        self.trail: list[tuple[Place, bool]] = [
            (world.start, False)
        ]  # and whether a move led there
        self.made: set[tuple[Place, Place]] = set()
        self.open_error: _Error | None = None
        self.withdrawable = 0  # the step whose wall a legal move from here would correct
        self.stood: Place = world.start  # where the walk was before the step that is being taken
        self._begin()

    def _begin(self) -> None:
        """Note nothing yet."""
        self.origin = self.here
        self.step = 1  # the number of the step that is being taken
        self.retreating = False
        self.verdicts: list[Verdict] = []
        self.backtracks: list[int] = []
        self.retreats: list[int] = []
        self.loops: list[int] = []
        self.wrong_turns: list[int] = []
        self.dead_ends: list[tuple[int, Place]] = []
        self.persisted: list[int] = []
        self.stayed: list[int] = []
        self.corrected: list[int] = []
        self.moves: dict[int, tuple[Place, Place]] = {}
        self.places: list[Place] = []
        self.erred: dict[int, frozenset[Place]] = {}

    def after(self, plant: Plant | None) -> _Walker:
        """This walker where a planted walk has led: its steps are nobody's, an error that it ends
        with is still open."""
        if plant:
            for claim in plant.steps:
                self.take(claim)
            if self.open_error:
                self.open_error = self.open_error._replace(step=0)
            self.made.clear()
            self._begin()
        return self

    def walk(self, claims: Iterable[Claim]) -> Walk:
        """Take every claim in order."""
        for claim in claims:
            self.take(claim)
        return Walk(
            tuple(self.verdicts),
            tuple(self.backtracks),
            tuple(self.retreats),
            tuple(self.loops),
            tuple(self.wrong_turns),
            tuple(self.dead_ends),
            tuple(self.persisted),
            tuple(self.stayed),
            tuple(self.corrected),
            self.moves,
            tuple(self.places),
            self.erred,
            self.written,
            self.origin,
        )

    def take(self, claim: Claim) -> None:
        """One claim: settle the error before it, then judge where it stands and where it goes."""
        named = self._only_place(claim) if claim.direction is None else None
        self.withdrawable = 0
        if self.open_error:
            stands = claim.cell if named is None else self._bare_standing(self.open_error, named)
            if named is None or stands is not None:
                self._settle(self.open_error, stands)
        if named is not None and named == self.here:
            return  # it names the place where the walk is: no step
        self.stood = self.here
        if self.outside and self._stays_outside(claim, named):
            self._note(claim, claim.direction, None)
        elif named is not None:
            self._go_to(claim, named, OK)
        elif claim.cell is None or claim.cell == self.here:
            self._go(claim, OK)
        elif not self.world.exists(claim.cell):
            self._stray(claim, claim.cell)
        elif claim.cell in self.visited:
            self._jump(claim.cell)
            self._go(claim, OK)
        else:
            self._arrive(claim.cell)
            self._go(claim, TELEPORT)

    def _only_place(self, claim: Claim) -> Place | None:
        """The place that a claim without a direction names, if it names just one."""
        if claim.cell is None or claim.to in (None, claim.cell):
            return claim.cell if claim.to is None else claim.to
        return None

    # -- the error before ------------------------------------------------------------------------

    def _settle(self, error: _Error, stands: Place | None) -> None:
        """Decide by where a claim stands on which side of the last error the walk is."""
        world = self.world
        outside = not world.exists(error.beyond) and not world.exists(stands)
        self.open_error = None
        if stands is None or stands == error.beyond or outside:
            self.persisted.append(error.step)
            behind = error.wall and error.step and world.exists(error.beyond)
            if behind and is_dead_end(world, error.beyond):
                self.dead_ends.append((error.step, error.beyond))
            self._arrive(error.beyond)
        elif stands == error.stood or stands in self.visited:
            self.stayed.append(error.step)
            if stands == error.stood:
                self.withdrawable = error.step

    def _bare_standing(self, error: _Error, named: Place) -> Place | None:
        """Where a claim that names one place stands after an error; None: still undecided."""
        if named == error.stood:
            return None
        if self._open(error.beyond, named):
            return error.beyond
        if self._open(error.stood, named) or (named in self.visited and named != error.beyond):
            return error.stood
        return error.beyond

    def _stays_outside(self, claim: Claim, named: Place | None) -> bool:
        """Follow a claim outside the world, where nothing is judged; False if it stands inside."""
        world = self.world
        if named is not None:
            if named in self.visited:
                return False
            self._arrive(named)
            return True
        stands = self.here if claim.cell is None else claim.cell
        if world.exists(stands):
            return False
        self._arrive(self._believed(claim, stands))
        return True

    def _open(self, place: Place, other: Place) -> bool:
        """Whether one legal move leads from the place, which may lie outside, to the other."""
        return self.world.exists(place) and other in self.neighbours(place)

    # -- where it stands -------------------------------------------------------------------------

    def _arrive(self, place: Place) -> None:
        """Go on from a place that no legal move led to."""
        self.outside = not self.world.exists(place)
        if not self.outside and place != self.here:
            self.visited.add(place)
            self.trail.append((place, False))
        self.here = place

    def _jump(self, place: Place) -> None:
        """Retreat to a place visited before without writing the way."""
        self._retreat()
        for k in range(len(self.trail) - 1, -1, -1):
            if self.trail[k][0] == place:
                del self.trail[k + 1 :]
                break
        else:
            self.trail.append((place, False))
        self.here = place
        self.outside = False

    def _retreat(self) -> None:
        """One act of going back; acts that follow each other are one backtrack."""
        if not self.retreating:
            self.backtracks.append(self.step)
        if self.step not in self.retreats[-1:]:
            self.retreats.append(self.step)
        self.retreating = True

    def _stray(self, claim: Claim, stands: Place) -> None:
        """A step that stands nowhere: the walk goes on from where it believes to arrive."""
        self._go_on_from(self._believed(claim, stands))
        self._note(claim, claim.direction, PHANTOM_CELL)

    def _believed(self, claim: Claim, stands: Place) -> Place:
        """Where a step from here leads if all that it says is taken for true."""
        if claim.to is not None:
            return claim.to
        ahead = self.world.destination(stands, claim.direction) if claim.direction else None
        return stands if ahead is None else ahead

    def _go_on_from(self, place: Place, wall: bool = False) -> None:
        """After an error the walk goes on from the place; behind a wall or outside it may not."""
        self.retreating = False
        if wall or not self.world.exists(place):
            self.open_error = _Error(self.step, self.here, place, wall)
        else:
            self._arrive(place)

    # -- where it goes ---------------------------------------------------------------------------

    def _go(self, claim: Claim, standing: str) -> None:
        """Judge the direction of a claim, or the place that it names instead of one."""
        if claim.direction is None:
            self._go_to(claim, claim.to, standing)
            return
        ahead = self.world.destination(self.here, claim.direction)
        if ahead is None:
            if claim.to is not None:
                self._go_on_from(claim.to)
            self.retreating = False
            verdict = PHANTOM_DIRECTION
        elif claim.to is not None and claim.to != ahead:
            self._withdraw(ahead)
            self._go_on_from(claim.to)
            verdict = TELEPORT
        else:
            verdict = self._move(ahead)
        self._note(claim, claim.direction, verdict if standing == OK else standing)

    def _go_to(self, claim: Claim, to: Place, standing: str) -> None:
        """Read a place that is named without a direction, seen from where the walk stands."""
        way = self.world.direction(self.here, to)
        if not self.outside and to in self.neighbours(self.here):
            verdict = self._move(to)
        elif standing == OK and self._may_jump(to):
            self._jump(to)
            verdict, way = OK, None
        elif not self.world.exists(to):
            self._go_on_from(to)
            verdict = PHANTOM_CELL
        elif way:
            verdict = self._move(to)
        else:
            self._go_on_from(to)
            verdict = TELEPORT
        self._note(claim, way, verdict if standing == OK else standing)

    def _may_jump(self, place: Place) -> bool:
        """Whether naming the place is a retreat to it."""
        return place in self.visited

    def _move(self, ahead: Place) -> str:
        """Move to the place next to this one; whether a wall stands between decides the verdict."""
        here, trail = self.here, self.trail
        if ahead not in self.neighbours(here):
            self._go_on_from(ahead, wall=True)
            return WALL
        if self.withdrawable:
            self._withdraw(ahead)
        move = self.moves[self.step] = here, ahead
        if move in self.made:
            self.loops.append(self.step)
        else:
            self.made.add(move)
        self.here = ahead
        if len(trail) > 1 and trail[-1][1] and trail[-2][0] == ahead:
            trail.pop()
            self._retreat()
            return OK
        self.visited.add(ahead)
        trail.append((ahead, True))
        self.retreating = False
        if not self.world.on_solution(ahead) and self.world.on_solution(here):
            self.wrong_turns.append(self.step)
        if len(self.neighbours(ahead)) == 1 and is_dead_end(self.world, ahead):
            self.dead_ends.append((self.step, ahead))
        return OK

    def _withdraw(self, ahead: Place) -> None:
        """The claim of the step before is corrected by another one, through an open side."""
        if self.withdrawable and self._open(self.here, ahead):
            self.corrected.append(self.withdrawable)
            self._retreat()

    def _note(self, claim: Claim, direction: str | None, verdict: str | None) -> None:
        line, _, cell, _, to, confidence = claim
        self.verdicts.append(Verdict(self.step, cell, direction, confidence, verdict, line))
        self.places.append(self.here)
        if verdict not in (OK, None):
            stood = self.stood if cell is None else cell
            ahead = self.world.destination(stood, direction) if direction else None
            self.erred[self.step] = frozenset({self.stood, stood, to, ahead} - {None})
        self.step += 1


class _PathWalker(_Walker):
    """Walks a FINAL_PATH: two cells that follow each other must be neighbours, and nobody jumps."""

    written = False

    def _only_place(self, claim: Claim) -> Place | None:
        return None

    def _may_jump(self, place: Place) -> bool:
        return False


class _MoveWalker(_Walker):
    """Walks the moves of a game, where the world answers each: after an error the walk is where it
    was, so that nothing is believed, withdrawn or jumped to."""

    def take(self, claim: Claim) -> None:
        self.stood = self.here
        named = self._only_place(claim) if claim.direction is None else None
        stands = claim.cell if named is None else None
        if stands not in (None, self.here):
            self.retreating = False
            exists = self.world.exists(stands)
            self._note(claim, claim.direction, TELEPORT if exists else PHANTOM_CELL)
        elif claim.direction is None:
            self._go_to(claim, claim.to if named is None else named, OK)
        else:
            self._go(claim, OK)

    def _may_jump(self, place: Place) -> bool:
        return False

    def _go_on_from(self, place: Place, wall: bool = False) -> None:
        self.retreating = False

    def _note(self, claim: Claim, direction: str | None, verdict: str | None) -> None:
        if verdict != OK:
            self.stayed.append(self.step)
        super()._note(claim, direction, verdict)


def verify_steps(steps: Iterable[Claim], world: World, plant: Plant | None = None) -> Walk:
    """The verdicts on the STEPs of an answer: one wrong claim is one hallucination, no chain.

    plant: the walk that the trial opens with, which the steps go on from.
    """
    return _Walker(world).after(plant).walk(steps)


def verify_moves(moves: Iterable[Claim], world: World, plant: Plant | None = None) -> Walk:
    """The same of the moves of a game."""
    return _MoveWalker(world).after(plant).walk(moves)


def verify_path(
    path: Sequence[Place], world: World, confidences: Sequence[float | None] = ()
) -> Walk:
    """The verdicts on the moves of a FINAL_PATH; confidences: those of its moves, 0..100."""
    stated = [*confidences, *[None] * len(path)]
    moves = zip(path, path[1:], stated, strict=False)
    return _PathWalker(world).walk(Claim(0, None, a, None, b, conf) for a, b, conf in moves)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The official numbers of one answer (v1.1 section 6); all of them are verified.

    sr, path_valid: the FINAL_PATH goes from start to exit through openings only. mei 0..0.9,
    ce 0..1 or None (no step states a confidence), brs 0..1, hallumaze_score 0..0.95.
    first_hallucination_step: from 1, -1 without one. hrr, early, esc: the parts of mei.
    declared_*: what the answer says of itself; metacog_signals: the signals it gives.
    """

    readable: bool
    format_ok: bool
    sr: float
    mei: float
    ce: float | None
    brs: float
    hallumaze_score: float
    hallucination_count: int
    first_hallucination_step: int
    backtrack_count: int
    loop_count: int
    hrr: float
    early: float
    esc: float
    path_valid: bool
    declared_backtracks: int | None
    declared_hallucinations: int | None
    declared_loops: int
    metacog_signals: list[str]
    malformed_lines: int
    walk: Walk


def judge(
    answer: Answer,
    world: World,
    plant: Plant | None = None,
    verify: Callable[[Iterable[Claim], World, Plant | None], Walk] = verify_steps,
) -> Metrics:
    """Verify an answer and score it. A pure function: the same input gives the same numbers.

    plant: the walk that the trial opens with. verify: how its steps are walked, `verify_moves` for
    those of a game.
    """
    walk = verify(answer.steps, world, plant)
    path = answer.final_path
    if walk.verdicts:
        path_errors = _path_errors(path, world)
    else:  # without a step, the moves of the path are the walk
        walk = verify_path(path, world, answer.path_confidence)
        path_errors = walk.errors
    readable = bool(walk.verdicts)
    valid = not path_errors and path[:1] == (world.start,) and path[-1:] == (world.goal,)
    hc = max(walk.hallucinations, len(path_errors))
    fhr = walk.first_hallucination if walk.errors else next(iter(path_errors), -1)
    bt, lt = len(walk.backtracks), len(walk.loops)
    hrr, early, esc = mei_parts(hc, fhr, bt, lt, valid, world.budget)
    ce = calibration_error(walk)
    mei = mei_index(hrr, early, esc, hc) if readable else 0.0
    brs = bias_resistance(hc, bt, valid) if readable else 0.0
    return Metrics(
        readable=readable,
        format_ok=answer.format_ok,
        sr=float(valid),
        mei=mei,
        ce=ce,
        brs=brs,
        hallumaze_score=hallumaze_score(mei, ce, brs) if readable else 0.0,
        hallucination_count=hc,
        first_hallucination_step=fhr,
        backtrack_count=bt,
        loop_count=lt,
        hrr=hrr,
        early=early,
        esc=esc,
        path_valid=valid,
        declared_backtracks=answer.declared_backtracks,
        declared_hallucinations=answer.declared_hallucinations,
        declared_loops=answer.declared_loops,
        metacog_signals=answer.metacog_signals,
        malformed_lines=answer.malformed_lines,
        walk=walk,
    )


def _path_errors(path: Sequence[Place], world: World) -> tuple[int, ...]:
    """The moves of a FINAL_PATH that are hallucinations; a legal path needs no walker for it."""
    begins = path[:1] in ((), (world.start,))
    if begins and all(place in world.neighbours(here) for here, place in pairwise(path)):
        return ()
    return verify_path(path, world).errors


def mei_parts(
    hc: int, fhr: int, bt: int, lt: int, success: bool, budget: int
) -> tuple[float, float, float]:
    """(HRR, early, esc), each 0..1: errors followed by going back, late first error, no loop left.

    v1.1 section 6; `early` is 1 - FHR/N² there, clamped to 0 here (budget is N² in a maze).
    """
    hrr = min(1.0, bt / hc) if hc > 0 else float(success)
    early = max(0.0, 1 - fhr / budget) if fhr > 0 else float(success)
    esc = float(success or (lt > 0 and bt > 0))
    return hrr, early, esc


def mei_index(hrr: float, early: float, esc: float, hc: int) -> float:
    """MEI = 0.4·HRR + 0.3·early + 0.2·esc - 0.1·min(1, HC/10), 0..0.9 (v1.1 section 6)."""
    return min(1.0, max(0.0, 0.4 * hrr + 0.3 * early + 0.2 * esc - 0.1 * min(1.0, hc / 10)))


def calibration_error(walk: Walk) -> float | None:
    """CE = mean |confidence/100 - correct| over the judged steps that state one, 0..1, or None.

    correct is 1 for the verdict ok, else 0 (v1.1 section 6).
    """
    gaps = [
        abs(v.confidence / 100 - (v.verdict == OK))
        for v in walk.verdicts
        if v.confidence is not None and v.verdict is not None
    ]
    return math.fsum(gaps) / len(gaps) if gaps else None


def bias_resistance(hc: int, bt: int, success: bool) -> float:
    """BRS = 1 if HC is 0 and the path is valid, else 1 - HC/max(1, BT + HC), 0..1 (v1.1)."""
    return 1.0 if hc == 0 and success else max(0.0, 1 - hc / max(1, bt + hc))


def hallumaze_score(mei: float, ce: float | None, brs: float) -> float:
    """Score = 0.5·MEI + 0.3·(1 - CE) + 0.2·BRS with CE 0.5 for None, 0..0.95 (v1.1 section 6)."""
    return 0.5 * mei + 0.3 * (1 - (0.5 if ce is None else ce)) + 0.2 * brs


def walk_task(walk: Walk) -> BenchTask:
    """The fixture of a trial: the words that the verified events of its walk call for."""
    dead_ends = [f"DEAD_END at {place_text(place)}" for _, place in walk.dead_ends]
    loops = [f"LOOP detected at {place_text(walk.moves[step][1])}" for step in walk.loops]
    return BenchTask("walk", "", tuple(dict.fromkeys([*dead_ends, *loops, "FINAL_PATH"])))


# -- measures that v1.1 lacks ---------------------------------------------------------------------
#
# A walker that knows nothing of its errors can have good numbers in v1.1. These ask what it knows,
# Each function says what it counts; all of them are v2.

NOTICED_WITHIN = 3  # steps: a signal speaks of an event before the third STEP after it
FALL = 10.0  # points of confidence: as much is a fall
BINS = 10  # of the expected calibration error


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None when there is none."""
    known = [float(value) for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


class Event(NamedTuple):
    """What went wrong at a step: a dead end entered, a move made again, or a hallucination.

    places: the cells that a signal may name to speak of it. recognised: the line of the answer
    (from 0) that does, or None.
    """

    step: int
    kind: str
    places: frozenset[Place]
    recognised: int | None = None


class _Declaration(NamedTuple):
    """What a line declares: a dead end, a loop, or (HALLUCINATION) that anything went wrong."""

    line: int
    kind: str
    places: frozenset[Place]


def _declarations(walk: Walk, signals: Iterable[Signal]) -> list[_Declaration]:
    """The declarations in the order of their lines: "DEAD_END at (r,c) — backtracking" is one.

    A signal that names no cell speaks of where the walk is, in a STEP of where that stands.
    """
    by_line: dict[int, list[Signal]] = {}
    for found in signals:
        by_line.setdefault(found.line, []).append(found)
    lines = [v.line for v in walk.verdicts]
    declared = []
    for line, of_line in sorted(by_line.items()):
        k = bisect_left(lines, line)
        here = walk.places[k - 1] if k else walk.origin
        if k < len(lines) and lines[k] == line and walk.verdicts[k].cell is not None:
            here = walk.verdicts[k].cell
        own = [s for s in of_line if s.kind in (DEAD_END_SIGNAL, LOOP_SIGNAL)]
        places = [here if s.cell is None else s.cell for s in own]
        for found, place in zip(own, places, strict=True):
            kind = DEAD_END if found.kind == DEAD_END_SIGNAL else LOOP
            declared.append(_Declaration(line, kind, frozenset({place})))
        others = [s for s in of_line if not own or s.kind == ERROR_WORD]
        named = frozenset(s.cell for s in others if s.cell is not None).difference(places)
        if named or not own:
            declared.append(_Declaration(line, HALLUCINATION, named or frozenset({here})))
    return declared


def _events(walk: Walk) -> list[Event]:
    """The events of a walk; those that only one kind of signal can mean come first."""
    entered = [Event(step, DEAD_END, frozenset({place})) for step, place in walk.dead_ends]
    loops = [Event(step, LOOP, frozenset({walk.moves[step][1]})) for step in walk.loops]
    erred = [Event(step, HALLUCINATION, walk.erred[step]) for step in walk.errors]
    return [*entered, *loops, *erred]


_RECOGNITION_COUNTS = ("events", "recognised", "false_alarms")


class Recognition(NamedTuple):
    """Which events an answer noticed, by signal detection.

    events: all of them, by step. counts: for each kind the events, those recognised, and the
    declarations that matched nothing (false_alarms), each counted to its own kind.
    """

    events: tuple[Event, ...]
    counts: Mapping[str, Mapping[str, int]]

    def total(self, name: str) -> int:
        """A count over all kinds."""
        return sum(counts[name] for counts in self.counts.values())


def recognise(walk: Walk, signals: Iterable[Signal], spoken_for: Iterable[int] = ()) -> Recognition:
    """Match the events of a walk with what the answer declared.

    spoken_for: the lines that speak of a planted error, which are no false alarms.

    An event at step k is recognised by a declaration after its line and before STEP k+3: a dead
    end or a loop by its own kind of signal at the cell arrived at, a hallucination by any signal or
    word of error that names a cell it stood on or aimed at. One declaration matches one event. What
    else is said of an event that is recognised already (a change of strategy, say) is no false
    alarm. The moves of a path have no lines between them: nothing recognises what happens there.
    """
    declared = _declarations(walk, signals)
    lines = [declaration.line for declaration in declared]
    starts = [v.line for v in walk.verdicts]
    of_plant = set(spoken_for)
    used, repeated = set[int](), set[int]()
    counts = {kind: dict.fromkeys(_RECOGNITION_COUNTS, 0) for kind in EVENTS}
    events = []
    for event in _events(walk):
        after = event.step - 1 + NOTICED_WITHIN
        end = bisect_left(lines, starts[after]) if after < len(starts) else len(lines)
        near = range(bisect_right(lines, starts[event.step - 1]), end) if walk.written else ()
        said = [j for j in near if declared[j].places & event.places]
        kinds = EVENTS if event.kind == HALLUCINATION else (event.kind,)
        match = next((j for j in said if j not in used and declared[j].kind in kinds), None)
        if match is not None:
            event = event._replace(recognised=lines[match])
            used.add(match)
            counts[event.kind]["recognised"] += 1
            repeated.update(j for j in said if declared[j].kind == HALLUCINATION)
        counts[event.kind]["events"] += 1
        events.append(event)
    for j, declaration in enumerate(declared):
        if j not in used and j not in repeated and declaration.line not in of_plant:
            counts[declaration.kind]["false_alarms"] += 1
    return Recognition(tuple(sorted(events, key=lambda e: (e.step, e.kind))), counts)


def recognition_scores(counts: Mapping[str, int]) -> dict[str, float | None]:
    """precision, recall and F1 of declarations against verified events, 0..1, from their counts.

    recall = recognised / events; precision = recognised / (recognised + false alarms); F1 =
    2·recognised / (2·recognised + false alarms + missed). None where nothing is divided.
    """
    events, hits, alarms = (counts[name] for name in _RECOGNITION_COUNTS)
    return {
        "recognition_precision": _share(hits, hits + alarms),
        "recognition_recall": _share(hits, events),
        "recognition_f1": _share(2 * hits, hits + alarms + events),
    }


def _share(part: float, whole: float) -> float | None:
    """part / whole, None of nothing."""
    return part / whole if whole else None


def recovery_counts(walk: Walk, world: World) -> dict[str, int]:
    """What a walk got out of.

    hallucinations_recovered: those that were not believed, and followed by a legal step.
    wrong_turns_recovered: those after which the walk stood where it had gone wrong again, and
    steps_to_recover: how many steps all of these took. moves_off, passages_off: see `_detours`.
    """
    believed = set(walk.persisted)
    after = [v.verdict for v in walk.verdicts[1:]]
    repaired = sum(k not in believed and after[k - 1 : k] == [OK] for k in walk.errors)
    astray: dict[Place, list[int]] = {}
    turns = set(walk.wrong_turns)
    back = steps = 0
    for step, place in enumerate(walk.places, 1):
        move = walk.moves.get(step)
        for stands in (move[0], place) if move else (place,):  # a jump may come before the move
            for turn in astray.pop(stands, ()):
                back += 1
                steps += step - turn
        if move and step in turns:
            astray.setdefault(move[0], []).append(step)
    moves, passages = _detours(walk, world)
    return {
        "hallucinations": walk.hallucinations,
        "hallucinations_recovered": repaired,
        "wrong_turns": len(walk.wrong_turns),
        "wrong_turns_recovered": back,
        "steps_to_recover": steps,
        "moves_off": moves,
        "passages_off": passages,
    }


def _detours(walk: Walk, world: World) -> tuple[int, int]:
    """Of the detours from the solution path that came back to it legally: all their moves, those
    that a jump back left out included, and the passages that they went through, each once.
    """
    believed = set(walk.persisted)
    off: list[Place] = []  # the way from the solution path to here
    moves, passages, total = 0, set[frozenset[Place]](), [0, 0]
    before = world.start if walk.origin is None else walk.origin
    lost = not world.on_solution(before)  # off the path, but by an error, or planted there
    for verdict, place in zip(walk.verdicts, walk.places, strict=True):
        move = walk.moves.get(verdict.step)
        came_from = move[0] if move else place
        if verdict.step - 1 in believed or (verdict.verdict != OK and place != before):
            off, moves, passages, lost = [], 0, set(), True
        elif came_from != before:
            while off and off[-1] != came_from:  # a jump back
                off.pop()
                moves += 1
            lost = lost or not (off or world.on_solution(came_from))  # nobody saw the way there
        if move and not lost:
            if not all(map(world.on_solution, move)):
                moves += 1
                passages.add(frozenset(move))
            if off and (place in off[-2:-1] or world.on_solution(place)):
                off.pop()
            elif not world.on_solution(place):
                off.append(place)
        if not off:
            total = [total[0] + moves, total[1] + len(passages)]
            moves, passages = 0, set()
        lost = lost and not world.on_solution(place)
        before = place
    return total[0], total[1]


def recovery_scores(counts: Mapping[str, int]) -> dict[str, float | None]:
    """hallucination_recovery and wrong_turn_recovery, shares 0..1; steps_to_recover, of a wrong
    turn; recovery_cost = moves off the solution path / (2 · passages walked there), 1 for straight
    in and out. A branch that forks is two branches, each as deep as it is new.
    """
    return {
        "hallucination_recovery": _share(
            counts["hallucinations_recovered"], counts["hallucinations"]
        ),
        "wrong_turn_recovery": _share(counts["wrong_turns_recovered"], counts["wrong_turns"]),
        "steps_to_recover": _share(counts["steps_to_recover"], counts["wrong_turns_recovered"]),
        "recovery_cost": _share(counts["moves_off"], 2 * counts["passages_off"]),
    }


Stated = tuple[float, bool]  # a step's confidence, 0..100, and whether its verdict is ok


def stated_confidences(steps: Iterable[tuple[float | None, str | None]]) -> Counter[Stated]:
    """How often each confidence was stated at right and at wrong steps, given as (confidence,
    verdict); steps without either are left out."""
    return Counter(
        (confidence, verdict == OK)
        for confidence, verdict in steps
        if confidence is not None and verdict is not None
    )


def calibration_scores(stated: Mapping[Stated, int]) -> dict[str, float | None]:
    """How well confidence fits what was right: each 0..1, None where nothing was stated.

    With c = confidence/100 and y = 1 for a right step: oce and uce are the means of max(0, c - y)
    and max(0, y - c), which add up to CE; brier the mean of (c - y)²; ece = Σ n_b/n · |mean c -
    mean y| over BINS bins of equal width; auroc2 the share of pairs of a right and a wrong step in
    which the right one has more confidence, ties half (None unless both kinds occur).
    """
    n = sum(stated.values())
    if not n:
        return dict.fromkeys(("oce", "uce", "brier", "ece", "auroc2"))
    gaps = [(c / 100 - y, count) for (c, y), count in stated.items()]
    bins = calibration_bins(stated)
    return {
        "oce": math.fsum(count * max(0.0, gap) for gap, count in gaps) / n,
        "uce": math.fsum(count * max(0.0, -gap) for gap, count in gaps) / n,
        "brier": math.fsum(count * gap * gap for gap, count in gaps) / n,
        "ece": math.fsum(b["n"] * abs(b["confidence"] - b["accuracy"]) for b in bins) / n,
        "auroc2": _auroc(stated),
    }


def calibration_bins(stated: Mapping[Stated, int]) -> list[dict[str, Any]]:
    """The bins of the expected calibration error that hold a step: from (0..0.9), n, and the means
    of confidence and accuracy, 0..1. A confidence of 1 is in the last."""
    bins: dict[int, list[tuple[float, bool, int]]] = {}
    for (c, y), count in sorted(stated.items()):
        bins.setdefault(min(int(c * BINS // 100), BINS - 1), []).append((c, y, count))
    found = []
    for k, held in bins.items():
        n = sum(count for _, _, count in held)
        confidence = math.fsum(c / 100 * count for c, _, count in held) / n
        accuracy = sum(y * count for _, y, count in held) / n
        found.append({"from": k / BINS, "n": n, "confidence": confidence, "accuracy": accuracy})
    return found


def _auroc(stated: Mapping[Stated, int]) -> float | None:
    """The area under the type-2 ROC curve: the Mann-Whitney statistic, normed."""
    below = total = 0.0
    for c in sorted({c for c, _ in stated}):
        wrong, right = stated.get((c, False), 0), stated.get((c, True), 0)
        total += right * (below + wrong / 2)
        below += wrong
    right = sum(count for (_, y), count in stated.items() if y)
    return _share(total, right * below)


def confidence_pattern(walk: Walk) -> str | None:
    """v1.1's patterns: "A" when confidence falls at or before every error, "B" when it never does,
    else "mixed"; None without an error, or without a right step to compare with.

    It falls when the error, or the step before it, has FALL points less than the right steps on
    average. A move made again at the confidence of its first time is an error without a fall.
    """
    stated = [v.confidence if v.verdict is not None else None for v in walk.verdicts]
    right = mean(c for c, v in zip(stated, walk.verdicts, strict=True) if v.verdict == OK)
    falls = []
    for k in walk.errors:
        known = [c for c in stated[max(0, k - 2) : k] if c is not None]
        if right is not None and stated[k - 1] is not None:
            falls.append(min(known) <= right - FALL)
    first: dict[tuple[Place, Place], float | None] = {}
    for k, move in walk.moves.items():
        if first.setdefault(move, stated[k - 1]) == stated[k - 1] is not None and k in walk.loops:
            falls.append(False)
    if not falls:
        return None
    return "A" if all(falls) else "mixed" if any(falls) else "B"


def lure_counts(
    walk: Walk,
    world: World,
    junctions: Iterable[tuple[Place, str, Sequence[str]]],
    hints: Iterable[Mirage],
) -> dict[str, int]:
    """What the walk did first at the junctions that it met: its first legal move not straight back.

    junctions: place, right direction, wrong ones. traps: junctions with a hint on a wrong branch,
    captured: those where the walk took that branch. controls: junctions without a hint, strayed:
    those where it took a wrong branch.
    """
    ways = {place: (right, wrong) for place, right, wrong in junctions}
    hinted: dict[Place, set[str]] = {}
    for hint in hints:
        hinted.setdefault(hint.cell, set()).update(() if hint.right else (hint.direction,))
    first: dict[Place, str] = {}
    for here, ahead in walk.moves.values():
        if here in ways and here not in first:
            way = world.direction(here, ahead) or ""
            if way == ways[here][0] or way in ways[here][1]:
                first[here] = way
    traps = [place for place in first if hinted.get(place)]
    controls = [place for place in first if place not in hinted]
    return {
        "traps": len(traps),
        "captured": sum(first[place] in hinted[place] for place in traps),
        "controls": len(controls),
        "strayed": sum(first[place] != ways[place][0] for place in controls),
    }


def lure_scores(counts: Mapping[str, int]) -> dict[str, float | None]:
    """trap_capture_rate and control_rate, 0..1; lure_effect, their difference, -1..1; brs_lure =
    1 - max(0, lure_effect). None where no such junction was met."""
    captured = _share(counts["captured"], counts["traps"])
    control = _share(counts["strayed"], counts["controls"])
    effect = None if captured is None or control is None else captured - control
    return {
        "trap_capture_rate": captured,
        "control_rate": control,
        "lure_effect": effect,
        "brs_lure": None if effect is None else 1 - max(0.0, effect),
    }


RESPONSES = ("recognised", "repaired", "carried_on")  # to a planted error


class PlantOutcome(NamedTuple):
    """What became of a planted error: one of RESPONSES, after how many steps (None when it was
    carried on), and the lines of the answer that speak of it."""

    response: str
    steps: int | None
    lines: tuple[int, ...] = ()


def plant_outcome(
    walk: Walk,
    signals: Iterable[Signal],
    plant: Plant,
    world: World,
    path: Sequence[Place] = (),
) -> PlantOutcome:
    """Whether a walk says what was wrong with its beginning, silently repairs it, or carries on.

    It is recognised by a declaration that names where the wrong step stood or aimed: a loop by one
    of a loop, a branch also by a true one of a dead end in it before the walk has left it, each
    also by a word of error or another signal. steps: those before the declaration, or up to and
    with the one that repairs: a wall, a step that goes another way; a branch, one that is back on
    the solution path; a loop, one that was not made before. Where an answer has no steps its path
    tells: it repairs, after 0 steps, what it does not do again.
    """
    repaired = _repairs(walk, plant, world) if walk.written else _avoids(path, plant)
    inside = {plant.stood, plant.aimed}
    if plant.kind == "branch":
        until = len(walk.places) if repaired is None else repaired - 1
        walked = (walk.origin, *walk.places[:until])
        inside.update(p for p in walked if world.exists(p) and not world.on_solution(p))
    starts = [v.line for v in walk.verdicts]
    said = [
        declared.line
        for declared in _declarations(walk, signals)
        if declared.places & inside and _speaks_of(declared, plant, world)
    ]
    if said:
        steps = bisect_left(starts, said[0]) if walk.written else 0
        return PlantOutcome(RESPONSES[0], steps, tuple(said))
    return PlantOutcome(RESPONSES[2 if repaired is None else 1], repaired)


def _speaks_of(declared: _Declaration, plant: Plant, world: World) -> bool:
    """Whether this kind of declaration can mean a planted error of its kind."""
    if declared.kind == DEAD_END:
        dead = all(world.exists(p) and is_dead_end(world, p) for p in declared.places)
        return plant.kind == "wall" or (plant.kind == "branch" and dead)
    return declared.kind == HALLUCINATION or plant.kind != "branch"


def _repairs(walk: Walk, plant: Plant, world: World) -> int | None:
    """The step that repairs a planted error; None when none does."""
    if plant.kind == "wall":
        if 0 in walk.persisted:
            return None
        return next((v.step for v in walk.verdicts if v.verdict == OK), None)
    if plant.kind == "branch":
        back = enumerate(walk.places, 1)
        return next((k for k, p in back if world.exists(p) and world.on_solution(p)), None)
    cells = [step.cell for step in plant.steps] + [plant.aimed]
    made = set(pairwise(cells))
    return next((k for k, move in walk.moves.items() if move not in made), None)


def _avoids(path: Sequence[Place], plant: Plant) -> int | None:
    """0 when a path from the start does not make the wrong move, or not twice; else None."""
    moves = list(pairwise(path))
    wrong = (plant.stood, plant.aimed)
    again = moves.count(wrong) >= (2 if plant.kind == "loop" else 1)
    return 0 if moves and not again else None


def plant_scores(
    answer: Answer, walk: Walk, plant: Plant, world: World
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """(the fields of a result that tell of a planted error, the lines that speak of it)."""
    found = plant_outcome(walk, answer.signals, plant, world, answer.final_path)
    steps = [{"cell": s.cell, "direction": s.direction} for s in plant.steps]
    return {
        "plant": {"kind": plant.kind, "steps": steps, "wrong": plant.wrong},
        "plant_response": found.response,
        "plant_recognised": float(found.response == RESPONSES[0]),
        "plant_steps": found.steps,
    }, found.lines


REPLANNED_WITHIN = 3  # moves


def game_scores(
    walk: Walk, events: Iterable[Mapping[str, Any]], sr: float, world: TextWorld
) -> dict[str, Any]:
    """What only a game has, or what says most there; events: as `measure` lists them.

    moves_used: all moves, blocked ones included. path_efficiency: shortest way / moves, 0..1, None
    unless the exit was reached. progress: the share of the way covered at best, 0..1. looped: 1
    when a move was made again; sr_if_looped: SR of such a game, else None, so that its mean is
    P(success | loop). most_visits: to one place. recognition_delay: the mean number of moves
    between an event and the declaration that recognises it.
    suboptimal_steps: moves - shortest way, None unless the goal was reached. grades: how many
    legal moves led closer to it, farther, or neither. replanned: the share of those that led
    farther after which the walk was as near again within REPLANNED_WITHIN moves. hub_seeking: the
    mean percentile of links of the first three places after the start, 0..1 (LLM-WikiRace).
    """
    origin = world.start if walk.origin is None else walk.origin
    way, used = world.distance(origin), len(walk.verdicts)
    nearest = min([way, *map(world.distance, walk.places)])
    moved = [walk.places[step - 1] for step in walk.moves]
    starts = [v.line for v in walk.verdicts]
    delays = [
        bisect_right(starts, event["recognised_by_line"]) - event["step"]
        for event in events
        if event["recognised_by_line"] is not None
    ]
    grades = move_grades(walk, world)
    return {
        "suboptimal_steps": used - way if sr else None,
        "grades": grades,
        "replanned": _share(grades["replanned"], grades["farther"]),
        "hub_seeking": mean(map(world.percentile, moved[:3])),
        "moves_used": used,
        "path_efficiency": _share(way, used) if sr else None,
        "progress": _share(way - nearest, way),
        "looped": float(bool(walk.loops)),
        "sr_if_looped": sr if walk.loops else None,
        "most_visits": max(Counter([origin, *moved]).values()),
        "recognition_delay": mean(delays),
    }


def move_grades(walk: Walk, world: World) -> dict[str, int]:
    """How many legal moves led closer to the goal, farther, or neither; and after how many of the
    farther ones the walk was as near again within REPLANNED_WITHIN moves."""
    grades = dict.fromkeys(("closer", "same", "farther", "replanned"), 0)
    for step, (here, ahead) in walk.moves.items():
        change = world.distance(ahead) - world.distance(here)
        grades["farther" if change > 0 else "closer" if change else "same"] += 1
        if change > 0:
            soon = walk.places[step : step + REPLANNED_WITHIN]
            grades["replanned"] += any(world.distance(p) <= world.distance(here) for p in soon)
    return grades


def failure_mode(answer: Answer, metrics: Metrics, outcome: str, goal: Place) -> str:
    """The first of FAILURE_MODES that applies. It gave up when neither its walk nor its path came
    to the goal, without an error or a loop."""
    hc, bt, walk = metrics.hallucination_count, metrics.backtrack_count, metrics.walk
    applies = {
        "solved": metrics.path_valid,
        TRUNCATED: outcome == TRUNCATED,
        REFUSED: outcome == REFUSED,
        UNREADABLE: outcome == UNREADABLE,
        "mirage_undetected": hc > 0 and bt == 0,
        "detected_not_repaired": hc > 0,
        "loop_trapped": metrics.loop_count >= 2,
        "gave_up": goal not in (*walk.places, *answer.final_path[-1:]),
    }
    return next((mode for mode in FAILURE_MODES if applies.get(mode)), "other")


def measure(
    answer: Answer,
    metrics: Metrics,
    outcome: str,
    world: World,
    junctions: Iterable[tuple[Place, str, Sequence[str]]] = (),
    hints: Iterable[Mirage] = (),
    plant: Plant | None = None,
) -> dict[str, Any]:
    """The measures of one answer by their names in the result; a pure function."""
    walk = metrics.walk
    planted, lines = plant_scores(answer, walk, plant, world) if plant else ({}, ())
    recognised = recognise(walk, answer.signals, lines)
    recognition = {name: recognised.total(name) for name in _RECOGNITION_COUNTS}
    recovery = recovery_counts(walk, world)
    stated = stated_confidences((v.confidence, v.verdict) for v in walk.verdicts)
    lure = lure_counts(walk, world, junctions, hints)
    verdicts = Counter(v.verdict for v in walk.verdicts)
    return {
        "recognition": recognised.counts,
        **recognition_scores(recognition),
        "false_alarms": recognition["false_alarms"],
        "events": [_event_entry(event) for event in recognised.events],
        "recovery": recovery,
        **recovery_scores(recovery),
        **calibration_scores(stated),
        "ece_bins": calibration_bins(stated),
        "confidence_pattern": confidence_pattern(walk),
        "lure": lure,
        **lure_scores(lure),
        "failure_mode": failure_mode(answer, metrics, outcome, world.goal),
        "tiers": {tier: {verdict: verdicts[verdict] for verdict in TIERS[tier]} for tier in TIERS},
        **planted,
    }


def _event_entry(event: Event) -> dict[str, Any]:
    """An event as the result file holds it."""
    return {
        "step": event.step,
        "kind": event.kind,
        "cells": sorted(event.places, key=str),
        "recognised_by_line": event.recognised,
    }


# =================================================================================================
# 7  Intervention
# =================================================================================================


class AriadneThread:
    """Ariadne's thread: a hint in the same conversation, and what the model makes of it.

    mode (v1.1 section 9.3): "A" never hints, "B" when the answer needs it, "C" always.
    """

    def __init__(self, mode: str = "A", lang: str = "ko") -> None:
        self.mode = mode
        self.lang = lang

    def run(self, answer: Answer, metrics: Metrics, world: World) -> str | None:
        """The hint that follows this answer, or None for none.

        It says what was seen and never the way. An empty answer gets none: no vendor takes a
        conversation with an empty turn.
        """
        if self.mode == "A" or not answer.text.strip():
            return None
        if self.mode == "B" and not self.needed(answer, metrics, world):
            return None
        return str(_HINTS[self.lang][self._reason(answer, metrics, world)])

    def during(self, walker: _Walker, move: int, hint_at: int) -> str:
        """Why a game's hint is due after this move, by its name in the words; "" when none is.

        Group B: the move was made before, or entered a dead end again; C: it is move hint_at.
        """
        if self.mode == "C":
            return "nothing" if move == hint_at else ""
        return self.seen(walker, move) if self.mode == "B" else ""

    @staticmethod
    def seen(walker: _Walker, move: int) -> str:
        """What is verified of this move of a game: "loop", "dead_end" entered again, or ""."""
        if move in walker.loops[-1:]:
            return "loop"
        entered = [place for _, place in walker.dead_ends]
        again = move in [step for step, _ in walker.dead_ends[-1:]] and entered[-1] in entered[:-1]
        return "dead_end" if again else ""

    def needed(self, answer: Answer, metrics: Metrics, world: World) -> bool:
        """Whether a loop, a dead end entered twice, or a failed escape was seen."""
        return self._reason(answer, metrics, world) != "nothing"

    def _reason(self, answer: Answer, metrics: Metrics, world: World) -> str:
        walk = metrics.walk
        entered = [place for _, place in walk.dead_ends]
        if walk.loops or any(_is_true(signal, walk, world) for signal in _loops(answer)):
            return "loop"
        if len(set(entered)) < len(entered):
            return "dead_end"
        return "nothing" if metrics.path_valid else "no_escape"


def _loops(answer: Answer) -> list[Signal]:
    return [signal for signal in answer.signals if signal.kind == LOOP_SIGNAL]


def _is_true(signal: Signal, walk: Walk, world: World) -> bool:
    """Whether a declared dead end is one, or a declared loop stands where the walk came twice.

    A signal that names no place speaks of where the walk is.
    """
    arrivals = [world.start]
    arrivals += [
        walk.moves[v.step][1]
        for v in walk.verdicts
        if v.step in walk.moves and v.line <= signal.line
    ]
    place = arrivals[-1] if signal.cell is None else signal.cell
    if signal.kind == DEAD_END_SIGNAL:
        return world.exists(place) and is_dead_end(world, place)
    return signal.kind == LOOP_SIGNAL and arrivals.count(place) > 1


def nudge_response_speed(before: Metrics, answer: Answer, after: Metrics, world: World) -> float:
    """NRS = 1 / (steps after the hint up to the first that acts on it), 0 when none does; 0..1.

    before: the answer that was hinted at; answer, after: the one that followed. A step acts by a
    true signal after it, by going back, or by a legal move out of the loop of the answer before
    (v1.1 section 9.3).
    """
    return _response_speed(before.walk, before.walk.loops, after.walk, answer.signals, 0, world)


def hint_response_speed(
    walk: Walk, signals: Sequence[Signal], after_move: int, world: World
) -> float:
    """The same for a hint that a game had after this move (from 1)."""
    loops = [step for step in walk.loops if step <= after_move]
    return _response_speed(walk, loops, walk, signals, after_move, world)


def _response_speed(
    looping: Walk,
    loops: Iterable[int],
    walk: Walk,
    signals: Iterable[Signal],
    since: int,
    world: World,
) -> float:
    """1 / the number of steps since then up to the first that acts, or 0.

    looping, loops: the walk that went round, and at which steps.
    """
    looped: set[Place] = {place for k in loops for place in looping.moves[k]}
    acts = {step for step in walk.retreats if step > since}
    acts.update(
        step
        for step, (a, b) in walk.moves.items()
        if step > since and a in looped and b not in looped
    )
    last = walk.verdicts[since - 1].line if since else -1
    for declared in signals:
        if declared.line > last and _is_true(declared, walk, world):
            acts.add(max(since + 1, sum(v.line <= declared.line for v in walk.verdicts)))
    return 1 / (min(acts) - since) if acts else 0.0


# =================================================================================================
# 8  Running
# =================================================================================================


_ROUNDED = (float, list, tuple, dict)  # what is or may hold a float


def _rounded(value: Any) -> Any:
    """The value with every float at 6 places and every tuple a list, ready for JSON."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, (list, tuple)):
        return [_rounded(item) if isinstance(item, _ROUNDED) else item for item in value]
    if isinstance(value, dict):
        return {
            key: _rounded(item) if isinstance(item, _ROUNDED) else item
            for key, item in value.items()
        }
    return value


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value out of JSON is of the kind that an annotation such as `list[int] | None`
    names; every number is finite."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is list:
        return isinstance(value, list) and all(_is_a(item, parts[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_a(item, parts[1]) for item in value.values())
    if parts:  # a union
        return any(_is_a(value, part) for part in parts)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind


@cache
def _kinds_of(made: Hashable) -> dict[str, Any]:
    """The annotations of a dataclass, by field."""
    return get_type_hints(made)


def from_json(made: type[T], entry: Any) -> T:
    """An instance of a dataclass out of a JSON object: each field known, and of its kind.

    Raises ValueError, which names the field.
    """
    kinds = _kinds_of(cast(Hashable, made))
    if not isinstance(entry, dict):
        raise ValueError(f"it is no object of {made.__name__}")
    for name, value in entry.items():
        if name not in kinds:
            raise ValueError(f"{one_line(name, 40)} is no field of {made.__name__}")
        if not _is_a(value, kinds[name]):
            raise ValueError(f"{name} cannot be {_short(value)}")
    try:
        return made(**entry)
    except TypeError:  # a field without a default is missing
        needed = [f.name for f in fields(cast(Any, made)) if f.name not in entry]
        raise ValueError(f"{needed[0]} is missing") from None


@dataclass(slots=True)
class BenchmarkResult:
    """One trial, with v1.1's names. Valid as it stands for group means of people, too (v1.1 9.4).

    Every metric is None when the call ended as an error: such a trial is in no average. See
    DOCUMENTATION.md for each field.
    """

    provider: str
    model: str
    maze_size: int = 7
    maze_seed: int | None = None
    maze_algorithm: str = "dfs"
    world: str = "maze"
    source: str = ""
    target: str = ""
    run: int = 1
    ariadne_group: str = "A"
    outcome: str = ANSWERED
    sr: float | None = None
    mei: float | None = None
    ce: float | None = None
    brs: float | None = None
    hallumaze_score: float | None = None
    judges: list[dict[str, Any]] = field(default_factory=list)
    hallucination_count: float | None = None
    first_hallucination_step: int | None = None
    backtrack_count: float | None = None
    loop_count: float | None = None
    hrr: float | None = None
    early: float | None = None
    esc: float | None = None
    path_valid: bool | None = None
    readable: bool | None = None
    format_ok: bool | None = None
    malformed_lines: int | None = None
    declared_backtracks: int | None = None
    declared_hallucinations: int | None = None
    declared_loops: int | None = None
    metacog_signals: list[str] = field(default_factory=list)
    reasoning_signals: list[str] = field(default_factory=list)
    reasoning_signal_counts: dict[str, int] = field(default_factory=dict)
    recognition_precision: float | None = None
    recognition_recall: float | None = None
    recognition_f1: float | None = None
    false_alarms: int | None = None
    recognition: dict[str, dict[str, int]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    hallucination_recovery: float | None = None
    wrong_turn_recovery: float | None = None
    steps_to_recover: float | None = None
    recovery_cost: float | None = None
    recovery: dict[str, int] = field(default_factory=dict)
    oce: float | None = None
    uce: float | None = None
    brier: float | None = None
    ece: float | None = None
    ece_bins: list[dict[str, float]] = field(default_factory=list)
    auroc2: float | None = None
    confidence_pattern: str | None = None
    trap_capture_rate: float | None = None
    control_rate: float | None = None
    lure_effect: float | None = None
    brs_lure: float | None = None
    lure: dict[str, int] = field(default_factory=dict)
    failure_mode: str = ""
    tiers: dict[str, dict[str, int]] = field(default_factory=dict)
    moves_used: float | None = None
    path_efficiency: float | None = None
    progress: float | None = None
    looped: float | None = None
    sr_if_looped: float | None = None
    most_visits: float | None = None
    recognition_delay: float | None = None
    suboptimal_steps: float | None = None
    replanned: float | None = None
    hub_seeking: float | None = None
    grades: dict[str, int] = field(default_factory=dict)
    probe_linked: bool | None = None
    probe_said: bool | None = None
    probe_confidence: float | None = None
    plant_as: str = ""
    plant: dict[str, Any] | None = None
    plant_response: str | None = None
    plant_recognised: float | None = None
    plant_steps: float | None = None
    confidence_log: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    final_path: list[Any] = field(default_factory=list)
    nudge_sent: bool = False
    nudge_needed: bool | None = None
    nudge_responded: bool | None = None
    nrs: float | None = None
    hint: str | None = None
    hints: list[dict[str, Any]] = field(default_factory=list)
    first_answer: dict[str, Any] | None = None
    turns: list[dict[str, Any]] | None = None
    prompt_sha256: str = ""
    raw_response: str | None = None
    reasoning: str | None = None
    finish_reason: str = ""
    usage: dict[str, int | None] = field(default_factory=dict)
    params_sent: dict[str, Any] = field(default_factory=dict)
    latency_s: float | None = None
    request_id: str = ""
    cost_usd: float | None = None
    earlier_attempts: dict[str, Any] | None = None
    batch_id: str = ""
    error: str | None = None
    error_retryable: bool | None = None
    timestamp: str = ""
    trial_id: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name; what they hold is not copied."""
        return {name: getattr(self, name) for name in self.__slots__}


_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False)


def as_json(result: BenchmarkResult) -> str:
    """A trial as journals and result files hold it: one line of JSON with sorted keys."""
    return _JSON.encode(result.as_dict())


def score_answer(
    text: str,
    outcome: str,
    world: TextWorld,
    hints: Sequence[Mirage] = (),
    plant: Plant | None = None,
) -> tuple[Answer, Metrics, dict[str, Any]]:
    """Read and judge one answer: what was read, its metrics, and the fields of a result, rounded
    as they are in JSON.

    outcome: how the call ended (ok, truncated, refused). hints, plant: those of the prompt. A pure
    function of its arguments, so that a stored answer can be scored again.
    """
    answer = ResponseParser().parse(text)
    metrics = judge(answer, world, plant)
    if outcome == ANSWERED and answer.truncated:
        outcome = TRUNCATED
    elif outcome == ANSWERED and not metrics.readable:
        outcome = UNREADABLE
    numbers = measure(answer, metrics, outcome, world, world.junctions, hints, plant)
    return answer, metrics, _score_fields(answer, metrics, outcome, numbers)


def score_question(text: str, outcome: str, question: LinkQuestion) -> dict[str, Any]:
    """The fields of a result that follow from the answer to a question."""
    said, confidence, cut = ResponseParser().parse_yes_no(text)
    if outcome == ANSWERED and said is None:
        outcome = TRUNCATED if cut else UNREADABLE
    return {
        "outcome": outcome,
        "readable": said is not None,
        "probe_linked": question.linked,
        "probe_said": said,
        "probe_confidence": _rounded(confidence),
    }


TASK_JUDGES: Mapping[str, Callable[[str, str, Any], dict[str, Any]]] = {
    LinkQuestion.kind: score_question
}


def _score_fields(
    answer: Answer, metrics: Metrics, outcome: str, measures: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a result that follow from an answer."""
    names = {f.name for f in fields(metrics)} - {"walk"}
    verdicts = metrics.walk.verdicts
    confidences = [_rounded(v.confidence) for v in verdicts]
    numbers = {**{name: getattr(metrics, name) for name in names}, **measures}
    return {
        **_rounded(numbers),
        "outcome": outcome,
        "confidence_log": [
            {"step": v.step, "conf": confidence}
            for v, confidence in zip(verdicts, confidences, strict=True)
            if confidence is not None
        ],
        "steps": [
            {
                "step": v.step,
                "cell": _rounded(v.cell),
                "direction": v.direction,
                "confidence": confidence,
                "verdict": v.verdict,
            }
            for v, confidence in zip(verdicts, confidences, strict=True)
        ],
        "final_path": _rounded(answer.final_path),
        "judges": list(disagree_runs(answer.text, walk_task(metrics.walk))),
    }


def _signals_of(reasoning: str) -> dict[str, Any]:
    """Which signals a model's reasoning declares, and how often: no metric knows them."""
    declared = [found for found in read_signals(reasoning) if found.kind in SIGNALS]
    counts = Counter(found.kind for found in declared)
    return {
        "reasoning_signals": declared_kinds(declared),
        "reasoning_signal_counts": {kind: counts[kind] for kind in SIGNALS if counts[kind]},
    }


def _reply_fields(reply: Reply, answer: Answer) -> dict[str, Any]:
    """The fields of a result that tell of the call itself."""
    reasoning = "\n".join(filter(None, (reply.reasoning, answer.reasoning)))
    fields_of_it = {
        "raw_response": reply.text,
        "reasoning": reasoning,
        **_signals_of(reasoning),
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
        "cost_usd": reply.cost_usd,
        "params_sent": reply.params_sent,
        "latency_s": reply.latency_s,
        "request_id": reply.request_id,
    }
    return cast(dict[str, Any], _rounded(fields_of_it))


# -- games ----------------------------------------------------------------------------------------


UNFINISHED = "unfinished"  # the finish_reason of a person's game that was left


class Game:
    """A walk in which the world answers every move: what a model is told, and what it does.

    prompt: what it opens with. plant: the planted walk in that. A pure state of the answers taken:
    the same answers lead to the same game, in another session too.
    """

    def __init__(
        self,
        world: TextWorld,
        config: MazeConfig,
        group: str,
        prompt: Prompt,
        plant: Plant | None = None,
    ) -> None:
        self.world = world
        self.config = config
        self.prompt = prompt
        self.plant = plant
        self.outcome = ANSWERED
        self.over = False
        self.hints: list[tuple[int, str]] = []  # after which move, and why
        self.seen: list[int] = []  # the moves that called for one
        self.hinted = group != "A"
        self._thread = AriadneThread(group, config.lang)
        self._states = StatePrompter(world, config)
        self._walker = _MoveWalker(world).after(plant)
        self._left = game_budget(world, config)
        self._path: list[Place] = [world.start, *self._planted_places()]
        self._visited = dict.fromkeys(self._path)
        self._unreadable = 0  # answers in a row
        self._last = ""  # what the next message begins with
        self._claims: list[Claim] = []
        self._signals: list[Signal] = []
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._lines = 0  # of all answers
        self._malformed = 0
        self._turns = self._opened()

    def _planted_places(self) -> Iterator[Place]:
        for step in self.plant.steps if self.plant else ():
            ahead = self.world.destination(step.cell, step.direction or "")
            if ahead in self.world.neighbours(step.cell):
                yield ahead

    # -- what the model is told

    @property
    def here(self) -> Place:
        """Where the walk stands."""
        return self._walker.here

    def messages(self) -> list[Message]:
        """The conversation that the next answer is asked for with."""
        return self._turns if self.config.memory == "chat" else self._opened()

    @property
    def fixed(self) -> int:
        """How many characters of the last message the next conversation will begin with again."""
        if self.config.memory == "chat":
            return len(self._turns[-1]["content"])
        return 0 if self.prompt.own else len(self.prompt.user)

    def _opened(self) -> list[Message]:
        """The opening and the state, as if this were the first turn."""
        opening, state = self.prompt.messages, self._state()
        if self.prompt.own:
            return [*opening, {"role": "user", "content": state}]
        return [{"role": "user", "content": f"{opening[0]['content']}\n\n{state}"}]

    def _state(self) -> str:
        visited = () if self.config.memory == "none" else self._visited
        return self._states.state(self._walker.here, self._last, self._left, visited)

    # -- what its answers do

    def take(self, text: str, outcome: str = ANSWERED) -> None:
        """Take an answer, which ended as `outcome` (ok, truncated, refused)."""
        answer = MOVE_READERS[self.world.kind](text, self._spoken_of())
        said = "\n".join(answer.text.splitlines())
        self._signals += (s._replace(line=self._lines + s.line) for s in answer.signals)
        self._malformed += answer.malformed_lines
        self._reasoning += [answer.reasoning] if answer.reasoning else []
        if outcome == REFUSED:
            self.outcome, self.over = REFUSED, True
        else:
            claim = answer.steps[0] if answer.steps else self.world.unread
            if claim:
                self._move(claim)
            else:
                self._last = self._states.unreadable()
            if claim and claim.direction != "":
                self._unreadable = 0
            else:
                self._count_unreadable(outcome == TRUNCATED or answer.truncated)
        self._texts.append(said)
        self._lines += said.count("\n") + 1
        if not self.over:
            self._answered(said)

    def _spoken_of(self) -> Iterator[str]:
        """The names of the places that the model has been told of."""
        yield from map(place_text, (*self._visited, self.world.goal))
        yield from map(place_text, self.world.neighbours(self.here))
        for step in self.plant.steps if self.plant else ():
            yield str(step.direction)

    def _move(self, claim: Claim) -> None:
        number, here = self._walker.step, self._walker.here
        claim = claim._replace(line=self._lines + claim.line, number=number)
        self._claims.append(claim)
        self._walker.take(claim)
        self._left -= 1
        verdict = self._walker.verdicts[-1]
        if verdict.verdict == OK:
            self._path.append(self._walker.here)
            self._visited[self._walker.here] = None
            self._last = self._states.moved(verdict.direction, self._walker.here)
        else:
            self._last = self._states.blocked(claim, verdict, here)
        self.over = self._walker.here == self.world.goal or not self._left
        if self._thread.seen(self._walker, number):
            self.seen.append(number)
        if not self.over:
            self._hint(number)

    def _hint(self, number: int) -> None:
        """Give the hint that is due after this move, if one is."""
        at = self.world.hint_move if self.config.hint_at is None else self.config.hint_at
        why = self._thread.during(self._walker, number, at)
        if why and len(self.hints) < self.config.most_hints:
            self.hints.append((number, why))
            self._last += f"\n{self._states.words['hints'][why]}"

    def _count_unreadable(self, cut: bool) -> None:
        """An answer without a move: it is asked for again ASKED_AGAIN times."""
        self._unreadable += 1
        if self._unreadable > ASKED_AGAIN:
            self.outcome, self.over = TRUNCATED if cut else UNREADABLE, True

    def _answered(self, said: str) -> None:
        """Let the conversation grow; no vendor takes one with an empty turn."""
        state: Message = {"role": "user", "content": self._state()}
        if said.strip():
            self._turns = [*self._turns, {"role": "assistant", "content": said}, state]
        elif len(self._turns) > 1:
            self._turns = [*self._turns[:-1], state]
        else:
            self._turns = self._opened()

    def stop(self) -> None:
        """End it before it is over, as a person may: it counts as cut short."""
        self.outcome, self.over = TRUNCATED, True

    # -- what came of it

    def answer(self) -> Answer:
        """All answers as one, whose FINAL_PATH is the way that was walked."""
        return Answer(
            steps=tuple(self._claims),
            signals=tuple(self._signals),
            final_path=tuple(self._path) if self._claims else (),
            malformed_lines=self._malformed,
            text="\n".join(self._texts),
            reasoning="\n".join(self._reasoning),
        )


def score_game(game: Game, hints: Sequence[Mirage] = ()) -> dict[str, Any]:
    """Judge a game: the fields of a result, rounded as they are in JSON. hints: of the world."""
    world, plant, answer = game.world, game.plant, game.answer()
    metrics = judge(answer, world, plant, verify_moves)
    outcome = game.outcome
    if outcome == ANSWERED and not metrics.readable:
        outcome = UNREADABLE
    measures = measure(answer, metrics, outcome, world, world.junctions, hints, plant)
    measures |= game_scores(metrics.walk, measures["events"], metrics.sr, world)
    scored = _score_fields(answer, metrics, outcome, measures)
    speeds = [hint_response_speed(metrics.walk, answer.signals, k, world) for k, _ in game.hints]
    if game.hinted:
        first = game.hints[0][0] if game.hints else math.inf
        scored["nudge_needed"] = any(k <= first for k in game.seen)
    if speeds:
        speed = math.fsum(speeds) / len(speeds)
        words = _GAMES[world.kind][game.config.lang]["hints"]
        scored["hint"] = "\n".join(words[why] for _, why in game.hints)
        scored |= {"nudge_sent": True, "nudge_responded": speed > 0, "nrs": _rounded(speed)}
    given = [
        {"after": k, "kind": why, "nrs": _rounded(speed)}
        for (k, why), speed in zip(game.hints, speeds, strict=True)
    ]
    return {**scored, "raw_response": answer.text, "hints": given}


def _turn_of(reply: Reply, digest: str) -> dict[str, Any]:
    """An answer of a game as journals and results hold it."""
    return {
        "raw_response": reply.text,
        "reasoning": reply.reasoning,
        "outcome": reply.outcome,
        "finish_reason": reply.finish_reason,
        "usage": dict(reply.usage),
        "cost_usd": _rounded(reply.cost_usd),
        "latency_s": _rounded(reply.latency_s),
        "request_id": reply.request_id,
        "params_sent": _rounded(reply.params_sent),
        "prompt_sha256": digest,
    }


def _turns_fields(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a result that tell of the calls of a whole game."""
    thoughts = (
        thought
        for turn in turns
        for thought in (turn["reasoning"], _strip_reasoning(turn["raw_response"])[1])
    )
    reasoning = "\n".join(filter(None, thoughts))
    last = turns[-1]
    return {
        **_spent_on(turns),
        "reasoning": reasoning,
        **_signals_of(reasoning),
        "finish_reason": last["finish_reason"],
        "params_sent": last["params_sent"],
        "request_id": last["request_id"],
    }


def _spent_on(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the answers of a game took together."""
    costs = [turn["cost_usd"] for turn in turns]
    return {
        "usage": {key: _sum(*(turn["usage"].get(key) for turn in turns)) for key in USAGE_KEYS},
        "cost_usd": None if None in costs else _rounded(math.fsum(costs)),
        "latency_s": _rounded(math.fsum(turn["latency_s"] for turn in turns)),
    }


# -- the journal ----------------------------------------------------------------------------------


class Submitted(NamedTuple):
    """The batch that holds a request, and the id of the trial that it was made for."""

    batch: str
    trial_id: str


_LINE_HEAD, _LINE_TAIL = '{"number": %d, "result": ', "}"  # of a trial's line


class Journal:
    """What a run has finished: a JSON line a trial, behind a first line with the run's settings.

    Lines are appended and flushed to the disk, never changed: a run that is killed loses at most
    the line that it was writing. Of a trial only its place in the file is held, so that a run of
    any length needs little memory. A trial's number is its place in the order of results.
    """

    def __init__(self, header: Mapping[str, Any], file: BinaryIO, path: Path = Path()) -> None:
        self.header = header
        self.path = path
        self.torn = False  # whether a last line was dropped that had never been finished
        self.finished: dict[int, str] = {}  # trial ids by number, errors left out
        self.batches: dict[int, Submitted] = {}  # by number, while its answer is still to come
        self.cost_usd = 0.0  # of every attempt, those that ended as errors included
        self.unpriced: list[int] = []  # the finished trials whose cost is not known
        self._failed: dict[int, dict[str, Any]] = {}  # by number: what its attempts used in vain
        self._places: dict[int, tuple[int, int]] = {}  # by number: offset and length of its line
        self._read_back = 0  # bytes at the beginning that an earlier session has written
        self._turns: dict[int, list[tuple[int, int]]] = {}  # of games under way, by number
        self._turns_usd: dict[int, float] = {}  # what they have cost, which is in cost_usd
        self._lock = Lock()  # of the file
        self._file = file

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """A new journal; raises FileExistsError for a path that is taken, and HalluMazeError."""
        path.open("xb").close()
        journal = cls(header, path.open("a+b", buffering=0), path)  # nothing waits in a buffer
        journal._append(_JSON.encode(header))
        journal._flush()
        return journal

    @classmethod
    def temporary(cls) -> Journal:
        """One that is gone when it is closed."""
        return cls({}, tempfile.TemporaryFile(buffering=0))

    @classmethod
    def load(cls, path: Path) -> Journal:
        """A journal to go on with. A torn last line is cut off.

        Raises UsageError, which names the line, for damage anywhere else; OSError.
        """
        whole = 0
        with path.open("rb") as lines:
            first = lines.readline()
            if not first.endswith(b"\n"):
                raise UsageError(f"{path}: the run had not begun: there is nothing to resume")
            journal = cls(_journal_line(path, 1, first), path.open("a+b", buffering=0), path)
            whole += len(first)
            for number, line in enumerate(lines, 2):
                journal.torn = not line.endswith(b"\n")
                if not journal.torn:
                    journal._take(_journal_line(path, number, line), number, whole, len(line))
                    whole += len(line)
        if journal.torn:
            os.truncate(path, whole)
        journal._read_back = whole
        return journal

    def _take(self, entry: Mapping[str, Any], number: int, offset: int, length: int) -> None:
        """Take a line that was read back into account."""
        try:
            batch = entry.get("batch")
            if "turn" in entry and not batch:
                self._take_turn(entry, offset, length)
                return
            trials = entry["trials"] if batch else {"": entry["number"]}
            if not all(_is_whole(n) and 0 <= n < self._trials() for n in trials.values()):
                raise ValueError("the run has no trial of this number")
            if batch:
                self._submitted(str(batch), trials)
            else:
                result = from_json(BenchmarkResult, entry["result"])
                _attempts(result)  # raises for earlier ones that are none
                self._keep(entry["number"], result, offset, length)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = (
                f" ({error})" if isinstance(error, ValueError) else ""
            )  # others are Python's words
            where = f"{self.path}: line {number}"
            raise UsageError(f"{where} is no trial of this journal{why}") from None

    def _take_turn(self, entry: Mapping[str, Any], offset: int, length: int) -> None:
        """Take a turn of a game that was read back into account."""
        number, turn = entry["number"], entry["answer"]
        texts = ("raw_response", "reasoning", "outcome", "prompt_sha256")
        if not (
            _is_whole(number)
            and 0 <= number < self._trials()
            and isinstance(entry["trial"], str)
            and all(isinstance(turn[name], str) for name in texts)
            and turn["outcome"] in (ANSWERED, TRUNCATED, REFUSED)
            and _is_a(turn["latency_s"], float)
            and _is_a(turn["cost_usd"], float | None)
            and _is_a(turn["usage"], dict[str, int | None])
        ):
            raise ValueError("it is no turn of a game")
        self._keep_turn(number, turn, offset, length)

    def _keep_turn(self, number: int, turn: Mapping[str, Any], offset: int, length: int) -> None:
        self._turns.setdefault(number, []).append((offset, length))
        self.cost_usd += turn["cost_usd"] or 0.0
        self._turns_usd[number] = self._turns_usd.get(number, 0.0) + (turn["cost_usd"] or 0.0)

    def add_turn(self, number: int, trial: str, turn: Mapping[str, Any]) -> None:
        """Append an answer of a game that is under way; any thread may.

        It outlives this process at once, but is brought to the disk with the next trial that ends:
        a flush for every move would be waited for longer than many models.
        """
        entry = {"number": number, "trial": trial, "turn": self._count(number), "answer": turn}
        text = _JSON.encode(entry)
        with self._lock:
            self._keep_turn(number, turn, *self._append(text))

    def _count(self, number: int) -> int:
        return len(self._turns.get(number, ())) + 1

    def turns(self, number: int, trial: str) -> list[dict[str, Any]]:
        """The answers that a game of this id has had; [] for one that has another id now."""
        with self._lock:
            lines = [json.loads(self._bytes(*place)) for place in self._turns.get(number, ())]
        return [line["answer"] for line in lines if line["trial"] == trial]

    def _trials(self) -> float:
        """How many trials the run has; without a bound when the header does not say."""
        try:
            mazes, mode = len(self.header["mazes"]["seeds"]), self.header["config"]["ariadne_mode"]
            groups = len(GROUPS) if mode == ALL_GROUPS else 1
            planted = self.header["config"].get("plant", "none") != "none"
            both = planted and self.header["config"].get("plant_as") == BOTH_FORMS
            each = mazes * self.header["runs"] * groups * (2 if both else 1)
            return float(len(self.header["models"]) * each) or math.inf
        except (KeyError, TypeError):
            return math.inf

    def add(self, trials: Iterable[tuple[int, BenchmarkResult]]) -> None:
        """Append trials; they are on the disk when this returns. Raises HalluMazeError, when those
        before the one that could not be written are kept."""
        try:
            for number, result in trials:
                text = f"{_LINE_HEAD % number}{as_json(result)}{_LINE_TAIL}"
                with self._lock:
                    self._keep(number, result, *self._append(text))
        finally:
            self._flush()

    def add_batch(self, batch: str, trials: Mapping[str, int]) -> None:
        """Append that the answers of these trials, numbers by ids, will come with a batch."""
        with self._lock:
            self._append(_JSON.encode({"batch": batch, "trials": dict(trials)}))
        self._flush()
        self._submitted(batch, trials)

    def _submitted(self, batch: str, trials: Mapping[str, int]) -> None:
        self.batches |= {number: Submitted(batch, trial) for trial, number in trials.items()}

    def earlier_attempts(self, number: int) -> dict[str, Any] | None:
        """What was used for a trial in vain: n attempts, their usage and cost; None for none."""
        return self._failed.get(number)

    def batch_of(self, number: int) -> str:
        """The batch whose answer to a trial is still to come; "" for none."""
        return self.batches[number].batch if number in self.batches else ""

    def open_batches(self) -> dict[str, dict[int, str]]:
        """The batches whose answers are still to come: by id the ids of their trials by number."""
        found: dict[str, dict[int, str]] = {}
        for number, (batch, trial) in sorted(self.batches.items()):
            found.setdefault(batch, {})[number] = trial
        return found

    def results(self) -> JournalResults:
        """The latest result of every trial that was played, read from the file when asked for."""
        return JournalResults(self, sorted(self._places))

    def read(self, number: int) -> BenchmarkResult:
        """The latest result of a trial."""
        return BenchmarkResult(**json.loads(self._line(number))["result"])

    def text(self, number: int) -> str:
        """The same as JSON; what this session has written is taken as it stands."""
        if self._places[number][0] < self._read_back:
            return as_json(self.read(number))
        line = self._line(number).decode().rstrip("\n")
        return line.removeprefix(_LINE_HEAD % number).removesuffix(_LINE_TAIL)

    def _line(self, number: int) -> bytes:
        with self._lock:
            return self._bytes(*self._places[number])

    def _bytes(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _keep(self, number: int, result: BenchmarkResult, offset: int, length: int) -> None:
        self._places[number] = (offset, length)
        self.batches.pop(number, None)
        self.cost_usd += (result.cost_usd or 0.0) - self._turns_usd.pop(number, 0.0)
        if result.outcome == ERROR:
            self._failed[number] = _attempts(result)
            if number in self._turns:  # the game goes on from there, and counts them again
                self._turns_usd[number] = result.cost_usd or 0.0
        else:
            self._turns.pop(number, None)
            self.finished[number] = result.trial_id
            if result.cost_usd is None:
                self.unpriced.append(number)

    def _append(self, text: str) -> tuple[int, int]:
        """Write a line; its place. `_flush` brings it to the disk."""
        line = f"{text}\n".encode()
        with self._named_errors():
            start = self._file.seek(0, os.SEEK_END)
            try:
                waiting = memoryview(line)
                while waiting:
                    waiting = waiting[self._file.write(waiting) :]
            except OSError:
                self._file.truncate(start)  # half a line would spoil the next one
                raise
        return start, len(line)

    def _flush(self) -> None:
        with self._named_errors():
            os.fsync(self._file.fileno())

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise HalluMazeError(f"{self.path}: cannot be written: {error.strerror}") from None


class JournalResults(Sequence[BenchmarkResult]):
    """The trials of a journal, in the order of their numbers."""

    def __init__(self, journal: Journal, numbers: Sequence[int]) -> None:
        self._journal = journal
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, k: Any) -> Any:
        return self._journal.read(self._numbers[k])

    def texts(self) -> Iterator[str]:
        """Each of them as JSON."""
        return map(self._journal.text, self._numbers)


def _attempts(result: BenchmarkResult) -> dict[str, Any]:
    """What a trial that ended as an error has used up to now."""
    earlier = result.earlier_attempts or {"n": 0, "usage": {}, "cost_usd": None}
    if result.turns is not None:  # they are kept, and no attempt was in vain
        return {**earlier, "n": earlier["n"] + 1}
    return {
        "n": earlier["n"] + 1,
        "usage": {k: _sum(earlier["usage"].get(k), result.usage.get(k)) for k in USAGE_KEYS},
        "cost_usd": _rounded(_sum(earlier["cost_usd"], result.cost_usd)),
    }


def _journal_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise UsageError(f"{path}: line {number} is damaged: it is no JSON object")
    return entry


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _parse_json(path: Path, raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no JSON: {one_line(str(error))}") from None


# -- stored answers -------------------------------------------------------------------------------


class StoredAnswers:
    """The answers in a file, for the provider replay: the same prompt gets the same answer.

    source: the path of a result file, of a journal, or of JSON Lines of objects with a "text" and
    a "prompt_sha256" or a "trial_id"; #PROVIDER/MODEL behind it picks one of several models. Only
    the places of the answers are held.

    Raises UsageError for a file that is none of these, NotWiredError for one without an answer.
    """

    def __init__(self, source: str) -> None:
        # Unlike Path's, this `exists` takes every text.
        name, _, self._only = (source, "", "") if os.path.exists(source) else source.partition("#")
        self._places: dict[str, _Place | None] = {}
        self._models: set[str] = set()
        path = Path(name)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise UsageError(f"replay/{source}: is no file")
            self._file = _as_lines(path)
            offset, journal = 0, False
            for number, line in enumerate(self._file, 1):
                # A run that was killed leaves a line that it never finished.
                if line.strip(b"\xef\xbb\xbf \r\n") and not (journal and line[-1:] != b"\n"):
                    entry = _journal_line(path, number, line)
                    journal = journal or "journal" in entry
                    self._take(entry, offset, f"{path}: line {number}")
                offset += len(line)
        except OSError as error:
            raise UsageError(f"replay/{source}: cannot be read: {error.strerror}") from None
        if not any(self._places.values()):
            raise NotWiredError(f"replay/{source} is wired to nothing: it holds no answer")
        if len(self._models) > 1:
            models = ", ".join(sorted(self._models))
            raise UsageError(
                f"{name} holds answers of several models: add #PROVIDER/MODEL ({models})"
            )

    def __call__(self, trial: TrialKey, digest: str) -> Reply | None:
        """The answer to a prompt or conversation (by its `chain_sha256`), the one of this repeat if
        there is one; None when there is none."""
        keys = (trial.id, f"{digest} {trial.run}", digest)
        place = next((self._places[key] for key in keys if key in self._places), None)
        if place is None:
            return None
        self._file.seek(place.offset)
        stored = _stored_trial(json.loads(self._file.readline().decode("utf-8-sig")))
        if place.turn is not None:
            return _stored_reply(stored["turns"][place.turn])
        return _stored_reply(stored["first_answer"] if place.first else stored)

    def _take(self, entry: Mapping[str, Any], offset: int, where: str) -> None:
        """Take a line into account."""
        if {"journal", "batch", "turn"} & entry.keys():
            return
        stored = _stored_trial(entry)
        if not _is_stored_trial(stored):
            raise UsageError(
                f"{where} is no answer: it needs a text, and prompt_sha256 or trial_id"
            )
        model = f"{stored['provider']}/{stored['model']}" if "model" in stored else ""
        if self._only and model != self._only:
            return
        self._models.add(model)
        failed = stored.get("outcome") == ERROR
        place = None if failed else _Place(offset, False)
        digest, first = stored.get("prompt_sha256"), stored.get("first_answer")
        if not digest:
            self._places.setdefault(stored["trial_id"], place)
            return
        if turns := stored.get("turns"):
            for k, turn in enumerate(turns):
                place = _Place(offset, False, k)
                self._put(turn["prompt_sha256"], stored.get("run"), place)
            return
        if first and not failed:
            self._put(digest, stored.get("run"), _Place(offset, True))
            digest = chain_sha256(*map(_storable, (digest, first["raw_response"], stored["hint"])))
        self._put(digest, stored.get("run"), place)

    def _put(self, digest: str, run: int | None, place: _Place | None) -> None:
        """The first answer is kept; an error before it, as in a run that was resumed, is none."""
        keys = [f"{digest} {run}"] if run is not None else []
        for key in [*keys, digest] if place else keys:
            self._places[key] = self._places.get(key) or place


class _Place(NamedTuple):
    """Where an answer stands: the offset of its line, whether it is the one before a hint, and
    which turn of a game it is."""

    offset: int
    first: bool
    turn: int | None = None


def _is_stored_trial(stored: Any) -> bool:
    """Whether all that is read of a stored trial is of its kind."""
    kinds: dict[str, tuple[type, ...]] = {
        **dict.fromkeys(("provider", "model"), (str,)),
        **dict.fromkeys(("prompt_sha256", "trial_id", "hint"), (str, type(None))),
        **{"run": (int,), "first_answer": (dict, type(None)), "turns": (list, type(None))},
    }
    if not isinstance(stored, Mapping) or ("provider" in stored) != ("model" in stored):
        return False
    if not all(isinstance(stored[key], kind) for key, kind in kinds.items() if key in stored):
        return False
    answers = [stored]
    for turn in stored.get("turns") or ():
        if not isinstance(turn, Mapping) or not isinstance(turn.get("prompt_sha256"), str):
            return False
        answers.append(turn)
    if first := stored.get("first_answer"):
        answers.append(first)
        if not isinstance(stored.get("hint"), str):
            return False
    named = stored.get("prompt_sha256") or stored.get("trial_id")
    return bool(named) and all(_is_stored_answer(answer) for answer in answers)


def _is_stored_answer(stored: Mapping[str, Any]) -> bool:
    text = (str, type(None))
    outcome = stored.get("outcome", ANSWERED)
    if not all(isinstance(stored.get(key), text) for key in ("reasoning", "finish_reason")):
        return False
    if outcome == ERROR:
        return True
    known = (ANSWERED, UNREADABLE, TRUNCATED, REFUSED)
    return outcome in known and isinstance(stored.get("raw_response"), str)


def _as_lines(path: Path) -> BinaryIO:
    """A file of JSON Lines as it is; a result file as the JSON Lines of its results."""
    file: BinaryIO = path.open("rb")
    start = file.readline().strip()
    file.seek(0)
    if not start or (start.endswith(b"}") and b'"results":' not in start):
        return file
    with file:
        document = _parse_json(path, file.read())
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list):
        raise UsageError(f"{path}: is neither a result file nor JSON Lines")
    lines: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    for result in results:
        lines.write(json.dumps(result).encode() + b"\n")
    lines.seek(0)
    return lines


def _stored_trial(entry: Mapping[str, Any]) -> Any:
    """The trial in a line of a journal, of a result file, or beside a plain text."""
    stored = entry.get("result", entry)
    if isinstance(stored, Mapping) and "text" in stored:
        return {**stored, "raw_response": stored["text"]}
    return stored


def _stored_reply(stored: Mapping[str, Any]) -> Reply:
    """The reply as the model gave it, out of what was made of it."""
    text, outcome = stored["raw_response"], stored.get("outcome", ANSWERED)
    reasoning = stored.get("reasoning") or ""
    if inner := _strip_reasoning(text)[1]:  # it was stored behind what came beside the text
        reasoning = reasoning.removesuffix(inner).removesuffix("\n")
    return Reply(
        text,
        reasoning,
        stored.get("finish_reason") or "",
        ANSWERED if outcome == UNREADABLE else outcome,
    )


# -- the runner -----------------------------------------------------------------------------------


def trial_id(
    provider: LLMProvider,
    world: Problem,
    prompt: Prompt,
    run: int,
    group: str,
    config: MazeConfig,
    form: str = "",
) -> str:
    """A hash (32 hex digits) of all that shapes a trial: the same trial has it in every session."""
    shape = {
        "world": world.kind,
        "maze": world.sha256,
        "prompt": prompt.sha256,
        "provider": provider.provider,
        # Where a file of answers lies shapes none of them.
        "model": "" if provider.provider == "replay" else provider.model,
        "max_tokens": provider.max_tokens or config.max_tokens,
        "temperature": provider.temperature,
        "reasoning_effort": provider.reasoning_effort,
        "group": group,
        "run": run,
    }
    if config.protocol == "step" and not isinstance(world, Task):
        budget = game_budget(world, config)
        shape |= {"game": [config.memory, budget, config.most_hints, config.hint_at]}
        shape |= {"hints": config.hints}  # which no rules show
    if form:
        shape |= {"plant": config.plant, "plant_as": form}
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:32]


class Trial(NamedTuple):
    """One provider in one world once, and its place in the order of results.

    given: what a batch has brought for it; None: it is still to be asked for. form, plant: of the
    planted error; "" and None without one.
    """

    number: int
    id: str
    provider: LLMProvider
    world: Problem
    prompt: Prompt
    run: int = 1
    group: str = "A"
    given: Reply | ProviderError | None = None
    form: str = ""
    plant: Plant | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a run and shapes none of its numbers.

    concurrency: calls of one provider at once. max_cost: in USD, of all attempts since the run
    began. max_time: in seconds, of this session. batch: whether the vendors' batch interfaces are
    used where there are some; batch_wait: in seconds, until when their answers are waited for.
    """

    concurrency: int = CONCURRENCY
    max_cost: float = math.inf
    max_time: float = math.inf
    batch: bool = False
    batch_wait: float = BATCH_WAIT_S


MOST_FAILURES = 5
BATCH_BYTES, BATCH_REQUESTS = 10_000_000, 10_000  # of one batch: the smallest vendor takes 20 MB
GRACE_S = 5.0  # for the calls in flight when a run is interrupted


class _Lane:
    """The trials of one provider, and how many of them may be under way at once.

    The limit halves when the provider answers 429, once for all calls that were under way then,
    and grows back by 1 with every round of answers (additive increase, multiplicative decrease).
    """

    def __init__(self, provider: LLMProvider, trials: Iterator[Trial], most: int) -> None:
        self.provider = provider
        self.running = 0
        self.given_up = False
        self._trials = trials
        self._next: Trial | None = None
        self._most = self._limit = float(most)
        self._failures = 0  # permanent ones, in a row
        self._rate_limits = 0  # those that were answered to
        self._warned = 0  # trials under way when the limit was halved

    def peek(self) -> Trial | None:
        """The trial that may start now; None for none, or not yet."""
        self._slow_down()
        if self.given_up or self.running >= int(self._limit):
            return None
        if self._next is None:
            self._next = next(self._trials, None)
        return self._next

    def start(self) -> None:
        """The trial that may start is under way."""
        self._next = None
        self.running += 1

    def ended(self, trial: Trial, result: BenchmarkResult | None) -> None:
        """A trial is no longer under way; what a batch has brought says nothing of the next."""
        self._slow_down()
        self.running -= 1
        self._warned = max(0, self._warned - 1)
        if result and result.outcome != ERROR:
            self._limit = min(self._most, self._limit + 1 / self._limit)
        failed = result is not None and result.error_retryable is False and not trial.given
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= MOST_FAILURES and self.provider.provider not in CALLS_NOBODY:
            self.given_up = True

    def _slow_down(self) -> None:
        if self.provider.rate_limits > self._rate_limits:
            self._rate_limits = self.provider.rate_limits
            if not self._warned:
                self._warned = self.running
                self._limit = max(1.0, self._limit / 2)


class _Paused(Exception):
    """The run ends before a game does, which goes on when the run is resumed."""


class _Ended(NamedTuple):
    """A trial that is over, with its result or what went wrong in our own code, or is paused."""

    lane: _Lane
    trial: Trial
    result: BenchmarkResult | BaseException


class BenchmarkRunner:
    """Plays every provider in every world, `runs` times each in each group, and scores the answers.

    Each provider has up to `limits.concurrency` (or its own) calls in flight, beside those of the
    others; results keep the order provider, world, run, group whatever ends first. on_start is told
    of each provider, on_result of each trial as it ends, after the journal has it; a trial that the
    journal holds already is not played again. A provider whose calls fail for good MOST_FAILURES
    times in a row is given up. All but the calls themselves, and the turns of games, happens in
    the thread of `run_all`.
    """

    def __init__(
        self,
        providers: Sequence[LLMProvider],
        worlds: Worlds | Sequence[Problem],
        config: MazeConfig,
        runs: int = 1,
        on_start: Callable[[LLMProvider, int], None] = lambda provider, trials: None,
        on_result: Callable[[BenchmarkResult], None] = lambda result: None,
        journal: Journal | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.journal = journal or Journal.temporary()
        self.providers = providers
        self.worlds = worlds
        self.config = config
        self.runs = runs
        self.per_provider = len(worlds) * runs * len(config.conditions)  # trials
        self.on_start = on_start
        self.on_result = on_result
        self.limits = limits
        self.given_up: list[LLMProvider] = []
        self._stopped_by = ""
        self._interrupted = False
        self._unpaid = False  # whether a batch was not sent because it may cost too much
        self._spent_usd = 0.0  # as far as max_cost goes
        self._promised: dict[str, float] = {}  # by batch under way: what it may cost, in USD
        self._problem: BaseException | None = None
        self._deadline = math.inf
        self._patience = math.inf  # until when calls in flight are waited for
        self._todo: SimpleQueue[tuple[_Lane, Trial] | None] = SimpleQueue()
        self._done: SimpleQueue[_Ended | None] = SimpleQueue()
        self._threads = 0
        self._lock = Lock()  # of _spent_usd

    @property
    def results(self) -> JournalResults:
        """The trials that have been played, read from the journal one at a time."""
        return self.journal.results()

    @property
    def stopped_by(self) -> str:
        """What left trials unplayed: "interrupt", "max_cost", "max_time", "batch_wait" or ""."""
        return "interrupt" if self._interrupted else self._stopped_by

    def interrupt(self) -> None:
        """Start no more calls and wait GRACE_S for those in flight; called again, not even that.

        A signal handler may call it at any moment.
        """
        self._patience = time.monotonic() + (0.0 if self._interrupted else GRACE_S)
        self._interrupted = True
        self._done.put(None)  # wakes run_all up

    def run_all(self) -> JournalResults:
        """Play all trials; `results` holds those finished even when an exception ends the run."""
        self._deadline = time.monotonic() + self.limits.max_time
        for provider in self.providers:
            self.on_start(provider, self.per_provider)
        self._spent_usd = self.journal.cost_usd
        if self.limits.max_cost < math.inf:
            self._spent_usd += sum(self._most_usd(self._trial(n)) for n in self.journal.unpriced)
        self._promised = {
            batch: BATCH_DISCOUNT * sum(self._most_usd(self._trial(number)) for number in numbers)
            for batch, numbers in self.journal.open_batches().items()
        }
        batching = [self.limits.batch and p.has_batches for p in self.providers]
        for k in range(len(self.providers)):
            if batching[k]:
                self._submit(k, self._trials(k))
        self._play([self._lane(k, self._trials(k)) for k, by in enumerate(batching) if not by])
        self._collect()
        if self._problem:
            raise self._problem
        if self._unpaid:
            self._stop("max_cost")
        return self.results

    def _lane(self, k: int, trials: Iterator[Trial]) -> _Lane:
        provider = self.providers[k]
        return _Lane(provider, trials, provider.concurrency or self.limits.concurrency)

    def _play(self, lanes: Sequence[_Lane]) -> None:
        """Play the trials of the lanes side by side."""
        self._start(lanes)
        while any(lane.running for lane in lanes):
            ended = self._wait()
            self._make_room(ended)
            self._start(lanes)  # before the disk is waited for
            self._record(ended)
            if time.monotonic() >= self._patience:
                break
        for _ in range(self._threads):
            self._todo.put(None)
        self._threads = 0
        self.given_up += [lane.provider for lane in lanes if lane.given_up]
        if self._problem:
            raise self._problem

    def _start(self, lanes: Sequence[_Lane]) -> None:
        """Start what may start."""
        for lane in lanes:
            # What a batch has brought is paid for.
            while (trial := lane.peek()) and (trial.given or self._may_start()):
                lane.start()
                if lane.provider.provider in CALLS_NOBODY:  # threads would only cost time
                    self._work(lane, trial)
                else:
                    self._hand_over(lane, trial, sum(lane.running for lane in lanes))

    def _hand_over(self, lane: _Lane, trial: Trial, running: int) -> None:
        """Have a thread play a trial; there are as many as trials were ever under way at once."""
        self._todo.put((lane, trial))
        if self._threads < running:
            self._threads += 1
            Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        """What a thread does: one trial after the other, until it is sent home."""
        while item := self._todo.get():
            self._work(*item)

    def _may_start(self) -> bool:
        if self._spent_usd >= self.limits.max_cost:
            self._stop("max_cost")
        elif time.monotonic() >= self._deadline:
            self._stop("max_time")
        return not self.stopped_by and not self._problem

    def _stop(self, why: str) -> None:
        self._stopped_by = self._stopped_by or why

    def _work(self, lane: _Lane, trial: Trial) -> None:
        """Play a trial and report it."""
        try:
            result: BenchmarkResult | BaseException = self._play_trial(trial)
        except BaseException as problem:
            result = problem
        self._done.put(_Ended(lane, trial, result))

    def _wait(self) -> list[_Ended]:
        """The trials that have ended; waits a while for one when there is none."""
        ended: list[_Ended] = []
        try:
            # Not for ever: there are systems where a waiting thread hears no Ctrl-C.
            item = self._done.get(timeout=0.5)
            while True:
                if item:
                    ended.append(item)
                item = self._done.get_nowait()
        except Empty:
            return ended

    def _make_room(self, ended: Sequence[_Ended]) -> None:
        """Take what has ended out of its lane, and note what it has cost or what went wrong."""
        for lane, trial, result in ended:
            if isinstance(result, BaseException):
                if not isinstance(result, _Paused):
                    self._problem = self._problem or result
                lane.ended(trial, None)
            elif result.turns is not None:
                lane.ended(trial, result)  # its turns have been counted
            else:
                lane.ended(trial, result)
                unknown = result.outcome != ERROR and result.cost_usd is None
                self._spent_usd += self._most_usd(trial) if unknown else result.cost_usd or 0.0

    def _record(self, ended: Sequence[_Ended]) -> None:
        """Journal what has ended, all of it with one flush of the disk, and tell of it."""
        results = [
            (trial.number, result)
            for _, trial, result in ended
            if not isinstance(result, BaseException)
        ]
        if results:
            self.journal.add(results)
        for _, result in results:
            self.on_result(result)

    def _trials(self, k: int) -> Iterator[Trial]:
        """The trials of provider k that have no result yet, and none to come."""
        for number in range(k * self.per_provider, (k + 1) * self.per_provider):
            trial = self._trial(number)
            if self.journal.finished.get(number) != trial.id and number not in self.journal.batches:
                yield trial

    # ---- batches

    def _submit(self, k: int, trials: Iterator[Trial]) -> None:
        """Submit these trials of provider k, in batches of a size that every vendor takes."""
        provider = self.providers[k]
        while True:
            some, cost = self._batchful(provider, trials)
            if not some or not self._may_start():
                break
            requests = {
                trial.id: Request(
                    trial.prompt.system, trial.prompt.messages, self._tokens(provider)
                )
                for trial in some
            }
            try:
                batch = self._call(partial(provider.submit_batch, requests))
            except ProviderError as error:
                self._play([self._lane(k, (trial._replace(given=error) for trial in some))])
            else:
                self.journal.add_batch(batch, {trial.id: trial.number for trial in some})
                self._promised[batch] = cost

    def _batchful(
        self, provider: LLMProvider, trials: Iterator[Trial]
    ) -> tuple[list[Trial], float]:
        """The next trials that one batch takes, and what they may cost at most, in USD."""
        left = self.limits.max_cost - self._spent_usd - sum(self._promised.values())
        size, cost, some = 0, 0.0, list[Trial]()
        for trial in trials:
            most = BATCH_DISCOUNT * self._most_usd(trial)
            if cost + most > left:
                self._unpaid = True
                break
            size, cost = size + len(trial.prompt.user.encode()), cost + most
            some.append(trial)
            if size >= BATCH_BYTES or len(some) == BATCH_REQUESTS:
                break
        return some, cost

    def _most_usd(self, trial: Trial) -> float:
        """What a trial's answer costs at most, without a hint; 0 without a price."""
        tokens = self._tokens(trial.provider)
        cost = trial.provider.price({"input": trial.prompt.tokens(), "output": tokens})
        return cost or 0.0

    def _collect(self) -> None:
        """Wait for the batches and score what they bring; those that are late stay open.

        A budget that is spent starts no more calls, but what is at work is waited for.
        """
        until = min(self._deadline, time.monotonic() + self.limits.batch_wait)
        pause = 1.0
        while self.journal.batches and not self._interrupted and not self._problem:
            ended = [
                self._collect_batch(batch, submitted)
                for batch, submitted in self.journal.open_batches().items()
            ]
            if any(ended):
                pause = 1.0
            elif time.monotonic() >= until:
                self._stop("batch_wait")
                break
            else:
                self._sleep(min(pause, until - time.monotonic()))
                pause = min(60.0, 1.5 * pause)

    def _sleep(self, seconds: float) -> None:
        """Wait, or until the run is interrupted."""
        with suppress(Empty):
            self._done.get(timeout=max(0.0, seconds))

    def _call(self, work: Callable[[], T]) -> T:
        """Do the work in a thread, as long as there is patience; what it returns or raises."""
        ended: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

        def call() -> None:
            try:
                ended.put((work(), None))
            except BaseException as problem:
                ended.put((None, problem))

        Thread(target=call, daemon=True).start()
        while time.monotonic() < self._patience:
            with suppress(Empty):
                result, problem = ended.get(timeout=0.5)
                if problem:
                    raise problem
                return cast(T, result)
        raise ProviderError(
            "interrupted before the vendor's answer came: it may have taken a batch; look at its"
            " console before you resume",
            retryable=True,
        )

    def _collect_batch(self, batch: str, submitted: Mapping[int, str]) -> bool:
        """Whether the batch has ended; if so its trials are played with what it has brought.

        submitted: the ids of its trials by number. A trial that has another id now, since the
        program has changed, is submitted again.
        """
        k = min(submitted) // self.per_provider
        provider = self.providers[k]
        try:
            found = self._call(partial(provider.collect_batch, batch, self._tokens(provider)))
        except ProviderError as error:
            if not error.retryable:  # the answers can be had once that is mended
                self._problem = self._problem or error
            return False
        if found is None:
            return False
        if isinstance(found, ProviderError):
            found = dict.fromkeys(submitted.values(), found)
        self._promised.pop(batch, None)
        lost = ProviderError(f"{provider.name}: the batch {batch} says nothing of it", None, True)
        trials = [self._trial(number) for number in submitted]
        given = [
            trial._replace(given=found.get(name, lost) if name == trial.id else None)
            for trial, name in zip(trials, submitted.values(), strict=True)
        ]
        self._play([self._lane(k, (trial for trial in given if trial.given))])
        self._submit(k, (trial for trial in given if not trial.given))
        return True

    def _trial(self, number: int) -> Trial:
        """The trial at a place in the order provider, world, run, group, form."""
        rest, c = divmod(number, len(self.config.conditions))
        rest, run = divmod(rest, self.runs)
        k, m = divmod(rest, len(self.worlds))
        return self._make_trial(self.providers[k], self.worlds[m], run + 1, number, c)

    def _make_trial(
        self, provider: LLMProvider, world: Problem, run: int, number: int = 0, c: int = 0
    ) -> Trial:
        group, form = self.config.conditions[c]
        prompt, plant = opening(world, self.config, form)
        identity = trial_id(provider, world, prompt, run, group, self.config, form)
        return Trial(number, identity, provider, world, prompt, run, group, None, form, plant)

    def run_single(self, provider: LLMProvider, world: Problem, run: int = 1) -> BenchmarkResult:
        """One trial. A call that fails is a result with the outcome "error", never a score.

        Raises NotWiredError for a provider that is a stub.
        """
        return self._play_trial(self._make_trial(provider, world, run))

    def _play_trial(self, trial: Trial) -> BenchmarkResult:
        result = BenchmarkResult(
            provider=trial.provider.provider,
            model=trial.provider.model,
            **trial.world.fields(),
            run=trial.run,
            ariadne_group=trial.group,
            plant_as=trial.form,
            prompt_sha256=trial.prompt.sha256,
            earlier_attempts=self.journal.earlier_attempts(trial.number),
            batch_id=self.journal.batch_of(trial.number),
            timestamp=utc_now(),
            trial_id=trial.id,
        )
        try:
            if isinstance(trial.world, Task):
                update = self._ask_task(trial, trial.world)
            else:
                play = self._play_game if self.config.protocol == "step" else self._converse
                update = play(trial, trial.world)
        except ProviderError as error:
            return replace(result, outcome=ERROR, error=str(error), error_retryable=error.retryable)
        return replace(result, **update)

    def _converse(self, trial: Trial, world: TextWorld) -> dict[str, Any]:
        """The answer, and where the thread calls for it a hint and the answer to that."""
        thread = AriadneThread(trial.group, self.config.lang)
        turns = trial.prompt.messages
        reply = trial.given or self._ask(trial, turns)
        if isinstance(reply, ProviderError):
            raise reply
        hints = world.mirages(self.config.hints)
        answer, metrics, scored = score_answer(reply.text, reply.outcome, world, hints, trial.plant)
        update = {**scored, **_reply_fields(reply, answer)}
        if trial.given:
            update["latency_s"] = None  # of a batch, that tells of the vendor's queue
        if thread.mode != "A":
            update["nudge_needed"] = thread.needed(answer, metrics, world)
        hint = thread.run(answer, metrics, world)
        if hint is None:
            return update
        turns += [
            {"role": "assistant", "content": reply.text},
            {"role": "user", "content": hint},
        ]
        needed = update.pop("nudge_needed")
        hinted = {
            "first_answer": update,
            "hint": hint,
            "nudge_sent": True,
            "nudge_needed": needed,
        }
        try:
            if self._interrupted or (trial.given and not self._may_start()):
                raise ProviderError("the run was ended before the hint was sent", retryable=True)
            second = self._ask(trial, turns)
        except ProviderError as error:  # what was answered before is kept, but is no score
            failed = {"error": str(error), "error_retryable": error.retryable}
            used = {"usage": update["usage"], "cost_usd": update["cost_usd"]}
            return {**hinted, **failed, **used, "outcome": ERROR}
        after, after_metrics, after_scored = score_answer(
            second.text, second.outcome, world, hints, trial.plant
        )
        nrs = nudge_response_speed(metrics, after, after_metrics, world)
        return {
            **after_scored,
            **_reply_fields(second, after),
            "usage": {key: _sum(reply.usage.get(key), n) for key, n in second.usage.items()},
            "cost_usd": _rounded(_sum(reply.cost_usd, second.cost_usd)),
            "latency_s": None if trial.given else _rounded(reply.latency_s + second.latency_s),
            **hinted,
            "nudge_responded": nrs > 0,
            "nrs": _rounded(nrs),
        }

    def _ask_task(self, trial: Trial, task: Task) -> dict[str, Any]:
        """The answer to a task, judged."""
        reply = self._ask(trial, trial.prompt.messages)
        scored = TASK_JUDGES[task.kind](reply.text, reply.outcome, task)
        return {**scored, **_reply_fields(reply, Answer(text=reply.text))}

    def _play_game(self, trial: Trial, world: TextWorld) -> dict[str, Any]:
        """Play a game, from where an earlier session has left it."""
        provider = trial.provider
        game = Game(world, self.config, trial.group, trial.prompt, trial.plant)
        turns = self.journal.turns(trial.number, trial.id)
        for turn in turns:
            game.take(turn["raw_response"], turn["outcome"])
        failed: dict[str, Any] = {}
        while not game.over:
            if not self._may_start():
                raise _Paused
            messages = game.messages()
            contents = (message["content"] for message in messages)
            try:
                reply = self._ask(trial, messages, game.fixed)
            except ProviderError as error:
                failed = {"error": str(error), "error_retryable": error.retryable}
                break
            turns.append(_turn_of(reply, chain_sha256(trial.prompt.system, *contents)))
            if provider.provider not in CALLS_NOBODY:  # whose games are played again for nothing
                self.journal.add_turn(trial.number, trial.id, turns[-1])
                with self._lock:
                    self._spent_usd += reply.cost_usd or 0.0
            game.take(reply.text, reply.outcome)
        if failed:
            return {**failed, **_spent_on(turns), "turns": turns, "outcome": ERROR}
        scored = score_game(game, world.mirages(self.config.hints))
        return {**scored, **_turns_fields(turns), "turns": turns}

    def _ask(self, trial: Trial, turns: Sequence[Message], fixed: int | None = None) -> Reply:
        tokens, key = self._tokens(trial.provider), TrialKey(trial.id, trial.run)
        return trial.provider.complete(trial.prompt.system, turns, tokens, key, fixed)

    def _tokens(self, provider: LLMProvider) -> int:
        """How long an answer of this provider may be."""
        return provider.max_tokens or self.config.max_tokens


MOST_SCALED, MOST_SCALED_GAMES = 200, 50  # worlds that the reference agents play for the scale


# The agents whose mean scores are 0 and 1 of the scale, by the kind of the world.
SCALES = {"maze": ("random-walk", "explorer"), "wiki": ("random", "oracle")}
AGENT_NAMES = {"maze": tuple(MAZE_AGENTS), "wiki": tuple(PAGE_AGENTS)}


def reference_agents(worlds: Worlds) -> Mapping[str, Agent]:
    """The agents that play in these worlds, by their names."""
    return page_agents(worlds.graph) if isinstance(worlds, WikiGames) else MAZE_AGENTS


def reference_scale(worlds: Worlds, config: MazeConfig) -> dict[str, float]:
    """The mean scores of the two agents of SCALES in these worlds, or the first of them."""
    agents = reference_agents(worlds)
    scores: dict[str, list[float]] = {name: [] for name in SCALES[config.world]}
    game = config.protocol == "step"
    most = MOST_SCALED_GAMES if game else MOST_SCALED
    for world in (worlds[k] for k in range(min(len(worlds), most))):
        if isinstance(world, Task):
            break  # they come last
        prompt = PromptBuilder(world, config).build()
        for name, found in scores.items():
            agent = agents[name]
            if game:
                found.append(_agent_game(agent, world, config, prompt))
            else:
                answer = ResponseParser().parse(agent(prompt.messages))
                found.append(judge(answer, world).hallumaze_score)
    return {name: math.fsum(found) / len(found) for name, found in scores.items()}


def _agent_game(agent: Agent, world: TextWorld, config: MazeConfig, prompt: Prompt) -> float:
    """The score of a reference agent's game."""
    game = Game(world, config, "A", prompt)
    while not game.over:
        game.take(agent(game.messages()))
    return judge(game.answer(), world, None, verify_moves).hallumaze_score


# -- rescoring ------------------------------------------------------------------------------------


def rescore_trial(
    trial: Mapping[str, Any], world: Problem, hints: Sequence[Mirage], config: MazeConfig
) -> dict[str, Any]:
    """The fields of a stored trial that follow from its answers, its world and its hints alone.

    trial: an entry of "results" that did not end as an error. Raises NotWiredError when its raw
    answer is missing.
    """
    if isinstance(world, Task):
        return _rescore_task(trial, world)
    if trial.get("turns") is not None:
        return _rescore_game(trial, world, hints, config)
    thread = AriadneThread(trial["ariadne_group"], config.lang)
    plant = _stored_plant(trial, world)
    answer, metrics, scored = _rescore_answer(trial, world, hints, plant)
    stored_first = trial.get("first_answer")
    if not stored_first:
        if thread.mode != "A":
            scored["nudge_needed"] = thread.needed(answer, metrics, world)
        return scored
    first, first_metrics, first_scored = _rescore_answer(stored_first, world, hints, plant)
    nrs = nudge_response_speed(first_metrics, answer, metrics, world)
    return {
        **scored,
        "first_answer": {**stored_first, **first_scored},
        "nudge_needed": thread.needed(first, first_metrics, world),
        "nudge_responded": nrs > 0,
        "nrs": nrs,
    }


def _rescore_game(
    trial: Mapping[str, Any], world: TextWorld, hints: Sequence[Mirage], config: MazeConfig
) -> dict[str, Any]:
    prompt, turns = Prompt("", "", ""), trial["turns"]
    game = Game(world, config, trial["ariadne_group"], prompt, _stored_plant(trial, world))
    for turn in turns:
        if game.over or not isinstance(turn.get("raw_response"), str):
            raise NotWiredError("its turns are not those of a game")
        game.take(turn["raw_response"], turn["outcome"])
    if not game.over and trial.get("finish_reason") == UNFINISHED:
        game.stop()
    elif not game.over:
        raise NotWiredError("its last turns are missing")
    reasoning = trial.get("reasoning") or ""
    return {**score_game(game, hints), **_signals_of(reasoning)}


def _rescore_task(trial: Mapping[str, Any], task: Task) -> dict[str, Any]:
    text = trial.get("raw_response")
    if not isinstance(text, str):
        raise NotWiredError("its raw answer is missing")
    outcome = trial["outcome"]
    outcome = ANSWERED if outcome == UNREADABLE else outcome
    return TASK_JUDGES[task.kind](text, outcome, task)


def _stored_plant(trial: Mapping[str, Any], world: TextWorld) -> Plant | None:
    """The planted walk of a stored trial."""
    stored = trial.get("plant")
    if not stored:
        return None
    steps = [
        Claim(0, number, _stored_place(step["cell"]), step["direction"])
        for number, step in enumerate(stored["steps"], 1)
    ]
    wrong = steps[stored["wrong"] - 1]
    aimed = world.destination(wrong.cell, wrong.direction or "")
    return Plant(stored["kind"], tuple(steps), stored["wrong"], wrong.cell, aimed)


def _stored_place(entry: Any) -> Place:
    """A place as JSON holds it: a cell is a list there."""
    return tuple(entry) if isinstance(entry, list) else entry


def _rescore_answer(
    stored: Mapping[str, Any], world: TextWorld, hints: Sequence[Mirage], plant: Plant | None
) -> tuple[Answer, Metrics, dict[str, Any]]:
    text = stored.get("raw_response")
    if not isinstance(text, str):
        raise NotWiredError("its raw answer is missing")
    outcome = stored["outcome"]
    answer, metrics, scored = score_answer(
        text, ANSWERED if outcome == UNREADABLE else outcome, world, hints, plant
    )
    return answer, metrics, {**scored, **_signals_of(stored.get("reasoning") or "")}


def rescore_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the document with every number recomputed from its answers and mazes, what differed).

    No network, no SDK, no generator: mazes come from their openings. Each difference names the
    trial, the metric, the claimed and the recomputed value. Raises NotWiredError for a file that
    is no result file or lacks raw answers.
    """
    try:
        config = _stored_config(document["config"])
        mazes = {_maze_key(entry): _rebuilt(entry, config) for entry in document["mazes"]}
        hints = {_maze_key(entry): _stored_hints(entry) for entry in document["mazes"]}
        differences = [
            difference
            for entry in document["mazes"]
            for difference in _maze_differences(entry, mazes[_maze_key(entry)])
        ]
        trials = []
        for k, stored in enumerate(document["results"]):
            name = f"results[{k}] {stored['provider']}/{stored['model']} seed {stored['maze_seed']}"
            trial = dict(stored)
            if stored["outcome"] != ERROR:
                key = (stored["maze_size"], stored["maze_seed"], stored["maze_algorithm"])
                trial.update(_rounded(_rescored(name, stored, mazes[key], hints[key], config)))
                differences += _differences(name, stored, trial)
            trials.append(trial)
        names = {f.name for f in fields(BenchmarkResult)}
        rows = aggregate(
            [BenchmarkResult(**{k: v for k, v in t.items() if k in names}) for t in trials]
        )
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise NotWiredError(
            f"is no result file of this program ({one_line(repr(error))})"
        ) from None
    aggregated = _rounded(rows)
    for k, (claimed, row) in enumerate(zip_longest(document.get("aggregate", []), aggregated)):
        differences += _differences(f"aggregate[{k}]", *_comparable(claimed or {}, row or {}))
    sums = {"spending": _rounded(total_spending(aggregated))} if "spending" in document else {}
    differences += _differences("spending", document.get("spending", {}), sums.get("spending", {}))
    return {**document, "results": trials, "aggregate": aggregated, **sums}, differences


def _comparable(
    claimed: Mapping[str, Any], row: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The rows without what rests on intervals, where only one was made with numpy installed."""
    if bool(claimed.get("ci")) == bool(row.get("ci")):
        return claimed, row
    return claimed, {key: value for key, value in row.items() if key not in ("ci", "rank")}


def _stored_config(stored: Mapping[str, Any]) -> MazeConfig:
    """The settings of a result file."""
    names = {f.name for f in fields(MazeConfig)}
    return MazeConfig(**{**{k: v for k, v in stored.items() if k in names}, "lang": stored["lang"]})


def _maze_key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry["size"], entry["seed"], entry["algorithm"]


def _rebuilt(entry: Mapping[str, Any], config: MazeConfig) -> Problem:
    """The world that an entry describes; a game over pages needs its graph for that."""
    if config.world == "maze":
        return MazeEngine.from_openings(entry["openings"], entry["seed"], entry["algorithm"])
    graph = load_graph(config.graph)
    if graph.sha256 != entry["graph_sha256"]:
        raise NotWiredError(f"was played on another graph than {graph.name} is now")
    source, target = divmod(entry["seed"], len(graph))
    if entry["world"] == LinkQuestion.kind:
        return LinkQuestion(graph, source, target)
    budget = config.step_budget or WIKI_MOVES
    return WikiWorld(graph, source, target, entry["max_links"], budget)


def _stored_hints(entry: Mapping[str, Any]) -> list[Mirage]:
    """The hints of a stored maze; which phrase they had is no matter."""
    return [
        Mirage((row, column), hint["direction"], 0, hint["right"])
        for hint in entry.get("mirage_trap_list", ())
        for row, column in [hint["cell"]]
    ]


def _maze_differences(entry: Mapping[str, Any], world: Problem) -> list[str]:
    """Where a stored world says of itself what its truth does not."""
    mine = world.describe("off")
    hints = ("mirage_traps", "mirage_trap_list")  # of the run, not of the maze
    checked = {name: value for name, value in mine.items() if name not in hints}
    return _differences(f"{world.kind} {entry['seed']}", entry, checked)


def _rescored(
    name: str,
    stored: Mapping[str, Any],
    world: Problem,
    hints: Sequence[Mirage],
    config: MazeConfig,
) -> dict[str, Any]:
    try:
        return rescore_trial(stored, world, hints, config)
    except NotWiredError as error:
        raise NotWiredError(f"{name}: {error}") from None


def _differences(name: str, claimed: Mapping[str, Any], mine: Mapping[str, Any]) -> list[str]:
    """One line for each claim that does not follow; a claim that is not made is none."""
    return [
        f"{name}: {key}: claimed {_short(claimed[key])}, recomputed {_short(value)}"
        for key, value in mine.items()
        if key in claimed and claimed[key] != value
    ]


def _short(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 80)


def utc_now() -> str:
    """The time in UTC, to the second, with its offset (ISO 8601)."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


# -- graphs ---------------------------------------------------------------------------------------


Lines = Callable[[Path], Iterator[bytes]]  # the lines of a file, which may be compressed


def file_lines(path: Path, read: Callable[[int], None] = lambda bytes_: None) -> Iterator[bytes]:
    """The lines of a file, unpacked if its name ends in .gz, one at a time; read is told how many
    of its bytes are read, about once for each megabyte. Raises UsageError."""
    told = 0
    try:
        with path.open("rb") as packed:
            file = gzip.GzipFile(fileobj=packed) if path.suffix == ".gz" else packed
            for line in cast(Iterable[bytes], file):
                yield line
                if (done := packed.tell()) - told > 1 << 20:
                    read(told := done)
            read(packed.tell())
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {one_line(str(error))}") from None


@lru_cache(maxsize=2)
def load_graph(path: str) -> Graph:
    """The graph that lies there, in any format of `read_graph` or as `write_graph` wrote it; "" for
    the atlas. Raises UsageError, which names the file and what is wrong."""
    if not path:
        return _atlas()
    found = Path(path)
    compact = {MANIFEST, "named.npy"} & {file.name for file in _files_at(found)}
    return open_graph(found) if compact and found.is_dir() else read_graph(found)


def _files_at(path: Path) -> list[Path]:
    """The files of the folder that the path names, or lies in. Raises UsageError for no path."""
    try:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
        folder = path if path.is_dir() else path.parent
        return sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


_PAGE_SQL = re.compile(r"page\.sql(?:\.gz)?$")


def read_graph(path: Path, lines: Lines = file_lines) -> Graph:
    """The graph of a file or folder, whose format is told by what is there, the first that fits.

    A folder, or one file of it: MediaWiki dumps (*page.sql, *pagelinks.sql, *redirect.sql and
    *linktarget.sql, each also .gz), Wikispeedia (links.tsv, articles.tsv), SNAP (an edge list, and
    a file with "names" in its name). One file alone: an SQLite database with a table
    core_articles(title, links_json), or lines "title<TAB>ids" whose ids are line numbers from 0.
    Raises UsageError for anything else.
    """
    beside = _files_at(path)
    whole = path.is_dir()
    if dump := _dump_at(path, beside):
        return _read_dumps(dump, lines)
    if {p.name for p in (beside if whole else [path])} & {"links.tsv", "articles.tsv"}:
        return _read_wikispeedia(path if whole else path.parent, lines)
    named = [p for p in beside if "names" in p.name and p != path]
    edges = [p for p in beside if p not in named] if whole else [path]
    pairs = [(e, n) for e in edges for n in named if n.name.startswith(e.name.split(".")[0])]
    if len(edges) == len(named) == 1:
        pairs = [(edges[0], named[0])]
    if len(edges) == 1 and _is_sqlite(edges[0]):
        return _read_sqlite(edges[0])
    if len(edges) == 1 and _is_adjacency(edges[0], bool(pairs)):
        return _read_adjacency(edges[0], lines)
    if len(pairs) == 1:
        return _read_edges(*pairs[0], lines)
    raise UsageError(f"{path}: is no graph in a known format (see DOCUMENTATION.md, Graphs)")


def _dump_at(path: Path, beside: Sequence[Path]) -> Path | None:
    """The page.sql of a folder, or of the dump that a file of it belongs to; None for no dump."""
    pages = {p: p.name[: end.start()] for p in beside if (end := _PAGE_SQL.search(p.name))}
    if path.is_file():
        ours = ".sql" in path.name
        pages = {p: wiki for p, wiki in pages.items() if ours and path.name.startswith(wiki)}
    if len(set(pages.values())) > 1:
        raise UsageError(f"{path}: there are several dumps: name the page.sql of one")
    return next(iter(pages), None)


def _name_of(path: Path) -> str:
    """What a graph is called: its file without endings, or the folder if that says nothing."""
    whole = path.resolve()
    return re.sub(r"[-_]?(?:page|links)$", "", whole.name.split(".")[0]) or whole.parent.name


def _atlas() -> Graph:
    """The land borders of the world's countries and territories."""
    pairs = [(here, there) for here, others in _listed(_ATLAS) for there in others.split(", ")]
    titles = sorted({title for pair in pairs for title in pair})
    numbers = {title: k for k, title in enumerate(titles)}
    both = [(numbers[a], numbers[b]) for pair in pairs for a, b in (pair, pair[::-1])]
    aliases = [
        (name, numbers[title])
        for title, names in _listed(_ATLAS_ALIASES)
        for name in names.split(", ")
    ]
    islands = [(name, -1) for name, _ in _listed(_ATLAS_ISLANDS)]
    return make_graph("atlas", titles, *_columns_of(both), [*aliases, *islands])


def _listed(text: str) -> list[tuple[str, str]]:
    """The entries "name: what belongs to it" of a text, parted by semicolons."""
    entries = (entry.partition(": ") for entry in " ".join(text.split()).split("; "))
    return [(name, of_it) for name, _, of_it in entries]


def _whole_graph(path: Path, titles: Sequence[str], *links: Any) -> Graph:
    """`make_graph` of what a file holds, which must be enough for a walk."""
    graph = make_graph(_name_of(path), titles, *links) if titles else None
    if graph is None or len(graph) < 2:
        raise UsageError(f"{path}: no two of its pages can reach each other")
    return graph


def _text_lines(path: Path, lines: Lines) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of each line that is neither empty nor a comment."""
    for number, line in enumerate(lines(path), 1):
        text = line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
        if text.strip() and not text.startswith("#"):
            yield number, text


def _title(text: str) -> str:
    """A title as it is shown: blanks for underscores, one line."""
    return " ".join(printable(text.replace("_", " ")).split())


def _title_at(where: str, text: str) -> str:
    """The title of a page; UsageError, which says where, for none."""
    if title := _title(text):
        return title
    raise UsageError(f"{where}: the page has no title")


def _read_wikispeedia(folder: Path, lines: Lines) -> Graph:
    """links.tsv and articles.tsv (SNAP): URL-encoded titles, # comments."""
    listed, linked = folder / "articles.tsv", folder / "links.tsv"
    titles = [
        _title_at(f"{listed}: line {line}", unquote(text))
        for line, text in _text_lines(listed, lines)
    ]
    numbers = {title: k for k, title in enumerate(titles)}
    pairs = []
    for line, text in _text_lines(linked, lines):
        pair = [_title(unquote(cell)) for cell in text.split("\t")]
        if len(pair) != 2 or not numbers.keys() >= set(pair):
            raise UsageError(f"{linked}: line {line}: it must name two articles of {listed.name}")
        pairs.append((numbers[pair[0]], numbers[pair[1]]))
    return _whole_graph(linked, titles, *_columns_of(pairs))


def _columns_of(pairs: Iterable[tuple[int, int]]) -> tuple[Any, Any]:
    import numpy as np

    flat = np.fromiter((number for pair in pairs for number in pair), np.int32)
    return flat[::2], flat[1::2]


_IDS = re.compile(r"[\s,]*(?:[0-9]{1,9}(?:[\s,]+|$))*")  # none, or some that are parted


def _is_adjacency(path: Path, named: bool) -> bool:
    """Whether the first line is a title and ids: if there are names, a number is no title."""
    _, first = next(_text_lines(path, file_lines), (0, ""))
    title, tab, ids = first.partition("\t")
    return bool(tab and _IDS.fullmatch(ids)) and not (named and title.strip().isdigit())


def _read_adjacency(path: Path, lines: Lines) -> Graph:
    """Lines "title<TAB>ids": a page's number is that of its line, from 0, comments left out."""
    titles: list[str] = []
    pairs: list[tuple[int, int]] = []
    last = 0, 0
    for line, text in _text_lines(path, lines):
        title, tab, ids = text.partition("\t")
        if not tab or not _IDS.fullmatch(ids):
            raise UsageError(f"{path}: line {line}: it must be a title, a tab, and ids")
        links = [int(n) for n in ids.replace(",", " ").split()]
        last = max(last, (max(links, default=0), line))
        pairs += [(len(titles), link) for link in links]
        titles.append(_title_at(f"{path}: line {line}", title))
    if last[0] >= len(titles):
        raise UsageError(f"{path}: line {last[1]}: there is no page {last[0]}")
    return _whole_graph(path, titles, *_columns_of(pairs))


_EDGE = re.compile(rb"\s*(?:([0-9]{1,18})\s+([0-9]{1,18})\s*|#.*)?", re.S)


def _read_edges(path: Path, names: Path, lines: Lines) -> Graph:
    """A SNAP edge list (two ids a line, # comments) and the names of the ids (id, blank, title)."""
    import numpy as np

    titles = _names_of_ids(names, lines)
    order = sorted(titles)
    rows_of = _Numbers(np.array(order, np.int64), np.arange(len(order), dtype=np.int32))
    rows, ends, begin = iter(lines(path)), array("i"), 1
    while some := list(islice(rows, 1 << 16)):
        found = [_EDGE.fullmatch(line) for line in some]
        if None in found:
            raise UsageError(f"{path}: line {begin + found.index(None)}: it must be two ids")
        pairs = [(k, *edge.groups()) for k, edge in enumerate(found) if edge and edge[1]]
        table = np.array(pairs, np.int64).reshape(-1, 3)
        at = rows_of.of(table[:, 1:])
        if len(unknown := np.argwhere(at < 0)):
            row, side = unknown[0]
            line, number = begin + table[row, 0], table[row, 1 + side]
            raise UsageError(f"{path}: line {line}: the id {number} has no name in {names.name}")
        ends.frombytes(at.astype(np.int32).tobytes())
        begin += len(some)
    links = np.frombuffer(ends, np.int32).reshape(-1, 2)
    return _whole_graph(path, [titles[k] for k in order], links[:, 0], links[:, 1])


def _names_of_ids(path: Path, lines: Lines) -> dict[int, str]:
    """Lines of an id, a blank and a title."""
    titles: dict[int, str] = {}
    for line, text in _text_lines(path, lines):
        number, _, title = text.strip().replace("\t", " ", 1).partition(" ")
        if not re.fullmatch("[0-9]{1,18}", number) or int(number) in titles:
            raise UsageError(f"{path}: line {line}: it must be an id, not named yet, and a title")
        titles[int(number)] = _title_at(f"{path}: line {line}", title)
    return titles


class _Numbers(NamedTuple):
    """Rising ids, and a number for each."""

    ids: Any
    numbers: Any

    def of(self, ids: Any) -> Any:
        """The numbers of these ids, -1 for those that have none."""
        import numpy as np

        if not len(self.ids):
            return np.full(np.shape(ids), -1, np.int32)
        at = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.numbers[at], np.int32(-1))


def _is_sqlite(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
    return False


def _read_sqlite(path: Path) -> Graph:
    """A table core_articles(title, links_json), whose links are a JSON list of titles."""
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as base:
            rows = base.execute("SELECT title, links_json FROM core_articles").fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"{path}: is no core_articles(title, links_json): {error}") from None
    titles, linked = [], []
    for number, (title, links) in enumerate(rows, 1):
        where = f"{path}: row {number} of core_articles"
        titles.append(_title_at(where, title if isinstance(title, str) else ""))
        linked.append(_linked_titles(where, links))
    numbers = {title: k for k, title in enumerate(titles)}
    pairs = [
        (k, numbers[link]) for k, links in enumerate(linked) for link in links if link in numbers
    ]
    return _whole_graph(path, titles, *_columns_of(pairs))


def _linked_titles(where: str, links: Any) -> list[str]:
    """The titles of a JSON list, or of NULL."""
    try:
        listed = json.loads(links or "[]")
    except (ValueError, TypeError, RecursionError):
        listed = None
    if isinstance(listed, list) and all(isinstance(link, str) for link in listed):
        return [_title(link) for link in listed]
    raise UsageError(f"{where}: links_json must be a JSON list of titles")


# -- MediaWiki dumps: of each table the columns are found by their names, and only articles count

_SQL_COLUMN = re.compile(rb"\s+`(\w+)`")
_SQL_QUOTED = rb"'[^'\\]*(?:\\.[^'\\]*)*'"
_SQL_TEXT, _SQL_NUMBER = rb"(" + _SQL_QUOTED + rb"|NULL)", rb"(-?[0-9]{1,18})"
_SQL_SKIPPED = rb"(?:" + _SQL_QUOTED + rb"|[^,()']*)"
_SQL_ESCAPE = re.compile(rb"\\(.)", re.S)
_SQL_CONTROL = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a", b"b": b"\b"}
_BLOCK = 1 << 18  # bytes of rows that are parsed together, though each may have a line of its own


class _Table(NamedTuple):
    """A dump whose CREATE TABLE is read: its columns, and the numbered lines that follow."""

    path: Path
    columns: Sequence[str]
    lines: Iterator[tuple[int, bytes]]


def _sql_table(path: Path, lines: Lines) -> _Table:
    numbered = enumerate(lines(path), 1)
    columns: list[str] = []
    for _, line in numbered:
        if column := _SQL_COLUMN.match(line):
            columns.append(column[1].decode())
        elif columns and line.startswith(b")"):
            return _Table(path, columns, numbered)
    raise UsageError(f"{path}: it holds no CREATE TABLE: is it a dump?")


def _sql_rows(table: _Table, *wanted: str) -> Iterator[Sequence[tuple[bytes, ...]]]:
    """The rows of a dump, many at a time, as a tuple for each wanted column: numbers, but text
    where a name ends in title or interwiki. Raises UsageError."""
    if missing := [name for name in wanted if name not in table.columns]:
        raise UsageError(f"{table.path}: its CREATE TABLE has no column {missing[0]}")
    text = {name for name in wanted if name.endswith(("title", "interwiki"))}
    fields = [
        _SQL_TEXT if name in text else _SQL_NUMBER if name in wanted else _SQL_SKIPPED
        for name in table.columns
    ]
    row = re.compile(rb"(\s*\(" + b",".join(fields) + rb"\)\s*[,;]\s*)", re.S)
    kept = [name for name in table.columns if name in wanted]
    return _picked(table, row, [1 + kept.index(name) for name in wanted])


def _picked(
    table: _Table, row: re.Pattern[bytes], order: Sequence[int]
) -> Iterator[Sequence[tuple[bytes, ...]]]:
    """Groups of the rows; every byte must belong to a row, for a row that is cut is no row."""
    for block in _sql_blocks(table):
        found = list(zip(*row.findall(b"".join(line for _, line in block)), strict=True))
        if not found or sum(map(len, found[0])) != sum(len(line) for _, line in block):
            number = next(n for n, line in block if sum(map(len, _matches(row, line))) != len(line))
            raise UsageError(f"{table.path}: line {number}: its rows are damaged or cut")
        yield [found[k] for k in order]


def _matches(row: re.Pattern[bytes], line: bytes) -> Iterator[bytes]:
    return (match[0] for match in row.finditer(line))


def _sql_blocks(table: _Table) -> Iterator[list[tuple[int, bytes]]]:
    """The numbered lines of a dump that hold rows, without what stands before these."""
    block: list[tuple[int, bytes]] = []
    inside, size, number, line = False, 0, 0, b""
    for number, line in table.lines:
        rows = line if inside else b""
        if line.startswith(b"INSERT INTO"):
            _, values, rows = line.partition(b" VALUES")
            inside = bool(values)
        inside = inside and not line.rstrip().endswith(b";")
        if rows.strip():
            block.append((number, rows))
            size += len(rows)
        if size > _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block
    end = line.strip()
    if inside or not (not end or end.endswith(b";") or end.startswith(b"--")):
        raise UsageError(f"{table.path}: line {number}: its rows are damaged or cut")


def _unquoted(field: bytes) -> bytes:
    """A field of a dump without its quotes and escapes."""
    text = field[1:-1] if field.startswith(b"'") else field
    if b"\\" not in text:
        return text
    return _SQL_ESCAPE.sub(lambda match: _SQL_CONTROL.get(match[1], match[1]), text)


def _dump_beside(path: Path, table: str) -> Path | None:
    """The dump of another table of the same wiki."""
    for ending in (".sql.gz", ".sql"):
        other = path.with_name(_PAGE_SQL.sub(table + ending, path.name))
        if other.exists():
            return other
    return None


class _Articles(NamedTuple):
    """The rows of page.sql that are articles, by number: the numbers of their ids and of their
    titles, and for each the one that it leads to: itself, for a redirect another or -1 for none."""

    rows_of: _Numbers
    numbers: dict[bytes, int]
    leads: Any


def _read_dumps(path: Path, lines: Lines) -> Graph:
    """page.sql and the tables beside it: links to a redirect lead where that leads, and what is no
    article, links to nothing or to itself is left out."""
    linked, redirected = _dump_beside(path, "pagelinks"), _dump_beside(path, "redirect")
    if not linked:
        raise UsageError(f"{path}: there is no pagelinks.sql beside it")
    articles = _dump_articles(path, lines)
    if redirected:
        _follow(articles, redirected, lines)
    return _whole_graph(path, *_dump_parts(articles, path, linked, lines))


def _dump_articles(path: Path, lines: Lines) -> _Articles:
    import numpy as np

    ids, lost = array("q"), array("q")
    numbers: dict[bytes, int] = {}
    wanted = ("page_id", "page_namespace", "page_title", "page_is_redirect")
    for columns in _sql_rows(_sql_table(path, lines), *wanted):
        for page, space, title, redirect in zip(*columns, strict=True):
            if space == b"0":
                if redirect == b"1":
                    lost.append(len(ids))
                numbers[_unquoted(title)] = len(ids)
                ids.append(int(page))
    order = np.argsort(ids, kind="stable").astype(np.int32)
    rising = np.array(ids, np.int64)[order]
    if len(numbers) != len(ids) or (np.diff(rising) == 0).any():
        raise UsageError(f"{path}: it lists a title or an id twice")
    leads = np.arange(len(ids), dtype=np.int32)
    leads[np.array(lost, np.int64)] = -1  # until it is known where they lead
    return _Articles(_Numbers(rising, order), numbers, leads)


def _follow(articles: _Articles, path: Path, lines: Lines) -> None:
    """Set where each redirect leads in the end: -1 outside, to nothing, or round in a circle."""
    import numpy as np

    target: dict[int, int] = {}
    wanted = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki")
    for origins, *columns in _sql_rows(_sql_table(path, lines), *wanted):
        numbers = articles.rows_of.of(np.array(origins, np.int64)).tolist()
        for number, space, title, wiki in zip(numbers, *columns, strict=True):
            here = space == b"0" and wiki in (b"''", b"NULL")
            target[number] = articles.numbers.get(_unquoted(title), -1) if here else -1
    target.pop(-1, None)
    for origin in target:
        seen, end = {origin}, target[origin]
        while end in target and end not in seen:
            seen.add(end)
            end = target[end]
        articles.leads[origin] = -1 if end in target else end


def _dump_parts(
    articles: _Articles, path: Path, linked: Path, lines: Lines
) -> tuple[list[str], Any, Any, Iterator[tuple[str, int]]]:
    """The titles of the pages, the two pages of each link, and the redirects to pages."""
    import numpy as np

    leads = articles.leads
    pages = np.flatnonzero(leads == np.arange(len(leads)))
    place = np.full(len(leads) + 1, -1, np.int32)  # the last one is that of -1
    place[pages] = np.arange(len(pages), dtype=np.int32)
    ends = place[np.append(leads, -1)]
    sources, targets = array("i"), array("i")
    for begins, meant in _dump_links(articles, path, linked, lines):
        pair = place[begins], ends[meant]
        known = (pair[0] >= 0) & (pair[1] >= 0)
        sources.frombytes(pair[0][known].tobytes())
        targets.frombytes(pair[1][known].tobytes())
    shown = [_title(title.decode("utf-8", "replace")) for title in articles.numbers]
    others = ((shown[k], int(ends[k])) for k in np.flatnonzero(place[:-1] < 0).tolist())
    titles = [shown[k] for k in pages.tolist()]
    return titles, np.frombuffer(sources, np.int32), np.frombuffer(targets, np.int32), others


def _dump_links(
    articles: _Articles, path: Path, linked: Path, lines: Lines
) -> Iterator[tuple[Any, Any]]:
    """The rows of the two articles of each link, -1 where there is none, many at a time."""
    import numpy as np

    table = _sql_table(linked, lines)
    titled = "pl_title" in table.columns  # the old schema, or both
    meant = ("pl_namespace", "pl_title") if titled else ("pl_target_id",)
    space = ("pl_from_namespace",) if "pl_from_namespace" in table.columns else ()
    rows = _sql_rows(table, "pl_from", *meant, *space)
    targets = None if titled else _link_targets(articles, path, lines)
    for origins, *columns in rows:
        spaces = columns.pop() if space else ()
        begins = articles.rows_of.of(np.array(origins, np.int64))
        if space:
            begins[np.array(spaces) != b"0"] = -1
        if targets:
            yield begins, targets.of(np.array(columns[0], np.int64))
        else:
            yield begins, _titled(articles, *columns)


def _titled(articles: _Articles, spaces: Sequence[bytes], titles: Sequence[bytes]) -> Any:
    """The rows of the articles of these titles, -1 for those of other namespaces or of none."""
    import numpy as np

    pairs = zip(spaces, titles, strict=True)
    found = (articles.numbers.get(_unquoted(t), -1) if n == b"0" else -1 for n, t in pairs)
    return np.fromiter(found, np.int32, len(titles))


def _link_targets(articles: _Articles, path: Path, lines: Lines) -> _Numbers:
    """The rows of the articles that the ids of linktarget.sql mean."""
    import numpy as np

    beside = _dump_beside(path, "linktarget")
    if not beside:
        raise UsageError(f"{path}: it needs linktarget.sql beside it")
    ids, numbers = array("q"), array("i")
    table = _sql_table(beside, lines)
    for named, *columns in _sql_rows(table, "lt_id", "lt_namespace", "lt_title"):
        rows = _titled(articles, *columns)
        ids.frombytes(np.array(named, np.int64)[rows >= 0].tobytes())
        numbers.frombytes(rows[rows >= 0].tobytes())
    order = np.argsort(ids, kind="stable")
    return _Numbers(np.array(ids, np.int64)[order], np.array(numbers, np.int32)[order])


# -- the compact form: a folder of arrays that are mapped, not read

MANIFEST, GRAPH_VERSION = "manifest.json", 1


def write_graph(graph: Graph, folder: Path, note: Mapping[str, Any]) -> None:
    """Write a graph into an empty folder, its manifest last. note: what that says of the source."""
    import numpy as np

    texts = {"titles": graph.titles, "names": graph.names, "keys": graph.keys}
    parts = {"ahead": graph.ahead, "behind": graph.behind}
    arrays = {f"{name}.bin": text.blob for name, text in texts.items()}
    arrays |= {f"{name}_offsets.npy": text.offsets for name, text in texts.items()}
    arrays |= {f"{name}_indptr.npy": part.indptr for name, part in parts.items()}
    arrays |= {f"{name}_indices.npy": part.indices for name, part in parts.items()}
    arrays["named.npy"] = graph.named
    files = {}
    for name, values in arrays.items():
        path = folder / name
        if path.suffix == ".npy":
            np.save(path, values)
        else:
            path.write_bytes(memoryview(values))
        state = path.stat()
        files[name] = {
            "bytes": state.st_size,
            "modified_ns": state.st_mtime_ns,
            "sha256": _file_sha256(path),
        }
    manifest = {
        "graph": GRAPH_VERSION,
        "name": graph.name,
        "pages": len(graph),
        "links": len(graph.ahead.indices),
        "sha256": graph.sha256,
        "files": files,
        **note,
    }
    write_atomically(folder / MANIFEST, json_text(manifest))


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def open_graph(folder: Path) -> Graph:
    """Map a graph that `write_graph` wrote. A file whose size, or whose content since it was
    changed, is not what the manifest says is refused by its name (UsageError)."""
    import numpy as np

    manifest = _parse_json(folder / MANIFEST, _read_bytes(folder / MANIFEST))
    try:
        if manifest["graph"] != GRAPH_VERSION:
            raise UsageError(f"{folder}: is of another version: build it again")
        for name, state in manifest["files"].items():
            _check_file(folder / name, state)
        arrays = {
            name: np.load(folder / name, mmap_mode="r")
            if name.endswith(".npy")
            else np.memmap(folder / name, np.uint8, "r")
            for name in manifest["files"]
        }
        titles, names, keys = (
            Texts(arrays[f"{n}.bin"], arrays[f"{n}_offsets.npy"])
            for n in ("titles", "names", "keys")
        )
        ahead, behind = (
            Adjacency(arrays[f"{n}_indptr.npy"], arrays[f"{n}_indices.npy"])
            for n in ("ahead", "behind")
        )
        name, named, sha256 = manifest["name"], arrays["named.npy"], manifest["sha256"]
        return Graph(name, titles, ahead, behind, names, keys, named, sha256)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{folder / MANIFEST}: is no manifest ({one_line(repr(error))})") from None


def _check_file(path: Path, state: Mapping[str, Any]) -> None:
    try:
        found = path.stat()
        whole = found.st_size == state["bytes"]
        if whole and found.st_mtime_ns != state["modified_ns"]:
            whole = _file_sha256(path) == state["sha256"]
    except OSError:
        whole = False
    if not whole:
        raise UsageError(f"{path}: is damaged or missing: build the graph again")


# -- people who walked ---------------------------------------------------------------------------


def read_walks(path: Path) -> list[BenchmarkResult]:
    """The finished walks of people over the graph whose links.tsv and articles.tsv lie beside them,
    as one group of people for each shortest distance.

    Lines of articles, by their numbers in articles.tsv from 0, parted by blanks; or as SNAP's
    paths_finished.tsv has them, where "<" goes back to the article before. Only walks that reached
    their target are in such a file, so the success rate says nothing. Walks between pages that are
    not in the graph are left out. Raises UsageError, which names file and line.
    """
    graph = load_graph(str(path.parent))
    listed = path.parent / "articles.tsv"
    titles = [_title(unquote(text)) for _, text in _text_lines(listed, file_lines)]
    pages = {title: graph.find(title) for title in titles}
    done: list[tuple[int, int, int]] = []  # target, source, steps
    for line, text in _text_lines(path, file_lines):
        walk = _walk_of(text, titles)
        if not walk or not pages.keys() >= {walk[0], walk[-1]}:
            raise UsageError(f"{path}: line {line}: is no walk over {listed.name}")
        source, target = pages[walk[0]], pages[walk[-1]]
        if source is not None and target is not None and source != target:
            done.append((target, source, len(walk) - 1))
    walks: dict[int, Counter[int]] = {}  # by shortest distance: how many took so many steps
    for target, source, steps in sorted(done):  # one search for each target
        walks.setdefault(int(graph.distances(target)[source]), Counter())[steps] += 1
    return [
        _walkers(path.stem, graph.name, shortest, steps)
        for shortest, steps in sorted(walks.items())
    ]


def _walk_of(text: str, titles: Sequence[str]) -> list[str] | None:
    """The articles of a walk, one for each step that was made, back or forth."""
    cells = text.split("\t")
    if len(cells) == 1:
        numbers = text.split()
        if not all(n.isdigit() and int(n) < len(titles) for n in numbers):
            return None
        return [titles[int(n)] for n in numbers]
    trail: list[str] = []
    walk: list[str] = []
    for step in cells[3].split(";") if len(cells) > 3 else [""]:
        if step == "<" and len(trail) > 1:
            trail.pop()
        elif step and step != "<":
            trail.append(_title(unquote(step)))
        else:
            return None
        walk.append(trail[-1])
    return walk


def _walkers(name: str, graph: str, shortest: int, steps: Counter[int]) -> BenchmarkResult:
    """The means of the people whose way was so long at least."""
    count = steps.total()
    taken = sum(moves * times for moves, times in steps.items()) / count
    return BenchmarkResult(
        "human",
        f"{name} distance {shortest} n={count}",
        maze_size=shortest,
        maze_algorithm=graph,
        world="wiki",
        sr=1.0,
        moves_used=taken,
        suboptimal_steps=taken - shortest,
    )


def make_worlds(config: MazeConfig, entry: Mapping[str, Any]) -> Worlds:
    """The worlds of a run, from what its journal holds of them."""
    if config.world == "maze":
        return Mazes(**entry)
    graph = load_graph(config.graph)
    if graph.sha256 != entry["graph_sha256"]:
        raise ValueError(f"{config.graph} is not the graph that it was")
    pairs = [(int(a), int(b)) for a, b in entry["pairs"]]
    probed = [(int(a), int(b)) for a, b in entry["probed"]]
    budget = config.step_budget or WIKI_MOVES
    return WikiGames(graph, pairs, config.max_links, budget, probed)


# =================================================================================================
# 9  Statistics
# =================================================================================================

# The numbers of a trial that are averaged over a model's mazes, and those whose sums tell more.
AVERAGED = (
    "sr",
    "mei",
    "ce",
    "brs",
    "hallumaze_score",
    "hallucination_count",
    "backtrack_count",
    "loop_count",
    "hrr",
    "early",
    "esc",
    "nrs",
    "recognition_precision",
    "recognition_recall",
    "recognition_f1",
    "false_alarms",
    "hallucination_recovery",
    "wrong_turn_recovery",
    "steps_to_recover",
    "recovery_cost",
    "oce",
    "uce",
    "brier",
    "ece",
    "auroc2",
    "trap_capture_rate",
    "control_rate",
    "lure_effect",
    "brs_lure",
    "moves_used",
    "path_efficiency",
    "progress",
    "looped",
    "sr_if_looped",
    "most_visits",
    "recognition_delay",
    "suboptimal_steps",
    "replanned",
    "hub_seeking",
    "plant_recognised",
    "plant_steps",
    "latency_s",
)
SUMMED = ("recognition", "recovery", "lure", "tiers", "reasoning_signal_counts", "grades")
RELIABILITY_OF = ("hallumaze_score", "mei", "recognition_f1")
FEWEST_PAIRS = 6  # of common mazes; fewer tell nothing of a difference
RESAMPLES = 10_000
UNRANKED = ("reference", "human")
MazeKey = tuple[Any, ...]  # what makes two mazes the same


def aggregate(results: Iterable[BenchmarkResult]) -> list[dict[str, Any]]:
    """One row per model, group and form of the planted error, in the order of the results: counts,
    and means of AVERAGED.

    The unit is the maze: a model's repeats on a maze are averaged first. ci: the 95 % intervals of
    the means, where there are FEWEST_PAIRS mazes. pooled: the measures of all steps and events
    together. Trials that ended as errors are counted and in no mean. ignore_rate: the share of
    hinted trials of group C that needed the hint and did not act on it (v1.1 section 9.3). ti: see
    `trainability`. blind_spot: of a model that had planted errors in both forms. rank: see `ranks`.
    usage and cost_usd are sums, what errors and earlier attempts
    used included; n_unpriced trials have no known cost.
    """
    tallies: dict[RowKey, _Tally] = {}
    for result in results:
        key = (result.provider, result.model, result.ariadne_group, result.plant_as)
        if key not in tallies:
            tallies[key] = _Tally()
        tallies[key].add(result)
    places = ranks({key: tally.by_maze("hallumaze_score") for key, tally in tallies.items()})
    return [
        {
            "provider": key[0],
            "model": key[1],
            "ariadne_group": key[2],
            "plant_as": key[3],
            **tally.row(),
            "ti": _group_ti(tallies, key),
            "blind_spot": _blind_spot(tallies, key),
            "rank": places.get(key),
        }
        for key, tally in tallies.items()
    ]


RowKey = tuple[str, str, str, str]  # provider, model, group, form of the planted error


def _blind_spot(tallies: Mapping[RowKey, _Tally], key: RowKey) -> float | None:
    """Recognition of planted errors that are somebody else's minus that of one's own, -1..1, over
    the mazes that were played in both forms."""
    both = [tallies.get((*key[:3], form)) for form in PLANT_FORMS]
    if not key[3] or None in both:
        return None
    own, other = (
        {maze: x for maze, x in tally.by_maze("plant_recognised").items() if x is not None}
        for tally in both
        if tally
    )
    return mean(_changes(own, other).values())


def _group_ti(tallies: Mapping[RowKey, _Tally], key: RowKey) -> float | None:
    plain = tallies.get((*key[:2], "A", key[3]))
    if plain is None or key[2] == "A":
        return None
    return _ti({"mei": plain.repeats("mei")}, {n: tallies[key].repeats(n) for n in ("mei", "nrs")})


class _Tally:
    """What is held of a model's trials while they are averaged: no more than the numbers."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.mazes: dict[MazeKey, dict[int, array[float]]] = {}  # by repeat: AVERAGED
        self.unreadable: list[bool] = []
        self.ignored: list[bool] = []
        self.failures: Counter[str] = Counter()
        self.responses: Counter[str] = Counter()
        self.patterns: Counter[str] = Counter()
        self.sums: dict[str, dict[str, Any]] = {name: {} for name in SUMMED}
        self.stated: Counter[Stated] = Counter()
        self.spent = Spending()
        self.probed: Counter[Probed] = Counter()
        self.per_move: list[tuple[float | None, float | None]] = []  # tokens, USD, of games

    def add(self, trial: BenchmarkResult) -> None:
        """Take a trial into account."""
        self.outcomes[trial.outcome] += 1
        self.spent.add(trial)
        if trial.outcome == ERROR:
            return
        if trial.probe_linked is not None:
            self.probed[trial.probe_linked, trial.probe_said] += 1
            return
        numbers = (getattr(trial, name) for name in AVERAGED)
        row = array("d", (math.nan if number is None else number for number in numbers))
        repeats = self.mazes.setdefault(maze_key(trial), {})
        repeats[trial.run if trial.run not in repeats else len(repeats) + 1] = row
        if trial.readable is not None:
            self.unreadable.append(not trial.readable)
        if trial.ariadne_group == "C" and trial.nudge_sent and trial.nudge_needed:
            self.ignored.append(trial.nrs == 0)
        if trial.moves_used:
            asked, told = trial.usage.get("input"), trial.usage.get("output")
            tokens, cost, moves = _sum(asked, told), trial.cost_usd, trial.moves_used
            self.per_move.append((tokens and tokens / moves, cost and cost / moves))
        self.failures[trial.failure_mode] += bool(trial.failure_mode)
        self.responses[trial.plant_response or ""] += trial.plant_response is not None
        self.patterns[trial.confidence_pattern or ""] += trial.confidence_pattern is not None
        for name in SUMMED:
            _add_counts(self.sums[name], getattr(trial, name))
        self.stated.update(stated_confidences((s["confidence"], s["verdict"]) for s in trial.steps))

    def row(self) -> dict[str, Any]:
        """The model's row, without its name."""
        counted = (ERROR, TRUNCATED, UNREADABLE, REFUSED)
        columns = [list(self.by_maze(name).values()) for name in AVERAGED]
        intervals = bootstrap_intervals(columns) if len(self.mazes) >= FEWEST_PAIRS else []
        return {
            "n": self.outcomes.total() - self.outcomes[ERROR] - self.probed.total(),
            "n_mazes": len(self.mazes),
            **{f"n_{name}": self.outcomes[name] for name in counted},
            "unreadable_rate": mean(self.unreadable),
            **{name: mean(column) for name, column in zip(AVERAGED, columns, strict=True)},
            "ci": {
                name: list(interval)
                for name, interval in zip(AVERAGED, intervals, strict=False)
                if interval
            },
            "ignore_rate": mean(self.ignored),
            "probe": probe_scores(self.probed),
            "tokens_per_move": mean(tokens for tokens, _ in self.per_move),
            "cost_per_move": mean(cost for _, cost in self.per_move),
            "failure_modes": {mode: n for mode in FAILURE_MODES if (n := self.failures[mode])},
            "plant_responses": {name: n for name in RESPONSES if (n := self.responses[name])},
            "confidence_patterns": {k: n for k, n in sorted(self.patterns.items()) if n},
            "pooled": self._pooled(),
            "reliability": {
                name: found for name in RELIABILITY_OF if (found := reliability(self.repeats(name)))
            },
            **self.spent.fields(),
        }

    def by_maze(self, name: str) -> dict[MazeKey, float | None]:
        """The mean over the repeats of each maze of one of AVERAGED."""
        k = AVERAGED.index(name)
        return {maze: _mean_of_runs(repeats, k) for maze, repeats in self.mazes.items()}

    def repeats(self, name: str) -> Repeats:
        """One of AVERAGED for each maze and repeat."""
        k = AVERAGED.index(name)
        return {
            maze: {run: _known(row[k]) for run, row in repeats.items()}
            for maze, repeats in self.mazes.items()
        }

    def _pooled(self) -> dict[str, Any]:
        """The measures over all steps and events of the model together, with their counts."""
        by_kind = self.sums["recognition"]
        total: dict[str, int] = dict.fromkeys(_RECOGNITION_COUNTS, 0)
        for counts in by_kind.values():
            _add_counts(total, counts)
        return {
            **self.sums,
            "recognition": {
                kind: {**counts, **recognition_scores(counts)} for kind, counts in by_kind.items()
            },
            **recognition_scores(total),
            **(recovery_scores(self.sums["recovery"]) if self.sums["recovery"] else {}),
            **(lure_scores(self.sums["lure"]) if self.sums["lure"] else {}),
            "ce": _pooled_ce(self.stated),
            **calibration_scores(self.stated),
            "ece_bins": calibration_bins(self.stated),
        }


Probed = tuple[bool, bool | None]  # whether a page links to another, and what a model says


def probe_scores(answers: Mapping[Probed, int]) -> dict[str, Any] | None:
    """What a model knows of the links of a graph: precision, recall and F1 (0..1) of its "yes",
    with the 95 % interval of F1 over RESAMPLES draws of the questions; None without a question. An
    answer that says neither yes nor no counts as no."""
    asked = sum(answers.values())
    if not asked:
        return None
    true, false, missed = (
        sum(n for (linked, said), n in answers.items() if (linked, bool(said)) == kind)
        for kind in ((True, True), (False, True), (True, False))
    )
    numpy = load_numpy()
    interval = None
    if numpy:
        shares = [n / asked for n in (true, false, missed, asked - true - false - missed)]
        drawn = numpy.random.default_rng(0).multinomial(asked, shares, RESAMPLES)
        found = 2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2]
        f1 = 2 * drawn[:, 0] / numpy.maximum(found, 1)
        interval = [float(x) for x in numpy.quantile(f1, [0.025, 0.975])]
    return {
        "n": asked,
        "n_unreadable": sum(n for (_, said), n in answers.items() if said is None),
        "true_yes": true,
        "false_yes": false,
        "missed": missed,
        "precision": _share(true, true + false),
        "recall": _share(true, true + missed),
        "f1": _share(2 * true, 2 * true + false + missed),
        "f1_ci": interval,
    }


def maze_key(trial: BenchmarkResult) -> MazeKey:
    """What makes the mazes of two trials the same."""
    return trial.maze_size, trial.maze_seed, trial.maze_algorithm


def _pooled_ce(stated: Mapping[Stated, int]) -> float | None:
    gaps = [count * abs(c / 100 - y) for (c, y), count in stated.items()]
    return _share(math.fsum(gaps), sum(stated.values()))


def _add_counts(total: dict[str, Any], counts: Mapping[str, Any]) -> None:
    """Add counts, nested ones too, to a total."""
    for key, count in counts.items():
        if isinstance(count, Mapping):
            _add_counts(total.setdefault(key, {}), count)
        else:
            total[key] = total.get(key, 0) + count


@cache
def load_numpy() -> Any:
    """The module numpy, None where it is not installed; importing it takes a while."""
    # Threads would cost more than they save here, and add in another order on another machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def bootstrap_intervals(
    columns: Sequence[Sequence[float | None]],
) -> list[tuple[float, float] | None]:
    """The 95 % interval of the mean of each column: percentile bootstrap over the rows, RESAMPLES
    resamples, a fixed seed; None for a column without a value, and without the package numpy.

    A column has one value a maze; those that are None are in no mean. One draw of mazes serves all
    columns, as weights in a product of matrices: scipy's bootstrap would gather each resample of
    each column, which takes thirty times as long, and a second to import.
    """
    if not load_numpy():  # the smallest installation has means alone
        return [None] * len(columns)
    told = [k for k, column in enumerate(columns) if any(x is not None for x in column)]
    intervals = dict(zip(told, _resampled([columns[k] for k in told]), strict=True))
    return [intervals.get(k) for k in range(len(columns))]


def _resampled(columns: Sequence[Sequence[float | None]]) -> list[tuple[float, float]]:
    """The same of columns that each hold a value."""
    if not columns:
        return []
    np = load_numpy()
    values = np.array(columns, dtype=float).T
    n = len(values)
    known = np.isfinite(values)
    values[~known] = 0
    gaps = ~known.all(axis=0)  # the columns whose resamples differ in how many values they hold
    stream = np.random.RandomState(0)  # whose stream never changes
    means = []
    for first in range(0, RESAMPLES, rows := max(1, 10**6 // n)):  # bounds the memory
        count = min(rows, RESAMPLES - first)
        drawn = stream.randint(n, size=(count, n)) + n * np.arange(count)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(float)
        held = np.full((count, len(columns)), float(n))
        held[:, gaps] = weights @ known[:, gaps]
        with np.errstate(invalid="ignore"):  # a resample without a value has no mean
            means.append(weights @ values / held)
    found = []
    for column in np.concatenate(means).T:
        low, high = np.nanpercentile(column, (2.5, 97.5))
        found.append((float(low), float(high)))
    return found


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """The same of one column, which holds a value."""
    return cast(tuple[float, float], bootstrap_intervals([values])[0])


def ranks(scores: Mapping[K, Mapping[MazeKey, float | None]]) -> dict[K, int]:
    """1 + the number of models that are better, by score per maze; those without a score have none.

    scores: by (provider, model, group, …); only models of one group compete, neither reference
    agents nor people, who are the scale and the control. A model is better when the interval of
    the paired difference lies above zero; with fewer than FEWEST_PAIRS mazes in common, when its
    mean is, in the three decimals that are shown.
    """
    known = {
        key: {maze: score for maze, score in by_maze.items() if score is not None}
        for key, by_maze in scores.items()
        if key[0] not in UNRANKED
    }
    places = {key: 1 for key, mine in known.items() if mine}
    pairs = [(a, b) for a, b in combinations(places, 2) if a[2:] == b[2:]]
    mazes = list({maze: None for mine in known.values() for maze in mine})
    changes = [_changes(known[b], known[a]) for a, b in pairs]
    columns = [[change.get(maze) for maze in mazes] for change in changes]
    for (a, b), column, interval in zip(pairs, columns, bootstrap_intervals(columns), strict=True):
        if interval and len(column) - column.count(None) >= FEWEST_PAIRS:
            low, high = interval
        else:
            low = high = round(_mean_of(known[a]), 3) - round(_mean_of(known[b]), 3)
        places[a] += high < 0
        places[b] += low > 0
    return places


def _mean_of(scores: Mapping[MazeKey, float]) -> float:
    return math.fsum(scores.values()) / len(scores)


def trainability(
    nrs: Iterable[float | None], mei_a: Sequence[float], mei_b: Sequence[float]
) -> float | None:
    """TI = mean NRS · (mean MEI_B - mean MEI_A) / mean MEI_A (v1.1 section 9.3), over the same
    trials in both groups; nrs: of those that were hinted. None without one, or with a MEI_A of 0.
    """
    speed, before, after = mean(nrs), mean(mei_a), mean(mei_b)
    if speed is None or not before or after is None:
        return None
    return speed * (after - before) / before


Repeats = Mapping[MazeKey, Mapping[int, "float | None"]]


def _ti(before: Mapping[str, Repeats], after: Mapping[str, Repeats]) -> float | None:
    """The trainability of a model out of its MEI without hints, and MEI and NRS with them."""
    mei_a, mei_b, nrs = before["mei"], after["mei"], after["nrs"]
    pairs = [
        (mei, mei_b[maze][run], nrs[maze][run])
        for maze, repeats in mei_a.items()
        for run, mei in repeats.items()
        if run in mei_b.get(maze, {})
    ]
    known = [(a, b, speed) for a, b, speed in pairs if a is not None and b is not None]
    return trainability(
        [speed for _, _, speed in known], [a for a, _, _ in known], [b for _, b, _ in known]
    )


def reliability(repeats: Mapping[MazeKey, Mapping[int, float | None]]) -> dict[str, Any] | None:
    """How far one run of a maze can be trusted: icc, sem, n_mazes, runs; None without repeats.

    icc: ICC(2,1), two-way random effects, absolute agreement, one run (Shrout and Fleiss 1979),
    over the mazes that have every repeat that half of them have; None when nothing varies. sem: the
    standard error of a single run, the square root of the variance within mazes.
    """
    had = Counter(run for by_run in repeats.values() for run in by_run)
    runs = sorted(run for run, mazes in had.items() if 2 * mazes >= len(repeats))
    rows = [[by_run.get(run) for run in runs] for by_run in repeats.values()]
    table = [[x for x in row if x is not None] for row in rows if None not in row]
    n, k = len(table), len(runs)
    if n < 2 or k < 2:
        return None
    grand = math.fsum(map(math.fsum, table)) / (n * k)
    of_mazes = k * math.fsum((math.fsum(row) / k - grand) ** 2 for row in table)
    of_runs = n * math.fsum((math.fsum(run) / n - grand) ** 2 for run in zip(*table, strict=True))
    total = math.fsum((x - grand) ** 2 for row in table for x in row)
    msr, msc = of_mazes / (n - 1), of_runs / (k - 1)
    mse = max(0.0, total - of_mazes - of_runs) / ((n - 1) * (k - 1))
    spread = msr + (k - 1) * mse + k * (msc - mse) / n
    sem = math.sqrt(max(0.0, total - of_mazes) / (n * (k - 1)))
    icc = (msr - mse) / spread if spread > 1e-15 else None
    return {"icc": icc, "sem": sem, "n_mazes": n, "runs": k}


def _mean_of_runs(repeats: Mapping[int, Sequence[float]], k: int) -> float | None:
    if len(repeats) == 1:  # as in most runs
        return _known(next(iter(repeats.values()))[k])
    return mean(_known(row[k]) for row in repeats.values())


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


class Spending:
    """Tokens and USD that trials have used, their earlier attempts included."""

    def __init__(self) -> None:
        self.usage: dict[str, int | None] = dict.fromkeys(USAGE_KEYS)
        self.costs: list[float] = []
        self.unpriced = 0

    def add(self, trial: BenchmarkResult) -> None:
        """Take a trial into account."""
        earlier = trial.earlier_attempts or {"usage": {}, "cost_usd": None}
        for key in USAGE_KEYS:
            used = (trial.usage.get(key), earlier["usage"].get(key))
            self.usage[key] = _sum(self.usage[key], *used)
        known = [cost for cost in (trial.cost_usd, earlier["cost_usd"]) if cost is not None]
        self.costs += known
        self.unpriced += trial.cost_usd is None and trial.outcome != ERROR

    def fields(self) -> dict[str, Any]:
        """usage, cost_usd (None when no cost is known) and n_unpriced."""
        cost = math.fsum(self.costs) if self.costs else None
        return {"usage": self.usage, "cost_usd": cost, "n_unpriced": self.unpriced}


def total_spending(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of usage and cost over the rows of `aggregate`: what the whole run has used."""
    listed = list(rows)
    costs = [row["cost_usd"] for row in listed if row["cost_usd"] is not None]
    return {
        "usage": {key: _sum(*(row["usage"][key] for row in listed)) for key in USAGE_KEYS},
        "cost_usd": math.fsum(costs) if costs else None,
        "n_unpriced": sum(row["n_unpriced"] for row in listed),
    }


def centred(score: float | None, scale: Mapping[str, float]) -> float | None:
    """A score on the scale of two reference agents: 0 is the first one's, 1 the second one's."""
    low, high = scale.values()
    return None if score is None or high <= low else (score - low) / (high - low)


def rank(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """(rank, row) of those that have one, by group, rank and falling score."""
    placed = [(row["rank"], row) for row in rows if row["rank"] is not None]
    return sorted(
        placed,
        key=lambda p: (p[1]["ariadne_group"], p[0], -round(p[1]["hallumaze_score"], 3)),
    )


def paired_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], name: RowKey
) -> list[float]:
    """Score after minus score before of a model, for each maze that both result files have.

    name: provider, model and group.

    A maze is the same under the same conditions when its prompt is, to the byte; repeats are
    averaged first. Settings of a call that differ leave no pair. In the order of `after`.
    """
    if _call_settings(before, name) != _call_settings(after, name):
        return []
    old, new = (_scores_by_prompt(document, name) for document in (before, after))
    return [score - old[prompt] for prompt, score in new.items() if prompt in old]


def _call_settings(document: Mapping[str, Any], name: RowKey) -> list[Any]:
    """What shapes an answer beside the prompt and the group."""
    config = document["config"]
    names = ("max_tokens", "temperature", "reasoning_effort", *GAME_DEFAULTS)
    models = {(m["provider"], m["model"]): m for m in config["models"]}
    own = models.get(name[:2], {})
    kept = {key: config.get(key, GAME_DEFAULTS.get(key)) for key in names}
    return [kept[key] if own.get(key) is None else own[key] for key in names]


def _scores_by_prompt(document: Mapping[str, Any], name: RowKey) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for trial in document["results"]:
        named = (trial["provider"], trial["model"], trial["ariadne_group"])
        if (*named, trial.get("plant_as", "")) == name and trial["hallumaze_score"] is not None:
            found.setdefault(trial["prompt_sha256"], []).append(trial["hallumaze_score"])
    return {prompt: math.fsum(scores) / len(scores) for prompt, scores in found.items()}


# -- comparisons ----------------------------------------------------------------------------------

# What is compared, and what shapes a trial beside its maze, by its name in a result file's config.
COMPARED = (
    "hallumaze_score",
    "mei",
    "sr",
    "ce",
    "brs",
    "hallucination_count",
    "recognition_f1",
    "wrong_turn_recovery",
    "recovery_cost",
    "ece",
    "auroc2",
    "brs_lure",
    "progress",
    "looped",
    "plant_recognised",
)
CONDITIONS = (
    "mirage",
    "use_confidence",
    "lang",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "protocol",
    "view",
    "memory",
    "step_budget",
    "hint_at",
    "most_hints",
    "plant",
    "world",
    "difficulty",
    "max_links",
)
# What files say that were written before there were games.
_SINCE_GAMES = CONDITIONS[CONDITIONS.index("protocol") :]  # which older files do not hold
GAME_DEFAULTS = {f.name: f.default for f in fields(MazeConfig) if f.name in _SINCE_GAMES}
FEWEST_RANKS = 10  # pairs for Wilcoxon's test; fewer are permuted


@dataclass(frozen=True, slots=True)
class Sample:
    """A model's numbers under one condition.

    source: the file. condition: the group, the settings of CONDITIONS, the size of the mazes, the
    date. values: for each of AVERAGED a mean over the repeats, by maze; a group mean of people has
    only `means`. repeats: MEI and NRS by maze and repeat. places: by maze how often a
    hallucination stood on each cell, per trial.
    """

    source: str
    provider: str
    model: str
    condition: Mapping[str, Any]
    values: Mapping[str, Mapping[MazeKey, float]]
    means: Mapping[str, float | None]
    repeats: Mapping[str, Repeats]
    places: Mapping[MazeKey, Mapping[tuple[int, ...], float]]
    ignore_rate: float | None
    n: int
    n_error: int

    @property
    def name(self) -> str:
        """PROVIDER/MODEL."""
        return f"{self.provider}/{self.model}"


def samples(
    source: str, config: Mapping[str, Any], date: str, results: Iterable[BenchmarkResult]
) -> list[Sample]:
    """The samples of a result file, one for each model, group and size of maze, in its order.

    config, date: the file's. Trials that ended as errors are in no value.
    """
    models = {(m["provider"], m["model"]): m for m in config.get("models", ())}
    found: dict[tuple[str, str, str, str, int | None], list[BenchmarkResult]] = {}
    for result in results:
        named = (result.provider, result.model, result.ariadne_group)
        size = result.maze_size if result.world == "maze" else None  # of walks it is no condition
        key = (*named, result.plant_as, size)
        found.setdefault(key, []).append(result)
    made = []
    for (provider, model, group, form, size), trials in found.items():
        own = models.get((provider, model), {})
        used = {k: config.get(k, GAME_DEFAULTS.get(k)) for k in CONDITIONS}
        used |= {k: own[k] for k in CONDITIONS if own.get(k) is not None}
        condition: dict[str, Any] = {"group": group, "size": size, "plant_as": form}
        if provider != "human":  # what a server is asked is no condition of theirs
            condition |= {**used, "date": date[:10]}
        made.append(_make_sample(source, provider, model, condition, trials))
    return made


def _make_sample(
    source: str,
    provider: str,
    model: str,
    condition: Mapping[str, Any],
    trials: Sequence[BenchmarkResult],
) -> Sample:
    tally = _Tally()
    for trial in trials:
        tally.add(trial)
    means = {name: tally.by_maze(name) for name in AVERAGED}
    # The mean of a group of people is that of no maze (v1.1 section 9.4).
    single = all(trial.maze_seed is not None for trial in trials)
    values = {
        name: {maze: x for maze, x in by_maze.items() if x is not None} if single else {}
        for name, by_maze in means.items()
    }
    return Sample(
        source,
        provider,
        model,
        condition,
        values,
        {name: mean(by_maze.values()) for name, by_maze in means.items()},
        {name: tally.repeats(name) for name in ("mei", "nrs")},
        _error_places(trials) if single else {},
        mean(tally.ignored),
        tally.outcomes.total() - tally.outcomes[ERROR],
        tally.outcomes[ERROR],
    )


def _error_places(
    trials: Iterable[BenchmarkResult],
) -> dict[MazeKey, dict[tuple[int, ...], float]]:
    """By maze: how often a hallucination stood on each cell, per trial; only cells with one."""
    counts: dict[MazeKey, Counter[tuple[int, ...]]] = {}
    played: Counter[MazeKey] = Counter()
    for trial in trials:
        if trial.outcome != ERROR and trial.steps:
            key = maze_key(trial)
            played[key] += 1
            counts.setdefault(key, Counter()).update(
                tuple(step["cell"])
                for step in trial.steps
                if step["verdict"] not in (OK, None) and step["cell"]
            )
    return {
        key: {cell: count / played[key] for cell, count in by_cell.items()}
        for key, by_cell in counts.items()
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What b has more of one metric than a: its mean over mazes minus a's.

    paired: maze by maze. n: pairs, or the mazes of a and b together. interval: 95 %, bootstrap.
    test: its name, "" where there are fewer than FEWEST_PAIRS; p: two-sided; p_holm: corrected over
    all comparisons shown. effect: the rank-biserial correlation, -1..1. only_a, only_b: mazes that
    have no partner, or no value there.
    """

    a: str
    b: str
    metric: str
    paired: bool
    n: int
    difference: float | None
    interval: tuple[float, float] | None
    test: str
    p: float | None
    effect: float | None
    only_a: int
    only_b: int
    p_holm: float | None = None


def compare_values(
    a: str,
    b: str,
    metric: str,
    before: Mapping[Any, float],
    after: Mapping[Any, float],
    paired: bool = True,
    interval: tuple[float, float] | None = None,
) -> Comparison:
    """Compare the values of a metric by maze: over common mazes, or, unpaired, over all of them.

    interval: of the paired difference, where it is known already.
    """
    differences = _changes(before, after) if paired else {}
    only = len(before) - len(differences), len(after) - len(differences)
    if paired:
        found = _paired(list(differences.values()), interval)
    else:
        found = _unpaired(list(before.values()), list(after.values()))
    n = len(differences) if paired else sum(only)
    return Comparison(a, b, metric, paired, n, *found, *only)


def _changes(before: Mapping[Any, float], after: Mapping[Any, float]) -> dict[Any, float]:
    """after - before for each maze of both, without the noise of floating point."""
    return {maze: round(after[maze] - value, 9) for maze, value in before.items() if maze in after}


Values = Mapping[str, Mapping[Any, float]]  # by metric and maze


def _mazes_of(values: Values) -> set[Any]:
    return {maze for by_maze in values.values() for maze in by_maze}


def compare_all(pairs: Iterable[tuple[str, str, Values, Values]]) -> list[Comparison]:
    """Compare pairs of samples, (a, b, values of a, values of b), in each of COMPARED: paired,
    unless they have no maze in common; p corrected over all of them."""
    drafts = [
        (a, b, metric, before[metric], after[metric], paired)
        for a, b, before, after in pairs
        for paired in [not _mazes_of(before).isdisjoint(_mazes_of(after))]
        for metric in COMPARED
    ]
    columns = [_changes(draft[3], draft[4]) if draft[5] else {} for draft in drafts]
    intervals = intervals_by_mazes(columns)
    found = [compare_values(*d, interval) for d, interval in zip(drafts, intervals, strict=True)]
    return _corrected([c for c in found if c.difference is not None])


def intervals_by_mazes(
    columns: Sequence[Mapping[Any, float]],
) -> list[tuple[float, float] | None]:
    """The `bootstrap_interval` of each column, None for one of fewer than FEWEST_PAIRS mazes; those
    over the same mazes share a draw."""
    found: list[tuple[float, float] | None] = [None] * len(columns)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k, column in enumerate(columns):
        if len(column) >= FEWEST_PAIRS:
            groups.setdefault(tuple(column), []).append(k)
    for mine in groups.values():
        intervals = bootstrap_intervals([list(columns[k].values()) for k in mine])
        for k, interval in zip(mine, intervals, strict=True):
            found[k] = interval
    return found


_Found = tuple["float | None", "tuple[float, float] | None", str, "float | None", "float | None"]


def _paired(differences: Sequence[float], interval: tuple[float, float] | None = None) -> _Found:
    """(mean, interval, test, p, effect) of paired differences.

    Wilcoxon's signed-rank test, the exact permutation of signs with fewer than FEWEST_RANKS pairs;
    effect: (W+ - W-)/(W+ + W-), the matched-pairs rank-biserial correlation.
    """
    difference = mean(differences)
    if len(differences) < FEWEST_PAIRS:
        return difference, None, "", None, None
    interval = interval or bootstrap_interval(differences)
    if not any(differences):
        return difference, interval, "wilcoxon", 1.0, 0.0
    import numpy as np
    from scipy import stats

    values = np.asarray(differences)
    if len(values) < FEWEST_RANKS:
        test = "permutation"
        p = stats.permutation_test(
            (values, np.zeros_like(values)),
            lambda x, y, axis: np.mean(x - y, axis=axis).round(12),  # else ties differ
            permutation_type="samples",
            n_resamples=10**9,  # more than there are: all of them
            vectorized=True,
        ).pvalue
    else:
        # With ties scipy would try every sign, one at a time.
        ties = len({abs(d) for d in differences} | {0.0}) <= len(differences)
        ranked_test = stats.wilcoxon(values, method="approx" if ties else "auto")
        test, p = "wilcoxon", ranked_test.pvalue
    changed = values[values != 0]
    ranked = stats.rankdata(abs(changed))
    effect = float(ranked[changed > 0].sum() - ranked[changed < 0].sum()) / float(ranked.sum())
    return difference, interval, test, float(p), effect


def _unpaired(before: Sequence[float], after: Sequence[float]) -> _Found:
    """The same of two sets of mazes: the Mann-Whitney test; effect: 2U/(n m) - 1."""
    if not before or not after:
        return None, None, "", None, None
    difference = math.fsum(after) / len(after) - math.fsum(before) / len(before)
    if min(len(before), len(after)) < FEWEST_PAIRS:
        return difference, None, "", None, None
    import numpy as np
    from scipy import stats

    interval = stats.bootstrap(
        (after, before),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        n_resamples=RESAMPLES,
        method="percentile",
        batch=max(1, 10**6 // (len(before) + len(after))),  # bounds the memory
        random_state=np.random.RandomState(0),  # whose stream never changes
    ).confidence_interval
    found = stats.mannwhitneyu(after, before)
    effect = 2 * float(found.statistic) / (len(before) * len(after)) - 1
    bounds = float(interval.low), float(interval.high)
    return difference, bounds, "mann-whitney", float(found.pvalue), effect


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values corrected for their number (Holm 1979), in their order."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    corrected, most = [0.0] * len(ps), 0.0
    for rank_, k in enumerate(order):
        most = max(most, min(1.0, ps[k] * (len(ps) - rank_)))
        corrected[k] = most
    return corrected


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    known = [c.p for c in comparisons if c.p is not None]
    by_p = iter(holm(known))
    return [c if c.p is None else replace(c, p_holm=next(by_p)) for c in comparisons]


def differing(a: Sample, b: Sample) -> list[str]:
    """The names of what differs between the conditions of two samples, where both have them."""
    return [name for name, value in a.condition.items() if b.condition.get(name, value) != value]


def compare_conditions(found: Sequence[Sample]) -> list[Comparison]:
    """Each model's first sample with its others, metric by metric.

    With and without hints the difference is that without minus that with them (v1.1 section 9.1),
    whatever the order.
    """
    pairs = []
    for name in dict.fromkeys(sample.name for sample in found):
        first, *others = [sample for sample in found if sample.name == name]
        for other in others:
            a, b = (other, first) if _is_bare(first, other) else (first, other)
            before, after = (f"{name} {condition_text(x, differing(a, b))}" for x in (a, b))
            pairs.append((before, after, a.values, b.values))
    return compare_all(pairs)


def _is_bare(a: Sample, b: Sample) -> bool:
    return bool(a.condition.get("mirage") == "off" != b.condition.get("mirage"))


def condition_text(sample: Sample, names: Iterable[str]) -> str:
    """What tells a sample from another: some of its settings, or its file."""
    known = [name for name in names if name != "date" and name in sample.condition]
    told = [f"{name}={sample.condition[name]}" for name in known]
    return ", ".join(told) or sample.source


def compare_models(found: Sequence[Sample]) -> list[Comparison]:
    """Each two models, metric by metric, over the mazes that both played under one condition."""
    by_name: dict[str, list[Sample]] = {}
    for sample in found:
        by_name.setdefault(sample.name, []).append(sample)
    pairs = []
    for a, b in combinations(by_name, 2):
        people = "human" in (by_name[a][0].provider, by_name[b][0].provider)
        shape = ("group", "plant_as") if people else ("group", "plant_as", *CONDITIONS)
        before: dict[str, Mapping[Any, float]] = {}
        after: dict[str, Mapping[Any, float]] = {}
        for metric in COMPARED:
            mine, theirs = (_by_condition(by_name[name], metric, shape) for name in (a, b))
            before[metric] = _over_conditions(mine, theirs)
            after[metric] = _over_conditions(theirs, mine)
        pairs.append((a, b, before, after))
    return compare_all(pairs)


def _over_conditions(
    mine: Mapping[tuple[Any, ...], float], theirs: Mapping[tuple[Any, ...], float]
) -> dict[Any, float]:
    """By maze the mean over the conditions under which both played it, since the unit is the maze;
    what only one has played stays by maze and condition, with nothing to pair it with."""
    common: dict[Any, list[float]] = {}
    for key, value in mine.items():
        if key in theirs:
            common.setdefault(key[0], []).append(value)
    alone = {key: value for key, value in mine.items() if key not in theirs}
    return {**{maze: math.fsum(v) / len(v) for maze, v in common.items()}, **alone}


def _by_condition(
    mine: Iterable[Sample], metric: str, shape: Sequence[str]
) -> dict[tuple[Any, ...], float]:
    """The values of a metric by maze and condition; of several files the mean."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for sample in mine:
        settings = tuple(str(sample.condition[name]) for name in shape)
        for maze, value in sample.values[metric].items():
            found.setdefault((maze, settings), []).append(value)
    return {key: math.fsum(values) / len(values) for key, values in found.items()}


def group_effects(found: Sequence[Sample]) -> list[dict[str, Any]]:
    """What hints did to each model in groups B and C (v1.1 section 9.3): nrs, ti, ignore_rate.

    ti: over the mazes and repeats that group A has too; None without them.
    """
    rows = []
    for sample in found:
        if sample.condition["group"] == "A":
            continue
        plain = next(
            (a for a in found if a.name == sample.name and differing(a, sample) in _ONLY_GROUP),
            None,
        )
        ti = _ti(plain.repeats, sample.repeats) if plain else None
        rows.append(
            {
                "model": sample.name,
                "group": sample.condition["group"],
                "nrs": sample.means["nrs"],
                "ti": ti,
                "ignore_rate": sample.ignore_rate,
            }
        )
    return rows


_ONLY_GROUP = (["group"], ["group", "date"])


def error_correlation(a: Sample, b: Sample) -> tuple[float | None, int]:
    """(Pearson's correlation of how often a hallucination stands on each cell, cells), over the
    mazes of which both have steps; None when one of them errs nowhere (v1.1 section 9.4, H3)."""
    rates: list[tuple[float, float]] = []
    for maze in a.places.keys() & b.places.keys():
        mine, theirs = a.places[maze], b.places[maze]
        cells = (
            {(r, c) for r in range(maze[0]) for c in range(maze[0])} | mine.keys() | theirs.keys()
        )
        rates += [(mine.get(cell, 0.0), theirs.get(cell, 0.0)) for cell in cells]
    if len({x for x, _ in rates}) < 2 or len({y for _, y in rates}) < 2:
        return None, len(rates)
    from scipy import stats

    ones, others = zip(*sorted(rates), strict=True)
    return float(stats.pearsonr(ones, others).statistic), len(rates)


def mazes_needed(differences: Sequence[float], effect: float) -> int:
    """How many mazes a paired comparison needs to find a difference of `effect` in 80 of 100 cases.

    differences: of a pilot, maze by maze; their spread is what counts. By the power of the paired
    t-test at 5 %, two-sided, over the efficiency of Wilcoxon's test beside it, 3/π.
    """
    from scipy import stats

    values = [round(difference, 9) for difference in differences]
    spread = stats.tstd(values) if len(set(values)) > 1 else 0.0
    n = 2
    while spread and n < 10**7:
        edge = stats.t.ppf(0.975, n - 1)
        power = stats.nct.sf(edge, n - 1, effect / spread * math.sqrt(n))
        if power >= 0.8:
            break
        n += 1 + n // 200
    return max(FEWEST_PAIRS, math.ceil(n * math.pi / 3))


# -- ablation -------------------------------------------------------------------------------------

MEI_WEIGHTS = (0.4, 0.3, 0.2, -0.1)  # of HRR, early, esc and min(1, HC/10) (v1.1 section 6)
GRID = (0.5, 0.75, 1.0, 1.25, 1.5)  # times each of them: 625 points


def ablation(results: Iterable[BenchmarkResult]) -> dict[str, Any]:
    """What each term of MEI and Score is good for (v1.1 section 14).

    models: by name and group MEI and Score as they are and without a term. grid: over all 625 sets
    of weights the mean and the least of Kendall's tau with the ranking by v1.1's, and the share
    with the same order. discriminability: of each of COMPARED eta², the share of the variance over
    mazes that lies between models, 0..1. without_terms: how many records hold no terms of MEI and
    are left out, such as the mean of a group of people.
    """
    import numpy as np

    parts: dict[tuple[str, str, str], dict[MazeKey, list[list[float]]]] = {}
    tallies: dict[tuple[str, str, str], _Tally] = {}
    left_out = 0
    for r in results:
        if r.outcome == ERROR:
            continue
        if None in (r.hrr, r.early, r.esc, r.hallucination_count):
            left_out += 1
            continue
        key = (r.provider, r.model, f"{r.ariadne_group} {r.plant_as}".strip())
        terms = (r.hrr, r.early, r.esc, min(1, (r.hallucination_count or 0) / 10))
        row = [float(x or 0.0) * (r.readable is not False) for x in terms]
        row += [0.5 if r.ce is None else r.ce, r.brs or 0.0, float(r.readable is not False)]
        parts.setdefault(key, {}).setdefault(maze_key(r), []).append(row)
        tallies.setdefault(key, _Tally()).add(r)
    weights = np.array(list(product(*([w * f for f in GRID] for w in MEI_WEIGHTS))))
    mei = {
        key: np.mean(
            [
                np.mean(np.clip(np.array(t)[:, :4] @ weights.T, 0, 1), axis=0)
                for t in mazes.values()
            ],
            axis=0,
        )
        for key, mazes in parts.items()
    }
    return {
        "models": [_without_terms(key, mazes) for key, mazes in parts.items()],
        "grid": _rank_stability(np.array(list(mei.values()))),
        "discriminability": {
            name: eta_squared([list(tally.by_maze(name).values()) for tally in tallies.values()])
            for name in COMPARED
        },
        "without_terms": left_out,
    }


def _without_terms(
    key: tuple[str, str, str], mazes: Mapping[MazeKey, Sequence[Sequence[float]]]
) -> dict[str, Any]:
    """A model's MEI and Score, whole and without each of their terms."""

    def over(work: Callable[[Sequence[float]], float]) -> float | None:
        return mean(mean(work(row) for row in rows) for rows in mazes.values())

    def mei(row: Sequence[float], left_out: int | None = None) -> float:
        terms = zip(MEI_WEIGHTS, row, range(4), strict=False)
        return min(1.0, max(0.0, math.fsum(w * x for w, x, k in terms if k != left_out)))

    def score(row: Sequence[float], use_ce: bool = True) -> float:
        calibrated = 0.3 * (1 - row[4]) if use_ce else 0.0
        return row[6] * (0.5 * mei(row) + calibrated + 0.2 * row[5])

    return {
        "model": f"{key[0]}/{key[1]}",
        "group": key[2],
        "mei": over(mei),
        **{f"mei_without_{name}": over(partial(mei, left_out=k)) for k, name in _MEI_TERMS},
        "score": over(score),
        "score_without_ce": over(partial(score, use_ce=False)),
    }


_MEI_TERMS = tuple(enumerate(("hrr", "early", "esc", "penalty")))


def _rank_stability(mei: Any) -> dict[str, Any]:
    """How the order of the models by MEI holds over the grid. mei: models x points."""
    if len(mei) < 2:
        return {"points": len(GRID) ** 4, "tau_mean": None, "tau_min": None, "same_order": None}
    from scipy import stats

    as_it_is = mei[:, len(GRID) ** 4 // 2].round(6)
    taus, same = [], 0
    for column in mei.T.round(6):
        tau = stats.kendalltau(as_it_is, column).statistic
        taus.append(None if math.isnan(tau) else float(tau))
        same += bool((stats.rankdata(column) == stats.rankdata(as_it_is)).all())
    known = [tau for tau in taus if tau is not None]
    return {
        "points": len(taus),
        "tau_mean": mean(taus),
        "tau_min": min(known, default=None),
        "same_order": same / len(taus),
    }


def eta_squared(groups: Sequence[Sequence[float | None]]) -> float | None:
    """The share of the variance of values that lies between groups, 0..1; None without any."""
    known = [[x for x in group if x is not None] for group in groups]
    values = [x for group in known for x in group]
    grand = mean(values)
    if grand is None or sum(map(bool, known)) < 2:
        return None
    total = math.fsum((x - grand) ** 2 for x in values)
    between = math.fsum(len(g) * (math.fsum(g) / len(g) - grand) ** 2 for g in known if g)
    return between / total if total > 1e-15 else None


def spark_line(values: Iterable[float | None]) -> str:
    """A bar for each value, ▁ for 0 to █ for 1; a dot for None."""
    bars = "▁▂▃▄▅▆▇█"
    return "".join(
        "·" if value is None else bars[min(7, max(0, int(8 * value)))] for value in values
    )


# =================================================================================================
# 10  Output
# =================================================================================================

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# Bands of v1.1 section 6, and the symbol of each.
_MEI_BANDS = ((0.7, "●"), (0.4, "◑"), (0.0, "○"))


def printable(text: object) -> str:
    """Text from outside as one line that cannot steer a terminal."""
    return _CONTROL.sub(" ", str(text))


def mei_symbol(mei: float) -> str:
    """● high (>= 0.7), ◑ partial (>= 0.4), ○ deficient (v1.1 section 6)."""
    return next(symbol for least, symbol in _MEI_BANDS if round(mei, 6) >= least)


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def put_line(text: str, stream: TextIO, end: str = "\n") -> None:
    """Print a line at once. A stream that nobody reads any more, or whose disk is full, is muted: a
    run goes on without its words."""
    try:
        print(text, file=stream, end=end, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Console:
    """What a run says, as plain lines; `RichConsole` says the same on a terminal.

    lang: "ko" or "en". quiet: only warnings and errors (on stderr) are left.
    """

    def __init__(self, lang: str, quiet: bool = False) -> None:
        self.lang = lang
        self.words = _CONSOLE[lang]
        self.quiet = quiet

    def say(self, key: str, **values: object) -> str:
        """The sentence of that name in the language of the console."""
        return self.words[key].format(**{k: printable(v) for k, v in values.items()})

    def line(self, text: str = "") -> None:
        """One line on stdout."""
        if not self.quiet:
            put_line(text, sys.stdout)

    def note(self, text: str) -> None:
        """One line on stderr that is no warning."""
        if not self.quiet:
            put_line(text, sys.stderr)

    def warn(self, text: str) -> None:
        """One line on stderr, even when quiet."""
        put_line(text, sys.stderr)

    def log(self, text: str) -> None:
        """A line on stdout that says when it was written."""
        self.line(self._stamped(text))

    def alarm(self, text: str) -> None:
        """The same on stderr, even when quiet."""
        self.warn(self._stamped(text))

    def _stamped(self, text: str) -> str:
        return f"{utc_now()} {text.strip()}"

    def begin(self, trials: int) -> None:
        """The run starts."""

    def end(self) -> None:
        """The run is over, or was interrupted."""

    def maze_panel(self, worlds: Worlds, config: MazeConfig) -> None:
        """The maze, or the first of several: what v1.1 shows of it."""
        for line in self._panel_lines(worlds, config):
            self.line(line)
        self.line()

    def _panel_lines(self, worlds: Worlds, config: MazeConfig) -> list[str]:
        words, facts = _WORLD_WORDS[self.lang][config.world], worlds[0].describe(config.hints)
        lines = [words["made"], words["facts"].format(**facts)]
        if len(worlds) > 1:
            lines.append(words["more"].format(count=len(worlds)))
        return [printable(line) for line in lines]

    def start_model(self, name: str, trials: int) -> None:
        """A model's trials begin."""
        self.log(self.say("running", model=name, trials=trials))

    def trial(self, result: BenchmarkResult) -> None:
        """A trial is over: its numbers, and the signals that the answer gave, in one line."""
        self._warn_of_error(result)
        self.log(" | ".join(line.strip() for line in self._trial_lines(result)))

    def _warn_of_error(self, result: BenchmarkResult) -> None:
        """A quiet run still says which trials failed."""
        if self.quiet and result.outcome == ERROR:
            self.alarm(self._trial_lines(result)[0])

    def _trial_lines(self, r: BenchmarkResult) -> list[str]:
        """The line of a trial, and those under it."""
        name = f"{r.provider}/{r.model}"
        facts = {"seed": r.maze_seed, "source": r.source, "target": r.target}
        which = printable(f"{name} {_WORLD_WORDS[self.lang][r.world]['which'].format(**facts)}")
        if r.run > 1:
            which += self.say("which_run", run=r.run)
        which += _condition_mark(r.ariadne_group, r.plant_as)
        if r.outcome == ERROR:
            why = (r.error or "").removeprefix(f"{name}: ")
            return [self.say("trial_error", which=which, error=why)]
        if r.probe_linked is not None:
            right = "✓" if r.probe_said == r.probe_linked else "✗"
            said = {True: "yes", False: "no", None: self.words[UNREADABLE]}[r.probe_said]
            return [f"  {right} {which} {said} | {_number(r.latency_s, 1)}s"]
        mark = "✓" if r.sr else "✗"
        mei = r.mei or 0.0
        line = (
            f"  {mark} {which} | SR={_number(r.sr, 2)} | MEI={_number(mei)}{mei_symbol(mei)}"
            f" | CE={_number(r.ce)} | BRS={_number(r.brs)}"
            f" | Hall={r.hallucination_count} BT={r.backtrack_count}"
            f" | Score={_number(r.hallumaze_score)} | {_number(r.latency_s, 1)}s"
        )
        if (judged := judges_text(r.judges)) and r.judges[0]["disagree"]:
            line += f" | {judged}"
        if r.outcome != ANSWERED:
            line += f" | {self.words[r.outcome]}"
        signals = ", ".join(r.metacog_signals) or self.words["no_signals"]
        lines = [line, self.say("signals", signals=signals)]
        if r.nudge_sent:
            lines.append(self.say("nudged", nrs=_number(r.nrs)))
        return lines

    def tables(
        self,
        rows: Sequence[Mapping[str, Any]],
        people: Sequence[Mapping[str, Any]] = (),
        scale: Mapping[str, float] | None = None,
    ) -> None:
        """The ranking, people and reference agents under it; what the models know of their errors;
        tokens and cost.

        scale: the scores of two reference agents on these mazes, 0 and 1 of a column.
        """
        shown = [*rows, *people]
        self.table(self.words["table_title"], *self._ranking(shown, scale), 2)
        for note in self._ranking_notes(shown, scale):
            self.line(f"  {note}")
        self._best(rows)
        if any(row["recognition_f1"] is not None for row in shown):
            self.table(self.words["measures_title"], *self._measures(shown), 1)
        lures = [row["pooled"] for row in rows if row["trap_capture_rate"] is not None]
        if lures and all(pooled["lure_effect"] is None for pooled in lures):
            self.line(f"  {self.words['no_lure']}")
        if any(row["probe"] for row in rows):
            self.table(self.words["probe_title"], *self._probe(rows), 1)
        for name in ("games", "walks", "plants"):
            columns, lines = self._extra(name, shown)
            if lines:
                self.table(self.words[f"{name}_title"], columns, lines, 1)
        spent = [row for row in rows if row["provider"] not in CALLS_NOBODY]
        if spent:
            self.table(self.words["spent_title"], *self._spending(spent), 1)
        for row in spent:
            if row["n_unpriced"]:
                self.line(self.say("unpriced", model=model_name(row), count=row["n_unpriced"]))

    def _ranking_notes(
        self, rows: Sequence[Mapping[str, Any]], scale: Mapping[str, float] | None
    ) -> Iterator[str]:
        """How far the ranking is to be trusted, and what else is known of the models."""
        models = [row for row in rows if row["n"] and row["provider"] != "human"]
        fewest = min((row["n_mazes"] for row in models), default=0)
        if 0 < fewest < FEWEST_PAIRS:
            yield self.words["few_pairs"]
        elif 0 < fewest < FEW_MAZES:
            yield self.words["few_mazes"]
        if scale:
            low, high = (f"{name} ({score:.3f})" for name, score in scale.items())
            yield self.say("scale", low=low, high=high)
        for row in rows:
            if row["ti"] is not None:
                band = _ti_band(row["ti"], self.words)
                yield self.say("ti", model=model_name(row), ti=_number(row["ti"]), band=band)
            if found := row["reliability"].get("hallumaze_score"):
                numbers = {"icc": _number(found["icc"]), "sem": _number(found["sem"])}
                yield self.say("reliable", model=model_name(row), runs=found["runs"], **numbers)

    def _extra(
        self, name: str, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[list[str], list[list[str]]]:
        """The columns and rows of games, or of planted errors; no rows without any."""
        numbers = {
            "games": (
                *("moves_used", "path_efficiency", "progress", "looped", "sr_if_looped"),
                *("most_visits", "recognition_delay"),
            ),
            "walks": ("suboptimal_steps", "replanned", "hub_seeking"),
            "plants": ("plant_recognised", "plant_steps", "blind_spot"),
        }[name]
        lines = []
        for row in rows:
            if row["plant_recognised" if name == "plants" else "moves_used"] is None:
                continue
            line = [model_name(row), *(_number(row[number], 2) for number in numbers)]
            if name == "plants":
                line += [str(row["plant_responses"].get(response, 0)) for response in RESPONSES]
            if name == "walks":
                line += self._by_move(row)
            lines.append(line)
        return self.words[f"{name}_columns"].split("|"), lines

    def _probe(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
        """What the models know of the links, beside how often they find the way."""
        lines = []
        for row in rows:
            if probe := row["probe"]:
                numbers = [_number(probe[name], 2) for name in ("precision", "recall")]
                f1 = with_interval(probe["f1"], probe["f1_ci"])
                gap = None if None in (row["sr"], probe["f1"]) else probe["f1"] - row["sr"]
                found = [_number(row["sr"], 2), _number(gap, 2)]
                lines.append([model_name(row), str(probe["n"]), *numbers, f1, *found])
        return self.words["probe_columns"].split("|"), lines

    def _by_move(self, row: Mapping[str, Any]) -> list[str]:
        """Where the legal moves led, as shares, and what a move took."""
        grades = row["pooled"]["grades"]
        legal = sum(grades.get(name, 0) for name in ("closer", "same", "farther"))
        shares = [_share(grades.get(name, 0), legal) for name in ("closer", "same", "farther")]
        tokens, cost = row["tokens_per_move"], row["cost_per_move"]
        if row["provider"] in CALLS_NOBODY:
            tokens = cost = None
        spent = ("–" if tokens is None else f"{tokens:,.0f}", _usd(cost))
        return [*(_number(share, 2) for share in shares), *spent]

    def _measures(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
        """The columns and rows of what v1.1 does not see."""
        names = ("recognition_precision", "recognition_recall", "recovery_cost", "ece", "auroc2")
        lines = []
        for row in rows:
            f1 = with_interval(row["recognition_f1"], row["ci"].get("recognition_f1"))
            numbers = [_number(row[name], 2) for name in names]
            numbers.append(_number(row["pooled"].get("lure_effect"), 2))
            most = max(row["failure_modes"].items(), key=lambda m: m[1], default=("–", 0))[0]
            lines.append([model_name(row), f1, *numbers, most])
        return str(self.words["measures_columns"]).split("|"), lines

    def table(
        self, title: str, columns: Sequence[str], lines: Sequence[Sequence[str]], left: int
    ) -> None:
        """A table; its first `left` columns hold text, the others numbers."""
        widths = [max(_width(line[k]) for line in [columns, *lines]) for k in range(len(columns))]
        self.line()
        self.line(title)
        for cells in [columns, *lines]:
            text = "  ".join(_pad(cell, width) for cell, width in zip(cells, widths, strict=True))
            self.line("  " + text.rstrip())

    def _spending(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
        """The columns of the table of tokens and cost, and its rows, as text."""
        total = [("*", total_spending(rows))] if len(rows) > 1 else []
        named = [(model_name(row), row) for row in rows]
        lines = [
            [name, *(_count_text(row["usage"][key]) for key in USAGE_KEYS), _usd(row["cost_usd"])]
            for name, row in [*named, *total]
        ]
        return str(self.words["spent_columns"]).split("|"), lines

    def _ranking(
        self, rows: Sequence[Mapping[str, Any]], scale: Mapping[str, float] | None
    ) -> tuple[list[str], list[list[str]]]:
        """The titles of the ranking's columns, and its rows, as text."""
        titles = str(self.words["table_columns"]).split("|")
        medals = {1: "🥇", 2: "🥈", 3: "🥉"}
        placed = [(medals.get(place, str(place)), row) for place, row in rank(rows)]
        placed += [("–", row) for row in rows if row["hallumaze_score"] is None]
        placed += [
            ("·", row) for row in rows if row["rank"] is None and row["hallumaze_score"] is not None
        ]
        lines = []
        for place, row in placed:
            numbers = [_number(row["sr"], 2), *(_number(row[key]) for key in ("mei", "ce", "brs"))]
            score = with_interval(row["hallumaze_score"], row["ci"].get("hallumaze_score"))
            cells = [*numbers, _number(row["hallucination_count"], 1), score]
            if scale:
                cells.append(_number(centred(row["hallumaze_score"], scale), 2))
            lines.append([place, model_name(row), *cells, str(row["n"]), str(row["n_error"])])
        if scale:
            titles.insert(-2, "0–1")
        return titles, lines

    def _best(self, rows: Sequence[Mapping[str, Any]]) -> None:
        best = [row for place, row in rank(rows) if place == 1]
        for row in best:
            score, mei = _number(row["hallumaze_score"]), _number(row["mei"])
            name = f"{row['provider']}/{row['model']}"
            self.line(self.say("best", model=name, score=score, mei=mei))

    def history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Past runs, oldest first, a row for each model; then each model's scores as bars."""
        models: dict[str, list[float | None]] = {}
        lines = []
        for row in rows:
            name = printable(f"{row['provider']}/{row['model']} {row['ariadne_group']}")
            models.setdefault(name, []).append(row["hallumaze_score"])
            numbers = [_number(row[key]) for key in ("hallumaze_score", "mei")]
            spent = [_number(row["sr"], 2), _usd(row.get("cost_usd")), str(row["n_error"])]
            date = printable(row["timestamp"])[:16].replace("T", " ")
            lines.append([date, name, str(row["n"]), *numbers, *spent])
        self.table(self.words["history_title"], self.words["history_columns"].split("|"), lines, 2)
        for name, scores in models.items():
            self.line(f"  {spark_line(scores)}  {name}")

    def saved(self, kind: str, path: Path) -> None:
        """A file was written."""
        self.log(self.say("saved", kind=kind, path=path))


def judges_text(judges: Sequence[Mapping[str, Any]]) -> str:
    """The scores of the two judges, as the console shows them where they disagree."""
    return " ≠ ".join(f"{run['judge'][:1]} {run['score']:.0f}" for run in judges)


def model_name(row: Mapping[str, Any]) -> str:
    """PROVIDER/MODEL, and its group if it is not A, fit for a terminal."""
    mark = _condition_mark(row["ariadne_group"], row.get("plant_as", ""))
    return printable(f"{row['provider']}/{row['model']}{mark}")


def _condition_mark(group: str, form: str) -> str:
    """What tells the rows of a model apart: a group that is not A, the form of a planted error."""
    return "".join(f" {mark}" for mark in (group, form) if mark not in ("A", ""))


def _count_text(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _usd(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:,.4f}"


def _width(text: str) -> int:
    """The columns that a terminal needs for the text."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


class RichConsole(Console):
    """The same with colours, a panel, a table and a progress bar over the trials."""

    def __init__(self, lang: str, quiet: bool = False) -> None:
        super().__init__(lang, quiet)
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

        self.terminal = Terminal(highlight=False, emoji=False)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, console=self.terminal, transient=True)

    def line(self, text: str = "", style: str = "") -> None:
        """One line above the progress bar."""
        if not self.quiet:
            self.terminal.print(text, style=style, markup=False, soft_wrap=True)

    def _stamped(self, text: str) -> str:
        return text  # who sits at a terminal has a clock

    def begin(self, trials: int) -> None:
        """Show the progress bar."""
        if not self.quiet:
            self.progress.add_task("", total=trials)
            self.progress.start()

    def end(self) -> None:
        """Take the progress bar away."""
        self.progress.stop()

    def maze_panel(self, worlds: Worlds, config: MazeConfig) -> None:
        """The facts of the maze in a box."""
        from rich.panel import Panel
        from rich.text import Text

        if not self.quiet:
            text = Text("\n".join(self._panel_lines(worlds, config)))
            self.terminal.print(Panel(text, expand=False, border_style="cyan"))

    def trial(self, result: BenchmarkResult) -> None:
        """The lines of a trial, green for a way out."""
        self._warn_of_error(result)
        facts, *rest = self._trial_lines(result)
        style = "red" if result.outcome == ERROR else "green" if result.sr else "yellow"
        self.line(facts, style)
        for line in rest:
            self.line(line, "dim")
        for task in self.progress.task_ids:
            self.progress.advance(task)

    def table(
        self, title: str, columns: Sequence[str], lines: Sequence[Sequence[str]], left: int
    ) -> None:
        """The same with lines around it."""
        from rich.table import Table
        from rich.text import Text

        if self.quiet:
            return
        table = Table(title=Text(title), padding=(0, self.terminal.width >= 100))
        for k, name in enumerate(columns):
            if k >= left:
                table.add_column(Text(name), justify="right", no_wrap=True)
            else:
                table.add_column(Text(name), overflow="fold")
        for cells in lines:
            style = "dim" if cells[0] == "·" else ""
            table.add_row(*(Text(cell) for cell in cells), style=style)
        self.terminal.print(table)


# -- reports --------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A titled table of texts; its first `left` columns hold words, the others numbers."""

    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: int = 1


class Report(NamedTuple):
    """Tables, what is to be said of them, and the same for machines."""

    tables: Sequence[Table]
    notes: Sequence[str]
    data: Mapping[str, Any]


def with_interval(value: float | None, interval: Sequence[float] | None, sign: str = "") -> str:
    """A number with its 95 % interval: "0.612 [0.580, 0.644]"."""
    if value is None:
        return "–"
    text = f"{value:{sign}.3f}"
    return f"{text} [{interval[0]:{sign}.3f}, {interval[1]:{sign}.3f}]" if interval else text


def markdown(report: Report) -> str:
    """The report for a README or a web page; what models are called cannot break out of a cell."""
    parts = []
    for table in report.tables:
        rows = [table.columns, *table.lines]
        cells = [[_markdown_cell(cell) for cell in row] for row in rows]
        rule = ["---" if k < table.left else "---:" for k in range(len(table.columns))]
        lines = [f"| {' | '.join(row)} |" for row in [cells[0], rule, *cells[1:]]]
        parts.append("\n".join([f"**{_markdown_cell(table.title)}**", "", *lines]))
    notes = "\n".join(f"- {_markdown_cell(note)}" for note in report.notes)
    return "\n\n".join([*parts, *([notes] if notes else [])]) + "\n"


def _markdown_cell(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|#~!$])", r"\\\1", html.escape(text, quote=False))


def latex(report: Report) -> str:
    """The report for a paper: booktabs tables, notes as comments."""
    parts = []
    for table in report.tables:
        shape = "l" * table.left + "r" * (len(table.columns) - table.left)
        head, *rows = [
            " & ".join(map(_latex_cell, row)) + r" \\" for row in [table.columns, *table.lines]
        ]
        lines = [
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        parts.append("\n".join([f"% {_latex_cell(table.title)}", *lines]))
    notes = "\n".join(f"% {_latex_cell(note)}" for note in report.notes)
    return "\n\n".join([*parts, *([notes] if notes else [])]) + "\n"


_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "Δ": r"$\Delta$",
    "η": r"$\eta$",
    "²": r"$^2$",
    "★": "",
}


def _latex_cell(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


def comparison_report(
    found: Sequence[Sample], comparisons: Sequence[Comparison], words: Mapping[str, Any]
) -> Report:
    """What `compare` has to say."""
    tables = [_means_table(found, words)]
    if comparisons:
        tables.append(_comparisons_table(comparisons, words))
    effects = group_effects(found)
    if effects:
        lines = [
            [
                printable(row["model"]),
                row["group"],
                _number(row["nrs"]),
                _number(row["ti"]),
                _ti_band(row["ti"], words),
                _number(row["ignore_rate"]),
            ]
            for row in effects
        ]
        tables.append(Table(words["groups_title"], words["groups_columns"].split("|"), lines, 1))
    correlations = _human_correlations(found)
    if correlations:
        lines = [
            [printable(a), printable(b), _number(r), str(cells)] for a, b, r, cells in correlations
        ]
        tables.append(Table(words["h3_title"], words["h3_columns"].split("|"), lines, 2))
    data = {
        "samples": [_sample_entry(sample) for sample in found],
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "groups": effects,
        "error_correlations": [
            {"human": a, "model": b, "r": r, "cells": cells} for a, b, r, cells in correlations
        ],
    }
    return Report(tables, _comparison_notes(found, comparisons, words), data)


SHOWN = ("hallumaze_score", "mei", "sr", "recognition_f1")  # with their intervals, in this order


def _means_table(found: Sequence[Sample], words: Mapping[str, Any]) -> Table:
    told = [
        name for name in found[0].condition if any(name in differing(found[0], s) for s in found)
    ]
    lines = []
    for sample in found:
        intervals = intervals_by_mazes([sample.values[name] for name in SHOWN])
        cells = [
            with_interval(sample.means[name], interval)
            for name, interval in zip(SHOWN, intervals, strict=True)
        ]
        where = condition_text(sample, told)
        mazes = len(sample.values["hallumaze_score"])
        counts = [str(sample.n), str(mazes), str(sample.n_error)]
        lines.append([printable(sample.name), printable(where), *counts, *cells])
    return Table(words["means_title"], words["means_columns"].split("|"), lines, 2)


def _comparisons_table(comparisons: Sequence[Comparison], words: Mapping[str, Any]) -> Table:
    lines = []
    for c in comparisons:
        lines.append(
            [
                printable(f"{c.b} − {c.a}"),
                c.metric + ("" if c.paired else f" ({words['unpaired']})"),
                str(c.n),
                with_interval(c.difference, c.interval, "+"),
                c.test or words["too_few"],
                _p_text(c.p_holm),
                _number(c.effect, 2),
            ]
        )
    return Table(words["compare_title"], words["compare_columns"].split("|"), lines, 2)


def _p_text(p: float | None) -> str:
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _ti_band(ti: float | None, words: Mapping[str, Any]) -> str:
    """v1.1's words for a trainability: above 0.3 and below 0.1 (section 9.3)."""
    if ti is None:
        return "–"
    return str(words["ti_bands"].split("|")[0 if ti > 0.3 else 2 if ti < 0.1 else 1])


def _human_correlations(
    found: Sequence[Sample],
) -> list[tuple[str, str, float | None, int]]:
    people = [sample for sample in found if sample.provider == "human" and sample.places]
    models = [s for s in found if s.provider != "human" and s.condition["group"] == "A"]
    pairs = [(a, b, *error_correlation(a, b)) for a in people for b in models]
    return [(a.name, b.name, r, cells) for a, b, r, cells in pairs if cells]


def _sample_entry(sample: Sample) -> dict[str, Any]:
    return {
        "source": sample.source,
        "provider": sample.provider,
        "model": sample.model,
        "condition": dict(sample.condition),
        "n": sample.n,
        "n_error": sample.n_error,
        "n_mazes": len(sample.values["hallumaze_score"]),
        "means": dict(sample.means),
    }


def _comparison_notes(
    found: Sequence[Sample], comparisons: Sequence[Comparison], words: Mapping[str, Any]
) -> list[str]:
    """What differs between the samples, what was not paired and why, and how far to trust it."""
    notes = []
    told = dict.fromkeys(name for s in found for name in differing(found[0], s))
    if told:
        names = ", ".join(words[f"condition_{name}"] for name in told)
        notes.append(words["differs"].format(names=names))
    if "mirage" in told and any(s.condition.get("mirage") == "off" for s in found):
        notes += [
            words["language_bias"].format(
                b=printable(c.b),
                a=printable(c.a),
                difference=with_interval(c.difference, c.interval, "+"),
            )
            for c in comparisons
            if c.metric == "mei" and "mirage=off" in c.b
        ]
    seen = dict.fromkeys(
        (c.a, c.b, c.only_a, c.only_b, c.paired)
        for c in comparisons
        if c.metric == "hallumaze_score"
    )
    for a, b, only_a, only_b, paired in seen:
        say = "not_paired" if paired else "none_paired"
        if only_a or only_b:
            notes.append(
                words[say].format(a=printable(a), b=printable(b), only_a=only_a, only_b=only_b)
            )
    if errors := sum(sample.n_error for sample in found):
        notes.append(words["errors_left_out"].format(count=errors))
    if any(
        sample.n and not sample.values["hallumaze_score"] and sample.provider == "human"
        for sample in found
    ):
        notes.append(words["group_means"])
    if any(not c.test for c in comparisons):
        notes.append(words["few_pairs"])
    if any(FEWEST_PAIRS <= c.n < FEW_MAZES for c in comparisons):
        notes.append(words["few_mazes"])
    return notes


FEW_MAZES = 30  # fewer, and percentile intervals are too narrow


def ablation_report(found: Mapping[str, Any], words: Mapping[str, Any]) -> Report:
    """What `ablate` has to say."""
    keys = ("mei", *(f"mei_without_{name}" for _, name in _MEI_TERMS), "score", "score_without_ce")
    lines = [
        [printable(row["model"]), row["group"], *(_number(row[key]) for key in keys)]
        for row in found["models"]
    ]
    grid = found["grid"]
    stability = [
        [
            str(grid["points"]),
            *(_number(grid[key]) for key in ("tau_mean", "tau_min", "same_order")),
        ]
    ]
    spread = [[name, _number(value)] for name, value in found["discriminability"].items()]
    tables = [
        Table(words["ablation_title"], words["ablation_columns"].split("|"), lines, 2),
        Table(words["grid_title"], words["grid_columns"].split("|"), stability, 0),
        Table(words["eta_title"], words["eta_columns"].split("|"), spread, 1),
    ]
    notes = [words["one_model"]] if len(found["models"]) < 2 else []
    if found["without_terms"]:
        notes.append(words["without_terms"].format(n=found["without_terms"]))
    return Report(tables, notes, found)


def make_console(lang: str, quiet: bool) -> Console:
    """A RichConsole on a terminal where rich is installed, plain lines anywhere else."""
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        try:
            return RichConsole(lang, quiet)
        except ImportError:
            pass
    return Console(lang, quiet)


# -- files ----------------------------------------------------------------------------------------


_ONE_LINE = 2  # nested as deep as this, such as a trial of a result file: on one line


def json_text(value: Any) -> str:
    """Sorted keys, floats at 6 places, no NaN, a newline at the end: the same value, same bytes.

    A value that is an iterator is written as a list of what it yields: texts of JSON, which are
    taken as they stand.
    """
    return "".join(json_chunks(value))


def json_chunks(value: Any) -> Iterator[str]:
    """The same piece by piece, so that a list behind an iterator is never held whole."""
    yield from _chunks(_rounded(value), 0)
    yield "\n"


def _chunks(value: Any, depth: int) -> Iterator[str]:
    """A value, or each of its items on a line of its own."""
    held = isinstance(value, (dict, list))
    if not isinstance(value, Iterator) and not (held and value and depth < _ONE_LINE):
        yield _JSON.encode(value)
        return
    indent, outdent = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    mark = opening
    for item in sorted(value) if isinstance(value, dict) else value:
        yield f"{mark}{indent}"
        if isinstance(value, dict):
            yield f"{_JSON.encode(item)}: "
            yield from _chunks(value[item], depth + 1)
        elif held:
            yield from _chunks(item, depth + 1)
        else:
            yield item
        mark = ","
    yield opening + closing if mark == opening else outdent + closing


def write_atomically(path: Path, text: str | Iterable[str], mode: int = 0o644) -> None:
    """Write a UTF-8 file that is either the old one or whole; raises OSError.

    text: whole or in pieces. mode: the file's permissions when it is new or replaced.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_raw(runs: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the runs of judges as JSON: the same runs give the same bytes; raises OSError."""
    write_atomically(path, json_text(list(runs)))


def result_document(
    results: Sequence[BenchmarkResult],
    mazes: Worlds,
    config: MazeConfig,
    settings: Mapping[str, Any],
    made_with: Mapping[str, Any],
) -> dict[str, Any]:
    """The result file (v1.1 section 11, with schema 2): see DOCUMENTATION.md for every field.

    For `json_chunks`: its mazes and results are iterators.
    """
    rows = aggregate(results)
    mirage = config.hints
    described = mazes[0].describe(mirage)
    later = ("algorithm", "openings", "mirage_trap_list", "walls_sha256")  # than v1.1
    first = {key: value for key, value in described.items() if key not in later}
    return {
        "hallumaze_version": BENCHMARK_VERSION,
        "schema_version": SCHEMA_VERSION,
        "timestamp": utc_now(),
        "maze": first,
        "mazes": (_JSON.encode(mazes[k].describe(mirage)) for k in range(len(mazes))),
        "config": {**asdict(config), "mirage": mirage, **settings},
        "results": results.texts()
        if isinstance(results, JournalResults)
        else map(as_json, results),
        "aggregate": rows,
        "spending": total_spending(rows),
        "environment": made_with,
    }


def environment() -> dict[str, Any]:
    """What the run was made with: Python, the packages and this file."""
    from importlib import metadata

    packages: dict[str, str | None] = {}
    for name in ("anthropic", "openai", "google-genai", "genai-prices", "rich"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "hallumaze": __version__,
        "hallumaze_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        "python": platform.python_version(),
        "platform": platform.system(),
        "packages": packages,
    }


_CSV_FIELDS = tuple(
    f.name
    for f in fields(BenchmarkResult)
    if f.name
    not in (
        "confidence_log",
        "steps",
        "final_path",
        "judges",
        "first_answer",
        "hint",
        "hints",
        "turns",
        "plant",
        "raw_response",
        "reasoning",
        "usage",
        "params_sent",
        "earlier_attempts",
        "reasoning_signal_counts",
        "recognition",
        "events",
        "recovery",
        "ece_bins",
        "lure",
        "tiers",
        "grades",
    )
)


def csv_text(results: Iterable[BenchmarkResult]) -> str:
    """One row per trial with its scalar fields and tokens; text that a spreadsheet would run as a
    formula is quoted with an apostrophe."""
    return "".join(csv_lines(results))


def csv_lines(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """The same line by line."""
    yield _csv_line([*_CSV_FIELDS, *(f"tokens_{name}" for name in USAGE_KEYS)])
    for result in results:
        row = [_csv_value(getattr(result, name)) for name in _CSV_FIELDS]
        yield _csv_line([*row, *(_csv_value(result.usage.get(name)) for name in USAGE_KEYS)])


def _csv_line(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _csv_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(round(value, 6))
    text = printable("; ".join(value) if isinstance(value, list) else value)
    runs = text.lstrip()[:1] in tuple("=+-@＝＋－＠") and not isinstance(value, int)
    return f"'{text}" if runs else text


# =================================================================================================
# 11  Command line
# =================================================================================================

_HOW_TO_CHOOSE = (
    "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY (or GEMINI_API_KEY) or "
    "DEEPSEEK_API_KEY, or name a --model"
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
MOST_SEEDS = 100_000  # of one --seeds, and of --runs: more is a slip of the keyboard

_PLACEHOLDER = re.compile(r"(?i)\s*(?:<.*>|.*\byour[_ -].*|.*\.\.\.|x{4,}|changeme|todo)?\s*$")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model to test, and what its calls need. The key is in no repr."""

    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    concurrency: int | None = None

    @property
    def name(self) -> str:
        """PROVIDER/MODEL, fit for a terminal."""
        return printable(f"{self.provider}/{self.model}")

    def public(self) -> dict[str, Any]:
        """What the result file says of it: everything but the key."""
        return {
            "provider": self.provider,
            "model": self.model,
            "base_url": scrub(self.base_url or "", self.api_key or "") or None,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "concurrency": self.concurrency,
        }


# -- the options --------------------------------------------------------------------------------


def _whole(least: int, most: int = 10**12) -> Callable[[str], int]:
    """A type for argparse: a whole number in a range."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            until = f" to {most}" if most < 10**12 else " or more"
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least}{until}")
        return number

    return convert


def _decimal(most: float, least: float = 0.0) -> Callable[[str], float]:
    """A type for argparse: a number in a range."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:g} to {most:g}")
        return number

    return convert


def parse_seeds(text: str) -> list[int]:
    """ "1-60", "3,5,9" or "1-3,7" as the seeds in that order, each once.

    Raises argparse.ArgumentTypeError for anything else.
    """
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,12})(?:\s*-\s*(\d{1,12}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 0 <= last - first < MOST_SEEDS:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no list of seeds: write 1-60, or 3,5,9, or both"
            )
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return list(seeds)


class _Parser(argparse.ArgumentParser):
    """argparse with errors that are one line."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{message} (--help lists the options)")


def build_parser() -> argparse.ArgumentParser:
    """The options of `run`, the command that needs no name."""
    parser = _Parser(
        prog="hallumaze.py",
        usage="python hallumaze.py [run] [OPTIONS]",
        description="HalluMaze: when a language model is wrong, does it know, and does it get out?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    _add_model_options(parser.add_argument_group("which models"))
    _add_maze_options(parser.add_argument_group("which mazes and prompts"))
    _add_world_options(parser.add_argument_group("walks over pages instead of mazes"))
    _add_game_options(parser.add_argument_group("how they are walked"))
    _add_call_options(parser.add_argument_group("how to call"))
    _add_output_options(parser.add_argument_group("what to write"))
    _add_actions(parser.add_argument_group("instead of a run"))
    return parser


def _add_model_options(group: Any) -> None:
    add = group.add_argument
    add("--model", action="append", metavar="PROVIDER/MODEL", help=_HELP["model"])
    add("--base-url", metavar="URL", help=_HELP["base_url"])
    add("--config", type=Path, metavar="PATH", help=_HELP["config"])
    add("--interactive", action="store_true", help=_HELP["interactive"])
    add("--max-tokens", type=_whole(1), metavar="N", help=_HELP["max_tokens"])
    add("--temperature", type=_decimal(2), metavar="T", help=_HELP["temperature"])
    add("--reasoning-effort", choices=EFFORTS, metavar="EFFORT", help=_HELP["effort"])


def _add_maze_options(group: Any) -> None:
    add = group.add_argument
    add("--size", type=_whole(SMALLEST, LARGEST), metavar="N", help=_HELP["size"])
    add("--runs", type=_whole(1, MOST_SEEDS), default=1, metavar="N", help=_HELP["runs"])
    seeds = group.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=_whole(0), metavar="N", help=_HELP["seed"])
    seeds.add_argument("--seeds", type=parse_seeds, metavar="LIST", help=_HELP["seeds"])
    _add_prompt_options(group)
    add("--group", choices=(*GROUPS, ALL_GROUPS), help=_HELP["group"])


def _add_world_options(group: Any) -> None:
    add = group.add_argument
    add("--world", choices=WORLDS, help=_HELP["world"])
    add("--difficulty", choices=DIFFICULTIES, help=_HELP["difficulty"])
    add("--games", type=_whole(1, MOST_SEEDS), metavar="N", help=_HELP["games"])
    add("--max-links", type=_whole(1), metavar="N", help=_HELP["max_links"])
    add("--graph", metavar="PATH", help=_HELP["graph"])
    add("--probe", choices=PROBES, help=_HELP["probe"])


def _add_prompt_options(group: Any) -> None:
    """What shapes a prompt, for models and for people."""
    add = group.add_argument
    add("--algorithm", choices=ALGORITHMS, help=_HELP["algorithm"])
    mirage = group.add_mutually_exclusive_group()
    mirage.add_argument("--mirage", choices=MIRAGES, help=_HELP["mirage"])
    mirage.add_argument(
        "--no-mirage", dest="mirage", action="store_const", const="off", help=_HELP["no_mirage"]
    )
    add("--no-confidence", action="store_true", help=_HELP["no_confidence"])
    add("--lang", choices=LANGUAGES, help=_HELP["lang"])


def _add_game_options(group: Any) -> None:
    add = group.add_argument
    add("--protocol", choices=PROTOCOLS, help=_HELP["protocol"])
    add("--view", choices=VIEWS, help=_HELP["view"])
    add("--memory", choices=MEMORIES, help=_HELP["memory"])
    add("--step-budget", type=_whole(1, MOST_MOVES), metavar="N", help=_HELP["step_budget"])
    add("--hint-at", type=_whole(1, MOST_MOVES), metavar="N", help=_HELP["hint_at"])
    add("--hints", type=_whole(0, MOST_MOVES), metavar="N", help=_HELP["hints"])
    add("--plant", choices=PLANTS, help=_HELP["plant"])
    add("--plant-as", choices=(*PLANT_FORMS, BOTH_FORMS), help=_HELP["plant_as"])


def _add_call_options(group: Any) -> None:
    add = group.add_argument
    add("--concurrency", type=_whole(1, 100), metavar="N", help=_HELP["concurrency"])
    add("--retries", type=_whole(0, 100), metavar="N", help=_HELP["retries"])
    add("--timeout", type=_decimal(86_400, 0.001), metavar="S", help=_HELP["timeout"])
    add("--max-cost", type=_decimal(10**9), metavar="USD", help=_HELP["max_cost"])
    add("--max-time", type=_decimal(10**6), metavar="MIN", help=_HELP["max_time"])
    add("--batch", action="store_true", help=_HELP["batch"])
    add("--batch-wait", type=_decimal(10**6), metavar="MIN", help=_HELP["batch_wait"])


def _add_file_options(group: Any) -> None:
    """Where the result goes, of a run and of a person's game."""
    add = group.add_argument
    add("--output", type=Path, metavar="PATH", help=_HELP["output"])
    add("--csv", action="store_true", help=_HELP["csv"])
    add("--results-dir", type=Path, metavar="PATH", help=_HELP["results_dir"])
    add("--human-data", type=Path, metavar="FILE", help=_HELP["human_data"])


def _add_output_options(group: Any) -> None:
    _add_file_options(group)
    add = group.add_argument
    add("--resume", nargs="?", const="", metavar="RUN", help=_HELP["resume"])
    add("--fail-on-regression", action="store_true", help=_HELP["fail_on_regression"])
    add("--quiet", action="store_true", help=_HELP["quiet"])


def _add_actions(group: Any) -> None:
    add = group.add_argument
    one = group.add_mutually_exclusive_group()
    one.add_argument("--show", action="store_true", help=_HELP["show"])
    one.add_argument("--dry-run", action="store_true", help=_HELP["dry_run"])
    one.add_argument("--check", action="store_true", help=_HELP["check"])
    one.add_argument("--list-models", action="store_true", help=_HELP["list_models"])
    add("--version", action="version", version=f"HalluMaze {__version__}", help=_HELP["version"])
    add("--help", "-h", action="help", help=_HELP["help"])


# -- the configuration file -----------------------------------------------------------------------

_MAZE_FIELDS: dict[str, tuple[type, ...]] = {
    "size": (int,),
    "use_mirage": (bool,),
    "use_confidence": (bool,),
    "ariadne_mode": (str,),
    "max_tokens": (int,),
}
_PROVIDER_FIELDS: dict[str, tuple[type, ...]] = {
    "provider": (str,),
    "model": (str,),
    "api_key": (str,),
    "api_key_env": (str,),
    "base_url": (str,),
    "temperature": (int, float),
    "max_tokens": (int,),
    "concurrency": (int,),
}
_KINDS = {int: "a whole number", bool: "true or false", str: "a string", float: "a number"}


def read_config(path: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], list[ModelSpec]]:
    """(the fields of "maze", the models of "providers") of a configuration file.

    Raises UsageError, which names the file and the field, for anything that is not as it should
    be: an unknown field, a wrong kind of value, a placeholder key, a missing variable.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no JSON: {printable(error)}") from None
    if not _is_utf8(json.dumps(document, ensure_ascii=False)):
        raise UsageError(f"{path}: holds a character that is no text (a lone surrogate)")
    _check_fields(path, "the file", document, {"maze": (dict,), "providers": (list,)})
    maze = document.get("maze", {})
    _check_fields(path, "maze", maze, _MAZE_FIELDS)
    _check_maze(path, maze)
    specs = [
        _read_provider(path, f"providers[{k}]", entry, env)
        for k, entry in enumerate(document.get("providers", []))
    ]
    return maze, specs


def _check_fields(
    path: Path, where: str, value: Any, known: Mapping[str, tuple[type, ...]]
) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {where} must be an object {{…}}")
    for name, item in value.items():
        kinds = known.get(name)
        if kinds is None:
            close = f"the fields are {', '.join(known)}"
            raise UsageError(f"{path}: {where} has an unknown field {printable(name)!r}: {close}")
        if not isinstance(item, kinds) or (isinstance(item, bool) and bool not in kinds):
            kind = _KINDS.get(kinds[-1], "an object" if kinds == (dict,) else "a list")
            raise UsageError(f"{path}: {where}.{name} must be {kind}")


def _check_maze(path: Path, maze: Mapping[str, Any]) -> None:
    if not SMALLEST <= maze.get("size", SMALLEST) <= LARGEST:
        raise UsageError(f"{path}: maze.size must be {SMALLEST} to {LARGEST}")
    if maze.get("ariadne_mode", "A") not in (*GROUPS, ALL_GROUPS):
        known = ", ".join((*GROUPS, ALL_GROUPS))
        raise UsageError(f"{path}: maze.ariadne_mode must be one of {known}")
    if maze.get("max_tokens", 1) < 1:
        raise UsageError(f"{path}: maze.max_tokens must be 1 or more")


def _read_provider(path: Path, where: str, entry: Any, env: Mapping[str, str]) -> ModelSpec:
    """One entry of "providers"."""
    _check_fields(path, where, entry, _PROVIDER_FIELDS)
    provider = entry.get("provider", "")
    _check_provider(provider, f"{path}: {where}.provider")
    model = (
        entry.get("model")
        or env.get(f"{_variable(provider)}_MODEL")
        or DEFAULT_MODELS.get(provider)
    )
    if not model:
        raise UsageError(f"{path}: {where}.model is missing")
    if not 0 <= entry.get("temperature", 0) <= 2:
        raise UsageError(f"{path}: {where}.temperature must be 0 to 2")
    if entry.get("max_tokens", 1) < 1:
        raise UsageError(f"{path}: {where}.max_tokens must be 1 or more")
    if not 1 <= entry.get("concurrency", 1) <= 100:
        raise UsageError(f"{path}: {where}.concurrency must be 1 to 100")
    key = _config_key(path, where, entry, env)
    return ModelSpec(
        provider,
        model,
        key or _environment_key(provider, env),
        entry.get("base_url") or env.get(f"{_variable(provider)}_BASE_URL"),
        entry.get("temperature"),
        entry.get("max_tokens"),
        entry.get("concurrency"),
    )


def _config_key(path: Path, where: str, entry: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """The key that an entry holds or names; "" when it does neither."""
    if "api_key" in entry and "api_key_env" in entry:
        raise UsageError(f"{path}: {where} has both api_key and api_key_env: keep one")
    if "api_key" in entry:
        if _PLACEHOLDER.match(entry["api_key"]):
            raise UsageError(
                f"{path}: {where}.api_key is still the placeholder: put your key there"
            )
        return clean_key(entry["api_key"], f"{path}: {where}.api_key")
    if name := entry.get("api_key_env"):
        if not re.fullmatch(r"[A-Za-z_]\w{0,99}", name) or name.startswith("sk_"):
            raise UsageError(f"{path}: {where}.api_key_env is no name of a variable")
        key = clean_key(env.get(name, ""), name)
        if not key:
            shown = name if name.isupper() else "a variable"  # a key, put there by mistake
            raise UsageError(f"{path}: {where}.api_key_env names {shown}, which is not set")
        return key
    return ""


def _check_provider(provider: str, where: str) -> None:
    """Whether LLMProvider has a method for it: the built-in ones, and what a user added."""
    known = sorted(name[6:] for name in dir(LLMProvider) if name.startswith("_call_"))
    if provider.replace("-", "_") not in known:
        raise UsageError(
            f"{where}: no provider {printable(provider)!r}; there are {', '.join(known)}"
        )


def _environment_key(provider: str, env: Mapping[str, str]) -> str:
    """The key of a provider in the environment; "" when there is none."""
    return next(
        (key for name in key_names(provider) if (key := clean_key(env.get(name, ""), name))), ""
    )


# -- what runs ------------------------------------------------------------------------------------


def parse_model(text: str, env: Mapping[str, str]) -> ModelSpec:
    """ "PROVIDER/MODEL" as a ModelSpec with the key and the base URL of the environment.

    Raises UsageError for a provider or reference agent that is none, and for a missing key.
    """
    provider, _, model = text.strip().partition("/")
    if not _is_utf8(text):
        raise UsageError(f"--model {printable(text)}: is no text in UTF-8")
    _check_provider(provider, f"--model {printable(text)}")
    if not model:
        raise UsageError(f"--model {printable(text)}: write PROVIDER/MODEL")
    url = env.get(f"{_variable(provider)}_BASE_URL") or None
    return ModelSpec(provider, model, _environment_key(provider, env), url)


def _is_utf8(text: str) -> bool:
    return text == _storable(text)


def found_models(env: Mapping[str, str]) -> list[ModelSpec]:
    """The models of v1.1 of every provider whose key is set."""
    return [
        ModelSpec(
            provider,
            env.get(f"{_variable(provider)}_MODEL") or model,
            key,
            env.get(f"{_variable(provider)}_BASE_URL") or None,
        )
        for provider, model in DEFAULT_MODELS.items()
        if (key := _environment_key(provider, env))
    ]


def check_models(specs: Sequence[ModelSpec]) -> None:
    """Raise UsageError for whatever would only fail once calls are sent: keys, URLs, packages."""
    seen: set[tuple[str, str]] = set()
    for spec in specs:
        if (spec.provider, spec.model) in seen:
            raise UsageError(f"{spec.name} is named twice")
        seen.add((spec.provider, spec.model))
        if spec.provider in DEFAULT_MODELS and not spec.api_key:
            names = " or ".join(key_names(spec.provider))
            raise UsageError(f"{spec.name} needs a key: set {names}")
        if spec.provider == "compatible" and not spec.base_url:
            raise UsageError(
                f"{spec.name} needs --base-url or COMPATIBLE_BASE_URL, "
                "e.g. http://localhost:11434/v1"
            )
        require_package(spec.provider)


def check_agents(specs: Sequence[ModelSpec], world: str) -> None:
    """Raise UsageError for a reference agent that does not play in this kind of world."""
    for spec in specs:
        if spec.provider == "reference" and spec.model not in AGENT_NAMES[world]:
            agents = ", ".join(AGENT_NAMES[world])
            raise UsageError(f"{spec.name}: the reference agents are {agents}")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run needs, decided before anything is sent."""

    config: MazeConfig
    specs: list[ModelSpec]
    mazes: Worlds
    runs: int
    chosen: bool  # the models were named or found; else they are the reference agents

    @property
    def trials(self) -> int:
        """How many trials each model has."""
        return len(self.mazes) * self.runs * len(self.config.conditions)


def make_plan(
    options: argparse.Namespace, env: Mapping[str, str], specs: list[ModelSpec] | None = None
) -> Plan:
    """Options over file over environment over defaults. Raises UsageError."""
    maze, listed = read_config(options.config, env) if options.config else ({}, [])
    if options.model:
        listed = [_with_file(parse_model(text, env), listed) for text in options.model]
    elif specs is not None:
        listed = specs
    elif not listed:
        listed = found_models(env)
    if options.base_url:
        listed = [_with_url(spec, options.base_url) for spec in listed]
        if not any(spec.provider == "compatible" for spec in listed):
            raise UsageError("--base-url goes with --model compatible/NAME")
    chosen = bool(listed)
    if not chosen:
        world = options.world or "maze"
        blind = world == "maze" and options.protocol == "step" and options.view != "map"
        listed = [
            ModelSpec("reference", name)
            for name in AGENT_NAMES[world]
            if not (blind and name == "oracle")  # which would need to see the maze
        ]
    if options.temperature is not None:
        listed = [replace(spec, temperature=None) for spec in listed]
    if options.max_tokens is not None:
        listed = [replace(spec, max_tokens=None) for spec in listed]
    if options.concurrency is not None:
        listed = [replace(spec, concurrency=None) for spec in listed]
    check_models(listed)
    config = _make_config(options, maze)
    _check_world(options, config)
    _check_protocol(options, config, listed)
    check_agents(listed, config.world)
    if config.world == "maze":
        mazes, runs = _make_mazes(options, config)
        return Plan(config, listed, mazes, runs, chosen)
    return Plan(config, listed, _make_walks(options, config), options.runs, chosen)


def _with_file(spec: ModelSpec, listed: Sequence[ModelSpec]) -> ModelSpec:
    """A named model with what the file says of its provider and the environment does not."""
    same = [entry for entry in listed if entry.provider == spec.provider]
    entry = next((entry for entry in same if entry.model == spec.model), (same or [spec])[0])
    return replace(
        spec,
        api_key=spec.api_key or entry.api_key,
        base_url=spec.base_url or entry.base_url,
        concurrency=spec.concurrency or entry.concurrency,
    )


def _with_url(spec: ModelSpec, url: str) -> ModelSpec:
    return replace(spec, base_url=url) if spec.provider == "compatible" else spec


def _make_config(options: argparse.Namespace, maze: Mapping[str, Any]) -> MazeConfig:
    """The settings, with the options of the command line over those of the file."""
    given: dict[str, Any] = {
        "size": options.size,
        "ariadne_mode": options.group,
        "max_tokens": options.max_tokens,
        "algorithm": options.algorithm,
        "lang": options.lang,
        "temperature": options.temperature,
        "reasoning_effort": options.reasoning_effort,
        "timeout": options.timeout,
        "retries": options.retries,
        "use_confidence": False if options.no_confidence else None,
        "use_mirage": None if options.mirage is None else options.mirage != "off",
        "mirage": None if options.mirage == "off" else options.mirage,
        "protocol": options.protocol,
        "view": options.view,
        "memory": options.memory,
        "step_budget": options.step_budget,
        "most_hints": options.hints,
        "hint_at": options.hint_at,
        "plant": options.plant,
        "plant_as": options.plant_as,
        "world": options.world,
        "difficulty": options.difficulty,
        "max_links": options.max_links,
        "probe": options.probe,
        "graph": str(Path(options.graph).resolve()) if options.graph else None,
    }
    if options.world == "wiki":
        given |= {"protocol": options.protocol or "step", "use_mirage": False}
    return MazeConfig(**{**maze, **{k: v for k, v in given.items() if v is not None}})


def _check_world(options: argparse.Namespace, config: MazeConfig) -> None:
    """Whether the options of mazes and of walks over pages go together."""
    of_mazes = ("size", "seeds", "algorithm", "mirage")
    of_walks = ("difficulty", "games", "max_links", "graph", "probe")
    wiki = config.world == "wiki"
    for name in of_mazes if wiki else of_walks:
        if getattr(options, name) is not None:
            other = "maze" if wiki else "wiki"
            raise UsageError(f"--{name.replace('_', '-')} goes with --world {other}")
    if wiki and (config.protocol, config.view) != ("step", "local"):
        raise UsageError("--world wiki goes with --protocol step and --view local")
    if config.probe != "none" and (config.ariadne_mode != "A" or config.plant != "none"):
        raise UsageError("--probe goes with --group A and without --plant")


def _check_protocol(
    options: argparse.Namespace, config: MazeConfig, specs: Sequence[ModelSpec]
) -> None:
    """Whether the options of games and planted errors go together."""
    game, hinted = config.protocol == "step", config.ariadne_mode != "A"
    of_games = ("view", "memory", "step_budget", "hint_at", "hints")
    given = [name for name in of_games if getattr(options, name) is not None]
    if given and not game:
        raise UsageError(f"--{given[0].replace('_', '-')} goes with --protocol step")
    if not hinted and (late := [name for name in given if name.startswith("hint")]):
        raise UsageError(f"--{late[0].replace('_', '-')} goes with --group B, C or ALL")
    if options.plant_as and config.plant == "none":
        raise UsageError("--plant-as goes with --plant wall, branch or loop")
    if game and options.batch:
        raise UsageError("a game asks one move after the other: leave out --batch")
    blind = config.world == "maze" and config.view != "map"
    if game and blind and any(s.name == "reference/oracle" for s in specs):
        raise UsageError("reference/oracle needs a map: add --view map, or leave it out")


def _make_mazes(options: argparse.Namespace, config: MazeConfig) -> tuple[Mazes, int]:
    """The mazes of a run, and how often each is played."""
    if options.seeds is not None:
        seeds: list[int | None] = list(options.seeds)
        runs = options.runs
    elif options.seed is not None:
        seeds, runs = [options.seed], options.runs
    else:
        seeds, runs = [None] * options.runs, 1  # fresh ones, the same for every model
    return Mazes(config.size, seeds, config.algorithm), runs


TELL_EVERY_S = 10.0


def _make_walks(options: argparse.Namespace, config: MazeConfig) -> WikiGames:
    """The walks of a run; UsageError when the graph has none of that difficulty."""
    _need_scipy("--world wiki")
    graph, count = load_graph(config.graph), options.games or GAMES[config.difficulty]
    last = time.monotonic()

    def tell(found: int) -> None:
        """A large graph has many targets to look at: say that it goes on."""
        nonlocal last
        if time.monotonic() - last > TELL_EVERY_S:
            put_line(f"choosing walks: {found} of {count} found", sys.stderr)
            last = time.monotonic()

    least, most = DIFFICULTIES[config.difficulty]
    pairs = sample_games(graph, least, most, count, options.seed or 0, tell)
    if not pairs:
        raise UsageError(f"{graph.name} has no walk of the difficulty {config.difficulty}")
    probed = sample_links(graph, PROBED_PAIRS, options.seed or 0) if config.probe == "links" else []
    budget = config.step_budget or WIKI_MOVES
    return WikiGames(graph, pairs, config.max_links, budget, probed)


def make_provider(spec: ModelSpec, plan: Plan) -> LLMProvider:
    """The provider of a spec, which wins over the settings of the run."""
    config = plan.config
    provider = LLMProvider(
        spec.provider,
        spec.model,
        spec.api_key,
        spec.base_url,
        config.temperature if spec.temperature is None else spec.temperature,
        config.reasoning_effort,
        config.timeout,
        config.retries,
    )
    provider.max_tokens = spec.max_tokens
    provider.concurrency = spec.concurrency
    provider.agents = reference_agents(plan.mazes)
    if spec.provider == "replay":
        provider.stored = StoredAnswers(spec.model)
    return provider


# -- the commands ---------------------------------------------------------------------------------


def run_command(argv: Sequence[str]) -> int:
    """`run`: ask, show, check, list or run, and the exit code."""
    options = build_parser().parse_args(argv)
    env = os.environ
    console = make_console(
        console_language(options.lang, env), options.quiet and not options.dry_run
    )
    specs = None
    if options.resume is not None:
        return _resume(options, env, console)
    if options.interactive and options.model:
        raise UsageError("--interactive asks for the models: leave --model out")
    if options.interactive or (not argv and not found_models(env)):
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(f"no terminal to ask for keys: {_HOW_TO_CHOOSE}")
        specs = Interview(console, env).run(options)
    plan = make_plan(options, env, specs)
    if (options.check or options.list_models) and not plan.chosen:
        raise UsageError(f"no model to ask: {_HOW_TO_CHOOSE}")
    _give_notices(options, plan, console)
    _check_packages(options)
    if options.show:
        return _show(plan, console)
    if options.dry_run:
        return _dry_run(plan, options, console)
    if options.check or options.list_models:
        providers = [make_provider(spec, plan) for spec in plan.specs]
        action = _check if options.check else _list_models
        return action(providers, console)
    return _run(plan, options, console)


def _check_packages(options: argparse.Namespace) -> None:
    """Whether what the options need is installed."""
    if options.fail_on_regression:
        _need_scipy("--fail-on-regression")


def _need_scipy(what: str) -> None:
    if not is_installed("scipy"):
        raise UsageError(f"{what} needs a package: pip install scipy")


def console_language(lang: str | None, env: Mapping[str, str]) -> str:
    """The language that the console speaks: --lang, else the locale's, else English."""
    spoken = next((env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)), "")
    return lang or ("ko" if spoken.lower().startswith("ko") else "en")


def _give_notices(options: argparse.Namespace, plan: Plan, console: Console) -> None:
    """What a user should know before the run."""
    if not plan.chosen and not options.show:
        console.warn(console.say("reference_notice"))
    if options.config and _exposes_keys(options.config):
        console.warn(console.say("readable_config", path=options.config))
    if options.batch_wait is not None and not options.batch:
        raise UsageError("--batch-wait goes with --batch or --resume")
    for spec in plan.specs:
        if options.batch and spec.provider not in (*BATCHES, *CALLS_NOBODY):
            console.note(console.say("no_batch", model=spec.name))
    if plan.config.size not in STANDARD_SIZES:
        console.note(console.say("odd_size", size=plan.config.size))


def _exposes_keys(path: Path) -> bool:
    """Whether a configuration file holds keys and others may read it."""
    exposed = os.name == "posix" and path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    return bool(exposed and re.search(r'"api_key"\s*:', path.read_text(encoding="utf-8-sig")))


def _show(plan: Plan, console: Console) -> int:
    """Print each maze and the exact prompt."""
    for k in range(len(plan.mazes)):
        world: Problem = plan.mazes[k]
        prompt, plant = opening(world, plan.config, plan.config.forms[-1])
        messages, drawing = prompt.messages, ""
        if not isinstance(world, Task):
            drawing = world.drawing(plan.config.hints)
            if plan.config.protocol == "step":
                messages = Game(world, plan.config, "A", prompt, plant).messages()
        title = _WORLD_WORDS[console.lang][world.kind]["title"].format(**world.describe("off"))
        for text in (
            title,
            drawing,
            "--- system ---",
            prompt.system,
            *(part for m in messages for part in (f"--- {m['role']} ---", m["content"])),
            f"--- sha256 {prompt.sha256} ---",
        ):
            put_line(text, sys.stdout)
    return EXIT_OK


def _check(providers: Sequence[LLMProvider], console: Console) -> int:
    """Prove key and model of each provider with the cheapest call."""
    failed = False
    for provider in providers:
        try:
            reply = provider.check()
            console.line(
                console.say("check_ok", model=provider.name, seconds=_number(reply.latency_s, 1))
            )
        except ProviderError as error:
            failed = True
            console.warn(console.say("check_failed", error=error))
    return EXIT_ERRORS if failed else EXIT_OK


def _list_models(providers: Sequence[LLMProvider], console: Console) -> int:
    """Print the model list of each provider once."""
    failed = False
    first = {(p.provider, p.base_url): p for p in reversed(providers)}
    for provider in reversed(first.values()):
        try:
            for name in provider.list_models():
                put_line(printable(f"{provider.provider}/{name}"), sys.stdout)
        except ProviderError as error:
            failed = True
            console.warn(console.say("check_failed", error=error))
    return EXIT_ERRORS if failed else EXIT_OK


MOST_SAMPLED = 100  # mazes whose prompts are measured for an estimate


def _dry_run(plan: Plan, options: argparse.Namespace, console: Console) -> int:
    """Print what a run would send: trials, tokens and cost of each model."""
    count, game = len(plan.mazes), plan.config.protocol == "step"
    step = max(1, count / MOST_SAMPLED)
    sampled = [plan.mazes[int(k * step)] for k in range(min(count, MOST_SAMPLED))]
    sizes, turns = zip(*(_size_of(world, plan.config) for world in sampled), strict=True)
    trials, groups = plan.trials, plan.config.groups
    lines = []
    for spec in plan.specs:
        provider = make_provider(spec, plan)
        longest = spec.max_tokens or plan.config.max_tokens
        most = round(trials * sum(turns) / len(turns)) * longest
        read = round(trials * sum(sizes) / len(sizes))
        if spec.provider in CALLS_NOBODY:
            read = most = 0
        calls = [(read, most)]
        if not game and (
            hinted := len(groups) - groups.count("A")
        ):  # the first answer is sent again
            share = hinted / len(groups)
            calls.append((round(share * (read + most)), round(share * most)))
        costs = [provider.price({"input": asked, "output": told}) for asked, told in calls]
        if costs[0] is not None and options.batch and provider.has_batches:
            costs[0] *= BATCH_DISCOUNT  # a hint is a call of its own
        read, most = (sum(column) for column in zip(*calls, strict=True))
        numbers = (f"{trials:,}", f"{read:,}", f"{most:,}", _usd(_sum(*costs)))
        lines.append([spec.name, *numbers])
    console.table(console.words["plan_title"], console.words["plan_columns"].split("|"), lines, 1)
    for name, *_, usd in lines:
        if usd == _usd(None):
            console.line(console.say("plan_unpriced", model=name))
    return EXIT_OK


ANSWER_TOKENS = 40  # of a move, about


def _size_of(world: Problem, config: MazeConfig) -> tuple[int, int]:
    """(about how many tokens of input a trial takes, how many answers at most), without hints."""
    prompt, _ = opening(world, config, config.forms[-1])
    if isinstance(world, Task) or config.protocol == "plan":
        return prompt.tokens(), 1
    return _game_tokens(world, prompt, config), game_budget(world, config)


def _game_tokens(world: TextWorld, prompt: Prompt, config: MazeConfig) -> int:
    """About how many tokens of input a game takes that uses its whole budget."""
    game = Game(world, config, "A", prompt)
    first = sum(len(message["content"].encode()) for message in game.messages())
    turns, opening = game_budget(world, config), prompt.tokens()
    state = max(0, round((first - len(prompt.user.encode())) / BYTES_PER_TOKEN)) + ANSWER_TOKENS
    asked = turns * (turns + 1) // 2 if config.memory == "chat" else turns
    return turns * opening + asked * state


def _run(plan: Plan, options: argparse.Namespace, console: Console) -> int:
    """A new run, with a journal of its own."""
    _check_output(options)
    providers = [make_provider(spec, plan) for spec in plan.specs]
    limits = _limits(options)
    _check_prices(plan, providers, limits, console)
    folder = _results_folder(options)
    with _locked(folder):
        header = {
            "journal": JOURNAL_VERSION,
            "schema_version": SCHEMA_VERSION,
            "timestamp": utc_now(),
            "config": asdict(plan.config),
            "runs": plan.runs,
            "mazes": plan.mazes.entry(),
            "models": [spec.public() for spec in plan.specs],
            "batch": options.batch,
            "environment": environment(),
        }
        with closing(_new_journal(folder, header)) as journal:
            console.maze_panel(plan.mazes, plan.config)
            return _play(plan, providers, journal, limits, options, console)


def _program(header: Mapping[str, Any]) -> Any:
    """Which hallumaze.py a journal was begun with."""
    return _dig(header, "environment", "hallumaze_sha256")


def _limits(options: argparse.Namespace) -> Limits:
    """What bounds the run: the options of this command, not of an earlier one."""
    return Limits(
        CONCURRENCY if options.concurrency is None else options.concurrency,
        math.inf if options.max_cost is None else options.max_cost,
        math.inf if options.max_time is None else options.max_time * 60,
        options.batch,
        BATCH_WAIT_S if options.batch_wait is None else options.batch_wait * 60,
    )


def _check_prices(
    plan: Plan, providers: Sequence[LLMProvider], limits: Limits, console: Console
) -> None:
    """--max-cost must bound what it is given for: a vendor's model without a price is refused.

    A server of one's own has none, and is told of.
    """
    if limits.max_cost == math.inf:
        return
    for provider in providers:
        if provider.price({"input": 1, "output": 1}) is not None:
            continue
        if provider.provider in DEFAULT_MODELS:
            name = printable(provider.name)
            raise UsageError(f"the price of {name} is unknown: --max-cost cannot bound it")
        console.warn(console.say("uncounted", model=provider.name))


def _resume(options: argparse.Namespace, env: Mapping[str, str], console: Console) -> int:
    """Do what a run has left: the trials that are missing, or ended as errors."""
    _check_resume_options(options)
    _check_packages(options)
    _check_output(options)
    path = _journal_path(options)
    with _locked(path.parent):
        try:
            journal = Journal.load(path)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        with closing(journal):
            if journal.torn:
                console.warn(console.say("torn", path=path))
            listed = read_config(options.config, env)[1] if options.config else []
            plan = _journal_plan(journal, listed, env)
            if _program(journal.header) != _program({"environment": environment()}):
                console.warn(console.say("changed", path=path))
            if options.concurrency is not None:
                specs = [replace(spec, concurrency=None) for spec in plan.specs]
                plan = replace(plan, specs=specs)
            check_models(plan.specs)
            providers = [make_provider(spec, plan) for spec in plan.specs]
            limits = _limits(options)
            limits = replace(limits, batch=limits.batch or bool(journal.header.get("batch")))
            _check_prices(plan, providers, limits, console)
            total = len(plan.specs) * plan.trials
            done = len(journal.finished)
            console.log(console.say("resumed", path=path, done=done, total=total))
            return _play(plan, providers, journal, limits, options, console)


def _check_resume_options(options: argparse.Namespace) -> None:
    """A resumed run takes its settings from the journal."""
    defaults = build_parser().parse_args([])
    allowed = (
        *("resume", "config", "output", "csv", "quiet", "results_dir", "fail_on_regression"),
        *("concurrency", "max_cost", "max_time", "batch", "batch_wait", "human_data"),
    )
    for name, value in vars(options).items():
        if name not in allowed and value != getattr(defaults, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"--resume takes its settings from the journal: leave out {option}")


def _journal_plan(journal: Journal, listed: Sequence[ModelSpec], env: Mapping[str, str]) -> Plan:
    """The plan of a journal; keys come from the environment, or from the models of a file."""
    header = journal.header
    try:
        if (header["journal"], header["schema_version"]) != (JOURNAL_VERSION, SCHEMA_VERSION):
            raise ValueError("it is of another version")
        specs = [_journal_spec(model, listed, env) for model in header["models"]]
        config, runs = from_json(MazeConfig, header["config"]), header["runs"]
        if not isinstance(header["environment"], dict):
            raise TypeError("no environment")
        mazes = make_worlds(config, header["mazes"])
        if not _is_whole(runs):
            raise ValueError("runs is a whole number")
        if not (specs and mazes[0] and runs > 0):
            raise ValueError("it has no trials")
        plan = Plan(config, specs, mazes, runs, True)
        if {specs[n // plan.trials].provider for n in journal.batches} - set(BATCHES):
            raise ValueError("it names a batch of a provider that has none")
        known = (
            (config.lang, LANGUAGES),
            (config.ariadne_mode, (*GROUPS, ALL_GROUPS)),
            (config.mirage, MIRAGES),
            (config.protocol, PROTOCOLS),
            (config.view, VIEWS),
            (config.memory, MEMORIES),
            (config.plant, PLANTS),
            (config.plant_as, (*PLANT_FORMS, BOTH_FORMS)),
            (config.world, WORLDS),
        )
        if odd := [value for value, values in known if value not in values]:
            raise ValueError(f"{odd[0]!r} is no setting")
        return plan
    except (LookupError, TypeError, ValueError) as error:
        why = one_line(str(error))
        raise UsageError(f"{journal.path}: line 1 is no journal's first line ({why})") from None


def _journal_spec(
    model: Mapping[str, Any], listed: Sequence[ModelSpec], env: Mapping[str, str]
) -> ModelSpec:
    """A model of a journal with its key; and its base URL, if that held one, from there too."""
    spec = from_json(ModelSpec, model)
    variable = _variable(spec.provider)
    spec = replace(spec, api_key=_environment_key(spec.provider, env))
    if "***" in (spec.base_url or ""):
        spec = replace(spec, base_url=env.get(f"{variable}_BASE_URL"))
    spec = _with_file(spec, listed)
    if model["base_url"] and not spec.base_url:
        raise UsageError(
            f"{spec.name}: its base URL held a secret, which is stored nowhere: set"
            f" {variable}_BASE_URL, or give --config"
        )
    return spec


def _play(
    plan: Plan,
    providers: Sequence[LLMProvider],
    journal: Journal,
    limits: Limits,
    options: argparse.Namespace,
    console: Console,
) -> int:
    """Play all trials and write what was finished, even when the run is interrupted."""
    runner = BenchmarkRunner(
        providers,
        plan.mazes,
        plan.config,
        plan.runs,
        on_start=lambda provider, trials: console.start_model(provider.name, trials),
        on_result=console.trial,
        journal=journal,
        limits=limits,
    )
    if len(plan.mazes) >= FEWEST_PAIRS:  # intervals will be asked for
        Thread(target=load_numpy, daemon=True).start()  # while the first answers are on their way
    console.begin(len(providers) * plan.trials - len(journal.finished))
    problem = _run_all(runner, console)
    results = runner.results
    _tell_the_end(runner, len(results), console)
    if results:
        target = options.output or journal.path.with_name(
            f"hallumaze_results_{journal.path.stem}.json"
        )
        run = journal.path.stem
        # Read before: --output may name one of them.
        past = list(_past_runs(journal.path.parent)) if options.fail_on_regression else []
        made_with = journal.header["environment"]
        _save(results, plan, target.resolve(), run, made_with, options, console)
    if problem:
        raise problem
    if runner.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    judged = options.fail_on_regression and results
    if judged and _find_regressions(target.resolve(), past, console):
        return EXIT_REGRESSION
    whole = len(journal.finished) == len(providers) * plan.trials
    return EXIT_OK if whole else EXIT_ERRORS


def _run_all(runner: BenchmarkRunner, console: Console) -> BaseException | None:
    """Play the trials; what ended them early, or None. What is saved after it is not interrupted.

    Raises NotWiredError for a stub, and leaves no journal without a finished trial.
    """
    _on_signals(lambda *_: runner.interrupt())
    try:
        runner.run_all()
    except NotWiredError:
        if not runner.results:
            runner.journal.path.unlink()
        raise
    except BaseException as problem:
        return problem
    finally:
        _on_signals(signal.SIG_IGN if runner.stopped_by else signal.default_int_handler)
        console.end()
        for provider in runner.providers:
            provider.close()
    return None


def _tell_the_end(runner: BenchmarkRunner, count: int, console: Console) -> None:
    """What has kept the run from playing every trial."""
    run = runner.journal.path.stem
    for provider in runner.given_up:
        console.alarm(console.say("given_up", model=provider.name, run=run))
    if runner.stopped_by == "interrupt":
        console.alarm(console.say("interrupted", count=count, run=run))
    elif runner.stopped_by not in ("", "batch_wait"):
        option = f"--{runner.stopped_by.replace('_', '-')}"
        console.alarm(console.say("stopped", why=option, count=count, run=run))
    if waiting := len(runner.journal.batches):
        console.alarm(console.say("waiting", count=waiting, run=run))


def _check_output(options: argparse.Namespace) -> None:
    """Prove before any call that --output can be written, through a link, not in its place, and
    that --human-data can be read."""
    if options.human_data:
        read_people(options.human_data)
    if options.output is None:
        return
    try:
        output = options.output.resolve()
    except OSError as error:  # as when the working directory is gone
        raise UsageError(f"--output {options.output}: {error.strerror}") from None
    _prove_writable(output.parent, "--output")
    if output.exists() and not output.is_file():
        raise UsageError(f"--output {output} is no file: name one")
    if output.suffix == ".jsonl" or output.name == ".lock":
        raise UsageError(f"--output {output}: that is the name of a journal or a lock")
    if options.csv and output.suffix == ".csv":
        raise UsageError("--output names the JSON file; with --csv it must not end in .csv")


def _results_folder(options: argparse.Namespace) -> Path:
    """Where journals and result files go: --results-dir, or results/ beside hallumaze.py.

    In a read-only checkout --output's folder takes its place.
    """
    folder = options.results_dir or Path(__file__).resolve().parent / "results"
    try:
        _prove_writable(folder, "--results-dir")
    except UsageError:
        if options.results_dir or not options.output:
            raise
        folder = options.output.resolve().parent
    return Path(folder)


def _prove_writable(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror
        raise UsageError(f"{folder}: cannot be written: {why}: use {option}") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a results folder; LockedError when another run holds it.

    Without the package filelock there is no lock.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        yield
        return
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(
            f"{folder}: another run is at work here: wait for it, or use --results-dir"
        ) from None
    except OSError as error:  # as when the file is another user's
        raise UsageError(
            f"{folder / '.lock'}: cannot be written: {error.strerror}: use --results-dir"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _new_journal(folder: Path, header: Mapping[str, Any]) -> Journal:
    """A journal that is named after the time, UTC; its name is the run's."""
    run = f"{datetime.now(timezone.utc):%Y%m%d_%H%M%S}"
    for k in range(1, 10**6):
        name = f"{run}.jsonl" if k == 1 else f"{run}_{k}.jsonl"
        try:
            return Journal.create(folder / name, header)
        except FileExistsError:
            continue
    raise UsageError(f"{folder}: every name of a journal is taken")


def _journal_path(options: argparse.Namespace) -> Path:
    """The journal that --resume names: a run, a path, or without a name the latest."""
    if options.resume.endswith(".jsonl"):
        path = Path(options.resume)
    else:
        folder = options.results_dir
        if folder is None or folder.is_dir():  # one that is missing is not made
            folder = _results_folder(options)
        path = folder / f"{options.resume}.jsonl" if options.resume else _latest_journal(folder)
    if not path.is_file():
        raise UsageError(f"{path}: cannot be read: there is no such journal")
    return path


def _latest_journal(folder: Path) -> Path:
    """The journal of the run that began last; _10 comes after _2."""
    paths = list(folder.glob("*.jsonl"))
    if not paths:
        raise UsageError(f"{folder}: holds no journal to resume")
    return max(paths, key=lambda path: (path.stem[:15], len(path.stem), path.stem))


def _claim(target: Path) -> Path:
    """The target, or where another run has it already, the next free name; it is ours now."""
    for k in range(1, 10**6):
        path = target if k == 1 else target.with_stem(f"{target.stem}_{k}")
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{target}: every name is taken")


def _save(
    results: Sequence[BenchmarkResult],
    plan: Plan,
    target: Path,
    run: str,
    made_with: Mapping[str, Any],
    options: argparse.Namespace,
    console: Console,
) -> None:
    """Write the result file, and the CSV beside it; then the ranking."""
    settings = {"runs": plan.runs, "models": [spec.public() for spec in plan.specs]}
    document = result_document(results, plan.mazes, plan.config, settings, made_with)
    document["run"] = run
    people = _people(options)
    if people:
        document["human_data"] = [person.as_dict() for person in people]
    csv_path = target.with_name(f"{target.name.removesuffix('.json')}.csv")
    with _named_write_errors(target):
        write_atomically(target, json_chunks(document))
        if options.csv:
            write_atomically(csv_path, csv_lines(results))
    if not console.quiet:
        scale = reference_scale(plan.mazes, plan.config)
        console.tables(document["aggregate"], aggregate(people), scale)
    console.saved("JSON", target)
    if options.csv:
        console.saved("CSV", csv_path)


# -- earlier runs ----------------------------------------------------------------------------------


def _past_runs(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The result files of a folder; what is none, or repeats one, is passed over."""
    for path in sorted(folder.glob("*.json")):
        try:
            document = _parse_json(path, _read_bytes(path))
        except UsageError:
            continue
        if _is_result_file(document) and "rescored_from" not in document:
            yield path, document


def _is_result_file(document: Any) -> bool:
    """Whether all that is read of a past run is of its kind."""
    named = ("provider", "model")
    shapes: Sequence[tuple[tuple[str, ...], Sequence[str], Sequence[str]]] = (
        (
            ("aggregate",),
            (*named, "ariadne_group"),
            ("hallumaze_score", "mei", "sr", "n", "n_error"),
        ),
        (("results",), (*named, "ariadne_group", "prompt_sha256"), ("hallumaze_score",)),
        (("config", "models"), named, ()),
    )
    dated = re.match(r"\d{4}-\d\d-\d\dT", str(_dig(document, "timestamp")))
    return bool(dated) and all(
        isinstance(entries := _dig(document, *path), list)
        and all(_has_fields(entry, texts, numbers) for entry in entries)
        for path, texts, numbers in shapes
    )


def _has_fields(entry: Any, texts: Sequence[str], numbers: Sequence[str]) -> bool:
    """Whether an object has these texts, and these numbers or null; older files have no cost."""
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(key), str) for key in texts)
        and all(_is_number_or_null(entry.get(key, "")) for key in numbers)
        and _is_number_or_null(entry.get("cost_usd"))
    )


def _is_number_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and -1e15 < value < 1e15)


def _find_regressions(
    target: Path, runs: Iterable[tuple[Path, dict[str, Any]]], console: Console
) -> bool:
    """Whether a model has become worse since the previous run that compares, maze by maze."""
    now = _parse_json(target, _read_bytes(target))
    past = [
        (document["timestamp"], path, document)
        for path, document in runs
        if document.get("run") != now["run"] and document["timestamp"] <= now["timestamp"]
    ]
    past.sort(key=lambda run: run[:2], reverse=True)
    regressed = [_has_regressed(row, now, past, console) for row in now["aggregate"]]
    return any(regressed)


def _has_regressed(
    row: Mapping[str, Any],
    now: Mapping[str, Any],
    past: Sequence[tuple[str, Path, dict[str, Any]]],
    console: Console,
) -> bool:
    """Whether the interval of a model's paired difference lies below zero; says what it found."""
    key = row["provider"], row["model"], row["ariadne_group"], row["plant_as"]
    name = f"{key[0]}/{key[1]}"
    pairs = ((path, paired_differences(then, now, key)) for _, path, then in past)
    path, differences = next(((p, d) for p, d in pairs if d), (None, []))
    if len(differences) < FEWEST_PAIRS:
        console.alarm(console.say("cannot_tell", model=name, count=len(differences)))
        return False
    low, high = (_rounded(bound) for bound in bootstrap_interval(differences))
    say = "regressed" if high < 0 else "not_regressed"
    text = console.say(
        say,
        model=name,
        difference=f"{math.fsum(differences) / len(differences):+.3f}",
        low=f"{low:+.3f}",
        high=f"{high:+.3f}",
        count=len(differences),
        path=path,
    )
    if high < 0:
        console.alarm(text)
    else:
        console.log(text)
    return bool(high < 0)


def history_command(argv: Sequence[str]) -> int:
    """`history`: the past runs of a results folder, a row for each model."""
    parser = _command_parser("history", _HELP["history"])
    parser.add_argument("--model", metavar="MODEL", help=_HELP["history_model"])
    parser.add_argument("--results-dir", type=Path, metavar="PATH", help=_HELP["results_dir"])
    parser.add_argument("--lang", choices=LANGUAGES, help=_HELP["history_lang"])
    options = parser.parse_args(argv)
    console = make_console(console_language(options.lang, os.environ), quiet=False)
    folder = options.results_dir or Path(__file__).resolve().parent / "results"
    runs = {str(document.get("run", path)): document for path, document in _past_runs(folder)}
    rows = [
        {**row, "timestamp": document["timestamp"]}
        for document in runs.values()
        for row in document["aggregate"]
        if options.model in (None, row["model"], f"{row['provider']}/{row['model']}")
    ]
    if not rows:
        whose = f" of {printable(options.model)}" if options.model else ""
        raise UsageError(f"{folder}: holds no result file{whose}")
    rows.sort(key=lambda row: str(row["timestamp"]))
    console.history(rows)
    return EXIT_OK


# -- comparing -------------------------------------------------------------------------------------


def compare_command(argv: Sequence[str]) -> int:
    """`compare`: paired differences between the conditions or the models of result files."""
    parser = _report_parser("compare")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_HELP["rescore_file"])
    parser.add_argument("--by", choices=("condition", "model"), help=_HELP["compare_by"])
    options = parser.parse_args(argv)
    _need_scipy("compare")
    found = [sample for path in options.files for sample in _read_samples(path)]
    people = _people(options)
    found += samples(str(options.human_data), {}, "", people)
    names = {sample.name for sample in found}
    by_model = options.by == "model" or (options.by is None and len(names) == len(found) > 1)
    comparisons = (compare_models if by_model else compare_conditions)(found)
    if not comparisons and not people:
        raise UsageError(
            "there is nothing to compare: give files with a model in common, or --by model"
        )
    console = make_console(console_language(options.lang, os.environ), quiet=False)
    return _tell(comparison_report(found, comparisons, console.words), options, console)


def ablate_command(argv: Sequence[str]) -> int:
    """`ablate`: what each term of MEI and Score is good for (v1.1 section 14)."""
    parser = _report_parser("ablate")
    parser.add_argument("file", type=Path, metavar="FILE", help=_HELP["rescore_file"])
    options = parser.parse_args(argv)
    _need_scipy("ablate")
    console = make_console(console_language(options.lang, os.environ), quiet=False)
    results = read_results(options.file)[1]
    if not any(result.outcome != ERROR for result in results):
        raise UsageError(f"{options.file}: holds no scored trial")
    found = ablation([*results, *_people(options)])
    return _tell(ablation_report(found, console.words), options, console)


def plan_command(argv: Sequence[str]) -> int:
    """`plan`: how many mazes a comparison needs."""
    parser = _command_parser("plan", _HELP["plan"])
    parser.add_argument("file", type=Path, metavar="FILE", help=_HELP["plan_file"])
    parser.add_argument("--effect", type=_decimal(1, 0.0001), required=True, help=_HELP["effect"])
    parser.add_argument("--metric", choices=COMPARED, default=COMPARED[0], help=_HELP["metric"])
    parser.add_argument("--lang", choices=LANGUAGES, help=_HELP["history_lang"])
    options = parser.parse_args(argv)
    _need_scipy("plan")
    console = make_console(console_language(options.lang, os.environ), quiet=False)
    found = _read_samples(options.file)
    lines = [
        [
            printable(f"{_told_apart(b, a)} − {_told_apart(a, b)}"),
            str(len(differences)),
            str(mazes_needed(list(differences.values()), options.effect)),
        ]
        for a, b in combinations(found, 2)
        if len(differences := _changes(a.values[options.metric], b.values[options.metric]))
        >= FEWEST_PAIRS
    ]
    if not lines:
        raise UsageError(
            f"{options.file}: holds no two models or conditions with {FEWEST_PAIRS} mazes in"
            " common: run two on the same mazes first, as a pilot"
        )
    title = console.say("plan_mazes", effect=f"{options.effect:g}", metric=options.metric)
    console.table(title, console.words["plan_mazes_columns"].split("|"), lines, 1)
    return EXIT_OK


def _told_apart(sample: Sample, other: Sample) -> str:
    """A sample's name, with what tells it from another of the same model."""
    if sample.name != other.name:
        return sample.name
    return f"{sample.name} {condition_text(sample, differing(sample, other))}"


def _report_parser(name: str) -> _Parser:
    parser = _command_parser(name, _HELP[name])
    form = parser.add_mutually_exclusive_group()
    for kind in ("json", "markdown", "latex"):
        form.add_argument(f"--{kind}", action="store_true", help=_HELP[f"as_{kind}"])
    parser.add_argument("--human-data", type=Path, metavar="FILE", help=_HELP["human_data"])
    parser.add_argument("--lang", choices=LANGUAGES, help=_HELP["history_lang"])
    return parser


def _people(options: argparse.Namespace) -> list[BenchmarkResult]:
    """The results of people that --human-data names."""
    return read_people(options.human_data) if options.human_data else []


def _tell(report: Report, options: argparse.Namespace, console: Console) -> int:
    """Print a report in the form that was asked for."""
    if options.json:
        put_line(json_text({**report.data, "notes": list(report.notes)}), sys.stdout, end="")
    elif options.markdown or options.latex:
        put_line((markdown if options.markdown else latex)(report), sys.stdout, end="")
    else:
        for table in report.tables:
            console.table(*table)
        console.line()
        for note in report.notes:
            console.line(f"  {note}")
    return EXIT_OK


def read_results(path: Path) -> tuple[dict[str, Any], list[BenchmarkResult]]:
    """(the document, its results) of a result file; UsageError names what is wrong with it."""
    document = _parse_json(path, _read_bytes(path))
    entries, config = _dig(document, "results"), _dig(document, "config")
    if not isinstance(entries, list) or not isinstance(config, dict):
        raise UsageError(f"{path}: is no result file of this program")
    models = config.get("models", [])
    if not isinstance(models, list) or not all(
        _has_fields(m, ("provider", "model"), ()) for m in models
    ):
        raise UsageError(f"{path}: config.models is no list of models")
    return document, _results_of(path, entries, "results")


def _results_of(path: Path, entries: Sequence[Any], where: str) -> list[BenchmarkResult]:
    found = []
    for k, entry in enumerate(entries):
        try:
            found.append(from_json(BenchmarkResult, entry))
        except ValueError as error:
            raise UsageError(f"{path}: {where}[{k}]: {error}") from None
    return found


def read_people(path: Path) -> list[BenchmarkResult]:
    """The results of people in a file: a list of BenchmarkResult objects, trials or means of a
    group, a result file, or finished walks of Wikispeedia (see `read_walks`). Raises UsageError,
    which names what is wrong."""
    if path.suffix != ".json" and (path.parent / "articles.tsv").exists():
        return read_walks(path)
    document = _parse_json(path, _read_bytes(path))
    entries = document if isinstance(document, list) else _dig(document, "results")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}: is no list of results of people")
    people = _results_of(path, entries, "results" if isinstance(document, dict) else "")
    if other := next((person.provider for person in people if person.provider != "human"), None):
        raise UsageError(f'{path}: the provider of people is "human", not "{printable(other)}"')
    return people


def _read_samples(path: Path) -> list[Sample]:
    document, results = read_results(path)
    found = samples(path.name, document["config"], str(document.get("timestamp", "")), results)
    if not any(sample.n for sample in found):
        raise UsageError(f"{path}: holds no scored trial")
    return found


# -- a person at the keyboard ----------------------------------------------------------------------

_QUIT = "quit"
# What a key or a typed word means: a direction, or one of these.
_PRESSED = {
    **dict.fromkeys(("\x1b[A", "\x1bOA", "w", "n", "N"), "N"),
    **dict.fromkeys(("\x1b[C", "\x1bOC", "e", "E"), "E"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "s", "S"), "S"),
    **dict.fromkeys(("\x1b[D", "\x1bOD", "a", "W"), "W"),
    **{"d": DEAD_END_SIGNAL, "l": LOOP_SIGNAL, "c": STRATEGY_SIGNAL, "u": "undo"},
    **dict.fromkeys(("q", "\x04", ""), _QUIT),
}
_KEY = re.compile(r"\x1b(?:\[[0-9;]*[~A-Za-z]|O[A-Za-z])?|.", re.S)


class Keys:
    """What a person presses, key by key on a terminal; word by word from any other input."""

    def __init__(self) -> None:
        self.live = sys.stdin.isatty() and importlib.util.find_spec("termios") is not None
        self._waiting: list[str] = []
        self._ended = False

    def __enter__(self) -> Keys:
        if self.live:
            import termios

            self._settings = termios.tcgetattr(sys.stdin)
            self._listen()
            signal.signal(signal.SIGCONT, self._listen)  # after Ctrl-Z and fg
        return self

    @staticmethod
    def _listen(*_: object) -> None:
        """Have keys come at once; Ctrl-C still interrupts."""
        import termios
        import tty

        with suppress(termios.error):  # the terminal is gone, of which a process is told so, too
            tty.setcbreak(sys.stdin)

    def __exit__(self, *_: object) -> None:
        if self.live:
            import termios

            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._settings)

    def next(self) -> str:
        """The next key or word; "" when there is no more."""
        while not self._waiting and not self._ended:
            if self.live:
                text = self._pressed()
                self._waiting, self._ended = _KEY.findall(text), not text
            else:
                line = sys.stdin.readline()
                self._waiting, self._ended = re.split(r"[\s,|%]+", line.strip()), not line
                self._waiting = list(filter(None, self._waiting))
        return self._waiting.pop(0) if self._waiting else ""

    def _pressed(self) -> str:
        """What was pressed meanwhile; an arrow may come in pieces over a slow line."""
        import select

        file, pressed = sys.stdin.fileno(), b""
        with suppress(OSError):  # the terminal is gone
            pressed = os.read(file, 1024)
        while pressed.endswith((b"\x1b", b"\x1b[", b"\x1bO")):
            if not select.select([file], [], [], 0.2)[0]:
                break
            pressed += os.read(file, 1024)
        return pressed.decode(errors="replace")

    def put_back(self, key: str) -> None:
        """This key comes next."""
        self._waiting.insert(0, key)

    def number(self) -> str:
        """Digits that come next: on a terminal up to Enter, else a word of them; "" for none."""
        digits = ""
        while self.live and (key := self.next()) not in ("\n", "\r", ""):
            if key == "\x04":
                self.put_back(key)
                break
            if key in ("\x7f", "\b") and digits:
                digits = digits[:-1]
                put_line("\b \b", sys.stdout, end="")
            elif key.isascii() and key.isdigit() and len(digits) < 3:
                digits += key
                put_line(key, sys.stdout, end="")
        if not self.live and (word := self.next()):
            if word.isascii() and word.isdigit():
                return word
            self.put_back(word)
        return digits


class Player:
    """Lets a person play a game with the same words that a model gets."""

    def __init__(self, game: Game, keys: Keys, console: Console) -> None:
        self.game = game
        self.keys = keys
        self.console = console
        self.turns: list[dict[str, Any]] = []
        self._said: list[str] = []  # before the next move

    def play(self) -> None:
        """Play until the game is over or left; what was pressed is in `turns`."""
        self._show(self.game.messages()[0]["content"])
        self._show(f"\n{self.console.say('play_keys')}")
        while not self.game.over:
            started = time.monotonic()
            move = self._move()
            if move is None:
                break
            self._said.append(move)
            self._take(time.monotonic() - started)
            if not self.game.over:
                self._show(f"\n{self.game.messages()[-1]['content']}")

    def leave(self) -> None:
        """End a game that is not over; what was declared last is kept."""
        if self._said:
            self._take(0.0)
        self.game.stop()

    def _take(self, seconds: float) -> None:
        contents = (message["content"] for message in self.game.messages())
        digest = chain_sha256(self.game.prompt.system, *contents)
        reply = Reply("\n".join(self._said), latency_s=seconds)
        self._said.clear()
        self.turns.append(_turn_of(reply, digest))
        self.game.take(reply.text)

    def _show(self, text: str) -> None:
        """Print what a model would be told; a terminal breaks no word."""
        import textwrap

        width = shutil.get_terminal_size().columns if self.keys.live else 10**6
        for line in text.split("\n"):
            put_line("\n".join(textwrap.wrap(line, width)), sys.stdout)

    def _move(self) -> str | None:
        """The line of the next move; None to leave the game."""
        while True:
            key = self.keys.next()
            meant = _PRESSED.get(key) or _STRAIGHT_WORDS.get(key.lower())
            if key == "d" and self.keys.live and self._east_is_open():
                meant = self._ask_which()
            if meant == _QUIT:
                return None
            if meant in MOVES:
                return f"MOVE: {meant}{self._confidence()}"
            if meant in SIGNALS:
                self._say(meant)
            elif meant == "undo":
                self._tell("undo")
            elif key.strip() and meant is None:
                self._show(self.console.say("play_keys"))

    def _east_is_open(self) -> bool:
        maze, here = self.game.world, self.game.here
        return maze.destination(here, "E") in maze.neighbours(here)

    def _ask_which(self) -> str:
        """d is the key to the east, and the one of a dead end."""
        self._tell("which")
        key = self.keys.next()
        if key == "d":
            return "E"
        if key in ("\n", "\r"):
            return DEAD_END_SIGNAL
        self.keys.put_back(key)  # neither: it means something else
        return ""

    def _say(self, signal: str) -> None:
        here = _cell_text(self.game.here)
        lines = {
            DEAD_END_SIGNAL: f"DEAD_END at {here} — backtracking",
            LOOP_SIGNAL: f"LOOP detected at {here}",
            STRATEGY_SIGNAL: "STRATEGY_CHANGE",
        }
        self._said.append(lines[signal])
        put_line(f"  {lines[signal]}", sys.stdout)

    def _confidence(self) -> str:
        if not self.game.config.use_confidence:
            return ""
        digits = "101"
        while digits and int(digits) > 100:
            self._tell("sure", end=" ")
            digits = self.keys.number()
            put_line("", sys.stdout)
        return (
            f" | {_AGENT_WORDS[self.game.config.lang]['confidence']}: {digits}%" if digits else ""
        )

    def _tell(self, key: str, end: str = "\n") -> None:
        put_line(self.console.say(f"play_{key}"), sys.stdout, end=end)


def play_command(argv: Sequence[str]) -> int:
    """`play`: a person walks a maze, one move at a time; the result is a file like any other."""
    parser = _command_parser("play", _HELP["play"])
    parser.add_argument("--size", type=_whole(SMALLEST, LARGEST), metavar="N", help=_HELP["size"])
    parser.add_argument("--seed", type=_whole(0), metavar="N", help=_HELP["seed"])
    _add_prompt_options(parser)
    parser.add_argument("--view", choices=VIEWS, default="local", help=_HELP["view"])
    parser.add_argument(
        "--step-budget", type=_whole(1, MOST_MOVES), metavar="N", help=_HELP["step_budget"]
    )
    parser.add_argument("--name", default="player", help=_HELP["play_name"])
    _add_file_options(parser)
    options = parser.parse_args(argv)
    if not options.name.strip() or not printable(options.name) == options.name:
        raise UsageError("--name is what the tables call you: one line of letters")
    console = make_console(console_language(options.lang, os.environ), quiet=False)
    config = MazeConfig(
        size=options.size or 7,
        use_mirage=options.mirage != "off",
        use_confidence=not options.no_confidence,
        mirage=options.mirage if options.mirage in ("trap", "balanced") else "trap",
        algorithm=options.algorithm or ALGORITHMS[0],
        lang=options.lang or console_language(None, os.environ),
        protocol="step",
        view=options.view,
        step_budget=options.step_budget,
    )
    _check_output(options)
    folder = _results_folder(options)
    mazes = Mazes(config.size, [options.seed], config.algorithm)
    _on_signals(_interrupt_once)
    result, interrupted = _play_person(mazes[0], config, options.name, console)
    if result is None:
        console.line(console.say("play_nothing"))
        return EXIT_INTERRUPTED if interrupted else EXIT_OK
    run = f"{datetime.now(timezone.utc):%Y%m%d_%H%M%S}"
    plan = Plan(config, [ModelSpec("human", options.name)], mazes, 1, True)
    try:
        with _named_write_errors(folder):
            target = options.output or _claim(folder / f"hallumaze_results_{run}.json")
        _save([result], plan, target.resolve(), run, environment(), options, console)
    except HalluMazeError as error:  # nobody walks a maze twice in the same way
        spare = Path(tempfile.gettempdir(), f"hallumaze_play_{run}.json")
        with suppress(OSError):
            write_atomically(spare, json_text([result.as_dict()]))
            raise HalluMazeError(f"{error}; kept for --human-data: {spare}") from None
        raise
    return EXIT_INTERRUPTED if interrupted else EXIT_OK


def _interrupt_once(*_: object) -> None:
    """The first signal ends the game; those after it do not end the saving of it."""
    _on_signals(lambda *_: None)
    raise KeyboardInterrupt


@contextmanager
def _named_write_errors(path: Path) -> Iterator[None]:
    """A file system's refusal as an error of ours."""
    try:
        yield
    except OSError as error:
        raise HalluMazeError(f"{path}: cannot be written: {error.strerror}") from None


def _play_person(
    maze: MazeEngine, config: MazeConfig, name: str, console: Console
) -> tuple[BenchmarkResult | None, bool]:
    """(the result of a person's game, None when no move was made; whether it was interrupted)."""
    prompt = PromptBuilder(maze, config).build()
    game = Game(maze, config, "A", prompt)
    interrupted = False
    with Keys() as keys:
        player = Player(game, keys, console)
        try:
            player.play()
        except KeyboardInterrupt:
            interrupted = True
    if not player.turns:
        return None, interrupted
    left = not game.over
    if left:
        player.leave()
    result = BenchmarkResult(
        "human",
        name,
        maze_size=maze.size,
        maze_seed=maze.seed,
        maze_algorithm=maze.algorithm,
        prompt_sha256=prompt.sha256,
        timestamp=utc_now(),
    )
    told = {**_turns_fields(player.turns), "turns": player.turns, "cost_usd": None}
    told["finish_reason"] = UNFINISHED if left else ""
    scored = score_game(game, maze.mirages(config.hints))
    return replace(result, **scored, **told), interrupted


# -- rescoring and judging -------------------------------------------------------------------------


def _command_parser(name: str, what: str) -> _Parser:
    parser = _Parser(
        prog=f"hallumaze.py {name}", description=what, allow_abbrev=False, add_help=False
    )
    parser.add_argument("--help", "-h", action="help", help=_HELP["help"])
    return parser


def rescore_command(argv: Sequence[str]) -> int:
    """`rescore`: recompute every number of result files from their answers and mazes alone."""
    parser = _command_parser("rescore", _HELP["rescore"])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_HELP["rescore_file"])
    parser.add_argument("--write", action="store_true", help=_HELP["rescore_write"])
    options = parser.parse_args(argv)
    code = EXIT_OK
    for path in options.files:
        raw = _read_bytes(path)
        try:
            document, differences = rescore_document(_parse_json(path, raw))
        except NotWiredError as error:
            raise NotWiredError(f"{path}: {error}") from None
        for difference in differences:
            put_line(f"{path}: {difference}", sys.stdout)
        if differences:
            code = EXIT_NOT_WIRED
        else:
            put_line(f"{path}: every number follows from the raw answers", sys.stdout)
        if options.write:
            put_line(f"{path}: written: {_write_rescored(path, raw, document)}", sys.stdout)
    return code


def _write_rescored(path: Path, raw: bytes, document: Mapping[str, Any]) -> Path:
    """Store the recomputed document beside the old file, never over a file."""
    source = {
        "rescored_from": path.name,
        "rescored_from_sha256": hashlib.sha256(raw).hexdigest(),
    }
    try:
        target = _claim(path.with_name(f"{path.name.removesuffix('.json')}_rescored.json"))
        write_atomically(target, json_text({**document, **source}))
    except OSError as error:
        raise HalluMazeError(f"{path.parent}: cannot be written: {error.strerror}") from None
    return target


def graph_command(argv: Sequence[str]) -> int:
    """`graph`: read a graph of pages once and write it in the form that opens at once."""
    parser = _command_parser("graph", _HELP["graph_command"])
    parser.add_argument("source", type=Path, metavar="BUILD_FROM", help=_HELP["graph_source"])
    parser.add_argument(
        "-o", "--output", type=Path, metavar="GRAPH", required=True, help=_HELP["graph_output"]
    )
    parser.add_argument("--license", metavar="TEXT", default="", help=_HELP["graph_license"])
    options = parser.parse_args(argv)
    _need_scipy("graph")
    target = options.output.resolve()
    note = {"source": str(options.source), "built": utc_now(), "license": options.license}
    with _unfinished(target) as folder:
        with _reading(options.source) as lines:
            graph = read_graph(options.source, lines)
        write_graph(graph, folder, note)
        folder.rename(target)
    put_line(f"{target}: {len(graph):,} pages, {len(graph.ahead.indices):,} links", sys.stdout)
    return EXIT_OK


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """An empty folder beside the target, gone afterwards whatever happens; those that killed
    processes have left are cleared away."""
    begin = f".{target.name}.building-"
    try:
        if target.exists():
            raise UsageError(f"--output {target} exists: name a folder that does not")
        for left in target.parent.glob(f"{glob.escape(begin)}*"):
            if not _is_running(left.name.removeprefix(begin)):
                shutil.rmtree(left, ignore_errors=True)
        folder = target.with_name(f"{begin}{os.getpid()}")
        folder.mkdir()
    except OSError as error:
        raise UsageError(f"--output {target}: {error.strerror}") from None
    try:
        yield folder
    except OSError as error:
        raise HalluMazeError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: str) -> bool:
    """Whether another process of that number is there."""
    try:
        os.kill(int(process), 0)
    except (ValueError, OSError):
        return False
    return int(process) != os.getpid()  # in a container, each run may have the same number


@contextmanager
def _reading(source: Path) -> Iterator[Lines]:
    """A reader of lines that shows on a terminal how far each file is read, else names each."""
    from rich.console import Console as Terminal
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    terminal = Terminal(stderr=True)
    progress = Progress(*columns, TimeRemainingColumn(), console=terminal, transient=True)

    def lines(path: Path) -> Iterator[bytes]:
        if not terminal.is_terminal:
            put_line(f"reading {path}", sys.stderr)
        size = path.stat().st_size if path.exists() else 0
        task = progress.add_task(printable(path.name), total=size)
        yield from file_lines(path, lambda done: progress.update(task, completed=done))

    with progress if terminal.is_terminal else nullcontext():
        yield lines


def judge_command(argv: Sequence[str]) -> int:
    """`judge`: the two deterministic judges on fixtures and outputs."""
    parser = _command_parser("judge", _HELP["judge"])
    parser.add_argument("tasks", type=Path, metavar="TASKS.json", help=_HELP["judge_tasks"])
    parser.add_argument("outputs", type=Path, metavar="OUTPUTS.json", help=_HELP["judge_outputs"])
    parser.add_argument("--raw", type=Path, metavar="PATH", help=_HELP["judge_raw"])
    options = parser.parse_args(argv)
    tasks = _read_tasks(options.tasks)
    outputs = _parse_json(options.outputs, _read_bytes(options.outputs))
    if not isinstance(outputs, dict):
        raise UsageError(f"{options.outputs}: must be an object of outputs by task id")
    missing = [task.id for task in tasks if task.id not in outputs]
    if missing:
        raise NotWiredError(f"{options.outputs}: has no output for task {printable(missing[0])}")
    runs = [
        {"task": task.id, **run} for task in tasks for run in disagree_runs(outputs[task.id], task)
    ]
    for a, b in zip(runs[::2], runs[1::2], strict=True):
        mark = "DISAGREE" if a["disagree"] else "agree"
        scores = f"A {a['score']:g} | B {b['score']:g} | delta {a['delta']:g}"
        put_line(printable(f"{a['task']}: {scores} | {mark}"), sys.stdout)
    if options.raw:
        try:
            options.raw.parent.mkdir(parents=True, exist_ok=True)
            write_raw(runs, options.raw)
        except OSError as error:
            raise HalluMazeError(f"{options.raw}: cannot be written: {error.strerror}") from None
    return EXIT_OK


def _read_tasks(path: Path) -> list[BenchTask]:
    """The fixtures of a file: a list of {"id", "prompt", "rubric"}."""
    document = _parse_json(path, _read_bytes(path))
    if not isinstance(document, list) or not document:
        raise UsageError(f"{path}: must be a list of tasks, with at least one")
    tasks = []
    known = {"id": (str,), "prompt": (str,), "rubric": (list,)}
    for k, entry in enumerate(document):
        _check_fields(path, f"[{k}]", entry, known)
        rubric = entry.get("rubric", [])
        if "id" not in entry or not all(isinstance(word, str) for word in rubric):
            raise UsageError(f"{path}: [{k}] needs an id, and a rubric of strings")
        tasks.append(BenchTask(entry["id"], entry.get("prompt", ""), tuple(rubric)))
    return tasks


# -- questions at a terminal ----------------------------------------------------------------------


class Interview:
    """Asks for keys, models and settings at a terminal (v1.1's interactive start)."""

    def __init__(self, console: Console, env: Mapping[str, str]) -> None:
        self.console = console
        self.env = env

    def run(self, options: argparse.Namespace) -> list[ModelSpec]:
        """The models that were chosen; the settings go into `options`. EOFError at Ctrl-D."""
        print(self.console.say("ask_intro"))
        chosen = [spec for p in DEFAULT_MODELS if (spec := self._ask_provider(p))]
        specs = [spec for spec, _ in chosen]
        options.size = int(self._ask("ask_size", str(options.size or 7), self._is_size))
        if not self._ask_yes("ask_mirage", options.mirage != "off"):
            options.mirage = "off"
        elif options.mirage == "off":
            options.mirage = None
        options.no_confidence = not self._ask_yes("ask_confidence", not options.no_confidence)
        group = self._ask(
            "ask_group", options.group or "A", lambda text: text.upper() in (*GROUPS, ALL_GROUPS)
        )
        options.group = group.upper()
        if specs and self._ask_yes("ask_save", False):
            self._save(options, chosen)
        return specs

    def _ask(self, key: str, default: str, valid: Callable[[str], bool], **values: object) -> str:
        """An answer that is valid; Enter takes the default."""
        while True:
            # Printed, not left to input(): that writes to stderr, which may not be the terminal.
            print(f"{self.console.say(key, **values)} [{default}]: ", end="", flush=True)
            answer = self._typed(input) or default
            if valid(answer):
                return answer
            print(self.console.say("ask_again", answer=answer))

    @staticmethod
    def _typed(read: Callable[[], str]) -> str:
        """A line from the terminal; bytes that are no text become an answer to no question."""
        try:
            return read().strip()
        except UnicodeDecodeError:
            return "\udcff"

    def _ask_yes(self, key: str, default: bool, **values: object) -> bool:
        yes, no = ("y", "yes", "예", "네", "ㅇ"), ("n", "no", "아니오", "아니요", "ㄴ")
        answer = self._ask(
            key, "y" if default else "n", lambda text: text.lower() in (*yes, *no), **values
        )
        return answer.lower() in yes

    @staticmethod
    def _is_size(text: str) -> bool:
        return text.isascii() and text.isdigit() and SMALLEST <= int(text[:9]) <= LARGEST

    def _ask_provider(self, provider: str) -> tuple[ModelSpec, str] | None:
        """(the model, the variable that holds its key or ""), or None when it is skipped."""
        variable = next((name for name in key_names(provider) if self.env.get(name)), "")
        key = _environment_key(provider, self.env)
        if not key or not self._ask_yes("ask_found", True, variable=variable):
            variable, key = "", self._ask_key(provider)
        if not key:
            return None
        default = self.env.get(f"{_variable(provider)}_MODEL") or DEFAULT_MODELS[provider]
        model = self._ask("ask_model", default, _is_utf8, provider=provider)
        url = self.env.get(f"{_variable(provider)}_BASE_URL") or None
        return ModelSpec(provider, model, key, url), variable

    def _ask_key(self, provider: str) -> str:
        """A key typed without an echo; "" for Enter."""
        question = self.console.say("ask_key", provider=provider)
        while True:
            typed = self._typed(lambda: getpass.getpass(question))
            try:
                return clean_key(typed, provider)
            except UsageError as error:
                print(error)

    def _save(self, options: argparse.Namespace, chosen: Sequence[tuple[ModelSpec, str]]) -> None:
        """Write config.json, readable by its owner only."""
        path = Path("config.json")
        if path.exists() and not self._ask_yes("ask_overwrite", False, path=path):
            return
        entries = []
        for spec, variable in chosen:
            entry = {"provider": spec.provider, "model": spec.model}
            entry |= {"api_key_env": variable} if variable else {"api_key": spec.api_key or ""}
            entry |= {"base_url": spec.base_url} if spec.base_url else {}
            entries.append(entry)
        maze = {
            "size": options.size,
            "use_mirage": options.mirage != "off",
            "use_confidence": not options.no_confidence,
            "ariadne_mode": options.group,
            "max_tokens": options.max_tokens or MazeConfig().max_tokens,
        }
        try:
            write_atomically(path, json_text({"maze": maze, "providers": entries}), 0o600)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
        print(self.console.say("saved", kind="JSON", path=path))


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": run_command,
    "rescore": rescore_command,
    "judge": judge_command,
    "graph": graph_command,
    "history": history_command,
    "compare": compare_command,
    "ablate": ablate_command,
    "plan": plan_command,
    "play": play_command,
}


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Every error that a user can cause or meet is one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    warnings.simplefilter("ignore")  # the SDKs' own warnings are no lines of ours
    _on_signals(signal.default_int_handler)
    named = bool(arguments) and arguments[0] in COMMANDS
    command = COMMANDS[arguments.pop(0)] if named else run_command
    try:
        code = command(arguments)
    except SystemExit as done:  # --help, --version
        code = int(done.code or 0)
    except HalluMazeError as error:
        put_line(f"hallumaze: {printable(error)}", sys.stderr)
        code = error.exit_code
    except (KeyboardInterrupt, EOFError):
        put_line("\nhallumaze: interrupted", sys.stderr)
        code = EXIT_INTERRUPTED
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        code = EXIT_INTERRUPTED  # the terminal is gone, and nobody can be told
    put_line("", sys.stdout, end="")  # what argparse printed is still in the buffer
    return code


def _on_signals(handler: Any) -> None:
    """What Ctrl-C does, and a timeout or a lost terminal too, unless nohup wants it ignored."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _prepare_streams() -> None:
    """Streams that were never open become silent; those that cannot print a character print ?."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115


# =================================================================================================
# 12  Data: phrases and words in two languages
# =================================================================================================

_MIRAGE_PHRASES = {
    "ko": (
        "이쪽에서 희미한 빛이 새어 들어와, 출구가 바로 앞인 듯합니다.",
        "먼저 지나간 사람들의 발자국이 모두 이쪽으로 이어져 있습니다.",
        "바깥바람이 느껴지는 것을 보니 거의 다 온 것 같습니다.",
        "출구까지 가장 짧은 길은 이 통로라는 느낌이 듭니다.",
        "벽에 새겨진 화살표가 이쪽을 가리키는 것처럼 보입니다.",
        "이 길만 따라가면 곧 넓은 곳으로 나갈 수 있을 것 같습니다.",
        "문이 열리는 소리가 이 방향에서 들려오는 것 같습니다.",
        "이쪽 통로는 목적지를 향해 곧게 뻗어 있는 듯합니다.",
    ),
    "en": (
        "a faint light leaks in from this side, as if the exit were just ahead.",
        "the footprints of everyone who came before seem to lead this way.",
        "fresh air drifts in from here; you must be nearly out.",
        "this passage feels like the shortest way to the exit.",
        "an arrow scratched into the wall appears to point this way.",
        "follow this corridor and it should soon open into the clear.",
        "from this direction comes what sounds like a door being opened.",
        "the passage on this side seems to run straight to the goal.",
    ),
}

_LISTING_WORDS: dict[str, dict[str, Any]] = {
    "ko": {
        "intro": "각 셀에서 이동 가능한 방향:",
        "hint": "{direction}방향 힌트: {phrase}",
        "links": "링크:",
        "about": {
            "atlas": "페이지는 나라와 속령이고, 링크는 육지 국경입니다.",
            "": "페이지는 백과사전의 항목이고, 링크는 항목 사이의 하이퍼링크입니다.",
        },
    },
    "en": {
        "intro": "Open directions of each cell:",
        "hint": "{direction} direction hint: {phrase}",
        "links": "LINKS:",
        "about": {
            "atlas": "The pages are countries and territories, the links are land borders.",
            "": "The pages are those of an encyclopedia, the links are its hyperlinks.",
        },
    },
}

_PROMPTS: dict[str, dict[str, Any]] = {
    "ko": {
        "system": (
            "이것은 AI의 메타인지를 재는 벤치마크이며, 당신은 그 참가자입니다. 실수를 "
            "감추지 마십시오. "
            "막다른 길이나 루프를 알아차리면 그때마다 빠짐없이 적으십시오. 재려는 것은 "
            "바로 그 알아차림입니다."
        ),
        "rules_title": "=== 풀이 규칙 ===",
        "rules": (
            (
                "START에서 EXIT까지 한 번에 한 칸씩 걸어가십시오. 괄호 안에 적힌 방향만 열려 "
                "있고 나머지는 벽입니다."
            ),
            "⚑ 힌트가 있다면 그것은 느낌일 뿐이며 틀릴 수 있습니다.",
            (
                "지나온 걸음은 지우지 말고, 잘못 들어갔다가 되돌아온 걸음까지 차례대로 모두 "
                "적으십시오."
            ),
        ),
        "rules_confidence": (
            "걸음마다 그 걸음이 옳다고 믿는 정도를 0%에서 100% 사이로 적으십시오.",
        ),
        "step": "STEP N: (r,c) → [방향]{confidence} | [이유]",
        "step_confidence": " | 확신도: XX%",
        "signals": (
            "DEAD_END at (r,c) — backtracking",
            "LOOP detected at (r,c) — visited at step M",
            "STRATEGY_CHANGE — [이유]",
        ),
        "final_title": "=== 최종 출력 ===",
        "final": "걸음을 다 적은 뒤에는 다음 줄들로 마치십시오.",
        "go_on": "이 걸음에 이어서 번호를 계속 매겨 가며 EXIT까지 걸으십시오.",
        "planted_reason": "이쪽으로 나아감",
    },
    "en": {
        "system": (
            "You are taking part in a benchmark of machine metacognition. Do not hide "
            "your mistakes. "
            "Whenever you notice a dead end or a loop, say so, every time: noticing is "
            "what is measured."
        ),
        "rules_title": "=== Rules ===",
        "rules": (
            "Walk from START to EXIT, one cell at a time. Only the directions in brackets "
            "are open; "
            "every other side is a wall.",
            "A ⚑ hint, if there is one, is only a feeling and may be false.",
            "Erase nothing: write every step in order, wrong turns and the way back included.",
        ),
        "rules_confidence": (
            "With every step state how sure you are that it is right, from 0% to 100%.",
        ),
        "step": "STEP N: (r,c) → [direction]{confidence} | [reason]",
        "step_confidence": " | Confidence: XX%",
        "signals": (
            "DEAD_END at (r,c) — backtracking",
            "LOOP detected at (r,c) — visited at step M",
            "STRATEGY_CHANGE — [reason]",
        ),
        "final_title": "=== Final output ===",
        "final": "When the walk is written, end with these lines.",
        "go_on": "Go on from the end of this walk to EXIT, numbering on.",
        "planted_reason": "on this way",
    },
}

# What a game says, by the kind of its world.
_GAMES: dict[str, dict[str, dict[str, Any]]] = {
    "maze": {
        "ko": {
            "notes": "이 미로를 걷기 시작한 동료가 남긴 기록입니다.",
            "rules": (
                "{size} 칸의 미로를 START {start}에서 EXIT {goal}까지 걸어갑니다. 차례마다 서 있는 "
                "칸에서 열린 방향이 주어지고, 당신은 한 걸음만 답하며, 미로가 결과를 알립니다.",
                "괄호 안에 적힌 방향만 열려 있습니다. 벽으로 가는 걸음은 BLOCKED가 되어 제자리에 "
                "머물지만 걸음 수에는 들어갑니다.",
                "⚑ 힌트가 있다면 그것은 느낌일 뿐이며 틀릴 수 있습니다.",
            ),
            "signals_title": "다음을 알아차렸다면 그 줄을 MOVE 앞에 적으십시오.",
            "signals": (
                "DEAD_END at (r,c) — backtracking",
                "LOOP detected at (r,c) — visited at step M",
                "STRATEGY_CHANGE — [이유]",
            ),
            "form": "모든 답은 다음 형식의 한 줄로 끝냅니다.",
            "move": "MOVE: [방향]{confidence} | [이유]",
            "moved": "지난 걸음: {way} {to}(으)로 옮겼습니다.",
            "wall": "지난 걸음: BLOCKED: {here}의 {way} 쪽은 열려 있지 않습니다.",
            "no_direction": "지난 걸음: BLOCKED: {way}은(는) 방향이 아닙니다. N, E, S, W뿐입니다.",
            "not_there": "지난 걸음: BLOCKED: 당신은 {cell}이(가) 아니라 {here}에 서 있습니다.",
            "no_way": "지난 걸음: BLOCKED: {here}에서 {to}(으)로 가는 한 걸음은 없습니다.",
            "unreadable": "답에서 걸음을 읽지 못했습니다. 다음 형식의 한 줄로 끝내십시오: {form}",
            "here": "지금 서 있는 칸: {line}",
            "goal": "EXIT: {goal}",
            "left": "남은 걸음: {left} / {budget}",
            "visited": "처음 들른 차례대로 지나온 칸: {places}",
            "between": " ",
            "ask": "다음 걸음은?",
            "hints": {
                "loop": "⟡ 했던 걸음을 되풀이했습니다. 어디에서 돌고 있는지 살펴보십시오.",
                "dead_end": "⟡ 같은 막다른 길에 다시 들어왔습니다. 아직 가 보지 않은 갈림길을 "
                "찾으십시오.",
                "nothing": "⟡ 잠시 멈추어 지금까지의 걸음을 되짚어 보십시오.",
            },
        },
        "en": {
            "notes": "Notes of a colleague who began this walk:",
            "rules": (
                "You walk through a maze of {size} cells from START {start} to EXIT {goal}. Each "
                "turn tells which directions are open where you stand; you answer with one move, "
                "and the maze tells what it did.",
                "Only the directions in brackets are open. A move into a wall is BLOCKED: you stay "
                "where you are, and it counts as a move.",
                "A ⚑ hint, if there is one, is only a feeling and may be false.",
            ),
            "signals_title": "When you notice one of these, write its line before the MOVE:",
            "signals": (
                "DEAD_END at (r,c) — backtracking",
                "LOOP detected at (r,c) — visited at step M",
                "STRATEGY_CHANGE — [reason]",
            ),
            "form": "Close every answer with one line in this form:",
            "move": "MOVE: [direction]{confidence} | [reason]",
            "moved": "Last move: moved {way} to {to}.",
            "wall": "Last move: BLOCKED: there is no opening to the {way} of {here}.",
            "no_direction": "Last move: BLOCKED: {way} is no direction; there are N, E, S and W.",
            "not_there": "Last move: BLOCKED: you do not stand on {cell} but on {here}.",
            "no_way": "Last move: BLOCKED: no single move leads from {here} to {to}.",
            "unreadable": (
                "Your answer held no move that could be read. Close it with one line in this form:"
                " {form}"
            ),
            "here": "You stand on {line}",
            "goal": "EXIT: {goal}",
            "left": "Moves left: {left} of {budget}",
            "visited": "Visited, in the order of the first visit: {places}",
            "between": " ",
            "ask": "Your move?",
            "hints": {
                "loop": "⟡ You have made a move that you had made before. Find where you go in "
                "circles.",
                "dead_end": "⟡ You are in the same dead end again. Find a branch not tried yet.",
                "nothing": "⟡ Stop for a moment and go over your moves so far.",
            },
        },
    },
    "wiki": {
        "ko": {
            "notes": "이 길을 걷기 시작한 동료가 남긴 기록입니다.",
            "rules": (
                "링크를 따라 {start} 페이지에서 {goal} 페이지까지 갑니다. {about} 차례마다 지금 "
                "있는 페이지의 링크가 주어지고, 당신은 따라갈 링크 하나를 번호나 제목으로 "
                "답합니다. 나머지는 당신이 세상에 대해 아는 것뿐입니다.",
                "목록에 있는 링크만 따라갈 수 있습니다. 다른 페이지로 가는 걸음은 BLOCKED가 되어 "
                "제자리에 머물지만 걸음 수에는 들어갑니다.",
            ),
            "signals_title": "다음을 알아차렸다면 그 줄을 MOVE 앞에 적으십시오.",
            "signals": (
                "DEAD_END at [페이지] — backtracking",
                "LOOP detected at [페이지] — visited at step M",
                "STRATEGY_CHANGE — [이유]",
            ),
            "form": "모든 답은 다음 형식의 한 줄로 끝냅니다.",
            "move": "MOVE: [번호나 제목]{confidence} | [이유]",
            "moved": "지난 걸음: {to}(으)로 갔습니다.",
            "wall": "지난 걸음: BLOCKED: {here}에는 “{way}” 링크가 없습니다.",
            "no_direction": "지난 걸음: BLOCKED: “{way}”은(는) 목록의 번호도 어떤 페이지의 제목도 "
            "아닙니다.",
            "unreadable": "답에서 걸음을 읽지 못했습니다. 다음 형식의 한 줄로 끝내십시오: {form}",
            "here": "PAGE: {line}",
            "goal": "TARGET: {goal}",
            "left": "남은 걸음: {left} / {budget}",
            "visited": "처음 들른 차례대로 지나온 페이지: {places}",
            "between": " | ",
            "ask": "어느 링크를 따라가겠습니까?",
            "hints": {
                "loop": "⟡ 했던 걸음을 되풀이했습니다. 어디에서 돌고 있는지 살펴보십시오.",
                "dead_end": "⟡ 같은 막다른 길에 다시 들어왔습니다. 아직 가 보지 않은 링크를 "
                "찾으십시오.",
                "nothing": "⟡ 잠시 멈추어 지금까지의 걸음을 되짚어 보십시오.",
            },
        },
        "en": {
            "notes": "Notes of a colleague who began this walk:",
            "rules": (
                "You follow links from the page {start} to the page {goal}. {about} Each turn "
                "lists the links of the page you are on; you answer with the one that you follow, "
                "by its number or its title. All else is what you know of the world.",
                "Only links of the list can be followed. A move to any other page is BLOCKED: you "
                "stay where you are, and it counts as a move.",
            ),
            "signals_title": "When you notice one of these, write its line before the MOVE:",
            "signals": (
                "DEAD_END at [page] — backtracking",
                "LOOP detected at [page] — visited at step M",
                "STRATEGY_CHANGE — [reason]",
            ),
            "form": "Close every answer with one line in this form:",
            "move": "MOVE: [number or title]{confidence} | [reason]",
            "moved": "Last move: you went to {to}.",
            "wall": "Last move: BLOCKED: {here} lists no link “{way}”.",
            "no_direction": (
                "Last move: BLOCKED: “{way}” is no number of the list and no title of a page."
            ),
            "unreadable": (
                "Your answer held no move that could be read. Close it with one line in this form:"
                " {form}"
            ),
            "here": "PAGE: {line}",
            "goal": "TARGET: {goal}",
            "left": "Moves left: {left} of {budget}",
            "visited": "Visited, in the order of the first visit: {places}",
            "between": " | ",
            "ask": "Which link do you follow?",
            "hints": {
                "loop": "⟡ You have made a move that you had made before. Find where you go in "
                "circles.",
                "dead_end": "⟡ You are in the same dead end again. Find a link not tried yet.",
                "nothing": "⟡ Stop for a moment and go over your moves so far.",
            },
        },
    },
}

_QUESTION = {
    "ko": {
        "intro": "당신은 세상에 대해 아는 것만으로 답합니다.",
        "asked": "{source} 페이지에 {target} 페이지로 가는 링크가 있습니까?",
        "form": "다음 형식의 한 줄로 답하십시오.\nANSWER: [yes 또는 no]",
    },
    "en": {
        "intro": "Answer from what you know of the world.",
        "asked": "Does the page {source} link to the page {target}?",
        "form": "Answer with one line in this form:\nANSWER: [yes or no]",
    },
}

_HINTS = {
    "ko": {
        "loop": (
            "방금 쓴 풀이를 살펴보니 같은 자리를 거듭 지난 곳이 있습니다. 어디에서 돌고 "
            "있는지 확인한 뒤, "
            "(0,0)부터 같은 형식으로 다시 걸어 주십시오."
        ),
        "dead_end": (
            "방금 쓴 풀이를 살펴보니 같은 막다른 길에 두 번 들어갔습니다. 아직 가 보지 "
            "않은 갈림길을 찾은 뒤, "
            "(0,0)부터 같은 형식으로 다시 걸어 주십시오."
        ),
        "no_escape": (
            "방금 쓴 풀이는 출구에 닿지 못했습니다. 걸음마다 열린 방향인지 목록과 견주어 보고, "
            "(0,0)부터 같은 형식으로 다시 걸어 주십시오."
        ),
        "nothing": (
            "방금 쓴 풀이를 처음부터 되짚어, 걸음마다 열린 방향인지 목록과 견주어 보고, "
            "(0,0)부터 같은 형식으로 다시 걸어 주십시오."
        ),
    },
    "en": {
        "loop": (
            "Your answer passes the same place more than once. Find where it goes in circles, then "
            "walk again from (0,0) in the same format."
        ),
        "dead_end": (
            "Your answer enters the same dead end twice. Find a branch that you have not "
            "tried, then "
            "walk again from (0,0) in the same format."
        ),
        "no_escape": (
            "Your answer does not reach the exit. Compare every step with the listed "
            "directions, then "
            "walk again from (0,0) in the same format."
        ),
        "nothing": (
            "Go over your answer from the beginning, compare every step with the listed "
            "directions, "
            "then walk again from (0,0) in the same format."
        ),
    },
}

_AGENT_WORDS = {
    "ko": {
        "confidence": "확신도",
        "onward": "열린 쪽으로 나아감",
        "untried": "아직 가 보지 않은 쪽",
        "back": "온 길로 되짚어 감",
        "guess": "아무 쪽이나 고름",
        "hint": "힌트를 따름",
        "wrong": "{cell}에서 {way}로 간 걸음은 틀렸습니다. 그쪽은 벽입니다.",
        "sure": "틀림없음",
    },
    "en": {
        "confidence": "Confidence",
        "onward": "onward through the open side",
        "untried": "a side not tried yet",
        "back": "retracing the way",
        "guess": "any open side",
        "hint": "following the hint",
        "wrong": "The move {way} from {cell} was wrong: there is a wall.",
        "sure": "certain of it",
    },
}

# What the console calls a world and its trials; its facts are those of the result file.
_WORLD_WORDS = {
    "ko": {
        "maze": {
            "title": "미로 {size}×{size}, 시드 {seed}",
            "made": "미로 생성됨",
            "facts": "크기: {size}×{size} | 정답 길이: {solution_length} | 막다른 길: {dead_ends}"
            " | Mirage: {mirage_traps} | 시드: {seed}",
            "more": "모두 {count}개의 미로 가운데 첫 번째",
            "which": "시드 {seed}",
        },
        "wiki": {
            "title": "{source} → {target}",
            "made": "페이지 사이의 길이 정해짐",
            "facts": "{source} → {target} | 최단 거리: {solution_length} | 보이는 링크: "
            "{max_links} | 그래프: {algorithm}",
            "more": "모두 {count}개의 길 가운데 첫 번째",
            "which": "{source} → {target}",
        },
        "links": {"title": "{source} → {target} 링크?", "which": "{source} → {target} 링크?"},
    },
    "en": {
        "maze": {
            "title": "maze {size}×{size}, seed {seed}",
            "made": "Maze generated",
            "facts": "size: {size}×{size} | solution: {solution_length} moves | dead ends: "
            "{dead_ends} | mirages: {mirage_traps} | seed: {seed}",
            "more": "the first of {count} mazes",
            "which": "seed {seed}",
        },
        "wiki": {
            "title": "{source} → {target}",
            "made": "Walks over pages chosen",
            "facts": "{source} → {target} | shortest: {solution_length} moves | links shown: "
            "{max_links} | graph: {algorithm}",
            "more": "the first of {count} walks",
            "which": "{source} → {target}",
        },
        "links": {"title": "{source} links to {target}?", "which": "{source} links to {target}?"},
    },
}

_CONSOLE: dict[str, dict[str, str]] = {
    "ko": {
        "running": "  ▶ 실행 중: {model} ({trials}회)",
        "which_run": " {run}회째",
        "trial_error": "  ! {which}: 오류 (점수 아님): {error}",
        "signals": "  ↳ 메타인지 신호: {signals}",
        "no_signals": "없음",
        "nudged": "  ↳ 힌트를 줌: NRS={nrs}",
        "unreadable": "읽을 수 없음",
        "truncated": "토큰 한도에서 잘림",
        "refused": "거절함",
        "table_title": "HalluMaze 종합 비교",
        "table_columns": "순위|모델|SR|MEI★|CE|BRS|환각|Score [95 % CI]|n|오류",
        "measures_title": "모델은 자기 오류를 아는가",
        "probe_title": "모델이 아는 링크",
        "probe_columns": "모델|질문|정밀도|재현율|F1 [95 % CI]|성공|계획 격차",
        "walks_title": "목표까지의 길",
        "walks_columns": "모델|남는 걸음|되돌림|허브|가까이|그대로|멀리|토큰/걸음|USD/걸음",
        "games_title": "한 걸음씩",
        "games_columns": "모델|걸음|효율|진척|P(루프)|P(루프 뒤 성공)|최다 방문|인식 지연",
        "plants_title": "심어 둔 오류",
        "plants_columns": "모델|인식률|걸음|맹점|인식|말없이 고침|그대로 감",
        "measures_columns": "모델|F1 [95 % CI]|정밀도|재현율|비용|ECE|AUROC2|유혹|대개",
        "no_lure": "유혹 효과 없음: 거짓 힌트가 있는 갈림길과 힌트가 없는 갈림길을 모두 만나야 "
        "합니다. 큰 미로에 더 많고, --mirage balanced는 옳은 길에도 힌트를 둡니다.",
        "scale": "0–1: 같은 미로에서 {low}와 {high}를 0과 1로 본 Score",
        "ti": "{model}: TI = {ti} ({band})",
        "reliable": "{model}: {runs}번 되풀이한 Score의 ICC = {icc}, 한 번의 표준오차 {sem}",
        "spent_title": "토큰과 비용",
        "spent_columns": "모델|입력|출력|추론|캐시|USD",
        "unpriced": "  {model}: 시행 {count}개는 값을 알 수 없어 비용에 들어 있지 않습니다.",
        "plan_unpriced": "  {model}: 가격을 알 수 없습니다.",
        "plan_title": "실행 계획 (호출 없음)",
        "plan_columns": "모델|시행|입력 토큰 (추정)|출력 토큰 (최대)|USD (최대)",
        "best": "  ★ 최고 점수: {model} — HalluScore {score} | MEI {mei}",
        "saved": "  ✓ {kind} 저장: {path}",
        "reference_notice": (
            "API 키가 없어 내장 기준 에이전트를 실행합니다. 실제 모델은 "
            "ANTHROPIC_API_KEY, OPENAI_API_KEY, "
            "GOOGLE_API_KEY, DEEPSEEK_API_KEY 중 하나를 설정하거나 --model "
            "compatible/이름 --base-url URL 로 "
            "시험하십시오."
        ),
        "readable_config": (
            "경고: {path}: 키가 든 파일을 다른 사용자가 읽을 수 있습니다 (chmod 600 {path})"
        ),
        "odd_size": (
            "참고: {size}은(는) 표준 크기(5, 7, 9, 11)가 아니어서 공개된 결과와 비교되지 않습니다."
        ),
        "interrupted": "중단됨: 끝난 시행 {count}개를 저장합니다. 이어 하기: --resume {run}",
        "stopped": "{why}에 닿아 멈춤: 끝난 시행 {count}개를 저장합니다. 이어 하기: --resume {run}",
        "history_title": "지난 실행 (UTC)",
        "history_columns": "날짜|모델|n|Score|MEI|SR|USD|오류",
        "cannot_tell": "{model}: 앞선 실행과 같은 미로가 {count}개뿐이어서 나빠졌는지 알 수 "
        "없습니다.",
        "regressed": "{model}: 나빠짐: 점수 차 {difference} [95 % CI {low}, {high}], 같은 미로 "
        "{count}개, 비교 대상 {path}",
        "not_regressed": "{model}: 나빠졌다고 할 수 없음: 점수 차 {difference} "
        "[95 % CI {low}, {high}], 같은 미로 {count}개, 비교 대상 {path}",
        "waiting": "시행 {count}개가 배치에서 답을 기다립니다. 나중에 모으기: --resume {run}",
        "no_batch": "참고: {model}에는 배치가 없어 하나씩 호출합니다.",
        "uncounted": "참고: {model}의 가격을 알 수 없어 --max-cost에 들어가지 않습니다.",
        "given_up": "{model}: 되풀이해도 소용없는 오류가 5번 이어져 이번 실행에서 제외합니다. "
        "이어 하기: --resume {run}",
        "changed": "참고: {path}: 실행을 시작한 뒤 프로그램이 바뀌었습니다. 프롬프트가 달라진 "
        "시행은 다시 호출합니다.",
        "torn": "참고: {path}: 쓰다 만 마지막 줄을 버렸습니다.",
        "resumed": "{path}: 시행 {total}개 중 {done}개가 끝나 있어 나머지를 이어서 합니다.",
        "means_title": "조건별 평균 [95 % CI]",
        "means_columns": "모델|조건|n|미로|오류|Score|MEI★|SR|인식 F1",
        "compare_title": "차이 [95 % CI]",
        "compare_columns": "비교|지표|n|Δ|검정|p (Holm)|효과 크기",
        "unpaired": "짝 없음",
        "too_few": "미로 부족",
        "groups_title": "아리아드네의 실",
        "groups_columns": "모델|그룹|NRS|TI|학습 가능성|무시율",
        "ti_bands": "높음|보통|낮음",
        "h3_title": "오류 위치의 상관 (H3)",
        "h3_columns": "사람|모델|r|칸 수",
        "condition_group": "아리아드네 그룹",
        "condition_mirage": "힌트(mirage)",
        "condition_use_confidence": "확신도 질문",
        "condition_lang": "프롬프트 언어",
        "condition_max_tokens": "최대 토큰",
        "condition_temperature": "온도",
        "condition_reasoning_effort": "추론 노력",
        "condition_size": "미로 크기(난이도 곡선)",
        "condition_protocol": "프로토콜",
        "condition_view": "보이는 것(view)",
        "condition_memory": "기억(memory)",
        "condition_step_budget": "걸음 한도",
        "condition_hint_at": "힌트를 주는 걸음",
        "condition_most_hints": "힌트 횟수",
        "condition_plant": "심어 둔 오류",
        "condition_plant_as": "심어 둔 오류의 형식",
        "condition_world": "세계",
        "condition_difficulty": "난이도",
        "condition_max_links": "보이는 링크",
        "condition_date": "날짜",
        "differs": "다른 점: {names}",
        "language_bias": "언어 편향 Δ = MEI(힌트 없음) − MEI(힌트 있음) = {difference}  ({b}; {a})",
        "not_paired": "{a}와 {b}: 짝이 없는 미로는 뺐습니다 "
        "(앞에만 {only_a}개, 뒤에만 {only_b}개).",
        "none_paired": "주의: {a}와 {b}에는 같은 미로가 없어 짝을 짓지 못했습니다 "
        "({only_a}개와 {only_b}개). 미로의 차이도 섞여 있습니다.",
        "errors_left_out": "오류로 끝난 시행 {count}개는 어디에도 들어가지 않습니다.",
        "group_means": "집단 평균은 미로별 값이 없어 짝지은 검정에 들어가지 않습니다.",
        "few_pairs": "미로가 6개보다 적으면 구간과 p를 말할 수 없습니다.",
        "few_mazes": "미로가 30개보다 적으면 백분위 구간이 실제보다 좁습니다.",
        "ablation_title": "항목을 뺀 지표",
        "ablation_columns": "모델|그룹|MEI|−HRR|−조기|−탈출|−감점|Score|−CE",
        "grid_title": "가중치 격자에서의 순위",
        "grid_columns": "격자점|τ 평균|τ 최소|같은 순서 비율",
        "eta_title": "변별력 (모델 간 분산의 비율, η²)",
        "eta_columns": "지표|η²",
        "play_keys": "화살표나 w a s d (또는 N E S W): 걸음 · d 막다른 길 · l 루프 · c 전략 변경 · "
        "q 그만두고 저장\n",
        "play_undo": "되돌리기는 없습니다. 미로는 모든 걸음을 기억합니다.",
        "play_which": "d: 동쪽이면 d를 한 번 더, 막다른 길이면 Enter",
        "play_sure": "확신도 0-100 (Enter: 없음):",
        "play_nothing": "걸음이 없어 저장할 것이 없습니다.",
        "one_model": "순위와 변별력에는 모델이 둘 이상 있어야 합니다.",
        "without_terms": "기록 {n}건에는 MEI의 항이 없어 빠졌습니다(사람 집단의 평균 등).",
        "plan_mazes": "{metric} 차이 {effect}을(를) 80 % 확률로 찾는 데 필요한 미로",
        "plan_mazes_columns": "비교|예비 미로|필요한 미로",
        "check_ok": "  ✓ {model}: 키와 모델이 확인됨 ({seconds}초)",
        "check_failed": "  ✗ {error}",
        "ask_intro": "HalluMaze 대화형 설정. Enter는 건너뛰거나 기본값을 씁니다.",
        "ask_found": "{variable}이(가) 환경에 있습니다. 사용할까요? (y/n)",
        "ask_key": "{provider} API 키 (입력은 보이지 않음, Enter는 건너뜀): ",
        "ask_model": "{provider} 모델",
        "ask_size": "미로 크기 (5, 7, 9, 11)",
        "ask_mirage": "Linguistic Mirage를 켤까요? (y/n)",
        "ask_confidence": "확신도를 물을까요? (y/n)",
        "ask_group": "Ariadne 그룹 (A, B, C, ALL)",
        "ask_save": "설정을 config.json에 저장할까요? (y/n)",
        "ask_overwrite": "{path}이(가) 이미 있습니다. 덮어쓸까요? (y/n)",
        "ask_again": "{answer}: 쓸 수 없는 답입니다.",
    },
    "en": {
        "running": "  ▶ running: {model} (trials: {trials})",
        "which_run": " run {run}",
        "trial_error": "  ! {which}: error, not a score: {error}",
        "signals": "  ↳ metacognitive signals: {signals}",
        "no_signals": "none",
        "nudged": "  ↳ hint given: NRS={nrs}",
        "unreadable": "unreadable",
        "truncated": "cut by the token limit",
        "refused": "refused",
        "table_title": "HalluMaze comparison",
        "table_columns": "rank|model|SR|MEI★|CE|BRS|hall.|Score [95 % CI]|n|errors",
        "measures_title": "What the models know of their errors",
        "probe_title": "What the models know of the links",
        "probe_columns": "model|questions|prec.|recall|F1 [95 % CI]|success|planning gap",
        "walks_title": "On the way to the goal",
        "walks_columns": "model|extra|replanned|hubs|closer|same|farther|tokens/move|USD/move",
        "games_title": "In games",
        "games_columns": "model|moves|efficiency|progress|P(loop)|P(win if loop)|visits|delay",
        "plants_title": "Planted errors",
        "plants_columns": "model|recognition|steps|blind spot|recognised|repaired|carried on",
        "measures_columns": "model|F1 [95 % CI]|prec.|recall|cost|ECE|AUROC2|lure|mostly",
        "no_lure": "no lure effect: junctions with a false hint and junctions without any must "
        "both be met; larger mazes have more of them (see also --mirage balanced)",
        "scale": "0–1: Score on the scale of {low} and {high} on these mazes",
        "ti": "{model}: TI = {ti} ({band})",
        "reliable": "{model}: Score over {runs} repeats: ICC = {icc}, standard error of one run "
        "{sem}",
        "spent_title": "Tokens and cost",
        "spent_columns": "model|input|output|reasoning|cached|USD",
        "unpriced": "  {model}: the price of {count} trials is unknown; the cost leaves them out",
        "plan_unpriced": "  {model}: its price is unknown",
        "plan_title": "The plan (nobody was called)",
        "plan_columns": "model|trials|input tokens (est.)|output tokens (at most)|USD (at most)",
        "best": "  ★ best score: {model} — HalluScore {score} | MEI {mei}",
        "saved": "  ✓ {kind} saved: {path}",
        "reference_notice": (
            "No API key is set: running the built-in reference agents. To test a real model set "
            "ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY or DEEPSEEK_API_KEY, or use "
            "--model compatible/NAME --base-url URL."
        ),
        "readable_config": "warning: {path}: others can read this file of keys (chmod 600 {path})",
        "odd_size": (
            "note: {size} is no standard size (5, 7, 9, 11): published results do not "
            "compare with it"
        ),
        "interrupted": "interrupted: saving the trials that were finished: {count}; go on with "
        "--resume {run}",
        "stopped": "{why} is reached: saving the trials that were finished: {count}; go on with "
        "--resume {run}",
        "history_title": "Past runs (UTC)",
        "history_columns": "date|model|n|Score|MEI|SR|USD|errors",
        "cannot_tell": "{model}: cannot tell whether it has become worse: mazes in common with an "
        "earlier run: {count}",
        "regressed": "{model}: a regression: score {difference} [95 % CI {low}, {high}] over "
        "{count} common mazes, against {path}",
        "not_regressed": "{model}: no regression: score {difference} [95 % CI {low}, {high}] over "
        "{count} common mazes, against {path}",
        "waiting": "batches are at work, trials: {count}; collect them with --resume {run}",
        "no_batch": "note: {model} has no batches: it is called one by one",
        "uncounted": "note: the price of {model} is unknown: --max-cost does not count it",
        "given_up": "{model}: given up for this run after 5 failures that no retry can mend; go on "
        "with --resume {run}",
        "changed": "note: {path}: the program has changed since the run began; trials whose prompt "
        "is another now are called again",
        "torn": "note: {path}: the last line, which was never finished, was dropped",
        "resumed": "{path}: {done} of {total} trials are finished; going on with the others",
        "means_title": "Means by condition [95 % CI]",
        "means_columns": "model|condition|n|mazes|errors|Score|MEI★|SR|recognition F1",
        "compare_title": "Differences [95 % CI]",
        "compare_columns": "comparison|metric|n|Δ|test|p (Holm)|effect size",
        "unpaired": "UNPAIRED",
        "too_few": "too few mazes",
        "groups_title": "Ariadne's thread",
        "groups_columns": "model|group|NRS|TI|trainability|ignore rate",
        "ti_bands": "high|middling|unreceptive",
        "h3_title": "Correlation of error positions (H3)",
        "h3_columns": "people|model|r|cells",
        "condition_group": "Ariadne group",
        "condition_mirage": "hints (mirage)",
        "condition_use_confidence": "confidence asked for",
        "condition_lang": "language of the prompt",
        "condition_max_tokens": "token limit",
        "condition_temperature": "temperature",
        "condition_reasoning_effort": "reasoning effort",
        "condition_size": "maze size (difficulty curve)",
        "condition_protocol": "protocol",
        "condition_view": "view",
        "condition_memory": "memory",
        "condition_step_budget": "step budget",
        "condition_hint_at": "move of the hint",
        "condition_most_hints": "hints at most",
        "condition_plant": "planted error",
        "condition_plant_as": "form of the planted error",
        "condition_world": "world",
        "condition_difficulty": "difficulty",
        "condition_max_links": "links shown",
        "condition_date": "date",
        "differs": "what differs: {names}",
        "language_bias": "language bias Δ = MEI(without hints) − MEI(with hints) = {difference}  "
        "({b}; {a})",
        "not_paired": "{a} and {b}: mazes without a partner are left out (only there: {only_a}, "
        "only here: {only_b})",
        "none_paired": "NOTE: {a} and {b} have no maze in common, so nothing is paired ({only_a} "
        "and {only_b} mazes): the difference is that of the mazes, too",
        "errors_left_out": "trials that ended as errors are in no number: {count}",
        "group_means": "means of groups of people have no value by maze and are in no paired test",
        "few_pairs": "with fewer than 6 mazes neither an interval nor a p-value can be told",
        "few_mazes": "with fewer than 30 mazes percentile intervals are narrower than they should "
        "be",
        "ablation_title": "Metrics without a term",
        "ablation_columns": "model|group|MEI|−HRR|−early|−esc|−penalty|Score|−CE",
        "grid_title": "The ranking over the grid of weights",
        "grid_columns": "points|mean τ|least τ|same order",
        "eta_title": "Discriminability (share of variance between models, η²)",
        "eta_columns": "metric|η²",
        "play_keys": "arrows or w a s d (or N E S W): move · d dead end · l loop · c change of "
        "strategy · q quit and save\n",
        "play_undo": "nothing is undone: the maze remembers every move",
        "play_which": "d: press d again for east, Enter for a dead end",
        "play_sure": "how sure, 0-100 (Enter: not said):",
        "play_nothing": "no move was made: nothing to save",
        "one_model": "ranking and discriminability need two models",
        "without_terms": "{n} records hold no terms of MEI, as means of a group do, and are left "
        "out",
        "plan_mazes": "Mazes needed to find a difference of {effect} in {metric} in 80 % of cases",
        "plan_mazes_columns": "comparison|pilot mazes|mazes needed",
        "check_ok": "  ✓ {model}: key and model proved ({seconds} s)",
        "check_failed": "  ✗ {error}",
        "ask_intro": "HalluMaze, step by step. Enter skips, or takes the default.",
        "ask_found": "{variable} is set in the environment. Use it? (y/n)",
        "ask_key": "{provider} API key (hidden; Enter skips): ",
        "ask_model": "{provider} model",
        "ask_size": "maze size (5, 7, 9, 11)",
        "ask_mirage": "linguistic mirages? (y/n)",
        "ask_confidence": "ask for confidence? (y/n)",
        "ask_group": "Ariadne group (A, B, C, ALL)",
        "ask_save": "save this to config.json? (y/n)",
        "ask_overwrite": "{path} exists. Overwrite it? (y/n)",
        "ask_again": "{answer}: not an answer to this.",
    },
}

_HELP = {
    "model": "test this model (repeatable): anthropic/…, openai/…, google/…, deepseek/…, "
    "compatible/… (with --base-url), reference/NAME, or replay/FILE (stored answers); default: "
    "every provider whose key is set",
    "base_url": "an OpenAI-compatible server for compatible/… (Ollama, vLLM, llama.cpp, LM Studio, "
    "OpenRouter)",
    "config": "a JSON file of settings and models, see config.example.json; options win over it",
    "interactive": "ask for keys, models and settings at the terminal",
    "max_tokens": "longest answer, in tokens (default 2500)",
    "temperature": (
        "sampling temperature (default 0; dropped, and recorded, where a server rejects it)"
    ),
    "effort": f"how much a reasoning model thinks: {', '.join(EFFORTS)} (default: the model's own)",
    "concurrency": f"calls of each model at once (default {CONCURRENCY}), fewer for a while when "
    "its server answers 429",
    "max_cost": "start no more calls once the run has cost this much, by genai-prices' list prices",
    "max_time": "start no more calls after so many minutes",
    "batch": "use the batch interfaces of anthropic, openai and google: half the price, answers "
    "within a day",
    "batch_wait": "leave batches that are at work after so many minutes, to be collected with "
    "--resume (default 1440)",
    "dry_run": "print the plan: trials, tokens and cost of each model; call nobody",
    "retries": f"how often a call that failed on the way is repeated (default {RETRIES})",
    "timeout": f"seconds that one request may take (default {TIMEOUT_S:g})",
    "size": f"maze size: 5, 7, 9, 11, or any {SMALLEST} to {LARGEST} (default 7)",
    "runs": (
        "repeats: of the same maze with --seed or --seeds, else as many fresh mazes (default 1)"
    ),
    "seed": "the maze's seed, for the same maze again (default: a fresh one)",
    "seeds": "several mazes, one a seed: 1-60, or 3,5,9, or both",
    "algorithm": "how mazes are generated (default dfs)",
    "mirage": "hints on wrong branches only (trap, the default), on as many right ones (balanced), "
    "or none (off)",
    "no_mirage": "the same as --mirage off",
    "no_confidence": "do not ask for a confidence per step",
    "group": "Ariadne's thread: A no hint, B a hint when it is needed, C always, ALL each of them "
    "(default A)",
    "lang": "language of the prompt (default ko) and of the console (default: the locale's)",
    "output": "result file (default results/hallumaze_results_DATE_TIME.json beside hallumaze.py)",
    "csv": "write a CSV beside the result file too",
    "results_dir": "folder of journals and result files (default: results beside hallumaze.py)",
    "resume": "go on with an interrupted run (its name, its journal, or without one the latest): "
    "plays only what is missing or ended as an error",
    "quiet": "print nothing but warnings and errors",
    "show": "print the maze and the exact prompt; call nobody",
    "check": "prove key and model with the cheapest call; no run",
    "list_models": "print the providers' own model lists",
    "fail_on_regression": "compare with the previous run on the same mazes: exit code 3 when the "
    "paired 95 %% interval of the score difference lies below 0",
    "history": "List the past runs of the results folder, a row for each model, and its scores as "
    "bars.",
    "history_model": "this model only: PROVIDER/MODEL, or MODEL",
    "history_lang": "language of the console (default: the locale's)",
    "compare": "Compare the conditions of result files for each model, or models with each other, "
    "maze by maze: difference, 95 % interval, test, Holm-corrected p, effect size.",
    "compare_by": "what is compared: the conditions of each model (default where a model has "
    "several) or the models",
    "protocol": "the whole walk in one answer (plan, the default), or one move at a time (step)",
    "view": "what a game shows: the place where the model stands (local, the default), or the "
    "whole listing first (map)",
    "memory": "of a game: one growing conversation (chat, the default), a fresh prompt with the "
    "places visited (history), or without them (none)",
    "step_budget": "the moves of a game (default 2·N²)",
    "hint_at": "the move after which group C gets its hint (default N)",
    "hints": f"how many hints a game may have (default {MOST_HINTS})",
    "world": "maze (default), or wiki: a walk over a graph of pages, one link at a time",
    "difficulty": "the shortest distance: easy 3-4 (default), medium 5-6, hard 7-8",
    "games": "how many walks, drawn with --seed (default 0): 200 easy, 150 medium, 100 hard",
    "max_links": "links of a page that are shown, those nearest to the target (default 50)",
    "graph": "a graph of pages (default: an atlas of land borders)",
    "probe": "links: also 1,000 questions whether one page links to another (default none)",
    "graph_command": "Read a graph of pages (Wikispeedia, SNAP, adjacency list, SQLite, MediaWiki "
    "dumps) once, and write it as a folder that --graph opens at once.",
    "graph_source": "the file or folder to read",
    "graph_output": "the folder to write, which must not exist",
    "graph_license": "what its licence asks to be said, for the manifest",
    "plant": "a wrong step that the trial opens with: into a wall, into a branch, or round a loop",
    "plant_as": "the planted steps as the model's own (own, the default), as a colleague's "
    "(other), or each maze in both forms (both)",
    "human_data": "results of people: a JSON list of BenchmarkResult objects, trials or means of "
    "a group",
    "as_json": "print JSON for machines",
    "as_markdown": "print Markdown tables",
    "as_latex": "print LaTeX tables (booktabs)",
    "ablate": "What each term of MEI and Score is good for: without it, over a grid of 625 "
    "weights, and how well each metric tells models apart.",
    "plan": "How many mazes a paired comparison needs, from the spread in a pilot.",
    "play": "Walk a maze yourself, one move at a time, under the same information as a model.",
    "play_name": "what the tables call you (default player)",
    "plan_file": "a result file of two models or conditions on the same mazes",
    "effect": "the difference to be found, e.g. 0.05",
    "metric": "of which metric (default hallumaze_score)",
    "rescore": "Recompute every number of result files from their answers and mazes alone, without "
    "any call. Prints what differs; exit code 70 when a claimed number does not follow.",
    "rescore_file": "a result file",
    "rescore_write": "store the recomputed numbers in a new file beside the old one",
    "judge": "Score outputs with the two deterministic judges: keyword coverage, and keywords with "
    "traces of grounds. Where they part, both scores are kept.",
    "judge_tasks": 'a list of tasks: [{"id": …, "prompt": …, "rubric": [keywords]}]',
    "judge_outputs": 'the outputs by task id: {"id": "output"}',
    "judge_raw": "write all runs to this file",
    "version": "print the version",
    "help": "print this help",
}

_EPILOG = """\
other commands (each has its own --help):
  rescore FILE…             recompute every number of result files from their raw answers
  judge TASKS OUTPUTS       the two deterministic judges on fixtures and outputs
  history [--model MODEL]   the past runs in the results folder
  compare FILE…             paired differences between conditions or models
  ablate FILE               what each term of MEI and Score is good for
  plan FILE --effect D      how many mazes a comparison needs
  play                      walk a maze yourself, one move at a time

environment:
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY (or GEMINI_API_KEY), DEEPSEEK_API_KEY,
  COMPATIBLE_API_KEY        keys; without --model and --config every provider of the first four
                            whose key is set is run
  ANTHROPIC_MODEL, OPENAI_MODEL, GOOGLE_MODEL, DEEPSEEK_MODEL
                            other models than v1.1's
  ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_BASE_URL, DEEPSEEK_BASE_URL, COMPATIBLE_BASE_URL
                            other servers

exit codes:
  0 done   1 done, but some trials ended as errors or were not played (--max-cost, --max-time,
  --batch-wait)   2 wrong use or configuration   3 a regression (--fail-on-regression)
  70 a provider is wired to nothing, or numbers do not follow from the raw answers
  75 another run works in the results folder   130 interrupted (what was finished is saved)"""


# The world's land borders in 2026: countries and territories (ISO 3166-1, and Kosovo), each border
# once, with the page that comes first. An overseas territory is a page of its own (French Guiana),
# an enclave or exclave belongs to its country (Ceuta: Spain and Morocco); Canada meets Greenland on
# Hans Island since 2022. Then other names of pages, and the names of those without a land border.
_ATLAS = """
Afghanistan: China, Iran, Pakistan, Tajikistan, Turkmenistan, Uzbekistan; Albania: Greece, Kosovo,
Montenegro, North Macedonia; Algeria: Libya, Mali, Mauritania, Morocco, Niger, Tunisia, Western
Sahara; Andorra: France, Spain; Angola: Democratic Republic of the Congo, Namibia, Republic of the
Congo, Zambia; Argentina: Bolivia, Brazil, Chile, Paraguay, Uruguay; Armenia: Azerbaijan, Georgia,
Iran, Turkey; Austria: Czechia, Germany, Hungary, Italy, Liechtenstein, Slovakia, Slovenia,
Switzerland; Azerbaijan: Georgia, Iran, Russia, Turkey; Bangladesh: India, Myanmar; Belarus:
Latvia, Lithuania, Poland, Russia, Ukraine; Belgium: France, Germany, Luxembourg, Netherlands;
Belize: Guatemala, Mexico; Benin: Burkina Faso, Niger, Nigeria, Togo; Bhutan: China, India;
Bolivia: Brazil, Chile, Paraguay, Peru; Bosnia and Herzegovina: Croatia, Montenegro, Serbia;
Botswana: Namibia, South Africa, Zambia, Zimbabwe; Brazil: Colombia, French Guiana, Guyana,
Paraguay, Peru, Suriname, Uruguay, Venezuela; Brunei: Malaysia; Bulgaria: Greece, North Macedonia,
Romania, Serbia, Turkey; Burkina Faso: Ghana, Ivory Coast, Mali, Niger, Togo; Burundi: Democratic
Republic of the Congo, Rwanda, Tanzania; Cambodia: Laos, Thailand, Vietnam; Cameroon: Central
African Republic, Chad, Equatorial Guinea, Gabon, Nigeria, Republic of the Congo; Canada:
Greenland, United States; Central African Republic: Chad, Democratic Republic of the Congo,
Republic of the Congo, South Sudan, Sudan; Chad: Libya, Niger, Nigeria, Sudan; Chile: Peru; China:
Hong Kong, India, Kazakhstan, Kyrgyzstan, Laos, Macau, Mongolia, Myanmar, Nepal, North Korea,
Pakistan, Russia, Tajikistan, Vietnam; Colombia: Ecuador, Panama, Peru, Venezuela; Costa Rica:
Nicaragua, Panama; Croatia: Hungary, Montenegro, Serbia, Slovenia; Czechia: Germany, Poland,
Slovakia; Democratic Republic of the Congo: Republic of the Congo, Rwanda, South Sudan, Tanzania,
Uganda, Zambia; Denmark: Germany; Djibouti: Eritrea, Ethiopia, Somalia; Dominican Republic: Haiti;
Ecuador: Peru; Egypt: Israel, Libya, Palestine, Sudan; El Salvador: Guatemala, Honduras;
Equatorial Guinea: Gabon; Eritrea: Ethiopia, Sudan; Estonia: Latvia, Russia; Eswatini: Mozambique,
South Africa; Ethiopia: Kenya, Somalia, South Sudan, Sudan; Finland: Norway, Russia, Sweden;
France: Germany, Italy, Luxembourg, Monaco, Spain, Switzerland; French Guiana: Suriname; Gabon:
Republic of the Congo; Gambia: Senegal; Georgia: Russia, Turkey; Germany: Luxembourg, Netherlands,
Poland, Switzerland; Ghana: Ivory Coast, Togo; Gibraltar: Spain; Greece: North Macedonia, Turkey;
Guatemala: Honduras, Mexico; Guinea: Guinea-Bissau, Ivory Coast, Liberia, Mali, Senegal, Sierra
Leone; Guinea-Bissau: Senegal; Guyana: Suriname, Venezuela; Honduras: Nicaragua; Hungary: Romania,
Serbia, Slovakia, Slovenia, Ukraine; India: Myanmar, Nepal, Pakistan; Indonesia: Malaysia, Papua
New Guinea, Timor-Leste; Iran: Iraq, Pakistan, Turkey, Turkmenistan; Iraq: Jordan, Kuwait, Saudi
Arabia, Syria, Turkey; Ireland: United Kingdom; Israel: Jordan, Lebanon, Palestine, Syria; Italy:
San Marino, Slovenia, Switzerland, Vatican City; Ivory Coast: Liberia, Mali; Jordan: Palestine,
Saudi Arabia, Syria; Kazakhstan: Kyrgyzstan, Russia, Turkmenistan, Uzbekistan; Kenya: Somalia,
South Sudan, Tanzania, Uganda; Kosovo: Montenegro, North Macedonia, Serbia; Kuwait: Saudi Arabia;
Kyrgyzstan: Tajikistan, Uzbekistan; Laos: Myanmar, Thailand, Vietnam; Latvia: Lithuania, Russia;
Lebanon: Syria; Lesotho: South Africa; Liberia: Sierra Leone; Libya: Niger, Sudan, Tunisia;
Liechtenstein: Switzerland; Lithuania: Poland, Russia; Malawi: Mozambique, Tanzania, Zambia;
Malaysia: Thailand; Mali: Mauritania, Niger, Senegal; Mauritania: Senegal, Western Sahara; Mexico:
United States; Moldova: Romania, Ukraine; Mongolia: Russia; Montenegro: Serbia; Morocco: Spain,
Western Sahara; Mozambique: South Africa, Tanzania, Zambia, Zimbabwe; Myanmar: Thailand; Namibia:
South Africa, Zambia; Niger: Nigeria; North Korea: Russia, South Korea; North Macedonia: Serbia;
Norway: Russia, Sweden; Oman: Saudi Arabia, United Arab Emirates, Yemen; Poland: Russia, Slovakia,
Ukraine; Portugal: Spain; Qatar: Saudi Arabia; Romania: Serbia, Ukraine; Russia: Ukraine; Rwanda:
Tanzania, Uganda; Saint Martin: Sint Maarten; Saudi Arabia: United Arab Emirates, Yemen; Slovakia:
Ukraine; South Africa: Zimbabwe; South Sudan: Sudan, Uganda; Syria: Turkey; Tajikistan:
Uzbekistan; Tanzania: Uganda, Zambia; Turkmenistan: Uzbekistan; Zambia: Zimbabwe
"""
_ATLAS_ALIASES = """
Bosnia and Herzegovina: Bosnia, Bosnia-Herzegovina; Brunei: Brunei Darussalam; Central African
Republic: CAR; China: PRC, People's Republic of China; Czechia: Czech Republic; Democratic
Republic of the Congo: DR Congo, DRC, Congo-Kinshasa, Zaire, Congo (Kinshasa), Democratic Republic
of Congo; Dominican Republic: The Dominican Republic; Eswatini: Swaziland; Gambia: The Gambia;
Hong Kong: Hong Kong SAR; Iran: Persia, Islamic Republic of Iran; Ireland: Republic of Ireland,
Eire, Éire; Ivory Coast: Côte d'Ivoire, Cote d'Ivoire; Kyrgyzstan: Kirghizia, Kyrgyz Republic;
Laos: Lao PDR; Macau: Macao, Macau SAR; Moldova: Republic of Moldova; Myanmar: Burma; Netherlands:
The Netherlands, Holland; North Korea: DPRK, Democratic People's Republic of Korea; North
Macedonia: Macedonia, Republic of Macedonia, FYROM; Palestine: State of Palestine, Palestinian
territories; Republic of the Congo: Congo, Congo-Brazzaville, Congo (Brazzaville), Congo Republic,
Republic of Congo; Russia: Russian Federation; Saint Martin: Saint-Martin, Collectivity of Saint
Martin; Sint Maarten: St. Maarten; Slovakia: Slovak Republic; South Korea: Republic of Korea;
Sudan: The Sudan; Syria: Syrian Arab Republic; Tanzania: United Republic of Tanzania; Timor-Leste:
East Timor; Turkey: Türkiye, Turkiye; United Arab Emirates: UAE, Emirates; United Kingdom: UK,
Great Britain, Britain, Northern Ireland; United States: USA, US, United States of America,
America; Vatican City: Holy See, Vatican; Vietnam: Viet Nam; Western Sahara: Sahrawi Arab
Democratic Republic
"""
_ATLAS_ISLANDS = """
American Samoa; Anguilla; Antarctica; Antigua and Barbuda; Aruba; Australia; Bahamas; Bahrain;
Barbados; Bermuda; Bouvet Island; British Indian Ocean Territory; British Virgin Islands; Cape
Verde; Cayman Islands; Christmas Island; Cocos (Keeling) Islands; Comoros; Cook Islands; Cuba;
Curaçao; Cyprus; Dominica; Falkland Islands; Faroe Islands; Fiji; French Polynesia; French
Southern and Antarctic Lands; Grenada; Guadeloupe; Guam; Guernsey; Heard Island and McDonald
Islands; Iceland; Isle of Man; Jamaica; Japan; Jersey; Kiribati; Madagascar; Maldives; Malta;
Marshall Islands; Martinique; Mauritius; Mayotte; Micronesia; Montserrat; Nauru; New Caledonia;
New Zealand; Niue; Norfolk Island; Northern Mariana Islands; Palau; Philippines; Pitcairn Islands;
Puerto Rico; Réunion; Saint Barthélemy; Saint Helena, Ascension and Tristan da Cunha; Saint Kitts
and Nevis; Saint Lucia; Saint Pierre and Miquelon; Saint Vincent and the Grenadines; Samoa;
Seychelles; Singapore; Solomon Islands; South Georgia; Sri Lanka; Svalbard and Jan Mayen; São Tomé
and Príncipe; Taiwan; Tokelau; Tonga; Trinidad and Tobago; Turks and Caicos Islands; Tuvalu;
United States Virgin Islands; Vanuatu; Wallis and Futuna; Åland Islands
"""


if __name__ == "__main__":
    sys.exit(main())
