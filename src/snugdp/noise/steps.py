"""Noise that is drawn in the steps of a plan, and nowhere else: for rehearsals and audits, where mistakes are shown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from snugdp.noise.base import Noise
from snugdp.noise.requests import Request

T = TypeVar("T")


class StepError(RuntimeError):
    """A draw outside the steps of its plan: nothing pays for it."""


class InSteps(Noise):
    """The same source for a plan with these steps: ``at`` takes only them, and without ``at`` nothing is drawn.

    >>> from snugdp.noise import Simulation
    >>> InSteps(Simulation(1), ["test"]).at("release")
    Traceback (most recent call last):
        ...
    snugdp.noise.steps.StepError: the plan has no step "release"; its steps are "test"
    """

    def __init__(self, noise: Noise, steps: Collection[str]) -> None:
        self._noise, self._steps, self.private = noise, frozenset(steps), noise.private

    def at(self, step: str) -> Noise:
        """The source in this step."""
        if step not in self._steps:
            named = ", ".join(f'"{name}"' for name in sorted(self._steps))
            raise StepError(f'the plan has no step "{step}"; its steps are {named}')
        return self._noise.at(step)

    def answer(self, request: Request[T]) -> T:
        """None outside a step."""
        raise StepError(f'noise is drawn in a step of the plan: noise.at("release").{request.method}(...)')

    def __deepcopy__(self, memo: dict[int, Any]) -> InSteps:
        return self
