"""Teachers of tables of any size: the same votes from every container, and one person reaches one teacher."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from sklearn.naive_bayes import GaussianNB

from snugdp import MemoryLedger, PATEClassifier, Simulation, Unit
from snugdp.estimators.pate import piles, tables
from snugdp.estimators.pate.records import TEACHER, RowRecords
from snugdp.estimators.pate.rows import Form
from snugdp.estimators.pate.tables import RecordPass
from snugdp.estimators.pate.teachers import Tolerance
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.engines import gather
from snugdp.tables.sources import DuckDB, TableError, open_source
from tests.effort import sampled
from tests.estimators.pate.panels import FEATURES, QUERIES, TABLE, Watchful, lines, votes

PLACES = ("pandas", "arrow", "other order", "query", "parquet", "csv", "files", "duckdb")


def placed(place: str, folder: Path) -> Any:
    """The table somewhere else."""
    path = folder / f"rows.{'csv' if place == 'csv' else 'parquet'}"
    (TABLE.write_csv if place == "csv" else TABLE.write_parquet)(path)
    if place == "files":
        path.unlink()
        for number in range(3):
            TABLE[number::3].write_parquet(folder / f"rows{number}.parquet")
        return str(folder / "rows*.parquet")
    if place == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(folder / "rows.duckdb")) as connection:
            connection.execute(f"create table rows as select * from '{path}'")
        return DuckDB(folder / "rows.duckdb", "select * from rows")
    frames = {
        "pandas": TABLE.to_pandas,
        "arrow": TABLE.to_arrow,
        "other order": lambda: TABLE.sample(fraction=1, shuffle=True, seed=4),
        "query": TABLE.lazy,
    }
    return frames.get(place, lambda: str(path))()


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("place", PLACES)
def test_the_same_votes_from_every_container(place: str, person: str | None, tmp_path: Path) -> None:
    assert votes(placed(place, tmp_path), Watchful(), person) == votes(TABLE, Watchful(), person)


@pytest.mark.parametrize("person", [None, "who"])
def test_the_same_votes_where_there_is_no_room(
    person: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = votes(TABLE, Watchful(), person)
    TABLE.write_parquet(tmp_path / "rows.parquet", row_group_size=20)
    monkeypatch.setattr(piles, "ROOM", 2000)
    for data in (TABLE, str(tmp_path / "rows.parquet")):
        assert votes(data, Watchful(), person, n_jobs=None) == here


@pytest.mark.parametrize("model", [GaussianNB(), lines()])
def test_models_of_scikit_learn_vote_the_same(model: Any, tmp_path: Path) -> None:
    queries = QUERIES.select("a", "b")
    for asked in (queries, queries.to_pandas()):
        here = votes(TABLE.reverse(), model, nan=False, queries=asked)
        assert votes(placed("csv", tmp_path), model, nan=False, queries=asked) == here
        assert np.sum(here) == len(queries) * 6


def test_a_teacher_that_fails_abstains() -> None:
    here = np.array(votes(TABLE, Watchful()))
    for failure in (ValueError, SystemExit, MemoryError):
        fewer = np.array(votes(TABLE, Watchful(fails=failure)))
        assert (fewer <= here).all()
        assert 0 < fewer.sum() < here.sum()


# One person reaches one teacher.

CELLS = [(x, label) for x in (0.0, 1.0) for label in ("no", "yes")]


def parts(rows: list[tuple[Any, ...]], key: int, person: bool) -> dict[int, Any]:
    """The rows of every teacher, in their order."""
    table = pl.DataFrame(rows, schema={"x": pl.Float64, "label": pl.String, "who": pl.String}, orient="row")
    form = Form.of(pl.DataFrame({"x": [0.5]}))
    records = RowRecords(form, "label", ("no", "yes"), Tolerance(False, False), 3, key, "who" if person else None)
    held = gather(open_source(table), RecordPass(records))
    found = tables._parts(held, records)
    return {k: (part.rows(), labels.tolist()) for k, (part, labels) in found if part is not None}


def moved(one: dict[int, Any], other: dict[int, Any]) -> int:
    return sum(one.get(k) != other.get(k) for k in range(3))


@sampled(4)
@pytest.mark.parametrize("key", range(12))
def test_one_row_more_moves_one_teacher(key: int) -> None:
    for number in range(4):
        for rows in itertools.combinations_with_replacement(CELLS, number):
            before = parts([(*row, None) for row in rows], key, person=False)
            for more, place in itertools.product(CELLS, range(number + 1)):
                table = [*rows[:place], more, *rows[place:]]
                after = parts([(*row, None) for row in table], key, person=False)
                assert moved(before, after) == 1
                assert sum(len(labels) for _, labels in after.values()) == number + 1


@sampled(4)
@pytest.mark.parametrize("key", range(12))
def test_one_person_more_moves_one_teacher(key: int) -> None:
    rng = np.random.default_rng(key)

    def draw(who: str | None, least: int, most: int) -> list[tuple[Any, ...]]:
        return [(*CELLS[rng.integers(4)], who) for _ in range(rng.integers(least, most + 1))]

    for _ in range(25):
        rest = [*draw(None, 4, 4), *draw("A", 0, 2), *draw("B", 0, 2)]
        rows = [*rest, *draw("C", 1, 4)]
        mixed = [rows[i] for i in rng.permutation(len(rows))]
        assert moved(parts(rest, key, person=True), parts(mixed, key, person=True)) == 1
        alone = [*rows, *draw(None, 1, 1)]
        assert moved(parts(rows, key, person=True), parts(alone, key, person=True)) == 1


def test_all_rows_of_a_person_have_one_teacher_and_equal_rows_many() -> None:
    mine = [(float(i), CELLS[i % 4][1], "me") for i in range(50)]
    assert len(parts(mine, 7, person=True)) == 1
    same = [(1.0, "no", None)] * 600
    sizes = [len(labels) for _, labels in parts(same, 7, person=True).values()]
    assert len(sizes) == 3
    assert min(sizes) > 130  # 200 but for 6 standard deviations
    assert parts(same, 7, person=True) == parts(same, 7, person=False)


def test_records_of_different_rows_differ() -> None:
    queries = pl.DataFrame({"s": ["a"], "t": ["b"]})
    records = RowRecords(Form.of(queries), "label", (0, 1), Tolerance(True, True), 3, 1)
    table = pl.DataFrame({"s": ["ab", "a", None, None, "\x00"], "t": [None, "b", "ab", None, "\x00"], "label": [0] * 5})
    frame = nw.from_native(table, eager_only=True)
    found = records.of(frame)
    assert found["row"].n_unique() == found["word"].n_unique() == 5
    assert not set(found["word"]) & set(replace(records, key=2).of(frame)["word"])
    rows, _ = records.part(records.assigned(found)[0])
    assert sorted(rows.rows(), key=str) == sorted(table.select("s", "t").rows(), key=str)


def test_equal_records_are_counted_on_where_a_batch_ends() -> None:
    table = pl.concat([TABLE] * 3)
    records = RowRecords(Form.of(QUERIES), "label", ("no", "yes"), Tolerance(True, True), 50, 3, "who")
    found = records.of(nw.from_native(table, eager_only=True)).sort("word", "row")
    whole = records.assigned(found)[0]
    before, pieces = None, []
    for start in range(0, len(found), 7):
        piece, before = records.assigned(found[start : start + 7], before)
        pieces.append(piece)
    assert pl.concat(pieces)[TEACHER].to_list() == whole[TEACHER].to_list()


# The estimator.


def model_of(**given: Any) -> Any:
    given = {"teacher": GaussianNB(), "student": GaussianNB(), "classes": ["no", "yes"], **given}
    return PATEClassifier(n_teachers=8, epsilon=4, queries=QUERIES.select("a", "b"), **given)


def test_fits_of_a_file_and_a_frame(plain: Any, tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "rows.parquet")
    for person in (None, "who"):
        seen = []
        for data in (TABLE, tmp_path / "rows.parquet"):
            model = model_of(noise=Simulation(2), person=person).fit(data, "label")
            assert model.plan_.unit is (Unit.ROW if person is None else Unit.PERSON)
            assert model.feature_names_in_.tolist() == ["a", "b"]
            assert len(model.predict(TABLE.select("a", "b").fill_null(0.0))) == len(TABLE)
            seen.append((plain.votes.tolist(), model.labels_.tolist()))
        assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "case",
    [
        ({}, {"groups": [1]}, "leave out groups"),
        ({}, {"y": "answer"}, 'no column "answer"'),
        ({"person": "whose"}, {}, 'no column "whose"'),
        ({"person": "label"}, {}, "both the label and the person"),
        ({}, {"y": "a"}, "leave it out of the queries"),
        ({"person": "b"}, {}, "leave it out of the queries"),
        ({}, {"queries": [[0.0, 1.0]]}, "needs queries with names"),
        ({}, {"y": TABLE["label"].to_list()}, "give its name"),
    ],
)
def test_what_is_refused_before_a_row_is_read(
    case: tuple[Any, Any, str], plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, fitted, said = case
    monkeypatch.setattr(RowRecords, "of", None)
    TABLE.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises((TypeError, ValueError), match=said):
        model_of(**given).fit(tmp_path / "rows.parquet", **{"y": "label", **fitted})
    assert not plain.calls


def test_replaced_rows_are_for_rows_in_memory(plain: Any) -> None:
    model, rows = model_of(neighbours="replace", noise=Simulation(1)), TABLE.select("a", "b")
    assert model.fit(rows, TABLE["label"].to_list()).labels_ is not None
    with pytest.raises(ValueError, match='neighbours="add_remove"'):
        model.fit(TABLE, "label")
    assert plain.calls == 1


def test_what_fails_while_rows_are_read_is_not_told(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise ValueError("somebody's row")

    ledger = MemoryLedger(10, 1e-3)
    for name in ("of", "assigned"):
        with monkeypatch.context() as patch:
            patch.setattr(RowRecords, name, failing)
            with pytest.raises((PrivateComputationError, TableError)) as caught:
                model_of(ledger=ledger).fit(TABLE, "label")
        assert "somebody" not in str(caught.value)
        assert caught.value.__context__ is None
    assert not plain.calls
    assert not ledger.spent.epsilon
    with monkeypatch.context() as patch:  # rows that the queries' library cannot hold: their teacher abstains
        patch.setattr(RowRecords, "_unpacked", failing)
        model_of(ledger=ledger).fit(TABLE, "label")
    assert not plain.votes.any()
    assert ledger.spent.epsilon == 4


def test_the_features_are_those_of_the_queries() -> None:
    wide = TABLE.with_columns(pl.lit("x").alias("more")).select("more", *reversed(TABLE.columns))
    assert votes(wide, Watchful()) == votes(TABLE, Watchful())
    assert tuple(QUERIES.columns) == FEATURES


@pytest.mark.parametrize("dtype", [pl.Duration, pl.Time, pl.List(pl.Int64), pl.Struct({"x": pl.Int64})])
def test_types_of_labels_are_refused_whether_there_are_rows_or_not(dtype: Any) -> None:
    for rows in (0, 1):
        cells = {"a": pl.Series([1.0] * rows, dtype=pl.Float64), "label": pl.Series([None] * rows, dtype=dtype)}
        model = PATEClassifier(GaussianNB(), classes=[0, 1], n_teachers=8, queries=pl.DataFrame({"a": [0.0]}))
        with pytest.raises(TypeError, match="labels"):
            model.fit(pl.DataFrame(cells), "label")


def test_every_teacher_has_its_turn_whether_it_has_rows_or_not() -> None:
    """A bar of progress shows how many have had theirs."""
    columns = {"a": pl.Float64, "label": pl.Int64}
    queries = pl.DataFrame({"a": [0.0]})
    records = RowRecords(Form.of(queries), "label", (0, 1), Tolerance(False, False), 8, 5)
    for rows in (0, 1, 3, 200):
        table = pl.DataFrame({"a": np.arange(rows, dtype=float), "label": np.arange(rows) % 2}, schema=columns)
        held = gather(open_source(table), RecordPass(records), progress=False)
        assert [teacher for teacher, _ in tables._parts(held, records)] == list(range(8))
    assert "key" not in repr(records)
