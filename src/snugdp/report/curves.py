"""Drawings for reports: inline SVG from pure functions, without scripts; colours and fonts come from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from snugdp.guarantee import Cost
from snugdp.report.words import missed, number

_WIDTH, _HEIGHT = 340.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 18.0, 12.0, 44.0
_STEPS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0)  # of the epsilon that was promised
_MORE = tuple(step / 20 for step in range(41))
_LOWEST = 1e-18

Point = tuple[float, float]
Draw = Callable[[float], float]


def deltas(cost: Cost, epsilon: float) -> tuple[Point, ...]:
    """(e, delta) pairs of a cost from 0 to twice an epsilon. Those of perturbed objectives take long: fewer of them."""
    steps = _STEPS if cost.atoms else _MORE
    return tuple((step * epsilon, cost.delta_at(step * epsilon)) for step in steps)


def tradeoff(lines: Sequence[Point]) -> Markup:
    """The errors that the best attack must make, below the line of blind guessing."""
    rates = [0.0, *(10 ** (place / 10 - 4) for place in range(40)), 1.0]
    rates = sorted({*rates, *(step / 50 for step in range(51))})
    curve = [(rate, missed(lines, rate)) for rate in rates]
    axes = _Axes.linear((0.0, 1.0), (0.0, 1.0), (0, 0.25, 0.5, 0.75, 1), (0, 0.25, 0.5, 0.75, 1), _hundredth)
    at = next((point for point in curve if point[0] >= 0.05), curve[-1])
    told = (
        f"An attack that accuses {_hundredth(at[0])} of those who are not in the table misses at least "
        f"{math.floor(1000 * at[1]) / 10:g} % of those who are."
    )
    shapes = [
        _path([*curve, (1.0, 0.0)], axes, "area", closed=True),
        _path([(0.0, 1.0), (1.0, 0.0)], axes, "guess"),
        _path(curve, axes, "curve"),
        _label(axes.x(0.53), axes.y(0.55), "blind guessing", "small", "start"),
    ]
    return axes.drawing(
        "Errors of the best attack", told, shapes, "false alarms (type I error)", "missed (type II error)"
    )


def delta_curve(points: Sequence[Point], epsilon: float, delta: float) -> Markup:
    """Delta against epsilon, on a logarithmic scale, with the pair that was promised."""
    seen = [held for _, held in points if held > _LOWEST]
    low = math.floor(math.log10(max(min([*seen, delta or 1.0]), _LOWEST)))
    low = min(max(low, math.floor(math.log10(delta or 1e-9)) - 6), -2)
    last = points[-1][0]
    every = max(1, math.ceil(-low / 5))
    axes = _Axes(
        lambda value: value / last,
        lambda value: 1 - max(math.log10(max(value, 1e-300)) / low, 0.0) if value > 10.0**low else 0.0,
        tuple(last * place / 4 for place in range(5)),
        tuple(10.0**power for power in range(0, low - 1, -every)),
        number,
        number,
    )
    told = f"Delta falls from {number(points[0][1], 3)} at epsilon 0. Promised: {number(delta)} at {number(epsilon)}."
    shapes = [_path(points, axes, "curve")]
    shapes += [_dot(axes.x(epsilon), axes.y(delta), f"promised: epsilon {number(epsilon)}, delta {number(delta)}")]
    shapes += [_label(axes.x(epsilon) + 7, axes.y(delta) - 7, "promised", "small", "start")]
    return axes.drawing("Delta against epsilon", told, shapes, "epsilon", "delta")


def forecast(points: Sequence[Point], epsilon: float) -> Markup:
    """A forecast error against epsilon, both on logarithmic scales, with the epsilon that was chosen."""
    from_, to = (_decade(point[0] for point in points), _decade(point[1] for point in points))
    axes = _Axes(_log(*from_), _log(*to), tuple(e for e, _ in points), _ticks(*to), number, number)
    told = "; ".join(f"epsilon {number(e)}: {number(error, 3)}" for e, error in points)
    shapes = [_path(points, axes, "curve")]
    for e, error in points:
        near = math.isclose(e, epsilon)
        shapes.append(_dot(axes.x(e), axes.y(error), f"epsilon {number(e)}: {number(error, 3)}", small=not near))
        shapes += [_label(axes.x(e) + 7, axes.y(error) - 7, "chosen", "small", "start")] if near else []
    return axes.drawing("Forecast error against epsilon", told, shapes, "epsilon", "expected error")


def interval(low: float, value: float, high: float, reach: float | None = None) -> Markup:
    """A bar from low to high around a value; zero is in the middle. ``reach``: of the scale, or the bar's own."""
    reach = 1.08 * max(abs(low), abs(high), abs(value), 1e-300) if reach is None else reach
    left, at, right = (100 * (1 + end / reach) / 2 for end in (low, value, high))
    return Markup(
        '<svg class="mini" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<path class="zero" d="M50 0V10"/><path class="span" d="M{:.2f} 5H{:.2f}"/>'
        '<path class="here" d="M{:.2f} 1V9"/></svg>'
    ).format(left, max(right, left + 0.5), at)


