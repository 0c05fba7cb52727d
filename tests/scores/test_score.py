"""Scores of models on private rows: what they are, in every container, and what never gets out."""

import math
import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn import metrics as known
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import snugdp
from snugdp.mechanisms.scores.release import ScoredTable
from snugdp.propose.share import Share
from snugdp.report.model import render
from snugdp.tables.found import FoundNumber
from tests.effort import sampled
from tests.scores.models import Failing, Hostile, Line, Panic, Ranked, Ranks, Threshold, Told, rows_of

LOUD = 20_000  # an epsilon with less noise than rounding shows
N = 3000
X, Y = rows_of(N)


def exact(model: Any, rows: Any, y: Any, **options: Any) -> snugdp.ModelScores:
    """The scores without noise."""
    outcome = snugdp.score(model, rows, y, epsilon=LOUD, **options)
    assert outcome.value is not None
    return outcome.value


def test_two_classes_are_scored_as_scikit_learn_does() -> None:
    found, p, said = exact(Threshold(), X, Y), Threshold().predict_proba(X)[:, 1], Threshold().predict(X)
    assert abs(found["roc_auc"].value - known.roc_auc_score(Y, p)) < 0.001
    for name in ("accuracy", "precision", "recall", "f1"):
        assert abs(found[name].value - getattr(known, f"{name}_score")(Y, said)) < 0.004
        assert found[name].lower < found[name].value < found[name].upper
    assert (
        abs(np.array(found.confusion_matrix) - known.confusion_matrix(Y, said)).max() <= 4
    )  # probabilities are rounded
    assert found.unscored == 0
    losses = exact(Threshold(), X, Y, metric=("log_loss", "brier"), floor=1e-4)
    assert abs(losses["log_loss"].value - known.log_loss(Y, p)) < 0.003
    assert abs(losses["brier"].value - known.brier_score_loss(Y, p)) < 0.0005
    assert abs(exact(Threshold(), X, Y, metric="roc_auc")["roc_auc"].value - found["roc_auc"].value) < 0.003
    assert len(found.calibration_curve) > 4
    assert sum(point.true_positive_rate for point in found.roc_curve) > 0


def test_models_without_probabilities() -> None:
    assert abs(exact(Ranked(), X, Y)["roc_auc"].value - known.roc_auc_score(Y, X[:, 0])) < 0.003
    assert abs(exact(Told(), X, Y)["accuracy"].value - np.mean(Told().predict(X) == Y)) < 1e-9
    assert "roc_auc" not in exact(Told(), X, Y).values
    for metric in ("log_loss", "calibration"):
        with pytest.raises(ValueError, match="needs probabilities"):
            snugdp.Score(model=Ranked(), metric=metric, epsilon=1)
    with pytest.raises(ValueError, match="needs scores"):
        snugdp.Score(model=Told(), metric="roc_auc", epsilon=1)


def test_several_classes_and_numbers() -> None:
    labels = np.where(X[:, 0] < -0.5, "low", np.where(X[:, 0] < 0.7, "middle", "top"))
    model = LogisticRegression().fit(X[:300], labels[:300])
    found = exact(model, X, labels, metric=("accuracy", "f1", "confusion", "log_loss", "brier"), floor=1e-4)
    said, p = model.predict(X), model.predict_proba(X)
    assert abs(found["accuracy"].value - known.accuracy_score(labels, said)) < 3 / N
    assert abs(found["f1"].value - known.f1_score(labels, said, average="macro")) < 0.005
    assert abs(found["f1: top"].value - known.f1_score(labels, said, average=None)[2]) < 0.005
    assert abs(found["log_loss"].value - known.log_loss(labels, p)) < 0.005
    one_hot = (labels[:, None] == model.classes_[None]).astype(float)
    assert abs(found["brier"].value - ((p - one_hot) ** 2).sum(axis=1).mean()) < 0.001
    y = 2 * X[:, 0] + X[:, 1]
    outcome = snugdp.score(Line(), X, y, metric=("r2", "mse", "mae"), bounds=(-20, 20), epsilon=LOUD)
    assert (numbers := outcome.value) is not None
    assert abs(numbers["r2"].value - known.r2_score(y, Line().predict(X))) < 0.005
    assert abs(numbers["mse"].value - known.mean_squared_error(y, Line().predict(X))) < 0.03
    assert abs(numbers["mae"].value - known.mean_absolute_error(y, Line().predict(X))) < 0.01
    assert abs(exact(Line(), X, y, metric="mse", bounds=(-20, 20), max_error=6)["mse"].value - 1) < 0.1


