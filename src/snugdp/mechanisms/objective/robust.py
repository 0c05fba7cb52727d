"""Robust objective perturbation: minimise a robust loss plus a random linear term. Proof: ``robust.proof.md``.

One or two runs (``perturbation.py``) and, if asked for, a private scale (``scale.py``). The numbers in the comments are
those of the proof's Theorem 2.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

from snugdp.accounting import gaussian
from snugdp.accounting.objective import linear as accounting
from snugdp.accounting.objective.run import Kind, smallest_ridge
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit, check_budget
from snugdp.mechanisms.objective.adaptive import in_tau_steps
from snugdp.mechanisms.objective.perturbation import (
    Perturbation,
    Point,
    Robust,
    affordable,
    coefficients_of,
    fit_of,
    least_ridges,
    robust_line,
    shared,
    total_cost,
)
from snugdp.mechanisms.objective.scale import MeanSize
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational, typed_up
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release, release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber, LogCosh, PseudoHuber
from snugdp.tables.rows import Rows

THEOREM = theorem("linear-objective/1")

Rule: TypeAlias = Literal["fixed", "scale", "two_stage"]

LOSSES: dict[str, type[Robust]] = {"logcosh": LogCosh, "pseudo_huber": PseudoHuber, "huber": Huber}


@dataclass(frozen=True)
class Scale:
    """What is released before the last run: a private scale, and the point that it is about."""

    scale: Fraction
    centre: Point | None = None


@dataclass(frozen=True)
class _Layout:
    """How a rule shares M squared between its runs and its scale; its kappas in parts of epsilon, if not the limit."""

    runs: tuple[Fraction, ...]
    scale: Fraction
    kappas: tuple[Fraction, ...] | None
    guess: Fraction


_LAYOUTS: dict[str, _Layout] = {
    "fixed": _Layout((Fraction(1),), Fraction(0), None, Fraction(22, 100)),
    "scale": _Layout((Fraction(99, 100),), Fraction(1, 100), None, Fraction(22, 100)),
    "two_stage": _Layout(
        (Fraction(15, 100), Fraction(83, 100)), Fraction(2, 100), (Fraction(1, 24), Fraction(1, 6)), Fraction(15, 100)
    ),
}


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Fit a line by robust objective perturbation. Nothing is tested: it is private on all data alike.

    ``rule``: how the scale tau of the loss is chosen. ``"fixed"``: from epsilon and the bound on the target.
    ``"scale"``: from a private mean of |y|, for loose bounds. ``"two_stage"``: a pilot, the private mean size of its
    residuals, and a second run around it. ``tau`` and ``ridge`` are in units of the scaled rows and targets; a ridge
    below the limit of the budget is refused unless ``general`` (always on for Huber) asks for the bound that covers it.

    Guarantee: ``plan().cost``, which fits the budget (``robust.proof.md``, Theorem 2). Add/remove neighbours.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(0, 1)}, target="y"))
    >>> plan = ObjectivePerturbation(design, Budget(1, 1e-6)).plan()
    >>> {name: round(value, 4) for name, value in plan.proposal.items()}
    {'tau': 0.2, 'ridge': 3.8977, 'm': 0.2291}
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    rule: Rule = "fixed"
    loss: str = "logcosh"
    tau: Real | None = None
    ridge: Real | None = None
    general: bool = False

    def __post_init__(self) -> None:
        _check(self.budget, self.rule, self.loss, self.tau)
        object.__setattr__(self, "general", self.general or self.loss == "huber")
        if self.general and self.design.weight is not None:
            raise ValueError("general=True and Huber losses are for one row of each person: use max_rows=1")
        if not self.cost.fits(self.budget):  # also reads everything that could be wrong
            raise ValueError(f"a ridge of {float(self._runs[-1].ridge):g} is too small for this budget")

    @cached_property
    def _ridge(self) -> Fraction | None:
        return None if self.ridge is None else gaussian.positive(self.ridge, "ridge")

    @cached_property
    def _layout(self) -> _Layout:
        return _LAYOUTS[self.rule]

    @cached_property
    def _sizes(self) -> tuple[tuple[Fraction, ...], Fraction]:
        """The m of every run and the mu of the scale, rounded down."""
        layout = self._layout
        if not self.general:
            return affordable(self.budget, layout.runs, layout.scale)
        kappas = [self.design.x_squared / ridge for ridge in self._general_ridges]
        total = accounting.calibrate_general(
            self.budget.epsilon, self.budget.delta, kappas, shares=layout.runs, mu_share=layout.scale
        )
        if total <= 0:
            raise ValueError(
                "no noise is enough for a ridge this small: with the general bound log(1 + x_bound**2 / ridge) must be "
                f"below epsilon, so give a ridge well above {self._no_ridge:.6g}"
            )
        return shared(total, layout.runs, layout.scale)

    @property
    def _no_ridge(self) -> float:
        """A ridge that the general bound certainly cannot take."""
        return float(self.design.x_squared) / math.expm1(min(float(self.budget.epsilon), 600.0))

    @cached_property
    def _general_ridges(self) -> tuple[Fraction, ...]:
        """The ridges when they do not follow from the noise."""
        parts = self._layout.kappas or (Fraction(1, 4),)
        if self._ridge is not None:
            return tuple(self._ridge * parts[-1] / part for part in parts)
        return tuple(smallest_ridge(self.design.x_squared, self.budget.epsilon * part) for part in parts)

    @cached_property
    def _ridges(self) -> tuple[Fraction, ...]:
        """The ridge of every run: as asked for, or the smallest that costs nothing."""
        if self.general:
            return self._general_ridges
        parts, (sizes, mu) = self._layout.kappas or (Fraction(1),), self._sizes
        smallest = least_ridges(self.design, self.budget, sizes, mu, parts)[-1]
        if self._ridge is not None and self._ridge < smallest:
            raise ValueError(
                f"ridge must be at least {typed_up(smallest)!r} for this budget and rule: below that the noise does "
                "not cover the curvature of the loss. Give a larger ridge, or general=True for more noise instead"
            )
        if self._ridge is None and self._layout.kappas is not None:
            smallest = max(smallest, self._general_ridges[-1])
        last = smallest if self._ridge is None else self._ridge
        return tuple(last * parts[-1] / part for part in parts)

    @cached_property
    def _runs(self) -> tuple[Perturbation, ...]:
        """All runs, with the tau that is planned."""
        loss = LOSSES[self.loss](self._first_tau)
        kind: Kind = "sign_changing" if self.general else "class_t"
        pairs = zip(self._sizes[0], self._ridges, strict=True)
        return tuple(Perturbation(self.design, loss, m, ridge, kind) for m, ridge in pairs)

    @cached_property
    def _scale(self) -> MeanSize | None:
        mu = self._sizes[1]
        return MeanSize(self.design, mu, self._layout.guess) if mu else None

    @property
    def _first_tau(self) -> Fraction:
        """The scale of the loss without knowledge of the data."""
        if self.tau is not None:
            return gaussian.positive(self.tau, "tau")
        return in_tau_steps(0.2 * float(self.budget.epsilon) ** 0.25, 0.05, 1.0) * self.design.y_bound

    def _last_tau(self, scale: Fraction) -> Fraction:
        """The scale of the loss once a private scale is known."""
        epsilon = float(self.budget.epsilon)
        factor = min(1.5, 1.2 * epsilon**0.4) if self.rule == "scale" else min(2.0, 1.5 * epsilon**0.15)
        return in_tau_steps(factor * float(scale)) * self.design.y_bound

    @property
    def cost(self) -> Cost:
        """What all parts cost together."""
        cost = total_cost(self._runs)
        return cost if self._scale is None else cost + self._scale.cost

    @property
    def _planned(self) -> Perturbation:
        """The last run, if the scale is as guessed."""
        return self._last(self._layout.guess) if self._scale else self._runs[-1]

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        last = self._planned
        proposal = {"tau": float(last.loss.slope), "ridge": float(last.ridge), "m": float(last.m)}
        return Plan(
            f"{THEOREM.title}, {self.loss} loss, rule {self.rule!r}",
            THEOREM,
            self._steps_of_plan(),
            proposal,
            robust_line(last.noise_at_most),
            self.budget,
            self.design.protects,
        )

    def _steps_of_plan(self) -> tuple[Step, ...]:
        steps = [_step("release", StepKind.RELEASE, self._runs[-1])]
        if self._scale:
            what = "mean-target-size" if len(self._runs) == 1 else "mean-residual-size"
            steps.insert(0, self._scale.step("scale", what))
        if len(self._runs) == 2:
            steps.insert(0, _step("pilot", StepKind.STATISTIC, self._runs[0]))
        return tuple(steps)

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and residuals of about the scale that the rule expects."""
        return self._planned.forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, run, release."""
        if self._scale is None:
            return release(self.plan(), _Once(self._runs[0]), rows, context)
        return certify_and_release(self.plan(), self, self, rows, context)

    def certify(self, data: Secret[Rows], noise: Noise) -> Scale:
        """The private scale, after a pilot if the rule has one."""
        centre = self._runs[0].draw(data, noise.at("pilot")) if len(self._runs) == 2 else None  # 1
        if self._scale is None:
            return Scale(self._layout.guess)
        return Scale(self._scale.draw(data, noise.at("scale"), centre), centre)  # 2

    def draw(self, data: Secret[Rows], certificate: Scale, noise: Noise) -> Fit:
        """The last run, at the scale that was released."""
        last = self._last(certificate.scale)
        theta = coefficients_of([last], data, noise.at("release"), certificate.centre)  # 3
        return fit_of(theta, {**last.released, "scale": float(certificate.scale * self.design.y_bound)})

    def _last(self, scale: Fraction) -> Perturbation:
        return replace(self._runs[-1], loss=LOSSES[self.loss](self._last_tau(scale)))


@dataclass(frozen=True)
class _Once:
    """The fixed rule as a mechanism."""

    run: Perturbation

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """One run."""
        return fit_of(coefficients_of([self.run], data, noise.at("release")), self.run.released)


def _step(name: str, kind: StepKind, run: Perturbation) -> Step:
    return Step(name, kind, StepNoise("objective", "gaussian", params={"m": float(run.m)}), run.cost)


def _check(budget: Budget, rule: str, loss: str, tau: Real | None) -> None:
    check_budget(budget)
    if rule not in _LAYOUTS:
        raise ValueError(f"rule must be one of {', '.join(map(repr, _LAYOUTS))}")
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}")
    if tau is not None and rule != "fixed":
        raise ValueError(f'the rule "{rule}" chooses tau itself: leave tau out, or use rule="fixed"')
    if tau is not None and not Fraction(1, 10**6) <= rational(tau, "tau") <= 10**6:
        raise ValueError("tau must be between 1e-6 and 1e6; targets are scaled to [-1, 1]")
