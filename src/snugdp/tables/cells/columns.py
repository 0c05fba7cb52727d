"""One column from any container, cell by cell.

Whether a column is refused depends on its container and its declared type alone. Inside, every cell has the image that
``cell.py`` gives it, whatever the others hold. What is fast (numbers of a declared type, text inside polars) gives the
same images; everything else is read one by one, each distinct plain cell once.

A list, and a column of objects, declares nothing and is never refused. A declared type is refused where a library may
have made it by changing the cells: numpy's text for numbers (single precision loses digits there), its half precision
and its dates for labels, durations, structs, lists; and complex numbers, bytes and dates where numbers are wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import cell as one

if TYPE_CHECKING:
    import polars as pl

Image = TypeVar("Image", bound=np.generic)
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Declared: TypeAlias = "NDArray[Any] | nw.Series[Any]"
Rows: TypeAlias = "list[Any] | NDArray[Any] | nw.Series[Any]"

_ACCEPTED = "a list, a tuple, a one-dimensional numpy array, or a pandas, polars or pyarrow column"
_FLOATS = {id(kind) for kind in (int, float, bool)}  # types by their identity: a class may bring its own hash
_OPTIONAL = {*_FLOATS, id(type(None))}
_PLAIN = {*_OPTIONAL, id(str), id(bytes)}
_MAX_DIGITS, _MAX_SCALE = 2**53, 22  # whole numbers and powers of ten up to here are floats: a ratio is rounded once
_NOT_KNOWN = "Unknown (decimal256, a map or the like)"
_KINDS = {"U": "text", "S": "bytes", "M": "dates", "m": "durations", "c": "complex numbers", "f": "half precision"}


def open_column(data: object) -> Rows:
    """The rows of a container: a list if it has no declared type, otherwise an array or a series."""
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise ValueError(f"the column must be one-dimensional, not {data.ndim}-dimensional")
        plain = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
        return one.sequence(plain) or [] if data.dtype.kind == "O" else plain
    listed = one.sequence(data)
    if listed is not None:
        return listed
    arrow, pandas = sys.modules.get("pyarrow"), sys.modules.get("pandas")
    if arrow is not None and isinstance(data, arrow.Array):
        data = arrow.chunked_array([data])
    if pandas is not None and isinstance(data, pandas.Index | pandas.api.extensions.ExtensionArray):
        data = pandas.Series(data)
    series: Any = nw.from_native(data, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise TypeError(f"cannot read a column from {type(data).__name__}; {_instead(series)}")
    dtype = declared(series)
    if dtype == nw.Object:
        return cells_of(series)
    native: Any = series.to_native()
    if hasattr(native, "sparse"):  # pandas' sparse columns
        return np.asarray(native)
    return series


def _instead(data: object) -> str:
    """What to give in the place of something that is no column."""
    if type(data).__module__.startswith("pyspark."):
        return (
            "give the Spark table as a whole to a query that takes column=..., as in median(table, column='age'); "
            "the others read a column in memory"
        )
    if isinstance(data, str | PurePath):
        return "name one of the file, as in median(path, column='age')"
    if hasattr(data, "columns"):
        return "take one column, as in table['age'], or name it, as in median(table, column='age')"
    return f"give {_ACCEPTED}"


def declared(series: nw.Series[Any]) -> nw.dtypes.DType:
    """The declared type: objects where none is declared, and a struct for what no column of ours can hold."""
    native: Any = series.to_native()
    if getattr(native, "dtype", None) == np.dtype(object):  # a pandas column, whatever its rows look like
        return nw.Object()
    if series.dtype != nw.Unknown:
        return series.dtype
    name = str(getattr(native, "type", None) or native.dtype).lower()
    if name in ("null", "null[pyarrow]") or name.startswith("complex"):  # one complex cell makes all others complex
        return nw.Object()
    if name.startswith("date64"):
        return nw.Date()
    if name.startswith(("datetime64[", "timestamp[")):  # in a zone that narwhals cannot read, such as America/New_York
        return nw.Datetime()
    return nw.Float64() if hasattr(native, "sparse") and native.dtype.subtype.kind in "biuf" else nw.Struct({})


def declared_types(frame: nw.DataFrame[Any]) -> dict[str, nw.dtypes.DType]:
    """The declared types of all columns."""
    types = dict(frame.schema) if frame.implementation.is_polars() else {}
    if types and nw.Unknown not in types.values():
        return types
    return {name: declared(frame.get_column(name)) for name in frame.columns}


def inferred(dtype: nw.dtypes.DType) -> nw.dtypes.DType:
    """A type as a container in memory has it: objects for text, which one cell may have made of all the others.

    In a file with declared types text is declared as text.
    """
    return nw.Object() if dtype in (nw.String, nw.Categorical, nw.Enum) else dtype


def numeric(dtype: nw.dtypes.DType) -> bool:
    """Whether a column of this declared type is read as numbers, or as booleans."""
    return dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)


def labelled(dtype: nw.dtypes.DType) -> bool:
    """Whether a column of this declared type is read as labels."""
    return numeric(inferred(dtype)) or dtype in (nw.Binary, nw.Date, nw.Datetime)


def numbers(data: object) -> Floats:
    """The column as floats; what is not a number is NaN.

    >>> numbers([1, 2.5, None, "x", "3"]).tolist()
    [1.0, 2.5, nan, nan, 3.0]
    """
    rows = open_column(data)
    if isinstance(rows, list):
        return images(rows, lambda: listed_numbers(rows))
    if not _readable(rows):
        raise refusal("the column must hold numbers", rows)
    return images(rows, lambda: _floats(rows) if _is_number(rows) else _others(rows))


def truths(data: object) -> Floats:
    """The column as 1 for yes, 0 for no and NaN for anything else.

    >>> truths(["yes", False, 1, "?"]).tolist()
    [1.0, 0.0, 1.0, nan]
    """
    rows = open_column(data)
    if isinstance(rows, list):
        return images(rows, lambda: each(rows, one.truth, np.nan))
    if not _readable(rows):
        raise refusal("the column must hold booleans", rows)
    if _is_number(rows):
        values = images(rows, lambda: _floats(rows))
        return np.where((values == 0) | (values == 1), values, np.nan)
    return images(rows, lambda: by_distinct(rows, one.truth, np.nan))


def groups(data: object) -> Integers:
    """A number for every distinct label, from 0 on in the order of the rows; -1 for what is missing.

    >>> groups(["ann", "bob", "ann", None, 7, 7.0, "7"]).tolist()
    [0, 1, 0, -1, 2, 2, 2]
    """
    rows = label_rows(data, "groups")
    if _is_single(rows):
        raise TypeError("groups must not be in single precision: as text, large numbers would lose digits. Use doubles")
    known: dict[Any, int] = {}

    def numbered(cell: Any) -> int:
        found = one.label(cell)
        return -1 if found is None else known.setdefault(found, len(known))

    def fast() -> Integers:
        values, _ = _present(rows)  # type: ignore[arg-type]
        distinct, first, which = np.unique(values.astype(np.float64), return_index=True, return_inverse=True)
        order = np.argsort(first)
        numbers_of = np.empty(len(distinct), dtype=np.int64)
        numbers_of[order] = [numbered(value) for value in distinct[order].tolist()]
        return numbers_of[which]

    if isinstance(rows, list) or not _is_number(rows) or _present(rows)[1] is not None:
        return images(rows, lambda: each(_listed(rows), numbered, -1))
    return images(rows, fast)


def label_texts(data: object) -> nw.Series[Any]:
    """Every label as text, one for each label, in a column of polars; null for what is missing.

    >>> label_texts([1, "1", True, "red", None]).to_list()
    ['1', '1', '1', 'red', None]
    """
    import polars as pl

    rows = label_rows(data)

    def numbered() -> NDArray[Any]:
        values, present = _present(rows)  # type: ignore[arg-type]
        distinct, which = np.unique(values.astype(np.float64), return_inverse=True)
        texts = np.array([*map(one.text, distinct.tolist()), None], dtype=object)
        return texts[which if present is None else np.where(present, which, len(distinct))]

    def listed() -> NDArray[Any]:
        return each(_listed(rows), one.text, None)

    texts = images(rows, listed if isinstance(rows, list) or not _is_number(rows) else numbered)
    return nw.from_native(pl.Series(texts.tolist(), dtype=pl.String), series_only=True)


def label_rows(data: object, what: str = "labels") -> Rows:
    """The rows of a column of labels, or an error about its declared type."""
    rows = open_column(data)
    if isinstance(rows, nw.Series) and not labelled(declared(rows)):
        raise refusal(f"{what} must be text, numbers, booleans or dates", rows)
    if isinstance(rows, np.ndarray) and (rows.dtype.kind in "mMV" or rows.dtype == np.float16):
        kind = _name(rows)
        raise TypeError(f"{what} must not be an array of {kind}; give a list, a table, or an array of text")
    return rows


def label_images(
    rows: Rows, image: Callable[[Any], int], of_floats: Callable[[NDArray[Any]], Integers], large: bool
) -> Integers:
    """The images of labels. ``of_floats`` gives those of numbers of a declared type at once; NaN must be -1.

    ``large``: whether there are labels that are whole numbers which single precision does not hold.
    """
    if isinstance(rows, list) or not _is_number(rows):
        return images(rows, lambda: by_distinct(rows, image, -1))
    if large and _is_single(rows):
        raise TypeError(
            "labels from 2**24 on must not be in single precision: as text they would lose digits. Use doubles"
        )

    def fast() -> Integers:
        values, present = _present(rows)
        found = of_floats(values)
        return found if present is None else np.where(present, found, -1)

    return images(rows, fast)


def listed_numbers(cells: Sequence[Any]) -> Floats:
    """Each cell as a float."""
    kinds = set(map(id, map(type, cells)))
    if kinds <= _OPTIONAL:  # then numpy converts one by one, as ``number`` does
        full = cells if kinds <= _FLOATS else [np.nan if cell is None else cell for cell in cells]
        worked, found = attempt(lambda: np.array(full, dtype=np.float64))
        if worked and found is not None:
            return found + 0.0
    return each(cells, one.number, np.nan)


def each(cells: Sequence[Any], image: Callable[[Any], Any], missing: float | None) -> NDArray[Any]:
    """Each by itself; plain cells, which compare without asking anybody, once for every distinct one.

    ``missing``: the image of what is missing, which is of the type of all images; None for text.
    """
    kind = object if missing is None else np.float64 if isinstance(missing, float) else np.int64
    types = set(map(id, map(type, cells)))
    if not types <= _PLAIN:
        return np.fromiter(map(image, cells), kind, len(cells))
    known: dict[Any, Any]
    if len(types) == 1:
        known = {cell: image(cell) for cell in dict.fromkeys(cells)}
        return np.fromiter(map(known.__getitem__, cells), kind, len(cells))
    keys = list(zip(map(type, cells), cells, strict=True))  # 1, 1.0 and True are equal, but not as text
    known = {key: image(key[1]) for key in dict.fromkeys(keys)}
    return np.fromiter(map(known.__getitem__, keys), kind, len(keys))


def cells_of(series: nw.Series[Any]) -> list[Any]:
    """The cells of a column. One that its library cannot hand out is missing, and the others are not."""
    native: Any = series.to_native()
    text = type(getattr(native, "dtype", None)).__name__ == "StringDtype"  # of pandas, whose missing cells are slow
    worked, cells = attempt(lambda: _text_cells(native) if text else series.to_list())
    if worked and cells is not None:
        return cells
    return [attempt(lambda index=index: series[index])[1] for index in range(len(series))]  # type: ignore[misc]


def _text_cells(native: Any) -> list[Any]:
    cells: list[Any] = native.to_numpy(dtype=object, na_value=None).tolist()
    return cells


def _is_single(rows: Rows) -> bool:
    """Whether the declared type is that of single precision."""
    if isinstance(rows, nw.Series):
        return bool(rows.dtype == nw.Float32)
    return isinstance(rows, np.ndarray) and rows.dtype.kind == "f" and rows.dtype.itemsize == 4


def type_name(dtype: nw.dtypes.DType) -> str:
    """A declared type in a word, without the labels that some carry: pandas takes those from the rows."""
    return _NOT_KNOWN if dtype == nw.Struct({}) else type(dtype).__name__


def _name(rows: Declared) -> str:
    return type_name(declared(rows)) if isinstance(rows, nw.Series) else _KINDS.get(rows.dtype.kind, "records")


def refusal(wanted: str, rows: Declared) -> TypeError:
    """An error about a declared type."""
    kind, text = _name(rows), isinstance(rows, np.ndarray) and rows.dtype.kind in "US"
    advice = "numpy turns all cells into text if one is: give a list, or a table" if text else "convert it first"
    return TypeError(f"{wanted}, not {kind}; {advice}")


def _readable(rows: Declared) -> bool:
    return numeric(inferred(declared(rows))) if isinstance(rows, nw.Series) else rows.dtype.kind in "biuf"


def _is_number(rows: Declared) -> bool:
    """Whether the declared type holds numbers that numpy has a type for."""
    if isinstance(rows, nw.Series):
        dtype = rows.dtype
        whole = dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)
        return whole or dtype.is_float() or dtype == nw.Boolean
    return rows.dtype.kind in "biuf"


def _floats(rows: Declared) -> Floats:
    values, present = _present(rows)
    if present is None:
        return values.astype(np.float64, copy=False)
    found = np.full(len(values), np.nan)
    found[present] = values[present]
    return found


def _others(rows: Declared) -> Floats:
    """Numbers that numpy has no type for: decimals, wide whole numbers, and text."""
    if isinstance(rows, nw.Series) and rows.dtype == nw.Decimal:
        return _decimals(rows.to_polars())
    return by_distinct(rows, one.number, np.nan)


def _decimals(rows: pl.Series) -> Floats:
    """The nearest floats: of short decimals by one division of exact floats, of all others one by one."""
    import polars as pl

    scale = int(getattr(rows.dtype, "scale", _MAX_SCALE + 1))
    digits = rows.to_physical().cast(pl.Int64, strict=False)  # of 38 at most
    whole = digits.fill_null(0).to_numpy()
    known = digits.is_not_null().to_numpy() & (np.abs(whole) <= _MAX_DIGITS) & (scale <= _MAX_SCALE)
    found: Floats = np.where(known, whole / float(10**scale), np.nan)
    left = rows.is_not_null().to_numpy() & ~known
    if left.any():
        found[left] = each(rows.filter(pl.Series(left)).to_list(), one.number, np.nan)
    return found


def _present(rows: Declared) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Numbers, and which rows have one if not all do. No cast of a backend: pyarrow's raises beyond 2**53."""
    if isinstance(rows, np.ndarray):
        mask = np.ma.getmaskarray(rows) if isinstance(rows, np.ma.MaskedArray) else None
        return np.asarray(rows), None if mask is None or not mask.any() else ~mask
    if rows.dtype.is_float():
        return np.asarray(rows.cast(nw.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64), None
    filled = np.asarray(rows.fill_null(False if rows.dtype == nw.Boolean else 0).to_numpy())
    missing = np.asarray(rows.is_null().to_numpy(), dtype=bool)
    if filled.dtype.kind not in "biu":
        raise TypeError("not whole numbers")
    return filled, ~missing if missing.any() else None


def by_distinct(rows: Rows, image: Callable[[Any], Any], missing: float) -> NDArray[Any]:
    """The images of cells that are not numbers of a declared type."""
    native: Any = rows.to_native() if isinstance(rows, nw.Series) and rows.dtype == nw.String else None
    if nw.dependencies.is_polars_series(native):
        return _parsed(native) if image is one.number else _distinct(native, image, missing)
    return each(_listed(rows), image, missing)


def _parsed(rows: pl.Series) -> Floats:
    """The numbers that text spells: by polars, which agrees with ``number`` where it finds one, then one by one."""
    import polars as pl

    values = rows.cast(pl.Float64, strict=False)
    if values.null_count() == rows.null_count():
        return values.to_numpy() + 0.0  # nulls become NaN
    left = (values.is_null() & rows.is_not_null()).to_numpy()
    found = values.to_numpy() + 0.0
    found[left] = _stripped(rows.filter(pl.Series(left)))
    return found


def _stripped(rows: pl.Series) -> Floats:
    """The same for text that may have white space around it."""
    import polars as pl

    values = rows.str.strip_chars().cast(pl.Float64, strict=False)
    left = values.is_null().to_numpy()
    found = values.to_numpy() + 0.0
    if left.any():
        found[left] = _distinct(rows.filter(pl.Series(left)), one.number, np.nan)
    return found


def _distinct(rows: pl.Series, image: Callable[[Any], Any], missing: float) -> NDArray[Any]:
    """Text by its distinct values."""
    import polars as pl

    kind: Any = pl.Float64 if isinstance(missing, float) else pl.Int64
    values = rows.unique().drop_nulls()
    known = pl.Series([image(cell) for cell in values.to_list()], dtype=kind)
    if not len(values):
        return np.asarray(pl.repeat(missing, len(rows), dtype=kind, eager=True).to_numpy())
    return np.asarray(rows.replace_strict(values, known, default=missing, return_dtype=kind).to_numpy())


def _listed(rows: Rows) -> list[Any]:
    if isinstance(rows, list):
        return rows
    return cells_of(rows) if isinstance(rows, nw.Series) else one.sequence(rows) or []


def images(rows: Rows, read: Callable[[], NDArray[Image]]) -> NDArray[Image]:
    """The images, or an error about the declared type alone."""
    with muted():
        worked, found = attempt(read)
    if not worked or found is None:
        kind = "objects" if isinstance(rows, list) else _name(rows)
        raise TypeError(f"a column of type {kind} could not be read; convert it to floats or text first")
    return found
