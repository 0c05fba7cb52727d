"""Tests and certificates that are wrong: a shift, a sign, a threshold, a statistic without noise."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from snugdp.accounting import discrete, gaussian
from snugdp.audit.mutants.base import Changes, Topic, everywhere, seen
from snugdp.audit.mutants.checks import Covered, Near
from snugdp.audit.mutants.vectors import Vector
from snugdp.certify import distance, smooth, statistics
from snugdp.certify.bound import BoundTest
from snugdp.certify.distance import DistanceTest
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.components import dual, gap_test
from snugdp.mechanisms.linear import output, ridge_test
from snugdp.mechanisms.linear.noisy_sums import root_above
from snugdp.mechanisms.output import glm
from snugdp.mechanisms.votes import inverse
from snugdp.noise import Noise
from snugdp.noise.grid import grid_below
from snugdp.numerics import ridge
from snugdp.numerics.eigenvalues import Spectrum
from snugdp.secrecy.secret import Secret

mutant = Topic("tests and shifts")
_LOWER = Covered("statistics/lower bound")


def _threshold(module: Any, change: Any) -> Changes:
    """The module sees another threshold of Gaussian noise, and all else of the accountant as it is."""
    stand_in = SimpleNamespace(**vars(gaussian))
    stand_in.threshold = lambda sigma, delta: change(gaussian.threshold, sigma, delta)
    return [(module, "gaussian", stand_in)]


@mutant("shift forgotten", "C", _LOWER)
def _() -> Changes:
    """A noisy statistic is taken for a bound as it is, without the margin that makes it one."""
    return _threshold(statistics, lambda threshold, sigma, delta: 0.0)


@mutant("shift with the wrong sign", "C", _LOWER)
def _() -> Changes:
    """The margin of a bound is added where it is to be taken off."""
    return _threshold(statistics, lambda threshold, sigma, delta: -threshold(sigma, delta))


@mutant("upper for lower", "C", Covered("statistics/upper bound"))
def _() -> Changes:
    """A statistic that is needed from above is bounded from below."""
    bound = statistics._bound

    def swapped(statistic: Any, *given: Any) -> float:
        other: Any = SimpleNamespace(**{**_fields(statistic), "side": "lower"})
        return bound(other, *given)

    return [(statistics, "_bound", swapped)]


def _fields(statistic: Any) -> dict[str, Any]:
    names = ("name", "sensitivity", "side", "between", "value")
    return {name: getattr(statistic, name) for name in names}


@mutant("every bound with the whole failure", "C", Covered("statistics/two bounds together"))
def _() -> Changes:
    """Each of several bounds may fail with the probability that is meant for all of them."""
    bound = statistics._bound
    return [(statistics, "_bound", lambda one, mu, failure, *given: bound(one, mu, 2 * failure, *given))]


@mutant("a tail of two sides for one", "C", Covered("distances/distance by Laplace"))
def _() -> Changes:
    """The threshold of Laplace noise is made for twice the failure probability."""
    threshold = discrete.laplace_threshold
    return [(discrete, "laplace_threshold", lambda epsilon, delta: threshold(epsilon, 2 * Fraction(delta)))]


@mutant("strictly above for at least", "DX", Vector("thresholds"))
def _() -> Changes:
    """The threshold of whole noise is one too small: it is made for strictly above."""
    threshold = discrete.discrete_laplace_threshold

    def less(epsilon: Any, delta: Any) -> discrete.Threshold:
        found = threshold(epsilon, delta)
        return discrete.Threshold(found.tau - 1, found.passing)

    return [(discrete, "discrete_laplace_threshold", less)]


@mutant("test of a distance without noise", "N", Near("framework: distance, Laplace", 4, 40), quick=True)
def _() -> Changes:
    """A test by distance compares the distance itself."""

    def passes(self: DistanceTest[Any], data: Secret[Any], noise: Noise) -> bool:
        return bool(seen(data.map(self.distance)) >= self.threshold)

    return [(DistanceTest, "passes", passes)]


@mutant("test turned round", "C", Covered("distances/distance by integer Laplace"), quick=True)
def _() -> Changes:
    """A test by distance passes where it must not, and the other way round."""
    passes = DistanceTest.passes
    return [(DistanceTest, "passes", lambda self, *given: not passes(self, *given))]


@mutant("test that always passes", "C", Covered("statistics/test of a bound"))
def _() -> Changes:
    """A bound is drawn and paid for, and not looked at."""

    def passes(self: BoundTest[Any, Any], data: Secret[Any], noise: Noise) -> bool:
        self.certifier.certify(data, noise)
        return True

    return [(BoundTest, "passes", passes)]


@mutant("raw smallest eigenvalue", "N", Near("linear: output", 2, 10))
def _() -> Changes:
    """The smallest eigenvalue of X'X is used as it is, in place of its private bound."""
    smallest = ridge.smallest_eigenvalue

    def curvature(self: ridge_test.RidgeTest, data: Secret[Any], noise: Noise) -> Fraction:
        unit = self.design.unit**2
        return Fraction(seen(data.map(lambda m: smallest(m.gram(), unit, self.square * Fraction(1, 1 << 20)))))

    return [(ridge_test.RidgeTest, "_curvature", curvature)]


