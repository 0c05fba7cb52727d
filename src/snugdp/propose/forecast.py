"""What to expect of a release, from public quantities alone: numbers and codes. Words are made where they are shown."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

Amount: TypeAlias = int | float | Fraction | str

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
EPSILONS = (*(float(f"{step * size:g}") for size in (0.01, 0.1, 1.0) for step in _STEPS), 10.0)  # that are advised
ROWS_LIKE = "like-"  # how the code of a note begins that says of what rows forecasts are true


class ErrorOf(enum.Enum):
    """What the error of a fit is an error of."""

    PREDICTION = "prediction"
    STANDARDISED = "standardised"  # predictions, in standard deviations of the target
    LINEAR = "linear"  # the linear function inside a model for labels or counts
    CHOSEN = "chosen"  # predictions, once columns are chosen
    VARIANCE = "variance"  # the share of the variance that a component must exceed to stand out from noise


@dataclass(frozen=True)
class Accuracy:
    """Of a method for a number of rows, in the units of the scaled rows.

    ``noise``: standard deviation of the noise of a coefficient. ``excess``: mean squared error of predictions beyond
    that of the same model without noise.
    """

    noise: float
    excess: float


@dataclass(frozen=True)
class FitForecast:
    """A fit with so many rows, in the user's units. They fill their bounds evenly unless a note says otherwise.

    ``noise``: the standard deviation in every coefficient, by name. ``error``: what noise adds to the error.
    ``epsilon``: where it is not that of the plan. ``typical``: by how much noise moves a typical prediction, half of
    them by less, where that is known: the error, a root mean square, may be that of few rows far from all others.
    """

    rows: int
    error: float
    noise: Mapping[str, float]
    epsilon: float | None = None
    typical: float | None = None

    def scaled(self, ratio: float, typical: float | None = None) -> FitForecast:
        """The same with its error and all noise times a public number; ``typical``: over this error."""
        noise = {name: value * ratio for name, value in self.noise.items()}
        return replace(
            self, error=self.error * ratio, noise=noise, typical=None if typical is None else self.error * typical
        )


@dataclass(frozen=True)
class PassChance:
    """The probability of a release where a condition holds. ``below``: it is less than that."""

    probability: float
    condition: str
    params: Mapping[str, Amount] = field(default_factory=dict)
    below: bool = False


@dataclass(frozen=True)
class Note:
    """Anything else that is worth knowing before, by a code."""

    code: str
    params: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True)
class Forecast:
    """What to expect. ``answer_error``: of one number, what noise stays below in 19 of 20 cases; 0: there is none."""

    answer_error: float | None = None
    chances: tuple[PassChance, ...] = ()
    fits: tuple[FitForecast, ...] = ()
    error_of: ErrorOf = ErrorOf.PREDICTION
    notes: tuple[Note, ...] = ()


def noted(code: str, **params: Amount) -> Forecast:
    """A forecast of one note."""
    return Forecast(notes=(Note(code, params),))
