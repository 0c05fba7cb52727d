"""Lists of proposals: who chooses, on what, what is kept of it, and who pays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from snugdp import (
    Budget,
    BudgetExceededError,
    Cost,
    LinearRegression,
    MemoryLedger,
    NotReleased,
    Plan,
    Released,
    Selected,
    Simulation,
    select,
)
from snugdp.estimators.targets import RealTarget
from snugdp.estimators.workflows.grids import ValidationScore, combinations
from snugdp.mechanisms.linear.base import Fit

TRUTH = np.array([0.4, -0.8, 0.2])


def made(n: int, key: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(key)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.clip(X @ TRUTH + rng.normal(0, 0.05, n), -1, 1)


def model(**given: Any) -> Any:
    usual = {"epsilon": 2, "x_norm": 2, "y_bound": 1, "fit_intercept": False, "validation": made(200, 2)}
    return LinearRegression(**{**usual, **given})


PAPER = {"method": "posterior", "proposals": {"ridge": np.geomspace(1, 1e4, 30).tolist()}}


@pytest.mark.slow
def test_the_papers_posterior_sampling_with_a_private_choice() -> None:
    """OPS-PTR with Algorithm 2: thirty ridges, a hidden number of runs, a public validation set."""
    (X, y), (public, answers) = made(20_000), made(200, 2)
    ledger = MemoryLedger(2, 1e-6, composition="tight")
    fitted = model(**PAPER, ledger=ledger, selection={"mean_runs": 5}).fit(X, y)
    assert fitted.released_
    assert fitted.best_proposal_["ridge"] in PAPER["proposals"]["ridge"]  # type: ignore[index]
    assert fitted.details_["ridge"] == pytest.approx(fitted.best_proposal_["ridge"])
    assert fitted.cost_ == ledger.spent == fitted.plan_.cost == fitted.receipt_.cost == Cost(epsilon=2, delta=1e-6)
    assert (fitted.receipt_.sequence, fitted.guarantee_.epsilon) == (1, 2.0)
    assert fitted.guarantee_.theorem.id == "select/1"
    assert fitted.certificate_.residual > 0
    assert isinstance(fitted.outcome_.value, Selected)
    assert fitted.outcome_.value.score == pytest.approx(
        -np.mean((np.clip(fitted.predict(public), -1, 1) - answers) ** 2), rel=1e-6
    )
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X[:5]), fitted.predict(X[:5]))
    assert "30 proposals" in str(fitted.plan_)
    rehearsed = model(**PAPER, noise=Simulation(3), selection={"mean_runs": 10}).fit(X, y)
    assert np.allclose(rehearsed.coef_, TRUTH, atol=0.1)
    assert rehearsed.best_proposal_["ridge"] < 100


def test_a_rehearsal_repeats_and_finds_a_good_ridge() -> None:
    X, y = made(3000)
    given = {"method": "output", "proposals": {"ridge": [3.0, 1e9]}, "noise": Simulation(3), "epsilon": 8}
    fits = [model(**given).fit(X, y) for _ in range(2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].best_proposal_ == {"ridge": 3.0}
    assert fits[0].guarantee_ is None
    assert repr(fits[0].outcome_).startswith("NOT PRIVATE")


def test_methods_that_choose_by_themselves_still_do() -> None:
    X, y = made(3000)
    own = model(method="sufficient", proposals={"ridge": [1.0, 10.0]}, noise=Simulation(1)).fit(X, y)
    assert not hasattr(own, "best_proposal_")
    assert own.plan_.theorem.id == "linear-statistics/1"
    own = model(method="posterior", proposals={"ridge": [1.0, 10.0]}, validation=None, noise=Simulation(1)).fit(X, y)
    assert not hasattr(own, "best_proposal_")
    both = model(
        method="sufficient", proposals={"ridge": [1.0, 10.0], "clip": [0.1, 0.3]}, noise=Simulation(1), epsilon=4
    ).fit(X, y)
    assert both.best_proposal_["ridge"] == [1.0, 10.0]
    assert both.best_proposal_["clip"] in (0.1, 0.3)
    assert "2 proposals" in both.plan_.title


def test_every_combination_is_a_proposal() -> None:
    grid = combinations({"ridge": [1, 2], "loss": "huber", "tau": np.array([3, 4, 5])}, ("ridge", "tau"))
    assert len(grid) == 6
    assert {(one["ridge"], one["loss"], one["tau"]) for one in grid} == {
        (ridge, "huber", tau) for ridge in (1, 2) for tau in (3, 4, 5)
    }


@pytest.mark.parametrize("refuse", [[False, True], [True, True]])
def test_refused_proposals(tiny: str, refuse: list[bool]) -> None:
    ledger = MemoryLedger(9, 1e-3, composition="tight")
    fitted = model(method=tiny, proposals={"refuse": refuse}, ledger=ledger, selection={"route": "compose"})
    fitted.fit(*made(30))
    assert ledger.spent == fitted.cost_
    assert fitted.released_ == (not all(refuse))
    if fitted.released_:
        assert fitted.best_proposal_ == {"refuse": False}
        assert fitted.certificate_ == "certificate"
        fitted.set_params(proposals={"refuse": [True]}).fit(*made(30))
        assert not hasattr(fitted, "best_proposal_")
    with pytest.raises(NotReleased):
        fitted.predict(made(3)[0])


def test_the_best_on_public_rows_wins(tiny: str) -> None:
    """Coefficients 0, 1 and 9; predictions are clipped as targets are."""
    X = np.eye(3)
    fitted = model(method=tiny, proposals={"theta": [9.0, 0.0, 1.0]}, validation=(X, np.full(3, 0.1)), x_norm=1)
    fitted.set_params(selection={"route": "compose"}).fit(*made(30))
    assert fitted.best_proposal_ == {"theta": 0.0}
    score = ValidationScore(X, np.zeros(3), RealTarget(None, 1).value)
    worst = Fit(np.array([np.nan, 0, 0]))
    values = [score(type("R", (), {"value": fit})()) for fit in (Fit(np.full(3, 9.0)), worst, Fit(np.zeros(3)))]
    assert values == [-1.0, -1.0, 0.0]


def test_plans_are_free_and_parameters_are_cloned() -> None:
    ledger = MemoryLedger(2, 1e-6, composition="tight")
    one = model(**PAPER, ledger=ledger)
    plan = one.plan(n_features=3, rows=10_000)
    assert plan.cost == Cost(epsilon=2, delta=1e-6)
    assert [fit.rows for fit in plan.forecast.fits] == [10_000]
    assert "routes-compared" in [note.code for note in plan.forecast.notes]
    assert "every proposal once" in str(plan)
    assert ledger.spent == Cost()
    assert clone(one).get_params()["proposals"] == PAPER["proposals"]
    assert clone(one).ledger is ledger


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"validation": None, "proposals": {"ridge": [1.0, 2.0]}, "method": "adassp"}, ValueError, "needs validation"),
        ({"proposals": {"ridge": []}, "method": "adassp"}, ValueError, "empty"),
        ({"proposals": {"ridge": [1.0, -1.0]}, "method": "adassp"}, ValueError, "ridge"),
        ({"proposals": {"ridge": 1.0}, "method": "adassp"}, ValueError, "no use for validation"),
        ({"proposals": {"ridge": list(range(1, 10_002))}, "method": "adassp"}, ValueError, "at most"),
        ({**PAPER, "selection": {"runs": 3}}, ValueError, "mean_runs"),
        ({**PAPER, "selection": 3}, TypeError, "selection"),
        ({**PAPER, "selection": {"law": "zipf"}}, ValueError, "geometric"),
        ({**PAPER, "validation": (np.empty((0, 3)), [])}, ValueError, "at least one public row"),
        ({**PAPER, "validation": (np.ones((2, 3)), [1.0])}, ValueError, "one target for each"),
    ],
)
def test_bad_grids_are_refused_before_the_charge(
    given: dict[str, Any], error: type[Exception], match: str, unspent: MemoryLedger
) -> None:
    with pytest.raises(error, match=match):
        model(ledger=unspent, **given).fit(*made(30))


def test_a_run_may_be_an_estimator() -> None:
    """Not only proposals of one method: methods themselves, each with the plan of its estimator."""
    (X, y), (public, answers) = made(3000), made(200, 2)

    class Fits:
        def _model(self, method: str, budget: Budget, **given: Any) -> Any:
            return model(method=method, epsilon=budget.epsilon, delta=budget.delta, validation=None, **given)

        def __call__(self, method: str, budget: Budget, ledger: Any, noise: Any = None) -> Any:
            return self._model(method, budget, ledger=ledger, noise=noise).fit(X, y)

        def plan(self, method: str, budget: Budget) -> Plan:
            plan: Plan = self._model(method, budget).plan(n_features=3, rows=1000)
            return plan

    ledger = MemoryLedger(4, 1e-6, composition="tight")
    outcome = select(
        ["adassp", "sufficient"],
        Fits(),
        lambda fitted: fitted.score(public, answers),
        budget=Budget(4, 1e-6),
        ledger=ledger,
        mean_runs=5,
    )
    assert isinstance(outcome, Released)
    winner = outcome.value.release
    assert winner.coef_.shape == (3,)
    assert winner.receipt_.ledger == "one run of a selection"
    assert ledger.spent == outcome.cost
    assert outcome.value.score == winner.score(public, answers)
    assert pickle.loads(pickle.dumps(winner)).predict(X[:2]).shape == (2,)
    with pytest.raises(BudgetExceededError, match="over"):
        winner.fit(X, y)
