"""The audit as a whole: all cases with few runs and fixed seeds; that it fails where it must; shared walks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.audit import registry
from snugdp.audit.effort import QUICK, Effort, RunCounts
from snugdp.audit.finding import LAYERS, Case
from snugdp.audit.jobs import Job, Walks, jobs_of_cases, jobs_of_the_library, perform
from snugdp.audit.run import Report, audit
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import Witness
from tests.audit.toys import case, gaussian_sum, laplace_sum

# As little as says something: every layer that sees a case, on every case. The command line does more.
LEAST = Effort(
    "least",
    RunCounts(tight=12, loose=10, others=3, random=4, near=1, strange=6, walks=12, ends=0),
    RunCounts(tight=2, loose=2, others=2, pairs=1, random=0, near=1, strange=3, walks=6, ends=0),
    RunCounts(tight=2, loose=2, others=2, pairs=1, random=0, near=1, strange=2, walks=4, ends=0),
)
SWIFT = ("queries", "framework", "pate", "selection")
CLOSED = ("linear: adassp", "linear: sufficient", "linear: objective", "linear: descent", "pca: gauss")
SLICES = [(group, part) for group in registry.groups() for part in range(2)]


def failed(job: Job, of: Case[Any], effort: Effort = LEAST) -> list[str]:
    return [str(finding) for finding in perform(job, effort, 0, of).findings if not finding.passed]


@pytest.mark.parametrize(("group", "part"), SLICES)
def test_every_case_passes(group: str, part: int) -> None:
    for one in registry.registered(group)[part::2]:
        dense = group in SWIFT or one.name in CLOSED
        assert failed(Job("case", one.name, "DNLIEC" if dense else "NLIC"), replace(one, tight=False)) == []


@pytest.mark.parametrize("name", ["framework: distance, Laplace", "vote: laplace", "linear: adassp"])
def test_smaller_noise_would_be_seen(name: str) -> None:
    (job,) = jobs_of_cases([registry.case(name)], "D")
    (found, *_) = perform(job, QUICK, 0).findings
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
