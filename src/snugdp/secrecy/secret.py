"""Private values that cannot be shown, stored or branched on by accident.

Everything computed from the rows travels as a ``Secret``. Pure functions reach inside with ``map``;
only the package noise may unwrap (``tests/test_layers.py`` checks it), and what it returns is a release.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

import numpy as np

from snugdp.secrecy.silence import WARNINGS_OFF

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class RehearsalEnded(BaseException):
    """Raised by the noise of an audit, which knows the rows, to end a rehearsal: it passes through secrets."""


class PrivateComputationError(RuntimeError):
    """A computation on private values failed. The message never says which values."""


class Secret(Generic[T_co]):
    """A private value. Compute on it with ``map``; release it through noise.

    >>> from snugdp.secrecy.secret import Secret
    >>> total = Secret([1, 2, 3]).map(sum)
    >>> total
    <secret>
    >>> bool(total)
    Traceback (most recent call last):
        ...
    TypeError: a private value cannot decide a branch: release it through a mechanism first
    """

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def map(self, function: Callable[[T_co], U]) -> Secret[U]:
        """Apply a pure function; the result is as private as the argument.

        What it warns of is dropped, and what it raises becomes a ``PrivateComputationError`` without a cause, for both
        may depend on the value. That holds for every exception, ``SystemExit`` and panics of native libraries too;
        only an interrupt by the user goes on, as a new one, and ``RehearsalEnded``. What it prints, logs or writes is
        not covered.
        """
        interrupted = False
        try:
            with WARNINGS_OFF, np.errstate(all="ignore"):
                return Secret(function(self._value))
        except KeyboardInterrupt:
            interrupted = True
        except RehearsalEnded:
            raise
        except BaseException:
            pass
        # Raised outside the handler, so that no traceback, cause or context carries private values.
        if interrupted:
            raise KeyboardInterrupt
        raise PrivateComputationError(
            "a computation on private values failed; the cause is withheld because it may depend on them. "
            "Test the function on made-up data"
        )

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "<secret>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a private value cannot decide a branch: release it through a mechanism first")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __len__ = __iter__ = __float__ = __int__ = __index__ = __contains__ = _refuse

    def __eq__(self, other: object) -> bool:
        self._refuse()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private value cannot be pickled or copied: release it through a mechanism first")

    __copy__ = __deepcopy__ = __getstate__ = __reduce__


def unwrap(secret: Secret[T]) -> T:
    """The value itself. Only the package noise imports this."""
    return secret._value
