"""The sums of squares and products of a table about a centre, read when they are asked for and kept."""

from __future__ import annotations

from flint import fmpz_mat

from snugdp.numerics.eigenvalues import Spectrum, spectrum
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.layouts.points import Shift, centred
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.rows import Rows


class Scatter(PrivateState):
    """What principal components need of the rows, exactly. Private: it travels as a ``Secret``.

    ``moves``: whether the centre will be released on the way; then the first pass adds rows up, and the second takes
    them from that centre. Otherwise there is one pass. Centres are public and few.
    """

    __slots__ = ("_counts", "_grams", "_spectra", "_sums", "moves", "rows")

    def __init__(self, rows: Rows, moves: bool = False) -> None:
        self.rows, self.moves = rows, moves
        self._sums: tuple[list[int], int] | None = None
        self._grams: dict[Shift | None, list[list[int]]] = {}
        self._counts: dict[Shift | None, int] = {}
        self._spectra: dict[tuple[Shift | None, int], Spectrum] = {}

    def read(self) -> None:
        """The first pass: a table that cannot be read is found here."""
        if self.moves:
            self.sums()
        else:
            self.gram(None)

    def sums(self) -> tuple[list[int], int]:
        """The sum of the rows, in cells, and their number."""
        if self._sums is None:
            *sums, count = self.rows.sums()
            self._sums = sums, count
        return self._sums

    def count(self) -> int:
        """The number of rows, from the first pass."""
        if self.moves:
            return self.sums()[1]
        self.gram(None)
        return self._counts[None]

    def gram(self, shift: Shift | None) -> list[list[int]]:
        """X'X in cells squared, with rows taken from ``shift``; None is the centre of the schema."""
        if shift not in self._grams:
            rows = self.rows
            moments = rows.moments() if shift is None else rows.state(GramPass(centred(rows.schema, shift), rows.bits))
            self._grams[shift], self._counts[shift] = moments.gram(), moments.count()
        return self._grams[shift]

    def between(self, shift: Shift | None, left: fmpz_mat, right: fmpz_mat) -> fmpz_mat:
        """The product left' X'X right, exactly."""
        return left.transpose() * fmpz_mat(self.gram(shift)) * right

    def spectrum(self, shift: Shift | None, unit: int) -> Spectrum:
        """The certified spectrum of X'X / unit."""
        key = shift, unit
        if key not in self._spectra:
            self._spectra[key] = spectrum(self.gram(shift), unit)
        return self._spectra[key]
