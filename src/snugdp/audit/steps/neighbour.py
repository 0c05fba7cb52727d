"""Layer N: how far a neighbour moves what gets noise, in exact numbers, against what the parts of the cost pay for.

Along every run the squares of (change / deviation) of Gaussian noise add up to at most mu squared, and change / scale
of other noise to at most epsilon; a run on which a certificate failed may exceed that, as often as delta says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from snugdp.audit.bounds import ALPHA, clopper_pearson
from snugdp.audit.finding import Case, Finding, at_most
from snugdp.audit.replay import Realised, path, random_pairs, realised_by
from snugdp.numerics.printed import root_up

Data = TypeVar("Data")
_TRIES = 4
_AGAIN = 1 << 7  # between the seeds of a first look and a second


@dataclass
class _Tally:
    """What many runs gave away: how many exceeded the claim, the most of each part, and why."""

    runs: int = 0
    exceeded: int = 0
    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction | float = Fraction(0)
    why: str = ""

    def add(self, case: Case[Data], found: Realised) -> None:
        """One more run."""
        self.runs += 1
        why = exceeds(case, found)
        if why:
            self.exceeded, self.why = self.exceeded + 1, self.why or why
        else:
            self.mu_squared = max(self.mu_squared, found.mu_squared)
            self.epsilon = max(self.epsilon, found.epsilon)

    def refutes(self, case: Case[Data], alpha: float) -> bool:
        """Whether the claim was exceeded more often than its delta allows, but for probability alpha."""
        allowed = failure(case)
        if not allowed:
            return self.exceeded > 0
        return self.runs > 0 and clopper_pearson(self.exceeded, self.runs, 2 * alpha)[0] > allowed


def exceeds(case: Case[Data], found: Realised) -> str:
    """What a run gives away more than was claimed; empty where it does not. All comparisons are exact."""
    if found.reason:
        return found.reason
    if any(step.method == "reveal" and step.epsilon for step in found.steps):
        return "a value was shown that a neighbour does not have"
    if not case.parts:
        return ""
    if found.mu_squared > case.cost.mu_squared:
        return f"mu is {_root(found.mu_squared)}, claimed {_root(case.cost.mu_squared)}"
    if found.epsilon > case.cost.epsilon:
        return f"epsilon is {at_most(found.epsilon, 6)}, claimed {at_most(case.cost.epsilon, 6)}"
    return ""


def failure(case: Case[Data]) -> float:
    """How often a run may exceed its parts."""
    promised = case.cost.delta if case.budget is None else max(case.budget.delta, case.cost.delta)
    return min(1.0, float(promised + case.cost.variation))


def neighbour(
    case: Case[Data], *, runs: int = 30, random: int = 100, most: int | None = None, seed: int = 0, alpha: float = ALPHA
) -> list[Finding]:
    """The audit of a case: ``runs`` on each of its worst pairs and one on each of ``random`` neighbours, both ways.

    Where only the output is promised, or the cost is not made of parts, only the walks are compared: what is drawn,
    with which laws and in which order, and that the outcome follows from the answers.

    Guarantee: where the claim has no delta, a true claim cannot fail, and one run that exceeds it is a proof. Otherwise
    a true claim fails with probability at most ``alpha`` for each pair.
    """
    if not case.transcript:
        return []
    try:
        return [_audited(case, runs=runs, random=random, most=most, seed=seed, alpha=alpha)]
    except Exception as problem:
        return [Finding("N", case.name, _claim(case), "an error", False, type(problem).__name__)]


def _audited(case: Case[Data], *, runs: int, random: int, most: int | None, seed: int, alpha: float) -> Finding:
    total, failed = _Tally(), ""
    pairs = list(case.worst())[:most]
    for number, (one, two) in enumerate(pairs):
        for way, (first, second) in enumerate(((one, two), (two, one))):
            tally = _tally(case, (first, second), runs, (seed << 8) + 2 * number + way)
            if tally.exceeded and not tally.refutes(case, alpha):  # so few runs cannot tell: enough new ones do
                tally = _tally(case, (first, second), _enough(case, alpha), (seed << 8) + 2 * number + way + _AGAIN)
            failed = failed or (f"pair {number + 1}: {tally.why}" if tally.refutes(case, alpha) else "")
            total = _larger(total, tally)
    apart = _Tally()
    for number, (first, second) in enumerate(random_pairs(case, random, seed)):
        apart.add(case, realised_by(path(case, first, second, (seed << 24) + number, kept=True)))
    failed = failed or (f"random pairs: {apart.why}" if apart.refutes(case, alpha) else "")
    total = _larger(total, apart)
    words = failed or f"{len(pairs)} worst and {apart.runs} random pairs; {_seen(case, pairs, seed)}"
    return Finding("N", case.name, _claim(case), _measured(case, total, bool(failed)), not failed, words)


def _enough(case: Case[Data], alpha: float) -> int:
    """So many runs that the claim is refuted if all of them exceed it, and some more."""
    allowed = failure(case)
    return min(40, 4 + math.ceil(math.log(alpha) / math.log(allowed))) if 0 < allowed < 1 else 1


def _tally(case: Case[Data], pair: tuple[Data, Data], runs: int, seed: int, shrink: float = 1.0) -> _Tally:
    tally = _Tally()
    for run in range(runs):
        tally.add(case, realised_by(path(case, *pair, (seed << 16) + run, shrink, kept=True)))
    return tally


def _seen(case: Case[Data], pairs: list[tuple[Data, Data]], seed: int) -> str:
    """Whether this layer would see noise that is a fifth smaller, or a sensitivity that is a fifth too small."""
    if not case.parts or failure(case) >= 1:
        return "walks only"
    for one, two in pairs:
        for pair in ((one, two), (two, one)):
            if 2 * _tally(case, pair, _TRIES, seed + 1, 0.8).exceeded > _TRIES:
                return "noise 20% smaller is seen"
    return "noise 20% smaller is not seen here"


def _larger(one: _Tally, two: _Tally) -> _Tally:
    epsilon = max(one.epsilon, two.epsilon)
    both = one.runs + two.runs, one.exceeded + two.exceeded
    return _Tally(*both, max(one.mu_squared, two.mu_squared), epsilon, one.why or two.why)


def _claim(case: Case[Data]) -> str:
    if not case.parts:
        return "the same walk on all neighbours"
    often = f", but for {at_most(failure(case))} of runs" if failure(case) else ""
    return f"mu <= {_root(case.cost.mu_squared)}, epsilon <= {at_most(case.cost.epsilon, 6)}{often}"


def _measured(case: Case[Data], total: _Tally, failed: bool) -> str:
    """How many runs exceed the claim, and the most that the others give away."""
    exceeded = f"{total.exceeded} of {total.runs} runs exceed it"
    if not case.parts or failed:
        return exceeded
    return f"mu {_root(total.mu_squared)}, epsilon {at_most(total.epsilon, 6)}; {exceeded}"


def _root(square: Fraction) -> str:
    return at_most(root_up(square), 6)
