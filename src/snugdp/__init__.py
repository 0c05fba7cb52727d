"""snugdp: propose, test, release. Data-adaptive differential privacy with proofs beside the code."""

from typing import TYPE_CHECKING, Any

from snugdp.data.schema import Boolean, Category, Coefficients, Number, Schema
from snugdp.guarantee import Budget, Cost, Guarantee, Neighbours, RelationMismatchError
from snugdp.ledger import (
    BudgetExceededError,
    KeyConflictError,
    Ledger,
    LedgerError,
    MemoryLedger,
    TamperedLedgerError,
    UnwrittenError,
)
from snugdp.noise import Exact, Simulation
from snugdp.outcome import Account, NotPrivate, Outcome, Receipt, Refused, Released
from snugdp.ptr.certify.statistics import Statistic
from snugdp.ptr.propose import Plan
from snugdp.ptr.recipe import PrivateAlgorithm, calibrated, from_distance, from_statistics, from_upper_bound
from snugdp.ptr.select import Selected, Selection, select
from snugdp.queries.bounds import Bounds, EstimatedBounds, private_bounds
from snugdp.queries.columns import median, quantile, trimmed_mean
from snugdp.queries.labels import Mode, Vote, mode, vote
from snugdp.queries.robust import Median, Quantile, TrimmedMean

if TYPE_CHECKING:
    from snugdp.estimators.base import NotPrivateWarning, NotReleased
    from snugdp.estimators.glm import GLM
    from snugdp.estimators.linear import LinearRegression
    from snugdp.estimators.logistic import LogisticRegression
    from snugdp.estimators.pate import PATEClassifier
    from snugdp.estimators.pca import PCA
    from snugdp.estimators.poisson import PoissonRegression
    from snugdp.estimators.sparse import SparseLinearRegression, SparseLogisticRegression

__version__ = "0.1.0"

__all__ = [
    "GLM",
    "PCA",
    "Account",
    "Boolean",
    "Bounds",
    "Budget",
    "BudgetExceededError",
    "Category",
    "Coefficients",
    "Cost",
    "EstimatedBounds",
    "Exact",
    "Guarantee",
    "KeyConflictError",
    "Ledger",
    "LedgerError",
    "LinearRegression",
    "LogisticRegression",
    "Median",
    "MemoryLedger",
    "Mode",
    "Neighbours",
    "NotPrivate",
    "NotPrivateWarning",
    "NotReleased",
    "Number",
    "Outcome",
    "PATEClassifier",
    "Plan",
    "PoissonRegression",
    "PrivateAlgorithm",
    "Quantile",
    "Receipt",
    "Refused",
    "RelationMismatchError",
    "Released",
    "Schema",
    "Selected",
    "Selection",
    "Simulation",
    "SparseLinearRegression",
    "SparseLogisticRegression",
    "Statistic",
    "TamperedLedgerError",
    "TrimmedMean",
    "UnwrittenError",
    "Vote",
    "calibrated",
    "from_distance",
    "from_statistics",
    "from_upper_bound",
    "median",
    "mode",
    "pate",
    "private_bounds",
    "quantile",
    "select",
    "trimmed_mean",
    "vote",
]

_LAZY = {  # these load scikit-learn
    "GLM": "snugdp.estimators.glm",
    "PCA": "snugdp.estimators.pca",
    "LinearRegression": "snugdp.estimators.linear",
    "LogisticRegression": "snugdp.estimators.logistic",
    "NotPrivateWarning": "snugdp.estimators.base",
    "NotReleased": "snugdp.estimators.base",
    "PATEClassifier": "snugdp.estimators.pate",
    "PoissonRegression": "snugdp.estimators.poisson",
    "SparseLinearRegression": "snugdp.estimators.sparse",
    "SparseLogisticRegression": "snugdp.estimators.sparse",
}
_ROOMS = ("pate",)  # read as modules, as in snugdp.pate.label


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
