"""``snugdp audit``: every claim of the library against what is measured."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from snugdp.cli.errors import in_plain_words
from snugdp.cli.outputs import can_write

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugdp.audit.mutants import Verdict
    from snugdp.audit.run import Report

_MARKS = ("<!-- mutants: begin -->", "<!-- mutants: end -->")
_STATISTICAL = "SICDNLE"


def audit(
    *,
    mechanism: Annotated[
        str | None, typer.Argument(help="A mechanism, a class, a group, or the beginning of a name; by default all.")
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="Take about an hour, or minutes.")] = False,
    layers: Annotated[str | None, typer.Option(help="Layers by letter, separated by commas, such as S,D.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with tables and curves.")] = None,
    mutants: Annotated[
        bool, typer.Option(help="Also make every known mistake on purpose, and see who notices.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="With --mutants: put their table into this page, between its marks.")
    ] = None,
    clean: Annotated[
        int, typer.Option(min=0, help="Repeat the statistical layers this often, and count false alarms.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The seed; with --clean, the first of several.")] = 0,
    processes: Annotated[int, typer.Option(min=0, help="Parallel processes; 0 for one per processor.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
) -> None:
    """Compare every claim with measurements, by mechanism and layer. The exit code is 1 if anything failed.

    Example: snugdp audit median --layers D,N
    """
    console = Console(stderr=as_json)
    workers = processes or os.cpu_count() or 1
    letters = None if layers is None else list(layers.replace(",", ""))
    with in_plain_words():
        if clean:
            _clean(console, mechanism, letters, range(seed, seed + clean), workers)
            return
        only_mutants = mutants and markdown is not None
        _can_end(report, markdown, mutants=mutants)
        found = None if only_mutants else _audited(console, mechanism, letters, full=full, seed=seed, workers=workers)
        if found is not None:
            _show(console, found, as_json)
            _write(console, report, found, [])
        verdicts = _mutants(console, workers) if mutants else []
        if markdown is not None:
            _into(markdown, verdicts)
        if found is not None and verdicts:
            _write(console, report, found, verdicts)
    lost = [one for one in verdicts if not one.caught and not one.mutant.known]
    if lost or (found is not None and not found.passed):
        raise typer.Exit(1)


def _can_end(report: Path | None, markdown: Path | None, *, mutants: bool) -> None:
    """What would fail after an hour is tried before it."""
    can_write(report, markdown)
    if markdown is None:
        return
    if not mutants or report is not None:
        raise ValueError("--markdown is for the table of --mutants alone: give --mutants, and no --report")
    if not all(mark in markdown.read_text(encoding="utf-8") for mark in _MARKS):
        raise ValueError(f"{markdown} has no lines {' and '.join(_MARKS)} for the table to go between")


def _write(console: Console, report: Path | None, found: Report, verdicts: Sequence[Verdict]) -> None:
    from snugdp.report.audit import page

    if report is not None:
        report.write_text(page(found, verdicts), encoding="utf-8")
        console.print(f"{report}", highlight=False)


def _audited(
    console: Console,
    mechanism: str | None,
    letters: Sequence[str] | None,
    *,
    full: bool,
    seed: int,
    workers: int,
    times: int = 1,
) -> Report:
    from snugdp.audit import registry
    from snugdp.audit.run import audit as run

    cases = None if mechanism is None else registry.matching(mechanism)
    few = cases is not None and len(cases) * times < 8  # processes take longer to start than these to run
    given: dict[str, Any] = {"processes": 1 if few else workers, "seed": seed, "times": times}
    with _bar(console, "audit") as tick:
        return run(cases, quick=not full, layers=letters, progress=tick, **given)


def _clean(console: Console, mechanism: str | None, letters: Sequence[str] | None, seeds: range, workers: int) -> None:
    """The statistical layers again and again on the code as it is: whatever fails is a false alarm, or a mistake."""
    found = _audited(
        console,
        mechanism,
        letters or list(_STATISTICAL),
        full=False,
        seed=seeds.start,
        workers=workers,
        times=len(seeds),
    )
    for failure in found.failures:
        console.print(str(failure), highlight=False, markup=False)
    claims, alarms = len(found.findings), len(found.failures)
    console.print(f"{len(seeds)} runs: {claims:,} claims, {alarms} alarms", highlight=False)
    if alarms:
        raise typer.Exit(1)


def _mutants(console: Console, workers: int) -> list[Verdict]:
    from snugdp.audit.mutants import mutants, run_mutants

    with _bar(console, "mistakes on purpose") as tick:
        done: list[Verdict] = []

        def told(verdict: Verdict) -> None:
            done.append(verdict)
            tick(len(done), len(mutants()), verdict.mutant.name)

        verdicts = run_mutants(progress=told, processes=workers)
    table = Table("no.", "mistake", "caught by", "where, or why not", title=_score(verdicts))
    for one in sorted(verdicts, key=lambda one: (one.caught, one.mutant.number)):
        where = f"{one.case}: {one.measured}" if one.caught else one.reason
        table.add_row(str(one.mutant.number), one.mutant.name, one.layer or "nobody", where[:160])
    console.print(table)
    return verdicts


def mutants_table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as a table for a page of the documentation."""
    head = [_score(verdicts), "", "| no. | mistake | what it does | caught by | where |", "|---|---|---|---|---|"]
    rows = []
    for one in verdicts:
        where = one.case if one.caught else f"**survives**: {one.reason}"
        cells = (str(one.mutant.number), one.mutant.name, one.mutant.does, one.layer or "nobody", where)
        rows.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join([*head, *rows])


def _score(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(one.caught for one in verdicts)} of {len(verdicts)} mistakes on purpose were caught."


def _into(place: Path, verdicts: Sequence[Verdict]) -> None:
    """Put the table between the marks of a page."""
    text = place.read_text(encoding="utf-8")
    begin, end = _MARKS
    block = f"{begin}\n\n{mutants_table(verdicts)}\n\n{end}"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    place.write_text(pattern.sub(lambda _: block, text), encoding="utf-8")


def _show(console: Console, found: Report, as_json: bool) -> None:
    from snugdp.report.audit import by_layer, grouped

    if as_json:
        shown = {"passed": found.passed, "findings": [asdict(one) for one in found.findings]}
        typer.echo(json.dumps({**shown, "versions": dict(found.versions), "seconds": found.elapsed}, indent=1))
        return
    for group, findings in grouped(found):
        table = Table("layer", "of", "claimed", "measured", "", title=group)
        for one in findings:
            mark = f"{one.layer}" if one.passed else f"[red]{one.layer} FAILED[/red]"
            table.add_row(mark, one.case, one.claim, one.measured[:120], one.detail[:160])
        console.print(table)
    table = Table("layer", "", "claims", "failed", "processor, s")
    for letter, name, count, wrong, seconds in by_layer(found):
        table.add_row(letter, name, str(count), f"[red]{wrong}[/red]" if wrong else "0", f"{seconds:.0f}")
    console.print(table)
    for failure in found.failures:
        console.print(str(failure), style="red", markup=False, highlight=False)
    held = len(found.findings) - len(found.failures)
    console.print(f"{held} of {len(found.findings)} claims hold; {found.elapsed:.0f} s", highlight=False)


@contextmanager
def _bar(console: Console, what: str) -> Iterator[Callable[[int, int, str], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of, name: bar.update(task, completed=done, total=of, description=f"{what}: {name}"[:60])
