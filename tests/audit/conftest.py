from __future__ import annotations

from collections.abc import Iterator

import pytest

from snugdp.estimators.threads import one_blas_thread


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Thousands of fits on a few rows: each would look for BLAS libraries anew."""
    with one_blas_thread():
        yield
