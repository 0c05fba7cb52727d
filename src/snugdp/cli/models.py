"""What ``plan``, ``fit`` and ``predict`` share: from the words of a command to an estimator, and its options."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.estimators.registry import ESTIMATORS

if TYPE_CHECKING:
    from snugdp.core.guarantee import Cost
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.limits import Remaining
    from snugdp.propose.plan import Plan
    from snugdp.tables.schema.kinds import Column
    from snugdp.tables.schema.schema import Schema


class Model(StrEnum):
    """The models, by the words of the command line."""

    LINEAR = "linear"
    LOGISTIC = "logistic"
    POISSON = "poisson"
    SPARSE = "sparse"
    PCA = "pca"


_HELP = "What to fit; sparse is logistic if the target is a boolean, otherwise linear."
Which = Annotated[Model, typer.Argument(help=_HELP, show_default=False)]
SchemaFile = Annotated[Path, typer.Argument(help="The schema, a TOML file.", show_default=False)]
Target = Annotated[str | None, typer.Option(help="The column to predict, if it is not the target of the schema.")]
Epsilon = Annotated[float, typer.Option(help="The privacy budget of this fit, such as 1.", show_default=False)]
Delta = Annotated[float, typer.Option(help="The failure probability of this fit.")]
Method = Annotated[str, typer.Option(help="How to fit; the documentation of each model lists its methods.")]
Param = Annotated[
    list[str] | None, typer.Option("--param", help="A parameter of the method, such as ridge=10; repeat for more.")
]
Propose = Annotated[list[str] | None, typer.Option("--propose", hidden=True)]  # its former name
Features = Annotated[int | None, typer.Option(min=1, help="sparse: how many columns to select.")]
Components = Annotated[
    str | None, typer.Option(help="pca: how many components, a share of the variance such as 0.9, or auto.")
]
Relation = Annotated[str, typer.Option("--neighbours", help='Which tables are neighbours: "add_remove" or "replace".')]
LedgerAt = Annotated[
    str | None, typer.Option("--ledger", help="The ledger: a file, or postgresql://user@host/database#dataset.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class Wish:
    """What was asked for."""

    model: Model
    schema: Path
    target: str | None
    epsilon: float
    delta: float
    method: str = "auto"
    params: tuple[str, ...] = ()
    rows: int | None = None
    features: int | None = None
    components: str | None = None
    neighbours: str = "add_remove"

    def estimator(self) -> Any:
        """The estimator, not fitted; what is wrong with the wish is said here."""
        from snugdp.tables.schema.schema import Boolean, Schema

        self._check()
        schema = Schema.from_toml(self.schema)
        if self.target is not None:
            schema = replace(schema, target=self.target)
        elif schema.target is None and self.model is not Model.PCA:
            raise ValueError(f"{self.schema} has no target: give --target, the column to predict")
        given: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}
        given |= {"method": self.method, "rows": self.rows, "schema": schema}
        known = [entry for entry in ESTIMATORS if entry.command == self.model.value]
        if self.model is Model.PCA:
            return known[0].load()(_components(self.components), **given)
        given["proposals"] = _proposals(self.params)
        if self.model is Model.SPARSE:  # linear and logistic
            truth = isinstance(schema.columns[str(schema.target)], Boolean)
            return known[truth].load()(_few(self.features, schema), **given)
        return known[0].load()(**given)

    def _check(self) -> None:
        if self.features is not None and self.model is not Model.SPARSE:
            raise ValueError("--features is for sparse models: leave it out")
        if self.components is not None and self.model is not Model.PCA:
            raise ValueError("--components is for pca: leave it out")
        if self.params and self.model is Model.PCA:
            raise ValueError("pca has no parameters: leave out --param")


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


def _few(wanted: int | None, schema: Schema) -> int:
    """As many columns as asked for; otherwise ten, or all."""
    return min(10, len(schema.features) - schema.intercept) if wanted is None else wanted


def _components(text: str | None) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text or "auto")
        except ValueError:
            pass
    return text or "auto"


def _proposals(given: tuple[str, ...]) -> dict[str, Any] | None:
    pairs = [text.partition("=") for text in given]
    if any(not name or not value for name, _, value in pairs):
        raise ValueError("a parameter is written NAME=VALUE, such as --param ridge=10")
    return {name.strip(): value_of(value.strip()) for name, _, value in pairs} or None


def value_of(text: str) -> Any:
    """A number, a boolean, or a word."""
    if text in ("true", "false"):
        return text == "true"
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


def left_after(ledger: Ledger, cost: Cost) -> Remaining | None:
    """What the ledger would still accept after a charge; None if it would not accept the charge."""
    return ledger.remaining_after(cost)


def as_amounts(left: Remaining | None) -> dict[str, Any] | None:
    """For JSON: floats that are rounded down, and what is left exactly."""
    if left is None:
        return None
    return {"mu": left.mu, "epsilon": left.epsilon, "delta": left.delta, "exact": left.as_dict()}


def exceeded(ledger: Ledger, plan: Plan) -> str:
    """Why a ledger will not take a plan."""
    return (
        f"the budget of {ledger.address} does not cover this release: it costs {plan.cost.words}, and "
        f"{ledger.remaining} is left, each taken alone. Nothing was charged. Ask for less epsilon or delta; "
        "'snugdp ledger show' lists what was spent"
    )
