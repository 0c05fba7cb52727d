"""The gradient of a summed loss at an exactly given point, with a proved error: as fine as one asks for.

Level 0 is made of floats; every further level has twice as many bits as the one before, from balls, row by row. The
line numbers in the comments are those of ``gradient.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.noise.exact.minimiser import norm_above
from snugdp.numerics.balls import ball, precision
from snugdp.numerics.blas import require_exact_products
from snugdp.tables.losses.enclosures import float_error, slope_ball
from snugdp.tables.losses.losses import Loss, counts, exact_share, labels, shares
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.rowmap import Floats, RowLimits, RowMap
from snugdp.tables.schema.schema import Layout

LIMBS, LIMB_BITS = 3, 17  # of a whole number from floats
DIGIT_BITS = 16  # of one from balls
ROWS_BITS = 76  # of the number of rows
_EXACT = 1 << 53
_MAX_POINT_BITS = 25  # of a limb of the point
_FIRST_LEVEL_BITS = 100  # of a slope at level 1
_SPARE_BITS = 32  # working bits beyond those of a slope
_BALL_ERROR = Fraction(2)  # in units of the last place
_MAX_ARGUMENT = 2.0**40  # beyond so many times the scale a slope is at its bound, to 2**-80
_HALF = arb(0.5)


class Slopes(Sums):
    """Sums of slope times row and the number of rows, as whole numbers; the Hessian in floats. Private."""

    __slots__ = ()

    @property
    def sums(self) -> list[int]:
        """One for each entry of the point."""
        return self.values()[:-1]

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.values()[-1]

    @property
    def second(self) -> NDArray[np.float64]:
        """The Hessian in cells, about."""
        return self.floats


@dataclass(frozen=True)
class PointGradient(RowPass[Slopes]):
    """The gradient with respect to a point of ``outputs`` linear functions, one after the other in ``theta``.

    What a loss says at the values of these functions is left to the subclasses.
    """

    schema: Layout
    theta: Sequence[Fraction]
    _: KW_ONLY
    level: int = 0
    hessian: bool = False
    bits: int | None = None

    def _check(self) -> None:
        if self.schema.target is None:
            raise ValueError("a loss needs a target: name one in the schema")
        theta, entries = tuple(Fraction(value) for value in self.theta), self.outputs * len(self.schema.features)
        if len(theta) != entries:
            raise ValueError(f"theta must have {entries} entries, one for each of the features and outputs")
        if any(value.denominator & (value.denominator - 1) for value in theta):
            raise ValueError("the entries of theta must be dyadic: whole numbers over a power of two")
        if self.level < 0:
            raise ValueError("the level must be 0 or more")
        object.__setattr__(self, "theta", theta)

    @property
    def outputs(self) -> int:
        """How many linear functions the loss is taken at."""
        return 1

    @property
    def slope_bound(self) -> Fraction:
        """No slope is larger."""
        raise NotImplementedError

    @property
    def curvature_bound(self) -> Fraction:
        """Slopes change by at most so much."""
        raise NotImplementedError

    @property
    def slope_error(self) -> Fraction:
        """Of the slopes of a row, in units of their last place and in the Euclidean norm."""
        raise NotImplementedError

    def float_slopes(self, V: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Slopes of at most 1 in floats, one row for each output; and what ``second_derivative`` takes."""
        raise NotImplementedError

    def ball_slopes(self, V: Floats, w: Floats) -> tuple[list[list[int]], Floats | None]:
        """The same from balls, as whole numbers of 2**-slope_bits."""
        raise NotImplementedError

    def second_derivative(self, V: Floats, weights: Floats) -> Floats:
        """The Hessian of some rows, in cells and floats."""
        raise NotImplementedError

    @cached_property
    def limits(self) -> RowLimits:
        """What the integers of every row obey."""
        return RowLimits(self.row_map.entries, self.row_map.limits.norm_squared, 0)

    @cached_property
    def row_norm(self) -> int:
        """No row is longer, in cells."""
        return math.isqrt(self.limits.norm_squared) + 1

    @property
    def coarse_bits(self) -> int:
        """How fine a point level 0 takes."""
        return point_bits(self.row_map, max(abs(value) for value in self.theta))

    @cached_property
    def coarse(self) -> bool:
        """Whether floats are used."""
        return self.level == 0 and self.coarse_bits >= 0

    @property
    def argument_bits(self) -> int:
        """Arguments of the loss are whole numbers of 2**-argument_bits."""
        return self.used_bits + self.row_map.bits

    @cached_property
    def slope_bits(self) -> int:
        """Slopes are whole numbers of 2**-slope_bits of their bound."""
        return LIMB_BITS * LIMBS if self.coarse else _FIRST_LEVEL_BITS << max(0, self.level - 1)

    @cached_property
    def used_bits(self) -> int:
        """The point in use is a vector of whole numbers of 2**-used_bits."""
        return self.coarse_bits if self.coarse else max(value.denominator.bit_length() - 1 for value in self.theta)

    @cached_property
    def _point(self) -> list[int]:
        return [round(value * 2**self.used_bits) for value in self.theta]

    @cached_property
    def _limbs(self) -> Floats:
        """The point in limbs side by side, the lowest first: all but the highest are at least 0."""
        width, whole = limb_bits(self.row_map), self._point
        number = 2 if self.coarse else max(1, -(-(max(abs(n) for n in whole).bit_length()) // width))
        limbs = [[(n >> (width * k)) & ((1 << width) - 1) for n in whole] for k in range(number - 1)]
        limbs.append([n >> (width * (number - 1)) for n in whole])
        return np.array(limbs, dtype=np.float64).reshape(number * self.outputs, -1).T

    def limb_products(self, V: Floats) -> Floats:
        """Rows times the limbs of the point: by limb, row and output."""
        if self.outputs == 1:  # vector by vector, which BLAS does faster than a matrix so narrow
            single = np.empty((self._limbs.shape[1], len(V), 1))
            for limb, out in zip(self._limbs.T, single, strict=True):
                np.dot(V, limb, out=out[:, 0])
            return single
        products: Floats = np.dot(V, self._limbs).reshape(len(V), -1, self.outputs).transpose(1, 0, 2)
        return products

    def whole_products(self, V: Floats) -> NDArray[Any]:
        """Rows times the point, exactly: whole numbers of 2**-argument_bits, by row and output."""
        total: NDArray[Any] = np.zeros((len(V), self.outputs), dtype=object)
        for limb in self.limb_products(V).astype(np.int64)[::-1]:  # line 8
            total = (total << limb_bits(self.row_map)) + limb.astype(object)
        return total

    @cached_property
    def block(self) -> int:
        """Rows of a block: sums of limbs are exact, and they fit a cache."""
        return max(1, min(self.limits.block, (_EXACT >> LIMB_BITS) // self.row_norm))

    @property
    def places(self) -> int:
        """Limbs or digits of a slope."""
        return LIMBS if self.coarse else self.slope_bits // DIGIT_BITS + 1

    def require_exact(self) -> None:
        """Refuse to work where lines 1, 7 and 8 would not be exact."""
        entries, limbs = self._limbs.shape
        if self.outputs == 1:
            require_exact_products((self.block, entries, 1), (1, self.block, entries))
        else:
            require_exact_products((self.block, entries, limbs), (self.places * self.outputs, self.block, entries))

    def empty(self) -> Slopes:
        """The sums over no rows."""
        self.require_exact()
        size, width = len(self.theta), (self.slope_bits + self.row_norm.bit_length() + ROWS_BITS + 8) // 8
        return Slopes(size + 1, self.slope_bits, floats=(size, size), width=width)

    def add_block(self, state: Slopes, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        weights: Floats | None
        if self.coarse:
            with np.errstate(all="ignore"):  # a warning would depend on private values
                slopes, weights = self.float_slopes(V, w)
                whole = np.rint(slopes * 2.0**self.slope_bits)  # line 5
                np.clip(whole, -(2.0**self.slope_bits), 2.0**self.slope_bits, out=whole)
                places, bits = limbs(whole), LIMB_BITS  # line 6
        else:
            integers, weights = self.ball_slopes(V, w)
            places, bits = np.stack([digits(row, self.places) for row in integers], axis=1), DIGIT_BITS
        rows = places.reshape(-1, len(V))
        found = np.dot(rows, V) if self.outputs > 1 else np.stack([np.dot(row, V) for row in rows])  # line 7
        products = found.astype(np.int64)
        total: NDArray[Any] = np.zeros(len(self.theta), dtype=object)
        for place in products.reshape(self.places, -1)[::-1]:
            total = (total << bits) + place.astype(object)
        state.accumulate([*total.tolist(), len(V)])
        if self.hessian and weights is not None:
            state.floats += self.second_derivative(V, weights)

    @property
    def unit(self) -> Fraction:
        """The size of one cell of the gradient."""
        return self.slope_bound * self.row_map.unit * Fraction(1, 2**self.slope_bits)

    @property
    def hessian_unit(self) -> Fraction:
        """The size of one cell of the Hessian."""
        return self.row_map.unit**2

    def gradient(self, state: Slopes) -> tuple[list[Fraction], Fraction]:
        """The gradient, and how far it is from the true one at most, in the Euclidean norm. As private as the state."""
        moved = [value - Fraction(n, 2**self.used_bits) for value, n in zip(self.theta, self._point, strict=True)]
        square = self.limits.norm_squared * self.row_map.unit**2
        error = self.slope_error * self.unit * self.row_norm + self.curvature_bound * square * norm_above(moved)
        *sums, count = state.values()
        return [n * self.unit for n in sums], count * error

    def second(self, state: Slopes) -> NDArray[np.float64]:
        """The Hessian, about; zeros unless it was asked for. As private as the state."""
        return state.second * float(self.hessian_unit)


@dataclass(frozen=True)
class GradientEnclosure(PointGradient):
    """The gradient of the summed loss at exactly ``theta``, to an error that shrinks with the ``level``.

    ``theta``: dyadic fractions, one for each entry of ``schema.features``. With ``hessian``, also the second
    derivative in floats: good for steps, and neither exact nor the same for every partition.

    Guarantee: ``gradient`` is within its stated error of the gradient in the Euclidean norm, for every table; it is the
    same for every order and partition of the rows (``gradient.proof.md``, Theorem 1).
    """

    loss: Loss

    def __post_init__(self) -> None:
        self._check()
        float_error(self.loss)  # refuses what is not one of the losses

    @property
    def slope_bound(self) -> Fraction:
        """That of the loss."""
        return self.loss.slope

    @property
    def curvature_bound(self) -> Fraction:
        """That of the loss."""
        return self.loss.curvature

    @property
    def slope_error(self) -> Fraction:
        """As proved."""
        return float_error(self.loss) if self.coarse else _BALL_ERROR

    @property
    def hessian_unit(self) -> Fraction:
        """The size of one cell of the Hessian."""
        return self.loss.curvature * self.row_map.unit**2

    @cached_property
    def exact_in_floats(self) -> bool:
        """Whether level 0 takes the point as it is, and not the nearest one that it can take."""
        fine = self.coarse_bits
        return self.coarse and all(value.denominator <= 2**fine for value in self.theta)

    def float_slopes(self, V: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The slopes of the loss, and the roots of its curvatures."""
        u, label = self.arguments(V, w)
        slope, root = self.loss.parts(u)  # line 4
        if counts(self.loss):
            slope = slope - shares(self.loss, w, self.row_map.target_limit)
        return (slope if label is None else slope * label)[None], root

    def second_derivative(self, V: Floats, weights: Floats) -> Floats:
        """A Gram matrix of weighted rows; beside one column less than a multiple of four, zeros save BLAS time."""
        entries = V.shape[1]
        Z = np.empty((entries + (entries % 4 == 3), len(V)))
        Z[entries:] = 0.0
        np.multiply(V.T, weights, out=Z[:entries])
        product: Floats = np.dot(Z, Z.T)[:entries, :entries]
        return product

    def arguments(self, V: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        """What the loss is taken at: rounded once, and clipped far out."""
        p, width = self.used_bits, limb_bits(self.row_map)
        low, high = self.limb_products(V)[:, :, 0]  # line 1
        label = labels(self.loss, w, self.row_map.target_limit) if self.loss.classifies else None
        if label is None and not counts(self.loss):  # line 2: still whole numbers below 2**53
            if p >= width:
                high = high - w * 2.0 ** (p - width)
            else:
                low = low - w * 2.0**p
        u = (high * 2.0**width + low) * math.ldexp(1.0, -self.argument_bits)  # line 3
        far = _MAX_ARGUMENT * float(self.loss.slope)
        u = np.minimum(np.maximum(u if label is None else u * label, -far), far)
        return u, label

    def ball_slopes(self, V: Floats, w: Floats) -> tuple[list[list[int]], Floats | None]:
        """The slopes of the loss, and the roots of its curvatures if the Hessian is wanted."""
        arguments, signs = self.whole_arguments(V, w)
        roots = None
        if self.hessian:
            scale, far = Fraction(2) ** -self.argument_bits, Fraction(_MAX_ARGUMENT) * self.loss.slope
            u = np.array([float(min(max(n * scale, -far), far)) for n in arguments])
            with np.errstate(all="ignore"):
                roots = self.loss.parts(u)[1]
        taken = [exact_share(self.loss, int(n), self.row_map.target_limit) for n in w.tolist()]

        def balls(waiting: Sequence[int], bits: int) -> list[arb]:
            slope = slope_ball(self.loss, -self.argument_bits)
            return [(slope(arguments[i]) - ball(taken[i])) * arb((1, bits)) for i in waiting]

        slopes = enclosed(balls, len(arguments), self.slope_bits)  # line 9
        return [[n * sign for n, sign in zip(slopes, signs, strict=True)]], roots

    def whole_arguments(self, V: Floats, w: Floats) -> tuple[list[int], list[int]]:
        """What the loss is taken at, exactly: whole numbers of 2**-(point bits + grid bits); and the labels."""
        total = self.whole_products(V)[:, 0]
        signs: NDArray[Any] = np.ones(len(w), dtype=object)
        if self.loss.classifies:
            signs = labels(self.loss, w, self.row_map.target_limit).astype(np.int64).astype(object)
        elif not counts(self.loss):
            total = total - (w.astype(np.int64).astype(object) << self.used_bits)
        return [int(n) for n in (total * signs).tolist()], [int(n) for n in signs.tolist()]


def enclosed(
    balls: Callable[[Sequence[int], int], list[arb]], number: int, bits: int, spare: int = _SPARE_BITS
) -> list[int]:
    """Whole parts of the middles of ``number`` balls, at growing precision until every radius is below 1/2.

    ``balls(waiting, bits)`` gives those of the places in ``waiting``, in units of 2**-bits.
    """
    result = [0] * number
    waiting: Sequence[int] = range(number)
    while waiting:
        with precision(bits + spare):
            values = list(zip(waiting, balls(waiting, bits), strict=True))
            for i, value in values:
                result[i] = int(value.mid().floor().unique_fmpz() or 0)
            waiting = [i for i, value in values if not value.rad() < _HALF]
        spare *= 2  # for those that are not fine enough
    return result


def limbs(whole: Floats) -> Floats:
    """Whole numbers of at most 51 bits as three numbers of 17 bits, the lowest first and the last with the sign."""
    parts = np.empty((LIMBS, *whole.shape))
    for place in range(LIMBS - 1, 0, -1):
        np.floor(whole * 2.0 ** (-LIMB_BITS * place), out=parts[place])
        whole = whole - parts[place] * 2.0 ** (LIMB_BITS * place)
    parts[0] = whole
    return parts


def digits(whole: list[int], number: int) -> Floats:
    """Whole numbers in two's complement: one row for each place of 16 bits, the last one with the sign."""
    packed = b"".join(n.to_bytes(2 * number, "little", signed=True) for n in whole)
    places = np.frombuffer(packed, dtype="<u2").reshape(len(whole), number).T.astype(np.float64)
    places[-1] -= np.where(places[-1] >= 2.0**15, 2.0**16, 0.0)
    return places


def limb_bits(mapped: RowMap) -> int:
    """Bits of a limb of the point, such that its product with a row is below 2**52."""
    norm = math.isqrt(mapped.limits.norm_squared * mapped.entries) + 1
    return min(_MAX_POINT_BITS, 52 - norm.bit_length())


def point_bits(mapped: RowMap, largest: Fraction) -> int:
    """How fine a point level 0 can take: p for multiples of 2**-p; negative where it can take none."""
    width = limb_bits(mapped)
    size = max(0, largest.numerator.bit_length() - largest.denominator.bit_length() + 1)
    return min(2 * width - size, width + 52 - mapped.target_limit.bit_length())
