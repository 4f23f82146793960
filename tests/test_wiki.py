"""Walks over pages: the world, its games, what is read and counted, worked out by hand."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, Command
from servers import Received, Say, Server, answer

import hallumaze
from hallumaze import (
    Game,
    LinkQuestion,
    MazeConfig,
    ResponseParser,
    UsageError,
    WikiWorld,
    load_graph,
    make_graph,
    opening,
    planted,
    probe_scores,
    read_walks,
    sample_games,
    sample_links,
    score_game,
    title_similarity,
)

ROOT = Path(__file__).resolve().parents[1]
WIKISPEEDIA = ROOT.parent / "shared" / "wiki"
needs_wikispeedia = pytest.mark.skipif(
    not (WIKISPEEDIA / "links.tsv").exists(), reason="the Wikispeedia data is not here"
)

# Distances to Foxglove: Elder 1, Daisy 2, Birch 3, Aster 4, Clover 5. Clover is a dead end.
LINKS = {
    "Aster": ["Birch", "Clover"],
    "Birch": ["Aster", "Daisy"],
    "Clover": ["Aster"],
    "Daisy": ["Birch", "Elder"],
    "Elder": ["Daisy", "Foxglove", "Aster"],
    "Foxglove": ["Aster", "Elder"],
    "Ghost": ["Aster"],  # nothing links to it: it exists outside
}


def graph_of(links: dict[str, list[str]], aliases: dict[str, str]) -> hallumaze.Graph:
    import numpy as np

    titles = list(links)
    pairs = [(titles.index(a), titles.index(b)) for a, others in links.items() for b in others]
    sources, targets = np.array(pairs, np.int32).T
    others = [(alias, titles.index(title)) for alias, title in aliases.items()]
    return make_graph("garden", titles, sources, targets, others)


GARDEN = graph_of(LINKS, {"Digitalis": "Foxglove", "Trefoil": "Clover"})


def garden(source: str = "Aster", target: str = "Foxglove", **given: Any) -> WikiWorld:
    return WikiWorld(GARDEN, GARDEN.find(source), GARDEN.find(target), **given)


def config(**given: Any) -> MazeConfig:
    return MazeConfig(world="wiki", protocol="step", use_mirage=False, lang="en", **given)


def game(
    answers: list[str], world: WikiWorld | None = None, group: str = "A", **given: Any
) -> Game:
    world, settings = world or garden(), config(**given)
    prompt, plant = opening(world, settings, settings.forms[0])
    played = Game(world, settings, group, prompt, plant)
    for text in answers:
        assert not played.over, "more answers than the game takes"
        played.take(text)
    return played


def says(played: Game) -> str:
    return played.messages()[-1]["content"]


# -- the world ------------------------------------------------------------------------------------


def test_what_a_world_is() -> None:
    world = garden()
    assert (world.start, world.goal, world.size, world.budget) == ("Aster", "Foxglove", 4, 30)
    assert len(GARDEN) == 6 and world.seed == 5  # page 0 · 6 + page 5
    assert [world.distance(t) for t in ("Elder", "Daisy", "Birch", "Aster", "Clover")] == [
        *(1, 2, 3, 4, 5)
    ]
    assert sorted(world.neighbours("Elder")) == ["Aster", "Daisy", "Foxglove"]
    assert world.solution == ["Aster", "Birch", "Daisy", "Elder", "Foxglove"]
    on = {title: world.on_solution(title) for title in LINKS if title != "Ghost"}
    assert on == {**dict.fromkeys(world.solution, True), "Clover": False}
    assert world.exists("Ghost") and not world.exists("Hemlock")
    assert world.neighbours("Ghost") == () and not world.on_solution("Ghost")


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("Clover", "Clover"),
        ("clover", "Clover"),
        ("trefoil", "Clover"),
        ("DIGITALIS", "Foxglove"),
        ("Elder", "Elder"),  # it is not linked here, but it exists
        ("Ghost", "Ghost"),
        ("Hemlock", None),
        ("3", None),
        ("0", None),
        ("", None),
        ("99999999", None),
    ],
)
def test_what_a_move_means(said: str, means: str | None) -> None:
    assert garden().destination("Aster", said) == means


def test_numbers_are_those_of_the_list() -> None:
    world = garden()
    first, second = world.neighbours("Aster")
    assert {first, second} == {"Birch", "Clover"}
    for said in ("1", "#1", "1.", f"1. {first}", f"1) {first.lower()}", f"[1] {first}"):
        assert world.destination("Aster", said) == first
    assert world.destination("Aster", f"1. {second}") == second  # the title counts
    assert f"LINKS:\n1. {first}\n2. {second}\nTARGET: Foxglove" in says(game([]))


def test_a_title_that_is_a_number() -> None:
    years = {"1984": ["1985", "Orwell"], "1985": ["1984"], "Orwell": ["1984"]}
    world = WikiWorld(graph_of(years, {}), 1, 2)
    assert world.destination("1985", "1984") == "1984"
    assert world.destination("1984", "1985") == "1985"
    assert world.destination("1985", "1") == "1984"  # the first link


def test_the_nearest_links_are_shown() -> None:
    """A hub of seven links, of which the two nearest to the target are Near and one of two that
    are as far; the target is always among them."""
    links = {
        "Hub": ["Near", "Far1", "Far2", "Lost1", "Lost2", "Lost3", "Goal"],
        "Near": ["Goal"],
        "Far1": ["Near"],
        "Far2": ["Near"],
        **{f"Lost{k}": ["Far1"] for k in (1, 2, 3)},
        "Goal": ["Hub"],
    }
    graph = graph_of(links, {})
    chosen: Counter[str] = Counter()
    for source in range(len(graph)):
        world = WikiWorld(graph, source, graph.find("Goal"), most_links=3)
        shown = world.neighbours("Hub")
        assert len(shown) == 3 and {"Goal", "Near"} <= set(shown)
        assert shown == WikiWorld(graph, source, graph.find("Goal"), 3).neighbours("Hub")
        chosen.update(set(shown) - {"Goal", "Near"})
    assert set(chosen) == {"Far1", "Far2"}  # by chance, but no farther page
    hidden = WikiWorld(graph, 0, graph.find("Goal"), most_links=1)
    assert hidden.neighbours("Hub") == ("Goal",)
    played = game([], WikiWorld(graph, 0, graph.find("Near"), most_links=1))
    played.take("MOVE: Far1")  # a link that is not shown cannot be followed
    assert score_game(stopped(played))["steps"][0]["verdict"] == "wall"


def stopped(played: Game) -> Game:
    if not played.over:
        played.stop()
    return played


# -- a game ---------------------------------------------------------------------------------------

WALK = [
    "MOVE: Clover | Confidence: 90% | it sounds near",
    "DEAD_END at Clover — backtracking\nMOVE: 1 | Confidence: 60% | back",
    "MOVE: Birch | Confidence: 70% | on",
    "MOVE: Hemlock | Confidence: 90% | a poison, too",
    "MOVE: Foxglove | Confidence: 90% | straight to it",
    "MOVE: Daisy | Confidence: 70% | on",
    "MOVE: elder | Confidence: 70% | on",
    "MOVE: digitalis | Confidence: 70% | there",
]


def test_a_game_by_hand() -> None:
    scored = score_game(game(WALK))
    assert [s["verdict"] for s in scored["steps"]] == [
        *("ok", "ok", "ok", "phantom_direction", "wall", "ok", "ok", "ok")
    ]
    assert scored["final_path"] == ["Aster", "Clover", "Aster", *garden().solution[1:]]
    assert (scored["sr"], scored["hallucination_count"], scored["backtrack_count"]) == (1, 2, 1)
    # HRR 1/2, early 1 - 4/30, esc 1, HC 2: 0.2 + 0.26 + 0.2 - 0.02
    assert scored["mei"] == pytest.approx(0.64)
    assert scored["tiers"] == {
        "atomic": {"phantom_cell": 0, "phantom_direction": 1},
        "scope_bound": {"wall": 1, "teleport": 0},
    }
    assert (scored["moves_used"], scored["suboptimal_steps"]) == (8, 4)
    assert scored["path_efficiency"] == 0.5
    assert scored["grades"] == {"closer": 5, "same": 0, "farther": 1, "replanned": 1}
    assert scored["replanned"] == 1
    # Clover has 1 link, Aster and Birch 2: of six pages one has fewer, four as many.
    assert scored["hub_seeking"] == pytest.approx((1 / 12 + 0.5 + 0.5) / 3, abs=1e-6)
    dead_end = next(event for event in scored["events"] if event["kind"] == "dead_end")
    assert dead_end["cells"] == ["Clover"] and dead_end["recognised_by_line"] == 1
    assert scored["wrong_turn_recovery"] == 1 and scored["lure_effect"] is None


def test_what_the_model_is_told() -> None:
    played = game([])
    (message,) = played.messages()
    assert message["content"].startswith("WIKI garden | START: Aster | TARGET: Foxglove\n")
    told = []
    for text in WALK:
        played.take(text)
        told.append(says(played).split("\n")[0])
    assert told[:7] == [
        "Last move: you went to Clover.",
        "Last move: you went to Aster.",
        "Last move: you went to Birch.",
        "Last move: BLOCKED: “Hemlock” is no number of the list and no title of a page.",
        "Last move: BLOCKED: Birch lists no link “Foxglove”.",
        "Last move: you went to Daisy.",
        "Last move: you went to Elder.",
    ]
    text = says(game(WALK[:3]))
    assert "Moves left: 27 of 30\nVisited, in the order of the first visit: Aster | Clover" in text


def test_a_farther_move_that_is_not_repaired() -> None:
    """From Daisy to Birch, Aster and Clover and back: three moves farther, of which the last one is
    repaired at once, the one before within three, the first one never."""
    walk = ["Birch", "Daisy", "Birch", "Aster", "Clover", "Aster"]
    scored = score_game(stopped(game([f"MOVE: {title}" for title in walk])))
    assert scored["grades"] == {"closer": 3, "same": 0, "farther": 3, "replanned": 1}
    assert scored["replanned"] == pytest.approx(1 / 3, abs=1e-6)
    assert scored["suboptimal_steps"] is None and scored["sr"] == 0


def test_unreadable_answers_cost_moves_and_three_in_a_row_end_the_game() -> None:
    played = game(["MOVE: Birch", "I am\nnot sure", ""])
    assert "held no move that could be read" in says(played) and "Moves left: 27" in says(played)
    played.take("MOVE: Daisy")
    for text in ("a\nb", "MOVE: | 50%", "c\nd"):
        assert not played.over
        played.take(text)
    scored = score_game(played)
    assert played.over and scored["outcome"] == "unreadable" and scored["moves_used"] == 7
    assert scored["hallucination_count"] == 5
    assert scored["tiers"]["atomic"]["phantom_direction"] == 5


def test_the_budget_takes_the_place_of_n_squared() -> None:
    world = garden(budget=6)
    played = game(["MOVE: Hemlock"] * 6, world, step_budget=6)
    scored = score_game(played)
    assert played.over and scored["early"] == pytest.approx(1 - 1 / 6, abs=1e-6)


def test_a_hint_where_it_went_round() -> None:
    played = game([f"MOVE: {t}" for t in ("Birch", "Aster", "Birch")], group="B")
    assert "made a move that you had made before" in says(played)
    late = game(["MOVE: Birch", "MOVE: Aster"] * 5, group="C")
    assert "go over your moves" in says(late)  # after the tenth move


# -- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "move", "confidence"),
    [
        ("MOVE: 3 | Confidence: 80% | because", "3", 80),
        ("**MOVE:** [Republic of the Congo] | 0.8 | x", "Republic of the Congo", 80),
        ("Let me think.\nMOVE: 2. Germany | confidence: 70%", "2. Germany", 70),
        ("My move: “Côte d'Ivoire” | 9/10", "Côte d'Ivoire", 90),
        ("이동: 독일 | 확신도: 60% | 가까움", "독일", 60),
        ("Germany", "Germany", None),
        ("- `MOVE: Ke$ha`", "Ke$ha", None),
        ("MOVE: A\nMOVE: B", "A", None),
        ("<think>MOVE: A</think>MOVE: B", "B", None),
        ("MOVE: | 50%", "", 50),
        ("MOVE : 4", "4", None),
        ("MOVE: " + "x" * 500, "x" * 200, None),
    ],
)
def test_reading_a_move(text: str, move: str, confidence: float | None) -> None:
    (claim,) = ResponseParser().parse_named_move(text, []).steps
    assert (claim.direction, claim.confidence) == (move, confidence)


@pytest.mark.parametrize("text", ["", "I go\nsomewhere", "\n\n", "moveable feast\nx"])
def test_no_move(text: str) -> None:
    assert ResponseParser().parse_named_move(text, []).steps == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DEAD_END at North Macedonia — backtracking", [("dead end", "North Macedonia")]),
        ("DEAD_END at [page] — backtracking", []),
        ("LOOP detected at kosovo — visited at step 2", [("loop detected", "Kosovo")]),
        ("That was wrong: Kosovo is no neighbour", [("error word", "Kosovo")]),
        ("No dead end here, Kosovo goes on", []),
        ("STRATEGY_CHANGE — south now", [("strategy_change", None)]),
        ("MOVE: Kosovo | 80% | a mistake to come to Macedonia", [("error word", "Macedonia")]),
        ("DEAD_END at (0,1) — backtracking", [("dead end", None)]),
    ],
)
def test_reading_signals_with_names(text: str, found: list[tuple[str, str | None]]) -> None:
    names = ["Macedonia", "North Macedonia", "Kosovo"]
    signals = ResponseParser().parse_named_move(text, names).signals
    backtracking = [s for s in signals if s.kind != "backtracking"]
    assert [(s.kind, s.cell) for s in backtracking] == found


@pytest.mark.parametrize(
    ("text", "said", "confidence"),
    [
        ("ANSWER: yes | Confidence: 80%", True, 80),
        ("ANSWER: no", False, None),
        ("**Answer:** No, it does not. | 0.3", False, 30),
        ("Yes.", True, None),
        ("답: 예 | 확신도: 90%", True, 90),
        ("ANSWER: 아니오", False, None),
        ("I think so\nANSWER: yes", True, None),
        ("ANSWER: yes\nANSWER: no", None, None),
        ("perhaps", None, None),
        ("", None, None),
        ("<think>ANSWER: no</think>ANSWER: yes", True, None),
    ],
)
def test_reading_yes_and_no(text: str, said: bool | None, confidence: float | None) -> None:
    assert ResponseParser().parse_yes_no(text)[:2] == (said, confidence)


# -- planted errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wall", "branch", "loop"])
def test_planted_walks_hold_one_wrong_step(kind: str) -> None:
    atlas = load_graph("")
    for source, target in sample_games(atlas, 5, 6, 20, 1):
        world = WikiWorld(atlas, source, target)
        plant = planted(world, kind)
        assert plant is not None and 3 <= len(plant.steps) <= 6
        assert planted(WikiWorld(atlas, source, target), kind) == plant
        wrong, here, made = [], world.start, set()
        for step in plant.steps:
            assert step.cell == here
            legal = step.direction in world.neighbours(here)
            farther = legal and world.distance(step.direction) >= world.distance(here)
            if not legal or farther or (here, step.direction) in made:
                wrong.append(step.number)
            made.add((here, step.direction))
            here = step.direction if legal else here
        if kind == "loop":  # the way back leads farther; the wrong step is the one made again
            assert wrong == [len(plant.steps) - 1, len(plant.steps)] and plant.wrong == wrong[1]
        elif kind == "wall":
            assert wrong == [plant.wrong] == [len(plant.steps)]
            assert world.exists(plant.aimed)
        else:
            assert wrong[0] == plant.wrong


def test_a_planted_error_is_recognised_by_its_names() -> None:
    plant = planted(garden(), "wall")
    assert plant is not None
    words = f"That was wrong: {plant.stood} does not link to {plant.aimed}."
    for said, response in ((f"{words}\nMOVE: 1", "recognised"), ("MOVE: 1", "repaired")):
        played = game([said], plant="wall")
        assert score_game(stopped(played))["plant_response"] == response


# -- samples and agents ---------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "most", "count"), [(3, 4, 200), (5, 6, 150), (7, 8, 100)])
def test_games_of_the_atlas(least: int, most: int, count: int) -> None:
    atlas = load_graph("")
    pairs = sample_games(atlas, least, most, count, 0)
    assert len(set(pairs)) == count and max(Counter(b for _, b in pairs).values()) <= 2
    assert {int(atlas.distances(b)[a]) for a, b in pairs} == {least, most}
    assert sample_games(atlas, least, most, count, 0) == pairs
    assert sample_games(atlas, least, most, count, 1) != pairs


def test_probed_pairs_match() -> None:
    atlas = load_graph("")
    pairs = sample_links(atlas, 200, 0)
    linked = [pair for pair in pairs if LinkQuestion(atlas, *pair).linked]
    others = [pair for pair in pairs if pair not in linked]
    assert len(set(pairs)) == 200 and len(linked) == len(others) == 100
    assert sorted(a for a, _ in linked) == sorted(a for a, _ in others)  # the same sources
    assert {int(atlas.distances(b)[a]) for a, b in others} == {2}
    degrees = [sum(int(atlas.in_degrees[b]) for _, b in some) for some in (linked, others)]
    assert degrees[1] == pytest.approx(degrees[0], rel=0.15)


def test_title_similarity() -> None:
    # " cat ": " ca", "cat", "at "; " car ": " ca", "car", "ar ": one of five.
    assert title_similarity("Cat", "car") == pytest.approx(0.2)
    assert title_similarity("Cat", "CAT") == 1 and title_similarity("ab", "xyz") == 0


def test_probe_scores_by_hand() -> None:
    answers = {(True, True): 30, (True, False): 15, (True, None): 5, (False, True): 10}
    scored = probe_scores({**answers, (False, False): 40})
    assert scored is not None
    assert (scored["precision"], scored["recall"]) == (0.75, 0.6)
    assert scored["f1"] == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    low, high = scored["f1_ci"]
    assert 0.54 < low < 0.60 and 0.73 < high < 0.78  # about 0.667 ± 2 · 0.05
    assert probe_scores({}) is None and probe_scores({(True, False): 3})["precision"] is None


def test_the_atlas_against_a_second_listing() -> None:
    """tests/borders.txt names each border from both sides, by codes."""
    lines = (ROOT / "tests" / "borders.txt").read_text(encoding="utf-8").splitlines()[1:]
    names, codes = {}, {}
    for line in lines:
        head, _, others = line.partition(": ")
        code, _, name = head.partition(" ")
        names[code], codes[code] = name, set(others.split())
    for code, others in codes.items():
        assert all(code in codes[other] for other in others), code
    listed = {names[code]: {names[other] for other in codes[code]} for code in codes}
    pairs = [
        (a, b) for a, others in hallumaze._listed(hallumaze._ATLAS) for b in others.split(", ")
    ]
    mine: dict[str, set[str]] = {}
    for a, b in pairs:
        mine.setdefault(a, set()).add(b)
        mine.setdefault(b, set()).add(a)
    assert mine == listed and len(pairs) == len(set(pairs)) == 325


def test_the_atlas_against_a_library() -> None:
    """countryinfo's borders, but for what it has wrong: that Kuwait borders Iran and India
    Afghanistan, say; and for what is new: South Sudan, Canada's border with Greenland."""
    countryinfo = pytest.importorskip("countryinfo")
    lines = (ROOT / "tests" / "borders.txt").read_text(encoding="utf-8").splitlines()[1:]
    mine = {line[:3]: set(line.partition(": ")[2].split()) for line in lines}
    theirs = {}
    for code in mine:
        if code == "XKX":  # which it does not know
            continue
        borders = countryinfo.CountryInfo(code).borders()
        theirs[code] = {"XKX" if border in ("UNK", "KOS") else border for border in borders}
    odd = {code for code in theirs if theirs[code] != mine[code]}
    assert len(theirs) > 150
    assert odd <= set("CAN CHN EGY GRL IND ISR JOR KWT MAF MMR PSE SRB SUR SXM TCD".split())


