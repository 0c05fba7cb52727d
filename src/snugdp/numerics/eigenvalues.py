"""The spectrum of a symmetric matrix of whole numbers, with a certified error. Floats guess, whole numbers decide.

Every function is total: nothing about the values can raise. The line numbers are those of ``eigenvalues.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState

ACCURACY = Fraction(1, 2**14)
_SPARE = 80  # bits beyond those of the matrix
_MORE = 16  # bits for another round
_FLOATS = 900  # bits of a whole number that a float holds with room to spare
_EIGHTH = 8
_SMALL = 28  # bits: an angle below 2**-28 is its own tangent, but for 2**-56 of it


class Spectrum(PrivateState):
    """Eigenvalues and vectors of matrix / unit: C = U (D + R) U', U orthogonal, the norm of R at most the accuracy.

    ``values``: the diagonal of D, descending. The vectors are near the columns of U. Private if the matrix is.

    Guarantee: the vector of eigenvalues is wrong by at most ``ACCURACY`` in Euclidean norm, and the projector on the
    first k vectors is that of a matrix as near as that, but for far less (``eigenvalues.proof.md``, Theorem 1).
    """

    __slots__ = ("_bits", "_vectors", "values")

    def __init__(self, values: list[Fraction], vectors: list[list[int]], bits: int) -> None:
        self.values, self._vectors, self._bits = values, vectors, bits

    def gap(self, k: int) -> Fraction:
        """How far the k-th eigenvalue is above the next."""
        return self.values[k - 1] - self.values[k]

    def spread(self, k: int) -> Fraction:
        """The mean of the first k eigenvalues less that of the others."""
        others = len(self.values) - k
        return sum(self.values[:k], Fraction(0)) / k - sum(self.values[k:], Fraction(0)) / others

    def projector(self, k: int, bits: int) -> list[list[int]]:
        """The projector on the first k vectors, every entry rounded to a multiple of 2**-bits."""
        first = fmpz_mat([row[:k] for row in self._vectors])
        return shifted(first * first.transpose(), 2 * self._bits - bits)


def spectrum(matrix: Sequence[Sequence[int]], unit: int, accuracy: Fraction = ACCURACY) -> Spectrum:
    """The spectrum of a symmetric matrix / unit.

    >>> [round(float(value), 3) for value in spectrum([[3, 1], [1, 3]], unit=1).values]
    [4.0, 2.0]
    """
    exact, p = fmpz_mat([list(row) for row in matrix]), len(matrix)
    size = norm_above(matrix) + 2 * unit  # 2: so that it also exceeds that of a neighbour
    bits = _SPARE + (size // unit).bit_length() + p.bit_length()
    allowed = accuracy * unit
    vectors = _guess(matrix, bits)  # 1.
    while True:
        vectors = _nearer(vectors, bits)  # 2.
        inside = whole(vectors.transpose() * exact * vectors)
        if _certified(inside, departure(vectors, bits), size, bits, allowed):  # 3.
            return _ordered(inside, vectors, unit, bits)
        vectors = _swept(vectors, inside, bits, allowed / (4 * p))  # 4.
        vectors, bits = vectors * (1 << _MORE), bits + _MORE


def departure(vectors: fmpz_mat, bits: int) -> Fraction:
    """A bound on the Frobenius norm of V'V - I, V the vectors times 2**-bits.

    >>> departure(fmpz_mat([[4, 0], [0, 4]]), 2) <= Fraction(1, 16)
    True
    """
    product, one = whole(vectors.transpose() * vectors), 1 << (2 * bits)
    for i, row in enumerate(product):
        row[i] -= one
    return Fraction(norm_above(product), one)


def norm_above(matrix: Sequence[Sequence[int]]) -> int:
    """A whole number that is not below the Frobenius norm, and at least 1."""
    return math.isqrt(sum(value * value for row in matrix for value in row)) + 1


def whole(matrix: fmpz_mat) -> list[list[int]]:
    """The entries as Python integers."""
    return [[int(value) for value in row] for row in matrix.tolist()]


def shifted(matrix: fmpz_mat, bits: int) -> list[list[int]]:
    """The entries over 2**bits, rounded to whole numbers; halves upwards."""
    if bits <= 0:
        return [[value << -bits for value in row] for row in whole(matrix)]
    half = 1 << (bits - 1)
    return [[(value + half) >> bits for value in row] for row in whole(matrix)]


def to_grid(vectors: NDArray[np.float64], bits: int) -> fmpz_mat:
    """Floats at most 1 in size, and a little more, as multiples of 2**-bits."""
    low = min(bits, 60)
    grid = np.rint(np.nan_to_num(vectors) * 2.0**low).tolist()
    return fmpz_mat([[int(value) << (bits - low) for value in row] for row in grid])


def _guess(matrix: Sequence[Sequence[int]], bits: int) -> fmpz_mat:
    """About the eigenvectors, in columns. Nothing is proved of them."""
    shift = max(0, max(abs(value).bit_length() for row in matrix for value in row) - _FLOATS)
    floats = np.array([[float(value >> shift) for value in row] for row in matrix])
    try:
        vectors = np.linalg.eigh(floats)[1]
    except np.linalg.LinAlgError:  # no guess then, and a longer search
        vectors = np.eye(len(matrix))
    guess = to_grid(vectors, bits)
    return guess if departure(guess, bits) < Fraction(1, _EIGHTH) else to_grid(np.eye(len(matrix)), bits)


def _nearer(vectors: fmpz_mat, bits: int) -> fmpz_mat:
    """V (3 - V'V) / 2: what V'V lacks to the identity is squared."""
    product = vectors * (vectors.transpose() * vectors)
    return fmpz_mat(shifted(vectors * (3 << (2 * bits)) - product, 2 * bits + 1))


def _certified(inside: list[list[int]], lost: Fraction, size: int, bits: int, allowed: Fraction) -> bool:
    """Whether the norm of R is at most ``allowed``, in the matrix's own units."""
    off = [[0 if i == j else value for j, value in enumerate(row)] for i, row in enumerate(inside)]
    error = Fraction(norm_above(off), 1 << (2 * bits)) + 2 * lost * size
    return lost <= Fraction(1, _EIGHTH) and error <= allowed


def _ordered(inside: list[list[int]], vectors: fmpz_mat, unit: int, bits: int) -> Spectrum:
    order = sorted(range(len(inside)), key=lambda i: -inside[i][i])
    values = [Fraction(inside[i][i], unit << (2 * bits)) for i in order]
    rows = whole(vectors)
    return Spectrum(values, [[row[i] for i in order] for row in rows], bits)


def _swept(vectors: fmpz_mat, inside: list[list[int]], bits: int, least: Fraction) -> fmpz_mat:
    """Rotate every pair of columns whose product is above ``least``, so that it vanishes: Jacobi's method."""
    S: NDArray[Any] = np.array(inside, dtype=object)
    W: NDArray[Any] = np.array(whole(vectors), dtype=object)
    limit = math.floor(least * (1 << (2 * bits)))
    for i in range(len(S)):
        for j in range(i + 1, len(S)):
            if abs(S[i, j]) > limit:
                c, s = _angle(int(S[j, j]) - int(S[i, i]), int(S[i, j]), bits)
                W[:, i], W[:, j] = (c * W[:, i] - s * W[:, j]) >> bits, (s * W[:, i] + c * W[:, j]) >> bits
                S[:, i], S[:, j] = (c * S[:, i] - s * S[:, j]) >> bits, (s * S[:, i] + c * S[:, j]) >> bits
                S[i], S[j] = (c * S[i] - s * S[j]) >> bits, (s * S[i] + c * S[j]) >> bits
    return fmpz_mat([[int(value) for value in row] for row in W.tolist()])


def _angle(difference: int, product: int, bits: int) -> tuple[int, int]:
    """Cosine and sine in multiples of 2**-bits: at most an eighth of a turn, and c**2 + s**2 = 1 but for a rounding."""
    if abs(difference) > abs(product) << _SMALL:  # then s, t and t/(1 - t*t) agree to a float's accuracy
        s = (product << bits) // difference
    else:
        half = difference / (2 * product)
        tangent = math.copysign(1.0, half) / (abs(half) + math.hypot(1.0, half))
        s = int(Fraction(tangent / math.hypot(1.0, tangent)) * (1 << bits))
    return math.isqrt((1 << (2 * bits)) - s * s), s
