"""The doors: every entry point, every container, odd cells and odd rows; and that a door left open is noticed."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.tables.cells import columns, rows
from snugdp_studies.audit.side_channels import doors as audited
from snugdp_studies.audit.side_channels.doors import containers, doors, odd_cells
from snugdp_studies.audit.side_channels.entry_points import HANDED_ON, EntryPoint, entry_point_names
from tests.effort import often, repeated, sampled

ENTRIES = [name for name in entry_point_names() if name not in HANDED_ON]


@pytest.fixture(autouse=True)
def nobody_quotes_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders ask cells that raise, and pytest would ask them for their repr to tell that."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)


@pytest.mark.slow
@sampled(33, 1)
@repeated
@pytest.mark.parametrize(("turn", "name"), list(enumerate(ENTRIES)), ids=ENTRIES)
def test_an_odd_cell_or_row_changes_nothing_else(turn: int, name: str) -> None:
    """In every so manyth container, others for each entry point; at night in all of them, with every odd cell."""
    every, full = often(8, 8, 1), often(0, 0, 1) == 1
    (finding,) = doors(names=[name], full=full, part=slice(turn % every, None, every))
    assert finding.passed, str(finding)
    tried = int(finding.measured.split()[2].replace(",", ""))
    assert tried >= {1: 10_000, 8: 10}[every]


def test_every_entry_point_is_a_door() -> None:
    """``entry_point_names`` raises for a public name that reads rows and is not covered."""
    estimators = {name for name in snugdp.__all__ if callable(getattr(getattr(snugdp, name), "fit", None))}
    queries = {"median", "quantile", "trimmed_mean", "mode", "vote", "private_bounds", "select", "pate.label"}
    queries |= {
        "quantile_interval",
        "quantile_table",
        "quantiles",
        "interquartile_range",
        "minimum",
        "maximum",
        "median (test)",
        "quantile (test)",
    }
    queries |= {"count", "sum", "mean", "variance", "standard_deviation", "proportion", "histogram", "group_by"}
    queries |= {"covariance", "correlation"}
    assert estimators | queries <= set(ENTRIES)
    page = (Path(__file__).parents[4] / "docs" / "promise.md").read_text()
    assert all(f"`{name.partition(' (')[0]}`" in page for name in ENTRIES), "docs/promise.md lists them all"


def test_containers_and_cells_are_many(tmp_path: Path) -> None:
    assert len(containers(tmp_path)) >= 20
    assert len(odd_cells()) >= 100


def broken(name: str) -> str:
    (finding,) = doors(names=[name], part=slice(4))
    assert not finding.passed
    return finding.detail


def test_a_column_that_becomes_text_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: text in a column of objects made all its cells text."""
    each = columns.each

    def promoted(cells: Any, image: Any, missing: float) -> Any:
        text = any(isinstance(cell, str) for cell in cells) and any(isinstance(cell, int) for cell in cells)
        return np.full(len(cells), missing) if text else each(cells, image, missing)

    monkeypatch.setattr(columns, "each", promoted)
    assert "another answer" in broken("median")


@pytest.mark.slow
def test_a_shape_that_one_row_decides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: rows of different lengths were an error."""
    grid = rows.grid

    def strict(given: Any, width: int | None = None) -> Any:
        if len({len(row) for row in given if isinstance(row, list)}) > 1:
            raise ValueError("the rows of X have different lengths")
        return grid(given, width)

    monkeypatch.setattr(rows, "grid", strict)
    assert "different lengths" in broken("LinearRegression")


def test_a_warning_about_one_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    release = snugdp.Median.release

    def loud(self: Any, data: Any, **given: Any) -> Any:
        if any(isinstance(cell, str) for cell in data):
            warnings.warn("there is text in the column", UserWarning, stacklevel=2)
        return release(self, data, **given)

    monkeypatch.setattr(snugdp.Median, "release", loud)
    assert "there is text" in broken("median")


@pytest.mark.slow
def test_a_type_that_is_refused_for_one_cell_is_noticed(tmp_path: Path) -> None:
    def choosy(data: Any) -> Any:
        if any(cell is None for cell in data):
            raise TypeError("a cell is missing")
        return snugdp.vote(data, candidates=[0, 1], epsilon=1, noise=snugdp.Simulation(1))

    finding = audited._found(EntryPoint("choosy", "column", choosy), containers(tmp_path), full=False)
    assert not finding.passed
    assert "a cell is missing" in finding.detail
