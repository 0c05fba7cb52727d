"""The tables of ``snugdp bench statistics``."""

import math
from collections.abc import Callable, Iterable
from itertools import groupby
from statistics import fmean

from rich.console import Console

from snugdp_studies.bench.statistics import keys, means, quantiles, speed
from snugdp_studies.cli.shared import say, table

NOT_PRIVATE = "NOT PRIVATE: seeded noise, made-up columns."


def show_quantiles(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Mean absolute errors, at epsilon 0.1, 0.5 and 1."""
    found = list(quantiles.single(runs, peer_runs))
    say(
        console,
        f"{NOT_PRIVATE} Mean absolute errors at epsilon {_listed(quantiles.EPSILONS)}. snugdp and the exponential "
        f"mechanism in floats by their laws, without sampling; OpenDP ({quantiles.CANDIDATES:,} candidates) by "
        f"{peer_runs} draws, propose, test, release (rows public, default beta, delta {quantiles.DELTA:g}) by {runs}.",
    )
    names = list(found[0].means)
    lines = [
        (column, q, *(_slashed(one.means[name] for one in several) for name in names))
        for (column, q), several in _by(found)
    ]
    console.print(table(("column", "q", *names), lines))
    same, usual = ([one.means["snugdp"] / one.means[name] for one in found] for name in names[1:3])
    say(
        console,
        f"Errors of snugdp over those of the float mechanism with the same constant: at most {max(same):.3f}, "
        f"{_mean_ratio(same):.3f} on average (geometric); over the usual constant: at most {max(usual):.3f}, "
        f"{_mean_ratio(usual):.3f} on average. {sum(ratio > 1.05 for ratio in same)} of {len(same)} questions miss "
        f"the goal. {runs} draws of each question differ from their law by at most "
        f"{max(one.doubt for one in found):.1f} standard errors; {max(one.refused for one in found):.0%} of tests refused "
        "at most.",
    )
    many = list(quantiles.several(max(runs // 4, 2)))
    lines = [
        (column, asked, *(_slashed(one.means[name] for one in several) for name in several[0].means))
        for (column, asked), several in _by(many)
    ]
    console.print(table(("several for one budget", "", *many[0].means), lines))
    near, off = quantiles.readme_example(runs)
    say(
        console,
        f"The README example: {near:.1%} of {runs} medians are off by less than {quantiles.NEAR}, {off:.2f} on average.",
        quantiles.GOALS,
    )


def show_means(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Root mean square errors, with bounds 1, 10 and 100 times too wide."""
    found = list(means.run(runs))
    say(
        console,
        f"{NOT_PRIVATE} Root mean square errors of means at epsilon {means.EPSILON:g} ({runs} draws; Gaussian: delta "
        f"{means.DELTA:g}), with an upper bound {_listed(means.LOOSE)} times the first.",
    )
    names = list(found[0].means)
    lines = ((one.column, *(_slashed(one.means[name]) for name in names), f"{one.hindsight:.3g}") for one in found)
    console.print(table(("column", *names, "best bound in hindsight"), lines))


def show_keys(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Keys that are shown."""
    number = max(runs // 40, 2)
    found = list(keys.run(number))
    say(
        console,
        f"{NOT_PRIVATE} Keys shown of {keys.ROWS:,} rows with keys from Zipf({keys.POWER:g}) on {keys.KEYS:,}: snugdp by "
        f"{number} draws, all others as expected.",
    )
    names = list(found[0].expected)
    lines = (
        (
            str(one.keys),
            f"{one.epsilon:g}",
            f"{one.delta:g}",
            f"{one.shown:.0f}",
            *(f"{one.expected[name]:.0f}" for name in names),
        )
        for one in found
    )
    console.print(table(("keys a row", "epsilon", "delta", "snugdp", *names), lines))


def show_speed(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Times on one thread."""
    for group, several in groupby(speed.run(repeats=repeats), key=lambda one: one.group):
        rows = list(several)
        lines = ((one.name, f"{one.min_s:.2f}", f"{one.median_s:.2f}", f"{one.relative:.2f}") for one in rows)
        console.print(table((group, "fastest, s", "median, s", f"relative to {rows[0].name}"), lines))
    say(console, speed.GOALS)


Show = Callable[[Console, int, int, int], None]
PARTS: dict[str, Show] = {"quantiles": show_quantiles, "means": show_means, "keys": show_keys, "speed": show_speed}


def _by(found: Iterable[quantiles.Errors]) -> Iterable[tuple[tuple[str, str], list[quantiles.Errors]]]:
    return ((key, list(several)) for key, several in groupby(found, key=lambda one: (one.column, one.question)))


def _slashed(numbers: Iterable[float]) -> str:
    return " / ".join(f"{number:.2g}" if number < 0.1 or number >= 10_000 else f"{number:.3g}" for number in numbers)


def _listed(numbers: Iterable[float]) -> str:
    return " / ".join(f"{number:g}" for number in numbers)


def _mean_ratio(ratios: list[float]) -> float:
    return math.exp(fmean(math.log(max(ratio, 1e-12)) for ratio in ratios))
