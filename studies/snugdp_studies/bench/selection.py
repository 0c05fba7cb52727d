"""What one of many private runs may cost, by each accounting; beside dp-accounting's, where that is installed."""

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from snugdp.accounting import gaussian as gauss
from snugdp.accounting import selection
from snugdp.accounting.selection import Law

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
COUNTS = (2, 3, 5, 8, 12, 20, 30, 50, 80, 130, 200, 320, 500, 1000)

ALONE = "one run, no selection"
Afford = Callable[[float, float], float]  # from epsilon and delta to the mu of a run


def run(runs: float = 30, delta: float = 1e-6, epsilons: tuple[float, ...] = EPSILONS) -> dict[str, list[float]]:
    """The table: the mu of the largest Gaussian run within a total budget, for so many runs on average."""
    accountings = {**_ours(runs), **_peer(runs)}
    return {name: [afford(epsilon, delta) for epsilon in epsilons] for name, afford in accountings.items()}


def calibration_seconds(runs: float = 30, repeats: int = 5) -> float:
    """The median time of one calibration by C2, from a total of (1, 1e-6) to the mu of a run."""
    taken = []
    for _ in range(repeats + 1):
        start = perf_counter()
        selection.mu(selection.geometric(runs), 1, 1e-6)
        taken.append(perf_counter() - start)
    return median(taken[1:])  # the first one loads libraries


def lines(epsilon: float = 1.0, delta: float = 1e-6, counts: tuple[int, ...] = COUNTS) -> dict[str, list[float]]:
    """The picture's data: the epsilon of a run, at the total delta, for as many runs on average as candidates."""
    drawn = [name for name in _ours(30) if name != ALONE and "C1" not in name and "binomial" not in name]
    affordable = {name: [_ours(count)[name](epsilon, delta) for count in counts] for name in drawn}
    return {name: [gauss.epsilon(mu, delta) if mu else 0.0 for mu in found] for name, found in affordable.items()}


def plot(file: Path, epsilon: float = 1.0, delta: float = 1e-6, counts: tuple[int, ...] = COUNTS) -> None:
    """Draw the picture. The same numbers give the same file, byte for byte."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "snugdp", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(9.0, 4.4), layout="constrained")
        axes = figure.add_subplot()
        for index, (name, left) in enumerate(lines(epsilon, delta, counts).items()):
            width, style = (2.2, "-") if name.startswith("C2") else (1.4, "--")
            axes.plot(counts, left, style, linewidth=width, color=f"C{index}", label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([2, 5, 10, 30, 100, 300, 1000], labels=["2", "5", "10", "30", "100", "300", "1000"])
        axes.set_yticks([0.03, 0.1, 0.2, 0.3, 0.5, 1], labels=["0.03", "0.1", "0.2", "0.3", "0.5", "1"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.set_xlabel("candidates = runs on average")
        axes.set_ylabel(f"epsilon left to a run, at delta = {delta:g}")
        axes.set_title(f"What a run may spend, total ({epsilon:g}, {delta:g})")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _ours(runs: float) -> dict[str, Afford]:
    geometric = selection.geometric(runs)
    return {
        ALONE: gauss.mu,
        "C2, eta = -1/2": _by(selection.truncated_negative_binomial("-0.5", runs)),
        "C2, logarithmic": _by(selection.logarithmic(runs)),
        "C2, geometric": _by(geometric),
        "C1, geometric": _by(geometric, "C1"),
        "Renyi, geometric": _by(geometric, "renyi"),
        "C2, Poisson": _by(selection.poisson(runs)),
        "C2, binomial": _by(selection.binomial(runs)),
        "corollary (3e, d/gamma), geometric": _by(geometric, "corollary"),
        "all composed": partial(_composed, round(runs)),
        "Liu-Talwar as the paper quotes it": _by(geometric, "liu_talwar"),
    }


def _by(law: Law, method: str = "C2") -> Afford:
    return lambda epsilon, delta: selection.mu(law, epsilon, delta, method=method)


def _composed(count: int, epsilon: float, delta: float) -> float:
    return selection.routes(epsilon, delta, count, laws=())[-1].scale


def _peer(runs: float) -> dict[str, Afford]:
    """dp-accounting's event, if it can be imported: Renyi orders of its own choice."""
    try:
        dp: Any = importlib.import_module("dp_accounting.dp_event")
        rdp: Any = importlib.import_module("dp_accounting.rdp")
    except ImportError:
        return {}

    def epsilon_of(mu: float, shape: float, delta: float) -> float:
        event = dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(1 / mu), mean=runs, shape=shape)
        return float(rdp.RdpAccountant().compose(event).get_epsilon(delta))

    def afford(shape: float, epsilon: float, delta: float) -> float:
        low, high = 1e-4, 10.0
        for _ in range(30):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if epsilon_of(middle, shape, delta) <= epsilon else (low, middle)
        return low

    shapes = {"geometric": 1.0, "logarithmic": 0.0, "Poisson": float("inf")}
    return {f"dp-accounting, {name}": partial(afford, shape) for name, shape in shapes.items()}
