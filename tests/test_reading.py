"""What a person reads in an answer: every tolerance and every refusal, by hand.

A case is a small text and what must come out of it. Only the keys that a case names are checked,
so that one case holds one idea. `GENEROUS` are forms beyond what the format promises, read all
the same.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from adversarial import KINDS, WELL_FORMED, Maker, cpu_seconds
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hallumaze
from hallumaze import Answer, ResponseParser

ANSWERS = Path(__file__).parents[2] / "shared" / "responses" / "answers.jsonl"
Cell = tuple[int, int]
Step = tuple[int | None, Cell | None, str | None, Cell | None, float | None]

A, B, C, D = (0, 0), (0, 1), (1, 1), (1, 2)


def parse(text: str) -> Answer:
    return ResponseParser().parse(text)


def step(
    number: int | None,
    cell: Cell | None,
    direction: str | None,
    to: Cell | None = None,
    confidence: float | None = None,
) -> Step:
    return (number, cell, direction, to, confidence)


def read_steps(answer: Answer) -> list[Step]:
    return [(s.number, s.cell, s.direction, s.to, s.confidence) for s in answer.steps]


def same_steps(got: Sequence[Step], want: Sequence[Step]) -> bool:
    return [s[:4] for s in got] == [s[:4] for s in want] and all(
        same_confidence(g[4], w[4]) for g, w in zip(got, want, strict=True)
    )


def same_confidence(got: float | None, want: float | None) -> bool:
    if got is None or want is None:
        return got is want
    return math.isclose(got, want, abs_tol=1e-6)


def kinds_and_cells(answer: Answer) -> list[tuple[str, Cell | None]]:
    """Signals in the order of the text. The word "backtracking" behind a dead end is left out."""
    return [(s.kind, s.cell) for s in answer.signals if s.kind != "backtracking"]


def no_confidence(answer: Answer) -> bool:
    return all(c is None for c in answer.path_confidence)


CHECKS: dict[str, Callable[[Answer, Any], bool]] = {
    "steps": lambda a, want: same_steps(read_steps(a), want),
    "moves": lambda a, want: [s[:4] for s in read_steps(a)] == want,
    "hops": lambda a, want: [(s.cell, s.direction, s.to) for s in a.steps] == want,
    "ways": lambda a, want: [s.direction for s in a.steps] == want,
    "n": lambda a, want: len(a.steps) == want,
    "confidences": lambda a, want: (
        len(a.steps) == len(want)
        and all(same_confidence(s.confidence, w) for s, w in zip(a.steps, want, strict=True))
    ),
    "path": lambda a, want: a.final_path == tuple(want),
    "no_path": lambda a, _: len(a.final_path) < 2,
    "path_confidences": lambda a, want: (
        len(a.path_confidence) >= len(want)
        and all(same_confidence(g, w) for g, w in zip(a.path_confidence, want, strict=False))
    ),
    "no_path_confidence": lambda a, _: no_confidence(a),
    "signals": lambda a, want: kinds_and_cells(a) == want,
    "silent": lambda a, _: a.signals == () and list(a.metacog_signals) == [],
    "kinds": lambda a, want: set(want) <= set(a.metacog_signals),
    "loops": lambda a, want: a.declared_loops == want,
    "backtracks": lambda a, want: a.declared_backtracks == want,
    "hallucinations": lambda a, want: a.declared_hallucinations == want,
    "no_counts": lambda a, _: a.declared_backtracks is None and a.declared_hallucinations is None,
    "malformed": lambda a, want: a.malformed_lines == want,
    "malformed_min": lambda a, want: a.malformed_lines >= want,
    "format_ok": lambda a, want: a.format_ok is want,
    "truncated": lambda a, want: a.truncated is want,
    "reasoned": lambda a, want: want in a.reasoning,
    "unreasoned": lambda a, want: want not in a.reasoning,
    "told": lambda a, want: want in a.text,
    "untold": lambda a, want: want not in a.text,
}


def failed(answer: Answer, expected: dict[str, Any]) -> list[str]:
    """The checks that fail, with what was read instead."""
    names = [name for name, want in expected.items() if not CHECKS[name](answer, want)]
    return [f"{name}: wanted {expected[name]!r}" for name in names]


def case(name: str, text: str, **expected: Any) -> Any:
    assert expected and expected.keys() <= CHECKS.keys()
    return pytest.param(text, expected, id=name)


def one(name: str, text: str, *want: Any, **more: Any) -> Any:
    """A case of exactly one step, in which nothing is malformed."""
    return case(name, text, steps=[step(*want)], malformed=0, **more)


def nothing(name: str, text: str, **more: Any) -> Any:
    """A case without any step."""
    return case(name, text, n=0, **more)


def lines(*parts: str) -> str:
    return "\n".join(parts)


E1 = "STEP 1: (0,0) → E"
S2 = "STEP 2: (0,1) → S"
E3 = "STEP 3: (1,1) → E"
HOP1, HOP2, HOP3 = (A, "E", None), (B, "S", None), (C, "E", None)

# ---------------------------------------------------------------- the prompt's own format

KOREAN = lines(
    "STEP 1: (0,0) → E | 확신도: 90% | 열린 방향이 하나",
    "STEP 2: (0,1) → E | 확신도: 40% | 힌트를 따라감",
    "DEAD_END at (0,2) — backtracking",
    "STEP 3: (0,2) → W | 확신도: 95% | 되돌아감",
    "LOOP detected at (0,1) — visited at step 1",
    "STRATEGY_CHANGE — 남쪽을 먼저 본다",
    "STEP 4: (0,1) → S | 확신도: 80% | 남은 통로",
    "",
    "BACKTRACK_COUNT: 1",
    "HALLUCINATION_COUNT: 0",
    "CONFIDENCE_LOG: step1:90, step2:40, step3:95, step4:80",
    "FINAL_PATH: (0,0)→(0,1)→(1,1)",
)
ENGLISH = (
    KOREAN.replace("확신도", "confidence")
    .replace("열린 방향이 하나", "only one way")
    .replace("힌트를 따라감", "the hint sounds right")
    .replace("되돌아감", "the way I came")
    .replace("남쪽을 먼저 본다", "look south first")
    .replace("남은 통로", "what is left")
)
WHOLE: dict[str, Any] = {
    "steps": [
        step(1, A, "E", None, 90),
        step(2, B, "E", None, 40),
        step(3, (0, 2), "W", None, 95),
        step(4, B, "S", None, 80),
    ],
    "path": [A, B, C],
    "signals": [("dead end", (0, 2)), ("loop detected", B), ("strategy_change", None)],
    "kinds": ["dead end", "loop detected", "strategy_change"],
    "loops": 1,
    "backtracks": 1,
    "hallucinations": 0,
    "malformed": 0,
    "format_ok": True,
    "truncated": False,
}
FORMAT = [
    case("whole answer, ko", KOREAN, **WHOLE),
    case("whole answer, en", ENGLISH, **WHOLE),
    case("whole answer, crlf", KOREAN.replace("\n", "\r\n"), **WHOLE),
    case("whole answer, final newline", ENGLISH + "\n", **WHOLE),
    case("whole answer, trailing spaces", ENGLISH.replace("\n", "  \n"), **WHOLE),
    case("whole answer, indented", "    " + KOREAN.replace("\n", "\n    "), **WHOLE),
    case("whole answer, blank lines", KOREAN.replace("\n", "\n\n"), **WHOLE),
    case("whole answer, decomposed", unicodedata.normalize("NFD", KOREAN), **WHOLE),
    case("whole answer, fenced", f"```\n{ENGLISH}\n```", **WHOLE),
    case("whole answer, fenced with a language", f"```text\n{KOREAN}\n```\n", **WHOLE),
    case("whole answer, fence left open", f"```\n{ENGLISH}", **WHOLE),
    case(
        "whole answer, talk around it",
        lines("Here is my walk, step by step:", "", ENGLISH, "", "I hope this helps!"),
        **WHOLE,
    ),
    case(
        "whole answer, talk around it, ko",
        lines("다음은 단계별 풀이입니다.", "", KOREAN, "", "이상입니다."),
        **WHOLE,
    ),
    case("empty", "", n=0, no_path=True, silent=True, format_ok=False, malformed=0, no_counts=True),
    case("white space", " \n\t\n ", n=0, no_path=True, silent=True, format_ok=False, malformed=0),
    case("refusal in words", "I cannot solve this.", n=0, no_path=True, format_ok=False),
    case("format_ok needs a path", E1, n=1, no_path=True, format_ok=False),
    case("format_ok needs a step", "FINAL_PATH: (0,0)→(0,1)", n=0, path=[A, B], format_ok=False),
    case(
        "format_ok needs two cells", lines(E1, "FINAL_PATH: (0,0)"), no_path=True, format_ok=False
    ),
    case("format_ok", lines(E1, "FINAL_PATH: (0,0)→(0,1)"), path=[A, B], format_ok=True),
    case(
        "the final block before the steps",
        lines("BACKTRACK_COUNT: 0", "FINAL_PATH: (0,0)→(0,1)", "", E1, S2),
        hops=[HOP1, HOP2],
        path=[A, B],
        backtracks=0,
    ),
    case(
        "the final block twice",
        lines(E1, *["BACKTRACK_COUNT: 2", "FINAL_PATH: (0,0)→(0,1)"] * 2),
        hops=[HOP1],
        path=[A, B],
        backtracks=2,
    ),
]

# ---------------------------------------------------------------- reasoning

REASONING = [
    case(
        "think block is no claim",
        f"<think>\nSTEP 1: (0,0) → S\nFINAL_PATH: (0,0)→(9,9)\nBACKTRACK_COUNT: 5\n</think>\n{E1}",
        hops=[HOP1],
        no_path=True,
        no_counts=True,
        reasoned="(0,0) → S",
        told="(0,0) → E",
        untold="(0,0) → S",
        truncated=False,
    ),
    case(
        "up to the last of two blocks",
        f"<think>a1</think>\nSTEP 1: (0,0) → S\n<think>b2</think>\n{E1}",
        hops=[HOP1],
        reasoned="(0,0) → S",
    ),
    case(
        "the opening tag is missing",
        f"Let me try south.\nSTEP 1: (0,0) → S\n</think>\n{E1}",
        hops=[HOP1],
        reasoned="try south",
        truncated=False,
    ),
    case(
        "signals of the reasoning stay there",
        f"<think>DEAD_END at (0,1) — backtracking</think>\n{E1}",
        silent=True,
        reasoned="DEAD_END",
    ),
    case(
        "unclosed",
        f"<think>\n{E1}\nFINAL_PATH: (0,0)→(0,1)",
        n=0,
        no_path=True,
        truncated=True,
        format_ok=False,
    ),
    case("unclosed, nothing in it", "<think>", n=0, no_path=True, truncated=True),
    case("closed and opened again", f"<think>a</think>\n<think>\n{E1}", n=0, truncated=True),
    case(
        "closed, nothing after it", f"<think>{E1}</think>", n=0, truncated=False, reasoned="(0,0)"
    ),
    case("no reasoning", E1, hops=[HOP1], truncated=False, unreasoned="STEP"),
]

# ---------------------------------------------------------------- around a line

PLAIN = (1, A, "E", None, 90)
AROUND = [
    one(f"around the line: {text!r}", text.replace("X", "STEP 1: (0,0) → E | 확신도: 90%"), *PLAIN)
    for text in [
        "X",
        "X\n",
        "X  ",
        "  X",
        "\tX",
        "X\r\n",
        "**X**",
        "*X*",
        "_X_",
        "__X__",
        "***X***",
        "`X`",
        "- X",
        "* X",
        "+ X",
        "• X",
        "# X",
        "### X",
        "1. X",
        "1) X",
        "- **X**",
        "1. **X**",
        "- `X`",
        "  - X",
        "| X |",
        "```\nX\n```",
        "```text\nX\n```",
    ]
] + [
    one(f"within the line: {text!r}", text, *PLAIN)
    for text in [
        "**STEP 1:** (0,0) → E | 확신도: 90%",
        "**STEP 1**: (0,0) → E | confidence: 90%",
        "### STEP 1: (0,0) → **E** | Confidence: 90%",
        "- **STEP 1**: (0,0) → `E` | Confidence: **90%**",
        "STEP 1: **(0,0)** → **E** | **확신도: 90%**",
        "STEP 1: `(0,0)` → `E` | `확신도: 90%`",
        "STEP 1: `(0,0) → E` | *확신도*: 90%",
        "**단계 1:** (0,0) → **동쪽** | **확신도:** 90%",
        "STEP 1:(0,0)→E|확신도:90%",
        "STEP   1 :  (0,0)   →   E   |   확신도 :   90%",
        "STEP 1: ( 0 , 0 ) → E | 확신도: 90%",
        "STEP 1: (0, 0) → E | 확신도: 90%",
        "STEP 1: [0,0] → E | 확신도: 90%",
        "STEP 1: [ 0 , 0 ] → [E] | 확신도: 90%",
        "ＳＴＥＰ　１：（０，０）→Ｅ｜확신도：９０％",
        "STEP 1：（0，0） → E ｜ confidence： 90％",
        "단계　１：（０，０）　→　동쪽　｜　확신도：　９０％",
    ]
]

# ---------------------------------------------------------------- step words, arrows, directions

WORDS = [
    one(f"step word {word!r}", f"{word} 3: (0,0) → E", 3, A, "E")
    for word in ["STEP", "Step", "step", "단계", "**STEP**", unicodedata.normalize("NFD", "단계")]
] + [
    one("no space before the number", "STEP3: (0,0) → E", 3, A, "E"),
    one("no space before the number, ko", "단계3: (0,0) → E", 3, A, "E"),
]
ARROWS = [
    one(f"arrow {arrow!r}", f"STEP 1: (0,0){arrow}E | 확신도: 90%", *PLAIN)
    for arrow in ["→", "->", "=>", "-->", " → ", " -> ", " => ", " --> ", " －＞ "]
] + [
    one(f"arrow {arrow!r} to a cell", f"STEP 1: (0,0) {arrow} (0,1)", 1, A, None, B)
    for arrow in ["→", "->", "=>", "-->"]
]
NAMES = {
    "N": ["N", "n", "↑", "N↑", "[N]", "[N↑]", "North", "NORTH", "north", "북쪽", "위쪽", "up"],
    "E": ["E", "e", "→", "E→", "[E]", "[E→]", "East", "EAST", "east", "동쪽", "오른쪽", "right"],
    "S": ["S", "s", "↓", "S↓", "[S]", "[S↓]", "South", "SOUTH", "south", "남쪽", "아래쪽", "down"],
    "W": ["W", "w", "←", "W←", "[W]", "[W←]", "West", "WEST", "west", "서쪽", "왼쪽", "left"],
}
DIRECTIONS = [
    one(f"direction {name!r}", f"STEP 1: (2,2) → {name}{rest}", 1, (2, 2), way, None, conf)
    for way, names in NAMES.items()
    for name in [*names, unicodedata.normalize("NFD", names[-2]), names[-1].title()]
    for rest, conf in [("", None), (" | 확신도: 80% | 이유", 80)]
] + [
    one("letter and arrow apart", "STEP 1: (2,2) → S ↓", 1, (2, 2), "S"),
    one("the letter beats the arrow", "STEP 1: (2,2) → N↓", 1, (2, 2), "N"),
    one("the letter beats the arrow, in a bracket", "STEP 1: (2,2) → [W→]", 1, (2, 2), "W"),
    one("the letter beats the arrow, east", "STEP 1: (2,2) → E←", 1, (2, 2), "E"),
]
DESTINATIONS = [
    one("instead of a direction", "STEP 1: (0,0) → (0,1)", 1, A, None, B),
    one("instead, in brackets", "STEP 1: [0,0] → [0,1]", 1, A, None, B),
    one("instead, with confidence", "STEP 1: (0,0) -> (0,1) | 90%", 1, A, None, B, 90),
    one("instead, ko", "단계 1: (0,0) → (0,1) | 확신도: 70% | 이유", 1, A, None, B, 70),
    one("after letter and arrow", "STEP 1: (0,0) → E→ → (0,1)", 1, A, "E", B),
    one("after a letter", "STEP 1: (0,0) → E → (0,1)", 1, A, "E", B),
    one("after a word", "STEP 1: (0,0) → East → (0,1)", 1, A, "E", B),
    one("after a word, ko", "단계 1: (0,0) → 동쪽 → (0,1)", 1, A, "E", B),
    one("after a bracket", "STEP 1: (0,0) -> [S] -> (1,0)", 1, A, "S", (1, 0)),
    one(
        "as large models write it",
        "STEP 13: (4,6) → W← → (4,5) | confidence: 95%",
        *(13, (4, 6), "W", (4, 5), 95),
    ),
    one(
        "a heading as large models write it",
        "### STEP 13: (4,6) → W← → (4,5) | confidence: 95%",
        *(13, (4, 6), "W", (4, 5), 95),
    ),
    one("not where the direction leads", "STEP 1: (0,0) → E → (3,3)", 1, A, "E", (3, 3)),
    one("of two the first", "STEP 1: (0,0) → (0,1) → (0,2)", 1, A, None, B),
    one("of two the first, after a letter", "STEP 1: (0,0) → E → (0,1) → (0,2)", 1, A, "E", B),
    one("of three the first", "STEP 1: (0,0) → (0,1) → (0,2) → (0,3)", 1, A, None, B),
    one("negative", "STEP 1: (0,0) → (-1,0)", 1, A, None, (-1, 0)),
    one("negative, spaces", "STEP 1: (0,0) → ( -1 , 0 )", 1, A, None, (-1, 0)),
    one("negative standing cell", "STEP 1: (0,-1) → E", 1, (0, -1), "E"),
    one("negative, full-width", "STEP 1: （０，－１） → E", 1, (0, -1), "E"),
    one("far outside", "STEP 1: (12,345) → E", 1, (12, 345), "E"),
]

# ---------------------------------------------------------------- steps that say less

SILENT = [
    one("no cell", "STEP 1: E→", 1, None, "E"),
    one("no cell, letter", "STEP 1: E", 1, None, "E"),
    one("no cell, bracket", "STEP 1: [S↓]", 1, None, "S"),
    one("no cell, word", "STEP 1: East | confidence: 90%", 1, None, "E", None, 90),
    one("no cell, ko", "단계 1: 동쪽 | 확신도: 90%", 1, None, "E", None, 90),
    one("no cell, relative word", "STEP 2: right", 2, None, "E"),
    one("no cell, down arrow", "STEP 2: ↓", 2, None, "S"),
    one("bare cell", "STEP 3: (2,0)", 3, None, None, (2, 0)),
    one("bare cell in brackets", "STEP 3: [2,0]", 3, None, None, (2, 0)),
    one("bare cell, confidence", "STEP 3: (2,0) | 확신도: 70%", 3, None, None, (2, 0), 70),
    one("bare destination", "STEP 3: → (2,0)", 3, None, None, (2, 0)),
    one("bare destination, ascii", "STEP 3: -> (2,0) | 90%", 3, None, None, (2, 0), 90),
    one("bare cell outside", "STEP 3: (-1,0)", 3, None, None, (-1, 0)),
    one("arrival", "STEP 9: (4,4) → EXIT", 9, None, None, (4, 4)),
    one("arrival, lower case", "STEP 9: (4,4) -> exit | 99%", 9, None, None, (4, 4), 99),
    one("arrival, bold", "**STEP 9: (4,4) → EXIT**", 9, None, None, (4, 4)),
    one("arrival, ko", "단계 9: (4,4) → 출구", 9, None, None, (4, 4)),
    case(
        "the direction of one move with the cell of another",
        lines("STEP 2: (1,0) -> E", "STEP 3: (2,0)"),
        steps=[step(2, (1, 0), "E"), step(3, None, None, (2, 0))],
    ),
]
PHANTOMS = [
    one(f"phantom direction {word!r}", f"STEP 1: (0,0) → {word}{rest}", 1, A, want, None, conf)
    for word, want in [
        ("NE", "NE"),
        ("NW", "NW"),
        ("SE", "SE"),
        ("SW", "SW"),
        ("ne", "NE"),
        ("northeast", "NORTHEAST"),
        ("Southwest", "SOUTHWEST"),
        ("forward", "FORWARD"),
        ("FORWARD", "FORWARD"),
        ("diagonal", "DIAGONAL"),
        ("대각선", "대각선"),
        ("북동쪽", "북동쪽"),
    ]
    for rest, conf in [("", None), (" | 확신도: 80%", 80)]
] + [
    one("phantom with a destination", "STEP 1: (0,0) → NE → (1,1)", 1, A, "NE", C),
    one("phantom with a destination, ko", "단계 1: (0,0) → 대각선 → (1,1)", 1, A, "대각선", C),
]
MALFORMED = [
    nothing(f"malformed: {text!r}", text, malformed=1)
    for text in [
        "STEP 1: (0,0) → banana",
        "STEP 1: (0,0) → 사과",
        "STEP 1: (0,0) → banana | confidence: 90%",
        "STEP 1: (0,0) → wait",
        "STEP 1: (0,0) → [방향]",
        "STEP 1: (0,0) → [direction] | confidence: 90%",
        "STEP 1: (0,0) → [이유]",
        "STEP 1: (0,0) →",
        "STEP 1: (0,0) -> | 확신도: 90%",
        "STEP 1: conf1",
    ]
] + [
    case(
        "one malformed line among steps",
        lines(E1, "STEP 2: (0,1) → banana", E3),
        hops=[HOP1, HOP3],
        malformed=1,
    ),
]
NO_STEP_WORD = [
    nothing(f"no step word: {text!r}", text)
    for text in [
        "(0,0) → E",
        "(0,0) → E | 확신도: 90%",
        "1. (0,0) → E",
        "- (0,0) → (0,1)",
        "Move 1: (0,0) → E",
        "이동 1: (0,0) → 동쪽",
        "From (0,0) I go E to (0,1).",
        "ERROR! Cannot go S from (1,1)",
        "E→",
        "(2,0)",
        "(0,0): [E→]",
        "1. **Starting Point (0,0)**:\n   - Current cell: (0,0)\n   - Direction: E",
        "Let's solve the maze step by step:",
        "Footstep 1: (0,0) → E",
    ]
] + [
    case(
        "only the lines with the word",
        lines(E1, "(0,1) → S", "2. (0,1) → S", E3),
        hops=[HOP1, HOP3],
    ),
]
REASONS = [
    one(f"the reason is no claim: {reason!r}", f"{E1} | 확신도: 90% | {reason}", *PLAIN)
    for reason in [
        "(0,1)은 S로 열려 있음",
        "then S → (1,1)",
        "towards (4,4)",
        "N and W are walls",
        "30% of the way",
        "the exit is SE",
        "",
        "앞으로 2칸",
        "a | b | c",
    ]
]

# ---------------------------------------------------------------- tables


def table(*rows: str, sep: str | None = None) -> str:
    columns = rows[0].count("|") - 1
    return lines(rows[0], sep or "|" + "---|" * columns, *rows[1:])


TABLE_HOPS = [step(1, A, "E", None, 90), step(2, B, "S", None, 80)]
TABLES = [
    case(f"table: {name}", text, steps=TABLE_HOPS, malformed=0)
    for name, text in {
        "step first": table(
            "| STEP | Cell | Direction | Confidence | Reason |",
            "| 1 | (0,0) | E | 90% | open |",
            "| 2 | (0,1) | S | 80% | try |",
        ),
        "step second": table(
            "| Cell | Step | Confidence | Direction |",
            "| (0,0) | 1 | 90% | E |",
            "| (0,1) | 2 | 80% | S |",
        ),
        "step last": table(
            "| Direction | Confidence | Cell | STEP |",
            "| East | 90% | (0,0) | 1 |",
            "| South | 80% | (0,1) | 2 |",
        ),
        "korean": table(
            "| 단계 | 셀 | 방향 | 확신도 | 이유 |",
            "| 1 | (0,0) | 동쪽 | 90% | 열림 |",
            "| 2 | (0,1) | 남쪽 | 80% | 시도 |",
        ),
        "korean, other order": table(
            "| 확신도 | 방향 | 단계 | 위치 |",
            "| 90% | E→ | 1 | (0,0) |",
            "| 80% | S↓ | 2 | (0,1) |",
        ),
        "brackets, no percent sign": table(
            "| STEP | Cell | Direction | Confidence |",
            "| 1 | [0,0] | [E→] | 90 |",
            "| 2 | [0,1] | [S↓] | 80 |",
        ),
        "fractions": table(
            "| STEP | Cell | Direction | Confidence |",
            "| 1 | (0,0) | E | 0.9 |",
            "| 2 | (0,1) | S | 0.8 |",
        ),
        "bold": table(
            "| **STEP** | **Cell** | **Direction** | **Confidence** |",
            "| **1** | `(0,0)` | **E** | 90% |",
            "| **2** | `(0,1)` | **S** | 80% |",
        ),
        "aligned": table(
            "| STEP | Cell  | Direction | Confidence |",
            "|    1 | (0,0) | E         | 90%        |",
            "|    2 | (0,1) | S         | 80%        |",
            sep="|-----:|:------|:---------:|------------|",
        ),
        "the word in the rows too": table(
            "| STEP | Cell | Direction | Confidence |",
            "| STEP 1 | (0,0) | E | 90% |",
            "| STEP 2 | (0,1) | S | 80% |",
        ),
        "fenced, crlf": (
            "```\r\n| STEP | Cell | Direction | Confidence |\r\n|---|---|---|---|\r\n"
            "| 1 | (0,0) | E | 90% |\r\n| 2 | (0,1) | S | 80% |\r\n```\r\n"
        ),
        "whole lines in rows": lines(
            "| STEP 1: (0,0) → E | 확신도: 90% |",
            "| STEP 2: (0,1) → S | 확신도: 80% |",
        ),
    }.items()
] + [
    case(
        "table: from, direction, to",
        table(
            "| STEP | From | Direction | To | Confidence |",
            "| 1 | (0,0) | E | (0,1) | 90% |",
            "| 2 | (0,1) | S | (1,1) | 80% |",
        ),
        steps=[step(1, A, "E", B, 90), step(2, B, "S", C, 80)],
    ),
    case(
        "table: then the final block",
        table("| STEP | Cell | Direction |", "| 1 | (0,0) | E |", "| 2 | (0,1) | S |")
        + "\n\nFINAL_PATH: (0,0)→(0,1)→(1,1)",
        hops=[HOP1, HOP2],
        path=[A, B, C],
        format_ok=True,
    ),
    nothing(
        "table: no step column",
        table("| Cell | Direction | Confidence |", "| (0,0) | E | 90% |", "| (0,1) | S | 80% |"),
    ),
    nothing(
        "table: other first column",
        table("| No | Cell | Direction |", "| 1 | (0,0) | E |", "| 2 | (0,1) | S |"),
    ),
    nothing(
        "table: template row",
        table(
            "| STEP | Cell | Direction | Confidence |",
            "| N | (r,c) | [direction] | XX% |",
        ),
    ),
    case(
        "table: a listing row",
        table(
            "| STEP | Cell | Direction |",
            "| 1 | (0,0) | E |",
            "| 2 | (0,1) | E→ S↓ |",
            "| 3 | (1,1) | E |",
        ),
        hops=[HOP1, HOP3],
        malformed=1,
    ),
]

# ---------------------------------------------------------------- confidence

CONFIDENCE = [
    one(f"confidence {text!r}", f"{E1} | {text}", 1, A, "E", None, want)
    for text, want in [
        ("확신도: 90%", 90),
        ("확신도: 90", 90),
        ("확신도: 0.9", 90),
        ("확신도 90%", 90),
        ("확신도:90%", 90),
        ("Confidence: 90%", 90),
        ("confidence: 90", 90),
        ("CONFIDENCE: 0.9", 90),
        ("Confidence: 0.9 | because", 90),
        ("confidence: 92.5%", 92.5),
        ("90%", 90),
        ("확신도: 100%", 100),
        ("확신도: 0%", 0),
        ("confidence: 1", 100),
        ("confidence: 0", 0),
        ("confidence: 0.5%", 0.5),
        ("confidence: 1%", 1),
        ("confidence: 1.5", 1.5),
        ("confidence: 100", 100),
    ]
] + [
    case(f"no confidence: {text!r}", f"{E1} | {text}", steps=[step(1, A, "E")])
    for text in [
        "확신도: 150%",
        "확신도: 101",
        "confidence: 101%",
        "confidence: -5%",
        "confidence: -5",
        "confidence: 100.5%",
        "confidence: 99999999999999999999%",
        "confidence: high",
        "확신도: 높음",
        "확신도: XX%",
        "confidence: XX%",
        "확신도: XX% | [이유]",
        "confidence: conf1",
    ]
]


def stated(*texts: str) -> str:
    """One STEP line for each confidence text ("" states none)."""
    return lines(
        *(
            f"STEP {n}: ({n},0) → S" + (f" | confidence: {text}" if text else "")
            for n, text in enumerate(texts, 1)
        )
    )


FRACTIONS = [
    case("all at most 1", stated("0.9", "0.25"), confidences=[90, 25]),
    case("1 among fractions", stated("1", "0.5"), confidences=[100, 50]),
    case("0 among fractions", stated("0", "0.5"), confidences=[0, 50]),
    case("all ones", stated("1", "1"), confidences=[100, 100]),
    case("one above 1", stated("0.9", "80"), confidences=[0.9, 80]),
    case("1 among percentages", stated("1", "100"), confidences=[1, 100]),
    case("those with a sign do not matter", stated("90%", "0.5"), confidences=[90, 50]),
    case("those with a sign are no fractions", stated("0.9%", "0.5"), confidences=[0.9, 50]),
    case(
        "the log counts too",
        stated("0.9", "") + "\nCONFIDENCE_LOG: step2:80",
        confidences=[0.9, 80],
    ),
    case(
        "a log of fractions",
        stated("", "") + "\nCONFIDENCE_LOG: step1:0.6, step2:1",
        confidences=[60, 100],
    ),
]
NEXT_LINE = [
    case("on the following line", lines(E1, "확신도: 90%"), confidences=[90]),
    case("on the following line, en", lines(E1, "Confidence: 90"), confidences=[90]),
    case("on the following line, bullet", lines(E1, "   - Confidence: 90%"), confidences=[90]),
    case("on the following line, bold", lines(E1, "**Confidence:** 90%"), confidences=[90]),
    case("with words after it", lines(E1, "- Confidence: 90% (clear)"), confidences=[90]),
    case("after a heading", lines(f"### {E1}", "", "**확신도**: 90%"), confidences=[90]),
    case(
        "between two steps: the first",
        lines(E1, "확신도: 90%", S2, "확신도: 80%"),
        confidences=[90, 80],
    ),
    case("only the first has one", lines(E1, "확신도: 90%", S2), confidences=[90, None]),
    case("only the second has one", lines(E1, S2, "확신도: 80%"), confidences=[None, 80]),
    case("before every step: nobody's", lines("확신도: 50%", E1, S2), confidences=[None, None]),
    case(
        "a reason in between",
        lines(E1, "   - Reason: only way", "   - Confidence: 90%", S2),
        confidences=[90, None],
    ),
    case("out of range", lines(E1, "confidence: 190%"), confidences=[None]),
    case("no cell", lines("STEP 1: E→", "확신도: 100%", "[reason]: x"), confidences=[100]),
]
LOG = [
    case("fills in", lines(E1, S2, "CONFIDENCE_LOG: step1:60, step2:90"), confidences=[60, 90]),
    case(
        "percent signs", lines(E1, S2, "CONFIDENCE_LOG: step1:60%, step2:90%"), confidences=[60, 90]
    ),
    case("spaces", lines(E1, S2, "CONFIDENCE_LOG: step 1: 60 , STEP 2 : 90"), confidences=[60, 90]),
    case("bold", lines(E1, "**CONFIDENCE_LOG:** step1:60"), confidences=[60]),
    case("escaped underscore", lines(E1, "CONFIDENCE\\_LOG: step1:60"), confidences=[60]),
    case(
        "before the steps",
        lines("CONFIDENCE_LOG: step1:60, step2:90", E1, S2),
        confidences=[60, 90],
    ),
    case(
        "the step's own goes first",
        lines(f"{E1} | 확신도: 70%", S2, "CONFIDENCE_LOG: step1:10, step2:90"),
        confidences=[70, 90],
    ),
    case(
        "by the written number",
        lines(
            "STEP 5: (0,0) → E", "STEP 7: (0,1) → S", "CONFIDENCE_LOG: step5:50, step7:70, step1:9"
        ),
        confidences=[50, 70],
    ),
    case(
        "not by place when there are steps",
        lines("STEP 5: (0,0) → E", "CONFIDENCE_LOG: step1:50"),
        confidences=[None],
    ),
    case(
        "from step0: shifted by one",
        lines(E1, S2, "CONFIDENCE_LOG: step0:100, step1:80"),
        confidences=[100, 80],
    ),
    case(
        "of duplicates the last", lines(E1, "CONFIDENCE_LOG: step1:50, step1:70"), confidences=[70]
    ),
    case("a hole", lines(E1, S2, "CONFIDENCE_LOG: step2:80"), confidences=[None, 80]),
    case(
        "out of range", lines(E1, S2, "CONFIDENCE_LOG: step1:150, step2:80"), confidences=[None, 80]
    ),
    case(
        "template",
        lines(E1, S2, "CONFIDENCE_LOG: step1:conf1, step2:conf2"),
        confidences=[None] * 2,
    ),
    case(
        "half a template",
        lines(E1, S2, "CONFIDENCE_LOG: step1:90, step2:conf2"),
        confidences=[90, None],
    ),
    case(
        "an ellipsis",
        lines(E1, S2, "CONFIDENCE_LOG: step1:90, ..., step9:80"),
        confidences=[90, None],
    ),
    case("is no step", "CONFIDENCE_LOG: step1:60, step2:90", n=0),
    case("is no step, one a line", "CONFIDENCE_LOG:\nstep1: 60\nstep2: 90", n=0),
    case("without a path", "CONFIDENCE_LOG: step1:60, step2:90", n=0, no_path=True),
    case(
        "by place in the path",
        lines("CONFIDENCE_LOG: step1:60, step2:90", "FINAL_PATH: (0,0)→(0,1)→(1,1)"),
        path=[A, B, C],
        path_confidences=[60, 90],
    ),
    case(
        "by place in the path, from step0",
        lines("CONFIDENCE_LOG: step0:100, step1:80", "FINAL_PATH: (0,0)→(0,1)→(1,1)"),
        path_confidences=[100, 80],
    ),
    case(
        "by place in the path, duplicates",
        lines("CONFIDENCE_LOG: step1:5, step1:60, step2:90", "FINAL_PATH: (0,0)→(0,1)→(1,1)"),
        path_confidences=[60, 90],
    ),
    case(
        "by place in the path, a hole",
        lines("CONFIDENCE_LOG: step2:90", "FINAL_PATH: (0,0)→(0,1)→(1,1)"),
        path_confidences=[None, 90],
    ),
    case(
        "not by place when a step stands there",
        lines(E1, "CONFIDENCE_LOG: step1:60", "FINAL_PATH: (0,0)→(0,1)"),
        no_path_confidence=True,
        confidences=[60],
    ),
]

# ---------------------------------------------------------------- echoes and listings

LISTING = "STEP {n}: (0,{n}) → [E→ W←] | 확신도: 100% | [reason]"


def walk_and_listing(real: int, copied: int, pattern: str = LISTING) -> str:
    good = [f"STEP {n}: ({n},0) → S" for n in range(1, real + 1)]
    bad = [pattern.format(n=n) for n in range(real + 1, real + copied + 1)]
    return lines(*good, *bad)


ECHOES = [
    nothing(f"echo: {text!r}", text, malformed=1, silent=True)
    for text in [
        "STEP N: (r,c) → [방향] | 확신도: XX% | [이유]",
        "STEP N: (r,c) → [direction] | confidence: XX% | [reason]",
        "**STEP N:** (r,c) → [방향] | 확신도: XX%",
        "- STEP N: (r,c) → [direction]",
        "STEP N: (r,c) → [방향]",
    ]
] + [
    case("echo: dead end", "DEAD_END at (r,c) — backtracking", silent=True, n=0),
    case("echo: loop", "LOOP detected at (r,c) — visited at step M", silent=True, loops=0),
    case("echo: strategy, ko", "STRATEGY_CHANGE — [이유]", silent=True),
    case("echo: strategy, en", "STRATEGY_CHANGE — [reason]", silent=True),
    case("echo: rule", "4. 막다른 길이면: DEAD_END at (r,c) — backtracking", silent=True),
    case("echo: counts", "BACKTRACK_COUNT: N\nHALLUCINATION_COUNT: N", no_counts=True),
    case("echo: path", "FINAL_PATH: (0,0)→(r,c)→...→(N-1,N-1)", no_path=True, format_ok=False),
    case(
        "echo: the whole template, then an answer",
        lines(
            "STEP N: (r,c) → [방향] | 확신도: XX% | [이유]",
            "DEAD_END at (r,c) — backtracking",
            "BACKTRACK_COUNT: N",
            "FINAL_PATH: (0,0)→(r,c)→...→(N-1,N-1)",
            E1,
            "BACKTRACK_COUNT: 3",
            "FINAL_PATH: (0,0)→(0,1)",
        ),
        hops=[HOP1],
        path=[A, B],
        backtracks=3,
        silent=True,
    ),
    case(
        "a template in the confidence field costs that field",
        f"{E1} | 확신도: XX% | [이유]",
        steps=[step(1, A, "E")],
    ),
    case(
        "a template in the confidence field, the log fills in",
        lines(f"{E1} | confidence: XX%", "CONFIDENCE_LOG: step1:80"),
        steps=[step(1, A, "E", None, 80)],
    ),
    case(
        "a template in the reason field costs that field",
        f"{E1} | confidence: 80% | [reason]",
        steps=[step(1, A, "E", None, 80)],
    ),
    case(
        "a template in the number field costs that field",
        "STEP N: (0,0) → E | 확신도: 90%",
        steps=[step(None, A, "E", None, 90)],
    ),
]
LISTINGS = [
    case(
        f"listing: {text!r}",
        lines(E1, S2, "STEP 3: (1,1) → E", text),
        hops=[HOP1, HOP2, HOP3],
        malformed=1,
    )
    for text in [
        "STEP 4: (1,2) → [E→ S↓]",
        "STEP 4: (1,2) → [E→ S↓] | 확신도: 100% | [reason]",
        "STEP 4: (1,2) → [N↑ S↓ W←] | confidence: 10%",
        "STEP 4: (1,2) → E→ S↓",
        "STEP 4: E→ S↓",
        "STEP 4: [E→ S↓]",
        "STEP 4: (1,2): [E→ S↓]",
        "STEP 4: (1,2) → [E, S]",
        "STEP 4: (1,2) → [E S]",
        "STEP 4: (1,2) → [동쪽 남쪽]",
        "STEP 4: (1,2): [S↓ W←]  ⚑ S방향 힌트: 밝은 빛이 새어 나옵니다",
        "STEP 4: (1,2): [S↓ W←]  ⚑ S direction hint: bright light leaks from this side",
        "STEP 4: N direction hint: a breeze comes from this way",
        "STEP 4: N방향 힌트: 바람이 불어오는 방향입니다",
        "STEP 4: ⚑ N방향 힌트: 바람이 불어오는 방향입니다",
        "STEP 4: ⚑ N direction hint: a breeze comes from this way",
    ]
] + [
    case("one direction in the bracket is a move", "STEP 1: (0,0) → [E→] | 90%", n=1, malformed=0),
    case("2 of 5 copied", walk_and_listing(3, 2), n=3, malformed=2),
    case("1 of 3 copied", walk_and_listing(2, 1), n=2, malformed=1),
    case("half copied", walk_and_listing(2, 2), n=0, malformed_min=2),
    case("half copied, 1 of 2", walk_and_listing(1, 1), n=0, malformed_min=1),
    case("more than half copied", walk_and_listing(1, 2), n=0, malformed_min=2),
    case("all copied", walk_and_listing(0, 3), n=0, malformed=3),
    case(
        "half copied, en",
        walk_and_listing(2, 2, "STEP {n}: (0,{n}) → [E→ W←] | confidence: 90% | [reason]"),
        n=0,
    ),
    case("half copied, hints", walk_and_listing(2, 2, "STEP {n}: N direction hint: a breeze"), n=0),
    case("half copied, hints, ko", walk_and_listing(2, 2, "단계 {n}: N방향 힌트: 바람"), n=0),
    case("copied without a number", walk_and_listing(1, 3).replace("STEP 2", "STEP N"), n=0),
    case(
        "copied out, the path still counts",
        walk_and_listing(1, 3) + "\nFINAL_PATH: (0,0)→(0,1)",
        n=0,
        path=[A, B],
        format_ok=False,
    ),
    case(
        "the listing above the walk, without STEP",
        lines(*(f"(0,{n}): [E→ W←]" for n in range(9)), E1, S2),
        hops=[HOP1, HOP2],
    ),
]

# ---------------------------------------------------------------- numbers and blocks

OTHER = [(A, "S", None), ((1, 0), "E", None)]
SECOND = lines("STEP 1: (0,0) → S", "STEP 2: (1,0) → E")
BLOCKS = [
    case("twice the same", lines(E1, S2, E1, S2), hops=[HOP1, HOP2]),
    case(
        "twice the same, talk between", lines(E1, S2, "", "So, again:", E1, S2), hops=[HOP1, HOP2]
    ),
    case("three times", lines(*[E1, S2] * 3), hops=[HOP1, HOP2]),
    case("twice, cut off", lines(E1, S2, E3, E1, S2), hops=[HOP1, HOP2, HOP3]),
    case("twice, cut off after one", lines(E1, S2, E3, E1), hops=[HOP1, HOP2, HOP3]),
    case("twice, ko", lines("단계 1: (0,0) → 동쪽", S2, "단계 1: (0,0) → 동쪽", S2), n=2),
    case("twice, other words", lines(E1, S2, "단계 1: (0,0) → 동쪽", "STEP 2: (0,1) -> [S↓]"), n=2),
    case(
        "twice, other confidences",
        lines(f"{E1} | 90%", f"{S2} | 80%", f"{E1} | 10%", f"{S2} | 20%"),
        hops=[HOP1, HOP2],
    ),
    case(
        "twice, confidences only once",
        lines(E1, S2, f"{E1} | 10%", f"{S2} | 20%"),
        hops=[HOP1, HOP2],
    ),
    case("one step twice", lines(E1, E1), hops=[HOP1]),
    case("a second attempt", lines(E1, S2, SECOND), hops=[HOP1, HOP2, *OTHER]),
    case(
        "a second attempt after an error",
        lines(E1, S2, "ERROR! Cannot go S from (1,1)", "", "Let me restart:", SECOND),
        hops=[HOP1, HOP2, *OTHER],
    ),
    case(
        "the same beginning, then another way",
        lines(E1, S2, E1, "STEP 2: (0,1) → E"),
        hops=[HOP1, HOP2, HOP1, (B, "E", None)],
    ),
    case(
        "the same and more: no repetition",
        lines(E1, S2, E1, S2, E3),
        hops=[HOP1, HOP2, HOP1, HOP2, HOP3],
    ),
    case("a block before the last one", lines(E1, S2, SECOND, E1, S2), hops=[HOP1, HOP2, *OTHER]),
    case(
        "not the beginning but the end of an earlier one",
        lines(E1, S2, "STEP 1: (0,1) → S"),
        hops=[HOP1, HOP2, HOP2],
    ),
    case(
        "numbers with holes are one block",
        lines("STEP 1: (0,0) → E", "STEP 4: (0,1) → W", "STEP 9: (0,0) → E"),
        moves=[(1, A, "E", None), (4, B, "W", None), (9, A, "E", None)],
    ),
    case(
        "the same move later in a block stays",
        lines(E1, "STEP 2: (0,1) → W", "STEP 3: (0,0) → E", "STEP 4: (0,1) → S"),
        hops=[HOP1, (B, "W", None), HOP1, HOP2],
    ),
]

# ---------------------------------------------------------------- FINAL_PATH

ABC = "(0,0)→(0,1)→(1,1)"
PATHS = [
    case(f"path: {text!r}", text, path=[A, B, C], n=0)
    for text in [
        f"FINAL_PATH: {ABC}",
        f"FINAL_PATH:{ABC}\n",
        f"final_path: {ABC}",
        f"**FINAL_PATH:** {ABC}",
        f"**FINAL_PATH**: {ABC}",
        f"**FINAL_PATH: {ABC}**",
        f"`FINAL_PATH: {ABC}`",
        f"FINAL_PATH: `{ABC}`",
        f"FINAL\\_PATH: {ABC}",
        f"- FINAL_PATH: {ABC}",
        f"1. FINAL_PATH: {ABC}",
        f"### FINAL_PATH: {ABC}",
        f"```\nFINAL_PATH: {ABC}\n```",
        f"FINAL_PATH:\n```\n{ABC}\n```",
        f"**FINAL_PATH:**\n```text\n{ABC}\n```\nDone.",
        f"FINAL_PATH:\n{ABC}",
        f"FINAL_PATH:\r\n{ABC}\r\n",
        f"### FINAL_PATH\n{ABC}",
        f"FINAL_PATH:\n  {ABC}  \n",
        f"FINAL_PATH:\n`{ABC}`",
        "FINAL_PATH: (0,0) -> (0,1) -> (1,1)",
        "FINAL_PATH: (0,0)->(0,1)->(1,1)",
        "FINAL_PATH: (0,0) => (0,1) => (1,1)",
        "FINAL_PATH: (0,0) --> (0,1) --> (1,1)",
        "FINAL_PATH: ( 0 , 0 ) → (0, 1) → (1 ,1)",
        "FINAL_PATH: [0,0]→[0,1]→[1,1]",
        "ＦＩＮＡＬ＿ＰＡＴＨ：（０，０）→（０，１）→（１，１）",
        "FINAL_PATH: (0,0)→\n(0,1)→\n(1,1)",
        "FINAL_PATH: (0,0)→(0,1)→\n(1,1)",
        "FINAL_PATH: (0,0)→(0,1)\n→(1,1)",
        "FINAL_PATH:\n(0,0) →\n(0,1) →\n(1,1)\n",
        "FINAL_PATH:\n```\n(0,0)→(0,1)→\n(1,1)\n```",
        "FINAL_PATH: (0,0)→(0,1)→\r\n(1,1)",
        f"FINAL_PATH: {ABC}\n\nThe exit is at (4,4).",
        f"FINAL_PATH: {ABC}\nNote: (2,2) is a dead end.",
        f"FINAL_PATH: {ABC}\nBACKTRACK_COUNT: 0\nSTRATEGY_CHANGE — …",
        f"FINAL_PATH: {ABC}\nLOOP detected at (0,0) — visited at step 1",
        f"FINAL_PATH: {ABC}\n(2,2) was closed.",
    ]
] + [
    case("path: negative", "FINAL_PATH: (0,0)→(-1,0)→(0,-2)", path=[A, (-1, 0), (0, -2)]),
    case("path: two digits", "FINAL_PATH: (9,10)→(10,10)", path=[(9, 10), (10, 10)]),
    case("path: no neighbours", "FINAL_PATH: (0,0)→(4,4)", path=[A, (4, 4)]),
    case("path: the last of two", f"FINAL_PATH: (0,0)→(1,0)\nFINAL_PATH: {ABC}", path=[A, B, C]),
    case(
        "path: the last, though shorter",
        f"FINAL_PATH: {ABC}\nFINAL_PATH: (0,0)→(1,0)",
        path=[A, (1, 0)],
    ),
    case("path: the same twice", f"FINAL_PATH: {ABC}\n\nFINAL_PATH: {ABC}", path=[A, B, C]),
    case("path: none", "FINAL_PATH: none", no_path=True),
    case("path: none, ko", "FINAL_PATH: 없음", no_path=True),
    case("path: only its label", "FINAL_PATH:", no_path=True),
    case("path: no label", ABC, no_path=True),
    case(
        "path: the label far above",
        "FINAL_PATH:\n\nI could not find one.\n\nI was at (0,0)→(0,1).",
        no_path=True,
    ),
]
INCOMPLETE = [
    case(
        f"incomplete after a complete one: {later!r}",
        f"FINAL_PATH: {ABC}\nFINAL_PATH: {later}",
        path=[A, B, C],
    )
    for later in [
        "(0,0)→…→(4,4)",
        "(0,0)→...→(4,4)",
        "(0,0)→(1,0)→(2,0)→(3,0)→...→(4,4)",
        "(0,0)→(1,0)→(2,0)→(3,0)→…",
        "(0,0)→(r,c)→(1,1)",
        "(0,0)→(r,c)→...→(N-1,N-1)",
        "(0,0)→(1,0)→(2,0)→(3,0)→(N-1,N-1)",
        "(0,0)",
        "",
        "(0,0)→(1,0)→(2,0)→(3,0)→(3,",
        "(0,0)→(1,0)→(2,0)→(3,0)→(3",
        "(0,0)→(1,0)→(2,0)→(3,0)→(",
        "(0,0)→(1,0)→(2,0)→(3,0)→(3,1",
    ]
] + [
    case(
        "incomplete before a complete one",
        f"FINAL_PATH: (0,0)→(1,0)→(2,0)→(3,0)→...\nFINAL_PATH: {ABC}",
        path=[A, B, C],
    ),
    case("beginning before an ellipsis", "FINAL_PATH: (0,0)→(0,1)→...→(4,4)", path=[A, B]),
    case("beginning before one sign", "FINAL_PATH: (0,0)→(0,1)→…→(4,4)", path=[A, B]),
    case("beginning before a placeholder", "FINAL_PATH: (0,0)→(0,1)→(r,c)→(4,4)", path=[A, B]),
    case("beginning before N-1", "FINAL_PATH: (0,0)→(0,1)→(N-1,N-1)", path=[A, B]),
    case("cut after the comma", "FINAL_PATH: (0,0)→(0,1)→(1,", path=[A, B]),
    case("cut after the row", "FINAL_PATH: (0,0)→(0,1)→(1", path=[A, B]),
    case("cut after the bracket", "FINAL_PATH: (0,0)→(0,1)→(", path=[A, B]),
    case("cut after the column", "FINAL_PATH: (0,0)→(0,1)→(1,1", path=[A, B]),
    case("cut after the arrow", "FINAL_PATH: (0,0)→(0,1)→", path=[A, B]),
    case(
        "the longest beginning, first",
        "FINAL_PATH: (0,0)→(0,1)→(1,1)→...→(4,4)\nFINAL_PATH: (0,0)→(1,0)→(",
        path=[A, B, C],
    ),
    case(
        "the longest beginning, last",
        "FINAL_PATH: (0,0)→(1,0)→...→(4,4)\nFINAL_PATH: (0,0)→(0,1)→(1,1)→(",
        path=[A, B, C],
    ),
]

# ---------------------------------------------------------------- signals and counts

SIGNALS = (
    [
        case(f"dead end: {text!r}", text, signals=[("dead end", B)], kinds=["dead end"], n=0)
        for text in [
            "DEAD_END at (0,1) — backtracking",
            "DEAD_END at (0,1)",
            "DEAD_END at (0,1) - backtracking",
            "DEAD_END at (0,1) -- backtracking",
            "DEAD_END at ( 0 , 1 ) — backtracking",
            "DEAD_END at [0,1] — backtracking",
            "dead_end at (0,1)",
            "DEAD END at (0,1) — backtracking",
            "DEAD\\_END at (0,1) — backtracking",
            "**DEAD_END at (0,1)** — backtracking",
            "**DEAD_END** at (0,1) — backtracking",
            "- DEAD_END at (0,1) — backtracking",
            "`DEAD_END at (0,1)`",
            "### DEAD_END at (0,1) — backtracking",
            "ＤＥＡＤ＿ＥＮＤ at （０，１） — backtracking",
            "DEAD_END at (0,1) — backtracking\r\n",
            "DEAD_END at (0,1) — no other way, backtracking",
            "DEAD_END at (0,1) — 다른 길 없음, backtracking",
            "This was not the way. DEAD_END at (0,1) — backtracking",
        ]
    ]
    + [
        case(
            f"loop: {text!r}",
            text,
            signals=[("loop detected", B)],
            kinds=["loop detected"],
            loops=1,
            n=0,
        )
        for text in [
            "LOOP detected at (0,1) — visited at step 3",
            "LOOP detected at (0,1)",
            "Loop detected at (0,1) - visited at step 3",
            "**LOOP detected** at (0,1) — visited at step 3",
            "- LOOP detected at [0,1] — visited at STEP 3",
            "`LOOP detected at (0,1) — visited at step 3`",
        ]
    ]
    + [
        case(
            f"strategy: {text!r}",
            text,
            signals=[("strategy_change", None)],
            kinds=["strategy_change"],
            n=0,
        )
        for text in [
            "STRATEGY_CHANGE — south first",
            "STRATEGY_CHANGE — 남쪽부터 본다",
            "STRATEGY_CHANGE: south first",
            "strategy_change - south first",
            "STRATEGY\\_CHANGE — south first",
            "**STRATEGY_CHANGE** — south first",
            "- STRATEGY_CHANGE — south first",
        ]
    ]
    + [
        case(
            "several, in order",
            lines(
                "LOOP detected at (1,1)",
                E1,
                "DEAD_END at (0,1)",
                "DEAD_END at (1,1)",
                "LOOP detected at (0,1)",
            ),
            signals=[("loop detected", C), ("dead end", B), ("dead end", C), ("loop detected", B)],
            loops=2,
            hops=[HOP1],
        ),
        case("none", lines(E1, S2, f"FINAL_PATH: {ABC}"), silent=True, loops=0),
    ]
)
NEGATIONS = [
    case(f"negation: {text!r}", text, silent=True, loops=0)
    for text in [
        "no dead end here",
        "No dead end here.",
        "There is no dead end at (0,1).",
        "(0,1) is not a dead end.",
        "This isn't a dead end.",
        "No DEAD_END at (0,1)",
        "DEAD_END: none",
        "I did not hit a dead end.",
        "no loop detected",
        "No loops were detected.",
        "LOOP detected: none",
        "LOOP detected: no",
        "did not detect any loop",
        "No backtracking was needed.",
        "without backtracking",
        "No strategy change.",
        "STRATEGY_CHANGE: none",
        "루프 없음",
        "루프가 없습니다.",
        "루프가 감지되지 않음",
        "루프는 발견되지 않았습니다.",
        "LOOP 없음",
        "LOOP detected: 없음",
        "막다른 길 없음",
        "막다른 길 아님",
        "막다른 길이 아닙니다.",
        "(0,1)은 막다른 길이 아님",
        "DEAD_END 아님",
        "DEAD_END: 없음",
        "백트래킹 없음",
        "전략 변경 없음",
        "STRATEGY_CHANGE: 없음",
        unicodedata.normalize("NFD", "DEAD_END: 없음"),
        "STEP 1: (0,0) → E | 확신도: 90% | 막다른 길 아님",
        "STEP 1: (0,0) → E | confidence: 90% | no dead end here",
    ]
]
COUNTS = [
    case(f"counts: {text!r}", text, backtracks=back, hallucinations=wrong)
    for text, back, wrong in [
        ("BACKTRACK_COUNT: 3\nHALLUCINATION_COUNT: 0", 3, 0),
        ("BACKTRACK_COUNT: 0", 0, None),
        ("HALLUCINATION_COUNT: 12", None, 12),
        ("BACKTRACK_COUNT: 99", 99, None),
        ("**BACKTRACK_COUNT:** 3\n**HALLUCINATION_COUNT:** 1", 3, 1),
        ("**BACKTRACK_COUNT**: 3\n**HALLUCINATION_COUNT**: 1", 3, 1),
        ("- BACKTRACK_COUNT: 3\n- HALLUCINATION_COUNT: 1", 3, 1),
        ("BACKTRACK\\_COUNT: 3\nHALLUCINATION\\_COUNT: 1", 3, 1),
        ("```\nBACKTRACK_COUNT: 3\nHALLUCINATION_COUNT: 1\n```", 3, 1),
        ("BACKTRACK_COUNT: 3\r\nHALLUCINATION_COUNT: 1\r\n", 3, 1),
        ("ＢＡＣＫＴＲＡＣＫ＿ＣＯＵＮＴ：３", 3, None),
        ("backtrack_count: 3", 3, None),
        ("BACKTRACK_COUNT: N\nHALLUCINATION_COUNT: N", None, None),
        ("BACKTRACK_COUNT: [N]", None, None),
        ("BACKTRACK_COUNT:", None, None),
        ("BACKTRACK_COUNT: many", None, None),
        ("BACKTRACK_COUNT:\nHALLUCINATION_COUNT: 7", None, 7),
        ("", None, None),
    ]
]

TABLE_OF_CASES = {
    "format": FORMAT,
    "reasoning": REASONING,
    "around": AROUND,
    "words": WORDS,
    "arrows": ARROWS,
    "directions": DIRECTIONS,
    "destinations": DESTINATIONS,
    "silent": SILENT,
    "phantoms": PHANTOMS,
    "malformed": MALFORMED,
    "no step word": NO_STEP_WORD,
    "reasons": REASONS,
    "tables": TABLES,
    "confidence": CONFIDENCE,
    "fractions": FRACTIONS,
    "next line": NEXT_LINE,
    "log": LOG,
    "echoes": ECHOES,
    "listings": LISTINGS,
    "blocks": BLOCKS,
    "paths": PATHS,
    "incomplete": INCOMPLETE,
    "signals": SIGNALS,
    "negations": NEGATIONS,
    "counts": COUNTS,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(*c.values, id=f"{group}: {c.id}")
        for group, cases in TABLE_OF_CASES.items()
        for c in cases
    ],
)
def test_case(text: str, expected: dict[str, Any]) -> None:
    answer = parse(text)
    assert not failed(answer, expected), (text, answer)


# Forms that a person would read and that nobody promised: a parser may read them.
GENEROUS = [
    *(
        case(f"arrow {arrow!r}", f"STEP 1: (0,0) {arrow} E", steps=[step(1, A, "E")])
        for arrow in ["⇒", "⟶", "➔", "➡", "—>", "$\\rightarrow$", "\\to", ">"]
    ),
    *(
        case(f"direction {word!r}", f"STEP 1: (0,0) → {word}", steps=[step(1, A, way)])
        for word, way in [
            ("동", "E"),
            ("위", "N"),
            ("위로", "N"),
            ("동쪽으로", "E"),
            ("남쪽(S)", "S"),
            ("S (South)", "S"),
            ("East (E)", "E"),
            ("→E", "E"),
            ("➡️", "E"),
            ("⬇", "S"),
            ("move E", "E"),
            ("앞으로", "앞으로"),
            ("backward", "BACKWARD"),
            ("남서", "남서"),
            ("north-east", "NORTH-EAST"),
        ]
    ),
    *(
        case(f"step label {label!r}", f"{label} (0,0) → E", steps=[step(3, A, "E")])
        for label in [
            "STEP 3.",
            "STEP 3)",
            "STEP 3 -",
            "STEP 3",
            "STEP #3:",
            "[STEP 3]",
            "STEP_3:",
            "(STEP 3)",
            "3단계:",
            "> STEP 3:",
        ]
    ),
    *(
        case(f"confidence {text!r}", f"{E1} {text}", confidences=[90])
        for text in ["(confidence: 90%)", "(90%)", "| 90", "| 0.9", "| 확신도=90%", ", 90% sure"]
    ),
    case("direction without an arrow", "STEP 1: (0,0) E", steps=[step(1, A, "E")]),
    case("direction after a comma", "STEP 1: (0,0), E", steps=[step(1, A, "E")]),
    case("arrow before the direction, no cell", "STEP 1: → E", steps=[step(1, None, "E")]),
    case("direction and destination, no cell", "STEP 1: E→ → (0,1)", steps=[step(1, None, "E", B)]),
    case("destination without an arrow", "STEP 1: (0,0) → E (0,1)", steps=[step(1, A, "E", B)]),
    case("words around", "STEP 1: From (0,0) go East to (0,1)", steps=[step(1, A, "E", B)]),
    case("arrival at the goal", "STEP 9: (4,4) → GOAL", steps=[step(9, None, None, (4, 4))]),
    case("unicode minus", "STEP 1: (0,0) → (−1,0)", steps=[step(1, A, None, (-1, 0))]),
    case("carriage returns", f"{E1}\r{S2}", hops=[HOP1, HOP2]),
    case("upper-case tags", f"<THINK>STEP 1: (0,0) → S</THINK>{E1}", hops=[HOP1]),
    case("thinking tags", f"<thinking>STEP 1: (0,0) → S</thinking>\n{E1}", hops=[HOP1]),
    case(
        "table without outer bars",
        "STEP | Cell | Direction\n---|---|---\n1 | (0,0) | E\n2 | (0,1) | S",
        hops=[HOP1, HOP2],
    ),
    case(
        "table with a # in its step column",
        table("| Step # | Position | Move |", "| 1 | (0,0) | E |", "| 2 | (0,1) | S |"),
        hops=[HOP1, HOP2],
    ),
    case(
        "fields on lines of their own",
        "### STEP 1\n- Cell: (0,0)\n- Direction: E\n- Confidence: 90%",
        steps=[step(1, A, "E", None, 90)],
    ),
    case("log with bare numbers", lines(E1, "CONFIDENCE_LOG: 1:60"), confidences=[60]),
    case("log with equals signs", lines(E1, "CONFIDENCE_LOG: step1=60"), confidences=[60]),
    case("log, ko", lines(E1, "CONFIDENCE_LOG: 단계1:60"), confidences=[60]),
    case("log below its label", lines(E1, "CONFIDENCE_LOG:", "step1:60"), confidences=[60]),
    *(
        case(f"path {text!r}", text, path=[A, B, C])
        for text in [
            f"Final Path: {ABC}",
            f"FINAL_PATH:\n\n{ABC}",
            f"FINAL PATH: {ABC}",
            f"FINAL_PATH = {ABC}",
            f"최종 경로: {ABC}",
            f"FINAL_PATH: {ABC} (2 moves)",
            f"| FINAL_PATH | {ABC} |",
            "FINAL_PATH: (0,0), (0,1), (1,1)",
            "FINAL_PATH: (0,0) (0,1) (1,1)",
            "FINAL_PATH: [(0,0), (0,1), (1,1)]",
            "FINAL_PATH: $(0,0) \\rightarrow (0,1) \\rightarrow (1,1)$",
        ]
    ),
    case("dead end in Korean", "(0,1)에서 막다른 길 — 되돌아감", signals=[("dead end", B)]),
    case("dead end in words", "(0,1) is a dead end, backtracking", signals=[("dead end", B)]),
    case("loop in Korean", "루프 감지: (0,1) — 3단계에서 방문", signals=[("loop detected", B)]),
    case("count in Korean digits", "BACKTRACK_COUNT: 3회", backtracks=3),
]


@pytest.mark.parametrize(("text", "expected"), GENEROUS)
def test_generous(text: str, expected: dict[str, Any]) -> None:
    assert not failed(parse(text), expected)


def test_loop_names_its_step() -> None:
    (signal,) = parse("LOOP detected at (0,1) — visited at step 3").signals
    assert (signal.kind, signal.cell, signal.step) == ("loop detected", (0, 1), 3)


def test_metacognitive_signals_keep_their_order() -> None:
    text = lines("STRATEGY_CHANGE — a", "LOOP detected at (0,1)", "DEAD_END at (0,1)")
    assert list(parse(text).metacog_signals) == ["dead end", "loop detected", "strategy_change"]


# ---------------------------------------------------------------- numbered by place

#   (0,0)-(0,1)-(0,2)
#           |     |
#   (1,0)-(1,1) (1,2)
#     |     |
#   (2,0) (2,1)-(2,2)      solution: (0,0) (0,1) (1,1) (2,1) (2,2)
MAZE = hallumaze.MazeEngine.from_openings(["E", "ESW", "SW", "ES", "NSW", "N", "N", "NE", "W"])


def test_steps_are_numbered_by_their_place() -> None:
    text = lines("STEP 5: (0,0) → E", "STEP 6: (0,1) → banana", "STEP 9: (0,1) → S")
    answer = parse(text)
    assert [s.number for s in answer.steps] == [5, 9]
    walk = hallumaze.judge(answer, MAZE).walk
    assert [(v.step, v.verdict) for v in walk.verdicts] == [(1, "ok"), (2, "ok")]


# ---------------------------------------------------------------- properties

STEADY = settings(max_examples=300, deadline=None, derandomize=True, database=None)

FRAGMENT_LINE = (
    "STEP ~STEP 1:~STEP 2: ~Step 3:~step1:90~단계 4: ~STEP N:~ＳＴＥＰ　１："
    "~(0,0)~(0,1)~(1,1)~(2,2)~( 0 , 1 )~[0,1]~(-1,0)~(9,9)~(0,~(~[~)~]"
    "~(r,c)~[방향]~[reason]~XX%~conf1~…~...~(N-1,N-1)~N~n"
    "~ → ~→~->~ => ~-->~↓~E→~N↓~[E→ S↓]~E→ S↓~East~오른쪽~동쪽~E~S~W"
    "~NE~forward~대각선~EXIT~banana~⚑ S방향 힌트: 빛~direction hint:"
    "~ | ~|~| STEP | Cell | Direction |~|---|---|---|~| 1 | (0,0) | E |"
    "~확신도: ~Confidence: ~90%~0.9~150%~-5%~1~CONFIDENCE_LOG: ~step0:100, ~step2:50%"
    "~FINAL_PATH: ~FINAL_PATH:\n~(0,0)→(0,1)→(1,1)→(2,1)→(2,2)~(0,0)→(0,1)→~FINAL\\_PATH"
    "~BACKTRACK_COUNT: ~HALLUCINATION_COUNT: ~99~DEAD_END at ~DEAD\\_END~LOOP detected at "
    "~ — backtracking~ — visited at step ~STRATEGY_CHANGE — ~no ~없음~not ~아님"
    "~<think>~</think>~```~**~*~_~`~- ~# ~1. ~\\~\t~ ~\r~\0~-~−~%~％~：~1e999~nan~inf"
    "~\u0301~\u200b~\ufeff~\u2028~\x85~\x0c~\ufdfa~²~①~٣~🧭~\ud800"
)
FRAGMENTS = [*FRAGMENT_LINE.split("~"), "9" * 5000]
NASTY = [
    "BACKTRACK_COUNT: " + "9" * 5000,
    "STEP " + "9" * 5000 + ": (0,0) → E",
    "STEP 1: (0," + "9" * 5000 + ") → E",
    "FINAL_PATH: (0,0)→(" + "9" * 5000 + ",0)",
    "STEP 1: (0,0) → E | 확신도: " + "9" * 5000 + "%",
    "CONFIDENCE_LOG: step" + "9" * 5000 + ":90",
    "LOOP detected at (0,1) — visited at step " + "9" * 5000,
    "STEP ²: (0,²) → E | 확신도: ²%",
    "STEP ①: (٣,٣) → E | 확신도: ٣%",
    "STEP 1: (0,0) → \ud800",
    "STEP 1: (0,0) → E | confidence: 1e999%",
    "STEP 1: (0,0) → E | confidence: nan",
    "| STEP |\n|",
    "| STEP |",
    "|",
    "FINAL_PATH:",
    "FINAL_PATH: →→→",
    "<think></think></think><think>",
    "\ufeffSTEP 1: (0,0) → E",
]
pieces = st.lists(st.sampled_from(FRAGMENTS), max_size=12)
fragment_lines = st.builds(lambda sep, ps: sep.join(ps), st.sampled_from(["", "", " "]), pieces)
good_lines = st.sampled_from([*ENGLISH.split("\n"), *KOREAN.split("\n"), "STEP 5: (1,1) → S | 70%"])
fragment_texts = st.builds(
    lambda sep, ls: sep.join(ls),
    st.sampled_from(["\n", "\n", "\r\n", "\n\n"]),
    st.lists(st.one_of(fragment_lines, good_lines), max_size=12),
)
any_text = st.one_of(st.text(max_size=200), fragment_texts, fragment_texts)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_text_never_raises(text: str) -> None:
    check_ranges(text)


@STEADY
@given(any_text)
@example("STEP 1: (0,0) → E | 확신도: 90%\nFINAL_PATH: (0,0)→(0,1)→(1,1)→(2,1)→(2,2)")
def test_any_text_gives_an_answer_in_range(text: str) -> None:
    check_ranges(text)


def check_ranges(text: str) -> None:
    answer = parse(text)
    assert isinstance(answer, Answer)
    assert parse(text) == answer
    check_answer(answer)
    check_metrics(hallumaze.judge(answer, MAZE))


def check_answer(answer: Answer) -> None:
    confidences = [*(s.confidence for s in answer.steps), *answer.path_confidence]
    assert all(c is None or 0 <= c <= 100 for c in confidences)
    assert all(s.direction or s.to for s in answer.steps)  # a step says where it goes
    assert answer.malformed_lines >= 0
    assert answer.declared_loops == sum(s.kind == "loop detected" for s in answer.signals)
    assert answer.format_ok == (bool(answer.steps) and len(answer.final_path) >= 2)
    order = [s.line for s in answer.steps]
    assert order == sorted(order)


def check_metrics(m: hallumaze.Metrics) -> None:
    assert m.sr in (0, 1)
    assert 0 <= m.mei <= 0.9 + 1e-9
    assert m.ce is None or 0 <= m.ce <= 1
    assert 0 <= m.brs <= 1
    assert 0 <= m.hallumaze_score <= 0.95 + 1e-9
    assert m.hallucination_count >= 0
    assert m.backtrack_count >= 0
    assert m.loop_count >= 0
    assert m.readable or m.sr == m.mei == m.brs == m.hallumaze_score == 0


BOASTS = [
    "BACKTRACK_COUNT: 99",
    "HALLUCINATION_COUNT: 0",
    "LOOP detected at (0,0) — visited at step 1",
    "DEAD_END at (0,1) — backtracking",
    "STRATEGY_CHANGE — …",
    "STRATEGY_CHANGE — 다른 방향을 본다",
]
OFFICIAL = (
    *("readable", "sr", "mei", "ce", "brs", "hallumaze_score", "hallucination_count"),
    *("first_hallucination_step", "backtrack_count", "loop_count", "hrr", "early", "esc"),
    "path_valid",
)
boasts = st.lists(st.sampled_from(BOASTS), min_size=1, max_size=6)


def official(text: str) -> dict[str, Any]:
    metrics = hallumaze.judge(parse(text), MAZE)
    return {name: getattr(metrics, name) for name in OFFICIAL}


@STEADY
@given(any_text, boasts)
def test_boasts_around_any_text_change_nothing_official(text: str, boast: list[str]) -> None:
    assert official(lines(text, *boast)) == official(text)
    assert official(lines(*boast, text)) == official(text)


@STEADY
@given(st.data())
def test_boasts_between_steps_change_nothing_official(data: st.DataObject) -> None:
    ways = data.draw(st.lists(st.sampled_from("NESW"), max_size=8))
    plain = [f"STEP {n}: {way} | 확신도: 70%" for n, way in enumerate(ways, 1)]
    plain.append("FINAL_PATH: (0,0)→(0,1)→(1,1)→(2,1)→(2,2)")
    loud = [part for line in plain for part in [*data.draw(boasts), line]]
    assert official(lines(*loud)) == official(lines(*plain))


# ---------------------------------------------------------------- parse(render(walk)) == walk

cells = st.tuples(st.integers(-2, 12), st.integers(-2, 12))
ways = st.sampled_from("NESW")
phantom_ways = st.sampled_from(["NE", "SW", "FORWARD", "대각선"])
percents = st.none() | st.integers(0, 100)
moves = st.one_of(
    st.tuples(cells, ways, st.none() | cells, percents),
    st.tuples(cells, ways, st.none() | cells, percents),
    st.tuples(cells, phantom_ways, st.none() | cells, percents),
    st.tuples(cells, st.none(), cells, percents),
    st.tuples(st.none(), ways, st.none(), percents),
    st.tuples(st.none(), st.none(), cells, percents),
)
ARROW_OF = dict(zip("NESW", "↑→↓←", strict=True))
WAY_STYLES: list[Callable[[str], str]] = [
    lambda way: way,
    lambda way: way.lower(),
    lambda way: f"[{way}]",
    lambda way: way + ARROW_OF[way],
    lambda way: f"[{way}{ARROW_OF[way]}]",
    lambda way: f"**{way}**",
    lambda way: {"N": "North", "E": "East", "S": "South", "W": "West"}[way],
    lambda way: {"N": "북쪽", "E": "동쪽", "S": "남쪽", "W": "서쪽"}[way],
    lambda way: {"N": "위쪽", "E": "오른쪽", "S": "아래쪽", "W": "왼쪽"}[way],
    lambda way: {"N": "up", "E": "right", "S": "down", "W": "left"}[way],
]
CELL_STYLES = ["({},{})", "({}, {})", "( {} , {} )", "[{},{}]", "`({},{})`"]
LINE_STYLES = ["{}", "**{}**", "*{}*", "`{}`", "- {}", "* {}", "## {}", "{}  ", "    {}", "| {} |"]
PERCENT_STYLES = [" | 확신도: {}", " | Confidence: {}", " | confidence: {} | reason"]
PERCENT_STYLES += ["\n확신도: {}", "\n- Confidence: {}", "\n   - **Confidence:** {}"]
COLUMNS = ["STEP", "Cell", "Direction", "Confidence", "Reason"]
KOREAN_COLUMNS = ["단계", "셀", "방향", "확신도", "이유"]
WIDE = {ord(c): ord(c) + 0xFEE0 for c in "0123456789ABCDEFNSTPW():,%"}


class Pen:
    """One random hand: how cells, arrows, directions, confidences and lines are written."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], percent: list[int]) -> None:
        def pick(choices: Sequence[Any]) -> Any:
            return draw(st.sampled_from(choices))

        self.word = pick(["STEP {}:", "Step {}:", "step {}:", "단계 {}:", "**STEP {}:**"])
        self.cell_style = pick(CELL_STYLES)
        self.arrow = pick([" → ", "→", " -> ", "->", " => ", " --> "])
        self.way_style = pick(WAY_STYLES)
        self.line_style = pick(LINE_STYLES)
        self.percent_style = pick(PERCENT_STYLES)
        # Bare numbers that are all 0 or 1 would rightly be read as fractions.
        bare = ["int"] if any(p > 1 for p in percent) else []
        self.number_style = pick(["percent", "fraction", *bare])
        self.end = pick(["\n", "\r\n"])
        self.last = pick(["", "\n"])
        self.around = pick(["{}", "{}", "```\n{}\n```", "```text\n{}\n```", "Walk:\n\n{}\n\nDone."])
        self.script = pick(["plain", "plain", "wide", "decomposed"])

    def cell(self, cell: Cell) -> str:
        return str(self.cell_style.format(*cell))

    def way(self, way: str) -> str:
        return str(self.way_style(way)) if way in ARROW_OF else way

    def number(self, percent: int) -> str:
        styles = {"percent": f"{percent}%", "fraction": f"{percent / 100:.2f}", "int": str(percent)}
        return styles[self.number_style]

    def step(self, number: int, move: tuple[Any, ...]) -> str:
        cell, way, to, percent = move
        parts = [self.cell(cell)] if cell else []
        parts += [self.way(way)] if way else []
        parts += [self.cell(to)] if to else []
        text = f"{self.word.format(number)} {self.arrow.join(parts)}"
        tail = self.percent_style.format(self.number(percent)) if percent is not None else ""
        if tail.startswith("\n"):
            return str(self.line_style.format(text)) + tail
        return str(self.line_style.format(text + tail))

    def finish(self, rows: list[str]) -> str:
        text = self.around.format("\n".join(rows)) + self.last
        if self.script == "wide":
            text = text.translate(WIDE)
        if self.script == "decomposed":
            text = unicodedata.normalize("NFD", text)
        return str(text.replace("\n", self.end))


