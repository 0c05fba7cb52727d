"""Docstrings that are written once: a query inherits what its base says, and a function says what its query does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*?)( : .*)?\n((?:    .*\n?)+)", re.MULTILINE)
_GUARANTEE = re.compile(r"^Guarantee: (?:.+\n?)+", re.MULTILINE)
_ORDER = ("", "Parameters", "Attributes", "Returns", "Raises", "Examples")


def inherit_docstring(query: type) -> None:
    """Complete the docstring of a query by the guarantee that its base gives, and the parameters that it explains."""
    own, above = _sections(query.__doc__), _sections(query.__mro__[1].__doc__)
    _promise(own, above)
    _explain(query, own, _entries(above) | _entries(own))


def takes(query: type) -> Callable[[Function], Function]:
    """Give a function that asks a query its parameters, and those of ``release``: the signature and the docstring."""

    def complete(function: Function) -> Function:
        own, asked = _sections(function.__doc__), _sections(query.__doc__)
        released = _sections(inspect.getdoc(getattr(query, "release")))  # noqa: B009
        entries = _entries(released) | _entries(asked) | _entries(own)
        signature = _signature(function, query)
        if entries:  # there are none with python -OO
            _promise(own, asked)
            own.setdefault("Returns", released["Returns"].replace("Outcome", str(signature.return_annotation)))
            _explain(function, own, {name: entries[name] for name in signature.parameters})
        vars(function)["__signature__"] = signature
        return function

    return complete


def _signature(function: Callable[..., Any], query: type) -> inspect.Signature:
    """The function's own parameters, then the query's by their names, then how it is released."""
    asked, released = inspect.signature(query), inspect.signature(getattr(query, "release"))  # noqa: B009
    own = inspect.signature(function)
    first = {each.name: each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD}
    last = {name: each for name, each in released.parameters.items() if each.kind is each.KEYWORD_ONLY}
    return own.replace(parameters=[*({**first, **asked.parameters, **last} | first).values()])


def _sections(text: str | None) -> dict[str, str]:
    """The sections of a docstring by their titles; what stands before the first has none."""
    first, *rest = _SECTION.split(inspect.cleandoc(text or ""))
    return {"": first.strip(), **{title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}}


def _entries(sections: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The type and the meaning of every parameter."""
    found = _ENTRY.findall(sections.get("Parameters", ""))
    return {name: (kind, told.rstrip()) for names, kind, told in found for name in names.split(", ")}


def _promise(sections: dict[str, str], above: Mapping[str, str]) -> None:
    """Take over a guarantee where there is none."""
    if not _GUARANTEE.search(sections[""]) and (given := _GUARANTEE.search(above[""])):
        sections[""] += f"\n\n{given[0].strip()}"


def _explain(thing: Any, sections: dict[str, str], entries: Mapping[str, tuple[str, str]]) -> None:
    """Write the docstring; neighbours that are explained alike are explained together."""
    if not entries:
        return
    alike = groupby(entries, key=lambda name: entries[name])
    sections["Parameters"] = "\n".join(f"{', '.join(names)}{kind}\n{told}" for (kind, told), names in alike)
    titled = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in _ORDER[1:] if title in sections]
    thing.__doc__ = "\n\n".join((sections[""], *titled)) + "\n"
