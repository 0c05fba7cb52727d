"""The default way to fit a line: look at the sizes of the targets in private, then perturb a robust objective to fit.

How far out a residual should still count like a square depends on how large targets usually are, and on how many rows
there are to drown the noise. Both come from one noisy histogram of |y|, around their private mean where the line has an
intercept: a few hundredths of the budget. Proof: ``adaptive.proof.md``; the numbers in the comments are those of its
algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.affordable import affordable, least_sharp_ridge, nothing_left
from snugdp.mechanisms.objective.perturbation import Perturbation, check_budget, coefficients_of, fit_of, root_below
from snugdp.mechanisms.objective.scale import MeanTarget, SizeHistogram
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import LogCosh
from snugdp.tables.rows import Rows

THEOREM = theorem("linear-adaptive/1")

# Chosen on 79 public tables, 77 of them from R packages, and looked at once on 44 others: docs/benchmarks.md.
_SIZES_SHARE = Fraction(4, 100)  # of M squared: the histogram
_CENTRE_SHARE = Fraction(1, 100)  # of M squared: the mean of the targets, where there is an intercept
_CLEAR_BIN, _SURE_BIN = 1.5, 3.5  # a bin counts from so many deviations of its noise on; for the tail, from more
_GUESS, _GUESSED = 0.1, 1.5  # the guessed size, part of the bound, counts like so many deviations
_NORMAL = 1.25  # root mean square over mean, of normal deviates
# Tau is 0.8 mean sizes where rows * m / entries is 30, and grows from there.
_TYPICAL_SIGNAL, _FACTOR, _POWER = 30.0, 0.8, 0.4
_MIN_FACTOR, _MAX_FACTOR = 0.35, 2.5
_BOUND, _BELIEF = 0.2, 0.3  # tau from the bound alone, 0.2 epsilon**(1/4) of it; how far it counts at epsilon 0.1
_MIN_RIDGE = Fraction(1, 2)  # of B squared, at least
_LAST_BIT = Fraction(1, 1 << 60)  # of a root that was rounded down
_TAU_STEPS = 4096  # tau is chosen in so many steps of the bound on a target


@dataclass(frozen=True)
class Sizes:
    """What is known before the run: about how many rows there are, how far targets lie from ``centre`` (in parts of
    their bound), how much heavier than normal their tail is, and where the largest common ones are. Released, noisy.
    """

    rows: float
    mean: float
    tail: float
    top: float = 1.0
    centre: Fraction = Fraction(0)

    @classmethod
    def read(cls, counts: Sequence[int], deviation: float, centre: Fraction = Fraction(0)) -> Sizes:
        """From noisy counts of bins that halve in size every two: bins below their noise do not count.

        >>> Sizes.read([0, 0, 0, 0, 600, 900, 500, 300, 90, 20], 5.0)  # doctest: +ELLIPSIS
        Sizes(rows=2410.0, mean=0.141..., tail=1.052..., top=0.25, centre=Fraction(0, 1))
        """
        octaves = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)]
        middles = [2.0 ** -(place + 0.5) for place in range(len(octaves))]
        noise = deviation * math.sqrt(2.0)
        clear = [count if count > _CLEAR_BIN * noise else 0 for count in octaves]
        sure = [count if count > _SURE_BIN * noise else 0 for count in octaves]
        rows, guessed = float(sum(clear)), _GUESSED * noise
        mean = (math.fsum(c * x for c, x in zip(clear, middles, strict=True)) + _GUESS * guessed) / (rows + guessed)
        top = next((2.0**-place for place, count in enumerate(sure) if count), 0.5)
        return cls(max(rows, guessed / 2), mean, _tail(sure, middles), top, centre)


@dataclass(frozen=True)
class _LinearParts:
    """What the budget affords: the m and ridge of the run, and the releases before it."""

    m: Fraction
    ridge: Fraction
    sharp: bool
    histogram: SizeHistogram
    centre: MeanTarget | None

    @property
    def before(self) -> Cost:
        """What is released before the run costs."""
        return self.histogram.cost if self.centre is None else self.histogram.cost + self.centre.cost

    def run(self, design: Design, tau: Fraction) -> Perturbation:
        """The run at a scale of the loss."""
        return Perturbation(design, LogCosh(tau), self.m, self.ridge, "class_t_sharp" if self.sharp else "class_t")


@lru_cache(maxsize=64)
def _parts(design: Design, budget: Budget, beside: Fraction) -> _LinearParts:
    """Shares of what is left of M squared; the ridge is that of a run beside all Gaussian releases."""
    total = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2
    left = 1 - beside / total if total else Fraction(0)
    if left <= 0:
        raise nothing_left(beside)
    shares = (_SIZES_SHARE * left, (_CENTRE_SHARE if design.row_map.constant else Fraction(0)) * left)
    (m,), mu = affordable(budget, [left - sum(shares)], sum(shares, Fraction(0)))
    square = total if beside else mu**2 / sum(shares)  # alone, both together are rounded down to mu
    sizes, centre = (root_below(square * share) for share in shares)
    gaussians = root_below(beside + sizes**2 + centre**2) + _LAST_BIT if beside else mu
    least, sharp = least_sharp_ridge(design, budget, m, gaussians)
    ridge = max(least, _MIN_RIDGE * design.x_squared)
    mean = MeanTarget(design, centre) if centre else None
    parts = _LinearParts(m, ridge, sharp, SizeHistogram(design, sizes), mean)
    if not (parts.run(design, design.y_bound).cost + parts.before + Cost(mu_squared=beside)).fits(budget):
        raise nothing_left(beside)
    return parts


@dataclass(frozen=True)
class Adaptive:
    """Fit a line by objective perturbation (log-cosh) at a scale chosen from a private histogram of the targets.

    Nothing is tested and nothing is refused: it is private on all data alike. The bound on the target may be loose.
    ``beside``: mu squared of a Gaussian release that somebody else makes of the same budget; noise and ridge are chosen
    for all of it together, as a smaller budget for the fit alone would ask for far more ridge.

    Guarantee: ``plan().cost``, which fits the budget, together with ``beside`` (``adaptive.proof.md``, Theorem 1).
    Add/remove neighbours.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(0, 1)}, target="y"))
    >>> Adaptive(design, Budget(1, 1e-6)).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    beside: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if not self._parts.m:  # in public
            raise ValueError("the budget is too small: give a larger epsilon or delta")

    @cached_property
    def _parts(self) -> _LinearParts:
        return _parts(self.design, self.budget, self.beside)

    def _run(self, tau: Fraction) -> Perturbation:
        return self._parts.run(self.design, tau)

    @cached_property
    def _planned(self) -> Perturbation:
        """The run if targets were as guessed: its cost is that of every run."""
        return self._run(self.tau(Sizes(_TYPICAL_SIGNAL * self.design.entries / float(self._parts.m), 2 * _GUESS, 1.0)))

    @property
    def cost(self) -> Cost:
        """All that is released."""
        return self._parts.before + self._planned.cost

    def tau(self, sizes: Sizes) -> Fraction:
        """The scale of the loss: mean sizes, times a power of rows * m / entries, and more for a heavy tail.

        The bound on the target counts too, less the larger epsilon is, and only as far as targets come near it.
        """
        epsilon = float(self.budget.epsilon)
        signal = sizes.rows * float(self._parts.m) / self.design.entries
        factor = min(max(_FACTOR * (signal / _TYPICAL_SIGNAL) ** _POWER, _MIN_FACTOR), _MAX_FACTOR)
        seen = min(factor * sizes.mean * max(1.0, sizes.tail / _NORMAL) ** 2, 2.0)
        told = _BOUND * min(epsilon, 1e6) ** 0.25 * min(1.0, 4 * sizes.top)
        belief = _BELIEF * min(1.0, math.sqrt(0.1 / epsilon))
        part = seen ** (1 - belief) * told**belief
        return in_tau_steps(part) * self.design.y_bound

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, parts = self._planned, self._parts
        sizes = StepNoise("target-sizes", "gaussian", float(parts.histogram.deviation), "rows")
        steps = [
            Step("sizes", StepKind.STATISTIC, sizes, parts.histogram.cost),
            Step("release", StepKind.RELEASE, StepNoise("log-cosh-objective", "gaussian"), run.cost),
        ]
        if parts.centre is not None:
            centre = StepNoise("mean-target", "gaussian")
            steps.insert(0, Step("centre", StepKind.STATISTIC, centre, parts.centre.cost))
        return Plan(
            THEOREM.title,
            THEOREM,
            tuple(steps),
            {"ridge": float(run.ridge), "m": float(run.m)},
            noted("scaled-noise-at-most", noise=run.noise_at_most),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and targets of about a fifth of their bound."""
        return self._run(self.tau(Sizes(float(rows), 2 * _GUESS, 1.0))).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look at the sizes, release."""
        return certify_and_release(self.plan(), self, self, rows, context)

    def certify(self, data: Secret[Rows], noise: Noise) -> Sizes:
        """The private centre and sizes."""
        mean, histogram = self._parts.centre, self._parts.histogram
        centre = Fraction(0) if mean is None else mean.draw(data, noise.at("centre"))  # 1
        counts = histogram.draw(data, noise.at("sizes"), self._around(centre))  # 2
        return Sizes.read(counts, float(histogram.deviation), centre)

    def draw(self, data: Secret[Rows], certificate: Sizes, noise: Noise) -> Fit:
        """The run at the scale that the sizes ask for."""
        run = self._run(self.tau(certificate))  # 3
        theta = coefficients_of([run], data, noise.at("release"), self._around(certificate.centre))  # 4
        return fit_of(theta, {**run.released, "centre": float(certificate.centre)})

    def _around(self, centre: Fraction) -> tuple[Fraction, ...]:
        """The line that is the same everywhere."""
        return (*(Fraction(0),) * (self.design.entries - 1), centre)


def in_tau_steps(part: float, least: float = 1 / _TAU_STEPS, most: float = 2.0) -> Fraction:
    """The scale of a loss, as a part of the bound on a target, in public steps."""
    return Fraction(round(min(max(part, least), most) * _TAU_STEPS), _TAU_STEPS)


def _tail(counts: Sequence[float], middles: Sequence[float]) -> float:
    """Root mean square over mean."""
    rows, first = sum(counts), math.fsum(c * x for c, x in zip(counts, middles, strict=True))
    second = math.fsum(c * x * x for c, x in zip(counts, middles, strict=True))
    return math.sqrt(rows * second) / first if rows else 1.0
