"""``snugdp bench pate``: students of private labels beside plain Gaussian noise, and times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.paper import show_study
from snugdp_studies.cli.shared import Epsilons, Json, Pictures, names, numbers, say, table, watched, writable

if TYPE_CHECKING:
    from snugdp_studies.bench.pate.students import StudentCell, StudentSetting

_NOTES = (
    "NOT PRIVATE: seeded noise. Teachers are trained on the training images and asked about the first test images; 300 "
    "labelled test images are public, for a proxy whose votes are the belief behind every plan; students are "
    "tested on the last 1,000.",
    "A refusal leaves no student: labels and students are means over the released runs. right: true labels among the "
    "answers. The distance test may choose plain noise (sigma in brackets), which never refuses.",
)


def pate(
    *,
    data: Pictures = None,
    votes: Annotated[Path | None, typer.Option(help="Read the teachers' votes from this .npz file.")] = None,
    teachers: Annotated[int, typer.Option(min=2, help="How many are trained.")] = 400,
    queries: Annotated[int, typer.Option(min=2, help="Queries in every run.")] = 1000,
    epsilons: Epsilons = "0.5,0.75,1,1.5,2,3",
    sigmas: Annotated[str, typer.Option(help="Label noise for the comparison at equal noise.")] = "20,40,60",
    kinds: Annotated[str, typer.Option(help="Kinds of queries: random, proxy, votes.")] = "random,proxy,votes",
    delta: Annotated[float, typer.Option(min=1e-300, max=0.5, help="The delta of every budget.")] = 1e-5,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each method, each with queries and noise of its own.")] = 5,
    surrogate: Annotated[
        Path | None, typer.Option(help="Also every curve on the histograms in this .json file of named sets.")
    ] = None,
    surrogate_sigmas: Annotated[
        str, typer.Option(help="Label noise for --surrogate.")
    ] = "13.7858,20.977,31.9192,48.5693",
    speed: Annotated[bool, typer.Option(help="Measure times.")] = True,
    large: Annotated[bool, typer.Option(help="Also the time of 100,000 queries by 1,000 teachers.")] = True,
    file: Json = None,
) -> None:
    """Students of MNIST against total epsilon: distance test, Confident-GNMax and the Gaussian mechanism; times.

    Example: snugdp bench pate --data mnist --epsilons 1,2
    """
    from snugdp_studies.bench.pate import students as contest

    console = Console()
    with in_plain_words():
        writable(file)
        result: dict[str, Any] = {}
        if data is not None:
            asked = names(kinds)
            if unknown := [kind for kind in asked if kind not in contest.KINDS]:
                raise ValueError(f"no kind {', '.join(unknown)} of queries; there are {', '.join(contest.KINDS)}")
            setting = contest.prepare(data, votes, teachers, partial(watched, console, "Teachers"))
            size = {"queries": queries, "delta": delta, "seeds": seeds}
            result |= _students(console, setting, (numbers(epsilons), numbers(sigmas), asked), size)
        elif votes is not None:
            raise ValueError("students need pictures: name the folder of MNIST by --data")
        else:
            say(console, "No --data: students are left out.")
        if surrogate is not None:
            result["surrogate"] = _surrogate(console, surrogate, delta, numbers(surrogate_sigmas))
        if speed:
            result["times"] = _times(console, large)
        if file is not None:
            file.write_text(json.dumps(result, indent=1))


def _students(
    console: Console,
    setting: StudentSetting,
    asked: tuple[Sequence[float], Sequence[float], Sequence[str]],
    size: dict[str, Any],
) -> dict[str, Any]:
    from snugdp_studies.bench.pate import students as contest

    epsilons, sigmas, kinds = asked
    queries, delta, seeds = (size[name] for name in ("queries", "delta", "seeds"))
    say(console, *_NOTES, f"{queries} queries, delta {delta:g}, {seeds} runs")
    references = contest.references(setting, kinds, queries, seeds)
    say(console, *(f"{name}: {accuracy:.3f}" for name, accuracy in references.items()))
    work = contest.jobs(epsilons, kinds)
    equal = list(watched(console, "Equal epsilon", contest.fill(setting, work, **size), len(work)))
    for kind in kinds:
        console.print(_table(f"equal epsilon: {contest.KINDS[kind]}", [cell for cell in equal if cell.kind == kind]))
    work = contest.equal_noise(setting, sigmas, kinds, queries, delta)
    noisy = list(watched(console, "Equal noise", contest.fill(setting, work, **size), len(work)))
    for kind in kinds if noisy else ():
        console.print(_table(f"equal noise: {contest.KINDS[kind]}", [cell for cell in noisy if cell.kind == kind]))
    found = {"equal_epsilon": [asdict(cell) for cell in equal], "equal_noise": [asdict(cell) for cell in noisy]}
    return {**size, "teachers": setting.teachers, "references": references, **found}


def _table(title: str, cells: Sequence[StudentCell]) -> Table:
    drawn = Table("epsilon", "method", "sigma", "refused", "answers", "right", "student", title=title)
    for cell in cells:
        if cell.sigma is None or cell.refused is None:
            drawn.add_row(f"{cell.epsilon:.3g}", cell.method, "none", "no plan")
            continue
        sigma = f"{cell.sigma:.4g}" if cell.tested else f"({cell.sigma:.4g})"
        error = "" if cell.error is None else f" ± {cell.error:.3f}"
        means = [f"{cell.answers:.0f}", f"{cell.right:.3f}", f"{cell.student:.3f}{error}"] if cell.answers else []
        drawn.add_row(f"{cell.epsilon:.3g}", cell.method, sigma, f"{cell.refused:.0%}", *means)
    return drawn


def _surrogate(console: Console, file: Path, delta: float, sigmas: Sequence[float]) -> dict[str, Any]:
    """Every curve on histograms that are given as they are."""
    from snugdp_studies.paper.pate import study as pate_study
    from snugdp_studies.paper.pate.data import stored

    votes = stored(file)
    sets = {name: places for name, places in votes.sets.items() if len(places) >= 200} or dict(votes.sets)
    study = pate_study.Study(votes, sets, sigmas, delta)
    return pate_study.as_json(study, show_study(console, study))


def _times(console: Console, large: bool) -> dict[str, Any]:
    from snugdp_studies.bench.pate import speed

    heads = ("smooth sensitivity, 200 queries by 400 teachers", "fastest, s", "median, s", "times faster")
    loops = speed.run()
    rows = ((row.name, f"{row.best:.4f}", f"{row.median:.4f}", f"{row.faster:.0f}") for row in loops)
    console.print(table(heads, rows))
    labels = list(speed.label_times(large=(100_000, 1_000) if large else None))
    drawn = Table("votes to labels, exact noise", "first, s", "then, median, s", "processor, s", "peak so far, MB")
    for time in labels:
        later = "" if time.median is None else f"{time.median:.2f}"
        drawn.add_row(time.name, f"{time.first:.2f}", later, f"{time.processor:.2f}", f"{time.peak_mb:.0f}")
    console.print(drawn)
    say(console, speed.GOALS)
    return {"smooth": [asdict(row) for row in loops], "labels": [asdict(row) for row in labels]}
