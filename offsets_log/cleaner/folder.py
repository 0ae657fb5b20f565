"""A partition's folder as it is after a round: every file, in pieces of what was read and of what is new."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from offsets_log.broker.leader_epochs import (
    decode_leader_epochs,
    encode_leader_epochs,
    leader_epochs_within,
)
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import encode_snapshot
from offsets_log.cleaner.group_cleaning import NewSegment
from offsets_log.cleaner.round import Round
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import Buffer


class FolderFile(NamedTuple):
    """One file.

    Attributes:
        modified_ms: when it counts as last written; None for now.
    """

    name: str
    pieces: list[Buffer]
    modified_ms: int | None = None


def new_files(new: NewSegment) -> Iterator[FolderFile]:
    """Yield the files of a complete new segment."""
    for suffix, pieces in new.writer.files():
        modified_ms = new.modified_ms if suffix == "log" else None
        yield FolderFile(f"{new.writer.base_offset:020}.{suffix}", pieces, modified_ms)


def other_files(log: PartitionLog, done: Round) -> Iterator[FolderFile]:
    """Yield all files of the folder except those of new segments."""
    for file in segments_kept(done):
        yield from segment_files(file, log.beside)
    yield from files_beside(log, done)


def segments_kept(done: Round) -> list[LogFile]:
    """Return the segments that no new one replaces; parts of a split one come first."""
    vanished = _vanished(done)
    return [*done.parts, *(file for base_offset, file in done.opened.files.items() if base_offset not in vanished)]


def files_beside(log: PartitionLog, done: Round) -> Iterator[FolderFile]:
    """Yield the files that belong to no segment."""
    there = {*done.new, *(file.base_offset for file in segments_kept(done))}
    yield from _snapshots(log, done, _vanished(done) - there)
    yield FolderFile(LEADER_EPOCHS, [_leader_epochs(log, done)])
    if PARTITION_METADATA in log.beside:
        yield FolderFile(PARTITION_METADATA, [log.beside[PARTITION_METADATA]()])


def _vanished(done: Round) -> set[int]:
    """Return base offsets of segments that others replace."""
    vanished = {base_offset for new in done.new.values() for base_offset in new.replaced}
    return vanished | {_split_base(done)} if done.parts else vanished


def _leader_epochs(log: PartitionLog, done: Round) -> Buffer:
    """Return the file's bytes: unchanged if its entries are; empty if a broker makes it without any."""
    start, end = log.checkpoints.log_start_offset or 0, done.opened.end_offset or 0
    epochs = leader_epochs_within(done.opened.leader_epochs, start, end)
    if LEADER_EPOCHS in log.beside and decode_leader_epochs(log.beside[LEADER_EPOCHS]()) == epochs:
        return log.beside[LEADER_EPOCHS]()
    return encode_leader_epochs(epochs) if epochs or LEADER_EPOCHS in log.beside else b""


def _split_base(done: Round) -> int:
    """Return the base offset of the segment that was split."""
    (base_offset,) = (base for base, file in done.opened.files.items() if file.file == done.parts[0].file)
    return base_offset


def segment_files(file: LogFile, beside: Container[str]) -> Iterator[FolderFile]:
    """Yield the files of a segment that stays.

    Args:
        beside: names of files that lay beside it.
    """
    stem = f"{file.base_offset:020}"
    yield FolderFile(f"{stem}.log", [file.view[: file.size_bytes]], file.modified_ms)
    yield FolderFile(f"{stem}.index", [file.index.encode()])
    yield FolderFile(f"{stem}.timeindex", [file.times.encode()])
    if file.aborted.entries or f"{stem}.txnindex" in beside:
        yield FolderFile(f"{stem}.txnindex", [file.aborted.encode()])


def _snapshots(log: PartitionLog, done: Round, vanished: set[int]) -> Iterator[FolderFile]:
    """Yield the snapshots, except those where vanished segments begin (``CL-45``)."""
    for offset, producers in sorted(done.opened.producers.snapshots.by_offset.items()):
        if offset not in vanished:
            name = f"{offset:020}.snapshot"
            present = log.beside.get(name)
            yield FolderFile(name, [encode_snapshot(producers) if present is None else present()])
