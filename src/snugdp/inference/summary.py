"""Coefficients with their uncertainty as statisticians print them. Post-processing of released numbers."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from snugdp.inference.equation import ContrastEstimate

if TYPE_CHECKING:
    import polars as pl

_HEADS = ("estimate", "std. error", "z", "p", "lower", "upper")
NOTES = {
    "line": "Estimated is a robust line (log-cosh loss), not a conditional mean: both have the same slopes where "
    "errors do not depend on x, and the same intercept where errors are symmetric as well; for the mean there is "
    'target="mean". Intervals cover sampling, '
    "privacy noise, ridge and the shortening of long rows, but not what clipping to bounds does to rows beyond them.",
    "mean": "Estimated is the conditional mean (least squares): where it is no line, the line nearest to it, in which "
    "long rows count less. Intervals cover sampling and privacy noise, but not what clipping to bounds does to rows "
    "beyond them, nor to the few residuals that are larger than all that can be seen beside the noise.",
    "log-odds": "Estimated are log-odds. Intervals cover sampling, privacy noise and ridge; long rows are left out, "
    "which does no harm where the model is right. They do not cover what clipping to bounds does to rows beyond them.",
    "log-rate": "Estimated are logarithms of rates. Intervals cover sampling, privacy noise and ridge; long rows are "
    "left out, which does no harm where the model is right. They do not cover what clipping to bounds, and to the "
    "largest count, does to rows beyond them.",
}
"""What is estimated, by the kind of the model, and what the intervals have in them."""
_DISPERSED = ("log-odds", "log-rate")
_DISPERSION = (
    "Residuals: their mean square is {} ± {} (noise) times the variance that the model gives them, about 1 where it is "
    "right; standard errors rest on the residuals and not on the model."
)


class Estimated(Protocol):
    """What has named coefficients with estimates."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""

    def estimates(self, alpha: float) -> tuple[ContrastEstimate, ...]:
        """One for each name."""

    @property
    def dispersion(self) -> tuple[float, float] | None:
        """The mean square of residuals over the variance that a model gives them, and what noise adds to it."""


@dataclass(frozen=True)
class JointTest:
    """A test that several coefficients are 0: chi-square, its degrees of freedom and the p-value.

    The p-value is larger than that of the chi-square law where noise in the covariance counts.
    """

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True)
class CoefficientSummary:
    """Estimates, standard errors, intervals and tests of all coefficients.

    The estimates are without the pull of the ridge, so they differ from ``coef_``, which predicts better.

    Attributes
    ----------
    names : tuple of str
        What each estimate belongs to; the intercept comes last.
    estimates : tuple of ContrastEstimate
        With ``estimate``, ``standard_error``, ``lower``, ``upper`` and ``p_value``.
    alpha : float
        One minus the confidence of the intervals.
    estimand : {"line", "mean", "log-odds", "log-rate"}
        What is estimated; ``notes`` says it in words.
    dispersion : (float, float) or None
        Of labels and counts: the mean square of residuals over the variance that the model gives them, and how far
        privacy noise moves it in 19 of 20 cases. None where nothing can be said, and of lines.
    """

    names: tuple[str, ...]
    estimates: tuple[ContrastEstimate, ...]
    alpha: float
    estimand: str
    dispersion: tuple[float, float] | None = None

    @classmethod
    def of(cls, fitted: Estimated, alpha: float, estimand: str) -> CoefficientSummary:
        """Of all coefficients."""
        if not 0 < alpha < 1:
            raise ValueError("alpha must be greater than 0 and less than 1, such as 0.05")
        spread = fitted.dispersion if estimand in _DISPERSED else None
        return cls(fitted.names, fitted.estimates(alpha), float(alpha), estimand, spread)

    @property
    def frame(self) -> pl.DataFrame:
        """The table, a polars frame."""
        import polars as pl

        columns: dict[str, Sequence[object]] = {"name": self.names}
        for head, column in zip(_HEADS, zip(*self._numbers(), strict=True), strict=True):
            columns[head] = column
        return pl.DataFrame(columns)

    def _numbers(self) -> list[tuple[float, ...]]:
        return [
            (each.estimate, each.standard_error, each.z, each.p_value, each.lower, each.upper)
            for each in self.estimates
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is estimated, and what the intervals do not have in them."""
        unknown = [name for name, each in zip(self.names, self.estimates, strict=True) if not each.is_bounded]
        notes: tuple[str, ...] = (NOTES[self.estimand],)
        if self.dispersion is not None:
            notes = (*notes, _DISPERSION.format(*(f"{part:.3g}" for part in self.dispersion)))
        if not unknown:
            return notes
        return (
            *notes,
            f"At this budget the data say nothing about {', '.join(unknown)}: the interval is the whole line.",
        )

    @property
    def heads(self) -> tuple[str, ...]:
        """What stands above the columns of the table, after the names."""
        return (*_HEADS[:4], f"{self.alpha / 2:g}", f"{1 - self.alpha / 2:g}")

    @property
    def lines(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The table as text: each name with its cells."""
        cells = [(*map(_written, line[:3]), _small(line[3]), *map(_written, line[4:])) for line in self._numbers()]
        return tuple(zip(self.names, cells, strict=True))

    def __str__(self) -> str:
        rows = [("", *self.heads), *((name, *cells) for name, cells in self.lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        )
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{head}</th>" for head in ("", *self.heads))
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for name, cells in self.lines
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _written(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}"


def _small(p_value: float) -> str:
    """A p-value; the limit theorem behind it says nothing of the smallest."""
    return "<1e-10" if p_value < 1e-10 else _written(p_value)
