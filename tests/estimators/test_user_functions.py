"""Functions of users on private values: what they warn of or raise does not get out, in whatever way they insist."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Budget, Refused, Statistic
from snugdp.noise import Laplace
from snugdp.secrecy.secret import PrivateComputationError, Secret, unwrap

CANARY = 4217.25


class Panic(BaseException):
    """As native libraries raise it."""


def overflow(value: float) -> float:
    return float(np.float64(value) * np.array([1e308, 0.0])[0] + np.log(np.array([-value]))[0])


def warn(value: float) -> float:
    warnings.warn(f"saw {value}", stacklevel=1)
    return value


def insist(value: float) -> float:
    warnings.simplefilter("always")
    warnings.warn(f"saw {value}", stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn(f"saw {value}", stacklevel=1)
        except UserWarning:
            return value
    raise AssertionError


def raising(error: Any) -> Callable[[float], float]:
    def function(value: float) -> float:
        raise error(f"saw {value}")

    return function


@pytest.mark.parametrize("action", ["always", "error", "default"])
@pytest.mark.parametrize("function", [overflow, warn, insist])
def test_warnings_stay_inside(function: Any, action: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as said, np.errstate(all="print" if action == "always" else "warn"):
        warnings.simplefilter(action)
        before = list(warnings.filters)
        Secret(CANARY).map(function)
        Secret(CANARY).map(lambda value: Secret(value).map(function)).map(lambda _: warn(1.0))
        assert warnings.filters == before
        assert not said
        if action != "error":
            warnings.warn("afterwards", stacklevel=1)
            assert len(said) == 1
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize(
    "error", [ValueError, SystemExit, GeneratorExit, StopIteration, Panic, MemoryError, UserWarning]
)
def test_every_exception_becomes_one_that_says_nothing(error: Any) -> None:
    before = list(warnings.filters)
    with pytest.raises(PrivateComputationError) as caught:
        Secret(CANARY).map(raising(error))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "4217" not in "".join(traceback.format_exception(caught.value))
    assert warnings.filters == before


def test_an_interrupt_goes_on_and_says_nothing() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        Secret(CANARY).map(raising(KeyboardInterrupt))
    assert caught.value.args == ()
    assert caught.value.__context__ is None
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2  # no frame of the function


def test_threads_that_overlap_leave_the_filters_as_they_were() -> None:
    before = list(warnings.filters)
    inside = threading.Barrier(3, timeout=30)
    gates = [threading.Event() for _ in range(3)]
    found: list[Any] = []

    def work(place: int) -> None:
        def function(value: float) -> float:
            inside.wait()
            gates[place].wait(30)  # they leave in the order in which they came, which is the wrong one
            return warn(value)

        found.append(unwrap(Secret(CANARY).map(function)))
        if place < 2:
            gates[place + 1].set()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    gates[0].set()
    for thread in threads:
        thread.join(60)
    assert found == [CANARY] * 3
    assert warnings.filters == before
    assert warnings.showwarning is sys.modules["warnings"].showwarning


def test_a_release_of_ones_own_is_quiet_and_refuses_what_fails() -> None:
    total: Statistic[list[float]] = Statistic("total", lambda rows: overflow(sum(rows)), 1, "upper", (0, 1000))

    def drawn(function: Any) -> Any:
        return lambda data, noise: float(noise.add(data.map(function), Laplace(8), grid=0))

    def released(statistic: Any, draw: Any) -> Any:
        algorithm = snugdp.from_statistics(
            loss=lambda total: 0.0, statistics=(statistic,), draw=draw, budget=Budget(1, 1e-6)
        )
        return algorithm([CANARY])

    fine: Statistic[list[float]] = Statistic("total", lambda rows: warn(1.0), 1, "upper", (0, 1000))
    assert released(total, drawn(len)).receipt is not None
    assert not released(fine, drawn(lambda rows: int(warn(2.0)))).refused
    assert isinstance(released(fine, drawn(raising(SystemExit))), Refused)
