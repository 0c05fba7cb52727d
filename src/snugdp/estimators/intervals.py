"""From the coefficients that are shown to the equation that was released: which functions of it they are.

Coefficients are affine functions of the fitted vector: levels are compared with their reference level, units are the
user's. Those that are compared with something span what is identified; what they do not span, such as a constant added
to all levels, is left out of the fit and of its intervals. Post-processing, and public.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.estimators.base import refused
from snugdp.estimators.coefficients import shown
from snugdp.inference.equation import ContrastEstimate, NoisyEquation
from snugdp.inference.summary import CoefficientSummary, JointTest
from snugdp.tables.schema.contrasts import NO_LEVEL
from snugdp.tables.schema.schema import Layout

Floats: TypeAlias = NDArray[np.float64]
Contrast: TypeAlias = str | Mapping[str, float]
"""A coefficient by its name, or a linear function of several by their weights."""
INTERCEPT = "intercept"
_SINGULAR = 1e-9  # of the largest singular value


@dataclass(frozen=True)
class DisplayMap:
    """Coefficients in the user's units, the intercept last, as ``matrix @ theta + constants``."""

    names: tuple[str, ...]
    matrix: Floats
    constants: Floats

    @property
    def is_identified(self) -> NDArray[np.bool_]:
        """Which of them are: not those of rows in none of the levels, nor what no row has."""
        named = np.array([not name.endswith(f"={NO_LEVEL}") for name in self.names])
        return named & self.matrix.any(axis=1)


def display_map(layout: Layout) -> DisplayMap:
    """That of a layout, from the functions of all unit vectors; kept for the next question about it."""
    known: Any = layout  # every layout can be hashed
    return _display_map(known)


@lru_cache(maxsize=32)
def _display_map(layout: Any) -> DisplayMap:
    width = len(layout.features)
    names = shown(layout, np.zeros(width)).names
    constants = _all_of(layout, np.zeros(width))
    matrix = np.array([_all_of(layout, unit) - constants for unit in np.eye(width)]).T
    for shared in (matrix, constants):
        shared.setflags(write=False)
    return DisplayMap((*names, INTERCEPT), matrix, constants)


def _all_of(layout: Layout, theta: Floats) -> Floats:
    linear = shown(layout, theta)
    return np.array([*linear.values, linear.intercept])


def identified_basis(shown_as: DisplayMap) -> tuple[tuple[float, ...], ...]:
    """Orthonormal columns that span the functions that are identified."""
    rows = shown_as.matrix[shown_as.is_identified]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    basis = vectors[values > _SINGULAR * values.max(initial=0.0)].T
    return tuple(tuple(line) for line in basis.tolist())


