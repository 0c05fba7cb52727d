"""One small adapter per kind of vector: from the inputs of a case to what our public functions answer."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp import Cost, Guarantee
from snugdp.accounting import composition, discrete, gaussian, pairs, renyi, variation
from snugdp.accounting.objective import linear
from snugdp.accounting.objective.run import RunCost, log_det
from snugdp.accounting.output import posterior
from snugdp.accounting.output.posterior import rho_max
from snugdp.mechanisms.linear.noisy_sums import law_for
from snugdp.mechanisms.order_statistics import median, quantile, trimmed_mean
from snugdp.mechanisms.votes import mode, vote
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, pmf, rounded_pmf
from snugdp.numerics import ridge
from snugdp.tables.losses.losses import LogCosh
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp_studies.paper import figure3
from tests.accounting.atoms import exact
from tests.mechanisms import noisy_votes
from tests.mechanisms.objective.reference import minimise
from tests.vectors.bounds import BOUNDS
from tests.vectors.formulas import FORMULAS
from tests.vectors.frontier import FRONTIER
from tests.vectors.glm import GLM, OBJECTIVE_GLM
from tests.vectors.inference import INFERENCE
from tests.vectors.pate import PATE
from tests.vectors.pca import PCA
from tests.vectors.persons import PERSONS
from tests.vectors.scores import MEANS, SCORES
from tests.vectors.selection import SELECTION
from tests.vectors.sparse import SPARSE
from tests.vectors.statistics import STATISTICS

Adapter = Callable[..., Any]
RELATION = {"addremove": "add_remove", "replace": "replace"}


def _relation(name: str) -> Any:
    return RELATION[name]


def _ordered(x: list[float]) -> Any:
    return np.sort(np.array(x, dtype=np.float64))


def _triple(mu: float = 0, eps0: float = 0, delta0: float = 0) -> Cost:
    return Cost(mu=mu, epsilon=eps0, delta=delta0)


def _compose(parts: list[dict[str, float]]) -> dict[str, float]:
    total = sum((_triple(**part) for part in parts[1:]), _triple(**parts[0]))
    return {"mu": total.mu, "eps0": float(total.epsilon), "delta0": float(total.delta)}


def _threshold(found: tuple[int, float]) -> dict[str, float]:
    return {"tau": found[0], "pass_prob_at_0": found[1]}


def _gaussians(mu_test: float, mu_mech: float) -> Cost:
    return Cost(mu=mu_test) + Cost(mu=mu_mech)


def _refuse(mu_test: float, mu_mech: float, delta_fail: float, eps: float) -> float:
    return Guarantee(_gaussians(mu_test, mu_mech), exact(delta_fail)).delta_at(eps)


def _calibrate(mu_test: float, mu_mech: float, delta_fail: float, eps: float) -> float:
    return (_gaussians(mu_test, mu_mech) + Cost(delta=delta_fail)).delta_at(eps)


def _objective_composition(eps: float, m: list[float], kappa: list[float], mu_gaussian: float) -> dict[str, float]:
    runs = [RunCost(exact(a) ** 2, exact(b), "class_t") for a, b in zip(m, kappa, strict=True)]
    atoms = [run.atom for run in runs]
    sides = {
        "add": tuple(composition.Atom(add=atom.add, remove=atom.add) for atom in atoms),
        "remove": tuple(composition.Atom(add=atom.remove, remove=atom.remove) for atom in atoms),
        "delta": tuple(atoms),
    }
    return {name: Cost(mu=mu_gaussian, atoms=side).delta_at(eps) for name, side in sides.items()}


def _objective_calibration(eps: float, delta: float, B: float, tau: float) -> dict[str, float]:
    m, square = linear.calibrate(eps, delta), exact(B) ** 2
    budget = exact(eps), exact(delta)
    kappa = linear.largest_kappa(*budget, [Fraction(m) ** 2], [Fraction(1)], Fraction(0))
    return {
        "m": m,
        "sigma": B * tau / m,
        "lam_free": float(2 * square / exact(eps)),
        "lam_free_tight": float(square / kappa),
    }


def _objective_general(eps: float, delta: float, B: float, tau: float, lam: float) -> dict[str, float]:
    kappa = exact(B) ** 2 / exact(lam)
    m = linear.calibrate_general(eps, delta, [kappa])
    return {"beta": float(log_det(kappa)), "m": m, "sigma": B * tau / m if m else math.inf}


def _posterior_pair(direction: str, leverage: float, rho: float, eps: float) -> dict[str, float]:
    square = exact(rho) ** 2
    side: Any = direction.removesuffix("_corner")
    found = (posterior.corner if direction.endswith("_corner") else posterior.pair)(side, leverage, square)
    m = math.sqrt(found.mean_squared)
    return {"m": m, "s2": float(found.variance), "delta": pairs.gaussian_pair(m, found.variance, eps)}


def _log_sensitivity(B: float, lam: float, lambda_min: float) -> dict[str, float]:
    square = exact(B) ** 2
    add, both = (
        float(posterior.log_lipschitz_sensitivity(square, lam, lambda_min, removal=removal))
        for removal in (False, True)
    )
    return {"add_only": add, "add_remove": both}


def _posterior_strength(lam: float, lambda_tilde: float, B: float, mu3: float, d0: float) -> dict[str, float]:
    added, removed = posterior.leverages(exact(B) ** 2, lam, lambda_tilde)
    rho = rho_max(added, removed, exact(mu3) ** 2, exact(d0))
    return {"leverage_add": float(added), "leverage_remove": float(removed), "rho": float(rho)}


def _posterior_release(
    *,
    eps: float, delta: float, lam: float, lambda_min: float, theta_norm: float, B: float, By: float,
    share1: float, share2: float, f0: float, f1: float, f2: float, Z1: float, Z2: float,
) -> dict[str, float]:  # fmt: skip
    d0, d1, d2 = (exact(delta) * exact(part) for part in (f0, f1, f2))
    mu = gaussian.mu(eps, exact(delta) - d0 - d1 - d2)
    curvature = 0.0
    if share1:
        curvature = max(0.0, lambda_min + B**2 / (mu * math.sqrt(share1)) * (Z1 - gaussian.threshold(1, d1)))
    sensitivity = _log_sensitivity(B, lam, curvature)["add_remove"]
    noise = sensitivity / (mu * math.sqrt(share2)) * (Z2 + gaussian.threshold(1, d2))
    residual, last = (By + B * theta_norm) * math.exp(noise), mu * math.sqrt(1 - share1 - share2)
    rho = _posterior_strength(lam, curvature, B, last, float(d0))["rho"]
    return {
        "mu_tot": mu,
        "mu3": last,
        "lambda_tilde": curvature,
        "log_sensitivity": sensitivity,
        "rbar": residual,
        "rho": rho,
        "gamma": (rho / residual) ** 2,
    }


def _output_noise(B: float, lam: float, lambda_tilde: float, rbar: float, mu3: float) -> dict[str, float]:
    sensitivity = posterior.output_sensitivity(B, lam, lambda_tilde, rbar)
    return {"sensitivity": float(sensitivity), "sd": float(sensitivity / exact(mu3))}


_CLOSE = Fraction(1, 10**18)


class _Ridge:
    """A ridge regression on rows as they are typed, through exact moments."""

    def __init__(self, X: list[list[float]], y: list[float], lam: float, width: int) -> None:
        self.bits = max([0, *((Fraction(v).denominator.bit_length() - 1) for row in [*X, y] for v in row)])
        rows, targets = [self.cells(row) for row in X], self.cells(y)
        self.unit, self.lam = Fraction(1, 4**self.bits), exact(lam)
        self.gram = [[sum(row[i] * row[j] for row in rows) for j in range(width)] for i in range(width)]
        self.cross = [sum(row[i] * target for row, target in zip(rows, targets, strict=True)) for i in range(width)]

    def cells(self, row: list[float]) -> list[int]:
        return [int(Fraction(value) * 2**self.bits) for value in row]

    def solve(self, right: list[Fraction]) -> list[Fraction]:
        """(X'X + lam I)^-1 right."""
        scale = max(value.denominator for value in right)
        whole = [int(value * scale) for value in right]
        found = ridge.solution(self.gram, whole, self.unit, self.lam, _CLOSE * self.unit)
        return [value / scale / self.unit for value in found]

    def theta(self) -> list[Fraction]:
        return ridge.solution(self.gram, self.cross, self.unit, self.lam, _CLOSE)

    def lowest(self) -> float:
        return float(ridge.smallest_eigenvalue(self.gram, self.unit, _CLOSE))

    def log_lipschitz(self, B: float, By: float) -> float:
        bounds = {"x_bound": exact(B), "y_bound": exact(By)}
        found = ridge.log_lipschitz(self.gram, self.cross, unit=self.unit, ridge=self.lam, **bounds, accuracy=_CLOSE)
        return float(found)


def _ridge_neighbours(
    *, X: list[list[float]], y: list[float], lam: float, B: float, By: float, x_new: list[float], y_new: float
) -> dict[str, Any]:
    old, new = _Ridge(X, y, lam, len(x_new)), _Ridge([*X, x_new], [*y, y_new], lam, len(x_new))
    row = [Fraction(value) for value in x_new]
    parts: dict[str, Any] = {}
    for fit, suffix, side in ((old, "", "out"), (new, "_new", "in")):
        theta = fit.theta()
        parts |= {
            f"theta{suffix}": [float(value) for value in theta],
            f"lambda_min{suffix}": fit.lowest(),
            f"logL{suffix}": fit.log_lipschitz(B, By),
            f"leverage_{side}": float(sum(a * b for a, b in zip(row, fit.solve(row), strict=True))),
            f"residual{suffix}": float(Fraction(y_new) - sum(a * b for a, b in zip(row, theta, strict=True))),
        }
    return parts


def _minimiser(X: list[list[float]], y: list[float], tau: float, lam: float, b: list[float]) -> dict[str, Any]:
    return {"theta": minimise(X, y, LogCosh(tau), ridge=lam, b=b).tolist()}


def _adassp(eps: float, delta: float, shares: list[float], B: float, By: float) -> dict[str, float]:
    mu = gaussian.mu(eps, delta)
    squares = {"sd_lambda_min": B**4, "sd_gram": B**4, "sd_xty": B**2 * By**2}
    laws = (
        law_for(Fraction(square), Fraction(share * mu**2))
        for square, share in zip(squares.values(), shares, strict=True)
    )
    return {"mu": mu, **{name: float(law.sigma) for name, law in zip(squares, laws, strict=True)}}


def _row_map(d: int, q: int, Bx: str, By: str) -> RowMap:
    return RowMap(d, Fraction(float.fromhex(Bx)), Fraction(float.fromhex(By)), bits=q)


def _plan(d: int, q: int, Bx: str, By: str) -> dict[str, int]:
    row_map = _row_map(d, q, Bx, By)
    return {
        "N2": row_map.norm_squared,
        "Ly": row_map.target_limit,
        "C": row_map.entry_limit,
        "max_rows_per_block": row_map.limits.rows_per_block,
        "max_blocks_before_spill": row_map.limits.blocks_before_spill,
        "max_rows_int64": row_map.limits.rows_in_int64,
    }


def _gram(q: int, Bx: str, By: str, X: list[list[str]], y: list[str]) -> dict[str, Any]:
    rows = np.array([[float.fromhex(entry) for entry in row] for row in X])
    target = np.array([float.fromhex(entry) for entry in y])
    row_map = _row_map(rows.shape[1], q, Bx, By)
    integers, targets = row_map.integers(rows, target)
    moments = Moments(row_map.limits)
    for features, answers in row_map.blocks(rows, target):
        moments.add(features, features, answers)
    return {
        "rows": [[*map(int, row), int(last)] for row, last in zip(integers, targets, strict=True)],
        "XtX": moments.gram(),
        "Xty": moments.cross(),
        "yty": moments.square(),
    }


FRAMEWORK: Mapping[str, Adapter] = {
    "gdp_delta": lambda mu, eps: gaussian.delta(mu, eps),
    "gdp_eps": lambda mu, delta: gaussian.epsilon(mu, delta),
    "gdp_mu": lambda eps, delta: gaussian.mu(eps, delta),
    "triple_delta": lambda eps, **parts: _triple(**parts).delta_at(eps),
    "triple_eps": lambda delta, **parts: _triple(**parts).epsilon_at(delta),
    "triple_compose": _compose,
    "laplace_threshold": lambda eps, delta: discrete.laplace_threshold(eps, delta),
    "discrete_laplace_threshold": lambda eps, delta, rule: _threshold(discrete.discrete_laplace_threshold(eps, delta)),
    "gaussian_threshold": lambda sigma, delta: gaussian.threshold(sigma, delta),
    "discrete_gaussian_threshold": lambda sigma, delta, rule: _threshold(
        discrete.discrete_gaussian_threshold(sigma, delta)
    ),
    "discrete_gaussian_gdp": lambda sigma: discrete.discrete_gaussian_mu(sigma),
    "cks_eps": lambda alpha, rho, delta: renyi.epsilon(alpha, rho, delta),
    "cks_delta": lambda alpha, rho, eps: renyi.delta(alpha, rho, eps),
    "smooth_gaussian_rdp": lambda alpha, beta, sigma: renyi.smooth_gaussian(alpha, beta, sigma),
    "refuse_delta": _refuse,
    "calibrate_delta": _calibrate,
}

QUERIES: Mapping[str, Adapter] = {
    "quantile_replace": lambda x, rank, lo, hi, beta: quantile.distance(_ordered(x), rank, lo, hi, beta),
    "median_addremove": lambda x, lo, hi, beta: median.distance(_ordered(x), lo, hi, beta),
    "trimmed_mean_replace": lambda x, trim, lo, hi, beta: trimmed_mean.distance(_ordered(x), trim, lo, hi, beta),
    "mode_addremove": lambda counts: mode.distance(np.array(counts), "add_remove"),
    "mode_replace": lambda counts: mode.distance(np.array(counts), "replace"),
    "iqr_surrogate_replace": lambda x, rank_low, rank_high, lo, hi, beta_low, beta_high: min(
        quantile.distance(_ordered(x), *one) for one in ((rank_low, lo, hi, beta_low), (rank_high, lo, hi, beta_high))
    ),
}

VOTE: Mapping[str, Adapter] = {
    "p_lose": lambda u: math.exp(vote.log_losing_probability(u)),
    "pure_eps": lambda eps, gap: figure3.pure_epsilon(eps, gap),
    "eps_delta": lambda eps, gap, delta, relation: vote.epsilon_at(eps, gap, delta, _relation(relation)),
    "envelope": lambda eps, gap_lower_bound, delta, relation: vote.envelope(
        eps, gap_lower_bound, delta, _relation(relation)
    ),
    "laplace_eps_for_error": lambda gap, error: figure3.noise_epsilon_for_error(gap, error),
    "laplace_eps_delta_for_error": lambda gap, error, delta: vote.worst_case_epsilon(
        figure3.noise_epsilon_for_error(gap, error), delta, "add_remove"
    ),
    "classic_eps_for_error": lambda gap, distance, error, delta: figure3.classic_epsilon_for_error(
        gap, distance, error, delta
    ),
    "rnm_probs": lambda counts, noise, scale: noisy_votes.probabilities(counts, noise, scale).tolist(),
    "rnm_dd_delta": lambda counts, noise, scale, eps, relation: noisy_votes.largest_delta(
        np.array(counts), noise, scale, eps, _relation(relation)
    ),
}

NUMERICS: Mapping[str, Adapter] = {
    "plan": _plan,
    "gram": _gram,
    "discrete_gaussian_pmf": lambda sigma2, x: {"p": pmf(DiscreteGaussian(sigma2), x)},
    "discrete_laplace_pmf": lambda scale, x: {"p": pmf(DiscreteLaplace(scale), x)},
    "rounded_normal_pmf": lambda sigma, m: {"p": rounded_pmf(Gaussian(sigma), m)},
    "discrete_gaussian_delta": lambda sigma2, sensitivity, epsilon: {
        "delta": pairs.discrete_gaussian(sigma2, sensitivity, epsilon)
    },
    "tv_unimodal": lambda eta, grid_exponent, gaussian_sd_exponents: {
        "tau": variation.unimodal(
            eta,
            Fraction(2) ** grid_exponent,
            [variation.gaussian_peak(Fraction(2) ** k) for k in gaussian_sd_exponents],
        )
    },
    "tv_random_offset": lambda eta2, d, grid_exponent, offset_bits: {
        "tau": variation.random_offset(eta2, d, Fraction(2) ** grid_exponent, offset_bits=offset_bits)
    },
    "tv_bounded_density": lambda eta, grid_exponent, d, density_bound, radius, tail: {
        "tau": variation.bounded_density(
            eta, Fraction(2) ** grid_exponent, d, density=density_bound, radius=radius, tail=tail
        )
    },
    "charge": lambda epsilon, delta, tau: {"delta_total": variation.charge(epsilon, delta, tau)},
    "eta": lambda grad_norm, grad_error, strong_convexity, noise_lattice, d: {
        "eta2": variation.solver_error(
            grad_norm, grad_error, strong_convexity, noise_lattice=noise_lattice, dimension=d
        )
    },
}

LINEAR: Mapping[str, Adapter] = {
    "gdp_delta": lambda mu, eps: {"delta": gaussian.delta(mu, eps)},
    "gdp_mu": lambda eps, delta: {"mu": gaussian.mu(eps, delta)},
    "hockey_stick_gaussian_pair": lambda eps, m, s2: {"delta": pairs.gaussian_pair(m, s2, eps)},
    "objpert_logcosh_composition": _objective_composition,
    "objpert_logcosh_calibration": _objective_calibration,
    "objpert_generic_calibration": _objective_general,
    "logcosh_minimiser": _minimiser,
    "ops_pair_delta": _posterior_pair,
    "ops_rho_max": _posterior_strength,
    "ops_ptr_release": _posterior_release,
    "log_lipschitz_sensitivity": _log_sensitivity,
    "ridge_neighbours": _ridge_neighbours,
    "outpert_noise": _output_noise,
    "adassp_scales": _adassp,
}

BUILT: Mapping[str, Mapping[str, Adapter]] = {
    "framework": FRAMEWORK,
    "queries": QUERIES,
    "vote": VOTE,
    "numerics": NUMERICS,
    "linear": LINEAR,
    "pca": PCA,
    "selection": SELECTION,
    "sparse": SPARSE,
    "pate": PATE,
    "glm": GLM,
    "objective_glm": OBJECTIVE_GLM,
    "statistics": STATISTICS,
    "bounds": BOUNDS,
    "persons": PERSONS,
    "scores": SCORES,
    "inference": {**INFERENCE, **MEANS},
    "frontier": FRONTIER,
}

# Parts that the product does not have yet: their vectors are counted and reported, never taken for passed.
LATER = frozenset({"frontier", "inference"})


def adapter_for(file: str, kind: str) -> Adapter | None:
    """From the inputs of a case to its answer: by the product, or by a formula that it has no use for."""
    return BUILT.get(file, {}).get(kind) or FORMULAS.get(file, {}).get(kind)


def exactly(value: Any) -> Fraction | float:
    """A number of a vector file with all its digits."""
    return math.inf if value in ("inf", math.inf) else Fraction(str(value))


def number(value: Any) -> float:
    """A number of a vector file: plain, a decimal in text, or infinity by name."""
    return math.inf if value == "inf" else float(value)
