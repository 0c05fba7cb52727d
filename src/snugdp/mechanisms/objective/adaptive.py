"""The defaults: look at the data in private for a small part of the budget, then perturb the objective to fit.

For a line: how far out a residual should still count like a square depends on how large targets usually are, and on how
many rows there are to drown the noise. Both come from one noisy histogram of |y|, around their private mean where the
line has an intercept: a few hundredths of the budget. Proof: ``adaptive.proof.md``.

For labels and counts: the noise grows with the longest row that is allowed, and the bounds of a schema allow rows that
are far longer than those of a table. A tenth of the budget buys a centre and a radius around it; rows beyond are
shortened. One model, one for each class, or one softmax model. Proof: ``glm_adaptive.proof.md``.

The numbers in the comments are those of the proofs' algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm
from snugdp.accounting.objective.multiclass import SoftmaxBound
from snugdp.accounting.objective.run import CLASS_C, Kind
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.linear.base import MOST_ENTRIES, Design, Fit, SumsRows, check_budget, of_design
from snugdp.mechanisms.linear.least_squares import LeastSquares
from snugdp.mechanisms.linear.noisy_sums import noisy_gram
from snugdp.mechanisms.linear.weighing import LineParts, Weighing
from snugdp.mechanisms.objective.class_means import ClassStart
from snugdp.mechanisms.objective.glm import GLMObjective, Losses, check_losses
from snugdp.mechanisms.objective.perturbation import (
    ObjectiveRun,
    Perturbation,
    SoftmaxModel,
    affordable,
    check_labels,
    coefficients_of,
    company_run,
    fit_of,
    gaussian_runs,
    gaussian_square,
    least_sharp_ridge,
    nothing_left,
    robust_line,
    root_below,
    softmax_run,
    total_cost,
    unit_of,
)
from snugdp.mechanisms.objective.scale import (
    MeanRow,
    MeanTarget,
    RowRadius,
    SizeHistogram,
    Spread,
    SquareSum,
    TargetLooks,
    constant_at,
)
from snugdp.mechanisms.objective.shrinkage import unshrunk
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, Forecast
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release, look_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import AffineRows, undo_affine
from snugdp.tables.losses.losses import LogCosh, Softmax
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

LINEAR, GLM = theorem("linear-adaptive/1"), theorem("glm-adaptive/1")

# Chosen on 79 public tables, 77 of them from R packages, and looked at once on 44 others: docs/benchmarks.md.
# Of M squared: the histogram; the mean of the targets, where there is an intercept; and X'X and y'y, which need very
# many rows anyway. Last, for an additive model, the weights of its parts.
_LINE_SHARES = tuple(Fraction(part, 1000) for part in (40, 10, 2, 1, 80))
_CLEAR_BIN, _SURE_BIN = 1.5, 3.5  # a bin counts from so many deviations of its noise on; for the tail, from more
_GUESS, _GUESSED = 0.1, 1.5  # the guessed size, part of the bound, counts like so many deviations
_NORMAL = 1.25  # root mean square over mean, of normal deviates
# Tau is 0.8 mean sizes where rows * m / entries is 30, and grows from there.
_TYPICAL_SIGNAL, _FACTOR, _POWER = 30.0, 0.8, 0.4
_MIN_FACTOR, _MAX_FACTOR = 0.35, 2.5
_BOUND, _BELIEF = 0.2, 0.3  # tau from the bound alone, 0.2 epsilon**(1/4) of it; how far it counts at epsilon 0.1
_EVEN, _LOOSEST = 0.5, 2.0  # tau is larger from a skew of 1.5 on, and at most so many times
_MIN_RIDGE = Fraction(1, 2)  # of B squared, at least
_LAST_BIT = Fraction(1, 1 << 60)  # of a root that was rounded down
_TAU_STEPS = 4096  # tau is chosen in so many steps of the bound on a target

# Chosen on breast cancer, digits (even or odd) and six made-up tables: docs/classification.md; the part on 14 kinds of
# made-up tables and on tables from R packages: docs/benchmarks.md.
_CENTRE_SHARE, _RADIUS_SHARE = Fraction(6, 100), Fraction(4, 100)  # of M squared
_LOOK_SHARE = Fraction(3, 100)  # of M squared, of either where sums by class come first
_SURE_NORMS = 4.0  # there a bin of norms counts from so many deviations of its noise on
_KEPT = 0.3  # there so many of the rows are not shortened
_SPARED_DELTA = Fraction(9, 10)  # of delta: the rest pays for a smaller ridge
_PART = Fraction(9, 10)  # of the largest m of a run for labels: a tenth more noise, and far less ridge
_ROW_NORM, _CLASS_NORM = 2, 3  # the longest row that is kept, in units of the constant; where sums by class come first
_FEW_ROWS_RIDGE = 0.08  # ridge for few rows, times (B coefficients / m)**2 / rows
_MIN_SIGNAL = 0.5  # rows times mu over coefficients: below that a private centre is noise

Floats: TypeAlias = NDArray[np.float64]
C = TypeVar("C", MeanTarget, MeanRow)
S = TypeVar("S", SizeHistogram, RowRadius)
R = TypeVar("R", bound=ObjectiveRun)


@dataclass(frozen=True)
class _Parts(Generic[C, S, R]):
    """What the budget affords: the releases before the runs, and the runs with their smallest ridges."""

    centre: C | None
    sizes: S
    runs: tuple[R, ...]
    start: ClassStart | None = None
    choice: ChoiceOfEnd | None = None
    weighing: Weighing | None = None

    @property
    def before(self) -> Cost:
        """What is released beside the runs costs: before them, but for weights."""
        looks = (self.centre, self.sizes, self.start, self.choice, self.weighing)
        return sum((look.cost for look in looks if look is not None), Cost())

    @property
    def cost(self) -> Cost:
        """What all of it costs."""
        return self.before + total_cost(self.runs)

    def within(self, budget: Budget, beside: Fraction) -> _Parts[C, S, R]:
        """The same, if it fits the budget beside a Gaussian release."""
        if not (self.cost + Cost(mu_squared=beside)).fits(budget):
            raise nothing_left(beside)
        return self


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
        middles = [2.0 ** -(octave + 0.5) for octave in range(len(octaves))]
        noise = deviation * math.sqrt(2.0)
        clear = [count if count > _CLEAR_BIN * noise else 0 for count in octaves]
        sure = [count if count > _SURE_BIN * noise else 0 for count in octaves]
        rows, guessed = float(sum(clear)), _GUESSED * noise
        mean = (math.fsum(c * x for c, x in zip(clear, middles, strict=True)) + _GUESS * guessed) / (rows + guessed)
        top = next((2.0**-octave for octave, count in enumerate(sure) if count), 0.5)
        return cls(max(rows, guessed / 2), mean, _tail(sure, middles), top, centre)


@dataclass(frozen=True)
class ChoiceOfEnd:
    """What tells whether rows are so many that least squares may take the place of the run: X'X, and y'y.

    Guarantee: ``cost``, when one row comes or goes (``linear/sufficient.proof.md``, Lemma 1, and ``scale.proof.md``,
    Theorem 4).
    """

    design: Design
    gram: Fraction
    squares: SquareSum

    @property
    def cost(self) -> Cost:
        """Of both."""
        return Cost(mu_squared=self.gram**2) + self.squares.cost

    def steps(self) -> tuple[Step, ...]:
        """Those of a plan."""
        gram = Step("gram", StepKind.STATISTIC, StepNoise("gram-matrix-for-choice", "gaussian"), Cost(mu=self.gram))
        return gram, self.squares.step("squares", "target-squares")

    def end(self, centre: MeanTarget | None, run: Perturbation) -> LeastSquares:
        """The other end, with what the run costs."""
        mean = centre.mu if centre else Fraction(0)
        return LeastSquares(self.design, self.gram, mean, self.squares.mu, run.run.gaussian_instead)

    def draw(self, data: Secret[Rows], noise: Noise) -> tuple[list[list[int]], float]:
        """Both, with noise."""
        gram = noisy_gram(data, self.design, self.gram**2, noise.at("gram"))
        return gram, self.squares.draw(data, noise.at("squares"))


@lru_cache(maxsize=64)
def _linear_parts(
    design: Design, budget: Budget, beside: Fraction, may_end: bool, weighs: bool
) -> _Parts[MeanTarget, SizeHistogram, Perturbation]:
    """Shares of what is left of M squared; the ridge is that of a run beside all Gaussian releases."""
    total = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2
    left = 1 - beside / total if total else Fraction(0)
    if left <= 0:
        raise nothing_left(beside)
    chooses = may_end and design.protects is Unit.ROW and design.entries <= MOST_ENTRIES
    asked = (True, design.row_map.constant, chooses, chooses, weighs and design.protects is Unit.ROW)
    shares = [share * left if wanted else Fraction(0) for share, wanted in zip(_LINE_SHARES, asked, strict=True)]
    (m,), mu = affordable(budget, [left - sum(shares)], sum(shares, Fraction(0)))
    square = total if beside else mu**2 / sum(shares)  # alone, all together are rounded down to mu
    sizes, centre, gram, squares, weights = mus = [root_below(square * share) for share in shares]
    gaussians = root_below(beside + sum(part**2 for part in mus)) + _LAST_BIT if beside else mu
    least, sharp = least_sharp_ridge(design, budget, m, gaussians)
    ridge = max(least, _MIN_RIDGE * design.together * design.x_squared)
    mean = MeanTarget(design, centre) if centre else None
    kind: Kind = "class_t_sharp" if sharp else "class_t"
    run = Perturbation(design, LogCosh(design.y_bound), m, ridge, kind)  # its cost is the same at every scale
    choice = ChoiceOfEnd(design, gram, SquareSum(design, squares)) if gram and squares else None
    weighing = Weighing(design, weights) if weights else None
    return _Parts(mean, SizeHistogram(design, sizes), (run,), None, choice, weighing).within(budget, beside)


@dataclass(frozen=True)
class Adaptive:
    """Fit a line by objective perturbation (log-cosh) at a scale chosen from a private histogram of the targets.

    Nothing is tested and nothing is refused: it is private on all data alike. The bound on the target may be loose.
    ``beside``: mu squared of a Gaussian release that somebody else makes of the same budget; noise and ridge are chosen
    for all of it together, as a smaller budget for the fit alone would ask for far more ridge.
    ``skew``: how many times longer the one side of the targets is than the other, if that is known: public, or a
    function of what was released before.
    ``least_squares``: whether it may end so where rows are very many. What that costs follows from the number of
    entries, so it may not where that is found in private.
    ``parts``: of an additive model, which entries are bends; they, lines and the constant are weighed after the run.

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
    skew: float = 1.0
    least_squares: bool = True
    parts: LineParts | None = None
    _parts: _Parts[MeanTarget, SizeHistogram, Perturbation] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_budget(self.budget)
        asked = self.least_squares, self.parts is not None
        object.__setattr__(self, "_parts", _linear_parts(self.design, self.budget, self.beside, *asked))  # in public

    @property
    def _looks(self) -> TargetLooks:
        return TargetLooks(self._parts.centre, self._parts.sizes)

    @property
    def _least_squares(self) -> LeastSquares | None:
        parts = self._parts
        return None if parts.choice is None else parts.choice.end(parts.centre, parts.runs[0])

    @property
    def _m(self) -> float:
        return float(self._parts.runs[0].m)

    def _run(self, tau: Fraction) -> Perturbation:
        return replace(self._parts.runs[0], loss=LogCosh(tau))

    @cached_property
    def _planned(self) -> Perturbation:
        """The run if targets were as guessed: its cost is that of every run."""
        return self._run(self.tau(Sizes(_TYPICAL_SIGNAL * self.design.entries / self._m, 2 * _GUESS, 1.0)))

    @property
    def cost(self) -> Cost:
        """All that is released."""
        return self._parts.cost

    def tau(self, sizes: Sizes) -> Fraction:
        """The scale of the loss: mean sizes, times a power of rows * m / entries, and more for a heavy tail.

        The bound on the target counts too, less the larger epsilon is, and only as far as targets come near it. Of
        skewed targets a robust line is far below the mean: their scale is up to twice as large.
        """
        signal, looser = sizes.rows * self._m / self.design.entries, min(max(self.skew - _EVEN, 1.0), _LOOSEST)
        return tau_for(sizes, signal, float(self.budget.epsilon), self.design, looser)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, choice, weighing = self._planned, self._parts.choice, self._parts.weighing
        return Plan(
            LINEAR.title,
            LINEAR,
            (
                *self._looks.steps(),
                *(() if choice is None else choice.steps()),
                Step("release", StepKind.RELEASE, StepNoise("log-cosh-objective", "gaussian"), run.cost),
                *(() if weighing is None else (weighing.step,)),
            ),
            {"ridge": float(run.ridge), "m": float(run.m)},
            self._expected(run),
            self.budget,
            self.design.protects,
        )

    def _expected(self, run: Perturbation) -> Forecast:
        expected, other = robust_line(run.noise_at_most), self._least_squares
        return expected if other is None else replace(expected, notes=(*expected.notes, other.note(2 * _GUESS)))

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and targets of about a fifth of their bound."""
        other = self._least_squares
        if other is not None and rows >= other.least_rows(2 * _GUESS):
            return other.forecast(rows, 2 * _GUESS)
        return self._run(self.tau(Sizes(float(rows), 2 * _GUESS, 1.0))).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look at the sizes, release. The outcome's certificate is a ``Sizes``, or None for least squares."""
        return look_and_release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> tuple[Sizes | None, Fit]:
        """The run at the scale that the sizes ask for; or least squares, for which they need not be known."""
        looks, choice, other = self._looks, self._parts.choice, self._least_squares
        centre = looks.draw_centre(data, noise)  # 1
        if choice is not None and other is not None:
            gram, squares = choice.draw(data, noise)  # 2
            if other.pays(gram, squares, centre):
                return None, other.draw(data, gram, centre, noise.at("release"))  # 3
        sizes = Sizes.read(looks.draw_sizes(data, centre, noise), float(looks.sizes.deviation), centre)  # 4
        run = self._run(self.tau(sizes))  # 5
        theta = coefficients_of([run], data, noise.at("release"), constant_at(centre, self.design))  # 6
        weights = self._weigh(data, theta[0], sizes.mean, noise)  # 7
        return sizes, fit_of(theta, {**run.released, "centre": float(centre), **weights})

    def _weigh(self, data: Secret[Rows], theta: Floats, size: float, noise: Noise) -> dict[str, float]:
        """The weights of lines and bends, if there are any bends; theta becomes the line with these."""
        weighing, parts = self._parts.weighing, self.parts
        if weighing is None or parts is None or not parts.bends:
            return {}
        theta[:], weights = weighing.draw(data, theta, parts, size, noise.at("weights"))
        return weights


