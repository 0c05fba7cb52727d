"""How often a test repeats itself: enough to see a mistake in ``make test``, more in ``make slow``, all at night."""

import os

import pytest

repeated = pytest.mark.repeated
EFFORT = os.environ.get("SNUGDP_EFFORT", "")
SLOW = EFFORT == "slow"


def often(few: int, many: int, night: int | None = None) -> int:
    """The second number in ``make slow``, the third in ``make nightly``, where tests marked ``repeated`` run again."""
    night = many if night is None else night
    return {"slow": many, "nightly": night}.get(EFFORT, few)


def sampled(every: int, later: int = 1) -> pytest.MarkDecorator:
    """Of a test's cases every so manyth in ``make test``, of the others every ``later``th in ``make slow``.

    Of a product of lists, a step that shares no factor with the length of the inner one leaves out none of its members.
    A test that does more in ``make slow`` is marked ``repeated`` as well: then its cases run in both.
    """
    return pytest.mark.sampled(often(every, later, 1), before=every)
