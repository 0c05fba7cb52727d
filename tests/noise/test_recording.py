"""The witness sees every draw and shows nothing private; the replay says the same again, or that it cannot."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

import snugdp
from snugdp.audit.finding import Case, Curve, Finding, promised
from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger import MemoryLedger
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Finite, Gaussian, Gumbel, Laplace, Noise, Simulation
from snugdp.noise.recording import Impossible, Replay, Witness, narrowed, private_inputs, scaled
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret

CANARY = 918273645


def walk(noise: Noise, value: int = CANARY, scores: tuple[int, ...] = (3, 1)) -> list[object]:
    """One draw of nearly every kind."""
    table = np.array([scores, scores])
    return [
        noise.add(Secret(value), Gaussian(3), grid=-2),
        noise.add(Secret(value), Laplace(1), stretch=Secret(2)),
        noise.add_integers(Secret([value, 1]), Gaussian(5)),
        noise.at_least(Secret(value), DiscreteLaplace(2), value),
        noise.argmax(Secret(scores), Gumbel(1)),
        noise.argmaxes(Secret(table), Laplace(2)).tolist(),
        noise.reach(Secret(table[0]), Gaussian(1), 2).tolist(),
        noise.posterior(
            Secret([[4, 1], [1, 9]]),
            Secret([1, 2]),
            unit=Fraction(1),
            ridge=Fraction(1),
            precision=Fraction(1),
            grid=-9,
        ),
        noise.choice(10**9),
        noise.chance(Secret(Fraction(1, 3))),
        noise.reveal(Secret((7, 8))),
        noise.keys_above(Secret((["a", "b"], np.array(scores))), Finite(-1, (1, 2, 1)), 2),
        noise.keys_above(Secret((["a", "b"], np.array(scores))), Gaussian(1), 2),
    ]


def test_the_witness_answers_as_the_simulation_does_and_writes_all_of_it_down() -> None:
    witness = Witness(5)
    assert walk(witness) == walk(Simulation(5))
    sites = witness.transcript().sites
    methods = "add add add_integers at_least argmax argmaxes reach posterior choice chance reveal keys_above keys_above"
    assert [site.method for site in sites] == methods.split()
    assert private_inputs(sites[1]) == (CANARY, 2)
    assert sites[3].law == DiscreteLaplace(2)
    assert sites[3].number("threshold") == CANARY


def test_nothing_private_is_shown_or_stored() -> None:
    witness = Witness(5)
    witness.add(Secret(CANARY), Gaussian(3))
    transcript = witness.transcript()
    assert str(CANARY)[:4] not in repr(witness) + repr(transcript) + str(transcript.sites[0])
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(transcript)


def test_it_is_not_private_and_cannot_be_charged() -> None:
    query = snugdp.Median(epsilon=1, delta=0.05, bounds=(0, 1))
    assert "NOT PRIVATE" in repr(query.release([0.5] * 50, noise=Witness(1)))
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        ReleaseContext(Witness(1), MemoryLedger(1, 0.1))


def test_estimators_and_copies_keep_the_same_witness() -> None:
    witness = Witness(3)
    assert copy.deepcopy(witness) is witness
    assert copy.copy(witness) is witness
    model = snugdp.LinearRegression(epsilon=1, delta=0.05, method="adassp", x_norm=1, y_bound=1, noise=witness)
    assert clone(model).noise is witness
    model.fit(np.array([[0.1], [0.2]]), np.array([0.1, 0.2]))
    assert [site.method for site in witness.transcript()].count("add_integers") >= 2


def test_what_is_changed_later_was_still_seen_as_it_was() -> None:
    witness, values = Witness(1), np.array([1, 2])
    said = witness.add_integers(Secret(values), Gaussian(1))
    kept = list(said)
    values[0], said[0] = 99, 99
    site = witness.transcript().sites[0]
    assert private_inputs(site)[0].tolist() == [1, 2]
    assert site.answer == kept


def test_another_source_can_be_watched() -> None:
    witness = Witness(source=Exact())
    walk(witness)
    assert len(witness.transcript()) == 13


def test_smaller_noise_is_drawn_and_written_down() -> None:
    witness = Witness(2, shrink=Fraction(1, 2))
    drawn = witness.add_integers(Secret([0] * 4000), Gaussian(1000))
    site = witness.transcript().sites[0]
    assert (site.law, site.drawn) == (Gaussian(1000), Gaussian(500))
    assert 450 < float(np.std(drawn)) < 550
    witness.posterior(Secret([[1]]), Secret([0]), unit=Fraction(1), ridge=Fraction(1), precision=Fraction(3), grid=-9)
    assert witness.transcript().sites[1].number("precision") == 12


def test_every_law_can_be_scaled() -> None:
    half = Fraction(1, 2)
    laws = (Gaussian, Laplace, Gumbel, DiscreteLaplace)
    assert [scaled(law(4), half) for law in laws] == [law(2) for law in laws]
    assert scaled(DiscreteGaussian(4), half) == DiscreteGaussian(1)


def test_the_replay_says_the_same_on_other_data() -> None:
    witness = Witness(5)
    said = walk(witness)
    replay = Replay(witness.transcript())
    again = walk(replay, CANARY, (2, 2))
    assert again == said
    assert replay.finished
    assert private_inputs(replay.transcript().sites[4]) == ((2, 2),)


@pytest.mark.parametrize(
    "other",
    [
        lambda noise: noise.add(Secret(1), Gaussian(2)),
        lambda noise: noise.add(Secret(1), Laplace(1)),
        lambda noise: noise.add(Secret(1), Gaussian(1), grid=1),
        lambda noise: noise.add(Secret(1), Gaussian(1), stretch=Secret(1)),
        lambda noise: noise.add_integers(Secret([1]), Gaussian(1)),
        lambda noise: noise.reveal(Secret(1)),
    ],
)
def test_a_walk_that_differs_in_public_is_impossible(other: object) -> None:
    witness = Witness(1)
    witness.add(Secret(1), Gaussian(1))
    replay = Replay(witness.transcript())
    assert callable(other)
    with pytest.raises(Impossible):
        other(replay)
    assert not replay.finished
    with pytest.raises(Impossible):  # for good
        replay.add(Secret(1), Gaussian(1))


def test_more_draws_or_fewer_are_a_difference() -> None:
    witness = Witness(1)
    witness.add_integers(Secret([1, 2]), Gaussian(1))
    with pytest.raises(Impossible):
        Replay(witness.transcript()).add_integers(Secret([1]), Gaussian(1))
    replay = Replay(witness.transcript())
    assert not replay.finished
    replay.add_integers(Secret([5, 6]), Gaussian(1))
    with pytest.raises(Impossible):
        replay.choice(3)


def test_the_number_of_keys_is_private() -> None:
    law = Finite(-1, (1, 2, 1))
    witness = Witness(1)
    said = witness.keys_above(Secret((["a", "c"], np.array([9, 9]))), law, 3)
    replay = Replay(witness.transcript())
    assert replay.keys_above(Secret((["c"], np.array([9]))), law, 3) == said
    assert replay.finished
    assert private_inputs(replay.transcript().sites[0])[0][0] == ["c"]


def test_finite_noise_can_be_narrowed() -> None:
    law = Finite(-3, (1, 2, 3, 4, 3, 2, 1))
    assert narrowed(law, Fraction(1)) == law
    assert narrowed(law, Fraction(2)) == Finite(-6, (1, 0, 2, 0, 3, 0, 4, 0, 3, 0, 2, 0, 1))
    witness = Witness(1, shrink=Fraction(1, 2))
    witness.keys_above(Secret((["a"], np.array([9]))), law, 3)
    assert witness.transcript().sites[0].number("law") == narrowed(law, Fraction(1, 2))


def test_it_passes_through_private_computations() -> None:
    replay = Replay(Witness(1).transcript())
    with pytest.raises(Impossible):
        Secret(1).map(lambda value: replay.choice(value))


@pytest.mark.parametrize("rows", [4, 6, 7])
def test_rows_stay_where_they_were_scattered(rows: int) -> None:
    witness = Witness(1)
    before = witness.scatter(6, 1000).tolist()
    after = Replay(witness.transcript(), 7).scatter(rows, 1000).tolist()
    assert len(after) == rows
    assert after[:6] == before[:rows]
    assert not witness.transcript().sites


def test_cases_and_findings_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(ValueError, match="layer"):
        Finding("Z", "x", "", "", True)
    with pytest.raises(TypeError, match="passed"):
        Finding("D", "x", "", "", np.bool_(True))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="equally long"):
        Curve((0.0,), (0.0, 1.0), (0.0,))
    with pytest.raises(ValueError, match="tight"):
        Case("x", lambda data, noise: None, Cost(mu=1), list, tight=2.0)  # type: ignore[arg-type,return-value]
    assert "FAILED D x: a; b (why)" in str(Finding("D", "x", "a", "b", False, "why"))


def test_a_budget_says_something_at_every_epsilon() -> None:
    case: Case[int] = Case("x", lambda data, noise: None, Cost(mu=1), list, budget=Budget(1, 0.1))  # type: ignore[arg-type,return-value]
    assert case.delta_at(1.0) == pytest.approx(0.1)
    assert case.delta_at(2.0) == pytest.approx(0.1)
    for at in (-2.0, -0.7, 0.3, 0.9):  # the worst pair: all, or a coin of chance e : 1
        coin = np.exp(1) / (1 + np.exp(1))
        worst = coin * max(0, 1 - np.exp(at - 1)) + (1 - coin) * max(0, 1 - np.exp(at + 1))
        assert promised(1.0, 0.1, at) == pytest.approx(0.1 + 0.9 * worst)
