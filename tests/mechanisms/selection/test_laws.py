"""The exact law of what a selection releases, on tiny mechanisms: within the claim, in both orders, under any score.

The laws of K are those of the books, and the winner's law is summed over K: nothing comes from the accounting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from snugdp import Budget, Cost, Plan, Selection
from snugdp.accounting import gaussian
from tests.accounting.hockey import hockey_stick
from tests.accounting.selection.selected import by_the_books
from tests.effort import often, repeated, sampled
from tests.mechanisms.selection.test_select import LAWS, Script, Told, law_named, paid, value_of
from tests.plans import plan_of

Floats = NDArray[np.float64]
BUDGET, MEAN = Budget(1, 0.05), 4
_FAR = 4000


@cache
def masses(name: str) -> Floats:
    """P(K = 0), P(K = 1), ... as far as a float can tell."""
    law = law_named(name, MEAN)
    found = np.array([by_the_books(law, k) for k in range(_FAR)])
    return found[: int(np.searchsorted(np.cumsum(found), 1 - 1e-12)) + 2]


def winners(counts: Floats, p: Floats, rank: Sequence[float] | Floats) -> Floats:
    """The law of the winner, and of no winner as the last entry; outcomes of rank minus infinity are refusals."""
    levels, place = np.unique(np.asarray(rank), return_inverse=True)
    mass = np.bincount(place, weights=p, minlength=len(levels))
    upto = np.minimum(np.cumsum(mass), 1.0)
    some = counts.copy()
    some[0] = 0.0
    reached = np.polynomial.polynomial.polyval(upto, some)  # P(K > 0 and all runs up to this level)
    won = np.diff(np.concatenate([[0.0], reached]))
    share = np.divide(p, mass[place], out=np.zeros_like(p), where=mass[place] > 0)
    result = np.append(won[place] * share, counts[0])
    refused = np.append(np.isneginf(np.asarray(rank)), False)
    result[-1] += result[refused].sum()
    result[refused] = 0.0
    return result


def cut(counts: Floats, most: int, *, leak: bool = False) -> Floats:
    """What is above the cut is no run at all; or, for the leak, as many runs as the cut allows."""
    kept = counts.copy()
    rest = kept[most + 1 :].sum()
    kept[most + 1 :] = 0
    kept[most if leak else 0] += rest
    return np.trim_zeros(kept, "b")


def test_the_code_has_the_law_that_is_attacked_here() -> None:
    """Every sequence of up to four runs through ``Selection``, weighed: the winner's law by enumeration."""
    chances = {0.0: Fraction(1, 2), 1.0: Fraction(1, 3), None: Fraction(1, 6)}
    counts = {0: Fraction(1, 10), 1: Fraction(2, 5), 2: Fraction(1, 5), 3: Fraction(1, 5), 4: Fraction(1, 10)}
    made = Selection([0, 1], Told([0.0]), value_of, budget=BUDGET, route="stop")
    found: dict[Any, Fraction] = defaultdict(Fraction)
    for k, chance in counts.items():
        for values in product(chances, repeat=k):
            object.__setattr__(made, "run", Told(list(values) or [0.0]))
            outcome = made.release(noise=Script(k, iter([0, 1, 0, 1])))
            weight = chance
            for value in values:
                weight *= chances[value]
            found[None if outcome.value is None else outcome.value.score] += weight
    law = winners(np.array([float(c) for c in counts.values()]), np.array([0.5, 1 / 3, 1 / 6]), [0, 1, -np.inf])
    assert [float(found[key]) for key in (0.0, 1.0)] == pytest.approx(law[:2].tolist())
    assert float(found[None]) == pytest.approx(law[-1])


def extreme(budget: Budget) -> tuple[Floats, Floats]:
    """The worst pair of an (epsilon, delta)-DP run: randomised response, and a certain sign with probability delta."""
    w, d = np.exp(float(budget.epsilon)), float(budget.delta)
    p = np.array([d, (1 - d) * w / (1 + w), (1 - d) / (1 + w), 0.0])
    return p, p[::-1].copy()


def worst_order(counts: Floats, budget: Budget) -> float:
    """The largest delta at epsilon 1 of the worst pair, over all orders of its outcomes."""
    p, q = extreme(budget)
    return max(
        hockey_stick(winners(counts, a, order), winners(counts, b, order), 1.0)
        for order in permutations(range(4))
        for a, b in ((p, q), (q, p))
    )


def pairs(generator: np.random.Generator, budget: Budget) -> tuple[Floats, Floats]:
    """The worst pair, or what a random channel makes of it; two proposals, shown with the outcome."""
    parts = []
    for _ in range(2):
        p, q = extreme(budget)
        if generator.uniform() < 0.6:
            channel = generator.dirichlet(np.full(3, 0.2), size=4)
            p, q = p @ channel, q @ channel
        parts.append((p, q) if generator.uniform() < 0.5 else (q, p))
    return np.concatenate([p / 2 for p, _ in parts]), np.concatenate([q / 2 for _, q in parts])


