"""Persons with several rows: queries and fits on tables in which all rows of one person come, go or change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import polars as pl

import snugdp
from snugdp.audit.finding import Case
from snugdp.noise import Noise
from snugdp_studies.audit.cases.fitting import Fitted, planned
from snugdp_studies.audit.cases.tables import ODD, Generator, any_of, near

Person: TypeAlias = tuple[Any, tuple[float, ...]]  # an identifier, and the values of the rows
People: TypeAlias = list[Person]
EPSILON, DELTA = 1, 0.01
HIGH = 4.0
BOUNDS = (0, HIGH)
_SCHEMA = snugdp.Schema({"value": snugdp.Number(*BOUNDS), "target": snugdp.Number(*BOUNDS)}, "target", person="who")
_ODD = any_of(*ODD, None, -1.0, HIGH + 1)
_MOST = 3


def cases() -> Iterator[Case[People]]:
    """All of them."""
    for relation in ("add_remove", "replace"):
        yield from _queries(relation)
    yield from _several()
    yield _fit("persons: linear, adassp", method="adassp", max_rows=_MOST)
    yield _fit("persons: linear")
    yield _fit("persons: linear, several rows", max_rows=_MOST)
    yield _fit("persons: linear, private weight", max_rows="private")


def frame(people: People) -> pl.DataFrame:
    """One row after the other; who has no identifier is somebody else in every row."""
    rows = [(None if who is None else str(who), value) for who, values in people for value in values]
    table = pl.DataFrame(rows, schema={"who": pl.String, "value": pl.Float64}, orient="row")
    return table.with_columns(target=pl.col("value") / 2, key=pl.col("value").cast(pl.String))


def _pairs(relation: str, few: int = 0) -> list[tuple[People, People]]:
    """Somebody with as many rows at an end as count, beside ``few`` others; or at the other end instead."""
    others: People = [(f"other {place}", (0.0, HIGH, 1.0)) for place in range(few)]
    high, low = ("new", (HIGH,) * 6), ("new", (0.0,) * 2)
    if relation == "replace":
        return [([*others, high], [*others, low])]
    return [([*others, high], others), ([*others, low], others)]


def _random(relation: str) -> Callable[[Generator], tuple[People, People]]:
    numbers = iter(range(10**9))

    def person(generator: Generator, cell: Callable[[Generator], Any]) -> Person:
        size = 1 if relation == "replace" and generator.random() < 0.2 else int(generator.integers(1, 7))
        who = None if size == 1 and generator.random() < 0.5 else f"p{next(numbers)}"
        return who, tuple(cell(generator) for _ in range(size))

    usual = any_of(0.0, 1.0, HIGH, 2.5)
    plain, odd = (partial(_called, person, cell) for cell in (usual, _ODD))
    return lambda generator: near(generator, plain, odd, relation=relation, least=1, most=12)


def _called(person: Callable[..., Person], cell: Callable[[Generator], Any], generator: Generator) -> Person:
    return person(generator, cell)


def _case(name: str, query: Any, pairs: Sequence[tuple[People, People]], **claims: Any) -> Case[People]:
    def run(people: People, noise: Noise) -> Any:
        return query.release(frame(people), noise=noise)

    plan = query.plan()
    relation = plan.cost.neighbours.value
    return Case(name, run, plan.cost, partial(list, pairs), _random(relation), group="persons", **claims)


def _queries(relation: str) -> Iterator[Case[People]]:
    tag, pairs = ": replace" if relation == "replace" else "", _pairs(relation, 2)
    given: dict[str, Any] = {"epsilon": EPSILON, "neighbours": relation, "person": "who"}
    if relation == "add_remove":
        yield _case("persons: count", snugdp.Count(**given), pairs)
        keys: dict[str, Any] = {"by": "key", "statistics": {"value": "sum"}, "bounds": {"value": BOUNDS}}
        yield _case("persons: keys", snugdp.GroupBy(**keys, delta=DELTA, **given), pairs, tight=False)
        yield _case(
            "persons: mean, bounds found", snugdp.Mean(column="value", delta=DELTA, **given), pairs, tight=False
        )
    yield _case(f"persons: sum{tag}", snugdp.Sum(column="value", bounds=BOUNDS, clip=None, **given), pairs)
    yield _case(f"persons: histogram{tag}", snugdp.Histogram(column="value", edges=[0, 2, 5], **given), pairs)
    median = snugdp.Median(column="value", bounds=BOUNDS, step=1, **given)
    yield _case(f"persons: median{tag}", median, pairs, tight=False)


def _several() -> Iterator[Case[People]]:
    """Several rows of a person are used: the noise hides all of them."""
    given: dict[str, Any] = {"epsilon": EPSILON, "person": "who", "max_rows": _MOST}
    pairs = _pairs("add_remove", 2)
    yield _case("persons: count, several rows", snugdp.Count(**given), pairs)
    total = snugdp.Sum(column="value", bounds=BOUNDS, clip=None, delta=DELTA, **given)
    yield _case("persons: sum, several rows", total, pairs, tight=False)
    yield _case("persons: mean, several rows", snugdp.Mean(column="value", bounds=BOUNDS, **given), pairs, tight=False)
    ranks: dict[str, Any] = {"column": "value", "bounds": BOUNDS, "step": 1, **given}
    yield _case("persons: median, several rows", snugdp.Median(**ranks), pairs, tight=False)
    two = snugdp.Quantiles(q=[0.25, 0.75], **ranks)  # more are halved: random digits then belong to places, not persons
    yield _case("persons: two quantiles, several rows", two, pairs, tight=False)
    keys = snugdp.GroupBy(by="key", delta=DELTA, **given)
    yield _case("persons: keys, several rows", keys, pairs, tight=False)
    yield from _private_caps(pairs)


def _private_caps(pairs: Sequence[tuple[People, People]]) -> Iterator[Case[People]]:
    """A cap is found first, and the noise is scaled by it."""
    given: dict[str, Any] = {"epsilon": EPSILON, "person": "who", "max_rows": ("private", 8)}
    total = snugdp.Sum(column="value", bounds=BOUNDS, **given)
    yield _case("persons: sum, private cap", total, pairs, tight=False)
    listed: dict[str, Any] = {"by": "key", "keys": ["0.0", "4.0"], "statistics": {"value": "mean"}}
    groups = snugdp.GroupBy(**listed, bounds={"value": BOUNDS}, delta=DELTA, **given)
    yield _case("persons: groups, private cap", groups, pairs, tight=False)


def _fit(name: str, **given: Any) -> Case[People]:
    quick = planned(snugdp.LinearRegression)
    how: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "schema": _SCHEMA, "progress": False, **given}

    def run(people: People, noise: Noise) -> Any:
        fitted = quick(noise=noise, **how).fit(frame(people))
        return Fitted(fitted.outcome_, fitted)

    cost, pairs = quick(**how).plan().cost, _pairs("add_remove", 3)
    how_parts: dict[str, Any] = {"tight": False, "parts": not cost.atoms}
    return Case(name, run, cost, partial(list, pairs), _random("add_remove"), group="persons", **how_parts)
