"""What an import costs is measured in processes of their own."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stdout

import pytest

from snugdp_studies.bench.imports import run


def test_what_a_process_prints_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(command: list[str], text: bool) -> str:
        with redirect_stdout(io.StringIO()) as printed:
            exec(command[2], {})
        return printed.getvalue()

    monkeypatch.setattr(subprocess, "check_output", here)
    (one,) = run(("Budget",), repeats=2)
    assert (one.name, one.modules) == ("Budget", 0)  # all is loaded
    assert 0 <= one.min_s <= one.median_s
    assert one.own > 1


@pytest.mark.slow
def test_imports_are_measured() -> None:
    light, heavy = run(("Budget", "LinearRegression"), repeats=1)
    assert 0 < light.min_s <= light.median_s
    assert 1 < light.own < heavy.own
    assert light.modules <= heavy.modules
