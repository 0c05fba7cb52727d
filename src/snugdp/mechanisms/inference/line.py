"""A line on whitened rows, which are shortened with their targets: a robust run, and its covariance for intervals.

Where rows are so many that noise does not matter, and no intervals are asked for, it ends in least squares instead.
Proof: ``whitened.proof.md``, Theorems 1 and 3; the numbers in the comments are those of the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

from snugdp.accounting import gaussian
from snugdp.accounting.objective.run import Kind
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.inference.whitening import (
    Cells,
    WhitenedFit,
    WhitenedMethod,
    WhitenedParts,
    Whitening,
    constant_line,
    whitened_design,
)
from snugdp.mechanisms.linear.base import Design, Fit, KeepsRows, first_pass
from snugdp.mechanisms.linear.least_squares import LeastSquares
from snugdp.mechanisms.objective.adaptive import Sizes, tau_for
from snugdp.mechanisms.objective.location import TargetPlace
from snugdp.mechanisms.objective.perturbation import (
    Perturbation,
    Point,
    least_sharp_ridge,
    nothing_left,
    root_above,
    root_below,
)
from snugdp.mechanisms.objective.scale import (
    MeanResidual,
    MeanTarget,
    SizeHistogram,
    SquareSum,
    TargetHistogram,
    TargetLooks,
    TargetSum,
)
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import look_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import LogCosh
from snugdp.tables.rows import Rows

THEOREMS = {True: theorem("linear-inference/1"), False: theorem("linear-whitened/1")}  # by whether it has intervals

# Of M squared: the mean of the targets, their sizes, the Gram matrix, the lengths, both matrices with intervals, or
# without them the squares of the targets and, where there is an intercept, the mean of the residuals and, of a small
# budget, the histogram of the targets; the rest is the run.
_SHARES = tuple(Fraction(part, 1000) for part in (30, 30, 60, 20, 130, 2, 40, 30))
_SMALL_BUDGET = Fraction(3, 10)  # epsilon: from here on a mean tells where targets lie
_SHORTENED_SHARE = 0.5  # of the rows, about, are shortened, at most
_USUAL = 1.5  # the scale of the loss, over the deviation of its slopes
_MIN_RIDGE = Fraction(1, 2)
_TOLD = 0.25  # by a usual row, of what the Hessian must be
_GUESS = 0.2  # mean size of a target, as a part of its bound
_UNEVEN = 4  # times the rows of a plan, for rows that are not spread evenly: then least squares are likely
_CLIP = 3.0  # of residuals, in mean sizes of targets
_MIN_COUNT = 2.0  # deviations of its noise


@dataclass(frozen=True)
class _LineParts(WhitenedParts):
    """The looks before the run, the run with its smallest ridge, and the look after it."""

    looks: TargetLooks
    run: Perturbation
    place: TargetPlace | None
    squares: SquareSum | None
    level: MeanResidual | None

    @property
    def cost(self) -> Cost:
        """All of it."""
        more = (each.cost for each in (self.place, self.squares, self.level) if each is not None)
        return sum(more, Cost(mu_squared=self.whitening.mu_squared) + self.looks.cost + self.run.cost)


@lru_cache(maxsize=64)
def _line_parts(design: Design, budget: Budget, beside: Fraction, intervals: bool) -> _LineParts:
    """Shares of what is left of M squared; the ridge is that of a run beside all Gaussian releases."""
    total = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2
    left = total - beside
    if left <= 0:
        raise nothing_left(beside)
    constant, raised = design.row_map.constant, design.row_map.constant and not intervals
    small = raised and budget.epsilon < _SMALL_BUDGET
    asked = (constant, True, True, True, intervals, not intervals, raised, small)
    shares = [share if wanted else Fraction(0) for share, wanted in zip(_SHARES, asked, strict=True)]
    mus = [root_below(share * left) for share in shares]
    m, rows = root_below((1 - sum(shares)) * left), whitened_design(design.entries)
    least, sharp = least_sharp_ridge(rows, budget, m, root_above(beside + sum(mu**2 for mu in mus)))
    kind: Kind = "class_t_sharp" if sharp else "class_t"
    run = Perturbation(rows, LogCosh(rows.y_bound), m, max(least, _MIN_RIDGE * rows.x_squared), kind)
    centre = MeanTarget(design, mus[0]) if constant and intervals else None
    place = (
        TargetPlace(TargetSum(design, mus[0]), TargetHistogram(design, mus[7]) if small else None) if raised else None
    )
    noise = float(_USUAL / m)
    whitening = Whitening(design, gram=mus[2], radius=mus[3], pair=mus[4], share=_SHORTENED_SHARE, noise=noise)
    squares = SquareSum(design, mus[5]) if mus[5] else None
    level = MeanResidual(rows, mus[6]) if raised else None
    parts = _LineParts(whitening, TargetLooks(centre, SizeHistogram(design, mus[1])), run, place, squares, level)
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

    @property
    def _least_squares(self) -> LeastSquares | None:
        """The other end, which has no intervals."""
        parts = self._planned
        if parts.squares is None:
            return None
        mean = parts.place.total.mu if parts.place else Fraction(0)
        instead = parts.run.run.gaussian_instead
        return LeastSquares(self.design, parts.whitening.gram, mean, parts.squares.mu, instead, self.basis)

    @property
    def enough_rows(self) -> int | None:
        """With about so many it is likely to end in least squares; None if it never does."""
        other = self._least_squares
        return None if other is None else _UNEVEN * other.least_rows(_GUESS)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, squares, least_squares = self._planned.run, self._planned.squares, self._least_squares
        before, after = self._whitening.steps()
        needed = self._whitening.note(_TOLD) if least_squares is None else least_squares.note(_GUESS)
        place, level = self._planned.place, self._planned.level
        first = () if place is None else place.steps()
        again = () if squares is None else (squares.step("squares", "target-squares"),)
        last = () if level is None else (level.step("level", "mean-residual"),)
        line = Note("robust-line" if level is None else "robust-slopes")
        proved = THEOREMS[self.intervals]
        return Plan(
            proved.title,
            proved,
            (
                *first,
                *self._planned.looks.steps(),
                *before,
                *again,
                Step("release", StepKind.RELEASE, StepNoise("log-cosh-objective", "gaussian"), run.cost),
                *last,
                *after,
            ),
            {"ridge": float(run.ridge), "m": float(run.m)},
            Forecast(notes=(line, needed)),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and targets of about a fifth of their bound."""
        least_squares = self._least_squares
        if least_squares is not None and rows >= least_squares.least_rows(_GUESS):
            return least_squares.forecast(rows, _GUESS)
        return self._run(Sizes(float(rows), _GUESS, 1.0)).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look, release. The outcome's certificate is a ``Sizes``, or None for least squares."""
        return look_and_release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> tuple[Sizes | None, Fit]:
        """Look at what one pass tells, and end in least squares or in a run."""
        data.map(partial(first_pass, self))  # where nobody has made it
        squares, least_squares = self._planned.squares, self._least_squares
        gram = self._whitening.draw_gram(data, noise)  # 1
        if self._planned.place is None:
            centre = mean = self._planned.looks.draw_centre(data, noise)
        else:
            centre, mean = self._planned.place.draw(data, noise, self._counted(gram))
        if squares is not None and least_squares is not None:
            size = squares.draw(data, noise.at("squares"))  # 2
            if least_squares.pays(gram, size, mean):
                return None, least_squares.draw(data, gram, mean, noise.at("release"))  # 3
        return self._whitened(data, gram, centre, noise)

    def _whitened(self, data: Secret[Rows], gram: Cells, centre: Fraction, noise: Noise) -> tuple[Sizes, WhitenedFit]:
        """Look at the sizes of targets, whiten and run; for intervals take both matrices at the result."""
        whitening, looks = self._whitening, self._planned.looks
        data.map(Rows.images)  # kept now, if one pass was thought to be enough
        counts = looks.draw_sizes(data, centre, noise)  # 4
        sizes = Sizes.read(counts, float(looks.sizes.deviation), centre)
        run = self._run(sizes)
        matrix, released = whitening.follow(gram, data, noise)  # 5
        rows = whitening.whitened(data, matrix, "shorten")
        start = constant_line(matrix, centre)
        point = run.draw(rows, noise.at("release"), start)  # 6
        if (level := self._planned.level) is not None:
            raised = self._raised(level, rows, point, gram=gram, size=sizes.mean, noise=noise)  # 7
            point = tuple(a + b for a, b in zip(point, constant_line(matrix, raised), strict=True))
            released["raised"] = float(raised)
        theta, directions, equation = whitening.fit(rows, run, matrix, point, start=start, noise=noise)
        numbers = {name: value for name, value in run.released.items() if name != "noise_at_most"}  # of whitened rows
        details = {**numbers, **released, "centre": float(centre)}
        return sizes, WhitenedFit(theta, None, details, directions, equation)

    def _raised(
        self, level: MeanResidual, rows: Secret[Rows], point: Point, *, gram: Cells, size: float, noise: Noise
    ) -> Fraction:
        """How far the released line lies too low, by the residuals of whitened rows."""
        number, error = self._counted(gram)
        count = max(number, _MIN_COUNT * error)
        turned = replace(level, design=whitened_design(self._whitening.directions))
        clip = Fraction(min(_CLIP * size, 2.0)) * turned.design.y_bound
        return turned.draw(rows, noise.at("level"), point, clip, count)

    def _counted(self, gram: Cells) -> tuple[float, float]:
        """About how many rows there are, by the square of the constant, which is 2**bits; and the deviation of that."""
        return gram[-1][-1] / float(4**self.design.row_map.bits), float(self.design.x_squared / self._whitening.gram)
