"""Benchmarks, the paper's experiments and the audit of our own noise: CI runs them, ``make test`` does not."""

from pathlib import Path

import pytest

LATER = ("bench", "paper", "audit/laws", "audit/test_freshness.py")
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(HERE / name) for name in LATER):
            item.add_marker(pytest.mark.slow)
