"""Layer D: what the whole walk gives away on a pair of neighbours, from exact densities, against what is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA, mean_interval, won
from snugdp.audit.density.tail import again, deltas, independent_end, whole
from snugdp.audit.finding import Case, Curve, Finding, at_most
from snugdp.audit.replay import Path, path, paths, random_pairs

Data = TypeVar("Data")
Floats = NDArray[np.float64]
_PLACES = (-1.0, -0.5, 0.0, 0.3, 0.6, 0.85, 1.0)  # of the epsilon at which delta is small
_SMALL_DELTA = 0.05  # such a delta
_SAME = 2  # runs after which a law without chance is known to be one
_ROUNDING = 1e-9  # of floats
_RUNS_BETWEEN_LOOKS = 20  # runs between looks at what has been measured


@dataclass(frozen=True)
class Measured:
    """The deltas of one direction of a pair: a row for every run, a column for every epsilon. ``exact``: no chance."""

    name: str
    values: Floats = field(repr=False)
    exact: bool = False
    reasons: frozenset[str] = frozenset()

    @property
    def mean(self) -> Floats:
        """At every epsilon."""
        found: Floats = self.values.mean(axis=0)
        return found

    def interval(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends around the mean, at every epsilon."""
        if self.exact:
            return self.mean, self.mean
        ends = [mean_interval(column, 2 * alpha) for column in self.values.T]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def evidence(self, claimed: Floats) -> Floats:
        """At every epsilon how surely the claim is wrong: the logarithm of one over a p-value, infinite for certain."""
        if self.exact:
            return np.where(self.mean > claimed * (1 + _ROUNDING) + _ROUNDING, math.inf, self.mean - claimed)
        return np.array([won(c, p) for c, p in zip(np.maximum(self.values.T - _ROUNDING, 0), claimed, strict=True)])

    def excess(self, claimed: Floats) -> Floats:
        """At every epsilon how far the mean is above the claim (below, as a rule), in deviations of a coin."""
        found: Floats = (self.mean - claimed) / np.sqrt(np.clip(claimed * (1 - claimed), 1e-6, None))
        return np.where(claimed < 1, found, -np.inf)

    def closest(self, claimed: Floats, alpha: float) -> Floats:
        """At every epsilon how far the lower end of the interval is above the claim: below, unless that is refuted."""
        return np.where(claimed < 1, self.interval(alpha)[0] - claimed, -np.inf)

    def refutes(self, claimed: Floats, alpha: float) -> bool:
        """Whether the claim is wrong, but for probability alpha at each epsilon."""
        return bool((self.evidence(claimed) >= math.log(1 / alpha)).any())


@dataclass(frozen=True)
class _Claim:
    """What is claimed at every epsilon, and how seldom it may be called wrong if it is true."""

    at: Floats
    delta: Floats
    alpha: float


def levels(case: Case[Data]) -> Floats:
    """Where to look: around the epsilon of the claim, below zero as well."""
    if case.budget is not None:
        top = float(case.budget.epsilon)
    else:
        small = max(_SMALL_DELTA, 1.5 * float(case.cost.delta))
        top = case.cost.epsilon_at(min(small, 0.5))
        top = max(top if math.isfinite(top) else 1.0, float(case.cost.epsilon), 0.05)
    return np.array([top * place for place in _PLACES])


def measure(
    case: Case[Data],
    first: Data,
    second: Data,
    at: Floats,
    *,
    runs: int,
    seed: int = 0,
    shrink: float = 1.0,
    name: str = "",
    enough: Callable[[Measured], bool] | None = None,
) -> Measured:
    """The deltas of the first against the second, from so many runs, or fewer where nothing is left to chance.

    ``enough``: is asked now and then whether to stop. A bet may be stopped at any time.
    """
    ends = [independent_end(case, data, (seed << 20) + k, shrink) for k, data in enumerate((first, second))]
    last, rows, fixed, reasons = min(ends), list[Floats](), True, set[str]()
    known: Path | None = None  # the first run, as long as the others ask the same
    for count, one in enumerate(paths(case, first, second, runs, seed, shrink)):
        known = known if known is not None and again(known, one, last) else None
        rows.append(rows[0] if known is not None else deltas(one, at, last))
        known = one if count == 0 else known
        reasons.add(one.reason)
        fixed = fixed and whole(one, last) and bool(np.allclose(rows[-1], rows[0], rtol=1e-12, atol=1e-15))
        if fixed and count + 1 >= _SAME:
            break
        if enough is not None and (count + 1) % _RUNS_BETWEEN_LOOKS == 0 and enough(Measured(name, np.array(rows))):
            break
    return Measured(name, np.array(rows), fixed and len(rows) >= _SAME, frozenset(reasons - {""}))


