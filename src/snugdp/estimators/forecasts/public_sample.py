"""What noise does to predictions, seen on public rows: the fit is rehearsed on a sample, with simulated noise.

Forecasts from bounds alone have to guess how rows fill them. A sample that is public, such as rows that were published
before or made up by somebody who knows the field, says it. Nothing private is read, so nothing is paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from snugdp.estimators.inputs import eager
from snugdp.noise import Simulation
from snugdp.propose.forecast import ErrorOf

Floats: TypeAlias = NDArray[np.float64]

_WIDE = 10  # columns: with as many coefficients, few fits tell how large their noise is
_FITS, _FITS_OF_WIDE = 6, 4  # that are compared
MAX_CELLS = 100_000  # of a rehearsal: with more rows noise is expected to fall as it does in the plan
_LEAST_ROWS = 2_000  # of a wide table
_MIN_ROWS = 20
_FORMS = "sample must be a table with the target of the schema, or a pair (X, y) as for fit, all of it public"


@dataclass(frozen=True, eq=False)
class PublicSample:
    """Rows that are public, with their targets: the arguments of a fit."""

    X: Any
    y: Any

    @classmethod
    def of(cls, given: Any) -> PublicSample:
        """From a table that holds its target, or from a pair (X, y).

        >>> PublicSample.of((np.eye(30), np.arange(30.0))).rows
        30
        """
        sample = cls(*given) if isinstance(given, tuple) and len(given) == 2 else cls(given, None)
        if sample.rows < _MIN_ROWS:
            raise ValueError(f"the public sample must have {_MIN_ROWS} rows or more")
        if not (sample.y is None or isinstance(sample.y, str)) and len(sample.y) != sample.rows:
            raise ValueError(f"the public sample has {sample.rows} rows and {len(sample.y)} targets: it needs one each")
        return sample

    @property
    def rows(self) -> int:
        """Their number."""
        return _rows_of(self.X)

    @property
    def most(self) -> int:
        """So many rows are rehearsed at most, for time."""
        return max(MAX_CELLS // _width_of(self.X), _LEAST_ROWS)

    def fits(self, model: Any) -> int:
        """So many rehearsals are compared: what noise adds is then known to about 20 %.

        Which bounds are found differs from fit to fit, so there it takes more of them, however many columns there are.
        """
        return _FITS_OF_WIDE if _width_of(self.X) > _WIDE and not model._is_open else _FITS

    def errors(self, model: Any, rows: int, error_of: ErrorOf) -> tuple[float, float]:
        """What noise adds to predictions, in a fit of so many rows, which are these repeated: its root mean square, and
        the deviation that half of the predictions stay below.

        Noise need not fall in proportion to the rows: a ridge weighs less the more there are, and so do bounds that
        are found. So a rehearsal has as many rows as the fit. Without bounds of the target its unit is the standard
        deviation of the sample's target, as for all such forecasts. A fit that is refused has no error: if only one is
        released, the forecast is infinite.
        """
        if model._persons() is not None:
            raise ValueError("a sample is read row by row, without persons: leave out sample=, or person=")
        chosen = np.arange(rows) % self.rows
        X, y = _taken(self.X, chosen), self.y if isinstance(self.y, str) else _taken(self.y, chosen)
        answers = [
            answer
            for seed in range(self.fits(model))
            if (answer := self._answer(model, X, y, seed, error_of)) is not None
        ]
        alike = _alike(answers)
        unit = self._target_deviation(model) if error_of is ErrorOf.STANDARDISED else 1.0
        if len(alike) < 2 or unit <= 0:
            return math.inf, math.inf
        squares = np.var(alike, axis=0, ddof=1)
        return math.sqrt(float(np.mean(squares))) / unit, math.sqrt(float(np.median(squares))) / unit

    def _answer(self, model: Any, X: Any, y: Any, seed: int, error_of: ErrorOf) -> Floats | None:
        """What a rehearsal with this seed predicts for the sample."""
        rehearsed = clone(model).set_params(ledger=None, noise=Simulation(seed), random_state=None).fit(X, y)
        if not rehearsed.released_:
            return None
        if error_of is not ErrorOf.LINEAR:
            return np.asarray(rehearsed.predict(self.X), dtype=np.float64)
        found: Floats = rehearsed._linear(self.X)
        return found if found.ndim == 1 else found - found.mean(axis=1, keepdims=True)  # what all classes share is void

    def _target_deviation(self, model: Any) -> float:
        target = self.y
        if target is None or isinstance(target, str):
            frame, name = eager(self.X), target or getattr(model.schema, "target", None)
            if frame is None or name not in frame.columns:
                raise ValueError(_FORMS)
            target = frame[name].to_numpy()
        return float(np.nanstd(np.asarray(target, dtype=np.float64)))


def _alike(answers: Sequence[Floats]) -> list[Floats]:
    """Those of the commonest shape: fits need not find as many classes, and then they cannot be compared.

    >>> len(_alike([np.zeros(3), np.zeros((3, 2)), np.zeros((3, 2))]))
    2
    """
    shapes = [answer.shape for answer in answers]
    return [answer for answer in answers if answer.shape == max(shapes, key=shapes.count)]


def _rows_of(X: Any) -> int:
    frame = eager(X)
    if frame is not None:
        return len(frame)
    if isinstance(X, np.ndarray | Sequence) and not isinstance(X, str | bytes):
        return len(X)
    raise TypeError(_FORMS)


def _width_of(X: Any) -> int:
    """The number of columns."""
    frame = eager(X)
    return max(1, len(frame.columns) if frame is not None else np.asarray(X[:1]).size)


def _taken(values: Any, chosen: NDArray[np.int64]) -> Any:
    """These rows of a table, an array or a list; nothing of nothing."""
    if values is None:
        return None
    frame = eager(values)
    if frame is not None:
        return frame[chosen.tolist()].to_native()
    try:
        series = nw.from_native(values, series_only=True)
    except TypeError:
        return np.asarray(values)[chosen]
    return series[chosen.tolist()].to_native()
