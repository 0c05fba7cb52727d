"""At most so many rows of each person: a function of that person's own rows, in every container and order."""

import datetime
import io
import math
import os
import random
import stat
import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import cell as one
from snugdp.tables.engines import Local
from snugdp.tables.persons import images, keep, keep_rows, order, passes
from snugdp.tables.persons.images import person_image
from snugdp.tables.persons.state import Held
from snugdp.tables.sources import DuckDB, Source, TableError, open_source
from snugdp_studies.audit.side_channels.inputs import object_array
from tests.effort import often, repeated, sampled
from tests.tables.cells.odd import ODD
from tests.tables.persons.tables import KEY, NAMES, Row, content, kept, some_rows, table


def of_person(rows: list[Row], person: Any) -> list[Row]:
    return [row for row in rows if row[0] == person]


@sampled(2)
@repeated
@pytest.mark.parametrize("most", [1, 2])
def test_every_small_table_is_the_union_of_its_persons(most: int) -> None:
    """Lemma 0 by brute force: what is kept of a person does not depend on anybody else, nor on the order."""
    cells = [(0, 0.5, "a"), (0, 0.5, "b"), (0, 1.0, "a"), (1, 0.5, "a"), (1, 1.0, "b")]
    alone = {}
    for rows in combinations_with_replacement(cells, often(1 + most, 4, 5)):
        for person in (0, 1):
            mine = tuple(of_person(list(rows), person))
            if mine not in alone:
                alone[mine] = kept(table(mine), most)
                assert alone[mine].total() == min(len(mine), most)
                assert alone[mine] <= Counter(row[1:] for row in mine)
        parts = [alone[tuple(of_person(list(rows), person))] for person in (0, 1)]
        for some in (rows, rows[::-1]):
            assert kept(table(some), most) == parts[0] + parts[1]


@sampled(2)
@repeated
@pytest.mark.parametrize("most", [1, 3])
def test_a_person_that_comes_goes_or_changes_moves_its_own_rows_only(most: int) -> None:
    for seed in range(often(2, 12, 200)):
        rows = some_rows(seed, 60, 8)
        before = kept(table(rows), most)
        for person in (0, 5):
            without = [row for row in rows if row[0] != person]
            gone = kept(table(without), most)
            assert gone <= before
            assert (before - gone) == kept(table(of_person(rows, person)), most)
            other = [*without, *((person, *row[1:]) for row in some_rows(-seed - 1, 9, 3))]
            changed = kept(table(other), most)
            assert (before - changed).total() <= most
            assert (changed - before).total() <= most


def test_rows_without_an_identifier_are_persons_of_their_own() -> None:
    rows = some_rows(1, 80, 3)
    nobody = of_person(rows, None)
    assert len(nobody) > 10
    found = kept(table(rows), 1)
    assert found == kept(table([row for row in rows if row[0] is not None]), 1) + kept(table(nobody), 1)
    assert found.total() == 3 + len(nobody)
    for odd in (np.nan, "nan", "", None, [1, 2], object(), pd.NaT):
        assert kept(pd.DataFrame({"id": pd.Series([odd] * 3, dtype=object), "x": 1, "k": "a"})).total() == 3


CONTAINERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "polars": lambda rows, _: rows,
    "lazy": lambda rows, _: rows.lazy(),
    "polars text": lambda rows, _: rows.cast(pl.String),
    "polars category": lambda rows, _: rows.cast(pl.String).cast(pl.Categorical),
    "pandas": lambda rows, _: rows.to_pandas(),
    "pandas objects": lambda rows, _: rows.to_pandas().astype(object),
    "pandas text": lambda rows, _: rows.cast(pl.String).to_pandas(),
    "pandas string": lambda rows, _: rows.cast(pl.String).to_pandas().astype("string"),
    "pandas category": lambda rows, _: rows.to_pandas().astype("category"),
    "pyarrow": lambda rows, _: rows.to_arrow(),
    "single": lambda rows, _: rows.cast({"x": pl.Float32}),
    "csv": lambda rows, path: written(rows.write_csv, path / "rows.csv"),
    "parquet": lambda rows, path: written(rows.write_parquet, path / "rows.parquet"),
    "arrow": lambda rows, path: written(rows.write_ipc, path / "rows.arrow"),
    "files": lambda rows, path: [written(rows[i::3].write_parquet, path / f"{i}.parquet") for i in range(3)],
    "duckdb": lambda rows, path: in_database(rows, path / "rows.duckdb"),
}


