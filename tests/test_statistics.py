"""Intervals, ranks, comparisons, ablation, planning and their reports.

What is expected was worked out by hand beside its case, or by another implementation.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pingouin
import pytest
from commands import Command, one_line, timeless
from markdown_it import MarkdownIt
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from hallumaze import (
    COMPARED,
    GRID,
    BenchmarkResult,
    Comparison,
    Report,
    Sample,
    Table,
    UsageError,
    ablate_command,
    ablation,
    aggregate,
    bootstrap_interval,
    bootstrap_intervals,
    centred,
    compare_command,
    compare_conditions,
    compare_models,
    compare_values,
    differing,
    error_correlation,
    eta_squared,
    group_effects,
    holm,
    latex,
    markdown,
    mazes_needed,
    plan_command,
    ranks,
    read_people,
    reliability,
    samples,
    trainability,
    with_interval,
)

Json = dict[str, Any]
Column = Sequence["float | None"]

CONFIG: Json = {
    "mirage": "trap",
    "use_confidence": True,
    "lang": "en",
    "max_tokens": 2500,
    "temperature": 0.0,
    "reasoning_effort": None,
    "models": [],
}
SEEDS = range(1, 7)
GROUP_MEAN = BenchmarkResult(
    provider="human",
    model="undergraduate_group_n30",
    maze_size=7,
    ariadne_group="A",
    sr=0.73,
    mei=0.61,
    hallucination_count=2.1,
    backtrack_count=3.4,
)


def trial(seed: int | None = 1, model: str = "m", provider: str = "p", **given: Any) -> Any:
    """A trial on a 5×5 maze."""
    return BenchmarkResult(provider, model, **{"maze_size": 5, "maze_seed": seed, **given})


def played(
    model: str = "m", seeds: Sequence[int] = SEEDS, value: float = 0.5, **more: Any
) -> list[BenchmarkResult]:
    """A trial on each maze, with a score of 0.5 and this MEI."""
    return [trial(s, model, **{"hallumaze_score": 0.5, "mei": value, **more}) for s in seeds]


def sampled(results: Sequence[BenchmarkResult], source: str = "f.json", **config: Any) -> Any:
    """The samples of a file of these results."""
    return samples(source, {**CONFIG, **config}, "2026-01-01T00:00:00+00:00", results)


def of(comparisons: Sequence[Comparison], metric: str) -> Comparison:
    """The only comparison of a metric."""
    (found,) = [c for c in comparisons if c.metric == metric]
    return found


def compared(differences: Sequence[float]) -> Comparison:
    """These paired differences, as they are."""
    before = dict.fromkeys(range(len(differences)), 0.0)
    return compare_values("a", "b", "mei", before, dict(enumerate(differences)))


# -- intervals -------------------------------------------------------------------------------------


def tolerance(values: Sequence[float]) -> float:
    """How far two bootstraps of a mean may lie apart.

    The 2.5 % end of 10,000 normal means has a standard deviation of √(0.025·0.975/10000)/φ(1.96) =
    0.00156/0.0584 = 0.027 standard errors; the difference of two such ends has 0.038. Skewed means
    have a somewhat thinner tail on one side: a fifth of a standard error is four to five of them.
    """
    return 0.2 * float(np.std(values)) / math.sqrt(len(values)) + 1e-12


def drawn(n: int, kind: str) -> list[float]:
    stream = np.random.RandomState(n)
    chosen = {"uniform": stream.uniform, "skewed": stream.exponential, "normal": stream.normal}
    return [float(x) for x in chosen[kind](size=n)]


@pytest.mark.parametrize("kind", ["uniform", "skewed", "normal"])
@pytest.mark.parametrize("n", [7, 30, 200])
def test_intervals_against_scipy(n: int, kind: str) -> None:
    values = drawn(n, kind)
    (found,) = bootstrap_intervals([values])
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=10_000, random_state=n
    ).confidence_interval
    assert found == pytest.approx(tuple(expected), abs=tolerance(values))


def test_missing_values_are_in_no_mean() -> None:
    """Rows are drawn, and what is missing in them is passed over."""
    values = drawn(40, "normal")
    holed: Column = [None if k % 4 == 0 else x for k, x in enumerate(values)]
    array = np.array([math.nan if x is None else x for x in holed])
    picks = np.random.RandomState(5).randint(0, 40, (10_000, 40))
    expected = np.percentile(np.nanmean(array[picks], axis=1), (2.5, 97.5))
    (found,) = bootstrap_intervals([holed])
    assert found == pytest.approx(tuple(expected), abs=tolerance([x for x in array if x == x]))


EDGES: list[tuple[list[list[float | None]], list[tuple[float, float] | None]]] = [
    ([], []),
    ([[], []], [None, None]),
    ([[None, None, None]], [None]),
    ([[0.75]], [(0.75, 0.75)]),
    ([[None], [0.5]], [None, (0.5, 0.5)]),
    ([[0.25] * 9], [(0.25, 0.25)]),
    # one value that is known is every mean that there is
    ([[None, None, 3.0, None]], [(3.0, 3.0)]),
    # of two values both draws are the lower one with probability 1/4, and the higher one with 1/4
    ([[0.0, 1.0]], [(0.0, 1.0)]),
    ([[1.0, 2.0], [None, None], [5.0, 5.0]], [(1.0, 2.0), None, (5.0, 5.0)]),
]


@pytest.mark.parametrize(("columns", "expected"), EDGES)
def test_intervals_at_the_edges(
    columns: list[list[float | None]], expected: list[tuple[float, float] | None]
) -> None:
    assert bootstrap_intervals(columns) == expected


def test_the_same_values_have_the_same_interval() -> None:
    a, b = drawn(12, "normal"), drawn(12, "skewed")[::-1]
    both = bootstrap_intervals([a, b])
    assert both == bootstrap_intervals([a, b])
    # A column's neighbours do not matter, beyond the order in which a product is summed.
    assert both[0] == pytest.approx(bootstrap_interval(a), abs=1e-12)
    assert both[1] == pytest.approx(bootstrap_interval(b), abs=1e-12)


# -- ranks -----------------------------------------------------------------------------------------


def scores(*values: float | None, first: int = 0) -> dict[tuple[Any, ...], float | None]:
    return {(5, k, "dfs"): value for k, value in enumerate(values, first)}


def placed(provider: str = "p", group: str = "A", **models: Any) -> dict[str, int]:
    """The ranks of models of one provider and group, by model."""
    found = ranks({(provider, name, group): by_maze for name, by_maze in models.items()})
    return {key[1]: place for key, place in found.items()}


STEADY = [0.5, 0.6, 0.4, 0.7, 0.5, 0.6]
RANKED: dict[str, tuple[Json, dict[str, int]]] = {
    # the difference is ±0.25, three times each
    "the interval holds 0": (
        {"a": scores(0.75, 0.75, 0.75, 0.5, 0.5, 0.5), "b": scores(0.5, 0.5, 0.5, *[0.75] * 3)},
        {"a": 1, "b": 1},
    ),
    # 0 in three of six: the mean of a resample is 0 with 1/64 < 2.5 %, 1/6 of the gap with 11 %
    "a gap on half of the mazes": (
        {"a": scores(*[0.75] * 3, *[0.5] * 3), "b": scores(*[0.5] * 6)},
        {"a": 1, "b": 2},
    ),
    # 0 in four of six: (4/6)^6 = 8.8 % of the means are 0
    "a gap on a third of the mazes": (
        {"a": scores(*[0.75] * 2, *[0.5] * 4), "b": scores(*[0.5] * 6)},
        {"a": 1, "b": 1},
    ),
    "a clear order": (
        {
            name: scores(*[x + d for x in STEADY])
            for name, d in (("a", 0), ("b", 0.25), ("c", 0.125))
        },
        {"a": 3, "b": 1, "c": 2},
    ),
    "the same": ({"a": scores(*STEADY), "b": scores(*STEADY)}, {"a": 1, "b": 1}),
    # a beats c on every maze; b swings about both
    "a tie with both of two that differ": (
        {
            "a": scores(*[0.625] * 6),
            "b": scores(1, 0.25, 1, 0.25, 1, 0.25),
            "c": scores(*[0.5] * 6),
        },
        {"a": 1, "b": 1, "c": 2},
    ),
    "few mazes, by mean": (
        {"a": scores(0.5), "b": scores(0.502), "c": scores(0.501)},
        {"a": 3, "b": 1, "c": 2},
    ),
    # 0.5004 and 0.4996 are both shown as 0.500
    "few mazes, three decimals": (
        {"a": scores(*[0.5004] * 5), "b": scores(*[0.4996] * 5)},
        {"a": 1, "b": 1},
    ),
    # ten mazes each, five of them common: the means 0.5 and 0.75 tell
    "few mazes in common": (
        {"a": scores(*[0.5] * 10), "b": scores(*[0.75] * 10, first=5)},
        {"a": 2, "b": 1},
    ),
    # on the six common mazes a leads, although b's mean over all of its mazes is higher
    "only common mazes count": (
        {"a": scores(*[0.0] * 9, *[0.5] * 6), "b": scores(*[0.25] * 6, *[1.0] * 9, first=9)},
        {"a": 1, "b": 2},
    ),
    "no score": (
        {"a": scores(*STEADY), "b": scores(*[None] * 6), "c": {}},
        {"a": 1},
    ),
    # a maze without a score is none in common: five are left, and means decide
    "five with a score": (
        {"a": scores(0.5, 0.5, 0.5, 0.75, 0.75, None), "b": scores(*[0.5] * 6)},
        {"a": 1, "b": 2},
    ),
}


@pytest.mark.parametrize("name", RANKED)
def test_ranks_by_hand(name: str) -> None:
    given, expected = RANKED[name]
    assert placed(**given) == expected
    assert placed(**dict(reversed(given.items()))) == expected  # in any order


@pytest.mark.parametrize("provider", ["reference", "human"])
def test_the_scale_and_people_have_no_rank(provider: str) -> None:
    given = {
        (provider, "x", "A"): scores(*[1.0] * 6),
        ("p", "a", "A"): scores(*[0.5] * 6),
    }
    assert ranks(given) == {("p", "a", "A"): 1}


def test_groups_do_not_compete() -> None:
    given = {
        ("p", name, group): scores(*[score] * 6)
        for name, group, score in (
            *(("a", "A", 0.25), ("b", "A", 0.5)),
            *(("a", "B", 0.875), ("b", "B", 0.75), ("c", "C", 0.0)),
        )
    }
    assert list(ranks(given).values()) == [2, 1, 1, 2, 1]
    assert ranks({}) == {}


def test_ranks_of_results() -> None:
    """Repeats are averaged: 0.25 and 0.75 are 0.5 on each maze, beside 0.5 and 0.625."""
    results = [
        *(
            trial(s, "a", run=r, hallumaze_score=x)
            for s in SEEDS
            for r, x in ((1, 0.25), (2, 0.75))
        ),
        *(trial(s, "b", hallumaze_score=0.5) for s in SEEDS),
        *(trial(s, "c", hallumaze_score=0.625) for s in SEEDS),
        *(trial(s, "explorer", "reference", hallumaze_score=0.9) for s in SEEDS),
        *(trial(s, "down", outcome="error", error="x") for s in SEEDS),
        GROUP_MEAN,
    ]
    found = {row["model"]: (row["rank"], row["n"], row["n_mazes"]) for row in aggregate(results)}
    assert found == {
        "a": (2, 12, 6),
        "b": (2, 6, 6),
        "c": (1, 6, 6),
        "explorer": (None, 6, 6),
        "down": (None, 0, 0),
        "undergraduate_group_n30": (None, 1, 1),
    }


def test_the_last_bit_of_a_mean_is_no_rank() -> None:
    """(0.1 + 0.2 + 0.3)/3 is 0.2, whatever floating point makes of it."""
    steady = [trial(s, "a", run=r, hallumaze_score=0.2) for s in SEEDS for r in (1, 2, 3)]
    varied = [trial(s, "b", run=r, hallumaze_score=r / 10) for s in SEEDS for r in (1, 2, 3)]
    assert [row["rank"] for row in aggregate([*steady, *varied])] == [1, 1]


# -- trainability ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nrs", "mei_a", "mei_b", "expected"),
    [
        ([0.5], [0.4], [0.6], 0.25),  # 0.5 · 0.2/0.4
        # mean NRS of those that were hinted 0.25; MEI from 0.3 to 0.6
        ([0.0, 0.5, None], [0.2, 0.4], [0.6, 0.6], 0.25),
        ([1.0], [0.5], [0.25], -0.5),  # hints made it worse
        ([0.0], [0.5], [0.9], 0.0),  # it got better, but not by the hint
        ([0.5], [0.0, 0.0], [0.6, 0.6], None),  # nothing to be relative to
        ([None, None], [0.5, 0.5], [0.6, 0.6], None),  # nobody was hinted
        ([], [], [], None),
    ],
)
def test_trainability_by_hand(
    nrs: Column, mei_a: list[float], mei_b: list[float], expected: float | None
) -> None:
    assert trainability(nrs, mei_a, mei_b) == pytest.approx(expected, abs=1e-12)


def test_trainability_over_common_mazes_and_repeats() -> None:
    """Common are maze 2 (run 1) and maze 3: MEI 0.4 and 0.4 before, 0.8 and 0.4 after, NRS 0.5
    once: 0.5 · (0.6 - 0.4)/0.4 = 0.25."""
    results = [
        trial(1, mei=0.0),  # no trial of B on this maze
        trial(2, mei=0.4),
        trial(2, mei=1.0, run=2),  # no second run in B
        trial(3, mei=0.4),
        trial(5, mei=1.0),  # an error in B
        trial(2, mei=0.8, nrs=0.5, ariadne_group="B"),
        trial(3, mei=0.4, nrs=None, ariadne_group="B"),
        trial(4, mei=1.0, nrs=1.0, ariadne_group="B"),  # no trial of A
        trial(5, ariadne_group="B", outcome="error", error="x"),
        trial(2, mei=1.0, nrs=1.0, ariadne_group="B", model="other"),  # has no group A at all
    ]
    rows = {(row["model"], row["ariadne_group"]): row["ti"] for row in aggregate(results)}
    assert rows == {("m", "A"): None, ("m", "B"): pytest.approx(0.25), ("other", "B"): None}
    (row,) = [row for row in group_effects(sampled(results)) if row["model"] == "p/m"]
    # NRS is the mean of all of B's hinted trials: (0.5 + 1)/2.
    assert (row["group"], row["nrs"], row["ti"]) == ("B", 0.75, pytest.approx(0.25))


def test_ignored_hints() -> None:
    """Of three trials of C that needed the hint two have NRS 0; one did not need it."""
    needed = {"ariadne_group": "C", "nudge_sent": True, "mei": 0.5}
    results = [
        *(trial(s, nrs=nrs, nudge_needed=True, **needed) for s, nrs in ((1, 0.0), (2, 0.0))),
        trial(3, nrs=0.5, nudge_needed=True, **needed),
        trial(4, nrs=0.0, nudge_needed=False, **needed),
        *(trial(s, mei=0.5) for s in (1, 2, 3, 4)),
    ]
    assert [row["ignore_rate"] for row in aggregate(results)] == [pytest.approx(2 / 3), None]
    (row,) = group_effects(sampled(results))
    assert row["ignore_rate"] == pytest.approx(2 / 3)
    assert (row["nrs"], row["ti"]) == (0.125, 0.0)  # MEI did not move


# -- reliability -----------------------------------------------------------------------------------

Table2 = list[list[float]]


def by_run(table: Sequence[Sequence[float | None]]) -> Any:
    return {(5, k, "dfs"): dict(enumerate(row, 1)) for k, row in enumerate(table)}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pingouin's own
@pytest.mark.parametrize(("mazes", "runs", "own"), [(5, 2, 1.0), (12, 3, 0.5), (40, 5, 0.1)])
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_icc_against_pingouin(mazes: int, runs: int, own: float, noise: float) -> None:
    stream = np.random.RandomState(mazes)
    by_maze, drift = stream.normal(size=(mazes, 1)) * own, stream.normal(size=(1, runs)) * 0.2
    table = by_maze + drift + stream.normal(size=(mazes, runs)) * noise
    long = [(m, r, table[m, r]) for m in range(mazes) for r in range(runs)]
    frame = pd.DataFrame(long, columns=["maze", "run", "x"])
    every = pingouin.intraclass_corr(frame, targets="maze", raters="run", ratings="x")
    (expected,) = every.loc[every["Type"].isin(["ICC2", "ICC(A,1)"]), "ICC"]
    found = reliability(by_run(table.tolist()))
    assert found is not None
    assert found["icc"] == pytest.approx(expected, abs=1e-9)
    within = table.var(axis=1, ddof=1).mean()
    assert found["sem"] == pytest.approx(math.sqrt(within), abs=1e-9)
    assert (found["n_mazes"], found["runs"]) == (mazes, runs)


# Rows 1 2, 3 3, 5 6: the grand mean is 20/6, the rows' are 1.5, 3 and 5.5, the runs' 3 and 11/3.
# SS total 84 - 400/6 = 52/3, of mazes 49/3, of runs 2/3, left 1/3: MSR 49/6, MSC 2/3, MSE 1/6.
# ICC = (49/6 - 1/6)/(49/6 + 1/6 + 2·(2/3 - 1/6)/3) = 8/(26/3) = 12/13.
# Within mazes the variances are 1/2, 0 and 1/2: their mean is 1/3.
BY_HAND: Table2 = [[1, 2], [3, 3], [5, 6]]


def test_reliability_by_hand() -> None:
    expected = {"icc": pytest.approx(12 / 13), "sem": pytest.approx(math.sqrt(1 / 3))}
    assert reliability(by_run(BY_HAND)) == {**expected, "n_mazes": 3, "runs": 2}
    # A maze that lacks a repeat, or its number, is left out.
    more = by_run([*BY_HAND, [9.0, None], [None, 9.0]])
    more[5, 9, "dfs"] = {2: 7.0}
    assert reliability(more) == {**expected, "n_mazes": 3, "runs": 2}


def test_runs_that_disagree_about_every_maze() -> None:
    """Rows 0 1 and 1 0: nothing lies between the mazes or the runs, and SS left is 1: MSR 0, MSC 0,
    MSE 1: (0 - 1)/(0 + 1 + 2·(0 - 1)/2) has no denominator; within mazes the variance is 1/2."""
    found = reliability(by_run([[0, 1], [1, 0]]))
    assert found == {"icc": None, "sem": pytest.approx(math.sqrt(0.5)), "n_mazes": 2, "runs": 2}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[0.3, 0.3]] * 4, {"icc": None, "sem": 0.0, "n_mazes": 4, "runs": 2}),  # nothing varies
        ([[0.5], [0.6], [0.7]], None),  # one run
        ([[0.5, 0.6]], None),  # one maze
        ([[0.5, None], [None, 0.6]], None),  # no maze with both
        ([], None),
    ],
)
def test_reliability_at_the_edges(table: list[Any], expected: Json | None) -> None:
    found = reliability(by_run(table))
    assert found == (expected and {**expected, "sem": pytest.approx(expected["sem"], abs=1e-7)})


def test_reliability_of_results() -> None:
    results = [
        trial(s, run=r, hallumaze_score=x / 10, mei=0.5)
        for s, row in enumerate(BY_HAND)
        for r, x in enumerate(row, 1)
    ]
    (row,) = aggregate(results)
    found = row["reliability"]
    assert found["hallumaze_score"]["icc"] == pytest.approx(12 / 13)
    assert found["hallumaze_score"]["sem"] == pytest.approx(math.sqrt(1 / 3) / 10)
    assert found["mei"]["icc"] is None and "recognition_f1" not in found
    (row,) = aggregate(results[::2])  # the first runs alone
    assert row["reliability"] == {}


# -- Holm ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_holm_against_statsmodels(n: int) -> None:
    ps = [float(p) for p in np.random.RandomState(n).uniform(0, 0.2, n)]
    ps[-1] = ps[0]  # a tie
    assert holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]), abs=1e-15)


@pytest.mark.parametrize(
    ("ps", "expected"),
    [
        # 0.005·4 = 0.02; 0.01·3 = 0.03; 0.03·2 = 0.06; 0.04·1, but no less than the one before
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.7], [1.0, 1.0]),  # 1.2 is no probability
        ([0.02], [0.02]),
        ([], []),
    ],
)
def test_holm_by_hand(ps: list[float], expected: list[float]) -> None:
    assert holm(ps) == pytest.approx(expected, abs=1e-15)


def test_all_comparisons_are_corrected_together() -> None:
    """Those without a p-value are not counted."""
    stream = random.Random(4)
    results = [
        trial(s, name, hallumaze_score=stream.random(), mei=stream.random(), ece=early)
        for name in "abc"
        for s in range(1, 13)
        for early in [0.5 if s < 3 else None]
    ]
    found = compare_models(sampled(results))
    known = [c for c in found if c.p is not None]
    assert len(known) == 6 and len(found) == 9
    expected = multipletests([c.p for c in known], method="holm")[1]
    assert [c.p_holm for c in known] == pytest.approx(list(expected))
    assert all(c.p_holm is None and c.test == "" for c in found if c.metric == "ece")


# -- paired ----------------------------------------------------------------------------------------


def permuted(differences: Sequence[float]) -> float:
    """The share of all signs whose sum is as far from 0 as that of the differences, exactly."""
    exact = [Fraction(str(d)) for d in differences]
    least = abs(sum(exact))
    sums = [
        abs(sum(s * d for s, d in zip(signs, exact, strict=True)))
        for signs in product((1, -1), repeat=len(exact))
    ]
    return sum(total >= least for total in sums) / len(sums)


# differences -> p, effect
PERMUTED: list[tuple[list[float], float, float]] = [
    ([0.125] * 6, 2 / 64, 1.0),  # all of one sign: itself and its mirror image
    ([-0.125] * 7, 2 / 128, -1.0),
    ([1, 2, 3, 4, 5, 6, 7, 8], 2 / 256, 1.0),
    ([1, 2, 3, 4, 5, 6, 7, 8, 9], 2 / 512, 1.0),
    # one of six equals is negative: no, one, five or six negatives are as far: 14 of 64; (5 - 1)/6
    ([1, 1, 1, 1, 1, -1], 14 / 64, 4 / 6),
    # no two sums of signed powers of 2 are equal: 63, 61, and their mirror images; (20 - 1)/21
    ([-1, 2, 4, 8, 16, 32], 4 / 64, 19 / 21),
    # 0 has two signs that are one: four of 2^7; its rank is none
    ([1, 2, 3, 4, 5, 6, 0], 4 / 128, 1.0),
    # they cancel: every sum is as far from 0; equal ranks
    ([1, -1, 1, -1, 1, -1], 1.0, 0.0),
    # tenths, which no double is, cancel as well: the ranks are 2 for 0.1, 5.5 for 0.2 and 8 for
    # 0.3, so W+ = 8 + 2·5.5 and W- = 2·5.5 + 3·2, of 36
    ([-0.2, -0.1, 0.3, 0.2, -0.2, -0.1, -0.1, 0.2], 1.0, (19 - 17) / 36),
]


@pytest.mark.parametrize(("differences", "p", "effect"), PERMUTED)
def test_permutations_by_hand(differences: list[float], p: float, effect: float) -> None:
    assert permuted(differences) == p
    found = compared(differences)
    assert (found.test, found.n, found.paired) == ("permutation", len(differences), True)
    assert found.difference == pytest.approx(sum(differences) / len(differences), abs=1e-12)
    assert found.interval == bootstrap_interval(differences)
    assert found.effect == pytest.approx(effect)
    assert found.p == pytest.approx(p)


@pytest.mark.parametrize("n", [6, 7, 8, 9])
def test_permutations_against_another_count(n: int) -> None:
    stream = random.Random(n)
    for _ in range(5):
        differences = [stream.randint(-40, 60) / 64 for _ in range(n)]
        assert compared(differences).p == pytest.approx(permuted(differences))


def signed_ranks(differences: Sequence[float]) -> float:
    """Wilcoxon's two-sided p of differences without ties, over all 2^n signs."""
    order = sorted(range(len(differences)), key=lambda k: abs(differences[k]))
    ways = [1]  # how many signs have which sum of positive ranks
    for rank in range(1, len(order) + 1):
        shifted = [0] * rank + ways
        ways = [a + b for a, b in zip(ways + [0] * rank, shifted, strict=True)]
    positive = sum(rank for rank, k in enumerate(order, 1) if differences[k] > 0)
    tail = min(sum(ways[: positive + 1]), sum(ways[positive:]))
    return min(1.0, 2 * tail / 2 ** len(order))


