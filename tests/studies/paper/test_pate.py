"""The paper's formulas for PATE are what it prints, each fails where ``docs/errata.md`` says so; and the study."""

import gzip
import json
import math
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from snugdp import Budget, Exact, Simulation, pate
from snugdp.cli.main import app
from snugdp_studies.paper.pate import curves, experiment
from snugdp_studies.paper.pate.curves import CURVES, KnownVotes
from snugdp_studies.paper.pate.data import KernelRidge, Pictures, Votes, mnist, public_part, read_idx, stored, voted
from snugdp_studies.paper.pate.study import QuerySelection, Study, selected
from tests.errata.numerics import theorem6
from tests.mechanisms.noisy_votes import largest_loss

DELTA = 1e-5


def log_q(gap: float, sigma: float) -> float:
    from scipy.special import log_ndtr

    return float(log_ndtr(-gap / (math.sqrt(2) * sigma)))


def write_idx(file: Path, values: Any) -> None:
    """An idx file of unsigned bytes, gzipped if its name says so."""
    array = np.asarray(values, dtype=np.uint8)
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def pictures(count: int, classes: int = 3, side: int = 4, shift: int = 0) -> tuple[Any, Any]:
    """Pictures that are easy to tell apart: every class has bright rows of its own; some are blurred."""
    labels = (np.arange(count) * 7 + shift) % classes
    places = np.arange(side * side)[None, :]
    bright = places % classes == labels[:, None]
    noise = (np.arange(count)[:, None] * 37 + places * 101 + shift) % 97
    pixels = np.where(bright, 120, 40) + noise
    pixels[::17] = 100  # nothing to see
    return pixels.reshape(count, side, side), labels


def write_mnist(folder: Path, train: int) -> Path:
    """The four files, some gzipped, with 240 pictures to test on."""
    for name, count, shift in (("train", train, 0), ("t10k", 240, 5)):
        pixels, labels = pictures(count, shift=shift)
        write_idx(folder / f"{name}-images-idx3-ubyte.gz", pixels)
        write_idx(folder / f"{name}-labels-idx1-ubyte", labels)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_mnist(tmp_path, 600)


def test_the_formula_of_one_label_is_as_printed() -> None:
    """That it is false is shown in ``tests/errata`` (T1)."""
    logs = log_q(16, 1.5)
    assert float(experiment.not_private_label_loss(logs, 1.5, 1.05, sigma_2=15)) == pytest.approx(1.20e-12, rel=5e-3)
    assert float(experiment.not_private_label_loss(logs, 1.5, 1.05)) >= largest_loss([208, 192], 1.5, 1.05)[0]
    for gap, sigma, order in ((60, 10.0, 5.0), (200, 30.0, 12.0), (120, 20.0, 3.0)):
        meant = theorem6(log_q(gap, sigma), sigma, order)
        assert float(experiment.not_private_label_loss(log_q(gap, sigma), sigma, order)) == pytest.approx(
            meant, rel=1e-9
        )


def test_parameters_of_the_experiment() -> None:
    found = experiment.not_private_parameters_of_the_experiment(DELTA)
    assert found.sigma == pytest.approx(15.0)
    assert found.order == pytest.approx(42.96, abs=5e-3)
    assert found.epsilon == pytest.approx(experiment.not_private_parameters(found.epsilon, DELTA).epsilon)
    assert found.beta == pytest.approx(0.2 / 42.9639, rel=1e-5)


@pytest.mark.parametrize(("sigma", "order", "steep"), [(13.79, 22.0, True), (30.29, 42.96, True), (40.0, 22.0, False)])
def test_c9_the_sensitivity_is_smooth_only_for_low_orders(sigma: float, order: float, steep: bool) -> None:
    beta = 0.2 / order
    logs = [
        math.log(experiment.not_private_smooth_sensitivity(np.array([[200 + i, 200 - i]]), sigma, order, beta, 400))
        for i in range(201)
    ]
    largest = max(abs(b - a) for a, b in pairwise(logs)) / beta
    assert largest > 10 if steep else largest <= 1 + 1e-6