# -- people ---------------------------------------------------------------------------------------


def test_people_who_walked(tmp_path: Path) -> None:
    """Aster to Foxglove takes four steps: walks of 4 and 7 mean 1.5 more; Elder to Foxglove 1."""
    titles = list(LINKS)
    (tmp_path / "articles.tsv").write_text("\n".join(titles))
    rows = [f"{a}\t{b}" for a, others in LINKS.items() for b in others]
    (tmp_path / "links.tsv").write_text("\n".join(rows))
    ids = tmp_path / "walks.txt"
    ids.write_text("# finished\n0 1 3 4 5\n0 2 0 1 3 4 3 5\n4 5\n6 0\n")
    found = read_walks(ids)
    assert [(p.model, p.sr, p.suboptimal_steps) for p in found] == [
        ("walks distance 1 n=1", 1.0, 0.0),
        ("walks distance 4 n=2", 1.0, 1.5),
    ]
    snap = tmp_path / "paths_finished.tsv"
    snap.write_text("ip\t1\t9\tAster;Clover;<;Birch;Daisy;Elder;Foxglove\tNULL\n")
    (person,) = read_walks(snap)  # six clicks, the one back included
    assert person.suboptimal_steps == 2
    ids.write_text("0 1\n0 99\n")
    with pytest.raises(UsageError, match="line 2: is no walk"):
        read_walks(ids)


