"""Fitted models as files: open, versioned JSON with the guarantee, the receipt, the schema and the coefficients.

``docs/cli.md`` lists the fields. A file is data: reading it runs nothing, and what it does not say exactly is refused.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.unit import Unit
from snugdp.estimators.base import Promise
from snugdp.estimators.files import kinds
from snugdp.estimators.files.schema import schema_from, schema_to
from snugdp.estimators.files.steps import agrees, cost_parts, steps_from, steps_to
from snugdp.estimators.files.values import decode, encode, record
from snugdp.numerics import balls
from snugdp.numerics.printed import printed_up
from snugdp.propose.forecast import Forecast
from snugdp.propose.plan import Plan
from snugdp.propose.theorem import theorem
from snugdp.serial.costs import budget_to_json

FORMAT, VERSION = "snugdp model", 1
_FIELDS = (
    "format", "version", "kind", "software", "time", "outcome", "parameters", "schema", "features", "guarantee",
    "unit", "cost", "title", "theorem", "proposal", "steps", "forecast", "receipt", "plan", "released",
)  # fmt: skip
_LATER = ("unit",)  # files that were written before it was added have none: it is then "row"
_MOST = 10**7  # features
_RECEIPT = ("ledger", "sequence", "what", "key", "hash")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator of ours to a JSON file, released or refused; an older file is replaced in one step.

    The ledger, the noise and ``validation`` stay behind, and so does everything about the rows but what was released.

    Guarantee: what is written is a function of what was released and of what is public.
    """
    text = _text(as_dict(model))
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator of a file that ``save`` wrote; it predicts the same. To fit again, give it a ledger.

    Whatever is wrong with the file is a ``ValueError``.
    """
    where = os.fspath(path)
    try:
        text, wrong = Path(where).read_text(encoding="utf-8"), ""
    except UnicodeDecodeError:  # it carries the bytes of what may be a private table
        wrong = f"{where} is no text in UTF-8, so it is no model of snugdp"
    except (OSError, ValueError) as error:
        wrong = f"cannot read the model {where}: {getattr(error, 'strerror', None) or error}"
    if wrong:
        raise ValueError(wrong)
    try:
        return from_dict(parsed(text))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def parsed(text: str) -> Any:
    """JSON as it is written: every key once, and no number that is not finite."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    except RecursionError:
        raise ValueError("no model of snugdp: it is nested too deeply") from None


def as_dict(model: Any) -> dict[str, Any]:
    """What ``save`` writes."""
    from snugdp import __version__

    name, kind = kinds.kind_of(model)
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    parameters = {key: encode(value, key) for key, value in kinds.parameters_of(model).items()}
    cost = encode(model.cost_, "the cost")
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": name,
        "software": f"snugdp {__version__}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "outcome": _outcome_of(model),
        "parameters": parameters,
        "schema": None if getattr(model, "schema", None) is None else schema_to(model.schema),
        "features": {"count": int(model.n_features_in_), "names": None if names is None else [str(n) for n in names]},
        "guarantee": None if model.guarantee_ is None else _told(model.guarantee_),
        "unit": model.plan_.unit.value,
        "cost": {**cost_parts(model.cost_), "exact": cost},
        "title": model.plan_.title,
        "theorem": model.plan_.theorem.id,
        "proposal": encode(dict(model.plan_.proposal), "the proposal"),
        "steps": steps_to(model.plan_.steps, model.cost_),
        "forecast": encode(model.plan_.forecast, "the forecast"),
        "receipt": None if model.receipt_ is None else {key: getattr(model.receipt_, key) for key in _RECEIPT},
        "plan": str(model.plan_),
        "released": _released(model, kind) if model.released_ else None,
    }


def from_dict(given: Any) -> Any:
    """The estimator that ``as_dict`` described. Whatever is wrong is a ``ValueError``."""
    try:
        return _made(given)
    except ValueError:
        raise
    except Exception as error:  # damaged in a way that nobody thought of
        raise ValueError(f"no model that this version of snugdp can read ({type(error).__name__})") from None


