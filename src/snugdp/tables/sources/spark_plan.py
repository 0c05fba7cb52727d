"""What the plan of a Spark table says about its rows: whether some may be skipped, and whether they stay the same.

A table is read more than once, and the theorems are about one table. What a plan cannot tell, such as a function that
is not declared for what it is, is seen by the digests of the passes (``tables/passes/digest.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources.base import TableError

SKIPPING = ("ignoreCorruptFiles", "ignoreMissingFiles")
_SOME = {  # which rows are left depends on the order in which they come
    "GlobalLimit": "limit", "LocalLimit": "limit", "Limit": "limit", "Offset": "offset", "Tail": "tail",
    "Sample": "sample", "Window": "a window function",
}  # fmt: skip
_IN_ANY_ORDER = {
    "Count",
    "CountIf",
    "Min",
    "Max",
    "BoolAnd",
    "BoolOr",
    "BitAndAgg",
    "BitOrAgg",
    "BitXorAgg",
    "PivotFirst",
}
_SUMS = {"Sum", "Average"}  # of whole numbers and decimals in any order; not of floats
_WHOLE = ("tinyint", "smallint", "int", "bigint", "decimal")
_MAY_CHANGE = (
    "the rows of the Spark table depend on {}, so that they may be others when it is read again, as fits do. Write it "
    "first (table.write.parquet(path)) and read that, or give table.checkpoint()"
)


def check_plan(table: Any) -> None:
    """An error if the plan of the table may skip rows, or give other rows when it is run again. No row is looked at."""
    worked, found = attempt(lambda: _problem(table))
    if not worked:
        raise TableError("the plan of the Spark table cannot be inspected: rows could be lost silently")
    if found is not None:
        raise TableError(found)


def _problem(table: Any) -> str | None:
    plan = table._jdf.queryExecution().analyzed()
    for node in _nodes(plan):
        for name, value in _options(node):
            if value.lower() != "false" and (option := _skipping(name)) is not None:
                return f"the Spark table is read with {option}: rows could be lost silently. Leave it out"
    cause = _cause(table.sparkSession, plan)
    return None if cause is None else _MAY_CHANGE.format(cause)


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan and everything below it, subqueries too."""
    yield plan
    for below in (plan.children(), plan.subqueries()):
        for each in _items(below):
            yield from _nodes(each)


def _skipping(name: str) -> str | None:
    return next((option for option in SKIPPING if option.lower() == name.lower()), None)


def _options(plan: Any) -> Iterator[tuple[str, str]]:
    """With which options the files of one node are read; they overrule the session's."""
    kind = _class(plan)
    if kind == "LogicalRelation" and _class(plan.relation()) == "HadoopFsRelation":
        yield from _pairs(plan.relation().options())
    elif kind == "DataSourceV2Relation":
        yield from ((str(name), str(value)) for name, value in plan.options().asCaseSensitiveMap().items())
    elif kind == "HiveTableRelation":
        yield from _pairs(plan.tableMeta().storage().properties())


def _cause(session: Any, plan: Any) -> str | None:
    """Why the plan may give other rows when it is run again, if it may."""
    if plan.isStreaming():
        return "when they are read, since it is a stream"
    if plan.containsPattern(session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()):
        return "the date, the time or the session (such as current_timestamp)"
    for node in _nodes(plan):
        kind = _class(node)
        if not node.deterministic():
            return "a function that is not deterministic (such as rand, uuid, monotonically_increasing_id)"
        if kind in _SOME:
            return f"the order in which they come ({_SOME[kind]})"
        if kind.startswith("Deduplicate") and node.keys().size() < node.child().output().size():
            return "the order in which they come (dropDuplicates by some of the columns)"
        if kind == "Aggregate" and any(_depends_on_order(each) for each in _items(node.aggregateExpressions())):
            return "the order in which they come (an aggregate such as first, or a sum of floats)"
    return None


def _depends_on_order(expression: Any) -> bool:
    """Whether there is an aggregate in an expression whose last bit may depend on the order of rows."""
    if _class(expression) == "AggregateExpression":
        function = expression.aggregateFunction()
        kind = _class(function)
        exact = kind in _SUMS and str(function.child().dataType().catalogString()).startswith(_WHOLE)
        return not exact and kind not in _IN_ANY_ORDER
    return any(_depends_on_order(each) for each in _items(expression.children()))


def _class(thing: Any) -> str:
    return str(thing.getClass().getName()).rpartition(".")[2]


def _items(sequence: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def _pairs(options: Any) -> Iterator[tuple[str, str]]:
    """The entries of a Scala map."""
    entries = options.iterator()
    while entries.hasNext():
        entry = entries.next()
        yield str(entry._1()), str(entry._2())
