"""The summed loss of a table with a quadratic term, as a problem to be minimised: exact gradients, few readings.

Everything here is private and steers time only: what is released is the exact rounded minimiser, whatever point the
floats below find (``noise/exact/minimiser.py``). The line numbers in the comments are those of ``minimiser.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.float_objective import FloatGradient, FloatObjective, FloatSums
from snugdp.mechanisms.objective.newton import Derivatives, Newton, solved
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.losses.enclosures import float_error
from snugdp.tables.losses.losses import Loss, Softmax
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure, point_bits
from snugdp.tables.passes.derivatives.softmax import SoftmaxGradient
from snugdp.tables.rowmap import Floats
from snugdp.tables.rows import Rows

_SAMPLE_ROWS = 32_768  # rows from which the first steps are made
_MAX_STEPS, _MAX_FLOAT_SWEEPS, _MAX_SWEEPS = 200, 20, 40  # readings of the sample, and of the table in floats, exactly

# In parts of the scale of the loss:
_SAMPLED = 1e-3  # a step of the sample, which is not all rows, need not be looked at again
_STALE_HESSIAN = 1e-3  # after a longer step a Hessian is taken anew where readings are in floats
_NEAR_HESSIAN = 1e-5  # and where they are exact: one more reading without a Hessian is cheaper than a Hessian
_CLOSE_HESSIAN = 1e-7  # so much closer by, a Hessian is as good as another
_NO_STEP = 1e-11  # a step that decides nothing


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
        """About the minimiser: in floats from a sample, in floats from all rows that are kept, then exactly."""
        with np.errstate(all="ignore"):  # a warning would depend on private values
            start, matrix = self._in_floats(b)
            steps = replace(self._steps(self._derivatives(b), _MAX_SWEEPS), stale=self._scaled(_NEAR_HESSIAN))
            return replace(steps, enough=self._scaled(_NO_STEP), on_grid=self._on_grid).run(start, matrix)[0]

    def _in_floats(self, b: Floats) -> tuple[Floats, Floats | None]:
        """About the minimiser, and a Hessian from close by if there is one."""
        centre = np.array([float(value) for value in self.centre])
        images = self.rows.images()  # kept in memory, if they fit
        if isinstance(self.loss, Softmax):
            return centre, None
        if images is None or not images.blocks:
            return centre - (b / float(self.ridge) if images is not None and not images.count else 0.0), None
        V, w, weights = images.sample(_SAMPLE_ROWS)
        weights *= images.count / (len(w) * self.rows.unit)
        here = FloatGradient(centre, self.loss, float(self.design.unit), self.design.row_map.target_limit, True)

        def of_sample(work: FloatGradient) -> FloatSums:
            sums = work.empty()
            work.add(sums, V, w, weights)
            return sums

        guess = FloatObjective(here, of_sample, float(self.ridge), b, centre).derivatives
        start, matrix = replace(self._steps(guess, _MAX_STEPS), trusted=self._scaled(_SAMPLED)).run(centre)
        if not images.complete:
            return start, None
        of_all = FloatObjective(here, self.rows.of_kept, float(self.ridge), b, centre, self.rows.unit).derivatives
        steps = replace(self._steps(of_all, _MAX_FLOAT_SWEEPS), trusted=close(self.loss))
        found, matrix = steps.run(start, matrix)
        self._last = matrix, found
        return found, matrix

    def _steps(self, at: Derivatives, left: int) -> Newton:
        return Newton(at, float(self.ridge), left, close=close(self.loss), stale=self._scaled(_STALE_HESSIAN))

    def _scaled(self, part: float) -> float:
        """A part of the scale of the loss."""
        return part * float(self.loss.slope / self.loss.curvature)

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
        if self._last is None or not np.max(np.abs(at - self._last[1])) <= self._scaled(_STALE_HESSIAN):
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
