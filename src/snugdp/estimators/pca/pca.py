"""Principal components as scikit-learn knows them, with a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import Forecaster, NotReleased, missing_notes, require_rows
from snugdp.estimators.inputs import InputTable
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.open.schema import OpenSchemaEstimator, OpenSchemaFit
from snugdp.estimators.open.tables import declared_points, open_points
from snugdp.estimators.pca.scree import scree
from snugdp.estimators.pca.tables import PointBounds, Units, read, scaled_rows
from snugdp.estimators.workflows.pipelines import warn_of_pipeline
from snugdp.mechanisms.components.base import Components, ComponentsMethod, Rank, Task
from snugdp.mechanisms.components.crossing import FOCUS, AnalyzeGauss, Crossing
from snugdp.mechanisms.components.projector import Dual, Projector
from snugdp.numerics.rationals import Real
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.forecast import ErrorOf, FitForecast, Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import matrix
from snugdp.tables.found import FoundBounds
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.layouts.points import centred, unlabelled
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.vectors.scatter import Scatter
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Layout, Schema

Floats = NDArray[np.float64]

METHODS: dict[str, Callable[[Task, str], ComponentsMethod]] = {
    "auto": Crossing,
    "crossing": Crossing,
    "projector": lambda task, focus: Projector(task),
    "dual": lambda task, focus: Dual(task),
    "gauss": lambda task, focus: AnalyzeGauss(task),
}


@dataclass(eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OpenSchemaEstimator):  # type: ignore[misc]
    """Principal components with differential privacy.

    Public bounds are required: give ``x_norm``, or a ``schema`` with bounds for every column, whose target is left out.
    Missing and invalid numbers count as the centre; a category that is missing or not listed is 0 for every listed
    value.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove; the theorem is ``guarantee_.theorem``. Nothing is ever
    refused because of the rows; only an empty list, which has no columns, is an error: give an array. Not covered: what
    ``transform`` returns for private rows is as private as they are.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        How many components; "auto" cuts where the released spectrum falls most, at 20 at the latest; a number below 1,
        such as 0.9, is the share of the variance to keep.
    epsilon : Real, default=1.0
        Privacy budget of each fit.
    delta : Real, default=1e-6
        Failure probability of each fit.
    method : {"auto", "crossing", "projector", "dual", "gauss"}
        "auto" is "crossing": Analyze Gauss until the subspace stands out, then only what crosses it. "projector" is the
        tested projector of the paper, corrected; "dual" uses Analyze Gauss as its own test of the gap; "gauss" is
        Analyze Gauss.
    schema : Schema, optional
        Public bounds and values of the columns of a table, instead of ``x_norm``. What it leaves open is found in
        private.
    bounds : FoundBounds or "private", default="private"
        As in ``LinearRegression``.
    x_norm : Real, optional
        Public bound on the Euclidean norm of a row, measured from the centre; longer rows are shortened to it.
    center : {"bounds", "private"} or sequence
        "bounds" centres at the middle of the bounds (0 for arrays); a sequence gives public means, one for each
        feature. "private" spends a twentieth of the budget's mu**2 on releasing the mean, and reads the rows again from
        there. It is the mean of rows that were first shortened as seen from the middle of the bounds; so for arrays
        ``x_norm`` must reach from 0 to the rows, or subtract a public guess first. The data's own mean is never used.
    focus : {"subspace", "components"}
        For "crossing": whether to get all components right as one subspace, or each of them.
    rows : int, optional
        The number of rows, if it is public; otherwise a hundredth of mu**2 pays for releasing it.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    released_ : bool
        Whether the fit was released.
    components_ : ndarray of shape (n_components, n_features)
        The components. Like the variances they are in the units of X; under a schema, in units that take numbers
        between their bounds to [-1, 1].
    mean_ : ndarray
        The centre.
    n_components_ : int
        The number of components.
    explained_variance_ : ndarray
        Released sums of squares from the centre, divided by ``n_samples_``.
    explained_variance_ratio_ : ndarray
        The same as shares of the released total.
    noise_variance_ : float
        The mean variance along the directions that were left out.
    n_samples_ : float
        The number of rows, as released or given.
    spectrum_ : ndarray
        All eigenvalues that were released.
    spectrum_error_ : float
        In 19 of 20 cases all of them are off by less than this.
    route_ : str
        What was released in the end.
    details_ : dict
        Other released numbers.
    certificate_, plan_, outcome_, cost_, receipt_, guarantee_, n_features_in_, feature_names_in_
        As in ``LinearRegression``.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 10 / 20, i % 7 / 70] for i in range(20_000)]
    >>> model = PCA(1, epsilon=1, delta=1e-6, x_norm=1.2).fit(X)
    >>> bool(abs(model.components_[0] @ [2, 1, 0]) > 2)
    True
    """

    n_components: int | float | str = "auto"
    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    method: str = "auto"
    schema: Schema | None = None
    bounds: FoundBounds | str = "private"
    x_norm: Real | None = None
    center: Any = "bounds"
    focus: str = "subspace"
    rows: int | None = None

    def plan(self, n_features: int | None = None) -> Plan:
        """What a fit will do, what it costs and what to expect. No data are read.

        ``n_features``: of an array; a schema knows.
        """
        self._require_same()
        if self._is_open:
            names = () if self.schema is not None else self._array_names(n_features)
            opened = self._open(declared_points(names) if self.schema is None else unlabelled(self.schema))
            return self._for_persons(self._open_plan(opened))
        bounds = self._bounds()
        names = () if bounds.schema is not None else self._array_names(n_features)
        layout = bounds.layout(names)
        method = self._make(layout, bounds, self._promised(), self._rows_each(self._persons()))
        return self._for_persons(self._told(method, layout))

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Pay and release. What is public is checked before anything is charged; ``y`` is ignored.

        X: rows of an array, a scipy sparse matrix or a list, or a pandas, polars or pyarrow table; or, with a schema,
        also the path of a table, a query or a Spark table. ``groups``: as in ``LinearRegression.fit``.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        warn_of_pipeline()
        given, _ = self._given(X, None, groups)
        if self._is_open:
            return self._fit_open(given, open_points(given.X, self.schema, person=given.column))
        bounds, context = self._bounds(), self._context(given.persons, given.part)
        table = read(given.X, bounds)
        require_rows(context.noise, table.is_empty)
        method = self._make(table.layout, bounds, self._promised(), self._rows_each(given.persons))
        plan = self._for_persons(self._told(method, table.layout), given.persons)
        kept = given.kept(table.data, table.layout.columns, context.noise, progress=self.progress)
        data = Scatter(Rows(kept, table.layout, progress=self.progress), bounds.moves)
        with one_blas_thread():
            if not isinstance(kept, ArraySource):
                data.read()  # a table that cannot be read is found before the charge
            self._forget()
            self._name_features(table)
            asked = context.with_question(lambda: self._question(table.layout.features, **given.public))
            outcome = method.fit(Secret(data), asked)
        return self._keep(outcome, plan, table.layout)

    @property
    def _is_open(self) -> bool:
        """Whether there are bounds to be found."""
        if not self._seeks_bounds:
            return False
        return self.x_norm is None if self.schema is None else not getattr(self.schema, "complete", True)

    def _open(self, declared: Schema, persons: Persons | None = None) -> OpenSchemaFit:
        """Looks at these columns, and the components."""
        self._check_choices()
        if not isinstance(self.center, str):
            raise TypeError('center must be "bounds" or "private" where bounds are found privately')

        def make(schema: Schema, budget: Budget) -> ComponentsMethod:
            bounds = PointBounds(schema, None, self.center)
            return self._make(bounds.layout(()), bounds, budget)

        def run(method: Any, data: Secret[OpenedTable], schema: Schema, context: ReleaseContext) -> Outcome[Components]:
            bounds = PointBounds(schema, None, self.center)
            rows = data.map(lambda table: Scatter(table.rows(bounds.layout(())), bounds.moves))
            return cast(Outcome[Components], method.fit(rows, context))

        return OpenSchemaFit(declared, self._budget(persons), make, run)

    def _open_plan(self, opened: OpenSchemaFit) -> Plan:
        return self._told(opened, opened.expected)

    @staticmethod
    def _told(method: Any, layout: Layout) -> Plan:
        plan: Plan = method.plan()
        return plan.with_notes(*missing_notes(layout), Note("missing-number"))

    @row_by_row("coordinates")
    def transform(self, X: Any) -> Any:
        """The coordinates of every row along the components. As private as the rows: the noise is in the components."""
        self._require_release()
        X = self._features(X)
        if not isinstance(self._layout, Schema):
            self._check_features(X)
        return scaled_rows(X, self._layout, self._units) @ self.components_.T

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in the user's units, from coordinates along the components."""
        self._require_release()
        given = matrix(X)
        if given.shape[1] != self.n_components_:
            raise ValueError(f"X must have {self.n_components_} columns, one for each component")
        with np.errstate(all="ignore"):  # a warning would depend on private values
            return self._units.users(np.asarray(given, dtype=np.float64) @ self.components_, self._shift)

    def scree(self, ax: Any = None) -> Any:
        """Draw the released spectrum with its error band; the axes are returned. It costs nothing.

        All eigenvalues are within the band in 19 of 20 cases.
        """
        self._require_release()
        return scree(self.spectrum_, self.spectrum_error_, self.n_components_, ax)

    def _require_release(self) -> None:
        check_is_fitted(self)
        if not self.released_:
            raise NotReleased("the fit of this PCA failed and was paid for; why is private. Fit again")

    def _bounds(self) -> PointBounds:
        self._check_choices()
        schema = self.bounds.schema if isinstance(self.bounds, FoundBounds) and self.schema is None else self.schema
        return PointBounds(schema, self.x_norm, self.center)

    def _check_choices(self) -> None:
        self._check_progress()
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}")
        if not isinstance(self.focus, str) or self.focus not in FOCUS:
            raise ValueError(f"focus must be one of {', '.join(FOCUS)}")

    def _make(self, layout: Layout, bounds: PointBounds, budget: Budget, max_rows: int = 1) -> ComponentsMethod:
        return METHODS[self.method](self._task(layout, bounds, budget, max_rows), self.focus)

    def _task(self, layout: Layout, bounds: PointBounds, budget: Budget, max_rows: int) -> Task:
        """``budget``: for a person, of whom so many rows are used."""
        rank = Rank.of(self.n_components, len(layout.features))
        return Task(layout, budget, rank, whole_rows(self.rows), bounds.moves, max_rows=max_rows)

    def _forecaster(self, n_features: int | None) -> Forecaster:
        """The share of the largest possible variance that noise alone would reach."""
        if self._is_open:
            names = () if self.schema is not None else self._array_names(n_features)
            opened = self._open(declared_points(names) if self.schema is None else unlabelled(self.schema))
            bounds, budget, each = PointBounds(opened.expected, None, self.center), opened.left, 1
        else:
            bounds, budget, names = self._bounds(), self._promised(), self._array_names(n_features)
            each = self._rows_each(self._persons())
        task = self._task(bounds.layout(names), bounds, budget, each)
        deviation = task.in_rows(1 / math.sqrt(task.shares[2] * task.mu_squared(Fraction(0))))

        def at(rows: int, epsilon: float) -> FitForecast:
            noise = {"an entry of the matrix of squares, a row": deviation / rows}
            return FitForecast(rows, deviation / rows * math.sqrt(2 * task.entries), noise, epsilon)

        return Forecaster(ErrorOf.VARIANCE, None, at)

    def _name_features(self, table: InputTable) -> None:
        self._name(table.named, list(table.layout.columns))

    def _keep(self, outcome: Outcome[Any], plan: Plan, layout: Layout | None) -> Self:
        self._record(outcome, plan)
        self.certificate_ = outcome.certificate
        released = outcome.value
        if released is not None and layout is None:
            self.bounds_, released = released
            layout = PointBounds(self.bounds_.schema, None, self.center).layout(())
        if released is not None and layout is not None:
            shift = getattr(layout, "shift", ()) if released.start.shift is None else released.start.shift
            self._shift, self._units = shift, Units.of(layout)
            self._layout = centred(layout, shift)
            self._describe(released)
        return self

    def _restore(self, outcome: Outcome[Components], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        self._keep_again(outcome, plan, names, None if self._is_open else self._bounds().layout(names))
        if self.released_ and self.components_.shape != (self.n_components_, len(self._layout.features)):
            raise ValueError("a released model has components of all features")

    def _describe(self, released: Components) -> None:
        """Released numbers in the user's units."""
        mapped = row_map(self._layout)  # one row adds at most this to a sum of squares
        square = float(mapped.norm_squared * mapped.unit**2) * self._units.factor**2
        self.n_samples_ = float(self.rows or 1) if released.start.count is None else released.start.count
        each = square / self.n_samples_
        whole = max(released.trace, float(np.maximum(released.totals, 0).sum()), 1e-300)
        rest = max(released.trace - float(released.totals.sum()), 0.0)
        k, p = len(released.totals), len(released.vectors)
        self.components_ = _signed(released.vectors.T)
        self.n_components_ = k
        self.mean_ = self._units.mean(self._shift)
        self.explained_variance_ = np.maximum(released.totals, 0.0) * each
        self.explained_variance_ratio_ = np.maximum(released.totals, 0.0) / whole
        self.noise_variance_ = rest * each / (p - k) if p > k else 0.0
        self.spectrum_, self.spectrum_error_ = released.spectrum * each, released.band * each
        self.route_, self.details_ = released.route, dict(released.released)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _signed(components: Floats) -> Floats:
    """Every component with its largest entry positive, so that a sign is no accident."""
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return components * np.where(signs == 0, 1.0, signs)[:, None]
