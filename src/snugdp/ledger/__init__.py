"""The only room that writes spending down."""

from snugdp.ledger.memory import BudgetExceededError, MemoryLedger

__all__ = ["BudgetExceededError", "MemoryLedger"]
