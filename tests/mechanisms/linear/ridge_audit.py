"""The exact law of the ridge methods on tables of one column, from the library's own steps, by quadrature.

Every draw of noise is replaced by a chosen quantile. For given quantiles the steps are deterministic, and the last one
is a normal law whose hockey stick has a closed form; the rest is an integral over the quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.ridge import OutputPerturbation, PosteriorSampling
from snugdp.noise import Gaussian
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import RowMap
from tests.accounting.output.test_posterior import gauss, hockey

Array = NDArray[np.float64]
Method = PosteriorSampling | OutputPerturbation
DESIGN = Design(RowMap(1, 1, 1, bits=20))


def moments(rows: list[tuple[float, float]], design: Design = DESIGN) -> Moments:
    """The statistics of rows (x, y) with one feature."""
    found = Moments(design.row_map.limits)
    X, y = np.array([[x] for x, _ in rows]).reshape(-1, 1), np.array([y for _, y in rows])
    for V, w in design.row_map.blocks(X, y):
        found.add(V, V, w)
    return found


@dataclass
class Quantiles:
    """A source whose Gaussian draws are given; it remembers what was added to what. For audits alone."""

    given: list[float]
    values: list[float] = field(default_factory=list)
    sigmas: list[float] = field(default_factory=list)
    private = False

    def at(self, step: str) -> Quantiles:
        return self

    def add(self, value: Secret[Any], law: Gaussian, *, grid: int = 0, stretch: Any = None) -> Fraction:
        self.values.append(float(unwrap(value)))
        self.sigmas.append(float(law.sigma))
        return Fraction(unwrap(value)) + law.sigma * Fraction(self.given[len(self.values) - 1])


def solved(data: Moments, ridge: float) -> tuple[float, float]:
    """theta* and H of one column."""
    unit = float(DESIGN.unit**2)
    curvature = data.gram()[0][0] * unit + ridge
    return data.cross()[0] * unit / curvature, curvature


def audit(
    method: Method, one: Moments, other: Moments, epsilon: float, *, points: int = 121, shrink: float = 1.0
) -> float:
    """The delta at epsilon of the whole output, ``one`` against ``other``; all noise ``shrink`` times as wide as drawn.

    The trapezoidal rule over normal quantiles between -9 and 9.
    """
    z = np.linspace(-9, 9, points)
    weights = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    test: Any = method._test
    if not test.split.mu_curvature:
        return _given(method, one, other, epsilon, None, z, weights, shrink)
    total = 0.0
    coarse = slice(None, None, 4)  # quantiles of the first release: each needs a search for the strength
    for quantile, weight in zip(z[coarse].tolist(), weights[coarse].tolist(), strict=True):
        total += 4 * weight * _given(method, one, other, epsilon, quantile, z, weights, shrink)
    return total


def _given(  # noqa: PLR0917
    method: Method,
    one: Moments,
    other: Moments,
    epsilon: float,
    first: float | None,
    z: Array,
    weights: Array,
    shrink: float,
) -> float:
    """The same, given the quantile of the first release, integrated over the second."""
    test: Any = method._test
    start = [] if first is None else [first * shrink]
    noise: Any = Quantiles([*start, 0.0])
    middle = test.certify(Secret(one), noise)
    loss = np.zeros_like(z)
    if first is not None:
        gap = (noise.values[0] - _least(other)) / (noise.sigmas[0] * shrink)
        loss += gap * first + gap * gap / 2
    (theta, H), (moved, K) = solved(one, middle.ridge), solved(other, middle.ridge)
    gap = (math.log(1 + abs(theta)) - math.log(1 + abs(moved))) / (noise.sigmas[-1] * shrink)
    loss += gap * z + gap * gap / 2
    residuals = middle.residual * np.exp(np.minimum(noise.sigmas[-1] * shrink * z, 300.0))
    last = _last(method, middle, residuals)
    inner = np.where(last > 0, 0.0, np.maximum(0.0, -np.expm1(epsilon - loss)))  # refused on both sides
    drawn = last > 0
    level = epsilon - loss[drawn]
    if isinstance(method, PosteriorSampling):
        far = (moved - theta) * np.sqrt(last[drawn] * H) / shrink
        inner[drawn] = hockey(far, np.array(H / K), level)
    else:
        inner[drawn] = [
            gauss(abs(moved - theta) * rate / shrink, e) for rate, e in zip(last[drawn], level, strict=True)
        ]
    return float((weights * inner).sum())


def _least(data: Moments) -> float:
    return data.gram()[0][0] * float(DESIGN.unit**2)


def _last(method: Method, middle: Any, residuals: Array) -> Array:
    """gamma of the sample, or one over the deviation of the noise, at every residual; zero for a refusal."""
    changed: Callable[[float], Any] = lambda size: type(middle)(middle.curvature, middle.ridge, size)  # noqa: E731
    if isinstance(method, PosteriorSampling):
        return np.array([float(method._mechanism.allowed(changed(size)) or 0) for size in residuals.tolist()])
    return np.array([1 / float(method._mechanism.sigma(changed(size))[0]) for size in residuals.tolist()])
