"""Estimators paid from a ledger that outlives the process: clones, pickles and searches, each fit charged once."""

import math
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import snugdp
from snugdp.estimators.base import AbsentLedger
from snugdp.estimators.deferred_ledger import DeferredLedger
from snugdp.estimators.methods.linear import METHODS
from snugdp.tables.losses.losses import PseudoHuber, SoftHinge
from tests.effort import sampled
from tests.ledger.conftest import Where, made
from tests.serial.test_codec import same

N = 4000
RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, (N, 3)) * [1, 0.5, 0.2]
Y = X @ [1.0, -1.0, 0.5]
LABELS = (Y > 0).astype(int)
THREE = np.array(["a", "b", "c"])[LABELS + (X[:, 0] > 0)]
BUDGET = snugdp.Budget(100, 1e-2)
URL = "postgresql://ana:hush@db.example/privacy?sslmode=require&password=hush#census"


def line(ledger: Any = None, **given: Any) -> Any:
    return snugdp.LinearRegression(
        **{"epsilon": 2, "method": "adassp", "x_norm": 1, "y_bound": 1.5, "ledger": ledger, **given}
    )


def linear(method: str) -> Callable[[Any], Any]:
    rows = N if method in ("ops_balanced", "descent") else None
    proposals = (
        {"ridge": 1000.0} if method in ("posterior", "output") else {"steps": 5} if method == "descent" else None
    )
    return lambda ledger: line(ledger, method=method, rows=rows, proposals=proposals).fit(X, Y)


def logistic(**given: Any) -> Callable[[Any], Any]:
    return lambda ledger: snugdp.LogisticRegression(epsilon=4, x_norm=1, classes=[0, 1], ledger=ledger, **given).fit(
        X, LABELS
    )


def of_three(**given: Any) -> Callable[[Any], Any]:
    return lambda ledger: snugdp.LogisticRegression(
        epsilon=4, x_norm=1, classes=["a", "b", "c"], ledger=ledger, **given
    ).fit(X, THREE)


def pca(**given: Any) -> Callable[[Any], Any]:
    return lambda ledger: snugdp.PCA(**{"n_components": 1, "epsilon": 4, "x_norm": 1, "ledger": ledger, **given}).fit(X)


def sparse(selection: str, **given: Any) -> Callable[[Any], Any]:
    return lambda ledger: snugdp.SparseLinearRegression(
        2, epsilon=4, selection=selection, y_bound=1.5, method="adassp", ledger=ledger, **given
    ).fit(X, Y)


FITS: dict[str, Callable[[Any], Any]] = {
    **{f"linear {method}": linear(method) for method in METHODS},
    "linear grid": lambda ledger: line(
        ledger, proposals={"ridge": [1.0, 10.0]}, validation=(X[:50], Y[:50]), selection={"route": "compose"}
    ).fit(X, Y),
    "logistic": logistic(),
    "logistic objective": logistic(method="objective"),
    "logistic output": logistic(method="output", rows=N),
    "softmax": of_three(),
    "one versus rest": of_three(method="objective", multi_class="ovr"),
    "poisson": lambda ledger: snugdp.PoissonRegression(epsilon=4, x_norm=1, y_max=5, ledger=ledger).fit(X, LABELS),
    "soft hinge": lambda ledger: snugdp.GLM(SoftHinge(0.5), epsilon=4, x_norm=1, classes=[0, 1], ledger=ledger).fit(
        X, LABELS
    ),
    "pseudo Huber": lambda ledger: snugdp.GLM(PseudoHuber(0.5), epsilon=4, x_norm=1, y_bound=1.5, ledger=ledger).fit(
        X, Y
    ),
    "pca": pca(center="private"),
    "pca projector": pca(method="projector"),
    "pca dual": pca(method="dual"),
    "pca gauss": pca(method="gauss", n_components="auto", rows=N),
    "sparse gumbel": sparse("gumbel"),
    "sparse gaussian": sparse("gaussian", row_norm=1),
    "sparse votes": sparse("votes"),
    "sparse logistic": lambda ledger: snugdp.SparseLogisticRegression(
        2, epsilon=4, classes=[0, 1], method="objective", ledger=ledger
    ).fit(X, LABELS),
    "pate": lambda ledger: snugdp.PATEClassifier(
        GaussianNB(), None, 40, epsilon=0.1, test="none", classes=[0, 1], queries=X[:60], ledger=ledger
    ).fit(X, LABELS),  # 60 coins
}


