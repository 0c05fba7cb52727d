"""Pieces of persons, batches, files and threads: beside a dictionary of persons in plain Python."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp.tables.persons import BINS, WEIGHT, keep_rows, order, passes, person_counts, state, weigh_rows
from snugdp.tables.persons.hashing import mixed
from snugdp.tables.persons.order import HASH, TEXT, WHO, in_order
from snugdp.tables.sources import base, open_source
from tests.effort import sampled
from tests.tables.persons.tables import KEY
from tests.tables.persons.test_keep import CONTAINERS

BIG = 2**53
LOST = "lost"  # rows that are left out
# How identifiers are written, and who that is; None for nobody.
TEXTS: dict[Any, Any] = {
    "7": 7, " 7": 7, "7.0": 7, "+7": 7, "07\t": 7, "8": 8, "-0.0": 0, "0": 0, "-0": 0,
    f"{BIG + 1}": BIG + 1, f" {BIG + 1} ": BIG + 1, f"+0{BIG + 1}.0": BIG + 1, f"{BIG}": BIG, f"-{BIG + 1}": -BIG - 1,
    f"{2**63 - 1}": 2**63 - 1, f"{2**63 - 2}": 2**63 - 2, "1e30": "1e30", "2e999": "2e999", "1e999": "1e999",
    "Ann": "Ann", "ann": "ann", "Änn": "Änn", "Ann Lee": "Ann Lee", "AnnLee": "AnnLee", "nan": None, " NaN ": None,
    "1970-01-02": "day", "1970-01-02T00:00:00": "day", None: None,
}  # fmt: skip
ENDS = (0, 1, -1, BIG - 1, BIG, BIG + 1, -BIG - 1, 2**63 - 1, 2**63 - 2, -(2**63), None)
WHOLE: dict[Any, Any] = {each: each for each in ENDS}
FLOATS: dict[Any, Any] = {
    0.0: 0, 0.1: 0.1, float(np.float32(0.1)): 0.1, 0.5: 0.5, 7.0: 7, BIG - 1.0: BIG - 1, -3.0: -3,
    float(BIG): LOST, 2.0**60: LOST, -(2.0**53): LOST, float("inf"): LOST, None: None,
}  # fmt: skip
KINDS = {"text": (TEXTS, pl.String), "whole": (WHOLE, pl.Int64), "floats": (FLOATS, pl.Float64)}
HELD = ["polars", "parquet", "files", "pyarrow", "arrow", "lazy"]


def rows_of(kind: str, number: int) -> tuple[pl.DataFrame, list[Any]]:
    """Rows with their number as content, and who each belongs to: some persons have many, some few."""
    spelled, dtype = KINDS[kind]
    choose = random.Random(number)
    ids = choose.choices(list(spelled), weights=[1 + 3 * (i % 7) ** 2 for i in range(len(spelled))], k=number)
    who = [spelled[each] for each in ids]
    if kind == "floats":  # a dictionary has one zero and no NaN
        ids = [-0.0 if each == 0 and choose.random() < 0.5 else each for each in ids]
        ids = [float("nan") if each is None and choose.random() < 0.5 else each for each in ids]
    return pl.DataFrame({"id": pl.Series(ids, dtype=dtype), "x": range(number)}), who


def read(source: Any, names: Sequence[str]) -> list[tuple[int, ...]]:
    """The rows of a source."""
    frames = [batch.frame for part in source.partitions() for batch in part.batches(names)]
    columns = ([int(cell) for frame in frames for cell in frame.get_column(name).to_list()] for name in names)
    return sorted(zip(*columns, strict=True))


@pytest.fixture(params=["plain", "pieces", "few bits", "files", "small files"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ways to cut a table."""
    name: str = request.param
    monkeypatch.setattr(base, "_BATCH_ROWS", 1024)
    monkeypatch.setattr(passes, "cores", lambda: 1)  # of which each has its part of the memory
    if name != "plain":
        monkeypatch.setattr(order, "_PIECE_BITS", 3)
    if name == "few bits":
        monkeypatch.setattr(order, "_HASH_BITS", 54)
    if name == "files":
        monkeypatch.setattr(passes, "MAX_BYTES", 60_000)
    if name == "small files":
        monkeypatch.setattr(passes, "MAX_BYTES", 9_000)
        monkeypatch.setattr(state, "_BLOCK_BYTES", 1)
    return name


