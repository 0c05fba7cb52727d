"""``snugdp select``: many proposals tried in private, the best on public rows kept, one price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.releases import Data, Delta, Epsilon, ModelFile, Rows, Till, Told, releasing

if TYPE_CHECKING:
    from snugdp.tables.schema.schema import Schema

_RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Family(StrEnum):
    """The models with grids of proposals."""

    LINEAR = "linear"
    LOGISTIC = "logistic"


_METHODS = {Family.LINEAR: "adassp", Family.LOGISTIC: "output"}


@releasing
def select(
    model: Annotated[Family, typer.Argument(help="What to fit.", show_default=False)],
    data: Data,
    schema: models.SchemaFile,
    *,
    till: Till,
    validation: Annotated[
        str, typer.Option(help="Public rows with their targets, to choose the best on.", show_default=False)
    ],
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    target: models.Target = None,
    method: Annotated[
        str | None, typer.Option(help="How to fit; adassp (linear) or output (logistic) by default.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Values to try, such as ridge=1,10,100; repeat for every combination."),
    ] = None,
    mean_runs: Annotated[
        float | None, typer.Option(min=1, help="The mean number of runs; by default the number of proposals.")
    ] = None,
    rows: Rows = None,
    output: ModelFile = None,
) -> None:
    """Try many proposals privately and keep the best on public rows, for one price.

    The number of runs stays hidden. Without --grid, a ridge from 1 to 1000 is chosen.

    Example: snugdp select linear people.parquet people.toml --target income --epsilon 2 --validation public.parquet
    """
    from snugdp.cli import reading

    layout = _schema(schema, target)
    reading.opened(data, layout.columns)
    public = reading.frame(reading.opened(validation, layout.columns), layout.columns)
    if public.is_empty():
        raise ValueError(f"{validation} has no rows to choose on")
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "method": method or _METHODS[model]}
    estimator = _class(model)(
        **given,
        schema=layout,
        proposals=_proposals(grid),
        validation=(public.drop(str(layout.target)), public[str(layout.target)]),
        selection=None if mean_runs is None else {"mean_runs": mean_runs},
        rows=rows,
    )
    plan = estimator.plan(rows=rows)
    estimator.set_params(ledger=till.agreed(plan)).fit(data)
    words, shown = _words(estimator) if estimator.released_ else None, {}
    if till.as_json:
        from snugdp.estimators.files.model_file import as_dict

        shown = {"model": as_dict(estimator)}
    till.tell(estimator.outcome_, plan, Told(words, shown, {"model": output}, model=estimator, rows=rows))


def _schema(file: Path, target: str | None) -> Schema:
    from snugdp.tables.schema.schema import Schema

    schema = Schema.from_toml(file)
    if target is not None:
        return replace(schema, target=target)
    if schema.target is None:
        raise ValueError(f"{file} has no target: give --target, the column to predict")
    return schema


def _class(model: Family) -> Any:
    import snugdp

    return {Family.LINEAR: snugdp.LinearRegression, Family.LOGISTIC: snugdp.LogisticRegression}[model]


def _proposals(grid: Sequence[str] | None) -> dict[str, list[Any]]:
    """Lists of proposals by name."""
    if not grid:
        return {"ridge": list(_RIDGES)}
    pairs = [text.partition("=") for text in grid]
    if any(not name.strip() or not values.strip() for name, _, values in pairs):
        raise ValueError("write a grid as NAME=VALUE,VALUE,..., such as --grid ridge=1,10,100")
    return {name.strip(): [models.value_of(value.strip()) for value in values.split(",")] for name, _, values in pairs}


def _words(estimator: Any) -> str:
    """The winner, which is part of the release."""
    best = ", ".join(f"{name} = {value}" for name, value in getattr(estimator, "best_proposal_", {}).items())
    return f"Released: {estimator.guarantee_}" + (f", the best of the grid: {best}" if best else "")
