"""What was released, as tables: coefficients, components, labels, or the value of a query."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup

from snugdp.mechanisms.scores.result import ModelScores
from snugdp.queries.bounds.private import EstimatedBounds
from snugdp.queries.description.result import Description
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.histogram import HistogramCounts
from snugdp.queries.table import ABOUT_POPULATION, StatisticsTable
from snugdp.report import effects, scores
from snugdp.report.curves import bar, interval
from snugdp.report.words import apart, near, number
from snugdp.tables.schema.contrasts import no_level

INTERVAL = "without noise, 19 of 20"
USUAL = 1.96  # deviations of Gaussian noise in 19 of 20 cases
MAX_LINES, MAX_LOADS, MAX_TABLES, MAX_ITEMS = 200, 40, 12, 8
Ends: TypeAlias = tuple[float, float]  # where an answer can lie
EVERYWHERE: Ends = (-math.inf, math.inf)
COUNTED: Ends = (0.0, math.inf)


@dataclass(frozen=True)
class Line:
    """One line of a table. ``within``: where the value without noise lies in 19 of 20 cases, or what the table says."""

    name: str
    value: str
    within: str = ""
    drawn: Markup | str = ""


@dataclass(frozen=True)
class ReportTable:
    """Named numbers. ``note``: what is to be known about them."""

    title: str
    lines: tuple[Line, ...]
    note: str = ""
    within: str = INTERVAL  # what stands in the lines' ``within``
    plots: tuple[Markup, ...] = ()

    @property
    def with_noise(self) -> bool:
        """Whether any line has an interval."""
        return any(line.within for line in self.lines)

    @property
    def with_drawing(self) -> bool:
        """Whether any line has a drawing."""
        return any(line.drawn for line in self.lines)


def tables_of(model: Any, expected: Mapping[str, float] | None = None) -> tuple[ReportTable, ...]:
    """What a released estimator of ours leaves behind. ``expected``: noise by forecast, where nothing else tells it."""
    if hasattr(model, "components_"):
        return _components(model)
    if hasattr(model, "labels_"):
        note = " The student learned from these labels and from public rows alone, so it costs nothing more."
        return (_labels(model.labels_, model.answered_, list(model.classes_), note), *_student(model))
    beside = getattr(model, "holdout_score_", None)
    held_out = () if beside is None else (_scores(beside, "Scores on rows that were held out of the fit"),)
    if getattr(model, "has_intervals", False):
        return (*held_out, _estimates(model))
    return (*held_out, *_curves(model), *_coefficients(model, expected or {}))


def _curves(model: Any) -> tuple[ReportTable, ...]:
    """Those of an additive model of numbers or of two classes."""
    if not hasattr(model, "curves") or len(getattr(model, "classes_", ())) > 2:
        return ()
    curves = model.curves()
    drawn = effects.plots_of(curves, MAX_ITEMS)
    return (ReportTable("Curves", (), effects.note_on(curves), plots=drawn),) if drawn else ()


def _estimates(model: Any) -> ReportTable:
    """Coefficients with their confidence intervals, each drawn on a scale of its own."""
    found = model.summary()
    lines = [
        Line(
            name,
            near(each.estimate, each.standard_error),
            f"{near(each.lower, each.standard_error)} to {near(each.upper, each.standard_error)}, "
            f"p {'< 0.001' if each.p_value < 0.001 else f'= {each.p_value:.3f}'}",
            interval(each.lower, each.estimate, each.upper),
        )
        if each.is_bounded
        else Line(name, "unknown at this budget", "the whole line")
        for name, each in list(zip(found.names, found.estimates, strict=True))[:MAX_LINES]
    ]
    title = _titles(model, 1)[0].replace("Coefficients", "Estimates", 1)
    return ReportTable(
        title, tuple(lines), " ".join([*found.notes, OWN_SCALE]), "95 % confidence interval, p-value of 0"
    )


OWN_SCALE = "Every bar has its own scale, with zero in the middle."


def table_of(
    value: Any,
    error: float | None,
    *,
    exact: bool = False,
    classes: Sequence[Any] | None = None,
    within: Ends = EVERYWHERE,
) -> ReportTable:
    """The value of a query, with the size of its noise in 19 of 20 cases, if that is known.

    ``exact``: it has no noise. ``classes``: of labels, in their order. ``within``: public bounds on the answer, at
    which intervals end.
    """
    if hasattr(value, "labels") and hasattr(value, "answered"):
        known = np.asarray(value.labels)[np.asarray(value.answered, dtype=bool)]
        return _labels(value.labels, value.answered, classes or sorted(set(known.tolist()), key=str), "")
    if isinstance(value, float | int | Fraction) and not isinstance(value, bool):
        if exact:
            return ReportTable("Answer", (Line("value", number(float(value), 12)),), _EXACT)
        note = "" if error is None else _NOISE
        return ReportTable("Answer", (_line("value", float(value), error, within),), note)
    if isinstance(value, Estimate):
        rows = () if value.count is None else (Line("rows, about", number(value.count, 4)),)
        lines = (_line("value", value.value, value.error, within), *_about_population(value, within), *rows)
        return ReportTable("Answer", lines, f"{_NOISE} {_CLIPPED}")
    if isinstance(value, HistogramCounts):
        return _histogram(value)
    if isinstance(value, ModelScores):
        return _scores(value, "Scores")
    if isinstance(value, Description):
        return _description(value)
    if isinstance(value, EstimatedBounds):
        ends = {name: (_text(one.lower), _text(one.upper)) for name, one in value.columns.items()}
        return ReportTable(
            "Bounds", tuple(Line(name, f"{low} to {high}") for name, (low, high) in ends.items()), _BOUNDS
        )
    if isinstance(value, StatisticsTable):
        return _statistics(value)
    lines = tuple(Line(name or "value", text) for name, text in facts(value))
    return ReportTable("Answer", lines, _EXACT if exact else "")


def _scores(value: ModelScores, title: str) -> ReportTable:
    lines = tuple(Line(*line) for line in scores.lines_of(value))
    return ReportTable(title, lines, scores.note_of(value), scores.INTERVAL, scores.plots_of(value))


def _about_population(value: Estimate, within: Ends) -> tuple[Line, ...]:
    """The confidence interval of an estimate, if it has one."""
    if value.population_lower is None or value.standard_error is None:
        return ()
    if not math.isfinite(value.standard_error):
        return (Line("population", "the rows are too few for this budget to say anything"),)
    low, high = (near(_held(end, within), value.standard_error) for end in value.conf_int(clipping=False))
    error = f"standard error {number(value.standard_error, 3)}"
    return (Line("population, 95 % confidence interval", f"{low} to {high}", error),)


def _statistics(table: StatisticsTable) -> ReportTable:
    """A line for every number of a table that has an error beside it, named by what has none."""
    held = {name: column[:MAX_LINES] for name, column in table.to_dict().items()}
    noisy = [name for name in held if f"{name}_error" in held]
    beside = {f"{name}_{end}" for name in noisy for end in ("error", *ABOUT_POPULATION)}
    labels = [held[name] for name in held if name not in noisy and name not in beside]
    lines = [
        _line(
            f"{', '.join(map(str, label))}: {name}",
            float(str(held[name][row])),
            float(str(held[f"{name}_error"][row])),
            COUNTED if name.endswith(_NO_LESS_THAN_NONE) else EVERYWHERE,
        )
        for row, label in enumerate(zip(*labels, strict=True))
        for name in noisy
    ]
    note = f"{len(table) - MAX_LINES:,} more rows are not shown here." if len(table) > MAX_LINES else ""
    return ReportTable("Answer", tuple(lines[:MAX_LINES]), note)


def _description(value: Description) -> ReportTable:
    """Rows, the statistics of every column, and the counts of its listed values."""
    held = [_line("rows", value.rows.value, value.rows.error or None, COUNTED)]
    for line in value.columns.lines:
        of = dict(zip(value.columns.names, line, strict=True))
        name = str(of["column"])
        numbers = {each: of[each] for each in of if isinstance(of[each], float) and not each.endswith("_error")}
        held += [
            _line(
                f"{name}: {each.replace('_', ' ')}",
                float(str(found)),
                _float(of.get(f"{each}_error")),
                COUNTED if each in _NO_LESS_THAN_NONE else EVERYWHERE,
            )
            for each, found in numbers.items()
            if each != "top_count"
        ]
        counts = value.counts(name).items()
        held += [_line(f"{name}: {label}", one.value, one.error, COUNTED) for label, one in list(counts)[:MAX_ITEMS]]
    more = f" {len(held) - MAX_LINES:,} more lines are not shown." if len(held) > MAX_LINES else ""
    return ReportTable("Answer", tuple(held[:MAX_LINES]), f"{_NOISE}{value.ranks_text} {_CLIPPED}{more}")


def _float(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def _histogram(value: HistogramCounts) -> ReportTable:
    named = [(_cell(cell), count) for cell, count in zip(value.cells[:MAX_LINES], value.counts, strict=False)]
    named += [(name, count) for name in _COUNTS_OUTSIDE_CELLS if (count := getattr(value, name)) is not None]
    lines = tuple(_line(name, float(count), value.error, COUNTED) for name, count in named)
    more = f" The first {MAX_LINES} of {len(value.cells):,} cells." if len(value.cells) > MAX_LINES else ""
    return ReportTable("Answer", lines, _NOISE + more)


def _cell(cell: Any) -> str:
    return f"{_text(cell[0])} to {_text(cell[1])}" if isinstance(cell, tuple) else _text(cell)


_NO_LESS_THAN_NONE = ("count", "missing", "standard_deviation", "variance")
_NOISE = "The interval covers the answer without noise in 19 of 20 cases."
_CLIPPED = "Where numbers are clipped privately, as the plan says, what was clipped away is not in it."
_COUNTS_OUTSIDE_CELLS = ("below", "above", "other", "missing")
_BOUNDS = "Edges of a public grid, chosen with noise; a few rows may lie beyond them. They can be used in a schema."
_EXACT = "This is the answer itself, without noise: the test has shown that no single row changes it."


def facts(value: Any, named: Callable[[str], str] = str) -> tuple[tuple[str, str], ...]:
    """Names and values of what was released beside it, such as a certificate: its fields, or itself.

    >>> facts({"ridge": 2.0, "rows": 20089.0})
    (('ridge', '2'), ('rows', '20,089'))
    """
    if value is None:
        return ()
    if _is_record(value):
        held: Mapping[str, Any] = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        held = {str(name): item for name, item in value.items()}
    else:
        return (("", _text(value)),)
    return tuple((named(name), _text(item)) for name, item in held.items() if item is not None)


def _is_record(value: Any) -> bool:
    """Whether its fields are shown. Not those of an estimator, whose repr leaves out the password of its ledger."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "get_params")