@pytest.mark.parametrize("n", [10, 11, 16, 30])
def test_wilcoxon_against_another_count(n: int) -> None:
    differences = [x + 0.3 for x in drawn(n, "normal")]
    found = compared(differences)
    assert found.test == "wilcoxon" and found.p == pytest.approx(signed_ranks(differences))
    ranked = stats.rankdata(np.abs(differences))
    plus = sum(r for r, d in zip(ranked, differences, strict=True) if d > 0)
    assert found.effect == pytest.approx((2 * plus - sum(ranked)) / sum(ranked))


def test_wilcoxon_with_ties_and_zeros_against_scipy() -> None:
    stream = random.Random(9)
    differences = [stream.randint(-3, 5) / 8 for _ in range(60)]
    assert 0 in differences
    assert compared(differences).p == pytest.approx(stats.wilcoxon(differences).pvalue)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_pairs_have_no_test(n: int) -> None:
    found = compared([0.25, 0.5, 0.75, 0.5, 0.5][:n])
    assert (found.test, found.p, found.effect, found.interval) == ("", None, None, None)
    assert found.difference == (None, 0.25, None, None, None, 0.5)[n]


@pytest.mark.parametrize("n", [6, 12])
def test_no_difference_at_all(n: int) -> None:
    found = compared([0.0] * n)
    assert (found.difference, found.p, found.effect) == (0.0, 1.0, 0.0)
    assert found.interval == (0.0, 0.0)


