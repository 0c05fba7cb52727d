"""Figure 1 of the paper: linear regression on bike and elevators, as printed and with honest accounting.

A study, NOT PRIVATE: tables are scaled with numbers taken from themselves, noise is seeded, and the methods as printed
rest on false steps. The honest methods are rehearsals of private ones: the same laws, with a seed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from snugdp.mechanisms.linear.base import Design
from snugdp.noise import Simulation
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp_studies.bench.contest.run import ContestSetting, noise_start
from snugdp_studies.bench.contest.tables import Floats, TableSplit
from snugdp_studies.bench.regression import TASK, ours, ridge
from snugdp_studies.paper import drawing, linear
from snugdp_studies.paper.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    VERSIONS,
    CurveStyle,
    Version,
)

Source: TypeAlias = Callable[[int], TableSplit]  # the split of a number
Published: TypeAlias = Callable[[linear.NotPrivateSums, float, float, Simulation], linear.NotPrivateFit]
GRID = "OPS-PTR grid"
_HIGHEST = 2.0  # times the error of answering 0: what is above is left out of the picture


@dataclass(frozen=True)
class Figure1Plan:
    """What is to be computed."""

    epsilons: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
    delta: float = 1e-6
    seeds: int = 5
    grid: bool = True  # whether the honest OPS-PTR chooses among 30 ridges too, which takes most of the time


QUICK = Figure1Plan(epsilons=(0.1, 1.0, 4.0), seeds=2, grid=False)


@dataclass(frozen=True)
class Figure1Error:
    """The error of one fit on the held-out rows."""

    table: str
    version: str
    method: str
    epsilon: float | None  # none for a reference
    mse: float
    fitted: bool


TITLES = {"bike": "Bike", "elevators": "Elevators"}
NOTES = (
    "NOT PRIVATE: columns are z-scored with the table's own moments, rows have norm 1, the target is centred and "
    "divided by its largest size; noise is seeded. 60 % to fit on, 10 % public, 30 % for the mean squared error.",
    "as printed: the formulas of the paper and of the papers it cites, which rest on false steps (docs/errata.md, L1 "
    "to L9, C13). Misprints are read as meant: as printed it cannot be run (L3, L7, L8).",
    "honest: rehearsals of private methods, (epsilon, delta) for rows that come or go. OPS-Balanced gets the number of "
    "rows to one digit as a public guess; the grid of OPS-PTR is judged on the public rows.",
    "A fit that gave nothing predicts 0. Drawn: medians over splits, bands between quartiles; means are in the CSV "
    "file. At small epsilon OPS-PTR as printed has now and then an error without bounds: its mean says nothing.",
)


@dataclass(frozen=True)
class Figure1Method:
    """One curve. ``fit`` gives coefficients, or None where nothing came of it: that predicts 0.

    Without a line it is in the table of numbers only.
    """

    name: str
    version: Version
    line: CurveStyle | None
    fit: Callable[[TableSplit, ContestSetting], Floats | None]


def _printed_ops_ptr(split: TableSplit, setting: ContestSetting) -> Floats | None:
    X, y = split.train
    design = Design(RowMap(X.shape[1], feature_bound=1, target_bound=1))
    moments = Moments(design.row_map.limits)
    for rows, target in design.row_map.blocks(X, y):
        moments.add(rows, rows, target)
    return linear.not_private_ops_ptr_selection(
        Secret(moments),
        design,
        split.public,
        epsilon=setting.epsilon,
        delta=setting.delta,
        noise=Simulation(setting.noise),
    ).theta


def _published(split: TableSplit, setting: ContestSetting, *, method: Published) -> Floats | None:
    return method(
        linear.NotPrivateSums.of(*split.train), setting.epsilon, setting.delta, Simulation(setting.noise)
    ).theta


def _cited(name: str, line: CurveStyle, method: Published) -> Figure1Method:
    return Figure1Method(name, "as printed", line, partial(_published, method=method))


def _private(name: str, line: CurveStyle | None, **options: Any) -> Figure1Method:
    return Figure1Method(name, "honest", line, partial(ours, **options))


_RIDGES = {"ridge": list(linear.not_private_grid())}
METHODS = (
    Figure1Method(
        "OPS-PTR", "as printed", CurveStyle("OPS-PTR (Algorithm 2 over 30 ridges)", RED, "o"), _printed_ops_ptr
    ),
    _cited("OPS-Balanced", CurveStyle("OPS-Balanced", BLUE, "s"), linear.not_private_ops_balanced),
    _cited("AdaOPS", CurveStyle("AdaOPS", GREEN, "^"), linear.not_private_adaops),
    _cited("AdaSSP", CurveStyle("AdaSSP (not in the paper's figure)", PURPLE, "D", "--"), linear.not_private_adassp),
    _cited("OutPert", CurveStyle("output perturbation", ORANGE, "v"), linear.not_private_output_perturbation),
    _private("OPS-PTR", CurveStyle("OPS-PTR, corrected, ridge by a rule", RED, "o"), method="posterior"),
    _private(
        GRID,
        CurveStyle("OPS-PTR, corrected, best of 30 ridges", RED, "o", ":"),
        method="posterior",
        proposals=_RIDGES,
        validation=True,
    ),
    _private("OPS-Balanced", CurveStyle("OPS-Balanced, corrected", BLUE, "s"), method="ops_balanced", rows=True),
    _private("AdaOPS", CurveStyle("AdaOPS, corrected", GREEN, "^"), method="adaops"),
    _private("AdaSSP", CurveStyle("AdaSSP, exact accounting", PURPLE, "D", "--"), method="adassp"),
    _private("OutPert", CurveStyle("output perturbation after a test", ORANGE, "v"), method="output"),
    _private("auto", CurveStyle("snugdp's default, objective perturbation", BLACK, "*", width=2.4), method="auto"),
    _private("objective, fixed rule", None, method="objective"),
    _private("objective, private scale", None, method="objective", proposals={"rule": "scale"}),
    _private("objective, two stages", None, method="objective", proposals={"rule": "two_stage"}),
    _private("sufficient statistics, refined", None, method="sufficient"),
    _private("sufficient statistics, public validation", None, method="sufficient", validation=True),
    _private("gradient descent", None, method="descent", rows=True),
)


REFERENCES: Mapping[str, Callable[[TableSplit], Floats | None]] = {
    "ridge, not private": lambda split: ridge(split.train),
    "ridge on the public rows": lambda split: ridge(split.public),
    "always 0": lambda split: None,
}


def run(
    sources: Mapping[str, Source], plan: Figure1Plan, methods: Sequence[Figure1Method] | None = None
) -> Iterator[Figure1Error]:
    """Every fit of the plan, one after the other; ``points`` says how many."""
    for table, source in sources.items():
        for number in range(plan.seeds):
            split = source(number)
            for name, reference in REFERENCES.items():
                error, _ = TASK.measure(reference(split), split)
                yield Figure1Error(table, "reference", name, None, error, True)
            for epsilon in plan.epsilons:
                for method in _chosen(plan) if methods is None else methods:
                    seed = noise_start("figure 1", table, method.version, method.name, epsilon, number)
                    theta = method.fit(split, ContestSetting(epsilon, plan.delta, seed, variant=1))
                    error, _ = TASK.measure(theta, split)
                    yield Figure1Error(table, method.version, method.name, epsilon, error, theta is not None)


def points(sources: Mapping[str, Source], plan: Figure1Plan) -> int:
    """How many scores there will be."""
    return len(sources) * plan.seeds * (len(plan.epsilons) * len(_chosen(plan)) + len(REFERENCES))


def _chosen(plan: Figure1Plan) -> list[Figure1Method]:
    return [method for method in METHODS if plan.grid or method.name != GRID]


@dataclass(frozen=True)
class Figure1Cell:
    """One method on one table at one epsilon, over all splits."""

    table: str
    version: str
    method: str
    epsilon: float | None
    errors: tuple[float, ...]
    empty: int

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(np.mean(self.errors))

    @property
    def deviation(self) -> float:
        """The standard deviation over splits; 0 for one split."""
        return float(np.std(self.errors, ddof=1)) if len(self.errors) > 1 else 0.0

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower quartile, the median and the upper quartile."""
        low, middle, high = np.quantile(self.errors, [0.25, 0.5, 0.75]).tolist()
        return low, middle, high


