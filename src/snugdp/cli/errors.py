"""How the command line says what is wrong, and the exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

ERROR, REFUSED, EXCEEDED = 1, 3, 4  # 0: released, or done; 2: the words of the command are wrong
EXIT_CODES = (
    "Exit codes: 0 released, or done; 1 error (input, files, ledger); 2 wrong usage; 3 refused: the test did not pass, "
    "and the budget is spent; 4 the ledger's budget would be exceeded, and nothing was charged."
)


@contextmanager
def in_plain_words() -> Iterator[None]:
    """A mistake in what was asked for, in a sentence and without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # typer ends quietly: whoever reads what is printed, such as head, has seen enough
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise
        fail(f"Error: {error}", code)


def fail(sentence: str, code: int) -> NoReturn:
    """Say it on the error stream, and end."""
    from snugdp.cli.terminal import harmless

    typer.secho(harmless(sentence), err=True, fg=typer.colors.RED)
    raise typer.Exit(code)


def code_of(error: Exception) -> int | None:
    """The exit code of an error that needs no traceback; None for all others."""
    if isinstance(error, TypeError | ValueError | OSError | ImportError):
        return ERROR
    from snugdp.ledger.errors import BudgetExceededError, LedgerError
    from snugdp.secrecy.secret import PrivateComputationError

    if isinstance(error, BudgetExceededError):
        return EXCEEDED
    if isinstance(error, LedgerError | PrivateComputationError):
        return ERROR
    return REFUSED if type(error).__name__ == "NotReleased" else None
