"""The benchmark of selection: its table, its peer and its picture."""

from pathlib import Path

import pytest

from snugdp_studies.bench import selection
from tests.cli.people import run


def test_the_table_is_in_order() -> None:
    pytest.importorskip("dp_accounting")
    rows = {name: mu for name, (mu,) in selection.run(epsilons=(1.0,)).items()}
    ranked = ["one run, no selection", "C2, logarithmic", "C2, geometric", "C1, geometric", "Renyi, geometric"]
    assert sorted(ranked, key=lambda name: -rows[name]) == ranked
    assert rows["C2, geometric"] >= 0.1414
    assert rows["Liu-Talwar as the paper quotes it"] < rows["all composed"]
    assert rows["dp-accounting, geometric"] == pytest.approx(rows["Renyi, geometric"], rel=5e-3)


def test_the_picture_is_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = selection.lines(counts=(30,))
    monkeypatch.setattr(selection, "lines", lambda *_: lines)
    files = [tmp_path / name for name in ("a.svg", "b.svg")]
    for file in files:
        selection.plot(file, counts=(30,))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"C2, geometric" in files[0].read_bytes()


def test_a_file_that_cannot_be_written_is_found_first() -> None:
    assert "Error" in run("bench", "selection", "--plot", "nowhere/at/all.svg", code=1).output
