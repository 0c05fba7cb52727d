"""What a posterior sample leaks: the pair, its corners, the certified search; each attacked with exact densities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from snugdp.accounting.output import posterior
from snugdp.accounting.output.posterior import certified, rho_guess, rho_max
from tests.accounting.atoms import exact
from tests.effort import often, repeated, sampled

Array = NDArray[np.float64]


def hockey(m: Array, s2: Array, e: Array) -> Array:
    """N(0, 1) against N(m, s2) at e, all broadcast; nothing here comes from the library."""
    m, s = np.abs(m), np.sqrt(s2)
    a, b, c = (1 / s2 - 1) / 2, -m / s2, m**2 / (2 * s2) + np.log(s) - e
    discriminant = b * b - 4 * a * c
    q = (-b + np.sqrt(np.maximum(discriminant, 0))) / 2
    with np.errstate(all="ignore"):
        one, other = c / q, q / a
        low, high = np.minimum(one, other), np.maximum(one, other)
        inside = mass(low, high) - np.exp(e) * mass((low - m) / s, (high - m) / s)
        outside = ndtr(low) + ndtr(-high) - np.exp(e) * (ndtr((low - m) / s) + ndtr(-(high - m) / s))
    floor = np.maximum(0.0, -np.expm1(e))
    value = np.where(s2 > 1, inside, outside)
    return np.asarray(np.where(discriminant > 0, np.maximum(value, floor), np.where(s2 > 1, 0.0, floor)))


def mass(low: Array, high: Array) -> Array:
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def gauss(mu: float, e: Array) -> Array:
    value = ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu)
    return np.asarray(np.maximum(value, np.maximum(0.0, -np.expm1(e))))


LEVELS = np.linspace(-6, 6, 49)


def neighbours(n: int, seed: int) -> list[tuple[float, float, float, float, float, float]]:
    """Random data sets with one row more or less, in 1 to 4 dimensions: leverage, rho and the true law's 1-D pair.

    In the direction H^-1 x all of the difference between the two posteriors lies; the pair is read off there from
    the two data sets by themselves, without any formula for updates.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        d, rows = int(rng.integers(1, 5)), int(rng.integers(0, 9))
        lam, gamma = float(10 ** rng.uniform(-1.5, 2)), float(10 ** rng.uniform(-2, 1.5))
        X = rng.normal(size=(rows + 1, d))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)) * rng.choice([1.0, 3.0], size=(rows + 1, 1))
        y = rng.choice([-1.0, 1.0], rows + 1)
        sets = [(X[:-1], y[:-1]), (X, y)]
        laws = []
        for A, b in sets:
            H = A.T @ A + lam * np.eye(d)
            laws.append((np.linalg.solve(H, A.T @ b), H))
        for held, direction in ((0, 1.0), (1, -1.0)):
            (mean, H), (other, K) = laws[held], laws[1 - held]
            v = np.linalg.solve(H, X[-1])
            spread, wide = v @ H @ v, v @ H @ np.linalg.solve(K, H @ v)
            m = math.sqrt(gamma) * (v @ H @ (other - mean)) / math.sqrt(spread)
            least = float(np.linalg.eigvalsh(sets[held][0].T @ sets[held][0])[0])
            size = math.sqrt(gamma) * (1 + float(np.linalg.norm(mean)))
            found.append((direction, float(m), float(wide / spread), lam, max(least, 0.0), size))
    return found


def corners_of(lam: Array, least: Array, size: Array, added: NDArray[np.bool_]) -> tuple[Array, Array]:
    a = 1 / (lam + least)
    r = np.minimum(a, 1 / (lam + 1))
    m = np.where(added, size * np.sqrt(a / (1 + a)), size * np.sqrt(r) / (1 - r))
    return m, np.where(added, 1 / (1 + a), 1 / (1 - r))


@pytest.mark.slow
def test_thousands_of_neighbours_are_below_their_corners() -> None:
    direction, m, s2, lam, least, size = np.array(neighbours(2500, 5)).T[:, :, None]
    added = direction > 0
    bound = hockey(*corners_of(lam, least, size, added), LEVELS)
    true = hockey(m, s2, LEVELS)
    assert float((true - bound).max()) < 1e-12
    assert float((true / np.maximum(bound, 1e-9))[bound > 1e-6].max()) > 0.8  # and not far below
    short = hockey(*corners_of(lam, least, 0.9 * size, added), LEVELS)
    assert float((true - short).max()) > 1e-3


def test_the_plain_corner_of_an_added_row_does_not_dominate() -> None:
    """With sqrt(l)/(1 + l) in place of sqrt(l/(1 + l)), smaller leverages leak more at some epsilons below zero."""
    mu, rho = np.array([(mu, rho) for mu in (0.5, 1.0, 3.0) for rho in (0.1, 1.0, 3.0)]).T[:, :, None]
    below = hockey(np.sqrt(mu / 2) * rho / (1 + mu / 2), 1 / (1 + mu / 2), LEVELS)
    assert float((below - hockey(np.sqrt(mu) * rho / (1 + mu), 1 / (1 + mu), LEVELS)).max()) > 1e-4