def written(walk: Sequence[tuple[Any, ...]]) -> list[Step]:
    return [(n, *move) for n, move in enumerate(walk, 1)]


@STEADY
@given(st.data())
def test_what_was_written_is_read(data: st.DataObject) -> None:
    walk = data.draw(st.lists(moves, min_size=1, max_size=8))
    path = data.draw(st.lists(cells, min_size=2, max_size=8))
    pen = Pen(data.draw, [m[3] for m in walk if m[3] is not None])
    rows = [pen.step(n, move) for n, move in enumerate(walk, 1)]
    label = data.draw(st.sampled_from(["FINAL_PATH: ", "**FINAL_PATH:** ", "FINAL_PATH:\n"]))
    rows.append("\n" + label + pen.arrow.join(map(pen.cell, path)))
    text = pen.finish(rows)
    answer = parse(text)
    assert same_steps(read_steps(answer), written(walk)), text
    assert answer.final_path == tuple(path), text
    assert answer.malformed_lines == 0, text
    assert answer.format_ok


@STEADY
@given(st.data())
def test_what_was_written_in_a_table_is_read(data: st.DataObject) -> None:
    row_moves = st.tuples(cells, ways, st.none(), percents)
    walk = data.draw(st.lists(row_moves, min_size=1, max_size=8))
    pen = Pen(data.draw, [m[3] for m in walk if m[3] is not None])
    order = data.draw(st.permutations(range(5)))
    heads = data.draw(st.sampled_from([COLUMNS, KOREAN_COLUMNS]))
    rows = [[heads[k] for k in order], ["---"] * 5]
    for n, (cell, way, _, percent) in enumerate(walk, 1):
        conf = "" if percent is None else pen.number(percent)
        row = [str(n), pen.cell(cell), pen.way(way), conf, "open"]
        rows.append([row[k] for k in order])
    text = pen.finish(["| " + " | ".join(row) + " |" for row in rows])
    answer = parse(text)
    assert same_steps(read_steps(answer), written(walk)), text
    assert answer.malformed_lines == 0, text


