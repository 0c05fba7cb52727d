"""Labels and counts with intervals: rows whitened, the longest left out, a run on the others, and its covariance.

A label cannot be shortened with its row, so long rows are left out: which ones depends on x alone, which biases no
model of y given x. Proof: ``whitened.proof.md``, Theorem 2; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import lru_cache

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.inference.whitening import (
    WhitenedFit,
    WhitenedMethod,
    WhitenedParts,
    Whitening,
    whitened_design,
)
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.adaptive import glm_square
from snugdp.mechanisms.objective.glm import Losses
from snugdp.mechanisms.objective.perturbation import GLMRun, company_run, nothing_left, root_below
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Logistic, Loss, TamedPoisson
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-inference/1")

# Of M squared: the Gram matrix, the lengths; both matrices, of labels and of counts; the rest is the run. Most squares
# of residuals of counts are small beside that of the largest count, which their noise is made for.
_SHARES, _LABELS, _COUNTS = (Fraction(6, 100), Fraction(2, 100)), Fraction(12, 100), Fraction(20, 100)
_LEFT_OUT_SHARE = 0.015  # of the rows, about, are left out: levels that one row in fifty has are kept
_LABELS_TOLD, _COUNTS_TOLD = 0.22, 0.045  # by a usual row: classes of equal size, counts of an eighth of the largest


@dataclass(frozen=True)
class _GLMParts(WhitenedParts):
    """With the run."""

    run: GLMRun


@lru_cache(maxsize=64)
def _glm_parts(design: Design, budget: Budget, loss: Loss, beside: Fraction) -> _GLMParts:
    rows = whitened_design(design.entries)
    square = glm_square(rows, budget, (loss,), beside)
    if square <= 0:
        raise nothing_left(beside)
    shares = (*_SHARES, _COUNTS if isinstance(loss, TamedPoisson) else _LABELS)
    gram, radius, pair = (root_below(share * square) for share in shares)
    whitening = Whitening(design, gram=gram, radius=radius, pair=pair, share=_LEFT_OUT_SHARE)
    m = root_below((1 - sum(shares)) * square)
    run = company_run(rows, budget, loss, m, whitening.mu_squared + beside)
    if not (run.cost + Cost(mu_squared=whitening.mu_squared + beside)).fits(budget):
        raise nothing_left(beside)
    return _GLMParts(whitening, run)


@dataclass(frozen=True)
class WhitenedGLM(WhitenedMethod):
    """Fit a model of labels or counts on whitened rows, and release what its standard errors are computed from.

    A ``Method``. Nothing is tested and nothing is refused. ``losses``: one, logistic or tamed Poisson. ``beside`` and
    ``basis``: as in ``WhitenedMethod``.

    Guarantee: ``plan().cost``, which fits the budget together with ``beside`` (``whitened.proof.md``, Theorem 2).
    Add/remove neighbours.
    """

    _: KW_ONLY
    losses: Losses

    def __post_init__(self) -> None:
        if len(self.losses) != 1 or not isinstance(self.losses[0], Logistic | TamedPoisson):
            raise ValueError("intervals are available for two classes and for counts only: use inference=False")
        super().__post_init__()

    @property
    def _loss(self) -> Loss:
        loss = self.losses[0]
        assert isinstance(loss, Logistic | TamedPoisson)
        return loss

    @property
    def _planned(self) -> _GLMParts:
        return _glm_parts(self.design, self.budget, self._loss, self.beside)

    @property
    def _run(self) -> GLMRun:
        """The run in as many directions as there are: the same m and kappa."""
        return replace(self._planned.run, design=whitened_design(self._whitening.directions))

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, (before, after) = self._run, self._whitening.steps()
        counts = isinstance(self._loss, TamedPoisson)
        needed = self._whitening.note(_COUNTS_TOLD if counts else _LABELS_TOLD)
        step = Step("release", StepKind.RELEASE, StepNoise("objective", "gaussian"), run.cost)
        return Plan(
            THEOREM.title,
            THEOREM,
            (*before, step, *after),
            {"ridge": float(run.ridge), "m": float(run.m)},
            Forecast(notes=(needed, Note("intervals-rare"))),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions."""
        return self._run.forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look, release."""
        return release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> WhitenedFit:
        """Whiten, run, and take both matrices at the result."""
        whitening, run = self._whitening, self._run
        matrix, released = whitening.draw(data, noise)  # 1
        rows = whitening.whitened(data, matrix, "drop")
        start = (Fraction(0),) * whitening.directions
        point = run.draw(rows, noise.at("release"), start)  # 2
        theta, directions, equation = whitening.fit(rows, run, matrix, point, start=start, noise=noise)
        return WhitenedFit(theta, None, {**run.released, **released}, directions, equation)
