"""Releases for a part of a table read the rows of that part alone. Proof: ``parts.proof.md``."""

from __future__ import annotations

from snugdp.core.outcome import LedgerLike, UnitMismatchError
from snugdp.ledger.parts import TablePart

NOT_RESTRICTED = (
    "this ledger pays for a part of a table, and this release cannot be restricted to its rows: nothing was charged. "
    "Charge the whole ledger, or ask a query or fit an estimator on a table that has the column of the part"
)
_NAMES = (
    "this part is a mere name, as in ledgers of earlier versions, and no release can be restricted to it: declare "
    'parts by a column, as in ledger.partition("region", ["north", "south"])'
)


def part_of(ledger: LedgerLike | None, person: str | None) -> TablePart | None:
    """The part of the table that this ledger pays for; None for all of it. ``person``: the column of identifiers."""
    part = getattr(ledger, "restricted_to", None)
    if not isinstance(part, TablePart):
        return None
    if part.column is None:
        raise ValueError(_NAMES)
    if person is not None and (part.partition.key is None or part.column != person):  # 2
        raise UnitMismatchError(
            f'a person may have rows in several parts by "{part.column}": for persons, parts are by a hash of their '
            f'identifier, as in ledger.partition("{person}", 4)'
        )
    return part
