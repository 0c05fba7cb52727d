"""Released scores: noisy sums, and what follows from them. Nothing here looks at a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from snugdp.mechanisms.scores.bins import EVEN, probabilities
from snugdp.mechanisms.scores.curves import CalibrationBin, Placement, RocPoint, ScoreBins
from snugdp.mechanisms.scores.images import CELLS
from snugdp.mechanisms.scores.intervals import (
    ALPHA,
    LAPLACE,
    WHOLE,
    Interval,
    NoisyMean,
    NoisyRatio,
    averaged,
    f1_of,
    proportion_interval,
)
from snugdp.mechanisms.scores.parts import SPREADS
from snugdp.mechanisms.scores.tasks import log_cap

Kind: TypeAlias = Literal["two", "several", "number"]
RARE = ("common", "placement")  # the parts of a release for rare positives
PLACES = 1 << 20  # of a share of the common class
RATIOS = ("precision", "recall", "f1")
METRICS: Mapping[Kind, tuple[str, ...]] = {
    "two": ("roc_auc", "accuracy", *RATIOS, "confusion", "calibration", "log_loss", "brier"),
    "several": ("accuracy", *RATIOS, "confusion", "log_loss", "brier"),
    "number": ("r2", "mse", "mae"),
}
SHORT = {
    "auc": "roc_auc", "roc-auc": "roc_auc", "log-loss": "log_loss", "brier_score": "brier", "calibration_error":
    "calibration", "confusion_matrix": "confusion", "confusion-matrix": "confusion",
}  # fmt: skip
"""Other names of metrics."""
NOTES = {
    "small-positive": "there are too few rows of the positive class for noise of this size: nothing can be said",
    "small-negative": "there are too few rows of the negative class for noise of this size: nothing can be said",
    "few-rows": "there are too few rows for noise of this size: nothing can be said",
    "small-variance": "the variance of the target drowns in noise within these bounds: nothing can be said",
    "mean-of-classes": "the mean of all classes",
    "no-interval": "without what noise and sampling add to it, and without an interval",
}
"""What a code of a note says."""
_ENOUGH = 3  # deviations of a variance that is divided by
_SHOWN_CLASSES = 10  # of a confusion matrix, in text


@dataclass(frozen=True)
class MetricEstimate:
    """A score, with an interval for the population and one for the very rows of the table, in 19 of 20 cases.

    Parameters
    ----------
    name : str
        Of the metric; that of one class has the class behind it.
    value : float
        The score; NaN where there is nothing to say.
    lower, upper : float
        The interval for rows that are not in the table: sampling and noise.
    sample_lower, sample_upper : float
        The interval for the score without noise on the rows of the table.
    note : str
        Why there is nothing to say, or what the score leaves out, by a code; empty otherwise.

    Examples
    --------
    >>> print(MetricEstimate("accuracy", 0.8512, 0.8461, 0.8563, 0.8509, 0.8515))
    accuracy 0.8512, 95 % interval 0.8461 to 0.8563
    """

    name: str
    value: float
    lower: float
    upper: float
    sample_lower: float
    sample_upper: float
    note: str = ""

    @property
    def error(self) -> float:
        """The larger distance from the score to an end of its interval."""
        return max(self.upper - self.value, self.value - self.lower)

    def mapped(self, change: Callable[[float], float]) -> MetricEstimate:
        """The same of a monotone function of the score."""
        ends = map(change, (self.value, self.lower, self.upper, self.sample_lower, self.sample_upper))
        value, lower, upper, sample_lower, sample_upper = ends
        return MetricEstimate(self.name, value, lower, upper, sample_lower, sample_upper, self.note)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.name}: {NOTES.get(self.note, 'nothing can be said')}"
        value, lower, upper = (f"{number:.4g}" for number in (self.value, self.lower, self.upper))
        if self.note == "no-interval":
            return f"{self.name} {value}, {NOTES[self.note]}"
        return f"{self.name} {value}, 95 % interval {lower} to {upper}"


@dataclass(frozen=True)
class ModelScores:
    """Released scores of a model: noisy sums over the rows of a table, and all that follows from them.

    Parameters
    ----------
    kind : {"two", "several", "number"}
        What the model predicts: one of two classes, one of several, or a number.
    metrics : tuple of str
        What was asked for.
    parts : dict
        The noisy sums, by the names of the parts. Counts may be negative, and are left as they are.
    deviations : dict
        The standard deviation of the noise of every sum of a part.
    pure : bool
        Whether the noise is discrete Laplace; otherwise it is Gaussian.
    unscored : int
        The noisy number of rows with a target of which the model gave no score.
    classes : tuple
        The classes, in their order; the last of two is the positive one.
    floor : float
        For the log-loss probabilities are clipped to [floor, 1 - floor].
    bounds : (float, float)
        Of a target that is a number.
    cap : float
        The largest error of a prediction that counts; larger ones count as this.
    edges : tuple of int
        Where the bins of the score are, in cells of its logit, if there are some.

    Examples
    --------
    >>> sums = {"right": (850, 150)}
    >>> found = ModelScores("two", ("accuracy",), sums, {"right": 2.8}, True, 0, ("no", "yes"))
    >>> found["accuracy"].value, round(found["accuracy"].lower, 3)
    (0.85, 0.826)
    """

    kind: Kind
    metrics: tuple[str, ...]
    parts: Mapping[str, tuple[int, ...]]
    deviations: Mapping[str, float]
    pure: bool
    unscored: int
    classes: tuple[Any, ...] = ()
    floor: float = 0.01
    bounds: tuple[float, float] = (0.0, 1.0)
    cap: float = 1.0
    edges: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> MetricEstimate:
        """A score by its name."""
        if name not in self.values:
            raise KeyError(f"there is no {name!r}; there are {', '.join(self.values)}")
        return self.values[name]

    @cached_property
    def values(self) -> dict[str, MetricEstimate]:
        """All scores that are numbers, by their names."""
        return {each.name: each for metric in self.metrics for each in self._estimates(metric)}

    @cached_property
    def bins(self) -> ScoreBins | None:
        """Noisy counts of both classes by bins of the score, if they were released."""
        if "bins" not in self.parts:
            return None
        counts, number = self.parts["bins"], len(self.edges) + 1  # not all versions have the same number
        lines = probabilities(self.edges)
        return ScoreBins(counts[number:], counts[:number], self.deviations["bins"] ** 2, lines, self._kurtosis)

    @property
    def _kurtosis(self) -> float:
        """Of the noise of a sum."""
        return LAPLACE if self.pure else 0.0

    @property
    def roc_curve(self) -> tuple[RocPoint, ...]:
        """The ROC curve at the edges of the bins."""
        return () if self.bins is None else self.bins.roc()

    @property
    def calibration_curve(self) -> tuple[CalibrationBin, ...]:
        """The share of positives by bins of the score; none for scores that are no probabilities."""
        return () if self.bins is None or "calibration" not in self.metrics else self.bins.calibration()

    @property
    def confusion_matrix(self) -> tuple[tuple[int, ...], ...]:
        """Noisy counts: a line for every class, a column for every predicted one."""
        table, number = self._table(), len(self.classes)
        return tuple(tuple(table[row * number : (row + 1) * number]) for row in range(number)) if table else ()

    @property
    def placement(self) -> Placement | None:
        """The area for rare positives, if it was released."""
        if "placement" not in self.parts:
            return None
        above, below = (total / PLACES for total in self.parts["placement"])
        noise = (self.deviations["placement"] / PLACES) ** 2
        counted = self.deviations["common"] ** 2
        return Placement(self.parts["common"], above, below, noise, counted, self._kurtosis)

    def to_dict(self) -> dict[str, Any]:
        """The scores for machines: numbers that are finite, otherwise None."""
        return {name: _plain(each) for name, each in self.values.items()}

    def __str__(self) -> str:
        lines = [*map(str, self.values.values()), *self._table_lines(), *self._curve_lines()]
        if self.kind == "number":
            low, high = self.bounds
            lines.append(f"targets and predictions are clipped to [{low:g}, {high:g}], and errors to {self.cap:g}")
        return "\n".join(lines)

    def _table_lines(self) -> Iterator[str]:
        """The confusion matrix as text."""
        if "confusion" not in self.metrics or len(self.classes) > _SHOWN_CLASSES:
            return
        cells = [["", *map(str, self.classes)]]
        cells += [[str(label), *map(str, row)] for label, row in zip(self.classes, self.confusion_matrix, strict=True)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield "rows by their class (down) and what is predicted (across), with noise:"
        for line in cells:
            yield "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))

    def _curve_lines(self) -> Iterator[str]:
        """The calibration curve as text."""
        for each in self.calibration_curve:
            low, high = each.interval
            yield f"predicted {each.lower:.3f} to {each.upper:.3f}: positives {each.share:.3f}, {low:.3f} to {high:.3f}"

    def _repr_html_(self) -> str:
        """The scores and their curves, for notebooks."""
        import importlib

        page = importlib.import_module("snugdp.report.scores")  # above this package: looked up when it is shown
        return str(page.notebook(self))

    def _estimates(self, metric: str) -> Iterator[MetricEstimate]:
        if metric == "roc_auc":
            yield self._area()
        elif metric == "accuracy":
            yield self._accuracy()
        elif metric in RATIOS:
            yield from self._ratios(metric)
        elif metric == "calibration" and self.bins is not None:
            error = self.bins.calibration_error()
            yield MetricEstimate("calibration_error", error, 0.0, 1.0, 0.0, 1.0, "no-interval")
        elif metric in ("log_loss", "brier", "mse", "mae"):
            yield self._loss(metric)
        elif metric == "r2":
            yield self._explained()

    def _area(self) -> MetricEstimate:
        found: Any = self.placement or self.bins
        if found.small is not None:
            return MetricEstimate("roc_auc", math.nan, *WHOLE, *WHOLE, f"small-{found.small}")
        if isinstance(found, Placement):
            return _estimate("roc_auc", found.area, found.interval(), found.interval(sampling=False))
        return _estimate("roc_auc", found.area(), found.area_interval(), found.area_interval(sampling=False))

    def _accuracy(self) -> MetricEstimate:
        number = len(self.classes)
        if "right" in self.parts:
            noise, tails = (self.deviations["right"] ** 2,) * 2, (self._kurtosis,) * 2
            right, wrong = self.parts["right"]
            return _proportion("accuracy", right, wrong, noise, tails)
        hits = range(0, number**2, number + 1)
        return self._share_of("accuracy", hits, [cell for cell in range(number**2) if cell not in hits])

    def _share_of(self, name: str, right: Sequence[int], wrong: Sequence[int]) -> MetricEstimate:
        """The rows of some cells of the table, as a share of these and of others."""
        table, noise, tails = self._table(), self._table_noise(), self._table_kurtosis()
        totals = [sum(table[cell] for cell in cells) for cells in (right, wrong)]
        variances = [sum(noise[cell] for cell in cells) for cells in (right, wrong)]
        fourths = [sum(tails[cell] * noise[cell] ** 2 for cell in cells) for cells in (right, wrong)]
        kurtosis = [
            fourth / variance**2 if variance else 0.0 for fourth, variance in zip(fourths, variances, strict=True)
        ]
        return _proportion(name, totals[0], totals[1], (variances[0], variances[1]), (kurtosis[0], kurtosis[1]))

    @property
    def _even(self) -> int:
        """The first bin of probabilities from 1/2 on."""
        return self.edges.index(EVEN) + 1

    def _table(self) -> tuple[int, ...]:
        """The confusion matrix, row by row: of every class, by what was predicted."""
        if self.bins is not None:
            tp, fp, fn, tn = self.bins.table(self._even)
            return tn, fp, fn, tp
        return self.parts.get("table", ())

    def _table_noise(self) -> tuple[float, ...]:
        if self.bins is not None:
            tp, fp, fn, tn = self.bins.table_noise(self._even)
            return tn, fp, fn, tp
        return (self.deviations["table"] ** 2,) * len(self.parts["table"])

    def _table_kurtosis(self) -> tuple[float, ...]:
        if self.bins is not None:
            tp, fp, fn, tn = self.bins.table_kurtosis(self._even)
            return tn, fp, fn, tp
        return (self._kurtosis,) * len(self.parts["table"])

    def _ratios(self, metric: str) -> Iterator[MetricEstimate]:
        """Of the positive class; of each of several, and their mean."""
        number = len(self.classes)
        if number == 2:
            yield self._ratio(metric, 1, metric)
            return
        found = [self._ratio(metric, index, f"{metric}: {label}") for index, label in enumerate(self.classes)]
        values = [0.5 if math.isnan(each.value) else each.value for each in found]
        mean, ends = averaged(values, [(each.lower, each.upper) for each in found])
        _, inner = averaged(values, [(each.sample_lower, each.sample_upper) for each in found])
        yield MetricEstimate(metric, mean, *ends, *inner, "mean-of-classes")
        yield from found

    def _ratio(self, metric: str, index: int, name: str) -> MetricEstimate:
        number = len(self.classes)
        hit = index * number + index
        row = [index * number + other for other in range(number) if other != index]
        column = [other * number + index for other in range(number) if other != index]
        missed = {"recall": row, "precision": column, "f1": row + column}[metric]
        found = self._share_of(name, [hit], missed)
        if metric != "f1" or math.isnan(found.value):
            return found
        return found.mapped(f1_of)

    def _mean(self, part: str) -> NoisyMean:
        first, second, third = self.parts[part][:3]
        deviation, factor = self.deviations[part] / CELLS, float(SPREADS[self.pure])
        return NoisyMean(first / CELLS, second / CELLS, third / CELLS**2, deviation, factor, self._kurtosis)

    def _scale(self, metric: str) -> float:
        """The largest value of a loss."""
        several = 2.0 if self.kind == "several" else 1.0
        return {"log_loss": log_cap(self.floor), "brier": several, "mse": self.cap**2, "mae": self.cap}[metric]

    def _loss(self, metric: str) -> MetricEstimate:
        scale, note = self._scale(metric), "" if metric == "brier" else "capped"
        if metric == "mse" and "mse" not in self.parts:
            return self._squares(scale, note)
        found = self._mean(metric)
        value = found.mean if found.count > 0 else math.nan
        ends = (*found.interval(), *found.interval(sampling=False))
        return _scaled(MetricEstimate(metric, value, *ends, note), scale)

    def _squares(self, scale: float, note: str) -> MetricEstimate:
        """The mean squared error, from the sums for R²."""
        error, count, noise, sampling = self._errors()
        if count <= 0:
            return _scaled(MetricEstimate("mse", math.nan, *WHOLE, *WHOLE, note), scale)
        n2, mean = count**2, error / count
        fourth = self._kurtosis * (noise / n2) ** 2 * (1 + 2 * mean**4)
        ends = [
            _within(NoisyRatio(mean, 1.0, (noise + own) / n2, 2 * noise / n2, fourth=fourth).interval())
            for own in (sampling, 0.0)
        ]
        held = min(max(mean, 0.0), 1.0)
        return _scaled(MetricEstimate("mse", held, *ends[0], *ends[1], note), scale)

    def _errors(self) -> tuple[float, float, float, float]:
        """The noisy sum of squared errors, the number of rows, the noise variance of a sum, and that by sampling."""
        target, factor = self._mean("r2"), float(SPREADS[self.pure])
        error, third = self.parts["r2"][3] / CELLS, self.parts["r2"][4] / CELLS**2
        inner = NoisyMean(error, target.count - error, third, target.deviation, factor)
        return error, target.count, target.deviation**2, max(target.count, 0.0) * inner.variance

    def _explained(self) -> MetricEstimate:
        target, factor = self._mean("r2"), float(SPREADS[self.pure])
        error, n, noise, sampling = self._errors()
        none = MetricEstimate("r2", math.nan, -math.inf, 1.0, -math.inf, 1.0, "small-variance")
        if n <= 0:
            return none
        scale, m, third = (self.cap / (self.bounds[1] - self.bounds[0])) ** 2, target.first / n, target.third
        variance = m * (1 - m) - third / (factor * n)
        inner = third / (factor * n**2)
        slopes = ((1 - 2 * m) * (1 - m) / n + inner, -(1 - 2 * m) * m / n + inner, -1 / (factor * n), 0.0)
        others = (-scale * error / n**2, -scale * error / n**2, 0.0, scale / n)
        over, under, both = (noise * sum(a * b for a, b in zip(x, y, strict=True))
                             for x, y in ((others, others), (slopes, slopes), (others, slopes)))  # fmt: skip
        if variance <= _ENOUGH * math.sqrt(under):
            return none
        ratio = scale * error / n / variance
        own_over = scale**2 * sampling / n**2
        own_under = max(0.0, variance * (max(m, 1 - m) ** 2 - variance)) / n  # at most, of numbers in [0, 1]
        fourth = self._kurtosis * noise**2 * sum((a - ratio * b) ** 4 for a, b in zip(others, slopes, strict=True))
        together = both - math.sqrt(own_over * own_under)
        outer = NoisyRatio(scale * error / n, variance, over + own_over, under + own_under, together, fourth).interval()
        sample = NoisyRatio(scale * error / n, variance, over, under, both, fourth).interval()
        found = MetricEstimate("r2", ratio, outer[1], outer[0], sample[1], sample[0], "capped")
        return found.mapped(lambda rest: min(1.0, 1 - rest))


def _estimate(name: str, value: float, outer: Interval, inner: Interval, note: str = "") -> MetricEstimate:
    """A score between 0 and 1."""
    return MetricEstimate(name, min(max(value, 0.0), 1.0), *outer, *inner, note)


def _proportion(
    name: str, yes: float, no: float, noise: tuple[float, float], kurtosis: tuple[float, float]
) -> MetricEstimate:
    outer = proportion_interval(yes, no, noise, alpha=ALPHA, kurtosis=kurtosis)
    if outer == WHOLE:
        return MetricEstimate(name, math.nan, *WHOLE, *WHOLE, "few-rows")
    inner = proportion_interval(yes, no, noise, sampling=False, kurtosis=kurtosis)
    return _estimate(name, yes / (yes + no), outer, inner)


def _scaled(found: MetricEstimate, scale: float) -> MetricEstimate:
    """The same in other units."""
    note = "few-rows" if math.isnan(found.value) else found.note
    return replace(found.mapped(lambda value: value * scale), note=note)


def _within(found: Interval) -> Interval:
    return max(found[0], 0.0), min(found[1], 1.0)


def _plain(each: MetricEstimate) -> dict[str, Any]:
    names = ("value", "lower", "upper", "sample_lower", "sample_upper")
    numbers = {name: getattr(each, name) for name in names}
    return {**{name: number if math.isfinite(number) else None for name, number in numbers.items()}, "note": each.note}
