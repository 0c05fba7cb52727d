"""The jobs: releases from a file, and what somebody would do with the same file without privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import snugdp
from snugdp.noise import Simulation
from snugdp.tables.engines import measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.rowmap import RowMap
from snugdp.tables.schema.schema import Category, Layout, Number, Schema
from snugdp_studies.bench.gram import Floats, exact, numbers

_STEP = 250_000  # rows that are made at a time
_TOLERANCE = 1e-6  # of a Newton step
_STEPS = 6  # of a robust line
_WIDE = 10.0  # times the true bounds: so wide that a line does not end in least squares


def write_rows(path: Path, rows: int, d: int) -> None:
    """A table of ``d`` columns between -1 and 1, a number ``y`` that a line predicts, and a label ``yes``."""
    slopes = np.linspace(1, -1, d)

    def part(start: int) -> pl.LazyFrame:
        n = min(_STEP, rows - start)
        draw = np.random.default_rng(start)
        X, noise = draw.uniform(-1, 1, (n, d)), draw.logistic(size=n)
        score = X @ slopes
        frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(d)], orient="row")
        y = np.clip(score / d + 0.1 * noise, -1, 1)
        return frame.with_columns(y=pl.Series(y), yes=pl.Series((score + noise > 0).astype(np.int8))).lazy()

    _write(path, (part(start) for start in range(0, rows, _STEP)))


def write_values(path: Path, rows: int) -> None:
    """A column of different values."""

    def part(start: int) -> pl.LazyFrame:
        return pl.LazyFrame({"x": np.random.default_rng(start).uniform(-1, 1, min(_STEP, rows - start))})

    _write(path, (part(start) for start in range(0, rows, _STEP)))


def _write(path: Path, parts: Iterator[pl.LazyFrame]) -> None:
    """Group after group, so that a large file takes no memory."""
    import pyarrow.parquet as pq

    writer = None
    for part in parts:
        table = part.collect().to_arrow()
        writer = pq.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table)
    assert writer is not None
    writer.close()


# ---- with privacy


def logistic(path: Path) -> object:
    """Labels, by the default."""
    schema = Schema({**_columns(path), "yes": Category([0, 1])}, target="yes")
    return snugdp.LogisticRegression(schema=schema, noise=Simulation(1)).fit(path)


def linear(path: Path, bound: float = 1) -> object:
    """A line, by the default, between bounds that are as wide as this."""
    columns = dict.fromkeys(_columns(path), Number(-bound, bound))
    schema = Schema({**columns, "y": Number(-bound, bound)}, target="y")
    return snugdp.LinearRegression(schema=schema, noise=Simulation(1)).fit(path)


def exact_gram(path: Path) -> object:
    """X'X, X'y, y'y in whole numbers."""
    return measure(path, GramPass(line(path)), progress=False)


def median(path: Path) -> object:
    """The median of a column."""
    return snugdp.median(path, column="x", bounds=(-1, 1), epsilon=1, noise=Simulation(1))


# ---- without


def newton(path: Path) -> Floats:
    """Labels, by Newton's method in floats: each step reads the file."""
    names = [*_columns(path), "yes"]
    theta = np.zeros(len(names))
    while True:
        gradient, hessian = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        for batch in _streamed(path, names):
            X, label = batch.copy(), batch[:, -1]
            X[:, -1] = 1.0
            p = 1 / (1 + np.exp(-(X @ theta)))
            gradient += X.T @ (p - label)
            hessian += X.T @ (X * (p * (1 - p))[:, None])
        step = np.linalg.solve(hessian, gradient)
        theta -= step
        if np.abs(step).max() < _TOLERANCE:
            return theta


def gram(path: Path) -> Floats:
    """X'X, X'y, y'y in floats: one pass."""
    names = [*_columns(path), "y"]
    found = np.zeros((len(names), len(names)))
    for batch in _streamed(path, names):
        found += batch.T @ batch
    return found


