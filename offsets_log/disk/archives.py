"""Open archives and packed segments as folders in memory; nothing is ever extracted to a disk.

It reads zip, tar, gzip and zstd (around a tar or a single segment), and tells them apart by their first bytes. Members
of a plain tar are slices of it; all other members are read into memory, within limits (`packed`), but of other topics'
segments only the end (`tails`). Symbolic links, devices and members that no rule looks at are skipped.

A cut or damaged archive is read as far as possible: whole members, and the readable beginning of a segment. The place
where it breaks is reported as damage; an archive of which nothing can be read is an `InputError`.
"""

from __future__ import annotations

import posixpath
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from offsets_log.disk.folder import (
    SEGMENT,
    Folder,
    is_read_for_its_end,
    lies_beside,
    lies_in,
    link_data_directories,
    matters_in,
)
from offsets_log.disk.packed import BROKEN, CHUNK_BYTES, Budget, Inflated, Problems, Reader, unpack_zstd
from offsets_log.disk.tails import Tail, read_tail
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.segment import Buffer

MAX_TAR_HEADER_BYTES = 1 << 20
MAX_OFFSET = (1 << 63) - 1
MAX_SECONDS = 1 << 33
"""The largest time of a file that is believed."""

PACKED_SUFFIXES = (".gz", ".tgz", ".zst", ".tzst", ".zip", ".tar", ".bz2", ".xz", ".7z", ".lz4")
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")

_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")
"""Magic numbers: a zstd frame, and the skippable frame that pzstd begins with."""
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

Wanted = Callable[[str, str], bool]
OnDamage = Callable[[Damage], None]


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


def unpack(
    file: str, buffer: Buffer, wanted: Wanted = matters_in, on_damage: OnDamage | None = None
) -> list[Folder] | Buffer:
    """Return the folders of an archive, the contents of a single packed file, or the buffer itself if it is neither.

    Args:
        file: name to show.
        wanted: tells whether to read a member; it is called with the last component of the member's directory and its
            name.
        on_damage: called for every place where a broken archive cannot be read, with the position in bytes of its file;
            None to refuse a broken archive.

    Raises:
        InputError: the archive is broken so that nothing is left, or refused, or too large; or a file has an archive's
            name but is none.
    """
    view, problems = memoryview(buffer), Problems()
    unpacked: Members | Buffer | None = None
    try:
        unpacked = _unpacked(file, view, wanted, problems)
    except BROKEN as error:
        problems.note(error, None)
    if unpacked is view and file.endswith(PACKED_SUFFIXES):
        raise InputError("this is no archive we read (tar, zip, gzip, zstd), or it is empty", file=file)
    _tell(file, problems, on_damage if unpacked else None)
    if isinstance(unpacked, dict):
        return _folders(file, unpacked, on_damage)
    return buffer if unpacked is None or unpacked is view else unpacked


def unpack_one(file: str, buffer: Buffer, on_damage: OnDamage | None = None) -> Buffer:
    """Return the contents of a single packed segment, as `unpack` does. Raises InputError."""
    unpacked = unpack(file, buffer, on_damage=on_damage)
    if isinstance(unpacked, list):
        raise InputError(
            "an archive under the name of a segment: give it the ending of its kind, such as .gz", file=file
        )
    return unpacked


def _tell(file: str, problems: Problems, on_damage: OnDamage | None) -> None:
    for problem, position in problems.found:
        if on_damage is None:
            raise InputError(f"the archive is broken: {problem}", file=file, position=position)
        words = f"the archive is broken: {problem}; what stands behind is missing"
        on_damage(Damage(InputError(words, file=file, position=position), b""))


def _unpacked(file: str, view: memoryview, wanted: Wanted, problems: Problems) -> Members | Buffer:
    """Return the members of an archive, the contents of a packed file, or the view itself."""
    budget = Budget(file, len(view))
    magic = view[:4].tobytes()
    if magic in _ZIP:
        return _zip_members(view, wanted, budget, problems)
    if magic[:2] == _GZIP:
        stream = Inflated(view, problems)
        if not _is_tar(stream.head(512)):
            return _no_tar(file, budget.read(stream), problems)
        members = _tar_members(stream, None, wanted, budget, problems)
        while stream.read(CHUNK_BYTES):  # read to the end, where the checksum stands
            pass
        return members
    unpacked = unpack_zstd(view, budget, problems) if magic in _ZSTD else view
    if not _is_tar(unpacked[:512].tobytes()):
        return _no_tar(file, unpacked, problems)
    reader = Reader(unpacked, is_packed=unpacked is not view)
    return _tar_members(reader, unpacked, wanted, budget, problems)


