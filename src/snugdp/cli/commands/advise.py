"""``snugdp advise``: from a wanted error to an epsilon, or from an epsilon to an error."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import AsJson, PersonOptions, PublicRows, Spreads, Target, spelt_out
from snugdp.cli.samples import sample_rows, spread_of
from snugdp.cli.terminal import say


@spelt_out
def advise(
    model: models.Which,
    schema: Annotated[
        str | None,
        typer.Argument(help="The schema, a TOML file, or the table, whose columns are counted; or give --columns."),
    ] = None,
    *,
    rows: Annotated[int, typer.Option(min=1, help="A public guess of the number of rows.", show_default=False)],
    columns: Annotated[
        int | None, typer.Option(min=1, help="The number of columns to predict from, without a table.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="What privacy noise may add to the error of predictions: in units of the target if a schema has its "
            "bounds, otherwise in standard deviations of the target, such as 0.1."
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Or an epsilon, to see which error to expect.")] = None,
    delta: Annotated[float, typer.Option(help="The failure probability of the fit.")] = 1e-6,
    target: Target = None,
    sample: PublicRows = None,
    spread: Spreads = None,
    persons: PersonOptions,
    as_json: AsJson = False,
) -> None:
    """Find the epsilon that a wanted error needs, or the error to expect at an epsilon. Nothing is spent.

    No row is read: of a table, only the names and types of its columns count.

    Example: snugdp advise linear people.parquet --target income --rows 10000 --error 0.1
    """
    with in_plain_words():
        if (error is None) == (epsilon is None):
            raise ValueError("give --error, to get an epsilon, or --epsilon, to get an error")
        if (schema is None) == (columns is None):
            raise ValueError("give a table or a schema, or --columns, the number of columns to predict from")
        if columns is not None and model not in (models.Model.LINEAR, models.Model.LOGISTIC, models.Model.POISSON):
            raise ValueError("--columns is for linear, logistic and poisson models: give a table or a schema")
        start = 1.0 if epsilon is None else epsilon
        models.in_range(start, delta)
        options = models.ModelOptions(
            epsilon=start, delta=delta, target=target, person=persons.person, max_rows=persons.max_rows
        )
        if sample is not None and schema is None:
            raise ValueError("--sample needs the table or the schema too, which says what its columns are")
        asked = _asked(model, schema, options)
        from snugdp.estimators.forecasts.advice import advise as found

        public = None if schema is None else sample_rows(sample, schema, asked.schema)
        told = found(asked, rows=rows, error=error, n_features=columns, sample=public, spread=spread_of(spread))
        say(json.dumps(_as_json(told)) if as_json else str(told))


def _asked(model: models.Model, schema: str | None, options: models.ModelOptions) -> Any:
    """The estimator, without rows."""
    if schema is not None:
        return options.estimator(model, options.described(model, schema).schema, None)
    from snugdp.estimators.registry import ESTIMATORS

    kind = next(entry for entry in ESTIMATORS if entry.command == model.value).load()
    return kind(options.epsilon, options.delta, person=options.person)


def _as_json(told: Any) -> dict[str, Any]:
    from snugdp.report.plan_text import error_words

    numbers = {name: getattr(told, name) for name in ("epsilon", "wanted", "rows", "rows_needed")}
    numbers |= {"error": models.finite(told.error)}
    numbers |= {} if told.typical is None else {"typical": models.finite(told.typical)}
    return {**numbers, "error_is": error_words(told.error_of, told.target), **models.plan_as_json(told.plan)}
