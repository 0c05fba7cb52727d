"""``snugdp``: from a table to a published model, within a budget. One line in ``VERBS`` is one command."""

from __future__ import annotations

from typing import Annotated

import typer

from snugdp.cli.errors import EXIT_CODES
from snugdp.cli.lazy import Verb, lazy

VERBS = {  # loaded when they are called; the help here is the first paragraph of their own
    "schema": Verb("snugdp.cli.commands.schema:app", "What is public about a table: columns, bounds, target."),
    "bounds": Verb(
        "snugdp.cli.commands.query.columns:bounds",
        "Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.",
    ),
    "describe": Verb(
        "snugdp.cli.commands.describe:describe",
        "Describe all columns: rows, missing cells, means, deviations, quantiles, and the counts of listed values.",
    ),
    "plan": Verb(
        "snugdp.cli.commands.plan:plan",
        "Show what a fit would cost, its noise, and its expected error by epsilon and rows. Nothing is spent.",
    ),
    "advise": Verb(
        "snugdp.cli.commands.advise:advise",
        "Find the epsilon that a wanted error needs, or the error to expect at an epsilon. Nothing is spent.",
    ),
    "fit": Verb("snugdp.cli.commands.fit:fit", "Fit a model: plan, pay, test, release or refuse."),
    "predict": Verb("snugdp.cli.commands.predict:predict", "Predict the rows of a table with a released model."),
    "explain": Verb(
        "snugdp.cli.commands.explain:explain",
        "Say what every column adds to a prediction: of one row in a table, or of all rows in a file.",
    ),
    "score": Verb(
        "snugdp.cli.commands.score:score",
        "Score a released model on private rows: accuracy, ROC curve, calibration, losses and errors, with intervals.",
    ),
    "query": Verb(
        "snugdp.cli.commands.query:app",
        "Query columns: counts, sums, means, quantiles, histograms, groups, modes, votes and more.",
    ),
    "pate": Verb(
        "snugdp.cli.commands.pate:app",
        "Private aggregation of teacher ensembles (PATE): label public queries by noisy votes, train a student.",
    ),
    "select": Verb(
        "snugdp.cli.commands.select:select",
        "Try many proposals privately and keep the best on public rows, for one price.",
    ),
    "ledger": Verb(
        "snugdp.cli.commands.ledger:app",
        "A budget on disk or on a PostgreSQL server, charged before anything is drawn.",
    ),
    "audit": Verb(
        "snugdp.cli.commands.audit:audit",
        "Compare every claim with measurements, by mechanism and layer. The exit code is 1 if anything failed.",
    ),
    "paper": Verb("snugdp_studies.cli.paper:app", "The experiments of the paper. Studies, NOT PRIVATE."),
    "bench": Verb("snugdp_studies.cli.bench:app", "Compare with other libraries, side by side, on one thread."),
    "demo": Verb(
        "snugdp.cli.commands.demo:demo",
        "From a made-up table to a published model, in seconds: plan, ledger, fit, score, a refusal, files.",
    ),
    "report": Verb(
        "snugdp.cli.commands.report:report",
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
    """Publish statistics and models of private data, with differential privacy. New here? Try: snugdp demo

    Example: snugdp plan linear people.csv --target income --epsilon 1 --delta 1e-7 --rows 10000
    """
    if version:
        from snugdp import __version__

        typer.echo(__version__)
        raise typer.Exit
