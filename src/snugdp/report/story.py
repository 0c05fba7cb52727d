"""What a report tells, gathered from a fitted estimator, a model file or an outcome. All of it is public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from snugdp import __version__
from snugdp.core.guarantee import Cost
from snugdp.core.outcome import NotPrivate, Receipt, Refused, Released, Unit
from snugdp.estimators.registry import BY_NAME, LEFT_OUT, entry_of
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind
from snugdp.propose.theorem import Theorem
from snugdp.report.about import About
from snugdp.report.names import of_public, of_released
from snugdp.report.plan_text import forecast_lines, step_label, step_words
from snugdp.report.released import EVERYWHERE, Ends, ReportTable, facts, table_of, tables_of
from snugdp.report.words import Protected, at_most, number
from snugdp.tables.found import FoundBounds
from snugdp.tables.found_lines import FoundLine, lines

if TYPE_CHECKING:
    from snugdp.estimators.forecasts.forecast import Outlook

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DELTA = Fraction(1, 10**6)  # where a Gaussian cost without a budget is told
_MANY_ROWS = "least-squares-with-many-rows"  # the note of a plan that may end so
_ROBUST = ("robust-line", "robust-slopes")  # notes that are true of a robust line alone
_HIDDEN = ("epsilon", "delta", "neighbours", "random_state", "schema", "proxy")


class StepShare(NamedTuple):
    """A step of the plan: what it does, what is added up, and what it would cost alone at the delta of the whole."""

    id: str
    name: str
    noise: str
    cost: Cost
    epsilon: float | Fraction | None  # None where unknown
    free: bool  # no part of the cost is above 0
    test: bool


@dataclass(frozen=True)
class Story:
    """Everything that a report shows, before it is put into words and drawings."""

    title: str
    thing: str  # "this model"
    refused: bool
    rehearsed: bool
    cost: Cost
    epsilon: float | Fraction
    delta: float | Fraction
    whom: Unit
    theorem: Theorem | None
    what: str
    shares: tuple[StepShare, ...]
    test_failure: Fraction | None  # of the steps that test; None if there are none
    forecast: tuple[str, ...]  # in words, but for what is said for other numbers of rows
    tables: tuple[ReportTable, ...]
    certificate: tuple[tuple[str, str], ...]
    public: tuple[tuple[str, str], ...]
    receipt: Receipt | None
    details: tuple[tuple[str, str], ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    found: tuple[FoundLine, ...] = ()  # what was found about columns privately
    left_out: tuple[tuple[str, str], ...] = ()  # columns that were not used, and why
    outlook: Outlook | None = None  # for about as many rows as there are
    counted: bool = False  # that number was released with noise; otherwise somebody said it
    about: About = field(default_factory=About)
    selected: bool = False  # the best of several runs
    software: str = f"snugdp {__version__}"
    time: str = field(default_factory=lambda: f"written {_when(datetime.now(UTC).isoformat())}")

    @property
    def outcome(self) -> str:
        """In a word or two."""
        said = "refused" if self.refused else "released"
        return f"rehearsal ({said}), NOT PRIVATE" if self.rehearsed else said

    @property
    def unit(self) -> Protected:
        """Who is protected, in words."""
        return Protected.of(self.cost.neighbours, self.whom)


def story_of(
    model: Any,
    plan: Plan | None = None,
    title: str | None = None,
    rows: int | None = None,
    public: Mapping[str, Any] | None = None,
    *,
    within: Ends = EVERYWHERE,
    about: About | None = None,
) -> Story:
    """The story of a model file's dict, a fitted estimator of ours or an outcome.

    ``public``: more that was public. ``within``: public bounds on the answer of a query.
    """
    more = dict(public or {})
    told = _story_of(model, plan, title, rows, classes=more.get("classes"), within=within)
    known = tuple(dict((*told.public, *_known(more))).items())
    return replace(told, public=known, about=About() if about is None else about)


def _story_of(
    model: Any, plan: Plan | None, title: str | None, rows: int | None, *, classes: Any, within: Ends
) -> Story:
    if isinstance(model, Mapping):
        from snugdp.estimators.files.model_file import from_dict

        told = of_estimator(from_dict(dict(model)), title, rows)
        return replace(told, software=str(model["software"]), time=f"saved {_when(str(model['time']))}")
    if isinstance(model, Released | Refused | NotPrivate):
        return of_outcome(model, plan, title, classes, within)
    if hasattr(model, "get_params"):
        return of_estimator(model, title, rows)
    raise TypeError("give the dict of a model file, a fitted estimator of snugdp, or the outcome of a release")


def of_estimator(model: Any, title: str | None = None, rows: int | None = None) -> Story:
    """The story of a fit. ``rows``: a public guess, for its forecast; otherwise that of the model, or a noisy count."""
    from sklearn.utils.validation import check_is_fitted

    entry = entry_of(model)
    if entry is None:
        raise TypeError(f"a report is made of {', '.join(BY_NAME)}, of a model file, or of an outcome")
    check_is_fitted(model)
    schema, found = getattr(model, "schema", None), getattr(model, "bounds_", None)
    schema = found.declared if schema is None and found is not None else schema
    target = None if schema is None else schema.target
    promise, cost, plan = model.guarantee_, model.cost_, model.plan_
    budget = model._promised() if promise is None else promise.budget
    ended = _ended_in_least_squares(model)
    hidden = {*LEFT_OUT, "target"} if ended else LEFT_OUT
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in hidden}
    certificate = facts(getattr(model, "certificate_", None), of_released)
    beside = facts(getattr(model, "details_", None), of_released)
    guess, counted = getattr(model, "rows", None) if rows is None else rows, _counted(model)
    outlook = _outlook(model, counted if guess is None else guess)
    expected = outlook.asked.noise if outlook is not None and _units_are_known(model) else None
    return Story(
        title=title or (entry.title if target is None else f"{entry.title} of {target}"),
        thing="the outcome" if not model.released_ else "this model",
        refused=not model.released_,
        rehearsed=model.receipt_ is None,
        cost=cost,
        epsilon=budget.epsilon,
        delta=budget.delta,
        whom=plan.unit,
        theorem=plan.theorem,
        what=plan.title,
        **_planned(plan, budget.delta, ended),
        outlook=outlook,
        counted=guess is None,
        tables=tables_of(model, expected) if model.released_ else (),
        details=tuple(pair for pair in beside if pair not in certificate) if model.released_ else (),
        certificate=certificate if model.released_ else (),
        public=_known(given),
        columns=_columns(schema),
        found=() if found is None else lines(found, getattr(model, "feature_names_in_", ())),
        left_out=tuple(getattr(model, "left_out_", {}).items()),
        receipt=model.receipt_,
        selected=_selected(plan),
    )


def of_outcome(
    outcome: Released[Any] | Refused | NotPrivate[Any],
    plan: Plan | None,
    title: str | None,
    classes: Sequence[Any] | None = None,
    within: Ends = EVERYWHERE,
) -> Story:
    """The story of a query, with the plan of it if there is one. ``classes``: of labels, in their order."""
    cost, receipt = outcome.cost, getattr(outcome, "receipt", None)
    budget = None if plan is None else plan.budget
    if plan is not None and plan.cost != cost:
        raise ValueError("the plan is not the one of this outcome: they differ in cost")
    if plan is not None and plan.unit is not outcome.unit:
        raise ValueError("the plan is not the one of this outcome: they differ in whom they protect")
    epsilon, delta = promised(cost) if budget is None else (budget.epsilon, budget.delta)
    what = plan.title if plan is not None else receipt.what if receipt is not None else "rehearsal"
    exact = plan is not None and plan.steps[-1].cost == Cost(neighbours=cost.neighbours)
    usual = None if plan is None else plan.forecast.answer_error or None
    table = None if outcome.refused else table_of(outcome.value, usual, exact=exact, classes=classes, within=within)
    return Story(
        title=title or what[:1].upper() + what[1:],
        thing="the outcome" if outcome.refused else "this answer",
        refused=outcome.refused,
        rehearsed=receipt is None,
        cost=cost,
        epsilon=epsilon,
        delta=delta,
        whom=outcome.unit,
        theorem=None if plan is None else plan.theorem,
        what=what,
        **_planned(plan, delta),
        tables=() if table is None else (table,),
        certificate=() if outcome.refused else facts(outcome.certificate, of_released),
        public=() if plan is None else _known({name: _amount(value) for name, value in plan.proposal.items()}),
        receipt=receipt,
    )


def promised(cost: Cost) -> tuple[float | Fraction, Fraction]:
    """(epsilon, delta) of a cost without a budget: its own if it is plain, otherwise at a usual delta."""
    if _plain(cost):
        return cost.epsilon, cost.delta
    delta = min(max(_DELTA, 2 * (cost.delta + cost.variation)), Fraction(1, 2))
    return _computed(cost.epsilon_at(delta)), delta


def _plain(cost: Cost) -> bool:
    return not (cost.mu_squared or cost.variation or cost.atoms)


def _computed(bound: float) -> float | Fraction:
    """A bound that was rounded up to a float, whose bits count."""
    return Fraction(bound) if math.isfinite(bound) else bound


def _amount(value: float | Fraction) -> float | str:
    return at_most(value) if isinstance(value, Fraction) else value


def _ended_in_least_squares(model: Any) -> bool:
    """Whether rows were so many that the fit did: only then it tells of X'X."""
    may = any(note.code == _MANY_ROWS for note in model.plan_.forecast.notes)
    return may and "lowest" in getattr(model, "details_", {})


