"""Histograms on a logarithmic scale: the bins of a search among the edges, from exponents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snugdp.tables.passes.vectors import distances


@pytest.mark.parametrize("top", [1.0, 3.0, 1234567.0, 2.0**20, 2.0**42 - 1])
@pytest.mark.parametrize("count", [2, 3, 5, 24, 80])
@pytest.mark.parametrize("halves", [False, True])
def test_bins_are_those_of_a_search(top: float, count: int, halves: bool) -> None:
    if halves:
        edges = [math.ldexp(top * (math.sqrt(0.5) if k % 2 else 1.0), -(k // 2)) for k in range(1, count)]
    else:
        edges = [math.ldexp(top, -k) for k in range(1, count)]
    near = [np.array(edges), np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)]
    spread = np.exp(np.random.default_rng(count).uniform(-40, math.log(top) + 2, 3000))
    sizes = np.concatenate([[0.0, 5e-324, top, 2 * top, 1e300, np.inf, np.nan], *near, spread, np.arange(50.0)])
    searched = len(edges) - np.searchsorted(edges[::-1], sizes, side="right")
    assert distances._binned(sizes, edges) == np.bincount(searched, minlength=count).tolist()
    assert distances._binned(np.empty(0), edges) == [0] * count
