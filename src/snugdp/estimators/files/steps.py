"""What every step of a fit cost, in a model file: exactly, so that the steps add up to the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from snugdp.core.guarantee import Cost
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.serial.codec import decode, encode
from snugdp.serial.costs import PLAIN_PARTS, cost_parts

_FIELDS = ("id", "kind", "noise", *PLAIN_PARTS, "neighbours", "words", "exact", "atoms")
_LATER = ("variation", "exact")  # files that were written before they were added do not have them
_LAST_BITS = 1e-15  # relative; plain numbers of these files were rounded to the nearest float


def agrees(given: Any, made: dict[str, Any]) -> bool:
    """Whether what a file tells people is what its exact amounts say. The words may be those of another version."""
    if not isinstance(given, dict) or not made.keys() - set(_LATER) <= given.keys() <= made.keys():
        return False
    return isinstance(given.get("words"), str) and all(
        _alike(value, made[name]) for name, value in given.items() if name != "words"
    )


def _alike(given: Any, made: Any) -> bool:
    if isinstance(made, float):
        return isinstance(given, float) and math.isclose(given, made, rel_tol=_LAST_BITS)
    return bool(given == made)


def steps_to(steps: Sequence[Step], whole: Cost) -> list[dict[str, Any]]:
    """The steps as JSON. ``atoms``, of perturbed objectives, are long: they are named by their places in the whole."""
    return [
        {
            "id": step.id,
            "kind": step.kind.value,
            "noise": encode(step.noise),
            **cost_parts(step.cost),
            "exact": encode(replace(step.cost, atoms=())),
            "atoms": [whole.atoms.index(atom) for atom in step.cost.atoms],
        }
        for step in steps
    ]


def steps_from(given: Any, whole: Cost) -> tuple[Step, ...]:
    """The steps again; whatever is wrong, or does not add up to the whole, is a ``ValueError``."""
    if not isinstance(given, list) or not given:
        raise ValueError('"steps" must be a list of what every step cost')
    steps = tuple(_step(each, whole) for each in given)
    if sum((step.cost for step in steps[1:]), steps[0].cost) != whole:
        raise ValueError('"steps" do not add up to the cost of the whole')
    return steps


def _step(given: Any, whole: Cost) -> Step:
    if not isinstance(given, dict) or not {*_FIELDS} - {"variation"} <= given.keys() <= {*_FIELDS}:
        raise ValueError(f"a step has {', '.join(_FIELDS)}")
    places, cost = given["atoms"], decode(given["exact"])
    known = isinstance(places, list) and all(
        isinstance(place, int) and 0 <= place < len(whole.atoms) for place in places
    )
    if not known or not isinstance(cost, Cost) or cost.neighbours is not whole.neighbours:
        raise ValueError("the cost of a step must be a part of the whole")
    cost = replace(cost, atoms=tuple(whole.atoms[place] for place in places))
    noise, own = decode(given["noise"]), ("id", "kind", "noise", "exact", "atoms")
    told = {name: value for name, value in given.items() if name not in own}
    if not (isinstance(given["id"], str) and isinstance(noise, StepNoise) and agrees(told, cost_parts(cost))):
        raise ValueError("a step must have an id, a kind, its noise, and the parts of one exact cost")
    return Step(given["id"], StepKind(given["kind"]), noise, cost)
