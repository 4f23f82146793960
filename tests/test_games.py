"""Games: one move at a time, the world answers each."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE_S, Command
from servers import Received, Say, Server, answer, error, move
from terminals import Pty, Tmux

import hallumaze
from hallumaze import (
    Game,
    MazeConfig,
    MazeEngine,
    PromptBuilder,
    ResponseParser,
    chain_sha256,
    score_game,
)

# A corridor with one branch, and its exit:   S . .
# (0,0) E (0,1) E (0,2) S (1,2) S (2,2);        | |
# branch: (0,1) S (1,1) W (1,0) S (2,0) E (2,1).
THREE = ["E", "ESW", "SW", "ES", "NW", "NS", "NE", "W", "N"]
MAZE = MazeEngine.from_openings(THREE)


def config(**given: Any) -> MazeConfig:
    return MazeConfig(size=3, lang="en", protocol="step", **given)


def game(answers: Sequence[str], group: str = "A", maze: MazeEngine = MAZE, **given: Any) -> Game:
    """The game after these answers; a letter is a move in the form that is asked for."""
    settings = config(**given)
    form = settings.forms[0]
    builder = PromptBuilder(maze, settings, form)
    played = Game(maze, settings, group, builder.build(), builder.plant)
    for text in answers:
        assert not played.over, "more answers than the game takes"
        played.take(f"MOVE: {text} | confidence: 80% | on" if len(text) == 1 else text)
    return played


def scores(answers: Sequence[str], group: str = "A", **given: Any) -> dict[str, Any]:
    played = game(answers, group, **given)
    if not played.over:
        played.stop()
    return score_game(played)


def verdicts(scored: dict[str, Any]) -> list[str]:
    return [step["verdict"] for step in scored["steps"]]


# -- what the model is told -----------------------------------------------------------------------


def test_the_first_message_says_all_that_the_world_shows() -> None:
    (message,) = game([]).messages()
    assert message["role"] == "user"
    lines = message["content"].split("\n")
    assert lines[:2] == ["MAZE 3×3 | START:(0,0) | EXIT:(2,2)", "Seed: 0"]
    assert lines[-5:] == [
        "You stand on (0,0): [E→]",
        "EXIT: (2,2)",
        "Moves left: 18 of 18",
        "Visited, in the order of the first visit: (0,0)",
        "Your move?",
    ]
    assert "MOVE: [direction] | Confidence: XX% | [reason]" in lines
    assert "(0,1)" not in message["content"]  # what lies beyond is not shown


def test_the_map_comes_first_when_it_is_asked_for() -> None:
    content = game([], view="map").messages()[0]["content"]
    assert content.startswith(MAZE.encode_text(lang="en"))
    assert "% to 100%" not in game([], use_confidence=False).messages()[0]["content"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["E"], "Last move: moved E→ to (0,1)."),
        (["N"], "Last move: BLOCKED: there is no opening to the N of (0,0)."),
        (["E", "N"], "Last move: BLOCKED: there is no opening to the N of (0,1)."),
        (["MOVE: NE | 50%"], "Last move: BLOCKED: NE is no direction; there are N, E, S and W."),
        (["MOVE: (0,2)"], "Last move: BLOCKED: no single move leads from (0,0) to (0,2)."),
        (["MOVE: (0,1)"], "Last move: moved E→ to (0,1)."),
        (["MOVE: (1,0)"], "Last move: BLOCKED: there is no opening to the S of (0,0)."),
        (["MOVE: (9,9)"], "Last move: BLOCKED: no single move leads from (0,0) to (9,9)."),
        (["MOVE: (2,2) → E"], "Last move: BLOCKED: you do not stand on (2,2) but on (0,0)."),
        (
            ["MOVE: (0,0) → E → (2,2)"],
            "Last move: BLOCKED: no single move leads from (0,0) to (2,2).",
        ),
        (
            ["hmm, let me think"],
            "Your answer held no move that could be read. Close it with one line in this form:"
            " MOVE: [direction] | Confidence: XX% | [reason]",
        ),
    ],
)
def test_the_world_answers_every_move(answers: list[str], said: str) -> None:
    assert game(answers).messages()[-1]["content"].split("\n")[0] == said


def test_a_conversation_grows_and_nothing_before_changes() -> None:
    played = game(["E"])
    before = played.messages()
    assert [m["role"] for m in before] == ["user", "assistant", "user"]
    assert before[1]["content"] == "MOVE: E | confidence: 80% | on"
    played.take("MOVE: S")
    after = played.messages()
    assert after[:3] == before and len(after) == 5
    assert "Visited, in the order of the first visit: (0,0) (0,1) (1,1)" in after[-1]["content"]
    assert "Moves left: 16 of 18" in after[-1]["content"]
    assert played.fixed == len(after[-1]["content"])


def test_a_fresh_prompt_begins_with_the_same_rules() -> None:
    for memory in ("history", "none"):
        played = game(["E", "E"], memory=memory)
        (message,) = played.messages()
        (first,) = game([], memory=memory).messages()
        fixed = first["content"][: played.fixed]
        assert message["content"].startswith(fixed) and fixed.endswith("[reason]")
        assert ("Visited" in message["content"]) == (memory == "history")
        assert "Last move: moved E→ to (0,2)." in message["content"]


def test_thinking_is_not_sent_back_and_an_empty_answer_is_no_turn() -> None:
    played = game(["<think>east?</think>MOVE: E"])
    assert played.messages()[1]["content"] == "MOVE: E"
    for answers, turns in (([""], 1), (["E", " \n"], 3), (["<think>cut", "E"], 3)):
        messages = game(answers).messages()
        assert len(messages) == turns
        assert [m["role"] for m in messages] == ["user", "assistant", "user"][:turns]
        assert all(m["content"].strip() for m in messages)


# -- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "direction", "to", "confidence"),
    [
        ("MOVE: E | confidence: 85% | open", "E", None, 85),
        ("**MOVE:** East | 0.9 | looks open", "E", None, 90),
        ("- move: → | Confidence: 40%", "E", None, 40),
        ("이동: 동쪽 | 확신도: 70% | 열림", "E", None, 70),
        ("MOVE: go down | 55%", "S", None, 55),
        ("`MOVE: (0,1)`", None, (0, 1), None),
        ("I see an exit.\nMOVE: S\nMOVE: E", "S", None, None),  # the first: the rest is unanswered
        ("```\nMOVE: N\n```", "N", None, None),
        ("E", "E", None, None),
        ("South", "S", None, None),
        ("STEP 4: (0,0) → W | 30%", "W", None, 30),
        ("DEAD_END at (1,1) — backtracking\nMOVE: N | 95%", "N", None, 95),
        ("MOVE: NE | 50%", "NE", None, 50),
        ("MOVE 5: W | 60% | back", "W", None, 60),
        ("Step 1: I look to the east.\nStep 2: west is open\nMOVE: S | 90%", "S", None, 90),
        ("MOVE:\nE", "E", None, None),
        ('{"move": "E"}', "E", None, None),
        ("Last move: moved E→ to (0,1).\nMOVE: S", "S", None, None),
    ],
)
def test_a_move_as_a_person_would_read_it(
    text: str, direction: str | None, to: tuple[int, int] | None, confidence: float | None
) -> None:
    (claim,) = ResponseParser().parse_move(text).steps
    place = claim.cell if claim.to is None else claim.to
    assert (claim.direction, claim.confidence) == (direction, confidence)
    assert to is None or place == to


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MOVE: [direction] | Confidence: XX% | [reason]",
        "MOVE:",
        "I would rather not.",
        "MOVE: [N↑ E→ S↓]",
        "<think>MOVE: E",
        "The exit is to the east. I am sure.\nLet me see.",
        "Step 1: east is open\nMOVE: hm",
    ],
)
def test_no_move_is_read_where_there_is_none(text: str) -> None:
    assert ResponseParser().parse_move(text).steps == ()


# -- verdicts, events and metrics by hand ---------------------------------------------------------


def test_the_way_out() -> None:
    got = scores(["E", "E", "S", "S"])
    assert (got["sr"], got["hallucination_count"], got["outcome"]) == (1, 0, "ok")
    assert got["final_path"] == [[0, 0], [0, 1], [0, 2], [1, 2], [2, 2]]
    # Four moves, the shortest way; CE = |0.8 - 1|; MEI = 0.4 + 0.3 + 0.2.
    assert (got["moves_used"], got["path_efficiency"], got["progress"]) == (4, 1, 1)
    assert (got["ce"], got["mei"], got["looped"], got["sr_if_looped"]) == (0.2, 0.9, 0, None)
    assert got["most_visits"] == 1 and got["recognition_delay"] is None
    assert got["failure_mode"] == "solved"


def test_a_wall_bumped_twice() -> None:
    """Two hallucinations, no backtrack: the world withdrew the claim, not the model."""
    got = scores(["N", "N", "E", "E", "S", "S"])
    assert verdicts(got) == ["wall", "wall", "ok", "ok", "ok", "ok"]
    assert (got["hallucination_count"], got["backtrack_count"], got["hrr"]) == (2, 0, 0)
    assert got["first_hallucination_step"] == 1
    # The first is followed by another wall, the second by a legal move.
    assert got["recovery"]["hallucinations_recovered"] == 1
    assert got["hallucination_recovery"] == 0.5
    assert (got["moves_used"], got["path_efficiency"]) == (6, pytest.approx(4 / 6, abs=1e-6))
    assert got["most_visits"] == 1  # it came to (0,0) once, and stood there
    assert got["tiers"]["scope_bound"]["wall"] == 2


def test_a_loop_of_two_cells() -> None:
    """E W E: the third move was made before. E W E W: the fourth too."""
    got = scores(["E", "W", "E", "W", "E", "E", "S", "S"])
    # E(1) W(2) E(3: loop) W(4: loop) E(5: loop) E S S
    assert (got["loop_count"], got["backtrack_count"], got["sr"]) == (3, 2, 1)
    assert (got["looped"], got["sr_if_looped"]) == (1, 1)
    assert got["most_visits"] == 3  # (0,0) at first and after 2 and 4; (0,1) after 1, 3 and 5
    assert got["path_efficiency"] == 0.5 and got["progress"] == 1


def test_the_exit_on_the_last_move_of_the_budget() -> None:
    got = scores(["E", "E", "S", "S"], step_budget=4)
    assert (got["sr"], got["outcome"], got["path_efficiency"]) == (1, "ok", 1)
    got = scores(["E", "N", "E", "S"], step_budget=4)  # a blocked move costs one
    assert (got["sr"], got["outcome"], got["path_efficiency"]) == (0, "ok", None)
    assert got["progress"] == 0.75  # three of four moves are behind it
    assert got["failure_mode"] == "mirage_undetected"


def test_recognition_in_a_game() -> None:
    """Into the branch to its end; the dead end is declared before the move out of it."""
    way = ["E", "S", "W", "S", "E"]
    back = "DEAD_END at (2,1) — backtracking\nMOVE: W | 90%"
    got = scores([*way, back, "N", "E", "N", "E", "S", "S"])
    assert got["events"] == [
        {"step": 5, "kind": "dead_end", "cells": [[2, 1]], "recognised_by_line": 5}
    ]
    assert (got["recognition_recall"], got["recognition_precision"]) == (1, 1)
    assert got["recognition_delay"] == 0  # no move lies between
    # A branch four deep, four moves in and four out.
    assert (got["recovery_cost"], got["wrong_turn_recovery"], got["sr"]) == (1, 1, 1)
    late = [*way, "W", "DEAD_END at (2,1)\nMOVE: N", "E", "N", "E", "S", "S"]
    assert scores(late)["recognition_delay"] == 1


def test_an_unreadable_answer_is_asked_for_twice_again() -> None:
    assert not game(["E", "what?", "what?"]).over
    got = scores(["E", "what?", "what?", "S", "what?", "no", "no"])
    assert (got["outcome"], got["sr"], got["moves_used"]) == ("unreadable", 0, 2)
    assert got["failure_mode"] == "unreadable"
    got = scores(["", "", ""])
    assert (got["outcome"], got["readable"], got["mei"], got["moves_used"]) == (
        "unreadable",
        False,
        0,
        0,
    )
    assert got["hallumaze_score"] == 0 and got["final_path"] == []


def test_a_refusal_and_a_cut_answer_end_a_game_as_what_they_are() -> None:
    played = game(["E"])
    played.take("I cannot go on.", "refused")
    assert played.over and score_game(played)["outcome"] == "refused"
    played = game(["E"])
    for _ in range(3):
        played.take("I think that", "truncated")
    assert played.over and score_game(played)["outcome"] == "truncated"
    played = game([])
    played.take("MOVE: E | and then I", "truncated")  # the move is whole
    assert not played.over and score_game(played)["outcome"] == "ok"


# -- hints ----------------------------------------------------------------------------------------


def test_a_hint_comes_the_moment_a_loop_is_verified() -> None:
    played = game(["E", "W", "E"], "B")
    assert played.hints == [(3, "loop")]
    assert "⟡ You have made a move that you had made before" in played.messages()[-1]["content"]
    assert game(["E", "W", "E"], "A").hints == [] == game(["E", "W"], "B").hints
    got = scores(["E", "W", "E", "S", "W", "S", "E"], "B")
    # Move 4 leaves the loop of (0,0) and (0,1): NRS = 1/1.
    assert got["hints"] == [{"after": 3, "kind": "loop", "nrs": 1}]
    assert (got["nrs"], got["nudge_sent"], got["nudge_needed"]) == (1, True, True)
    # A blocked move, then one out of the loop: NRS = 1/2.
    assert scores(["E", "W", "E", "N", "E", "S", "S"], "B")["nrs"] == 0.5


def test_a_hint_for_a_dead_end_entered_again_and_no_more_than_asked_for() -> None:
    twice = ["E", "S", "W", "S", "E", "W", "E"]
    assert game(twice, "B").hints == [(7, "loop")]  # the move into it is one made before
    many = ["E", "W"] * 5
    assert [k for k, _ in game(many, "B").hints] == [3, 4, 5]  # MOST_HINTS
    assert [k for k, _ in game(many, "B", most_hints=1).hints] == [3]
    assert game(many, "B", most_hints=0).hints == []


def test_group_c_has_its_hint_at_a_fixed_move() -> None:
    played = game(["E", "E", "S"], "C")
    assert played.hints == [(3, "nothing")]  # N = 3
    assert game(["E", "E"], "C", hint_at=1).hints == [(1, "nothing")]
    got = scores(["E", "E", "S", "S"], "C")
    assert (got["nudge_needed"], got["nrs"], got["sr"]) == (False, 0, 1)
    assert scores(["E", "W", "E", "W", "E"], "C")["nudge_needed"] is True


# -- planted errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 7, 9])
@pytest.mark.parametrize("kind", ["wall", "branch", "loop"])
def test_a_planted_walk_holds_one_wrong_step(kind: str, size: int) -> None:
    found = 0
    for seed in range(40):
        maze = MazeEngine(size, seed)
        plant = hallumaze.planted(maze, kind)
        if plant is None:
            assert kind == "branch" and not maze.junctions
            continue
        found += 1
        assert hallumaze.planted(maze, kind) == plant
        here: Any = (0, 0)
        made, wrong = set(), []
        for step in plant.steps:
            assert step.cell == here
            ahead = maze.destination(here, step.direction or "")
            if ahead not in maze.neighbours(here):
                wrong.append(step.number)
                assert maze.exists(ahead)
                continue
            if (here, ahead) in made:
                wrong.append(step.number)
            if maze.on_solution(here) and not maze.on_solution(ahead):
                wrong.append(step.number)
            made.add((here, ahead))
            here = ahead
        assert wrong == [plant.wrong]
        short = 3 <= len(plant.steps) <= 6
        assert short or (kind == "branch" and plant.wrong == len(plant.steps))
    assert found > 25


def planted(kind: str, steps: str, wrong: int) -> hallumaze.Plant:
    """A planted walk from (0,0) in THREE."""
    here: Any = (0, 0)
    claims = []
    for number, way in enumerate(steps, 1):
        claims.append(hallumaze.Claim(0, number, here, way))
        ahead: Any = MAZE.destination(here, way)
        if number == wrong:
            stood, aimed = here, ahead
        here = ahead
    return hallumaze.Plant(kind, tuple(claims), wrong, stood, aimed)


def answered(lines: Sequence[str], plant: hallumaze.Plant) -> dict[str, Any]:
    """The result of a whole answer after a planted walk."""
    return hallumaze.score_answer("\n".join(lines), "ok", MAZE, (), plant)[2]


def outcome(scored: dict[str, Any]) -> tuple[str, int | None]:
    return scored["plant_response"], scored["plant_steps"]


def test_what_becomes_of_a_planted_wall() -> None:
    plant = planted("wall", "ESE", 3)  # (1,1) E (1,2): there is a wall between
    on = "STEP 4: (1,2) → S\nSTEP 5: (2,2) → N"
    assert outcome(answered([on], plant)) == ("carried_on", None)
    assert answered([on], plant)["hallucination_count"] == 0  # the error is not its own
    other = ["STEP 4: (1,1) → N", "STEP 5: (0,1) → E"]
    assert outcome(answered(other, plant)) == ("repaired", 1)
    told = "The move E from (1,1) was wrong: there is a wall."
    got = answered([told, *other], plant)
    assert outcome(got) == ("recognised", 0) and got["plant_recognised"] == 1
    assert (got["false_alarms"], got["recognition_precision"]) == (0, None)
    # Two steps later it sees it.
    assert outcome(answered([*other, told], plant)) == ("recognised", 2)
    # A boast that names another cell is a false alarm and recognises nothing.
    got = answered(["LOOP detected at (0,0) — visited at step 1", *other], plant)
    assert outcome(got) == ("repaired", 1) and got["false_alarms"] == 1
    assert outcome(answered([], plant)) == ("carried_on", None)


def test_what_becomes_of_a_planted_loop() -> None:
    plant = planted("loop", "EEWE", 4)
    out = ["STEP 5: (0,2) → S", "STEP 6: (1,2) → S"]
    assert outcome(answered(out, plant)) == ("repaired", 1)
    assert outcome(answered(["STEP 5: (0,2) → W", "STEP 6: (0,1) → S"], plant)) == ("repaired", 2)
    assert outcome(answered(["STEP 5: (0,2) → W"], plant)) == ("carried_on", None)
    got = answered(["LOOP detected at (0,2) — visited at step 2", *out], plant)
    assert outcome(got) == ("recognised", 0) and got["loop_count"] == 0
    assert outcome(answered(["LOOP detected at (2,2)", *out], plant)) == ("repaired", 1)


def test_what_becomes_of_a_planted_branch() -> None:
    plant = planted("branch", "ESW", 2)  # in the branch, at (1,0)
    back = ["STEP 4: (1,0) → E", "STEP 5: (1,1) → N", "STEP 6: (0,1) → E"]
    assert outcome(answered(back, plant)) == ("repaired", 2)
    deeper = ["STEP 4: (1,0) → S", "STEP 5: (2,0) → E"]
    assert outcome(answered(deeper, plant)) == ("carried_on", None)
    dead = [*deeper, "DEAD_END at (2,1) — backtracking", "STEP 6: (2,1) → W"]
    assert outcome(answered(dead, plant)) == ("recognised", 2)
    assert outcome(answered(["DEAD_END at (1,0)", *back], plant)) == ("repaired", 2)  # it is none
    assert outcome(answered(["STRATEGY_CHANGE — this is a branch", *back], plant)) == (
        "recognised",
        0,
    )


@pytest.mark.parametrize("protocol", ["plan", "step"])
@pytest.mark.parametrize("kind", ["wall", "branch", "loop"])
def test_explorer_recognises_every_plant_and_bluffer_none(
    command: Command, kind: str, protocol: str
) -> None:
    models = [x for name in ("explorer", "bluffer") for x in ("--model", f"reference/{name}")]
    args = ("--protocol", protocol, "--plant", kind, "--plant-as", "both", "--seeds", "0-14")
    done = command.run(*models, *args)
    assert done.code == 0
    seen = {
        (trial["model"], trial["plant_as"]): Counter[str]() for trial in done.document["results"]
    }
    for trial in done.document["results"]:
        if trial["plant"]:
            seen[trial["model"], trial["plant_as"]][trial["plant_response"]] += 1
    for form in ("own", "other"):
        assert set(seen["explorer", form]) == {"recognised"}
        assert "recognised" not in seen["bluffer", form]
        assert seen["explorer", form].total() == seen["bluffer", form].total() > 10
    rows = {(row["model"], row["plant_as"]): row for row in done.document["aggregate"]}
    assert rows["explorer", "own"]["plant_recognised"] == 1
    assert rows["bluffer", "other"]["plant_recognised"] == 0
    assert [row["blind_spot"] for row in rows.values()] == [0, 0, 0, 0]
    assert command("rescore", str(done.output)).code == 0


def test_where_the_planted_walk_stands() -> None:
    maze = MazeEngine(7, 1)
    for protocol in ("plan", "step"):
        settings = MazeConfig(lang="en", protocol=protocol, plant="wall")
        own = PromptBuilder(maze, settings, "own").build()
        other = PromptBuilder(maze, settings, "other").build()
        plain = PromptBuilder(maze, settings).build()
        assert own.user == plain.user and own.own[0].startswith("STEP 1: (0,0) → ")
        assert [m["role"] for m in own.messages] == ["user", "assistant", "user"][
            : 3 if protocol == "plan" else 2
        ]
        assert other.own == () and own.own[0] in other.user
        assert "Notes of a colleague" in other.user
        assert len({own.sha256, other.sha256, plain.sha256}) == 3


def test_a_blind_spot_is_what_others_errors_show_more(command: Command) -> None:
    """By hand: own 1 and 0, other 1 and 1 on two mazes: 1 - 0.5."""
    trials = [
        hallumaze.BenchmarkResult(
            "p", "m", maze_seed=seed, plant_as=form, plant_recognised=value, outcome="ok"
        )
        for form, values in (("own", (1.0, 0.0)), ("other", (1.0, 1.0)))
        for seed, value in enumerate(values)
    ]
    rows = hallumaze.aggregate(trials)
    assert [(row["plant_as"], row["blind_spot"]) for row in rows] == [("own", 0.5), ("other", 0.5)]
    assert hallumaze.aggregate(trials[:2])[0]["blind_spot"] is None


# -- whole games through the real SDKs ------------------------------------------------------------

ENV = {
    "anthropic": "ANTHROPIC",
    "openai": "OPENAI",
    "google": "GOOGLE",
    "deepseek": "DEEPSEEK",
}


def vendor(server: Server, name: str) -> dict[str, str]:
    """The environment that sends a vendor's calls to the server."""
    return {
        f"{ENV[name]}_API_KEY": "sk-test-123456",
        f"{ENV[name]}_BASE_URL": server.base_url(name),
    }


