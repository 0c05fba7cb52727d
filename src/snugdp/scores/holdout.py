"""A fit that holds out a part of the rows and is scored on it, as one release at the cost of the fit alone.

Proof: ``holdout.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Outcome, Receipt, Unit
from snugdp.estimators.model import LinearModel
from snugdp.ledger.question import Question, question
from snugdp.mechanisms.scores.release import ScoredTable
from snugdp.mechanisms.scores.result import ModelScores
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons, drawn_key
from snugdp.scores.models import target_of_model
from snugdp.scores.score import Score
from snugdp.scores.split import SplitRequest, SplitRows
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from snugdp.tables.persons.keep import keep_rows

Model = TypeVar("Model", bound=LinearModel)
STEP = "holdout"
_LISTS = "holdout is for a single fit: leave out validation and lists of proposals"
_NOT_SCALABLE = "this method's cost has neither a pure nor a Gaussian part, so its budget cannot be shared with a score"


def covered_share(cost: Cost) -> Share:
    """What a release may cost so that whatever has ``cost`` is not cheaper, also beside other releases.

    Guarantee: ``scores/holdout.proof.md``, Lemma 1.

    >>> covered_share(Cost(mu=2, epsilon=1)).mu_squared, covered_share(Cost(epsilon=1, delta="1e-6")).epsilon
    (Fraction(4, 1), Fraction(1, 1))
    """
    square = cost.mu_squared
    for atom in cost.atoms:
        sides = ([branch.mu_squared for branch in side if branch.weight == 1] for side in (atom.add, atom.remove))  # 3
        square += min(max(squares, default=cost.mu_squared * 0) for squares in sides)
    if not square and not cost.epsilon:
        raise ValueError(_NOT_SCALABLE)
    return Share(cost.epsilon * (not square), square, cost.neighbours)


def plan_with_holdout(plan: Plan, share: float) -> Plan:
    """The plan of a fit with one more step, which costs nothing: a row is in one of the parts."""
    law = "discrete Laplace" if covered_share(plan.cost).is_pure else "gaussian"
    free = Cost(neighbours=plan.cost.neighbours)
    step = Step(STEP, StepKind.RELEASE, StepNoise("holdout-scores", law), free)
    return replace(plan, steps=(*plan.steps, step)).with_notes(Note("holdout", {"share": share}))


@dataclass(frozen=True)
class FittedValue:
    """What a fit has drawn, before there is an outcome: as a model takes it over."""

    value: Any
    cost: Cost
    certificate: Any = None
    refused: bool = False


@dataclass
class HeldOut:
    """The rows that are held out of a fit, and how the fit is scored on them. ``scores``: once they are released.

    ``key``: that chooses rows of persons, drawn before any row is looked at.
    """

    model: LinearModel
    rows: SplitRows
    share: float
    key: int
    persons: Persons | None
    scores: ModelScores | None = None

    def scored(self, value: Any, plan: Plan, noise: Noise) -> ModelScores:
        """The scores of what was fitted, on the rows that were not."""
        score = Score(model=self._fitted(value, plan), epsilon=1, person=self._person)
        table, reader = score.opened(*self.rows.held)
        source = table.source
        if self.persons is not None:
            most = 1 if plan.unit is Unit.PERSON else self.persons.most  # 5
            source = keep_rows(source, reader.columns, self.persons.column, most, self.key)
        mechanism = score.mechanism(covered_share(plan.cost), STEP)  # 4
        return ScoredTable(score.work(reader, mechanism.task), mechanism, progress=False).draw(Secret(source), noise)

    @property
    def _person(self) -> str | None:
        return None if self.persons is None else self.persons.column

    def _fitted(self, value: Any, plan: Plan) -> LinearModel:
        """The model with what was released of its fit."""
        model, (X, _), schema = _twin(self.model), self.rows.held, self.model.schema
        names = self.rows.names if schema is None else tuple(name for name in schema.columns if name != schema.target)
        model.n_features_in_ = len(names)
        model._restore(FittedValue(value, plan.cost), plan, names)  # type: ignore[arg-type]  # no outcome of its own
        if (found := getattr(model, "bounds_", None)) is not None:
            names = tuple(name for name in found.declared.columns if name != found.declared.target)
        if not isinstance(X, list | tuple | np.ndarray):
            model.feature_names_in_ = np.array(names, dtype=object)
        model.n_features_in_ = len(names)
        return model


class HoldoutContext(ReleaseContext):
    """The context of a fit whose outcome has the scores on the rows that were held out beside it."""

    def __init__(self, context: ReleaseContext, held: HeldOut) -> None:
        vars(self).update(vars(context))
        self._held_out = held

    def pay(self, plan: Plan, walk: Callable[[Noise, Receipt | None], StoredOutcome]) -> Outcome[Any]:
        """Charge the fit, fit, and score what was released of it: one charge, one outcome."""
        held, whole = self._held_out, plan_with_holdout(plan, self._held_out.share)

        def both(noise: Noise, receipt: Receipt | None) -> StoredOutcome:
            kept = walk(noise, receipt)
            if kept.refused:
                return kept
            return replace(kept, value=(kept.value, held.scored(kept.value, plan, noise)))

        outcome = super().pay(whole, both)
        if outcome.refused or outcome.value is None:
            return outcome
        fitted, held.scores = outcome.value
        return replace(outcome, value=fitted)

    def known(self, plan: Plan) -> bool:
        """Whether this very release was charged before."""
        return super().known(plan_with_holdout(plan, self._held_out.share))

    def with_question(self, asked: Callable[[], Question]) -> Self:
        """The same context for one question; that of the fit alone is another one."""
        share = self._held_out.share

        def whole() -> Question:
            fit = asked()
            return question(fit.words, fit=fit.digest, holdout=share)

        return super().with_question(whole)


def held_share(holdout: Real) -> float:
    """The share of the rows that is not fitted on."""
    share = float(rational(holdout, "holdout"))
    if not 0 < share < 1:
        raise ValueError("holdout is the share of the rows that is not fitted on: above 0 and below 1, such as 0.2")
    return share


def fit_with_holdout(model: Model, X: Any, y: Any, groups: Any, holdout: Real) -> Model:
    """Fit on a part of the rows, and score on the rest: ``model.holdout_score_``.

    Guarantee: the cost of the fit alone (``scores/holdout.proof.md``, Theorem 1).
    """
    share = held_share(holdout)
    if model.validation is not None:
        raise ValueError(_LISTS)
    if groups is not None:
        raise ValueError('with holdout, persons are named by a column of a table: person="customer_id"')
    Neighbours.of(model.neighbours).require(Neighbours.ADD_REMOVE)
    persons = model._persons()
    noise = model._context(persons).noise
    target = y if isinstance(y, str) else target_of_model(model)
    person = None if persons is None else persons.column
    rows = SplitRequest(share, drawn_key(noise), person, target).of(X, y)
    held = HeldOut(model, rows, share, drawn_key(noise), persons)
    worker = _twin(model)
    worker.__dict__["_beside_fit"] = lambda context: HoldoutContext(context, held)
    worker.fit(*rows.fitted)
    return _taken_over(model, worker, held)


def _twin(model: Model) -> Model:
    """A shallow copy that has the very same ledger, which a copy by way of a pickle has not."""
    made: Model = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    return made


def _taken_over(model: Model, worker: Model, held: HeldOut) -> Model:
    """The model with all that the fit of its copy has left."""
    worker.__dict__.pop("_beside_fit")
    model.__dict__.clear()
    model.__dict__.update(worker.__dict__)
    model.plan_ = plan_with_holdout(worker.plan_, held.share)
    if held.scores is not None:
        model.holdout_score_ = held.scores
    return model