def bar(share: float) -> Markup:
    """A bar of a share of its width, from the left."""
    return Markup(
        '<svg class="mini" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<path class="rail" d="M0 5H100"/><path class="share" d="M0 5H{:.2f}"/></svg>'
    ).format(100 * min(max(share, 0.0), 1.0))


@dataclass(frozen=True)
class _Axes:
    """Where numbers are drawn: ``across`` and ``along`` map them to [0, 1]."""

    across: Draw
    along: Draw
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]

    @classmethod
    def linear(
        cls, xs: Point, ys: Point, x_ticks: Sequence[float], y_ticks: Sequence[float], text: Callable[[float], str]
    ) -> _Axes:
        return cls(
            lambda value: (value - xs[0]) / (xs[1] - xs[0]),
            lambda value: (value - ys[0]) / (ys[1] - ys[0]),
            x_ticks,
            y_ticks,
            text,
            text,
        )

    def x(self, value: float) -> float:
        return _LEFT + min(max(self.across(value), 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - min(max(self.along(value), 0.0), 1.0) * (_HEIGHT - _TOP - _BOTTOM)

    def drawing(self, title: str, told: str, shapes: Sequence[Markup], x_name: str, y_name: str) -> Markup:
        """The whole drawing; what it shows is told in words for those who do not see it."""
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        lines = [Markup('<path class="axis" d="M{} {}V{}H{}"/>').format(_LEFT, _TOP, bottom, right)]
        for tick in self.x_ticks:
            lines.append(Markup('<path class="axis" d="M{:.1f} {}v4"/>').format(self.x(tick), bottom))
            lines.append(_label(self.x(tick), bottom + 16, self.x_text(tick), "small", "middle"))
        for tick in self.y_ticks:
            lines.append(Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(_LEFT, self.y(tick), right))
            lines.append(_label(_LEFT - 5, self.y(tick) + 4, self.y_text(tick), "small", "end"))
        lines.append(_label((_LEFT + right) / 2, _HEIGHT - 8, x_name, "name", "middle"))
        turned = Markup(
            '<text class="name" text-anchor="middle" transform="translate(11 {:.1f}) rotate(-90)">{}</text>'
        )
        lines.append(turned.format((_TOP + bottom) / 2, y_name))
        head = Markup('<svg class="plot" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}"><title>{}</title>')
        whole = head.format(_WIDTH, _HEIGHT, f"{title}. {told}", title)
        return whole + Markup("").join([*lines, *shapes]) + Markup("</svg>")


def _path(points: Sequence[Point], axes: _Axes, name: str, *, closed: bool = False) -> Markup:
    steps = " ".join(f"{axes.x(x):.2f},{axes.y(y):.2f}" for x, y in points)
    return Markup('<{} class="{}" points="{}"/>').format("polygon" if closed else "polyline", name, steps)


def _label(x: float, y: float, text: str, name: str, anchor: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(name, x, y, anchor, text)


def _dot(x: float, y: float, text: str, *, small: bool = False) -> Markup:
    shape = Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>')
    return shape.format(x, y, 2.5 if small else 4.5, text)


def _hundredth(share: float) -> str:
    return f"{100 * share:.3g} %"


def _decade(values: Iterable[float]) -> Point:
    found = [value for value in values if value > 0]
    return min(found) / 1.15, max(found) * 1.15


def _log(low: float, high: float) -> Draw:
    return lambda value: math.log(max(value, 1e-300) / low) / math.log(high / low)


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 of every power of ten in between, or the powers alone where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [front * 10.0**power for power in powers for front in (1, 2, 5)]
    chosen = fine if len(powers) <= 3 else [10.0**power for power in powers]
    return tuple(tick for tick in chosen if low <= tick <= high)
