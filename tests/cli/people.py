"""A small made-up table and its schema, for the commands."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typer.testing import CliRunner

from snugdp import Ledger
from snugdp.cli.main import app

SCHEMA = """\
target = "income"

[columns.age]
type = "number"
lower = 0
upper = 120

[columns.city]
type = "category"
values = ["Rome", "Oslo", "Lima"]

[columns.member]
type = "boolean"

[columns.visits]
type = "number"
lower = 0
upper = 10

[columns.income]
type = "number"
lower = 0
upper = 200000
"""


def table(rows: int = 4000) -> pl.DataFrame:
    """Made-up people."""
    rng = np.random.default_rng(1)
    age, member = rng.uniform(18, 90, rows), rng.random(rows) < 0.4
    return pl.DataFrame(
        {
            "id": range(rows),
            "age": age,
            "city": rng.choice(["Rome", "Oslo", "Lima"], rows),
            "member": member,
            "visits": rng.poisson(2, rows),
            "income": 20_000 + 500 * age + 8_000 * member + rng.normal(0, 5_000, rows),
        }
    )


def write(folder: Path, rows: int = 4000) -> None:
    """people.parquet, people.csv and people.toml."""
    people = table(rows)
    people.write_parquet(folder / "people.parquet")
    people.write_csv(folder / "people.csv")
    (folder / "people.toml").write_text(SCHEMA)


def new_ledger(epsilon: float = 2) -> None:
    """people.ledger, in this folder."""
    run("ledger", "create", "people.ledger", "--dataset", "people", "--epsilon", epsilon, "--delta", 1e-6)


def charges() -> int:
    """How many are in people.ledger."""
    with Ledger.open("people.ledger") as book:
        return len(book.entries())


def run(*words: object, code: int = 0, **given: Any) -> Any:
    """A command, and how it ended."""
    result = CliRunner().invoke(app, [str(word) for word in words], **given)
    assert result.exit_code == code, (result.output, result.exception)
    return result
