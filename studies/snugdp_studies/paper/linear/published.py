"""The baselines of the paper's first figure as published: NOT PRIVATE, in floats, on data as they are.

The paper names them and cites; the formulas are those of the cited papers and their public code, as read. Rows have
norm at most 1 and targets lie in [-1, 1]. Labels such as L9 are those of ``docs/errata.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import Gaussian, Simulation
from snugdp.secrecy.secret import Secret
from snugdp_studies.paper.linear.experiment import (
    NotPrivateFit,
    not_private_adaops_lambda_min,
    not_private_adaops_norm_cap,
    not_private_grid,
    not_private_lipschitz_sensitivity,
    not_private_ops_gamma,
    not_private_release_scales,
)

Floats = NDArray[np.float64]
_STEP = 40  # bits of a standard normal
_DOUBT = 0.05  # the chance that the cited papers leave their forecasts to be wrong


@dataclass(frozen=True, eq=False)
class NotPrivateSums:
    """X'X by its eigenvectors, X'y along them, and the number of rows, which is private when rows come and go (L9)."""

    values: Floats
    vectors: Floats
    right: Floats
    rows: int

    @classmethod
    def of(cls, X: Floats, y: Floats) -> NotPrivateSums:
        """The sums of public rows."""
        values, vectors = np.linalg.eigh(X.T @ X)
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ (X.T @ y), len(y))

    def mean(self, ridge: float) -> Floats:
        """The ridge fit, along the eigenvectors."""
        return np.asarray(self.right / (self.values + ridge))

    def sample(self, ridge: float, gamma: float, noise: Simulation) -> Floats | None:
        """One posterior sample; None where the formulas leave no gamma."""
        if not gamma > 0:
            return None
        spread = _normals(noise, len(self.values)) / np.sqrt(gamma * (self.values + ridge))
        return np.asarray(self.vectors @ (self.mean(ridge) + spread))


def not_private_ops_balanced(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """OPS-Balanced of Wang 2018: a ridge that balances noise and shrinking for the worst data of so many rows.

    NOT PRIVATE: it uses the number of rows (L9), and gamma comes from a formula that is no upper bound (L1).
    """
    n, log = sums.rows, math.log(2 / delta)
    cost = _forecast(min(epsilon / 2, math.sqrt(epsilon / 2)), log, len(sums.values))
    ridge = max((cost * n / 2) ** (1 / 3), (1 + log) / epsilon)
    lipschitz = 1 + min(math.sqrt(n / (2 * ridge)), n / ridge)
    gamma = not_private_ops_gamma(epsilon, lipschitz, ridge, delta)
    return NotPrivateFit(sums.sample(ridge, gamma, noise), ridge, gamma, 0.0, lipschitz)


def not_private_adaops(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """AdaOPS of Wang 2018: lambda_min released, the ridge with the least forecast, the norm released, one sample.

    NOT PRIVATE: its bound of lambda_min fails too often, its cap on the norm is false (C13), and the rest is as in
    OPS-PTR (L1, L2, L4).
    """
    log = math.log(6 / delta)
    lowest = not_private_adaops_lambda_min(float(sums.values[0]), epsilon, delta, _normals(noise, 1)[0])
    room = (-1 + math.sqrt(1 + log * epsilon / 2)) / log  # what half of the sample's share allows
    cost, power = _forecast(room, log, len(sums.values)), 2 * log / (epsilon / 4)

    def forecast(log_ridge: float) -> float:
        whole = math.exp(log_ridge) + lowest
        return math.log(cost / whole * math.exp(min(power * math.log1p(1 / whole), 600.0)) + math.exp(log_ridge))

    least = max((1 + log) / (epsilon / 2) - lowest, 1e-3)
    ridge = math.exp(_lowest(forecast, math.log(least), math.log(1e9)))
    unit = not_private_lipschitz_sensitivity(ridge + lowest) / (epsilon / 4)
    size = math.log(1 + float(np.linalg.norm(sums.mean(ridge))))
    bound = size + unit * (math.sqrt(log) * _normals(noise, 1)[0] + log)
    lipschitz = min(math.exp(min(bound, 300.0)), 1 + not_private_adaops_norm_cap(sums.rows, ridge + lowest))
    gamma = not_private_ops_gamma(epsilon / 2, lipschitz, ridge + lowest, delta / 3)
    return NotPrivateFit(sums.sample(ridge, gamma, noise), ridge, gamma, lowest, lipschitz)


def not_private_adassp(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """AdaSSP of Wang 2018, which the paper does not draw: noisy X'X and X'y, a ridge from the noisy lambda_min.

    NOT PRIVATE: floats and seeded noise. The proof of each third of its budget is that of L2; together the three cost
    less than it says.
    """
    d, log = len(sums.values), math.log(6 / delta)
    unit = not_private_release_scales(4 * epsilon / 3, delta).noise  # sqrt(log(6/delta)) / (epsilon/3)
    lowest = max(0.0, float(sums.values[0]) + unit * (_normals(noise, 1)[0] - math.sqrt(log)))
    ridge = max(0.0, unit * math.sqrt(d * math.log(2 * d**2 / _DOUBT)) - lowest)
    right = sums.right + unit * _normals(noise, d)  # isotropic: the same along eigenvectors
    square = _normals(noise, d * d).reshape(d, d)
    gram = np.diag(sums.values + ridge) + unit * (square + square.T) / 2
    return NotPrivateFit(sums.vectors @ np.linalg.solve(gram, right), ridge, math.inf, lowest, math.inf)


def not_private_output_perturbation(
    sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation
) -> NotPrivateFit:
    """Output perturbation: the ridge fit plus Gaussian noise for the worst data of so many rows.

    The paper says "an appropriate lambda"; here it is the one of the paper's grid with the least forecast error.
    NOT PRIVATE: it uses the number of rows (L9), and sqrt(2 log(1.25/delta))/epsilon is Gaussian noise for epsilon
    below 1 only.
    """
    n, factor = sums.rows, math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    def scale(ridge: float) -> float:
        return (1 + min(math.sqrt(n / ridge) / 2, n / ridge)) / ridge * factor

    ridge = min(not_private_grid(), key=lambda ridge: n * scale(ridge) ** 2 + ridge)
    theta = sums.vectors @ (sums.mean(ridge) + scale(ridge) * _normals(noise, len(sums.values)))
    return NotPrivateFit(theta, ridge, math.inf, 0.0, scale(ridge) * ridge / factor)


def _forecast(epsilon: float, log: float, columns: int) -> float:
    """The constant before 1/lambda in the forecast error of the cited paper."""
    doubt = math.log(1 / _DOUBT)
    return (columns / 2 + math.sqrt(columns * doubt) + doubt) * log / epsilon**2


def _lowest(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is lowest, by thirds."""
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return low


def _normals(noise: Simulation, number: int) -> Floats:
    """Standard normals, to a public number of bits."""
    if getattr(noise, "private", True):
        raise ValueError("what was published is NOT PRIVATE: it runs with snugdp.Simulation(seed) only")
    drawn = noise.add_integers(Secret([0] * number), Gaussian(Fraction(2) ** _STEP))
    return np.array([math.ldexp(value, -_STEP) for value in drawn])
