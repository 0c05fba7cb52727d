"""Benchmarks, the paper's experiments and the audit of our own noise: CI runs them, ``make test`` does not."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LATER = tuple(str(HERE / name) for name in ("bench", "paper", "audit/laws", "audit/test_freshness.py"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(LATER):
            item.add_marker(pytest.mark.slow)
