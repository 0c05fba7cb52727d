"""Keys where an owner may have several: Gaussian noise on the counts and a threshold. Proof: ``threshold.proof.md``."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from flint import arb

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.keys.optimal import optimal_selection
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.noise import Gaussian
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import rational, root_above

MAX_KEYS = 1000  # that an owner may have
_NEW = Fraction(99, 100)  # of delta, for keys that nobody else has
_NEAR = 2**12
_HALF = Fraction(1, 2)


def lone(sigma: Fraction, threshold: Fraction) -> arb:
    """The probability that a key of one owner is shown: of ``1 + sigma Z >= threshold``."""
    return gaussian.cdf(balls.ball((1 - threshold) / sigma))


def triple(sigma: Fraction, threshold: Fraction, keys: int, neighbours: Neighbours) -> Cost:
    """What it costs beside other releases: a Gaussian part, and the chance that a key of one owner alone is shown.

    ``threshold``: of the counts before they are rounded, which is half below that of whole counts.

    Guarantee: not below the truth (``threshold.proof.md``, Theorem 1).
    """
    moved = keys if neighbours is Neighbours.ADD_REMOVE else 2 * keys
    failure = balls.rational_above(lambda: 1 - (1 - lone(sigma, threshold)) ** keys)
    return Cost(mu_squared=moved / sigma**2, delta=min(failure, Fraction(1)), neighbours=neighbours)


def delta(sigma: Fraction, threshold: Fraction, keys: int, neighbours: Neighbours, epsilon: Fraction) -> float:
    """What it costs alone, at this epsilon; rounded up.

    Guarantee: (epsilon, delta)-DP (``threshold.proof.md``, Theorem 2).
    """
    chance = balls.rational_above(lambda: lone(sigma, threshold), 128)
    terms = (partial(_term, sigma, chance, keys, neighbours, epsilon, new) for new in range(keys + 1))
    return max(map(balls.above, terms))


def _term(sigma: Fraction, chance: Fraction, keys: int, neighbours: Neighbours, epsilon: Fraction, new: int) -> arb:  # noqa: PLR0917
    """The larger order for an owner of ``new`` keys that nobody else has, as a ball."""
    unseen = (1 - balls.ball(chance)) ** new
    if neighbours is Neighbours.ADD_REMOVE:
        mu_squared, back, log = (keys - new) / sigma**2, Fraction(0), unseen.log()
    else:
        mu_squared, log = (2 * keys - new) / sigma**2, unseen.log()
        back = balls.rational_above(lambda: -keys * (1 - balls.ball(chance)).log())
    low = balls.exact((balls.ball(epsilon - back) - log).lower())
    high = balls.exact((balls.ball(epsilon - back) + log).lower())
    first = 1 - unseen + unseen * gaussian.delta_ball(Fraction(mu_squared), low)
    return first.max(gaussian.delta_ball(Fraction(mu_squared), high))


def gaussian_selection(budget: Budget, keys: int) -> KeySelection:
    """The least noise that the budget allows alone.

    The threshold leaves nearly all of delta to new keys: a public rule, by which hardly fewer keys are shown than by
    the best one.

    Guarantee: cost (0, epsilon, delta) in the relation (``threshold.proof.md``, Theorem 2).
    """
    relation, epsilon, goal = budget.neighbours, budget.epsilon, budget.delta
    check_keys(keys, goal)
    moved = keys if relation is Neighbours.ADD_REMOVE else 2 * keys
    least = root_above(moved / rational(gaussian.mu(epsilon, goal), "mu") ** 2)

    def enough(factor: Fraction) -> bool:
        sigma = least * factor
        cut = _threshold(sigma, _NEW * goal / keys) - _HALF
        return rational(delta(sigma, cut, keys, relation, epsilon), "delta") <= goal

    factor, low = Fraction(1), Fraction(1)
    while not enough(factor):
        low, factor = factor, 1 + 2 * (factor - 1) + Fraction(1, _NEAR)
    if factor > 1:
        factor = roots.bisect(lambda at: not enough(at), low, factor, near=_NEAR)[1]
    sigma = least * factor
    cost = Cost(epsilon=epsilon, delta=goal, neighbours=relation)
    return KeySelection(Gaussian(sigma), _threshold(sigma, _NEW * goal / keys), keys, cost)


def shared_selection(mu_squared: Fraction, failure: Fraction, neighbours: Neighbours, keys: int) -> KeySelection:
    """For a Gaussian part and a failure of a larger release.

    Guarantee: cost (mu, 0, delta) at most as given, in the relation (``threshold.proof.md``, Theorem 1).
    """
    check_keys(keys, failure)
    moved = keys if neighbours is Neighbours.ADD_REMOVE else 2 * keys
    sigma = root_above(moved / mu_squared)
    threshold = _threshold(sigma, failure / keys)
    cost = Cost(mu_squared=mu_squared, delta=failure, neighbours=neighbours)
    return KeySelection(Gaussian(sigma), threshold, keys, cost)


def best_selection(budget: Budget, keys: int = 1) -> KeySelection:
    """The form that shows keys of smaller counts; which one follows from the budget and ``keys`` alone."""
    check_keys(keys, budget.delta)
    plain = optimal_selection(budget.epsilon, budget.delta, budget.neighbours, keys)
    if keys == 1:
        return plain
    several = gaussian_selection(budget, keys)
    return several if several.usual_count < plain.usual_count else plain


def check_keys(keys: int, failure: Fraction) -> None:
    """Refuse numbers of keys that are none, and a delta of 0."""
    if isinstance(keys, bool) or not isinstance(keys, int) or not 1 <= keys <= MAX_KEYS:
        raise ValueError(f"max_keys, how many keys a row may count for, must be a whole number from 1 to {MAX_KEYS}")
    if failure <= 0:
        raise ValueError("keys that are not listed need delta > 0, such as 1e-6; or list them: keys=[...]")


def _threshold(sigma: Fraction, chance: Fraction) -> int:
    """The least whole threshold that a lone key reaches, after rounding, with at most this probability."""
    return math.ceil(1 + _HALF + rational(gaussian.threshold(sigma, chance), "threshold"))
