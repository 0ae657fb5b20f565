"""Append lines to a file; lines announced as durable are on the disk before the call returns."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offsets_log.disk.writer import output_errors
from offsets_log.errors import OutputError


class GrowingFile:
    """An open file locked for this process; use `growing_file`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        self._is_whole = False

    def read(self) -> str:
        """Return its contents, decoded as UTF-8; the last line may be cut off."""
        return self._path.read_bytes().decode("utf-8", "replace")

    def append(self, text: str, is_durable: bool) -> None:
        """Add lines, overwriting a last line that was cut off.

        Args:
            is_durable: return only when the lines are on the disk, so that they outlast the machine and not only the
                process.

        Raises:
            OutputError: the file cannot be written.
        """
        with output_errors(self._path):
            if not self._is_whole:
                os.ftruncate(self._descriptor, self._path.read_bytes().rfind(b"\n") + 1)
                self._is_whole = True
            data = text.encode()
            while data:
                data = data[os.write(self._descriptor, data) :]
            if is_durable:
                os.fsync(self._descriptor)


@contextmanager
def growing_file(path: str | Path) -> Iterator[GrowingFile]:
    """Open a file to append to, and create it if it is missing.

    Raises:
        OutputError: it cannot be opened, or another process holds it open in the same way.
    """
    path = Path(path)
    with output_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(
                "another run writes it at this moment: let that end, or write elsewhere", file=str(path)
            ) from None
        with output_errors(path):
            _sync(path.parent)
        yield GrowingFile(path, descriptor)
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    """Sync the folder, so that the file's name is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
