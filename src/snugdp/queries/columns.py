"""Median, quantile and trimmed mean in one call: what most people use of ``robust.py``."""

from __future__ import annotations

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.queries.robust import Median, Quantile, TrimmedMean


def median(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    beta: Real | None = None,
    rows: int | None = None,
    step: Real = 0,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private median of one column: ``Median(...).release(data)``.

    ``bounds``: public, what the column can hold (required). ``beta``: the proposal, how much one row may move the
    answer; without it one is made from public quantities. ``rows``: the number of rows (replace), or a public guess of
    it (add/remove). ``step``: the public spacing of the values. ``test_share``: the part of epsilon for the test.
    ``missing``: what a row that is no number counts as, by default the lower bound. ``ledger``: what is charged, a
    ledger or the path or URL of one; without it this call has a budget of its own and nothing is being summed up, but
    for the ``cost`` of the outcome. ``noise``: a ``Simulation`` for rehearsals.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``order_statistics/median.proof.md``; for replace
    ``order_statistics/quantile.proof.md``), whether it ends in a release or in a refusal.

    >>> import snugdp
    >>> ages = [30 + i % 20 for i in range(2000)]
    >>> snugdp.median(ages, bounds=(0, 120), epsilon=1, delta=1e-6).refused
    False
    """
    return Median(
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        step=step,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)


def quantile(
    data: object,
    q: Real,
    *,
    bounds: tuple[Real, Real] | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "replace",
    beta: Real | None = None,
    rows: int | None = None,
    step: Real = 0,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private q-quantile of one column: ``Quantile(...).release(data)``.

    ``bounds``: public, what the column can hold (required). ``beta``: the proposal, how much one row may move the
    answer; without it one is made from public quantities. ``rows``: the number of rows (replace), or a public guess of
    it (add/remove). ``step``: the public spacing of the values. ``test_share``: the part of epsilon for the test.
    ``missing``: what a row that is no number counts as, by default the lower bound. ``ledger``: what is charged, a
    ledger or the path or URL of one; without it this call has a budget of its own and nothing is being summed up, but
    for the ``cost`` of the outcome. ``noise``: a ``Simulation`` for rehearsals.

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``order_statistics/quantile.proof.md``).

    >>> import snugdp
    >>> waits = [i % 60 for i in range(5000)]
    >>> snugdp.quantile(waits, 0.9, bounds=(0, 60), epsilon=1, delta=1e-6, beta=5).refused
    False
    """
    return Quantile(
        q=q,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        step=step,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)


def trimmed_mean(
    data: object,
    *,
    trim: Real = 0.1,
    bounds: tuple[Real, Real] | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "replace",
    beta: Real | None = None,
    rows: int | None = None,
    step: Real = 0,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private trimmed mean of one column: ``TrimmedMean(...).release(data)``.

    ``bounds``: public, what the column can hold (required). ``beta``: the proposal, how much one row may move the
    answer; without it one is made from public quantities. ``rows``: the number of rows (replace), or a public guess of
    it (add/remove). ``step``: the public spacing of the values. ``test_share``: the part of epsilon for the test.
    ``missing``: what a row that is no number counts as, by default the lower bound. ``ledger``: what is charged, a
    ledger or the path or URL of one; without it this call has a budget of its own and nothing is being summed up, but
    for the ``cost`` of the outcome. ``noise``: a ``Simulation`` for rehearsals.

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``order_statistics/trimmed_mean.proof.md``).

    >>> import snugdp
    >>> 4 < snugdp.trimmed_mean([5.0] * 1000, bounds=(0, 10), epsilon=5).value < 6
    True
    """
    return TrimmedMean(
        trim=trim,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        step=step,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)
