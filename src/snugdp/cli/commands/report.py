"""``snugdp report``: one HTML file about a released model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import AsJson, Force, ModelIn, can_write, new_file


def report(
    model: ModelIn,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    summary: Annotated[
        Path | None, typer.Option(help="Write a data protection summary to this HTML file too, a page or two to print.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="A public guess of the number of rows, for what was expected.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="A title; by default the kind of model.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What the release is for.")] = None,
    period: Annotated[str | None, typer.Option(help="The period of the data, such as 2025.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The name of the data set.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A schema whose section about says what is not given here.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a report about a model: what was released, what it can reveal about one person, what it cost.

    One self-contained HTML file, for a phone, a screen or paper. It costs nothing and reads no row. With --json the
    guarantee, the best attack, the steps and the receipt are printed too.

    Example: snugdp report model.json -o report.html
    """
    with in_plain_words():
        from snugdp.report.about import About
        from snugdp.report.model import render, told
        from snugdp.report.model import summary as summed_up
        from snugdp.serial.files import write_text

        can_write(output, summary, read=(model, schema))
        for file in (output, summary):
            if file is not None:
                new_file(file, force)
        held, about = _held(model), About(owner, purpose, period, dataset, contact)
        if schema is not None:
            about = About(**{**dict(About.from_toml(schema).told), **dict(about.told)})
        try:
            pages = {output: render(held, title=title, rows=rows, about=about)}
            if summary is not None:
                pages[summary] = summed_up(held, title=title, about=about)
            facts = told(held, title=title) if as_json else None
        except ValueError as error:
            raise ValueError(f"{model}: {error}") from None
        for file, page in pages.items():
            write_text(file, page)
    lines = "\n".join(f"{file}: open it in a browser" for file in pages)
    files = {"report": str(output), **({} if summary is None else {"summary": str(summary)})}
    typer.echo(lines if facts is None else json.dumps({**facts, "files": files}, allow_nan=False))


def _held(model: Path) -> dict[str, Any]:
    """What the file says, before it is checked."""
    from snugdp.estimators.files.model_file import parsed

    try:
        held = parsed(model.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the model {model}: {error.strerror or error}") from None
    except ValueError:
        held = None
    if not isinstance(held, dict):
        raise ValueError(f"{model} is not a model file, as written by snugdp fit -o")  # noqa: TRY004
    return held
