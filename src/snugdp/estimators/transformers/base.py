"""What private transformers have in common: they learn about columns by looks, and change every row by itself.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from snugdp.core.outcome import Outcome
from snugdp.estimators.base import NotReleased, missing_notes, require_rows
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.open.tables import OpenInput, open_points, standardised_rows
from snugdp.estimators.private import PrivateEstimator
from snugdp.estimators.workflows.pipelines import warn_of_pipeline
from snugdp.mechanisms.bounds.looks_release import LooksRelease
from snugdp.numerics.rationals import Real
from snugdp.propose.plan import Plan
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds, FoundColumn
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.layouts.points import unlabelled
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.opened import OpenedTable
from snugdp.tables.schema.kinds import Column
from snugdp.tables.schema.missing import policy_of
from snugdp.tables.schema.schema import Schema

Floats = NDArray[np.float64]
_DROPS = (
    'a transformer keeps every row: missing can be "centre" or "indicator". To drop rows in a fit, give '
    'missing="drop" to the model'
)


@dataclass(eq=False, repr=False)
class PrivateTransformer(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """A scikit-learn transformer, with a budget that is spent on looks at columns alone.

    Guarantee: each fit is (epsilon, delta)-DP in its relation; one that finds nothing new costs nothing.
    """

    _usual = True  # whether a row in no level is read as a usual one

    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    schema: Schema | None = None
    bounds: FoundBounds | str = "private"

    _named = False  # whether scikit-learn knows the features

    @abstractmethod
    def _kind(self, place: int) -> Column:
        """What is declared of a column at this place, where there is no schema."""

    def plan(self, n_features: int | None = None) -> Plan:
        """What a fit will do and what it costs. No data are read.

        ``n_features``: of an array; a schema knows.
        """
        self._require_same()
        schema = self._schema
        if schema is None:
            names = self._array_names(n_features)
            schema = Schema({name: self._kind(place) for place, name in enumerate(names)})
        return self._for_persons(self._told(self._looks(self._declared(schema))))

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Pay and look. What is public is checked before anything is charged; ``y`` is ignored.

        X: rows of an array or a list, or a pandas, polars or pyarrow table. ``groups``: as in ``LinearRegression.fit``.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        warn_of_pipeline()
        given, _ = self._given(X, None, groups)
        table, context = self._open(given.X, given.column), self._context(given.persons, given.part)
        require_rows(context.noise, table.is_empty)
        looks, names = self._looks(table.declared, given.persons), list(table.declared.columns)
        plan = self._for_persons(self._told(looks), given.persons)
        source = given.kept(table.source, names, context.noise, progress=self.progress)
        data = OpenedTable(source, table.declared, progress=self.progress)
        if not isinstance(source, ArraySource):
            looks.read(data)  # a table that cannot be read is found before the charge
        self._forget()
        self._name(table.named, names)
        self._named = table.named is not None
        asked = context.with_question(lambda: self._question(names, declared=table.declared, **given.public))
        outcome = looks.fit(Secret(data), asked)
        self.left_out_ = dict(table.left_out)
        return self._keep(outcome, plan)

    @row_by_row("features")
    def transform(self, X: Any) -> Floats:
        """The rows, each changed by itself by what was released. As private as they are: no noise is added to rows."""
        self._require_release()
        X = self._features(X)
        if self._named:
            self._check_features(X)
        return np.concatenate([np.empty((0, len(self._layout.features))), *standardised_rows(X, self._layout)])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns that come out.

        ``input_features``: names for the columns of an array; those of a table have their own.
        """
        self._require_release()
        layout = self._layout
        if input_features is not None:
            given = list(input_features)
            known = getattr(self, "feature_names_in_", None)
            if known is not None and given != list(known):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), got "
                    f"{len(given)}"
                )
            if known is None:
                layout = replace(layout, bounds=_renamed(layout.bounds, dict(zip(layout.columns, given, strict=True))))
        return np.array(layout.features, dtype=object)

    @property
    def x_norm_(self) -> float:
        """A number that the Euclidean norm of no transformed row exceeds."""
        self._require_release()
        return self._layout.longest

    @property
    def _schema(self) -> Schema | None:
        """What is declared, by a schema or by bounds that were found before."""
        if isinstance(self.bounds, FoundBounds):
            if self.schema is not None:
                raise ValueError("bounds that were found before describe the columns: leave out schema")
            return unlabelled(self.bounds.declared)
        if not isinstance(self.bounds, str) or self.bounds != "private":
            raise TypeError('bounds must be "private", or bounds that were found before, as bounds_ keeps them')
        if not isinstance(self.schema, Schema | None):
            raise TypeError("schema must be a snugdp.Schema")
        return None if self.schema is None else unlabelled(self.schema)

    def _open(self, X: Any, person: str | None = None) -> OpenInput:
        """The table, opened, and what is declared of its columns."""
        table = self._points(X, person)
        return replace(table, declared=self._declared(table.declared))

    def _points(self, X: Any, person: str | None) -> OpenInput:
        return open_points(X, self._schema, self._kind, person=person)

    def _declared(self, schema: Schema) -> Schema:
        """The columns as they are used. A constant is the matter of models."""
        if any(policy_of(schema.missing, name) == "drop" for name in schema.columns):
            raise ValueError(_DROPS)
        return replace(schema, intercept=True)

    def _looks(self, declared: Schema, persons: Persons | None = None) -> LooksRelease:
        self._check_progress()
        found = self.bounds if isinstance(self.bounds, FoundBounds) else None
        if found is not None:
            used = {name: column for name, column in found.columns.items() if name in declared.columns}
            found = replace(found, declared=declared, columns=used, answers=None)
        return LooksRelease(declared, self._budget(persons), found)

    @staticmethod
    def _told(looks: LooksRelease) -> Plan:
        return looks.plan().with_notes(*missing_notes(looks.declared))

    def _require_release(self) -> None:
        check_is_fitted(self)
        if not self.released_:
            raise NotReleased(
                f"the fit of this {type(self).__name__} was refused: there may have been too few rows to tell what its "
                "columns hold. The budget is spent, and why is private. Try more rows or a larger epsilon, or declare "
                "the columns in a schema"
            )

    def _keep(self, outcome: Outcome[FoundBounds], plan: Plan) -> Self:
        self._record(outcome, plan)
        if outcome.value is not None:
            self.bounds_ = outcome.value
            self._layout = StandardisedLayout(replace(self.bounds_, radius=1.0), constant=False, usual=self._usual)
            names = (name for name in self.bounds_.declared.columns if name in self.bounds_.columns)
            self._describe([self.bounds_[name] for name in names])
        return self

    def _describe(self, found: list[FoundColumn]) -> None:
        """Released numbers, as scikit-learn calls them. ``found``: of numbers and categories, in their order."""

    def _restore(self, outcome: Outcome[FoundBounds], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        if outcome.value is not None and not isinstance(outcome.value, FoundBounds):
            raise ValueError("a released transformer holds what was found")
        self._keep(outcome, plan)

    def _extras(self) -> dict[str, Any]:
        return {"left_out": self.left_out_}

    def _take_extras(self, given: Mapping[str, Any]) -> None:
        super()._take_extras({name: held for name, held in given.items() if name != "left_out"})
        self.left_out_ = given["left_out"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _renamed(found: FoundBounds, names: Mapping[str, str]) -> FoundBounds:
    """The same for columns of other names."""
    declared, missing = found.declared, found.declared.missing
    if isinstance(missing, Mapping):
        missing = {names[name]: policy for name, policy in missing.items()}
    columns = {names[name]: kind for name, kind in declared.columns.items()}
    known = {names[name]: column for name, column in found.columns.items()}
    return replace(found, declared=replace(declared, columns=columns, missing=missing), columns=known)
