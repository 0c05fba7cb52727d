"""Searches and cross-validations that a ledger cannot pay end before their first fit; all others are left alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  scikit-learn asks for it
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import snugdp
from snugdp import Budget, BudgetExceededError, Cost, LinearRegression, MemoryLedger, Simulation
from snugdp.estimators.registry import BY_NAME
from snugdp.estimators.workflows import searches
from snugdp.ledger.memory import RunLedger
from snugdp.tables.losses.losses import PseudoHuber
from tests.effort import sampled

RNG = np.random.default_rng(4)
X = RNG.uniform(-0.5, 0.5, (120, 3))
Y = X @ [0.5, -0.5, 0.2]
GRID = {"x_norm": [1, 2], "fit_intercept": [True, False]}
EPSILON = 0.1

Search = Callable[[Any], Any]
SEARCHES: dict[str, tuple[int, Search]] = {
    "GridSearchCV": (13, lambda model: GridSearchCV(model, GRID, cv=3).fit(X, Y)),
    "without refit": (12, lambda model: GridSearchCV(model, GRID, cv=3, refit=False).fit(X, Y)),
    "five splits": (21, lambda model: GridSearchCV(model, GRID).fit(X, Y)),
    "listed splits": (9, lambda model: GridSearchCV(model, GRID, cv=list(KFold(2).split(X))).fit(X, Y)),
    "a splitter": (9, lambda model: GridSearchCV(model, GRID, cv=KFold(2)).fit(X, Y)),
    "groups": (9, lambda model: GridSearchCV(model, GRID, cv=GroupKFold(2)).fit(X, Y, groups=np.arange(120) % 5)),
    "two grids": (13, lambda model: GridSearchCV(model, [GRID, {"x_norm": [3, 4]}], cv=2).fit(X, Y)),
    "several scores": (
        9,
        lambda m: GridSearchCV(m, GRID, cv=2, scoring=["r2", "neg_mean_squared_error"], refit="r2").fit(X, Y),
    ),
    "RandomizedSearchCV": (7, lambda model: RandomizedSearchCV(model, GRID, n_iter=3, cv=2).fit(X, Y)),
    "all of a list": (9, lambda model: RandomizedSearchCV(model, GRID, n_iter=4, cv=2).fit(X, Y)),
    "a law": (7, lambda m: RandomizedSearchCV(m, {"x_norm": uniform(1, 2)}, n_iter=3, cv=2, random_state=1).fit(X, Y)),
    "HalvingGridSearchCV": (13, lambda model: HalvingGridSearchCV(model, GRID, cv=2, factor=3).fit(X, Y)),
    "HalvingRandomSearchCV": (
        15,
        lambda m: HalvingRandomSearchCV(m, GRID, n_candidates=4, cv=2, factor=2, max_resources=100).fit(X, Y),
    ),
    "cross_val_score": (4, lambda model: cross_val_score(model, X, Y, cv=4)),
    "cross_validate": (4, lambda model: cross_validate(model, X, Y, cv=KFold(4))),
    "cross_val_predict": (4, lambda model: cross_val_predict(model, X, Y, cv=4)),
    "a search in every split": (10, lambda m: cross_val_score(GridSearchCV(m, {"x_norm": [1, 2]}, cv=2), X, Y, cv=2)),
}
each_search = pytest.mark.parametrize(("fits", "search"), SEARCHES.values(), ids=SEARCHES)


def model(ledger: Any, **given: Any) -> LinearRegression:
    return LinearRegression(
        **{"epsilon": EPSILON, "delta": 1e-8, "method": "adassp", "x_norm": 1, "y_bound": 1, "ledger": ledger, **given}
    )


PRICE = model(None).plan(3).cost


def taking(fits: int) -> MemoryLedger:
    """A ledger that takes so many fits and no more."""
    return RunLedger(Budget(50, 1e-3), Cost(mu_squared=fits * PRICE.mu_squared))


@each_search
def test_it_ends_before_the_first_fit_if_one_cannot_be_paid(fits: int, search: Search) -> None:
    ledger = taking(fits - 1)
    with pytest.raises(BudgetExceededError, match=f"{fits} private fits, and the ledger can pay for") as caught:
        search(model(ledger))
    assert ledger.spent == Cost()
    for part in ("A fit costs", "is left", "Nothing was charged", "snugdp.select", "larger budget"):
        assert part in str(caught.value)
    assert caught.value.__context__ is None


@sampled(12)
@each_search
def test_it_goes_on_if_all_of_them_can_be_paid(fits: int, search: Search) -> None:
    ledger = taking(fits)
    search(model(ledger))
    assert ledger.spent.mu_squared == fits * PRICE.mu_squared


@sampled(12)
@each_search
def test_without_a_ledger_nothing_happens(fits: int, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    del fits
    monkeypatch.setattr(searches, "_problem", lambda: pytest.fail("nobody has to pay"))
    search(model(None, noise=Simulation(1)))


@pytest.fixture(params=["path", "ledger", "part"])
def filed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[snugdp.Ledger, Any]]:
    """A ledger in a file for less than ten fits, and how an estimator is given it."""
    with snugdp.Ledger.open(
        tmp_path / "people.ledger", dataset="people", budget=Budget(0.2, 1e-6), composition="tight"
    ) as ledger:
        ledger.partition("region", ["north", "south"])
        given = {"path": str(tmp_path / "people.ledger"), "ledger": ledger, "part": ledger.part("region", "north")}
        yield ledger, given[request.param]


def test_ledgers_in_files(filed: tuple[snugdp.Ledger, Any]) -> None:
    ledger, given = filed
    rows = pd.DataFrame(X, columns=["a", "b", "c"]).assign(region="north") if hasattr(given, "restricted_to") else X
    with pytest.raises(BudgetExceededError, match="13 private fits"):
        GridSearchCV(model(given), GRID, cv=3).fit(rows, Y)
    with pytest.raises(BudgetExceededError, match="10 private fits"):
        cross_val_score(model(given), rows, Y, cv=10)
    assert ledger.entries() == ()
    assert np.isfinite(cross_val_score(model(given), rows, Y, cv=3)).all()
    assert len(ledger.entries()) == 3


@pytest.mark.slow
def test_fits_in_other_processes(tmp_path: Path) -> None:
    """It is refused before one is started: this test takes no time."""
    with snugdp.Ledger.open(
        tmp_path / "people.ledger", dataset="people", budget=Budget(0.2, 1e-6), composition="tight"
    ) as ledger:
        for given in (ledger, tmp_path / "people.ledger"):
            with pytest.raises(BudgetExceededError, match="13 private fits"):
                GridSearchCV(model(given), GRID, cv=3, n_jobs=2).fit(X, Y)
            with pytest.raises(BudgetExceededError, match="10 private fits"):
                cross_val_score(model(given), X, Y, cv=10, n_jobs=2)
        assert ledger.entries() == ()


def test_what_was_spent_before_counts() -> None:
    ledger = taking(9)
    cross_val_score(model(ledger), X, Y, cv=3)
    with pytest.raises(BudgetExceededError, match="7 private fits, and the ledger can pay for 6"):
        cross_val_score(model(ledger), X, Y, cv=7)
    cross_val_score(model(ledger), X, Y, cv=6)


def test_candidates_may_cost_different_amounts() -> None:
    """Two of them fit once each at epsilon 0.01; with those of epsilon 0.5 beside them they do not."""
    ledger = MemoryLedger(0.3, 1e-6, composition="tight")
    with pytest.raises(BudgetExceededError, match="5 private fits, and the ledger can pay for 2"):
        GridSearchCV(model(ledger), {"epsilon": [0.01, 0.5]}, cv=2).fit(X, Y)
    GridSearchCV(model(ledger), {"epsilon": [0.01, 0.02]}, cv=2).fit(X, Y)


def test_what_is_not_known_beforehand_is_left_to_the_fits() -> None:
    """A budget that is drawn, splits that are used up or go by the number of rows, and halving that does."""
    for search in (
        RandomizedSearchCV(
            model(MemoryLedger(9, 1e-6, composition="tight")), {"epsilon": uniform(0.01, 0.02)}, n_iter=2, cv=2
        ),
        GridSearchCV(model(MemoryLedger(9, 1e-6, composition="tight")), GRID, cv=(part for part in KFold(2).split(X))),
        HalvingRandomSearchCV(model(MemoryLedger(9, 1e-6, composition="tight")), GRID, cv=2, min_resources=60),
    ):
        assert np.isfinite(search.fit(X, Y).best_score_)
    few = taking(3)
    with pytest.warns(FitFailedWarning, match="fits failed"):
        scores = cross_val_score(model(few), X[:5], Y[:5], cv=LeaveOneOut(), scoring="neg_mean_squared_error")
    assert np.isfinite(scores).tolist() == [True, True, True, False, False]


def test_inside_a_pipeline_every_private_step_counts() -> None:
    ledger = MemoryLedger(0.3, 1e-6, composition="tight")
    steps = snugdp.PCA(2, epsilon=EPSILON, delta=1e-8, x_norm=1, ledger=ledger), model(ledger)
    pipeline = make_pipeline(FunctionTransformer(), *steps)
    with pytest.raises(BudgetExceededError, match="20 private fits"):
        cross_val_score(pipeline, X, Y, cv=10)
    with pytest.raises(BudgetExceededError, match="26 private fits"):
        GridSearchCV(pipeline, {"linearregression__" + name: values for name, values in GRID.items()}, cv=3).fit(X, Y)
    assert np.isfinite(cross_val_score(pipeline, X, Y, cv=2)).all()
    assert ledger.spent != Cost()


def test_two_ledgers_are_asked_each() -> None:
    rich, poor = MemoryLedger(50, 1e-6, composition="tight"), MemoryLedger(0.11, 1e-6, composition="tight")
    for first, second in ((rich, poor), (poor, rich)):
        pca = snugdp.PCA(2, epsilon=EPSILON, delta=1e-8, x_norm=1, ledger=first)
        with pytest.raises(BudgetExceededError, match="6 private fits"):
            cross_val_score(make_pipeline(pca, model(second)), X, Y, cv=6)
    assert rich.spent == poor.spent == Cost()


def test_clones_of_anybody_else_are_left_alone() -> None:
    poor = MemoryLedger(0.01, 1e-8, composition="tight")
    assert clone(model(poor)).ledger is poor
    assert clone(make_pipeline(Ridge(), model(poor))).steps[1][1].ledger is poor
    assert clone(GridSearchCV(model(poor), GRID)).estimator.ledger is poor


def test_accounts_that_say_nothing_are_asked_nothing() -> None:
    class Plain:
        """It charges, and that is all."""

        def __init__(self) -> None:
            self.inside = MemoryLedger(0.2, 1e-6, composition="tight")

        def charge(self, cost: Cost, what: str) -> snugdp.Receipt:
            return self.inside.charge(cost, what)

        def __deepcopy__(self, memo: object) -> Plain:
            return self

    with pytest.warns(FitFailedWarning, match="fits failed"):
        cross_val_score(model(Plain()), X, Y, cv=40)


def test_a_mistake_in_looking_is_not_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "callers", lambda: sys.exit("whatever goes wrong here"))
    assert np.isfinite(
        GridSearchCV(model(MemoryLedger(9, 1e-6, composition="tight")), GRID, cv=2).fit(X, Y).best_score_
    )


def test_parameters_that_a_fit_refuses_are_left_to_the_fit() -> None:
    with pytest.raises(ValueError, match="x_norm"):
        cross_val_score(model(MemoryLedger(9, 1e-6, composition="tight"), x_norm=-1), X, Y, cv=2, error_score="raise")


@sampled(12)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_price_of_a_fit_does_not_depend_on_the_number_of_columns(name: str) -> None:
    made: dict[str, dict[str, Any]] = {
        "LinearRegression": {"x_norm": 1, "y_bound": 1},
        "LogisticRegression": {"x_norm": 1, "classes": [0, 1]},
        "PoissonRegression": {"x_norm": 1, "y_max": 2},
        "GLM": {"loss": PseudoHuber(1), "x_norm": 1, "y_bound": 1},
        "SparseLinearRegression": {"n_features_to_select": 1, "y_bound": 1},
        "SparseLogisticRegression": {"n_features_to_select": 1, "classes": [0, 1]},
        "PCA": {"n_components": 1, "x_norm": 1},
        "Prepare": {},
        "StandardScaler": {},
        "OneHotEncoder": {},
    }
    if name not in made:
        pytest.skip("its price is that of its queries")
    one = BY_NAME[name].load()(**made[name], ledger=None)
    assert one._price(3).cost == one._price(30).cost