def _no_tar(file: str, contents: Buffer, problems: Problems) -> Buffer:
    """Return the contents, but nothing for a tar that breaks before its first member: that rest is no segment."""
    return b"" if problems and file.endswith(TAR_SUFFIXES) else contents


# ------------------------------------------------------------------------------------------------- tar


class _StrictTarInfo(tarfile.TarInfo):
    """Refuse a bad or missing header, which tarfile takes for the end of the archive; only zeros end it."""

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
    """Return whether the bytes begin a tar: with a name, while a segment begins with the zero byte of an offset."""
    if len(head) < 512 or head[0] == 0:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _tar_members(
    stream: Reader | Inflated, view: memoryview | None, wanted: Wanted, budget: Budget, problems: Problems
) -> Members:
    """Return members by path.

    Args:
        view: the bytes of the stream if they lie unpacked in memory: members are then slices of it.
    """
    members = Members()
    try:
        for archive, info in _iter_tar(stream):
            path = _normal(info.name)
            if not wanted(*_place(path)) or (view is None and _is_of_index(path)):
                continue
            if info.islnk() and _normal(info.linkname) in members:
                members[path] = members[_normal(info.linkname)]
            elif info.islnk():
                raise tarfile.ReadError(f"{path} is a link to {info.linkname}, which no rule looks at")
            elif info.isreg() and _is_of_end(path):
                members.add_end(path, _tar_end(archive, info, stream, view), info.size)
            elif info.isreg():
                _add_tar_member(members, path, info, _tar_member(archive, info, stream, view, budget))
    except BROKEN as error:
        if not problems:  # otherwise the reason why the stream ended is noted already
            problems.note(error, stream.packed_position)
    return members


def _iter_tar(stream: Reader | Inflated) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictTarInfo) as archive:
        for info in archive:
            yield archive, info


def _is_of_end(path: str) -> bool:
    return is_read_for_its_end(*_place(path))


def _is_of_index(path: str) -> bool:
    """Whether it is the index of a segment of which only the end is kept, where it finds nothing."""
    return path.endswith(".index") and _is_of_end(path.removesuffix(".index") + ".log")


def _tar_end(
    archive: tarfile.TarFile, info: tarfile.TarInfo, stream: Reader | Inflated, view: memoryview | None
) -> Tail:
    """Return the end of a segment, or all that lies unpacked in memory."""
    if info.issparse():
        content = archive.extractfile(info)
        assert content is not None
        return read_tail(content, info.size)
    stream.seek(info.offset_data)
    if view is None:
        return read_tail(stream, info.size)
    data = view[info.offset_data : info.offset_data + info.size]
    stream.seek(info.offset_data + info.size)
    return Tail(data, len(data), None)


def _add_tar_member(members: Members, path: str, info: tarfile.TarInfo, data: Buffer) -> None:
    if len(data) == info.size or SEGMENT.fullmatch(_place(path)[1]):
        members[path] = Member(data, _in_ms(info.mtime))
    if len(data) < info.size:
        raise tarfile.ReadError(f"it ends inside {path}")


def _tar_member(
    archive: tarfile.TarFile, info: tarfile.TarInfo, stream: Reader | Inflated, view: memoryview | None, budget: Budget
) -> Buffer:
    """Return what there is of a member; a sparse one is read whole or not at all."""
    is_preallocated = lies_beside(_place(info.name)[1])
    if info.issparse():
        content = archive.extractfile(info)
        assert content is not None
        return budget.read(content, is_preallocated=is_preallocated)
    if view is not None:
        stream.seek(info.offset_data + info.size)
        return view[info.offset_data : info.offset_data + info.size]
    stream.seek(info.offset_data)
    return budget.read(stream, info.size, is_preallocated=is_preallocated)


def _in_ms(seconds: float) -> int | None:
    """Return a header's time, which may be any number, in milliseconds; None if no file system has such a time."""
    return int(seconds * 1000) if 0 <= seconds <= MAX_SECONDS else None


