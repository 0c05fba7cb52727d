"""Answers of the vectors that the product has no function for: closed forms of the notes, with 50 digits.

The product's own accounting is tighter, or needs none of them: they are kept so that every vector is answered.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

Adapter = Callable[..., Any]


def _typed(value: Any) -> Any:
    """A number as it is typed; words and lists as they are."""
    if isinstance(value, list) or str(value).isalpha():
        return value
    number = Fraction(str(value))
    return mp.mpf(number.numerator) / number.denominator


def formula(function: Adapter) -> Adapter:
    """A formula over numbers as they are typed; what it gives are floats."""

    def adapter(**inputs: Any) -> Any:
        with mp.workdps(50):
            found = function(**{name: _typed(value) for name, value in inputs.items()})
            return {name: float(value) for name, value in found.items()} if isinstance(found, dict) else float(found)

    return adapter


def _delta(m: Any, level: Any) -> Any:
    """Of two normals that are m apart, at any real epsilon."""
    return mp.ncdf(m / 2 - level / m) - mp.exp(level) * mp.ncdf(-m / 2 - level / m)


def _floored(m: Any, floor: Any, level: Any) -> Any:
    """Of the loss max(Gaussian loss, floor)."""
    return _delta(m, level) if level >= floor else 1 - mp.exp(level - floor) * (1 - _delta(m, floor))


def _objective_profile(eps: Any, m: Any, kappa: Any) -> Any:
    limit = max(kappa, 2 * kappa - m**2 / 2)
    added = 2 * _delta(m, eps) if eps >= m**2 / 2 else 1 - 2 * mp.exp(eps) * mp.ncdf(-m)
    generic = _floored(m, 0, eps - mp.log1p(kappa))
    return {"add": added, "remove_logcosh": _floored(m, limit, eps), "remove_generic": generic, "e_c": limit}


def _objective_renyi(alpha: Any, m: Any, kappa: Any) -> Any:
    less = alpha - 1

    def removed(floor: Any) -> Any:
        """Of the loss max(m t + m^2/2, floor), t standard normal."""
        at = (floor - m**2 / 2) / m
        low, high = mp.exp(less * floor) * mp.ncdf(at), mp.exp(less * alpha * m**2 / 2) * mp.ncdf(less * m - at)
        return mp.log(low + high) / less

    return {
        "add": alpha * m**2 / 2 + mp.log(2 * mp.ncdf(less * m)) / less,
        "remove_generic": removed(0) + mp.log1p(kappa),
        "remove_logcosh": removed(max(kappa, 2 * kappa - m**2 / 2)),
    }


def _objective_smoothing(m: Any, eta: Any, s: Any, eps: Any) -> Any:
    other = 2 * eta / s
    together = mp.hypot(m, other)
    return {"M": together, "delta_add": 2 * _delta(together, eps)}


def _posterior_renyi(direction: str, alpha: Any, leverage: Any, rho: Any) -> Any:
    mu = leverage if direction == "add" else -leverage
    change, room = 1 + mu, 1 - (alpha - 1) * mu
    mean = alpha * abs(mu) * rho**2 / (2 * change * room)
    return {"rdp": mean - mp.log(change) / 2 - mp.log(room) / (2 * (alpha - 1)) if room > 0 else mp.inf}


def _posterior_closed_form(
    direction: str, *, gamma: Any, lam: Any, lambda_min: Any, rbar: Any, B: Any, delta: Any
) -> Any:
    added, log = B**2 / (lam + lambda_min), -mp.log(delta)
    mu, sign = (added, 1) if direction == "add" else (min(added, B**2 / (lam + B**2)), -1)
    strength, change = gamma * mu * rbar**2, 1 + sign * mu
    linear = mp.sqrt(2 * strength * log) + strength / (2 * change) - mp.log(change) / 2
    return {"eps": linear + mu * log if direction == "add" else linear}


def _gumbel_scale(s: Any, rho: Any, score_sensitivity: Any) -> Any:
    return score_sensitivity * mp.sqrt(s / (2 * rho))


def _glm_limit(m: Any, kappa: Any) -> Any:
    return max(mp.mpf(0), kappa - m**2 / 2)


def _glm_removed(m: Any, limit: Any, level: Any) -> Any:
    """Gaussian but for a chord below the critical loss."""
    if level <= 0 or level >= limit:
        return _delta(m, level)
    share = mp.expm1(level) / mp.expm1(limit)
    return (1 - share) * _delta(m, 0) + share * _delta(m, limit)


def _glm_profile(m: Any, kappa: Any, e: Any) -> Any:
    limit = _glm_limit(m, kappa)
    added = _delta(m, e) if e >= 0 else 1 - mp.exp(e) + mp.exp(e) * _glm_removed(m, limit, -e)
    return {"e_c": limit, "add": added, "remove": _glm_removed(m, limit, e)}


def _glm_composition(m: Any, kappa: Any, mu: Any, eps: Any) -> Any:
    limit = _glm_limit(m, kappa)
    whole, gap = _delta(mp.hypot(m, mu), eps), _delta(m, 0) - _delta(m, limit)
    added = whole + gap * mp.exp(eps) * mp.ncdf(-eps / mu - mu / 2)
    removed = whole + (gap / -mp.expm1(-limit) * _delta(mu, eps - limit) if limit else 0)
    return {"e_c": limit, "add": added, "remove": removed, "delta": max(added, removed)}


def _glm_renyi(m: Any, kappa: Any, order: Any) -> Any:
    limit, less = _glm_limit(m, kappa), order - 1
    if not limit:
        return {"e_c": limit, "add": order * m**2 / 2, "remove": order * m**2 / 2}
    cut = limit / m - m / 2
    first, second = mp.ncdf(cut) - mp.ncdf(-m / 2), mp.ncdf(cut + m) - mp.ncdf(m / 2)
    high = (first - second) / -mp.expm1(-limit)
    grown, k = mp.exp(less * order * m**2 / 2), less * m
    removed = grown * (mp.ncdf(-m / 2 - k) + mp.ncdf(k - cut)) + first - high + high * mp.exp(less * limit)
    far = grown * (mp.ncdf(m / 2 + k) + mp.ncdf(-limit / m - m / 2 - k))
    added = far + first - high + high * mp.exp(-order * limit)
    return {"e_c": limit, "add": mp.log(added) / less, "remove": mp.log(removed) / less}


FORMULAS: Mapping[str, Mapping[str, Adapter]] = {
    "linear": {
        "objpert_profile": formula(_objective_profile),
        "objpert_rdp": formula(_objective_renyi),
        "objpert_smoothing": formula(_objective_smoothing),
        "ops_rdp": formula(_posterior_renyi),
        "ops_closed_form_eps": formula(_posterior_closed_form),
    },
    "objective_glm": {
        "objglm_profile": formula(_glm_profile),
        "objglm_composition": formula(_glm_composition),
        "objglm_rdp": formula(_glm_renyi),
    },
    "sparse": {"gumbel_scale_zcdp": formula(_gumbel_scale)},
}
