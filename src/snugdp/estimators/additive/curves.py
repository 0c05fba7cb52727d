"""The curves of an additive model, in the user's units. Post-processing of released coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.tables.schema.kinds import Spline
from snugdp.tables.schema.missing import entry_name
from snugdp.tables.schema.schema import Coefficients, entry_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EffectCurve:
    """The effect of one number on the answer: a line from knot to knot, flat beyond the first and the last.

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

    def at(self, x: ArrayLike) -> Floats:
        """The effect at these values of the column; that of a missing one, if it has one, for what is no number."""
        given = np.asarray(x, dtype=np.float64)
        gap = np.nan if self.missing is None else self.missing
        return np.where(np.isnan(given), gap, np.interp(given, self.knots, self.values))

    def monotone(self, *, increasing: bool = True) -> EffectCurve:
        """The nearest curve that only rises, or only falls: isotonic regression on the knots. It costs nothing."""
        from sklearn.isotonic import isotonic_regression

        return replace(self, values=np.asarray(isotonic_regression(self.values, increasing=increasing)))


def curves_of(columns: Mapping[str, Any], every: Coefficients) -> dict[str, EffectCurve]:
    """Those of a linear function with an entry for every knot."""
    given = dict(zip(every.names, every.values.tolist(), strict=True))
    found = {}
    for name, column in columns.items():
        if isinstance(column, Spline):
            values = np.array([given[entry] for entry in entry_names(name, column)])
            gap, middle = given.get(entry_name(name)), float(values.mean())
            found[name] = EffectCurve(name, column.knots, values - middle, None if gap is None else gap - middle)
    return found