def written(write: Callable[[Path], Any], path: Path) -> Path:
    write(path)
    return path


def in_database(rows: pl.DataFrame, path: Path) -> DuckDB:
    duckdb = pytest.importorskip("duckdb")
    arrow = rows.to_arrow()
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow", arrow)
        connection.sql("create table rows as select * from arrow")
    return DuckDB(path, "select * from rows")


def cells(source: Source, name: str) -> list[Any]:
    return [
        cell for part in source.partitions() for some in part.batches([name]) for cell in some.frame[name].to_list()
    ]


TEXTS = ["a", "é", "", None, "7"]
DAYS = [datetime.date(2020, 1, 1), datetime.date(1999, 12, 31)]


def mixed_rows() -> pl.DataFrame:
    """Numbers, text, dates, booleans and missing cells; fractions that single precision does not hold."""
    choose = random.Random(5)
    rows = [
        (choose.choice([None, *range(12)]), choose.choice([0.1, 3.7, 1e-9, None, 5.0]), choose.choice(TEXTS),
         choose.choice(DAYS), choose.choice([True, False]))
        for _ in range(500)
    ]  # fmt: skip
    names = {"id": pl.Int64, "x": pl.Float64, "k": pl.String, "day": pl.Date, "yes": pl.Boolean}
    return pl.DataFrame(rows, schema=names, orient="row")


@sampled(16)
@pytest.mark.parametrize("container", CONTAINERS)
def test_all_containers_keep_the_same_rows(container: str, tmp_path: Path) -> None:
    rows, names = mixed_rows(), ("x", "k", "day", "yes")
    rows = rows.with_columns(pl.col("k").replace("", None))
    data = CONTAINERS[container](rows.sample(fraction=1, shuffle=True, seed=3), tmp_path)
    for most in (1, 4):
        assert kept(data, most, names=names) == kept(rows, most, names=names)
    source = keep_rows(open_source(data), names, "id", 2, KEY)
    assert source.types == {name: open_source(data).types[name] for name in names}
    assert source.inferred == open_source(data).inferred


@pytest.mark.slow
def test_text_persons_and_the_order_of_columns(tmp_path: Path) -> None:
    rows = mixed_rows().with_columns(id="person " + pl.col("id").cast(pl.String))
    expected = kept(mixed_rows(), 40)
    assert kept(rows, 40).total() == expected.total()
    for container in ("pandas", "pandas objects", "pandas category", "pyarrow", "csv", "parquet", "polars category"):
        assert kept(CONTAINERS[container](rows, tmp_path), 2) == kept(rows, 2)
    assert {(k, x): n for (x, k), n in kept(rows, 2).items()} == kept(rows, 2, names=NAMES[::-1])


@sampled(3)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_cuts_threads_and_orders_do_not_matter(threads: int) -> None:
    rows = table(some_rows(2, 9000, 400))
    work = keep.KeepPass(NAMES, "id", KEY, 2)
    expected = kept(rows, 2)
    for seed in range(3):
        source = open_source(rows.sample(fraction=1, shuffle=True, seed=seed))
        held = Local(threads=threads).run(source, work)
        parts = list(passes.results(held, work))
        assert content(passes.PersonSource(source, work.types(source), parts), NAMES) == expected


