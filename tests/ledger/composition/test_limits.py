"""The stop rule against the best adversaries that can be found, and against rules that look like it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from snugdp import Budget, Cost, RelationMismatchError
from snugdp.accounting import gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.ledger.composition import limits as module
from snugdp.ledger.composition.limits import Box, Limits, boxes_for, fixes, legal, within
from tests.accounting.atoms import objective_perturbation
from tests.effort import often, repeated, sampled
from tests.ledger.composition.games import GRID, Menu, Rule, delta, seen, value

BUDGET = Budget(1, 1e-6)
LARGEST = Fraction(gaussian.mu(1, 1e-6))
NOTHING = Cost()
SLACK = 1.001  # the grid's own error; checked below


@dataclass(frozen=True)
class TotalFits:
    """The rule that looks right: accept while the composed total fits."""

    budget: Budget

    def after(self, before: Cost, total: Cost) -> TotalFits:
        return self

    def covers(self, total: Cost) -> bool:
        return total.fits(self.budget)


@dataclass(frozen=True)
class FixedLate:
    """Boxes that are fixed by the second charge, when one answer was seen."""

    inner: Limits
    seen: bool = False

    def after(self, before: Cost, total: Cost) -> FixedLate:
        if not self.seen:
            return FixedLate(self.inner, True)
        return FixedLate(self.inner.after(NOTHING, total), True)

    def covers(self, total: Cost) -> bool:
        return self.inner.covers(total) if self.inner.boxes else total.fits(BUDGET)


def first_then_corners(first: Cost, rounds: int) -> Menu:
    """Begin with ``first``; then go to the corners of every box that still holds, at once or by half."""

    def menu(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
        if left == rounds:
            yield first
        elif isinstance(rule, Limits):
            yield from corners(rule.boxes, total)
        else:
            yield from fitting(total)

    return menu


def corners(boxes: Iterable[Box], total: Cost) -> Iterator[Cost]:
    for box in boxes:
        if not box.covers(total):
            continue
        failure = box.limit.delta - total.delta
        if failure:
            yield Cost(delta=failure)
        if box.order:
            left = box.left(total)
            for share in (Fraction(0), Fraction(1, 2), Fraction(1)):
                yield Cost(epsilon=left * share, mu_squared=2 * left * (1 - share) / box.order)
        else:
            square, pure = box.limit.mu_squared - total.mu_squared, box.limit.epsilon - total.epsilon
            yield Cost(mu_squared=square, epsilon=pure)
            yield Cost(mu_squared=square / 2)


def fitting(total: Cost) -> Iterator[Cost]:
    """The largest pure and Gaussian charges for which the total fits, and one half of them."""
    for name in ("epsilon", "mu"):
        low, high = Fraction(0), Fraction(1)
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (middle, high) if (total + only(name, middle)).fits(BUDGET) else (low, middle)
        if low:
            yield only(name, low)
            yield only(name, low / 2)


def only(name: str, amount: Fraction) -> Cost:
    """A cost of one part."""
    return {"mu": Cost(mu=amount), "epsilon": Cost(epsilon=amount), "delta": Cost(delta=amount)}[name]


def attacked(rule: Rule, first: Cost, rounds: int) -> float:
    return delta(value(rule, NOTHING, first_then_corners(first, rounds), rounds), 1.0)


def charged(budget: Budget, costs: Iterable[Cost]) -> tuple[Limits, Cost]:
    """The limits after these charges, all of which are taken, and their total."""
    limits, total = Limits.open(budget), NOTHING
    for cost in costs:
        limits, total = limits.after(total, total + cost), total + cost
        assert limits.covers(total)
    return limits, total


def test_the_grid_is_exact_enough() -> None:
    stop = np.maximum(0.0, 1 - np.exp(GRID))
    for cost in (Cost(mu=LARGEST), Cost(mu=0.1, epsilon=0.5), Cost(mu=0.05, epsilon=0.7, delta=1e-7)):
        assert delta(seen(cost, stop), 1.0) == pytest.approx(cost.delta_at(1), rel=5e-4)
    half = Cost(mu_squared=LARGEST**2 / 2)
    assert delta(seen(half, seen(half, stop)), 1.0) == pytest.approx(1e-6, rel=1e-3)


@sampled(5)
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_no_adversary_gets_more_than_delta(share: float) -> None:
    first = Cost(mu=Fraction(share) * LARGEST)
    assert 0.8e-6 < attacked(Limits.open(BUDGET), first, 3) <= 1e-6 * SLACK


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_total_alone_overruns(share: float) -> None:
    first = Cost(mu=Fraction(share) * LARGEST)
    assert attacked(TotalFits(BUDGET), first, 2) > 1.7e-6
    assert attacked(TotalFits(BUDGET), first, 3) > 2.1e-6


def test_boxes_fixed_after_the_second_charge_overrun() -> None:
    first = Cost(mu=Fraction(3, 10) * LARGEST)

    def menu(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
        yield from [first] if left == 2 else fitting(total)

    assert delta(value(FixedLate(Limits.open(BUDGET)), NOTHING, menu, 2), 1.0) > 1.7e-6


@pytest.mark.parametrize("weight", [1.0, 0.6])
def test_boxes_whose_weights_add_up_to_more_than_one_overrun_and_are_illegal(weight: float) -> None:
    first, goal = Cost(mu=Fraction(3, 10) * LARGEST), Fraction(weight) * BUDGET.delta
    main = Cost(mu=gaussian.mu(1, goal))
    beside = module._beside(BUDGET, NOTHING, first, replace(main, mu_squared=Fraction(0)), goal)
    line = module._line(BUDGET, Fraction(7, 10) * LARGEST, goal, main)
    assert beside is not None
    assert line is not None
    boxes = (Box(main), beside, line)
    assert all(legal(BUDGET, (box,), NOTHING) for box in boxes)
    assert not legal(BUDGET, boxes, NOTHING)

    def menu(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
        yield from [first] if left == 3 else corners(boxes, total)

    assert delta(value(Limits(BUDGET, boxes), NOTHING, menu, 3), 1.0) > 1.1e-6
    small = tuple(Box(box.limit, box.order) for box in boxes_for(BUDGET, NOTHING, first))
    assert legal(BUDGET, small, NOTHING)


def test_failure_beside_a_full_leak_is_illegal() -> None:
    """Whoever sees a high loss goes on, whoever sees a low one opens the failure: the two add up."""
    first = Cost(mu=Fraction(3, 10) * LARGEST)
    boxes = (Box(Cost(mu=LARGEST)), Box(replace(first, delta=BUDGET.delta / 2)))
    assert all(legal(BUDGET, (box,), NOTHING) for box in boxes)
    assert not legal(BUDGET, boxes, NOTHING)

    def menu(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
        yield from [first] if left == 2 else corners(boxes, total)

    assert delta(value(Limits(BUDGET, boxes), NOTHING, menu, 2), 1.0) > 1.15e-6


def after_pure_ones(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
    """Pure charges, small or large; then the largest Gaussian of the moment, or the largest failure."""
    assert isinstance(rule, Limits)
    if left > 1:
        yield from (Cost(epsilon=e) for e in ("0.05", "0.1", "0.4", "0.9"))
    if rule.boxes:
        return
    yield Cost(delta=BUDGET.delta)
    low, high = Fraction(0), Fraction(1)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if legal(BUDGET, (Box(total + Cost(mu=middle)),), total) else (low, middle)
    yield Cost(mu=low)


def test_a_pure_start_may_be_looked_at() -> None:
    worst = delta(value(Limits.open(BUDGET), NOTHING, after_pure_ones, 3), 1.0)
    assert 0.99e-6 < worst <= 1e-6 * SLACK


def test_a_coin_that_was_seen_is_no_coin_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mixture over the outcomes of pure parts must not be used for boxes that were fixed afterwards."""
    monkeypatch.setattr(module, "_view", lambda budget, before, limit: (limit.epsilon, budget.epsilon))
    with uncached():
        assert delta(value(Limits.open(BUDGET), NOTHING, after_pure_ones, 2), 1.0) > 1.2e-6


