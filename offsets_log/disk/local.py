"""Read the disk of this machine and stores, read-only: mapped files, pipes, directories as folders.

A mapped file keeps the length it had when it was opened. If it is truncated afterwards, reading beyond its new end
makes the system kill the process. Brokers truncate only replicas that diverged from their leader.
"""

from __future__ import annotations

import errno
import mmap
import os
import resource
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from offsets_log.data_directory.directory import ListedFolder
from offsets_log.data_directory.identity import QUORUM_STATE
from offsets_log.disk.stored import Stored, StorePath
from offsets_log.disk.urls import is_url
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.segment import NO_PIECES, Buffer, Pieces

T = TypeVar("T")
Place = Path | StorePath
"""Where a file or a directory is."""


@contextmanager
def input_errors(file: str | Place) -> Iterator[None]:
    """Raise whatever the system says against reading a file as an InputError that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _refused(file, error) from None


def _refused(file: str | Place, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else None
    hint = ": run this as a user who may read it" if isinstance(error, PermissionError) else ""
    return InputError(f"cannot be read: {reason or error}{hint}", file=str(file))


HOLE_KEPT_BYTES = 1 << 20
"""Length of the hole at a sparse file's end that is mapped with the data, so that readers past the data see zeros."""


def map_file(path: Place, stack: ExitStack) -> Buffer:
    """Map a file's contents until the stack closes; a pipe is read to its end, a file of a store is fetched.

    Raises:
        InputError: the file vanished, may not be read, or is a directory.
    """
    if isinstance(path, StorePath):
        return path.contents(stack)
    return _mapped(path, stack, lambda descriptor, size_bytes: size_bytes)


def segment_of(path: Place, stack: ExitStack) -> tuple[Buffer | Stored, int]:
    """Return what `map_data` does; a segment of a store is fetched when it is read, until the stack closes."""
    return (stored(path, stack), 0) if isinstance(path, StorePath) else map_data(path, stack)


def stored(path: StorePath, stack: ExitStack) -> Stored:
    """Return a file of a store, whose contents are kept until the stack closes, once they were asked for."""
    made = Stored(path)
    stack.callback(made.close)
    return made


def map_data(path: Path, stack: ExitStack) -> tuple[Buffer, int]:
    """Map a file without a hole at its end; return the mapping and the number of zero bytes left out.

    `HOLE_KEPT_BYTES` of the hole are mapped all the same. Pipes and errors are as in `map_file`.
    """
    zeros = 0

    def without_hole(descriptor: int, size_bytes: int) -> int:
        nonlocal zeros
        mapped_bytes = min(size_bytes, end_of_data(descriptor, size_bytes) + HOLE_KEPT_BYTES)
        zeros = size_bytes - mapped_bytes
        return mapped_bytes

    return _mapped(path, stack, without_hole), zeros


@dataclass(frozen=True, slots=True)
class Opened(AbstractContextManager[T]):
    """Something open until the context ends."""

    value: T
    close: Callable[[], None]

    def __enter__(self) -> T:
        return self.value

    def __exit__(self, *error: object) -> None:
        self.close()


def open_pieces(path: Place, *, is_optional: bool = False) -> AbstractContextManager[Pieces]:
    """Open a file to read pieces of it; the system is told to read nothing around them.

    Args:
        is_optional: whether a file that is not there is one of no bytes.

    Raises:
        InputError: it is not there, may not be read, or is no file; reading may raise it too.
    """
    if isinstance(path, StorePath):
        return nullcontext(NO_PIECES if is_optional and not path.is_file() else path.open_pieces())
    try:
        descriptor = _with_descriptors(lambda: os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except (OSError, ValueError) as error:
        if is_optional and isinstance(error, FileNotFoundError):
            return nullcontext(NO_PIECES)
        raise _refused(path, error) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InputError("it is no regular file", file=str(path))
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def read_at(position: int, size_bytes: int) -> bytes:
        try:
            return os.pread(descriptor, size_bytes, position)
        except OSError as error:
            raise _refused(path, error) from None

    return Opened(Pieces(status.st_size, read_at), partial(os.close, descriptor))


def end_of_data(descriptor: int, size_bytes: int) -> int:
    """Return where a file's last written extent ends, or its size where the system does not say."""
    end = 0
    try:
        while end < size_bytes:
            data = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, data, os.SEEK_HOLE)
    except AttributeError:
        return size_bytes
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO means that no data follows
            return size_bytes
    return end


HowMuch = Callable[[int, int], int]
"""Takes an open file's descriptor and its size; returns how many bytes to map."""


def _mapped(path: Path, stack: ExitStack, how_much: HowMuch) -> Buffer:
    with input_errors(path):
        return _with_descriptors(lambda: _map(path, stack, how_much))


