"""Bad inputs: every content in public forms that can hold it, beside plain numbers in the same form.

A form is what is public about an input: the container, the names of its columns and their declared types. Two inputs of
one form differ in private cells alone, and under add/remove in the number of rows.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.side_channels.cells import Content, Grid, contents, good

NAMES = ("a", "b")
TARGET = "y"
Column = list[Any]


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


@dataclass(frozen=True)
class Input:
    """One input. ``form`` is public, ``content`` is private."""

    form: str
    content: str
    make: Callable[[], Any]


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
        if kind.kind == "O":
            made = np.empty(len(cells), dtype=object)
            for place, cell in enumerate(cells):  # a slice would look into cells
                made[place] = cell
            return made
        return np.array(cells, dtype=kind)


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
        return Given([_array(row[:-1], object) for row in grid], _array([row[-1] for row in grid], object))

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
