"""Seeded noise for experiments: fast, repeatable, and no protection at all."""

from __future__ import annotations

from fractions import Fraction
from math import floor, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import requests
from snugdp.noise.base import Noise
from snugdp.noise.checks import opened
from snugdp.noise.exact.minimiser import Problem
from snugdp.noise.exact.refine import exactly
from snugdp.noise.exact.stopping import stopping
from snugdp.noise.exact.vectorised import behind, parts
from snugdp.noise.exact.weighted import masses
from snugdp.noise.laws import DiscreteGaussian, DiscreteLaplace, Finite, Gaussian, Gumbel, Law

_MAX_FLOAT_SCALE = 1 << 40  # whole noise beyond that has random bits at its end which are drawn apart
_MAX_FLOAT_SIGMA = 1 << 50  # below that the last bits of a Gaussian float are as random as they have to be
_NEGLIGIBLE = 2.0**-40  # part of all masses
_MIN_GAP = Fraction(-(10**300))  # a gap that no simulated noise closes, and that a float can hold


class Simulation(Noise):
    """The interface of ``Exact`` with a seed: the same laws up to floating point, and NOT PRIVATE.

    Parameters
    ----------
    seed : int
        The same seed gives the same noise.

    Examples
    --------
    >>> from snugdp.noise import Laplace, Simulation
    >>> from snugdp.secrecy.secret import Secret
    >>> Simulation(1)
    <simulated noise, NOT PRIVATE>
    >>> Simulation(1).add(Secret(5), Laplace(1)) == Simulation(1).add(Secret(5), Laplace(1))
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def __repr__(self) -> str:
        return "<simulated noise, NOT PRIVATE>"

    def _add(self, request: requests.Add) -> Fraction:
        inside, law = request.inside(), request.law
        step, drawn = Fraction(2) ** request.grid, Fraction(self._one(law))
        if isinstance(law, DiscreteLaplace) and (lacking := _lacking(law)):
            drawn = Fraction(self._filled(floor(drawn), lacking))
        return _on_grid(inside + request.factor() * drawn, step)

    def _add_integers(self, request: requests.AddIntegers) -> list[int]:
        inside = request.inside()
        noise = [int(drawn) for drawn in np.floor(self._many(request.law, len(inside)) + 0.5).tolist()]
        if lacking := _lacking(request.law):
            noise = [self._filled(drawn, lacking) for drawn in noise]
        return [value + drawn for value, drawn in zip(inside, noise, strict=True)]

    def _at_least(self, request: requests.AtLeast) -> bool:
        inside, drawn = request.inside(), Fraction(self._one(request.law))
        return inside + drawn >= Fraction(request.threshold) if isinstance(inside, Fraction) else inside > 0

    def _argmax(self, request: requests.Argmax) -> int:
        values = request.inside()
        top = max(values)
        gaps = np.array([float(max(value - top, _MIN_GAP)) for value in values])
        return int(np.argmax(gaps + self._many(request.law, len(values))))

    def _argmaxes(self, request: requests.Argmaxes) -> NDArray[np.int64]:
        inside = request.inside()
        winners = np.empty(len(inside), dtype=np.int64)
        for part in parts(*inside.shape):
            gaps = behind(inside[part])
            noise = self._many(request.law, gaps.size).reshape(gaps.shape)
            winners[part] = np.argmax(noise - gaps.astype(np.float64), axis=1)
        return winners

    def _reach(self, request: requests.Reach) -> NDArray[np.bool_]:
        inside, at = request.inside(), float(max(_MIN_GAP, min(-_MIN_GAP, Fraction(request.threshold))))
        reached: NDArray[np.bool_] = inside.astype(np.float64) - at + self._many(request.law, len(inside)) >= 0
        return reached

    def _keys_above(self, request: requests.KeysAbove) -> list[tuple[Any, int]]:
        law, n = request.law, len(request.inside()[1])
        if isinstance(law, Finite):
            chances = np.array([weight / law.total for weight in law.weights])
            drawn = law.lowest + self._generator.choice(len(chances), n, p=chances / chances.sum())
        else:
            drawn = np.floor(self._many(law, n) + 0.5).astype(np.int64)
        return request.above(drawn)

    def _minimiser(self, request: requests.MinimiserDraw) -> list[Fraction]:
        step = Fraction(2) ** request.grid

        def solved(inside: Problem) -> list[Fraction]:
            theta: list[float] = inside.solve(self._many(request.law, inside.dimension)).tolist()
            return [_on_grid(Fraction(value), step) for value in theta]

        return opened(request.problem.map(solved))  # type: ignore[no-any-return]

    def _posterior(self, request: requests.PosteriorDraw) -> list[Fraction]:
        unit, step = request.unit, Fraction(2) ** request.grid
        inside = np.array([[float(unit * value) for value in row] for row in opened(request.gram)])
        values, vectors = np.linalg.eigh(inside)
        curvature = np.maximum(values, 0.0) + float(request.ridge)
        right = vectors.T @ np.array([float(unit * value) for value in opened(request.cross)])
        spread = self._generator.normal(size=len(right)) / np.sqrt(float(request.precision) * curvature)
        theta: list[float] = (vectors @ (right / curvature + spread)).tolist()
        return [_on_grid(Fraction(value), step) for value in theta]

    def _choice(self, request: requests.Choice) -> int:
        return int(self._generator.integers(request.n))

    def _scatter(self, request: requests.Scattering) -> NDArray[np.int64]:
        return self._generator.integers(request.parts, size=request.inside())

    def _weighted_choice(self, request: requests.WeightedChoice) -> int:
        groups = request.inside()
        mass, slack = masses(groups, request.rate) if len(groups.count) else (np.zeros(1), 1.0)
        if slack > _NEGLIGIBLE * mass.sum():
            groups = groups.whole()
            mass, _ = masses(groups, request.rate) if len(groups.count) else (np.zeros(1), 0.0)
        if not mass.any():
            return 0
        sums = np.cumsum(mass)
        place = int(np.searchsorted(sums, self._generator.uniform(0.0, sums[-1]), side="right"))
        place = min(place, int(np.flatnonzero(mass)[-1]))
        return int(groups.first[place]) + int(self._generator.integers(groups.count[place]))

    def _chance(self, request: requests.Chance) -> bool:
        return bool(Fraction(self._generator.uniform()) < request.inside())

    def _stopping(self, request: requests.StoppingTime) -> int:
        drawn = exactly(Fraction(self._generator.uniform()))
        return stopping(request.law, request.most, lambda _: drawn)

    def _filled(self, drawn: int, lacking: int) -> int:
        return (drawn >> lacking << lacking) + self._last_bits(lacking)

    def _last_bits(self, count: int) -> int:
        return int(self._generator.integers(1 << count))

    def _one(self, law: Law) -> float:
        return float(self._many(law, 1)[0])

    def _many(self, law: Law, n: int) -> NDArray[np.float64]:
        generator = self._generator
        if isinstance(law, Gaussian):
            return generator.normal(0.0, float(law.sigma), n)
        if isinstance(law, DiscreteLaplace):
            return self._discrete_laplace(float(law.scale), n)
        if isinstance(law, DiscreteGaussian):
            return self._discrete_gaussian(float(law.variance), n)
        if isinstance(law, Gumbel):
            return generator.gumbel(0.0, float(law.scale), n)
        return generator.laplace(0.0, float(law.scale), n)

    def _discrete_laplace(self, scale: float, n: int) -> NDArray[np.float64]:
        """The difference of two geometric draws."""
        one, other = np.floor(scale * self._generator.exponential(size=(2, n)))
        difference: NDArray[np.float64] = one - other
        return difference

    def _discrete_gaussian(self, variance: float, n: int) -> NDArray[np.float64]:
        scale = isqrt(floor(variance)) + 1
        kept: list[NDArray[np.float64]] = []
        while sum(map(len, kept)) < n or not kept:
            candidates = self._discrete_laplace(scale, 2 * n)
            gap = np.abs(candidates) - variance / scale
            kept.append(candidates[self._generator.exponential(size=2 * n) > gap * gap / (2 * variance)])
        return np.concatenate(kept)[:n]


def _lacking(law: Law) -> int:
    """How many of the last bits of whole noise floats do not have."""
    if isinstance(law, Gaussian) and law.sigma > _MAX_FLOAT_SIGMA:
        return min(int(law.sigma / _MAX_FLOAT_SCALE).bit_length(), 62)
    if not isinstance(law, DiscreteLaplace) or law.scale <= _MAX_FLOAT_SCALE:
        return 0
    return min(int(law.scale / _MAX_FLOAT_SCALE).bit_length(), 62)


def _on_grid(value: Fraction, step: Fraction) -> Fraction:
    """The nearest multiple of the step, halves upwards."""
    return step * floor(value / step + Fraction(1, 2))


def shuffled(key: int, n: int) -> NDArray[np.int64]:
    """The first ``n`` whole numbers in an order that depends on ``key`` alone: numpy's, for splits of public rows.

    >>> shuffled(1000, 5).tolist() == shuffled(1000, 5).tolist()
    True
    """
    order: NDArray[np.int64] = np.random.default_rng(key).permutation(n)
    return order
