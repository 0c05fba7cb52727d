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
    rows: Annotated[
        int | None, typer.Option(min=1, help="A public guess of the number of rows, for a forecast.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="A title; by default the kind of model.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a report about a model: what was released, what it can reveal about one person, what it cost.

    One self-contained HTML file, for a phone, a screen or paper. It costs nothing and reads no row. With --json the
    guarantee, the best attack, the steps and the receipt are printed too.

    Example: snugdp report model.json -o report.html
    """
    with in_plain_words():
        from snugdp.report.model import render, told
        from snugdp.serial.files import write_text

        can_write(output, read=(model,))
        new_file(output, force)
        held = _held(model)
        try:
            page = render(held, title=title, rows=rows)
            facts = told(held, title=title) if as_json else None
        except ValueError as error:
            raise ValueError(f"{model}: {error}") from None
        write_text(output, page)
    line = f"{output}: open it in a browser"
    typer.echo(line if facts is None else json.dumps({**facts, "files": {"report": str(output)}}, allow_nan=False))


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
