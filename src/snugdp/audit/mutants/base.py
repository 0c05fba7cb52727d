"""Mistakes on purpose: the library with one thing wrong at a time, and which layer of the audit sees it.

A mutant changes product code in this process: classes, functions, constants. Everything is put back afterwards, and
what was remembered in between is forgotten. It counts as caught only by a named layer that says nothing about the code
as it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias
from unittest import mock

from snugdp.audit import registry
from snugdp.audit.finding import LAYERS, Finding
from snugdp.audit.pool import in_processes
from snugdp.numerics.threads import one_blas_thread
from snugdp.secrecy.secret import Secret

Change: TypeAlias = tuple[Any, str, Any]  # whose attribute, its name, what it becomes
Changes: TypeAlias = Sequence[Change]
_WEAK = "too weak"


class Check(Protocol):
    """A part of the audit that should see a mutant. It is run on the code as it is, too."""

    def __call__(self, quick: bool) -> list[Finding]:
        """What it found."""


@dataclass(frozen=True)
class Mutant:
    """One mistake. ``does``: in a sentence; ``layers``: those that should see it; ``check``: the cheapest that should.

    ``quick``: one of the few that every test run tries. ``known``: why it is expected to survive, if it is.
    """

    name: str
    does: str
    layers: tuple[str, ...]
    apply: Callable[[], AbstractContextManager[None]] = field(repr=False)
    check: Check = field(repr=False)
    topic: str = ""
    quick: bool = False
    known: str = ""
    number: int = 0

    def __post_init__(self) -> None:
        unknown = set(self.layers) - set(LAYERS)
        if unknown or not self.layers:
            raise ValueError(f"a mutant needs layers, from {', '.join(LAYERS)}")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: caught by which layer, which claim failed and what was measured; or why it survived."""

    mutant: Mutant
    caught: bool
    layer: str = ""
    case: str = ""
    claim: str = ""
    measured: str = ""
    reason: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        one = self.mutant
        words = f"{one.number:2d} {one.name} [{', '.join(one.layers)}]"
        if not self.caught:
            return f"SURVIVED {words}: {self.reason}"
        return f"caught   {words} by {self.layer}, {self.case}: {self.claim}; {self.measured}"


