"""Bad content: what rows may hold, in the cells of a table whose public form stays the same."""

from __future__ import annotations

import datetime
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from typing import Any, NoReturn

import numpy as np

Grid = list[list[Any]]
_LONG = "x" * 20_000
_HUGE = sys.float_info.max


class HostileError(RuntimeError):
    """What the cells below raise."""


def _fail(*_: Any, **__: Any) -> NoReturn:
    raise HostileError("a cell was asked")


def _speak(answer: Any, how: Callable[[str], object]) -> Callable[..., Any]:
    def spoken(*_: Any) -> Any:
        how("a cell was asked")
        return answer

    return spoken


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)


def _log(text: str) -> None:
    logging.getLogger("snugdp.audit").warning(text)


def _hostile(base: type, **methods: Any) -> Any:
    """An object of a subclass whose methods raise or speak."""
    made: Any = type("Cell", (base,), methods)
    return made(1) if base in (int, float) else made("1") if base in (str, Decimal, Fraction) else made()


HOSTILE: dict[str, Callable[[], Any]] = {
    "float whose __float__ raises": lambda: _hostile(float, __float__=_fail),
    "float whose __float__ prints": lambda: _hostile(float, __float__=_speak(1.0, print)),
    "float whose __float__ warns": lambda: _hostile(float, __float__=_speak(1.0, _warn)),
    "float whose __float__ logs": lambda: _hostile(float, __float__=_speak(1.0, _log)),
    "float whose __eq__ raises": lambda: _hostile(float, __eq__=_fail, __hash__=float.__hash__),
    "float whose __repr__ raises": lambda: _hostile(float, __repr__=_fail, __str__=_fail, __format__=_fail),
    "float whose __hash__ raises": lambda: _hostile(float, __hash__=_fail),
    "float that says it is no class": lambda: _hostile(float, __class__=property(_fail)),
    "int whose __index__ and __float__ raise": lambda: _hostile(int, __index__=_fail, __float__=_fail, __int__=_fail),
    "int whose __eq__ prints": lambda: _hostile(int, __eq__=_speak(True, print), __hash__=int.__hash__),
    "text whose __eq__ raises": lambda: _hostile(str, __eq__=_fail, __hash__=str.__hash__),
    "text whose __str__ and __repr__ raise": lambda: _hostile(str, __str__=_fail, __repr__=_fail),
    "Decimal whose __float__ prints": lambda: _hostile(Decimal, __float__=_speak(1.0, print)),
    "object whose __float__ raises": lambda: _hostile(object, __float__=_fail),
    "object whose __float__ prints": lambda: _hostile(object, __float__=_speak(1.0, print)),
    "object whose __eq__ and __hash__ raise": lambda: _hostile(object, __eq__=_fail, __hash__=_fail),
    "object whose __repr__ raises": lambda: _hostile(object, __repr__=_fail, __str__=_fail),
    "object whose __repr__ prints": lambda: _hostile(object, __repr__=_speak("x", print)),
    "object whose __bool__ raises": lambda: _hostile(object, __bool__=_fail),
    "object whose __array__ raises": lambda: _hostile(object, __array__=_fail),
    "object whose attributes all raise": lambda: _hostile(object, __getattr__=_fail),
    "object without a class": lambda: _hostile(object, __class__=property(_fail)),
    "list whose __len__ raises": lambda: _hostile(list, __len__=_fail, __iter__=_fail),
}
"""Cells that run code when they are looked at."""

