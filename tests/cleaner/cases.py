"""Recorded rounds of Kafka's own cleaner, and ours over the same files."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from offsets_log.broker.indexes import Indexing, OffsetIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.bounds import bounds_of
from offsets_log.cleaner.folder import FolderFile, new_files, other_files
from offsets_log.cleaner.group_cleaning import NewSegment
from offsets_log.cleaner.opening import open_for_cleaning
from offsets_log.cleaner.round import FAILED, Round, clean
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import Record

RECORDED_BY = "4.3.0"
"""The release of ``after/`` and ``result.json``."""
NOT_LOADED = "not loaded"
"""The recorded outcome where Kafka does not open the log."""
SETTINGS = (
    "delete_retention_ms", "min_compaction_lag_ms", "segment_bytes", "segment_index_bytes", "index_interval_bytes",
    "max_message_bytes", "io_buffer_bytes", "cleaner_max_message_bytes", "dedupe_buffer_bytes", "load_factor_percent",
    "producer_id_expiration_ms", "now_ms",
)  # fmt: skip
RESULTS: dict[str, Callable[[Round], Any]] = {
    "outcome": lambda done: done.outcome,
    "end_offset": lambda done: done.end_offset,
    "first_dirty_offset": lambda done: done.bounds.first_dirty,
    "checkpoint_was_invalid": lambda done: done.bounds.checkpoint_was_invalid,
    "first_uncleanable_raw": lambda done: done.bounds.held_at,
    "first_uncleanable_offset": lambda done: done.bounds.first_uncleanable,
    "clean_bytes": lambda done: done.bounds.clean_bytes,
    "cleanable_bytes": lambda done: done.bounds.cleanable_bytes,
    "last_stable_offset": lambda done: done.bounds.last_stable,
    "high_watermark": lambda done: done.bounds.high_watermark,
    "active_segment": lambda done: done.bounds.active_segment,
    "log_start_offset": lambda done: done.bounds.log_start,
    "log_end_offset": lambda done: done.bounds.log_end,
}
"""Field of ``result.json`` → ours."""

Files = dict[str, bytes]


@dataclass(slots=True)
class Case:
    """A recorded round.

    Attributes:
        case: its ``case.json``.
        folders: ``before``, ``after``, ``after-VERSION`` → the files in it.
        results: release → its ``result.json``.
    """

    case: dict[str, Any] = field(default_factory=dict)
    folders: dict[str, Files] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def after(self, release: str) -> Files:
        """What a release made of it."""
        return self.folders.get(f"after-{release}", self.folders["after"])

    def outcome(self, release: str) -> str:
        """How a row says what a release made of it; a log that does not open is no round's, and fails as well."""
        outcome: str = self.results[release]["outcome"]
        return FAILED if outcome == NOT_LOADED else outcome

    def settings(self, release: str) -> Settings:
        """All that decides."""
        rules = Rules.of(tuple(map(int, release.split("."))))
        return Settings(rules=rules, **{name: self.case[name] for name in SETTINGS})

    @property
    def is_map_large(self) -> bool:
        """Whether the offset map is never full."""
        return int(self.case["dedupe_buffer_bytes"]) >= 1 << 20

    @property
    def log(self) -> PartitionLog:
        """Its files before the round."""
        before = self.folders["before"]
        segments = [
            Segment(name, int(name[:20]), data, modified_ms=self.case["mtime_ms"][name])
            for name, data in sorted(before.items())
            if name.endswith(".log")
        ]
        beside = {name: partial(bytes, data) for name, data in before.items() if not name.endswith(".log")}
        checkpoints = Checkpoints(
            cleaned_until=self.case["first_dirty_offset"],
            high_watermark=self.case["high_watermark"],
            log_start_offset=self.case["log_start_offset"],
        )
        return PartitionLog(0, tuple(segments), checkpoints=checkpoints, beside=beside)


@cache
def all_cases(archive: Path = Path(__file__).parent / "cases.tar.xz") -> dict[str, Case]:
    """By name."""
    cases: dict[str, Case] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            name, *path = member.name.split("/")
            content = tar.extractfile(member)
            assert content is not None
            _put(cases.setdefault(name, Case()), path, content.read())
    return cases


def read_cases(folder: Path) -> dict[str, Case]:
    """The same from folders of cases."""
    cases: dict[str, Case] = {}
    for path in sorted(folder.glob("*/case.json")):
        case = cases[path.parent.name] = Case()
        for file in path.parent.rglob("*"):
            if file.is_file():
                _put(case, list(file.relative_to(path.parent).parts), file.read_bytes())
    return cases