@needs_wikispeedia
def test_people_of_wikispeedia() -> None:
    found = read_walks(WIKISPEEDIA / "human_finished_paths_ids.txt")
    extra = {p.maze_size: round(p.suboptimal_steps or 0, 2) for p in found}
    assert {k: extra[k] for k in (3, 4, 5, 6)} == {3: 2.20, 4: 2.49, 5: 2.90, 6: 2.90}


@needs_wikispeedia
def test_baselines_win_as_often_as_others_measured(command: Command) -> None:
    """1.5 % and 46 % of 200 easy games there; 99 % of such samples lie within these bounds."""
    args = ("--model", "reference/random", "--model", "reference/greedy-novel", "--quiet")
    done = command.run("--world", "wiki", "--graph", str(WIKISPEEDIA), *args)
    rates = {row["model"]: row["sr"] for row in done.document["aggregate"]}
    assert rates["random"] <= 0.05
    assert abs(rates["greedy-novel"] - 0.46) <= 2.58 * (2 * 0.46 * 0.54 / 200) ** 0.5


# -- the command ----------------------------------------------------------------------------------

WIKI = ("--world", "wiki", "--lang", "en")


def walk_on(request: Received) -> str:
    """The shortest way, as somebody who knows the atlas would answer over HTTP."""
    turns = [{"role": role, "content": text} for role, text in request.turns]
    return hallumaze.page_agents(load_graph(""))["oracle"](turns)


