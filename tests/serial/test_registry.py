"""The names on disk: an id is for ever, and whatever a release of ours returns has one."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import snugdp
from snugdp.cli.models import Model
from snugdp.estimators.base import told
from snugdp.estimators.registry import BY_ID, BY_NAME, ESTIMATORS, LEFT_OUT, entry_of
from snugdp.report.story import of_estimator
from snugdp.serial.codec import StoredOutcome, dumps
from snugdp.serial.registry import FORMER, TYPES, identity, resolve
from snugdp_studies.audit.side_channels.entry_points import entry_points, rehearsed
from snugdp_studies.audit.side_channels.inputs import Given

ROOT = Path(snugdp.__file__).parent
FROZEN = Path(__file__).with_name("ids.txt")
ROOMS = ("mechanisms", "queries", "pate", "certify", "estimators")


def fields_of(own: str) -> list[str]:
    """The fields of a type, the members of an enum, or the parameters of an estimator that a file holds."""
    if own in BY_ID:
        given = BY_ID[own].load()().get_params(deep=False).items()
        return [name for name, value in given if name not in LEFT_OUT and told(name, value)]
    kind = resolve(own)
    return list(kind.__members__) if issubclass(kind, Enum) else [field.name for field in dataclasses.fields(kind)]


def test_ids_and_their_fields_are_never_changed() -> None:
    """What a file holds under an id must be readable for ever: change a class, and it needs a new id.

    Members may be added to an enum.
    """
    frozen = {own: set(names) for own, *names in map(str.split, FROZEN.read_text().splitlines())}
    today = {own: set(fields_of(own)) for own in (*TYPES, *BY_ID)}
    for own, names in frozen.items():
        grown = own in TYPES and issubclass(resolve(own), Enum)
        known = names <= today[own] if grown else names == today[own]
        assert known, f"{own} was changed: give it a new id, and keep reading the old one"
    assert today == frozen, f"add what is new to {FROZEN.name}"


def test_the_table_is_sound() -> None:
    assert not TYPES.keys() & BY_ID.keys()
    assert len({home for home, _ in TYPES.values()}) == len(TYPES)
    assert len(FORMER) == sum(bool(former) for _, former in TYPES.values())
    for own, (home, _) in TYPES.items():
        kind = resolve(own)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*/[1-9]", own)
        assert issubclass(kind, Enum) or kind.__dataclass_params__.frozen
        assert f"{kind.__module__}:{kind.__qualname__}" == f"snugdp.{home}"
        assert identity(kind) == own
    for entry in ESTIMATORS:
        assert identity(entry.load()) == entry.id
        assert getattr(snugdp, entry.name) is entry.load()
        assert entry.name in snugdp.__all__


def test_every_estimator_is_in_the_table() -> None:
    exported = {name for name in snugdp.__all__ if hasattr(getattr(snugdp, name), "fit")}
    assert exported == BY_NAME.keys()
    assert {entry.command for entry in ESTIMATORS} - {""} == {model.value for model in Model}


def test_what_is_derived_from_a_class_of_ours_has_no_id() -> None:
    class Mine(snugdp.LinearRegression):
        """An estimator of somebody else."""

    class Fit:
        """Nothing but the name of one of ours."""

    Fit.__module__, Fit.__qualname__ = "snugdp.mechanisms.linear.base", "Fit"
    assert [identity(Mine), identity(Fit), identity(int), entry_of(Mine())] == [None] * 4
    with pytest.raises(TypeError, match="a report is made of LinearRegression"):
        of_estimator(Mine())


def types_in(hint: Any) -> Iterator[type]:
    """Our dataclasses and enums that an annotation speaks of."""
    if isinstance(hint, type) and get_origin(hint) is None:
        if hint.__module__.startswith("snugdp.") and (dataclasses.is_dataclass(hint) or issubclass(hint, Enum)):
            yield hint
        return
    origin = get_origin(hint)
    yield from types_in(origin) if isinstance(origin, type) else ()
    for inner in get_args(hint):
        yield from types_in(inner)


def hints_of(thing: Any) -> dict[str, Any]:
    try:
        return get_type_hints(thing)
    except NameError:  # a type that is only there for type checkers
        return {}


def test_whatever_a_mechanism_returns_has_an_id() -> None:
    """By annotations: what a draw, a certifier or a fit of ours returns, and all that it may hold."""
    returned: dict[type, str] = {}
    methods = 0
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        module = import_module(".".join(("snugdp", *path.relative_to(ROOT).with_suffix("").parts)))
        own = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
        for kind in own:
            for name in ("draw", "certify", "fit", "release"):
                if not getattr(kind, "_is_protocol", False) and inspect.isfunction(method := vars(kind).get(name)):
                    methods += 1
                    returned |= dict.fromkeys(types_in(hints_of(method).get("return")), method.__qualname__)
    assert methods > 40
    todo = [*returned, *(resolve(own) for own in TYPES)]
    assert snugdp.Released in todo
    for kind in todo:
        assert identity(kind) is not None, f"{kind} of {returned[kind]} is not in the registry"
        if dataclasses.is_dataclass(kind):
            inner = {one for field in dataclasses.fields(kind) for one in types_in(hints_of(kind).get(field.name))}
            returned |= {one: kind.__name__ for one in inner if one not in returned}
            todo += [one for one in inner if one not in todo]


def test_whatever_an_entry_point_releases_can_be_stored() -> None:
    rng = np.random.default_rng(7)
    table, released = Given(rng.uniform(-1, 1, (200, 2)), rng.integers(0, 2, 200).astype(float)), 0
    for face in entry_points(how=rehearsed):
        shown = face.release(table if face.takes == "table" else np.zeros(30))
        outcome = getattr(shown, "outcome_", shown)
        assert dumps(StoredOutcome(outcome.refused, outcome.value, outcome.certificate)) is not None, face.name
        released += not outcome.refused
    assert released > 10
