"""Every release about persons on all small tables with and without each person: what each draw gives away, exactly.

The walk on one table is replayed on the other with the same answers, so that adaptive releases are covered draw by
draw. Pure costs are held against the exact loss of the run, Gaussian ones against the changes over the deviations.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

import snugdp
from snugdp.audit.finding import Case
from snugdp.audit.replay import path, realised_by
from snugdp.noise import Noise
from tests.effort import often, sampled

Rows = tuple[tuple[float, str], ...]
Table = tuple[Rows, ...]
ONE: tuple[Rows, ...] = (
    ((4.0, "a"),),
    ((0.0, "b"), (4.0, "a")),
    ((4.0, "a"),) * 3,
    ((0.0, "a"), (1.0, "b"), (4.0, "c"), (4.0, "c")),
)
REST: tuple[Table, ...] = ((), (((4.0, "a"), (4.0, "a"), (0.0, "b")), ((1.0, "c"),)), (((0.0, "b"),),) * 3)
BOUNDS = (0, 4)
CELLS = [f"{place}" for place in range(50)] + ["a", "b"]
SCHEMA = snugdp.Schema({"value": snugdp.Number(0, 4), "key": snugdp.Category(["a", "b"])})
QUERIES: dict[str, Callable[..., Any]] = {
    "count": lambda **given: snugdp.Count(**given),
    "sum": lambda **given: snugdp.Sum(column="value", bounds=BOUNDS, **given),
    "mean": lambda **given: snugdp.Mean(column="value", bounds=BOUNDS, **given),
    "variance": lambda **given: snugdp.Variance(column="value", bounds=BOUNDS, **given),
    "standard deviation": lambda **given: snugdp.StandardDeviation(column="value", bounds=BOUNDS, **given),
    "covariance": lambda **given: snugdp.Covariance(columns=("value", "other"), bounds=(BOUNDS, BOUNDS), **given),
    "correlation": lambda **given: snugdp.Correlation(columns=("value", "other"), bounds=(BOUNDS, BOUNDS), **given),
    "proportion": lambda **given: snugdp.Proportion(column="key", values=["a"], **given),
    "histogram": lambda **given: snugdp.Histogram(column="key", values=["a", "b", "c"], **given),
    "many cells": lambda **given: snugdp.Histogram(column="key", values=CELLS, **given),
    "median": lambda **given: snugdp.Median(column="value", bounds=BOUNDS, step=1, **given),
    "maximum": lambda **given: snugdp.Maximum(column="value", bounds=BOUNDS, step=1, **given),
    "two quantiles": lambda **given: snugdp.Quantiles(q=[0.3, 0.8], column="value", bounds=BOUNDS, step=1, **given),
    "groups": lambda **given: snugdp.GroupBy(
        by="key", keys=["a", "b"], statistics={"value": ["mean", "variance"]}, bounds={"value": BOUNDS}, **given
    ),
    "medians of groups": lambda **given: snugdp.GroupBy(
        by="key", keys=["a", "b"], statistics={"value": ["median"]}, bounds={"value": BOUNDS}, **given
    ),
    "describe": lambda **given: snugdp.Describe(schema=SCHEMA, **given),
}
PRIVATE = ("count", "sum", "mean", "variance", "proportion", "histogram", "many cells", "groups")
CASES = [
    *itertools.product(QUERIES, (1, 2), (0, 1e-6)),
    *((name, ("private", 8), delta) for name in PRIVATE for delta in (0, 1e-6)),
]


def frame(table: Table) -> pl.DataFrame:
    rows = [(f"p{who}", value, 4 - value, key) for who, some in enumerate(table) for value, key in some]
    columns = {"who": pl.String, "value": pl.Float64, "other": pl.Float64, "key": pl.String}
    return pl.DataFrame(rows[::-1], schema=columns, orient="row")


def pairs() -> Iterator[tuple[Table, Table]]:
    """With and without the last person, both ways."""
    for rest, one in itertools.product(REST, ONE):
        yield (*rest, one), rest
        yield rest, (*rest, one)


@sampled(13)
@pytest.mark.parametrize(("name", "most", "delta"), CASES)
def test_no_draw_gives_away_more_of_a_person_than_is_paid(name: str, most: Any, delta: float) -> None:
    query = QUERIES[name](epsilon=1, delta=delta, person="who", max_rows=most)
    cost, largest = query.plan().cost, 0.0

    def run(table: Table, noise: Noise) -> Any:
        return query.release(frame(table), noise=noise)

    case: Case[Table] = Case(name, run, cost, list, None)
    for seed, (one, other) in enumerate(itertools.islice(pairs(), 0, None, often(2, 1))):
        walk = path(case, one, other, seed)
        assert not walk.reason
        if cost.mu_squared:
            realised = realised_by(walk)
            assert not realised.other
            assert realised.mu_squared <= cost.mu_squared
            assert realised.epsilon <= cost.epsilon
            largest = max(largest, float(realised.mu_squared / cost.mu_squared))
        else:
            assert abs(walk.loss) <= float(cost.epsilon) * (1 + 1e-9)
            largest = max(largest, abs(walk.loss) / float(cost.epsilon))
    assert largest > 0
