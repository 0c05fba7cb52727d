"""The float filter: biased coins that floats may decide when it is safe, and the margins that say when.

The error bounds behind the margins are Lemmas 2 and 3 of ``filtered.proof.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.exact.shapes import Floats

COIN_BITS = 31  # bits of an acceptance coin, before a tie asks for more
MAX_EXPONENT = 60.0  # exp_neg is proved up to here; beyond, a probability is only known to be tiny


@dataclass(frozen=True)
class Margins:
    """How close a float comparison may be before it is left to balls. Wider is slower, never different."""

    table: int = 0  # units of 2**-32, around the table that picks the whole part
    accept: float = 2.0**-40  # relative, around an acceptance probability
    window: float = 1.0  # multiple of the proved error, around a rounding boundary

    def __post_init__(self) -> None:
        if self.table < 0 or self.accept < 2.0**-40 or self.window < 1.0:
            raise ValueError("margins may be wider than the proved ones, never narrower")


PROVED = Margins()


_LOG2E = 1.4426950408889634
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # 11 trailing zeros: its multiples below 2**11 are exact
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_TAYLOR = tuple((-1.0) ** j / factorial(j) for j in range(14, -1, -1))
_POWERS = np.array([2.0**-j for j in range(100)])


def exp_neg(e: Floats) -> Floats:
    """exp(-e) for 0 <= e <= 60 from additions and multiplications alone: no library function to trust.

    Guarantee: relative error below 2**-47 (``filtered.proof.md``, Lemma 2).
    """
    n = np.rint(e * _LOG2E)
    r = (e - n * _LN2_HIGH) - n * _LN2_LOW
    total = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total *= r
        total += coefficient
    total *= _POWERS[n.astype(np.intp)]
    return total


def coins(e: Floats, coin: NDArray[np.uint32], margin: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which 31-bit coins fall below exp(-e), and which are too close to say.

    An exponent above 60 counts as 60: its probability is then below the absolute slack, which can only be
    rejected or left open.
    """
    p = exp_neg(np.minimum(e, MAX_EXPONENT)) * 2.0**COIN_BITS
    slack = 2.0 ** (COIN_BITS - 50)
    face = coin.astype(np.float64)
    heads = face + 1.0 < p * (1.0 - margin) - slack
    tails = face > p * (1.0 + margin) + slack
    return heads, ~(heads | tails)
