"""What the labels of given votes cost by each analysis: the curves of the paper's figure, made honest, and ours.

A study of votes that are known: NOT PRIVATE, all of it. Even where a mechanism is private, the epsilon at which given
votes pass its test is a function of these votes; a proposal has to come from public numbers, as in ``planned``.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.ball import Integers, gaps, log_miss
from snugdp.mechanisms.teachers.confident import ORDERS as FINE_ORDERS
from snugdp.mechanisms.teachers.distance_test import Ballots, Labelling, SharpDistance, labelling_for, labels_profile
from snugdp.mechanisms.teachers.pair import EPSILONS
from snugdp.mechanisms.teachers.planning import Search, Tested, VoteBelief, plain_search
from snugdp.mechanisms.teachers.smooth_test import SmoothTest, conversion, smooth_plan
from snugdp.mechanisms.teachers.table import UNIT, table_for
from snugdp.noise import DiscreteGaussian, Simulation
from snugdp_studies.paper.pate import renyi
from snugdp_studies.paper.pate.experiment import not_private_parameters_of_the_experiment, not_private_pate_ptr

Floats = NDArray[np.float64]

LIKELY = 0.9
ORDERS = (
    1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0,
    28.0, 32.0, 36.0, 40.0, 46.0, 52.0, 60.0, 70.0, 85.0, 100.0, 130.0, 170.0, 220.0, 300.0,
)  # fmt: skip
TEST_DEVIATIONS = (3, 4, 5, 6, 7, 8, 10, 12)
_CLOSE = 1.005  # an epsilon that was searched for is at most so many times too large
_PARTS = 10**6  # of an epsilon
_NOTHING = 2 * EPSILONS[0]  # an epsilon that counts as none


@dataclass(frozen=True)
class AnalysisCurve:
    """One analysis: what it is called, and whether a release with this epsilon would be private."""

    name: str
    title: str
    private: bool


CURVES = (
    AnalysisCurve("gaussian", "exact Gaussian, any votes", True),
    AnalysisCurve("theorem6", "data-dependent, Theorem 6", False),
    AnalysisCurve("tight", "data-dependent, tight J", False),
    AnalysisCurve("pair", "data-dependent, our pair", False),
    AnalysisCurve("printed", "PATE-PTR as printed", False),
    AnalysisCurve("fixed", "its parameters, corrected", True),
    AnalysisCurve("smooth", "smooth sensitivity, fitted", True),
    AnalysisCurve("renyi", "distance by Renyi, fitted", True),
    AnalysisCurve("sharp", "our distance test, fitted", True),
)


@dataclass(frozen=True, eq=False)
class KnownVotes:
    """Votes of which everything is known, the noise on them, and delta."""

    votes: Integers
    teachers: int
    sigma: float
    delta: float

    @property
    def queries(self) -> int:
        """How many there are."""
        return len(self.votes)

    @property
    def believed(self) -> VoteBelief:
        """The votes themselves in the place of a belief: that is what makes a study of a plan."""
        rows, counts = np.unique(np.sort(self.votes, axis=1), axis=0, return_counts=True)
        return VoteBelief(Ballots(gaps(rows), counts.astype(np.float64)), rows.max(axis=1), False)


def not_private_curves(case: KnownVotes, names: Iterable[str] | None = None, seed: int = 1) -> dict[str, float]:
    """The epsilon of every curve, or of some of them; the tests' are those at which 9 of 10 releases pass."""
    plain = gaussian_epsilon(case)
    shape = {"sigma": case.sigma, "delta": case.delta, "teachers": case.teachers}
    ways: dict[str, Callable[[], float]] = {
        "gaussian": lambda: plain,
        "theorem6": lambda: _by_orders(case, renyi.theorem6),
        "tight": lambda: _by_table(case),
        "pair": lambda: not_private_pair_epsilon(case, plain),
        "printed": lambda: not_private_pate_ptr(case.votes, noise=Simulation(seed), **shape),  # type: ignore[arg-type]
        "fixed": lambda: not_private_fixed_epsilon(case),
        "smooth": lambda: smooth_plan(case.votes, **shape).epsilon,  # type: ignore[arg-type]
        "renyi": lambda: not_private_renyi_epsilon(case),
        "sharp": lambda: not_private_sharp_epsilon(case, plain),
    }
    return {name: ways[name]() for name in (ways if names is None else names)}


def chosen(names: Iterable[str]) -> list[AnalysisCurve]:
    """The curves of these names, in our order."""
    asked = list(names)
    if unknown := [name for name in asked if name not in {curve.name for curve in CURVES}]:
        raise ValueError(f"there is no curve {', '.join(unknown)}; there are {', '.join(c.name for c in CURVES)}")
    return [curve for curve in CURVES if curve.name in asked]


def gaussian_epsilon(case: KnownVotes) -> float:
    """What the labels cost on any votes. It depends on public numbers alone."""
    return gaussian.epsilon(math.sqrt(2 * case.queries) / case.sigma, case.delta)


def _by_orders(case: KnownVotes, one: Callable[[Floats, float, float], Floats]) -> float:
    """The smallest epsilon over the orders."""
    logs, counts = np.unique(log_miss(gaps(case.votes), case.sigma), return_counts=True)
    totals = [float(one(logs, case.sigma, order) @ counts) for order in ORDERS]
    return float(np.min(np.array(totals) + np.maximum(conversion(np.array(ORDERS), case.delta), 0.0)))