def _put(case: Case, path: list[str], data: bytes) -> None:
    if len(path) == 2:
        case.folders.setdefault(path[0], {})[path[1]] = data
    elif path == ["case.json"]:
        case.case = json.loads(data)
    else:
        version = path[0].removeprefix("result").removesuffix(".json").removeprefix("-")
        case.results[version or RECORDED_BY] = json.loads(data)


def run(
    log: PartitionLog, settings: Settings, *, in_bulk: bool = False, threads: int = 1
) -> tuple[Round, Files, dict[str, int | None]]:
    """Our round; the folder afterwards, and when its segments count as last written."""
    files: dict[str, FolderFile] = {}

    def emit(new: NewSegment) -> None:
        files.update((file.name, file._replace(pieces=list(map(bytes, file.pieces)))) for file in new_files(new))

    opened = open_for_cleaning(log, settings, in_bulk=in_bulk)
    assert opened.refusal is None
    done = clean(opened, bounds_of(opened, log.checkpoints, settings), settings, emit, in_bulk=in_bulk, threads=threads)
    files.update((file.name, file) for file in other_files(log, done))
    contents = {name: b"".join(map(bytes, file.pieces)) for name, file in files.items()}
    return done, contents, {name: file.modified_ms for name, file in files.items() if name.endswith(".log")}


def differences(case: Case, release: str = RECORDED_BY, *, in_bulk: bool = False, threads: int = 1) -> list[str]:
    """What our round does not do as the recorded one did; batches compressed again may be packed otherwise."""
    settings, recorded = case.settings(release), case.results[release]
    if in_bulk and case.is_map_large:
        settings = replace(settings, dedupe_buffer_bytes=None)
    if recorded["outcome"] == NOT_LOADED:
        return [] if open_for_cleaning(case.log, settings, in_bulk=in_bulk).refusal is not None else ["it opens"]
    done, ours, modified = run(case.log, settings, in_bulk=in_bulk, threads=threads)
    theirs = case.after(release)
    found = [
        f"{name}: {ours_of(done)}, not {recorded[name]}"
        for name, ours_of in RESULTS.items()
        if name in recorded and ours_of(done) != recorded[name]
    ]
    if ours.keys() != theirs.keys():
        return [*found, f"files: {sorted(ours.keys() ^ theirs.keys())}"]
    repacked = {name[:20] for name in theirs if name.endswith(".log") and ours[name] != theirs[name]}
    found += [f"{stem}.log" for stem in repacked if not holds_the_same(ours, theirs, stem, settings)]
    found += [
        name
        for name in theirs
        if ours[name] != theirs[name] and not (name[:20] in repacked and name.endswith(("log", ".index", "timeindex")))
    ]
    found += [
        f"{name} written at {modified[name]}"
        for name, facts in recorded["files"].items()
        if name in modified and modified[name] != facts["mtime_ms"]
    ]
    return found


def holds_the_same(ours: Files, theirs: Files, stem: str, settings: Settings) -> bool:
    """Whether two segments are equal once they are unpacked, and our indexes are right for ours."""
    name = f"{stem}.log"
    indexing = Indexing.of(int(stem), settings.index_interval_bytes)
    position = 0
    for batch in batches(_file(name, ours[name])):
        indexing.take(position, batch.last_offset, batch.max_timestamp_ms)
        position = batch.end
    indexing.close()
    if settings.rules.indexes_each_batch and (
        ours[f"{stem}.index"] != indexing.index.encode() or ours[f"{stem}.timeindex"] != indexing.times.encode()
    ):
        return False
    return list(_contents(name, ours[name])) == list(_contents(name, theirs[name]))


def _file(name: str, data: bytes) -> LogFile:
    return LogFile(0, name, memoryview(data), len(data), OffsetIndex(0), finds_by_base_offset=True)


def _contents(name: str, data: bytes) -> Iterator[tuple[Any, bytes | list[Record]]]:
    """Each batch: of a compressed one the header without length and checksum, and its records."""
    for batch in batches(_file(name, data)):
        whole = batch.whole()
        if not whole.codec.id:
            yield None, whole.raw
        else:
            header = replace(whole, raw=b"", crc=0, position=0)
            yield header, [replace(record, position=0) for record in records(batch)]
