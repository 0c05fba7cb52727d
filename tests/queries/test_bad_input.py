"""Bad input: what is public is refused before anything is charged; what is private is mapped and never noticed."""

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import Cost, MemoryLedger, Simulation

GOOD: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1, "delta": 1e-6}
ROWS = [1.0, 2.0, 3.0] * 100


def refused_before_charging(call: Callable[[MemoryLedger], Any], error: type[Exception], message: str) -> None:
    """A ledger of the other relation is refused first, whatever else is wrong."""
    told = []
    for relation in ("add_remove", "replace"):
        ledger = MemoryLedger(100, 0.1, relation, composition="tight")
        with pytest.raises((error, snugdp.RelationMismatchError)) as caught:
            call(ledger)
        assert ledger.spent == Cost(neighbours=relation)
        told += [] if isinstance(caught.value, snugdp.RelationMismatchError) else [str(caught.value)]
    assert told
    assert all(re.search(message, each) for each in told), told


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": 2}, "delta"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": 0, "beta": 0.001}, "delta"),
        ({"bounds": (10, 0)}, "lower bound must be less"),
        ({"bounds": (5, 5)}, "lower bound must be less"),
        ({"bounds": (0, math.inf)}, "finite"),
        ({"bounds": (math.nan, 1)}, "finite"),
        ({"bounds": "public"}, "bounds must be a pair"),
        ({"bounds": 10}, "pair"),
        ({"bounds": (0, 1, 2)}, "pair"),
        ({"bounds": ("low", "high")}, "finite"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"beta": -1}, "beta"),
        ({"beta": math.nan}, "beta"),
        ({"rows": 0}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"test_share": 0}, "test_share"),
        ({"test_share": 1}, "test_share"),
        ({"missing": 11}, "missing"),
    ],
)
@pytest.mark.parametrize("query", ["median", "quantile", "trimmed_mean"])
def test_bad_parameters(query: str, changes: dict[str, Any], message: str) -> None:
    function = getattr(snugdp, query)
    extra = {"q": 0.5, "neighbours": "replace"} if query == "quantile" else {}
    given = {**extra, **GOOD, **changes}
    refused_before_charging(lambda ledger: function(ROWS, **given, ledger=ledger), ValueError, message)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"delta": 2}, ValueError, "delta"),
        ({"bounds": (10, 0)}, ValueError, "lower bound must be less"),
        ({"bounds": "public"}, ValueError, "bounds must be a pair"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"missing": 11}, ValueError, "missing"),
        ({"step": -1}, ValueError, "step"),
        ({"step": 11}, ValueError, "two multiples"),
        ({"step": 1e-30}, ValueError, "too small"),
        ({"step": "often"}, ValueError, "step"),
        ({"column": 3}, TypeError, "column"),
    ],
)
@pytest.mark.parametrize("query", ["median", "quantile", "quantiles", "interquartile_range", "minimum", "maximum"])
def test_bad_parameters_of_draws(query: str, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    which: dict[str, Any] = {"quantile": {"q": 0.5}, "quantiles": {"q": [0.1, 0.2, 0.5]}}
    extra = which.get(query, {})
    given = {**GOOD, **extra, **changes}
    refused_before_charging(lambda ledger: getattr(snugdp, query)(ROWS, **given, ledger=ledger), error, message)


@pytest.mark.parametrize(
    ("query", "changes", "message"),
    [
        ("median", {"method": "guess"}, "method"),
        ("median", {"method": "exponential", "beta": 1}, "beta"),
        ("quantile", {"q": 0.5, "beta": 1}, 'neighbours="replace"'),
        ("quantile", {"q": 0.5, "method": "test"}, 'neighbours="replace"'),
        ("quantile", {"q": 0}, "minimum"),
        ("quantile", {"q": 1}, "maximum"),
        ("quantile", {"q": -0.5}, "between 0 and 1"),
        ("quantile", {"q": "1e-9"}, "millionth"),
        ("quantiles", {"q": []}, "list of quantiles"),
        ("quantiles", {"q": "0.5"}, "list of quantiles"),
        ("quantiles", {"q": 0.5}, "list of quantiles"),
        ("quantiles", {"q": [0.5, 1]}, "maximum"),
        ("quantiles", {"q": [0.5, "x"]}, "q must be"),
        ("maximum", {"beyond": -1}, "beyond"),
        ("maximum", {"beyond": 1 << 41}, "beyond"),
    ],
)
def test_bad_questions(query: str, changes: dict[str, Any], message: str) -> None:
    given = {**GOOD, **changes}
    refused_before_charging(lambda ledger: getattr(snugdp, query)(ROWS, **given, ledger=ledger), ValueError, message)


def test_beyond_is_a_whole_number() -> None:
    for beyond in (2.5, True, "3"):
        with pytest.raises(TypeError, match="beyond"):
            snugdp.Minimum(bounds=(0, 10), epsilon=1, beyond=beyond)  # type: ignore[arg-type]


def test_parameters_of_one_query() -> None:
    refused_before_charging(lambda ledger: snugdp.quantile(ROWS, 1.5, **GOOD, ledger=ledger), ValueError, "q must be")
    refused_before_charging(
        lambda ledger: snugdp.trimmed_mean(ROWS, trim=0.5, **GOOD, ledger=ledger), ValueError, "trim"
    )
    refused_before_charging(
        lambda ledger: snugdp.trimmed_mean(ROWS, **GOOD, neighbours="add_remove", ledger=ledger),
        ValueError,
        "proved for",
    )


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (3.5, TypeError, "cannot read a column"),
        ("salary", TypeError, "cannot read a column"),
        (None, TypeError, "cannot read a column"),
        ({"a": 1}, TypeError, "cannot read a column"),
        ({1, 2}, TypeError, "cannot read a column"),
        ((x for x in ROWS), TypeError, "cannot read a column"),
        (np.ones((2, 2)), ValueError, "one-dimensional"),
        (np.array(["x", "y"]), TypeError, "numbers"),
        (np.array([1 + 2j]), TypeError, "numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, "numbers"),
        (pl.Series([datetime.date(2020, 1, 1)]), TypeError, "numbers"),
        (pd.DataFrame({"a": ROWS}), TypeError, "take one column"),
        (pl.DataFrame({"a": ROWS}), TypeError, "cannot read a column"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_containers(data: Any, error: type[Exception], message: str) -> None:
    refused_before_charging(lambda ledger: snugdp.median(data, **GOOD, ledger=ledger), error, message)


def test_a_ledger_of_another_relation() -> None:
    ledger = MemoryLedger(10, 1e-3, "replace", composition="tight")
    with pytest.raises(snugdp.RelationMismatchError):
        snugdp.median(ROWS, **GOOD, ledger=ledger)
    assert ledger.spent == Cost(neighbours="replace")


def test_nothing_but_text_is_not_noticed_without_a_declared_type() -> None:
    """One more row that is a number would otherwise be seen: the error would go away."""
    for text in (["x", "y"], [b"x"]):
        objects = np.array(text, dtype=object)
        for data in (text, tuple(text), objects, pd.Series(text), pl.Series(map(str, text)), [*text, 1.0]):
            assert snugdp.median(data, **GOOD, noise=Simulation(0)).refused in (True, False)


def test_rows_must_be_the_length_where_it_is_public() -> None:
    refused_before_charging(
        lambda ledger: snugdp.median(ROWS, **GOOD, neighbours="replace", rows=7, ledger=ledger), ValueError, "length"
    )
    guess: Any = np.int64(7)
    assert snugdp.median(ROWS, **GOOD, rows=guess, noise=Simulation(0)).cost.neighbours.value == "add_remove"


@pytest.mark.parametrize("bounds", [(1e16, 1e16 + 2), (0.3, 0.30000000000000004), ("1", "1.00000000000000000001")])
def test_bounds_that_no_float_can_tell_apart(bounds: Any) -> None:
    changed = {**GOOD, "bounds": bounds, "beta": 0}
    refused_before_charging(lambda ledger: snugdp.median(ROWS, **changed, ledger=ledger), ValueError, "too close")


def test_a_missing_delta_is_found_when_the_query_is_made() -> None:
    with pytest.raises(ValueError, match="delta"):
        snugdp.Median(bounds=(0, 10), epsilon=1, beta=1)


def test_an_empty_column_is_a_public_mistake_under_replace() -> None:
    refused_before_charging(
        lambda ledger: snugdp.median([], **GOOD, neighbours="replace", ledger=ledger), ValueError, "empty"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"categories": []}, ValueError, "empty"),
        ({"categories": "abc"}, TypeError, "list of labels"),
        ({"categories": ["a", "a"]}, ValueError, "same label"),
        ({"categories": {"a", "b"}}, TypeError, "list of labels"),
        ({"categories": ["a", ["b"]]}, TypeError, "not containers"),
        ({"categories": ["a", math.nan]}, ValueError, "NaN"),
        ({"categories": [1, True]}, ValueError, "same label"),
        ({"delta": 0}, ValueError, "delta"),
        ({"delta": 0.7}, ValueError, "delta"),
        ({"epsilon": 0}, ValueError, "epsilon"),
    ],
)
def test_bad_mode(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    query = {"categories": ["a", "b"], "epsilon": 1, "delta": 1e-6, **arguments}
    refused_before_charging(lambda ledger: snugdp.mode(["a"], **query, ledger=ledger), error, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"law": "uniform"}, "law"),
        ({"law": "gaussian"}, "delta"),
        ({"noise_epsilon": 2}, "delta"),
        ({"noise_epsilon": 2, "delta": 1e-6, "candidates": ["a", "b", "c"]}, "two candidates"),
        ({"noise_epsilon": -2, "delta": 1e-6}, "greater than 0"),
        ({"candidates": []}, "empty"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": 0.9}, "delta"),
        ({"test_share": 7}, "test_share"),
    ],
)
def test_bad_vote(arguments: dict[str, Any], message: str) -> None:
    query = {"candidates": ["a", "b"], "epsilon": 1, **arguments}
    refused_before_charging(lambda ledger: snugdp.vote(["a"], **query, ledger=ledger), ValueError, message)
