"""The entry points of the library: every estimator and query of its public names, made with small public parameters.

They are found, not listed: a new estimator or query is audited without a line here if the parameters below are enough
for it, and otherwise the audit fails until they are. Releases are real and on few rows, by the quickest methods.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

import snugdp
from snugdp import Boolean, Budget, Category, Cost, MemoryLedger, Neighbours, Number, Schema, Simulation, Statistic
from snugdp.audit.finding import Finding
from snugdp.audit.side_channels.calls import bad_input, call_with, watch
from snugdp.certify.smooth import smooth_bound
from snugdp.core.outcome import Receipt
from snugdp.estimators.registry import BY_NAME
from snugdp.noise import Laplace
from snugdp.tables.cells import numbers
from snugdp.tables.losses.losses import PseudoHuber
from snugdp_studies.audit.side_channels.canaries import ROWS, canaries, columns, tables
from snugdp_studies.audit.side_channels.inputs import NAMES, TARGET, Given, inputs, object_array

_DATA = ("data", "votes", "X")  # what a public function calls private rows
_BUDGET = Budget(1, "1e-6")


class UncoveredError(LookupError):
    """A public name that reads rows and is not audited."""


class Counterfoil:
    """A ledger for audits: it hands out copies of one receipt, whatever the price. What is audited here is not paying.

    A budget of its own for every one of thousands of calls would take longer than the calls.
    """

    @cached_property
    def _receipt(self) -> Receipt:
        return MemoryLedger(1, 0, label="audit").charge(Cost(epsilon=1), "audit")

    def charge(self, cost: Cost, what: str) -> Receipt:
        """A receipt."""
        return replace(self._receipt, cost=cost, what=what)


LEDGER = Counterfoil()


@dataclass(frozen=True)
class EntryPoint:
    """One way to a release. ``takes``: "table" or "column". ``without``: the same with one parameter left out."""

    name: str
    takes: str
    release: Callable[[Any], Any]
    rows_are_public: bool = False
    without: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


PARAMETERS: dict[str, Any] = {
    "epsilon": 1,
    "delta": 1e-6,
    "x_norm": 2,
    "y_bound": 2,
    "y_max": 2,
    "bounds": (-1, 2),
    "q": 0.5,
    "beta": 2,
    "classes": [0, 1],
    "categories": [0, 1],
    "candidates": [0, 1],
    "n_features_to_select": 1,
    "n_components": 1,
    "budget": _BUDGET,
}
"""Public parameters by their names: what a new estimator most likely asks for."""

How = Callable[[], dict[str, Any]]
"""Where a release is paid, or its seed: made anew for every call."""


def paid() -> dict[str, Any]:
    """A release."""
    return {"ledger": LEDGER}


def rehearsed() -> dict[str, Any]:
    """A rehearsal with the same noise in every call: equal answers mean that the rows were read alike."""
    return {"noise": Simulation(11)}


OWN: dict[str, dict[str, Any]] = {
    "LinearRegression": {"bounds": "private", "method": "adassp"},
    "LogisticRegression": {"bounds": "private", "method": "objective"},
    "PoissonRegression": {"bounds": "private", "method": "objective"},
    "GLM": {"bounds": "private", "loss": PseudoHuber(1), "method": "objective", "classes": None},
    "AdditiveRegressor": {"bounds": "private", "method": "adassp", "cells": 2},
    "AdditiveClassifier": {"bounds": "private", "method": "objective", "cells": 2},
    "SparseLinearRegression": {"bounds": "private", "method": "adassp", "x_norm": None},
    "SparseLogisticRegression": {"bounds": "private", "method": "objective", "x_norm": None},
    "PCA": {"bounds": "private", "method": "gauss"},
    "PATEClassifier": {
        "teacher": GaussianNB(),
        "student": DummyClassifier(),
        "n_teachers": 2,
        "queries": [[0.0, 0.5], [0.5, -0.5], [-1.0, 1.0]],
        "test": "none",
    },
    "Prepare": {"bounds": None, "schema": Schema(dict.fromkeys(NAMES, Number()))},
    "StandardScaler": {"bounds": None},
    "OneHotEncoder": {"bounds": None, "categories": None, "schema": Schema(dict.fromkeys(NAMES, Category([0, 1])))},
    "label": {"form": "queries", "sigma": 40, "test": "none"},
    "median": {"beta": None},
    "quantile": {"beta": None},
    "quantiles": {"q": [0.25, 0.5, 0.75]},
    "quantile_interval": {"q": 0.75},
    "quantile_table": {"bins": 4},
    "trimmed_mean": {"beta": None, "delta": 0},
    "histogram": {"edges": (-1, 0, 0.5, 2), "bounds": None},
    "proportion": {"values": [1, 2]},
    "vote": {"delta": 0},
}
"""What only one entry point needs, or needs otherwise."""

KINDS: dict[str, Any] = {"OneHotEncoder": Category([0, 1])}
"""The features in the schema of an entry point that takes no ``Number(-2, 2)``."""

TARGETS: dict[str, Any] = {
    "LogisticRegression": Category([0, 1]),
    "AdditiveClassifier": Category([0, 1]),
    "SparseLogisticRegression": Boolean(),
}
"""The target in the schema of an entry point that takes no ``Number(0, 2)``."""

OPEN_TARGETS: dict[str, Any] = {
    "LogisticRegression": Category(),
    "AdditiveClassifier": Category(),
    "SparseLogisticRegression": Category(),
    "PoissonRegression": Number(lower=0),
    "SparseLinearRegression": Number(),
}
"""The target in the schema of an entry point that finds its classes, its largest count or its bounds by itself."""

ROWLESS: dict[str, str] = {
    "advise": "forecasts from what is public",
    "load": "reads a file of what was released",
    "save": "writes what was released",
    "check_pipeline": "looks at the types of steps",
}
"""Public functions that never see a row, and why."""
HANDED_ON: dict[str, str] = dict.fromkeys(
    ("from_distance", "from_statistics", "from_upper_bound", "calibrated"),
    "hands the data to the user's own functions, as they are",
)
"""Public functions that read no cell, and why."""
COVERED_BY: dict[str, str] = {
    "Bounds": "private_bounds",
    "Describe": "describe",
    "GroupBy": "group_by",
    "Correlation": "correlation",
    "Count": "count",
    "Covariance": "covariance",
    "Histogram": "histogram",
    "Mean": "mean",
    "InterquartileRange": "interquartile_range",
    "QuantileInterval": "quantile_interval",
    "QuantileTable": "quantile_table",
    "Maximum": "maximum",
    "Median": "median",
    "Minimum": "minimum",
    "Mode": "mode",
    "PrivateAlgorithm": "from_distance",
    "Proportion": "proportion",
    "Quantile": "quantile",
    "Quantiles": "quantiles",
    "Score": "score",
    "Selection": "select",
    "StandardDeviation": "standard_deviation",
    "Sum": "sum",
    "TrimmedMean": "trimmed_mean",
    "Variance": "variance",
    "Vote": "vote",
}
"""Classes of which a function is a short form: it makes one and calls its release."""

REQUIRED = ("x_norm", "y_bound", "y_max", "bounds", "classes", "categories", "candidates", "queries")
"""Public parameters that must never be taken from the rows."""


def entry_points(*, full: bool = False, names: Iterable[str] | None = None, how: How = paid) -> list[EntryPoint]:
    """All of them, or those of these names. A public name that reads rows and cannot be made here is an error."""
    wanted = None if names is None else set(names)
    found = [one for one in _found(full, how, wanted) if wanted is None or one.name in wanted]
    for one in found:
        _prove(one)
    return found


def entry_point_names(*, full: bool = False) -> list[str]:
    """Their names alone, which takes no time."""
    return [one.name for one in _found(full, paid)]


def _found(full: bool, how: How, wanted: set[str] | None = None) -> Iterator[EntryPoint]:
    """Those of all public names, or of those that have one that is wanted."""
    for name in snugdp.__all__:
        forms = (f"{name} (", f"{name}:", f"{name}.")
        if wanted is None or any(one == name or one.startswith(forms) for one in wanted):
            yield from points_of(name, getattr(snugdp, name), full, how)


def points_of(name: str, thing: Any, full: bool = False, how: How = paid) -> Iterator[EntryPoint]:
    """Those of one public name."""
    if isinstance(thing, ModuleType):
        for inner in thing.__all__:
            function = getattr(thing, inner)
            if inspect.isfunction(function) and _reads(function):
                yield from _query(f"{name}.{inner}", inner, function, how)
    elif inspect.isfunction(thing):
        if name in TABLE_BUILDERS:
            for own in (own for own in TABLE_BUILDERS if own == name or own.startswith(f"{name} (")):
                yield EntryPoint(own, "table", partial(_built_from_table, own, how))
        elif name in BUILDERS:
            for own in (own for own in BUILDERS if own == name or own.startswith(f"{name} (")):
                yield EntryPoint(own, "column", partial(_built, own, how))
        elif _reads(thing):
            yield from _query(name, name, thing, how)
        elif name not in ROWLESS:
            raise UncoveredError(f"snugdp.{name} has no parameter called {', '.join(_DATA)}: add it to BUILDERS")
    elif inspect.isclass(thing) and callable(getattr(thing, "fit", None)):
        yield from _estimator(name, thing, full, how)
    elif inspect.isclass(thing) and _releases(thing) and COVERED_BY.get(name) not in snugdp.__all__:
        raise UncoveredError(f"snugdp.{name} releases something: say in COVERED_BY which function makes it")


def _reads(function: Any) -> bool:
    return next(iter(inspect.signature(function).parameters), "") in _DATA


def _releases(thing: type) -> bool:
    return callable(getattr(thing, "release", None)) or "__call__" in vars(thing)


def _given(name: str, thing: Any) -> dict[str, Any]:
    """The public parameters that its signature asks for."""
    known = inspect.signature(thing).parameters
    given = {key: value for key, value in PARAMETERS.items() if key in known} | OWN.get(name, {})
    return {key: value for key, value in given.items() if value is not None}


def _taken(how: How, known: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in how().items() if key in known}


def _built(name: str, how: How, data: Any) -> Any:
    return BUILDERS[name](data, how())


def _built_from_table(name: str, how: How, data: Given) -> Any:
    return TABLE_BUILDERS[name](data, how())


def _query(name: str, short: str, function: Any, how: How) -> Iterator[EntryPoint]:
    given = _given(short, function)
    relation = inspect.signature(function).parameters.get("neighbours")
    default = None if relation is None else str(getattr(relation.default, "value", relation.default))

    def release(given: dict[str, Any]) -> Callable[[Any], Any]:
        return lambda data: function(_square(data) if "votes" in known else data, **given, **_taken(how, known))

    known = inspect.signature(function).parameters
    public = default == "replace" or "votes" in known
    finds = known["bounds"].default == "private" if "bounds" in known else False
    yield EntryPoint(name, "column", release(given), public, _without(given, release, ("bounds",) if finds else ()))
    if finds:
        open_ = {key: value for key, value in given.items() if key != "bounds"}
        yield EntryPoint(f"{name} (no bounds)", "column", release(open_), public)
    if default == "add_remove" and short in ("median", "mode", "vote", "mean", "histogram"):
        yield EntryPoint(f"{name} (replace)", "column", release({**given, "neighbours": "replace"}), True)
    if "method" in known and "beta" in known:
        tested = {**given, "beta": PARAMETERS["beta"], "neighbours": "replace"}
        yield EntryPoint(f"{name} (test)", "column", release(tested), True)
        if short == "median":
            yield EntryPoint(f"{name} (test, add_remove)", "column", release({**tested, "neighbours": "add_remove"}))


def _square(data: Any) -> Any:
    """A column as a table with one column: one teacher."""
    if isinstance(data, np.ndarray):
        return data.reshape(-1, 1)
    if isinstance(data, list | tuple):
        return [[cell] for cell in data]
    if hasattr(data, "to_frame"):
        return data.to_frame("one")
    if type(data).__module__.startswith("pyarrow"):
        import pyarrow

        return pyarrow.table({"one": data})
    return data


def _estimator(name: str, thing: Any, full: bool, how: How) -> Iterator[EntryPoint]:
    given = _given(name, thing)

    def fit(given: dict[str, Any]) -> Callable[[Any], Any]:
        return _fit(name, thing, given, how)

    known, finds = inspect.signature(thing).parameters, given.get("bounds") == "private"
    found = ("bounds", "x_norm") if "x_norm" in given else ("bounds", "y_bound", "classes")
    yield EntryPoint(name, "table", fit(given), without=_without(given, fit, found if finds else ()))
    opens = name in OPEN_TARGETS
    if finds:
        without = _fit_without_target if opens else _fit_without_bounds
        yield EntryPoint(f"{name} (no bounds)", "table", without(name, thing, given, how))
    if finds and opens and full:
        yield EntryPoint(f"{name} (public target)", "table", _fit_without_bounds(name, thing, given, how))
    methods = BY_NAME[name].all_methods() if full and name in BY_NAME else {}
    for method, recipe in methods.items():
        if method != given["method"]:
            guess = {"rows": 100} if getattr(recipe, "rows", None) else {}
            yield EntryPoint(f"{name}: {method}", "table", fit({**given, **guess, "method": method}))
    if full and "selection_share" in known:
        yield EntryPoint(f"{name}: votes", "table", fit({**given, "selection": "votes", "blocks": 2}))
        norm = {"selection": "gaussian", "row_norm": 2}
        yield EntryPoint(f"{name}: gaussian", "table", fit({**given, **norm}))


def _fit(name: str, thing: Any, given: dict[str, Any], how: How) -> Callable[[Any], Any]:
    known = inspect.signature(thing).parameters
    features = dict.fromkeys(NAMES, KINDS.get(name, Number(-2, 2)))
    schema = Schema({**features, TARGET: TARGETS.get(name, Number(0, 2))}, target=TARGET)
    bounds = ("x_norm", "y_bound", "classes") if "schema" in known else ()
    described = {**{key: value for key, value in given.items() if key not in bounds}, "schema": schema}
    asks = "groups" in inspect.signature(thing.fit).parameters

    def release(data: Given) -> Any:
        if data.described and "schema" in known:
            return thing(**described, **_taken(how, known)).fit(data.X)
        more = {"groups": data.groups, "queries": _queries(data.X)} if asks and "queries" in given else {}
        y = data.y if data.y is not None else np.ones(len(data.X)) if hasattr(data.X, "__len__") else None
        return thing(**given, **_taken(how, known)).fit(data.X, y, **more)

    return release


def _fit_without_target(name: str, thing: Any, given: dict[str, Any], how: How) -> Callable[[Any], Any]:
    """As without bounds, where nothing is known of the target either; a rehearsal finds it on a few rows."""
    left = {key: value for key, value in given.items() if key not in ("classes", "y_max", "y_bound")}
    if "noise" in how():
        left |= {"epsilon": 60, "delta": "0.01"}
    return _fit_without_bounds(name, thing, left, how, OPEN_TARGETS[name])


def _fit_without_bounds(
    name: str, thing: Any, given: dict[str, Any], how: How, target: Any = None
) -> Callable[[Any], Any]:
    """A fit of arrays and frames of which nothing is known, or of tables whose schema is open."""
    known = inspect.signature(thing).parameters
    norms = ("bounds", "x_norm", "y_bound") if "x_norm" in given else ("bounds",)
    free = {key: value for key, value in given.items() if key not in norms}
    if given["method"] == "objective":
        free["method"] = "auto"  # quicker beside looks
    target = target or TARGETS.get(name, Number(0, 2) if "y_max" in given else Number())
    schema = Schema({**dict.fromkeys(NAMES, Number()), TARGET: target}, target=TARGET)
    described = {**{key: value for key, value in free.items() if key not in ("classes", "y_bound")}, "schema": schema}

    def release(data: Given) -> Any:
        if data.described:
            return thing(**described, **_taken(how, known)).fit(data.X)
        y = data.y if data.y is not None else np.ones(len(data.X)) if hasattr(data.X, "__len__") else None
        return thing(**free, **_taken(how, known)).fit(data.X, y)

    return release


def _queries(X: Any) -> Any:
    """Public rows of the kind that X is: a table of the same library with the same columns, or those of ``OWN``."""
    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    rows = {name: [0.5, -0.5, 1.0] for name in frame.columns}
    return nw.from_dict(rows, backend=frame.implementation).to_native()


def _without(
    given: dict[str, Any],
    release: Callable[[dict[str, Any]], Callable[[Any], Any]],
    optional: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The same entry point with one of the required parameters left out, but for those that are ``optional`` there."""
    return {
        name: release({key: value for key, value in given.items() if key != name})
        for name in REQUIRED
        if name in given and name not in optional
    }


