"""Bad inputs: every content in public forms that can hold it, beside plain numbers in the same form.

A form is what is public about an input: the container, the names of its columns and their declared types. Two inputs of
one form differ in private cells alone, and under add/remove in the number of rows.
"""

import datetime
import logging
import math
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.side_channels.calls import Input

NAMES = ("a", "b")
TARGET = "y"
Column = list[Any]
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


@dataclass(frozen=True, repr=False)
class Given:
    """A table as a user brings it. ``described``: it comes with a schema and, if y is None, holds its target."""

    X: Any
    y: Any
    described: bool = False
    groups: Any = None


@dataclass(frozen=True)
class InputForm:
    """A public form. ``kind``: the cells that it can hold; ``empty``: without rows it still has its columns."""

    name: str
    kind: str
    column: Callable[[Column], Any]
    table: Callable[[Grid], Given]
    empty: bool = True
    described: bool = False


def inputs(face: str, *, full: bool = False, rows_are_public: bool = False) -> Iterator[list[Input]]:
    """The inputs of every form, plain numbers first. ``face``: "table" (rows and targets) or "column".

    Quick: every content in one or two forms that can hold it, which take turns; full: in all of them.

    >>> sum(len(group) - 1 for group in inputs("column")) >= 200
    True
    """
    usable = [form for form in forms() if face == "table" or not form.described]
    chosen: dict[str, list[Content]] = {form.name: [] for form in usable}
    turns = dict.fromkeys((form.kind for form in usable), 0)
    for content in contents():
        if content.rows and rows_are_public:
            continue
        able = [form for form in usable if _holds(form, content, face)]
        if not able:
            continue
        start = turns[content.kind]
        turns[content.kind] += 1 if content.kind == "any" else 2
        most = len(able) if full else 1 if content.kind == "any" else 2
        for place in range(min(most, len(able))):
            chosen[able[(start + place) % len(able)].name].append(content)
    for form in usable:
        plain = Content("plain numbers", form.kind, lambda grid: grid)
        yield [_input(form, content, face) for content in (plain, *chosen[form.name])]


def _holds(form: InputForm, content: Content, face: str) -> bool:
    if not form.empty and face == "table" and not content.change(good(2)):
        return False  # an empty list has no columns: that it is empty is said aloud, as documented
    return form.kind == content.kind


def _input(form: InputForm, content: Content, face: str) -> Input:
    def make() -> Any:
        if face == "column":
            return form.column([row[-1] for row in content.change(good(1))])
        return form.table(content.change(good(len(NAMES) + 1)))

    return Input(form.name, content.name, make)


def forms() -> list[InputForm]:
    """All forms of the libraries that are installed."""
    found = [*_typed(), *_untyped(), *_unreadable()]
    if find_spec("pandas") is not None:
        found += _pandas()
    if find_spec("polars") is not None:
        found += _polars()
    if find_spec("pyarrow") is not None:
        found += _pyarrow()
    return found


