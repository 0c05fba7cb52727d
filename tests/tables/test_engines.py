"""The local engine: the same state for every split, no half result, and nothing private on the terminal."""

import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.secrecy.secret import PrivateComputationError, unwrap
from snugdp.tables.engines import Engine, Local, measure
from snugdp.tables.sources import TableError, base, open_source
from tests.effort import often, repeated
from tests.tables.tallies import Failing, Meddling, Tally

NUMBERS = np.linspace(-3.0, 5.0, 60_000) ** 3
TABLE = pl.DataFrame({"a": NUMBERS, "b": NUMBERS[::-1], "name": ["SECRET"] * len(NUMBERS)})
WORK = Tally(("a", "b"))
EXPECTED = unwrap(measure(TABLE, WORK))


@pytest.mark.slow
@repeated
@settings(max_examples=often(6, 18, 30), deadline=None)
@given(threads=st.integers(1, 8), size=st.integers(500, 60_000), seed=st.integers(0, 99))
def test_order_split_and_threads_do_not_matter(threads: int, size: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("snugdp.tables.sources.frames.step", lambda columns: size)
        engine: Engine = Local(threads)
        shuffled = TABLE.sample(fraction=1.0, shuffle=True, seed=seed)
        assert engine.run(open_source(shuffled), WORK) == EXPECTED


def test_the_state_is_a_secret() -> None:
    assert repr(measure(TABLE, WORK)) == "<secret>"
    assert unwrap(measure(TABLE.clear(), WORK)) == WORK.empty()


@pytest.mark.parametrize("container", ["memory", "lazy", "file"])
def test_what_fails_in_the_pass_is_not_told(container: str, tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    data = {"memory": TABLE, "lazy": TABLE.lazy(), "file": tmp_path / "t.parquet"}[container]
    with pytest.raises(PrivateComputationError) as caught:
        measure(data, Failing(("a",)))
    unlinked(caught.value)
    assert str(NUMBERS[0]) not in str(caught.value)


def unlinked(error: BaseException) -> None:
    """Neither the message nor anything that the exception drags along knows a row."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "SECRET" not in str(error)


def test_a_query_that_fails_on_a_row_is_not_told() -> None:
    query = TABLE.lazy().with_columns(pl.col("name").cast(pl.Float64, strict=True).alias("a"))
    with pytest.raises(TableError, match="withheld") as caught:
        measure(query, WORK)
    unlinked(caught.value)


def files(folder: Path) -> None:
    for i in range(6):
        TABLE[i * 10_000 : (i + 1) * 10_000].write_parquet(folder / f"{i}.parquet")


def test_a_file_that_vanishes_during_the_pass(tmp_path: Path) -> None:
    files(tmp_path)
    with pytest.raises(TableError, match=r"5\.parquet vanished") as caught:
        measure(tmp_path, Meddling(("a",), tmp_path / "5.parquet"))
    unlinked(caught.value)


def test_a_file_that_is_replaced_after_it_was_opened(tmp_path: Path) -> None:
    files(tmp_path)
    source = open_source(tmp_path)
    TABLE.write_parquet(tmp_path / "3.parquet")
    with pytest.raises(TableError, match=r"3\.parquet was changed"):
        measure(source, WORK)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_damaged_in_the_middle(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    write: Any = TABLE.write_parquet if ending == "parquet" else TABLE.write_ipc
    write(path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[8:400] = b"\xff" * 392  # headers of the first pages; damaged values would need checksums to be seen
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"damaged|read to its end|not a whole file") as caught:
        measure(path, WORK)
    unlinked(caught.value)


def test_rows_that_go_missing_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    real = base.Batch

    def losing(query: pl.LazyFrame, columns: int) -> Any:
        yield real(open_source(query.collect()[:-1])._frame)  # type: ignore[attr-defined]

    monkeypatch.setattr("snugdp.tables.sources.files.streamed", losing)
    with pytest.raises(TableError, match="could not be read to its end"):
        measure(tmp_path / "t.parquet", WORK)


def test_the_bar_shows_bytes_and_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path)
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    assert unwrap(measure(tmp_path, WORK)) == EXPECTED
    assert screen.getvalue() == ""  # no terminal
    screen.isatty = lambda: True  # type: ignore[method-assign]
    assert unwrap(measure(tmp_path, WORK)) == EXPECTED
    assert "reading" in screen.getvalue()
    assert "60000" not in screen.getvalue().replace(",", "")
    screen.truncate(0)
    assert unwrap(measure(tmp_path, WORK, progress=False)) == EXPECTED
    assert unwrap(measure(TABLE, WORK)) == EXPECTED
    assert "reading" not in screen.getvalue()


def test_no_row_raises_warns_or_prints(capfd: pytest.CaptureFixture[str]) -> None:
    odd = pl.DataFrame({"a": [float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, None], "b": [None] * 6})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unwrap(measure(odd, WORK))[0] == 6
    assert capfd.readouterr() == ("", "")