@pytest.mark.parametrize("n", [6, 12])
def test_the_last_bit_is_no_difference(n: int) -> None:
    """(0.1 + 0.2 + 0.3)/3 against (0.2 + 0.2 + 0.2)/3, on every maze."""
    varied = [
        trial(s, "a", run=r, mei=r / 10, hallumaze_score=0.5) for s in range(n) for r in (1, 2, 3)
    ]
    steady = [
        trial(s, "b", run=r, mei=0.2, hallumaze_score=0.5) for s in range(n) for r in (1, 2, 3)
    ]
    found = of(compare_models(sampled([*varied, *steady])), "mei")
    assert (found.p, found.effect) == (1.0, 0.0)


def test_what_has_no_partner_is_counted() -> None:
    before = dict.fromkeys(range(8), 0.25)
    after = {**dict.fromkeys(range(2, 8), 0.5), "x": 9.0}
    found = compare_values("a", "b", "mei", before, after)
    assert (found.only_a, found.only_b, found.n, found.difference) == (2, 1, 6, 0.25)
    assert (found.a, found.b, found.metric) == ("a", "b", "mei")
    back = compare_values("b", "a", "mei", after, before)
    assert (back.only_a, back.only_b, back.difference, back.effect) == (1, 2, -0.25, -1.0)


