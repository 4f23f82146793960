"""Section 2: mazes, mirages, the listing and the drawing, against implementations of the tests.

Nothing here asks `hallumaze` whether it is right: spanning trees are proved by a union-find over
`openings()`, solutions by a depth-first search, drawings by reading them back. Only the golden
hashes come from the program: they pin what a seed means.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import hallumaze
from hallumaze import MazeConfig, MazeEngine, PromptBuilder

Cell = tuple[int, int]

STEP = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}
BACK = {"N": "S", "E": "W", "S": "N", "W": "E"}
ARROW = {"N": "↑", "E": "→", "S": "↓", "W": "←"}
ALGORITHMS = ("dfs", "wilson", "kruskal", "prim")

# Two cells. Solution E S (2 moves), dead end (1,0).
#   +---+---+
#   | S     |
#   +---+   +
#   |     X |
#   +---+---+
TWO = ["E", "SW", "E", "NW"]

# Solution E E S S (4 moves), dead ends (1,1) and (2,1).
THREE = ["ES", "ESW", "SW", "NS", "N", "NS", "NE", "W", "N"]
THREE_DRAWN = """\
+---+---+---+
| S         |
+   +   +   +
|   |   |   |
+   +---+   +
|       | X |
+---+---+---+"""


def ahead(cell: Cell, letter: str) -> Cell:
    """The cell next to a cell."""
    return cell[0] + STEP[letter][0], cell[1] + STEP[letter][1]


def grid(openings: list[str], size: int) -> dict[Cell, str]:
    """The openings by cell."""
    return {(k // size, k % size): letters for k, letters in enumerate(openings)}


def walk_out(open_sides: dict[Cell, str], size: int) -> list[Cell]:
    """The way from start to exit by depth-first search, without a look at the program's own."""
    came: dict[Cell, Cell] = {(0, 0): (0, 0)}
    stack = [(0, 0)]
    while stack:
        here = stack.pop()
        for letter in open_sides[here]:
            other = ahead(here, letter)
            if other not in came:
                came[other] = here
                stack.append(other)
    way = [(size - 1, size - 1)]
    while way[-1] != (0, 0):
        way.append(came[way[-1]])
    return way[::-1]


def assert_perfect(openings: list[str], size: int) -> None:
    """The openings are those of a spanning tree: symmetrical, inside, n - 1, and all joined."""
    assert len(openings) == size * size
    cells = grid(openings, size)
    parent = {cell: cell for cell in cells}

    def root(cell: Cell) -> Cell:
        while parent[cell] != cell:
            parent[cell] = parent[parent[cell]]
            cell = parent[cell]
        return cell

    passages = 0
    for cell, letters in cells.items():
        assert letters == "".join(d for d in "NESW" if d in letters)  # in order, none twice
        for letter in letters:
            other = ahead(cell, letter)
            assert other in cells, f"{cell} leads outside"
            assert BACK[letter] in cells[other], f"{cell} {letter} is open on one side only"
            if letter in "ES":
                passages += 1
                assert root(cell) != root(other), f"{cell} {letter} closes a circle"
                parent[root(cell)] = root(other)
    assert passages == size * size - 1
    assert len({root(cell) for cell in cells}) == 1


