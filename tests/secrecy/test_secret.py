"""A secret cannot be shown, stored, compared or branched on, and a failure on it says nothing."""

import copy
import logging
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from snugdp.secrecy.secret import PrivateComputationError, RehearsalEnded, Secret, unwrap


@pytest.mark.parametrize(
    "use",
    [
        bool, len, list, float, int, hash, copy.copy, copy.deepcopy, pickle.dumps,
        lambda s: s == 41, lambda s: s != 41, lambda s: s < 41, lambda s: 41 in s, lambda s: [1, 2][s],
        lambda s: 1 if s else 2,
    ],
)  # fmt: skip
def test_uses_that_would_leak_are_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as caught:
        use(Secret(41))
    assert "41" not in str(caught.value)


def test_text_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(987654)
    with caplog.at_level(logging.INFO):
        logging.getLogger().info("value %s %r", secret, secret)
    assert "987654" not in f"{secret} {secret!r} {secret:>10} {[secret]} {vars} {caplog.text}"


def test_functions_apply_inside() -> None:
    assert unwrap(Secret([1, 2, 3]).map(sum)) == 6


def test_a_failure_inside_carries_no_values() -> None:
    hidden = Secret("".join(["987", "654", "x"]))
    with pytest.raises(PrivateComputationError) as caught:
        hidden.map(int)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "987654" not in "".join(traceback.format_exception(error))


def test_an_error_does_not_choose_its_own_class() -> None:
    class DisguisedError(ValueError):
        __class__: Any = property(lambda _: RehearsalEnded)

    def disguised(value: str) -> None:
        raise DisguisedError(value)

    assert isinstance(DisguisedError(), RehearsalEnded)
    with pytest.raises(PrivateComputationError):
        Secret("987654").map(disguised)