def roomy(cost: snugdp.Cost) -> snugdp.Cost:
    """Caps above a cost, in round numbers."""
    parts = ("mu_squared", "epsilon", "delta")
    caps = {part: Fraction(math.ceil(getattr(cost, part) * 2**40 + 1), 2**40) for part in parts}
    return snugdp.Cost(**caps, variation=cost.variation, atoms=cost.atoms)  # type: ignore[arg-type]


def answers(model: Any) -> Any:
    if not model.released_:
        return None
    return model.transform(X[:20]) if hasattr(model, "transform") else model.predict(X[:20])


@sampled(28)
@pytest.mark.parametrize("name", FITS)
def test_a_retry_gives_the_same_estimator_bit_by_bit(name: str, tmp_path: Path) -> None:
    fresh = FITS[name](None)
    with snugdp.Ledger.open(tmp_path / "ledger", dataset="people", budget=roomy(fresh.cost_)) as ledger:
        first = FITS[name](ledger.once("k"))
        again = FITS[name](ledger.once("k"))
        kept = {found for found in vars(first) if found.endswith("_")} - {"student_"}
        assert kept == {found for found in vars(again) if found.endswith("_")} - {"student_"}
        assert "outcome_" in kept
        for found in kept:
            assert same(getattr(first, found), getattr(again, found)), found
        assert same(answers(first), answers(again))
        (entry,) = ledger.entries()
        assert entry.state == ("released" if first.released_ else "refused")  # and not "consumed"
        assert first.receipt_.key == "k"
        assert ledger.spent == first.receipt_.cost
    assert not first.released_ or not same(fresh.outcome_.value, first.outcome_.value)


TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(region="north")


def places(where: Where, ledger: snugdp.Ledger) -> dict[str, Any]:
    return {"object": ledger, "path or URL": where.address, "part": ledger.part("region", "north")}


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize(
    "how", ["object", *(pytest.param(how, marks=pytest.mark.slow) for how in ("path or URL", "part"))]
)
def test_a_search_in_two_workers_charges_every_fit_exactly_once(where: Where, ledger: snugdp.Ledger, how: str) -> None:
    ledger.partition("region", ["north", "south"])
    model = line(places(where, ledger)[how])
    search = GridSearchCV(model, {"epsilon": [1, 2]}, cv=3, n_jobs=2).fit(TABLE if how == "part" else X, Y)
    entries = ledger.entries()
    assert len(entries) == 7
    assert {entry.state for entry in entries} == {"released"}
    assert len({entry.key for entry in entries}) == 7
    costs = [line(epsilon=epsilon).plan(3).cost for epsilon in (1, 2)]
    last = search.best_estimator_.receipt_.cost
    total = sum(3 * costs, snugdp.Cost()) + last
    assert sum((entry.cost for entry in entries), snugdp.Cost()) == ledger.spent
    assert float(ledger.spent.mu_squared) == pytest.approx(float(total.mu_squared), rel=1e-12)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (total.epsilon, total.delta)
    assert search.best_estimator_.ledger is model.ledger
    ledger.verify([search.best_estimator_.receipt_])


def test_estimators_that_come_back_from_workers_know_their_ledger(ledger: snugdp.Ledger) -> None:
    found = cross_validate(line(ledger), X, Y, cv=2, n_jobs=2, return_estimator=True)["estimator"]
    assert len(ledger.entries()) == 2
    ledger.verify([model.receipt_ for model in found])
    found[0].fit(X, Y)
    assert len(ledger.entries()) == 3


@pytest.mark.parametrize("how", ["object", "path or URL", "part"])
def test_clones_share_and_pickles_find_it_again(where: Where, ledger: snugdp.Ledger, how: str) -> None:
    ledger.partition("region", ["north", "south"])
    rows = TABLE if how == "part" else X
    model = line(places(where, ledger)[how]).fit(rows, Y)
    assert clone(model).ledger is model.ledger
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
    assert same(again.predict(rows), model.predict(rows))
    clone(again).fit(rows, Y)
    again.fit(rows, Y)
    entries = ledger.entries()
    assert len(entries) == 3
    assert {entry.part for entry in entries} == {("region", "north") if how == "part" else None}
    assert where.address in repr(again) or where.kind == "postgres" or how == "part"


