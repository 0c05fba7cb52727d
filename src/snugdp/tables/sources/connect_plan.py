"""What the plan of a Spark Connect table says about its rows: whether some may be skipped, whether they stay the same.

A session of Spark Connect has no access to the plan as the server understands it, only to the request that it sends:
a tree of relations and expressions. What is not known to give the same rows whenever it is read is refused, so a
function or relation that is missing here costs a user a checkpoint, and nobody a guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources.base import TableError
from snugdp.tables.sources.connect_text import (
    function_problem,
    has_column,
    is_clock,
    is_collated,
    is_time,
    text_problem,
)
from snugdp.tables.sources.spark_plan import (
    MAY_CHANGE,
    NOT_INSPECTED,
    ROW_BY_ROW,
    WAY_OUT,
    named_skipping,
    skipped,
    skipping,
)

_UNJUDGED = (
    "whether the rows of the Spark Connect table stay the same cannot be told from here, because of {}; they are read "
    f"more than once. {WAY_OUT}"
)
_NAMED_BY_CELLS = (
    "the names of the columns of the Spark table are cells of its rows, because of {}. List the values, as in "
    "pivot(column, values), or give the table as it was before"
)
_BY_CELLS = frozenset({"transpose", "crosstab"})
_RELATIONS = frozenset(
    {
        "read",
        "project",
        "filter",
        "join",
        "set_op",
        "sort",
        "aggregate",
        "local_relation",
        "cached_local_relation",
        "chunked_cached_local_relation",
        "cached_remote_relation",
        "deduplicate",
        "range",
        "subquery_alias",
        "repartition",
        "repartition_by_expression",
        "to_df",
        "to_schema",
        "with_columns",
        "with_columns_renamed",
        "drop",
        "hint",
        "unpivot",
        "collect_metrics",
        "fill_na",
        "drop_na",
        "replace",
    }
)
_SOME = {  # which rows are left depends on the order in which they come
    "limit": "limit", "offset": "offset", "tail": "tail", "sample": "sample", "sample_by": "sampleBy",
}  # fmt: skip
_EXPRESSIONS = frozenset(
    {
        "literal",
        "unresolved_attribute",
        "unresolved_function",
        "expression_string",
        "unresolved_star",
        "alias",
        "cast",
        "unresolved_regex",
        "sort_order",
        "lambda_function",
        "unresolved_extract_value",
        "update_fields",
        "unresolved_named_lambda_variable",
        "common_inline_user_defined_function",
    }
)
_COLUMNS = frozenset({"UnresolvedAttribute", "UnresolvedStar", "UnresolvedRegex", "UnresolvedNamedLambdaVariable"})
_FORMATS = frozenset({"parquet", "orc", "avro", "csv", "json", "text", "xml", "delta", "iceberg"})
_DEFAULT_FORMAT = "spark.sql.sources.default"
_CLOCK = "a text that Spark may read as the date or the time (such as 'now', 'today')"
_COLLATED = "text with a collation"
_KEPT = frozenset({"MANAGED", "EXTERNAL"})  # tables that are written down, as views are not


def check_connect_plan(table: Any) -> None:
    """An error if the plan of the table may skip rows, or give other rows when it is run again. No row is looked at."""
    session = table.sparkSession
    worked, found = attempt(lambda: request_problem(table._plan.to_proto(session.client).root, session))
    if not worked:
        raise TableError(NOT_INSPECTED)
    if found is not None:
        raise TableError(found)


def check_connect_names(table: Any) -> None:
    """An error if the names of the columns are cells. The server is not asked: it would read rows to answer."""
    root = attempt(lambda: table._plan.to_proto(table.sparkSession.client).root)[1]
    if root is None:
        raise TableError(NOT_INSPECTED)
    relations = (each for each in _messages(root) if each.DESCRIPTOR.name == "Relation")
    found = next((cells for each in relations if (cells := _by_cells(each)) is not None), None)
    if found is not None:
        raise TableError(found)


def request_problem(relation: Any, session: Any) -> str | None:
    """What is wrong with the relation of a request, or nothing. The session is asked about named tables."""
    return next((found for each in _messages(relation) if (found := _one(each, session)) is not None), None)


def _messages(message: Any) -> Iterator[Any]:
    """A message and all messages below it, wherever they stand."""
    left = [message]
    while left:
        each = left.pop()
        yield each
        for field, value in each.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                left += [one for one in value.values() if hasattr(one, "ListFields")]
            else:
                left += [value] if hasattr(value, "ListFields") else value


def _one(message: Any, session: Any) -> str | None:
    kind = message.DESCRIPTOR.name
    if kind == "Relation":
        return _relation(message, session)
    if kind == "Expression":
        return _expression(message)
    if kind == "CommonInlineUserDefinedFunction":
        return _own_function(message)
    if any(map(is_clock, _texts(message))):
        return _UNJUDGED.format(_CLOCK)
    return _UNJUDGED.format(_COLLATED) if any(map(is_collated, _types(message))) else None


def _texts(message: Any) -> list[str]:
    """The texts that a literal holds."""
    kind = message.DESCRIPTOR.full_name.rpartition("spark.connect.")[2]
    if kind == "Expression.Literal":
        return [message.string, message.binary.decode("latin-1")]
    return list(message.values) if kind == "Strings" else []


def _types(message: Any) -> list[str]:
    """The types that a message says in words."""
    kind = message.DESCRIPTOR.full_name.rpartition("spark.connect.")[2]
    if kind == "DataType.String":
        return [] if message.collation in {"", "UTF8_BINARY"} else [f"collate {message.collation}"]
    name = {"Expression.Cast": "type_str", "DataType.Unparsed": "data_type_string"}.get(kind)
    name = "schema" if kind in {"Read.DataSource", "LocalRelation"} else name
    return [] if name is None else [getattr(message, name)]


def _relation(message: Any, session: Any) -> str | None:
    kind = message.WhichOneof("rel_type")
    if kind in _SOME:
        return MAY_CHANGE.format(f"the order in which they come ({_SOME[kind]})")
    if (cells := _by_cells(message)) is not None:
        return cells
    if kind not in _RELATIONS:
        return _UNJUDGED.format(f'"{kind}" in its plan')
    if kind == "deduplicate" and not message.deduplicate.all_columns_as_keys:
        return MAY_CHANGE.format("the order in which they come (dropDuplicates by some of the columns)")
    return _read(message.read, session) if kind == "read" else None


def _by_cells(message: Any) -> str | None:
    """An error if the names of columns are cells of the rows."""
    kind = message.WhichOneof("rel_type")
    if kind == "aggregate" and message.aggregate.HasField("pivot") and not message.aggregate.pivot.values:
        return _NAMED_BY_CELLS.format("a pivot")
    return _NAMED_BY_CELLS.format(kind) if kind in _BY_CELLS else None


def _read(read: Any, session: Any) -> str | None:
    if read.is_streaming:
        return MAY_CHANGE.format("when they are read, since it is a stream")
    kind = read.WhichOneof("read_type")
    if kind == "named_table":
        given = read.named_table
        return _option(given.options) or _stored(given.unparsed_identifier, session)
    return _files(read.data_source, session) if kind == "data_source" else _UNJUDGED.format(f'"{kind}" in its plan')


def _files(source: Any, session: Any) -> str | None:
    if source.predicates:
        return _UNJUDGED.format("predicates of a database")
    kind = source.format or session.conf.get(_DEFAULT_FORMAT, "parquet")
    return _option(source.options) if kind.lower() in _FORMATS else _UNJUDGED.format(f'the format "{kind}"')


def _option(options: Any) -> str | None:
    if any(is_clock(value) for value in options.values()):
        return _UNJUDGED.format(_CLOCK)
    found = (option for name, value in options.items() if (option := skipping(name, value)))
    return next((skipped(option) for option in found), None)


def _stored(name: str, session: Any) -> str | None:
    """What is wrong with a table of the catalogue. Its description has no rows of it."""
    about = [(row[0], row[1] or "") for row in session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
    if ("# Detailed Table Information", "") not in about:
        return _UNJUDGED.format(f"the view {name}")
    first = about.index(("# Detailed Table Information", ""))
    columns, facts = about[:first], about[first:]
    if any(is_collated(kind) for _, kind in columns):
        return _UNJUDGED.format(_COLLATED)
    for _, text in facts:
        if (option := named_skipping(text)) is not None:
            return skipped(option)
    if any(text.lower() not in _FORMATS for fact, text in facts if fact == "Provider"):
        return _UNJUDGED.format(f"the format of {name}")
    return None if _KEPT.intersection(text for fact, text in facts if fact == "Type") else _UNJUDGED.format(name)


def _expression(message: Any) -> str | None:
    kind = message.WhichOneof("expr_type")
    if kind == "window":
        return MAY_CHANGE.format("the order in which they come (a window function)")
    if kind not in _EXPRESSIONS:
        return _UNJUDGED.format(f'"{kind}" in its plan')
    found = None
    if kind == "expression_string":
        found = text_problem(message.expression_string.expression)
    if kind == "unresolved_function":
        found = _function(message.unresolved_function)
    if kind == "unresolved_attribute" and is_time(message.unresolved_attribute.unparsed_identifier):
        found = "the date, the time or the session"
    return None if found is None else _UNJUDGED.format(found)


def _function(message: Any) -> str | None:
    if message.is_user_defined_function or message.is_internal:
        return f'the function "{message.function_name}", which is not one of Spark\'s own'
    return function_problem(message.function_name, _has_column(message))


def _has_column(message: Any) -> bool:
    """Whether a column is read somewhere below. What is computed without one is a constant, which Spark folds."""
    return any(
        each.DESCRIPTOR.name in _COLUMNS or (each.DESCRIPTOR.name == "ExpressionString" and has_column(each.expression))
        for each in _messages(message)
    )


def _own_function(message: Any) -> str | None:
    """What is wrong with a function of the user's that travels with the request."""
    if not message.deterministic:
        return MAY_CHANGE.format("a function that is not deterministic")
    kind = message.WhichOneof("function")
    if kind == "python_udf":
        alone = message.python_udf.eval_type in ROW_BY_ROW
    else:
        alone = kind is not None and not getattr(message, kind).aggregate and _has_column(message)
    return None if alone else _UNJUDGED.format("a function of yours that does not take rows one by one")
