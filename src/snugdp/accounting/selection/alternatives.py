"""Which way to the best candidate is cheapest: a random number of hidden runs, or all candidates composed.

Statements: selection.proof.md, section "Routes".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from snugdp.accounting import composition
from snugdp.accounting import gaussian as gauss
from snugdp.accounting.gaussian import nonnegative, probability
from snugdp.accounting.selection import calibrate
from snugdp.accounting.selection.laws import NAMES, best_tried, expected_quantile, mean
from snugdp.accounting.selection.run_counts import Law
from snugdp.accounting.selection.tradeoff_curves import Parts
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, readings, typed_down

_HALVINGS = 40


@dataclass(frozen=True)
class Route:
    """One way to a winner: what each run may spend, and how good the winner is to be expected.

    ``scale`` is the Gaussian mu of a run, or the scale of the family that was asked about; rounded down.
    ``quantile`` is the expected quantile of the winner among all runs, ``best_tried`` the probability that the best
    candidate is tried at all, ``runs`` how many runs there are on average.
    """

    name: str
    scale: float
    runs: float
    quantile: float
    best_tried: float
    law: Law | None = None


def routes(
    epsilon: Real,
    delta: Real,
    candidates: int,
    *,
    mean_runs: Real | None = None,
    laws: tuple[str | Law, ...] = ("geometric", "logarithmic", "poisson"),
    failure: Real = 0,
    family: Callable[[Fraction], Parts] | None = None,
    most: float = 100.0,
) -> tuple[Route, ...]:
    """Every route, with what it leaves to a run out of a total budget: selection by each law, and composition.

    ``mean_runs`` is the number of candidates if not given. ``family(scale)`` gives the cost of a run, which grows with
    the scale; without it a run is Gaussian with a failure mass of ``failure``. Composing all candidates releases
    all of them, so it needs scores that are public; then the best is found for certain.

    >>> [(route.name, round(route.scale, 3)) for route in routes(1, "1e-6", 3, laws=("geometric",))]
    [('geometric', 0.193), ('compose', 0.137)]
    """
    if candidates < 1:
        raise ValueError("there must be at least one candidate")
    level, goal = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    lost = probability(failure, "failure")
    runs = max(candidates, 2) if mean_runs is None else mean_runs
    found = []
    for item in laws:
        law = NAMES[item](runs) if isinstance(item, str) else item
        if family is None:
            scale = calibrate.mu(law, level, goal, failure=lost)
        else:
            scale = calibrate.largest(family, law, level, goal, most=most)
        quantile, tried = expected_quantile(law), best_tried(law, candidates)
        found.append(Route(law.name, scale, mean(law), quantile, tried, law))
    if family is None:
        together = _composed_gaussian(level, goal - candidates * lost, candidates)
    else:
        together = _composed(family, (level, goal), candidates, most)
    return *found, Route("compose", together, float(candidates), candidates / (candidates + 1), 1.0)


def _composed_gaussian(epsilon: Fraction, delta: Fraction, candidates: int) -> float:
    """The largest mu at which so many Gaussian runs together fit."""
    if delta <= 0:
        return 0.0
    root = balls.above(lambda: arb(candidates).sqrt())
    return typed_down(Fraction(gauss.mu(epsilon, delta)) / Fraction(root))


def _composed(
    family: Callable[[Fraction], Parts], budget: tuple[Fraction, Fraction], candidates: int, most: float
) -> float:
    """The largest scale at which all candidates together fit."""

    def fits(scale: float) -> bool:
        return _fit(family(max(readings(scale))), candidates, budget)

    return most if fits(most) else roots.bisect(fits, 0.0, most, _HALVINGS)[0]


def _fit(cost: Parts, candidates: int, budget: tuple[Fraction, Fraction]) -> bool:
    return composition.at_most(
        mu_squared=candidates * cost.mu_squared,
        pure=candidates * cost.epsilon,
        failure=candidates * cost.delta,
        variation=candidates * cost.variation,
        atoms=candidates * cost.atoms,
        epsilon=budget[0],
        delta=budget[1],
    )
