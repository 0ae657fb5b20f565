"""Members of archives: what is read of them, and how their paths are taken."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable
from typing import NamedTuple

from offsets_log.disk.folder import is_read_for_its_end
from offsets_log.disk.tails import Tail
from offsets_log.log_format.segment import Buffer

Wanted = Callable[[str, str], bool]
"""Tells whether to read a member, by the last component of its directory and its name."""

MAX_OFFSET = (1 << 63) - 1


class Member(NamedTuple):
    """A file that was read from an archive.

    Attributes:
        modified_ms: when it was last written; None where the archive does not tell in a time zone.
        kept_from: of a segment of which only the end was kept the first offset there.
    """

    data: Buffer
    modified_ms: int | None = None
    kept_from: int | None = None


class Members(dict[str, Member]):
    """Members by path.

    Attributes:
        ends: directory → segments there of which only the end matters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[str, list[str]] = {}

    def add_end(self, path: str, tail: Tail, size_bytes: int) -> None:
        """Add a segment of which only the end matters. Of those before the last two of a partition only names count.

        Raises:
            ReadError: it is cut off. Then nothing tells where the log ends, and nothing of it is kept.
        """
        names = self.ends.setdefault(posixpath.dirname(path), [])
        names.append(path)
        self[path] = Member(tail.data, kept_from=tail.first_offset)
        if tail.size_bytes < size_bytes:
            for name in names:
                self.pop(name, None)
            raise tarfile.ReadError(f"it ends inside {path}")
        for name in sorted(names)[:-2]:
            self[name] = Member(b"", kept_from=MAX_OFFSET)


def normal(path: str) -> str:
    """Return a member's path as POSIX has it; programs of Windows write backslashes."""
    return posixpath.normpath(path.replace("\\", "/")).lstrip("/")


def place(path: str) -> tuple[str, str]:
    """Return the last component of a member's directory, and its name."""
    directory, name = posixpath.split(path)
    return posixpath.basename(directory), name


def is_of_end(path: str) -> bool:
    """Return whether only the end of a member matters."""
    return is_read_for_its_end(*place(path))


def is_of_index(path: str) -> bool:
    """Whether it is the index of a segment of which only the end is kept, where it finds nothing."""
    return path.endswith(".index") and is_of_end(path.removesuffix(".index") + ".log")