# -- unpaired --------------------------------------------------------------------------------------

ONE_TO_SIX = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
# after -> difference, effect, p
UNPAIRED: list[tuple[list[float], float, float, float]] = [
    # all 36 pairs are won: U = 36, 72/36 - 1; one of C(12, 6) = 924 orders, and its mirror image
    ([7.0, 8.0, 9.0, 10.0, 11.0, 12.0], 6.0, 1.0, 2 / 924),
    # one of six loses all of its pairs, the others win theirs: U = 30, 60/36 - 1 = 2/3; as far are
    # 1 + 1 + 2 + 3 + 5 + 7 + 11 orders (the partitions of 0 to 6), and their mirror images
    ([0.5, 7.0, 8.0, 9.0, 10.0, 11.0], 45.5 / 6 - 3.5, 2 / 3, 60 / 924),
    ([-x for x in ONE_TO_SIX], -7.0, -1.0, 2 / 924),
]


@pytest.mark.parametrize(("after", "difference", "effect", "p"), UNPAIRED)
def test_unpaired_by_hand(after: list[float], difference: float, effect: float, p: float) -> None:
    mazes = dict(enumerate(ONE_TO_SIX)), dict(enumerate(after, 100))
    found = compare_values("a", "b", "mei", *mazes, paired=False)
    assert (found.test, found.paired, found.n) == ("mann-whitney", False, 12)
    assert (found.only_a, found.only_b) == (6, 6)
    assert found.difference == pytest.approx(difference)
    assert found.effect == pytest.approx(effect)
    assert found.p == pytest.approx(p)


def test_the_unpaired_interval_against_another_bootstrap() -> None:
    before, after = drawn(20, "normal"), [x + 1 for x in drawn(35, "uniform")]
    found = compare_values(
        "a", "b", "m", dict(enumerate(before)), dict(enumerate(after)), paired=False
    )
    stream = np.random.RandomState(77)
    means = [
        np.array(values)[stream.randint(0, len(values), (10_000, len(values)))].mean(axis=1)
        for values in (before, after)
    ]
    expected = np.percentile(means[1] - means[0], (2.5, 97.5))
    # The standard errors add up in quadrature; see `tolerance`.
    assert found.interval == pytest.approx(
        tuple(expected), abs=math.hypot(tolerance(before), tolerance(after))
    )
    again = compare_values(
        "a", "b", "m", dict(enumerate(before)), dict(enumerate(after)), paired=False
    )
    assert again == found


def test_few_unpaired_mazes_have_no_test() -> None:
    few = compare_values("a", "b", "m", {1: 0.5}, dict.fromkeys(range(2, 9), 1.0), paired=False)
    assert (few.difference, few.test, few.p, few.interval, few.n) == (0.5, "", None, None, 8)
    none = compare_values("a", "b", "m", {}, {1: 0.5}, paired=False)
    assert (none.difference, none.only_a, none.only_b) == (None, 0, 1)


# -- conditions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("off_first", [True, False])
def test_hints_cost_what_lies_between_without_and_with(off_first: bool) -> None:
    """MEI 0.75 without hints and 0.5 with them: +0.25, whatever the order of the files."""
    files = [
        sampled(played(value=0.75), "off.json", mirage="off"),
        sampled(played(value=0.5), "on.json", mirage="trap"),
    ]
    found = files[0] + files[1] if off_first else files[1] + files[0]
    mei = of(compare_conditions(found), "mei")
    assert (mei.difference, mei.paired, mei.n, mei.p) == (0.25, True, 6, 2 / 64)
    assert "mirage=trap" in mei.a and "mirage=off" in mei.b
    assert mei.a.startswith("p/m ") and mei.b.startswith("p/m ")


def test_groups_are_conditions() -> None:
    results = [
        trial
        for group, x in (("A", 0.5), ("B", 0.75), ("C", 0.25))
        for trial in played(value=x, ariadne_group=group)
    ]
    found = [c for c in compare_conditions(sampled(results)) if c.metric == "mei"]
    assert [(c.a, c.b, c.difference) for c in found] == [
        ("p/m group=A", "p/m group=B", 0.25),
        ("p/m group=A", "p/m group=C", -0.25),
    ]


@pytest.mark.parametrize("own", [True, False])
def test_two_temperatures(own: bool) -> None:
    """The run's, or the model's own, which goes before it."""
    entry = {"provider": "p", "model": "m", "temperature": 1.0}
    warm: Json = {"models": [entry], "temperature": 0.0} if own else {"temperature": 1.0}
    found = sampled(played()) + sampled(played(value=0.625), "warm.json", **warm)
    assert differing(found[0], found[1]) == ["temperature"]
    mei = of(compare_conditions(found), "mei")
    assert (mei.a, mei.b) == ("p/m temperature=0.0", "p/m temperature=1.0")
    assert (mei.difference, mei.paired) == (0.125, True)


def test_sizes_have_no_maze_in_common() -> None:
    found = sampled([*played(value=0.75), *played(value=0.5, maze_size=7)])
    mei = of(compare_conditions(found), "mei")
    assert (mei.paired, mei.n, mei.difference, mei.test) == (False, 12, -0.25, "mann-whitney")
    assert (mei.a, mei.b, mei.effect) == ("p/m size=5", "p/m size=7", -1.0)


def test_the_same_condition_twice_is_told_by_its_file() -> None:
    found = sampled(played(), "old.json") + sampled(played(value=0.75), "new.json")
    mei = of(compare_conditions(found), "mei")
    assert (mei.a, mei.b, mei.difference) == ("p/m old.json", "p/m new.json", 0.25)


def test_a_model_alone_has_nothing_to_compare() -> None:
    assert compare_conditions(sampled([*played("a"), *played("b")])) == []
    assert compare_conditions([]) == compare_models([]) == []


def test_errors_are_in_no_value() -> None:
    results = [*played(), trial(9, outcome="error", error="x")]
    (sample,) = sampled(results)
    assert (sample.n, sample.n_error, len(sample.values["mei"])) == (6, 1, 6)


# -- models ----------------------------------------------------------------------------------------


def test_models_of_two_files() -> None:
    """Mazes 1 to 8 and 3 to 10: six are common, two of each have no partner."""
    found = sampled(played("a", range(1, 9)), "a.json")
    found += sampled(played("b", range(3, 11), value=0.75), "b.json")
    mei = of(compare_models(found), "mei")
    assert (mei.a, mei.b, mei.n, mei.only_a, mei.only_b) == ("p/a", "p/b", 6, 2, 2)
    assert (mei.difference, mei.paired) == (0.25, True)


def test_a_maze_of_several_files_counts_once() -> None:
    """a has 0.25 and 0.75 on each maze, so 0.5; b has 0.625."""
    found = sampled(played("a", value=0.25), "1.json") + sampled(played("a", value=0.75), "2.json")
    found += sampled(played("b", value=0.625), "3.json")
    mei = of(compare_models(found), "mei")
    assert (mei.n, mei.difference) == (6, 0.125)


def test_models_under_other_conditions_are_no_pairs() -> None:
    found = sampled(played("a")) + sampled(played("b", value=0.75), "b.json", lang="ko")
    mei = of(compare_models(found), "mei")
    assert (mei.paired, mei.n, mei.only_a, mei.only_b) == (False, 12, 6, 6)
    # Both conditions of one model, one of the other: what is common is paired.
    found += sampled(played("b", value=1.0), "c.json")
    mei = of(compare_models(found), "mei")
    assert (mei.paired, mei.n, mei.only_b, mei.difference) == (True, 6, 6, 0.5)


@pytest.mark.parametrize("group", ["A", "B"])
def test_people_join_by_maze_and_group(group: str) -> None:
    """No server was asked: temperature, language and the like are no condition of theirs."""
    people = samples("people.json", {}, "", played("person", provider="human", value=0.75))
    models = sampled(played(ariadne_group=group), temperature=0.7, lang="ko")
    mei = of(compare_models([*models, *people]), "mei")
    assert (mei.a, mei.b, mei.difference) == ("p/m", "human/person", 0.25)
    assert (mei.paired, mei.n) == ((True, 6) if group == "A" else (False, 12))


def test_people_without_a_score_join_by_maze_too() -> None:
    """What was measured of people may be SR and MEI alone; their mazes are the model's still."""
    people = played("person", provider="human", value=0.75, hallumaze_score=None)
    mei = of(compare_models([*sampled(played()), *samples("people.json", {}, "", people)]), "mei")
    assert (mei.paired, mei.n, mei.only_a, mei.only_b) == (True, 6, 0, 0)


