"""A plain import stays light: what only some people need is loaded when they need it."""

import statistics
import subprocess
import sys
from importlib import import_module

import pytest

from tests.test_house import MODULES

HEAVY = ("polars", "pyspark", "duckdb", "psycopg", "sqlite3", "typer", "jinja2", "matplotlib")
NUMERIC = ("rich", "numpy", "pandas", "pyarrow", "scipy", "sklearn")
# Neither the engines of tables in files, nor a ledger on disk, nor the accounting of selection.
OWN = (
    "snugdp.ledger.book", "snugdp.ledger.composition.limits", "snugdp.tables.sources.files", "snugdp.audit",
    "snugdp.report", "snugdp.mechanisms.selection.select", "snugdp.accounting.selection.calibrate", "snugdp.cli",
)  # fmt: skip
NAMES = ("Budget", "median", "LinearRegression", "LogisticRegression")
CODE = f"""
import sys
import snugdp
print("snugdp", *(name for name in {HEAVY + NUMERIC} if name in sys.modules))
for name in {NAMES}:
    getattr(snugdp, name)
    print(name, *(module for module in {HEAVY + OWN} if module in sys.modules))
"""


@pytest.mark.slow
def test_names_load_what_they_need_and_no_more() -> None:
    """In a process of its own; the first name after which a module is loaded is the one that loads it."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["snugdp", *NAMES]


@pytest.mark.parametrize("package", ["snugdp", "snugdp.ledger", "snugdp.accounting.selection", "snugdp.tables.sources"])
def test_every_public_name_is_found(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_every_module_can_be_imported() -> None:
    for module in MODULES:
        import_module(module)


def test_the_import_takes_next_to_no_time() -> None:
    """Less than half a second of this process's own time, all that it loads included."""
    code = "import time; start = time.process_time(); import snugdp; print(time.process_time() - start)"
    took = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    assert statistics.median(took) < 0.5
