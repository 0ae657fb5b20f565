"""Parts of an output that are made side by side and go out one after the other."""

from __future__ import annotations

import marshal
import mmap
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

from offsets_log.disk.writer import output_errors
from offsets_log.log_format.segment import Buffer

BYTES_IN_MEMORY = 1 << 26
"""Of one part; the rest of a larger one waits in a temporary file."""
GROWING_BYTES_IN_MEMORY = 1 << 22
PIECE = 1 << 20


class Growing:
    """Bytes that grow: in memory as long as they are few, else in a temporary file that is mapped to be read."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._file: IO[bytes] | None = None

    def append(self, data: bytes) -> None:
        """Some more.

        Raises:
            OutputError: they do not fit the folder for temporary files.
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
        """All of them, read-only; none come behind."""
        if self._file is None:
            return memoryview(self._held).toreadonly()
        self._write()
        return memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))


@dataclass(slots=True)
class _Part:
    """Pieces that are kept as they are; where they are too many all of them stand in the file."""

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
        """All pieces; none is there any more."""
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
    """Parts by their numbers; different ones may be written by different threads. A context manager."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}

    def write(self, number: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Keep a part, instead of what was there before. The pieces are not changed any more.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        self._drop(number)
        part = self._parts[number] = _Part()
        for piece in pieces:
            part.add(piece)

    def release(self, number: int, write: Callable[[bytes | memoryview], object]) -> None:
        """Let a part go out, in pieces."""
        for piece in self._parts[number].take():
            write(piece)
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
    """Plain values put aside in their order, the most in a temporary file. A context manager."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(BYTES_IN_MEMORY >> 2)  # noqa: SIM115
        self._sizes: list[int] = []

    def add(self, value: Any) -> None:
        """Put a value behind the others: of numbers, texts, bytes, tuples and lists.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        data = marshal.dumps(value)
        with output_errors(tempfile.gettempdir()):
            self._file.write(data)
        self._sizes.append(len(data))

    def __iter__(self) -> Iterator[Any]:
        """All values; nothing is put behind them any more."""
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
