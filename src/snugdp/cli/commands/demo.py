"""``snugdp demo``: from a raw table of orders to a published model, on the way that real tables go."""

from __future__ import annotations

import tempfile
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words

if TYPE_CHECKING:
    from rich.console import Console

    from snugdp.estimators.linear import LinearRegression

_EPSILON, _DELTA, _ROWS, _PERSON = 1, 1e-7, 12_000, "customer_id"
_AMOUNTS = (0, 120)  # what an order of this shop can cost: public
_FILES = ("orders.csv", "orders.ledger", "model.json", "report.html")
_SHOWN = ("customer_id", "city", "items", "express", "voucher", "comment", "amount")


def demo(
    out: Annotated[
        Path | None, typer.Option(help="A folder for the files; by default a new temporary one.", show_default=False)
    ] = None,
) -> None:
    """From a made-up table to a published model, in seconds: plan, ledger, fit, score, a refusal, files.

    Example: snugdp demo --out demo
    """
    from rich.console import Console

    with in_plain_words():
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            if taken := sorted(file.name for file in out.iterdir() if file.name in _FILES):
                raise ValueError(f"{out} already has a file {taken[0]}: choose another folder")
        folder = Path(tempfile.mkdtemp(prefix="snugdp-demo-")) if out is None else out
        console = Console(highlight=False)
        show(console, folder)
        if out is None:
            _say(console, f"\nThe folder is temporary: delete {folder} when you are done, or choose one with --out.")


def show(console: Console, folder: Path) -> None:
    """The walk."""
    with console.status("loading"):
        from snugdp import Budget, Ledger
        from snugdp.cli.commands import demo_table

        table = demo_table.orders()
    file = folder / "orders.csv"
    table.write_csv(file)
    _step(console, 1, "A raw table", "Made-up orders of a shop, with identifiers and gaps. All of it is private.")
    console.print(_head(table))
    _say(console, "A customer may have many orders, so what is protected is a customer with all their orders.")

    _step(console, 2, "The plan", "What a fit would cost, and what to expect. No row is read, nothing is spent.")
    with console.status("planning"):
        model, left_out = _model(file)
        plan = model.plan(rows=_ROWS)
    _say(console, _in_short(plan), style="cyan")

    _step(console, 3, "The ledger", "One budget for everything that will ever be released about these customers.")
    with Ledger.open(folder / "orders.ledger", dataset="orders", budget=Budget(2, 1e-6), unit="person") as ledger:
        _say(
            console, "epsilon 2, delta 1e-06: charged before any noise is drawn; once it is spent, nothing is released"
        )

        _step(
            console, 4, "The fit", "Bounds, scales and cities are found privately, then a line is fitted: one release."
        )
        with console.status("fitting"):
            model.set_params(ledger=ledger).fit(file)
            model.left_out_ = left_out
        console.print(_coefficients(model, demo_table.TRUTH))

        _step(console, 5, "The score", "How good is the model? The answer depends on private rows, so it is charged.")
        with console.status("scoring"):
            console.print(_score(model, file, ledger))

        _step(console, 6, "Two questions", "One gets an answer.")
        with console.status("asking"):
            console.print(_ask(file, table, ledger))
        _say(
            console,
            "Half of the customers have a voucher of 20 and half have none: one of them could move that median by 20.\n"
            "The test noticed. A refusal costs the same and gives no reason, because the reason would be private.",
        )

        _step(
            console,
            7,
            "The ledger again",
            "It is public: it lists what was asked and paid, and whether there was an answer.",
        )
        console.print(_entries(ledger))
        _say(console, f"left: {ledger.remaining}")
    _step(console, 8, "Files", "Written by this run. These commands do the same for your own table:")
    for name, command in _keep(model, folder).items():
        _say(console, f"{folder / name}\n    {command}")


def _model(file: Path) -> tuple[LinearRegression, dict[str, str]]:
    """As ``snugdp fit`` makes it from a raw table, and the columns that it leaves out."""
    from snugdp.cli.models import described
    from snugdp.estimators.linear import LinearRegression

    known = described(file, "amount", person=_PERSON)
    return LinearRegression(_EPSILON, _DELTA, schema=known.schema), dict(known.left_out)


