"""The benchmark of whitened rows: what its numbers are."""

import numpy as np

from snugdp_studies.bench.inference import Population
from snugdp_studies.bench.whitening import BOUNDS, run, run_tables


def test_loose_bounds_are_where_whitening_wins() -> None:
    (found,) = run(2, [Population("loose", 3000, 2, 1.0, wide=(20.0, 1.0))])
    least, auto, whitened = found.errors
    assert (found.rows, found.width, found.bounds, found.wins) == (3000, 2, "public", 1.0)
    assert least < whitened < auto / 3


def test_tables_are_measured_with_every_kind_of_bounds() -> None:
    found = list(run_tables("synthetic", ["literature"], 1, rows=600))
    assert [each.bounds for each in found] == list(BOUNDS)
    assert all(each.rows == 480 and np.isfinite(each.errors).all() for each in found)
    assert found[0].errors[0] > 0.9
