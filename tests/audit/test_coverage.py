"""Layer C: private bounds are wrong as rarely as they claim, and forgotten, reversed or slipped shifts are found."""

from fractions import Fraction
from typing import Any

import pytest

from snugdp.accounting import gaussian
from snugdp.audit.coverage import Certified, coverage
from snugdp.mechanisms.components import projector
from snugdp.mechanisms.linear import ridge_test
from snugdp.noise import Gaussian, Noise, Simulation
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit import certificates

SIGMA, FAILURE = 3, Fraction(1, 5)


def upper(shift: float) -> Any:
    def run(noise: Noise) -> float:
        return float(noise.add(Secret(100), Gaussian(SIGMA), grid=-20)) + shift - 100

    return run


def certified(failure: Fraction, **changes: Any) -> Certified:
    shift = gaussian.threshold(SIGMA, failure)
    named: dict[str, Any] = {"slips": certificates.gaussian_slips(SIGMA, float(FAILURE)), **changes}
    return Certified("a count", upper(shift), float(FAILURE), **named)


def test_a_right_bound_passes_and_twice_the_failures_do_not() -> None:
    assert coverage(certified(FAILURE), Simulation(1)).passed
    finding = coverage(certified(2 * FAILURE), Simulation(1))
    assert not finding.passed
    assert "wrong too often" in finding.detail


@pytest.mark.parametrize("times", [0.0, -1.0], ids=["forgotten", "wrong sign"])
def test_shifts_that_are_forgotten_or_reversed_are_found(times: float) -> None:
    one = Certified("a count", upper(times * gaussian.threshold(SIGMA, FAILURE)), float(FAILURE), {"any": 9.0})
    assert not coverage(one, Simulation(2)).passed


def test_a_check_that_cannot_fail_has_not_passed() -> None:
    weak = coverage(certified(FAILURE, slips={"nothing": 0.0}), Simulation(3))
    assert not weak.passed
    assert weak.detail == "too weak: not found: nothing"
    other = coverage(certified(FAILURE, slips={}, others={"no shift": upper(0.0)}), Simulation(3))
    assert other.passed
    with pytest.raises(ValueError, match="at least one mistake"):
        certified(FAILURE, slips={})
    with pytest.raises(ValueError, match="above 0 and at most 1/4"):
        Certified("a", upper(0), 0.5, {"b": 1.0})


def test_what_is_no_number_is_no_bound() -> None:
    assert not coverage(Certified("a", lambda noise: float("nan"), 0.2, {"b": 1.0}), Simulation(1)).passed


def test_there_is_a_certificate_of_every_kind() -> None:
    names = [one.name for one in certificates.certificates()]
    assert len(names) == len(set(names)) >= 17


@pytest.mark.slow
def test_a_margin_that_is_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    gap = next(certificates.gaps())
    with monkeypatch.context() as patch:
        patch.setattr(projector, "margin", lambda sigma, failure: Fraction(0))
        assert not coverage(gap, Simulation(5)).passed
    assert coverage(gap, Simulation(5)).passed
    curvature = next(certificates.ridges())
    whole = ridge_test.spread
    monkeypatch.setattr(ridge_test, "spread", lambda *args: (*whole(*args)[:2], Fraction(0)))
    assert not coverage(curvature, Simulation(5)).passed


@pytest.mark.slow
def test_a_mistaken_failure_probability_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """ln(1/delta) for ln(1/(2 delta)) and the like: the margin belongs to another failure probability."""
    both = list(certificates.statistics())[2]
    true = gaussian.threshold
    monkeypatch.setattr("snugdp.certify.statistics.gaussian.threshold", lambda sigma, failure: true(sigma, 2 * failure))
    assert not coverage(both, Simulation(6)).passed
