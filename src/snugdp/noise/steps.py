"""Noise that is drawn in the steps of a plan, and nowhere else: for rehearsals and audits, where mistakes are shown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn, cast

from snugdp.noise.exact.source import Noise


class StepError(RuntimeError):
    """A draw outside the steps of its plan: nothing pays for it."""


def in_steps(noise: Noise, steps: Collection[str]) -> Noise:
    """The same source for a plan with these steps: ``at`` takes only them, and without ``at`` nothing is drawn.

    >>> from snugdp.noise import Simulation
    >>> in_steps(Simulation(1), ["test"]).at("release")
    Traceback (most recent call last):
        ...
    snugdp.noise.steps.StepError: the plan has no step "release"; its steps are "test"
    """
    return cast(Noise, _InSteps(noise, frozenset(steps)))


class _InSteps:
    """A source of noise that has to be asked for a step first."""

    def __init__(self, noise: Noise, steps: frozenset[str]) -> None:
        self._noise, self._steps = noise, steps

    @property
    def private(self) -> bool:
        """As the source."""
        return self._noise.private

    def at(self, step: str) -> Noise:
        """The source in this step."""
        if step not in self._steps:
            named = ", ".join(f'"{name}"' for name in sorted(self._steps))
            raise StepError(f'the plan has no step "{step}"; its steps are {named}')
        return self._noise.at(step)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Noise, name):
            raise AttributeError(name)
        raise StepError(f'noise is drawn in a step of the plan: noise.at("release").{name}(...)')

    def __deepcopy__(self, memo: dict[int, Any]) -> _InSteps:
        return self