def _as_it_ended(forecast: Forecast) -> Forecast:
    """Without what is true of a robust line alone."""
    told = {_MANY_ROWS: Note("ended-in-least-squares")}
    notes = [told.get(note.code, note) for note in forecast.notes if note.code not in _ROBUST]
    return replace(forecast, notes=tuple(notes))


def _planned(plan: Plan | None, delta: Fraction, ended: bool = False) -> dict[str, Any]:
    if plan is None:
        return {"shares": (), "test_failure": None, "forecast": ()}
    shares = tuple(_share(step, delta) for step in plan.steps)
    tests = [share.cost.delta for share in shares if share.test]
    return {
        "shares": shares,
        "test_failure": sum(tests, Fraction(0)) if tests else None,
        "forecast": forecast_lines(_as_it_ended(plan.forecast) if ended else plan.forecast, fits=False),
    }


def _share(step: Step, delta: Fraction) -> StepShare:
    cost = step.cost
    free = cost == Cost(neighbours=cost.neighbours)
    return StepShare(
        step.id, step_label(step), step_words(step), cost, _alone(cost, delta), free, step.kind is StepKind.TEST
    )


def _selected(plan: Plan) -> bool:
    """Whether it is the best of several runs."""
    return any(step.kind is StepKind.RUNS for step in plan.steps)