def _head(orders: Any) -> Any:
    table = _table(*_SHOWN)
    for row in orders.select(_SHOWN).head(4).iter_rows():
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    return table


def _in_short(plan: Any) -> str:
    """What everybody wants to know of a plan; ``snugdp plan`` prints all of it."""
    (expected,) = plan.forecast.fits
    words = {"row": "one row", "person": "one customer, whatever the number of orders"}
    lines = {
        "cost": f"epsilon {_EPSILON}, delta {_DELTA:g}, whether it ends in a model or in a refusal",
        "protects": words[plan.unit.value],
        "expect": f"with {_ROWS:,} orders, privacy noise adds about {expected.error:.1g} standard deviations of the "
        "amount to the error of predictions",
    }
    return "\n".join(f"  {name:<8}  {text}" for name, text in lines.items())


def _coefficients(model: LinearRegression, truth: Any) -> Any:
    table = _table("coefficient", "released", "in the formula", right=2)
    released = dict(zip(model.coef_names_, model.coef_, strict=True))
    for name, value in truth.items():
        table.add_row(name, f"{released[name]:.2f}" if name in released else "not found", f"{value:.2f}")
    return table


def _score(model: LinearRegression, file: Path, ledger: Any) -> Any:
    from snugdp.scores.score import Score

    question = Score(model=model, epsilon=0.4, bounds=_AMOUNTS, max_error=40, person=_PERSON)
    found = question.release(file, ledger=ledger).value
    table = _table("score", "value", "19 of 20 cases", right=2)
    if found is not None:
        names = {"r2": "R²", "mse": "mean squared error"}
        for name, words in names.items():
            one = found[name]
            known = f"{one.value:.3g}", f"{one.lower:.3g} to {one.upper:.3g}"
            table.add_row(words, *(("unknown", "hidden by the noise") if isnan(one.value) else known))
    return table


def _ask(file: Path, orders: Any, ledger: Any) -> Any:
    from snugdp.queries.order_statistics.quantiles import Median
    from snugdp.queries.statistics.moments import Mean

    mean = Mean(column="amount", bounds=_AMOUNTS, clip=None, epsilon=0.2, person=_PERSON)
    median = Median(bounds=(0, 100), beta=1, epsilon=0.2, delta=_DELTA, person=_PERSON)
    answers = {
        "what is an order worth on average?": mean.release(file, ledger=ledger).value,
        "what is the median voucher?": median.release(orders.select(_PERSON, "voucher"), ledger=ledger).value,
    }
    table = _table("question", "answer", "paid", right=1)
    for words, answer in answers.items():
        table.add_row(words, "[red]refused[/red]" if answer is None else str(answer), "epsilon 0.2")
    return table


def _entries(ledger: Any) -> Any:
    table = _table("", "what", "outcome", "epsilon", "delta")
    for number, entry in enumerate(ledger.entries(), 1):
        epsilon, delta = entry.pair or (0, 0)
        table.add_row(str(number), entry.title, entry.state, f"{float(epsilon):g}", f"{float(delta):g}")
    return table


def _keep(model: LinearRegression, folder: Path) -> dict[str, str]:
    """Write the model and its report; returned are the files, and the commands that make such files."""
    from snugdp.estimators.files.model_file import as_dict, save
    from snugdp.report.model import render

    made = {
        "orders.ledger": "snugdp ledger create orders.ledger --dataset orders --epsilon 2 --delta 1e-6 --unit person",
        "model.json": "snugdp fit linear orders.csv --target amount --person customer_id --epsilon 1 --delta 1e-7 "
        "--ledger orders.ledger -o model.json",
        "report.html": "snugdp report model.json -o report.html",
    }
    save(model, folder / "model.json")
    (folder / "report.html").write_text(render(as_dict(model)), encoding="utf-8")
    return made


def _table(*heads: str, right: int = 0) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if 0 < index <= right else "left")
    return table


def _step(console: Console, number: int, title: str, text: str) -> None:
    console.print(f"\n[bold]{number}  {title}[/bold]  [dim]{text}[/dim]", soft_wrap=True)


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)
