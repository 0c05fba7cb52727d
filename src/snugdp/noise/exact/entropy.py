"""Random bits from the operating system, and from nowhere else.

Nothing is kept between calls: two processes or threads can never hold the same unread bits, so there is
nothing to reseed after a fork.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray


def bits(n: int) -> int:
    """A uniform integer of ``n`` random bits.

    >>> 0 <= bits(5) < 32
    True
    """
    return int.from_bytes(os.urandom((n + 7) // 8), "big") >> (-n % 8)


def words(n: int) -> NDArray[np.uint64]:
    """``n`` independent words of 64 random bits (a read-only array)."""
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def below(n: int) -> int:
    """A uniform integer at least 0 and below ``n``, for ``n`` of at least 1.

    >>> below(1)
    0
    """
    while (drawn := bits((n - 1).bit_length())) >= n:
        pass
    return drawn
