"""Statistics that a correct sampler passes and a wrong one fails, and the verdict that demands both.

A test that cannot fail proves nothing: every verdict names planted mistakes, and the same statistic must find them in
the same sample. Otherwise the finding has not passed, because it is too weak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from snugdp.audit.finding import Finding
from snugdp.audit.laws import reference
from snugdp.noise import Continuous, Gaussian, Laplace, Law

Floats = NDArray[np.float64]

ALPHA = 1e-7  # false alarms of one test
_SURE = 12.0  # deviations: beyond the critical 5.3, so that a planted mistake is missed as rarely as that
_LEAST = 40.0  # draws expected in a cell


@dataclass(frozen=True)
class LawEffort:
    """How small a wrong scale must be found: at sites that draw many numbers at once, one by one, or only decide.

    ``single``: numbers one at a time. ``coin``: decisions one at a time. ``slow``: what takes a millisecond.
    """

    many: float = 0.03
    single: float = 0.12
    coin: float = 0.3
    slow: float = 0.12


QUICK = LawEffort()
FULL = LawEffort(many=0.015, single=0.03, coin=0.07, slow=0.04)


SHAPES = 9000  # draws, from which on another shape of the same variance is found as surely


def size(information: float, deviation: float) -> int:
    """How many draws are needed to find a scale that is wrong by this much, as surely as tests here are."""
    return math.ceil((_SURE / deviation) ** 2 / information)


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


def two_samples_p(one: ArrayLike, other: ArrayLike, *, least: float = 2 * _LEAST) -> float:
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


def uniform_p(u: Floats) -> float:
    """Kolmogorov's p-value of numbers that should be uniform."""
    ordered, n = np.sort(u), len(u)
    steps = np.arange(n + 1) / n
    farthest = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    return float(special.kolmogorov(math.sqrt(n) * farthest))


def scale_p(residuals: Floats, law: Continuous) -> float:
    """p-value of the size of the noise: chi-squared for a Gaussian, Gamma for a Laplace law."""
    z, n = residuals / reference.spread(law), len(residuals)
    if isinstance(law, Gaussian):
        return _two_sided(stats.chi2(n), float(z @ z))
    if isinstance(law, Laplace):
        return _two_sided(stats.gamma(n), float(np.abs(z).sum()))
    score, _ = reference.scores(law, residuals)
    return normal_p(float(score.sum()) / math.sqrt(n * reference.information(law)))


def place_p(residuals: Floats, law: Continuous) -> float:
    """p-value of the place of the noise."""
    _, score = reference.scores(law, residuals)
    return normal_p(float(score.sum()) / math.sqrt(len(residuals)))


def real_noise(case: str, residuals: Floats, law: Continuous, deviation: float) -> Finding:
    """The verdict on residuals of a continuous law on a fine grid: scale, place and shape."""
    wrong = reference.other_shape(law)
    shift = 1.5 * deviation * reference.spread(law)
    clean = {
        "scale": scale_p(residuals, law),
        "place": place_p(residuals, law),
        "shape": uniform_p(reference.below(law, residuals)),
    }
    planted = {
        f"x {1 - deviation:.3g}": scale_p((1 - deviation) * residuals, law),
        f"x {1 + deviation:.3g}": scale_p((1 + deviation) * residuals, law),
        "a shift": place_p(residuals + shift, law),
        "another shape": uniform_p(reference.below(wrong, residuals - reference.centre(law))),
    }
    return verdict("S", case, f"exactly {told(law)}", clean, planted)


def whole_noise(case: str, residuals: NDArray[np.int64], law: Law, deviation: float) -> Finding:
    """The verdict on whole residuals of a discrete law, or of a continuous one that was rounded."""
    clean = whole_p(residuals, law)
    planted = {
        f"x {factor:.3g}": whole_p(residuals, reference.scaled(law, 1 / factor))["scale"]
        for factor in (1 - deviation, 1 + deviation)
    }
    planted["zero counted twice"] = whole_p(residuals, law, twice=True)["cells"]
    return verdict("S", case, f"exactly {told(law)} on whole numbers", clean, planted)


def whole_p(residuals: NDArray[np.int64], law: Law, twice: bool = False) -> dict[str, float]:
    """p-values of scale, place and cells; ``twice`` for a law in which zero has twice its weight."""
    m, chances, score = reference.cell_scores(law)
    if twice:
        chances = np.where(m == 0, 2 * chances, chances)
        chances /= chances.sum()
    low, n = int(m[0]), len(residuals)
    at = np.clip(residuals - low, 0, len(m) - 1)
    observed = np.bincount(at, minlength=len(m))
    inside = not ((residuals < low) | (residuals > m[-1])).any()
    mean = float(m @ chances)
    return {
        "scale": normal_p(float(score @ observed) / math.sqrt(n * float(score**2 @ chances))),
        "place": normal_p(float((m - mean) @ observed) / math.sqrt(n * float((m - mean) ** 2 @ chances))),
        "cells": cells_p(observed, chances) if inside else 0.0,
    }


def decision_information(law: Law, x: float) -> float:
    """What one decision Z >= x says about the logarithm of the scale."""
    chance, slope = _decision(law, x)
    return slope**2 / max(chance * (1 - chance), 1e-300)


def decisions(counts: Sequence[tuple[float, int, int]], law: Law) -> float:
    """p-value of the scale behind decisions Z >= x: for each x how many of how many were reached, weighted best."""
    total = variance = 0.0
    for x, reached, n in counts:
        chance, slope = _decision(law, x)
        room = max(chance * (1 - chance), 1e-300)
        total += (reached - n * chance) * slope / room
        variance += n * slope**2 / room
    return normal_p(total / math.sqrt(variance)) if variance else 1.0


def told(law: Law) -> str:
    """The law for people.

    >>> from snugdp.noise import DiscreteGaussian
    >>> told(DiscreteGaussian("49/3"))
    'DiscreteGaussian(49/3)'
    """
    (value,) = vars(law).values()
    return f"{type(law).__name__}({value})"


def _decision(law: Law, x: float) -> tuple[float, float]:
    """The chance of Z >= x, and its derivative by the logarithm of the scale."""
    wide, narrow = (reference.tail(reference.scaled(law, factor), x) for factor in (1.01, 0.99))
    return reference.tail(law, x), (wide - narrow) / 0.02


def _two_sided(law: stats.rv_continuous, value: float) -> float:
    return float(min(1.0, 2 * min(law.cdf(value), law.sf(value))))


def _joined(expected: Floats, least: float = _LEAST) -> NDArray[np.int64]:
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
