"""The curves of an additive model, drawn from what was released."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from snugdp.estimators.additive.curves import EffectCurve
from snugdp.report.drawing import SMALL, Axes, Axis, linear
from snugdp.report.words import number

NOTE = (
    "How the answer changes with each number, all else being equal; only differences along a curve say something. "
    "Wiggles may be privacy noise: what several knots in a row agree on is more certain than a single one."
)
_TICKS = 3


def plots_of(curves: Mapping[str, EffectCurve], most: int) -> tuple[Markup, ...]:
    """One drawing a curve, the largest effects first; all on one scale, so that they can be compared."""
    ranked = sorted(curves.values(), key=lambda curve: float(curve.values.min() - curve.values.max()))[:most]
    if not ranked:
        return ()
    low = min(float(curve.values.min()) for curve in ranked)
    high = max(float(curve.values.max()) for curve in ranked)
    return tuple(_plot(curve, low, high if high > low else low + 1.0) for curve in ranked)


def _plot(curve: EffectCurve, low: float, high: float) -> Markup:
    first, last = curve.knots[0], curve.knots[-1]
    axes = Axes(
        Axis(curve.name, linear(first, last), _even(first, last), _written),
        Axis("effect", linear(low, high), _even(low, high), _written),
        SMALL,
    )
    least, largest = int(curve.values.argmin()), int(curve.values.argmax())
    told = (
        f"From {_written(float(curve.values[least]))} at {_written(curve.knots[least])} to "
        f"{_written(float(curve.values[largest]))} at {_written(curve.knots[largest])}."
    )
    return axes.drawing(told, [axes.line(list(zip(curve.knots, curve.values, strict=True)), "curve")], curve.name)


def _even(low: float, high: float) -> tuple[float, ...]:
    return tuple(low + (high - low) * step / (_TICKS - 1) for step in range(_TICKS))


def _written(value: float) -> str:
    return number(value, 3)
