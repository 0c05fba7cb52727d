"""What a run of the regression benchmark consists of: every fit, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from snugdp_studies.bench.regression import data as tables
from snugdp_studies.bench.regression.methods import chosen, importable


@dataclass(frozen=True)
class Plan:
    """What is to be run. ``loose``: a factor by which the bound on targets is too large in a second run of each."""

    data: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 4.0)
    delta: float = 1e-6
    seeds: int = 20
    loose: float | None = None

    @classmethod
    def of(
        cls, data: str | None, datasets: list[str] | None = None, methods: list[str] | None = None, **rest: Any
    ) -> Plan:
        """The plan, if there are such tables and such methods."""
        found = tables.chosen(data, datasets)
        plan = cls(str(data), tuple(found), tuple(chosen(methods)), **rest)
        for name in plan.datasets:
            tables.load(plan.data, name)  # what cannot be read is found before hours of work
        if plan.loose is not None and not plan.loose > 1:
            raise ValueError("--loose is a factor above 1: how many times too large the bound on targets is")
        if not plan.epsilons or min(plan.epsilons) <= 0 or not 0 < plan.delta < 1 or plan.seeds < 1:
            raise ValueError("epsilons must be above 0, delta between 0 and 1, seeds at least 1")
        return plan

    @property
    def missing(self) -> tuple[str, ...]:
        """Methods that cannot run here."""
        return tuple(name for name in self.methods if not importable(name))

    def jobs(self) -> list[Job]:
        """Every fit, in turn over the methods, so that a busy moment hits all of them alike."""
        methods = [name for name in self.methods if name not in self.missing]
        factors = (1.0,) if self.loose is None else (1.0, self.loose)
        return [
            Job(self.data, dataset, method, epsilon, self.delta, factor, number)
            for dataset, number, epsilon, factor, method in product(
                self.datasets, range(self.seeds), self.epsilons, factors, methods
            )
        ]


@dataclass(frozen=True)
class Job:
    """One fit."""

    data: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    factor: float
    number: int


@dataclass(frozen=True)
class Score:
    """What came of it: the mean squared error on the held-out rows, the seconds of the fit, whether it was refused."""

    job: Job
    mse: float
    seconds: float
    refused: bool
