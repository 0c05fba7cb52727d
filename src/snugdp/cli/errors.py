"""How the command line says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from snugdp.ledger.errors import BudgetExceededError, LedgerError
from snugdp.secret import PrivateComputationError


@contextmanager
def in_plain_words() -> Iterator[None]:
    """A mistake in what was asked for, in a sentence and without a traceback."""
    try:
        yield
    except (
        TypeError,
        ValueError,
        OSError,
        ImportError,
        LedgerError,
        BudgetExceededError,
        PrivateComputationError,
    ) as error:
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(1) from None
