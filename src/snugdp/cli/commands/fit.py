"""``snugdp fit``: the plan, the charge, the release."""

from __future__ import annotations

from typing import Any

from snugdp.cli import models
from snugdp.cli.options import Data, ModelOut, Rows, SchemaFile
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing


@releasing
def fit(
    model: models.Which,
    data: Data,
    schema: SchemaFile,
    *,
    options: models.ModelOptions,
    rows: Rows = None,
    output: ModelOut = None,
    choices: ReleaseOptions,
) -> None:
    """Fit a model: plan, pay, test, release or refuse.

    The plan is printed first; at a terminal you are asked before anything is charged.

    Example: snugdp fit linear people.parquet people.toml --target income --epsilon 1 --ledger people.ledger -o model.json
    """  # noqa: E501  one line to copy
    from snugdp.cli import reading

    estimator = options.estimator(model, schema, rows)
    plan = models.plan_of(estimator, rows)
    source = reading.opened(data, models.columns_of(estimator))
    estimator.set_params(ledger=choices.agreed(plan)).fit(source)
    words, shown, table = None, {}, None
    if choices.as_json:
        from snugdp.estimators.files.model_file import as_dict

        shown = {"model": as_dict(estimator)}
    elif estimator.released_:
        table = _table(estimator)
        words = f"Released: {estimator.guarantee_}\nTheorem: {estimator.guarantee_.theorem.id}"
    choices.tell(
        estimator.outcome_, plan, ReleaseResult(words, shown, {"model": output}, estimator, rows=rows, table=table)
    )


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
            table.add_row(Text(name), *(f"{value:.4g}" for value in values))
        return table
    coefficients, constants = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    heads: list[Any] = (
        ["coefficient"] if len(coefficients) == 1 else [Column(Text(str(label))) for label in model.classes_]
    )
    chosen = np.flatnonzero(np.any(coefficients != 0, axis=0)) if hasattr(model, "support_") else None
    indices = range(coefficients.shape[1]) if chosen is None else chosen.tolist()
    noise = None if model.noise_scale_ is None else dict(zip(indices, model.noise_scale_, strict=False))
    table = Table("", *heads, *(["noise"] if noise else []))
    for index in indices:
        deviation = [f"{noise[index]:.3g}"] if noise and index in noise else []
        table.add_row(Text(model.coef_names_[index]), *(f"{value:.6g}" for value in coefficients[:, index]), *deviation)
    table.add_row("intercept", *(f"{value:.6g}" for value in constants))
    return table
