"""Many exact draws at once: floats choose the route, never the result.

Each choice compares a random bit string with a real number. Floats with a proved error settle it when the
two are far apart; the few lanes that are close go to balls, on the same bits, read further. The line
numbers in the comments are those of ``filtered.proof.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.exact import entropy
from snugdp.noise.exact.coins import COIN_BITS, PROVED, Margins, coins
from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.exact.refine import Bits
from snugdp.noise.exact.shapes import TABLE_BITS, Floats, Shape, accepts, thresholds, whole_part

Integers: TypeAlias = NDArray[Any]  # int64, or Python integers where one of them does not fit

FRACTION_BITS = 64
_MAX_LANES = 1 << 15
_ONE = np.uint32(1)
_FLOAT_SCALES = (Fraction(1, 1 << 1000), Fraction(1 << 50))


@dataclass(frozen=True)
class DrawBatch:
    """Exact draws side by side; ``further`` keeps the fractions that may have been read beyond 64 bits."""

    negative: NDArray[np.bool_]
    whole: NDArray[np.int64]
    fraction: NDArray[np.uint64]
    further: dict[int, Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, lane: int) -> Deviate:
        """One draw by itself; asking again gives the same bits, however far they were read."""
        if lane not in self.further:
            self.further[lane] = Bits(int(self.fraction[lane]), FRACTION_BITS)
        return Deviate(bool(self.negative[lane]), int(self.whole[lane]), self.further[lane])


def draw(shape: Shape, n: int, margins: Margins = PROVED) -> DrawBatch:
    """``n`` independent draws from the shape, each with a fair sign.

    Guarantee: exactly the standard normal or Laplace law, whatever the margins at or above the proved ones
    (``filtered.proof.md``, Theorem 1).
    """
    parts: list[DrawBatch] = []
    have = 0
    while have < n or not parts:
        lanes = lanes_for(n - have, shape.acceptance)
        parts.append(_attempt(shape, lanes, margins))
        have += len(parts[-1])
    return _joined(parts, n)


def lanes_for(wanted: int, rate: float) -> int:
    """How many lanes to try so that ``wanted`` of them are probably accepted, in blocks that fit a cache."""
    return min(_MAX_LANES, ceil((wanted + 4 * sqrt(wanted)) / rate))


def _attempt(shape: Shape, lanes: int, margins: Margins) -> DrawBatch:
    raw = entropy.words(2 * lanes)  # line 1
    fraction, rest = raw[:lanes], raw[lanes:].view(np.uint32)
    u, coin, negative = rest[:lanes], rest[lanes:] >> _ONE, (rest[lanes:] & _ONE).astype(np.bool_)
    whole, open_table = _whole_parts(shape, u, margins.table)  # line 2
    exponent = shape.exponent(whole.astype(np.float64), leading(fraction))
    accepted, open_coin = coins(exponent, coin, margins.accept)  # line 3
    read: dict[int, Bits] = {}
    for lane in np.flatnonzero(open_table | open_coin).tolist():  # line 4
        k = whole_part(shape, Bits(int(u[lane]), TABLE_BITS))
        read[lane] = Bits(int(fraction[lane]), FRACTION_BITS)
        accepted[lane] = accepts(shape, k, read[lane], Bits(int(coin[lane]), COIN_BITS))
        whole[lane] = k
    further = {int(np.count_nonzero(accepted[:i])): bits for i, bits in read.items() if accepted[i]}
    return DrawBatch(negative[accepted], whole[accepted], fraction[accepted], further)  # line 5


def leading(fraction: NDArray[np.uint64]) -> Floats:
    """The first 53 bits of a fraction: a float without any rounding."""
    return (fraction >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=32)
def _edges(shape: Shape, margin: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The table moved up by the margin, and moved down by it with a last entry that is always too close."""
    top = (1 << TABLE_BITS) - 1
    table = thresholds(shape)
    upper = np.array([min(entry + margin, top) for entry in table], dtype=np.uint32)
    lower = np.array([max(entry - margin, 0) for entry in table] + [0], dtype=np.uint32)
    return upper, lower


def _whole_parts(shape: Shape, u: NDArray[np.uint32], margin: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    upper, lower = _edges(shape, margin)
    k = np.searchsorted(upper, u, side="left")
    return k, u >= lower[k]


def _joined(parts: list[DrawBatch], n: int) -> DrawBatch:
    further: dict[int, Bits] = {}
    start = 0
    for part in parts:
        further.update({start + lane: bits for lane, bits in part.further.items()})
        start += len(part)
    return DrawBatch(
        np.concatenate([part.negative for part in parts])[:n],
        np.concatenate([part.whole for part in parts])[:n],
        np.concatenate([part.fraction for part in parts])[:n],
        further,
    )


def floors(batch: DrawBatch, scale: Fraction, shift: Fraction, margins: Margins = PROVED) -> Integers:
    """floor(scale * |draw| + shift) in every lane, for a shift of 0 or 1/2.

    Guarantee: exact, lane by lane (``filtered.proof.md``, Theorem 2).
    """
    if not _FLOAT_SCALES[0] <= scale <= _FLOAT_SCALES[1]:
        return _integers([batch[lane].floor(scale, shift) for lane in range(len(batch))])
    factor = float(scale)
    t = factor * (batch.whole + leading(batch.fraction))  # line 6
    window = (t * 2.0**-49 + (factor * 2.0**-52 + 2.0**-52)) * margins.window
    t += float(shift)
    unsure = np.abs(t - np.rint(t)) <= window  # line 7
    values: Integers = np.floor(t).astype(np.int64)
    lanes = np.flatnonzero(unsure)
    if len(lanes):
        exact = _integers([batch[lane].floor(scale, shift) for lane in lanes.tolist()])  # line 8
        values = values.astype(exact.dtype, copy=False)
        values[lanes] = exact
    return values


def rounded(shape: Shape, scale: Fraction, n: int, margins: Margins = PROVED) -> Integers:
    """``n`` draws from the shape with a fair sign, times ``scale``, rounded to whole numbers.

    A negative draw is rounded by its size: the two agree except where the size is a whole number and a
    half, which has probability zero.
    """
    batch = draw(shape, n, margins)
    return signed(batch, floors(batch, scale, Fraction(1, 2), margins))


def signed(batch: DrawBatch, sizes: Integers) -> Integers:
    """The sizes with the signs of the draws they came from."""
    values: Integers = np.where(batch.negative, -sizes, sizes)
    return values


def _integers(values: list[int]) -> Integers:
    fits = all(-(1 << 62) < value < 1 << 62 for value in values)
    return np.array(values, dtype=np.int64 if fits else np.object_)
