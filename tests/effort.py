"""How often a test repeats itself: enough to see a mistake in ``make test``, as often as promised in ``make slow``."""

from __future__ import annotations

import os

import pytest

repeated = pytest.mark.repeated


def often(few: int, many: int) -> int:
    """The second number where ``make slow`` runs the tests that are marked as ``repeated``."""
    return many if os.environ.get("SNUGDP_SLOW") else few