def density(
    case: Case[Data],
    *,
    runs: int = 400,
    others: int | None = None,
    random: int = 0,
    most: int | None = None,
    sparing: bool = False,
    seed: int = 0,
    alpha: float = ALPHA,
) -> list[Finding]:
    """The audit of a case: its worst pairs in both directions, so many runs each, and ``random`` neighbours.

    ``most``: how many of the worst pairs, by default all. ``others``: how many runs on those after the first, by
    default as many. ``sparing``: no more runs on the first pair than it took to see smaller noise there. Nothing is
    found where only the output is promised.

    Guarantee: a true claim fails with probability at most ``alpha`` for each pair, direction and epsilon.
    """
    if not case.transcript:
        return []
    found = []
    at = levels(case)
    claimed = np.array([case.delta_at(float(epsilon)) for epsilon in at])
    try:
        counts = (runs, runs if others is None else others)
        found.append(_worst(case, _Claim(at, claimed, alpha), counts, most=most, sparing=sparing, seed=seed))
        if random and case.random is not None:
            found.append(_random(case, _Claim(at, claimed, alpha), random, seed))
    except Exception as problem:
        found.append(Finding("D", case.name, "a walk on neighbours", "an error", False, type(problem).__name__))
    return found


def _worst(
    case: Case[Data], claim: _Claim, counts: tuple[int, int], *, most: int | None, sparing: bool, seed: int
) -> Finding:
    runs, others = counts
    claimed, alpha = claim.delta, claim.alpha
    pairs = list(case.worst())[:most]
    if not pairs:
        return Finding("D", case.name, "worst pairs", "none given", False, "Case.worst must give at least one pair")
    ways = [
        (f"pair {number + 1} {way}", first, second)
        for number, (one, two) in enumerate(pairs)
        for first, second, way in ((one, two, "there"), (two, one, "back"))
    ]
    power = _power(case, claim, ways, runs, seed + len(ways)) if case.shrink < 1 else None
    enough = power.runs if sparing and power is not None and power.where else runs
    tried: list[tuple[float, Measured]] = []
    for number, (name, first, second) in enumerate(ways):
        many = enough if number < 2 else others
        seen = measure(case, first, second, claim.at, runs=many, seed=seed + number, name=name)
        worse = math.inf if seen.refutes(claimed, alpha) else round(float(seen.closest(claimed, alpha).max()), 2)
        tried.append((worse, seen))
    _, worst = max(tried, key=lambda entry: entry[0])  # of equals, to two digits, the first: it has most runs
    if worst.refutes(claimed, alpha):
        return _finding(case.name, claim, worst, False, f"{worst.name}: {_why(worst) or 'more is given away'}")
    detail = f"{len(tried)} directions, closest: {worst.name}, {_how(worst)}"
    if power is not None and not power.where:
        words = f"too weak: noise {1 - case.shrink:.0%} smaller was not seen in {runs} runs a direction"
        return _finding(case.name, claim, worst, False, words)
    if power is not None:
        detail += f"; noise {1 - case.shrink:.0%} smaller is seen on {power.where} in {power.runs} runs"
    return _finding(case.name, claim, worst, True, detail)


@dataclass(frozen=True)
class _Power:
    """The first direction on which smaller noise is seen, if there is one, and after how many runs."""

    where: str
    runs: int


def _power(case: Case[Data], claim: _Claim, ways: list[tuple[str, Data, Data]], runs: int, seed: int) -> _Power:
    """Worst pairs come in the order in which they are tight."""

    def wrong(seen: Measured) -> bool:
        return seen.refutes(claim.delta, claim.alpha)

    for number, (name, first, second) in enumerate(ways):
        shrink, start = case.shrink, seed + number
        seen = measure(case, first, second, claim.at, runs=runs, seed=start, shrink=shrink, enough=wrong)
        if wrong(seen):
            return _Power(name, runs if seen.exact else len(seen.values))
    return _Power("", runs)


def _random(case: Case[Data], claim: _Claim, count: int, seed: int) -> Finding:
    """One run on each of many neighbours: every mean is at most what is claimed, so their mean is too."""
    rows, reasons = list[Floats](), set[str]()
    for number, (first, second) in enumerate(random_pairs(case, count, seed)):
        walked = path(case, first, second, (seed << 20) + number)
        rows.append(deltas(walked, claim.at))
        reasons.add(walked.reason)
    seen = Measured(f"{count} random pairs", np.array(rows), reasons=frozenset(reasons - {""}))
    passed = not seen.refutes(claim.delta, claim.alpha)
    return _finding(
        case.name, claim, seen, passed, seen.name if passed else f"{seen.name}: {_why(seen) or 'more is given away'}"
    )


def _finding(case: str, claim: _Claim, seen: Measured, passed: bool, detail: str) -> Finding:
    at, claimed = claim.at, claim.delta
    low, high = seen.interval(claim.alpha)
    evidence, excess = seen.evidence(claimed), seen.excess(claimed)
    surest = np.where(evidence == evidence.max(), excess, -np.inf)
    place = int(np.argmax(seen.closest(claimed, claim.alpha) if passed else surest))
    shown = f"{seen.mean[place]:.4g}"
    if not seen.exact:
        shown += f" ({low[place]:.4g} .. {high[place]:.4g})"
    curve = Curve(_tuple(at), _tuple(claimed), _tuple(seen.mean), _tuple(low), _tuple(high))
    words = f"delta({at_most(at[place], 3)}) <= {at_most(claimed[place])}"
    return Finding("D", case, words, shown, passed, detail, curve)


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _how(seen: Measured) -> str:
    return "closed form" if seen.exact else f"{len(seen.values)} runs"


def _why(seen: Measured) -> str:
    return ", ".join(sorted(seen.reasons))
