"""``snugdp select``: many proposals tried in private, the best on public rows kept, one price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import in_plain_words
from snugdp.cli.releases import Data, Delta, Epsilon, Key, OnlyPlan, Till, Yes

if TYPE_CHECKING:
    from snugdp.data.schema import Schema

_RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Family(StrEnum):
    """The models with grids of proposals."""

    LINEAR = "linear"
    LOGISTIC = "logistic"


_METHODS = {Family.LINEAR: "posterior", Family.LOGISTIC: "output"}


def select(
    model: Annotated[Family, typer.Argument(help="What to fit.", show_default=False)],
    data: Data,
    schema: models.SchemaFile,
    *,
    validation: Annotated[
        str, typer.Option(help="Public rows with their targets: the best on them is kept.", show_default=False)
    ],
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    target: models.Target = None,
    method: Annotated[
        str | None, typer.Option(help="How to fit; posterior (linear) or output (logistic) by default.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Proposals, such as ridge=1,10,100; given again, every combination is a proposal."),
    ] = None,
    mean_runs: Annotated[
        float | None, typer.Option(min=1, help="Runs on average; as many as there are proposals by default.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="About how many rows, known without the data.")] = None,
    ledger: models.LedgerAt = None,
    key: Key = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the model to this JSON file.")] = None,
    only_plan: OnlyPlan = False,
    as_json: models.AsJson = False,
    yes: Yes = False,
) -> None:
    """Try many proposals in private and keep the best on public rows, for one price.

    How many runs there were is not told. Without --grid the ridge is chosen, from 1 to 1000.

    Example: snugdp select linear people.parquet people.toml --target income --epsilon 2 --validation public.parquet
    """
    with in_plain_words():
        from snugdp.cli import reading
        from snugdp.estimators.files import as_dict, save

        till = Till.of(ledger, key, only_plan=only_plan, as_json=as_json, yes=yes)
        if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
            raise ValueError(f"cannot write {output}: there is no such folder, or it is one")
        layout = _schema(schema, target)
        reading.opened(data, layout.columns)
        public = reading.frame(reading.opened(validation, layout.columns), layout.columns)
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
        account = till.agreed(plan)
        estimator.set_params(ledger=account).fit(data)
        if output is not None:
            save(estimator, output)
        words = _words(estimator, output) if estimator.released_ else None
        till.tell(estimator.outcome_, plan, words, {"model": as_dict(estimator) if as_json else None})


def _schema(file: Path, target: str | None) -> Schema:
    from snugdp.data.schema import Schema

    schema = Schema.from_toml(file)
    if target is not None:
        return replace(schema, target=target)
    if schema.target is None:
        raise ValueError(f"{file} names no target: give --target, the column to be predicted")
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
        raise ValueError("a grid is written NAME=VALUE,VALUE,..., such as --grid ridge=1,10,100")
    return {name.strip(): [_value(value.strip()) for value in values.split(",")] for name, _, values in pairs}


def _value(text: str) -> Any:
    """A number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _words(estimator: Any, output: Path | None) -> str:
    """The winner, and its score, which is part of the release."""
    best = ", ".join(f"{name} = {value}" for name, value in getattr(estimator, "best_proposal_", {}).items())
    chosen = f", the best of the grid: {best}" if best else ""
    file = "" if output is None else f"\nWrote {output}"
    return f"Released: {estimator.guarantee_}{chosen}{file}"
