"""Every object has an image as a number, equal numbers have the same, and noise takes them all."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace, Simulation
from snugdp.noise.number import MAX_SIZE_BITS, finite, number
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.side_channels.inputs import HOSTILE

NO_NUMBERS: tuple[Any, ...] = (
    None, math.nan, np.float32("nan"), np.array(np.nan), Decimal("NaN"), Decimal("sNaN"), "1", b"1", 1j,
    complex(1, math.nan), np.complex64(1j), [1], (1,), {1: 1}, np.array([1]), np.array("1"), np.array(None),
    np.ma.masked, np.timedelta64(1), np.datetime64("2020-01-01"), object(), object, int, lambda: 1, ..., NotImplemented,
)  # fmt: skip
WAYS: tuple[Callable[[Any], Any], ...] = (
    int, float, Fraction, Decimal, complex, np.float16, np.float32, np.float64, np.longdouble, np.int8, np.int64,
    np.uint64, np.complex64, np.complex128, np.array, lambda x: np.array(x, dtype=object), lambda x: np.ma.array(x),
    type("Whole", (int,), {"__int__": None, "__index__": None, "__eq__": None, "__hash__": None}),
    type("Real", (float,), {"__float__": None, "__eq__": None, "__hash__": None, "as_integer_ratio": None}),
)  # fmt: skip


def in_all_types(value: Fraction) -> list[Any]:
    """The same number in every type that holds it exactly."""
    found = []
    for way in WAYS:
        with np.errstate(all="ignore"):
            try:
                made = way(value if value.denominator > 1 and way is Fraction else _plain(value))
            except (OverflowError, TypeError, ValueError):
                continue
        if number(made) == value:
            found.append(made)
    return found


def _plain(value: Fraction) -> Any:
    return int(value) if value.denominator == 1 else float(value)


@pytest.mark.parametrize(
    "value", [Fraction(3), Fraction(5, 2), Fraction(0), Fraction(1), Fraction(-7, 4), Fraction(2**40)]
)
def test_types_that_hold_a_number_give_it_back(value: Fraction) -> None:
    assert len(in_all_types(value)) >= (19 if value in (0, 1, 3) else 9)
    assert isinstance(number(value), Fraction)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_nan(value: object) -> None:
    assert math.isnan(number(value))
    assert finite(value) == 0


def test_truth_values_are_0_and_1() -> None:
    assert [number(value) for value in (True, False, np.True_, np.False_, np.array(True))] == [1, 0, 1, 0, 1]


def test_infinities_of_all_types() -> None:
    for kind in (float, np.float16, np.longdouble, Decimal, np.array, lambda inf: complex(inf, 0)):
        inf: Any = kind(math.inf)
        assert number(inf) == math.inf
        assert number(-inf) == -math.inf


def test_longdouble_keeps_all_its_bits() -> None:
    """Where it has more than a float."""
    one = np.longdouble(1) + np.finfo(np.longdouble).eps
    assert number(one) == 1 + Fraction(*np.finfo(np.longdouble).eps.as_integer_ratio())
    assert number(np.finfo(np.longdouble).max) > 10**308


def test_numbers_without_end_are_cut_alike_in_all_types() -> None:
    """Ten characters of a decimal can stand for more digits than there is memory."""
    for exponent in (10**6, 90_000, 999_999_999_999):
        assert number(Decimal(f"1e{exponent}")) == math.inf
        assert number(Decimal(f"-1e{exponent}")) == -math.inf
        assert number(Decimal(f"1e-{exponent}")) == 0
    assert number(10**90_000) == number(Fraction(10**90_000, 7)) == math.inf
    assert number(Fraction(-1, 10**90_000)) == 0
    assert number(Decimal("1e70000")) == number(10**70_000) == 10**70_000
    assert number(Decimal("1e-70000")) == number(Fraction(1, 10**70_000)) == Fraction(1, 10**70_000)
    assert number(Decimal("0e999999999")) == 0
    end = Fraction(2) ** MAX_SIZE_BITS
    near = (end, end - 1, end - Fraction(1, 3), 2 * end / 3, 1 / end, 5 / (3 * end))
    assert all(number(value) == value and number(-value) == -value for value in near)
    assert [number(end + Fraction(1, 3)), number(-end - 1), number(1 / (end + 1))] == [math.inf, -math.inf, 0]
    assert [finite(math.inf), finite(-(10**90_000))] == [end, -end]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_objects_have_an_image_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = number(HOSTILE[name]())
    assert found == 1 or math.isnan(found)
    assert capsys.readouterr() == ("", "")


def test_an_array_that_holds_itself() -> None:
    loop = np.empty((), dtype=object)
    loop[()] = loop
    assert math.isnan(number(loop))


@given(
    st.one_of(
        st.integers(-(10**30), 10**30).map(Fraction),
        st.floats(allow_nan=False, allow_infinity=False, width=32).map(Fraction),
    )
)
def test_noise_does_not_see_the_type(value: Fraction) -> None:
    """The same seed, the same number, all types: the same answers."""
    seen = {str(_answers(one)) for one in in_all_types(value)}
    assert len(seen) == 1


def _answers(value: Any) -> list[Any]:
    noise = Simulation(5)
    return [
        noise.add(Secret(value), Gaussian(3), grid=-4),
        noise.add(Secret(value), DiscreteLaplace(3)),
        noise.add(Secret(0), Gaussian(3), grid=-4, stretch=Secret(value)),
        noise.at_least(Secret(value), Laplace(2), 1),
        noise.at_least(Secret(value), DiscreteGaussian(2), 1),
        noise.argmax(Secret([value, 1, 2]), Laplace(2)),
        noise.add_integers(Secret([value, 1]), Gaussian(2)),
        noise.chance(Secret(value)),
    ]


@pytest.mark.parametrize(
    "value", [*NO_NUMBERS, math.inf, -math.inf, 10**400, Decimal("1e-99999")], ids=lambda value: type(value).__name__
)
def test_nothing_private_raises(value: Any) -> None:
    for noise in (Exact(), Simulation(2)):
        assert noise.add(Secret(value), Gaussian(3), grid=-4) is not None
        assert noise.add(Secret(value), DiscreteLaplace(3)).denominator == 1
        assert noise.at_least(Secret(value), Laplace(2), 1) in (True, False)
        assert noise.argmax(Secret([0, value]), Laplace(2)) in (0, 1)
        assert len(noise.add_integers(Secret([value, 1]), Gaussian(2))) == 2
        assert noise.chance(Secret(value)) in (True, False)
        objects: Any = np.empty((1, 2), dtype=object)
        objects[0, :] = [0, None]
        objects[0, 1] = value
        assert noise.argmaxes(Secret(objects), Gaussian(1)).shape == (1,)
        assert noise.reach(Secret(objects.ravel()), Gaussian(1), 0).shape == (2,)


def test_a_stretch_that_is_no_number_does_not_bare_the_value() -> None:
    for nothing in (None, math.nan, "1", math.inf):
        released = [abs(Simulation(seed).add(Secret(0), Gaussian(1), stretch=Secret(nothing))) for seed in range(20)]  # type: ignore[arg-type]
        assert min(released) > 10**9
    assert abs(Exact().add(Secret(0), Gaussian(1), stretch=Secret(None))) > 10**9  # type: ignore[arg-type]


def test_a_discrete_law_takes_the_whole_part() -> None:
    for value in (Fraction(7, 2), 3.5, np.float32(3.5), Decimal("3.5")):
        assert Simulation(1).add(Secret(value), DiscreteLaplace(1)) == Simulation(1).add(Secret(3), DiscreteLaplace(1))  # type: ignore[arg-type]


def test_arrays_without_rows_are_of_any_type() -> None:
    """numpy makes an empty list an array of floats: that there are no rows must not be an exception."""
    for noise in (Exact(), Simulation(1)):
        assert noise.add_integers(Secret(np.array([])), Gaussian(1)) == []
        assert noise.reach(Secret(np.array([])), Gaussian(1), 0).tolist() == []
    floats = np.array([[0.9, 2e300, -math.inf], [math.nan, -1.0, -1.5]])
    assert Simulation(1).argmaxes(Secret(floats), Gaussian(Fraction(1, 10**9))).tolist() == [1, 0]
    with pytest.raises(ValueError, match="1 dimension"):
        Simulation(1).add_integers(Secret(floats), Gaussian(1))