def robust(path: Path) -> Floats:
    """A robust line on whitened, shortened rows, with the steps of ours: in floats, without noise, all rows in memory.

    One pass over the file for the moments; of the rows that are kept one for lengths and residuals, one that turns and
    shortens them, two gradients and a Hessian.
    """
    names = [*_columns(path), "y"]
    blocks, moments, ones = [], np.zeros((len(names), len(names))), np.zeros(len(names))
    for batch in _streamed(path, names):
        blocks.append(batch.copy())
        moments += batch.T @ batch
        ones += batch.sum(axis=0)
    rows, entries = sum(map(len, blocks)), len(names)
    centre = ones[-1] / rows
    gram = np.block([[moments[:-1, :-1], ones[:-1, None]], [ones[None, :-1], np.full((1, 1), rows)]])
    values, vectors = np.linalg.eigh(gram)
    turn = vectors * np.sqrt(rows / values) @ vectors.T
    lengths, sizes = np.zeros(64), np.zeros(64)
    for block in blocks:
        lengths += _octaves(np.einsum("ij,ij->i", Z := block[:, :-1] @ turn[:-1] + turn[-1], Z))
        sizes += _octaves(block[:, -1] - centre)
    radius, tau = 2.0 ** (_middle(lengths) / 2), 2.0 ** _middle(sizes)
    turned = []
    while blocks:
        block = blocks.pop()
        Z = block[:, :-1] @ turn[:-1] + turn[-1]
        short = np.minimum(1.0, radius / np.sqrt(np.einsum("ij,ij->i", Z, Z)))
        turned.append((np.multiply(Z, short[:, None], out=Z), (block[:, -1] - centre) * short))
    least = np.linalg.solve(gram, [*moments[:-1, -1] - centre * ones[:-1], 0.0])  # squares
    theta = np.linalg.solve(turn, least)
    hessian = gram
    for step in range(_STEPS):  # on some rows, then on all of them, the last time with the Hessian that is known
        gradient, matrix = np.zeros(entries), np.zeros((entries, entries))
        for Z, y in turned if step >= _STEPS - 2 else turned[:1]:
            slope = np.tanh((y - Z @ theta) / tau)
            gradient += slope @ Z
            if step < _STEPS - 1:
                matrix += (Z.T * ((1.0 - slope * slope) / tau)) @ Z
        hessian = matrix if step < _STEPS - 1 else hessian
        theta += np.linalg.solve(hessian, gradient)
    return np.asarray(turn @ theta)


def _octaves(numbers: Floats) -> Floats:
    return np.bincount(np.frexp(numbers)[1].clip(-31, 31) + 31, minlength=64).astype(np.float64)


def _middle(counts: Floats) -> int:
    return int(np.searchsorted(np.cumsum(counts), counts.sum() / 2)) - 31


def plain_median(path: Path) -> object:
    """The median of a column, by polars."""
    return pl.scan_parquet(path).select(pl.col("x").median()).collect()


def _streamed(path: Path, names: list[str]) -> Iterator[Floats]:
    query = pl.scan_csv(path) if path.suffix == ".csv" else pl.scan_parquet(path)
    for batch in query.select(names).collect_batches(maintain_order=False, lazy=True):
        yield batch.to_numpy()


def line(path: Path) -> Layout:
    """The columns and the target of a line, without an intercept."""
    return Schema({**_columns(path), "y": Number(-1, 1)}, target="y", intercept=False)


def _columns(path: Path) -> dict[str, Number]:
    query = pl.scan_csv(path) if path.suffix == ".csv" else pl.scan_parquet(path)
    return {name: Number(-1, 1) for name in query.collect_schema().names() if name not in ("y", "yes")}


JOBS: dict[str, Callable[[Path], object]] = {
    "logistic": logistic,
    "newton": newton,
    "linear": linear,
    "wide linear": partial(linear, bound=_WIDE),
    "robust": robust,
    "gram": gram,
    "exact gram": exact_gram,
    "median": median,
    "plain median": plain_median,
}


def in_memory(rows: int, d: int) -> dict[str, Callable[[], object]]:
    """X'X in floats, and X'X, X'y, y'y in whole numbers, of a matrix in memory."""
    X, y, mapped = numbers(rows, d) / d**0.5, numbers(rows, 1)[:, 0], RowMap(d, 1)
    return {"floats": lambda: X.T @ X, "exact": lambda: exact(mapped, X, y)}