def _text(value: Any) -> str:
    """Numbers as people write them, long lists by their first items."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return number(int(value), 15)
    if isinstance(value, float | Fraction | np.floating):
        return number(float(value), 4 if abs(float(value)) < 10_000 else 6)
    if isinstance(value, list | tuple | np.ndarray):
        items = [_text(item) for item in list(value)[:MAX_ITEMS]]
        return ", ".join(items) + (f" and {len(value) - MAX_ITEMS} more" if len(value) > MAX_ITEMS else "")
    if _is_record(value) or isinstance(value, Mapping):
        return "; ".join(f"{name.replace('_', ' ')} {text}" for name, text in facts(value))
    return str(value)


def _held(end: float, within: Ends) -> float:
    return min(max(end, within[0]), within[1])


def _line(name: str, value: float, error: float | None, within: Ends = EVERYWHERE) -> Line:
    if error is None or not math.isfinite(error):
        return Line(name, number(value))
    low, high = _held(value - error, within), _held(value + error, within)
    return Line(name, near(value, error), f"{near(low, error)} to {near(high, error)}", interval(low, value, high))


def _coefficients(model: Any, expected: Mapping[str, float]) -> tuple[ReportTable, ...]:
    rows = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    starts = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    noise, names = _noise_of(model), [str(name) for name in model.coef_names_]
    chosen = getattr(model, "support_", None)
    places = range(rows.shape[1]) if chosen is None else [int(place) for place in chosen]
    joint = len(rows) > 1 and getattr(model, "multi_class", "") != "ovr"  # scores of classes are tied to each other
    guess = {} if noise is not None or joint or not _all_finite(expected, names) else expected
    tied = _tied(model) & set(names) if guess else frozenset()
    made = []
    for row, start, title in list(zip(rows, starts, _titles(model, len(rows)), strict=True))[:MAX_TABLES]:
        kept, left = _largest(places, row if noise is None else np.divide(row, noise, where=noise > 0, out=row * 0))
        lines = [
            _line(names[place], float(row[place]), None if noise is None else USUAL * float(noise[place]))
            for place in kept
        ]
        if guess:
            lines = [replace(line, within=_about(guess[line.name], line.name in tied)) for line in lines]
        if getattr(model, "fit_intercept", True):
            lines.append(Line("intercept", number(float(start))))
        made.append(ReportTable(title, tuple(lines), within="noise, as forecast" if guess else INTERVAL))
    made[-1] = replace(made[-1], note=_left_note(left, noise is not None, bool(guess), bool(tied), _reading(model)))
    also = [*([_JOINT] if joint else []), *_chosen(model, names), *_best(model)]
    return (*made, *_more(len(rows)), *(ReportTable("", (), text) for text in also))


_JOINT = (
    "Only differences between classes matter for predictions: the coefficients of all classes can be off together, by "
    "far more than their differences."
)


def _all_finite(expected: Mapping[str, float], names: Sequence[str]) -> bool:
    return all(math.isfinite(expected.get(name, math.inf)) for name in names)


def _about(deviation: float, tied: bool) -> str:
    return f"± {number(deviation, 2)}" if not tied else "more: see below"


def _tied(model: Any) -> frozenset[str]:
    """Entries for rows in none of the levels: where there are hardly any they can be off by more than a forecast."""
    columns = {} if getattr(model, "schema", None) is None else model.schema.columns
    return frozenset(no_level(name) for name, column in columns.items() if hasattr(column, "values"))


def _chosen(model: Any, names: Sequence[str]) -> list[str]:
    """Which columns a sparse model chose."""
    if not hasattr(model, "ranking_"):
        return []
    order = ", ".join(apart(names[int(place)]) for place in model.ranking_[:MAX_ITEMS])
    count, more = len(model.ranking_), " and more" if len(model.ranking_) > MAX_ITEMS else ""
    return [
        f"{count:,} of {len(names):,} columns were chosen privately, the first choice first: {order}{more}. All "
        "others have the coefficient 0, which does not show that they do not matter."
    ]


def _best(model: Any) -> list[str]:
    """What a model that is the best of several says of its noise."""
    if not hasattr(model, "best_proposal_"):
        return []
    best = "; ".join(f"{name}: {text}" for name, text in facts(dict(model.best_proposal_)))
    return [
        f"Chosen as the best of several runs, by its score on public rows. Its proposal: {best}. The number of "
        "runs stays hidden. A choice prefers runs whose noise happened to be small, or to fit the public rows."
    ]


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
    classes = [apart(name) for name in getattr(model, "classes_", ())]
    kind = type(model).__name__
    if count > 1 and len(classes) == count:
        return [f"Coefficients of the score of class {name}" for name in classes]
    if len(classes) == 2:
        what = "the log odds" if "Logistic" in kind else "the score"
        return [f"Coefficients of {what} of {classes[1]} against {classes[0]}"]
    return ["Coefficients of the logarithm of the expected count" if "Poisson" in kind else "Coefficients"] * count


def _reading(model: Any) -> list[str]:
    """What a coefficient says, where columns are in their own units."""
    found = getattr(model, "bounds_", None)
    if found is None or not getattr(model, "fit_intercept", True):
        return []
    kinds = {type(column).__name__ for column in found.kinds.values()}
    said = ["A coefficient is what one unit more of its column adds; for a column of dates, one day more."]
    levels = "A level is compared with the reference level of its column, which is not listed."
    return [*said[: "Date" in kinds], *[levels][: "Category" in kinds]]


def _left_note(left: int, with_noise: bool, forecast: bool, tied: bool, reading: Sequence[str]) -> str:
    said = list(reading)
    if with_noise:
        said.append(
            "The interval covers the coefficient of the same fit without noise in about 19 of 20 cases, by what "
            "released numbers tell of its noise. Of a posterior sample that is a typical deviation; columns that are "
            "correlated with others have more. It is not a confidence interval for the population, and a ridge, where "
            "there is one, pulls coefficients towards 0. "
            f"{OWN_SCALE}"
        )
    elif forecast:
        said.append(
            "The size of the noise depends on the rows, and the released numbers do not reveal it. The forecast is its "
            "standard deviation for rows that fill their bounds evenly and columns that are not correlated; correlated "
            "columns have more."
        )
    else:
        said.append("The size of the noise depends on the rows, and the released numbers do not reveal it.")
    if tied:
        said.append(
            "Levels are compared with the reference level, which is not listed. Rows in none of them are often few: "
            "then their coefficients can be off by far more than the forecast, and mean little."
        )
    return " ".join([*said, *([_left_out(left, " against their noise" if with_noise else "")] if left else [])])


def _left_out(count: int, against: str = "") -> str:
    return f"The largest{against} are shown; {count:,} more are in the model." if count else ""


def _largest(places: Sequence[int], values: Any, most: int = MAX_LINES) -> tuple[list[int], int]:
    """All places, or those of the largest values if there are too many; in their order."""
    if len(places) <= most:
        return list(places), 0
    ranked = sorted(places, key=lambda place: -abs(float(values[place])))[:most]
    return sorted(ranked), len(places) - most


def _more(count: int) -> tuple[ReportTable, ...]:
    left = count - MAX_TABLES
    return (ReportTable("More", (), f"{left:,} more of them are in the model."),) if left > 0 else ()


def _components(model: Any) -> tuple[ReportTable, ...]:
    names, width = [str(name) for name in model._layout.features], model.components_.shape[1]
    error = float(model.spectrum_error_)
    lines = [
        Line(
            f"component {index + 1}",
            near(float(variance), error),
            f"{near(max(float(model.spectrum_[index]) - error, 0.0), error)} to "
            f"{near(float(model.spectrum_[index]) + error, error)}",
            bar(float(ratio)),
        )
        for index, (variance, ratio) in enumerate(
            zip(model.explained_variance_, model.explained_variance_ratio_, strict=True)
        )
    ]
    shares = ", ".join(f"{100 * float(ratio):.3g} %" for ratio in model.explained_variance_ratio_[:MAX_TABLES])
    counted = "as publicly known" if model.rows is not None else "with noise"
    unit = "in which the bounds of every number are -1 and 1" if _scaled(model) else "of X"
    note = (
        f"Shares of the whole variance: {shares}; the bars show them. The eigenvalues of the rows all lie in the "
        f"intervals in 19 of 20 cases. Units: those {unit.replace('-', '−')}. Number of rows, {counted}: "
        f"{number(float(model.n_samples_), 6)}."
    )
    made = [ReportTable("Explained variance", tuple(lines), note)]
    for index, row in enumerate(model.components_[:MAX_TABLES]):
        kept, left = _largest(range(width), row, MAX_LOADS)
        loads = tuple(
            Line(names[at], number(float(row[at]), 3), "", interval(min(0.0, row[at]), row[at], max(0.0, row[at]), 1.0))
            for at in kept
        )
        made.append(ReportTable(f"Component {index + 1}: the weight of every column", loads, _left_out(left)))
    return (*made, *_more(len(model.components_)))


def _scaled(model: Any) -> bool:
    """Whether columns are scaled by their own bounds, given or found."""
    return getattr(model, "schema", None) is not None or hasattr(model, "bounds_")


def _labels(labels: Any, answered: Any, classes: Sequence[Any], note: str) -> ReportTable:
    """How often each label was released: counted from what is public now."""
    known = np.asarray(labels)[np.asarray(answered, dtype=bool)]
    total = max(len(known), 1)
    lines = []
    for name in classes[:MAX_LINES]:
        count = int(np.sum(known == name))
        lines.append(Line(str(name), f"{count:,}", "", bar(count / total)))
    return ReportTable(
        "How many queries have which label", tuple(lines), f"{len(known):,} of {len(labels):,} have a label.{note}"
    )


def _student(model: Any) -> tuple[ReportTable, ...]:
    """The coefficients of a linear student."""
    student = getattr(model, "student_", None)
    coef = np.atleast_2d(getattr(student, "coef_", np.empty((0, 0))))
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if coef.ndim != 2 or not coef.size or not np.issubdtype(coef.dtype, np.floating):
        return ()
    names = names if len(names) == coef.shape[1] else [f"x{place}" for place in range(coef.shape[1])]
    classes = [apart(name) for name in student.classes_]  # type: ignore[union-attr]
    titles = classes if len(classes) == len(coef) else [f"{classes[-1]} against {classes[0]}"]
    made = []
    for row, title in list(zip(coef, titles, strict=False))[:MAX_TABLES]:
        kept, left = _largest(range(len(names)), row, MAX_LOADS)
        lines = tuple(Line(names[at], number(float(row[at]))) for at in kept)
        made.append(ReportTable(f"Coefficients of the student: {title}", lines, _left_out(left)))
    return (*made, *_more(len(coef)))
