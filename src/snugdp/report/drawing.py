"""Claimed and measured curves as small pictures in SVG, in the page itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from snugdp.audit.finding import Curve

WIDTH, HEIGHT = 220, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 8, 22
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Picture:
    """What a template needs to draw a curve: paths, ticks, and words for those who cannot see it."""

    claimed: str
    measured: str
    band: str
    dots: Points
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    words: str
    label: str


def picture(curve: Curve, title: str) -> Picture:
    """The curve in the coordinates of its picture."""
    finite = [value for value in (*curve.claimed, *curve.measured) if math.isfinite(value)]
    low, high = min(curve.at), max(curve.at)
    top = max([*finite, 1e-9])
    top = 1.0 if top > 0.5 else _round(top)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low) / (high - low) if high > low else 0.5
        up = min(max(y / top, 0.0), 1.0) if math.isfinite(y) else 1.0
        return (
            round(_LEFT + across * (WIDTH - _LEFT - _RIGHT), 1),
            round(HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM), 1),
        )

    measured = [place(x, y) for x, y in zip(curve.at, curve.measured, strict=True)]
    band = ""
    if curve.low and curve.high and curve.low != curve.high:
        under = [place(x, y) for x, y in zip(curve.at, curve.low, strict=True)]
        known = min(curve.high) < 1  # otherwise there is a lower end alone
        over = [place(x, y) for x, y in zip(curve.at, curve.high if known else curve.measured, strict=True)]
        band = _path([*over, *reversed(under)]) + "Z"
    ticks = (low, 0.0, high) if low < 0 < high else (low, high)
    return Picture(
        _path(place(x, y) for x, y in zip(curve.at, curve.claimed, strict=True)),
        _path(measured),
        band,
        measured,
        [(place(x, 0)[0], f"{x:.2g}") for x in ticks],
        [(place(low, y)[1], f"{y:.2g}") for y in (0.0, top / 2, top)],
        f"{title}: claimed and measured {'delta' if curve.kind == 'delta' else 'errors'}",
        "epsilon" if curve.kind == "delta" else "first error",
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x},{y}" for x, y in points)


def _round(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value * 0.999)
