"""Layer X: numbers of the library beside the same numbers by textbook formulas, quadrature and search.

Whole walks have slack, behind which a calibration, a margin at a tiny failure probability or a price can be wrong.
Nothing here calls what it checks on both sides: the reference is floats from numpy and scipy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import snugdp
from snugdp.accounting import discrete, gaussian, renyi, selection
from snugdp.accounting.output import posterior
from snugdp.audit.finding import Finding
from snugdp.audit.mutants import vectors_models
from snugdp.certify.statistics import Statistic, gaussian_bounds
from snugdp.core.guarantee import Budget, Cost

_SLACK = 1e-9
Numbers = Iterator[tuple[str, float, float]]  # what, the library's number, what it must not be below


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return float(stats.norm.cdf(a) - math.exp(epsilon + stats.norm.logcdf(b)))


def mixed_delta(mu: float, pure: float, epsilon: float) -> float:
    """Of a Gaussian release and randomised response together."""
    if not mu:
        return max(0.0, (1 - math.exp(epsilon - pure)) / (1 + math.exp(-pure)))
    w = 1 / (1 + math.exp(-pure))
    high, low = gaussian_delta(mu, epsilon - pure), gaussian_delta(mu, epsilon + pure)
    return w * high + (1 - w) * low


def calibration() -> Numbers:
    """The largest mu for a budget, small and large epsilons: its exact delta must not exceed the budget's."""
    for epsilon, delta in itertools.product((0.3, 1.0, 2.0, 10.0, 20.0), (1e-6, 0.05)):
        mu = gaussian.mu(epsilon, delta)
        yield f"delta of mu({epsilon:g}, {delta:g})", delta * (1 + 1e-6), gaussian_delta(mu, epsilon)
        yield f"delta(1.5 mu, {epsilon:g})", gaussian.delta(1.5 * mu, epsilon), gaussian_delta(1.5 * mu, epsilon)


def promises() -> Numbers:
    """What plans cost, at the epsilon of their budgets: not more than the delta of these."""
    for epsilon, delta in ((1.0, 1e-6), (12.0, 1e-6)):
        given: Any = {"epsilon": epsilon, "delta": delta, "x_norm": 1}
        models: dict[str, Any] = {
            "adassp": snugdp.LinearRegression(method="adassp", y_bound=1, **given),
            "output": snugdp.LinearRegression(method="output", y_bound=1, **given),
            "gauss": snugdp.PCA(1, method="gauss", **given),
            "projector": snugdp.PCA(1, method="projector", **given),
        }
        queries: dict[str, Any] = {
            "median": snugdp.Median(bounds=(0, 1), beta=0.1, epsilon=epsilon, delta=delta),
            "vote": snugdp.Vote(candidates=["a", "b"], law="gaussian", epsilon=epsilon, delta=delta),
        }
        costs = {name: model.plan(n_features=3).cost for name, model in models.items()}
        costs |= {name: query.plan().cost for name, query in queries.items()}
        for name, cost in costs.items():
            spent = float(cost.delta) + mixed_delta(math.sqrt(cost.mu_squared), float(cost.epsilon), epsilon)
            yield f"{name} at epsilon {epsilon:g}", delta * (1 + 1e-6), spent


def margins() -> Numbers:
    """Margins of bounds at failure probabilities as they are used: the tail behind them."""
    yield from vectors_models.margins()
    for failure in (1e-6, 0.05):
        rows = Statistic[int]("rows", float, 1, "lower", (0, 1e9))
        parts = gaussian_bounds((rows, rows_upper()), mu=1, delta=failure, neighbours=snugdp.Neighbours.ADD_REMOVE)
        yield f"failures of two bounds at {failure:g}", failure * (1 + 1e-9), float(sum(parts.failures))
        threshold = gaussian.threshold(1, failure)
        yield f"Gaussian tail at {failure:g}", failure * (1 + 1e-6), float(stats.norm.sf(threshold))


def rows_upper() -> Statistic[int]:
    """Another statistic."""
    return Statistic("others", float, 1, "upper", (0, 1e9))


