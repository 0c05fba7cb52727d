"""The curves of an additive model, in the user's units. Post-processing of released coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.tables.found import FoundNumber
from snugdp.tables.layouts.affine import UnitlessLayout
from snugdp.tables.layouts.curved import CurvedLayout, StandardCurve
from snugdp.tables.schema.missing import entry_name
from snugdp.tables.schema.schema import Coefficients, entry_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EffectCurve:
    """The effect of one number on the answer: a line from knot to knot, and on with a slope of its own beyond them.

    Parameters
    ----------
    name : str
        The column.
    knots : tuple of float
        Where the pieces of the curve meet.
    values : ndarray
        Its values there, less their mean: only differences between places on a curve say something.
    missing : float, optional
        The effect of a missing cell, on the same scale.
    slopes : (float, float)
        By how much it grows with the number below the first knot, and above the last.
    bounds : (float, float), optional
        Numbers beyond these count as these; by default the first and the last knot.
    deviations : ndarray, optional
        How far off the values are, as standard deviations: by privacy noise and by chance.

    Examples
    --------
    >>> curve = EffectCurve("age", (0.0, 50.0, 100.0), np.array([-1.0, 0.5, 0.5]))
    >>> curve.at([25, 100, 1000]).tolist()
    [-0.25, 0.5, 0.5]
    >>> EffectCurve("age", (0.0, 1.0, 2.0), np.array([0.0, -1.0, 1.0])).monotone().values.tolist()
    [-0.5, -0.5, 1.0]
    """

    name: str
    knots: tuple[float, ...]
    values: Floats
    missing: float | None = None
    slopes: tuple[float, float] = (0.0, 0.0)
    bounds: tuple[float, float] | None = None
    deviations: Floats | None = None

    def at(self, x: ArrayLike) -> Floats:
        """The effect at these values of the column; that of a missing one, if it has one, for what is no number."""
        given = np.asarray(x, dtype=np.float64)
        gap = np.nan if self.missing is None else self.missing
        first, last = self.knots[0], self.knots[-1]
        kept = np.clip(given, *(self.bounds or (first, last)))
        below, above = self.slopes
        beyond = below * np.minimum(kept - first, 0.0) + above * np.maximum(kept - last, 0.0)
        return np.where(np.isnan(given), gap, np.interp(given, self.knots, self.values) + beyond)

    def band(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Two curves at the knots between which the true one lies there, with a probability of about ``level`` each.

        It counts privacy noise and chance, as far as what was released tells; where the true curve bends less than can
        be told from noise, and the model says that it is straight, it counts how far it may bend all the same.
        """
        if self.deviations is None:
            raise ValueError(
                "the noise of this curve is not known: there is no band with more than two classes, nor where effects "
                "are lines, as they are if rows are few"
            )
        if not 0 < level < 1:
            raise ValueError("level must lie between 0 and 1, such as 0.95")
        half = NormalDist().inv_cdf((1 + level) / 2) * self.deviations
        return self.values - half, self.values + half

    def monotone(self, *, increasing: bool = True) -> EffectCurve:
        """The nearest curve that only rises, or only falls: isotonic regression on the knots. It costs nothing."""
        from sklearn.isotonic import isotonic_regression

        values = np.asarray(isotonic_regression(self.values, increasing=increasing))
        low, high = (max(slope, 0.0) if increasing else min(slope, 0.0) for slope in self.slopes)
        return replace(self, values=values, slopes=(low, high))

    def smooth(self, reach: float = 1.0) -> EffectCurve:
        """A smoother curve: bends that go up and down within about ``reach`` knots are evened out. It costs nothing.

        Straight curves stay as they are. The band stays as wide, around the smoother curve.

        >>> EffectCurve("age", (0.0, 1.0, 2.0), np.array([-1.0, 2.0, -1.0])).smooth(2).values.round(2).tolist()
        [-0.01, 0.02, -0.01]
        """
        if not 0 <= reach < math.inf:
            raise ValueError("reach must be a number of knots, 0 or more, such as 1")
        turns = np.diff(np.eye(len(self.knots)), 2, axis=0)
        even = np.eye(len(self.knots)) + reach**4 * turns.T @ turns
        return replace(self, values=np.asarray(np.linalg.solve(even, self.values), dtype=np.float64))


def curves_of(layout: Any, every: Coefficients, spread: Mapping[str, Floats]) -> dict[str, EffectCurve]:
    """Those of a linear function with an entry for every knot. ``spread``: the covariance of their lines and bends."""
    inner: Any = layout.layout if isinstance(layout, UnitlessLayout) else layout
    assert isinstance(inner, CurvedLayout)
    half = 1.0 if isinstance(layout, UnitlessLayout) else layout.target_units[1]
    given = dict(zip(every.names, every.values.tolist(), strict=True))
    found = {}
    for name, (_, scale) in inner.curved.items():
        knots = scale.knots
        values = np.array([given[entry] for entry in entry_names(name, scale.kind)])
        gap, middle = given.get(entry_name(name)), float(values.mean())
        slopes = given.get(f"{name} below {knots[0]:.6g}", 0.0), given.get(f"{name} above {knots[-1]:.6g}", 0.0)
        bounds = min(scale.found.lower, knots[0]), max(scale.found.upper, knots[-1])
        wide = _deviations(scale, spread[name]) * half * inner.scaled if name in spread else None
        found[name] = EffectCurve(
            name, knots, values - middle, None if gap is None else gap - middle, slopes, bounds, wide
        )
    return found | {name: _straight(name, number, given) for name, number in inner.straight.items()}


def _straight(name: str, number: FoundNumber, given: Mapping[str, float]) -> EffectCurve:
    """The line of a number that would have a curve if there were more rows, between where rows were seen."""
    slope, (first, last) = given[name], number.hull or (number.lower, number.upper)
    half, gap = slope * (last - first) / 2, given.get(entry_name(name))
    if gap is not None:
        gap -= slope * ((first + last) / 2 - number.centre)
    bounds = min(number.lower, first), max(number.upper, last)
    return EffectCurve(name, (first, last), np.array([-half, half]), gap, (slope, slope), bounds)


def _deviations(scale: StandardCurve, spread: Floats) -> Floats:
    """Of the values at the knots, less their mean."""
    images = scale.at_knots - scale.at_knots.mean(axis=0)
    found: Floats = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", images, spread, images), 0.0))
    return found
