"""The only room that writes spending down."""

from typing import TYPE_CHECKING

from snugdp.lazy import loader

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.entries import Entry, Verification
    from snugdp.ledger.errors import (
        BudgetExceededError,
        ForeignProcessError,
        KeyConflictError,
        LedgerError,
        TamperedLedgerError,
        UnwrittenError,
    )
    from snugdp.ledger.memory import MemoryLedger
    from snugdp.ledger.view import View

__all__ = [
    "BudgetExceededError",
    "Entry",
    "ForeignProcessError",
    "KeyConflictError",
    "Ledger",
    "LedgerError",
    "MemoryLedger",
    "TamperedLedgerError",
    "UnwrittenError",
    "Verification",
    "View",
]

__getattr__ = loader(
    __name__,
    {
        "snugdp.ledger.book": "Ledger",
        "snugdp.ledger.entries": "Entry Verification",
        "snugdp.ledger.errors": "BudgetExceededError ForeignProcessError KeyConflictError LedgerError "
        "TamperedLedgerError UnwrittenError",
        "snugdp.ledger.memory": "MemoryLedger",
        "snugdp.ledger.view": "View",
    },
)
