"""Well-formed CSV: what csv, pandas and polars wrote is read cell by cell; everything else is refused as a whole."""

import csv
import gzip
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import snugdp
from snugdp.secrecy.secret import unwrap
from snugdp.tables.cells import numbers
from snugdp.tables.engines import measure
from snugdp.tables.schema.schema import Number, Schema
from snugdp.tables.sources import Csv, TableError, open_source
from snugdp.tables.sources import csv as reader
from tests.effort import often, repeated, sampled
from tests.tables.tallies import Tally

Row = tuple[str | None, ...]
NAMES = ["a", "b", "c"]
BLOCKS = st.sampled_from([1, 3, 16, 1 << 22])
RAW = st.lists(st.sampled_from([*',"\n\r a1', '""', '"\n', '"\r\n', ',"', "\n"]), max_size=40).map("".join)
CELL = st.text(st.sampled_from('ab1 ,;"\n\r\x00\x01\x1f\u2028€\ufeff') | st.sampled_from("\n\r"), max_size=6)
TABLE = st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=6)


def rows(path: Path, **options: Any) -> list[Row]:
    """The rows of a file in their order, after the check."""
    given = Csv(path, **{"names": NAMES, **options})
    (part,) = open_source(given).partitions()
    part.verify()  # type: ignore[attr-defined]
    return [row for batch in part.batches(given.names or NAMES) for row in batch.frame.rows()]


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def padded(table: list[list[str]]) -> list[Row]:
    return [tuple(cell or None for cell in [*row, "", "", ""][:3]) for row in table]


def ended(content: str) -> str:
    return content if content.endswith("\n") or not content else content + "\n"


def by_the_standard_library(content: str) -> list[Row]:
    """With a carriage return that no line feed follows as text, and one line feed too few at the end made up for."""
    lone = re.sub("\r(?!\n)", "\x02", ended(content))
    found = csv.reader(io.StringIO(lone, newline=""), strict=True)
    return padded([[cell.replace("\x02", "\r") for cell in row] for row in found])


def is_well_formed(content: str) -> bool:
    """By hand, a letter at a time."""
    state = "start"
    content = ended(content)
    for letter, follower in zip(content, content[1:] + "\n", strict=False):
        if state == "quoted":
            state = "closed" if letter == '"' else "quoted"
        elif letter in ",\n":
            state = "start"
        elif letter == '"':
            if state == "plain":
                return False
            state = "quoted"
        elif state == "closed":
            if letter + follower != "\r\n":
                return False
        else:
            state = "plain"
    return state == "start"


