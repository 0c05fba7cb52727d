"""Fitted models as files: open, versioned JSON with the guarantee, the receipt, the schema and the coefficients.

``docs/cli.md`` lists the fields. A file is data: reading it runs nothing, and what it does not say exactly is refused.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import NotPrivate, Receipt, Refused, Released, Unit
from snugdp.estimators.base import LATER, Promise, told
from snugdp.estimators.files.former import upgraded
from snugdp.estimators.files.steps import agrees, steps_from, steps_to
from snugdp.estimators.registry import BY_ID, BY_NAME, LEFT_OUT, EstimatorEntry, entry_of
from snugdp.numerics import balls
from snugdp.numerics.printed import printed_up
from snugdp.propose.forecast import Forecast
from snugdp.propose.plan import Plan
from snugdp.propose.theorem import theorem
from snugdp.serial.codec import decode, encode, record
from snugdp.serial.costs import budget_to_json, cost_parts
from snugdp.serial.files import write_text
from snugdp.tables.schema.schema import Schema

FORMAT, VERSION = "snugdp model", 2  # version 1 had class names for ids
_FIELDS = (
    "format", "version", "kind", "software", "time", "outcome", "parameters", "schema", "features", "guarantee",
    "unit", "cost", "title", "theorem", "proposal", "steps", "forecast", "receipt", "plan", "released",
)  # fmt: skip
_LATER = ("unit",)  # files that were written before it was added have none: it is then "row"
_MAX_FEATURES = 10**7  # features
_RECEIPT = ("ledger", "sequence", "what", "key", "hash")
_FINITE = ("coef_", "intercept_", "components_", "mean_")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, released or refused, to a JSON file; an existing file is replaced in one step.

    A new file is readable by its owner only, unless ``SNUGDP_FILE_MODE`` says otherwise, such as 644. The ledger, the
    noise and ``validation`` are not written, nor anything about the rows except what was released.

    Guarantee: what is written is a function of what was released and of what is public.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library.
    path : str or path
        The file.

    Examples
    --------
    >>> import os, tempfile
    >>> import snugdp
    >>> model = snugdp.LinearRegression(epsilon=1, x_norm=1, y_bound=1, method="adassp")
    >>> model = model.fit([[0.5]] * 1000, [0.5] * 1000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.json"))
    ...     loaded = load(os.path.join(folder, "model.json"))
    >>> bool((loaded.coef_ == model.coef_).all())
    True
    """
    write_text(path, _text(as_dict(model)))


def load(path: str | os.PathLike[str]) -> Any:
    """Read the estimator from a file that ``save`` wrote; it predicts the same. To fit again, give it a ledger.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted estimator; see ``save`` for an example.

    Raises
    ------
    ValueError
        If anything is wrong with the file.
    """
    where = os.fspath(path)
    try:
        text, wrong = Path(where).read_text(encoding="utf-8"), ""
    except UnicodeDecodeError:  # it carries the bytes of what may be a private table
        wrong = f"{where} is no text in UTF-8, so it is not a snugdp model"
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
        raise ValueError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise ValueError("not a snugdp model: it is nested too deeply") from None


def as_dict(model: Any) -> dict[str, Any]:
    """What ``save`` writes."""
    from snugdp import __version__

    entry = entry_of(model)
    if entry is None:
        raise TypeError(f"{type(model).__name__} cannot be saved; these can: {', '.join(BY_NAME)}")
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    schema = getattr(model, "schema", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": entry.id,
        "software": f"snugdp {__version__}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "outcome": _in_words(model.receipt_ is not None, model.released_),
        "parameters": {key: _encoded(value, key) for key, value in _parameters_of(model).items()},
        "schema": None if schema is None else schema.to_json(),
        "features": {"count": int(model.n_features_in_), "names": None if names is None else [str(n) for n in names]},
        "guarantee": None if model.guarantee_ is None else _told(model.guarantee_),
        "unit": model.plan_.unit.value,
        "cost": {**cost_parts(model.cost_), "exact": _encoded(model.cost_, "the cost")},
        "title": model.plan_.title,
        "theorem": model.plan_.theorem.id,
        "proposal": _encoded(dict(model.plan_.proposal), "the proposal"),
        "steps": steps_to(model.plan_.steps, model.cost_),
        "forecast": _encoded(model.plan_.forecast, "the forecast"),
        "receipt": None if model.receipt_ is None else {key: getattr(model.receipt_, key) for key in _RECEIPT},
        "plan": str(model.plan_),
        "released": _released(model, entry) if model.released_ else None,
    }


