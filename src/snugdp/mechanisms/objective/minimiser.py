"""The summed loss of a table with a quadratic term, as a problem to be minimised: exact gradients, few readings.

Everything here is private and steers time only: what is released is the exact rounded minimiser, whatever point the
floats below find (``noise/exact/minimiser.py``). The line numbers in the comments are those of ``minimiser.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.losses.enclosures import float_error
from snugdp.tables.losses.losses import Loss, Softmax, counts, labels, shares
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure, point_bits
from snugdp.tables.passes.derivatives.softmax import SoftmaxGradient
from snugdp.tables.rowmap import Floats
from snugdp.tables.rows import Rows

Derivatives: TypeAlias = Callable[[Floats, bool], tuple[Floats, Floats | None]]

_SAMPLE_ROWS = 32_768  # rows from which the first steps are made
_MAX_SWEEPS, _MAX_STEPS = 40, 200  # readings of the table, and of the sample; then a solver gives what it has
_CLOSE_HESSIAN = 1e-7  # of the scale of the loss: so much closer by, a Hessian is as good as another
_NEAR_HESSIAN = 1e-5  # so much closer by, one more reading without a Hessian is cheaper than a Hessian
_SMALLER_GRADIENT = 0.9
_MAX_DECOMPOSED = 100  # coefficients from which on a decomposition takes too long
_MIN_EIGENVALUE = 1e-15  # of the largest eigenvalue, for every entry: what floats cannot tell from zero


def coefficients(design: Design, loss: Loss | Softmax) -> int:
    """How many there are: one for each entry, and of a softmax model for each class and entry."""
    return design.entries * (loss.classes if isinstance(loss, Softmax) else 1)


def check_objective(
    design: Design, loss: Loss | Softmax, ridge: Fraction, centre: Sequence[Fraction] | None = None
) -> None:
    """Refuse an objective that cannot be minimised exactly; all of it is public."""
    if not isinstance(loss, Softmax):
        float_error(loss)
    if not ridge > 0:
        raise ValueError("the ridge must be positive: without it the minimiser is not stable, nor always unique")
    if centre is not None and len(centre) != coefficients(design, loss):
        raise ValueError(f"the centre must have {coefficients(design, loss)} entries, one for each coefficient")


class PerturbedLoss(PrivateState):
    """The sum of ``loss`` over the rows plus ``ridge`` / 2 times the squared distance to ``centre``: a ``Problem``.

    Guarantee: the modulus, the smoothness and the errors of the gradient are as ``Problem`` promises
    (``minimiser.proof.md``, Theorem 1). How many times the rows are read depends on them, in time only.
    """

    __slots__ = ("_count", "_known", "_last", "centre", "design", "loss", "ridge", "rows", "sweeps")

    def __init__(
        self,
        rows: Rows,
        design: Design,
        loss: Loss | Softmax,
        ridge: Fraction,
        centre: Sequence[Fraction] | None = None,
    ) -> None:
        check_objective(design, loss, ridge, centre)
        self.rows, self.design, self.loss, self.ridge = rows, design, loss, ridge
        self.centre = tuple(centre) if centre is not None else (Fraction(0),) * self.dimension
        self.sweeps = 0
        self._count: Fraction | None = None  # of the rows, each with its weight
        self._known: dict[tuple[tuple[Fraction, ...], int], tuple[list[Fraction], Fraction]] = {}
        self._last: tuple[Floats, Floats] | None = None  # the Hessian of the losses, and where it was taken

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return coefficients(self.design, self.loss)

    @property
    def modulus(self) -> Fraction:
        """The ridge: the losses are convex."""
        return self.ridge

    @property
    def smoothness(self) -> Fraction:
        """The ridge, and the largest curvature of every row."""
        if self._count is None:
            self.gradient([Fraction(0)] * self.dimension, 0)
        return self.ridge + (self._count or 0) * self.loss.curvature * self.design.x_squared

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        """The gradient at exactly this point, and a bound on its Euclidean error (line 1)."""
        key = (tuple(theta), level)
        if key not in self._known:
            self._read(key[0], level, hessian=False)
        return self._known[key]

    def gradient_pass(self, theta: Sequence[Fraction], level: int, hessian: bool) -> Any:
        """The pass over the rows that sums gradients at exactly this point: of one loss, or of all classes at once."""
        loss, rows = self.loss, self.rows
        if isinstance(loss, Softmax):
            return SoftmaxGradient(rows.schema, theta, loss.classes, level=level, hessian=hessian, bits=rows.bits)
        return GradientEnclosure(rows.schema, theta, loss, level=level, hessian=hessian, bits=rows.bits)

    def _read(self, theta: tuple[Fraction, ...], level: int, hessian: bool) -> None:
        work = self.gradient_pass(theta, level, hessian)
        state = self.rows.state(work)
        self.sweeps += 1
        unit = self.rows.unit  # weights are whole numbers of so many parts
        self._count = Fraction(state.count, unit)
        sums, error = work.gradient(state)
        pull = [self.ridge * (value - middle) for value, middle in zip(theta, self.centre, strict=True)]
        self._known[theta, level] = [a / unit + b for a, b in zip(sums, pull, strict=True)], error / unit
        if hessian:
            at = np.array([float(value) for value in theta])
            self._last = work.second(state) / unit, at

    def solve(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the minimiser, from a sample first, then from all rows."""
        with np.errstate(all="ignore"):  # a warning would depend on private values
            start = self._from_sample(b)
            return Newton(self._derivatives(b), float(self.ridge), close(self.loss), _MAX_SWEEPS, self._on_grid).run(
                start
            )

    def _from_sample(self, b: Floats) -> Floats:
        centre = np.array([float(value) for value in self.centre])
        images = self.rows.images()  # kept in memory, if they fit
        if isinstance(self.loss, Softmax):
            return centre
        if images is None or not images.blocks:
            return centre - (b / float(self.ridge) if images is not None and not images.count else 0.0)
        V, w, weights = images.sample(_SAMPLE_ROWS)
        unit = float(self.design.unit)
        limit = self.design.row_map.target_limit
        times = weights * (images.count / len(w) / self.rows.unit)
        table = FloatObjective(V * unit, w, limit, unit, self.loss, float(self.ridge), b, centre, times)
        return Newton(table.derivatives, table.ridge, close(self.loss), _MAX_STEPS).run(centre)

    def _on_grid(self, theta: Floats) -> Floats:
        """The nearest point that level 0 takes as it is."""
        largest = float(np.max(np.abs(theta)))
        if not math.isfinite(largest):
            return np.zeros_like(theta)
        scale = math.ldexp(1.0, point_bits(self.design.row_map, Fraction(largest)))
        near: Floats = np.rint(theta * scale) / scale
        return near

    def _derivatives(self, b: Floats) -> Derivatives:
        def at(theta: Floats, hessian: bool) -> tuple[Floats, Floats | None]:
            point = tuple(Fraction(value) for value in theta.tolist())
            if hessian or (point, 0) not in self._known:
                self._read(point, 0, hessian)
            values, error = self._known[point, 0]
            gradient = np.array([float(value) for value in values]) + b
            if float(np.linalg.norm(gradient)) <= max(float(error), self._resolution(theta)):
                gradient = np.zeros_like(gradient)
            return gradient, self._last[0] if hessian and self._last is not None else None

        return at

    def _resolution(self, theta: Floats) -> float:
        """About the smallest gradient to be found among points of level 0."""
        if self._last is None:
            return 0.0
        bits = point_bits(self.design.row_map, Fraction(float(np.max(np.abs(theta)))))
        return float(np.linalg.norm(self._last[0])) * math.ldexp(1.0, -bits - 1)

    def correct(self, theta: Sequence[Fraction], residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """A Newton step, from the last Hessian where that was taken close by."""
        at = np.array([float(value) for value in theta])
        if self._last is None or not np.max(np.abs(at - self._last[1])) <= close(self.loss):
            near = self._on_grid(at)
            if np.max(np.abs(near - at)) <= close(self.loss):
                self._read(tuple(Fraction(value) for value in near.tolist()), 0, hessian=True)
            else:  # among numbers so large level 0 is too coarse
                self._read(tuple(theta), 1, hessian=True)
        assert self._last is not None
        return -solved(self._last[0], float(self.ridge), residual)


def close(loss: Loss | Softmax) -> float:
    """A change of coefficients that hardly changes a Hessian."""
    return _CLOSE_HESSIAN * float(loss.slope / loss.curvature)


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
class FloatObjective:
    """Rows in memory as floats: the tilted objective of the whole table, guessed from a sample, each row ``times``.

    ``w``: targets in cells of ``unit``, at most ``limit`` of them.
    """

    X: Floats
    w: Floats
    limit: int
    unit: float
    loss: Loss
    ridge: float
    b: Floats
    centre: Floats
    times: Floats | float = 1.0

    def derivatives(self, theta: Floats, hessian: bool) -> tuple[Floats, Floats | None]:
        """The gradient, and the Hessian of the losses if asked for."""
        u, label = self.X @ theta, np.ones(len(self.w))
        if self.loss.classifies:
            label = labels(self.loss, self.w, self.limit)
        elif not counts(self.loss):
            u = u - self.w * self.unit
        slope, root = self.loss.parts(u * label)
        slope = (slope * label - shares(self.loss, self.w, self.limit)) * (float(self.loss.slope) * self.times)
        gradient = self.X.T @ slope + self.ridge * (theta - self.centre) + self.b
        if not hessian:
            return gradient, None
        Z = self.X * (root * np.sqrt(float(self.loss.curvature) * self.times))[:, None]
        return gradient, Z.T @ Z


@dataclass(frozen=True)
class _Here:
    """A point, the gradient there, and a Hessian from there or from close by."""

    theta: Floats
    gradient: Floats
    matrix: Floats

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.gradient))


