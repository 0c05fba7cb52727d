"""Noise that is as large as a failure probability leaves it: for audits of what comes after a private test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from snugdp.noise.laws import DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Law
from snugdp.noise.requests import AddIntegers
from snugdp.noise.simulation import Simulation

_INSIDE = 0.999  # of the quantile: still on the side where the certificate holds
_MIN_FAILURE = 1e-60  # where nothing may fail
_ROUND = 1e-9  # of floats


class BoundaryNoise(Simulation):
    """A simulation whose single draws (``add``, ``at_least``) are chosen: ``sizes`` times the quantile of ``failure``.

    A certificate that is linear in its noise and fails with at most this probability holds, barely, as long as the
    squares of the sizes add up to at most 1: then what is released by it has to keep its promise. Draws beyond the
    sizes get none, and ``still`` sums of many whole numbers neither. NOT PRIVATE.

    >>> from snugdp.secrecy.secret import Secret
    >>> [float(BoundaryNoise(0, 0.025, [size]).add(Secret(0), Gaussian(1), grid=-7)) for size in (1, -1)]
    [1.9609375, -1.9609375]
    """

    def __init__(self, seed: int, failure: float | Fraction, sizes: Iterable[float], *, still: bool = False) -> None:
        super().__init__(seed)
        self._failure, self._sizes, self._still = max(float(failure), _MIN_FAILURE), iter(tuple(sizes)), still

    def _add_integers(self, request: AddIntegers) -> list[int]:
        drawn = super()._add_integers(request)
        return request.inside() if self._still else drawn

    def _one(self, law: Law) -> float:
        return next(self._sizes, 0.0) * self._quantile(law)

    def _last_bits(self, count: int) -> int:
        return 0

    def _quantile(self, law: Law) -> float:
        """Just inside: of whole numbers the largest that is reached more often."""
        from scipy.special import ndtri

        if isinstance(law, DiscreteLaplace | DiscreteGaussian):
            return float(_largest(law, self._failure))
        if isinstance(law, Gaussian):
            return _INSIDE * float(law.sigma) * -float(ndtri(self._failure))
        if isinstance(law, Gumbel):
            return 0.0
        return _INSIDE * float(law.scale) * max(-math.log(2 * self._failure), 0.0)


def _largest(law: DiscreteLaplace | DiscreteGaussian, failure: float) -> int:
    """The largest whole number that such noise reaches with a probability above ``failure``."""
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale)
        return max(0, math.floor(-scale * math.log(failure * (1 + math.exp(-1 / scale))) - _ROUND))
    spread = 2 * float(law.variance)
    weights = np.exp(-(np.arange(math.ceil(20 * math.sqrt(spread)) + 1) ** 2) / spread)
    tails = np.cumsum(weights[::-1])[::-1] / (2 * weights.sum() - 1)
    return int(np.flatnonzero(tails > failure * (1 + _ROUND)).max(initial=0))
