"""Keys that nobody listed, of persons with several keys: exact laws over all small tables, and what is kept."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Budget, Unit
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.noise import Finite
from snugdp.noise.recording import Witness, private_inputs
from snugdp.tables.passes.counts.keys import key_column
from snugdp.tables.persons.keep import keep_keys
from snugdp.tables.sources import open_source
from tests.effort import often, repeated, sampled

KEYS = ("a", "b", "c")
CONTENTS = tuple(some for size in range(4) for some in itertools.combinations_with_replacement(KEYS, size))
GIVEN: dict[str, Any] = {"by": "key", "epsilon": 1, "delta": 0.05, "person": "who"}


def frame(persons: tuple[tuple[str, ...], ...]) -> pl.DataFrame:
    rows = [(who, key, float(place)) for who, some in enumerate(persons) for place, key in enumerate(some)]
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    columns = {"who": pl.Int64, "key": pl.String, "value": pl.Float64}
    return pl.DataFrame([rows[place] for place in order], schema=columns, orient="row")


def counts(query: Any, table: pl.DataFrame) -> dict[str, int]:
    """The numbers of persons that the selection sees."""
    witness = Witness(1)
    query.release(table, noise=witness)
    (site,) = witness.transcript().sites
    keys, numbers = private_inputs(site)[0]
    return {key[0].lstrip("\0"): int(number) for key, number in zip(keys, numbers, strict=True)}


def divergence(law: Finite, threshold: int, one: int, other: int, w: float) -> float:
    """The hockey stick of what is shown of a key with these counts, exactly."""

    def shown(count: int) -> dict[int | None, Fraction]:
        found: dict[int | None, Fraction] = {}
        for place, weight in enumerate(law.weights):
            noisy = count + law.lowest + place
            key = noisy if count and noisy >= threshold else None
            found[key] = found.get(key, Fraction(0)) + Fraction(weight, law.total)
        return found

    first, second = shown(one), shown(other)
    return float(sum(max(Fraction(0), p - Fraction(w) * second.get(key, Fraction(0))) for key, p in first.items()))


@sampled(3)
@repeated
@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_person_moves_at_most_so_many_counts_by_one(most: int) -> None:
    query = snugdp.GroupBy(max_rows=most, **GIVEN)
    others = (("a", "b"), ("a", "a", "c"))
    before = counts(query, frame(others))
    for some in (*CONTENTS[:: often(3, 1)], KEYS):
        after = counts(query, frame((*others, some)))
        moved = {key: after.get(key, 0) - before.get(key, 0) for key in KEYS}
        assert all(move in (0, 1) for move in moved.values())
        assert sum(moved.values()) == min(most, len(set(some)))


@pytest.mark.parametrize("most", [2, 3])
def test_the_law_of_what_is_shown_is_within_the_budget(most: int) -> None:
    """A person who brings several keys: the product of their laws, by the worst split of epsilon and delta."""
    made: KeySelection = snugdp.GroupBy(max_rows=most, **GIVEN)._totals._made.selection  # type: ignore[union-attr]
    assert made.keys == most
    assert made.cost.fits(Budget(1, 0.05))
    if isinstance(made.law, Finite):
        w = float(np.exp(1 / most))
        for count in range(25):
            for one, other in ((count, count + 1), (count + 1, count)):
                assert divergence(made.law, made.threshold, one, other, w) <= 0.05 / most + 1e-12


@pytest.mark.slow
@repeated
def test_what_is_kept_is_the_union_over_persons_in_every_order() -> None:
    table = frame((CONTENTS[-1], CONTENTS[-3], ("a",) * 9 + ("b",), ("c", "c")))
    source = open_source(table)
    keys = (key_column(source, "key"),)

    def kept(data: pl.DataFrame, key: int, most: int = 2) -> list[tuple[Any, ...]]:
        found = keep_keys(open_source(data), ["key", "value", "who"], "who", keys, most=most, key=key)
        frames = [
            batch.frame.to_native() for part in found.partitions() for batch in part.batches(("who", "key", "value"))
        ]
        return sorted(pl.concat(frames).rows())

    first = set()
    for key in range(often(8, 24, 40)):
        whole = kept(table, key)
        shuffled = table.sample(fraction=1.0, shuffle=True, seed=key)
        assert kept(shuffled, key) == whole
        alone = [row for who in range(4) for row in kept(table.filter(pl.col("who") == who), key)]
        assert sorted(alone) == whole
        assert all(
            len({row[1] for row in whole if row[0] == who}) == sum(row[0] == who for row in whole) for who in range(4)
        )
        first.add(tuple(row for row in kept(table, key, 1) if row[0] == 2))
    assert len({rows[0][1] for rows in first}) == 2  # a key is as likely as another, however often it occurs


def test_equal_hashes_of_rows_are_decided_by_content() -> None:
    """Fractions that single precision does not tell apart have one hash."""
    values = [0.1, 0.1 + 1e-12, 0.1 + 2e-12]
    found = set()
    for order in itertools.permutations(values):
        table = pl.DataFrame({"who": [1, 1, 1], "key": ["a"] * 3, "value": list(order)})
        kept = keep_keys(
            open_source(table), ["key", "value"], "who", (key_column(open_source(table), "key"),), most=1, key=3
        )
        found |= {
            tuple(batch.frame.get_column("value").to_list())
            for part in kept.partitions()
            for batch in part.batches(("value",))
        }
    assert len(found) == 1


def test_fractions_and_odd_cells_are_one_missing_key() -> None:
    cells: list[Any] = [0.5, 0.7, None, "", [], 1j, "x"]
    table = pl.DataFrame({"who": [1] * 7, "key": pl.Series(cells, dtype=pl.Object)})
    for missing, want in ((False, 1), (True, 2)):
        witness = Witness(1)
        snugdp.GroupBy(max_rows=9, missing=missing, **GIVEN).release(table, noise=witness)
        (site,) = witness.transcript().sites
        assert sum(private_inputs(site)[0][1].tolist()) == want


def test_statistics_of_persons_with_several_keys() -> None:
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(3000), 4)
    table = pl.DataFrame(
        {"who": who, "key": rng.choice(["a", "b", "c"], len(who)), "value": rng.uniform(0, 10, len(who))}
    )
    query = snugdp.GroupBy(
        by="key", statistics={"value": ["mean", "median"]}, bounds={"value": (0, 10)}, epsilon=4, delta=1e-6,
        person="who", max_rows=3,
    )  # fmt: skip
    assert query.plan().unit is Unit.PERSON
    assert query.plan().cost.fits(Budget(4, 1e-6))
    outcome = query.release(table)
    assert outcome.value is not None
    assert outcome.value["key"] == ("a", "b", "c")
    for name in ("value_mean", "value_median"):
        assert all(4 < float(str(found)) < 6 for found in outcome.value[name])
    assert all(
        2200 < float(str(count)) < 2700 for count in outcome.value["count"]
    )  # persons, of whom 1 - (2/3)^4 have each
