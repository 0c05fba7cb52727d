"""What every row of integers obeys, and what follows from it in public: block sizes and sensitivities."""

from __future__ import annotations

from dataclasses import dataclass

from snugdp.core.guarantee import Neighbours

PROOF = "tables/passes/moments.proof.md#theorem-1"

_EXACT = 1 << 53  # whole numbers up to here are floats, so a float sum of them is exact
_CACHED_ENTRIES = (
    1 << 18
)  # entries of a block that stays in the cache: larger ones are not faster, smaller ones are slower
_MIN_BLOCK_ROWS, _MAX_BLOCK_ROWS = 1024, 8192  # unless exactness asks for fewer


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

    @property
    def largest_product(self) -> int:
        """No sum of absolute products over one row exceeds this."""
        return max(self.norm_squared, self.target**2)

    @property
    def rows_per_block(self) -> int:
        """The most rows over which BLAS sums are exact whatever their order (Theorem 2)."""
        return _EXACT // self.largest_product

    @property
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

        Guarantee: for all neighbouring tables (``tables/passes/moments.proof.md``, Theorem 1).

        >>> RowLimits(3, 100, 5).sensitivity("add_remove")
        Sensitivity(gram_squared=10000, cross_squared=2500, whole_squared=15625, square=25, count=1)
        """
        gram, cross, whole = (
            self.norm_squared**2,
            self.norm_squared * self.target**2,
            self.norm_squared + self.target**2,
        )
        if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE:
            return Sensitivity(gram, cross, whole**2, self.target**2, 1)
        return Sensitivity(2 * gram, 4 * cross, 2 * whole**2, self.target**2, 0)