def _made(given: Any) -> Any:
    _check_fields(given)
    name = given["kind"]
    kind = kinds.KINDS[name]
    cls = kind.load(name)
    expected = {key for key in cls().get_params(deep=False) if key not in kinds.LEFT_OUT}
    if not isinstance(given["parameters"], dict) or given["parameters"].keys() != expected:
        raise ValueError(f"parameters must be {', '.join(sorted(expected))}")
    parameters = {key: decode(tree) for key, tree in given["parameters"].items()}
    if given["schema"] is not None:
        parameters["schema"] = schema_from(given["schema"])
    model = cls(**parameters)
    cost = _cost(given["cost"])
    plan = _plan(given, cost, model._budget())
    outcome = decode(_outcome(given))
    names = _name(model, given["features"])
    kind.keep(model, outcome, plan, names)
    _check_promise(given["guarantee"], model)
    if model.released_:
        _settle(model, given["released"], kind)
    return model


def _check_fields(given: Any) -> None:
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(f'no model of snugdp: "format" must be "{FORMAT}"')
    if given.get("version") != VERSION or isinstance(given.get("version"), bool):
        raise ValueError(f'"version" is {given.get("version")!r}, and this snugdp reads {VERSION}: get a newer snugdp')
    if given.get("kind") not in kinds.KINDS:
        raise ValueError(f'"kind" must be one of {", ".join(kinds.KINDS)}')
    if "theorem" not in given and "plan" in given:
        raise ValueError("an older snugdp wrote this file, with its plan as text: fit or save the model again")
    missing, more = set(_FIELDS) - given.keys() - set(_LATER), given.keys() - set(_FIELDS)
    for what, names in (("is missing", missing), ("is not known", more)):
        if names:
            raise ValueError(f'the field "{min(names)}" {what}; a model has {", ".join(_FIELDS)}')
    for name in ("software", "time", "title", "theorem", "plan"):
        if not isinstance(given[name], str):
            raise ValueError(f'"{name}" must be text')  # noqa: TRY004  every fault of a file is a ValueError


def _outcome_of(model: Any) -> str:
    if model.receipt_ is None:
        return "rehearsal, NOT PRIVATE" if model.released_ else "refused rehearsal, NOT PRIVATE"
    return "released" if model.released_ else "refused"


def _told(promise: Promise) -> dict[str, Any]:
    one = "one row more or less" if promise.neighbours == "add_remove" else "one row replaced by another"
    factor = balls.above(lambda: balls.exp(balls.ball(promise.budget.epsilon)))
    larger = printed_up(Fraction(factor), 3) if factor < math.inf else f"e^{printed_up(promise.budget.epsilon)}"
    words = (
        f"{promise}: with {one} in the table, nothing that could be released becomes more than {larger} times as "
        f"likely, but for a probability of {printed_up(promise.budget.delta)}"
    )
    parts = {"epsilon": promise.epsilon, "delta": promise.delta, "neighbours": promise.neighbours}
    return {**parts, "theorem": promise.theorem.id, "words": words, "exact": budget_to_json(promise.budget)}


def _check_promise(given: Any, model: Any) -> None:
    promise = model.guarantee_
    if not (given is None if promise is None else agrees(given, _told(promise))):
        raise ValueError('"guarantee" is not that of the parameters and the plan')


def _cost(given: Any) -> Cost:
    cost = decode(given["exact"]) if isinstance(given, dict) and "exact" in given else None
    if not isinstance(cost, Cost) or not agrees(given, {**cost_parts(cost), "exact": given["exact"]}):
        raise ValueError('"cost" must hold the parts of one exact cost')
    return cost


def _plan(given: dict[str, Any], cost: Cost, budget: Budget) -> Plan:
    """From its data; its text, ``plan``, is for people."""
    proposal, forecast = decode(given["proposal"]), decode(given["forecast"])
    if not isinstance(proposal, dict) or not isinstance(forecast, Forecast):
        raise ValueError('"proposal" must map names to numbers, and "forecast" must be that of a plan')  # noqa: TRY004
    steps, proved = steps_from(given["steps"], cost), theorem(given["theorem"])
    return Plan(given["title"], proved, steps, proposal, forecast, budget, _unit(given))


def _unit(given: dict[str, Any]) -> Unit:
    try:
        return Unit(given.get("unit", Unit.ROW.value))
    except ValueError:
        pass
    raise ValueError(f'"unit" must be one of {", ".join(unit.value for unit in Unit)}')


