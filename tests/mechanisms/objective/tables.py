"""Small tables with labels, counts or classes, and the designs that tests of models share."""

import numpy as np
import pandas as pd

from snugdp import Budget
from snugdp.mechanisms.linear.base import Design
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y")
LINE = Schema({"a": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
DESIGN, LINE_DESIGN = Design.of(SCHEMA), Design.of(LINE)
BUDGET = Budget(1, 1e-6)


def frame(n: int, seed: int = 0, kind: str = "label") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n))
    u = 3 * a - 2 * b + 0.5
    if kind == "label":
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-u)), 1.0, -1.0)
    elif kind == "count":
        y = np.clip(rng.poisson(np.exp(u / 4 + 0.3)), 0, 6) / 3 - 1
    else:
        scores = np.stack([3 * a, 3 * b, -3 * a - 3 * b]) + rng.gumbel(size=(3, n))
        y = np.argmax(scores, axis=0) - 1.0
    return pd.DataFrame({"a": a, "b": b, "y": y})


def secret(table: pd.DataFrame, schema: Schema = SCHEMA) -> Secret[Rows]:
    return Secret(Rows(table, schema))


def images(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets as they are used, in the units of the scaled rows."""
    held = Rows(table, SCHEMA).images()
    assert held is not None
    V, w, _ = held.sample(10**9)
    return V * float(DESIGN.unit), w * float(DESIGN.unit)
