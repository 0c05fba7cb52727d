"""What plans of Spark are refused for, with nodes and expressions that look like those of a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from snugdp.tables.sources.spark_plan import _cause


def some(items: Sequence[Any] = ()) -> Any:
    return SimpleNamespace(size=lambda: len(items), apply=lambda place: items[place])


def like(name: str, **members: Any) -> Any:
    """A thing of a class, whose members are methods without arguments."""
    methods = {key: (lambda value=value: value) for key, value in members.items()}
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: f"org.{name}"), **methods)


def expression(name: str, kind: str, *below: Any, **members: Any) -> Any:
    made = like(name, dataType=like("Type", catalogString=kind), children=some(below), **members)
    made.child = lambda: below[0]
    made.containsPattern = lambda pattern: name == pattern or any(each.containsPattern(pattern) for each in below)
    return made


def node(name: str, *expressions: Any, schema: str = "struct<a:string>", **members: Any) -> Any:
    made = like(
        name,
        isStreaming=False,
        deterministic=True,
        children=some(),
        subqueries=some(),
        expressions=some(expressions),
        schema=like("Type", catalogString=schema),
        **{"aggregateExpressions": some(), "groupingExpressions": some(), **members},
    )
    made.containsPattern = lambda pattern: False
    return made


def cause(plan: Any) -> str | None:
    patterns = like("Patterns", CURRENT_LIKE="", CAST="Cast", PYTHON_UDF="PythonUDF", RUNTIME_REPLACEABLE="Replaced")
    catalyst = SimpleNamespace(trees=SimpleNamespace(TreePattern=patterns))
    spark = SimpleNamespace(sql=SimpleNamespace(catalyst=catalyst))
    return _cause(SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark)))), plan)


def text(value: str) -> Any:
    return expression("Literal", "string", foldable=True, value=value)


def cast(child: Any, kind: str = "timestamp") -> Any:
    return node("Project", expression("Alias", kind, expression("Cast", kind, child)))


def test_text_that_is_the_clock() -> None:
    joined = expression("Concat", "string", text("to"), text("day"), foldable=True)
    for plan in (cast(text("now")), cast(text(" Today CET"), "date"), cast(joined, "timestamp_ntz")):
        assert "the date or the time" in (cause(plan) or "")
    column = expression("AttributeReference", "string", foldable=False)
    number = expression("Literal", "int", foldable=True, value=3)
    for plan in (cast(text("2024-01-31")), cast(text("now"), "string"), cast(column), cast(number)):
        assert cause(plan) is None


def test_time_of_today_and_functions_that_become_casts() -> None:
    for plan in (cast(text("12:30")), cast(text(" T7:05:00"))):
        assert "the date or the time" in (cause(plan) or "")
    for kind, value, refused in (("timestamp", "now", True), ("date", "2024-01-31", False), ("int", "now", False)):
        plan = node("Project", expression("Replaced", kind, text(value), text("yyyy")))  # to_timestamp, to_date
        assert (cause(plan) is not None) == refused


def aggregate(function: str, kind: str) -> Any:
    inside = expression(function, kind, expression("AttributeReference", kind))
    found = expression("AggregateExpression", kind, aggregateFunction=inside)
    return node("Aggregate", aggregateExpressions=some([expression("Alias", kind, found)]))


def test_aggregates_in_any_order() -> None:
    """Spark adds up whole numbers for a mean as floats: 2**60 + 1 - 2**60 depends on the order."""
    for function, kind in (
        ("Average", "bigint"),
        ("Average", "int"),
        ("Average", "double"),
        ("Sum", "float"),
        ("First", "int"),
        ("Min", "string collate UTF8_LCASE"),
    ):
        assert "they come (an aggregate" in (cause(aggregate(function, kind)) or "")
    for function, kind in (("Average", "smallint"), ("Average", "decimal(9,2)"), ("Sum", "bigint"), ("Min", "string")):
        assert cause(aggregate(function, kind)) is None


def test_lazy_checkpoints() -> None:
    for asked, done in ((True, False), (True, True), (False, False)):
        rdd = like("RDD", checkpointData=like("Option", isDefined=asked), isCheckpointed=done)
        assert (cause(node("LogicalRDD", rdd=rdd)) is not None) == (asked and not done)


def test_functions_of_batches() -> None:
    for kind in (200, 204, 250):
        plan = node("Project", expression("PythonUDF", "double", evalType=kind))
        assert "a vectorised function" in (cause(plan) or "")
    assert cause(node("Project", expression("PythonUDF", "double", evalType=100))) is None
    for name in ("MapInArrow", "PythonMapInArrow", "MapInPandas", "FlatMapGroupsInPandas", "FlatMapCoGroupsInArrow"):
        assert "mapInArrow" in (cause(node(name)) or "")


def test_collations() -> None:
    for name in ("Aggregate", "Distinct", "Intersect", "Except"):
        assert "a collation" in (cause(node(name, schema="struct<a:string collate UTF8_LCASE>")) or "")
        assert cause(node(name, schema="struct<collateral:string>")) is None
    key = expression("Collate", "string collate UTF8_LCASE")
    assert "a collation" in (cause(node("Aggregate", groupingExpressions=some([key]), schema="struct<n:int>")) or "")
