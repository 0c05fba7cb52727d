"""How the regulariser of the ridge methods is chosen: from public numbers and the released curvature alone.

Nothing here is private, so nothing needs a proof beyond that; ``posterior.proof.md``, Lemma 3, takes any rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.output.posterior_search import rho_guess
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.ridge_test import Rule, Split
from snugdp.numerics.rationals import Real, rational

_OVERSHOOT = 0.5  # how far the bound on log residuals may lie above them, in logarithms
_ROUGH = 11  # halvings for a forecast: a hundredth
_WIDEST = 2.0**24  # regularisers that are looked at, beside the squared norm of a row
_ZOOMS = 3
_NODES = 9


@dataclass(frozen=True)
class Setting:
    """What a rule may know: the design, the split of the budget, a public guess of the number of rows."""

    design: Design
    split: Split
    rows: int | None = None

    @property
    def square(self) -> float:
        """A bound on the squared norm of a row."""
        return float(self.design.x_bound**2)

    def log_margin(self, ridge: float, curvature: float) -> float:
        """How far the released bound on log residuals lies above them, at the middle of its noise."""
        z = gaussian.threshold(1, self.split.fail_residual)
        sensitivity = math.log1p(self.square / (ridge + max(curvature - self.square, 0.0)))
        return sensitivity * z / float(self.split.mu_residual)

    def strength(self, ridge: float, curvature: float) -> float:
        """About how strong a sample may be; 0 for a refusal."""
        added = self.square / (ridge + curvature)
        removed = min(added, self.square / (ridge + self.square))
        mu, slack = math.sqrt(self.split.mu_release_squared), float(self.split.slack)
        return rho_guess(added, removed, mu, slack, _ROUGH)

    def error(self, ridge: float, curvature: float, rho: float) -> float:
        """About the sum of squared errors of predictions that noise and shrinking cause; infinite for a refusal.

        Coefficients are taken to be of the size B_y / B, and all directions to hold equally many of ``rows``; without
        a guess of rows, the worst number of them.
        """
        if not rho:
            return math.inf
        size = float(self.design.y_bound)
        residual = 2 * size * math.exp(min(self.log_margin(ridge, curvature), 300.0))
        noise = self.design.entries * (residual / rho) ** 2
        shrunk = size**2 / self.square * ridge
        if self.rows is None:
            return noise + shrunk / 4
        share = max(curvature, self.rows * self.square / self.design.entries)
        return noise * share / (share + ridge) + shrunk * share * ridge / (share + ridge) ** 2


def rule(ridge: Real | str | Sequence[Real] | None, setting: Setting) -> Rule:
    """The rule that a user's ``ridge`` names, checked."""
    if ridge is None:
        return lambda curvature: steady(setting, curvature)
    if ridge in ("adaptive", "balanced"):
        if ridge == "balanced" and setting.rows is None:
            raise ValueError('ridge="balanced" needs rows=..., a public guess of the number of rows')
        return lambda curvature: searched(setting, curvature)
    if isinstance(ridge, Sequence) and not isinstance(ridge, str):
        proposals = tuple(proposed(value) for value in ridge)
        if not proposals:
            raise ValueError("ridge has no numbers to choose from: give at least one")
        return lambda curvature: best(setting, curvature, proposals)
    number = proposed(ridge)
    return lambda curvature: number


def proposed(ridge: Real) -> Fraction:
    """A regulariser as typed, as near as a float is."""
    try:
        number = rational(ridge, "ridge")
    except ValueError:
        raise ValueError(
            'ridge must be a number, "balanced", "adaptive", or a sequence of numbers to choose from'
        ) from None
    if not Fraction(1, 10**40) < number < 10**40:
        raise ValueError("ridge must be above 0, such as 10, and between 1e-40 and 1e40")
    return Fraction(float(number))


def steady(setting: Setting, curvature: Fraction) -> Fraction:
    """The regulariser at which the bound on residuals overshoots by a factor of about 1.6; at least B squared."""
    z = gaussian.threshold(1, setting.split.fail_residual)
    needed = setting.square / math.expm1(_OVERSHOOT * float(setting.split.mu_residual) / z)
    rest = max(float(curvature) - setting.square, 0.0)
    return Fraction(max(needed - rest, setting.square))


@lru_cache(maxsize=256)
def best(setting: Setting, curvature: Fraction, proposals: tuple[Fraction, ...]) -> Fraction:
    """The proposal with the least forecast error; of equal ones, the largest."""
    ordered, known = sorted(proposals, reverse=True), float(curvature)
    strengths = _strengths(setting, [float(ridge) for ridge in ordered], known)
    errors = [setting.error(float(ridge), known, rho) for ridge, rho in zip(ordered, strengths, strict=True)]
    return ordered[errors.index(min(errors))]


def _strengths(setting: Setting, ridges: Sequence[float], curvature: float) -> list[float]:
    """The strength at every ridge, the largest first; for many ridges from a few of them: it hardly bends."""
    if len(ridges) <= _NODES:
        return [setting.strength(ridge, curvature) for ridge in ridges]
    nodes = np.geomspace(ridges[-1], ridges[0], _NODES)
    known = [setting.strength(float(ridge), curvature) for ridge in nodes]
    if not all(known):
        return [setting.strength(ridge, curvature) for ridge in ridges]
    found: list[float] = np.exp(np.interp(np.log(ridges), np.log(nodes), np.log(known))).tolist()
    return found


@lru_cache(maxsize=256)
def searched(setting: Setting, curvature: Fraction) -> Fraction:
    """About the regulariser with the least forecast error: a grid, and finer ones around the best."""
    low, high = math.log(setting.square / 16), math.log(setting.square * _WIDEST)
    for _ in range(_ZOOMS):
        step = (high - low) / 8
        grid = tuple(Fraction(math.exp(low + step * i)) for i in range(9))
        found = best(setting, curvature, grid)
        low, high = math.log(found) - step, math.log(found) + step
    return found
