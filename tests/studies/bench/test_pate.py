"""The benchmark of PATE: what its plans may know, how refusals are counted, and its command."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from snugdp import Simulation
from snugdp import pate as votes_of
from snugdp_studies.bench.pate import speed, students
from snugdp_studies.bench.pate.students import CONFIDENT, DISTANCE, GAUSSIAN, StudentJob, StudentSetting
from tests.cli.people import run
from tests.studies.paper.test_pate import write_mnist

DELTA = 1e-5
invoke = partial(run, "bench", "pate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_mnist(tmp_path_factory.mktemp("pictures"), 800)


@pytest.fixture(scope="module")
def setting(folder: Path) -> StudentSetting:
    return students.prepare(folder, teachers=80)


def cell(setting: StudentSetting, job: StudentJob, seeds: int = 3) -> students.StudentCell:
    (found,) = students.fill(setting, [job], 20, DELTA, seeds)
    return found


def test_parts_are_apart(setting: StudentSetting) -> None:
    assert setting.votes.shape == (len(setting.pool), 3)
    assert set(setting.votes.sum(axis=1).tolist()) == {80}
    assert len(setting.proxy.whole) == len(setting.pool)
    assert len(setting.pool) + len(setting.public) + len(setting.test) == 240


def test_plans_do_not_know_the_votes(setting: StudentSetting) -> None:
    other = replace(setting, votes=setting.votes[::-1, ::-1])
    for kind in ("random", "proxy"):
        for method in (GAUSSIAN, DISTANCE):
            one, two = (students._proposal(s, StudentJob(kind, method, 2.0), 20, DELTA) for s in (setting, other))
            assert str(one.plan) == str(two.plan)
        assert setting.asked(kind, 10, 1).tolist() == other.asked(kind, 10, 1).tolist()
    assert setting.inside("votes").tolist() != other.inside("votes").tolist()  # which is why that kind is not private


def test_the_half_that_chose_is_not_believed(setting: StudentSetting) -> None:
    chosen = setting.inside("proxy")
    first = setting.proxy.first[chosen]
    assert (first.max(axis=1) > students.PROXY_SURE * first[0].sum()).all()
    assert setting.believed("proxy").tolist() == setting.proxy.second[chosen].tolist()


def test_gaussian_noise_never_refuses_and_teaches(setting: StudentSetting) -> None:
    found = cell(setting, StudentJob("random", GAUSSIAN, 8.0))
    assert (found.refused, found.tested, found.answers) == (0.0, False, 20.0)
    assert found.student is not None
    assert found.student > 0.6
    assert found == cell(setting, StudentJob("random", GAUSSIAN, 8.0))  # the same noise for the same job


def test_refusals_are_counted(setting: StudentSetting) -> None:
    agreed, tied = np.array([[80, 0, 0]]), np.array([[40, 40, 0]])
    proxy = replace(setting.proxy, whole=np.repeat(agreed, len(setting.pool), axis=0))
    alike = replace(setting, proxy=proxy, votes=np.repeat(tied, len(setting.pool), axis=0))
    found = cell(alike, StudentJob("random", DISTANCE, 1.0))
    assert found.tested  # the belief is wrong, and the test finds out
    assert (found.refused, found.student, found.right, found.answers) == (1.0, None, None, None)
    good = replace(alike, votes=proxy.whole)
    found = cell(good, StudentJob("random", DISTANCE, 1.0))
    assert (found.refused, found.answers) == (0.0, 20.0)


def test_confident_answers_are_fewer(setting: StudentSetting) -> None:
    proposal = students._proposal(setting, StudentJob("random", CONFIDENT, 50.0), 20, DELTA)
    assert proposal.plan.proposal["threshold"] == round(0.7 * 80)
    run = students._run(setting, StudentJob("random", CONFIDENT, 50.0), proposal, 20, 1)
    assert run is None or run.answers < 20


def test_equal_noise(setting: StudentSetting) -> None:
    jobs = students.equal_noise(setting, [12.0], ["random"], 20, DELTA)
    assert [job.method for job in jobs] == [GAUSSIAN, DISTANCE]
    assert jobs[1].epsilon <= jobs[0].epsilon
    assert {cell(setting, job, 1).sigma for job in jobs} == {12.0}


def test_too_few_queries(setting: StudentSetting) -> None:
    with pytest.raises(ValueError, match="there are only"):
        setting.asked("random", 10_000, 1)


def test_votes_that_are_too_few(folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", votes=np.array([[3, 1, 0]]))
    with pytest.raises(ValueError, match="the first 60 test images"):
        students.prepare(folder, tmp_path / "v.npz")


def test_votes_as_labels() -> None:
    histograms = speed.agreeing(30, 50, 4)
    ballots = speed.cast(histograms)
    assert ballots.shape == (30, 50)
    counts = [np.bincount(row, minlength=4).tolist() for row in ballots]
    assert counts == histograms.tolist()
    assert (histograms.max(axis=1) >= 40).all()
    assert len(set(histograms.argmax(axis=1).tolist())) == 4


@pytest.mark.slow
def test_times() -> None:
    votes = speed.made_up(200, 400, 10)
    plan = votes_of.plan(speed.BUDGET, n_queries=200, n_teachers=400, n_classes=10, proxy=votes)
    assert [step.id for step in plan.steps] == ["test", "release"]  # otherwise nothing is timed
    rows = list(speed.label_times(1, (300, 50), Simulation(1), confident=False))
    assert [row.median for row in rows] == [None] * len(rows)
    assert "300 queries" in rows[-1].name
    assert all(row.first > 0 for row in rows)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    asked = ("--teachers", 80, "--queries", 20, "--epsilons", "4", "--sigmas", "12", "--kinds", "random,votes")
    result = invoke("--data", folder, *asked, "--seeds", 2, "--no-speed", "--json", file)
    assert "NOT PRIVATE" in result.output
    assert "chosen by votes: NOT PRIVATE" in " ".join(result.output.split())
    content = json.loads(file.read_text())
    methods = [(one["kind"], one["method"]) for one in content["equal_epsilon"]]
    asked_of_all = [(kind, method) for kind in ("random", "votes") for method in (GAUSSIAN, DISTANCE, CONFIDENT)]
    assert methods == asked_of_all[:-1]  # confident answers are for random queries
    assert {one["sigma"] for one in content["equal_noise"]} == {12.0}


def test_the_surrogate(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"few": [[38, 2]] * 5}))
    asked = ("--surrogate", tmp_path / "s.json", "--surrogate-sigmas", "6", "--no-speed", "--json", tmp_path / "o")
    assert "students are left out" in invoke(*asked).output
    (point,) = json.loads((tmp_path / "o").read_text())["surrogate"]["points"]
    assert point["epsilons"]["sharp"] <= point["epsilons"]["gaussian"] * 1.3


def test_what_the_command_refuses(folder: Path, tmp_path: Path) -> None:
    assert "no kind lucky" in invoke("--data", folder, "--kinds", "lucky", code=1).output
    assert "--data" in invoke("--votes", tmp_path / "v.npz", code=1).output
    assert "Error" in invoke("--json", tmp_path / "no" / "where.json", code=1).output
