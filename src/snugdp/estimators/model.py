"""What all private linear models have in common: bounds, budget, plan, fit, and what is kept of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import Forecaster, forecaster_of, refused, require_rows, with_fits
from snugdp.estimators.coefficients import deviations, shown
from snugdp.estimators.explanation import Explanation, explained
from snugdp.estimators.forecasts.usual import EVEN, Spread, Usual, refuse
from snugdp.estimators.importances import importances_of
from snugdp.estimators.inputs import InputTable, NormBounds, rows_of
from snugdp.estimators.methods.linear import Options, Recipe, check_persons, recipe_for
from snugdp.estimators.open.tables import standardised_rows
from snugdp.estimators.persons import PersonRows
from snugdp.estimators.private import PrivateEstimator
from snugdp.estimators.targets import Response
from snugdp.estimators.workflows.grids import Searched, ValidationScore, combinations, options_of
from snugdp.estimators.workflows.pipelines import warn_of_pipeline
from snugdp.mechanisms.linear.base import Design, Method, first_pass
from snugdp.mechanisms.persons.weight_choice import WeightChoice, WeightedMethod
from snugdp.mechanisms.scores.result import ModelScores
from snugdp.numerics.rationals import Real
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.forecast import ErrorOf
from snugdp.propose.plan import Plan, whole_rows
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.layouts.curved import Curves
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.base import row_map
from snugdp.tables.rows import Rows
from snugdp.tables.schema.missing import Policies
from snugdp.tables.schema.schema import Coefficients, Layout, Schema

if TYPE_CHECKING:
    from snugdp.estimators.open.fit import OpenFit

_HOLDOUT = "snugdp.scores.holdout"  # above this package: looked up by a fit that asks for it
_MOST_EPSILON = 8  # up to here all rows of a person are used where they count as one


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel(PrivateEstimator):
    """A scikit-learn estimator of a linear function, with a budget. What its target is, subclasses say.

    Guarantee: each fit is (epsilon, delta)-DP, whether it is released or refused: that of its method.
    """

    method: str = "auto"
    schema: Schema | None = None
    bounds: FoundBounds | str = "private"
    missing: Policies | None = None
    x_norm: Real | None = None
    fit_intercept: bool = True
    proposals: Mapping[str, Any] | None = None
    validation: tuple[Any, Any] | None = None
    selection: Mapping[str, Any] | None = None
    rows: int | None = None

    _error_of, _without_test = ErrorOf.PREDICTION, "adassp"
    _private_weight = True
    _named = False  # whether scikit-learn knows the features of an open fit

    def plan(
        self,
        n_features: int | None = None,
        rows: int | None = None,
        *,
        error: Real | None = None,
        spread: Spread | None = None,
    ) -> Plan:
        """What a fit will do, what it costs and what to expect, in your units. No data are read.

        ``n_features``: of an array; a schema knows. ``rows``: a public guess; without one several are shown.
        ``error``: what privacy noise may add to the error of predictions; the plan is then for the smallest epsilon, of
        round ones up to 10, that is expected to bring it (``advise`` says more). ``spread``: about the standard
        deviation of columns over the distance between their bounds, as far as that is known in public: one number, or
        one for each of some columns by name.
        """
        self._require_same()
        guess = whole_rows(self.rows if rows is None else rows)
        if error is not None:
            return self._plan_for(error, n_features, guess, spread)
        if self._is_open:
            return self._for_persons(self._opening().planned(self, n_features).plan(guess, self._usual(None, spread)))
        response, bounds = self._checked()
        layout = bounds.layout(self._array_names(n_features))
        method, usual = self._make(response, layout, self._persons()), self._usual(layout, spread)
        plan = with_fits(method.plan(), method, response.shown(layout), guess, self._error_of, usual=usual)
        return self._for_persons(plan)

    def _plan_for(self, error: Real, n_features: int | None, rows: int | None, spread: Spread | None) -> Plan:
        """The plan at the smallest epsilon that is expected to bring an error."""
        from snugdp.estimators.forecasts.advice import advise

        if rows is None:
            raise ValueError("error=... needs rows=..., a public guess of the number of rows")
        advice = advise(self, rows=rows, error=error, n_features=n_features, spread=spread)
        if advice.epsilon is None:
            raise ValueError(str(advice).partition("\n\n")[0].replace("\n", " "))
        return advice.plan

    def _usual(self, layout: Layout | None, spread: Spread | None = None) -> Usual:
        """How rows lie between their bounds; without a layout, between bounds that are found."""
        refuse(spread)
        return EVEN

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, holdout: Real | None = None) -> Self:
        """Pay, test, release or refuse.

        X: rows of an array, a scipy sparse matrix or a list, or a pandas, polars or pyarrow table, with y; or a table,
        or the path of one, that holds its target, with a schema or with the name of the target as y. ``groups``: whose
        rows those of an array are; a table has them in a column, which ``person`` names. ``holdout``: a share of the
        rows, such as 0.2, that is not fitted on: the model is scored on it, in ``holdout_score_``, at no further cost.
        What is public is checked before anything is charged.

        Guarantee: that of the class; ``guarantee_`` states it. With ``holdout`` it is that of the whole
        (``scores/holdout.proof.md``, Theorem 1).
        """
        if holdout is not None:
            fitted: Self = import_module(_HOLDOUT).fit_with_holdout(self, X, y, groups, holdout)
            return fitted
        warn_of_pipeline()
        given, y = self._given(X, y, groups)
        if self._is_open:
            return self._fit_open(given, y)
        (response, bounds), guess = self._checked(), whole_rows(self.rows)
        recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        context = self._context(given.persons, given.part)
        table = response.read(given.X, y, bounds)
        require_rows(context.noise, table.is_empty)
        method = self._make(response, table.layout, given.persons)
        shown, usual = response.shown(table.layout), self._usual(table.layout)
        plan = with_fits(method.plan(), method, shown, guess, self._error_of, usual=usual)
        plan = self._for_persons(plan, given.persons)
        progress = False if isinstance(method, Searched) else self.progress  # a bar for every run would count them
        keep = given.kept if self._weight(given.persons) is None else given.weighed
        data = keep(table.data, table.layout.columns, context.noise, progress=progress)
        rows = Rows(data, table.layout, progress=progress)
        with one_blas_thread():
            if not isinstance(data, ArraySource):
                first_pass(method, rows.one)
            self._forget()
            self._name_features(table)
            public = partial(self._as_read, response, table.layout)
            asked = context.with_question(lambda: self._question(table.layout.features, y, **public(), **given.public))
            outcome: Outcome[Any] = method.fit(Secret(rows), asked)
        return self._keep(outcome, plan, response, table.layout)

    @property
    def _declared(self) -> Schema | None:
        """The schema, with what is to be done about missing cells."""
        if not isinstance(self.schema, Schema) or (policy := self._policy(self.schema)) is None:
            return self.schema
        return replace(self.schema, missing=policy)

    def _policy(self, schema: Schema | None) -> Policies | None:
        """What a missing cell does, for the columns of a schema or for those that are found; None: as usual."""
        return self.missing

    @property
    def _found_before(self) -> FoundBounds | None:
        """The bounds of an earlier fit, with what is to be done about missing cells."""
        if not isinstance(self.bounds, FoundBounds):
            return None
        if self.missing is None:
            return self.bounds
        return replace(self.bounds, declared=replace(self.bounds.declared, missing=self.missing))

    @property
    def _looks(self) -> bool:
        """Whether bounds are to be found."""
        return self._is_open and self._found_before is None

    @property
    def _is_open(self) -> bool:
        """Whether there are bounds to be found, or bounds that were found before are to be used."""
        if not self._seeks_bounds:
            return True
        if self.schema is None:
            return self.x_norm is None
        return isinstance(self.schema, Schema) and not self.schema.complete

    @property
    def _curves(self) -> Curves | None:
        """Which numbers have curves, in an additive model."""
        return None

    def _layout_of(self, found: FoundBounds, response: Response) -> Layout:
        """How rows are read by what was found."""
        return StandardisedLayout(found, bool(self.fit_intercept and found.declared.intercept), response.joint)

    @staticmethod
    def _opening() -> type[OpenFit]:
        """How bounds are found: loaded when they are."""
        from snugdp.estimators.open.fit import OpenFit

        return OpenFit

    def _fit_open(self, given: PersonRows, y: Any) -> Self:
        """As ``fit``, with bounds that are found privately."""
        guess, context = whole_rows(self.rows), self._context(given.persons, given.part)
        opened = self._opening().of(self, given, y)
        require_rows(context.noise, opened.table.is_empty)
        plan = self._for_persons(opened.plan(guess, self._usual(None)), given.persons)
        keep = given.kept if opened.weight is None else given.weighed
        kept = keep(opened.table.source, opened.declared.columns, context.noise, progress=self.progress)
        data = OpenedTable(kept, opened.table.declared, progress=self.progress)
        with one_blas_thread():
            if not isinstance(data.source, ArraySource):
                opened.read(data)  # a table that cannot be read is found before the charge
            self._forget()
            self._name(opened.table.named, opened.names)
            self._named = opened.table.named is not None
            self.left_out_ = dict(opened.table.left_out)
            asked = context.with_question(lambda: self._question(opened.names, y, **opened.public(), **given.public))
            outcome = opened.fit(Secret(data), asked)
        return self._keep(outcome, plan, opened.response, found=opened.known)

    def _weight(self, persons: Persons | None) -> int | None:
        """So much the rows of a person weigh together, at most, where the method plans for persons itself.

        With ``max_rows=1`` and a very large epsilon one row of each person is kept: that asks for less ridge then. So
        it is where the method, as proposed, is proved for single rows alone.
        """
        recipe, proposals = recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        if persons is not None and persons.is_private and not (recipe.persons and recipe.after):
            raise ValueError(
                'max_rows="private" is for method="auto" without inference: leave out method and inference, or give '
                "max_rows as a number"
            )
        if persons is None or not recipe.persons or recipe.listed(proposals, self.validation):
            return None
        keeps = persons.budget.epsilon > _MOST_EPSILON or recipe.is_single(proposals)
        if persons.most == 1 and not persons.is_private and keeps:
            return None
        return 1 if persons.is_private else persons.most  # what is found is a multiple of 1

    def _weighs(self, persons: Persons | None) -> bool:
        return self._weight(persons) is not None

    @abstractmethod
    def _recipes(self) -> Mapping[str, Recipe]:
        """The ways to fit, by name."""

    @abstractmethod
    def _response(self) -> Response:
        """What is predicted, checked."""

    @property
    def _answer(self) -> Response:
        """What is predicted, with what a fit found of it."""
        found = getattr(self, "bounds_", None)
        return self._response().settled(None if found is None else found.declared)

    def _checked(self) -> tuple[Response, NormBounds]:
        """What is predicted, and the public bounds."""
        self._check_progress()
        response = self._response()
        if self.missing is not None and self.schema is None:
            raise ValueError("missing=... needs a schema, or bounds that are found privately: leave out x_norm")
        return response, response.bounds(self._declared, self.x_norm, self.fit_intercept)

    def _as_read(self, response: Response, layout: Layout) -> dict[str, Any]:
        """Public parameters that may be given in several forms, in one of them."""
        classes = {} if response.classes is None else {"classes": response.classes}
        return {"validation": self._scaled_validation(response, layout), **classes}

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """The products of theta with all rows, read as in the fit: clipped to their bounds, missing as the middle."""
        vectors = self._read(X)
        theta: NDArray[np.float64] = self._fit.theta
        none = np.empty((0, *theta.shape[:-1]))
        return np.concatenate([none, *(rows @ theta.T for rows in vectors)])

    def _read(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The vectors of rows to predict from, of a model that was released; each overwritten by the next one."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, self._without_test, looked=self._looks)
        X = self._features(X)
        if not self._by_name:
            self._check_features(X)
        return self._vectors(X, self._layout)

    def _vectors(self, X: Any, layout: Layout) -> Iterator[NDArray[np.float64]]:
        """The vectors of rows to predict from, part by part."""
        return standardised_rows(X, layout) if isinstance(layout, StandardisedLayout) else rows_of(X, layout)

    @property
    def _by_name(self) -> bool:
        """Whether rows to predict are looked up by the names of their columns, and may have others too."""
        return isinstance(self._layout, Schema) or (isinstance(self._layout, StandardisedLayout) and not self._named)

    def _make(self, response: Response, layout: Layout, persons: Persons | None) -> Method:
        budget, weight = self._promised(), self._weight(persons)
        most = self._rows_each(persons) if weight is None else 1
        recipe, proposals = recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        check_persons(self.method, self._recipes(), most)
        validation = self._scaled_validation(response, layout)
        given = {"losses": response.losses} if response.losses else {}
        options = Options(proposals, whole_rows(self.rows), validation, {**given, **self._read_by(layout)})
        design, how = Design(row_map(layout), weight, most), options_of(self.selection)
        listed = recipe.listed(proposals, validation)
        if persons is not None and persons.is_private:
            choice = WeightChoice.within(persons.budget, design.entries, persons.most)
            beside = replace(options, given={**given, "beside": choice.mu_squared})
            return WeightedMethod(choice, lambda w: recipe.make(replace(design, weight=w), budget, beside), budget)
        if not listed:
            return recipe.make(design, budget, options)
        assert validation is not None

        def one(proposal: Mapping[str, Any], budget: Budget) -> Method:
            return recipe.make(design, budget, replace(options, proposals=proposal))

        grid, score = combinations(proposals, listed), ValidationScore(*validation, response.value)
        return Searched(one, grid, budget, score=score, options=how, progress=self.progress, unit=design.protects)

    def _read_by(self, layout: Layout) -> dict[str, Any]:
        """What a method has to know of how rows are read, besides their design. Public, or released."""
        return {}

    def _planned_by(self, layout: Layout) -> dict[str, Any]:
        """What decides in public which fit follows looks: by how rows are expected to be read."""
        return {}

    def _scaled_validation(self, response: Response, layout: Layout) -> tuple[Any, Any] | None:
        if self.validation is None:
            return None
        if not isinstance(self.validation, tuple | list) or len(self.validation) != 2:
            raise TypeError("validation must be a pair (X, y) of public rows and targets")
        X, y = self.validation
        rows = np.concatenate([np.empty((0, len(layout.features))), *self._vectors(X, layout)])
        target = response.scaled(y, layout)
        known = ~np.isnan(target)
        return (rows[known], target[known]) if len(rows) == len(target) else (rows, target)

    def _forecaster(self, n_features: int | None, spread: Spread | None = None) -> Forecaster:
        if self._is_open:
            return self._opening().planned(self, n_features).forecaster(self._usual(None, spread))
        response, bounds = self._checked()
        layout = bounds.layout(self._array_names(n_features))
        target = layout.target if self._error_of is ErrorOf.PREDICTION and bounds.schema is not None else None
        method, shown = self._make(response, layout, self._persons()), response.shown(layout)
        return forecaster_of(method, shown, self._error_of, target, usual=self._usual(layout, spread))

    def _name_features(self, table: InputTable) -> None:
        self._name(table.named, [name for name in table.layout.columns if name != table.layout.target])

    def _keep(
        self,
        outcome: Outcome[Any],
        plan: Plan,
        response: Response,
        layout: Layout | None = None,
        *,
        found: FoundBounds | None = None,
    ) -> Self:
        """``layout``: as it was before the fit; without one, by bounds that were ``found`` before, or in the fit."""
        from snugdp.mechanisms.selection.select import Selected

        self._record(outcome, plan)
        winner: Outcome[Any] = outcome
        if isinstance(outcome.value, Selected):
            self.best_proposal_, winner = dict(outcome.value.proposal), outcome.value.release
        self.certificate_, fit = winner.certificate, winner.value
        if layout is None and fit is not None:
            found, fit = fit if isinstance(fit, tuple) else (found, fit)
            assert found is not None
            self.bounds_, layout = found, self._layout_of(found, response)
            response = response.settled(found.declared)
        if response.classes is not None:
            self.classes_ = response.classes
        self._layout: Any = layout
        self._fit: Any = fit
        if fit is not None and layout is not None:
            for name, value in self._coefficients(response).items():
                setattr(self, name, value)
            self.details_ = dict(fit.released)
        return self

    def coefficients(self, units: str = "original", *, reference: bool = True, label: Any = None) -> Coefficients:
        """What was fitted, as names, values and an intercept. It costs nothing.

        Parameters
        ----------
        units : {"original", "standardised"}
            "original": the units of the data. "standardised": a coefficient is for one standard deviation of its
            number, and the intercept is the answer at the centres of all numbers; a linear regression answers in
            deviations of the target from its centre. Deviations and centres are those that were found privately;
            between public bounds half of the range stands for a deviation, and the middle is the centre.
        reference : bool, default=True
            Whether levels are compared with their reference level, as in ``coef_``. Otherwise every level has an entry;
            these add up to the intercept, so that only their differences say something.
        label : object, optional
            Of more than two classes: the one whose score is meant.
        """
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, self._without_test)
        return shown(self._shown(self._answer), self._theta_of(label), units, reference=reference)

    def explain(self, X: Any, *, label: Any = None) -> Explanation:
        """What every column adds to the prediction of each row: in units of the target, or of labels in log-odds.

        Rows are read as for ``predict``. It costs nothing, and is as private as the rows.

        Parameters
        ----------
        X : table or array
            The rows.
        label : object, optional
            Of more than two classes: the one whose score is meant.
        """
        vectors = self._read(X)
        return explained(self._shown(self._answer), self._theta_of(label), vectors)

    def importances(self, *, label: Any = None) -> dict[str, float]:
        """How far each column moves the answer from one end of its bounds to the other, the largest first.

        It is computed from released numbers alone and costs nothing. Where bounds were found, the range is that in
        which nearly all rows were seen; missing cells do not count. ``label``: of more than two classes, which.
        """
        every = self.coefficients(reference=False, label=label)
        return importances_of(self._shown(self._answer), every)

    def _shown(self, response: Response) -> Layout:
        return response.shown(self._layout)

    def _theta_of(self, label: Any) -> NDArray[np.float64]:
        """The linear function, or that of one of several classes."""
        theta: NDArray[np.float64] = self._fit.theta
        if theta.ndim == 1:
            if label is not None:
                raise ValueError("this model has only one linear function: leave out label")
            return theta
        classes = self.classes_.tolist()
        if label not in classes:
            raise ValueError(f"label must be one of the classes: {', '.join(map(str, classes))}")
        one: NDArray[np.float64] = theta[classes.index(label)]
        return one

    def _coefficients(self, response: Response, *, reference: bool = True) -> dict[str, Any]:
        """The attributes that describe the linear function in the user's units: one row for each model of classes."""
        layout, fit = self._shown(response), self._fit
        linear = [shown(layout, theta, reference=reference) for theta in np.atleast_2d(fit.theta)]
        values, constants = [each.values for each in linear], [each.intercept for each in linear]
        several = response.classes is not None
        return {
            "coef_names_": linear[0].names,
            "coef_": np.array(values) if several else values[0],
            "intercept_": np.array(constants) if several else constants[0],
            "noise_scale_": None if fit.noise is None else deviations(layout, fit.noise, reference=reference),
        }

    def _every_level(self) -> dict[str, Any]:
        """The same with an entry for every level, as in model files of former versions."""
        return self._coefficients(self._answer, reference=False)

    def _extras(self) -> dict[str, Any]:
        scores = getattr(self, "holdout_score_", None)
        return {**super()._extras(), **({} if scores is None else {"holdout_score": scores})}

    def _take_extras(self, given: Mapping[str, Any]) -> None:
        others = dict(given)
        scores = others.pop("holdout_score", None)
        super()._take_extras(others)
        if scores is not None:
            if not isinstance(scores, ModelScores):
                raise ValueError('"holdout_score" must be the scores that were released with the fit')
            self.holdout_score_ = scores

    def _restore(self, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        if self._is_open:
            self._require_features(names, () if self.schema is None else self.schema.columns)
            found = None if self._looks else self._opening().planned(self, None).known
            self._keep(outcome, plan, self._response(), found=found)
        else:
            response, bounds = self._checked()
            layout = bounds.layout(names)
            self._require_features(names, layout.columns)
            self._keep(outcome, plan, response, layout)
        models, width = len(getattr(self, "classes_", ())), len(self._layout.features) if self.released_ else 0
        if self.released_ and np.shape(self._fit.theta) != ((width,) if models <= 2 else (models, width)):
            raise ValueError("a released model has as many coefficients as there are features")
