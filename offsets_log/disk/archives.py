"""Archives and packed segments as folders in memory; nothing is ever extracted to a disk.

zip, tar, and either tar or one segment inside gzip or zstd, told by their first bytes. Members of a plain tar are
slices of it; all others are read into memory, within `MAX_MEMBER_BYTES` and a budget for the whole archive.
Symbolic links, devices and members no rule looks at are skipped. A broken archive is one `InputError`.
"""

from __future__ import annotations

import gzip
import io
import lzma
import mmap
import posixpath
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import IO

import cramjam

from offsets_log.disk.folder import IN_DATA_DIRECTORY, Folder, lies_beside, matters_in
from offsets_log.errors import InputError
from offsets_log.log_format.segment import Buffer

MAX_MEMBER_BYTES = 2 << 30
MAX_UNPACKED_BYTES = 8 << 30
MAX_RATIO = 1100
"""Deflate cannot do better than 1032. Above it only `FREE_BYTES` are unpacked: zstd shrinks preallocated zeros more."""
FREE_BYTES = 512 << 20
MAX_TAR_HEADER_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20

PACKED_SUFFIXES = (".gz", ".tgz", ".zst", ".tzst", ".zip", ".tar", ".bz2", ".xz", ".7z", ".lz4")

_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")
"""A frame, or the skippable frame pzstd begins with."""
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_BROKEN = (
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

Wanted = Callable[[str, str], bool]
Members = dict[str, Buffer]


def unpack(file: str, buffer: Buffer, wanted: Wanted = matters_in) -> list[Folder] | Buffer:
    """The folders of an archive; the contents of a single packed file; or the buffer itself if it is neither.

    Args:
        file: name to show.
        wanted: whether to read a member, asked with the own name of its directory and its name.

    Raises:
        InputError: a broken archive, one too large, or a file with an archive's name that is none.
    """
    view = memoryview(buffer)
    budget = _Budget(file, len(view))
    with _broken_archive(file):
        magic = view[:4].tobytes()
        if magic in _ZIP:
            return _folders(file, _zip_members(_Reader(view), wanted, budget))
        if magic[:2] == _GZIP:
            return _unpack_gzip(file, view, wanted, budget)
        unpacked = _unpack_zstd(view, budget) if magic in _ZSTD else view
        if _is_tar(unpacked[:512].tobytes()):
            return _folders(file, _tar_members(_Reader(unpacked), unpacked, wanted, budget))
    if unpacked is view and file.endswith(PACKED_SUFFIXES):
        raise InputError("this is no archive we read (tar, zip, gzip, zstd), or it is empty", file=file)
    return buffer if unpacked is view else unpacked


def unpack_one(file: str, buffer: Buffer) -> Buffer:
    """The contents of a single packed segment. Raises InputError."""
    unpacked = unpack(file, buffer)
    if isinstance(unpacked, list):
        raise InputError("an archive under the name of a segment", file=file)
    return unpacked


@contextmanager
def _broken_archive(file: str) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise InputError(f"the archive is broken: {str(error) or type(error).__name__}", file=file) from None


class _Budget:
    """How much may still be unpacked into memory."""

    def __init__(self, file: str, packed_bytes: int) -> None:
        self.file = file
        self.left = min(MAX_UNPACKED_BYTES, max(FREE_BYTES, MAX_RATIO * packed_bytes))

    def too_large(self) -> InputError:
        return InputError("it unpacks to too many bytes for memory; unpack it and name the files", file=self.file)

    def read(self, stream: IO[bytes] | io.BufferedIOBase, *, is_preallocated: bool = False) -> Buffer:
        """A stream to its end.

        Args:
            is_preallocated: most of it may be zeros, such as an index of 10 MiB: they take no memory.
        """
        out = bytearray()
        size = 0
        while chunk := stream.read(CHUNK_BYTES):
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


class _Reader(io.RawIOBase):
    """A file over a buffer that is not copied."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise ValueError("a place before the file's begin")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._view) if size is None or size < 0 else self._position + size
        data = self._view[self._position : end].tobytes()
        self._position += len(data)
        return data


# ------------------------------------------------------------------------------------------- gzip, zstd


def _unpack_gzip(file: str, view: memoryview, wanted: Wanted, budget: _Budget) -> list[Folder] | Buffer:
    with gzip.GzipFile(fileobj=_Reader(view)) as stream:
        head = stream.read(512)
        stream.seek(0)
        if not _is_tar(head):
            return budget.read(stream)
        members = _tar_members(stream, None, wanted, budget)
        while stream.read(CHUNK_BYTES):  # to the end, where the checksum stands
            pass
        return _folders(file, members)


def _unpack_zstd(view: memoryview, budget: _Budget) -> memoryview:
    """cramjam takes whole frames only: give it all the room there may be; untouched pages cost nothing."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    room = mmap.mmap(-1, budget.left, flags=flags)
    try:
        size = cramjam.zstd.decompress_into(view, room)
    except cramjam.DecompressionError as error:
        raise budget.too_large() if "whole buffer" in str(error) else error from None
    return memoryview(room)[:size].toreadonly()


# ------------------------------------------------------------------------------------------- tar and zip


class _StrictTarInfo(tarfile.TarInfo):
    """tarfile takes a bad or missing header for the end of the archive; only zeros are."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictTarInfo:
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
        if not info.isreg() and info.size > MAX_TAR_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {info.size} bytes")
        return info


def _is_tar(head: bytes) -> bool:
    """A segment begins with the high byte of an offset, which is 0; a tar with a name."""
    if len(head) < 512 or head[0] == 0:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _tar_members(
    stream: io.BufferedIOBase | io.RawIOBase, view: memoryview | None, wanted: Wanted, budget: _Budget
) -> Members:
    """Members by path.

    Args:
        view: the same bytes as the stream, if they lie in memory unpacked: members are slices then.
    """
    members: Members = {}
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictTarInfo) as archive:
        for info in archive:
            path = _normal(info.name)
            if not wanted(*_place(path)):
                continue
            if info.islnk() and _normal(info.linkname) in members:
                members[path] = members[_normal(info.linkname)]
            elif info.isreg() and view is not None and not info.issparse():
                members[path] = view[info.offset_data : info.offset_data + info.size]
            elif info.isreg() and (content := archive.extractfile(info)):
                members[path] = budget.read(content, is_preallocated=lies_beside(_place(path)[1]))
            elif info.islnk():
                raise tarfile.ReadError(f"{path} is a link to {info.linkname}, which no rule looks at")
    return members


def _zip_members(stream: io.RawIOBase, wanted: Wanted, budget: _Budget) -> Members:
    members: Members = {}
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            path, kind = _normal(info.filename), stat.S_IFMT(info.external_attr >> 16)
            if kind in (0, stat.S_IFREG) and not info.is_dir() and wanted(*_place(path)):
                with archive.open(info) as content:
                    members[path] = budget.read(content, is_preallocated=lies_beside(_place(path)[1]))
    return members


def _normal(path: str) -> str:
    return posixpath.normpath(path).lstrip("/")


def _place(path: str) -> tuple[str, str]:
    directory, name = posixpath.split(path)
    return posixpath.basename(directory), name


def _as_is(data: Buffer) -> Buffer:
    return data


def _folders(file: str, members: Members) -> list[Folder]:
    folders: dict[str, Folder] = {}
    for path, data in members.items():
        directory, name = posixpath.split(path)
        prefix = f"{file}!{directory}/" if directory else f"{file}!"
        folder = folders.setdefault(directory, Folder(prefix, posixpath.basename(directory)))
        is_packed = name.endswith((".gz", ".zst"))
        read = cache(partial(unpack_one, folder.shown(name), data)) if is_packed else partial(_as_is, data)
        (folder.beside if lies_beside(name) else folder.files)[name] = read
    for directory, folder in folders.items():
        above = folders.get(posixpath.dirname(directory)) if directory else None
        if above is not None:
            folder.above = {name: read for name, read in above.files.items() if name in IN_DATA_DIRECTORY}
    return list(folders.values())
