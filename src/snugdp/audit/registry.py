"""All cases by name: ours, made when they are first asked for, and those that others register.

>>> from snugdp.audit.registry import names
>>> "vote: gumbel" in names("queries")
True
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import chain
from typing import Any

from snugdp.audit.finding import Case

# The modules of ours below ``cases``, by group: one group can be built without the others.
ROOMS: dict[str, tuple[str, ...]] = {
    "queries": ("queries", "labels"),
    "linear": ("linear",),
    "glm": ("glm",),
    "pca": ("pca",),
    "sparse": ("sparse",),
    "pate": ("pate",),
    "selection": ("selection",),
    "framework": ("framework",),
}
_SWIFT_FIRST = ("framework", "queries", "pca", "pate", "sparse", "selection", "glm", "linear")
# A walk of these takes some fifty milliseconds or more: give them fewer runs than the others.
SLOW = frozenset(
    {
        "bounds",
        "bounds: replace",
        "bounds: of two columns",
        "linear: auto",
        "linear: objective, two stages",
        "linear: posterior",
        "linear: adaops",
        "logistic: auto",
        "logistic: output",
        "logistic: output, one ridge, round",
        "logistic: output, as curved as the rows",
        "logistic: softmax, auto",
        "logistic: one against the rest",
        "logistic: one against the rest, auto",
        "poisson: output",
        "pca: projector",
        "pca: projector, as many as stand out",
        "PATEClassifier: plain",
        "PATEClassifier: plain: replace",
        "PATEClassifier: distance",
        "sparse linear: gumbel",
        "sparse logistic: gumbel",
        "sparse logistic: output",
        "selection: every proposal once",
        "selection: proposals of an estimator",
    }
)
_others: dict[str, Case[Any]] = {}


@lru_cache(maxsize=len(ROOMS))
def _built(group: str) -> tuple[Case[Any], ...]:
    rooms = (import_module(f"snugdp.audit.cases.{room}") for room in ROOMS[group])
    return tuple(case for room in rooms for case in room.cases())


def registered(group: str | None = None) -> tuple[Case[Any], ...]:
    """All cases, or those of one group; those of this package come first.

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
    groups = [name for name in ROOMS if group in (None, name)]
    ours = [case for name in groups for case in _built(name)]
    return (*ours, *(case for case in _others.values() if group in (None, case.group)))


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
    raise ValueError(f"no case is called {name!r}; names() lists them all")


def matching(text: str) -> tuple[Case[Any], ...]:
    """The cases of this name, with what follows after a colon; otherwise of this group, or whose names begin with it.

    Capitals, spaces and the like do not count, so that ``LinearRegression`` or ``trimmed_mean`` is found too.
    """
    wanted, lowered = _bare(text), text.lower()
    if wanted in ROOMS and lowered not in _others:
        return registered(wanted)
    for some in chain((tuple(_others.values()),), map(_built, _SWIFT_FIRST)):  # no group is made in vain
        if named := tuple(one for one in some if f"{one.name.lower()}:".startswith(f"{lowered}:")):
            return named
    found = tuple(
        one for one in registered() if wanted and wanted in (_bare(one.group), _bare(one.name)[: len(wanted)])
    )
    if not found:
        begin = dict.fromkeys(name.partition(":")[0] for name in names())
        raise ValueError(f"no case is called {text!r}, nor a group. Names begin with {', '.join(begin)}")
    return found


def _bare(text: str) -> str:
    """Letters and digits alone, and without what the names of classes and functions say more than those of cases."""
    plain = "".join(letter for letter in text.lower() if letter.isalnum())
    return plain.removesuffix("regression").removeprefix("private")


def names(group: str | None = None) -> tuple[str, ...]:
    """Of all cases, or of those of a group."""
    return tuple(found.name for found in registered(group))


def slow(found: Case[Any]) -> bool:
    """Whether a walk takes so long that fewer of them must do."""
    return found.name in SLOW


def forget() -> None:
    """Make our cases anew when they are asked for next, as is needed after the library was changed under them.

    What was registered by others goes too.
    """
    _built.cache_clear()
    _others.clear()


def ours() -> tuple[Case[Any], ...]:
    """The cases of this package."""
    return tuple(_ours())


def _ours(group: str | None = None) -> Iterator[Case[Any]]:
    """One group after the other, each made when its turn comes; those that are made quickly first."""
    groups = [name for name in _SWIFT_FIRST if group in (None, name)]
    return (found for name in groups for found in _built(name))
