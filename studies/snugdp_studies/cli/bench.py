"""``snugdp bench``: side-by-side runs against peers. The work is loaded when a command is called."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.pate import pate
from snugdp_studies.cli.shared import Delta, Epsilons, Json, Repeats, names, numbers, say, table, watched, writable

if TYPE_CHECKING:
    from snugdp_studies.bench.bounds.contest import BoundsComparison
    from snugdp_studies.bench.contest.speed import Timing
    from snugdp_studies.bench.pca import PCACell
    from snugdp_studies.bench.persons import PersonTiming

Datasets = Annotated[str | None, typer.Option(help="Names of tables, separated by commas; all if not given.")]
Seeds = Annotated[int, typer.Option(min=1, help="Splits of each table, each with noise of its own.")]
Methods = Annotated[str | None, typer.Option(help="Contenders, separated by commas; all if not given.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Speed = Annotated[bool, typer.Option(help="Measure fit times on made-up rows instead.")]
Rows = Annotated[int, typer.Option(min=1000, help="Rows for --speed.")]
Times = Annotated[int, typer.Option(min=1, help="Runs of each contender for --speed.")]

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Compare with other libraries, side by side, on one thread."
)


# ---- what single operations cost


def noise(repeats: Repeats = 15) -> None:
    """5,050 exact draws of each law, beside OpenDP's vectors and numpy's unprotected normals.

    Example: snugdp bench noise --repeats 3
    """
    from snugdp_studies.bench.costs import noise_times

    heads = ("5,050 draws", "fastest, ms", "median, ms", "relative to the exact Gaussian")
    with in_plain_words():
        times = [(row.name, 1000 * row.min_s, 1000 * row.median_s, row.relative) for row in noise_times(repeats)]
    Console().print(table(heads, ((name, *(f"{value:.2f}" for value in values)) for name, *values in times)))


def imports(repeats: Annotated[int, typer.Option(min=1, help="Imports of each name.")] = 5) -> None:
    """What an import costs beyond numpy, scipy and scikit-learn.

    Example: snugdp bench imports --repeats 3
    """
    from snugdp_studies.bench.costs import IMPORT_GOAL, import_costs

    console = Console()
    heads = ("from snugdp import", "fastest, CPU-s", "median, CPU-s", "own modules", "all modules")
    rows = import_costs(repeats=repeats)
    cells = ((r.name, f"{r.min_s:.3f}", f"{r.median_s:.3f}", str(r.own), str(r.modules)) for r in rows)
    console.print(table(heads, cells))
    say(console, IMPORT_GOAL)


def queries(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the made-up column.")] = 5_000_000, repeats: Repeats = 5
) -> None:
    """Every query on millions of rows, beside numpy's sort of the same column.

    Example: snugdp bench queries --rows 100000
    """
    from snugdp_studies.bench.costs import query_times

    heads = (f"{rows:,} rows", "fastest, s", "median, s", "relative to numpy.sort")
    times = ((r.name, f"{r.min_s:.3f}", f"{r.median_s:.3f}", f"{r.relative:.2f}") for r in query_times(rows, repeats))
    Console().print(table(heads, times))


def gram(
    parts: Annotated[
        str, typer.Option(help="Which comparisons: memory, stream, growth, files, separated by commas.")
    ] = "memory,stream,growth,files",
    repeats: Repeats = 7,
) -> None:
    """Exact sums of squares and products beside plain floats, in memory and streamed, and how they grow with rows.

    Example: snugdp bench gram --parts memory
    """
    from snugdp_studies.bench.gram import run, threads

    with in_plain_words():
        rows = run(parts.split(","), repeats)
    _times(threads(), rows)


def scale(
    *,
    parts: Annotated[
        str, typer.Option(help="Which comparisons: models, gram, csv, median, spark, separated by commas.")
    ] = "models,gram,csv,median,spark",
    rows: Annotated[str, typer.Option(help="Sizes of tables of ten columns, separated by commas.")] = "2e6,2e7",
    values: Annotated[str, typer.Option(help="Sizes of columns for medians, separated by commas.")] = "1e7,1e8",
    repeats: Repeats = 1,
    folder: Annotated[Path | None, typer.Option(help="Where to make the files, and keep them.")] = None,
) -> None:
    """Releases from large files and on Spark beside the same work without privacy, and how time and memory grow.

    Ratios are of processor seconds, each job in a process of its own. With the defaults it needs 5 GB of disk.

    Example: snugdp bench scale --rows 1e5,1e6 --values 1e6
    """
    from snugdp_studies.bench.gram import threads
    from snugdp_studies.bench.scale import show

    asked, console = names(parts), Console()
    with in_plain_words():
        if unknown := [part for part in asked if part not in show.PARTS]:
            raise ValueError(f"no comparison {', '.join(unknown)}; there are {', '.join(show.PARTS)}")
        sizes, lengths = ([int(number) for number in numbers(text)] for text in (rows, values))
        say(console, threads())
        show.show(console, asked, show.ScaleSizes(sizes, lengths, repeats), folder)


def persons(
    *,
    people: Annotated[int | None, typer.Option(min=100, help="Persons: by default 10,000, or 1,000,000.")] = None,
    tables: Annotated[int, typer.Option(min=1, help="Panels of each kind.")] = 3,
    first: Annotated[int, typer.Option(min=0, help="The number of the first panel; each number has its own.")] = 0,
    epsilon: Annotated[float, typer.Option(min=0.01, help="The privacy budget, with a delta of 1e-6.")] = 1.0,
    speed: Annotated[bool, typer.Option(help="Measure times beside polars' group_by instead.")] = False,
    rows: Annotated[int, typer.Option(min=1000, help="Rows for --speed.")] = 10_000_000,
    repeats: Repeats = 5,
) -> None:
    """Caps on what a person contributes: found in private, beside the best one in hindsight and other libraries.

    With --speed: rows kept of each person, weighed and counted, beside polars' group_by and the same work in polars.

    Example: snugdp bench persons --people 1000 --tables 1
    """
    from snugdp_studies.bench.gram import threads

    with in_plain_words():
        if speed:
            from snugdp_studies.bench.persons import run

            _person_times(threads(), run(rows, people or 1_000_000, repeats))
        else:
            _caps(people or 10_000, tables, epsilon, first)


def _person_times(setting: str, found: Iterable[PersonTiming]) -> None:
    """A table for each place where the rows are."""
    console = Console()
    heads = ("fastest, s", "median, s", "CPU, s", "over group_by", "over the same work", "peak, MB")
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in found:
        seconds = (f"{each:.2f}" for each in (row.min_s, row.median_s, row.cpu_s, row.relative, row.same_work))
        peak = "" if row.peak_mb is None else f"{row.peak_mb:.0f}"
        groups.setdefault(row.group, []).append((row.name, *seconds, peak))
    say(console, setting)
    for group, rows in groups.items():
        console.print(table((group, *heads), rows))


def _caps(people: int, tables: int, epsilon: float, first: int) -> None:
    """Errors over those of the best cap."""
    from snugdp import Budget
    from snugdp_studies.bench.caps import rivals, run

    others = [name for name, _ in rivals(Budget(epsilon, "1e-6"))]
    found, console = list(run(people, tables, epsilon, first=first)), Console()
    absent = ", ".join(name for name in ("OpenDP", "PipelineDP") if name not in others) or "none"
    say(
        console,
        f"epsilon {epsilon:g}, delta 1e-6, {people:,} persons, {tables} panels of each kind; mean absolute errors",
    )
    say(console, f"of a count over that of the best cap in hindsight. Libraries that are not installed: {absent}")
    lines = [
        (
            one.shape, str(one.cells), one.noise, f"{one.best_cap:.3g}", f"{one.best:.3g}", f"{one.private:.2f}",
            f"{one.alone:.2f}", f"{one.gaussian:.2f}", "" if math.isnan(one.floor) else f"{one.floor:.2f}",
            f"{one.ten:.2f}", f"{one.largest:.1f}", f"{one.kept:.2f}", f"{one.bounded:.2f}",
            *(f"{one.others[name]:.2f}" for name in others),
        )
        for one in found
    ]  # fmt: skip
    head = (
        "rows of a person",
        "cells",
        "noise",
        "best cap",
        "error",
        "private",
        "cap alone",
        "Gaussian",
        "floor",
        "10",
        "1024",
        "kept",
        "bounded",
    )
    console.print(table((*head, *others), lines))


def inference(
    tables: Annotated[int, typer.Option(min=1, help="Tables of each design, each with noise of its own.")] = 100,
    only: Annotated[str | None, typer.Option(help="Names of designs, separated by commas; all if not given.")] = None,
    seed: Annotated[int, typer.Option(min=1, help="Another number: other tables, and other noise.")] = 1,
) -> None:
    """How often 95 % intervals cover, and how wide they are, beside those without privacy and a parametric bootstrap.

    Example: snugdp bench inference --tables 20 --only plain,labels
    """
    from snugdp_studies.bench.inference import DESIGNS, GOALS, run

    console = Console()
    with in_plain_words():
        known = list(dict.fromkeys(design.name for design in DESIGNS))
        chosen = known if only is None else names(only)
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"there is no design {', '.join(unknown)}; there are {', '.join(known)}")
        wanted = [design for design in DESIGNS if design.name in chosen]
        heads = (
            "design", "rows", "columns", "epsilon", "slopes covered", "worst", "contrasts covered", "worst",
            "intercept", "width", "unbounded", "plan asks for", "slopes rejected", "jointly", "bootstrap covers",
            "its width",
        )  # fmt: skip
        cells = []
        for found in run(tables, wanted, seed):
            design, peer = found.design, ("", "")
            if found.peer is not None and found.peer_width is not None:
                peer = f"{found.peer:.1%}", f"{found.peer_width:.3g}"
            cells.append((
                design.name, f"{design.rows:,}", str(design.width), f"{design.epsilon:g}", f"{found.slopes:.1%}",
                f"{found.worst:.1%}", f"{found.contrasts:.1%}", f"{found.worst_contrast:.1%}",
                f"{found.intercept:.1%}", f"{found.width:.3g}", f"{found.unbounded:.0%}",
                "" if found.needed is None else f"{found.needed:,}", f"{found.rejected:.1%}", f"{found.jointly:.1%}",
                *peer,
            ))  # fmt: skip
        console.print(table(heads, cells))
    say(console, f"{tables} tables of each design. {GOALS}")


def whitening(
    data: Annotated[
        str | None, typer.Option(help='A folder of NAME.csv.gz or NAME.csv, or "synthetic": R squared on these.')
    ] = None,
    datasets: Datasets = None,
    repeats: Annotated[int, typer.Option(min=1, help="Fits of each design or table.")] = 20,
) -> None:
    """Lines by the default and by method="whitened", beside least squares without privacy.

    Example: snugdp bench whitening --repeats 3
    """
    from snugdp_studies.bench.bounds import tables
    from snugdp_studies.bench.whitening import METHODS, run, run_tables

    console = Console()
    with in_plain_words():
        known = [] if data is None else tables.names(data)
        chosen = _asked(datasets) or known
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"there is no table {', '.join(unknown)}; there are {', '.join(known)}")
        found = run(repeats) if data is None else run_tables(data, chosen, repeats)
        cells = [
            (each.name, f"{each.rows:,}", str(each.width), f"{each.epsilon:g}", each.bounds,
             *(f"{error:.3f}" for error in each.errors), f"{each.wins:.0%}")
            for each in found
        ]  # fmt: skip
    heads = ("table", "rows", "columns", "epsilon", "bounds", "least squares", *METHODS, "whitened is better")
    console.print(table(heads, cells))
    what = "Error of the slopes over the spread of the truth" if data is None else "R squared on a fifth of the rows"
    say(console, f"{what}, {repeats} fits each. NOT PRIVATE: seeded noise.")


def forecasts(
    data: Annotated[
        str, typer.Option(help='A folder of NAME.csv.gz or NAME.csv, or "synthetic" for made-up tables.')
    ] = "synthetic",
    datasets: Datasets = None,
    model: Annotated[str, typer.Option(help="linear, additive, logistic, classes (three) or poisson.")] = "linear",
    rows: Annotated[int, typer.Option(min=100, help="Rows of made-up tables.")] = 5000,
    sample: Annotated[int, typer.Option(min=20, help="Rows of the public sample.")] = 300,
) -> None:
    """What plans and public samples expect privacy noise to add to predictions, and what it adds.

    Example: snugdp bench forecasts --datasets literature --rows 1000
    """
    from snugdp_studies.bench.bounds import tables
    from snugdp_studies.bench.forecasts import FORECASTS, MODELS, run

    console = Console()
    with in_plain_words():
        if model not in MODELS:
            raise ValueError(f"--model must be one of {', '.join(MODELS)}")
        known = tables.names(data)
        chosen = _asked(datasets) or known
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"there is no table {', '.join(unknown)}; there are {', '.join(known)}")
        found = list(run(data, chosen, model, rows=rows, sample=sample))
    cells = [
        (each.name, f"{each.rows:,}", str(each.width), each.bounds, f"{each.epsilon:g}", f"{each.seen.root:.4f}",
         *(f"{how.root:.4f} ({how.root / each.seen.root:.2f})" for how in (getattr(each, how) for how in FORECASTS)))
        for each in found
    ]  # fmt: skip
    ways = [how.replace("_", " ") for how in FORECASTS]
    console.print(table(("table", "rows", "columns", "bounds", "epsilon", "seen", *ways), cells))
    for line in _shares(found):
        say(console, line)
    say(console, f"The public sample has {sample} rows. NOT PRIVATE: seeded noise.")


def _shares(found: Sequence[Any]) -> Iterator[str]:
    """How many forecasts come true, of the root mean square and of a typical prediction."""
    from snugdp_studies.bench.forecasts import BOUNDS, FORECASTS, share

    for kind in (*BOUNDS, "all"):
        part = [each for each in found if kind in (each.bounds, "all")]
        for of, what in (("root", "root mean square"), ("typical", "typical prediction")):
            ways = (how for how in FORECASTS if not math.isnan(share(part, how, 2, of)))
            said = (
                f"{how.replace('_', ' ')} {share(part, how, 2, of):.0%} and {share(part, how, 3, of):.0%}"
                for how in ways
            )
            yield f"Bounds {kind}, {what}, of {len(part)} forecasts within a factor of 2 and of 3: {', '.join(said)}."


def means(
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each design.")] = 200,
) -> None:
    """How often intervals for the population cover: of means, proportions, quantiles and differences of groups.

    Example: snugdp bench means --repeats 50
    """
    from snugdp_studies.bench.means import run

    console = Console()
    heads = ("asked", "population", "clip", "rows", "epsilon", "level", "covered", "width over that without privacy")
    lines = []
    with in_plain_words():
        for found in run(repeats):
            one = found.design
            level = f"{one.level:g}" if one.asked in ("quantile", "proportion") else ""
            told = one.asked, one.population, one.clip or "", f"{one.rows:,}", f"{one.epsilon:g}", level
            lines.append((*told, f"{found.covered:.1%}", f"{found.width:.2f}"))
        console.print(table(heads, lines))
    say(console, f"{repeats} tables of each design; bounds from 0 to 200. NOT PRIVATE: seeded noise.")


def scores(
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each design.")] = 200,
    seed: Annotated[int, typer.Option(help="Of rows and noise.")] = 1,
) -> None:
    """Private scores of a model: their error, and how often their intervals cover.

    Example: snugdp bench scores --repeats 20
    """
    from snugdp_studies.bench.scores import run

    console = Console()
    heads = (
        "metric",
        "rows",
        "epsilon",
        "positives",
        "truth",
        "error, 19 of 20",
        "covers population",
        "sample",
        "silent",
    )
    lines = []
    with in_plain_words():
        for row in run(repeats, seed):
            design = row.design
            name = f"{design.metric}{', with others' if design.together else ''}"
            share = "" if design.number else f"{100 * row.positives:.1f} %"
            numbers = (
                f"{row.truth:.4f}",
                f"{row.error:.4f}",
                f"{row.population:.3f}",
                f"{row.sample:.3f}",
                f"{row.silent:.2f}",
            )
            lines.append((name, f"{design.rows:,}", f"{design.epsilon:g}", share, *numbers))
    console.print(table(heads, lines))


def person_models(
    people: Annotated[int, typer.Option(min=100, help="Persons of each made-up panel.")] = 1_000,
    repeats: Repeats = 12,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each fit.")] = 1.0,
) -> None:
    """Models where persons have several rows: caps, weights and the weight found in private, on made-up panels.

    Example: snugdp bench person-models --people 1000 --repeats 2
    """
    from snugdp_studies.bench.person_models import SHOWN, run, words

    with in_plain_words():
        found = run((people,), repeats, epsilon)
    heads = ("mean squared distance", *SHOWN, "best in hindsight", "private / best")
    Console().print(table(heads, list(words(found))))


def _times(setting: str, found: Iterable[Timing]) -> None:
    """A table for every group of contenders."""
    console = Console()
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in found:
        peak = "" if row.peak_mb is None else f"{row.peak_mb:.0f}"
        cells = (row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", f"{row.relative:.2f}", peak)
        groups.setdefault(row.group, []).append(cells)
    say(console, setting)
    for group, rows in groups.items():
        console.print(table((group, "fastest, s", "median, s", "relative", "peak, MB"), rows))


def ledger(
    charges: Annotated[int, typer.Option(min=10, help="Charges of each kind.")] = 300,
    folder: Annotated[str | None, typer.Option(help="A folder on the disk to be measured.")] = None,
    url: Annotated[str | None, typer.Option(help="A PostgreSQL database, to be measured too.")] = None,
    entries: Annotated[str, typer.Option(help="Entries of the histories, separated by commas.")] = "1000,20000",
) -> None:
    """What a charge costs beside a bare write with fsync on the same disk, and how long a history may be.

    Example: snugdp bench ledger --charges 100
    """
    from snugdp_studies.bench.costs import charge_times

    heads = (f"{charges} times, in turn", "p50, ms", "p99, ms", "CPU, ms", "relative to a bare write")
    with in_plain_words():
        rows = [
            (
                r.name,
                f"{r.p50_ms:.2f}",
                f"{r.p99_ms:.2f}",
                f"{r.cpu_ms:.2f}",
                "" if r.relative is None else f"{r.relative:.2f}",
            )
            for r in charge_times(charges, folder, url, [int(number) for number in names(entries)])
        ]
    Console().print(table(heads, rows))


def selection(
    *,
    runs: Annotated[float, typer.Option(min=1.5, help="Runs on average.")] = 30.0,
    delta: Delta = 1e-6,
    plot: Annotated[Path | None, typer.Option(help="Draw the picture into this file instead, such as x.svg.")] = None,
) -> None:
    """The Gaussian mu that each accounting leaves to one of many runs, beside dp-accounting's.

    Example: snugdp bench selection --runs 30
    """
    from snugdp_studies.bench import selection as contest

    console = Console()
    with in_plain_words():
        if plot is not None:
            writable(plot)
            contest.plot(plot, delta=delta)
            return
        heads = (f"mu of a run, {runs:g} on average, delta {delta:g}", *(f"{e:g}" for e in contest.EPSILONS))
        rows = contest.run(runs, delta).items()
        down = ((name, *(f"{int(mu * 10_000) / 10_000:.4f}" for mu in found)) for name, found in rows)
        console.print(table(heads, down))
        say(console, f"one calibration by C2: {contest.calibration_seconds(runs):.2f} s")


def statistics(
    parts: Annotated[
        str, typer.Option(help="Which comparisons: quantiles, means, keys, speed, separated by commas.")
    ] = "quantiles,means,keys,speed",
    runs: Annotated[int, typer.Option(min=2, help="Draws for every number.")] = 200,
    peer_runs: Annotated[int, typer.Option(min=0, help="OpenDP's draws for every number; 0 leaves it out.")] = 30,
    repeats: Repeats = 3,
) -> None:
    """Quantiles, means and keys of made-up columns beside OpenDP and textbook mechanisms, and times on one thread.

    Example: snugdp bench statistics --parts means --runs 20
    """
    from snugdp_studies.bench.statistics import show

    asked = names(parts)
    with in_plain_words():
        if unknown := [part for part in asked if part not in show.PARTS]:
            raise ValueError(f"no comparison {', '.join(unknown)}; there are {', '.join(show.PARTS)}")
        for part in asked:
            show.PARTS[part](Console(), runs, peer_runs, repeats)


# ---- contests on a folder of tables, beside peers


def regression(
    *,
    data: Annotated[
        str | None, typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the target last, or "synthetic".')
    ] = None,
    datasets: Datasets = None,
    epsilons: Epsilons = "0.1,0.5,1,4",
    delta: Delta = 1e-6,
    seeds: Seeds = 20,
    methods: Methods = None,
    loose: Annotated[
        float | None, typer.Option(help="Also with a bound on targets so many times too large, such as 5.")
    ] = None,
    jobs: Jobs = 1,
    file: Json = None,
    speed: Speed = False,
    rows: Rows = 1_000_000,
    repeats: Times = 3,
) -> None:
    """Errors of every method on held-out rows of your tables; or, with --speed, fit times beside scikit-learn's.

    Example: snugdp bench regression --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench import regression as contest

    with in_plain_words():
        if speed:
            contest.show_times(contest.fit_times(rows, repeats=repeats, methods=_asked(methods)), Console())
            return
        variants = (1.0,) if loose is None else (1.0, loose)
        budgets = {"epsilons": numbers(epsilons), "delta": delta, "seeds": seeds}
        _run(contest.TASK, (data, _asked(datasets), _asked(methods)), {"variants": variants, **budgets}, jobs, file)


