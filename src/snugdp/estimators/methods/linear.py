"""The ways to fit a line, by name. A new one is one more entry of ``METHODS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Unit
from snugdp.estimators.workflows.grids import is_list
from snugdp.mechanisms.linear.base import MOST_ENTRIES, Design, Method

if TYPE_CHECKING:
    from snugdp.mechanisms.linear.weighing import LineParts

_FEW_STANDARDISED = 24  # entries of a row between bounds that were found: up to here whitening them gains nothing sure


@dataclass(frozen=True)
class Options:
    """What the user gave besides bounds and budget. All of it is public. ``given``: what every method gets."""

    proposals: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    validation: tuple[Any, Any] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How a method is made. ``maker``: a callable, or "module:name" below ``mechanisms``, which is loaded when needed.

    ``proposals``: what may be proposed. ``fixed``: proposals that make the method what its name says. ``rows``: whether
    a public guess of the number of rows is needed (None: it is of no use). ``validation``: whether public rows are.
    ``lists``: proposals of which the method takes a list, to choose from released numbers, without a selection.
    ``after``: the maker for rows that were standardised by released numbers, with ``beside``, mu squared of these, and
    ``found_rows``, their number as released; without one, the method gets what they leave of the budget.
    ``persons``: whether the method plans for persons with several rows itself.
    ``single``: proposals with which it is proved for one row of each person alone.
    ``several``: whether it takes several rows of a person as they are (``Design.max_rows``).
    """

    maker: str | Callable[..., Method]
    proposals: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rows: bool | None = None
    validation: bool = False
    lists: tuple[str, ...] = ()
    after: Callable[..., Method] | None = None
    persons: bool = False
    single: Mapping[str, Any] = field(default_factory=dict)
    several: bool = False

    def listed(self, proposals: Mapping[str, Any], validation: object) -> tuple[str, ...]:
        """The proposals that a selection has to choose from: lists that the method makes nothing of by itself."""
        own = self.lists if self.validation or validation is None else ()
        return tuple(name for name, value in proposals.items() if is_list(value) and name not in own)

    def is_single(self, proposals: Mapping[str, Any]) -> bool:
        """Whether the method, so proposed, is proved for one row of each person alone."""
        return any(proposals.get(name) == value for name, value in self.single.items())

    def make(self, design: Design, budget: Budget, options: Options) -> Method:
        """The method for a design and a budget; bad proposals are refused here, before anything is charged."""
        chosen = {**options.given, **options.proposals, **self.fixed}
        if self.rows is not None and options.rows is not None:
            chosen["rows"] = options.rows
        if self.validation and options.validation is not None:
            chosen["validation"] = options.validation
        method: Method = self._load()(design, budget, **chosen)
        return method

    def _load(self) -> Callable[..., Method]:
        if not isinstance(self.maker, str):
            return self.maker
        module, _, name = self.maker.partition(":")
        loaded: Callable[..., Method] = getattr(import_module(f"snugdp.mechanisms.{module}"), name)
        return loaded


def _adaptive_after(
    design: Design,
    budget: Budget,
    *,
    beside: Fraction,
    found_rows: float,
    skew: float = 1.0,
    parts: LineParts | None = None,
) -> Method:
    from snugdp.mechanisms.objective.adaptive import Adaptive

    return Adaptive(design, budget, beside, skew, False, parts)  # levels that are found may be more than planned


def _auto(design: Design, budget: Budget, beside: Fraction = Fraction(0), *, by_column: bool = False) -> Method:
    """Rows with public bounds ``by_column`` are whitened first: they seldom fill these, and not evenly."""
    from snugdp.mechanisms.objective.adaptive import Adaptive

    if by_column and design.protects is Unit.ROW and design.entries <= MOST_ENTRIES:
        return _whitened_fit(design, budget, beside=beside)
    return Adaptive(design, budget, beside)


def _auto_after(
    design: Design, budget: Budget, *, beside: Fraction, found_rows: float, entries: int, **read: Any
) -> Method:
    """By the number of ``entries`` that was planned, which is public: levels that are found are further ones."""
    if design.protects is Unit.ROW and _FEW_STANDARDISED < entries <= MOST_ENTRIES:
        return _whitened_fit(design, budget, beside=beside)
    return _adaptive_after(design, budget, beside=beside, found_rows=found_rows, **read)


def _whitened_fit(design: Design, budget: Budget, *, beside: Fraction = Fraction(0), found_rows: float = 0) -> Method:
    from snugdp.mechanisms.inference.line import WhitenedLine

    return WhitenedLine(design, budget, beside, intervals=False)


