"""Layer B at every entry point of the library: bad input, what must be asked for, and what is kept or said."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from snugdp.audit.finding import Finding
from snugdp.audit.side_channels.calls import bad_input, call_with, watch
from snugdp_studies.audit.side_channels.canaries import ROWS, canaries, columns, tables
from snugdp_studies.audit.side_channels.entry_points import EntryPoint, entry_points
from snugdp_studies.audit.side_channels.inputs import inputs


def bad_inputs(*, full: bool = False, names: Iterable[str] | None = None, part: slice = slice(None)) -> list[Finding]:
    """Bad input for every estimator and query of ``snugdp.__all__``, and whether what is public is asked for.

    Quick: more than 200 bad inputs for each. Full: all methods, every content in every form that can hold it.
    ``part``: of the forms.
    """
    found = []
    for one in entry_points(full=full, names=None if names is None else set(names)):
        groups = list(inputs(one.takes, full=full, rows_are_public=one.rows_are_public))[part]
        found.append(bad_input(one.name, one.release, groups))
        found += [demanded(one, what) for what in one.without]
    return found


def demanded(one: EntryPoint, what: str) -> Finding:
    """Whether a release without a public parameter is refused, in the same words whatever the rows are."""
    group = next(inputs(one.takes, rows_are_public=one.rows_are_public))
    seen = {watch(partial(call_with, one.without[what], given))[0] for given in group}
    passed = len(seen) == 1 and bool(next(iter(seen)).error)
    detail = "" if passed else "; ".join(sorted(map(str, seen)))
    said = "refused" if passed else f"{len(seen)} different answers"
    return Finding("B", one.name, f"without {what} nothing is released", said, passed, detail)


def kept(names: Iterable[str] | None = None) -> list[Finding]:
    """Canaries for every estimator and query of ``snugdp.__all__``."""
    found = []
    for one in entry_points(names=None if names is None else set(names)):
        data = columns(40 if one.rows_are_public else ROWS) if one.takes == "column" else tables()
        found.append(canaries(one.name, one.release, data))
    return found
