"""The classifier with the labels of ``snugdp.pate`` behind it: what agrees is released, what does not is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from snugdp import MemoryLedger, NotReleased, PATEClassifier, Simulation
from tests.effort import sampled

TEACHERS = 100


def made(n: int, spread: float, seed: int = 1) -> tuple[Any, Any]:
    """Three clouds, apart or on top of each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.eye(3)[y] + rng.normal(0, spread, (n, 3)), y


PUBLIC, TRUTH = made(50, 0.1, seed=2)


def model_of(**given: Any) -> Any:
    given = {"classes": range(3), "queries": PUBLIC, "epsilon": 1.0, "delta": 1e-6, **given}
    return PATEClassifier(GaussianNB(), GaussianNB(), **{"n_teachers": TEACHERS, **given})


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("given", [{"gap": 80}, {"gap": 80, "neighbours": "replace"}], ids=str)
def test_teachers_who_agree_pass_the_test(given: dict[str, Any]) -> None:
    ledger = MemoryLedger(1, 1e-6, given.get("neighbours", "add_remove"), composition="tight")
    model = model_of(ledger=ledger, **given).fit(*made(4000, 0.1))
    assert model.released_
    assert model.cost_ == model.plan_.cost == ledger.spent == model.receipt_.cost
    assert np.array_equal(model.labels_, TRUTH)
    assert model.answered_.all()
    assert model.score(*made(300, 0.1, seed=3)) > 0.9
    assert model.guarantee_.neighbours == given.get("neighbours", "add_remove")
    assert model.plan() == model.plan_


def test_teachers_who_guess_are_refused() -> None:
    X, y = made(4000, 0.1)
    model = model_of(sigma=3).fit(X, np.random.default_rng(5).permutation(y))
    assert not model.released_
    with pytest.raises(NotReleased):
        model.predict(X)


@pytest.mark.slow
def test_without_a_test_nothing_is_refused() -> None:
    X, y = made(4000, 0.1)
    model = model_of(test="none", epsilon=8).fit(X, np.random.default_rng(5).permutation(y))
    assert model.released_
    assert model.predict(X[:5]).shape == (5,)
    assert model_of(test="none", epsilon=8).fit(X[:0], y[:0]).released_
    assert model_of(test="none", epsilon=50).fit(X, y).released_


def test_a_threshold_leaves_queries_without_an_answer() -> None:
    X, y = made(4000, 0.1)
    unsure = np.vstack([PUBLIC, np.tile([[0.5, 0.5, 0.0]], (20, 1))])
    model = model_of(queries=unsure, epsilon=8, threshold=90, threshold_sigma=8, test="none", noise=Simulation(3))
    model.fit(X, y)
    assert model.released_
    assert model.labels_.shape == model.answered_.shape == (70,)
    assert not model.answered_.all()
    assert model.answered_.sum() > 20
    known = model.answered_[:50]
    assert (model.labels_[:50][known] == TRUTH[known]).mean() > 0.8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": "hope"}, "test"),
        ({"sigma": 0}, "sigma"),
        ({"threshold": 101}, "threshold"),
        ({"delta": 0}, "delta"),
        ({"epsilon": 50, "queries": PUBLIC[:12], "n_teachers": 20}, 'use test="none"'),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_labels_need_is_checked_before_a_row_is_read(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(**changes).fit(None, [0])
    with pytest.raises(ValueError, match=message):
        model_of(**changes).plan()


@pytest.mark.slow
def test_a_rehearsal_can_be_repeated() -> None:
    X, y = made(1000, 0.4)
    model = model_of(test="none", noise=Simulation(2))
    assert np.array_equal(model.fit(X, y).labels_, model.fit(X, y).labels_)
    assert model.guarantee_ is None
