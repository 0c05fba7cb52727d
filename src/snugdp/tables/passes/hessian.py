"""The Hessian of a summed loss at an exactly given point, as whole numbers with a proved error.

A weighted Gram matrix: every row adds its square, times the second derivative of its loss to 51 bits or more. The line
numbers in the comments are those of ``hessian.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from flint import arb

from snugdp.numerics.balls import precision
from snugdp.numerics.blas import require_exact_products
from snugdp.secrecy.private_state import Hidden, sealed, unsealed
from snugdp.tables.losses.enclosures import curvature_ball, curvature_error
from snugdp.tables.passes.gradient import FinePass, digits
from snugdp.tables.rowmap import Floats

PROOF = "tables/passes/hessian.proof.md#theorem-1"

_LIMB = 17  # bits of a limb of a weight at level 0
_DIGIT = 16  # and of a digit above
_LIMBS = 3
_SPARE = 32
_BALL_ERROR = Fraction(2)
_BLOCKS = 512  # blocks in 64-bit sums: each adds at most 2**53
_ROWS_SIZE = 76


class Curvatures(Hidden):
    """Sums of weighted squares of rows and the number of rows, as whole numbers. Private."""

    __slots__ = ("count", "held", "parts", "sums")

    def __init__(self, entries: int, places: int) -> None:
        self.sums = [[0] * entries for _ in range(entries)]
        self.parts = np.zeros((places, 3, entries, entries), dtype=np.int64)
        self.held, self.count = 0, 0


@dataclass(frozen=True)
class CurvaturePass:
    """The second derivative of the summed loss at exactly the point of ``at``, to an error that shrinks with its level.

    Guarantee: ``gram`` times ``unit`` is positive semidefinite, within its stated error of the Hessian in the Frobenius
    norm for every table, and the same for every order and partition of the rows
    (``hessian.proof.md``, Theorem 1).
    """

    at: FinePass

    def __post_init__(self) -> None:
        curvature_error(self.at.loss)  # refuses what has no continuous second derivative

    @property
    def schema(self) -> Any:
        """That of the rows."""
        return self.at.schema

    @property
    def bits(self) -> int | None:
        """Of the grid."""
        return self.at.bits

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return self.at.columns

    @cached_property
    def _coarse(self) -> bool:
        """Whether floats take this point as it is."""
        return self.at.exact_in_floats

    @cached_property
    def _work(self) -> FinePass:
        """The arguments of the losses, by floats or exactly."""
        level = 0 if self._coarse else max(1, self.at.level)
        return FinePass(self.at.schema, self.at.theta, self.at.loss, level, False, self.at.bits)

    @property
    def weight_bits(self) -> int:
        """Weights are whole numbers of 2**-weight_bits of their bound."""
        return self._work.slope_bits

    @cached_property
    def _half(self) -> int:
        """Entries of rows are cut after so many bits."""
        return -(-(math.isqrt(self.at.limits.norm_squared) + 1).bit_length() // 2)

    @property
    def _places(self) -> int:
        return _LIMBS if self._coarse else self.weight_bits // _DIGIT + 1

    @property
    def block(self) -> int:
        """Rows of a block: products of limbs add up exactly."""
        return int(max(1, min(self._work.block, 1 << max(0, 53 - _LIMB - 2 * self._half))))

    def empty(self) -> Curvatures:
        """The sums over no rows."""
        entries = self.at.limits.entries
        self._work.require_exact()
        require_exact_products((entries, self.block, entries))
        return Curvatures(entries, self._places)

    def fold(self, state: Curvatures, frame: nw.DataFrame[Any]) -> Curvatures:
        """Add the rows of a frame."""
        for X, y in self.at.schema.blocks(frame):
            for V, w in self.at.row_map.blocks(X, y, self.block):
                self.add(state, V, w)
        return state

    def add(self, state: Curvatures, V: Floats, w: Floats) -> None:
        """Add the rows of one block, as whole numbers of the row map."""
        for start in range(0, len(V), self.block):
            part = slice(start, start + self.block)
            self._add(state, np.asarray(V[part], dtype=np.float64), w[part])

    def _add(self, state: Curvatures, V: Floats, w: Floats) -> None:
        weights = self._float_weights(V, w) if self._coarse else self._ball_weights(V, w)
        high = np.floor(V * 2.0**-self._half)  # line 3
        low = V - high * 2.0**self._half
        for place, weight in enumerate(weights):  # line 4
            first, second = high * weight[:, None], low * weight[:, None]
            for part, (one, other) in enumerate(((first, high), (first, low), (second, low))):
                state.parts[place, part] += np.dot(one.T, other).astype(np.int64)
        state.count += len(V)
        state.held += 1
        if state.held >= _BLOCKS:
            self._spill(state)

    def _float_weights(self, V: Floats, w: Floats) -> Floats:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            root = self.at.loss.parts(self._work.arguments(V, w)[0])[1]  # line 1
            whole = np.clip(np.rint(root * root * 2.0**self.weight_bits), 0.0, 2.0**self.weight_bits)  # line 2
        limbs = np.empty((_LIMBS, len(V)))
        for place in range(_LIMBS - 1, 0, -1):
            np.floor(whole * 2.0 ** (-_LIMB * place), out=limbs[place])
            whole = whole - limbs[place] * 2.0 ** (_LIMB * place)
        limbs[0] = whole
        return limbs

    def _ball_weights(self, V: Floats, w: Floats) -> Floats:
        arguments, _ = self._work.whole_arguments(V, w)
        spare, waiting = _SPARE, list(range(len(arguments)))
        found = dict.fromkeys(waiting, 0)
        while waiting:
            with precision(self.weight_bits + spare):  # line 5
                second, unit = curvature_ball(self.at.loss, -self._work.argument_bits), arb((1, self.weight_bits))
                balls = {i: second(arguments[i]) * unit for i in waiting}
                waiting = [i for i, value in balls.items() if not value.rad() < arb(0.5)]
                found.update({i: max(0, int(value.mid().floor().unique_fmpz() or 0)) for i, value in balls.items()})
            spare *= 2
        return digits(list(found.values()), self._places)

    def _spill(self, state: Curvatures) -> None:
        """Into Python integers, which have no end."""
        width, half = _LIMB if self._coarse else _DIGIT, self._half
        for place, (squares, mixed, rest) in enumerate(state.parts.tolist()):
            for i, row in enumerate(state.sums):
                for j in range(len(row)):
                    cross = mixed[i][j] + mixed[j][i]
                    row[j] += ((squares[i][j] << (2 * half)) + (cross << half) + rest[i][j]) << (width * place)
        state.parts[:] = 0
        state.held = 0

    @property
    def unit(self) -> Fraction:
        """The size of one cell of the Hessian."""
        return self.at.loss.curvature * self.at.row_map.unit**2 * Fraction(1, 2**self.weight_bits)

    def gram(self, state: Curvatures) -> list[list[int]]:
        """The sum in cells: symmetric, positive semidefinite. As private as the state."""
        self._spill(state)
        return [list(row) for row in state.sums]

    def error(self, state: Curvatures) -> Fraction:
        """How far the Hessian is off at most, in the Frobenius norm. As private as the state."""
        units = curvature_error(self.at.loss) if self._coarse else _BALL_ERROR
        return state.count * units * self.unit * self.at.limits.norm_squared

    def merge(self, one: Curvatures, other: Curvatures) -> Curvatures:
        """Add exactly."""
        self._spill(one)
        self._spill(other)
        one.sums = [
            [a + b for a, b in zip(left, right, strict=True)] for left, right in zip(one.sums, other.sums, strict=True)
        ]
        one.count += other.count
        return one

    @property
    def _width(self) -> int:
        return (self.weight_bits + self.at.limits.norm_squared.bit_length() + _ROWS_SIZE + 8) // 8

    def pack(self, state: Curvatures) -> bytes:
        """All numbers exactly, in a public number of bytes."""
        self._spill(state)
        values = [*(value for row in state.sums for value in row), state.count]
        return sealed(b"".join(n.to_bytes(self._width, "little", signed=True) for n in values))

    def unpack(self, packed: bytes) -> Curvatures:
        """The sums that were packed."""
        body, width, state = unsealed(packed), self._width, self.empty()
        entries = self.at.limits.entries
        if len(body) != width * (entries**2 + 1):
            raise ValueError("these bytes are not sums of this level and grid")
        values = [
            int.from_bytes(body[width * j : width * (j + 1)], "little", signed=True) for j in range(entries**2 + 1)
        ]
        state.sums = [values[entries * i : entries * (i + 1)] for i in range(entries)]
        state.count = values[-1]
        return state
