"""Layer S for draws of whole vectors: the posterior around a linear system, and the minimiser of a tilted function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from snugdp.audit.finding import Finding
from snugdp.audit.laws.goodness import normal_p, verdict
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws.samples import LawEffort, place_p, scale_p, size, uniform_p

Floats = NDArray[np.float64]

_ONE = Gaussian(1)
_GRAM = ((900_000, 310_000, -150_000), (310_000, 420_000, 90_000), (-150_000, 90_000, 260_000))
_CROSS = (310_000, -77_000, 5)
_UNIT, _RIDGE, _GAMMA = Fraction(1, 1 << 18), Fraction(1, 20), Fraction(5, 2)
_GRID = -26


def posterior(noise: Noise, effort: LawEffort) -> Iterator[Finding]:
    """One system of three unknowns that is far from diagonal, at a precision that is not 1."""
    n = size(2 * len(_CROSS), effort.slow)
    gram, cross = Secret([list(row) for row in _GRAM]), Secret(list(_CROSS))
    drawn = [noise.posterior(gram, cross, unit=_UNIT, ridge=_RIDGE, precision=_GAMMA, grid=_GRID) for _ in range(n)]
    theta = np.array(drawn, dtype=np.float64)
    system = float(_UNIT) * np.array(_GRAM) + float(_RIDGE) * np.eye(len(_CROSS))
    mean = np.linalg.solve(system, float(_UNIT) * np.array(_CROSS))
    factor = np.linalg.cholesky(float(_GAMMA) * system)
    white = (theta - mean) @ factor
    turned = white @ np.linalg.inv(factor.T) @ factor  # as if L^-1 had been taken for L^-T
    planted = {
        **_other_scales(white, effort.slow),
        "the transposed factor": normals_p(turned)["correlations"],
        "Sigma for its root": normals_p(white @ np.linalg.inv(factor))["scale"],
        "a precision of half": normals_p(white / math.sqrt(2))["scale"],
        "a moved centre": normals_p(white + 2 * effort.slow)["place"],
    }
    yield verdict("S", "posterior", "N(A^-1 c, (gamma A)^-1), exactly", normals_p(white), planted)


def minimiser(noise: Noise, effort: LawEffort) -> Iterator[Finding]:
    """Of a quadratic and of a function with curved gradients: -grad F at what is released is N(0, sigma**2)."""
    sigma = Fraction(7, 4)
    for problem in (Curved(((3, 1, 0), (1, 2, -1), (0, -1, 2)), (), ()), Curved(((1, 0), (0, 2)), _SLOPES, _TARGETS)):
        n = size(2 * problem.dimension, effort.slow)
        inside = Secret(problem)
        drawn = [noise.minimiser(inside, Gaussian(sigma), grid=_GRID) for _ in range(n)]
        tilts = -np.array([problem.floats(np.array(theta, dtype=np.float64)) for theta in drawn])
        white = tilts / float(sigma)
        planted = {
            **_other_scales(white, effort.slow),
            "one draw for all": normals_p(np.repeat(white[:, :1], problem.dimension, axis=1))["correlations"],
            "a moved centre": normals_p(white + 2 * effort.slow)["place"],
        }
        kind = "quadratic" if not problem.targets else "curved"
        yield verdict("S", "minimiser", f"grad F = -N(0, {sigma}^2), exactly ({kind})", normals_p(white), planted)


def normals_p(white: Floats) -> dict[str, float]:
    """p-values of what should be independent standard normals: scale, place, correlations, lengths, each coordinate."""
    n, d = white.shape
    pairs = [(i, j) for i in range(d) for j in range(i)]
    found = {
        "scale": scale_p(white.ravel(), _ONE),
        "place": place_p(white.ravel(), _ONE),
        "lengths": uniform_p(stats.chi2(d).cdf((white**2).sum(axis=1))),
        "correlations": min(
            (normal_p(math.sqrt(n) * float(np.mean(white[:, i] * white[:, j]))) for i, j in pairs), default=1.0
        ),
    }
    found |= {f"scale of {i}": scale_p(white[:, i], _ONE) for i in range(d)}
    return found


def _other_scales(white: Floats, deviation: float) -> dict[str, float]:
    return {f"x {1 + by:.3g}": scale_p((1 + by) * white.ravel(), _ONE) for by in (-deviation, deviation)}


_SLOPES = ((3, 1), (-1, 2), (2, -2))
_TARGETS = (Fraction(1, 4), Fraction(-3, 8), Fraction(7, 8))


@dataclass(frozen=True)
class Curved:
    """theta' A theta / 2 + sum of sqrt(1 + (x . theta - y)**2): a ``Problem`` whose gradient is easy to enclose."""

    system: tuple[tuple[int, ...], ...]
    slopes: tuple[tuple[int, ...], ...]
    targets: tuple[Fraction, ...]

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.system)

    @property
    def modulus(self) -> Fraction:
        """Below the smallest eigenvalue of A, which is above 0.1 for all systems here."""
        return Fraction(1, 10)

    @property
    def smoothness(self) -> Fraction:
        """Above the largest eigenvalue of the Hessian."""
        curved = sum(v * v for row in self.slopes for v in row)
        return Fraction(sum(abs(v) for row in self.system for v in row) + curved)

    def floats(self, theta: Floats) -> Floats:
        """The gradient."""
        total = np.array(self.system, dtype=np.float64) @ theta
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = float(np.dot(slope, theta)) - float(target)
            total = total + np.array(slope) * u / math.sqrt(1 + u * u)
        return np.asarray(total, dtype=np.float64)

    def solve(self, b: Floats) -> Floats:
        """Newton's method, from zero."""
        theta: Floats = np.zeros(self.dimension)
        for _ in range(40):
            step = np.linalg.solve(self._hessian(theta), self.floats(theta) + b)
            theta = theta - step
            if float(np.abs(step).max()) < 1e-13:
                break
        return theta

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        """Exact, but for the roots, which are known to ever more bits."""
        bits = 60 << level
        total = [sum((a * t for a, t in zip(row, theta, strict=True)), Fraction(0)) for row in self.system]
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = sum((a * t for a, t in zip(slope, theta, strict=True)), -target)
            share = Fraction(math.floor(u * (1 << bits)), math.isqrt(math.floor((1 + u * u) * (1 << (2 * bits)))))
            total = [sofar + a * share for sofar, a in zip(total, slope, strict=True)]
        error = Fraction(4 * sum(abs(v) for row in self.slopes for v in row), 1 << bits)
        return total, error

    def correct(self, theta: Sequence[Fraction], residual: Floats) -> Floats:
        """A Newton step."""
        hessian = self._hessian(np.array(theta, dtype=np.float64))
        return np.asarray(-np.linalg.solve(hessian, residual), dtype=np.float64)

    def _hessian(self, theta: Floats) -> Floats:
        total = np.array(self.system, dtype=np.float64)
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = float(np.dot(slope, theta)) - float(target)
            total += np.outer(slope, slope) * (1 + u * u) ** -1.5
        return np.asarray(total, dtype=np.float64)
