"""Keep parts of an output that are made side by side and written one after the other."""

from __future__ import annotations

import marshal
import mmap
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

from offsets_log.disk.writer import output_errors
from offsets_log.log_format.segment import Buffer

BYTES_IN_MEMORY = 1 << 26
"""Bytes of one part kept in memory; all of a larger part waits in a temporary file."""
GROWING_BYTES_IN_MEMORY = 1 << 22
PIECE = 1 << 20


class Growing:
    """Bytes that grow: in memory while they are few, else in a temporary file that is mapped for reading."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._file: IO[bytes] | None = None

    def append(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            OutputError: the bytes do not fit the folder for temporary files.
        """
        self._held += data
        if len(self._held) > GROWING_BYTES_IN_MEMORY:
            self._write()

    def _write(self) -> None:
        with output_errors(tempfile.gettempdir()):
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.write(self._held)
            self._file.flush()
        self._held = bytearray()

    def buffer(self) -> Buffer:
        """Return all bytes, read-only; none may be appended afterwards."""
        if self._file is None:
            return memoryview(self._held).toreadonly()
        self._write()
        return memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))


@dataclass(slots=True)
class _Part:
    """The pieces of a part, uncopied; once they are too many, all of them are in a file."""

    pieces: deque[bytes | memoryview] = field(default_factory=deque)
    size_bytes: int = 0
    file: IO[bytes] | None = None

    def add(self, piece: bytes | memoryview) -> None:
        self.size_bytes += len(piece)
        self.pieces.append(piece)
        if self.file is not None or self.size_bytes > BYTES_IN_MEMORY:
            self._put_away()

    def _put_away(self) -> None:
        with output_errors(tempfile.gettempdir()):
            if self.file is None:
                self.file = tempfile.TemporaryFile()  # noqa: SIM115
            while self.pieces:
                self.file.write(self.pieces.popleft())

    def take(self) -> Iterator[bytes | memoryview]:
        """Yield all pieces, and remove them."""
        while self.pieces:
            yield self.pieces.popleft()
        if self.file is not None:
            self.file.seek(0)
            while piece := self.file.read(PIECE):
                yield piece

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class Spool:
    """Parts by number; several threads may write different ones. A context manager."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}

    def write(self, number: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Keep a part, and replace what was there before. The pieces must not be changed afterwards.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        self._drop(number)
        part = self._parts[number] = _Part()
        for piece in pieces:
            part.add(piece)

    def take(self, number: int) -> Iterator[bytes | memoryview]:
        """Yield the pieces of a part, and drop it."""
        yield from self._parts[number].take()
        self._drop(number)

    def _drop(self, number: int) -> None:
        if (part := self._parts.pop(number, None)) is not None:
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in list(self._parts):
            with suppress(OSError):
                self._drop(number)


class Shelf:
    """Plain values kept in order, most of them in a temporary file. A context manager."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(BYTES_IN_MEMORY >> 2)  # noqa: SIM115
        self._sizes: list[int] = []

    def add(self, value: Any) -> None:
        """Append a value, made of numbers, texts, bytes, tuples and lists.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        data = marshal.dumps(value)
        with output_errors(tempfile.gettempdir()):
            self._file.write(data)
        self._sizes.append(len(data))

    def __iter__(self) -> Iterator[Any]:
        """Yield all values; none may be added afterwards."""
        self._file.seek(0)
        for size in self._sizes:
            yield marshal.loads(self._file.read(size))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()