def tau_for(sizes: Sizes, signal: float, epsilon: float, design: Design, looser: float = 1.0) -> Fraction:
    """The scale of the loss for so many rows * m / entries; ``looser``: a factor for skewed targets."""
    factor = min(max(_FACTOR * (signal / _TYPICAL_SIGNAL) ** _POWER, _MIN_FACTOR), _MAX_FACTOR)
    seen = min(factor * sizes.mean * max(1.0, sizes.tail / _NORMAL) ** 2, 2.0)
    told = _BOUND * min(epsilon, 1e6) ** 0.25 * min(1.0, 4 * sizes.top)
    belief = _BELIEF * min(1.0, math.sqrt(0.1 / epsilon))
    part = looser * seen ** (1 - belief) * told**belief
    return in_tau_steps(part) * design.y_bound


def in_tau_steps(part: float, least: float = 1 / _TAU_STEPS, most: float = 2.0) -> Fraction:
    """The scale of a loss, as a part of the bound on a target, in public steps."""
    return Fraction(round(min(max(part, least), most) * _TAU_STEPS), _TAU_STEPS)


def _tail(counts: Sequence[float], middles: Sequence[float]) -> float:
    """Root mean square over mean."""
    rows, first = sum(counts), math.fsum(c * x for c, x in zip(counts, middles, strict=True))
    second = math.fsum(c * x * x for c, x in zip(counts, middles, strict=True))
    return math.sqrt(rows * second) / first if rows else 1.0


