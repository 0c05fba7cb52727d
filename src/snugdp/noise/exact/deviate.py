"""One exact draw at a time: a sign, a whole part and a fraction that is read as far as it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from snugdp.noise.exact import entropy
from snugdp.noise.exact.refine import Bits
from snugdp.noise.exact.shapes import Shape, accepts, whole_part


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
