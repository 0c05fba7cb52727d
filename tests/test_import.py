"""A plain import stays light: what only some people need is loaded when they need it."""

from __future__ import annotations

import statistics
import subprocess
import sys


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    heavy = ("polars", "pandas", "pyarrow", "pyspark", "duckdb", "scipy", "sklearn", "psycopg")
    code = f"import sys, snugdp; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"


def test_the_import_takes_next_to_no_time() -> None:
    """Less than half a second of this process's own time, all that it loads included."""
    code = "import time; start = time.process_time(); import snugdp; print(time.process_time() - start)"
    took = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    assert statistics.median(took) < 0.5
