"""What the cells of any column stand for: a number, or else a text; both missing where the cell is.

That is the label of a cell (``tables.cells``), column by column and at once: 1, 1.0, True and "1" are one number, and
the date 1970-01-02 and the text that spells it are one text, behind a mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import cell as one
from snugdp.tables.cells import declared, labelled, moments, numbers, type_name
from snugdp.tables.cells.columns import cells_of
from snugdp.tables.cells.dates import MISSING
from snugdp.tables.passes.counts.keys import KeyColumn, KeyKind
from snugdp.tables.persons.hashing import Words, text_words
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources.base import Frame

Floats = NDArray[np.float64]

MAX_EXACT = 2.0**53  # whole numbers below it are the image of no other number
_MARK = "\x01"  # before the microseconds of a date, and before a text that begins with it
_LIST = "\x02"  # before the cells of a list
_MISSING_WORDS = ["", "nan", "+nan", "-nan", "nat"]
_MAY_BE_DATE = r"^[0-9]{4}(?:-[0-9]{2}-[0-9]{2}|[0-9]{4}|-?W[0-9]{2})"
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))  # as ``str.strip`` has them: polars knows fewer
_WHOLE = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"
_LABELS = KeyColumn("", KeyKind.LABEL)


@dataclass(frozen=True, eq=False, repr=False)
class Image:
    """The cells of a column. ``number``: NaN where a cell is none; ``text``: null where it is none. Private.

    ``lost``: identifiers that may stand for several persons, if there are any.
    """

    number: Floats
    text: pl.Series | None = None
    lost: NDArray[np.bool_] | None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are neither."""
        none = np.isnan(self.number)
        return none if self.text is None else none & self.text.is_null().to_numpy()

    def words(self, key: np.uint64, *, coarse: bool = False) -> Words:
        """A keyed word for every cell. Different numbers have different words.

        ``coarse``: but for fractions that are the same in single precision, since those may have the same label.
        """
        found = bits(_coarse(self.number) if coarse else self.number) ^ key
        if self.text is None:
            return found
        is_text = self.text.is_not_null().to_numpy() & np.isnan(self.number)
        if is_text.any():
            found[is_text] = text_words(self.text.filter(pl.Series(is_text)), key)
        return found


def bits(values: Floats) -> Words:
    """The 64 bits of floats, with one zero and one NaN."""
    plain = values + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain.view(np.uint64)


def _coarse(number: Floats) -> Floats:
    with np.errstate(all="ignore"):
        single = number.astype(np.float32).astype(np.float64)
        return np.where(np.floor(number) == number, number, single)


def image(column: nw.Series[Any], *, lists: bool = True) -> Image:
    """The cells of a column of any type; what no reader of cells can read is missing.

    ``lists``: whether cells that are lists are told apart; otherwise all but those of one entry are missing.
    """
    dtype = declared(column)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return Image(numbers(column.to_native()) + 0.0)
    if dtype in (nw.Date, nw.Datetime):
        return Image(np.full(len(column), np.nan), _marked(moments(column.to_native())))
    if dtype in (nw.Object, nw.List, nw.Array):
        return of_text(_texts(cells_of(column), lists))
    return of_text(_LABELS.raw(column).cast(pl.String))


def person_image(column: nw.Series[Any]) -> Image:
    """What tells persons apart: numbers below 2**53, larger ones by their digits, and text.

    Floats from 2**53 on have lost digits, so that several persons may have the same one: they are ``lost``. So are such
    numbers, and text that spells them, in a column that one other cell would have made floats: see ``guessed``.
    """
    found = image(column, lists=False)
    number = _in_single(found.number)
    large = np.abs(number) >= MAX_EXACT
    if not large.any():
        return Image(number, found.text)
    none: Any = pl.repeat(None, len(number), dtype=pl.String, eager=True)
    digits = none if declared(column).is_float() or guessed(column.to_native()) else _digits(column)
    text = (none if found.text is None else found.text).zip_with(pl.Series(~large), digits)
    return Image(number, text, large & digits.is_null().to_numpy())


