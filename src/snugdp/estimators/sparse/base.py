"""What sparse models have in common: bounds, budget, the choice of columns, and what is kept of a fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import Forecaster, fit_forecast, refused, require_rows, with_fits
from snugdp.estimators.coefficients import deviations
from snugdp.estimators.methods.linear import Options, Recipe, check_persons, listed_names, named_recipe
from snugdp.estimators.open.schema import OpenSchemaEstimator, OpenSchemaFit
from snugdp.estimators.open.tables import OpenTarget, declared_numbers, open_input, target_name, with_target
from snugdp.estimators.persons import PersonRows
from snugdp.estimators.sparse.tables import BoxBounds, SparseTable, linear_part, read
from snugdp.estimators.workflows.pipelines import warn_of_pipeline
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.mechanisms.support.sparse import Chooser, SparseMethod, beside, noisy_scores, noisy_support, voted_support
from snugdp.numerics.rationals import Real, rational
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.forecast import ErrorOf, FitForecast
from snugdp.propose.plan import Plan, share_of, whole_rows
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.candidates import Candidates
from snugdp.tables.found import FoundBounds
from snugdp.tables.layouts.boxes import Box, EntrySchema
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.base import row_map
from snugdp.tables.schema.kinds import Column, Number
from snugdp.tables.schema.schema import Schema

SELECTIONS = ("gumbel", "gaussian", "votes")
_SHARE = Fraction(1, 5)


@dataclass(eq=False, repr=False)
class SparseModel(OpenSchemaEstimator):
    """What both estimators have in common: parameters, bounds, the choice of columns, and what is kept."""

    n_features_to_select: int = 10
    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    selection: str = "gumbel"
    selection_share: Real | None = None
    blocks: int = 100
    method: str = "auto"
    schema: Any = None
    bounds: FoundBounds | str = "private"
    x_bound: Any = 1
    x_norm: Real | None = None
    row_norm: Real | None = None
    fit_intercept: bool = True
    proposals: Mapping[str, Any] | None = None
    rows: int | None = None

    def plan(self, n_features: int | None = None, rows: int | None = None) -> Plan:
        """What a fit will do, what it costs and what to expect. No data are read.

        ``n_features``: of an array; a schema knows. ``rows``: a public guess; without one several are shown.
        """
        self._require_same()
        if self._is_open:
            return self._for_persons(self._open_plan(self._open(self._expected(n_features)), rows))
        guess, bounds = whole_rows(self.rows if rows is None else rows), self._bounds()
        box = bounds.box(self._array_names(n_features))
        return self._for_persons(
            self._told(self._make(box, self._promised(), self._rows_each(self._persons())), box, guess)
        )

    @property
    def _is_open(self) -> bool:
        """Whether there are bounds to be found."""
        if self.schema is None:
            entries = self.x_bound if isinstance(self.x_bound, int | float) else None
            return self._seeks_bounds and self._nothing_given and entries == 1
        return self._seeks_bounds and isinstance(self.schema, Schema) and not self.schema.complete

    @property
    @abstractmethod
    def _nothing_given(self) -> bool:
        """Whether nothing is said of the target: then its bounds and those of the columns are found privately."""

    _target_kind: ClassVar[Column] = Number()  # where nothing is said of it

    def _kind_in(self, schema: Schema | None) -> Column:
        """What the target holds: what a schema declares, as far as it does."""
        column = None if schema is None else schema.columns[str(schema.target)]
        return self._target_kind if column is None or (column.is_open and self._nothing_given) else column

    def _expected(self, n_features: int | None) -> Schema:
        """What is known of the columns before there are any rows."""
        if isinstance(self.schema, Schema):
            return with_target(self.schema, str(self.schema.target), self._kind_in(self.schema), self.schema.intercept)
        return declared_numbers(len(self._array_names(n_features)), self._target_kind, bool(self.fit_intercept))

    @property
    def _known(self) -> Any:
        """The schema, or that of bounds that were found before."""
        return self.bounds.schema if isinstance(self.bounds, FoundBounds) and self.schema is None else self.schema

    def _open(self, declared: Schema, persons: Persons | None = None) -> OpenSchemaFit:
        """Looks at these columns, the choice among them, and the fit."""
        declared = replace(declared, intercept=declared.intercept and bool(self.fit_intercept))

        def make(schema: Schema, budget: Budget) -> SparseMethod:
            return self._make(EntrySchema(schema), budget)

        def run(method: Any, data: Secret[OpenedTable], schema: Schema, context: ReleaseContext) -> Outcome[Any]:
            box, norm = EntrySchema(schema), self._row_norm()
            chosen = data.map(lambda table: Candidates(box, table=table.source, row_norm=norm, progress=False))
            outcome: Outcome[Any] = method.fit(chosen, context)
            return outcome

        return OpenSchemaFit(declared, self._budget(persons), make, run)

    def _open_plan(self, opened: OpenSchemaFit, rows: int | None = None) -> Plan:
        """The plan in standard deviations: units are found with the bounds."""
        layout = self._first_columns(EntrySchema(opened.expected))
        guess = whole_rows(self.rows if rows is None else rows)
        return with_fits(opened.plan(), opened.method.method, layout, guess, ErrorOf.STANDARDISED)

    def _fitted(self, X: Any, y: Any, named: Any, groups: Any, **public: Any) -> Any:
        """``y``: floats, or labels as text; None where the table holds its target. ``named``: as it was given.

        ``public``: parameters as they were read.
        """
        warn_of_pipeline()
        self._check_progress()
        given, y = self._given(X, y, groups)
        if self._is_open:
            schema, kind = self.schema, self._kind_in(self.schema)
            name = target_name(named) if schema is None else schema.target
            target = OpenTarget(kind, kind, y, name)
            brought = open_input(given.X, target, schema, bool(self.fit_intercept), person=given.column)
            return self._fit_open(given, brought, named, **public)
        bounds, guess, context = self._bounds(), whole_rows(self.rows), self._context(given.persons, given.part)
        table = read(given.X, y, bounds, row_norm=self._row_norm(), progress=self.progress)
        require_rows(context.noise, table.candidates.is_empty)
        if self.selection == "votes" and not table.candidates.in_order:
            raise TypeError('selection="votes" reads rows in order, and a cluster keeps none: use "gumbel"')
        method = self._make(table.box, self._promised(), self._rows_each(given.persons))
        plan = self._for_persons(self._told(method, table.box, guess), given.persons)
        candidates = self._kept(given, table, context)
        with one_blas_thread():
            if not candidates.in_memory:
                candidates.scores()  # a table that cannot be read is found before the charge
            self._forget()
            self._name_features(table)
            asked = context.with_question(lambda: self._question(table.box.names, named, **public, **given.public))
            outcome = method.fit(Secret(candidates), asked)
        return self._keep(outcome, plan, table.box)

    def _kept(self, given: PersonRows, table: SparseTable, context: ReleaseContext) -> Candidates:
        """The rows that are kept of each person; all of them without persons."""
        if given.persons is None:
            return table.candidates
        kept = given.kept(table.candidates.source, table.box.columns, context.noise, progress=self.progress)
        return Candidates(table.box, table=kept, row_norm=self._row_norm(), progress=self.progress)

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """The product theta . x for every row, restricted to the chosen columns."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, looked=self._is_open)
        X = self._features(X)
        if not isinstance(self._box, EntrySchema):
            self._check_features(X)
        return linear_part(X, self._box, tuple(self.support_.tolist()), self._norm(), self._theta)

    @abstractmethod
    def _method(self, design: Design, budget: Budget, first: Cost) -> Method:
        """The fit on the chosen columns, beside what their choice costs."""

    @abstractmethod
    def _bounds(self) -> BoxBounds:
        """The public bounds."""

    @abstractmethod
    def _units(self, layout: Box, fit: Fit) -> tuple[Any, Any]:
        """Coefficients and intercept in the user's units."""

    def _beside(self, recipes: Mapping[str, Recipe], design: Design, budget: Budget, first: Cost) -> Method:
        """A method by its name, with what the choice leaves of the budget."""
        recipe, proposals = self._recipe(recipes)
        kept = {name: replace(each, persons=False) for name, each in recipes.items()}  # rows are kept, not weighed
        check_persons(self.method, kept, design.max_rows)
        options = Options(proposals, whole_rows(self.rows))
        return beside(budget, first, lambda left: recipe.make(design, left, options))

    def _recipe(self, recipes: Mapping[str, Recipe]) -> tuple[Recipe, dict[str, Any]]:
        recipe, given = named_recipe(self.method, self.proposals, self.rows, recipes)
        if listed := recipe.listed(given, None):
            raise ValueError(f"a sparse model takes one value for each proposal, and no list for {', '.join(listed)}")
        return recipe, given

    def _size(self, width: int | None = None) -> int:
        size = whole_rows(self.n_features_to_select, "n_features_to_select")
        if size is None or (width is not None and size > width):
            most = "" if width is None else f" and at most {width}, the number of columns"
            raise ValueError(f"n_features_to_select must be a whole number of at least 1{most}")
        return size

    def _chosen(self, width: int) -> int:
        """How many of so many entries are chosen: fewer than asked for where fewer were found."""
        return min(self._size(), width) if self._is_open else self._size(width)

    def _norm(self) -> Real:
        """The bound on the norm of the chosen entries: as asked for, or one that rows seldom reach."""
        if self.x_norm is None:
            usual = max(Fraction(1), Fraction(round(800 * math.sqrt(self._size())), 1000))
            return min(usual, self._row_norm() or usual)
        norm = rational(self.x_norm, "x_norm")
        if norm <= 0:
            raise ValueError("x_norm, the bound on the norm of the chosen entries of a row, must be greater than 0")
        return min(norm, Fraction(math.isqrt(self._size() - 1) + 1))  # no row of so many entries is longer

    def _row_norm(self) -> Fraction | None:
        """The bound on the norm of whole rows, if there is one."""
        if self.row_norm is None:
            return None
        norm = rational(self.row_norm, "row_norm")
        if not Fraction(1, 1000) <= norm <= 10**6:
            raise ValueError("row_norm, the bound on the norm of a whole row, must be between 0.001 and 1e6")
        return norm

    def _make(self, box: Box, budget: Budget, max_rows: int = 1) -> SparseMethod:
        """``budget``: for a person, of whom so many rows are used."""
        if budget.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError('this estimator is proved for neighbours="add_remove" only')
        if not budget.delta:
            raise ValueError("this estimator has Gaussian noise and needs delta > 0, such as 1e-6")
        width, norm = len(box.names), self._norm()
        size = self._chosen(width)
        chooser = self._chooser(size, budget, centred=box.intercept, max_rows=max_rows)
        design = Design(row_map(box.only(tuple(range(size)), norm)), max_rows=max_rows)
        method = self._method(design, budget, chooser.cost)
        return SparseMethod(chooser, method, budget, width=width, x_norm=norm)

    def _chooser(self, size: int, budget: Budget, **how: Any) -> Chooser:
        share = _SHARE if self.selection_share is None else share_of(self.selection_share)
        if self.selection == "gumbel":
            return noisy_support(size, budget, share, **how)
        if self.selection == "gaussian":
            whole = self._row_norm()
            if whole is None:
                raise ValueError('selection="gaussian" needs row_norm=..., a public bound on the norm of whole rows')
            return noisy_scores(size, budget, share, row_norm=whole, **how)
        if self.selection != "votes":
            raise ValueError(f"selection must be one of {listed_names(SELECTIONS)}")
        blocks = whole_rows(self.blocks, "blocks")
        if blocks is None:
            raise ValueError("blocks must be a whole number of at least 1, chosen without the data")
        return voted_support(size, budget, share, blocks=blocks, **how)

    def _told(self, method: SparseMethod, box: Box, rows: int | None) -> Plan:
        """The plan in the user's units, where columns have one unit."""
        return with_fits(method.plan(), method.method, self._first_columns(box), rows, ErrorOf.PREDICTION)

    def _first_columns(self, box: Box) -> Any:
        """The layout of as many columns as will be chosen: which ones is not known."""
        return box.only(tuple(range(self._chosen(len(box.names)))), self._norm())

    def _forecaster(self, n_features: int | None) -> Forecaster:
        if self._is_open:
            opened = self._open(self._expected(n_features))
            box: Box = EntrySchema(opened.expected)
            sparse = opened.method
        else:
            box = self._bounds().box(self._array_names(n_features))
            sparse = self._make(box, self._promised(), self._rows_each(self._persons()))
        layout, method = self._first_columns(box), sparse.method

        def at(rows: int, epsilon: float) -> FitForecast:
            expected = fit_forecast(method, layout, rows, epsilon)
            noise = expected.noise.values()
            ends = {"a chosen column, least": min(noise), "a chosen column, most": max(noise)}
            return replace(expected, noise=ends)  # which columns there will be is not known

        return Forecaster(ErrorOf.CHOSEN, None, at)

    def _name_features(self, table: SparseTable) -> None:
        self._name(table.named, [name for name in table.box.columns if name != table.box.target])

    def _keep(self, outcome: Outcome[Any], plan: Plan, layout: Box | None) -> Self:
        self._record(outcome, plan)
        self.certificate_, value, box = outcome.certificate, outcome.value, layout
        if box is None and value is not None:
            self.bounds_, value = value
            box = EntrySchema(self.bounds_.schema)
        self._box: Any = box
        self._theta: Any = None
        if value is not None and box is not None:
            chosen, fit = value
            indices = tuple(sorted(chosen.places))
            layout = box.only(indices, self._norm())
            self.support_ = np.array(indices, dtype=np.int64)
            self.ranking_ = np.array(chosen.places, dtype=np.int64)
            self.selected_names_ = np.array([box.names[index] for index in indices], dtype=object)
            self.coef_names_ = box.names
            self.coef_, self.intercept_ = self._units(layout, fit)
            self.noise_scale_ = None if fit.noise is None else deviations(layout, fit.noise, reference=False)
            self.details_ = {**fit.released, "target_centre": float(chosen.centre)}
            self._theta = fit.theta
        return self

    def _restore(self, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        self._keep_again(outcome, plan, names, None if self._is_open else self._bounds().box(names))
        box = self._box
        if self.released_:
            indices = self.ranking_.tolist()
            known = len(set(indices)) == len(indices) == self._chosen(len(box.names)) and min(indices) >= 0
            if not known or np.shape(self._theta) != (len(indices) + box.intercept,):
                raise ValueError("a released model has one coefficient for each column that was chosen")

    def _dense(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of all columns: 0 for those that were not chosen."""
        coefficients = np.zeros(len(self._box.names))
        coefficients[self.support_] = values
        return coefficients

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.schema is None
        return tags
