"""Linear regression beside peers: mean squared errors on held-out rows, and fit times.

What a contender gets is fixed for all tables: nothing is tuned to one. A fit gives coefficients, or None for a refusal;
the variant of the contest is the bound on targets. Targets are centred by their mean and divided by their largest size;
a real user has to bring public bounds instead.
"""

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp_studies.bench.contest.run import (
    Contender,
    ContestCell,
    ContestPlan,
    ContestReport,
    ContestSetting,
    ContestSummary,
    ContestTask,
    geometric,
)
from snugdp_studies.bench.contest.speed import Jobs, Timing, one_thread, timed
from snugdp_studies.bench.contest.tables import Floats, Tables, TableSplit, spread
from snugdp_studies.bench.linear_peers import boosted_adassp, hessian_mixing

RIDGE, HUBER = "scikit-learn Ridge", "scikit-learn HuberRegressor"
GOALS = (
    "Goals: at most 3 times Ridge for methods from sums of squares and products, at most 2 times HuberRegressor for "
    "robust ones, and little more for 30 proposals than for one."
)
_GRID = tuple(float(value) for value in np.geomspace(1, 1e5, 30))


def ours(
    split: TableSplit,
    setting: ContestSetting,
    *,
    method: str,
    proposals: dict[str, Any] | None = None,
    rows: bool = False,
    validation: bool = False,
) -> Floats | None:
    """A fit by ``LinearRegression``, in rehearsal: the noise is seeded."""
    model = LinearRegression(
        setting.epsilon,
        setting.delta,
        method=method,
        x_norm=1,
        y_bound=setting.variant,
        fit_intercept=False,
        proposals=proposals,
        rows=split.rows_guess if rows else None,
        validation=split.public if validation else None,
        noise=Simulation(setting.noise),
    ).fit(*split.train)
    return np.asarray(model.coef_) if model.released_ else None


def published(split: TableSplit, setting: ContestSetting, *, way: Callable[..., Floats]) -> Floats:
    """A method of others, on targets in units of their bound."""
    X, y = split.train
    bound = setting.variant
    with np.errstate(all="ignore"):  # it may diverge
        found = way(X, y / bound, setting.epsilon, setting.delta, Simulation(setting.noise))
    return np.asarray(bound * found, dtype=np.float64)


def diffprivlib(split: TableSplit, setting: ContestSetting) -> Floats:
    """The functional mechanism of diffprivlib: pure epsilon, bounds for every column."""
    models: Any = importlib.import_module("diffprivlib.models")
    model = models.LinearRegression(
        epsilon=setting.epsilon,
        bounds_X=(-1, 1),
        bounds_y=(-setting.variant, setting.variant),
        fit_intercept=False,
        random_state=setting.noise % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(*split.train).coef_)


def ridge(rows: tuple[Floats, Floats]) -> Floats:
    """Ridge regression without privacy."""
    X, y = rows
    return np.asarray(np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y), dtype=np.float64)


OURS: dict[str, dict[str, Any]] = {  # what each gets beyond budget and bounds
    "auto": {"method": "auto"},
    "adaptive": {"method": "adaptive"},
    "objective": {"method": "objective"},
    "objective-scale": {"method": "objective", "proposals": {"rule": "scale"}},
    "objective-two-stage": {"method": "objective", "proposals": {"rule": "two_stage"}},
    "sufficient": {"method": "sufficient"},
    "posterior": {"method": "posterior"},
    "ops_balanced": {"method": "ops_balanced", "rows": True},
    "adaops": {"method": "adaops"},
    "output": {"method": "output"},
    "adassp": {"method": "adassp"},
    "descent": {"method": "descent", "rows": True},
    "descent-20": {"method": "descent", "rows": True, "proposals": {"steps": 20, "rate": 0.5}},
    "descent-200": {"method": "descent", "rows": True, "proposals": {"steps": 200, "rate": 0.25}},
}
PUBLISHED = ("adassp", "descent", "descent-20", "descent-200")  # by others: peers, whoever wrote the code
_ALL = (
    *(Contender(name, "peer" if name in PUBLISHED else "ours", partial(ours, **more)) for name, more in OURS.items()),
    Contender("boosted-adassp", "peer", partial(published, way=boosted_adassp)),
    Contender("hessian-mixing", "peer", partial(published, way=hessian_mixing)),
    Contender("diffprivlib", "peer", diffprivlib),
    Contender("trivial", "peer", lambda split, setting: np.zeros(split.train[0].shape[1])),
    Contender("sufficient-validation", "public", partial(ours, method="sufficient", validation=True)),
    Contender("ridge-public", "public", lambda split, setting: ridge(split.public)),
    Contender("ridge", "reference", lambda split, setting: ridge(split.train)),
)
CONTENDERS = {each.name: each for each in _ALL}


