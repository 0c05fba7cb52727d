"""The best of many private runs. How many there were is hidden, so only what is released is promised."""

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import snugdp
from snugdp.audit.finding import Case
from snugdp.core.guarantee import Budget
from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Noise
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp_studies.audit.cases.fitting import fitting
from snugdp_studies.audit.cases.tables import Table, any_of, more, near, number, odd_number, spread_out, with_targets

Rows: TypeAlias = list[Any]
BUDGET = Budget(1, 0.05)
LABELS = ("a", "b")
LAWS = ("gumbel", "laplace")


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    forms: dict[str, dict[str, Any]] = {
        "every proposal once": {"route": "compose"},
        "geometric": {"route": "stop", "mean_runs": 3},
        "Poisson": {"route": "stop", "mean_runs": 3, "law": "poisson"},
        "a test before all": {"route": "stop", "mean_runs": 2, "shared_test": _Test(), "test_share": 0.5},
        "private scores": {"route": "stop", "mean_runs": 2, "score": _Score(), "score_share": 0.5},
    }
    for name, form in forms.items():
        yield _case(f"selection: {name}", **form)
    yield _searched("proposals of an estimator", "stop")
    yield _searched("proposals of an estimator, each once", "compose")


class _Vote:
    """A run: a noisy vote, with more or less of its noise by another law."""

    def plan(self, law: str, budget: Budget) -> Plan:
        return self._query(law, budget).plan()

    def __call__(
        self,
        law: str,
        budget: Budget,
        ledger: Any,
        *,
        noise: Noise | None = None,
        rows: Any = None,
        certificate: Any = None,
    ) -> Any:
        return self._query(law, budget).release(rows, ledger=ledger, noise=noise)

    def _query(self, law: Any, budget: Budget) -> snugdp.Vote[str]:
        return snugdp.Vote(candidates=LABELS, epsilon=budget.epsilon, law=law)


class _Test:
    """A release before all runs: whether there are enough rows."""

    def __call__(self, budget: Budget, ledger: Any, *, noise: Noise | None = None) -> Any:
        query = snugdp.Mode(categories=LABELS, epsilon=budget.epsilon, delta=budget.delta)
        return query.release(self.rows, ledger=ledger, noise=noise)

    rows: Rows = []  # noqa: RUF012  set before every selection: a test is given nothing but a budget


class _Score:
    """A private score: a noisy count of the rows that agree."""

    rows: Rows = []  # noqa: RUF012  as above

    def plan(self, budget: Budget) -> Plan:
        return self._query(budget).plan()

    def __call__(self, release: Any, budget: Budget, ledger: Any, *, noise: Noise | None = None) -> Any:
        agree = [1.0 if row == release.value else 0.0 for row in self.rows]
        return self._query(budget).release(agree, ledger=ledger, noise=noise)

    def _query(self, budget: Budget) -> snugdp.Median:
        return snugdp.Median(bounds=(0, 1), beta=1, epsilon=budget.epsilon, delta=budget.delta)


def _public(release: Any) -> float:
    return float(release.value == "b")


def _case(name: str, **form: Any) -> Case[Rows]:
    score: Any = form.pop("score", _public)
    made = snugdp.Selection(LAWS, _Vote(), score, budget=BUDGET, **form)
    told: list[Any] = [part for part in (score, form.get("shared_test")) if hasattr(part, "rows")]

    def run(rows: Rows, noise: Noise) -> Any:
        for part in told:
            part.rows = rows
        if form["route"] == "compose":
            return snugdp.select(LAWS, _With(rows), score, budget=BUDGET, route="compose", noise=noise, progress=False)
        return made.paid_from(ReleaseContext(noise), False, rows=rows)

    return Case(
        name=name,
        group="selection",
        run=run,
        cost=made.plan().cost,
        worst=lambda: [_lead(2), _lead(12), _lead(0)],
        random=partial(
            near, row=any_of(*LABELS), odd=any_of(*LABELS, None, "nobody", 1.5), relation="add_remove", least=1, most=30
        ),
        transcript=form["route"] == "compose",
        tight=False,  # few pairs come near a bound for any score and any number of runs
        parts=False,
    )


class _With(_Vote):
    """A run that has its rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __call__(self, law: str, budget: Budget, ledger: Any, *, noise: Noise | None = None, **_: Any) -> Any:
        return super().__call__(law, budget, ledger, noise=noise, rows=self.rows)


def _lead(lead: int) -> tuple[Rows, Rows]:
    rows = ["a"] * (3 + lead) + ["b"] * 3
    return rows, [*rows, "b"]


def _searched(name: str, route: str) -> Case[Table]:
    """An estimator with a list of proposals."""
    X, y = spread_out(12, 1)
    given: dict[str, Any] = {
        "epsilon": BUDGET.epsilon,
        "delta": BUDGET.delta,
        "method": "adassp",
        "x_norm": 1,
        "y_bound": 1,
        "fit_intercept": False,
        "proposals": {"ridge": [1.0, 10.0]},
        "validation": (X, np.array(y)),
        "selection": {"mean_runs": 2, "route": route},
    }
    nothing: Table = np.zeros((3, 1)), [0.0] * 3
    return fitting(
        f"selection: {name}",
        LinearRegression,
        given,
        n_features=1,
        group="selection",
        worst=lambda: [(more(nothing, [1.0], 1.0), nothing)],
        random=partial(with_targets, d=1, target=number, odd=odd_number, least=1),
        transcript=route == "compose",
        tight=route == "compose",
    )
