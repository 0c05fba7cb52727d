"""One step of several that is wrong: what it costs hides in the slack of the others, unless each is looked at."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from snugdp.accounting.output.glm import LossConstants
from snugdp.accounting.output.posterior import output_sensitivity
from snugdp.audit.mutants.base import Changes, Topic
from snugdp.audit.mutants.checks import Near
from snugdp.certify.distance import integer_laplace
from snugdp.core.guarantee import Cost
from snugdp.estimators.linear import LinearRegression
from snugdp.estimators.pate.teachers import Scattered
from snugdp.mechanisms.bounds import exponential_grid
from snugdp.mechanisms.components import projector
from snugdp.mechanisms.linear import output, posterior, ridge_test
from snugdp.mechanisms.objective import scale, spread
from snugdp.mechanisms.order_statistics import median
from snugdp.mechanisms.output import glm
from snugdp.mechanisms.selection.select import Selection
from snugdp.mechanisms.support import block_votes, peeling
from snugdp.mechanisms.votes import inverse, mode, vote
from snugdp.noise import Gaussian, Gumbel
from snugdp.queries import labels
from snugdp.tables.candidates import Candidates
from snugdp.tables.schema.scaling import Affine, Floats

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
    return _without_delta(glm)


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
    rate = peeling.gaussian_rate
    return [(peeling, "gaussian_rate", lambda mu_squared: rate(2 * mu_squared))]


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


@mutant("vote: half of a test's failures charged", "N", Near("vote: tested", 1, 8))
def _() -> Changes:
    """The test of a lead fails twice as often as is paid for."""

    def careless(distance: Any, *, epsilon: Any, delta: Any, neighbours: Any) -> Any:
        test = integer_laplace(distance, epsilon=epsilon, delta=2 * delta, neighbours=neighbours)
        return replace(test, cost=Cost(epsilon=epsilon, delta=delta, neighbours=neighbours))

    return [(labels, "integer_laplace", careless)]


@mutant("vote: a lead for the whole budget", "N", Near("vote: tested", 1, 8))
def _() -> Changes:
    """Leads are safe for all of epsilon and delta, half of which the test has spent."""
    least = inverse.least_gap
    return [
        (
            inverse,
            "least_gap",
            lambda noise, epsilon, delta, relation: least(noise, 2 * epsilon, 2 * delta, relation),
        )
    ]


@mutant("output noise without the intercept", "N", Near("linear: output", 1, 4))
def _() -> Changes:
    """The noise of a solution is for rows without the constant that the intercept adds to them."""
    return [(output, "output_sensitivity", lambda bound, *given: output_sensitivity(1, *given))]


@mutant("curvature of a GLM with a fifth of its noise", "N", Near("logistic: output, one ridge, round", 1, 4))
def _() -> Changes:
    """The smallest curvature may move five times as far as its noise is for."""

    def small(self: Any) -> Fraction:
        return Fraction(self.constants.change / 5)

    return [(glm.OutputGLM, "sensitivity", property(small))]


@mutant("constants of a GLM without the intercept", "N", Near("logistic: output, one ridge, round", 1, 4))
def _() -> Changes:
    """Slopes and curvatures are those of rows without the constant that the intercept adds to them."""
    at = LossConstants.at
    return [(LossConstants, "at", lambda self, bound: at(self, 1))]


@mutant("votes of blocks: any lead is safe", "N", Near("sparse linear: votes", 1, 4))
def _() -> Changes:
    """A lead of one or two votes, which one row can turn, counts as one row away from that."""

    def margin(counts: Any, size: int) -> Fraction:
        ordered = np.sort(np.asarray(counts, dtype=np.int64))[::-1]
        return Fraction(int(ordered[size - 1] - ordered[size]), 2)

    return [(block_votes, "margin", margin)]


@mutant("the number of runs is shown", "N", Near("selection: geometric", 2, 4))
def _() -> Changes:
    """A selection tells how many runs there were, as its certificate."""
    best, paid_from = Selection._best, Selection.paid_from
    runs: list[int] = []

    def counted(self: Any, noise: Any, more: Any) -> Any:
        runs.append(0)
        return best(self, noise, more)

    def once(self: Any, *given: Any) -> Any:
        runs[-1] += 1
        return single(self, *given)

    def told(self: Any, *given: Any, **more: Any) -> Any:
        outcome: Any = paid_from(self, *given, **more)
        return replace(outcome, certificate=runs[-1])

    single = Selection._once
    return [(Selection, "_best", counted), (Selection, "_once", once), (Selection, "paid_from", told)]


@mutant("twice as many runs as are paid", "N", Near("selection: geometric", 2, 4))
def _() -> Changes:
    """A selection goes on with another number of runs after the first."""
    tries = Selection._tries
    return [(Selection, "_tries", lambda self, noise: chain(tries(self, noise), tries(self, noise)))]


@mutant("the rows of a person at many teachers", "N", Near("PATEClassifier: many rows of a person", 3, 10))
def _() -> Changes:
    """Groups are ignored: rows are sent to teachers one by one, whosoever they are."""
    of = Scattered.of

    def scattered(rows: Any, places: Any, whose: Any, drawn: Any, takes: Any) -> Any:
        return of(rows, places, None, np.resize(drawn, len(places)), takes)

    return [(Scattered, "of", scattered)]
