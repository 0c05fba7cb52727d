"""The price of keeping the best of a random number of runs.

A run is given by a ``snugdp.Cost``, by ``gaussian(mu, failure)``, by the two laws of a finite mechanism or by its
trade-off curve; the number of runs by a law. Deltas and epsilons are rounded up, affordable runs are rounded down.
The number of runs must stay hidden; runs beyond a cut may end in a refusal without any extra charge.

- ``delta``, ``epsilon``: what selection costs. ``mu``, ``largest``: what a run may cost within a budget.
- ``shared_delta``, ``shared_epsilon``: one test before all runs. ``routes``: selection beside composing all candidates.
- Accountings: "C2" (the tightest, and the default), "C1", "closed", "corollary", "liu_talwar", "renyi".

Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugdp.lazy import loader

if TYPE_CHECKING:
    from snugdp.accounting.selection.calibrate import METHODS, Route, bounds, delta, epsilon, largest, mu, routes
    from snugdp.accounting.selection.comparison_bounds import (
        ComparisonBound,
        corollary,
        liu_talwar,
        renyi_poisson,
        renyi_tnb,
    )
    from snugdp.accounting.selection.laws import (
        NAMES,
        Binomial,
        Law,
        NegativeBinomial,
        Poisson,
        best_tried,
        beyond,
        binomial,
        check_law,
        expected_quantile,
        geometric,
        logarithmic,
        mean,
        pgf,
        pgf_slope,
        poisson,
        truncated_negative_binomial,
        winner,
    )
    from snugdp.accounting.selection.shared import selection_profile, shared_delta, shared_epsilon
    from snugdp.accounting.selection.tradeoff import (
        Base,
        TradeoffCurve,
        as_base,
        float_of_cost,
        gaussian,
        of_cost,
        of_cost_one_way,
        of_pair,
        of_vertices,
        one_order,
    )

__all__ = [
    "METHODS", "NAMES", "Base", "Binomial", "ComparisonBound", "Law", "NegativeBinomial", "Poisson", "Route",
    "TradeoffCurve",
    "as_base", "best_tried", "beyond", "binomial", "bounds", "check_law", "corollary", "delta", "epsilon",
    "expected_quantile", "float_of_cost", "gaussian", "geometric", "largest", "liu_talwar", "logarithmic", "mean",
    "mu", "of_cost", "of_cost_one_way", "of_pair", "of_vertices", "one_order", "pgf", "pgf_slope", "poisson",
    "renyi_poisson", "renyi_tnb", "routes", "selection_profile", "shared_delta", "shared_epsilon",
    "truncated_negative_binomial", "winner",
]  # fmt: skip

__getattr__ = loader(
    __name__,
    {
        "snugdp.accounting.selection.calibrate": "METHODS Route bounds delta epsilon largest mu routes",
        "snugdp.accounting.selection.comparison_bounds": "ComparisonBound corollary liu_talwar renyi_poisson renyi_tnb",
        "snugdp.accounting.selection.laws": "NAMES Binomial Law NegativeBinomial Poisson best_tried beyond binomial "
        "check_law expected_quantile geometric logarithmic mean pgf pgf_slope poisson "
        "truncated_negative_binomial winner",
        "snugdp.accounting.selection.shared": "selection_profile shared_delta shared_epsilon",
        "snugdp.accounting.selection.tradeoff": "Base TradeoffCurve as_base float_of_cost gaussian of_cost "
        "of_cost_one_way of_pair of_vertices one_order",
    },
)
