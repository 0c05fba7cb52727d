"""The benchmark of bounds: its tables, its scores, and what it says."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from snugdp_studies.bench.bounds import contest, tables
from tests.cli.people import run


@pytest.mark.parametrize("kind", tables.KINDS)
def test_made_up_tables_are_finite_and_the_same_every_time(kind: str) -> None:
    (X, y), (again, _) = (tables.load(tables.MADE_UP, kind, 300) for _ in range(2))
    assert X.shape[0] == len(y) == 300
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    assert y.std() > 0
    assert np.array_equal(X, again)
    assert not np.array_equal(X, tables.load(tables.MADE_UP, kind, 300, 1)[0])


def test_files_lose_gaps_and_text_but_keep_orders(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("1,2,3\n4,5,6\n")
    with gzip.open(tmp_path / "diamonds.csv.gz", "wt") as file:
        file.write("carat,cut,price,shop\n1.5,Ideal,10,a\n,Fair,11,b\n2.5,Fair,12,c\n")
    assert tables.names(str(tmp_path)) == ["diamonds", "plain"]
    X, y = tables.load(str(tmp_path), "plain", 0)
    assert (X.tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])
    X, y = tables.load(str(tmp_path), "diamonds", 0)
    assert (X.tolist(), y.tolist()) == ([[1.5, 5], [2.5, 1]], [10, 12])


def test_a_folder_without_tables_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no table"):
        tables.names(str(tmp_path))
    with pytest.raises(ValueError, match="no folder"):
        tables.names(str(tmp_path / "missing"))
    (tmp_path / "text.csv").write_text("a,b\nx,1\ny,2\n")
    with pytest.raises(ValueError, match="at least one other column"):
        tables.load(str(tmp_path), "text", 0)


@pytest.mark.parametrize("labels", [False, True])
def test_public_bounds_learn_something(labels: bool) -> None:
    setting = contest.BoundsSetting(tables.MADE_UP, ["units"], (4.0,), 1e-6, 2000, 1, labels)
    fits = {"public": (contest.LABELS if labels else contest.NUMBERS)["public"]}
    (found,) = contest.run(setting, fits)
    assert found.middle("public") < 0.5 if labels else found.middle("public") > 0.7


def test_losses_are_signed_by_what_is_better() -> None:
    scores = {"public": [0.4, 0.5, 0.6], "private": [0.3, 0.4, 0.45]}
    numbers = contest.BoundsComparison("t", 10, 2, 1.0, scores, larger=True)
    labels = contest.BoundsComparison("t", 10, 2, 1.0, scores, larger=False)
    assert numbers.loss == pytest.approx(0.2)
    assert labels.loss == pytest.approx(-0.2)
    assert (numbers.worst("private"), labels.worst("private")) == (0.3, 0.45)
    assert contest.BoundsComparison("t", 10, 2, 1.0, {"public": [-0.1], "private": [0.2]}, larger=True).loss is None


def test_scores_of_perfect_and_of_constant_predictions() -> None:
    y = np.array([0.0, 1.0, 1.0, 0.0])
    assert contest.r_squared(y, y) == 1
    assert contest.r_squared(y, np.full(4, 0.5)) == 0
    assert contest.log_loss(y, np.full((4, 2), 0.5)) == pytest.approx(np.log(2))


def test_the_command_prints_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "NUMBERS", {"public": lambda *_: 0.5, "private": lambda *_: 0.49})
    file = tmp_path / "found.json"
    output = run("bench", "bounds", "--datasets", "units", "--rows", "500", "--json", str(file)).output
    assert "+2.0%" in output
    assert "Goals" in output
    assert json.loads(file.read_text())[0]["table"] == "units"


def test_an_unknown_table_is_an_error() -> None:
    assert "there is no table nothing" in run("bench", "bounds", "--datasets", "nothing", code=1).output