@sampled(10)
@pytest.mark.parametrize("room", [40_000, 3_000])
@pytest.mark.parametrize("container", ["polars", "pyarrow", "csv", "parquet"])
def test_what_does_not_fit_into_memory_is_the_same(
    room: int, container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(some_rows(3, 2000, 300))
    expected = [kept(rows, most) for most in (1, 5)]
    depths = set()
    put_away = Held._put_away

    def watched(self: Held) -> None:
        depths.add(self._depth)
        put_away(self)

    monkeypatch.setattr(Held, "_put_away", watched)
    monkeypatch.setattr(passes, "MAX_BYTES", room)
    data = CONTAINERS[container](rows, tmp_path)
    assert [kept(data, most) for most in (1, 5)] == expected
    assert depths
    assert kept(rows.to_pandas(), 5) == expected[1]  # is in memory anyhow, and stays there


def test_what_is_left_in_memory_joins_what_is_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows go into files, and the few after them are not many enough to follow."""
    rows = table(some_rows(3, 2000, 300, missing=False))
    expected = kept(rows, 2)
    monkeypatch.setattr(keep.KeepPass, "room", 8_000)
    work = keep.KeepPass(NAMES, "id", KEY, 2)
    held = work.empty()
    for part in (rows[:1990], rows[1990:]):
        held = work.fold(held, nw.from_native(part, eager_only=True))
    assert held.is_in_files()
    source = open_source(rows)
    assert content(passes.PersonSource(source, work.types(source), [*passes.results(held, work)]), NAMES) == expected


def test_files_have_no_name_and_the_mode_600(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MAX_BYTES", 3000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source: Any = keep_rows(open_source(table(some_rows(3, 2000, 600))), NAMES, "id", 2, KEY)
    blocks = [part for part in source._parts if not hasattr(part, "columns")]
    assert blocks
    assert not list(tmp_path.iterdir())
    assert stat.S_IMODE(os.fstat(blocks[0].spill._file.fileno()).st_mode) == 0o600
    assert repr(blocks[0]) == "<private spilledrows>"


def test_an_unreadable_temporary_file_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MAX_BYTES", 3000)
    source: Any = keep_rows(open_source(table(some_rows(3, 2000, 600))), NAMES, "id", 2, KEY)
    next(part for part in source._parts if not hasattr(part, "columns")).spill._file.truncate(0)
    with pytest.raises(TableError, match="temporary file") as caught:
        content(source, NAMES)
    assert caught.value.__context__ is None


def same_hash(*_: Any) -> Any:
    return np.zeros(len(_[-1]), dtype=np.uint64)


@pytest.mark.slow
@repeated
def test_rows_of_the_same_hash_are_ordered_by_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(passes.PersonPass, "row_words", same_hash)
    big = 2**53
    ids, whole = [1, 1, 1, 2, 2], [big + 1, big, big + 2, 0, 0]
    rows = pl.DataFrame({"id": ids, "x": whole, "k": ["07", "7", "7.0", "", None]})
    found = keep_rows(open_source(rows), ["x"], "id", 1, KEY)
    assert sorted(cells(found, "x")) == [0, big]
    for container in ("polars", "pandas", "pyarrow", "csv", "parquet", "pandas objects", "pandas text"):
        texts = set()
        for seed in range(often(3, 6)):
            data = CONTAINERS[container](rows.sample(fraction=1, shuffle=True, seed=seed), tmp_path)
            some = keep_rows(open_source(data), NAMES, "id", 2, KEY)
            texts.add(tuple(sorted(map(str, cells(some, "k")))))
        assert len(texts) == 1, container
    for most in (1, 2):
        assert kept(table(some_rows(4, 300, 9)), most) == kept(table(some_rows(4, 300, 9)[::-1]), most)


def _objects_of(ids: pd.Series, numbers: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"id": ids, "x": pd.Series(object_array(numbers), dtype=object)})


@sampled(6)
@pytest.mark.parametrize("odd", [b"\xff", "\ud800", 10**5000, b"x", None], ids=range(5))
def test_an_odd_cell_does_not_change_how_others_are_ordered(odd: Any) -> None:
    """b"7" and b"07" have the same image, and are told apart by how they are written."""
    for same in ([b"7", b"07", b"007"], ["7", "07", "007"], [7, "7", b"7"]):
        found = set()
        for turn in range(3):
            for more in ([], [odd]):
                rows = [*same[turn:], *same[:turn], *more]
                ids = pd.Series([1] * 3 + [2] * len(more))
                some = keep_rows(open_source(_objects_of(ids, rows)), ["x"], "id", 1, KEY)
                found.add(next(repr(cell) for cell in cells(some, "x") if cell is not odd and one.number(cell) == 7))
        assert len(found) == 1
    if type(odd) is bytes:
        frames = [pl.DataFrame({"id": [1, 1, 2], "x": [*two, odd]}) for two in ([b"7", b"07"], [b"07", b"7"])]
        assert len({cells(keep_rows(open_source(f), ["x"], "id", 1, KEY), "x")[0] for f in frames}) == 1


def test_how_a_column_is_written_has_no_say_before_what_others_hold() -> None:
    """One text makes objects of floats: 7 and 7.0 are then written differently, and ``b`` must decide as before."""
    single = float(np.float32(0.1))  # with the hash of 0.1
    found = set()
    for odd in ([], ["x"], [None], [b"7"]):
        others = [2] * len(odd)
        rows = pd.DataFrame({"id": [1, 1, *others], "a": [7, 7.0, *odd], "b": [single, 0.1, *map(float, others)]})
        some = keep_rows(open_source(rows), ["a", "b"], "id", 1, KEY)
        found.add(min(cells(some, "b")))
    assert found == {0.1}


@pytest.mark.parametrize("zone", [None, "UTC", "+05:30", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_equal_times_are_kept_in_every_zone(zone: str | None, unit: str) -> None:
    """Only where rows are equal is it asked how they are written: that must not fail, or else it tells of them."""
    times = pa.array([0, 0, 0, 1], pa.timestamp(unit, zone))
    rows = pa.table({"id": [1, 1, 2, 2], "x": times})
    assert sum(content(keep_rows(open_source(rows), ["x"], "id", 1, KEY), ["x"]).values()) == 2


def test_persons_of_the_same_hash_stay_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = mixed_rows().with_columns(id="person " + pl.col("id").cast(pl.String))
    alone = kept(rows, 200)
    monkeypatch.setattr(images, "text_words", lambda texts, key: np.full(len(texts), 7, dtype=np.uint64))
    for seed in range(4):
        some = rows.sample(fraction=1, shuffle=True, seed=seed)
        assert kept(some, 200) == alone
        assert kept(some, 1).total() == 12 + rows["id"].null_count()
        monkeypatch.setattr(passes, "MAX_BYTES", 3000)
        assert kept(some, 1).total() == 12 + rows["id"].null_count()


def test_bits_that_do_not_decide_are_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few bits almost all persons share them."""
    expected = [kept(table(some_rows(7, 3000, 300)), most) for most in (1, 2, 6)]
    monkeypatch.setattr(order, "_HASH_BITS", 50)
    assert [kept(table(some_rows(7, 3000, 300)), most) for most in (1, 2, 6)] == expected
    monkeypatch.setattr(order, "_HASH_BITS", 1)
    assert [kept(table(some_rows(7, 3000, 300)), most) for most in (1, 2, 6)] == expected


@pytest.mark.slow
@repeated
def test_the_key_decides_and_every_row_has_its_turn() -> None:
    """Each of four rows is kept by about a quarter of the keys, and two persons with the same rows differ."""
    rows = pl.DataFrame({"id": [0] * 4 + [1] * 4, "x": [1.0, 2.0, 3.0, 4.0] * 2, "k": "a"})
    turns: Counter[tuple[float, float]] = Counter()
    for key in range(often(96, 320, 2000)):
        source = keep_rows(open_source(rows), ["id", "x"], "id", 1, key * (2**64 + 1))
        turns[tuple(x for _, x in sorted(content(source, ["id", "x"])))] += 1
    assert len(turns) == 16
    assert max(turns.values()) < 3 * turns.total() / 16  # a thirtieth of 1e-6, and of other keys no other result
    assert {len(kept(rows, key=key)) for key in range(40)} == {1, 2}
    assert kept(table(some_rows(1, 99, 9)), 1, key=1) != kept(table(some_rows(1, 99, 9)), 1, key=1 << 64)


def test_the_hash_is_the_same_on_every_machine() -> None:
    """Beside the same hash in plain whole numbers."""
    columns: dict[str, list[Any]] = {"id": [7, 7, 8], "x": [0.1, None, 2.0], "k": ["Rome", "é" * 9, ""]}
    work = keep.KeepPass(NAMES, "id", KEY, 1)
    held = work.fold(work.empty(), nw.from_native(pl.DataFrame(columns), eager_only=True))
    keys = plain_keys(3)
    expected = []
    for person, x, k in zip(*columns.values(), strict=True):
        who = mix(bits(float(person)) ^ keys[0])
        after = mix(who ^ (plain_text(k, keys[1]) if k else bits(math.nan) ^ keys[1]))
        single = math.nan if x is None else float(np.float32(x))
        expected.append(mix(after ^ bits(single) ^ keys[2]))
    assert held._index[0]["hash"].to_list() == expected == HASHES


HASHES = [4750545384429579911, 1026758023338763338, 10509668575884066920]
GOLDEN, WORD = 0x9E3779B97F4A7C15, 2**64 - 1


def mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def plain_keys(number: int) -> list[int]:
    low, high = KEY & WORD, KEY >> 64
    return [mix((mix(mix((i * GOLDEN + low) & WORD) ^ high) + low) & WORD) for i in range(1, number + 1)]


def plain_text(text: str, key: int) -> int:
    data, total = text.encode(), 0
    for place, start in enumerate(range(0, len(data), 8)):
        word = int.from_bytes(data[start : start + 8], "little")
        total += mix(word ^ mix((place * GOLDEN + key) & WORD))
    return mix((total & WORD) ^ mix((len(data) + key) & WORD))


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


LARGE = 2**60


def test_odd_identifiers(tmp_path: Path) -> None:
    """7, 7.0 and "7" are one person; what a loader inferred does not matter."""
    mixed = pd.DataFrame({"id": pd.Series([7, 7.0, "7", b"7", True, 1, "x", b"x", "1970-01-02"], dtype=object)})
    mixed = mixed.assign(x=range(9), k="a")
    assert kept(mixed).total() == 4
    days = pl.DataFrame(
        {"id": [datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 2)], "x": 0, "k": "a"}, strict=False
    )
    assert kept(days.cast({"id": pl.Datetime("ms")})).total() == 1
    large = pl.DataFrame({"id": [LARGE, LARGE + 1, LARGE + 2, LARGE + 1], "x": [1, 2, 3, 4], "k": "a"})
    expected = kept(CONTAINERS["csv"](large, tmp_path))
    assert expected.total() == 3
    texts = pl.DataFrame({"id": ["1e999", "2e999", "1234e567", "2e999"], "x": [1, 2, 3, 4], "k": "a"})
    for container in ("parquet", "arrow", "duckdb", "polars", "lazy", "pyarrow", "pandas string"):
        assert kept(CONTAINERS[container](large, tmp_path)) == expected, container
        assert container == "duckdb" or kept(CONTAINERS[container](texts, tmp_path)).total() == 3, container


