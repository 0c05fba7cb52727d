"""Queries about persons: their exact losses over all small tables, for every person who comes, goes or changes."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Budget, MemoryLedger, Simulation, Unit, UnitMismatchError
from snugdp.mechanisms.persons.totals import FINE
from snugdp.noise import DiscreteGaussian, DiscreteLaplace
from snugdp.noise.recording import Site, Witness, private_inputs
from tests.effort import sampled

CONTENTS = ((), (0.0,), (4.0, 4.0), (4.0,), (0.0, 4.0), (0.0, 1.0, 4.0))  # the rows of a person; nobody for ()
Table = tuple[tuple[float, ...], ...]  # by persons; the last has no identifier, and each of its rows is one
TABLES = tuple(itertools.product(CONTENTS, CONTENTS[:3], ((), (4.0,))))
EPSILON = 1
SCHEMA = snugdp.Schema({"value": snugdp.Number(0, 4)}, person="who")


def frame(table: Table) -> pl.DataFrame:
    rows = [(None if who == 2 else f"p{who}", value) for who, some in enumerate(table) for value in some]
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    columns = {"who": pl.String, "value": pl.Float64}
    return pl.DataFrame([rows[place] for place in order], schema=columns, orient="row")


def neighbours(relation: str) -> Iterator[tuple[Table, Table]]:
    """Every pair of tables that differ in one person: with and without, or another in the place of one."""
    for table in TABLES:
        for who, others in ((0, CONTENTS), (1, CONTENTS[:3]), (2, ((), (4.0,)))):
            for rows in others:
                gone = () in (table[who], rows)
                if rows != table[who] and gone == (relation == "add_remove"):
                    yield table, (*table[:who], rows, *table[who + 1 :])


def loss(one: Site, other: Site) -> float:
    """The largest loss of a pure draw, or the mu of a Gaussian one, between two tables."""
    if one.method == "weighted_choice":
        return max(abs(a - b) for a, b in zip(log_law(one), log_law(other), strict=True))
    (first,), (second,) = private_inputs(one), private_inputs(other)
    moved = np.abs(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))
    if isinstance(one.law, DiscreteLaplace):
        return float(moved.sum() / float(one.law.scale))
    deviation = math.sqrt(one.law.variance) if isinstance(one.law, DiscreteGaussian) else float(one.law.sigma)  # type: ignore[union-attr]
    return float(np.linalg.norm(moved) / deviation)


def log_law(site: Site) -> list[float]:
    """The exact law of a draw by weights, position by position."""
    groups, rate = private_inputs(site)[0].whole().nonempty(), float(site.number("rate"))
    masses: Counter[int] = Counter()
    for first, count, level, weight in zip(*(part.tolist() for part in groups.arrays), strict=True):
        for place in range(first, first + count):
            masses[place] += 2**weight * math.exp(-rate * level)
    return [math.log(masses[place] / masses.total()) for place in sorted(masses)]


QUERIES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "count": (lambda **given: snugdp.Count(**given), ("add_remove",)),
    "sum": (lambda **given: snugdp.Sum(column="value", bounds=(0, 4), clip=None, **given), ("add_remove", "replace")),
    "histogram": (
        lambda **given: snugdp.Histogram(column="value", edges=[0, 1, 5], **given), ("add_remove", "replace"),
    ),
    "values, Gaussian": (
        lambda **given: snugdp.Histogram(column="value", values=[0, 1, 4], delta=1e-3, **given), ("add_remove",),
    ),
}  # fmt: skip


def draws(query: Any, table: Table, seed: int) -> tuple[Site, ...]:
    witness = Witness(seed)
    query.release(frame(table), noise=witness)
    transcript = witness.transcript()
    assert len(transcript.lots) == (0 if query._totals is not None else 1)  # one key, where rows are chosen
    return transcript.sites


def worst(query: Any, relation: str, seed: int) -> float:
    known = cache(lambda table: draws(query, table, seed))
    pairs = ((known(one), known(other)) for one, other in neighbours(relation))
    return max(sum(loss(a, b) for a, b in zip(one, other, strict=True)) for one, other in pairs)


@sampled(9)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_no_person_can_move_more_than_is_paid_and_one_moves_as_much(name: str, most: int) -> None:
    make, relations = QUERIES[name]
    for relation in relations[:1] if most > 1 else relations:
        query = make(epsilon=EPSILON, person="who", max_rows=most, neighbours=relation)
        cost = query.plan().cost
        assert cost.fits(Budget(EPSILON, "1e-3" if cost.mu_squared else 0, relation))
        paid = cost.mu if cost.mu_squared else float(cost.epsilon)
        assert 0.9 * paid <= worst(query, relation, seed=most) <= paid * (1 + 1e-9)


def test_two_rows_with_the_length_of_one_and_a_half_need_less_noise() -> None:
    """Of a person with rows in two cells the length counts, for Gaussian noise; the sum for pure noise."""
    table = pl.DataFrame({"who": ["a"] * 900, "value": [float(place % 900) for place in range(900)]})
    given: dict[str, Any] = {"column": "value", "values": list(range(900)), "person": "who", "max_rows": 30}
    for delta, each in ((1e-6, 1.0), (0, 1 / 30)):
        witness = Witness(1)
        snugdp.Histogram(epsilon=1, delta=delta, **given).release(table, noise=witness)
        (sums,) = private_inputs(witness.transcript().sites[0])
        assert abs(np.asarray(sums[:900], dtype=float) / FINE - each).max() < 1e-5


@sampled(2)
@pytest.mark.parametrize("most", [1, 2])
def test_a_median_of_persons(most: int) -> None:
    for relation in ("add_remove", "replace")[: 3 - most]:
        query = snugdp.Median(
            column="value", bounds=(0, 4), step=1, epsilon=EPSILON, person="who", max_rows=most, neighbours=relation
        )
        found = worst(query, relation, seed=1)
        assert 0.3 * EPSILON <= found <= EPSILON * (1 + 1e-9)


def test_a_person_counts_for_one() -> None:
    table = pl.DataFrame({"who": ["a"] * 9_000 + ["b"] * 999 + [None], "value": [1.0] * 10_000})
    for most, kept in ((1, 3), (5, 11), (10_000, 10_000)):
        found = snugdp.count(table, epsilon=1e9, person="who", max_rows=most, noise=Simulation(1)).value
        assert found is not None
        assert found.value == kept


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda table, given: snugdp.mean(table, column="value", **given),
    "mean, no bounds, delta": lambda table, given: snugdp.mean(table, column="value", delta=1e-6, **given),
    "variance": lambda table, given: snugdp.variance(table, column="value", bounds=(0, 9), **given),
    "proportion": lambda table, given: snugdp.proportion(table, column="city", values=["Rome"], **given),
    "correlation": lambda table, given: snugdp.correlation(table, columns=("value", "other"), **given),
    "quantiles": lambda table, given: snugdp.quantiles(table, [0.2, 0.7], column="value", bounds=(0, 9), **given),
    "quantile table": lambda table, given: snugdp.quantile_table(table, column="value", bounds=(0, 9), **given),
    "maximum": lambda table, given: snugdp.maximum(table, column="value", bounds=(0, 9), **given),
    "vote": lambda table, given: snugdp.vote(table.select("who", "city"), candidates=["Rome", "Oslo"], **given),
    "median, alone": lambda table, given: snugdp.median(table.select("who", "value"), bounds=(0, 9), **given),
    "bounds": lambda table, given: snugdp.private_bounds(table, columns=["value"], **given),
    "group by": lambda table, given: snugdp.group_by(
        table, "city", keys=["Rome"], statistics={"value": ["mean", "median"]}, bounds={"value": (0, 9)}, **given
    ),
    "describe": lambda table, given: snugdp.describe(table, schema=SCHEMA, **given),
    "keys": lambda table, given: snugdp.group_by(table, "city", delta=1e-6, **given),
}
MORE: dict[str, Callable[[Any, Any], Any]] = {  # with a test or a threshold
    "mode": lambda table, given: snugdp.mode(table.select("who", "city"), categories=["Rome"], delta=0.1, **given),
    "trimmed mean": lambda table, given: snugdp.trimmed_mean(
        table.select("who", "value"), bounds=(0, 9), beta=1, delta=0.1, neighbours="replace", **given
    ),
    "tested median": lambda table, given: snugdp.median(
        table.select("who", "value"), bounds=(0, 9), beta=1, delta=0.1, **given
    ),
}


def orders(persons: int = 400) -> pl.DataFrame:
    who = [person for person in range(persons) for _ in range(1 + person % 4)]
    value = [float(1 + place % 7) for place in range(len(who))]
    city = ["Rome" if person % 3 else "Oslo" for person in who]
    return pl.DataFrame({"who": who, "value": value, "other": value[::-1], "city": city})


@sampled(2)
@pytest.mark.parametrize("name", [*CALLS, *MORE])
def test_every_query_protects_persons(name: str) -> None:
    ledger = MemoryLedger(
        3, 0.2, unit="person", **({"neighbours": "replace"} if name == "trimmed mean" else {}), composition="tight"
    )
    outcome = {**CALLS, **MORE}[name](orders(), {"epsilon": 1, "person": "who", "ledger": ledger})
    assert outcome.unit is Unit.PERSON
    assert ledger.spent == outcome.cost


@sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_several_rows_of_a_person_cost_the_same(name: str) -> None:
    given = {"epsilon": 1, "person": "who", "noise": Simulation(1)}
    one, three = (CALLS[name](orders(), {**given, "max_rows": most}) for most in (1, 3))
    assert one.cost.fits(Budget(1, 1e-6))
    assert three.cost.fits(Budget(1, 1e-6))
    assert three.unit is Unit.PERSON


@pytest.mark.parametrize("name", [name for name in MORE if name != "trimmed mean"])
def test_tests_and_thresholds_refuse_several_rows(name: str) -> None:
    with pytest.raises(ValueError, match="Use max_rows=1, which always works"):
        MORE[name](orders(), {"epsilon": 1, "person": "who", "max_rows": 2})


def test_what_is_wrong_is_said_in_public() -> None:
    table = orders()
    given: dict[str, Any] = {"epsilon": 1, "person": "who"}
    for data, more, error, words in (
        ([1.0, 2.0], {}, TypeError, "these data have no names"),
        (np.arange(3.0), {}, TypeError, "these data have no names"),
        (table, {}, ValueError, "several columns beside"),
        (table, {"column": "who"}, ValueError, "not used for anything else"),
        (table, {"column": "value", "person": "nobody"}, ValueError, 'no column "nobody"'),
        (table, {"column": "value", "person": None, "max_rows": 2}, ValueError, "max_rows needs person"),
        (table, {"column": "value", "max_rows": 0}, ValueError, "max_rows must be a whole number"),
        (table, {"column": "value", "neighbours": "replace", "max_rows": 2}, ValueError, "number of rows is private"),
        (table, {"neighbours": "replace", "max_rows": ("private", 1)}, ValueError, "number of rows is private"),
    ):
        with pytest.raises(error, match=words):
            snugdp.mean(data, **{**given, **more})
    with pytest.raises(ValueError, match="name the columns"):
        snugdp.Covariance(epsilon=1, person="who").release(table)
    with pytest.raises(UnitMismatchError, match="protects single rows, but the release protects persons"):
        snugdp.count(table, ledger=MemoryLedger(1, composition="tight"), **given)
    with pytest.raises(UnitMismatchError, match="Name the column of identifiers"):
        snugdp.count(table, epsilon=1, ledger=MemoryLedger(1, unit="person", composition="tight"))


def test_a_schema_says_whose_rows_belong_together() -> None:
    described = snugdp.Describe(schema=SCHEMA, epsilon=1)
    assert described.plan().unit is Unit.PERSON
    with pytest.raises(ValueError, match="not used for anything else"):
        snugdp.Schema({"value": snugdp.Number(0, 4)}, person="value")
    again = snugdp.Schema.from_toml(SCHEMA.to_toml())
    assert again == SCHEMA != snugdp.Schema({"value": snugdp.Number(0, 4)})
    assert again.person == "who"


def test_answers_are_frames_of_the_library_that_came_in() -> None:
    found = snugdp.group_by(orders().to_pandas(), "city", keys=["Rome"], epsilon=1, person="who").value
    assert found is not None
    assert type(found.frame).__module__.startswith("pandas")


def test_a_key_for_rows_is_none_for_persons() -> None:
    asked = [snugdp.Mean(column="value", epsilon=1, person=person)._question("value") for person in (None, "who")]
    several = snugdp.Mean(column="value", epsilon=1, person="who", max_rows=2)._question("value")
    assert len({each.digest for each in (*asked, several)}) == 3