@dataclass
class Newton:
    """Newton's method on a convex function of which only derivatives are known.

    ``close``: a step shorter than this ends the search unless it helps. After one not much longer the last Hessian is
    good enough. ``left``: evaluations after which the best point so far is given.
    """

    at: Derivatives
    ridge: float
    close: float
    left: int
    on_grid: Callable[[Floats], Floats] = lambda theta: theta

    def run(self, theta: Floats) -> Floats:
        """About the minimiser, from this start."""
        theta = self.on_grid(theta)
        gradient, matrix = self._evaluate(theta, True)
        here = _Here(theta, gradient, np.zeros((len(theta),) * 2) if matrix is None else matrix)
        while here.size > 0.0 and (new := self._step(here)) is not None:
            here = new
        return here.theta

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
            if not 0.0 < length < math.inf:
                return None
            far = length > self.close
            gradient, matrix = self._evaluate(theta, length > self.close * (_NEAR_HESSIAN / _CLOSE_HESSIAN))
            new = _Here(theta, gradient, here.matrix if matrix is None else matrix)
            new_slope = float(direction @ gradient)
            if new.size <= _SMALLER_GRADIENT * here.size or (
                far and 0.0 >= new_slope >= (slope / 2 if high < math.inf else -math.inf)
            ):
                return new
            if not far:  # as close as floats get
                return None
            low, high = (part, high) if new_slope <= 0.0 else (low, part)
            part = (low + high) / 2 if low else part * min(0.5, max(0.1, slope / (slope - new_slope)))
        return None
