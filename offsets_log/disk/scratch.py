"""Keep bytes and arrays in temporary files, where they must be joined or sorted and may be larger than the memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from offsets_log.disk.writer import output_errors
from offsets_log.log_format.segment import Buffer


def _temporary_file(stack: ExitStack) -> IO[bytes]:
    def close() -> None:
        with suppress(OSError):  # nobody needs what a full disk did not take
            file.close()

    with output_errors(tempfile.gettempdir()):
        file = tempfile.TemporaryFile()  # noqa: SIM115
    stack.callback(close)
    return file


def mapped(stack: ExitStack, pieces: Iterable[Buffer]) -> Buffer:
    """Join pieces of bytes in a temporary file and map it; return empty bytes if there are none.

    Args:
        stack: closes the file when it ends.

    Raises:
        OutputError: they do not fit the folder for temporary files.
    """
    file = _temporary_file(stack)
    with output_errors(tempfile.gettempdir()):
        for piece in pieces:
            file.write(piece)
        file.flush()
        if not file.tell():
            return b""
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Scratch:
    """An array that grows, in a temporary file.

    Args:
        stack: closes the file when it ends.
        shape: initial shape; growing doubles its first number.

    Attributes:
        array: replaced by a larger array over the same bytes when it grows.
    """

    def __init__(self, stack: ExitStack, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self._file = _temporary_file(stack)
        self._dtype = np.dtype(dtype)
        self.array: Any = self._mapped(shape)

    def grow(self) -> None:
        """Double the room.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        count, *rest = self.array.shape
        self.array = self._mapped((2 * count, *rest))

    def _mapped(self, shape: tuple[int, ...]) -> Any:
        size = self._dtype.itemsize * int(np.prod(shape))
        with output_errors(tempfile.gettempdir()):
            # Reserve the space before writing: a mapping has no way to report that the disk is full.
            take_room = getattr(os, "posix_fallocate", None)  # not on macOS
            take_room(self._file.fileno(), 0, size) if take_room else self._file.truncate(size)
            mapped = mmap.mmap(self._file.fileno(), size)
        return np.frombuffer(mapped, self._dtype).reshape(shape)


class Pieces:
    """Arrays of numbers in rows, in a temporary file.

    Args:
        stack: closes the file when it ends.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._file = _temporary_file(stack)
        self._places: list[tuple[int, tuple[int, ...]]] = []
        self._end = 0

    def append(self, array: npt.NDArray[np.int64]) -> None:
        """Take another.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        self._places.append((self._end, array.shape))
        self.write(len(self._places) - 1, array)
        self._end += array.nbytes

    def __len__(self) -> int:
        return len(self._places)

    def read(self, number: int) -> npt.NDArray[np.int64]:
        """Return one."""
        place, shape = self._places[number]
        with output_errors(tempfile.gettempdir()):
            self._file.seek(place)
            data = self._file.read(8 * int(np.prod(shape)))
        return np.frombuffer(bytearray(data), np.int64).reshape(shape)

    def write(self, number: int, array: npt.NDArray[np.int64]) -> None:
        """Replace one by another of its size. Raises OutputError."""
        with output_errors(tempfile.gettempdir()):
            self._file.seek(self._places[number][0])
            self._file.write(np.ascontiguousarray(array).tobytes())