def _csv(ids: list[Any]) -> io.StringIO:
    return io.StringIO("id,x\n" + "".join(f"{'' if each is None else each},{x}\n" for x, each in enumerate(ids)))


PLAIN: dict[str, Callable[[list[Any]], Any]] = {  # of guessed types
    "pandas": lambda ids: _frame(pd.Series(ids)),
    "objects": lambda ids: _frame(pd.Series(ids, dtype=object)),
    "numpy": lambda ids: _frame(pd.Series(np.array(ids))),
    "categories": lambda ids: _frame(pd.Series(ids).astype("category")),
    "one by one": lambda ids: pd.concat([_frame(pd.Series([each])).assign(x=x) for x, each in enumerate(ids)]),
    "pandas, CSV": lambda ids: pd.read_csv(_csv(ids)),
}
DECLARED: dict[str, Callable[[list[Any]], Any]] = {
    "pandas, text": lambda ids: pd.read_csv(_csv(ids), dtype={"id": "string"}),
    "pandas, Arrow": lambda ids: pd.read_csv(_csv(ids), dtype_backend="pyarrow"),
    "polars": lambda ids: _frame(pl.Series(ids, strict=False)),
    "polars, CSV": lambda ids: pl.read_csv(_csv(ids)),
    "pyarrow": lambda ids: _frame(pa.array(ids)),
}
CELLS = (
    None, np.nan, 0.5, 2.0**60, -0.0, "abc", "é", "", "x" * 9999, " 9007199254740993 ", "1e300", "nan", b"x", True,
    2**62, 2**70, -(2**60), Decimal("1e30"), Fraction(1, 3), datetime.date(2020, 1, 1), (1,), [1], object, 1j, pd.NA,
)  # fmt: skip