def plain_input(takes: str) -> Any:
    """Plain numbers in an array: a table or a column."""
    labels = np.array([0.0, 1.0, 1.0, 0.0])
    return Given(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]]), labels) if takes == "table" else labels


def _prove(one: EntryPoint) -> None:
    """That plain numbers are released or refused: otherwise the parameters are not enough."""
    try:
        one.release(plain_input(one.takes))
    except Exception as problem:
        raise UncoveredError(
            f"{one.name} cannot be audited with the parameters of entry_points.py: add what it needs there "
            f"({type(problem).__name__}: {problem})"
        ) from problem


def _tenths(rows: Any) -> int:
    """What somebody may compute of a column: it fails on what is no number, is too large, or is not there."""
    return round(10 * math.fsum(numbers(rows)) / len(rows))


def _count(rows: Any) -> float:
    return float(len(rows))


def _draw(data: Any, noise: Any) -> float:
    return float(noise.add(data.map(_tenths), Laplace(8), grid=0))


@cache
def _algorithm(name: str) -> Any:
    rows = Statistic("rows", _count, sensitivity=1, side="lower", between=(0, 1e6))
    if name == "from_distance":
        return snugdp.from_distance(distance=_tenths, draw=_draw, budget=_BUDGET)
    if name == "from_statistics":
        return snugdp.from_statistics(loss=lambda rows: 0.0, statistics=(rows,), draw=_draw, budget=_BUDGET)
    if name == "calibrated":
        return snugdp.calibrated(statistics=(rows,), draw=lambda data, _, noise: _draw(data, noise), budget=_BUDGET)
    widths: Any = {"beta": 0.05, "sigma": 8, "sigma_scale": 10, "order": 6, "between": (1, 10)}
    certifier = smooth_bound(_tenths, _count, **widths, delta="1e-6", neighbours=Neighbours.ADD_REMOVE)
    return snugdp.from_upper_bound(certifier=certifier, draw=_draw, limit=1, release=Cost(epsilon=1))


