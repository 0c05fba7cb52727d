"""The benchmark of the moments runs, and its contenders compute the same thing."""

import numpy as np
import pytest

from snugdp.tables.rowmap import RowMap
from snugdp_studies.bench import gram


def test_in_memory() -> None:
    rows = gram.in_memory(repeats=1, sizes=((2000, 3),))
    assert {row.group for row in rows} == {"2,000 x 3 in memory"}
    assert rows[0].relative == 1
    assert all(0 < row.min_s <= row.median_s for row in rows)


def test_the_contenders_agree() -> None:
    X = gram.numbers(5000, 4) / 2
    exact = np.array(gram.exact(RowMap(4, 1), X, None).gram(), dtype=np.float64) * 2.0**-40
    assert np.allclose(exact, X.T @ X, atol=1e-5 * len(X))


def test_the_stream_and_the_generated_rows() -> None:
    assert len(gram.streamed(repeats=1, rows=1000, d=3)) == 3
    small, large = gram.growth(rows=(1000, 2000), d=3)
    assert small.peak_mb is not None
    assert large.peak_mb is not None
    assert 10 < large.peak_mb < 2 * small.peak_mb


def test_every_file_gives_a_time() -> None:
    rows = gram.from_files(repeats=1, rows=500, d=3)
    assert [row.name for row in rows][:3] == ["Parquet", "Arrow", "CSV"]
    assert all(row.min_s > 0 for row in rows)


def test_parts_are_named() -> None:
    with pytest.raises(ValueError, match="memory, stream, growth, files"):
        gram.run(("memroy",))
    assert "OPENBLAS_NUM_THREADS" in gram.threads()
