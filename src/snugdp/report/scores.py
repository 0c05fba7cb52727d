"""Scores of a model in a report and in a notebook: a table, the ROC curve and the calibration curve with their bands.

All of it is made from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup, escape

from snugdp.mechanisms.scores.result import NOTES, MetricEstimate, ModelScores
from snugdp.queries.estimate import with_digits
from snugdp.report.drawing import Axes, Axis, Point, linear

NAMES = {
    "roc_auc": "area under the ROC curve", "f1": "F1", "log_loss": "log-loss", "brier": "Brier score", "r2": "R²",
    "mse": "mean squared error", "rmse": "size of residuals (root mean square)", "mae": "mean absolute error",
    "calibration_error": "calibration error",
}  # fmt: skip
INTERVAL = "of the population, 19 of 20"
_TABLE_CLASSES = 3  # whose confusion matrix is shown cell by cell
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_STYLE = (
    ".snugdp-scores{--ink:#1d2326;--soft:#566066;--line:#d9dbd6;--blue:#1f5f8b;--fill:#1f5f8b22;--paper:#fff;"
    "display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}.snugdp-scores svg{width:20rem;height:auto}"
    ".snugdp-scores svg .axis{stroke:var(--soft);fill:none}.snugdp-scores svg .grid{stroke:var(--line)}"
    ".snugdp-scores svg .area{fill:var(--fill)}.snugdp-scores svg .curve{fill:none;stroke:var(--blue);stroke-width:2}"
    ".snugdp-scores svg .guess{fill:none;stroke:var(--soft);stroke-dasharray:4 4}.snugdp-scores svg .dot{fill:"
    "var(--blue)}.snugdp-scores svg text{font:11px system-ui,sans-serif;fill:var(--soft)}.snugdp-scores td,"
    ".snugdp-scores th{padding:.15rem .6rem;text-align:left}"
)


def lines_of(scores: ModelScores) -> tuple[tuple[str, str, str], ...]:
    """Name, value and interval of every score, the confusion matrix, and the noisy number of rows without a score."""
    shown = [*scores.values.values(), *residuals_of(scores)]
    found = [(score_name(each.name), _value(each), _interval(each)) for each in shown]
    return (*found, *_table_lines(scores), ("rows without a score, about", str(max(scores.unscored, 0)), ""))


def texts_of(scores: ModelScores) -> tuple[str, ...]:
    """The same as text, and what is to be said about the intervals."""
    lines = (": ".join((name, ", 95 % interval ".join(filter(None, rest)))) for name, *rest in lines_of(scores))
    return (*lines, note_of(scores))


def _table_lines(scores: ModelScores) -> tuple[tuple[str, str, str], ...]:
    """The confusion matrix, of few classes."""
    if "confusion" not in scores.metrics or len(scores.classes) > _TABLE_CLASSES:
        return ()
    cells = (
        (f"rows of {own}, predicted {said}, about", str(max(count, 0)), "")
        for own, line in zip(scores.classes, scores.confusion_matrix, strict=True)
        for said, count in zip(scores.classes, line, strict=True)
    )
    return tuple(cells)


def residuals_of(scores: ModelScores) -> tuple[MetricEstimate, ...]:
    """How large residuals are: the root of the mean squared error, where that was released."""
    found = scores.values.get("mse")
    if found is None or math.isnan(found.value):
        return ()
    return (replace(found.mapped(lambda square: math.sqrt(max(square, 0.0))), name="rmse"),)


def score_name(name: str) -> str:
    """In the terms of the field.

    >>> score_name("roc_auc"), score_name("f1: red")
    ('area under the ROC curve', 'F1: red')
    """
    metric, colon, label = name.partition(": ")
    return NAMES.get(metric, metric) + colon + label


def note_of(scores: ModelScores) -> str:
    """What is to be known about the scores, in words."""
    said = [f"{score_name(each.name)}: {NOTES[each.note]}." for each in scores.values.values() if each.note in NOTES]
    if "log_loss" in scores.values:
        said.append(f"For the log-loss, probabilities are clipped to [{scores.floor:g}, {1 - scores.floor:g}].")
    if scores.kind == "number":
        low, high = scores.bounds
        said.append(
            f"Targets and predictions are clipped to [{low:g}, {high:g}], and errors above {scores.cap:g} count as "
            "that."
        )
    said.append("Intervals are for rows that are not in the table: they have sampling and privacy noise in them.")
    return " ".join(said)


def plots_of(scores: ModelScores) -> tuple[Markup, ...]:
    """The ROC curve and the calibration curve, as far as they were released."""
    if scores.bins is None or scores.bins.small is not None:
        return ()
    return (_roc(scores), *([_calibration(scores)] if scores.calibration_curve else []))


def notebook(scores: ModelScores) -> Markup:
    """A table and the curves, for ``_repr_html_``."""
    rows = Markup("").join(
        Markup("<tr><th>{}</th><td>{}</td><td>{}</td></tr>").format(*line) for line in lines_of(scores)
    )
    head = Markup("<tr><th>score</th><th>value</th><th>{}</th></tr>").format(INTERVAL)
    table = Markup("<div><table><thead>{}</thead><tbody>{}</tbody></table><p>{}</p></div>")
    whole = Markup('<style>{}</style><div class="snugdp-scores">{}{}</div>')
    drawn = Markup("").join(plots_of(scores))
    return whole.format(Markup(_STYLE), table.format(head, rows, escape(note_of(scores))), drawn)


def _value(each: MetricEstimate) -> str:
    return "not available" if math.isnan(each.value) else with_digits(each.value, _precision(each))


def _interval(each: MetricEstimate) -> str:
    if each.note == "no-interval":
        return ""
    ends = ("no bound" if math.isinf(end) else with_digits(end, _precision(each)) for end in (each.lower, each.upper))
    return " to ".join(ends)


def _precision(each: MetricEstimate) -> float:
    if each.note == "no-interval":
        return 0.01
    return each.error / 2 if 0 < each.error < math.inf else 0.01


def _axes(across: str, along: str) -> Axes:
    return Axes(Axis(across, linear(0, 1), _SHARES, _written), Axis(along, linear(0, 1), _SHARES, _written))


def _band(low: Sequence[Point], high: Sequence[Point]) -> list[Point]:
    return [*low, *reversed(high)]


def _roc(scores: ModelScores) -> Markup:
    points = scores.roc_curve
    axes = _axes("false-positive rate", "true-positive rate")
    low = [(each.false_positive_interval[1], each.true_positive_interval[0]) for each in points]
    high = [(each.false_positive_interval[0], each.true_positive_interval[1]) for each in points]
    curve = [(each.false_positive_rate, each.true_positive_rate) for each in points]
    area = scores.values.get("roc_auc")
    told = "" if area is None else f"The area below it is {_value(area)}, between {_interval(area)} in 19 of 20 cases."
    shapes = [
        axes.line(_band(low, high), "area", closed=True),
        axes.line([(0.0, 0.0), (1.0, 1.0)], "guess"),
        axes.line(curve, "curve"),
        *(axes.dot(at, 2.5, f"score from {each.threshold:.3g} on") for at, each in zip(curve, points, strict=True)),
    ]
    return axes.drawing(told, shapes, "ROC curve, with a band for 19 of 20 cases at each point")


def _calibration(scores: ModelScores) -> Markup:
    bins = scores.calibration_curve
    axes = _axes("predicted probability", "share of positives")
    low = [(each.score, each.interval[0]) for each in bins]
    high = [(each.score, each.interval[1]) for each in bins]
    told = "; ".join(f"at {each.score:.2f}: {each.interval[0]:.2f} to {each.interval[1]:.2f}" for each in bins)
    shapes = [
        axes.line(_band(low, high), "area", closed=True),
        axes.line([(0.0, 0.0), (1.0, 1.0)], "guess"),
        axes.line([(each.score, each.share) for each in bins], "curve"),
        *(axes.dot((each.score, each.share), 2.5, f"{each.share:.2f} at {each.score:.2f}") for each in bins),
    ]
    return axes.drawing(told, shapes, "Calibration curve, with a band for 19 of 20 cases at each point")


def _written(share: float) -> str:
    return f"{share:g}"
