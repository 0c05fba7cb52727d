"""The names on disk: a stable, versioned id for every type that a ledger, a model file or a key may hold.

The compatibility promise:

* An id means one class with one set of fields for ever. A class may move and be renamed; its id stays. A change of its
  fields, or of what they mean, is a new id (``fit/2``), and the old id stays readable beside it. Only a field
  whose default means what was done before may come later (``LATER``): while it has it, nothing is written of it, in
  files and keys alike.
* Whatever a version has written is read by every later one with the same major number: outcomes in a ledger bit by
  bit, and models so that they predict the same. A version that drops a form refuses it in one sentence that says which
  version to use. Nothing is ever guessed, charged twice under one key, or drawn again.
* A key names the same release after an upgrade as before it, unless the class that was asked has got other parameters:
  then it is refused, and not charged.
* Files from before there were ids hold Python paths (``snugdp.mechanisms.regression:Fit``). They are read through
  the last column of the table, and never rewritten: the hashes of a ledger cover them.
* Nothing is promised to older versions: they refuse what a newer one has written.

What is not in the table is not stored: a ledger marks such an outcome as consumed, and a model file is not written.
"""

from __future__ import annotations

import importlib
import numbers
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from snugdp.core.outcome import Unit

TYPES: Mapping[str, tuple[str, str]] = {  # id: where its class is, and where it was before there were ids
    "neighbours/1": ("core.guarantee:Neighbours", "guarantee:Neighbours"),
    "unit/1": ("core.outcome:Unit", "guarantee:Unit"),
    "budget/1": ("core.guarantee:Budget", "guarantee:Budget"),
    "cost/1": ("core.guarantee:Cost", "guarantee:Cost"),
    "atom/1": ("accounting.composition:Atom", "accounting.triple:Atom"),
    "branch/1": ("accounting.composition:Branch", "accounting.triple:Branch"),
    # outcomes
    "receipt/1": ("core.outcome:Receipt", "outcome:Receipt"),
    "released/1": ("core.outcome:Released", "outcome:Released"),
    "refused/1": ("core.outcome:Refused", "outcome:Refused"),
    "not-private/1": ("core.outcome:NotPrivate", "outcome:NotPrivate"),
    "selected/1": ("mechanisms.selection.select:Selected", "ptr.select:Selected"),
    # what is released, and what tests release
    "fit/1": ("mechanisms.linear.base:Fit", "mechanisms.regression:Fit"),
    "whitened-fit/1": ("mechanisms.inference.whitening:WhitenedFit", ""),
    "noisy-equation/1": ("inference.equation:NoisyEquation", ""),
    "components/1": ("mechanisms.components.base:Components", "mechanisms.components:Components"),
    "components-start/1": ("mechanisms.components.base:Start", "mechanisms.components:Start"),
    "support/1": ("mechanisms.support.peeling:Support", "mechanisms.support:Support"),
    "labels/1": ("pate.labelling:Labels", "pate.face:Labels"),
    "estimated-bounds/1": ("queries.bounds.private:EstimatedBounds", "queries.bounds:EstimatedBounds"),
    "description/1": ("queries.description.result:Description", ""),
    "statistics-table/1": ("queries.table:StatisticsTable", ""),
    "ridge-certificate/1": ("mechanisms.linear.ridge_test:RidgeCertificate", "mechanisms.ridge_test:RidgeCertificate"),
    "curvature-certificate/1": (
        "mechanisms.output.glm:CurvatureCertificate", "mechanisms.glm_output:CurvatureCertificate",
    ),
    "gap-certificate/1": ("mechanisms.components.projector:GapCertificate", "mechanisms.gap_test:GapCertificate"),
    "scale/1": ("mechanisms.objective.robust:Scale", "mechanisms.objective:Scale"),
    "sizes/1": ("mechanisms.objective.adaptive:Sizes", "mechanisms.adaptive:Sizes"),
    "spread/1": ("mechanisms.objective.scale:Spread", "mechanisms.spread:Spread"),
    "found-cap/1": ("tables.found:FoundCap", ""),
    "person-weight/1": ("mechanisms.persons.weight_choice:PersonWeight", ""),
    "found-bounds/1": ("tables.found:FoundBounds", ""),
    "found-number/1": ("tables.found:FoundNumber", ""),
    "found-levels/1": ("tables.found:FoundLevels", ""),
    "found-flag/1": ("tables.found:Flag", ""),
    # what is asked for
    "schema/1": ("tables.schema.schema:Schema", "data.schema:Schema"),
    "number/1": ("tables.schema.kinds:Number", "data.kinds:Number"),
    "spline/2": ("tables.schema.kinds:Spline", ""),
    "category/1": ("tables.schema.kinds:Category", "data.kinds:Category"),
    "boolean/1": ("tables.schema.kinds:Boolean", "data.kinds:Boolean"),
    "date/1": ("tables.schema.kinds:Date", ""),
    "undeclared/1": ("tables.schema.kinds:Undeclared", ""),
    "logistic-loss/1": ("tables.losses.losses:Logistic", "data.losses:Logistic"),
    "huber-loss/1": ("tables.losses.losses:Huber", "data.losses:Huber"),
    "pseudo-huber-loss/1": ("tables.losses.losses:PseudoHuber", "data.losses:PseudoHuber"),
    "log-cosh-loss/1": ("tables.losses.losses:LogCosh", "data.losses:LogCosh"),
    "soft-hinge-loss/1": ("tables.losses.losses:SoftHinge", "data.losses:SoftHinge"),
    "tamed-poisson-loss/1": ("tables.losses.losses:TamedPoisson", "data.losses:TamedPoisson"),
    "median/1": ("queries.order_statistics.robust:TestedMedian", "queries.robust:Median"),
    "median/2": ("queries.order_statistics.quantiles:Median", ""),
    "quantile/1": ("queries.order_statistics.robust:TestedQuantile", "queries.robust:Quantile"),
    "quantile/2": ("queries.order_statistics.quantiles:Quantile", ""),
    "quantiles/1": ("queries.order_statistics.quantiles:Quantiles", ""),
    "quantile-table/1": ("queries.order_statistics.quantile_table:QuantileTable", ""),
    "quantile-interval/1": ("queries.order_statistics.interval:QuantileInterval", ""),
    "interquartile-range/1": ("queries.order_statistics.quantiles:InterquartileRange", ""),
    "minimum/1": ("queries.order_statistics.extremes:Minimum", ""),
    "maximum/1": ("queries.order_statistics.extremes:Maximum", ""),
    "trimmed-mean/1": ("queries.order_statistics.robust:TrimmedMean", "queries.robust:TrimmedMean"),
    "mode/1": ("queries.labels:Mode", "queries.labels:Mode"),
    "vote/1": ("queries.labels:Vote", "queries.labels:Vote"),
    "bounds/1": ("queries.bounds.private:Bounds", "queries.bounds:Bounds"),
    "describe/1": ("queries.description.describe:Describe", ""),
    "group-by/1": ("queries.groups:GroupBy", ""),
    "estimate/1": ("queries.estimate:Estimate", ""),
    "histogram-counts/1": ("queries.statistics.histogram:HistogramCounts", ""),
    "count/1": ("queries.statistics.counts:Count", ""),
    "sum/1": ("queries.statistics.counts:Sum", ""),
    "mean/1": ("queries.statistics.moments:Mean", ""),
    "variance/1": ("queries.statistics.moments:Variance", ""),
    "standard-deviation/1": ("queries.statistics.moments:StandardDeviation", ""),
    "proportion/1": ("queries.statistics.moments:Proportion", ""),
    "covariance/1": ("queries.statistics.pairs:Covariance", ""),
    "correlation/1": ("queries.statistics.pairs:Correlation", ""),
    "histogram/1": ("queries.statistics.histogram:Histogram", ""),
    "score/1": ("scores.score:Score", ""),
    "model-scores/1": ("mechanisms.scores.result:ModelScores", ""),
    "pate-numbers/1": ("pate.labelling:Numbers", "pate.face:Numbers"),
    "statistic/1": ("certify.statistics:Statistic", "ptr.certify.statistics:Statistic"),
    "smooth-bound/1": ("certify.smooth:SmoothBound", "ptr.certify.smooth:SmoothBound"),
    # plans
    "step-kind/1": ("propose.plan:StepKind", ""),
    "step-noise/1": ("propose.plan:StepNoise", ""),
    "forecast/1": ("propose.forecast:Forecast", ""),
    "fit-forecast/1": ("propose.forecast:FitForecast", ""),
    "error-of/1": ("propose.forecast:ErrorOf", ""),
    "chance/1": ("propose.forecast:PassChance", ""),
    "note/1": ("propose.forecast:Note", ""),
}  # fmt: skip
_ANSWERS = ("estimated-bounds/1", "description/1", "statistics-table/1", "estimate/1", "histogram-counts/1")
_PERSONS = {"person": None, "max_rows": 1}
_POPULATION = dict.fromkeys(("standard_error", "population_lower", "population_upper"))
_QUERIES = tuple(own for own, (home, _) in TYPES.items() if home.startswith("queries.") and own not in _ANSWERS)
LATER: Mapping[str, Mapping[str, Any]] = {  # with the defaults
    **dict.fromkeys(_QUERIES, _PERSONS),
    **{query: {"column": None, **_PERSONS} for query in ("median/1", "quantile/1", "trimmed-mean/1", "mode/1")},
    "category/1": {"reference": None},
    "receipt/1": {"unit": Unit.ROW},
    "schema/1": {"missing": "centre", "person": None},
    "spread/1": {"square": 1.0},
    "fit-forecast/1": {"typical": None},
    "found-cap/1": {"lost": Fraction(0)},
    "count/1": {"missing": False, **_PERSONS},
    "describe/1": {"bounds": None, **_PERSONS},
    "description/1": {"left_out": {}},
    "estimate/1": {"below": 0.0, "above": 0.0, **_POPULATION},
    **{query: {"inference": False, **_PERSONS} for query in ("mean/1", "proportion/1", "group-by/1")},
}
FORMER = {f"snugdp.{former}": own for own, (_, former) in TYPES.items() if former}
_IDS = {f"snugdp.{home}": own for own, (home, _) in TYPES.items()}
_LOOSE: dict[Any, type] = {float: numbers.Real, int: numbers.Integral, NoneType: NoneType}


