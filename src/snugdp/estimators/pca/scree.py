"""The released spectrum as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def scree(spectrum: NDArray[np.float64], error: float, chosen: int, ax: Any = None) -> Any:
    """Eigenvalues with an error band, the chosen ones filled. Matplotlib is loaded here."""
    if ax is None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("a scree plot needs matplotlib: pip install 'snugdp[plot]'") from None
        ax = Figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
    places = np.arange(1, len(spectrum) + 1)
    ax.plot(places, spectrum, "-", linewidth=1.0, color="C0")
    ax.plot(places[:chosen], spectrum[:chosen], "o", color="C0", label=f"{chosen} chosen")
    ax.plot(places[chosen:], spectrum[chosen:], "o", color="C0", markerfacecolor="white")
    if np.isfinite(error):
        ax.fill_between(places, spectrum - error, spectrum + error, alpha=0.2, color="C0", label="19 of 20")
    ax.axhline(0.0, linewidth=0.8, color="0.6")
    ax.set_xlabel("component")
    ax.set_ylabel("variance, as released")
    ax.legend(frameon=False)
    return ax
