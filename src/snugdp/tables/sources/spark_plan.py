"""What the plan of a Spark table says about its rows: whether some may be skipped, and whether they stay the same.

A table is read more than once, and the theorems are about one table. What a plan cannot tell, such as a function that
is not declared for what it is, is seen by the digests of the passes (``tables/passes/digest.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources.base import TableError
from snugdp.tables.sources.connect_text import is_clock

SKIPPING = ("ignoreCorruptFiles", "ignoreMissingFiles")
_DROPPING = "DROPMALFORMED"  # a mode of text files
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
_EXACT = {  # of which types: not of floats, and Spark adds up whole numbers for a mean as floats, to 2**53 exactly
    "Sum": ("tinyint", "smallint", "int", "bigint", "decimal"),
    "Average": ("tinyint", "smallint", "decimal"),
}
_UNITING = ("Aggregate", "Distinct", "Deduplicate", "Intersect", "Except")  # of equal rows one is left
_RANDOM = "AesEncrypt"  # with a random start, of which Spark's analysis knows nothing
_BATCHES = ("MapIn", "PythonMapIn", "MapPartitions", "FlatMap", "CoGroup")  # of mapInArrow, applyInPandas, ...
ROW_BY_ROW = frozenset({100, 101})  # functions in Python; others see batches, and how rows come in them may change
WAY_OUT = (
    "Write it first (table.write.parquet(path)) and read that, or give table.checkpoint(eager=True); a lazy checkpoint "
    "does not help"
)
MAY_CHANGE = (
    "the rows of the Spark table depend on {}, so that they may be others when it is read again, as fits do. "
    f"{WAY_OUT}"
)
NOT_INSPECTED = "the plan of the Spark table cannot be inspected: rows could be lost silently"


def check_plan(table: Any) -> None:
    """An error if the plan of the table may skip rows, or give other rows when it is run again. No row is looked at."""
    worked, found = attempt(lambda: _problem(table))
    if not worked:
        raise TableError(NOT_INSPECTED)
    if found is not None:
        raise TableError(found)


def _problem(table: Any) -> str | None:
    plan = table._jdf.queryExecution().analyzed()
    for node in _nodes(plan):
        for name, value in _options(node):
            if (option := skipping(name, value)) is not None:
                return skipped(option)
    cause = _cause(table.sparkSession, plan)
    return None if cause is None else MAY_CHANGE.format(cause)


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan and everything below it, subqueries too."""
    yield plan
    for below in (plan.children(), plan.subqueries()):
        for each in _items(below):
            yield from _nodes(each)


def skipped(option: str) -> str:
    """What is wrong with a table that is read with such an option."""
    return f"the Spark table is read with {option}: rows could be lost silently. Leave it out"


def skipping(name: str, value: str) -> str | None:
    """Which option that skips rows is set so, in any case, if one is.

    >>> skipping("ignorecorruptfiles", "true"), skipping("Mode", "dropMalformed"), skipping("mode", "FAILFAST")
    ('ignoreCorruptFiles', 'mode=DROPMALFORMED', None)
    """
    if name.lower() == "mode" and value.strip().upper() == _DROPPING:
        return f"mode={_DROPPING}"
    found = next((option for option in SKIPPING if option.lower() == name.lower()), None)
    return None if value.lower() == "false" else found


def named_skipping(text: str) -> str | None:
    """Which such option a description of a table names, whatever it says about it."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    return next((option for option in (*SKIPPING, _DROPPING) if option.lower() in words), None)


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
    patterns = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    for node in _nodes(plan):
        kind = _class(node)
        if not node.deterministic():
            return "a function that is not deterministic (such as rand, uuid, monotonically_increasing_id)"
        if kind in _SOME:
            return f"the order in which they come ({_SOME[kind]})"
        if kind.startswith("Deduplicate") and node.keys().size() < node.child().output().size():
            return "the order in which they come (dropDuplicates by some of the columns)"
        if kind.startswith(_BATCHES):
            return "the order in which they come (mapInArrow, mapInPandas or a function of groups)"
        if kind == "LogicalRDD" and node.rdd().checkpointData().isDefined() and not node.rdd().isCheckpointed():
            return "when they are read first, since its checkpoint is a lazy one"
        if kind.startswith(_UNITING) and _unites_collated(node, kind):
            return "the order in which they come (which of several texts that a collation takes for equal)"
        if kind == "Aggregate" and any(_depends_on_order(each) for each in _items(node.aggregateExpressions())):
            return "the order in which they come (an aggregate such as first, a sum of floats or a mean of integers)"
        if (found := _within(node, patterns)) is not None:
            return found
    return None


def _unites_collated(node: Any, kind: str) -> bool:
    """Whether rows become one that a collation takes for equal: those of the result, or those of a group."""
    keys = _items(node.groupingExpressions()) if kind == "Aggregate" else iter(())
    return _is_collated(str(node.schema().catalogString())) or any(_is_collated(_kind(key)) for key in keys)


def _is_collated(kind: str) -> bool:
    return " collate " in kind.lower()


def _within(node: Any, patterns: Any) -> str | None:
    """Why the expressions of one node may give other rows: texts that are the clock, functions of batches."""
    expressions = list(_items(node.expressions()))
    replaced = [each for top in expressions for each in _those(top, patterns.RUNTIME_REPLACEABLE())]
    if any(_class(each) == _RANDOM for each in replaced):
        return "a function that is not deterministic (aes_encrypt)"
    casts = (each for top in expressions for each in _those(top, patterns.CAST()))
    if any(map(_is_clock, (*replaced, *casts))):
        return "the date or the time (a text such as 'now', '12:30', or one that is put together, as a date)"
    if any(_sees_batches(each) for top in expressions for each in _those(top, patterns.PYTHON_UDF())):
        return "the order in which they come (a vectorised function of yours)"
    return None


def _those(expression: Any, pattern: Any) -> Iterator[Any]:
    """The expression and those below it, as far as there is such a pattern in them."""
    if expression.containsPattern(pattern):
        yield expression
        for each in _items(expression.children()):
            yield from _those(each, pattern)


def _is_clock(expression: Any) -> bool:
    """Whether it makes a time of a constant text that may be the clock; which text, only a literal shows."""
    if not _kind(expression).startswith(("date", "timestamp")):
        return False
    constants = (each for each in _items(expression.children()) if _kind(each).startswith("string") and each.foldable())
    return any(_class(each) != "Literal" or is_clock(str(each.value())) for each in constants)


def _kind(expression: Any) -> str:
    return str(expression.dataType().catalogString())


def _sees_batches(expression: Any) -> bool:
    return _class(expression) == "PythonUDF" and int(expression.evalType()) not in ROW_BY_ROW


def _depends_on_order(expression: Any) -> bool:
    """Whether there is an aggregate in an expression whose last bit may depend on the order of rows."""
    if _class(expression) == "AggregateExpression":
        function = expression.aggregateFunction()
        kind = _class(function)
        if kind in _EXACT:
            return not _kind(function.child()).startswith(_EXACT[kind])
        return kind not in _IN_ANY_ORDER or (kind in {"Min", "Max"} and _is_collated(_kind(function.child())))
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
