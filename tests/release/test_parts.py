"""Releases for a part of a table read its rows alone: of disjoint parts the largest counts, whatever is asked."""

import itertools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import snugdp
from snugdp import Budget, Cost, Ledger, UnitMismatchError
from snugdp.ledger.parts import TablePart, TablePartition, declared
from snugdp.release.parts import part_of
from snugdp.tables.parts import PartChoice, restricted
from snugdp.tables.sources import open_source

CELLS: list[Any] = [
    "north",
    "south",
    "North",
    " north",
    "",
    None,
    "?",
    "1",
    1,
    1.0,
    True,
    2**53 + 1,
    float("nan"),
    [],
    [1],
    1j,
    b"north",
]
MISSING: list[Any] = ["", None, CELLS[12], "nan", [], 1j]
TEXTS = ["north", "south", "north ", "", None, "?", "1", "1.0", "nan", "01"]
REGIONS = declared("region", ["north", "south", 1], "")
HASHED = declared("region", 3, "5f" * 16)
SURE = 60  # epsilon: a count is off with probability e**-60


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "people.ledger", dataset="people", budget=Budget(10**6, 0.5)) as made:
        made.partition("region", ["north", "south"])
        yield made


def chosen(table: Any, part: TablePart) -> list[Any]:
    """The numbers of the rows that a release for a part gets to see."""
    source = restricted(open_source(table), part, hidden=True)
    assert list(source.types) == ["row"]
    frames = [batch.frame for each in source.partitions() for batch in each.batches(("row",))]
    return [int(row) for frame in frames for row in frame.get_column("row").to_list()]


def containers(cells: list[Any], rows: list[int], folder: Path) -> dict[str, Any]:
    """The same rows in every container that can hold them."""
    found: dict[str, Any] = {"objects": pd.DataFrame({"region": pd.Series(cells, dtype=object), "row": rows})}
    if all(cell is None or isinstance(cell, str) for cell in cells):
        frame = pl.DataFrame({"region": pl.Series(cells, dtype=pl.String), "row": rows})
        frame.write_parquet(folder / "table.parquet")
        frame.write_csv(folder / "table.csv")
        found |= {"polars": frame, "pyarrow": frame.to_arrow(), "lazy": frame.lazy(), "csv": str(folder / "table.csv")}
        found |= {"parquet": str(folder / "table.parquet"), "pandas": pd.DataFrame({"region": cells, "row": rows})}
    return found


@pytest.mark.parametrize("partition", [REGIONS, HASHED], ids=["values", "hash"])
def test_a_row_is_in_one_part_by_its_own_cell(partition: TablePartition, tmp_path: Path) -> None:
    parts = [TablePart(partition, name) for name in partition.parts]
    for cells in (CELLS, TEXTS):
        rows = list(range(len(cells)))
        alone = [[part.part for part in parts if chosen(_one(cell, row), part)] for row, cell in enumerate(cells)]
        assert all(len(names) <= 1 for names in alone)
        assert partition.key is None or [bool(names) for names in alone] == [cell not in MISSING for cell in cells]
        for table in containers(cells, rows, tmp_path).values():
            seen = {part.part: set(chosen(table, part)) for part in parts}
            assert [[name for name, some in seen.items() if row in some] for row in rows] == alone
        for left_out in rows[::4]:
            kept = [row for row in rows if row != left_out]
            for part in parts:
                table = pd.DataFrame({"region": pd.Series([cells[row] for row in kept], dtype=object), "row": kept})
                assert chosen(table, part) == [row for row in kept if part.part in alone[row]]
    names = {cell: next(iter(names), None) for cell, names in zip(TEXTS, alone, strict=True)}
    if partition is REGIONS:
        assert (names["north"], names["1"], names["1.0"], names["north "], names["?"]) == (
            "north",
            "1",
            "1",
            None,
            None,
        )


def _one(cell: Any, row: int) -> pd.DataFrame:
    return pd.DataFrame({"region": pd.Series([cell], dtype=object), "row": [row]})


def test_numbers_are_in_the_same_part_in_every_type() -> None:
    numbers = list(range(-3, 40))
    for parts, most in ((declared("region", [1, 2, 30], ""), 1), (declared("region", 4, "7" * 32), 30)):
        for name in parts.parts:
            part = TablePart(parts, name)
            want = chosen(pd.DataFrame({"region": pd.Series(numbers, dtype=object), "row": numbers}), part)
            assert 1 <= len(want) <= most
            for kind in ("int8", "int64", "float64", "Int64", "string"):
                frame = pd.DataFrame({"region": pd.Series(numbers).astype(kind), "row": numbers})
                assert chosen(frame, part) == want, kind


