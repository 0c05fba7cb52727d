"""One rival on all tables, in an environment of its own: `python worker.py NAME tables.npz RESULTS ASKED`.

Needs numpy and the rival alone. Every rival gets the same rows and the same public bounds: every column and the target
lie in [-1, 1]. What it cannot use it does not get; nothing is tuned to a table. Every result is a line of JSON, written
as soon as there is one: whoever is stopped has said what it knows.
"""

import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from math import erf, exp, sqrt
from typing import Any, TypeAlias

import numpy as np

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
SEEDS = 5
NO = float("nan")  # no such release


# ---- linear regression: each returns predictions for the rows of the test part


def snugdp_bounds(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """The default, with the public bounds of all columns."""
    import snugdp

    names = [f"x{i}" for i in range(X.shape[1])]
    schema = snugdp.Schema({**{name: snugdp.Number(-1, 1) for name in (*names, "y")}}, target="y")
    return _ours(X, y, test, snugdp.LinearRegression(epsilon, DELTA, schema=schema, random_state=seed))


def snugdp_curves(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """A sum of curves, with the public bounds of all columns: for tables that no line fits."""
    import snugdp

    names = [f"x{i}" for i in range(X.shape[1])]
    schema = snugdp.Schema({**{name: snugdp.Number(-1, 1) for name in (*names, "y")}}, target="y")
    return _ours(X, y, test, snugdp.AdditiveRegressor(epsilon, DELTA, schema=schema, random_state=seed))


def snugdp_raw(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """The default, without any bounds: they are found privately, and paid for."""
    import snugdp

    return _ours(X, y, test, snugdp.LinearRegression(epsilon, DELTA, random_state=seed), raw=True)


def snugdp_adassp(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """AdaSSP (Wang 2018), as implemented here."""
    import snugdp

    names = [f"x{i}" for i in range(X.shape[1])]
    schema = snugdp.Schema({**{name: snugdp.Number(-1, 1) for name in (*names, "y")}}, target="y")
    return _ours(X, y, test, snugdp.LinearRegression(epsilon, DELTA, method="adassp", schema=schema, random_state=seed))


def _ours(X: Any, y: Any, test: Any, model: Any, *, raw: bool = False) -> Any:
    import polars as pl

    names = [f"x{i}" for i in range(X.shape[1])]
    table = pl.DataFrame({**dict(zip(names, X.T, strict=True)), "y": y})
    model.fit(table, "y") if raw else model.fit(table)
    return model.predict(pl.DataFrame(dict(zip(names, test.T, strict=True)))) if model.released_ else None


def diffprivlib_linear(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """The functional mechanism of diffprivlib: pure epsilon."""
    model = import_module("diffprivlib.models").LinearRegression(
        epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed
    )
    return model.fit(X, y).predict(test)


def dp_ebm(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """DP-EBM of interpret, with public bounds: additive, so it may bend where a line cannot."""
    bounds = dict.fromkeys(range(X.shape[1]), (-1.0, 1.0))
    model = import_module("interpret.privacy").DPExplainableBoostingRegressor(
        epsilon=epsilon,
        delta=DELTA,
        privacy_bounds=bounds,
        privacy_target_min=-1,
        privacy_target_max=1,
        feature_types=["continuous"] * X.shape[1],
        random_state=seed,
        n_jobs=1,
    )
    return model.fit(X, y).predict(test)


def least_squares(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """Without privacy."""
    line = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    return np.column_stack([test, np.ones(len(test))]) @ line


def tukey_em(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """TukeyEM (Amin, Joseph, Ribero, Vassilvitskii 2022), written from the paper: no bounds needed; numpy's noise.

    Many least-squares fits on disjoint rows; a test (half of epsilon, all of delta) that the approximate Tukey depth is
    stable; then a point drawn by depth, from the boxes that the sorted coefficients make.
    """
    rng, models = np.random.default_rng(seed), 1000
    rows = np.column_stack([X, np.ones(len(X))])
    parts = np.array_split(rng.permutation(len(rows)), models)
    fits = np.array([np.linalg.lstsq(rows[part], y[part], rcond=None)[0] for part in parts])
    ordered, half = np.sort(fits, axis=0), models // 2
    lows, highs = ordered[:half], ordered[::-1][:half]  # box i: depth at least i + 1
    volumes = np.sum(np.log(np.maximum(highs - lows, 1e-300)), axis=1)
    check, draw, start = epsilon / 2, epsilon / 2, models // 4
    if _stable(volumes, draw, start) + rng.laplace(0, 1 / check) <= np.log(1 / (2 * DELTA)) / check:
        return None
    depths = np.arange(start, half - 1)
    shells = volumes[depths] + np.log1p(-np.exp(np.minimum(volumes[depths + 1] - volumes[depths], -1e-12)))
    chosen = int(depths[np.argmax(shells + draw * depths / 2 + rng.gumbel(size=len(depths)))])
    while True:
        point = rng.uniform(lows[chosen], highs[chosen])
        if np.any(point < lows[chosen + 1]) or np.any(point > highs[chosen + 1]):
            return np.column_stack([test, np.ones(len(test))]) @ point


def _stable(volumes: Any, epsilon: float, start: int) -> int:
    """How many fits would have to change, at least, before the draw could be unstable."""
    limit = np.log(DELTA / (8 * np.exp(epsilon)))
    for k in range(start - 2, -1, -1):
        ahead = np.arange(start + k + 2, len(volumes))
        if np.any(volumes[start - k - 1] - volumes[ahead] - epsilon * (ahead - start - k - 1) / 2 <= limit):
            return k
    return -1


def boosted_adassp(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """Boosted AdaSSP (Tang and others 2023), written from the paper; numpy's noise.

    One noisy Gram matrix, then 100 rounds of noisy correlations with what is left, clipped to 1, without shrinkage, as
    its authors take. A third of the squared Gaussian budget goes into each of the least eigenvalue, the matrix, and all
    rounds together.
    """
    rng, rounds = np.random.default_rng(seed), 100
    rows = np.column_stack([X, np.ones(len(X))])
    rows = rows / np.sqrt(rows.shape[1])
    mu = _gaussian_mu(epsilon, DELTA)
    each = mu / np.sqrt(3)
    width = rows.shape[1]
    noise = rng.normal(size=(width, width)) / each
    gram = rows.T @ rows + (np.triu(noise) + np.triu(noise, 1).T)
    least = max(np.linalg.eigvalsh(rows.T @ rows)[0] + (rng.normal() - 2.6) / each, 0)
    ridge = max(0, np.sqrt(width * np.log(2 * width**2 / 0.05)) / each - least)
    line = np.zeros(width)
    for _ in range(rounds):
        left = np.clip(y - rows @ line, -1, 1)
        noisy = rows.T @ left + rng.normal(size=width) * np.sqrt(rounds) / each
        line = line + np.linalg.solve(gram + ridge * np.eye(width), noisy)
    return np.column_stack([test, np.ones(len(test))]) / np.sqrt(width) @ line


def hessian_mixing(X: Any, y: Any, test: Any, epsilon: float, seed: int) -> Any:
    """Iterative Hessian Mixing (Lev and others 2026, arXiv 2601.07545), written from its authors' code.

    Three steps of Newton's method: each with a Gaussian sketch of the rows, blurred as far as their least eigenvalue
    does not hide a row already, and a noisy correlation with what is left, clipped to 1. Half of epsilon is for
    sketches and eigenvalue, half for correlations; numpy's noise.
    """
    rng, steps = np.random.default_rng(seed), 3
    rows = np.column_stack([X, np.ones(len(X))])
    width = rows.shape[1]
    rows = rows / np.sqrt(width)
    failing = DELTA / 10
    size = 6 * int(max(width, np.log(4 * steps / failing)))
    hidden = _mixing_level(epsilon / 2, DELTA / 4, size, steps)
    blur, cut = hidden / np.sqrt(size), np.sqrt(2 * np.log(max(4 / DELTA, 4 / failing)))
    least = max(np.linalg.eigvalsh(rows.T @ rows)[0] - blur * (cut - rng.normal()), 0)
    scale = np.sqrt(max(hidden - least, 0))
    noise, line = np.sqrt(steps) / _gaussian_mu(epsilon / 2, DELTA / 4), np.zeros(width)
    for _ in range(steps):
        sketch = rng.normal(size=(size, len(rows))) @ rows + scale * rng.normal(size=(size, width))
        noisy = rows.T @ np.clip(y - rows @ line, -1, 1) + noise * rng.normal(size=width)
        line = line + np.linalg.solve(sketch.T @ sketch / size, noisy)
    return np.column_stack([test, np.ones(len(test))]) / np.sqrt(width) @ line


def _mixing_level(epsilon: float, delta: float, size: int, steps: int) -> float:
    """The least eigenvalue of rows and blur together at which so many sketches have this epsilon and delta.

    Their Rényi divergences, composed and converted at the best order, and the release of the eigenvalue.
    """
    orders = 1 + np.geomspace(1e-3, 1e5, 4000)

    def at(level: float) -> float:
        legal = orders[orders < level * (1 - 1e-9)]
        rest = legal - 1
        sketch = size / (2 * rest) * (legal * np.log1p(-1 / level) - np.log1p(-legal / level))
        turned = (np.log(1 / delta) + rest * np.log1p(-1 / legal) - np.log(legal)) / rest
        return float(np.min(steps * sketch + turned) + np.sqrt(2 * np.log(1.25 / delta) * size) / level)

    low, high = 2.0, 1e8
    for _ in range(100):
        level = np.sqrt(low * high)
        low, high = (low, level) if at(level) <= epsilon else (level, high)
    return float(high)


def _gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy with this epsilon and delta."""

    def phi(x: float) -> float:
        return 0.5 * (1 + erf(x / sqrt(2)))

    low, high = 1e-6, 10.0
    for _ in range(80):
        mu = (low + high) / 2
        at = phi(-epsilon / mu + mu / 2) - exp(epsilon) * phi(-epsilon / mu - mu / 2)
        low, high = (mu, high) if at <= delta else (low, mu)
    return low


# ---- the mean and the median of one column with wide bounds


def snugdp_column(low: float, high: float, epsilon: float) -> Any:
    """Exact noise; numbers are clipped privately where that pays."""
    import snugdp

    mean = snugdp.Mean(bounds=(low, high), epsilon=epsilon, rows=10_000)
    median = snugdp.Median(bounds=(low, high), epsilon=epsilon)

    def both(values: Any) -> tuple[Any, Any]:
        released: Any = mean.release(values).value
        return released.value, median.release(values).value

    return both


def diffprivlib_column(low: float, high: float, epsilon: float) -> Any:
    """The tools of diffprivlib."""
    tools: Any = import_module("diffprivlib.tools")
    given = {"epsilon": epsilon, "bounds": (low, high)}
    return lambda values: (float(tools.mean(values, **given)), float(tools.median(values, **given)))


def opendp_column(low: float, high: float, epsilon: float) -> Any:
    """OpenDP: half of epsilon for a clamped sum and half for a count; the median by scores of 200 candidates."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    total = space >> dp.t.then_clamp((low, high)) >> dp.t.then_sum()
    noisy = dp.binary_search_chain(lambda scale: total >> dp.m.then_laplace(scale), 1, epsilon / 2)
    count = space >> dp.t.then_count() >> dp.m.then_laplace(2 / epsilon)
    candidates = [low + (high - low) * i / 199 for i in range(200)]
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    pick = dp.binary_search_chain(
        lambda scale: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True), 1, epsilon
    )

    def both(values: Any) -> tuple[float, float]:
        data = [float(value) for value in values]
        return noisy(data) / max(count(data), 1), candidates[pick(data)]

    return both


def pipeline_dp_column(low: float, high: float, epsilon: float) -> Any:
    """PipelineDP on its local backend: the mean of one public partition, Laplace noise."""
    library: Any = import_module("pipeline_dp")
    params = library.AggregateParams(
        metrics=[library.Metrics.MEAN],
        noise_kind=library.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=low,
        max_value=high,
    )
    read = library.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: 0, value_extractor=lambda row: row[1]
    )

    def mean(values: Any) -> tuple[float, float]:
        budget = library.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=DELTA)
        engine = library.DPEngine(budget, library.LocalBackend())
        found = engine.aggregate(list(enumerate(values.tolist())), params, read, public_partitions=[0])
        budget.compute_budgets()
        return next(iter(found))[1].mean, NO

    return mean


def smartnoise_column(low: float, high: float, epsilon: float) -> Any:
    """SmartNoise SQL: AVG. It pays three times the epsilon that it is given, as its get_privacy_cost says."""
    snsql: Any = import_module("snsql")
    frames: Any = import_module("pandas")

    def mean(values: Any) -> tuple[float, float]:
        column = {"type": "float", "lower": low, "upper": high}
        known = {"": {"s": {"t": {"row_privacy": True, "rows": len(values), "v": column}}}}
        privacy = snsql.Privacy(epsilon=epsilon / 3, delta=DELTA / 2)
        reader = snsql.from_df(frames.DataFrame({"v": values}), privacy=privacy, metadata=known)
        return float(reader.execute("SELECT AVG(v) AS m FROM s.t")[1][0]), NO

    return mean


def tumult_column(low: float, high: float, epsilon: float) -> Any:
    """Tumult Analytics on local Spark: the average and the median of a table that one row may join, each by epsilon."""
    library, frames, spark = import_module("tmlt.analytics"), import_module("pandas"), _spark()
    query, budget = library.QueryBuilder, library.PureDPBudget

    def both(values: Any) -> tuple[float, float]:
        table = spark.createDataFrame(frames.DataFrame({"v": values}))
        session = library.Session.from_dataframe(budget(2 * epsilon), "t", table, protected_change=library.AddOneRow())
        asked = (query("t").average("v", low=low, high=high), query("t").median("v", low=low, high=high))
        mean, median = (session.evaluate(each, budget(epsilon)).collect()[0][0] for each in asked)
        return float(mean), float(median)

    return both


def _spark() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same libraries
    sql: Any = import_module("pyspark.sql")
    built = sql.SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }.items():
        built = built.config(name, value)
    return built.getOrCreate()


# ---- how many releases of one kind fit a budget of epsilon 1 and delta 1e-6

KINDS = {"Gaussian, sigma 50": ("gaussian", 50.0), "Laplace, scale 100": ("laplace", 100.0)}
MOST = 20_000


def snugdp_releases(kind: str, scale: float) -> dict[str, int]:
    """What a ledger takes, whatever is chosen after looking at answers."""
    import snugdp

    cost = snugdp.Cost(mu=1 / scale) if kind == "gaussian" else snugdp.Cost(epsilon=1 / scale)
    budget = snugdp.Budget(1, DELTA)
    ways = {"snugdp, tight ledger": "tight", "snugdp, adding ledger": "addition"}
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: _most(snugdp.Ledger.open(f"{folder}/{way}", dataset="x", budget=budget, composition=way), cost)
            for name, way in ways.items()
        }


def _most(ledger: Any, cost: Any) -> int:
    with ledger:
        return int(ledger.payable([cost] * 3000))


def dp_accounting_releases(kind: str, scale: float) -> dict[str, int]:
    """dp-accounting: the composition of a number of releases that is fixed beforehand."""
    library: Any = import_module("dp_accounting")
    event = library.GaussianDpEvent(scale) if kind == "gaussian" else library.LaplaceDpEvent(scale)
    ways = {
        "PLD": import_module("dp_accounting.pld").PLDAccountant,
        "RDP": import_module("dp_accounting.rdp").RdpAccountant,
    }
    return {f"dp-accounting, {name}": _fitting(library, way, event) for name, way in ways.items()}


def _fitting(library: Any, way: Any, event: Any) -> int:
    low, high = 0, MOST
    while high - low > 1:
        number = (low + high) // 2
        accountant = way().compose(library.SelfComposedDpEvent(event, number))
        low, high = (number, high) if accountant.get_epsilon(DELTA) <= 1 else (low, number)
    return low


RELEASED: dict[str, Any] = {"snugdp": snugdp_releases, "dp-accounting": dp_accounting_releases}
REGRESSION: dict[str, dict[str, Any]] = {
    "snugdp": {
        "snugdp": snugdp_bounds,
        "snugdp, curves": snugdp_curves,
        "snugdp, no bounds": snugdp_raw,
        "AdaSSP (in snugdp)": snugdp_adassp,
    },
    "diffprivlib": {"diffprivlib": diffprivlib_linear},
    "interpret-core": {"DP-EBM": dp_ebm},
    "numpy": {
        "TukeyEM": tukey_em,
        "Boosted AdaSSP": boosted_adassp,
        "least squares, not private": least_squares,
        "Iterative Hessian Mixing": hessian_mixing,
    },
}
COLUMNS: dict[str, Any] = {
    "snugdp": snugdp_column,
    "diffprivlib": diffprivlib_column,
    "opendp": opendp_column,
    "pipeline-dp": pipeline_dp_column,
    "smartnoise-sql": smartnoise_column,
    "tmlt.analytics": tumult_column,
}


CLOCKS: dict[str, Any] = {"tmlt.analytics": time.perf_counter}  # Spark works in other processes: seconds on the clock
Results: TypeAlias = Iterator[dict[str, Any]]


def regressions(rival: str, held: Any, rows: int) -> Results:
    """R² on other rows, for every method, table and epsilon."""
    for name, fit in REGRESSION.get(rival, {}).items():
        for table in held["tables"]:
            X, y, test, truth = (held[f"{table}_{part}"] for part in ("X", "y", "test", "truth"))
            for epsilon in EPSILONS:
                scores, times = [], []
                for seed in range(SEEDS):
                    before = time.process_time()
                    said = fit(X[:rows], y[:rows], test, epsilon, seed)
                    times.append(time.process_time() - before)
                    scores.append(None if said is None else float(1 - np.mean((truth - said) ** 2) / np.var(truth)))
                found = {"epsilon": epsilon, "r2": scores, "seconds": float(np.median(times)), "rows": len(X[:rows])}
                yield {"what": "regression", "name": name, "table": str(table), **found}


def columns(rival: str, held: Any, rows: int, releases: int) -> Results:
    """Root mean squared errors of means and medians."""
    low, high = (float(end) for end in held["bounds"])
    clock = CLOCKS.get(rival, time.process_time)
    for table in held["columns"] if rival in COLUMNS else ():
        values = held[f"{table}_values"][:rows]
        truth = float(np.mean(values)), float(np.median(values))
        for epsilon in EPSILONS:
            ask = COLUMNS[rival](low, high, epsilon)
            before = clock()
            said = np.array([ask(values) for _ in range(releases)])
            seconds = (clock() - before) / len(said)
            mean, median = np.sqrt(np.mean((said - truth) ** 2, axis=0))
            found = {"epsilon": epsilon, "mean": float(mean), "median": None if np.isnan(median) else float(median)}
            counted = {"releases": releases, "seconds": seconds, "rows": len(values)}
            yield {"what": "column", "name": rival, "table": str(table), **found, **counted}


def accounting(rival: str) -> Results:
    """How many releases fit."""
    for table, (kind, scale) in KINDS.items() if rival in RELEASED else ():
        for name, count in RELEASED[rival](kind, scale).items():
            yield {"what": "accounting", "name": name, "table": table, "count": count}


def draws(rival: str, asked: list[dict[str, Any]]) -> Results:
    """Many releases of two tables that differ in one row, for an audit."""
    for each in asked:
        kept = {name: each[name] for name in ("release", "epsilon")}
        yield {"what": "draws", **kept, "draws": [list(_drawn(rival, each, table)) for table in each["tables"]]}


def _drawn(rival: str, each: dict[str, Any], table: Any) -> Iterator[float]:
    if each["release"] == "line":  # its value at 1
        (fit,), rows = REGRESSION[rival].values(), [np.array(part) for part in table]
        return (float(fit(*rows, np.ones((1, 1)), each["epsilon"], seed)[0]) for seed in range(each["runs"]))
    ask, place = COLUMNS[rival](0.0, 1.0, each["epsilon"]), ("mean", "median").index(each["release"])
    return (float(ask(np.array(table))[place]) for _ in range(each["runs"]))


def main(rival: str, file: str, results: str, asked: str) -> None:
    """All that this rival can do."""
    warnings.simplefilter("ignore")
    held, given = np.load(file), json.loads(asked)
    rows, releases = given["rows"], given["releases"]
    with open(results, "w", encoding="utf-8") as out:
        print(json.dumps({"version": version(rival), "numpy": version("numpy")}), file=out, flush=True)
        measured = regressions(rival, held, rows), columns(rival, held, rows, releases), accounting(rival)
        for found in chain(*measured, draws(rival, given["draws"])):
            print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
