"""Choices that callers may also give by name."""

from __future__ import annotations

import enum
from typing import Self


class NamedChoice(enum.Enum):
    """One of a few, each with a name."""

    @classmethod
    def of(cls, value: Self | str) -> Self:
        """The choice itself, or the one with this name.

        >>> from snugdp import Neighbours
        >>> Neighbours.of("replace") is Neighbours.of(Neighbours.REPLACE)
        True
        """
        try:
            return cls(value)
        except ValueError:
            pass
        *names, last = (f'"{one.value}"' for one in cls)
        listed = f"{', '.join(names)} or {last}"
        raise ValueError(f"{cls.__name__.lower()} must be {listed} (see snugdp.{cls.__name__})")