@mutant("raw eigengap", "N", Near("pca: projector", 2, 10))
def _() -> Changes:
    """The gap between two eigenvalues is used as it is, in place of its private bound."""
    draw = gap_test.PairTest.draw

    def raw(self: gap_test.PairTest, spectrum: Secret[Spectrum], start: Any, noise: Noise) -> Any:
        found = draw(self, spectrum, start, noise)
        gap = self.certified(seen(spectrum.map(lambda s: s.gap(self.k))))
        return gap_test.GapCertificate(found.k, gap, found.spread, start)

    return [(gap_test.PairTest, "draw", raw)]


@mutant("gap without its margin", "C", Covered("gaps/one eigengap"))
def _() -> Changes:
    """A noisy eigengap is taken for a bound as it is."""
    return _threshold(gap_test, lambda threshold, sigma, delta: 0.0)


@mutant("a difference of two noises as one", "CX", Covered("gaps/all eigengaps"))
def _() -> Changes:
    """The margin of a gap between two noisy eigenvalues is that of one of them."""
    return [(gap_test, "root_above", lambda square: root_above(square / 2))]


@mutant("norm of the noise forgotten", "C", Covered("gaps/eigengap of a noisy matrix"))
def _() -> Changes:
    """The gap of a noisy matrix is taken for that of the matrix."""
    return [
        (dual.Dual, "certified", lambda self, cells, k: _plain_gap(cells, k, self.task.unit)),
    ]


def _plain_gap(cells: Any, k: int, unit: int) -> Fraction:
    import numpy as np

    values = np.linalg.eigvalsh(np.array(cells, dtype=np.float64) / unit)[::-1]
    return Fraction(float(values[k - 1] - values[k]))


@mutant("smooth bound without its shift", "C", Covered("smooths/smooth bound at 2"))
def _() -> Changes:
    """The bound by smooth sensitivity adds no margin to the noisy loss."""
    return _threshold(smooth, lambda threshold, sigma, delta: 0.0)


@mutant("residual without its margin", "C", Covered("ridges/residual of a ridge"))
def _() -> Changes:
    """The noisy bounds of a ridge regression are used without their margins."""
    spread = ridge_test.spread

    def bare(*given: Any) -> Any:
        sigma, grid, _ = spread(*given)
        return sigma, grid, Fraction(0)

    return [(ridge_test, "spread", bare)]


@mutant("half the noise of a curvature", "X", Vector("margins"))
def _() -> Changes:
    """The bounds of a ridge regression get half of their noise, and margins to match."""
    spread = ridge_test.spread
    return [(ridge_test, "spread", lambda s, close, mu, failure: spread(s, close, 2 * mu, failure))]


@mutant("curvature of a Hessian without its margin", "C", Covered("curvatures/curvature of a Hessian, 1 ridge(s)"))
def _() -> Changes:
    """The noisy curvature of a Hessian is taken for a bound as it is."""
    certify = glm.OutputGLM.certify
    return [(glm.OutputGLM, "certify", _without_margin(certify))]


def _without_margin(certify: Any) -> Any:
    def bare(self: Any, *given: Any) -> Any:
        found = certify(self, *given)
        off = Fraction(self._plan.margin(self.sensitivity, len(found.curvatures)))
        return SimpleNamespace(curvatures=tuple(value + float(off) for value in found.curvatures))

    return bare


@mutant("grid from the data", "NL", Near("linear: output", 2, 10))
def _() -> Changes:
    """The grid of a released number follows its private size."""
    inside, solution = list[Any](), ridge.solution

    def kept(*given: Any) -> Any:
        inside[:] = [solution(*given)]
        return inside[0]

    def grid(sigma: Fraction) -> int:
        size = abs(inside[0][0]) if inside else Fraction(0)
        return grid_below(sigma) + int(size * 2**20) % 5

    return [(output, "solution", kept), (output, "grid_below", grid)]


@mutant("scale from the data", "ND", Near("mode", 6, 20))
def _() -> Changes:
    """The noise of a distance is as wide as the distance, which is private."""

    def passes(self: DistanceTest[Any], data: Secret[Any], noise: Noise) -> bool:
        private = seen(data.map(self.distance))
        law = type(self.law)(1 + Fraction(1, 2 + int(min(private, 10**6))))
        return noise.at_least(Secret(private), law, self.threshold)

    return [(DistanceTest, "passes", passes)]


@mutant("least lead by the loss at it", "N", Near("vote: tested", 2, 10))
def _() -> Changes:
    """The lead that a vote is tested for is the first at which the loss is small, though it grows again beyond."""
    from snugdp.mechanisms.votes.vote import epsilon_at

    def least(noise_epsilon: float, epsilon: float, delta: float, relation: Any) -> int | float:
        return next(gap for gap in range(10**4) if epsilon_at(noise_epsilon, gap, delta, relation) <= epsilon)

    return everywhere(inverse.least_gap, least)


@mutant("failure of a test not charged", "N", Near("framework: distance, Laplace", 700, 0, pair=2))
def _() -> Changes:
    """The probability that a test passes where it must not is left out of its cost."""
    cost = Cost

    def free(**parts: Any) -> Any:
        return cost(**{**parts, "delta": 0})

    return [(distance, "Cost", free)]
