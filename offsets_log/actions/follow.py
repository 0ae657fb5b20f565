"""Follow logs that grow: look at their directories, read what is new, show what it changes."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log.actions.metrics import serving
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Note
from offsets_log.disk.growing import (
    GrowingDirectories,
    GrowingTopics,
    followed_directory,
    look_for_ends,
    read_at,
    segment_files,
)
from offsets_log.errors import AskedError, InputError
from offsets_log.following import metrics
from offsets_log.following.growth import PIECE_BYTES, GrowingLog, GrownPiece, ReadAgainError, Replaced
from offsets_log.following.lags import KnownEnds
from offsets_log.following.metrics import Sample
from offsets_log.following.pieces import PieceReader
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import Row, partition_name
from offsets_log.session.session import Session

LOOK_EVERY_S = 0.2
RARELY = 200_000, 50, 100
ENDS_EVERY_S = 5.0
"""So often the ends of users' partitions are looked at."""
PIECE_OF_ROWS_BYTES = 1 << 21
"""How much of a log is read at a time where each of its records may become a row."""


class Followed(Protocol):
    """What is followed of one partition: see `offsets_log.following`.

    Attributes:
        tells_records: whether its alerts are about single records: those that were there before tell nothing new.
    """

    tells_records: bool

    def take(self, piece: GrownPiece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log."""

    def begin_again(self) -> None:
        """Forget the state, because the log is another one."""

    def changes(self, now_ms: int) -> list[Row] | Iterator[memoryview]:
        """Return the rows since the last call, or their lines, which must be read to their end."""

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said at a time."""

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Take what is known of the ends of users' partitions by now."""

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""


class Sink(Protocol):
    """Where rows and alerts go."""

    def show(self, rows: list[Row]) -> None:
        """Show rows that changed."""

    def write(self, lines: Iterator[memoryview]) -> None:
        """Show rows that are lines already."""

    def alert(self, row: Row) -> None:
        """Show an alert."""

    def look(self) -> None:
        """Let others see all that was shown since the last look."""


Kind = TypeVar("Kind", bound=Followed)
Order = Callable[[Row], Any]


@dataclass(slots=True)
class _Partition(Generic[Kind]):
    """A partition that is followed.

    Attributes:
        log: as it was found first.
        is_old: whether what it holds was there before it was followed; after a look it is not.
        is_cut: whether it was told to stop while it was read.
    """

    log: PartitionLog
    growing: GrowingLog
    followed: Kind
    note: Note
    is_old: bool
    is_cut: bool = False


class Following(Generic[Kind]):
    """A run that follows the logs of a session.

    Args:
        make: offsets partition → what is followed of it.
        order: the sort key of the rows of one look; None to show the rows of each piece of a log when it is read.
        looked: called after a look that found something new, with what is followed of each log.

    Raises:
        AskedError: something else was given than directories of partitions.
    """

    def __init__(
        self,
        session: Session,
        options: FollowAsked,
        make: Callable[[int | None], Kind],
        order: Order | None = None,
        looked: Callable[[Sequence[tuple[PartitionLog, Kind]]], None] = lambda found: None,
    ) -> None:
        self.session = session
        self.options = options
        self._make = make
        self._order = order
        self._looked = looked
        self._told = {log.offsets_partition: log for log in session.inputs.logs}
        self._directories = GrowingDirectories(
            _directories(session.inputs.logs), session.inputs.scope.offsets_partition
        )
        self._partitions: dict[int | None, _Partition[Kind]] = {}
        self._ends = Ends(self._directories) if options.wants_ends else None
        self._measuring = threading.Lock()
        self._complete_at = time.monotonic()
        self._alerts: Counter[str] = Counter()
        if options.rules_of_ends and not session.inputs.copied_logs:
            session.account.say(
                f"--alert {', '.join(options.rules_of_ends)}: no other topic's partition lies beside these, without "
                "which it never comes true: give the broker's whole data directory"
            )
        session.inputs.topic_ids  # noqa: B018 - while the files are open that say it
        session.inputs.close_logs()

    @property
    def partitions(self) -> list[Kind]:
        """What was followed of each partition."""
        return [partition.followed for partition in self._partitions.values()]

    def run(self, sink: Sink, stop: threading.Event) -> None:
        """Go on until it is told to stop, or nothing new has come for as long as was asked for."""
        idle_s = None if self.options.until_idle is None else self.options.until_idle / 1000
        with Scanner() as scanner, _rare_collections(), self._served():
            reader = PieceReader(scanner, self.session.inputs.scope.kafka)
            newest, is_first = time.monotonic(), True
            while not stop.is_set():
                began = time.monotonic()
                if self._look(reader, sink, stop, is_first=is_first):
                    newest = time.monotonic()
                if not stop.is_set():
                    self._complete_at = began
                is_first = False
                if idle_s is not None and time.monotonic() - newest >= idle_s:
                    break
                stop.wait(LOOK_EVERY_S)
        for partition in self._partitions.values():
            for seen in partition.growing.rest() if not partition.is_cut else ():
                partition.note(seen)

    @contextmanager
    def _served(self) -> Iterator[None]:
        """Serve metrics for as long as the context lasts, if that is asked for."""
        if self.options.metrics_port is None:
            yield
            return
        with serving(*self.options.metrics_port, self._samples, self.session.account.say):
            yield

    def _samples(self) -> list[Sample]:
        """Return what there is to measure at this moment; called by other threads."""
        with self._measuring:
            account = self.session.account
            found: list[Sample] = [
                (metrics.DELAY, (), time.monotonic() - self._complete_at),
                (metrics.DAMAGE, (), account.corrupt + account.unsupported),
                *((metrics.ALERTS, (rule,), self._alerts[rule]) for rule in self.options.rules),
            ]
            for number, partition in self._partitions.items():
                found.append((metrics.POSITION, (number,), partition.growing.next_offset))
                found.append((metrics.BYTES_BEHIND, (number,), partition.growing.bytes_behind))
                found += partition.followed.samples()
        return found

    def _look(self, reader: PieceReader, sink: Sink, stop: threading.Event, *, is_first: bool) -> bool:
        """Look at all partitions once; whether there was something new."""
        grew = False
        for number, directory in self._directories.look().items():
            if number not in self._partitions:
                partition = self._new(number, directory, is_old=is_first)
                with self._measuring:
                    self._partitions[number] = partition
            grew |= self._read(self._partitions[number], directory, reader, sink, stop)
        if is_first and stop.is_set():
            self.session.account.say("ended before the end of the logs was reached")
            return grew
        now_ms = int(time.time() * 1000)
        with self._measuring:
            if self._order is not None and (grew or is_first):
                found = [followed.changes(now_ms) for followed in self.partitions]
                rows = [row for some in found if isinstance(some, list) for row in some]
                sink.show(sorted(rows, key=self._order))
            if self._ends is not None and (known := self._ends.look()) is not None:
                for followed in self.partitions:
                    followed.saw_ends(known, now_ms)
            for partition in self._partitions.values():
                self._alert(partition, sink, now_ms)
        sink.look()
        if grew or is_first:
            self._looked([(partition.log, partition.followed) for partition in self._partitions.values()])
        return grew

    def _new(self, number: int | None, directory: Path, *, is_old: bool) -> _Partition[Kind]:
        told = self._told.get(number, PartitionLog(number, ()))
        piece_bytes = PIECE_BYTES if self._order is not None else PIECE_OF_ROWS_BYTES
        growing = GrowingLog(told, f"{directory}/", partial(read_at, directory), piece_bytes)
        return _Partition(told, growing, self._make(number), self.session.account.noting(told), is_old)

    def _read(
        self, partition: _Partition[Kind], directory: Path, reader: PieceReader, sink: Sink, stop: threading.Event
    ) -> bool:
        grew = False
        for found in partition.growing.grown(segment_files(directory)):
            grew = True
            with self._measuring:
                match found:
                    case GrownPiece():
                        if not self._take(partition, found, reader, sink):
                            break
                    case Replaced():
                        self._tell(found)
                        partition.is_old = True
                        partition.followed.begin_again()
                    case _:
                        partition.note(found)
            if stop.is_set():
                partition.is_cut = True
                break
        return grew

    def _take(self, partition: _Partition[Kind], piece: GrownPiece, reader: PieceReader, sink: Sink) -> bool:
        """Take a piece; return whether the log is continued behind it."""
        try:
            partition.followed.take(piece, reader, partition.note)
        except ReadAgainError:
            partition.growing.read_again()
            return False
        if self._order is None:
            found = partition.followed.changes(int(time.time() * 1000))
            sink.show(found) if isinstance(found, list) else sink.write(found)
        return True

    def _tell(self, replaced: Replaced) -> None:
        words = (
            f"offsets partition {partition_name(replaced.offsets_partition)} is another log than the one that was read "
            f"up to record offset {replaced.next_offset}: {replaced.why}; it is read from its beginning"
        )
        if self.session.inputs.scope.strict:
            raise InputError(words)
        self.session.account.is_wrong = True
        self.session.account.say(words)

    def _alert(self, partition: _Partition[Kind], sink: Sink, now_ms: int) -> None:
        for row in partition.followed.alerts(now_ms):
            if not (partition.is_old and partition.followed.tells_records):
                self.session.account.has_alerted = True
                self._alerts[row["rule"]] += 1
                sink.alert(row)
        partition.is_old = False


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for cycles of garbage less often: going through all that is kept would take a third of a run."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Ends:
    """The ends of users' partitions, looked at from time to time."""

    def __init__(self, directories: GrowingDirectories) -> None:
        self._directories = directories
        self._topics = GrowingTopics()
        self._next = 0.0

    def look(self) -> KnownEnds | None:
        """Return where they are now; None if they were looked at a short while ago."""
        began = time.monotonic()
        if began < self._next:
            return None
        known = look_for_ends(self._directories.above, self._topics)
        self._next = began + ENDS_EVERY_S
        return known


def _directories(logs: Iterable[PartitionLog]) -> list[Path]:
    try:
        return [followed_directory(log) for log in logs]
    except InputError as error:
        raise AskedError(str(error)) from None
