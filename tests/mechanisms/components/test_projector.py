"""Sensitivities of projectors and spectra, by a search uphill for worst cases; certificates, by their frequency."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Simulation
from snugdp.mechanisms.components.base import Rank, Start, Task, edge
from snugdp.mechanisms.components.projector import (
    KEPT,
    W0,
    Dual,
    GapCertificate,
    PairTest,
    Projector,
    SpectrumTest,
    sensitivity,
    sensitivity_above,
)
from snugdp.mechanisms.linear.noisy_sums import symmetric
from snugdp.noise import Gaussian
from snugdp.numerics import eigenvalues
from snugdp.numerics.eigenvalues import spectrum
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema
from tests.effort import often, repeated, sampled

Array = Any


def top(C: Array, k: int) -> tuple[Array, float]:
    values, vectors = np.linalg.eigh(C)
    return vectors[:, -k:] @ vectors[:, -k:].T, float(values[-k] - values[-k - 1])


def distance(values: Array, x: Array, k: int, sign: int, factor: float = 1.0) -> float:
    """How far the projector of diag(values) moves, over what is claimed. A shorter row is allowed."""
    x = x / max(1.0, float(np.linalg.norm(x)))
    C = np.diag(values)
    one, gap = top(C, k)
    other, _ = top(C + sign * np.outer(x, x), k)
    claimed = sensitivity(gap)
    return 0.0 if claimed is None else float(np.linalg.norm(one - other)) / (factor * claimed)


def climbed(rng: np.random.Generator, k: int, p: int, sign: int, factor: float) -> float:
    """The worst ratio that random steps uphill find, from eigenvalues with a gap above 1 and any row."""
    gap = 1 + rng.exponential(2)
    bottom = np.sort(rng.uniform(1.5, 4, p - k))
    values = np.concatenate([bottom, bottom[-1] + gap + np.sort(rng.exponential(1, k))])
    x, best, size = rng.normal(size=p), 0.0, 0.5
    for _ in range(400):
        step_x = x + size * rng.normal(size=p)
        moved = values + size * 0.3 * rng.normal(size=p)
        moved = np.concatenate([np.sort(moved[: p - k]), np.sort(moved[p - k :])])
        if moved[0] < 1 or moved[p - k] - moved[p - k - 1] <= 1.01:
            moved = values
        found = distance(moved, step_x, k, sign, factor)
        if found > best:
            x, values, best = step_x / max(1.0, float(np.linalg.norm(step_x))), moved, found
        else:
            size = max(size * 0.98, 1e-3)
    return best


SHAPES = [(1, 2), (1, 3), (2, 3), (2, 5), (3, 6)]


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("sign", [1, -1])
def test_no_row_turns_the_projector_further_than_claimed(sign: int) -> None:
    rng = np.random.default_rng(1)
    worst = [climbed(rng, k, p, sign, 1.0) for k, p in SHAPES for _ in range(2)]
    assert max(worst) <= 1 + 1e-7
    assert max(worst) > 0.98


def test_a_smaller_constant_is_caught() -> None:
    rng = np.random.default_rng(1)
    assert max(climbed(rng, 1, 2, 1, 0.97) for _ in range(4)) > 1


@repeated
def test_no_person_turns_the_projector_further_than_claimed() -> None:
    """Several rows of weight 1 in all: gaps in units of what a person can add. Equal rows reach the bound."""
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(often(600, 2000, 5000)):
        p, rows = int(rng.integers(2, 6)), int(rng.integers(2, 6))
        k, gap = int(rng.integers(1, p)), 1.001 + rng.exponential(1)
        C = np.diag(np.concatenate([np.zeros(p - k), np.full(k, gap)]) + (rng.random() < 0.5) * rng.uniform(0, 0.1, p))
        one, found = top(C, k)
        x = rng.normal(size=(rows, p)) * rng.choice([0.05, 1.0], p)
        if rng.random() < 0.5:
            angle = math.pi / 4 + rng.choice([-1, 1]) * math.asin(1 / max(found, 1.0)) / 2
            x = np.tile(math.cos(angle) * np.eye(p)[-1] + math.sin(angle) * np.eye(p)[0], (rows, 1))
        x /= np.linalg.norm(x, axis=1, keepdims=True) * math.sqrt(rows)
        claimed = sensitivity(found)
        if claimed is None:
            continue
        for sign in (1, -1):
            other, _ = top(C + sign * x.T @ x, k)
            worst = max(worst, float(np.linalg.norm(one - other)) / claimed)
    assert 0.99 < worst <= 1 + 1e-7


@repeated
def test_replaced_rows_need_twice_the_gap() -> None:
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(often(1000, 3000)):
        p, gap = int(rng.integers(2, 5)), 2 + rng.exponential(2)
        k = int(rng.integers(1, p))
        C = np.diag(np.concatenate([rng.uniform(2, 3, p - k), 3 + gap + rng.exponential(1, k)]))
        one, found = top(C, k)
        x, y = rng.normal(size=(2, p))
        if rng.random() < 0.7:
            x = np.zeros(p)
            x[p - k - 1 : p - k + 1] = 1
            y = x * np.where(np.arange(p) == p - k, -1, 1) + 0.02 * rng.normal(size=p)
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        other, _ = top(C - np.outer(x, x) + np.outer(y, y), k)
        claimed = sensitivity(found, "replace")
        assert claimed is not None
        worst = max(worst, float(np.linalg.norm(one - other)) / claimed)
    assert 0.8 < worst <= 1 + 1e-9
    assert sensitivity(2, "replace") is None
    assert sensitivity(1) is None
    assert sensitivity(1 + 1e-9) is not None


def test_the_sensitivity_is_rounded_up() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        gap = Fraction(float(1 + rng.exponential(100)))
        exact = math.sqrt(2) * math.sin(math.asin(1 / float(gap)) / 2)
        assert float(sensitivity_above(gap)) == pytest.approx(exact, rel=1e-6)
        assert Fraction(sensitivity(gap) or 0) >= sensitivity_above(gap) * (1 - Fraction(1, 2**50))


@repeated
def test_no_row_moves_the_spectrum_further_than_claimed() -> None:
    rng = np.random.default_rng(4)
    worst: dict[str, float] = {"all": 0.0, "pair": 0.0}
    for trial in range(often(1500, 4000)):
        p = int(rng.integers(2, 8))
        k = int(rng.integers(1, p))
        q = np.linalg.qr(rng.normal(size=(p, p)))[0]
        values = np.sort(rng.exponential(rng.choice([1, 10, 100]), p))[::-1]
        x = q[:, int(rng.integers(p))] if trial % 2 else rng.normal(size=p)
        x = x / np.linalg.norm(x)
        C = q @ np.diag(values) @ q.T
        moved = np.linalg.eigvalsh(C + np.outer(x, x))[::-1] - np.linalg.eigvalsh(C)[::-1]
        w = float(W0) * min(k, p - k)
        pair = np.array([moved[k - 1] - moved[k], w * (moved[:k].mean() - moved[k:].mean())])
        worst["all"] = max(worst["all"], float(np.linalg.norm(moved)))
        worst["pair"] = max(worst["pair"], float(np.linalg.norm(pair)) / math.sqrt(1 + float(W0) ** 2))
    assert worst["all"] <= 1 + 1e-9
    assert worst["pair"] <= 1 + 1e-9
    assert min(worst.values()) > 0.97  # so a smaller constant would be caught


def cells(C: Array, unit: int) -> list[list[int]]:
    found: list[list[int]] = np.rint((C + C.T) / 2 * unit).astype(np.int64).tolist()
    return found


@pytest.mark.parametrize("accuracy", [Fraction(1, 2**14), Fraction(1, 40)])
def test_computed_projectors_obey_the_enlarged_bound(monkeypatch: pytest.MonkeyPatch, accuracy: Fraction) -> None:
    """Lemma 4: also where the neighbour has all but no gap, and with vectors as wrong as a certificate allows."""
    rng = np.random.default_rng(5)
    unit, kept, honest, worst = 2**30, 5 * float(accuracy), eigenvalues._guess, 0.0
    for trial in range(120):
        p = int(rng.integers(2, 5))
        k = int(rng.integers(1, p))
        gap = 1 + kept + (1e-3 if trial % 2 else rng.exponential(1))
        bottom = np.full(p - k, 3.0)
        values = np.concatenate([bottom, np.full(k, 3 + gap)])
        q = np.linalg.qr(rng.normal(size=(p, p)))[0]
        C = q @ np.diag(values) @ q.T
        a, b = (q[:, p - k], q[:, p - k - 1])
        angle = rng.uniform(0, math.pi / 2)
        x = math.cos(angle) * a + math.sin(angle) * b
        sign = -1 if trial % 3 == 0 else 1
        spoil = float(accuracy) / (2 * (3 + gap)) if trial % 4 < 2 else 0.0

        def guess(matrix: Any, bits: int, spoil: float = spoil) -> Any:
            turn = spoil * rng.normal(size=(len(matrix),) * 2)
            V = np.array(eigenvalues.whole(honest(matrix, bits)), dtype=float) / 2.0**bits
            return eigenvalues.to_grid(V @ np.linalg.qr(np.eye(len(matrix)) + turn - turn.T)[0], bits)

        monkeypatch.setattr(eigenvalues, "_guess", guess)
        found = [spectrum(cells(M, unit), unit, accuracy) for M in (C, C + sign * np.outer(x, x))]
        one, other = (np.array(each.projector(k, 50), dtype=float) / 2**50 for each in found)
        true = float(np.sort(np.linalg.eigvalsh(C))[p - k] - np.sort(np.linalg.eigvalsh(C))[p - k - 1]) - kept
        bound = float(sensitivity_above(Fraction(true))) + kept / true
        worst = max(worst, float(np.linalg.norm(one - other)) / bound)
    assert worst <= 1
    assert worst > 0.6
    assert KEPT == 5 * eigenvalues.ACCURACY


def scattered(values: list[float], unit: int = 2**20) -> Secret[Any]:
    return Secret(spectrum(cells(np.diag(values), unit), unit))


@pytest.mark.slow
@repeated
def test_certificates_fail_as_rarely_as_claimed() -> None:
    noise, failure = Simulation(11), Fraction(1, 5)
    data = scattered([50.0, 30.0, 10.0, 5.0])
    pair = PairTest(2, entries=4, mu_squared=Fraction(1, 4), failure=failure)
    whole = SpectrumTest(Rank.of("auto", 4), entries=4, mu_squared=Fraction(1, 4), failure=failure)
    draws = often(1000, 3000)
    wrong = sum(pair.draw(data, Start(), noise).gap > 20 for _ in range(draws))
    margin = 5 * math.sqrt(0.2 * 0.8 / draws)
    assert 0.2 - margin - 0.02 < wrong / draws < 0.2 + margin
    gaps, bad = {1: 20, 2: 20, 3: 5}, 0
    for _ in range(draws):
        tested = whole.draw(data, Start(), noise)
        noisy = [Fraction(value) for value in tested.spectrum]
        off = Fraction(tested.spectrum[tested.k - 1] - tested.spectrum[tested.k]) - Fraction(tested.gap)
        bad += any(noisy[j - 1] - noisy[j] - off > gap for j, gap in gaps.items())
    assert 0.02 < bad / draws < 0.2 + margin


def test_the_norm_of_symmetric_noise_is_bounded() -> None:
    noise = Simulation(12)
    zeros = Secret([[0] * 6 for _ in range(6)])
    beyond = 0
    for _ in range(2000):
        W = np.array(symmetric(zeros, Gaussian(2**20), noise)) / 2**20
        beyond += float(np.abs(np.linalg.eigvalsh(W)).max()) > edge(6, 0.3)
    assert beyond / 2000 < 0.3


def task(k: Any = 1, p: int = 3, **options: Any) -> Task:
    layout = MatrixSchema(tuple(f"x{i}" for i in range(p)), 1)
    return Task(layout, options.pop("budget", Budget(1, 1e-6)), Rank.of(k, p), **options)


def test_the_gap_of_a_noisy_matrix_is_certified_as_rarely_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a failure of one in two: never certain to fail, and the bound is not trivial."""
    monkeypatch.setattr("snugdp.mechanisms.components.projector.FAILURE", Fraction(1, 2))
    one = task(budget=Budget(2, 0.5), rows=1)
    dual, noise, unit = Dual(one), Simulation(13), one.unit
    first = dual._shares[1]
    exact = cells(np.diag([60.0, 20.0, 5.0]), unit)
    wrong = 0
    for _ in range(300):
        noisy = symmetric(Secret(exact), Gaussian(Fraction(math.ceil(unit / math.sqrt(first)))), noise)
        bound = dual.certified(noisy, 1)
        wrong += bound > 40
        assert bound > 40 - 6 * edge(3, 0.01) / math.sqrt(first)
    assert wrong / 300 < 0.25


def test_the_rule_decides_by_gap_and_spread() -> None:
    assert GapCertificate(1, Fraction(1000), 1100.0, Start()).wins
    assert not GapCertificate(1, Fraction(1000), 1500.0, Start()).wins
    assert not GapCertificate(1, Fraction(1), -5.0, Start()).wins
    assert not GapCertificate(1, -math.inf, -5.0, Start()).wins
    assert GapCertificate(1, Fraction(2), -5.0, Start()).wins


def test_plans_cost_what_the_budget_allows() -> None:
    for method in (Projector(task(1)), Projector(task("auto")), Dual(task(0.5, moves=True))):
        cost = method.plan().cost
        assert cost.fits(Budget(1, 1e-6))
        assert not cost.fits(Budget(0.999, 1e-6))
        assert cost.delta == Fraction(1, 10**7)
        assert "w0" in str(method.plan()) or isinstance(method, Dual)
    with pytest.raises(ValueError, match="no gap"):
        Projector(task(3))
    for bad, words in (
        ({"budget": Budget(1)}, "delta above 0"),
        ({"budget": Budget(1, 1e-6, "replace")}, "add_remove"),
    ):
        with pytest.raises(ValueError, match=words):
            task(**bad)  # type: ignore[arg-type]
