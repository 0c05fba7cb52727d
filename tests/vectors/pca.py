"""Adapters for the vectors of principal components: from the inputs of a case to what our public functions answer."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp import Budget
from snugdp.accounting import gaussian
from snugdp.mechanisms.components import projector
from snugdp.mechanisms.components.base import Start
from snugdp.numerics.eigenvalues import spectrum

RELATION = {"add_remove": "add_remove", "replace_one": "replace"}
CELLS = 2**30


def _sensitivity(gap: float, neighbours: str) -> float | None:
    return projector.sensitivity(gap, RELATION[neighbours])


def _plan(*, eps: float, delta: float, k: int, p: int, noisy_gap: float, noisy_U: float, **shares: float) -> Any:
    ours = {"fail_fraction": projector.FAILURE, "test_fraction": projector.TEST, "w0": projector.W0}
    assert {name: Fraction(repr(value)) for name, value in shares.items()} == ours
    budget = Budget(eps, delta)
    failure = projector.FAILURE * budget.delta
    whole = Fraction(gaussian.mu(budget.epsilon, budget.delta - failure)) ** 2
    test = projector.PairTest(k, entries=p, mu_squared=projector.TEST * whole, failure=failure, accuracy=Fraction(0))
    gap = test.certified(Fraction(repr(noisy_gap)))
    tested = projector.GapCertificate(k, gap, noisy_U, Start())
    left = math.sqrt((1 - projector.TEST) * whole)
    return {
        "mu_test": math.sqrt(test.mu_squared),
        "mu_release": left,
        "gap_noise_std": float(test.sigma),
        "U_noise_std": float(test.spread_sigma),
        "certified_gap": float(gap),
        "use_projector": tested.wins,
        "noise_sigma": (float(projector.sensitivity_above(gap)) if tested.wins else 1.0) / left,
    }


def _gaps(noisy_spectrum: list[float], mu_test: float, fail: float) -> list[float]:
    noisy = [Fraction(repr(value)) for value in noisy_spectrum]
    sigma, failure = 1 / Fraction(repr(mu_test)), Fraction(repr(fail))
    return [float(gap) for gap in projector.certified_gaps(noisy, sigma, failure, len(noisy) - 1, Fraction(0))]


def _distance(C: list[list[float]], k: int, x: list[float], sign: int) -> dict[str, float | None]:
    """By the certified spectrum: matrices as whole numbers, the projectors in 50 bits."""
    moved = np.array(C) + sign * np.outer(x, x)
    cells = [[[round(value * CELLS) for value in row] for row in np.array(matrix).tolist()] for matrix in (C, moved)]
    found = [spectrum(matrix, CELLS) for matrix in cells]
    one, other = (np.array(each.projector(k, 50), dtype=float) / 2**50 for each in found)
    return {"distance": float(np.linalg.norm(one - other)), "bound": projector.sensitivity(float(found[0].gap(k)))}


PCA: Mapping[str, Callable[..., Any]] = {
    "projector_sensitivity": _sensitivity,
    "pca_plan": _plan,
    "certified_gaps": _gaps,
    "projector_distance": _distance,
}
