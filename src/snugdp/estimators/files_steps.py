"""What every step of a fit cost, in a model file: exactly, so that the steps add up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from snugdp.estimators.files_values import decode, encode
from snugdp.guarantee import Cost
from snugdp.ptr.propose import Step

_FIELDS = ("name", "noise", "mu", "epsilon", "delta", "neighbours", "words", "exact", "atoms")


def cost_parts(cost: Cost) -> dict[str, Any]:
    """A cost in plain numbers and in words, for JSON."""
    parts = {"mu": cost.mu, "epsilon": float(cost.epsilon), "delta": float(cost.delta)}
    return {**parts, "neighbours": cost.neighbours.value, "words": repr(cost)}


def steps_to(steps: Sequence[Step], whole: Cost) -> list[dict[str, Any]]:
    """The steps as JSON. ``atoms``, of perturbed objectives, are long: they are named by their places in the whole."""
    return [
        {
            "name": step.name,
            "noise": step.noise,
            **cost_parts(step.cost),
            "exact": encode(replace(step.cost, atoms=()), "the cost of a step"),
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
    if not isinstance(given, dict) or tuple(given) != _FIELDS or not isinstance(given["atoms"], list):
        raise ValueError(f"a step has {', '.join(_FIELDS)}")
    places, cost = given["atoms"], decode(given["exact"])
    known = all(isinstance(place, int) and 0 <= place < len(whole.atoms) for place in places)
    if not known or not isinstance(cost, Cost) or cost.neighbours is not whole.neighbours:
        raise ValueError("the cost of a step must be a part of the whole")
    cost = replace(cost, atoms=tuple(whole.atoms[place] for place in places))
    words = given["name"], given["noise"]
    if not all(isinstance(text, str) for text in words) or {**given, **cost_parts(cost)} != given:
        raise ValueError("a step must have a name, its noise, and the parts of one exact cost")
    return Step(*words, cost)
