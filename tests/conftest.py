"""For every run: the vectors that are still to be built, what is slow, and another order if one is asked for."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(
        reason.split("vectors not built yet: ", 1)[1].split(",", 1)[0]
        for report in terminalreporter.stats.get("skipped", [])
        if "vectors not built yet: " in (reason := str(report.longrepr))
    )
    for name, count in sorted(skipped.items()):
        terminalreporter.write_line(f"vectors: {name}: {count} cases belong to a part that is not built yet")


# Benchmarks, figures and pages of ten seconds and more: `make slow` runs them. No test of a guarantee is here.
SLOW = (
    "test_figure1.py::test_the_real_tables",
    "test_figure1.py::test_a_run_is_repeatable_and_counts_its_scores",
    "test_figure2.py::test_the_command_and_its_files",
    "test_pca_bench.py::test_the_goals_are_met",
    "test_pate_bench.py::test_times",
    "test_regression_bench.py::test_runs_repeat_themselves_in_any_number_of_processes",
    "test_classification_bench.py::test_runs_repeat_themselves_in_any_number_of_processes",
    "test_audit_cli.py::test_the_page_stands_alone",
    "test_figure3.py::test_files",
    "paper/test_pate.py::test_curves_are_in_order",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.endswith(SLOW):
            item.add_marker("slow")
    if seed := os.environ.get("SNUGDP_SHUFFLE"):
        _shuffle(items, Random(seed))


def _shuffle(items: list[pytest.Item], order: Random) -> None:
    """The files in any order, and the tests of each; files stay whole, as some start a server or a session."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    parts = list(files.values())
    order.shuffle(parts)
    for part in parts:
        order.shuffle(part)
    items[:] = [item for part in parts for item in part]
