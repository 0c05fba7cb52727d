"""Displacement, curvature and shaped noise against many neighbouring pairs, and the plan against its definition.

SNUGDP_ATTACK=20 in the environment makes the searches twenty times as long.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, ndtr

from snugdp.accounting import gaussian
from snugdp.accounting.output.glm import Constants, LossConstants, ShapedNoise, TestedRelease, displacement
from snugdp.tables.losses.losses import LogCosh, Logistic, Loss, PseudoHuber, SoftHinge, TamedPoisson
from tests.accounting.objective.glm_laws import tamed_poisson
from tests.accounting.objective.perturbed import Array
from tests.effort import sampled
from tests.vectors.glm import constants_of

TIMES = int(os.environ.get("SNUGDP_ATTACK", "1"))
H, C, CAP, LARGEST = 0.4, 0.7, 0.5, 4.0
LOSSES: dict[str, Loss] = {
    "logistic": Logistic(),
    "softplus_hinge": SoftHinge(H),
    "pseudo_huber": PseudoHuber(C),
    "log_cosh": LogCosh(C),
    "tamed_poisson": TamedPoisson(LARGEST, math.exp(CAP)),
}
KINDS = tuple(LOSSES)


def constants(kind: str) -> LossConstants:
    return constants_of(LOSSES[kind])


def slopes(kind: str, u: Array, y: Array) -> tuple[Array, Array]:
    """First and second derivatives; written out again, from the definitions."""
    if kind == "logistic":
        p = expit(-u)
        return -p, p * (1 - p)
    if kind == "softplus_hinge":
        p = expit((1 - u) / H)
        return -p, p * (1 - p) / H
    if kind == "pseudo_huber":
        r = np.sqrt(1 + ((u - y) / C) ** 2)
        return (u - y) / r, r**-3.0
    if kind == "log_cosh":
        t = np.tanh((u - y) / C)
        return C * t, 1 - t * t
    return tamed_poisson(u, y, CAP)


@dataclass(frozen=True)
class Batch:
    """Many data sets at once: rows (sets, n, d) with multiplicities, the last row being the one that comes and goes."""

    kind: str
    x: Array
    y: Array
    counts: Array
    ridge: Array
    person: tuple[int, ...] = (1,)  # how often the last rows come and go together

    def present(self, last: int) -> Array:
        counts = self.counts.copy()
        counts[:, -len(self.person) :] = last * np.array(self.person)
        return counts

    def parts(self, theta: Array, counts: Array) -> tuple[Array, Array]:
        slope, curve = slopes(self.kind, np.einsum("snd,sd->sn", self.x, theta), self.y)
        gradient = np.einsum("sn,snd->sd", slope * counts, self.x)
        return gradient, np.einsum("sn,snd,sne->sde", curve * counts, self.x, self.x)

    def minimiser(self, last: int) -> Array:
        """Newton's method with steps that a loss of bounded log l'' allows."""
        counts = self.present(last)
        sets, _, width = self.x.shape
        theta: Array = np.zeros((sets, width))
        rate = float(constants(self.kind).ratio)
        for _ in range(120):
            gradient, hessian = self.parts(theta, counts)
            gradient = gradient + self.ridge[:, None] * theta
            full = hessian + self.ridge[:, None, None] * np.eye(width)
            step = np.linalg.solve(full, gradient[:, :, None])[:, :, 0]
            size = rate * np.linalg.norm(step, axis=1, keepdims=True) + 1e-300
            theta = theta - step * np.log1p(size) / size
        return theta

    def hessian(self, theta: Array, last: int) -> Array:
        return self.parts(theta, self.present(last))[1]


