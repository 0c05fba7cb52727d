"""Totals of persons under a cap: the exact loss of every person with few rows, for every cap that may be drawn."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Budget, MemoryLedger, Simulation, Unit
from snugdp.mechanisms.persons.totals import FINE, MAX_CAP, PersonVectors, TotalsBlock
from snugdp.noise import DiscreteLaplace
from snugdp.noise.recording import Witness
from snugdp.propose.share import Share
from snugdp.queries.base import Query
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.found import FoundCap
from snugdp.tables.persons.totals import Totals, person_totals
from snugdp.tables.sources import open_source
from tests.effort import sampled

ROWS = ((0.0, "a"), (4.0, "a"), (4.0, "b"), (-4.0, "c"), (1.0, "b"))
CONTENTS = tuple(
    some for size in range(4) for some in itertools.combinations_with_replacement(ROWS, size)
)  # of one person
BOUNDS = (-4, 4)
QUERIES: dict[str, Callable[..., Any]] = {
    "count": lambda **given: snugdp.Count(**given),
    "entries": lambda **given: snugdp.Count(column="value", **given),
    "sum": lambda **given: snugdp.Sum(column="value", bounds=BOUNDS, **given),
    "mean": lambda **given: snugdp.Mean(column="value", bounds=BOUNDS, **given),
    "variance": lambda **given: snugdp.Variance(column="value", bounds=BOUNDS, **given),
    "proportion": lambda **given: snugdp.Proportion(column="key", values=["a"], **given),
    "edges": lambda **given: snugdp.Histogram(column="value", edges=[-5, 0, 2, 5], **given),
    "values": lambda **given: snugdp.Histogram(column="key", values=["a", "b", "c", "d"], **given),
    "groups": lambda **given: snugdp.GroupBy(
        by="key", keys=["a", "b"], statistics={"value": ["mean", "variance"]}, bounds={"value": BOUNDS}, **given
    ),
    "sums by group": lambda **given: snugdp.GroupBy(
        by="key", keys=["a", "b"], statistics={"value": "sum"}, bounds={"value": BOUNDS}, missing=True, **given
    ),
}


def frame(persons: tuple[tuple[tuple[float, str], ...], ...], last_is_nobody: bool = False) -> pl.DataFrame:
    """The rows of some persons; of the last perhaps without an identifier."""
    nobody = len(persons) - 1 if last_is_nobody else -1
    rows = [(None if who == nobody else f"p{who}", *row) for who, some in enumerate(persons) for row in some]
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    columns = {"who": pl.String, "value": pl.Float64, "key": pl.String}
    return pl.DataFrame([rows[place] for place in order], schema=columns, orient="row")


def reading(query: Query[Any], table: pl.DataFrame) -> Totals:
    release: Any = query._totals
    source = open_source(table)
    if hasattr(release, "_entries"):
        entries = release._entries
    else:
        from snugdp.tables.persons.totals import GroupEntries

        work = release._query.sums_pass(source)
        entries = GroupEntries(work.keys, work.values, work.missing)
    (found,) = unwrap(person_totals(source, entries, "who")).parts
    return found


def vectors_of(query: Query[Any]) -> PersonVectors:
    release: Any = query._totals
    found: PersonVectors = release._vectors
    return found


def cap_of(outcome: Any) -> Fraction:
    found: Fraction = outcome.certificate.cap
    return found


def loss(block: TotalsBlock, vectors: PersonVectors, cap: Fraction, moved: list[int]) -> float:
    """What is lost of a person who moves the sums so far, over what is paid: at most 1."""
    laws = block.noise(cap, vectors.cells).laws
    if block.share.is_pure:
        lost = sum(
            abs(move) / law.scale for move, law in zip(moved, laws, strict=True) if isinstance(law, DiscreteLaplace)
        )
        return float(lost / block.share.epsilon)
    pairs: list[tuple[int, Any]] = list(zip(moved, laws, strict=True))
    squares = sum((Fraction(move) ** 2 / law.sigma**2 for move, law in pairs), Fraction(0))
    return math.sqrt(squares / block.share.mu_squared)


@sampled(10)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", QUERIES)
def test_no_person_loses_more_than_is_paid_under_any_cap(name: str, delta: float) -> None:
    """Sums add over persons, so what a person moves is what the table of this person alone has."""
    query = QUERIES[name](epsilon=1, delta=delta, person="who", max_rows=("private", 2))
    vectors, worst = vectors_of(query), 0.0
    together = reading(query, frame(CONTENTS))
    alone = [reading(query, frame((some,))) for some in (CONTENTS[0], *CONTENTS[5:8], CONTENTS[-1])]
    for block, cap in itertools.product(vectors.blocks, vectors.candidates[-1::-3]):
        lengths, totals = (
            block.lengths(together),
            np.zeros((together.persons, len(block.noise(cap, vectors.cells).moves))),
        )
        for person in range(together.persons):
            which = together.person == person
            only = Totals(
                np.zeros(which.sum(), dtype=np.int64),
                together.cell[which],
                tuple(value[which] for value in together.values),
                together.too_many[person : person + 1],
            )
            moved = block.cut(cap, vectors.cells, only)
            totals[person] = moved
            lost = loss(block, vectors, cap, moved)
            assert lost <= 1
            if lengths[person] > cap:
                worst = max(worst, lost)
        assert np.array_equal(totals.sum(axis=0), np.array(block.cut(cap, vectors.cells, together), dtype=float))
    assert worst > 0.9999 if name != "entries" else worst > 0.9
    assert [each.persons for each in alone] == [0, 1, 1, 1, 1]


@sampled(5)
@pytest.mark.parametrize("name", QUERIES)
def test_one_person_moves_the_numbers_above_all_caps_by_one_at_most(name: str) -> None:
    query = QUERIES[name](epsilon=1, delta=1e-6, person="who", max_rows=("private", 4))
    vectors = vectors_of(query)
    three = [CONTENTS[place] for place in (1, 30, len(CONTENTS) - 1)]
    before = np.array(vectors.above(reading(query, frame(tuple(three)))))
    assert np.all(np.diff(before) <= 0)
    assert before[-1] == 0
    for some in CONTENTS[:: max(1, len(CONTENTS) // 12)]:
        after = np.array(vectors.above(reading(query, frame((*three, some)))))
        assert set(np.unique(after - before)) <= {0, 1}


def test_the_draw_is_paid_for_and_the_cost_does_not_depend_on_the_cap() -> None:
    for delta in (0, 1e-6):
        for name, make in QUERIES.items():
            query = make(epsilon=1, delta=delta, person="who", max_rows="private")
            plan = query.plan()
            assert plan.step_ids[0] == "cap"
            assert plan.unit is Unit.PERSON
            assert plan.cost.fits(Budget(1, delta)), name
            first = plan.steps[0].cost
            part = (
                first.mu_squared / plan.cost.mu_squared if plan.cost.mu_squared else first.epsilon / plan.cost.epsilon
            )
            assert part in (Fraction(1, 4), Fraction(1, 10))
            draw = vectors_of(query).cap_choice
            assert draw.share.cost == first
            ledger = MemoryLedger(1, delta, unit="person", composition="tight")
            outcome = query.release(frame(CONTENTS, last_is_nobody=True), ledger=ledger)
            assert outcome.cost == plan.cost == ledger.spent
            assert isinstance(outcome.certificate, FoundCap)
            assert outcome.certificate.cap in vectors_of(query).candidates
            assert outcome.receipt.unit is Unit.PERSON


def test_draws_are_made_in_their_steps() -> None:
    witness = Witness(1)
    QUERIES["groups"](epsilon=1, delta=1e-6, person="who", max_rows="private").release(frame(CONTENTS), noise=witness)
    steps = [site.step for site in witness.transcript().sites]
    assert steps[0] == "cap"
    assert set(steps[1:]) == {"count", "column-1"}


def test_rows_without_an_identifier_are_cut_one_by_one() -> None:
    query = QUERIES["sum"](epsilon=1, person="who", max_rows=("private", 2))
    totals = reading(query, frame((ROWS, ROWS), last_is_nobody=True))
    (block,) = vectors_of(query).blocks
    assert totals.persons == 1 + len(ROWS)
    assert sorted(block.lengths(totals).round(6).tolist()) == [0, 0.25, 1, 1, 1, 1.25]


def test_persons_with_too_many_rows_add_nothing() -> None:
    block = TotalsBlock((0,), ((1,),), (Fraction(1),), Share.pure(Budget(1)), "release")
    totals = Totals(np.array([0, 1]), np.array([0, 0]), (np.array([7, -(2**63)]),), np.array([False, True]))
    assert block.cut(Fraction(10), 1, totals) == [7 * FINE]


def test_large_numbers_are_added_up_exactly() -> None:
    block = TotalsBlock((0, 1), ((3, -1), (0, 1)), (Fraction(1), Fraction(1)), Share.pure(Budget(1)), "release")
    values = np.array([2**56 - 1, -(2**56) + 3]), np.array([5, 2**55 + 1])
    totals = Totals(np.array([0, 1]), np.array([1, 1]), values, np.array([False, False]))
    want = [3 * (values[0][0] + values[0][1]) - values[1].sum(), values[1].sum()]
    assert block.cut(Fraction(2**60), 2, totals) == [0, FINE * int(want[0]), 0, FINE * int(want[1])]


def test_a_person_in_many_cells_counts_more_than_with_kept_rows() -> None:
    """30 visits in 30 cells have the length 5.5: a cap of 6 leaves all of them."""
    table = pl.DataFrame({"who": [0] * 30, "cell": list(range(30))})
    query = snugdp.Histogram(column="cell", values=list(range(30)), epsilon=1, delta=1e-6, person="who", max_rows=20)
    totals = reading(query, table)
    (block,) = vectors_of(query).blocks
    assert not block.share.is_pure
    assert block.cut(Fraction(6), 32, totals)[:30] == [FINE] * 30
    assert abs(block.lengths(totals)[0] - 30**0.5) < 1e-12


def test_candidates_and_bounds_of_caps() -> None:
    query = snugdp.Count(epsilon=1, person="who", max_rows=("private", 8))
    assert vectors_of(query).candidates == tuple(
        Fraction(n, 4) for n in (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
    )
    summed = snugdp.Sum(column="value", bounds=(0, 1), epsilon=1, person="who", max_rows="private")
    assert vectors_of(summed).candidates[0] == Fraction(1, 64)
    assert vectors_of(summed).candidates[-1] == 1024
    with pytest.raises(ValueError, match="at most"):
        snugdp.Count(epsilon=1, person="who", max_rows=MAX_CAP + 1)
    for bad, words in (("most", "whole number"), (("private", 0), "largest cap"), (("public", 3), '"private"')):
        with pytest.raises(ValueError, match=words):
            snugdp.Count(epsilon=1, person="who", max_rows=bad)  # type: ignore[arg-type]
    for wrong in (
        lambda **given: snugdp.Mean(column="value", **given),
        lambda **given: snugdp.GroupBy(by="key", delta=1e-6, **given),
        lambda **given: snugdp.Median(bounds=(0, 1), **given),
        lambda **given: snugdp.Count(neighbours="replace", **given),
    ):
        with pytest.raises(ValueError, match=r"private|replace"):
            wrong(epsilon=1, person="who", max_rows="private").plan()


def test_the_cap_of_a_released_table_is_near_the_best() -> None:
    rng = np.random.default_rng(5)
    rows = rng.geometric(1 / 6, 3000)
    table = pl.DataFrame({"who": np.repeat(np.arange(3000), rows), "cell": rng.integers(0, 50, rows.sum())})
    query = snugdp.Histogram(
        column="cell", values=list(range(50)), epsilon=1, delta=1e-6, person="who", max_rows="private"
    )
    caps = [float(cap_of(query.release(table, noise=Simulation(seed)))) for seed in range(6)]
    assert 4 <= np.median(caps) <= 8


def test_nothing_private_shows() -> None:
    query = QUERIES["values"](epsilon=1, person="who", max_rows=2)
    totals = reading(query, frame(CONTENTS[:9]))
    assert "private" in repr(totals)
    assert "0" not in repr(Secret(totals))
