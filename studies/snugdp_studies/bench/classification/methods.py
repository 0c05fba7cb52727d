"""The contenders of the classification contest. What they get is fixed for all tables: nothing is tuned to one.

A fit gives the probabilities of all classes for the test rows.
"""

from __future__ import annotations

import importlib
import math
import warnings
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from snugdp.accounting import gaussian
from snugdp.estimators.logistic import LogisticRegression
from snugdp.noise import Gaussian, Simulation
from snugdp.secrecy.secret import Secret
from snugdp_studies.bench.contest.tables import Floats, Split, Targets
from snugdp_studies.bench.contest.task import Contender, Setting

_GRID = 2.0**20  # cells of a gradient


def ours(split: Split, setting: Setting, *, method: str, **proposals: Any) -> Floats:
    """A fit by ``LogisticRegression``, in rehearsal: the noise is seeded."""
    model: Any = LogisticRegression(
        setting.epsilon,
        setting.delta,
        method=method,
        classes=range(split.classes),
        x_norm=1,
        proposals=proposals or None,
        noise=Simulation(setting.noise),
    ).fit(*split.train)
    return np.asarray(model.predict_proba(split.test[0]))


def descent(split: Split, setting: Setting, *, steps: int, rate: float) -> Floats:
    """Full-batch noisy gradient descent on the cross-entropy, with exact Gaussian accounting.

    All steps together are one Gaussian release of mu(epsilon, delta). No gradient has to be clipped: one of two classes
    is at most the root of 2 long, the length of a row with its constant, and one of more classes at most 2. ``rate``:
    in units of 1 over the largest curvature of the mean loss. The mean is over a public guess of the number of rows.
    """
    (X, y), noise = split.train, Simulation(setting.noise)
    rows, binary = np.column_stack([X, np.ones(len(X))]), split.classes == 2
    sigma = (math.sqrt(2) if binary else 2.0) * math.sqrt(steps) / gaussian.mu(setting.epsilon, setting.delta)
    law = Gaussian(Fraction(sigma * _GRID))
    theta = np.zeros((rows.shape[1], 1 if binary else split.classes))
    aims = y[:, None] == (np.array([1]) if binary else np.arange(split.classes))
    for _ in range(steps):
        chances = _chances(rows @ theta)[:, 1:] if binary else _chances(rows @ theta)
        gradient = rows.T @ (chances - aims)
        cells = noise.add_integers(Secret([round(value * _GRID) for value in gradient.ravel().tolist()]), law)
        theta -= rate * (2.0 if binary else 1.0) * np.array(cells).reshape(theta.shape) / _GRID / split.rows_guess
    return _chances(np.column_stack([split.test[0], np.ones(len(split.test[0]))]) @ theta)


def _chances(linear: Floats) -> Floats:
    """Probabilities of all classes; one column is that of log-odds of the second of two."""
    both = np.column_stack([np.zeros(len(linear)), linear]) if linear.shape[1] == 1 else linear
    return np.asarray(np.exp(both - np.logaddexp.reduce(both, axis=1, keepdims=True)))


def diffprivlib(split: Split, setting: Setting) -> Floats:
    """The objective perturbation of diffprivlib: pure epsilon."""
    models: Any = importlib.import_module("diffprivlib.models")
    model = models.LogisticRegression(
        epsilon=setting.epsilon, data_norm=math.sqrt(2), random_state=setting.noise % 2**32, max_iter=1000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*split.train)
        return _of_all(model, split)


def plain(rows: tuple[Floats, Targets], split: Split) -> Floats:
    """Scikit-learn's logistic regression without privacy."""
    linear: Any = importlib.import_module("sklearn.linear_model")
    if len(np.unique(rows[1])) < 2:
        return uniform(split)
    return _of_all(linear.LogisticRegression(max_iter=1000).fit(*rows), split)


def uniform(split: Split) -> Floats:
    """The same chance for every class."""
    return np.full((len(split.test[1]), split.classes), 1 / split.classes)


def _of_all(model: Any, split: Split) -> Floats:
    """Probabilities with a column for classes that were not among the rows."""
    chances = np.zeros((len(split.test[1]), split.classes))
    chances[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(split.test[0])
    return chances


_ALL = (
    Contender("auto", "ours", partial(ours, method="auto")),
    Contender("objective", "ours", partial(ours, method="objective")),
    Contender("output", "ours", partial(ours, method="output"), binary=True),
    Contender("output-hessian", "ours", partial(ours, method="output", shape="hessian"), binary=True),
    Contender("descent-20", "peer", partial(descent, steps=20, rate=4.0)),
    Contender("descent-50", "peer", partial(descent, steps=50, rate=4.0)),
    Contender("descent-200", "peer", partial(descent, steps=200, rate=4.0)),
    Contender("diffprivlib", "peer", diffprivlib, binary=True),
    Contender("trivial", "peer", lambda split, setting: uniform(split)),
    Contender("scikit-learn-public", "public", lambda split, setting: plain(split.public, split)),
    Contender("scikit-learn", "reference", lambda split, setting: plain(split.train, split)),
)
CONTENDERS = {each.name: each for each in _ALL}
