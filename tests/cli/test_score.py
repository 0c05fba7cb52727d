"""snugdp score: a model file, a table, a charge, and scores for people and machines."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.cli.errors import ERROR
from tests.cli.people import run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    draw = np.random.default_rng(1)
    X = draw.normal(size=(3000, 2))
    y = draw.random(3000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "bought": y})
    table.write_parquet(folder / "t.parquet")
    table.write_csv(folder / "t.csv")
    schema = snugdp.Schema(
        {"a": snugdp.Number(-4, 4), "b": snugdp.Number(-4, 4), "bought": snugdp.Boolean()}, target="bought"
    )
    snugdp.save(snugdp.LogisticRegression(4, 1e-5, schema=schema).fit(table), folder / "m.json")
    numbers = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]})
    numbers.write_parquet(folder / "n.parquet")
    line = snugdp.LinearRegression(4, 1e-5, x_norm=4, y_bound=4, method="adassp").fit(X, X[:, 0])
    snugdp.save(line, folder / "line.json")
    return folder


@pytest.mark.slow
def test_scores_are_printed_charged_and_reported(saved: Path, tmp_path: Path) -> None:
    book, page = tmp_path / "l.ledger", tmp_path / "r.html"
    run("ledger", "create", book, "--dataset", "t", "--epsilon", "3", "--delta", "1e-6")
    given = ("score", saved / "m.json", saved / "t.csv", "--epsilon", "1", "--ledger", book)
    told = run(*given, "--report", page).stdout
    assert "area under the ROC curve: 0." in told
    assert "95 % interval" in told
    assert "ROC curve, with a band" in page.read_text()
    found = json.loads(run(*given, "--metric", "auc", "--metric", "log-loss", "--json", "--key", "a").stdout)
    assert 0.5 < found["scores"]["roc_auc"]["value"] < 1
    assert len(found["roc_curve"]) == 12
    assert found["cost"]["epsilon"] == 1
    again = json.loads(run(*given, "--metric", "auc", "--metric", "log-loss", "--json", "--key", "a").stdout)
    assert again["scores"] == found["scores"]
    assert snugdp.Ledger.open(book).spent.epsilon == 2


def test_models_that_do_not_name_their_target(saved: Path) -> None:
    found = json.loads(
        run("score", saved / "line.json", saved / "n.parquet", "--target", "y", "--epsilon", "2", "--json").stdout
    )
    assert found["scores"]["mse"]["value"] < 2
    wrong = run("score", saved / "line.json", saved / "n.parquet", "--epsilon", "2", code=ERROR)
    assert "give y" in wrong.output
