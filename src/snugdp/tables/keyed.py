"""Equality by a key."""

from __future__ import annotations

from abc import ABC, abstractmethod


class EqualByKey(ABC):
    """Equal to what has the same type and the same key: for fields that are arrays or mappings."""

    @property
    @abstractmethod
    def _key(self) -> tuple[object, ...]:
        """All that counts, hashable."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)
