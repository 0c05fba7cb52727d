"""The sharp distance test attacked: exact laws of bit and labels on all neighbours of small votes."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.distance_test import (
    Ballots,
    Labelling,
    PassTable,
    SharpDistance,
    best_table,
    labels_profile,
)
from snugdp.mechanisms.teachers.pair import Profile, composer_for, pair
from tests.effort import often, repeated, sampled
from tests.mechanisms.noisy_votes import histograms, joint, moved, probabilities

Floats = NDArray[np.float64]
Setting = tuple[float, int, int, int, str, str, int, int]


@cache
def law(votes: tuple[int, ...], sigma: float) -> Floats:
    """The exact probabilities of the labels of one query."""
    return probabilities(votes, "gaussian", sigma)


def hockey(
    one: tuple[tuple[int, ...], ...],
    other: tuple[tuple[int, ...], ...],
    chances: tuple[float, float],
    sigma: float,
    epsilon: float,
) -> float:
    """The exact delta at epsilon of bit and labels, one order of the pair."""
    refused = max(1 - chances[0] - math.exp(epsilon) * (1 - chances[1]), 0.0)
    here, there = (joint(law(votes, sigma) for votes in rows) for rows in (one, other))
    passed = chances[0] * here - math.exp(epsilon) * chances[1] * there
    return refused + float(np.maximum(passed, 0).sum())


def near(votes: tuple[int, ...], teachers: int) -> list[tuple[int, ...]]:
    """All histograms that one of so many teachers can make of it."""
    return sorted(other for other in moved(votes) if sum(other) <= teachers)


def remembering(labelling: Labelling) -> Callable[[NDArray[np.int64]], Callable[[int], Profile]]:
    """``labels_profile``, but what was composed for other votes is not composed again."""

    def of(votes: NDArray[np.int64]) -> Callable[[int], Profile]:
        ballots = Ballots.of(votes)
        return lambda moves: labelling.profile(ballots, moves)

    return of


def make(setting: Setting) -> SharpDistance:
    """A test whose table is made for votes with this lead left in every query."""
    sigma, queries, classes, teachers, spend, failure, residue, _ = setting
    budget = Budget(spend, failure)
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    labelling = Labelling(sigma, composer_for(sigma, queries, epsilon, delta))
    design = np.array([[(teachers + residue) // 2, (teachers - residue) // 2, *[0] * (classes - 2)]] * queries)
    table = best_table(labelling.profile(Ballots.of(design), 0), epsilon, delta, teachers + 1)
    return SharpDistance(remembering(labelling), table, budget, teachers)


SETTINGS = [
    # sigma, queries, classes, teachers, epsilon, delta, residue, most tuples
    (1.2, 1, 2, 24, "0.8", "0.02", 8, 400),
    (2.0, 1, 2, 40, "0.5", "0.05", 18, 400),
    (1.0, 1, 3, 14, "1.0", "0.03", 6, 200),
    (1.5, 2, 2, 20, "1.0", "0.05", 10, 50),
    (0.8, 2, 3, 8, "1.5", "0.1", 4, 25),
    (1.0, 3, 2, 12, "1.2", "0.08", 6, 25),
    (3.0, 1, 2, 20, "0.7", "0.1", 10, 400),
]


def violations(test: SharpDistance, setting: Setting) -> tuple[float, set[int]]:
    """The largest exact delta over the claimed one, and the distances that occurred."""
    sigma, queries, classes, teachers, _, _, _, most = setting
    epsilon, delta = float(test.budget.epsilon), float(test.budget.delta)
    totals = (teachers - 1, teachers)  # one may abstain
    single = sorted(votes for total in totals for votes in histograms(total, classes))
    shuffled = np.random.default_rng(5).permutation(len(single) ** queries)[:most]
    of_sorted = cache(lambda votes: (d := test.distance(np.array(votes)), float(test.table.at(d))))
    worst, seen = 0.0, set()
    for code in shuffled.tolist():
        one = tuple(single[code // len(single) ** i % len(single)] for i in range(queries))
        distance, here = of_sorted(tuple(sorted(one)))  # the order of the queries does not matter
        seen.add(distance)
        around = list(itertools.product(*(near(votes, teachers) for votes in one)))
        picked = np.random.default_rng(code).permutation(len(around))[: often(6, 20, 40)]
        for other in (around[i] for i in picked.tolist()):
            other_distance, there = of_sorted(tuple(sorted(other)))
            assert abs(other_distance - distance) <= 1
            worst = max(worst, hockey(one, other, (here, there), sigma, epsilon) / delta)
    return worst, seen


@sampled(9)
@repeated
@pytest.mark.parametrize("setting", SETTINGS)
def test_bit_and_labels_keep_within_the_budget_on_all_neighbours(setting: Setting) -> None:
    test = make(setting)
    worst, seen = violations(test, setting)
    assert worst <= 1 + 1e-9
    assert len(seen) > 2  # the test is not trivial
    assert worst > 0.2  # nor far from the edge


def test_the_attack_sees_a_loss_that_is_too_small() -> None:
    setting = SETTINGS[0]
    test = make(setting)
    honest = Labelling(setting[0], composer_for(setting[0], setting[1], float(setting[4]), float(setting[5])))

    def nearer(votes: NDArray[np.int64]) -> object:
        ballots = Ballots(gaps(votes) + 10, np.ones(len(votes)))
        return lambda moves: honest.profile(ballots, moves)

    worst, _ = violations(replace(test, profile=nearer), setting)  # type: ignore[arg-type]
    assert worst > 1.5


def test_the_attack_sees_a_table_that_passes_too_often() -> None:
    setting = SETTINGS[0]
    test = make(setting)
    steep = PassTable((test.table.chances[0], *(min(2 * c, Fraction(1)) for c in test.table.chances[1:])))
    object.__setattr__(test, "table", steep)  # past the check of the constructor, and with the old distances
    object.__setattr__(test, "distance", make(setting).distance)
    assert violations(test, setting)[0] > 1.5


def exact_profile(log_q: float, shift: float, epsilon: Floats) -> Floats:
    """Theorem 1 in closed form: half-lines that end outside (z, -z)."""
    from scipy.special import ndtr, ndtri_exp

    z = ndtri_exp(min(log_q, -math.log(2)))
    cut = shift / 2 - epsilon / shift
    tests = [np.minimum(z, cut), np.maximum(-z, cut)]
    best: Floats = np.max([ndtr(y) - np.exp(epsilon) * ndtr(y - shift) for y in tests], axis=0)
    return best


def test_one_label_is_dominated_by_its_pair() -> None:
    """Exact laws of one label against the closed form of Theorem 1, at many epsilon of either sign."""
    generator = np.random.default_rng(11)
    epsilons = np.linspace(-3, 3, 61)
    closest = 0.0
    for _ in range(60):
        classes, teachers = int(generator.integers(2, 6)), int(generator.integers(3, 40))
        votes = tuple(int(v) for v in generator.multinomial(teachers, generator.dirichlet([0.6] * classes)))
        sigma = float(generator.uniform(0.5, 8))
        q = float(log_miss(gaps(np.array([votes])), sigma)[0])
        bound = exact_profile(q, math.sqrt(2) / sigma, epsilons)
        for other in near(votes, teachers):
            here, there = law(votes, sigma), law(other, sigma)
            deltas = np.maximum(here[:, None] - np.exp(epsilons) * there[:, None], 0).sum(axis=0)
            assert (deltas <= bound * (1 + 1e-7) + 1e-13).all()
            closest = max(closest, float((deltas / bound)[bound > 1e-6].max()))
    assert closest > 0.9


def test_lattice_law_dominates_the_pair_and_is_close_to_it() -> None:
    for sigma in (2.0, 15.0, 60.0):
        shift = math.sqrt(2) / sigma
        step, z = shift / 9.7, np.linspace(-7, 0, 40)
        reach = math.ceil(10 * shift / step) + 2
        mass, lost = pair(z, shift, step, reach)
        assert np.allclose(mass.sum(axis=1) + lost, 1, atol=1e-14)
        losses = step * np.arange(-reach, reach + 1)
        epsilons = np.concatenate([np.linspace(-4, 4, 33) * shift, losses[::7]])
        kept = np.maximum(1 - np.exp(epsilons[:, None] - losses), 0)
        for row in range(len(z)):
            lattice = kept @ mass[row] + lost[row]
            from scipy.special import log_ndtr

            exact = exact_profile(float(log_ndtr(z[row])), shift, epsilons)
            assert (lattice >= exact * (1 - 1e-9) - 1e-15).all()
            assert (lattice <= exact + 0.02 * shift).all()


def test_composition_is_that_of_direct_convolution() -> None:
    """Fourier composition against repeated convolution, within the stated error."""
    composer = composer_for(9.0, 12, 0.9, 1e-4)
    nodes, counts = np.array([40, 150, 222]), np.array([3.0, 4.0, 5.0])
    reach = math.ceil((10 * composer.shift + composer.shift**2) / composer.step) + 1
    mass, lost = pair(composer.edges[nodes], composer.shift, composer.step, reach)
    total, missing = np.ones(1), 0.0
    for row, count in enumerate(counts.tolist()):
        for _ in range(int(count)):
            total = np.convolve(total, mass[row])
            missing += float(lost[row])
    losses = composer.step * (np.arange(len(total)) - reach * int(counts.sum()))
    profile = composer.profile(nodes, counts)
    epsilons = np.array([-0.5, 0.0, 0.3, 0.9, 1.4])
    direct = np.maximum(1 - np.exp(epsilons[:, None] - losses), 0) @ total + missing
    found = profile.delta(epsilons)
    assert (np.abs(found - direct) <= profile.error(epsilons) + 1e-15).all()
    assert np.allclose(found, direct, rtol=1e-6)


def test_without_a_plurality_it_is_the_gaussian_mechanism() -> None:
    for sigma, queries, epsilon in ((40.0, 200, 1.6), (100.0, 1000, 2.0), (5.0, 3, 2.0)):
        composer = composer_for(sigma, queries, epsilon, 1e-5)
        worst = composer.profile(np.array([composer.nodes - 1]), np.array([float(queries)]))
        exact = gaussian.delta(math.sqrt(2 * queries) / sigma, epsilon)
        found = float(worst.delta(np.array([epsilon]))[0])
        assert exact <= found <= 1.03 * exact


def test_profiles_are_nested() -> None:
    """One vote moved in every query and one move more never lower the profile."""
    generator = np.random.default_rng(3)
    labelling = Labelling(6.0, composer_for(6.0, 8, 1.0, 1e-4))
    epsilons = np.linspace(-1, 2, 13)
    for _ in range(40):
        votes = generator.multinomial(60, generator.dirichlet([0.5] * 4), size=8)
        other = np.array([(around := near(tuple(row), 60))[generator.integers(len(around))] for row in votes.tolist()])
        moves = int(generator.integers(0, 12))
        here = labelling.profile(Ballots.of(votes), moves)
        there = labelling.profile(Ballots.of(other), moves + 1)
        assert (here.delta(epsilons) <= there.delta(epsilons) + here.error(epsilons) + there.error(epsilons)).all()
        assert (here.error(epsilons) <= 1.01 * there.error(epsilons)).all()


def test_table_is_as_steep_as_the_budget_allows() -> None:
    labelling = Labelling(20.0, composer_for(20.0, 200, 0.5, 1e-5))
    votes = np.array([[300, 100, 0]] * 200)
    profile = labelling.profile(Ballots.of(votes), 40)
    table = best_table(profile, 0.5, 1e-5, 400)
    assert table.worst(profile, 0.5) <= 1e-5
    assert table.chances[-1] == 1
    assert all(a <= b for a, b in itertools.pairwise(table.chances))
    for place in range(2, len(table.chances) - 2, 7):
        steeper = list(table.chances)
        steeper[place] = min(steeper[place] * Fraction(103, 100), (steeper[place + 1] + steeper[place]) / 2)
        assert PassTable(tuple(steeper)).worst(profile, 0.5) > 1e-5


def test_table_for_another_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="distance 0"):
        SharpDistance(lambda votes: lambda moves: None, PassTable((Fraction(1, 10), Fraction(1))), Budget(1, 1e-5), 9)  # type: ignore[arg-type,return-value]


def test_transform_that_is_exactly_zero_does_not_open_the_test() -> None:
    """At these sigmas a law without an atom has a transform with an exact zero; mixed with others it gave no number."""
    for epsilon, delta, sigma in ((1.0, 1e-5, 1.69), (0.5, 1e-5, 1.13), (3.0, 1e-5, 0.96), (5.0, 1e-5, 1.87)):
        labelling = Labelling(sigma, composer_for(sigma, 300, epsilon, delta))
        votes = np.array([[150, 150]] * 150 + [[300, 0]] * 150)
        profile = labelling.profile(Ballots.of(votes), 0)
        assert np.isfinite(profile.delta(np.array([epsilon]))).all()
        table = best_table(labelling.profile(Ballots.of(votes[150:]), 60), epsilon, delta, 300)
        test = SharpDistance(labels_profile(labelling), table, Budget(epsilon, delta), 300)
        assert test.distance(votes) == 0
        assert not labelling.composer.rows.keys() - {int(n) for n in range(labelling.composer.nodes)}


def test_what_is_no_number_exceeds() -> None:
    class Broken:
        def delta(self, epsilon: Floats) -> Floats:
            return epsilon * np.nan

        error = delta

    table = PassTable((Fraction(1, 10**6), Fraction(1, 10)))
    test = SharpDistance(lambda votes: lambda moves: Broken(), table, Budget(1, 1e-5), 9)
    assert test.distance(np.array([[9, 0]])) == 0


@pytest.mark.parametrize("chances", [(), (Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 3)), (Fraction(2),)])
def test_bad_tables_are_refused(chances: tuple[Fraction, ...]) -> None:
    with pytest.raises(ValueError, match="chance"):
        PassTable(chances)


def test_nothing_of_the_votes_stays_with_the_public_composer() -> None:
    labelling = Labelling(3.0, composer_for(3.0, 2, 1.0, 1e-3))
    test = SharpDistance(labels_profile(labelling), PassTable((Fraction(1, 2000), Fraction(1, 10))), Budget(1, 1e-3), 9)
    test.distance(np.array([[9, 0], [5, 4]]))
    assert not labelling.composer.rows


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.3), (0.1, 0.1), (5, 0.05), (15, 0.01), (1, 0.5)])
def test_tables_fail_closed_at_every_budget(epsilon: float, delta: float) -> None:
    labelling = Labelling(3.0, composer_for(3.0, 20, epsilon, delta))
    for moves in (0, 20, 60):
        table = best_table(labelling.profile(Ballots.of(np.array([[200, 50, 50]] * 20)), moves), epsilon, delta, 300)
        assert table.fails_closed(Budget(epsilon, delta).epsilon, Budget(epsilon, delta).delta)
