"""What becomes of a row whose cell is missing, as a schema declares it for every column.

A row without a target is left out always. Whether a row is left out depends on that row and on public declarations
alone (``scaling.proof.md``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias, get_args

Policy: TypeAlias = Literal["centre", "drop", "indicator"]
Policies: TypeAlias = Policy | Mapping[str, Policy]

_ALLOWED = ", ".join(f'"{name}"' for name in get_args(Policy))


def checked(given: Any, columns: Collection[str], target: str | None) -> Policies:
    """The policy of all columns, or those of columns that are not centred; a target is dropped, and has none.

    >>> checked({"age": "drop", "city": "centre"}, ["age", "city"], None)
    {'age': 'drop'}
    >>> checked({"age": "drop", "y": "drop"}, ["age", "y"], "y")
    'drop'
    """
    if not isinstance(given, Mapping):
        return _allowed(given, "missing")
    for name in given:
        if name not in columns:
            raise ValueError(f'missing names "{name}", which is not one of the columns')
    if target in given and _allowed(given[target], f'missing of "{target}"') != "drop":
        raise ValueError(f'rows without the target "{target}" are always left out: do not name it in missing')
    used = {name: _allowed(given.get(name, "centre"), f'missing of "{name}"') for name in columns if name != target}
    if len(set(used.values())) == 1:
        return next(iter(used.values()))
    return {name: policy for name, policy in used.items() if policy != "centre"}


def policy_of(missing: Policies, column: str) -> Policy:
    """That of one column.

    >>> policy_of("drop", "age"), policy_of({"age": "drop"}, "city")
    ('drop', 'centre')
    """
    return missing.get(column, "centre") if isinstance(missing, Mapping) else missing


def kept(missing: Policies) -> Policies:
    """The same for rows to predict, each of which has an answer: what was dropped is centred."""
    if isinstance(missing, Mapping):
        return {name: policy for name, policy in missing.items() if policy != "drop"}
    return "centre" if missing == "drop" else missing


def restricted(missing: Policies, columns: Collection[str]) -> Policies:
    """The same for some of the columns.

    >>> restricted({"age": "drop", "city": "indicator"}, ["age"])
    {'age': 'drop'}
    """
    if not isinstance(missing, Mapping):
        return missing
    return {name: policy for name, policy in missing.items() if name in columns}


def entry_name(column: str) -> str:
    """The name of the entry that is 1 where a cell of the column is missing."""
    return f"{column} is missing"


def _allowed(policy: Any, what: str) -> Policy:
    if policy not in get_args(Policy):
        raise ValueError(f"{what} must be one of {_ALLOWED}")
    chosen: Policy = policy
    return chosen
