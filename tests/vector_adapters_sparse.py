"""Adapters for the vectors of sparse models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from snugdp.accounting import discrete
from snugdp.mechanisms import support, support_votes

SPARSE: Mapping[str, Callable[..., Any]] = {
    "gumbel_scale_pure": lambda s, eps1, score_sensitivity: support.pure_scale(s, eps1, score_sensitivity),
    "gumbel_scale_zcdp": lambda s, rho, score_sensitivity: support.zcdp_scale(s, rho, score_sensitivity),
    "vote_margin_q": lambda counts, s: float(support_votes.margin(counts, s)),
    "vote_threshold": lambda eps1, delta1: discrete.laplace_threshold(eps1, delta1),
    "gumbel_top_s_set_probability": lambda scores, scale, s, set: support.set_probability(scores, scale, set),
}
