"""Adapters for the vectors of selection: from the inputs of a case to what our public functions answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from snugdp.accounting import selection
from tests.accounting.atoms import exact

Adapter = Callable[..., Any]


@dataclass(frozen=True)
class Between:
    """A number that a case wants between a lower and an upper end."""

    value: float

    def agrees(self, expected: Mapping[str, float]) -> bool:
        return expected["lower"] <= self.value <= expected["upper"]


@dataclass(frozen=True)
class Bounds:
    """Bounds that a case wants at or above the exact value, and the better one not far above its own."""

    c1: float
    c2: float

    def agrees(self, expected: Mapping[str, float]) -> bool:
        return min(self.c1, self.c2) >= expected["exact"] * (1 - 1e-12) and self.c2 <= expected["C2_upper"] * 1.05


def law(description: Mapping[str, Any]) -> selection.Law:
    """The law that a case describes."""
    if description["law"] == "tnb":
        return selection.NegativeBinomial(exact(description["eta"]), exact(description["gamma"]))
    if description["law"] == "poisson":
        return selection.Poisson(exact(description["mean"]))
    return selection.Binomial(description["n"], exact(description["p"]))


def _delta(method: str) -> Adapter:
    def delta(K: Any, base: Any, eps: float) -> Between:
        run = selection.gaussian(base["mu"], base["delta_fail"])
        return Between(selection.delta(run, law(K), eps, method))

    return delta


def _finite(K: Any, P: list[float], Q: list[float], score: list[float], eps: float) -> Bounds:
    run = selection.one_order(selection.of_pair(P, Q))
    return Bounds(selection.delta(run, law(K), eps, "C1"), selection.delta(run, law(K), eps))


def _corollary(eps_star: float, delta_star: float, gamma: float) -> dict[str, float]:
    found = selection.corollary(eps_star, delta_star, gamma)
    return {"eps": found.epsilon, "delta": found.delta}


def _liu_talwar(eps_star: float, delta_star: float, tau: float, delta2: float) -> dict[str, float]:
    most, found = selection.liu_talwar(eps_star, delta_star, tau, delta2)
    return {"T": most, "eps": found.epsilon, "delta": found.delta}


def _renyi(mu: float, order: float, order_hat: float, eta: float, gamma: float) -> float:
    return selection.renyi_tnb(selection.NegativeBinomial(exact(eta), exact(gamma)), mu, order, order_hat)


def _cut(gamma: float, T: int) -> dict[str, float]:
    exceed = selection.beyond(selection.NegativeBinomial(Fraction(1), exact(gamma)), T)
    return {"p_exceed": exceed, "min_cap_extra_delta": exceed, "conditional_C2_factor": 1 / (1 - exceed)}


def _shared(mu_test: float, mu_mech: float, K: Any, delta: float, delta_fail: float) -> Between:
    run = selection.gaussian(mu_mech)
    return Between(selection.shared_epsilon(run, law(K), delta, test=mu_test, failure=delta_fail))


SELECTION: Mapping[str, Adapter] = {
    "pgf": lambda K, x: selection.pgf(law(K), x),
    "pgf_prime": lambda K, x: selection.pgf_slope(law(K), x),
    "mean": lambda K: selection.mean(law(K)),
    "expected_quantile": lambda K: selection.expected_quantile(law(K)),
    "p_best_tried": lambda K, candidates: selection.best_tried(law(K), candidates),
    "C1_delta": _delta("C1"),
    "C2_delta": _delta("C2"),
    "C2_mu": lambda K, eps, delta: Between(selection.mu(law(K), eps, delta)),
    "exact_selection": lambda K, P, score: selection.winner(law(K), P, score),
    "finite_delta_bounds": _finite,
    "corollary_geometric": _corollary,
    "liu_talwar_quoted": _liu_talwar,
    "ps_rdp_tnb": _renyi,
    "ps_rdp_poisson": lambda mu, order, mean: selection.renyi_poisson(selection.poisson(mean), mu, order),
    "cap_geometric": _cut,
    "shared_test_eps": _shared,
}
