"""One step of several that is wrong: what it costs hides in the slack of the others, unless each is looked at."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.audit.mutants.base import Changes, Topic
from snugdp.audit.mutants.checks import Near
from snugdp.data.candidates import Candidates
from snugdp.data.scaling import Affine, Floats
from snugdp.estimators.linear import LinearRegression
from snugdp.guarantee import Cost
from snugdp.mechanisms import (
    exponential_grid,
    glm_output,
    median,
    mode,
    posterior,
    projector,
    ridge_test,
    scale,
    spread,
    support,
    vote,
)
from snugdp.noise import Gaussian, Gumbel

mutant = Topic("steps")


def _smaller(module: Any, times: int) -> Changes:
    return [(module, "Gaussian", lambda sigma: Gaussian(Fraction(sigma) / times))]


def _without_delta(module: Any) -> Changes:
    return [(module, "Cost", lambda **parts: Cost(**{name: part for name, part in parts.items() if name != "delta"}))]


@mutant("sizes of targets with half the noise", "N", Near("linear: auto", 1, 8))
def _() -> Changes:
    """Before the release the mean and the sizes of the targets are found with half the noise that was paid for."""
    return _smaller(scale, 2)


@mutant("place and length of rows with half the noise", "N", Near("logistic: auto", 1, 8))
def _() -> Changes:
    """Before the release the middle and the lengths of rows are found with half the noise that was paid for."""
    return _smaller(spread, 2)


@mutant("failures of a ridge test not charged", "N", Near("linear: output", 1, 4))
def _() -> Changes:
    """The margins of a test fail with a probability that no cost contains."""
    costs = ridge_test.Split.costs

    def free(self: Any) -> tuple[Cost, ...]:
        return tuple(Cost(mu_squared=cost.mu_squared, neighbours=cost.neighbours) for cost in costs(self))

    return [(ridge_test.Split, "costs", free)]


@mutant("failure of a Hessian's bound not charged", "N", Near("logistic: output, one ridge, round", 1, 4))
def _() -> Changes:
    """The bound on the curvature fails with a probability that no cost contains."""
    return _without_delta(glm_output)


@mutant("failure of an eigengap not charged", "N", Near("pca: projector", 1, 4))
def _() -> Changes:
    """The bound on the gap fails with a probability that no cost contains."""
    return _without_delta(projector)


@mutant("posterior twice as sharp", "N", Near("linear: adaops", 1, 4))
def _() -> Changes:
    """A sample of the posterior has twice the precision that the certificate allows."""
    down = posterior._down
    return [(posterior, "_down", lambda value: 2 * down(value))]


@mutant("two columns for the price of one", "N", Near("sparse linear: gumbel, two columns", 1, 4))
def _() -> Changes:
    """Each of two choices gets the whole of what both may cost."""
    rate = support.gaussian_rate
    return [(support, "gaussian_rate", lambda mu_squared: rate(2 * mu_squared))]


@mutant("edges with half the noise", "N", Near("bounds", 1, 4))
def _() -> Changes:
    """The two edges of a private range are chosen with half the noise."""
    return [(exponential_grid, "Gumbel", lambda size: Gumbel(Fraction(size) / 2))]


@mutant("mode: distance one too large", "N", Near("mode", 2, 10))
def _() -> Changes:
    """A mode that the next row can change counts as one row away from that."""
    distance = mode.distance
    return [(mode, "distance", lambda counts, relation: distance(counts, relation) + 1)]


@mutant("vote: safe leads one row too far", "N", Near("vote: tested", 2, 10))
def _() -> Changes:
    """A lead that is safe counts as one row farther from where it is not: the distance jumps by two there."""
    distance = vote.distance

    def farther(*given: Any) -> int | float:
        found = distance(*given)
        return found + 1 if found else found

    return [(vote, "distance", farther)]


@mutant("median: distance one too large", "N", Near("median", 2, 10))
def _() -> Changes:
    """A median that the next row can move too far counts as one row away from that."""
    distance = median.distance
    return [(median, "distance", lambda *given: distance(*given) + 1)]


@mutant("an attribute from the rows", "N", Near("linear: adassp", 1, 4))
def _() -> Changes:
    """A fitted estimator keeps the sum of the targets, for the user's convenience."""
    fit = LinearRegression.fit

    def convenient(self: Any, X: Any, y: Any = None, **more: Any) -> Any:
        fitted = fit(self, X, y, **more)
        fitted.target_sum_ = float(np.clip(np.nan_to_num(np.array(y, dtype=np.float64)), -1, 1).sum())
        return fitted

    return [(LinearRegression, "fit", convenient)]


@mutant("missing cells are the mean of the others", "N", Near("linear: adassp, a table with gaps", 1, 4))
def _() -> Changes:
    """What is missing in a column becomes the mean of what is there."""
    write = Affine.write

    def filled(self: Affine, raw: Any, out: Floats) -> None:
        values = np.asarray(raw, dtype=np.float64)
        there = np.clip(values[~np.isnan(values)], self.middle - 1 / self.factor, self.middle + 1 / self.factor)
        write(self, np.where(np.isnan(values), there.mean() if there.size else self.middle, values), out)

    return [(Affine, "write", filled)]


@mutant("blocks by place", "N", Near("sparse linear: votes", 1, 4))
def _() -> Changes:
    """Rows go to blocks in turn: when one leaves, all that follow go to others."""
    sums = Candidates.block_sums

    def in_turn(self: Candidates, parts: int, lots: Any) -> Any:
        return sums(self, parts, lambda rows, blocks: np.arange(rows) % blocks)

    return [(Candidates, "block_sums", in_turn)]
