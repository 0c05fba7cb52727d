"""A fit whose bounds are found privately, or were found before: what is looked at, what is fitted, what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import Forecaster, forecaster_of, with_fits
from snugdp.estimators.forecasts.usual import EVEN, Usual
from snugdp.estimators.methods.linear import Options, check_persons, recipe_for
from snugdp.estimators.open.tables import OpenInput, OpenTarget, declared_numbers, open_input, target_in, with_target
from snugdp.estimators.persons import PersonRows
from snugdp.estimators.targets import OpenClassTarget, OpenResponse, Response
from snugdp.mechanisms.bounds.preparation import PreparedRelease, TablePreparation, known_columns
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.mechanisms.persons.weight_choice import WeightChoice, WeightedMethod
from snugdp.mechanisms.support.sparse import beside
from snugdp.propose.forecast import ErrorOf
from snugdp.propose.plan import Plan, whole_rows
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.base import row_map
from snugdp.tables.schema.schema import Layout, Schema

if TYPE_CHECKING:
    from snugdp.estimators.model import LinearModel

Make = Callable[[Layout, float], Method]
_TYPICAL_ROWS = 10_000.0  # in a plan
_FEW_LONG = 0.02  # of the rows are too long for a model with intervals, which leaves them out
_LISTS = (
    "a list of proposals, and validation=..., need bounds that are known before: fit once without them, then give "
    "bounds=model.bounds_; or describe the columns by a schema"
)
_NOISE_IS_PLANNED = (
    'only method="auto" goes with classes, or a largest count, that are found privately: the noise of the others is '
    "planned for those that are known. Give classes=... or y_max=..., known without the data, or leave out method"
)

_NO_INTERVALS = (
    "inference=True needs classes, or a largest count, that are known without the data: give them, such as "
    'classes=["no", "yes"] or y_max=20'
)


@dataclass(frozen=True)
class OpenFit:
    """One fit. ``table``: what was brought; None for a plan. ``declared``: what is public about its columns.

    ``chosen``: the weight of a person, where that was found privately.
    """

    model: LinearModel
    response: Response
    declared: Schema
    given_table: OpenInput | None = None
    persons: Persons | None = None
    chosen: int | None = None

    @classmethod
    def of(cls, model: LinearModel, given: PersonRows, y: Any) -> OpenFit:
        """For rows; what is wrong with them in public is said here."""
        response, schema = cls._checked(model)
        target, intercept = _target(response, y, schema), bool(model.fit_intercept)
        table = open_input(given.X, target, schema, intercept, person=given.column)
        declared = table.declared
        if schema is None and (policy := model._policy(None)) is not None:
            declared = replace(declared, missing=policy)
        return cls(model, response.settled(declared), declared, table, given.persons)

    @classmethod
    def planned(cls, model: LinearModel, n_features: int | None) -> OpenFit:
        """For a plan, without rows."""
        response, schema = cls._checked(model)
        target, persons = _target(response, None, schema), model._persons()
        if schema is not None:
            own = with_target(schema, target_in(schema, target), target.own, schema.intercept)
            return cls(model, response, own, persons=persons)
        schema = declared_numbers(len(model._array_names(n_features)), target.given, bool(model.fit_intercept))
        policy = model._policy(None)
        own = schema if policy is None else replace(schema, missing=policy)
        return cls(model, response, own, persons=persons)

    @staticmethod
    def _checked(model: LinearModel) -> tuple[Response, Schema | None]:
        model._check_progress()
        recipe_for(model.method, model.proposals, model.rows, model.validation, model._recipes())
        schema, known = model._declared, model._found_before
        if not isinstance(model.fit_intercept, bool | np.bool_):
            raise TypeError("fit_intercept must be True or False")
        if known is not None and (schema is not None or model.x_norm is not None):
            raise ValueError("bounds that were found before describe the columns: leave out schema and x_norm")
        if schema is not None and schema.target is None:
            raise ValueError('the schema names no target: Schema({...}, target="income") says what is to be predicted')
        if model.x_norm is not None:
            raise ValueError("the bounds of the rows are found privately: leave out x_norm")
        return model._response(), schema if known is None else known.declared

    @property
    def table(self) -> OpenInput:
        """What was brought."""
        assert self.given_table is not None
        return self.given_table

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return [name for name in self.declared.columns if name != self.declared.target]

    @cached_property
    def _max_rows(self) -> int:
        """For how many rows of a person the method is made: looks and what follows are made for single ones."""
        return 1 if self.known is None or self.weight is not None else self.model._rows_each(self.persons)

    @cached_property
    def _budget(self) -> Budget:
        if self.weight is not None or self.known is not None:
            return self.model._promised()
        return self.model._budget(self.persons)

    @cached_property
    def weight(self) -> int | None:
        """So much the rows of a person weigh together, at most, where the method plans for persons itself."""
        return self.model._weight(self.persons)

    def _design(self, layout: Layout) -> Design:
        return Design(row_map(layout), self.weight if self.chosen is None else self.chosen, self._max_rows)

    def _choice(self, entries: int = 1) -> WeightChoice | None:
        """How the weight of a person is found, if that is to be done privately."""
        if self.persons is None or not self.persons.is_private:
            return None
        return WeightChoice.within(self.persons.budget, entries, self.persons.most)

    def _reserved(self, looks: Cost) -> Cost:
        """What is released before the fit: the looks, and what the weight of a person is chosen from."""
        choice = self._choice()
        return looks if choice is None else looks + choice.step.cost

    @cached_property
    def known(self) -> FoundBounds | None:
        """Bounds that were found before, also for another target of the same columns."""
        found, target = self.model._found_before, str(self.declared.target)
        if found is None or found.declared == self.declared:
            return found
        columns = {name: column for name, column in found.columns.items() if name != target}
        public = {name: column for name, column in known_columns(self.declared).items() if name == target}
        if not public and self.declared.columns[target].is_open:
            raise ValueError(
                "these bounds say nothing of the target: give its own, such as y_bound=(low, high), or leave out bounds"
            )
        return replace(found, declared=self.declared, columns={**columns, **public})

    @cached_property
    def _preparation(self) -> TablePreparation | None:
        """The looks; None where bounds were found before."""
        if self.known is not None:
            return None
        constant, counts = bool(self.model.fit_intercept and self.declared.intercept), self.response.counts
        looks = TablePreparation(
            self.declared,
            self._budget,
            constant,
            self.response.joint,
            counts=counts,
            rows=whole_rows(self.model.rows),
            curves=self.model._curves,
            longer=_FEW_LONG if getattr(self.model, "has_intervals", False) and not self.response.joint else None,
        )
        if not isinstance(self.response, OpenClassTarget):
            return looks
        expected = self.model._layout_of(looks.expected(), self.response)
        before = self._reserved(looks.cost)
        most = self.response.most(self._design(expected), self._beside(before), before.mu_squared)
        return replace(looks, most_classes=most)

    def _beside(self, first: Cost) -> Budget:
        """The budget without the delta of the looks; a fit beside them knows what else they cost."""
        return Budget(self._budget.epsilon, self._budget.delta - first.delta, self._budget.neighbours)

    @cached_property
    def layout(self) -> Layout:
        """How rows are read; where that is not known yet, as it may turn out."""
        found = self.known if self._preparation is None else self._preparation.expected()
        assert found is not None
        return self.model._layout_of(found, self.response)

    @cached_property
    def _make(self) -> Make:
        before = self._reserved(Cost(mu_squared=0) if self._preparation is None else self._preparation.cost)
        if self._choice() is None:
            return self._maker(before)

        def weighted(layout: Layout, rows: float) -> Method:
            choice = self._choice(len(layout.features))
            assert choice is not None
            return WeightedMethod(choice, lambda w: replace(self, chosen=w)._maker(before)(layout, rows), self._budget)

        return weighted

    @cached_property
    def method(self) -> Method:
        """The fit, on rows as they are expected to be; what it costs does not depend on that."""
        return self._make(self.layout, _TYPICAL_ROWS if self.known is None else self.known.rows)

    @cached_property
    def _looked(self) -> PreparedRelease[Fit] | None:
        if self._preparation is None:
            return None
        return PreparedRelease(self._preparation, self.method.plan(), self._on_found)

    def _on_found(self, data: Secret[OpenedTable], found: FoundBounds, context: ReleaseContext) -> Outcome[Fit]:
        """The fit on rows read by what was found."""
        layout = self.model._layout_of(found, self.response)
        return self._make(layout, found.rows).fit(data.map(lambda table: table.rows(layout)), context)

    def _maker(self, first: Cost) -> Make:
        """The fit for what is left of the budget beside the looks."""
        model, budget = self.model, self._budget
        recipe, proposals = recipe_for(model.method, model.proposals, model.rows, model.validation, model._recipes())
        if recipe.listed(proposals, model.validation) or model.validation is not None:
            if self._preparation is not None:
                raise ValueError(_LISTS)
            return lambda layout, rows: model._make(self.response, layout, self.persons)
        response, left = self.response, self._beside(first)
        if isinstance(response, OpenResponse):
            if getattr(model, "has_intervals", False):
                raise ValueError(_NO_INTERVALS)
            if recipe.after is None:
                raise ValueError(_NOISE_IS_PLANNED)
            return lambda layout, rows: _told(
                response.after(self._design(layout), left, _declared_by(layout), beside=first.mu_squared, rows=rows),
                layout,
            )
        check_persons(model.method, model._recipes(), self._max_rows)
        given = {"losses": self.response.losses} if self.response.losses else {}
        after = recipe.after
        if after is not None and getattr(next(iter(self.response.losses), None), "kind", "") != "sign_changing":
            given |= model._planned_by(self.layout)
            return lambda layout, rows: _told(
                after(
                    self._design(layout),
                    left,
                    beside=first.mu_squared,
                    found_rows=rows,
                    **given,
                    **model._read_by(layout),
                ),
                layout,
            )
        options = Options(proposals, whole_rows(model.rows), None, given)
        if self._preparation is None:
            return lambda layout, rows: recipe.make(self._design(layout), budget, options)
        tried: list[Budget] = []

        def attempt(part: Budget) -> Method:
            tried.append(part)
            return recipe.make(self._design(self.layout), part, options)

        beside(budget, first, attempt)
        return lambda layout, rows: recipe.make(self._design(layout), tried[-1], options)

    def plan(self, rows: int | None, usual: Usual = EVEN) -> Plan:
        """What a fit will do, what it costs and what to expect of rows that lie as usual."""
        shown = self.response.shown(self.layout)
        if self._looked is None or self._preparation is None:
            return with_fits(self.method.plan(), self.method, shown, rows, self._error_of, usual=usual)
        plan = self._looked.plan().with_notes(*self._preparation.shortfall(rows))
        least = self._preparation.enough_rows
        return with_fits(plan, self.method, shown, rows, self._error_of, least=least, usual=usual)

    @property
    def _error_of(self) -> ErrorOf:
        """In units of the target where these are known: its bounds are public, or were found before."""
        error: ErrorOf = self.model._error_of
        looks = self.known is None and self.declared.columns[str(self.declared.target)].is_open
        return ErrorOf.STANDARDISED if error is ErrorOf.PREDICTION and looks else error

    def forecaster(self, usual: Usual) -> Forecaster:
        """What to expect at other epsilons and numbers of rows."""
        least = 0 if self._preparation is None else self._preparation.enough_rows
        shown = self.response.shown(self.layout)
        own = self.model.schema is not None and self._error_of is ErrorOf.PREDICTION
        target = self.declared.target if own else None
        return forecaster_of(self.method, shown, self._error_of, target, usual=usual, least=least)

    def public(self) -> dict[str, Any]:
        """Public parameters that may be given in several forms, in one of them."""
        classes = {} if self.response.classes is None else {"classes": self.response.classes}
        return {"declared": self.declared, "validation": self._validation, **classes}

    @property
    def _validation(self) -> tuple[Any, Any] | None:
        return None if self.known is None else self.model._scaled_validation(self.response, self.layout)

    def read(self, data: OpenedTable) -> None:
        """Read the table once."""
        if self._preparation is not None:
            self._preparation.read(data)

    def fit(self, data: Secret[OpenedTable], context: ReleaseContext) -> Outcome[Any]:
        """Pay, look, fit."""
        if self._looked is not None:
            return self._looked.fit(data, context)
        return self.method.fit(data.map(lambda table: table.rows(self.layout)), context)


def _target(response: Response, y: Any, schema: Schema | None) -> OpenTarget:
    """What is public about the target; bounds that were found without one say nothing of it."""
    return response.open_target(y, None if schema is None or schema.target is None else schema)


def _told(method: Method, layout: Layout) -> Method:
    """The method, which knows which entries are the same in all rows if it asks for them."""
    from snugdp.mechanisms.objective.standardised import StandardisedClasses, StandardisedGLM

    if isinstance(method, StandardisedGLM | StandardisedClasses) and type(layout) is StandardisedLayout:
        return replace(method, flat=layout.flat)
    return method


def _declared_by(layout: Layout) -> Schema:
    """The columns with the target as it was found."""
    declared: Schema = layout if isinstance(layout, Schema) else layout.bounds.declared  # type: ignore[attr-defined]
    return declared