def test_means_of_groups_never_pair() -> None:
    (group,) = samples("people.json", {}, "", [GROUP_MEAN])
    assert group.means["mei"] == 0.61 and not any(group.values.values())
    models = sampled([*played(maze_size=7), *played("n", maze_size=7)])
    names = [(c.a, c.b) for c in compare_models([*models, group])]
    assert set(names) == {("p/m", "p/n")}
    assert compare_models([*models[:1], group]) == []
    # Not even with a model whose mazes have no seed.
    nameless = sampled([trial(None, maze_size=7, mei=0.5, hallumaze_score=0.5)])
    assert compare_models([*nameless, group]) == []


# -- where errors are ------------------------------------------------------------------------------

Cell = tuple[int, int]


def walked(model: str, *walks: Sequence[Cell], seed: int = 1) -> Sample:
    """A sample on a 2×2 maze: in each trial a good step, and errors on these cells."""
    results = [
        trial(seed, model, maze_size=2, run=run, steps=[step((0, 0), "ok"), *map(step, cells)])
        for run, cells in enumerate(walks, 1)
    ]
    return sampled(results)[0]


def step(cell: Cell, verdict: str = "wall") -> Json:
    return {"step": 1, "cell": list(cell), "direction": "E", "confidence": None, "verdict": verdict}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([[(0, 0)]], [[(0, 0)]], 1.0),
        # 1 0 0 0 and 0 1 0 0: covariance 0 - 1/16, variances 1/4 - 1/16 = 3/16
        ([[(0, 0)]], [[(0, 1)]], -1 / 3),
        # 1 1/2 0 0 and 1/2 1 0 0: Σab - 4·(3/8)² = 1 - 9/16; Σa² - 4·(3/8)² = 5/4 - 9/16
        ([[(0, 0), (0, 1)], [(0, 0)]], [[(0, 1)], [(0, 0), (0, 1)]], 7 / 11),
        ([[(0, 0)]], [[]], None),  # b errs nowhere
        ([[]], [[]], None),
    ],
)
def test_error_correlation_by_hand(
    a: list[list[Cell]], b: list[list[Cell]], expected: float | None
) -> None:
    ours, theirs = walked("a", *a), walked("b", *b)
    r, cells = error_correlation(ours, theirs)
    assert (r, cells) == (pytest.approx(expected), 4)
    assert error_correlation(theirs, ours) == (pytest.approx(expected), 4)


def test_a_phantom_cell_is_a_fifth() -> None:
    """0 0 0 0 1 and 1 0 0 0 1: 1 - 5·(1/5)(2/5) = 3/5, over √(4/5 · 6/5): 0.6/√0.96."""
    r, cells = error_correlation(walked("a", [(7, 7)]), walked("b", [(0, 0), (7, 7)]))
    assert (r, cells) == (pytest.approx(0.6 / math.sqrt(0.96)), 5)


def test_without_a_common_maze_no_error_is_compared() -> None:
    assert error_correlation(walked("a", [(0, 0)]), walked("b", [(0, 0)], seed=2)) == (None, 0)


# -- planning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("effect", [0.02, 0.05, 0.1])
def test_mazes_needed_against_statsmodels(spread: float, effect: float) -> None:
    differences = [spread * x for x in drawn(25, "normal")]
    size = effect / float(np.std(differences, ddof=1))
    n = TTestPower().solve_power(effect_size=size, alpha=0.05, power=0.8)
    expected = math.ceil(max(6.0, math.ceil(n)) * math.pi / 3)
    found = mazes_needed(differences, effect)
    assert expected <= found <= math.ceil(expected * 1.01) + 1


def test_without_spread_the_fewest_will_do() -> None:
    assert mazes_needed([0.25] * 8, 0.05) == 6
    # 0.9 - 0.6 and 0.7 - 0.4 are 0.3, and the last bit is no spread.
    assert mazes_needed([0.9 - 0.6, 0.8 - 0.5, 0.4 - 0.1, 0.7 - 0.4, 0.5 - 0.2, 0.3], 0.05) <= 7


# -- ablation --------------------------------------------------------------------------------------


def rated(model: str, seed: int = 1, **given: Any) -> Any:
    """A readable trial of these terms; those that are not given are 0."""
    terms = {"hrr": 0.0, "early": 0.0, "esc": 0.0, "hallucination_count": 0, "brs": 0.0}
    return trial(seed, model, **{"readable": True, **terms, **given})


# MEI 0.4 + 0.3 + 0.1 = 0.8; Score 0.4 + 0.3·0.8 + 0.2 = 0.84
WELL: Json = {"hrr": 1.0, "early": 1.0, "esc": 0.5, "ce": 0.2, "brs": 1.0}
WELL_ALONE = [0.8, 0.4, 0.5, 0.7, 0.8, 0.84, 0.6]
# MEI 0.2 - 0.05 = 0.15, without HRR no less than 0; CE None is 0.5: Score 0.075 + 0.15 + 0.1
BADLY: Json = {"hrr": 0.5, "hallucination_count": 5, "ce": None, "brs": 0.5}
BADLY_ALONE = [0.15, 0.0, 0.15, 0.15, 0.2, 0.325, 0.175]
# 20 hallucinations cost 0.1, as 10 do: MEI 0.3 - 0.1; Score 0.1 + 0.3·0.5 + 0
OFTEN: Json = {"early": 1.0, "hallucination_count": 20, "ce": 0.5}
OFTEN_ALONE = [0.2, 0.2, 0.0, 0.2, 0.3, 0.25, 0.1]
KEYS = ("mei", *(f"mei_without_{term}" for term in ("hrr", "early", "esc", "penalty")))
KEYS += ("score", "score_without_ce")


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([rated("m", **WELL)], WELL_ALONE),
        ([rated("m", **BADLY)], BADLY_ALONE),
        ([rated("m", **OFTEN)], OFTEN_ALONE),
        (
            [rated("m", 1, **WELL), rated("m", 2, **BADLY)],
            [(a + b) / 2 for a, b in zip(WELL_ALONE, BADLY_ALONE, strict=True)],
        ),
        # repeats first: (WELL + BADLY)/2 on one maze, OFTEN on the other
        (
            [rated("m", **WELL), rated("m", run=2, **BADLY), rated("m", 2, **OFTEN)],
            [
                a / 4 + b / 4 + c / 2
                for a, b, c in zip(WELL_ALONE, BADLY_ALONE, OFTEN_ALONE, strict=True)
            ],
        ),
        # what cannot be read scores 0, whatever its terms; an error is no trial
        (
            [
                rated("m", **WELL),
                rated("m", 2, **WELL, readable=False),
                trial(3, outcome="error", error="x"),
            ],
            [a / 2 for a in WELL_ALONE],
        ),
    ],
)
def test_terms_by_hand(results: list[BenchmarkResult], expected: list[float]) -> None:
    (row,) = ablation(results)["models"]
    assert (row["model"], row["group"]) == ("p/m", "A")
    assert [row[key] for key in KEYS] == pytest.approx(expected)


def test_the_grid() -> None:
    points = list(product(GRID, repeat=4))
    assert len(points) == len(set(points)) == 625
    assert points[625 // 2] == (1, 1, 1, 1)  # v1.1's own weights


def test_an_order_that_flips_at_known_weights() -> None:
    """MEI is 0.4·f of the one and 0.3·g of the other; with quarters i, j of 2 to 6 the first leads
    where 4i > 3j: for j = 2 only at i = 2; for j = 2, 3 at i = 3, where j = 4 is a tie; up to 5 at
    i = 4; always at 5 and 6. That is 1 + 2 + 4 + 5 + 5 = 17 of 25, a tie, and 7 the other way:
    τ is 1 or -1, and of a tie there is none: 10/24.
    """
    found = ablation([rated("a", hrr=1.0), rated("b", early=1.0)])["grid"]
    assert found == {
        "points": 625,
        "tau_mean": pytest.approx(10 / 24),
        "tau_min": -1.0,
        "same_order": 17 / 25,
    }


def test_an_order_that_holds_and_none() -> None:
    """One term that is larger leads under any weights."""
    held = ablation([rated("a", hrr=1.0), rated("b", hrr=0.5), rated("c")])["grid"]
    assert held == {"points": 625, "tau_mean": 1.0, "tau_min": 1.0, "same_order": 1.0}
    alone = ablation([rated("a", **WELL)])["grid"]
    assert alone == {"points": 625, "tau_mean": None, "tau_min": None, "same_order": None}
    assert ablation([])["models"] == []


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        # the grand mean is 1.5: 2·1 + 2·1 between, 2.25 + 0.25 + 0.25 + 2.25 in all
        ([[0, 1], [2, 3]], 0.8),
        ([[0, 0], [1, 1, 1]], 1.0),
        ([[0, 1], [1, 0], [0.5]], 0.0),
        ([[0, 1, None], [None], [2, 3]], 0.8),
        ([[0.25, 0.25], [0.25]], None),  # nothing varies
        ([[0, 1, 2]], None),
        ([[0, 1], [None]], None),
        ([], None),
        ([[], []], None),
    ],
)
def test_eta_squared_by_hand(groups: list[list[float | None]], expected: float | None) -> None:
    assert eta_squared(groups) == pytest.approx(expected)


