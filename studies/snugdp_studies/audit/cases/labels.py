"""Mode, vote and bounds: what is chosen from a public list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import snugdp
from snugdp.accounting import gaussian
from snugdp.audit.finding import Case
from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.votes import vote as _vote
from snugdp.noise import Noise
from snugdp_studies.audit.cases.tables import ODD, Generator, foremost, near, one_of

Rows: TypeAlias = list[Any]
Pair: TypeAlias = tuple[Rows, Rows]
EPSILON, DELTA = 1.0, 0.01
LABELS = ("a", "b", "c")
_RELATIONS = ("add_remove", "replace")


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    for relation in _RELATIONS:
        yield from _modes(relation)
        yield from _votes(relation)
    yield from _bounds()


def _named(name: str, relation: str) -> str:
    return name if relation == "add_remove" else f"{name}: replace"


def _counted(**counts: int) -> Rows:
    return [label for label, count in counts.items() for _ in range(count)]


def _lead(lead: int, relation: str, *, base: int = 3) -> Pair:
    """Two candidates, and a row that makes the lead of the first smaller: it goes, or it goes to the other one."""
    a, b = base + max(lead, 0), base + max(-lead, 0)
    rows = _counted(a=a, b=b)
    return (rows, [*rows[1:], "b"]) if relation == "replace" else (rows, rows[1:])


def _leads(leads: list[int], relation: str) -> list[Pair]:
    return [_lead(lead, relation) for lead in leads]


def _random(relation: str, labels: tuple[str, ...] = LABELS) -> Callable[[Generator], Pair]:
    def odd(generator: Generator) -> Any:
        return one_of(generator, (*ODD, None, "nobody", 1, True, labels[-1]))

    return lambda generator: near(
        generator, lambda g: one_of(g, (*labels, labels[0])), odd, relation=relation, least=1, most=30
    )


def _modes(relation: str) -> Iterator[Case[Rows]]:
    given: dict[str, Any] = {"categories": LABELS, "epsilon": EPSILON, "delta": DELTA, "neighbours": relation}
    query = snugdp.Mode(**given)
    test: DistanceTest[Any] = integer_laplace(
        lambda _: 0, epsilon=EPSILON, delta=DELTA, neighbours=Neighbours.of(relation)
    )

    def run(rows: Rows, noise: Noise) -> Any:
        if relation == "replace":
            return snugdp.mode(rows, noise=noise, **given)
        return query.release(rows, noise=noise)

    def worst() -> list[Pair]:
        step = _vote.step(test.cost.neighbours.relation)
        return [_lead(step * int(test.threshold), relation), _lead(step * int(test.threshold) + 1, relation), _tie()]

    def _tie() -> Pair:
        rows = _counted(a=3, b=3)  # of equals the first one counts
        return (rows, ["b", *rows[1:]]) if relation == "replace" else (rows, [*rows, "b"])

    yield Case(
        name=_named("mode", relation),
        group="queries",
        run=run,
        cost=query.plan().cost,
        worst=worst,
        random=_random(relation),
    )


def _votes(relation: str) -> Iterator[Case[Rows]]:
    step = _vote.step(Neighbours.of(relation).relation)
    strength = _vote.noise_epsilon_for(EPSILON, DELTA, Neighbours.of(relation).relation)
    worst_gap = max(range(30), key=lambda gap: _vote.epsilon_at(strength, gap, DELTA, Neighbours.of(relation).relation))
    mu = gaussian.mu(EPSILON, DELTA)
    # The half-line that tells a Gaussian pair apart best at EPSILON, as a lead of one candidate over the other.
    half_line = round(step**0.5 / mu * 2**0.5 * (EPSILON / mu - mu / 2))
    forms: dict[str, tuple[dict[str, Any], list[int], tuple[str, ...]]] = {
        "gumbel": ({}, [3 * step, 6 * step, step], LABELS),
        "laplace": ({"law": "laplace"}, [3 * step, 4 * step, step], LABELS),
        "laplace, two": ({"delta": DELTA}, [worst_gap, worst_gap + step, worst_gap + 1, step], LABELS[:2]),
        "gaussian": ({"delta": DELTA, "law": "gaussian"}, [half_line, half_line + 1, 0], LABELS[:2]),
    }
    for law, (given, leads, labels) in forms.items():
        query = snugdp.Vote(candidates=labels, epsilon=EPSILON, neighbours=relation, **given)
        yield Case(
            name=_named(f"vote: {law}", relation),
            group="queries",
            run=_voting(query, labels, relation),
            cost=query.plan().cost,
            worst=partial(_back, leads, relation),
            random=_random(relation, labels),
            tight=law != "gaussian",  # one bit of Gaussian noise needs thousands of runs; its parts are exact
            parts=law != "laplace, two",  # whose noise costs less than its scale says, for a delta
        )
    yield _tested_vote(relation)


def _back(leads: list[int], relation: str) -> list[Pair]:
    """Without the row first: a candidate that leads loses more easily then."""
    return foremost(_leads(leads, relation), 0, back=True)


def _voting(query: snugdp.Vote[Any], labels: tuple[str, ...], relation: str) -> Callable[[Rows, Noise], Any]:
    """By the object; by the function where a row is replaced."""
    if relation == "add_remove":
        return lambda rows, noise: query.release(rows, noise=noise)
    given: dict[str, Any] = {"epsilon": query.epsilon, "delta": query.delta, "law": query.law}
    return lambda rows, noise: snugdp.vote(rows, candidates=labels, neighbours=relation, noise=noise, **given)


def _tested_vote(relation: str) -> Case[Rows]:
    proposal = 0.8  # its loss is small without a lead, and then it grows, and it is small again from a lead of 6 on
    query = snugdp.Vote(
        candidates=LABELS[:2], epsilon=EPSILON, delta=DELTA, noise_epsilon=proposal, neighbours=relation
    )
    name = Neighbours.of(relation).relation
    test: DistanceTest[Any] = integer_laplace(
        lambda _: 0, epsilon=EPSILON / 2, delta=DELTA / 2, neighbours=Neighbours.of(relation)
    )
    least = int(_vote.least_gap(proposal, EPSILON / 2, DELTA / 2, name))
    border = least + _vote.step(name) * int(test.threshold)
    return Case(
        name=_named("vote: tested", relation),
        group="queries",
        run=lambda rows, noise: query.release(rows, noise=noise),
        cost=query.plan().cost,
        worst=lambda: [_lead(lead, relation) for lead in (0, border, border - 1, border - 2, *range(1, 10))],
        random=_random(relation, LABELS[:2]),
        tight=False,  # of the two halves of epsilon that the vote spends, its lead uses little
        parts=False,  # the noise of a vote that was tested costs less than its scale says
    )


def _bounds() -> Iterator[Case[Any]]:
    for relation, outside in (*zip(_RELATIONS, (0.0, 0.0), strict=True), (_RELATIONS[-1], 0.4)):
        query = snugdp.Bounds(epsilon=EPSILON, neighbours=relation, outside=outside)
        low, high = [-1000.0] * 20, [1000.0] * 20
        moved = (low + high, [*low[1:], *high, 1000.0]) if relation == "replace" else (low + high, low[1:] + high)
        far = [0.0] * 60 + [-1e300], [0.0] * 60 + [1e300] * (relation == "replace")  # of all scores, both ways
        yield Case(
            name=_named("bounds", relation) + (", most inside" if outside else ""),
            group="queries",
            run=_bounding(query, relation),
            cost=query.plan().cost,
            worst=partial(list, [far, moved]),
            random=_random_numbers(relation),
            tight=False,  # of 643 edges the best is hardly ever one that such a row decides
        )
    table = snugdp.Bounds(epsilon=EPSILON, columns=["x", "y"])

    def columns(rows: Rows) -> dict[str, Any]:
        return {"x": np.array([x for x, _ in rows]), "y": np.array([y for _, y in rows])}

    def run(rows: Rows, noise: Noise) -> Any:
        import polars

        return table.release(polars.DataFrame(columns(rows)), noise=noise)

    def pair(generator: Generator) -> tuple[Rows, Rows]:
        def cell(generator: Generator) -> tuple[float, float]:
            return float(generator.normal(0, 50)), float(generator.normal(3, 1))

        def odd(generator: Generator) -> tuple[float, float]:
            return one_of(generator, ODD), one_of(generator, ODD)

        return near(generator, cell, odd, relation="add_remove", least=1, most=60)

    rows, zeros = [(-100.0, 3.0)] * 25, [(0.0, 0.0)] * 90
    yield Case(
        name="bounds: of two columns",
        group="queries",
        run=run,
        cost=table.plan().cost,
        worst=lambda: [([*rows, (1e300, -1e300)], rows), ([*zeros, (-1e300, 1e300)], zeros)],
        random=pair,
        tight=False,  # as above
    )


def _bounding(query: snugdp.Bounds, relation: str) -> Callable[[Rows, Noise], Any]:
    if relation == "add_remove":
        return lambda rows, noise: query.release(rows, noise=noise)
    given: dict[str, Any] = {"epsilon": query.epsilon, "outside": query.outside, "neighbours": relation}
    return lambda rows, noise: snugdp.private_bounds(rows, noise=noise, **given)


def _random_numbers(relation: str) -> Callable[[Generator], Pair]:
    def odd(generator: Generator) -> Any:
        return one_of(generator, (*ODD, None, "word", 2.0**-20, -(2.0**60)))

    return lambda generator: near(
        generator, lambda g: float(g.normal(0, 100)), odd, relation=relation, least=2, most=60
    )
