"""A value plus continuous noise, in balls: the law's standard draw, its enclosure, and the largest of several sums."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.exact.refine import exactly, refine
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL, Shape
from snugdp.noise.laws import Continuous, Gaussian, Gumbel


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
