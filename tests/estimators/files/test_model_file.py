"""Model files: what is saved is loaded bit by bit and predicts the same; what is damaged is refused in words."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.linear_model import Perceptron
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import snugdp
from snugdp.estimators.files import model_file
from snugdp.tables.losses.losses import SoftHinge
from tests.effort import often, repeated, sampled

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, (3000, 4))
Y = X @ [1.0, -0.5, 0.25, 0.0] + 0.1
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
NEW = RNG.uniform(-1, 1, (50, 4))
TABLE = pl.DataFrame(
    {"a": X[:, 0], "city": ["Rome", "Oslo"] * 1500, "member": X[:, 1] > 0, "count": np.arange(3000) % 5, "y": Y}
)
COLUMNS: dict[str, Any] = {
    "a": snugdp.Number(Fraction(-1, 2), 0.5),
    "city": snugdp.Category(["Rome", "Oslo"]),
    "member": snugdp.Boolean(),
    "count": snugdp.Number(0, 4),
    "y": snugdp.Number(-2, 2),
}


def schema(target: str | None) -> snugdp.Schema:
    return snugdp.Schema(COLUMNS, target=target)


def as_rows(values: Any) -> pl.DataFrame:
    return pl.DataFrame(values, schema=["p", "q", "r", "s"], orient="row")


TWO = np.where(X[:, 0] > 0, "yes", "no")
PUBLIC = RNG.uniform(-0.5, 0.5, (40, 4))
PATE: dict[str, Any] = {"n_teachers": 100, "epsilon": 4, "delta": 1e-5, "test": "none", "classes": ["no", "yes"]}
GRID: dict[str, Any] = {"proposals": {"ridge": range(1, 3)}, "validation": (X[:50], Y[:50]), "method": "adassp"}
ROWS = as_rows(X)
# Every estimator of ours, unfitted, with what it is fitted to and rows to predict.
ESTIMATORS: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "linear": (snugdp.LinearRegression(x_norm=np.sqrt(2), y_bound=(-2, 2)), (X, Y), NEW),
    "grid": (snugdp.LinearRegression(epsilon=4, x_norm=1, y_bound=2, **GRID), (X, Y), NEW),
    "table": (snugdp.LinearRegression(Fraction(1, 3), schema=schema("y"), method="adassp"), (TABLE,), TABLE),
    "two": (snugdp.LogisticRegression(classes=pl.Series(["no", "yes"]), x_norm=1), (X, TWO), NEW),
    "three": (snugdp.LogisticRegression(classes=np.unique(LABELS), x_norm=1), (X, LABELS), NEW),
    "ovr": (snugdp.LogisticRegression(classes=np.unique(LABELS), multi_class="ovr", x_norm=1), (X, LABELS), NEW),
    "member": (snugdp.LogisticRegression(schema=schema("member")), (TABLE,), TABLE),
    "counts": (snugdp.PoissonRegression(schema=schema("count")), (TABLE,), TABLE),
    "glm": (snugdp.GLM(SoftHinge(0.5), classes=["no", "yes"], x_norm=1), (X, TWO), NEW),
    "sparse": (snugdp.SparseLinearRegression(2, method="adassp", x_bound=0.5, y_bound=2), (X, Y), NEW),
    "sparse table": (snugdp.SparseLinearRegression(2, method="adassp", schema=schema("y")), (TABLE,), TABLE),
    "sparse labels": (snugdp.SparseLogisticRegression(2, classes=["no", "yes"], x_bound=0.5), (X, TWO), NEW),
    "pca": (snugdp.PCA(2, x_norm=1, center="private"), (X,), NEW),
    "pca table": (snugdp.PCA(0.9, schema=schema("y")), (TABLE,), TABLE),
    "prepare": (snugdp.Prepare(missing="indicator"), (TABLE,), TABLE),
    "scaler": (snugdp.StandardScaler(), (X,), NEW),
    "encoder": (snugdp.OneHotEncoder(categories=[["no", "yes"], None]), ([["no", "a"]] * 500,), [["no", "b"]]),
    "pate": (snugdp.PATEClassifier(student=PlainLogistic(), queries=PUBLIC, **PATE), (X, TWO), NEW),
    "pate frame": (snugdp.PATEClassifier(student=Perceptron(), queries=as_rows(PUBLIC), **PATE), (ROWS, TWO), ROWS),
    "pate svc": (snugdp.PATEClassifier(student=LinearSVC(), queries=PUBLIC, **PATE), (X, TWO), NEW),
}


@functools.cache
def fitted(name: str) -> Any:
    model, data, _ = ESTIMATORS[name]
    return model.fit(*data)


@functools.cache
def saved(name: str) -> str:
    return json.dumps(model_file.as_dict(fitted(name)))


@sampled(21)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_loaded_model_is_the_saved_one_bit_by_bit(name: str, tmp_path: Path) -> None:
    model, rows = fitted(name), ESTIMATORS[name][-1]
    file = tmp_path / "model.json"
    snugdp.save(model, file)
    found = snugdp.load(file)
    assert type(found) is type(model)
    for ask in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, ask):
            assert np.array_equal(getattr(found, ask)(rows), getattr(model, ask)(rows)), ask
    for attribute, value in vars(model).items():
        if attribute.endswith("_") and attribute not in ("plan_", "outcome_", "student_", "certificate_"):
            np.testing.assert_equal(vars(found)[attribute], value)
    assert str(found.plan_) == str(model.plan_)
    assert found.plan_.cost == model.cost_ == found.outcome_.cost
    assert found.get_params()["epsilon"] == model.get_params()["epsilon"]
    again, once = model_file.as_dict(found), json.loads(file.read_text())
    assert {**again, "time": ""} == {**once, "time": ""}
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_what_people_read_is_there() -> None:
    whole = model_file.as_dict(fitted("table"))
    assert whole["guarantee"]["delta"] == 1e-6
    assert "times as likely" in whole["guarantee"]["words"]
    assert whole["schema"]["columns"]["city"] == {"type": "category", "values": ["Rome", "Oslo"]}
    assert whole["schema"]["columns"]["a"]["lower"] == "-1/2"
    assert len(whole["released"]["coef"]["floats"]) == 5
    assert whole["released"]["coef_names"] == {"tuple": ["a", "city=Oslo", "city=(none)", "member", "count"]}
    assert whole["parameters"]["epsilon"] == {"ratio": "1/3"}


def test_nothing_of_the_ledger_or_the_noise_is_written(tmp_path: Path) -> None:
    ledger = snugdp.MemoryLedger(2, 1e-5, label="people")
    model = snugdp.LinearRegression(x_norm=1, y_bound=2, method="adassp", ledger=ledger).fit(X, Y)
    snugdp.save(model, tmp_path / "model.json")
    found = snugdp.load(tmp_path / "model.json")
    assert found.receipt_ == model.receipt_
    assert found.receipt_.ledger == "people"
    assert found.ledger is None


@pytest.mark.slow
def test_a_file_is_durable_before_it_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, model = tmp_path / "model.json", fitted("linear")
    snugdp.save(model, file)
    before, synced, replace = file.read_bytes(), [], Path.replace

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_size)

    def checked(path: Path, target: Any) -> Path:
        assert synced == [path.stat().st_size]
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", checked)
    snugdp.save(model, file)
    assert synced == [file.stat().st_size]

    def full(handle: int) -> None:
        raise OSError("no space left")

    file.write_bytes(before)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        snugdp.save(model, file)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert file.read_bytes() == before


def test_a_refused_fit_is_kept_as_refused(tmp_path: Path) -> None:
    model = snugdp.LinearRegression(
        epsilon=1, method="posterior", x_norm=1, y_bound=2, proposals={"gamma": 1e6, "ridge": 0.001}
    ).fit(X[:20], Y[:20])
    assert not model.released_
    snugdp.save(model, tmp_path / "model.json")
    found = snugdp.load(tmp_path / "model.json")
    assert found.outcome_ == model.outcome_
    with pytest.raises(snugdp.NotReleased, match="refused"):
        found.predict(NEW)


def test_a_rehearsal_stays_one(tmp_path: Path) -> None:
    model = snugdp.LinearRegression(x_norm=1, y_bound=2, method="adassp", noise=snugdp.Simulation(1)).fit(X, Y)
    snugdp.save(model, tmp_path / "model.json")
    found = snugdp.load(tmp_path / "model.json")
    assert found.guarantee_ is None
    assert found.receipt_ is None
    assert "NOT PRIVATE" in repr(found.outcome_)
    assert np.array_equal(found.predict(NEW), model.predict(NEW))


def test_what_cannot_be_saved_says_what_can(tmp_path: Path) -> None:
    tree = snugdp.PATEClassifier(
        student=DecisionTreeClassifier(), n_teachers=50, epsilon=4, test="none", classes=[False, True], queries=NEW
    ).fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match=r"student is linear.*LogisticRegression"):
        snugdp.save(tree, tmp_path / "model.json")
    with pytest.raises(TypeError, match=r"DecisionTreeClassifier cannot be saved; these can: LinearRegression"):
        snugdp.save(DecisionTreeClassifier(), tmp_path / "model.json")
    with pytest.raises(ValueError, match="not fitted"):
        snugdp.save(snugdp.LinearRegression(), tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


EMPTY_TEXTS = {"array": {"shape": [10**11], "dtype": "<U0", "data": ""}}


def changed(*path: str, value: Any = None, model: str = "linear") -> dict[str, Any]:
    whole = json.loads(saved(model))
    part = whole
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return dict(whole)


change = functools.partial(functools.partial, changed)  # made when the test runs, not when it is collected


@sampled(18)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict, '"format" must be'),
        (list, '"format" must be'),
        (change("version", value=3), "get a newer snugdp"),
        (change("version", value=True), "get a newer snugdp"),
        (change("kind", value="os.system"), '"kind" must be one of'),
        (change("kind", value="LinearRegression"), '"kind" must be one of linear-regression/1'),
        (change("version", value=1), '"kind" must be one of LinearRegression'),
        (change("features", "names", value=["a", "b", "c", "d"], model="table"), "the columns of the schema"),
        (change("features", "names", value=["city", "a", "member", "count"], model="table"), "columns of the schema"),
        (change("features", "names", value=["a", "b", "c"], model="pca table"), "as many names as it counts"),
        (change("features", "names", value=["y", "a", "b", "c"], model="sparse table"), "the columns of the schema"),
        (change("released", "student", value={"dict": []}), "LinearRegression has no student"),
        (change("released", "labels", value=1), "LinearRegression has no labels"),
        (change("released", "student", value={"dict": []}, model="pate"), "the student must have"),
        (change("released", "classes", value=EMPTY_TEXTS, model="pate"), "not a value"),
        (change("extra"), '"extra" is not known'),
        (change("plan"), "must be text"),
        (change("outcome", value="refused"), '"outcome" must be "released"'),
        (change("parameters", "extra"), "parameters must be"),
        (change("parameters", "epsilon", value=0.5), '"guarantee" is not that'),
        (change("guarantee", "epsilon", value=0.5), '"guarantee" is not that'),
        (change("guarantee"), '"guarantee" is not that'),
        (change("cost", "epsilon", value=0.5), '"cost" must hold'),
        (change("features", "count", value=3), '"features"|coefficients|theta'),
        (change("features", "count", value=10**18), '"features"'),
        (change("receipt", "sequence", value="1"), "not a value"),
        (change("receipt", "extra"), '"receipt" must have'),
        (change("released", "coef", "floats", value=[0.0] * 4), '"coef" is not what the exact outcome gives'),
        (change("released", "intercept", value=float("nan")), '"intercept" is not what'),
        (change("released", "exact", "certificate", value={"record": ["os:system", {}]}), "not a value"),
        (change("schema", "columns", "a", "upper", value=-1, model="table"), "lower bound must be less"),
        (change("schema", "columns", "a", "type", value="text", model="table"), "columns.a.type must be"),
    ],
)
def test_what_is_wrong_is_said(change: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model_file.from_dict(change())


def test_a_missing_field_is_named() -> None:
    whole = changed("outcome", value="released")
    del whole["receipt"]
    with pytest.raises(ValueError, match='"receipt" is missing'):
        model_file.from_dict(whole)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff\xfe", "no text in UTF-8"),
        (b"coefficients", "not valid JSON"),
        (b'{"format": NaN}', "NaN is not a valid JSON number"),
        (b'{"format": 1e999}', "too large"),
        (b'{"format": 1, "format": 2}', "written twice"),
        (b"[" * 100_000, "nested too deeply|not valid JSON"),
    ],
)
def test_a_file_that_is_none(text: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(text)
    with pytest.raises(ValueError, match=words):
        snugdp.load(tmp_path / "model.json")


def test_an_error_does_not_carry_the_bytes_of_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "people.parquet").write_bytes(b"PAR1\xff Quetzalcoatl")
    with pytest.raises(ValueError, match="not a snugdp model") as caught:
        snugdp.load(tmp_path / "people.parquet")
    assert caught.value.__context__ is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read the model"):
        snugdp.load(tmp_path / "model.json")


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON tree."""
    items: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    return [path, *(place for key, value in items for place in places(value, (*path, key)))]


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just([]), st.just({}), st.just([[]]),
    st.sampled_from([{"floats": [1.0]}, {"floats": "x"}, {"ratio": "1/0"}, {"ratio": 1}, {"tuple": None},
                     {"array": {}},
                      {"enum": ["neighbours/1", "x"]}, {"record": []}, {"dict": [[1]]}]),
)  # fmt: skip


@pytest.mark.slow
@repeated
@settings(max_examples=often(20, 60, 150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_file_is_a_value_error_or_a_model(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["pate", "pca", "sparse", "table", "three"]))
    whole = json.loads(saved(name))
    *path, last = data.draw(st.sampled_from(places(whole)[1:]))
    part = whole
    for key in path:
        part = part[key]
    if data.draw(st.booleans()):
        part[last] = data.draw(JUNK)
    else:
        del part[last]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = model_file.from_dict(whole)
        except ValueError:
            return
    assert found.released_ or whole["released"] is None


@repeated
@settings(max_examples=often(12, 40, 100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 10**6), junk=st.binary(max_size=3), cut=st.booleans())
def test_damaged_bytes_are_a_value_error_or_a_model(
    at: int, junk: bytes, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.json"
    body = saved("table").encode()
    place = at % len(body)
    file.write_bytes(body[:place] + junk + (b"" if cut else body[place + len(junk) :]))
    with contextlib.suppress(ValueError):
        assert snugdp.load(file).released_
