"""Caps that are found privately: where there are none, the plan says so in one sentence, and what to do instead."""

from collections.abc import Callable
from typing import Any

import pytest

import snugdp

SCHEMA = snugdp.Schema({"v": snugdp.Number(0, 4)}, person="who")
LEVELS = snugdp.Schema({"c": snugdp.Category(), "y": snugdp.Number(0, 1)}, "y", person="who")
GIVEN: dict[str, Any] = {"epsilon": 1, "person": "who", "max_rows": "private"}
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "describe": (
        lambda: snugdp.Describe(schema=SCHEMA, epsilon=1, max_rows="private").plan(), "give max_rows as a number",
    ),
    "quantiles": (
        lambda: snugdp.Quantiles(q=[0.2, 0.5], column="v", bounds=(0, 4), **GIVEN).plan(), "give max_rows as a number",
    ),
    "median": (lambda: snugdp.Median(column="v", delta=1e-6, **GIVEN).plan(), "give max_rows as a number"),
    "quantile table": (
        lambda: snugdp.QuantileTable(column="v", bounds=(0, 4), **GIVEN).plan(), "give max_rows as a number",
    ),
    "open bounds": (lambda: snugdp.Mean(column="v", delta=1e-6, **GIVEN).plan(), "give bounds"),
    "open groups": (
        lambda: snugdp.GroupBy(by="c", keys=["a"], statistics={"v": "mean"}, delta=1e-6, **GIVEN).plan(),
        "public bounds",
    ),
    "unlisted keys": (lambda: snugdp.GroupBy(by="c", delta=1e-6, **GIVEN).plan(), "needs listed keys"),
    "components": (
        lambda: snugdp.PCA(1, x_norm=1, **GIVEN).plan(2), "give max_rows as a number here, such as max_rows=1",
    ),
    "levels": (
        lambda: snugdp.LinearRegression(epsilon=2, schema=LEVELS, max_rows=2, method="adassp").plan(),
        "list keys and levels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_where_there_is_no_private_cap_the_plan_says_what_to_do(name: str) -> None:
    ask, words = REFUSED[name]
    with pytest.raises(ValueError, match=words) as caught:
        ask()
    assert len(str(caught.value).split(". ")) <= 2


def test_for_a_single_total_the_plan_offers_a_public_cap_too() -> None:
    few = str(snugdp.Sum(column="v", bounds=(0, 4), **GIVEN).plan())
    assert "a cap that is known from the subject, max_rows=as many as hardly anybody has, is often better" in few
    assert "with a public max_rows=1024" in few
    many = str(snugdp.Histogram(column="v", values=list(range(60)), delta=1e-6, **GIVEN).plan())
    assert "is often better" not in many
    assert "found privately" in many
