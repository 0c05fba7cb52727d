"""Drawings as inline SVG, without scripts: axes, lines, dots, words. Colours and fonts come from the page.

Every number that is drawn is first mapped to [0, 1] and held there, so that nothing leaves its drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

Point = tuple[float, float]
Draw = Callable[[float], float]


@dataclass(frozen=True)
class Frame:
    """The size of a drawing, and the margins for what is written around it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    gap: float  # from an axis to its numbers


PLOT = Frame(340, 250, 62, 18, 12, 44, 16)
SMALL = Frame(220, 160, 48, 12, 8, 34, 13)


@dataclass(frozen=True)
class Axis:
    """One axis: ``place`` maps numbers to [0, 1]; ``ticks`` are written by ``text``."""

    name: str
    place: Draw
    ticks: Sequence[float]
    text: Callable[[float], str]

    def at(self, value: float) -> float:
        """Where a number is, never outside; what is not finite is at the end."""
        return min(max(self.place(value), 0.0), 1.0) if math.isfinite(value) else 1.0


@dataclass(frozen=True)
class Axes:
    """Two axes in a frame."""

    across: Axis
    along: Axis
    frame: Frame = PLOT

    def x(self, value: float) -> float:
        """The horizontal coordinate."""
        return self.frame.left + self.across.at(value) * (self.frame.width - self.frame.left - self.frame.right)

    def y(self, value: float) -> float:
        """The vertical coordinate, from the top."""
        inner = self.frame.height - self.frame.top - self.frame.bottom
        return self.frame.height - self.frame.bottom - self.along.at(value) * inner

    def line(self, points: Sequence[Point], name: str, *, closed: bool = False) -> Markup:
        """A line through points, or an area."""
        steps = " ".join(f"{self.x(x):.2f},{self.y(y):.2f}" for x, y in points)
        return Markup('<{} class="{}" points="{}"/>').format("polygon" if closed else "polyline", name, steps)

    def dot(self, point: Point, radius: float, text: str = "") -> Markup:
        """A dot that says what it is."""
        inside = Markup("<title>{}</title>").format(text) if text else ""
        shape = Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>')
        return shape.format(self.x(point[0]), self.y(point[1]), radius, inside)

    def beside(self, point: Point, text: str, right: float = 7, up: float = 7) -> Markup:
        """A word beside a point."""
        return label(self.x(point[0]) + right, self.y(point[1]) - up, text, "small", "start")

    def drawing(self, told: str, shapes: Sequence[Markup], title: str = "") -> Markup:
        """The whole drawing; what it shows is told in words for those who do not see it."""
        frame = self.frame
        bottom, right = frame.height - frame.bottom, frame.width - frame.right
        lines = [Markup('<path class="axis" d="M{:g} {:g}V{:g}H{:g}"/>').format(frame.left, frame.top, bottom, right)]
        for tick in self.across.ticks:
            lines.append(Markup('<path class="axis" d="M{:.1f} {:g}v4"/>').format(self.x(tick), bottom))
            lines.append(label(self.x(tick), bottom + frame.gap, self.across.text(tick), "small", "middle"))
        for tick in self.along.ticks:
            lines.append(Markup('<path class="grid" d="M{:g} {:.1f}H{:g}"/>').format(frame.left, self.y(tick), right))
            lines.append(label(frame.left - 5, self.y(tick) + 4, self.along.text(tick), "small", "end"))
        lines.append(label((frame.left + right) / 2, frame.height - frame.gap / 2, self.across.name, "name", "middle"))
        if self.along.name:
            turned = '<text class="name" text-anchor="middle" transform="translate(11 {:.1f}) rotate(-90)">{}</text>'
            lines.append(Markup(turned).format((frame.top + bottom) / 2, self.along.name))
        head = Markup('<svg class="plot" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">')
        named = Markup("<title>{}</title>").format(title) if title else Markup()
        whole = head.format(frame.width, frame.height, f"{title}. {told}" if title else told) + named
        return whole + Markup("").join([*lines, *shapes]) + Markup("</svg>")


def label(x: float, y: float, text: str, name: str, anchor: str) -> Markup:
    """Words at a place."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(name, x, y, anchor, text)


def linear(low: float, high: float) -> Draw:
    """From low to high in equal steps; everything in the middle if they are the same."""
    return lambda value: (value - low) / (high - low) if high > low else 0.5


def logarithmic(low: float, high: float) -> Draw:
    """From low to high in equal factors."""
    return lambda value: math.log(max(value, 1e-300) / low) / math.log(high / low)


def ticks(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 of every power of ten in between, or the powers alone where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [front * 10.0**power for power in powers for front in (1, 2, 5)]
    chosen = fine if len(powers) <= 3 else [10.0**power for power in powers]
    return tuple(tick for tick in chosen if low <= tick <= high)


def mini(*shapes: tuple[str, str]) -> Markup:
    """A drawing in a line of a table, 100 wide and 10 high, of paths by their class. Its numbers stand beside it."""
    head = '<svg class="mini" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
    paths = Markup("").join(Markup('<path class="{}" d="{}"/>').format(name, path) for name, path in shapes)
    return Markup(head) + paths + Markup("</svg>")
