"""Adapters for the vectors of sparse models."""

from collections.abc import Callable, Mapping
from typing import Any

from snugdp.accounting import discrete
from snugdp.mechanisms.support import block_votes
from snugdp.mechanisms.support.peeling import TopScores
from tests.mechanisms.support.test_peeling import set_probability

SPARSE: Mapping[str, Callable[..., Any]] = {
    "gumbel_scale_pure": lambda s, eps1, score_sensitivity: float(
        TopScores.pure(s, eps1).scale(int(score_sensitivity))
    ),
    "vote_margin_q": lambda counts, s: float(block_votes.margin(counts, s)),
    "vote_threshold": lambda eps1, delta1: discrete.laplace_threshold(eps1, delta1),
    "gumbel_top_s_set_probability": lambda scores, scale, s, set: set_probability(tuple(scores), scale, set),
}