def test_the_algorithm_as_printed_runs_and_only_with_a_simulation() -> None:
    votes = np.array([[380, 20], [300, 100]] * 20)
    found = experiment.not_private_parameters_of_the_experiment(DELTA)
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        experiment.not_private_upper_bound(1.0, 1.0, found, DELTA, Exact())  # type: ignore[arg-type]
    draws = [experiment.not_private_upper_bound(1.0, 0.1, found, DELTA, Simulation(s)) for s in range(200)]
    assert all(draw > 1 for draw in draws)  # fails with probability 5e-6
    one, other = (
        experiment.not_private_pate_ptr(votes, 30.0, DELTA, teachers=400, noise=Simulation(seed)) for seed in (1, 2)
    )
    assert one != other
    assert one > found.epsilon + experiment.not_private_conversion(0, found.order, DELTA / 2)
    assert one == experiment.not_private_pate_ptr(votes, 30.0, DELTA, teachers=400, noise=Simulation(1))


@pytest.mark.slow
def test_curves_are_in_order() -> None:
    votes = np.array([[90, 6, 4], [85, 10, 5], [70, 20, 10]] * 20)
    case = KnownVotes(votes, 100, 20.0, DELTA)
    found = curves.not_private_curves(case)
    assert list(found) == [curve.name for curve in CURVES]
    assert max(found["pair"], found["tight"]) <= found["theorem6"] <= found["gaussian"]
    assert found["pair"] < found["sharp"] < found["renyi"] < found["gaussian"]
    assert found["smooth"] < found["fixed"]


def test_the_fitted_epsilon_is_what_the_library_passes() -> None:
    votes = np.array([[90, 6, 4], [85, 10, 5], [70, 20, 10]] * 20)
    case = KnownVotes(votes, 100, 12.0, DELTA)
    plain = curves.gaussian_epsilon(case)
    epsilon = curves.not_private_sharp_epsilon(case, plain)
    assert curves.not_private_chance(case, case.believed, epsilon) >= curves.LIKELY
    assert curves.not_private_chance(case, case.believed, 0.9 * epsilon) < curves.LIKELY
    plan = pate.plan(Budget(round(epsilon, 6), DELTA), n_queries=60, n_teachers=100, n_classes=3, sigma=12, proxy=votes)
    assert "test" in [step.id for step in plan.steps]


def test_a_search_says_when_nothing_is_enough() -> None:
    assert curves.least(lambda x: x >= 3, 0.1, 10) == pytest.approx(3, rel=6e-3)
    assert curves.least(lambda x: True, 0.1, 10) == 0.1
    assert curves.least(lambda x: False, 0.1, 10) == math.inf
    with pytest.raises(ValueError, match="there is no curve purple; there are gaussian"):
        curves.chosen(["purple"])


def test_idx_files(tmp_path: Path) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    for name in ("a", "b.gz"):
        write_idx(tmp_path / name, values)
        assert read_idx(tmp_path / name).tolist() == values.tolist()
    (tmp_path / "c").write_bytes((tmp_path / "a").read_bytes()[:-1])
    with pytest.raises(ValueError, match="too early"):
        read_idx(tmp_path / "c")
    (tmp_path / "d").write_bytes(b"no idx file at all")
    with pytest.raises(ValueError, match="no idx file"):
        read_idx(tmp_path / "d")
    with pytest.raises(FileNotFoundError, match="train-images"):
        mnist(tmp_path)


def test_teachers_have_disjoint_parts_and_learn(folder: Path) -> None:
    images = mnist(folder)
    assert (len(images.train), len(images.test), images.classes) == (600, 240, 3)
    votes = voted(images.train, 20, images.test.rows, 3)
    assert set(votes.sum(axis=1).tolist()) == {20}
    assert float((votes.argmax(axis=1) == images.test.labels).mean()) > 0.85
    asked, public, tested = public_part(images.test)
    assert len(asked) + len(public) + len(tested) == 240
    with pytest.raises(ValueError, match="not enough"):
        voted(images.train, 601, images.test.rows, 3)


def test_shared_parts_differ_from_teacher_to_teacher() -> None:
    seen = []

    class Watching(Pictures):
        def part(self, places: Any) -> Pictures:
            seen.append(tuple(sorted(places.tolist())))
            return super().part(places)

    pixels, labels = pictures(30)
    whole = Watching((pixels.reshape(30, -1) / 255).astype(np.float32), labels.astype(np.int64))
    voted(whole, 3, whole.rows, 3)
    assert sorted(place for part in seen for place in part) == list(range(30))
    seen.clear()
    voted(whole, 8, whole.rows, 3, rows=15)
    assert len(set(seen)) == 8
    assert {len(part) for part in seen} == {15}


