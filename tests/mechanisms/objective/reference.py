"""The minimiser in floats, as the library looks for it: for reference values, neither exact nor private."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.objective.float_objective import FloatGradient, FloatObjective, FloatSums
from snugdp.mechanisms.objective.minimiser import close
from snugdp.mechanisms.objective.newton import Newton
from snugdp.tables.losses.losses import Loss


def minimise(
    X: ArrayLike, y: ArrayLike, loss: Loss, *, ridge: float, b: ArrayLike, centre: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The argmin of the summed loss at (x, y), plus ridge / 2 |theta - centre|**2, plus b . theta."""
    rows, target, tilt = (np.asarray(values, dtype=np.float64) for values in (X, y, b))
    middle = np.zeros_like(tilt) if centre is None else np.asarray(centre, dtype=np.float64)

    def summed(work: FloatGradient) -> FloatSums:
        sums = work.empty()
        work.add(sums, rows, target)
        return sums

    table = FloatObjective(FloatGradient(middle, loss, 1.0, 1, True), summed, float(ridge), tilt, middle)
    with np.errstate(all="ignore"):
        return Newton(table.derivatives, table.ridge, 200, close=close(loss), stale=close(loss)).run(middle)[0]