def cells(scores: Iterable[Figure1Error]) -> list[Figure1Cell]:
    """The scores over their splits."""
    groups: dict[tuple[str, str, str, float | None], list[Figure1Error]] = {}
    for score in scores:
        groups.setdefault((score.table, score.version, score.method, score.epsilon), []).append(score)
    return [
        Figure1Cell(*key, tuple(score.mse for score in own), sum(not score.fitted for score in own))
        for key, own in groups.items()
    ]


def rows_of(found: Sequence[Figure1Cell], plan: Figure1Plan) -> list[dict[str, object]]:
    """The lines of the CSV file."""
    status = {
        "as printed": f"{drawing.STAMP}: formulas as printed",
        "honest": "rehearsal of a private method",
        "reference": f"{drawing.STAMP}: reference",
    }
    return [
        {
            "table": cell.table,
            "version": cell.version,
            "method": cell.method,
            "status": status[cell.version],
            "epsilon": "" if cell.epsilon is None else cell.epsilon,
            "delta": plan.delta,
            "mse_mean": cell.mean,
            "mse_std": cell.deviation,
            "mse_median": cell.quartiles[1],
            "mse_quartile_low": cell.quartiles[0],
            "mse_quartile_high": cell.quartiles[2],
            "splits": len(cell.errors),
            "gave_nothing": cell.empty,
        }
        for cell in found
    ]


