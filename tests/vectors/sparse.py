"""Adapters for the vectors of sparse models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from snugdp.accounting import discrete
from snugdp.mechanisms.support import block_votes, peeling

SPARSE: Mapping[str, Callable[..., Any]] = {
    "gumbel_scale_pure": lambda s, eps1, score_sensitivity: peeling.pure_scale(s, eps1, score_sensitivity),
    "gumbel_scale_zcdp": lambda s, rho, score_sensitivity: peeling.zcdp_scale(s, rho, score_sensitivity),
    "vote_margin_q": lambda counts, s: float(block_votes.margin(counts, s)),
    "vote_threshold": lambda eps1, delta1: discrete.laplace_threshold(eps1, delta1),
    "gumbel_top_s_set_probability": lambda scores, scale, s, set: peeling.set_probability(scores, scale, set),
}
