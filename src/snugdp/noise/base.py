"""The interface through which mechanisms draw: every method makes a request, and a source answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import requests
from snugdp.noise.checks import opened
from snugdp.secrecy.secret import Secret

P = ParamSpec("P")
T = TypeVar("T")


def _asks(make: Callable[P, requests.Request[T]]) -> Callable[Concatenate[Noise, P], T]:
    """A method that makes a request and gives the answer to it."""

    def method(self: Noise, /, *args: P.args, **named: P.kwargs) -> T:
        return self.answer(make(*args, **named))

    method.__doc__ = make.__doc__
    return method


class Noise:
    """A source of noise. Mechanisms take one as an argument and never make their own.

    A source answers requests; its methods are documented by the classes in ``noise.requests``. ``private``:
    whether what it releases is protected.
    """

    private: bool

    def answer(self, request: requests.Request[T]) -> T:
        """The answer to a request, which has been checked: by the source's own ``_add``, ``_at_least`` and so on."""
        answer: T = getattr(self, f"_{request.method}")(request)
        return answer

    def at(self, step: str) -> Noise:
        """The same source for the draws of one step of a plan. Inside a step it stays there."""
        return self

    def _reveal(self, request: requests.Reveal[T]) -> T:
        return opened(request.value)  # type: ignore[no-any-return]

    add = _asks(requests.Add)
    add_integers = _asks(requests.AddIntegers)
    at_least = _asks(requests.AtLeast)
    argmax, argmaxes = _asks(requests.Argmax), _asks(requests.Argmaxes)
    reach = _asks(requests.Reach)
    keys_above = _asks(requests.KeysAbove)
    posterior = _asks(requests.PosteriorDraw)
    minimiser = _asks(requests.MinimiserDraw)
    choice, weighted_choice = _asks(requests.Choice), _asks(requests.WeightedChoice)
    chance = _asks(requests.Chance)
    stopping = _asks(requests.StoppingTime)

    def scatter(self, n: int, parts: int) -> NDArray[np.int64]:
        """``n`` independent uniform positions among ``parts``: which row goes to which part."""
        return self.answer(requests.Scattering(Secret(n), parts))

    def reveal(self, value: Secret[T]) -> T:
        """The value without noise: only for what a test has certified to be the same on all neighbours."""
        return self.answer(requests.Reveal(value))
