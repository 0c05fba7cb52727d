"""File systems whose locks hold on one machine only: refused, unless somebody says that one machine uses them."""

import sys
from pathlib import Path

import pytest

from snugdp import Budget, Cost, Ledger, LedgerError
from snugdp.ledger.stores import file_systems
from snugdp.ledger.stores.file_systems import network_file_system, of_statfs
from tests.ledger.conftest import TENTH

REFUSED = (
    "nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "fuse.glusterfs", "ceph", "lustre", "virtiofs", "vboxsf",
)  # fmt: skip
LOCAL = ("ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fuseblk", "apfs", "f2fs", "unheard-of")


def mounted(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str, point: str = "") -> None:
    """Let the system say that this folder is a mount of that type."""
    if sys.platform == "darwin":
        monkeypatch.setattr(file_systems, "_mac", lambda _: kind)
        return
    escaped = (point or str(folder)).replace(" ", "\\040")
    lines = (
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
        f"30 22 0:40 / {escaped} rw shared:1 master:2 - autofs systemd-1 rw",
        f"31 22 0:41 / {escaped} rw shared:1 - {kind} server:/export rw,local_lock=all",
        "a line that nobody understands",
    )
    path = folder.parent / "mountinfo"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(file_systems, "MOUNTS", str(path))


def test_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a disk"
    folder.mkdir()
    for kind in REFUSED:
        mounted(monkeypatch, folder, kind)
        assert network_file_system(str(folder / "l")) == kind
        if sys.platform != "darwin":
            assert network_file_system(str(tmp_path / "l")) is None  # beside it
            assert network_file_system(f"{folder} of another name") is None
    for kind in LOCAL:
        mounted(monkeypatch, folder, kind)
        assert network_file_system(str(folder / "l")) is None
    mounted(monkeypatch, folder, "nfs4", "/")
    monkeypatch.setattr(file_systems, "MOUNTS", str(tmp_path / "nothing"))
    assert network_file_system(str(folder / "l")) is None or sys.platform == "darwin"


@pytest.mark.parametrize(
    ("name", "local", "kind"),
    [("apfs", True, "apfs"), ("smbfs", False, "smbfs"), ("macfuse", True, "macfuse"), ("x", False, "nfs")],
)  # fmt: skip
def test_what_macos_says(name: str, local: bool, kind: str) -> None:
    flags = (0x1000 if local else 0).to_bytes(4, sys.byteorder)
    assert of_statfs(bytes(64) + flags + bytes(4) + name.encode().ljust(16, b"\0") + bytes(2048)) == kind


def test_a_network_is_refused_and_allowed_for_the_record(
    somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    mounted(monkeypatch, folder, "nfs4")
    with pytest.raises(LedgerError, match=r"type nfs4.*PostgreSQL.*network_file_system=True"):
        Ledger.open(folder / "l", dataset="p", budget=Budget(1))
    assert [path.name for path in folder.iterdir() if path.suffix != ".lock"] == []
    with Ledger.open(folder / "l", dataset="p", budget=Budget(1), network_file_system=True) as ledger:
        assert [one.file_system for one in ledger.adoptions] == ["nfs4"]
        ledger.charge(TENTH, "x")
    with Ledger.open(folder / "l", network_file_system=True) as ledger:  # it is said once
        assert len(ledger.adoptions) == 1
    with Ledger.open(str(folder / "l")) as ledger:
        assert ledger.spent == Cost(epsilon=0.1)


def test_a_ledger_that_comes_to_a_network(somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    Ledger.open(folder / "l", dataset="p", budget=Budget(1)).close()
    mounted(monkeypatch, folder, "cifs")
    with pytest.raises(LedgerError, match="type cifs"):
        Ledger.open(folder / "l")
    with pytest.raises(LedgerError, match="type cifs"):
        Ledger.adopt(folder / "l", reason="x")
    with Ledger.adopt(folder / "l", reason="one machine only", network_file_system=True) as ledger:
        assert ledger.adoptions[0].file_system == "cifs"
