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
import zipfile
import zlib
from collections.abc import Callable
from functools import cache, partial

from offsets_log.disk.folder import (
    SEGMENT,
    Folder,
    lies_beside,
    lies_in,
    link_data_directories,
    matters_in,
)
from offsets_log.disk.members import Member, Members, Wanted, is_of_end, is_of_index, normal, place
from offsets_log.disk.packed import BROKEN, CHUNK_BYTES, Budget, Inflated, Problems, Reader, unpack_zstd
from offsets_log.disk.tails import read_tail
from offsets_log.disk.tars import GOES_ON, is_tar, tar_in_memory, tar_members
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.segment import Buffer

PACKED_SUFFIXES = (".gz", ".tgz", ".zst", ".tzst", ".zip", ".tar", ".bz2", ".xz", ".7z", ".lz4")
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
ARCHIVE_SUFFIXES = (*TAR_SUFFIXES, ".tar.bz2", ".tar.xz", ".zip", ".7z")

_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")
"""Magic numbers: a zstd frame, and the skippable frame that pzstd begins with."""
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

OnDamage = Callable[[Damage], None]


MAGIC_BYTES = 512


def is_archive(head: bytes) -> bool:
    """Return whether a file begins like an archive, or like a packed file."""
    return head[:4] in (*_ZIP, *_ZSTD) or head[:2] == _GZIP or is_tar(head[:MAGIC_BYTES])


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
        missing = "is missing" if GOES_ON in problem else "; what stands behind is missing"
        words = f"the archive is broken: {problem}{missing}"
        on_damage(Damage(InputError(words, file=file, position=position), b""))


def _unpacked(file: str, view: memoryview, wanted: Wanted, problems: Problems) -> Members | Buffer:
    """Return the members of an archive, the contents of a packed file, or the view itself."""
    budget = Budget(file, len(view))
    magic = view[:4].tobytes()
    if magic in _ZIP:
        return _zip_members(view, wanted, budget, problems)
    if magic[:2] == _GZIP:
        stream = Inflated(view, problems)
        if not is_tar(stream.head(512)):
            return _no_tar(file, budget.read(stream), problems)
        broken = Problems()
        members = tar_members(stream, None, wanted, budget, broken)
        if broken and not problems:
            return tar_in_memory(file, view, wanted, members, broken, problems)
        while stream.read(CHUNK_BYTES):  # read to the end, where the checksum stands
            pass
        return members
    unpacked = unpack_zstd(view, budget, problems) if magic in _ZSTD else view
    if not is_tar(unpacked[:512].tobytes()):
        return _no_tar(file, unpacked, problems)
    reader = Reader(unpacked, is_packed=unpacked is not view)
    return tar_members(reader, unpacked, wanted, budget, problems)


def _no_tar(file: str, contents: Buffer, problems: Problems) -> Buffer:
    """Return the contents, but nothing for a tar that breaks before its first member: that rest is no segment.

    Raises:
        InputError: they are packed themselves.
    """
    if is_archive(memoryview(contents)[:MAGIC_BYTES].tobytes()) and file.endswith(PACKED_SUFFIXES):
        raise InputError("an archive is packed in it: unpack it, and give that", file=file)
    return b"" if problems and file.endswith(TAR_SUFFIXES) else contents


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
            path, kind = normal(info.filename), stat.S_IFMT(info.external_attr >> 16)
            is_wanted = wanted(*place(path)) and not is_of_index(path)
            if kind in (0, stat.S_IFREG) and not info.is_dir() and is_wanted:
                try:
                    with archive.open(info) as content:
                        if is_of_end(path):
                            members.add_end(path, read_tail(content, info.file_size), info.file_size)
                            continue
                        members[path] = Member(budget.read(content, is_preallocated=lies_beside(place(path)[1])))
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
        path = normal(name)
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
            and (is_whole or SEGMENT.fullmatch(place(path)[1]))
        ):
            members[path] = Member(data)
        if not is_whole:
            break
        behind = view[end : end + MAX_DESCRIPTOR_BYTES + 4].tobytes() if flags & SIZE_FOLLOWS else b""
        at = end + max(behind.find(LOCAL_MAGIC), behind.find(CENTRAL_MAGIC), 0)
    problems.note("it ends before its directory" if members else "File is not a zip file", len(view))
    return members


def _is_wanted_in_order(path: str, wanted: Wanted) -> bool:
    return wanted(*place(path)) and not is_of_end(path)  # the log may go on in what is missing


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
