"""The query vectors once more, through the functions that people call: the distances that a release really tests."""

import json
from fractions import Fraction
from typing import Any

import pytest

import snugdp
from tests.queries.witness import Witness
from tests.test_vectors import FOLDER
from tests.vectors.adapters import number

FILE = FOLDER / "queries.json"
COMMON: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def dyadic(case: dict[str, Any]) -> bool:
    """Whether all numbers lie on every grid of the queries, so that the integer distance must agree to the letter."""
    given = case["inputs"]
    values = [*given.get("x", []), given.get("lo", 0), given.get("hi", 0), given.get("beta", 0)]
    return all(Fraction(value).denominator <= 2**10 for value in values)


CASES = [
    pytest.param(case, id=f"queries-{case['id']}")
    for case in (json.loads(FILE.read_text())["cases"] if FILE.exists() else [])
    if dyadic(case)
]


def released_with(case: dict[str, Any], witness: Witness) -> Any:
    """The public query of a case, with a witness in place of the noise."""
    kind, given = case["kind"], case["inputs"]
    if kind.startswith("mode"):
        rows = [label for label, count in enumerate(given["counts"]) for _ in range(count)]
        relation = "replace" if kind == "mode_replace" else "add_remove"
        labels = list(range(len(given["counts"])))
        return snugdp.mode(rows, categories=labels, neighbours=relation, noise=witness, **COMMON)
    query = {**COMMON, "bounds": (given["lo"], given["hi"]), "beta": given["beta"], "noise": witness}
    if kind == "median_addremove":
        return snugdp.median(given["x"], **query)
    if kind == "quantile_replace":
        q = Fraction(given["rank"], len(given["x"]))
        return snugdp.quantile(given["x"], q, neighbours="replace", **query)
    return snugdp.trimmed_mean(given["x"], trim=Fraction(given["trim"], len(given["x"])), **query)


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0]["kind"] != "iqr_surrogate_replace"])  # type: ignore[index]
def test_the_distance_of_the_release_is_the_distance_of_the_vector(case: dict[str, Any]) -> None:
    witness = Witness()
    released_with(case, witness)
    expected = number(case["expected"])
    if witness.tests:
        assert witness.tests[0][0] == expected
    else:  # the proposal covers everything that can happen: no test, infinite distance
        assert expected == float("inf")
