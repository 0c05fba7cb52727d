"""The contenders of the regression contest. What they get is fixed for all tables: nothing is tuned to one.

A fit gives coefficients, or None for a refusal; the variant of the contest is the bound on targets.
"""

from __future__ import annotations

import importlib
import warnings
from functools import partial
from typing import Any

import numpy as np

from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp_studies.bench.contest.tables import Floats, Split
from snugdp_studies.bench.contest.task import Contender, Setting


def ours(
    split: Split,
    setting: Setting,
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


def diffprivlib(split: Split, setting: Setting) -> Floats:
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
}
PUBLISHED = ("adassp", "descent")  # by others: peers, whoever wrote the code
_ALL = (
    *(Contender(name, "peer" if name in PUBLISHED else "ours", partial(ours, **more)) for name, more in OURS.items()),
    Contender("diffprivlib", "peer", diffprivlib),
    Contender("trivial", "peer", lambda split, setting: np.zeros(split.train[0].shape[1])),
    Contender("sufficient-validation", "public", partial(ours, method="sufficient", validation=True)),
    Contender("ridge-public", "public", lambda split, setting: ridge(split.public)),
    Contender("ridge", "reference", lambda split, setting: ridge(split.train)),
)
CONTENDERS = {each.name: each for each in _ALL}
