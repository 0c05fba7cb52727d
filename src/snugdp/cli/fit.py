"""``snugdp fit``: the plan, the charge, the release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import REFUSED, fail, in_plain_words
from snugdp.cli.terminal import is_terminal

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger
    from snugdp.ptr.propose import Plan

_NO_LEDGER = (
    "No --ledger: nothing is being summed up. Each fit has a budget of its own, and adding them up is left to you."
)
_REFUSED = (
    "Refused: the test could not show that these data permit the proposal; the budget is spent, why is private, and "
    "more rows, a larger epsilon or delta, tighter bounds or a method without a test may help."
)


def fit(
    model: models.Which,
    data: Annotated[
        str,
        typer.Argument(help="A Parquet, CSV or Arrow file, a folder of them, or a pattern.", show_default=False),
    ],
    schema: models.SchemaFile,
    *,
    epsilon: models.Epsilon,
    delta: models.Delta = 1e-6,
    target: models.Target = None,
    method: models.Method = "auto",
    propose: models.Propose = None,
    rows: Annotated[int | None, typer.Option(min=1, help="About how many rows, known without the data.")] = None,
    features: models.Features = None,
    components: models.Components = None,
    neighbours: models.Relation = "add_remove",
    ledger: models.LedgerAt = None,
    key: Annotated[
        str | None, typer.Option(help="A name for this release: a retry shows the same output and costs nothing more.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the model to this JSON file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this HTML file.")] = None,
    as_json: models.AsJson = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the charge.")] = False,
) -> None:
    """Fit a model: plan, pay, test, release or refuse.

    The plan is printed first; at a terminal you are asked before anything is charged.

    Example: snugdp fit linear people.parquet people.toml --target income --epsilon 1 --ledger people.ledger -o model.json
    """  # noqa: E501  one line to copy
    with in_plain_words():
        wish = models.Wish(
            model, schema, target, epsilon, delta, method, tuple(propose or ()), rows, features, components, neighbours
        )
        estimator = wish.estimator()
        _check_files(data, output, report)
        book = _book(ledger, key)
        plan = models.plan_of(estimator, rows)
        _announce(plan, book, as_json)
        account = None if book is None else models.account_of(book, key, estimator)
        _require_budget(account, book, plan)
        if not yes and is_terminal() and not typer.confirm("Charge this and fit?", err=True):
            fail("Nothing was charged.", 1)
        estimator.set_params(ledger=account).fit(data)
        _show(estimator, book, (output, report), as_json)
        _write(estimator, (output, report), rows, as_json)
    if not estimator.released_:
        fail(_REFUSED, REFUSED)


def _check_files(data: str, output: Path | None, report: Path | None) -> None:
    """What would fail after the charge is tried before it."""
    from snugdp.data.sources import open_source

    open_source(data)
    for file in (output, report):
        if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
            raise ValueError(f"cannot write {file}: there is no such folder, or it is one")
    if report is not None:
        import snugdp.report.model  # noqa: F401  what it needs and is not installed is missed now


def _book(ledger: str | None, key: str | None) -> Ledger | None:
    if ledger is None and key is not None:
        raise ValueError("--key names a release in a ledger: give --ledger too")
    return models.opened(ledger)


def _announce(plan: Plan, book: Ledger | None, as_json: bool) -> None:
    if not as_json:
        typer.echo(f"{plan}\n")
    if book is None:
        typer.echo(_NO_LEDGER, err=True)


def _require_budget(account: models.Noted | None, book: Ledger | None, plan: Plan) -> None:
    from snugdp.ledger.errors import BudgetExceededError

    if book is not None and account is not None and not account.affords(plan.cost):
        raise BudgetExceededError(models.exceeded(book, plan))


def _show(model: Any, book: Ledger | None, files: tuple[Path | None, Path | None], as_json: bool) -> None:
    from snugdp.estimators.files import as_dict

    if as_json:
        found = None if book is None else {"address": book.address, "left": models.as_amounts(book.remaining)}
        names = {
            name: None if file is None else str(file) for name, file in zip(("model", "report"), files, strict=True)
        }
        typer.echo(json.dumps({"model": as_dict(model), "ledger": found, "files": names}, allow_nan=False))
        return
    if model.released_:
        from rich.console import Console

        Console().print(_table(model))
        typer.echo(f"Released: {model.guarantee_}\nProof: {model.guarantee_.proof}")
    if book is not None:
        typer.echo(f"Receipt {model.receipt_.sequence} of {book.address}; left: {book.remaining}")


def _table(model: Any) -> Any:
    """The released coefficients or components."""
    import numpy as np
    from rich.table import Table

    if hasattr(model, "components_"):
        shares = model.explained_variance_ratio_
        heads = [f"{place + 1} ({share:.1%})" for place, share in enumerate(shares)]
        table = Table("component (share)", *heads, title="Components, in units that take bounds to [-1, 1]")
        for name, values in zip(model._layout.features, model.components_.T, strict=True):
            table.add_row(name, *(f"{value:.4g}" for value in values))
        return table
    coefficients, constants = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    heads = ["coefficient"] if len(coefficients) == 1 else [str(label) for label in model.classes_]
    chosen = np.flatnonzero(np.any(coefficients != 0, axis=0)) if hasattr(model, "support_") else None
    places = range(coefficients.shape[1]) if chosen is None else chosen.tolist()
    noise = None if model.noise_scale_ is None else dict(zip(places, model.noise_scale_, strict=False))
    table = Table("", *heads, *(["noise"] if noise else []))
    for place in places:
        deviation = [f"{noise[place]:.3g}"] if noise and place in noise else []
        table.add_row(model.coef_names_[place], *(f"{value:.6g}" for value in coefficients[:, place]), *deviation)
    table.add_row("intercept", *(f"{value:.6g}" for value in constants))
    return table


def _write(model: Any, files: tuple[Path | None, Path | None], rows: int | None, as_json: bool) -> None:
    from snugdp.estimators.files import as_dict, save

    output, report = files
    if output is not None:
        save(model, output)
    if report is not None:
        from snugdp.report.model import render

        report.write_text(render(as_dict(model), rows=rows), encoding="utf-8")
    for file in files:
        if file is not None and not as_json:
            typer.echo(f"Wrote {file}")
