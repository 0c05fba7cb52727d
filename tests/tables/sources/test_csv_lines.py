"""CSV by lines: every text has an answer, a cell disturbs no other row, and all ways to split a block agree.

Files that must be well formed, the default, have tests of their own (``test_csv``).
"""

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import measure
from snugdp.tables.sources import Csv, TableError
from snugdp.tables.sources import csv as reader
from tests.effort import often, repeated, sampled
from tests.tables.tallies import Tally, Words

PIECES = st.lists(
    st.sampled_from("\",\n\ra1 '€\x00#\\\u2028") | st.sampled_from(["\r\n", ".5", "1e999", "nan"]), max_size=60
).map("".join)
CELLS = st.text(st.sampled_from('ab1 .,"\n€'), max_size=6)


def read(content: bytes, folder: Path) -> dict[str, int]:
    (folder / "t.csv").write_bytes(content)
    given = Csv(folder / "t.csv", names=["a", "b", "c"], multiline=False)
    return unwrap(measure(given, Words(("a", "b", "c"))))


def tally(rows: Sequence[Sequence[str | None]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        key = repr(tuple(cell or None for cell in [*row, None, None, None][:3]))
        found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items()))


@pytest.mark.slow
@repeated
@settings(max_examples=often(40, 100, 300), deadline=None)
@given(body=PIECES, block=st.sampled_from([1, 7, 64, 1 << 22]))
def test_every_text_has_an_answer_and_blocks_do_not_matter(tmp_path_factory: Any, body: str, block: int) -> None:
    folder = tmp_path_factory.mktemp("csv")
    content = b"x,y,z\n" + body.encode()
    expected = read(content, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_BLOCK", block)
        assert read(content, folder) == expected
        patch.setattr(reader, "_quotes", lambda block, separator: "irregular")
        assert read(content, folder) == expected


@repeated
@settings(max_examples=often(30, 80, 200), deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1), quoting=st.sampled_from([0, 1]))
def test_what_a_writer_wrote_without_line_breaks_is_read(
    tmp_path_factory: Any, rows: list[list[str]], quoting: int
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL if quoting else csv.QUOTE_MINIMAL).writerows([["x", "y", "z"], *rows])
    lines = buffer.getvalue().encode().replace(b"\r\n", b"\0").replace(b"\n", b" ").replace(b"\0", b"\n")
    found = read(lines, tmp_path_factory.mktemp("csv"))
    assert found == tally([["x", "y", "z"], *([cell.replace("\n", " ") for cell in row] for row in rows)])


LINE = PIECES.map(lambda piece: piece.replace("\n", " "))


@pytest.mark.slow
@repeated
@settings(max_examples=often(30, 80, 200), deadline=None)
@given(lines=st.lists(LINE, max_size=8), data=st.data())
def test_a_line_is_a_row_of_its_own(tmp_path_factory: Any, lines: list[str], data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("csv")
    alone: dict[str, int] = {}
    for line in lines:
        alone = Words(()).merge(alone, read(f"{line}\n".encode(), folder))
    shuffled = data.draw(st.permutations(lines))
    assert read("".join(f"{line}\n" for line in shuffled).encode(), folder) == alone
    assert sum(alone.values()) == len(lines)


@repeated
@settings(max_examples=often(40, 100, 300), deadline=None)
@given(line=LINE)
def test_a_line_is_split_as_the_standard_library_does_it(line: str) -> None:
    line = line.replace("\r", " ")
    expected = next(csv.reader([line]), []) or [""]
    assert reader._row(line, reader._cell(","), None) == expected


def test_an_open_quote_ends_with_its_line(tmp_path: Path) -> None:
    content = b'0.5,"a,z\n' + b"1.5,b\n" * 50
    assert read(content, tmp_path) == {"('0.5', 'a,z', None)": 1, "('1.5', 'b', None)": 50}
    assert read(b"\r\n".join(content.split(b"\n")), tmp_path) == read(content, tmp_path)


@pytest.mark.parametrize("first", [b"1,2,3,4,5", b"1\r2", b'"', b"x" * 200_000, b"", b"\xff,a,a"])
def test_where_names_are_given_the_first_line_is_a_row_like_others(first: bytes, tmp_path: Path) -> None:
    for content in (first + b"\n1,2,3\n", b"1,2,3\n" + first + b"\n"):
        found = read(content, tmp_path)
        assert found["('1', '2', '3')"] == 1 + first.startswith(b"1,2,3")
        assert sum(found.values()) == 2


@pytest.mark.parametrize("body", [b"1,2\n", b'1,"2\n', b'1,"2"\n'])
def test_settings_of_the_process_stay_as_they_are(body: bytes, tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    read(body, tmp_path)
    assert csv.field_size_limit() == 131_072


def test_a_giant_line_at_the_start_leaves_its_neighbours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(reader, "_BLOCK", 64)
    assert read(b"1\n2" + b"x" * 2000 + b"\n3\n", tmp_path) == tally([["1"], [], ["3"]])


def test_ragged_lines_bytes_that_are_no_text_and_a_byte_order_mark(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfa,b\n1\n1,2,3,4\n\xff\xfe,5\n\n,\n"
    (tmp_path / "t.csv").write_bytes(content)
    assert unwrap(measure(tmp_path / "t.csv", Tally(("a", "b")))) == [5, 2 << 30, 3, 7 << 30, 3]
    (tmp_path / "n.csv").write_bytes(b"\xef\xbb\xbf1,2\n")
    assert unwrap(measure(Csv(tmp_path / "n.csv", names=["a", "b"]), Tally(("a",)))) == [1, 1 << 30, 0]


@sampled(5)
@pytest.mark.parametrize("neighbour", [b"6", b'"6', b'"6""'])
@pytest.mark.parametrize("giant", [b"1,", b'"1",', b'"1""",'])
@pytest.mark.parametrize("length", [300_000, 2_000_000])
def test_a_giant_line_is_missing_whatever_its_neighbours_are(
    neighbour: bytes, giant: bytes, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MAX_RECORD_BYTES", 1_000_000)
    monkeypatch.setattr(reader, "_BLOCK", 70_000)
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n" + giant + b" " * length + b"3\n4,5\n6," + neighbour)
    read, number = length < 1_000_000, neighbour != b'"6""'
    found = unwrap(measure(Csv(tmp_path / "t.csv", multiline=False), Tally(("b",))))
    assert found == [4, (2 + 3 * read + 5 + 6 * number) << 30, (not read) + (not number)]


@pytest.mark.slow
def test_a_truncated_gzip_file_is_an_error_and_not_a_smaller_table(tmp_path: Path) -> None:
    lines = "".join(f"{i},{i * i % 997}\n" for i in range(200_000))
    whole = gzip.compress(b"a,b\n" + lines.encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"t\.csv\.gz is damaged") as caught:
        measure(tmp_path / "t.csv.gz", Tally(("a",)))
    assert caught.value.__context__ is None
