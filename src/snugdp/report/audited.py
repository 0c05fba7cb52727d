"""The curves of an audit: what is claimed and what was measured, as errors of the best attack and as deltas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from snugdp.audit.finding import Curve
from snugdp.report.drawing import SMALL, Axes, Axis, Point, linear
from snugdp.report.words import missed

_RATES = tuple(step / 60 for step in range(61))


def pictures(curve: Curve, title: str) -> Markup:
    """The trade-off between the two errors of the best attack, and delta against epsilon."""
    return _errors(curve, title) + _deltas(curve, title)


def _errors(curve: Curve, title: str) -> Markup:
    def line(deltas: Sequence[float]) -> list[Point]:
        lines = list(zip(curve.at, deltas, strict=True))
        return [(rate, missed(lines, rate, both=False)) for rate in _RATES]

    halves = (0.0, 0.5, 1.0)
    axes = Axes(Axis("false alarms", linear(0, 1), halves, _short), Axis("missed", linear(0, 1), halves, _short), SMALL)
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
