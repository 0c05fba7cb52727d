"""``snugdp paper``: the experiments of the paper, with honest accounting beside what it prints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.shared import Json, Pictures, names, numbers, say, watched, writable

if TYPE_CHECKING:
    from snugdp.mechanisms.teachers.ball import Integers
    from snugdp_studies.paper.pate.data import Mnist, Votes
    from snugdp_studies.paper.pate.study import Study, StudyPoint

app = typer.Typer(no_args_is_help=True, help="The experiments of the paper. Studies, NOT PRIVATE.")


@app.callback()
def main() -> None:
    """The experiments of the paper. Studies, NOT PRIVATE."""


@app.command()
def pate(
    *,
    data: Pictures = None,
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
    file: Json = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file, such as x.svg.")] = None,
) -> None:
    """Privacy of labels from 400 teachers: high and low consensus, every analysis of the same noisy votes.

    Example: snugdp paper pate --data mnist --json pate.json
    """
    from snugdp_studies.paper.pate import curves as pate_curves
    from snugdp_studies.paper.pate import study as pate_study

    console = Console()
    with in_plain_words():
        noises = numbers(sigmas) if sigmas else pate_study.SIGMAS
        wanted = pate_curves.CURVES if curves is None else pate_curves.chosen(names(curves))
        writable(file, plot)
        found, proxy = _votes(console, data, votes, teachers)
        chosen = pate_study.selected(found, names(sets), queries)
        study = pate_study.Study(found, chosen, noises, delta, gap, proxy, wanted)
        points = show_study(console, study)
        if file is not None:
            file.write_text(json.dumps(pate_study.as_json(study, points), indent=1))
        if plot is not None:
            pate_study.plot(plot, study, points)


_Out = Annotated[Path, typer.Option(help="The folder for pictures (PNG, SVG), numbers (CSV) and parameters (JSON).")]
_Data = Annotated[
    Path | None, typer.Option(help="A folder with the data; what is missing is downloaded into it. Else OUT/data.")
]
_Quick = Annotated[bool, typer.Option("--quick", help="Fewer points and splits: seconds instead of minutes.")]
_Seeds = Annotated[int | None, typer.Option(min=1, help="How many splits in figure 1: if not given 5, quick 2.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the names of the files as one JSON object, and no more.")]


@app.command()
def figure1(
    *, out: _Out, data: _Data = None, seeds: _Seeds = None, quick: _Quick = False, as_json: _Json = False
) -> None:
    """Linear regression on bike and elevators: error against epsilon, as printed and honest.

    Needs bike.csv and elevators.csv (plain or gzipped, the target in the last column).

    Example: snugdp paper figure1 --data uci --out figures
    """
    _make(out, as_json, figure1=partial(_figure1, data=data, seeds=seeds, quick=quick))


@app.command()
def figure2(*, out: _Out, data: _Data = None, quick: _Quick = False, as_json: _Json = False) -> None:
    """PATE with high and low consensus: epsilon against noise, as printed and honest.

    Uses mnist_votes_400.npz of the folder, or trains 400 teachers on the four files of MNIST; and
    pate_surrogate_votes.json, votes that are calibrated to the published curves, if it is there.

    Example: snugdp paper figure2 --data votes --out figures
    """
    _make(out, as_json, figure2=partial(_figure2, data=data, quick=quick))


@app.command()
def figure3(*, out: _Out, quick: _Quick = False, as_json: _Json = False) -> None:
    """A vote between two candidates: losses by the gap, and the price of an error rate. Needs no data.

    Example: snugdp paper figure3 --out figures
    """
    _make(out, as_json, figure3=partial(_figure3, quick=quick))


@app.command(name="all")
def every(
    *, out: _Out, data: _Data = None, seeds: _Seeds = None, quick: _Quick = False, as_json: _Json = False
) -> None:
    """All three figures.

    Example: snugdp paper all --data shared --out figures --quick
    """
    _make(
        out,
        as_json,
        figure1=partial(_figure1, data=data, seeds=seeds, quick=quick),
        figure2=partial(_figure2, data=data, quick=quick),
        figure3=partial(_figure3, quick=quick),
    )


def _make(out: Path, as_json: bool, **figures: Callable[[Console, Path], list[Path]]) -> None:
    from snugdp_studies.bench.contest.speed import one_thread

    console = Console(stderr=True)
    with in_plain_words(), one_thread():
        out.mkdir(parents=True, exist_ok=True)
        made = {name: [str(file) for file in figure(console, out)] for name, figure in figures.items()}
        if as_json:
            typer.echo(json.dumps({"files": made}))
            return
        for files in made.values():
            for file in files:
                typer.echo(file)


def _folder(out: Path, data: Path | None) -> Path:
    if data is not None and not data.is_dir():
        raise ValueError(
            f"{data} is no folder: name one with --data, or leave that out to download into {out / 'data'}"
        )
    return out / "data" if data is None else data


def _figure1(console: Console, out: Path, *, data: Path | None, seeds: int | None, quick: bool) -> list[Path]:
    from dataclasses import replace

    from snugdp_studies.bench.contest.tables import split
    from snugdp_studies.bench.regression import TASK
    from snugdp_studies.paper import data as public
    from snugdp_studies.paper import figure1

    folder = _folder(out, data)
    files = {name: public.needed(folder, file) for name, file in public.TABLES.items()}
    plan = figure1.QUICK if quick else figure1.Figure1Plan()
    plan = plan if seeds is None else replace(plan, seeds=seeds)
    sources = {name: partial(split, TASK.tables, str(folder), name) for name in files}
    say(console, *figure1.NOTES)
    scores = list(watched(console, "Figure 1", figure1.run(sources, plan), figure1.points(sources, plan)))
    return figure1.save(out, scores, plan, {"data": {name: public.about(file) for name, file in files.items()}})


def _figure2(console: Console, out: Path, *, data: Path | None, quick: bool) -> list[Path]:
    from snugdp_studies.paper import data as public
    from snugdp_studies.paper import figure2
    from snugdp_studies.paper.pate import data as pate_data

    folder, plan = _folder(out, data), figure2.QUICK if quick else figure2.Figure2Plan()
    say(console, *figure2.NOTES)
    stored, calibrated = folder / public.VOTES, folder / public.CALIBRATED
    votes = pate_data.stored(stored) if stored.is_file() else _trained(console, _pictures(folder), 400)
    work = [(votes, figure2.sets_of(votes, figure2.MNIST, plan.queries), plan.sigmas)]
    if calibrated.is_file():
        fitted = pate_data.stored(calibrated)
        work.append((fitted, figure2.sets_of(fitted, figure2.CALIBRATED, plan.queries), plan.calibrated_sigmas))
    else:
        say(console, f"There is no {public.CALIBRATED} in {folder}: the figure is drawn without calibrated votes.")
    found = []
    for own, sets, sigmas in work:
        points = figure2.run(own, sets, sigmas, plan)
        found += list(watched(console, "Figure 2", points, len(sets) * len(sigmas)))
    used = [file for file in (stored, calibrated) if file.is_file()]
    return figure2.save(out, found, plan, {"data": {file.name: public.about(file) for file in used}})


def _pictures(folder: Path) -> Mnist:
    """MNIST in a folder or in its subfolder mnist; what is missing is downloaded into the latter."""
    from snugdp_studies.paper import data as public
    from snugdp_studies.paper.pate.data import mnist

    direct = all(public.found(folder / "mnist", file) is None for file in public.PICTURES)
    home = folder if direct and public.found(folder, public.PICTURES[0]) is not None else folder / "mnist"
    for file in public.PICTURES:
        public.needed(home, file)
    return mnist(home)


def _trained(console: Console, images: Mnist, teachers: int) -> Votes:
    """The votes of teachers who are trained on MNIST."""
    from snugdp_studies.paper.pate.data import Votes, public_part, voted

    asked, _, _ = public_part(images.test)
    watch = partial(watched, console, "Teachers")
    return Votes(voted(images.train, teachers, asked.rows, images.classes, watch=watch), asked.labels)


def _figure3(console: Console, out: Path, *, quick: bool) -> list[Path]:
    from snugdp_studies.paper import figure3

    say(console, *figure3.NOTES)
    return figure3.save(out, figure3.QUICK if quick else figure3.Figure3Plan())


def _votes(console: Console, data: Path | None, file: Path | None, teachers: int) -> tuple[Votes, Integers | None]:
    """The votes of the teachers, and of a public proxy where there are pictures to train it on."""
    from snugdp_studies.paper.pate.data import mnist, proxied, public_part, stored

    if data is None:
        if file is None:
            raise ValueError("name a folder with the files of MNIST by --data, or a file of votes by --votes, or both")
        return stored(file), None
    given = None if file is None else stored(file)
    images = mnist(data)
    asked, public, _ = public_part(images.test)
    votes = _trained(console, images, teachers) if given is None else given
    return votes, proxied(public, asked.rows, images.classes).whole


def show_study(console: Console, study: Study) -> list[StudyPoint]:
    """Compute the points of a study and print a table for each set: curves down, noises across."""
    from snugdp_studies.paper.pate.study import NOTES, title_of

    say(console, *NOTES)
    points = list(watched(console, "Curves", study.run(), study.points))
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
    return points


def _number(value: float) -> str:
    """An epsilon, rounded up."""
    if not math.isfinite(value):
        return f"{value:g}"
    return str(Decimal(value).quantize(Decimal("0.001" if value < 10 else "0.1"), ROUND_CEILING))
