"""``--by``: statistics of every group of a table, for ``snugdp query group-by`` and for queries of one column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.options import Data, Delta, Epsilon, OptionGroup, PersonOptions, RawText, Relation
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing

if TYPE_CHECKING:
    from snugdp.numerics.rationals import Real
    from snugdp.queries.table import StatisticsTable
    from snugdp.tables.schema.schema import Schema
    from snugdp.tables.sources import Source

_FORMS = (".parquet", ".csv")
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the groups to this Parquet or CSV file.")]


@dataclass(frozen=True, kw_only=True)
class GroupOptions(OptionGroup):
    """How rows are grouped, and where the table goes."""

    by: Annotated[
        list[str] | None, typer.Option("--by", help="One answer for every group of this column; repeat for more.")
    ] = None
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            help="With --by: all keys, separated by commas, if they are public; for several columns: city=Oslo,Rome.",
        ),
    ] = None
    output: Output = None
    raw_text: RawText = False

    @property
    def wanted(self) -> bool:
        """Whether groups are asked for."""
        if not self.by and (self.keys or self.output):
            raise ValueError("--keys and --output are for groups: name their column with --by")
        return bool(self.by)

    def release(
        self,
        choices: ReleaseOptions,
        data: Any,
        statistics: Mapping[str, Sequence[str]],
        bounds: Mapping[str, tuple[Real | None, Real | None]],
        schema: Path | None,
        **budget: Any,
    ) -> None:
        """Release a table of statistics: plan, question, charge, files."""
        from snugdp.queries.groups import GroupBy
        from snugdp.tables.schema.schema import Schema
        from snugdp.tables.sources import open_source

        if not self.by:
            raise ValueError("name the key column: --by city")
        if self.output is not None and self.output.suffix not in _FORMS:
            raise ValueError(f"{self.output} must end in {' or '.join(_FORMS)}")
        source = open_source(data)
        described: Schema | None = None if schema is None else Schema.from_toml(schema)
        query = GroupBy(
            by=self.by,
            statistics=statistics,
            keys=self._listed(source),
            bounds=bounds,
            schema=described,
            **budget,
        )
        plan = query.plan()
        query.check(source)
        outcome = query.release(source, ledger=choices.agreed(plan))
        table = outcome.value
        if table is not None:
            self._write(table)
        names = ", ".join(self.by)
        shown = {"query": "group-by", "by": self.by, "table": None if table is None else table.to_dict()}
        words = None if table is None else f"Released: {len(table):,} groups by {names}\n{table!r}"
        public = {"by": names, "statistics": ", ".join(f"{one}: {', '.join(many)}" for one, many in statistics.items())}
        files = {} if table is None else {"table": self.output}
        result = ReleaseResult(words, shown, files, title=f"Groups by {names}", public=public)
        choices.tell(outcome, plan, result)

    def _listed(self, source: Source) -> dict[str, Sequence[Hashable]] | None:
        """The listed keys, as the declared types of their columns have them."""
        from snugdp.cli.reading import listed

        found: dict[str, Sequence[Hashable]] = {}
        for given in self.keys or ():
            name, equals, values = given.partition("=")
            if not equals or name not in (self.by or ()):
                if len(self.by or ()) > 1:
                    raise ValueError("with several key columns, say whose keys they are: --keys city=Oslo,Rome")
                name, values = (self.by or [""])[0], given
            found[name] = listed(name, [value.strip() for value in values.split(",")], source).levels
        return found or None

    def _write(self, table: StatisticsTable) -> None:
        if self.output is None:
            return
        from snugdp.serial.files import write_table

        write_table(table.to_polars(), self.output, raw_text=self.raw_text)


@releasing
def group_by(
    data: Data,
    *,
    asked: GroupOptions,
    statistic: Annotated[
        list[str] | None,
        typer.Option("--statistic", "-s", help="What to release of a column: income=mean,sum; repeat for more."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", help="Public bounds of a column, known without the data: income=0,1e6; repeat."),
    ] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="A schema with bounds and keys, a TOML file.")] = None,
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    max_keys: Annotated[int, typer.Option(help="For how many keys a row counts, where cells are lists of keys.")] = 1,
    inference: Annotated[
        bool, typer.Option("--inference", help="Confidence intervals for the population, of means and proportions.")
    ] = False,
    neighbours: Relation = "add_remove",
    persons: PersonOptions,
    choices: ReleaseOptions,
) -> None:
    """Count the rows of every group, and release statistics of its columns. Keys that few rows have are not shown.

    Example: snugdp query group-by people.parquet --by city -s income=mean --epsilon 1
    """
    pairs = dict(map(_named, bounds or ()))
    if any(len(pair) != 2 for pair in pairs.values()):
        raise ValueError("bounds are two numbers: --bounds income=0,1e6")
    ends = {name: (pair[0], pair[1]) for name, pair in pairs.items()}
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "max_keys": max_keys}
    wanted = {name: [value.replace("-", "_") for value in values] for name, values in map(_named, statistic or ())}
    budget["inference"] = inference
    asked.release(choices, data, wanted, ends, schema, **budget, **persons.persons(schema))


def _named(given: str) -> tuple[str, tuple[str, ...]]:
    """A column and what is said of it: "income=mean,sum"."""
    name, equals, values = given.partition("=")
    if not equals or not name or not values:
        raise ValueError(f"{given!r} must be a column and what is said of it, such as income=mean,sum")
    return name, tuple(value.strip() for value in values.split(","))
