"""Propose, test, release: the two forms of the paper's framework. Proof: ``spine.proof.md``.

The proposal is public and was made before (``Plan``). Both forms pay first, test in private, then release.
"""

from __future__ import annotations

from typing import Never, Protocol, TypeVar

from snugdp.noise import Noise
from snugdp.outcome import Ledger, NotPrivate, Outcome, Receipt, Refused, Released
from snugdp.ptr.propose import Plan
from snugdp.secret import Secret

Data = TypeVar("Data")
Data_contra = TypeVar("Data_contra", contravariant=True)
Output = TypeVar("Output")
Output_co = TypeVar("Output_co", covariant=True)
Certificate = TypeVar("Certificate")
Certificate_co = TypeVar("Certificate_co", covariant=True)
Certificate_contra = TypeVar("Certificate_contra", contravariant=True)


class PrivateTest(Protocol[Data_contra]):
    """A private bit that says yes on uncertified data with probability at most its failure delta."""

    def passes(self, data: Secret[Data_contra], noise: Noise) -> bool:
        """One draw of the test."""
        ...


class Certifier(Protocol[Data_contra, Certificate_co]):
    """Releases a bound on the data-dependent loss that is wrong with probability at most its failure delta."""

    def certify(self, data: Secret[Data_contra], noise: Noise) -> Certificate_co:
        """One draw of the bound."""
        ...


class Mechanism(Protocol[Data_contra, Output_co]):
    """What is released once its privacy on these data is certified."""

    def draw(self, data: Secret[Data_contra], noise: Noise) -> Output_co:
        """One draw, with fresh randomness."""
        ...


class Calibrated(Protocol[Data_contra, Certificate_contra, Output_co]):
    """A mechanism whose proposal is a public function of the certificate; ``None`` stands for refusal."""

    def draw(self, data: Secret[Data_contra], certificate: Certificate_contra, noise: Noise) -> Output_co | None:
        """One draw of the mechanism that the certificate permits."""
        ...


def release_or_refuse(
    plan: Plan, test: PrivateTest[Data], mechanism: Mechanism[Data, Output], data: Secret[Data], purse: Purse
) -> Outcome[Output]:
    """The refusing form. Only the bit of the test is seen.

    Guarantee: the plan's cost, for every pair of neighbours (``spine.proof.md``, Theorem A1).
    """
    paid = purse.pay(plan)  # 1. pay
    if not test.passes(data, purse.noise):  # 2. test
        return paid.refused()
    return paid.released(mechanism.draw(data, purse.noise))  # 3. release


def certify_and_release(
    plan: Plan,
    certifier: Certifier[Data, Certificate],
    mechanism: Calibrated[Data, Certificate, Output],
    data: Secret[Data],
    purse: Purse,
) -> Outcome[Output]:
    """The calibrating form. The certificate is released as well, and decides the proposal.

    Guarantee: the plan's cost, for every pair of neighbours (``spine.proof.md``, Theorem A2).
    """
    paid = purse.pay(plan)  # 1. pay
    certificate = certifier.certify(data, purse.noise)  # 2. test
    output = mechanism.draw(data, certificate, purse.noise)  # 3. release
    return paid.refused() if output is None else paid.released(output, certificate)


class Purse:
    """Where the money and the randomness come from: a ledger for releases, a seed for rehearsals, never both."""

    def __init__(self, noise: Noise, ledger: Ledger | None = None) -> None:
        if noise.private and ledger is None:
            raise ValueError("a release needs a ledger to charge; give one, such as snugdp.MemoryLedger(...)")
        if not noise.private and ledger is not None:
            raise ValueError("a simulation is NOT PRIVATE and cannot be charged: leave out the ledger")
        self.noise = noise
        self._ledger = ledger

    def pay(self, plan: Plan) -> Paid:
        """Charge the plan before anything is drawn; what a rehearsal would cost is only noted."""
        return Paid(plan, self._ledger.charge(plan.cost, plan.what) if self._ledger else None)


class Paid:
    """A plan that has been charged (or is being rehearsed): the only maker of outcomes."""

    def __init__(self, plan: Plan, receipt: Receipt | None) -> None:
        self._cost, self._receipt = plan.cost, receipt

    def released(self, value: Output, certificate: object = None) -> Released[Output] | NotPrivate[Output]:
        """The outcome of a release."""
        if self._receipt is None:
            return NotPrivate(value, False, self._cost, certificate)
        return Released(value, self._cost, self._receipt, certificate)

    def refused(self) -> Refused | NotPrivate[Never]:
        """The outcome of a refusal."""
        if self._receipt is None:
            return NotPrivate(None, True, self._cost)
        return Refused(self._cost, self._receipt)