class Topic:
    """The mutants of one kind. It decorates functions that make the changes; their docstrings say what they do."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mutants: list[Mutant] = []

    def __call__(
        self, name: str, layers: str, check: Check, *, quick: bool = False, known: str = ""
    ) -> Callable[[Callable[[], Changes]], Callable[[], Changes]]:
        """Add a mutant. ``layers``: their letters."""

        def add(make: Callable[[], Changes]) -> Callable[[], Changes]:
            does = " ".join((make.__doc__ or "").split())
            self.mutants.append(
                Mutant(name, does, tuple(layers), lambda: changed(make()), check, self.name, quick, known)
            )
            return make

        return add


@contextmanager
def changed(changes: Changes) -> Iterator[None]:
    """With these attributes, and nothing remembered from before; put back at the end, and forgotten again."""
    others = dict(registry._others)
    try:
        with ExitStack() as stack:
            for owner, name, value in changes:
                stack.enter_context(mock.patch.object(owner, name, value))
            forget()
            yield
    finally:
        forget()
        registry._others.update(others)


def forget() -> None:
    """Everything that functions of this package remember."""
    for module in _modules():
        for value in list(vars(module).values()):
            clear = getattr(value, "cache_clear", None)
            if clear is not None and hasattr(value, "cache_info"):
                clear()
    registry.forget()


def everywhere(function: Any, instead: Any) -> list[Change]:
    """The changes that put something in the place of a function in all modules that have it."""
    found = [
        (module, name, instead)
        for module in _modules()
        if not module.__name__.startswith("snugdp.audit")
        for name, value in list(vars(module).items())
        if value is function
    ]
    if not found:
        raise LookupError("nobody has this function")
    return found


def seen(secret: Secret[Any]) -> Any:
    """What is inside, as careless code would get it out."""
    inside: list[Any] = []
    secret.map(inside.append)
    return inside[0]


def run_mutants(
    names: Iterable[str] | None = None,
    progress: Callable[[Verdict], None] | None = None,
    *,
    quick: bool = False,
    processes: int = 1,
) -> list[Verdict]:
    """The verdicts on all mutants, or on those with these names or numbers. ``progress`` gets each when it is there.

    ``quick``: fewer runs in every check, and only the mutants that are marked so unless names are given.
    ``processes``: so many at once; a program that asks for several is guarded by ``if __name__ == "__main__"``.
    """
    from snugdp.audit.mutants import mutants

    wanted = None if names is None else {str(name) for name in names}
    unknown = (wanted or set()) - {key for one in mutants() for key in (one.name, str(one.number))}
    if unknown:
        raise ValueError(f"there is no mutant {', '.join(sorted(unknown))}; snugdp.audit.mutants.mutants() lists them")
    chosen = [
        one
        for one in mutants()
        if (wanted is None and (one.quick or not quick)) or (wanted and {one.name, str(one.number)} & wanted)
    ]
    checks: dict[str, list[int]] = {}
    for one in sorted(chosen, key=lambda one: repr(one.check)):  # those with the same check after each other
        checks.setdefault(repr(one.check), []).append(one.number)
    pieces = [partial(_numbered, tuple(numbers), quick) for numbers in checks.values()]
    verdicts = []
    for found in in_processes(pieces, processes) if processes > 1 else (piece() for piece in pieces):
        for number, rest in found:
            verdicts.append(Verdict(mutants()[number - 1], **rest))
            if progress is not None:
                progress(verdicts[-1])
    return sorted(verdicts, key=lambda verdict: verdict.mutant.number)


def _numbered(numbers: Iterable[int], quick: bool) -> list[tuple[int, dict[str, Any]]]:
    """The verdicts on mutants that share a check, without the mutants: those do not travel to another process."""
    from snugdp.audit.mutants import mutants

    clean: dict[Check, list[Finding]] = {}
    with one_blas_thread():
        found = [judged(mutants()[number - 1], quick, clean) for number in numbers]
    return [(one.mutant.number, {name: v for name, v in vars(one).items() if name != "mutant"}) for one in found]


def judged(mutant: Mutant, quick: bool = False, clean: dict[Check, list[Finding]] | None = None) -> Verdict:
    """The check on the code as it is, which must pass, and on the mutant. ``clean``: what is known of the former."""
    start = time.perf_counter()
    known = {} if clean is None else clean
    if mutant.check not in known:
        known[mutant.check] = mutant.check(quick)
    alarms = [finding for finding in known[mutant.check] if not finding.passed]
    if alarms or not known[mutant.check]:
        words = f"its check fails on the code as it is: {alarms[0]}" if alarms else "its check finds nothing to say"
        return Verdict(mutant, False, reason=words, seconds=time.perf_counter() - start)
    try:
        with mutant.apply():
            found = mutant.check(quick)
    except Exception as problem:  # a mutant that cannot even be planned is not seen by a layer
        words = f"an error instead of findings: {type(problem).__name__}: {problem}"
        return Verdict(mutant, False, reason=words, seconds=time.perf_counter() - start)
    verdict = _verdict(mutant, found)
    return replace(verdict, seconds=time.perf_counter() - start)


def _verdict(mutant: Mutant, found: list[Finding]) -> Verdict:
    failed = [finding for finding in found if not finding.passed]
    for finding in failed:
        if finding.layer in mutant.layers and not finding.detail.startswith(_WEAK):  # weakness is no evidence
            words = f"{finding.measured} ({finding.detail})" if finding.detail else finding.measured
            return Verdict(mutant, True, finding.layer, finding.case, finding.claim, words)
    reason = mutant.known or "; ".join(map(str, found[:2]))
    return Verdict(mutant, False, reason=reason)


def _modules() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name == "snugdp" or name.startswith("snugdp.")]
