"""A model on few of many entries: choose them in private, then fit on their rows. Proof: ``sparse.proof.md``.

Any way to choose (``peeling.py``, ``block_votes.py``) goes with any way to fit (a ``Method``): the second stage gets
what the first one leaves of the budget, and only the entries that were released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Fit, Method
from snugdp.mechanisms.support.block_votes import VotedSupport
from snugdp.mechanisms.support.peeling import NoisyScores, NoisySupport, Support, TopScores
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Accuracy, Note
from snugdp.propose.plan import Plan
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import Secret
from snugdp.tables.candidates import Candidates

THEOREM = theorem("sparse/1")

_CENTRE = Fraction(1, 100)  # of mu squared
_SMALLER_STEP = Fraction(99, 100)
_JUST_BELOW = 1 - Fraction(1, 1 << 20)
_MAX_TRIES = 200
_MAX_MU = 1 << 30  # a cap on public mu, for budgets that protect nobody

Chooser: TypeAlias = NoisySupport | NoisyScores | VotedSupport


def noisy_support(size: int, budget: Budget, share: Fraction, *, centred: bool, max_rows: int = 1) -> NoisySupport:
    """Gumbel noise for a share of the budget's mu squared; in the pure form where that needs less noise.

    ``centred``: one hundredth of mu squared, or a tenth of the share, goes to a private mean of the targets.
    ``max_rows``: of a person.
    """
    mu_squared = _mu_squared(budget.epsilon, budget.delta)
    spent = share * mu_squared
    centre = _root(min(_CENTRE * mu_squared, spent / 10)) if centred else Fraction(0)
    top = TopScores.gaussian(size, spent - centre**2)
    pure = _left_alike(budget, mu_squared - spent + centre**2)
    if pure / (2 * size) > top.rate:
        top = TopScores.pure(size, pure)
    return NoisySupport(replace(top, max_rows=max_rows), centre)


def noisy_scores(
    size: int, budget: Budget, share: Fraction, *, row_norm: Fraction, centred: bool, max_rows: int = 1
) -> NoisyScores:
    """Gaussian noise on all scores, for a share of the budget's mu squared."""
    mu_squared = _mu_squared(budget.epsilon, budget.delta)
    spent = share * mu_squared
    centre = _root(min(_CENTRE * mu_squared, spent / 10)) if centred else Fraction(0)
    return NoisyScores(size, _root(spent - centre**2), row_norm, centre, max_rows)


def voted_support(
    size: int, budget: Budget, share: Fraction, *, blocks: int, centred: bool, max_rows: int = 1
) -> VotedSupport:
    """Votes of blocks, for a share of epsilon and of delta."""
    part = Budget(budget.epsilon * share, budget.delta * share, budget.neighbours)
    return VotedSupport(size, blocks, part, centred, max_rows)


def beside(budget: Budget, first: Cost, make: Callable[[Budget], Method]) -> Method:
    """The second stage with nearly the largest epsilon that fits into the budget beside the first.

    A pure first stage is subtracted. Otherwise guesses are as for Gaussian parts, and the sum of the costs decides.
    """
    delta = budget.delta - first.delta
    if not first.mu_squared:
        return make(Budget(budget.epsilon - first.epsilon, delta, budget.neighbours))
    for epsilon in _guesses(budget.epsilon - first.epsilon, delta, first.mu_squared):
        method = make(Budget(epsilon, delta, budget.neighbours))
        if (first + method.plan().cost).fits(budget):
            return method
    raise ValueError("the selection leaves too little of the budget: give a larger epsilon, or a smaller share")


class SparseMethod:
    """Choose entries, then fit on them; a ``Method`` for ``Candidates``.

    ``width``: how many entries there are to choose from. ``x_norm``: longer rows of chosen entries are shortened to it.

    Guarantee: ``plan().cost``, which fits the budget (``sparse.proof.md``, Theorem 1). Add/remove neighbours.
    """

    def __init__(self, chooser: Chooser, method: Method, budget: Budget, *, width: int, x_norm: Real) -> None:
        self.chooser, self.method, self.budget = chooser, method, budget
        self._width, self._x_norm = width, x_norm
        self._second = method.plan()
        if not self.plan().cost.fits(budget):
            raise ValueError("the budget is too small to select columns and fit as well: give a larger epsilon")

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        unit = "votes" if isinstance(self.chooser, VotedSupport) else "rows"
        lead = Note("entry-chosen", {"lead": self.chooser.needed(self._width), "unit": unit})
        after = self._second.forecast
        return Plan(
            f"{self._second.title} on the best of {self._width:,} columns",
            THEOREM,
            (*self.chooser.steps(), *self._second.steps),
            self._second.proposal,
            replace(after, notes=(lead, *after.notes)),
            self.budget,
            self._second.unit,
        )

    def forecast(self, rows: int) -> Accuracy:
        """That of the fit, if the right entries were chosen."""
        return self.method.forecast(rows)

    def fit(self, data: Secret[Candidates], context: ReleaseContext) -> Outcome[tuple[Support, Fit]]:
        """Pay, choose, fit."""
        return TwoStages(self.plan(), self.chooser, self._on_chosen, self._second.cost).release(data, context)

    def _on_chosen(self, data: Secret[Candidates], found: Support, context: ReleaseContext) -> Outcome[Fit]:
        """The second stage: the method on the rows of the chosen entries."""
        positions = tuple(sorted(found.places))
        return self.method.fit(data.map(lambda candidates: candidates.rows(positions, self._x_norm)), context)


def _guesses(epsilon: Fraction, delta: Fraction, mu_squared: Fraction) -> Iterator[Fraction]:
    """What may be left of epsilon: twice from Gaussian curves, then less and less."""
    found = []
    for part in (delta, delta / 2):
        left = _mu_squared(epsilon, part) - mu_squared
        if left > 0:
            found.append(Fraction(gaussian.epsilon(_root(left), part)) * _JUST_BELOW)
    least = min(found, default=epsilon)
    less = (least * _SMALLER_STEP**k for k in range(1, _MAX_TRIES))
    return (guess for guess in chain(found, less) if 0 < guess <= epsilon)


def _left_alike(budget: Budget, mu_squared: Fraction) -> Fraction:
    """The pure epsilon beside which the rest has this mu squared, as it has beside a Gaussian part; at least 0."""
    if mu_squared <= 0:
        return Fraction(0)
    return max(budget.epsilon - Fraction(gaussian.epsilon(_root(mu_squared), budget.delta)), Fraction(0))


def _mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    return Fraction(min(gaussian.mu(epsilon, delta), float(_MAX_MU))) ** 2


def _root(square: Fraction) -> Fraction:
    """The root, rounded down to a float."""
    root = Fraction(float(square) ** 0.5)
    while root**2 > square:
        root *= 1 - Fraction(1, 1 << 50)
    return root