def test_a_loader_that_loses_a_cell_moves_its_row_into_no_other_part(tmp_path: Path) -> None:
    """To pandas the NA of Namibia is a missing cell, and to others text."""
    countries = ["NA", "null", "None", "DE", "FR", "n/a", "NaN", "SE"]
    rows = list(range(len(countries)))
    pl.DataFrame({"region": countries, "row": rows}).write_csv(tmp_path / "t.csv")
    tables: list[Any] = [str(tmp_path / "t.csv"), pd.read_csv(tmp_path / "t.csv"), pl.read_csv(tmp_path / "t.csv")]
    for key in range(4):
        partition = declared("region", 5, f"{key:032x}")
        found = [(name, chosen(each, TablePart(partition, name))) for name in partition.parts for each in tables]
        seen = [(row, name) for name, numbers in found for row in numbers]
        assert len({row for row, _ in seen}) == len(set(seen)) == len(rows) - 1  # all but NaN, each in one part


def test_the_loss_over_all_parts_is_that_of_one(ledger: Ledger) -> None:
    """Brute force: all tables of up to two rows, and one row more. Counts are exact but for e**-60."""
    universe = [("north", 3.0), ("south", 2.0), ("elsewhere", 1.0), (None, 4.0)]

    def seen(rows: tuple[tuple[Any, float], ...]) -> list[float]:
        table = pd.DataFrame(rows, columns=["region", "age"]).astype({"region": object, "age": float})
        asked = (snugdp.Count(epsilon=SURE), snugdp.Histogram(column="age", edges=[0, 2.5, 5], epsilon=SURE))
        found: list[float] = []
        for region in ("north", "south"):
            for query in asked:
                value: Any = query.release(table, ledger=ledger.part("region", region)).value
                found += np.ravel(getattr(value, "counts", value)).astype(float).tolist()
        return [round(each) for each in found]

    laws = {rows: seen(rows) for n in range(3) for rows in itertools.combinations_with_replacement(universe, n)}
    for rows, law in laws.items():
        for row in universe:
            more = tuple(sorted((*rows, row), key=universe.index))
            if more in laws:
                moved = np.abs(np.subtract(laws[more], law))
                inside = row[0] in ("north", "south")
                assert moved.sum() == 2 * inside  # one count and one cell, of one part
    assert ledger.spent == Cost(epsilon=2 * SURE * len(laws))  # of 4 * 60 * len(laws)


@pytest.mark.parametrize("spelt", [["7", "7.0", "b"], [7, 7.0, "b"], [None, "", "b"]])
def test_persons_are_in_one_part_with_all_rows(tmp_path: Path, spelt: list[Any]) -> None:
    with Ledger.open(tmp_path / "orders.ledger", dataset="orders", budget=Budget(10**4, 0.5), unit="person") as ledger:
        with pytest.raises(ValueError, match="by a hash of the identifier"):
            ledger.partition("region", ["north", "south"])
        ledger.partition("who", 3)
        ledger.partition("region", 2)
        identifiers = [spelt[0], spelt[1], spelt[0], spelt[2]]
        table = pd.DataFrame({"who": pd.Series(identifiers, dtype=object), "region": list("abab"), "spent": [1.0] * 4})
        count = snugdp.Count(epsilon=SURE, person="who", max_rows=3)
        counts: list[Any] = [count.release(table, ledger=ledger.part("who", n)).value for n in (1, 2, 3)]
        found = [round(float(each)) for each in counts]
        assert sorted(found) == ([0, 0, 1] if spelt[0] is None else sorted(found))  # no identifier: in no part
        assert spelt[0] is None or (sum(found) == 4 and max(found) >= 3)  # the rows of one person are together
        assert ledger.spent.epsilon == SURE
        releases: tuple[Callable[[], object], ...] = (
            lambda: count.release(table, ledger=ledger.part("region", 1)),
            lambda: snugdp.Count(epsilon=1, person="region").release(table, ledger=ledger.part("who", 1)),
            lambda: snugdp.Count(epsilon=1).release(table, ledger=ledger.part("who", 1)),
        )
        for release in releases:
            with pytest.raises(UnitMismatchError):
                release()
        assert ledger.spent.epsilon == SURE


