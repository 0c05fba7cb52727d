"""Statistics that a sampler must pass at its declared scale and fail at any other."""

import itertools
import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import erf, exp, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from snugdp.noise import (
    Continuous,
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Gumbel,
    Laplace,
    Law,
    pmf,
    rounded_pmf,
)
from snugdp.noise.exact import entropy
from tests.effort import often

ALPHA = 1e-7  # false alarms of one statistic on a correct sampler
WRONG = [Fraction(4, 5), Fraction(5, 4)]  # scales that must be found out
WRONG_FEW = WRONG if often(0, 1) else [Fraction(2, 3), Fraction(3, 2)]  # and those that fewer draws find out

LAWS: list[Law] = [Laplace(4), Gaussian(4), Gumbel(4), DiscreteLaplace("9/2"), DiscreteGaussian("49/3")]
CONTINUOUS: list[Laplace | Gaussian | Gumbel] = [Laplace(4), Gaussian(4), Gumbel(4)]


def spread(law: Law) -> float:
    """The scale of the law, or its standard deviation."""
    if isinstance(law, Gaussian):
        return float(law.sigma)
    return sqrt(law.variance) if isinstance(law, DiscreteGaussian) else float(law.scale)


def draws(n: int) -> int:
    """As many as ``WRONG`` takes, or ``WRONG_FEW``."""
    return often(2 * n // 5, n)


def probability(law: Law, m: int) -> float:
    return pmf(law, m) if isinstance(law, Discrete) else rounded_pmf(law, m)


@cache
def cells(law: Law) -> dict[int, float]:
    """The law of the rounded noise, out to where nothing is left."""
    reach = int(45 * spread(law)) + 3
    return {m: p for m in range(-reach, reach + 1) if (p := probability(law, m)) > 1e-18}


def scale_p(values: Sequence[int], law: Law) -> float:
    """Two-sided p-value of the mean size against the declared one."""
    table = cells(law)
    mean = sum(abs(m) * p for m, p in table.items())
    variance = sum(m * m * p for m, p in table.items()) - mean**2
    z = (np.mean(np.abs(np.array(values, dtype=np.float64))) - mean) / sqrt(variance / len(values))
    return float(2 * stats.norm.sf(abs(z)))


def cells_p(values: Sequence[int], law: Law, least: float = 40.0) -> float:
    """p-value of the counts against the declared probabilities; thin cells are joined to their neighbours."""
    counts = Counter(values)
    table = cells(law)
    observed, expected = [0.0], [0.0]
    for m, p in table.items():
        if expected[-1] >= least:
            observed.append(0.0)
            expected.append(0.0)
        observed[-1] += counts[m]
        expected[-1] += p * len(values)
    observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    observed[0] += len(values) - sum(observed)  # outside the table altogether
    return chi2_p(observed, expected)


def chi2_p(observed: Sequence[float], expected: Sequence[float]) -> float:
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def suspicious(values: Sequence[int], law: Law) -> bool:
    """Whether the rounded draws cannot have come from the law."""
    return min(scale_p(values, law), cells_p(values, law)) < ALPHA


def rate_p(successes: int, n: int, probability: float) -> float:
    return float(stats.binomtest(successes, n, probability).pvalue)


def two_sample_p(one: Sequence[int], other: Sequence[int], least: int = 80) -> float:
    """p-value of two samples of the same size being from one law."""
    first, second = Counter(one), Counter(other)
    rows: list[list[int]] = [[0, 0]]
    for m in sorted(first | second):
        if sum(rows[-1]) >= least:
            rows.append([0, 0])
        rows[-1][0] += first[m]
        rows[-1][1] += second[m]
    rows[-2:] = [[rows[-2][0] + rows[-1][0], rows[-2][1] + rows[-1][1]]]
    return float(stats.chi2_contingency(np.array(rows).T).pvalue)


def winning(law: Continuous, lead: float) -> float:
    """P(the first of two scores wins) when it leads by ``lead``."""
    t = lead / spread(law)
    if isinstance(law, Gumbel):
        return 1 / (1 + exp(-t))
    if isinstance(law, Gaussian):
        return (1 + erf(t / 2)) / 2
    return 1 - exp(-t) * (2 + t) / 4


def replay(monkeypatch: pytest.MonkeyPatch, seen: dict[int, NDArray[np.uint64]]) -> None:
    """Let every call for words give what the same call gave the time before."""
    position = itertools.count()

    def words(n: int) -> NDArray[np.uint64]:
        turn = next(position)
        if turn not in seen or len(seen[turn]) != n:
            seen[turn] = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        return seen[turn]

    monkeypatch.setattr(entropy, "words", words)