@dataclass(frozen=True)
class FittedEquation:
    """The equation of a fit, for coefficients in the user's units."""

    shown_as: DisplayMap
    directions: Floats
    equation: NoisyEquation

    @classmethod
    def of(cls, shown_as: DisplayMap, fit: Any) -> FittedEquation:
        """Of a fit that released one."""
        return cls(shown_as, fit.directions, fit.equation)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients that are identified, or would be with more rows; the intercept comes last."""
        return tuple(np.array(self.shown_as.names)[self._told].tolist())

    @property
    def _told(self) -> NDArray[np.bool_]:
        found = np.array([not name.endswith(f"={NO_LEVEL}") for name in self.shown_as.names])
        found[-1] = self.shown_as.matrix[-1].any()
        return found

    @property
    def dispersion(self) -> tuple[float, float] | None:
        """That of the equation."""
        return self.equation.dispersion

    def estimates(self, alpha: float) -> tuple[ContrastEstimate, ...]:
        """Of all of them."""
        return tuple(self.contrast({name: 1.0}, alpha=alpha) for name in self.names)

    def contrast(self, weights: Mapping[str, float], *, null: float = 0.0, alpha: float = 0.05) -> ContrastEstimate:
        """A linear function of coefficients."""
        if not 0 < alpha < 1 or not math.isfinite(null):
            raise ValueError("alpha must be greater than 0 and less than 1, such as 0.05, and null finite")
        row, constant = self._function(weights)
        found = self.equation.contrast(row, alpha, null - constant)
        moved = (found.estimate + constant, found.standard_error, found.lower + constant, found.upper + constant)
        return ContrastEstimate(*moved, found.p_value, found.degrees)

    def joint_test(self, contrasts: Sequence[Contrast], null: Sequence[float] | None = None) -> JointTest:
        """That all of these coefficients, or linear functions of them, are 0, or the values of ``null``."""
        if isinstance(contrasts, str | Mapping) or not contrasts:
            raise ValueError(f"give a list of names to test, of {', '.join(self.names)}, or of their weights")
        values = np.zeros(len(contrasts)) if null is None else np.asarray(null, dtype=np.float64)
        if values.shape != (len(contrasts),) or not np.isfinite(values).all():
            raise ValueError("give null as finite numbers, one for each of the names to test")
        weights = ({each: 1.0} if isinstance(each, str) else each for each in contrasts)
        rows, constants = zip(*map(self._function, weights), strict=True)
        return JointTest(*self.equation.joint_test(np.array(rows), values - np.array(constants)))

    def _function(self, weights: Mapping[str, float]) -> tuple[Floats, float]:
        if unknown := [str(name) for name in weights if name not in self.names]:
            raise ValueError(f"there is no coefficient {', '.join(unknown)}; there are {', '.join(self.names)}")
        given = np.array([float(weights.get(name, 0.0)) for name in self.shown_as.names])
        if not given.any() or not np.isfinite(given).all():
            raise ValueError(f"give finite weights, not all of them 0, of {', '.join(self.names)}")
        return self.directions.T @ (given @ self.shown_as.matrix), float(given @ self.shown_as.constants)


class WithIntervals:
    """What linear models with ``inference=True`` know of their coefficients. All of it is post-processing."""

    inference: bool

    @property
    def has_intervals(self) -> bool:
        """Whether a fit releases what standard errors are computed from."""
        return bool(self.inference)

    @property
    @abstractmethod
    def _estimand(self) -> str:
        """What is estimated, by the name that a summary has for it."""

    def summary(self, alpha: float = 0.05) -> CoefficientSummary:
        """Estimates, standard errors, intervals and tests of all coefficients. It costs nothing; needs ``inference``.

        Parameters
        ----------
        alpha : float, default=0.05
            One minus the confidence of the intervals.

        Returns
        -------
        CoefficientSummary
            A table: print it, or take its ``frame``.
        """
        return CoefficientSummary.of(self._intervals(), alpha, self._estimand)

    def conf_int(self, alpha: float = 0.05) -> NDArray[np.float64]:
        """Confidence intervals: a row (lower, upper) for each name of ``summary().names``, the intercept last."""
        return np.array([(each.lower, each.upper) for each in self.summary(alpha).estimates])

    def contrast(self, weights: Mapping[str, float], *, null: float = 0.0, alpha: float = 0.05) -> ContrastEstimate:
        """A linear function of coefficients, such as {"city=Oslo": 1, "city=Rome": -1}: estimate, interval, test.

        Parameters
        ----------
        weights : mapping
            The weight of each coefficient by its name; "intercept" is one of them.
        null : float, default=0.0
            The value that is tested.
        alpha : float, default=0.05
            One minus the confidence of the interval.
        """
        return self._intervals().contrast(weights, null=null, alpha=alpha)

    def joint_test(self, contrasts: Sequence[Contrast], null: Sequence[float] | None = None) -> JointTest:
        """Wald's test that all of these coefficients, or linear functions of them, are 0.

        Where one of them has no bounded interval nothing can be said of all together: the p-value is 1.

        Parameters
        ----------
        contrasts : sequence of str or mapping
            Names of ``summary().names``, or weights as ``contrast`` takes them.
        null : sequence of float, optional
            The values that are tested, one for each, instead of 0.
        """
        return self._intervals().joint_test(contrasts, null)

    def _intervals(self) -> FittedEquation:
        model: Any = self
        check_is_fitted(model)
        if not model.released_:
            refused(type(self).__name__, model._without_test, looked=model._looks)
        if not self.has_intervals:
            raise ValueError(
                "standard errors are released with the fit: fit again with inference=True, which costs the same and "
                "leaves a little less of the budget for the coefficients"
            )
        return FittedEquation.of(display_map(model._shown(model._answer)), model._fit)

    @property
    def standard_errors_(self) -> NDArray[np.float64]:
        """Of ``summary().estimates`` in the order of ``coef_names_``: of sampling and privacy noise together."""
        if not (self.has_intervals and hasattr(self, "_fit")):
            raise AttributeError("standard errors are released by a fit with inference=True")
        return np.array([each.standard_error for each in self.summary().estimates[:-1]])

    def _wants_intervals(self) -> bool:
        """Whether intervals are asked for; what does not go with them is refused."""
        model: Any = self
        if not isinstance(self.inference, bool | np.bool_):
            raise TypeError("inference must be True or False")
        asked = "inference=True" if self.inference else 'target="mean"'
        if self.has_intervals and model.method != "auto":
            raise ValueError(f'{asked} has a method of its own: leave out method, or say "auto"')
        if self.has_intervals and getattr(model, "max_rows", 1) != 1:
            raise ValueError(
                f"{asked} uses one row of each person, as rows of one are not independent: leave out max_rows"
            )
        return self.has_intervals

    def _read_by(self, layout: Layout) -> dict[str, Any]:
        return {"basis": identified_basis(display_map(layout))} if self.has_intervals else {}
