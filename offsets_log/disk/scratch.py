"""Bytes and arrays in temporary files: what must be put together or in order, and may be larger than the memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.disk.writer import output_errors
from offsets_log.log_format.segment import Buffer


def mapped(stack: ExitStack, pieces: Iterable[Buffer]) -> Buffer:
    """Bytes that may be more than the memory takes, put together in a temporary file; none of them if there are none.

    Args:
        stack: when it ends, so does the file.

    Raises:
        OutputError: they do not fit the folder for temporary files.
    """
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    with output_errors(tempfile.gettempdir()):
        for piece in pieces:
            file.write(piece)
        file.flush()
        if not file.tell():
            return b""
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Scratch:
    """An array that grows.

    Args:
        stack: when it ends, so does the file.
        shape: to begin with; the first number doubles.

    Attributes:
        array: exchanged for another on the same bytes when it grows.
    """

    def __init__(self, stack: ExitStack, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self._file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._dtype = np.dtype(dtype)
        self.array: Any = self._mapped(shape)

    def grow(self) -> None:
        """Twice the room.

        Raises:
            OutputError: it does not fit the folder for temporary files.
        """
        count, *rest = self.array.shape
        self.array = self._mapped((2 * count, *rest))

    def _mapped(self, shape: tuple[int, ...]) -> Any:
        size = self._dtype.itemsize * int(np.prod(shape))
        with output_errors(tempfile.gettempdir()):
            # Room is taken before it is written to: a mapping has no way to say that the disk is full.
            take_room = getattr(os, "posix_fallocate", None)  # not on macOS
            take_room(self._file.fileno(), 0, size) if take_room else self._file.truncate(size)
            mapped = mmap.mmap(self._file.fileno(), size)
        return np.frombuffer(mapped, self._dtype).reshape(shape)
