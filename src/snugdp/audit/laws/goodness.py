"""Statistics that a correct sampler passes and a wrong one fails, and the verdict that demands both.

A test that cannot fail proves nothing: every verdict names planted mistakes, and the same statistic must find them in
the same sample. Otherwise the finding has not passed, because it is too weak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from snugdp.audit.bounds import ALPHA
from snugdp.audit.finding import Finding

Floats = NDArray[np.float64]

_MIN_EXPECTED_DRAWS = 40.0  # draws expected in a cell


def verdict(
    layer: str, case: str, claim: str, clean: Mapping[str, float], planted: Mapping[str, float], *, alpha: float = ALPHA
) -> Finding:
    """Passed iff no clean p-value is below ``alpha`` and every planted mistake is.

    >>> print(verdict("S", "add", "Laplace(1)", {"scale": 0.3}, {"x 0.97": 1e-12}))
    ok     S add: Laplace(1); p >= 0.3 in 1 test(s); finds x 0.97
    >>> verdict("S", "add", "Laplace(1)", {"scale": 0.3}, {"x 0.97": 0.01}).detail
    'too weak: x 0.97 was not found (p = 0.01)'
    """
    wrong = {name: p for name, p in clean.items() if not p >= alpha}
    missed = {name: p for name, p in planted.items() if not p < alpha}
    detail = ""
    if wrong:
        detail = "wrong: " + ", ".join(f"{name} (p = {p:.2g})" for name, p in wrong.items())
    elif missed:
        detail = "too weak: " + ", ".join(f"{name} was not found (p = {p:.2g})" for name, p in missed.items())
    least = min(clean.values(), default=math.nan)
    measured = f"p {'>=' if not wrong else 'down to'} {least:.2g} in {len(clean)} test(s)"
    found = [name for name in planted if name not in missed]
    return Finding(
        layer,
        case,
        claim,
        measured + (f"; finds {', '.join(found)}" if found else ""),
        not wrong and not missed,
        detail,
    )


def normal_p(z: float) -> float:
    """Two-sided p-value of a number that should be standard normal."""
    return math.erfc(abs(z) / math.sqrt(2)) if math.isfinite(z) else 0.0


def rate_p(successes: int, n: int, chance: float) -> float:
    """Two-sided p-value of a number of successes: twice the smaller tail."""
    low, high = stats.binom.cdf(successes, n, chance), stats.binom.sf(successes - 1, n, chance)
    return float(min(1.0, 2 * min(low, high)))


def cells_p(observed: ArrayLike, chances: ArrayLike) -> float:
    """p-value of counts against probabilities, in order; thin cells are joined to their neighbours."""
    counts, shares = np.asarray(observed, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    expected = shares * counts.sum()
    if (counts[shares <= 0] > 0).any():
        return 0.0
    groups = _joined(expected)
    seen, hoped = np.bincount(groups, counts), np.bincount(groups, expected)
    if len(seen) < 2:
        return 1.0
    return float(stats.chi2.sf(((seen - hoped) ** 2 / hoped).sum(), len(seen) - 1))


def two_samples_p(one: ArrayLike, other: ArrayLike, *, least: float = 2 * _MIN_EXPECTED_DRAWS) -> float:
    """p-value of two rows of counts over the same cells coming from one law; cells below ``least`` are joined."""
    table = np.array([one, other], dtype=np.float64)
    both = table.sum(axis=0)
    if not both.sum() or not table.sum(axis=1).all():
        return 1.0
    groups = _joined(both, least)
    merged = np.array([np.bincount(groups, row) for row in table])
    if merged.shape[1] < 2:
        return 1.0
    expected = np.outer(merged.sum(axis=1), merged.sum(axis=0)) / merged.sum()
    return float(stats.chi2.sf(((merged - expected) ** 2 / expected).sum(), merged.shape[1] - 1))


def _joined(expected: Floats, least: float = _MIN_EXPECTED_DRAWS) -> NDArray[np.int64]:
    """The group of each cell: neighbours together until a group has enough."""
    groups, at, have = np.zeros(len(expected), dtype=np.int64), 0, 0.0
    for i, share in enumerate(expected.tolist()):
        groups[i] = at
        have += share
        if have >= least:
            at, have = at + 1, 0.0
    if at and have < least:
        groups[groups == at] = at - 1  # what is left at the end is too thin for a group of its own
    return groups
