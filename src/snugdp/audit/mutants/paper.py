"""The paper's own formulas, and those of the code around it, in the place of ours. Labels are those of the errata."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from snugdp.accounting import gaussian, renyi
from snugdp.accounting.output import posterior
from snugdp.audit.mutants.base import Changes, Topic, everywhere, seen
from snugdp.audit.mutants.checks import Near
from snugdp.audit.mutants.vectors import Vector
from snugdp.certify import smooth
from snugdp.mechanisms.components import base, gap_test
from snugdp.mechanisms.linear import ridge_test
from snugdp.mechanisms.linear.posterior import Sampler
from snugdp.mechanisms.teachers import ball, loss
from snugdp.mechanisms.teachers import smooth as smooth_votes
from snugdp.mechanisms.teachers.labels import NoisyLabels
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret

mutant = Topic("paper")


def _accountant(module: Any, **named: Any) -> Changes:
    return [(module, "gaussian", SimpleNamespace(**{**vars(gaussian), **named}))]


@mutant("F8: a factor 2 under the root", "X", Vector("calibration"))
def _() -> Changes:
    """Gaussian noise of deviation sqrt(log(2/delta))/epsilon, as in the logistic example and in OPS-PTR."""
    return [(gaussian, "mu", lambda e, d: float(e) / math.sqrt(math.log(2 / float(d))) if d else 0.0)]


@mutant("P2: the constant of principal components", "X", Vector("promises"))
def _() -> Changes:
    """Principal components are calibrated by sqrt(2 log(1.25/delta))/epsilon at every epsilon."""

    def mu(epsilon: Any, delta: Any) -> float:
        return float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta)))

    return _accountant(base, mu=mu)


@mutant("F5: a replaced row as one that comes or goes", "X", Vector("projector"))
def _() -> Changes:
    """The projector is said to turn no farther when a row is replaced than when one comes or goes."""
    turned = gap_test.sensitivity
    return [(gap_test, "sensitivity", lambda gap, neighbours="add_remove": turned(gap, "add_remove"))]


@mutant("L1: the theorem for one posterior sample", "X", Vector("posterior"))
def _() -> Changes:
    """The precision of a posterior sample is the one that the paper's Theorem `thm: per` allows."""

    def allowed(self: Sampler, certificate: Any) -> Fraction | None:
        delta = float(self.split.slack)
        epsilon = gaussian.epsilon(Fraction(math.sqrt(self.split.mu_release_squared)), self.split.slack)
        strength, square = certificate.ridge + certificate.curvature, float(self.design.x_bound**2)
        log = math.log(2 / delta)
        room = epsilon - (1 + log * square) / (2 * strength)
        if room <= 0:
            return None
        linear, quadratic = math.sqrt(log / strength), 1 / (2 * (strength + square))
        size = 2 * room / (linear + math.sqrt(linear**2 + 4 * quadratic * room))
        return Fraction((size / certificate.residual) ** 2)

    return [(Sampler, "allowed", allowed)]


@mutant("L1: without the determinant", "X", Vector("posterior"))
def _() -> Changes:
    """A posterior sample is taken for a Gaussian release of one covariance: the determinant is left out."""

    def allowed(self: Sampler, certificate: Any) -> Fraction | None:
        _, ridge, residual = certificate.exact()
        leverage = self.design.x_bound**2 / (ridge + Fraction(certificate.curvature))
        return Fraction(self.split.mu_release_squared / leverage / residual**2)

    return [(Sampler, "allowed", allowed)]


@mutant("L4: a residual for added rows alone", "X", Vector("ridge"))
def _() -> Changes:
    """The sensitivity of the Lipschitz constant is right for one row more, and wrong for one row less."""
    both = posterior.log_lipschitz_sensitivity
    return everywhere(both, lambda x_squared, ridge, curvature: both(x_squared, ridge, curvature, removal=False))


@mutant("the solution moves half as far", "X", Vector("ridge"))
def _() -> Changes:
    """The solution of a ridge regression is said to move by half of what a row can do."""
    whole = posterior.output_sensitivity
    return everywhere(whole, lambda *given: whole(*given) / 2)


