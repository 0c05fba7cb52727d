"""The curves of a report, from pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from markupsafe import Markup

from snugdp.core.guarantee import Cost
from snugdp.report.drawing import Axes, Axis, Point, linear, logarithmic, mini
from snugdp.report.words import Pair, at_most, missed, number, upwards

_STEPS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0)  # of the epsilon that was promised
_FINE_STEPS = tuple(step / 20 for step in range(41))
_MIN_DELTA = 1e-18
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def deltas(cost: Cost, epsilon: float) -> tuple[Point, ...]:
    """(e, delta) pairs of a cost from 0 to twice an epsilon. Those of perturbed objectives take long: fewer of them."""
    steps = _STEPS if cost.atoms else _FINE_STEPS
    return tuple((step * epsilon, cost.delta_at(step * epsilon)) for step in steps)


def tradeoff(lines: Sequence[Point]) -> Markup:
    """The errors that the best attack must make, below the line of blind guessing."""
    rates = [0.0, *(10 ** (place / 10 - 4) for place in range(40)), 1.0]
    rates = sorted({*rates, *(step / 50 for step in range(51))})
    curve = [(rate, missed(lines, rate)) for rate in rates]
    axes = Axes(
        Axis("false-positive rate", linear(0, 1), _SHARES, _hundredth),
        Axis("false-negative rate", linear(0, 1), _SHARES, _hundredth),
    )
    at = next((point for point in curve if point[0] >= 0.05), curve[-1])
    told = (
        f"An attack with a false-positive rate of {_hundredth(at[0])} has a false-negative rate of at least "
        f"{math.floor(1000 * at[1]) / 10:g} %."
    )
    shapes = [
        axes.line([*curve, (1.0, 0.0)], "area", closed=True),
        axes.line([(0.0, 1.0), (1.0, 0.0)], "guess"),
        axes.line(curve, "curve"),
        axes.beside((0.53, 0.55), "blind guessing", 0, 0),
    ]
    return axes.drawing(told, shapes, "Errors of the best attack")


def delta_curve(points: Sequence[Point], pair: Pair) -> Markup:
    """Delta against epsilon, on a logarithmic scale, with the pair that was promised."""
    epsilon, delta = map(upwards, pair)
    seen = [held for _, held in points if held > _MIN_DELTA]
    low = math.floor(math.log10(max(min([*seen, delta or 1.0]), _MIN_DELTA)))
    low = min(max(low, math.floor(math.log10(delta or 1e-9)) - 6), -2)
    last = points[-1][0] or 1.0
    every = max(1, math.ceil(-low / 5))
    axes = Axes(
        Axis("epsilon", linear(0, last), tuple(last * place / 4 for place in range(5)), number),
        Axis("delta", logarithmic(10.0**low, 1.0), tuple(10.0**power for power in range(0, low - 1, -every)), number),
    )
    most = tuple(map(at_most, pair))
    told = f"Delta falls from {at_most(Fraction(points[0][1]), 3)} at epsilon 0. Promised: {most[1]} at {most[0]}."
    dot = axes.dot((epsilon, delta), 4.5, f"promised: epsilon {most[0]}, delta {most[1]}")
    shapes = [axes.line(_above(points, 10.0**low), "curve"), dot, axes.beside((epsilon, delta), "promised")]
    return axes.drawing(told, shapes, "Delta against epsilon")


def interval(low: float, value: float, high: float, reach: float | None = None) -> Markup:
    """A bar from low to high around a value; zero is in the middle. ``reach``: of the scale, or the bar's own."""
    reach = 1.08 * max(abs(low), abs(high), abs(value), 1e-300) if reach is None else reach
    left, at, right = (100 * (1 + end / reach) / 2 for end in (low, value, high))
    span = f"M{left:.2f} 5H{max(right, left + 0.5):.2f}"
    return mini(("zero", "M50 0V10"), ("span", span), ("here", f"M{at:.2f} 1V9"))


def bar(share: float) -> Markup:
    """A bar of a share of its width, from the left."""
    return mini(("rail", "M0 5H100"), ("share", f"M0 5H{100 * min(max(share, 0.0), 1.0):.2f}"))


def _above(points: Sequence[Point], low: float) -> list[Point]:
    """The points of a falling curve above a value, and where it crosses that value on a logarithmic scale."""
    kept = [point for point in points if point[1] >= low]
    if not kept or len(kept) == len(points):
        return kept or list(points[:1])
    (x, y), (right, under) = kept[-1], points[len(kept)]
    share = math.log(y / low) / math.log(y / max(under, 1e-300))
    return [*kept, (x + share * (right - x), low)]


def _hundredth(share: float) -> str:
    return f"{100 * share:.3g} %"