def test_discriminability() -> None:
    """MEI as in the first case above, in tenths; the others have one value."""
    results = [
        rated(name, s, mei=x / 10, sr=1.0)
        for name, row in (("a", (0, 1)), ("b", (2, 3)))
        for s, x in enumerate(row)
    ]
    found = ablation(results)["discriminability"]
    assert set(found) == set(COMPARED)
    assert (found["mei"], found["sr"], found["auroc2"]) == (pytest.approx(0.8), None, None)


# -- reports ---------------------------------------------------------------------------------------

NAMES = [
    *("a|b", "`x`", "<b>x</b>", "*x*", "**x**", "_x_", "a&amp;b", "100%", "$x$", "# x", "{x}"),
    *("a\\", "\\|", "a\\|b", "~~x~~", "x^2", "[x](https://example.org)", "![x](y)", "<!-- x"),
    *(
        "| --- |",
        "x|",
        "``x|`",
        "-",
        "1. x",
        "> x",
        "한글/모델",
        "&lt;",
        "\\input{x}",
        "<https://x.y>",
    ),
]


def report_of(name: str) -> Report:
    return Report([Table(name, ("model", name), [[name, "1"], ["other", "2"]])], [f"of {name}"], {})


@pytest.mark.parametrize("name", NAMES)
def test_a_name_cannot_break_out_of_markdown(name: str) -> None:
    """Read by another program, every cell holds the name as text, and nothing else."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(markdown(report_of(name)))
    kinds = [token.type for token in tokens]
    assert (kinds.count("tr_open"), kinds.count("th_open"), kinds.count("td_open")) == (3, 2, 4)
    found = []
    for token in tokens:
        if token.type == "inline":
            inner = [t for t in token.children or () if not t.type.startswith("strong")]
            assert {t.type for t in inner} <= {"text", "text_special"}, name
            found.append("".join(t.content for t in inner))
    assert found == [name, "model", name, name, "1", "other", "2", f"of {name}"]


LATEX = {
    "a_b": r"a\_b",
    "a & b": r"a \& b",
    "50%": r"50\%",
    "$x$": r"\$x\$",
    "#1": r"\#1",
    "{x}": r"\{x\}",
    "\\input{x}": r"\textbackslash{}input\{x\}",
    "a\\\\": r"a\textbackslash{}\textbackslash{}",
    "~": r"\textasciitilde{}",
    "x^2": r"x\textasciicircum{}2",
    "a − b – c": "a $-$ b -- c",
    "plain-1.5/x:free": "plain-1.5/x:free",
}


@pytest.mark.parametrize("name", LATEX)
def test_a_name_cannot_break_out_of_latex(name: str) -> None:
    safe = LATEX[name]
    lines = latex(report_of(name)).splitlines()
    assert lines == [
        f"% {safe}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        rf"model & {safe} \\",
        r"\midrule",
        rf"{safe} & 1 \\",
        r"other & 2 \\",
        r"\bottomrule",
        r"\end{tabular}",
        "",
        f"% of {safe}",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_latex_holds_no_command_of_a_name(name: str) -> None:
    ours = r"\\(?:textbackslash\{\}|textasciitilde\{\}|textasciicircum\{\}|[&%$#_{}]|\\$)"
    for line in latex(report_of(name)).splitlines():
        if not re.match(r"\\(begin|end|toprule|midrule|bottomrule)", line):
            bare = re.sub(ours, "", line.removeprefix("% "))
            assert not re.search(r"[\\%$#_{}~^]", bare), line


@pytest.mark.parametrize(
    ("value", "interval", "sign", "expected"),
    [
        (None, None, "", "–"),
        (None, (0.1, 0.2), "+", "–"),
        (0.6125, None, "", "0.613"),
        (0.612, (0.58, 0.6444), "", "0.612 [0.580, 0.644]"),
        (0.1, (-0.05, 0.25), "+", "+0.100 [-0.050, +0.250]"),
    ],
)
def test_numbers_with_intervals(
    value: float | None, interval: tuple[float, float] | None, sign: str, expected: str
) -> None:
    # 0.6125 has no exact double; the nearest one lies above it
    assert with_interval(value, interval, sign) == expected


@pytest.mark.parametrize(
    ("score", "low", "high", "expected"),
    [
        (0.5, 0.25, 0.75, 0.5),
        (0.25, 0.25, 0.75, 0.0),
        (0.75, 0.25, 0.75, 1.0),
        (1.0, 0.25, 0.75, 1.5),
        (0.0, 0.25, 0.75, -0.5),
        (None, 0.25, 0.75, None),
        (0.5, 0.75, 0.75, None),  # no scale
        (0.5, 0.75, 0.25, None),
    ],
)
def test_the_scale_of_the_reference_agents(
    score: float | None, low: float, high: float, expected: float | None
) -> None:
    assert centred(score, {"random-walk": low, "explorer": high}) == expected


# -- the commands ----------------------------------------------------------------------------------


MAZES = 14  # with up to 13 pairs and ties scipy tries every sign, one at a time


class Reporting(Command):
    """With the result file of its run at hand."""

    @property
    def document(self) -> Json:
        """The result file of its run."""
        return json.loads(self.output.read_text(encoding="utf-8"))

    @property
    def results(self) -> list[Json]:
        """Its trials."""
        return self.document["results"]


@pytest.fixture
def command(tmp_path: Path) -> Reporting:
    return Reporting(tmp_path)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Reporting:
    """lured and explorer on MAZES mazes."""
    made = Reporting(tmp_path_factory.mktemp("two"))
    models = ("--model", "reference/lured", "--model", "reference/explorer")
    assert made.run(*models, "--size", "5", "--seeds", f"1-{MAZES}").code == 0
    return made


def document(results: Sequence[BenchmarkResult], **config: Any) -> Json:
    """A result file of these trials, without what reports do not look at."""
    return {
        "timestamp": "2026-01-01T10:00:00+00:00",
        "config": {**CONFIG, **config},
        "results": [result.as_dict() for result in results],
        "aggregate": [],
    }


def write(command: Command, name: str, value: Any) -> str:
    path = command.folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def told(command: Command, *args: str) -> str:
    """What a report says; it says it without an error."""
    done = command(*args)
    assert (done.code, done.err) == (0, ""), done.err
    return done.out


def cells(text: str, name: str) -> list[list[str]]:
    """The rows of a text table that begin with a name."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [line for line in lines if line[0] == name]


def column(results: Sequence[Json], model: str, metric: str) -> dict[int, float]:
    return {
        r["maze_seed"]: r[metric] for r in results if r["model"] == model and r[metric] is not None
    }


PAIR = "reference/explorer − reference/lured"


def test_compare(two: Reporting) -> None:
    """Each number of the JSON follows from the trials, and is that of the table."""
    path = str(two.output)
    data = json.loads(told(two, "compare", path, "--json"))
    text = told(two, "compare", path, "--lang", "en")
    rows = {row[1]: row for row in cells(text, PAIR)}
    assert [c["metric"] for c in data["comparisons"]] == list(rows)
    for c in data["comparisons"]:
        before = column(two.results, "lured", c["metric"])
        after = column(two.results, "explorer", c["metric"])
        gaps = [round(after[s] - before[s], 9) for s in before if s in after]
        assert (c["a"], c["b"], c["paired"]) == ("reference/lured", "reference/explorer", True)
        assert (c["n"], c["only_a"]) == (len(gaps), len(before) - len(gaps))
        assert c["difference"] == pytest.approx(sum(gaps) / len(gaps), abs=1e-6)
        if not any(gaps):
            assert (c["p"], c["effect"], c["interval"]) == (1, 0, [0, 0])
        elif c["test"] == "wilcoxon":
            assert c["p"] == pytest.approx(stats.wilcoxon(gaps).pvalue, abs=1e-6)
        low, high = c["interval"]
        n, difference, test, p, effect = rows[c["metric"]][2:]
        assert difference == f"{c['difference']:+.3f} [{low:+.3f}, {high:+.3f}]"
        assert (n, test, effect) == (str(c["n"]), c["test"], f"{c['effect']:.2f}")
        assert p == f"{c['p_holm']:.3f}"
    expected = multipletests([c["p"] for c in data["comparisons"]], method="holm")[1]
    found = [c["p_holm"] for c in data["comparisons"]]
    assert found == pytest.approx(list(expected), abs=1e-5)  # of p at 6 places
    for sample, name in zip(data["samples"], ("lured", "explorer"), strict=True):
        assert (sample["model"], sample["n"], sample["n_error"], sample["n_mazes"]) == (
            *(name, MAZES, 0, MAZES),
        )
        for metric in ("hallumaze_score", "ce"):
            values = column(two.results, name, metric).values()
            assert sample["means"][metric] == pytest.approx(sum(values) / MAZES, abs=1e-6)


@pytest.mark.parametrize(("form", "lang"), [("--markdown", "en"), ("--latex", "ko")])
def test_compare_for_a_page(form: str, lang: str, two: Reporting) -> None:
    text = told(two, "compare", str(two.output), form, "--lang", lang)
    mark = "| " if form == "--markdown" else ""
    for line in (f"{mark}reference/lured ", f"{mark}reference/explorer "):
        assert any(row.startswith(line) for row in text.splitlines())
    assert text.count(r"hallumaze\_score") == 1
    if form == "--latex":
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    else:
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        assert [t.type for t in tokens].count("table_open") == 2


