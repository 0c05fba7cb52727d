"""Figure 3 of the paper: a vote between two candidates, as printed and with honest accounting. All numbers are exact.

(a) What a noisy answer gives away, by the gap between the counts. (b) The epsilon that an error rate costs at a gap of
100, for plain noise, a classic test, and a test of the data-dependent loss. No private data are used at all.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.votes.vote import (
    distance,
    envelope,
    epsilon_at,
    epsilons_at,
    least_gap,
    log_losing_probability,
    vanishing_gap,
    worst_case_epsilon,
)
from snugdp_studies.paper import drawing
from snugdp_studies.paper.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, RED, VERSIONS, CurveStyle, Version

_RELATION = "add_remove"
_LN10 = math.log(10)
_LEVELS = 3999  # of the noise in the mean of a printed bound
_POINTS, _STRONGEST = 80, 2000.0  # of the search for a test: how many noises, and how far from the least


@dataclass(frozen=True)
class Figure3Plan:
    """The numbers of the figure."""

    noise_epsilon: float = 10.0  # of (a)
    gaps: tuple[int, ...] = tuple(range(21))
    gap: int = 100  # of (b)
    delta: float = 1e-6
    errors: tuple[float, ...] = tuple(10.0**-k for k in (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 34))
    scales: tuple[float, ...] = (0.02, 0.1, 0.2, 0.3, 0.5, 2.0)  # of the paper's split


QUICK = Figure3Plan(errors=tuple(10.0**-k for k in (1, 2, 3, 5, 8, 12, 20, 34)))
NOTES = (
    "as printed: the formulas of the paper, NOT PRIVATE. Its displayed bound of the loss is negative, and its size is "
    "drawn; it is no bound (docs/errata.md, V2 to V5).",
    "honest: exact losses; rows come or go. Every mechanism of (b) has the same delta, and a test that fails answers "
    "by a fair coin.",
)
LOSSES: dict[Version, dict[str, CurveStyle]] = {
    "as printed": {
        "Laplace": CurveStyle("Laplace mechanism", GREY, "s"),
        "displayed bound": CurveStyle("data-dependent DP, size of the displayed bound", RED, "o"),
    },
    "honest": {
        "Laplace": CurveStyle("Laplace mechanism", GREY, "s"),
        "pure loss": CurveStyle("data-dependent loss, delta = 0", BLUE, "o"),
        "loss with delta": CurveStyle("data-dependent loss with delta", GREEN, "^"),
        "envelope with delta": CurveStyle("its envelope, which a test has to use", BLACK, "", "--"),
    },
}
COSTS: dict[Version, dict[str, CurveStyle]] = {
    "as printed": {
        "Laplace": CurveStyle("Laplace mechanism", GREY, "s"),
        "classic PTR": CurveStyle("classic PTR", BLUE, "^"),
        "Gen-PTR": CurveStyle("Gen-PTR, mean of the private bound", RED, "o"),
    },
    "honest": {
        "Laplace, pure": CurveStyle("Laplace mechanism, delta = 0", GREY, "s"),
        "Laplace": CurveStyle("Laplace mechanism with delta", BLACK, "*", width=2.2),
        "Gen-PTR with a test": CurveStyle("Gen-PTR, best test", RED, "o", width=3.2),
        "classic PTR": CurveStyle("classic PTR", BLUE, "^", "--"),
        "Gen-PTR, the paper's split": CurveStyle("Gen-PTR, the paper's split", ORANGE, "v", ":"),
    },
}


def pure_epsilon(noise_epsilon: float, gap: float) -> float:
    """What the answer gives away at this gap with no failure probability, when one row may come or go.

    It grows with the gap, towards ``noise_epsilon``: a clear majority is no help (vote.proof.md, Theorem 1).

    >>> [round(pure_epsilon(10, gap), 4) for gap in (0, 1, 5, 20)]
    [8.2082, 9.3939, 9.8241, 9.9517]
    """
    loss = noise_epsilon - math.log1p(noise_epsilon / (2 + noise_epsilon * abs(gap)))
    return min(noise_epsilon, loss)


def noise_epsilon_for_error(gap: float, error: float) -> float:
    """The smallest noise epsilon with which a vote of this gap goes wrong with at most this probability.

    >>> round(noise_epsilon_for_error(100, 0.1), 6)
    0.023973
    """
    if not (gap > 0 and 0 < error < 1):
        raise ValueError("the gap must be positive and the error between 0 and 1")
    if error >= 0.5:
        return 0.0
    low, high = 0.0, 4 - 2 * math.log(error)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_losing_probability(middle) > math.log(error) else (low, middle)
    return math.nextafter(low * (1 + 2**-52), math.inf) / gap


def classic_epsilon_for_error(gap: int, distance: int, error: float, delta: float) -> float:
    """The epsilon of a classic test that releases the exact winner, or a fair coin when it fails.

    The distance is that of the mode, at most the gap; the coin is wrong half of the time.

    >>> round(classic_epsilon_for_error(100, 99, 0.1, 1e-6), 4)
    0.1418
    """
    if not (0 < distance <= gap and 0 < error < 0.5 and 0 < delta <= 0.5):
        raise ValueError("needs 0 < distance <= gap, 0 < error < 1/2 and 0 < delta <= 1/2")
    failing = 2 * error
    short = math.log(2 * failing) if failing <= 0.5 else -math.log(2 * (1 - failing))
    return max(0.0, -math.log(2 * delta) - short) / distance


def not_private_displayed_bound(noise_epsilon: float, gap: float) -> float:
    """The bound of log(p/p') that the paper displays.

    NOT PRIVATE: it is negative, where the loss is close to the epsilon of the noise (V2).

    >>> round(not_private_displayed_bound(10, 0), 2)
    -17.92
    """
    return noise_epsilon * math.log1p(-noise_epsilon / (2 + noise_epsilon * (max(gap, 0.0) + 1)))


def not_private_general_cost(noise_epsilon: float, gap: int, delta: float) -> float:
    """The cost of Gen-PTR as printed: half of the noise's epsilon for the test, and the mean of its bound.

    NOT PRIVATE: the size of a bound that is none, at a lower bound of the gap for which it was not made (V2, V4). The
    mean is over the noise of the test, by its quantiles, where the paper draws 100,000 times.
    """
    test = noise_epsilon / 2
    ranks = (np.arange(_LEVELS) + 0.5) / _LEVELS
    noise = np.where(ranks < 0.5, np.log(2 * np.minimum(ranks, 0.5)), -np.log(2 * np.minimum(1 - ranks, 0.5))) / test
    gaps = np.maximum(gap - math.log(1 / delta) / test + noise, 0.0)
    sizes = [-not_private_displayed_bound(noise_epsilon, value) for value in gaps.tolist()]
    return test + math.fsum(sizes) / _LEVELS


def not_private_classic_cost(gap: int, log_error: float, delta: float) -> float:
    """The epsilon at which classic PTR as printed has this error: margin log(1/delta), distance t - 1 (V6)."""
    return max(0.0, math.log(1 / delta) - log_error - math.log(4)) / (gap - 1)


def losses(plan: Figure3Plan) -> list[dict[str, object]]:
    """Part (a): a line for every curve and gap."""
    noise, delta = plan.noise_epsilon, plan.delta
    ways: dict[Version, dict[str, Any]] = {
        "as printed": {
            "Laplace": lambda gap: noise,
            "displayed bound": lambda gap: abs(not_private_displayed_bound(noise, gap)),
        },
        "honest": {
            "Laplace": lambda gap: noise,
            "pure loss": lambda gap: pure_epsilon(noise, gap),
            "loss with delta": lambda gap: epsilon_at(noise, gap, delta, "add_remove"),
            "envelope with delta": lambda gap: envelope(noise, gap, delta, "add_remove"),
        },
    }
    return [
        _row("a", version, name, gap=gap, epsilon=way(gap))
        for version, own in ways.items()
        for name, way in own.items()
        for gap in plan.gaps
    ]


def costs(plan: Figure3Plan) -> list[dict[str, object]]:
    """Part (b): the epsilon that every error costs; a line for every curve and error."""
    found = []
    for error in plan.errors:
        noise = noise_epsilon_for_error(plan.gap, error)
        plain, tested = worst_case_epsilon(noise, plan.delta, "add_remove"), tested_cost(plan.gap, error, plan.delta)
        ways: dict[Version, dict[str, float]] = {
            "as printed": {
                "Laplace": noise,
                "classic PTR": not_private_classic_cost(plan.gap, math.log(error), plan.delta),
                "Gen-PTR": not_private_general_cost(noise, plan.gap, plan.delta),
            },
            "honest": {
                "Laplace, pure": noise,
                "Laplace": plain,
                "classic PTR": classic_epsilon_for_error(plan.gap, plan.gap - 1, error, plan.delta),
                "Gen-PTR with a test": tested,
                "Gen-PTR, the paper's split": split_cost(plan.gap, error, plan.delta),
                "Gen-PTR, best of all": min(plain, tested),
            },
        }
        found += [
            _row("b", version, name, error=error, gap=plan.gap, epsilon=value)
            for version, own in ways.items()
            for name, value in own.items()
        ]
    return found


def tested_cost(gap: int, error: float, delta: float) -> float:
    """The least epsilon of a test of the loss, over a grid of noises and every gap that may be tested for."""
    best, needed, margin = math.inf, noise_epsilon_for_error(gap, error), math.log(1 / (2 * delta))
    for factor in np.geomspace(1 + 1e-6, _STRONGEST, _POINTS):
        noise = needed * float(factor)
        failing = 2 * (error - math.exp(log_losing_probability(noise * gap)))  # a coin is wrong half of the time
        if failing <= 0:
            continue
        budgets = _envelopes(noise, gap, delta)  # of releases from these gaps on
        short = math.log(2 * failing) if failing <= 0.5 else -math.log(2 * (1 - failing))
        best = min(best, float(np.min(budgets + (margin - short) / np.arange(gap, gap - len(budgets), -1))))
    return best


def _envelopes(noise_epsilon: float, most: int, delta: float) -> NDArray[np.float64]:
    """The envelope at the gaps 1, 2, ... up to ``most``, or to the first where it vanishes."""
    last = vanishing_gap(noise_epsilon, delta, "add_remove")
    losses = epsilons_at(noise_epsilon, np.arange(last + 1, dtype=np.float64), delta, "add_remove")
    table = np.maximum.accumulate(losses[::-1])[::-1]
    return table[1 : min(most, int(np.count_nonzero(table))) + 1]


def split_cost(gap: int, error: float, delta: float) -> float:
    """The epsilon at which the paper's split has this error: a test with half of the noise's epsilon, and no more."""
    low, high = 1e-4, 100.0
    for _ in range(50):
        middle = math.sqrt(low * high)
        good = split_log_error(middle, gap, delta) <= math.log(error)
        low, high = (low, middle) if good else (middle, high)
    return high / 2


def split_log_error(noise_epsilon: float, gap: int, delta: float) -> float:
    """The logarithm of the error of the paper's split, at a total of half of the noise's epsilon."""
    far = distance(gap, least_gap(noise_epsilon, 0.0, delta, "add_remove"), "add_remove")
    failing = _log_failing(noise_epsilon / 2, int(far), delta)
    passing = math.log(-math.expm1(min(failing, -1e-300)))
    return float(np.logaddexp(failing - math.log(2), passing + log_losing_probability(noise_epsilon * gap)))


def _log_failing(epsilon: float, far: int, delta: float) -> float:
    """The logarithm of the chance that far + Lap(1/epsilon) does not exceed log(1/(2 delta)) / epsilon."""
    short = math.log(1 / (2 * delta)) - epsilon * far
    return short - math.log(2) if short <= 0 else math.log1p(-math.exp(-short) / 2)


def splits(plan: Figure3Plan) -> list[dict[str, object]]:
    """The paper's split: log10 of the error by the scale of the noise; all but the first at the same total epsilon."""
    found = []
    for scale in plan.scales:
        noise, total = 1 / scale, 1 / (2 * scale)
        ways = {
            "Laplace, its own epsilon": (noise, log_losing_probability(noise * plan.gap)),
            "Gen-PTR, the paper's split": (total, split_log_error(noise, plan.gap, plan.delta)),
            "classic PTR": (total, _log_failing(total, plan.gap - 1, plan.delta) - math.log(2)),
            "Laplace": (total, log_losing_probability(total * plan.gap)),
        }
        found += [
            _row("split", "honest", name, scale=scale, gap=plan.gap, epsilon=epsilon, log10_error=value / _LN10)
            for name, (epsilon, value) in ways.items()
        ]
    return found


def _row(part: str, version: Version, method: str, **numbers: float) -> dict[str, object]:
    status = f"{drawing.STAMP}: formulas as printed" if version == "as printed" else "exact"
    return {"part": part, "version": version, "method": method, "status": status, **numbers}


def save(folder: Path, plan: Figure3Plan | None = None) -> list[Path]:
    """The picture as PNG and SVG, every number as CSV, and the parameters as JSON."""
    plan = Figure3Plan() if plan is None else plan
    first, second = losses(plan), costs(plan)
    parameters = {"notes": NOTES, "plan": asdict(plan), "neighbours": _RELATION}
    return [
        *_picture(folder, plan, first, second),
        *drawing.written(folder, "figure3", [*first, *second, *splits(plan)], parameters),
    ]


def _picture(
    folder: Path, plan: Figure3Plan, first: Sequence[dict[str, object]], second: Sequence[dict[str, object]]
) -> list[Path]:
    with drawing.look():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 10.5), layout="constrained")
        grid = figure.subplots(2, 2, sharex="row", sharey="row")
        for place, version in enumerate(VERSIONS):
            above, below = grid[0][place], grid[1][place]
            _curves(above, first, version, LOSSES[version], "gap")
            above.set_title(f"(a) what the answer gives away, {version}")
            above.set_xticks(plan.gaps[::2])
            above.set_xlabel(f"gap between the counts; noise of epsilon {plan.noise_epsilon:g}")
            drawing.legend_below(above)
            _curves(below, second, version, COSTS[version], "error")
            below.set_title(f"(b) what an error rate costs at a gap of {plan.gap}, {version}")
            below.set_xlabel("error rate")
            below.set_xscale("log")
            drawing.log_axis(below)
            drawing.legend_below(below)
            if version == "as printed":
                drawing.stamped(above)
                drawing.stamped(below)
        grid[0][0].set_ylabel(f"epsilon; with delta = {plan.delta:g} where it says so")
        grid[1][0].set_ylabel(f"total epsilon at delta = {plan.delta:g}")
        figure.suptitle("Figure 3: a vote between two candidates, the paper's formulas and exact ones", fontsize=13)
        return drawing.saved(figure, folder, "figure3")


def _curves(
    panel: Any, rows: Sequence[dict[str, Any]], version: Version, lines: dict[str, CurveStyle], axis: str
) -> None:
    for name, line in lines.items():
        own = [row for row in rows if (row["version"], row["method"]) == (version, name)]
        drawing.drawn(panel, [row[axis] for row in own], [row["epsilon"] for row in own], line)
