"""Junk that a parser must get through in linear time.

    python tests/adversarial.py            5 MB of every kind: a table of CPU seconds
    python tests/adversarial.py 1 path     1 MB, only the kinds whose name contains "path"

The tests import `KINDS` and compare sizes of the same kind; this script holds the absolute limits.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

MB = 1_000_000
JUNK_LIMIT = 2.0  # CPU seconds for 5 MB of junk
STEPS_LIMIT = 10.0  # CPU seconds for 5 MB of well-formed STEPs

Maker = Callable[[int], str]


def repeated(piece: str, before: str = "", after: str = "") -> Maker:
    """A maker of text of about `size` bytes that repeats `piece`."""
    width = len(piece.encode("utf-8", "surrogatepass"))
    return lambda size: before + piece * max(1, size // width) + after


def numbered(pattern: str, before: str = "", after: str = "") -> Maker:
    """A maker of lines in which `{n}` counts up, so that no two are alike."""

    def make(size: int) -> str:
        parts, used, n = [before], 0, 0
        while used < size:
            n += 1
            part = pattern.format(n=n, r=n % 97, c=n % 89)
            parts.append(part)
            used += len(part.encode())
        return "".join([*parts, after])

    return make


def blocks(size: int) -> str:
    """Many short blocks, each a little different: comparing all pairs would be quadratic."""
    parts, used, n = [], 0, 0
    while used < size:
        n += 1
        part = f"STEP 1: (0,0) → E\nSTEP 2: (0,1) → S\nSTEP 3: ({n},{n}) → W\n"
        parts.append(part)
        used += len(part.encode())
    return "".join(parts)


def growing_blocks(size: int) -> str:
    """Blocks that share a long beginning and get longer: comparing prefixes would be quadratic."""
    parts, used, length = [], 0, 0
    while used < size:
        length += 1
        part = "".join(f"STEP {k}: ({k},0) → S\n" for k in range(1, length + 1))
        parts.append(part)
        used += len(part.encode())
    return "".join(parts)


TABLE_HEAD = "| STEP | Cell | Direction | Confidence |\n|---|---|---|---|\n"

KINDS: dict[str, Maker] = {
    "step labels": repeated("STEP 1:"),
    "step labels, lines": repeated("STEP 1:\n"),
    "step labels, spaces": repeated("STEP "),
    "korean step labels": repeated("단계 1: "),
    "open parens": repeated("((((("),
    "closed parens": repeated(")))))"),
    "open brackets": repeated("[[[[["),
    "nested brackets": repeated("[(", before="STEP 1: "),
    "path labels": repeated("FINAL_PATH: "),
    "path labels, lines": repeated("FINAL_PATH:\n"),
    "path labels, one cell": repeated("FINAL_PATH: (0,0)→\n"),
    "path labels, ellipsis": repeated("FINAL_PATH: (0,0)→…→(4,4)\n"),
    "endless path": repeated("(0,0)→", before="FINAL_PATH: "),
    "endless path, no label": repeated("(0,0)→"),
    "endless path, wrapped": repeated("(0,0)→\n", before="FINAL_PATH:\n"),
    "cells never closed": repeated("(0,0", before="FINAL_PATH: "),
    "cells half open": repeated("(0,", before="STEP 1: "),
    "one line of letters": repeated("a"),
    "one line of E": repeated("E", before="STEP 1: (0,0) → "),
    "one line of directions": repeated("E→ S↓ ", before="STEP 1: (0,0) → ["),
    "one line of arrows": repeated("→", before="STEP 1: (0,0) "),
    "one line of dashes": repeated("-", before="STEP 1: (0,0) "),
    "ascii arrows": repeated("-->", before="FINAL_PATH: (0,0)"),
    "newlines": repeated("\n"),
    "crlf": repeated("\r\n"),
    "carriage returns": repeated("\r"),
    "spaces": repeated(" "),
    "spaces in a step": repeated(" ", before="STEP 1: (0,0)", after="→ E"),
    "spaces in a cell": repeated(" ", before="STEP 1: (0", after=",0) → E"),
    "tabs and newlines": repeated("\t \n", before="FINAL_PATH:"),
    "unicode spaces": repeated("\u3000\u00a0\u2003"),
    "pipes": repeated("|"),
    "pipe rows": repeated("| | | |\n"),
    "table rows under STEP": repeated("| 1 | (0,0) | E→ S↓ | 90% |\n", before=TABLE_HEAD),
    "one table row": repeated("| (0,0) ", before=TABLE_HEAD),
    "table heads": repeated(TABLE_HEAD),
    "dash rows": repeated("|---", before="| STEP |\n"),
    "think opens": repeated("<think>"),
    "think closes": repeated("</think>"),
    "think pairs": repeated("<think></think>"),
    "think torn": repeated("</thin"),
    "stars": repeated("**"),
    "stars in a step": repeated("**", before="STEP 1: "),
    "underscores": repeated("_"),
    "backticks": repeated("`"),
    "fences": repeated("```\n"),
    "hashes": repeated("#"),
    "bullets": repeated("- "),
    "numbering": repeated("1. "),
    "backslashes": repeated("\\", before="DEAD", after="_END at (0,1)"),
    "confidence log": numbered("step{n}:90, ", before="CONFIDENCE_LOG: "),
    "confidence log, words": numbered("step6:conf{n}, ", before="CONFIDENCE_LOG: "),
    "confidence logs": repeated("CONFIDENCE_LOG: step1:90\n", before="STEP 1: (0,0) → E\n"),
    "log without label": repeated("step1:"),
    "confidence lines": repeated("확신도: 90%\n", before="STEP 1: (0,0) → E\n"),
    "confidence labels": repeated("confidence ", before="STEP 1: (0,0) → E | "),
    "digits": repeated("1234567890"),
    "digits in a step": repeated("9", before="STEP "),
    "digits in a cell": repeated("9", before="STEP 1: (0,"),
    "digits in a count": repeated("9", before="BACKTRACK_COUNT: "),
    "digits in a confidence": repeated("9", before="STEP 1: (0,0) → E | 확신도: ", after="%"),
    "decimals": repeated("0.", before="STEP 1: (0,0) → E | confidence: "),
    "minus signs": repeated("-", before="STEP 1: (", after="1,0) → E"),
    "ligatures": repeated("\ufdfa"),  # one character becomes eighteen under NFKC
    "ligatures in a step": repeated("\ufdfa", before="STEP 1: (0,0) → "),
    "full-width": repeated("ＳＴＥＰ　１："),
    "combining marks": repeated("\u0301\u0323", before="e"),
    "decomposed korean": repeated("\u1103\u1161\u11ab\u1100\u1168 1: "),
    "step chain": repeated("(0,0) → (0,1) → ", before="STEP 1: "),
    "no no no": repeated("no ", after="dead end"),
    "no dead end": repeated("no dead end "),
    "dead ends": repeated("DEAD_END at (0,1) — backtracking\n"),
    "dead ends, one line": repeated("DEAD_END at (0,1) "),
    "dead end, far cell": repeated("DEAD_END at ("),
    "loops": repeated("LOOP detected at (0,1) — visited at step 3\n"),
    "loop words": repeated("loop "),
    "strategy changes": repeated("STRATEGY_CHANGE "),
    "negations": repeated("루프 없음 "),
    "negation words": repeated("not without never none 없음 아님 "),
    "listing": repeated("(0,0): [E→ S↓]\n"),
    "listing steps": repeated("STEP N: (0,0) → [E→ S↓] | 확신도: 90% | [reason]\n"),
    "template": repeated("STEP N: (r,c) → [방향] | 확신도: XX% | [이유]\n"),
    "hints": repeated("STEP 3: N direction hint: a breeze\n"),
    "counts": repeated("BACKTRACK_COUNT: 99\nHALLUCINATION_COUNT: 0\n"),
    "nul": repeated("\0"),
    "surrogates": repeated("\ud800"),
    "emoji": repeated("🧭"),
}

WELL_FORMED: dict[str, Maker] = {
    "same step": repeated("STEP 1: (0,0) → E\n"),
    "falling numbers": repeated("STEP 2: (0,1) → S\nSTEP 1: (0,0) → E\n"),
    "many blocks": blocks,
    "growing blocks": growing_blocks,
    "steps": numbered("STEP {n}: ({r},{c}) → E | 확신도: 90% | a reason\n"),
    "steps, no confidence": numbered("STEP {n}: ({r},{c}) → E\n"),
    "steps, destinations": numbered("STEP {n}: ({r},{c}) → W← → (4,5) | confidence: 95%\n"),
    "steps in a table": numbered("| {n} | ({r},{c}) | E | 90% |\n", before=TABLE_HEAD),
    "steps, bold": numbered("- **STEP {n}:** ({r},{c}) → **East** | Confidence: 90%\n"),
}


def cpu_seconds(parse: Callable[[str], object], text: str) -> float:
    """CPU time of one call, without what the garbage of the last one costs."""
    gc.collect()
    begin = time.process_time()
    parse(text)
    return time.process_time() - begin


def main(argv: list[str]) -> int:
    """Print the table; the exit code is 1 when any kind is over its limit."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from hallumaze import ResponseParser

    size = int(float(argv[0]) * MB) if argv else 5 * MB
    wanted = argv[1] if len(argv) > 1 else ""
    late = 0
    for kinds, full in ((KINDS, JUNK_LIMIT), (WELL_FORMED, STEPS_LIMIT)):
        limit = full * size / (5 * MB)
        for name, make in kinds.items():
            if wanted in name:
                seconds = cpu_seconds(ResponseParser().parse, make(size))
                late += seconds > limit
                print(f"{name:26} {seconds:7.3f} s{'  TOO SLOW' * (seconds > limit)}", flush=True)
    print(f"{late} over the limit")
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
