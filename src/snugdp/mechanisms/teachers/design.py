"""What is believed of the votes before they are seen: public, and used for planning alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps
from snugdp.mechanisms.teachers.distance_test import Ballots

_STEPS = 20  # groups of queries in a belief, finer among the doubtful ones
_NODES = np.linspace(-7.0, 7.0, 113)
_DENSITY = np.exp(-(_NODES**2) / 2) / np.sqrt(2 * np.pi) * (_NODES[1] - _NODES[0])


@dataclass(frozen=True)
class VoteBelief:
    """Made-up ballots: the leads of the plurality over the other classes, and how many queries look like each."""

    ballots: Ballots
    tops: Integers  # the votes of the plurality
    assumed: bool = False  # whether nobody said anything

    def votes(self) -> Integers:
        """Whole histograms, one for each query."""
        rows = np.concatenate([self.tops[:, None], self.tops[:, None] - self.ballots.leads], axis=1)
        ends = np.rint(np.cumsum(self.ballots.counts)).astype(np.int64)
        return np.repeat(np.maximum(rows, 0), np.diff(ends, prepend=0), axis=0)

    def accuracy(self, sigma: float) -> float:
        """The share of labels that are the plurality."""
        return float(self._hits(sigma) @ self.ballots.counts / self.ballots.counts.sum())

    def answers(self, sigma: float, threshold: float, threshold_sigma: float) -> tuple[float, float]:
        """How many queries get an answer, and the share of those that are the plurality."""
        from scipy.special import ndtr

        answered = ndtr((self.tops - threshold) / threshold_sigma) * self.ballots.counts
        return float(answered.sum()), float(self._hits(sigma) @ answered / max(answered.sum(), 1e-300))

    def _hits(self, sigma: float) -> Floats:
        from scipy.special import log_ndtr

        logs = log_ndtr(self.ballots.leads[:, None, :] / sigma + _NODES[None, :, None]).sum(axis=2)
        hits: Floats = np.exp(logs) @ _DENSITY
        return hits


def design(*, gap: Any, proxy: Any, teachers: int, queries: int, classes: int) -> VoteBelief:
    """The belief that was given: leads in votes, or public histograms; without one all leads are as likely.

    >>> design(gap=50, proxy=None, teachers=100, queries=20, classes=3).ballots.leads.tolist()
    [[50, 50]]
    """
    if gap is not None and proxy is not None:
        raise ValueError("give gap or proxy, not both: they say the same thing in two ways")
    if proxy is not None:
        return _from_histograms(proxy, teachers, queries, classes)
    leads = np.sort(_leads(np.linspace(0, teachers, _STEPS) if gap is None else gap, teachers))
    picked, counts = _ranks(len(leads), queries, 0.0)
    return even(leads[picked], counts, teachers, classes, gap is None)


def doubted(belief: VoteBelief) -> VoteBelief:
    """The same with every lead a tenth smaller, and one query without any: what to be prepared for if it costs nothing.

    >>> doubted(design(gap=50, proxy=None, teachers=100, queries=20, classes=3)).ballots.leads.tolist()
    [[0, 0], [45, 45]]
    """
    leads, counts = belief.ballots.leads, belief.ballots.counts
    smaller = np.concatenate([np.zeros_like(leads[:1]), leads * 9 // 10])
    weights = np.concatenate([[1.0], counts]) * (counts.sum() / (counts.sum() + 1))
    return replace(belief, ballots=Ballots(smaller, weights), tops=np.concatenate([belief.tops[:1], belief.tops]))


def even(leads: Integers, counts: Floats, teachers: int, classes: int, assumed: bool = False) -> VoteBelief:
    """Ballots in which the plurality leads by as much over every other class: the most doubtful ones of that lead."""
    tops = (teachers + leads + 1) // 2
    return VoteBelief(Ballots(np.repeat(leads[:, None], classes - 1, axis=1), counts), tops, assumed)


def _leads(gap: Any, teachers: int) -> Integers:
    try:
        values = np.atleast_1d(np.asarray(gap, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(
            "gap must be a number of votes, or a list of them: the lead that the plurality is believed to have"
        )
    if values.max() > teachers:
        raise ValueError(f"gap must be at most the number of teachers, {teachers}")
    return np.floor(values).astype(np.int64)


def _from_histograms(proxy: Any, teachers: int, queries: int, classes: int) -> VoteBelief:
    votes = np.asarray(proxy)
    if votes.ndim != 2 or votes.shape[1] != classes or not len(votes) or votes.dtype.kind not in "iuf":
        raise ValueError(
            f"proxy must be public histograms: one row for a query, and one column for each of {classes} classes"
        )
    if not np.isfinite(votes).all() or votes.min() < 0 or not votes.sum(axis=1).min() > 0:
        raise ValueError("proxy must hold counts of votes: at least 0, and at least one in every row")
    scaled = np.floor(votes * (teachers / votes.sum(axis=1, keepdims=True))).astype(np.int64)
    leads = gaps(scaled)
    order = np.lexsort(leads.T[::-1])
    ranks, counts = _ranks(len(votes), queries, 1.0)
    picked = order[ranks]
    return VoteBelief(Ballots(leads[picked], counts), scaled.max(axis=1)[picked])


def _ranks(given: int, queries: int, doubt: float) -> tuple[Integers, Floats]:
    """Which of the given queries, the most doubtful first, stand for how many of those to come.

    The next queries are another sample: where k of those given are as doubtful, ``doubt`` deviations more are allowed
    for. Few are kept, more of the doubtful ones, and each stands for those after it.
    """
    edges = np.unique(np.floor(np.geomspace(1, given + 1, _STEPS)).astype(np.int64) - 1)  # 0 .. given
    expected = edges * (queries / given)
    spread = doubt * (np.sqrt(expected + expected**2 / np.maximum(edges, 1)) + 1)
    reached = np.minimum(np.where(edges > 0, expected + spread, 0), queries)
    reached[-1] = queries
    return edges[:-1], np.diff(reached)
