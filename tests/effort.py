"""How often a test repeats itself: enough to see a mistake in ``make test``, more in ``make slow``, all at night."""

import os

import pytest

repeated = pytest.mark.repeated
EFFORT = os.environ.get("SNUGDP_EFFORT", "")


def often(few: int, many: int, night: int | None = None) -> int:
    """The second number in ``make slow``, the third in ``make nightly``, where tests marked ``repeated`` run again."""
    night = many if night is None else night
    return {"slow": many, "nightly": night}.get(EFFORT, few)


def sampled(every: int, later: int | None = None) -> pytest.MarkDecorator:
    """Of a test's cases every so manyth in ``make test``, and all at night.

    ``later``: every so manyth of those others in ``make slow``. A test that is marked ``repeated`` or ``slow`` as well
    has every third of all its cases there, if not said otherwise. Of a product of lists, a step that shares no factor
    with the length of the inner one leaves out none of its members.
    """
    return pytest.mark.sampled(every, later=later)
