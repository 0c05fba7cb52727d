"""What is shared instead of copied."""

from __future__ import annotations

from typing import Self


class NeverCopied:
    """A copy is the object itself: a second ledger would be a second budget, and scikit-learn's ``clone`` makes one."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
