"""Descriptions of tables of which nothing is declared: what is found, what is left out, and that doors stay shut."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import Boolean, Budget, Category, Date, Describe, MemoryLedger, Number, Schema, Simulation
from snugdp.mechanisms.bounds import sorts
from snugdp.queries.description.open import DESCRIPTION, OpenDescription
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.found import Flag, FoundBounds
from snugdp.tables.schema.kinds import Undeclared
from tests.effort import sampled

N = 4000
RNG = np.random.default_rng(11)
FIRST = datetime.date(2015, 1, 1)
TABLE = pl.DataFrame(
    {
        "customer_id": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "income": [None if i % 10 == 0 else float(x) for i, x in enumerate(RNG.lognormal(10, 0.6, N))],
        "way": RNG.choice(["car", "train", "walk"], N, p=[0.6, 0.3, 0.1]),
        "joined": [FIRST + datetime.timedelta(days=int(days)) for days in RNG.integers(0, 3000, N)],
        "comment": ["well"] * N,
        "tags": [["a"]] * N,
    }
)
LEFT_OUT = {"customer_id": "an identifier", "comment": "free text", "tags": "type List"}


def released(data: Any = TABLE, **given: Any) -> snugdp.Description:
    outcome = snugdp.describe(data, **{"epsilon": 4, "delta": 1e-6, "noise": Simulation(5), **given})
    assert outcome.value is not None
    return outcome.value


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_everything_is_found(relation: str) -> None:
    found = released(neighbours=relation)
    lines = found.columns.to_dict()
    assert lines["column"] == ["age", "income", "way", "joined"]
    assert lines["type"] == ["number", "number", "category", "date"]
    assert lines["missing"] == pytest.approx([0, 400, 0, 0], abs=40)
    assert found.mean("age").value == pytest.approx(float(np.mean(TABLE["age"].to_numpy())), abs=1)
    median = TABLE["income"].median()
    assert isinstance(median, float)
    assert lines["50%"][1] == pytest.approx(median, rel=0.05)
    assert list(found.counts("way")) == ["car", "train", "walk"]
    middle = (FIRST - datetime.date(1970, 1, 1)).days + 1500
    assert lines["50%"][3] == pytest.approx(middle, abs=60)
    assert all(reason in found.left_out[name] for name, reason in LEFT_OUT.items())


def test_it_reads_well() -> None:
    text = str(released())
    for words in ("numbers", "dates", "2019-", "days", "values", "Left out: comment: its name", "may lie anywhere"):
        assert words in text


def test_the_plan_is_public_exact_and_free() -> None:
    for relation in ("add_remove", "replace"):
        query = Describe(epsilon=1, delta=1e-6, neighbours=relation).for_table(TABLE)
        plan = query.plan()
        assert plan.step_ids == ("sorts", "grid", "zoom", "zoom-2", "zoom-3", DESCRIPTION)
        assert plan.cost.fits(Budget(1, 1e-6, relation))
        assert not plan.cost.fits(Budget("0.999", 1e-6, relation))
        assert query.plan() == Describe(epsilon=1, delta=1e-6, neighbours=relation).for_table(TABLE.head(0)).plan()
        assert query.left_out.keys() == LEFT_OUT.keys()
        assert "found privately" in str(plan)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "30"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.4"])
def test_looks_and_description_have_the_whole_budget(epsilon: str, delta: str) -> None:
    """The description gets M² - m: with what the looks cost it fits, and with more it does not."""
    declared = Schema({"a": Undeclared(), "b": Category(), "c": Number(0, 1)}, intercept=False)
    budget = Budget(epsilon, delta)
    nothing: Any = None  # no row is described
    search = OpenDescription(declared, budget, nothing, nothing)
    assert (search.preparation.cost + search.share.cost).fits(budget)
    assert search.plan.cost == search.preparation.cost + search.share.cost
    more = search.share.part(Fraction(102, 100)).cost
    assert not (search.preparation.cost + more).fits(budget)
    if delta != "0.4":  # such a delta pays for looks alone
        assert search.share.mu_squared > search.preparation.cost.mu_squared


def test_the_charge_is_the_plan_and_a_key_binds_the_question(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    snugdp.Ledger.open(path, dataset="t", budget=Budget(3, 1e-5)).close()
    with snugdp.Ledger.open(path) as book:
        given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "columns": ["age", "way"]}
        first = snugdp.describe(TABLE, **given, ledger=book.once("first"))
        again = snugdp.describe(TABLE, **given, ledger=book.once("first"))
        assert first.value == again.value
        assert first.cost == Describe(**given).for_table(TABLE).plan().cost
        with pytest.raises(snugdp.KeyConflictError):
            snugdp.describe(TABLE, **{**given, "columns": ["age"]}, ledger=book.once("first"))


def test_a_budget_that_does_not_suffice_is_not_touched() -> None:
    ledger = MemoryLedger("0.5", "1e-6", composition="tight")
    with pytest.raises(snugdp.BudgetExceededError):
        snugdp.describe(TABLE, epsilon=1, delta=1e-6, ledger=ledger)
    assert ledger.spent.mu_squared == 0


def test_some_may_be_declared() -> None:
    schema = Schema({"age": Number(0, 120), "income": Number(), "way": Category(), "joined": Date("2010-01-01")})
    found = released(schema=schema)
    assert found.columns["type"] == ("number", "number", "category", "date")
    assert found.left_out == {}
    assert found.mean("age").above is not None  # its bounds are public
    assert found.mean("income").above is None
    typed = Schema({"joined": Date("2010-01-01", "2030-01-01"), "age": Number(0, 120)})
    assert released(schema=typed, delta=0).columns["type"] == ("date", "number")


def test_columns_may_be_named_whatever_their_names_mean() -> None:
    found = released(columns=["comment", "age"])
    assert found.columns["column"] == ("comment", "age")
    assert list(found.counts("comment")) == ["well"]
    for columns, said in ((["nobody"], 'no column "nobody"'), (["tags"], "type List")):
        with pytest.raises((ValueError, TypeError), match=said):
            Describe(epsilon=1, delta=1e-6, columns=columns).for_table(TABLE)
    with pytest.raises(ValueError, match="no column is left"):
        Describe(epsilon=1, delta=1e-6).for_table(TABLE.select("customer_id"))


def test_mistakes_cost_nothing() -> None:
    ledger = MemoryLedger(10, 1e-3, composition="tight")
    with pytest.raises(ValueError, match="delta > 0"):
        snugdp.describe(TABLE, epsilon=1, ledger=ledger)
    with pytest.raises(ValueError, match="for_table"):
        Describe(epsilon=1, delta=1e-6).plan()
    with pytest.raises(TypeError, match="schema must be"):
        Describe(epsilon=1, delta=1e-6, schema=3)  # type: ignore[arg-type]
    assert ledger.spent.mu_squared == 0


def test_what_was_found_is_free_afterwards() -> None:
    first = snugdp.describe(TABLE, epsilon=4, delta=1e-6, noise=Simulation(1))
    assert isinstance(first.certificate, FoundBounds)
    again = Describe(bounds=first.certificate, epsilon=1)
    assert again.plan().cost.fits(Budget(1))
    assert released(bounds=first.certificate, delta=0).columns["type"] == first.value.columns["type"]  # type: ignore[union-attr]


HOSTILE: dict[str, Callable[[int], Any]] = {
    "constant": lambda n: np.full(n, 7.0),
    "zero": np.zeros,
    "year": lambda n: np.full(n, 2020.0),
    "late": lambda n: np.full(n, 1e15),
    "stamps": lambda n: 1.7e18 + np.arange(n, dtype=float),
    "huge": lambda n: np.full(n, 1e300),
    "infinite": lambda n: np.full(n, np.inf),
    "missing": lambda n: np.full(n, np.nan),
    "None": np.ones,
    "mostly zeros": lambda n: np.where(np.arange(n) % 25, 0.0, np.arange(n) + 100.0),
    "two clusters": lambda n: np.where(np.arange(n) % 2, 0.0, 1e9),
    "tiny": lambda n: np.arange(n) * 1e-12,
    "city=Oslo": lambda n: np.arange(n) * 1.0,
    "city": lambda n: np.array(["Oslo", "Rome"] * (n // 2 + 1))[:n],
}


@sampled(2)
@pytest.mark.parametrize("rows", [0, 1, 2, 3000])
def test_hostile_columns_are_ordinary_answers(rows: int) -> None:
    data = pl.DataFrame({name: make(rows) for name, make in HOSTILE.items()})
    for seed in range(2):
        found = released(data, noise=Simulation(seed), epsilon=2)
        assert len(found.columns) == len(HOSTILE)
        assert str(found)
    if rows > 2:
        means = dict(zip(found.columns["column"], found.columns["mean"], strict=True))
        kinds = dict(zip(found.columns["column"], found.columns["type"], strict=True))
        assert all(means[name] is None for name in ("huge", "infinite", "missing", "zero"))  # nothing can be said
        assert kinds["missing"] == "unknown"
        assert kinds["city"] == "category"


@pytest.mark.slow
def test_three_hundred_columns() -> None:
    data = pl.DataFrame({f"x{i}": np.arange(200.0) for i in range(300)})
    found = released(data, epsilon=1, statistics=["mean"])
    assert len(found.columns) == 300
    assert found.rows.value == pytest.approx(200, abs=5 * found.rows.error)


CONTAINERS: dict[str, Callable[[list[Any], Path], Any]] = {
    "pandas": lambda cells, _: pd.DataFrame({"a": range(len(cells)), "b": pd.Series(cells)}),
    "pandas, objects": lambda cells, _: pd.DataFrame({"a": range(len(cells)), "b": pd.Series(cells, dtype=object)}),
    "polars": lambda cells, _: pl.DataFrame({"a": range(len(cells)), "b": pl.Series(cells, strict=False)}),
    "pyarrow": lambda cells, _: pl.DataFrame({"a": range(len(cells)), "b": list(map(str, cells))}).to_arrow(),
}


def written(cells: list[Any], folder: Path, form: str) -> str:
    frame = pl.DataFrame({"a": range(len(cells)), "b": ["" if cell is None else str(cell) for cell in cells]})
    path = folder / f"t{len(cells)}.{form}"
    frame.write_csv(path) if form == "csv" else frame.write_parquet(path)
    return str(path)


@sampled(15)
@pytest.mark.parametrize("odd", ["x", "2024-05-01", 1e300, float("nan"), True, "٣", " 5 "], ids=repr)
@pytest.mark.parametrize("held", [*CONTAINERS, "csv", "parquet"])
def test_one_odd_cell_changes_no_other_image(held: str, odd: Any, tmp_path: Path) -> None:
    """Whatever one cell is, all else is as with a cell of the same sort: every statistic moves by that row alone."""

    def described(cell: Any) -> dict[str, Any]:
        cells = [float(i % 40) for i in range(999)] + [cell]
        data = CONTAINERS[held](cells, tmp_path) if held in CONTAINERS else written(cells, tmp_path, held)
        return released(data, columns=["b"], statistics=["mean"], epsilon=60).columns.to_dict()

    found, plain = described(odd), described(20.0)
    assert found["type"] == plain["type"] == ["number"]
    assert found["count"] == pytest.approx(plain["count"], abs=2.5)
    assert found["mean"] == pytest.approx(plain["mean"], abs=0.2)


@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "string", "date32"])
def test_a_missing_cell_of_any_declared_type_is_an_ordinary_cell(kind: str) -> None:
    """One missing whole number of a pyarrow table once made the first pass fail."""
    pa = pytest.importorskip("pyarrow")
    whole, cell = pa.array([1, 0] * 50, "int64"), {"bool": True, "string": "x", "date32": FIRST}.get(kind, 1)
    table = pa.table({"a": whole, "b": pa.array([cell] * 99 + [None], kind)})
    found = None
    with contextlib.suppress(PrivateComputationError):
        found = released(table, epsilon=60)
    assert found is not None
    assert found.columns["missing"] == pytest.approx((0, 1), abs=2)


def test_types_that_a_loader_made_of_cells_do_not_count() -> None:
    """A frame in memory has types, but one cell may have made them: the plan is the same whatever they are."""
    plain = pd.DataFrame({"a": [1, 2], "b": [True, False]})
    odd = pd.DataFrame({"a": [1, "x"], "b": [True, None]})
    plans = {str(Describe(epsilon=1, delta=1e-6).for_table(frame).plan()) for frame in (plain, odd)}
    assert len(plans) == 1
    query = Describe(epsilon=1, delta=1e-6).for_table(plain)
    assert all(isinstance(kind, Undeclared) for kind in query.described.columns.values())


def test_declared_types_of_files_count(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1.0], "b": [True], "c": ["x"]}).write_parquet(path)
    kinds = Describe(epsilon=1, delta=1e-6).for_table(path).described.columns
    assert [type(kind) for kind in kinds.values()] == [Number, Boolean, Undeclared]


def test_levels_of_few_rows_are_not_shown() -> None:
    data = pl.DataFrame({"way": ["car"] * 3000 + ["zeppelin"]})
    found = released(data, epsilon=1, noise=Simulation(3))
    assert list(found.counts("way")) == ["car"]
    names = pl.DataFrame({"way": [f"somebody {i}" for i in range(3000)]})
    hidden = released(names, epsilon=1)
    assert hidden.counts("way") == {}
    assert hidden.columns["type"] == ("category",)
    assert hidden.columns["count"][0] == pytest.approx(3000, abs=100)


def test_a_column_of_one_value_is_flagged() -> None:
    outcome = snugdp.describe(pl.DataFrame({"x": np.full(3000, 7.0)}), epsilon=4, delta=1e-6, noise=Simulation(1))
    assert isinstance(outcome.certificate, FoundBounds)
    assert outcome.certificate["x"].flag is Flag.CONSTANT
    assert outcome.value is not None
    assert outcome.value.columns["50%"] == pytest.approx((7.0,), abs=0.01)


_DAYS = [FIRST + datetime.timedelta(days=k % 900) for k in range(600)]
_TYPED = {
    "dates": pl.Series(_DAYS), "times": pl.Series(_DAYS).cast(pl.Datetime("ns")),
    "truths": pl.Series([True, False] * 300),
    "whole": pl.Series([3, 5, 9] * 200), "floats": pl.Series([2.0, 0.5, None] * 200),
    "single": pl.Series([2.0, 0.5] * 300, dtype=pl.Float32), "text": pl.Series(["a", "7"] * 300),
    "decimals": pl.Series(["1.5", "2"] * 300).cast(pl.Decimal(10, 2)),
    "categories": pl.Series(["a", "b"] * 300, dtype=pl.Categorical), "nothing": pl.Series([None] * 600),
}  # fmt: skip


@sampled(10)
@pytest.mark.parametrize("kind", [None, Number(), Date(), Category()], ids=str)
@pytest.mark.parametrize("held", _TYPED)
def test_a_wrong_guess_ends_alike_for_every_type(monkeypatch: pytest.MonkeyPatch, kind: Any, held: str) -> None:
    """Noise may take dates for numbers; one odd cell makes objects of them. Neither may be refused alone."""
    monkeypatch.setattr(sorts, "settled", lambda counts, deviation: kind)
    objects = pd.DataFrame({"x": pd.Series(_TYPED[held].to_list(), dtype=object)})
    tables = [pl.DataFrame({"x": _TYPED[held]}), pl.DataFrame({"x": _TYPED[held]}).to_arrow(), objects]
    lines = [released(table).columns.to_dict() for table in tables]
    assert lines[0] == lines[1] == lines[2]
