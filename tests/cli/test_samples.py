"""``--sample``: forecasts for rows like public ones, and never from the private table itself."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli import people
from tests.cli.people import run

QUICK = ("people.toml", "--method", "adassp", "--epsilon", 1, "--delta", 1e-7, "--rows", 10_000, "--json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(people.SCHEMA)
    people.table(200).write_csv(tmp_path / "public.csv")
    return tmp_path


def test_a_plan_for_rows_like_public_ones() -> None:
    plain, sampled = (
        json.loads(run("plan", "linear", *QUICK, *more).stdout)["forecast"] for more in ((), ("--sample", "public.csv"))
    )
    assert sampled["error_is"] == plain["error_is"]
    assert 0 < sampled["asked"]["error"] != plain["asked"]["error"]


def test_a_table_is_no_sample_of_itself(folder: Path) -> None:
    (folder / "other.csv").symlink_to(folder / "public.csv")
    asked = ("linear", "public.csv", "--target", "income", "--epsilon", 1, "--rows", 1000, "--sample", "other.csv")
    for command in ("plan", "advise"):
        assert "--sample is the table itself" in run(command, *asked, code=1).stderr


def test_a_sample_without_columns_says_what_is_missing() -> None:
    asked = ("linear", "--columns", 3, "--rows", 1000, "--epsilon", 1, "--sample", "public.csv")
    assert "needs the table or the schema" in run("advise", *asked, code=1).stderr


def test_what_rehearsals_do_not_tell_is_null(folder: Path) -> None:
    people.table(40).with_columns(income=pl.lit(1.0)).write_csv(folder / "alike.csv")
    asked = ("linear", "public.csv", "--target", "income", "--epsilon", 1, "--rows", 1000, "--sample", "alike.csv")
    told = json.loads(run("advise", *asked, "--json").stdout)
    assert (told["error"], told["typical"]) == (None, None)


def test_the_spread_of_columns_moves_both_commands_alike() -> None:
    asked = ("linear", "people.toml", "--rows", 10_000, "--epsilon", 1, "--delta", 1e-7, "--json")
    usual, narrow, all_alike = (
        json.loads(run("plan", *asked, *spread).stdout)["forecast"]["asked"]["error"]
        for spread in ((), ("--spread", "income=0.02", "--spread", "age=0.1"), ("--spread", 0.02))
    )
    assert narrow < usual
    assert narrow < all_alike  # the narrowest column too
    told = json.loads(run("advise", *asked, "--spread", "income=0.02", "--spread", "age=0.1").stdout)
    assert told["error"] == pytest.approx(narrow)
    wanted = ("linear", "people.toml", "--rows", 10_000, "--error", narrow, "--delta", 1e-7, "--json")
    assert json.loads(run("advise", *wanted, "--spread", "income=0.02", "--spread", "age=0.1").stdout)["epsilon"] == 1


@pytest.mark.parametrize("wrong", ["income", "a=b", "0.1,0.2"])
def test_how_a_spread_is_written(wrong: str) -> None:
    asked = ("linear", "people.toml", "--rows", 1000, "--epsilon", 1, "--spread", wrong)
    assert "--spread income=0.05" in run("advise", *asked, code=1).stderr