@sampled(25)
@pytest.mark.parametrize(
    ("kind", "container"),
    [*product(KINDS, [*HELD, "duckdb"]), ("text", "csv"), ("whole", "csv")],  # text has all digits that floats lose
)
def test_weights_and_rows_beside_a_dictionary_of_persons(kind: str, container: str, cut: str, tmp_path: Path) -> None:
    rows, who = rows_of(kind, 5000)
    data = open_source(CONTAINERS[container](rows, tmp_path))
    sizes = Counter(who)
    expected = []
    for place, person in enumerate(who):
        size = 1 if person is None else sizes[person]
        if person != LOST:
            expected.append((place, WEIGHT * min(size, 3) // size))
    assert read(weigh_rows(data, ["x"], "id", 3, KEY), ["x", "weight"]) == expected
    bins = Counter({0: sizes.pop(None)})
    sizes.pop(LOST, None)
    bins.update((size - 1).bit_length() for size in sizes.values())
    assert person_counts(data, "id").tolist() == [bins[place] for place in range(BINS)]
    kept: dict[Any, list[int]] = defaultdict(list)
    for (place,) in read(keep_rows(data, ["x"], "id", 2, KEY), ["x"]):
        kept[who[place]].append(place)
    assert {person: len(places) for person, places in kept.items()} == {
        None: bins[0] - sum(size == 1 for size in sizes.values()),
        **{person: min(2, size) for person, size in sizes.items()},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_of_a_person_is_what_is_kept_of_it_alone(kind: str, cut: str) -> None:
    rows, who = rows_of(kind, 3000)
    found = read(keep_rows(open_source(rows), ["x"], "id", 3, KEY), ["x"])
    alone: list[tuple[int, ...]] = []
    for person in set(who):
        own = rows.filter(pl.Series([each == person for each in who]))
        alone += read(keep_rows(open_source(own), ["x"], "id", 3, KEY), ["x"])
    assert found == sorted(alone)


HOSTILE: dict[str, Callable[[np.random.Generator], Any]] = {
    "at random": lambda draw: mixed(draw.integers(0, 300, 4000).astype(np.uint64)),
    "first bits the same": lambda draw: draw.integers(0, 300, 4000).astype(np.uint64),
    "last bits the same": lambda draw: draw.integers(0, 256, 4000).astype(np.uint64) << np.uint64(56),
    "edges of pieces": lambda draw: (
        (draw.integers(0, 256, 4000).astype(np.uint64) << np.uint64(56)) - draw.integers(0, 2, 4000).astype(np.uint64)
    ),
    "one person": lambda draw: np.full(4000, 2**64 - 1, dtype=np.uint64),
}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("hashes", [None, 2**64 - 1, 3])
@pytest.mark.parametrize("name", HOSTILE)
def test_pieces_are_in_the_order_of_everything(
    name: str, hashes: int | None, text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the hashes of persons are: by a sort in plain Python."""
    draw = np.random.default_rng(5)
    columns: dict[str, Any] = {WHO: HOSTILE[name](draw)}
    if text:
        columns[TEXT] = [[None, "a", "b"][each] for each in draw.integers(0, 3, 4000)]
    if hashes is not None:
        columns[HASH] = draw.integers(0, hashes, 4000, dtype=np.uint64)
    index = pl.DataFrame(columns)
    cells = index.with_columns(pl.col(TEXT).fill_null("")).rows() if text else index.rows()
    for bits in (1, 4, 9, 30):
        monkeypatch.setattr(order, "_PIECE_BITS", bits)
        found = in_order(index)
        ordered = [cells[row] for row in found.rows.tolist()]
        assert sorted(found.rows.tolist()) == list(range(4000))
        assert ordered == sorted(cells)
        persons = [cell[: 1 + text] for cell in ordered]
        assert found.new_person.tolist() == [True, *(a != b for a, b in zip(persons[1:], persons[:-1], strict=True))]
        assert found.new_hash.tolist() == [True, *(a != b for a, b in zip(ordered[1:], ordered[:-1], strict=True))]
