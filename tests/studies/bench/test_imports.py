"""What an import costs is measured in processes of their own."""

from __future__ import annotations

from snugdp_studies.bench.imports import run


def test_imports_are_measured() -> None:
    light, heavy = run(("Budget", "LinearRegression"), repeats=1)
    assert 0 < light.min_s <= light.median_s
    assert 1 < light.own < heavy.own
    assert light.modules <= heavy.modules
