"""What a report tells, gathered from a fitted estimator, a model file or an outcome. All of it is public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from snugdp.guarantee import Cost, Neighbours
from snugdp.outcome import NotPrivate, Receipt, Refused, Released
from snugdp.ptr.propose import Plan
from snugdp.report.released import Table, facts, table_of, tables_of
from snugdp.report.words import number

if TYPE_CHECKING:
    from snugdp.estimators.forecast import Outlook

_STEP = re.compile(r"^  (?P<name>\S.*?)\s{2,}(?P<noise>.*)  \[(?P<cost>[^\[\]]*)\]$")
_USUAL_ERROR = re.compile(r"the noise moves the answer by less than ([-+0-9.,e]+) in 19 of 20 cases")
_EXPECTED = re.compile(
    r"with (?P<rows>[0-9,]+) rows that fill their bounds evenly: noise of about (?P<noise>.*) in a coefficient, "
    r"(?P<what>.*) off by about (?P<off>\S+) more than without noise"
)
_DELTA = 1e-6  # where a Gaussian cost without a budget is told
_HIDDEN = ("epsilon", "delta", "neighbours", "random_state", "schema")
_KINDS = {
    "LinearRegression": "Linear regression",
    "LogisticRegression": "Logistic regression",
    "PoissonRegression": "Poisson regression",
    "GLM": "Generalised linear model",
    "SparseLinearRegression": "Sparse linear regression",
    "SparseLogisticRegression": "Sparse logistic regression",
    "PCA": "Principal components",
    "PATEClassifier": "A student of private teachers",
}


@dataclass(frozen=True)
class Share:
    """A step of the plan. ``epsilon``: what it would cost alone at the delta of the whole; None where unknown."""

    name: str
    noise: str
    epsilon: float | None


@dataclass(frozen=True)
class Expected:
    """What a forecast says for so many rows."""

    rows: str
    off: str
    noise: str


@dataclass(frozen=True)
class Story:
    """Everything that a report shows, before it is put into words and drawings."""

    title: str
    thing: str  # "this model"
    refused: bool
    rehearsed: bool
    cost: Cost
    epsilon: float
    delta: float
    proof: str
    what: str
    shares: tuple[Share, ...]
    test_failure: float | None  # of the steps that test; None if there are none
    forecast: tuple[str, ...]
    expected: tuple[Expected, ...]  # of the forecast, what is said for numbers of rows
    tables: tuple[Table, ...]
    details: tuple[tuple[str, str], ...]
    certificate: tuple[tuple[str, str], ...]
    public: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    receipt: Receipt | None
    software: str
    time: str = ""
    outlook: Outlook | None = None

    @property
    def relation(self) -> Neighbours:
        """Whose rows are protected."""
        return self.cost.neighbours


def story_of(model: Any, plan: Plan | None = None, title: str | None = None, rows: int | None = None) -> Story:
    """The story of a model file's dict, a fitted estimator of ours or an outcome."""
    if isinstance(model, Mapping):
        from snugdp.estimators.files import from_dict

        told = of_estimator(from_dict(dict(model)), title, rows)
        return replace(told, software=str(model["software"]), time=str(model["time"]))
    if isinstance(model, Released | Refused | NotPrivate):
        return of_outcome(model, plan, title)
    if hasattr(model, "get_params"):
        return of_estimator(model, title, rows)
    raise TypeError("give the dict of a model file, a fitted estimator of snugdp, or the outcome of a release")


def of_estimator(model: Any, title: str | None = None, rows: int | None = None) -> Story:
    """The story of a fit. ``rows``: a public guess, for a forecast; without it that of the model, if it has one."""
    from sklearn.utils.validation import check_is_fitted

    from snugdp.estimators.files_kinds import LEFT_OUT

    if type(model).__name__ not in _KINDS or not type(model).__module__.startswith("snugdp."):
        raise TypeError(f"a report is made of {', '.join(_KINDS)}, of a model file, or of an outcome")
    check_is_fitted(model)
    schema, target = getattr(model, "schema", None), None
    if schema is not None:
        target = schema.target
    kind = _KINDS[type(model).__name__]
    promise, cost, plan = model.guarantee_, model.cost_, model.plan_
    epsilon, delta = (float(model.epsilon), float(model.delta)) if promise is None else (promise.epsilon, promise.delta)
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in LEFT_OUT}
    certificate = facts(getattr(model, "certificate_", None))
    beside = (*facts(getattr(model, "details_", None)), *facts(getattr(model, "best_proposal_", None)))
    outlook = _outlook(model, getattr(model, "rows", None) if rows is None else rows)
    known = {name: value for name, value in given.items() if value is not None and name not in _HIDDEN}
    return Story(
        title=title or (kind if target is None else f"{kind} of {target}"),
        thing="this refusal" if not model.released_ else "this model",
        refused=not model.released_,
        rehearsed=model.receipt_ is None,
        cost=cost,
        epsilon=epsilon,
        delta=delta,
        proof=plan.proof,
        what=plan.what,
        **_planned(plan, cost, delta),
        outlook=outlook,
        tables=tables_of(model, None if outlook is None else outlook.asked.noise) if model.released_ else (),
        details=tuple(pair for pair in beside if pair not in certificate) if model.released_ else (),
        certificate=certificate if model.released_ else (),
        public=facts(known),
        columns=_columns(schema),
        receipt=model.receipt_,
        software=_software(),
    )