def random_batch(rng: np.random.Generator, kind: str, sets: int, d: int) -> Batch:
    n = 5
    x = rng.normal(size=(sets, n, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    x *= np.where(rng.random((sets, n, 1)) < 0.6, 1.0, rng.random((sets, n, 1)))
    x = np.where(rng.random((sets, 1, 1)) < 0.4, np.abs(x[:, :, :1]) * np.eye(d)[0], x)  # all along one line
    y = rng.uniform(0, LARGEST, (sets, n)) if kind == "tamed_poisson" else rng.normal(size=(sets, n)) * 3 * C
    counts = np.floor(10 ** rng.uniform(0, 3, (sets, n))) * (rng.random((sets, n)) < 0.7)
    return Batch(kind, x, y, counts, 10 ** rng.uniform(-2, 1.5, sets))


def roots(mu: Array, ridge: Array, g: float, r: float) -> Array:
    """The displacement in floats, by halving."""
    low, high = g / (ridge + mu), g / ridge
    for _ in range(70):
        t = (low + high) / 2
        under = mu * -np.expm1(-r * t) / r + ridge * t < g
        low, high = np.where(under, t, low), np.where(under, high, t)
    found: Array = high
    return found


@pytest.mark.slow
@sampled(15)
@pytest.mark.parametrize("person", [(1,), (3,), (2, 1)], ids=["a row", "three alike", "two and another"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_pairs(kind: str, person: tuple[int, ...]) -> None:
    """Displacement, curvature and the shape of the Hessian, for a row or a person more, and less."""
    rng = np.random.default_rng(KINDS.index(kind))
    found = constants(kind).at(1, sum(person))
    g, r, change = float(found.gradient), float(found.ratio), float(found.change)
    closest = np.zeros(2)
    for d in (1, 2):
        batch = replace(random_batch(rng, kind, (1500 if person == (1,) else 500) * TIMES, d), person=person)
        thetas = [batch.minimiser(last) for last in (0, 1)]
        hessians = [batch.hessian(theta, last) for last, theta in enumerate(thetas)]
        moved = np.linalg.norm(thetas[0] - thetas[1], axis=1)
        lowest = [np.maximum(np.linalg.eigvalsh(h)[:, 0], 0.0) for h in hessians]
        far = np.array([moved / roots(mu, batch.ridge, g, r) for mu in lowest])
        assert far.max() <= 1 + 1e-6
        jump = np.abs(lowest[0] - lowest[1]) / change
        assert jump.max() <= 1 + 1e-6
        closest = np.maximum(closest, [far.max(), jump.max()])
        for here, there, mu in ((0, 1, lowest[0]), (1, 0, lowest[1])):
            alpha = batch.ridge + mu
            tau = np.exp(np.minimum(r * roots(mu, batch.ridge, g, r), 700.0)) * change / alpha
            full = hessians[here] + batch.ridge[:, None, None] * np.eye(d)
            inverse = np.linalg.inv(np.linalg.cholesky(full))
            shape = inverse @ (hessians[there] - hessians[here]) @ np.swapaxes(inverse, 1, 2)
            assert (np.linalg.norm(shape, axis=(1, 2)) <= tau * (1 + 1e-6)).all()
    assert closest[0] > (0.85 if len(person) == 1 else 0.6)
    assert closest[1] > (0.6 if kind in ("logistic", "softplus_hinge") else 0.3) / len(person)


@sampled(4)
@pytest.mark.parametrize("kind", ["logistic", "pseudo_huber", "tamed_poisson"])
def test_shaped_noise_against_exact_divergences(kind: str) -> None:
    """Gaussian against Gaussian in closed form, both orders of the neighbours; half the constants would be false."""
    rng = np.random.default_rng(20 + KINDS.index(kind))
    found = constants(kind).at(1)
    best, mutant = 0.0, 0.0
    for d in (1, 2):
        batch = random_batch(rng, kind, 60 * TIMES, d)
        thetas = [batch.minimiser(last) for last in (0, 1)]
        full = [batch.hessian(t, last) + batch.ridge[:, None, None] * np.eye(d) for last, t in enumerate(thetas)]
        for here, there in ((0, 1), (1, 0)):
            for i in range(len(batch.ridge)):
                ridge = float(batch.ridge[i])
                mu = max(0.0, float(np.linalg.eigvalsh(full[here][i])[0]) - ridge) * (1 - 1e-9)
                order, gamma = float(rng.choice([1.5, 3.0, 10.0, 40.0])), 1.0
                at = Fraction(order), Fraction(mu), Fraction(ridge)
                bound = ShapedNoise(*at, found.gradient, found.ratio, found.change).divergence(Fraction(gamma))
                if math.isinf(bound):
                    continue
                actual = divergence(order, thetas[here][i] - thetas[there][i], full[here][i], full[there][i], gamma)
                assert actual <= bound * (1 + 1e-7) + 1e-12
                best = max(best, actual / bound)
                half = ShapedNoise(*at, found.gradient / 2, found.ratio, found.change / 2)
                mutant = max(mutant, actual / half.divergence(Fraction(gamma)))
    assert 0.5 < best <= 1.0
    assert mutant > 1.0


def divergence(order: float, v: Array, h: Array, other: Array, gamma: float) -> float:
    """Renyi's, of N(0, (gamma h)^-1) against N(v, (gamma other)^-1)."""
    mixed = order * np.linalg.inv(other) - (order - 1) * np.linalg.inv(h)
    if np.linalg.eigvalsh(mixed)[0] <= 0:
        return math.inf
    logs = np.linalg.slogdet(mixed)[1] - (1 - order) * -np.linalg.slogdet(h)[1] - order * -np.linalg.slogdet(other)[1]
    return float(order * gamma / 2 * v @ np.linalg.solve(mixed, v) - logs / (2 * (order - 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_constants_on_a_fine_grid(kind: str) -> None:
    found = constants(kind)
    u = np.linspace(-30, 30, 60_001)
    for y in (0.0, 1.5, LARGEST):
        slope, curve = slopes(kind, u, np.array(y))
        joint = float(found.ratio) * np.abs(slope) + curve
        usable = curve > 1e-6
        rate = np.abs(np.diff(np.log(np.where(usable, curve, 1.0)))) / np.diff(u)
        rate = rate[usable[1:] & usable[:-1]]
        for values, limit in ((np.abs(slope), found.slope), (curve, found.curvature), (joint, found.joint)):
            assert values.max() <= float(limit) * (1 + 1e-9)
        assert rate.max() <= float(found.ratio) * (1 + 1e-3)


def test_displacement_is_the_root_rounded_up() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        mu, ridge, g, r = (float(10 ** rng.uniform(low, high)) for low, high in ((-3, 4), *[(-2, 1.5)] * 3))
        found = displacement(mu, ridge, g, r)
        float_root = roots(np.array([mu]), np.array([ridge]), g, r)[0]
        assert found == pytest.approx(float_root, rel=1e-11)
        assert mu * -math.expm1(-r * found) / r + ridge * found >= g * (1 - 1e-14)
        assert g / (ridge + mu) * (1 - 1e-12) <= found <= g / ridge * (1 + 1e-12)
    assert displacement(0, "0.01", 1, 2) == 100.0


def test_constants_with_tolerance() -> None:
    loose = constants("logistic").at(2).with_tolerance("0.1")
    assert loose == Constants(2 + Fraction(1, 5), Fraction(1), Fraction(2), 4 + Fraction(2, 5))


# --- the plan ---


def test_the_plan_spends_the_budget() -> None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9)):
        plan = TestedRelease.of(epsilon, delta)
        mu = math.sqrt(plan.test_squared + plan.release_squared)
        assert float(plan.failure) + gaussian.delta(mu, epsilon) <= delta * (1 + 1e-9)
        a, r = float(plan.order), float(plan.divergence)
        total = math.exp((a - 1) * (a * float(plan.test_squared) / 2 + r - epsilon)) * (1 - 1 / a) ** (a - 1) / a
        assert float(plan.failure) + total == pytest.approx(delta, rel=1e-9)
        noise, margin = plan.test_noise(Fraction(2), 3), plan.margin(Fraction(2), 3)
        assert 3 * ndtr(-margin / noise) <= float(plan.failure) * (1 + 1e-9)
        assert noise == pytest.approx(2 * math.sqrt(3) / math.sqrt(plan.test_squared))


def test_shaped_noise_fits_its_share_and_falls_back() -> None:
    plan, model = TestedRelease.of(1, "1e-6"), constants("logistic").at(1)
    gamma = plan.gamma(model, 1, 300)
    assert gamma is not None
    shape = ShapedNoise(plan.order, Fraction(300), Fraction(1), model.gradient, model.ratio, model.change)
    assert shape.divergence(Fraction(gamma)) <= plan.divergence < shape.divergence(Fraction(gamma) * Fraction(101, 100))
    assert plan.gamma(model, 1, 3) is None  # Theorem 3 proves nothing there
    assert plan.fallback(model, 1, 300) > plan.isotropic(model, 1, 300)
    sigma = plan.fallback(model, 1, 3)
    assert float(plan.order) * displacement(3, 1, 1, 1) ** 2 / (2 * sigma**2) <= float(plan.divergence)
    assert plan.isotropic(model, 1, 300, models=4) == pytest.approx(2 * plan.isotropic(model, 1, 300))
    spent = TestedRelease.of(1, "1e-8", order=10)
    assert spent.divergence < 0
    assert spent.gamma(model, 1, 300) is None
    with pytest.raises(ValueError, match="no divergence is left"):
        spent.fallback(model, 1, 300)
    with pytest.raises(ValueError, match="delta must be above 0"):
        TestedRelease.of(1, 0)
    one = Fraction(1)
    assert ShapedNoise(Fraction(2), Fraction(0), one, one, one, one).divergence(one) == math.inf


def test_the_whole_algorithm_in_one_dimension() -> None:
    """Test and isotropic release by quadrature over the test's outcome, on neighbours; both directions."""
    epsilon, delta, ridge = 1.0, 1e-3, 0.5
    plan, model = TestedRelease.of(epsilon, delta), constants("logistic").at(1)
    batch = Batch(
        "logistic", np.array([[[1.0], [-1.0], [1.0]], [[1.0], [-1.0], [-1.0]]]), np.zeros((2, 3)),
        np.array([[60.0, 20.0, 0.0], [400.0, 20.0, 0.0]]), np.full(2, ridge),
    )  # fmt: skip
    thetas = [batch.minimiser(last)[:, 0] for last in (0, 1)]
    curvatures = [batch.hessian(thetas[last][:, None], last)[:, 0, 0] for last in (0, 1)]
    noise, margin = plan.test_noise(model.change, 1), plan.margin(model.change)
    z = np.linspace(-9, 9, 401)
    for i in range(2):
        for here, there in ((0, 1), (1, 0)):
            outcome = curvatures[here][i] + noise * z
            weights = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
            gap = (curvatures[here][i] - curvatures[there][i]) / noise
            test = -z * -gap + gap**2 / 2  # the loss of the test at z
            sigma = roots(np.maximum(outcome - margin, 0.0), np.full(len(z), ridge), 1.0, 1.0) / plan.release_mu
            mu = np.abs(thetas[0][i] - thetas[1][i]) / sigma
            left = epsilon - test
            leak = np.maximum(ndtr(mu / 2 - left / mu) - np.exp(left) * ndtr(-mu / 2 - left / mu), 0.0)
            assert float(weights @ leak) <= delta
