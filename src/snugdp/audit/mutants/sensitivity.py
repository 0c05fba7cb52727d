"""Sensitivities that are too small: a factor, a relation, a distance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from snugdp.audit.mutants.base import Changes, Topic, everywhere
from snugdp.audit.mutants.checks import Dense, Near
from snugdp.audit.mutants.vectors import Vector
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.components import gap_test, noisy_matrix
from snugdp.mechanisms.components.base import Task
from snugdp.mechanisms.linear import noisy_sums
from snugdp.mechanisms.objective.perturbation import ObjectiveRun
from snugdp.mechanisms.order_statistics import median, quantile, stable, trimmed_mean
from snugdp.mechanisms.support import peeling
from snugdp.mechanisms.teachers import labels
from snugdp.mechanisms.votes import mode, vote
from snugdp.noise import Gaussian
from snugdp.numerics.rationals import Real
from snugdp.tables.limits import Limits, Sensitivity

mutant = Topic("sensitivity")
_STATISTICS = Near("linear: sufficient, statistics alone", 2, 20)


def _sensitivity(**parts: Any) -> Changes:
    whole = Limits.sensitivity

    def changed(self: Limits, neighbours: Any) -> Sensitivity:
        found = whole(self, neighbours)
        return replace(found, **{name: int(getattr(found, name) * by) for name, by in parts.items()})

    return [(Limits, "sensitivity", changed)]


@mutant("Gram sensitivity halved", "N", _STATISTICS, quick=True)
def _() -> Changes:
    """One row is said to move X'X by half of what it can."""
    return _sensitivity(gram_squared=Fraction(1, 4))


@mutant("cross sensitivity of unit targets", "N", _STATISTICS)
def _() -> Changes:
    """One row is said to move X'y by a tenth less than it can."""
    return _sensitivity(cross_squared=Fraction(81, 100))


@mutant("half variance for both", "N", Near("pca: gauss", 2, 20))
def _() -> Changes:
    """Entries off the diagonal get half of the deviation of those on it, where half of the variance is meant."""
    return everywhere(noisy_sums.off_diagonal, lambda law: Gaussian(law.sigma / 2))


@mutant("the diagonal without noise of its own", "N", Near("pca: gauss", 2, 20))
def _() -> Changes:
    """The noise of a matrix is made for entries of a row, and not for their squares: too narrow by a root of two."""
    law_for = noisy_sums.law_for
    return [(noisy_matrix, "law_for", lambda square, mu_squared: law_for(square, 2 * mu_squared))]


@mutant("crossing at a quarter", "ND", Near("pca: crossing", 6, 20))
def _() -> Changes:
    """One row is said to move what crosses a subspace by a quarter of what it can move the matrix by: half is true."""
    root_above = noisy_sums.root_above
    quarter = Fraction(1, 4)
    return [(noisy_matrix, "root_above", lambda square: root_above(square / 4 if square == quarter else square))]


@mutant("gradient of half a row", "D", Dense("linear: objective", 40, 1))
def _() -> Changes:
    """The noise of a perturbed objective is made for gradients of half the size."""
    sigma: Any = vars(ObjectiveRun)["sigma"].fget
    return [(ObjectiveRun, "sigma", property(lambda self: sigma(self) / 2))]


@mutant("projector turned half as far", "X", Vector("projector"))
def _() -> Changes:
    """A row is said to turn the leading projector by half of what it can at this gap."""
    turned = gap_test._turned
    return [(gap_test, "_turned", lambda gap: turned(gap) / 2)]


@mutant("replace as add/remove, votes", "D", Dense("vote: gumbel: replace", 150, 1), quick=True)
def _() -> Changes:
    """A replaced row is said to move the lead of a vote by one, as if it only came or went."""
    return [(vote, "step", lambda relation: 1)]


@mutant("replace as add/remove, mode", "N", Near("mode: replace", 8, 40))
def _() -> Changes:
    """The distance of a mode counts rows that come or go where rows are replaced."""
    distance = mode.distance
    return [(mode, "distance", lambda counts, relation: distance(counts, "add_remove"))]


@mutant("replace as add/remove, sums", "X", Vector("moments"))
def _() -> Changes:
    """The sensitivity of sums for a replaced row is the one for a row that comes or goes."""
    sensitivity = Limits.sensitivity
    return [(Limits, "sensitivity", lambda self, neighbours: sensitivity(self, "add_remove"))]


@mutant("a teacher moves one count", "ND", Near("pate: one query", 2, 20))
def _() -> Changes:
    """A teacher who changes a vote is said to move one count: there are two."""

    def cost(queries: int, sigma: Real, threshold_sigma: Any = None, neighbours: Any = "add_remove") -> Cost:
        return Cost(mu_squared=queries / Fraction(sigma) ** 2, neighbours=neighbours)

    return [*everywhere(labels.gaussian_cost, cost), *_halved_root()]


def _halved_root() -> Changes:
    root = labels._root_above
    return [(labels, "_root_above", lambda square: root(square / 2))]


@mutant("only the answered queries", "N", Near("pate: plain, only where sure", 3, 20))
def _() -> Changes:
    """Labels behind a threshold are charged for the labels alone: the noisy threshold is free."""
    gaussian_cost = labels.gaussian_cost

    def cost(queries: int, sigma: Real, threshold_sigma: Any = None, neighbours: Any = "add_remove") -> Cost:
        return gaussian_cost(queries, sigma, None, neighbours)

    return everywhere(gaussian_cost, cost)


@mutant("distance of a median off by two", "N", Near("median: as it is", 400, 0, pair=1))
def _() -> Changes:
    """A median is said to be two rows farther from a large sensitivity than it is."""
    distance = median.distance
    return [(median, "distance", lambda *given: distance(*given) + 2)]


@mutant("distance of two rows a step", "N", Near("quantile", 6, 40))
def _() -> Changes:
    """The distance of a quantile moves by two when one row is replaced."""
    distance = quantile.distance
    return [(quantile, "distance", lambda *given: 2 * distance(*given))]


@mutant("trimmed rows counted in", "DN", Near("trimmed mean: without a test", 4, 20))
def _() -> Changes:
    """The trimmed mean trims nothing, and gets noise as if it had."""
    total = trimmed_mean.total
    return [(trimmed_mean, "total", lambda ordered, trim: 2 * total(ordered, 0))]


@mutant("noise for half the proposal", "ND", Near("median", 6, 20))
def _() -> Changes:
    """After the test a median gets noise for half of the sensitivity that was tested."""
    scale: Any = vars(stable.Stable)["scale"].fget
    return [(stable.Stable, "scale", property(lambda self: scale(self) / 2))]


@mutant("Gumbel draws at half price", "X", Vector("choices"))
def _() -> Changes:
    """Choosing entries by Gumbel noise is charged as if scores could only grow: the noise is half as wide."""
    rate = peeling.gaussian_rate
    return [(peeling, "gaussian_rate", lambda mu_squared: 2 * rate(mu_squared))]


@mutant("scores of unshortened rows", "N", Near("sparse linear: gaussian", 3, 40))
def _() -> Changes:
    """All scores get noise for rows of half the norm that they are shortened to."""
    certify = peeling.NoisyScores.certify
    return [
        (peeling.NoisyScores, "certify", lambda self, *given: certify(replace(self, mu=2 * self.mu), *given)),
    ]


@mutant("private centre for free", "N", Near("pca: gauss, private centre", 2, 20))
def _() -> Changes:
    """The noisy mean and the noisy number of rows before a matrix are not charged."""
    return [(Task, "steps", lambda self, whole, *main: main)]
