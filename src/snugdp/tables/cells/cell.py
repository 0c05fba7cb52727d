"""One cell: what it stands for as a number, a boolean, a label, a text or a moment. The only rules there are.

Each function is total: it has an image for every object, raises and warns nothing, and runs no code of the cell's own
class (a subclass of a number or of text is read as its base). So the image of a cell is a function of that cell.

Libraries give a column the type that all its cells have in common, so one odd cell can turn the others into text, or
whole numbers into floats. The rules undo that: ``1``, ``1.0``, ``True``, ``"1"`` and ``b"1"`` have the same image.
A cell that holds a list of one cell is that cell: ``[[1.0], [2.0]]`` is a column, and a longer list is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np

from snugdp.secrecy.silence import attempt

T = TypeVar("T")
Moment: TypeAlias = tuple[str, int]
Label: TypeAlias = float | str | Moment

MOMENT = "moment"
DAY = 86_400_000_000  # microseconds
_REALS: tuple[Any, ...] = (float, int, np.integer, np.floating, np.bool_, Decimal, Fraction)
_COMPLEX = (complex, np.complexfloating)
_WORDS = {"true": 1.0, "false": 0.0}
_TRUE, _FALSE = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
_MAX_PLACES = 400  # of a decimal that is written out
_MISSING_WORDS = ("nan", "+nan", "-nan", "nat")
_NUMBER_STARTS = frozenset("0123456789+-.(iInNtTfF")
_EPOCH = datetime(1970, 1, 1)


def number(cell: Any) -> float:
    """The cell as a float: NaN for what is not a number, infinity for what is beyond the floats.

    >>> [number(cell) for cell in (1, "1.0", True, "True", b"1", [1], "?", None, 1j, [1, 2])]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, nan, nan, nan, nan]
    """
    return read_or(_number, cell, math.nan) + 0.0  # one zero: a negative one would be another cell to some models


def truth(cell: Any) -> float:
    """1 for yes, 0 for no, NaN for anything else.

    >>> [truth(cell) for cell in (True, 0, "1.0", "yes", "N", 2, None)]
    [1.0, 0.0, 1.0, 1.0, 0.0, nan, nan]
    """
    return read_or(_truth, cell, math.nan)


def label(cell: Any) -> Label | None:
    """What tells one label from another: a number, a text or a moment; None for what is missing.

    Empty text is missing, as it is in a CSV file. Numbers are compared as floats, and a fraction that single precision
    holds exactly by the shortest decimal that names it there: a column of single precision may have been widened, or
    turned into text.

    >>> [label(cell) for cell in (1, "1", 1.0, True, "red", None, "nan", 2**53 + 1)]
    [1.0, 1.0, 1.0, 1.0, 'red', None, None, 9007199254740992.0]
    >>> label(np.float32(0.1)) == label(0.1) == label("0.1") == label(float(np.float32(0.1)))
    True
    >>> label(date(1970, 1, 2)) == label("1970-01-02") == label(np.datetime64("1970-01-02T00:00")) != label(1)
    True
    """
    return read_or(_label, cell, None)


def text(cell: Any) -> str | None:
    """The cell as text, one for each label; None for what is missing.

    >>> [text(cell) for cell in (1, 1.0, "1", 0.5, "red", date(1970, 1, 2), float("nan"), object())]
    ['1', '1', '1', '0.5', 'red', '1970-01-02', None, None]
    """
    found = label(cell)
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, float):
        return str(int(found)) if found.is_integer() else repr(found)
    return attempt(lambda: _spelled(found[1]))[1]


def digits(cell: Any) -> str | None:
    """A number as it is written, with all its digits; text as it is. None for floats, which may have lost some.

    >>> [digits(cell) for cell in (2**53 + 1, np.int64(-7), "07", b"7", Decimal("1.50"), 2.0**53, None)]
    ['9007199254740993', '-7', '07', '7', '1.50', None, None]
    """
    return read_or(_digits, cell, None)


def moment(cell: Any) -> int | None:
    """Microseconds since 1970 of a date, a time or text that spells one; None for anything else.

    >>> moment("1970-01-02") == moment(date(1970, 1, 2)) == 86_400_000_000, moment("?")
    (True, None)
    """
    return read_or(_moment, cell, None)


def read_or(read: Callable[[Any], T], cell: Any, missing: T) -> T:
    """What a function makes of a cell, or of the only entry of a list; ``missing`` where it raises."""
    worked, value = attempt(lambda: read(_inner(cell)))
    return missing if not worked else value  # type: ignore[return-value]


def sequence(cell: Any) -> list[Any] | None:
    """The entries of a list, a tuple, a range or a one-dimensional array; None for anything else.

    What a subclass does when it is asked for its length or its entries is not run. ``length`` says how many there are
    without making a list of them.

    >>> sequence((1, 2)), sequence(np.zeros(2)), sequence("ab"), sequence(1)
    ([1, 2], [0.0, 0.0], None, None)
    """
    kind = type(cell)
    if kind is list:
        return cell  # type: ignore[no-any-return]
    if issubclass(kind, list):
        return list.__getitem__(cell, slice(None))
    if issubclass(kind, tuple):
        return list(tuple.__getitem__(cell, slice(None)))
    if kind is range:
        return list(cell)
    if issubclass(kind, np.ndarray) and _shape(cell) != () and len(_shape(cell)) == 1:
        return _entries(cell)
    return None


def length(cell: Any) -> int | None:
    """How many entries ``sequence`` would find.

    >>> length((1, 2)), length(range(10**15)), length("ab")
    (2, 1000000000000000, None)
    """
    kind = type(cell)
    for base in (list, tuple, range):
        if issubclass(kind, base):
            return int(base.__len__(cell))
    return int(_shape(cell)[0]) if issubclass(kind, np.ndarray) and len(_shape(cell)) == 1 else None


def _shape(array: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = np.ndarray.shape.__get__(array)
    return found


def _entries(array: Any) -> list[Any]:
    """Dates stay numpy's: as Python's, nanoseconds would become whole numbers."""
    kept = array.dtype.kind in "mM"
    return list(array) if kept else np.ma.MaskedArray.tolist(array) if np.ma.isMA(array) else np.ndarray.tolist(array)


def _inner(cell: Any) -> Any:
    """The only entry of a list, or of an array of no dimension; any other cell as it is."""
    kind = type(cell)
    if not issubclass(kind, list | tuple | np.ndarray):
        return cell
    if issubclass(kind, np.ma.MaskedArray) and np.ma.getmaskarray(cell).any() and _shape(cell) in ((), (1,)):
        return None
    if issubclass(kind, np.ndarray) and _shape(cell) == ():
        return np.ndarray.view(cell, np.ndarray)[()]
    entries = sequence(cell) if length(cell) == 1 else None
    return cell if entries is None else entries[0]


def _string(cell: Any) -> str | None:
    """Text that every library can hold."""
    kind = type(cell)
    if issubclass(kind, bytes):
        return bytes.decode(cell)
    if not issubclass(kind, str):
        return None
    found = str.__str__(cell)
    return found if found.isascii() else found.encode().decode()


def _number(cell: Any) -> float:
    spelled = _string(cell)
    return _real(cell) if spelled is None else _parsed(spelled)


def _real(cell: Any) -> float:
    """A number by its type. It is never asked, only its base: what a subclass would print or raise is not run."""
    kind = type(cell)
    if issubclass(kind, np.timedelta64):  # numpy counts durations among the whole numbers
        return math.nan
    if issubclass(kind, _COMPLEX):
        plain = complex.__add__(cell, 0) if issubclass(kind, complex) else complex(cell)
        return plain.real if plain.imag == 0 else math.nan
    base = next((base for base in _REALS if issubclass(kind, base)), None)
    if base is None:
        return math.nan
    if base is Fraction:
        cell = Fraction(Fraction.numerator.fget(cell), Fraction.denominator.fget(cell))  # type: ignore[attr-defined]
    try:
        return float(base.__float__(cell))
    except OverflowError:
        return math.inf if base.__gt__(cell, 0) else -math.inf


def _parsed(spelled: str) -> float:
    """The number that text spells, as every loader reads it: no digits but ASCII, no underscores."""
    bare = spelled.strip()
    if bare[:1] not in _NUMBER_STARTS or "_" in bare or not bare.isascii():
        return math.nan
    word = _WORDS.get(bare.lower())
    if word is not None:
        return word
    worked, value = attempt(lambda: float(bare))
    if worked and value is not None:
        return value
    worked, other = attempt(lambda: complex(bare))
    return _real(other) if worked and other is not None else math.nan


def _digits(cell: Any) -> str | None:
    spelled = _string(cell)
    if spelled is not None:
        return spelled
    kind = type(cell)
    if issubclass(kind, int):
        return int.__repr__(cell)
    if issubclass(kind, np.integer):
        return int.__repr__(np.generic.item(cell))
    if issubclass(kind, Fraction) and Fraction.denominator.fget(cell) == 1:  # type: ignore[attr-defined]
        return int.__repr__(Fraction.numerator.fget(cell))  # type: ignore[attr-defined]
    if issubclass(kind, Decimal):
        return Decimal.__format__(cell, "f") if Decimal.adjusted(cell) < _MAX_PLACES else Decimal.__str__(cell)
    return None


def _truth(cell: Any) -> float:
    spelled = _string(cell)
    word = "" if spelled is None else spelled.strip().lower()
    if word in _TRUE or word in _FALSE:
        return float(word in _TRUE)
    value = _number(cell)
    return value if value in (0.0, 1.0) else math.nan


def _label(cell: Any) -> Label | None:
    spelled = _string(cell)
    if spelled is not None and (not spelled or spelled.strip().lower() in _MISSING_WORDS):
        return None
    value = _number(cell)
    if not math.isnan(value):
        return in_single(value)
    worked, found = attempt(lambda: _moment(cell))
    return spelled if not worked or found is None else (MOMENT, found)


def in_single(value: float) -> float:
    """A fraction that single precision holds exactly, by its shortest decimal there; any other float as it is."""
    if value.is_integer():
        return value + 0.0  # no negative zero
    with np.errstate(all="ignore"):
        single = np.float32(value)
    return float(str(single)) if float(single) == value else value


def _moment(cell: Any) -> int | None:
    kind = type(cell)
    if issubclass(kind, np.datetime64):
        cell = str(np.datetime64(cell, "us"))
    spelled = _string(cell)
    if spelled is not None:
        cell = datetime.fromisoformat(spelled.strip())
    if issubclass(type(cell), datetime):
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC)
        found = datetime(cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond)
    elif issubclass(type(cell), date):
        found = datetime(cell.year, cell.month, cell.day)
    else:
        return None
    since = found - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _spelled(microseconds: int) -> str:
    found: str = np.datetime64(microseconds, "us").item().isoformat()
    return found.removesuffix("T00:00:00")
