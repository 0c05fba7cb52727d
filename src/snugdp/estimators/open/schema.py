"""A model of a schema whose bounds are found privately: looks, then the model as under public bounds.

For models that scale columns by their bounds alone: components and sparse models.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import require_rows
from snugdp.estimators.open.tables import OpenInput
from snugdp.estimators.persons import PersonRows
from snugdp.estimators.private import PrivateEstimator
from snugdp.mechanisms.bounds.preparation import PreparedRelease, TablePreparation
from snugdp.mechanisms.support.sparse import beside
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds
from snugdp.tables.opened import OpenedTable
from snugdp.tables.schema.schema import Schema


@dataclass(frozen=True)
class OpenSchemaFit:
    """``make(schema, budget)``: the method. ``run(method, table, schema, context)``: the method on the table.

    A target whose classes are found has two: the most frequent.
    """

    declared: Schema
    budget: Budget
    make: Callable[[Schema, Budget], Any]
    run: Callable[[Any, Secret[OpenedTable], Schema, ReleaseContext], Outcome[Any]]

    @cached_property
    def preparation(self) -> TablePreparation:
        """The looks."""
        return TablePreparation(self.declared, self.budget, standardised=False, most_classes=2)

    @cached_property
    def left(self) -> Budget:
        """What is left for the method, whatever is found."""
        tried: list[Budget] = []

        def attempt(part: Budget) -> Any:
            tried.append(part)
            return self.make(self.expected, part)

        beside(self.budget, self.preparation.cost, attempt)
        return tried[-1]

    @cached_property
    def expected(self) -> Schema:
        """The schema as it may turn out."""
        return self.preparation.expected().schema

    @cached_property
    def method(self) -> Any:
        """The method under the schema that is expected: what it costs does not depend on that."""
        return self.make(self.expected, self.left)

    @cached_property
    def _release(self) -> PreparedRelease[Any]:
        """Looks and model as one."""
        return PreparedRelease(self.preparation, self.method.plan(), self._then)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        return self._release.plan()

    def read(self, data: OpenedTable) -> None:
        """Read the table once."""
        self.preparation.read(data)

    def fit(self, data: Secret[OpenedTable], context: ReleaseContext) -> Outcome[Any]:
        """Pay, look, fit."""
        return self._release.fit(data, context)

    def _then(self, data: Secret[OpenedTable], found: FoundBounds, context: ReleaseContext) -> Outcome[Any]:
        schema = found.schema
        return self.run(self.make(schema, self.left), data, schema, context)


class OpenSchemaEstimator(PrivateEstimator):
    """An estimator that finds bounds privately where none are declared, and scales columns by them alone."""

    @abstractmethod
    def _open(self, declared: Schema, persons: Persons | None = None) -> OpenSchemaFit:
        """Looks at these columns, and the fit."""

    @abstractmethod
    def _open_plan(self, opened: OpenSchemaFit) -> Plan:
        """What a fit with such bounds will do."""

    @abstractmethod
    def _keep(self, outcome: Outcome[Any], plan: Plan, layout: Any) -> Self:
        """What a fit leaves. ``layout``: as it was before the fit; None where its bounds were found."""

    def _fit_open(self, given: PersonRows, table: OpenInput, y: Any = None, **public: Any) -> Self:
        """As ``fit``, with bounds that are found privately. ``public``: parameters as they were read."""
        declared, context = table.declared, self._context(given.persons, given.part)
        require_rows(context.noise, table.is_empty)
        opened = self._open(declared, given.persons)
        names = [name for name in declared.columns if name != declared.target]
        plan = self._for_persons(self._open_plan(opened), given.persons)
        kept = given.kept(table.source, declared.columns, context.noise, progress=self.progress)
        data = OpenedTable(kept, declared, progress=self.progress)
        with one_blas_thread():
            opened.read(data)  # a table that cannot be read is found before the charge
            self._forget()
            self._name(table.named, names)
            self.left_out_ = dict(table.left_out)
            asked = context.with_question(lambda: self._question(names, y, declared=declared, **public, **given.public))
            outcome = opened.fit(Secret(data), asked)
        return self._keep(outcome, plan, None)

    def _keep_again(self, outcome: Outcome[Any], plan: Plan, names: Sequence[str], layout: Any) -> None:
        """As ``_keep``, for a fit from a model file. ``names``: of the features."""
        declared = layout if layout is not None else self.schema
        self._require_features(names, () if declared is None else declared.columns)
        self._keep(outcome, plan, layout)
