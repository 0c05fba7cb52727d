"""Adapters for the vectors of generalised linear models: from the inputs of a case to what our functions answer."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp import Cost
from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm, multiclass
from snugdp.accounting.objective.run import Kind, RunCost, critical_loss
from snugdp.accounting.output.glm import Constants, LossConstants, ShapedNoise, TestedRelease, displacement
from snugdp.tables.losses.losses import LogCosh, Logistic, Loss, PseudoHuber, SoftHinge, TamedPoisson
from tests.accounting.atoms import exact

CURVES: Mapping[str, Kind] = {
    "logistic": "logistic",
    "linear": "class_c",
    "quadratic": "log_cosh",
    "pseudo_huber": "pseudo_huber",
}
LOSSES: Mapping[str, Callable[..., Loss]] = {
    "logistic": Logistic,
    "softplus_hinge": SoftHinge,
    "pseudo_huber": PseudoHuber,
    "log_cosh": LogCosh,
    "tamed_poisson": lambda U, Y: TamedPoisson(Y, math.exp(U)),
}


def constants_of(loss: Loss) -> LossConstants:
    assert loss.log_lipschitz is not None
    assert loss.curvature_bound is not None
    return LossConstants(loss.slope, loss.curvature, loss.log_lipschitz, loss.curvature_bound)


def _constants(loss: str, B: float, **rest: float) -> dict[str, float]:
    found = constants_of(LOSSES[loss](**rest)).at(B)
    names = {"G": found.gradient, "beta": found.curvature, "R": found.ratio, "Delta": found.change}
    return {name: float(value) for name, value in names.items()}


def _plan(eps: float, delta: float, fail_fraction: float, test_fraction: float, order: float | None) -> TestedRelease:
    return TestedRelease.of(eps, delta, test_share=test_fraction, failure_share=fail_fraction, order=order)


def _model(G: float, R: float, Delta: float) -> Constants:
    return Constants(exact(G), Fraction(1), exact(R), exact(Delta))


def _isotropic(
    *, eps: float, delta: float, fail_fraction: float, test_fraction: float, lam: float, mu_certified: float,
    **model: float,
) -> dict[str, float]:  # fmt: skip
    plan, constants = _plan(eps, delta, fail_fraction, test_fraction, None), _model(**model)
    return {
        "mu_test": math.sqrt(plan.test_squared),
        "mu_release": plan.release_mu,
        "test_noise_std": plan.test_noise(constants.change, 1),
        "test_margin": plan.margin(constants.change),
        "sigma": plan.isotropic(constants, lam, mu_certified),
    }


def _shaped(
    *, eps: float, delta: float, fail_fraction: float, test_fraction: float, lam: float, mu_certified: float,
    order: float, **model: float,
) -> dict[str, float | None]:  # fmt: skip
    plan = _plan(eps, delta, fail_fraction, test_fraction, order)
    return {"rdp_budget": float(plan.divergence), "gamma": plan.gamma(_model(**model), lam, mu_certified)}


def _shaped_noise(*, order: float, mu: float, lam: float, G: float, R: float, Delta: float) -> ShapedNoise:
    return ShapedNoise(*(exact(number) for number in (order, mu, lam, G, R, Delta)))


def _kind(constant_sign: bool) -> Kind:
    return "constant_sign" if constant_sign else "sign_changing"


def _sigma(*, eps: float, delta: float, lam: float, G: float, beta: float, constant_sign: bool) -> float | None:
    m = glm.calibrate(eps, delta, _kind(constant_sign), kappa=exact(beta) / exact(lam))
    return G / m if m else None


def _delta(*, eps: float, sigma: float, lam: float, G: float, beta: float, constant_sign: bool) -> float:
    run = RunCost((exact(G) / exact(sigma)) ** 2, exact(beta) / exact(lam), _kind(constant_sign))
    if run.critical_loss > exact(eps):  # the older theorem says nothing here
        return 1.0
    return Cost(atoms=(run.atom,)).delta_at(eps)


def _calibration(eps: float, delta: float, B: float, L0: float, c0: float) -> dict[str, float]:
    m, scale = glm.calibrate(eps, delta), exact(c0) * exact(B) ** 2
    return {
        "m": m,
        "sigma": B * L0 / m,
        "lam_min": float(scale / glm.free_kappa(exact(eps), Fraction(m) ** 2)),
        "lam_default": float(scale / exact(eps)),
        "lam_gdp": float(scale / Fraction(m)),
    }


def _one_vs_rest(eps: float, delta: float, B: float, classes: int) -> dict[str, float]:
    m = glm.calibrate(eps, delta, runs=classes)
    return {"m": m, "sigma": B / m, "lam_gdp": B**2 / m}


def _softmax(eps: float, delta: float, B: float, classes: int, lam: float) -> dict[str, float]:
    kappa = exact(B) ** 2 / exact(lam)
    m = multiclass.softmax(eps, delta, classes, kappa)
    return {"beta": float(multiclass.softmax_log_det(kappa, classes)), "m": m, "sigma": math.sqrt(2) * B / m}


def _minimiser(X: list[list[float]], y: list[float], lam: float, b: list[float]) -> dict[str, list[float]]:
    """By Newton's method: the objective of the accounting, as it is written."""
    rows, tilt = np.array(X) * np.array(y)[:, None], np.array(b)
    theta = np.zeros(rows.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(rows @ theta))
        gradient = -p @ rows + lam * theta + tilt
        theta -= np.linalg.solve((rows.T * (p * (1 - p))) @ rows + lam * np.eye(len(theta)), gradient)
    return {"theta": theta.tolist()}


GLM: Mapping[str, Callable[..., Any]] = {
    "displacement_s": lambda mu, lam, G, R: displacement(mu, lam, G, R),
    "loss_constants": _constants,
    "rdp_hessian_shaped": lambda gamma, **numbers: _shaped_noise(**numbers).divergence(exact(gamma)),
    "gdp_mu": lambda eps, delta: gaussian.mu(eps, delta),
    "ptr_iso_plan": _isotropic,
    "ptr_hessian_gamma_at_order": _shaped,
    "objpert_sigma": _sigma,
    "objpert_delta": _delta,
}

OBJECTIVE_GLM: Mapping[str, Callable[..., Any]] = {
    "objglm_calibration": _calibration,
    "objglm_one_vs_rest": _one_vs_rest,
    "objglm_softmax": _softmax,
    "objglm_ec_curve": lambda curve, kappa, m: {
        "e_c": float(critical_loss(CURVES[curve], exact(m) ** 2, exact(kappa)))
    },
    "objglm_logistic_minimiser": _minimiser,
}
