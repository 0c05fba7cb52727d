"""Vectors of persons: exact, and within their caps."""

import math

import numpy as np
import pytest

from snugdp.mechanisms.persons.contributions import gram_square, length_cut


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
