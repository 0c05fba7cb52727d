"""Propose, test, release: the two forms of the paper's framework. Proof: ``spine.proof.md``.

The proposal is public and was made before (``Plan``). Both forms pay first, test in private, then release: the context
takes the private part (``walk``) and lets nothing out of it but its outcome. A charge has one outcome: where a ledger
keeps it, a retry is shown that one (``once.py``).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from snugdp.core.outcome import Outcome
from snugdp.noise import Noise
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome

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


def release(
    plan: Plan, mechanism: Mechanism[Data, Output], data: Secret[Data], context: ReleaseContext
) -> Outcome[Output]:
    """What is private on all data alike: nothing to test.

    Guarantee: the plan's cost, which is the mechanism's own.
    """

    def walk(noise: Noise, _: object) -> StoredOutcome:
        return StoredOutcome(refused=False, value=mechanism.draw(data, noise))  # 4. release

    return context.pay(plan, walk)  # 1. pay; 2. the outcome of this charge, if there is one


def release_if_drawn(
    plan: Plan, mechanism: Mechanism[Data, Output | None], data: Secret[Data], context: ReleaseContext
) -> Outcome[Output]:
    """What is private on all data alike, and may draw that there is no answer: None stands for a refusal.

    Guarantee: the plan's cost, which is the mechanism's own (``spine.proof.md``, Theorem A0).
    """

    def walk(noise: Noise, _: object) -> StoredOutcome:
        drawn = mechanism.draw(data, noise)  # 4. release
        return StoredOutcome(refused=drawn is None, value=drawn)

    return context.pay(plan, walk)  # 1. pay; 2. the outcome of this charge, if there is one


class LookingMechanism(Protocol[Data_contra, Certificate_co, Output_co]):
    """What is released after looks at the data that decide how it goes on."""

    def draw(self, data: Secret[Data_contra], noise: Noise) -> tuple[Certificate_co, Output_co]:
        """One draw: what was seen on the way, which is released as well, and the output."""
        ...


def look_and_release(
    plan: Plan, mechanism: LookingMechanism[Data, Certificate, Output], data: Secret[Data], context: ReleaseContext
) -> Outcome[Output]:
    """What is private on all data alike, and shows what it has seen on the way as a certificate: nothing to test.

    Guarantee: the plan's cost, which is the mechanism's own (``spine.proof.md``, Theorem A0).
    """

    def walk(noise: Noise, _: object) -> StoredOutcome:
        seen, output = mechanism.draw(data, noise)  # 4. release
        return StoredOutcome(refused=False, value=output, certificate=seen)

    return context.pay(plan, walk)  # 1. pay; 2. the outcome of this charge, if there is one


def release_or_refuse(
    plan: Plan, test: PrivateTest[Data], mechanism: Mechanism[Data, Output], data: Secret[Data], context: ReleaseContext
) -> Outcome[Output]:
    """The refusing form. Only the bit of the test is seen. The plan has the steps "test" and "release".

    Guarantee: the plan's cost, for every pair of neighbours (``spine.proof.md``, Theorem A1).
    """

    def walk(noise: Noise, _: object) -> StoredOutcome:
        if not test.passes(data, noise.at("test")):  # 3. test
            return StoredOutcome(refused=True)
        return StoredOutcome(refused=False, value=mechanism.draw(data, noise.at("release")))  # 4. release

    return context.pay(plan, walk)  # 1. pay; 2. the outcome of this charge, if there is one


def certify_and_release(
    plan: Plan,
    certifier: Certifier[Data, Certificate],
    mechanism: Calibrated[Data, Certificate, Output],
    data: Secret[Data],
    context: ReleaseContext,
) -> Outcome[Output]:
    """The calibrating form. The certificate is released as well, and decides the proposal.

    Guarantee: the plan's cost, for every pair of neighbours (``spine.proof.md``, Theorem A2).
    """

    def walk(noise: Noise, _: object) -> StoredOutcome:
        certificate = certifier.certify(data, noise)  # 3. test
        output = mechanism.draw(data, certificate, noise)  # 4. release
        return (
            StoredOutcome(refused=True)
            if output is None
            else StoredOutcome(refused=False, value=output, certificate=certificate)
        )

    return context.pay(plan, walk)  # 1. pay; 2. the outcome of this charge, if there is one
