"""Layer L: what the last digits of a release give away.

A float plus a float has more digits where the sum is small, and which digits it can have depends on the private value:
the noise may be perfect and the last bits still tell. What leaves here are whole multiples of a public power of two,
whose last bits are as good as fair coins. ``low_bits`` checks a mechanism, ``sampler`` any function that gives floats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.audit.density.laws import scale_of
from snugdp.audit.finding import Case, Finding
from snugdp.audit.laws.goodness import cells_p, rate_p, two_samples_p, verdict
from snugdp.noise import Exact, Noise
from snugdp.noise.recording import Impossible, Replay, Site, Witness, private_inputs
from snugdp.noise.requests import Request

Data = TypeVar("Data")
T = TypeVar("T")
Floats = NDArray[np.float64]

_BITS = 2  # of the last ones that are looked at together
_MIN_CELLS_PER_SPREAD = 2.0**8  # from there on the last bits are fair but for 2**-1000
_FLOAT = 53
_MIN_CELL_NUMBERS = 20.0  # numbers in a cell: last bits are compared cell by cell
_MAX_ZEROS = 40  # zeros at the end of a number that are told apart
_OTHER = "the grid depends on the data"


def low_bits(case: Case[Data], runs: int = 40, source: Callable[[], Noise] = Exact) -> list[Finding]:
    """The grids and the last bits of a mechanism on its worst pairs: the same for both neighbours, and fair."""
    wrong: list[str] = []
    sides = [np.zeros(1 << _BITS, dtype=np.int64) for _ in range(2)]
    numbers = 0
    for pair in list(case.worst())[:2]:
        wrong += [
            _OTHER for one, other in (pair, pair[::-1]) for seed in range(3) if _other_grid(case, one, other, seed)
        ]
        for side, data in zip(sides, pair, strict=True):
            for _ in range(runs):
                witness = Witness(source=source())
                case.run(data, witness)
                for site in witness.transcript():
                    cells = gridded(site)
                    numbers += len(cells)
                    wrong += _mistakes(site, cells)
                    if cells_in_noise(site) >= _MIN_CELLS_PER_SPREAD:
                        np.add.at(side, [int(cell) % (1 << _BITS) for cell in cells], 1)
    if not numbers:
        return []
    found = ", ".join(f"{what} ({n} times)" for what, n in Counter(wrong).items())
    claim = "released numbers are multiples of one public power of two"
    measured = f"{numbers} numbers, {len(wrong)} mistakes"
    return [Finding("L", case.name, claim, measured, not wrong, found), *_fair(case.name, sides)]


def sampler(
    name: str, sample: Callable[[Data], ArrayLike], first: Data, second: Data, runs: int = 3000
) -> list[Finding]:
    """The last bits of the floats that ``sample(data)`` gives, on two neighbours; for anybody's sampler.

    Choose data around which answers fall on both sides of 0: floats of one size have one grid, whatever they are.

    >>> from snugdp.noise import Gaussian, Simulation
    >>> from snugdp.secrecy.secret import Secret
    >>> noise = Simulation(1)
    >>> rounded = lambda value: float(noise.add(Secret(value), Gaussian(1), grid=-20))
    >>> all(finding.passed for finding in sampler("on a grid", rounded, 0, 1))
    True
    """
    drawn = [_columns([sample(data) for _ in range(runs)]) for data in (first, second)]
    return list(_sampled(name, *drawn))


def gridded(site: Site) -> list[Fraction]:
    """What was released here, in cells of its grid: whole numbers, if all is well."""
    if site.method == "add_integers":
        return [Fraction(value) for value in site.answer]
    if site.method in ("add", "posterior", "minimiser"):
        answers = site.answer if isinstance(site.answer, list) else [site.answer]
        step = Fraction(2) ** site.number("grid")
        return [Fraction(value) / step for value in answers]
    return []


def cells_in_noise(site: Site) -> float:
    """How many cells the noise is wide, at least; 0 where that is unknown."""
    inside = private_inputs(site)
    if site.method == "add_integers" and site.law is not None:
        return float(scale_of(site.law))
    if site.method not in ("add", "posterior", "minimiser"):
        return 0.0
    if site.law is None:
        size = site.number("unit") * sum(int(row[i]) for i, row in enumerate(inside[0])) + site.number("ridge")
        width = 1 / math.sqrt(site.number("precision") * size)
    else:
        width = float(scale_of(site.law))
        if site.method == "minimiser":
            width /= float(inside[0].smoothness)
        elif len(inside) > 1:
            width *= float(inside[1])
    return float(width * 2.0 ** -site.number("grid"))


def last_place(values: Floats) -> NDArray[np.int64]:
    """The exponent of the last bit that is not zero: 2**e divides the float, and 2**(e + 1) does not.

    >>> last_place(np.array([1.0, 0.75, 6.0])).tolist()
    [0, -2, 1]
    """
    fraction, power = np.frexp(values[(values != 0) & np.isfinite(values)])
    whole = np.abs(fraction * 2.0**_FLOAT).astype(np.int64)
    lowest = whole & -whole
    return np.asarray(np.log2(lowest.astype(np.float64)).astype(np.int64) + power - _FLOAT, dtype=np.int64)


def _mistakes(site: Site, cells: list[Fraction]) -> Iterator[str]:
    for cell in cells:
        if cell.denominator != 1:
            yield f"{site.method} is off its grid"
        elif abs(cell) < 1 << _FLOAT and Fraction(float(cell)) != cell:
            yield f"{site.method} changes when it becomes a float"


class _Asking(Replay):
    """A replay that remembers which grid was asked for last."""

    last: tuple[str, Any] = ("", None)

    def answer(self, request: Request[T]) -> T:
        """As the replay does."""
        self.last = request.method, dict(request.public).get("grid")
        return super().answer(request)


def _other_grid(case: Case[Data], first: Data, second: Data, seed: int) -> bool:
    """Whether a neighbour that gets the same answers asks for another grid."""
    witness = Witness(seed)
    case.run(first, witness)
    given = witness.transcript()
    asking = _Asking(given, seed)
    try:
        case.run(second, asking)
    except Impossible:
        place = len(asking.transcript())
        if place < len(given):
            site = given.sites[place]
            return asking.last[0] == site.method and asking.last[1] != dict(site.public).get("grid")
    except Exception:
        return False  # what is raised on one side only is the business of other layers
    return False


def _fair(name: str, sides: Sequence[NDArray[np.int64]]) -> Iterator[Finding]:
    if min(int(side.sum()) for side in sides) < 40 << _BITS:
        return  # too few numbers, or noise too narrow for its bits to be fair
    even = np.full(1 << _BITS, 2.0**-_BITS)
    clean = {
        "neighbours alike": two_samples_p(*sides, least=_MIN_CELL_NUMBERS),
        "the first fair": cells_p(sides[0], even),
        "the second fair": cells_p(sides[1], even),
    }
    lost = [side.copy() for side in sides]
    lost[0][::2] += lost[0][1::2]
    lost[0][1::2] = 0
    planted = {
        "a last bit that is always 0": cells_p(lost[0], even),
        "on one side only": two_samples_p(*lost, least=_MIN_CELL_NUMBERS),
    }
    yield verdict("L", name, f"the last {_BITS} bits are fair coins, on both neighbours", clean, planted)


def _sampled(name: str, first: Floats, second: Floats) -> Iterator[Finding]:
    """Each number on a grid of its own, half of the draws odd on it, and neighbours alike."""
    clean: dict[str, float] = {}
    planted: dict[str, float] = {}
    for place in range(first.shape[1]):
        sides = (first[:, place], second[:, place])
        found = _grid_p(*sides)
        clean |= {f"number {place}: {what}": p for what, p in found.items()}
        whole = [1.1 * side for side in sides]  # with all the digits that floats of their size can have
        if found:
            planted[f"floats that keep their digits, number {place}"] = min(_grid_p(*whole).values(), default=1.0)
    if not clean:
        yield Finding(
            "L", name, "released numbers lie on one public grid", "little noise: last bits are released", True
        )
        return
    yield verdict("L", name, "released floats lie on one public grid, and their last bits are fair", clean, planted)


def _grid_p(one: Floats, other: Floats) -> dict[str, float]:
    """p-values of the last places of two neighbours, where the noise is far wider than a cell of their grid."""
    sides = [last_place(side) for side in (one, other)]
    if not min(map(len, sides)):
        return {}
    grid = min(int(side.min()) for side in sides)
    if min(float(one.std()), float(other.std())) < _MIN_CELLS_PER_SPREAD * 2.0**grid:
        return {}  # whole numbers with little noise: their last bits are part of what is released
    counts = [np.bincount(np.minimum(side - grid, _MAX_ZEROS), minlength=_MAX_ZEROS + 1) for side in sides]
    found = {"neighbours alike": two_samples_p(*counts)}
    for word, count in zip(("first", "second"), counts, strict=True):
        found[f"{word}, half are odd on the grid"] = rate_p(int(count[0]), int(count.sum()), 0.5)
    return found


def _columns(drawn: list[ArrayLike]) -> Floats:
    table = np.array(drawn, dtype=np.float64)
    return table.reshape(len(table), -1)
