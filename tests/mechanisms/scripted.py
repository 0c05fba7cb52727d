"""The exact privacy of a Gaussian release on one pair of tables: what each saw, under the same released numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pandas as pd
from scipy import special

from snugdp import Number, Schema, Simulation
from snugdp.mechanisms.linear.base import Fit, Method
from snugdp.noise import Gaussian
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.rows import Rows

Table = Mapping[str, list[Any]]


class Scripted(Simulation):
    """Writes down every private vector that gets noise and its deviation; answers with zeros or as it did before."""

    def __init__(self, answers: list[list[int]] | None = None, seed: int | None = None) -> None:
        super().__init__(seed or 0)
        self.answers, self.noisy = answers, seed is not None
        self.seen: list[tuple[list[int], Fraction]] = []
        self.said: list[list[int]] = []

    def add_integers(self, values: Any, law: Any) -> list[int]:
        assert isinstance(law, Gaussian)
        inside = [int(value) for value in unwrap(values)]
        self.seen.append((inside, law.sigma))
        if self.answers is not None:
            answer = self.answers[len(self.said)]
        else:
            answer = super().add_integers(values, law) if self.noisy else [0] * len(inside)
        self.said.append(answer)
        return answer


def schema_of(entries: int, intercept: bool = False, norm: float = 1) -> Schema:
    columns = {f"x{i}": Number(-1, 1) for i in range(entries)}
    return Schema({**columns, "y": Number(-1, 1)}, target="y", intercept=intercept, norm=norm)


def rows_of(table: Table, schema: Schema) -> Secret[Rows]:
    frame = pd.DataFrame({name: pd.Series(column, dtype="float64") for name, column in table.items()})
    return Secret(Rows(frame, schema))


def run(method: Method, table: Table, schema: Schema, noise: Scripted) -> Fit:
    fit = method.fit(rows_of(table, schema), ReleaseContext(noise)).value
    assert fit is not None
    return fit


def mu_squared(method: Method, table: Table, other: Table, schema: Schema, *, seed: int | None = None) -> Fraction:
    """The square of the exact Gaussian distance between what is released on the two tables."""
    first = Scripted(seed=seed)
    one = run(method, table, schema, first)
    second = Scripted(first.said)
    two = run(method, other, schema, second)
    assert one.theta.tolist() == two.theta.tolist()  # all that is returned is a function of what is released
    assert [sigma for _, sigma in first.seen] == [sigma for _, sigma in second.seen]
    return sum(
        (
            Fraction(sum((a - b) ** 2 for a, b in zip(mine, yours, strict=True))) / sigma**2
            for (mine, sigma), (yours, _) in zip(first.seen, second.seen, strict=True)
        ),
        Fraction(0),
    )


def hockey_stick(square: Fraction, epsilon: float) -> float:
    """The exact delta at epsilon of two Gaussian vectors at this squared distance."""
    mu = math.sqrt(square)
    if mu == 0:
        return 0.0
    first = float(special.ndtr(mu / 2 - epsilon / mu))
    return first - math.exp(epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)))


def without_last(table: Table) -> dict[str, list[Any]]:
    return {name: list(column[:-1]) for name, column in table.items()}