def compatible(server: Server) -> tuple[str, ...]:
    return ("--model", "compatible/x", "--base-url", server.url + "/v1")


def test_the_agents_play(command: Command) -> None:
    done = command.run(*WIKI, "--games", "12", "--csv")
    rows = {row["model"]: row for row in done.document["aggregate"]}
    assert list(rows) == ["oracle", "greedy-novel", "greedy", "hub", "random"]
    assert rows["oracle"]["sr"] == 1 and rows["oracle"]["suboptimal_steps"] == 0
    assert rows["oracle"]["pooled"]["grades"]["farther"] == 0
    assert rows["random"]["sr"] < rows["hub"]["sr"] < 1
    assert "On the way to the goal" in done.out
    first = done.document["mazes"][0]
    assert first["solution_path"][0] == first["source"] and first["world"] == "wiki"
    assert len(first["solution_path"]) == first["solution_length"] + 1
    trial = done.results[0]
    assert (trial["source"], trial["target"]) == (first["source"], first["target"])
    assert command("rescore", str(done.output)).code == 0
    assert command("compare", str(done.output), "--by", "model").code == 0


def test_games_over_http_survive_ctrl_c_and_are_rescored(command: Command, server: Server) -> None:
    server.answer = lambda request: Say(answer("openai", walk_on(request)), silence=0.05)
    args = (*compatible(server), *WIKI, "--games", "8", "--probe", "links")
    process = command.start(*args, "--output", "o.json")
    while len(server.requests) < 20:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    again = command.run("--resume", "--concurrency", "50")
    assert again.code == 0
    (row,) = again.document["aggregate"]
    assert (row["sr"], row["n"], row["probe"]["n"], row["probe"]["f1"]) == (1, 8, 1000, 1)
    assert command("rescore", str(again.output)).code == 0
    replayed = command.run(
        "--model", f"replay/{again.output}", *WIKI, "--games", "8", name="r.json"
    )
    assert replayed.code == 0 and all(trial["sr"] == 1 for trial in replayed.results)


