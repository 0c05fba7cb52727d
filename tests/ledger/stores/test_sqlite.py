"""What another process can do to the file while a ledger is open: no receipt without a row."""

import sqlite3
from pathlib import Path

import pytest

import snugdp
from snugdp import Budget, Cost, Ledger, TamperedLedgerError
from snugdp.ledger.stores.sqlite import SQLiteStore
from tests.ledger.conftest import TENTH

INTRUDERS = (
    "CREATE TRIGGER t BEFORE INSERT ON ledger BEGIN SELECT raise(ignore); END",
    "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN DELETE FROM ledger WHERE seq = NEW.seq; END",
    "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN UPDATE ledger SET record = '{}' WHERE seq = NEW.seq; END",
)


def behind_its_back(path: Path, statement: str) -> None:
    base = sqlite3.connect(path)
    base.execute(statement)
    base.close()


@pytest.mark.parametrize("schema_checked", [True, False])
def test_a_trigger_cannot_swallow_a_charge(
    somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema_checked: bool
) -> None:
    """The schema is compared inside the transaction; and without that, the row is read back."""
    path = tmp_path / "l"
    with Ledger.open(path, dataset="p", budget=Budget(1)) as ledger:
        ledger.charge(TENTH, "before")
        if not schema_checked:
            monkeypatch.setattr(SQLiteStore, "_check_schema", lambda *_: None)
        for intruder in INTRUDERS:
            behind_its_back(path, intruder)
            with pytest.raises(TamperedLedgerError):
                ledger.charge(TENTH, "x")
            with pytest.raises(TamperedLedgerError):
                snugdp.vote([1, 2], candidates=[1, 2], epsilon=0.1, ledger=ledger)
            behind_its_back(path, "DROP TRIGGER t")
            assert ledger.spent == TENTH
        ledger.charge(TENTH, "after")
        assert ledger.verify().spent == Cost(epsilon=0.2)


def test_views_and_indexes_are_noticed_while_it_is_open(somebody: None, tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger.open(path, dataset="p", budget=Budget(1)) as ledger:
        for kind, statement in (("VIEW", "CREATE VIEW v AS SELECT 1"), ("INDEX", "CREATE INDEX v ON ledger (hash)")):
            behind_its_back(path, statement)
            with pytest.raises(TamperedLedgerError, match="tables were changed"):
                ledger.charge(TENTH, "x")
            behind_its_back(path, f"DROP {kind} v")
        ledger.charge(TENTH, "x")
