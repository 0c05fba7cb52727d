"""No release repeats the noise of another; a source that does is found."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from snugdp.audit.freshness import repeats
from snugdp_studies.audit.freshness import fresh_library


@pytest.fixture(scope="module")
def findings() -> Any:
    return fresh_library()


def test_no_noise_is_drawn_twice(findings: Any) -> None:
    for finding in findings:
        assert finding.passed, str(finding)
    ways = {finding.claim for finding in findings}
    for way in ("again", "threads", "seeds", "forks", "fresh processes", "copies and pickles"):
        assert any(way in claim for claim in ways), way


def test_a_shared_generator_is_found_in_forks() -> None:
    generator = np.random.default_rng(3)
    failed = [finding.claim for finding in repeats.fresh("planted", generator.standard_normal) if not finding.passed]
    assert failed == ["no noise is drawn twice in forks"]


def test_a_global_seed_is_found() -> None:
    for draw in (random.random, np.random.standard_normal):
        failed = [finding.claim for finding in repeats.fresh("planted", draw) if not finding.passed]
        assert "no noise is drawn twice with the same global seeds" in failed


def test_a_constant_and_a_missing_value_are_found() -> None:
    assert not any(finding.passed for finding in repeats.fresh("planted", lambda: 1.0))
    assert not any(finding.passed for finding in repeats.fresh("planted", lambda: float("nan")))


class Seeded:
    """An estimator whose copies share a state."""

    def __init__(self) -> None:
        self.seed = 5

    def __sklearn_clone__(self) -> Any:
        return Seeded()

    def fit(self) -> float:
        return float(np.random.default_rng(self.seed).standard_normal())


def test_copies_that_share_a_state_are_found() -> None:
    assert not repeats.fresh_models("planted", Seeded(), lambda model: model.fit()).passed


def test_global_generators_are_left_as_they_were() -> None:
    before = random.getstate()
    repeats.with_seeds(lambda: 1.0)
    assert random.getstate() == before


def test_the_power_check() -> None:
    assert repeats.power().passed
