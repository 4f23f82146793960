"""Ariadne's thread: when a hint follows, what reaches the model, and how soon it acts on it.

The scripted models answer on this maze (solution E E S S, dead ends (1,1) and (2,1)):

    +---+---+---+
    | S         |
    +   +   +   +
    |   |   |   |
    +   +---+   +
    |       | X |
    +---+---+---+
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from typing import Any

import pytest
from servers import Server

import hallumaze
from hallumaze import (
    AriadneThread,
    BenchmarkResult,
    BenchmarkRunner,
    LLMProvider,
    MazeConfig,
    MazeEngine,
    Message,
    PromptBuilder,
    ProviderError,
    Reply,
)

THREE = ["ES", "ESW", "SW", "NS", "N", "NS", "NE", "W", "N"]
MAZE = MazeEngine.from_openings(THREE, seed=1)
MOVE = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}

SOLVED = "FINAL_PATH: (0,0)→(0,1)→(0,2)→(1,2)→(2,2)"
GAVE_UP = "FINAL_PATH: (0,0)→(0,1)→(0,2)"
WALLED = "FINAL_PATH: (0,0)→(0,1)→(1,1)→(1,2)→(2,2)"


def steps(*parts: str) -> str:
    """An answer: runs of letters are moves from (0,0) through open sides, other parts are lines."""
    lines = []
    r, c, number = 0, 0, 0
    for part in parts:
        if set(part) - set("NESW"):
            lines.append(part)
            continue
        for letter in part:
            number += 1
            lines.append(f"STEP {number}: ({r},{c}) → {letter} | 90% | on")
            r, c = r + MOVE[letter][0], c + MOVE[letter][1]
    return "\n".join(lines)


CLEAN = steps("EESS", SOLVED)


class Fake(LLMProvider):
    """Says what it is told to say, turn by turn, and keeps what it was asked."""

    def __init__(self, *says: str | Reply | Exception) -> None:
        super().__init__("fake", "m")
        self.says = list(says)
        self.asked: list[list[Message]] = []
        self.systems: list[str] = []

    @hallumaze.takes_turns
    def _call_fake(self, prompt: list[Message], max_tokens: int, system: str) -> str | Reply:
        self.asked.append(prompt)
        self.systems.append(system)
        say = self.says.pop(0)
        if isinstance(say, Exception):
            raise say
        return say


def trial(mode: str, *says: str | Reply | Exception, lang: str = "en") -> BenchmarkResult:
    """One trial of a scripted model; every answer of the script is used up."""
    fake = Fake(*says)
    config = MazeConfig(size=3, ariadne_mode=mode, lang=lang)
    result = BenchmarkRunner([fake], [MAZE], config).run_single(fake, MAZE)
    assert fake.says == []
    return result


# -- when a hint follows --------------------------------------------------------------------------

# Answers that need a hint, and what the hint is about.
NEEDY = {
    # E W E makes the move (0,0)→E twice: a verified loop, though the exit is reached.
    "loop": (steps("EWEESS", SOLVED), "circles"),
    # Round and round, and no exit.
    "loop without end": (steps("EWEWEW", GAVE_UP), "circles"),
    # S N makes no move twice, but the walk has come to (0,0) twice, and the answer says so.
    "declared loop": (
        steps("SN", "LOOP detected at (0,0) — visited at step 1", "EESS", SOLVED),
        "circles",
    ),
    # A declared loop that names no place speaks of where the walk is: (0,0), where it was before.
    "declared loop of no place": (steps("SN", "LOOP detected", "EESS", SOLVED), "circles"),
    # E S N to (1,1) and out; E S to (1,2); W is a wall, but STEP 7 stands behind it in (1,1):
    # the dead end is entered again, and no legal move was made twice.
    "dead end entered twice": (
        steps("ESN", "ESW", "STEP 7: (1,1) → W | 90% | on", SOLVED),
        "dead end",
    ),
    "failed escape": (steps("EE", GAVE_UP), "exit"),
    "through a wall": (steps("ESES", WALLED), "exit"),
    "path only, through a wall": (WALLED, "exit"),
    "no final path": (steps("EESS"), "exit"),
    "unreadable": ("I do not want to walk through a maze today.", "exit"),
}

# Answers that need none.
CALM = {
    "clean": CLEAN,
    "path only": SOLVED,
    # One dead end, entered once, declared, left again.
    "a dead end": steps("ES", "DEAD_END at (1,1) — backtracking", "NESS", SOLVED),
    "both dead ends": steps("SSEWNNESNESS", SOLVED),
    # Declared, but the walk was never twice at (0,2).
    "false loop": steps("EE", "LOOP detected at (0,2) — visited at step 1", "SS", SOLVED),
    "false loop elsewhere": steps("EESS", "LOOP detected at (1,0) — visited at step 9", SOLVED),
    "denied loop": steps("SN", "No loop detected at (0,0)", "EESS", SOLVED),
    # Boasts are no loops.
    "boasts": steps("EESS", "BACKTRACK_COUNT: 99", "HALLUCINATION_COUNT: 99", SOLVED),
}


@pytest.mark.parametrize(("text", "about"), NEEDY.values(), ids=NEEDY)
@pytest.mark.parametrize("mode", ["B", "C"])
def test_hint_when_needed(mode: str, text: str, about: str) -> None:
    result = trial(mode, text, CLEAN)
    assert result.nudge_sent is True
    assert result.nudge_needed is True
    assert about in (result.hint or "")


@pytest.mark.parametrize("text", CALM.values(), ids=CALM)
def test_no_hint_in_b_when_calm(text: str) -> None:
    result = trial("B", text)
    assert (result.nudge_sent, result.hint, result.first_answer) == (False, None, None)
    assert (result.nrs, result.nudge_responded) == (None, None)
    assert result.sr == 1


@pytest.mark.parametrize("text", CALM.values(), ids=CALM)
def test_hint_in_c_whether_needed_or_not(text: str) -> None:
    result = trial("C", text, CLEAN)
    assert (result.nudge_sent, result.nudge_needed) == (True, False)
    assert result.hint and result.first_answer


@pytest.mark.parametrize("text", [*CALM.values(), *(text for text, _ in NEEDY.values()), ""])
def test_never_a_hint_in_a(text: str) -> None:
    result = trial("A", text)
    assert (result.nudge_sent, result.hint, result.first_answer) == (False, None, None)
    assert result.ariadne_group == "A"


@pytest.mark.parametrize("text", ["", " \n", "<think>round and round"])
def test_nothing_to_hint_at(text: str) -> None:
    for mode in ("B", "C"):
        result = trial(mode, text)
        assert result.nudge_sent is False
        assert result.outcome == ("truncated" if "think" in text else "unreadable")


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_hints_never_tell_the_way(lang: str) -> None:
    hints = set()
    for text in (*CALM.values(), *(text for text, _ in NEEDY.values())):
        answer, metrics, _ = hallumaze.score_answer(text, "ok", MAZE)
        hint = AriadneThread("C", lang).run(answer, metrics, MAZE)
        assert hint and not any(arrow in hint for arrow in "↑→↓←")
        assert {
            cell for cell in ("(0,1)", "(0,2)", "(1,2)", "(1,1)", "(2,1)") if cell in hint
        } == set()
        hints.add(hint)
    assert len(hints) == 4  # loop, dead end, no escape, nothing seen


# -- the same conversation ------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_the_hint_is_a_further_turn(lang: str) -> None:
    first = steps("EE", GAVE_UP)
    fake = Fake(first, CLEAN)
    config = MazeConfig(size=3, ariadne_mode="B", lang=lang)
    result = BenchmarkRunner([fake], [MAZE], config).run_single(fake, MAZE)
    prompt = PromptBuilder(MAZE, config).build()
    opening = {"role": "user", "content": prompt.user}
    assert fake.asked == [
        [opening],
        [
            opening,
            {"role": "assistant", "content": first},
            {"role": "user", "content": result.hint},
        ],
    ]
    assert fake.systems == [prompt.system] * 2
    assert result.prompt_sha256 == prompt.sha256


class UsersOwn(LLMProvider):
    """As the documentation shows it: a prompt in, a string out."""

    prompts: list[Any]

    def _call_own(self, prompt: str, max_tokens: int, system: str) -> str:
        self.prompts.append(prompt)
        return CLEAN if len(self.prompts) > 1 else steps("EE", GAVE_UP)


def test_a_users_provider_gets_one_flat_prompt() -> None:
    own = UsersOwn("own", "m")
    own.prompts = []
    config = MazeConfig(size=3, ariadne_mode="B")
    result = BenchmarkRunner([own], [MAZE], config).run_single(own, MAZE)
    prompt = PromptBuilder(MAZE, config).build()
    first, second = own.prompts
    assert first == prompt.user
    assert isinstance(second, str)
    places = [second.index(part) for part in (prompt.user, GAVE_UP, str(result.hint))]
    assert places == sorted(places)
    assert (result.sr, result.nudge_sent) == (1, True)


@pytest.mark.parametrize("thinking", ["", "Let me see. LOOP detected at (0,0)."])
def test_a_real_conversation_over_http(thinking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    said = [steps("EE", GAVE_UP), CLEAN]
    with Server() as server:
        server.answer = lambda request: (
            (f"<think>{thinking}</think>\n" * bool(thinking)) + said[len(server.requests) - 1]
        )
        url = server.base_url("compatible")
        provider = LLMProvider("compatible", "m", "sk-key", url, max_retries=0)
        config = MazeConfig(size=3, ariadne_mode="B", max_tokens=77)
        result = BenchmarkRunner([provider], [MAZE], config).run_all()[0]
        provider.close()
    prompt = PromptBuilder(MAZE, config).build()
    first, second = server.requests
    assert first.turns == [("user", prompt.user)]
    assert [role for role, _ in second.turns] == ["user", "assistant", "user"]
    assert second.turns[0][1] == prompt.user
    assert second.turns[1][1].endswith(said[0])
    assert second.turns[2][1] == result.hint
    assert first.system == second.system == prompt.system
    assert first.body["max_tokens"] == second.body["max_tokens"] == 77
    assert result.sr == 1 and result.first_answer and result.first_answer["sr"] == 0
    # Both calls are in the result.
    assert result.first_answer["usage"]["input"] == 11
    assert result.usage["input"] == 11 + 11  # of both calls


# -- what is kept ---------------------------------------------------------------------------------


def test_both_answers_are_stored_and_scored() -> None:
    first = steps("EE", GAVE_UP)
    replies = [
        Reply(first, "thought one", "stop", usage={"input": 1, "output": 2}, request_id="a"),
        Reply(CLEAN, "thought two", "end", usage={"input": 3, "output": 4}, request_id="b"),
    ]
    result = trial("B", *replies)
    before = result.first_answer
    assert before is not None
    _, metrics, _ = hallumaze.score_answer(first, "ok", MAZE)
    for name in ("sr", "mei", "ce", "brs", "hallumaze_score", "hallucination_count"):
        assert before[name] == pytest.approx(getattr(metrics, name), abs=5e-7)  # stored to 6 places
    assert (before["raw_response"], before["reasoning"]) == (first, "thought one")
    assert (before["outcome"], before["finish_reason"]) == ("ok", "stop")
    assert before["usage"] == {"input": 1, "output": 2}
    assert len(before["steps"]) == 2
    assert (result.raw_response, result.reasoning) == (CLEAN, "thought two")
    assert (result.sr, result.mei) == (1, pytest.approx(0.9))  # the last answer's
    assert result.usage == {"input": 1 + 3, "output": 2 + 4}  # of both calls
    assert result.request_id == "b"
    assert len(result.steps) == 4
    json.loads(hallumaze.json_text({"result": before}))


def test_an_error_in_the_first_call_sends_no_hint() -> None:
    result = trial("C", ProviderError("the server failed"))
    assert (result.outcome, result.nudge_sent, result.first_answer) == ("error", False, None)


@pytest.mark.parametrize("mode", ["B", "C"])
def test_an_error_in_the_second_call_keeps_the_first_answer(mode: str) -> None:
    first = steps("EE", GAVE_UP)
    result = trial(mode, first, ProviderError("the server failed", 500, True))
    assert result.outcome == "error"
    assert "the server failed" in (result.error or "")
    assert result.first_answer and result.first_answer["raw_response"] == first
    assert result.first_answer["outcome"] == "ok"
    assert result.nudge_sent is True and result.hint
    # No score at all: neither the first answer's nor zeros.
    for name in ("sr", "mei", "ce", "brs", "hallumaze_score", "nrs", "nudge_responded"):
        assert getattr(result, name) is None
    row = hallumaze.aggregate([result])[0]
    assert (row["n"], row["n_error"], row["mei"], row["ignore_rate"]) == (0, 1, None, None)


def test_a_second_answer_that_is_cut_or_refused() -> None:
    first = steps("EE", GAVE_UP)
    for outcome in ("truncated", "refused"):
        result = trial("B", first, Reply("", outcome=outcome))
        assert (result.outcome, result.sr, result.mei, result.nrs) == (outcome, 0, 0, 0)
        assert result.nudge_responded is False
        assert result.first_answer and result.first_answer["outcome"] == "ok"


# -- NRS, by hand ---------------------------------------------------------------------------------

LOOPED = steps("EWEESS", SOLVED)  # the loop is (0,0)-(0,1)
STUCK = steps("EE", GAVE_UP)  # no loop

NRS = [
    # After a loop: step 1 goes to (0,1), in the loop; step 2 to (0,2), out of it.
    ("out of the loop at once, eastward", LOOPED, CLEAN, 1 / 2),
    # Step 1 goes to (1,0), out of it.
    ("out of the loop at step 1", LOOPED, steps("SSEWNN"), 1),
    # Step 2 goes back to (0,0).
    ("in the loop again, going back", LOOPED, steps("EWEW"), 1 / 2),
    # One step, inside the loop.
    ("stays in the loop", LOOPED, steps("E"), 0),
    # A wall is no move: step 1 is closed (north of the start), step 2 goes to (0,1), step 3 out.
    # But step 2 stands where step 1 stood and goes another way: the wall is corrected, a backtrack.
    ("corrects a wall", LOOPED, steps("STEP 1: (0,0) → N", "STEP 2: (0,0) → E"), 1 / 2),
    # No loop before: no move leaves one, and a straight walk is no signal and no backtrack.
    ("straight to the exit", STUCK, CLEAN, 0),
    # Step 3 goes back out of the dead end, and nothing is said.
    ("back out of a dead end", STUCK, steps("ESNESS", SOLVED), 1 / 3),
    # Declared after step 2, where it is true.
    (
        "declares the dead end",
        STUCK,
        steps("ES", "DEAD_END at (1,1) — backtracking", "NESS", SOLVED),
        1 / 2,
    ),
    # (0,1) is a junction: not a correct signal; the walk never goes back.
    ("a false dead end", STUCK, steps("E", "DEAD_END at (0,1) — backtracking", "ESS", SOLVED), 0),
    # The exit has one opening, but is no dead end.
    ("the exit is none", STUCK, steps("EESS", "DEAD_END at (2,2) — backtracking", SOLVED), 0),
    ("outside is none", STUCK, steps("EESS", "DEAD_END at (9,9) — backtracking", SOLVED), 0),
    # (0,0) is reached again at step 2, by going back.
    ("declares a return", STUCK, steps("SN", "LOOP detected at (0,0)", "EESS", SOLVED), 1 / 2),
    ("a false loop", STUCK, steps("EE", "LOOP detected at (0,1)", "SS", SOLVED), 0),
    # Steps 1-3 go to (2,1); step 4 stands at the start again: a jump, a retreat.
    ("jumps back", STUCK, steps("SSE", "STEP 4: (0,0) → E", "STEP 5: (0,1) → E"), 1 / 4),
    # Steps 1-6 lead into the dead end (2,1) and back to the start: back from step 4 on.
    ("the long way", STUCK, steps("SSEWNNEESS", SOLVED), 1 / 4),
    # What is said before any step is said at the first.
    ("a signal first", STUCK, steps("DEAD_END at (1,1) — backtracking", "EESS", SOLVED), 1),
    # Without a STEP the moves of the path are the walk: its third goes back.
    (
        "a path only",
        STUCK,
        "FINAL_PATH: (0,0)→(0,1)→(1,1)→(0,1)→(0,2)→(1,2)→(2,2)",
        1 / 3,
    ),
    # A change of strategy is no claim that can be true, and counts of itself are none at all.
    ("boasts", STUCK, steps("EESS", "BACKTRACK_COUNT: 99", SOLVED), 0),
    ("says nothing", STUCK, "", 0),
    ("says nothing readable", STUCK, "I am sorry, I cannot do better.", 0),
    # Through the wall south of (1,1), and on from behind it as if nothing were.
    ("persists in a wall", STUCK, steps("ESSW"), 0),
]


@pytest.mark.parametrize(
    ("before", "after", "expected"), [case[1:] for case in NRS], ids=[case[0] for case in NRS]
)
def test_nudge_response_speed(before: str, after: str, expected: float) -> None:
    result = trial("B", before, after)
    assert result.nrs == pytest.approx(expected)
    assert result.nudge_responded is (expected > 0)


def test_the_speed_is_of_the_second_answer() -> None:
    # The first answer is full of returns: none of them is after the hint.
    result = trial("B", steps("ESNW", "EWEW", GAVE_UP), "no more")
    assert result.nrs == 0


# -- ignore rate ----------------------------------------------------------------------------------


def hinted(seed: int, nrs: float | None, needed: bool, group: str = "C") -> BenchmarkResult:
    return BenchmarkResult(
        "fake",
        "m",
        maze_seed=seed,
        ariadne_group=group,
        mei=0.5,
        nudge_sent=True,
        nudge_needed=needed,
        nrs=nrs,
    )


def rate(results: Sequence[BenchmarkResult]) -> Any:
    return hallumaze.aggregate(results)[0]["ignore_rate"]


def test_ignore_rate_by_hand() -> None:
    # Of the three trials that needed a hint, one did not act on it; the fourth needed none.
    trials = [hinted(1, 0.5, True), hinted(2, 0.0, True), hinted(3, 1.0, True)]
    assert rate([*trials, hinted(4, 0.0, False)]) == pytest.approx(1 / 3)
    assert rate([hinted(1, 0.0, True)]) == 1
    assert rate([hinted(1, 0.0, False)]) is None  # nobody needed one
    assert rate([hinted(1, 0.0, True, group="B")]) is None  # C's alone
    assert rate([BenchmarkResult("fake", "m", mei=0.5)]) is None
    silent = BenchmarkResult("fake", "m", ariadne_group="C", mei=0.0, nudge_needed=True)
    assert rate([silent]) is None  # an empty answer gets no hint that it could ignore
    error = BenchmarkResult("fake", "m", ariadne_group="C", outcome="error", nudge_sent=True)
    assert rate([*trials, error]) == pytest.approx(1 / 3)


def test_ignore_rate_of_a_run() -> None:
    fake = Fake(
        *(STUCK, CLEAN),  # needed, and nothing done about it: ignored
        *(STUCK, steps("ESNESS", SOLVED)),  # needed, and it goes back
        *(CLEAN, CLEAN),  # not needed
        *(STUCK, ProviderError("cut")),  # no score
    )
    config = MazeConfig(size=3, ariadne_mode="C")
    results = BenchmarkRunner([fake], [MAZE], config, runs=4).run_all()
    row = hallumaze.aggregate(results)[0]
    assert (row["n"], row["n_error"], row["ariadne_group"]) == (3, 1, "C")
    assert row["ignore_rate"] == pytest.approx(1 / 2)
    assert row["nrs"] == pytest.approx((0 + 1 / 3 + 0) / 3)
