"""A ledger protects one unit: rows, persons or teachers; releases for others are refused before anything is drawn."""

from pathlib import Path
from typing import Any

import pytest

import snugdp
from snugdp import Budget, Cost, Ledger, MemoryLedger, Unit, UnitMismatchError
from snugdp.release.context import ReleaseContext

BUDGET = Budget(1, 1e-6)
LABELS = {
    None: Unit.ROW,
    "row": Unit.ROW,
    "one row": Unit.ROW,
    "one customer": Unit.ROW,  # a name for a row, as labels were before there were units
    "one person": Unit.ROW,
    "person": Unit.PERSON,
    "teacher": Unit.TEACHER,
}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_a_unit_or_a_name_for_a_row(tmp_path: Path, label: str | None) -> None:
    where = tmp_path / "people.ledger"
    with Ledger.open(where, dataset="people", budget=BUDGET, unit=label) as ledger:
        assert ledger.unit == ("one row" if label in (None, "row") else label)
        assert Unit.of_label(ledger.unit) is LABELS[label]
        assert ledger.once("a key").unit == ledger.unit
    Ledger.open(where, unit=label).close()
    with pytest.raises(ValueError, match="has unit="):
        Ledger.open(where, unit="somebody else")


def test_a_unit_may_be_given_as_one(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", dataset="people", budget=BUDGET, unit=Unit.PERSON) as ledger:
        assert ledger.unit == MemoryLedger(1, unit=Unit.PERSON).unit == "person"
        assert "protects one person, whatever the number of rows" in ledger.show()
    with pytest.raises(ValueError, match='unit must be "row", "person" or "teacher"'):
        MemoryLedger(1, unit="one customer")


def test_releases_for_others_are_refused_and_cost_nothing(tmp_path: Path) -> None:
    rows: Any = {"who": ["a", "a", "b"], "value": [1.0, 2.0, 3.0]}
    import polars as pl

    table = pl.DataFrame(rows)
    given: Any
    for unit, given in (("person", {}), ("row", {"person": "who"})):
        with Ledger.open(tmp_path / f"{unit}.ledger", dataset="orders", budget=BUDGET, unit=unit) as ledger:
            for account in (ledger, ledger.once("a key"), str(tmp_path / f"{unit}.ledger")):
                with pytest.raises(UnitMismatchError, match="must not be added, and nothing was drawn"):
                    snugdp.count(table, epsilon=1, ledger=account, **given)
            assert ledger.spent == Cost()
            assert not ledger.entries()


def test_labels_of_teachers_are_taken_by_all_ledgers() -> None:
    for unit in Unit:
        ReleaseContext(ledger=MemoryLedger(1, unit=unit), unit=Unit.TEACHER)
    with pytest.raises(UnitMismatchError, match="protects teachers, but the release protects single rows"):
        ReleaseContext(ledger=MemoryLedger(1, unit="teacher"))


def test_an_account_that_knows_no_unit_takes_all() -> None:
    class Plain:
        def charge(self, cost: Cost, what: str) -> snugdp.Receipt:
            return snugdp.Receipt("plain", 1, what, cost)

    assert snugdp.count([1, 2], epsilon=1, ledger=Plain()).unit is Unit.ROW
    ReleaseContext(ledger=Plain(), unit=Unit.PERSON)
