"""``snugdp paper``: the experiments of the paper, with honest accounting beside what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from snugdp.cli.errors import in_plain_words

if TYPE_CHECKING:
    from snugdp.mechanisms.gnmax.ball import Integers
    from snugdp.paper.pate_data import Votes
    from snugdp.paper.pate_study import Point, Study

app = typer.Typer(no_args_is_help=True, help="The experiments of the paper. Studies, NOT PRIVATE.")


@app.callback()
def main() -> None:
    """The experiments of the paper. Studies, NOT PRIVATE."""


@app.command()
def pate(
    *,
    data: Annotated[Path | None, typer.Option(help="A folder with the four files of MNIST, plain or gzipped.")] = None,
    votes: Annotated[Path | None, typer.Option(help="Read votes from this .npz file instead of training.")] = None,
    teachers: Annotated[int, typer.Option(min=2, help="How many are trained.")] = 400,
    queries: Annotated[int, typer.Option(min=1, help="The most queries in a set.")] = 200,
    delta: Annotated[float, typer.Option(min=1e-300, max=0.5, help="The delta of every guarantee.")] = 1e-5,
    sigmas: Annotated[str, typer.Option(help="Noise on the votes, separated by commas.")] = "",
    sets: Annotated[
        str, typer.Option(help="high, low, authors_high, authors_low, highest, all, or those of the votes file.")
    ] = "high,low,all",
    curves: Annotated[str | None, typer.Option(help="Names of curves, separated by commas; all if not given.")] = None,
    gap: Annotated[
        float | None, typer.Option(help="A public belief: every lead, in votes; else all are as likely.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write every number to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file, such as x.svg.")] = None,
) -> None:
    """Privacy of labels from 400 teachers: high and low consensus, every analysis of the same noisy votes."""
    from snugdp.paper import pate_curves, pate_study

    console = Console()
    with in_plain_words():
        noises = tuple(float(value) for value in sigmas.split(",")) if sigmas else pate_study.SIGMAS
        names = [curve.name for curve in pate_curves.CURVES] if curves is None else curves.split(",")
        wished = pate_curves.chosen(name.strip() for name in names)
        for wanted in (file, plot):
            if wanted is not None:
                wanted.touch()  # a file that cannot be written is found before the work
        found, proxy = _votes(console, data, votes, teachers)
        chosen = pate_study.selected(found, [name.strip() for name in sets.split(",")], queries)
        study = pate_study.Study(found, chosen, noises, delta, gap, proxy, wished)
        for note in pate_study.NOTES:
            console.print(note, highlight=False)
        points = list(_watched(console, "Curves", study.run(), study.points))
        show(console, study, points)
        if file is not None:
            file.write_text(json.dumps(pate_study.as_json(study, points), indent=1))
        if plot is not None:
            pate_study.plot(plot, study, points)


def _votes(console: Console, data: Path | None, file: Path | None, teachers: int) -> tuple[Votes, Integers | None]:
    """The votes of the teachers, and of a public proxy where there are pictures to train it on."""
    from snugdp.paper import pate_data

    if data is None and file is None:
        raise ValueError("name a folder with the files of MNIST by --data, or a file of votes by --votes, or both")
    stored = None if file is None else pate_data.stored(file)
    if data is None:
        assert stored is not None
        return stored, None
    images = pate_data.mnist(data)

    def watch(numbers: Iterable[int], total: int) -> Iterable[int]:
        return _watched(console, "Teachers", iter(numbers), total)

    asked, public, _ = pate_data.public_part(images.test)
    if stored is None:
        stored = pate_data.Votes(pate_data.voted(images.train, teachers, asked.rows, images.classes, watch=watch))
    return stored, pate_data.proxied(public, asked.rows, images.classes).whole


def show(console: Console, study: Study, points: list[Point]) -> None:
    """A table for each set: curves down, noises across."""
    from snugdp.paper.pate_study import title_of

    for name in study.sets:
        own = [point for point in points if point.set == name]
        table = Table(
            "epsilon, by sigma", *(f"{point.sigma:g}" for point in own), title=f"{title_of(name)}, T = {own[0].queries}"
        )
        for curve in study.curves:
            cells = (_number(point.epsilons[curve.name]) for point in own)
            table.add_row(curve.title if curve.private else f"* {curve.title}", *cells)
        for place, first in enumerate(own[0].proposals):
            table.add_row(
                f"proposed, {first.belief}", *(_number(point.proposals[place].epsilon) for point in own)
            )  # fmt: skip
            table.add_row("  passes", *(f"{point.proposals[place].chance:.2f}" for point in own))
        console.print(table)


def _number(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _watched(console: Console, what: str, items: Iterator[Any], total: int) -> Iterator[Any]:
    """A bar on a terminal."""
    yield from track(items, what, total, console=console, disable=not console.is_terminal, transient=True)
