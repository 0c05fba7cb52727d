"""The exact law of what the public functions release, for every pair of neighbours on a small universe.

A witness stands in for the noise and records the distance, the thresholds, the values and the laws that a query asks
for; from these the law of the output follows in closed form, and its hockey stick is compared with the guarantee.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.noise import DiscreteLaplace, Gaussian, Gumbel, Laplace
from tests.effort import sampled
from tests.mechanisms.noisy_votes import probabilities
from tests.queries.witness import Witness

Rows = tuple[Any, ...]
EPSILON, DELTA = 1.2, 0.1  # a large delta, so that tests pass on a few rows
VALUES = (0, 1, 4)
LABELS = ("a", "b", "c", "nobody")


def replaced(rows: Rows, universe: Rows) -> Iterator[Rows]:
    for i, value in itertools.product(range(len(rows)), universe):
        yield tuple(sorted((*rows[:i], value, *rows[i + 1 :])))


def added(rows: Rows, universe: Rows) -> Iterator[Rows]:
    return (tuple(sorted((*rows, value))) for value in universe)


def pairs(universe: Rows, relation: str) -> Iterator[tuple[Rows, Rows]]:
    """Every ordered pair of neighbouring multisets of a few rows."""
    most = 9 if universe == VALUES else 4
    for size in range(relation == "replace", most + (relation == "replace")):
        for rows in itertools.combinations_with_replacement(universe, size):
            near = replaced(rows, universe) if relation == "replace" else added(rows, universe)
            for other in set(near):
                yield rows, other
                yield other, rows


def passing(witness: Witness) -> float:
    """The probability that the test passes: discrete Laplace noise on the recorded distance."""
    if not witness.tests:
        return 1.0
    distance, law, threshold = witness.tests[0]
    assert isinstance(law, DiscreteLaplace)
    if distance == math.inf:
        return 1.0
    p, need = math.exp(-1 / law.scale), int(threshold - distance)
    return p**need / (1 + p) if need > 0 else 1 - p ** (1 - need) / (1 + p)


def laplace_stick(t: float, s: float, shift: int, scale: float | None, epsilon: float) -> float:
    """H of t (discrete Laplace) against s (the same, moved): far beyond both centres the ratio is constant."""
    a = math.exp(epsilon)
    if scale is None:  # released as it is
        return max(t - a * s, 0.0) if shift == 0 else t
    if t == 0:
        return 0.0
    # The loss |z - shift| - |z| is linear between the centres: integrate as for the continuous law, which a
    # discrete law on this fine grid (2**40 cells and more) cannot be told from, at the ratio a s / t.
    if s == 0:
        return t
    loss, x = shift / scale, math.log(a * s / t)
    if x >= loss:
        return 0.0
    return t * (1 - math.exp((x - loss) / 2) if x > -loss else 1 - math.exp(x))


@cache
def number_law(run: Callable[[Rows, Witness], Any], rows: Rows) -> tuple[float, Any, Any]:
    """How often the test passes, the number, and the scale of its noise."""
    witness = Witness()
    run(rows, witness)
    value, noise = witness.sums[0]
    assert noise is None or isinstance(noise, DiscreteLaplace)
    return passing(witness), value, None if noise is None else noise.scale


def number_delta(run: Callable[[Rows, Witness], Any], relation: str, epsilon: float) -> float:
    """The largest delta over all ordered pairs for a query that releases a number."""
    worst = 0.0
    for rows, other in pairs(VALUES, relation):
        (t, value, scale), (s, moved, same) = number_law(run, rows), number_law(run, other)
        assert scale == same or len(rows) != len(other)
        refused = max((1 - t) - math.exp(epsilon) * (1 - s), 0.0)
        worst = max(worst, refused + laplace_stick(t, s, abs(value - moved), scale and float(scale), epsilon))
    return worst


NUMBERS: dict[str, tuple[Callable[[Rows, Witness], Any], str]] = {
    f"{name}-{beta}": (run, relation)
    for beta in (0, 1, 3)
    for name, run, relation in [
        (
            "median",
            lambda rows, noise, b=beta: snugdp.median(
                list(rows), bounds=(0, 4), epsilon=EPSILON, delta=DELTA, beta=b, noise=noise
            ),
            "add_remove",
        ),
        (
            "median-replace",
            lambda rows, noise, b=beta: snugdp.median(
                list(rows), bounds=(0, 4), epsilon=EPSILON, delta=DELTA, beta=b, neighbours="replace", noise=noise
            ),
            "replace",
        ),
        (
            "quantile",
            lambda rows, noise, b=beta: snugdp.quantile(
                list(rows),
                0.7,
                bounds=(0, 4),
                epsilon=EPSILON,
                delta=DELTA,
                beta=b,
                neighbours="replace",
                noise=noise,
            ),
            "replace",
        ),
        (
            "trimmed",
            lambda rows, noise, b=beta: snugdp.trimmed_mean(
                list(rows), trim=0.3, bounds=(0, 4), epsilon=EPSILON, delta=DELTA, beta=b / 2, noise=noise
            ),
            "replace",
        ),
    ]
}


@sampled(12)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_keep_their_guarantee(name: str) -> None:
    run, relation = NUMBERS[name]
    assert number_delta(run, relation, EPSILON) <= DELTA * (1 + 1e-9)


@sampled(4)
@pytest.mark.parametrize("query", ["median", "median-replace", "quantile", "trimmed"])
def test_a_smaller_epsilon_would_not_be_true(query: str) -> None:
    deltas = [number_delta(*NUMBERS[f"{query}-{beta}"], 0.4 * EPSILON) for beta in (0, 1, 3)]
    assert max(deltas) > DELTA


@pytest.mark.parametrize("bounds", [(0, 4), (-3, 9)])
def test_without_a_test_the_release_is_pure(bounds: tuple[int, int]) -> None:
    def run(rows: Rows, noise: Witness) -> Any:
        return snugdp.trimmed_mean(list(rows), bounds=bounds, epsilon=EPSILON, noise=noise)

    assert number_delta(run, "replace", EPSILON) <= 1e-12


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_mode_keeps_its_guarantee(relation: str) -> None:
    known = {}
    for rows in {rows for pair in pairs(LABELS, relation) for rows in pair}:
        witness = Witness()
        snugdp.mode(list(rows), categories=LABELS[:3], epsilon=EPSILON, delta=DELTA, neighbours=relation, noise=witness)
        known[rows] = (passing(witness), witness.sums[0][0])
    worst = max(stick(*known[rows], *known[other], EPSILON) for rows, other in pairs(LABELS, relation))
    assert worst <= DELTA * (1 + 1e-9)
    assert max(stick(*known[r], *known[o], 0.4 * EPSILON) for r, o in pairs(LABELS, relation)) > DELTA


def stick(t: float, winner: int, s: float, other: int, epsilon: float) -> float:
    a = math.exp(epsilon)
    released = max(t - a * s, 0.0) if winner == other else t
    return max((1 - t) - a * (1 - s), 0.0) + released


VOTES = [
    {"epsilon": EPSILON},
    {"epsilon": EPSILON, "law": "laplace"},
    {"epsilon": EPSILON, "delta": DELTA},
    {"epsilon": EPSILON, "delta": DELTA, "law": "gaussian"},
    {"epsilon": EPSILON, "delta": DELTA, "noise_epsilon": 3},
]


@sampled(3)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("candidates", [2, 3])
@pytest.mark.parametrize("query", VOTES, ids=str)
def test_votes_keep_their_guarantee(query: dict[str, Any], candidates: int, relation: str) -> None:
    if "noise_epsilon" in query and candidates != 2:
        return
    names = {Laplace: "laplace", Gaussian: "gaussian", Gumbel: "gumbel"}
    vote = snugdp.Vote(candidates=LABELS[:candidates], neighbours=relation, **query)

    def law(rows: Rows) -> Any:
        witness = Witness()
        vote.release(list(rows), noise=witness)
        scores, noise = witness.contests[0]
        spread = noise.sigma if isinstance(noise, Gaussian) else noise.scale  # type: ignore[union-attr]
        won = probabilities(np.array(scores), names[type(noise)], float(spread))  # type: ignore[arg-type]
        t = passing(witness)
        return np.append(t * won, 1 - t)

    known = {rows: law(rows) for rows in {rows for pair in pairs(LABELS, relation) for rows in pair}}
    a = math.exp(EPSILON)
    worst = max(float(np.maximum(known[r] - a * known[o], 0).sum()) for r, o in pairs(LABELS, relation))
    assert worst <= float(query.get("delta", 0)) + 1e-9


def test_gumbel_noise_is_wrong_less_often_than_laplace_noise() -> None:
    """Two candidates, the same pure epsilon: why ``vote`` prefers it when delta is 0."""
    for lead in np.linspace(0.01, 60, 600):
        assert 1 / (1 + math.exp(lead)) < (2 + lead) * math.exp(-lead) / 4


DRAWN: dict[str, Callable[..., Any]] = {
    "median": lambda rows, **given: snugdp.median(rows, **given),
    "median, fine": lambda rows, **given: snugdp.median(rows, **{**given, "step": 0}),
    "quantile": lambda rows, **given: snugdp.quantile(rows, 0.8, **given),
    "quartiles": lambda rows, **given: snugdp.interquartile_range(rows, **given),
    "two quantiles": lambda rows, **given: snugdp.quantiles(rows, [0.7, 0.4], **given),
    "minimum": lambda rows, **given: snugdp.minimum(rows, beyond=2, **given),
    "maximum": lambda rows, **given: snugdp.maximum(rows, beyond=1, **given),
}
MISSING = "nothing"
SHARES = (1.0, 0.8)  # of the noise


def drawn_laws(name: str, rows: Rows, relation: str) -> list[list[np.ndarray[Any, Any]]]:
    """Of every draw: the logarithms of all points of 0 to 4, or on the fine grid of those that can differ.

    With each share of the noise.
    """
    witness = Witness()
    DRAWN[name](list(rows), bounds=(0, 4), step=1, epsilon=EPSILON, neighbours=relation, noise=witness)
    return [[_logs(name, groups, float(rate) / times) for groups, rate in witness.draws] for times in SHARES]


def _logs(name: str, groups: Any, rate: float) -> Any:
    logs = np.array([_log(groups, rate, place) for place in _places(groups, name)])
    count = groups.count.astype(float)
    return logs - np.logaddexp.reduce(np.log(count) + math.log(2) * groups.weight - rate * groups.level)


def _places(groups: Any, name: str) -> list[int]:
    if not name.endswith("fine"):
        return list(range(5))
    unit = (int((groups.first + groups.count).max()) - 1) // 4
    return [place for value in range(5) for place in (value * unit - 1, value * unit, value * unit + 1)][1:-1]


def _log(groups: Any, rate: float, place: int) -> float:
    inside = (groups.first <= place) & (place < groups.first + groups.count)
    return float(np.logaddexp.reduce((math.log(2) * groups.weight - rate * groups.level)[inside]))


def drawn_pairs(relation: str) -> Iterator[tuple[Rows, Rows]]:
    """Rows of 0, 1, 3 and what is missing; under replace a row may also come to be missing."""
    universe = (0, 1, 3, MISSING)
    for size in range(relation == "replace", 5):
        for rows in itertools.combinations_with_replacement(universe, size):
            if relation == "add_remove":
                yield from ((rows, (*rows, value)) for value in universe)
            else:
                for place, value in itertools.product(range(size), universe):
                    yield rows, (*rows[:place], value, *rows[place + 1 :])


@sampled(15)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("name", DRAWN)
def test_draws_keep_their_guarantee(name: str, relation: str) -> None:
    """The losses of all draws add up to at most epsilon; with 0.8 of the noise they do not where one draw is all."""
    ranges = dict.fromkeys(SHARES, 0.0)
    laws = cache(partial(drawn_laws, name, relation=relation))
    for pair in drawn_pairs(relation):
        for times, one, two in zip(SHARES, *map(laws, pair), strict=True):
            changes = [a - b for a, b in zip(one, two, strict=True)]
            losses = sum(float(np.abs(change).max()) for change in changes)
            assert losses <= EPSILON / times * (1 + 1e-9)
            ranges[times] = max(ranges[times], sum(float(change.max() - change.min()) for change in changes))
    assert ranges[1.0] <= EPSILON * (1 + 1e-9)
    assert ranges[0.8] > EPSILON
