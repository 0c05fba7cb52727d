"""A source of noise that writes down what it was asked and what it said, and one that says it again on other data.

For audits alone. A mechanism draws through ``Noise`` and nothing else, so these two see all that it releases: the
witness runs on one data set, the replay gives the same answers on a neighbour and writes down what was private there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Cost
from snugdp.noise.base import Noise
from snugdp.noise.checks import opened
from snugdp.noise.laws import DiscreteGaussian, DiscreteLaplace, Finite, Gaussian, Gumbel, Laplace, Law
from snugdp.noise.requests import KeysAbove, PosteriorDraw, Request, Scattering, WeightedChoice
from snugdp.noise.simulation import Simulation
from snugdp.noise.steps import StepError
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import RehearsalEnded, Secret

T = TypeVar("T")
R = TypeVar("R", bound="_Recorder")
Public = tuple[tuple[str, Any], ...]
HIDDEN = ("scatter",)  # where rows are sent is never released, and how many rows there are is private


_UNPAID = (*HIDDEN, "reveal")  # before a charge rows are scattered, and what is public about them is read


class Impossible(RehearsalEnded):
    """On these data the recorded answers cannot come about: the walk differs in what is public.

    No ``Exception``, so that nothing between the source and the audit takes it for a failed computation.
    """


@dataclass(frozen=True, eq=False)
class Site:
    """One draw: the method, the law that was asked for and the one that was drawn, public numbers, and the answer.

    ``step``: of the plan; empty where there is no plan.

    What is private is kept as it came, and opened by ``private_inputs`` alone; no repr shows it or the answer.
    """

    method: str
    law: Law | None
    drawn: Law | None
    public: Public
    answer: Any = field(repr=False)
    inputs: tuple[Secret[Any], ...] = field(repr=False)
    step: str = ""

    def number(self, name: str) -> Any:
        """The public number of this name."""
        return dict(self.public)[name]


@dataclass(frozen=True, eq=False)
class PaidPlan:
    """What was paid for the draws from ``start`` on: the cost of every step, by its id and in order."""

    start: int
    costs: Mapping[str, Cost]


@dataclass(frozen=True, eq=False)
class Transcript:
    """All draws of a run, in order; ``lots`` are those that scatter rows, which stay inside."""

    sites: tuple[Site, ...]
    lots: tuple[Site, ...] = ()
    plans: tuple[PaidPlan, ...] = ()

    def __len__(self) -> int:
        return len(self.sites)

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sites)


def private_inputs(site: Site) -> tuple[Any, ...]:
    """What was private at a draw. For audits of made-up data."""
    return tuple(opened(secret) for secret in site.inputs)


class _Recorder(Noise):
    """A source that writes down what it answers.

    ``at`` gives a view of the recorder inside one step: both write to the same lists.
    """

    private = False
    _step = ""

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self._lots: list[Site] = []
        self._plans: list[PaidPlan] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()}, NOT PRIVATE>"

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: object) -> T:
        return self  # estimators and scikit-learn copy their parameters; a copy would have seen nothing

    def transcript(self) -> Transcript:
        """What has been drawn up to now."""
        return Transcript(tuple(self._sites), tuple(self._lots), tuple(self._plans))

    def record_plan(self, costs: Mapping[str, Cost]) -> None:
        """Write down what pays for the draws that follow: the costs of the steps of a plan. Not inside a step."""
        if not self._step:
            self._plans.append(PaidPlan(len(self._sites), dict(costs)))

    def at(self: R, step: str) -> R:
        """The recorder inside a step, which it does not leave again."""
        if self._step:
            return self
        view = object.__new__(type(self))
        view.__dict__ = {**self.__dict__, "_step": step}
        return view

    def _write(self, request: Request[Any], law: Law | None, drawn: Law | None, public: Public, answer: Any) -> Any:
        site = Site(request.method, law, drawn, public, answer, tuple(request.secrets.values()), self._step)
        if self._plans and site.method not in _UNPAID and site.step not in self._plans[-1].costs:
            raise StepError(f'a draw in the step "{site.step}", which the plan does not have')
        (self._lots if site.method in HIDDEN else self._sites).append(site)
        return _copied(site.answer)


class Witness(_Recorder):
    """A simulation that writes down every draw. NOT PRIVATE.

    ``shrink``: the noise is drawn so many times as wide as it was asked for, and written down with the law that it has:
    a faulty source, to see whether an audit finds it. ``source``: another source to watch instead of a simulation.

    >>> witness = Witness(1)
    >>> answer = witness.add(Secret(5), Gaussian(2))
    >>> [(site.method, site.law) for site in witness.transcript()]
    [('add', Gaussian(sigma=Fraction(2, 1)))]
    >>> witness
    <witness, NOT PRIVATE>
    """

    def __init__(self, seed: int = 0, *, shrink: Real = 1, source: Noise | None = None) -> None:
        super().__init__()
        self._shrink = rational(shrink, "shrink")
        self._source: Noise = Simulation(seed) if source is None else source

    def answer(self, request: Request[T]) -> T:
        """That of the source, written down."""
        kept = _kept(request)
        drawn = _widened(kept, self._shrink)
        answer = drawn.ask(self._source)
        return cast(T, self._write(kept, request.noise_law, drawn.noise_law, drawn.public, answer))


class Replay(_Recorder):
    """The answers of a transcript again, on other data, with what is private there.

    Where the walk asks for something else than it did (another method, law, or public number), or for more, it stops
    with ``Impossible``; ``finished`` is False as long as answers are left. Rows that are scattered go where they went
    before, by their position; rows that were not there are scattered anew. ``apart``: the place of the one row that
    one of the two tables has more; the last by default.
    """

    def __init__(self, transcript: Transcript, seed: int = 0, *, shrink: Real = 1, apart: int | None = None) -> None:
        super().__init__()
        self._apart = apart
        self._given, self._shrink, self._fresh = transcript, rational(shrink, "shrink"), Simulation(seed)
        self._failures: list[str] = []

    @property
    def impossible(self) -> bool:
        """Whether something else was asked for than before."""
        return bool(self._failures)

    @property
    def finished(self) -> bool:
        """Whether every answer has been given, and nothing else was asked for."""
        return not self.impossible and len(self._sites) == len(self._given)

    def answer(self, request: Request[T]) -> T:
        """That of the transcript."""
        kept = _kept(request)
        if isinstance(kept, Scattering):
            return cast(T, self._write(kept, None, None, kept.public, self._lot(kept)))
        place = len(self._sites)
        given = self._given.sites[place] if place < len(self._given) and not self.impossible else None
        asked = (kept.method, kept.noise_law, _widened(kept, self._shrink).public, self._step)
        inputs = tuple(kept.secrets.values())
        if given is None or asked != (given.method, given.law, given.public, given.step) or not _alike(given, inputs):
            self._failures.append("the walk on these data differs in what is public")
            raise Impossible(self._failures[0])
        return cast(T, self._write(kept, given.law, given.drawn, given.public, given.answer))

    def _lot(self, request: Scattering) -> NDArray[np.int64]:
        n, parts, place = request.inside(), request.parts, len(self._lots)
        known = self._given.lots[place] if place < len(self._given.lots) else None
        if known is None or known.public != request.public:
            return self._fresh.scatter(n, parts)
        if self._apart is not None and n == len(known.answer) - 1:
            return np.delete(known.answer, self._apart)
        if self._apart is not None and n == len(known.answer) + 1:
            return np.insert(known.answer, self._apart, self._fresh.scatter(1, parts))
        before: NDArray[np.int64] = known.answer[:n]
        return np.concatenate([before, self._fresh.scatter(n - len(before), parts)])


def scaled(law: Law, factor: Fraction) -> Law:
    """The same law, so many times as wide.

    >>> scaled(DiscreteGaussian(4), Fraction(1, 2)).variance
    Fraction(1, 1)
    """
    if isinstance(law, Gaussian):
        return Gaussian(law.sigma * factor)
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.variance * factor**2)
    kind: type[Laplace] | type[Gumbel] | type[DiscreteLaplace] = type(law)
    return kind(law.scale * factor)


def narrowed(law: Finite, factor: Fraction) -> Finite:
    """The law of so many times its noise, rounded to whole numbers.

    >>> narrowed(Finite(-2, (1, 2, 3, 2, 1)), Fraction(1, 2))
    Finite(lowest=-1, weights=(1, 7, 1))
    """
    places = [round((law.lowest + i) * factor) for i in range(len(law.weights))]
    weights = [0] * (places[-1] - places[0] + 1)
    for place, weight in zip(places, law.weights, strict=True):
        weights[place - places[0]] += weight
    return Finite(places[0], tuple(weights))


def _widened(request: Request[T], factor: Fraction) -> Request[T]:
    """The same request for noise that is so many times as wide."""
    if isinstance(request, PosteriorDraw):
        return cast("Request[T]", replace(request, precision=request.precision / factor**2))
    if isinstance(request, WeightedChoice):
        return cast("Request[T]", replace(request, rate=request.rate / factor))
    if isinstance(request, KeysAbove) and isinstance(request.law, Finite):
        return cast("Request[T]", replace(request, law=narrowed(request.law, factor)))
    law = request.noise_law
    return request if law is None else replace(request, law=scaled(law, factor))  # type: ignore[call-arg]


def _kept(request: Request[T]) -> Request[T]:
    """The same request, its private values safe from changes in place."""
    return replace(request, **{name: secret.map(_copied) for name, secret in request.secrets.items()})


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [list(row) if isinstance(row, list) else row for row in value]
    return value


def _alike(given: Site, inputs: tuple[Secret[Any], ...]) -> bool:
    """Whether as many numbers were asked about: their number is public, but that of keys."""
    if given.method in ("reveal", "minimiser", "keys_above"):
        return True
    if len(given.inputs) != len(inputs):
        return False
    return all(_shape(opened(a)) == _shape(opened(b)) for a, b in zip(given.inputs, inputs, strict=True))


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(np.shape(value)) if isinstance(value, np.ndarray | list | tuple) else ()
