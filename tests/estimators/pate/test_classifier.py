"""The face of PATE: what goes in, what comes out, what is refused, and who pays."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csc_matrix, csr_array, issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from snugdp import (
    BudgetExceededError,
    Cost,
    MemoryLedger,
    NotPrivateWarning,
    NotReleased,
    PATEClassifier,
    Simulation,
)
from snugdp.core.guarantee import Budget
from snugdp.estimators.base import Promise
from snugdp.propose.forecast import noted
from snugdp.propose.theorem import theorem
from snugdp.tables.cells import matrix
from tests.effort import often, repeated, sampled
from tests.estimators.checks import Untouchable
from tests.estimators.test_check_estimator import failures

NAMES = ["a", "b", "c"]
pytestmark = pytest.mark.usefixtures("plain")


def made(n: int = 600, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] > 0).astype(int)


PUBLIC = made(60, seed=2)[0]


def rehearsal(**given: Any) -> Any:
    return PATEClassifier(
        **{
            "teacher": GaussianNB(),
            "student": DecisionTreeClassifier(max_depth=2),
            "n_teachers": 10,
            "classes": [0, 1],
            "queries": PUBLIC,
            "noise": Simulation(4),
            **given,
        }
    )


def release(**given: Any) -> Any:
    return rehearsal(**{"noise": None, **given})


@repeated
@pytest.mark.parametrize(
    ("teacher", "least"),
    [
        (GaussianNB(var_smoothing=0.01), 0.75),
        (DecisionTreeClassifier(), 0.65),
        (KNeighborsClassifier(3), 0.75),
        (make_pipeline(StandardScaler(), LogisticRegression()), 0.75),
    ][: often(1, 4)],
    ids=lambda value: type(value).__name__,
)
def test_a_student_learns_digits_it_never_saw(teacher: Any, least: float) -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = PATEClassifier(
        teacher, KNeighborsClassifier(1), 30, classes=range(10), queries=X[1200:1500], noise=Simulation(1)
    ).fit(X[:1200], y[:1200])
    assert model.score(X[1500:], y[1500:]) > least
    assert (model.labels_ == y[1200:1500]).mean() > least
    chances = model.predict_proba(X[1500:])
    assert chances.shape == (297, 10)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X[1500:]))


def test_what_a_fit_leaves(plain: Any) -> None:
    X, y = made()
    ledger = MemoryLedger(5, 1e-3, composition="tight")
    model = release(student=GaussianNB(), ledger=ledger, gap="half").fit(X, y)
    assert plain.calls == 1
    assert ledger.spent == Cost(epsilon=1, delta=1e-6) == model.cost_ == model.plan_.cost
    assert model.receipt_.sequence == 1
    assert model.guarantee_ == Promise(Budget(1, 1e-6), theorem("pate/1"))
    assert model.released_ is True
    assert model.outcome_.value is not None
    assert model.labels_.shape == model.answered_.shape == (60,)
    assert model.answered_.sum() == 30
    assert model.student_.n_features_in_ == model.n_features_in_ == 3
    assert model.classes_.tolist() == [0, 1]
    assert not hasattr(model, "feature_names_in_")
    taught = GaussianNB().fit(PUBLIC[1::2], model.labels_[1::2])
    assert np.array_equal(taught.predict(X), model.predict(X))


def test_without_models_they_are_trees() -> None:
    model = rehearsal(teacher=None, student=None).fit(*made())
    assert isinstance(model.student_, DecisionTreeClassifier)
    assert model.score(*made()) > 0.8


def test_more_jobs_change_nothing(plain: Any) -> None:
    X, y = made()
    trees = {"teacher": DecisionTreeClassifier(splitter="random", max_features=1), "n_teachers": 20}
    one = rehearsal(**trees).fit(X, y)
    votes = plain.votes
    two = rehearsal(n_jobs=2, **trees).fit(X, y)
    assert np.array_equal(votes, plain.votes)
    assert np.array_equal(one.labels_, two.labels_)


def test_teachers_without_a_seed_have_different_ones_and_those_with_one_keep_it(plain: Any) -> None:
    X = np.tile([[0.0, 1.0], [1.0, 0.0]], (400, 1))
    y = np.tile([0, 1], 400)
    queries = np.array([[0.0, 0.0], [1.0, 1.0]])  # either feature alone decides, and they disagree
    choosy = {"teacher": DecisionTreeClassifier(max_depth=1), "classes": [0, 1], "queries": queries, "n_teachers": 40}
    rehearsal(**choosy).fit(X, y)
    assert plain.votes.min() > 3
    rehearsal(**{**choosy, "teacher": DecisionTreeClassifier(max_depth=1, random_state=5)}).fit(X, y)
    assert plain.votes.min() == 0


@pytest.mark.slow
def test_every_container_gives_the_same_fit() -> None:
    X, y = made(300)
    columns = dict(zip(NAMES, X.T, strict=True))
    asked = dict(zip(NAMES, PUBLIC.T, strict=True))
    odd = np.random.default_rng(1).permutation(len(y))  # labels of rows, which must not matter
    answer = rehearsal().fit(X, y)
    targets = (y, y.tolist(), tuple(y), y.astype(object), pd.Series(y), pl.Series(y), pa.array(y))
    for rows in (X, X.tolist(), X.astype(object), np.asfortranarray(X)):
        for target in targets if rows is X else targets[:1]:
            model = rehearsal().fit(rows, target)
            assert np.array_equal(model.labels_, answer.labels_)
            assert not hasattr(model, "feature_names_in_")
        assert np.array_equal(model.predict(rows), answer.predict(X))
    for rows, queries in (
        (pd.DataFrame(columns, index=odd), pd.DataFrame(asked)),
        (pl.DataFrame(columns), pl.DataFrame(asked)),
        (pa.table(columns), pl.DataFrame(asked)),
        (pd.DataFrame(X), pd.DataFrame(PUBLIC)),
    ):
        model = rehearsal(queries=queries).fit(rows, pd.Series(y, index=odd))
        assert np.array_equal(model.labels_, answer.labels_)
        assert np.array_equal(model.predict(rows), answer.predict(X))
        assert model.n_features_in_ == 3
        assert [*getattr(model, "feature_names_in_", NAMES)] == NAMES


@sampled(2)
@pytest.mark.parametrize("kind", [csr_array, csc_matrix])
def test_sparse_rows(kind: Any) -> None:
    X, y = made(300)
    trees = {"teacher": DecisionTreeClassifier()}
    answer = rehearsal(**trees).fit(X, y)
    model = rehearsal(**trees, queries=kind(PUBLIC)).fit(kind(X), y)
    assert np.array_equal(model.labels_, answer.labels_)
    assert np.array_equal(model.predict(kind(X)), answer.predict(X))
    spoilt = X.copy()
    spoilt[:7, 1] = np.inf
    assert rehearsal(**trees, queries=kind(PUBLIC)).fit(kind(spoilt), y).released_


@pytest.mark.slow
def test_text_and_categories_reach_the_teachers_as_they_are() -> None:
    rng = np.random.default_rng(3)
    colour, size = rng.choice(["red", "blue"], 400), rng.uniform(0, 1, 400)
    y = np.where(colour == "red", "warm", "cold")
    table = pd.DataFrame({"colour": colour, "size": size})
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder="passthrough")
    coded = make_pipeline(coder, LogisticRegression())
    named = {"teacher": coded, "student": coded, "classes": ["warm", "cold"]}
    model = rehearsal(**named, queries=table[:50]).fit(table[50:], y[50:])
    assert model.classes_.tolist() == ["cold", "warm"]
    assert model.score(table, y) == 1.0
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0]), remainder="passthrough")
    named.update(teacher=make_pipeline(coder, LogisticRegression()), student=make_pipeline(coder, LogisticRegression()))
    rows = table.to_numpy()
    assert rehearsal(**named, queries=rows[:50]).fit(rows[50:], y[50:]).score(rows, y) == 1.0
    assert rehearsal(**named, queries=rows[:50].tolist()).fit(rows[50:].tolist(), y[50:]).score(rows, y) == 1.0


@pytest.mark.slow
def test_rows_that_a_teacher_cannot_take_are_left_out_one_by_one(plain: Any) -> None:
    X, y = made()
    rehearsal().fit(X, y)
    clean = plain.votes.sum()
    spoilt, labels = X.copy(), y.astype(object)
    spoilt[::3, 1], spoilt[1::3, 2], labels[5::30] = np.nan, np.inf, None
    for rows, queries in ((spoilt, PUBLIC), (pd.DataFrame(spoilt), pd.DataFrame(PUBLIC))):
        for teacher in (GaussianNB(), make_pipeline(SimpleImputer(), GaussianNB()), DecisionTreeClassifier()):
            rehearsal(teacher=teacher, queries=queries).fit(rows, labels)
            assert plain.votes.sum() == clean  # no teacher is lost


def test_a_teacher_that_takes_missing_values_sees_them(plain: Any) -> None:
    X, y = np.zeros((400, 1)), np.zeros(400, dtype=int)
    X[::2], y[::2] = np.nan, 1
    queries = np.array([[0.0], [np.nan]])
    for teacher in (
        DecisionTreeClassifier(),
        make_pipeline(SimpleImputer(strategy="constant", fill_value=9), GaussianNB()),
    ):
        rehearsal(teacher=teacher, student=teacher, queries=queries, classes=[0, 1]).fit(X, y)
        assert plain.votes.tolist() == [[10, 0], [0, 10]]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_teachers_with_few_rows_abstain_or_say_what_they_know(n: int, plain: Any) -> None:
    X, y = made(5)
    y[:] = 1
    model = release(n_teachers=50).fit(X[:n], y[:n])
    assert model.released_
    assert plain.votes[:, 0].sum() == 0
    assert (plain.votes[:, 1] <= n).all()
    assert (plain.votes[:, 1] >= min(n, 1)).all()


class Moody(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails, warns and answers nonsense, as its rows are."""

    def fit(self, X: Any, y: Any) -> Moody:
        self.classes_, self.mood_ = np.unique(y), X[:, 0].max()
        warnings.warn(f"{self.mood_}", UserWarning, stacklevel=1)
        if self.mood_ == 2:
            raise ValueError(f"{self.mood_}")
        return self

    def predict(self, X: Any) -> Any:
        if self.mood_ == 3:
            return np.full(len(X), "nonsense")
        if self.mood_ == 4:
            return np.zeros((len(X), 2))
        if self.mood_ == 5:
            raise MemoryError
        return np.full(len(X), self.classes_[0])