@contextmanager
def uncached() -> Iterator[None]:
    """Nothing is remembered of before, nor afterwards of what is computed inside."""
    forget = (legal.cache_clear, boxes_for.cache_clear)
    for each in forget:
        each()
    try:
        yield
    finally:
        for each in forget:
            each()


def test_atoms_on_lines_and_in_boxes_are_covered() -> None:
    first, atom = Cost(mu="0.08"), Cost(atoms=(objective_perturbation("0.08", "0.2"),))
    start = Limits.open(BUDGET).after(NOTHING, first)
    assert start.covers(first + atom)

    def menu(rule: Rule, total: Cost, left: int) -> Iterator[Cost]:
        assert isinstance(rule, Limits)
        if left == 4:
            yield first
            return
        yield atom
        yield Cost(mu=rule.remaining(total).mu)
        yield Cost(epsilon=rule.remaining(total).epsilon)

    assert 0.8e-6 < delta(value(Limits.open(BUDGET), NOTHING, menu, 4), 1.0) <= 1e-6 * SLACK


@sampled(3)
@repeated
@pytest.mark.parametrize("seed", range(often(3, 8)))
def test_random_adversaries(seed: int) -> None:
    random = np.random.default_rng(seed)
    epsilon, total = float(random.choice([0.5, 1.0, 2.0])), float(random.choice([1e-3, 1e-5, 1e-7]))
    budget = Budget(epsilon, total)
    largest = gaussian.mu(epsilon, total)

    def some() -> Cost:
        mu, pure, failure = random.uniform(0, 0.6, 3) * random.integers(0, 2, 3)
        return Cost(mu=float(mu * largest), epsilon=float(pure * epsilon), delta=float(failure * total))

    options = [some() for _ in range(6)]

    def menu(rule: Rule, spent: Cost, left: int) -> Iterator[Cost]:
        assert isinstance(rule, Limits)
        remaining = rule.remaining(spent)
        yield from options[:3] if left == 3 else options[3:]
        if left == 1:
            yield from (Cost(mu=remaining.mu), Cost(epsilon=remaining.epsilon), Cost(delta=remaining.delta))

    assert delta(value(Limits.open(budget), NOTHING, menu, 3), epsilon) <= total * SLACK


