"""Layer N, step by step: what the draws of each step of a plan give away, against what that step pays for.

The sum of a plan has slack: a test that could be dearer, a release far below its bound. One step that is wrong by a
factor hides there. Here every step stands for itself. A certificate may fail, so what is released after it is looked
at with the luckiest noise for which it does not: a bound that is barely true, a test that is barely passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TypeVar

from snugdp.audit.finding import Case, Finding
from snugdp.audit.replay import Path, path, random_pairs
from snugdp.audit.sites_parts import part
from snugdp.audit.steps import NOISY, Bill, bills, divisions, failure, grown
from snugdp.audit.two_normals import along_the_shift, delta
from snugdp.noise.lucky import Lucky

Data = TypeVar("Data")
_CLAIM = "every step pays for its own draws"
_SMALLER = Fraction(4, 5)  # of the noise of one draw: the power check
_MOST = 12  # draws of which that is asked
_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
_SINGLE = ("add", "at_least")
_PLACES = 3  # single draws that are lucky, one at a time


@dataclass
class _Seen:
    """How many plans, the most steps of one, which draws are close to what pays for them, and what was too much."""

    plans: int = 0
    steps: int = 0
    draws: dict[int, bool] = field(default_factory=dict)
    wrong: str = ""

    def add(self, run: Path, case: Case[Data], where: str, *, lucky: bool) -> None:
        """One more run."""
        if any(site.method in NOISY for site in run.here.sites[: run.here.plans[0][0] if run.here.plans else 0]):
            self.wrong = self.wrong or f"{where}: something was drawn before it was paid"
        for bill in bills(run, parts=case.parts):
            self.plans, self.steps = self.plans + 1, max(self.steps, len(bill.limits))
            for place in range(min(len(bill.draws), _MOST)):
                self.draws[place] = self.draws.get(place, False) or _notices(bill, place, lucky)
            if bill.surely_not or (lucky and not bill.fits):
                self.wrong = self.wrong or f"{where}: {bill}"
            if lucky and not any(limit.open for limit in bill.limits):
                self.wrong = self.wrong or (f"{where}: {why}" if (why := _shown(run)) else "")


def stepwise(case: Case[Data], *, random: int = 20, lucky: int = 4, seed: int = 0) -> list[Finding]:
    """The audit of a case: ordinary and lucky runs on its worst pairs and on ``random`` neighbours, both ways.

    ``lucky``: on how many of the random neighbours there are lucky runs too. Nothing is found where only the output is
    promised, where nothing is said to be paid, or where one step is all there is: that is what ``neighbour`` looks at.

    Guarantee: a true claim cannot fail, if certificates are linear in their noise.
    """
    if not case.transcript:
        return []
    seen = _Seen()
    try:
        worst = [pair for one, two in case.worst() for pair in ((one, two), (two, one))]
        pairs = [*worst, *random_pairs(case, random, seed)]
        plain = [path(case, *pair, (seed << 24) + number) for number, pair in enumerate(pairs)]
        if not any(_bound(run, case) for run in plain[: len(worst)]):
            return []
        division = _division(plain[: len(worst)], case)
        for number, (pair, run) in enumerate(zip(pairs, plain, strict=True)):
            where = f"pair {number // 2 + 1}" if number < len(worst) else "random pair"
            seen.add(run, case, where, lucky=False)
            for luckier in _lucky(case, *pair, run, division) if number < len(worst) + lucky else ():
                seen.add(luckier, case, f"{where}, lucky", lucky=True)
    except Exception as problem:
        return [Finding("N", case.name, _CLAIM, "an error", False, type(problem).__name__)]
    if not seen.plans or (case.parts and seen.steps < 2):
        return []
    found = sum(seen.draws.values())
    detail = seen.wrong or f"noise 20% smaller is seen at {found} of {len(seen.draws)} draws"
    return [Finding("N", case.name, _CLAIM, f"{seen.plans} plans", not seen.wrong, detail)]


def _shown(run: Path) -> str:
    """What a lucky run shows that its neighbour does not have, or more of a posterior than the last step pays for."""
    if run.reason:
        return run.reason
    if any(one.method == "reveal" and part(one, two).epsilon for one, two in run.pairs):
        return "a value was shown that a neighbour does not have"
    if not run.pairs or run.pairs[-1][0].method != "posterior" or not run.here.plans:
        return ""
    cost, ends = run.here.plans[-1][1][-1], along_the_shift(*run.pairs[-1])
    for epsilon in _LEVELS:
        if (found := delta(*ends, epsilon)) > cost.delta_at(epsilon) * (1 + 1e-6):
            return f"the sample has delta({epsilon}) >= {found:.4g}, paid are {cost.delta_at(epsilon):.4g}"
    return ""


def _bound(run: Path, case: Case[Data]) -> bool:
    """Whether some step says what its draws may give away."""
    return any(not limit.open for bill in bills(run, parts=case.parts) for limit in bill.limits)


def _division(runs: Sequence[Path], case: Case[Data]) -> tuple[int, ...]:
    """The step of every single draw, where all runs that were released have one plan and agree on one division."""
    left: frozenset[tuple[int, ...]] | None = None
    for run in runs:
        found = bills(run, parts=case.parts)
        if run.refused or run.reason:
            continue
        ways = divisions(found[0]) if len(found) == 1 else frozenset[tuple[int, ...]]()
        left = ways if left is None else left & ways
    if left is None or len(left) != 1 or len({len(run.here) for run in runs if not run.refused}) != 1:
        return ()
    (steps,), noisy = left, [site for site in next(run for run in runs if not run.refused).here if site.method in NOISY]
    if len(steps) != len(noisy):
        return ()
    return tuple(step for step, site in zip(steps, noisy, strict=True) if site.method in _SINGLE)


def _lucky(case: Case[Data], first: Data, second: Data, plain: Path, division: tuple[int, ...]) -> Iterator[Path]:
    """With nothing that may fail all answers are possible; otherwise those for which no certificate fails."""
    most = failure(plain)
    for sizes in _choices(plain, division, safe=not most):
        yield path(case, first, second, 0, source=Lucky(0, most, sizes, still=bool(most)))


def _choices(plain: Path, division: tuple[int, ...], *, safe: bool) -> Iterator[Sequence[float]]:
    """Noise on one draw, or on one draw of each step that may fail."""
    single = sum(site.method in _SINGLE for site in plain.here)
    if safe and not single:
        return  # an ordinary run
    yield []
    for place, size in product(range(min(single, _PLACES)), (1.0, -1.0, 0.3, -0.3) if safe else (1.0, -1.0)):
        yield [0.0] * place + [size]
    firsts = [division.index(step) for step in sorted({*division[:-1]}) if step < max(division)]
    if len(firsts) > 1:
        for signs in product((1.0, -1.0), repeat=len(firsts)):
            yield [dict(zip(firsts, signs, strict=True)).get(place, 0.0) for place in range(max(firsts) + 1)]


def _notices(bill: Bill, place: int, lucky: bool) -> bool:
    """Whether less noise on this draw alone would be too much."""
    more = tuple(grown(draw, 1 / _SMALLER) if k == place else draw for k, draw in enumerate(bill.draws))
    worse = replace(bill, draws=more)
    return worse.surely_not or (lucky and not worse.fits)
