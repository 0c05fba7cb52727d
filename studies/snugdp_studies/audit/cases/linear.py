"""Linear regression by every method, through the estimator."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from snugdp.audit.finding import Case
from snugdp.estimators.additive.models import AdditiveRegressor
from snugdp.estimators.linear import LinearRegression
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from snugdp_studies.audit.cases import tables
from snugdp_studies.audit.cases.fitting import fitting

EPSILON, DELTA = 1, 0.05
# Rows exactly at the bound.
_AXIS, _SLANTED, _ACROSS = {1: [1.0], 2: [1.0, 0.0]}, {1: [-1.0], 2: [0.6, 0.8]}, {1: [-1.0], 2: [0.0, 1.0]}

# What a name stands for: method, proposals, and whether noise a fifth too small must be seen. One perturbed objective
# with one coefficient has a density in closed form.
_FORMS: dict[str, tuple[str, Mapping[str, Any], bool | float]] = {
    "auto": ("auto", {}, False),
    "adaptive": ("adaptive", {}, False),
    "whitened": ("whitened", {}, False),
    "objective": ("objective", {}, True),
    "objective, two columns": ("objective", {}, False),
    "objective, pseudo-Huber": ("objective", {"loss": "pseudo_huber", "tau": 0.3}, True),
    "objective, Huber": ("objective", {"loss": "huber"}, True),
    "objective, private scale": ("objective", {"rule": "scale"}, False),
    "objective, two stages": ("objective", {"rule": "two_stage"}, False),
    "sufficient": ("sufficient", {"clip": 0.25}, True),
    "sufficient, statistics alone": ("sufficient", {"refinements": 0}, True),
    "adassp": ("adassp", {}, True),
    "posterior": ("posterior", {"ridge": 4.0}, False),
    "posterior, proposed": ("posterior", {"ridge": 4.0, "gamma": 0.5}, False),
    "ops_balanced": ("ops_balanced", {}, False),
    "adaops": ("adaops", {}, False),
    "output": ("output", {"ridge": 4.0}, False),
    "descent": ("descent", {"steps": 5, "clip": 0.25}, True),
}
_ATOMS = (
    "auto",
    "adaptive",
    "whitened",
    "objective",
)  # their costs are curves of perturbed objectives, not sums of parts
_TIGHTEST = {"sufficient": (1, False), "descent": (1, True), "objective, pseudo-Huber": (1, True)}  # not pair 0, there
_BLOCK, _FEW = 8192, 20  # rows
_NEARLY_ENOUGH = 5350  # rows with which noise decides how a line on whitened rows ends
_NEED_ROWS = ("ops_balanced", "descent")


def cases() -> Iterator[Case[Any]]:
    """All of them. What must be seen is where the noise is all there is: other bounds have slack of their own."""
    return (make() for make in MAKERS.values())


def _case(name: str, method: str, proposals: Mapping[str, Any], tight: bool | float) -> Case[tables.Table]:
    width = 1 if method == "objective" and "two columns" not in name else 2
    given: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "method": method,
        "x_norm": 1,
        "y_bound": 1,
        "proposals": dict(proposals) or None,
        "rows": 40 if method in _NEED_ROWS else None,
        "fit_intercept": method in ("auto", "adaptive", "whitened", "adassp", "ops_balanced", "output")
        or "proposed" in name,
    }
    place, back = _TIGHTEST.get(name, (0, False))
    return fitting(
        f"linear: {name}",
        LinearRegression,
        given,
        n_features=width,
        group="linear",
        worst=lambda: (
            tables.foremost(pairs(width, intercept=given["fit_intercept"]), place, back=back) + _more(name, width)
        ),
        random=partial(tables.with_targets, d=width, target=tables.number, odd=tables.odd_number, least=1),
        tight=tight,
        parts=method not in _ATOMS and "posterior" not in name and "ops" not in name,
    )


def _with_intervals(name: str, **given: Any) -> Case[tables.Table]:
    """A run on whitened rows, and both matrices at its result. Many parts, none of them at its worst."""
    return fitting(
        name,
        LinearRegression,
        {"epsilon": EPSILON, "delta": DELTA, "inference": True, **given},
        n_features=2,
        group="linear",
        worst=lambda: pairs(2, intercept=True),
        random=partial(tables.with_targets, d=2, target=tables.number, odd=tables.odd_number, least=1),
        tight=False,
        parts=False,
    )


def _small_budget() -> Case[tables.Table]:
    """So small a budget that targets are looked for in a histogram, before a run and the mean of its residuals."""
    return fitting(
        "linear: whitened, small budget",
        LinearRegression,
        {"epsilon": 0.1, "delta": DELTA, "method": "whitened", "x_norm": 1, "y_bound": 1},
        n_features=2,
        group="linear",
        worst=lambda: pairs(2, intercept=True),
        random=partial(tables.with_targets, d=2, target=tables.number, odd=tables.odd_number, least=1),
        tight=False,
        parts=False,
    )


def _many_rows() -> Case[tables.Table]:
    """So many rows that the line ends in least squares, or nearly: beside them one that is at its bounds, or odd."""
    enough, short = (tables.spread_out(n, 2) for n in (20_000, _NEARLY_ENOUGH))

    def random(generator: tables.Generator) -> tuple[tables.Table, tables.Table]:
        one = tables.with_targets(generator, 2, tables.number, tables.odd_number, least=1, most=1)[0]
        many = enough if generator.random() < 0.5 else short
        return tables.more(many, one[0][-1], one[1][-1]), many

    return fitting(
        "linear: whitened, many rows",
        LinearRegression,
        {"epsilon": EPSILON, "delta": DELTA, "method": "whitened", "x_norm": 1, "y_bound": 1},
        n_features=2,
        group="linear",
        worst=lambda: [
            (tables.more(many, _AXIS[2], target), many) for many in (enough, short) for target in (1.0, -1.0)
        ],
        random=random,
        tight=False,
        parts=False,
    )


def _with_gaps() -> Case[tuple[Any]]:
    """A table with names, in which cells are missing."""
    import polars

    names = ("a", "b", "y")
    schema = Schema({name: Number(-1, 1) for name in names}, target="y", norm=1)
    gaps = [(None, 0.5, 1.0)] * 8 + [(0.2, None, -0.4)] * 8 + [(0.3, 0.3, None)] * 4

    def frame(rows: list[Any]) -> tuple[Any]:
        return (polars.DataFrame(rows, schema=dict.fromkeys(names, polars.Float64), orient="row"),)

    def random(generator: tables.Generator) -> tuple[tuple[Any], tuple[Any]]:
        def row(generator: tables.Generator) -> tuple[Any, ...]:
            return tuple(
                tables.one_of(generator, (None, *generator.uniform(-1, 1, 3).round(2).tolist())) for _ in names
            )

        def odd(generator: tables.Generator) -> tuple[Any, ...]:
            return tuple(tables.one_of(generator, (None, 1.0, -1.0, *tables.ODD)) for _ in names)

        first, second = tables.near(generator, row, odd, relation="add_remove", least=1)
        return frame(first), frame(second)

    extremes = [(1.0, 1.0, 1.0), (1e9, -1e9, 1e9)]
    return fitting(
        "linear: adassp, a table with gaps",
        LinearRegression,
        {"epsilon": EPSILON, "delta": DELTA, "method": "adassp", "schema": schema},
        group="linear",
        worst=lambda: [(frame([*gaps, row]), frame(gaps)) for row in extremes],
        random=random,
    )


def _without_bounds(method: str, model: type[LinearRegression] = LinearRegression, **given: Any) -> Case[Any]:
    """Bounds that are found and a line on them, as one release. Many parts, none of them at its worst."""
    many = tables.spread_out(400, 2)
    rows = [([1.0, 0.0], 1.0), ([1e300, -1e300], 1e300), ([np.nan, np.inf], 0.5), ([0.5, np.nan], np.nan)]
    few: tables.Table = np.ones((6, 2)), [2.0] * 6
    return fitting(
        f"linear: {method}, bounds found",
        model,
        {"epsilon": EPSILON, "delta": DELTA, "method": method, **given},
        n_features=2,
        group="linear",
        worst=lambda: [(tables.more(few, *rows[0]), few)] + [(tables.more(many, *row), many) for row in rows],
        random=partial(tables.with_targets, d=2, target=tables.number, odd=tables.odd_number, least=1, most=150),
        tight=False,
        parts=method not in _ATOMS,
    )


def _curves(method: str, name: str) -> Case[Any]:
    """Bounds that are found and curves between them, as one release."""
    return replace(_without_bounds(method, AdditiveRegressor, cells=2), name=name)


def _without_bounds_of_kinds() -> Case[tuple[Any]]:
    """A table with numbers, a category and a boolean, of which cells are missing; nothing is known of its columns."""
    import polars

    kinds = {"a": polars.Float64, "y": polars.Float64, "z": polars.Float64, "city": polars.String, "b": polars.Boolean}
    columns: dict[str, Any] = {**{name: Number() for name in "ayz"}, "city": Category(), "b": Boolean()}
    schema = Schema(columns, target="y", missing="indicator")

    def frame(rows: list[Any]) -> tuple[Any]:
        return (polars.DataFrame(rows, schema=kinds, orient="row"),)

    def row(generator: tables.Generator) -> tuple[Any, ...]:
        a, z = tables.one_of(generator, (None, *generator.normal(3, 1, 3).tolist())), float(generator.normal(0, 9))
        return a, z + (a or 0.0), z, tables.one_of(generator, ("Oslo", "Rome", None)), bool(generator.random() < 0.5)

    def odd(generator: tables.Generator) -> tuple[Any, ...]:
        numbers = (tables.one_of(generator, (None, *tables.ODD)) for _ in "ayz")
        return *numbers, tables.one_of(generator, ("", "nobody", None)), tables.one_of(generator, (True, None))

    def random(generator: tables.Generator) -> tuple[tuple[Any], tuple[Any]]:
        first, second = tables.near(generator, row, odd, relation="add_remove", least=1, most=150)
        return frame(first), frame(second)

    table = [row(np.random.default_rng(k)) for k in range(300)]
    extremes = [(3.0, 5.0, 2.0, "Rome", True), (1e300, -1e300, 0.0, "new", None), (None,) * 5]
    return fitting(
        "linear: adassp, bounds and levels found",
        LinearRegression,
        {"epsilon": EPSILON, "delta": DELTA, "method": "adassp", "schema": schema},
        group="linear",
        worst=lambda: [(frame([*rows, extreme]), frame(rows)) for rows in (table[:9], table) for extreme in extremes],
        random=random,
        tight=False,
    )


def pairs(width: int, *, intercept: bool = False) -> list[tuple[tables.Table, tables.Table]]:
    """A row at its bounds beside ordinary ones, beside rows of 0, against or across others, and far beyond them."""
    ordinary = tables.spread_out(30, width)
    nothing = (np.zeros((4, width)), [0.0] * 4)
    steep = tables.more(nothing, _SLANTED[width], 1.0, 3)
    flat = _flat(nothing, width, intercept=intercept)
    return [
        (tables.more(ordinary, _AXIS[width], 1.0), ordinary),
        (tables.more(nothing, _SLANTED[width], 1.0), nothing),
        (tables.more(steep, _SLANTED[width], -1.0), steep),
        (tables.more(flat, _ACROSS[width], 1.0), flat),
        (tables.more(ordinary, [1e9] * width, -1e9), ordinary),
    ]


def _more(name: str, width: int) -> list[tuple[tables.Table, tables.Table]]:
    """For some of them many rows: more than are read at once, and one far beyond; so many that a proposal is kept."""
    if name == "adassp":
        zeros: tables.Table = np.zeros((_BLOCK, width)), [0.0] * _BLOCK
        return [(tables.more(zeros, [1e9] * width, 1.0), zeros)]
    many = tables.spread_out(1500, width)
    return [(tables.more(many, _AXIS[width], 1.0), many)] if name == "posterior, proposed" else []


def _flat(nothing: tables.Table, width: int, *, intercept: bool) -> tables.Table:
    """Few rows in the direction of the one that is across, and many in all others."""
    few = tables.more(nothing, _ACROSS[width], -1.0, _FEW)
    if not intercept:
        return tables.more(few, _AXIS[width], -1.0, 60)
    return tables.more(tables.more(few, [0.6, -0.8][:width], -1.0, 60), [-0.6, -0.8][:width], -1.0, 60)


MAKERS: dict[str, Callable[[], Case[Any]]] = {
    **{f"linear: {name}": partial(_case, name, *form) for name, form in _FORMS.items()},
    "linear: whitened, many rows": _many_rows,
    "linear: whitened, small budget": _small_budget,
    "linear: intervals": partial(_with_intervals, "linear: intervals", x_norm=1, y_bound=1),
    "linear: mean": partial(_with_intervals, "linear: mean", target="mean", x_norm=1, y_bound=1),
    "linear: intervals, bounds found": partial(_with_intervals, "linear: intervals, bounds found"),
    "linear: adassp, a table with gaps": _with_gaps,
    "linear: auto, bounds found": partial(_without_bounds, "auto"),
    "linear: adassp, bounds found": partial(_without_bounds, "adassp"),
    "linear: adassp, bounds and levels found": _without_bounds_of_kinds,
    "additive: bounds found": partial(_curves, "adassp", "additive: bounds found"),
    "additive: auto": partial(_curves, "auto", "additive: auto"),
}
"""Each case by itself: some take seconds to plan."""
