"""A partition's folder as it grows: segments on the disk at every moment, found again after whatever end.

The last segment has no indexes while it is written; what was written of it is read again when a later run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from offsets_log.broker.indexes import OffsetIndex
from offsets_log.broker.leader_epochs import (
    check_leader_epochs,
    decode_leader_epochs,
    encode_leader_epochs,
)
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.log_writer import PartitionLogWriter
from offsets_log.broker.producers import ProducerState, Snapshots, decode_snapshot, encode_snapshot
from offsets_log.broker.segment_recovery import SegmentRecovery
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.disk.folder import SEGMENT
from offsets_log.disk.local import map_file
from offsets_log.disk.writer import atomic_output, output_errors
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.segment import Buffer

_BESIDE_SEGMENT = ("index", "timeindex", "txnindex")


class PartitionFolder:
    """The folder; close it after use.

    Attributes:
        writer: takes batches; call `flush` behind it, which writes what it took.
        size_bytes: of all batches in the folder.
    """

    def __init__(self, path: Path, segment_bytes: int) -> None:
        """Find what an earlier run left, without what it did not write whole.

        Raises:
            OutputError: the folder cannot be made, read or changed.
        """
        self._path = path
        self._file: tuple[int, BinaryIO] | None = None
        self.writer = PartitionLogWriter(self._end_segment, segment_bytes=segment_bytes)
        with output_errors(path):
            path.mkdir(exist_ok=True)
            self._resume()
            names = [path / f"{base:020}.log" for base in self._bases()]
            self.size_bytes = sum(name.stat().st_size for name in names)
        self._snapshots = set(self.writer.producers.snapshots.by_offset)

    @property
    def end_offset(self) -> int | None:
        """Where the copy goes on; None where it is not known where it begins."""
        return self.writer.end_offset

    def begin(self, log_start_offset: int, topic_id: str | None) -> None:
        """Begin an empty copy where the log begins, by whose start brokers name a first segment.

        Raises:
            OutputError: the folder cannot be written.
        """
        self._append(self.writer.begin(log_start_offset), ())
        if topic_id is not None:
            self._replace(PARTITION_METADATA, [f"version: 0\ntopic_id: {topic_id}\n".encode()])

    def flush(self) -> None:
        """Write what the writer took; what is needed to go on from there is written first. Raises OutputError."""
        self._write_snapshots()
        segment = self.writer.segment
        if segment is not None:
            self._append(segment, segment.take_pieces())

    def close(self) -> None:
        """Write all, with the indexes of the last segment and what belongs beside. Raises OutputError."""
        self.writer.close()
        self._write_snapshots()

    def abandon(self) -> None:
        """Close files as they are."""
        if self._file is not None:
            self._file[1].close()
            self._file = None

    # ------------------------------------------------------------------------------------------- segments

    def _append(self, segment: SegmentWriter, pieces: Iterable[Buffer]) -> None:
        path = self._path / f"{segment.base_offset:020}.log"
        with output_errors(path):
            if self._file is None:
                self._file = segment.base_offset, path.open("ab", buffering=0)
            for piece in pieces:
                view = memoryview(piece)
                self.size_bytes += len(view)
                while view:
                    view = view[self._file[1].write(view) :]

    def _end_segment(self, segment: SegmentWriter) -> None:
        for suffix, pieces in segment.files():
            if suffix == "log":
                self._append(segment, pieces)
                self._sync()
            else:
                self._replace(f"{segment.base_offset:020}.{suffix}", pieces)
        self._replace(LEADER_EPOCHS, [encode_leader_epochs(self.writer.leader_epochs)])

    def _sync(self) -> None:
        if self._file is not None:
            with output_errors(self._path):
                os.fsync(self._file[1].fileno())
            self.abandon()

    def _write_snapshots(self) -> None:
        """Write those that are new: a segment that ends leaves one for the next."""
        found = self.writer.producers.snapshots.by_offset
        for offset in found.keys() - self._snapshots:
            self._replace(f"{offset:020}.snapshot", [encode_snapshot(found[offset])])
            self._snapshots.add(offset)

    def _replace(self, name: str, pieces: Iterable[Buffer]) -> None:
        with atomic_output(self._path / name) as file:
            for piece in pieces:
                file.write(piece)

    # --------------------------------------------------------------------------------- what an earlier run left

    def _bases(self) -> list[int]:
        found = (SEGMENT.fullmatch(path.name) for path in self._path.iterdir())
        return sorted(int(match[1]) for match in found if match and not match[2] and not match[3])

    def _resume(self) -> None:
        """Take up the last segment: its whole batches stay, and the producers are as they were at its end."""
        for path in self._path.glob(".*.tmp"):
            path.unlink()
        while bases := self._bases():
            if self._take_up(bases):
                return
            self._drop(bases[-1], "log")

    def _take_up(self, bases: list[int]) -> bool:
        """Open the last segment to write on; return False if it holds no whole batch, or what went before is gone."""
        base = bases[-1]
        path = self._path / f"{base:020}.log"
        for suffix in _BESIDE_SEGMENT:
            self._drop(base, suffix)
        producers = self._producers(bases)
        if producers is None:
            return False
        epochs = self._leader_epochs(base)
        with ExitStack() as stack:
            data = bytes(map_file(path, stack))
        file = LogFile(base, str(path), memoryview(data), len(data), OffsetIndex(base), True)
        recovery = SegmentRecovery(file, producers, epochs, in_bulk=True)
        recovery.read()
        if not recovery.valid_bytes:
            return False
        file.size_bytes = recovery.valid_bytes
        last = file.translate(producers.map_end_offset - 1)
        assert last is not None
        os.truncate(path, recovery.valid_bytes)
        writer = self.writer
        writer.producers, writer.leader_epochs = producers, epochs
        writer.end_offset, writer.last = producers.map_end_offset, last.raw()
        writer.segment = SegmentWriter(base, recovery.indexing, aborted=file.aborted, size_bytes=recovery.valid_bytes)
        return True

    def _producers(self, bases: list[int]) -> ProducerState | None:
        """Return the producers known where the last segment begins, None where no snapshot tells.

        Snapshots of other places are removed.
        """
        for path in self._path.glob("*.snapshot"):
            if path.stem not in {f"{base:020}" for base in bases}:
                path.unlink()
        path = self._path / f"{bases[-1]:020}.snapshot"
        entries = decode_snapshot(path.read_bytes()) if path.exists() else None
        if entries is None:
            if len(bases) > 1:
                return None
            entries = {}
        ongoing = {entry.first_offset: producer for producer, entry in entries.items() if entry.first_offset >= 0}
        state = ProducerState(Snapshots({bases[-1]: dict(entries)}), entries, ongoing)
        state.map_end_offset = state.snapshot_offset = bases[-1]
        return state

    def _leader_epochs(self, base: int) -> dict[int, int]:
        """Return the epochs that begin before a segment."""
        path = self._path / LEADER_EPOCHS
        if not path.exists():
            return {}
        data = path.read_bytes()
        check_leader_epochs(data)
        return {epoch: offset for epoch, offset in decode_leader_epochs(data).items() if offset < base}

    def _drop(self, base: int, suffix: str) -> None:
        (self._path / f"{base:020}.{suffix}").unlink(missing_ok=True)
