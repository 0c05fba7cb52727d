"""Files, folders and patterns: listed once, checked up front, read one after the other, and never half read."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar, cast

import narwhals as nw
import polars as pl

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import type_name
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources.base import Batch, Partition, Source, Stamp, TableError, guarded, listed
from snugdp.tables.sources.csv import Csv, TextFormat
from snugdp.tables.sources.frames import streamed

T = TypeVar("T")


class Format(Protocol):
    """How files of one kind are read."""

    def types(self, path: Path) -> dict[str, DType]:
        """Names and declared types, without a look at the rows."""

    def verify(self, path: Path) -> None:
        """An error if the content is not what such files declare to be, which is public."""

    def batches(self, path: Path, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows."""


@dataclass(frozen=True)
class PolarsFormat:
    """Parquet or Arrow: typed files that polars streams. The footer says how many rows there must be."""

    scan: Callable[[Path], pl.LazyFrame]

    def types(self, path: Path) -> dict[str, DType]:
        """From the footer."""
        return dict(nw.from_native(self.scan(path)).collect_schema())

    def verify(self, path: Path) -> None:
        """Nothing: the types of a column hold for all its cells."""

    def batches(self, path: Path, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, streamed; an error if they are not as many as the footer says."""
        size, seen = path.stat().st_size, 0
        rows = self.scan(path).select(pl.len()).collect().item()
        for batch in streamed(self.scan(path).select(columns), len(columns)):
            seen += len(batch.frame)
            yield replace(batch, size=size * len(batch.frame) // rows)
        if seen != rows:
            raise TableError(f"{path} could not be read to its end: write the file again")


def _scan_parquet(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _scan_arrow(path: Path) -> pl.LazyFrame:
    return pl.scan_ipc(path, glob=False, hive_partitioning=False)


_PARQUET, _ARROW, _TEXT = PolarsFormat(_scan_parquet), PolarsFormat(_scan_arrow), TextFormat()
_BY_LINES = TextFormat(Csv("", multiline=False))
_FORMATS: dict[str, Format] = {
    ".parquet": _PARQUET, ".pq": _PARQUET, ".arrow": _ARROW, ".feather": _ARROW, ".ipc": _ARROW,
    ".csv": _TEXT, ".csv.gz": _TEXT,
}  # fmt: skip


@dataclass(frozen=True)
class FilePartition(Partition):
    """One file, as it was when it was opened."""

    stamp: Stamp
    format: Format = field(repr=False)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.stamp.path

    def types(self) -> dict[str, DType]:
        """Names and declared types."""
        if not os.access(self.path, os.R_OK):
            raise TableError(f"{self.path} must not be read: check its permissions")
        found = _asked(lambda: self.format.types(self.path), self._unread)
        if self.format is _ARROW and attempt(lambda: _wrong_columns(self.path))[1]:  # polars takes equal names for one
            raise TableError(self._unread())
        return found

    def _unread(self) -> str:
        """Why there are no types: a footer that pyarrow can read says what polars does not take, or there is none."""
        worked, wrong = attempt(lambda: _wrong_columns(self.path))
        if worked and wrong:
            return f"{self.path} has {wrong}"
        return f"{self.path} is not a whole file of its kind (perhaps cut off): write it again"

    def verify(self) -> None:
        """An error if the content of the file is not what its format declares to be."""
        _asked(lambda: self.format.verify(self.path), self._explain)
        self.stamp.check()

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows. An error if the file changed since it was opened."""
        self.stamp.check()
        yield from guarded(iter(self.format.batches(self.path, columns)), self._explain)
        self.stamp.check()

    def _explain(self) -> str:
        damaged = f"{self.path} is damaged, or its content does not fit its type: write it again"
        return self.stamp.difference() or damaged


def _wrong_columns(path: Path) -> str:
    """What polars does not take of the columns that a Parquet or Arrow file declares; nothing if it takes them all."""
    import pyarrow as pa

    if _format(path) is _PARQUET:
        from pyarrow.parquet import read_schema

        fields = read_schema(path)
    else:
        fields = pa.ipc.open_file(path).schema
    doubled = [name for name, times in Counter(fields.names).items() if times > 1]
    if doubled:
        return f"two columns that are called {listed(doubled)}: write it again with one of them renamed"
    wide = [each.name for each in fields if "decimal256" in str(each.type)]
    if wide:
        return (
            f"columns of decimals with more than 38 digits (decimal256), which cannot be read: {listed(wide)}. "
            "Write them again as float64, or as decimals of at most 38 digits"
        )
    return ""


def _asked(read: Callable[[], T], explain: Callable[[], str]) -> T:
    """What a look at a file finds, or an error that quotes nothing. Raised outside any handler."""

    def found() -> tuple[str, None] | tuple[None, T]:
        try:
            return None, read()
        except TableError as problem:
            return str(problem), None

    worked, pair = attempt(found)
    if not worked or pair is None:
        raise TableError(explain())
    problem, value = pair
    if problem is not None:
        raise TableError(problem)
    return cast(T, value)


class FileSource(Source):
    """One or more files of one format and with the same columns."""

    def __init__(self, parts: Sequence[FilePartition]) -> None:
        self._parts, self._is_verified = tuple(parts), False
        self.types = self._parts[0].types()
        first = str(self._parts[0].path)
        self.name = first if len(self._parts) == 1 else f"{first} (and {len(self._parts) - 1} more)"
        self.size = sum(part.stamp.size for part in self._parts)
        for part in self._parts[1:]:
            self._compare(part)

    @classmethod
    def of(cls, paths: Sequence[str | Path], *, multiline: bool = True) -> FileSource:
        """From paths, folders and patterns. ``multiline``: see ``Csv``; files of other formats have no such rule."""
        files = [file for path in paths for file in _expand(path)]
        forms = {id(form): form for form in (_format(file) for file in files)}
        if len(forms) > 1:
            raise TableError(f"the files are of different formats, such as {files[0]}: give files of one format")
        form = next(iter(forms.values()))
        return cls._opened(files, _BY_LINES if form is _TEXT and not multiline else form)

    @classmethod
    def of_text(cls, text: Csv) -> FileSource:
        """From CSV files that need options."""
        paths = [text.path] if isinstance(text.path, str | Path) else text.path
        files = [file for path in paths for file in _expand(path)]
        others = [file for file in files if _known(file.name) and _format(file) is not _TEXT]
        if others:
            raise TableError(f"{others[0]} is not a CSV file")
        return cls._opened(files, TextFormat(text))

    @classmethod
    def _opened(cls, files: Sequence[Path], form: Format) -> FileSource:
        stamps = [Stamp.of(file) for file in files]
        places = Counter(stamp.place for stamp in stamps)
        twice = {str(stamp.path) for stamp in stamps if places[stamp.place] > 1}
        if twice:
            raise TableError(f"a file is listed twice, and its rows would count twice: {listed(sorted(twice))}")
        return cls([FilePartition(stamp, form) for stamp in stamps])

    def partitions(self) -> Sequence[FilePartition]:
        """The files."""
        return self._parts

    def verify(self) -> None:
        """Whether all files are well formed, the first time that it is asked."""
        if not self._is_verified:
            for part in self._parts:
                part.verify()
            self._is_verified = True

    def _offer(self) -> str:
        if self._is_text:  # without a line of names, these would be somebody's row
            return (
                ". The first line of a CSV file must name the columns; otherwise use Csv(path, names=[...]). Cells are "
                "taken to be separated by commas, semicolons or tabs, whichever of them the first line has, and to be "
                'in UTF-8: otherwise use Csv(path, separator="|"), or write the file again in UTF-8'
            )
        return super()._offer()

    @property
    def _is_text(self) -> bool:
        return isinstance(self._parts[0].format, TextFormat)

    def _compare(self, part: FilePartition) -> None:
        """Names and kinds of types; the labels, units and lengths that some types carry do not count."""
        first, other = self._parts[0].path, part.path
        here, there = (
            {name: type_name(dtype) for name, dtype in types.items()} for types in (self.types, part.types())
        )
        if here == there:
            return
        if self._is_text:
            raise TableError(f"the first line of {other} names other columns than the first line of {first}")
        name = next(name for name in {**here, **there} if here.get(name) != there.get(name))
        raise TableError(
            f'column "{name}" is {here.get(name, "absent")} in {first}, but {there.get(name, "absent")} in {other}: '
            "all files must have the same columns"
        )


def _format(path: Path) -> Format:
    form = _FORMATS.get("".join(path.suffixes[-2:]).lower()) or _FORMATS.get(path.suffix.lower())
    if form is None:
        raise TableError(f"{path} has an unknown ending; known are {', '.join(_FORMATS)}")
    return form


def _expand(given: str | Path) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, sorted by name."""
    path = Path(given).expanduser()
    if "://" in str(given):
        raise TableError(f"{given} is not a local path: read it with Spark, or with polars, and give that table")
    if path.is_dir():
        return _folder(path)
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    files = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    if not files:
        raise TableError(f"no file matches {given}: check the pattern")
    folders = [file for file in files if file.is_dir()]
    if folders:
        raise TableError(f"the pattern {given} matches the folder {folders[0]}: let it match files, or give the folder")
    return files


def _folder(folder: Path) -> list[Path]:
    unread: list[str] = []
    files: list[Path] = []

    def failed(error: OSError) -> None:
        unread.append(str(error.filename))

    for place, names, entries in os.walk(folder, onerror=failed):
        names[:] = sorted(name for name in names if not name.startswith((".", "_")))
        files += [Path(place, entry) for entry in entries if not entry.startswith((".", "_"))]
        unread += [str(Path(place, name)) for name in names if Path(place, name).is_symlink()]
    if unread:
        raise TableError(f"the folder {unread[0]} cannot be entered, or is a link: check its permissions")
    if not files:
        raise TableError(f"the folder {folder} holds no file with one of the endings {', '.join(_FORMATS)}")
    unknown = sorted(file for file in files if not _known(file.name))
    if unknown:
        raise TableError(
            f"{unknown[0]} in the folder has an unknown ending; known are {', '.join(_FORMATS)}. Take it out of the "
            "folder, let its name start with _, or list the files"
        )
    return sorted(files)


def _known(entry: str) -> bool:
    return entry.lower().endswith(tuple(_FORMATS))
