"""What a source of noise refuses, and how it reads a private value: by type alone, never by size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import index
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from snugdp.secret import Secret, unwrap


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


def opened(secret: Secret[Any]) -> Any:
    """What is inside, whichever of its types it has."""
    return unwrap(secret)


def whole(value: int | Fraction) -> int:
    """The same whole number as a Python integer; its type can be refused, never its size."""
    if isinstance(value, Fraction):
        raise TypeError("a discrete law is added to whole numbers: give it a private int")
    return index(value)


def exact(value: int | Fraction | float) -> Fraction:
    """The same number as a fraction of Python integers; only its type can be refused, never its size."""
    return value if isinstance(value, Fraction) else Fraction(value if isinstance(value, float) else index(value))


def integers(values: NDArray[np.int64] | list[int]) -> list[int]:
    """The same whole numbers as Python integers, which cannot overflow."""
    return [index(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def check_scores(scores: Sequence[int | Fraction]) -> list[Fraction]:
    """The same scores as fractions; how many there are is public, and none is too few."""
    if not len(scores):
        raise ValueError("argmax needs at least one score")
    return [exact(score) for score in scores]


def check_whole(values: NDArray[np.int64], dimensions: int) -> NDArray[np.int64]:
    """The array itself, if its declared type is whole numbers and it has the right shape. Both are public."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biu":
        raise TypeError("many values at once must be a private numpy array of whole numbers, such as int64")
    if values.ndim != dimensions:
        raise ValueError(f"the private array must have {dimensions} dimension(s), not {values.ndim}")
    if dimensions == 2 and not values.shape[1]:
        raise ValueError("argmaxes needs at least one score in a row")
    return np.asarray(values)


def check_scatter(n: int, parts: int) -> None:
    """Refuse numbers of rows and of parts that are none."""
    for name, number, least in (("n", n, 0), ("parts", parts, 1)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"{name} must be a whole number")
        if not least <= number < 1 << 62:
            raise ValueError(f"{name} must be at least {least}, and below 2**62")