def save(
    folder: Path, scores: Sequence[Figure1Error], plan: Figure1Plan, about: Mapping[str, object] | None = None
) -> list[Path]:
    """The picture as PNG and SVG, every number as CSV, and the parameters as JSON."""
    found = cells(scores)
    parameters = {"notes": NOTES, "plan": asdict(plan), **(about or {})}
    return [*_picture(folder, found, plan), *drawing.written(folder, "figure1", rows_of(found, plan), parameters)]


def _picture(folder: Path, found: Sequence[Figure1Cell], plan: Figure1Plan) -> list[Path]:
    tables = list(dict.fromkeys(cell.table for cell in found))
    with drawing.look():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.9 * len(tables) + 2.4), layout="constrained")
        grid = figure.subplots(len(tables), 2, sharex=True, sharey="row", squeeze=False)
        for panels, table in zip(grid, tables, strict=True):
            for panel, version in zip(panels, VERSIONS, strict=True):
                _panel(panel, [cell for cell in found if cell.table == table], version)
                panel.set_title(f"{TITLES.get(table, table)}, {version}")
            panels[0].set_ylabel("mean squared error")
        for panel in grid[-1]:
            panel.set_xlabel(f"privacy budget epsilon, at delta = {plan.delta:g}")
            panel.set_xticks(plan.epsilons, [f"{epsilon:g}" for epsilon in plan.epsilons])
            drawing.legend_below(panel)
        figure.suptitle("Figure 1: linear regression, the paper's formulas and honest accounting", fontsize=13)
        return drawing.saved(figure, folder, "figure1")


def _panel(panel: Any, own: Sequence[Figure1Cell], version: Version) -> None:
    for method in METHODS:
        mine = [cell for cell in own if (cell.version, cell.method) == (version, method.name)]
        if method.line is not None and method.version == version and mine:
            drawing.drawn(
                panel,
                [c.epsilon or 0.0 for c in mine],
                [c.quartiles[1] for c in mine],
                method.line,
                [c.quartiles for c in mine],
            )
    looks = {
        "ridge, not private": CurveStyle("ridge without privacy", GREY, style="-", width=1.0),
        "always 0": CurveStyle("always 0", GREY, style=":", width=1.0),
        "ridge on the public rows": CurveStyle("ridge on the public tenth", SKY, style="-.", width=1.0),
    }
    for cell in own:
        if cell.version == "reference":
            line = looks[cell.method]
            panel.axhline(
                cell.quartiles[1], color=line.colour, linestyle=line.style, linewidth=line.width, label=line.label
            )
    panel.set_xscale("log")
    panel.minorticks_off()
    drawing.log_axis(panel)
    lowest = min(cell.quartiles[0] for cell in own)
    highest = max((cell.mean for cell in own if cell.method == "always 0"), default=lowest)
    panel.set_ylim(0.9 * lowest, _HIGHEST * highest)
    if version == "as printed":
        drawing.stamped(panel)
