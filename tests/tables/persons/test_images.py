"""What cells stand for, column by column, is what the reader of single cells says."""

import math
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp.tables.cells import cell as one
from snugdp.tables.persons import images
from snugdp.tables.persons.images import Image, image, of_text, person_image
from snugdp_studies.audit.side_channels.inputs import object_array
from tests.tables.cells.odd import ODD


def labels(found: Image) -> list[Any]:
    """The labels that an image stands for."""
    texts = [None] * len(found.number) if found.text is None else found.text.to_list()
    return [_label(float(number), text) for number, text in zip(found.number, texts, strict=True)]


def _label(number: float, text: str | None) -> Any:
    if not math.isnan(number):
        return one.in_single(number)
    if text is None or not text.startswith("\x01"):
        return text
    return text[1:] if text.startswith("\x01\x01") else (one.MOMENT, int(text[1:]))


def test_odd_cells_have_their_labels() -> None:
    column = nw.from_native(pd.Series(object_array(ODD), dtype=object), series_only=True)
    expected = [one.label(cell) for cell in ODD]
    assert labels(person_image(column)) == expected
    assert labels(image(column, lists=False)) == expected
    assert [bool(flag) for flag in image(column, lists=False).missing] == [label is None for label in expected]


def test_text_has_the_label_of_each_cell() -> None:
    choose = random.Random(3)
    parts = [
        "2020",
        "-01",
        "W01",
        "1",
        "7",
        "T",
        "12:00",
        " ",
        "\t",
        "\x1c",
        "\x85",
        "nan",
        "NaT",
        "inf",
        "e5",
        ".",
        "-",
        "é",
        "\x01",
        "x",
        "",
    ]
    texts = ["".join(choose.choice(parts) for _ in range(choose.randrange(6))) for _ in range(4000)]
    texts += [
        "2020-01-01",
        "20200101",
        "2020-W01-1",
        "2020W011",
        "2020-01-01T12:00:00+01:00",
        " 2020-01-01 ",
        "\x01" * 2,
    ]
    assert labels(of_text(pl.Series(texts))) == [one.label(text) for text in texts]


def test_white_space_is_that_of_python() -> None:
    """Polars does not strip the separators of ASCII, which ``cell.label`` does: one number made other texts missing."""
    assert set(images._SPACES) == {chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()}
    for text in ("nan\x1c", "\x1dNaT", "\x1e2020-01-01", "2020-W01\x1f", "\x1c7"):
        for more in ([], [7], [b"x"], ["\ud800"]):
            column = nw.from_native(pd.Series(object_array([text, *more]), dtype=object), series_only=True)
            assert labels(person_image(column))[0] == one.label(text), (text, more)


def test_typed_columns_have_the_labels_of_their_cells() -> None:
    days = pl.Series([0, 1, None, 20000]).cast(pl.Date)
    for series in (
        pl.Series([1, None, 2**60]), pl.Series([0.1, -0.0, math.nan, None]), pl.Series([True, None]), days,
        days.cast(pl.Datetime("ns")), days.dt.replace_time_zone("Europe/Rome", ambiguous="null") if False else days,
        pl.Series(["1.5", "3"]).cast(pl.Decimal(10, 2)), pl.Series([b"1", b"x", None]), pl.Series(["a", "2020-01-01"]),
        pl.Series(["a", "1"], dtype=pl.Categorical), pl.Series([[1], [1, 2]]), pl.Series([{"a": 1}]),
    ):  # fmt: skip
        column = nw.from_native(series, series_only=True)
        assert labels(image(column, lists=False)) == [one.label(cell) for cell in series.to_list()], series.dtype


def test_zeros_nan_and_single_precision_have_one_word() -> None:
    key = np.uint64(5)
    words = Image(np.array([0.0, -0.0, np.nan, -np.nan, 0.1, np.float32(0.1), 2.0**60, 2.0**60 + 256])).words(
        key, coarse=True
    )
    assert words[0] == words[1] != words[2] == words[3]
    assert words[4] == words[5]
    assert words[6] != words[7]


