"""What every run reports: the vectors whose part of the product is still to be built."""

from __future__ import annotations

from collections import Counter

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
