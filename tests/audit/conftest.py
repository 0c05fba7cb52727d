from collections.abc import Iterator

import pytest

from snugdp.numerics.threads import one_blas_thread


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Thousands of fits on a few rows: each would set the threads of BLAS anew. Other modules have all threads."""
    with one_blas_thread():
        yield
