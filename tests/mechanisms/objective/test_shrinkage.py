"""What a ridge takes from a logistic model: against exact fits with and without it, and that nothing else changes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from snugdp import Budget, LogisticRegression, Simulation
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective import adaptive, standardised
from snugdp.mechanisms.objective.adaptive import AdaptiveGLM
from snugdp.mechanisms.objective.scale import Spread
from snugdp.mechanisms.objective.shrinkage import beyond_start, stretch, unshrunk
from snugdp.mechanisms.objective.standardised import StandardisedGLM
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import undo_affine
from snugdp.tables.losses.losses import Logistic, SoftHinge
from snugdp.tables.rowmap import RowMap

BESIDE = Fraction(1, 100)
PLANNED: dict[str, Any] = {"constant": True, "norm": 2.0, "rows": 20_000.0, "ridge": 3.0, "m": 0.2}


def fitted(X: Any, y: Any, ridge: float) -> Any:
    def loss(theta: Any) -> tuple[float, Any]:
        score = X @ theta
        value = np.logaddexp(0, score).sum() - y @ score + ridge / 2 * theta @ theta
        return float(value), X.T @ (expit(score) - y) + ridge * theta

    return minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-6}).x


@pytest.mark.parametrize(("steep", "ridge"), [(1.0, 3.0), (12.0, 3.0), (12.0, 0.5)])
def test_a_stretched_fit_is_about_as_steep_as_one_without_a_ridge(steep: float, ridge: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 8))
    X *= np.minimum(1, 2.7 / np.linalg.norm(X, axis=1))[:, None] * (2 / 2.7)  # the median of lengths
    rows = np.column_stack([X, np.ones(len(X))])
    y = (rng.random(len(X)) < expit(steep * (X[:, 0] + X[:, 1] - 0.2))).astype(float)
    pulled, free = fitted(rows, y, ridge), fitted(rows, y, 0.0)
    times = stretch(pulled, **{**PLANNED, "ridge": ridge, "rows": float(len(X))})
    long, short = (float(np.linalg.norm(theta)) for theta in (free, pulled))
    assert times == pytest.approx(long / short, rel=0.08)
    assert abs(times * short - long) <= abs(short - long) + 0.01 * long


def test_what_is_given_back_is_less_than_what_the_ridge_took() -> None:
    """Rows are not as long in every direction; too steep costs more than not steep enough."""
    score, theta = np.random.default_rng(4).normal(size=400_000), np.array([6.0, -8.0, 0.0])
    times = stretch(theta, **PLANNED)
    sizes = 10 * 2 * np.sqrt(0.85 / 2) * score
    given = np.mean((expit(times * sizes) - expit(sizes)) * sizes)
    trusted = (20_000 * 0.2 / 3) ** 2 / ((20_000 * 0.2 / 3) ** 2 + 60**2)
    assert given == pytest.approx(0.8 * 3.0 * 100 / 20_000, rel=0.03 + 2 * (1 - trusted))


def test_where_nothing_is_known_nothing_is_stretched() -> None:
    theta = np.array([6.0, -8.0, 0.5])
    assert stretch(0 * theta, **PLANNED) == 1.0
    assert stretch(theta * 1e300, **PLANNED) == 1.0
    assert 1.0 <= stretch(theta, **{**PLANNED, "rows": 1.0}) < 1.001  # noise alone
    assert stretch(theta, **{**PLANNED, "rows": 1e12}) == pytest.approx(1.0, abs=1e-6)  # the ridge hardly counts
    assert stretch(1e3 * theta, **PLANNED) <= 2.0


class _Drawn:
    """A run's answer without rows."""

    def __init__(self) -> None:
        self.theta = np.array([[6.0, -8.0, 0.5]])

    def __call__(self, *_: Any) -> Any:
        return self.theta


@pytest.mark.parametrize(("weight", "loss", "stretched"), [(None, Logistic(), True), (2, Logistic(), False)])
def test_which_models_are_stretched(
    weight: int | None, loss: Any, stretched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = _Drawn()
    monkeypatch.setattr(standardised, "coefficients_of", drawn)
    design = Design(RowMap(3, 2, 1, None, True), weight)
    model = StandardisedGLM(design, Budget(1, 1e-6), losses=(loss,), beside=BESIDE, rows=20_000.0)
    fit = model.draw(Secret(None), Simulation(1))  # type: ignore[arg-type]
    assert ("stretch" in fit.released) is stretched
    times = fit.released.get("stretch", 1.0)
    assert (times > 1.001) is stretched
    assert np.array_equal(fit.theta, times * drawn.theta[0])


def test_other_losses_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standardised, "coefficients_of", _Drawn())
    run: Any = StandardisedGLM(
        Design(RowMap(3, 2, 1, None, True)), Budget(1, 1e-6), losses=(SoftHinge(0.5),), beside=BESIDE
    )
    assert "stretch" not in run.draw(Secret(None), Simulation(1)).released


@pytest.mark.parametrize(("given", "units"), [({}, [1, 50, 0.01]), ({"x_norm": 4}, 1)], ids=["private", "public"])
def test_a_fit_says_by_how_much(given: dict[str, Any], units: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8000, 3))
    y = np.where(X @ [3.0, 3.0, 3.0] + rng.logistic(size=8000) / 4 > 0, "yes", "no")
    model = LogisticRegression(epsilon=1, delta=1e-6, classes=["no", "yes"], noise=Simulation(1), **given)
    model.fit(X * units, y)
    assert 1.02 < model.details_["stretch"] < 2
    assert model.score(X * units, y) > 0.9


