"""The audit as a whole: all cases with fixed seeds; that it fails where it must; shared walks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.audit import registry
from snugdp.audit.density.density import density
from snugdp.audit.effort import QUICK
from snugdp.audit.end_to_end import end_to_end
from snugdp.audit.finding import LAYERS, Case
from snugdp.audit.jobs import Job, Walks, jobs_of_cases, jobs_of_the_library, perform
from snugdp.audit.replay import path, realised_by
from snugdp.audit.run import Report, audit
from snugdp.audit.steps.neighbour import exceeds, neighbour
from snugdp.audit.steps.run_count import hidden_runs
from snugdp.audit.steps.stepwise import bills
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import Witness
from snugdp_studies.audit import library
from tests.audit.toys import case, gaussian_sum, laplace_sum
from tests.effort import sampled

SLICES = [(group, part) for group in registry.groups() for part in range(2)]


def failed(job: Job, of: Case[Any] | None = None) -> list[str]:
    return [str(finding) for finding in perform(job, QUICK, 0, of).findings if not finding.passed]


@pytest.mark.slow
@pytest.mark.parametrize(("group", "part"), SLICES)
def test_every_case_passes_the_quick_audit(group: str, part: int) -> None:
    for one in registry.registered(group)[part::2]:
        (job,) = jobs_of_cases([one], LAYERS)
        assert failed(job, one) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", library.PERFORM)
@pytest.mark.parametrize("part", range(2))
def test_what_stands_behind_the_cases_passes_the_quick_audit(kind: str, part: int) -> None:
    for job in [job for job in jobs_of_the_library(LAYERS) if job.kind == kind][part::2]:
        assert failed(job) == []


@pytest.mark.nightly
@pytest.mark.parametrize("group", registry.groups())
def test_no_case_moves_farther_than_it_pays_for(group: str) -> None:
    """Every case once on its first pair, both ways, as a whole and step by step: layer N of the quick audit on a run of
    another seed.
    """
    for one in registry.registered(group):
        pair = next(iter(one.worst()))
        for way in (1, -1) if one.transcript else ():
            first, second = tuple(pair)[::way]
            run = path(one, first, second, seed=0, kept=True)
            assert not exceeds(one, realised_by(run)), one.name
            assert not [str(bill) for bill in bills(run, parts=one.parts) if bill.unpaid(boundary=False)], one.name


@sampled(3)
@pytest.mark.parametrize("name", ["framework: distance, Laplace", "vote: laplace", "linear: adassp"])
def test_smaller_noise_would_be_seen(name: str) -> None:
    (job,) = jobs_of_cases([one := library.case(name)], "D")
    (found, *_) = perform(job, QUICK, 0, one).findings
    assert found.passed, found
    assert "smaller is seen on pair" in found.detail


def test_every_layer_is_in_the_audit() -> None:
    jobs = [*jobs_of_the_library(LAYERS), *jobs_of_cases(registry.registered("framework"), LAYERS)]
    assert {layer for job in jobs for layer in job.layers} == set(LAYERS)
    assert {job.name for job in jobs if job.kind == "entry point"} > {"median", "LinearRegression", "PCA", "pate.label"}
    assert len({job.name for job in jobs if job.kind == "case"}) == len(registry.registered("framework"))


def test_a_wrong_claim_fails() -> None:
    wrong = case(laplace_sum(1), Cost(epsilon="0.4"))
    report = audit(wrong, layers="DN")
    assert not report.passed
    assert {finding.layer for finding in report.failures} == {"D", "N"}
    assert "claimed 0.4" in str(report)


def test_a_right_claim_passes_everything() -> None:
    seen = []
    report = audit([case(laplace_sum(1), Cost(epsilon=1))], progress=lambda *told: seen.append(told))
    assert report.passed, report.failures
    assert {finding.layer for finding in report.findings} == {"D", "N", "L", "I", "E"}
    assert seen == [(1, 1, "case toy")]
    assert report.versions["snugdp"] == snugdp.__version__
    assert set(report.seconds) >= {"D", "N"}


def test_a_mechanism_that_raises_fails_and_the_others_are_audited() -> None:
    def broken(data: Any, noise: Any) -> Any:
        raise ZeroDivisionError

    good = replace(case(gaussian_sum(), Cost(mu=1)), name="good")
    report = audit([replace(good, name="broken", run=broken), good], layers="NL")
    assert {finding.case for finding in report.failures} == {"broken"}
    assert {finding.case for finding in report.findings} == {"broken", "good"}


@pytest.mark.parametrize("layer", [density, neighbour, end_to_end, hidden_runs])
def test_an_error_is_a_failure_that_tells_no_value(layer: Any) -> None:
    def broken(data: Any, noise: Any) -> Any:
        raise ValueError("918273645")

    (found,) = layer(case(broken, Cost(mu=1), transcript=layer is not hidden_runs))
    assert not found.passed
    assert "ValueError" in found.detail
    assert "918273645" not in str(found)


@pytest.mark.parametrize("layer", [density, neighbour])
def test_draws_that_are_not_promised_are_not_looked_at(layer: Any) -> None:
    assert layer(case(gaussian_sum(), Cost(mu=1), transcript=False)) == []


def test_nothing_is_no_pass() -> None:
    assert not Report(()).passed
    with pytest.raises(ValueError, match="nothing to audit"):
        audit([], layers="D")
    with pytest.raises(ValueError, match="no layer Q"):
        audit([], layers=["Q"])
    with pytest.raises(TypeError, match="Case"):
        audit(["median"])  # type: ignore[list-item]
    one = case(gaussian_sum(), Cost(mu=1))
    with pytest.raises(ValueError, match="same name"):
        audit([one, one])


def test_walks_are_made_once_and_are_the_cases_own() -> None:
    calls = []
    toy = case(gaussian_sum(), Cost(mu=1))

    def run(data: Any, noise: Any) -> Any:
        calls.append(noise)
        return toy.run(data, noise)

    walks = Walks(replace(toy, run=run), seed=3)
    ((first, _),) = walks.case().worst()
    answers = []
    for _ in range(2):
        kept = walks.case()
        for _ in range(5):
            witness = Witness(7)
            outcome = kept.run(first, witness)
            answers.append((outcome.value, witness.transcript().sites[0].answer[0]))
    assert len(calls) == 5
    assert answers[:5] == answers[5:]
    assert len(set(answers)) == 5
    assert all(value == answer for value, answer in answers)
    narrow = Witness(7, shrink=0.5)
    walks.case().run(first, narrow)
    assert len(calls) == 6  # less noise is drawn, and not taken from the shelf
    assert not np.isclose(Walks(toy, seed=4).case().run(first, Witness(7)).value, answers[0][0])  # type: ignore[arg-type]