def made_up(rows: int, columns: int, heavy: bool = True) -> tuple[Floats, Floats]:
    """Rows of norm at most 1, evenly spread, and a linear target with noise: Student's t with 2 degrees, or uniform."""
    X, p = spread(rows, columns)
    noise = (2 * p - 1) / np.sqrt(2 * p * (1 - p)) if heavy else 2 * p - 1
    return X, X @ np.cos(np.arange(columns)) + 0.1 * noise


def target(last: Sequence[Any]) -> Floats:
    """The numbers of the last column, centred and divided by the largest size."""
    try:
        y = np.array([float(cell) for cell in last])
    except ValueError as error:
        raise ValueError(f"cannot be read ({error}): its last column must be numbers") from None
    if not np.all(np.isfinite(y)):
        raise ValueError("has missing or infinite values: fill or drop them first")
    y = y - y.mean()
    if not np.any(y):
        raise ValueError("has nothing to learn: its target is constant")
    return np.asarray(y / np.abs(y).max())


class Regression(ContestTask):
    """Linear regression. A variant is a factor by which the bound on targets is too large."""

    name, variant, measures = "regression", "factor", ("errors", "refused")
    noise_of = ("dataset", "method", "epsilon", "variant", "number")
    contenders = CONTENDERS
    tables = Tables(
        last="target in the last column",
        target=target,
        made={"synthetic": {"even": partial(made_up, 4000, 5, False), "heavy": partial(made_up, 4000, 5, True)}},
        instead='"synthetic" for two small made-up tables',
    )
    about = (
        "Rehearsals, NOT PRIVATE: seeded noise, and tables scaled with numbers taken from themselves. errors: mean "
        "squared errors on held-out rows, one for each split; seconds: the median of a fit"
    )
    notes = (
        "NOT PRIVATE: seeded noise, and tables scaled with their own moments. Columns are z-scored, rows have norm 1, "
        "the target is centred by its mean and divided by its largest size; no intercept. 60 % to fit on, 10 % public, "
        "30 % to measure the mean squared error on.",
        "All methods get the bounds, epsilon and delta, and nothing else that depends on the table, but for some: "
        "descents and ops_balanced get the number of rows to one digit, as a public guess. A refused fit predicts 0.",
        "*: the best private method. public: needs public rows of the same kind, so it is not ranked. reference: not "
        "private. ±: standard error. diffprivlib is held to pure epsilon.",
    )

    def check(self, variants: Sequence[float]) -> None:
        """The first is the bound itself."""
        if not all(factor > 1 for factor in variants[1:]):
            raise ValueError("--loose is a factor above 1: how many times too large the bound on targets is")

    def measure(self, answer: Floats | None, split: TableSplit) -> tuple[float, float]:
        """The mean squared error, and whether the fit was refused: that predicts 0, as one would without a model."""
        X, y = split.test
        with np.errstate(all="ignore"):  # a peer may answer with anything
            mse = float(np.mean((y if answer is None else y - X @ answer) ** 2))
        return mse if np.isfinite(mse) else np.inf, float(answer is None)

    def title(self, cell: ContestCell) -> str:
        """The table, epsilon, and how loose the bound is."""
        loose = "" if cell.variant == 1 else f", bound on targets {cell.variant:g} times too large"
        return f"{cell.dataset}, epsilon {cell.epsilon:g}{loose}"

    def columns(self, cell: ContestCell, winner: ContestCell | None, group: Sequence[ContestCell]) -> dict[str, str]:
        """The error and what it is over the best."""
        found = {
            "error": f"{cell.mean:.4g}",
            "±": f"{cell.deviation:.1g}",
            "over best": _ratio(cell.mean / winner.mean if winner else None),
            "s per fit": f"{cell.seconds:.3f}",
        }
        if any(any(each.measured[1]) for each in group):
            found["refused"] = f"{sum(cell.measured[1]):.0f}"
        return found

    def rivals(self, group: Sequence[ContestCell]) -> list[ContestCell]:
        """All that are ranked."""
        return [cell for cell in group if self.contenders[cell.method].ranked]

    def extra(self, report: ContestReport, method: str) -> float | None:
        """The geometric mean of its error with the loose bound over that with the tight one."""
        means = {(c.dataset, c.epsilon, c.variant): c.mean for c in report.cells if c.method == method}
        return geometric([means[d, e, f] / means[d, e, 1.0] for d, e, f in means if f != 1])

    def parts(self, variants: Sequence[float]) -> Sequence[float]:
        """Each bound apart."""
        return variants

    def part_title(self, part: float) -> str:
        """Which bound."""
        return "all cells" if part == 1 else f"bound {part:g} times"

    def summary(self, found: ContestSummary, plan: ContestPlan) -> dict[str, str]:
        """How near, and what a loose bound costs."""
        row = {
            "best or within 1 %": f"{found.near:.0%}",
            "error over the best peer": _ratio(found.ratio),
            "worst": _ratio(found.worst),
        }
        loose = {f"bound {factor:g} times too large costs": _ratio(found.extra) for factor in plan.variants[1:]}
        return row | loose


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 1000 else f"{value:.1e}"


