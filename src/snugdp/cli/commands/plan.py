"""``snugdp plan``: what a fit would cost and bring, before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import AsJson, Described, LedgerAt, PublicRows, Spreads, spelt_out
from snugdp.cli.samples import sample_rows, spread_of
from snugdp.cli.terminal import bars, say

if TYPE_CHECKING:
    from snugdp.estimators.forecasts.forecast import Outlook
    from snugdp.propose.forecast import FitForecast

MAX_NAMED = 12


@spelt_out
def plan(
    model: models.Which,
    schema: Described,
    *,
    rows: Annotated[int, typer.Option(min=1, help="A public guess of the number of rows.", show_default=False)],
    options: models.ModelOptions,
    sample: PublicRows = None,
    spread: Spreads = None,
    ledger: LedgerAt = None,
    as_json: AsJson = False,
) -> None:
    """Show what a fit would cost, its noise, and its expected error by epsilon and rows. Nothing is spent.

    Example: snugdp plan linear people.parquet --target income --epsilon 1 --delta 1e-7 --rows 10000
    """
    with in_plain_words():
        models.in_range(options.epsilon, options.delta)
        known = options.described(model, schema).schema
        estimator = options.estimator(model, known, None if model is models.Model.PCA else rows)
        planned, told = models.plan_of(estimator, rows), spread_of(spread)
        outlook = _outlook(estimator, rows, sample_rows(sample, schema, known), told)
        if sample is not None or told is not None:
            planned = outlook.of_plan(planned)
        book = models.opened(ledger)
        models.require_same(book, planned)
        accepted = None if book is None else book.affords(planned)
        left = None if book is None else book.remaining_after(planned)
        if as_json:
            account = None
            if book is not None:
                now, then = models.as_amounts(book.remaining), models.as_amounts(left)
                account = {"address": book.address, "accepted": accepted, "left": now, "left_after": then}
            typer.echo(json.dumps({**models.plan_as_json(planned), "forecast": _as_json(outlook), "ledger": account}))
            return
        say(f"{_in_a_sentence(outlook)}\n\n{planned}\n")
        for line in _shown(outlook):
            say(line)
        if book is not None:
            typer.echo(f"\nLedger {book.address}: {book.remaining} left.")
            after = f"After this fit: {left} left." if accepted else "It would not accept this fit."
            typer.echo(after)


def _outlook(estimator: Any, rows: int, sample: Any, spread: Any) -> Outlook:
    from rich.console import Console

    from snugdp.estimators.forecasts.forecast import forecast

    with Console(stderr=True).status("Looking ahead ..."):  # only at a terminal
        return forecast(estimator, rows, sample=sample, spread=spread)


def _as_json(outlook: Outlook) -> dict[str, Any]:
    from snugdp.report.plan_text import error_words

    grid = [[_fit_as_json(fit) for fit in line] for line in outlook.grid]
    words = error_words(outlook.error_of, outlook.target)
    return {"error_of": outlook.error_of.value, "error_is": words, "asked": _fit_as_json(outlook.asked), "grid": grid}


def _fit_as_json(fit: FitForecast) -> dict[str, Any]:
    noise = {name: models.finite(value) for name, value in fit.noise.items()}
    typical = {} if fit.typical is None else {"typical": models.finite(fit.typical)}
    return {"epsilon": fit.epsilon, "rows": fit.rows, "error": models.finite(fit.error), **typical, "noise": noise}


def _in_a_sentence(outlook: Outlook) -> str:
    from snugdp.report.plan_text import noise_adds

    asked = outlook.asked
    adds = noise_adds(asked.error, outlook.error_of, outlook.target, asked.typical)
    return f"With {asked.rows:,} rows and epsilon {_budget(asked)}, {adds}. Nothing is spent yet."


def _shown(outlook: Outlook) -> list[str]:
    from snugdp.report.plan_text import error_words

    asked = outlook.asked
    lines = [f"Expected with {asked.rows:,} rows: {error_words(outlook.error_of, outlook.target)}", ""]
    points = [(_budget(each), each.error) for each in outlook.by_epsilon]
    index = outlook.by_epsilon.index(asked)
    lines += [f"  {'epsilon':>{max(len(text) for text, _ in points)}}", *bars(points, marked=index), ""]
    head = ["epsilon", *(f"{each.rows:,} rows" for each in outlook.grid[0])]
    cells = [[_budget(line[0]), *(f"{each.error:.3g}" for each in line)] for line in outlook.grid]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        lines.append("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))
    lines += ["", *_noise(outlook)]
    return lines


def _noise(outlook: Outlook) -> list[str]:
    """Of each coefficient, or of all where they are alike."""
    from snugdp.propose.forecast import ErrorOf

    asked, listed = outlook.asked, list(outlook.asked.noise.items())
    unit = ", with columns and target in standard deviations" if outlook.error_of is ErrorOf.STANDARDISED else ""
    head = f"Noise of a coefficient at epsilon {_budget(asked)} (standard deviation{unit})"
    if len(listed) > 1 and len({f"{value:.6g}" for value in asked.noise.values()}) == 1:
        return [f"{head}: {listed[0][1]:.3g} for every column"]
    lines, widest = [f"{head}:"], max(map(len, asked.noise))
    lines += [f"  {name:<{widest}}  {value:.3g}" for name, value in listed[:MAX_NAMED]]
    if len(listed) > MAX_NAMED:
        rest = [value for _, value in listed[MAX_NAMED:]]
        lines.append(f"  and {len(rest)} more, {min(rest):.3g} to {max(rest):.3g}")
    return lines


def _budget(fit: FitForecast) -> str:
    from snugdp.numerics.printed import printed_up
    from snugdp.numerics.rationals import rational

    return "" if fit.epsilon is None else printed_up(rational(fit.epsilon, "epsilon"))