def fits(ledger: Any, table: Any, y: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"epsilon": 50, "delta": 1e-3, "ledger": ledger}
    quick: dict[str, Any] = {**given, "method": "adassp"}  # others take long to calibrate, and read the same rows
    return {
        "linear": snugdp.LinearRegression(x_norm=1, y_bound=1, **quick).fit(table, y).coef_[0],
        "open": snugdp.LinearRegression(**quick).fit(table, y).bounds_.rows,
        "components": snugdp.PCA(1, x_norm=1, **given).fit(table).n_samples_,
        "sparse": snugdp.SparseLinearRegression(1, x_bound=1, y_bound=1, **quick).fit(table, y).coef_[0],
        "scaler": snugdp.StandardScaler(**given).fit(table).n_samples_seen_,
    }


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.slow)])
def test_estimators_are_fitted_on_the_part_alone(ledger: Ledger, library: str) -> None:
    rows = 3000
    a = np.linspace(-0.6, 0.6, rows)
    south = np.arange(rows) % 3 == 0
    frame = pd.DataFrame({"a": np.where(south, -np.abs(a), np.abs(a)), "region": np.where(south, "south", "north")})
    y = np.where(south, -frame["a"], frame["a"])
    table = frame if library == "pandas" else pl.from_pandas(frame)
    found = {region: fits(ledger.part("region", region), table, y) for region in ("north", "south")}
    assert found["north"]["linear"] > 0.8
    assert found["south"]["linear"] < -0.8
    for counted in ("components", "scaler", "open"):
        assert [round(found[region][counted], -2) for region in ("north", "south")] == [2000, 1000]
    assert found["south"]["sparse"] < 0 < found["north"]["sparse"]
    assert ledger.spent.epsilon == 5 * 50


def test_models_predict_without_the_column_and_pickles_know_their_part(ledger: Ledger) -> None:
    table = pd.DataFrame({"a": np.linspace(-0.5, 0.5, 400), "region": ["north", "south"] * 200})
    model = snugdp.LinearRegression(9, 1e-6, x_norm=1, y_bound=1, ledger=ledger.part("region", "south"))
    model.fit(table, table["a"])
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(table) == model.predict(table[["a"]])).all()
    assert again.ledger.restricted_to == TablePart(TablePartition(("north", "south"), "region"), "south")
    with pytest.raises(TypeError, match="an array has no names"):
        again.fit(table[["a"]].to_numpy(), table["a"])
    assert len(ledger.entries()) == 1


def refused() -> dict[str, Callable[[Any], object]]:
    """Whatever cannot be restricted to a part."""
    X = np.zeros((50, 2))
    table = pd.DataFrame({"a": [0.1] * 50, "b": 0.2, "region": "north"})

    def line(ledger: Any) -> Any:
        return snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1, ledger=ledger)

    voters: dict[str, Any] = {"n_teachers": 5, "classes": [0, 1], "queries": X[:3], "epsilon": 1, "delta": 1e-6}
    return {
        "list": lambda ledger: snugdp.count([1, 2], epsilon=1, ledger=ledger),
        "array": lambda ledger: snugdp.mean(X[:, 0], bounds=(0, 1), epsilon=1, ledger=ledger),
        "column": lambda ledger: snugdp.mean(table["a"], bounds=(0, 1), epsilon=1, ledger=ledger),
        "pair": lambda ledger: snugdp.covariance((X[:, 0], X[:, 1]), bounds=((0, 1), (0, 1)), epsilon=1, ledger=ledger),
        "other table": lambda ledger: snugdp.count(table[["a"]], epsilon=1, ledger=ledger),
        "several": lambda ledger: snugdp.mean(table, bounds=(0, 1), epsilon=1, ledger=ledger),
        "durations": lambda ledger: snugdp.count(
            pd.DataFrame({"region": pd.to_timedelta([1])}), epsilon=1, ledger=ledger
        ),
        "fit": lambda ledger: line(ledger).fit(X, X[:, 0]),
        "fit of lists": lambda ledger: line(ledger).fit(X.tolist(), X[:, 0].tolist()),
        "sparse fit": lambda ledger: line(ledger).fit(sparse.csr_matrix(X), X[:, 0]),
        "lengths": lambda ledger: line(ledger).fit(table, X[:9, 0]),
        "no length": lambda ledger: line(ledger).fit(table, (each for each in X[:, 0])),
        "holdout": lambda ledger: line(ledger).fit(table, X[:, 0], holdout=0.3),
        "votes": lambda ledger: snugdp.PATEClassifier(ledger=ledger, **voters).fit(table[["a", "b"]], [0, 1] * 25),
        "selection": lambda ledger: snugdp.select(
            [1], lambda *_: pytest.fail("nothing may run"), lambda _: 1.0, budget=Budget(1), ledger=ledger
        ),
    }  # fmt: skip


