"""Forks, threads, the precision that is shared, and where the random bits come from."""

import ast
import os
import re
import threading
import time
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import snugdp.noise
from snugdp.audit.bounds import ALPHA
from snugdp.audit.laws.goodness import two_samples_p
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Gumbel, Laplace
from snugdp.noise.exact import discrete, entropy
from snugdp.noise.exact.refine import Bits, below, floor, negative, precision, refine
from snugdp.secrecy.secret import Secret
from tests.effort import sampled
from tests.ledger.faults import in_threads

ROOM = Path(snugdp.noise.__file__).parent
UNPROVED = {"exp", "log", "expm1", "log1p", "log2", "sqrt", "power", "sin", "cos", "tanh", "arctanh", "random"}


def draws() -> str:
    noise = Exact()
    one = noise.add(Secret(0), Gaussian(10**6), grid=-60)
    return f"{one} {noise.add_integers(Secret([0] * 9), Laplace(10**9))}"


def in_child() -> str:
    """The draws of a forked child, made in a thread of its own, or nothing if it hangs."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads
        child = os.fork()
    if child == 0:
        worker = threading.Thread(target=lambda: os.write(write, draws().encode()))
        worker.start()
        worker.join()
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.005)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


def test_forked_children_draw_differently() -> None:
    seen = [draws(), *(in_child() for _ in range(4)), draws()]
    assert len(set(seen)) == len(seen)
    assert all(seen)


@pytest.mark.slow
def test_a_fork_while_another_thread_computes() -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            with precision(5000):
                arb(2).sqrt().exp()

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        seen = [in_child() for _ in range(5)]
    finally:
        stop.set()
        worker.join()
    assert all(seen)
    assert len(set(seen)) == 5


def test_threads_share_the_precision_safely() -> None:
    before = ctx.prec
    released: list[Fraction] = []

    def work(_: int) -> None:
        noise = Exact()
        released.extend(noise.add(Secret(0), Gumbel(10**12), grid=-90) for _ in range(40))

    assert in_threads(8, work) == []
    assert len(set(released)) == 320
    assert ctx.prec == before


def test_bits_keep_what_was_read() -> None:
    uniform = Bits()
    first = uniform.ball(7)
    prefix = uniform.value
    second = uniform.ball(200)
    assert uniform.value >> 193 == prefix
    assert first.contains(second)
    assert uniform.ball(3).contains(second)


def test_refine_doubles_until_it_is_decided() -> None:
    asked: list[int] = []

    def expression(p: int) -> arb:
        asked.append(p)
        return arb(1, arb((1, -p))) - arb((1, -300))  # a hair below one

    assert refine(expression, floor, 64) == 0
    assert asked == [64, 128, 256, 512]


@pytest.mark.parametrize("start", [1, 2, 3])
def test_few_starting_bits_do_not_bend_a_coin(start: int) -> None:
    third = Fraction(1, 3)

    def coin() -> bool:
        uniform = Bits()
        return refine(lambda p: uniform.ball(p) - arb(1) / 3, negative, start)

    heads = sum(coin() for _ in range(6000))
    assert abs(heads / 6000 - float(third)) < 5.4 * float(third * (1 - third) / 6000) ** 0.5


def test_below_is_a_coin_of_that_probability() -> None:
    heads = sum(below(Bits(), lambda _: (-arb(1)).exp()) for _ in range(6000))
    assert abs(heads / 6000 - np.exp(-1)) < 5.4 * (np.exp(-1) * (1 - np.exp(-1)) / 6000) ** 0.5


def test_entropy_is_uniform_and_of_the_size_asked_for() -> None:
    for n in (0, 1, 7, 8, 9, 64, 65):
        assert all(0 <= entropy.bits(n) < 1 << n for _ in range(50))
    counts = Counter(entropy.bits(3) for _ in range(8000))
    assert all(abs(counts[v] - 1000) < 5.6 * 875**0.5 for v in range(8))
    assert len(set(entropy.words(1000).tolist())) == 1000


def test_only_what_is_not_private_knows_of_seeds() -> None:
    for path in ROOM.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        words = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        words |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        words |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                words |= set((node.module or "").split("."))
        seeded = {"random", "default_rng", "secrets", "seed"} & words
        assert bool(seeded) == (path.name in ("simulation.py", "recording.py", "boundary.py")), path.name


def test_the_library_functions_that_are_not_proved_stay_out_of_the_filter() -> None:
    for name in ("coins.py", "filtered.py", "shapes.py", "discrete.py", "vectorised.py"):
        tree = ast.parse((ROOM / "exact" / name).read_text())
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
        }
        assert not used & UNPROVED


def test_every_proof_that_is_named_exists() -> None:
    for path in ROOM.rglob("*.py"):
        for name in re.findall(r"\w+\.proof\.md", path.read_text()):
            assert list(ROOM.rglob(name)), name


def same_law(one: Any, other: Any) -> float:
    """p-value of two samples being from one law."""
    cells = np.arange(-200, 201)
    return two_samples_p(*(np.histogram(np.clip(sample, -199, 199), cells)[0] for sample in (one, other)))


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("scale", ["7/3", "20"])
def test_discrete_laws_agree_with_opendp(scale: str) -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    n, factor = 8000, Fraction(scale)
    space = dp.vector_domain(dp.atom_domain(T=int))
    theirs = dp.m.make_laplace(space, dp.l1_distance(T=int), scale=float(factor))([0] * n)
    assert same_law(discrete.laplaces(DiscreteLaplace(factor).scale, n), theirs) > ALPHA
    assert same_law(discrete.laplaces(factor * 5 / 4, n), theirs) < ALPHA
    theirs = dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=float(factor))([0] * n)
    variance = DiscreteGaussian(factor**2).variance
    assert same_law(discrete.gaussians(variance, n), theirs) > ALPHA
    assert same_law(discrete.gaussians(variance * 25 / 16, n), theirs) < ALPHA
