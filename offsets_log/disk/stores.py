"""Stores in the network (``s3://``, ``gs://``, ``hdfs://`` and what else fsspec knows), read-only: what is in them.

pyarrow's own file systems are used for the kinds that they know, fsspec's for all others, and where options are given.
Credentials come from the environment, from fsspec's configuration, or with the URL. A URL that pyarrow refuses is asked
of nobody else: another library would read another store, by other credentials.

A request that fails is sent again, a few times; what is missing or forbidden fails at once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from offsets_log.disk.asking import ANSWER_S, Patience
from offsets_log.disk.urls import BUCKETS, OF_PYARROW, WITH_QUERIES, bare, checked, masked, quoted, without_secrets
from offsets_log.errors import InputError
from offsets_log.words import to_install

T = TypeVar("T")

KEPT_BYTES = 1 << 16
"""Files up to this size are read once."""
_FOREVER = (
    FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError, NotImplementedError, ImportError,
    ValueError, TypeError, InputError,
)  # fmt: skip
"""Errors that no further attempt mends."""
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|Forbidden|FORBIDDEN|\b40[13]\b|INVALID_ACCESS_KEY|InvalidAccessKey|SIGNATURE|Signature"
    r"|[Uu]nauthorized|[Cc]redentials|Permission denied"
)
_ABSENT = re.compile(r"NO_SUCH_(BUCKET|KEY)|NoSuch(Bucket|Key)|RESOURCE_NOT_FOUND|\b404\b|[Pp]ath does not exist")
CREDENTIALS = (
    "give credentials that may read it, in the environment (AWS_ACCESS_KEY_ID …), in ~/.config/fsspec or in the URL"
)


UNKNOWN = -1
"""Size of a file whose listing tells none, as that of a web server."""


class Entry(NamedTuple):
    """A file or a directory.

    Attributes:
        size_bytes: None for a directory.
        written_ms: when a file was last written, in epoch milliseconds, if the store tells.
    """

    size_bytes: int | None
    written_ms: int | None = None


TAGS = ("ETag", "etag", "checksum", "md5Hash", "mtime", "LastModified", "last_modified", "created")
"""What kinds of fsspec call that which changes with a file's contents."""


