"""What a source of noise refuses, which is public, and how it reads a private value, which is never refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.laws import DiscreteGaussian, DiscreteLaplace, Finite, Gaussian, Law
from snugdp.noise.number import MAX_SIZE_BITS, finite, number
from snugdp.secrecy.secret import Secret, unwrap

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


def known(law: Law, allowed: Any = Law) -> None:
    """Refuse what is not one of the allowed laws."""
    names = get_args(allowed)
    if not isinstance(law, names):
        raise TypeError(f"the law must be one of {', '.join(name.__name__ for name in names)}")


def check_grid(law: Law, grid: int, stretched: bool) -> None:
    """Refuse a grid or a stretch that the law does not allow."""
    if isinstance(grid, bool) or not isinstance(grid, int):
        raise TypeError("grid must be a whole number g, for multiples of 2**g")
    if (grid or stretched) and isinstance(law, DiscreteLaplace | DiscreteGaussian):
        raise ValueError("a discrete law lives on whole numbers: its grid must be 0, without a stretch")


def check_count(n: int) -> None:
    """Refuse to choose among nothing."""
    if n <= 0:
        raise ValueError("n must be at least 1")


def check_rate(rate: Fraction) -> None:
    """Refuse a rate that is not an exact number above 0."""
    if not isinstance(rate, Fraction) or rate <= 0:
        raise ValueError("the rate must be a fraction greater than 0")


def check_threshold(threshold: int, law: Finite | Gaussian) -> None:
    """Refuse a threshold of whole counts, and noise on them, beyond what 64 bits hold."""
    if isinstance(threshold, bool) or not isinstance(threshold, int) or abs(threshold) >= 1 << 61:
        raise TypeError("threshold must be a whole number below 2**61")
    wide = law.sigma > 1 << 50 if isinstance(law, Gaussian) else max(-law.lowest, law.highest) >= 1 << 61
    if wide:
        raise ValueError("noise on counts must be narrower than 2**50")


def opened(secret: Secret[Any]) -> Any:
    """What is inside, whichever of its types it has."""
    return unwrap(secret)


def whole(value: object) -> int:
    """The whole part of any number: what moves by at most a whole number moves by no more of its whole parts."""
    if type(value) is int and value.bit_length() < MAX_SIZE_BITS:  # the usual case, quickly
        return value
    return floor(finite(value))


def spread(stretch: object) -> Fraction:
    """How far a private stretch spreads the noise: what is no number drowns the value rather than baring it."""
    found = number(stretch)
    return found if isinstance(found, Fraction) else finite(inf)


def integers(values: NDArray[np.int64] | list[int]) -> list[int]:
    """The whole parts as Python integers, which cannot overflow; how many there are is public."""
    if not isinstance(values, np.ndarray):
        return [whole(value) for value in values]
    if values.ndim != 1:
        raise ValueError(f"the private array must have 1 dimension(s), not {values.ndim}")
    plain: list[int] = _cells(values)
    return plain if values.dtype.kind in "iu" and not _is_masked(values) else [whole(value) for value in plain]


def _is_masked(values: NDArray[Any]) -> bool:
    """Whether some entries are missing."""
    return isinstance(values, np.ma.MaskedArray)


def _cells(values: NDArray[Any]) -> list[Any]:
    """The entries as Python has them; dates and durations, which are not numbers, as nothing."""
    return [None] * len(values) if values.dtype.kind in "mM" else values.tolist()


def check_scores(scores: Sequence[int | Fraction]) -> list[Fraction]:
    """The same scores as fractions; how many there are is public, and none is too few."""
    if not len(scores):
        raise ValueError("argmax needs at least one score")
    return [finite(score) for score in scores]


def check_whole(values: NDArray[np.int64], dimensions: int) -> NDArray[np.int64]:
    """The array, as whole numbers of 64 bits if it has others. That it is one, and its shape, are public.

    Unsigned 64-bit arrays stay exact. In arrays of other types, numbers beyond signed 64 bits count as the farthest.
    """
    if not isinstance(values, np.ndarray):
        raise TypeError("many values at once must be a private numpy array of whole numbers, such as int64")
    if values.ndim != dimensions:
        raise ValueError(f"the private array must have {dimensions} dimension(s), not {values.ndim}")
    if dimensions == 2 and not values.shape[1]:
        raise ValueError("argmaxes needs at least one score in a row")
    if values.dtype.kind in "biu" and not _is_masked(values):
        return np.asarray(values)
    parts = [min(max(whole(value), _MIN_INT64), _MAX_INT64) for value in _cells(values.ravel())]
    return np.array(parts, dtype=np.int64).reshape(values.shape)


def check_scatter(n: int, parts: int) -> None:
    """Refuse numbers of rows and of parts that are none."""
    for name, count, least in (("n", n, 0), ("parts", parts, 1)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer):
            raise TypeError(f"{name} must be a whole number")
        if not least <= count < 1 << 62:
            raise ValueError(f"{name} must be at least {least}, and below 2**62")