SENT = pytest.param(2, 2, marks=pytest.mark.slow)


@sampled(3)
@pytest.mark.parametrize(("mood", "n_jobs"), [(2, None), (3, None), (4, None), (5, None), SENT])
def test_what_happens_in_a_part_stays_there(mood: int, n_jobs: int | None, plain: Any) -> None:
    X, y = made()
    rehearsal(teacher=Moody()).fit(X, y)
    votes = plain.votes
    assert (votes.sum(axis=1) == 10).all()
    X[17, 0] = mood
    rehearsal(teacher=Moody(), n_jobs=n_jobs).fit(X, y)
    assert (plain.votes.sum(axis=1) == 9).all()
    assert (np.abs(plain.votes - votes).sum(axis=1) == 1).all()


def test_a_refused_fit_is_fitted_and_refused() -> None:
    X, y = made()
    ledger = MemoryLedger(10, 1e-3, composition="tight")
    model = release(ledger=ledger).fit(X, y)
    model.set_params(gap="refuse").fit(X, y)
    check_is_fitted(model)
    assert model.released_ is False
    assert ledger.spent == Cost(epsilon=2, delta=2e-6)
    assert model.guarantee_.epsilon == 1
    for gone in ("student_", "labels_", "answered_"):
        assert not hasattr(model, gone)
    for method, rows in (("predict", (X,)), ("predict_proba", (X,)), ("score", (X, y))):
        with pytest.raises(NotReleased, match=r'more teachers, .* test="none"'):
            getattr(model, method)(*rows)
    with pytest.raises(NotReleased):
        pickle.loads(pickle.dumps(model)).predict(X)


