"""Laws of the hidden number of runs, made from their mean, and what they say about the winner.

Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from flint import arb

from snugdp.accounting.gaussian import positive
from snugdp.accounting.selection.run_counts import BALLS, FLOATS, Binomial, Law, NegativeBinomial, Poisson
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, rational


def geometric(mean_runs: Real) -> NegativeBinomial:
    """The geometric law of this mean, above 1: the usual choice."""
    return NegativeBinomial(Fraction(1), 1 / _more_than_one(mean_runs))


def logarithmic(mean_runs: Real) -> NegativeBinomial:
    """The logarithmic law of this mean: a little cheaper than the geometric, and more often a single run."""
    return truncated_negative_binomial(0, mean_runs)


def truncated_negative_binomial(eta: Real, mean_runs: Real) -> NegativeBinomial:
    """The law TNB(eta) whose mean is this one, up to the rounding of gamma to a float.

    >>> law = truncated_negative_binomial("-0.5", 30)
    >>> round(mean(law), 9)
    30.0
    """
    shape, goal = rational(eta, "eta"), float(_more_than_one(mean_runs))
    if shape == 1:
        return geometric(mean_runs)

    def too_many(log: float) -> bool:
        return bool(NegativeBinomial(shape, Fraction(math.exp(log))).mean_in(FLOATS) > goal)

    _, high = roots.bisect(too_many, -700.0, -1e-12)
    return NegativeBinomial(shape, Fraction(repr(math.exp(high))))


def poisson(mean_runs: Real) -> Poisson:
    """The Poisson law of this mean."""
    return Poisson(positive(mean_runs, "mean_runs"))


def binomial(mean_runs: Real, n: int | None = None) -> Binomial:
    """The binomial law of this mean; n is twice the mean if not given."""
    runs = positive(mean_runs, "mean_runs")
    trials = math.ceil(2 * runs) if n is None else n
    return Binomial(trials, runs / trials)


NAMES: dict[str, Callable[[Real], Law]] = {
    "geometric": geometric,
    "logarithmic": logarithmic,
    "poisson": poisson,
    "binomial": binomial,
}


_PROVED = (NegativeBinomial, Poisson, Binomial)  # the table of selection.proof.md, Theorem 3


def check_law(law: object) -> None:
    """Refuse what is no law of ours, a subclass too: that its shares are those of its masses is proved of no other.

    A selection is paid by ``share``, ``ratio`` and ``rho`` and drawn by ``masses``; nothing short of a proof shows that
    the functions of somebody else's law speak of the same number of runs everywhere.
    """
    if type(law) not in _PROVED:
        raise TypeError(
            "the law must be one of snugdp.accounting.selection, such as geometric(30), poisson(30), binomial(30) or "
            "truncated_negative_binomial(0.5, 30): what a selection costs is proved for these"
        )


def mean(law: Law) -> float:
    """E K, to a float's accuracy."""
    return _value(lambda: law.mean_in(BALLS))


def pgf(law: Law, x: Real) -> float:
    """f(x) = E x^K, to a float's accuracy."""
    z = 1 - rational(x, "x")
    return _value(lambda: law.generating(balls.ball(z), BALLS))


def pgf_slope(law: Law, x: Real) -> float:
    """f'(x), to a float's accuracy."""
    z = 1 - rational(x, "x")
    return _value(lambda: law.mean_in(BALLS) * law.share(balls.ball(z), BALLS))


def expected_quantile(law: Law) -> float:
    """The quantile of the winner among all runs with continuous scores, on average; no run counts as 0.

    >>> round(expected_quantile(geometric(300)), 4)
    0.9842
    """
    return _value(lambda: 1 - law.missed(BALLS))


def best_tried(law: Law, candidates: int) -> float:
    """The probability that the best of so many candidates, drawn evenly, is tried at all.

    >>> round(best_tried(geometric(30), 30), 4)
    0.5085
    """
    return _value(lambda: 1 - law.generating(balls.ball(Fraction(1, candidates)), BALLS))


def beyond(law: Law, most: int) -> float:
    """P[K > most], rounded up: how often a cut at ``most`` ends without a release."""
    if most < 0:
        raise ValueError("the largest number of runs must be at least 0")
    if isinstance(law, NegativeBinomial) and law.eta == 1:
        return balls.above(lambda: balls.ball(1 - law.gamma) ** most)
    if isinstance(law, Binomial) and most >= law.n:
        return 0.0

    def rest() -> arb:
        masses = law.masses()
        return 1 - sum((next(masses) for _ in range(most + 1)), arb(0))

    return max(0.0, balls.upper(balls.enclose(rest, bits=20)))


def winner(law: Law, p: Sequence[Real], score: Sequence[float]) -> list[float]:
    """The law of the best of K runs with outcomes of probabilities p; the largest score wins, ties at random.

    What is missing to the sum 1 is K = 0.

    >>> winner(geometric(2), ["1/2", "1/2"], [0, 1])
    [0.333333333333..., 0.666666666666...]
    """
    masses = [rational(value, "a probability") for value in p]
    if len(masses) != len(score):
        raise ValueError("there must be one score for every outcome")
    found = []
    for mass, value in zip(masses, score, strict=True):
        level = sum((m for m, s in zip(masses, score, strict=True) if s == value), Fraction(0))
        above = sum((m for m, s in zip(masses, score, strict=True) if s > value), Fraction(0))
        found.append(_value(partial(_winning, law, mass, level, above)) if mass else 0.0)
    return found


def _winning(law: Law, mass: Fraction, level: Fraction, above: Fraction) -> arb:
    """The share of one outcome in the probability that its score wins."""
    reached: arb = law.generating(balls.ball(above), BALLS) - law.generating(balls.ball(above + level), BALLS)
    return balls.ball(mass / level) * reached


def _value(function: balls.Function) -> float:
    return float(balls.enclose(function).mid())


def _more_than_one(mean_runs: Real) -> Fraction:
    runs = rational(mean_runs, "mean_runs")
    if runs <= 1:
        raise ValueError("mean_runs must be above 1 for a law that always runs at least once")
    return runs
