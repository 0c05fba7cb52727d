"""Samples against the law that is declared: p-values of scale, place, shape and cells, and how many draws they need."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from snugdp.audit.finding import Finding
from snugdp.audit.laws.goodness import cells_p, normal_p, verdict
from snugdp.noise import Continuous, Gaussian, Laplace, Law
from snugdp_studies.audit.laws import reference

Floats = NDArray[np.float64]
_SURE = 12.0  # deviations: beyond the critical 5.3, so that a planted mistake is missed as rarely as that


@dataclass(frozen=True)
class LawEffort:
    """How small a wrong scale must be found: at sites that draw many numbers at once, one by one, or only decide.

    ``single``: numbers one at a time. ``coin``: decisions one at a time. ``slow``: what takes a millisecond.
    """

    many: float = 0.03
    single: float = 0.12
    coin: float = 0.3
    slow: float = 0.12


LIGHT = LawEffort(many=0.05, single=0.2, coin=0.4, slow=0.2)  # for unit tests
QUICK = LawEffort()
FULL = LawEffort(many=0.015, single=0.03, coin=0.07, slow=0.04)


SHAPES = 9000  # draws, from which on another shape of the same variance is found as surely


def size(information: float, deviation: float) -> int:
    """How many draws are needed to find a scale that is wrong by this much, as surely as tests here are."""
    return math.ceil((_SURE / deviation) ** 2 / information)


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
