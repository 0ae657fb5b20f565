"""Start a broker over a log: find what it cuts, deletes or refuses before the log is open.

After a clean stop it trusts its files; otherwise it reads every segment from the recovery point on, cuts the first one
that has a bad batch, and deletes those after it (``D-2``). A segment whose ``.index`` is missing is read on its own,
after any stop (``D-3``). Nothing else is read, except the last segment for its end.

References: ``LogLoader.java``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError, InvalidOffsetError, OffsetOverflowError
from offsets_log.broker.indexes import (
    INDEX_INTERVAL_BYTES,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    is_sane_transaction_index,
)
from offsets_log.broker.leader_epochs import LeaderEpochs, check_leader_epochs, decode_leader_epochs
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import Producers, ProducerState, Snapshots, files_between, floor_file
from offsets_log.broker.segment_recovery import SegmentRecovery, split
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer

NOT_RECOVERED = frozenset({PARTITION_METADATA})
"""Files beside the segments that do not influence recovery."""
DELETED = ".deleted"
"""Suffix of files that a start removes."""
SWAP = ".swap"
"""Suffix of a cleaned segment that is read, and of its indexes."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What recovery removed of a segment.

    Attributes:
        size_bytes: number of bytes from ``position`` to the end of the file; all of them if the segment was deleted.
    """

    file: str
    position: int
    size_bytes: int
    is_deleted: bool


@dataclass(slots=True)
class OpenLog:
    """A partition's log as a broker has opened it.

    Attributes:
        files: by ascending base offset.
        end_offset: the log's next offset; None if it is not open.
        refusal: why the broker does not start (``D-8``).
        leader_epochs: those in its file, and of batches that were recovered.
        producers: what is known of producers at its end.
    """

    files: dict[int, LogFile]
    start_offset: int = 0
    end_offset: int | None = None
    cuts: list[Cut] = field(default_factory=list)
    refusal: BrokerError | None = None
    leader_epochs: LeaderEpochs = field(default_factory=dict)
    producers: ProducerState = field(default_factory=lambda: ProducerState(Snapshots({})))

    @property
    def index_beyond(self) -> str | None:
        """Why the log ends where its last segment begins, in words, if that segment's index leads behind its bytes.

        A broker that trusts the index then takes the segment for empty (`LogFile.read_next_offset`).
        """
        last = self.files[max(self.files)] if self.files and self.refusal is None else None
        try:
            if last is None or not last.size_bytes or last.translate(last.index.last_offset) is not None:
                return None
        except BrokerError:
            return None
        return (
            f"the index of {last.file} names offset {last.index.last_offset}, which the segment does not reach: a "
            "broker that trusts it takes the segment for empty; without .kafka_cleanshutdown it would read all that is "
            "whole"
        )

    def find(self, offset: int) -> tuple[LogFile, FileBatch] | None:
        """Find where an offset is read from: the batch that holds it, or the first one after it.

        Raises:
            BrokerError: the offset is before the log, or something on the way is no batch.
        """
        floor = floor_file(self.files, offset)
        if floor is None:
            raise BrokerError(f"offset {offset} lies before the log's beginning", rule="D-6")
        for base_offset, file in self.files.items():
            if base_offset >= floor.base_offset and (batch := file.translate(offset)) is not None:
                return file, batch
        return None


def open_log(
    log: PartitionLog,
    *,
    stopped_cleanly: bool,
    finds_by_base_offset: bool,
    reads_txnindex_as_message: bool = False,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    in_bulk: bool = False,
) -> OpenLog:
    """Start a broker over a partition's files, which are not changed.

    Args:
        stopped_cleanly: whether ``.kafka_cleanshutdown`` lay beside them.
        finds_by_base_offset: see `LogFile`.
        reads_txnindex_as_message: whether it does not start over versions of aborted transactions that older releases
            take (``K44-21``).
        index_interval_bytes: interval of the indexes that it rebuilds.
        in_bulk: whether a kernel reads the plain batches that are recovered.
    """
    start = Start(
        log,
        stopped_cleanly=stopped_cleanly,
        finds_by_base_offset=finds_by_base_offset,
        reads_txnindex_as_message=reads_txnindex_as_message,
        index_interval_bytes=index_interval_bytes,
        in_bulk=in_bulk,
    )
    try:
        start.run()
    except BrokerError as error:
        start.opened.refusal = error
    return start.opened


def has_nothing_beside(log: PartitionLog) -> bool:
    """Whether a log with nothing unusual in its files is opened unchanged, after any stop.

    "Nothing unusual" means: whole batches with right checksums and ascending offsets; segments that are not empty, do
    not overlap, and hold no offset before their base or too far from it; producers only where the bit says a
    transaction; control batches of one marker each. Then each check of a recovery passes (``D-2``, ``D-3``, ``D-8``):
    index entries ascend, a transaction that ends was begun, and no producer writes outside of its open one. Files
    beside the segments must be read to know: indexes, snapshots of producers, leader epochs.
    """
    return all(name in NOT_RECOVERED or name.endswith(DELETED) for name in log.beside)


def has_other_versions(log: PartitionLog) -> bool:
    """Whether an aborted transaction is there of another version than brokers write: not all releases refuse it."""
    indexes = (read() for name, read in log.beside.items() if name.removesuffix(SWAP).endswith(".txnindex"))
    return any(entry.version for index in indexes for entry in TransactionIndex.read(index).entries)


class _Read(NamedTuple):
    """A segment that was read whole, which says the same again behind the same producers.

    Attributes:
        before: what was known of producers and their open transactions before it.
        entries, next_offset: of producers behind it.
    """

    file: LogFile
    before: tuple[Producers, dict[int, int]]
    entries: Producers
    next_offset: int


class Start:
    """One start of a broker over one partition."""

    def __init__(
        self,
        log: PartitionLog,
        *,
        stopped_cleanly: bool,
        finds_by_base_offset: bool,
        reads_txnindex_as_message: bool,
        index_interval_bytes: int,
        in_bulk: bool,
    ) -> None:
        self.log = log
        self._index_interval_bytes, self._in_bulk = index_interval_bytes, in_bulk
        self.opened = OpenLog({})
        self._stopped_cleanly = stopped_cleanly
        self._finds_by_base_offset = finds_by_base_offset
        self._reads_txnindex_as_message = reads_txnindex_as_message
        self._checkpoint = log.checkpoints.log_start_offset or 0
        self._recovery_point = log.checkpoints.recovery_point or 0
        self._believed: set[int] = set()
        self._found: dict[int, LogFile] = {}
        self._read: dict[int, _Read] = {}
        snapshots = {int(name[:20]): read() for name, read in log.beside.items() if name.endswith(".snapshot")}
        self._snapshots = Snapshots.read(snapshots)

    @property
    def _files(self) -> dict[int, LogFile]:
        return self.opened.files

    def run(self) -> None:
        """Open the log. Raises BrokerError if the broker does not start."""
        if (leader_epochs := self.log.beside.get(LEADER_EPOCHS)) is not None:
            check_leader_epochs(leader_epochs())
            self.opened.leader_epochs.update(decode_leader_epochs(leader_epochs()))
        for segment in self.log.segments:
            file = self.find(segment)
            self._found[file.base_offset] = file
        self._splitting(self._open_files)
        if not self._stopped_cleanly:
            self._splitting(self._recover_unflushed)
        self.opened.end_offset = self._end_offset()
        self.opened.start_offset = max(self._checkpoint, min(self._files))
        self._snapshots.remove_stray(self._files)
        producers = ProducerState(self._snapshots)
        producers.rebuild(
            self._files, self.opened.start_offset, self.opened.end_offset, trusts_snapshots=self._stopped_cleanly
        )
        self._find_first_unstable(producers)
        self.opened.producers = producers

    def _find_first_unstable(self, producers: ProducerState) -> None:
        """Look up the beginning of the oldest transaction (``UnifiedLog.maybeIncrementFirstUnstableOffset``).

        Raises:
            BrokerError: something on the way is no batch (``D-8``).
        """
        if (first := producers.first_unstable_offset) is not None:
            offset = max(first, self.opened.start_offset)
            if offset < (self.opened.end_offset or 0):
                self.opened.find(offset)

    def _splitting(self, step: Callable[[], None]) -> None:
        """Repeat a step until no segment holds offsets that are too far from its base (``retryOnOffsetOverflow``)."""
        while True:
            try:
                step()
            except OffsetOverflowError as error:
                self._split(error)
            else:
                return

    # ------------------------------------------------------------------------------------ segments

    def _open_files(self) -> None:
        """Open all files (``loadSegmentFiles``), even a second time; a missing index is built only the first time."""
        self._files.clear()
        for base_offset, file in sorted(self._found.items()):
            if base_offset not in self._believed:
                self._believed.add(base_offset)
                self._recover(file)
            self._files[base_offset] = file

    def find(self, segment: Segment) -> LogFile:
        """Return a segment with what lies beside it."""
        base_offset, view = segment.base_offset or 0, memoryview(segment.buffer)
        index, times = self._beside(segment, "index"), self._beside(segment, "timeindex")
        aborted = TransactionIndex.read(self._beside(segment, "txnindex") or b"")
        # If a cleaned segment has no index, one is built to find where its offsets end.
        has_index = index is not None or segment.file.endswith(SWAP)
        if has_index and is_sane_transaction_index(
            base_offset, aborted, reads_as_message=self._reads_txnindex_as_message
        ):
            self._believed.add(base_offset)
        read = OffsetIndex.read(base_offset, index or b"")
        return LogFile(
            base_offset,
            segment.file,
            view,
            len(view),
            read,
            self._finds_by_base_offset,
            TimeIndex.read(base_offset, times or b""),
            aborted,
            segment.modified_ms,
        )

    def _beside(self, segment: Segment, kind: str) -> Buffer | None:
        suffix = SWAP if segment.file.endswith(SWAP) else ""
        read = self.log.beside.get(f"{segment.base_offset or 0:020}.{kind}{suffix}")
        return None if read is None else read()

    def _recover(self, file: LogFile) -> int:
        """Read a segment from its beginning and cut it at the first bad batch; return how many bytes were cut.

        Raises:
            OffsetOverflowError, InvalidOffsetError: its offsets are impossible.
            BrokerError: any other failure, which is not caught.
        """
        producers = ProducerState(self._snapshots)
        producers.rebuild(self._files, self._checkpoint, file.base_offset, trusts_snapshots=False)
        valid_bytes = self._read_once(file, producers)
        cut = file.size_bytes - valid_bytes
        if cut:
            self.opened.cuts.append(Cut(file.file, valid_bytes, cut, is_deleted=False))
        file.size_bytes = valid_bytes
        producers.take_snapshot()
        return cut

    def _read_once(self, file: LogFile, producers: ProducerState) -> int:
        """Read as `read` does, but not again what is unflushed and was read for want of an index."""
        before = producers.entries.copy(), producers.ongoing.copy()
        known = self._read.get(file.base_offset)
        if known is not None and known.file is file and known.before == before:
            producers.entries, producers.map_end_offset = known.entries.copy(), known.next_offset
            return file.size_bytes
        valid_bytes = self.read(file, producers)
        if valid_bytes == file.size_bytes:
            self._read[file.base_offset] = _Read(file, before, producers.entries.copy(), producers.map_end_offset)
        return valid_bytes

    def read(self, file: LogFile, producers: ProducerState) -> int:
        """Make a segment's indexes again; how many bytes of it are whole. Raises as `_recover`."""
        recovery = SegmentRecovery(
            file, producers, self.opened.leader_epochs, self._index_interval_bytes, self._in_bulk
        )
        recovery.run()
        return recovery.valid_bytes

    def _split(self, error: OffsetOverflowError) -> None:
        """Split a segment into several whose offsets are near enough to their bases.

        Raises:
            BrokerError: the segment's last offset is not too far; only such segments are split (``D-8``).
        """
        file = next(file for file in self._found.values() if file.file == error.file)
        next_offset = file.read_next_offset()
        if next_offset <= file.base_offset or file.takes(next_offset - 1):
            raise BrokerError(
                f"{error.problem}; the segment is not split, for its last offset may be there",
                rule="D-8",
                file=error.file,
                position=error.position,
            )
        del self._found[file.base_offset]
        self._files.pop(file.base_offset, None)
        for part in split(file, self._index_interval_bytes):
            self._found[part.base_offset] = self._files[part.base_offset] = part
            self._believed.add(part.base_offset)
        self.opened.files = dict(sorted(self._files.items()))

    # -------------------------------------------------------------------------------------- the log

    def _recover_unflushed(self) -> None:
        unflushed = files_between(self._files, self._recovery_point, 1 << 63)
        for at, file in enumerate(unflushed):
            try:
                cut = self._recover(file)
            except InvalidOffsetError:
                cut = file.truncate_to(file.base_offset)
                self.opened.cuts.append(Cut(file.file, file.size_bytes, cut, is_deleted=False))
            if cut:
                file.read_next_offset()  # it is logged, and may fail
                for later in unflushed[at + 1 :]:
                    self._delete(later)
                return

    def _end_offset(self) -> int:
        """Return the end offset of a log with segments; a log that ends before its start is emptied (``D-10``)."""
        last = self._files[max(self._files)]
        end_offset = last.read_next_offset()
        if end_offset >= self._checkpoint:
            return end_offset
        for file in list(self._files.values()):
            self._delete(file)
        self._snapshots.by_offset.clear()
        empty = memoryview(b"")
        index = OffsetIndex(self._checkpoint)
        self._files[self._checkpoint] = LogFile(
            self._checkpoint, last.file, empty, 0, index, self._finds_by_base_offset
        )
        return self._checkpoint

    def _delete(self, file: LogFile) -> None:
        del self._files[file.base_offset]
        self._snapshots.by_offset.pop(file.base_offset, None)
        self.opened.cuts.append(Cut(file.file, 0, file.size_bytes, is_deleted=True))
