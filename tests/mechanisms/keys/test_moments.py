"""Sums of a column for many keys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.keys.moments import GroupMoments, Power
from snugdp.noise import Exact
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.groups import UNIT


@pytest.mark.parametrize("rows", [0, 1000, 2**31 - 1, 2**31, 2**32 + 7])
def test_keys_of_billions_of_rows_do_not_overflow(rows: int) -> None:
    # rows at the upper bound: the last of Bernstein's polynomials is 4 UNIT for each of them
    cells = np.array([rows, 3], dtype=np.int64)
    release = GroupMoments(Share(Fraction(10**9), Fraction(0), Neighbours.ADD_REMOVE), Power.VARIANCE, "column-1", 1)
    found = release.draw(Secret((cells, cells * UNIT, cells * UNIT)), Exact())
    assert found == pytest.approx(np.tile(cells.astype(np.float64), (3, 1)), rel=1e-9, abs=1e-6)
