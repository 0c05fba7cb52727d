"""Private linear regression as the paper, and the papers that it cites, print it: NOT PRIVATE, with what is wrong.

Labels such as L1 are those of ``docs/errata.md``, where the corrected statements are. The library releases nothing with
these formulas. They are in floats, take data as they are, and exist to draw the paper's figures and to be compared.
The paper names the baselines of its first figure and cites; their formulas are those of the cited papers and their
public code, as read, for rows of norm at most 1 and targets in [-1, 1].

``bound`` is the paper's norm of the row space, B; ``lam_star`` is lambda + lambda_min(X'X).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.noise import Gaussian, Simulation
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments

Floats = NDArray[np.float64]
_STEP = 40  # bits of a standard normal
_FAR = 300.0  # exponents beyond this count as infinite: squares are taken
_DOUBT = 0.05  # the chance that the cited papers leave their forecasts to be wrong


def not_private_ops_epsilon(
    gamma: float, lipschitz: float, lam_star: float, delta: float, *, bound: float = 1.0
) -> float:
    """Theorem ``thm: per``: the epsilon that the paper gives to one posterior sample on given data.

    NOT PRIVATE: it is no upper bound. With 98 rows (1, 1), lambda = 2 and gamma such that it says 4, one more row
    (1, -1) has epsilon 4.54 at delta = 1e-6; its third term adds quantities of different units (L1).

    >>> round(not_private_ops_epsilon(1, 2, 100, 1e-6), 4)
    0.8591
    """
    log = math.log(2 / delta)
    square = gamma * lipschitz**2
    return (
        math.sqrt(square * log / lam_star)
        + square / (2 * (lam_star + bound**2))
        + (1 + log * bound**2) / (2 * lam_star)
    )


def not_private_ops_gamma(
    epsilon: float, lipschitz: float, lam_star: float, delta: float, *, bound: float = 1.0
) -> float:
    """The gamma at which ``not_private_ops_epsilon`` says epsilon; 0 where even its constant term says more (L1)."""
    constant = not_private_ops_epsilon(0.0, 0.0, lam_star, delta, bound=bound)
    if constant >= epsilon or math.isinf(lipschitz):
        return 0.0
    linear = math.sqrt(math.log(2 / delta) / lam_star)
    quadratic = 1 / (2 * (lam_star + bound**2))
    room = epsilon - constant
    return (2 * room / (linear + math.sqrt(linear**2 + 4 * quadratic * room)) / lipschitz) ** 2


@dataclass(frozen=True)
class NotPrivateScales:
    """The deviation of a Gaussian release of the paper, and the margin that makes it a bound."""

    noise: float
    margin: float


def not_private_release_scales(epsilon: float, delta: float, *, bound: float = 1.0) -> NotPrivateScales:
    """Step 3 of Algorithm ``alg: ops_ptr``: noise and margin of lambda_min.

    NOT PRIVATE: sqrt(log(6/delta))/(epsilon/4) is not (epsilon/4, delta/3)-DP for epsilon above 0.553 at delta = 1e-6;
    at epsilon = 4 its delta is 11 times the claimed one (L2).

    >>> round(not_private_release_scales(4, 1e-6).noise, 3)
    3.951
    """
    log = math.log(6 / delta)
    share = epsilon / 4
    return NotPrivateScales(
        bound**2 * math.sqrt(log) / share, bound**2 * math.sqrt(2 * log * math.log(2 / delta)) / share
    )


def not_private_lipschitz_sensitivity(lam_star: float, *, bound: float = 1.0) -> float:
    """Lemma ``lem: adaops_ls``: how far one row is said to move log(B_y + B |theta*|).

    NOT PRIVATE: right for one row more, wrong for one row less (L4).
    """
    return math.log1p(bound**2 / lam_star)


def not_private_lipschitz_scales(
    epsilon: float, delta: float, lam_star: float, *, bound: float = 1.0
) -> NotPrivateScales:
    """Step 5: noise and margin of Delta, the bound on the logarithm of the Lipschitz constant.

    NOT PRIVATE: the sensitivity is wrong for removals (L4). The logarithm that the printed noise lacks is there;
    without it the noise is 620 times too large at delta = 1e-6, and the margin does not cover it (L3).
    """
    log = math.log(6 / delta)
    unit = not_private_lipschitz_sensitivity(lam_star, bound=bound) / (epsilon / 4)
    return NotPrivateScales(unit * math.sqrt(log), unit * math.sqrt(2 * log * math.log(2 / delta)))


@dataclass(frozen=True)
class NotPrivateSelection:
    """Algorithm 2 of the paper: stopping probability, cap on the runs, and the budget of each run."""

    tau: float
    cap: float
    epsilon: float
    delta: float


def not_private_selection(epsilon: float, delta: float, candidates: int = 30) -> NotPrivateSelection:
    """The parameters of the experiment: tau = 0.1/k, T = log(1/delta_2)/tau, delta_2 = delta/2.

    As printed tau is 0.1 k = 3, which is no probability (L8). The budget of a run inverts (3 e + 3 sqrt(2 d),
    sqrt(2 d) T + delta_2), and is 0 where there is none.

    >>> round(not_private_selection(1, 1e-6).cap)
    4353
    """
    tau = 0.1 / candidates
    cap = math.log(2 / delta) / tau
    root = delta / 2 / cap
    return NotPrivateSelection(tau, cap, max(0.0, epsilon / 3 - root), root**2 / 2)


def not_private_grid(candidates: int = 30) -> tuple[float, ...]:
    """The regularisers of the experiment: from 2.5 to 2.5**10, evenly on a logarithmic scale."""
    return tuple(float(value) for value in 2.5 ** np.linspace(1, 10, candidates))


def not_private_adaops_lambda_min(lambda_min: float, epsilon: float, delta: float, normal: float) -> float:
    """The lower bound of lambda_min in the public code of AdaOPS, from a standard normal draw.

    NOT PRIVATE: the shift of sqrt(log(6/delta)) deviations fails with probability 3.9e-5 at delta = 1e-6, and the noise
    is that of step 3 (C13, L2).
    """
    shift = math.sqrt(math.log(6 / delta))
    return max(0.0, lambda_min + not_private_release_scales(epsilon, delta).noise * (normal - shift))


def not_private_adaops_norm_cap(rows: int, lam_star: float) -> float:
    """The cap on |theta*| in the public code of AdaOPS.

    NOT PRIVATE: it is false (1000 rows (1, 1), lambda = 10: cap 0.25, norm 0.99), and it uses the number of rows, which
    is private when rows come and go (C13, L9).
    """
    return math.sqrt(2 * math.sqrt(rows) / lam_star)


@dataclass(frozen=True, repr=False)
class NotPrivateFit:
    """What a reproduction returns. ``theta`` is None where the formulas leave no gamma."""

    theta: Floats | None
    ridge: float
    gamma: float
    lambda_min: float
    lipschitz: float

    def __repr__(self) -> str:
        found = "no gamma" if self.theta is None else f"theta={self.theta.tolist()}"
        return f"NOT PRIVATE(as printed in the paper: {found}, ridge={self.ridge:.6g}, gamma={self.gamma:.6g})"


@dataclass(frozen=True, eq=False)
class NotPrivateSums:
    """X'X by its eigenvectors, X'y along them, and the number of rows, which is private when rows come and go (L9)."""

    values: Floats
    vectors: Floats
    right: Floats
    rows: int

    @classmethod
    def of(cls, X: Floats, y: Floats) -> NotPrivateSums:
        """The sums of public rows."""
        return cls.decomposed(X.T @ X, X.T @ y, len(y))

    @classmethod
    def of_moments(cls, moments: Secret[Moments], design: Design, noise: Simulation) -> NotPrivateSums:
        """The moments of a table as they are: nothing here protects them."""
        _only_simulated(noise)
        exact, unit = noise.reveal(moments), design.unit**2
        gram = np.array([[float(entry * unit) for entry in row] for row in exact.gram()])
        return cls.decomposed(gram, np.array([float(entry * unit) for entry in exact.cross()]), exact.count())

    @classmethod
    def decomposed(cls, gram: Floats, cross: Floats, rows: int) -> NotPrivateSums:
        """From X'X and X'y."""
        values, vectors = np.linalg.eigh(gram)
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ cross, rows)

    def mean(self, ridge: float) -> Floats:
        """The ridge fit, along the eigenvectors."""
        return np.asarray(self.right / (self.values + ridge))

    def sample(self, ridge: float, gamma: float, noise: Simulation) -> Floats | None:
        """One posterior sample, the density as meant (L7); None where the formulas leave no gamma."""
        if not gamma > 0:
            return None
        spread = not_private_normals(noise, len(self.values)) / np.sqrt(gamma * (self.values + ridge))
        return np.asarray(self.vectors @ (self.mean(ridge) + spread))


def not_private_ops_ptr(
    sums: NotPrivateSums, design: Design, ridge: float, *, epsilon: float, delta: float, noise: Simulation
) -> NotPrivateFit:
    """Algorithm ``alg: ops_ptr``; the numbers are those of its steps.

    NOT PRIVATE: its three shares rest on false steps (L1, L2, L4, L6), and the true moments are used as they are.
    """
    lowest, b = float(sums.values[0]), math.sqrt(design.x_squared)  # 2
    first = not_private_release_scales(epsilon, delta, bound=b)
    bounded = max(0.0, lowest + first.noise * not_private_normals(noise, 1)[0] - first.margin)  # 3
    second = not_private_lipschitz_scales(epsilon, delta, ridge + bounded, bound=b)
    size = float(design.y_bound) + b * float(np.linalg.norm(sums.mean(ridge)))  # 4
    log = math.log(size) + second.noise * not_private_normals(noise, 1)[0] + second.margin  # 5
    lipschitz = b * (math.exp(log) if log < _FAR else math.inf)  # 6: B where the paper has the data matrix (L7)
    gamma = not_private_ops_gamma(epsilon / 2, lipschitz, ridge + bounded, delta / 3, bound=b)  # 7
    return NotPrivateFit(sums.sample(ridge, gamma, noise), ridge, gamma, bounded, lipschitz)  # 8


def not_private_ops_ptr_selection(
    moments: Secret[Moments],
    design: Design,
    validation: tuple[ArrayLike, ArrayLike],
    *,
    epsilon: float,
    delta: float,
    noise: Simulation,
    ridges: Sequence[float] | None = None,
) -> NotPrivateFit:
    """The experiment of the paper: Algorithm 2 over a grid of regularisers, the best on public rows wins.

    NOT PRIVATE: as ``not_private_ops_ptr``. Misprints are read as meant, since as printed it cannot be run (L3, L8).
    The public rows are in the units of the scaled rows.
    """
    rows, target = (np.asarray(part, dtype=np.float64) for part in validation)
    grid = not_private_grid() if ridges is None else tuple(ridges)
    share = not_private_selection(epsilon, delta, len(grid))
    sums = NotPrivateSums.of_moments(moments, design, noise)
    if share.epsilon <= 0 or share.delta <= 0:
        raise ValueError("this budget leaves nothing for a single run: give a larger epsilon or delta")
    best, lowest = NotPrivateFit(None, grid[0], 0.0, 0.0, math.inf), math.inf
    for _ in range(min(math.floor(share.cap), _geometric(noise, share.tau))):
        ridge = grid[noise.choice(len(grid))]
        fit = not_private_ops_ptr(sums, design, ridge, epsilon=share.epsilon, delta=share.delta, noise=noise)
        if fit.theta is not None:
            error = float(np.mean((rows @ fit.theta - target) ** 2))
            best, lowest = (fit, error) if error < lowest else (best, lowest)
    return best


def not_private_ops_balanced(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """OPS-Balanced of Wang 2018: a ridge that balances noise and shrinking for the worst data of so many rows.

    NOT PRIVATE: it uses the number of rows (L9), and gamma comes from a formula that is no upper bound (L1).
    """
    n, log = sums.rows, math.log(2 / delta)
    cost = _forecast(min(epsilon / 2, math.sqrt(epsilon / 2)), log, len(sums.values))
    ridge = max((cost * n / 2) ** (1 / 3), (1 + log) / epsilon)
    lipschitz = 1 + min(math.sqrt(n / (2 * ridge)), n / ridge)
    gamma = not_private_ops_gamma(epsilon, lipschitz, ridge, delta)
    return NotPrivateFit(sums.sample(ridge, gamma, noise), ridge, gamma, 0.0, lipschitz)


def not_private_adaops(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """AdaOPS of Wang 2018: lambda_min released, the ridge with the least forecast, the norm released, one sample.

    NOT PRIVATE: its bound of lambda_min fails too often, its cap on the norm is false (C13), and the rest is as in
    OPS-PTR (L1, L2, L4).
    """
    log = math.log(6 / delta)
    lowest = not_private_adaops_lambda_min(float(sums.values[0]), epsilon, delta, not_private_normals(noise, 1)[0])
    room = (-1 + math.sqrt(1 + log * epsilon / 2)) / log  # what half of the sample's share allows
    cost, power = _forecast(room, log, len(sums.values)), 2 * log / (epsilon / 4)

    def forecast(log_ridge: float) -> float:
        whole = math.exp(log_ridge) + lowest
        return math.log(cost / whole * math.exp(min(power * math.log1p(1 / whole), 600.0)) + math.exp(log_ridge))

    least = max((1 + log) / (epsilon / 2) - lowest, 1e-3)
    ridge = math.exp(_lowest(forecast, math.log(least), math.log(1e9)))
    unit = not_private_lipschitz_sensitivity(ridge + lowest) / (epsilon / 4)
    size = math.log(1 + float(np.linalg.norm(sums.mean(ridge))))
    bound = size + unit * (math.sqrt(log) * not_private_normals(noise, 1)[0] + log)
    lipschitz = min(math.exp(min(bound, 300.0)), 1 + not_private_adaops_norm_cap(sums.rows, ridge + lowest))
    gamma = not_private_ops_gamma(epsilon / 2, lipschitz, ridge + lowest, delta / 3)
    return NotPrivateFit(sums.sample(ridge, gamma, noise), ridge, gamma, lowest, lipschitz)


def not_private_adassp(sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation) -> NotPrivateFit:
    """AdaSSP of Wang 2018, which the paper does not draw: noisy X'X and X'y, a ridge from the noisy lambda_min.

    NOT PRIVATE: floats and seeded noise. The proof of each third of its budget is that of L2; together the three cost
    less than it says.
    """
    d, log = len(sums.values), math.log(6 / delta)
    unit = not_private_release_scales(4 * epsilon / 3, delta).noise  # sqrt(log(6/delta)) / (epsilon/3)
    lowest = max(0.0, float(sums.values[0]) + unit * (not_private_normals(noise, 1)[0] - math.sqrt(log)))
    ridge = max(0.0, unit * math.sqrt(d * math.log(2 * d**2 / _DOUBT)) - lowest)
    right = sums.right + unit * not_private_normals(noise, d)  # isotropic: the same along eigenvectors
    square = not_private_normals(noise, d * d).reshape(d, d)
    gram = np.diag(sums.values + ridge) + unit * (square + square.T) / 2
    return NotPrivateFit(sums.vectors @ np.linalg.solve(gram, right), ridge, math.inf, lowest, math.inf)


def not_private_output_perturbation(
    sums: NotPrivateSums, epsilon: float, delta: float, noise: Simulation
) -> NotPrivateFit:
    """Output perturbation: the ridge fit plus Gaussian noise for the worst data of so many rows.

    The paper says "an appropriate lambda"; here it is the one of the paper's grid with the least forecast error.
    NOT PRIVATE: it uses the number of rows (L9), and sqrt(2 log(1.25/delta))/epsilon is Gaussian noise for epsilon
    below 1 only.
    """
    n, factor = sums.rows, math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    def scale(ridge: float) -> float:
        return (1 + min(math.sqrt(n / ridge) / 2, n / ridge)) / ridge * factor

    ridge = min(not_private_grid(), key=lambda ridge: n * scale(ridge) ** 2 + ridge)
    theta = sums.vectors @ (sums.mean(ridge) + scale(ridge) * not_private_normals(noise, len(sums.values)))
    return NotPrivateFit(theta, ridge, math.inf, 0.0, scale(ridge) * ridge / factor)


def _forecast(epsilon: float, log: float, columns: int) -> float:
    """The constant before 1/lambda in the forecast error of the cited paper."""
    doubt = math.log(1 / _DOUBT)
    return (columns / 2 + math.sqrt(columns * doubt) + doubt) * log / epsilon**2


def _lowest(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is lowest, by thirds."""
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return low


def not_private_normals(noise: Simulation, number: int) -> Floats:
    """Standard normals, to a public number of bits."""
    _only_simulated(noise)
    drawn = noise.add_integers(Secret([0] * number), Gaussian(Fraction(2) ** _STEP))
    return np.array([math.ldexp(value, -_STEP) for value in drawn])


def _only_simulated(noise: Simulation) -> None:
    if getattr(noise, "private", True):
        raise ValueError("what the paper prints is NOT PRIVATE: it runs with snugdp.Simulation(seed) only")


def _geometric(noise: Simulation, tau: float) -> int:
    """How many trials it takes until one of probability tau succeeds."""
    uniform = (noise.choice(1 << 53) + 1) / (1 << 53)
    return 1 + math.floor(math.log(uniform) / math.log1p(-tau))