@pytest.mark.parametrize("constant", [True, False])
def test_public_bounds_are_no_reason_to_leave_a_ridge_its_part(constant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line through the released centre is as many times steeper as is said, in the units of the rows."""
    drawn = np.array([[6.0, -8.0, 0.5 if constant else 3.0]])
    monkeypatch.setattr(adaptive, "coefficients_of", lambda *_: drawn)
    monkeypatch.setattr(adaptive, "AffineRows", lambda *_: None)
    method = AdaptiveGLM(Design(RowMap(3, 1, 1, None, constant)), Budget(1, 1e-6), losses=(Logistic(),))
    spread = Spread((0.25, -0.5, 0.125)[: 3 - constant], 0.5, 20_000.0)
    fit = method.draw(Secret(None), spread, Simulation(1))  # type: ignore[arg-type]
    times = fit.released["stretch"]
    assert 1.001 < times <= 2
    assert np.allclose(fit.theta, undo_affine(times * drawn, spread.centre, 4.0)[0], rtol=1e-12)


def test_several_models_are_left_alone() -> None:
    thetas = np.array([[6.0, -8.0, 0.5]])
    model = StandardisedGLM(Design(RowMap(3, 2, 1, None, True)), Budget(1, 1e-6), losses=(Logistic(),), beside=BESIDE)
    assert unshrunk(thetas, model.runs, 2e4)[1]
    assert unshrunk(thetas, model.runs * 2, 2e4) == (thetas, {})


def test_entries_that_are_the_same_in_all_rows_say_nothing_of_how_steep_labels_are() -> None:
    """Their slopes and the constant are determined in sum alone: large ones of both signs are noise."""
    slopes, noisy = [1.0, -1.5], [12.0, -7.5]
    theta = np.array([slopes[0], noisy[0], slopes[1], noisy[1]])
    assert stretch(theta, **PLANNED) > 1.5
    without = stretch(np.array([*slopes, 0.0]), **PLANNED)
    assert stretch(theta, **PLANNED, flat=(1,)) == pytest.approx(without, rel=1e-3)
    assert without < 1.02


# --- several classes ---


def several(X: Any, y: Any, ridge: float, b: Any = 0.0) -> Any:
    """Softmax coefficients around 0, a row for each class; ``b``: the noise."""
    shape, aims = (int(y.max()) + 1, X.shape[1]), np.eye(int(y.max()) + 1)[y]

    def loss(theta: Any) -> tuple[float, Any]:
        T = theta.reshape(shape)
        score = X @ T.T
        sums = np.logaddexp.reduce(score, axis=1)
        gradient = (np.exp(score - sums[:, None]) - aims).T @ X + ridge * T + b
        return float(sums.sum() - (score * aims).sum() + ridge / 2 * theta @ theta + (b * T).sum()), gradient.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return found.x.reshape(shape)


def drawn(rows: int, steep: float, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 12))
    X = np.column_stack([2 * X / np.linalg.norm(X, axis=1, keepdims=True), np.ones(rows)])
    score = steep * X[:, :4] + rng.gumbel(size=(rows, 4))
    return X, score.argmax(axis=1)


def log_loss(X: Any, y: Any, theta: Any) -> float:
    score = X @ theta.T
    return float(np.mean(np.logaddexp.reduce(score, axis=1) - score[np.arange(len(y)), y]))


@pytest.mark.parametrize(("rows", "steep", "sigma"), [(1500, 6.0, 5.0), (400, 0.3, 20.0)])
def test_what_a_ridge_held_back_is_given_back_and_noise_is_taken_away(rows: int, steep: float, sigma: float) -> None:
    (X, y), (new, labels), ridge = drawn(rows, steep), drawn(4000, steep, 2), 40.0
    curvature, gains = rows * 4 / 12 * 3 / 16, []
    for seed in range(6):
        noise = np.random.default_rng(seed).normal(0, sigma, (4, 13))
        theta = several(X, y, ridge, noise)
        moved = beyond_start(theta, np.zeros((4, 13)), ridge=ridge, sigma=sigma, curvature=curvature)
        assert bool(np.linalg.norm(moved) > np.linalg.norm(theta)) is (steep > 1)
        gains.append(log_loss(new, labels, theta) - log_loss(new, labels, moved))
    assert np.mean(gains) > 0.001
    assert min(gains) > 0


def test_nothing_was_held_back_where_the_ridge_hardly_counts() -> None:
    theta, start = np.random.default_rng(1).normal(size=(2, 4, 5))
    least: dict[str, Any] = {"ridge": 1.0, "sigma": 1e-3}
    assert np.allclose(beyond_start(theta, start, **least, curvature=1e9), theta, rtol=1e-6)
    far = beyond_start(theta, start, **least, curvature=1e-9)
    assert np.allclose(far, 1.15 * (start + 1.5 * (theta - start)))
    back = beyond_start(theta, start, ridge=1.0, sigma=1e3, curvature=1.0)
    assert np.allclose(back, start + 0.75 * (theta - start))
    assert np.array_equal(beyond_start(start, start, ridge=1.0, sigma=1.0, curvature=1.0), start)


def test_what_all_classes_share_does_not_count() -> None:
    theta, start = np.random.default_rng(2).normal(size=(2, 3, 4))
    shared = np.arange(4.0) * 100
    more: dict[str, Any] = {"ridge": 1.0, "sigma": 1.1, "curvature": 2.0}
    one, other = beyond_start(theta, start, **more), beyond_start(theta + shared, start, **more)
    assert np.allclose(one - one.mean(axis=0), other - other.mean(axis=0))
