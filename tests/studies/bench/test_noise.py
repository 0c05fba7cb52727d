"""The side-by-side timing runs, and says what is missing when it cannot."""

from __future__ import annotations

import sys

import pytest

from snugdp_studies.bench.noise import run


def test_every_sampler_is_timed_and_ours_is_faster_than_opendp() -> None:
    pytest.importorskip("opendp.prelude")
    rows = run(repeats=1)
    assert rows[0].name == "snugdp, exact rounded Gaussian"
    assert rows[0].relative == 1.0
    assert all(0 < row.min_s <= row.median_s for row in rows)
    assert all(row.relative > 3 for row in rows if row.name.startswith("OpenDP"))


def test_without_opendp_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match="pip install opendp"):
        run(repeats=1)
    with pytest.raises(ValueError, match="repeats"):
        run(repeats=0)
