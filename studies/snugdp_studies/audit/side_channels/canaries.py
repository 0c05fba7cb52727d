"""Layer B, canaries: private values that occur nowhere else, looked for wherever something could have kept them.

After a release, a refusal or an error a canary must not be in any representation, pickle, attribute, message or log.
Frames of a traceback hold the caller's own data, so local variables are out of scope: a debugger sees what the caller
sees. A search that finds nothing proves nothing unless it finds what was planted: ``power`` plants.
"""

import io
import pickle
import re
import struct
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from snugdp.audit.finding import Finding
from snugdp.audit.side_channels.calls import watch
from snugdp_studies.audit.side_channels.inputs import NAMES, Given

NUMBER = 731415.9265358979  # a cell
LABEL = 58_271_943  # a label, a group or a number of votes
TEXT = "Quetzalcoatl-7731"
ROWS = 7919  # how many rows there are

_DEEP = 60
_CALLS = 10  # a chance of one tenth ten times
_DIGITS = re.compile(
    r"(?<![\w.])(731415(\.9\d*)?|731416(\.0)?|7\.3141\d*e\+?0?5|58271943(\.0)?|5\.8271943e\+?0?7|7919(\.0)?)(?!\w|\.\d)"
)  # not among the digits of noise, nor in hashes


def marks() -> dict[str, bytes]:
    """The canaries as bytes, in every form in which numbers and text are stored.

    All are at least eight bytes long, so that noise looks like one with a chance below 2**-40. Short numbers count when
    two of them stand side by side, as in an array; a single one is found as an attribute.
    """
    found = {f"the number as {width}": struct.pack(width, NUMBER) for width in ("<d", ">d")}
    found |= {f"the number as {width}": 2 * struct.pack(width, NUMBER) for width in ("<f", ">f")}
    found |= {f"the label as {width}": struct.pack(width, LABEL) for width in ("<q", ">q", "<d", ">d")}
    found |= {f"the label as {width}": 2 * struct.pack(width, LABEL) for width in ("<i", ">i")}
    found |= {f"the text as {code}": TEXT.encode(code) for code in ("utf-8", "utf-16-le", "utf-32-le")}
    found |= {f"the number of rows as {width}": struct.pack(width, ROWS) for width in ("<q", "<d")}
    return found


def seen_in(content: str | bytes) -> str:
    """Which canary is in a text or in bytes; nothing if there is none.

    >>> seen_in("n = 7919"), seen_in(np.array([NUMBER]).tobytes()), seen_in("nobody")
    ('digits', 'the number as <d', '')
    """
    if isinstance(content, str) and _DIGITS.search(content):
        return "digits"
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return next((name for name, mark in marks().items() if mark in raw), "")


def search(result: Any) -> dict[str, str]:
    """Where canaries are in an object: its representations, its pickles, and all that can be reached from it."""
    places: dict[str, Callable[[], str | bytes]] = {
        "repr": lambda: repr(result),
        "str": lambda: str(result),
        "format": lambda: f"{result}",
        "html": lambda: str(getattr(result, "_repr_html_", str)()),
        "pickle": lambda: pickle.dumps(result),
        "text pickle": lambda: pickle.dumps(result, protocol=0).decode("latin-1"),
        "joblib": lambda: _dumped(result),
    }
    found = {}
    for place, read in places.items():
        _, content = watch(read)
        if content is not None and (mark := seen_in(content)):
            found[place] = mark
    for path, value in reached(result):
        if mark := _mark_of(value):
            found[path] = mark
    return found


def search_error(error: BaseException | None) -> dict[str, str]:
    """Where canaries are in an error, in those that it carries along, and in the traceback as it is printed."""
    found, known = {}, set[int]()
    if error is not None and (mark := seen_in("".join(traceback.format_exception(error)))):
        found["traceback"] = mark
    while error is not None and id(error) not in known:
        known.add(id(error))
        said = [str(error), repr(error), *map(str, getattr(error, "__notes__", []))]
        for path, value in [("message", text) for text in said] + list(reached(error.args)):
            if mark := _mark_of(value):
                found[f"{type(error).__name__}, {path}"] = mark
        error = error.__cause__ or error.__context__
    return found


def canaries(name: str, release: Callable[[Any], Any], brought: Iterable[tuple[str, Callable[[], Any]]]) -> Finding:
    """One finding about a release: whether something of the canaries is kept or said.

    ``brought``: data with canaries, by names, made anew for every call.
    """
    found, count = [], 0
    for what, make in brought:
        count += 1
        for place, mark in _again_and_again(release, make).items():
            found.append(f"{what}: {mark} in {place}")
    claim = "no private value is kept or said: not in repr, pickle, attributes, errors, warnings, output or logs"
    measured = f"{len(found)} canaries found after {count} calls"
    return Finding("B", name, claim, measured, passed=count > 0 and not found, detail="; ".join(found[:5]))


