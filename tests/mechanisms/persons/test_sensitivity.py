"""How far one person moves sums: over random persons, both relations, and reached."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.persons.sensitivity import (
    PersonSensitivity,
    cells_counted,
    cells_of_rows,
    length_capped,
    of_weighted_rows,
    rows_counted,
    total_within,
)
from snugdp.propose.share import Share
from tests.effort import sampled

Draw = Callable[[np.random.Generator], np.ndarray]
BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
ROWS = 3


def direction(random: np.random.Generator) -> np.ndarray:
    found = random.normal(size=3)
    return found / np.linalg.norm(found)


def cells(random: np.random.Generator) -> np.ndarray:
    return np.bincount(random.choice([0, 0, 0, 1, 2, 3], random.integers(0, ROWS + 1)), minlength=4)


def gram(random: np.random.Generator) -> np.ndarray:
    rows = random.normal(size=(2, 3)) * random.choice([0.0, 1.0], 3)
    matrix = rows.T @ rows
    found: np.ndarray = (matrix / max(1.0, float(np.linalg.norm(matrix)))).ravel()
    return found


CASES: list[tuple[str, Draw, Callable[[Neighbours], PersonSensitivity]]] = [
    ("count", lambda r: r.integers(0, ROWS + 1, 1), lambda _: rows_counted(ROWS)),
    (
        "sum",
        lambda r: r.choice([-2, 0, 5], r.integers(0, ROWS + 1)).sum(keepdims=True),
        lambda n: total_within(ROWS, Fraction(-2), Fraction(5), n),
    ),
    (
        "above 0",
        lambda r: r.choice([2, 5], r.integers(0, ROWS + 1)).sum(keepdims=True),
        lambda n: total_within(ROWS, Fraction(2), Fraction(5), n),
    ),
    ("vector", lambda r: direction(r) * r.choice([0.5, 1.0]), lambda n: length_capped(Fraction(1), n)),
    ("counts", lambda r: np.abs(direction(r)) ** 9, lambda n: length_capped(Fraction(1), n, nonnegative=True)),
    ("matrix", gram, lambda n: length_capped(Fraction(1), n, nonnegative=True)),
    ("histogram", cells, lambda n: cells_of_rows(ROWS, n)),
    ("cells", lambda r: (r.permutation(6) < 2) * r.choice([1.0, 2.0], 6), lambda n: cells_counted(2, Fraction(2), n)),
]


@sampled(16)
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("draw", "reach"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_no_person_moves_more(
    draw: Draw, reach: Callable[[Neighbours], PersonSensitivity], relation: Neighbours
) -> None:
    random, most = np.random.default_rng(7), reach(relation)
    lengths, totals = [], []
    for _ in range(4000):
        before = draw(random) if relation is Neighbours.REPLACE else 0 * draw(random)
        change = draw(random) - before
        lengths.append(float(np.linalg.norm(change)))
        totals.append(float(np.abs(change).sum()))
    assert 0.9 * math.sqrt(most.l2_squared) < max(lengths) <= math.sqrt(most.l2_squared) * (1 + 1e-12)
    if most.l1 is not None:
        assert 0.9 * most.l1 < max(totals) <= float(most.l1) * (1 + 1e-12)


def test_weights_bound_sums_of_rows() -> None:
    assert of_weighted_rows(Fraction(3), Fraction(4)).l2_squared == 144


def test_noise_is_for_the_norm_that_is_bounded() -> None:
    pure, gaussian = Share.pure(Budget(1)), Share.gaussian(Budget(1, 1e-6))
    few = cells_counted(4, Fraction(1), Neighbours.ADD_REMOVE)
    assert few.noise(pure, 3).moves == (Fraction(4),) * 3
    assert few.noise(gaussian, 3).moves == (Fraction(4),) * 3
    assert few.l2_squared == 4
    with pytest.raises(ValueError, match="give a delta"):
        length_capped(Fraction(2), Neighbours.ADD_REMOVE).noise(pure, 3)
