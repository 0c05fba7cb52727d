"""A cap that is read from noisy numbers of persons: what one person moves, exactly; and what it is good for."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Budget, Neighbours, Simulation
from snugdp.mechanisms.persons import totals as module
from snugdp.mechanisms.persons.tail_choice import FULL, MIN_NUMBERS, TailChoice, restored
from snugdp.mechanisms.persons.totals import PersonVectors, TotalsBlock, divided
from snugdp.noise.recording import Witness
from snugdp.propose.share import Share
from snugdp.tables.persons.totals import Totals

CELLS = MIN_NUMBERS
SHARE = Share.gaussian(Budget(1, 1e-6))


def vectors() -> PersonVectors:
    drawn, rest = divided(SHARE, CELLS, in_private=True)
    block = TotalsBlock((0,), ((1,),), (Fraction(1),), rest, "release")
    return PersonVectors((block,), CELLS, 64, in_private=True, share=drawn)


def totals(persons: list[dict[int, int]]) -> Totals:
    """Rows by cell of every person."""
    entries = [(who, cell, rows) for who, some in enumerate(persons) for cell, rows in some.items()]
    person, cell, rows = (np.array(each, dtype=np.int64) for each in zip(*entries, strict=True))
    return Totals(person, cell, (rows,), np.zeros(len(persons), dtype=bool))


def geometric(seed: int, people: int = 4_000) -> Totals:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.geometric(1 / 6, people))
    pairs, rows = np.unique(who * CELLS + rng.integers(0, CELLS, len(who)), return_counts=True)
    return Totals(pairs // CELLS, pairs % CELLS, (rows,), np.zeros(people, dtype=bool))


PERSONS = [
    {cell: rows + (cell == 0) * more for cell in range(cells)}
    for cells, rows, more in itertools.product((1, 2, 7, 50), (1, 2, 9, 64, 1_000), (0, 1, 500))
]


def test_no_person_moves_more_than_the_noise_hides() -> None:
    """Every person of a list comes to a table: one bin moves, by a weight of at most FULL, and FULL is reached."""
    found = vectors()
    choice = found.cap_choice
    assert isinstance(choice, TailChoice)
    before = np.array(found.between(totals(PERSONS[3:9])))
    moved = [np.array(found.between(totals([*PERSONS[3:9], one]))) - before for one in PERSONS]
    assert all((each != 0).sum() <= 1 and 0 <= each.sum() <= FULL for each in moved)
    assert max(each.sum() for each in moved) == FULL
    assert Fraction(FULL) ** 2 / choice.law.sigma**2 <= choice.share.mu_squared
    assert Fraction(FULL) ** 2 / choice.law.sigma**2 > choice.share.mu_squared * (1 - Fraction(1, 1 << 20))


def test_parts_of_a_table_count_as_the_whole() -> None:
    found, whole = vectors(), geometric(3, 200)

    class Parts:
        parts = property(lambda _: iter([geometric(3, 200), totals(PERSONS)]))

    want = np.array(found.between(whole)) + np.array(found.between(totals(PERSONS)))
    assert found.between(Parts()) == want.tolist()
    assert sum(want) > 0


def test_a_cap_is_read_near_the_best_and_never_outside_the_candidates() -> None:
    found = vectors()
    choice, counts = found.cap_choice, np.array(found.between(geometric(1)), dtype=float)
    assert isinstance(choice, TailChoice)
    rng = np.random.default_rng(2)
    noisy = [np.rint(counts + float(choice.law.sigma) * rng.standard_normal(len(counts))) for _ in range(10)]
    caps = [float(choice.caps[choice.read(one.tolist()).place]) for one in noisy]
    assert 4 <= min(caps) <= max(caps) <= 8
    for odd in (0, -(10**9), 10**15):
        assert 0 <= choice.read([odd] * len(choice.ends)).place < len(choice.caps)
    for number in range(1, 6):
        few = TailChoice(choice.share, choice.caps[:number], CELLS, choice.unit)
        assert {few.read([size] * len(few.ends)).place for size in (0, 10**9)} <= set(range(number))


def test_a_cap_is_read_where_numbers_of_rows_end_at_once() -> None:
    """Everybody has three rows, so that nobody is longer than 3; and a far bin that noise has lifted by four deviations
    does not lift the cap."""
    found = vectors()
    choice = found.cap_choice
    assert isinstance(choice, TailChoice)
    everybody = np.array(found.between(totals([{0: 3}, {0: 2, 1: 1}, {0: 1, 1: 1, 2: 1}]))) * 5_000
    lifted = everybody + np.eye(len(everybody), dtype=int)[-1] * int(4 * choice.law.sigma)
    assert all(2 <= choice.caps[choice.read(each.tolist()).place] <= 4 for each in (everybody, lifted))


def test_it_is_for_gaussian_shares_of_persons_that_come_or_go() -> None:
    for share in (Share.pure(Budget(1)), Share.gaussian(Budget(1, 1e-6, Neighbours.REPLACE))):
        with pytest.raises(ValueError, match="add/remove"):
            TailChoice(share, (Fraction(1),), CELLS, 1.0)


def test_a_histogram_of_many_cells_is_released_under_it() -> None:
    rng = np.random.default_rng(5)
    rows = rng.geometric(1 / 6, 1_000)
    table = pl.DataFrame({"who": np.repeat(np.arange(1_000), rows), "cell": rng.integers(0, CELLS, rows.sum())})
    query = snugdp.Histogram(
        column="cell", values=list(range(CELLS)), epsilon=1, delta=1e-6, person="who", max_rows="private"
    )
    plan, witness = query.plan(), Witness(1)
    assert plan.steps[0].cost.mu_squared * 10 == plan.cost.mu_squared
    assert plan.cost.fits(Budget(1, 1e-6))
    assert "how many persons contribute how much" in str(plan)
    outcome = query.release(table, noise=Simulation(1))
    assert outcome.cost == plan.cost
    query.release(table, noise=witness)
    assert {site.step for site in witness.transcript().sites} == {"cap", "release"}


@pytest.mark.parametrize("largest", [1, 2])
def test_a_replaced_person_has_no_private_cap(largest: int) -> None:
    """One of them moves two totals, and Theorem 3 is about one: a cap of 1 is no exception."""
    with pytest.raises(ValueError, match="add_remove"):
        snugdp.Histogram(
            column="cell", values=[1, 2], epsilon=1, person="who", max_rows=("private", largest), neighbours="replace"
        ).plan()


def test_what_is_added_again_never_hurts_much() -> None:
    """Where nothing was cut off, or something: the mean absolute error of a count rises by at most .275 deviations."""
    noise = np.linspace(-8, 8, 4_001)
    chances = np.exp(-(noise**2) / 2)
    chances /= chances.sum()
    worst = 0.0
    for rows, lost, part in itertools.product((0.0, 0.3, 1.0, 30.0), (0.0, 0.1, 0.5, 2.0), (0.01, 0.3, 3.0, 1e6)):
        drawn = rows - lost + noise
        others = np.full(len(drawn), 1e6)  # of all cells together, so that the part is what it says
        counts = np.stack([drawn, others - drawn], axis=1)
        added = restored(counts, part * others[0] / 2, 1.0)[:, 0] - drawn
        assert added.min() >= 0
        assert added.max() <= 0.5 + 1e-9
        worst = max(worst, float(chances @ (np.abs(drawn + added - rows) - np.abs(drawn - rows))))
    assert 0.2 < worst <= 0.275


def test_a_histogram_gets_back_what_the_cap_cuts_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate says how much, the plan that it is done, and releases that are no counts do nothing of it."""
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(3_000), rng.zipf(2.0, 3_000).clip(max=2_000))
    table = pl.DataFrame({"who": who, "value": rng.integers(0, CELLS, len(who)), "size": 1.0})
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "person": "who", "max_rows": "private"}
    query = snugdp.Histogram(column="value", values=list(range(CELLS)), **given)
    assert "added to the counts in proportion" in " ".join(str(query.plan()).split())
    whole = query.release(table, noise=Simulation(3))
    monkeypatch.setattr(module, "restored", lambda counts, lost, noise: counts)
    plain = query.release(table, noise=Simulation(3))
    found: Any = whole.certificate
    assert whole.value is not None
    assert plain.value is not None
    assert found == plain.certificate
    assert found.lost > 0
    added = np.array(whole.value.counts) - np.array(plain.value.counts)
    deviation = module.TotalsBlock((0,), ((1,),), (Fraction(1),), divided(SHARE, CELLS + 2, in_private=True)[1], "")
    assert added.min() >= 0
    assert 0.2 * float(found.lost) < added.mean() <= float(found.lost) * (CELLS + 2) / CELLS + 1
    assert added.max() <= deviation.unit_noise * float(found.cap) / 2 + 1
    sums = snugdp.GroupBy(
        by="value", keys=list(range(CELLS)), statistics={"size": "sum"}, bounds={"size": (0, 1)}, **given
    )
    assert "in proportion" not in " ".join(str(sums.plan()).split())
