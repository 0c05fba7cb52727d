"""The gradient of a summed softmax loss at an exactly given point, with a proved error: as fine as one asks for.

As ``gradient.py``, for several classes at once: the target of a row is the code of its class. The line numbers in
the comments are those of ``softmax.proof.md``.
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

from snugdp.noise.exact.coins import LARGEST_EXPONENT, exp_neg
from snugdp.noise.exact.minimiser import norm_above
from snugdp.numerics.balls import precision
from snugdp.numerics.blas import require_exact_products
from snugdp.secrecy.private_state import Hidden, sealed, unsealed
from snugdp.tables.limits import Limits
from snugdp.tables.losses.losses import codes
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.gradient import digits, limb_bits, point_bits
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.schema import Layout

PROOF = "tables/passes/softmax.proof.md#theorem-1"

_EXACT = 1 << 53
_LIMB, _LIMBS, _DIGIT = 17, 3, 16
_FIRST, _SPARE = 100, 64
_ROWS_SIZE = 76
_FARTHEST = 10**6  # level 0 is for points at most so far out, in units of the loss


class ClassSlopes(Hidden):
    """Sums of slope times row for every class, and the number of rows, as whole numbers; the Hessian in floats."""

    __slots__ = ("count", "second", "sums")

    def __init__(self, classes: int, entries: int) -> None:
        self.sums, self.count = [0] * (classes * entries), 0
        self.second = np.zeros((classes * entries, classes * entries))


@dataclass(frozen=True)
class SoftmaxPass:
    """The gradient of the sum of log(sum_k exp(x . theta_k)) - x . theta_y, to an error that shrinks with ``level``.

    ``theta``: dyadic fractions, ``classes`` times as many as features, class by class. With ``hessian``, also the
    second derivative in floats: good for steps, and neither exact nor the same for every partition.

    Guarantee: ``gradient`` is within its stated error of the gradient in the Euclidean norm, for every table; it is the
    same for every order and partition of the rows (``softmax.proof.md``, Theorem 1).
    """

    schema: Layout
    theta: Sequence[Fraction]
    classes: int
    level: int = 0
    hessian: bool = False
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise ValueError("a loss needs a target: name one in the schema")
        theta = tuple(Fraction(value) for value in self.theta)
        if len(theta) != self.classes * len(self.schema.features):
            raise ValueError(f"theta must have {self.classes * len(self.schema.features)} entries, class by class")
        if any(value.denominator & (value.denominator - 1) for value in theta):
            raise ValueError("the entries of theta must be dyadic: whole numbers over a power of two")
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
        return math.isqrt(self.limits.norm_squared) + 1

    @cached_property
    def _coarse_bits(self) -> int:
        return point_bits(self.row_map, max(abs(value) for value in self.theta))

    @cached_property
    def reach(self) -> Fraction:
        """No x . theta_k is larger."""
        width, unit = self.row_map.entries, self.row_map.unit
        longest = max(norm_above(self.theta[k * width : (k + 1) * width]) for k in range(self.classes))
        return longest * self._norm * unit

    @cached_property
    def _coarse(self) -> bool:
        return self.level == 0 and self._coarse_bits >= 0 and self.reach <= _FARTHEST

    @cached_property
    def slope_bits(self) -> int:
        """Slopes are whole numbers of 2**-slope_bits."""
        return _LIMB * _LIMBS if self._coarse else _FIRST << max(0, self.level - 1)

    @cached_property
    def _point_bits(self) -> int:
        return self._coarse_bits if self._coarse else max(value.denominator.bit_length() - 1 for value in self.theta)

    @cached_property
    def _point(self) -> list[int]:
        return [round(value * 2**self._point_bits) for value in self.theta]

    @cached_property
    def _limbs(self) -> list[Floats]:
        """The point in limbs, the lowest first, each a matrix with a column for every class."""
        width, whole, shape = limb_bits(self.row_map), self._point, (self.classes, self.row_map.entries)
        number = 2 if self._coarse else max(1, -(-(max(abs(n) for n in whole).bit_length()) // width))
        limbs = [[(n >> (width * k)) & ((1 << width) - 1) for n in whole] for k in range(number - 1)]
        limbs.append([n >> (width * (number - 1)) for n in whole])
        return [np.array(limb, dtype=np.float64).reshape(shape).T.copy() for limb in limbs]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)

    @cached_property
    def block(self) -> int:
        """Rows of a block: sums of limbs are exact, and they fit a cache."""
        return max(1, min(self.limits.block, (_EXACT >> _LIMB) // self._norm))

    def empty(self) -> ClassSlopes:
        """The sums over no rows."""
        rows, entries = self.block, self.limits.entries
        require_exact_products((rows, entries, self.classes), (self.classes, rows, entries))
        return ClassSlopes(self.classes, self.limits.entries)

    def fold(self, state: ClassSlopes, frame: nw.DataFrame[Any]) -> ClassSlopes:
        """Add the rows of a frame."""
        for X, y in self.schema.blocks(frame):
            for V, w in self.row_map.blocks(X, y, self.block):
                self.add(state, V, w)
        return state

    def add(self, state: ClassSlopes, V: Floats, w: Floats) -> None:
        """Add the rows of one block, as whole numbers of the row map."""
        for start in range(0, len(V), self.block):
            part = slice(start, start + self.block)
            rows = np.asarray(V[part], dtype=np.float64)
            mine = codes(w[part], self.row_map.target_limit, self.classes).astype(np.int64)  # line 1
            (self._add_floats if self._coarse else self._add_balls)(state, rows, mine)

    def _add_floats(self, state: ClassSlopes, V: Floats, mine: NDArray[np.int64]) -> None:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            low, high = (np.dot(V, limb) for limb in self._limbs)  # line 2
            scale = math.ldexp(1.0, -self._point_bits - self.row_map.bits)
            chances = softmax((high * 2.0 ** limb_bits(self.row_map) + low) * scale)  # lines 3 and 4
            slope = chances.copy()
            slope[np.arange(len(V)), mine] -= 1.0
            whole = np.rint(slope * 2.0**self.slope_bits)  # line 5
            np.clip(whole, -(2.0**self.slope_bits), 2.0**self.slope_bits, out=whole)
        limbs = []
        for place in range(_LIMBS - 1, 0, -1):
            limb = np.floor(whole * 2.0 ** (-_LIMB * place))
            whole = whole - limb * 2.0 ** (_LIMB * place)
            limbs.append(limb)
        self._add_products(state, [whole, *limbs[::-1]], V, _LIMB)
        self._add_second(state, V, chances)

    def _add_second(self, state: ClassSlopes, V: Floats, chances: Floats) -> None:
        if not self.hessian:
            return
        width = self.limits.entries
        for k in range(self.classes):
            for j in range(k + 1):
                weight = chances[:, k] * ((1.0 if j == k else 0.0) - chances[:, j])
                part = np.dot(V.T, V * weight[:, None])
                state.second[k * width : (k + 1) * width, j * width : (j + 1) * width] += part
                if j < k:
                    state.second[j * width : (j + 1) * width, k * width : (k + 1) * width] += part.T

    def _add_products(self, state: ClassSlopes, limbs: list[Floats], V: Floats, width: int) -> None:
        for place, limb in enumerate(limbs):
            products = np.dot(limb.T, V).astype(np.int64).ravel().tolist()  # line 6
            for at, value in enumerate(products):
                state.sums[at] += value << (width * place)
        state.count += len(V)

    def _add_balls(self, state: ClassSlopes, V: Floats, mine: NDArray[np.int64]) -> None:
        total: NDArray[Any] = np.zeros((len(V), self.classes), dtype=object)
        for limb in self._limbs[::-1]:  # line 7
            total = (total << limb_bits(self.row_map)) + np.dot(V, limb).astype(np.int64).astype(object)
        slopes = [self._slopes([int(n) for n in row], int(at)) for row, at in zip(total.tolist(), mine, strict=True)]
        number = self.slope_bits // _DIGIT + 1
        columns = [digits([row[k] for row in slopes], number) for k in range(self.classes)]
        self._add_products(state, [np.stack([c[i] for c in columns], axis=1) for i in range(number)], V, _DIGIT)
        if self.hessian:
            scale = Fraction(2) ** -(self._point_bits + self.row_map.bits)
            below = [[float(max(-_FARTHEST, (n - max(row)) * scale)) for n in row] for row in total.tolist()]
            self._add_second(state, V, softmax(np.array(below).reshape(len(V), self.classes)))

    def _slopes(self, arguments: list[int], mine: int) -> list[int]:
        """The slopes of one row, each to an error below 3/2."""
        spare, top, scale = _SPARE, max(arguments), -(self._point_bits + self.row_map.bits)
        while True:
            with precision(self.slope_bits + spare):  # line 8
                small = [(arb(n - top) * arb((1, scale))).exp() for n in arguments]
                total = sum(small, arb(0))
                balls = [(e / total - (1 if k == mine else 0)) * arb((1, self.slope_bits)) for k, e in enumerate(small)]
                if all(ball.rad() < arb(0.5) for ball in balls):
                    return [int(ball.mid().floor().unique_fmpz() or 0) for ball in balls]
            spare *= 2

    @property
    def unit(self) -> Fraction:
        """The size of one cell of the gradient."""
        return self.row_map.unit * Fraction(1, 2**self.slope_bits)

    def gradient(self, state: ClassSlopes) -> tuple[list[Fraction], Fraction]:
        """The gradient, and how far it is from the true one at most, in the Euclidean norm. As private as the state."""
        root = math.isqrt(self.classes) + 1
        units = Fraction(2 * root)
        if self._coarse:
            units = Fraction(self.classes + 14, 4) + root * (1 + self.reach)
        moved = [value - Fraction(n, 2**self._point_bits) for value, n in zip(self.theta, self._point, strict=True)]
        square = self.limits.norm_squared * self.row_map.unit**2
        error = units * self.unit * self._norm + square / 2 * norm_above(moved)
        return [n * self.unit for n in state.sums], state.count * error

    def second(self, state: ClassSlopes) -> NDArray[np.float64]:
        """The Hessian, about; zeros unless it was asked for. As private as the state."""
        return state.second * float(self.row_map.unit**2)

    def merge(self, one: ClassSlopes, other: ClassSlopes) -> ClassSlopes:
        """Add: the whole numbers exactly."""
        one.sums = [a + b for a, b in zip(one.sums, other.sums, strict=True)]
        one.count += other.count
        one.second += other.second
        return one

    @property
    def _width(self) -> int:
        return (self.slope_bits + self._norm.bit_length() + _ROWS_SIZE + 8) // 8

    def pack(self, state: ClassSlopes) -> bytes:
        """All numbers exactly, in a public number of bytes."""
        whole = b"".join(n.to_bytes(self._width, "little", signed=True) for n in (*state.sums, state.count))
        return sealed(whole + state.second.astype("<f8").tobytes())

    def unpack(self, packed: bytes) -> ClassSlopes:
        """The sums that were packed."""
        body, width, state = unsealed(packed), self._width, self.empty()
        size = len(state.sums)
        if len(body) != width * (size + 1) + 8 * size**2:
            raise ValueError("these bytes are not sums of this level and grid")
        whole = [int.from_bytes(body[width * j : width * (j + 1)], "little", signed=True) for j in range(size + 1)]
        state.sums, state.count = whole[:-1], whole[-1]
        state.second += np.frombuffer(body[width * (size + 1) :], dtype="<f8").reshape(size, size)
        return state


def softmax(u: Floats) -> Floats:
    """exp(u_k) over their sum, in every row; from additions, multiplications and divisions alone.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    below = u.max(axis=1, keepdims=True) - u
    small = exp_neg(np.minimum(below.ravel(), LARGEST_EXPONENT)).reshape(u.shape)
    total = small[:, 0].copy()
    for k in range(1, u.shape[1]):  # in this order, on every machine
        total += small[:, k]
    chances: Floats = small / total[:, None]
    return chances