@lru_cache(maxsize=64)
def _glm_parts(
    design: Design, budget: Budget, losses: Losses, beside: Fraction
) -> _Parts[MeanRow, RowRadius, ObjectiveRun]:
    square = glm_square(design, budget, losses, beside)
    if square <= 0:
        raise nothing_left(beside)
    start = ClassStart.of(stretched_design(design, _CLASS_NORM), losses[0], square)
    stretched = stretched_design(design) if start is None else start.sums.design
    shares = (_CENTRE_SHARE, _RADIUS_SHARE) if start is None else (_LOOK_SHARE, _LOOK_SHARE)
    centre = MeanRow(design, root_below(shares[0] * square)) if design.row_map.constant else None
    mu = root_below(shares[1] * square)
    radius = RowRadius(mu) if start is None else RowRadius(mu, clear=_SURE_NORMS, squares=True, kept=_KEPT)
    before = _Parts[MeanRow, RowRadius, ObjectiveRun](centre, radius, (), start).before.mu_squared
    runs = glm_runs(stretched, budget, losses, square - before, before + beside)
    return _Parts(centre, radius, runs, start).within(budget, beside)


def glm_runs(
    design: Design,
    budget: Budget,
    losses: Losses,
    square: Fraction,
    beside: Fraction,
    *,
    part: Fraction = _PART,
    bound: SoftmaxBound = "corners",
) -> tuple[ObjectiveRun, ...]:
    """One run, or one for each class, with m squared up to ``square`` beside Gaussian releases.

    A single run for labels has a ``part`` of the largest m: the smaller it is, the smaller its ridge may be.
    """
    loss = losses[0]
    if isinstance(loss, Softmax):
        return (softmax_run(design, budget, loss, mu_squared=beside, bound=bound),)
    if len(losses) == 1:
        m = (part if loss.kind in CLASS_C else 1) * root_below(square)
        return (company_run(design, budget, loss, m, beside),)
    return gaussian_runs(design, square, losses)


