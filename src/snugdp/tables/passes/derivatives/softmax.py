"""The gradient of a summed softmax loss at an exactly given point, with a proved error: as fine as one asks for.

The gradient of ``gradient.py`` with one output for each class: the target of a row is the code of its class. The line
numbers in the comments are those of ``softmax.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from snugdp.noise.exact.coins import MAX_EXPONENT, exp_neg
from snugdp.noise.exact.minimiser import norm_above
from snugdp.tables.losses.losses import codes
from snugdp.tables.passes.derivatives.gradient import PointGradient, enclosed, limb_bits
from snugdp.tables.rowmap import Floats

_MAX_ARGUMENT = 10**6  # level 0 is for points at most so far out, in units of the loss


@dataclass(frozen=True)
class SoftmaxGradient(PointGradient):
    """The gradient of the sum of log(sum_k exp(x . theta_k)) - x . theta_y, to an error that shrinks with ``level``.

    ``theta``: dyadic fractions, ``classes`` times as many as features, class by class. All else, and what is
    guaranteed, is as in ``GradientEnclosure`` (``softmax.proof.md``, Theorem 1).
    """

    classes: int
    slope_bound = Fraction(1)  # of a probability less 0 or 1
    curvature_bound = Fraction(1, 2)  # of the derivative of softmax

    def __post_init__(self) -> None:
        self._check()

    @property
    def outputs(self) -> int:
        """One for each class."""
        return self.classes

    @property
    def slope_error(self) -> Fraction:
        """As proved."""
        root = math.isqrt(self.classes) + 1
        return Fraction(self.classes + 14, 4) + root * (1 + self.reach) if self.coarse else Fraction(2 * root)

    @cached_property
    def reach(self) -> Fraction:
        """No x . theta_k is larger."""
        width = self.row_map.entries
        longest = max(norm_above(self.theta[k * width : (k + 1) * width]) for k in range(self.classes))
        return longest * self.row_norm * self.row_map.unit

    @cached_property
    def coarse(self) -> bool:
        """Whether floats are used."""
        return self.level == 0 and self.coarse_bits >= 0 and self.reach <= _MAX_ARGUMENT

    def _classes(self, w: Floats) -> list[int]:
        places: list[int] = codes(w, self.row_map.target_limit, self.classes).astype(np.int64).tolist()  # line 1
        return places

    def float_slopes(self, V: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Probabilities less 1 at the class of a row; and the probabilities."""
        low, high = self.limb_products(V)  # line 2
        scale = math.ldexp(1.0, -self.argument_bits)
        chances = softmax((high * 2.0 ** limb_bits(self.row_map) + low) * scale)  # lines 3 and 4
        slope = chances.copy()
        slope[np.arange(len(V)), self._classes(w)] -= 1.0
        return slope.T, chances  # lines 5 and 6: as for one output

    def ball_slopes(self, V: Floats, w: Floats) -> tuple[list[list[int]], Floats | None]:
        """The same from balls."""
        total: list[list[int]] = self.whole_products(V).tolist()  # line 7
        slopes = [self._ball_slopes(row, place) for row, place in zip(total, self._classes(w), strict=True)]
        chances = None
        if self.hessian:
            scale = Fraction(2) ** -self.argument_bits
            below = [[max(float(-_MAX_ARGUMENT), float((n - max(row)) * scale)) for n in row] for row in total]
            chances = softmax(np.array(below).reshape(len(V), self.classes))
        return [[row[k] for row in slopes] for k in range(self.classes)], chances

    def _ball_slopes(self, arguments: list[int], mine: int) -> list[int]:
        """The slopes of one row, each to an error below 3/2."""
        top = max(arguments)

        def balls(waiting: Sequence[int], bits: int) -> list[arb]:
            small = [(arb(n - top) * arb((1, -self.argument_bits))).exp() for n in arguments]
            total = sum(small, arb(0))
            return [(small[k] / total - (1 if k == mine else 0)) * arb((1, bits)) for k in waiting]

        return enclosed(balls, self.classes, self.slope_bits, spare=64)  # line 8

    def second_derivative(self, V: Floats, weights: Floats) -> Floats:
        """Block by block: p_k ([k = j] - p_j) x x' for the classes k and j."""
        width = self.limits.entries
        second = np.empty((self.classes, width, self.classes, width))
        for k in range(self.classes):
            for j in range(k + 1):
                weight = weights[:, k] * ((1.0 if j == k else 0.0) - weights[:, j])
                second[k, :, j] = np.dot(V.T, V * weight[:, None])
                if j < k:
                    second[j, :, k] = second[k, :, j].T
        return second.reshape(self.classes * width, -1)


def softmax(u: Floats) -> Floats:
    """exp(u_k) over their sum, in every row; from additions, multiplications and divisions alone.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    below = u.max(axis=1, keepdims=True) - u
    small = exp_neg(np.minimum(below.ravel(), MAX_EXPONENT)).reshape(u.shape)
    total = small[:, 0].copy()
    for k in range(1, u.shape[1]):  # in this order, on every machine
        total += small[:, k]
    chances: Floats = small / total[:, None]
    return chances