@cache
def _median(proposal: int, budget: Budget) -> snugdp.Median:
    bounds = (-proposal, proposal)
    return snugdp.Median(bounds=bounds, epsilon=budget.epsilon, delta=budget.delta, beta=proposal)


@cache
def _selection() -> tuple[snugdp.Selection[int], list[Any]]:
    """The best of two medians of what is held; planned once, because that takes long."""
    held: list[Any] = []

    def run(proposal: int, budget: Budget, ledger: Any, noise: Any) -> Any:
        return _median(proposal, budget).release(held[0], ledger=ledger, noise=noise)

    return snugdp.Selection([1, 2], run, lambda outcome: 0.0, budget=_BUDGET, mean_runs=2), held


def _of_pair(name: str, data: Any, how: dict[str, Any]) -> Any:
    """A statistic of a column with itself."""
    return getattr(snugdp, name)((data, data), bounds=((-1, 2), (0, 2)), epsilon=1, delta=1e-6, **how)


def _select(data: Any, how: dict[str, Any]) -> Any:
    selection, held = _selection()
    held[:] = [data]
    try:
        return selection.release(**how)
    finally:
        held.clear()


def _grouped(data: Any, how: dict[str, Any]) -> Any:
    """Counts and means of a column that is its own key: of listed keys; of most of those there are in a rehearsal."""
    given: dict[str, Any] = {
        "statistics": {"value": "mean"},
        "bounds": {"value": (-1, 2)},
        "epsilon": 1,
        "keys": [0, 1],
    }
    if "noise" in how:
        given |= {"epsilon": 60, "delta": "0.5", "keys": None}
    outcome = snugdp.group_by(_twice(data), "key", **given, **how)
    if outcome.value is None:  # something failed after the charge
        return outcome
    return replace(outcome, value=replace(outcome.value, library="polars"))  # that of the data is public


