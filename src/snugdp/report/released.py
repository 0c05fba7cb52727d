"""What was released, as tables: coefficients, components, labels, or the value of a query."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from markupsafe import Markup

from snugdp.report.curves import bar, interval
from snugdp.report.words import number

USUAL = 1.96  # deviations of Gaussian noise in 19 of 20 cases
_MOST_LINES, _MOST_TABLES, _MOST_ITEMS = 60, 12, 8


@dataclass(frozen=True)
class Line:
    """One line of a table. ``within``: where the value without noise lies in 19 of 20 cases."""

    name: str
    value: str
    within: str = ""
    drawn: Markup | str = ""


@dataclass(frozen=True)
class Table:
    """Named numbers. ``note``: what is to be known about them."""

    title: str
    lines: tuple[Line, ...]
    note: str = ""

    @property
    def with_noise(self) -> bool:
        """Whether any line has an interval."""
        return any(line.within for line in self.lines)


def tables_of(model: Any, expected: Mapping[str, float] | None = None) -> tuple[Table, ...]:
    """What a released estimator of ours leaves behind. ``expected``: noise by forecast, where nothing else tells it."""
    if hasattr(model, "components_"):
        return _components(model)
    if hasattr(model, "labels_"):
        return (_labels(model),)
    return _coefficients(model, expected or {})


def table_of(value: Any, error: float | None) -> Table:
    """The value of a query, with the size of its noise in 19 of 20 cases, if that is known."""
    if isinstance(value, float | int | Fraction) and not isinstance(value, bool):
        line = _line("value", float(value), error)
    else:
        lines = facts(value)
        return Table("Value", tuple(Line(name or "value", text) for name, text in lines))
    note = "" if error is None else "The interval tells where the answer without noise lies in 19 of 20 cases."
    return Table("Value", (line,), note)


def facts(value: Any) -> tuple[tuple[str, str], ...]:
    """Names and values of what was released beside it, such as a certificate: its fields, or itself.

    >>> facts({"ridge": 2.0, "rows": 20089.0})
    (('ridge', '2'), ('rows', '20,089'))
    """
    if value is None:
        return ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held: Mapping[str, Any] = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        held = {str(name): item for name, item in value.items()}
    else:
        return (("", _text(value)),)
    return tuple((name.replace("_", " "), _text(item)) for name, item in held.items() if item is not None)


def _text(value: Any) -> str:
    """Numbers as people write them, long lists by their first items."""
    if isinstance(value, bool | np.bool_ | str):
        return str(value)
    if isinstance(value, float | int | Fraction | np.floating | np.integer):
        return number(float(value), 6)
    if isinstance(value, list | tuple | np.ndarray):
        items = [_text(item) for item in list(value)[:_MOST_ITEMS]]
        return ", ".join(items) + (f" and {len(value) - _MOST_ITEMS} more" if len(value) > _MOST_ITEMS else "")
    if dataclasses.is_dataclass(value) or isinstance(value, Mapping):
        return "; ".join(f"{name} {text}" for name, text in facts(value))
    return str(value)


def _line(name: str, value: float, error: float | None) -> Line:
    if error is None or not math.isfinite(error):
        return Line(name, number(value))
    low, high = value - error, value + error
    return Line(name, number(value), f"{number(low)} to {number(high)}", interval(low, value, high))


def _coefficients(model: Any, expected: Mapping[str, float]) -> tuple[Table, ...]:
    rows = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    starts = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    noise = _noise_of(model)
    chosen = getattr(model, "support_", None)
    places = range(rows.shape[1]) if chosen is None else [int(place) for place in chosen]
    names = [str(name) for name in model.coef_names_]
    forecast = noise is None and all(math.isfinite(expected.get(name, math.inf)) for name in names)
    if forecast:
        noise = np.array([expected[name] for name in names])
    made = []
    for row, start, title in list(zip(rows, starts, _titles(model, len(rows)), strict=True))[:_MOST_TABLES]:
        kept, left = _largest(places, row)
        lines = [
            _line(names[place], float(row[place]), None if noise is None else USUAL * float(noise[place]))
            for place in kept
        ]
        if getattr(model, "fit_intercept", True):
            lines.append(Line("intercept", number(float(start))))
        made.append(Table(title, tuple(lines), _left_note(left, noise is not None, forecast)))
    return (*made, *_more(len(rows)))


def _noise_of(model: Any) -> Any:
    """The deviation of the noise of every column; 0 for those that were not chosen, and never shown."""
    noise = getattr(model, "noise_scale_", None)
    if noise is None or not np.isfinite(noise).all():
        return None
    chosen = getattr(model, "support_", None)
    if chosen is None:
        return noise
    dense = np.zeros(len(model.coef_names_))
    dense[chosen] = noise
    return dense


def _titles(model: Any, count: int) -> list[str]:
    classes = [str(name) for name in getattr(model, "classes_", ())]
    if count > 1 and len(classes) == count:
        return [f"Coefficients of class {name}" for name in classes]
    if len(classes) == 2:
        return [f"Coefficients of the log odds of {classes[1]} against {classes[0]}"]
    return ["Coefficients"] * count


def _left_note(left: int, with_noise: bool, forecast: bool) -> str:
    said = []
    if with_noise:
        by = "the deviation of the noise that was forecast" if forecast else "the typical deviation of the noise"
        said.append(
            f"The interval tells where the coefficient without noise lies in about 19 of 20 cases, by {by}; it is not "
            "a confidence interval for people at large. Every bar has its own scale, with zero in the middle."
        )
    else:
        said.append("How large the noise of these coefficients is, released numbers do not tell; see the forecast.")
    if left:
        said.append(f"The largest are shown; {left:,} more are in the model.")
    return " ".join(said)


def _largest(places: Sequence[int], values: Any) -> tuple[list[int], int]:
    """All places, or those of the largest values if there are too many; in their order."""
    if len(places) <= _MOST_LINES:
        return list(places), 0
    ranked = sorted(places, key=lambda place: -abs(float(values[place])))[:_MOST_LINES]
    return sorted(ranked), len(places) - _MOST_LINES


def _more(count: int) -> tuple[Table, ...]:
    left = count - _MOST_TABLES
    return (Table("More", (), f"{left:,} more of them are in the model."),) if left > 0 else ()


def _components(model: Any) -> tuple[Table, ...]:
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    width = model.components_.shape[1]
    names = names if len(names) == width else [f"x{place}" for place in range(width)]
    error = float(model.spectrum_error_)
    lines = [
        Line(
            f"component {place + 1}",
            number(float(variance)),
            f"{number(max(float(model.spectrum_[place]) - error, 0.0))} to "
            f"{number(float(model.spectrum_[place]) + error)}",
            bar(float(ratio)),
        )
        for place, (variance, ratio) in enumerate(
            zip(model.explained_variance_, model.explained_variance_ratio_, strict=True)
        )
    ]
    shares = ", ".join(f"{100 * float(ratio):.3g} %" for ratio in model.explained_variance_ratio_[:_MOST_TABLES])
    note = (
        f"Shares of the whole variance: {shares}; the bars show them. The eigenvalues of the rows all lie in the "
        f"intervals in 19 of 20 cases. Number of rows, with noise: {number(float(model.n_samples_), 6)}."
    )
    made = [Table("Explained variance", tuple(lines), note)]
    for place, row in enumerate(model.components_[:_MOST_TABLES]):
        kept, left = _largest(range(width), row)
        loads = tuple(
            Line(names[at], number(float(row[at])), "", interval(min(0.0, row[at]), row[at], max(0.0, row[at]), 1.0))
            for at in kept
        )
        many = f"The largest are shown; {left:,} more are in the model." if left else ""
        made.append(Table(f"Component {place + 1}", loads, many))
    return (*made, *_more(len(model.components_)))


def _labels(model: Any) -> Table:
    """How often each label was released: counted from what is public now."""
    labels = np.asarray(model.labels_)[np.asarray(model.answered_, dtype=bool)]
    total = max(len(labels), 1)
    lines = []
    for name in list(model.classes_)[:_MOST_LINES]:
        count = int(np.sum(labels == name))
        lines.append(Line(str(name), f"{count:,}", "", bar(count / total)))
    note = (
        f"{len(labels):,} of {len(model.labels_):,} queries have a label. The student learned from these labels and "
        "from public rows alone, so it costs nothing more."
    )
    return Table("Labels", tuple(lines), note)
