"""Linear regression as scikit-learn knows it, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from snugdp.estimators.forecasts.usual import FOUND, Spread, Usual, between_bounds, refuse
from snugdp.estimators.intervals import WithIntervals
from snugdp.estimators.methods.linear import INFERENCE, MEAN, METHODS, Recipe
from snugdp.estimators.model import LinearModel
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.targets import RealTarget
from snugdp.numerics.rationals import Real
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.schema.kinds import Spline
from snugdp.tables.schema.schema import Layout, Schema


@dataclass(eq=False, repr=False)
class LinearRegression(WithIntervals, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Linear regression with differential privacy.

    Bounds may be public: ``x_norm`` and ``y_bound``, or a ``schema`` with bounds for the columns of a table. What is
    not given is found privately in the same fit. Rows without a target are left out; missing and invalid entries count
    as the centre of their column (with public bounds its middle, with ``x_norm`` 0), or as ``missing`` says.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), scores
    on private rows, such as those of a grid search, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    epsilon : Real, default=1.0
        Privacy budget of each fit.
    delta : Real, default=1e-6
        Failure probability of each fit.
    method : str, default="auto"
        "auto" (recommended): "whitened" for schemas with all bounds and up to 128 entries, and for 25 to 128 columns
        whose bounds are found privately; otherwise "adaptive"; "objective", "sufficient", "adassp", "posterior",
        "ops_balanced", "adaops", "output" or "descent"; the page on linear regression compares them.
    schema : Schema, optional
        Public bounds and values of the columns of a table, instead of ``x_norm`` and ``y_bound``. What it leaves open
        is found privately.
    bounds : FoundBounds or "private", default="private"
        Where bounds are not given: "private" finds those of every column, its centre and its scale in each fit, for a
        quarter of the squared mu of the budget. ``bounds=model.bounds_`` uses those of an earlier fit at no cost.
    missing : {"centre", "drop", "indicator"} or mapping, optional
        What a missing cell does, for all columns or by name, as in ``Schema``; "centre" by default.
    x_norm : Real, optional
        Public bound on the Euclidean norm of a row; longer rows are shortened to it. It goes with ``y_bound``.
    y_bound : Real or (Real, Real), optional
        Public bounds on the target: b for [-b, b], or (low, high). Targets outside are clipped.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    target : {"robust", "mean"}, default="robust"
        What is estimated. "robust": a line through the usual values of the target, in which large residuals count less
        than in least squares. "mean": the conditional mean, from clipped squares, for sums and means of skewed targets;
        its noise is larger (the page on standard errors says by how much), and it has standard errors and intervals
        whether ``inference`` is asked for or not.
    inference : bool, default=False
        Whether to release, with the fit and for the same budget, what standard errors, intervals and tests are computed
        from: ``summary()``, ``conf_int()``, ``contrast()``, ``joint_test()``. Rows are whitened privately, which helps
        the fit where columns are collinear or bounds are loose.
    proposals : dict, optional
        Public settings of the method, such as {"ridge": 10.0}. With lists, as in {"ridge": [1, 10], "clip": [0.1,
        0.2]}, every combination is a candidate, and the best on ``validation`` is selected privately.
    validation : (X, y), optional
        Public rows and targets to select on.
    selection : dict, optional
        How to select, such as {"mean_runs": 30, "law": "geometric"}; see ``Selection``.
    rows : int, optional
        A public guess of the number of rows.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger that every fit is charged to, or its path or URL. It is shared, not copied, by ``clone`` and by
        searches. **Without a ledger, fits are not counted against any budget**: each fit has its own, and adding up
        ``outcome_.cost`` is left to you. A pickle keeps the address of a ledger, without the password of a URL (which
        PGPASSWORD or a .pgpass file then supplies); it does not keep a ``MemoryLedger``.
    noise : Noise, optional
        A ``Simulation`` rehearses the fit, starting afresh each time. A rehearsal is NOT PRIVATE and cannot be charged.
    random_state : int, optional
        ``random_state=1`` is short for ``noise=Simulation(1)``, and warns that the fit is NOT PRIVATE.
    progress : bool, optional
        Whether to show a progress bar while files are read; None decides by the terminal.
    neighbours : {"add_remove"}, default="add_remove"
        The only relation with a proof.
    person : str, optional
        The column that says whose rows belong together, such as "customer_id"; it is no feature. Then persons are
        protected, whatever the number of their rows, and a row without an identifier is a person of its own. A schema
        may name it too; the identifiers of an array are given as ``fit(X, y, groups=...)``. Identifiers of 16 digits
        and more must not be in a plain column of pandas (int64, object, str) or an array of numpy, where they are left
        out: read them as "string" or "Int64", or give a list.
    max_rows : int or "private", default=1
        With ``person``: how many rows those of one person may count for together. "auto" and "objective" use all rows,
        with weights that add up to at most this; the noise grows with it, and the error of the sample falls. "private"
        chooses 1, 2, 4, 8 or 16 from how many rows persons have, for a hundredth of the squared mu of the budget
        ("auto"). Other methods keep so many rows of each person, chosen at random; those that are not proved for more
        than one are refused when they are planned.

    Attributes
    ----------
    released_ : bool
        Whether the fit was released. After a refusal the attributes that describe the model are missing.
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the units of the data. Levels of a category are compared with its reference level, which has
        none; see ``coefficients``.
    intercept_ : float
        The intercept: the answer in the reference levels, where all else is 0.
    coef_names_ : tuple of str
        What each coefficient belongs to; ``city=(none)`` is for rows in none of the levels.
    left_out_ : dict
        Where columns were taken by their types and names: those that are not used, and why.
    noise_scale_ : ndarray or None
        Standard deviation of the noise in each coefficient, if it is known.
    bounds_ : FoundBounds
        What was found privately about the columns, if anything was: released, and good for other fits.
    details_ : dict
        Other released numbers.
    holdout_score_ : ModelScores
        After ``fit(..., holdout=0.2)``: the private scores on the rows that were held out of the fit.
    best_proposal_ : dict
        The winning proposal, if several were tried.
    certificate_ : object or None
        What a private test released, if the method has one that does.
    plan_ : Plan
        The plan that was followed.
    outcome_ : Outcome
        The outcome; ``outcome_.cost`` is what was spent.
    cost_ : Cost
        What the fit cost, whether it was released or refused.
    receipt_ : Receipt or None
        The ledger's receipt; None after a rehearsal.
    guarantee_ : object or None
        The guarantee with its ``epsilon``, ``delta``, ``neighbours`` and ``proof``; None after a rehearsal.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = [2 * a - b for a, b in X]
    >>> model = LinearRegression(epsilon=1, delta=1e-6, method="adassp", x_norm=1.5, y_bound=2).fit(X, y)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - 0.5) < 0.5)
    True

    Without any bounds, and then with those that were found:

    >>> model = LinearRegression(epsilon=1, delta=1e-6).fit(X, y)
    >>> again = LinearRegression(epsilon=1, delta=1e-6, bounds=model.bounds_).fit(X, y)
    >>> bool(abs(again.predict([[0.5, 0.5]])[0] - 0.5) < 0.2)
    True
    """

    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    y_bound: Real | tuple[Real, Real] | None = None
    inference: bool = False
    target: str = "robust"

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[np.float64]:
        """The target of every row. Rows are read as in the fit; none is left out, and missing is the middle.

        Where the bounds of the target were found privately, so is the range that predictions are clipped to.
        """
        scaled = self._linear(X)
        middle, half = self._layout.target_units
        found = getattr(self, "bounds_", None)
        answers = np.asarray(middle + half * scaled)
        return answers if found is None or found.answers is None else np.clip(answers, *found.answers)

    def _recipes(self) -> Mapping[str, Recipe]:
        if not isinstance(self.target, str) or self.target not in ("robust", "mean"):
            raise ValueError('target must be "robust" or "mean"; the column to predict is named in fit or in a schema')
        if not self._wants_intervals():
            return METHODS
        return MEAN if self._is_mean else INFERENCE

    def _read_by(self, layout: Layout) -> dict[str, Any]:
        """Whether each column has public bounds of its own: the default whitens such rows, unless they are splines.

        Between bounds that were found, how skewed the target is.
        """
        if isinstance(layout, StandardisedLayout) and self.method in ("auto", "adaptive") and not self.has_intervals:
            return {"skew": layout.target_skew}
        if self._wants_intervals() or self.method != "auto" or self._is_open or not isinstance(layout, Schema):
            return super()._read_by(layout)
        return {"by_column": not any(isinstance(kind, Spline) for kind in layout.columns.values())}

    def _planned_by(self, layout: Layout) -> dict[str, Any]:
        """How many entries are planned: the default whitens rows that have not too many."""
        whitens = self.method == "auto" and not self._wants_intervals()
        return {"entries": len(layout.features)} if whitens else super()._planned_by(layout)

    def _usual(self, layout: Layout | None, spread: Spread | None = None) -> Usual:
        """As on real tables, on which the default was tried."""
        tried = self.method == "auto" and not self._wants_intervals()
        if not tried or not (layout is None or isinstance(layout, Schema)):
            return super()._usual(layout, spread)
        if layout is None:
            refuse(spread)
            return FOUND
        return between_bounds(layout, spread)

    @property
    def _is_mean(self) -> bool:
        return isinstance(self.target, str) and self.target == "mean"

    @property
    def has_intervals(self) -> bool:
        """Whether a fit releases what standard errors are computed from."""
        return super().has_intervals or self._is_mean

    @property
    def _estimand(self) -> str:
        return "mean" if self._is_mean else "line"

    def _response(self) -> RealTarget:
        return RealTarget(None, self.y_bound)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        return tags