STRANGE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "text": lambda: "somebody",
    "empty text": lambda: "",
    "text of a number": lambda: "1e5",
    "text of NaN": lambda: "nan",
    "very long text": lambda: _LONG,
    "text with a null": lambda: "a\x00b",
    "half of a surrogate pair": lambda: "\ud800",
    "bytes": lambda: b"\xff\xfe",
    "bytearray": lambda: bytearray(b"x"),
    "date": lambda: datetime.date(1984, 2, 29),
    "time with a zone": lambda: datetime.datetime(2, 1, 1, tzinfo=datetime.UTC),
    "duration": lambda: datetime.timedelta(days=999_999),
    "numpy NaT": lambda: np.datetime64("NaT"),
    "numpy duration": lambda: np.timedelta64(5, "s"),
    "complex": lambda: 1j,
    "numpy complex NaN": lambda: np.complex64(complex(math.nan, 1)),
    "Decimal NaN": lambda: Decimal("NaN"),
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "Decimal infinity": lambda: Decimal("-Infinity"),
    "Decimal beyond the floats": lambda: Decimal("1e9999"),
    "Decimal": lambda: Decimal("0.1"),
    "Fraction beyond the floats": lambda: Fraction(10**400, 3),
    "Fraction": lambda: Fraction(1, 3),
    "int beyond the floats": lambda: 10**400,
    "int beyond text": lambda: -(10**5000),
    "int beyond 2**63": lambda: 2**64,
    "int that is no float": lambda: 2**53 + 1,
    "boolean": lambda: True,
    "numpy float16 infinity": lambda: np.float16("inf"),
    "numpy long double": lambda: np.longdouble("1e4000"),
    "numpy integer": lambda: np.int8(-128),
    "numpy boolean": lambda: np.bool_(True),
    "numpy void": lambda: np.void(b"abc"),
    "array": lambda: np.array([1.0, 2.0]),
    "array of no dimension": lambda: np.array(1.0),
    "empty list": list,
    "nested list": lambda: [[[1.0]]],
    "tuple": lambda: (1, "x"),
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "generator": lambda: iter(map(int, ())),
    "object": object,
    "class": lambda: float,
    "function": lambda: math.sqrt,
    "ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "exception": lambda: ValueError("somebody"),
    "NaN": lambda: math.nan,
    "infinity": lambda: math.inf,
    **HOSTILE,
}
"""Cells that are no plain numbers."""
if find_spec("pandas") is not None:
    import pandas

    STRANGE |= {"pandas NA": lambda: pandas.NA, "pandas NaT": lambda: pandas.NaT}
    STRANGE |= {"pandas Timestamp": lambda: pandas.Timestamp(0), "pandas Interval": lambda: pandas.Interval(0, 1)}


@dataclass(frozen=True)
class Content:
    """What cells hold. ``kind``: the declared types that can hold it. ``rows``: whether there are more or fewer."""

    name: str
    kind: str
    change: Callable[[Grid], Grid]
    rows: bool = False