def test_kernel_ridge_is_the_minimiser() -> None:
    pixels, labels = pictures(40)
    images = Pictures((pixels.reshape(40, -1) / 255).astype(np.float32), labels.astype(np.int64))
    model = KernelRidge.fit(images, 3, gamma=0.5, ridge=0.1)
    squares = ((images.rows[:, None, :] - images.rows[None, :, :]) ** 2).sum(axis=2)
    system = np.exp(-0.5 * squares) @ model.weights + 0.1 * model.weights
    assert np.abs(system - np.eye(3)[labels]).max() < 1e-4


def test_stored_votes(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", votes=np.array([[3, 1], [0, 4]]), labels=np.array([0, 1]), idx_one=np.array([1]))
    found = stored(tmp_path / "v.npz")
    assert (found.teachers, found.sets["one"].tolist()) == (4, [1])
    (tmp_path / "v.json").write_text(json.dumps({"a": [[4, 0]], "b": [[2, 2], [1, 3]]}))
    assert stored(tmp_path / "v.json").sets["b"].tolist() == [1, 2]
    np.savez(tmp_path / "bad.npz", votes=np.array([[3, 1], [0, 3]]))
    with pytest.raises(ValueError, match="same number of teachers"):
        stored(tmp_path / "bad.npz")
    np.savez(tmp_path / "empty.npz", other=np.zeros(2))
    with pytest.raises(ValueError, match="no array"):
        stored(tmp_path / "empty.npz")


def test_sets_by_consensus() -> None:
    tops = np.array([90, 30, 80, 60, 95])
    assert QuerySelection("", low=0.7).places(tops, 100, 10).tolist() == [0, 2, 4]
    assert QuerySelection("", high=0.5).places(tops, 100, 10).tolist() == [1]
    assert len(QuerySelection("").places(tops, 100, 3)) == 3
    votes = Votes(np.array([[9, 1], [8, 2]]))
    with pytest.raises(ValueError, match="no query is in the set low"):
        selected(votes, ["low"], 5)
    with pytest.raises(ValueError, match="there is no set nothing"):
        selected(votes, ["nothing"], 5)


def test_proposals_come_from_the_belief_alone() -> None:
    good, bad = np.array([[95, 5]] * 40), np.array([[50, 50]] * 40)
    chances = []
    for histograms in (good, bad):
        study = Study(Votes(histograms), {"all": np.arange(40)}, (10.0,), DELTA, 80.0, None, CURVES[:1])
        (point,) = study.run()
        (one,) = point.proposals
        chances.append((one.epsilon, one.chance))
        assert one.epsilon < point.epsilons["gaussian"]
    assert chances[0][0] == chances[1][0]
    assert chances[0][1] >= 0.9
    assert chances[1][1] <= DELTA


def test_the_command(folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / "numbers.json", tmp_path / "curves.svg"]
    result = CliRunner().invoke(
        app,
        ["paper", "pate", "--data", str(folder), "--teachers", "40", "--queries", "30", "--sigmas", "12",
         "--sets", "high", "--curves", "sharp,theorem6,gaussian", "--json", str(files[0]), "--plot", str(files[1])],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    assert "for figures only" in result.output.replace("\n", " ")
    content = json.loads(files[0].read_text())
    assert [(point["set"], point["sigma"]) for point in content["points"]] == [("high", 12)]
    assert list(content["points"][0]["epsilons"]) == ["gaussian", "theorem6", "sharp"]
    assert [one["belief"] for one in content["points"][0]["proposals"]] == ["no belief", "public proxy"]
    assert b"NOT PRIVATE" in files[1].read_bytes()


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["paper", "pate"])
    assert (result.exit_code, "--data" in result.output) == (1, True)
    np.savez(tmp_path / "v.npz", votes=np.array([[30, 10], [38, 2]]))
    arguments = ["paper", "pate", "--votes", str(tmp_path / "v.npz"), "--sets", "highest,low"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "no query is in the set low" in result.output
