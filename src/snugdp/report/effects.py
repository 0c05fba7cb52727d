"""The curves of an additive model, drawn from what was released."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from snugdp.estimators.additive.curves import EffectCurve, Floats
from snugdp.report.drawing import SMALL, Axes, Axis, linear
from snugdp.report.words import number

_NOTE = "How the answer changes with each number, all else being equal; only differences along a curve say something."
_STRAIGHT = "Effects are straight lines: that was asked for, or rows are few for so many columns and so small a budget."
_BAND = (
    "Broken lines are a band for privacy noise and chance: at each place the true effect lies in it with a probability "
    "of about 95 %."
)
_TICKS = 3


def note_on(curves: Mapping[str, EffectCurve]) -> str:
    """What is below drawings of these."""
    straight = all(len(curve.knots) == 2 for curve in curves.values())
    banded = any(curve.deviations is not None for curve in curves.values())
    return " ".join([_NOTE, *[_STRAIGHT] * straight, *[_BAND] * banded])


def plots_of(curves: Mapping[str, EffectCurve], most: int) -> tuple[Markup, ...]:
    """One drawing a curve, the largest effects first; all on one scale, so that they can be compared."""
    ranked = sorted(curves.values(), key=lambda curve: float(curve.values.min() - curve.values.max()))[:most]
    if not ranked:
        return ()
    low = min(float(_sides(curve)[0].min()) for curve in ranked)
    high = max(float(_sides(curve)[1].max()) for curve in ranked)
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
    drawn = [axes.line(list(zip(curve.knots, curve.values, strict=True)), "curve")]
    if curve.deviations is not None:
        drawn = [*(axes.line(list(zip(curve.knots, side, strict=True)), "guess") for side in curve.band()), *drawn]
    return axes.drawing(told, drawn, curve.name)


def _sides(curve: EffectCurve) -> tuple[Floats, Floats]:
    """Between which a curve is drawn: its band, if it has one."""
    return (curve.values, curve.values) if curve.deviations is None else curve.band()


def _even(low: float, high: float) -> tuple[float, ...]:
    return tuple(low + (high - low) * step / (_TICKS - 1) for step in range(_TICKS))


def _written(value: float) -> str:
    return number(value, 3)
