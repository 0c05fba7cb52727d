"""Layer B, bad input: whether a call raises, warns, prints or logs, and what it says, is public.

Inputs of the same public form that differ in private cells must look the same from outside: the same error or none, the
same warnings, the same words on the terminal and in logs, and beside a released value the same things kept.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from snugdp.audit.finding import Finding
from snugdp.core.outcome import Released

_SHOWN = 5  # differences in a finding
_LENGTH = 300


@dataclass(frozen=True)
class Input:
    """One input. ``form`` is public, ``content`` is private."""

    form: str
    content: str
    make: Callable[[], Any]


@dataclass(frozen=True)
class Seen:
    """What somebody sees of a call beside the value that it releases."""

    error: str = ""
    warned: tuple[str, ...] = ()
    printed: str = ""
    logged: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = {"raised": self.error, "warned": "; ".join(self.warned), "printed": self.printed}
        parts["logged"] = "; ".join(self.logged)
        return ", ".join(f"{what} {text[:_LENGTH]!r}" for what, text in parts.items() if text) or "nothing"


def watch(call: Callable[[], Any]) -> tuple[Seen, Any]:
    r"""What is seen of a call, down to the file descriptors, and its result.

    >>> watch(lambda: print("somebody"))[0].printed
    'somebody\n'
    """
    result, error, log = None, "", _Log()
    with _log_of(log), warnings.catch_warnings(record=True) as said, _printed() as printed:
        warnings.simplefilter("always")
        try:
            result = call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:  # a panic of a native library is no Exception
            error = _told(problem)
            del problem
    warned = tuple(f"{each.category.__name__}: {each.message}" for each in said)
    return Seen(error, warned, "".join(printed), tuple(log.lines)), result


def bad_input(name: str, release: Callable[[Any], Any], groups: Iterable[list[Input]]) -> Finding:
    """One finding about a release: whether what is seen differs between inputs of one form, the first beside the rest.

    ``release(data)``: pays and releases, for real; what it returns is an outcome or a fitted estimator. ``groups``:
    inputs of one form each, such as ``inputs("column")`` of ``snugdp_studies.audit.side_channels.inputs``.
    """
    count, forms, refused, differences = 0, 0, 0, []
    for group in groups:
        first, kept = watch(partial(call_with, release, group[0])), dict[bool, str]()
        _keep(kept, first[1])
        forms, refused = forms + 1, refused + bool(first[0].error)
        for given in group[1:]:
            count += 1
            seen, result = watch(partial(call_with, release, given))
            if seen != first[0]:
                differences.append(f"{given.form}, {given.content}: {seen}; plain: {first[0]}")
            elif (other := _keep(kept, result)) is not None:
                differences.append(f"{given.form}, {given.content}: kept {other[0]}; otherwise {other[1]}")
    measured = f"{len(differences)} of {count} bad inputs differ ({forms} forms, {refused} of them never read)"
    return Finding(
        "B",
        name,
        "what is raised, warned, printed, logged and kept does not depend on private cells",
        measured,
        passed=count > 0 and not differences,
        detail="; ".join(differences[:_SHOWN]),
    )


def call_with(release: Callable[[Any], Any], given: Input) -> Any:
    """A release of this input, which is made for it."""
    return release(given.make())


def _keep(kept: dict[bool, str], result: Any) -> tuple[str, str] | None:
    """What a result shows beside its value, if it is other than before for an outcome of this kind."""
    if result is None:
        return None
    outcome = getattr(result, "outcome_", result)
    refused = bool(getattr(outcome, "refused", False))
    shown = beside_the_value(result)
    before = kept.setdefault(refused, shown)
    return None if before == shown else (shown, before)


def beside_the_value(result: Any) -> str:
    """An outcome, or a fitted estimator, without what it released: types, cost, receipt, names of attributes.

    >>> import snugdp
    >>> print(beside_the_value(snugdp.vote(["a"], candidates=["a", "b"], epsilon=1)))  # doctest: +ELLIPSIS
    Released: {'cost': ..., 'receipt': "Receipt(...)", 'unit': ...}
    """
    outcome = getattr(result, "outcome_", result)
    state = dict(getattr(outcome, "__dict__", {}))
    if isinstance(outcome, Released):
        del state["value"], state["certificate"]
    words = f"{type(outcome).__name__}: { {name: repr(part) for name, part in state.items()} }"
    return words if outcome is result else f"{words} in {type(result).__name__}: {sorted(vars(result))}"


def _told(problem: BaseException) -> str:
    """All that an error says, with those that it carries along."""
    words, error, known = [], problem, set[int]()
    while error is not None and id(error) not in known:
        known.add(id(error))
        notes = getattr(error, "__notes__", [])
        words.append(": ".join([type(error).__name__, str(error), *map(str, notes)]))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return " <- ".join(words)


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


@contextlib.contextmanager
def _log_of(handler: logging.Handler) -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


@contextlib.contextmanager
def _printed() -> Iterator[list[str]]:
    """What Python writes to its streams, and what native code writes to the file descriptors behind them."""
    found: list[str] = []
    text = io.StringIO()
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with tempfile.TemporaryFile() as file:
        saved = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in saved:
                os.dup2(file.fileno(), number)
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
                yield found
        finally:
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            found += [text.getvalue(), file.read().decode("utf-8", "replace")]
