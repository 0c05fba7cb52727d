"""How far one row moves what is released: by brute force, over all that rows may add."""

from fractions import Fraction

import numpy as np
import pytest

from snugdp import Budget
from snugdp.mechanisms.scores.images import CELLS
from snugdp.mechanisms.scores.parts import bounded, explained, moves, spread, triple
from snugdp.propose.share import Share
from tests.effort import sampled

ALL = np.arange(CELLS + 1)


@sampled(2)
@pytest.mark.parametrize("pure", [True, False])
def test_no_number_moves_its_sums_further_than_is_said(pure: bool) -> None:
    """All numbers, and all pairs of numbers for a row that is replaced: the sums of Lemmas 3 and 4."""
    power, unit = 1 if pure else 2, CELLS ** (1 if pure else 2)  # all in whole numbers of a part of a cell
    one, both = np.array(triple(ALL, pure)), np.array([ALL, spread(ALL, pure)])
    one[:2] *= CELLS
    both[:1] *= CELLS
    first, second = ((part**power).sum(axis=0).max() for part in (one, both))
    assert first == bounded("x").reach[pure] * unit  # attained
    assert first + second <= explained("x").reach[pure] * unit
    replaced, other = 0, 0
    for t in range(CELLS + 1):
        replaced = max(replaced, (np.abs(one - one[:, [t]]) ** power).sum(axis=0).max())
        other = max(other, (np.abs(both - both[:, [t]]) ** power).sum(axis=0).max())
    assert replaced <= 2 * bounded("x").reach[pure] * unit
    assert replaced + other <= 2 * explained("x").reach[pure] * unit


def test_several_parts_share_the_budget() -> None:
    parts = (bounded("a"), explained("b"))
    for relation, factor in (("add_remove", 1), ("replace", 2)):
        budget = Budget(1, 1e-6, relation)
        for share in (Share.pure(budget), Share.gaussian(budget)):
            found = moves(parts, share)
            reach = [part.reach[share.is_pure] for part in parts]
            fine = CELLS if share.is_pure else CELLS**2
            one = [2 * factor * reach[0] * unit for unit in (1, 1, fine)]
            two = [2 * factor * reach[1] * unit for unit in (1, 1, fine, 1, fine)]
            assert found == (*one, *two, Fraction(factor))
