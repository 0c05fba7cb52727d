"""The proved arithmetic: rounding outward, threads, forks, precision put back."""

import math
import os
import threading
import time
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from snugdp.accounting import gaussian
from snugdp.numerics import balls
from snugdp.numerics.rationals import rational, readings, typed_down, typed_up
from tests.ledger.faults import in_threads


def test_precision_is_put_back_even_after_an_error() -> None:
    before = ctx.prec
    with balls.precision(300):
        assert ctx.prec == 300
        with balls.precision(700):
            assert ctx.prec == 700
        assert ctx.prec == 300
    with pytest.raises(ZeroDivisionError), balls.precision(500):
        raise ZeroDivisionError
    assert ctx.prec == before


def test_threads_do_not_disturb_each_other() -> None:
    expected = gaussian.delta("1e-20", "1e-20"), gaussian.mu(1, "1e-6")

    def work(_: int) -> None:
        for _ in range(20):
            assert (gaussian.delta("1e-20", "1e-20"), gaussian.mu(1, "1e-6")) == expected

    assert in_threads(4, work) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_its_own_lock_and_the_usual_precision() -> None:
    """The fork waits for the thread that has changed the precision; afterwards any thread of the child may compute."""
    inside, before = threading.Event(), ctx.prec

    def hold() -> None:
        with balls.precision(5000):
            inside.set()
            time.sleep(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        found: list[float] = []
        worker = threading.Thread(target=lambda: found.append(gaussian.delta(1, 1)))
        worker.start()
        worker.join(20)
        os._exit(0 if found and found[0] > 0.12 and ctx.prec == before else 1)
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@given(st.fractions())
def test_both_readings_of_a_rounded_number_are_safe(value: Fraction) -> None:
    assert min(readings(typed_up(value))) >= value >= max(readings(typed_down(value)))
    assert typed_up(value) - typed_down(value) <= 4 * math.ulp(float(value))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_typed_as_it_prints_stays_itself(value: float) -> None:
    assert rational(value, "x") == Fraction(repr(value))


def test_ends_of_a_ball() -> None:
    assert balls.upper(arb((1, -5000))) == math.ulp(0.0)
    assert balls.lower(arb((1, -5000))) == 0.0
    assert balls.upper(-arb((1, -5000))) == 0.0
    assert balls.upper(arb((1, 5000))) == math.inf
    assert balls.lower(arb((1, 5000))) == 1.7976931348623157e308
    assert balls.lower(-arb((1, 5000))) == -math.inf
    assert balls.upper(-arb((1, 5000))) == -1.7976931348623157e308
    assert balls.upper(arb.nan()) == math.inf
    assert balls.lower(arb.nan()) == -math.inf


def test_an_open_comparison_counts_as_no() -> None:
    assert not balls.at_most(lambda: arb(2).sqrt() ** 2, Fraction(2))
    assert balls.at_most(lambda: arb(2).sqrt(), Fraction("1.41421356237309504881"))
    assert not balls.at_most(lambda: arb(2).sqrt(), Fraction("1.41421356237309504880"))


@pytest.mark.parametrize("text", ["1e6000", "1e-6000", "1E+99999", "9" * 401])
def test_numbers_nobody_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"x (must be a finite number|is longer)"):
        rational(text, "x")
