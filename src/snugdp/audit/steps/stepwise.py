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

from snugdp.audit.density.final_draw import elected, shown
from snugdp.audit.finding import Case, Finding
from snugdp.audit.replay import Path, path, random_pairs
from snugdp.audit.steps.steps import NOISY, Bill, bills, failure, grown
from snugdp.noise.boundary import BoundaryNoise

Data = TypeVar("Data")
_CLAIM = "every step pays for its own draws"
_SMALLER = Fraction(4, 5)  # of the noise of one draw: the power check
_MOST = 12  # draws of which that is asked
_SINGLE = ("add", "at_least")
_PLACES = 3  # single draws that are lucky, one at a time


@dataclass
class _Seen:
    """How many plans, which draws are close to what pays for them, and what was too much."""

    plans: int = 0
    draws: dict[int, bool] = field(default_factory=dict)
    wrong: str = ""

    def add(self, run: Path, case: Case[Data], where: str, *, lucky: bool) -> None:
        """One more run."""
        if any(site.method in NOISY for site in run.here.sites[: run.here.plans[0].start if run.here.plans else 0]):
            self.wrong = self.wrong or f"{where}: something was drawn before it was paid"
        if any(cost.neighbours != case.cost.neighbours for plan in run.here.plans for cost in plan.costs.values()):
            self.wrong = self.wrong or "what is paid is for other neighbours than what is claimed"
        for bill in bills(run, parts=case.parts):
            self.plans += 1
            for place in range(min(len(bill.draws), _MOST)):
                self.draws[place] = self.draws.get(place, False) or _notices(bill, place, lucky)
            if bill.unpaid(lucky=lucky):
                self.wrong = self.wrong or f"{where}: {bill}"
            if lucky and not any(limit.open for limit in bill.limits.values()):
                self.wrong = self.wrong or _at(where, shown(run))
            elif lucky and len(bill.limits) > 1:
                self.wrong = self.wrong or _at(where, elected(run))


def stepwise(case: Case[Data], *, random: int = 20, lucky: int = 4, seed: int = 0) -> list[Finding]:
    """The audit of a case: ordinary and lucky runs on its worst pairs and on ``random`` neighbours, both ways.

    ``lucky``: on how many of the random neighbours there are lucky runs too. Nothing is found where only the output is
    promised, or where nothing is said to be paid (by ``Purse.pay``).

    Guarantee: a true claim cannot fail, if each certificate is linear in the noise of its own step.
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
        for number, (pair, run) in enumerate(zip(pairs, plain, strict=True)):
            where = f"pair {number // 2 + 1}" if number < len(worst) else "random pair"
            seen.add(run, case, where, lucky=False)
            for luckier in _lucky(case, *pair, run) if number < len(worst) + lucky else ():
                seen.add(luckier, case, f"{where}, lucky", lucky=True)
    except Exception as problem:
        return [Finding("N", case.name, _CLAIM, "an error", False, type(problem).__name__)]
    if not seen.plans:
        return []
    found = sum(seen.draws.values())
    detail = seen.wrong or f"noise 20% smaller is seen at {found} of {len(seen.draws)} draws"
    return [Finding("N", case.name, _CLAIM, f"{seen.plans} plans", not seen.wrong, detail)]


def _at(where: str, why: str) -> str:
    return f"{where}: {why}" if why else ""


def _bound(run: Path, case: Case[Data]) -> bool:
    """Whether some step says what its draws may give away."""
    return any(not limit.open for bill in bills(run, parts=case.parts) for limit in bill.limits.values())


def _lucky(case: Case[Data], first: Data, second: Data, plain: Path) -> Iterator[Path]:
    """With nothing that may fail all answers are possible; otherwise those for which no certificate fails."""
    most = failure(plain)
    for sizes in _choices(plain, safe=not most):
        yield path(case, first, second, 0, source=BoundaryNoise(0, most, sizes, still=bool(most)))


def _choices(plain: Path, *, safe: bool) -> Iterator[Sequence[float]]:
    """Noise on one draw, or on one draw of each step that may fail by itself."""
    single = [site.step for site in plain.here if site.method in _SINGLE]
    if safe and not single:
        return  # an ordinary run
    yield []
    for place, size in product(range(min(len(single), _PLACES)), (1.0, -1.0, 0.3, -0.3) if safe else (1.0, -1.0)):
        yield [0.0] * place + [size]
    costs = plain.here.plans[0].costs if plain.here.plans else {}
    firsts = [single.index(step) for step in list(costs)[:-1] if step in single and costs[step].delta]
    if len(firsts) > 1:
        for signs in product((1.0, -1.0), repeat=len(firsts)):
            yield [dict(zip(firsts, signs, strict=True)).get(place, 0.0) for place in range(max(firsts) + 1)]


def _notices(bill: Bill, place: int, lucky: bool) -> bool:
    """Whether less noise on this draw alone would be too much."""
    more = tuple(grown(draw, 1 / _SMALLER) if k == place else draw for k, draw in enumerate(bill.draws))
    return bool(replace(bill, draws=more).unpaid(lucky=lucky))