@pytest.mark.parametrize("student", [LogisticRegression(), DecisionTreeClassifier(), LinearSVC()])
def test_a_single_released_class_makes_a_constant_student(student: Any) -> None:
    X, y = made()
    model = rehearsal(student=student, gap="one").fit(X, y)
    assert (model.predict(X) == 1).all()
    assert isinstance(model.student_, DecisionTreeClassifier | DummyClassifier)
    assert model.predict_proba(X).tolist() == [[0.0, 1.0]] * len(X)


def test_no_answer_at_all() -> None:
    X, y = made()
    model = rehearsal(gap="none")
    with pytest.warns(UserWarning, match="no query was answered"):
        model.fit(X, y)
    assert (model.predict(X) == 0).all()


def test_probabilities_only_where_the_student_has_them() -> None:
    X, y = made()
    model = rehearsal(student=LinearSVC())
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, y), "predict_proba")
    assert hasattr(rehearsal(), "predict_proba")
    three = rehearsal(classes=[0, 1, 2]).fit(X, y)
    assert (three.predict_proba(X)[:, 2] == 0).all()
    assert np.allclose(three.predict_proba(X).sum(axis=1), 1)


class Fragile(DecisionTreeClassifier):  # type: ignore[misc]
    """A student that fails on the released labels and not before."""

    def fit(self, X: Any, y: Any) -> Any:
        if len(X) == len(PUBLIC):
            raise ValueError("not these")
        return super().fit(X, y)


