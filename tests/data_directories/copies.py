"""Recordings of whole data directories: unpacked, and read by nothing of ``offsets_log.disk``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from offsets_log.log_format.partition_log import PartitionLog, Segment
from tests.conftest import read_json, unpack_once

PACKED = Path(__file__).parent
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in PACKED.glob("*.tar.xz"))
"""Names of all recordings."""

COPIES = [
    *(
        (name, copy)
        for name in ("kafka-3.9-one", "kafka-4.3-one", "kafka-4.3-dynamic")
        for copy in ("running", "killed", "stopped")
    ),
    *((name, copy) for name in ("kafka-3.9-blocked", "kafka-4.3-blocked") for copy in ("running", "killed")),
    *(("kafka-4.3-three", copy) for copy in ("broker-1", "broker-2", "broker-3")),
]
"""Recording and copy of a broker."""

WORDS = {"killed": "running", "broker-1": "running", "broker-2": "running", "broker-3": "before"}
"""Copy → what its brokers said at that time; of others their own name."""

Recorded = Callable[[str], Path]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Recorded:
    """``recorded(name)`` is the folder of an unpacked recording, shared by all workers: read it, never write."""
    return lambda name: unpack_once(PACKED / f"{name}.tar.xz", tmp_path_factory, request)


def data_directories(folder: Path, copy: str) -> list[Path]:
    """Those of one broker."""
    return sorted(path for path in (folder / "copies" / copy).iterdir() if path.is_dir())


def partition_folders(folder: Path, copy: str, topic: str) -> list[Path]:
    """The folders of a topic, those that are being deleted not among them."""
    name = re.compile(re.escape(topic) + r"-[0-9]+")
    directories = data_directories(folder, copy)
    return sorted(path for data in directories for path in data.iterdir() if name.fullmatch(path.name))


def partition_log(folder: Path) -> PartitionLog:
    """The segments of any topic's partition."""
    files = sorted(path for path in folder.iterdir() if re.fullmatch(r"[0-9]{20}\.log", path.name))
    return PartitionLog(None, tuple(Segment(path.name, int(path.stem), path.read_bytes()) for path in files))


def metadata_log(folder: Path, copy: str) -> tuple[PartitionLog, dict[str, Callable[[], bytes]]]:
    """A broker's copy of the metadata log, and the files beside its segments."""
    (log_folder,) = partition_folders(folder, copy, "__cluster_metadata")
    beside = {path.name: partial(path.read_bytes) for path in log_folder.iterdir()}
    return partition_log(log_folder), beside


def words(folder: Path, copy: str) -> dict[str, object]:
    """What AdminClient said when the copy was taken."""
    found: dict[str, object] = read_json(folder / "words" / WORDS.get(copy, copy) / "admin.json")
    return found


def dumps(folder: Path, copy: str, topic: str) -> Iterator[tuple[Path, str]]:
    """Each dumped file of a topic, and what kafka-dump-log says of it."""
    for text in sorted((folder / "dump-log" / copy).rglob(f"{topic}-*/*.txt")):
        relative = text.relative_to(folder / "dump-log")
        yield folder / "copies" / relative.with_suffix(""), text.read_text()