SWITCHED_OFF = "p/m mirage=off − p/m mirage=trap"


def test_compare_by_condition(command: Reporting) -> None:
    """Hints on and off, the two files in either order."""
    on = write(command, "on.json", document(played(value=0.5)))
    off = write(command, "off.json", document(played(value=0.75), mirage="off"))
    for files in ((on, off), (off, on)):
        data = json.loads(told(command, "compare", *files, "--json"))
        (mei,) = [c for c in data["comparisons"] if c["metric"] == "mei"]
        assert (mei["difference"], mei["p"], mei["b"]) == (0.25, 0.03125, "p/m mirage=off")
    (row,) = [
        row for row in cells(told(command, "compare", on, off), SWITCHED_OFF) if row[1] == "mei"
    ]
    assert row[2:5] == ["6", "+0.250 [+0.250, +0.250]", "permutation"]


def test_compare_with_people(two: Reporting) -> None:
    """A person on each of the mazes whose score is explorer's less a quarter."""
    explorer = column(two.results, "explorer", "hallumaze_score")
    people = [
        {"provider": "human", "model": "one", "maze_size": 5, "maze_seed": s, "hallumaze_score": x}
        for s, x in explorer.items()
    ]
    for person in people:
        person["hallumaze_score"] -= 0.25
    path = write(two, "people.json", people)
    data = json.loads(told(two, "compare", str(two.output), "--human-data", path, "--json"))
    (found,) = [
        c for c in data["comparisons"] if (c["a"], c["b"]) == ("reference/explorer", "human/one")
    ]
    assert (found["metric"], found["difference"], found["n"]) == ("hallumaze_score", -0.25, MAZES)
    mean = write(two, "mean.json", [GROUP_MEAN.as_dict()])
    text = told(two, "compare", str(two.output), "--human-data", mean, "--lang", "en")
    (row,) = cells(text, "human/undergraduate_group_n30")
    assert row[2:] == ["1", "0", "0", "–", "0.610", "0.730", "–"]
    assert "means of groups" in text


def test_ablate(two: Reporting, capsys: pytest.CaptureFixture[str]) -> None:
    """As they are, MEI and Score are the means of the file."""
    data = json.loads(told(two, "ablate", str(two.output), "--json"))
    for row, model in zip(data["models"], two.document["aggregate"], strict=True):
        assert row["model"] == f"reference/{model['model']}"
        assert row["mei"] == pytest.approx(model["mei"], abs=2e-6)
        assert row["score"] == pytest.approx(model["hallumaze_score"], abs=2e-6)
    assert data["grid"]["points"] == 625
    names = ("lured", "explorer")
    values = [list(column(two.results, name, "ce").values()) for name in names]
    every = np.array([x for row in values for x in row])
    between = sum(MAZES * (np.mean(row) - every.mean()) ** 2 for row in values)
    expected = between / ((every - every.mean()) ** 2).sum()
    assert data["discriminability"]["ce"] == pytest.approx(expected, abs=1e-6)
    # 0.4 + 0.3 + 0.2 without a hallucination; the penalty is 0
    text = told(two, "ablate", str(two.output))
    for name in names:
        (row,) = cells(text, f"reference/{name}")
        assert row[1:7] == ["A", "0.900", "0.500", "0.600", "0.700", "0.900"]
    for form in ("--markdown", "--latex"):
        assert ablate_command([str(two.output), form]) == 0
        assert "reference/lured" in capsys.readouterr().out


def test_people_in_an_ablation(two: Reporting) -> None:
    """Trials with their terms are a row of their own; the mean of a group has none."""
    terms = {"hrr": 0.5, "early": 0.5, "esc": 1.0, "hallucination_count": 5, "readable": True}
    trial = {"provider": "human", "model": "one", "maze_size": 5, "maze_seed": 0, **terms}
    path = write(two, "people.json", [trial, GROUP_MEAN.as_dict()])
    data = json.loads(told(two, "ablate", str(two.output), "--human-data", path, "--json"))
    assert data["without_terms"] == 1
    (row,) = [row for row in data["models"] if row["model"] == "human/one"]
    # 0.4 × 0.5 + 0.3 × 0.5 + 0.2 − 0.1 × 0.5, and less each term
    assert row["mei"] == 0.5
    assert [row[f"mei_without_{t}"] for t in ("hrr", "early", "esc", "penalty")] == [
        0.3,
        0.35,
        0.3,
        0.55,
    ]
    text = told(two, "ablate", str(two.output), "--human-data", path, "--lang", "en")
    assert "1 records hold no terms of MEI" in text


def test_plan(two: Reporting) -> None:
    """Their CE differs by maze: its spread is what counts."""
    before, after = (column(two.results, name, "ce") for name in ("lured", "explorer"))
    spread = np.std([after[s] - before[s] for s in before], ddof=1)
    n = TTestPower().solve_power(effect_size=0.005 / spread, alpha=0.05, power=0.8)
    args = ("plan", str(two.output), "--metric", "ce", "--effect")
    (row,) = cells(told(two, *args, "0.005"), PAIR)
    assert row[1] == str(MAZES)
    assert int(row[2]) == pytest.approx(math.ceil(math.ceil(n) * math.pi / 3), abs=2)
    (row,) = cells(told(two, *args, "1"), PAIR)
    assert int(row[2]) <= 7  # no fewer than six are ever asked for


