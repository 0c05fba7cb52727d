"""A fit that is scored on rows that were held out of it: which rows these are, and what both cost together."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import Cost
from snugdp.accounting.composition import Atom, Branch
from snugdp.audit.finding import Case
from snugdp.audit.replay import path, realised_by
from snugdp.core.outcome import Unit
from snugdp.mechanisms.scores.images import CELLS
from snugdp.scores.holdout import covered_share
from snugdp.scores.models import is_linear, is_steep
from snugdp.scores.split import SplitRequest
from snugdp.tables.sources.chosen import ChosenSource
from tests.effort import often, repeated, sampled
from tests.scores.models import rows_of

X, Y = rows_of(4000)
KEY = 12345 << 70 | 7


def fits() -> Iterator[Cost]:
    """Costs of fits: of real plans, and made up."""
    for method in ("adassp", "posterior", "auto")[: often(2, 3)]:
        yield snugdp.LinearRegression(1, 1e-6, method=method, x_norm=1, y_bound=1).plan(n_features=2).cost
    yield snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=1).plan(n_features=2).cost
    if often(0, 1):
        yield snugdp.LogisticRegression(1, 1e-6).plan(n_features=2).cost
    half, none = Fraction(1, 2), Fraction(0)
    gaussian, shifted, weighted = Branch(half, none), Branch(Fraction(1, 9), half), Branch(none, half, half)
    yield Cost(mu=1, epsilon=1, atoms=(Atom((gaussian, shifted), (shifted,)),))
    yield Cost(epsilon=half, delta=Fraction(1, 1000), atoms=(Atom((weighted, weighted), (weighted, weighted)),))


@pytest.mark.slow
@repeated
def test_a_score_is_never_dearer_than_the_fit_whatever_it_is_beside() -> None:
    others = [Cost(mu="0.3", epsilon="0.2", delta="1e-5"), Cost(), Cost(mu=1), Cost(epsilon=1)][: often(1, 4)]
    for fit in fits():
        share = covered_share(fit)
        for other in others:
            for epsilon in (3, -0.5, 0.1, 1)[: often(2, 4)]:
                assert (share.cost + other).delta_at(epsilon) <= (fit + other).delta_at(epsilon) * (1 + 1e-12)
    assert covered_share(Cost(mu=2)).cost == Cost(mu=2)
    with pytest.raises(ValueError, match="neither a pure nor a Gaussian part"):
        covered_share(Cost(delta="1e-6"))


def held(X: Any, y: Any = None, **given: Any) -> Any:
    return SplitRequest(0.3, KEY, **given).of(X, y)


def test_a_row_that_comes_or_goes_moves_no_other() -> None:
    """By brute force over small tables: both parts are unions of what single rows become."""
    rows = [[1.0, 2.0], [1.0, 2.0], ["?", None], [math.nan, "x"], [3, 4], [5.5, -1], [0.0, 0.0], [2**53 + 1, 1e300]]
    alone = [len(held([row]).held[0]) for row in rows]
    assert 0 < sum(alone) < len(rows)
    for skip in range(len(rows)):
        some = [row for place, row in enumerate(rows) if place != skip]
        wanted = [row for place, row in enumerate(rows) if place != skip and alone[place]]
        found = held(some, list(range(len(some))))
        assert repr(found.held[0]) == repr(wanted)
        assert len(found.fitted[0]) + len(found.held[0]) == len(some)
        assert found.held[1] == [place for place, row in enumerate(some) if alone[rows.index(row)]]


def test_containers_split_alike_and_the_share_is_about_right(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    wanted = held(table, "y", target="y").held[0]
    assert 0.25 < len(wanted) / len(table) < 0.35
    assert len(held(table.to_pandas().astype(object), "y", target="y").held[0]) == len(wanted)
    for name in ("t.csv", "t.parquet"):
        part = held(tmp_path / name, "y", target="y").held[0]
        assert isinstance(part, ChosenSource)
        frames = [batch.frame for each in part.partitions() for batch in each.batches(("a", "y"))]
        assert np.allclose(sorted(np.concatenate([f.get_column("a").to_numpy().astype(float) for f in frames])),
                           sorted(wanted["a"].to_list()))  # fmt: skip
    assert len({len(SplitRequest(0.3, key).of(X, Y).held[0]) for key in range(5)}) > 1  # the key decides
    labels = SplitRequest(0.3, KEY).of(X, Y)
    assert (labels.held[0] == SplitRequest(0.3, KEY).of(X, 1 - Y).held[0]).all()  # the target does not


def test_a_person_is_in_one_part() -> None:
    table = pd.DataFrame({"a": X[:, 0], "who": np.arange(len(X)) // 4})
    with pytest.raises(ValueError, match='no column "nobody"'):
        held(table, Y, person="nobody")
    found = held(table, Y, person="who")
    one, other = (set(part[0]["who"]) for part in (found.fitted, found.held))
    assert not one & other
    assert len(one | other) == len(X) // 4


SLOWER = ("csv", "persons", "no bounds")
FORMS = ["array", "table", "schema", *(pytest.param(form, marks=pytest.mark.slow) for form in SLOWER)]


@sampled(6)
@pytest.mark.parametrize("form", FORMS)
def test_a_fit_is_scored_at_its_own_cost(form: str, tmp_path: Path) -> None:
    ledger = snugdp.MemoryLedger(20, 1e-3, unit="person" if form == "persons" else "row", composition="tight")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    given: dict[str, Any] = {"epsilon": 4, "delta": 1e-5, "ledger": ledger}
    data: Any = (X, Y)
    if form in ("array", "table"):
        given |= {"classes": [0, 1], "x_norm": 3}
        data = data if form == "array" else (table, Y)
    elif form == "no bounds":
        data = (X.tolist(), Y.tolist())
    else:
        table["y"] = Y
        data = (table, "y")
        if form == "persons":
            table["who"] = np.arange(len(X)) // 2
            given["person"] = "who"
        elif form == "schema":
            columns: Any = {"a": snugdp.Number(-4, 4), "b": snugdp.Number(-4, 4), "y": snugdp.Boolean()}
            given["schema"] = snugdp.Schema(columns, target="y")
            data = (table, None)
        else:
            table.to_csv(tmp_path / "t.csv", index=False)
            data = (str(tmp_path / "t.csv"), "y")
    model = snugdp.LogisticRegression(**given).fit(*data, holdout=0.4)
    assert model.released_
    assert ledger.spent == model.cost_ == model.plan_.cost
    assert model.plan_.step_ids[-1] == "holdout"
    rows = sum(model.holdout_score_.parts["bins"])
    assert abs(rows - 0.4 * len(X) / (2 if form == "persons" else 1)) < 400
    assert 0.7 < model.holdout_score_["roc_auc"].value < 0.95
    assert "holdout" not in vars(model)
    again = type(model)(**given)
    assert again.get_params().keys() == model.get_params().keys()


def test_regressions_files_and_keys(tmp_path: Path) -> None:
    ledger = snugdp.Ledger.open(tmp_path / "l.db", dataset="people", budget=snugdp.Budget(200, 1e-3))
    y = X[:, 0] + X[:, 1]

    def fit(holdout: float | None) -> Any:
        made = snugdp.LinearRegression(100, 1e-5, x_norm=4, y_bound=8, method="adassp", ledger=ledger.once("a"))
        return made.fit(X, y, holdout=holdout)

    model = fit(0.25)
    assert model.holdout_score_["r2"].value > 0.6
    assert fit(0.25).holdout_score_ == model.holdout_score_  # stored
    with pytest.raises(snugdp.KeyConflictError):
        fit(None)
    snugdp.save(model, tmp_path / "m.json")
    loaded = snugdp.load(tmp_path / "m.json")
    assert loaded.holdout_score_ == model.holdout_score_
    assert str(loaded.plan_) == str(model.plan_)
    refit = model.set_params(ledger=None).fit(X, y)
    assert not hasattr(refit, "holdout_score_")


def test_mistakes_and_rehearsals() -> None:
    model = snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=3)
    for share in (0, 1, -0.2, "0.2x"):
        with pytest.raises(ValueError, match="holdout"):
            model.fit(X, Y, holdout=share)
    with pytest.raises(ValueError, match="column of a table"):
        model.fit(X, Y, groups=Y, holdout=0.2)
    with pytest.raises(ValueError, match="validation"):
        snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1, validation=(X, Y)).fit(X, Y, holdout=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rehearsed = snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=3, random_state=3)
        one = rehearsed.fit(X, Y, holdout=0.2).holdout_score_
        assert one == rehearsed.fit(X, Y, holdout=0.2).holdout_score_
    assert replace(one, unscored=0).parts == one.parts


PLANNED = [pytest.param({"max_rows": rows}, marks=pytest.mark.slow) for rows in (4, "private")]


@sampled(3)
@pytest.mark.parametrize("given", [{"max_rows": 4, "method": "adassp"}, *PLANNED])
def test_one_row_of_a_person_is_scored_where_the_fit_is_planned_for_persons(given: Any) -> None:
    """Its cost is that of a person with all rows: four rows, scored with the noise of one, would cost sixteenfold."""
    who = np.arange(len(X)) // 4
    table = pd.DataFrame({"a": X[:, 0], "y": X[:, 1], "who": who})
    schema = snugdp.Schema({"a": snugdp.Number(-4, 4), "y": snugdp.Number(-4, 4)}, target="y", person="who")
    model = snugdp.LinearRegression(50, 1e-3, schema=schema, **given).fit(table, holdout=0.5)
    rows = sum(model.holdout_score_.parts["r2"][:2]) / CELLS
    assert abs(rows - 0.5 * len(np.unique(who))) < 250
    assert model.outcome_.unit is Unit.PERSON


@pytest.mark.slow
def test_a_part_without_rows_is_no_other_outcome() -> None:
    """Whether a row comes or goes must not show: neither in a refusal nor in an exception."""
    for size in (0, 1):
        frame = pd.DataFrame({"a": X[:size, 0], "b": X[:size, 1]})
        rows = X[:size].tolist() if size else np.empty((0, 2))
        for data in ((rows, Y[:size].tolist()), (frame, pd.Series(Y[:size])), (pl.from_pandas(frame), Y[:size])):
            for _ in range(2):
                made = snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=1).fit(*data, holdout=0.5)
                assert made.released_
    fitted = snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=1).fit(X, Y)
    assert not snugdp.score(fitted, [], [], epsilon=1).refused


@pytest.mark.parametrize("y", [[0] * 9, [0] * 11, np.zeros(9), pd.Series([0] * 9), pl.Series([0] * 9)])
def test_targets_of_other_rows_are_refused_without_their_number(y: Any) -> None:
    with pytest.raises(ValueError, match=r"inconsistent numbers of rows: give one target for every row$"):
        snugdp.LogisticRegression(1, 1e-6, classes=[0, 1], x_norm=1).fit(X[:10], y, holdout=0.5)


def test_a_scale_that_is_narrow_for_its_numbers_is_scored_row_by_row() -> None:
    model = snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=8, method="adassp").fit(X, Y)
    assert not is_steep(model, (-8.0, 8.0))
    assert is_steep(model, (5.0, 5.0 + 1e-9))
    assert is_steep(model, (1e9, 1e9 + 1e-3))


def test_linear_models_are_proved_to_score_rows_alone_and_students_are_trusted_to() -> None:
    sparse = snugdp.SparseLinearRegression(1, epsilon=1, delta=1e-3, x_bound=1, y_bound=8)
    assert not is_linear(sparse)
    sparse._theta = np.ones(2)  # as a fit leaves it
    assert is_linear(sparse)
    assert not is_steep(sparse, (-8.0, 8.0))
    assert is_steep(sparse, (5.0, 5.0 + 1e-9))
    student = snugdp.PATEClassifier(n_teachers=20, classes=[0, 1], queries=X[:5], epsilon=9, delta=1e-3)
    assert not is_linear(student)
    notes = {note.code for note in snugdp.Score(model=sparse, epsilon=1).plan().forecast.notes}
    assert "scored-rows" in notes


@pytest.mark.slow
def test_a_person_who_is_held_out_is_hidden_with_all_rows() -> None:
    schema = snugdp.Schema({"a": snugdp.Number(-1, 1), "y": snugdp.Number(-1, 1)}, "y", person="who")
    others = pd.DataFrame({"who": [f"p{k}" for k in range(6)], "a": np.linspace(-1, 1, 6), "y": np.linspace(1, -1, 6)})
    table = pd.concat([others, pd.DataFrame({"who": ["new"] * 8, "a": [1.0] * 8, "y": [-1.0] * 8})])
    given: dict[str, Any] = {"schema": schema, "max_rows": 3, "method": "adassp", "progress": False}
    cost = snugdp.LinearRegression(1, 0.01, **given).plan().cost

    def run(rows: pd.DataFrame, noise: Any) -> Any:
        return snugdp.LinearRegression(1, 0.01, noise=noise, **given).fit(rows, holdout=0.5).outcome_

    runs = [realised_by(path(Case("held out", run, cost, list), table, others, seed)) for seed in range(8)]
    assert not any(found.reason for found in runs)
    spent = [found.mu_squared for found in runs]
    assert len(set(spent)) > 1  # fitted on in some runs, held out in others
    assert max(spent) <= cost.mu_squared
