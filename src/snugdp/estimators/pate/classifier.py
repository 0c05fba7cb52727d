"""A student taught by noisy votes of teachers who saw the private rows: PATE for scikit-learn."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import Outcome, Unit
from snugdp.estimators.base import AbsentLedger, NotReleased
from snugdp.estimators.inputs import eager, numbered
from snugdp.estimators.labels import declared
from snugdp.estimators.pate.rows import Form, fresh, read, size, take
from snugdp.estimators.pate.student import coefficients_of, take_coefficients
from snugdp.estimators.pate.teachers import (
    SEEDS,
    Ballot,
    Scattered,
    check_model,
    histograms,
    rehearse,
    seeded,
    tolerance,
)
from snugdp.estimators.persons import PersonRows
from snugdp.estimators.private import PrivateEstimator
from snugdp.estimators.workflows.pipelines import warn_of_pipeline
from snugdp.ledger import BudgetExceededError
from snugdp.ledger.question import Question, column_name
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.pate import labelling
from snugdp.pate.proposals import Proposal, Size
from snugdp.pate.votes import Panel
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons, drawn_key
from snugdp.secrecy.secret import Secret
from snugdp.tables.sources import is_named, is_spark, open_source

Method = TypeVar("Method", bound=Callable[..., Any])

THEOREM = theorem("pate/1")
_QUERIES = (
    "queries are needed: public rows without labels, such as PATEClassifier(..., queries=X_public) or fit(X, y, "
    "queries=X_public). The teachers vote on them, and the student learns from nothing else. They must be public, "
    "because the student may show them, and chosen without looking at the private rows"
)
_REFUSED = (
    "the fit of this PATEClassifier was refused: its test could not show that the teachers agree enough for the "
    "proposal. The budget is spent, and why is private. Try a larger epsilon or delta, more teachers, fewer or easier "
    'queries, another sigma or gap (look at plan()), or test="none", which is never refused'
)
_NAME_LABELS = (
    'a table that is not in memory has its labels in a column: give its name, as in fit("people.parquet", "risk")'
)
_REPLACED = (
    "in a table with its labels in a column, a row goes to the teacher that its hash says, so another row in its place "
    'changes two teachers: use neighbours="add_remove", or give X and y in memory, each by itself'
)


def _if_the_student_has(method: str) -> Callable[[Method], Method]:
    return available_if(lambda self: hasattr(getattr(self, "student_", self._student()), method))  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
class PATEClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Private classification by a student: teachers learn from the rows, and the student from their noisy votes (PATE).

    Every row is assigned to one of ``n_teachers`` teachers at random, whatever other rows there are; if ``fit`` is
    given ``groups``, every group is, so that all rows of one person go to the same teacher. (Cutting a shuffled table
    into equal parts would not do: one more row moves other rows to other teachers.) The teachers vote on public
    ``queries``, the votes are released by ``snugdp.pate.label``, and the student learns from the queries and the
    released labels. Models are given copies, and never write into your rows or queries.

    Guarantee: each fit is (epsilon, delta)-DP, whether it is released or refused, for one row more or less (or
    replaced, if ``neighbours`` says so), and with ``groups`` for all rows of one group; the theorem is
    ``guarantee_.theorem``. Each teacher must be a function of its own rows and ``random_state`` alone. Not covered:
    teachers that share something that was learned from the rows (a model fitted before, a vocabulary, numpy's global
    generator with a known seed), what teachers print, log or write to disk, the time they take, worker processes
    (``n_jobs``) that crash on a row, transformers before this estimator that learn from the same rows, and the error
    that is raised when X, y and groups differ in length.

    Parameters
    ----------
    teacher, student : classifier, optional
        Any classifiers with scikit-learn's interface; decision trees by default. Preprocessing that learns belongs
        inside them, as in ``teacher=make_pipeline(StandardScaler(), LogisticRegression())``.
    n_teachers : int, default=250
        The number of teachers.
    epsilon : Real, default=1.0
        Privacy budget of each fit.
    delta : Real, default=1e-6
        Failure probability of each fit.
    classes : sequence
        All possible labels; public. Rows with other labels are ignored, and so are rows with missing numbers if the
        teacher does not accept them.
    queries : array or table, optional
        Public rows without labels, given here (as searches need it) or to ``fit``. They decide how every cell of X is
        read, whatever types X declares: in a column of numbers (or booleans) 1, 1.0 and "1" are the float 1, and what
        is not a number is missing; text, categories (those of the queries) and dates are read likewise.
    sigma, test, gap, proxy, threshold, threshold_sigma
        As in ``snugdp.pate.plan``.
    n_jobs : int, optional
        How many teachers are trained at a time.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger that every fit is charged to, or its path or URL; details in ``LinearRegression``. **Without a
        ledger, fits are not counted against any budget.**
    noise, random_state
        As in ``LinearRegression``.
    progress : bool, optional
        Whether to show a progress bar while teachers are trained.
    neighbours : {"add_remove", "replace"}
        Whether neighbouring tables differ by one row more or less, or by one row replaced; the latter only where X and
        y are in memory, each by itself.
    person : str, optional
        The column of X that says whose rows belong together, instead of ``groups``; it is no feature.
    max_rows : int, default=1
        Must be 1: all rows of a person go to one teacher, and all of them are used.

    Attributes
    ----------
    student_ : classifier
        The trained student.
    labels_ : ndarray
        The released labels, one for each query.
    answered_ : ndarray of bool
        Which queries have an answer; without a ``threshold``, all.
    classes_ : ndarray
        The classes, in ascending order.
    released_, plan_, outcome_, cost_, receipt_, guarantee_, n_features_in_, feature_names_in_
        As in ``LinearRegression``.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = [a > 0.45 for a, b in X]
    >>> public = [[a, b / 5] for a in (0.1, 0.2, 0.8, 0.9) for b in range(5)]
    >>> model = PATEClassifier(GaussianNB(), GaussianNB(), 200, epsilon=2, classes=[False, True], queries=public)
    >>> model.fit(X, y).predict([[0.1, 0.5], [0.9, 0.5]]).tolist()
    [False, True]
    """

    teacher: Any = None
    student: Any = None
    n_teachers: int = 250
    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    classes: Any = None
    queries: Any = None
    sigma: Real | None = None
    test: str = "distance"
    gap: Any = None
    proxy: Any = None
    threshold: Real | None = None
    threshold_sigma: Real | None = None
    n_jobs: int | None = None

    def plan(self, n_queries: int | None = None) -> Plan:
        """What a fit will do, what it costs and what to expect. No private row is read.

        ``n_queries``: how many public queries there will be; those of the constructor are counted.
        """
        self._require_same()
        count = whole_rows(n_queries, "n_queries")
        if count is None:
            count = getattr(self, "_asked", None) if self.queries is None else size(self._public(None)[1])
        if count is None:
            raise ValueError("give n_queries=..., the number of public queries, or queries")
        return self._proposal(self._promised(), count, len(self._declared()), self._persons()).plan

    def _price(self, width: int) -> Plan:
        return self.plan()

    def fit(self, X: Any, y: Any = None, groups: Any = None, queries: Any = None) -> PATEClassifier:
        """Train the teachers, pay, test, release or refuse, train the student.

        X: rows of an array, a sparse matrix, or a pandas, polars or pyarrow table; y: their labels. Or X: a table of
        any size that has its labels in the column that y names: a frame, Parquet, CSV or Arrow files, a query of polars
        or DuckDB, or a Spark table, where teachers are trained on the cluster. The columns of the queries, which then
        need names, are the features. ``groups``: whose row it is, instead of a column that ``person`` names; a row
        without a group is a person of its own. ``queries``: public rows with the columns of X, instead of those of the
        constructor. What is public is checked before a private row is read; whatever fails before the votes are
        released costs nothing.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        warn_of_pipeline()
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None: give the labels of X")
        by_name = isinstance(y, str)
        persons = self._persons(groups)
        context = self._context(persons).for_persons(None)  # all rows of a person are used
        self._check_place(X, y, groups)
        if persons is not None and groups is None and not by_name:
            given = PersonRows.of(X, persons, None)
            X, groups = given.X, given.identifiers.to_native()
        classes, (form, public) = self._declared(), self._public(queries)
        proposal = self._proposal(self._promised(), size(public), len(classes), persons)
        context = context.with_question(lambda: self._asked_of(form, public, y, groups))
        context.known(proposal.plan)  # a key of another question is refused before anything is drawn
        self._affordable(proposal.plan, context)
        takes = self._try_models(public, classes)
        # 1. A seed for every teacher. 2. Votes: each teacher sees its own part and nothing else.
        ballot = Ballot(self._teacher(), context.noise.scatter(self._teachers(), SEEDS), public, classes)
        if by_name:
            votes = self._votes_of_table(X, (form, y, persons), ballot, takes, context.noise)
        else:
            votes = self._votes(read(X, y, groups, form, classes), ballot, takes, context.noise)
        self._forget()
        # 3. Labels, or a refusal: paid for inside.
        panel = Panel(self._teachers(), size(public), tuple(classes.tolist()))
        outcome = labelling.run(proposal, panel, Secret(votes), context)
        del votes
        # 4. The student sees what was released.
        self._name_features(public)
        self._keep(outcome, proposal.plan, classes)
        self._form, self._asked = form, size(public)
        return self._teach(public)

    def _votes(self, given: tuple[Any, Any, Any], ballot: Ballot, takes: Any, noise: Noise) -> Any:
        """Votes by rows in memory: a teacher is drawn for every person."""
        rows, labels, whose = given
        if not noise.private and not size(rows):
            raise ValueError("Found array with 0 sample(s): a rehearsal needs at least one row")
        teachers = len(ballot.seeds)
        number = size(rows) if whose is None else int(whose.max(initial=-1)) + 1
        private = Scattered.of(rows, labels, whose, noise.scatter(number, teachers), takes)
        return histograms(private.parts(teachers), ballot, n_jobs=self.n_jobs, progress=self.progress)

    def _votes_of_table(self, X: Any, read_as: tuple[Form, str, Any], ballot: Ballot, takes: Any, noise: Noise) -> Any:
        """Votes by the rows of a table: a key is drawn, and the hash of a row, or of its person, has its teacher."""
        from snugdp.estimators.pate.records import RowRecords
        from snugdp.estimators.pate.tables import check_table, table_votes

        (form, target, persons), source = read_as, open_source(X)
        person = None if persons is None else persons.column
        how = RowRecords(
            form, target, tuple(ballot.classes.tolist()), takes, len(ballot.seeds), drawn_key(noise), person
        )
        check_table(source, how)
        return table_votes(source, how, ballot, n_jobs=self.n_jobs, progress=self.progress)

    def _check_place(self, X: Any, y: Any, groups: Any) -> None:
        """Where labels and identifiers are: in a table, or each by itself."""
        if not isinstance(y, str):
            if is_named(X):
                raise TypeError(_NAME_LABELS)
            return
        if groups is not None:
            raise TypeError('in a table the identifiers are a column, which person="..." names: leave out groups')
        if Neighbours.of(self.neighbours) is Neighbours.REPLACE:
            raise ValueError(_REPLACED)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row, by the student."""
        labels: NDArray[Any] = self._ask("predict", X)
        return labels

    @_if_the_student_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The student's probabilities, a column for each of ``classes_``; 0 for classes that it was never taught."""
        known = self._ask("predict_proba", X)
        found = {label: place for place, label in enumerate(self.student_.classes_.tolist())}
        chances = np.zeros((len(known), len(self.classes_)))
        for place, label in enumerate(self.classes_.tolist()):
            if label in found:
                chances[:, place] = known[:, found[label]]
        return chances

    def _ask(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        if not self.released_:
            raise NotReleased(_REFUSED)
        if not hasattr(self, "student_"):
            raise NotFittedError("the student could not be trained on the released labels, which are in labels_")
        if is_spark(X):
            raise TypeError("the student answers rows in memory: give it table.toPandas(), or a part of the table")
        rows = self._checked(self._features(X))
        with warnings.catch_warnings():  # said already
            warnings.filterwarnings("ignore", "X (does not have|has) .*feature names", UserWarning)
            return getattr(self.student_, method)(rows)

    def _teacher(self) -> Any:
        return DecisionTreeClassifier() if self.teacher is None else self.teacher

    def _student(self) -> Any:
        return DecisionTreeClassifier() if self.student is None else self.student

    def _teachers(self) -> int:
        """Their number, after a look at the parameters that only this class knows."""
        self._check_progress()
        jobs = self.n_jobs
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int | np.integer) or jobs == 0):
            raise ValueError("n_jobs must be None or a whole number other than 0: how many teachers to train at a time")
        check_model(self._teacher(), "teacher")
        check_model(self._student(), "student")
        teachers = whole_rows(self.n_teachers, "n_teachers")
        if teachers is None:
            raise ValueError("n_teachers must be a whole number of at least 1, chosen without the data")
        return teachers

    def _declared(self) -> NDArray[Any]:
        return declared(self.classes, "Teachers vote for classes that all of them know: they are not found privately")

    def _public(self, queries: Any) -> tuple[Form, Any]:
        given = self.queries if queries is None else queries
        if given is None:
            raise ValueError(_QUERIES)
        form = Form.of(given)
        rows = form.read(given, "queries")
        if not size(rows):
            raise ValueError("there are no queries: give at least one public row")
        return form, rows

    def _persons(self, groups: Any = None) -> Persons | None:
        if self.max_rows != 1:
            raise ValueError("teachers learn from all rows of a person, whatever their number: leave out max_rows")
        return super()._persons(groups)

    def _proposal(self, budget: Budget, queries: int, classes: int, persons: Persons | None) -> Proposal:
        """That of ``snugdp.pate.label``; it is made once in a fit."""
        numbers = labelling.Numbers(self.sigma, self.gap, self.proxy, self.threshold, self.threshold_sigma)
        test: Any = self.test
        try:
            proposal = labelling.propose(budget, Size(self._teachers(), queries, classes), test, numbers)
        except ValueError as problem:
            if test in ("distance", "smooth") and self.sigma is None and "test=" not in str(problem):
                raise ValueError(f'{problem}. Give another budget or sigma, or use test="none"') from problem
            raise
        # A person changes the votes of one teacher, so hiding a teacher hides a person: Theorem 1.
        unit = Unit.ROW if persons is None else Unit.PERSON
        plan = replace(proposal.plan, theorem=THEOREM, unit=unit).with_notes(Note("missing-target"))
        return replace(proposal, plan=plan)

    def _affordable(self, plan: Plan, context: ReleaseContext) -> None:
        """Teachers take long: a ledger that is known to refuse is asked before they are trained."""
        if isinstance(self.ledger, AbsentLedger):
            self.ledger.charge(plan.cost, plan.title)
        if not context.affords(plan):
            raise BudgetExceededError(
                f"the budget does not cover this fit: it needs {plan.cost!r}, and the ledger is {self.ledger!r}. "
                "No teacher was trained. Ask for less epsilon or delta, or open a larger budget"
            )

    def _try_models(self, public: Any, classes: NDArray[Any]) -> Any:
        rehearse(self._teacher(), "teacher", public, classes)
        rehearse(self._student(), "student", public, classes)
        return tolerance(self._teacher(), public, classes)

    def _asked_of(self, form: Form, public: Any, y: Any, groups: Any) -> Question:
        """The question: what votes on what, by whose rows."""
        names = form.names or numbered(form.width)
        models = {"teacher": self._teacher(), "student": self._student(), "classes": self._declared()}
        whose = None if groups is None else ["groups", column_name(groups)]
        kinds = [[column.kind, column.choices] for column in form.columns]
        named = {"labels": y} if isinstance(y, str) else {}
        return self._question(names, y, queries=[public, kinds], groups=whose, **models, **named)

    def _name_features(self, public: Any) -> None:
        frame = eager(public)
        known = frame is None or hasattr(public, "set_axis")
        self._name(public if known else None, [] if frame is None else frame.columns)

    def _checked(self, X: Any) -> Any:
        """Rows to predict, with the features of the fit, read as the queries were, in memory of their own."""
        frame, framed = eager(X), self._form.kind == "frame"
        if frame is None and not framed:
            rows = self._form.read(X)
            validate_data(self, rows, reset=False, skip_check_array=True)
            return rows
        if frame is None or hasattr(X, "set_axis"):  # what scikit-learn knows to name
            validate_data(self, X, reset=False, skip_check_array=True)
        if frame is None:
            return self._form.dress(X)
        return self._form.read(X if framed else frame.to_numpy())

    def _keep(self, outcome: Outcome[Any], plan: Plan, classes: NDArray[Any]) -> None:
        self.classes_ = classes
        self._record(outcome, plan)
        if outcome.value is not None:
            self.labels_ = np.asarray(outcome.value.labels).astype(classes.dtype)
            self.answered_ = np.asarray(outcome.value.answered, dtype=bool)

    def _restore(self, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file; its student is among what comes beside."""
        self._keep(outcome, plan, self._declared())

    def _extras(self) -> dict[str, Any]:
        return {"student": coefficients_of(self)}

    def _take_extras(self, given: Mapping[str, Any]) -> None:
        if given.keys() != {"student"}:
            raise ValueError("a PATEClassifier has a student")
        take_coefficients(self, given["student"])

    def _lot(self) -> int:
        """The student's seed. It comes from what was released, so that a retry has the same student."""
        shown = repr((self.labels_.tolist(), self.answered_.tolist()))
        return int.from_bytes(hashlib.sha256(shown.encode("utf-8", "backslashreplace")).digest()) % SEEDS

    def _teach(self, public: Any) -> PATEClassifier:
        """Train the student. All it sees is public by now, and so is what goes wrong."""
        if not self.released_:
            return self
        rows, labels = take(public, self.answered_), self.labels_[self.answered_]
        if not len(labels):
            warnings.warn("no query was answered: the student always says the first class", UserWarning, stacklevel=3)
            rows, labels = take(public, np.arange(1)), self.classes_[:1]
        try:
            self.student_ = seeded(clone(self._student()), self._lot()).fit(fresh(rows), labels)
        except Exception as problem:
            if len(set(labels.tolist())) > 1:
                problem.add_note(
                    "The labels are released and paid for: they are in labels_, and answered_ tells which queries have "
                    "one. Train another classifier on them; nothing has to be paid again"
                )
                raise
            self.student_ = DummyClassifier(strategy="most_frequent").fit(rows, labels)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        models = [get_tags(self._teacher()), get_tags(self._student())]
        tags.classifier_tags.poor_score = True  # few rows and noise in scikit-learn's checks
        tags.input_tags.sparse = all(model.input_tags.sparse for model in models)
        return tags
