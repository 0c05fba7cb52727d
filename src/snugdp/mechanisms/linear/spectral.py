"""From noisy sums to coefficients: public numbers in, public numbers out. Nothing here touches a row.

Rows are counted in units of their bound B, targets in units of their bound B_y: a row adds at most 1 to every sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.propose.forecast import Accuracy

Floats = NDArray[np.float64]
_MAX_STEPS = 10_000
_MAX_COEFFICIENT = 2.0**100  # of a coefficient: gradients are taken at points up to here


@dataclass(frozen=True, eq=False)
class NoisySpectrum:
    """The eigenvalues of a symmetric matrix, those below 0 set to 0, and its eigenvectors.

    ``lowest``: the smallest eigenvalue as it was.

    >>> NoisySpectrum.of([[1.0, 0.0], [0.0, -1.0]]).solve(np.array([2.0, 2.0]), 1.0).tolist()
    [1.0, 2.0]
    """

    values: Floats
    vectors: Floats
    lowest: float

    @classmethod
    def of(cls, matrix: ArrayLike) -> NoisySpectrum:
        """Of a noisy Gram matrix, which may have lost its positive eigenvalues."""
        values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
        return cls(np.maximum(values, 0.0), vectors, float(values[0]))

    def inverse(self, ridge: float) -> Floats:
        """The eigenvalues of (A + ridge I)^-1; 0 where A + ridge I has none."""
        return inverse(self.values + ridge)

    def solve(self, right: Floats, ridge: float) -> Floats:
        """(A + ridge I)^-1 right."""
        solved: Floats = self.vectors @ (self.inverse(ridge) * (self.vectors.T @ right))
        return solved

    def path(self, right: Floats, ridges: Sequence[float]) -> Floats:
        """The solutions for many ridges, one in each column."""
        solved: Floats = self.vectors @ (
            inverse(self.values[:, None] + np.asarray(ridges)) * (self.vectors.T @ right)[:, None]
        )
        return solved


def inverse(values: Floats) -> Floats:
    """The inverse of positive numbers, and 0 of 0: a direction about which nothing is known gets no coefficient."""
    positive = values > 1e-300
    return np.where(positive, 1.0 / np.where(positive, values, 1.0), 0.0)


@dataclass(frozen=True)
class FitUnits:
    """The units of the scaled rows, and those in which a row adds at most 1."""

    x: float
    y: float

    @classmethod
    def of(cls, design: Design) -> FitUnits:
        """Those of a design."""
        bits, limits = design.row_map.bits, design.row_map.limits
        return cls(math.ldexp(math.sqrt(limits.norm_squared), -bits), math.ldexp(float(limits.target), -bits))

    def theta(self, own: Floats) -> Floats:
        """Coefficients for the scaled rows: finite, and not beyond where gradients can be taken."""
        theta = np.nan_to_num(own * (self.y / self.x), nan=0.0, posinf=_MAX_COEFFICIENT, neginf=-_MAX_COEFFICIENT)
        return np.clip(theta, -_MAX_COEFFICIENT, _MAX_COEFFICIENT)


def gram_floats(cells: list[list[int]], design: Design) -> Floats:
    """A Gram matrix in units of the bound."""
    bound = design.row_map.limits.norm_squared
    return np.array([[entry / bound for entry in row] for row in cells])


def cross_floats(cells: list[int], design: Design) -> Floats:
    """X'y in units of the bounds."""
    limits = design.row_map.limits
    return np.array([entry / limits.target for entry in cells]) / math.sqrt(limits.norm_squared)


def gradient_floats(cells: list[int], clip: Fraction, slope: int, design: Design, units: FitUnits) -> Floats:
    """A gradient with clipped residuals in units of the bounds; ``slope`` cells stand for the clip."""
    root = math.sqrt(design.row_map.limits.norm_squared)
    return np.array([entry / slope for entry in cells]) / root * (float(clip) / units.y)


@dataclass(frozen=True, eq=False)
class Validation:
    """Public rows and targets, in the units of the scaled rows, on which a choice may be made for free."""

    rows: Floats
    target: Floats

    @classmethod
    def of(cls, pair: tuple[ArrayLike, ArrayLike], design: Design) -> Validation:
        """Read and checked."""
        try:
            given, answers = pair
            rows, target = np.asarray(given, dtype=np.float64), np.asarray(answers, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("validation must be a pair (X, y) of public arrays of numbers") from None
        if rows.ndim != 2 or rows.shape[1] != design.entries or target.shape != rows.shape[:1] or not len(target):
            raise ValueError(
                f"validation must be a matrix of {design.entries} columns, scaled as the rows and with the constant if "
                "there is an intercept, and a vector of as many targets"
            )
        if not (np.abs(rows) <= 1e100).all() or not (np.abs(target) <= 1e100).all():
            raise ValueError("the validation rows and targets must be finite, and at most 1e100 in size")
        return cls(rows, target)

    def errors(self, thetas: Floats) -> Floats:
        """The root mean squared error of the coefficients in each column; infinite where it is not a number."""
        with np.errstate(all="ignore"):
            errors = np.sqrt(np.mean((self.rows @ thetas - self.target[:, None]) ** 2, axis=0))
        return np.where(np.isfinite(errors), errors, np.inf)


def solution_noise(spectrum: NoisySpectrum, ridge: float, gram_sd: float, cross_sd: float, size: float) -> Floats:
    """Variances, along the eigenvectors, of a solution of length ``size``: to first order in the noise.

    The noise of the matrix moves the right-hand side by W theta, and half of the square of its deviation counts.
    """
    return (cross_sd**2 + gram_sd**2 * size**2 / 2) * spectrum.inverse(ridge) ** 2


def refined_noise(before: Floats, spectrum: NoisySpectrum, ridge: float, gradient_sd: float) -> Floats:
    """Variances after a refinement: what was there shrinks by what the ridge had taken, and new noise comes."""
    weights = spectrum.inverse(ridge)
    return before * (ridge * weights) ** 2 + (gradient_sd * weights) ** 2


def even_spectrum(rows: int, design: Design) -> NoisySpectrum:
    """Of so many rows of full length, spread evenly over all directions."""
    d = design.entries
    each = whole_number(rows, "rows", 1, most=None) / d
    return NoisySpectrum(np.full(d, each), np.eye(d), each)


def forecast_of(variances: Floats, design: Design) -> Accuracy:
    """In the units of the scaled rows: a row of full length in a random direction sees B times the noise."""
    units = FitUnits.of(design)
    own = typical(variances)
    return Accuracy(own * units.y / units.x, (own * units.y) ** 2)


def typical(variances: Floats) -> float:
    """The root of the mean."""
    return float(np.sqrt(np.mean(variances)))


def whole_number(value: int, name: str, least: int, most: int | None = _MAX_STEPS) -> int:
    """A number of steps or rows, checked."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number") from None
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        limit = "" if most is None else f", and at most {most}"
        raise ValueError(f"{name} must be a whole number of at least {least}{limit}")
    return number
