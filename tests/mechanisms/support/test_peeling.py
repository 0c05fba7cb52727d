"""Gumbel top-s: exact laws over all neighbours of small universes against the claimed cost, and less noise caught."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp import Budget, Cost, Exact, Simulation
from snugdp.accounting import gaussian
from snugdp.accounting.bounded_range import range_at
from snugdp.mechanisms.support.peeling import NoisyScores, NoisySupport, TopScores
from snugdp.mechanisms.support.sparse import noisy_support
from snugdp.noise import Noise
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.candidates import Candidates
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.passes.vectors.scores import CELLS
from tests.accounting.hockey import hockey_stick
from tests.effort import often, repeated, sampled

Scores = tuple[int, ...]
LEVELS = (0, 1, 2, 5, 9)


def neighbours(scores: Scores) -> list[Scores]:
    """One row moves every score by at most 1, in any directions."""
    moved = product(*((c - 1, c, c + 1) for c in scores))
    return [other for other in moved if min(other) >= 0]


def order_probability(scores: Scores, scale: float, order: Sequence[int]) -> float:
    """The probability that the draws give these positions in this order."""
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    left, chance = float(weights.sum()), 1.0
    for position in order:
        chance, left = chance * weights[position] / left, left - weights[position]
    return chance


def set_probability(scores: Scores, scale: float, chosen: Sequence[int]) -> float:
    """The same in any order."""
    return math.fsum(order_probability(scores, scale, order) for order in permutations(chosen))


def ordered_law(scores: Scores, scale: float, size: int) -> Any:
    """The probability of every ordered result."""
    return np.array([order_probability(scores, scale, order) for order in permutations(range(len(scores)), size)])


def set_law(scores: Scores, scale: float, size: int) -> Any:
    return np.array([set_probability(scores, scale, chosen) for chosen in combinations(range(len(scores)), size)])


def pairs(width: int, levels: tuple[int, ...] = LEVELS) -> list[tuple[Scores, Scores]]:
    return [(a, b) for a in product(levels, repeat=width) for b in neighbours(a)]


@sampled(3)
@pytest.mark.parametrize(("width", "size"), [(2, 1), (3, 1), (3, 2)])
def test_pure_scale_holds_on_all_neighbours_and_half_of_it_does_not(width: int, size: int) -> None:
    epsilon = 1.0
    scale = float(TopScores.pure(size, epsilon).scale())
    assert scale == 2 * size
    assert max(
        np.abs(np.log(set_law(a, scale, size) / set_law(b, scale, size))).max() for a, b in pairs(width)
    ) <= epsilon * (1 + 1e-12)
    here, there = (*(0,) * size, *(60,) * (width - size)), (*(1,) * size, *(59,) * (width - size))
    for factor, caught in ((1.0, False), (0.5, True)):
        laws = [set_law(c, factor * scale, size)[0] for c in (there, here)]
        assert (math.log(laws[0] / laws[1]) > epsilon * (1 + 1e-12)) == caught
        assert math.log(laws[0] / laws[1]) > 0.98 * epsilon / factor


@sampled(3)
@pytest.mark.parametrize(("width", "size"), [(2, 1), (3, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("mu", ["0.2", "1", "3"])
def test_the_gaussian_part_dominates_every_ordered_law(width: int, size: int, mu: str) -> None:
    top = TopScores.gaussian(size, Fraction(mu) ** 2)
    assert top.cost == Cost(mu=mu)
    law = cache(lambda scores: ordered_law(scores, float(top.scale()), size))
    bounds = {epsilon: top.cost.delta_at(epsilon) + 1e-12 for epsilon in (-0.5, 0.0, 0.3, 1.0, 2.0)}
    for a, b in pairs(width, LEVELS if width < 4 else (0, 2)):
        assert all(hockey_stick(law(a), law(b), epsilon) <= bound for epsilon, bound in bounds.items())


@pytest.mark.parametrize("mu", ["0.1", "1", "4"])
def test_one_draw_is_tight_and_less_noise_is_caught(mu: str) -> None:
    scale, bound = float(TopScores.gaussian(1, Fraction(mu) ** 2).scale()), gaussian.delta(mu, 0)
    leak = [hockey_stick(ordered_law((1, 0), f * scale, 1), ordered_law((0, 1), f * scale, 1), 0.0) for f in (1, 0.9)]
    assert bound * (1 - 1e-9) <= leak[0] <= bound * (1 + 1e-12)
    assert leak[1] > bound * 1.01


@repeated
@settings(max_examples=often(15, 50, 100), deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    st.lists(st.floats(-8, 8), min_size=6, max_size=6),
    st.floats(0.05, 5),
    st.floats(-2, 4),
)
def test_any_pair_of_bounded_range(moves: list[float], scores: list[float], mu: float, epsilon: float) -> None:
    """Real scores, moved by any amounts: the pair of laws stays below the Gaussian curve."""
    rate = float(range_at(Fraction(mu) ** 2)) / 2
    here = np.array(scores[: len(moves)])
    laws = [np.exp(rate * c - np.logaddexp.reduce(rate * c)) for c in (here, here + np.array(moves))]
    for p, q in (laws, laws[::-1]):
        assert hockey_stick(p, q, epsilon) <= gaussian.delta(mu, epsilon) * (1 + 1e-9) + 1e-13


def test_the_lemma_on_a_fine_grid() -> None:
    """The window of length e around 0 is the worst; the hazard inequality behind it."""
    from scipy.special import expit
    from scipy.stats import norm

    x = np.linspace(-12, 12, 4801)
    for e in (0.01, 0.3, 1.0, 4.0):
        steps = norm.ppf(expit(x + e)) - norm.ppf(expit(x))
        assert steps.max() <= 2 * norm.ppf(expit(e / 2)) * (1 + 1e-9)
    z = np.linspace(0, 12, 4801)
    hazard = np.exp(norm.logpdf(z) - norm.logsf(z)) - np.exp(norm.logpdf(z) - norm.logcdf(z)) - z
    assert hazard.min() >= -1e-12


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("source", [Exact(), Simulation(3)])
def test_draws_have_the_law(source: Noise) -> None:
    scores, size, runs = (6, 2, 0, 4), 2, 1200
    top = TopScores(size, Fraction(1, 3), Cost(epsilon=1))
    seen = Counter(top.draw(Secret(np.array(scores)), 1, source) for _ in range(runs))
    orders = list(permutations(range(4), size))
    for order, chance in zip(orders, ordered_law(scores, 3.0, size), strict=True):
        assert abs(seen[order] - runs * chance) < 6 * math.sqrt(runs * chance * (1 - chance)) + 3
    assert set(seen) <= set(orders)


def test_all_entries_can_be_chosen_and_ten_thousand_are_fast() -> None:
    top = TopScores.pure(4, 1)
    assert sorted(top.draw(Secret(np.array([5, 1, 1, 0])), 1, Exact())) == [0, 1, 2, 3]
    scores = np.zeros(10_000, dtype=np.int64)
    scores[[17, 9_999, 4]] = 10**6
    assert set(TopScores.pure(3, 1).draw(Secret(scores), 1, Exact())) == {4, 17, 9_999}


def candidates(X: Any, y: Any) -> Candidates:
    return Candidates(BoxSchema(tuple(f"x{j}" for j in range(X.shape[1])), 1, 1), X=X, y=y)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("centre", [0, CELLS // 4])
def test_all_tables_of_a_small_universe_through_the_whole_numbers(centre: int) -> None:
    """From rows to scores in cells to the law at the planned scale: every table of up to 3 rows, one row more."""
    universe = list(product([-1.0, 1.0], [-1.0, 0.5, 1.0], [-1.0, 1.0]))  # two entries and a target
    sensitivity = CELLS * (CELLS + centre)
    top = TopScores.gaussian(1, Fraction(1))

    @cache
    def law(rows: tuple[tuple[float, ...], ...], factor: float) -> Any:
        cells = np.array(rows).reshape(len(rows), 3)
        scores = candidates(cells[:, :2], cells[:, 2]).scores().centred(centre)
        return ordered_law(tuple(scores.tolist()), factor * float(top.scale(sensitivity)), 1)

    bounds = {epsilon: top.cost.delta_at(epsilon) for epsilon in (0.0, 0.5, 1.0)}
    for factor, caught in ((1.0, False), (0.8, True)):
        worst = 0.0
        for size in range(3):
            for rows in combinations_with_replacement(universe, size):
                for more in universe:
                    here, there = law(rows, factor), law(tuple(sorted((*rows, more))), factor)
                    for pair in ((here, there), (there, here)):
                        worst = max(worst, *(hockey_stick(*pair, e) / bound for e, bound in bounds.items()))
        assert (worst > 1 + 1e-9) == caught or centre  # around 0 the bound is attained; elsewhere it nearly is
        assert not (worst > 1 + 1e-9 and factor == 1.0)
        assert worst > 0.7 / (1 + centre / CELLS)


@repeated
@settings(max_examples=often(10, 40, 60), deadline=None)
@given(st.integers(0, 10**6), st.integers(-CELLS, CELLS))
def test_one_row_moves_scores_by_no_more_than_the_planned_sensitivity(seed: int, centre: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(0, 3, (5, 4)), rng.normal(0, 2, 5)
    X[0] = rng.choice([-1e9, 1e9, np.nan, np.inf, 1.0], 4)
    here, there = (candidates(X[k:], y[k:]).scores() for k in (0, 1))
    moved = np.abs(here.centred(centre) - there.centred(centre))
    assert moved.max() <= CELLS * (CELLS + abs(centre))
    total = np.array(here.totals(), dtype=float) - np.array(there.totals(), dtype=float)
    assert np.hypot(*total) <= math.sqrt(2) * CELLS * (1 + 1e-12)


def test_the_sensitivity_is_attained_in_both_directions() -> None:
    X = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    here, there = (candidates(X[:k], np.ones(k)).scores().centred(0) for k in (2, 3))
    assert (there - here).tolist() == [CELLS**2, -(CELLS**2)]


def test_the_centre_takes_the_mean_out() -> None:
    """A column that is always 1 goes with any target that has a mean; around the mean it does not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 6))
    X[:, 0] = 1.0
    y = 0.6 + 0.3 * X[:, 3]
    data = Secret(candidates(X, y))
    plain = NoisySupport(TopScores.gaussian(1, Fraction(1, 25)))
    assert plain.certify(data, Simulation(1)).places == (0,)
    found = NoisySupport(TopScores.gaussian(1, Fraction(1, 25)), Fraction(1, 10)).certify(data, Simulation(1))
    assert found.places == (3,)
    assert abs(float(found.centre) - 0.6) < 0.05
    assert (found.centre * 4096).denominator == 1