def columns(rows: int = ROWS) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Columns with canaries; those that are refused among them."""
    yield "numbers", lambda: np.full(rows, NUMBER)
    yield "labels", lambda: [LABEL] * rows
    yield "text", lambda: [TEXT] * rows
    yield "text array", lambda: np.array([TEXT] * 50)
    yield "table", lambda: np.full((50, 2), NUMBER)
    yield "dict", lambda: {"a": NUMBER}
    yield "generator", lambda: (NUMBER for _ in range(rows))


def tables() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Tables with canaries; those that are refused among them."""
    width = len(NAMES)

    def given(X: Any, y: Any) -> Given:
        return Given(X, y, groups=[f"{TEXT} {place}" for place in range(ROWS)])

    yield "array", lambda: given(np.full((ROWS, width), NUMBER), np.arange(ROWS) % 2)
    yield "list", lambda: given(np.full((ROWS, width), NUMBER).tolist(), [TEXT] * ROWS)
    yield "labels", lambda: given(np.zeros((ROWS, width)), np.full(ROWS, LABEL))
    yield "objects", lambda: given(np.full((ROWS, width), TEXT, dtype=object), np.ones(ROWS))
    yield "text", lambda: given(np.full((ROWS, width), TEXT), np.ones(ROWS))
    yield "ragged", lambda: given([[NUMBER], [NUMBER, NUMBER]] * ROWS, np.ones(2 * ROWS))
    yield "flat", lambda: given([NUMBER] * ROWS, np.ones(ROWS))
    yield "nested", lambda: given(np.full((1, ROWS, width), NUMBER), np.ones(1))
    yield "lengths", lambda: given(np.full((ROWS, width), NUMBER), np.full(50, LABEL))
    yield "complex", lambda: given(np.full((ROWS, width), NUMBER * 1j), np.ones(ROWS))


def power() -> Finding:
    """Whether canaries are found that are planted: in every place, and in every form."""
    plants: dict[str, Callable[[Any], Any]] = {
        "attribute": lambda data: _Kept(kept=data[0]),
        "deep attribute": lambda data: _Kept(inner=[{"x": (_Kept(y=data[:1].astype(np.float32)),)}]),
        "count": lambda data: _Kept(n=len(data)),
        "text": lambda data: _Kept(said=f"mean {np.mean(data)}"),
        "rounded text": lambda data: _Kept(said=f"first {data[0]:.0f}"),
        "printed": lambda data: print(data[0]),
        "error": lambda data: [].index(data[0]),
        "carried error": lambda data: _raise_after(data),
        "big-endian array": lambda data: _Kept(array=data[:2].astype(">f8")),
        "slots": lambda data: _Slotted(data[0]),
        "bytes": lambda data: _Kept(raw=TEXT.encode()),
    }
    missed = [name for name, plant in plants.items() if not _one(plant, lambda: np.full(ROWS, NUMBER))]
    measured = f"{len(plants) - len(missed)} of {len(plants)} found"
    return Finding("B", "canaries", "planted canaries are found", measured, not missed, ", ".join(missed))


def reached(value: Any) -> Iterator[tuple[str, Any]]:
    """All that can be reached from an object through attributes, slots and containers, with the path to it."""
    stack, known = [("it", value, 0)], set[int]()
    while stack:
        path, here, depth = stack.pop()
        if id(here) in known or depth > _DEEP or isinstance(here, type) or _is_code(here):
            continue
        known.add(id(here))
        yield path, here
        parts = {f".{key}": part for key, part in getattr(here, "__dict__", {}).items()}
        for kind in type(here).__mro__:
            slots = vars(kind).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                parts[f".{slot}"] = getattr(here, slot, None)
        if isinstance(here, dict):
            parts |= {f"[{place}]": part for place, pair in enumerate(here.items()) for part in [list(pair)]}
        elif isinstance(here, list | tuple | set | frozenset):
            parts |= {f"[{place}]": part for place, part in enumerate(here)}
        stack += [(path + name, part, depth + 1) for name, part in parts.items()]


class _Kept:
    """What a careless fit leaves."""

    def __init__(self, **kept: Any) -> None:
        vars(self).update(kept)


class _Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept


def _raise_after(data: Any) -> None:
    try:
        {}[data[0]]
    except KeyError:
        raise RuntimeError("something failed") from None


def _again_and_again(release: Callable[[Any], Any], make: Callable[[], Any]) -> dict[str, str]:
    """The places where canaries are found in every one of many calls.

    A released count with noise may be the number of rows by chance, in one of ten calls if its noise is small: what is
    kept is there every time.
    """
    found = _one(release, make)
    for _ in range(_CALLS - 1):
        if not found:
            return found
        later = _one(release, make)
        found = {place: mark for place, mark in found.items() if place in later}
    return found


def _one(release: Callable[[Any], Any], make: Callable[[], Any]) -> dict[str, str]:
    """All places where canaries are found after one call."""
    caught: list[BaseException] = []

    def call() -> Any:
        try:
            return release(make())
        except Exception as error:
            caught.append(error)
            return None

    seen, result = watch(call)
    found = {} if result is None else search(result)
    for error in caught:
        found |= search_error(error)
        error.__traceback__ = None
    for place, text in {"output": seen.printed, "warnings": str(seen.warned), "logs": str(seen.logged)}.items():
        if mark := seen_in(text):
            found[place] = mark
    return found


def _mark_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return seen_in(value.tobytes()) or seen_in(
            "" if value.dtype.kind in "OMm" else str(value.ravel()[:50].tolist())
        )
    if isinstance(value, int | float | str | bytes | np.generic | complex):
        return seen_in(value if isinstance(value, str | bytes) else str(value))
    return ""


def _is_code(value: Any) -> bool:
    return callable(value) and not hasattr(value, "__dict__")


def _dumped(result: Any) -> bytes:
    import joblib  # type: ignore[import-untyped]

    buffer = io.BytesIO()
    joblib.dump(result, buffer)
    return buffer.getvalue()
