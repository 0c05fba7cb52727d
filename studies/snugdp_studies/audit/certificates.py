"""Every private bound of ours, on made-up data, with failure probabilities large enough to be counted.

What is called a scale or a radius in ``objective/scale.py`` and ``spread.py`` is not here: nothing relies on it being
right, so it claims no failure probability.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.output.posterior import log_lipschitz_sensitivity
from snugdp.audit.coverage import Certified, Run
from snugdp.certify import distance
from snugdp.certify.bound import BoundTest
from snugdp.certify.smooth import SmoothBound
from snugdp.certify.statistics import Statistic, gaussian_bounds
from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.components import projector
from snugdp.mechanisms.components.base import Rank, Start, Task
from snugdp.mechanisms.components.projector import Dual
from snugdp.mechanisms.linear import ridge_test
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.noisy_sums import symmetric
from snugdp.mechanisms.output.glm import OutputGLM
from snugdp.mechanisms.teachers.smooth_test import SmoothTest
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.eigenvalues import spectrum
from snugdp.numerics.rationals import root_above
from snugdp.numerics.ridge import smallest_eigenvalue
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema
from snugdp.tables.losses.losses import Logistic
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema

FEW = Fraction(1, 20)
MORE = Fraction(1, 5)  # five times as fast
RELATION = Neighbours.ADD_REMOVE


def certificates() -> list[Certified]:
    """All of them."""
    return [one for part in PARTS.values() for one in part()]


def gaussian_slips(sigma: float, failure: float) -> dict[str, float]:
    """What a Gaussian bound loses by the usual mistakes."""
    shift = gaussian.threshold(sigma, Fraction(failure))
    return {
        "forgotten shift": shift,
        "wrong sign": 2 * shift,
        "twice the failures": shift - gaussian.threshold(sigma, Fraction(2 * failure)),
    }


def statistics() -> Iterator[Certified]:
    """Bounds on statistics of known sensitivity, alone, together, and as a test."""
    data = Secret({"rows": 400.0, "norm": 30.0})
    rows = Statistic[dict[str, float]]("rows", lambda d: d["rows"], 1, "lower", (0, 10**6))
    norm = Statistic[dict[str, float]]("norm", lambda d: d["norm"], 2, "upper", (0, 10**6))
    mu = Fraction(1, 10)

    def held(chosen: tuple[Any, ...], failure: Fraction) -> Run:
        certifier = gaussian_bounds(chosen, mu=mu, delta=failure, neighbours=RELATION)

        def run(noise: Noise) -> float:
            found = certifier.certify(data, noise)
            return min(400 - found.get("rows", -math.inf), found.get("norm", math.inf) - 30)

        return run

    yield Certified("lower bound", held((rows,), FEW), float(FEW), gaussian_slips(10, float(FEW)))
    yield Certified("upper bound", held((norm,), FEW), float(FEW), gaussian_slips(20, float(FEW)))
    both = {"twice the failures": held((rows, norm), 2 * MORE), "one of two unprotected": held((rows, norm), 4 * MORE)}
    yield Certified("two bounds together", held((rows, norm), MORE), float(MORE), others=both)

    def passed(failure: Fraction) -> Run:
        certifier = gaussian_bounds((rows,), mu=mu, delta=failure, neighbours=RELATION)
        test = BoundTest(certifier, lambda b: 1000 / max(b["rows"], 1e-9), Fraction(1000, 401))
        return lambda noise: -1.0 if test.passes(data, noise) else 1.0

    yield Certified("test of a bound", passed(MORE), float(MORE), others={"thrice the failures": passed(3 * MORE)})


def distances() -> Iterator[Certified]:
    """Tests by distance on data that are not certified: they must pass as rarely as they say."""
    makers: dict[str, Callable[[Fraction], Any]] = {
        "integer Laplace": lambda d: distance.integer_laplace(_at, epsilon="1/20", delta=d, neighbours=RELATION),
        "integer Gaussian": lambda d: distance.integer_gaussian(_at, sigma=15, delta=d, neighbours=RELATION),
        "Laplace": lambda d: distance.laplace(_at, epsilon="1/20", delta=d, neighbours=RELATION),
        "normal": lambda d: distance.normal(_at, sigma=15, delta=d, neighbours=RELATION),
    }
    for name, make in makers.items():
        runs = {times: _passing(make(times * MORE)) for times in (1, 2)}
        unmoved = _passing(make(MORE), moved=True)
        others = {"twice the failures": runs[2], "forgotten shift": unmoved}
        yield Certified(f"distance by {name}", runs[1], float(MORE), others=others)


def smooths() -> Iterator[Certified]:
    """Bounds by smooth sensitivity, which are far from tight: two shifts, of which the first widens the second."""

    def bound(failure: Fraction) -> SmoothBound[tuple[float, float]]:
        return SmoothBound(
            loss=lambda d: d[0],
            sensitivity=lambda d: d[1],
            beta=Fraction(1, 20),
            sigma=Fraction(8),
            sigma_scale=Fraction(10),
            order=Fraction(6),
            conversion=Fraction(1, 10**6),
            failure=failure,
            floor=1e-6,
            ceiling=10.0,
            neighbours=RELATION,
        )

    for loss, scale in ((0.5, 0.01), (3.0, 2.0)):

        def run(noise: Noise, failure: Fraction = MORE, pair: tuple[float, float] = (loss, scale)) -> float:
            return bound(failure).certify(Secret(pair), noise) - pair[0]

        shift = gaussian.threshold(8, MORE / 2) * scale
        slips = {"forgotten shift": 1.5 * shift, "wrong sign": 2 * shift}
        yield Certified(f"smooth bound at {scale:g}", run, float(MORE), slips)
    test = SmoothTest(
        *(Fraction(3), Fraction(3), Fraction(1, 20), Fraction(2), Fraction(2), Fraction(3, 10), Fraction(1, 2), MORE),
        teachers=24,
        queries=2,
        classes=2,
    )
    votes = np.array([[14, 10], [20, 4]])
    truth, certifier, data = test.loss(votes), test._bound, Secret(votes)
    width = gaussian.threshold(2, MORE / 2) * test.sensitivity(votes)
    slips = {"forgotten shift": 1.5 * width, "wrong sign": 2 * width}
    yield Certified("smooth test of labels", lambda noise: certifier.certify(data, noise) - truth, float(MORE), slips)


def gaps() -> Iterator[Certified]:
    """Bounds below eigengaps: one gap, all of them together, and those of a noisy matrix."""
    true, unit = (50, 30, 10, 5), 2**20
    data = Secret(spectrum([[unit * value * (i == j) for j in range(4)] for i, value in enumerate(true)], unit))
    pair = projector.PairTest(2, entries=4, mu_squared=Fraction(1, 4), failure=MORE)

    def one(noise: Noise) -> float:
        return float(20 - pair.draw(data, Start(), noise).gap)

    yield Certified("one eigengap", one, float(MORE), gaussian_slips(float(pair.sigma), float(MORE)))
    whole = projector.SpectrumTest(Rank.of("auto", 4), entries=4, mu_squared=Fraction(1, 4), failure=MORE)

    def every(noise: Noise) -> float:
        found = whole.draw(data, Start(), noise)
        if isinstance(found.gap, float):
            return math.inf
        noisy, k = found.spectrum, found.k
        off = noisy[k - 1] - noisy[k] - float(found.gap)
        return min(true[j] - true[j + 1] - (noisy[j] - noisy[j + 1] - off) for j in range(3))

    shift = float(projector.margin(root_above(2 * whole.sigma**2), MORE / 3))
    yield Certified("all eigengaps", every, float(MORE), {"forgotten shift": shift, "wrong sign": 2 * shift})
    yield _dual()


def ridges() -> Iterator[Certified]:
    """The curvature and the residual of the ridge methods."""
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
    design = Design.of(schema)
    table = Rows(_table(120), schema)
    data = Secret(table.moments())
    ridge, mu = Fraction(5), Fraction(1, 4)

    def test(first: Fraction) -> ridge_test.RidgeTest:
        split = ridge_test.Split(first, mu, Fraction(1), Fraction(0), MORE, MORE, RELATION)
        return ridge_test.RidgeTest(design, split, lambda curvature: ridge)

    system = np.array(table.moments().gram(), dtype=np.float64) * float(design.unit) ** 2
    cross = np.array(table.moments().cross(), dtype=np.float64) * float(design.unit) ** 2
    lowest = float(np.linalg.eigvalsh(system)[0])
    theta = np.linalg.solve(system + float(ridge) * np.eye(len(cross)), cross)
    largest = math.log(float(design.y_bound) + float(design.x_bound) * float(np.linalg.norm(theta)))
    curved, flat = test(mu), test(Fraction(0))
    sigma, _, _ = ridge_test.spread(curved.square, Fraction(0), mu, MORE)
    yield Certified(
        "curvature of a ridge",
        lambda noise: lowest - float(curved._curvature(data, noise)),
        float(MORE),
        gaussian_slips(float(sigma), float(MORE)),
    )
    sensitivity = log_lipschitz_sensitivity(flat.square, ridge, Fraction(0))
    wide, _, _ = ridge_test.spread(sensitivity, Fraction(0), mu, MORE)
    yield Certified(
        "residual of a ridge",
        lambda noise: math.log(flat.certify(data, noise).residual) - largest,
        float(MORE),
        gaussian_slips(float(wide), float(MORE)),
    )


def curvatures() -> Iterator[Certified]:
    """The smallest eigenvalue of a Hessian, at one ridge and at two."""
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
    for ridge in (["20"], ["10", "40"]):
        method = OutputGLM(Design.of(schema), Budget(8, "0.9"), loss=Logistic(), ridge=ridge)
        data = method.settle(Secret(Rows(_table(4000), schema)))
        points = [method._settled(Rows(_table(4000), schema), one) for one in method.ridges]
        true = [float(smallest_eigenvalue(point.gram, point.unit, method.close)) for point in points]
        failure, count = float(method._plan.failure), len(true)

        def run(noise: Noise, method: OutputGLM = method, data: Any = data, true: list[float] = true) -> float:
            found = method.certify(data, noise).curvatures
            return min(truth - bound for truth, bound in zip(true, found, strict=True))

        shift = float(method._plan.margin(method.sensitivity, count))
        sigma = method._plan.test_noise(method.sensitivity, count)
        less = shift - gaussian.threshold(sigma, Fraction(2 * failure / count))
        slips = {"forgotten shift": shift, "wrong sign": 2 * shift, "twice the failures": less}
        yield Certified(f"curvature of a Hessian, {count} ridge(s)", run, failure, slips)


def _dual() -> Certified:
    """The gap that follows from a noisy matrix, by a bound on the norm of its noise."""
    layout = MatrixSchema(("a", "b", "c"), 1)
    dual = Dual(Task(layout, Budget(2, "0.99"), Rank.of(1, 3), rows=1))
    unit, first = dual.task.unit, dual._shares[1]
    matrix = [[unit * value * (i == j) for j in range(3)] for i, value in enumerate((900, 300, 5))]
    exact = Secret(matrix)
    law = Gaussian(Fraction(math.ceil(unit / math.sqrt(first))))

    def run(noise: Noise) -> float:
        return 600 - float(dual.certified(symmetric(exact, law, noise), 1))

    still = 600 - float(dual.certified(matrix, 1))  # what is taken off
    return Certified("eigengap of a noisy matrix", run, float(dual._failure), {"forgotten shift": still})


def _at(data: int) -> int:
    return data


def _passing(test: distance.DistanceTest[int], moved: bool = False) -> Run:
    """On uncertified data; ``moved``: as if the threshold were none."""
    at = math.ceil(test.threshold) if moved else 0
    return lambda noise: -1.0 if test.passes(Secret(at), noise) else 1.0


def _table(n: int) -> Any:
    """Rows that fill their bounds evenly, without a generator."""
    import polars

    turns = 2 * math.pi * np.arange(n) / n
    a, b = np.sin(turns), np.cos(7 * turns)
    return polars.DataFrame({"a": a, "b": b, "y": np.clip(0.6 * a - 0.3 * b, -1, 1)})


PARTS: dict[str, Callable[[], Iterator[Certified]]] = {
    "statistics": statistics,
    "distances": distances,
    "smooths": smooths,
    "gaps": gaps,
    "ridges": ridges,
    "curvatures": curvatures,
}
