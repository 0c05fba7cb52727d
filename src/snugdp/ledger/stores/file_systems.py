"""File systems on which a ledger in a file is not safe: several machines see it, and each believes its own locks.

A lock that two handles of one machine respect says nothing about another machine, so no probe can see this: the type
of the file system has to. SQLite's write-ahead log needs memory that all its processes share, too.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys

MOUNTS = "/proc/self/mountinfo"
_NETWORK = {
    "9p", "acfs", "afpfs", "afs", "auristorfs", "beegfs", "ceph", "cifs", "coda", "davfs", "ftp", "gfs", "gfs2",
    "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2",
    "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "webdav",
}  # fmt: skip
_FUSE = re.compile(r"(mac|osx)?fuse(fs)?(\..*)?", re.ASCII)  # not fuseblk, which is a disk of this machine
_LOCAL_FLAG = 0x1000  # MNT_LOCAL of macOS
_NAME_AT, _FLAGS_AT = 72, 64  # in macOS' struct statfs


def network_file_system(path: str) -> str | None:
    """The type of the file system that holds a path, if its locks may hold on one machine only; else None.

    A type that cannot be found out is None: the probe of locks is all there is then.
    """
    kind = _mac(path) if sys.platform == "darwin" else _mounted(path)
    return kind if kind is not None and (kind in _NETWORK or _FUSE.fullmatch(kind)) else None


def _mounted(path: str) -> str | None:
    """Of all mount points above a path the longest, and of several mounts on it the last, as Linux lists them."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split(" ") for line in file]
    except OSError:
        return None
    folder, best, kind = os.path.realpath(path), "", None
    for fields in mounts:
        if "-" not in fields[5:]:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = point in ("/", folder) or folder.startswith(point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[fields.index("-", 5) + 1].strip()
    return kind


def _mac(path: str) -> str | None:
    """The name of the type, or "network" for what is not local by its flag."""
    try:
        libc = ctypes.CDLL(None)
        statfs = getattr(libc, "statfs$INODE64", None) or libc.statfs
        buffer = ctypes.create_string_buffer(4096)
        if statfs(os.fsencode(os.path.dirname(path) or "."), buffer) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return of_statfs(buffer.raw)


def of_statfs(buffer: bytes) -> str | None:
    """The type in macOS' struct statfs."""
    name = buffer[_NAME_AT : _NAME_AT + 16].partition(b"\0")[0].decode("ascii", "replace")
    local = int.from_bytes(buffer[_FLAGS_AT : _FLAGS_AT + 4], sys.byteorder) & _LOCAL_FLAG
    return name if local or name in _NETWORK or _FUSE.fullmatch(name) else "nfs"