@repeated
def test_corners_dominate_the_pairs_below_them() -> None:
    rng = np.random.default_rng(9)
    pairs = (often(6000, 20_000), 1)
    top, size = 10 ** rng.uniform(-3, 0.5, pairs), 10 ** rng.uniform(-1.5, 1, pairs)
    mu, rho = top * rng.uniform(size=top.shape), size * rng.uniform(size=size.shape)
    added = hockey(np.sqrt(mu) * rho / (1 + mu), 1 / (1 + mu), LEVELS)
    assert float((added - hockey(size * np.sqrt(top / (1 + top)), 1 / (1 + top), LEVELS)).max()) < 1e-12
    top, mu = top / (1 + top), mu / (1 + top)
    removed = hockey(np.sqrt(mu) * rho / (1 - mu), 1 / (1 - mu), LEVELS)
    assert float((removed - hockey(size * np.sqrt(top) / (1 - top), 1 / (1 - top), LEVELS)).max()) < 1e-12


SETTINGS = [
    (1 / 100, 0.2, 1e-7),
    (1 / 20, 0.2, 1e-7),
    (1 / 3, 0.8, 1e-7),
    (1e-3, 0.02, 1e-10),
    (1e-4, 0.2, 1e-6),
    (1e-2, 3.0, 1e-3),
    (1e-5, 0.5, 1e-9),
    (0.3, 2.0, 1e-2),
]


@sampled(9)
@repeated
@pytest.mark.parametrize(("leverage", "mu", "slack"), SETTINGS)
def test_the_certified_strength_holds_everywhere_and_is_nearly_the_largest(
    leverage: float, mu: float, slack: float
) -> None:
    added = exact(leverage)
    removed = added / (1 + added)
    rho = rho_max(added, removed, exact(mu) ** 2, exact(slack))
    assert rho > 0
    reach = 3 * mu * math.sqrt(2 * math.log(4 / slack)) + 3 * mu**2 + 40 * leverage
    levels = np.linspace(-reach, reach, often(50_001, 200_001))

    def excess(size: float) -> float:
        a, b = float(added), float(removed)
        narrow = hockey(np.array(size * math.sqrt(a / (1 + a))), np.array(1 / (1 + a)), levels)
        wide = hockey(np.array(size * math.sqrt(b) / (1 - b)), np.array(1 / (1 - b)), levels)
        return float((np.maximum(narrow, wide) - gauss(mu, levels)).max()) - slack

    assert excess(float(rho)) <= 1e-15
    assert excess(1.005 * float(rho)) > 0


def test_what_is_too_strong_is_never_certified() -> None:
    """Slightly above the crossing there is no certificate; where the variance alone is too much, none at all."""
    for leverage, mu, slack in SETTINGS[:4]:
        added = exact(leverage)
        guess = rho_guess(leverage, leverage / (1 + leverage), mu, slack)
        too_much = Fraction(guess * (1 + 2.0**-18)) ** 2
        sides = [posterior.corner("add", added, too_much), posterior.corner("remove", added / (1 + added), too_much)]
        assert not all(certified(side, exact(mu) ** 2, exact(slack)) for side in sides)
    assert rho_max(Fraction(1), Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**7)) == 0


@pytest.mark.slow
def test_extreme_leverages_end_on_the_safe_side() -> None:
    tiny = Fraction(1, 2**75)
    rho = rho_max(tiny, tiny, Fraction(1, 25), Fraction(1, 10**7))
    assert 0.99 < float(rho) * math.sqrt(tiny) / 0.2 < 1.0001
    assert rho_max(Fraction(10**40), 1 - Fraction(1, 10**40), Fraction(1, 25), Fraction(1, 10**7)) == 0


@repeated
def test_no_person_moves_the_solution_or_the_residual_further_than_claimed() -> None:
    """Lemmas 4 and 5 for several rows at once, both ways; with one row less in the bounds they would be false."""
    rng = np.random.default_rng(8)
    worst, false = np.zeros(2), np.zeros(2)
    for _ in range(often(300, 2000, 20_000)):
        d, n, k, ridge = (
            int(rng.integers(1, 4)),
            int(rng.integers(0, 30)),
            int(rng.integers(2, 6)),
            10 ** rng.uniform(-2, 1),
        )
        x = rng.normal(size=(n + k, d))
        x[n:] = x[-1] if rng.random() < 0.6 else x[n:]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = rng.choice([-1.0, 1.0], n + k)
        y[n:] = y[-1] if rng.random() < 0.7 else y[n:]
        fits = [_ridge(x[:rows], y[:rows], ridge) for rows in (n, n + k)]
        for (here, curvature), (there, _) in (fits, fits[::-1]):
            residual = 1 + float(np.linalg.norm(here))
            beyond = math.log(1 + float(np.linalg.norm(there))) - math.log(residual)
            moved = (float(np.linalg.norm(here - there)), abs(beyond))
            for rows, found in ((k, worst), (k - 1, false)):
                claimed = (
                    posterior.output_sensitivity(1, ridge, curvature, residual, rows),
                    posterior.log_lipschitz_sensitivity(rows, ridge, curvature),
                )
                found[:] = np.maximum(found, [a / float(b) for a, b in zip(moved, claimed, strict=True)])
    assert (worst <= 1 + 1e-9).all()
    assert (worst > 0.99).all()
    assert (false > 1.1).all()


def _ridge(x: Array, y: Array, ridge: float) -> tuple[Array, float]:
    gram = x.T @ x
    theta: Array = np.linalg.solve(gram + ridge * np.eye(len(gram)), x.T @ y).astype(np.float64)
    return theta, max(float(np.linalg.eigvalsh(gram)[0]) - 1e-9, 0.0)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="direction"):
        posterior.pair("both", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="below 1"):
        posterior.pair("remove", 1, 1)
    with pytest.raises(ValueError, match="ridge must be above 0"):
        posterior.leverages(1, 0, 0)
    with pytest.raises(ValueError, match="above 0"):
        rho_max(Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1, 2))
