"""What a ledger says when it cannot go on. Everything in these messages is public."""

from __future__ import annotations


class BudgetExceededError(RuntimeError):
    """The ledger does not have enough left. Nothing was charged and nothing was drawn.

    Examples
    --------
    >>> import snugdp
    >>> snugdp.MemoryLedger(epsilon=1).charge(snugdp.Cost(epsilon=2), "too much")
    Traceback (most recent call last):
        ...
    snugdp.ledger.errors.BudgetExceededError: the budget does not cover this release ...
    """


class LedgerError(RuntimeError):
    """A ledger that must not be used as it is. Nothing was drawn.

    Examples
    --------
    >>> issubclass(TamperedLedgerError, LedgerError)
    True
    """


class TamperedLedgerError(LedgerError):
    """The ledger is not what it was: rows, limits or the anchor were changed, lost or set back to an older state.

    It stays closed, because nobody knows any more what was spent. Restore the newest copy of the ledger *and* its
    anchor, or treat the whole budget as spent.
    """


class KeyConflictError(LedgerError):
    """A key names one release. It was used for another one, or its output is no longer stored."""


class LedgerWriteError(LedgerError):
    """The ledger could not be read or written: disk full, read-only, locked for too long, server gone.

    The message says whether a charge stands. Nothing was released.
    """


class ForeignProcessError(LedgerError):
    """A ledger was opened by one process and used by another, which was forked from it."""


LEDGER_ERRORS = (LedgerError, TamperedLedgerError, KeyConflictError, LedgerWriteError, ForeignProcessError)