@pytest.mark.parametrize("order", [1.5, 4.0, 30.0])
def test_the_leak_of_a_line_is_that_of_a_perpetual_option(order: float) -> None:
    """sup of (u - c)+ / u^a, by brute force; and a Gaussian of that Renyi divergence stays below."""
    box = Box(Cost(epsilon="0.4"), Fraction(order))
    u = np.exp(1 + np.linspace(0, 12, 2_000_001)[1:])
    best = np.max((u - math.e) * u**-order) * math.exp((order - 1) * 0.4)
    assert module._leak_of_line(BUDGET, box) == pytest.approx(best, rel=1e-6)
    assert module._leak_of_line(BUDGET, box) >= gaussian.delta(math.sqrt(2 * 0.4 / order), 1)


def test_moments_of_atoms_bound_those_of_the_largest_alternative() -> None:
    t = np.linspace(-12, 12, 400_001)
    weight = norm.pdf(t) * (t[1] - t[0])
    for m, limit, order in ((0.1, 0.3, 20), (0.3, 0.05, 12), (0.02, 0.5, 60)):
        atom = objective_perturbation(str(m), str(limit))
        for branches, loss in (
            (atom.add, m * np.abs(t) + m**2 / 2),
            (atom.remove, np.maximum(m * t + m**2 / 2, limit)),
        ):
            exact = math.log(weight @ np.exp((order - 1) * loss)) / (order - 1)
            bound = float(module._moment(branches, Fraction(order)))
            assert exact <= bound <= exact + math.log(2.01) / (order - 1)
    coin = (Branch(Fraction(0), Fraction(2), Fraction(1, 4)), Branch(Fraction(0), Fraction(0), Fraction(3, 4)))
    levels = Cost(atoms=(Atom(coin, coin), Atom(coin, coin)))
    expected = 2 * math.log(math.exp(4) / 4 + 3 / 4) / 2
    assert float(module._atoms(levels, Fraction(3))) == pytest.approx(expected)


@pytest.mark.slow
def test_a_first_charge_that_fits_is_taken() -> None:
    random = np.random.default_rng(3)
    for _ in range(12):
        epsilon, failure = float(random.uniform(0.1, 4)), float(10 ** random.uniform(-9, -2))
        budget = Budget(epsilon, failure)
        shape = Cost(
            mu=float(random.uniform(0.1, 1)),
            epsilon=float(random.uniform(0, 0.3) * random.integers(0, 2)),
            delta=float(random.uniform(0, 1) * failure * random.integers(0, 2)),
            variation=float(random.uniform(0, 0.1) * failure * random.integers(0, 2)),
        )
        low, high = Fraction(0), Fraction(8)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if scaled(shape, middle).fits(budget) else (low, middle)
        for times, taken in ((low, True), (high, False), (low * Fraction(999, 1000), True), (low / 3, True)):
            first = scaled(shape, times)
            assert Limits.open(budget).after(NOTHING, first).covers(first) is taken
    exact = Cost(mu=gaussian.mu(1, 1e-6))
    assert Limits.open(BUDGET).after(NOTHING, exact).covers(exact)
    beyond = Cost(epsilon="1.000001")
    assert beyond.fits(BUDGET)
    assert Limits.open(BUDGET).after(NOTHING, beyond).covers(beyond)


