"""Bytes inside gzip and zstd, unpacked in memory as far as they go, within limits.

A stream that is cut or damaged gives what comes before that place; `Problems` keep what is wrong with it.
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
"""Deflate cannot do better than 1032. Above it only `FREE_BYTES` are unpacked: zstd shrinks preallocated zeros more."""
FREE_BYTES = 512 << 20
CHUNK_BYTES = 1 << 20
INPUT_BYTES = 1 << 16
GZIP_BITS = zlib.MAX_WBITS | 16
"""A gzip member, header and checksum included, for `zlib`."""

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
"""What the readers of archives raise for bytes that make no sense."""


@dataclass(slots=True)
class Problems:
    """What is wrong with an archive: in words, and where, in bytes from the begin of its file (None: not known)."""

    found: list[tuple[str, int | None]] = field(default_factory=list)

    def note(self, problem: str | Exception, position: int | None) -> None:
        """One more; an error in its own words."""
        words = problem if isinstance(problem, str) else str(problem) or type(problem).__name__
        self.found.append((words, position))

    def __bool__(self) -> bool:
        return bool(self.found)


class Budget:
    """How much may still be unpacked into memory."""

    def __init__(self, file: str, packed_bytes: int) -> None:
        self.file = file
        self.left = min(MAX_UNPACKED_BYTES, max(FREE_BYTES, MAX_RATIO * packed_bytes))

    def too_large(self) -> InputError:
        """The error that says so."""
        return InputError("it unpacks to too many bytes for memory; unpack it and name the files", file=self.file)

    def read(
        self, stream: IO[bytes] | io.BufferedIOBase | io.RawIOBase, limit: int = -1, *, is_preallocated: bool = False
    ) -> Buffer:
        """A stream to its end.

        Args:
            limit: so many bytes at most; −1 for all.
            is_preallocated: most of it may be zeros, such as an index of 10 MiB: they take no memory.

        Raises:
            InputError: too many bytes.
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
    """Bytes and the zeros behind them, in pages that nobody touches."""
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

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The next byte's position."""
        return self._position

    @property
    def packed_position(self) -> int | None:
        """The next byte's position in the file; None where it lies packed there."""
        return None if self._is_packed else min(self._position, len(self._view))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of a file; places behind the end hold nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise ValueError("a place before the file's begin")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, fewer at the end."""
        end = len(self._view) if size is None or size < 0 else self._position + size
        data = self._view[self._position : end].tobytes()
        self._position += len(data)
        return data


class Inflated(io.RawIOBase):
    """What deflated data unpack to, as a file that is read forwards; it ends where they end or make no sense.

    Args:
        bits: the kind, as `zlib` calls it; members of gzip may follow each other.
        start: where they begin in the view.

    Attributes:
        packed_position: of the next byte that was not unpacked.
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

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """Forwards."""
        return True

    def tell(self) -> int:
        """The next byte's position in what is unpacked."""
        return self._position

    def head(self, size: int) -> bytes:
        """So many of the next bytes, which are read again."""
        while len(self._held) < size and (more := self._unpack(size)):
            self._held += more
        return self._held[:size]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Forwards only."""
        left = offset - self._position
        if whence != io.SEEK_SET or left < 0:
            raise ValueError("a packed file is read forwards only")
        while left and (skipped := self.read(min(left, CHUNK_BYTES))):
            left -= len(skipped)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, fewer at the end."""
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
        """Some of the bytes that follow; none at the end."""
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
    """cramjam takes whole frames only: give it all the room there may be; untouched pages cost nothing.

    Of a broken one, the whole blocks before that place.
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
    """How many bytes come before the place where it breaks; they are known to fit."""
    out = cramjam.Buffer()
    with suppress(cramjam.DecompressionError):
        cramjam.zstd.decompress_into(view, out)
    return len(out)