def ranks(generator: np.random.Generator, p: Floats, q: Floats) -> list[float]:
    """Scores with ties, some of them along the likelihood ratio, some outcomes refused."""
    kind = generator.integers(4)
    ratio = np.log((p + 1e-12) / (q + 1e-12))
    order = [
        generator.integers(0, 4, len(p)).astype(float),
        ratio,
        -ratio,
        generator.permutation(len(p)).astype(float),
    ][kind]
    if kind in {1, 2}:
        order[np.argmin(ratio)] = 1e9 * (generator.uniform() < 0.5) + order[np.argmin(ratio)]
    order[generator.uniform(size=len(p)) < 0.15] = -np.inf
    return [float(value) for value in order]


@cache
def run_budget(name: str) -> Budget:
    made = Selection([0, 1], Told([0.0]), value_of, budget=BUDGET, law=law_named(name, MEAN), route="stop")
    return made.run_budget


def excess(name: str, counts: Floats, trials: int = often(150, 400)) -> float:
    """The largest exact delta at the claimed epsilon, over random runs and orders, less the claimed delta."""
    generator, worst = np.random.default_rng(11), -1.0
    for _ in range(trials):
        p, q = pairs(generator, run_budget(name))
        order = ranks(generator, p, q)
        a, b = winners(counts, p, order), winners(counts, q, order)
        worst = max(worst, hockey_stick(a, b, 1.0), hockey_stick(b, a, 1.0))
    return worst - float(BUDGET.delta)


@sampled(16)
@repeated
@pytest.mark.parametrize("most", [3, 12, _FAR])
@pytest.mark.parametrize("name", LAWS)
def test_no_order_of_scores_breaks_the_claim(name: str, most: int) -> None:
    assert excess(name, cut(masses(name), most)) <= 1e-9


@sampled(3)
@pytest.mark.parametrize("name", LAWS)
def test_the_attack_comes_close(name: str) -> None:
    """Had the runs a third more to spend, the claim would be false: the test can fail."""
    generous = run_budget(name)
    more = Budget(generous.epsilon * Fraction(4, 3), generous.delta * Fraction(4, 3))
    assert worst_order(masses(name), more) > float(BUDGET.delta)


def test_a_number_of_runs_that_is_not_random_breaks_the_claim() -> None:
    fixed = np.zeros(41)
    fixed[40] = 1.0
    assert excess("geometric", fixed) > 0.05
    assert excess("geometric", cut(fixed, 4, leak=True)) > 0


def test_a_cut_that_runs_on_breaks_the_claim() -> None:
    """min(K, T) in place of nothing: many expected runs, cut early, are nearly a fixed number."""
    law = law_named("geometric", 400)
    made = Selection([0, 1], Told([0.0]), value_of, budget=Budget(1, 1e-6), law=law, route="stop", most_runs=8)
    geometric = np.concatenate([[0.0], np.asarray(stats.geom.pmf(np.arange(1, 200), 1 / 400))])
    assert worst_order(cut(geometric, 8), made.run_budget) <= 1e-6
    assert worst_order(cut(geometric, 8, leak=True), made.run_budget) > 1e-3


class Gaussian:
    """A run with a plan: mu of its budget."""

    def __call__(self, proposal: Any, budget: Budget, ledger: Any) -> Any:
        return paid(0.0, budget.cost, ledger)

    def plan(self, proposal: Any, budget: Budget) -> Plan:
        return plan_of("a run", Cost(mu=gaussian.mu(budget.epsilon, budget.delta), delta=budget.delta / 10))


@sampled(6)
@repeated
@pytest.mark.parametrize("name", LAWS)
def test_gaussian_runs_under_adversarial_scores(name: str) -> None:
    """The line in cells, and a sure sign with the failure's probability; the lowest ratios on top, then the highest."""
    made = Selection([0, 1], Gaussian(), value_of, budget=BUDGET, law=law_named(name, MEAN), route="stop")
    base = made._runs.base
    mu, failure = base.mu, float(base.delta)
    edges = np.concatenate([[-np.inf], np.linspace(-5, 5 + mu, 200), [np.inf]])
    p, q = (np.append((1 - failure) * np.diff(stats.norm.cdf(edges - shift)), [0.0, 0.0]) for shift in (mu, 0.0))
    p[-1], q[-2] = failure, failure
    worst = 0.0
    for top in np.linspace(0, 0.6, often(4, 9)):
        for a, b in ((p, q), (q, p)):
            ratio = np.log((a + 1e-300) / (b + 1e-300))
            lowest = np.cumsum(a[np.argsort(ratio)]) <= top
            order = ratio.copy()
            order[np.argsort(ratio)[lowest]] += 1e6
            for rank in (order, ratio, -ratio):
                first, second = winners(masses(name), a, rank), winners(masses(name), b, rank)
                worst = max(worst, hockey_stick(first, second, 1.0), hockey_stick(second, first, 1.0))
    assert 0.2 * 0.05 < worst <= 0.05
