"""``snugdp select``: many proposals tried privately, the best on public rows kept, one price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.options import Data, Delta, Epsilon, ModelOut, PersonOptions, Rows, SchemaFile, Target
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing
from snugdp.estimators.registry import ESTIMATORS

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
    schema: SchemaFile,
    *,
    validation: Annotated[
        str, typer.Option(help="Public rows with their targets, to choose the best on.", show_default=False)
    ],
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    target: Target = None,
    persons: PersonOptions,
    method: Annotated[
        str | None, typer.Option(help="How to fit; adassp (linear) or output (logistic) by default.")
    ] = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values to try, such as ridge=1,10,100; repeat for every combination.")
    ] = None,
    mean_runs: Annotated[
        float | None, typer.Option(min=1, help="The mean number of runs; by default the number of proposals.")
    ] = None,
    rows: Rows = None,
    output: ModelOut = None,
    choices: ReleaseOptions,
) -> None:
    """Try many proposals privately and keep the best on public rows, for one price.

    The number of runs stays hidden. Without --grid, a ridge from 1 to 1000 is chosen. The schema needs bounds or values
    of all columns: a selection does not find them.

    Example: snugdp select linear people.parquet people.toml --target income --epsilon 2 --validation public.parquet
    """
    from snugdp.cli import reading

    whose = persons.persons(schema)
    layout = replace(models.schema_of(schema, target), person=whose["person"])
    if not layout.complete:
        raise ValueError(
            f"{schema} leaves {', '.join(layout.open_columns)} to be found privately, and a selection cannot do that: "
            "declare their bounds or values. 'snugdp fit' finds them"
        )
    source = reading.opened(data, layout.columns)
    models.require_person(source, layout.person)
    public = reading.frame(reading.opened(validation, layout.columns), layout.columns)
    if public.is_empty():
        raise ValueError(f"{validation} has no rows to choose on")
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "method": method or _METHODS[model]}
    entry = next(entry for entry in ESTIMATORS if entry.command == model.value)
    estimator = entry.load()(
        **given,
        schema=layout,
        max_rows=whose["max_rows"],
        proposals=_proposals(grid),
        validation=(public.drop(str(layout.target)), public[str(layout.target)]),
        selection=None if mean_runs is None else {"mean_runs": mean_runs},
        rows=rows,
    )
    plan = estimator.plan(rows=rows)
    estimator.set_params(ledger=choices.agreed(plan)).fit(source)
    words, shown = _words(estimator) if estimator.released_ else None, {}
    if choices.as_json:
        from snugdp.estimators.files.model_file import as_dict

        shown = {"model": as_dict(estimator)}
    choices.tell(estimator.outcome_, plan, ReleaseResult(words, shown, {"model": output}, model=estimator, rows=rows))


def _proposals(grid: Sequence[str] | None) -> dict[str, list[Any]]:
    """Lists of proposals by name."""
    if not grid:
        return {"ridge": list(_RIDGES)}
    lists = models.pairs_of(grid, "write a grid as NAME=VALUE,VALUE,..., such as --grid ridge=1,10,100")
    return {name: [models.value_of(value.strip()) for value in values.split(",")] for name, values in lists.items()}


def _words(estimator: Any) -> str:
    """The winner, which is part of the release."""
    best = ", ".join(f"{name} = {value}" for name, value in getattr(estimator, "best_proposal_", {}).items())
    return f"Released: {estimator.guarantee_}" + (f", the best of the grid: {best}" if best else "")
