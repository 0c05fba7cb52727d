"""What requests of Spark Connect are refused for, without a server."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from snugdp.tables.sources import TableError
from snugdp.tables.sources.cluster import SparkSource, declared, is_remote
from snugdp.tables.sources.connect_plan import request_problem
from tests.tables.clusters import MARKS, needs_pyspark

needs_pyspark()
pytest.importorskip("grpc", reason="Spark Connect is not installed: pip install 'snugdp[spark]'")
pytestmark = MARKS[1:]


def messages() -> Any:
    from pyspark.sql.connect import proto

    return proto


def rows() -> Any:
    return messages().Relation(read={"data_source": {"format": "parquet", "paths": ["rows"]}})


def problem(relation: Any, about: list[tuple[str, str]] | None = None) -> str | None:
    answer = SimpleNamespace(collect=lambda: about)
    conf = SimpleNamespace(get=lambda name, other: other)
    return request_problem(relation, SimpleNamespace(sql=lambda text: answer, conf=conf))


def where(text: str) -> Any:
    return messages().Relation(filter={"input": rows(), "condition": {"expression_string": {"expression": text}}})


def column(**expression: Any) -> Any:
    return messages().Relation(project={"input": rows(), "expressions": [expression]})


def call(name: str, *arguments: Any) -> dict[str, Any]:
    return {"unresolved_function": {"function_name": name, "arguments": list(arguments)}}


def text(value: str) -> dict[str, Any]:
    return {"literal": {"string": value}}


def own(**function: Any) -> dict[str, Any]:
    given = {"function_name": "f", "deterministic": True, "arguments": [A], **function}
    return {"common_inline_user_defined_function": given}


def data(**source: Any) -> Any:
    return messages().Relation(read={"data_source": {"paths": ["rows"], **source}})


def pivot(*values: str) -> Any:
    cases = {"col": A, "values": [{"string": value} for value in values]}
    given = {"input": rows(), "group_type": 4, "aggregate_expressions": [call("max", A)], "pivot": cases}
    return messages().Relation(aggregate=given)


A = {"unresolved_attribute": {"unparsed_identifier": "a"}}
SAME: dict[str, Callable[[], Any]] = {
    "files": rows,
    "a column": lambda: column(**A),
    "a function": lambda: column(**call("round", call("+", A, A))),
    "an aggregate": lambda: messages().Relation(aggregate={"input": rows(), "aggregate_expressions": [call("MAX", A)]}),
    "all columns": lambda: messages().Relation(deduplicate={"input": rows(), "all_columns_as_keys": True}),
    "both": lambda: messages().Relation(set_op={"left_input": rows(), "right_input": where("a > 3")}),
    "a checkpoint": lambda: messages().Relation(cached_remote_relation={"relation_id": "x"}),
    "a function of the user's": lambda: column(**own(python_udf={"eval_type": 100})),
    "one on the server": lambda: column(**own(java_udf={"class_name": "f"})),
    "a day": lambda: column(**call("==", A, call("to_date", text("2024-01-31")))),
    "text and a column": lambda: column(**call("concat", text("to"), A)),
    "a constant number": lambda: column(**call("+", A, call("sqrt", {"literal": {"double": 2.0}}))),
    "a cast": lambda: column(cast={"expr": A, "type": {"string": {"collation": "UTF8_BINARY"}}}),
    "a pivot with values": lambda: pivot("x", "y"),
    "the default format": data,
    "lakes": lambda: data(format="DELTA"),
}
MAY_CHANGE: dict[str, Callable[[], Any]] = {
    "(limit)": lambda: messages().Relation(limit={"input": rows(), "limit": 3}),
    "(offset)": lambda: messages().Relation(offset={"input": rows(), "offset": 3}),
    "(tail)": lambda: messages().Relation(tail={"input": rows(), "limit": 3}),
    "(sample)": lambda: messages().Relation(sample={"input": rows(), "upper_bound": 0.5, "seed": 1}),
    "dropDuplicates": lambda: messages().Relation(deduplicate={"input": rows(), "column_names": ["a"]}),
    "a window": lambda: column(window={"window_function": call("max", A)}),
    "not deterministic": lambda: column(common_inline_user_defined_function={"function_name": "f", "arguments": [A]}),
    "a stream": lambda: messages().Relation(read={"is_streaming": True, "data_source": {"format": "rate"}}),
    '"sql" in its plan': lambda: messages().Relation(sql={"query": "select 1"}),
    'the function "rand"': lambda: column(**call("+", A, call("rand"))),
    'function "sum"': lambda: messages().Relation(
        aggregate={"input": rows(), "aggregate_expressions": [call("sum", A)]}
    ),
    'function "first"': lambda: column(**call("first", A)),
    'the function "uuid"': lambda: where("a > 3 and uuid() > '5'"),
    "the date, the time or the session": lambda: column(unresolved_attribute={"unparsed_identifier": "`current_date`"}),
    '"subquery_expression"': lambda: column(subquery_expression={"plan_id": 3}),
    "may read as the date or the time": lambda: column(**call("<", A, text("now"))),
    "(such as 'now', 'today')": lambda: column(cast={"expr": text(" Today CET"), "type_str": "timestamp"}),
    "as the date or the time (such": lambda: column(literal={"array": {"elements": [{"string": "Tomorrow"}]}}),
    "text that Spark may read": lambda: column(literal={"binary": b"now"}),
    "Spark may read as the date": lambda: data(format="delta", options={"timestampAsOf": "now"}),
    '"concat" without a column': lambda: column(**call("<", A, call("concat", text("to"), text("day")))),
    '"chr" without a column': lambda: column(**call("to_date", call("chr", {"literal": {"integer": 110}}))),
    '"upper" without a column': lambda: column(**call("upper", {"expression_string": {"expression": "'x'"}})),
    "does not take rows one by one": lambda: column(**own(python_udf={"eval_type": 200})),
    "of yours that does not take rows": lambda: column(**own(python_udf={"eval_type": 202})),
    "a function of yours that": lambda: column(**own(java_udf={"class_name": "f", "aggregate": True})),
    "yours that does not": lambda: column(**own(scalar_scala_udf={"aggregate": True})),
    "rows one by one": lambda: column(**own(java_udf={"class_name": "f"}, arguments=[text("x")])),
    '"map_partitions" in its plan': lambda: messages().Relation(
        map_partitions={"input": rows(), "func": {"deterministic": True, "python_udf": {"eval_type": 207}}}
    ),
    "which is not one of Spark's own": lambda: column(
        unresolved_function={"function_name": "round", "arguments": [A], "is_user_defined_function": True}
    ),
    'the format "jdbc"': lambda: data(format="jdbc"),
    'the format "kafka"': lambda: data(format="kafka"),
    "predicates": lambda: data(format="parquet", predicates=["random() < 0.5"]),
    "a collation": lambda: column(cast={"expr": A, "type": {"string": {"collation": "UTF8_LCASE"}}}),
    "with a collation": lambda: column(cast={"expr": A, "type_str": "string collate UTF8_LCASE"}),
    "text with a collation": lambda: data(format="csv", schema="a string collate UTF8_LCASE"),
    "as the date or the time": lambda: column(literal={"specialized_array": {"strings": {"values": ["now"]}}}),
    "come (limit)": lambda: messages().Relation(
        join={"left": rows(), "right": messages().Relation(limit={"input": rows(), "limit": 3})}
    ),
}


def test_plans_that_give_the_same_rows_are_read() -> None:
    assert {name: problem(make()) for name, make in SAME.items()} == dict.fromkeys(SAME)


def test_plans_that_may_not_are_refused_with_the_way_out() -> None:
    for why, make in MAY_CHANGE.items():
        found = problem(make())
        assert found is not None, why
        assert why in found
        assert "table.checkpoint(eager=True)" in found


@pytest.mark.parametrize(
    "text",
    [
        "a > 3", "double(a) as b", "a IS NULL or `b c` in ('x', 'it''s')", "a::decimal(3, 1)", "a like 'x%'",
        "case when a = 'x' then 'y' else b end", "a || 'x' || c.b", "'x' || c.b", "concat(a, '-', b)", "map('x', a)",
        "to_date('2024-01-31') < a", "a < 'nowhere'", "exists(b, x -> x > 1)", "count(*) > 3", "a in (1, 2)",
    ],
)  # fmt: skip
def test_text_that_is_understood(text: str) -> None:
    assert problem(where(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "rand() > a", "a > RAND (3)", "`rand`() > 0", '"rand"() > 0', "system.builtin.rand() > 0",
        "a in (select b from t)", "a < current_timestamp", "a < `current_date`", "a --'\n + rand()",
        "a /* ' */ + rand() /* ' */", "${x} > a", "a = '${x}'", "a > ?",
        r"a = 'x\' and rand() > 0.5 or a = '", r"r'\' || rand() || r'\'", "sum(a) over (partition by b)", "mine(a)",
        "a < 'now'", "a < ' TODAY CET'", 'a < "yesterday"', "cast('now' as timestamp) > a", "'today'::date = a",
        "a = 'to''day'", "a = 'to' 'day'", "a > timestamp 'x'", 'a > date "x"', "a > X 'ff'", "a = current_user",
        "date('to' || 'day') = a", "a = 'to' || 'day'", "a = ('to') || ('day')", "a = concat('to', 'day')",
        "a = concat(struct('to' as b).b, 'day')", "a = concat(struct('to' b).b, 'day')", "a = chr(110)",
        "a = concat('to', cast('day' as string))", "a = concat('to', 'day'::string)", "a = substring('xnow', 2)",
        "2x(a) > 0", "1f2 (a) > 0", "mine.round(a) > 0", "a.`round`(b) > 0", "`round`(a) > 0", "spark.mine.2x(a) > 0",
        "cast((map 1 using 'shuf' as x) as int) > a", "a > (reduce 1 using 'date' as x)", "map 1", "reduce 1",
        "a collate UTF8_LCASE as a", "upper('x' = 'y'",
    ],
)  # fmt: skip
def test_text_that_is_not(text: str) -> None:
    assert "table.checkpoint(eager=True)" in (problem(where(text)) or "")


def test_names_that_are_cells() -> None:
    others = [messages().Relation(**{name: {"input": rows()}}) for name in ("transpose", "crosstab")]
    assert all("are cells of its rows" in (problem(relation) or "") for relation in (pivot(), *others))


def test_options_that_skip_files_are_refused() -> None:
    for value, refused in (("true", True), ("FALSE", False)):
        options = {"IgnoreCorruptFiles": value}
        found = problem(messages().Relation(read={"data_source": {"format": "parquet", "options": options}}))
        assert ("rows could be lost silently" in (found or "")) == refused


def test_a_mode_that_drops_rows_is_refused() -> None:
    for value, refused in (("dropMalformed", True), ("FAILFAST", False)):
        found = problem(data(format="csv", options={"MODE": value}))
        assert ("rows could be lost silently" in (found or "")) == refused


def remote(relation: Any, **members: Any) -> Any:
    """A table of Spark Connect without a server."""
    plan = SimpleNamespace(to_proto=lambda client: SimpleNamespace(root=relation))
    found = {"_plan": plan, "sparkSession": SimpleNamespace(client=None), "__module__": "pyspark.sql.connect.table"}
    return type("Table", (), {**found, **members})()


def failing(table: Any) -> Any:
    raise RuntimeError("SECRET")


def test_what_a_server_says_before_the_charge_is_not_told() -> None:
    for make in (SparkSource, declared):
        broken = remote(rows(), columns=property(failing), dtypes=property(failing), schema=property(failing))
        with pytest.raises(TableError, match="cannot be planned") as caught:
            make(broken)
        assert caught.value.__context__ is None


def test_a_server_is_not_asked_for_names_that_are_cells() -> None:
    with pytest.raises(TableError, match="are cells of its rows"):
        SparkSource(remote(pivot(), columns=["a", "a"]))
    with pytest.raises(TableError, match="cannot be inspected"):
        SparkSource(remote(rows(), _plan=None))


def test_named_tables_are_read_and_views_are_not() -> None:
    """What a view computes is not in the request."""
    named, detailed = (
        messages().Relation(read={"named_table": {"unparsed_identifier": "t"}}),
        "# Detailed Table Information",
    )
    columns = [("Type", "MANAGED"), ("a", "double")]  # a column may have any name
    assert problem(named, [*columns, (detailed, ""), ("Type", "MANAGED")]) is None
    for about in (columns, [*columns, (detailed, ""), ("Type", "VIEW")]):
        assert "table.checkpoint(eager=True)" in (problem(named, about) or "")
    for more in (("Provider", "jdbc"), ("Provider", "hive")):
        assert "the format of t" in (problem(named, [(detailed, ""), ("Type", "EXTERNAL"), more]) or "")
    assert problem(named, [(detailed, ""), ("Type", "EXTERNAL"), ("Provider", "DELTA")]) is None
    collated = [("a", "string collate UTF8_LCASE"), (detailed, ""), ("Type", "MANAGED")]
    assert "a collation" in (problem(named, collated) or "")
    dropping = [(detailed, ""), ("Type", "MANAGED"), ("Storage Properties", "[mode=dropMalformed]")]
    assert "rows could be lost silently" in (problem(named, dropping) or "")
    skipping = [(detailed, ""), ("Type", "EXTERNAL"), ("Storage Properties", "[ignorecorruptfiles=true]")]
    assert "rows could be lost silently" in (problem(named, skipping) or "")


def test_whose_table_it_is() -> None:
    from pyspark.sql.connect.session import SparkSession

    assert is_remote(SparkSession.__new__(SparkSession))
    assert not is_remote("rows")
