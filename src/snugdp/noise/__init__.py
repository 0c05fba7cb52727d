"""The only package with randomness: exact noise for releases, and a seeded stand-in for experiments.

``Exact`` draws from the operating system and has exactly the law it is asked for; ``Simulation`` has a seed
and protects nothing. Both speak the same ``Noise`` interface.
"""

from snugdp.noise.base import Noise
from snugdp.noise.exact.source import Exact
from snugdp.noise.grid import grid_below
from snugdp.noise.laws import (
    Continuous,
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    Finite,
    Gaussian,
    Gumbel,
    Laplace,
    Law,
    cdf,
    pmf,
    rounded_pmf,
    tail,
)
from snugdp.noise.simulation import Simulation

__all__ = [
    "Continuous",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "Finite",
    "Gaussian",
    "Gumbel",
    "Laplace",
    "Law",
    "Noise",
    "Simulation",
    "cdf",
    "grid_below",
    "pmf",
    "rounded_pmf",
    "tail",
]
