"""Prints how fast HalluMaze's own code is, beside a calibration loop.

    python tests/bench.py               the rates of the parts
    python tests/bench.py --replay      whole runs of 1,000, 10,000 and 100,000 stored answers
    python tests/bench.py --overhead    a run over the network beside a bare loop over the same SDK
    python tests/bench.py --games       64 games at once, in the process and over the network
    python tests/bench.py --statistics  how far intervals and tests can be trusted, and their time
    python tests/bench.py --wiki        a graph of 549,232 pages, and a dump of 25 million links

Each figure is the best of several rounds, and the calibration loop runs between them, so that
figures of different machines, or of one machine at different hours, compare by the last column:
the best rate of the work per million turns of the loop at its best.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from servers import Received, Say, Server  # noqa: E402
from servers import answer as answer_body  # noqa: E402

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


def whole(argv: list[str], **env: str) -> tuple[float, float, float]:
    """Seconds of waiting and of CPU, and MB at most, of a whole process that must succeed."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, *argv], env={**os.environ, **env})
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status:
        raise SystemExit(f"{argv} ended with {status}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def replay() -> None:
    """Runs of stored answers, one to a maze: memory must stay flat and time grow linearly."""
    config = hallumaze.MazeConfig(size=5)
    for count in (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "answers.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for seed in range(count):
                    prompt = hallumaze.PromptBuilder(hallumaze.MazeEngine(5, seed), config).build()
                    text = hallumaze.REFERENCE_AGENTS["explorer"](hallumaze._read_task(prompt.user))
                    print(json.dumps({"prompt_sha256": prompt.sha256, "text": text}), file=file)
            argv = [str(ROOT / "hallumaze.py"), "--model", f"replay/{path}", "--size", "5"]
            argv += ["--seeds", f"0-{count - 1}", "--quiet", "--csv", "--results-dir", folder]
            seconds, cpu, memory = whole(argv)
            per = 1e3 * cpu / count
            print(f"{count:>7,} replayed: {seconds:6.1f} s, CPU {per:.2f} ms each, {memory:.0f} MB")


BARE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key="sk-none")
prompts = json.load(open(sys.argv[2]))
def ask(prompt):
    messages = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model="x", messages=messages, max_tokens=2500)
with ThreadPoolExecutor(40) as pool:
    assert len(list(pool.map(ask, prompts))) == len(prompts)
"""


def overhead() -> None:
    """400 calls of 200 ms, 40 at once: the whole command beside a bare loop over the SDK."""
    text = answer_of(2048, hallumaze.MazeEngine(7, 42))

    def slowly(request: Received) -> Say:
        return Say(answer_body("openai", text), silence=0.2)

    prompts = [
        hallumaze.PromptBuilder(hallumaze.MazeEngine(7, seed), hallumaze.MazeConfig()).build().user
        for seed in range(400)
    ]
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        server.answer = slowly
        (Path(folder) / "prompts.json").write_text(json.dumps(prompts))
        url = server.base_url("compatible")
        bare = ["-c", BARE, url, f"{folder}/prompts.json"]
        ours = [str(ROOT / "hallumaze.py"), "--model", "compatible/x", "--base-url", url]
        ours += ["--seeds", "0-399", "--concurrency", "40", "--quiet", "--results-dir", folder]
        pairs = [(whole(bare)[0], whole(ours)[0]) for _ in range(5)]
    alone, with_us = (min(column) for column in zip(*pairs, strict=True))
    print(f"400 calls of 0.2 s, 40 at once: bare SDK {alone:.2f} s, HalluMaze {with_us:.2f} s,")
    print(
        f"ratio {with_us / alone:.2f} (of each pair: {', '.join(f'{b / a:.2f}' for a, b in pairs)})"
    )


BARE_GAMES = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI
client = OpenAI(api_key="k", base_url=sys.argv[1], max_retries=0)
given = json.load(open(sys.argv[2]))
system = {"role": "system", "content": given["system"]}
def play(contents):
    for k in range(1, len(contents) + 1, 2):
        turns = [
            {"role": ("user", "assistant")[n % 2], "content": text}
            for n, text in enumerate(contents[:k])
        ]
        client.chat.completions.create(
            model="x", messages=[system, *turns], max_tokens=2500, temperature=0.0
        )
with ThreadPoolExecutor(64) as pool:
    list(pool.map(play, given["games"]))
"""


