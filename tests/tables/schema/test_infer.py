"""A schema from names and declared types: what is used, what is left out and why, and what noisy counts decide."""

from typing import Any

import narwhals as nw
import polars as pl
import pytest

from snugdp.tables.cells.sorts import SORTS, sorts
from snugdp.tables.schema.infer import inferred, settled, why_not
from snugdp.tables.schema.kinds import Undeclared
from snugdp.tables.schema.schema import Boolean, Category, Date, Number
from tests.tables.cells.odd import ODD

TYPES: dict[str, Any] = {
    "orderId": nw.Int64(), "Customer ID": nw.String(), "order_key": nw.Float64(), "UUID": nw.String(),
    "index": nw.Int8(), "Unnamed: 0": nw.Int64(), "phone": nw.Int64(), "comment": nw.String(),
    "Product Name": nw.String(), "e-mail": nw.String(), "shipping_address": nw.Unknown(), "tags": nw.List(nw.String()),
    "photo": nw.Binary(),
    "opens": nw.Time(), "took": nw.Duration(), "more": nw.Struct({}),
}  # fmt: skip
USED: dict[str, tuple[Any, Any]] = {
    "age": (nw.Int8(), Number()), "price": (nw.Decimal(), Number()), "large": (nw.UInt64(), Number()),
    "paid": (nw.Boolean(), Boolean()), "city": (nw.String(), Undeclared()),
    "size": (nw.Categorical(), Category()),
    "unit": (nw.Enum(["x"]), Category()), "born": (nw.Date(), Date()), "seen": (nw.Datetime("ns", "UTC"), Date()),
    "any": (nw.Unknown(), Undeclared()), "thing": (nw.Object(), Undeclared()), "humid": (nw.Float32(), Number()),
    "keyboard": (nw.String(), Undeclared()), "name_length": (nw.Int64(), Number()),
    "price_index": (nw.Int64(), Number()),
    "text": (nw.Categorical(), Category()), "is_id": (nw.Boolean(), Boolean()), "summary": (nw.Float64(), Number()),
}  # fmt: skip


def test_what_types_and_names_say() -> None:
    types = {name: dtype for name, (dtype, _) in USED.items()}
    schema, left_out = inferred({**types, **TYPES})
    assert schema.columns == {name: column for name, (_, column) in USED.items()}
    assert list(left_out) == list(TYPES)
    for name, reason in left_out.items():
        assert ("declare it in a schema" in reason) or ("convert it" in reason), name


def test_a_target_is_never_left_out() -> None:
    schema, left_out = inferred({"age": nw.Int64(), "phone": nw.Int64(), "note": nw.String()}, target="phone")
    assert schema.target == "phone"
    assert schema.columns["phone"] == Number()
    assert list(left_out) == ["note"]


@pytest.mark.parametrize(
    ("types", "target", "message"),
    [
        ({"a": nw.Int64()}, "b", 'no column "b"'),
        ({"a": nw.Int64()}, "a", "no column is left"),
        ({"id": nw.Int64()}, None, "no column is left"),
        ({"a": nw.Int64(), "b": nw.Binary()}, "b", 'the target "b" is of type Binary'),
    ],
)
def test_what_cannot_be_learned_from(types: dict[str, Any], target: str | None, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        inferred(types, target)


@pytest.mark.parametrize("name", ["", "_", "12", "\u4e2d\u6587", "\x00"])
def test_any_text_is_a_name(name: str) -> None:
    assert why_not(name, nw.Int64()) is None


def test_cells_are_sorted_one_by_one() -> None:
    alone = [int(sorts([cell])[0]) for cell in ODD]
    assert sorts(ODD).tolist() == alone
    assert set(alone) == set(range(len(SORTS)))
    assert sorts(pl.Series(["1", "2020-01-01", "x", None, "", " ", "nan", "true"])).tolist() == [1, 2, 3, 0, 0, 3, 0, 1]


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ([0, 100, 0, 0], Number()),
        ([0, 10, 100, 0], Date()),
        ([900, 0, 0, 100], Category()),
        ([1000, 2, 20, 29], None),
    ],
)
def test_the_most_frequent_sort_decides_if_it_is_clear(counts: list[float], kind: Any) -> None:
    assert settled(counts, 10) == kind
