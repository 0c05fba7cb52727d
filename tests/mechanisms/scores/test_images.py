"""The image of a row under a model depends on that row alone."""

from typing import Any

import numpy as np
import pytest

from snugdp.mechanisms.scores.images import CELLS, TOLERANCE, UNSCORED, AnswerScale, RowImages

UNIT = AnswerScale(0.0, 1.0)


class Panic(BaseException):
    """As native libraries raise it."""


class Rounded:
    """Answers a batch almost as each of its rows: off by a little that depends on the others, in every way it may."""

    def __init__(self, failing: Any = ()) -> None:
        self.calls, self.failing = 0, np.array(failing)

    def __call__(self, rows: Any) -> Any:
        self.calls += 1
        if np.isin(rows[:, 0], self.failing).any():
            raise Panic(f"saw {rows}")
        off = (np.nan_to_num(rows, posinf=9.0).sum() * 1e3 % 1.9 - 0.95) * TOLERANCE if len(rows) > 1 else 0.0
        return rows[:, 0] + off


@pytest.mark.slow
def test_the_rows_beside_a_row_do_not_matter() -> None:
    generator = np.random.default_rng(1)
    near = (np.arange(1, 400) + 0.5) / CELLS  # on borders of cells, and a hair beside them
    values = np.concatenate([near, near + TOLERANCE / 3, near - TOLERANCE / 3, generator.random(2000)])
    failing = [*generator.choice(values, 7), 5.0]
    rows = np.concatenate([values, [np.nan, 5.0, -3.0, 7.0, np.inf]])[:, None]
    images = RowImages(1, UNIT)
    alone = np.array([images.of(Rounded(failing), rows[i : i + 1], 1)[0, 0] for i in range(len(rows))])
    assert (alone[np.isin(rows[:, 0], failing)] == UNSCORED).all()
    assert alone[len(values)] == UNSCORED  # NaN
    assert alone[-3:].tolist() == [0, CELLS, CELLS]
    for _ in range(4):
        order = generator.permutation(len(rows))[: generator.integers(1, len(rows))]
        assert (images.of(Rounded(failing), rows[order], len(order))[:, 0] == alone[order]).all()
    assert (RowImages(1, UNIT, alone=True).of(Rounded(failing), rows, len(rows))[:, 0] == alone).all()


def test_few_calls_are_enough() -> None:
    model, rows = Rounded(), np.random.default_rng(2).random((20_000, 1))
    RowImages(1, UNIT).of(model, rows, len(rows))
    assert model.calls < 1 + 4 * 2 * TOLERANCE * CELLS * len(rows)


@pytest.mark.parametrize("answer", [lambda rows: None, lambda rows: rows[:, 0][:1], lambda rows: ["word"] * len(rows)])
def test_an_answer_of_another_shape_is_none(answer: Any) -> None:
    assert (RowImages(2, UNIT).of(answer, np.zeros((3, 1)), 3) == UNSCORED).all()


def test_several_answers_for_a_row_stand_or_fall_together() -> None:
    rows = np.array([[0.25, 0.75], [np.nan, 0.5]])
    assert RowImages(2, UNIT).of(lambda some: some, rows, 2).tolist() == [[CELLS // 4, 3 * CELLS // 4], [-1, -1]]
