"""Exact discrete Laplace and discrete Gaussian noise, for any rational parameter.

The size of a discrete Laplace is the whole part of a scaled exponential; a discrete Gaussian is a discrete
Laplace kept with the probability that turns one law into the other. The line numbers in the comments are
those of ``discrete.proof.md``.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, isqrt, pi, sqrt, tanh

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.exact import entropy
from snugdp.noise.exact.coins import COIN_BITS, PROVED, Margins, coins
from snugdp.noise.exact.deviate import deviate
from snugdp.noise.exact.filtered import Integers, draw, floors, lanes_for, signed
from snugdp.noise.exact.refine import Bits, below, exactly
from snugdp.noise.exact.shapes import EXPONENTIAL

_ZERO = Fraction(0)
_FLOAT_VARIANCES = (Fraction(1, 1 << 100), Fraction(1 << 90))


def laplace(scale: Fraction) -> int:
    """One draw with P(x) proportional to exp(-|x| / scale).

    Guarantee: exactly that law (``discrete.proof.md``, Theorem 1).
    """
    while True:
        drawn = deviate(EXPONENTIAL)
        size = drawn.floor(scale, _ZERO)  # line 1
        if size or not drawn.negative:  # line 2
            return -size if drawn.negative else size


def gaussian(variance: Fraction) -> int:
    """One draw with P(x) proportional to exp(-x**2 / (2 variance)).

    Guarantee: exactly that law (``discrete.proof.md``, Theorem 2).
    """
    scale = _envelope(variance)
    while True:
        candidate = laplace(Fraction(scale))  # line 3
        if _keeps(candidate, scale, variance, Bits()):  # line 4
            return candidate


def laplaces(scale: Fraction, n: int, margins: Margins = PROVED) -> Integers:
    """``n`` independent draws of ``laplace``, with the same guarantee."""
    parts: list[Integers] = []
    have = 0
    while have < n or not parts:
        batch = draw(EXPONENTIAL, lanes_for(n - have, _laplace_share(scale)), margins)
        sizes = floors(batch, scale, _ZERO, margins)  # line 1
        parts.append(signed(batch, sizes)[(sizes != 0) | ~batch.negative])  # line 2
        have += len(parts[-1])
    return np.concatenate(parts)[:n]


def gaussians(variance: Fraction, n: int, margins: Margins = PROVED) -> Integers:
    """``n`` independent draws of ``gaussian``, with the same guarantee."""
    if not _FLOAT_VARIANCES[0] <= variance <= _FLOAT_VARIANCES[1]:
        return np.array([gaussian(variance) for _ in range(n)], dtype=np.object_)
    scale = _envelope(variance)
    share = _gaussian_share(scale, float(variance))
    parts: list[Integers] = []
    have = 0
    while have < n or not parts:
        candidates = laplaces(Fraction(scale), lanes_for(n - have, share), margins)
        parts.append(candidates[_kept(candidates, scale, variance, margins)])
        have += len(parts[-1])
    return np.concatenate(parts)[:n]


def _kept(candidates: Integers, scale: int, variance: Fraction, margins: Margins) -> NDArray[np.bool_]:
    coin = entropy.words((len(candidates) + 1) // 2).view(np.uint32)[: len(candidates)] >> np.uint32(1)
    if candidates.dtype == np.object_:  # a candidate beyond 2**62: as good as never
        keep, unsure = np.zeros(len(candidates), dtype=np.bool_), np.ones(len(candidates), dtype=np.bool_)
    else:
        gap = np.abs(candidates).astype(np.float64) - float(variance / scale)
        keep, unsure = coins(gap * gap / float(2 * variance), coin, margins.accept)
    for lane in np.flatnonzero(unsure).tolist():
        keep[lane] = _keeps(int(candidates[lane]), scale, variance, Bits(int(coin[lane]), COIN_BITS))
    return keep


def _keeps(candidate: int, scale: int, variance: Fraction, coin: Bits) -> bool:
    exponent = (abs(candidate) - variance / scale) ** 2 / (2 * variance)
    return below(coin, lambda _: (-exactly(exponent)).exp())


def _envelope(variance: Fraction) -> int:
    """The smallest whole number above the standard deviation: the scale of the candidates."""
    return isqrt(variance.numerator // variance.denominator) + 1


def _laplace_share(scale: Fraction) -> float:
    """About how many draws are not a negative zero. Only a guess of how many lanes to draw."""
    return (1 + exp(-1 / float(min(max(scale, Fraction(1, 100)), Fraction(100))))) / 2


def _gaussian_share(scale: int, variance: float) -> float:
    """About how many candidates are kept. Only a guess of how many lanes to draw."""
    return max(1.0, sqrt(2 * pi * variance)) * exp(-variance / scale / scale / 2) * tanh(1 / (2 * scale))