BIG = 2**53
DIGITS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas, nullable": lambda ids: pd.Series([*ids, None], dtype="Int64"),
    "pandas, unsigned": lambda ids: pd.Series(ids, dtype="UInt64"),
    "pandas, Arrow": lambda ids: pd.Series(ids, dtype="int64[pyarrow]"),
    "pandas, categories": lambda ids: pd.Series(ids, dtype="Int64").astype("category"),
    "pandas, text": lambda ids: pd.Series([f"+00{each} " for each in ids], dtype="string"),
    "pandas, odd text": lambda ids: pd.Series([*map(str, ids), "x"], dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series,
    "polars, 128 bits": lambda ids: pl.Series(ids, dtype=pl.Int128),
    "polars, text": lambda ids: pl.Series([*map(str, ids)]),
    "polars, categories": lambda ids: pl.Series([*map(str, ids)], dtype=pl.Categorical),
    "polars, decimals": lambda ids: pl.Series([*map(Decimal, ids)]).cast(pl.Decimal(38, 2)),
    "polars, bytes": lambda ids: pl.Series([str(each).encode() for each in ids]),
    "pyarrow": lambda ids: pa.chunked_array([ids]),
    "pyarrow, missing": lambda ids: pa.chunked_array([pa.array([*ids, None])]),
    "pyarrow, dictionary": lambda ids: pa.chunked_array([pa.array(ids).dictionary_encode()]),
    "objects": lambda ids: pl.Series([kind(each) for kind, each in zip(KINDS, ids, strict=True)], dtype=pl.Object),
}
KINDS: tuple[Callable[[Any], Any], ...] = (
    int,
    np.int64,
    Decimal,
    Fraction,
    str,
    lambda each: str(each).encode(),
    lambda each: [each],
)
FLOATS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas, none missing": pd.Series,
    "pandas, unsigned": lambda ids: pd.Series([abs(each) for each in ids], dtype="uint64"),
    "pandas": lambda ids: pd.Series([*ids, None]),
    "polars": lambda ids: pl.Series([*map(float, ids)]),
    "pandas, text": lambda ids: pd.Series([*map(str, ids)]),
    "pandas, text among numbers": lambda ids: pd.Series([*ids, "x"]),
    "categories": lambda ids: pd.Series(ids).astype("category"),
    "categories of floats": lambda ids: pd.Series([*ids, None]).astype("category"),
    "categories of text": lambda ids: pd.Series([*map(str, ids)]).astype("category"),
    "sparse": lambda ids: pd.Series(ids).astype("Sparse[int64]"),
    "dictionary": lambda ids: pa.chunked_array([pa.array([*map(float, ids)]).dictionary_encode()]),
    "objects": lambda ids: pd.Series([float(each) for each in ids], dtype=object),
}


@pytest.mark.parametrize("container", DIGITS)
def test_whole_numbers_beyond_floats_are_told_apart_by_their_digits(container: str) -> None:
    ids = [BIG, BIG + 1, BIG + 2, BIG + 1, 7, BIG - 1, BIG + 1]
    found = person_image(nw.from_native(DIGITS[container](ids), series_only=True))
    assert found.text is not None
    assert found.lost is not None
    assert not found.lost.any()
    assert found.text.to_list()[:7] == [*map(str, ids[:4]), None, None, str(BIG + 1)]


@pytest.mark.parametrize("container", FLOATS)
def test_floats_that_lost_digits_tell_nobody_apart(container: str) -> None:
    found = person_image(nw.from_native(FLOATS[container]([BIG, BIG + 1, 7, BIG - 1, -BIG]), series_only=True))
    assert found.lost is not None
    assert found.lost.tolist()[:5] == [True, True, False, False, True]
