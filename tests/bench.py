"""Prints how fast HalluMaze's own code is, beside a calibration loop.

    python tests/bench.py

Each figure is the best of several rounds, and the calibration loop runs between them, so that
figures of different machines, or of one machine at different hours, compare by the last column:
the best rate of the work per million turns of the loop at its best.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import hallumaze  # noqa: E402

ROUNDS = 15
LOOP = 200_000


def calibrate() -> float:
    """CPU seconds of a plain loop."""
    start = time.process_time()
    total = 0
    for number in range(LOOP):
        total += number & 3
    return time.process_time() - start


def measure(name: str, work: Callable[[int], object], count: int) -> None:
    """Print the best rate of `work`, called with 0, 1, 2 …, in calls per CPU second."""
    loop = seconds = float("inf")
    for _ in range(ROUNDS):
        loop = min(loop, calibrate() / LOOP)
        start = time.process_time()
        for number in range(count):
            work(number)
        seconds = min(seconds, (time.process_time() - start) / count)
    print(f"{name:34} {1 / seconds:>10,.0f} /s {loop * 1e6 / seconds:>10,.1f} per million turns")


def answer_of(size: int, maze: hallumaze.MazeEngine) -> str:
    """A well-formed answer of about `size` bytes: the solution, walked as often as it takes."""
    path = [(r, c) for r, c in maze.solution_path]
    lines: list[str] = []
    while len("\n".join(lines).encode()) < size * 0.65:
        (r, c), ahead = path[len(lines) % (len(path) - 1) :][:2]
        way = maze.direction((r, c), ahead) or ""
        lines.append(f"STEP {len(lines) + 1}: ({r},{c}) → {way} | 확신도: 90% | 열린 방향으로 이동")
    log = ", ".join(f"step{k}:90" for k in range(1, len(lines) + 1))
    final = hallumaze.path_text(path)
    lines.insert(5, "DEAD_END at (0,1) — backtracking")
    lines += ["", "BACKTRACK_COUNT: 1", "HALLUCINATION_COUNT: 0", f"CONFIDENCE_LOG: {log}"]
    return "\n".join([*lines, f"FINAL_PATH: {final}"])


def help_seconds() -> float:
    """CPU seconds of `hallumaze.py --help`, as a whole process."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, str(ROOT / "hallumaze.py"), "--help"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    """The figures."""
    print(f"calibration: {LOOP / min(calibrate() for _ in range(ROUNDS)):,.0f} turns /s")
    measure("generate and solve, size 7", lambda n: hallumaze.MazeEngine(7, n), 400)
    measure("generate and solve, size 101", lambda n: hallumaze.MazeEngine(101, n), 4)
    maze = hallumaze.MazeEngine(7, 42)
    parser = hallumaze.ResponseParser()
    text = answer_of(2048, maze)
    answer = parser.parse(text)
    size = len(text.encode())
    measure(f"parse an answer of {size} bytes", lambda n: parser.parse(text), 100)
    measure("judge it", lambda n: hallumaze.judge(answer, maze), 100)
    measure("parse and judge it", lambda n: hallumaze.judge(parser.parse(text), maze), 100)
    config = hallumaze.MazeConfig()
    measure("build a prompt", lambda n: hallumaze.PromptBuilder(maze, config).build(), 100)
    print(f"{'--help, a whole process':34} {min(help_seconds() for _ in range(3)):>10.3f} s CPU")


if __name__ == "__main__":
    main()
