"""What cells stand for, column by column, is what the reader of single cells says."""

import math
import random
import sys
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl

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
    assert labels(person_image(column, exact=False)) == expected
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
            assert labels(person_image(column, exact=False))[0] == one.label(text), (text, more)


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
