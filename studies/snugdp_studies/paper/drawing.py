"""How the figures of the paper are drawn and written down: colours that everybody can tell apart, one look for all."""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from snugdp_studies.bench.contest.run import versions

Version: TypeAlias = Literal["as printed", "honest"]
Row: TypeAlias = Mapping[str, object]

VERSIONS: tuple[Version, Version] = ("as printed", "honest")  # from left to right

STAMP = "NOT PRIVATE"
# Okabe and Ito: told apart with any kind of colour blindness, and in print.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#777777",
)  # fmt: skip
_LOOK: Any = {
    "svg.hashsalt": "snugdp",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_PACKAGES = ("snugdp", "numpy", "scipy", "matplotlib")


@dataclass(frozen=True)
class CurveStyle:
    """How a curve looks: the same colour for the same method in both panels."""

    label: str
    colour: str
    marker: str = ""
    style: str = "-"
    width: float = 1.6


@contextmanager
def look() -> Iterator[Any]:
    """Matplotlib with the look of the figures, and without a screen."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        yield mpl


def stamped(panel: Any) -> None:
    """Say across a panel that what it shows is no guarantee."""
    panel.text(
        0.5, 0.5, STAMP, transform=panel.transAxes, ha="center", va="center", rotation=24, fontsize=30, color="#CC0000",
        alpha=0.13, weight="bold", zorder=0,
    )  # fmt: skip


def log_axis(panel: Any) -> None:
    """A vertical axis by logarithms, with plain numbers on it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())


def legend_below(panel: Any) -> None:
    """The names of the curves under a panel, where they hide nothing."""
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=1)


def drawn(
    panel: Any,
    x: Sequence[float],
    y: Sequence[float],
    line: CurveStyle,
    bands: Sequence[tuple[float, ...]] | None = None,
) -> None:
    """One curve, and a band from the first to the last number of each of ``bands``. What is not finite is left out."""
    kept = [i for i, point in enumerate(zip(x, y, strict=True)) if all(map(math.isfinite, point))]
    xs, ys = [x[i] for i in kept], [y[i] for i in kept]
    look = {"color": line.colour, "marker": line.marker, "linewidth": line.width, "label": line.label}
    panel.plot(xs, ys, line.style, markersize=8 if line.marker == "*" else 4.5, **look)
    if bands is not None:
        low, high = ([bands[i][side] for i in kept] for side in (0, -1))
        panel.fill_between(xs, low, high, color=line.colour, alpha=0.15, linewidth=0)


def saved(figure: Any, folder: Path, name: str) -> list[Path]:
    """The picture as PNG and SVG. The same numbers give the same SVG, byte for byte."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.savefig(png, dpi=160)
    figure.set_layout_engine("none")  # what was found for the first holds for the second
    figure.savefig(svg, metadata={"Date": None})
    return [png, svg]


def written(folder: Path, name: str, rows: Sequence[Row], parameters: Mapping[str, object]) -> list[Path]:
    """Every number as CSV, and beside it a JSON file with the exact parameters, notes and versions."""
    table, beside = folder / f"{name}.csv", folder / f"{name}.json"
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    content = {"figure": name, "columns": columns, **parameters, "versions": versions(_PACKAGES)}
    beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return [table, beside]


def _cell(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, float) else value