TASK = Regression()


def fit_times(
    rows: int = 1_000_000, columns: int = 20, repeats: int = 3, methods: Sequence[str] | None = None
) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over, with exact noise; the target has heavy tails."""
    wanted = [name for name in TASK.chosen(list(methods) if methods else None) if name in OURS]
    X, y = made_up(rows, columns)
    with one_thread():
        first = timed(f"{rows:,} x {columns}", _peers(X, y) | _ours(X, y, wanted), repeats, twice=True)
        grids = [row for name, jobs in _grids(X, y, wanted).items() for row in timed(name, jobs, repeats, twice=True)]
    return first + grids


def fit(X: Floats, y: Floats, **options: Any) -> LinearRegression:
    """One private fit without an intercept unless asked for."""
    wish = {"epsilon": 1, "delta": 1e-6, "x_norm": 1, "y_bound": 2, "fit_intercept": False} | options
    return LinearRegression(**wish).fit(X, y)


def _peers(X: Floats, y: Floats) -> dict[str, Callable[[], object]]:
    linear: Any = importlib.import_module("sklearn.linear_model")
    return {
        RIDGE: lambda: linear.Ridge(fit_intercept=False).fit(X, y),
        f"{RIDGE} with intercept": lambda: linear.Ridge().fit(X, y),
        HUBER: lambda: linear.HuberRegressor(fit_intercept=False).fit(X, y),
    }


def _ours(X: Floats, y: Floats, wanted: Sequence[str]) -> dict[str, Callable[[], object]]:
    told = {name: OURS[name] | ({"rows": len(y)} if "rows" in OURS[name] else {}) for name in wanted}
    jobs: dict[str, Callable[[], object]] = {name: partial(fit, X, y, **options) for name, options in told.items()}
    if "auto" in wanted:
        jobs["auto with intercept"] = partial(fit, X, y, fit_intercept=True)
    return jobs


def _grids(X: Floats, y: Floats, wanted: Sequence[str]) -> dict[str, Jobs]:
    """One proposal beside thirty, of which the best is taken."""
    public = made_up(10_000, X.shape[1])
    found: dict[str, Jobs] = {}
    for name, options in (("sufficient", {"validation": public}), ("posterior", {})):
        if name in wanted:
            found[f"proposals of {name}"] = {
                "1 ridge": partial(fit, X, y, method=name, proposals={"ridge": _GRID[15:16]}, **options),
                "30 ridges": partial(fit, X, y, method=name, proposals={"ridge": _GRID}, **options),
            }
    return found


def show_times(rows: Sequence[Timing], console: Console) -> None:
    """Print fit times and ratios."""
    console.print(GOALS, highlight=False)
    medians = {row.name: row.median_s for row in rows}
    main = Table(rows[0].group, "first, s", "fastest, s", "median, s", "over Ridge", "over Huber")
    grids = Table("proposals", "first, s", "fastest, s", "median, s", "over one proposal")
    for row in rows:
        if row.group == rows[0].group:
            main.add_row(row.name, *row.seconds, *(f"{row.median_s / medians[base]:.2f}" for base in (RIDGE, HUBER)))
        else:
            name = f"{row.group.removeprefix('proposals of ')}, {row.name}"
            grids.add_row(name, *row.seconds, f"{row.relative:.2f}")
    console.print(main)
    if grids.row_count:
        console.print(grids)