def from_dict(given: Any) -> Any:
    """The estimator that ``as_dict`` described. Whatever is wrong is a ``ValueError``."""
    try:
        return _made(given)
    except ValueError:
        raise
    except Exception as error:  # damaged in a way that nobody thought of
        raise ValueError(f"not a model that this version of snugdp can read ({type(error).__name__})") from None


def _made(file: Any) -> Any:
    _check_version(file)
    entry, given = _entry(file), upgraded(file) if file["version"] == 1 else file
    _check_fields(given)
    cls = entry.load()
    expected = {key for key in cls().get_params(deep=False) if key not in LEFT_OUT}
    named = given["parameters"].keys() if isinstance(given["parameters"], dict) else set()
    if not expected - LATER.keys() <= named <= expected:
        raise ValueError(f"parameters must be {', '.join(sorted(expected))}")
    parameters = {key: decode(tree) for key, tree in given["parameters"].items()}
    if given["schema"] is not None:
        parameters["schema"] = Schema.from_json(given["schema"])
    model = cls(**parameters)
    plan = _plan(given, _cost(given["cost"]), model._promised())
    outcome = decode(_outcome(given))
    model._restore(outcome, plan, _name(model, given["features"]))
    _check_promise(given["guarantee"], model)
    if model.released_:
        _take_released(model, given["released"], entry)
    return model


def _check_version(given: Any) -> None:
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(f'not a snugdp model: "format" must be "{FORMAT}"')
    version = given.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f'"version" is {version!r}, and this snugdp reads 1 to {VERSION}: get a newer snugdp')


def _check_fields(given: dict[str, Any]) -> None:
    missing, more = set(_FIELDS) - given.keys() - set(_LATER), given.keys() - set(_FIELDS)
    for what, names in (("is missing", missing), ("is not known", more)):
        if names:
            raise ValueError(f'the field "{min(names)}" {what}; a model has {", ".join(_FIELDS)}')
    for name in ("software", "time", "title", "theorem", "plan"):
        if not isinstance(given[name], str):
            raise ValueError(f'"{name}" must be text')  # noqa: TRY004  every fault of a file is a ValueError


def _entry(given: dict[str, Any]) -> EstimatorEntry:
    """By its id; in version 1 by the name of the class."""
    known = BY_NAME if given["version"] == 1 else BY_ID
    if not isinstance(given.get("kind"), str) or given["kind"] not in known:
        raise ValueError(f'"kind" must be one of {", ".join(known)}')
    return known[given["kind"]]


def _in_words(paid: bool, released: bool) -> str:
    if paid:
        return "released" if released else "refused"
    return "rehearsal, NOT PRIVATE" if released else "refused rehearsal, NOT PRIVATE"


def _told(promise: Promise) -> dict[str, Any]:
    unit = "the rows of one person" if promise.unit is Unit.PERSON else "one row"
    other = "those of another" if promise.unit is Unit.PERSON else "another"
    one = f"{unit} more or less" if promise.neighbours == "add_remove" else f"{unit} replaced by {other}"
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
    released, receipt = given["released"], given["receipt"]
    common = {"cost": given["cost"]["exact"], "unit": encode(_unit(given))}
    exact = {"value": None, "certificate": None} if released is None else released["exact"]
    if not isinstance(exact, dict) or exact.keys() != {"value", "certificate"}:
        raise ValueError('"exact" must hold a value and a certificate')
    words = _in_words(receipt is not None, released is not None)
    if given["outcome"] != words:
        raise ValueError(f'"outcome" must be "{words}", as the receipt and the release say')
    if receipt is None:
        return record(NotPrivate, **exact, refused=released is None, **common)
    if not isinstance(receipt, dict) or tuple(receipt) != _RECEIPT:
        raise ValueError(f'"receipt" must have {", ".join(_RECEIPT)}')
    paid = record(Receipt, **receipt, cost=common["cost"])
    if released is None:
        return record(Refused, receipt=paid, **common)
    return record(Released, **exact, receipt=paid, **common)


