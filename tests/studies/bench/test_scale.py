"""The benchmark of scale: what its numbers are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from snugdp_studies.bench.scale import show
from snugdp_studies.bench.scale.cluster import Release, SparkCosts, family_seconds, planned
from snugdp_studies.bench.scale.process import JobSpent
from snugdp_studies.bench.scale.run import MODELS, JobPair, growth
from snugdp_studies.bench.scale.work import JOBS, gram, newton, robust, write_rows, write_values


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scale")
    write_rows(folder / "rows.parquet", 3000, 2)
    write_values(folder / "values.parquet", 100)
    return {"rows": folder / "rows.parquet", "values": folder / "values.parquet"}


def test_the_work_without_privacy_is_what_it_says(files: dict[str, Path]) -> None:
    assert np.allclose(newton(files["rows"]), [1, -1, 0], atol=0.2)  # slopes and intercept that labels were made with
    assert np.allclose(robust(files["rows"])[:2], [0.5, -0.5], atol=0.05)
    assert np.allclose(np.diag(gram(files["rows"]))[:2], 1000, rtol=0.1)


def test_every_job_runs_on_its_file(files: dict[str, Path]) -> None:
    for name, job in JOBS.items():
        assert job(files["values" if "median" in name else "rows"]) is not None


def test_ratios_growth_and_plans() -> None:
    pairs = [
        JobPair(MODELS[0], "Parquet", rows, JobSpent(cpu, cpu, 100.0), JobSpent(1.0, 1.0, 50.0))
        for rows, cpu in ((10, 2.0), (100, 12.0))
    ]
    assert pairs[1].ratio == 12.0
    assert growth(pairs) == {"logistic": (10.0, 6.0, 1.0)}
    costs = SparkCosts(100, 10, 1.0, 0.5, 1e-6, (Release("mean", 1, 2.0), Release("fit", 8, 9.0)))
    one, fit = planned(costs, machines=2, cores=5, rows=10**9)
    assert one.wall_s == pytest.approx(1 + 100 + 4 * 0.5)
    assert fit.wall_s == 8 * one.wall_s
    assert fit.core_hours == pytest.approx(8 * (1000 + 20) / 3600)
    assert family_seconds() > 0


@pytest.mark.slow
def test_the_tables_are_printed(tmp_path: Path) -> None:
    console = Console(width=200, record=True)
    show.show(console, ["models", "gram", "csv", "median"], show.ScaleSizes([2000, 4000], [2000], 1), tmp_path)
    printed = console.export_text()
    for name in ("LogisticRegression", "Newton's method in numpy", "growth", "CSV", "polars' median"):
        assert name in printed