def _by_table(case: KnownVotes) -> float:
    """The same by the table of the optimum J."""
    totals = renyi.LabelLosses(table_for(case.sigma, ORDERS)).of(case.votes, 0) * UNIT
    return float(np.min(totals + np.maximum(conversion(np.array(ORDERS), case.delta), 0.0)))


def not_private_pair_epsilon(case: KnownVotes, largest: float) -> float:
    """The epsilon of these very votes, by composing the labels' dominating pairs: an upper bound too."""
    ballots = Ballots.of(case.votes)

    def enough(epsilon: float) -> bool:
        profile = _labelling(case, epsilon).profile(ballots, 0)
        return float(profile.delta(np.array([epsilon]))[0]) <= case.delta

    return least(enough, _NOTHING, largest * 1.05)


def not_private_fixed_epsilon(case: KnownVotes) -> float:
    """The paper's parameters with a valid smooth sensitivity and one conversion, if 9 of 10 shall pass."""
    printed = not_private_parameters_of_the_experiment(case.delta)
    test = SmoothTest(
        sigma=Fraction(case.sigma),
        order=Fraction(f"{printed.order:.8g}"),
        beta=Fraction(f"{printed.beta:.8g}"),
        sigma_loss=Fraction(f"{printed.sigma:.8g}"),
        sigma_scale=Fraction(f"{printed.sigma:.8g}"),
        limit=Fraction(1),
        delta=Fraction(str(case.delta)),
        failure=Fraction(str(case.delta)) / 2,
        teachers=case.teachers,
        queries=case.queries,
        classes=case.votes.shape[1],
    )
    over = _quantile(printed.beta * printed.sigma, case.delta / 2)
    limit = test.loss(case.votes) + test.sensitivity(case.votes) * printed.sigma * over
    return test.epsilon - 1 + limit


def _quantile(width: float, failure: float) -> float:
    """The 90 % point of N + k exp(width (N' + k)), two standard normals; k is exceeded with failure / 2."""
    from scipy.special import ndtr, ndtri

    margin = -float(ndtri(failure / 2))
    nodes = np.linspace(-8, 8, 801)
    weight = np.exp(-(nodes**2) / 2)
    centre = margin * np.exp(np.minimum(width * (nodes + margin), 300.0))
    return least(lambda at: float((ndtr(at - centre) @ weight) / weight.sum()) >= LIKELY, 1e-3, float(centre[-1]) + 9)


def not_private_renyi_epsilon(case: KnownVotes, deviations: Sequence[int] = TEST_DEVIATIONS) -> float:
    """The distance test by Renyi divergences, with the best of these deviations of its noise."""
    totals = renyi.LabelLosses(table_for(case.sigma, FINE_ORDERS)).of
    found = []
    for deviation in deviations:
        law = DiscreteGaussian(deviation**2)
        threshold = renyi.threshold_for(law, Fraction(1, 100), Fraction(str(case.delta)))
        shape = {"law": law, "threshold": threshold, "teachers": case.teachers, "delta": case.delta}
        found.append(renyi.needed(totals, case.votes, chance=LIKELY, **shape))  # type: ignore[arg-type]
    return min(found)


def not_private_sharp_epsilon(case: KnownVotes, largest: float) -> float:
    """Our distance test, with the table that suits these votes best."""
    return proposed(case, case.believed, largest)


def proposed(case: KnownVotes, belief: VoteBelief, largest: float) -> float:
    """The least epsilon at which votes like the belief pass in 9 of 10 cases; infinite if they never do.

    With a public belief it is public: of the case only the sizes, sigma and delta are used.
    """
    return least(lambda epsilon: _found(case, belief, epsilon)[1].chance >= LIKELY, _NOTHING, largest * 1.3)


def not_private_chance(case: KnownVotes, belief: VoteBelief, epsilon: float) -> float:
    """How likely the votes of the case pass the test that is planned for a belief at this epsilon."""
    search, found = _found(case, belief, epsilon)
    profile = labels_profile(_labelling(case, epsilon))
    test = SharpDistance(profile, found.table, search.budget, case.teachers)
    return float(found.table.at(test.distance(case.votes)))


def _found(case: KnownVotes, belief: VoteBelief, epsilon: float) -> tuple[Search, Tested]:
    budget = _budget(case, epsilon)
    shape = {"teachers": case.teachers, "queries": case.queries, "classes": case.votes.shape[1]}
    search = plain_search(budget, sigma=Fraction(case.sigma), **shape)
    return search, search.for_belief(belief)


def _labelling(case: KnownVotes, epsilon: float) -> Labelling:
    return labelling_for(Fraction(case.sigma), case.queries, _budget(case, epsilon))


def _budget(case: KnownVotes, epsilon: float) -> Budget:
    return Budget(Fraction(epsilon).limit_denominator(_PARTS), case.delta)


def least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number from ``low`` on that is enough, from above; infinite if ``high`` is not.

    What is above a number that is enough has to be enough.
    """
    if not enough(high):
        return math.inf
    if enough(low):
        return low
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
