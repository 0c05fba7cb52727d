"""From the words of a command to an estimator, and what ``plan``, ``fit`` and ``select`` share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from snugdp.cli.options import PersonOptions, Relation, Target, max_rows_of
from snugdp.cli.terminal import say
from snugdp.estimators.registry import ESTIMATORS

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.composition.limits import Remaining
    from snugdp.propose.plan import Plan
    from snugdp.tables.schema.kinds import Column
    from snugdp.tables.schema.schema import Schema
    from snugdp.tables.sources import Source


class Model(StrEnum):
    """The models, by the words of the command line."""

    LINEAR = "linear"
    LOGISTIC = "logistic"
    POISSON = "poisson"
    ADDITIVE = "additive"
    SPARSE = "sparse"
    PCA = "pca"


class Gaps(StrEnum):
    """What a missing cell does."""

    CENTRE = "centre"
    DROP = "drop"
    INDICATOR = "indicator"


class NumberEffects(StrEnum):
    """What the effects of numbers are, in an additive model."""

    AUTO = "auto"
    LINE = "line"
    CURVE = "curve"
    BOTH = "both"


class TableSchema(NamedTuple):
    """What is public about the columns of a table, and why the others are left out."""

    schema: Schema
    left_out: Mapping[str, str]


_TRUTHS = ("no", "yes"), ("false", "true"), ("0", "1"), ("n", "y"), ("f", "t")
_HELP = (
    "What to fit; additive (curves) is for labels if --classes is given or the target is declared as a boolean or a "
    "category, otherwise for numbers; sparse is logistic if the target is a boolean, otherwise linear."
)
Which = Annotated[Model, typer.Argument(help=_HELP, show_default=False)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(PersonOptions):
    """What was asked of a model."""

    epsilon: Annotated[float, typer.Option(help="The privacy budget of this fit, such as 1.", show_default=False)]
    delta: Annotated[float, typer.Option(help="The failure probability of this fit.")] = 1e-6
    target: Target = None
    missing: Annotated[
        Gaps | None,
        typer.Option(
            help="How missing cells are treated: they count as the centre of their column, drop their row, or have an "
            "indicator as well. By default as the schema says, or centre. Rows without a target are always dropped."
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            help="logistic, additive, sparse: all possible labels, separated by commas, such as no,yes; public. "
            "Those of logistic models are found privately where neither this nor a schema lists them."
        ),
    ] = None
    y_max: Annotated[
        float | None,
        typer.Option(
            help="poisson: the largest count there can be; public. It is found privately where neither this nor a "
            "schema says it."
        ),
    ] = None
    method: Annotated[str, typer.Option(help="How to fit; the documentation of each model lists its methods.")] = "auto"
    param: Annotated[
        list[str] | None, typer.Option(help="A parameter of the method, such as ridge=10; repeat for more.")
    ] = None
    propose: Annotated[list[str] | None, typer.Option(hidden=True)] = None  # the former name of --param
    features: Annotated[int | None, typer.Option(min=1, help="sparse: how many columns to select.")] = None
    components: Annotated[
        str | None, typer.Option(help="pca: how many components, a share of the variance such as 0.9, or auto.")
    ] = None
    effects: Annotated[
        NumberEffects | None,
        typer.Option(
            help="additive: what the effects of numbers are: lines, curves, or lines with bends on them. By default "
            "auto, which is both, but lines where rows are few."
        ),
    ] = None
    inference: Annotated[
        bool,
        typer.Option(
            "--inference", help="linear, logistic, poisson: release standard errors and intervals with the fit."
        ),
    ] = False
    mean: Annotated[
        bool,
        typer.Option(
            "--mean",
            help="linear: estimate the conditional mean, with intervals, instead of a robust line; for skewed targets.",
        ),
    ] = False
    neighbours: Relation = "add_remove"

    def described(self, model: Model, file: object) -> TableSchema:
        """The schema in this file, or that of this table, whose bounds are then found privately."""
        self._check(model)
        schema, left_out = described(file, self.target, needed=model is not Model.PCA, person=self.person)
        if self.missing is not None:
            schema = replace(schema, missing=self.missing.value)
        return TableSchema(self._with_target(model, schema), left_out)

    def estimator(self, model: Model, schema: Schema, rows: int | None) -> Any:
        """The estimator, not fitted. What is wrong with the options is said here."""
        given: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}
        given |= {"method": self.method, "rows": rows, "schema": schema, "max_rows": max_rows_of(self.max_rows)}
        known = [entry for entry in ESTIMATORS if entry.command == model.value]
        if model is Model.PCA:
            return known[0].load()(value_of(self.components or "auto", {}), **given)
        wrong = "a parameter is written NAME=VALUE, such as --param ridge=10"
        given["proposals"] = {name: value_of(text) for name, text in pairs_of(self._params, wrong).items()} or None
        if model is Model.SPARSE:  # linear and logistic
            columns = len(schema.features) - schema.intercept if schema.complete else len(schema.columns) - 1
            return known[_is_truth(schema)].load()(self.features or min(10, columns), **given)
        if model is Model.ADDITIVE:  # numbers and labels
            return known[_is_label(schema)].load()(**given, effects=(self.effects or NumberEffects.AUTO).value)
        if self.mean:
            given["target"] = "mean"
        return known[0].load()(**given, inference=self.inference)

    @property
    def _params(self) -> tuple[str, ...]:
        return (*(self.param or ()), *(self.propose or ()))

    def _with_target(self, model: Model, schema: Schema) -> Schema:
        """The schema with a target that lists the classes or has the largest count, or leaves them to be found."""
        from snugdp.tables.schema.kinds import Boolean, Category, Number

        if self.y_max is not None:
            return replace(schema, columns={**schema.columns, str(schema.target): Number(0, self.y_max)})
        if self.classes is None:
            open_kinds: dict[Model, Column] = {Model.LOGISTIC: Category(), Model.POISSON: Number(lower=0)}
            found = open_kinds.get(model)
            if found is None or not schema.columns[str(schema.target)].is_open:
                return schema
            return replace(schema, columns={**schema.columns, str(schema.target): found})
        labels = [text.strip() for text in self.classes.split(",")]
        truth = tuple(sorted(label.lower() for label in labels)) in _TRUTHS
        if model is Model.SPARSE and not truth:
            raise ValueError("a sparse model has two classes, no and yes: --classes no,yes")
        listed = Category([value_of(label, {}) for label in labels])
        kind = Boolean() if truth and (model is Model.SPARSE or _is_truth(schema)) else listed
        return replace(schema, columns={**schema.columns, str(schema.target): kind})

    def _check(self, model: Model) -> None:
        if self.classes is not None and model not in (Model.LOGISTIC, Model.ADDITIVE, Model.SPARSE):
            raise ValueError("--classes is for logistic, additive and sparse models: leave it out")
        if self.y_max is not None and model is not Model.POISSON:
            raise ValueError("--y-max is for poisson models: leave it out")
        if self.features is not None and model is not Model.SPARSE:
            raise ValueError("--features is for sparse models: leave it out")
        if self.components is not None and model is not Model.PCA:
            raise ValueError("--components is for pca: leave it out")
        if self.effects is not None and model is not Model.ADDITIVE:
            raise ValueError("--effects is for additive models: leave it out")
        if self.inference and model not in (Model.LINEAR, Model.LOGISTIC, Model.POISSON):
            raise ValueError("--inference is for linear, logistic and poisson models: leave it out")
        if self.mean and model is not Model.LINEAR:
            raise ValueError("--mean is for linear models: leave it out")
        if self._params and model is Model.PCA:
            raise ValueError("pca has no parameters: leave out --param")


def _is_truth(schema: Schema) -> bool:
    from snugdp.tables.schema.kinds import Boolean

    return isinstance(schema.columns[str(schema.target)], Boolean)


def _is_label(schema: Schema) -> bool:
    from snugdp.tables.schema.kinds import Boolean, Category

    return isinstance(schema.columns[str(schema.target)], Boolean | Category)


def schema_of(file: object, target: str | None, *, needed: bool = True) -> Schema:
    """The schema in a file, with this target or its own. ``needed``: whether it needs one."""
    from snugdp.tables.schema.schema import Schema

    schema = Schema.from_toml(Path(str(file)))
    if target is not None:
        return replace(schema, target=target)
    if needed and schema.target is None:
        raise ValueError(f"{file} has no target: give --target, the column to predict")
    return schema


def described(file: object, target: str | None, *, needed: bool = True, person: str | None = None) -> TableSchema:
    """As ``schema_of``; what is no TOML file is a table, and its columns are told by their declared types and names."""
    from snugdp.tables.schema.infer import inferred
    from snugdp.tables.sources import open_source

    if str(file).endswith(".toml"):
        schema = schema_of(file, target, needed=needed)
        return TableSchema(schema if person is None else replace(schema, person=person), {})
    if needed and target is None:
        raise ValueError("give --target, the column to predict, or a schema that names one")
    source = open_source(file)
    require_person(source, person)
    schema, left_out = inferred({name: kind for name, kind in source.types.items() if name != person}, target)
    for name, why in left_out.items():
        say(f'Column "{name}" is left out: {why}', err=True)
    return TableSchema(replace(schema, person=person), left_out)


def require_person(source: Source, person: str | None) -> None:
    """Whether a table has the column that says whose rows belong together, if there is one."""
    if person is not None and person not in source.types:
        raise ValueError(f'{source.name} has no column "{person}", which should say whose rows belong together')


def in_range(epsilon: float | str, delta: float | str | None = None) -> None:
    """Whether these can be computed with; what else is wrong with them is said where they are used."""
    if not _between(epsilon, 1e-9, 1e9):
        raise ValueError("epsilon must be between 1e-9 and 1e9; typical values are 0.1 to 4")
    if delta is not None and not _between(delta, 1e-100, 1.0):
        raise ValueError("delta must be 0, or at least 1e-100; typical values are 1e-6 to 1e-9")


def _between(amount: float | str, least: float, most: float) -> bool:
    """Whether a number is not out of all proportion. Zero, and what is no such number, is left to others."""
    try:
        value = float(amount)
    except ValueError:
        return True
    if value == 0 and isinstance(amount, str):
        return not any(digit in amount.lower().partition("e")[0] for digit in "123456789")  # 1e-400 is not 0
    return not (0 < value < least or most < value < math.inf or (math.isinf(value) and "e" in str(amount).lower()))


def pairs_of(given: Sequence[str], wrong: str) -> dict[str, str]:
    """Names and values that were written as NAME=VALUE."""
    pairs = [text.partition("=") for text in given]
    if any(not name.strip() or not value.strip() for name, _, value in pairs):
        raise ValueError(wrong)
    return {name.strip(): value.strip() for name, _, value in pairs}


def value_of(text: str, words: Mapping[str, Any] = MappingProxyType({"true": True, "false": False})) -> Any:
    """One of the words, a number, or text."""
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def plan_of(estimator: Any, rows: int | None) -> Plan:
    """The plan of an estimator, whether or not it can make something of a number of rows."""
    from snugdp.estimators.pca.pca import PCA

    plan: Plan = estimator.plan() if isinstance(estimator, PCA) else estimator.plan(rows=rows)
    return plan


def plan_with_holdout(estimator: Any, plan: Plan, holdout: float) -> Plan:
    """The plan with the scores on rows that are held out, if the estimator can be scored on them."""
    from snugdp.estimators.model import LinearModel
    from snugdp.scores import holdout as held

    can_be_scored = isinstance(estimator, LinearModel)
    if not can_be_scored:
        raise ValueError("--holdout is for linear, logistic, poisson and additive models: leave it out")
    return held.plan_with_holdout(plan, held.held_share(holdout))


def columns_of(estimator: Any) -> dict[str, Column]:
    """The columns that a fit reads; PCA has no target."""
    from snugdp.estimators.pca.pca import PCA

    schema: Schema = estimator.schema
    left = schema.target if isinstance(estimator, PCA) else None
    return {name: kind for name, kind in schema.columns.items() if name != left}


def opened(ledger: str | None) -> Ledger | None:
    """The ledger at this address, which must be there."""
    from snugdp.ledger.address import opened as ledger_at

    return None if ledger is None else ledger_at(ledger)


def as_amounts(left: Remaining | None) -> dict[str, Any] | None:
    """For JSON: floats that are rounded down, and what is left exactly."""
    if left is None:
        return None
    return {"mu": left.mu, "epsilon": left.epsilon, "delta": left.delta, "exact": left.as_dict()}


def finite(value: float) -> float | None:
    """For JSON, which has no word for what is not bounded but null."""
    return value if math.isfinite(value) else None


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """What a plan says, for machines."""
    from snugdp.serial.costs import cost_told

    budget = None if plan.budget is None else {"epsilon": str(plan.budget.epsilon), "delta": str(plan.budget.delta)}
    theorem = {"title": plan.title, "theorem": plan.theorem.id, "proof": plan.theorem.link, "budget": budget}
    return {"plan": str(plan), **theorem, "unit": plan.unit.value, "cost": cost_told(plan.cost)}


def require_same(ledger: Ledger | None, plan: Plan) -> None:
    """Whether a ledger protects whom the plan protects, by the same relation: said before anything is read or asked."""
    from snugdp.release import context

    context.require_same(ledger, plan.unit, plan.cost.neighbours)


def exceeded(ledger: Ledger, plan: Plan) -> str:
    """Why a ledger will not take a plan."""
    needs = (plan.cost if plan.budget is None or not ledger.composition.adds else plan.budget.cost).words
    return (
        f"the budget of {ledger.address} does not cover this release: it needs {needs}; left: "
        f"{ledger.remaining}. Nothing was charged. Ask for less epsilon or delta; "
        "'snugdp ledger show' lists what was spent"
    )