def _outcome(given: dict[str, Any]) -> dict[str, Any]:
    """The tree of the outcome, whose parts are all in the file."""
    cost, released, receipt = given["cost"]["exact"], given["released"], given["receipt"]
    unit = encode(_unit(given), "the unit")
    exact = {"value": None, "certificate": None} if released is None else released["exact"]
    if not isinstance(exact, dict) or exact.keys() != {"value", "certificate"}:
        raise ValueError('"exact" must hold a value and a certificate')
    if receipt is None:
        refused = {"value": exact["value"], "refused": released is None, "cost": cost}
        made = record("snugdp.core.outcome:NotPrivate", {**refused, "certificate": exact["certificate"], "unit": unit})
        words = "rehearsal, NOT PRIVATE" if released is not None else "refused rehearsal, NOT PRIVATE"
    else:
        if not isinstance(receipt, dict) or tuple(receipt) != _RECEIPT:
            raise ValueError(f'"receipt" must have {", ".join(_RECEIPT)}')
        parts = {**{key: receipt[key] for key in _RECEIPT[:3]}, "cost": cost}
        paid = record("snugdp.core.outcome:Receipt", {**parts, "key": receipt["key"], "hash": receipt["hash"]})
        if released is None:
            made = record("snugdp.core.outcome:Refused", {"cost": cost, "receipt": paid, "unit": unit})
            words = "refused"
        else:
            parts = {"value": exact["value"], "cost": cost, "receipt": paid, "certificate": exact["certificate"]}
            made, words = record("snugdp.core.outcome:Released", {**parts, "unit": unit}), "released"
    if given["outcome"] != words:
        raise ValueError(f'"outcome" must be "{words}", as the receipt and the release say')
    return made


def _name(model: Any, given: Any) -> tuple[str, ...]:
    """Set the features of the fit; returned are the names that its rows have inside."""
    count, names = 0, None
    if isinstance(given, dict) and given.keys() == {"count", "names"}:
        count, names = given["count"], given["names"]
    whole = isinstance(count, int) and not isinstance(count, bool) and 0 < count <= _MOST
    if not whole or not isinstance(names, list | None):
        raise ValueError('"features" must have a count and names, or null for the names')
    if names is not None and (len(names) != count or not all(isinstance(name, str) for name in names)):
        raise ValueError('"features" must have as many names as it counts')
    model.n_features_in_ = count
    if names is None:
        if getattr(model, "schema", None) is not None:
            raise ValueError('"features" must have the names of the columns of the schema')
        return tuple(f"x{place}" for place in range(count))
    model.feature_names_in_ = np.array(names, dtype=object)
    return tuple(names)


def _released(model: Any, kind: kinds.Kind) -> dict[str, Any]:
    outcome = model.outcome_
    seen = {name.rstrip("_"): encode(value, name) for name, value in kind.attributes(model).items()}
    if model.receipt_ is not None and model.receipt_.cost != model.cost_:
        raise TypeError("the receipt is not for the cost of this fit")
    student = {}
    if kind.module == "pate":
        student = {"student": encode(kinds.student_of(model), "the student")}
    exact = {"value": encode(outcome.value, "the release"), "certificate": encode(outcome.certificate, "the test")}
    return {**seen, **student, "exact": exact}


def _settle(model: Any, given: dict[str, Any], kind: kinds.Kind) -> None:
    seen = {f"{name}_": decode(tree) for name, tree in given.items() if name not in ("exact", "student")}
    if ("student" in given) != (kind.module == "pate"):
        raise ValueError("a PATEClassifier, and nothing else, has a student")
    kinds.settle(model, seen, kind)
    if "student" in given:
        kinds.with_student(model, decode(given["student"]))


def _text(whole: dict[str, Any]) -> str:
    """JSON with a line for every field and every part of one: an exact cost has thousands of numbers."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    lines = []
    for name, value in whole.items():
        parts = value if isinstance(value, dict) and value else None
        inner = (
            None if parts is None else ",\n".join(f"  {compact(key)}: {compact(part)}" for key, part in parts.items())
        )
        lines.append(f" {compact(name)}: " + (compact(value) if inner is None else f"{{\n{inner}\n }}"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is written twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number that JSON has")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


__all__ = ["FORMAT", "VERSION", "as_dict", "cost_parts", "from_dict", "load", "parsed", "save"]