def identity(kind: type) -> str | None:
    """The id of a class of ours; None for all others.

    >>> from fractions import Fraction
    >>> from snugdp import LinearRegression, Number
    >>> identity(Number), identity(LinearRegression), identity(Fraction)
    ('number/1', 'linear-regression/1', None)
    """
    name = f"{kind.__module__}:{kind.__qualname__}"
    if name in _IDS and resolve(_IDS[name]) is kind:
        return _IDS[name]
    if name.startswith("snugdp.estimators."):
        entry = importlib.import_module("snugdp.estimators.registry").entry_of_class(kind)
        return None if entry is None else str(entry.id)
    return None


@cache
def resolve(name: str) -> Any:
    """The type that an id, or a name from before there were ids, stands for."""
    module, _, own = TYPES[FORMER.get(name, name)][0].partition(":")
    kind: Any = getattr(importlib.import_module(f"snugdp.{module}"), own)
    return kind


def entries_of(record: Any) -> dict[str, Any]:
    """What a record holds, by the names of its fields; a field that came later only if it has not its default.

    >>> from snugdp import Number, Schema
    >>> "missing" in entries_of(Schema({"age": Number(0, 120)}))
    False
    """
    later = LATER.get(identity(type(record)) or "", {})
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value for name, value in found.items() if not (name in later and value == later[name])}


def suits(record: Any) -> bool:
    """Whether every field is roughly what its type says. Loosely: a whole number may stand for a real one."""
    kind: Any = type(record)
    hints = _hints(kind)
    return all(_fits(getattr(record, field.name), hints.get(field.name, Any)) for field in fields(record))


@lru_cache(maxsize=1024)
def _hints(kind: type) -> Mapping[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # a type that is only there for type checkers
        return {}


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is Callable or isinstance(hint, TypeVar) or hint is Any:
        return True
    if origin is tuple and isinstance(value, tuple) and inner[1:] == (...,):
        return all(_fits(item, inner[0]) for item in value)
    kind = _LOOSE.get(hint, origin or hint)
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol, of which nothing can be told
        return True