def _described(data: Any, how: dict[str, Any]) -> Any:
    """A column as numbers and as labels."""
    schema = Schema({"key": Category([0, 1]), "value": Number(-1, 2)}, intercept=False)
    return _in_polars(snugdp.describe(_twice(data), schema=schema, epsilon=1, delta=1e-6, **how))


def _described_without_schema(data: Any, how: dict[str, Any]) -> Any:
    """The same with nothing declared; with so much that in a rehearsal most of it is found."""
    epsilon = 60 if "noise" in how else 1
    return _in_polars(snugdp.describe(_twice(data), columns=["key", "value"], epsilon=epsilon, delta=1e-6, **how))


def _in_polars(outcome: Any) -> Any:
    if outcome.value is None:
        return outcome
    tables = {name: replace(getattr(outcome.value, name), library="polars") for name in ("columns", "values")}
    return replace(outcome, value=replace(outcome.value, **tables))  # the library of the data is public


def _twice(data: Any) -> Any:
    """A table that has a column twice, of the library that it came in."""
    kind = type(data).__module__.partition(".")[0]
    if kind == "polars":
        return data.to_frame("key").with_columns(value="key") if hasattr(data, "to_frame") else data
    if kind == "pyarrow":
        import pyarrow

        return pyarrow.table({"key": data, "value": data}) if not hasattr(data, "column_names") else data
    import pandas

    if isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.dtype.kind in "US"):
        data = pandas.Series(object_array(list(data)), dtype=object)  # of text pandas would make arrow's
    return pandas.DataFrame({"key": data, "value": data}) if isinstance(data, np.ndarray | pandas.Series) else data


BUILDERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    **{
        name: lambda data, how, name=name: _algorithm(name)(data, **how)  # type: ignore[misc]
        for name in ("from_distance", "from_statistics", "from_upper_bound", "calibrated")
    },
    "describe": _described,
    "describe (no schema)": _described_without_schema,
    "group_by": _grouped,
    **{name: partial(_of_pair, name) for name in ("covariance", "correlation")},
    "select": _select,
}
"""Public functions that make something which reads rows: how to release with it."""


class _Threshold:
    """Of others: the larger the first entry of a row, the more probable is 1. It fails on missing cells."""

    classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def predict_proba(self, X: Any) -> Any:
        first = np.asarray(X, dtype=np.float64)[:, 0]
        if np.isnan(first).any():
            raise ValueError(f"NaN in {first}")
        p = 0.5 + 0.5 * np.tanh(first)
        return np.stack([1 - p, p], axis=1)


@cache
def _regression() -> Any:
    X = np.linspace(-1, 1, 400).reshape(-1, 2)
    return snugdp.LinearRegression(1, 1e-6, x_norm=2, y_bound=(0, 2)).fit(X, 1 + X.mean(axis=1))


def _scored(model: Callable[[], Any], data: Given, how: dict[str, Any]) -> Any:
    """The scores of a model on rows with their target beside or among them."""
    y = TARGET if data.described else data.y if data.y is not None else np.ones(len(data.X))
    return snugdp.score(model(), data.X, y, epsilon=1, **how)


