"""Cases by name: those that you register, and the library's own where the package ``snugdp-studies`` is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, cast

from snugdp.audit.finding import Case, Finding

if TYPE_CHECKING:
    from snugdp.audit.effort import Effort
    from snugdp.audit.jobs import Job

INSTALL = "The library's own cases are in the package snugdp-studies: pip install snugdp-studies"
_STUDIES = "snugdp_studies"
_others: dict[str, Case[Any]] = {}


class Library(Protocol):
    """The library's own audit, as ``snugdp_studies.audit.library`` is one."""

    GROUPS: tuple[str, ...]  # those that are made quickly first
    PERFORM: Mapping[str, Callable[[str, Effort], list[Finding]]]  # what does a job, by its kind

    def cases(self, group: str) -> Iterator[Case[Any]]:
        """The cases of a group, each made when its turn comes."""

    def jobs(self, *, full: bool) -> Iterator[Job]:
        """Everything that is no case."""


@lru_cache(maxsize=1)
def library() -> Library | None:
    """The library's own audit; nothing where it is not installed."""
    return cast("Library", import_module(f"{_STUDIES}.audit.library")) if find_spec(_STUDIES) else None


def perform(kind: str, name: str, effort: Effort) -> list[Finding]:
    """A job of the library that is no case."""
    own = library()
    if own is None:
        raise LookupError(INSTALL)
    return own.PERFORM[kind](name, effort)


def groups() -> tuple[str, ...]:
    """Of the library's own cases."""
    own = library()
    return () if own is None else own.GROUPS


@lru_cache(maxsize=64)
def _built(group: str) -> tuple[Case[Any], ...]:
    own = library()
    return () if own is None else tuple(own.cases(group))


def registered(group: str | None = None) -> tuple[Case[Any], ...]:
    """All cases, or those of one group; the library's own come first. They are made once: ``forget`` makes them anew.

    They are created once (``forget`` creates them anew), and some of them plan for seconds.

    Parameters
    ----------
    group : str, optional
        The group.

    Returns
    -------
    tuple of Case
        The cases.
    """
    return (*_ours(group), *(case for case in _others.values() if group in (None, case.group)))


def register(case: Case[Any]) -> Case[Any]:
    """Add a case of your own, which every audit and the command line then know.

    Parameters
    ----------
    case : Case
        The case, with a name that no other case has.

    Returns
    -------
    Case
        The same case.
    """
    if not isinstance(case, Case):
        raise TypeError("give a snugdp.audit Case: how to run the mechanism, what it claims, and worst pairs")
    if case.name in _others or any(case.name == ours.name for ours in _ours()):
        raise ValueError(f"there is a case {case.name!r} already: give yours another name")
    _others[case.name] = case
    return case


def case(name: str, group: str | None = None) -> Case[Any]:
    """The case of this name; if its group is known, without making the others."""
    for found in chain(_others.values(), _ours(group)):
        if found.name == name:
            return found
    raise ValueError(f"no case is called {name!r}; names() lists them all{_where()}")


def matching(text: str) -> tuple[Case[Any], ...]:
    """The cases of this name, with what follows after a colon; otherwise of this group, or whose names begin with it.

    Capitals, spaces and the like do not count, so that ``LinearRegression`` or ``trimmed_mean`` is found too.
    """
    wanted, lowered = _bare(text), text.lower()
    if wanted in groups() and lowered not in _others:
        return registered(wanted)
    for some in chain((tuple(_others.values()),), map(_built, groups())):  # no group is made in vain
        if named := tuple(one for one in some if f"{one.name.lower()}:".startswith(f"{lowered}:")):
            return named
    found = tuple(
        one for one in registered() if wanted and wanted in (_bare(one.group), _bare(one.name)[: len(wanted)])
    )
    if not found:
        begin = dict.fromkeys(name.partition(":")[0] for name in names())
        known = f". Names begin with {', '.join(begin)}" if begin else ""
        raise ValueError(f"no case is called {text!r}, nor a group{known}{_where()}")
    return found


def _where() -> str:
    return "" if library() is not None else f". {INSTALL}"


def _bare(text: str) -> str:
    """Letters and digits alone, and without what the names of classes and functions say more than those of cases."""
    plain = "".join(letter for letter in text.lower() if letter.isalnum())
    return plain.removesuffix("regression").removeprefix("private")


def names(group: str | None = None) -> tuple[str, ...]:
    """Of all cases, or of those of a group."""
    return tuple(found.name for found in registered(group))


def forget() -> None:
    """Make the library's cases anew when they are asked for next. What was registered by others goes."""
    _built.cache_clear()
    _others.clear()


def is_ours(found: Case[Any]) -> bool:
    """Whether it is one of the library's own cases, which any process can make."""
    return found.group in groups() and found in _built(found.group)


def _ours(group: str | None = None) -> Iterator[Case[Any]]:
    """One group after the other, each made when its turn comes."""
    return (found for name in groups() if group in (None, name) for found in _built(name))
