"""Small universes of rows and all their neighbours; and what a release of whole numbers loses between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.noise import DiscreteLaplace
from snugdp.propose.share import Share

RELATIONS = ("add_remove", "replace")
SHARES = [make(Budget("1/2", "1e-6", relation)) for relation in RELATIONS for make in (Share.pure, Share.gaussian)]


def name(share: Share) -> str:
    return f"{share.neighbours.value}, {'pure' if share.is_pure else 'gaussian'}"


def moved(rows: Iterable[Sequence[int]], share: Share) -> Iterator[list[int]]:
    """How far the sums of the images of rows move between neighbours; a missing row has all zeros."""
    every = [list(row) for row in rows]
    nothing = [0] * len(every[0])
    if share.neighbours.value == "add_remove":
        yield from every
    else:
        for one, other in combinations([*every, nothing], 2):
            yield [a - b for a, b in zip(one, other, strict=True)]


def used(noise: JointNoise, change: Sequence[int], narrower: Fraction = Fraction(1)) -> Fraction:
    """The part of the share that a change uses up, from the laws themselves: pure loss, or mu squared.

    The loss of discrete Laplace noise is the largest ratio of two probabilities, which is attained far out.
    """
    total = Fraction(0)
    for law, move in zip(noise.laws, change, strict=True):
        if isinstance(law, DiscreteLaplace):
            total += abs(move) / (law.scale * narrower) / noise.share.epsilon
        else:
            total += Fraction(move) ** 2 / (law.sigma * narrower) ** 2 / noise.share.mu_squared
    return total
