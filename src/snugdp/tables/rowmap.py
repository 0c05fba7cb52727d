"""The row map: every row, whatever it holds, becomes a row of integers that obeys its bounds as integers.

The image of a row depends on that row alone. Float norms would not do: their last bit depends on the order of
summation, hence on the block and the memory layout, and then one row more could move *other* rows. So entries are
truncated first, and only whole numbers are summed. What every image obeys gives block sizes and sensitivities in
public. Line numbers in comments: those of ``passes/vectors/moments.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.numerics.blas import require_exact_products
from snugdp.numerics.rationals import Real, rational
from snugdp.tables.grid import exponent_above

Floats: TypeAlias = NDArray[np.float64]

_EXACT = 1 << 53  # whole numbers up to here are floats, so a float sum of them is exact
_CACHED_ENTRIES = 1 << 19  # of a block: larger ones are not faster, and smaller ones are slower
_MIN_BLOCK_ROWS, _MAX_BLOCK_ROWS = 1024, 8192  # unless exactness asks for fewer
_BITS = 20  # of the bound: the grid is about a millionth of it
_TARGET_BITS = 22
_LONG_ROW_SHARE = 4  # a block with more than one long row in so many is shortened as a whole
_MIN_VECDOT_ENTRIES = 64  # entries from which on numpy's row-wise product is fastest; numpy 2 has it
_SAFE = 1 - 2.0**-40  # far more than three roundings, far less than a cell

_vecdot: Any = getattr(np, "vecdot", None)


@dataclass(frozen=True)
class Sensitivity:
    """How far the statistics of neighbouring tables can lie apart, in whole units and therefore exactly.

    Squares of Euclidean norms: of X'X (Frobenius), of X'y, and of the whole (X, y)'(X, y), which counts X'y twice.
    ``square`` bounds the change of y'y itself, ``count`` that of the number of rows.
    """

    gram_squared: int
    cross_squared: int
    whole_squared: int
    square: int
    count: int


@dataclass(frozen=True)
class RowLimits:
    """Bounds on a row of integers (t, w): t has ``entries`` of them, t.t <= ``norm_squared`` and |w| <= ``target``.

    >>> limits = RowLimits(entries=20, norm_squared=2**40, target=2**20)
    >>> limits.rows_per_block, limits.blocks_before_spill, limits.rows_in_int64
    (8192, 1023, 8388607)
    """

    entries: int
    norm_squared: int
    target: int

    def __post_init__(self) -> None:
        if self.entries < 1:
            raise ValueError("a row needs at least one entry")
        if self.norm_squared < 1 or self.target < 0:
            raise ValueError("the grid is too coarse: no row but zero fits the bound. Give more bits")
        if self.largest_product > _EXACT // 2:
            raise ValueError("the grid is too fine: a product of two entries is not exact in a float. Give fewer bits")

    @cached_property
    def largest_product(self) -> int:
        """No sum of absolute products over one row exceeds this."""
        return max(self.norm_squared, self.target**2)

    @cached_property
    def rows_per_block(self) -> int:
        """The most rows over which BLAS sums are exact whatever their order (Theorem 2)."""
        return _EXACT // self.largest_product

    @cached_property
    def block(self) -> int:
        """The rows of a block in use: as many as are exact, and fit a cache."""
        return min(self.rows_per_block, _MAX_BLOCK_ROWS, max(_MIN_BLOCK_ROWS, _CACHED_ENTRIES // self.entries))

    @property
    def blocks_before_spill(self) -> int:
        """How many of the largest blocks an int64 holds (Theorem 3)."""
        return ((1 << 63) - 1) // (self.rows_per_block * self.largest_product)

    @property
    def rows_in_int64(self) -> int:
        """How many rows an int64 holds (Theorem 3)."""
        return ((1 << 63) - 1) // self.largest_product

    def sensitivity(self, neighbours: Neighbours | str) -> Sensitivity:
        """The exact sensitivities for one row more or less, or for one row replaced.

        Guarantee: for all neighbouring tables (``tables/passes/vectors/moments.proof.md``, Theorem 1).

        >>> RowLimits(3, 100, 5).sensitivity("add_remove")
        Sensitivity(gram_squared=10000, cross_squared=2500, whole_squared=15625, square=25, count=1)
        """
        gram, cross = self.norm_squared**2, self.norm_squared * self.target**2
        whole = self.norm_squared + self.target**2
        if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE:
            return Sensitivity(gram, cross, whole**2, self.target**2, 1)
        return Sensitivity(2 * gram, 4 * cross, 2 * whole**2, self.target**2, 0)


@dataclass(frozen=True)
class RowMap:
    """From floats to integers in units of 2**-bits: public, and the same for every row.

    ``entries`` per row; ``feature_bound`` on the Euclidean norm of the features, ``target_bound`` on the target.
    With ``constant``, the last entry is an intercept: always 1, not part of the norm, never shortened. Rows that are
    too long are shortened to the bound; infinities count as very large, and what is not a number counts as 0. A target
    bound of 0 says that there is no target.

    Guarantee: the image satisfies ``limits`` as integers and is a function of the row alone
    (``passes/vectors/moments.proof.md``, Lemma 1).

    >>> row_map = RowMap(entries=2, feature_bound=1)
    >>> rows, target = row_map.integers([[0.5, float("nan")], [3, 4]], [2.0, -0.25])
    >>> rows.tolist(), target.tolist()
    ([[524288, 0], [629145, 838860]], [1048576, -262144])
    """

    entries: int
    feature_bound: Fraction
    target_bound: Fraction
    bits: int
    constant: bool

    def __init__(
        self, entries: int, feature_bound: Real, target_bound: Real = 1, bits: int | None = None, constant: bool = False
    ) -> None:
        features, target = rational(feature_bound, "the feature bound"), rational(target_bound, "the target bound")
        for bound in (features, target or features):
            if not Fraction(1, 10**250) < bound < Fraction(10**250):
                raise ValueError("bounds must be positive, between 1e-250 and 1e250")
        if bits is None:
            bits = _default_bits(features**2 + constant, target)
        values = {"entries": entries, "feature_bound": features, "target_bound": target, "bits": bits}
        for name, value in {**values, "constant": constant}.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if self.entries < 1:
            raise ValueError("a row needs at least one entry")
        if abs(self.bits) > 900:
            raise ValueError("bits must be between -900 and 900")
        if self.constant and self.bits < 0:
            raise ValueError("the grid is too coarse for an intercept of 1: give a smaller feature bound, or bits >= 0")
        if self.entry_limit**2 < self.norm_squared:
            raise ValueError(f"{self.bits} bits are too many for {self.entries} entries: give fewer bits")
        self.limits  # noqa: B018  # the limits check themselves

    @property
    def unit(self) -> Fraction:
        """The size of one cell; products of two entries are in units of its square."""
        return Fraction(2) ** -self.bits

    @cached_property
    def norm_squared(self) -> int:
        """The bound on the sum of squares of the features, in cells."""
        return math.floor((self.feature_bound / self.unit) ** 2)

    @cached_property
    def target_limit(self) -> int:
        """The bound on the target, in cells."""
        return math.floor(self.target_bound / self.unit)

    @property
    def entry_limit(self) -> int:
        """Where single entries are clipped, so that their squares add up exactly."""
        return math.isqrt(_EXACT // self.entries)

    @cached_property
    def limits(self) -> RowLimits:
        """What every image obeys, and what follows from it in public."""
        return RowLimits(self.entries, self.norm_squared + (4**self.bits if self.constant else 0), self.target_limit)

    def integers(self, X: Any, y: Any = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The images of all rows at once, to look at the map itself; statistics use ``blocks``."""
        rows, target = np.asarray(X, dtype=np.float64), None if y is None else np.asarray(y, dtype=np.float64)
        mapped = [(V.astype(np.int64), w.astype(np.int64)) for V, w in self.blocks(rows, target)]
        if not mapped:
            return np.empty((0, self.entries), np.int64), np.empty(0, np.int64)
        return np.concatenate([V for V, _ in mapped]), np.concatenate([w for _, w in mapped])

    def blocks(
        self, X: NDArray[Any], y: NDArray[Any] | None, rows: int | None = None
    ) -> Iterator[tuple[Floats, Floats]]:
        """Images of consecutive rows, as whole numbers in floats; each block is overwritten by the next."""
        self._check_shapes(X, y)
        require_exact_products((self.limits.block, self.entries, 1), (1, self.entries, 1))  # for line 2
        size = max(1, min(len(X), rows or self.limits.block))
        by_column = abs(X.strides[0]) < abs(X.strides[1])
        work = [np.empty((size, self.entries), order="F" if by_column else "C") for _ in range(2)]
        target = np.zeros(size)
        for start in range(0, len(X), size):
            stop = min(start + size, len(X))
            V, W, w = work[0][: stop - start], work[1][: stop - start], target[: stop - start]
            # A warning would depend on private values. Ended before the caller goes on: it is a setting of the thread.
            with np.errstate(all="ignore"):
                self._map_features(X[start:stop], V, W)
                if y is not None:
                    self._map_target(y[start:stop], w)
            yield V, w

    def _check_shapes(self, X: NDArray[Any], y: NDArray[Any] | None) -> None:
        if X.ndim != 2 or X.shape[1] != self.entries:
            raise ValueError(f"the features must be a matrix of {self.entries} columns")
        if y is not None and y.shape != X.shape[:1]:
            raise ValueError("the target must be a vector with one number per row")
        for array in (X, y):
            if array is not None and array.dtype.kind not in "biuf":
                raise TypeError(f"features and target must be arrays of numbers, not of {array.dtype}")

    def _map_features(self, X: NDArray[Any], V: Floats, W: Floats) -> None:
        np.multiply(X, math.ldexp(1.0, self.bits), out=V, dtype=np.float64)  # line 1
        np.trunc(V, out=V)
        if not self._all_small(V):
            self._bound(V, W)
        if self.constant:
            V[:, -1] = math.ldexp(1.0, self.bits)  # line 6

    def _all_small(self, V: Floats) -> bool:
        """Whether every entry is so small that no row is too long, by a quick look where there is one (line 2)."""
        width = self.entries - self.constant
        if width >= _MIN_VECDOT_ENTRIES or (self.constant and V.strides[0] > V.strides[1]):
            return False
        features, small = V[:, :width], math.isqrt(self.norm_squared // max(width, 1))
        return not width or bool(features.max() <= small and features.min() >= -small)

    def _bound(self, V: Floats, W: Floats) -> None:
        norms = self._norms(V, W)  # line 2
        if not norms.max() <= self.norm_squared:  # also when one of them is not a number
            long = ~(norms <= self.norm_squared)
            if _LONG_ROW_SHARE * np.count_nonzero(long) > len(V):
                self._shorten(V, W, norms)
            else:
                few = V[long]
                self._shorten(few, np.empty_like(few), norms[long])
                V[long] = few

    def _shorten(self, V: Floats, W: Floats, norms: Floats) -> None:
        if not norms.max() <= self.entry_limit**2:  # otherwise line 3 changes nothing
            np.clip(V, -float(self.entry_limit), float(self.entry_limit), out=V)  # line 3
            np.copyto(V, 0.0, where=np.isnan(V))
            norms = self._norms(V, W)
        root = math.sqrt(self.norm_squared) * _SAFE
        factor = np.where(norms > self.norm_squared, root / np.sqrt(norms), 1.0)  # line 4
        V *= factor[:, None]
        np.trunc(V, out=V)
        V[self._norms(V, W) > self.norm_squared] = 0.0  # line 5

    def _norms(self, V: Floats, W: Floats) -> Floats:
        """Sums of squares by rows: exact where they matter (Lemma 1), in whichever way is fastest."""
        features = V[:, :-1] if self.constant else V
        width = features.shape[1]
        norms: Floats
        if width >= _MIN_VECDOT_ENTRIES and V.strides[1] == V.itemsize and _vecdot is not None:
            norms = _vecdot(features, features)
        else:
            norms = np.dot(np.multiply(features, features, out=W[:, :width]), np.ones(width))
        return norms

    def _map_target(self, y: NDArray[Any], w: Floats) -> None:
        np.multiply(y, math.ldexp(1.0, self.bits), out=w, dtype=np.float64)  # line 7
        np.trunc(w, out=w)
        limit = float(self.target_limit)
        if not (w.max(initial=0.0) <= limit and w.min(initial=0.0) >= -limit):  # also when one is not a number
            np.clip(w, -limit, limit, out=w)
            np.copyto(w, 0.0, where=np.isnan(w))


def _default_bits(norm_squared: Fraction, target: Fraction) -> int:
    """20 bits for the bound of a row; fewer where the target would have more than 22."""
    bits = _BITS - exponent_above(norm_squared, 2)
    return min(bits, _TARGET_BITS - exponent_above(target)) if target else bits