def guessed(native: Any) -> bool:
    """Whether the type of a column is one that pandas and numpy guess from all cells together.

    Of the same whole numbers they make integers, floats (a cell is missing), text or objects (a cell is text). Types
    that have a missing value of their own, such as "Int64", "string" and those of Arrow, are not guessed.
    """
    dtype = getattr(native, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is not None and type(dtype).__name__ == "CategoricalDtype":
        return guessed(categories)
    dtype = getattr(dtype, "subtype", dtype)  # of pandas' sparse columns
    missing = getattr(dtype, "na_value", None) if type(dtype).__name__ == "StringDtype" else None
    return isinstance(dtype, np.dtype) or isinstance(missing, float)


def rows_of_persons(frame: Frame, name: str) -> tuple[Frame, Image]:
    """The rows of a frame without those whose identifier in this column is lost, and the identifiers."""
    found = person_image(frame.get_column(name))
    if found.lost is None or not found.lost.any():
        return frame, found
    kept = np.flatnonzero(~found.lost)
    return frame[kept], Image(found.number[kept], None if found.text is None else found.text.gather(kept))


def _digits(column: nw.Series[Any]) -> pl.Series:
    """All digits of whole numbers, however they are spelled; other text as it is, and null for floats."""
    dtype, native = declared(column), column.to_native()
    if type(getattr(native, "dtype", None)).__name__ == "CategoricalDtype":  # pandas has categories of any type
        texts: pl.Series = pl.Series([*map(one.digits, native.cat.categories.tolist()), None], dtype=pl.String)
        places = native.cat.codes.to_numpy().astype(np.int64)
        texts = texts.gather(pl.Series(np.where(places < 0, len(texts) - 1, places)))
    elif dtype.is_integer():
        return column.to_polars().cast(pl.String)
    elif dtype.is_decimal():
        texts = column.to_polars().cast(pl.String)
    elif dtype in (nw.String, nw.Enum) or (dtype == nw.Categorical and column.implementation.is_polars()):
        texts = _LABELS.raw(column).cast(pl.String)
    else:
        texts = pl.Series(list(map(one.digits, cells_of(column))), dtype=pl.String)
    bare = texts.str.strip_chars(_SPACES)
    return bare.str.replace(_WHOLE, "$1$2")


def written(column: nw.Series[Any]) -> pl.Series | None:
    """Each cell as it is written, where its image may not be all of it: 2**53 + 1, "07". None where it always is."""
    dtype = declared(column)
    if dtype.is_float() or dtype.is_temporal() or dtype == nw.Boolean:
        return None
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _LABELS.raw(column)
    if dtype.is_integer() or dtype.is_decimal():
        return column.to_polars().to_physical().cast(pl.String)
    return pl.Series([attempt(lambda cell=cell: _spelled(cell))[1] for cell in cells_of(column)], dtype=pl.String)  # type: ignore[misc]


def _spelled(cell: Any) -> str | None:
    if type(cell) is bytes:
        return cell.hex()
    return str(cell).encode(errors="backslashreplace").decode() if type(cell) in (int, str, float) else None


def check_person(name: str, dtype: DType) -> None:
    """An error about the declared type of a column that cannot tell persons apart."""
    if dtype.is_float() and dtype != nw.Float64:
        raise TypeError(
            f'the person column "{name}" must not be in single precision: as text, large numbers would lose digits. '
            "Use whole numbers or text"
        )
    if not labelled(dtype):
        raise TypeError(
            f'the person column "{name}" must hold text, whole numbers or dates, not {type_name(dtype)}; convert it '
            "first"
        )


def of_text(texts: pl.Series) -> Image:
    """What texts stand for, as ``cell.label`` reads each of them."""
    number = numbers(texts)
    bare = texts.str.strip_chars(_SPACES)
    none = pl.Series(~np.isnan(number)) | bare.str.to_lowercase().is_in(_MISSING_WORDS) & (bare != "") | (texts == "")
    text = pl.select(pl.when(~none).then(pl.when(texts.str.starts_with(_MARK)).then(_MARK + texts).otherwise(texts)))
    found = text.to_series()
    may_be = (found.is_not_null() & bare.str.contains(_MAY_BE_DATE)).fill_null(False)
    if may_be.any():
        dates = _marked(moments(texts.filter(may_be)))
        spelled = pl.Series(np.flatnonzero(may_be.to_numpy())).filter(dates.is_not_null())
        found = found.scatter(spelled, dates.drop_nulls())
    return Image(number + 0.0, found)


def _marked(microseconds: NDArray[np.int64]) -> pl.Series:
    """Dates as text that no other text is; null for none."""
    found = pl.Series(microseconds)
    return pl.select(pl.when(found != MISSING).then(pl.lit(_MARK) + found.cast(pl.String))).to_series()


def _texts(cells: list[Any], lists: bool) -> pl.Series:
    """Text that has the label of each cell."""
    if {*map(type, cells)} <= {str, type(None)}:
        worked, plain = attempt(lambda: pl.Series(cells, dtype=pl.String))
        if worked and plain is not None:
            return plain
    return pl.Series([_text(cell, lists) for cell in cells], dtype=pl.String)


def _text(cell: Any, lists: bool) -> str | None:
    """The text of a cell; that of a list has the texts of its entries, each behind its length."""
    found = one.text(cell)
    entries = attempt(lambda: one.sequence(cell))[1] if found is None and lists else None
    if entries is None:
        return found
    texts = [one.text(entry) for entry in entries]
    return _LIST + "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)


def _in_single(number: Floats) -> Floats:
    """Fractions that single precision holds, by their shortest decimals: as ``cell.label`` has them."""
    with np.errstate(all="ignore"):
        odd = (np.floor(number) != number) & (number.astype(np.float32) == number)
    if odd.any():
        distinct, which = np.unique(number[odd], return_inverse=True)
        number = number.copy()
        number[odd] = np.array([one.in_single(value) for value in distinct.tolist()])[which]
    return number