def containers(folder: Path) -> dict[str, Any]:
    """The same table in every container; the target is among the columns."""
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "bought": Y})
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    objects = table.to_pandas().astype(object)
    return {
        "polars": table, "pandas": table.to_pandas(), "objects": objects, "arrow": table.to_arrow(),
        "lazy": table.lazy(), "csv": str(folder / "t.csv"), "parquet": folder / "t.parquet",
    }  # fmt: skip


@pytest.mark.slow
def test_every_container_gives_the_same_counts(tmp_path: Path) -> None:
    model = LogisticRegression().fit(pd.DataFrame(X[:200], columns=["a", "b"]), Y[:200])
    own = snugdp.LogisticRegression(20, 1e-3, classes=[0, 1], x_norm=3).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    for scored in (model, own):
        beside = exact(scored, pd.DataFrame(X, columns=["a", "b"]), Y)
        for name, table in containers(tmp_path).items():
            assert exact(scored, table, "bought").parts == beside.parts, name
    rows = LogisticRegression().fit(X[:200], Y[:200])
    plain = exact(rows, X, Y)
    assert exact(rows, X.tolist(), Y.tolist()).parts == plain.parts
    assert exact(rows, X.astype(object), pd.Series(Y)).parts == plain.parts
    assert exact(rows, np.ma.masked_array(X), pl.Series(Y)).parts == plain.parts


@sampled(3)
@pytest.mark.parametrize("odd", [None, "?", [], 1j, np.float32(0.1), 2**53 + 1, [[1]], math.nan, math.inf, b"x"])
def test_an_odd_cell_changes_its_own_row_alone(odd: Any) -> None:
    """One cell in the features, or in the target: what all other rows add stays the same."""
    base = exact(Threshold(), X[1:40].tolist(), Y[1:40].tolist(), metric="confusion")
    for rows, labels in (([[odd, 0.0], *X[1:40].tolist()], [1, *Y[1:40].tolist()]),
                         (X[:40].tolist(), [odd, *Y[1:40].tolist()])):  # fmt: skip
        frame = pd.DataFrame({"a": pd.Series([row[0] for row in rows], dtype=object), "b": [row[1] for row in rows]})
        table = frame.assign(y=pd.Series(labels, dtype=object))
        forms = [(rows, labels), (frame, pd.Series(labels, dtype=object)), (table, "y")]
        for form in forms:
            found = exact(Threshold(), *form, metric="confusion")
            moved = np.abs(np.array(found.parts["table"]) - base.parts["table"]).sum() + found.unscored
            assert moved <= 1


@pytest.mark.slow
def test_pipelines_get_text_and_numbers() -> None:
    colours = np.where(X[:, 0] > 0, "red", "blue")
    table = pd.DataFrame({"colour": colours, "b": X[:, 1], "y": Y})
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(table[["colour", "b"]][:300], Y[:300])
    found = exact(model, table, "y")
    assert abs(found["accuracy"].value - model.score(table[["colour", "b"]], Y)) < 2 / N
    table.loc[0, "colour"] = "violet"  # the encoder fails on it, and so on every batch that has it
    assert exact(model, table, "y").unscored == 1


@sampled(4)
@pytest.mark.parametrize("error", [ValueError, SystemExit, Panic, MemoryError])
def test_what_a_model_raises_or_warns_of_stays_inside(error: Any, capfd: pytest.CaptureFixture[str]) -> None:
    rows = X.copy()
    rows[:3, 0] = 4217.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = snugdp.score(Hostile(error), rows, Y, epsilon=LOUD)
    assert outcome.value is not None
    assert outcome.value.unscored == (rows[:, 0] > 2).sum()
    assert "4217" not in repr(outcome) + "".join(capfd.readouterr())


def test_a_model_that_changes_its_rows_and_fails_is_asked_about_them_as_they_were() -> None:
    """Otherwise one row on which it fails would move the scores of all rows that were asked about beside it."""

    class Careless(Threshold):
        def predict_proba(self, X: Any) -> Any:
            X -= 10.0  # as a scaler does with copy=False
            if np.isnan(np.asarray(X)).any():
                raise ValueError
            return super().predict_proba(X + 10.0)

    rows = np.array([[-0.3], [0.2], [0.4]])
    for table in (rows, pd.DataFrame(rows, columns=["a"])):
        wide = np.vstack([rows, [[np.nan]]])
        more = wide if isinstance(table, np.ndarray) else pd.DataFrame(wide, columns=["a"])
        found = [_counted(Careless(), each) for each in (table, more)]
        assert found[0][:-1] == found[1][:-1]
        assert found[1][-1] == 1


def _counted(model: Any, rows: Any) -> list[int]:
    """The sums of a pass, without noise."""
    score = snugdp.Score(model=model, epsilon=1)
    table, reader = score.opened(rows, [1] * len(rows))
    return ScoredTable(score.work(reader, score._task(True)), score.mechanism(Share.pure(score._budget)))._sums(
        table.source
    )