def _name(model: Any, given: Any) -> tuple[str, ...]:
    """Set the features of the fit; returned are the names that its rows have inside."""
    count, names = 0, None
    if isinstance(given, dict) and given.keys() == {"count", "names"}:
        count, names = given["count"], given["names"]
    whole = isinstance(count, int) and not isinstance(count, bool) and 0 < count <= _MAX_FEATURES
    if not whole or not isinstance(names, list | None):
        raise ValueError('"features" must have a count and names, or null for the names')
    if names is not None and (len(names) != count or not all(isinstance(name, str) for name in names)):
        raise ValueError('"features" must have as many names as it counts')
    model.n_features_in_ = count
    if names is None:
        if getattr(model, "schema", None) is not None:
            raise ValueError('"features" must have the names of the columns of the schema, in their order')
        return tuple(f"x{place}" for place in range(count))
    model.feature_names_in_ = np.array(names, dtype=object)
    return tuple(names)


def _released(model: Any, entry: EstimatorEntry) -> dict[str, Any]:
    if model.receipt_ is not None and model.receipt_.cost != model.cost_:
        raise TypeError("the receipt is not for the cost of this fit")
    shown = {name.rstrip("_"): _encoded(value, name) for name, value in entry.attributes(model).items()}
    extras = {name: _encoded(value, f"the {name}") for name, value in model._extras().items()}
    value, certificate = model.outcome_.value, model.outcome_.certificate
    exact = {"value": _encoded(value, "the release"), "certificate": _encoded(certificate, "the test")}
    return {**shown, **extras, "exact": exact}


def _take_released(model: Any, given: dict[str, Any], entry: EstimatorEntry) -> None:
    """Take the numbers of a file for those made again from its exact outcome, which they must be but for rounding."""
    found = entry.attributes(model)
    shown = {name: decode(given[name.rstrip("_")]) for name in found if name.rstrip("_") in given}
    extras = given.keys() - {name.rstrip("_") for name in found} - {"exact"}
    if found.keys() != shown.keys():
        raise ValueError("what is shown of the release is not what its exact outcome has")
    former = _every_level(model, shown.get("coef_names_"))
    for name, value in shown.items():
        if not _alike(value, former.get(name, found[name])):
            raise ValueError(f'"{name.rstrip("_")}" is not what the exact outcome gives: the file was changed')
        if name in _FINITE and not np.isfinite(value).all():
            raise ValueError(f'"{name.rstrip("_")}" holds what is not a finite number')
        setattr(model, name, found[name] if name in former else value)
    model._take_extras({name: decode(given[name]) for name in extras})


def _every_level(model: Any, names: Any) -> dict[str, Any]:
    """What a file shows that was written before levels were compared with a reference; nothing of others."""
    if names == getattr(model, "coef_names_", None) or not hasattr(model, "_every_level"):
        return {}
    former: dict[str, Any] = model._every_level()
    return former if former["coef_names_"] == names else {}


def _parameters_of(model: Any) -> dict[str, Any]:
    """The public arguments of the constructor that a file keeps."""
    given = model.get_params(deep=False).items()
    found = {name: _plain(value) for name, value in given if name not in LEFT_OUT and told(name, value)}
    if not isinstance(found.get("classes"), list | tuple | np.ndarray | None):  # such as a column of a table
        found["classes"] = model.classes_.tolist()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.floating | np.integer | np.bool_):
        return value.item()
    if isinstance(value, range):
        return list(value)
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    return value


def _encoded(value: Any, what: str) -> Any:
    try:
        return encode(value)
    except TypeError as error:
        raise TypeError(f"{what} cannot be written to a model file: {error}") from None


def _alike(given: Any, found: Any) -> bool:
    if type(given) is not type(found):
        return False
    if isinstance(found, dict):
        return given.keys() == found.keys() and all(_alike(given[key], found[key]) for key in found)
    if isinstance(found, np.ndarray):
        if given.shape != found.shape or given.dtype != found.dtype:
            return False
        return _near(given, found) if found.dtype.kind == "f" else bool(np.array_equal(given, found))
    if isinstance(found, float | np.floating):
        return _near(np.asarray(given), np.asarray(found))
    return bool(given == found)


def _near(given: Any, found: Any) -> bool:
    """But for the last bits, which may hang on the machine that added them up."""
    largest = float(np.max(np.abs(found), initial=0.0))
    near = np.isclose(given, found, rtol=1e-9, atol=1e-9 * largest if np.isfinite(largest) else 0.0, equal_nan=True)
    return bool(near.all())


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
    raise ValueError(f"{text} is not a valid JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


__all__ = ["FORMAT", "VERSION", "as_dict", "from_dict", "load", "parsed", "save"]
