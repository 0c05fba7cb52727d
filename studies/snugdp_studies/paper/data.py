"""The public data of the paper's experiments: found in a folder, or downloaded into it where the network allows.

Checksums are of the unpacked contents, so that a file may be plain or gzipped, and packed by whatever program.
"""

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path

_TABLES = "https://raw.githubusercontent.com/treforevans/uci_datasets/master/uci_datasets"
_PICTURES = "https://storage.googleapis.com/cvdf-datasets/mnist"
_SECONDS = 20.0
_LARGEST = 1 << 26  # bytes of a download, and of what it unpacks to
VOTES, CALIBRATED = "mnist_votes_400.npz", "pate_surrogate_votes.json"


@dataclass(frozen=True)
class Public:
    """One file: where it belongs in the folder, where it comes from, and the SHA-256 of its contents."""

    name: str
    address: str
    sha256: str


TABLES = {
    "bike": Public(
        "bike.csv", f"{_TABLES}/bike/data.csv.gz", "7f5ea8a57009452a944e2c127a063a3494487f516bafe139f85aa623e26648e3"
    ),
    "elevators": Public(
        "elevators.csv",
        f"{_TABLES}/elevators/data.csv.gz",
        "f9c478c8660cc92453acbf652310740975afed544ca8c0e81145cec18dbc3ea9",
    ),
}
PICTURES = tuple(
    Public(stem, f"{_PICTURES}/{stem}.gz", digest)
    for stem, digest in (
        ("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        ("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        ("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        ("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    )
)
_KNOWN = {file.sha256 for file in (*TABLES.values(), *PICTURES)}


def found(folder: Path, file: Public) -> Path | None:
    """Where the file is, plain or gzipped, if it is there."""
    for name in (f"{file.name}.gz", file.name):
        if (path := folder / name).is_file():
            return path
    return None


def needed(folder: Path, file: Public) -> Path:
    """The file, downloaded if it is missing. What is there already is taken as it is; a download has to be right."""
    path = found(folder, file)
    return fetched(folder, file) if path is None else path


def fetched(folder: Path, file: Public) -> Path:
    """Download a file into the folder, or say what to do by hand."""
    goal = folder / f"{file.name}.gz"
    by_hand = f"Download {file.address} by hand, and save it as {goal}"
    try:
        with urllib.request.urlopen(file.address, timeout=_SECONDS) as answer:
            content = answer.read(_LARGEST + 1)
        if len(content) > _LARGEST or digest_of(content) != file.sha256:
            raise ValueError(f"what {file.address} sent is not the file of the experiments. {by_hand}, if you trust it")
        goal.parent.mkdir(parents=True, exist_ok=True)
        part = goal.with_name(f"{goal.name}.part")
        part.write_bytes(content)
        shutil.move(part, goal)  # a file that is there is whole
    except (http.client.HTTPException, urllib.error.URLError, OSError) as error:
        raise OSError(
            f"there is no {file.name} in {folder}, and it cannot be downloaded ({error}). {by_hand}"
        ) from None
    return goal


def digest_of(content: bytes) -> str:
    """The SHA-256 of contents, unpacked if they are gzipped; empty for what cannot be unpacked."""
    if content[:2] == b"\x1f\x8b":
        unpack = zlib.decompressobj(wbits=31)
        try:
            content = unpack.decompress(content, _LARGEST)
        except zlib.error:
            return ""
    return hashlib.sha256(content).hexdigest()


def about(path: Path) -> dict[str, object]:
    """What a figure says about its data: the name, the SHA-256 of the contents, and whether they are as expected."""
    digest = digest_of(path.read_bytes())
    return {"file": path.name, "sha256_of_contents": digest, "as_published": digest in _KNOWN}
