"""The only room that writes spending down."""

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
