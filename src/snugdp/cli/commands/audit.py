"""``snugdp audit``: claims against what is measured."""

from __future__ import annotations

import json
import os
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
from snugdp.cli.options import can_write

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugdp.audit.run import Report

_STATISTICAL = "SICDNLE"


def audit(
    *,
    mechanism: Annotated[
        str | None, typer.Argument(help="A mechanism, a class, a group, or the beginning of a name; by default all.")
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="Take about an hour, or minutes.")] = False,
    layers: Annotated[str | None, typer.Option(help="Layers by letter, separated by commas, such as S,D.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with tables and curves.")] = None,
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
        can_write(report)  # what would fail after an hour is tried before it
        result = _audited(console, mechanism, letters, full=full, seed=seed, workers=workers)
        _show(console, result, as_json)
        if report is not None:
            from snugdp.report.audit import page

            report.write_text(page(result), encoding="utf-8")
            console.print(f"{report}", highlight=False)
    if not result.passed:
        raise typer.Exit(1)


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
    if cases is None and registry.library() is None and registry.registered():
        console.print(registry.INSTALL, highlight=False)
    few = cases is not None and len(cases) * times < 8  # processes take longer to start than these to run
    given: dict[str, Any] = {"processes": 1 if few else workers, "seed": seed, "times": times}
    with _bar(console, "audit") as tick:
        return run(cases, quick=not full, layers=letters, progress=tick, **given)


def _clean(console: Console, mechanism: str | None, letters: Sequence[str] | None, seeds: range, workers: int) -> None:
    """The statistical layers again and again on the code as it is: whatever fails is a false alarm, or a mistake."""
    result = _audited(
        console,
        mechanism,
        letters or list(_STATISTICAL),
        full=False,
        seed=seeds.start,
        workers=workers,
        times=len(seeds),
    )
    for failure in result.failures:
        console.print(str(failure), highlight=False, markup=False)
    claims, alarms = len(result.findings), len(result.failures)
    console.print(f"{len(seeds)} runs: {claims:,} claims, {alarms} alarms", highlight=False)
    if alarms:
        raise typer.Exit(1)


def _show(console: Console, result: Report, as_json: bool) -> None:
    from snugdp.report.audit import by_layer, grouped

    if as_json:
        shown = {"passed": result.passed, "findings": [asdict(one) for one in result.findings]}
        typer.echo(json.dumps({**shown, "versions": dict(result.versions), "seconds": result.elapsed}, indent=1))
        return
    for group, findings in grouped(result):
        table = Table("layer", "of", "claimed", "measured", "", title=group)
        for one in findings:
            mark = f"{one.layer}" if one.passed else f"[red]{one.layer} FAILED[/red]"
            table.add_row(mark, one.case, one.claim, one.measured[:120], one.detail[:160])
        console.print(table)
    table = Table("layer", "", "claims", "failed", "processor, s")
    for letter, name, count, wrong, seconds in by_layer(result):
        table.add_row(letter, name, str(count), f"[red]{wrong}[/red]" if wrong else "0", f"{seconds:.0f}")
    console.print(table)
    for failure in result.failures:
        console.print(str(failure), style="red", markup=False, highlight=False)
    held = len(result.findings) - len(result.failures)
    console.print(f"{held} of {len(result.findings)} claims hold; {result.elapsed:.0f} s", highlight=False)


@contextmanager
def _bar(console: Console, what: str) -> Iterator[Callable[[int, int, str], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of, name: bar.update(task, completed=done, total=of, description=f"{what}: {name}"[:60])