def scaled(shape: Cost, times: Fraction) -> Cost:
    return Cost(
        mu_squared=shape.mu_squared * times**2,
        epsilon=shape.epsilon * times,
        delta=shape.delta * times,
        variation=shape.variation * times,
    )


def test_what_remains_is_taken_and_hardly_more() -> None:
    atom = Cost(atoms=(objective_perturbation("0.05", "0.2"),))
    histories = [
        [],
        [Cost(epsilon="0.3")],
        [Cost(mu="0.05")],
        [Cost(epsilon="0.3", delta="1e-7"), Cost(mu="0.05"), Cost(epsilon="0.1")],
        [Cost(mu="0.05"), atom],
        [atom, atom],
    ]
    more = {"mu": Fraction(1, 10**6), "epsilon": Fraction(1, 10**5), "delta": Fraction(1, 10**12)}
    for history in histories:
        limits, total = charged(BUDGET, history)
        left = limits.remaining(total)
        for name, step in more.items():
            most = Fraction(str(getattr(left, name)))
            for amount, taken in ((most, True), (most + step, False)):
                then = total + only(name, amount)
                assert limits.after(total, then).covers(then) is taken, (history, name)
        for word, exact in zip(left.alone.split(" or "), (Fraction(left.mu), left.pure, left.failure), strict=True):
            told = Fraction(word.split()[1])
            assert 0 <= exact - told <= exact / 10**5


@pytest.mark.parametrize(
    ("releases", "kept"),
    [(2, "0.998"), (3, "0.998"), (4, "0.998"), (7, "0.998"), (10, "0.998"), (33, "0.998"), (100, "0.988")],
)
def test_equal_releases_lose_next_to_nothing(releases: int, kept: str) -> None:
    each = Cost(mu=LARGEST * Fraction(kept) / Fraction(math.sqrt(releases)))
    limits = Limits.open(BUDGET).after(NOTHING, each)
    assert limits.covers(sum([each] * releases, NOTHING))
    assert len(limits.boxes) > 1  # and something is left for other kinds


def test_pure_parts_lose_nothing() -> None:
    costs = (Cost(epsilon=0.1, delta=4e-7), Cost(epsilon=0.2), Cost(delta=6e-7))
    limits, total = charged(Budget(0.3, 1e-6), costs)
    assert limits.boxes == ()
    assert not limits.after(total, total + Cost(epsilon=1e-30)).covers(total + Cost(epsilon=1e-30))


@pytest.mark.parametrize(
    ("history", "last", "at_least"),
    [
        ([Cost(mu="0.0237")], "epsilon", 0.96),
        ([Cost(mu="0.071")], "epsilon", 0.89),
        ([Cost(mu="0.118")], "epsilon", 0.74),
        ([Cost(epsilon="0.3")], "mu", 0.96),
        ([Cost(epsilon="0.3"), Cost(mu="0.05")], "mu", 0.95),
        ([Cost(epsilon="0.3"), Cost(mu="0.05")], "epsilon", 0.88),
        ([Cost(mu="0.05"), Cost(epsilon="0.3")], "mu", 0.65),
    ],
)
def test_mixed_kinds_lose_a_bounded_part(history: list[Cost], last: str, at_least: float) -> None:
    limits, total = charged(BUDGET, history)
    new = Fraction(getattr(limits.remaining(total), last))
    most = new / Fraction(at_least)  # the rule that the total fits would take no more than this
    assert new > 0
    assert not (total + only(last, most)).fits(BUDGET)


@pytest.mark.parametrize("first", ["0.02", "0.05", "0.1"])
def test_failures_have_room_after_a_gaussian_part(first: str) -> None:
    total = Cost(mu=first)
    limits = Limits.open(BUDGET).after(NOTHING, total)
    assert limits.remaining(total).delta > 0.07 * float(BUDGET.delta)


def test_a_cap_is_its_own_box() -> None:
    cap = Cost(mu="0.2", epsilon="0.5", delta="1e-7")
    limits = Limits.open(cap)
    assert limits.after(NOTHING, Cost(mu="0.2")) is limits
    assert limits.covers(cap)
    assert not limits.covers(cap + Cost(delta="1e-9"))
    assert limits.remaining(Cost(mu="0.12")).mu == pytest.approx(0.16)
    assert Limits.open(NOTHING).covers(NOTHING)
    assert not Limits.open(NOTHING).covers(Cost(epsilon=1e-9))


