"""Rows that are kept for many readings, in memory and in files: the same sums to the last bit, and no file is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

from snugdp import LinearRegression, LogisticRegression, Simulation
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.tables import images, rows
from snugdp.tables.engines import gather
from snugdp.tables.images import FiledBlock, ImagePass, Images
from snugdp.tables.layouts.whitened import WhitenedRows
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Category, Number, Schema
from snugdp.tables.spill import Spill

SCHEMA = Schema({"x": Number(-3, 3), "z": Number(-3, 3), "y": Number(-3, 3)}, target="y")


def people(number: int = 9_000) -> pl.DataFrame:
    x, z, y = np.random.default_rng(2).normal(size=(3, number))
    return pl.DataFrame({"x": x, "z": z, "y": y})


@pytest.fixture(params=[0, 40_000, 10**9])
def share(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes in memory: none, some and all."""
    monkeypatch.setattr(rows, "MAX_BYTES", request.param)
    return int(request.param)


def test_the_same_sums_wherever_rows_are_kept(share: int, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    table, work = Rows(tmp_path / "people.parquet", SCHEMA), GramPass(SCHEMA)
    read = work.pack(table.state(work))
    kept = table.images()
    assert kept is not None
    assert kept.complete
    assert kept.count == 9_000
    assert any(isinstance(block, FiledBlock) for block in kept.blocks) == (share < 10**9)
    (tmp_path / "people.parquet").unlink()  # it is not read again
    assert work.pack(table.state(work)) == read
    V, w, weights = kept.sample(500)
    assert len(V) == len(w) == len(weights)
    assert 400 <= len(V) <= 1_100


def test_the_same_fit_wherever_rows_are_kept(share: int, tmp_path: Path) -> None:
    del share
    table = people(3_000).with_columns(pl.when(pl.col("y") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("y"))
    table.write_parquet(tmp_path / "people.parquet")
    schema = Schema({"x": Number(-3, 3), "z": Number(-3, 3), "y": Category(["no", "yes"])}, target="y")
    fit = LogisticRegression(schema=schema, noise=Simulation(1)).fit(tmp_path / "people.parquet")
    assert fit.coef_.tolist() == _expected(tmp_path / "people.parquet", schema)


def _expected(path: Path, schema: Schema) -> Any:
    return LogisticRegression(schema=schema, noise=Simulation(1)).fit(pl.read_parquet(path)).coef_.tolist()


def test_a_full_disk_makes_the_table_be_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    monkeypatch.setattr(rows, "MAX_BYTES", 40_000)
    monkeypatch.setattr(Spill, "append", _no_space)
    table, work = Rows(tmp_path / "people.parquet", SCHEMA), GramPass(SCHEMA)
    read, kept = work.pack(table.state(work)), table.images()
    assert kept is not None
    assert not kept.complete
    assert work.pack(table.state(work)) == read


def test_nobody_can_open_the_file_and_it_goes_with_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has no name from the start: an interrupt, a crash or a kill leaves nothing behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    state = Images()
    state.keep((np.ones((3, 2)), np.zeros(3), 1), 0, np.float32)
    assert not list(tmp_path.iterdir())
    held = state.blocks[0]
    assert isinstance(held, FiledBlock)
    V, w, weight = held.read()
    assert (V.tolist(), w.tolist(), weight) == ([[1.0, 1.0]] * 3, [0.0] * 3, 1)
    number = held.spill._file.fileno()
    assert os.fstat(number).st_nlink == 0
    assert os.fstat(number).st_mode & 0o077 == 0
    del state, held, V, w
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_rows_stay_in_their_process() -> None:
    work = ImagePass(SCHEMA)
    with pytest.raises(TypeError, match="stay in their process"):
        work.pack(work.empty())
    with pytest.raises(TypeError, match="stay in their process"):
        work.unpack(b"")
    assert repr(work.empty()) == "<private images>"


def test_a_linear_fit_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = people(2_000)
    table.write_parquet(tmp_path / "people.parquet")
    here = LinearRegression(schema=SCHEMA, noise=Simulation(4)).fit(table).coef_
    monkeypatch.setattr(rows, "MAX_BYTES", 1_000)
    there = LinearRegression(schema=SCHEMA, noise=Simulation(4)).fit(tmp_path / "people.parquet").coef_
    assert np.array_equal(here, there)
    assert images.MAX_BYTES == 350 * 2**20


@pytest.mark.parametrize("memory", [0, 10**9])
def test_a_line_reads_its_file_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory: int) -> None:
    """All passes begin with the rows that the first one kept: those of other directions too."""
    table = people(20_000)
    table.write_parquet(tmp_path / "people.parquet")
    expected = _line(tmp_path / "people.parquet")
    monkeypatch.setattr(rows, "MAX_BYTES", memory)
    readings = _noted(monkeypatch)
    assert _line(tmp_path / "people.parquet") == expected
    assert len(readings) == 1
    monkeypatch.setattr(Spill, "append", _no_space)
    assert _line(tmp_path / "people.parquet") == expected
    assert (len(readings) > 2) == (memory == 0)  # a full disk: they are read for every pass
    assert _line(table) == expected


@pytest.mark.parametrize(("enough", "readings"), [(None, 1), (10**9, 1), (1, 2)])
def test_rows_beyond_memory_are_not_filed_where_one_pass_may_be_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, enough: int | None, readings: int
) -> None:
    """They are read a second time if it was not; the fit is the same."""
    people(20_000).write_parquet(tmp_path / "people.parquet")
    expected = _line(tmp_path / "people.parquet")
    monkeypatch.setattr(rows, "MAX_BYTES", 100_000)
    monkeypatch.setattr(WhitenedLine, "enough_rows", enough)
    read = _noted(monkeypatch)
    assert _line(tmp_path / "people.parquet") == expected
    assert len(read) == readings


