"""Coefficients as people read them: in their units or in deviations, relative to reference levels. Post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.tables.found import FoundColumn
from snugdp.tables.layouts.affine import UnitlessLayout
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.schema import contrasts
from snugdp.tables.schema.kinds import Column, Spline
from snugdp.tables.schema.schema import Coefficients, Layout, Schema

UNITS = ("original", "standardised")


def shown(layout: Layout, theta: ArrayLike, units: str = "original", *, reference: bool = True) -> Coefficients:
    """A linear function of vectors in the user's units, or in standard deviations.

    ``reference``: levels are compared with that of reference; otherwise every level has an entry.

    >>> from snugdp import Category, Number
    >>> schema = Schema({"city": Category(["Rome", "Oslo"]), "y": Number(0, 2)}, target="y")
    >>> shown(schema, [0.5, 0.75, 0.0])
    Coefficients(names=('city=Oslo', 'city=(none)'), values=array([ 0.25, -0.5 ]), intercept=1.5)
    """
    if units not in UNITS:
        raise ValueError('units must be "original" or "standardised"')
    linear = layout.coefficients(theta)
    if not reference:
        linear = _with_no_levels(linear, layout)
    else:
        linear = _of_usual_levels(contrasts.identified(linear, compared(layout)), linear, layout)
    if units == "original":
        return linear
    target = None if isinstance(layout, UnitlessLayout) else layout.target
    return contrasts.standardised(linear, scales_of(layout), target)


def _with_no_levels(raw: Coefficients, layout: Layout) -> Coefficients:
    """With an entry for rows in none of the levels, where they are read as the mean of all levels."""
    inner = unwrapped(layout)
    usual = inner.usual_levels if isinstance(inner, StandardisedLayout) else {}
    every = dict(zip(raw.names, raw.values.tolist(), strict=True))
    more = {
        contrasts.no_level(name): sum(
            every[f"{name}={value}"] * part for value, part in zip(inner.bounds[name].values, weights, strict=True)
        )
        for name, weights in usual.items()
    }
    return Coefficients((*raw.names, *more), np.array([*raw.values, *more.values()]), raw.intercept)


def _of_usual_levels(relative: Coefficients, raw: Coefficients, layout: Layout) -> Coefficients:
    """With rows in none of the levels as the mean of all levels, where they are read so."""
    values, whole = relative.values.copy(), _with_no_levels(raw, layout)
    for entry, value in zip(whole.names[len(raw.names) :], whole.values[len(raw.names) :], strict=True):
        if entry in relative.names:
            values[relative.names.index(entry)] += value
    return Coefficients(relative.names, values, relative.intercept)


def deviations(layout: Layout, noise: float | NDArray[np.float64], *, reference: bool = True) -> NDArray[np.float64]:
    """The deviation of every coefficient that is shown, from that of all scaled ones or from those of each."""
    width = len(layout.features)
    raw = layout.coefficients(np.zeros(width))
    own = np.sqrt(_variances(layout, np.broadcast_to(np.asarray(noise, dtype=np.float64), width)))
    return contrasts.deviations(raw.names, own, compared(layout)) if reference else own


def _variances(layout: Layout, noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every coefficient as a function of scaled ones: most are one of them, times a unit."""
    if not any(isinstance(kind, Spline) for kind in layout.columns.values()):
        return layout.coefficients(noise).values ** 2
    start = layout.coefficients(np.zeros(len(noise))).values
    return sum(((layout.coefficients(one).values - start) ** 2 for one in np.diag(noise)), np.zeros(len(start)))


def compared(layout: Layout) -> Mapping[str, Column]:
    """The columns whose levels are not identified: those of a function with an intercept."""
    inner = unwrapped(layout)
    constant = inner.constant if isinstance(inner, StandardisedLayout) else inner.intercept
    return kinds_of(layout) if constant else {}


def kinds_of(layout: Layout) -> Mapping[str, Column]:
    """What the columns but the target hold: as declared, or as found; nothing of a matrix."""
    inner = unwrapped(layout)
    if isinstance(inner, Schema):
        columns: Mapping[str, Column] = inner.columns
    elif isinstance(inner, StandardisedLayout):
        splines = {name: kind for name, kind in inner.columns.items() if isinstance(kind, Spline)}
        columns = {**inner.bounds.kinds, **splines}
    else:
        return {}
    return {name: kind for name, kind in columns.items() if name != inner.target}


def unwrapped(layout: Layout) -> Any:
    """The layout in which rows are read."""
    return layout.layout if isinstance(layout, UnitlessLayout) else layout


def scales_of(layout: Layout) -> Mapping[str, FoundColumn]:
    """The deviations of columns: as they were found; of public bounds, what stands for them."""
    inner = unwrapped(layout)
    if isinstance(inner, StandardisedLayout):
        return inner.bounds.columns
    if isinstance(inner, Schema):
        from snugdp.mechanisms.bounds.preparation import known_columns

        return known_columns(inner)
    raise ValueError("a bound on the norm of rows says nothing of single columns: leave out x_norm, or give a schema")
