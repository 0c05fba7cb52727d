"""snugdp predict: the same numbers as in Python, in the order of the rows, from files of every kind."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.cli import reading
from snugdp.tables.schema.schema import Schema
from tests.cli import people
from tests.cli.people import run
from tests.effort import sampled


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    people.write(folder)
    schema, table = Schema.from_toml(folder / "people.toml"), people.table()

    def aim(name: str) -> Schema:
        return Schema(schema.columns, target=name)

    snugdp.save(snugdp.LinearRegression(schema=schema, method="adassp").fit(table), folder / "linear.json")
    snugdp.save(snugdp.LogisticRegression(epsilon=2, schema=aim("city")).fit(table), folder / "city.json")
    snugdp.save(snugdp.PCA(2, schema=aim("income")).fit(table), folder / "pca.json")
    X = table.select("age", "visits").to_numpy()
    snugdp.save(
        snugdp.LinearRegression(method="adassp", x_norm=100, y_bound=2e5).fit(X, table["income"].to_numpy()),
        folder / "array.json",
    )
    return folder


@sampled(3)
@pytest.mark.parametrize("data", ["people.parquet", "people.csv"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_same_numbers_in_the_order_of_the_rows(
    data: str, form: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "step", lambda columns: 700)  # several batches
    out = tmp_path / f"out.{form}"
    run("predict", saved / "linear.json", saved / data, "-o", out, "--keep", "id")
    found = pl.read_csv(out) if form == "csv" else pl.read_parquet(out)
    expected = snugdp.load(saved / "linear.json").predict(people.table())
    assert found["id"].cast(int).to_list() == list(range(4000))
    assert np.allclose(found["prediction"].to_numpy(), expected, rtol=1e-12)
    if form == "parquet" and data == "people.parquet":
        assert np.array_equal(found["prediction"].to_numpy(), expected)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_probabilities_labels_and_coordinates(saved: Path, tmp_path: Path) -> None:
    model = snugdp.load(saved / "city.json")
    run("predict", saved / "city.json", saved / "people.parquet", "--probabilities", "-o", tmp_path / "p.parquet")
    found = pl.read_parquet(tmp_path / "p.parquet")
    assert found.columns == ["probability=Lima", "probability=Oslo", "probability=Rome"]
    assert np.array_equal(found.to_numpy(), model.predict_proba(people.table()))
    run("predict", saved / "city.json", saved / "people.parquet", "-o", tmp_path / "l.csv")
    assert pl.read_csv(tmp_path / "l.csv")["prediction"].to_list() == model.predict(people.table()).tolist()
    run("predict", saved / "pca.json", saved / "people.parquet", "-o", tmp_path / "c.parquet")
    found = pl.read_parquet(tmp_path / "c.parquet")
    assert found.columns == ["pca0", "pca1"]
    assert np.array_equal(found.to_numpy(), snugdp.load(saved / "pca.json").transform(people.table()))


def test_without_a_target_and_to_the_terminal(saved: Path, tmp_path: Path) -> None:
    people.table(3).drop("income", "id").write_parquet(tmp_path / "new.parquet")
    lines = run("predict", saved / "linear.json", tmp_path / "new.parquet").stdout.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 4


def test_a_model_of_arrays_takes_columns_in_their_order(saved: Path, tmp_path: Path) -> None:
    people.table().select("age", "visits").write_csv(tmp_path / "rows.csv")
    run("predict", saved / "array.json", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    expected = snugdp.load(saved / "array.json").predict(people.table().select("age", "visits").to_numpy())
    assert np.allclose(pl.read_csv(tmp_path / "out.csv")["prediction"].to_numpy(), expected)
    assert "without names" in run("predict", saved / "array.json", saved / "people.csv", code=1).stderr


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_no_rows_are_a_file_with_a_head(form: str, saved: Path, tmp_path: Path) -> None:
    people.table(0).write_csv(tmp_path / "none.csv")
    run("predict", saved / "city.json", tmp_path / "none.csv", "-o", tmp_path / f"out.{form}", "--keep", "id")
    found = pl.read_csv(tmp_path / "out.csv") if form == "csv" else pl.read_parquet(tmp_path / "out.parquet")
    assert found.columns == ["id", "prediction"]
    assert len(found) == 0


def test_a_folder_is_read_file_by_file(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for part in range(3):
        people.table()[part * 100 : part * 100 + 100].write_parquet(tmp_path / "parts" / f"{part}.parquet")
    run("predict", saved / "linear.json", tmp_path / "parts", "-o", tmp_path / "out.csv", "--keep", "id")
    assert pl.read_csv(tmp_path / "out.csv")["id"].to_list() == list(range(300))


def test_what_is_wrong_is_said(saved: Path, tmp_path: Path) -> None:
    linear, data = saved / "linear.json", saved / "people.parquet"
    assert "must end in" in run("predict", linear, data, "-o", tmp_path / "out.xls", code=1).stderr
    assert "no probabilities" in run("predict", linear, data, "--probabilities", code=1).stderr
    assert 'no column "height"' in run("predict", linear, data, "--keep", "height", code=1).stderr
    assert "cannot read the model" in run("predict", tmp_path / "none.json", data, code=1).stderr
    assert "there is no file" in run("predict", linear, tmp_path / "none.csv", code=1).stderr
    (tmp_path / "m.json").write_text("{}")
    assert '"format" must be' in run("predict", tmp_path / "m.json", data, code=1).stderr
    people.table(2).select("age").write_csv(tmp_path / "few.csv")
    assert "has no column" in run("predict", linear, tmp_path / "few.csv", code=1).stderr
    people.table(2).rename({"id": "prediction"}).write_csv(tmp_path / "twice.csv")
    assert "rename it" in run("predict", linear, tmp_path / "twice.csv", "--keep", "prediction", code=1).stderr
