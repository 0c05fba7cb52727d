"""The gradient of a summed loss at an exactly given point, with a proved error: as fine as one asks for.

Level 0 is made of floats; every further level has twice as many bits as the one before, from balls, row by row. The
line numbers in the comments are those of ``gradient.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.noise.exact.minimiser import norm_above
from snugdp.numerics.balls import ball, precision
from snugdp.numerics.blas import require_exact_products
from snugdp.secrecy.private_state import Hidden, sealed, unsealed
from snugdp.tables.limits import Limits
from snugdp.tables.losses.enclosures import float_error, slope_ball
from snugdp.tables.losses.losses import Loss, counts, exact_share, labels, shares
from snugdp.tables.passes.base import row_map
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.schema import Layout

PROOF = "tables/passes/gradient.proof.md#theorem-1"

_EXACT = 1 << 53
_LIMB = 17  # bits of a limb of a slope
_LIMBS = 3
_POINT = 25  # bits of a limb of the point, at most
_FIRST = 100  # bits of a slope at level 1
_SPARE = 32  # working bits beyond those of a slope
_BALL_ERROR = Fraction(2)  # in units of the last place
_FAR = 2.0**40  # beyond so many times the scale a slope is at its bound, to 2**-80
_HALF = arb(0.5)
_ROWS_SIZE = 76  # bits of the number of rows


class Slopes(Hidden):
    """Sums of slope times row and the number of rows, as whole numbers; the Hessian in floats. Private."""

    __slots__ = ("count", "second", "sums")

    def __init__(self, entries: int) -> None:
        self.sums, self.count = [0] * entries, 0
        self.second = np.zeros((entries, entries))


@dataclass(frozen=True)
class FinePass:
    """The gradient of the summed loss at exactly ``theta``, to an error that shrinks with the ``level``.

    ``theta``: dyadic fractions, one for each entry of ``schema.features``. With ``hessian``, also the second
    derivative in floats: good for steps, and neither exact nor the same for every partition.

    Guarantee: ``gradient`` is within its stated error of the gradient in the Euclidean norm, for every table; it is the
    same for every order and partition of the rows (``gradient.proof.md``, Theorem 1).
    """

    schema: Layout
    theta: Sequence[Fraction]
    loss: Loss
    level: int = 0
    hessian: bool = False
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise ValueError("a loss needs a target: name one in the schema")
        theta = tuple(Fraction(value) for value in self.theta)
        if len(theta) != len(self.schema.features):
            raise ValueError(f"theta must have {len(self.schema.features)} entries, one for each of the features")
        if any(value.denominator & (value.denominator - 1) for value in theta):
            raise ValueError("the entries of theta must be dyadic: whole numbers over a power of two")
        if self.level < 0:
            raise ValueError("the level must be 0 or more")
        float_error(self.loss)  # refuses what is not one of the losses
        object.__setattr__(self, "theta", theta)

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.schema, self.bits)

    @cached_property
    def limits(self) -> Limits:
        """What the integers of every row obey."""
        return Limits(self.row_map.entries, self.row_map.limits.norm_squared, 0)

    @cached_property
    def _norm(self) -> int:
        """No row is longer, in cells."""
        return math.isqrt(self.limits.norm_squared) + 1

    @cached_property
    def _coarse(self) -> bool:
        return self.level == 0 and self._coarse_bits >= 0

    @cached_property
    def exact_in_floats(self) -> bool:
        """Whether level 0 takes the point as it is, and not the nearest one that it can take."""
        fine = self._coarse_bits
        return self._coarse and all(value.denominator <= 2**fine for value in self.theta)

    @property
    def argument_bits(self) -> int:
        """Arguments of the loss are whole numbers of 2**-argument_bits."""
        return self._point_bits + self.row_map.bits

    @property
    def _coarse_bits(self) -> int:
        return point_bits(self.row_map, max(abs(value) for value in self.theta))

    @cached_property
    def slope_bits(self) -> int:
        """Slopes are whole numbers of 2**-slope_bits of their bound."""
        return _LIMB * _LIMBS if self._coarse else _FIRST << max(0, self.level - 1)

    @cached_property
    def _point_bits(self) -> int:
        """The point in use is a vector of whole numbers of 2**-_point_bits."""
        if self._coarse:
            return self._coarse_bits
        return max(value.denominator.bit_length() - 1 for value in self.theta)

    @cached_property
    def _point(self) -> list[int]:
        return [round(value * 2**self._point_bits) for value in self.theta]

    @cached_property
    def _limbs(self) -> Floats:
        """The point in limbs, the lowest first; all but the highest are at least 0."""
        width, whole = limb_bits(self.row_map), list(self._point)
        number = 2 if self._coarse else max(1, -(-(max(abs(n) for n in whole).bit_length()) // width))
        limbs = [[(n >> (width * k)) & ((1 << width) - 1) for n in whole] for k in range(number - 1)]
        limbs.append([n >> (width * (number - 1)) for n in whole])
        return np.array(limbs, dtype=np.float64).T

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)

    @cached_property
    def block(self) -> int:
        """Rows of a block: sums of limbs are exact, and they fit a cache."""
        return max(1, min(self.limits.block, (_EXACT >> _LIMB) // self._norm))

    def empty(self) -> Slopes:
        """The sums over no rows."""
        self.require_exact()
        return Slopes(self.limits.entries)

    def require_exact(self) -> None:
        """Refuse to work where lines 1, 7 and 8 would not be exact."""
        (entries, limbs), places = self._limbs.shape, _LIMBS if self._coarse else self._digits
        require_exact_products((self.block, entries, limbs), (places, self.block, entries))

    @property
    def _digits(self) -> int:
        return self.slope_bits // 16 + 1

    def fold(self, state: Slopes, frame: nw.DataFrame[Any]) -> Slopes:
        """Add the rows of a frame."""
        for X, y in self.schema.blocks(frame):
            for V, w in self.row_map.blocks(X, y, self.block):
                self.add(state, V, w)
        return state

    def add(self, state: Slopes, V: Floats, w: Floats) -> None:
        """Add the rows of one block, as whole numbers of the row map."""
        for start in range(0, len(V), self.block):
            part = slice(start, start + self.block)
            add = self._add_floats if self._coarse else self._add_balls
            add(state, V[part], w[part])

    def _add_floats(self, state: Slopes, V: Floats, w: Floats) -> None:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            u, label = self.arguments(V, w)
            slope, root = self.loss.parts(u)  # line 4
            if counts(self.loss):
                slope = slope - shares(self.loss, w, self.row_map.target_limit)
            whole = np.rint((slope if label is None else slope * label) * 2.0**self.slope_bits)  # line 5
            np.clip(whole, -(2.0**self.slope_bits), 2.0**self.slope_bits, out=whole)
            limbs = np.empty((_LIMBS, len(V)))
            for place in range(_LIMBS - 1, 0, -1):  # line 6
                np.floor(whole * 2.0 ** (-_LIMB * place), out=limbs[place])
                whole -= limbs[place] * 2.0 ** (_LIMB * place)
            limbs[0] = whole
        self._add_second(state, V, root)
        self._add_products(state, limbs, V, _LIMB)

    def _add_second(self, state: Slopes, V: Floats, root: Floats) -> None:
        if self.hessian:
            Z = V * root[:, None]
            state.second += np.dot(Z.T, Z)

    def _add_products(self, state: Slopes, limbs: Floats, V: Floats, width: int) -> None:
        products = np.dot(limbs, V).astype(np.int64).tolist()  # line 7
        for place, row in enumerate(products):
            for j, value in enumerate(row):
                state.sums[j] += value << (width * place)
        state.count += len(V)

    def arguments(self, V: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        """What the loss is taken at: rounded once, and clipped far out."""
        p, width = self._point_bits, limb_bits(self.row_map)
        low, high = np.dot(V, self._limbs).T  # line 1
        label = labels(self.loss, w, self.row_map.target_limit) if self.loss.classifies else None
        if label is None and not counts(self.loss):  # line 2: still whole numbers below 2**53
            if p >= width:
                high = high - w * 2.0 ** (p - width)
            else:
                low = low - w * 2.0**p
        u = (high * 2.0**width + low) * math.ldexp(1.0, -p - self.row_map.bits)  # line 3
        far = _FAR * float(self.loss.slope)
        u = np.minimum(np.maximum(u if label is None else u * label, -far), far)
        return u, label

    def _add_balls(self, state: Slopes, V: Floats, w: Floats) -> None:
        arguments, signs = self.whole_arguments(V, w)
        scale = self.argument_bits
        if self.hessian:
            far = Fraction(_FAR) * self.loss.slope
            u = np.array([float(min(max(n * Fraction(2) ** -scale, -far), far)) for n in arguments])
            with np.errstate(all="ignore"):
                self._add_second(state, V, self.loss.parts(u)[1])
        taken = [exact_share(self.loss, int(n), self.row_map.target_limit) for n in w.tolist()]
        whole = [n * sign for n, sign in zip(self._slopes(arguments, taken, scale), signs, strict=True)]
        self._add_products(state, digits(whole, self._digits), V, 16)

    def whole_arguments(self, V: Floats, w: Floats) -> tuple[list[int], list[int]]:
        """What the loss is taken at, exactly: whole numbers of 2**-(point bits + grid bits); and the labels."""
        total: NDArray[Any] = np.zeros(len(V), dtype=object)
        for column in np.dot(V, self._limbs).astype(np.int64).T[::-1]:  # line 8
            total = (total << limb_bits(self.row_map)) + column.astype(object)
        signs: NDArray[Any] = np.ones(len(w), dtype=object)
        if self.loss.classifies:
            signs = labels(self.loss, w, self.row_map.target_limit).astype(np.int64).astype(object)
        elif not counts(self.loss):
            total = total - (w.astype(np.int64).astype(object) << self._point_bits)
        return [int(n) for n in (total * signs).tolist()], [int(n) for n in signs.tolist()]

    def _slopes(self, numerators: list[int], taken: list[Fraction], scale: int) -> list[int]:
        """Slopes at numerator * 2**-scale, less what is taken off, in units of 2**-slope_bits; to an error below 2."""
        spare, found = _SPARE, dict.fromkeys(range(len(numerators)), 0)
        waiting = list(found)
        while waiting:
            with precision(self.slope_bits + spare):  # line 9
                slope, unit = slope_ball(self.loss, -scale), arb((1, self.slope_bits))
                balls = {i: (slope(numerators[i]) - ball(taken[i])) * unit for i in waiting}
                waiting = [i for i, value in balls.items() if not value.rad() < _HALF]
                found.update({i: _floor(value) for i, value in balls.items()})
            spare *= 2  # for those that are not fine enough
        return list(found.values())

    @property
    def unit(self) -> Fraction:
        """The size of one cell of the gradient."""
        return self.loss.slope * self.row_map.unit * Fraction(1, 2**self.slope_bits)

    @property
    def hessian_unit(self) -> Fraction:
        """The size of one cell of the Hessian."""
        return self.loss.curvature * self.row_map.unit**2

    def gradient(self, state: Slopes) -> tuple[list[Fraction], Fraction]:
        """The gradient, and how far it is from the true one at most, in the Euclidean norm. As private as the state."""
        units = float_error(self.loss) if self._coarse else _BALL_ERROR
        moved = [value - Fraction(n, 2**self._point_bits) for value, n in zip(self.theta, self._point, strict=True)]
        square = self.limits.norm_squared * self.row_map.unit**2
        error = units * self.unit * self._norm + self.loss.curvature * square * norm_above(moved)
        return [n * self.unit for n in state.sums], state.count * error

    def second(self, state: Slopes) -> NDArray[np.float64]:
        """The Hessian, about; zeros unless it was asked for. As private as the state."""
        return state.second * float(self.hessian_unit)

    def merge(self, one: Slopes, other: Slopes) -> Slopes:
        """Add: the whole numbers exactly."""
        one.sums = [a + b for a, b in zip(one.sums, other.sums, strict=True)]
        one.count += other.count
        one.second += other.second
        return one

    @property
    def _width(self) -> int:
        return (self.slope_bits + self._norm.bit_length() + _ROWS_SIZE + 8) // 8

    def pack(self, state: Slopes) -> bytes:
        """All numbers exactly, in a public number of bytes."""
        whole = b"".join(n.to_bytes(self._width, "little", signed=True) for n in (*state.sums, state.count))
        return sealed(whole + state.second.astype("<f8").tobytes())

    def unpack(self, packed: bytes) -> Slopes:
        """The sums that were packed."""
        body, width, state = unsealed(packed), self._width, self.empty()
        entries = len(state.sums)
        if len(body) != width * (entries + 1) + 8 * entries**2:
            raise ValueError("these bytes are not sums of this level and grid")
        whole = [int.from_bytes(body[width * j : width * (j + 1)], "little", signed=True) for j in range(entries + 1)]
        state.sums, state.count = whole[:-1], whole[-1]
        state.second += np.frombuffer(body[width * (entries + 1) :], dtype="<f8").reshape(entries, entries)
        return state


def _floor(value: arb) -> int:
    """The whole part of the middle of a ball."""
    return int(value.mid().floor().unique_fmpz() or 0)


def digits(whole: list[int], number: int) -> Floats:
    """Whole numbers in two's complement: one row for each place of 16 bits, the last one with the sign."""
    packed = b"".join(n.to_bytes(2 * number, "little", signed=True) for n in whole)
    places = np.frombuffer(packed, dtype="<u2").reshape(len(whole), number).T.astype(np.float64)
    places[-1] -= np.where(places[-1] >= 2.0**15, 2.0**16, 0.0)
    return places


def limb_bits(mapped: RowMap) -> int:
    """Bits of a limb of the point, such that its product with a row is below 2**52."""
    norm = math.isqrt(mapped.limits.norm_squared * mapped.entries) + 1
    return min(_POINT, 52 - norm.bit_length())


def point_bits(mapped: RowMap, largest: Fraction) -> int:
    """How fine a point level 0 can take: p for multiples of 2**-p; negative where it can take none."""
    width = limb_bits(mapped)
    size = max(0, largest.numerator.bit_length() - largest.denominator.bit_length() + 1)
    return min(2 * width - size, width + 52 - mapped.target_limit.bit_length())
