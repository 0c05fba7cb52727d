"""Functions that ask a query have its parameters: for people, for tools and for type checkers."""

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

import snugdp
from snugdp.queries.base import Query
from snugdp.queries.docstrings import takes

FUNCTIONS = {
    name: function
    for name in snugdp.__all__
    if inspect.isfunction(function := getattr(snugdp, name))
    and "Unpack" in str(function.__annotations__.get("options"))
}


def query_of(function: Any) -> type[Query[Any]]:
    """The class that a function asks."""
    name = function.__code__.co_names[0]
    query: type[Query[Any]] = vars(inspect.getmodule(function))[name]
    return query


def test_all_functions_are_looked_at() -> None:
    assert {"median", "mean", "covariance", "mode", "vote", "group_by", "describe", "trimmed_mean"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_type_checkers_know_is_what_the_query_takes(name: str) -> None:
    function, query = FUNCTIONS[name], query_of(FUNCTIONS[name])
    (options,) = get_args(get_type_hints(function)["options"])
    declared = get_type_hints(getattr(options, "__origin__", options))
    positional = set(inspect.signature(function, follow_wrapped=False).parameters) & {"data", "q", "by", "model"}
    released = get_type_hints(query.release)
    wanted = get_type_hints(query)
    taken = {one.name: wanted[one.name] for one in fields(query) if one.name not in positional}
    taken |= {option: released[option] for option in ("ledger", "noise")}
    assert declared == taken


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_those_of_the_query(name: str) -> None:
    function, query = FUNCTIONS[name], query_of(FUNCTIONS[name])
    shown = inspect.signature(function).parameters
    for parameter in inspect.signature(query).parameters.values():
        if parameter.name not in ("q", "by", "model"):
            assert shown[parameter.name] == parameter
    assert next(iter(shown)) == ("model" if name == "score" else "data")
    assert [*shown][-2:] == ["ledger", "noise"]


def test_a_parameter_that_nobody_knows_is_refused_and_so_is_one_that_is_missing() -> None:
    """Type checkers know both: mypy tells of an ignored error that is none."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'clipp'"):
        snugdp.mean([1.0], epsilon=1, clipp=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'epsilon'"):
        snugdp.mean([1.0])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'delta'"):
        snugdp.mode(["a"], categories=["a"], epsilon=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'candidates'"):
        snugdp.vote(["a"], epsilon=1)  # type: ignore[call-arg]


def test_own_words_come_first_and_the_rest_is_inherited() -> None:
    @takes(snugdp.Variance)
    def spread(data: object, **options: Any) -> Any:
        """Spread.

        Parameters
        ----------
        bounds : pair
            Own.

        Examples
        --------
        >>> 1
        1
        """

    told = inspect.getdoc(spread) or ""
    assert "bounds : pair\n    Own.\n" in told
    assert "epsilon, delta : Real\n    The privacy budget." in told
    assert told.index("\nParameters\n") < told.index("\nReturns\n") < told.index("\nExamples\n")


@pytest.mark.slow
def test_functions_work_without_docstrings() -> None:
    code = "import snugdp; assert snugdp.mean.__doc__ is None; snugdp.mean([1.0] * 9, bounds=(0, 2), epsilon=1)"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)
