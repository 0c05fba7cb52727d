"""Who runs a pass over a table. An engine is one method; another cluster is one more file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.secrecy.silence import attempt
from snugdp.tables.sources import Source, SparkSource, open_source
from snugdp.tables.sources.base import Frame

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

S = TypeVar("S")
_FAILED = "the pass over the rows failed; the cause is withheld because it may depend on them. Nothing was released"


class Engine(Protocol):
    """Folds every row of a source exactly once and merges the parts, or raises."""

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""
        ...


def measure(data: object, work: Pass[S], *, progress: bool | None = None) -> Secret[S]:
    """One pass over a table, wherever it is: in memory, in files, in a database, on a Spark cluster.

    ``progress``: a bar on the terminal; by default where there is a terminal. It shows bytes of files, never rows.
    What is public is checked before the first row is read. Charge the budget afterwards and before any noise is drawn:
    a pass that fails has then cost nothing.

    Guarantee: every row is folded exactly once, or a ``TableError`` or ``PrivateComputationError`` is raised and
    nothing is returned. Since merging is exact, the state does not depend on the engine, the order of the rows or how
    they are split. No message, warning or progress bar depends on the rows.
    """
    return Secret(gather(open_source(data), work, progress=progress))


def gather(source: Source, work: Pass[S], *, progress: bool | None = None) -> S:
    """As ``measure``, for computations that are inside a ``Secret`` already: what is returned is private."""
    source.check(work)
    return engine_for(source, progress=progress).run(source, work)


def engine_for(source: Source, *, progress: bool | None = None) -> Engine:
    """The engine that can reach the rows."""
    from snugdp.tables.engines.local import Local
    from snugdp.tables.engines.spark import Spark

    return Spark() if isinstance(source, SparkSource) else Local(progress=progress)


def fold(work: Pass[S], frames: Iterable[Frame]) -> S:
    """The state after all frames. What goes wrong inside the pass is not told; what goes wrong in reading is."""
    state = work.empty()
    for frame in frames:
        state = fold_one(work, state, frame)
    return state


def fold_one(work: Pass[S], state: S, frame: Frame) -> S:
    """The state after one more frame. Raised outside any handler, so that nothing carries private values."""
    worked, after = attempt(lambda: work.fold(state, frame))
    if not worked or after is None:
        raise PrivateComputationError(_FAILED)
    return after


def merged(work: Pass[S], states: Iterable[S]) -> S:
    """All parts together."""
    total = work.empty()
    for state in states:
        total = work.merge(total, state)
    return total
