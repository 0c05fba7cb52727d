"""From a raw table to a model with nothing filled in by hand: plan, fit, predict, report."""

import json
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Number, Schema
from snugdp.cli.models import Model, ModelOptions, NumberEffects
from snugdp.mechanisms.bounds.looks.grid import CellSets
from tests.cli.people import run
from tests.effort import often, repeated, sampled

ROWS = 6000
FIT = ("--epsilon", 2, "--delta", 1e-6, "--yes")


@cache
def orders(rows: int = ROWS) -> pl.DataFrame:
    """Mixed types, gaps, an identifier, free text, and a column that few rows share."""
    rng = np.random.default_rng(3)
    city, items = rng.choice(["Rome", "Oslo", "Bern"], rows), rng.poisson(3, rows)
    paid = rng.random(rows) < 0.5 + 0.4 * (city == "Oslo")
    amount = 20 + 8 * items + 10 * (city == "Oslo") + rng.normal(0, 5, rows)
    day = pl.Series(np.datetime64("2024-01-01") + rng.integers(0, 700, rows))
    gap = rng.random((3, rows)) < 0.05
    return pl.DataFrame({
        "order_id": np.arange(rows), "day": day, "city": pl.Series(city).set(pl.Series(gap[0]), None),
        "items": items, "paid": paid, "customer": [f"c{n}" for n in rng.integers(0, rows, rows)],
        "comment": [f"note {n}" for n in range(rows)], "amount": pl.Series(amount).set(pl.Series(gap[1]), None),
    })  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.parquet").write_bytes(written()[0])
    Path("orders.csv").write_bytes(written()[1])
    return tmp_path


@cache
def written() -> tuple[bytes, bytes]:
    """The table as Parquet and as CSV."""
    parquet, text = BytesIO(), BytesIO()
    orders().write_parquet(parquet)
    orders().write_csv(text)
    return parquet.getvalue(), text.getvalue()


@pytest.mark.slow
@sampled(2)
@repeated
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_three_commands(ending: str, folder: Path) -> None:
    table = f"orders.{ending}"
    run("ledger", "create", "l", "--dataset", "orders", "--epsilon", 3, "--delta", 1e-5)
    plan = run("plan", "linear", table, "--target", "amount", "--epsilon", 2, "--rows", ROWS)
    assert "a column is found if about" in plan.output
    assert 'Column "order_id" is left out: its name suggests an identifier' in plan.stderr
    out = ("-o", "m.json", "--report", "r.html")
    said = run("fit", "linear", table, "--target", "amount", *FIT, "--ledger", "l", *out, env={"COLUMNS": "160"})
    assert 'Column "comment" is left out: its name suggests free text' in said.stderr
    assert 'Column "customer" was not found and is left out' in said.output
    for words in ("Found privately", "numbers, the target", "not found: left out", "city=Oslo", "city=(none)"):
        assert words in said.output
    assert "city=Bern" not in said.output  # the reference
    model = snugdp.load("m.json")
    assert set(model.left_out_) == {"order_id", "comment"}
    assert dict(zip(model.coef_names_, model.coef_, strict=True))["items"] == pytest.approx(8, abs=1.5)
    page = (folder / "r.html").read_text()
    for words in ("What was found about the columns", "bounds=model.bounds_", "Columns that were not used", "order_id"):
        assert words in page
    assert "not found: left out" in page
    for other in ("orders.csv", "orders.parquet")[: often(1, 2)]:
        run("predict", "m.json", other, "-o", "p.csv")
        assert np.allclose(pl.read_csv("p.csv")["prediction"], model.predict(orders().select(model.feature_names_in_)))


SPARSE_LINE = ("sparse", "orders.parquet", "--target", "amount", "--features", "3")


