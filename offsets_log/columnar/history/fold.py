"""The entries of `history` in bulk: a log on its way through `kernels`, and what Python says of groups and names.

Rules are those of `investigate.history.History`: a group's records are replayed by `replay.groups` here as there, and
batches that are not plain are read by `pipeline`, record by record, in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.finish.values import topic_names
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState, canonical_key, plain
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.scan import keys
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Advance, Cursor, Note, Order, Place
from offsets_log.errors import ReplayError
from offsets_log.log_format import readers
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import INT16, PlainStruct, Uuid, decode_string, encode_string
from offsets_log.log_format.record import ControlRecord
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, decode_coordinator_record, decode_key
from offsets_log.pipeline import Event, LogEvent, Until, replay_into
from offsets_log.replay.group import CLASSIC, Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import GroupTopicPartition, Marker, OffsetAndMetadata, offset_and_metadata
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import names_in

ShowsGroup = Callable[[str], bool]
ShowsKey = Callable[[GroupTopicPartition], bool]
Held = TypeVar("Held")


class Growing(Protocol):
    """An array that can be made twice as long."""

    array: Any

    def grow(self) -> None:
        """Exchange the array for one that is twice as long and begins the same."""


class BeyondError(Exception):
    """The log holds what only the construct path can tell, as a number of more than 64 bits."""


class HistoryState(ColumnarState, Generic[Held]):
    """What is answered for the keys of a log on its way.

    Args:
        shows_group, shows_key: as of `investigate.history.History`; None shows all keys.
        entries, texts: see `kernels`; what is there already stays.
        holders_of: a group as it is now → who holds what in it.

    Attributes:
        holders: what `holders_of` said, by the numbers that entries have; the first is that of no group.
    """

    def __init__(
        self,
        profile: Profile,
        shows_group: ShowsGroup,
        shows_key: ShowsKey | None,
        entries: Growing,
        texts: Growing,
        counts: a.Int64s,
        holders_of: Callable[[Group | None], Held],
    ) -> None:
        super().__init__(profile)
        self.shows_group = shows_group
        self.shows_key = shows_key
        self.entries, self.texts, self.counts = entries, texts, counts
        self.counts[k.ALL_ANSWERED] = profile.offsets_make_groups
        self.holders: list[Held] = [holders_of(None)]
        self.is_replayed = False
        self._holders_of = holders_of
        self._folds: dict[int, GroupFold] = {}
        self._decided_groups = self._decided_keys = 0
        self.held = np.zeros((0, k.HELD_SIZE), np.int64)
        self.lives = np.zeros((0, k.LIFE_SIZE), np.int64)
        self.opens = np.zeros((0, k.OPEN_SIZE), np.int64)
        self._widen()

    # ------------------------------------------------------------------------------------- what grows

    def grow(self) -> None:
        """Make room for more keys, groups, producers and open records."""
        super().grow()
        self._widen()

    def _widen(self) -> None:
        s = self.arrays
        self.held = _longer(self.held, len(s.rows))
        self.lives = _longer(self.lives, len(s.groups))
        self.opens = _longer(self.opens, s.room()["producers"])
        if self.shows_key is None:
            self.held[:, k.SHOWN] = k.WANTED

    def scan(self, data: a.Bytes, scanner: Scanner) -> int:
        """A call of the kernel."""
        s = self.arrays
        return int(
            k.scan(
                s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, self.held, self.lives, self.opens, self.counts,
                self.entries.array, self.texts.array, scanner.staged, data, scanner.window, scanner.table,
            )
        )  # fmt: skip

    def give(self, need: int) -> None:
        """What a record needs before it can be noted."""
        match need:
            case sc.NEEDS_ROOM:
                self.grow()
            case k.NEEDS_VERDICT:
                self._decide()
            case k.NEEDS_ENTRIES:
                self.entries.grow()
                self.texts.grow()
            case k.BEYOND:
                raise BeyondError

    def _decide(self) -> None:
        """Find a verdict on each group and key that is new."""
        s, verdicts = self.arrays, (k.UNWANTED, k.WANTED)
        for group in range(self._decided_groups, int(s.desk[a.GROUPS])):
            name = decode_string(s.text_at(int(s.groups[group, a.NAME_AT])))
            self.lives[group, k.GROUP_SHOWN] = verdicts[self.shows_group(name)]
        self._decided_groups = int(s.desk[a.GROUPS])
        if self.shows_key is not None:
            for row in range(self._decided_keys, int(s.desk[a.ROWS])):
                if s.rows[row, a.TARGET] != a.IS_GROUP:
                    self.held[row, k.SHOWN] = verdicts[self.shows_key(self.key(row))]
            self._decided_keys = int(s.desk[a.ROWS])

    def key(self, row: int) -> GroupTopicPartition:
        """What a row of raw keys names, as its bytes have it."""
        s = self.arrays
        raw_key = s.text_at(int(s.rows[row, a.KEY_AT]))
        found = readers.read(_key_struct(), raw_key)
        fields = decode_key(raw_key)[1] if found is None else found[0]
        return fields["group"], fields["topic"], fields["partition"]

    # ----------------------------------------------------------------------- what a replay asks of a state

    def add_offset(self, value: OffsetAndMetadata, transactional: bool) -> None:
        """It is replayed when it is noted."""
        self.is_replayed = True

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """It is replayed when it is noted."""
        self.is_replayed = True

    def add_marker(self, producer_id: int, marker: Marker) -> None:
        """It is replayed when it is noted."""
        self.is_replayed = True

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Groups have folds of their own here."""

    # ---------------------------------------------------------------------------------- records by hand

    def note_offset(self, event: Event, record: CoordinatorRecord) -> None:
        """A commit or tombstone of a group that is shown."""
        batch, is_value = event.batch, not record.is_tombstone
        key = self._key_row(event, record)
        s = self.arrays
        group = int(s.rows[key, a.GROUP])
        value = None
        if is_value:
            value = offset_and_metadata(record, event.record.offset, batch.producer_id, batch.producer_epoch)
        transactional = int(self.profile.is_transactional(batch))
        while True:
            s = self.arrays
            made = k.note_one(
                s.desk, s.rows, s.groups, s.cold, self.held, self.lives, self.opens, self.counts, self.entries.array,
                key, int(is_value), _int64(event.record.offset), _int64(event.record.timestamp_ms), batch.producer_id,
                transactional, int(self.is_replayed), value.committed_offset if value else 0,
            )  # fmt: skip
            if made >= 0:
                break
            if made == -k.NEEDS_HOLDERS:
                self.find_holders(group)
            else:
                self.give(-made)
        if made and value is not None:
            self._keep_columns(made - 1, value)

    def _key_row(self, event: Event, record: CoordinatorRecord) -> int:
        assert event.record.key is not None
        canonical = canonical_key(1, tuple(map(plain, record.key.values())))
        data = np.frombuffer(event.record.key + canonical, np.uint8)
        s = self.arrays
        while (
            row := keys.register(s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, data, len(event.record.key))
        ) < 0:
            self.grow()
        return int(row)

    def _keep_columns(self, entry: int, value: OffsetAndMetadata) -> None:
        """The columns of a commit."""
        raw = encode_string(value.metadata)
        used = int(self.counts[k.TEXT_USED])
        while used + len(raw) > len(self.texts.array):
            self.texts.grow()
        self.texts.array[used : used + len(raw)] = np.frombuffer(raw, np.uint8)
        self.counts[k.TEXT_USED] += len(raw)
        topic_id = a.NOTHING if value.topic_id is None else self._name(bytes(Uuid.from_text(value.topic_id)))
        leader_epoch = -1 if value.leader_epoch is None else value.leader_epoch
        columns = [k.LEADER_EPOCH, k.COMMIT_TIMESTAMP, k.METADATA_AT, k.METADATA_SIZE, k.TOPIC_ID]
        self.entries.array[entry, columns] = leader_epoch, value.commit_timestamp_ms, used, len(raw), topic_id

    def _name(self, raw: bytes) -> int:
        data = np.frombuffer(raw, np.uint8)
        s = self.arrays
        while (number := k.name_one(s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, data)) < 0:
            self.grow()
        return int(number)

    def note_marker(self, event: Event, control: ControlRecord) -> None:
        """A control record, which may end a transaction."""
        if not (control.ends_transaction or self.profile.unknown_marker_aborts):
            return
        commits, batch = int(control.type == "COMMIT"), event.batch
        while True:
            s = self.arrays
            need = k.mark_one(
                s.desk, s.rows, s.cold, self.held, self.lives, self.opens, self.counts, self.entries.array,
                batch.producer_id, commits, _int64(event.record.offset), _int64(event.record.timestamp_ms),
                int(self.is_replayed),
            )  # fmt: skip
            if need == sc.FINISHED:
                return
            self.give(need)

    def note_group_record(
        self, record: CoordinatorRecord, record_offset: int, timestamp_ms: int, group: int | None = None
    ) -> None:
        """A record of a group that is shown.

        Args:
            group: its number, if that is known.
        """
        group = self.group_number(record.group) if group is None else group
        fold = self._folds.setdefault(group, GroupFold(record.group, self.profile))
        if self.lives[group, k.EXISTS]:
            fold.saw_offset()
        existed = fold.group is not None
        with suppress(ReplayError):  # as in a replay: that record is left out
            fold.replay(record)
        self.lives[group, k.HOLDERS_NOW] = a.NOTHING
        if fold.group is not None and fold.group.kind == CLASSIC:
            self.find_holders(group)  # commits follow, and the kernel need not come back for them
        exists = fold.group is not None
        while existed != exists:
            need = k.turn_group(
                self.arrays.rows, self.held, self.lives, self.counts, self.entries.array, group, int(exists),
                _int64(record_offset), _int64(timestamp_ms),
            )  # fmt: skip
            if need == sc.FINISHED:
                return
            self.give(need)

    def find_holders(self, group: int) -> None:
        """Who holds what in a group from here on."""
        fold = self._folds.get(group)
        found = self._holders_of(None if fold is None else fold.group)
        if found is self.holders[0]:
            self.lives[group, k.HOLDERS_NOW] = 0
        else:
            self.lives[group, k.HOLDERS_NOW] = len(self.holders)
            self.holders.append(found)

    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, as the last record with both says."""
        return topic_names(self)

    def raw_name(self, number: int) -> bytes:
        """A name by its number."""
        return self.arrays.text_at(int(self.arrays.groups[number, a.NAME_AT]))


@cache
def _key_struct() -> Any:
    """Of the key of an offset, with its number."""
    return PlainStruct("number" / INT16, *RECORD_TYPES[1].key.struct(0).subcons)


def _longer(array: a.Int64s, count: int) -> a.Int64s:
    if len(array) >= count:
        return array
    longer = np.zeros((count, array.shape[1]), np.int64)
    longer[: len(array)] = array
    return longer


def _int64(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise BeyondError
    return number


class HistoryPiece(Piece):
    """A log on its way into entries."""

    def __init__(self, order: Order, cursor: Cursor, scanner: Scanner, note: Note, state: HistoryState[Any]) -> None:
        super().__init__(order, cursor, scanner, note, state)
        self.history = state

    def scan(self, index: int, data: a.Bytes) -> int:
        while True:
            match self.scan_on(data):
                case sc.DOUBTFUL_KEY:
                    self._key_by_hand(index)
                case k.NEEDS_GROUP:
                    self._group_record(data)
                case k.NEEDS_HOLDERS:
                    self.history.find_holders(int(self.history.counts[k.OF_GROUP]))
                case sc.NEEDS_ROOM | k.NEEDS_VERDICT | k.NEEDS_ENTRIES | k.BEYOND as need:
                    self.history.give(need)
                case outcome:
                    return outcome

    def scan_on(self, data: a.Bytes) -> int:
        return self.history.scan(data, self.scanner)

    def _group_record(self, data: a.Bytes) -> None:
        """A type 2 record, which the kernel has found right."""
        counts = self.history.counts
        staged = self.scanner.staged[self.desk[a.FLUSHED]]
        source = self.scanner.window if self.desk[a.IN_WINDOW] else data
        key, key_size, value, size = staged[[a.KEY, a.KEY_SIZE, a.VALUE_AT, a.VALUE_SIZE]].tolist()
        raw_value = source[value : value + size].tobytes() if size >= 0 else None
        record = decode_coordinator_record(source[key : key + key_size].tobytes(), raw_value, self.order.release)
        group, timestamp_ms = counts[[k.OF_GROUP, k.OF_TIME]].tolist()
        self.history.note_group_record(record, int(staged[a.OFFSET]), timestamp_ms, group)
        self.desk[a.FLUSHED] += 1

    def take(self, index: int, batch: RecordBatch) -> None:
        replay_into(self.state, self._watch(self.events(index, batch)), on_damage=self.note)

    def _watch(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """Each event on its way to a replay, which says whether it would be taken."""
        history = self.history
        for event in events:
            history.is_replayed = False
            match event:
                case Event(decoded=CoordinatorRecord() as record) if not history.shows_group(record.group):
                    for topic_id, name in names_in(record):
                        history.add_topic_name(topic_id, name, event.record.offset)
                case Event(decoded=CoordinatorRecord() as record) if record.is_offset_commit:
                    yield event
                    history.note_offset(event, record)
                case Event(decoded=CoordinatorRecord() as record):
                    yield event
                    history.note_group_record(record, event.record.offset, event.record.timestamp_ms)
                case Event(control=ControlRecord() as control):
                    yield event
                    history.note_marker(event, control)
                case _:
                    yield event


def read_history(
    log: PartitionLog,
    state: HistoryState[Any],
    *,
    note: Note,
    until: Until,
    release: tuple[int, int] | None,
    advance: Advance,
) -> None:
    """The entries of one log, in its order.

    Args:
        note: what to do with what could not be read, with tails and gaps.
        advance: called with the number of bytes read since.
    """
    order = Order(log, until, release)
    order.note_begin(note)
    cursor = order.begin(Place(0, 0))
    assert cursor is not None
    with Scanner() as scanner:
        HistoryPiece(order, cursor, scanner, note, state).run(order.end, advance)
    for _ in order.note_end(cursor, note):
        pass