class Stamp(NamedTuple):
    """What is known of a file as it is; ``tag`` is what else the store says of its contents."""

    entry: Entry
    tag: str

    def is_of(self, entry: Entry) -> bool:
        """Return whether the file is the one that a listing showed; stores tell times to the second."""
        seconds = [None if one.written_ms is None else one.written_ms // 1000 for one in (self.entry, entry)]
        return self.entry.size_bytes == entry.size_bytes and (None in seconds or seconds[0] == seconds[1])


class Store:
    """One store, as one URL gives it; use `open_store`.

    Attributes:
        files: as pyarrow or fsspec have it.
        url, options: what it takes to open it again: one of its URLs that was given.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self.url, self.options = url, options
        self._kind, url = checked(url)
        self._patience = Patience(without_secrets(url))
        self.files, path = self._opened(url)
        place = bare(url)
        self._prefix = "" if path.startswith(WITH_QUERIES) else place.rstrip("/").removesuffix(path) if path else place
        self._directories: dict[str, dict[str, Entry]] = {}
        self._found: dict[str, dict[str, Entry]] = {}
        self._small: dict[str, bytes] = {}

    def path_of(self, url: str) -> str:
        """Return the path of another URL of the same store."""
        _, url = checked(url)
        return (bare(url) if self._prefix else url).removeprefix(self._prefix).rstrip("/")

    def shown(self, path: str) -> str:
        """Return a path as it is shown."""
        return self._prefix + path if self._kind in OF_PYARROW else without_secrets(self._prefix + path)

    def why_absent(self, path: str) -> str:
        """Return what is missing, if it is more than the path itself. Raises UnansweredError."""
        from pyarrow import fs

        bucket = path.partition("/")[0]
        if self._kind in BUCKETS and bucket:
            try:
                found = self.patiently(bucket, lambda: self.files.get_file_info(bucket))
            except UnansweredError:
                raise
            except InputError:  # who may read a file need not be allowed to look at its bucket
                found = None
            if found is not None and found.type == fs.FileType.NotFound:
                return f"the store has no bucket {bucket}"
        return ""

    def note(self, path: str, entry: Entry) -> None:
        """Note a file that was found elsewhere."""
        above, name = posixpath.split(path)
        self._found.setdefault(above, {})[name] = entry

    def entry(self, path: str) -> Entry | None:
        """Return what is there; None if there is nothing. Raises InputError."""
        if path in self._directories or not path:
            return Entry(None)
        above, name = posixpath.split(path)
        found = self._found.get(above, {}).get(name) or self.entries(above).get(name)
        if found is not None and found.size_bytes == UNKNOWN:
            found = _entry(self.patiently(path, lambda: self.files.get_file_info(path)))
            self.note(path, found)
        return found

    def entries(self, directory: str) -> Mapping[str, Entry]:
        """Return what is in a directory, by name; nothing if it is not there. Raises InputError."""
        if directory not in self._directories:
            self._note(directory, self._listed(directory, is_deep=False))
        return self._directories[directory]

    def sweep(self, path: str) -> Entry | None:
        """Return what is there now, and learn all that is below it by few requests. Raises InputError."""
        from pyarrow import fs

        self._forget(path)
        found = self.patiently(path, lambda: self.files.get_file_info(path)) if path else None
        is_file = found is not None and found.type == fs.FileType.File and not self._is_index(path)
        if found is not None and is_file:
            self.note(path, _entry(found))
            return _entry(found)
        below = self._listed(path, is_deep=True)
        if not below and (found is None or found.type == fs.FileType.NotFound):
            return None
        self._note(path, below)
        return Entry(None)

    def _forget(self, path: str) -> None:
        """Forget what is at and below a path, and which directories it is in."""

        def is_near(other: str) -> bool:
            return f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/") or not path

        for known in (self._directories, self._found, self._small):
            for other in [*filter(is_near, known)]:
                del known[other]

    def _is_index(self, path: str) -> bool:
        """Return whether it is a page of links, which a web server has in the place of a directory."""
        if not path.startswith(WITH_QUERIES):
            return False
        told = self.patiently(path, lambda: self.files.handler.fs.info(path))
        return str(told.get("mimetype", "")).startswith("text/html")

    def _listed(self, directory: str, *, is_deep: bool) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(directory, allow_not_found=True, recursive=is_deep)
        try:
            found: list[Any] = self.patiently(directory, lambda: self.files.get_file_info(selector), None)
        except InputError as error:
            if is_deep or isinstance(error, UnansweredError):
                raise
            return []  # who may read a directory need not be allowed to look around it
        return found

    def _note(self, directory: str, found: list[Any]) -> None:
        known = self._directories.setdefault(directory, {})
        for info in found:
            path = self._as_given(info.path.rstrip("/"), directory)
            if path == directory:
                continue
            above, name = posixpath.split(path)
            self._directories.setdefault(above, known if above == directory else {})[name] = _entry(info)
            while above != directory and len(above) > len(directory):  # directories that are names only
                path, (above, name) = above, posixpath.split(above)
                self._directories.setdefault(path, {})
                self._directories.setdefault(above, {}).setdefault(name, Entry(None))

    @staticmethod
    def _as_given(path: str, directory: str) -> str:
        """Return a path that begins as its directory does: some stores add or leave out the first slash."""
        return f"/{path.lstrip('/')}" if directory.startswith("/") else path.lstrip("/")

    def read_whole(self, path: str) -> bytes:
        """Return the contents of a file; those of a small one are kept. Raises InputError."""
        if path not in self._small:
            entry = self.entry(path)
            if entry is None or entry.size_bytes is None:
                raise InputError("cannot be read: there is no such file in the store", file=self.shown(path))
            if entry.size_bytes > KEPT_BYTES:
                return self.read(path, 0, entry.size_bytes)
            self._small[path] = self.read(path, 0, entry.size_bytes)
        return self._small[path]

    def read(self, path: str, position: int, size_bytes: int) -> bytes:
        """Return that many bytes at a position. What was cut off goes on where it broke. Raises InputError."""
        read_at = self.reader(path)
        parts: list[bytes] = []
        missing = size_bytes
        while missing:
            part = self.patiently(path, lambda: read_at(position + size_bytes - missing, missing), missing)  # noqa: B023
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def reader(self, path: str) -> Callable[[int, int], bytes]:
        """Return what sends one request for a position and a size; it raises whatever the store's library does."""
        from pyarrow import fs

        if isinstance(self.files, fs.PyFileSystem):  # an open file of fsspec would read megabytes ahead
            files = self.files.handler.fs
            return lambda position, size_bytes: _some(files.cat_file(path, start=position, end=position + size_bytes))
        file = _once(lambda: self.files.open_input_file(path))
        return lambda position, size_bytes: _some(file().read_at(size_bytes, position))

    def stamp(self, path: str) -> Stamp:
        """Return what becomes another if the file is written again. Raises InputError."""
        return self.patiently(path, lambda: self._stamp(path))

    def _stamp(self, path: str) -> Stamp:
        from pyarrow import fs

        if isinstance(self.files, fs.PyFileSystem):
            files = self.files.handler.fs
            files.invalidate_cache()
            told = files.info(path)
            tag = str([told.get(name) for name in TAGS])
        else:
            with self.files.open_input_file(path) as file:
                tag = str((file.metadata() or {}).get(b"ETag", ""))
        return Stamp(_entry(self.files.get_file_info(path)), tag)

    def patiently(self, path: str, ask: Callable[[], T], size_bytes: int | None = 0) -> T:
        """Return what a request does, sent again if it fails; ``size_bytes`` as of `Patience.answered`.

        Raises:
            InputError: the store refuses it.
            UnansweredError: it fails again and again.
        """
        try:
            return self._patience.answered(ask, is_final, size_bytes)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - libraries of stores raise what they like
            said = masked(" ".join(str(error).split()) or type(error).__name__, self.url)
            if is_final(error):
                raise InputError(
                    f"cannot be read: {said}: {_why(error)}".removesuffix(": "), file=self.shown(path)
                ) from None
            raise UnansweredError(
                f"cannot be read: {said}: it failed again and again: try again, or copy it and read the copy",
                file=self.shown(path),
            ) from None

    def _opened(self, url: str) -> tuple[Any, str]:
        """Return a file system, and the path in it. Raises InputError."""
        open_it = self._by_fsspec if self.options or self._kind not in OF_PYARROW else _by_pyarrow
        try:
            made, path = self._patience.answer(lambda: open_it(url), OPENING_S)
        except InputError:
            raise
        except ImportError as error:
            raise InputError(f"this kind of store needs another package: {error}", file=without_secrets(url)) from None
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            said = f"cannot be opened: {masked(str(error), url)}"
            is_of_store = isinstance(error, OSError) and open_it is _by_pyarrow
            raise InputError(f"{said}: {CREDENTIALS}" if is_of_store else said, file=without_secrets(url)) from None
        return made, path.rstrip("/")

    def _by_fsspec(self, url: str) -> tuple[Any, str]:
        from pyarrow import fs

        try:
            from fsspec.core import url_to_fs
        except ImportError:
            words = f"fsspec is needed for such a store: {to_install('stores')}"
            raise InputError(words, file=without_secrets(url)) from None
        if self._kind not in WITH_QUERIES and "?" in url:
            raise InputError("a URL of this kind of store takes no options behind ?", file=without_secrets(url))
        made, path = url_to_fs(url, **self.options)
        if "@" in path.lstrip("/").partition("/")[0]:  # kinds without users take one for a name
            made, path = url_to_fs(bare(url), **self.options)
        return fs.PyFileSystem(fs.FSSpecHandler(made)), path


class UnansweredError(InputError):
    """A store that does not answer, or fails again and again."""


OPENING_S = 3 * ANSWER_S
"""How long a store may take to be opened: some are asked for their region."""


def _by_pyarrow(url: str) -> tuple[Any, str]:
    """Return pyarrow's file system, which waits for no answer long, and sends nothing again itself."""
    from pyarrow import fs

    if url.startswith(("gs:", "gcs:")) and "retry_limit_seconds=" not in url:
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={ANSWER_S}"
    made, path = fs.FileSystem.from_uri(quoted(url.replace("s3a://", "s3://", 1)))
    if made.type_name == "s3":
        _, (how,) = made.__reduce__()
        given = {option.partition("=")[0] for option in url.partition("?")[2].split("&") if option}
        if given <= how.keys():  # others, of certificates for example, are taken in URLs only, and would be lost
            limits = {"connect_timeout": ANSWER_S, "request_timeout": ANSWER_S}
            made = fs.S3FileSystem(**how | limits, retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1))
    return made, path


