"""Two results are the same or not, whatever they are made of: also what carries its numbers inside."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from snugdp import LinearRegression
from snugdp.audit.equality import equal
from snugdp.core.guarantee import Cost


class Plain:
    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def method(self) -> Any:
        return self.inside


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside: Any) -> None:
        self.inside = inside


def fitted(inside: int) -> LinearRegression:
    model = LinearRegression()
    model.coef_ = np.array([inside])
    return model


def closure(inside: int) -> Callable[[int], int]:
    return lambda x: x + inside


def with_default(inside: int) -> Callable[..., int]:
    def function(x: int, y: int = inside) -> int:
        return x + y

    return function


MAKERS: list[Callable[[int], Any]] = [
    lambda n: [n, float("nan")],
    lambda n: np.array([n, 1]),
    lambda n: {"a": {"b": n}},
    lambda n: {"a": np.array([n, np.nan])},
    lambda n: np.array([Fraction(n)], dtype=object),
    lambda n: Cost(mu=n),
    lambda n: {n},
    Plain,
    Slotted,
    closure,
    with_default,
    lambda n: partial(closure, n),
    lambda n: Plain(n).method,
    lambda n: pd.DataFrame({"a": [n]}),
    lambda n: pd.Series([n]),
    lambda n: pl.DataFrame({"a": [n]}),
    lambda n: LinearRegression(epsilon=n),
    fitted,
]


@pytest.mark.parametrize("make", MAKERS)
def test_the_same_and_another(make: Callable[[int], Any]) -> None:
    assert equal(make(1), make(1))
    assert not equal(make(1), make(2))


def test_what_cannot_be_compared_is_not_alike() -> None:
    assert not equal(1, 1.0)
    assert not equal(object(), object())
    assert not equal(iter([]), iter([]))
    assert not equal((x for x in "a"), (x for x in "a"))
    ring: list[Any] = []
    ring.append(ring)
    other: list[Any] = []
    other.append(other)
    assert not equal(ring, other)
    assert equal(ring, ring)
