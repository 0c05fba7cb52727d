"""From a released bound to a bit: pass if the loss at the bound is within the limit. Proof: ``bound.proof.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.noise import Noise
from snugdp.noise.number import number
from snugdp.release.spine import Certifier
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.secrecy.silence import attempt

Data = TypeVar("Data")
Certificate = TypeVar("Certificate")


@dataclass(frozen=True)
class BoundTest(Generic[Data, Certificate]):
    """Pass iff ``loss(certificate) <= limit``. The certificate itself is not shown.

    Guarantee: the bit costs what the certificate costs. Its failure is that of the certificate, if ``loss`` at a
    certificate that holds is at least the data-dependent loss (for statistics: if it is monotone on their sides).
    """

    certifier: Certifier[Data, Certificate]
    loss: Callable[[Certificate], Any]
    limit: Fraction

    def passes(self, data: Secret[Data], noise: Noise) -> bool:
        """One draw of the test. The loss may be a number of any type; what is no number does not pass.

        A loss that fails is a ``PrivateComputationError``, which refuses, like every other function that fails.
        """
        certificate = self.certifier.certify(data, noise)
        worked, loss = attempt(lambda: self.loss(certificate))
        if not worked:
            raise PrivateComputationError(
                "the loss at the bounds that were drawn failed. Test the function on all bounds within their ranges"
            )
        return bool(number(loss) <= self.limit)
