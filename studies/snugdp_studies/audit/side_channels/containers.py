"""Containers for the doors: a table as users, loaders and files bring it, with the types that they give its cells."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from snugdp_studies.audit.side_channels.inputs import NAMES, TARGET, Given, Grid

Cells = list[Any]


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
    found = _plain()
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


def _plain() -> list[Container]:
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
        "list of arrays": (lambda rows: [_objects(row) for row in rows], _objects),
        "object array": (_object_matrix, _objects),
        "nested y": (list, nested),
        "numpy": (np.array, np.array),
        "masked array": (masked, masked),
    }
    return [
        Container(name, partial(_split, X, y), y, anything=name not in ("numpy", "masked array"))
        for name, (X, y) in makers.items()
    ]


def _split(X: Callable[[Grid], Any], y: Callable[[Cells], Any], grid: Grid) -> Given:
    """Rows and targets; an odd row is the only entry of its list."""
    rows = [row[0] if len(row) == 1 else row[:-1] for row in grid]
    return Given(X(rows), y([0.0 if len(row) == 1 else row[-1] for row in grid]))


def _objects(cells: Cells) -> Any:
    made = np.empty(len(cells), dtype=object)
    for index, cell in enumerate(cells):  # a slice would look into the cells
        made[index] = cell
    return made


def _object_matrix(rows: Grid) -> Any:
    return np.stack([_objects(row) for row in rows])


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
            {name: pandas.Series(_objects(cells), dtype=object) for name, cells in _named(grid).items()}
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