def thresholds() -> Numbers:
    """Thresholds of integer and real noise: how often uncertified data pass."""
    for epsilon, failure in itertools.product((0.1, 1.0), (1e-6, 0.05)):
        tau = discrete.laplace_threshold(epsilon, failure)
        yield f"Laplace tail ({epsilon:g}, {failure:g})", failure * (1 + 1e-6), math.exp(-epsilon * tau) / 2
        whole = discrete.discrete_laplace_threshold(epsilon, failure).tau
        passing = math.exp(-epsilon * whole) / (1 + math.exp(-epsilon))
        yield f"discrete Laplace tail ({epsilon:g}, {failure:g})", failure * (1 + 1e-6), passing
    z = np.arange(-200, 201)
    for sigma in (1.0, 2.0, 8.0):
        weights = np.exp(-(z**2) / (2 * sigma**2))
        weights /= weights.sum()
        tau = discrete.discrete_gaussian_threshold(sigma, 1e-6).tau
        yield f"discrete Gaussian tail, {sigma:g}", 1e-6 * (1 + 1e-6), float(weights[z >= tau].sum())
        shifted = np.roll(weights, 1)
        for epsilon in (0.1 / sigma, 0.5 / sigma, 1 / sigma):
            exact = float(np.maximum(shifted - math.exp(epsilon) * weights, 0).sum())
            claimed = gaussian_delta(discrete.discrete_gaussian_mu(sigma), epsilon)
            yield f"discrete Gaussian at {epsilon:.3g}, {sigma:g}", claimed + 1e-12, exact


def composition() -> Numbers:
    """Costs of several releases: each part of the sum, and its delta."""
    parts = [Cost(mu="0.3", delta="0.001"), Cost(mu="0.4", epsilon="0.1"), Cost(epsilon="0.2", delta="0.002")]
    whole = parts[0] + parts[1] + parts[2]
    yield "mu squared", float(whole.mu_squared), 0.25
    yield "epsilon", float(whole.epsilon), 0.3
    yield "delta", float(whole.delta), 0.003
    for epsilon in (0.5, 1.0):
        yield f"delta at {epsilon:g}", whole.delta_at(epsilon), 0.003 + mixed_delta(0.5, 0.3, epsilon)
    many = sum((Cost(epsilon="0.1") for _ in range(10)), Cost())
    yield "ten tenths", float(many.epsilon), 1.0
    yield "ten tenths fit", float(many.fits(Budget(1))), 1.0
    yield "and no more", float(not (many + Cost(epsilon="1e-17")).fits(Budget(1))), 1.0


def selections() -> Numbers:
    """The best of a hidden number of runs, each a coin that fell 1 with another chance on the neighbour."""
    for mean, pure, failure in ((3, 0.2, 0.0), (10, 0.1, 0.0), (30, 0.05, 0.0), (10, 0.1, 0.002), (30, 1e-9, 0.001)):
        law = selection.geometric(mean)
        stop = 1 / mean
        high = 1 / (1 + math.exp(-pure)) if pure > 1e-6 else 0.5

        def best(p: float, stop: float = stop) -> float:
            """The chance that the best of the runs is 1, if a run is with chance p."""
            return 1 - stop * (1 - p) / (1 - (1 - stop) * (1 - p))

        # With the failure a run shows something that cannot be on the other data, and the score prefers it.
        sides = [(best(high), best(1 - high)), (1 - best(1 - high), 1 - best(high))]
        for epsilon in (0.0, pure, 2 * pure):
            exact = max(p - math.exp(epsilon) * q for p, q in sides)
            exact = max(exact, best(failure)) if failure else exact
            cost = Cost(epsilon=pure, delta=failure)
            yield f"{mean} runs of {pure:g}, {failure:g} at {epsilon:.2g}", selection.delta(cost, law, epsilon), exact


