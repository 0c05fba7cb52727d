"""How many runs: a hidden whole number with exactly the law that the accounting was made for.

Proof: ``stopping.proof.md``. The number is never released: it decides when a selection stops, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from snugdp.noise.exact.refine import Bits, refine
from snugdp.numerics.balls import ball, precision

if TYPE_CHECKING:
    from snugdp.accounting.selection import Law

_RARELY = Fraction(1, 10**9)  # how often a selection may end for nothing by its cut
_MAX_RUNS = 10**7  # runs
_WORKING = 128  # bits, where only the size of a tail is asked for


def stopping(law: Law, most: int, uniform: Callable[[int], arb] | None = None) -> int:
    """The smallest k with U < P(K <= k), for a uniform U; 0 where that is above ``most``.

    Guarantee: exactly the law of K with K > most turned into 0 (``stopping.proof.md``, Theorem 1).
    """
    drawn = Bits().ball if uniform is None else uniform  # 1.
    return refine(drawn, lambda u: _place(law, most, u))


def _place(law: Law, most: int, uniform: arb) -> int | None:
    """Between which two sums the number in the ball is, if that is certain."""
    total = arb(0)
    for k, chance in zip(range(most + 1), law.masses(), strict=False):
        total += chance  # 2.
        if uniform < total:
            return k  # 3.
        if not uniform > total:
            return None
    return 0  # 4.


def cut_off(law: Law) -> int:
    """A number of runs that is exceeded next to never: where a selection may stop at last."""
    with precision(_WORKING):
        left, rarely = arb(1), ball(_RARELY)
        for k, chance in enumerate(law.masses()):
            left -= chance
            if k and (left < rarely or k == _MAX_RUNS):
                break
    return k


def check_stopping(law: Law, most: int) -> None:
    """Refuse what is no law of a number of runs, and a cut before the first run."""
    from snugdp.accounting.selection import check_law

    check_law(law)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError("most, the largest number of runs, must be a whole number of at least 1")
