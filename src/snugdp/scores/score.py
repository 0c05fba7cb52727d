"""The score of a model on private rows: accuracy, ROC curve, calibration, losses and errors, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.ledger.question import Question, column_name, question
from snugdp.mechanisms.scores.images import CELLS, AnswerScale
from snugdp.mechanisms.scores.passes import ModelScorePass
from snugdp.mechanisms.scores.release import NoisyModelScores, PlacedScores, ScoredTable
from snugdp.mechanisms.scores.result import METRICS, RATIOS, SHORT, Kind, ModelScores
from snugdp.mechanisms.scores.tasks import NumberErrors, ScoreTask, SeveralClasses, TwoClasses
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Query, ReleaseKeywords
from snugdp.queries.docstrings import takes
from snugdp.queries.statistics.base import TYPICAL_ROWS, budget_shares
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.scores.models import (
    bounds_of,
    classes_of,
    fingerprint,
    is_linear,
    is_ours,
    is_pipeline,
    is_steep,
    require_model,
    require_private,
    target_of_model,
)
from snugdp.scores.tables import Form, ModelQuestion, ScoringTable, TableReader, features_of
from snugdp.secrecy.secret import Secret
from snugdp.secrecy.silence import muted
from snugdp.tables.cells import Names
from snugdp.tables.sources import open_source

_DEFAULTS: dict[Kind, tuple[str, ...]] = {
    "two": ("roc_auc", "accuracy", *RATIOS, "confusion", "calibration"),
    "several": ("accuracy", *RATIOS, "confusion"),
    "number": ("r2", "mse"),
}
_PROBABILITIES = ("calibration", "log_loss", "brier")
_COUNTS = ("accuracy", *RATIOS, "confusion")
_LEAST_FLOOR, _MOST_CLASSES = 1e-4, 100


class ScoreKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of ``score``."""

    metric: str | Sequence[str] | None
    delta: Real
    classes: Sequence[Any] | None
    bounds: tuple[Real, Real] | None
    max_error: Real | None
    floor: Real
    rare: bool | None
    one_by_one: bool
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class Score(Query[ModelScores]):
    """How good a model is on private rows, each score with an interval. It is never refused for what the rows say.

    Scores that share their sums are one release: of two classes, all but the losses follow from two histograms of the
    score, on 11 bins whose place is found in private. Rows without a target, or with one that is none of the classes,
    are left out.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/scores/scores.proof.md``), for a model that
    is public, was released, or was fitted on other people's rows: **a model that was fitted on the same rows without
    privacy is not public**, and its scores say more about them than is charged. A linear model of this library scores
    each row by itself. Of others, a student of teachers among them, it is assumed that the score of a row depends on
    that row alone, up to a millionth of the scale: rows near the border of two cells are scored again alone. If that is
    not so, use ``one_by_one=True``. What a model prints, logs or keeps of the rows is not covered; what it raises or
    warns of is silenced.

    Parameters
    ----------
    model : estimator
        A fitted model of this library, or of scikit-learn's kind: ``predict_proba``, ``decision_function`` or
        ``predict`` is called. A pipeline gets a frame of numbers and text, all others numbers; what is no number is
        NaN. A row on which a model fails alone counts among the ``unscored``.
    metric : str or sequence of str, optional
        For two classes "roc_auc", "accuracy", "precision", "recall", "f1", "confusion", "calibration", "log_loss" and
        "brier"; for several all but the ROC curve and calibration; for numbers "r2", "mse" and "mae". By default those
        that share one release: all but the losses, or "r2" and "mse". "auc" is short for "roc_auc".
    epsilon, delta : Real
        The privacy budget. Without a delta the noise is discrete Laplace; with one, whichever is smaller.
    classes : sequence, optional
        The classes of a model that does not have them as ``classes_``; the last of two is the positive one.
    bounds : (Real, Real), optional
        For a number: public bounds on the target, to which targets and predictions are clipped. By default those of a
        model of this library.
    max_error : Real, optional
        For a number: the largest error that counts; larger ones count as this. By default the width of the bounds.
    floor : Real, default=0.01
        For "log_loss": probabilities are clipped to [floor, 1 - floor], so that no row counts more than -log(floor).
    rare : bool, optional
        For "roc_auc" alone: place the positives among the negatives, which has half of the noise where they are rare,
        and no curve. By default that is done where "roc_auc" is all that is asked for and rows come or go.
    one_by_one : bool, default=False
        Ask the model about every row in a call of its own. Slow, and right for every model.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    rows : int, optional
        A public guess of the number of rows, for the forecast.

    Examples
    --------
    >>> import numpy as np, snugdp
    >>> from sklearn.linear_model import LogisticRegression
    >>> old = LogisticRegression().fit([[0.0], [1.0]] * 50, [0, 1] * 50)  # fitted on public rows
    >>> X = np.linspace(0, 1, 4000)[:, None]
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> found = snugdp.Score(model=old, epsilon=1).release(X, y).value
    >>> found["roc_auc"].value > 0.98, found["accuracy"].lower < 1
    (True, True)
    """

    model: Any
    metric: str | Sequence[str] | None = None
    epsilon: Real
    delta: Real = 0
    classes: Sequence[Any] | None = None
    bounds: tuple[Real, Real] | None = None
    max_error: Real | None = None
    floor: Real = 0.01
    rare: bool | None = None
    one_by_one: bool = False
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    rows: int | None = None

    def __post_init__(self) -> None:
        require_model(self.model)
        whole_rows(self.rows)
        if isinstance(self.metric, str):
            object.__setattr__(self, "metric", SHORT.get(self.metric, self.metric))
        elif self.metric is not None:
            object.__setattr__(self, "metric", tuple(SHORT.get(name, name) for name in self.metric))
        if not isinstance(self.rare, bool | None) or not isinstance(self.one_by_one, bool):
            raise TypeError("rare and one_by_one must be True or False")
        self.plan()  # what is wrong is said here, before any data are seen

    @cached_property
    def _classes(self) -> tuple[Any, ...] | None:
        return classes_of(self.model, self.classes)

    @cached_property
    def _kind(self) -> Kind:
        number = 0 if self._classes is None else len(self._classes)
        if number > _MOST_CLASSES:
            raise ValueError(f"scores are for at most {_MOST_CLASSES} classes")
        return "number" if self._classes is None else "two" if number == 2 else "several"

    @property
    def _metrics(self) -> tuple[str, ...]:
        """What is asked for, checked."""
        if self.metric is None:
            wanted = _DEFAULTS[self._kind]
            wanted = ("roc_auc",) if self.rare else wanted  # the only one
            return tuple(name for name in wanted if self._can(name))
        asked = (self.metric,) if isinstance(self.metric, str) else tuple(dict.fromkeys(self.metric))
        known = METRICS[self._kind]
        if not asked or (unknown := [name for name in asked if name not in known]):
            named = f"{unknown[0]!r} is no metric of this model" if asked else "metric names no metric"
            raise ValueError(f"{named}; there are {', '.join(known)}")
        for name in asked:
            if not self._can(name):
                needs = "scores" if name == "roc_auc" else "probabilities"
                raise ValueError(f"{name} needs {needs}, and this model has no predict_proba")
        if self.rare and asked != ("roc_auc",):
            raise ValueError('rare=True is for metric="roc_auc" alone')
        return asked

    @property
    def _method(self) -> Any:
        """What the model is asked."""
        if self._kind == "number":
            return "predict"
        wanted = ("predict_proba", "decision_function") if self._kind == "two" else ("predict_proba",)
        return next((name for name in wanted if hasattr(self.model, name)), "predict")

    def _can(self, name: str) -> bool:
        if name in _PROBABILITIES:
            return bool(self._method == "predict_proba")
        return name != "roc_auc" or self._method != "predict"

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        """The parts that are released: as few as serve all metrics."""
        metrics = self._metrics
        losses = [name for name in ("log_loss", "brier", "mae") if name in metrics]
        if self._kind == "number":
            return (*[name for name in ("r2", "mse") if name in metrics][:1], *losses)
        if {"roc_auc", "calibration"} & {*metrics}:
            return ("bins", *losses)
        counted = [name for name in metrics if name in _COUNTS]
        table = [] if not counted else ["right"] if counted == ["accuracy"] else ["table"]
        return (*table, *losses)

    def _task(self, pure: bool) -> ScoreTask:
        number, floor = len(self._classes or ()), self._floor
        if self._kind == "number":
            low, high = self._bounds
            return NumberErrors(self._asked, pure, low, high, self._cap)
        if self._kind == "two" and self._method != "predict":
            return TwoClasses(self._asked, pure, floor)
        return SeveralClasses(self._asked, pure, number, self._method == "predict", floor)

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        if self._kind != "number":
            if self.bounds is not None or self.max_error is not None:
                raise ValueError("bounds and max_error are for models that predict a number")
            return 0.0, 1.0
        return bounds_of(self.model, self.bounds)

    @property
    def _cap(self) -> int:
        """The largest error that counts, in cells."""
        if self.max_error is None:
            return CELLS
        low, high = self._bounds
        error = float(rational(self.max_error, "max_error"))
        if not 0 < error <= high - low:
            raise ValueError("max_error must be above 0, and at most the width of the bounds")
        return max(1, math.ceil(error / (high - low) * CELLS))

    @property
    def _floor(self) -> float:
        floor = float(rational(self.floor, "floor"))
        if not _LEAST_FLOOR <= floor < 0.5:
            raise ValueError("floor must be at least 1e-4 and below 1/2; 0.01 is typical")
        return floor

    @property
    def _placed(self) -> bool:
        """Whether positives are placed among the negatives."""
        if self.rare is not None:
            return self.rare
        comes = self._budget.neighbours is Neighbours.ADD_REMOVE
        return comes and self._metrics == ("roc_auc",) and self._method != "predict"

    @cached_property
    def _mechanism(self) -> NoisyModelScores | PlacedScores:
        if self._placed:
            if not isinstance(task := self._task(True), TwoClasses):
                raise ValueError("rare=True is for two classes, of a model with probabilities or a decision function")
            return PlacedScores(task, Share.pure(self._budget), self._blank(True))
        made = [self.mechanism(share) for share in budget_shares(self._budget)]
        return min(made, key=lambda each: each.noise.deviations[0])

    def mechanism(self, share: Share, step: str | None = None) -> NoisyModelScores:
        """The release for a share of a budget, as one step of a plan."""
        return NoisyModelScores(self._task(share.is_pure), share, self._blank(share.is_pure), step)

    def _blank(self, pure: bool) -> ModelScores:
        """What is released but for its sums."""
        low, high = self._bounds
        known: Any = {"classes": self._classes or (), "floor": self._floor, "bounds": (low, high)}
        return ModelScores(self._kind, self._metrics, {}, {}, pure, 0, **known, cap=self._cap / CELLS * (high - low))

    @cached_property
    def _plan(self) -> Plan:
        title = f"Scores of a {type(self.model).__name__}"
        proved = theorem("rare-scores/1" if self._placed else "scores/1")
        notes = (Note("missing-target"), Note("scored-rows" if is_linear(self.model) else "scored-rows-assumed"))
        plan = Plan(title, proved, self._mechanism.steps(), {}, self._forecast, self._budget)
        return plan.with_notes(*notes)

    @property
    def _forecast(self) -> Forecast:
        """Roughly what noise adds to the first score, with classes of equal size."""
        rows, made = self.rows or TYPICAL_ROWS, self._mechanism
        if isinstance(made, PlacedScores):
            return Forecast()
        deviation, name = made.noise.deviations[0], self._metrics[0]
        several = 4 if "bins" in self._asked else 1
        losses = {"mse": made.blank.cap**2, "mae": made.blank.cap, "log_loss": -math.log(self._floor), "brier": 1.0}
        per_row = {"roc_auc": 3.3, "r2": 17 / CELLS, **{loss: most / CELLS for loss, most in losses.items()}}
        error = 1.96 * deviation * per_row.get(name, several) / rows
        return Forecast(notes=(Note("score-with-rows", {"metric": name, "rows": rows, "error": error}),))

    def release(  # rows and their targets
        self, X: Any, y: Any = None, *, ledger: LedgerLike | None = None, noise: Noise | None = None
    ) -> Outcome[ModelScores]:
        """Pay, score every row, release.

        Guarantee: the plan's cost, for neighbours in the chosen relation; assumptions are in the privacy promise.

        Parameters
        ----------
        X : array-like or table
            The rows, as the model takes them: an array, a frame, the path of files, a database table or a Spark table.
        y : array-like or str, optional
            The targets, or the name of their column in the table. By default the target of a model of this library.
        ledger, noise
            As in ``snugdp.Mean.release``. **Without a ledger this release is not counted against any budget.**

        Returns
        -------
        Outcome
            ``Released`` with the value, or ``Refused`` if the table could not be read; ``NotPrivate`` after a
            rehearsal.
        """
        if getattr(noise, "private", True):
            require_private(self.model)
        table, reader = self.opened(X, y)
        if not is_pipeline(self.model):
            try_out(reader, self._task(True).width)
        given = {one.name: getattr(self, one.name) for one in fields(Score)}
        named = None if table.arrays else reader.features
        bound = BoundScore(**given, reader=reader, named=(named, y if isinstance(y, str) else column_name(y)))
        return Query.release(bound, table.source, ledger=ledger, noise=noise)

    @classmethod
    def _answer(
        cls, data: Any, *, ledger: LedgerLike | None = None, noise: Noise | None = None, **parameters: Any
    ) -> Outcome[ModelScores]:
        return cls(**parameters).release(*data, ledger=ledger, noise=noise)

    def opened(self, X: Any, y: Any) -> tuple[ScoringTable, TableReader]:
        """The table, and how its rows come before the model: checked by names and types."""
        width = getattr(self.model, "n_features_in_", None)
        if (
            isinstance(X, list | tuple) and not X and width is not None
        ):  # no rows do not say how many features there are
            X = np.empty((0, width))
        table = ScoringTable.of(X, target_of_model(self.model) if y is None else y, self._classes)
        reader = self._reader(table)
        reader.check(table.source)
        return table, reader

    def work(self, reader: TableReader, task: ScoreTask) -> ModelScorePass:
        """The pass over its rows."""
        return ModelScorePass(task, reader, self.one_by_one or self._is_steep)

    @property
    def _is_steep(self) -> bool:
        return is_steep(self.model, self._bounds if self._kind == "number" else (0.0, 1.0))

    def _reader(self, table: ScoringTable) -> TableReader:
        labels = self._method == "predict" and self._kind != "number"
        names = None if self._classes is None else Names(self._classes, "classes")
        asked = ModelQuestion(self.model, self._method, names if labels else None, self._kind == "two")
        person = self._persons.column if self._persons is not None else None
        features = features_of(self.model, table, person)
        form: Form = "matrix" if table.arrays else "frame" if is_ours(self.model) else "numbers"
        if form == "numbers" and is_pipeline(self.model):
            form = "labels"
        return TableReader(asked, features, table.target, form, names, table.given, AnswerScale(*self._bounds))

    def _release(self, data: object, context: ReleaseContext) -> Outcome[ModelScores]:
        raise NotImplementedError  # a table comes with a reader

    def _question(self, column: str | None) -> Question:
        told = ("metric", "classes", "bounds", "max_error", "floor", "rare", "one_by_one", "person", "max_rows")
        given = {name: getattr(self, name) for name in told}
        words = f"Scores of a {type(self.model).__name__}"
        parts = {"by": Score, "budget": self._budget, "model": fingerprint(self.model), "column": column}
        parts |= self._read_names
        return question(words if column is None else f"{words} for {column}", **parts, given=given)

    @property
    def _read_names(self) -> dict[str, Any]:
        """What a question says of the columns that are read."""
        return {}