def test_hostile_names_stay_in_their_cells(
    command: Reporting, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a|b\n| c |", "`<b>$x$\\input{y}", "\x1b[31m_%&#~^")
    results = [t for k, name in enumerate(names) for t in played(name, value=k / 4)]
    path = write(command, "names.json", document(results))
    parser = MarkdownIt("commonmark").enable("table")
    kinds = [t.type for t in parser.parse(told(command, "compare", path, "--markdown"))]
    # Two metrics of three pairs, and three means; two heads.
    assert (kinds.count("tr_open"), kinds.count("table_open")) == (6 + 3 + 2, 2)
    assert "html_inline" not in kinds and "html_block" not in kinds
    assert compare_command([path, "--latex"]) == 0
    text = capsys.readouterr().out
    assert text.count(r" \\") == 6 + 3 + 2 and r"\input" not in text
    assert compare_command([path, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [sample["model"] for sample in data["samples"]] == list(names)


NO_FILE: dict[str, Any] = {
    "no JSON": "{",
    "empty": "",
    "a number": 5,
    "a list": [],
    "no results": {"config": {}},
    "no settings": {"results": []},
    "results that are none": {"config": {}, "results": [5]},
    "a field that is none": {"config": {}, "results": [{"provider": "p", "model": "m", "x": 1}]},
    "a value of another kind": document([trial(mei="x")]),
    "no model": {"config": {}, "results": [{"provider": "p"}]},
    "models that are none": document(played(), models=[5]),
    "no trial": document([]),
    "errors alone": document([trial(outcome="error", error="x")]),
}


@pytest.mark.parametrize("name", NO_FILE)
def test_what_is_no_result_file(name: str, command: Reporting) -> None:
    path = write(command, "bad.json", NO_FILE[name])
    for work, *args in (
        (compare_command, path),
        (ablate_command, path),
        (plan_command, path, "--effect", "0.1"),
    ):
        with pytest.raises(UsageError, match=r"bad\.json") as caught:
            work(args)
        assert caught.value.exit_code == 2 and len(str(caught.value).splitlines()) == 1


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "missing": (("compare", "missing.json"), "missing.json"),
    "missing too": (("ablate", "missing.json"), "missing.json"),
    "missing again": (("plan", "missing.json", "--effect", "0.1"), "missing.json"),
    "no JSON": (("compare", "broken.json"), "broken.json"),
    "no result file": (("ablate", "people.json"), "people.json"),
    "no result file to plan with": (("plan", "people.json", "--effect", "0.1"), "people.json"),
    "a result of another kind": (("compare", "kind.json"), "results[0]"),
    "a folder": (("compare", "."), "cannot be read"),
    "no file": (("compare",), "file"),
    "one model": (("compare", "one.json"), "nothing to compare"),
    "no model in common": (
        ("compare", "one.json", "other.json", "--by", "condition"),
        "nothing to compare",
    ),
    "one model to plan with": (("plan", "one.json", "--effect", "0.1"), "one.json"),
    "five mazes to plan with": (("plan", "five.json", "--effect", "0.1"), "five.json"),
    "no effect": (("plan", "one.json"), "--effect"),
    "an effect of 0": (("plan", "one.json", "--effect", "0"), "--effect"),
    "an effect below 0": (("plan", "one.json", "--effect", "-0.1"), "--effect"),
    "an effect that is none": (("plan", "one.json", "--effect", "nan"), "--effect"),
    "a metric that is none": (
        ("plan", "one.json", "--effect", "0.1", "--metric", "x"),
        "--metric",
    ),
    "two forms": (("compare", "one.json", "--json", "--latex"), "--latex"),
    "two files to ablate": (("ablate", "one.json", "other.json"), "other.json"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Reporting:
    """Small result files, and what is no file of people."""
    made = Reporting(tmp_path_factory.mktemp("files"))
    write(made, "one.json", document(played("a")))
    write(made, "other.json", document(played("b")))
    write(made, "broken.json", "{")
    write(made, "people.json", [GROUP_MEAN.as_dict()])
    write(made, "kind.json", document([trial(mei="x")]))
    write(made, "five.json", document([*played("a", range(5)), *played("b", range(5))]))
    return made


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_one_line(name: str, files: Reporting) -> None:
    args, part = WRONG[name]
    done = files(*args)
    assert done.code == 2
    one_line(done, part)


NO_PEOPLE: dict[str, Any] = {
    "no JSON": "x",
    "nobody": [],
    "an object": {},
    "a number": 7,
    "numbers": [7],
    "no model": [{"provider": "human"}],
    "a field that is none": [{"provider": "human", "model": "x", "speed": 1}],
    "text as a number": [{"provider": "human", "model": "x", "mei": "0.5"}],
    "no number": '[{"provider": "human", "model": "x", "mei": NaN}]',
}


@pytest.mark.parametrize("name", NO_PEOPLE)
def test_what_is_no_file_of_people(name: str, command: Reporting) -> None:
    one = write(command, "one.json", document(played()))
    path = write(command, "people.json", NO_PEOPLE[name])
    run = ("--model", "reference/explorer", "--size", "5", "--seed", "1")
    done = command.run(*run, "--human-data", path)
    assert done.code == 2
    one_line(done, "people.json")
    with pytest.raises(UsageError, match=r"people\.json"):
        compare_command([one, "--human-data", path])
    assert not command.output.exists()


def test_people_are_read_from_a_list_or_a_file(command: Reporting) -> None:
    entries = [GROUP_MEAN.as_dict()]
    for value in (entries, {"results": entries}):
        assert read_people(Path(write(command, "people.json", value))) == [GROUP_MEAN]


# -- every group -----------------------------------------------------------------------------------

WALKER = ("--model", "reference/random-walk", "--model", "reference/explorer", "--size", "5")


@pytest.fixture(scope="module")
def every_group(tmp_path_factory: pytest.TempPathFactory) -> Reporting:
    made = Reporting(tmp_path_factory.mktemp("groups"))
    assert made.run(*WALKER, "--seeds", "1-6", "--group", "ALL").code == 0
    return made


def in_group(command: Reporting, model: str, group: str) -> list[Json]:
    return [r for r in command.results if (r["model"], r["ariadne_group"]) == (model, group)]


def test_every_maze_is_played_in_every_group(every_group: Reporting) -> None:
    found = [(r["model"], r["maze_seed"], r["ariadne_group"]) for r in every_group.results]
    assert found == list(product(("random-walk", "explorer"), SEEDS, "ABC"))
    assert len({r["trial_id"] for r in every_group.results}) == 36
    rows = {(r["model"], r["ariadne_group"]): r for r in every_group.document["aggregate"]}
    assert list(rows) == list(product(("random-walk", "explorer"), "ABC"))
    for (model, group), row in rows.items():
        mine = in_group(every_group, model, group)
        assert (row["n"], row["n_mazes"], row["n_error"]) == (6, 6, 0)
        assert row["mei"] == pytest.approx(sum(r["mei"] for r in mine) / 6, abs=1e-6)
        # Nobody is hinted in A, everybody in C, and in B those that needed it.
        hinted = [r["nudge_sent"] for r in mine]
        assert group == "B" or hinted == [group == "C"] * 6
        speeds = [r["nrs"] for r in mine if r["nrs"] is not None]
        assert len(speeds) == sum(hinted)
        assert row["nrs"] == (
            pytest.approx(sum(speeds) / len(speeds), abs=1e-6) if speeds else None
        )
    assert every_group("rescore", str(every_group.output)).code == 0


def test_trainability_of_a_run(every_group: Reporting) -> None:
    """TI out of the trials of the file, beside the aggregate and what `compare` says."""
    text = told(every_group, "compare", str(every_group.output), "--json")
    groups = {(row["model"], row["group"]): row for row in json.loads(text)["groups"]}
    assert len(groups) == 4
    for row in every_group.document["aggregate"]:
        if row["ariadne_group"] == "A":
            assert row["ti"] is None
            continue
        plain, hinted = (
            in_group(every_group, row["model"], g) for g in ("A", row["ariadne_group"])
        )
        speeds = [r["nrs"] for r in hinted if r["nrs"] is not None]
        mei_a, mei_b = (sum(r["mei"] for r in rs) / 6 for rs in (plain, hinted))
        known = bool(speeds) and mei_a > 0
        expected = sum(speeds) / len(speeds) * (mei_b - mei_a) / mei_a if known else None
        assert row["ti"] == pytest.approx(expected, abs=1e-5)
        found = groups[f"reference/{row['model']}", row["ariadne_group"]]
        assert found["ti"] == pytest.approx(expected, abs=1e-5)


def test_groups_have_rows_in_the_table(command: Reporting) -> None:
    done = command.run(*WALKER[2:], "--seeds", "1-2", "--group", "ALL", "--lang", "en")
    names = re.findall(r"(?m)^  ·\s+(reference/explorer(?: [BC])?)  ", done.out)
    assert (done.code, names) == (
        0,
        ["reference/explorer", "reference/explorer B", "reference/explorer C"],
    )


@pytest.mark.parametrize("kept", [0, 7, 35])
def test_a_run_of_every_group_is_resumed(kept: int, every_group: Reporting, tmp_path: Path) -> None:
    (journal,) = (every_group.folder / "results").glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 37
    command = Reporting(tmp_path)
    (command.folder / "results").mkdir()
    (command.folder / "results" / journal.name).write_bytes(b"".join(lines[: kept + 1]))
    done = command.run("--resume")
    assert done.code == 0, done.err
    assert timeless(done.document) == timeless(every_group.document)


# -- people ----------------------------------------------------------------------------------------


def test_people_beside_a_run(command: Reporting) -> None:
    people = [
        GROUP_MEAN.as_dict(),
        {"provider": "human", "model": "one", "maze_size": 5, "maze_seed": 1, "mei": 0.25, "sr": 0},
    ]
    people[1]["sr"] = 0.0
    path = write(command, "people.json", people)
    args = (*WALKER[2:], "--seeds", "1-3", "--human-data", path)
    done = command.run(*args, "--lang", "en")
    assert done.code == 0, done.err
    assert [p["model"] for p in done.document["human_data"]] == ["undergraduate_group_n30", "one"]
    assert done.document["human_data"][0] == GROUP_MEAN.as_dict()
    # They are no trials of the run.
    assert {r["provider"] for r in done.results} == {"reference"}
    assert [row["provider"] for row in done.document["aggregate"]] == ["reference"]
    for name, sr, mei in (("undergraduate_group_n30", "0.73", "0.610"), ("one", "0.00", "0.250")):
        (row,) = re.findall(rf"(?m)^.*human/{name}  .*(?=\n)", done.out.split("\n\n")[2])[:1]
        assert re.search(rf"human/{name}\s+{sr}\s+{mei}\s", row)
    again = command("rescore", str(command.output))
    assert (again.code, again.err) == (0, "")


# -- chance ----------------------------------------------------------------------------------------


def simulated(truth: float, seed: int) -> Iterator[list[float]]:
    """200 times 60 paired differences of two models that share the mazes' difficulty."""
    stream = np.random.RandomState(seed)
    for _ in range(200):
        difficulty = stream.normal(0.5, 0.2, 60)
        a = difficulty + stream.normal(0, 0.1, 60)
        b = difficulty + truth + stream.normal(0, 0.1, 60)
        yield [float(x) for x in b - a]


def test_intervals_cover_the_truth() -> None:
    """95 % of 200 are 190 ± 3.1: 90 to 99 % are 180 to 198."""
    found = bootstrap_intervals(list(simulated(0.05, 1)))
    covered = sum(low <= 0.05 <= high for low, high in filter(None, found))
    assert 180 <= covered <= 198


def test_no_difference_is_rarely_found() -> None:
    """5 % of 200 are 10 ± 3.1: 1 to 10 % are 2 to 20."""
    found = [compared(differences) for differences in simulated(0.0, 2)]
    assert 2 <= sum((c.p or 0) < 0.05 for c in found) <= 20
    misses = sum(not low <= 0 <= high for low, high in (c.interval or (1, 0) for c in found))
    assert 2 <= misses <= 20


def test_ten_thousand_trials() -> None:
    results = (
        trial(s, f"m{m}", hallumaze_score=(7 * s + m) % 11 / 11, mei=(s % 5) / 5, ce=None)
        for m in range(5)
        for s in range(2000)
    )
    rows = aggregate(results)
    assert [(row["n"], row["n_mazes"]) for row in rows] == [(2000, 2000)] * 5
    assert all(row["mei"] == pytest.approx(0.4) and row["ce"] is None for row in rows)
    assert all("ce" not in row["ci"] and "mei" in row["ci"] for row in rows)