def walks(count: int, size: int) -> dict[str, list[str]]:
    """By the first two lines of their prompts the games of explorer: what is said in turn."""
    found = {}
    config = hallumaze.MazeConfig(size=size, protocol="step")
    for seed in range(count):
        maze = hallumaze.MazeEngine(size, seed)
        game = hallumaze.Game(maze, config, "A", hallumaze.PromptBuilder(maze, config).build())
        while not game.over:
            messages = game.messages()
            game.take(hallumaze.STEP_AGENTS["explorer"](hallumaze._read_scene(messages)))
        contents = [message["content"] for message in messages]
        found[title(contents[0])] = [*contents, game.answer().text.split("\n")[-1]]
    return found


def title(prompt: str) -> str:
    """The lines of a prompt that name its maze."""
    return "\n".join(prompt.split("\n")[:2])


def games() -> None:
    """64 games at once against an answer of 50 ms: beside the longest game, and a bare SDK."""
    played = walks(64, 7)

    class Scripted(hallumaze.LLMProvider):
        @hallumaze.takes_turns
        def _call_scripted(self, prompt: list[dict[str, str]], max_tokens: int, system: str) -> str:
            time.sleep(0.05)
            return played[title(prompt[0]["content"])][len(prompt)]

    config = hallumaze.MazeConfig(size=7, protocol="step")
    seconds = []
    for _ in range(3):
        runner = hallumaze.BenchmarkRunner(
            [Scripted("scripted", "x")],
            hallumaze.Mazes(7, range(64)),
            config,
            limits=hallumaze.Limits(concurrency=64),
        )
        start = time.monotonic()
        assert all(trial.sr == 1 for trial in runner.run_all())
        seconds.append(time.monotonic() - start)
    longest = max(len(contents) for contents in played.values()) // 2 * 0.05
    print(f"64 games in the process: {min(seconds):.2f} s, the longest game {longest:.2f} s,")
    print(f"ratio {min(seconds) / longest:.2f}")

    def scripted(request: Received) -> Say:
        turns = request.turns
        text = played[title(turns[0][1])][len(turns)]
        return Say(answer_body("openai", text), silence=0.05)

    with Server() as server, tempfile.TemporaryDirectory() as folder:
        server.answer = scripted
        contents = [said[:-1] for said in played.values()]
        system = hallumaze.PromptBuilder(hallumaze.MazeEngine(7, 0), config).build().system
        given = {"system": system, "games": contents}
        (Path(folder) / "games.json").write_text(json.dumps(given))
        url = server.base_url("compatible")
        bare = ["-c", BARE_GAMES, url, f"{folder}/games.json"]
        ours = [str(ROOT / "hallumaze.py"), "--model", "compatible/x", "--base-url", url]
        ours += ["--protocol", "step", "--seeds", "0-63", "--concurrency", "64", "--quiet"]
        ours += ["--results-dir", folder]
        pairs = [(whole(bare)[0], whole(ours)[0]) for _ in range(5)]
    alone, with_us = (min(column) for column in zip(*pairs, strict=True))
    print(f"through the SDK: bare {alone:.2f} s, HalluMaze {with_us:.2f} s,")
    print(
        f"ratio {with_us / alone:.2f} (of each pair: {', '.join(f'{b / a:.2f}' for a, b in pairs)})"
    )


def two_models(stream: random.Random, mazes: int, effect: float) -> tuple[list[float], ...]:
    """Scores of two synthetic models on the same mazes: how hard a maze is, and chance."""
    hard = [stream.uniform(0.2, 0.6) for _ in range(mazes)]
    one = [h + stream.betavariate(2, 2) * 0.4 for h in hard]
    other = [h + stream.betavariate(2, 2) * 0.4 + effect for h in hard]
    return one, other


def coverage(mazes: int, repetitions: int = 1_000, effect: float = 0.05) -> tuple[float, float]:
    """(share of intervals that hold the true difference, share of p < 0.05 without any)."""
    stream = random.Random(mazes)
    held = false = 0
    for _ in range(repetitions):
        one, other = two_models(stream, mazes, effect)
        low, high = hallumaze.bootstrap_interval([b - a for a, b in zip(one, other, strict=True)])
        held += low <= effect <= high
        same, again = (dict(enumerate(scores)) for scores in two_models(stream, mazes, 0.0))
        p = hallumaze.compare_values("a", "b", "mei", same, again).p
        false += p is not None and p < 0.05
    return held / repetitions, false / repetitions