@repeated
@settings(max_examples=often(10, 40, 60), deadline=None)
@given(st.integers(0, 10**6), st.integers(-CELLS, CELLS), st.sampled_from(["1/3", "1", "7/5", "3"]))
def test_one_row_moves_all_scores_by_no_more_than_its_norm(seed: int, centre: int, norm: str) -> None:
    """Shortened rows, dense and sparse, in whole numbers: what one row moves, squared, against what was planned."""
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    X, y = rng.normal(0, 1, (4, 9)) * (rng.random((4, 9)) < 0.7), rng.normal(0, 2, 4)
    X[0] *= rng.choice([1e-3, 1.0, 1e6])
    X[0, 0] = rng.choice([np.nan, np.inf, 0.5])
    box = BoxSchema(tuple(f"x{j}" for j in range(9)), 1, 1)
    seen = []
    for k in (0, 1):
        forms = [Candidates(box, X=form, y=y[k:], row_norm=Fraction(norm)) for form in (X[k:], sp.csr_matrix(X[k:]))]
        sums = [form.scores().signed(centre) for form in forms]
        assert sums[0] == sums[1]
        seen.append(sums[0])
    moved = sum((a - b) ** 2 for a, b in zip(*seen, strict=True))
    assert moved <= (forms[0].work.row_limit * (CELLS + abs(centre))) ** 2
    assert forms[0].work.row_limit == math.floor(Fraction(norm) * CELLS)


