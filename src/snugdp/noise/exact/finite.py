"""Many exact draws from a public law on finitely many whole numbers: words of 64 bits against its cumulative sums.

The line numbers in the comments are those of ``finite.proof.md``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.exact import entropy
from snugdp.noise.exact.refine import Bits
from snugdp.noise.laws import Finite

_WORD = 64
_BLOCK = 1 << 17  # draws at a time


def finite(law: Finite, n: int) -> NDArray[np.int64]:
    """``n`` independent draws.

    Guarantee: each has exactly the probabilities of the law, which are rational (``finite.proof.md``, Theorem 1).
    """
    drawn = np.empty(n, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        part = drawn[start : start + _BLOCK]
        part[:] = _places(law, entropy.words(len(part)))  # line 2
    drawn += law.lowest
    return drawn


def _places(law: Finite, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    edges = _edges(law)
    places = np.searchsorted(edges, words, side="left")  # line 3
    tied = edges[np.minimum(places, len(edges) - 1)] == words if len(edges) else np.zeros(len(words), dtype=np.bool_)
    for lane in np.flatnonzero(tied).tolist():  # line 4
        places[lane] = _place(law, Bits(int(words[lane]), _WORD))
    return places


@lru_cache(maxsize=8)
def _edges(law: Finite) -> NDArray[np.uint64]:
    """The cumulative probabilities but the last one, which is 1, in words rounded down."""
    sums = list(accumulate(law.weights))[:-1]
    return np.array([(edge << _WORD) // law.total for edge in sums], dtype=np.uint64)  # line 1


def _place(law: Finite, uniform: Bits) -> int:
    """How many cumulative probabilities are at most the uniform real, read as far as it takes."""
    sums = list(accumulate(law.weights))[:-1]
    while True:
        low, high = (end * law.total for end in (uniform.value, uniform.value + 1))
        below = [sum(edge << uniform.count <= end for edge in sums) for end in (low, high - 1)]
        if below[0] == below[1]:
            return below[0]
        uniform.extend(uniform.count + _WORD)  # line 5