def test_both_forms_of_a_plant_and_all_groups(command: Command) -> None:
    for plant in ("wall", "branch", "loop"):
        done = command.run(*WIKI, "--games", "4", "--plant", plant, "--plant-as", "both")
        assert {trial["plant_as"] for trial in done.results} == {"own", "other"}
        assert command("rescore", str(done.output)).code == 0
    done = command.run(*WIKI, "--games", "4", "--group", "ALL", "--lang", "ko")
    assert {trial["ariadne_group"] for trial in done.results} == {"A", "B", "C"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--world", "wiki", "--size", "7"], "--size goes with --world maze"),
        (["--difficulty", "hard"], "--difficulty goes with --world wiki"),
        (["--probe", "links"], "--probe goes with --world wiki"),
        (["--world", "wiki", "--protocol", "plan"], "--protocol step"),
        (["--world", "wiki", "--view", "map"], "--view local"),
        (["--world", "wiki", "--model", "reference/explorer"], "oracle, greedy-novel, greedy"),
        (["--world", "wiki", "--probe", "links", "--plant", "wall"], "--probe goes with"),
        (["--world", "wiki", "--batch"], "leave out --batch"),
        (["--model", "reference/hub"], "the reference agents are oracle, explorer"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], said: str, command: Command) -> None:
    done = command(*arguments)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_a_graph_that_changed_is_not_rescored(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "garden.tsv"
    titles = list(LINKS)
    rows = [f"{t}\t{' '.join(str(titles.index(o)) for o in LINKS[t])}" for t in titles]
    path.write_text("\n".join(rows))
    args = (*WIKI, "--graph", str(path), "--model", "reference/random")
    done = command.run(*args)
    assert done.code == 0 and command("rescore", str(done.output)).code == 0
    path.write_text("\n".join(rows).replace("Birch", "Beech"))
    again = command("rescore", str(done.output))
    assert again.code == 70 and "another graph" in again.err
    hard = command(*args, "--difficulty", "hard")
    assert hard.code == 2 and "no walk of the difficulty hard" in hard.err


def test_what_strangers_title_their_pages_is_escaped(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    names = ["\x1b[31mRed", "=1+1", "<b>", "[red]x[/red]", "End"]
    rows = [f"{name}\t{(k + 1) % 5} {(k - 1) % 5}" for k, name in enumerate(names)]
    rows += [f"Far{k}\t{k + 6 if k < 3 else 0}" for k in range(4)]
    rows[4] += " 5"
    path.write_text("\n".join(rows))
    done = command(*WIKI, "--graph", str(path), "--model", "reference/oracle")
    assert done.code == 0 and "\x1b[31m" not in done.out
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", done.out)
