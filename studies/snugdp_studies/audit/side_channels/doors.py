"""Layer B, the doors: one odd cell or row changes its own image and nothing else, in every container.

Every estimator and query of ``snugdp.__all__`` is rehearsed twice with the same noise: on a table in some container
with odd cells in it, and on a plain one with the images of these cells. Equal answers, bit by bit, mean that all other
rows were read as if nothing had happened. A container whose declared type is refused must be refused without the odd
row too, in the same words.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from snugdp.audit.equality import equal
from snugdp.audit.finding import Finding
from snugdp.audit.side_channels.calls import watch
from snugdp.tables.cells import cell as one
from snugdp_studies.audit.side_channels.entry_points import HANDED_ON, EntryPoint, entry_points, rehearsed
from snugdp_studies.audit.side_channels.inputs import NAMES, STRANGE, TARGET, Given, Grid, good, object_array

Cells = list[Any]
_ROWS, _ODD_ROW = 12, 7
_SHOWN = 5
_CELLS: tuple[Any, ...] = (
    0, 1, 2**24 + 1, 2**53 + 1, 2**64 + 1, 0.1, 2.5, -0.0, "1", " 1", "01", "1.0", "0.1", "true", "yes", "?", "NaN",
    "1_0", "1e400", "2020-01-01", "１", 'x,"y\n', b"1", 1 + 0j, np.float32(0.1), np.float16(0.5), np.uint64(2**63),
    np.datetime64("2020"), np.str_("1"), np.array([1.0]), [1], ["1"], [None], (1, 2), [[1]],
)  # fmt: skip
_ODD_ROWS: tuple[Any, ...] = (
    None, 5, "x", "1", [], [1], [1, 2, 3, 4], (1,), {}, object(), 1j, np.zeros(5), [[1], 2, 3]
)  # fmt: skip


@dataclass(frozen=True)
class Door:
    """A table with something odd in it. ``images``: the same with plain cells; ``odd``: how many cells or rows."""

    content: str
    grid: Grid
    images: Grid
    odd: int
    at: int | None = None  # the column of the only odd cell


@dataclass
class Tried:
    """What was tried."""

    odd: int = 0
    runs: int = 0
    refused: int = 0


def odd_cells() -> list[Any]:
    """What a cell may hold: plain cells of many types, those of bad input, and cells that run code."""
    return [*_CELLS, *(make() for make in STRANGE.values())]


def doors(*, full: bool = False, names: Iterable[str] | None = None, part: slice = slice(None)) -> list[Finding]:
    """One finding for every entry point. Quick: some odd cells in every container; full: more than 10,000 of them.

    ``part``: of the containers.
    """
    with TemporaryDirectory() as folder:
        known = containers(Path(folder))[part]
        wanted = None if names is None else set(names)
        open_ones = (point for point in entry_points(names=wanted, how=rehearsed) if point.name not in HANDED_ON)
        return [_found(point, known, full) for point in open_ones]


def _found(point: EntryPoint, known: list[Container], full: bool) -> Finding:
    tally, problems = Tried(), list[str]()
    for turn, container in enumerate(known):
        for door in _doors(container, point.takes, turn, full):
            problem = _tried(point, container, door, tally)
            if problem is not None:
                problems.append(f"{container.name}, {door.content}: {problem}")
    return Finding(
        "B",
        point.name,
        "an odd cell or row changes its own image and nothing else, in every container",
        f"{len(problems)} of {tally.odd:,} odd cells and rows change another one ({tally.runs:,} runs, "
        f"{tally.refused:,} on declared types that are never read)",
        passed=tally.odd > 0 and not problems,
        detail="; ".join(problems[:_SHOWN]),
    )


def _doors(container: Container, takes: str, turn: int, full: bool) -> Iterator[Door]:
    odd = odd_cells()
    step = {"column": (9, 1), "table": (18, 4)}[takes][full]
    for index in range(turn % step, len(odd), step):
        for kind, base in enumerate(_tables()):
            if full or (index + kind) % 4 == 0:
                yield _with_cell(base, odd[index], -1 if takes == "column" else index % 3)
    if container.anything:
        for shift in range(0, len(odd), 2 if full else len(odd) // 2):
            cells = [[odd[(shift + 3 * i + j) % len(odd)] for j in range(3)] for i in range(len(odd) // 3)]
            count = len(cells) * (1 if takes == "column" else 3)
            yield Door("nothing but odd cells", cells, [[_image(cell) for cell in row] for row in cells], count)
    if container.name in ("list", "tuple") and takes == "table":
        yield from (_with_row(row) for row in _ODD_ROWS)


def _tables() -> list[Grid]:
    """Plain tables: of floats, of whole numbers, of booleans, and of text."""
    plain = good(3, _ROWS)
    return [plain, *([[kind(cell) for cell in row] for row in plain] for kind in (int, bool, str))]


def _with_cell(base: Grid, cell: Any, at: int) -> Door:
    grid, images = [list(row) for row in base], [list(row) for row in base]
    grid[_ODD_ROW][at], images[_ODD_ROW][at] = cell, _image(cell)
    return Door(f"one {type(cell).__name__} among {type(base[0][0]).__name__}", grid, images, 1, at % 3)


def _with_row(row: Any) -> Door:
    grid, images = good(3, _ROWS), good(3, _ROWS)
    grid[_ODD_ROW], images[_ODD_ROW] = [row], [None, None, 0.0]
    return Door(f"one {type(row).__name__} among rows", grid, images, 1)


def _image(cell: Any) -> Any:
    """A plain cell with the same image: a number, text, or nothing."""
    value = one.number(cell)
    return one.text(cell) if np.isnan(value) else value


def _tried(point: EntryPoint, container: Container, door: Door, tally: Tried) -> str | None:
    """What is wrong, if anything."""
    made, data = watch(lambda: _made(point.takes, container, door.grid))
    if made.error or data is None:  # this container cannot hold these cells
        return None
    seen, result = watch(lambda: point.release(data))
    tally.runs, tally.odd = tally.runs + 1, tally.odd + door.odd
    if seen.error:
        tally.refused += 1
        without, _ = watch(lambda: point.release(container.first(_ODD_ROW, data)))
        return None if without == seen else f"{seen}; without it {without}"
    if door.at is not None and not container.anything:  # a loader may have changed it
        door.images[_ODD_ROW][door.at] = _image(held(data, _ODD_ROW, door.at))
    plain, expected = watch(lambda: point.release(_plain(point.takes, door.images, data)))
    if seen != plain:
        return f"{seen}; as images {plain}"
    return None if equal(_shown(result), _shown(expected)) else "another answer than that of the images"


def _made(takes: str, container: Container, grid: Grid) -> Any:
    """The table or column; nothing if it has another shape: then it is another container."""
    data = container.table(grid) if takes == "table" else container.column([row[-1] for row in grid])
    for part, ndim in ((data.X, 2), (data.y, 1)) if takes == "table" else ((data, 1),):
        if isinstance(part, np.ndarray) and (part.ndim != ndim or len(part) != len(grid)):
            return None
    return data


def _plain(takes: str, images: Grid, data: Any) -> Any:
    """The images in plain lists; for a table with names, in a table of objects with the same names."""
    if takes == "column":
        return [row[-1] for row in images]
    if not (data.described or hasattr(data.X, "columns")):
        return Given([row[:-1] for row in images], [row[-1] for row in images])
    import pandas

    frame = pandas.DataFrame(images, columns=[*NAMES, TARGET], dtype=object)
    return Given(frame, None, True) if data.described else Given(frame[list(NAMES)], frame[TARGET].tolist())


def _shown(result: Any) -> Any:
    """What was released."""
    outcome = getattr(result, "outcome_", result)
    return type(outcome).__name__, outcome.refused, outcome.value


# ---- containers: a table as users, loaders and files bring it, with the types that they give its cells


def _no_column(cells: Cells) -> Any:
    raise TypeError("a file is no column")


def _first(rows: int, data: Any) -> Any:
    """The same container with its first rows: its declared types stay as they are."""
    if isinstance(data, Given):
        return Given(data.X[:rows], None if data.y is None else data.y[:rows], data.described)
    return data[:rows]


@dataclass(frozen=True)
class Container:
    """A way to bring a table, or a column. Both may raise on cells that they cannot hold.

    ``anything``: it holds any object, as it is. ``first``: the same with its first rows.
    """

    name: str
    table: Callable[[Grid], Given]
    column: Callable[[Cells], Any] = _no_column
    anything: bool = False
    first: Callable[[int, Any], Any] = _first


def containers(folder: Path) -> list[Container]:
    """All containers of the libraries that are installed, and files in a folder."""
    found = [*_sequences(), *_sparse()]
    if find_spec("pandas") is not None:
        found += _pandas()
    if find_spec("pyarrow") is not None:
        found += [
            Container("pyarrow", lambda grid: _inside(_frame(grid).to_arrow()), lambda c: _last(_frame, c).to_arrow())
        ]
    return [*found, *_polars(), *_files(folder)]


def held(data: Any, row: int, column: int) -> Any:
    """The cell in this place of a container: a loader may have changed it."""
    if isinstance(data, Given):
        if column == len(NAMES) and data.y is not None:
            return held(data.y, row, 0)
        data = data.X
    if issparse(data):
        data = data.toarray()
    if isinstance(data, str):
        import polars

        data = polars.read_csv(data, infer_schema=False) if data.endswith(".csv") else polars.read_parquet(data)
    if hasattr(data, "columns"):
        name = (*NAMES, TARGET)[column]
        data = data[name]
    elif isinstance(data, np.ndarray) and data.ndim == 2:
        return np.ma.getdata(data)[row, column]
    if isinstance(data, np.ndarray):
        return np.ma.getdata(data)[row]
    cells = data.tolist() if hasattr(data, "tolist") else data.to_pylist() if hasattr(data, "to_pylist") else data
    return list(cells)[row]


def _sequences() -> list[Container]:
    def tuples(rows: Grid) -> Any:
        return tuple(tuple(row) if type(row) is list else row for row in rows)

    def masked(cells: Any) -> Any:
        return np.ma.MaskedArray(np.array(cells), mask=False)

    def nested(cells: Cells) -> Any:
        if any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
            raise TypeError("a list in a list in a list is another cell")
        return [[cell] for cell in cells]

    makers: dict[str, tuple[Callable[[Grid], Any], Callable[[Cells], Any]]] = {
        "list": (list, list),
        "tuple": (tuples, tuple),
        "list of arrays": (lambda rows: [object_array(row) for row in rows], object_array),
        "object array": (lambda rows: np.stack([object_array(row) for row in rows]), object_array),
        "nested y": (list, nested),
        "numpy": (np.array, np.array),
        "masked array": (masked, masked),
    }
    return [
        Container(name, partial(_split, X, y), y, anything=name not in ("numpy", "masked array"))
        for name, (X, y) in makers.items()
    ]


def _sparse() -> list[Container]:
    """Matrices by rows; the second holds every cell as itself and 0, last columns first."""

    def plain(rows: Grid) -> Any:
        return csr_array(np.array(rows))

    def doubled(rows: Grid) -> Any:
        cells = plain(rows).toarray()
        height, width = cells.shape
        places = np.tile(np.repeat(np.arange(width)[::-1], 2), height)
        data = np.stack([cells[:, ::-1], np.zeros_like(cells)], axis=2).ravel()
        return csr_array((data, places, np.arange(height + 1) * 2 * width), shape=cells.shape)

    makers = {"sparse": plain, "sparse, cells stored twice": doubled}
    return [Container(name, partial(_split, X, np.array)) for name, X in makers.items()]


def _split(X: Callable[[Grid], Any], y: Callable[[Cells], Any], grid: Grid) -> Given:
    """Rows and targets; an odd row is the only entry of its list."""
    rows = [row[0] if len(row) == 1 else row[:-1] for row in grid]
    return Given(X(rows), y([0.0 if len(row) == 1 else row[-1] for row in grid]))


def _named(grid: Grid) -> dict[str, Cells]:
    return {name: [row[i] for row in grid] for i, name in enumerate((*NAMES, TARGET))}


def _beside(frame: Any) -> Given:
    """The target in a column of its own."""
    return Given(frame[list(NAMES)], frame[TARGET])


def _inside(table: Any) -> Given:
    return Given(table, None, described=True)


def _last(make: Callable[[Grid], Any], cells: Cells) -> Any:
    """One column of a frame."""
    return make([[0.0, 0.0, cell] for cell in cells])[TARGET]


def _of(name: str, make: Callable[[Grid], Any], anything: bool = False) -> list[Container]:
    return [
        Container(name, lambda grid: _beside(make(grid)), partial(_last, make), anything),
        Container(f"{name}, with a schema", lambda grid: _inside(make(grid)), anything=anything),
    ]


def _written(grid: Grid) -> str:
    """The table as a CSV file."""
    import polars

    columns = {name: [_spelled(cell) for cell in cells] for name, cells in _named(grid).items()}
    return polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String)).write_csv()


def _spelled(cell: Any) -> str | None:
    """A cell as a writer of files spells it."""
    missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return None if missing else cell.decode() if isinstance(cell, bytes) else str(cell)


def _pandas() -> list[Container]:
    import pandas

    def objects(grid: Grid) -> Any:
        return pandas.DataFrame(
            {name: pandas.Series(object_array(cells), dtype=object) for name, cells in _named(grid).items()}
        )

    return [
        *_of("pandas", lambda grid: pandas.DataFrame(_named(grid))),
        *_of("pandas objects", objects, anything=True),
        *_of("pandas convert_dtypes", lambda grid: pandas.DataFrame(_named(grid)).convert_dtypes()),
        *_of("pandas.read_csv", lambda grid: pandas.read_csv(io.StringIO(_written(grid)))),
    ]


def _frame(grid: Grid) -> Any:
    import polars

    return polars.DataFrame({name: polars.Series(name, cells, strict=False) for name, cells in _named(grid).items()})


def _polars() -> list[Container]:
    import polars

    read = _of("polars.read_csv", lambda grid: polars.read_csv(io.StringIO(_written(grid))))
    return [*_of("polars", _frame), *read]


def _files(folder: Path) -> list[Container]:
    import polars

    def csv(grid: Grid) -> Given:
        (folder / "rows.csv").write_text(_written(grid))
        return _inside(str(folder / "rows.csv"))

    def parquet(grid: Grid) -> Given:
        _frame(grid).write_parquet(folder / "rows.parquet")
        return _inside(str(folder / "rows.parquet"))

    def first(rows: int, data: Given) -> Given:
        some = folder / f"some{Path(data.X).suffix}"
        if some.suffix == ".csv":
            polars.read_csv(data.X, infer_schema=False).head(rows).write_csv(some)
        else:
            polars.read_parquet(data.X).head(rows).write_parquet(some)
        return _inside(str(some))

    return [Container("a CSV file", csv, first=first), Container("a Parquet file", parquet, first=first)]
