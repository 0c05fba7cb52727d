"""What a person contributes: functions of that person's own rows, exact and within their caps."""

import math
from collections import Counter

import numpy as np
import pytest

from snugdp.mechanisms.persons.contributions import WEIGHT_UNIT, gram_square, kept_rows, length_cut, row_weights


def kept_table(persons: list[int], contents: list[int], most: int) -> Counter[tuple[int, int]]:
    if not persons:
        return Counter()
    mask = kept_rows(np.array(persons), np.array(contents), most)
    return Counter((p, c) for p, c, kept in zip(persons, contents, mask, strict=True) if kept)


def test_a_person_changes_no_more_than_its_own_rows() -> None:
    random = np.random.default_rng(2)
    for _ in range(300):
        persons = random.integers(0, 5, random.integers(0, 14)).tolist()
        contents = random.integers(0, 4, len(persons)).tolist()
        whole = kept_table(persons, contents, 2)
        for gone in set(persons):
            rest = [(p, c) for p, c in zip(persons, contents, strict=True) if p != gone]
            left = kept_table([p for p, _ in rest], [c for _, c in rest], 2)
            assert sum((whole - left).values()) <= 2
            assert not left - whole
        order = random.permutation(len(persons))
        assert whole == kept_table([persons[i] for i in order], [contents[i] for i in order], 2)
    assert len(kept_rows(np.array([], dtype=np.int64), np.array([], dtype=np.int64), 1)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        kept_rows(np.array([1]), np.array([1]), 0)


def test_weights_never_add_up_to_more() -> None:
    rows = np.arange(1, 5000)
    for most in (1, 2, 16):
        total = row_weights(rows, most) * rows
        assert np.all(total <= most * WEIGHT_UNIT)
        assert np.all(total[:15] == np.minimum(rows[:15], most) * WEIGHT_UNIT)
        assert np.all(total >= (np.minimum(rows, most) * WEIGHT_UNIT) - rows)
    with pytest.raises(ValueError, match="62 bits"):
        row_weights(rows, 1 << 50)


@pytest.mark.parametrize("size", [3, 10**6, 10**12])
def test_a_vector_is_cut_to_its_cap_exactly(size: int) -> None:
    random = np.random.default_rng(size)
    vectors = random.integers(-size, size + 1, (200, 5))
    for cap in (0, 1, size // 2, 2 * size):
        cut = length_cut(vectors, cap)
        for before, after in zip(vectors.tolist(), cut.tolist(), strict=True):
            square = sum(x * x for x in after)
            assert square <= cap**2
            if sum(x * x for x in before) <= cap**2:
                assert after == before
            else:
                scale = cap / math.sqrt(sum(x * x for x in before))
                assert all(abs(a - b * scale) <= 1 + 1e-6 * abs(b) for a, b in zip(after, before, strict=True))
    with pytest.raises(ValueError, match="at least 0"):
        length_cut(vectors, -1)


def test_the_norm_of_a_gram_matrix_is_that_of_all_products() -> None:
    rows = [[1, 2, 0], [3, -1, 4], [0, 0, 5]]
    matrix = np.array(rows).T @ np.array(rows)
    assert gram_square(rows) == int((matrix**2).sum())
    assert gram_square(rows) <= sum(sum(x * x for x in row) for row in rows) ** 2
