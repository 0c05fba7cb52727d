"""The page of an audit: what failed, what was claimed and measured, and curves of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from snugdp.audit.finding import LAYERS, Curve, Finding
from snugdp.report.drawing import SMALL, Axes, Axis, Point, linear
from snugdp.report.words import missed

if TYPE_CHECKING:
    from snugdp.audit.run import Report

_RATES = tuple(step / 60 for step in range(61))


@dataclass(frozen=True)
class Drawn:
    """A finding with its two pictures."""

    finding: Finding
    pictures: Markup


def page(report: Report) -> str:
    """One page of HTML that needs nothing else: no script, no font, no picture from elsewhere."""
    from snugdp.report.model import pages_of

    return (
        pages_of()
        .get_template("audit.html")
        .render(
            report=report,
            layers=LAYERS,
            table=by_layer(report),
            groups=grouped(report),
            curves=[(group, drawn(findings)) for group, findings in grouped(report)],
        )
    )


def grouped(report: Report) -> list[tuple[str, list[Finding]]]:
    """The findings by group of their cases; what belongs to no case comes last. Failures first in each."""
    by_group: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_group.setdefault(report.groups.get(finding.case, "behind all mechanisms"), []).append(finding)
    order = {name: index for index, name in enumerate(dict.fromkeys(report.groups.values()))}
    ordered = sorted(by_group.items(), key=lambda entry: order.get(entry[0], len(order)))
    return [(group, sorted(findings, key=lambda one: one.passed)) for group, findings in ordered]


def by_layer(report: Report) -> list[tuple[str, str, int, int, float]]:
    """For each layer that was looked at: its letter, name, number of claims, of failures, and seconds."""
    rows = []
    for layer, name in LAYERS.items():
        own = [finding for finding in report.findings if finding.layer == layer]
        if own:
            wrong = sum(not finding.passed for finding in own)
            rows.append((layer, name, len(own), wrong, report.seconds.get(layer, 0.0)))
    return rows


def drawn(findings: Iterable[Finding]) -> list[Drawn]:
    """One finding of every case that has a curve: the first that failed, or what was seen of all that is drawn."""
    chosen: dict[str, Finding] = {}
    for one in findings:
        if one.curve and (one.case not in chosen or (chosen[one.case].passed and not one.passed)):
            chosen[one.case] = one
    return [Drawn(one, pictures(one.curve, f"{one.case}, layer {one.layer}")) for one in chosen.values() if one.curve]


def pictures(curve: Curve, title: str) -> Markup:
    """The trade-off between the two errors of the best attack, and delta against epsilon."""
    return _errors(curve, title) + _deltas(curve, title)


def _errors(curve: Curve, title: str) -> Markup:
    def line(deltas: Sequence[float]) -> list[Point]:
        lines = list(zip(curve.at, deltas, strict=True))
        return [(rate, missed(lines, rate, both=False)) for rate in _RATES]

    halves = (0.0, 0.5, 1.0)
    axes = Axes(
        Axis("false positives", linear(0, 1), halves, _short),
        Axis("false negatives", linear(0, 1), halves, _short),
        SMALL,
    )
    guess = axes.line([(0.0, 1.0), (1.0, 0.0)], "guess")
    return axes.drawing(
        f"{title}: claimed and measured errors of the best attack", [guess, *_shapes(axes, curve, line)]
    )


def _deltas(curve: Curve, title: str) -> Markup:
    def line(deltas: Sequence[float]) -> list[Point]:
        return list(zip(curve.at, deltas, strict=True))

    finite = [value for value in (*curve.claimed, *curve.measured) if math.isfinite(value)]
    low, high, top = min(curve.at), max(curve.at), max([*finite, 1e-9])
    top = 1.0 if top > 0.5 else _round(top)
    places = (low, 0.0, high) if low < 0 < high else (low, high)
    axes = Axes(
        Axis("epsilon", linear(low, high), places, _short),
        Axis("delta", linear(0, top), (0.0, top / 2, top), _short),
        SMALL,
    )
    dots = [axes.dot(point, 1.8) for point in line(curve.measured)]
    return axes.drawing(f"{title}: claimed and measured delta", [*_shapes(axes, curve, line), *dots])


def _shapes(axes: Axes, curve: Curve, line: Callable[[Sequence[float]], list[Point]]) -> list[Markup]:
    """The interval, what was measured, and over both what is claimed."""
    shapes = [axes.line(line(curve.measured), "measured"), axes.line(line(curve.claimed), "claimed")]
    if curve.low and curve.high and curve.low != curve.high:
        high = curve.high if min(curve.high) < 1 else curve.measured  # otherwise there is a lower end alone
        shapes.insert(0, axes.line([*line(high), *reversed(line(curve.low))], "band", closed=True))
    return shapes


def _short(value: float) -> str:
    return f"{value:.2g}"


def _round(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value * 0.999)