def renyis() -> Numbers:
    """Conversions of Gaussian curves, and Gaussian noise whose deviation moves, by quadrature."""
    for mu, delta in ((0.5, 1e-5), (1.0, 1e-3)):
        epsilon = renyi.best_epsilon(partial(_gaussian_curve, mu), delta)
        yield f"delta of mu {mu:g} at the converted epsilon", delta * (1 + 1e-6), gaussian_delta(mu, epsilon)
        direct = renyi.epsilon(8, 4 * mu**2, delta)
        yield f"the same at order 8, mu {mu:g}", delta * (1 + 1e-6), gaussian_delta(mu, direct)
    for order, beta, sigma in ((8, 0.05, 6.0), (22, 0.49 / 22, 9.8), (60, 0.2 / 42.96, 15.0), (80, 0.2 / 42.96, 15.0)):
        # The smaller of the two sensitivities bounds the move, whichever side it is on.
        sides = [(min(1.0, by), by) for by in (math.exp(-beta), math.exp(beta))]
        exact = max(normal_divergence(move, sigma, sigma * by, order) for move, by in sides)
        yield f"smooth noise at order {order:g}", renyi.smooth_gaussian(order, str(beta), str(sigma)), exact


def _gaussian_curve(mu: float, order: Fraction) -> float:
    return renyi.gaussian(order, mu)


def normal_divergence(mean: float, one: float, other: float, order: float) -> float:
    """The Renyi divergence of N(0, one^2) from N(mean, other^2); by its closed form."""
    mixed = order * other**2 + (1 - order) * one**2
    if mixed <= 0:
        return math.inf
    logs = math.log(other / one) + math.log(other**2 / mixed) / (2 * (order - 1))
    return logs + order * mean**2 / (2 * mixed)


def choices() -> Numbers:
    """One Gumbel draw for a Gaussian price: a score rises and all others fall."""
    from snugdp.mechanisms.support.peeling import gaussian_rate

    for mu, even in itertools.product((0.3, 1.0), (0.2, 1.0, 3.0)):
        rate = float(gaussian_rate(Fraction(mu) ** 2))
        p, q = (1 / (1 + even * math.exp(sign * rate)) for sign in (-1, 1))
        for epsilon in (0.0, mu / 2, mu):
            exact = max(p - math.exp(epsilon) * q, (1 - q) - math.exp(epsilon) * (1 - p))
            yield f"one of several, mu {mu:g} at {epsilon:g}", gaussian_delta(mu, epsilon) + 1e-12, exact


def sample() -> Numbers:
    """One posterior sample of one coefficient: rows (1, 1), one more row (1, -1), by quadrature over the sample."""
    yield from vectors_models.samples()


def residuals() -> Numbers:
    """How far log(B_y + B |theta|) and theta move when a row comes or goes, by search."""
    yield from vectors_models.residuals(posterior)


TABLES: dict[str, Callable[[], Numbers]] = {
    "calibration": calibration,
    "promises": promises,
    "margins": margins,
    "thresholds": thresholds,
    "composition": composition,
    "selection": selections,
    "renyi": renyis,
    "choices": choices,
    "posterior": sample,
    "ridge": residuals,
    "moments": vectors_models.moments,
    "projector": vectors_models.projectors,
    "objective": vectors_models.objectives,
    "labels": vectors_models.labels,
    "smooth votes": vectors_models.smooth_votes,
}


def vectors(only: tuple[str, ...] = ()) -> list[Finding]:
    """One finding for every table, or for those with these names."""
    return [_finding(name, table()) for name, table in TABLES.items() if name in only or not only]


@dataclass(frozen=True)
class Vector:
    """Layer X: one table."""

    name: str

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        return vectors((self.name,))


def _finding(name: str, numbers: Numbers) -> Finding:
    count, wrong = 0, list[str]()
    for what, ours, least in numbers:
        count += 1
        if not ours >= least - _SLACK * abs(least):
            wrong.append(f"{what}: {ours:.6g}, must not be below {least:.6g}")
    measured = f"{len(wrong)} of {count} are too small" if wrong else f"{count} numbers"
    return Finding("X", name, "not below the exact numbers", measured, not wrong and count > 0, "; ".join(wrong[:3]))