def test_totals_of_disjoint_parts() -> None:
    """Two parts of 0.8 each are a total of 0.8: only totals count, not sums."""
    total = Cost(epsilon="0.8")
    limits = Limits.open(BUDGET).after(total, total)
    assert limits.boxes == ()
    assert limits.covers(total)
    then = total + Cost(mu="0.03")
    assert limits.after(total, then).covers(then)


def test_relations_do_not_mix() -> None:
    with pytest.raises(RelationMismatchError):
        Limits.open(BUDGET).covers(Cost(neighbours="replace"))


def test_illegal_boxes() -> None:
    good = boxes_for(BUDGET, NOTHING, Cost(mu="0.05"))
    assert legal(BUDGET, good, NOTHING)
    line = next(box for box in good if box.order)
    assert not legal(BUDGET, (*good, Box(Cost(mu="0.05", epsilon="0.76"))), NOTHING)
    assert not legal(BUDGET, (Box(good[0].limit + Cost(delta="6e-8")), *good[1:]), NOTHING)
    assert not legal(BUDGET, (Box(good[0].limit + Cost(variation="2e-8")), *good[1:]), NOTHING)
    assert not legal(BUDGET, (Box(line.limit, Fraction(1)),), NOTHING)
    assert not legal(BUDGET, (Box(line.limit + Cost(mu="0.01"), line.order),), NOTHING)
    assert not legal(BUDGET, good, Cost(mu="0.01"))
    assert not legal(BUDGET, good, Cost(epsilon="0.01"))
    assert fixes(BUDGET, Cost(variation=1e-9))
    assert not legal(BUDGET, (Box(Cost(mu="0.23", epsilon="0.2")),), Cost(epsilon="0.2"))


def test_sums_of_leaks_by_another_formula() -> None:
    for first, before in (
        (Cost(mu="0.05"), NOTHING),
        (Cost(mu="0.05", epsilon="0.1"), Cost(epsilon="0.2", delta="1e-7")),
    ):
        boxes = boxes_for(BUDGET, before, before + first)
        leak = 0.0
        for box in boxes:
            e = float(box.limit.epsilon)
            if box.order:
                a = float(box.order)
                leak += math.exp((a - 1) * (e - 1 + math.log1p(-1 / a))) / a
            elif before.epsilon:
                leak += gaussian.delta(box.limit.mu, 1 - box.limit.epsilon)
            else:
                w = math.exp(e)
                up, down = (gaussian.delta(box.limit.mu, 1 + sign * box.limit.epsilon) for sign in (-1, 1))
                leak += (w * up + down) / (1 + w)
        shared = max(float(box.limit.delta) for box in boxes)
        shared += (1 + math.e) * max(float(box.limit.variation) for box in boxes)
        assert 0.9e-6 < leak + shared <= 1e-6 * (1 + 1e-12)


def test_boxes_are_short() -> None:
    first = Cost(mu=Fraction(10**40 + 7, 3 * 10**41))
    for box in boxes_for(BUDGET, NOTHING, first)[1:]:
        parts = (box.order, box.limit.epsilon, box.limit.delta, box.limit.variation)
        assert max(part.denominator.bit_length() for part in parts) < 130


def test_many_atoms_are_counted_not_multiplied_out() -> None:
    atom = objective_perturbation("0.001", "0.002")
    limits = Limits.open(BUDGET).after(NOTHING, Cost(atoms=(atom,)))
    assert Counter(limits.boxes[0].limit.atoms)[atom] <= module.MOST_ATOMS
    assert within(Cost(atoms=(atom,)), limits.boxes[0].limit)


@sampled(3)
@pytest.mark.parametrize(
    ("budget", "charges"),
    [
        ((1, "1e-6"), [Cost(mu="0.23", epsilon=Fraction(1, 10**130))]),
        ((1, "1e-6"), [Cost(mu=Fraction(1, 10**70), epsilon=1)]),
        ((1, "1e-120"), [Cost(epsilon=1), Cost(mu="1e-120")]),
        ((1, "1e-308"), [Cost(epsilon=1), Cost(mu="1e-308")]),
    ],
)
def test_a_first_charge_that_fits_is_taken_at_any_size(budget: tuple[int, str], charges: list[Cost]) -> None:
    charged(Budget(*budget), charges)