def test_a_model_that_fails_always_is_found_before_the_charge() -> None:
    ledger = snugdp.MemoryLedger(1, composition="tight")
    with pytest.raises(ValueError, match="cannot score a row of zeros") as caught:
        snugdp.score(Failing(), X, Y, epsilon=1, ledger=ledger)
    assert "made up" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="the model was fitted on 1"):
        snugdp.score(LogisticRegression().fit(X[:, :1], Y), pd.DataFrame(X), Y, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_an_interrupt_is_stored_as_a_refusal(tmp_path: Path) -> None:
    """The same key shows the refusal, and draws nothing again."""
    rows = X.copy()
    rows[0, 0] = 9.0
    ledger = snugdp.Ledger.open(tmp_path / "l.db", dataset="people", budget=snugdp.Budget(5))
    with pytest.raises(KeyboardInterrupt) as caught:
        snugdp.score(Hostile(KeyboardInterrupt), rows, Y, epsilon=1, ledger=ledger.once("a"))
    assert "9." not in "".join(traceback.format_exception(caught.value))
    assert snugdp.score(Hostile(KeyboardInterrupt), rows, Y, epsilon=1, ledger=ledger.once("a")).refused
    assert ledger.spent.epsilon == 1


def test_a_key_is_good_for_one_model(tmp_path: Path) -> None:
    ledger = snugdp.Ledger.open(tmp_path / "l.db", dataset="people", budget=snugdp.Budget(5))
    model = LogisticRegression().fit(X[:300], Y[:300])
    one = snugdp.score(model, X, Y, epsilon=1, ledger=ledger.once("a"))
    assert snugdp.score(model, X, Y, epsilon=1, ledger=ledger.once("a")).value == one.value
    with pytest.raises(snugdp.KeyConflictError):
        snugdp.score(LogisticRegression().fit(X[300:600], Y[300:600]), X, Y, epsilon=1, ledger=ledger.once("a"))
    with pytest.raises(snugdp.KeyConflictError):
        snugdp.score(model, X, Y, metric="accuracy", epsilon=1, ledger=ledger.once("a"))
    assert ledger.spent.epsilon == 1


def test_a_model_that_looks_at_other_rows_can_be_asked_one_by_one() -> None:
    few = slice(0, 60)
    assert exact(Ranks(), X[few], Y[few], one_by_one=True, metric="accuracy")["accuracy"].value == np.mean(Y[few] == 1)
    assert exact(Ranks(), X[few], Y[few], metric="accuracy")["accuracy"].value != np.mean(Y[few] == 1)


@pytest.mark.slow
def test_persons_and_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than a batch, from a file; each person counts once."""
    many = 30_000
    monkeypatch.setattr("snugdp.tables.sources.frames.step", lambda columns: 7000)  # rows of a batch
    rows, labels = rows_of(many, 4)
    path = tmp_path / "big.parquet"
    pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "y": labels, "who": np.arange(many) // 3}).write_parquet(path)
    model = LogisticRegression().fit(pd.DataFrame(rows[:500], columns=["a", "b"]), labels[:500])
    found = exact(model, path, "y")
    assert sum(found.parts["bins"]) == many
    once = snugdp.score(model, path, "y", epsilon=LOUD, person="who")
    assert once.value is not None
    assert abs(sum(once.value.parts["bins"]) - math.ceil(many / 3)) < 3
    assert once.unit is snugdp.Unit.PERSON
    twice = snugdp.Score(model=model, epsilon=2, person="who", max_rows=2)
    assert twice.plan().cost.epsilon == 2
    assert "2 rows of each person" in str(twice.plan())


def test_plans_and_mistakes_are_said_before_any_row_is_read() -> None:
    plan = snugdp.Score(model=Threshold(), epsilon=0.5).plan()
    assert plan.cost.epsilon == plan.cost.epsilon_at(0) == 0.5
    assert "assumed to depend on that row alone" in str(plan)
    own = snugdp.LinearRegression(1, 1e-6, x_norm=3, y_bound=9, method="adassp").fit(X, X[:, 0])
    assert "assumed" not in str(snugdp.Score(model=own, epsilon=0.5).plan())
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": Line()}, "bounds is needed"),
        ({"model": Threshold(), "metric": "r2"}, "no metric of this model"),
        ({"model": Threshold(), "metric": ()}, "names no metric"),
        ({"model": Threshold(), "metric": "accuracy", "rare": True}, 'metric="roc_auc" alone'),
        ({"model": Threshold(), "rare": True, "neighbours": "replace"}, "add_remove"),
        ({"model": Threshold(), "bounds": (0, 1)}, "for models that predict a number"),
        ({"model": Threshold(), "floor": 0.7}, "floor must be"),
        ({"model": Threshold(), "classes": [0, 1]}, "leave out classes"),
        ({"model": Line(), "bounds": (1, 0)}, "low < high"),
        ({"model": Line(), "bounds": (0, 1), "max_error": 2}, "max_error must be"),
    ]
    for given, words in wrong:
        with pytest.raises(ValueError, match=words):
            snugdp.Score(**given, epsilon=1)
    with pytest.raises(TypeError, match="fitted estimator"):
        snugdp.Score(model=LogisticRegression, epsilon=1)
    with pytest.raises(ValueError, match="give y"):
        snugdp.score(Threshold(), X, epsilon=1)
    with pytest.raises(TypeError, match="dense"):
        snugdp.score(Threshold(), scipy.sparse.csr_matrix(X), Y, epsilon=1)


def test_a_rehearsed_model_is_not_released_and_a_rehearsal_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=3, random_state=1).fit(X, Y)
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        snugdp.score(model, X, Y, epsilon=1)
    assert isinstance(snugdp.score(model, X, Y, epsilon=1, noise=snugdp.Simulation(1)), snugdp.NotPrivate)


def test_rare_classes_are_said_honestly() -> None:
    few = Y.copy()
    few[:] = 0
    few[:5] = 1
    found = snugdp.score(Threshold(), X, few, epsilon=0.5, noise=snugdp.Simulation(1)).value
    assert found is not None
    area = found["roc_auc"]
    assert (area.lower, area.upper, area.note) == (0.0, 1.0, "small-positive")
    assert math.isnan(area.value)
    assert found.to_dict()["roc_auc"]["value"] is None


def test_what_is_printed_has_the_table_the_curve_and_the_reasons() -> None:
    asked = ["auc", "confusion_matrix", "calibration"]
    found = snugdp.score(Threshold(), X, Y, metric=asked, epsilon=5, noise=snugdp.Simulation(1)).value
    assert found is not None
    assert found.metrics == ("roc_auc", "confusion", "calibration")
    told = str(found)
    for row in found.confusion_matrix:
        assert any(line.split()[1:] == list(map(str, row)) for line in told.splitlines())
    assert told.count("predicted 0.") == len(found.calibration_curve)
    assert "0 to 1" not in told.splitlines()[1]  # no interval that says nothing
    assert "rows of 1, predicted 0" in found._repr_html_()
    few = np.zeros_like(Y)
    none = snugdp.score(Threshold(), X, few, epsilon=0.5, noise=snugdp.Simulation(1)).value
    assert none is not None
    assert "roc_auc: there are too few rows of the positive class" in str(none)


def test_numbers_are_scored_where_targets_were_seen() -> None:
    """Bounds that were found in private reach further out, and would only add noise."""
    draw = np.random.default_rng(2)
    wages = pl.DataFrame({"age": draw.uniform(20, 60, 4000)}).with_columns(wage=2000 + 20 * pl.col("age"))
    model = snugdp.LinearRegression(4, 1e-6, noise=snugdp.Simulation(1)).fit(wages, "wage")
    found = snugdp.score(model, wages, "wage", epsilon=1, noise=snugdp.Simulation(1)).value
    assert found is not None
    number = model.bounds_.columns["wage"]
    assert isinstance(number, FoundNumber)
    assert found.bounds == number.hull
    assert number.lower < found.bounds[0] < found.bounds[1] < number.upper
    assert f"clipped to [{found.bounds[0]:g}" in str(found)


def test_notebooks_and_reports_show_the_curves() -> None:
    outcome = snugdp.score(Threshold(), X, Y, epsilon=1)
    assert outcome.value is not None
    page = outcome.value._repr_html_()
    assert page.count("<svg") == 2
    assert "area under the ROC curve" in page
    report = render(outcome, plan=snugdp.Score(model=Threshold(), epsilon=1).plan())
    assert report.count('class="area"') >= 2
    assert "<script" not in page + report
    named = exact(LogisticRegression().fit(X[:300], np.where(Y, "<b>", "&")[:300]), X, np.where(Y, "<b>", "&"))
    assert "<b>" not in named._repr_html_()


def test_a_pass_travels_to_the_rows_of_a_cluster() -> None:
    """As Spark sends it: the copy sums up the same, and so do its packed states."""
    score = snugdp.Score(model=LogisticRegression().fit(X[:300], Y[:300]), epsilon=1)
    table, reader = score.opened(X, Y)
    work = score.work(reader, score.mechanism(Share.pure(snugdp.Budget(1))).task)
    sent = pickle.loads(pickle.dumps(work))
    frames = [batch.frame for part in table.source.partitions() for batch in part.batches(work.columns)]
    here, there = (each.fold(each.empty(), frames[0]) for each in (work, sent))
    assert work.unpack(sent.pack(there)).values() == here.values()
