"""``snugdp fit``: the plan, the charge, the release."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.options import Data, ModelOut, OptionalSchema, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing
from snugdp.cli.terminal import harmless


@releasing
def fit(
    model: models.Which,
    data: Data,
    schema: OptionalSchema = None,
    *,
    options: models.ModelOptions,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="A share of the rows, such as 0.2, that is not fitted on: the model is scored on it, at no further "
            "cost. Not for sparse models and pca."
        ),
    ] = None,
    rows: Rows = None,
    output: ModelOut = None,
    choices: ReleaseOptions,
) -> None:
    """Fit a model: plan, pay, test, release or refuse.

    Without a schema the columns are taken by their declared types and names, and their bounds are found privately.
    The plan is printed first; at a terminal you are asked before anything is charged.

    Example: snugdp fit linear people.parquet --target income --epsilon 1 --ledger people.ledger -o model.json
    """
    from snugdp.cli import reading

    known = options.described(model, data if schema is None else schema)
    estimator = options.estimator(model, known.schema, rows)
    plan = models.plan_of(estimator, rows)
    if holdout is not None:
        plan = models.plan_with_holdout(estimator, plan, holdout)
    source = reading.opened(data, models.columns_of(estimator))
    models.require_person(source, known.schema.person)
    estimator.set_params(ledger=choices.agreed(plan)).fit(source, **({} if holdout is None else {"holdout": holdout}))
    if known.left_out:
        estimator.left_out_ = dict(known.left_out)
    words, shown, tables = None, {}, ()
    if choices.as_json:
        from snugdp.estimators.files.model_file import as_dict

        shown = {"model": as_dict(estimator)}
    elif estimator.released_:
        tables = (
            *_found(estimator),
            _summary(estimator) if getattr(estimator, "has_intervals", False) else _table(estimator),
        )
        said = f"{_not_found(estimator)}{_held_out(estimator)}"
        words = f"{said}Released: {estimator.guarantee_}\nTheorem: {estimator.guarantee_.theorem.id}"
    choices.tell(
        estimator.outcome_, plan, ReleaseResult(words, shown, {"model": output}, estimator, rows=rows, tables=tables)
    )


def _found(model: Any) -> tuple[Any, ...]:
    """What was found about the columns, if their bounds were not known."""
    from rich.table import Table
    from rich.text import Text

    from snugdp.tables.found_lines import lines

    if not hasattr(model, "bounds_"):
        return ()
    table = Table("column", "holds", "lies in", "centre, scale", "missing", "", title="Found privately")
    for line in lines(model.bounds_, model.feature_names_in_):
        middle = f"{line.centre} ± {line.scale}" if line.centre else ""
        cells = (line.column, line.holds, line.lies, middle, line.missing, line.flag)
        table.add_row(*(Text(harmless(cell)) for cell in cells))
    return (table,)


def _not_found(model: Any) -> str:
    """A sentence about every column that noise hides."""
    from snugdp.tables.found_lines import not_found

    hidden = not_found(model.bounds_, model.feature_names_in_) if hasattr(model, "bounds_") else ()
    return "".join(
        f'Column "{name}" was not found and is left out: the noise hides a column that is mostly empty, or text in '
        "which no value is frequent. A larger epsilon, or its bounds or values in a schema, may bring it in.\n"
        for name in hidden
    )


def _held_out(model: Any) -> str:
    """The scores on the rows that were held out."""
    from snugdp.report.scores import texts_of

    scores = getattr(model, "holdout_score_", None)
    return "" if scores is None else "\n".join(("On the rows that were held out:", *texts_of(scores), "", ""))


def _summary(model: Any) -> Any:
    """Estimates with standard errors, intervals and tests."""
    from rich.table import Table
    from rich.text import Text

    found = model.summary()
    table = Table("", *found.heads, caption=Text(harmless(" ".join(found.notes))))
    for name, cells in found.lines:
        table.add_row(Text(harmless(name)), *cells)
    return table


def _table(model: Any) -> Any:
    """The released coefficients or components. Names are text: what is in brackets is no markup."""
    import numpy as np
    from rich.table import Column, Table
    from rich.text import Text

    if hasattr(model, "components_"):
        shares = model.explained_variance_ratio_
        counted = [f"{index + 1} ({share:.1%})" for index, share in enumerate(shares)]
        table = Table("component (share)", *counted, title="Components, in units that take bounds to [-1, 1]")
        for name, values in zip(model._layout.features, model.components_.T, strict=True):
            table.add_row(Text(harmless(name)), *(f"{value:.4g}" for value in values))
        return table
    coefficients, constants = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    heads: list[Any] = (
        ["coefficient"] if len(coefficients) == 1 else [Column(Text(harmless(str(label)))) for label in model.classes_]
    )
    chosen = np.flatnonzero(np.any(coefficients != 0, axis=0)) if hasattr(model, "support_") else None
    indices = range(coefficients.shape[1]) if chosen is None else chosen.tolist()
    noise = None if model.noise_scale_ is None else dict(zip(indices, model.noise_scale_, strict=False))
    table = Table("", *heads, *(["noise"] if noise else []))
    for index in indices:
        deviation = [f"{noise[index]:.3g}"] if noise and index in noise else []
        table.add_row(
            Text(harmless(model.coef_names_[index])), *(f"{value:.6g}" for value in coefficients[:, index]), *deviation
        )
    table.add_row("intercept", *(f"{value:.6g}" for value in constants))
    return table
