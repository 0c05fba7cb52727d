"""How much the rows of a person may weigh together in a model, chosen from a noisy histogram of rows a person.

A large weight asks for much noise, a small one makes little of persons with many rows. Noise and ridge of a perturbed
objective grow with the weight, what they cost does not: so the weight may be chosen from what was released. Proof:
``weight_choice.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.linear.base import Fit, Method
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.forecast import Accuracy, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

THEOREM = theorem("person-weight/1")
WEIGHTS = (1, 2, 4, 8, 16)  # powers of two: sigma and ridge are multiples of them, to the last bit

_SHARE = Fraction(1, 100)  # of M squared
_CLEAR_BIN = 3.5  # a bin counts from so many deviations of its noise on
_MIDDLE = 0.75  # of the most rows of a bin: those of its persons, about
_CORRELATION = 0.25  # of the errors of one person's rows, as a guess
_NOISE_PER_ENTRY = 8.0  # of m squared: the square of the noise over that of an error, for a scale of two errors


@dataclass(frozen=True)
class PersonWeight:
    """What was released: the weight, and about how many persons have 1, 2, 3-4, 5-8, ... rows; noisy."""

    weight: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class WeightChoice:
    """A noisy histogram of how many rows persons have, and the weight that a public formula makes of it.

    ``entries`` and ``m``: of the model that follows, for the formula. ``most``: no larger weight is taken.

    Guarantee: cost ``mu_squared`` when one person with all rows comes or goes
    (``weight_choice.proof.md``, Theorem 1).
    """

    mu_squared: Fraction
    entries: int
    m: float
    most: int

    @classmethod
    def within(cls, budget: Budget, entries: int, most: int) -> WeightChoice:
        """With a hundredth of the largest Gaussian release for which half of delta is enough."""
        mu = gaussian.mu(budget.epsilon, budget.delta / 2)
        return cls(_SHARE * Fraction(mu) ** 2, entries, mu, most)

    @property
    def deviation(self) -> Fraction:
        """Of the noise on the number of persons in a bin."""
        return root_above(1 / self.mu_squared)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        noise = StepNoise("rows-per-person", "gaussian", float(self.deviation), "persons")
        return Step("weight", StepKind.SELECT, noise, Cost(mu_squared=self.mu_squared))

    def certify(self, rows: Secret[Rows], noise: Noise) -> PersonWeight:
        """The released histogram and weight."""
        counts = rows.map(lambda table: table.counts)
        noisy = noise.at("weight").add_integers(counts, Gaussian(self.deviation))  # 1
        return PersonWeight(self.read(noisy), tuple(noisy))  # 2

    def read(self, counts: Sequence[int]) -> int:
        """The weight with the least error, as far as released numbers tell.

        >>> choice = WeightChoice(Fraction(1, 1000), 7, 0.23, 1024)
        >>> choice.read([900, *[0] * 47]), choice.read([60_000, 0, 0, 0, 60_000, *[0] * 43])
        (1, 4)
        """
        clear = [float(count) if count > _CLEAR_BIN * float(self.deviation) else 0.0 for count in counts]
        sizes = [1.0 if place == 0 else max(2.0, _MIDDLE * 2.0**place) for place in range(len(clear))]
        known = [(count, size) for count, size in zip(clear, sizes, strict=True) if count]
        return min(self.weights, key=lambda weight: self._error(known, weight)) if known else WEIGHTS[0]

    @property
    def weights(self) -> tuple[int, ...]:
        """Those that may be chosen."""
        return tuple(weight for weight in WEIGHTS if weight <= self.most)

    def _error(self, known: Sequence[tuple[float, float]], weight: int) -> float:
        """Noise and the error of the sample, squared, over the square of the total weight."""
        total = sum(count * min(size, weight) for count, size in known)
        noise = _NOISE_PER_ENTRY * self.entries * (weight / self.m) ** 2
        sample = sum(
            count * min(1.0, weight / size) ** 2 * size * (1 + (size - 1) * _CORRELATION) for count, size in known
        )
        return (noise + sample) / total**2


@dataclass(frozen=True)
class WeightedMethod:
    """Choose the weight of a person, then fit with it, as one release; a ``Method``.

    ``make(weight)``: the fit for persons whose rows weigh at most so much together. Its cost must be the same for every
    weight: a fit that costs more than the first is not paid, and refused.

    Guarantee: ``plan().cost``, which fits the budget (``weight_choice.proof.md``, Theorem 2). Add/remove neighbours.
    """

    choice: WeightChoice
    make: Callable[[int], Method]
    budget: Budget

    def __post_init__(self) -> None:
        if self._second.unit is not Unit.PERSON:
            raise ValueError("a weight of persons is for a fit that is planned for persons")
        if not self.plan().cost.fits(self.budget):
            raise ValueError("the budget is too small to choose a weight and fit as well: give a larger epsilon")

    @cached_property
    def _first(self) -> Method:
        return self.make(WEIGHTS[0])

    @cached_property
    def _second(self) -> Plan:
        return self._first.plan()

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        second, weights = self._second, [str(weight) for weight in self.choice.weights]
        steps, proposal = (self.choice.step, *second.steps), {"m": second.proposal["m"]}
        whole = Plan(second.title, THEOREM, steps, proposal, second.forecast, self.budget, Unit.PERSON)
        return whole.with_notes(Note("persons-private", {"weights": ", ".join(weights)}))

    def forecast(self, rows: int) -> Accuracy:
        """For the smallest weight."""
        return self._first.forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, choose, fit. The outcome's certificate is a ``PersonWeight``."""
        stages = TwoStages(self.plan(), self.choice, self._fitted, self._second.cost)
        return stages.release_second(rows, context, lambda found: found)

    def _fitted(self, rows: Secret[Rows], found: PersonWeight, context: ReleaseContext) -> Outcome[Fit]:
        return self.make(found.weight).fit(rows.map(lambda all_rows: all_rows.weighing(found.weight)), context)  # 3