@pytest.mark.parametrize("changed", [True, False])
def test_a_table_that_changes_before_it_is_read_again_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: bool
) -> None:
    """It was charged, and nothing is raised: that the first pass was not enough is private."""
    path, kept = tmp_path / "people.parquet", Rows.images
    people(20_000).write_parquet(path)
    monkeypatch.setattr(rows, "MAX_BYTES", 100_000)
    monkeypatch.setattr(WhitenedLine, "enough_rows", 1)

    def once_more(table: Rows) -> Images | None:
        if changed:
            people(10_000).write_parquet(path)
        return kept(table)

    monkeypatch.setattr(Rows, "images", once_more)
    model = LinearRegression(schema=SCHEMA).fit(path)
    assert model.released_ != changed


@pytest.mark.parametrize("number", [2_000, 20_000])
def test_without_a_file_all_rows_are_kept_or_none(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(rows, "MAX_BYTES", 100_000)  # 6,250 rows of three entries and a target
    table = Rows(people(number), SCHEMA)
    table.read(keep=True, enough=100)
    assert (table.kept() is not None) == (number == 2_000)
    assert table.moments().values() == Rows(people(number), SCHEMA).moments().values()
    kept = table.images()
    assert kept is not None
    assert kept.complete
    assert kept.count == number


def test_rows_in_other_directions_take_the_place_of_those_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_BYTES", 0)
    held = Rows(people(20_000), SCHEMA)
    before = _files(held)
    turned = WhitenedRows(held, tuple(map(tuple, np.diag([1.0, 0.5, 1.0]).tolist())), "shorten")
    assert _files(turned) == before
    assert sum(size for _, size in before) == 20_000 * 4 * 4


def _files(table: Rows) -> set[tuple[int, int]]:
    """Those that its rows are kept in, and how long each is."""
    kept = table.images()
    assert kept is not None
    spills = [block.spill for block in kept.blocks if isinstance(block, FiledBlock)]
    return {(spill._file.fileno(), os.fstat(spill._file.fileno()).st_size) for spill in spills}


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is read from now on: one pass after the other."""
    readings = list[object]()

    def noted(source: Any, work: Any, **how: Any) -> Any:
        readings.append(work)
        return gather(source, work, **how)

    monkeypatch.setattr(rows, "gather", noted)
    return readings


def _line(table: object) -> list[float]:
    fitted: list[float] = LinearRegression(schema=SCHEMA, noise=Simulation(4)).fit(table).coef_.tolist()
    return fitted


def _no_space(*_: object) -> int:
    raise OSError(28, "no space left")


@pytest.mark.parametrize("long", ["shorten", "keep", "drop"])
def test_other_directions_of_rows_that_were_kept(long: Literal["shorten", "keep", "drop"]) -> None:
    """The same whole numbers as from the table itself; the rows as they were are given up for those."""
    matrix = ((0.9, 0.1, 0.0), (-0.3, 1.7, 0.2), (0.0, 0.4, 0.8))
    before, table = Rows(people(), SCHEMA), Rows(people(), SCHEMA)
    before.read(keep=True)
    turned, read = WhitenedRows(before, matrix, long), WhitenedRows(table, matrix, long)
    work = GramPass(turned.schema)
    expected = work.pack(read.state(work))
    assert work.pack(turned.state(work)) == expected
    assert turned.images() is not None
    assert (before.kept() is None) == (long != "drop")
    assert work.pack(turned.state(work)) == expected
    assert before.moments().values() == table.moments().values()


def test_a_file_that_takes_and_gives_few_bytes_at_a_time_loses_none() -> None:
    """Systems may write and read less than they are asked to."""
    spill, block = Spill(), np.arange(60.0).reshape(5, 12)

    class Slow:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, part: memoryview) -> int:
            return int(self.file.write(part[:7]))

        def readinto(self, part: memoryview) -> int:
            return int(self.file.readinto(part[:5]))

    spill._file = Slow(spill._file)
    starts = [spill.append(b"", block, b"abc"), spill.append(np.empty((0, 3))), spill.append(b"de")]
    assert starts == [0, block.nbytes + 3, block.nbytes + 3]
    assert spill.read(0, block.nbytes).view(np.float64).tolist() == block.ravel().tolist()
    assert spill.read(block.nbytes, 5).tobytes() == b"abcde"
    with pytest.raises(OSError):
        spill.read(block.nbytes, 6)
