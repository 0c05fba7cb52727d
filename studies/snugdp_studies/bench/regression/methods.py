"""The contenders of the regression benchmark. What they get is fixed for all tables: nothing is tuned to one."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp_studies.bench.regression.data import Floats, Split

Kind: TypeAlias = Literal["ours", "peer", "public", "reference"]


@dataclass(frozen=True)
class Setting:
    """What a contender is told besides the rows: the budget, the bound on targets, and where its noise starts."""

    epsilon: float
    delta: float
    y_bound: float
    noise: int


Fitter: TypeAlias = Callable[[Split, Setting], Floats | None]


@dataclass(frozen=True)
class Contender:
    """One method. ``kind``: ours and peers are ranked; "public" ones need public rows and references are no private
    methods, so both are shown outside the ranking. ``fit`` gives coefficients, or None for a refusal.
    """

    name: str
    kind: Kind
    fit: Fitter

    @property
    def ranked(self) -> bool:
        """Whether it can be the best."""
        return self.kind in ("ours", "peer")


def noise_start(*parts: object) -> int:
    """A number that depends on the names alone: the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Extra:
    """What one of our methods gets beyond budget and bounds."""

    method: str
    proposals: Mapping[str, Any] = field(default_factory=dict)
    rows: bool = False
    validation: bool = False


def ours(split: Split, setting: Setting, *, extra: Extra) -> Floats | None:
    """A fit by ``LinearRegression``, in rehearsal: the noise is seeded."""
    model = LinearRegression(
        setting.epsilon,
        setting.delta,
        method=extra.method,
        x_norm=1,
        y_bound=setting.y_bound,
        fit_intercept=False,
        proposals=dict(extra.proposals) or None,
        rows=split.rows_guess if extra.rows else None,
        validation=split.public if extra.validation else None,
        noise=Simulation(setting.noise),
    ).fit(*split.train)
    return np.asarray(model.coef_) if model.released_ else None


def diffprivlib(split: Split, setting: Setting) -> Floats:
    """The functional mechanism of diffprivlib: pure epsilon, bounds for every column."""
    models: Any = importlib.import_module("diffprivlib.models")
    model = models.LinearRegression(
        epsilon=setting.epsilon,
        bounds_X=(-1, 1),
        bounds_y=(-setting.y_bound, setting.y_bound),
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


def importable(name: str) -> bool:
    """Whether a contender can run here: diffprivlib is no dependency, and lags behind scikit-learn."""
    if name != "diffprivlib":
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("diffprivlib.models")
    except ImportError:
        return False
    return True


def _ours(name: str, extra: Extra, kind: Kind = "ours") -> Contender:
    return Contender(name, kind, partial(ours, extra=extra))


_ALL = (
    _ours("auto", Extra("auto")),
    _ours("objective", Extra("objective")),
    _ours("objective-scale", Extra("objective", {"rule": "scale"})),
    _ours("objective-two-stage", Extra("objective", {"rule": "two_stage"})),
    _ours("sufficient", Extra("sufficient")),
    _ours("posterior", Extra("posterior")),
    _ours("ops_balanced", Extra("ops_balanced", rows=True)),
    _ours("adaops", Extra("adaops")),
    _ours("output", Extra("output")),
    _ours("adassp", Extra("adassp"), "peer"),
    _ours("descent", Extra("descent", rows=True), "peer"),
    Contender("diffprivlib", "peer", diffprivlib),
    Contender("trivial", "peer", lambda split, setting: np.zeros(split.train[0].shape[1])),
    _ours("sufficient-validation", Extra("sufficient", validation=True), "public"),
    Contender("ridge-public", "public", lambda split, setting: ridge(split.public)),
    Contender("ridge", "reference", lambda split, setting: ridge(split.train)),
)
CONTENDERS: Mapping[str, Contender] = {each.name: each for each in _ALL}


def chosen(asked: list[str] | None) -> list[str]:
    """The contenders asked for, in our order; all of them without a wish."""
    unknown = [name for name in asked or [] if name not in CONTENDERS]
    if unknown:
        raise ValueError(f"there is no method {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    return [name for name in CONTENDERS if not asked or name in asked]
