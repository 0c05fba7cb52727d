"""From a released bound to a bit: pass if the loss at the bound is within the limit. Proof: ``bound.proof.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from snugdp.noise import Noise
from snugdp.ptr.spine import Certifier
from snugdp.secret import Secret

Data = TypeVar("Data")
Certificate = TypeVar("Certificate")
PROOF = "ptr/certify/bound.proof.md#theorem-1"


@dataclass(frozen=True)
class BoundTest(Generic[Data, Certificate]):
    """Pass iff ``loss(certificate) <= limit``. The certificate itself is not shown.

    Guarantee: the bit costs what the certificate costs. Its failure is that of the certificate, if ``loss`` at a
    certificate that holds is at least the data-dependent loss (for statistics: if it is monotone on their sides).
    """

    certifier: Certifier[Data, Certificate]
    loss: Callable[[Certificate], float]
    limit: Fraction

    def passes(self, data: Secret[Data], noise: Noise) -> bool:
        """One draw of the test. A loss that is not a number does not pass."""
        return bool(self.loss(self.certifier.certify(data, noise)) <= self.limit)
