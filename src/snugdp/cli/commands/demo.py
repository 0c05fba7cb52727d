"""``snugdp demo``: from a made-up table to a published model, on the way that real tables go."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from snugdp.estimators.linear import LinearRegression

_EPSILON, _DELTA = 1.0, 1e-7
_FILES = ("people.parquet", "people.toml", "people.ledger", "model.json", "report.html")
_EPSILONS = (0.03, 0.1, 0.3, 1.0)


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

        table = demo_table.people()
    train, test = table[: demo_table.ROWS], table[demo_table.ROWS :]
    train.write_parquet(folder / "people.parquet")
    (folder / "people.toml").write_text(demo_table.WAGES.to_toml(), encoding="utf-8")
    _step(
        console, 1, "A table", f"{len(train):,} people, made up by a formula. Private: every row. Public: the bounds."
    )
    console.print(_columns(demo_table.WAGES.columns))

    _step(console, 2, "The plan", "What it would cost, and what to expect. No row is read, nothing is spent.")
    model = _model(demo_table.WAGES, None)
    with console.status("planning"):
        plan = model.plan(rows=len(train))
    _say(console, str(plan), style="cyan")

    _step(console, 3, "The ledger", "One budget for everything that will ever be released from this table.")
    with Ledger.open(folder / "people.ledger", dataset="people", budget=Budget(2, 1e-6)) as ledger:
        _say(console, "epsilon 2, delta 1e-06: charged before any noise is drawn; nothing is released once it is empty")

        _step(console, 4, "The fit", "Pay, test, release. From now on anyone may use the fitted line.")
        with console.status("fitting"):
            model = _model(demo_table.WAGES, ledger).fit(train)
        plain = demo_table.plain_line(train)
        console.print(_coefficients(model, plain))

        _step(console, 5, "The score", f"On {len(test):,} other rows, which would have to be public in real life.")
        _score(console, model, plain, (train, test))

        _step(console, 6, "Two questions", "One gets an answer.")
        _ask(console, train, ledger)

        _step(console, 7, "The ledger again", "Public. It lists what was asked, and nothing about the answers.")
        console.print(_entries(ledger))
        _say(console, f"left: {ledger.remaining}")
    _step(console, 8, "Files", "Written by this run; these commands write yours.")
    for name, command in _keep(model, folder).items():
        _say(console, f"{folder / name}\n    {command}")


def _model(schema: Any, ledger: Any) -> LinearRegression:
    from snugdp.estimators.linear import LinearRegression

    return LinearRegression(_EPSILON, _DELTA, schema=schema, ledger=ledger)


def _columns(columns: Any) -> Any:
    table = _table("column", "public bounds")
    for name, column in columns.items():
        bounds = f"{column.lower} to {column.upper}" if hasattr(column, "lower") else "no, yes"
        table.add_row(name, bounds)
    return table


def _coefficients(model: LinearRegression, plain: Any) -> Any:
    table = _table("wage per", "released", "not private", right=2)
    for name, value, truth in zip(model.coef_names_, model.coef_, plain, strict=False):  # the intercept comes last
        table.add_row(name, f"{value:.3f}", f"{truth:.3f}")
    return table


def _score(console: Console, model: LinearRegression, plain: Any, rows: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    from snugdp.cli.commands import demo_table
    from snugdp.cli.terminal import bars

    train, test = rows
    best, mean = demo_table.plain_error(plain, test), demo_table.error(0 * test["wage"] + train["wage"].mean(), test)
    table = _table("", "RMS error, per hour", right=1)
    table.add_row("[bold]the released line[/bold]", f"[bold]{demo_table.error(model.predict(test), test):.2f}[/bold]")
    table.add_row("least squares, not private", f"{best:.2f}")
    table.add_row("the mean for everybody", f"{mean:.2f}")
    console.print(table)
    with console.status("rehearsing"):
        errors = [demo_table.rehearsed(train, test, epsilon, _DELTA) for epsilon in _EPSILONS]
    told = [f"epsilon {epsilon:<4g}  off by {off:.2f}" for epsilon, off in zip(_EPSILONS, errors, strict=True)]
    more = [(text, max(off - best, 0.0)) for text, off in zip(told, errors, strict=True)]
    _say(console, "Against epsilon: the error, and how much of it is the price of privacy")
    _say(console, "\n".join(bars(more, marked=_EPSILONS.index(_EPSILON), width=30)), style="cyan")
    note = "Rehearsals with seeded noise on made-up rows: NOT PRIVATE. Only the line above was released."
    _say(console, note, style="yellow")


def _ask(console: Console, train: pl.DataFrame, ledger: Any) -> None:
    from snugdp.queries.labels import Mode
    from snugdp.queries.order_statistics.quantiles import Median

    table = _table("question", "answer", "paid", right=1)
    questions: dict[str, tuple[str, Any]] = {
        "do most live in a city?": ("city", Mode(categories=[False, True], epsilon=0.2, delta=_DELTA)),
        "what is the median bonus?": ("bonus", Median(bounds=(0, 10_000), epsilon=0.2, delta=_DELTA, beta=100)),
    }
    for words, (column, query) in questions.items():
        answer = query.release(train[column], ledger=ledger).value
        known = {False: "no", True: "yes", None: "[red]refused[/red]"}
        table.add_row(words, known.get(answer, str(answer)), "epsilon 0.2")
    console.print(table)
    _say(
        console,
        "Half of these people have a bonus of 5,000 and half have none: one person could move that median by 5,000.\n"
        "The test noticed. A refusal costs the same and gives no reason, because the reason would be private.",
    )


def _entries(ledger: Any) -> Any:
    table = _table("", "what", "outcome", "charged")
    for entry in ledger.entries():
        table.add_row(str(entry.sequence), entry.what, entry.state, entry.cost.words)
    return table


def _keep(model: LinearRegression, folder: Path) -> dict[str, str]:
    """Write the model and its report; returned are the files, and the commands that make such files."""
    from snugdp.estimators.files.model_file import as_dict, save
    from snugdp.report.model import render

    made = {
        "people.toml": "snugdp schema init people.parquet -o people.toml",
        "people.ledger": "snugdp ledger create people.ledger --dataset people --epsilon 2 --delta 1e-6",
        "model.json": "snugdp fit linear people.parquet people.toml --target wage --epsilon 1 --delta 1e-7 "
        "--ledger people.ledger -o model.json --report report.html",
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