@dataclass(frozen=True, kw_only=True)
class BoundScore(Score):
    """The same question about a table that was opened. ``reader``: how its rows come before the model.

    ``named``: the features by their names, if they have some, and the name of the targets.
    """

    reader: TableReader
    named: tuple[tuple[str, ...] | None, str | None] = (None, None)

    @property
    def _read_names(self) -> dict[str, Any]:
        features, target = self.named
        return {"features": None if features is None else list(features), "target": target}

    @property
    def _read_columns(self) -> tuple[str, ...]:
        return self.reader.columns

    def _column(self, data: object) -> str | None:
        return None if self.reader.given else self.reader.target

    def _release(self, data: object, context: ReleaseContext) -> Outcome[ModelScores]:
        mechanism = self._mechanism
        work = self.work(self.reader, mechanism.task)
        source = open_source(data)
        source.check(work)
        return release(self._plan, ScoredTable(work, mechanism), Secret(source), context)


def try_out(reader: TableReader, width: int) -> None:
    """Ask the model about made-up rows, so that a model that cannot be asked is found before the charge."""
    problem: Exception | None = None
    for rows in reader.made_up():
        try:
            with muted():
                answered = reader.question(rows).size
            if answered == width:
                return
        except Exception as error:  # about rows that nobody brought
            problem = error
    raise ValueError(
        "the model cannot score a row of zeros, nor one of ones, with the columns of this table: nothing was charged. "
        "Give the columns that it was fitted on"
    ) from problem


@takes(Score)
def score(model: Any, X: Any, y: Any = None, **options: Unpack[ScoreKeywords]) -> Outcome[ModelScores]:
    """How good a model is on private rows, with intervals: ``Score(model=model, ...).release(X, y)``.

    Examples
    --------
    >>> import numpy as np, snugdp
    >>> X = np.linspace(-1, 1, 6000)[:, None]
    >>> model = snugdp.LinearRegression(epsilon=2, delta=1e-6, x_norm=1, y_bound=1).fit(X, X[:, 0] / 2)
    >>> found = snugdp.score(model, X, X[:, 0] / 2, metric="mse", epsilon=1).value
    >>> found["mse"].value < 0.1
    True
    """
    return Score._answer((X, y), model=model, **options)
