"""Stores that fail, forbid, lack and change what is read, and how much of them is held at a time."""

from __future__ import annotations

import gc
import mmap
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from click.testing import CliRunner, Result
from fsspec.implementations.memory import MemoryFileSystem

from benchmarks.generate import Options, generate
from offsets_log.disk import asking, stored, stores
from offsets_log.disk.asking import WAITS_S
from offsets_log.disk.reader import open_logs
from offsets_log.disk.stored import CHANGED, StorePath
from offsets_log.disk.stores import Store
from offsets_log.errors import InputError
from offsets_log_cli.main import main
from tests.conftest import BulkFrom
from tests.stores.servers import s3_server, s3_url


class Odd(MemoryFileSystem):  # type: ignore[misc]
    """A store in memory that does what a test tells it to."""

    protocol = "odd"
    cachable = False
    requests: ClassVar[list[tuple[str, int, int]]] = []
    answer: Callable[[str, int, bytes], bytes] = staticmethod(lambda path, begin, data: data)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("odd://").strip("/")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **how: Any) -> bytes:
        data = super().cat_file(path, start, end, **how)
        type(self).requests.append((path, start or 0, len(data)))
        return type(self).answer(path, start or 0, data)


@pytest.fixture(autouse=True)
def odd(monkeypatch: pytest.MonkeyPatch) -> type[Odd]:
    """The store, from which nobody waits long; a range is a few kilobytes."""
    fsspec.register_implementation("odd", Odd, clobber=True)
    monkeypatch.setattr(Odd, "requests", [])
    monkeypatch.setattr(Odd, "answer", staticmethod(lambda path, begin, data: data))
    monkeypatch.setattr(asking, "WAITS_S", (0.0,) * len(WAITS_S))
    monkeypatch.setattr(stored, "RANGE_BYTES", 5000)
    return Odd