def is_final(error: Exception) -> bool:
    """Return whether no further attempt mends an error."""
    return isinstance(error, _FOREVER) or bool(_why(error))


def _why(error: Exception) -> str:
    """Return what to do about an error that stays; "" for one that may pass."""
    said = str(error)
    if isinstance(error, FileNotFoundError) or _ABSENT.search(said):
        return "there is nothing of that name"
    if isinstance(error, PermissionError) or _DENIED.search(said):
        return CREDENTIALS
    return ""


def _some(data: bytes) -> bytes:
    if not data:
        raise OSError("the store sent nothing")
    return data


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """Return what makes a value when it is first asked for; if that fails, the next time again."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get


def _entry(info: Any) -> Entry:
    written_ms = None if info.mtime_ns is None else info.mtime_ns // 1_000_000
    return Entry(UNKNOWN if info.size is None else info.size, written_ms) if info.is_file else Entry(None)


def open_store(url: str, options: Mapping[str, Any] | None = None) -> Store:
    """Return the store of a URL; one is the same for all URLs that differ in their paths only.

    Args:
        options: as fsspec's file system of the kind takes them.

    Raises:
        InputError: there is no such kind of store, a package for it is missing, or the URL is refused.
    """
    kind, whole = checked(url)
    place, _, query = whole.removeprefix(f"{kind}://").partition("?")
    key = kind, place.partition("/")[0], query, repr(sorted((options or {}).items()))
    if key not in _STORES:
        _STORES[key] = Store(url, options or {})
    return _STORES[key]


_STORES: dict[tuple[str, ...], Store] = {}
