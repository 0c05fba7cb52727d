"""What an import costs: processor time beyond that of numpy, scipy and scikit-learn, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

GOAL = "Goal: at most 0.25 s for LinearRegression."
NAMES = ("Budget", "median", "LinearRegression", "LogisticRegression", "PCA", "PATEClassifier", "Ledger")
_CODE = """
import sys, time
import numpy, scipy, sklearn.base, sklearn.utils.validation
before, start = len(sys.modules), time.process_time()
from snugdp import {name}
spent = time.process_time() - start
print(spent, sum(module.partition(".")[0] == "snugdp" for module in sys.modules), len(sys.modules) - before)
"""


@dataclass(frozen=True)
class Import:
    """One name: processor seconds, modules of ours, and all modules that were loaded for it."""

    name: str
    min_s: float
    median_s: float
    own: int
    modules: int


def run(names: Sequence[str] = NAMES, repeats: int = 5) -> list[Import]:
    """Every import in turn, ``repeats`` times over, after one turn that writes byte code."""
    times: dict[str, list[float]] = {name: [] for name in names}
    counts: dict[str, tuple[int, int]] = {}
    for turn in range(repeats + 1):
        for name in names:
            printed = subprocess.check_output([sys.executable, "-c", _CODE.format(name=name)], text=True).split()
            counts[name] = int(printed[1]), int(printed[2])
            times[name] += [float(printed[0])] if turn else []
    return [Import(name, min(taken), median(taken), *counts[name]) for name, taken in times.items()]
