"""Layer S: a right source passes every site, a wrong one is found where it is wrong, and coins are found alone."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
from flint import arb

from snugdp.audit.laws.goodness import cells_p, rate_p, two_samples_p, verdict
from snugdp.noise import Discrete, Exact, Gaussian, Laplace, Law, Simulation, cdf, pmf, rounded_pmf, tail
from snugdp.noise.exact import discrete, filtered
from snugdp.noise.exact.coins import PROVED
from snugdp.noise.exact.refine import Bits
from snugdp.noise.exact.shapes import EXPONENTIAL
from snugdp.noise.recording import scaled
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws import inside, reference
from snugdp_studies.audit.laws.samples import LIGHT, LawEffort, scale_p, uniform_p
from snugdp_studies.audit.laws.sources import REAL, SITES, SMALL, WHOLE, laws

every = pytest.mark.parametrize("law", [*REAL, *WHOLE, *SMALL], ids=repr)


def failed(findings: list[Any]) -> set[str]:
    return {finding.case for finding in findings if not finding.passed}


class Narrow(Simulation):
    """Noise that is a little too small everywhere."""

    factor = Fraction(85, 100)

    def _many(self, law: Law, n: int) -> Any:
        return super()._many(scaled(law, self.factor), n)


@pytest.mark.parametrize("site", ["add", "add_integers", "at_least", "reach", "argmaxes", "minimiser"])
def test_narrow_noise_is_found_at_every_site(site: str) -> None:
    source = Narrow(3)
    if site == "at_least":
        source.factor = Fraction(6, 10)
    found = laws(source, LIGHT, only=(site,))
    assert found
    assert not any(finding.passed for finding in found)


def test_three_per_cent_are_found_in_many_draws_at_once() -> None:
    source = Narrow(4)
    source.factor = Fraction(97, 100)
    assert not any(finding.passed for finding in laws(source, only=("add_integers",)) if "Gumbel" not in finding.claim)


class Wrong(Simulation):
    """One mistake at each of some sites."""

    def choice(self, n: int) -> int:
        return min(super().choice(n + 1), n - 1)

    def scatter(self, n: int, parts: int) -> Any:
        return super().scatter(n, (1 << 62) - 1) % parts if parts > 1 << 60 else super().scatter(n, parts + 1) % parts

    def chance(self, probability: Secret[Fraction]) -> bool:
        return super().chance(probability.map(lambda p: p * Fraction(9, 10)))

    def stopping(self, law: Any, most: int) -> int:
        return min(super().stopping(law, 10**9), most)

    def posterior(self, gram: Any, cross: Any, **named: Any) -> list[Fraction]:
        """L for its transposed inverse."""
        system = float(named["unit"]) * np.array(gram.map(np.array)._value) + float(named["ridge"]) * np.eye(3)
        mean = np.linalg.solve(system, float(named["unit"]) * np.array(cross._value))
        factor = np.linalg.cholesky(float(named["precision"]) * system)
        theta = mean + np.linalg.inv(factor) @ self._generator.normal(size=3)
        return [Fraction(value) for value in theta.tolist()]

    def weighted_choice(self, groups: Any, rate: Fraction) -> int:
        """Counts and weights are forgotten."""
        inside = groups._value
        return super().weighted_choice(
            Secret(replace(inside, count=0 * inside.count + 1, weight=0 * inside.weight)), rate
        )

    def argmax(self, scores: Any, law: Any) -> int:
        """One draw for all scores."""
        return int(np.argmax(np.array([float(score - 10**9) for score in scores._value])))


@pytest.mark.parametrize("site", ["choice", "scatter", "chance", "posterior", "argmax", "stopping", "weighted_choice"])
def test_each_mistake_is_found_at_its_site(site: str) -> None:
    assert failed(laws(Wrong(1), LIGHT, only=(site,))) == {site}


def test_unknown_sites_are_refused() -> None:
    with pytest.raises(ValueError, match="no such sites: nothing"):
        laws(only=("nothing",))
    assert len(SITES) == 14


# --- the references ---


@every
def test_cells_and_tails_agree_with_balls(law: Law) -> None:
    m, chances = reference.cells(law)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    for x in (-7, -1, 0, 2, 9):
        exact = pmf(law, x) if isinstance(law, Discrete) else rounded_pmf(law, x)
        assert chances[np.searchsorted(m, x)] == pytest.approx(exact, rel=1e-9, abs=1e-17)
        assert reference.tail(law, x) == pytest.approx(tail(law, x), rel=1e-9, abs=1e-17)
        if not isinstance(law, Discrete):
            assert reference.below(law, np.array([x]))[0] == pytest.approx(cdf(law, x), rel=1e-12)


@every
def test_scores_have_mean_zero_and_the_stated_information(law: Law) -> None:
    _, chances, score = reference.cell_scores(law)
    assert abs(score @ chances) < 1e-9
    if not isinstance(law, Discrete):
        z = np.linspace(-60, 200, 2_000_001) * reference.spread(law)
        weight = reference.density(law, z) * (z[1] - z[0])
        with np.errstate(over="ignore", invalid="ignore"):
            scale, place = (np.where(weight > 0, part, 0.0) for part in reference.scores(law, z))
        assert weight @ scale == pytest.approx(0, abs=1e-5)
        assert weight @ place == pytest.approx(0, abs=1e-5)
        assert weight @ scale**2 == pytest.approx(reference.information(law), rel=1e-5)
        assert weight @ z == pytest.approx(reference.centre(law), abs=1e-5)


def test_winners_by_quadrature() -> None:
    assert reference.winning([0, 2], Gaussian(1))[1] == pytest.approx(0.5 * (1 + math.erf(1)), rel=1e-6)
    assert reference.winning([0, 3], Laplace(1))[1] == pytest.approx(1 - math.exp(-3) * 5 / 4, rel=1e-6)


# --- p-values ---


def test_p_values_are_uniform_where_they_should_be() -> None:
    rng = np.random.default_rng(8)
    scales = [scale_p(rng.normal(size=50), Gaussian(1)) for _ in range(500)]
    shapes = [uniform_p(rng.random(400)) for _ in range(500)]
    rates = [rate_p(int(rng.binomial(300, 0.3)), 300, 0.3) for _ in range(500)]
    cells = [cells_p(np.bincount(rng.integers(5, size=500), minlength=5), np.full(5, 0.2)) for _ in range(500)]
    pairs = [
        two_samples_p(*(np.bincount(rng.integers(4, size=400), minlength=4) for _ in range(2))) for _ in range(500)
    ]
    for found in (scales, shapes, rates, cells, pairs):
        assert np.mean(np.array(found) < 0.1) < 0.18
        assert np.mean(np.array(found) < 0.01) < 0.035
    for found in (scales, shapes, cells, pairs):
        assert np.mean(np.array(found) < 0.1) > 0.04


def test_a_verdict_needs_both() -> None:
    assert verdict("S", "a", "b", {"x": 0.5}, {"y": 1e-9}).passed
    weak = verdict("S", "a", "b", {"x": 0.5}, {"y": 1e-6})
    wrong = verdict("S", "a", "b", {"x": 1e-9}, {"y": 1e-9})
    assert (weak.passed, wrong.passed) == (False, False)
    assert weak.detail.startswith("too weak: y")
    assert wrong.detail.startswith("wrong: x")
    assert not verdict("S", "a", "b", {"x": math.nan}, {"y": 0.0}).passed


# --- inside our own source ---


def few_coins() -> list[Any]:
    return list(islice(inside.coins(LawEffort(single=0.2)), 6))


def test_fresh_bits_after_an_undecided_step_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def extend(self: Bits, count: int) -> None:
        if count > self.count:
            fresh = Bits()
            old(fresh, count)
            self.value, self.count = fresh.value, count

    old = Bits.extend
    monkeypatch.setattr(Bits, "extend", extend)
    assert failed(few_coins())


def test_a_dropped_radius_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def ball(self: Bits, count: int) -> arb:
        self.extend(count)
        return arb((2 * self.value + 1, -self.count - 1))

    monkeypatch.setattr(Bits, "ball", ball)
    assert failed(few_coins())


def test_ties_that_are_decided_as_less_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snugdp.noise.exact.refine.negative", lambda ball: not ball > 0)
    assert failed(few_coins())


def test_a_fallback_that_always_accepts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered, "accepts", lambda *_: True)
    monkeypatch.setattr(discrete, "_keeps", lambda *_: True)
    found = [finding for finding in inside.filter_rates(LawEffort(single=0.12)) if not finding.passed]
    assert len(found) == 5
    assert all("by balls" in finding.claim for finding in found)


def test_forgotten_bits_and_signs_from_the_size_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = filtered._attempt

    def forgetful(*args: Any) -> filtered.DrawBatch:
        batch = whole(*args)
        return filtered.DrawBatch((batch.fraction >> np.uint64(63)).astype(np.bool_), batch.whole, batch.fraction)

    monkeypatch.setattr(filtered, "_attempt", forgetful)
    assert any("is kept" in finding.claim for finding in inside.fallbacks(LIGHT) if not finding.passed)
    assert any("fair sign" in finding.claim for finding in inside.last_bits(LIGHT) if not finding.passed)


def test_zero_twice_and_a_mismatched_envelope_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = discrete._keeps
    with monkeypatch.context() as patch:
        patch.setattr(discrete, "_keeps", lambda c, scale, v, coin: keeps(c, scale + 1, v, coin))
        rates = [f for f in inside.filter_rates(LIGHT) if not f.passed]
        assert rates

    def laplaces(scale: Fraction, n: int, margins: Any = PROVED) -> Any:
        batch = filtered.draw(EXPONENTIAL, n, margins)
        return filtered.signed(batch, filtered.floors(batch, scale, Fraction(0), margins))

    monkeypatch.setattr(discrete, "laplaces", laplaces)
    found = laws(Exact(), LIGHT, only=("add_integers",))
    assert {f.claim.split()[1].split("(")[0] for f in found if not f.passed} >= {"DiscreteLaplace"}
