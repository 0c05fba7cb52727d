"""Estimators for audits: fitted as anybody fits them, but planned once.

A plan is public and takes longer than a fit on a few rows. All else is the estimator's own ``fit``. While many fits
are made, hold ``snugdp.numerics.threads.one_blas_thread``: otherwise each of them sets the threads anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from snugdp.audit.finding import Case
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise

_PUBLIC = ("_make", "_told", "_proposal", "_try_models")  # functions of public values, however often they are asked


def planned(model: type[Any]) -> type[Any]:
    """The estimator, with its public preparations kept from the first fit for all later ones with the same data."""
    kept: dict[str, Any] = {}

    def once(name: str) -> Callable[..., Any]:
        def ask(self: Any, *given: Any) -> Any:
            if name not in kept:
                kept[name] = getattr(super(made, self), name)(*given)
            return kept[name]

        return ask

    names = [name for name in _PUBLIC if hasattr(model, name)]
    made = type(model.__name__, (model,), {name: once(name) for name in names})
    return made


@dataclass(frozen=True)
class Fitted:
    """The outcome of a fit, and the estimator with all that it keeps: that has to follow from the answers as well."""

    outcome: Outcome[Any]
    estimator: Any

    @property
    def kept(self) -> dict[str, Any]:
        """The attributes of the estimator but for its parameters."""
        known = self.estimator.get_params(deep=False)
        return {name: value for name, value in vars(self.estimator).items() if name not in known}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outcome, name)


def fitting(
    name: str, model: type[Any], given: Mapping[str, Any], *, n_features: int | None = None, **case: Any
) -> Case[Any]:
    """The case of an estimator with these parameters: ``fit`` on a table, with the source of noise of the audit.

    ``n_features``: what ``plan`` is told about the rows, where no schema tells it. ``case``: what else a case has.
    """
    quick = planned(model)

    def run(table: tuple[Any, ...], noise: Noise) -> Outcome[Any]:
        fitted = quick(noise=noise, progress=False, **given).fit(*table)
        return cast("Outcome[Any]", Fitted(fitted.outcome_, fitted))

    width = {} if n_features is None else {"n_features": n_features}
    return Case(name=name, run=run, cost=quick(**given).plan(**width).cost, **case)