TABLE_BUILDERS: dict[str, Callable[[Given, dict[str, Any]], Any]] = {
    "score": partial(_scored, _Threshold),
    "score (regression)": partial(_scored, _regression),
}
"""The same of tables."""


# ---- bad input, what must be asked for, and what is kept or said, at every entry point


def bad_inputs(*, full: bool = False, names: Iterable[str] | None = None, part: slice = slice(None)) -> list[Finding]:
    """Bad input for every estimator and query of ``snugdp.__all__``, and whether what is public is asked for.

    Quick: more than 200 bad inputs for each. Full: all methods, every content in every form that can hold it.
    ``part``: of the forms.
    """
    found = []
    for one in entry_points(full=full, names=None if names is None else set(names)):
        groups = list(inputs(one.takes, full=full, rows_are_public=one.rows_are_public))[part]
        found.append(bad_input(one.name, one.release, groups))
        found += [demanded(one, what) for what in one.without]
    return found


def demanded(one: EntryPoint, what: str) -> Finding:
    """Whether a release without a public parameter is refused, in the same words whatever the rows are."""
    group = next(inputs(one.takes, rows_are_public=one.rows_are_public))
    seen = {watch(partial(call_with, one.without[what], given))[0] for given in group}
    passed = len(seen) == 1 and bool(next(iter(seen)).error)
    detail = "" if passed else "; ".join(sorted(map(str, seen)))
    said = "refused" if passed else f"{len(seen)} different answers"
    return Finding("B", one.name, f"without {what} nothing is released", said, passed, detail)


_NEAR_THE_ROWS = {
    "describe (no schema)",
    *(
        f"{name} (no bounds)"
        for name in (
            "mean",
            "median",
            "quantile",
            "quantiles",
            "quantile_interval",
            "quantile_table",
            "minimum",
            "maximum",
            "trimmed_mean",
        )
    ),
}
"""Without bounds a mean or quantile of a column whose cells are all a canary is about that number: the release."""


def kept(names: Iterable[str] | None = None) -> list[Finding]:
    """Canaries for every estimator and query of ``snugdp.__all__``."""
    found = []
    for one in entry_points(names=None if names is None else set(names)):
        if one.name in _NEAR_THE_ROWS:
            continue
        data = columns(40 if one.rows_are_public else ROWS) if one.takes == "column" else tables()
        found.append(canaries(one.name, one.release, data))
    return found
