"""Draws from a finite law: exact by comparison with rationals, on the edges too, and read further only there."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA
from snugdp.audit.laws.goodness import cells_p
from snugdp.noise import Exact, Finite, Gaussian, Noise, Simulation
from snugdp.noise.exact import entropy
from snugdp.noise.exact.finite import finite
from snugdp.secrecy.secret import Secret

LAWS = [
    Finite(-3, (1, 3, 9, 14, 6, 2, 1)),
    Finite(5, (1,)),
    Finite(0, (10**40, 0, 0, 3 * 10**40 + 1, 1)),
    Finite(0, (1, 1)),
]


def place(law: Finite, u: Fraction) -> int:
    """Where a uniform number falls."""
    return law.lowest + sum(Fraction(edge, law.total) <= u for edge in list(accumulate(law.weights))[:-1])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_word_falls_where_the_rationals_say(law: Finite, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [(edge << 64) // law.total for edge in list(accumulate(law.weights))[:-1]]
    words = sorted({w for e in [*edges, 0, (1 << 64) - 1, 1 << 63] for w in (e - 1, e, e + 1) if 0 <= w < 1 << 64})
    monkeypatch.setattr(entropy, "words", lambda n: np.array(words[:n], dtype=np.uint64))
    for tail in (0, (1 << 64) - 1, 12345678901234567890):
        monkeypatch.setattr(entropy, "bits", lambda n, tail=tail: tail)
        found = finite(law, len(words)).tolist()
        for word, drawn in zip(words, found, strict=True):
            u = Fraction((word << 192) + (tail << 128) + (tail << 64) + tail, 1 << 256)
            assert drawn == place(law, u), (word, tail)


def test_only_ties_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def bits(n: int) -> int:
        asked.append(n)
        return 0

    monkeypatch.setattr(entropy, "bits", bits)
    law = Finite(0, (1, 2))
    words = np.array([0, (1 << 64) // 3 - 1, (1 << 64) // 3 + 1], dtype=np.uint64)
    monkeypatch.setattr(entropy, "words", lambda n: words)
    assert finite(law, 3).tolist() == [0, 0, 1]
    assert not asked
    words = np.array([(1 << 64) // 3] * 3, dtype=np.uint64)
    finite(law, 3)
    assert len(asked) == 3


@pytest.mark.parametrize("noise", [Exact(), Simulation(7)], ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("law", LAWS[:1], ids=str)
def test_the_law(noise: Noise, law: Finite) -> None:
    n = 40_000
    counts: NDArray[np.int64] = np.full(n, 20)
    released = noise.keys_above(Secret((range(n), counts)), law, 0)
    assert [key for key, _ in released] == list(range(n))
    seen = np.bincount([count - 20 - law.lowest for _, count in released], minlength=len(law.weights))
    right = [n * weight / law.total for weight in law.weights]
    narrow = [n * weight / law.total for weight in (1, 2, 9, 17, 5, 1, 1)]
    assert cells_p(seen, np.array(right) / sum(right)) > ALPHA > cells_p(seen, np.array(narrow) / sum(narrow))


@pytest.mark.parametrize("noise", [Exact(), Simulation(7)], ids=lambda noise: type(noise).__name__)
def test_only_keys_that_reach_the_threshold_are_shown_in_their_order(noise: Noise) -> None:
    law, keys = Finite(0, (1, 1)), ["a", "b", "c", "d"]
    shown = noise.keys_above(Secret((keys, np.array([9, 1, 10, 2]))), law, 9)
    assert [key for key, _ in shown] == ["a", "c"]
    assert all(type(count) is int and count >= 9 for _, count in shown)
    assert noise.keys_above(Secret(([], np.array([], dtype=np.int64))), law, 9) == []
    assert noise.keys_above(Secret((keys, np.array([9, 1, 10, 2]))), Gaussian("1/1000"), 9) == [("a", 9), ("c", 10)]


def test_what_is_refused_is_public() -> None:
    counts = Secret((["a"], np.array([1])))
    for weights in ((), (0, 1), (1, 0), (1, -1, 1)):
        with pytest.raises(ValueError, match="weights"):
            Finite(0, weights)
    with pytest.raises(TypeError, match="law must be one of Finite, Gaussian"):
        Exact().keys_above(counts, "finite", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="threshold"):
        Exact().keys_above(counts, Finite(0, (1,)), 2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="narrower"):
        Exact().keys_above(counts, Gaussian(10**30), 3)


def test_the_numbers_of_a_law() -> None:
    law = Finite(-1, (1, 2, 1, 4))
    assert (law.total, law.mean, law.highest) == (8, Fraction(1), 2)
    assert [law.chance(x) for x in range(-2, 4)] == [
        0,
        Fraction(1, 8),
        Fraction(1, 4),
        Fraction(1, 8),
        Fraction(1, 2),
        0,
    ]
    assert [law.at_least(x) for x in (-5, 0, 2, 3)] == [1, Fraction(7, 8), Fraction(1, 2), 0]