# -- generation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 9, 11, 16, 23])
def test_perfect_solved_and_counted(size: int, algorithm: str) -> None:
    for seed in range(25):
        maze = MazeEngine(size, seed, algorithm)
        assert (maze.size, maze.seed, maze.algorithm) == (size, seed, algorithm)
        openings = maze.openings()
        assert_perfect(openings, size)
        cells = grid(openings, size)
        way = walk_out(cells, size)
        assert maze.solution_path == [list(cell) for cell in way]
        assert maze.solution_length == len(way) - 1
        ends = [c for c in cells if len(cells[c]) == 1 and c not in ((0, 0), (size - 1, size - 1))]
        assert maze.dead_ends == len(ends)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_largest_size(algorithm: str) -> None:
    maze = MazeEngine(201, 3, algorithm)
    assert_perfect(maze.openings(), 201)
    assert maze.solution_path == [list(c) for c in walk_out(grid(maze.openings(), 201), 201)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_mazes_of_size_two_occur(algorithm: str) -> None:
    # A square has 4 spanning trees: all of its 4 sides but one.
    seen = {tuple(MazeEngine(2, seed, algorithm).openings()) for seed in range(60)}
    assert len(seen) == (2 if algorithm == "dfs" else 4)  # depth first never turns at the start


def test_seeds() -> None:
    for algorithm in ALGORITHMS:
        mazes = {tuple(MazeEngine(7, seed, algorithm).openings()) for seed in range(50)}
        assert len(mazes) == 50
    assert len({tuple(MazeEngine(7, 5, algorithm).openings()) for algorithm in ALGORITHMS}) == 4
    assert MazeEngine(7, 2**70).openings() == MazeEngine(7, 2**70).openings()


def test_seed_zero_is_a_seed() -> None:
    first, again = MazeEngine(7, seed=0), MazeEngine(7, seed=0)
    assert first.seed == again.seed == 0
    assert first.openings() == again.openings() != MazeEngine(7, seed=1).openings()


def test_no_seed_draws_one_and_records_it() -> None:
    drawn = [MazeEngine(7) for _ in range(4)]
    assert len({maze.seed for maze in drawn}) > 1  # all equal: once in 10^27
    for maze in drawn:
        assert isinstance(maze.seed, int) and maze.seed >= 0
        assert MazeEngine(7, maze.seed).openings() == maze.openings()
        assert f"Seed: {maze.seed}\n" in maze.encode_text()


def test_defaults_of_v1_1() -> None:
    maze = MazeEngine(seed=4)
    assert (maze.size, maze.algorithm) == (7, "dfs")
    assert maze.openings() == MazeEngine(7, 4, "dfs").openings()


@pytest.mark.parametrize(
    "arguments",
    [
        (1,),
        (0,),
        (-7,),
        (202,),
        (7, -1),
        (7, 1, "DFS"),
        (7, 1, ""),
        (7, 1, "eller"),
        # Whole numbers are asked for, and the docstring promises a ValueError.
        (7.5, 1),
        (7, 1.5),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        MazeEngine(*arguments)


class Strict(random.Random):
    """A stream that can only be drawn from by random()."""

    seeds: list[Any]
    draws: int

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed)
        type(self).seeds.append(seed)

    def random(self) -> float:
        type(self).draws += 1
        return super().random()

    def getrandbits(self, *_: Any) -> int:
        raise AssertionError("drawn by another method than random()")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_draws_only_from_random_of_the_seed(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = MazeEngine(9, 77, algorithm).openings()
    Strict.seeds, Strict.draws = [], 0
    before = random.getstate()
    monkeypatch.setattr(random, "Random", Strict)
    assert MazeEngine(9, 77, algorithm).openings() == expected
    assert Strict.seeds == [77]  # one stream, of the seed itself
    assert Strict.draws > 0
    MazeEngine(9, 77, algorithm).encode_text()
    monkeypatch.undo()
    assert random.getstate() == before  # nothing from the global stream


def plain_backtracker(size: int, seed: int) -> list[str]:
    """The depth-first backtracker in its plain form. A draw u in [0, 1) picks of n ways the one
    at int(u * 12) * n // 12: every n up to 4 divides 12, so each is equally likely."""
    draw = random.Random(seed).random
    open_sides: dict[Cell, set[str]] = {(r, c): set() for r in range(size) for c in range(size)}
    seen = {(0, 0)}
    stack = [(0, 0)]
    while stack:
        here = stack[-1]
        free = [d for d in "NESW" if ahead(here, d) in open_sides and ahead(here, d) not in seen]
        if not free:
            stack.pop()
            continue
        letter = free[int(draw() * 12) * len(free) // 12]
        other = ahead(here, letter)
        open_sides[here].add(letter)
        open_sides[other].add(BACK[letter])
        seen.add(other)
        stack.append(other)
    return ["".join(d for d in "NESW" if d in sides) for sides in open_sides.values()]


@pytest.mark.parametrize("size", [2, 3, 5, 7, 8, 11, 30])
def test_depth_first_is_the_plain_backtracker(size: int) -> None:
    for seed in range(12):
        assert MazeEngine(size, seed).openings() == plain_backtracker(size, seed)


# From the program, to pin what a seed means. A change here breaks every published seed.
GOLDEN = {
    (2, 0, "dfs"): "0454a8aeae904c5557c25f83b1bb04c69d099d341127eaafa99fcb98368adb25",
    (5, 0, "dfs"): "e4baee565ac1f2c6ce5c184c80879dc2d537a6d607c673f3994ee5406a9d10b1",
    (7, 0, "dfs"): "0a8d0b20d403513658be1c0e3d02de3cf399c659f78c912aade1e229d5908b23",
    (7, 42, "dfs"): "042d1089735165a5cd00225356d83b109d32c6a0f5147cea035164364673e2e9",
    (9, 1, "dfs"): "993818a41f75c83220829a09fcd390684dbf4baa661bf0c6019f6e6ac5531751",
    (11, 1099511627776, "dfs"): "3164632c0665f36fc6d0aefcf1d40da0be588353d57ad82aea58667d3794b70e",
    (201, 7, "dfs"): "d0c78388efc4d945e4e433e2f365b1d0419b7205a17f81f1abbf987451ca7c90",
    (2, 0, "wilson"): "bf3b0662478d8d7a2834e5a8ecf0cac720f6f873e86619dd9b13691744991698",
    (5, 0, "wilson"): "d9478ce533dffb3a0cc2657e304228eac7806c0f344fe5eb1ea5a3f105ef4b0f",
    (7, 0, "wilson"): "a61e35cf732273cadef940db99feca1dc1490c66210fc060cda3713524095ad8",
    (7, 42, "wilson"): "b17fc4ea4e5eda4658f6e014964011397f544f47d1148a78cea1502125b19fb4",
    (9, 1, "wilson"): "28f78c330a496394eb9a15828c6bc57189f8917638e0c6b10c60a835b3e930c7",
    (
        11,
        1099511627776,
        "wilson",
    ): "b8384514df96d792c0dd4f3b781346406d404eb922bb093ff1919551cc4cc9b9",
    (201, 7, "wilson"): "bd26c8e99ff76d0e28ab755b0e24e3880c4cb61c58975c0b8c559769fc75c7ed",
    (2, 0, "kruskal"): "deb2f540c8436d8747256fa01186a9c3406d6631b2be053d7d5496fa6cc2a6c5",
    (5, 0, "kruskal"): "fda0239c2d072ae8a14cf36848dce394129ffab5b6c93a7c6c0003ca3fa0fe88",
    (7, 0, "kruskal"): "efaff4ed973f15a9f1c0fda686d0e4b3fcadab4427ff8a72bd87fc14cccb86b7",
    (7, 42, "kruskal"): "892dd720a7657bb3bb699e872b6fab9cce08f160bfca0aa83510fbbc0ba3d832",
    (9, 1, "kruskal"): "b33ca3b25af2c736b2b62afd30ea8f683a0eca706878b80d52f3d95af6b9de7d",
    (
        11,
        1099511627776,
        "kruskal",
    ): "c2a99187f117a601895eef035471d3de41308e06f5800c4e453e6276ca875097",
    (201, 7, "kruskal"): "35ace9eda2e14c56d4229ce1ce95f6111a0be74ec69262233203130ef82e439b",
    (2, 0, "prim"): "15271b0a0c879b1d8f3bb4ea131220203dabb5d6cd40c045d1316b2134881fb8",
    (5, 0, "prim"): "f052cf5d143c816b000dfaf1ab32896d73d038f1886a3e238b40c50cd066df4b",
    (7, 0, "prim"): "1db676e924ae820d24c4143d5797a77726d75b4ff9a95150607a781ff99a2b0b",
    (7, 42, "prim"): "eedb30e67c1c653c7546af06853072736099e2c957e60805b67942807146ac2b",
    (9, 1, "prim"): "4051fad8b3620304d98a7930083410704e31ac99e3760b12ce782e0900ba85fc",
    (11, 1099511627776, "prim"): "3e54dd220a56ea7a3a8a1cd8aa8feadf36d139feb384ff192ebaf2887a7cdfec",
    (201, 7, "prim"): "30a79bae96eb56a2c36ed72eb9e54728b7159313aed8e0eb455a6e49813c5a31",
}


@pytest.mark.parametrize(("size", "seed", "algorithm"), GOLDEN)
def test_golden_walls(size: int, seed: int, algorithm: str) -> None:
    maze = MazeEngine(size, seed, algorithm)
    own = hashlib.sha256(" ".join(maze.openings()).encode()).hexdigest()
    assert maze.sha256 == own
    assert own == GOLDEN[size, seed, algorithm]


# -- a maze from its openings ---------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_openings_round_trip(algorithm: str) -> None:
    for size in (2, 5, 7, 12):
        for seed in range(10):
            maze = MazeEngine(size, seed, algorithm)
            copy = MazeEngine.from_openings(maze.openings(), seed=seed, algorithm=algorithm)
            assert copy.openings() == maze.openings()
            assert copy.solution_path == maze.solution_path
            assert copy.sha256 == maze.sha256
            assert copy.encode_text() == maze.encode_text()
            assert copy.describe("balanced") == maze.describe("balanced")


@pytest.mark.parametrize(
    ("why", "openings"),
    [
        ("no cells", []),
        ("one cell", [""]),
        ("not square", ["E", "W"]),
        ("not square", ["E", "SW", "E", "NW", ""]),
        ("one side only", ["E", "S", "E", "NW"]),
        ("one side only, the other way", ["", "SW", "E", "NW"]),
        ("outside in the north", ["NE", "SW", "E", "NW"]),
        ("outside in the east", ["E", "ESW", "E", "NW"]),
        ("outside in the south", ["E", "SW", "ES", "NW"]),
        ("outside in the west", ["EW", "SW", "E", "NW"]),
        ("a circle", ["ES", "SW", "NE", "NW"]),
        ("two parts", ["E", "W", "E", "W"]),
        # As many passages as a perfect maze has, but a circle at the left and (2,2) alone.
        ("a circle and a part", ["ES", "ESW", "SW", "NES", "NSW", "N", "NE", "NW", ""]),
        ("nothing open", ["", "", "", ""]),
        ("no such letter", ["X", "SW", "E", "NW"]),
        ("lower case", ["e", "sw", "e", "nw"]),
        ("a letter twice", ["EE", "SW", "E", "NW"]),
        ("a letter twice, which leaves a gap", ["E", "WEE", "E", "NW"]),
        ("a letter twice, in the north", ["NN", "SW", "E", "NW"]),
    ],
)
def test_openings_refused(why: str, openings: list[str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        MazeEngine.from_openings(openings)


# -- the world ------------------------------------------------------------------------------------


def test_the_world_of_three() -> None:
    maze = MazeEngine.from_openings(THREE, seed=9)
    assert (maze.start, maze.goal, maze.budget, maze.seed) == ((0, 0), (2, 2), 9, 9)
    assert maze.solution_path == [[0, 0], [0, 1], [0, 2], [1, 2], [2, 2]]
    assert (maze.solution_length, maze.dead_ends) == (4, 2)
    assert list(maze.neighbours((0, 1))) == [(0, 2), (1, 1), (0, 0)]  # E S W
    assert list(maze.neighbours((2, 0))) == [(1, 0), (2, 1)]  # N E
    # By hand: the exit 0, up (1,2) 1, (0,2) 2, (0,1) 3, below it (1,1) 4, the start 4, and so on.
    distances = [[4, 3, 2], [5, 4, 1], [6, 7, 0]]
    for r in range(3):
        for c in range(3):
            assert maze.exists((r, c))
            assert maze.distance((r, c)) == distances[r][c]
            assert maze.on_solution((r, c)) is ([r, c] in maze.solution_path)
    for outside in ((-1, 0), (0, -1), (3, 0), (0, 3), (9, 9)):
        assert not maze.exists(outside)
        assert not maze.on_solution(outside)


def test_directions_and_destinations() -> None:
    maze = MazeEngine.from_openings(TWO)
    for letter in "NESW":
        assert maze.destination((0, 0), letter) == ahead((0, 0), letter)  # wall or no wall
        assert maze.direction((4, 4), ahead((4, 4), letter)) == letter
    assert maze.destination((0, 0), "NE") is None
    assert maze.destination((0, 0), "") is None
    for other in ((0, 0), (1, 1), (0, 2), (2, 0), (-1, 1)):
        assert maze.direction((0, 0), other) is None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_world_agrees_with_the_openings(algorithm: str) -> None:
    for seed in range(5):
        maze = MazeEngine(7, seed, algorithm)
        cells = grid(maze.openings(), 7)
        way = walk_out(cells, 7)
        assert maze.budget == 49
        for cell, letters in cells.items():
            assert list(maze.neighbours(cell)) == [ahead(cell, d) for d in letters]
            assert maze.on_solution(cell) is (cell in way)
            if cell != maze.goal:  # one move nearer in exactly one direction
                nearer = [
                    n for n in maze.neighbours(cell) if maze.distance(n) < maze.distance(cell)
                ]
                assert len(nearer) == 1
                assert maze.distance(nearer[0]) == maze.distance(cell) - 1
        assert maze.distance(maze.goal) == 0
        assert maze.distance(maze.start) == len(way) - 1


# -- mirages --------------------------------------------------------------------------------------


def wrong_ways(maze: MazeEngine) -> list[tuple[Cell, str]]:
    """Every (cell, direction) that may carry a trap, along the solution."""
    cells = grid(maze.openings(), maze.size)
    way = walk_out(cells, maze.size)
    wrong = []
    for k, cell in enumerate(way[:-1]):
        known = {way[k + 1], way[k - 1] if k else None}
        wrong += [(cell, d) for d in cells[cell] if ahead(cell, d) not in known]
    return wrong


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size", [2, 5, 7, 9])
def test_traps_are_wrong_ways_along_the_solution(size: int, algorithm: str) -> None:
    for seed in range(200):
        maze = MazeEngine(size, seed, algorithm)
        candidates = wrong_ways(maze)
        traps = [(trap.cell, trap.direction) for trap in maze.mirage_traps]
        assert len(set(traps)) == len(traps) == min(max(2, size // 2), len(candidates))
        assert set(traps) <= set(candidates)
        assert traps == [way for way in candidates if way in traps]  # in the order of the path
        assert not any(trap.right for trap in maze.mirage_traps)
        assert maze.mirages() == maze.mirages("trap") == maze.mirage_traps


@pytest.mark.parametrize(
    ("size", "algorithm"), [(5, "wilson"), (7, "dfs"), (7, "kruskal"), (11, "dfs")]
)
def test_traps_are_chosen_among_all_candidates(size: int, algorithm: str) -> None:
    limit = max(2, size // 2)
    late, expected = 0, 0.0
    for seed in range(200):
        maze = MazeEngine(size, seed, algorithm)
        candidates = wrong_ways(maze)
        beyond = candidates[limit:]
        late += sum((trap.cell, trap.direction) in beyond for trap in maze.mirage_traps)
        if beyond:  # each candidate is equally likely
            expected += limit * len(beyond) / len(candidates)
    assert expected > 20
    assert 0.8 < late / expected < 1.25


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size", [2, 5, 7, 9])
def test_balanced_hints_carry_no_information(size: int, algorithm: str) -> None:
    seen: Counter[bool] = Counter()
    for seed in range(200):
        maze = MazeEngine(size, seed, algorithm)
        way = walk_out(grid(maze.openings(), size), size)
        onward = dict(pairwise(way))
        candidates = wrong_ways(maze)
        junctions = {cell for cell, _ in candidates}
        hints = maze.mirages("balanced")
        assert len({hint.cell for hint in hints}) == len(hints)  # each at a junction of its own
        for hint in hints:
            assert hint.cell in junctions
            leads_on = ahead(hint.cell, hint.direction) == onward[hint.cell]
            assert hint.right is leads_on
            assert leads_on or (hint.cell, hint.direction) in candidates
            seen[leads_on] += 1
        right = sum(hint.right for hint in hints)
        assert right * 2 == len(hints)
        assert right == min(max(2, size // 2), len(junctions) // 2)
    assert seen[True] == seen[False]
    assert seen[True] > 0 or size == 2


def test_balanced_hints_do_not_tell_by_their_place() -> None:
    # Were the traps always the first, or the last, their place would tell.
    first = Counter(
        hints[0].right for seed in range(200) if (hints := MazeEngine(9, seed).mirages("balanced"))
    )
    assert sum(first.values()) > 150
    assert 0.4 < first[True] / sum(first.values()) < 0.6


def test_balanced_phrases_are_of_the_same_kind() -> None:
    phrases: dict[bool, set[int]] = {True: set(), False: set()}
    for seed in range(200):
        for hint in MazeEngine(9, seed).mirages("balanced"):
            phrases[hint.right].add(hint.phrase)
    assert phrases[True] == phrases[False] == set(range(len(hallumaze._MIRAGE_PHRASES["ko"])))


def test_no_candidates_no_traps() -> None:
    # A snake: every cell lies on the only way.
    snake = ["E", "EW", "SW", "ES", "EW", "NW", "NE", "EW", "W"]
    maze = MazeEngine.from_openings(snake)
    assert maze.solution_length == 8
    assert maze.mirage_traps == [] == maze.mirages("balanced")
    assert "⚑" not in maze.encode_text(True) + maze.encode_text(True, "en", "balanced")


def test_the_way_back_and_the_exit_are_no_candidates() -> None:
    # By hand: at (0,0) the wrong way is S, at (0,1) it is S; (0,2), (1,2) and the exit have none.
    maze = MazeEngine.from_openings(THREE, seed=5)
    assert [(t.cell, t.direction) for t in maze.mirage_traps] == [((0, 0), "S"), ((0, 1), "S")]
    # Two junctions: one hint of each kind.
    assert sorted(hint.right for hint in maze.mirages("balanced")) == [False, True]
    # Here the only branch, to (1,0), leaves from the exit.
    assert MazeEngine.from_openings(TWO).mirage_traps == []


def test_hints_off() -> None:
    maze = MazeEngine(7, 1)
    assert "⚑" not in maze.encode_text(use_mirage=False)
    assert "⚑" not in maze.render(mirage="off")
    assert maze.describe("off")["mirage_traps"] == 0
    assert maze.describe("off")["mirage_trap_list"] == []


def test_hints_off_is_off_everywhere() -> None:
    # "off" is one of MIRAGES, so whoever is given it prints no hint.
    maze = MazeEngine(7, 1)
    assert maze.mirages("off") == []
    assert "⚑" not in maze.encode_text(mirage="off")
    prompt = PromptBuilder(maze, MazeConfig(mirage="off")).build().user
    assert "]  ⚑" not in prompt


def test_phrases() -> None:
    phrases = hallumaze._MIRAGE_PHRASES
    assert set(phrases) == {"ko", "en"}
    for texts in phrases.values():
        assert len(texts) == len(set(texts)) >= 6
        assert all(text and text == text.strip() and "\n" not in text for text in texts)
        # A phrase that names a direction or a cell would be a claim, not a feeling.
        assert not any(re.search(r"[↑→↓←⚑()\[\]\d]", text) for text in texts)
    assert len(phrases["ko"]) == len(phrases["en"])
    assert all(re.search("[가-힣]", text) for text in phrases["ko"])
    assert not any(re.search("[가-힣]", text) for text in phrases["en"])


def test_the_maze_is_the_same_whatever_the_phrases(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [MazeEngine(7, seed) for seed in range(20)]
    hints = [
        [m[:2] for m in maze.mirages(kind)] for maze in before for kind in ("trap", "balanced")
    ]
    walls = [maze.sha256 for maze in before]
    for count in (6, 40):
        texts = tuple(f"phrase {k}" for k in range(count))
        monkeypatch.setattr(hallumaze, "_MIRAGE_PHRASES", {"ko": texts, "en": texts})
        after = [MazeEngine(7, seed) for seed in range(20)]
        assert [maze.sha256 for maze in after] == walls
        assert hints == [
            [m[:2] for m in maze.mirages(kind)] for maze in after for kind in ("trap", "balanced")
        ]


# -- the listing ----------------------------------------------------------------------------------


def listing(maze: MazeEngine, lang: str, hints: list[hallumaze.Mirage]) -> Iterator[str]:
    """SPEC 2 line by line."""
    last = maze.size - 1
    yield f"MAZE {maze.size}×{maze.size} | START:(0,0) | EXIT:({last},{last})"
    yield f"Seed: {maze.seed}"
    yield ""
    yield {"ko": "각 셀에서 이동 가능한 방향:", "en": "Open directions of each cell:"}[lang]
    for (r, c), letters in grid(maze.openings(), maze.size).items():
        line = f"({r},{c}): [" + " ".join(d + ARROW[d] for d in "NESW" if d in letters) + "]"
        for hint in hints:
            if hint.cell == (r, c):
                phrase = hallumaze._MIRAGE_PHRASES[lang][hint.phrase]
                says = {"ko": "{}방향 힌트: {}", "en": "{} direction hint: {}"}[lang]
                line += "  ⚑ " + says.format(hint.direction, phrase)
        yield line


@pytest.mark.parametrize("lang", ["ko", "en"])
@pytest.mark.parametrize("mirage", ["trap", "balanced", None])
def test_listing(lang: str, mirage: str | None) -> None:
    for size in (2, 5, 7, 11):
        for seed in range(8):
            maze = MazeEngine(size, seed)
            hints = maze.mirages(mirage) if mirage else []
            text = maze.encode_text(mirage is not None, lang, mirage or "trap")
            assert text.split("\n") == list(listing(maze, lang, hints))
            assert text.count("⚑") == len(hints)


def test_listing_by_hand() -> None:
    maze = MazeEngine.from_openings(TWO, seed=42813)
    assert maze.encode_text() == (
        "MAZE 2×2 | START:(0,0) | EXIT:(1,1)\n"
        "Seed: 42813\n"
        "\n"
        "각 셀에서 이동 가능한 방향:\n"
        "(0,0): [E→]\n"
        "(0,1): [S↓ W←]\n"
        "(1,0): [E→]\n"
        "(1,1): [N↑ W←]"
    )


def test_a_hint_by_hand() -> None:
    lines = MazeEngine.from_openings(THREE, seed=1).encode_text().split("\n")
    assert lines[4].startswith("(0,0): [E→ S↓]  ⚑ S방향 힌트: ")
    assert lines[5].startswith("(0,1): [E→ S↓ W←]  ⚑ S방향 힌트: ")
    assert lines[6] == "(0,2): [S↓ W←]"


def test_both_languages_hint_the_same() -> None:
    phrases = hallumaze._MIRAGE_PHRASES
    for seed in range(30):
        maze = MazeEngine(7, seed)
        found = {}
        for lang in ("ko", "en"):
            rows = re.findall(
                r"^(\S+): \[.*?\]  ⚑ ([NESW]).*?: (.*)$", maze.encode_text(True, lang), re.M
            )
            found[lang] = [(cell, way, phrases[lang].index(text)) for cell, way, text in rows]
        assert found["ko"] == found["en"]
        assert len(found["ko"]) == len(maze.mirage_traps)


def test_the_listing_is_the_same_every_time() -> None:
    maze = MazeEngine(7, 11)
    maze.mirages("balanced")  # what else was asked before changes nothing
    for lang in ("ko", "en"):
        assert maze.encode_text(True, lang) == MazeEngine(7, 11).encode_text(True, lang)


# -- the drawing ----------------------------------------------------------------------------------


def read_drawing(lines: list[str], size: int) -> list[str]:
    """The openings that a drawing shows."""
    assert all(len(line) == 4 * size + 1 for line in lines[: 2 * size + 1])
    for r in range(size + 1):  # posts stand everywhere
        assert set(lines[2 * r][::4]) == {"+"}
    openings = []
    for r in range(size):
        for c in range(size):
            sides = {
                "N": lines[2 * r][4 * c + 1 : 4 * c + 4],
                "E": lines[2 * r + 1][4 * c + 4],
                "S": lines[2 * r + 2][4 * c + 1 : 4 * c + 4],
                "W": lines[2 * r + 1][4 * c],
            }
            assert set(sides.values()) <= {"---", "   ", "|", " "}
            openings.append("".join(d for d in "NESW" if not sides[d].strip()))
    return openings


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_drawing_shows_every_wall(algorithm: str) -> None:
    for size in (2, 5, 7, 11):
        for seed in range(10):
            maze = MazeEngine(size, seed, algorithm)
            for kind in ("trap", "balanced", "off"):
                lines = maze.render(mirage=kind).split("\n")
                assert read_drawing(lines, size) == maze.openings()
                hints = maze.mirages(kind) if kind != "off" else []
                assert len(lines) == 2 * size + 1 + len(hints)
                flags = {
                    (r, c)
                    for r in range(size)
                    for c in range(size)
                    if lines[2 * r + 1][4 * c + 3] == "⚑"
                }
                assert flags == {hint.cell for hint in hints}
                for hint, line in zip(hints, lines[2 * size + 1 :], strict=True):
                    r, c = hint.cell
                    assert f"({r},{c})" in line and hint.direction in line
                    assert ("✓" in line, "✗" in line) == (hint.right, not hint.right)


def test_drawing_by_hand() -> None:
    maze = MazeEngine.from_openings(THREE)
    assert maze.render(mirage="off") == THREE_DRAWN


def test_drawing_marks_the_walk() -> None:
    maze = MazeEngine(7, 3)
    marks = [
        [line[4 * c + 2] for c in range(7)]
        for line in maze.render(maze.solution_path, "off").split("\n")[1::2]
    ]
    for r in range(7):
        for c in range(7):
            on_way = [r, c] in maze.solution_path[1:-1]
            ends = {(0, 0): "S", (6, 6): "X"}
            assert marks[r][c] == ends.get((r, c), "•" if on_way else " ")
    assert read_drawing(maze.render(maze.solution_path).split("\n"), 7) == maze.openings()


def test_drawing_marks_where_the_walk_crosses_a_wall() -> None:
    maze = MazeEngine.from_openings(TWO)
    for path in ([(0, 0), (1, 0)], [(1, 0), (0, 0)]):  # whichever way
        assert maze.render(path, "off") == (
            "+---+---+\n"
            "| S     |\n"
            "+-×-+   +\n"
            "| •   X |\n"
            "+---+---+"
        )  # fmt: skip
    three = MazeEngine.from_openings(THREE)
    drawn = three.render([(1, 0), (1, 1), (0, 1)], "off").split("\n")
    assert drawn[3] == "| • × • |   |"
    assert drawn[:3] == ["+---+---+---+", "| S   •     |", "+   +   +   +"]
    assert "×" not in three.render([(0, 0), (1, 1)], "off")  # a jump goes through no wall


@pytest.mark.parametrize(
    ("outside", "line", "column"),
    [((0, 1), 1, 8), ((1, 0), 4, 2), ((-1, 0), 0, 2), ((0, -1), 1, 0)],
    ids=["east", "south", "north", "west"],
)
def test_drawing_marks_where_the_walk_crosses_the_border(
    outside: Cell, line: int, column: int
) -> None:
    maze = MazeEngine.from_openings(TWO)
    stood = {(0, 1): (0, 1), (1, 0): (1, 0), (-1, 0): (0, 0), (0, -1): (0, 0)}[outside]
    beyond = {(0, 1): (0, 2), (1, 0): (2, 0)}.get(outside, outside)
    drawn = maze.render([stood, beyond], "off").split("\n")
    assert drawn[line][column] == "×"
    assert sum(text.count("×") for text in drawn) == 1
