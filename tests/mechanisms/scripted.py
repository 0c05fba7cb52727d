"""The exact privacy of a Gaussian release on one pair of tables: what each saw, under the same released numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

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

    def __init__(self, answers: list[Any] | None = None, seed: int | None = None) -> None:
        super().__init__(seed or 0)
        self.answers, self.noisy = answers, seed is not None
        self.seen: list[tuple[list[Fraction], Fraction]] = []
        self.said: list[Any] = []

    def _say(self, inside: list[Any], law: Any, noisy: Callable[[], Any], plain: Any) -> Any:
        assert isinstance(law, Gaussian)
        self.seen.append(([Fraction(value) for value in inside], law.sigma))
        answer = self.answers[len(self.said)] if self.answers is not None else noisy() if self.noisy else plain
        self.said.append(answer)
        return answer

    def add(self, value: Any, law: Any, *, grid: int = 0, stretch: Any = None) -> Fraction:
        inside, add = [unwrap(value)], super().add
        return cast(Fraction, self._say(inside, law, lambda: add(value, law, grid=grid), Fraction(0)))

    def add_integers(self, values: Any, law: Any) -> list[int]:
        inside, add = [int(value) for value in unwrap(values)], super().add_integers
        return cast(list[int], self._say(inside, law, lambda: add(values, law), [0] * len(inside)))

    def distance_squared(self, other: Scripted) -> Fraction:
        """The square of the Gaussian distance between what the two of them saw, over all that was released."""
        assert [sigma for _, sigma in self.seen] == [sigma for _, sigma in other.seen]
        square = Fraction(0)
        for (mine, sigma), (yours, _) in zip(self.seen, other.seen, strict=True):
            square += sum(((a - b) ** 2 for a, b in zip(mine, yours, strict=True)), Fraction(0)) / sigma**2
        return square


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
    return first.distance_squared(second)


def hockey_stick(square: Fraction, epsilon: float) -> float:
    """The exact delta at epsilon of two Gaussian vectors at this squared distance."""
    mu = math.sqrt(square)
    if mu == 0:
        return 0.0
    first = float(special.ndtr(mu / 2 - epsilon / mu))
    return first - math.exp(epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)))


def without_last(table: Table) -> dict[str, list[Any]]:
    return {name: list(column[:-1]) for name, column in table.items()}