@mutant("C13: a shift of sqrt(log(6/delta))", "X", Vector("margins"), quick=True)
def _() -> Changes:
    """The bound on the smallest eigenvalue is shifted by sqrt(log(6/delta)) deviations, as in AdaOPS: too few of them
    at small deltas, and enough at those that coverage can count.
    """
    return _accountant(ridge_test, threshold=lambda s, d: float(s) * math.sqrt(math.log(6 / float(d))))


@mutant("C2: a margin without the factor 2", "X", Vector("margins"))
def _() -> Changes:
    """The bound by smooth sensitivity is shifted by sqrt(log(2/delta)) deviations, as in the code of the paper."""
    return _accountant(smooth, threshold=lambda s, d: float(s) * math.sqrt(math.log(1 / float(d))))


@mutant("T3: the informal loss of a label", "X", Vector("labels"))
def _() -> Changes:
    """The Renyi loss of a label is exp(-2 order/sigma^2)/order where teachers agree: it falls with the order."""

    def informal(log_q: Any, sigma: float, order: Any) -> Any:
        return np.exp(-2 * np.asarray(order) / sigma**2) / np.asarray(order) * np.ones_like(np.asarray(log_q))

    return everywhere(loss.closed, informal)


@mutant("T4: smooth sensitivity at every order", "X", Vector("renyi"))
def _() -> Changes:
    """The private upper bound costs (3 order + 2)/(2 sigma^2) at every order, with order/(2 sigma^2) of it for the
    scale.
    """
    return [(renyi, "smooth_gaussian", lambda order, beta, sigma: (float(order) + 1) / float(sigma) ** 2)]


@mutant("C8: smooth sensitivity as in the code of 2018", "X", Vector("renyi"))
def _() -> Changes:
    """Noise by smooth sensitivity costs what the code of the PATE analysis says."""

    def cost(alpha: Any, beta: Any, sigma: Any) -> float:
        a, b, s = float(alpha), float(beta), float(sigma)
        return a * math.exp(2 * b) / s**2 + (b * a - 0.5 * math.log(1 - 2 * a * b)) / (a - 1)

    return [(renyi, "smooth_gaussian", cost)]


@mutant("C9: smooth sensitivity that is not smooth", "X", Vector("smooth votes"))
def _() -> Changes:
    """The local sensitivity of the loss is taken at the votes themselves, and not as an envelope around them."""
    envelope = smooth_votes.envelope

    def bare(*given: Any) -> Any:
        found = envelope(*given)
        at, count = np.arange(len(found.loss)), len(found.loss)
        up = found.loss[np.minimum(at + found.reach, count - 1)] - found.loss
        down = found.loss - found.loss[np.maximum(at - found.reach, 0)]
        return replace(found, most=np.maximum(up, down), full=0)

    def sums(votes: Any, sigma: float, order: float, teachers: int, loss: Any = "closed") -> Any:
        table = bare(sigma, order, teachers, votes.shape[-1], loss)
        leads = ball.gaps(votes)
        moves = np.arange(teachers + 1)
        position = table.position(ball.log_miss(leads, sigma, moves), moves)
        return table.most[position].sum(axis=-1)

    return everywhere(smooth_votes.local_sums, sums)


@mutant("C4: votes counted twice", "N", Near("pate: one query", 2, 20))
def _() -> Changes:
    """Vote counts are doubled before they get noise for single votes."""
    draw = NoisyLabels.draw
    return [(NoisyLabels, "draw", lambda self, data, noise: draw(self, data.map(lambda v: 2 * v), noise))]


@mutant("C6: noise tuned on the votes", "N", Near("pate: one query", 2, 20))
def _() -> Changes:
    """The noise of labels is chosen by looking at the votes."""

    def draw(self: NoisyLabels, data: Secret[Any], noise: Noise) -> Any:
        top = int(seen(data).max())
        return noise.argmaxes(data, Gaussian(self.sigma * (1 + Fraction(1, 1 + top))))

    return [(NoisyLabels, "draw", draw)]