def glm_square(design: Design, budget: Budget, losses: Losses, beside: Fraction) -> Fraction:
    """M squared: what there is for the centre, the radius and the gradients; for a softmax run there is more."""
    loss = losses[0]
    if isinstance(loss, Softmax):
        return softmax_run(stretched_design(design), budget, loss, mu_squared=beside, bound="trace").run.m_squared
    if len(losses) > 1:
        return gaussian_square(budget) - beside
    spared = _SPARED_DELTA if loss.kind in CLASS_C else Fraction(1)
    m = glm.calibrate(budget.epsilon, budget.delta * spared, loss.kind, unit=unit_of(design))
    return Fraction(m) ** 2 - beside


def check_adaptive(design: Design, budget: Budget, losses: Losses) -> None:
    """Refuse what no theorem here speaks of."""
    check_budget(budget)
    check_labels(design)
    check_losses(losses)
    if not isinstance(losses[0], Softmax) and losses[0].kind == "sign_changing":
        raise ValueError("the curvature of this loss is bounded only: use GLMObjective")


def stretched_design(design: Design, norm: int = _ROW_NORM) -> Design:
    """The design of rows whose features reach from 0 to ``norm`` times the constant, whatever their units were."""
    rows = design.row_map
    return replace(design, row_map=RowMap(rows.entries, norm, rows.target_bound, None, rows.constant))


