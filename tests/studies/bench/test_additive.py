"""The contest of curves, lines and DP-EBM."""

import numpy as np
from typer.testing import CliRunner

from snugdp_studies.bench.additive import KINDS, PEER, CurveSetting, contenders, fit_times, run
from snugdp_studies.cli.bench import app


def test_curves_win_on_waves_and_lose_little_on_lines() -> None:
    asked = CurveSetting("synthetic", ["waves", "lines"], [4.0], rows=1500, splits=1)
    waves, lines = (found.scores for found in run(asked))
    assert waves["curves"] > waves["line"] + 0.2
    assert lines["line"] > lines["curves"] > lines["line"] - 0.2


def test_labels_have_curves_as_well() -> None:
    asked = CurveSetting("synthetic", ["waves"], [4.0], rows=1500, splits=1, labels=True)
    (waves,) = (found.scores for found in run(asked))
    assert waves["curves"] < waves["line"] - 0.05


def test_made_up_tables_have_a_signal() -> None:
    for made in KINDS.values():
        X, y = made(500, np.random.default_rng(1))
        assert X.shape == (500, 6)
        assert np.isfinite(y).all()
        assert np.var(y) > 0.5


def test_fits_are_timed_beside_splines() -> None:
    spline, own = fit_times(1000, columns=2, repeats=1)
    assert spline.relative == 1
    assert own.median_s > 0


def test_the_command() -> None:
    given = ["additive", "--datasets", "lines", "--epsilons", "4", "--rows", "500", "--splits", "1"]
    said = CliRunner().invoke(app, given)
    assert said.exit_code == 0
    assert "lines" in said.stdout
    assert ("left out" in said.stdout) == (PEER not in contenders())
    assert CliRunner().invoke(app, ["additive", "--datasets", "nothing"]).exit_code == 1
