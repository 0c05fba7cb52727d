"""Noisy labels from votes: the plurality after Gaussian noise, for many queries at once. Proof: ``labels.proof.md``.

Whatever the votes, all queries together are one Gaussian release. What the votes' agreement is worth on top of that is
the business of the tests beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import positive
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import Real, rational, root_above
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret

THEOREM, CONFIDENT = theorem("labels/1"), theorem("labels-confident/1")

Integers = NDArray[np.int64]

NO_ANSWER = -1


@dataclass(frozen=True)
class NoisyLabels:
    """For every query the class with most votes after noise of deviation ``sigma`` on every count, decided exactly.

    The data are histograms: one row per query, one column per class. Labels are positions of classes.

    Guarantee: on all votes the cost of ``gaussian_cost`` (``labels.proof.md``, Theorem 1).

    >>> from snugdp.noise import Exact
    >>> NoisyLabels(Fraction(2)).draw(Secret(np.array([[100, 0, 0], [0, 0, 100]])), Exact()).tolist()
    [0, 2]
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    def draw(self, data: Secret[Integers], noise: Noise) -> Integers:
        """The labels of all queries, with fresh noise."""
        return noise.at("release").argmaxes(data, Gaussian(self.sigma))  # 1.


@dataclass(frozen=True)
class ConfidentLabels:
    """The same labels, but only where the largest count reaches ``threshold`` after noise of its own; -1 elsewhere.

    Guarantee: on all votes the cost of ``gaussian_cost`` with ``threshold_sigma`` (``labels.proof.md``, Theorem 2). It
    covers which queries are answered, and all queries, not only the answered ones.
    """

    sigma: Fraction
    threshold: Fraction
    threshold_sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "threshold", rational(self.threshold, "threshold"))
        object.__setattr__(self, "threshold_sigma", positive(self.threshold_sigma, "threshold_sigma"))

    def draw(self, data: Secret[Integers], noise: Noise) -> Integers:
        """The labels of the queries that are answered, with fresh noise."""
        labels = NoisyLabels(self.sigma).draw(data, noise)  # 1.
        tops = data.map(lambda votes: votes.max(axis=1))  # 2.
        answered = noise.at("release").reach(tops, Gaussian(self.threshold_sigma), self.threshold)  # 3.
        return np.where(answered, labels, NO_ANSWER)  # 4.


def gaussian_cost(
    queries: int, sigma: Real, threshold_sigma: Real | None = None, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
) -> Cost:
    """What the labels of so many queries cost on all votes: one teacher may change all its votes, or abstain.

    ``neighbours`` is the relation between private tables of which a row reaches one teacher at most; the cost is the
    same for both.

    Guarantee: ``labels.proof.md``, Theorems 1 and 2. mu**2 is an exact rational.

    >>> gaussian_cost(200, 40).mu_squared
    Fraction(1, 4)
    """
    _check_queries(queries, 0)
    one = 2 / positive(sigma, "sigma") ** 2
    if threshold_sigma is not None:
        one += 1 / positive(threshold_sigma, "threshold_sigma") ** 2
    return Cost(mu_squared=int(queries) * one, neighbours=neighbours)


def sigma_for(budget: Budget, queries: int, threshold_sigma: Real | None = None) -> Fraction:
    """The smallest deviation at which the labels of so many queries fit the budget on all votes, rounded up.

    Guarantee: ``gaussian_cost(queries, sigma, threshold_sigma)`` fits the budget.

    >>> round(float(sigma_for(Budget(1, 1e-5), 200)), 2)
    74.61
    """
    _check_queries(queries, 1)
    left = Fraction(gaussian.mu(budget.epsilon, budget.delta)) ** 2
    if left <= 0:
        raise ValueError("Gaussian noise needs a delta above 0; 1e-6 is typical")
    if threshold_sigma is not None:
        left -= int(queries) / positive(threshold_sigma, "threshold_sigma") ** 2
        if left <= 0:
            raise ValueError(
                "the noise of the threshold alone costs more than the budget: give a larger threshold_sigma, "
                "fewer queries or a larger budget"
            )
    return root_above(2 * int(queries) / left)


def _check_queries(queries: int, least: int) -> None:
    if isinstance(queries, bool) or not isinstance(queries, int | np.integer) or queries < least:
        raise ValueError(f"queries, the number of queries, must be a whole number of at least {least}")