@pytest.mark.parametrize("loader", [*PLAIN, *DECLARED])
def test_one_odd_identifier_moves_no_other_person(loader: str) -> None:
    """A loader may change a whole column because of one cell: what it may have guessed tells no large numbers apart.

    Of a type that is declared, or has a missing value of its own, they are told apart; a fraction among them is the one
    cell that makes floats of it.
    """
    small, large = [12, 22, 2**53 - 1, 2**53 - 1, 5, 2**53 - 2, 22], [2**53, 2**53 + 1, 2**53, 17, 2**53]
    load = {**PLAIN, **DECLARED}[loader]
    for numbers, persons in ((small, 5), (large, 1 if loader in PLAIN else 3)):
        expected = kept(load(numbers), names=["x"])
        assert expected.total() == persons
        for odd in CELLS:
            worked, more = attempt(lambda odd=odd, numbers=numbers: load([*numbers, odd]))  # type: ignore[misc]
            if worked and more is not None and not (loader in DECLARED and _has_floats(more)):
                found = kept(more, names=["x"])
                found.pop((float(len(numbers)),), None)
                assert found == expected, odd


def _has_floats(table: Any) -> bool:
    column = table["id"]
    return "float" in str(getattr(column, "dtype", "")).lower() or "double" in str(getattr(column, "dtype", column))