def test_a_short_row_is_left_alone_and_a_long_one_nearly_reaches_the_norm() -> None:
    box = BoxSchema(("a", "b"), 1, 1)
    X, one = np.array([[0.3, 0.4], [1.0, 1.0]]), np.ones(1)
    for row, norm in zip(X, (Fraction(1, 2), Fraction(1)), strict=True):
        sums = Candidates(box, X=row[None], y=one, row_norm=norm).scores().signed(0)
        assert math.hypot(*sums) / CELLS**2 == pytest.approx(float(norm), rel=1e-4)


def test_gaussian_scores_find_what_is_there_and_need_shortened_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 50))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.sign(X[:, 7] - X[:, 9])
    box = BoxSchema(tuple(f"x{j}" for j in range(50)), 1, 1)
    chooser = NoisyScores(2, Fraction(1, 8), Fraction(1), Fraction(1, 50))
    assert chooser.cost == Cost(mu="1/8") + Cost(mu="1/50")
    for source in (Exact(), Simulation(2)):
        found = chooser.certify(Secret(Candidates(box, X=X, y=y, row_norm=Fraction(1))), source)
        assert set(found.places) == {7, 9}
    for wrong in (None, Fraction(2)):
        with pytest.raises(PrivateComputationError):
            chooser.certify(Secret(Candidates(box, X=X, y=y, row_norm=wrong)), Exact())


def test_costs_and_shares() -> None:
    budget = Budget(1, 1e-6)
    for size in (1, 5, 20):
        chooser = noisy_support(size, budget, Fraction(3, 10), centred=True)
        total = gaussian.mu(1, 1e-6) ** 2
        assert chooser.cost.fits(budget)
        assert float(chooser.cost.mu_squared) == pytest.approx(0.3 * total, rel=1e-9)
        # against zCDP, the best that is known for long lists: no more than the root of pi / 2
        zcdp = math.sqrt(size / float(chooser.top.cost.mu_squared))
        assert float(chooser.top.scale()) <= zcdp * math.sqrt(math.pi / 2)
        assert float(chooser.top.scale()) < 2 * size / 0.16  # the pure form that leaves as much
    wild = noisy_support(1, Budget(60, 1e-6), Fraction(9, 10), centred=False)
    assert wild.cost.epsilon  # there the pure form has less noise
    assert not wild.cost.mu_squared


@pytest.mark.parametrize("call", [lambda: range_at(Fraction(0)), lambda: TopScores.pure(2, 0)])
def test_nothing_cannot_be_spent(call: Any) -> None:
    with pytest.raises(ValueError, match="0"):
        call()
