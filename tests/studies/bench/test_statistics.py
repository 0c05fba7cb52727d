"""The benchmark of statistics: its references are what they say, and its tables are printed."""

import math

import numpy as np
import pytest

from snugdp_studies.bench.statistics import columns, keys, means, quantiles, speed
from tests.cli.people import run


def test_the_float_mechanism_has_the_error_that_its_draws_have() -> None:
    column, q, rate = columns.normal(50), 0.3, 0.4
    rows = np.sort(np.clip(column.values, *column.bounds))
    ends = np.concatenate([[column.lower], rows, [column.upper]])
    weights = np.diff(ends) * np.exp(-rate * np.abs(np.arange(51) - q * 50))
    generator = np.random.default_rng(1)
    at = generator.choice(51, 200_000, p=weights / weights.sum())
    drawn = ends[at] + generator.random(200_000) * np.diff(ends)[at]
    assert quantiles.float_error(column, q, rate, 45_000.0) == pytest.approx(np.mean(np.abs(drawn - 45_000)), rel=0.02)


def test_ours_is_the_float_mechanism_on_many_rows_and_better_on_heaps() -> None:
    for one in quantiles.single(8, 0, [columns.normal(2000), columns.ages(2000)]):
        ratio = one.means["snugdp"] / one.means["float, same constant"]
        assert ratio < (1.05 if one.column.startswith("normal") else 2)
        assert one.doubt < 7


def test_the_readme_example_meets_its_goal() -> None:
    near, off = quantiles.readme_example(40)
    assert near >= 0.95
    assert off < 2


def test_several_quantiles_beat_equal_parts() -> None:
    for one in quantiles.several(6, [columns.lognormal(5000)]):
        assert one.means["snugdp"] < one.means["float, equal parts"]


def test_loose_bounds_cost_means_little() -> None:
    (found,) = means.run(12, [columns.lognormal(20_000)])
    assert found.means["snugdp"][2] < 5 * found.hindsight
    assert found.means["snugdp"][2] < found.means["Laplace, count and sum"][2] / 50


def test_keys_are_those_of_the_best_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "BUDGETS", ((1, 1.0, 1e-6), (4, 1.0, 1e-6)))
    one, several = keys.run(2, rows=20_000)
    best = one.expected["optimal for one key"]
    assert abs(one.shown - best) < 6 * math.sqrt(best)
    assert best > max(one.expected["Laplace threshold"], one.expected["Gaussian threshold"])
    assert several.shown > several.expected["Laplace threshold"]


def test_times_are_taken_in_turn() -> None:
    found = speed.run(values=20_000, rows=20_000, repeats=1)
    assert [one.name for one in found][:2] == ["numpy.sort", "median"]
    assert found[0].relative == 1


def test_the_tables_are_printed() -> None:
    printed = run("bench", "statistics", "--parts", "means", "--runs", "2").output
    assert "best bound in hindsight" in printed.replace("\n", " ") or "hindsight" in printed
    assert "there are quantiles" in run("bench", "statistics", "--parts", "modes", code=1).output
