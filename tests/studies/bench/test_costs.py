"""What single operations cost is measured: ours beside peers, and imports in processes of their own."""

import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from snugdp_studies.bench.costs import charge_times, import_costs, noise_times


def test_every_sampler_is_timed_and_ours_is_faster_than_opendp() -> None:
    pytest.importorskip("opendp.prelude")
    rows = noise_times(repeats=1)
    assert rows[0].name == "snugdp, exact rounded Gaussian"
    assert rows[0].relative == 1.0
    assert all(0 < row.min_s <= row.median_s for row in rows)
    assert all(row.relative > 3 for row in rows if row.name.startswith("OpenDP"))


def test_without_opendp_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match="pip install opendp"):
        noise_times(repeats=1)
    with pytest.raises(ValueError, match="repeats"):
        noise_times(repeats=0)


def test_what_a_process_prints_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(command: list[str], text: bool) -> str:
        with redirect_stdout(io.StringIO()) as printed:
            exec(command[2], {})
        return printed.getvalue()

    monkeypatch.setattr(subprocess, "check_output", here)
    (one,) = import_costs(("Budget",), repeats=2)
    assert (one.name, one.modules) == ("Budget", 0)  # all is loaded
    assert 0 <= one.min_s <= one.median_s
    assert one.own > 1


@pytest.mark.nightly
def test_imports_are_measured() -> None:
    light, heavy = import_costs(("Budget", "LinearRegression"), repeats=1)
    assert 0 < light.min_s <= light.median_s
    assert 1 < light.own < heavy.own
    assert light.modules <= heavy.modules


def test_charges_beside_a_bare_write(tmp_path: Path) -> None:
    rows = {row.name: row for row in charge_times(10, str(tmp_path), entries=(300, 600))}
    compared = [name for name, row in rows.items() if row.relative is not None]
    assert [name.partition(":")[0] for name in compared] == [
        "bare write", "SQLite alone", "the same with room in its log", "charge after 300 entries",
        "charge after 600 entries", "charge and outcome",
    ]  # fmt: skip
    assert rows[compared[0]].relative == 1
    assert {"open 300 entries, charge, close", "the last 20 of 600 entries"} < rows.keys()
    assert all(0 < row.p50_ms <= row.p99_ms for row in rows.values())
    assert not list(tmp_path.iterdir())
