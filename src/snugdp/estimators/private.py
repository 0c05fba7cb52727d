"""What all private estimators have: a budget, a source of noise, a record of the promise, a pickle without a secret."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import LedgerLike, Outcome, Unit
from snugdp.estimators.base import Promise, rehearsal, told
from snugdp.estimators.deferred_ledger import mask_password, pickled
from snugdp.estimators.inputs import eager, numbered
from snugdp.estimators.persons import GROUPS, PersonRows, without_columns
from snugdp.estimators.workflows.searches import PaidEstimator
from snugdp.ledger.parts import TablePart
from snugdp.ledger.question import Question, column_name, question
from snugdp.noise import Noise, Simulation
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.release.context import ReleaseContext, require_same
from snugdp.release.parts import part_of
from snugdp.release.persons import MaxRows, Persons
from snugdp.tables.cells import matrix
from snugdp.tables.found import FoundBounds
from snugdp.tables.schema.schema import Schema, check_person_name

_HOW = ("epsilon", "delta", "neighbours", "ledger", "noise", "random_state", "progress", "n_jobs")  # or the budget


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(PaidEstimator):
    """The parameters that all estimators share are its fields; ``epsilon`` and ``delta`` are declared by each class.

    A dataclass has the constructor that scikit-learn asks for: one that takes every parameter by its name and sets it.
    """

    ledger: LedgerLike | None = None
    noise: Noise | None = None
    random_state: int | None = None
    progress: bool | None = None
    neighbours: Neighbours | str = "add_remove"
    person: str | None = None
    max_rows: MaxRows = 1

    _part_column = None  # of a table, if it decided which rows were fitted on and is no feature
    _private_weight: ClassVar[bool] = False  # whether max_rows="private" can be asked for

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; the password in the URL of a ledger is there and does not show."""
        params: dict[str, Any] = super().get_params(deep)
        return {**params, "ledger": mask_password(params["ledger"])}

    def _promised(self) -> Budget:
        """What a fit may spend."""
        return Budget(self.epsilon, self.delta, self.neighbours)

    def _persons(self, groups: Any = None) -> Persons | None:
        """Whose rows belong together; None where rows are protected one by one. ``groups``: given beside the rows."""
        found = getattr(getattr(self, "bounds", None), "declared", None)
        schemas = [each for each in (getattr(self, "schema", None), found) if isinstance(each, Schema)]
        given = [self.person, *(each.person for each in schemas), None if groups is None else GROUPS]
        person = next((name for name in given if name is not None), None)
        for each in schemas:
            check_person_name(person, each.columns)
        return Persons.of(person, self.max_rows, self._promised(), private=self._private_weight)

    @staticmethod
    def _rows_each(persons: Persons | None) -> int:
        """How many rows of a person are used at most; 1 where rows are protected one by one."""
        return 1 if persons is None else persons.most

    def _budget(self, persons: Persons | None = None) -> Budget:
        """What may be spent on one of the rows that are used, where all noise is Gaussian."""
        found = self._persons() if persons is None else persons
        return self._promised() if found is None else found.gaussian_budget

    def _for_persons(self, plan: Plan, persons: Persons | None = None) -> Plan:
        """The plan as it is paid, from one for single rows."""
        persons = self._persons() if persons is None else persons
        if persons is None:
            return plan
        several = Note("persons-several", {"rows": persons.most})
        if plan.unit is Unit.PERSON and not self._weighs(persons) and several not in plan.forecast.notes:
            plan = plan.with_notes(several)
        return persons.plan(plan)

    def _weighs(self, persons: Persons | None) -> bool:
        """Whether all rows of a person are used, with weights; otherwise some of them are kept."""
        return False

    def _given(self, X: Any, y: Any, groups: Any) -> tuple[PersonRows, Any]:
        """The rows with their identifiers, and the targets: those of the part that the ledger pays for."""
        persons = self._persons(groups)
        part = part_of(self.ledger, None if persons is None else persons.column)
        if part is None:
            return PersonRows.of(X, persons, groups), y
        from snugdp.estimators.parts import in_part  # polars: only for those who need it

        self._context(persons, part)  # whom the ledger protects is compared before rows are read
        schema = getattr(self, "schema", None)
        named = schema.columns if isinstance(schema, Schema) else ()
        hidden = part.column not in named and (persons is None or part.column != persons.column)
        self._part_column = part.column if hidden else None
        X, y = in_part(X, y, part, hidden=hidden)
        return replace(PersonRows.of(X, persons, groups), part=part), y

    def _features(self, X: Any) -> Any:
        """Rows to predict without identifiers, and without the column that decided which rows were fitted on."""
        return without_columns(X, (name for name in (self.person, self._part_column) if name is not None))

    def _context(self, persons: Persons | None, part: TablePart | None = None) -> ReleaseContext:
        """Who pays for a fit, and where its noise comes from. ``part``: of the table, if only its rows are read."""
        unit = Unit.ROW if persons is None else Unit.PERSON
        context = ReleaseContext(self._fresh_noise(), self.ledger, self._promised(), unit=unit, part=part)
        return self._beside_fit(context.for_persons(persons))

    def _require_same(self) -> None:
        """Whether the ledger protects whom a fit protects, by the same relation: said in the plan already."""
        unit = Unit.ROW if self._persons() is None else Unit.PERSON
        require_same(self.ledger, unit, self._promised().neighbours)

    def _beside_fit(self, context: ReleaseContext) -> ReleaseContext:
        """The context of a fit; another one where something is released beside it, such as a score."""
        return context

    def _check_progress(self) -> None:
        if self.progress not in (None, True, False):
            raise TypeError("progress must be True, False or None")

    def _fresh_noise(self) -> Noise | None:
        """A rehearsal begins anew at every fit: the same seed, the same result."""
        if self.random_state is not None:
            return rehearsal(self.random_state, self.noise)
        return copy.deepcopy(self.noise) if isinstance(self.noise, Simulation) else self.noise

    def _question(self, names: Sequence[str], y: Any = None, **public: Any) -> Question:
        """What this fit asks for, all of it public: a key of a ledger is good for nothing else.

        ``names``: of the features. ``public``: parameters as they were read, instead of as they were given.
        """
        params = self.get_params(deep=False).items()
        given = {name: value for name, value in params if name not in _HOW and told(name, value)}
        named, schema = column_name(y), given.get("schema")
        declared = getattr(schema, "target", None)
        target = declared if declared is not None and named in (None, declared) else named
        words = type(self).__name__ if target is None else f"{type(self).__name__} of {target}"
        parts = {"by": type(self), "budget": self._promised(), "features": list(names), "target": [declared, target]}
        return question(words, **parts, given={**given, **public})

    def _forget(self) -> None:
        """Nothing of an earlier fit stays beside a later one."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _array_names(self, n_features: int | None) -> tuple[str, ...]:
        """Names for the columns of an array, as many as are given or were fitted; none where a schema has its own."""
        if self.schema is not None:
            return ()
        known = getattr(self, "n_features_in_", None) if n_features is None else n_features
        width = whole_rows(known, "n_features")
        if width is None:
            raise ValueError("give n_features=..., the number of columns of X, or a schema")
        return numbered(width)

    def _name(self, named: Any, names: list[str]) -> None:
        """The features of a fit: by scikit-learn where it can, otherwise by the names of their columns."""
        if named is not None:
            validate_data(self, named, reset=True, skip_check_array=True)
            return
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _check_features(self, X: Any) -> None:
        """As in the fit: by scikit-learn for arrays and pandas, of whose names all its versions know."""
        frame = eager(X)
        if frame is None or hasattr(type(X), "set_axis"):
            rows = X if frame is not None or hasattr(type(X), "tocsr") else matrix(X)
            validate_data(self, rows, reset=False, skip_check_array=True)
        elif hasattr(self, "feature_names_in_") and frame.columns != list(self.feature_names_in_):
            raise ValueError("The feature names should match those that were passed during fit, in the same order")

    def _record(self, outcome: Outcome[Any], plan: Plan) -> None:
        """What every fit leaves, released or refused."""
        self.outcome_: Any = outcome
        self.plan_, self.cost_ = plan, outcome.cost
        self.receipt_ = getattr(outcome, "receipt", None)
        self.guarantee_ = None if self.receipt_ is None else Promise(self._promised(), plan.theorem, plan.unit)
        self.released_ = not outcome.refused

    @property
    def _seeks_bounds(self) -> bool:
        """Whether bounds that are not declared are to be found, and were not found before."""
        if isinstance(self.bounds, FoundBounds):
            return False
        if not isinstance(self.bounds, str) or self.bounds != "private":
            raise TypeError('bounds must be "private", or bounds that were found before, as model.bounds_ keeps them')
        return True

    def _require_features(self, names: Sequence[str], columns: Iterable[str]) -> None:
        """Whether the features that a model file names are the columns of its schema, if it has one."""
        if self.schema is not None and list(names) != [name for name in columns if name != self.schema.target]:
            raise ValueError('"features" must have the names of the columns of the schema, in their order')

    def _extras(self) -> dict[str, Any]:
        """What a model file holds of a release besides what is shown."""
        left_out = getattr(self, "left_out_", None)
        return {"left_out": dict(left_out)} if left_out else {}

    def _take_extras(self, given: Mapping[str, Any]) -> None:
        """Take what ``_extras`` gave; whatever is wrong with it is a ``ValueError``."""
        others = given.keys() - {"left_out"}
        if others:
            raise ValueError(f"a {type(self).__name__} has no {min(others)}")
        left_out = given.get("left_out", {})
        pairs = left_out.items() if isinstance(left_out, dict) else [(None, None)]
        if not all(isinstance(text, str) for pair in pairs for text in pair):
            raise ValueError('"left_out" must say why for every column that is left out')
        if left_out:
            self.left_out_ = left_out

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state["ledger"] = pickled(state["ledger"])
        return state

    def _repr_html_(self) -> str:
        """In a notebook: what was released, once it is fitted; before that its repr, which has no password in it."""
        page: str = import_module("snugdp.report.notebook").model_html(self)  # above this package
        return page

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "released_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None and not isinstance(self.noise, Simulation)
        tags.input_tags.allow_nan = True  # no value may raise: what is no number is missing
        tags.input_tags.sparse = getattr(self, "schema", None) is None  # a schema speaks of named columns
        tags.input_tags.string = True  # text in a cell is no number either
        return tags