def _whitened(maker: str) -> Recipe:
    """A way on whitened rows, which knows what is identified (``basis``)."""

    def after(
        design: Design, budget: Budget, *, beside: Fraction, found_rows: float, basis: tuple[tuple[float, ...], ...]
    ) -> Method:
        return Recipe(maker)._load()(design, budget, beside, basis)

    return Recipe(maker, after=after)


INFERENCE: dict[str, Recipe] = {"auto": _whitened("inference.line:WhitenedLine")}
"""The ways to fit a line with intervals."""

MEAN: dict[str, Recipe] = {"auto": _whitened("inference.mean:WhitenedMean")}
"""The ways to fit a conditional mean; all have intervals."""

METHODS: dict[str, Recipe] = {
    "auto": Recipe(_auto, after=_auto_after, persons=True),
    "whitened": Recipe(_whitened_fit, after=_whitened_fit),
    "adaptive": Recipe("objective.adaptive:Adaptive", after=_adaptive_after, persons=True),
    "objective": Recipe(
        "objective.robust:ObjectivePerturbation",
        ("rule", "loss", "tau", "ridge", "general"),
        persons=True,
        single={"rule": "two_stage", "loss": "huber", "general": True},
    ),
    "sufficient": Recipe(
        "linear.sufficient:SufficientStatistics",
        ("refinements", "clip", "ridge"),
        validation=True,
        lists=("ridge",),
        several=True,
    ),
    "adassp": Recipe("linear.sufficient:AdaSSP", ("ridge",), several=True),
    "posterior": Recipe("linear.ridge:PosteriorSampling", ("ridge", "gamma"), rows=False, lists=("ridge",)),
    "ops_balanced": Recipe("linear.ridge:PosteriorSampling", ("gamma",), {"ridge": "balanced"}, rows=True),
    "adaops": Recipe("linear.ridge:PosteriorSampling", ("gamma",), {"ridge": "adaptive"}, rows=False),
    "output": Recipe("linear.ridge:OutputPerturbation", ("ridge",), several=True),
    "descent": Recipe("linear.sufficient:NoisyDescent", ("steps", "clip", "rate"), rows=True, several=True),
}


def named_recipe(
    name: object, proposals: object, rows: object, methods: Mapping[str, Recipe]
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe of this name and its proposals, if they go together."""
    if not isinstance(name, str) or name not in methods:
        raise ValueError(f"method must be one of {listed_names(methods)}")
    recipe = methods[name]
    if not isinstance(proposals, Mapping | None):
        raise TypeError('proposals must map names to values, such as {"ridge": 10.0}')
    given = dict(proposals or {})
    unknown = [key for key in given if key not in recipe.proposals]
    if unknown:
        allowed = f"allowed: {listed_names(recipe.proposals)}" if recipe.proposals else "there is nothing to propose"
        raise ValueError(f'method "{name}" has no proposal {listed_names(unknown)}; {allowed}')
    if recipe.rows and rows is None:
        raise ValueError(f'method "{name}" needs rows=..., a public guess of the number of rows')
    return recipe, given


def recipe_for(
    name: object, proposals: object, rows: object, validation: object, methods: Mapping[str, Recipe]
) -> tuple[Recipe, dict[str, Any]]:
    """As ``named_recipe``, where lists of proposals go with public rows to choose on."""
    recipe, given = named_recipe(name, proposals, rows, methods)
    listed = recipe.listed(given, validation)
    if listed and validation is None:
        raise ValueError(
            f"a list of proposals ({listed_names(listed)}) needs validation=(X, y), public rows to choose on"
        )
    if validation is not None and not recipe.validation and not listed:
        users = [key for key, other in methods.items() if other.validation]
        others = f"; {listed_names(users)} has" if users else ""
        raise ValueError(f'method "{name}" has no use for validation=... without a list of proposals{others}')
    return recipe, given


def check_persons(name: str, methods: Mapping[str, Recipe], max_rows: int) -> None:
    """Refuse several rows of a person where nothing is proved of them."""
    if max_rows > 1 and not methods[name].several:
        proved = listed_names(key for key, other in methods.items() if other.several or other.persons)
        raise ValueError(
            f'max_rows={max_rows}: method "{name}" is not proved for persons with several rows. Use '
            f"max_rows=1, which always works, or a method that takes several: {proved}"
        )


def listed_names(names: Iterable[Any]) -> str:
    """Names in quotation marks, for a message."""
    return ", ".join(f'"{name}"' for name in names)
