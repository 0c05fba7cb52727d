"""Names and cells of a table are words on the terminal: it obeys none of them, and they are no markup."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console

from snugdp.cli.commands.fit import _found, _summary, _table
from snugdp.tables.found import FoundBounds, FoundNumber
from snugdp.tables.schema.schema import Number, Schema
from tests.cli.people import run

TITLE = "\x1b]0;another title\x07"
ODD = f"[/]{TITLE}\u202e"


def test_what_a_table_holds_is_not_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({f"x{TITLE}": [0.5] * 900, "city": [f"Oslo{TITLE}", "Rome", "Rome"] * 300})
    table.write_parquet("t.parquet")
    paid = "--epsilon", "4", "--delta", "1e-6", "--yes"
    column = "-c", f"x{TITLE}", "--lower", "0", "--upper", "1"
    said = [
        run("query", "count", "t.parquet", "--by", "city", *paid).output,
        run("query", "mean", "t.parquet", *column, "--epsilon", "4", "--yes").output,
        run("query", "mean", "t.parquet", "-c", f"y{TITLE}", *column[2:], "--epsilon", "4", "--yes", code=1).output,
        run("describe", "t.parquet", *paid).output,
    ]
    assert not [text for text in said if "\x1b" in text or "\x07" in text]
    assert "Oslo\\x1b]0;another title" in said[0]


def test_tables_of_a_fit_are_words() -> None:
    number = FoundNumber(0.0, 1.0, 0.5, 0.2)
    bounds = FoundBounds(Schema({ODD: Number(), "y": Number()}, target="y"), {ODD: number, "y": number}, 100.0, 1.0)
    told = SimpleNamespace(heads=("estimate",), lines=((ODD, ("1",)),), notes=(f"nothing about {ODD}",))
    one = {"coef_": [1.0], "intercept_": 0.0, "noise_scale_": None, "coef_names_": [ODD]}
    model = SimpleNamespace(bounds_=bounds, feature_names_in_=[ODD], summary=lambda: told, **one)
    console = Console(width=200, force_terminal=False)
    with console.capture() as shown:
        console.print(*_found(model), _summary(model), _table(model))
    assert not {"\x1b", "\x07", "\u202e"} & {*shown.get()}
    assert shown.get().count("[/]") == 4
