"""Read members of a tar, whole or broken: one with a broken header is left out, and those behind it are found."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator

from offsets_log.disk.folder import SEGMENT, lies_beside
from offsets_log.disk.members import Member, Members, Wanted, is_of_end, is_of_index, normal, place
from offsets_log.disk.packed import BROKEN, CHUNK_BYTES, Budget, Inflated, Problems, Reader
from offsets_log.disk.tails import Tail, read_tail
from offsets_log.log_format.segment import Buffer

MAX_TAR_HEADER_BYTES = 1 << 20
MAX_SECONDS = 1 << 33
"""The largest time of a file that is believed."""

GOES_ON = "; what stands there, up to byte "
"""In what is said of a tar that could be read on behind a broken member."""


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


def is_tar(head: bytes) -> bool:
    """Return whether the bytes begin a tar: with a name, while a segment begins with the zero byte of an offset."""
    if len(head) < 512 or head[0] == 0:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def tar_members(
    stream: Reader | Inflated, view: memoryview | None, wanted: Wanted, budget: Budget, problems: Problems
) -> Members:
    """Return members by path.

    Args:
        view: the bytes of the stream if they lie unpacked in memory: members are then slices of it.
    """
    members = Members()
    try:
        for archive, info, here, data in _iter_tar(stream, view, problems):
            path = normal(info.name)
            if not wanted(*place(path)) or (data is None and is_of_index(path)):
                continue
            if info.islnk() and normal(info.linkname) in members:
                members[path] = members[normal(info.linkname)]
            elif info.islnk():
                raise tarfile.ReadError(f"{path} is a link to {info.linkname}, which no rule looks at")
            elif info.isreg() and is_of_end(path):
                members.add_end(path, _tar_end(archive, info, here, data), info.size)
            elif info.isreg():
                _add_tar_member(members, path, info, _tar_member(archive, info, here, data, budget))
    except BROKEN as error:
        if not problems:  # otherwise the reason why the stream ended is noted already
            problems.note(error, stream.packed_position)
    return members


InTar = tuple[tarfile.TarFile, tarfile.TarInfo, Reader | Inflated, memoryview | None]
"""An archive from somewhere on, a member of it, and its stream and bytes from there on."""


def _iter_tar(stream: Reader | Inflated, view: memoryview | None, problems: Problems) -> Iterator[InTar]:
    """Yield members; one with a broken header is left out if it lies in memory, where the next one is found."""
    begin = 0
    while True:
        archive = None
        try:
            with tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictTarInfo) as archive:
                for info in archive:
                    yield archive, info, stream, view
            return
        except BROKEN as error:
            at = archive.offset if archive else 0
            step = None if view is None else _next_header(view, at + 1)
            if step is None or view is None:
                raise
            where = stream.packed_position
            problems.note(f"{error}{GOES_ON}{begin + step}, ", None if where is None else begin + where)
            view, begin = view[step:], begin + step
            stream = Reader(view, is_packed=stream.packed_position is None)


def _next_header(view: memoryview, at: int) -> int | None:
    """Return where the next member begins, by the magic number and the checksum of its header."""
    while at + tarfile.BLOCKSIZE <= len(view):
        chunk = view[at : at + CHUNK_BYTES + tarfile.BLOCKSIZE].tobytes()
        found = chunk.find(USTAR)
        while found >= 0:
            begin = at + found - MAGIC_IN_HEADER
            if begin >= at and is_tar(view[begin : begin + tarfile.BLOCKSIZE].tobytes()):
                return begin
            found = chunk.find(USTAR, found + 1)
        at += CHUNK_BYTES
    return None


USTAR, MAGIC_IN_HEADER = b"ustar", 257


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
    if len(data) == info.size or SEGMENT.fullmatch(place(path)[1]):
        members[path] = Member(data, _in_ms(info.mtime))
    if len(data) < info.size:
        raise tarfile.ReadError(f"it ends inside {path}")


def _tar_member(
    archive: tarfile.TarFile, info: tarfile.TarInfo, stream: Reader | Inflated, view: memoryview | None, budget: Budget
) -> Buffer:
    """Return what there is of a member; a sparse one is read whole or not at all."""
    is_preallocated = lies_beside(place(info.name)[1])
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


def tar_in_memory(
    file: str, view: memoryview, wanted: Wanted, members: Members, broken: Problems, problems: Problems
) -> Members:
    """Read a packed tar again that has a broken member: in memory those behind it are found."""
    again, budget = Problems(), Budget(file, len(view))
    data = memoryview(budget.read(Inflated(view, Problems())))
    found = tar_members(Reader(data, is_packed=True), data, wanted, budget, again)
    is_more = len(found) > len(members)
    problems.found += (again if is_more else broken).found
    return found if is_more else members