SEGMENT_BYTES = 50_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some twenty segments, which are in the store, too."""
    folder = tmp_path_factory.mktemp("log") / "data"
    options = Options(bytes=1_000_000, groups=30, partitions=4, transactions=0.2, segment_bytes=SEGMENT_BYTES)
    generate(folder, options)
    for path in folder.rglob("*"):
        if path.is_file():
            MemoryFileSystem().pipe_file(f"/{folder.name}{path.relative_to(folder.parent)}", path.read_bytes())
    return folder


def url_of(log: Path) -> str:
    return f"odd://{log.name}{log.name}"


def compact(place: str | Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["compact", str(place), "-o", "csv", *more], catch_exceptions=False)


@pytest.fixture
def whole(log: Path, bulk_from: BulkFrom) -> str:
    """The answer, by kernels."""
    bulk_from(0)
    return compact(log).stdout


def test_a_store_that_fails_once_in_twenty_requests(log: Path, whole: str, odd: Any) -> None:
    def answer(path: str, begin: int, data: bytes) -> bytes:
        if len(odd.requests) % 20 == 0:
            raise OSError("the connection was reset")
        return data

    odd.answer = staticmethod(answer)
    done = compact(url_of(log))
    assert (done.exit_code, done.stdout) == (0, whole)
    assert len(odd.requests) > 100


def test_what_is_cut_off_goes_on_where_it_broke(log: Path, whole: str, odd: Any) -> None:
    odd.answer = staticmethod(lambda path, begin, data: data[: max(1, len(data) - 1000)])
    assert compact(url_of(log)).stdout == whole
    (first, *_) = sorted(request[1:] for request in odd.requests if request[0].endswith(f"{0:020}.log"))
    assert first == (0, 5000)
    assert {begin for path, begin, _ in odd.requests if path.endswith(f"{0:020}.log")} >= {0, 4000, 5000, 9000}


def test_a_store_that_fails_for_good_is_named_with_what_it_says(log: Path, odd: Any, bulk_from: BulkFrom) -> None:
    def answer(path: str, begin: int, data: bytes) -> bytes:
        raise OSError("no route to odd://user:secret@host/?key=secret")

    odd.answer = staticmethod(answer)
    done = compact(url_of(log))
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (1, "")
    assert line.startswith(f"offsets-log: error: {url_of(log)}/")
    assert "no route to odd://host/: it failed again and again" in line
    assert "secret" not in line


def test_what_is_written_again_or_gone_since_it_was_found_is_no_mix(log: Path, odd: Any) -> None:
    store, path = MemoryFileSystem(), f"/{log.name}{log.name}/__consumer_offsets-0/{0:020}.log"
    data = store.cat_file(path)
    with open_logs([url_of(log)]) as opened:
        store.pipe_file(path, data + b"\0")
        with pytest.raises(InputError, match=CHANGED):
            _ = opened.logs[0].segments[0].buffer
    store.pipe_file(path, data)
    with open_logs([url_of(log)]) as opened:
        store.rm_file(path)
        with pytest.raises(InputError, match="there is nothing of that name"):
            _ = opened.logs[0].segments[0].buffer
    store.pipe_file(path, data)

    def answer(path: str, begin: int, data: bytes) -> bytes:
        if path.endswith(f"{0:020}.log") and begin == 5000:
            entry = MemoryFileSystem.store[path]
            entry.created = entry.created.replace(year=2020)
        return data

    odd.answer = staticmethod(answer)
    with open_logs([url_of(log)]) as opened, pytest.raises(InputError, match=CHANGED):
        _ = opened.logs[0].segments[0].buffer
    store.pipe_file(path, data)


class Counted(mmap.mmap):
    """A mapping that is counted while it lives."""

    alive: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()
    most = 0

    def __new__(cls, *arguments: Any, **how: Any) -> Any:
        made = super().__new__(cls, *arguments, **how)
        cls.alive.add(made)
        cls.most = max(cls.most, len(cls.alive))
        return made

    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.mark.parametrize("command", ["compact", "info", "decode", "history", "top"])
def test_few_segments_are_held_at_a_time(
    command: str, log: Path, bulk_from: BulkFrom, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk_from(0)
    monkeypatch.setattr(stored.mmap, "mmap", Counted)
    monkeypatch.setattr(Counted, "most", 0)
    gc.collect()
    more = ["-g", "*"] if command == "history" else []
    done = CliRunner().invoke(main, [command, url_of(log), "--threads", "2", *more], catch_exceptions=False)
    assert done.exit_code == 0
    assert 2 <= Counted.most <= 2 * 2 + stored.MAPPINGS_KEPT
    assert len(list(log.glob("*/*.log"))) > 15


def test_temporary_files_have_their_room_and_what_made_room_is_fetched_again(
    log: Path, whole: str, odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {path.name: path.stat().st_size for path in log.glob("*/*.log")}
    monkeypatch.setattr(stored, "_ROOM", stored._Room())
    monkeypatch.setattr(stored.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(0, 0, 8 * SEGMENT_BYTES))
    assert compact(url_of(log)).stdout == whole
    fetched = sum(size for path, _, size in odd.requests if path.endswith(".log"))
    assert fetched > sum(made.values())
    odd.requests.clear()
    monkeypatch.setattr(stored, "_ROOM", stored._Room())
    monkeypatch.setattr(stored.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(0, 0, 1 << 40))
    assert compact(url_of(log)).stdout == whole
    assert sum(size for path, _, size in odd.requests if path.endswith(".log")) == sum(made.values())


def test_a_full_disk_is_told(log: Path, odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes, at: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored.os, "pwrite", full)
    done = compact(url_of(log))
    assert done.exit_code == 1
    assert "is full: set TMPDIR to a folder with more room" in done.stderr


def test_a_kind_of_store_that_needs_a_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = compact("nosuchkind://bucket/data")
    assert (unknown.exit_code, len(unknown.stderr.splitlines())) == (1, 1)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    done = compact("odd://other/data")
    assert done.exit_code == 1
    assert "pip install 'offsets-log[stores]'" in done.stderr


class Refusing(BaseHTTPRequestHandler):
    """A server that forbids everything."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_forbidden_and_missing_buckets_are_told_at_once(server: ThreadingHTTPServer) -> None:
    host, port = str(server.server_address[0]), server.server_port
    with s3_server() as (s3_host, s3_port):
        for url, words in (
            (s3_url(host, port, "bucket/data"), stores.CREDENTIALS),
            (f"http://{host}:{port}/data", stores.CREDENTIALS),
            (s3_url(s3_host, s3_port, "none/data"), "the store has no bucket none"),
            (s3_url(s3_host, s3_port, "none/data*"), "the store has no bucket none"),
        ):
            done = compact(url)
            assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1), done.stderr
            assert words in done.stderr
            assert "secret" not in done.stderr


def test_directories_that_are_names_only_are_directories(odd: Any) -> None:
    MemoryFileSystem().pipe_file("/names/a/b/c", b"")
    place = StorePath.of("odd://names")
    assert place.expand() == [place]
    assert (place / "a").is_dir()
    assert (place / "a" / "b").listed() == (["c"], [])
    assert not (place / "d").is_dir()
    assert not (place / "a").is_file()
    assert isinstance(place.store, Store)
