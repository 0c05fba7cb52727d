"""The bench of intervals: designs with a known truth, each seen on a few tables."""

from dataclasses import replace

import numpy as np
import pytest

from snugdp_studies.bench.inference import DESIGNS, run
from tests.effort import often, repeated


def test_the_designs_are_what_they_say() -> None:
    assert len(DESIGNS) >= 20
    for design in DESIGNS:
        X, y = replace(design, rows=400).draw(np.random.default_rng(1))
        assert X.shape == (400, design.width)
        assert len(design.slopes) == design.width
        assert {"labels": set(y) <= {0.0, 1.0}, "counts": y.min() >= 0, "line": True}[design.kind]


@repeated
def test_it_measures_coverage() -> None:
    """In make slow on enough tables to see a coverage of nine in ten."""
    tables = often(2, 60)
    small = [replace(DESIGNS[1], rows=1000, epsilon=4.0)]
    (found,) = run(tables, small)
    assert 0 <= found.slopes <= 1
    assert found.peer_width is not None
    assert found.peer_width > found.width > 0.5
    if tables > 2:
        assert found.slopes > 0.9
        assert found.rejected < 0.1


@pytest.mark.slow
def test_where_there_is_too_little_budget_intervals_have_no_bounds() -> None:
    (found,) = run(3, [design for design in DESIGNS if design.name == "too little budget"])
    assert found.unbounded > 0.5
    assert found.slopes == 1.0