@repeated
@settings(max_examples=often(50, 150, 400), deadline=None)
@given(content=RAW, block=BLOCKS)
def test_any_text_is_refused_or_read_as_the_standard_library_does(
    tmp_path_factory: Any, content: str, block: int
) -> None:
    path = written(tmp_path_factory.mktemp("csv"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_BLOCK", block)
        if is_well_formed(content):
            expected = by_the_standard_library(content)
            assert rows(path) == expected
            patch.setattr(reader, "_STAND_INS", b"")  # record by record instead of with polars
            assert rows(path) == expected
        else:
            with pytest.raises(TableError, match="not a well-formed CSV file") as caught:
                rows(path)
            assert caught.value.__context__ is None
            assert str(caught.value) == reader._ill_formed(path, ",")  # which says nothing of where or what


def by_csv(table: list[list[str]], path: Path, style: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        quoting, line = style
        csv.writer(file, quoting=quoting, lineterminator=line).writerows(table)


def by_pandas(table: list[list[str]], path: Path, style: Any) -> None:
    quoting, line = style
    pd.DataFrame(table).to_csv(path, index=False, header=False, quoting=quoting, lineterminator=line)


def by_polars(table: list[list[str]], path: Path, style: Any) -> None:
    quoting, line = style
    quotes: Any = {csv.QUOTE_ALL: "always", csv.QUOTE_MINIMAL: "necessary"}[quoting]
    frame = pl.DataFrame(table, schema=dict.fromkeys(NAMES, pl.String), orient="row")
    frame.write_csv(path, include_header=False, quote_style=quotes, line_terminator=line)


STYLES = st.tuples(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), st.sampled_from(["\n", "\r\n"]))


@sampled(3)
@pytest.mark.parametrize("write", [by_csv, by_pandas, by_polars])
@repeated
@settings(max_examples=often(20, 60, 100), deadline=None)
@given(table=TABLE, style=STYLES, block=BLOCKS)
def test_what_a_writer_wrote_is_read(
    tmp_path_factory: Any, write: Any, table: list[list[str]], style: Any, block: int
) -> None:
    assume(table)
    # a carriage return at the end of a line, which some writers leave without quotes, is part of the line end; and a
    # mark at the start of a file is no text
    table[0][0] = table[0][0].lstrip("\ufeff")
    table = [[*row[:2], row[2].rstrip("\r")] for row in table]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write(table, path, style)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_BLOCK", block)
        assert rows(path) == padded(table)


@repeated
@settings(max_examples=often(30, 80, 200), deadline=None)
@given(content=RAW.filter(is_well_formed), table=TABLE, line=st.sampled_from(["\n", "\r\n"]), data=st.data())
def test_one_more_record_changes_no_other_row(
    tmp_path_factory: Any, content: str, table: list[list[str]], line: str, data: st.DataObject
) -> None:
    record = data.draw(st.lists(CELL, min_size=1, max_size=5))
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in record)
    folder = tmp_path_factory.mktemp("csv")
    before = rows(written(folder, content))
    after = rows(written(folder, ended(content) + quoted + line))
    assert after == [*before, *padded([record])]


def test_one_record_is_one_row_whatever_it_holds(tmp_path: Path) -> None:
    lines = "".join(f"{i},{i}\n" for i in range(50))
    swallowed = "0.5,0.25\n" * 2000
    path = written(tmp_path, f'x,y\n{lines}1,"{swallowed}"\n')
    assert unwrap(measure(path, Tally(("x",))))[0] == 51
    assert unwrap(measure(Csv(path, multiline=False), Tally(("x",))))[0] == 2051


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_names_may_have_line_breaks_and_a_mark_is_no_text(ending: str, mark: str, tmp_path: Path) -> None:
    path = written(tmp_path, mark + f'"a\nb",c,"d\r\ne"{ending}1,"2\n",3{ending}')
    source = open_source(path)
    assert list(source.types) == ["a\nb", "c", "d\r\ne"]
    assert unwrap(measure(source, Tally(("a\nb", "c")))) == [1, 1 << 30, 0, 2 << 30, 0]
    assert next(iter(open_source(Csv(path, multiline=False)).types)).startswith("a")


@pytest.mark.parametrize("multiline", [False, True])
def test_a_file_whose_lines_end_in_carriage_returns_is_no_table_without_rows(multiline: bool, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="carriage return"):
        open_source(Csv(written(tmp_path, "a,b\rx,y\rz,w\r"), multiline=multiline))


ILL_FORMED = [
    b'1,"SECRET',  # never closed
    b'1,"SECRET"x\n',  # text behind the closing quote
    b'1,SEC"RET\n',  # a quote in a cell that has none around it
    b'1,SEC""RET\n',
    b'1, "SECRET"\n',
    b'1,"SEC"RET"\n',
    b'1,"SECRET"\r2\n',
]


@sampled(4)
@pytest.mark.parametrize("wrong", ILL_FORMED)
@pytest.mark.parametrize("packed", [False, True])
def test_an_ill_formed_file_is_refused_before_the_charge(wrong: bytes, packed: bool, tmp_path: Path) -> None:
    content = b"x,y\n" + b"0.5,0.5\n" * 2000 + wrong + b"\n0.5,0.5\n" * 3
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    book = snugdp.MemoryLedger(10, 1e-3, composition="tight")
    untouched = book.spent
    schema = Schema({"x": Number(0, 1), "y": Number(0, 1)}, target="y")
    with pytest.raises(TableError) as caught:
        snugdp.LinearRegression(epsilon=1, delta=1e-6, schema=schema, ledger=book).fit(path)
    with pytest.raises(TableError):
        snugdp.private_bounds(path, columns=["x"], epsilon=1, ledger=book)
    assert str(caught.value) == reader._ill_formed(path, ",")
    assert caught.value.__context__ is None
    assert book.spent == untouched
    assert unwrap(measure(Csv(path, multiline=False), Tally(("x",))))[0] > 2000


def test_all_files_of_a_folder_are_checked_before_the_first_row_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x\n1\n")
    (tmp_path / "b.csv").write_bytes(b'x\n1\n"2\n')
    seen: list[int] = []

    class Seeing(Tally):
        def fold(self, state: list[int], frame: Any) -> list[int]:
            seen.append(len(frame))
            return super().fold(state, frame)

    with pytest.raises(TableError, match=r"b\.csv is not a well-formed"):
        measure(tmp_path, Seeing(("x",)))
    assert not seen


def test_a_file_that_changes_behind_the_check_is_never_read_in_another_way(tmp_path: Path) -> None:
    source = open_source(written(tmp_path, "x\n1\n22\n"))
    source.check(Tally(("x",)))
    stamp = source.partitions()[0].stamp  # type: ignore[attr-defined]
    written(tmp_path, 'x\n1\n"2\n')
    with pytest.raises(TableError):
        measure(source, Tally(("x",)))
    os.utime(tmp_path / "t.csv", ns=(stamp.changed, stamp.changed))  # nothing to be seen from outside
    with pytest.raises(TableError, match="well-formed"):
        measure(source, Tally(("x",)))


@sampled(3)
@pytest.mark.parametrize("filler", ["x", "\n", '""', ',""\r\n'])
@pytest.mark.parametrize("block", [64, 300])
def test_a_giant_record_is_missing_and_its_neighbours_are_not(
    filler: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(reader, "_BLOCK", block)
    for before, after in (("1,2,3\n", '4,"5\n",6\n'), ("", "7\n"), ("1\n", "")):
        content = f'{before}8,"{filler * 1000}",9\r\n{after}'
        expected = rows(written(tmp_path, before)), rows(written(tmp_path, after))
        assert rows(written(tmp_path, content)) == [*expected[0], (None, None, None), *expected[1]]


def test_bytes_that_are_no_text_stay_in_their_cell(tmp_path: Path) -> None:
    path = written(tmp_path, b'\xff,"\xe2\x82\n",3\n\xe2"x\n'.replace(b'\xe2"', b"\xe2,"))
    assert rows(path) == [("\ufffd", "\ufffd\n", "3"), ("\ufffd", "x", None)]


def test_separators_of_other_kinds(tmp_path: Path) -> None:
    path = written(tmp_path, '1;"2,5;\n";3\n')
    assert rows(path, separator=";") == [("1", "2,5;\n", "3")]
    path = written(tmp_path, '1\x01"\x02\n\r\x01"\x01\x033\n')
    assert rows(path, separator="\x01") == [("1", "\x02\n\r\x01", "\x033")]


@pytest.mark.parametrize("multiline", [True, False])
@pytest.mark.parametrize(("names", "separator"), [("a,b;c", ","), ('"a,b";c', ";"), ("a\tb", "\t"), ("a b", ",")])
def test_the_names_show_the_separator(names: str, separator: str, multiline: bool, tmp_path: Path) -> None:
    path = written(tmp_path, f"{names}\n1,2;3\t4,5\nx;y\tz\n")
    known, given = ({"path": path, "multiline": multiline, "separator": one} for one in (None, separator))
    tables = [open_source(Csv(**options)) for options in (known, given)]  # type: ignore[arg-type]
    assert list(tables[0].types) == list(tables[1].types)
    cells = [
        [row for part in table.partitions() for batch in part.batches(list(table.types)) for row in batch.frame.rows()]
        for table in tables
    ]
    assert cells[0] == cells[1]


def test_rows_never_show_the_separator(tmp_path: Path) -> None:
    path = written(tmp_path, "1;2;3\n4;5;6\n")
    assert rows(path) == [("1;2;3", None, None), ("4;5;6", None, None)]


def test_a_column_of_row_numbers_and_empty_ones_at_the_end_need_no_name(tmp_path: Path) -> None:
    table = open_source(Csv(written(tmp_path, ",age,city,,\n0,31,Oslo,,\n")))
    assert list(table.types) == ["Unnamed: 0", "age", "city", "Unnamed: 3", "Unnamed: 4"]
    for wrong in ("age,,city\n31,,Oslo\n", ",,\n1,2,3\n", "31,,Oslo\n"):
        with pytest.raises(TableError, match="where names should be"):
            open_source(Csv(written(tmp_path, wrong)))


def test_quotes_around_a_number_change_nothing(tmp_path: Path) -> None:
    content = "".join(f'{cell},"{cell}"\n' for cell in ("1", " 2 ", "-0", "1e400", "TRUE", "?", "１", "1_000", "0x10"))
    (part,) = open_source(Csv(written(tmp_path, content), names=["a", "b"])).partitions()
    (batch,) = part.batches(["a", "b"])
    one, other = (numbers(batch.frame[name].to_native()) for name in ("a", "b"))
    expected = [1.0, 2.0, 0.0, np.inf, 1.0, np.nan, np.nan, np.nan, np.nan]
    assert np.array_equal(one, expected, equal_nan=True)
    assert np.array_equal(other, expected, equal_nan=True)
