"""In which order the library can be loaded so that most of it is there before a module that mutants change.

What is loaded before a module has not imported it, so processes that are forked then have the changed module alone, and
load no more than what comes after it.
"""

import importlib
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from unittest import mock

_OURS = "snugdp"
_STUDIES = "snugdp_studies"
_TOP = "tests.mutants.checks"  # loads most of the library, and the self-audit


def module_of(file: str) -> str:
    """The module in a file below ``src/snugdp``.

    >>> module_of("noise/exact/source.py"), module_of("pate/__init__.py")
    ('snugdp.noise.exact.source', 'snugdp.pate')
    """
    return f"{_OURS}.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


def imported() -> dict[str, list[str]]:
    """By module of ours, the modules that are imported while it is loaded. It loads them: for a process that ends."""
    found: dict[str, list[str]] = {}
    ended: dict[str, list[str]] = {}  # uses public names, which are loaded once: whatever was there by then
    plain_statement, plain_call = __import__, importlib.import_module

    def record(*names: str) -> None:
        frame = sys._getframe(2)
        while frame.f_back and not (frame.f_code.co_name == "<module>" and _ours(frame.f_globals["__name__"])):
            frame = frame.f_back
        some = [name for name in names if _ours(name) and name in sys.modules]
        found.setdefault(frame.f_globals["__name__"], []).extend(some)
        for name in some:
            if name.startswith(_STUDIES) and name not in ended:
                ended[name] = [other for other in sys.modules if _ours(other)]

    def statement(name: str, around: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        module = plain_statement(name, around, local, wanted, level)
        record(name, *(f"{name}.{each}" for each in wanted or ()))
        return module

    def call(name: str, package: str | None = None) -> Any:
        module = plain_call(name, package)
        record(name)
        return module

    with mock.patch("builtins.__import__", statement), mock.patch("importlib.import_module", call):
        __import__(_TOP)
    return {name: [*found.get(name, ()), *ended.get(name, ()), *_parents(name)] for name in sys.modules if _ours(name)}


def _ours(name: str) -> bool:
    return name.startswith(_OURS)


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def order(uses: Mapping[str, Collection[str]], changed: Collection[str]) -> list[tuple[str, set[str]]]:
    """Modules to load one after the other, and what each of them loads that was not there: as few changed ones each
    time as can be.
    """
    loads = {name: {name} for name in uses}
    for name in uses:
        ahead = list(uses[name])
        while ahead:
            one = ahead.pop()
            if one not in loads[name]:
                loads[name].add(one)
                ahead += uses.get(one, ())
    left, found = {name: (len(new & {*changed}), len(new), name) for name, new in loads.items()}, []
    while left:
        _, _, name = min(left.values())
        new = loads[name]
        found.append((name, new))
        left.pop(name)
        for other in left:
            if not new.isdisjoint(loads[other]):
                loads[other] = loads[other] - new
                left[other] = (len(loads[other] & {*changed}), len(loads[other]), other)
        left = {other: size for other, size in left.items() if size[1]}
    return found
