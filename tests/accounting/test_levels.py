"""Sums of losses with finitely many levels: exact where there is room, and never too small."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom, Branch, Levels

Loss = list[tuple[Fraction, Fraction]]


def made(rng: np.random.Generator, step: Fraction, count: int = 6) -> Loss:
    places = sorted(rng.choice(40, count, replace=False).tolist())
    parts = rng.integers(1, 50, count)
    return [(step * place, Fraction(int(part), int(parts.sum()))) for place, part in zip(places, parts, strict=True)]


def by_hand(*losses: Loss) -> dict[Fraction, Fraction]:
    total: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for loss in losses:
        longer: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for one, p in total.items():
            for other, q in loss:
                longer[one + other] += p * q
        total = dict(longer)
    return total


def added(losses: list[Loss]) -> Levels:
    total = Levels.none()
    for loss in losses:
        total = total.plus(Levels.of(loss))
    return total


def never_smaller(found: dict[Fraction, Fraction], expected: dict[Fraction, Fraction]) -> bool:
    """Whether every loss of the one is exceeded as often by the other."""
    least, tail, other = sorted(found.items()), Fraction(0), Fraction(0)
    for at, p in sorted(expected.items(), reverse=True):
        tail += p
        while least and least[-1][0] >= at:
            other += least.pop()[1]
        if other < tail:
            return False
    return True


@pytest.mark.parametrize("steps", [(1, 1), (1, 2), (8, 1, 2), (Fraction(1, 4), 3)])
def test_sums_are_exact_where_steps_go_together(steps: tuple[Fraction | int, ...]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        losses = [made(rng, Fraction(step)) for step in steps]
        total = added(losses)
        expected, found = by_hand(*losses), dict(total.pairs())
        assert set(found) == set(expected)
        assert all(0 <= found[loss] - expected[loss] < Fraction(1, 2**300) for loss in found)


@pytest.mark.parametrize("steps", [(Fraction(1, 3), Fraction(1, 5)), (Fraction(1, 7), 1, Fraction(2, 3))])
def test_sums_are_never_too_small_where_they_do_not(steps: tuple[Fraction, ...]) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        losses = [made(rng, Fraction(step)) for step in steps]
        total = added(losses)
        expected, found = by_hand(*losses), dict(total.pairs())
        assert never_smaller(found, expected)


def test_too_many_levels_are_put_together_at_the_larger_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "MAX_LEVELS", 8)
    monkeypatch.setattr(composition, "_MAX_SUM_LEVELS", 64)
    rng = np.random.default_rng(3)
    for _ in range(5):
        losses = [made(rng, Fraction(step), 5) for step in (1, 1, Fraction(1, 2), 16)]
        total = added(losses)
        few, expected = total.coarse(8), by_hand(*losses)
        assert len(few.weights) <= 9
        found = dict(few.pairs())
        assert never_smaller(found, expected)
        assert max(found) <= max(expected) + 3 * few.step + 32


def test_far_apart_levels_need_no_room() -> None:
    far = Levels.of([(Fraction(1, 2**40), Fraction(1, 2)), (Fraction(2**40), Fraction(1, 2))])
    assert len(far.weights) <= composition.MAX_LEVELS + 1
    found = dict(far.pairs())
    assert max(found) >= 2**40
    assert sum(found.values()) >= 1


def test_delta_of_composed_levels_is_that_of_the_sum_by_hand() -> None:
    rng, none = np.random.default_rng(4), Fraction(0)
    for _ in range(10):
        losses = [made(rng, Fraction(1, 16)) for _ in range(3)]
        atoms = tuple(Atom((Branch(none, none),), tuple(Branch(none, s, p) for s, p in loss)) for loss in losses)
        for epsilon in (Fraction(1), Fraction(3), Fraction(5)):
            found = composition.delta(mu_squared=none, atoms=atoms, epsilon=epsilon)
            exact = sum(
                float(p) * max(0.0, -float(np.expm1(float(epsilon - loss)))) for loss, p in by_hand(*losses).items()
            )
            assert found == pytest.approx(exact, rel=1e-9, abs=1e-15)
