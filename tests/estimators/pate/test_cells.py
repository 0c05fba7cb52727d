"""What one row, or one teacher, could do to the others: through types of columns, shared memory, and pickling."""

from __future__ import annotations

import datetime
import io
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix, issparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from snugdp import MemoryLedger, PATEClassifier, Simulation
from snugdp.estimators.inputs import eager
from snugdp.estimators.labels import labels_of
from snugdp.estimators.pate import teachers
from snugdp.estimators.pate.cells import Column
from snugdp.estimators.pate.rows import Form, fresh, take, usable
from snugdp.estimators.pate.teachers import Ballot, Scattered, histograms, vote
from tests.effort import sampled
from tests.estimators.pate.test_privacy import TEACHERS, Script, model_of
from tests.estimators.pate.vandal import Vandal

pytestmark = pytest.mark.usefixtures("plain")
RNG = np.random.default_rng(8)
N = 96
X, PUBLIC = RNG.integers(0, 9, (N, 2)), RNG.integers(0, 9, (20, 2))
Y = (X[:, 0] > 4).astype(int)
DRAWN = RNG.integers(0, TEACHERS, N + 1)


def framed(rows: Any) -> Any:
    """Rows as a frame of narwhals."""
    return eager(rows)


def image(rows: Any) -> Any:
    """Everything about rows: kind, types, bytes."""
    frame = eager(rows)
    if frame is not None:
        return type(rows), [(name, str(kind), repr(frame[name].to_list())) for name, kind in frame.schema.items()]
    if issparse(rows):
        return type(rows), rows.dtype, rows.indices.dtype, repr([rows.data, rows.indices, rows.indptr])
    return rows.dtype, rows.shape, repr(rows.tolist())


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An image of what every teacher saw, and its votes."""
    seen: list[Any] = []

    def watched(model: Any, rows: Any, labels: Any, *public: Any) -> Any:
        shown = image(rows), labels.tolist(), image(public[0])
        seen.append((*shown, vote(model, rows, labels, *public).tolist()))
        return np.array(seen[-1][3])

    monkeypatch.setattr(teachers, "vote", watched)
    return seen


PLAIN: dict[str, list[Any]] = {}  # what teachers saw without the last row, by the name of the table


def others_differ(
    parts: list[Any], queries: Any, one: tuple[Any, Any], two: tuple[Any, Any], *, table: str = "", **given: Any
) -> int:
    """How many teachers other than that of the last row see or say something else when that row comes.

    A ``table`` that has a name is looked at once without that row.
    """
    given = {"teacher": DecisionTreeClassifier(), "student": DecisionTreeClassifier(), "queries": queries, **given}
    parts[:] = PLAIN.get(table, [])
    if not parts:
        model_of(**given, noise=Script(DRAWN[:N])).fit(*one)
    if table:
        PLAIN[table] = list(parts)
    model_of(**given, noise=Script(DRAWN)).fit(*two)
    pairs = list(zip(parts[:TEACHERS], parts[TEACHERS:], strict=True))
    assert sum(len(labels) for _, labels, _, _ in parts[:TEACHERS]) == N  # the others are all there
    return sum(a != b for place, (a, b) in enumerate(pairs) if place != DRAWN[N])


# One row and the type of a column


ODD = ["?", None, 1.5, 10**30, True, 1j, datetime.date(2020, 1, 1)]


@sampled(15)
@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("kind", ["pandas", "strings", "polars", "list", "array", "objects"])
def test_one_cell_does_not_change_the_type_of_the_others(kind: str, odd: Any, parts: list[Any]) -> None:
    rows: Any = X.tolist()
    more: Any = [*rows, [odd, 3]]
    queries: Any = PUBLIC
    if kind == "pandas":
        rows, more, queries = (pd.DataFrame(table, columns=["a", "b"]) for table in (rows, more, PUBLIC))
    elif kind == "strings":  # as readers of files make it: all text, because of one cell
        rows, more, queries = (pd.DataFrame(table, columns=["a", "b"]) for table in (rows, more, PUBLIC))
        more["a"] = more["a"].map(str)
    elif kind == "polars":
        texts = [*(str(a) for a in X[:, 0]), str(odd)]
        more = pl.DataFrame({"a": texts, "b": [*X[:, 1].tolist(), 3]})
        rows, queries = (pl.DataFrame({"a": table[:, 0], "b": table[:, 1]}) for table in (X, PUBLIC))
    elif kind == "array" and not isinstance(odd, list | datetime.date) and odd is not None:
        rows, more = X, np.array(more)
        if more.dtype.kind == "U":
            for text in (more, more[:0]):  # numpy may have changed every cell
                with pytest.raises(TypeError, match="array of text"):
                    model_of(queries=queries).fit(text, Y[: len(text)])
            return
    elif kind == "objects":
        queries = [["red", int(b)] for a, b in PUBLIC]
        rows, more = [["blue", b] for a, b in rows], [*(["blue", b] for a, b in rows), ["blue", odd]]
        coded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
        given = {"teacher": coded, "student": coded, "table": kind}
        assert others_differ(parts, queries, (rows, Y), (more, [*Y, 1]), **given) == 0
        return
    table = f"{kind} in {type(rows).__name__}"
    assert others_differ(parts, queries, (rows, Y), (more, [*Y, 1]), table=table) == 0


@pytest.mark.slow
@sampled(16)
@pytest.mark.parametrize("odd", [2.5, None, "new"], ids=repr)
@pytest.mark.parametrize("kind", ["object", "str", "category", "polars", "enum"])
def test_columns_of_text_and_categories(kind: str, odd: Any, parts: list[Any]) -> None:
    """A category that only one row has is no category: the queries' list is the list."""
    text = [f"t{a}" for a in X[:, 0]]
    asked: Any = pd.DataFrame({"a": [f"t{a % 5}" for a in PUBLIC[:, 0]], "b": PUBLIC[:, 1]})
    rows = pd.DataFrame({"a": pd.Series(text, dtype=object), "b": X[:, 1]})
    more = pd.DataFrame({"a": pd.Series([*text, odd], dtype=object), "b": [*X[:, 1], 3]})
    if kind in ("str", "category"):
        rows, more, asked = (table.astype({"a": kind}) for table in (rows, more, asked))
    elif kind == "object":
        asked = asked.astype({"a": object})
    else:
        more["a"] = more["a"].map(lambda cell: None if cell is None else str(cell))
        rows, more, asked = (pl.from_pandas(table) for table in (rows, more, asked))
        if kind == "enum":
            rows, more, asked = (table.cast({"a": pl.Categorical}) for table in (rows, more, asked))
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a"]), remainder="passthrough")
    coded = make_pipeline(coder, DecisionTreeClassifier())
    given = {"teacher": coded, "student": coded, "table": f"text: {kind}"}
    assert others_differ(parts, asked, (rows, Y), (more, [*Y, 1]), **given) == 0
    assert all(len(set(votes) - {-1}) > 0 for _, _, _, votes in parts)