def test_a_missing_identifier_moves_nobody_in_pandas_and_numpy() -> None:
    """Plain columns of 64 bits are the same persons with and without a gap, whatever the size of identifiers."""
    for ids in ([7, 2**53 + 1, 9, 2**60], [1, 2, 3]):
        without, gap = kept(_frame(pd.Series(ids)), names=["x"]), kept(_frame(pd.Series([*ids, None])), names=["x"])
        assert gap == without + Counter({(float(len(ids)),): 1})


def test_two_persons_are_never_one_because_floats_are_short() -> None:
    """Of a person who comes or goes at most one row does, and nobody else's: whatever the size of identifiers."""
    rows = [(2**53 + who, float(10 * who + each), "a") for who in range(4) for each in range(3)]
    before = kept(table(rows))
    for person in range(4):
        gone = kept(table([row for row in rows if row[0] != 2**53 + person]))
        assert gone <= before
        assert (before - gone).total() == 1
    floats = table(rows).cast({"id": pl.Float64})
    assert not kept(floats)
    assert not kept(floats.filter(pl.col("x") > 10))


def _frame(ids: Any) -> Any:
    x = list(range(len(ids)))
    if isinstance(ids, pd.Series):
        return pd.DataFrame({"id": ids, "x": x})
    return pl.DataFrame({"id": ids, "x": x}) if isinstance(ids, pl.Series) else pa.table({"id": ids, "x": x})


@pytest.mark.slow
@repeated
def test_hostile_cells_disturb_nobody() -> None:
    """As content, and as an identifier."""
    persons, numbers = [i % 5 for i in range(40)], list(range(40))
    before = kept(_objects(persons, numbers), 2)
    for cell in ODD[:: often(13, 2, 1)]:
        found = kept(_objects([*persons, "somebody"], [*numbers, cell]), 2)
        assert (found - before).total() == 1
        assert not before - found
        rows = _objects([*persons, cell], [*numbers, 99])
        lost = person_image(nw.from_native(rows["id"], series_only=True)).lost
        assert lost is None or not lost[:40].any()
        assert kept(rows, 9).total() == 41 - (lost is not None and bool(lost[40]))


def _objects(persons: list[Any], numbers: list[Any]) -> pd.DataFrame:
    columns = {"id": object_array(persons), "x": object_array(numbers)}
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()}).assign(k="a")


def test_lists_of_keys_are_told_apart() -> None:
    lists = [["a"], ["a", "b"], ["ab"], [], None, ["b", "a"]] * 2
    for data in (pl.DataFrame({"id": 1, "x": lists}), pd.DataFrame({"id": 1, "x": pd.Series(lists, dtype=object)})):
        for key in range(5):
            source = keep_rows(open_source(data), ["x"], "id", 2, key)
            first, second = map(str, cells(source, "x"))
            assert first == second  # equal rows have one hash


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"person": "nobody"}, TableError, 'no column "nobody"'),
        ({"columns": ["z"]}, TableError, 'no column "z"'),
        ({"columns": []}, ValueError, "at least one column"),
        ({"most": 0}, ValueError, "from 1 on"),
        ({"most": True}, ValueError, "from 1 on"),
        ({"key": 2**128}, ValueError, "drawn independently"),
        ({"key": 1.5}, ValueError, "drawn independently"),
        ({"person": "single"}, TypeError, "single precision"),
        ({"person": "list"}, TypeError, "text, whole numbers or dates, not List"),
    ],
)
def test_what_is_public_is_refused_up_front(change: dict[str, Any], error: type[Exception], words: str) -> None:
    rows = pl.DataFrame({"id": [1], "x": [1.0], "single": pl.Series([1.0], dtype=pl.Float32), "list": [[1]]})
    given: dict[str, Any] = {"columns": ["x"], "person": "id", "most": 1, "key": 1}
    with pytest.raises(error, match=words):
        keep_rows(open_source(rows), **(given | change))


def test_what_fails_on_the_way_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(keep, "by_piece", failing)
    with pytest.raises(PrivateComputationError) as caught:
        kept(table(some_rows(1, 50, 4)))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None
    assert "SECRET" not in repr(Held())


def test_an_empty_table() -> None:
    assert not kept(table([]))
    assert not kept(table([]).to_pandas())