@dataclass(frozen=True)
class AdaptiveGLM(SumsRows):
    """Fit one model, or one for each of several classes, on rows moved and shortened by released numbers; a ``Method``.

    ``losses``: one loss, ``OneAgainst`` for every class, or ``Softmax``. With several classes, ``theta`` of the fit has
    a row for each. ``beside``: mu squared of a Gaussian release that somebody else makes of the same budget; noise and
    ridge are chosen for all of it together, as a smaller budget for the fit alone would ask for far more ridge.
    Nothing is tested and nothing is refused: it is private on all data alike.

    Guarantee: ``plan().cost``, which fits the budget, together with ``beside`` (``glm_adaptive.proof.md``, Theorem 1).
    Add/remove neighbours.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> AdaptiveGLM(design, Budget(1, 1e-6), losses=(Logistic(),)).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    losses: Losses
    beside: Fraction = Fraction(0)
    _parts: _Parts[MeanRow, RowRadius, ObjectiveRun] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_adaptive(self.design, self.budget, self.losses)
        object.__setattr__(self, "_parts", _glm_parts(self.design, self.budget, self.losses, self.beside))  # in public

    @property
    def cost(self) -> Cost:
        """All that is released."""
        return self._parts.cost

    @property
    def _norm(self) -> int:
        """The longest row that is kept, in units of the constant."""
        return _ROW_NORM if self._parts.start is None else _CLASS_NORM

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        parts, run = self._parts, self._parts.runs[0]
        objective = StepNoise("objective", "gaussian", times=len(parts.runs))
        steps = (
            *([parts.centre.step("centre", "row-sums", parts.centre.deviation)] if parts.centre else []),
            parts.sizes.step("radius", "row-norms", 1 / parts.sizes.mu),
            *(parts.start.steps if parts.start else ()),
            Step("release", StepKind.RELEASE, objective, total_cost(parts.runs)),
        )
        proposal = {"ridge": float(run.ridge), "m": float(run.m)}
        return Plan(GLM.title, GLM, steps, proposal, budget=self.budget, unit=self.design.protects)

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions, half as long as the bounds allow."""
        run = for_rows(self._parts.runs[0], float(rows))
        noise = run.noise_for(rows) * 2 * self._norm
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look at the rows, release. The outcome's certificate is a ``Spread``."""
        return certify_and_release(self.plan(), self, self, rows, context)

    def certify(self, data: Secret[Rows], noise: Noise) -> Spread:
        """The private centre and radius."""
        parts, checked = self._parts, data.map(lambda rows: of_design(rows, self.design))
        width = self.design.entries - self.design.row_map.constant
        centre = (0.0,) * width if parts.centre is None else parts.centre.draw(checked, noise.at("centre"))  # 1
        return parts.sizes.draw(checked, noise.at("radius"), centre)  # 2

    def draw(self, data: Secret[Rows], certificate: Spread, noise: Noise) -> Fit:
        """The runs, on rows around the centre and as long as the radius."""
        centre, norm = certificate.centre, self._norm
        scale = norm / certificate.radius
        moved: Secret[Rows] = data.map(lambda rows: AffineRows(rows, centre, scale, norm))  # 3
        if self._parts.start is not None and isinstance(run := self._parts.runs[0], SoftmaxModel):
            thetas, about = self._parts.start.draw(run, moved, noise, certificate.square)  # 4, 5
            return fit_of(undo_affine(thetas, centre, scale), {"radius": certificate.radius, **about})
        runs = [for_rows(run, certificate.rows) for run in self._parts.runs]  # 4
        thetas, given_back = unshrunk(coefficients_of(runs, moved, noise.at("release")), runs, certificate.rows)  # 5
        released = {**runs[0].released, "radius": certificate.radius, "rows": certificate.rows, **given_back}
        return fit_of(undo_affine(thetas, centre, scale), released)


def for_rows(run: R, rows: float, times: float = _FEW_ROWS_RIDGE) -> R:
    """The run with more ridge where rows, or persons with several of them, are few; that costs nothing."""
    few = times * float(run.design.together * run.design.x_squared) * (run.design.entries / float(run.m)) ** 2 / rows
    return replace(run, ridge=max(run.ridge, Fraction(round(few * 4096), 4096)))


def recommended(
    design: Design, budget: Budget, *, losses: Losses, rows: int | None = None
) -> GLMObjective | AdaptiveGLM:
    """The method for labels that public numbers recommend: epsilon, delta, coefficients and a guess of the rows.

    With a private centre and radius unless rows are too few for noise to tell them.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> [type(recommended(design, Budget(1, 1e-6), losses=(Logistic(),), rows=n)).__name__ for n in (3, 1000)]
    ['GLMObjective', 'AdaptiveGLM']
    """
    check_budget(budget)
    if rows is not None and rows * gaussian.mu(budget.epsilon, budget.delta) < _MIN_SIGNAL * design.entries:
        return GLMObjective(design, budget, losses=losses, rows=rows)
    return AdaptiveGLM(design, budget, losses=losses)
