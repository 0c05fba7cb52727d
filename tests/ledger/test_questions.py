"""A key is good for one question: the same shows the same outcome, another is refused before anything is drawn."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import snugdp
from snugdp import (
    GLM,
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    Budget,
    Cost,
    KeyConflictError,
    Ledger,
    LinearRegression,
    LogisticRegression,
    Neighbours,
    Number,
    PATEClassifier,
    PoissonRegression,
    Schema,
    SparseLinearRegression,
    SparseLogisticRegression,
    Statistic,
)
from snugdp.certify.smooth import smooth_bound
from snugdp.core.outcome import Receipt
from snugdp.ledger import question as asked
from snugdp.ledger.question import Question, column_name, plain
from snugdp.noise import Exact, Laplace
from snugdp.tables.losses.losses import PseudoHuber, SoftHinge
from snugdp_studies.audit.side_channels.entry_points import paid, points_of
from tests.effort import sampled
from tests.ledger.asking import by_name, said, voted
from tests.serial.test_codec import same

N = 60
X = np.random.default_rng(7).uniform(-0.5, 0.5, (N, 2))
Y = X @ [0.5, -0.5]
LABELS = (Y > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b"])
QUERIES = pd.DataFrame(X[:9].round(2), columns=["a", "b"])
CAP = Cost(mu=1000, epsilon=1000, delta="0.9")


class Untouched:
    """A source of noise that must not be drawn from."""

    private = True

    def at(self, step: str) -> Untouched:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "reveal":  # of public schemas, before the charge
            return Exact().reveal
        raise AssertionError(f"drawn: {name}")


class Asked(Exception):  # noqa: N818
    """Ends a release at its charge."""


class Listener:
    """An account that only hears what would be charged."""

    def charge(self, cost: Cost, what: str, *, plan: str = "", question: Any = None) -> Receipt:
        raise Asked(question.digest, cost)

    def knows(self, cost: Cost, what: str, *, plan: str = "", question: Any = None) -> bool:
        raise Asked(question.digest, cost)

    def recall(self, receipt: Receipt) -> str | None: ...

    def settle(self, receipt: Receipt, body: str | None) -> str | None: ...


@dataclass(frozen=True)
class Case:
    """One release. ``others``: changes of its parameters, or of the data, that make another question."""

    ask: Callable[..., Any]  # data, target, ledger and parameters
    given: dict[str, Any]
    others: tuple[dict[str, Any], ...]
    y: Any = None
    table: bool = True

    def __call__(self, ledger: Any, X: Any = None, y: Any = None, **changes: Any) -> Any:
        data = (FRAME if self.table else FRAME["a"]) if X is None else X
        return self.ask(data, self.y if y is None else y, **{**self.given, "ledger": ledger, **changes})

    def charged(self, **how: Any) -> tuple[str, Cost]:
        """The digest of what would be charged, and its cost."""
        with pytest.raises(Asked) as caught:
            self(Listener(), **how)
        text, cost = caught.value.args
        return text, cost

    def text(self, **how: Any) -> str:
        return self.charged(**how)[0]


def fit(kind: Any) -> Callable[..., Any]:
    def ask(X: Any, y: Any, **given: Any) -> Any:
        return kind(**given).fit(X, y)

    return ask


def query(function: Any) -> Callable[..., Any]:
    return lambda X, y, **given: function(X, **given)


VALIDATION = {"validation": (FRAME[:9], Y[:9]), "method": "sufficient"}
QUICK = {"method": "objective", "proposals": {"ridge": 40}}
TARGET = pd.Series(Y, name="income")
CLASS = pd.Series(LABELS, name="sick")
CASES: dict[str, Case] = {
    "LinearRegression": Case(
        fit(LinearRegression),
        {"method": "adassp", "x_norm": 1, "y_bound": 1, "epsilon": 1},
        (
            {"x_norm": 1.0000001},
            {"y_bound": (-1, 1.0000001)},
            {"fit_intercept": False},
            {"rows": 50},
            {"proposals": {"ridge": 1.0}},
            {"proposals": {"ridge": 1.0000000001}},
            VALIDATION,
            {**VALIDATION, "validation": (FRAME[:9], Y[1:10])},
        ),
        TARGET,
    ),
    "LogisticRegression": Case(
        fit(LogisticRegression),
        {**QUICK, "x_norm": 1, "classes": [0, 1]},
        ({"x_norm": 1.01}, {"classes": [0, 2]}, {"classes": [0, 1, 2], "multi_class": "ovr"}, {"fit_intercept": False}),
        CLASS,
    ),
    "PoissonRegression": Case(
        fit(PoissonRegression),
        {**QUICK, "x_norm": 1, "y_max": 4},
        ({"y_max": 5}, {"rate_max": 1.5}, {"x_norm": 1.01}, {"rows": 9}),
        CLASS,
    ),
    "GLM": Case(
        fit(GLM),
        {**QUICK, "loss": PseudoHuber(1), "x_norm": 1, "y_bound": 1},
        (
            {"loss": PseudoHuber(0.75)},
            {"y_bound": (-1, 2)},
            {"loss": SoftHinge(0.5), "classes": [0, 1], "y_bound": None},
        ),
        TARGET,
    ),
    "AdditiveRegressor": Case(
        fit(AdditiveRegressor),
        {"method": "adassp", "y_bound": 1, "cells": 2},
        ({"cells": 3}, {"linear": ["a"]}, {"missing": "drop"}, {"y_bound": 2}, {"fit_intercept": False}),
        TARGET,
    ),
    "AdditiveClassifier": Case(
        fit(AdditiveClassifier),
        {**QUICK, "classes": [0, 1], "cells": 2},
        ({"cells": 3}, {"linear": ["b"]}, {"classes": [0, 2]}),
        CLASS,
    ),
    "SparseLinearRegression": Case(
        fit(SparseLinearRegression),
        {"n_features_to_select": 1, "method": "adassp", "y_bound": 1},
        ({"x_bound": 2}, {"x_bound": (1, 2)}, {"n_features_to_select": 2}, {"selection_share": 0.3}, {"y_bound": 2}),
        TARGET,
    ),
    "SparseLogisticRegression": Case(
        fit(SparseLogisticRegression),
        {"n_features_to_select": 1, "classes": ["0", "1"], "method": "objective"},
        ({"classes": ["0", "2"]}, {"x_bound": 2}, {"selection": "gaussian", "row_norm": 1}),
        CLASS,
    ),
    "PCA": Case(
        fit(PCA),
        {"n_components": 1, "method": "gauss", "x_norm": 1},
        ({"center": [0, 0.25]}, {"center": "private"}, {"n_components": 2}, {"x_norm": 2}, {"focus": "components"}),
    ),
    "Prepare": Case(
        fit(snugdp.Prepare),
        {},
        ({"missing": "indicator"}, {"schema": Schema({"a": Number(0), "b": Number()})}),
    ),
    "StandardScaler": Case(fit(snugdp.StandardScaler), {}, ({"schema": Schema({"a": Number(0), "b": Number()})},)),
    "OneHotEncoder": Case(
        fit(snugdp.OneHotEncoder), {}, ({"categories": [["0", "1"], None]}, {"categories": [None, ["0", "1"]]})
    ),
    "PATEClassifier": Case(
        fit(PATEClassifier),
        {"teacher": GaussianNB(), "n_teachers": 3, "classes": [0, 1], "queries": QUERIES, "test": "none"},
        (
            {"queries": QUERIES + 0.01},
            {"teacher": GaussianNB(var_smoothing=0.1)},
            {"teacher": make_pipeline(StandardScaler(), GaussianNB())},
            {"student": BernoulliNB()},
            {"classes": [0, 2]},
            {"n_teachers": 4},
        ),
        CLASS,
    ),
    "median": Case(
        query(snugdp.median),
        {"bounds": (-1, 1), "epsilon": 1, "delta": 1e-6, "beta": 0.5},
        ({"bounds": (-1, 1.5)}, {"beta": 0.5000000001}, {"missing": 0.5}, {"rows": 9}, {"test_share": 0.51}),
        table=False,
    ),
    "quantile": Case(
        query(partial(snugdp.quantile, q=0.5)),
        {"bounds": (-1, 1), "epsilon": 1, "delta": 1e-6, "beta": 0.5, "neighbours": "replace"},
        ({"q": 0.25}, {"bounds": (-1, 1.5)}, {"step": 0.25}, {"beta": None, "method": "exponential"}),
        table=False,
    ),
    "quantiles": Case(
        query(partial(snugdp.quantiles, q=[0.25, 0.5, 0.75])),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"q": [0.25, 0.5]}, {"q": [0.5, 0.25, 0.75]}, {"bounds": (-1, 1.5)}, {"step": 0.25}, {"missing": 0}),
        table=False,
    ),
    "quantile_interval": Case(
        query(snugdp.quantile_interval),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"q": 0.25}, {"bounds": (-1, 1.5)}, {"step": 0.25}, {"missing": 0}),
        table=False,
    ),
    "quantile_table": Case(
        query(partial(snugdp.quantile_table, bins=4)),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"bins": 5}, {"bounds": (-1, 1.5)}, {"step": 0.25}, {"missing": 0}),
        table=False,
    ),
    "interquartile_range": Case(
        query(snugdp.interquartile_range),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"bounds": (-1, 1.5)}, {"step": 0.25}),
        table=False,
    ),
    "minimum": Case(
        query(snugdp.minimum),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"beyond": 3}, {"bounds": (-1, 1.5)}, {"step": 0.25}),
        table=False,
    ),
    "maximum": Case(
        query(snugdp.maximum),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"beyond": 3}, {"bounds": (-1, 1.5)}),
        table=False,
    ),
    "trimmed_mean": Case(
        query(snugdp.trimmed_mean),
        {"bounds": (-1, 1), "epsilon": 1},
        ({"trim": 0.1000001}, {"bounds": (-1, 1.5)}, {"missing": 1}),
        table=False,
    ),
    "mode": Case(
        query(snugdp.mode),
        {"categories": [0, 1], "epsilon": 1, "delta": 1e-6},
        ({"categories": [1, 0]}, {"categories": [0, 2]}, {"categories": ["0", "1"]}),
        table=False,
    ),
    "vote": Case(
        query(snugdp.vote),
        {"candidates": [0, 1], "epsilon": 1},
        ({"candidates": [0, 2]}, {"candidates": [0.5, 1]}, {"law": "laplace"}),
        table=False,
    ),
    "describe": Case(
        query(snugdp.describe),
        {"schema": snugdp.Schema({"a": snugdp.Number(0, 1), "b": snugdp.Number(-1, 1)}), "epsilon": 1},
        (
            {"schema": snugdp.Schema({"a": snugdp.Number(0, 2), "b": snugdp.Number(-1, 1)})},
            {"columns": ["a"]},
            {"quantiles": [0.5]},
            {"statistics": ["mean"]},
            {"steps": {"a": 1}},
            {"clip": None},
            {"rows": 100},
        ),
    ),
    "group_by": Case(
        query(partial(snugdp.group_by, by="a", statistics={"b": ["mean"]})),
        {"bounds": {"b": (-1, 1)}, "epsilon": 1, "delta": 1e-6},
        (
            {"bounds": {"b": (-1, 1.5)}},
            {"keys": [0, 1]},
            {"statistics": {"b": ["mean", "sum"]}},
            {"by": "b", "statistics": None},
            {"key_share": 0.25},
            {"missing": True},
        ),
    ),
    "private_bounds": Case(query(snugdp.private_bounds), {"epsilon": 1}, ({"outside": 0.0100001},), table=False),
}
WHERE: dict[str, Any] = {"bounds": (-1, 1), "epsilon": 1}
BOTH: dict[str, Any] = {"bounds": ((-1, 1), (-1, 2)), "epsilon": 1}
CASES |= {
    **{
        name: Case(
            query(getattr(snugdp, name)),
            WHERE,
            ({"bounds": (-1, 1.5)}, {"clip": None}, {"clip": "private"}, {"rows": 9}),
            table=False,
        )
        for name in ("sum", "mean", "variance", "standard_deviation")
    },
    **{
        name: Case(
            lambda X, y, name=name, **given: getattr(snugdp, name)((X, X), **given),
            BOTH,
            ({"bounds": ((-1, 1), (-1, 1))}, {"rows": 9}),
            table=False,
        )
        for name in ("covariance", "correlation")
    },
    "count": Case(query(snugdp.count), {"epsilon": 1}, (), table=False),
    "proportion": Case(
        query(snugdp.proportion), {"values": [0, 1], "epsilon": 1}, ({"values": None}, {"values": [0, 2]}), table=False
    ),
    "histogram": Case(
        query(snugdp.histogram),
        {"edges": [0, 1, 2], "epsilon": 1},
        ({"edges": [0, 1, 3]}, {"edges": None, "values": [0, 1]}, {"edges": None, "bins": 2, "bounds": (0, 2)}),
        table=False,
    ),
}
TOTAL: Statistic[Any] = Statistic("total", by_name, 1, "upper", (0, 1000))
COIN = {"budget": Budget(1, 1e-6)}


def coin(data: Any, noise: Any) -> float:
    return float(noise.add(data.map(by_name), Laplace(8), grid=0))


def scaled(data: Any, bounds: Any, noise: Any) -> float:
    return coin(data, noise)


def other(data: Any, noise: Any) -> float:
    return coin(data, noise)


def scaled_too(data: Any, bounds: Any, noise: Any) -> float:
    return coin(data, noise)


def loss(total: float) -> float:
    return 0.0


def run(proposal: float, budget: Budget, ledger: Any) -> Any:
    return snugdp.vote([0, 1], candidates=[0, 1], epsilon=budget.epsilon, ledger=ledger)


def another(proposal: float, budget: Budget, ledger: Any) -> Any:
    return run(proposal, budget, ledger)


def score(release: Any) -> float:
    return 0.0


def own(make: Any) -> Callable[..., Any]:
    return lambda X, y, ledger, noise=None, **given: make(**given)([1.0] * 9, ledger=ledger, noise=noise)


def smooth(beta: float) -> Any:
    widths: Any = {"sigma": 8, "sigma_scale": 10, "order": 6, "between": (1, 10), "delta": "1e-6"}
    return smooth_bound(by_name, by_name, beta=beta, neighbours=Neighbours.ADD_REMOVE, **widths)


CASES |= {
    "from_statistics": Case(
        own(snugdp.from_statistics),
        {**COIN, "loss": loss, "statistics": (TOTAL,), "draw": coin},
        ({"draw": other}, {"loss": lambda total: 0.0}, {"statistics": (replace(TOTAL, between=(0, 999)),)}),
        table=False,
    ),
    "from_distance": Case(
        own(snugdp.from_distance), {**COIN, "distance": by_name, "draw": coin}, ({"distance": len},), table=False
    ),
    "from_upper_bound": Case(
        own(snugdp.from_upper_bound),
        {"certifier": smooth(0.05), "draw": coin, "limit": 1, "release": Cost(epsilon=1)},
        ({"limit": 1.0000001}, {"draw": other}),
        table=False,
    ),
    "calibrated": Case(
        own(snugdp.calibrated), {**COIN, "statistics": (TOTAL,), "draw": scaled}, ({"draw": scaled_too},), table=False
    ),
    "select": Case(
        lambda X, y, **given: snugdp.select(**given),
        {
            "proposals": [0.1, 0.2],
            "run": run,
            "score": score,
            "budget": Budget(1),
            "route": "compose",
            "progress": False,
        },
        ({"proposals": [0.1, 0.3]}, {"run": another}, {"score": loss}),
        table=False,
    ),
    "score": Case(
        lambda X, y, model, **given: snugdp.score(model, X, y, **given),
        {"model": GaussianNB().fit(X, LABELS), "epsilon": 1},
        ({"model": GaussianNB().fit(X[:40], LABELS[:40])}, {"metric": "accuracy"}),
        CLASS,
    ),
    "pate.label": Case(
        lambda X, y, **given: snugdp.pate.label([[9, 1], [2, 8]], **given),
        {"budget": Budget(1, 1e-6), "test": "none", "sigma": 40},
        ({"gap": 3}, {"sigma": 40.0000001}, {"classes": ["a", "b"]}),
        table=False,
    ),
}
OF_NO_COLUMN = {
    "describe",
    "group_by",
    "from_statistics",
    "from_distance",
    "from_upper_bound",
    "calibrated",
    "select",
    "pate.label",
}


def test_every_entry_point_is_here() -> None:
    found = {one.name for name in snugdp.__all__ for one in points_of(name, getattr(snugdp, name), False, paid)}
    assert {name.partition(" (")[0] for name in found} == CASES.keys()


def test_a_column_of_a_table_is_another_question_than_its_neighbour() -> None:
    ask = Case(query(snugdp.median), {"bounds": (-1, 1), "epsilon": 1, "column": "a"}, ())
    assert ask.text() == ask.text(X=pl.from_pandas(FRAME)) != ask.text(column="b")


def shown(release: Any) -> Any:
    return release.outcome_ if hasattr(release, "outcome_") else release


@sampled(12)
@pytest.mark.parametrize("name", CASES)
def test_one_key_is_one_question(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    cost = case.charged()[1]
    caps = Cost(mu=1000, epsilon=1000, delta="0.9", variation=1, atoms=cost.atoms, neighbours=cost.neighbours)
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=caps) as ledger:
        check_key(name, case, ledger)


def check_key(name: str, case: Case, ledger: Ledger) -> None:
    first = shown(case(ledger.once("report")))
    assert same(shown(case(ledger.once("report"))), first)
    renamed = FRAME.rename(columns={"a": "c"})
    elsewhere = {"X": renamed if case.table else renamed["c"]}
    if name == "PATEClassifier":
        elsewhere["queries"] = QUERIES.rename(columns={"a": "c"})
    others = [*case.others, *([] if name in OF_NO_COLUMN else [elsewhere])]
    others += [] if case.y is None else [{"y": case.y.rename("height")}]
    for other in others:
        with pytest.raises(KeyConflictError, match="was used for another"):
            case(ledger.once("report"), noise=Untouched(), **other)
    (entry,) = ledger.entries()
    assert entry.cost == first.receipt.cost
    with pytest.raises(KeyConflictError, match=r"another question \(.* \[.*\]; now: .* \[.*\]\)"):
        case(ledger.once("report"), noise=Untouched(), **others[-1])  # plan and cost are the same
    ledger.verify([first.receipt])


@sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_what_makes_another_question_and_what_does_not(name: str) -> None:
    case = CASES[name]
    text = case.text()
    texts = [text, *(case.text(**other) for other in case.others)]
    assert len(set(texts)) == len(texts)
    if name in OF_NO_COLUMN:
        assert case.text() == text
        return
    rows = FRAME.iloc[::2] * 0.5 if case.table else FRAME["a"].iloc[::2] * 0.5
    y = None if case.y is None else case.y.iloc[::2]
    if name not in ("quantile", "trimmed_mean"):  # for which the number of rows is public
        assert case.text(X=rows, y=y) == text
    for table in (pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)):
        other = {"X": table if case.table else table["a"], "y": None if case.y is None else pl.from_pandas(case.y)}
        if isinstance(table, pa.Table) and not case.table:
            continue  # columns of pyarrow have no name
        if name == "PATEClassifier":
            other["queries"] = pl.from_pandas(QUERIES) if isinstance(table, pl.DataFrame) else pa.table(QUERIES)
        assert case.text(**other) == text
    assert case.text(epsilon=Fraction(2)) == case.text(epsilon=2.0) == case.text(epsilon="2") != text


def test_arrays_have_numbered_columns() -> None:
    case = CASES["LinearRegression"]
    numbered = FRAME.rename(columns={"a": "x0", "b": "x1"})
    assert case.text(X=X) == case.text(X=X.tolist()) == case.text(X=numbered) == case.text(X=pd.DataFrame(X))
    assert case.text(X=X) != case.text(X=X[:, :1])
    assert case.text(y=Y) == case.text(y=Y.tolist()) == case.text(y=pl.Series(Y)) == case.text(y=Y * 0.5)
    assert case.text(y=Y) != case.text(y=TARGET)


def test_a_target_by_its_schema() -> None:
    whole = FRAME.assign(income=Y, height=Y)
    columns = {"a": Number(-1, 1), "b": Number(-1, 1), "income": Number(-1, 1), "height": Number(-1, 1)}

    def text(schema: Schema, X: Any = whole, y: Any = None) -> str:
        return Case(fit(LinearRegression), {"method": "adassp", "schema": schema}, ()).text(X=X, y=y)

    income = Schema({name: columns[name] for name in ("a", "b", "income")}, target="income")
    height = Schema({name: columns[name] for name in ("a", "b", "height")}, target="height")
    turned = Schema({name: columns[name] for name in ("b", "a", "income")}, target="income")
    wider = Schema({**{name: columns[name] for name in ("a", "b")}, "income": Number(-1, "1.5")}, target="income")
    typed = Schema({**{name: columns[name] for name in ("a", "b")}, "income": Number(-1.0, 1.0)}, target="income")
    assert len({text(schema) for schema in (income, height, turned, wider)}) == 4
    assert text(typed) == text(income) == text(income, FRAME, Y) == text(income, FRAME, TARGET)
    assert text(income, FRAME, TARGET.rename("weight")) != text(income)


def test_classes_and_models_in_any_form() -> None:
    case = CASES["LogisticRegression"]
    forms = ([1, 0], (0, 1), range(2), np.array([0, 1]), pd.Series([0, 1]), {0, 1}, [0.0, 1.0])
    assert {case.text(classes=form) for form in forms} == {case.text()}
    case = CASES["PATEClassifier"]
    assert case.text(teacher=GaussianNB(), n_jobs=2, progress=False) == case.text()
    assert case.text(queries=QUERIES.astype(np.float64).copy()) == case.text()
    array = {"X": X, "queries": X[:5]}
    assert case.text(**array) == case.text(X=X, queries=X[:5].tolist()) != case.text(X=X, queries=X[:6])


def test_models_of_ours_count_by_all_their_parameters() -> None:
    class Tuned(LogisticRegression):
        def __init__(self, epsilon: float = 1.0, boost: int = 1) -> None:
            super().__init__(epsilon)
            self.boost = boost

        @classmethod
        def _get_param_names(cls) -> list[str]:
            return [*LogisticRegression._get_param_names(), "boost"]

    assert plain(LogisticRegression())[:2] == ["model", "logistic-regression/1"]  # as in ledgers that are there
    assert plain(Tuned(boost=1)) == plain(Tuned()) != plain(Tuned(boost=2))


def test_groups_are_another_question() -> None:
    whose = pd.Series(np.arange(N) % 20, name="person")

    def text(groups: Any) -> str:
        model = PATEClassifier(**CASES["PATEClassifier"].given, ledger=Listener())
        with pytest.raises(Asked) as caught:
            model.fit(FRAME, CLASS, groups=groups)
        return str(caught.value.args[0])

    assert len({text(groups) for groups in (None, whose, whose.rename("house"), whose.to_numpy())}) == 4
    assert text(whose) == text(pl.from_pandas(whose)) == text(whose[::-1])


def test_clones_and_pickles_ask_the_same(tmp_path: Path) -> None:
    model = LinearRegression(**CASES["LinearRegression"].given)
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=CAP) as ledger:
        first = clone(model).set_params(ledger=ledger.once("k")).fit(FRAME, TARGET)
        again = pickle.loads(pickle.dumps(model)).set_params(ledger=ledger.once("k")).fit(FRAME, TARGET)
        assert same(first.coef_, again.coef_)
        old = pickle.loads(pickle.dumps(first)).set_params(ledger=ledger.once("k"))
        assert same(old.fit(pl.from_pandas(FRAME), TARGET).coef_, first.coef_)
        assert len(ledger.entries()) == 1


def test_workers_ask_the_same(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=CAP) as ledger:
        work = [joblib.delayed(voted)(ledger.address, form) for form in ([0, 1], (0, 1))]
        (first, one), (second, other) = joblib.Parallel(n_jobs=2)(work)
        assert first == second == said()
        assert same(one, other)
        assert same(voted(ledger.address, range(2))[1], one)
        with pytest.raises(KeyConflictError):
            voted(ledger.address, [1, 0])
        assert len(ledger.entries()) == 1


@dataclass(frozen=True)
class Held:
    """A function that holds rows."""

    rows: Any

    def __call__(self, proposal: Any) -> float:
        return 0.0


def test_public_values_in_any_form() -> None:
    equal: list[list[Any]] = [
        [1, 1.0, Fraction(1), Decimal("1.00"), np.int8(1), np.float32(1)],
        [0.1, Fraction(1, 10), Decimal("0.1"), np.float64(0.1)],
        [[1, 2], (1.0, 2), np.array([1, 2]), range(1, 3), pd.Series([1, 2]), pl.Series([1, 2]), pa.array([1, 2])],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [{1, 2}, frozenset({2, 1})],
        [pd.DataFrame({"a": [1, None], "b": ["x", None]}), pl.DataFrame({"a": [1, None], "b": ["x", None]})],
        [pd.DataFrame([[1.0, 2.0]]), pd.DataFrame({"0": [1], "1": [2]})],
        [csr_array(np.eye(3)), coo_array(np.eye(3))],
        [
            np.arange(9999.0),
            np.arange(9999, dtype=np.float32),
            np.arange(9999.0)[::-1][::-1],
            -np.arange(0.0, -9999, -1),
        ],
        [by_name, partial(by_name, 1), partial(by_name, CLASS)],
        [Held(1), Held(CLASS)],
        [lambda: 1, lambda: 2],  # of one name: said in the documentation
        [GaussianNB(), GaussianNB()],
        [GaussianNB],
        [GaussianNB(var_smoothing=0.1)],
        [True],
        [None, float("nan")],
        ["1"],
        [b"1"],
        [float("inf")],
        [np.arange(9999.0).reshape(3, -1)],
    ]
    images = [{repr(plain(form)) for form in forms} for forms in equal]
    assert [len(image) for image in images] == [1] * len(images)
    assert len(set.union(*images)) == len(images)


def test_names_of_columns() -> None:
    for named in (pd.Series([1], name="a"), pl.Series("a", [1]), pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})):
        assert column_name(named) == "a"
    for bare in (pd.Series([1]), pl.Series([1]), np.ones(3), [1], "people.parquet", pa.array([1]), None, FRAME):
        assert column_name(bare) is None


def test_a_ledger_from_before_questions_opens_and_verifies(tmp_path: Path) -> None:
    case = CASES["LinearRegression"]
    plan = LinearRegression(**case.given).plan(2)
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=CAP) as ledger:
        receipt = ledger.charge(plan.cost, plan.title, key="k", plan=str(plan))
        ledger.settle(receipt, '{"snugdp outcome":1,"refused":true,"value":null,"certificate":null}')
    with Ledger.open(tmp_path / "ledger", receipts=[receipt]) as ledger:
        assert ledger.verify([receipt]).charges == 1
        with pytest.raises(KeyConflictError, match="by an older version"):
            case(ledger.once("k"), noise=Untouched())
        assert case(ledger.once("another")).receipt_.sequence == 3
        ledger.verify([receipt])


def test_keys_know_our_classes_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def kept(value: Any) -> Any:
        tree = plain(value)
        seen.append(json.dumps(tree))
        return tree

    monkeypatch.setattr(asked, "plain", kept)
    for case in CASES.values():
        case.charged()
    assert len(seen) > len(CASES)
    assert not [text for text in seen if "snugdp." in text]
    for own in ("linear-regression/1", "pca/1", "budget/1", "median/2", "statistic/1", "smooth-bound/1"):
        assert any(f'"{own}"' in text for text in seen), own


def test_a_key_means_the_same_after_the_words_have_changed(tmp_path: Path) -> None:
    cost, digest = Cost(epsilon="0.25"), asked.question("x", bounds=(0, 1)).digest
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=Budget(1, 1e-6)) as ledger:
        old: dict[str, Any] = {"what": "a", "plan": "p", "question": asked.Question("words", digest)}
        new: dict[str, Any] = {"what": "b", "plan": "q", "question": asked.Question("better words", digest)}
        first = ledger.charge(cost, key="k", **old)
        assert ledger.charge(cost, key="k", **new) == first
        assert ledger.once("k").knows(cost, **new)
        other: dict[str, Any] = {**old, "question": asked.question("words", bounds=(0, 2))}
        for wrong, words in ((other, "another question"), ({**old, "question": None}, "another release")):
            with pytest.raises(KeyConflictError, match=words):
                ledger.charge(cost, key="k", **wrong)
        with pytest.raises(KeyConflictError, match="another release"):
            ledger.charge(Cost(epsilon="0.2"), key="k", **old)
        assert ledger.spent == cost
    with Ledger.open(tmp_path / "ledger") as ledger:
        assert ledger.charge(cost, key="k", **new) == first
        (record,) = [json.loads(one["record"]) for one in json.loads(ledger.export())["records"]][1:]
        assert record["question"] == {"words": "words", "digest": digest}


def test_looking_is_free(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=Budget(1, 1e-6)) as ledger:
        cost = Cost(epsilon="0.25")
        assert not ledger.knows(cost, "a")
        assert not ledger.once("k").knows(cost, "a", plan="p")
        ledger.charge(cost, "a", key="k", plan="p")
        assert ledger.once("k").knows(cost, "a", plan="p")
        assert ledger.knows(cost, "a", key="k", plan="p")
        with pytest.raises(KeyConflictError):
            ledger.once("k").knows(cost, "a", plan="other")
        view = ledger.once("k")
        view.charge(cost, "a", plan="p")
        with pytest.raises(KeyConflictError, match="was used"):
            view.knows(cost, "a", plan="p")
        assert len(ledger.entries()) == 1


def test_what_would_remain_is_what_remains(tmp_path: Path) -> None:
    costs = [Cost(epsilon="0.1"), Cost(mu="0.05"), Cost(mu="0.02", delta="1e-8"), Cost(epsilon="0.05")]
    with Ledger.open(tmp_path / "ledger", dataset="people", budget=Budget(1, 1e-6)) as ledger:
        memory = snugdp.MemoryLedger(1, 1e-6)
        for cost in costs:
            expected, spent = ledger.remaining_after(cost), ledger.spent
            assert expected == memory.remaining_after(cost)
            assert ledger.spent == spent
            ledger.charge(cost, "a")
            memory.charge(cost, "a")
            assert ledger.remaining == expected == memory.remaining
        for large in (Cost(epsilon=1), Cost(mu=1), [Cost(epsilon="0.6"), Cost(epsilon="0.4")]):
            assert ledger.remaining_after(large) is None
        assert memory.remaining_after(Cost(epsilon=1)) is None
        assert ledger.once("new").remaining_after(costs[0]) == ledger.remaining_after(costs[0]) != ledger.remaining
        ledger.charge(costs[0], "a", key="old")
        assert ledger.once("old").remaining_after(costs[0]) == ledger.remaining
        held = ledger.reserve(Cost(epsilon="0.01"), "later")
        assert held.remaining_after(Cost(epsilon="0.01")) == ledger.remaining
        assert held.remaining_after(Cost(epsilon="0.02")) is None
        ledger.partition("region", ["north", "south"])
        ledger.part("region", "north").charge(Cost(epsilon="0.01"), "a")
        assert ledger.part("region", "south").remaining_after(Cost(epsilon="0.01")) == ledger.remaining


WORDLESS: Any = 5


@pytest.mark.parametrize(
    "given", [Question("x", "zz"), Question("x", "A" * 32), Question(WORDLESS, "0" * 32), ("x", "0" * 32), "x"]
)
def test_what_could_not_be_read_again_is_not_charged(somebody: None, tmp_path: Path, given: Any) -> None:
    """A receipt for a record that means nothing would be had for nothing, once the owner has voided that."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=Budget(1)) as ledger:
        with pytest.raises((TypeError, ValueError)):
            ledger.charge(Cost(epsilon=0.1), "x", question=given)
        assert ledger.spent == Cost()
        ledger.charge(Cost(epsilon=0.1), "x", question=asked.question("x"))
    with Ledger.open(tmp_path / "l") as again:
        assert again.verify().charges == 1
