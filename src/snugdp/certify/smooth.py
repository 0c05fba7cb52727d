"""The test by smooth sensitivity: a loss whose local sensitivity itself varies slowly. Proof: ``smooth.proof.md``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.accounting import gaussian, renyi
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.noise import Gaussian, Noise
from snugdp.noise.grid import grid_below
from snugdp.noise.number import number
from snugdp.numerics.rationals import Real, float_up, rational
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
_DIGITS = 40  # bits kept of ln S, which needs a rational image
_MAX_FLOAT = Fraction(sys.float_info.max)
_SLACK = Fraction(1, 2**38)  # what the image may add to the sensitivity beta of ln S (proof, line 2)


@dataclass(frozen=True)
class SmoothBound(Generic[Data]):
    """A private upper bound on a data-dependent loss with a smooth bound on its local sensitivity.

    ``sensitivity`` must satisfy S(X) <= exp(beta) S(X') for neighbours and bound the local sensitivity of ``loss``;
    it is clipped to [``floor``, ``ceiling``], which keeps it smooth, so the ceiling must be the global sensitivity of
    the loss. ``beta`` and ``order`` are fixed before the data are looked at.

    Guarantee: the bound is too small with probability at most ``failure``, and costs ``cost``: mu = 1/sigma_scale
    for ln S, and the Renyi cost of the loss itself, converted once at ``order`` with ``conversion`` delta.
    """

    loss: Callable[[Data], Any]
    sensitivity: Callable[[Data], Any]
    beta: Fraction
    sigma: Fraction
    sigma_scale: Fraction
    order: Fraction
    conversion: Fraction
    failure: Fraction
    floor: float
    ceiling: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        for name in ("beta", "sigma", "sigma_scale", "order", "conversion", "failure"):
            object.__setattr__(self, name, rational(getattr(self, name), name))
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than 0")
        if self.beta < Fraction(1, 10**6):
            raise ValueError("beta must be at least 1e-6")
        for name in ("floor", "ceiling"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 < self.floor < self.ceiling < 1e300:
            raise ValueError("floor and ceiling must satisfy 0 < floor < ceiling < 1e300, both public")
        if not self.failure < 1 or not self.conversion < 1:
            raise ValueError("failure and conversion are probabilities: they must be less than 1")
        if self.order <= 1 or float(self.order) >= 1 / -math.expm1(-2 * float(self.beta)):
            raise ValueError("order must be above 1 and below 1/(1 - exp(-2 beta)): lower the order or beta")

    @property
    def cost(self) -> Cost:
        """A mu for the scale; epsilon and delta for the loss by one Renyi conversion; the failure probability."""
        rho = renyi.smooth_gaussian(self.order, self.beta, self.sigma)
        epsilon = renyi.epsilon(self.order, rho, self.conversion)
        return Cost(
            mu=1 / self.sigma_scale,
            epsilon=max(epsilon, 0.0),
            delta=self.conversion + self.failure,
            neighbours=self.neighbours,
        )

    def certify(self, data: Secret[Data], noise: Noise) -> float:
        """Draw the upper bound on the loss."""
        half = self.failure / 2
        spread = (self.beta + _SLACK) * self.sigma_scale
        grid, fine = grid_below(spread), grid_below(Fraction(self.floor) * self.sigma)
        scale = data.map(self._scale)  # 1
        log_scale = noise.add(scale.map(_log), Gaussian(spread), grid=grid)  # 2
        noisy = noise.add(data.map(self._loss), Gaussian(self.sigma), grid=fine, stretch=scale)  # 3
        top = log_scale + Fraction(gaussian.threshold(spread, half)) + Fraction(2) ** (grid - 1) + _SLACK
        largest = min(math.exp(min(float(top), 709.0)), self.ceiling)  # S is at most this, but for probability half
        width = Fraction(gaussian.threshold(self.sigma, half)) * Fraction(largest)
        return float_up(noisy + Fraction(2) ** (fine - 1) + width * (1 + _SLACK))

    def _scale(self, data: Data) -> Fraction:
        """S, clipped to the public range [floor, ceiling] and kept as an exact number."""
        value = number(self.sensitivity(data))
        low, high = Fraction(self.floor), Fraction(self.ceiling)
        return high if value != value else Fraction(min(max(value, low), high))  # noqa: PLR0124

    def _loss(self, data: Data) -> Fraction:
        """The loss as an exact number within the floats; what is not finite is the largest, and never certified."""
        value = number(self.loss(data))
        return max(-_MAX_FLOAT, min(value, _MAX_FLOAT)) if isinstance(value, Fraction) else _MAX_FLOAT


def _log(scale: Fraction) -> Fraction:
    """The logarithm of S on a fixed fine grid."""
    return Fraction(round(math.log(scale) * 2**_DIGITS), 2**_DIGITS)


def smooth_bound(
    loss: Callable[[Data], Any],
    sensitivity: Callable[[Data], Any],
    *,
    beta: Real,
    sigma: Real,
    sigma_scale: Real,
    order: Real,
    delta: Real,
    between: tuple[float, float],
    neighbours: Neighbours,
) -> SmoothBound[Data]:
    """A ``SmoothBound`` whose delta is split evenly between the Renyi conversion and the failure of the bound."""
    half = rational(delta, "delta") / 2
    return SmoothBound(
        loss=loss,
        sensitivity=sensitivity,
        beta=rational(beta, "beta"),
        sigma=rational(sigma, "sigma"),
        sigma_scale=rational(sigma_scale, "sigma_scale"),
        order=rational(order, "order"),
        conversion=half,
        failure=half,
        floor=between[0],
        ceiling=between[1],
        neighbours=neighbours,
    )
