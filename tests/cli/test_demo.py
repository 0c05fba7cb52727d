"""The demonstration: what it shows is true, and its files are those of the commands."""

import re
from pathlib import Path

import polars as pl
import pytest

import snugdp
from snugdp.cli.commands import demo_table
from tests.cli.people import run


@pytest.mark.slow  # the way of the raw table for persons: ten seconds
def test_the_walk(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    shown = run("demo", "--out", str(out)).stdout
    told = "A raw table|one customer, whatever the number|in the formula|R²|refused|left: epsilon 0.2"
    assert not [words for words in told.split("|") if words not in shown]
    assert not re.search(r"e-[3-9]\d|\bmu\b|perturbed|delta 1\.", shown), "no internals"
    model = snugdp.load(out / "model.json")
    released = dict(zip(model.coef_names_, model.coef_, strict=True))
    assert all(abs(released[name] - value) < 1.5 for name, value in demo_table.TRUTH.items())
    assert set(model.left_out_) == {"order_id", "comment"}
    with snugdp.Ledger.open(out / "orders.ledger") as ledger:
        assert [entry.state for entry in ledger.entries()] == ["released", "released", "released", "refused"]
        assert ledger.unit == "person"
    assert (out / "report.html").read_text().startswith("<!")
    assert "already" in run("demo", "--out", str(out), code=1).stderr


def test_the_table_is_the_same_in_every_run_and_has_its_flaws() -> None:
    orders = demo_table.orders()
    assert orders.equals(demo_table.orders())
    assert orders["customer_id"].n_unique() == demo_table.CUSTOMERS
    often = orders.group_by("customer_id").len()["len"].to_numpy()
    assert (often.min(), often.max() > 8) == (1, True)
    assert orders["city"].null_count() > 100
    assert (orders["items"] == "n/a").sum() > 100
    per_customer = orders.unique("customer_id")["voucher"]
    assert (per_customer == 20).sum() == (per_customer == 0).sum()  # no table to ask for a median


def test_plain_least_squares_finds_the_formula() -> None:
    import numpy as np

    orders = demo_table.orders().filter(pl.col("items") != "n/a", pl.col("city").is_not_null())
    columns = [orders["items"].cast(float), orders["city"] == "Oslo", orders["express"] == "yes", orders["voucher"]]
    rows = np.column_stack([*(np.asarray(column, dtype=float) for column in columns), np.ones(len(orders))])
    line = np.linalg.lstsq(rows, orders["amount"].to_numpy(), rcond=None)[0]
    assert np.allclose(line[:4], list(demo_table.TRUTH.values()), atol=0.35)


def test_files_that_are_there_are_kept(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("mine")
    assert "already has a file orders.csv" in run("demo", "--out", str(tmp_path), code=1).stderr
    assert (tmp_path / "orders.csv").read_text() == "mine"
