"""The only package that writes spending down."""

from typing import TYPE_CHECKING

from snugdp.lazy import loader

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.composition.filter import Composition
    from snugdp.ledger.entries import Entry, Overview, Verification
    from snugdp.ledger.errors import (
        BudgetExceededError,
        ForeignProcessError,
        KeyConflictError,
        LedgerError,
        LedgerWriteError,
        TamperedLedgerError,
    )
    from snugdp.ledger.history.state import Adoption
    from snugdp.ledger.memory import MemoryLedger
    from snugdp.ledger.view import View

__all__ = [
    "Adoption",
    "BudgetExceededError",
    "Composition",
    "Entry",
    "ForeignProcessError",
    "KeyConflictError",
    "Ledger",
    "LedgerError",
    "LedgerWriteError",
    "MemoryLedger",
    "Overview",
    "TamperedLedgerError",
    "Verification",
    "View",
]

__getattr__ = loader(
    __name__,
    {
        "snugdp.ledger.book": "Ledger",
        "snugdp.ledger.entries": "Entry Overview Verification",
        "snugdp.ledger.composition.filter": "Composition",
        "snugdp.ledger.errors": "BudgetExceededError ForeignProcessError KeyConflictError LedgerError "
        "TamperedLedgerError LedgerWriteError",
        "snugdp.ledger.memory": "MemoryLedger",
        "snugdp.ledger.history.state": "Adoption",
        "snugdp.ledger.view": "View",
    },
)
