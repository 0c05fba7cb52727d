"""``snugdp.pate``: what is proposed, what it costs, and that nothing is charged or drawn before it is checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, MemoryLedger, Refused, Released, Simulation, pate
from snugdp.accounting import gaussian
from snugdp.mechanisms.teachers.planning import design
from snugdp.pate.labelling import Numbers, propose
from snugdp.pate.proposals import Size
from snugdp.propose.forecast import Note
from tests.effort import often, repeated, sampled

SURE = np.array([[300, 60, 40], [10, 350, 40]] * 100)  # leads of 240 and 310 of 400
SPLIT = np.array([[140, 130, 130]] * 200)


def numbers(**given: Any) -> Numbers:
    return Numbers(**{"sigma": None, "gap": None, "proxy": None, "threshold": None, "threshold_sigma": None, **given})


def test_sure_votes_are_released_at_a_fraction_of_the_plain_noise() -> None:
    outcome = pate.label(SURE, Budget("0.5", "1e-5"), gap=200, noise=Simulation(1))
    assert outcome.value is not None
    assert (outcome.value.labels == np.tile([0, 1], 100)).all()
    assert outcome.cost.epsilon == Budget("0.5").epsilon
    assert outcome.cost.mu_squared == 0


def test_split_votes_are_refused_and_pay_the_same() -> None:
    ledger = MemoryLedger("0.5", "1e-5", composition="tight")
    outcome = pate.label(SPLIT, Budget("0.5", "1e-5"), gap=200, ledger=ledger)
    assert isinstance(outcome, Refused)  # passes by mistake with probability 1e-5
    assert outcome.cost.epsilon == Budget("0.5").epsilon
    with pytest.raises(Exception, match="budget"):
        pate.label(SPLIT, Budget("0.5", "1e-5"), gap=200, ledger=ledger)


def test_plain_noise_never_refuses_and_is_taken_where_it_promises_more() -> None:
    plain = pate.plan(Budget(1, "1e-5"), n_queries=200, n_teachers=400, n_classes=3, gap=[20, 40, 60])
    assert "never refused" in str(plain)
    assert "no test" in str(plain)
    assert plain.cost.fits(Budget(1, "1e-5"))
    outcome = pate.label(SPLIT, Budget(4, "1e-5"), test="none")
    assert isinstance(outcome, Released)
    assert len(outcome.value) == 200


@pytest.mark.slow
def test_test_is_taken_where_teachers_agree() -> None:
    proposal = propose(Budget("0.5", "1e-5"), Size(400, 1000, 10), "distance", numbers(gap=250))
    assert proposal.test is not None
    needed = math.sqrt(2000) / gaussian.mu("0.5", "1e-5")
    assert proposal.plan.proposal["sigma"] < needed / 5
    assert "released with probability 1.00" in str(proposal.plan)


def test_sigma_that_needs_no_test_gets_none() -> None:
    proposal = propose(Budget(1, "1e-5"), Size(400, 200, 10), "distance", numbers(sigma=80))
    assert proposal.test is None
    assert "private enough on all votes" in str(proposal.plan)


def test_proposed_sigma_without_a_belief_asks_for_the_smallest_lead() -> None:
    proposal = propose(Budget("0.6", "1e-5"), Size(400, 200, 10), "distance", numbers(sigma=20))
    (chance,) = proposal.plan.forecast.chances
    assert (chance.condition, chance.probability) == ("plurality-leads", 0.9)
    lead = int(chance.params["votes"])
    assert 130 <= lead <= 180
    test: Any = proposal.test
    for even in (
        [lead, *[0] * 9],
        [(400 + 9 * lead) // 10 + 1, *[(400 - lead) // 10] * 9],
        [400, 400 - lead, *[0] * 8],
    ):
        assert test.table.at(test.distance(np.array([even] * 200))) >= 0.9
    assert test.table.at(test.distance(np.array([[lead - 12, *[0] * 9]] * 200))) < 0.9


def test_belief_is_kept() -> None:
    """What the plan promises for its belief is what the test does on votes like it."""
    belief = design(gap=[150, 220, 300], proxy=None, teachers=400, queries=300, classes=4)
    proposal = propose(Budget(1, "1e-5"), Size(400, 300, 4), "distance", numbers(gap=[150, 220, 300], sigma=25))
    test: Any = proposal.test
    promised = proposal.plan.forecast.chances[0].probability
    assert float(test.table.at(test.distance(belief.votes()))) >= promised - 0.011


@pytest.mark.slow
def test_confident_labels() -> None:
    votes = np.concatenate([SURE, SPLIT])
    outcome = pate.label(
        votes, Budget(3, "1e-5"), threshold=250, threshold_sigma=60, gap=[10, 200, 300], noise=Simulation(3)
    )
    assert outcome.value is not None
    answered = outcome.value.answered
    assert answered[:200].mean() > 0.7
    assert answered[200:].mean() < 0.3


@pytest.mark.slow
def test_smooth_test_of_the_paper() -> None:
    votes = np.array([[390, 6, 4]] * 50)
    budget = Budget(2, "1e-5")
    proposal = propose(budget, Size(400, 50, 3), "smooth", numbers(gap=370, sigma=12))
    assert proposal.test is not None
    assert [(one.probability, one.below) for one in proposal.plan.forecast.chances] == [(0.9, False)]
    outcome = pate.label(votes, budget, 12, "smooth", gap=370, noise=Simulation(2))
    assert outcome.value is not None
    assert (outcome.value.labels == 0).all()
    assert isinstance(pate.label(SPLIT[:50], budget, 12, "smooth", gap=370), Refused)
    chosen = propose(Budget("0.5", "1e-5"), Size(400, 50, 3), "smooth", numbers(gap=100))
    assert chosen.plan.forecast.notes[0] == Note("plain-is-cheaper")
    with pytest.raises(ValueError, match="threshold"):
        propose(budget, Size(400, 50, 3), "smooth", numbers(threshold=100))
    with pytest.raises(ValueError, match="alone costs more"):
        propose(Budget("0.1", "1e-5"), Size(400, 50, 3), "smooth", numbers(sigma=5))


def test_proxy_of_another_number_of_teachers_is_scaled() -> None:
    small = design(gap=None, proxy=[[30, 10, 0]] * 50, teachers=400, queries=100, classes=3)
    assert small.ballots.leads[0].tolist() == [200, 300]
    assert small.ballots.counts.sum() == pytest.approx(100)


def test_forms_agree() -> None:
    labels = np.zeros((400, 3), dtype=int)
    labels[:100, 1] = 2
    budget = Budget(2, "1e-5")
    named = np.array(["a", "b", "c"])[labels]
    one = pate.label(named, budget, form="teachers", classes=["a", "b", "c"], gap=200, noise=Simulation(5)).value
    two = pate.label(named.T, budget, form="queries", classes=["a", "b", "c"], gap=200, noise=Simulation(5)).value
    histogram = [[400, 0, 0], [300, 0, 100], [400, 0, 0]]
    three = pate.label(histogram, budget, classes=["a", "b", "c"], gap=200, noise=Simulation(5)).value
    assert one is not None
    assert two is not None
    assert three is not None
    assert one.labels.tolist() == two.labels.tolist() == three.labels.tolist() == ["a", "a", "a"]


@sampled(20)
@repeated
@pytest.mark.parametrize("teachers", [1, 2, 3, 40])
@pytest.mark.parametrize(
    ("turn", "budget"), list(enumerate([("0.01", "1e-9"), ("1", "0.3"), ("5", "0.05"), ("30", "1e-5")]))
)
def test_odd_sizes_end_in_a_plan_or_in_words(teachers: int, turn: int, budget: tuple[str, str]) -> None:
    every: tuple[dict[str, Any], ...] = (
        {},
        {"sigma": 1},
        {"gap": teachers},
        {"gap": 0},
        {"threshold": teachers, "threshold_sigma": 2},
    )
    step = often(len(every), 1)  # in make test, one for each budget and number of teachers
    for more in every[(teachers + 2 * turn) % step :: step]:
        message = ""
        try:
            found = pate.plan(Budget(*budget), n_queries=3, n_teachers=teachers, n_classes=2, **more)
            assert found.cost.fits(Budget(*budget))
        except ValueError as refused:
            message = str(refused)
        assert not message or "refused whatever the votes" in message or "needs" in message


def test_budgets_that_no_test_can_take() -> None:
    for budget in (Budget(60, "1e-5"), Budget(1, "1e-400")):
        with pytest.raises(ValueError, match="test needs"):
            pate.plan(budget, n_queries=100_000, n_teachers=40, n_classes=2, sigma="0.6")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"test": "magic"}, "distance"),
    ({"sigma": 0}, "sigma"),
    ({"sigma": 0.1}, "at least 0.5"),
    ({"sigma": float("nan")}, "sigma"),
    ({"gap": -1}, "gap"),
    ({"gap": 401}, "at most the number of teachers"),
    ({"gap": "big"}, "gap"),
    ({"gap": 10, "proxy": SURE}, "not both"),
    ({"proxy": [[1, 2]]}, "3 classes"),
    ({"proxy": [[0, 0, 0]]}, "at least one"),
    ({"threshold_sigma": 3}, "threshold="),
    ({"threshold": 500}, "at most the 400"),
    ({"threshold": 100, "threshold_sigma": 0}, "threshold_sigma"),
    ({"sigma": 3, "test": "none"}, "needs sigma of at least"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_numbers_are_refused_before_anything_is_charged(given: dict[str, Any], message: str) -> None:
    ledger = MemoryLedger(1, "1e-5", composition="tight")
    with pytest.raises((ValueError, TypeError), match=message):
        pate.label(SURE, Budget(1, "1e-5"), ledger=ledger, **given)
    assert ledger.spent == MemoryLedger(1, "1e-5", composition="tight").spent


def test_bad_budgets() -> None:
    with pytest.raises(TypeError, match="Budget"):
        pate.label(SURE, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta"):
        pate.label(SURE, Budget(1))
    for wrong in ({"n_queries": 0}, {"n_teachers": 2.5}, {"n_classes": 1}):
        with pytest.raises(ValueError, match="whole number"):
            pate.plan(Budget(1, "1e-5"), **{"n_queries": 10, "n_teachers": 10, "n_classes": 2, **wrong})  # type: ignore[arg-type]


@pytest.mark.slow
def test_labels_are_an_array() -> None:
    outcome = pate.label(SURE, Budget(1, "1e-5"), gap=200, noise=Simulation(1))
    assert np.asarray(outcome.value).shape == (200,)
    assert "NOT PRIVATE" in repr(outcome)
