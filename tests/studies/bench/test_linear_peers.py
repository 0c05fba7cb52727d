"""Published ways to a line: without noise to speak of they are least squares, and noise grows as epsilon falls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snugdp.noise import Simulation
from snugdp_studies.bench.linear_peers import _hiding_eigenvalue, boosted_adassp, hessian_mixing
from snugdp_studies.bench.regression import made_up

WAYS = [boosted_adassp, hessian_mixing]


@pytest.mark.parametrize("way", WAYS)
def test_they_are_least_squares_where_epsilon_is_large_and_worse_where_it_is_small(way: Callable[..., Any]) -> None:
    X, y = made_up(4000, 4, heavy=False)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    near, far = (np.abs(way(X, y, epsilon, 1e-6, Simulation(1)) - exact).max() for epsilon in (100.0, 0.5))
    assert near < 0.05 < far


def test_sketches_need_rows_that_hide_more_the_smaller_epsilon_is() -> None:
    levels = [_hiding_eigenvalue(epsilon, 1e-6, 108) for epsilon in (0.1, 1.0, 10.0)]
    assert levels[0] > 5 * levels[1] > 5 * levels[2]
    assert levels[2] > 2
