"""snugdp: propose, test, release. Data-adaptive differential privacy with proofs beside the code.

Names are loaded when they are first used: importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from snugdp.estimators import registry as _estimators
from snugdp.lazy import loader

if TYPE_CHECKING:
    from snugdp import pate as pate
    from snugdp.certify.statistics import Statistic
    from snugdp.core.guarantee import Budget, Cost, Guarantee, Neighbours, RelationMismatchError
    from snugdp.core.outcome import Account, NotPrivate, Outcome, Receipt, Refused, Released, Unit, UnitMismatchError
    from snugdp.estimators.additive.curves import EffectCurve
    from snugdp.estimators.base import NotPrivateWarning, NotReleased
    from snugdp.estimators.explanation import Explanation
    from snugdp.estimators.files.model_file import load, save
    from snugdp.estimators.forecasts.advice import Advice, advise
    from snugdp.estimators.registry import *  # noqa: F403  what its __all__ names
    from snugdp.estimators.workflows.pipelines import PrivacyWarning, check_pipeline
    from snugdp.ledger import (
        BudgetExceededError,
        KeyConflictError,
        Ledger,
        LedgerError,
        LedgerWriteError,
        MemoryLedger,
        TamperedLedgerError,
    )
    from snugdp.mechanisms.scores.result import MetricEstimate, ModelScores
    from snugdp.mechanisms.selection.select import Selected, Selection, select
    from snugdp.noise import Exact, Simulation
    from snugdp.propose.plan import Plan
    from snugdp.queries.bounds.private import Bounds, EstimatedBounds, private_bounds
    from snugdp.queries.description.describe import Describe, describe
    from snugdp.queries.description.result import Description
    from snugdp.queries.estimate import Estimate
    from snugdp.queries.functions import (
        correlation,
        count,
        covariance,
        histogram,
        interquartile_range,
        maximum,
        mean,
        median,
        minimum,
        mode,
        proportion,
        quantile,
        quantile_interval,
        quantile_table,
        quantiles,
        standard_deviation,
        sum,
        trimmed_mean,
        variance,
        vote,
    )
    from snugdp.queries.groups import GroupBy, group_by
    from snugdp.queries.labels import Mode, Vote
    from snugdp.queries.order_statistics.extremes import Maximum, Minimum
    from snugdp.queries.order_statistics.interval import QuantileInterval
    from snugdp.queries.order_statistics.quantile_table import QuantileTable
    from snugdp.queries.order_statistics.quantiles import InterquartileRange, Median, Quantile, Quantiles
    from snugdp.queries.order_statistics.robust import TrimmedMean
    from snugdp.queries.statistics.counts import Count, Sum
    from snugdp.queries.statistics.histogram import Histogram, HistogramCounts
    from snugdp.queries.statistics.moments import Mean, Proportion, StandardDeviation, Variance
    from snugdp.queries.statistics.pairs import Correlation, Covariance
    from snugdp.queries.table import StatisticsTable
    from snugdp.recipe import PrivateAlgorithm, calibrated, from_distance, from_statistics, from_upper_bound
    from snugdp.scores.score import Score, score
    from snugdp.tables.schema.schema import Boolean, Category, Coefficients, Date, Number, Schema, Spline

__version__ = "0.1.0"

__all__ = [
    "Account",
    "Advice",
    "Boolean",
    "Bounds",
    "Budget",
    "BudgetExceededError",
    "Category",
    "Coefficients",
    "Correlation",
    "Cost",
    "Count",
    "Covariance",
    "Date",
    "Describe",
    "Description",
    "EffectCurve",
    "Estimate",
    "EstimatedBounds",
    "Exact",
    "Explanation",
    "GroupBy",
    "Guarantee",
    "Histogram",
    "HistogramCounts",
    "InterquartileRange",
    "KeyConflictError",
    "Ledger",
    "LedgerError",
    "LedgerWriteError",
    "Maximum",
    "Mean",
    "Median",
    "MemoryLedger",
    "MetricEstimate",
    "Minimum",
    "Mode",
    "ModelScores",
    "Neighbours",
    "NotPrivate",
    "NotPrivateWarning",
    "NotReleased",
    "Number",
    "Outcome",
    "Plan",
    "PrivacyWarning",
    "PrivateAlgorithm",
    "Proportion",
    "Quantile",
    "QuantileInterval",
    "QuantileTable",
    "Quantiles",
    "Receipt",
    "Refused",
    "RelationMismatchError",
    "Released",
    "Schema",
    "Score",
    "Selected",
    "Selection",
    "Simulation",
    "Spline",
    "StandardDeviation",
    "Statistic",
    "StatisticsTable",
    "Sum",
    "TamperedLedgerError",
    "TrimmedMean",
    "Unit",
    "UnitMismatchError",
    "Variance",
    "Vote",
    "advise",
    "calibrated",
    "check_pipeline",
    "correlation",
    "count",
    "covariance",
    "describe",
    "from_distance",
    "from_statistics",
    "from_upper_bound",
    "group_by",
    "histogram",
    "interquartile_range",
    "load",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "pate",
    "private_bounds",
    "proportion",
    "quantile",
    "quantile_interval",
    "quantile_table",
    "quantiles",
    "save",
    "score",
    "select",
    "standard_deviation",
    "sum",
    "trimmed_mean",
    "variance",
    "vote",
]
__all__ += _estimators.__all__

_NAMES = {  # where public names live; estimators have a table of their own
    "snugdp.tables.schema.schema": "Boolean Category Coefficients Date Number Schema Spline",
    "snugdp.estimators.additive.curves": "EffectCurve",
    "snugdp.estimators.explanation": "Explanation",
    "snugdp.estimators.forecasts.advice": "Advice advise",
    "snugdp.estimators.base": "NotPrivateWarning NotReleased",
    "snugdp.estimators.files.model_file": "load save",
    "snugdp.estimators.workflows.pipelines": "PrivacyWarning check_pipeline",
    "snugdp.core.guarantee": "Budget Cost Guarantee Neighbours RelationMismatchError",
    "snugdp.ledger": "BudgetExceededError KeyConflictError Ledger LedgerError MemoryLedger TamperedLedgerError "
    "LedgerWriteError",
    "snugdp.noise": "Exact Simulation",
    "snugdp.core.outcome": "Account NotPrivate Outcome Receipt Refused Released Unit UnitMismatchError",
    "snugdp.certify.statistics": "Statistic",
    "snugdp.propose.plan": "Plan",
    "snugdp.recipe": "PrivateAlgorithm calibrated from_distance from_statistics from_upper_bound",
    "snugdp.mechanisms.selection.select": "Selected Selection select",
    "snugdp.queries.bounds.private": "Bounds EstimatedBounds private_bounds",
    "snugdp.queries.groups": "GroupBy group_by",
    "snugdp.queries.table": "StatisticsTable",
    "snugdp.queries.estimate": "Estimate",
    "snugdp.queries.description.describe": "Describe describe",
    "snugdp.queries.description.result": "Description",
    "snugdp.queries.statistics.counts": "Count Sum",
    "snugdp.queries.functions": "correlation count covariance histogram interquartile_range maximum mean median "
    "minimum mode proportion quantile quantile_interval quantile_table quantiles standard_deviation sum trimmed_mean "
    "variance vote",
    "snugdp.queries.statistics.histogram": "Histogram HistogramCounts",
    "snugdp.queries.statistics.moments": "Mean Proportion StandardDeviation Variance",
    "snugdp.queries.statistics.pairs": "Correlation Covariance",
    "snugdp.queries.labels": "Mode Vote",
    "snugdp.mechanisms.scores.result": "MetricEstimate ModelScores",
    "snugdp.scores.score": "Score score",
    "snugdp.queries.order_statistics.extremes": "Maximum Minimum",
    "snugdp.queries.order_statistics.interval": "QuantileInterval",
    "snugdp.queries.order_statistics.quantile_table": "QuantileTable",
    "snugdp.queries.order_statistics.quantiles": "InterquartileRange Median Quantile Quantiles",
    "snugdp.queries.order_statistics.robust": "TrimmedMean",
}
_ROOMS = frozenset(
    [
        "accounting",
        "audit",
        "core",
        "estimators",
        "ledger",
        "mechanisms",
        "noise",
        "pate",
        "queries",
        "report",
        "scores",
    ]
)
_load = loader(__name__, _NAMES)


def __getattr__(name: str) -> Any:
    """A public name, or a package read as a module, as in ``snugdp.pate.label``."""
    if name in _ROOMS:
        value = import_module(f"{__name__}.{name}")
    elif name in _estimators.BY_NAME:
        value = _estimators.BY_NAME[name].load()
    else:
        value = _load(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