@sampled(4)
@repeated
@pytest.mark.parametrize(
    "words",
    [
        ("logistic", "orders.csv", "--target", "paid", "--classes", "false,true"),
        ("logistic", "orders.csv", "--target", "city", "--classes", "Bern,Oslo,Rome"),
        ("logistic", "orders.csv", "--target", "city"),
        SPARSE_LINE,
        ("poisson", "orders.parquet", "--target", "items"),
        ("poisson", "orders.csv", "--target", "items", "--y-max", "20"),
        ("pca", "orders.parquet"),
        ("sparse", "orders.csv", "--target", "paid", "--classes", "false,true"),
        ("pca", "orders.csv", "--components", "2"),
        pytest.param(("sparse", "orders.csv", "--target", "amount"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_every_model_works_without_a_schema(words: tuple[str, ...]) -> None:
    if words[0] in ("poisson", "pca", "logistic")[: often(2, 3)]:  # the outlook of others is calibrated ten times
        run("plan", *words, "--rows", ROWS, *FIT[:4])
    assert "Found privately" in run("fit", *words, *FIT, "-o", "m.json", "--report", "r.html").output
    assert len(run("predict", "m.json", words[1]).stdout.splitlines()) == ROWS + 1


@pytest.mark.slow
def test_a_boolean_column_knows_its_classes() -> None:
    run("fit", "logistic", "orders.parquet", "--target", "paid", *FIT, "-o", "m.json")
    assert snugdp.load("m.json").classes_.tolist() == [False, True]


@pytest.mark.slow
def test_true_and_false_in_text_are_found() -> None:
    said = run("fit", "logistic", "orders.csv", "--target", "paid", *FIT, "-o", "m.json")
    assert "labels that are found privately, and shown" in said.output
    assert snugdp.load("m.json").classes_.tolist() == [0, 1]  # as text, true and false stand for numbers


@pytest.mark.slow
@pytest.mark.parametrize("how", ["indicator", "drop", "centre"])
def test_missing_cells(how: str) -> None:
    said = run("fit", "linear", "orders.parquet", "--target", "amount", "--missing", how, *FIT, "-o", "m.json")
    told = {"centre": "counts as the centre", "drop": "rows with a missing cell are left out", "indicator": "says so"}
    assert told[how] in said.output
    assert ("city is missing" in snugdp.load("m.json").coef_names_) == (how == "indicator")


def test_a_policy_for_missing_cells_has_one_of_three_names() -> None:
    run("fit", "linear", "orders.parquet", "--target", "amount", "--missing", "mean", *FIT, code=2)


@pytest.mark.slow
def test_one_object_for_machines_says_what_was_found() -> None:
    said = run("fit", "linear", "orders.parquet", "--target", "amount", *FIT, "--json")
    whole = json.loads(said.stdout)["model"]
    assert "found-bounds/1" in json.dumps(whole["released"]["exact"])
    assert "comment" in json.dumps(whole["released"]["left_out"])


@pytest.mark.slow
def test_a_target_that_is_not_found_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CellSets, "threshold", lambda *_: 9.0)  # so that noise is never taken for a column
    orders(5).write_parquet("few.parquet")
    said = run("fit", "linear", "few.parquet", "--target", "amount", *FIT, code=3)
    assert "the target was not found" in said.stderr
    assert "Declare the bounds or the classes of the target in a schema" in said.stderr


@pytest.mark.parametrize("effects", [None, *NumberEffects])
def test_effects_of_additive_models_are_declared(effects: NumberEffects | None) -> None:
    schema = Schema({"age": Number(0, 100), "income": Number(0, 1000)}, target="income")
    asked = ModelOptions(epsilon=1.0, effects=effects).estimator(Model.ADDITIVE, schema, None)
    assert asked.effects == (effects or "auto")


def test_a_selection_needs_bounds() -> None:
    run("schema", "init", "orders.parquet", "--target", "amount", "-o", "o.toml")
    said = run("select", "linear", "orders.parquet", "o.toml", "--validation", "orders.csv", "--epsilon", 1, code=1)
    assert "a selection cannot do that: declare their bounds or values" in said.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("linear",), "give --target"),
        (("linear", "--target", "amount", "--classes", "a,b"), "logistic, additive and sparse"),
        (("linear", "--target", "amount", "--y-max", "3"), "for poisson"),
        (("linear", "--target", "amount", "--effects", "line"), "for additive"),
        (("sparse", "--target", "city", "--classes", "Oslo,Rome"), "no and yes"),
        (("linear", "--target", "nobody"), 'no column "nobody"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_before_the_charge(words: tuple[str, ...], says: str) -> None:
    kind, *options = words
    assert says in run("fit", kind, "orders.parquet", *options, *FIT, code=1).stderr