def test_labels_survive_a_student_that_fails() -> None:
    X, y = made()
    model = release(student=Fragile())
    with pytest.raises(ValueError, match="not these") as caught:
        model.fit(X, y)
    assert any("labels_" in note for note in caught.value.__notes__)
    assert model.labels_.shape == (60,)
    assert model.receipt_.cost == model.cost_
    with pytest.raises(NotFittedError, match="labels_"):
        model.predict(X)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"delta": 1}, ValueError, "delta"),
    ({"neighbours": "swap"}, ValueError, "neighbours"),
    ({"n_teachers": 0}, ValueError, "n_teachers"),
    ({"n_teachers": None}, ValueError, "n_teachers"),
    ({"n_teachers": 2.5}, ValueError, "n_teachers"),
    ({"classes": None}, ValueError, "known without the data"),
    ({"classes": "ab"}, TypeError, "list of labels"),
    ({"classes": 10}, TypeError, "list of labels"),
    ({"classes": [1]}, ValueError, "two different"),
    ({"classes": [1, 1]}, ValueError, "same label"),
    ({"classes": [1, None]}, ValueError, "missing"),
    ({"classes": [1, float("nan")]}, ValueError, "missing"),
    ({"classes": [1, [2]]}, TypeError, "not containers"),
    ({"queries": None}, ValueError, "public rows without labels"),
    ({"queries": np.empty((0, 3))}, ValueError, "no queries"),
    ({"queries": np.ones(3)}, ValueError, "2D"),
    ({"queries": np.ones((3, 3)) * 1j}, ValueError, "Complex"),
    ({"queries": [["a"], ["b", "c"]]}, ValueError, "same length"),
    ({"sigma": -1}, ValueError, "sigma"),
    ({"teacher": LinearRegression()}, TypeError, "teacher must be a classifier"),
    ({"teacher": GaussianNB}, TypeError, "teacher must be a classifier"),
    ({"teacher": 5}, TypeError, "teacher must be a classifier"),
    ({"student": LinearRegression()}, TypeError, "student must be a classifier"),
    ({"teacher": LogisticRegression(C=-1)}, ValueError, "teacher could not be trained .* made-up labels"),
    ({"teacher": KNeighborsClassifier(9999)}, ValueError, "teacher could not be trained"),
    ({"student": LogisticRegression(C=-1)}, ValueError, "student could not be trained"),
    ({"teacher": LogisticRegression(verbose=1)}, ValueError, "must not print"),
    ({"teacher": Pipeline([("a", GaussianNB())], verbose=True)}, ValueError, "must not print"),
    ({"teacher": Pipeline([("a", GaussianNB())], memory="here")}, ValueError, "must not keep"),
    ({"teacher": DummyClassifier(strategy="constant", constant=7)}, ValueError, "teacher could not be trained"),
    ({"n_jobs": 0}, ValueError, "n_jobs"),
    ({"n_jobs": 1.5}, ValueError, "n_jobs"),
    ({"progress": "bar"}, TypeError, "progress"),
    ({"ledger": 5}, TypeError, "ledger"),
    ({"noise": 5}, TypeError, "noise"),
    ({"noise": Simulation(1)}, ValueError, "NOT PRIVATE"),
]


