"""The two half-laws that everything continuous is made of: the half-normal and the exponential.

Both have a density proportional to exp(-h(t)) on t > 0 that splits at whole numbers t = k + x:

    P(k) proportional to exp(-h(k)),   x uniform on (0, 1),   accepted with probability exp(-(h(k+x) - h(k))).

This is Karney's decomposition; ``filtered.proof.md``, Lemma 1, has the one-line proof.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.noise.exact.refine import GUARD, Bits, below, floor, precision, refine

Floats = NDArray[np.float64]

TABLE_BITS = 32  # bits of the uniform that picks k, before a tie asks for more


class Shape(ABC):
    """A half-law, given by the differences of h and by the law of the whole part."""

    acceptance: ClassVar[float]  # about: only used to guess how many lanes to draw

    @abstractmethod
    def exponent(self, k: Floats, x: Floats) -> Floats:
        """h(k + x) - h(k) in floats, with the error that ``filtered.proof.md``, Lemma 3, allows for."""

    @abstractmethod
    def exponent_ball(self, k: int, x: arb) -> arb:
        """h(k + x) - h(k) in balls."""

    @abstractmethod
    def cumulative(self, accuracy: int) -> tuple[arb, ...]:
        """P(whole part <= j) for j = 0, 1, ... until less than about 2**-accuracy is left."""


class HalfNormal(Shape):
    """h(t) = t**2 / 2."""

    acceptance = 0.7148

    def exponent(self, k: Floats, x: Floats) -> Floats:
        """The value x (k + x/2): two roundings, the halving is exact."""
        return x * (k + 0.5 * x)

    def exponent_ball(self, k: int, x: arb) -> arb:
        """The value x (2k + x) / 2."""
        return x * (2 * k + x) / 2

    def cumulative(self, accuracy: int) -> tuple[arb, ...]:
        """Running sums of exp(-j**2 / 2), over a total that encloses the part not summed."""
        count = isqrt(2 * accuracy) + 2
        weights = [(arb(-j * j) / 2).exp() for j in range(count + 1)]
        # What is left after `count` terms is at most twice its first term: the ratio is below 1/2.
        rest = weights.pop()
        total = sum(weights, arb(0)) + arb(rest, rest)
        return _running(weights, total)


class Exponential(Shape):
    """h(t) = t."""

    acceptance = 0.6321

    def exponent(self, k: Floats, x: Floats) -> Floats:
        """The fraction itself."""
        return x

    def exponent_ball(self, k: int, x: arb) -> arb:
        """The fraction itself."""
        return x

    def cumulative(self, accuracy: int) -> tuple[arb, ...]:
        """1 - exp(-(j + 1))."""
        return tuple(-arb(-j).expm1() for j in range(1, accuracy + 1))


HALF_NORMAL = HalfNormal()
EXPONENTIAL = Exponential()


def _running(weights: list[arb], total: arb) -> tuple[arb, ...]:
    sums = []
    so_far = arb(0)
    for weight in weights:
        so_far += weight
        sums.append(so_far / total)
    return tuple(sums)


@lru_cache(maxsize=64)
def _cumulative(shape: Shape, accuracy: int) -> tuple[arb, ...]:
    with precision(accuracy + GUARD):
        return shape.cumulative(accuracy)


@lru_cache(maxsize=8)
def thresholds(shape: Shape) -> tuple[int, ...]:
    """floor(2**32 P(whole part <= j)) for every j that 32 bits can tell from certainty."""
    table: list[int] = []
    top = (1 << TABLE_BITS) - 1
    while not table or table[-1] < top:
        table.append(refine(_scaled_entry(shape, len(table)), floor))
    return tuple(table)


def _scaled_entry(shape: Shape, j: int) -> Callable[[int], arb]:
    return lambda p: _cumulative(shape, p)[j] * (1 << TABLE_BITS)


def whole_part(shape: Shape, uniform: Bits) -> int:
    """The smallest k with uniform < P(whole part <= k), decided exactly."""

    def decide(enclosure: tuple[arb, tuple[arb, ...]]) -> int | None:
        ball, bounds = enclosure
        for k, bound in enumerate(bounds):
            if ball < bound:
                return k
            if not ball > bound:
                return None
        return None

    return refine(lambda p: (uniform.ball(p), _cumulative(shape, p)), decide)


def accepts(shape: Shape, k: int, x: Bits, coin: Bits) -> bool:
    """Whether ``coin`` accepts k + x, decided exactly; both may be read further, neither is redrawn."""
    return below(coin, lambda p: (-shape.exponent_ball(k, x.ball(p))).exp())