def classification(
    *,
    data: Annotated[
        str | None,
        typer.Option(
            help='A folder of NAME.csv.gz or NAME.csv with the label last, "synthetic", "classes" or "sklearn".'
        ),
    ] = None,
    datasets: Datasets = None,
    epsilons: Epsilons = "0.1,0.5,1,4",
    delta: Delta = 1e-6,
    seeds: Seeds = 10,
    methods: Methods = None,
    scalings: Annotated[str, typer.Option(help="How rows are bounded: norm, box, or both with a comma.")] = "norm",
    jobs: Jobs = 1,
    file: Json = None,
    speed: Speed = False,
    rows: Rows = 1_000_000,
    repeats: Times = 2,
) -> None:
    """Log-loss and accuracy of every method on held-out rows of your tables; or, with --speed, fit times.

    Example: snugdp bench classification --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench import classification as contest

    with in_plain_words():
        if speed:
            contest.show_times(contest.fit_times(rows, repeats=repeats, methods=_asked(methods)), Console())
            return
        variants = tuple(names(scalings))
        budgets = {"epsilons": numbers(epsilons), "delta": delta, "seeds": seeds}
        _run(contest.TASK, (data, _asked(datasets), _asked(methods)), {"variants": variants, **budgets}, jobs, file)


def bounds(
    *,
    data: Annotated[
        str, typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the target last, or "synthetic".')
    ] = "synthetic",
    datasets: Datasets = None,
    epsilons: Epsilons = "1",
    delta: Delta = 1e-6,
    rows: Annotated[int, typer.Option(min=100, help="Rows of a made-up table.")] = 2000,
    draws: Annotated[int, typer.Option(min=1, help="Fits of each table.")] = 5,
    labels: Annotated[bool, typer.Option(help="Tell whether the target is among its largest two fifths.")] = False,
    file: Json = None,
) -> None:
    """Fits that find their bounds in private, beside fits with the true minima and maxima as public bounds.

    Example: snugdp bench bounds --datasets units,heaps --draws 3
    """
    from snugdp_studies.bench.bounds import contest, tables

    console = Console()
    with in_plain_words():
        known = tables.names(data)
        there = dict.fromkeys([*known, *tables.KINDS])
        if unknown := [name for name in _asked(datasets) or [] if name not in there]:
            raise ValueError(f"there is no table {', '.join(unknown)}; there are {', '.join(there)}")
        writable(file)
        chosen = _asked(datasets) or known
        setting = contest.BoundsSetting(data, chosen, numbers(epsilons), delta, rows, draws, labels)
        total = len(chosen) * len(setting.epsilons)
        found = list(watched(console, "Fitting", contest.run(setting), total))
    say(console, contest.NOTE.format(draws=draws))
    score = "log-loss" if labels else "R squared"
    heads = (f"{score}, delta {delta:g}", "rows", "columns", "epsilon", "public", "private", "lost")
    console.print(table(heads, map(_bounds_row, found)))
    say(console, contest.GOALS)
    if file is not None:
        file.write_text(json.dumps([asdict(each) for each in found], indent=1))


def additive(
    *,
    data: Annotated[
        str, typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the target last, or "synthetic".')
    ] = "synthetic",
    datasets: Datasets = None,
    epsilons: Epsilons = "0.5,1,4",
    delta: Delta = 1e-6,
    rows: Annotated[int, typer.Option(min=100, help="Rows of a made-up table, or for --speed.")] = 10_000,
    splits: Annotated[int, typer.Option(min=1, help="Splits of each table.")] = 2,
    bands: Annotated[bool, typer.Option("--bands", help="How often bands hold the true curves.")] = False,
    labels: Annotated[bool, typer.Option("--labels", help="Of targets above their median: the log-loss.")] = False,
    speed: Speed = False,
    repeats: Times = 3,
) -> None:
    """Additive models beside lines and DP-EBM, on rows that were held out; or, with --speed, fit times.

    Example: snugdp bench additive --datasets waves --epsilons 1 --splits 1
    """
    from snugdp_studies.bench.additive import MISSING, NOTE, PEER, CurveSetting, contenders, fit_times, names, run
    from snugdp_studies.bench.contest.speed import table as timings

    console = Console()
    if speed:
        console.print(timings(fit_times(rows, repeats=repeats), "Ridge"))
        return
    with in_plain_words():
        known = names(data)
        chosen = _asked(datasets) or known
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"there is no table {', '.join(unknown)}; there are {', '.join(known)}")
        budgets = numbers(epsilons)
        if bands:
            _show_bands(console, CurveSetting(data, chosen, budgets, delta, rows, splits))
            return
        work = run(CurveSetting(data, chosen, budgets, delta, rows, splits, labels))
        found = list(watched(console, "Fitting", work, len(chosen) * len(budgets)))
    score = "log-loss" if labels else "R squared"
    heads = (f"{score}, delta {delta:g}", "rows", "columns", "epsilon", *contenders())
    told = (
        (one.table, f"{one.rows:,}", str(one.columns), f"{one.epsilon:g}", *(f"{r:.3f}" for r in one.scores.values()))
        for one in found
    )
    console.print(table(heads, told))
    say(console, NOTE.format(splits=splits))
    if PEER not in contenders():
        say(console, MISSING)
        return
    better = -1 if labels else 1
    best = sum(better * (one.scores["curves"] - one.scores[PEER]) >= 0 for one in found)
    line = sum(better * (one.scores["curves"] - one.scores["line"]) >= -0.02 for one in found)
    say(console, f"Curves are ahead of DP-EBM in {best} of {len(found)} cells, and within .02 of the line in {line}.")


def _show_bands(console: Console, setting: Any) -> None:
    from snugdp_studies.bench.additive import KINDS, bands

    if unknown := [name for name in setting.tables if name not in KINDS]:
        raise ValueError(f"the true curves of {unknown[0]} are not known: --bands is for made-up tables")
    told = [
        (one.table, f"{one.epsilon:g}", f"{one.held:.0%}", f"{one.width:.3f}", f"{one.error:.3f}")
        for one in bands(setting)
    ]
    console.print(table(("95 % bands", "epsilon", "held at knots", "mean half width", "mean error"), told))


def _bounds_row(found: BoundsComparison) -> tuple[str, ...]:
    scores = (f"{found.middle(name):.4f} ({found.worst(name):.4f})" for name in ("public", "private"))
    lost = "" if found.loss is None else f"{found.loss:+.1%}"
    return found.table, f"{found.rows:,}", str(found.columns), f"{found.epsilon:g}", *scores, lost


def _run(task: Any, wanted: tuple[Any, ...], settings: dict[str, Any], jobs: int, file: Path | None) -> None:
    from snugdp_studies.bench.contest.run import ContestPlan, ContestReport, run, show

    console = Console()
    plan = ContestPlan.of(task, *wanted, **settings)
    writable(file)
    result = ContestReport(plan, run(plan, jobs, partial(watched, console, "Fitting")))
    show(result, console)
    if file is not None:
        file.write_text(json.dumps(result.as_json(), indent=1))


def _asked(text: str | None) -> list[str] | None:
    return None if text is None else names(text)


def pca(
    *,
    draws: Annotated[int, typer.Option(min=1, help="Draws for every number.")] = 60,
    epsilons: Epsilons = "0.5,1,2,4",
    delta: Delta = 1e-6,
    tables: Annotated[
        str | None, typer.Option(help="Names of tables, separated by semicolons; all if not given.")
    ] = None,
    speed: Annotated[bool, typer.Option(help="Measure fit times only.")] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows of the timed table; 0 leaves the times out.")] = 1_000_000,
    repeats: Repeats = 3,
) -> None:
    """Lost variance beside Analyze Gauss on digits and made-up spectra, and fit times beside scikit-learn's.

    Example: snugdp bench pca --draws 20 --epsilons 1
    """
    from snugdp_studies.bench import pca as contest
    from snugdp_studies.bench.contest.speed import table as timings

    console = Console()
    with in_plain_words():
        if not speed:
            chosen = list(contest.CASES) if tables is None else names(tables, ";")
            if unknown := [name for name in chosen if name not in contest.CASES]:
                raise ValueError(f"no table {', '.join(unknown)}; there are {'; '.join(contest.CASES)}")
            say(
                console,
                "NOT PRIVATE: seeded noise. Rows of norm 1, about 0; the number of rows is public. Lost variance in "
                f"units of one row, mean of {draws} draws, delta {delta:g}. The share of draws that did not end in a "
                "matrix is in brackets.",
            )
            cells = list(contest.run(draws, numbers(epsilons), tables=chosen, delta=delta))
            console.print(_losses("number of components given", cells))
            _summary(console, cells)
            picked = contest.chosen(draws, numbers(epsilons), tables=chosen, delta=delta)
            title = "number of components chosen in private; draws that chose another than most left out"
            console.print(_losses(title, picked))
        if rows:
            console.print(timings(contest.fit_times(rows, repeats=repeats), contest.SKLEARN))
            say(console, contest.GOAL)


def _losses(title: str, cells: Iterable[PCACell]) -> Table:
    """A row for each table and budget: Analyze Gauss, then each method's ratio to it."""
    grouped: dict[tuple[str, int, float], list[PCACell]] = {}
    for cell in cells:
        grouped.setdefault((cell.table, cell.k, cell.epsilon), []).append(cell)
    others = list(dict.fromkeys(cell.method for group in grouped.values() for cell in group if cell.method != "gauss"))
    drawn = Table("table", "k", "gap", "epsilon", "Analyze Gauss", "captured", *others, title=title)
    for (name, k, epsilon), group in grouped.items():
        ratios = {cell.method: f"{cell.ratio:.3f} ({cell.used:.0%})" for cell in group}
        first = group[0]
        base = first.lost / first.ratio
        captured = next((cell.captured for cell in group if cell.method == "crossing"), first.captured)
        drawn.add_row(
            name, str(k), f"{first.gap:.0f}", f"{epsilon:g}", f"{base:.4g}", f"{captured:.4%}",
            *(ratios.get(other, "") for other in others),
        )  # fmt: skip
    return drawn


def _summary(console: Console, cells: list[PCACell]) -> None:
    from snugdp_studies.bench.pca import GOALS, summaries

    heads = ("average ratio to Analyze Gauss", "where it falls back", "where it never does", "worst of all")
    found = [(row.method, row.fallback, row.large, row.worst) for row in summaries(cells)]
    rows = ((method, *("" if ratio is None else f"{ratio:.3f}" for ratio in ratios)) for method, *ratios in found)
    console.print(table(heads, rows))
    say(console, GOALS)


for command in (
    additive,
    bounds,
    classification,
    gram,
    imports,
    forecasts,
    inference,
    ledger,
    means,
    noise,
    pate,
    pca,
    persons,
    person_models,
    queries,
    regression,
    scale,
    scores,
    selection,
    statistics,
    whitening,
):
    app.command()(command)