def _array(cells: Column, dtype: Any) -> NDArray[Any]:
    """Cells of a declared type; whole numbers are brought between its ends."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        cells = [min(max(int(cell or 0), int(ends.min)), int(ends.max)) for cell in cells]
    if kind.kind == "b":
        cells = [bool(cell) for cell in cells]
    if kind.kind in "US":
        cells = [str(cell).encode("utf-8") if kind.kind == "S" else str(cell) for cell in cells]
    if kind.kind in "Mm":
        cells = [cell if isinstance(cell, str) else str(datetime.date(2000, 1, 2 + int(cell))) for cell in cells]
        days = np.array(cells, dtype="datetime64[D]")
        return days - np.datetime64("2000-01-01") if kind.kind == "m" else days.astype(kind)
    with np.errstate(all="ignore"):
        return object_array(cells) if kind.kind == "O" else np.array(cells, dtype=kind)


def object_array(cells: Column) -> NDArray[Any]:
    """The cells as they are."""
    made = np.empty(len(cells), dtype=object)
    for index, cell in enumerate(cells):  # a slice would look into the cells
        made[index] = cell
    return made


def _split(grid: Grid, vector: Callable[[Column], Any], matrix: Callable[[Any], Any] | None = None) -> Given:
    """A matrix of cells of one type, and targets of the same type."""
    width = len(NAMES)
    if not grid:
        flat = vector([])
        return Given((matrix or (lambda x: x))(flat.reshape(0, width)), flat)
    cells = vector([cell for row in grid for cell in row[:-1]]).reshape(len(grid), width)
    return Given((matrix or (lambda x: x))(cells), vector([row[-1] for row in grid]))


def _numpy(name: str, kind: str, dtype: Any, finish: Callable[[Any], Any] | None = None) -> InputForm:
    done = finish or (lambda array: array)
    vector = partial(_array, dtype=dtype)
    return InputForm(
        name,
        kind,
        lambda cells: done(vector(cells)),
        lambda grid: _split(grid, lambda cells: done(vector(cells)), done),
    )


class _Sub(np.ndarray[Any, Any]):
    """A subclass that adds nothing."""


def _readonly(array: NDArray[Any]) -> NDArray[Any]:
    made = np.asfortranarray(array)
    made.setflags(write=False)
    return made


def _spaced(array: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(array, 2, axis=0)[::2]


def _masked(array: NDArray[Any]) -> Any:
    return np.ma.masked_invalid(array)


def _typed() -> list[InputForm]:
    floats = [
        _numpy("float64 array", "float", np.float64),
        _numpy("read-only float64 array", "float", np.float64, _readonly),
        _numpy("float64 array of every second row", "float", np.float64, _spaced),
        _numpy("big-endian float64 array", "float", ">f8"),
        _numpy("float32 array", "float", np.float32),
        _numpy("float16 array", "float", np.float16),
        _numpy("long double array", "float", np.longdouble),
        _numpy("masked float64 array", "float", np.float64, _masked),
        _numpy("subclass of an array", "float", np.float64, lambda array: array.view(_Sub)),
    ]
    whole = [_numpy(f"{dtype} array", "int", dtype) for dtype in ("int64", "int8", "uint64", "bool", ">i4")]
    others = [
        _numpy("text array", "text", "U8"),
        _numpy("bytes array", "text", "S8"),
        _numpy("date array", "date", "M8[D]"),
        _numpy("duration array", "date", "m8[D]"),
        _numpy("complex array", "complex", np.complex128),
    ]
    return [*floats, *whole, *others]


def _untyped() -> list[InputForm]:
    """Containers without a declared type: any cell."""

    def lists(grid: Grid) -> Given:
        return Given([row[:-1] for row in grid], [row[-1] for row in grid], groups=[row[-1] for row in grid])

    def tuples(grid: Grid) -> Given:
        return Given(tuple(tuple(row[:-1]) for row in grid), tuple(row[-1] for row in grid))

    def arrays(grid: Grid) -> Given:
        return Given([object_array(row[:-1]) for row in grid], object_array([row[-1] for row in grid]))

    return [
        InputForm("list", "any", lambda cells: cells, lists, empty=False),
        InputForm("tuple", "any", tuple, tuples, empty=False),
        InputForm("list of object arrays", "any", list, arrays, empty=False),
        _numpy("object array", "any", object),
    ]


def _unreadable() -> list[InputForm]:
    """What no face reads: it is refused whatever it holds."""

    def table(wrap: Callable[[Any], Any]) -> Callable[[Grid], Given]:
        return lambda grid: Given(wrap([row[:-1] for row in grid]), [row[-1] for row in grid])

    def generator(cells: Column) -> Any:
        return (cell for cell in cells)

    makers: dict[str, Callable[[Any], Any]] = {"generator": generator, "deque": deque, "iterator": iter}
    return [InputForm(name, "unread", make, table(make), empty=False) for name, make in makers.items()]


def _frames(name: str, kind: str, series: Callable[[Column, str], Any], frame: Callable[[Any], Any]) -> list[InputForm]:
    """A column, a table with targets beside it, and a table with a schema that holds its target."""

    def columns(grid: Grid) -> dict[str, Any]:
        cells = [[row[place] for row in grid] for place in range(len(NAMES) + 1)]
        return {label: series(column, label) for label, column in zip((*NAMES, TARGET), cells, strict=True)}

    def beside(grid: Grid) -> Given:
        made = columns(grid)
        y = made.pop(TARGET)
        return Given(frame(made), y)

    def inside(grid: Grid) -> Given:
        return Given(frame(columns(grid)), None, described=True)

    def column(cells: Column) -> Any:
        return series(cells, TARGET)

    return [
        InputForm(name, kind, column, beside),
        InputForm(f"{name}, with a schema", kind, column, inside, described=True),
    ]


def _pandas() -> list[InputForm]:
    import pandas

    def of(dtype: str, numpy: Any = None) -> Callable[[Column, str], Any]:
        def series(cells: Column, name: str) -> Any:
            given = cells if numpy is None else _array(cells, numpy)
            return pandas.Series(given, dtype=dtype, name=name)

        return series

    def nullable(dtype: str) -> Callable[[Column, str], Any]:
        def series(cells: Column, name: str) -> Any:
            numpy = "bool" if dtype == "boolean" else dtype.lower()
            missing = np.array([cell is None or cell != cell for cell in cells], dtype=bool)  # noqa: PLR0124
            values = _array([0 if gone else cell for gone, cell in zip(missing, cells, strict=True)], numpy)
            kept = pandas.Series(values, dtype=dtype, name=name)
            return kept.mask(missing) if missing.any() else kept

        return series

    frame = pandas.DataFrame
    return [
        *_frames("pandas float64", "float", of("float64", np.float64), frame),
        *_frames("pandas float32", "float", of("float32", np.float32), frame),
        *_frames("pandas Float64", "float", nullable("Float64"), frame),
        *_frames("pandas Int64", "int", nullable("Int64"), frame),
        *_frames("pandas boolean", "int", nullable("boolean"), frame),
        *_frames("pandas objects", "any", of("object", object), frame),
        *_frames("pandas text", "text", of("str", object), frame),
        *_frames("pandas categories", "text", of("category", object), frame),
        *_frames("pandas dates", "date", of("datetime64[s]", "M8[s]"), frame),
    ]


def _polars() -> list[InputForm]:
    import polars

    def of(dtype: Any, numpy: Any = None) -> Callable[[Column, str], Any]:
        def series(cells: Column, name: str) -> Any:
            if numpy is None:
                return polars.Series(name, [_fit(cell, dtype) for cell in cells], dtype=dtype)
            return polars.Series(name, _array(cells, numpy), dtype=dtype)

        return series

    def _fit(cell: Any, dtype: Any) -> Any:
        if cell is None or isinstance(cell, str):
            return cell
        if dtype == polars.Boolean:
            return bool(cell)
        return min(max(int(cell), -(2**63)), 2**63 - 1) if dtype == polars.Int64 else str(cell)

    frame = polars.DataFrame
    found = [
        *_frames("polars Float64", "float", of(polars.Float64, np.float64), frame),
        *_frames("polars Float32", "float", of(polars.Float32, np.float32), frame),
        *_frames("polars Int64", "int", of(polars.Int64), frame),
        *_frames("polars Boolean", "int", of(polars.Boolean), frame),
        *_frames("polars String", "text", of(polars.String), frame),
        *_frames("polars Categorical", "text", of(polars.Categorical), frame),
        *_frames("polars Date", "date", of(polars.Date, "M8[D]"), frame),
        *_frames("polars Null", "null", lambda cells, name: polars.Series(name, [None] * len(cells)), frame),
    ]
    lazy = _frames("polars query", "float", of(polars.Float64, np.float64), lambda made: frame(made).lazy())
    return [*found, lazy[1]]


def _pyarrow() -> list[InputForm]:
    import pyarrow

    def of(kind: Any) -> Callable[[Column, str], Any]:
        def series(cells: Column, name: str) -> Any:
            whole = pyarrow.types.is_integer(kind)
            null = [pyarrow.types.is_null(kind) or cell is None for cell in cells]
            ends = (-(2**63), 2**63 - 1)
            fit = [min(max(int(cell or 0), ends[0]), ends[1]) if whole else cell for cell in cells]
            text = [str(cell) for cell in fit] if pyarrow.types.is_string(kind) else fit
            return pyarrow.array([None if gone else cell for gone, cell in zip(null, text, strict=True)], type=kind)

        return series

    return [
        *_frames("pyarrow double", "float", of(pyarrow.float64()), pyarrow.table),
        *_frames("pyarrow int64", "int", of(pyarrow.int64()), pyarrow.table),
        *_frames("pyarrow string", "text", of(pyarrow.string()), pyarrow.table),
        *_frames("pyarrow null", "null", of(pyarrow.null()), pyarrow.table),
    ]
