"""Additive regression and classification: a linear model whose numbers are splines."""

from __future__ import annotations

from dataclasses import dataclass, field

from snugdp.estimators.additive.base import AdditiveModel
from snugdp.estimators.forecasts.usual import CURVED, CURVED_FOUND, EVEN, FOUND, Spread, Usual
from snugdp.estimators.linear import LinearRegression
from snugdp.estimators.logistic import LogisticRegression
from snugdp.tables.schema.schema import Layout, Schema


@dataclass(eq=False, repr=False)
class AdditiveRegressor(AdditiveModel, LinearRegression):
    """Additive regression with differential privacy: the effect of every number is a curve.

    The answer is a sum of curves, one for each number, and of the effects of levels of categories and of missing cells.
    Curves are piecewise linear, and shrink towards smooth ones. Where rows are few they are lines; declare columns as
    ``linear`` that are known to be. The fit is a robust one; where there are bends, the constant, lines and bends are
    weighed by clipped squares after it, so that it comes nearer to means. Rows without a target are left out.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. It is that of ``LinearRegression``: a row of splines is no longer than one of numbers, and knots are
    public, or released before as a part of the fit. Not covered: transformers before it that learn from the same rows,
    scores on private rows, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    cells : int, default=16
        How many pieces a curve has, from 1 to 64; fewer are better for few rows.
    linear : sequence of str, default=()
        Columns whose effect is a straight line; it needs fewer rows than a curve.
    effects : {"auto", "line", "curve", "both"}, default="auto"
        What the effects of all other numbers are. "both": a line with bends on it, which count as far as they help, by
        what is released after the fit (of labels: as far as they do not look like noise). "auto": the same, but lines
        where there are few rows for so many columns and so small a budget. "curve": all bends, in full.
    schema : Schema, optional
        Public bounds and values of the columns of a table. What it leaves open is found privately.
    bounds : FoundBounds or "private", default="private"
        "private" finds bounds that are not given in each fit, for about a quarter of the squared mu of the budget, and
        puts the knots where the rows are. ``bounds=model.bounds_`` uses those of an earlier fit at no cost.
    missing : {"centre", "drop", "indicator"} or mapping, optional
        What a missing cell does, for all columns or by name, as in ``Schema``. By default "indicator", an effect of its
        own, unless the schema says something else.
    method, fit_intercept, y_bound, proposals, validation, selection, rows
        As in ``LinearRegression``.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    coef_ : ndarray
        Values of the curves at their knots, as against the first knot, and effects of levels, as against the level of
        reference, in the units of the data; ``coef_names_`` names them, and ``curves()`` has whole curves.
    released_, intercept_, bounds_, plan_, outcome_, cost_ and all others
        As in ``LinearRegression``.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6000) % 100 / 10
    >>> model = AdditiveRegressor(epsilon=1, delta=1e-6).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict([[1.5], [4.5]]) - np.sin([1.5, 4.5])).max() < 0.5)
    True
    >>> len(model.curves()["x0"].knots)
    17
    """

    inference: bool = field(default=False, init=False)
    target: str = field(default="robust", init=False)

    def _usual(self, layout: Layout | None, spread: Spread | None = None) -> Usual:
        """As on real tables, on which the default was tried: with all bounds in a schema, and otherwise."""
        if super()._usual(layout, spread) is not FOUND:
            return EVEN
        return CURVED if isinstance(self.schema, Schema) and self.schema.complete else CURVED_FOUND


@dataclass(eq=False, repr=False)
class AdditiveClassifier(AdditiveModel, LogisticRegression):
    """Additive logistic regression with differential privacy: the effect of every number on the log-odds is a curve.

    As ``AdditiveRegressor``, for two or more classes, which are listed or found privately.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. It is that of ``LogisticRegression``, for the reasons that ``AdditiveRegressor`` gives, and with the
    same exceptions.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    classes : sequence, optional
        All possible labels; public. Otherwise they are found privately, up to 100 of them.
    method, multi_class, fit_intercept, proposals, validation, selection, rows
        As in ``LogisticRegression``.
    cells, linear, effects, schema, bounds, missing, ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``AdditiveRegressor``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    classes_ : ndarray
        The classes, in ascending order, as given or found.
    coef_, intercept_, released_, bounds_, plan_, outcome_, cost_ and all others
        As in ``AdditiveRegressor``; one row for two classes, otherwise one for each class.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6000) % 100 / 10
    >>> model = AdditiveClassifier(epsilon=1, delta=1e-6).fit(x[:, None], np.where(abs(x - 5) < 2, "in", "out"))
    >>> model.predict([[5.0], [0.5], [9.5]]).tolist()
    ['in', 'out', 'out']
    """

    inference: bool = field(default=False, init=False)
