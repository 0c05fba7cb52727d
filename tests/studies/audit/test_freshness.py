"""No draw and no release repeats the noise of another; a source that does is found."""

import random
from typing import Any

import numpy as np
import pytest

from snugdp.noise import Exact, Simulation
from snugdp_studies.audit import freshness
from snugdp_studies.audit.freshness import decisions, equal_draws, fingerprint, fresh_library, lanes
from snugdp_studies.audit.laws.samples import LawEffort, size
from tests.audit.toys import Cached

LIGHT = LawEffort(many=0.06, single=0.2)


def failed(findings: Any) -> set[str]:
    return {finding.case for finding in findings if not finding.passed}


def test_the_exact_source_never_repeats_itself() -> None:
    assert len(set(fingerprint(Exact()).split())) == 10
    assert failed(equal_draws(Exact)) == set()
    assert failed(decisions(Simulation(4), LIGHT)) == set()
    assert failed(lanes(Simulation(3), LIGHT)) == set()


def test_a_seed_is_found_in_forks_copies_and_sources() -> None:
    assert failed(equal_draws(lambda: Simulation(1))) == {
        f"equal draws, {way}" for way in ("sources", "forks", "copies")
    }


class Lagged(Simulation):
    """Every draw holds a little of the one before."""

    def _many(self, law: Any, n: int) -> Any:
        z = super()._many(law, n + 1)
        return z[1:] + 0.2 * z[:-1]


class Tied(Simulation):
    """Winners, places and coins that come in twos."""

    def argmaxes(self, scores: Any, law: Any) -> Any:
        return np.repeat(super().argmaxes(scores, law)[::2], 2)[: len(scores._value)]

    def scatter(self, n: int, parts: int) -> Any:
        return np.repeat(super().scatter(n, parts)[: (n + 1) // 2], 2)[:n]


def test_reuse_inside_a_source_is_found() -> None:
    assert "lanes" in failed(lanes(Cached(1), LIGHT))
    assert "add" in failed(lanes(Cached(1), LIGHT))
    assert "lanes" in failed(lanes(Lagged(1), LIGHT))
    assert {"argmaxes", "scatter"} <= failed(decisions(Tied(1), LIGHT))
    assert "equal draws, calls" in failed(equal_draws(lambda: Cached(1)))


def test_coins_of_which_exactly_half_fell_on_each_side() -> None:
    """One audit in 60 sees that: then all are equally far from their mean."""
    effort = LawEffort()
    count = size(1, 4 * effort.single) * 4
    fell = iter(np.random.default_rng(5).permutation(np.arange(count) % 2 == 0).tolist())

    class Even(Simulation):
        def at_least(self, *given: Any) -> bool:
            return bool(next(fell))

    found = [one for one in lanes(Even(1), effort) if one.case == "at_least"]
    assert len(found) == 1
    assert found[0].passed, found[0]
    assert next(fell, None) is None


@pytest.mark.slow
def test_no_noise_is_drawn_twice() -> None:
    findings = fresh_library()
    for finding in findings:
        assert finding.passed, str(finding)
    ways = {finding.claim for finding in findings}
    for way in ("again", "threads", "seeds", "forks", "fresh processes", "copies and pickles"):
        assert any(way in claim for claim in ways), way


def test_a_query_draws_no_noise_twice() -> None:
    for finding in freshness.fresh("trimmed_mean", freshness.example):
        assert finding.passed, str(finding)


def test_a_shared_generator_is_found_in_forks() -> None:
    generator = np.random.default_rng(3)
    failed = [finding.claim for finding in freshness.fresh("planted", generator.standard_normal) if not finding.passed]
    assert failed == ["no noise is drawn twice in forks"]


def test_a_global_seed_is_found() -> None:
    for draw in (random.random, np.random.standard_normal):
        failed = [finding.claim for finding in freshness.fresh("planted", draw) if not finding.passed]
        assert "no noise is drawn twice with the same global seeds" in failed


def test_a_constant_and_a_missing_value_are_found() -> None:
    assert not any(finding.passed for finding in freshness.fresh("planted", lambda: 1.0))
    assert not any(finding.passed for finding in freshness.fresh("planted", lambda: float("nan")))


class Seeded:
    """An estimator whose copies share a state."""

    def __init__(self) -> None:
        self.seed = 5

    def __sklearn_clone__(self) -> Any:
        return Seeded()

    def fit(self) -> float:
        return float(np.random.default_rng(self.seed).standard_normal())


def test_copies_that_share_a_state_are_found() -> None:
    assert not freshness.fresh_models("planted", Seeded(), lambda model: model.fit()).passed


def test_global_generators_are_left_as_they_were() -> None:
    before = random.getstate()
    freshness.with_seeds(lambda: 1.0)
    assert random.getstate() == before


def test_the_power_check() -> None:
    assert freshness.power().passed
