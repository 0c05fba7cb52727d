"""A plan: what will be done, what it costs and what to expect, as data, before any row is read."""

from __future__ import annotations

import enum
import importlib
import inspect
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Unit
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Amount, Forecast, Note
from snugdp.propose.theorem import Theorem

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_WORDS = "snugdp.report.plan_text"  # above this package: looked up when a plan is printed
_NOTEBOOK = "snugdp.report.notebook"  # or shown


class StepKind(enum.Enum):
    """What a step is for."""

    STATISTIC = "statistic"  # released on the way; nothing depends on its being right
    TEST = "test"  # what follows is private enough only where it is right: its failure is part of delta
    SELECT = "select"  # what the next steps work on
    RUNS = "runs"  # several releases, of which the best is kept
    RELEASE = "release"


@dataclass(frozen=True)
class StepNoise:
    """What a step draws.

    ``on``: a code for what gets the noise. ``law``: by name. ``scale``: the standard deviation of Gaussian noise, the
    scale of other noise; None where it follows from what was released before. ``unit``: of the scale. ``times``: how
    often it is done. ``params``: further numbers, such as a threshold.
    """

    on: str
    law: str = ""
    scale: float | None = None
    unit: str = ""
    times: int = 1
    params: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One noisy step of a plan and its share of the cost. ``id``: under which its noise is drawn (``Noise.at``)."""

    id: str
    kind: StepKind
    noise: StepNoise
    cost: Cost

    def __post_init__(self) -> None:
        if _SLUG.fullmatch(self.id) is None:
            raise ValueError(f'the id of a step is small letters, digits and "-", such as "test"; not {self.id!r}')


@dataclass(frozen=True)
class Plan:
    """Public from beginning to end: made without touching data, printed for free.

    ``theorem``: that proves it. ``unit``: whom it protects. ``proposal``: by name; an amount of privacy is a fraction
    and is printed rounded up.
    """

    title: str
    theorem: Theorem
    steps: tuple[Step, ...]
    proposal: Mapping[str, float | Fraction] = field(default_factory=dict)
    forecast: Forecast = field(default_factory=Forecast)
    budget: Budget | None = None
    unit: Unit = Unit.ROW

    def __post_init__(self) -> None:
        if not self.steps or len(set(self.step_ids)) != len(self.steps):
            raise ValueError("a plan has at least one step, and every step has an id of its own")

    @property
    def step_ids(self) -> tuple[str, ...]:
        """The ids of all steps, in order."""
        return tuple(step.id for step in self.steps)

    @property
    def cost(self) -> Cost:
        """What the whole plan spends, whether it ends in a release or in a refusal."""
        return sum((step.cost for step in self.steps[1:]), self.steps[0].cost)

    def with_notes(self, *notes: Note) -> Plan:
        """The plan with more that is worth knowing before, such as what is done with missing cells."""
        return replace(self, forecast=replace(self.forecast, notes=(*self.forecast.notes, *notes)))

    def __str__(self) -> str:
        text: str = importlib.import_module(_WORDS).plan_text(self)
        return text

    def _repr_html_(self) -> str:
        page: str = importlib.import_module(_NOTEBOOK).plan_html(self)
        return page


def check_callable(function: object, name: str, /, *arguments: str, **keywords: object) -> None:
    """Refuse what cannot be called as it will be, before anything is charged."""
    wanted = f"{name} must be a function of ({', '.join((*arguments, *(f'{key}=...' for key in keywords)))})"
    if not callable(function):
        raise TypeError(wanted)
    try:
        inspect.signature(function).bind(*arguments, **keywords)
    except TypeError:
        raise TypeError(wanted) from None
    except ValueError:  # a built-in without a signature
        pass


def share_of(value: Real, name: str = "test_share") -> Fraction:
    """A part of the budget, such as that which pays for the test, as an exact number."""
    share = rational(value, name)
    if not 0 < share < 1:
        raise ValueError(f"{name}, a part of the budget, must be between 0 and 1")
    return share


def whole_rows(rows: Any, name: str = "rows") -> int | None:
    """A public number of rows, or of something else, or none."""
    if rows is None:
        return None
    try:
        count = operator.index(rows)
    except TypeError:
        count = 0
    if count < 1 or isinstance(rows, bool):
        raise ValueError(f"{name} must be a whole number of at least 1, known or guessed without the data")
    return count
