"""The walk itself: refusals, retries, what is shown, what is said aloud."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from snugdp.audit.mutants.base import Changes, Topic, everywhere, seen
from snugdp.audit.mutants.checks import Battered, Ends, Near
from snugdp.certify.distance import DistanceTest
from snugdp.estimators.linear import LinearRegression
from snugdp.mechanisms.order_statistics.stable import Bounded
from snugdp.mechanisms.votes.noisy_max import NoisyMax
from snugdp.noise import Noise
from snugdp.queries import labels, robust
from snugdp.release import spine
from snugdp.release.once import Purchase
from snugdp.secrecy import silence
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.secrecy.silence import quietly
from snugdp.serial.codec import Kept
from snugdp.tables.cells import columns
from snugdp.tables.rowmap import RowMap

mutant = Topic("framework")


@mutant("tried again for free", "N", Near("mode", 20, 0))
def _() -> Changes:
    """A test that fails is drawn again, and not paid for again."""
    passes = DistanceTest.passes

    def twice(self: DistanceTest[Any], data: Secret[Any], noise: Noise) -> bool:
        return passes(self, data, noise) or passes(self, data, noise)

    return [(DistanceTest, "passes", twice)]


@mutant("released beside a refusal", "N", Near("median: as it is", 6, 10))
def _() -> Changes:
    """The value is drawn before the test, and shown whatever the test says."""

    def both(plan: Any, test: Any, mechanism: Any, data: Secret[Any], purse: Any) -> Any:
        def walk(noise: Noise, _: object) -> Kept:
            test.passes(data, noise.at("test"))
            return Kept(refused=False, value=mechanism.draw(data, noise.at("release")))

        return purse.pay(plan, walk)

    return [(robust, "release_or_refuse", both)]


@mutant("a distance beside the answer", "N", Near("mode", 4, 10))
def _() -> Changes:
    """The outcome carries the private distance as a certificate, to explain itself."""
    release = spine.release_or_refuse

    def explained(plan: Any, test: Any, mechanism: Any, data: Secret[Any], purse: Any) -> Any:
        outcome = release(plan, test, mechanism, data, purse)
        object.__setattr__(outcome, "certificate", seen(data.map(getattr(test, "distance", len))))
        return outcome

    return [(labels, "release_or_refuse", explained)]


@mutant("a refusal with a reason", "B", Battered("mode", 8), quick=True)
def _() -> Changes:
    """A refusal says how far the data were from a release."""
    release = spine.release_or_refuse

    def explained(plan: Any, test: Any, mechanism: Any, data: Secret[Any], purse: Any) -> Any:
        outcome = release(plan, test, mechanism, data, purse)
        if outcome.refused:
            object.__setattr__(outcome, "reason", f"distance {seen(data.map(test.distance))}")
        return outcome

    return [(labels, "release_or_refuse", explained)]


@mutant("private errors reach the caller", "B", Battered("from_distance", 12))
def _() -> Changes:
    """What fails inside a private computation is raised as it is."""
    loud = (Secret, "map", lambda self, function: Secret(function(seen_inside(self))))
    return [loud, (Purchase, "outcome", _unguarded)]


_map = Secret.map


def seen_inside(secret: Secret[Any]) -> Any:
    """What is inside, whatever ``map`` has become."""
    inside: list[Any] = []
    _map(secret, inside.append)
    return inside[0]


@mutant("a failure is no refusal", "B", Battered("from_distance", 12))
def _() -> Changes:
    """A private computation that fails ends in an error where it should end in a refusal."""
    return [(Purchase, "outcome", _unguarded)]


def _unguarded(self: Purchase) -> Any:
    return self._go_on(), self._receipt


@mutant("LinAlgError at the caller", "B", Battered("LinearRegression", 4))
def _() -> Changes:
    """Rows that leave a singular system raise, as a solver does."""
    blocks = RowMap.blocks

    def singular(self: RowMap, X: Any, y: Any, rows: int | None = None) -> Any:
        if not np.isfinite(np.asarray(X, dtype=np.float64)).all():
            raise np.linalg.LinAlgError("Singular matrix")
        return blocks(self, X, y, rows)

    return [*everywhere(silence.quietly, _loud), (RowMap, "blocks", singular), (Purchase, "outcome", _raising)]


def _loud(read: Any) -> Any:
    return True, read()


def _raising(self: Purchase) -> Any:
    try:
        return _unguarded(self)
    except PrivateComputationError:
        raise np.linalg.LinAlgError("Singular matrix") from None


@mutant("a warning about the rows", "B", Battered("LinearRegression", 4))
def _() -> Changes:
    """A fit warns of cells that are no numbers."""
    fit = LinearRegression.fit

    def warned(self: Any, X: Any, y: Any = None) -> Any:
        worked, finite = quietly(lambda: bool(np.isfinite(np.asarray(X, dtype=np.float64)).all()))
        if worked and not finite:
            warnings.warn("some cells are no numbers", stacklevel=2)
        return fit(self, X, y)

    return [(LinearRegression, "fit", warned)]


@mutant("the number of rows is printed", "B", Battered("median", 3))
def _() -> Changes:
    """A test says how many rows it has seen."""
    passes = DistanceTest.passes

    def told(self: DistanceTest[Any], data: Secret[Any], noise: Noise) -> bool:
        sys.stderr.write(f"testing {len(seen(data))} rows\n")
        return passes(self, data, noise)

    numbers = columns.numbers

    def counted(data: object) -> Any:
        found = numbers(data)
        sys.stderr.write(f"read {len(found)} rows\n")
        return found

    return [(DistanceTest, "passes", told), (robust, "numbers", counted)]


@mutant("no number raises", "B", Battered("median", 6))
def _() -> Changes:
    """A row that is no number is an error, as elsewhere."""
    numbers = columns.numbers

    def strict(data: object) -> Any:
        found = numbers(data)
        if np.isnan(found).any():
            raise ValueError("Input contains NaN")
        return found

    return [(robust, "numbers", strict)]


@mutant("a tenth of the noise of a trimmed mean", "E", Ends("trimmed mean: without a test", 1200))
def _() -> Changes:
    """A number gets a tenth of the noise that its plan says."""
    return [(Bounded, "scale", property(lambda self: self.sensitivity / self.budget.epsilon / 10))]


@mutant("runs of a selection without noise", "E", Ends("selection: geometric", 150, 3))
def _() -> Changes:
    """Every run of a selection shows its winner as it is."""

    def draw(self: NoisyMax, data: Secret[Any], noise: Noise) -> int:
        return int(noise.reveal(data.map(lambda tally: int(tally.argmax()))))

    return [(NoisyMax, "draw", draw)]
