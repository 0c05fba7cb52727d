"""Newton's method on a convex function of which only derivatives are known, each a reading of a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeAlias

import numpy as np

from snugdp.tables.rowmap import Floats

Derivatives: TypeAlias = Callable[[Floats, bool], tuple[Floats, Floats | None]]

_SMALLER_GRADIENT = 0.9
_SLOW = 0.1  # a Hessian that did not make the gradient so much smaller is taken anew
_MAX_DECOMPOSED = 100  # coefficients from which on a decomposition takes too long
_MIN_EIGENVALUE = 1e-15  # of the largest eigenvalue, for every entry: what floats cannot tell from zero


def solved(matrix: Floats, ridge: float, right: Floats) -> Floats:
    """(matrix + ridge I)^-1 right for a positive semidefinite matrix, as well as floats can; finite in any case."""
    if len(matrix) > _MAX_DECOMPOSED:
        try:
            shifted = np.nan_to_num(matrix) + ridge * np.eye(len(matrix))
            quick: Floats = np.linalg.solve(shifted, np.nan_to_num(right)).astype(np.float64)
        except np.linalg.LinAlgError:  # then slowly
            quick = np.full(len(matrix), np.nan)
        if bool(np.isfinite(quick).all()):
            return quick
    values, vectors = np.linalg.eigh(np.nan_to_num(matrix))
    known = np.where(values > _MIN_EIGENVALUE * len(values) * values[-1], values, 0.0) + ridge
    solution: Floats = vectors @ ((vectors.T @ np.nan_to_num(right)) / np.where(known > 0, known, 1.0))
    return solution


@dataclass(frozen=True)
class _Here:
    """A point, the gradient there, and a Hessian from there or from close by, or one that proved ``poor``."""

    theta: Floats
    gradient: Floats
    matrix: Floats
    poor: bool = False

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.gradient))


@dataclass
class Newton:
    """Newton's method. ``left``: evaluations after which the best point so far is given.

    ``close``: a step shorter than this ends the search unless it helps. ``stale``: after a longer one the Hessian is
    taken anew. ``trusted``: the first step that is shorter is the last, and taken without a look. ``enough``: one that
    is shorter is not taken.
    """

    at: Derivatives
    ridge: float
    left: int
    _: KW_ONLY
    close: float
    stale: float
    trusted: float = 0.0
    enough: float = 0.0
    on_grid: Callable[[Floats], Floats] = lambda theta: theta

    def run(self, theta: Floats, matrix: Floats | None = None) -> tuple[Floats, Floats]:
        """About the minimiser, from this start, and the last Hessian; ``matrix``: one from near the start."""
        theta = self.on_grid(theta)
        gradient, fresh = self._evaluate(theta, matrix is None)
        known = matrix if fresh is None else fresh
        here = _Here(theta, gradient, np.zeros((len(theta),) * 2) if known is None else known)
        while here.size > 0.0 and (new := self._step(here)) is not None:
            here = new
        return here.theta, here.matrix

    def _evaluate(self, theta: Floats, hessian: bool) -> tuple[Floats, Floats | None]:
        self.left -= 1
        return self.at(theta, hessian)

    def _step(self, here: _Here) -> _Here | None:
        """The next point: not past the bottom of the line, unless the gradient is smaller there. None at the end."""
        direction = -solved(here.matrix, self.ridge, here.gradient)
        low, part, high = 0.0, 1.0, math.inf  # the bottom of the line lies between low and high
        slope = float(direction @ here.gradient)
        while self.left > 0:
            theta = self.on_grid(here.theta + part * direction)
            length = float(np.max(np.abs(theta - here.theta)))
            if not self.enough < length < math.inf:
                return None
            if length <= self.trusted and part == 1.0:
                return _Here(theta, np.zeros_like(theta), here.matrix)
            far = length > self.close
            gradient, matrix = self._evaluate(theta, here.poor or length > self.stale)
            new = _Here(theta, gradient, here.matrix if matrix is None else matrix)
            new_slope = float(direction @ gradient)
            if new.size <= _SMALLER_GRADIENT * here.size or (
                far and 0.0 >= new_slope >= (slope / 2 if high < math.inf else -math.inf)
            ):
                return replace(new, poor=matrix is None and new.size > _SLOW * here.size)
            if not far:  # as close as floats get
                return None
            low, high = (part, high) if new_slope <= 0.0 else (low, part)
            part = (low + high) / 2 if low else part * min(0.5, max(0.1, slope / (slope - new_slope)))
        return None