@pytest.mark.parametrize("name", list(ENV))
def test_thirty_games_through_a_vendors_sdk(command: Command, server: Server, name: str) -> None:
    server.answer = move
    games = ("--protocol", "step", "--size", "5", "--seeds", "0-29", "--lang", "en")
    done = command.run("--model", f"{name}/m", *games, **vendor(server, name))
    assert done.code == 0
    results = done.document["results"]
    assert len(results) == 30 and all(trial["sr"] == 1 for trial in results)
    asked = {trial["maze_seed"]: len(trial["turns"]) for trial in results}
    assert len(server.requests) == sum(asked.values())
    by_game: dict[str, list[Received]] = {}
    for request in server.requests:
        by_game.setdefault(request.turns[0][1], []).append(request)
    assert len(by_game) == 30
    assistant = "model" if name == "google" else "assistant"
    system = hallumaze._PROMPTS["en"]["system"]
    for requests in by_game.values():
        requests.sort(key=lambda r: len(r.turns))
        for k, request in enumerate(requests):
            assert [role for role, _ in request.turns] == ["user", *[assistant, "user"] * k]
            assert request.system == system
            if k:  # the conversation grows, and nothing before changes
                assert request.turns[: 2 * k - 1] == requests[k - 1].turns
                assert request.turns[2 * k - 1][1] == move(requests[k - 1])
            check_marks(name, request)
    for trial in results:
        turns = trial["turns"]
        assert trial["usage"]["input"] == 11 * len(turns)
        assert trial["raw_response"] == "\n".join(turn["raw_response"] for turn in turns)
    assert command("rescore", str(done.output)).code == 0


