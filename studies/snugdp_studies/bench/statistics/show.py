"""The tables of ``snugdp bench statistics``."""

import math
from collections.abc import Callable, Iterable
from itertools import groupby
from statistics import median

from rich.console import Console

from snugdp_studies.bench.statistics import keys, means, quantiles, speed
from snugdp_studies.cli.shared import say, table

NOT_PRIVATE = "NOT PRIVATE: seeded noise, made-up columns."
_GOAL = 1.05  # times the float mechanism
_NOTHING = 1e-9  # errors below it are none


def show_quantiles(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Mean absolute errors, at epsilon 0.1, 0.5 and 1."""
    found = list(quantiles.single(runs, peer_runs))
    say(
        console,
        f"{NOT_PRIVATE} Mean absolute errors at epsilon {_listed(quantiles.EPSILONS)}. snugdp and the exponential "
        f"mechanism in floats by their laws, without sampling; OpenDP ({quantiles.CANDIDATES:,} candidates) by "
        f"{peer_runs} draws, propose, test, release (rows public, default beta, delta {quantiles.DELTA:g}) by {runs}.",
    )
    console.print(_errors(("column", "q"), found))
    same, usual = ([one.means["snugdp"] / one.means[name] for one in found] for name in list(found[0].means)[1:3])
    missed = sorted({one.column for one, ratio in zip(found, same, strict=True) if ratio > _GOAL})
    say(
        console,
        f"snugdp over the float mechanism with the same constant: {median(same):.3f} in the middle, {max(same):.3g} at "
        f"most; above {_GOAL} in {sum(ratio > _GOAL for ratio in same)} of {len(same)} questions"
        + (f" ({', '.join(missed)})" if missed else "")
        + f". Over the usual constant: {median(usual):.3f} in the middle, {max(usual):.3g} at most. {runs} draws of "
        f"each question are within {max(one.doubt for one in found):.1f} standard errors of their law.",
    )
    console.print(_errors(("several for one budget", ""), list(quantiles.several(max(runs // 4, 2)))))
    near, off = quantiles.readme_example(runs)
    say(
        console,
        f"The README example: {near:.1%} of {runs} medians off by less than {quantiles.NEAR}, {off:.2f} on average.",
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
    lines = ((one.column, *map(_slashed, one.means.values()), _written(one.hindsight)) for one in found)
    console.print(table(("column", *found[0].means, "best bound in hindsight"), lines))


def show_keys(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Keys that are shown."""
    number = max(runs // 40, 2)
    found = list(keys.run(number))
    say(
        console,
        f"{NOT_PRIVATE} Keys shown of {keys.ROWS:,} rows with keys from Zipf({keys.POWER:g}) on {keys.KEYS:,}: snugdp "
        f"by {number} draws, all others as expected.",
    )
    given = ([f"{each:g}" for each in (one.keys, one.epsilon, one.delta)] for one in found)
    shown = ([f"{each:.0f}" for each in (one.shown, *one.expected.values())] for one in found)
    lines = (first + second for first, second in zip(given, shown, strict=True))
    console.print(table(("keys a row", "epsilon", "delta", "snugdp", *found[0].expected), lines))


def show_speed(console: Console, runs: int, peer_runs: int, repeats: int) -> None:
    """Times on one thread."""
    for group, several in groupby(speed.run(repeats=repeats), key=lambda one: one.group):
        rows = list(several)
        lines = ((one.name, f"{one.min_s:.2f}", f"{one.median_s:.2f}", f"{one.relative:.2f}") for one in rows)
        console.print(table((group, "fastest, s", "median, s", f"relative to {rows[0].name}"), lines))
    say(console, speed.GOALS)


Show = Callable[[Console, int, int, int], None]
PARTS: dict[str, Show] = {"quantiles": show_quantiles, "means": show_means, "keys": show_keys, "speed": show_speed}


def _errors(heads: tuple[str, str], found: list[quantiles.Errors]) -> object:
    """A line for each question about a column; the budgets stand side by side."""
    lines = []
    for (column, question), same in groupby(found, key=lambda one: (one.column, one.question)):
        budgets = list(same)
        lines.append((column, question, *(_slashed(one.means[name] for one in budgets) for name in budgets[0].means)))
    return table((*heads, *found[0].means), lines)


def _slashed(numbers: Iterable[float]) -> str:
    return " / ".join(map(_written, numbers))


def _written(number: float) -> str:
    if math.isnan(number):
        return "refused"
    if number < _NOTHING:
        return "0"
    return f"{number:.2g}" if number < 0.1 or number >= 10_000 else f"{number:.3g}"


def _listed(numbers: Iterable[float]) -> str:
    return " / ".join(f"{number:g}" for number in numbers)
