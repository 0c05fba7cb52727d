"""Where private values meet noise: what comes out of here is a release, and nothing else is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import requests
from snugdp.noise.base import Noise
from snugdp.noise.checks import opened
from snugdp.noise.exact import discrete, entropy, vectorised
from snugdp.noise.exact.deviate import Deviate, ball_of, deviate, largest, shape_of
from snugdp.noise.exact.filtered import draw, rounded
from snugdp.noise.exact.finite import finite
from snugdp.noise.exact.minimiser import Problem, Tilted
from snugdp.noise.exact.posterior import rounded_posterior
from snugdp.noise.exact.refine import START, exactly, floor, negative, refine
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL
from snugdp.noise.exact.stopping import stopping
from snugdp.noise.exact.weighted import weighted_choice
from snugdp.noise.laws import Continuous, DiscreteGaussian, DiscreteLaplace, Finite, Gumbel, Law

_HALF = Fraction(1, 2)


class Exact(Noise):
    """Noise for releases: exact laws from the operating system's random bits.

    A private number may have any type (``noise.number``); what is not a number counts as 0, or never reaches a
    threshold.

    Guarantee: every answer is distributed exactly as its request says, for every value, if the operating system's
    generator is ideal and Arb's balls are correct. The time it takes is not covered. Nothing that depends on a private
    value raises or warns; errors speak of public parameters and come before any draw.

    Examples
    --------
    >>> from snugdp.noise import Exact, Gaussian
    >>> from snugdp.secrecy.secret import Secret
    >>> released = Exact().add(Secret(1000), Gaussian(3), grid=-4)
    >>> released.denominator <= 16
    True
    """

    private = True

    def __repr__(self) -> str:
        return "Exact()"

    def _add(self, request: requests.Add) -> Fraction:
        """``round(value + S Z)`` to the grid of multiples of ``2**grid``, halves upwards; S is the stretch, or 1."""
        law, inside = request.law, request.inside()
        if isinstance(law, DiscreteLaplace | DiscreteGaussian):
            return Fraction(inside + _integer(law))
        step = Fraction(2) ** request.grid
        cells, within = divmod(inside / step, 1)
        return step * (cells + _rounded_sum(within, request.factor() / step, law, _standard(law)))

    def _add_integers(self, request: requests.AddIntegers) -> list[int]:
        """``round(value + Z)`` for every value. A value is whole, so round(s + z) = s + round(z)."""
        inside = request.inside()
        return [value + noise for value, noise in zip(inside, _integers(request.law, len(inside)), strict=True)]

    def _at_least(self, request: requests.AtLeast) -> bool:
        """``value + Z >= threshold``; plus infinity always reaches it, what is not a number never.

        The noise is drawn in the same way whether or not the value is finite.
        """
        law, inside = request.law, request.inside()
        gap = (inside if isinstance(inside, Fraction) else Fraction(0)) - Fraction(request.threshold)
        if isinstance(law, DiscreteLaplace | DiscreteGaussian):
            reaches = gap + _integer(law) >= 0
        else:
            drawn = _standard(law)
            reaches = not refine(lambda p: exactly(gap) + ball_of(law, drawn, p), negative)
        return reaches if isinstance(inside, Fraction) else inside > 0

    def _argmax(self, request: requests.Argmax) -> int:
        values, (shape, _) = request.inside(), shape_of(request.law)
        drawn = draw(shape, len(values))
        sums = [(value, drawn[lane]) for lane, value in enumerate(values)]
        return largest(sums, request.law)

    def _argmaxes(self, request: requests.Argmaxes) -> NDArray[np.int64]:
        return vectorised.argmaxes(request.inside(), request.law)

    def _reach(self, request: requests.Reach) -> NDArray[np.bool_]:
        return vectorised.reach(request.inside(), request.law, Fraction(request.threshold))

    def _keys_above(self, request: requests.KeysAbove) -> list[tuple[Any, int]]:
        """``finite.proof.md``, Theorem 1, or whole Gaussian noise as for ``add_integers``."""
        law, n = request.law, len(request.inside()[1])
        drawn = finite(law, n) if isinstance(law, Finite) else np.array(_integers(law, n), dtype=np.int64)
        return request.above(drawn)

    def _minimiser(self, request: requests.MinimiserDraw) -> list[Fraction]:
        """A computation that fails raises ``PrivateComputationError``, which tells nothing."""
        law, grid = request.law, request.grid

        def cells(inside: Problem) -> list[int]:
            drawn = draw(HALF_NORMAL, inside.dimension)
            return Tilted(inside, [drawn[lane] for lane in range(inside.dimension)], law.sigma, grid).cells()

        return [Fraction(2) ** grid * cell for cell in opened(request.problem.map(cells))]

    def _posterior(self, request: requests.PosteriorDraw) -> list[Fraction]:
        """``posterior.proof.md``, Theorem 1."""
        gram, cross = opened(request.gram), opened(request.cross)
        return rounded_posterior(gram, cross, **dict(request.public))

    def _choice(self, request: requests.Choice) -> int:
        return entropy.below(request.n)

    def _scatter(self, request: requests.Scattering) -> NDArray[np.int64]:
        return vectorised.scatter(request.inside(), request.parts)

    def _chance(self, request: requests.Chance) -> bool:
        return vectorised.chance(request.inside())

    def _weighted_choice(self, request: requests.WeightedChoice) -> int:
        """``weighted.proof.md``, Theorem 1."""
        return weighted_choice(request.inside(), request.rate)

    def _stopping(self, request: requests.StoppingTime) -> int:
        """``stopping.proof.md``, Theorem 1."""
        return stopping(request.law, request.most)


def _standard(law: Continuous) -> Deviate:
    return deviate(shape_of(law)[0])


def _rounded_sum(shift: Fraction, factor: Fraction, law: Continuous, drawn: Deviate) -> int:
    """The whole part of ``shift + factor * Z + 1/2``, decided exactly; no noise means nothing to decide."""
    if not factor:
        return math.floor(shift + _HALF)
    widest = factor * shape_of(law)[1]
    spare = max(0, widest.numerator.bit_length() - widest.denominator.bit_length())
    return refine(lambda p: exactly(shift + _HALF) + exactly(factor) * ball_of(law, drawn, p), floor, START + spare)


def _integer(law: DiscreteLaplace | DiscreteGaussian) -> int:
    if isinstance(law, DiscreteLaplace):
        return discrete.laplace(law.scale)
    return discrete.gaussian(law.variance)


def _integers(law: Law, n: int) -> list[int]:
    if isinstance(law, DiscreteLaplace):
        values: list[int] = discrete.laplaces(law.scale, n).tolist()
    elif isinstance(law, DiscreteGaussian):
        values = discrete.gaussians(law.variance, n).tolist()
    elif isinstance(law, Gumbel):
        drawn = draw(EXPONENTIAL, n)
        values = [_rounded_sum(Fraction(0), Fraction(1), law, drawn[lane]) for lane in range(n)]
    else:
        values = rounded(*shape_of(law), n).tolist()
    return values
