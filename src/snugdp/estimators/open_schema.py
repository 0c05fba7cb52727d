"""A model of a schema whose bounds are found in private: looks, then the model as under public bounds.

For models that scale columns by their bounds alone: components and sparse models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.preparation import PreparedRelease, TablePreparation
from snugdp.mechanisms.support.sparse import beside
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
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
