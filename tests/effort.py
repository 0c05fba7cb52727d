"""How often a test repeats itself: enough to see a mistake in ``make test``, more in ``make slow``, all at night."""

import os

import pytest

repeated = pytest.mark.repeated


def often(few: int, many: int, night: int | None = None) -> int:
    """The second number in ``make slow``, the third in ``make nightly``, where tests marked ``repeated`` run again."""
    night = many if night is None else night
    return {"slow": many, "nightly": night}.get(os.environ.get("SNUGDP_EFFORT", ""), few)
