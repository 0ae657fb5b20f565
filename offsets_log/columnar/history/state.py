"""Keep what is answered for the keys of a log while it is read: the arrays of `entries`, as they grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds.state import ColumnarState, canonical_key
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.history.slow_path import BeyondError, Groups, Growing, HoldersOf, int64, keep_text
from offsets_log.columnar.materialize.values import topic_names
from offsets_log.columnar.scan import interner
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.waiting import new_waiting
from offsets_log.events import Event
from offsets_log.log_format import readers
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.java_text import decode_string, encode_string, plain
from offsets_log.log_format.primitives import INT16, PlainStruct, Uuid
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, decode_key
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import EndTransactionMarker, GroupTopicPartition, OffsetAndMetadata, offset_and_metadata
from offsets_log.replay.profile import Profile

ShowsGroup = Callable[[str], bool]
ShowsKey = Callable[[GroupTopicPartition], bool]


class HistoryState(ColumnarState):
    """What is answered for the keys of a log while it is read.

    Args:
        shows_group, shows_key: as in `investigate.history.History`; None shows all keys.
        entries, texts, members, counts: see `entries`; existing contents stay.
        holders_of: a group as it is now → who holds what in it.

    Attributes:
        decode: decodes a record that kernels have found valid.
    """

    decode: Callable[[bytes, bytes | None], CoordinatorRecord]

    def __init__(
        self,
        profile: Profile,
        shows_group: ShowsGroup,
        shows_key: ShowsKey | None,
        entries: Growing,
        texts: Growing,
        members: Growing,
        counts: a.Int64s,
        holders_of: HoldersOf,
    ) -> None:
        super().__init__(profile, with_newer=True)
        self.shows_group = shows_group
        self.shows_key = shows_key
        self.entries, self.texts, self.members, self.counts = entries, texts, members, counts
        self.counts[e.ALL_ANSWERED] = GroupFold("", profile).is_answered
        self.slow_path = Groups(self, holders_of)
        self.is_replayed = False
        self._decided_groups = self._decided_keys = 0
        self._rows_held: dict[GroupTopicPartition, int] = {}
        self.held = np.zeros((0, e.HELD_SIZE), np.int64)
        self.lives = np.zeros((0, e.LIFE_SIZE), np.int64)
        self.opens = np.zeros((0, e.OPEN_SIZE), np.int64)
        self.waiting = new_waiting()
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
            self.held[:, e.SHOWN] = e.WANTED

    @property
    def history(self) -> e.History:
        """What is noted, as kernels take it."""
        return e.History(
            self.held, self.lives, self.opens, self.counts, self.entries.array, self.texts.array, self.members.array,
            self.waiting,
        )  # fmt: skip

    def scan(self, data: a.Bytes, scanner: Scanner) -> int:
        """Call the kernel."""
        s = self.arrays
        return int(k.scan(s.all, self.history, scanner.buffers, data))

    def give(self, need: int) -> bool:
        """Provide what a record needs before it can be noted; return whether the outcome is such a need.

        Raises:
            BeyondError: only the construct path can hold the record.
        """
        match need:
            case oc.NEEDS_ROOM:
                self.grow()
            case oc.NEEDS_VERDICT:
                self._decide()
            case oc.NEEDS_HOLDERS:
                self.slow_path.note_waiting()
                self.slow_path.find_holders(int(self.counts[e.OF_GROUP]))
            case oc.NEEDS_ENTRIES:
                self.entries.grow()
            case oc.NEEDS_TEXTS:
                self.texts.grow()
            case oc.NEEDS_MEMBERS:
                self.members.grow()
            case oc.BEYOND:
                raise BeyondError
            case _:
                return False
        return True

    def _decide(self) -> None:
        """Decide on each group and key that is new."""
        s, verdicts = self.arrays, (e.UNWANTED, e.WANTED)
        for group in range(self._decided_groups, int(s.scan_state.group_count)):
            name = decode_string(s.text_at(int(s.groups[group].name_at)))
            self.lives[group, e.GROUP_SHOWN] = verdicts[self.shows_group(name)]
        self._decided_groups = int(s.scan_state.group_count)
        if self.shows_key is not None:
            for row in range(self._decided_keys, int(s.scan_state.row_count)):
                if s.rows[row].target != a.IS_GROUP:
                    self.held[row, e.SHOWN] = verdicts[self.shows_key(self.key(row))]
            self._decided_keys = int(s.scan_state.row_count)

    def key(self, row: int) -> GroupTopicPartition:
        """Return what a row of raw keys names, as in its bytes."""
        s = self.arrays
        raw_key = s.text_at(int(s.rows[row].key_at))
        found = readers.read(_key_struct(), raw_key)
        fields = decode_key(raw_key)[1] if found is None else found[0]
        return fields["group"], fields["topic"], fields["partition"]

    # ----------------------------------------------------------------------- what a replay asks of a state

    def add_offset(self, value: OffsetAndMetadata, transactional: bool, number: int | None = None) -> None:
        """Mark the record as replayed; `note_offset` does it."""
        self.is_replayed = True

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Mark the record as replayed; `note_offset` does it."""
        self.is_replayed = True

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Mark the record as replayed; `note_marker` does it."""
        self.is_replayed = True

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Do nothing: groups have their own folds here."""

    # ---------------------------------------------------------------------------------- records of the slow path

    def note_offset(self, event: Event, record: CoordinatorRecord) -> None:
        """Note a commit or tombstone of a group that is shown."""
        batch, is_value = event.batch, not record.is_tombstone
        key = self._raw_key_row(event, record)
        self.counts[e.OF_GROUP] = self.arrays.rows[key].group
        value = None
        if is_value:
            value = offset_and_metadata(record, event.record.offset, batch.producer_id, batch.producer_epoch)
        transactional = int(self.profile.is_transactional(batch))
        noted = e.OffsetRecord(
            int(is_value), int64(event.record.offset), event.record.timestamp_ms, a.NOTHING,
            int(self.is_replayed), value.committed_offset if value else 0,
        )  # fmt: skip
        while True:
            made = k.note_one(self.arrays.all, self.history, key, noted, batch.producer_id, transactional)
            if made >= 0:
                break
            self.give(made)
        if made and value is not None:
            self._keep_columns(made - 1, value)

    def key_row(self, key: GroupTopicPartition) -> int:
        """Return the row of a key that a member holds, new or known."""
        if key not in self._rows_held:
            self._rows_held[key] = self._row(1, key)
        return self._rows_held[key]

    def _raw_key_row(self, event: Event, record: CoordinatorRecord) -> int:
        assert event.record.key is not None
        canonical = canonical_key(1, tuple(map(plain, record.key.values())))
        data = np.frombuffer(event.record.key + canonical, np.uint8)
        s = self.arrays
        while (row := interner.register(s.all, data, len(event.record.key))) < 0:
            self.grow()
        return int(row)

    def _keep_columns(self, entry: int, value: OffsetAndMetadata) -> None:
        """Fill in the columns of a commit."""
        at, size = keep_text(self.texts, self.counts, encode_string(value.metadata))
        topic_id = a.NOTHING if value.topic_id is None else self._name(bytes(Uuid.from_text(value.topic_id)))
        leader_epoch = -1 if value.leader_epoch is None else value.leader_epoch
        columns = [e.LEADER_EPOCH, e.COMMIT_TIMESTAMP, e.METADATA_AT, e.METADATA_SIZE, e.TOPIC_ID]
        self.entries.array[entry, columns] = leader_epoch, value.commit_timestamp_ms, at, size, topic_id

    def _name(self, raw: bytes) -> int:
        data = np.frombuffer(raw, np.uint8)
        s = self.arrays
        while (number := k.name_one(s.all, data)) < 0:
            self.grow()
        return int(number)

    def note_marker(self, event: Event, control: ControlRecord) -> None:
        """Note a control record, which may end a transaction."""
        if not (control.ends_transaction or self.profile.unknown_marker_aborts):
            return
        commits, batch = int(control.type == "COMMIT"), event.batch
        while True:
            s = self.arrays
            need = k.mark_one(
                s.all,
                self.history,
                batch.producer_id,
                commits,
                int64(event.record.offset),
                event.record.timestamp_ms,
                int(self.is_replayed),
            )
            if need == oc.FINISHED:
                return
            self.give(need)

    def topic_names(self) -> dict[bytes, str]:
        """Return topic id → name; the last record with both wins."""
        return topic_names(self)

    def raw_name(self, number: int) -> bytes:
        """Return a name by its number."""
        return self.arrays.text_at(int(self.arrays.groups[number].name_at))


@cache
def _key_struct() -> Any:
    """Return the construct of an offset's key, including its number."""
    return PlainStruct("number" / INT16, *RECORD_TYPES[1].key.struct(0).subcons)


def _longer(array: a.Int64s, count: int) -> a.Int64s:
    if len(array) >= count:
        return array
    longer = np.zeros((count, array.shape[1]), np.int64)
    longer[: len(array)] = array
    return longer