def _with_descriptors(opened: Callable[[], T]) -> T:
    """Open something; where too many descriptors are taken the limit is raised first.

    A mapping holds one, and logs have thousands of segments.
    """
    try:
        return opened()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return opened()


def _map(path: Path, stack: ExitStack, how_much: HowMuch) -> Buffer:
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return spool(file, stack)
        return _map_open(file, how_much(file.fileno(), status.st_size), stack)


def spool(stream: IO[bytes], stack: ExitStack) -> Buffer:
    """Read a pipe to its end, and map the contents from an unnamed temporary file."""
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.flush()
        return _map_open(file, file.tell(), stack)


def _map_open(file: IO[bytes], size: int, stack: ExitStack) -> Buffer:
    if size == 0:
        return b""
    mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    view = memoryview(mapping)
    stack.callback(_unmap, mapping, view)
    return view


def _unmap(mapping: mmap.mmap, view: memoryview) -> None:
    with suppress(BufferError):  # a view that is still held keeps the mapping open until it is released too
        view.release()
        mapping.close()


def real_path(path: Place) -> Place:
    """Return the path with all links followed; unlike `Path.resolve` it accepts a loop of links."""
    return path if isinstance(path, StorePath) else Path(os.path.realpath(path))


def is_file(path: Place) -> bool:
    """Return whether the path is a regular file; False if it may not be looked at."""
    try:
        return path.is_file()
    except OSError:
        return False


def in_archive(given: str) -> tuple[Path, str]:
    """Return the archive and the path in it that ``ARCHIVE!PATH`` names; "" for a path of anything else."""
    at = -1 if os.path.lexists(given) else given.find("!")
    while at >= 0:
        if is_file(Path(given[:at])):
            return Path(given[:at]), given[at + 1 :].strip("/")
        at = given.find("!", at + 1)
    return Path(given), ""


def modified_ms(path: Path) -> int:
    """Return when a file was last written, in epoch milliseconds. Raises InputError."""
    with input_errors(path):
        return path.stat().st_mtime_ns // 1_000_000


def list_directory(path: Place) -> tuple[list[str], list[str], list[str]]:
    """Return the sorted names in a directory, links followed: files, directories, and what leads to neither.

    Raises InputError.
    """
    if isinstance(path, StorePath):
        return *path.listed(), []
    files: list[str] = []
    directories: list[str] = []
    others: list[str] = []
    with input_errors(path), os.scandir(path) as entries:
        for entry in entries:
            try:
                kind = directories if entry.is_dir() else files if entry.is_file() else others
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                kind = others
            kind.append(entry.name)
    return sorted(files), sorted(directories), sorted(others)


def list_folders(path: Place) -> list[ListedFolder]:
    """Return the folders in a data directory; of one that cannot be listed, the name.

    Raises InputError.
    """
    found = []
    for name in list_directory(path)[1]:
        files: list[str] = []
        with suppress(InputError):
            files = list_directory(path / name)[0]
        read = {file: partial(contents_of, path / name / file) for file in files}
        found.append(
            ListedFolder(
                name=name,
                names=files,
                topic_id=read.get(PARTITION_METADATA),
                quorum_state=read.get(QUORUM_STATE),
                leader_epochs=read.get(LEADER_EPOCHS),
            )
        )
    return found


def contents_of(path: Place) -> bytes:
    """Return what a small file holds. Raises InputError."""
    with ExitStack() as stack:
        return bytes(map_file(path, stack))


def list_names(path: Place) -> list[str]:
    """Return the names of everything in a directory, in no order. Raises InputError."""
    if isinstance(path, StorePath):
        return [name for names in path.listed() for name in names]
    with input_errors(path):
        return os.listdir(path)  # noqa: PTH208 - Path.iterdir makes a Path of each


def place_of(given: str) -> Place:
    """Return the place that a user names. Raises InputError: there is no such kind of store."""
    if is_url(given):
        return StorePath.of(given)
    return Path(f"/{given.removeprefix('file:').lstrip('/')}" if given.startswith("file:/") else given)


def expand(pattern: str) -> Sequence[Place]:
    """Return the path if it exists, else the paths that match it as a glob.

    Raises:
        InputError: nothing has this name or matches.
    """
    if not pattern:
        raise InputError("an empty path: name a data directory, a partition directory or a segment")
    path = place_of(pattern)
    if isinstance(path, StorePath):
        return path.expand()
    with input_errors(pattern):
        if os.path.lexists(path):
            return [path]
        found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not found:
        is_glob = any(sign in pattern for sign in "*?[")
        raise InputError("no file matches" if is_glob else "no such file or directory", file=pattern)
    return found