def _alone(cost: Cost, delta: Fraction) -> float | Fraction | None:
    """At the delta of the whole."""
    if delta < cost.delta:
        return None
    epsilon = _computed(cost.epsilon_at(delta))
    return min(epsilon, cost.epsilon) if _plain(cost) else epsilon


def _known(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What was public, without what is said elsewhere or was left open."""
    left_out = {name for name, value in given.items() if value is None or isinstance(value, FoundBounds)}
    left_out |= {"bounds"} if str(given.get("bounds")) == "private" else set()
    shown = {name: value for name, value in given.items() if name not in (*_HIDDEN, *left_out)}
    as_words = {name: ("yes" if value else "no") if isinstance(value, bool) else value for name, value in shown.items()}
    return facts(as_words, of_public)


def _when(time: str) -> str:
    """A time as people write it.

    >>> _when("2026-11-16T08:34:27+00:00"), _when("yesterday")
    ('16 November 2026, 08:34 UTC', 'yesterday')
    """
    try:
        moment = datetime.fromisoformat(time).astimezone(UTC)
    except ValueError:
        return time
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC"


def _counted(model: Any) -> int | None:
    """About how many rows there are, where that was released: with the sizes of targets, with bounds, or with X'X."""
    beside = (getattr(model, name, None) for name in ("certificate_", "bounds_"))
    counts = (*(getattr(each, "rows", None) for each in beside), getattr(model, "details_", {}).get("rows"))
    return next((round(count) for count in counts if count is not None and count >= 1), None)


def _outlook(model: Any, rows: int | None) -> Outlook | None:
    """What was to be expected of it, where it is known how many rows there are about."""
    if rows is None or not hasattr(model, "_forecaster") or _selected(model.plan_):
        return None
    from snugdp.estimators.forecasts.forecast import forecast
    from snugdp.propose.plan import whole_rows

    count = whole_rows(rows)
    assert count is not None
    try:
        return forecast(model, count, n_features=model.n_features_in_, factors=(), more=())
    except (ValueError, OverflowError):  # beyond any float, or of public rows that a file does not keep
        return None


def _units_are_known(model: Any) -> bool:
    """Whether its forecast is in the user's units: not if the units of columns were found in the fit itself."""
    return not hasattr(model, "bounds_") or not isinstance(model.bounds, str)


def _columns(schema: Any) -> tuple[tuple[str, str], ...]:
    if schema is None:
        return ()
    return tuple((str(name), _bounds(column)) for name, column in schema.columns.items())


def _bounds(column: Any) -> str:
    if getattr(column, "is_open", False):
        return "found privately"
    if hasattr(column, "parts"):
        return f"{column.lower} to {column.upper}"
    if hasattr(column, "lower"):
        return f"{number(float(column.lower), 6)} to {number(float(column.upper), 6)}"
    if hasattr(column, "values"):
        return f"one of {facts(list(column.values))[0][1]}"
    return "yes or no"
