"""Looks as a release of their own: they spend what the budget has, on every kind of table, and nothing where all is
known.
"""

from fractions import Fraction

import pytest

from snugdp import Boolean, Budget, Category, Cost, Number, Schema
from snugdp.mechanisms.bounds.looks_release import LooksRelease
from snugdp.tables.schema.kinds import Column, Undeclared

TABLES: list[dict[str, Column]] = [
    {"a": Number()},
    {"a": Number(), "b": Category()},
    {"a": Category()},
    {"a": Undeclared(), "b": Number(0, 1)},
    {"a": Undeclared(), "b": Number(0), "c": Category(), "d": Boolean()},
]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("columns", TABLES)
def test_the_whole_budget_is_spent_and_no_more(columns: dict[str, Column], neighbours: str) -> None:
    budget = Budget("0.7", "1e-7", neighbours)
    cost = LooksRelease(Schema(columns), budget).plan().cost
    assert cost.fits(budget)
    assert not cost.fits(Budget("0.695", "1e-7", neighbours))
    assert cost.mu_squared == LooksRelease(Schema({"a": Number()}), budget).plan().cost.mu_squared
    levels = any(isinstance(kind, Category | Undeclared) for kind in columns.values())
    assert cost.delta == (budget.delta / 20 if levels else Fraction(0))


def test_what_is_known_is_free_without_any_delta() -> None:
    looks = LooksRelease(Schema({"a": Number(0, 1), "b": Boolean()}), Budget(1))
    assert looks.plan().cost == Cost()
    with pytest.raises(ValueError, match="delta > 0"):
        LooksRelease(Schema({"a": Number()}), Budget(1))
