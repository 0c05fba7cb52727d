"""Wrong accounts: calibration, composition, conversions, prices of selection."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb

from snugdp import recipe
from snugdp.accounting import discrete, gaussian, renyi
from snugdp.accounting.objective import linear
from snugdp.accounting.selection import theorems, tradeoff_curves
from snugdp.accounting.selection.run_counts import FLOATS
from snugdp.audit.mutants.base import Changes, Topic, everywhere
from snugdp.audit.mutants.checks import Near
from snugdp.audit.mutants.vectors import Vector
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.order_statistics import stable
from snugdp.mechanisms.selection import routes
from snugdp.mechanisms.support import sparse
from snugdp.propose.plan import Plan

mutant = Topic("accounting")


@mutant("classical Gaussian constant", "X", Vector("calibration"), quick=True)
def _() -> Changes:
    """Noise is calibrated by sqrt(2 log(1.25/delta))/epsilon at every epsilon: proved up to 1, false from 9 on."""

    def mu(epsilon: Any, delta: Any) -> float:
        return float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta))) if delta else 0.0

    return [(gaussian, "mu", mu)]


@mutant("calibration rounded up", "X", Vector("calibration"))
def _() -> Changes:
    """The largest mu is rounded up to three digits."""
    exact = gaussian.mu
    return [(gaussian, "mu", lambda epsilon, delta: math.ceil(exact(epsilon, delta) * 1000) / 1000)]


@mutant("a part of a plan dropped", "N", Near("linear: adassp", 2, 10))
def _() -> Changes:
    """A plan costs as much as its most expensive step."""
    return [(Plan, "cost", property(lambda self: max((step.cost for step in self.steps), key=lambda c: c.mu_squared)))]


@mutant("failure dropped in a sum", "X", Vector("composition"))
def _() -> Changes:
    """Of two costs the larger delta counts, and not the sum."""
    add = Cost.__add__

    def less(self: Cost, other: Any) -> Any:
        whole = add(self, other)
        if isinstance(other, Cost):
            object.__setattr__(whole, "delta", max(self.delta, other.delta))
        return whole

    return [(Cost, "__add__", less)]


@mutant("mu squared by the larger", "X", Vector("composition"))
def _() -> Changes:
    """Of two Gaussian parts the larger counts, as if both had one noise."""
    add = Cost.__add__

    def less(self: Cost, other: Any) -> Any:
        whole = add(self, other)
        if isinstance(other, Cost):
            object.__setattr__(whole, "mu_squared", max(self.mu_squared, other.mu_squared))
        return whole

    return [(Cost, "__add__", less)]


@mutant("sums in floats", "X", Vector("composition"))
def _() -> Changes:
    """Epsilons are added as floats: a small one is lost beside a large one."""
    add = Cost.__add__

    def floats(self: Cost, other: Any) -> Any:
        whole = add(self, other)
        if isinstance(other, Cost):
            object.__setattr__(whole, "epsilon", Fraction(float(self.epsilon) + float(other.epsilon)))
        return whole

    return [(Cost, "__add__", floats)]


@mutant("the whole epsilon after the test", "ND", Near("median", 6, 20))
def _() -> Changes:
    """The release spends all of epsilon, though the test has spent a part of it."""

    def scale(self: stable.Stable[Any]) -> Fraction:
        return self.sensitivity / self.budget.epsilon if self.sensitivity else Fraction(0)

    return [(stable.Stable, "scale", property(scale))]


@mutant("both halves at full price", "X", Vector("promises"))
def _() -> Changes:
    """The release after a test is planned with all of epsilon, and the plan says so: more than the budget."""
    return [(stable.Stable, "epsilon_release", property(lambda self: self.budget.epsilon))]


@mutant("limits of a test not split", "N", Near("framework: statistics, epsilon", 8, 0))
def _() -> Changes:
    """A test by statistics lets pass what costs the whole budget, and claims half of it."""
    split = recipe._split

    def whole(budget: Any, failure: Any, measure: Any, share: Any) -> Any:
        mu, limit = split(budget, failure, measure, share)
        return mu, 4 * limit

    return [(recipe, "_split", whole), (recipe, "_spent", lambda m, limit, budget: Cost(epsilon=budget.epsilon / 2))]


@mutant("discrete Gaussian as if it were smooth", "X", Vector("thresholds"))
def _() -> Changes:
    """Discrete Gaussian noise is charged as 1/sigma, which is true of the continuous one."""
    return [(discrete, "discrete_gaussian_mu", lambda sigma, sensitivity=1: float(1 / Fraction(sigma)))]


@mutant("Renyi conversion at order for order - 1", "X", Vector("renyi"))
def _() -> Changes:
    """The conversion divides the logarithm of delta by the order, and not by the order less one."""

    def epsilon(alpha: Any, rho: Any, delta: Any) -> float:
        order = float(alpha)
        return max(0.0, float(rho) + (-math.log(float(delta)) - math.log(order)) / order + math.log1p(-1 / order))

    return [(renyi, "epsilon", epsilon)]


@mutant("determinant forgotten", "X", Vector("objective"))
def _() -> Changes:
    """The density of a perturbed minimiser is taken without its Jacobian."""
    return everywhere(linear.log_det, lambda kappa: Fraction(0))


@mutant("determinant of a smooth loss forgotten", "X", Vector("objective"))
def _() -> Changes:
    """The loss from which on a smooth loss pays nothing for its determinant is set to 0."""
    return [(linear, "critical_loss", lambda m_squared, kappa: Fraction(0))]


@mutant("selection for the price of one run", "X", Vector("selection"))
def _() -> Changes:
    """The best of many runs is charged like one of them."""
    balls = theorems.Sum.balls

    def one(self: theorems.Sum, epsilon: Fraction) -> arb:
        return balls(self, epsilon) / arb(float(self.law.mean_in(FLOATS)))

    return [(theorems.Sum, "balls", one)]


@mutant("failures of runs not multiplied", "X", Vector("selection"))
def _() -> Changes:
    """The failure probability of a run is charged once, however many runs there are."""
    of_cost = tradeoff_curves.of_cost

    def whole(cost: Any, sticks: int | None = None) -> Any:
        return of_cost(Cost(mu_squared=cost.mu_squared, epsilon=cost.epsilon, atoms=cost.atoms), sticks)

    return [(tradeoff_curves, "of_cost", whole)]


@mutant("every proposal at full price", "N", Near("selection: proposals of an estimator, each once", 2, 4))
def _() -> Changes:
    """Every proposal is tried with all of the budget, and the plan claims it once."""
    return [(routes, "times", lambda cost, k: cost)]


@mutant("first stage for free", "N", Near("sparse linear: gaussian", 3, 10))
def _() -> Changes:
    """What chooses the columns is not in the plan of the fit behind it."""

    def plan(self: sparse.SparseMethod) -> Plan:
        second = self._second
        return Plan("A sparse fit", sparse.THEOREM, second.steps, second.proposal, second.forecast, self.budget)

    return [(sparse.SparseMethod, "plan", plan)]
