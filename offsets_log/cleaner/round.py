"""A round over one partition: both passes, and new segments in the place of old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import Producers, files_between
from offsets_log.broker.recovery import OpenLog
from offsets_log.broker.segment_recovery import split
from offsets_log.cleaner.bounds import Bounds, modified
from offsets_log.cleaner.failures import SegmentOverflowError
from offsets_log.cleaner.group_cleaning import Advance, GroupCleaning, NewSegment
from offsets_log.cleaner.grouping import groups_of
from offsets_log.cleaner.kept import Kept
from offsets_log.cleaner.offset_map import OffsetMap, enter_segments
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.transactions import Transactions, aborted_between
from offsets_log.errors import OffsetsLogError

CLEANED, NOT_STARTED, FAILED, ABORTED = "cleaned", "not started", "failed", "aborted"
"""How a round comes out: nothing to clean; an exception (``CL-7``); given up, to be tried again (``CL-39``)."""
CHANGED = "changed"
"""Nothing to clean either, of a log that lost before what a user wants out of it."""
OUTCOMES = (CLEANED, CHANGED, NOT_STARTED, FAILED, ABORTED)


Emit = Callable[[NewSegment], None]
"""Takes a new segment as soon as it is whole; its contents are not kept."""


@dataclass(slots=True)
class Round:
    """The result of a round.

    Attributes:
        end_offset: E, from where the next one goes on; where this one did not come to its end, from where it did.
        new: segments by base offset; of a round that failed those that it had made before.
        parts: the parts of a segment that was split.
        kept: why bytes of the new segments are kept.
        problem: what it failed of.
        next_dirty: where the next one must begin, if not at its end.
    """

    opened: OpenLog
    bounds: Bounds
    settings: Settings
    outcome: str = NOT_STARTED
    end_offset: int = 0
    new: dict[int, NewSegment] = field(default_factory=dict)
    parts: list[LogFile] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    problem: OffsetsLogError | None = None
    next_dirty: int | None = None

    def take(self, new: NewSegment, kept: Kept) -> None:
        """Note that a group is done."""
        self.new[new.writer.base_offset] = new
        self.kept.add(kept)

    def split(self, error: SegmentOverflowError) -> None:
        """Split the segment that an error is about (``CL-39``). Raises BrokerError: that cannot be done."""
        self.parts = list(split(self.opened.files[error.base_offset], self.settings.index_interval_bytes))


def clean(
    opened: OpenLog,
    bounds: Bounds,
    settings: Settings,
    emit: Emit,
    advance: Advance = lambda count: None,
    *,
    in_bulk: bool = False,
    threads: int = 1,
) -> Round:
    """Clean a log that a broker has opened.

    Args:
        in_bulk: whether kernels do it where they know the rules, which is worth their start for a large log.
        threads: how many run kernels, if these do it.
    """
    done = Round(opened, bounds, settings, end_offset=bounds.first_dirty)
    if not bounds.cleanable_bytes:
        return done
    try:
        with closing(new_offset_map(settings, in_bulk=in_bulk)) as offset_map:
            threads = threads if offset_map.is_bulk else 1
            build_offset_map(offset_map, opened, bounds, threads)
            _Cleaning(done, offset_map, emit, advance).run(threads)
        done.outcome = CLEANED
    except SegmentOverflowError as error:
        done.outcome, done.problem = ABORTED, error
    except OffsetsLogError as error:
        done.outcome, done.problem = FAILED, error
    return done


def new_offset_map(settings: Settings, *, in_bulk: bool) -> OffsetMap:
    """Return an empty map; ``in_bulk`` is that of `clean`."""
    if in_bulk:
        from offsets_log.cleaner.bulk import KeyTable, takes_bulk

        if takes_bulk(settings):
            return KeyTable()
    return OffsetMap.of(settings)


def build_offset_map(found: OffsetMap, opened: OpenLog, bounds: Bounds, threads: int = 1) -> None:
    """Read from the first dirty offset to the first uncleanable one (``CL-9``, ``CL-11``).

    Args:
        found: the map to fill.
        threads: more than one only with a map of kernels.

    Raises:
        OffsetsLogError: something there cannot be read.
    """
    first, end = bounds.first_dirty, bounds.first_uncleanable
    dirty = files_between(opened.files, first, end)
    transactions = Transactions()
    transactions.expect(aborted_between(opened.files.values(), bounds.log_start, first, end))
    ends = [file.base_offset for file in dirty[1:]] + [end]
    segments = [*zip(dirty, ends, strict=True)]
    if threads > 1 and len(segments) > 1:
        from offsets_log.cleaner.bulk_threads import enter_in_parts

        enter_in_parts(found, segments, first, transactions, threads)
    else:
        enter_segments(segments, first, found, transactions)


class _Cleaning:
    """Pass 2."""

    def __init__(self, done: Round, offset_map: OffsetMap, emit: Emit, advance: Advance) -> None:
        self._round, self._map, self._emit = done, offset_map, emit
        self._files = done.opened.files
        self._groups = GroupCleaning(
            offset_map, active_producers(done), done.bounds.keeps_empty_at(done.settings.rules), done.settings,
            old_tombstones_until(done), Transactions(), self._expected, advance,
        )  # fmt: skip

    def _expected(self, file: LogFile, end: int) -> list[AbortedTransaction]:
        return aborted_between(self._files.values(), self._round.bounds.log_start, file.base_offset, end)

    def run(self, threads: int) -> None:
        """Clean all groups, each of which becomes a segment or fails as a whole."""
        end = self._map.latest + 1
        cleaned = files_between(self._files, 0, end)
        groups = groups_of(cleaned, self._round.bounds.first_uncleanable, self._round.settings)
        try:
            for new, kept in self._made(groups, threads):
                self._round.take(new, kept)
                self._emit(new)
                new.writer.release()
        except SegmentOverflowError as error:
            self._round.split(error)
            raise
        self._round.end_offset = end

    def _made(self, groups: Sequence[Sequence[LogFile]], threads: int) -> Iterator[tuple[NewSegment, Kept]]:
        """Return the new segments in their order, each when it is asked for."""
        if threads > 1 and len(groups) > 1:
            from offsets_log.cleaner.bulk_threads import clean_in_threads

            return clean_in_threads(self._groups, groups, threads)
        return map(self._groups.clean, groups)


def active_producers(done: Round) -> Producers:
    """Return the producers that are known at the log's end and not expired (``CL-27``)."""
    return done.opened.producers.active(done.settings.now_ms, done.settings.producer_id_expiration_ms)


def old_tombstones_until(done: Round) -> int:
    """Return the time up to which segments keep no tombstones of magic 0 and 1 (``CL-23``)."""
    settings = done.settings
    below = files_between(done.opened.files, 0, done.bounds.first_dirty)
    return modified(below[-1], settings.now_ms) - settings.delete_retention_ms if below else 0