@pytest.mark.parametrize(("changes", "error", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters_are_refused_before_anything_is_charged_or_read(
    changes: dict[str, Any], error: type[Exception], message: str, unspent: MemoryLedger
) -> None:
    with pytest.raises(error, match=message):
        release(**{"ledger": unspent, **changes}).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(
    ("X", "y", "groups", "error", "message"),
    [
        (np.ones((3, 3)), None, None, ValueError, "requires y to be passed, but the target y is None"),
        (np.ones((3, 3)), np.ones(2), None, ValueError, "inconsistent"),
        (np.ones((3, 3)), np.ones((3, 2)), None, ValueError, "1d array"),
        (np.ones((3, 3)), pd.DataFrame({"a": [1], "b": [2]}), None, ValueError, "1d array"),
        (np.ones((3, 3)), np.ones(3), [1, 2], ValueError, "inconsistent"),
        (np.ones((3, 3)), np.ones(3), np.ones((3, 1)), ValueError, "one group for every row"),
        (np.ones((3, 3)), np.ones(3), "abc", ValueError, "one group for every row"),
        (np.ones((3, 2)), np.ones(3), None, ValueError, "X has 2 features, but PATEClassifier is expecting 3"),
        (np.ones(3), np.ones(3), None, ValueError, "Reshape"),
        (csr_array(np.ones((3, 3))), np.ones(3), None, TypeError, "of one kind"),
        (pd.DataFrame(np.ones((3, 3))), np.ones(3), None, TypeError, "of one kind"),
    ],
)
def test_bad_data(X: Any, y: Any, groups: Any, error: type[Exception], message: str, *, unspent: MemoryLedger) -> None:
    account = unspent if groups is None else MemoryLedger(1, 1e-6, unit="person", composition="tight")
    with pytest.raises(error, match=message):
        release(ledger=account).fit(X, y, groups)
    assert account.spent == Cost()


def test_names_must_match() -> None:
    X, y = made(60)
    named = rehearsal(queries=pd.DataFrame(PUBLIC, columns=NAMES))
    with pytest.raises(ValueError, match="feature names of X should match"):
        named.fit(pd.DataFrame(X, columns=["a", "c", "b"]), y)
    model = named.fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=["a", "c", "b"]))
    with pytest.raises(ValueError, match="feature names of X should match"):
        model.predict(pl.DataFrame(X, schema=["a", "c", "b"]))
    with pytest.warns(UserWarning, match="does not have valid feature names") as said:
        model.predict(X)
    assert len(said) == 1
    assert np.array_equal(
        rehearsal().fit(X, y).predict(pl.DataFrame(X, schema=NAMES)), rehearsal().fit(X, y).predict(X)
    )
    with pytest.raises(NotFittedError):
        rehearsal().predict(X)


def test_a_column_of_labels_is_taken_with_a_warning() -> None:
    X, y = made(300)
    answer = rehearsal().fit(X, y).labels_
    for column in (y[:, None], pd.DataFrame({"y": y})):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert np.array_equal(rehearsal().fit(X, column).labels_, answer)


def test_the_plan_needs_no_rows() -> None:
    for plan, rows in ((rehearsal().plan(), 60), (rehearsal().plan(7), 7)):
        lead, gaps = plan.forecast.notes
        assert replace(plan.forecast, notes=(lead,)) == noted("lead-wins", rows=rows, teachers=10, classes=2)
        assert gaps.code == "missing-target"
    model = rehearsal(queries=None)
    with pytest.raises(ValueError, match="n_queries"):
        model.plan()
    for count in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_queries must be"):
            model.plan(count)
    model.fit(*made(), queries=PUBLIC[:9])
    assert model.plan() == model.plan_ == model.plan(9)


def test_a_short_ledger_is_noticed_before_the_teachers_are_trained(plain: Any) -> None:
    X, y = made(60)
    model = release(ledger=MemoryLedger(1.5, 1e-3, composition="tight")).fit(X, y)
    with pytest.raises(BudgetExceededError, match="No teacher was trained"):
        model.fit(X, y)
    assert plain.calls == 1
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(RuntimeError, match="stayed behind"):
        loaded.fit(X, y)
    assert plain.calls == 1
    assert loaded.set_params(ledger=MemoryLedger(10, 1e-3, composition="tight")).fit(X, y).receipt_.sequence == 1


