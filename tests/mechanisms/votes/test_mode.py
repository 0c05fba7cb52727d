"""The mode: its distance by walking through all data sets, rows of no listed category included."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.mechanisms.votes import mode
from tests.effort import often, repeated, sampled
from tests.mechanisms.exact_laws import ONE, passing, refused
from tests.mechanisms.queries_by_hand import Neighbours, Rows, added_or_removed, all_rows, replaced, sensitive, walked

UNLISTED = -1


def counted(rows: Rows, classes: int) -> mode.Counts:
    return np.array([rows.count(label) for label in range(classes)], dtype=np.int64)


def by_hand(rows: Rows, classes: int) -> int:
    return max(range(classes), key=lambda label: (rows.count(label), -label))


def moved(near: Neighbours, classes: int, rows: Rows) -> bool:
    return any(by_hand(other, classes) != by_hand(rows, classes) for other in near(rows))


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("others", [(), (UNLISTED,)])
def test_exact_when_rows_come_and_go(classes: int, others: tuple[int, ...]) -> None:
    universe = (*others, *range(classes))
    near = added_or_removed(universe)
    true = walked(all_rows(universe, range(10)), near, lambda rows: moved(near, classes, rows))
    for rows in all_rows(universe, range(5)):
        assert mode.winner(counted(rows, classes)) == by_hand(rows, classes)
        assert mode.distance(counted(rows, classes), "add_remove") == true[rows]


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
@pytest.mark.parametrize("others", [(), (UNLISTED,)])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_exact_when_rows_are_replaced(classes: int, others: tuple[int, ...], size: int) -> None:
    universe = (*others, *range(classes))
    near = replaced(universe)
    true = walked(all_rows(universe, [size]), near, lambda rows: moved(near, classes, rows))
    for rows, steps in true.items():
        assert mode.distance(counted(rows, classes), "replace") == steps


def test_no_rows_at_all() -> None:
    assert mode.winner(np.zeros(3, dtype=np.int64)) == 0
    assert mode.distance(np.zeros(3, dtype=np.int64), "add_remove") == 0
    assert mode.distance(np.zeros(3, dtype=np.int64), "replace") == 0
    assert mode.distance(np.zeros(1, dtype=np.int64), "replace") == math.inf


@repeated
@settings(max_examples=often(20, 60, 200), deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.data())
def test_one_row_moves_the_distance_by_one(counts: list[int], data: st.DataObject) -> None:
    here = np.array(counts)
    i, j = (data.draw(st.integers(0, len(counts) - 1)) for _ in range(2))
    gone, changed = here.copy(), here.copy()
    gone[i] -= 1
    changed[i] -= 1
    changed[j] += 1
    assert abs(mode.distance(here, "add_remove") - mode.distance(gone, "add_remove")) <= 1
    assert abs(mode.distance(here, "replace") - mode.distance(changed, "replace")) <= 1
    assert abs(mode.distance(here, "replace") - mode.distance(gone, "replace")) <= 1  # to an unlisted category


def test_a_mode_that_gets_an_edit_wrong_is_found_out() -> None:
    """The breadth-first search can tell the exact distance from one that forgets the tie rule."""
    near, classes = added_or_removed((0, 1)), 2
    true = walked(all_rows((0, 1), range(8)), near, sensitive(lambda rows: by_hand(rows, classes), near, 0))
    forgetful = {rows: abs(rows.count(0) - rows.count(1)) for rows in all_rows((0, 1), range(4))}
    assert any(true[rows] != guess for rows, guess in forgetful.items())


def _worst(universe: Rows, classes: int, relation: mode.Relation, tau: int, p: Fraction) -> Fraction:
    near = added_or_removed(universe) if relation == "add_remove" else replaced(universe)
    states = all_rows(universe, range(8) if relation == "add_remove" else [7])
    known = {rows: counted(rows, classes) for rows in states}
    law = {rows: (passing(mode.distance(c, relation), tau, p), mode.winner(c)) for rows, c in known.items()}
    worst = ONE * 0
    for rows, (t, best) in law.items():
        for other in near(rows) & law.keys():
            s, rival = law[other]
            same = max(ONE * 0, t - s / p) if best == rival else t
            worst = max(worst, same + refused(t, s, 1 / p))
    return worst


@sampled(5)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_the_whole_law_of_the_exact_release(relation: mode.Relation, p: Fraction, tau: int) -> None:
    """(epsilon of the test, P[Z >= tau]): attained, and broken by a threshold one lower."""
    claim = p**tau / (1 + p)
    assert _worst((UNLISTED, 0, 1, 2), 3, relation, tau, p) == claim
    assert _worst((UNLISTED, 0, 1, 2), 3, relation, tau - 1, p) > claim


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        mode.winner(np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match="whole number"):
        mode.winner(np.array([], dtype=np.int64))
