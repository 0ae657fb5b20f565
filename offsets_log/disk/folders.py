"""Write files from pieces, and refuse output folders inside inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from offsets_log.disk.folder import IN_DATA_DIRECTORY, DirectoryName
from offsets_log.disk.urls import is_url, without_secrets
from offsets_log.errors import OutputError
from offsets_log.log_format.segment import Buffer

WRITTEN_AT_ONCE = 64 << 20


def write_file(path: Path, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
    """Write a new file.

    Args:
        modified_ms: modification time to set, in epoch milliseconds.
    """
    with path.open("xb") as file:
        for piece in pieces:
            view = memoryview(piece)
            for at in range(0, len(view), WRITTEN_AT_ONCE):
                file.write(view[at : at + WRITTEN_AT_ONCE])
    if modified_ms is not None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


class Place(Protocol):
    """A new directory into which folders are written."""

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Write a file.

        Args:
            name: its name, with that of its folder before it if it is in one.
            modified_ms: modification time to set, in epoch milliseconds, if the place keeps such times.
        """


@dataclass(frozen=True, slots=True)
class DiskPlace:
    """A directory on a disk of this machine."""

    path: str

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Implement `Place.write`."""
        target = Path(self.path, name)
        target.parent.mkdir(exist_ok=True)
        write_file(target, pieces, modified_ms)


def refuse_inside_inputs(target: str, given: Sequence[str], files: Iterable[str]) -> None:
    """Refuse an output that lies where inputs do.

    Args:
        given: paths that a user named.
        files: files that were opened.

    Raises:
        OutputError: the output would be in a given directory, in a partition's directory, in the data directory
            around it, or in a store.
    """
    if is_url(target):
        raise OutputError("what is written is written on this machine: give a path of it", file=without_secrets(target))
    directories = {Path(path) for path in given if Path(path).is_dir()}
    for parent in {Path(file).parent for file in files}:
        if DirectoryName.parse(parent.name).may_be_offsets:
            directories.add(parent)
            if any((parent.parent / name).exists() for name in IN_DATA_DIRECTORY):
                directories.add(parent.parent)
    resolved = Path(target).resolve()
    for directory in directories:
        if resolved.is_relative_to(directory.resolve()):
            raise OutputError(f"this is inside of {directory}, which is an input: write elsewhere", file=target)