# ---------------------------------------------------------------- linear time

SMALL, MIDDLE, BIG = 50_000, 250_000, 1_000_000
FLOOR = 0.5  # CPU seconds under which a ratio says nothing
SLACK = 3  # machines are noisy; what is quadratic takes five times its share


def assert_linear(make: Maker, sizes: Sequence[int], read: Callable[[str], Answer] = parse) -> None:
    """Each size takes about its share more than the one before, in CPU time.

    What is not linear fails at a middle size, before the big one would hang.
    """
    before, seconds = sizes[0], cpu_seconds(read, make(sizes[0]))
    for size in sizes[1:]:
        limit = SLACK * seconds * size / before + FLOOR
        before, seconds = size, cpu_seconds(read, make(size))
        assert seconds <= limit, f"{size} bytes"


@pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))
def test_junk_takes_linear_time(make: Maker) -> None:
    assert_linear(make, [SMALL, MIDDLE, BIG])


@pytest.mark.parametrize("make", WELL_FORMED.values(), ids=list(WELL_FORMED))
def test_steps_take_linear_time(make: Maker) -> None:
    assert_linear(make, [SMALL, MIDDLE, BIG])


@pytest.mark.parametrize("unit", ["MOVE: ", "MOVE: E\n", "move: (", "이동: 이동: 이동:\n"])
def test_moves_of_a_game_take_linear_time(unit: str) -> None:
    def make(size: int) -> str:
        return unit * (size // len(unit))

    assert_linear(make, [SMALL, MIDDLE, BIG], ResponseParser().parse_move)


# ---------------------------------------------------------------- real answers


def path_of(text: str) -> list[Cell]:
    """A path written as rows of digits: "00 01 11"."""
    return [(int(pair[0]), int(pair[1])) for pair in text.split()]


def listing_copied(**more: Any) -> dict[str, Any]:
    return {"n": 0, "format_ok": False, "silent": True, **more}


ROWS = "00 10 11 12 13 14 20 21 22 23 24 30 31 32 33 34 40 41 42 43 44"
EDGE = "00 10 20 30 40 41 42 43 44"
LOST = [B, *(divmod(k, 5) for k in (7, 8, 9, *range(10, 25)))]  # dead ends of answer 16

REAL: list[dict[str, Any]] = [
    # 0: the listing with a literal N; 21 of 25 lines hold several directions. Path "(0,0)→…".
    listing_copied(no_path=True, backtracks=4, hallucinations=4, malformed_min=21),
    # 1: no STEP; a path of two cells that are no neighbours; the log is a template.
    {"n": 0, "path": [A, (4, 4)], "no_path_confidence": True, "backtracks": 1, "silent": True},
    # 2: as 0; 20 of 25 lines hold several directions.
    listing_copied(no_path=True, backtracks=4, hallucinations=4, malformed_min=20),
    # 3: 36 STEP lines, only 7 (1, 2, 6, 12, 19, 26, 33) hold one direction; the rest are listing
    #    lines and copied hints. Cut before any path.
    {"n": 0, "no_path": True, "no_counts": True, "format_ok": False, "malformed_min": 29},
    # 4: no STEP; nine cells; the log goes with the eight moves of the path.
    {
        "n": 0,
        "path": path_of(EDGE),
        "path_confidences": [100, 90, 80, 70, 60, 50, 40, 30],
        "backtracks": 0,
        "hallucinations": 0,
        "format_ok": False,
    },
    # 5, 6: the listing, 21 of 25 with several directions; a path that reads the maze row by row.
    #       STEP lines are there, so the log does not go with the path.
    listing_copied(path=path_of(ROWS), backtracks=0, no_path_confidence=True, malformed_min=21),
    listing_copied(path=path_of(ROWS), backtracks=0, no_path_confidence=True, malformed_min=21),
    # 7: the same listing, another path.
    listing_copied(path=path_of(EDGE), backtracks=0, no_path_confidence=True, malformed_min=21),
    # 8: as 1, on 7x7.
    {"n": 0, "path": [A, (6, 6)], "no_path_confidence": True, "hallucinations": 1, "silent": True},
    # 9: the rules twice, nothing else.
    listing_copied(no_path=True, no_counts=True, malformed_min=2),
    # 10: "STEP 1: conf1", then template lines without STEP.
    listing_copied(no_path=True, no_counts=True, malformed_min=1),
    # 11: two counts and an endless log of conf1, conf2.
    listing_copied(no_path=True, backtracks=0, hallucinations=0),
    # 12: the listing of 7x7, three lines with one direction (1, 3, 12) of 39; cut.
    listing_copied(no_path=True, no_counts=True, malformed_min=36),
    # 13: seven cells on the diagonal; the log begins at step0.
    {
        "n": 0,
        "path": [(k, k) for k in range(7)],
        "path_confidences": [100, 80, 50, 30, 20, 10],
        "backtracks": 1,
        "hallucinations": 0,
    },
    # 14: the listing of 7x7, seven lines with one direction (1, 7, 9, 10, 16, 26, 31) of 39; cut.
    listing_copied(no_path=True, no_counts=True, malformed_min=32),
    # 15: the example of the prompt, copied: well formed.
    {
        "steps": [
            step(1, A, "E", None, 60),
            step(2, B, "W", None, 90),
            step(3, A, "S", None, 95),
            step(4, (1, 0), "E", None, 99),
        ],
        "signals": [("dead end", B)],
        "path": path_of("00 10 11"),
        "backtracks": 1,
        "hallucinations": 0,
        "malformed": 0,
        "format_ok": True,
    },
    # 16: the example, carried on: 22 well-formed steps, one dead end after each of 19.
    {
        "n": 22,
        "ways": [*"EWSENSEWSSSEWSSSEWSSSE"],
        "confidences": [60, 90, 95, *[99] * 19],
        "signals": [("dead end", cell) for cell in LOST],
        "path": path_of(EDGE),
        "backtracks": 18,
        "hallucinations": 0,
        "malformed": 0,
        "format_ok": True,
    },
    # 17: "1. **Starting Point (0,0)**" with bullets: no STEP word, no step. "Final Path:" is cut
    #     inside the twelfth cell; eleven cells can be read.
    {
        "n": 0,
        "path": path_of("00 01 02 03 04 10 11 12 13 14 20"),
        "no_counts": True,
        "format_ok": False,
    },
    # 18: "2. **Step 1: E →**", with "Confidence: 1" in a bullet below: 24 steps, all at 100 %
    #     (nothing without % is above 1); the 25th is cut behind its number.
    {
        "n": 24,
        "ways": [*"EEEESSSWWNNNSSNNNEESSSWW"],
        "confidences": [100] * 24,
        "no_path": True,
        "format_ok": False,
    },
    # 19: "2. **Cell (0,1)**:" with bullets: no STEP word, no step, no path.
    listing_copied(no_path=True, no_counts=True),
]


@pytest.mark.skipif(not ANSWERS.exists(), reason="the real answers are not part of the project")
@pytest.mark.parametrize("index", range(len(REAL)))
def test_real_answer(index: int) -> None:
    # Not splitlines(): it would also split at other line ends inside a string.
    stored = ANSWERS.read_text(encoding="utf-8").strip().split("\n")
    assert len(stored) == len(REAL)
    answer = parse(json.loads(stored[index])["response"])
    assert not failed(answer, REAL[index]), answer