def statistics() -> None:
    """How often intervals hold the truth, how often the test sees what is not there, how long it
    takes."""
    for mazes in (10, 20, 60):
        held, false = coverage(mazes)
        print(
            f"{mazes} mazes: 95 % intervals hold the truth in {held:.1%}, false alarms {false:.1%}"
        )
    stream = random.Random(0)
    results = [
        hallumaze.BenchmarkResult(
            "synthetic",
            f"m{model}",
            maze_seed=seed,
            **{name: stream.random() for name in hallumaze.AVERAGED},
        )
        for model in range(5)
        for seed in range(2_000)
    ]
    made = time.process_time()
    hallumaze.aggregate(results)
    aggregated = time.process_time()
    config = {"models": [], "mirage": "trap"}
    hallumaze.compare_models(hallumaze.samples("a.json", config, "", results))
    compared = time.process_time()
    print(
        f"10,000 trials of 5 models: aggregated in {aggregated - made:.1f} s CPU, all pairs"
        f" compared in {compared - aggregated:.1f} s"
    )


PAGES, LINKS = 549_232, 25_000_000  # of the graph that LLM-WikiRace was measured on, about

_WALK = """
import sys, time, resource, hallumaze, numpy
from pathlib import Path
begun = time.perf_counter()
graph = hallumaze.open_graph(Path(sys.argv[1]))
opened = time.perf_counter()
walk = hallumaze.WikiWorld(graph, 7, len(graph) // 2)
walk.neighbours(walk.start)
first = time.perf_counter()
here, steps = walk.start, 0
while steps < 20:
    links = walk.neighbours(here)
    here, steps = links[steps % len(links)], steps + 1
walked = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"open {opened - begun:.3f} s, first step {first - opened:.2f} s, later steps"
      f" {(walked - first) / steps * 1000:.2f} ms, {peak:,.0f} MB at most, {walk.size} moves away")
"""


def wiki() -> None:
    """Build a power-law graph from a dump and walk over it; each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump"
        dump.mkdir()
        write_dump(dump)
        program = [sys.executable, str(ROOT / "hallumaze.py"), "graph", str(dump)]
        begun = time.perf_counter()
        subprocess.run([*program, "-o", f"{folder}/graph"], check=True, stderr=subprocess.DEVNULL)
        took = time.perf_counter() - begun
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"built from a dump of {LINKS:,} rows in {took:.0f} s, {peak:,.0f} MB at most")
        for _ in range(3):
            walk = [sys.executable, "-c", _WALK, f"{folder}/graph"]
            subprocess.run(walk, check=True, cwd=ROOT)


def write_dump(folder: Path) -> None:
    """A dump in the new schema: a ring, so that all reach all, and links to few pages mostly."""
    import numpy as np

    head = {
        "page": ("page_id", "page_namespace", "page_title", "page_is_redirect"),
        "linktarget": ("lt_id", "lt_namespace", "lt_title"),
        "pagelinks": ("pl_from", "pl_from_namespace", "pl_target_id"),
    }
    rand = np.random.default_rng(1)
    for table, columns in head.items():
        with (folder / f"{table}.sql").open("w") as file:
            file.write(f"CREATE TABLE `{table}` (\n")
            file.writelines(f"  `{column}` int,\n" for column in columns)
            file.write(");\n")
            rows = LINKS if table == "pagelinks" else PAGES
            for begin in range(0, rows, 20_000):
                numbers = range(begin, min(rows, begin + 20_000))
                if table == "page":
                    made = (f"({k},0,'Page_{k}',0)" for k in numbers)
                elif table == "linktarget":
                    made = (f"({k},0,'Page_{k}')" for k in numbers)
                else:
                    ends = (PAGES * rand.random(len(numbers)) ** 3).astype(int).tolist()
                    begins = rand.integers(0, PAGES, len(numbers)).tolist()
                    pairs = zip(numbers, begins, ends, strict=True)
                    made = (
                        f"({k},0,{(k + 1) % PAGES})" if k < PAGES else f"({a},0,{b})"
                        for k, a, b in pairs
                    )
                file.write(f"INSERT INTO `{table}` VALUES {','.join(made)};\n")


def main() -> None:
    """The figures that the arguments ask for."""
    if "--statistics" in sys.argv:
        return statistics()
    if "--replay" in sys.argv:
        return replay()
    if "--games" in sys.argv:
        return games()
    if "--wiki" in sys.argv:
        return wiki()
    if "--overhead" in sys.argv:
        return overhead()
    return parts()


def parts() -> None:
    """The rates of the parts."""
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
