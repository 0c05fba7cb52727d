"""The benchmark of principal components: its tables, what is compared, and that the goals are met."""

from functools import partial

import numpy as np
import pytest

from snugdp_studies.bench import pca
from snugdp_studies.bench.pca import CASES, PCACell, sample, summaries
from tests.cli.people import run


@pytest.mark.parametrize("name", ["digits", "flat, 2,000 rows"])
def test_tables_are_what_they_are_called(name: str) -> None:
    table = sample(name)
    assert np.allclose(np.linalg.norm(table.rows, axis=1), 1)
    assert table.spectrum.sum() == pytest.approx(len(table.rows))
    assert table.lost(np.linalg.eigh(table.matrix)[1][:, ::-1][:, :3]) == pytest.approx(0, abs=1e-8)
    assert table.lost(np.linalg.eigh(table.matrix)[1][:, :3]) > 100
    if name == "digits":
        assert [round(table.gap(k)) for k in CASES[name]] == [1156, 13, 15]
    assert "secret" not in repr(table)


@pytest.mark.slow
def test_the_goals_are_met() -> None:
    """Where a gap is large, and where there is none: a few cells with enough draws, seeded."""
    large = list(pca.run(40, (1.0,), ("crossing", "projector"), ["flat"]))
    assert all(cell.used == 1 for cell in large)
    assert all(cell.ratio < 0.65 for cell in large)
    graded = list(pca.run(40, (2.0,), ("crossing", "projector"), ["graded 3:2:1"]))
    assert graded[0].ratio < 0.65  # for every spectrum
    assert graded[1].used == 0
    assert graded[1].ratio < 1.2  # 1.06 but for the noise of 40 draws
    assert all(0.99 < cell.captured < 1 for cell in large + graded)


def test_numbers_of_components_are_chosen() -> None:
    (cell,) = pca.chosen(4, (4.0,), ("projector",), ["flat, 2,000 rows"])
    assert (cell.k, cell.used) == (3, 1)


def test_summaries_average_both_ends() -> None:
    cells = [
        PCACell("t", 1, 5.0, 1.0, "new", 1.0, ratio, used, 0.9)
        for ratio, used in ((1.1, 0), (1.0, 0), (0.5, 1), (0.7, 0.5))
    ]
    (found,) = summaries([*cells, PCACell("t", 1, 5.0, 1.0, "gauss", 1.0, 1.0, 0, 0.9)])
    assert found.fallback == pytest.approx(1.05)
    assert (found.large, found.worst) == (0.5, 1.1)
    assert summaries([PCACell("t", 1, 5.0, 1.0, "new", 1.0, 0.5, 1, 0.9)])[0].fallback is None


def test_a_run_from_the_command_line() -> None:
    invoke = partial(run, "bench", "pca", "--tables", env={"COLUMNS": "200"})
    result = invoke("flat, 2,000 rows", "--draws", 2, "--epsilons", "2", "--rows", 2000, "--repeats", 1)
    for words in ("NOT PRIVATE", "where it falls back", "chosen in private", "scikit-learn PCA", "Goal"):
        assert words in result.output
    wrong = invoke("bikes", code=1)
    assert "no table bikes" in " ".join(wrong.output.split())
    assert "Traceback" not in wrong.output


def test_speed_compares_with_scikit_learn() -> None:
    rows = pca.fit_times(3000, 4, repeats=1)
    assert [row.name for row in rows][:3] == ["scikit-learn PCA", "crossing", "gauss"]
    assert rows[0].relative == 1
