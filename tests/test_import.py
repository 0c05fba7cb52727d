"""A plain import stays light: what only some people need is loaded when they need it."""

from __future__ import annotations

import subprocess
import sys


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    heavy = ("polars", "pandas", "pyarrow", "pyspark", "duckdb", "scipy", "sklearn")
    code = f"import sys, snugdp; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"