def test_a_model_predicts_where_its_ledger_is_not(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with snugdp.Ledger.open(path, dataset="people", budget=BUDGET) as ledger:
        stored = [pickle.dumps(line(ledger).fit(X, Y)), pickle.dumps(line(path).fit(X, Y))]
    for file in tmp_path.iterdir():
        file.unlink()
    for each in stored:
        model = pickle.loads(each)
        assert model.predict(X).shape == (N,)
        assert isinstance(model.ledger, DeferredLedger | str)
        with pytest.raises(snugdp.LedgerError, match="no ledger"):
            model.fit(X, Y)


def test_a_relative_path_is_meant_where_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snugdp.Ledger.open("ledger", dataset="people", budget=BUDGET).close()
    sent = pickle.dumps(line("ledger"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert isinstance(pickle.loads(sent).fit(X, Y).outcome_, snugdp.Released)


def test_a_ledger_in_memory_stays_behind() -> None:
    ledger = snugdp.MemoryLedger(10, 1e-3, composition="tight")
    model = line(ledger).fit(X, Y)
    assert clone(model).ledger is ledger
    again = pickle.loads(pickle.dumps(model))
    assert isinstance(again.ledger, AbsentLedger)
    with pytest.raises(RuntimeError, match="stayed behind"):
        again.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own, about fits that failed
        with pytest.raises(ValueError, match="stayed behind"):
            GridSearchCV(model, {"epsilon": [1, 2]}, cv=2, n_jobs=2).fit(X, Y)
    assert ledger.spent == model.cost_


def test_a_key_cannot_be_given_to_a_search(ledger: snugdp.Ledger) -> None:
    for jobs in (1, 2):
        search = GridSearchCV(line(ledger.once("k")), {"epsilon": [1, 2]}, cv=2, n_jobs=jobs)
        with pytest.raises(snugdp.KeyConflictError, match="5 private fits: a key names one release"):
            search.fit(X, Y)
    with pytest.raises(TypeError, match="a key is for one release"):
        pickle.dumps(line(ledger.once("k")))
    assert ledger.entries() == ()
    model = line(ledger.once("k")).fit(X, Y)
    assert same(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    with pytest.raises(snugdp.KeyConflictError):
        model.fit(X, Y)


def test_no_password_is_shown_or_pickled() -> None:
    one = line(URL)
    models = [one, clone(one), line().set_params(ledger=URL), make_pipeline(FunctionTransformer(), one)]
    for model in [*models, *(GridSearchCV(model, {}) for model in models)]:
        for each in (model, clone(model)):
            shown = [repr(each), str(each), each._repr_html_(), repr(each.get_params())]
            assert not [text for text in shown if "hush" in text]
            assert all("census" in text for text in shown)
            stored = pickle.dumps(each)
            assert b"hush" not in stored
            assert b"sslmode=require" in stored
    assert clone(one).ledger == one.ledger == one.get_params()["ledger"] == URL  # it is used all the same
    assert pickle.loads(pickle.dumps(one)).ledger == "postgresql://ana@db.example/privacy?sslmode=require#census"


def test_a_budget_that_runs_out_leaves_no_model(where: Where) -> None:
    with made(where, snugdp.Budget(2, 1e-6)) as ledger:
        model = line(ledger).fit(X, Y)
        with pytest.raises(snugdp.BudgetExceededError):
            model.fit(X, Y)
        assert not hasattr(model, "coef_")
        assert len(ledger.entries()) == 1


class Untrained(GaussianNB):  # type: ignore[misc]
    """A teacher that must not see more than the two public rows of the trial."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        assert len(X) <= 20
        return super().fit(X, y)


def test_teachers_are_not_trained_for_a_fit_that_is_not_covered(where: Where) -> None:
    def pate(ledger: Any, **given: Any) -> Any:
        known = {"n_teachers": 40, "epsilon": 2, "test": "none", "classes": [0, 1], "queries": X[:20]}
        return snugdp.PATEClassifier(**{"teacher": GaussianNB(), **known, "ledger": ledger, **given})

    with made(where, snugdp.Budget(2, 1e-6)) as ledger:
        first = pate(ledger.once("k")).fit(X, LABELS)
        for short in (ledger, where.address, ledger.once("another")):
            with pytest.raises(snugdp.BudgetExceededError, match="No teacher was trained"):
                pate(short, teacher=Untrained()).fit(X, LABELS)
        again = pate(ledger.once("k")).fit(X, LABELS)
        assert same(again.outcome_, first.outcome_)
        assert same(again.predict(X), first.predict(X))
        assert len(ledger.entries()) == 1


def test_without_a_ledger_nothing_is_summed_up_and_the_docstring_says_so() -> None:
    first, second = line().fit(X, Y), line().fit(X, Y)
    assert first.receipt_.sequence == second.receipt_.sequence == 1
    assert first.outcome_.cost == first.cost_ == first.plan_.cost
    for kind in (snugdp.LinearRegression, snugdp.LogisticRegression, snugdp.PATEClassifier):
        assert "Without a ledger, fits are not counted against any budget" in " ".join(str(kind.__doc__).split())
