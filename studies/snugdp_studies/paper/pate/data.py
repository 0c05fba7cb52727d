"""The images, teachers and votes of the PATE experiments: public pictures, so nothing here has to be protected.

Teachers and students are kernel ridge classifiers with the Gaussian kernel, one linear system each.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.simulation import shuffled
from snugdp_studies.paper.data import PICTURES, Public, found

Pixels = NDArray[np.float32]
Integers = NDArray[np.int64]
Watch: TypeAlias = Callable[[Iterable[int], int], Iterable[int]]

PUBLIC_ROWS = 300  # labelled public pictures
PROXY_TEACHERS = 50  # for each half of them
TESTED = 1000  # the last test images
_UNSIGNED = 8  # the code of unsigned bytes in an idx file
_BLOCK = 4096  # rows of a kernel at a time


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures as rows of numbers from 0 to 1, and the class of each."""

    rows: Pixels
    labels: Integers

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, places: Integers | slice) -> Pictures:
        """Some of them."""
        return Pictures(self.rows[places], self.labels[places])


@dataclass(frozen=True, eq=False)
class Mnist:
    """A folder in the format of MNIST: the private pictures of the teachers, and the public ones."""

    train: Pictures
    test: Pictures

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(max(self.train.labels.max(), self.test.labels.max())) + 1


def read_idx(file: Path) -> NDArray[np.uint8]:
    """The array in an idx file of unsigned bytes, plain or gzipped."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED:
        raise ValueError(f"{file} is no idx file of unsigned bytes")
    axes = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=axes, offset=4).astype(int).tolist()
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes)
    if values.size != np.prod(shape, dtype=int):
        raise ValueError(f"{file} ends too early, or too late, for the shape that it states")
    return values.reshape(shape)


def mnist(folder: Path) -> Mnist:
    """The four files of MNIST in a folder, each plain or with the ending .gz."""
    train, train_labels, test, test_labels = (read_idx(_existing(folder, file)) for file in PICTURES)
    return Mnist(_images(train, train_labels), _images(test, test_labels))


def _existing(folder: Path, file: Public) -> Path:
    if (path := found(folder, file)) is None:
        raise FileNotFoundError(
            f"there is no {file.name} or {file.name}.gz in {folder}: name a folder with the files of MNIST"
        )
    return path


def _images(pixels: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Pictures:
    if len(pixels) != len(labels):
        raise ValueError("there are not as many labels as images")
    return Pictures((pixels.reshape(len(pixels), -1) / 255).astype(np.float32), labels.astype(np.int64))


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """One regression for each class, by the kernel exp(-gamma |x - x'|^2); the largest answer wins."""

    rows: Pixels
    weights: Pixels
    gamma: float

    @classmethod
    def fit(cls, images: Pictures, classes: int, gamma: float = 0.02, ridge: float = 0.1) -> KernelRidge:
        """Solve the linear system."""
        system = _kernel(images.rows, images.rows, gamma).astype(np.float64)
        system[np.diag_indices(len(images))] += ridge
        weights = np.linalg.solve(system, np.eye(classes)[images.labels])
        return cls(images.rows, weights.astype(np.float32), gamma)

    def predict(self, rows: Pixels) -> Integers:
        """The class of every row."""
        parts = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        classes = [(_kernel(part, self.rows, self.gamma) @ self.weights).argmax(axis=1) for part in parts]
        return np.concatenate(classes).astype(np.int64)

    def accuracy(self, images: Pictures) -> float:
        """The share of right answers."""
        return float((self.predict(images.rows) == images.labels).mean())


def _kernel(one: Pixels, other: Pixels, gamma: float) -> Pixels:
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None, :] - 2 * (one @ other.T)
    kernel: Pixels = np.exp(-gamma * squares)
    return kernel


@dataclass(frozen=True, eq=False)
class Votes:
    """Histograms of public queries, and sets of queries that were chosen beforehand, if there are any."""

    histograms: Integers
    labels: Integers | None = None
    sets: Mapping[str, Integers] = field(default_factory=dict)

    @property
    def teachers(self) -> int:
        """How many teachers voted."""
        return int(self.histograms[0].sum())


