"""The two ways to add up, attacked by whoever looks at every answer before choosing the next release."""

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import snugdp
from snugdp import Budget, BudgetExceededError, Cost, Ledger, MemoryLedger
from snugdp.accounting import gaussian
from snugdp.ledger.composition.filter import (
    Composition,
    Filter,
    Spent,
    announced_by,
    as_gaussian,
    counted,
    is_gaussian_of,
    satisfies,
)
from snugdp.numerics import balls
from tests.ledger.composition import games
from tests.ledger.composition.games import Values

ZERO = Spent(Cost(), Cost())
WAYS = ("addition", "tight", "both")


def coin(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The worst that is (epsilon, delta)-DP: a failure that tells all, or a coin; by probability in both worlds."""
    high, low = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return [
        (delta, 0.0),
        ((1 - delta) * high, (1 - delta) * low),
        ((1 - delta) * low, (1 - delta) * high),
        (0.0, delta),
    ]


def best(rule: Filter, menu: Sequence[tuple[str, str]], epsilon: float, rounds: int) -> float:
    """The largest delta of the whole transcript over all adaptive choices from the menu: an exhaustive tree."""

    @cache
    def value(spent: tuple[Fraction, Fraction], losses: tuple[float, ...], left: int) -> float:
        x = epsilon - sum(losses)
        most = max(0.0, 1 - math.exp(x))
        for e, d in menu if left else ():
            then = (spent[0] + Fraction(e), spent[1] + Fraction(d))
            before, total = (Cost(epsilon=one[0], delta=one[1]) for one in (spent, then))
            judged = rule.after(Spent(before, before), Spent(total, total))
            if not judged.covers(Spent(total, total)):
                continue
            after = 0.0
            for p, q in coin(float(Fraction(e)), float(Fraction(d))):
                if p:
                    seen = 1.0 if not q else value(then, tuple(sorted((*losses, math.log(p / q)))), left - 1)
                    after += p * seen
            most = max(most, after)
        return most

    return value((Fraction(0), Fraction(0)), (), rounds)


@pytest.mark.parametrize("budget", [("0.6", "0.05"), ("0.9", "0.1"), ("0.5", "0")])
def test_no_adaptive_choice_beats_addition(budget: tuple[str, str]) -> None:
    menu = [("0.3", "0.02"), ("0.2", "0"), ("0.1", "0.05"), ("0", "0.03"), ("0.5", "0.001")]
    rule = Filter.open(Budget(*budget), Composition.ADDITION)
    found = best(rule, menu, float(budget[0]), 4)
    assert found <= float(budget[1]) + 1e-12
    assert found >= 0.9 * float(budget[1])  # and nearly all of it can be had


def test_transcripts_of_random_policies_by_brute_force() -> None:
    """Every transcript of a policy, with its probability in both worlds: together they are within the budget."""
    chance = random.Random(5)
    budget, menu = Budget("1", "0.1"), [("0.5", "0.02"), ("0.25", "0.05"), ("0.75", "0"), ("0.1", "0.03")]
    rule = Filter.open(budget, Composition.ADDITION)
    for _ in range(40):
        policy: dict[tuple[int, ...], tuple[str, str]] = {}
        worlds: dict[tuple[int, ...], tuple[float, float, Cost]] = {(): (1.0, 1.0, Cost())}
        for _ in range(4):
            after: dict[tuple[int, ...], tuple[float, float, Cost]] = {}
            for seen, (p, q, spent) in worlds.items():
                e, d = policy.setdefault(seen, chance.choice(menu))
                total = spent + Cost(epsilon=e, delta=d)
                if not rule.covers(Spent(total, total)):
                    after[*seen, -1] = (p, q, spent)
                    continue
                for answer, (a, b) in enumerate(coin(float(e), float(d))):
                    after[*seen, answer] = (p * a, q * b, total)
            worlds = after
        assert sum(max(0.0, p - math.e * q) for p, q, _ in worlds.values()) <= 0.1 + 1e-12
        assert sum(max(0.0, q - math.e * p) for p, q, _ in worlds.values()) <= 0.1 + 1e-12


def test_either_of_two_rules_keeps_the_budget() -> None:
    """Gaussian and pure releases, three rounds, each chosen after looking: at most delta in all, and more than half."""
    budget = Budget(1, "0.01")
    rule = Filter.open(budget, Composition.BOTH)
    unit = Fraction(gaussian.mu(Fraction(1), Fraction("0.005"))).limit_denominator(1000)
    menu = [Cost(mu=unit * 9 / 10), Cost(mu=unit / 3), Cost(epsilon="0.5", delta="0.0025"), Cost(epsilon="0.4")]

    def value(judge: Filter, total: Spent, rounds: int) -> Any:
        best: Any = np.maximum(0.0, 1 - np.exp(games.GRID))
        for cost in menu if rounds else ():
            pair = counted(cost, None, budget)
            assert pair is not None
            then = Spent(total.composed + cost, total.announced + pair)
            after = judge.after(total, then)
            if after.covers(then):
                best = np.maximum(best, games.seen(cost, value(after, then, rounds - 1)))
        return best

    found = games.delta(value(rule, ZERO, 3), 1.0)
    assert 0.004 < found <= 0.01
    for delta, taken in (("0.005", True), ("0.0051", False)):  # neither way has more than half
        failure = Cost(delta=delta)
        assert rule.after(ZERO, Spent(failure, failure)).covers(Spent(failure, failure)) is taken


def test_a_rule_that_is_dead_stays_dead() -> None:
    """With both ways, a sequence that tight composition has refused is its own never again."""
    rule = Filter.open(Budget(1, "1e-6"), Composition.BOTH)
    large = Spent(Cost(mu=3), Cost(epsilon="0.1", delta="1e-8"))  # whatever it announced
    judged = rule.after(ZERO, large)
    assert judged.covers(large)
    assert judged.tight is not None
    assert not judged.tight.covers(large.composed)
    more = Spent(Cost(mu=3, epsilon="0.1"), Cost(epsilon="1.1"))
    assert not judged.after(large, more).covers(more)


def test_addition_takes_every_order_and_never_refuses_what_sums_to_the_budget() -> None:
    parts = [("0.5", "1e-7"), ("0.3", "2e-7"), ("0.1", "0"), ("0.1", "7e-7")]
    for order in itertools.permutations(parts):
        ledger = MemoryLedger(1, 1e-6)
        for e, d in order:
            gaussian_part = Cost(mu=gaussian.mu(Fraction(e), Fraction(d))) if d != "0" else Cost(epsilon=e)
            ledger.charge(gaussian_part, "a release", announced=Budget(e, d))
        assert ledger.spent == Cost(epsilon=1, delta="1e-6")
        assert str(ledger.remaining) == "epsilon 0 and delta 0"
        for more in (Cost(epsilon="1e-9"), Cost(delta="1e-12")):
            with pytest.raises(BudgetExceededError, match="epsilon 0 and delta 0"):
                ledger.charge(more, "one too many")


def test_what_is_announced_must_be_true(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", dataset="x", budget=Budget(1, 1e-6)) as book:
        for ledger in (MemoryLedger(1, 1e-6), MemoryLedger(1, 1e-6, composition="tight"), book):
            for lie in (Budget("0.1", "1e-7"), Budget("0.5")):
                with pytest.raises(ValueError, match="not private by what it announces"):
                    ledger.charge(Cost(mu="0.2"), "x", announced=lie)
            with pytest.raises(TypeError, match="announced"):
                ledger.charge(Cost(mu="0.2"), "x", announced=1)  # type: ignore[arg-type]
            assert ledger.spent == Cost()


def test_a_pure_cost_counts_with_its_own_parts_and_a_gaussian_one_with_a_derived_pair() -> None:
    budget = Budget(1, "1e-6")
    assert counted(Cost(epsilon="0.5"), Cost(epsilon=1, delta="1e-7"), budget) == Cost(epsilon="0.5")
    assert counted(Cost(delta="1e-7"), None, budget) == Cost(delta="1e-7")
    for cost in (Cost(mu="0.1"), Cost(mu="1e-90"), Cost(mu="0.05", epsilon="0.1", delta="1e-7")):
        pair = announced_by(cost, budget)
        assert pair is not None
        assert satisfies(cost, pair)
        assert pair.delta == cost.delta + Fraction(1, 10**8)
    assert announced_by(Cost(mu=1), Budget(1)) is None
    with pytest.raises(BudgetExceededError):
        MemoryLedger(1).charge(Cost(mu=1), "a Gaussian release without any delta")


def test_a_reservation_composes_what_it_holds(tmp_path: Path) -> None:
    """Ten Gaussian releases, reserved at once, cost much less than the sum of what each would announce."""
    with Ledger.open(tmp_path / "l", dataset="x", budget=Budget(1, 1e-6)) as ledger:
        work = ledger.reserve([Cost(mu="0.05")] * 10, "ten tables")
        assert ledger.spent.epsilon < Fraction("0.8") < 10 * announced_by(Cost(mu="0.05"), Budget(1, 1e-6)).epsilon  # type: ignore[union-attr]
        assert ledger.spent.delta == Fraction(1, 10**7)
        for _ in range(10):
            work.charge(Cost(mu="0.05"), "a table")
        with pytest.raises(BudgetExceededError):
            work.charge(Cost(mu="0.05"), "another")


def test_parts_count_with_the_largest_and_partitions_add_up(tmp_path: Path) -> None:
    for way in WAYS:
        with Ledger.open(tmp_path / way, dataset="x", budget=Budget(1, 1e-6), composition=way) as ledger:
            ledger.partition("region", ["north", "south"])
            ledger.partition("decade", ["young", "old"])
            for part, spent in (("north", "0.2"), ("south", "0.3")):
                ledger.part("region", part).charge(Cost(epsilon=spent), "a count")
            for part in ("old", "young"):
                ledger.part("decade", part).charge(Cost(epsilon="0.1"), "a count")
            assert ledger.spent == Cost(epsilon="0.4")  # 0.3 and 0.1: a row may be in the south and young
            ledger.verify()


def test_the_way_is_chosen_once(tmp_path: Path) -> None:
    for way in WAYS:
        with Ledger.open(tmp_path / way, dataset="x", budget=Budget(1), composition=way) as ledger:
            assert ledger.composition is Composition(way)
        with Ledger.open(tmp_path / way) as ledger:
            assert ledger.composition is Composition(way)
        with pytest.raises(ValueError, match="has composition="):
            Ledger.open(tmp_path / way, composition="both" if way != "both" else "tight")
    with pytest.raises(ValueError, match="composition must be"):
        MemoryLedger(1, composition="sum")
    with pytest.raises(ValueError, match="caps"):
        Ledger.open(tmp_path / "caps", dataset="x", budget=Cost(epsilon=1), composition="addition")
    with Ledger.open(tmp_path / "caps", dataset="x", budget=Cost(epsilon=1)) as ledger:
        assert ledger.composition is Composition.TIGHT


def test_releases_that_sum_to_the_budget_are_taken_in_both_orders() -> None:
    """A tested median and a fit: what tight composition refuses in one order, for want of delta."""
    ages, x = [40] * 4000, np.linspace(-0.7, 0.7, 400).reshape(-1, 1)

    def median(ledger: Any, epsilon: float, delta: float) -> None:
        snugdp.median(ages, bounds=(0, 120), epsilon=epsilon, delta=delta, beta=5, ledger=ledger)

    def fit(ledger: Any, delta: float) -> None:
        snugdp.LinearRegression(1, delta, method="adassp", x_norm=1, y_bound=1, ledger=ledger).fit(x, 0.5 * x[:, 0])

    for order in ((0, 1), (1, 0)):
        ledger = MemoryLedger(2, 2e-6)
        for place in order:
            fit(ledger, 1e-6) if place else median(ledger, 1, 1e-6)
        assert str(ledger.remaining) == "epsilon 0 and delta 0"
    ledger = MemoryLedger(3, 1e-6)
    fit(ledger, 1e-7)
    median(ledger, 0.1, 2e-7)
    assert str(ledger.remaining) == "epsilon 1.9 and delta 7e-07"


# -- small pure releases as Gaussian ones

SMALL = Cost(epsilon="0.02")


def coins(times: int, size: float, epsilon: float) -> float:
    """The delta of so many coins that were all fixed beforehand."""
    heads = stats.binom(times, 1 / (1 + math.exp(-size)))
    losses = ((2 * number - times) * size for number in range(times + 1))
    terms = (heads.pmf(number) * -math.expm1(epsilon - loss) for number, loss in enumerate(losses) if loss > epsilon)
    return float(sum(terms))


@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.02", "0.5", "3", "20"])
def test_a_coin_is_dominated_by_its_gaussian_and_by_no_smaller_one(epsilon: str) -> None:
    size, low, high = float(epsilon), *_coin_between(Fraction(epsilon))
    assert low <= high <= low * (1 + 1e-12)
    heads = 1 / (1 + math.exp(-size))
    for at in np.linspace(0, 1.5 * size, 31):  # both pairs are symmetric, so orders below one follow
        leak = max(heads - math.exp(at) * (1 - heads), 0)
        assert leak <= gaussian.delta(math.sqrt(high), at) + 1e-12
    assert is_gaussian_of(Cost(mu_squared=high), Cost(epsilon=epsilon))
    assert not is_gaussian_of(Cost(mu_squared=low * Fraction(999999, 10**6)), Cost(epsilon=epsilon))
    half = (1 - math.exp(-size)) / (1 + math.exp(-size))  # at epsilon 0 the two are equal
    assert gaussian.delta(math.sqrt(high), 0) == pytest.approx(half, rel=1e-9)


def _coin_between(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    return tuple(Fraction(end(lambda: gaussian.coin(epsilon))) for end in (balls.below, balls.above))  # type: ignore[return-value]


def test_what_is_no_gaussian_of_a_pure_release() -> None:
    square = _coin_between(SMALL.epsilon)[1]
    good = Cost(mu_squared=square)
    assert is_gaussian_of(good, SMALL)
    assert is_gaussian_of(Cost(mu_squared=square, delta=1e-7), SMALL + Cost(delta=1e-7))
    for other, cost in (
        (good, SMALL + Cost(delta=1e-7)),
        (good + Cost(epsilon="0.01"), SMALL),
        (good, SMALL + Cost(mu="0.1")),
        (Cost(mu_squared=square, neighbours="replace"), SMALL),
        (Cost(mu_squared=square * Fraction(2, 3)), SMALL),
    ):
        assert not is_gaussian_of(other, cost)
    assert as_gaussian(Cost(epsilon="0.04"), Budget(1, 1e-6)) is None  # fewer would fit
    assert as_gaussian(SMALL, Budget(1)) is None
    assert as_gaussian(Cost(mu="0.01"), Budget(1, 1e-6)) is None


def test_either_way_takes_three_times_as_many_small_pure_releases() -> None:
    """And all that their epsilons allow: large ones after small ones too."""
    many = [Cost(epsilon="0.01")] * 400
    taken = {way.value: MemoryLedger(1, 1e-6, composition=way).payable(many) for way in Composition}
    assert taken == {"addition": 100, "tight": 100, "both": 327}
    assert coins(327, 0.01, 1) < 1e-6
    either = MemoryLedger(1, 1e-6, composition="both")
    assert either.payable([Cost(epsilon="0.01"), Cost(epsilon="0.99")]) == 2
    assert either.payable([*many[:101], Cost(epsilon="0.99")]) == 101


def test_nobody_gains_by_looking_at_coins() -> None:
    """Value iteration: after each coin stop, go on, or spend the rest by either rule at once."""
    epsilon, delta, size, most = 1.0, 1e-6, 0.02, 81
    assert MemoryLedger(epsilon, delta, composition="both").payable([SMALL] * 100) == most
    square = float(_coin_between(SMALL.epsilon)[1])
    whole = gaussian.mu(1, Fraction(delta) / 2) ** 2  # more than the boxes allow
    heads = 1 / (1 + math.exp(-size))
    levels: Values = epsilon - size * np.arange(-most - 1.0, most + 2)  # of x, by the number of heads more than tails

    def stop(x: Values) -> Values:
        worth: Values = np.maximum(-np.expm1(np.minimum(x, 0)), 0)
        return worth

    def rest(taken: int) -> Values:
        mu = math.sqrt(max(whole - taken * square, 1e-12))
        normal = stats.norm.cdf(mu / 2 - levels / mu) - np.exp(levels) * stats.norm.cdf(-mu / 2 - levels / mu)
        coin = max(epsilon - taken * size, 0)
        up = 1 / (1 + math.exp(-coin))
        fails = delta / 2 if taken * size <= epsilon else 0.0  # beside the coin, as long as addition takes it
        last = fails + (1 - fails) * (up * stop(levels - coin) + (1 - up) * stop(levels + coin))
        worth: Values = np.maximum(normal, last)
        return worth

    values = np.maximum(stop(levels), rest(most))
    for taken in range(most - 1, -1, -1):
        on = np.full_like(values, 0.0)
        on[1:-1] = heads * values[2:] + (1 - heads) * values[:-2]
        values = np.maximum.reduce([stop(levels), rest(taken), on])
    assert 0.55 * delta < values[most + 1] < 0.7 * delta
