"""Where rows lie: their sum and their norms, and how far targets are from a public prediction.

Each row adds whole numbers, or counts in one bin on a logarithmic scale, as a function of that row alone; the
sensitivities are those of whole numbers. Proofs: ``distances.proof.md`` for targets, ``norms.proof.md`` for rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

_EXACT = 1 << 53
_MANTISSA_BITS = 52
_ONE_LESS = 1 << _MANTISSA_BITS  # of the bits of a float: its exponent is one less
_MAX_POINT_BITS, _MAX_COEFFICIENT = 60, Fraction(2) ** 100


@dataclass(frozen=True)
class _Residuals(RowPass[Sums]):
    """What these passes have in common: y - x . theta in cells, row by row, theta public (zero if left out)."""

    schema: Layout
    theta: Sequence[float | Fraction] | None = None
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise ValueError("a residual needs a target: name one in the schema")
        given = [0] * self.row_map.entries if self.theta is None else self.theta
        theta = tuple(Fraction(value) for value in given)
        if len(theta) != self.row_map.entries:
            raise ValueError(f"theta must have {self.row_map.entries} entries, one for each of the features")
        if any(abs(value) > _MAX_COEFFICIENT for value in theta):
            raise ValueError("the entries of theta must be at most 2**100")
        object.__setattr__(self, "theta", theta)

    @cached_property
    def _point(self) -> tuple[NDArray[np.float64], int]:
        """Theta in whole multiples of 2**-s, as fine as keeps every x . theta exact in floats; and s."""
        theta = [Fraction(value) for value in self.theta or ()]
        s = _MAX_POINT_BITS
        while self.row_map.limits.norm_squared * sum(round(v * Fraction(2) ** s) ** 2 for v in theta) > _EXACT**2:
            s -= 1
        return np.array([float(round(v * Fraction(2) ** s)) for v in theta]), s

    @cached_property
    def _used(self) -> NDArray[np.intp]:
        """The entries that theta is not zero at: the others add nothing to a product."""
        return np.flatnonzero(self._point[0])

    def _residuals(self, V: NDArray[Any], w: Floats) -> Floats:
        """Those of some rows: one exact product, one rounded difference, so a function of the row alone."""
        (point, s), used = self._point, self._used
        part = V if len(used) == V.shape[1] else V[:, used]
        products = np.dot(part.astype(np.float64, copy=False), point[used])
        return np.asarray(w - products * math.ldexp(1.0, -s))  # 1

    def _sizes(self, V: NDArray[Any], w: Floats) -> Floats:
        """|y - x . theta| in cells."""
        return np.abs(self._residuals(V, w))  # 1

    def add(self, state: Sums, V: NDArray[Any], w: NDArray[Any]) -> None:
        """Add rows that went through the row map already; those in single precision become floats where it is used."""
        for start in range(0, len(V), self.block):
            part = slice(start, start + self.block)
            self.add_block(state, V[part], w[part].astype(np.float64, copy=False))

    @property
    def bins(self) -> int:
        """How many numbers are summed."""
        return 2

    def empty(self) -> Sums:
        """Nothing seen yet."""
        require_exact_products((self.row_map.limits.block, self.row_map.entries, 1))
        return Sums(self.bins)


@dataclass(frozen=True)
class ScalePass(_Residuals):
    """The sum of the residuals' sizes, each at most the bound T on a target, and the sum of what they lack to T.

    Both in cells; together they are T times the number of rows.

    Guarantee: a row adds whole numbers (w, T - w) with 0 <= w <= T, so the pair moves by at most T in Euclidean norm
    when a row comes or goes (``distances.proof.md``, Theorem 1); the number of rows and the sum, released as they
    are, would move by up to the root of 2 times as much.

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = ScalePass(Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.0, 0.0], "y": [-0.5, 0.25]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [12, 20]
    """

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        limit = self.row_map.target_limit
        whole = np.minimum(np.floor(self._sizes(V, w)), float(limit)).astype(np.int64)  # 2
        total = int(whole.sum())
        state.accumulate([total, limit * len(whole) - total])


@dataclass(frozen=True)
class ResidualHistogramPass(_Residuals):
    """Rows by the size of their residual: bin k holds T 2**(-(k+1)/2) <= size < T 2**(-k/2), T the bound on a target.

    Larger ones count in the first bin, smaller ones in the last, so that every row counts once.

    Guarantee: one row moves one count by one (``distances.proof.md``, Theorem 2): Gaussian noise of deviation s on
    every bin costs mu = 1/s when a row comes or goes, however many bins there are.

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = ResidualHistogramPass(Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"), count=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.0] * 4, "y": [1.0, -0.6, 0.5, 0.001]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [1, 2, 0, 1]
    """

    count: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.count, int) or not 2 <= self.count <= 80:
            raise ValueError("count, the number of bins, must be a whole number from 2 to 80")

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self.count

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The lower ends of all bins but the last, in cells, from the largest down."""
        top = float(self.row_map.target_limit)
        return tuple(math.ldexp(top * (math.sqrt(0.5) if k % 2 else 1.0), -(k // 2)) for k in range(1, self.count))

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Count the rows of one block."""
        state.accumulate(_binned(self._sizes(V, w), self.edges))  # 3


@dataclass(frozen=True)
class ResidualSumPass(_Residuals):
    """The sum of the residuals y - x . theta, each clipped to ``clip`` cells on either side.

    Guarantee: a row adds a whole number between -clip and clip (``distances.proof.md``, Theorem 3).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = ResidualSumPass(Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"), bits=4, clip=6)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.0, 0.0], "y": [-0.5, 0.25]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [-2]
    """

    clip: int = 1

    @property
    def bins(self) -> int:
        """One sum."""
        return 1

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        whole = np.clip(np.floor(self._residuals(V, w)), -float(self.clip), float(self.clip))  # 4
        state.accumulate([int(whole.astype(np.int64).sum())])


@dataclass(frozen=True)
class TargetHistogramPass(RowPass[Sums]):
    """Rows by their target, in ``count`` bins of one width between its bounds.

    Guarantee: one row moves one count by one (``distances.proof.md``, Theorem 4).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = TargetHistogramPass(Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"), count=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.0] * 4, "y": [-1.0, -0.2, 0.5, 9.0]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [1, 1, 0, 2]
    """

    schema: Layout
    bits: int | None = None
    count: int = 12

    def empty(self) -> Sums:
        """Nothing counted yet."""
        return Sums(self.count)

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The lower ends of all bins but the first, in cells."""
        limit = float(self.row_map.target_limit)
        return np.array([limit * (2 * k - self.count) / self.count for k in range(1, self.count)])

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Count the rows of one block."""
        bins = np.searchsorted(self.edges, w, side="right")  # 5
        state.accumulate(np.bincount(bins, minlength=self.count).tolist())


@dataclass(frozen=True)
class RowSumPass(RowPass[Sums]):
    """The sums of the entries of all rows in cells, and last the number of rows.

    Guarantee: whole numbers, equal for every order and partition of the rows; the sums of the entries move by at most
    the norm of a row when one comes or goes, and the number by 1 (``norms.proof.md``, Theorem 1).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = RowSumPass(Schema({"x": Number(-1, 1)}, intercept=False), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, -7.0, None]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [-8, 3]
    """

    schema: Layout
    bits: int | None = None

    def empty(self) -> Sums:
        """The sums over no rows."""
        require_exact_products((1, self.block, self.row_map.entries))
        return Sums(self.row_map.entries + 1)

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        state.accumulate([*np.dot(np.ones(len(V)), V).astype(np.int64).tolist(), len(V)])


@dataclass(frozen=True)
class NormPass(RowPass[Sums]):
    """Rows by the norm of their features: bin k holds T 2**(-(k+1)/2) <= norm < T 2**(-k/2), T the bound on it.

    Longer rows count in the first bin, shorter ones in the last, so that every row counts once. ``fine``: four bins for
    every halving, not two.

    Guarantee: one row moves one count by one (``norms.proof.md``, Theorem 2).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> frame = nw.from_native(pd.DataFrame({"x": [1.0, -0.6, 0.5, 0.001]}), eager_only=True)
    >>> work = NormPass(Schema({"x": Number(-1, 1)}), count=4)
    >>> work.fold(work.empty(), frame).values()
    [1, 2, 0, 1]
    """

    schema: Layout
    bits: int | None = None
    count: int = 24
    fine: bool = False

    def empty(self) -> Sums:
        """Nothing counted yet."""
        return Sums(self.count)

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The lower ends of all bins but the last, as squares in cells, from the largest down."""
        top = float(self.row_map.norm_squared)
        if not self.fine:
            return tuple(math.ldexp(top, -k) for k in range(1, self.count))
        return tuple(math.ldexp(top * (math.sqrt(0.5) if k % 2 else 1.0), -(k // 2)) for k in range(1, self.count))

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Count the rows of one block."""
        features = np.asarray(V[:, : self.row_map.entries - self.row_map.constant], dtype=np.float64)
        squares = np.einsum("ij,ij->i", features, features)
        state.accumulate(_binned(squares, self.edges))


def _binned(sizes: Floats, edges: Sequence[float]) -> list[int]:
    """How many sizes lie in each bin; the edges are the lower ends of all bins but the last, from the largest down.

    Every other edge, or every one, is half of the one before: the edges above a size are counted from the bits of both,
    where a half is one less in the exponent. Sizes are not negative.
    """
    steps = 1 if len(edges) < 2 or 2 * edges[1] == edges[0] else 2
    low = edges[-1] / 2  # below all edges, and not so small that it has no exponent of its own
    bits = np.fmax(np.fmin(sizes, edges[0]), low).view(np.int64)  # what is no number is above all edges
    bins = np.zeros(len(sizes), dtype=np.int64)
    for first in range(min(steps, len(edges))):
        top = int(np.float64(edges[first]).view(np.int64))
        above = np.subtract(top + _ONE_LESS - 1, bits)
        above >>= _MANTISSA_BITS
        bins += np.minimum(above, len(edges[first::steps]), out=above)
    counts: list[int] = np.bincount(bins, minlength=len(edges) + 1).tolist()
    return counts