def quietly(numbers: Iterable[int], total: int) -> Iterable[int]:
    """A watch that shows nothing."""
    return numbers


def voted(
    private: Pictures, teachers: int, queries: Pixels, classes: int, *, rows: int | None = None, watch: Watch = quietly
) -> Integers:
    """The histograms of teachers who are trained on disjoint parts, of equal size, of shuffled pictures.

    With ``rows`` every teacher is trained on so many pictures; parts then overlap if there are not enough for all.
    """
    size = len(private) // teachers if rows is None else rows
    if size < 1 or size > len(private):
        raise ValueError(f"{len(private)} pictures are not enough for {teachers} teachers")
    histograms = np.zeros((len(queries), classes), dtype=np.int64)
    parts = len(private) // size
    for teacher in watch(range(teachers), teachers):
        start = teacher % parts * size
        mine = shuffled(teacher // parts, len(private))[start : start + size]
        answers = KernelRidge.fit(private.part(mine), classes).predict(queries)
        histograms[np.arange(len(queries)), answers] += 1
    return histograms


@dataclass(frozen=True, eq=False)
class Proxy:
    """Public votes on public queries, by teachers who share a public sample: the whole of it, or either half.

    Queries that were chosen by the votes of one half look better to it than they are. The other half knows better.
    """

    whole: Integers
    first: Integers
    second: Integers


def proxied(public: Pictures, queries: Pixels, classes: int) -> Proxy:
    """The proxy that a few labelled public pictures make: parts of a third of them, or of half of either half."""
    middle = len(public) // 2
    whole = voted(public, 2 * PROXY_TEACHERS, queries, classes, rows=max(1, len(public) // 3))
    halves = (public.part(slice(0, middle)), public.part(slice(middle, 2 * middle)))
    votes = (voted(half, PROXY_TEACHERS, queries, classes, rows=max(1, middle // 2)) for half in halves)
    return Proxy(whole, *votes)


def public_part(images: Pictures) -> tuple[Pictures, Pictures, Pictures]:
    """Public pictures in three parts: to ask about, a labelled sample for a proxy, and to test students on."""
    last = len(images) - min(TESTED, len(images) // 2)
    first = last - min(PUBLIC_ROWS, last // 2)
    return images.part(slice(0, first)), images.part(slice(first, last)), images.part(slice(last, None))


def stored(file: Path) -> Votes:
    """Votes from a file.

    .npz: ``votes``, and if there are any ``labels`` and sets of queries ``idx_NAME``. .json: histograms of each set
    under its name.
    """
    if file.suffix == ".json":
        return _checked(_listed(json.loads(file.read_text()), file), file)
    with np.load(file) as content:
        if "votes" not in content:
            raise ValueError(f"{file} holds no array with the name votes: one row for a query, one column for a class")
        labels = content["labels"].astype(np.int64) if "labels" in content else None
        sets = {name[4:]: content[name].astype(np.int64) for name in content if name.startswith("idx_")}
        return _checked(Votes(content["votes"].astype(np.int64), labels, sets), file)


def _listed(content: Any, file: Path) -> Votes:
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{file} must hold histograms of sets of queries, each set under its name")
    parts = {str(name): np.array(rows, dtype=np.int64) for name, rows in content.items()}
    ends = np.cumsum([len(rows) for rows in parts.values()])
    sets = {name: np.arange(end - len(parts[name]), end) for name, end in zip(parts, ends.tolist(), strict=True)}
    return Votes(np.concatenate(list(parts.values())), None, sets)


def _checked(votes: Votes, file: Path) -> Votes:
    histograms = votes.histograms
    if histograms.ndim != 2 or not histograms.size or len(set(histograms.sum(axis=1).tolist())) != 1:
        raise ValueError(f"the votes in {file} must be histograms that add up to the same number of teachers")
    return votes