def good(width: int, rows: int = 8) -> Grid:
    """Plain numbers between -1 and 1; in the last column 0 and 1, which are numbers, counts, labels and booleans.

    >>> good(2, 3)
    [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    return [[*((i * (j + 1)) % 3 - 1.0 for j in range(width - 1)), float(i % 2)] for i in range(rows)]


def _one(make: Callable[[], Any], grid: Grid) -> Grid:
    """In one cell of the first column, and in one of the last."""
    grid[3][0], grid[5][-1] = make(), make()
    return grid


def _all(make: Callable[[], Any], grid: Grid) -> Grid:
    return [[make() for _ in row] for row in grid]


def _target(make: Callable[[], Any], grid: Grid) -> Grid:
    for row in grid:
        row[-1] = make()
    return grid


def _turns(cells: tuple[Any, ...], grid: Grid) -> Grid:
    return [[cells[(i + j) % len(cells)] for j in range(len(row))] for i, row in enumerate(grid)]


def _numbers() -> Iterator[Content]:
    """Floats that break what is computed from them."""
    single = {"NaN": math.nan, "infinity": math.inf, "-infinity": -math.inf, "1e300": 1e300, "-1e300": -1e300}
    single |= {"largest": _HUGE, "denormal": 5e-324, "-0.0": -0.0, "2**53": 2.0**53, "unknown label": 7.0}
    for name, value in single.items():
        yield Content(f"one {name}", "float", partial(_one, partial(float, value)))
        yield Content(f"nothing but {name}", "float", partial(_all, partial(float, value)))
    turns: dict[str, tuple[float, ...]] = {
        "both infinities": (math.inf, -math.inf),
        "1e300 and -1e300": (1e300, -1e300),
        "largest and -largest": (_HUGE, _HUGE, -_HUGE),
        "denormals": (5e-324, -5e-324, 0.0),
        "NaN and huge": (math.nan, 1e300, 0.0),
        "both zeros": (0.0, -0.0),
        "numbers next to 1": (1.0, 1.0 + 2**-52, 1.0 - 2**-53),
        "1e-200 and 1e200": (1e-200, 1e200),
    }
    for name, cells in turns.items():
        yield Content(name, "float", partial(_turns, cells))
    yield Content("nothing but zeros", "float", partial(_all, lambda: 0.0))
    yield Content("nothing but ones", "float", partial(_all, lambda: 1.0))
    yield Content("missing targets", "float", partial(_target, lambda: math.nan))
    yield Content("infinite targets", "float", partial(_target, lambda: math.inf))
    yield Content("rows of one rank", "float", lambda grid: [[i * 0.1] * len(row) for i, row in enumerate(grid)])
    yield Content("the same row again and again", "float", lambda grid: [list(grid[1]) for _ in grid])
    yield Content("one row far away", "float", lambda grid: [[1e12] * len(grid[0]), *grid[1:]])
    yield Content("no rows", "float", lambda grid: [], rows=True)
    yield Content("one row", "float", lambda grid: grid[:1], rows=True)
    yield Content("two rows", "float", lambda grid: grid[:2], rows=True)
    yield Content("many rows", "float", lambda grid: grid * 5, rows=True)
    yield Content("one row of NaN", "float", lambda grid: [[math.nan] * len(grid[0])], rows=True)


def _integers() -> Iterator[Content]:
    """Whole numbers; a form takes what its type can hold."""
    for name, cells in {
        "the largest": (2**70,),
        "the smallest": (-(2**70),),
        "the largest and the smallest": (2**70, -(2**70)),
        "beyond 2**53": (2**53 + 1, 2**53),
        "only 0": (0,),
        "only 1": (1,),
        "unknown labels": (7, 3),
        "missing": (None,),
        "missing here and there": (None, 1, 0),
    }.items():
        yield Content(f"whole numbers: {name}", "int", partial(_turns, cells))
    yield Content("whole numbers: no rows", "int", lambda grid: [], rows=True)
    yield Content("whole numbers: one row", "int", lambda grid: grid[:1], rows=True)


def _texts() -> Iterator[Content]:
    words = {"words": ("a", "b"), "empty": ("",), "long": (_LONG,), "numbers": ("0", "1"), "nulls": ("\x00",)}
    words |= {"no text": ("nan", "None"), "signs": ("é", "\u202e", "😀")}
    for name, cells in words.items():
        yield Content(f"text: {name}", "text", partial(_turns, cells))
    yield Content("text: missing", "text", partial(_turns, (None, "a")))
    yield Content("text: no rows", "text", lambda grid: [], rows=True)


def contents() -> list[Content]:
    """All of them."""
    found = [*_numbers(), *_integers(), *_texts()]
    for name, make in STRANGE.items():
        found.append(Content(f"one {name}", "any", partial(_one, make)))
    # Nothing but lists is another shape, a table, and shapes are public.
    for name in ("None", "text", "complex", "Decimal sNaN", "int beyond the floats", "object", "dict", "date"):
        found.append(Content(f"nothing but {name}", "any", partial(_all, STRANGE[name])))
        found.append(Content(f"targets: {name}", "any", partial(_target, STRANGE[name])))
    for name in ("None", "text", "object", "NaN"):
        found.append(Content(f"one {name}", "unread", partial(_one, STRANGE[name])))
    found.append(Content("mixed types", "any", partial(_turns, (1, 1.0, True, "1", None, b"1", Decimal(1)))))
    found.append(Content("one row of text", "any", lambda grid: [["somebody"] * len(grid[0])], rows=True))
    found.append(Content("one row of None", "any", lambda grid: [[None] * len(grid[0])], rows=True))
    days = {"a day": ("1999-12-31",), "NaT": ("NaT",), "far": ("0001-01-01", "9999-12-31")}
    found += [Content(f"dates: {name}", "date", partial(_turns, cells)) for name, cells in days.items()]
    odd = {"NaN": (complex(math.nan, 1),), "huge": (1e300 + 1e300j, 1j), "real": (1 + 0j, 0j)}
    found += [Content(f"complex: {name}", "complex", partial(_turns, cells)) for name, cells in odd.items()]
    found.append(Content("dates: no rows", "date", lambda grid: [], rows=True))
    found.append(Content("nothing at all", "null", lambda grid: grid[:1], rows=True))
    found.append(Content("nothing at all, no rows", "null", lambda grid: [], rows=True))
    return found