def of_outcome(outcome: Released[Any] | Refused | NotPrivate[Any], plan: Plan | None, title: str | None) -> Story:
    """The story of a query, with the plan of it if there is one."""
    cost, receipt = outcome.cost, getattr(outcome, "receipt", None)
    budget = None if plan is None else plan.budget
    if plan is not None and plan.cost != cost:
        raise ValueError("the plan is not the one of this outcome: they differ in cost")
    epsilon, delta = promised(cost) if budget is None else (float(budget.epsilon), float(budget.delta))
    what = plan.what if plan is not None else receipt.what if receipt is not None else "rehearsal"
    told = _planned(plan, cost, delta)
    return Story(
        title=title or what[:1].upper() + what[1:],
        thing="this refusal" if outcome.refused else "this answer",
        refused=outcome.refused,
        rehearsed=receipt is None,
        cost=cost,
        epsilon=epsilon,
        delta=delta,
        proof="" if plan is None else plan.proof,
        what=what,
        **told,
        tables=() if outcome.refused else (table_of(outcome.value, _usual_error(told["forecast"])),),
        details=(),
        certificate=() if outcome.refused else facts(outcome.certificate),
        public=() if plan is None else facts(dict(plan.proposal)),
        columns=(),
        receipt=receipt,
        software=_software(),
    )


def promised(cost: Cost) -> tuple[float, float]:
    """(epsilon, delta) of a cost without a budget: its own if it is plain, otherwise at a usual delta."""
    if not (cost.mu_squared or cost.variation or cost.atoms):
        return float(cost.epsilon), float(cost.delta)
    delta = max(_DELTA, 2 * float(cost.delta + cost.variation))
    return cost.epsilon_at(min(delta, 0.5)), min(delta, 0.5)


def _planned(plan: Plan | None, cost: Cost, delta: float) -> dict[str, Any]:
    if plan is None:
        return {"shares": (), "test_failure": None, "forecast": (), "expected": ()}
    steps, forecast = (plan.steps, plan.forecast) if not hasattr(plan, "text") else _read(plan.text, cost)
    tests = [step.cost.delta for step in steps if step.name == "test" and step.cost is not None]
    return {
        "shares": tuple(Share(step.name, step.noise, _alone(step.cost, delta)) for step in steps),
        "test_failure": float(sum(tests)) if tests else None,
        "forecast": tuple(line for line in forecast if _EXPECTED.fullmatch(line) is None),
        "expected": tuple(
            Expected(found["rows"], found["off"], found["noise"])
            for found in map(_EXPECTED.fullmatch, forecast)
            if found
        ),
    }


def _alone(cost: Cost | None, delta: float) -> float | None:
    return None if cost is None or delta < cost.delta else cost.epsilon_at(delta)


def _read(text: str, cost: Cost) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Steps and forecast of a plan that was printed, as in a model file."""
    lines = text.splitlines()
    found = [match for match in map(_STEP.match, lines) if match is not None]
    perturbed = [match["name"] for match in found if "perturbed objective" in match["cost"]]
    steps = tuple(
        _Told(match["name"], match["noise"], _parsed(match["cost"], cost, alone=len(perturbed) == 1)) for match in found
    )
    return steps, tuple(line.removeprefix("  expect   ") for line in lines if line.startswith("  expect   "))


@dataclass(frozen=True)
class _Told:
    name: str
    noise: str
    cost: Cost | None


def _parsed(text: str, cost: Cost, *, alone: bool) -> Cost | None:
    """The cost of a step as it was printed. Objectives are those of the whole if they are all of one step."""
    amounts: dict[str, str] = {}
    atoms = cost.atoms if "perturbed objective" in text else ()
    if atoms and not alone:
        return None
    for part in text.split(", "):
        name, _, value = part.partition(" ")
        if name in ("mu", "epsilon", "delta"):
            amounts[name] = value
    try:
        return Cost(**{name: float(value) for name, value in amounts.items()}, atoms=atoms, neighbours=cost.neighbours)
    except ValueError:
        return None


def _outlook(model: Any, rows: int | None) -> Outlook | None:
    """What another epsilon would have brought, where somebody said how many rows there are about."""
    if rows is None or not hasattr(model, "_make"):
        return None
    from snugdp.estimators.forecast import forecast

    return forecast(model, rows, n_features=model.n_features_in_, more=(1,))


def _usual_error(forecast: tuple[str, ...]) -> float | None:
    found = next((match for match in map(_USUAL_ERROR.match, forecast) if match is not None), None)
    return None if found is None else float(found[1].replace(",", ""))


def _columns(schema: Any) -> tuple[tuple[str, str], ...]:
    if schema is None:
        return ()
    return tuple((str(name), _bounds(column)) for name, column in schema.columns.items())


def _bounds(column: Any) -> str:
    if hasattr(column, "lower"):
        return f"{number(float(column.lower), 6)} to {number(float(column.upper), 6)}"
    if hasattr(column, "values"):
        return f"one of {facts(list(column.values))[0][1]}"
    return "yes or no"


def _software() -> str:
    from snugdp import __version__

    return f"snugdp {__version__}"


__all__ = ["Expected", "Share", "Story", "of_estimator", "of_outcome", "promised", "story_of"]
