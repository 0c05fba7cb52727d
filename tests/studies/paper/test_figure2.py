"""Figure 2: the tables of the calibrated votes, the printed curves, and the files."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp.noise import Simulation
from snugdp_studies.paper import figure2
from snugdp_studies.paper.figure2 import CALIBRATED, MNIST, Figure2Plan, printed_curves, reference_curves
from snugdp_studies.paper.pate.curves import KnownVotes, not_private_curves
from snugdp_studies.paper.pate.data import Votes, stored
from tests.cli.people import run
from tests.real_data import real_data
from tests.vectors.pate import histograms

DELTA = 1e-5
# Votes and noise; epsilon by the exact Gaussian, Theorem 6, the closed form, distance tests with noise of 6 and of 8.
TABLE = (
    ("high_200", 13.7858, 6.7759, 0.1290, 0.1289, 0.5953, 0.4409),
    ("high_200", 25.8760, 3.2565, 0.1449, 0.1372, 0.5985, 0.4700),
    ("high_200", 48.5693, 1.6059, 0.2352, 0.2185, 0.7190, 0.6847),
    ("low_200", 13.7858, 6.7759, 0.2501, 0.2394, 0.7272, 0.8105),
    ("low_200", 25.8760, 3.2565, 0.2676, 0.2525, 0.8291, 0.9845),
    ("low_200", 48.5693, 1.6059, 0.5291, 0.4730, 1.3494, 1.4520),
)
SMALL = Figure2Plan(sigmas=(30.29,), calibrated_sigmas=(30.29,), curves=("gaussian", "theorem6", "printed", "fixed"))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_calibrated_votes(row: tuple[Any, ...]) -> None:
    name, sigma, *expected = row
    case = KnownVotes(histograms(name), 400, sigma, DELTA)
    found = not_private_curves(case, ["gaussian"]) | reference_curves(case)
    values = [found[curve] for curve in ("gaussian", "theorem6_grid", "closed", "distance_6", "distance_8")]
    assert values == pytest.approx(expected, abs=5.1e-5)


def test_the_published_curves() -> None:
    """The Gaussian curve is that of T = 100, and order 22 puts a floor under the data-dependent one."""
    found = printed_curves(KnownVotes(histograms("high_200"), 400, 13.786, DELTA))
    assert found["gaussian_drawn"] == pytest.approx(5.44872, abs=2e-4)
    assert found["theorem6_order22"] == pytest.approx(0.58124, abs=1e-3)
    assert found["gaussian_printed"] == pytest.approx(8.014, abs=1e-3)


def test_what_is_honest_is_never_below_what_is_exact() -> None:
    case = KnownVotes(histograms("high_200"), 400, 30.29, DELTA)
    found = not_private_curves(case, ["gaussian", "pair", "renyi"]) | reference_curves(case)
    assert (
        found["pair"] < found["closed"] < found["renyi"] < found["gaussian"] < printed_curves(case)["gaussian_printed"]
    )
    assert found["renyi"] <= min(found["distance_6"], found["distance_8"])  # tighter losses, more noises to choose from


def test_accuracy_is_that_of_the_noisy_labels() -> None:
    votes = np.array([[20, 15, 5], [14, 13, 13]])
    case = KnownVotes(votes, 40, 4.0, DELTA)
    labels = np.array([0, 2])
    noise = Simulation(1)
    from fractions import Fraction

    from snugdp.noise import Gaussian
    from snugdp.secrecy.secret import Secret

    draws = np.array(noise.add_integers(Secret([0] * 60_000), Gaussian(Fraction(4096)))) / 1024  # deviation 4
    winners = (votes[:, None, :] + draws.reshape(2, -1, 3)).argmax(axis=2)
    assert figure2.accuracy(case, labels) == pytest.approx((winners == labels[:, None]).mean(), abs=0.02)
    assert figure2.accuracy(case, None) is None


def made_up() -> Votes:
    rows = np.array([[300, 60, 40], [390, 6, 4], [140, 132, 128], [250, 100, 50]] * 3)
    return Votes(rows, np.zeros(12, dtype=np.int64))


def test_sets_come_with_the_votes_or_by_them() -> None:
    found = figure2.sets_of(made_up(), MNIST, 200)
    assert [panel.name for panel in found] == ["high", "low", "authors_high", "authors_low"]
    assert [len(places) for places in found.values()] == [9, 3, 6, 6]
    own = Votes(made_up().histograms, None, {"low150": np.array([1])})
    assert figure2.sets_of(own, MNIST, 200)[MNIST[1]].tolist() == [1]
    assert not figure2.sets_of(made_up(), CALIBRATED, 200)
    sure = Votes(np.array([[400, 0, 0]] * 3))
    assert [panel.name for panel in figure2.sets_of(sure, MNIST, 200)] == ["high", "authors_high"]


@pytest.mark.slow
def test_the_command_and_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    votes = made_up()
    np.savez(tmp_path / "mnist_votes_400.npz", votes=votes.histograms, labels=np.zeros(12, dtype=np.int64))
    calibrated = {name: histograms(name)[:20].tolist() for name in ("high_200", "low_200")}
    (tmp_path / "pate_surrogate_votes.json").write_text(json.dumps(calibrated))
    monkeypatch.setattr(figure2, "QUICK", SMALL)
    out = tmp_path / "out"
    answer = run("paper", "figure2", "--quick", "--json", "--data", tmp_path, "--out", out)
    names = {Path(name).name for name in json.loads(answer.stdout)["files"]["figure2"]}
    pictures = {f"figure2_{kind}.{end}" for kind in ("mnist", "calibrated") for end in ("png", "svg")}
    assert names == {"figure2.csv", "figure2.json", *pictures}
    with (out / "figure2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["set"] for row in rows}) == 6
    assert all("NOT PRIVATE" in row["status"] for row in rows if row["version"] == "as printed")
    assert {row["curve"] for row in rows if "NOT PRIVATE" not in row["status"]} == {
        "gaussian", "fixed", "distance_6", "distance_8",
    }  # fmt: skip
    assert b"NOT PRIVATE" in (out / "figure2_mnist.svg").read_bytes()


def test_votes_are_trained_where_there_are_pictures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from .test_pate import write_idx

    digits = np.arange(4000) % 2
    pixels = np.zeros((4000, 2, 2), dtype=np.uint8)
    pixels[digits == 1] = 250
    pixels[:, 0, 0] = np.arange(4000) % 100
    (tmp_path / "mnist").mkdir()
    for part in ("train", "t10k"):
        size = 4000 if part == "train" else 60
        write_idx(tmp_path / "mnist" / f"{part}-images-idx3-ubyte", pixels[:size])
        write_idx(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte", digits[:size].astype(np.uint8))
    drawn: list[str] = []

    def picture(folder: Path, name: str, *_: Any) -> list[Path]:
        drawn.append(name)
        return []

    monkeypatch.setattr(figure2, "QUICK", SMALL)
    monkeypatch.setattr(figure2, "_picture", picture)
    run("paper", "figure2", "--quick", "--data", tmp_path, "--out", tmp_path / "out")
    assert drawn == ["figure2_mnist"]


@pytest.mark.nightly
def test_the_real_votes() -> None:
    votes = stored(real_data("mnist_votes_400.npz"))
    plan = Figure2Plan(curves=("gaussian", "theorem6", "tight", "renyi"))
    known = {  # sigma 21.0: exact Gaussian, Theorem 6, J, distance test, accuracy
        "high": (4.142, 0.892, 0.762, 1.358, 0.916),
        "low": (2.644, 2.844, 2.643, 2.871, 0.373),
        "authors_high": (4.142, 0.161, 0.156, 0.491, 0.955),
    }
    sets = {panel: places for panel, places in figure2.sets_of(votes, MNIST, 200).items() if panel.name in known}
    for point in figure2.run(votes, sets, (20.977,), plan):
        exact, theorem6, tight, distance, accuracy = known[point.panel.name]
        assert point.epsilons["gaussian"] == pytest.approx(exact, abs=6e-4)
        assert point.epsilons["theorem6"] == pytest.approx(theorem6, rel=5e-3)
        assert 0.92 <= point.epsilons["tight"] / tight <= 1.01  # our table of the optimum is finer
        assert 0.95 <= point.epsilons["renyi"] / distance <= 1.02
        assert point.accuracy == pytest.approx(accuracy, abs=0.01)
