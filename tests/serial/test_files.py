"""Files with results: for their owner only, whole or not there, without text that a spreadsheet would compute."""

import csv
import os
import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import snugdp
from snugdp.serial import files
from snugdp.serial.files import result_file, without_formula, without_formulas, write_table, write_text
from tests.cli.people import run

FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+2",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "=",
    "-",
    "--1",
    "+-1",
    "\n=1",
    " =1",
    "\u00a0@x",
    "\uff1d1+1",
)
HARMLESS = ("a=b", "-1", "+1.5", "-.5e-3", "1", "", "x", "'=1", "a -1", " x")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_cells_and_names_are_no_formulas(tmp_path: Path) -> None:
    assert [without_formula(cell) for cell in FORMULAS] == [f"'{cell}" for cell in FORMULAS]
    assert [without_formula(cell) for cell in (*HARMLESS, -1, 2.5, None)] == [*HARMLESS, -1, 2.5, None]
    frame = pl.DataFrame({"=x": [*FORMULAS, *HARMLESS, None], "n": range(-9, len(FORMULAS) + len(HARMLESS) - 8)})
    frame = frame.with_columns(pl.col("=x").cast(pl.Categorical).alias("c"))
    safe = without_formulas(frame)
    expected = [*(f"'{cell}" for cell in FORMULAS), *HARMLESS, None]
    assert safe.columns == ["'=x", "n", "c"]
    assert safe["'=x"].to_list() == safe["c"].to_list() == expected
    assert safe["n"].to_list() == frame["n"].to_list()
    write_table(frame, tmp_path / "raw.csv", raw_text=True)
    assert pl.read_csv(tmp_path / "raw.csv").columns[0] == "=x"
    write_table(frame, tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet")["=x"].to_list() == frame["=x"].to_list()


def test_a_new_file_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "a", "1")
        (tmp_path / "b").write_text("")
        (tmp_path / "b").chmod(0o640)
        write_text(tmp_path / "b", "2")
        monkeypatch.setenv("SNUGDP_FILE_MODE", "644")
        write_text(tmp_path / "c", "3")
        write_text(tmp_path / "a", "4")
        monkeypatch.setenv("SNUGDP_FILE_MODE", "rw")
        with pytest.raises(ValueError, match="three octal digits"):
            write_text(tmp_path / "d", "5")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in "abc"] == [0o600, 0o640, 0o644]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def interrupted(path: Path) -> None:
    with result_file(path) as fresh:
        Path(fresh).write_text("half")
        raise KeyboardInterrupt


def test_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "a", "old")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "new"
    monkeypatch.setattr(files, "_flush", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_text(tmp_path / "a", "newer")
    assert (tmp_path / "a").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2
    write_text("/dev/null", "gone")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a crash could leave an empty file in the place of an older one."""
    done: list[str] = []

    def noted(name: str, real: Any) -> Any:
        def call(*given: Any) -> Any:
            done.append(name)
            return real(*given)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    model = snugdp.LinearRegression(x_norm=1, y_bound=1, noise=snugdp.Simulation(1)).fit([[0.5]] * 20, [0.5] * 20)
    snugdp.save(model, tmp_path / "model.json")
    assert done == ["fsync", "replace"]


def test_what_the_commands_write(tmp_path: Path) -> None:
    """Models, predictions and exports, under a umask that lets everybody read."""
    before = os.umask(0o022)
    try:
        rows = pl.DataFrame({"x": [0.5] * 50, "y": [0.25] * 50, "name": ["=1+1", "ann"] * 25})
        rows.write_csv(tmp_path / "rows.csv")
        where = tmp_path / "l"
        with snugdp.Ledger.open(where, dataset="p", budget=snugdp.Budget(2)) as ledger:
            ledger.charge(snugdp.Cost(epsilon=1), "=cmd", key="@key")
        model = snugdp.LinearRegression(epsilon=1, x_norm=1, y_bound=1, method="adassp")
        snugdp.save(model.fit(rows.select("x"), rows["y"]), tmp_path / "m.json")
        for out, raw in ((tmp_path / "safe.csv", ()), (tmp_path / "raw.csv", ("--raw-text",))):
            run("predict", tmp_path / "m.json", tmp_path / "rows.csv", "--keep", "name", "-o", out, *raw)
            run("ledger", "export", where, "--format", "csv", "-o", tmp_path / f"e{out.name}", *raw)
        run("predict", tmp_path / "m.json", tmp_path / "rows.csv", "-o", tmp_path / "p.parquet")
        run("report", tmp_path / "m.json", "-o", tmp_path / "r.html")
        names = ("m.json", "safe.csv", "raw.csv", "esafe.csv", "eraw.csv", "p.parquet", "r.html", "l", "l.anchor")
        assert {name: mode(tmp_path / name) for name in names} == dict.fromkeys(names, 0o600)
    finally:
        os.umask(before)
    assert pl.read_csv(tmp_path / "safe.csv")["name"][:2].to_list() == ["'=1+1", "ann"]
    assert pl.read_csv(tmp_path / "raw.csv")["name"][:2].to_list() == ["=1+1", "ann"]
    for name, mark in (("esafe.csv", "'"), ("eraw.csv", "")):
        (line,) = csv.DictReader((tmp_path / name).read_text().splitlines())
        assert (line["what"], line["key"], line["epsilon"]) == (f"{mark}=cmd", f"{mark}@key", "1")