def check_marks(name: str, request: Received) -> None:
    """anthropic is told to cache up to the end; the others' servers know by themselves."""
    messages = request.body.get("messages", [])
    marked = [m for m in messages if isinstance(m["content"], list)]
    if name != "anthropic":
        assert marked == [] and "cache_control" not in json.dumps(request.body)
        return
    assert marked == [messages[-1]]
    (block,) = marked[0]["content"]
    assert block["cache_control"] == {"type": "ephemeral"}


def test_a_fresh_prompt_is_cached_up_to_where_it_changes(command: Command, server: Server) -> None:
    server.answer = move
    args = ("--protocol", "step", "--memory", "history", "--size", "5", "--seed", "1")
    done = command.run("--model", "anthropic/m", *args, **vendor(server, "anthropic"))
    assert done.code == 0
    firsts = set()
    for request in server.requests:
        (message,) = request.body["messages"]
        first, rest = message["content"]
        assert first["cache_control"] == {"type": "ephemeral"} and "cache_control" not in rest
        firsts.add(first["text"])
    assert len(firsts) == 1 < len(server.requests)


def test_what_is_cached_is_counted_and_priced(command: Command, server: Server) -> None:
    """10 + 1000 read + 100 written; Sonnet 4: 3 USD per million, 0.3 read and 3.75 written."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 0,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 100,
    }
    server.answer = lambda request: Say(answer("anthropic", move(request), usage=usage))
    model = ("--model", "anthropic/claude-sonnet-4-20250514")
    args = ("--protocol", "step", "--size", "5", "--seed", "1")
    (trial,) = command.run(*model, *args, **vendor(server, "anthropic")).results
    n = len(trial["turns"])
    assert (trial["usage"]["input"], trial["usage"]["cached"]) == (1110 * n, 1000 * n)
    each = (10 * 3 + 1000 * 0.3 + 100 * 3.75) / 1e6
    assert trial["cost_usd"] == pytest.approx(n * round(each, 6), abs=1e-6)


# -- what goes wrong on the way -------------------------------------------------------------------


def compatible(server: Server) -> tuple[str, ...]:
    return ("--model", "compatible/m", "--base-url", server.base_url("compatible"))


STEP = ("--protocol", "step", "--size", "5")


def test_a_game_that_dies_goes_on_where_it_was(command: Command, server: Server) -> None:
    """The server fails for good at move 5: an error; resumed, moves 1 to 4 are not asked for."""
    server.answer = lambda r: (
        Say(error("openai", 400, "no").body, 400) if len(r.turns) == 9 else move(r)
    )
    done = command.run(*compatible(server), *STEP, "--seed", "1")
    (trial,) = done.results
    assert (done.code, trial["outcome"], len(trial["turns"])) == (1, "error", 4)
    assert trial["usage"]["input"] == 44  # what it took is told
    before = len(server.requests)
    server.answer = move
    again = command.run("--resume")
    (trial,) = again.results
    assert (again.code, trial["sr"]) == (0, 1)
    assert len(server.requests[before].turns) == 9  # four moves are behind it
    assert len(server.requests) - before == len(trial["turns"]) - 4
    assert trial["earlier_attempts"] == {"n": 1, "usage": {}, "cost_usd": None}
    assert command("rescore", str(again.output)).code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"raw_response": None},
        {"outcome": "error"},
        {"latency_s": "1"},
        {"cost_usd": "free"},
        {"usage": {"input": 1.5}},
        {"prompt_sha256": 1},
    ],
)
def test_a_damaged_turn_of_a_journal_is_named(
    command: Command, server: Server, change: dict[str, Any]
) -> None:
    server.answer = lambda r: (
        Say(error("openai", 400, "no").body, 400) if len(r.turns) == 3 else move(r)
    )
    assert command(*compatible(server), *STEP, "--seed", "1").code == 1
    (path,) = (command.folder / "results").glob("*.jsonl")
    lines = path.read_text().split("\n")
    entry = json.loads(lines[1])
    assert entry["turn"] == 1
    lines[1] = json.dumps({**entry, "answer": {**entry["answer"], **change}})
    path.write_text("\n".join(lines))
    done = command("--resume")
    assert done.code == 2 and "line 2 is no trial of this journal" in done.err
    assert done.err.count("\n") == 1


KILLS = 20


def test_killed_in_the_midst_of_games_no_turn_is_asked_for_twice(
    command: Command, server: Server, tmp_path: Path
) -> None:
    """SIGKILL at 20 random moments of 12 games, 4 at a time."""
    undisturbed = Command(tmp_path / "undisturbed")
    undisturbed.folder.mkdir()
    server.answer = move
    games = (*compatible(server), *STEP, "--seeds", "0-11", "--concurrency", "4")
    whole = undisturbed.run(*games)
    assert whole.code == 0
    server.requests.clear()
    rng = random.Random(11)

    def hesitating(request: Received) -> str:
        time.sleep(random.random() / 20)
        return move(request)

    server.answer = hesitating
    kills, journaled, asked = 0, set[str](), Counter[str]()
    while True:
        paths = list((command.folder / "results").glob("*.jsonl"))
        args = ("--resume",) if paths else games
        process = command.start(*args, "--output", str(command.output))
        before = len(server.requests)
        if kills < KILLS:
            wanted = before + rng.randint(1, 16)
            while len(server.requests) < wanted and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.random() / 40)
            process.kill()
        process.communicate(timeout=PATIENCE_S)
        for request in server.requests[before:]:
            digest = digest_of(request)
            assert digest not in journaled, "a turn was paid for twice"
            asked[digest] += 1
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        journaled = set(turns_of(command.folder / "results"))
    assert kills > KILLS / 2
    final = json.loads(command.output.read_text())
    for mine, theirs in zip(final["results"], whole.document["results"], strict=True):
        texts = [[turn["raw_response"] for turn in t["turns"]] for t in (mine, theirs)]
        digests = [[turn["prompt_sha256"] for turn in t["turns"]] for t in (mine, theirs)]
        assert texts[0] == texts[1] and digests[0] == digests[1]
        assert mine["hallumaze_score"] == theirs["hallumaze_score"]


def digest_of(request: Received) -> str:
    return chain_sha256(request.system, *(text for _, text in request.turns))


def turns_of(folder: Path) -> Iterator[str]:
    """The prompts of the turns that a journal holds whole."""
    (path,) = folder.glob("*.jsonl")
    for line in path.read_bytes().split(b"\n")[1:-1]:
        entry = json.loads(line)
        if "turn" in entry:
            yield entry["answer"]["prompt_sha256"]
        elif entry["result"]["turns"]:
            yield from (turn["prompt_sha256"] for turn in entry["result"]["turns"])


def test_ctrl_c_pauses_games(command: Command, server: Server) -> None:
    def slowly(request: Received) -> Say:
        return Say(answer("openai", move(request)), silence=0.05)

    server.answer = slowly
    process = command.start(*compatible(server), *STEP, "--seeds", "0-5", "--output", "o.json")
    while len(server.requests) < 12:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "--resume" in err
    asked = {digest_of(request) for request in server.requests}
    before = len(server.requests)
    again = command.run("--resume")
    assert again.code == 0 and all(trial["sr"] == 1 for trial in again.results)
    assert not asked & {digest_of(request) for request in server.requests[before:]}


def test_a_budget_in_usd_stops_between_two_moves(command: Command, server: Server) -> None:
    """Each move costs 10 * 2.5 + 10 * 10 USD per million: 0.000125; four fit into 0.0005."""
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    server.answer = lambda r: Say(answer("openai", move(r), usage=usage))
    args = ("--model", "openai/gpt-4o", *STEP, "--seeds", "1", "--max-cost", "0.0005")
    done = command(*args, **vendor(server, "openai"))
    assert done.code == 1 and "--max-cost" in done.err
    assert len(server.requests) == 4
    again = command.run("--resume", **vendor(server, "openai"))
    (trial,) = again.results
    assert again.code == 0 and trial["cost_usd"] == pytest.approx(0.000125 * len(trial["turns"]))
    assert len(server.requests) == len(trial["turns"])
    assert again.document["aggregate"][0]["cost_usd"] == trial["cost_usd"]


def test_a_replayed_game_is_the_game(command: Command, server: Server) -> None:
    server.answer = move
    done = command.run(*compatible(server), *STEP, "--seeds", "0-4", "--group", "B")
    kept = command.folder / "kept.json"
    done.output.rename(kept)
    before = len(server.requests)
    args = (*STEP, "--seeds", "0-4", "--group", "B")
    again = command.run("--model", f"replay/{kept}", *args)
    assert again.code == 0 and len(server.requests) == before
    same = ("sr", "mei", "hallumaze_score", "moves_used", "raw_response", "steps", "events")
    for mine, theirs in zip(again.results, json.loads(kept.read_text())["results"], strict=True):
        assert {name: mine[name] for name in same} == {name: theirs[name] for name in same}


def test_a_changed_score_of_a_game_is_found(command: Command) -> None:
    done = command.run("--model", "reference/explorer", *STEP, "--seed", "1")
    document = done.document
    document["results"][0]["moves_used"] -= 1
    done.output.write_text(json.dumps(document))
    again = command("rescore", str(done.output))
    assert again.code == 70 and "moves_used" in again.out + again.err
    document["results"][0]["turns"].pop()
    done.output.write_text(json.dumps(document))
    again = command("rescore", str(done.output))
    assert again.code == 70 and "turns" in again.out + again.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--view", "map"], "--view goes with --protocol step"),
        (["--hints", "2", "--group", "B"], "--hints goes with --protocol step"),
        ([*STEP, "--hint-at", "3"], "--hint-at goes with --group B, C or ALL"),
        (["--plant-as", "both"], "--plant-as goes with --plant"),
        ([*STEP, "--batch"], "leave out --batch"),
        ([*STEP, "--model", "reference/oracle"], "add --view map"),
        ([*STEP, "--step-budget", "0"], "--step-budget"),
        (["--protocol", "walk"], "--protocol"),
    ],
)
def test_what_does_not_go_together_is_told(command: Command, args: list[str], words: str) -> None:
    done = command(*args)
    assert done.code == 2 and words in done.err and done.err.count("\n") == 1


def test_agents_in_every_view_and_memory(command: Command) -> None:
    """Whoever follows a wall or a list finds the way without an error, a loop or a false alarm."""
    for view in ("local", "map"):
        for memory in ("chat", "history", "none"):
            args = ("--view", view, "--memory", memory, "--seeds", "0-2")
            done = command.run(*STEP, *args)
            assert done.code == 0
            by_model: dict[str, list[dict[str, Any]]] = {}
            for trial in done.results:
                by_model.setdefault(trial["model"], []).append(trial)
            assert ("oracle" in by_model) == (view == "map")
            for trial in by_model["explorer"]:
                numbers = ("sr", "hallucination_count", "loop_count", "false_alarms")
                assert [trial[name] for name in numbers] == [1, 0, 0, 0]
                assert trial["recognition_recall"] in (1, None)
            assert all(trial["sr"] == 0 for trial in by_model["bluffer"])
            assert {trial["outcome"] for trial in by_model["silent"]} == {"unreadable"}


# -- a person -------------------------------------------------------------------------------------


def test_a_person_pipes_a_walk(command: Command) -> None:
    maze = MazeEngine(5, 3)
    way = "".join(
        maze.direction(tuple(a), tuple(b)) or ""
        for a, b in zip(maze.solution_path, maze.solution_path[1:], strict=False)
    )
    walk = "N 10\nu\nl " + " ".join(f"{letter} 90" for letter in way)
    args = ("play", "--size", "5", "--seed", "3", "--name", "Ann", "--lang", "en")
    done = command(*args, "--output", str(command.output), stdin=walk)
    assert done.code == 0 and "BLOCKED: there is no opening to the N of (0,0)" in done.out
    assert "nothing is undone" in done.out
    (trial,) = done.results
    assert (trial["provider"], trial["model"], trial["sr"]) == ("human", "Ann", 1)
    assert (trial["moves_used"], trial["hallucination_count"]) == (len(way) + 1, 1)
    assert trial["confidence_log"][:2] == [{"step": 1, "conf": 10}, {"step": 2, "conf": 90}]
    assert trial["declared_loops"] == 1 and trial["outcome"] == "ok"
    assert command("rescore", str(done.output)).code == 0
    people = command.folder / "people.json"
    done.output.rename(people)
    models = ("--model", "reference/explorer", *STEP, "--seed", "3")
    again = command.run(*models, "--human-data", str(people), "--lang", "en")
    assert again.code == 0 and "human/Ann" in again.out
    told = command("compare", str(again.output), "--human-data", str(people), "--lang", "en")
    assert told.code == 0 and "human/Ann" in told.out


def test_a_person_leaves(command: Command) -> None:
    for walk in ("E 50 q", "E 50", "E 50 l"):
        args = ("--size", "5", "--seed", "3", "--name", "Bo", "--output", str(command.output))
        done = command("play", *args, stdin=walk)
        (trial,) = done.results
        assert (done.code, trial["outcome"], trial["sr"]) == (0, "truncated", 0)
        assert (trial["finish_reason"], trial["moves_used"]) == ("unfinished", 1)
        assert trial["declared_loops"] == walk.count("l")
        assert command("rescore", str(done.output)).code == 0
        done.output.unlink()
    done = command("play", "--size", "5", "--seed", "3", stdin="q\n")
    assert done.code == 0 and not list((command.folder / "results").glob("*.json"))
    assert command("play", "--name", "a\nb", stdin="").code == 2


def test_a_game_whose_file_cannot_be_written_is_kept(command: Command, tmp_path: Path) -> None:
    folder, spare = tmp_path / "gone", tmp_path / "spare"
    spare.mkdir()
    args = ("play", "--size", "5", "--seed", "3", "--output", str(folder / "x.json"))
    env = command.env(TMPDIR=str(spare))
    process = command.start(*args, stdin=subprocess.PIPE, env=env)
    assert process.stdin
    process.stdin.write("E 50\n")
    process.stdin.flush()
    deadline = time.monotonic() + PATIENCE_S
    while not folder.is_dir() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    shutil.rmtree(folder)
    _, err = process.communicate("q\n", timeout=PATIENCE_S)
    assert process.returncode == 1 and "kept for --human-data" in err
    (path,) = spare.glob("hallumaze_play_*.json")
    (kept,) = hallumaze.read_people(path)
    assert (kept.provider, kept.moves_used) == ("human", 1)


def test_a_person_on_a_terminal(command: Command) -> None:
    """Arrow keys, digits and Enter, w a s d, and the signals."""
    maze = MazeEngine.from_openings(MazeEngine(3, 1).openings())
    for make in (Pty, Tmux):
        args = ("play", "--size", "3", "--seed", "1", "--name", "Cy", "--lang", "en")
        with make(command, *args, "--output", str(command.output)) as terminal:
            terminal.see("Your move?")
            assert maze.neighbours((0, 0)) == ((0, 1),)
            terminal.type("\x1b[C")
            terminal.see("how sure")
            terminal.type("85\x7f0\r")
            terminal.see("moved E→ to (0,1)")
            terminal.type("d")  # (0,1) has no opening to the east: a dead end, it says
            terminal.see("DEAD_END at (0,1)")
            terminal.type("l")
            terminal.see("LOOP detected at (0,1)")
            terminal.type("s\r")
            terminal.see("moved S↓ to (1,1)")
            terminal.type("q")
            assert terminal.end() == 0
        (trial,) = json.loads(command.output.read_text())["results"]
        assert trial["confidence_log"] == [{"step": 1, "conf": 80}]
        assert [step["direction"] for step in trial["steps"]] == ["E", "S"]
        assert trial["metacog_signals"] == ["dead end", "backtracking", "loop detected"]
        assert (trial["outcome"], trial["finish_reason"]) == ("truncated", "unfinished")
        command.output.unlink()


# -- what sceptical readers found ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "move", "confidence"),
    [
        ("Next move: N is blocked, so not that.\nMOVE: E | Confidence: 80% | open", "E", 80),
        ("My move: east would be bad: a wall.\nMOVE: S", "S", None),
        ("MOVE: E because it is open", "E", None),  # a sentence is read where there is no other
        ("MOVE: E | Confidence: [80%] | r", "E", 80),
        ("MOVE: E 80%", "E", 80),
        ("MOVE: E\n(Confidence: 80%)", "E", 80),
        ("MOVE: E\n80%", "E", 80),
        ("Confidence: 80%\nMOVE: E", "E", 80),
        ('{"move": "E", "confidence": 80}', "E", 80),
        ("MOVE: E | Confidence: >80%", "E", 80),
        ("(0,1): [S↓ W←] → S", "S", None),
    ],
)
def test_a_move_is_read_as_a_person_would(text: str, move: str, confidence: float | None) -> None:
    (claim,) = ResponseParser().parse_move(text).steps
    assert (claim.direction, claim.confidence) == (move, confidence)


@pytest.mark.parametrize(
    "said",
    [
        "STEP 4 was wrong: there is a wall east of (1,1).",
        "Step 4 was an error: (1,1) has no opening to the east",
        "- STEP 4 is incorrect: E is a wall at (1,1)",
        "My STEP 4 was wrong: (1,1) has a wall",
        "4단계는 틀렸습니다: (1,1)의 동쪽은 벽입니다.",
    ],
)
def test_a_planted_step_is_admitted_by_its_number(said: str) -> None:
    plant = planted("wall", "ESE", 3)
    assert outcome(answered([said, "STEP 5: (1,1) → N"], plant)) == ("recognised", 0)


def test_a_path_alone_repairs_what_it_does_not_do_again() -> None:
    plant = planted("wall", "ESE", 3)  # (1,1) E (1,2): there is a wall between
    through = "FINAL_PATH: (0,0)→(0,1)→(1,1)→(1,2)→(2,2)"
    assert outcome(answered([through], plant)) == ("carried_on", None)
    around = "FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)"
    assert outcome(answered([around], plant)) == ("repaired", 0)
    told = answered(["The move E from (1,1) was wrong.", around], plant)
    assert outcome(told) == ("recognised", 0) and told["false_alarms"] == 0


def test_planted_moves_are_no_moves_of_the_model() -> None:
    """(0,0) E (0,1) S (1,1) is planted: going back and S again is no loop of its own."""
    plant = planted("wall", "ESE", 3)
    got = answered(["STEP 4: (1,1) → N", "STEP 5: (0,1) → S"], plant)
    assert got["loop_count"] == 0 and got["backtrack_count"] == 1


def test_one_maze_is_one_unit_however_many_forms_it_was_played_in(command: Command) -> None:
    args = (*STEP, "--seeds", "0-3", "--plant", "wall", "--plant-as", "both")
    models = ("--model", "reference/explorer", "--model", "reference/bluffer")
    done = command.run(*models, *args)
    told = command("compare", str(done.output), "--by", "model", "--json")
    found = json.loads(told.out)["comparisons"]
    assert max(entry["n"] for entry in found) == 4
    assert all(entry["p"] is None for entry in found)


def test_hints_are_a_condition(command: Command) -> None:
    args = ("--model", "reference/lured", *STEP, "--seeds", "0-5", "--group", "C", "--lang", "en")
    early = command.run(*args, "--hint-at", "2")
    assert early.results[0]["hint"].startswith("⟡ Stop for a moment")
    first = early.output.rename(command.folder / "first.json")
    late = command.run(*args, "--hint-at", "7")
    told = command("compare", str(first), str(late.output), "--lang", "en")
    assert "move of the hint" in told.out


def test_a_plant_without_steps_in_a_file_is_named(command: Command) -> None:
    done = command.run("--model", "reference/explorer", *STEP, "--seed", "1", "--plant", "wall")
    document = done.document
    document["results"][0]["plant"] = {"kind": "wall", "steps": [], "wrong": 1}
    done.output.write_text(json.dumps(document))
    assert command("rescore", str(done.output)).code == 70


def test_two_games_of_one_second_have_two_files(command: Command) -> None:
    for _ in range(3):
        assert command("play", "--size", "5", "--seed", "1", stdin="E 90 q").code == 0
    assert len(list(command.folder.rglob("hallumaze_results_*.json"))) == 3


def test_a_terminal_that_goes_away_loses_no_walk(command: Command) -> None:
    with Pty(command, "play", "--size", "5", "--seed", "1", "--lang", "en") as terminal:
        terminal.see("Your move?")
        terminal.type("E")
        terminal.see("how sure")
        terminal.type("90\n")
        terminal.see("Moves left: 49")
        os.close(terminal.master)
        terminal.process.wait(PATIENCE_S)
        terminal.master = os.dup(terminal.slave)  # what leaving the block closes
    (path,) = command.folder.rglob("hallumaze_results_*.json")
    (trial,) = json.loads(path.read_text())["results"]
    assert (trial["moves_used"], trial["finish_reason"]) == (1, "unfinished")


def test_two_keys_for_one_thing_on_a_terminal(command: Command) -> None:
    """d asks which of its meanings is meant and q leaves there; 150 % is asked for again."""
    with Pty(command, "play", "--size", "5", "--seed", "1", "--lang", "en") as terminal:
        terminal.see("Your move?")
        terminal.type("d")
        terminal.see("press d again")
        terminal.type("d")
        terminal.see("how sure")
        terminal.type("150\n")
        terminal.type("50\n")
        terminal.see("Moves left: 49")
        terminal.type("d")
        terminal.type("q")
        assert terminal.end() == 0
    (path,) = command.folder.rglob("hallumaze_results_*.json")
    (trial,) = json.loads(path.read_text())["results"]
    assert trial["confidence_log"] == [{"step": 1, "conf": 50}]
    assert trial["declared_loops"] == 0 and trial["moves_used"] == 1