def test_what_cannot_be_restricted_is_refused_before_the_charge(ledger: Ledger) -> None:
    held = ledger.part("region", "north").reserve(Cost(epsilon=5, delta=1e-5), "work")
    before = ledger.entries()
    for name, release in refused().items():
        for account in (ledger.part("region", "north"), ledger.part("region", "north").once(name), held):
            with pytest.raises((TypeError, ValueError), match=r"part|names|columns|inconsistent") as told:
                release(account)
            assert not any(private in str(told.value) for private in ("0.1", "50", "150"))
    assert ledger.entries() == before
    with pytest.raises(ValueError, match="no part 'east'"):
        ledger.part("region", "east")


def test_parts_that_are_mere_names_take_no_releases(ledger: Ledger, tmp_path: Path) -> None:
    """As they were declared before there were columns: they are read, and charged by hand."""
    for number in range(256):  # beyond a checkpoint
        if number == 5:
            _declared_before(ledger, "area", ["east", "west"])
        ledger.charge(Cost(), "nothing")
    ledger.close()
    with Ledger.open(tmp_path / "people.ledger") as later:
        east = later.part("area", "east")
        with pytest.raises(ValueError, match="a mere name"):
            snugdp.count(pl.DataFrame({"area": ["east"]}), epsilon=1, ledger=east)
        with pytest.raises(snugdp.KeyConflictError, match="by the names east, west"):
            later.partition("area", ["east", "west"])
        for name in ("east", "west"):
            later.part("area", name).charge(Cost(epsilon=1), "by hand")
        assert later.verify().spent == Cost(epsilon=1)
        assert later.part_names("region") == ("north", "south")
        assert part_of(later, None) is None


def _declared_before(ledger: Ledger, name: str, parts: list[str]) -> None:
    from snugdp.ledger.handle import New
    from snugdp.ledger.history import records

    fields = {"name": name, "parts": parts}
    ledger._handle.within(lambda state, _: (None, New(state.draft("partition", fields, records.stamp()))))


def test_declarations_are_for_good_and_read_again(ledger: Ledger, tmp_path: Path) -> None:
    ledger.partition("who", 4)
    ledger.partition("who", 4)
    before = ledger.part("who", 3).restricted_to
    for column, parts in (("who", 5), ("who", ["1", "2", "3", "4"]), ("region", 2), ("region", ["south", "north"])):
        with pytest.raises(snugdp.KeyConflictError, match="declared for good"):
            ledger.partition(column, parts)
    bad: list[Any] = [0, 1, 1001, True, "ab", [], ["1", 1], ["1", "1.0"], [1.5], [None], [""], [" NaN"], {"a": 1}]
    for parts in bad:
        with pytest.raises((ValueError, TypeError)):
            ledger.partition("other", parts)
    ledger.close()
    with Ledger.open(tmp_path / "people.ledger") as later:
        assert later.part("who", 3).restricted_to == before
        assert later.verify().entries == 3
    key = before.partition.key if before is not None else None
    assert key is not None
    assert PartChoice(TablePart(declared("who", 4, key), "3")).part == before


def test_the_command_line_reads_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from typer.testing import CliRunner

    from snugdp.cli.main import app

    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"region": ["north"] * 30 + ["south"] * 10, "age": [40.0] * 30 + [20.0] * 10})
    frame.write_parquet("t.parquet")

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == code, result.output
        return result.output

    run("ledger", "create", "l.ledger", "--dataset", "t", "--epsilon", "999", "--delta", "0.1")
    told = run("ledger", "partition", "l.ledger", "region", "--values", "north,south")
    assert "region=north region=south" in told
    paid = ("--ledger", "l.ledger", "--epsilon", "60", "--json", "-y", "--part")
    for region, rows, age in (("north", 30, 40), ("south", 10, 20)):
        counted = json.loads(run("query", "count", "t.parquet", *paid, f"region={region}"))
        assert round(counted["value"]) == rows
        vote = ("query", "vote", "t.parquet", "-c", "age", "--values", "20,40")
        assert json.loads(run(*vote, *paid, f"region={region}"))["value"] == age
    assert "epsilon 120 and delta 0" in run("ledger", "show", "l.ledger")
    assert "no part" in run("query", "count", "t.parquet", *paid, "region=east", code=1)
    assert "--part" in run("query", "count", "t.parquet", "--epsilon", "1", "-y", "--part", "region=north", code=1)
    assert "--values" in run("ledger", "partition", "l.ledger", "region", code=1)