def test_clones_and_searches_share_the_ledger_and_every_fit_is_charged() -> None:
    X, y = made(60)
    ledger = MemoryLedger(100, 1e-3, composition="tight")
    model = release(epsilon=0.5, ledger=ledger)
    assert clone(model).ledger is ledger
    cross_val_score(model, X, y, cv=3)
    assert ledger.spent == Cost(epsilon=1.5, delta=3e-6)
    GridSearchCV(model, {"student__max_depth": [1, 2]}, cv=3).fit(X, y)
    assert ledger.spent == Cost(epsilon=5, delta=10e-6)
    make_pipeline(FunctionTransformer(), model).fit(X, y)
    assert ledger.spent == Cost(epsilon=5.5, delta=11e-6)
    assert copy.deepcopy(model).get_params()["epsilon"] == 0.5


def test_queries_and_groups_through_a_pipeline() -> None:
    """Queries in ``fit`` go through the steps before, if the pipeline is told so."""
    X, y = made(300)
    model = rehearsal(queries=None, teacher=DecisionTreeClassifier(random_state=0))
    answer = clone(model).fit(X, y, groups=np.arange(300), queries=PUBLIC).labels_
    with config_context(enable_metadata_routing=True):
        last = clone(model).set_fit_request(queries=True, groups=True)
        pipe = Pipeline(
            [("half", FunctionTransformer(lambda rows: rows / 2)), ("pate", last)], transform_input=["queries"]
        )
        pipe.fit(X, y, queries=PUBLIC, groups=np.arange(300))
    assert np.array_equal(pipe[-1].labels_, answer)
    assert pipe.score(X, y) > 0.8


def test_a_seed_is_a_rehearsal_and_says_so() -> None:
    X, y = made(60)
    model = release(random_state=3)
    with pytest.warns(NotPrivateWarning, match="NOT PRIVATE") as said:
        first = model.fit(X, y)
    assert said[0].filename == __file__
    assert (first.guarantee_, first.receipt_) == (None, None)
    assert "NOT PRIVATE" in repr(first.outcome_)
    with pytest.warns(NotPrivateWarning), pytest.raises(ValueError, match="cannot be charged"):
        model.set_params(ledger=MemoryLedger(1, 1e-6, composition="tight")).fit(X, y)
    again = rehearsal(student=DecisionTreeClassifier(splitter="random"))
    assert np.array_equal(again.fit(X, y).predict(X), again.fit(X, y).predict(X))
    with pytest.raises(ValueError, match="at least one row"):
        again.fit(X[:0], y[:0])


def test_the_bar_counts_teachers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    rehearsal(progress=True).fit(*made(60))
    assert "training teachers" in capsys.readouterr().err
    rehearsal().fit(*made(60))
    assert capsys.readouterr().err == ""


class Checked(PATEClassifier):
    """With classes and queries made of the rows, as scikit-learn's checks bring no others. Never do this."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, queries: Any = None) -> PATEClassifier:
        self._seen = y
        return super().fit(X, y, groups, X if issparse(X) or hasattr(X, "iloc") else matrix(X))

    def _declared(self) -> Any:
        seen = np.asarray(self._seen)
        whole = seen.dtype.kind != "f" or (np.isfinite(seen).all() and (seen == np.round(seen)).all())
        return np.unique(seen) if whole else np.arange(2)


VALUES = {
    "check_supervised_y_no_nan": "an error when a label is no number would tell such a row from others",
    "check_classifiers_regression_target": "labels that are not among the classes belong to nobody, whatever they are",
}


@pytest.mark.slow
@repeated
@pytest.mark.parametrize("sources", [{}, {"noise": Simulation(0)}][: often(1, 2)])
def test_scikit_learns_own_battery(sources: dict[str, Any]) -> None:
    """What it wants that would betray somebody must fail, and nothing else may."""
    assert failures(Checked(n_teachers=3, **sources), VALUES) == set(VALUES)


def test_tags() -> None:
    tags = PATEClassifier().__sklearn_tags__()
    assert tags.non_deterministic
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert not PATEClassifier(teacher=GaussianNB()).__sklearn_tags__().input_tags.sparse
