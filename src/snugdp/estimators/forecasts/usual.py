"""How rows of real tables lie between their bounds, where nothing else tells it: for forecasts of the defaults.

Rows that fill their bounds evenly are rare. The noise of a line grows with the spread of its target, and it is larger
where a few rows lie far from the others, which a small spread between bounds gives away. How much so was fitted once
to what noise added to predictions on public tables from R packages; other tables say how often a forecast comes true
(docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import FitForecast, Note
from snugdp.tables.schema.kinds import Number
from snugdp.tables.schema.schema import Schema

TargetKind: TypeAlias = Literal["labels", "classes", "counts"]
Spread: TypeAlias = Real | Mapping[str, Real]  # of all columns, or by name

# Chosen on 93 of 260 tables from R packages; what comes true on others: docs/benchmarks.md. Other powers, or all
# spreads instead of the least, did no better on 126 of 280 tables.
_BETWEEN_BOUNDS, _BETWEEN_FOUND_BOUNDS = 0.85, 1.15  # times as much noise as if rows filled their bounds evenly
_TARGET, _NARROWEST = 0.17, 0.1  # where this is the spread of the target, and of the column with the least
_TARGET_POWER, _NARROWEST_POWER = 0.7, -0.5

# Chosen on 126 of 280 tables. Of a typical prediction, in the same unit; the narrowest column hardly matters to it.
_TYPICAL, _TYPICAL_FOUND = 0.6, 0.75
_TYPICAL_POWER = 0.8

# Chosen on 18 of these tables, with targets cut in two or three, and on 18 with counts: root mean square and typical.
_SCORES: Mapping[TargetKind, tuple[tuple[float, float], tuple[float, float]]] = {
    "labels": ((0.3, 0.15), (0.52, 0.29)),  # between public bounds, and between found ones
    "classes": ((0.13, 0.08), (0.45, 0.26)),
    "counts": ((0.23, 0.14), (0.53, 0.4)),
}

_LEAST_SPREAD = 0.001  # below, powers promise too much
_MAX_SPREAD = 0.5  # of values half of which lie at either bound
_NO_SUCH_MODEL = (
    "spread is for linear regression with a schema that has bounds for every column, by its default method: leave it "
    "out, or give a public sample"
)


@dataclass(frozen=True)
class Usual:
    """How many times the noise of rows that fill their bounds evenly is expected; ``note``: of what rows, if others.

    ``typical``: the same of a typical prediction, over that root mean square.
    """

    ratio: float = 1.0
    note: Note | None = None
    typical: float | None = None

    def of(self, fit: FitForecast) -> FitForecast:
        """What to expect, from what is expected of rows that fill their bounds evenly."""
        return fit.scaled(self.ratio, self.typical)


EVEN = Usual()
FOUND = Usual(_BETWEEN_FOUND_BOUNDS, Note("like-usual-found"), _TYPICAL_FOUND)
SAMPLED = Note("like-sample")
CURVED = Usual(1.15, Note("like-usual-curves"), 1.05)  # chosen on 7 of these tables
CURVED_FOUND = Usual(0.6, Note("like-usual-curves"), 0.53)


def between_bounds(schema: Schema, spread: Spread | None) -> Usual:
    """What is usual between public bounds, or where columns have these spreads.

    ``spread``: the standard deviation over the distance between the bounds. Those of columns of other kinds than
    numbers do not count, and what is not told is as usual.

    >>> schema = Schema({"a": Number(0, 10), "y": Number(0, 1)}, target="y")
    >>> between_bounds(schema, None).ratio, round(between_bounds(schema, {"a": 0.2, "y": 0.3}).ratio, 3)
    (0.85, 0.894)
    """
    if spread is None:
        return Usual(_BETWEEN_BOUNDS, Note("like-usual"), _TYPICAL)
    numbers = [name for name, kind in schema.columns.items() if isinstance(kind, Number)]
    told = _by_name(schema, spread, numbers)
    target = told.pop(str(schema.target), _TARGET)
    narrowest = min(told.values(), default=_NARROWEST)
    ratio = (target / _TARGET) ** _TARGET_POWER * (narrowest / _NARROWEST) ** _NARROWEST_POWER
    root, typical = _BETWEEN_BOUNDS * ratio, _TYPICAL * (target / _TARGET) ** _TYPICAL_POWER
    note = Note("like-spread", {"target": target, "narrowest": narrowest})
    return Usual(root, note, min(root, typical))


def of_scores(target: TargetKind, *, found: bool) -> Usual:
    """What is usual of the linear function inside a model, for two labels, more classes or counts.

    ``found``: between bounds that are found.

    >>> of_scores("classes", found=False).ratio
    0.13
    """
    root, typical = _SCORES[target][found]
    return Usual(root, Note("like-usual-scores"), typical)


def refuse(spread: Spread | None) -> None:
    """For models of which nothing is known."""
    if spread is not None:
        raise ValueError(_NO_SUCH_MODEL)


def _by_name(schema: Schema, spread: Spread, numbers: list[str]) -> dict[str, float]:
    if not isinstance(spread, Mapping):
        return dict.fromkeys(numbers, _checked(spread, "spread"))
    for name in spread:
        if name not in schema.columns:
            raise ValueError(f'spread names a column that the schema does not have: "{name}"')
    checked = {name: _checked(value, f'spread of "{name}"') for name, value in spread.items()}
    return {name: checked[name] for name in numbers if name in checked}


def _checked(value: Real, name: str) -> float:
    part = float(rational(value, name))
    if not _LEAST_SPREAD <= part <= _MAX_SPREAD:
        raise ValueError(
            f"the {name} is a standard deviation over the distance between bounds: 0.001 to 0.5. Where it is less, "
            "bounds that are closer, as far as that is known in public, make a better fit"
        )
    return part
