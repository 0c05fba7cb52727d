"""The guard under all sums of whole numbers: whether matrix products are sums of products, with nothing rounded.

A product by Strassen's or Winograd's method adds entries of different rows first, and in single or split precision
digits get lost. Both would let statistics depend on the order of rows. What is looked at, and what follows from it:
``blas.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.threads import blas_is_held

_EXACT = 1 << 53
_GAP = 100  # between scales: an entry is lost beside one of the next scale
_SCALES = 9  # with products they stay between 2**-801 and 2**853
_SMALL = 97  # rows and columns of a second, small trial

Product: TypeAlias = Callable[[Any, Any], Any]
Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


def require_exact_products(*shapes: tuple[int, int, int]) -> None:
    """Refuse to work where ``np.dot`` of an m by k and a k by n matrix is not exact, for any of the (m, k, n) given.

    Each is looked at once with one thread for BLAS, as in a fit, and once with as many as it has otherwise.
    """
    for shape in shapes:
        if not _exact_products(*shape, blas_is_held()):
            raise RuntimeError(_REFUSAL)


def require_exact_gram(rows: int, entries: int) -> None:
    """The same for ``np.dot(Z.T, Z)``, which BLAS does in another way, with a Z of so many rows and entries."""
    if not _exact_gram(rows, entries, blas_is_held()):
        raise RuntimeError(_REFUSAL)


_REFUSAL = (
    "the matrix product of this numpy is not an exact sum of products of whole numbers below 2**53, so "
    "statistics would depend on the order of rows. Use a numpy with a standard BLAS, as on PyPI"
)


@cache
def _exact_products(m: int, k: int, n: int, held: bool) -> bool:
    return products_are_exact(np.dot, m, k, n)


@cache
def _exact_gram(rows: int, entries: int, held: bool) -> bool:
    return gram_is_exact(np.dot, rows, entries)


def products_are_exact(product: Product, m: int, k: int, n: int) -> bool:
    """Whether a product of this shape is exact on matrices at the limit of exactness, and of a smaller one.

    >>> products_are_exact(np.dot, 20, 1024, 20)
    True
    >>> products_are_exact(lambda a, b: a.astype(np.float32) @ b.astype(np.float32), 20, 1024, 20)
    False
    """
    small = (min(m, _SMALL), min(k, _SMALL), min(n, _SMALL))
    single = (small[0], 1, small[2])
    with np.errstate(all="ignore"):  # what is not exact may overflow
        return (
            _product_is_exact(product, (m, k, n), (_root(k), _root(k)))  # line 1
            and _product_is_exact(product, small, (_root(small[1]), _root(small[1])))
            and all(_product_is_exact(product, single, sizes) for sizes in ((_EXACT - 1, 1), (1, _EXACT - 1)))
        )


def gram_is_exact(product: Product, rows: int, entries: int) -> bool:
    """Whether Z'Z is exact for matrices Z of this shape at the limit of exactness, and for a smaller one.

    >>> gram_is_exact(np.dot, 1024, 20), gram_is_exact(lambda a, b: (a + 2.0**30) @ b - 2.0**30 * b.sum(0), 1024, 20)
    (True, False)
    """
    for k, d in {(rows, entries), (min(rows, _SMALL), min(entries, _SMALL)), (1, min(entries, _SMALL))}:
        whole, scales = _whole(k, d, _root(k), "rows"), _scales(d, "rows")
        trial = _Trial(whole.T, whole, scales, scales)
        with np.errstate(all="ignore"):
            if not all(trial.is_met(product(Z.T, Z)) for Z in _layouts(whole * scales)):  # lines 3 and 4
                return False
    return True


def _product_is_exact(product: Product, shape: tuple[int, int, int], sizes: tuple[int, int]) -> bool:
    m, k, n = shape
    left, right, between = _whole(k, m, sizes[0], "left").T, _whole(k, n, sizes[1], "right"), _scales(k, "between")
    trial = _Trial(left, right, _scales(m, "left"), _scales(n, "right"))
    return all(
        trial.is_met(product(a[0] if m == 1 else a, b[:, 0] if n == 1 else b))  # line 4
        for a in _layouts(left * trial.rows[:, None] * between)  # line 3
        for b in _layouts(right * trial.columns / between[:, None])
    )


@dataclass(frozen=True)
class _Trial:
    """Two matrices of whole numbers, and powers of two that the rows of one and the columns of the other get."""

    left: Integers
    right: Integers
    rows: Floats
    columns: Floats

    @cached_property
    def _weights(self) -> Integers:
        words = _words(2 * len(self.columns), "weights").astype(np.int64).reshape(2, -1)
        weights: Integers = 2 * ((words[0] << 31) ^ words[1]) + 1
        return weights

    @cached_property
    def _combined(self) -> Integers:
        combined: Integers = self.left @ (self.right @ self._weights)  # modulo 2**64
        return combined

    def is_met(self, found: Any) -> bool:
        """Whether this is the product: by a combination of its columns, in 64-bit integers."""
        whole = np.reshape(found, (len(self.rows), len(self.columns))) / self.rows[:, None] / self.columns
        if not (np.abs(whole) <= _EXACT).all() or (whole != np.rint(whole)).any():  # line 5
            return False
        return np.array_equal(whole.astype(np.int64) @ self._weights, self._combined)  # line 6


def _layouts(matrix: Floats) -> tuple[Floats, ...]:
    """By rows and by columns; a small one also as a part of a larger matrix, as the last block of a table is."""
    by_rows, by_columns = np.ascontiguousarray(matrix), np.asfortranarray(matrix)
    if max(matrix.shape) > _SMALL:
        return by_rows, by_columns
    part = np.zeros((len(matrix) + 3, matrix.shape[1]), order="F")[: len(matrix)]
    part[:] = matrix
    return by_rows, by_columns, part


def _root(k: int) -> int:
    return math.isqrt(_EXACT // k)


def _whole(rows: int, columns: int, size: int, name: str) -> Integers:
    """Whole numbers above 7/8 of the size and up to it, times a sign of the column; a single row is odd."""
    low = ((1 << max(0, size.bit_length() - 4)) - 1) & (0xFFFFFFFE if rows == 1 else 0xFFFFFFFF)
    whole = (size - 1 | 1 if rows == 1 else size) - (_words(rows * columns, name) & np.uint32(low)).astype(np.int64)
    signs = 1 - 2 * (_words(columns, f"signs, {name}") & np.uint32(1)).astype(np.int64)
    signed: Integers = whole.reshape(rows, columns) * signs  # line 1
    return signed


def _scales(number: int, name: str) -> Floats:
    """Powers of two, the gap or more apart or equal; neighbours have different ones."""
    steps = 1 + _words(number, f"scales, {name}").astype(np.int64) % (_SCALES - 1)
    return np.ldexp(1.0, _GAP * (np.cumsum(steps) % _SCALES - _SCALES // 2))  # line 2


def _words(number: int, name: str) -> NDArray[np.uint32]:
    """A public sequence without a pattern: the same everywhere."""
    return np.frombuffer(hashlib.shake_128(name.encode()).digest(4 * number), dtype="<u4").astype(np.uint32)
