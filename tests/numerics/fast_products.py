"""Matrix products that are not plain sums of products: what a BLAS could do, and the guard must refuse."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[Any]
Product: TypeAlias = Callable[[Any, Any], Any]
Step: TypeAlias = Callable[[Product, Any, Any], Any]


def strassen_step(times: Product, A: Matrix, B: Matrix) -> Matrix:
    (a, b, c, d), (e, f, g, h) = quarters(A), quarters(B)
    p, q, r, s = times(a + d, e + h), times(c + d, e), times(a, f - h), times(d, g - e)
    t, u, v = times(a + b, h), times(c - a, e + f), times(b - d, g + h)
    return np.block([[p + s - t + v, r + t], [q + s, p - q + r + u]])


def winograd_step(times: Product, A: Matrix, B: Matrix) -> Matrix:
    (a, b, c, d), (e, f, g, h) = quarters(A), quarters(B)
    left, right = c + d - a, h - f + e
    p, q, r = times(a, e), times(b, g), times(left, right)
    s, t = times(c + d, f - e), times(a - c, h - f)
    u, v = p + r, p + r + t
    return np.block([[p + q, u + s + times(b - left, h)], [v - times(d, right - g), v + s]])


def inner_step(times: Product, A: Matrix, B: Matrix) -> Matrix:
    """One product of sums in place of two products, along the rows that are summed over, and two to set it right."""
    half = A.shape[1] // 2
    a, b, e, f = A[:, :half], A[:, half:], B[:half], B[half:]
    return np.asarray(times(a + b, e + f) - times(a, f) - times(b, e))


def quarters(A: Matrix) -> tuple[Matrix, ...]:
    i, j = A.shape[0] // 2, A.shape[1] // 2
    return A[:i, :j], A[:i, j:], A[i:, :j], A[i:, j:]


def recursive(step: Step, cutoff: int, levels: int = 20) -> Product:
    """The step again and again, while all sizes are above the cutoff; odd rows and columns are peeled off."""

    def times(A: Matrix, B: Matrix, left: int = levels) -> Matrix:
        if A.ndim == 1 or B.ndim == 1 or not left or min(*A.shape, B.shape[1]) <= cutoff:
            return np.asarray(np.dot(A, B))
        m, k, n = (size - size % 2 for size in (*A.shape, B.shape[1]))
        C = np.empty((A.shape[0], B.shape[1]))
        C[:m, :n] = step(lambda one, other: times(one, other, left - 1), A[:m, :k], B[:k, :n])
        C[:m, :n] += np.dot(A[:m, k:], B[k:, :n])
        C[m:], C[:m, n:] = np.dot(A[m:], B), np.dot(A[:m], B[:, n:])
        return C

    return times


def shuffled(product: Product, seed: int) -> Product:
    """The same with rows, columns and what is summed over in another order and with other signs."""
    rng = np.random.default_rng(seed)

    def times(A: Matrix, B: Matrix) -> Matrix:
        if A.ndim == 1 or B.ndim == 1:
            return np.asarray(np.dot(A, B))
        (m, k), n = A.shape, B.shape[1]
        rows, inner, columns = (rng.permutation(size) for size in (m, k, n))
        r, s, c = (rng.choice([-1.0, 1.0], size) for size in (m, k, n))
        C = np.empty((m, n))
        C[np.ix_(rows, columns)] = product(
            A[np.ix_(rows, inner)] * r[:, None] * s, B[np.ix_(inner, columns)] * s[:, None] * c
        )
        C[rows] *= r[:, None]
        C[:, columns] *= c
        return C

    return times


def levelled(product: Product) -> Product:
    """The same after all rows of one and all columns of the other were brought to one size by powers of two."""

    def times(A: Matrix, B: Matrix) -> Matrix:
        if A.ndim == 1 or B.ndim == 1:
            return np.asarray(np.dot(A, B))
        r = np.frexp(np.abs(A).max(axis=1))[1]
        c = np.frexp(np.abs(B).max(axis=0))[1]
        C = product(np.ldexp(A, -r[:, None]), np.ldexp(B, -c))
        return np.asarray(np.ldexp(C, r[:, None] + c))

    return times


def bits(values: Matrix, kept: int) -> Matrix:
    """Rounded to so many bits, with the exponents of doubles."""
    fraction, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, kept)), exponent - kept))


def single(A: Matrix, B: Matrix) -> Matrix:
    with np.errstate(all="ignore"):
        return np.asarray(np.dot(A.astype(np.float32), B.astype(np.float32)), dtype=np.float64)


def rounded_first(kept: int) -> Product:
    """Entries in short formats (11 bits: TF32, 24: single), sums in doubles."""
    return lambda A, B: np.dot(bits(A, kept), bits(B, kept))


def rounded_last(kept: int) -> Product:
    """Exact products, but sums in a short format."""
    return lambda A, B: bits(np.dot(A, B), kept)


def split(kept: int, parts: int) -> Product:
    """Entries as sums of short numbers (8 bits and three parts: BF16x3), small products left out, sums in doubles."""

    def cut(values: Matrix) -> list[Matrix]:
        found = []
        for _ in range(parts):
            found.append(bits(values, kept))
            values = values - found[-1]
        return found

    def times(A: Matrix, B: Matrix) -> Matrix:
        one, other = cut(A), cut(B)
        return np.asarray(sum(np.dot(one[i], other[j]) for i in range(parts) for j in range(parts - i)))

    return times
