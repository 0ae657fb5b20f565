"""Stores in the network (``s3://``, ``gs://``, ``hdfs://`` and what else fsspec knows), read-only: what is in them.

pyarrow's own file systems are used for the kinds that they know, fsspec's for all others, and where options are given.
Credentials come from the environment, from fsspec's configuration, or with the URL. What is shown of a URL has neither
its user nor its query, in which secrets may be.

A request that fails is sent again, a few times; what is missing or forbidden fails at once.
"""

from __future__ import annotations

import posixpath
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from offsets_log.errors import InputError
from offsets_log.words import to_install

T = TypeVar("T")

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*)://(.*)", re.DOTALL)
_SECRETS = re.compile(r"(?<=://)[^/?#@\s]*@|\?[^\s'\"]*")
_WITH_QUERIES = ("http", "https")
"""Kinds of URLs whose query is a part of the name."""
WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""How long to wait before each further attempt, in seconds."""
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


def is_url(path: str) -> bool:
    """Return whether a path is a URL of a store; ``file:`` is this machine's disk."""
    match = _URL.match(path)
    return match is not None and match[1] != "file"


def without_secrets(path: str) -> str:
    """Return a path or text as it may be shown: URLs in it have no user and no query."""
    return _SECRETS.sub("", path) if "://" in path else path


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
        self.files, path = _opened(url, options)
        bare = without_secrets(url)
        self._prefix = "" if path.startswith(_WITH_QUERIES) else bare.rstrip("/").removesuffix(path) if path else bare
        self._directories: dict[str, dict[str, Entry]] = {}
        self._found: dict[str, dict[str, Entry]] = {}
        self._small: dict[str, bytes] = {}

    def path_of(self, url: str) -> str:
        """Return the path of another URL of the same store."""
        return (without_secrets(url) if self._prefix else url).removeprefix(self._prefix).rstrip("/")

    def shown(self, path: str) -> str:
        """Return a path as it is shown."""
        return without_secrets(self._prefix + path)

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
        if not path.startswith(_WITH_QUERIES):
            return False
        told = self.patiently(path, lambda: self.files.handler.fs.info(path))
        return str(told.get("mimetype", "")).startswith("text/html")

    def _listed(self, directory: str, *, is_deep: bool) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(directory, allow_not_found=True, recursive=is_deep)
        try:
            found: list[Any] = self.patiently(directory, lambda: self.files.get_file_info(selector))
        except InputError:
            if is_deep:
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
            part = self.patiently(path, lambda: read_at(position + size_bytes - missing, missing))  # noqa: B023
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

    def patiently(self, path: str, ask: Callable[[], T]) -> T:
        """Return what a request does, sent again if it fails. Raises InputError."""
        for wait_s in (*WAITS_S, None):
            try:
                return ask()
            except Exception as error:  # noqa: BLE001 - libraries of stores raise what they like
                if wait_s is None or isinstance(error, _FOREVER) or _why(error):
                    raise self._refused(path, error) from None
                time.sleep(wait_s * random.uniform(0.5, 1))
        raise AssertionError

    def _refused(self, path: str, error: Exception) -> InputError:
        if isinstance(error, InputError):
            return error
        said = without_secrets(" ".join(str(error).split()) or type(error).__name__)
        why = _why(error) or f"it failed {len(WAITS_S) + 1} times: try again, or copy it and read the copy"
        return InputError(f"cannot be read: {said}: {why}", file=self.shown(path))


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
        InputError: there is no such kind of store, or a package for it is missing.
    """
    match = _URL.match(url)
    assert match is not None
    place, _, query = match[2].partition("?")
    key = match[1], place.partition("/")[0], query, repr(sorted((options or {}).items()))
    if key not in _STORES:
        _STORES[key] = Store(url, options or {})
    return _STORES[key]


_STORES: dict[tuple[str, ...], Store] = {}


def _opened(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return a file system, and the path in it. Raises InputError."""
    from pyarrow import fs

    shown = without_secrets(url)
    if not options:
        try:
            store, path = fs.FileSystem.from_uri(_quoted(url.replace("s3a://", "s3://", 1)))
        except (ValueError, NotImplementedError):
            pass
        except OSError as error:
            raise InputError(f"cannot be opened: {without_secrets(str(error))}: {CREDENTIALS}", file=shown) from None
        else:
            return store, path.rstrip("/")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(f"fsspec is needed for such a store: {to_install('stores')}", file=shown) from None
    bare = url if url.startswith(_WITH_QUERIES) else url.partition("?")[0]
    try:
        made, path = url_to_fs(bare, **options)
        if "@" in path.lstrip("/").partition("/")[0]:  # kinds without users take one for a name
            made, path = url_to_fs(without_secrets(bare), **options)
    except ImportError as error:
        raise InputError(f"this kind of store needs another package: {error}", file=shown) from None
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"cannot be opened: {without_secrets(str(error))}", file=shown) from None
    return fs.PyFileSystem(fs.FSSpecHandler(made)), path.rstrip("/")


def _quoted(url: str) -> str:
    """Return a URL whose path has no sign that is not allowed there: of globs, for example."""
    place, question, query = url.partition("?")
    return quote(place, safe="/:@%+!$&'(),;=~") + question + query
