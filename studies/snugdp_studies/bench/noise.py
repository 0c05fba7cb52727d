"""How long a vector of noise takes: exact draws, OpenDP's, and numpy's, which are not private."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace, Law, Simulation
from snugdp.secrecy.secret import Secret
from snugdp_studies.bench.contest.speed import Timing, timed

SIZE = 5050  # the distinct entries of a 100 x 100 Gram matrix
SCALE = 2**20


def run(repeats: int = 15) -> list[Timing]:
    """Every sampler in turn, ``repeats`` times over.

    Raises an ImportError that says what to install if OpenDP is missing.
    """
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    return timed(f"{SIZE:,} draws", {**_ours(), **_opendp()}, repeats)


def _ours() -> dict[str, Callable[[], object]]:
    values = Secret([0] * SIZE)
    laws: dict[str, Law] = {
        "rounded Gaussian": Gaussian(SCALE),
        "rounded Laplace": Laplace(SCALE),
        "discrete Laplace": DiscreteLaplace(SCALE),
        "discrete Gaussian": DiscreteGaussian(SCALE**2),
    }
    exact, simulation = Exact(), Simulation(0)
    jobs: dict[str, Callable[[], object]] = {
        f"snugdp, exact {name}": partial(exact.add_integers, values, law) for name, law in laws.items()
    }
    jobs["numpy normals, not private"] = partial(simulation.add_integers, values, Gaussian(SCALE))
    return jobs


def _opendp() -> dict[str, Callable[[], object]]:
    try:
        dp: Any = importlib.import_module("opendp.prelude")
    except ImportError as missing:
        raise ImportError("this comparison needs OpenDP: pip install opendp") from missing
    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T=int), size=SIZE)
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=SIZE)
    l1, l2 = dp.l1_distance, dp.l2_distance
    mechanisms: dict[str, tuple[Any, list[Any]]] = {
        "OpenDP, integer Laplace": (dp.m.make_laplace(whole, l1(T=int), scale=SCALE), [0]),
        "OpenDP, integer Gaussian": (dp.m.make_gaussian(whole, l2(T=float), scale=SCALE), [0]),
        "OpenDP, float Laplace": (dp.m.make_laplace(real, l1(T=float), scale=SCALE), [0.0]),
        "OpenDP, float Gaussian": (dp.m.make_gaussian(real, l2(T=float), scale=SCALE), [0.0]),
        "OpenDP, float Gaussian on a grid of 2^-20": (
            dp.m.make_gaussian(real, l2(T=float), scale=SCALE, k=-20),
            [0.0],
        ),
    }
    return {name: partial(mechanism, zero * SIZE) for name, (mechanism, zero) in mechanisms.items()}