def test_the_frames_of_teachers_have_the_types_of_the_queries(parts: list[Any]) -> None:
    moment = pd.Timestamp("2020-02-03 04:05:06", tz="Europe/Berlin")
    days = [moment + pd.Timedelta(days=day) for day in range(N)]
    good = pd.DataFrame(
        {"i": X[:, 0], "t": days, "b": X[:, 1] > 3, "c": pd.Categorical([*"xy"] * (N // 2)), "s": ["u"] * N}
    )
    bad = pd.concat([good, pd.DataFrame({name: ["?"] for name in good})], ignore_index=True)
    texts = bad.astype(str)  # all of it spelled, as in a file
    form = Form.of(good[:20])
    types = form.read(good[:20]).dtypes.tolist()
    assert [str(kind) for kind in types] == ["float64", "datetime64[us, Europe/Berlin]", "float64", "category", "str"]
    expected = form.read(good)
    for table in (good, bad, texts):
        read = form.read(table)
        assert read.dtypes.tolist() == types
        pd.testing.assert_frame_equal(read[:N], expected)
    assert form.read(bad).iloc[N].isna().tolist() == [True, True, True, True, False]
    assert expected["t"].tolist() == days
    for library in (pl.from_pandas, pa.Table.from_pandas):
        native = library(good)
        form = Form.of(native)
        one, other = framed(form.read(native)), framed(form.read(library(texts)))
        assert one.schema == other.schema
        assert one.to_dict(as_series=False) == other.head(N).to_dict(as_series=False)
    dates = pl.DataFrame({"d": [datetime.date(2020, 1, 2), None]})
    assert Form.of(dates).read(pl.DataFrame({"d": ["2020-01-02", "?"]})).equals(dates)


@pytest.mark.slow
def test_a_file_with_one_mark_is_read_alike(parts: list[Any]) -> None:
    """Two readings of a file, with and without a row that makes a column of numbers text."""
    written = "a,b\n" + "\n".join(f"{a},{b}" for a, b in X)
    one, two = pd.read_csv(io.StringIO(written)), pd.read_csv(io.StringIO(written + "\n?,3"))
    assert one["a"].dtype != two["a"].dtype
    asked = pd.DataFrame(PUBLIC, columns=["a", "b"])
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a"]), remainder="drop")
    by_type = make_column_transformer((SimpleImputer(), make_column_selector(dtype_include=np.number)))
    for first in (coder, by_type):
        teacher = make_pipeline(first, LogisticRegression())
        assert others_differ(parts, asked, (one, Y), (two, [*Y, 1]), teacher=teacher, student=teacher) == 0


def test_rows_with_missing_numbers_are_left_out_whatever_the_column_is(plain: Any) -> None:
    holes = X.astype(float)
    holes[::5, 0] = np.nan
    rows, asked = pd.DataFrame(holes, columns=["a", "b"]), pd.DataFrame(PUBLIC, columns=["a", "b"])
    more = pd.concat([rows, pd.DataFrame({"a": ["zz"], "b": [1.0]})], ignore_index=True)
    model_of(queries=asked, noise=Script(DRAWN[:N])).fit(rows, Y)
    votes = plain.votes
    model_of(queries=asked, noise=Script(DRAWN)).fit(more, [*Y, 1])
    assert np.array_equal(votes, plain.votes)
    assert (votes.sum(axis=1) == TEACHERS).all()
    cells = np.array([["a", 1.0], ["b", np.nan], [None, np.inf]], dtype=object)
    assert usable(cells, nan=False, infinite=False).tolist() == [True, False, False]
    assert usable(cells, nan=True, infinite=False).tolist() == [True, True, False]


@sampled(3)
@pytest.mark.parametrize("kind", ["array", "sparse", "bool", "complex", "coo"])
def test_numbers_are_float64_whatever_the_array_is(kind: str, parts: list[Any]) -> None:
    rows: Any = X.astype(np.uint8)
    more: Any = np.concatenate([rows, [[300, 1]]])
    queries: Any = PUBLIC
    if kind in ("sparse", "coo"):
        made = csr_array if kind == "sparse" else coo_array
        rows, more, queries = made(rows), made(more.astype(float)), csr_array(PUBLIC)
    elif kind == "bool":
        rows = X > 4
        more = np.concatenate([rows.astype(int), [[300, 1]]])
    elif kind == "complex":
        more = np.concatenate([rows, [[300j, 1]]])
    assert others_differ(parts, queries, (rows, Y), (more, [*Y, 1])) == 0
    for table in (X.astype(np.uint8), X.astype(np.float32), X > 3):
        assert Form.of(table).read(table).dtype == np.float64
        assert Form.of(csr_matrix(table)).read(csr_matrix(table)).dtype == np.float64


@sampled(9)
@pytest.mark.parametrize("odd", ["rare", None, 1.0, 0.5, "1", 7, True], ids=repr)
def test_one_label_does_not_change_the_type_of_the_others(odd: Any, parts: list[Any]) -> None:
    labels = [*Y.tolist(), odd]
    forms: list[Any] = [labels, pd.Series(labels), pd.Series(labels).astype(str), pl.Series([str(y) for y in labels])]
    if odd is not None:
        forms.append(np.array(labels))
    for given in forms:
        assert others_differ(parts, PUBLIC, (X, Y), (np.vstack([X, X[:1]]), given)) == 0


def test_labels_of() -> None:
    for y in (
        np.array([0, 1, 5]),
        [0, "1", 5.0],
        np.array(["0", "1.0", "x"]),
        pa.array([0, 1, None]),
        (False, True, 2),
    ):
        assert labels_of(y, [0, 1]).tolist() == [0, 1, -1]
    assert labels_of(pd.Series([4.0, 5.0, None]), ["4", "5"]).tolist() == [0, 1, -1]
    assert labels_of(["True", False, "x"], [False, True]).tolist() == [1, 0, -1]
    assert labels_of(pd.Series(["b", "a"], dtype="category"), ["a", "b"]).tolist() == [1, 0]


def test_cells_of_a_column_of_categories() -> None:
    column = Column("category", None, (1, "a", False))
    assert column.cells([1.0, "1", "a", "b", None, [], "False"]).tolist() == [0, 0, 1, -1, -1, -1, 2]


@pytest.mark.parametrize(
    "column",
    [[{"a": 1}] * 3, pd.to_timedelta([1, 2, 3]), pd.period_range("2020", periods=3), pl.Series([[1], [2], [3]])],
    ids=["dicts", "durations", "periods", "lists"],
)
def test_queries_of_other_cells_are_refused(column: Any) -> None:
    queries = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    with pytest.raises(TypeError, match="numbers, booleans, text, categories or dates"):
        model_of(queries=queries).fit(None, [0])


# One teacher and the memory of the others


KINDS: dict[str, Any] = {
    "numpy": lambda rows: np.array(rows, dtype=float),
    "fortran": lambda rows: np.asfortranarray(rows, dtype=float),
    "objects": lambda rows: np.array(rows, dtype=float).astype(object),
    "csr": lambda rows: csr_matrix(np.array(rows, dtype=float)),
    "csr_array": lambda rows: csr_array(np.array(rows, dtype=float)),
    "pandas": lambda rows: pd.DataFrame(np.array(rows, dtype=float), columns=["a", "b"]),
}


SENT = pytest.param("pandas", 2, marks=pytest.mark.slow)


@sampled(9)
@pytest.mark.parametrize(("kind", "n_jobs"), [*((kind, None) for kind in KINDS), ("numpy", 2), SENT])
def test_no_teacher_writes_into_what_others_read(kind: str, n_jobs: int | None, plain: Any) -> None:
    sparse = kind.startswith("csr")
    scaler = MaxAbsScaler(copy=False) if sparse else StandardScaler(copy=False)
    for model in (make_pipeline(scaler, LogisticRegression()), Vandal()):
        rows, queries, labels = KINDS[kind](X), KINDS[kind](PUBLIC), Y.copy()
        before = pickle.dumps((rows, queries, labels))
        given = {"teacher": model, "student": model, "queries": queries, "n_jobs": n_jobs}
        fitted = model_of(**given, noise=Simulation(1)).fit(rows, labels)
        assert pickle.dumps((rows, queries, labels)) == before
        assert fitted.queries is queries
        assert (plain.votes.sum(axis=1) == TEACHERS).all()
        fitted.predict(rows)
        assert pickle.dumps((rows, queries, labels)) == before


def test_the_votes_of_writers_are_those_of_readers(plain: Any) -> None:
    """A table's scale reached other teachers, the student and ``model.queries`` through the queries."""
    votes = []
    for copied in (True, False):
        teacher = make_pipeline(StandardScaler(copy=copied), LogisticRegression())
        fitted = model_of(teacher=teacher, queries=PUBLIC.astype(float), noise=Simulation(1)).fit(X, Y)
        votes.append((plain.votes.tolist(), fitted.labels_.tolist(), fitted.predict(X).tolist()))
    assert votes[0] == votes[1]


def test_parts_and_copies_share_no_memory() -> None:
    for kind, made in KINDS.items():
        rows = made(X)
        read = Form.of(rows).read(rows)
        for one, other in ((rows, read), (read, fresh(read)), (read, take(read, np.ones(N, dtype=bool)))):
            arrays = [
                [table.data, table.indices, table.indptr] if issparse(table)
                else [table[name].to_numpy() for name in table] if kind == "pandas" else [table]
                for table in (one, other)
            ]  # fmt: skip
            assert not any(np.shares_memory(a, b) for a in arrays[0] for b in arrays[1]), kind


# Parts that cannot be sent


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_cell_that_cannot_be_sent_costs_one_teacher(n_jobs: int | None, plain: Any) -> None:
    coded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
    rows: list[Any] = [["red" if a > 4 else "blue", int(b)] for a, b in X]
    rows[5] = [lambda: 0, 1]
    ledger = MemoryLedger(9, 0.1, composition="tight")
    queries = [["red", 1], ["blue", 2]]
    fitted = model_of(teacher=coded, student=coded, queries=queries, n_jobs=n_jobs, ledger=ledger).fit(rows, Y)
    assert fitted.released_
    assert ledger.spent.epsilon == 1
    assert (plain.votes.sum(axis=1) >= TEACHERS - 1).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_part_that_cannot_be_sent_abstains(n_jobs: int | None) -> None:
    cells = np.array([[0.0], [1.0], [0.0], [1.0]], dtype=object)
    cells[2, 0] = lambda: 0
    private = Scattered(cells, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": False}
    asked = np.array([[0.0], [1.0]])
    ballot = Ballot(DecisionTreeClassifier(), np.arange(2), asked, np.array([0, 1]))
    votes = histograms(private.parts(2), ballot, **how)
    assert votes.tolist() == [[1, 0], [0, 1]]


# What is said, and how often


def test_an_empty_list_is_an_empty_table(plain: Any) -> None:
    tables: list[Any] = [[], (), np.array([]), np.empty((0, 2))]
    for empty in tables:
        assert model_of(queries=PUBLIC).fit(empty, []).released_
        assert plain.votes.sum() == 0
    coded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
    assert model_of(teacher=coded, student=coded, queries=[["a", 1], ["b", 2]]).fit([], []).released_


def test_a_fit_plans_once(plain: Any) -> None:
    model_of(queries=PUBLIC).fit(X, Y)
    assert (plain.plans, plain.calls) == (1, 1)


def test_what_is_predicted_is_read_as_the_queries_were() -> None:
    asked = pd.DataFrame({"a": [f"t{a}" for a in PUBLIC[:, 0]], "b": PUBLIC[:, 1]})
    rows = pd.DataFrame({"a": [f"t{a}" for a in X[:, 0]], "b": X[:, 1]})
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a"]), remainder="passthrough")
    coded = make_pipeline(coder, LogisticRegression())
    model = PATEClassifier(coded, coded, 5, classes=[0, 1], queries=asked, noise=Simulation(1)).fit(rows, Y)
    answer = model.predict(rows)
    assert np.array_equal(model.predict(rows.astype(str)), answer)
    assert np.array_equal(model.predict(pl.from_pandas(rows)), answer)
    with pytest.warns(UserWarning, match="valid feature names"):
        assert np.array_equal(model.predict(rows.to_numpy()), answer)
    plainly = PATEClassifier(GaussianNB(), GaussianNB(), 5, classes=[0, 1], queries=PUBLIC, noise=Simulation(1))
    answer = plainly.fit(X, Y).predict(X)
    assert np.array_equal(plainly.predict(X.astype(str).tolist()), answer)