# ------------------------------------------------------------------------------------------------- zip

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
LOCAL_MAGIC, CENTRAL_MAGIC = b"PK\x03\x04", b"PK\x01\x02"
STORED, DEFLATED = 0, 8
ENCRYPTED, SIZE_FOLLOWS = 1, 8
"""Flags of a member: encrypted; its size is not known before its data and follows them in a descriptor."""
MAX_DESCRIPTOR_BYTES = 24


def _zip_members(view: memoryview, wanted: Wanted, budget: Budget, problems: Problems) -> Members:
    members = Members()
    try:
        archive = zipfile.ZipFile(Reader(view))
    except BROKEN:
        return _zip_members_in_order(view, wanted, budget, problems)
    with archive:
        for info in archive.infolist():
            path, kind = _normal(info.filename), stat.S_IFMT(info.external_attr >> 16)
            is_wanted = wanted(*_place(path)) and not _is_of_index(path)
            if kind in (0, stat.S_IFREG) and not info.is_dir() and is_wanted:
                try:
                    with archive.open(info) as content:
                        if _is_of_end(path):
                            members.add_end(path, read_tail(content, info.file_size), info.file_size)
                            continue
                        members[path] = Member(budget.read(content, is_preallocated=lies_beside(_place(path)[1])))
                except BROKEN as error:
                    problems.note(f"{path}: {error}", info.header_offset)
    return members


def _zip_members_in_order(view: memoryview, wanted: Wanted, budget: Budget, problems: Problems) -> Members:
    """Read members from header to header, without the directory at the end, which is missing."""
    members = Members()
    at = 0
    while view[at : at + 4] == LOCAL_MAGIC and len(view) - at >= LOCAL_HEADER.size:
        _, _, flags, method, _, _, _, packed, size, name_size, extra_size = LOCAL_HEADER.unpack_from(view, at)
        begin = at + LOCAL_HEADER.size + name_size + extra_size
        name = view[at + LOCAL_HEADER.size :][:name_size].tobytes().decode("utf-8", "surrogateescape")
        path = _normal(name)
        if flags & ENCRYPTED or method not in (STORED, DEFLATED) or (method == STORED and flags & SIZE_FOLLOWS):
            break
        own = Problems()
        if method == STORED:
            data: Buffer = view[begin : begin + size]
            end = begin + packed
            is_whole = end <= len(view)
        else:
            stream = Inflated(view, own, bits=-zlib.MAX_WBITS, start=begin)
            data = budget.read(stream)
            end, is_whole = stream.packed_position, not own
        if (
            not name.endswith("/")
            and _is_wanted_in_order(path, wanted)
            and (is_whole or SEGMENT.fullmatch(_place(path)[1]))
        ):
            members[path] = Member(data)
        if not is_whole:
            break
        behind = view[end : end + MAX_DESCRIPTOR_BYTES + 4].tobytes() if flags & SIZE_FOLLOWS else b""
        at = end + max(behind.find(LOCAL_MAGIC), behind.find(CENTRAL_MAGIC), 0)
    problems.note("it ends before its directory" if members else "File is not a zip file", len(view))
    return members


def _is_wanted_in_order(path: str, wanted: Wanted) -> bool:
    return wanted(*_place(path)) and not _is_of_end(path)  # the log may go on in what is missing


def _normal(path: str) -> str:
    return posixpath.normpath(path).lstrip("/")


def _place(path: str) -> tuple[str, str]:
    directory, name = posixpath.split(path)
    return posixpath.basename(directory), name


def _as_is(data: Buffer) -> Buffer:
    return data


def _folders(file: str, members: Members, on_damage: OnDamage | None) -> list[Folder]:
    folders: dict[str, Folder] = {}
    for path, (data, modified_ms, kept_from) in members.items():
        directory, name = posixpath.split(path)
        prefix = f"{file}!{directory}/" if directory else f"{file}!"
        folder = folders.setdefault(directory, Folder(prefix, posixpath.basename(directory)))
        if kept_from is not None:
            folder.kept_from[name] = kept_from
        is_packed = name.endswith((".gz", ".zst"))
        read = cache(partial(unpack_one, folder.shown(name), data, on_damage)) if is_packed else partial(_as_is, data)
        (folder.beside if lies_in(folder.name, name) else folder.files)[name] = read
        if modified_ms is not None:
            folder.modified_ms[name] = modified_ms
    link_data_directories(folders)
    return list(folders.values())
