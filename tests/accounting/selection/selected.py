"""Finite runs with adversarial score orders, and the exact loss of keeping the best of a random number of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import islice

import numpy as np
from scipy import special, stats

from snugdp.accounting import selection
from snugdp.accounting.selection.laws import FLOATS, Floats, Law
from snugdp.numerics import balls

LAWS: dict[str, Law] = {
    "geometric": selection.geometric(10),
    "geometric 30": selection.geometric(30),
    "logarithmic": selection.logarithmic(10),
    "eta -1/2": selection.truncated_negative_binomial("-0.5", 6),
    "eta 2": selection.truncated_negative_binomial(2, 8),
    "poisson": selection.poisson(5),
    "binomial": selection.binomial(6, 9),
}


@dataclass(frozen=True)
class Run:
    """Two laws of one run on neighbouring data sets, and the scores of the outcomes."""

    p: Floats
    q: Floats
    score: Floats


def runs(count: int) -> list[Run]:
    """Random pairs with zero atoms, tied scores and orders by the likelihood ratio; from a fixed start."""
    source = np.random.default_rng(5)
    return [_run(source, number) for number in range(count)]


def _run(source: np.random.Generator, number: int) -> Run:
    size = int(source.integers(2, 7))
    p = source.dirichlet(np.full(size, source.choice([0.3, 1.0, 5.0])))
    q = p * np.exp(source.normal(0, source.choice([0.02, 0.1, 0.5, 2.0]), size))
    if number % 5 == 0:
        p[source.integers(size)] = 0.0
    if number % 7 == 0:
        q[source.integers(size)] = 0.0
    p, q = (_grain(law) for law in (p, q))
    with np.errstate(all="ignore"):
        ratio = np.where(q > 0, p / q, 1e9)
    rank = np.argsort(np.argsort(ratio)).astype(float)
    orders = [
        rank,
        -rank,
        np.where(rank == 0, size, -rank),  # the lowest ratio on top, the others falling
        np.where(rank == size - 1, -1.0, rank),
        source.integers(0, 3, size).astype(float),  # ties
        source.permutation(size).astype(float),
    ]
    return Run(p, q, orders[number % len(orders)])


def _grain(law: Floats) -> Floats:
    """Probabilities that are multiples of 2^-20, so that floats and rationals say the same."""
    whole = np.floor(law / law.sum() * 2**20)
    whole[int(np.argmax(whole))] += 2**20 - whole.sum()
    return np.asarray(whole / 2**20, dtype=np.float64)


def winner(generating: Callable[[Floats], Floats], p: Floats, score: Floats) -> Floats:
    """The law of the winner, by the generating function as a function of z."""
    found = np.zeros_like(p)
    for level in np.unique(score):
        here = score == level
        mass, above = p[here].sum(), p[score > level].sum()
        if mass > 0:
            ends = generating(np.array([above, above + mass]))
            found[here] = p[here] / mass * (ends[0] - ends[1])
    return found


def exact(run: Run, generating: Callable[[Floats], Floats], epsilon: float) -> float:
    """H at exp(epsilon) of the two laws of the winner, epsilon >= 0."""
    first, second = (winner(generating, law, run.score) for law in (run.p, run.q))
    return float(np.maximum(first - np.exp(epsilon) * second, 0.0).sum())


@cache
def by_the_books(law: Law, k: int) -> float:
    """P[K = k]: nothing here comes from the library but the parameters."""
    if isinstance(law, selection.Poisson):
        return float(stats.poisson.pmf(k, float(law.runs)))
    if isinstance(law, selection.Binomial):
        return float(stats.binom.pmf(k, law.n, float(law.p)))
    assert isinstance(law, selection.NegativeBinomial)
    g, eta = float(law.gamma), float(law.eta)
    if k == 0:
        return 0.0
    if eta == 0:
        return float(stats.logser.pmf(k, 1 - g))
    full = math.exp(special.gammaln(k + eta) - special.gammaln(k + 1)) / special.gamma(eta)
    return float((1 - g) ** k * full / (g**-eta - 1))


def generating(law: Law) -> Callable[[Floats], Floats]:
    """f(1 - z) in floats."""
    return lambda z: np.asarray(law.generating(z, FLOATS))


def masses(law: Law, most: int) -> Floats:
    """P[K = 0], ..., P[K = most]."""
    with balls.precision(128):
        found = [float(mass.mid()) for mass in islice(law.masses(), most + 1)]
    return np.array(found + [0.0] * (most + 1 - len(found)))


def polynomial(weights: Floats) -> Callable[[Floats], Floats]:
    """The generating function of given masses, as a function of z."""
    return lambda z: np.asarray(np.polyval(weights[::-1], 1 - z), dtype=np.float64)


def base(run: Run) -> selection.Base:
    """The run as accounting sees it; both orders."""
    return selection.of_pair([Fraction(x) for x in run.p.tolist()], [Fraction(x) for x in run.q.tolist()])
