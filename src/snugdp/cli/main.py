"""``snugdp``: from a table to a published model, within a budget. One line in ``VERBS`` is one command."""

from __future__ import annotations

from typing import Annotated

import typer

from snugdp.cli.errors import EXIT_CODES
from snugdp.cli.lazy import Verb, lazy

VERBS = {  # loaded when they are called; the help here is the first paragraph of their own
    "schema": Verb("snugdp.cli.schema:app", "What is public about a table: columns, bounds, target."),
    "bounds": Verb(
        "snugdp.cli.query:bounds",
        "Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.",
    ),
    "plan": Verb(
        "snugdp.cli.plan:plan",
        "Show what a fit would cost, its noise, and its expected error by epsilon and rows. Nothing is spent.",
    ),
    "fit": Verb("snugdp.cli.fit:fit", "Fit a model: plan, pay, test, release or refuse."),
    "predict": Verb("snugdp.cli.predict:predict", "Predict the rows of a table with a released model."),
    "query": Verb(
        "snugdp.cli.query:app", "Query one column: its median, quantiles, extremes, trimmed mean, mode or a vote."
    ),
    "pate": Verb(
        "snugdp.cli.pate:app",
        "Private aggregation of teacher ensembles (PATE): label public queries by noisy votes, train a student.",
    ),
    "select": Verb(
        "snugdp.cli.select:select",
        "Try many proposals privately and keep the best on public rows, for one price.",
    ),
    "ledger": Verb(
        "snugdp.cli.ledger:app", "A budget on disk or on a PostgreSQL server, charged before anything is drawn."
    ),
    "audit": Verb(
        "snugdp.cli.audit:audit",
        "Compare every claim with measurements, by mechanism and layer. The exit code is 1 if anything failed.",
    ),
    "paper": Verb("snugdp_studies.cli.paper:app", "The experiments of the paper. Studies, NOT PRIVATE."),
    "bench": Verb("snugdp_studies.cli.bench:app", "Side-by-side runs against peers, in one run, on one thread."),
    "demo": Verb(
        "snugdp.cli.demo:demo",
        "From a made-up table to a published model, in seconds: plan, ledger, fit, score, a refusal, files.",
    ),
    "report": Verb(
        "snugdp.cli.report:report",
        "Write a report about a model: what was released, what it can reveal about one person, what it cost.",
    ),
}

app = typer.Typer(
    cls=lazy(VERBS),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals may be private
    epilog=EXIT_CODES,
)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Propose, test, release: differential privacy.

    Example: snugdp plan linear people.toml --target income --epsilon 1 --delta 1e-7 --rows 10000
    """
    if version:
        from snugdp import __version__

        typer.echo(__version__)
        raise typer.Exit
