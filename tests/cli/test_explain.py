"""snugdp explain: the contributions of Python, of all rows as a file and of one row as a table."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.cli import reading
from snugdp.tables.schema.schema import Schema
from tests.cli import people
from tests.cli.people import run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    people.write(folder)
    schema, table = Schema.from_toml(folder / "people.toml"), people.table()

    def aim(name: str) -> Schema:
        return Schema(schema.columns, target=name)

    snugdp.save(snugdp.AdditiveRegressor(schema=schema).fit(table), folder / "curves.json")
    snugdp.save(snugdp.LogisticRegression(epsilon=2, schema=aim("member")).fit(table), folder / "member.json")
    snugdp.save(snugdp.LogisticRegression(epsilon=2, schema=aim("city")).fit(table), folder / "city.json")
    snugdp.save(snugdp.PCA(2, schema=aim("income")).fit(table), folder / "pca.json")
    X = table.select("age", "visits").to_numpy()
    snugdp.save(
        snugdp.LinearRegression(method="adassp", x_norm=100, y_bound=2e5).fit(X, table["income"].to_numpy()),
        folder / "array.json",
    )
    return folder


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_all_rows_in_their_order(form: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "step", lambda columns: 700)  # several batches
    out = tmp_path / f"out.{form}"
    run("explain", saved / "curves.json", saved / "people.parquet", "-o", out, "--keep", "id")
    found = pl.read_csv(out) if form == "csv" else pl.read_parquet(out)
    expected = snugdp.load(saved / "curves.json").explain(people.table())
    assert found.columns == ["id", *expected.frame.columns]
    assert found["id"].to_list() == list(range(4000))
    np.testing.assert_allclose(found.drop("id").to_numpy(), expected.frame.to_numpy(), rtol=1e-9, atol=1e-9)


def test_one_row_as_a_table(saved: Path) -> None:
    said = run("explain", saved / "curves.json", saved / "people.csv", "--row", 3).stdout
    row = people.table()[2:3]
    model = snugdp.load(saved / "curves.json")
    lines = [line.replace("│", " ").split() for line in said.splitlines()]
    assert f"Row 3: prediction {model.predict(row)[0]:.6g}" in said
    added = model.explain(row).largest()
    assert [line[0] for line in lines if line and line[0] in added] == [*added]
    assert ["city", row["city"][0], f"{added['city']:+.6g}"] in lines
    said = run("explain", saved / "member.json", saved / "people.csv", "--row", 1).stdout
    assert "log-odds of True" in said
    said = run("explain", saved / "city.json", saved / "people.csv", "--row", 1, "--label", "Oslo").stdout
    assert "score of Oslo" in said


def test_a_model_of_arrays_shows_the_cells_of_its_columns(saved: Path, tmp_path: Path) -> None:
    people.table().select("age", "visits").write_parquet(tmp_path / "rows.parquet")
    said = run("explain", saved / "array.json", tmp_path / "rows.parquet", "--row", 1).stdout
    assert f"{people.table()['age'][0]:.6g}" in said


def test_missing_and_hostile_cells_are_shown_as_they_are(saved: Path, tmp_path: Path) -> None:
    odd = people.table(2).with_columns(age=pl.lit(None, pl.Float64), city=pl.lit("\x1b[31m" + "x" * 99))
    odd.write_parquet(tmp_path / "odd.parquet")
    said = run("explain", saved / "curves.json", tmp_path / "odd.parquet", "--row", 2).stdout
    assert "missing" in said
    assert "\x1b[31m" not in said
    assert "…" in said


def test_what_is_wrong_is_said(saved: Path, tmp_path: Path) -> None:
    data = saved / "people.parquet"
    assert "no row 4001" in run("explain", saved / "curves.json", data, "--row", 4001, code=1).stderr
    both = ("--row", 1, "-o", tmp_path / "out.csv")
    assert "leave out one" in run("explain", saved / "curves.json", data, *both, code=1).stderr
    assert "no sums over columns" in run("explain", saved / "pca.json", data, code=1).stderr
    assert "label must be one of" in run("explain", saved / "city.json", data, code=1).stderr
    assert "only one linear function" in run("explain", saved / "member.json", data, "--label", "x", code=1).stderr
    people.table(2).rename({"id": "base"}).write_csv(tmp_path / "twice.csv")
    said = run("explain", saved / "curves.json", tmp_path / "twice.csv", "--keep", "base", code=1).stderr
    assert "rename it" in said
