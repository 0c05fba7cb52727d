"""The hidden number of runs has exactly its law with a cut; the law without one is in test_sites.py."""

from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from snugdp.accounting import selection
from snugdp.audit.bounds import ALPHA
from snugdp.audit.laws.goodness import cells_p
from snugdp.noise import Exact, Noise, Simulation
from snugdp.noise.exact.stopping import cut_off, stopping
from snugdp.numerics.balls import ball
from tests.accounting.selection.selected import by_the_books
from tests.effort import sampled

LAWS: dict[str, Any] = {
    "geometric": selection.geometric(5),
    "logarithmic": selection.logarithmic(5),
    "eta": selection.truncated_negative_binomial(Fraction(-1, 2), 5),
    "poisson": selection.poisson(5),
    "binomial": selection.binomial(5),
}


@sampled(6)
@pytest.mark.parametrize("name", LAWS)
def test_what_is_above_the_cut_is_no_run_at_all(name: str) -> None:
    law, noise = LAWS[name], Exact()
    drawn = [noise.stopping(law, 4) for _ in range(3000)]
    assert max(drawn) <= 4
    runs = [by_the_books(law, k) for k in range(1, 5)]
    assert cells_p(np.bincount(drawn, minlength=5), [1 - sum(runs), *runs]) > ALPHA


def test_every_uniform_number_finds_its_cell() -> None:
    """Next to the borders of the cells, on both sides, at distances that floats cannot see."""
    law, tiny = selection.geometric(3), Fraction(1, 10**60)
    sums = list(accumulate(Fraction(1, 3) * Fraction(2, 3) ** k for k in range(8)))  # P(K <= k + 1)
    for k, border in enumerate(sums, start=1):
        for most in (k, 50):
            assert stopping(law, most, lambda p, u=border - tiny: ball(u)) == k  # type: ignore[misc]
        assert stopping(law, 50, lambda p, u=border + tiny: ball(u)) == k + 1  # type: ignore[misc]
        assert stopping(law, k, lambda p, u=border + tiny: ball(u)) == 0  # type: ignore[misc]


@pytest.mark.parametrize("name", LAWS)
def test_the_cut_off_is_next_to_never_exceeded(name: str) -> None:
    law = LAWS[name]
    most = cut_off(law)
    assert selection.beyond(law, most) <= 1e-9 < selection.beyond(law, most // 2)


@pytest.mark.parametrize("noise", [Exact(), Simulation(3)], ids=lambda noise: type(noise).__name__)
def test_bad_input_is_refused(noise: Noise) -> None:
    for most in (0, -1, True, 2.5):
        with pytest.raises(ValueError, match="whole number"):
            noise.stopping(LAWS["geometric"], most)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="law"):
        noise.stopping("geometric", 5)  # type: ignore[arg-type]


def test_a_seed_repeats() -> None:
    law = LAWS["poisson"]
    first, second = Simulation(8), Simulation(8)
    assert [first.stopping(law, 99) for _ in range(20)] == [second.stopping(law, 99) for _ in range(20)]
