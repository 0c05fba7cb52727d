"""One exact draw at a time: a sign, a whole part and a fraction that is read as far as it is needed.

And values plus such noise, in balls: the enclosure of a law's draw, and the largest of several sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from snugdp.noise.exact import entropy
from snugdp.noise.exact.refine import Bits, exactly, refine
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL, Shape, accepts, whole_part
from snugdp.noise.laws import Continuous, Gaussian, Gumbel


@dataclass(frozen=True, slots=True)
class Deviate:
    """The real number ``whole + fraction``, negated if ``negative``."""

    negative: bool
    whole: int
    fraction: Bits

    def magnitude(self, count: int) -> arb:
        """A ball around the absolute value, from at least ``count`` bits of its fraction."""
        return self.whole + self.fraction.ball(count)

    def ball(self, count: int) -> arb:
        """A ball around the number, from at least ``count`` bits of its fraction."""
        return -self.magnitude(count) if self.negative else self.magnitude(count)

    def floor(self, scale: Fraction, shift: Fraction) -> int:
        """The whole part of ``scale * (whole + fraction) + shift``, reading as many bits as it takes.

        Guarantee: exact for positive ``scale`` (``filtered.proof.md``, Theorem 2), from whole numbers alone.
        """
        slope = scale.numerator * shift.denominator
        offset = shift.numerator * scale.denominator
        unit = scale.denominator * shift.denominator
        while True:
            count = self.fraction.count
            low = slope * (self.whole << count | self.fraction.value) + (offset << count)
            first, last = low // (unit << count), (low + slope) // (unit << count)
            if first == last:
                return first
            self.fraction.extend(count + 64)


def deviate(shape: Shape) -> Deviate:
    """A draw from the shape with a fair sign; every choice is made on balls.

    Guarantee: exactly the standard normal or the standard Laplace law (``filtered.proof.md``, Theorem 1).
    """
    while True:
        k = whole_part(shape, Bits())
        x = Bits()
        if accepts(shape, k, x, Bits()):
            return Deviate(entropy.bits(1) == 1, k, x)


def shape_of(law: Continuous) -> tuple[Shape, Fraction]:
    """The half-law that the noise is made of, and its scale."""
    return (HALF_NORMAL, law.sigma) if isinstance(law, Gaussian) else (EXPONENTIAL, law.scale)


def ball_of(law: Continuous, drawn: Deviate, accuracy: int) -> arb:
    """A ball around the noise itself. Minus the logarithm of an exponential is a Gumbel."""
    _, scale = shape_of(law)
    standard = -drawn.magnitude(accuracy).log() if isinstance(law, Gumbel) else drawn.ball(accuracy)
    return exactly(scale) * standard


def largest(sums: list[tuple[Fraction, Deviate]], law: Continuous) -> int:
    """The position of the largest sum. A position is dropped only when it is certainly beaten."""
    running = list(range(len(sums)))

    def enclose(accuracy: int) -> list[arb]:
        return [exactly(sums[i][0]) + ball_of(law, sums[i][1], accuracy) for i in running]

    def decide(balls: list[arb]) -> int | None:
        nonlocal running
        leader = balls[0]
        for ball in balls:
            leader = ball if ball > leader else leader
        running = [i for i, ball in zip(running, balls, strict=True) if not ball < leader]
        return running[0] if len(running) == 1 else None

    return refine(enclose, decide)
