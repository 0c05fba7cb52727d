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

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``order_statistics/median.proof.md``; for replace
    ``order_statistics/quantile.proof.md``), whether it ends in a release or in a refusal.

    Parameters
    ----------
    data : array-like
        The column.
    bounds : (Real, Real)
        Public bounds on the values of the column; required.
    epsilon : Real
        Privacy budget.
    delta : Real, default=0
        Failure probability.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    beta : Real, optional
        The proposal: how far one row may move the answer. By default it is derived from public quantities.
    rows : int, optional
        The number of rows ("replace"), or a public guess of it ("add_remove").
    step : Real, default=0
        The public spacing of the values, such as 1 for whole years.
    test_share : Real, default=0.5
        The share of epsilon that pays for the test.
    missing : Real, optional
        What missing and invalid entries count as; the lower bound by default.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger to charge, or its path or URL. Without one this release is not counted against any budget; the
        outcome still states its ``cost``.
    noise : Noise, optional
        A ``Simulation`` rehearses the release, which is then NOT PRIVATE.

    Returns
    -------
    Outcome
        ``Released`` with the value, or ``Refused``; ``NotPrivate`` after a rehearsal.

    Examples
    --------
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

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``order_statistics/quantile.proof.md``).

    Parameters
    ----------
    data : array-like
        The column.
    q : Real
        Which quantile, between 0 and 1.
    bounds : (Real, Real)
        Public bounds on the values of the column; required.
    epsilon : Real
        Privacy budget.
    delta : Real, default=0
        Failure probability.
    neighbours : {"replace"}
        Which data sets count as neighbours.
    beta : Real, optional
        The proposal: how far one row may move the answer. By default it is derived from public quantities.
    rows : int, optional
        The number of rows ("replace"), or a public guess of it ("add_remove").
    step : Real, default=0
        The public spacing of the values, such as 1 for whole years.
    test_share : Real, default=0.5
        The share of epsilon that pays for the test.
    missing : Real, optional
        What missing and invalid entries count as; the lower bound by default.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger to charge, or its path or URL. Without one this release is not counted against any budget; the
        outcome still states its ``cost``.
    noise : Noise, optional
        A ``Simulation`` rehearses the release, which is then NOT PRIVATE.

    Returns
    -------
    Outcome
        ``Released`` with the value, or ``Refused``; ``NotPrivate`` after a rehearsal.

    Examples
    --------
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

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``order_statistics/trimmed_mean.proof.md``).

    Parameters
    ----------
    data : array-like
        The column.
    trim : Real, default=0.1
        The share of rows to drop at each end.
    bounds : (Real, Real)
        Public bounds on the values of the column; required.
    epsilon : Real
        Privacy budget.
    delta : Real, default=0
        Failure probability.
    neighbours : {"replace"}
        Which data sets count as neighbours.
    beta : Real, optional
        The proposal: how far one row may move the answer. Without it the sensitivity that holds for all data is used,
        and nothing is refused.
    rows : int, optional
        The number of rows ("replace"), or a public guess of it ("add_remove").
    step : Real, default=0
        The public spacing of the values, such as 1 for whole years.
    test_share : Real, default=0.5
        The share of epsilon that pays for the test.
    missing : Real, optional
        What missing and invalid entries count as; the lower bound by default.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger to charge, or its path or URL. Without one this release is not counted against any budget; the
        outcome still states its ``cost``.
    noise : Noise, optional
        A ``Simulation`` rehearses the release, which is then NOT PRIVATE.

    Returns
    -------
    Outcome
        ``Released`` with the value, or ``Refused``; ``NotPrivate`` after a rehearsal.

    Examples
    --------
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
