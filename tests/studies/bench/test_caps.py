"""The benchmark of caps: errors in closed form agree with draws, and every row has its numbers."""

import numpy as np

from snugdp import Budget
from snugdp_studies.bench import caps


def test_every_row_has_its_numbers() -> None:
    first = next(caps.run(people=200, tables=1))
    assert (first.shape, first.cells, first.noise) == ("Zipf, 2.2", 1, "pure")
    assert first.private >= 0.9
    assert min(first.largest, first.ten, first.kept, first.bounded) > 0.9
    assert "OpenDP" in dict(caps.rivals(Budget(1, "1e-6"))) or not first.others


def test_errors_in_closed_form_are_means_of_draws() -> None:
    lost, sigma = np.array([-3.0, 0.0, 10.0]), 4.0
    draws = np.random.default_rng(1).normal(0, sigma, (200_000, 1))
    assert abs(caps._gaussian(lost, sigma) - np.abs(lost + draws).mean()) < 0.05


def test_two_tables_that_look_alike_leave_a_choice_between_them() -> None:
    """Half of the regret where nothing tells them apart, less and less where more does, none in the end."""
    first, second = np.array([1.0, 1.2, 2.0]), np.array([3.0, 1.4, 1.0])
    found = [caps.two_points(first, second, moved) for moved in (0.0, 0.5, 1.0, 3.0, 12.0)]
    assert found == sorted(found, reverse=True)
    assert abs(found[0] - 4 / 3) < 0.01
    assert abs(found[-1] - 1) < 1e-3
