"""Unpack gzip and zstd bytes in memory as far as possible, within limits.

A stream that is cut or damaged yields what comes before that place; `Problems` records what is wrong with it.
"""

from __future__ import annotations

import io
import lzma
import mmap
import struct
import tarfile
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import cramjam

from offsets_log.errors import InputError
from offsets_log.log_format.segment import Buffer

MAX_MEMBER_BYTES = 2 << 30
MAX_UNPACKED_BYTES = 8 << 30
MAX_RATIO = 1100
"""Limit of unpacked to packed bytes; deflate cannot exceed 1032.

Beyond it only `FREE_BYTES` are unpacked, although zstd can shrink preallocated zeros further.
"""
FREE_BYTES = 512 << 20
CHUNK_BYTES = 1 << 20
INPUT_BYTES = 1 << 16
GZIP_BITS = zlib.MAX_WBITS | 16
"""Window bits for `zlib` to read a gzip member with its header and checksum."""

BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    cramjam.DecompressionError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    RuntimeError,
    MemoryError,
)
"""Exceptions that the readers of archives raise for bytes that make no sense."""


@dataclass(slots=True)
class Problems:
    """The problems of an archive: a sentence, and its position in bytes of the archive's file (None: unknown)."""

    found: list[tuple[str, int | None]] = field(default_factory=list)

    def note(self, problem: str | Exception, position: int | None) -> None:
        """Add a problem; an error is noted by its own message."""
        words = problem if isinstance(problem, str) else str(problem) or type(problem).__name__
        self.found.append((words, position))

    def __bool__(self) -> bool:
        return bool(self.found)


class Budget:
    """A limit for what is unpacked into memory."""

    def __init__(self, file: str, packed_bytes: int) -> None:
        self.file = file
        self.left = min(MAX_UNPACKED_BYTES, max(FREE_BYTES, MAX_RATIO * packed_bytes))

    def too_large(self) -> InputError:
        """Return the error that says so."""
        return InputError("it unpacks to too many bytes for memory; unpack it and name the files", file=self.file)

    def read(
        self, stream: IO[bytes] | io.BufferedIOBase | io.RawIOBase, limit: int = -1, *, is_preallocated: bool = False
    ) -> Buffer:
        """Read a stream to its end.

        Args:
            limit: read at most this many bytes; −1 for all.
            is_preallocated: whether most of it may be zeros, such as an index of 10 MiB: these take no memory.

        Raises:
            InputError: there are too many bytes.
        """
        out = bytearray()
        size = 0
        while chunk := stream.read(CHUNK_BYTES if limit < 0 else min(CHUNK_BYTES, limit - size)):
            size += len(chunk)
            if not (is_preallocated and chunk.count(0) == len(chunk)):
                out += bytes(size - len(chunk) - len(out)) + chunk
                self.left -= len(chunk)
            if self.left < 0 or size > MAX_MEMBER_BYTES:
                raise self.too_large()
        return bytes(out) if len(out) == size else _with_zeros(out, size)


def _with_zeros(head: bytearray, size: int) -> memoryview:
    """Return the bytes followed by zeros up to a size, in pages that are never touched."""
    room = mmap.mmap(-1, size)
    room[: len(head)] = bytes(head)
    return memoryview(room).toreadonly()


class Reader(io.RawIOBase):
    """A file over a buffer that is not copied.

    Args:
        is_packed: whether the buffer was unpacked from a file.
    """

    def __init__(self, view: memoryview, *, is_packed: bool = False) -> None:
        self._view = view
        self._is_packed = is_packed
        self._position = 0

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position

    @property
    def packed_position(self) -> int | None:
        """The position of the next byte in the file; None where the file holds it packed."""
        return None if self._is_packed else min(self._position, len(self._view))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move as a file does; reading after the end returns nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise ValueError("a place before the file's beginning")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return that many bytes, fewer at the end."""
        end = len(self._view) if size is None or size < 0 else self._position + size
        data = self._view[self._position : end].tobytes()
        self._position += len(data)
        return data


class Inflated(io.RawIOBase):
    """Deflated data as a file that is read forwards; it ends where the data end or make no sense.

    Args:
        bits: the window bits of `zlib`; with those of gzip, members may follow each other.
        start: where the data begin in the view.

    Attributes:
        packed_position: position of the next byte that was not unpacked.
    """

    def __init__(self, view: memoryview, problems: Problems, *, bits: int = GZIP_BITS, start: int = 0) -> None:
        self.packed_position = start
        self._view = view
        self._problems = problems
        self._bits = bits
        self._unpacker = zlib.decompressobj(bits)
        self._held = b""
        self._position = 0
        self._is_at_end = False

    def seekable(self) -> bool:
        """Return True; `seek` moves forwards only."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte in the unpacked data."""
        return self._position

    def head(self, size: int) -> bytes:
        """Return that many of the next bytes, which will be read again."""
        while len(self._held) < size and (more := self._unpack(size)):
            self._held += more
        return self._held[:size]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move forwards to a position. Raises ValueError for any other move."""
        left = offset - self._position
        if whence != io.SEEK_SET or left < 0:
            raise ValueError("a packed file is read forwards only")
        while left and (skipped := self.read(min(left, CHUNK_BYTES))):
            left -= len(skipped)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return that many bytes, fewer at the end."""
        wanted = CHUNK_BYTES if size is None or size < 0 else size
        parts = [self._held[:wanted]]
        self._held = self._held[wanted:]
        found = len(parts[0])
        while found < wanted and (more := self._unpack(wanted - found)):
            parts.append(more)
            found += len(more)
        self._position += found
        return b"".join(parts)

    def _unpack(self, most: int) -> bytes:
        """Unpack some of the bytes that follow; return none at the end."""
        while not self._is_at_end:
            data = self._unpacker.unconsumed_tail
            if not data:
                data = self._view[self.packed_position : self.packed_position + INPUT_BYTES].tobytes()
                self.packed_position += len(data)
            try:
                out = self._unpacker.decompress(data, most)
            except zlib.error as error:
                self._end(error)
                return b""
            if self._unpacker.eof:
                self._next_member()
            elif not data and not out:
                self._end("it is cut off")
            if out:
                return out
        return b""

    def _next_member(self) -> None:
        self.packed_position -= len(self._unpacker.unused_data)
        rest = self._view[self.packed_position : self.packed_position + INPUT_BYTES].tobytes()
        self._is_at_end = self._bits != GZIP_BITS or not rest.strip(b"\0")  # tapes pad with zeros
        self._unpacker = zlib.decompressobj(self._bits)

    def _end(self, problem: str | zlib.error) -> None:
        self._is_at_end = True
        self._problems.note(problem, self.packed_position)


def unpack_zstd(view: memoryview, budget: Budget, problems: Problems) -> memoryview:
    """Unpack a zstd stream into all the room that the budget allows: cramjam takes whole frames only.

    Pages that are not touched cost nothing. A broken stream yields the whole blocks before the place where it breaks.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    room = mmap.mmap(-1, budget.left, flags=flags)
    try:
        size = cramjam.zstd.decompress_into(view, room)
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise budget.too_large() from None
        is_cut = "incomplete" in str(error)
        problems.note("it is cut off" if is_cut else error, len(view) if is_cut else None)
        size = _size_of_broken(view)
    return memoryview(room)[:size].toreadonly()


def _size_of_broken(view: memoryview) -> int:
    """Return how many bytes come before the place where a stream breaks; they are known to fit."""
    out = cramjam.Buffer()
    with suppress(cramjam.DecompressionError):
        cramjam.zstd.decompress_into(view, out)
    return len(out)
