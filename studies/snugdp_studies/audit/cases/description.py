"""Descriptions of tables: a column of numbers, one of labels and one of booleans at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import snugdp
from snugdp.audit.finding import Case
from snugdp.noise import Noise
from snugdp.tables.schema.kinds import Undeclared
from snugdp_studies.audit.cases.tables import ODD, Generator, near, one_of

Row: TypeAlias = tuple[Any, Any, Any]
Rows: TypeAlias = list[Row]
EPSILON, DELTA = 1, 0.01
LOW, HIGH = -1, 4
SCHEMA = snugdp.Schema(
    {"x": snugdp.Number(LOW, HIGH), "k": snugdp.Category(["a", "b"]), "b": snugdp.Boolean()}, intercept=False
)
_TYPICAL: Rows = [(0.0, "a", True), (1.0, "b", False), (HIGH, "a", None)] * 4


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    for relation in ("add_remove", "replace"):
        for delta in (0, DELTA):
            tag = "".join((", delta" if delta else "", ": replace" if relation == "replace" else ""))
            given: dict[str, Any] = {"epsilon": EPSILON, "delta": delta, "neighbours": relation, "schema": SCHEMA}
            yield _case(
                f"describe{tag}",
                snugdp.Describe(**given),
                relation,
                random=partial(_top_changes, relation),
                tight=False,  # many parts, none at its worst
                parts=not delta,  # draws that are paid with a Gaussian part are seen step by step
            )
            counted = snugdp.Describe(**given, statistics=())
            yield _case(f"describe: counts{tag}", counted, relation, tight=relation == "add_remove")
            quartiles: dict[str, Any] = {"statistics": ("mean", "quantiles"), "quantiles": (0.5,), "clip": None}
            yield _case(
                f"describe: means and medians{tag}",
                snugdp.Describe(**given, **quartiles, steps={"x": 1}),
                relation,
                tight=False,  # all columns are not at their worst on the same rows
                parts=not delta,  # a draw that is paid with a Gaussian part
            )
        yield _found_case(f"describe: found{': replace' if relation == 'replace' else ''}", relation)


def _found_case(name: str, relation: str) -> Case[Rows]:
    """Nothing is declared but that b holds booleans: kinds, bounds and levels are found, then described."""
    schema = snugdp.Schema({"x": Undeclared(), "k": snugdp.Category(), "b": snugdp.Boolean()}, intercept=False)
    query = snugdp.Describe(schema=schema, epsilon=4, delta=DELTA, neighbours=relation, statistics=("mean",), clip=None)
    many: Rows = [(5.0, "a", True), (7.0, "b", False), (6.0, "a", None)] * 60  # found, and zoomed
    gone: Rows = [] if relation == "add_remove" else [(None, None, None)]
    other: Rows = [] if relation == "add_remove" else [(8.0, "b", False)]
    new: Rows = [(5.0, "a", True)]
    odd: Rows = [("Rome", "alone", None)]
    worst = [(many + new, many + gone), (many + odd, many + gone), (many + odd, many + new), (new, gone)]
    worst = [pair for pair in worst if relation == "replace" or len(pair[0]) != len(pair[1])]
    return Case(
        name,
        lambda rows, noise: query.release(_undeclared(rows), noise=noise),
        query.plan().cost,
        partial(list, [*worst, (many + new, many + other)]),
        random=partial(near, row=_row, odd=_odd, relation=relation, least=1, most=60),
        group="description",
        tight=False,  # a row is in one bin of a zoom at most, and columns are not all at their worst
        parts=False,  # a level is shown or not
    )


def _case(name: str, query: snugdp.Describe, relation: str, **claims: Any) -> Case[Rows]:
    given = {one: getattr(query, one) for one in ("epsilon", "delta", "statistics", "quantiles", "steps", "clip")}

    def run(rows: Rows, noise: Noise) -> Any:
        if relation == "add_remove":
            return query.release(_table(rows), noise=noise)
        return snugdp.describe(_table(rows), schema=SCHEMA, neighbours=relation, noise=noise, **given)

    other: Rows = [] if relation == "add_remove" else [(LOW, "b", False)]
    gone: Rows = [] if relation == "add_remove" else [(None, None, None)]
    new: Rows = [(HIGH, "a", True)]
    worst = [(_TYPICAL + new, _TYPICAL + gone), (new, gone)]
    if "random" not in claims:
        worst = [(_TYPICAL + new, _TYPICAL + other), *worst]
    claims.setdefault("random", partial(near, row=_row, odd=_odd, relation=relation, least=1, most=30))
    return Case(name, run, query.plan().cost, partial(list, worst), group="description", **claims)


def _top_changes(relation: str, generator: Generator) -> tuple[Rows, Rows]:
    """A row with the largest number comes or goes, or loses its number.

    Several quantiles give every number random digits, in ascending order: a row in the midst would move those of
    others, which the proof couples and an audit that repeats what was drawn does not.
    """
    rows = [_row(generator) for _ in range(int(generator.integers(0, 12)))]
    new = (one_of(generator, (HIGH, float("inf"), 1e300)), *_row(generator)[1:])
    other = [] if relation == "add_remove" else [(None, *_row(generator)[1:])]
    return [*rows, new], [*rows, *other]


def _row(generator: Generator) -> Row:
    number = one_of(generator, (LOW, 0, HIGH, round(float(generator.uniform(LOW, HIGH)), 1)))
    return float(number), one_of(generator, ("a", "b", "c")), one_of(generator, (True, False))


def _odd(generator: Generator) -> Row:
    return one_of(generator, (*ODD, None)), one_of(generator, ("", "nobody", None)), None


def _undeclared(rows: Rows) -> Any:
    import polars

    columns = {name: [row[place] for row in rows] for place, name in enumerate("xkb")}
    return polars.DataFrame({name: polars.Series(cells, dtype=polars.Object) for name, cells in columns.items()})


def _table(rows: Rows) -> Any:
    import polars

    kinds = {"x": polars.Float64, "k": polars.String, "b": polars.Boolean}
    columns = ([row[place] for row in rows] for place in range(3))
    return polars.DataFrame(
        {name: polars.Series(column, dtype=kind) for column, (name, kind) in zip(columns, kinds.items(), strict=True)}
    )
