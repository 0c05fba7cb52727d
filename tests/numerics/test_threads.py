"""BLAS has one thread during a fit, and as many as before after it, however it ends."""

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from snugdp import LogisticRegression, Simulation
from snugdp.numerics.threads import one_blas_thread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_limits_are_set_and_given_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert 2 in (before := threads())
        with one_blas_thread():
            assert threads() == {1}
            with one_blas_thread():
                assert threads() == {1}
            assert threads() == {1}  # another fit is still under way
        assert threads() == before
        with pytest.raises(ValueError, match="stopped"), one_blas_thread():
            raise ValueError("stopped")
        assert threads() == before


@pytest.mark.slow
def test_a_library_that_is_imported_later_is_held_too() -> None:
    code = """
import numpy
from snugdp.numerics.threads import one_blas_thread
for _ in range(2):  # the first one imports what looks for libraries
    with one_blas_thread():
        pass
import scipy.linalg
from threadpoolctl import threadpool_info
with one_blas_thread():
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} <= {1}
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "OPENBLAS_NUM_THREADS": "2"}, check=True)


def test_a_fit_leaves_them_as_they_were() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert 2 in (before := threads())
        LogisticRegression(method="objective", classes=[0, 1], x_norm=1, noise=Simulation(1)).fit(np.eye(2), [0, 1])
        assert threads() == before
