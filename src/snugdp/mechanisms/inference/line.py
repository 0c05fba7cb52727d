"""A line on whitened rows, which are shortened with their targets: a robust run, and its covariance for intervals.

Proof: ``whitened.proof.md``, Theorem 1; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.objective.run import Kind
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.inference.whitening import (
    WhitenedFit,
    WhitenedMethod,
    WhitenedParts,
    Whitening,
    constant_line,
    whitened_design,
)
from snugdp.mechanisms.linear.base import Design, Fit, KeepsRows
from snugdp.mechanisms.objective.adaptive import Sizes, tau_for
from snugdp.mechanisms.objective.perturbation import (
    Perturbation,
    least_sharp_ridge,
    nothing_left,
    root_above,
    root_below,
)
from snugdp.mechanisms.objective.scale import MeanTarget, SizeHistogram, TargetLooks
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import LogCosh
from snugdp.tables.rows import Rows

THEOREMS = {True: theorem("linear-inference/1"), False: theorem("linear-whitened/1")}  # by whether it has intervals

# Of M squared: the mean of the targets, their sizes, the Gram matrix, the lengths, both matrices; the rest is the run.
_SHARES = tuple(Fraction(part, 100) for part in (3, 3, 6, 2, 13))
_SHORTENED_SHARE = 0.5  # of the rows, about, are shortened, at most
_USUAL = 1.5  # the scale of the loss, over the deviation of its slopes
_MIN_RIDGE = Fraction(1, 2)
_TOLD = 0.25  # by a usual row, of what the Hessian must be
_GUESS = 0.2  # mean size of a target, as a part of its bound


@dataclass(frozen=True)
class _LineParts(WhitenedParts):
    """The looks before the run, and the run with its smallest ridge."""

    looks: TargetLooks
    run: Perturbation

    @property
    def cost(self) -> Cost:
        """All of it."""
        return Cost(mu_squared=self.whitening.mu_squared) + self.looks.cost + self.run.cost


@lru_cache(maxsize=64)
def _line_parts(design: Design, budget: Budget, beside: Fraction, intervals: bool) -> _LineParts:
    """Shares of what is left of M squared; the ridge is that of a run beside all Gaussian releases."""
    total = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2
    left = total - beside
    if left <= 0:
        raise nothing_left(beside)
    asked = (design.row_map.constant, True, True, True, intervals)
    shares = [share if wanted else Fraction(0) for share, wanted in zip(_SHARES, asked, strict=True)]
    mus = [root_below(share * left) for share in shares]
    m, rows = root_below((1 - sum(shares)) * left), whitened_design(design.entries)
    least, sharp = least_sharp_ridge(rows, budget, m, root_above(beside + sum(mu**2 for mu in mus)))
    kind: Kind = "class_t_sharp" if sharp else "class_t"
    run = Perturbation(rows, LogCosh(rows.y_bound), m, max(least, _MIN_RIDGE * rows.x_squared), kind)
    centre = MeanTarget(design, mus[0]) if mus[0] else None
    noise = float(_USUAL / m)
    whitening = Whitening(design, gram=mus[2], radius=mus[3], pair=mus[4], share=_SHORTENED_SHARE, noise=noise)
    parts = _LineParts(whitening, TargetLooks(centre, SizeHistogram(design, mus[1])), run)
    if not (parts.cost + Cost(mu_squared=beside)).fits(budget):
        raise nothing_left(beside)
    return parts


@dataclass(frozen=True)
class WhitenedLine(WhitenedMethod, KeepsRows):
    """Fit a line on whitened rows; with ``intervals`` release what standard errors are computed from. A ``Method``.

    Guarantee: that of ``WhitenedMethod`` (``whitened.proof.md``, Theorem 1).

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(0, 1)}, target="y"))
    >>> WhitenedLine(design, Budget(1, 1e-6)).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    intervals: bool = True

    @property
    def _planned(self) -> _LineParts:
        return _line_parts(self.design, self.budget, self.beside, self.intervals)

    def _run(self, sizes: Sizes) -> Perturbation:
        """The run in as many directions as there are, at the scale that the sizes ask for: the same m and kappa."""
        run, directions = self._planned.run, self._whitening.directions
        design = whitened_design(directions)
        tau = tau_for(sizes, sizes.rows * float(run.m) / directions, float(self.budget.epsilon), design)
        return replace(run, design=design, loss=LogCosh(tau))

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run = self._planned.run
        before, after = self._whitening.steps()
        needed = (self._whitening.note(_TOLD),) if self.intervals else ()
        proved = THEOREMS[self.intervals]
        return Plan(
            proved.title,
            proved,
            (
                *self._planned.looks.steps(),
                *before,
                Step("release", StepKind.RELEASE, StepNoise("log-cosh-objective", "gaussian"), run.cost),
                *after,
            ),
            {"ridge": float(run.ridge), "m": float(run.m)},
            Forecast(notes=(Note("robust-line"), *needed)),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and targets of about a fifth of their bound."""
        return self._run(Sizes(float(rows), _GUESS, 1.0)).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look, release."""
        return certify_and_release(self.plan(), self, self, rows, context)

    def certify(self, data: Secret[Rows], noise: Noise) -> Sizes:
        """The private centre and sizes."""
        data.map(lambda table: table.read(keep=True))  # for all of the passes below
        looks = self._planned.looks
        centre, counts = looks.draw(data, noise)  # 1, 2
        return Sizes.read(counts, float(looks.sizes.deviation), centre)

    def draw(self, data: Secret[Rows], certificate: Sizes, noise: Noise) -> WhitenedFit:
        """Whiten and run; for intervals take both matrices at the result."""
        whitening, run = self._whitening, self._run(certificate)
        matrix, released = whitening.draw(data, noise)  # 3
        rows = whitening.whitened(data, matrix, "shorten")
        start = constant_line(matrix, certificate.centre)
        theta, directions, equation = whitening.fit(rows, run, matrix, start, noise)  # 4
        numbers = {name: value for name, value in run.released.items() if name != "noise_at_most"}  # of whitened rows
        return WhitenedFit(
            theta, None, {**numbers, **released, "centre": float(certificate.centre)}, directions, equation
        )
