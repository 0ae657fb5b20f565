"""List every commit of a GroupTopicPartition in order, and what was answered after each (`history`).

Besides commits and tombstones of the key, everything that changes its answer is an event of it: the end of a
transaction, and its group ceasing to exist or existing again (``J-15``, ``B-17``). Values are those of the replay
itself, read after every record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from offsets_log.errors import ReplayError
from offsets_log.events import Event, LogEvent
from offsets_log.investigate.holders import NOBODY, Holders, holders_of
from offsets_log.log_format.batch import UNTOLD_PRODUCER_ID
from offsets_log.log_format.control_record import UNTOLD, ControlRecord
from offsets_log.log_format.record import INT64_MAX
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.fold import replay_into
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState, offset_and_metadata
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import topic_names_in

ShowsKey = Callable[[GroupTopicPartition], bool]


def change_of(before: OffsetAndMetadata | None, effective: OffsetAndMetadata | None) -> str | None:
    """Return how an answer changed; None if it did not."""
    if before is effective:
        return None
    if before is None:
        return "new"
    if effective is None:
        return "deleted"
    step = effective.committed_offset - before.committed_offset
    return "advanced" if step > 0 else "rewound" if step < 0 else "same"


@dataclass(slots=True)
class Entry:
    """One event of a key.

    Attributes:
        value: what the record commits; None if it is no commit.
        outcome: the outcome of its transaction; None for a plain record.
        before, effective: what is answered before and after it.
        rewound_by: by how much less is answered than before, at once or before it was deleted, at most `INT64_MAX`;
            None if it is not less.
        holders: who held what at that time.
        is_untold: whether the source does not tell what is answered before or after it.
    """

    key: GroupTopicPartition
    event: str
    record_offset: int
    timestamp_ms: int
    before: OffsetAndMetadata | None
    effective: OffsetAndMetadata | None
    value: OffsetAndMetadata | None = None
    producer_id: int | None = None
    outcome: str | None = None
    holders: Holders = NOBODY
    is_untold: bool = False
    rewound_by: int | None = None

    @property
    def begins_below(self) -> bool:
        """Whether less is answered than before it was deleted."""
        return self.before is None and self.goes_back

    @property
    def goes_back(self) -> bool:
        """Whether less is answered than before, at once or after a deletion."""
        return self.rewound_by is not None and not self.is_untold

    @property
    def change(self) -> str | None:
        """How the answer changed; None if it did not, or if that is not known."""
        return None if self.is_untold else change_of(self.before, self.effective)


class _Answered(dict[GroupTopicPartition, int]):
    """What was answered last for each key."""

    def note(self, entry: Entry) -> None:
        """Note the entry that follows, and in it what was deleted before."""
        if entry.effective is not None:
            now = entry.effective.committed_offset
            before = entry.before.committed_offset if entry.before is not None else self.get(entry.key, now)
            entry.rewound_by = min(before - now, INT64_MAX) if now < before else None
            self[entry.key] = now


@dataclass(slots=True)
class _Group:
    """A group while its records are read: its state, and which of its keys have appeared."""

    fold: GroupFold
    keys: set[GroupTopicPartition] = field(default_factory=set)
    holders: Holders | None = None


class History:
    """The entries of some keys of an offsets partition.

    Args:
        shows_group: whether a group's records are read.
        shows_key: whether a key's entries are kept.
    """

    def __init__(self, profile: Profile, shows_group: Callable[[str], bool], shows_key: ShowsKey) -> None:
        self.state = PartialState(profile)
        self.entries: list[Entry] = []
        self._shows_group = shows_group
        self._shows_key = shows_key
        self._groups: dict[str, _Group] = {}
        self._open: dict[int, list[Entry]] = {}
        self._answered = _Answered()
        self._untold: set[GroupTopicPartition] = set()

    def read(self, events: Iterable[LogEvent], *, on_damage: Callable[..., None]) -> None:
        """Read the events of the partition, in log order."""
        replay_into(self.state, self._watch(events), on_damage=on_damage)
        for producer_id, entries in self._open.items():
            for entry in entries:
                entry.outcome = "unknown" if producer_id == UNTOLD_PRODUCER_ID else "open"

    def hand_over(self) -> list[Entry]:
        """Return the entries so far, and keep only what those that follow need."""
        entries, self.entries = self.entries, []
        self.state.timelines.clear()
        self.state.problems.clear()
        return entries

    def _watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield each event to the replay; after each ``yield`` the event has been replayed."""
        for event in events:
            match event:
                case Event(decoded=CoordinatorRecord() as record) if not self._shows_group(record.group):
                    self._learn(event, record)
                case Event(decoded=CoordinatorRecord() as record) if record.is_offset_commit:
                    yield from self._saw_offset(event, record)
                case Event(decoded=CoordinatorRecord() as record):
                    yield from self._saw_group_record(event, record)
                case Event(control=ControlRecord() as control):
                    yield from self._saw_marker(event, control)
                case _:
                    yield event

    def _learn(self, event: Event, record: CoordinatorRecord) -> None:
        for topic_id, name in topic_names_in(record):
            self.state.add_topic_name(topic_id, name, event.record.offset)

    def _group(self, group_id: str) -> _Group:
        if group_id not in self._groups:
            self._groups[group_id] = _Group(GroupFold(group_id, self.state.profile))
        return self._groups[group_id]

    def _effective(self, key: GroupTopicPartition) -> OffsetAndMetadata | None:
        """Return what is answered: nothing for a group that does not exist."""
        if not self._group(key[0]).fold.is_answered:
            return None
        held = self.state.keys.get(key)
        return held.committed if held is not None else None

    # ------------------------------------------------------------------------------------ the records

    def _saw_offset(self, event: Event, record: CoordinatorRecord) -> Iterator[LogEvent]:
        key = record.group_topic_partition
        group = self._group(record.group)
        existed = group.fold.group is not None
        is_shown = self._shows_key(key)
        if is_shown:
            group.keys.add(key)
        before = {key: self._effective(key)} if existed else self._effective_of(group)
        if not record.is_tombstone:
            group.fold.saw_offset()
        yield event
        if not existed:
            self._note_others(event, group, before, "group_back", but=key)
        if is_shown:
            self._note(event, record, group, before[key])

    def _note(self, event: Event, record: CoordinatorRecord, group: _Group, before: OffsetAndMetadata | None) -> None:
        """Note a commit or tombstone that has been replayed."""
        batch, record_offset, key = event.batch, event.record.offset, record.group_topic_partition
        was_untold = key in self._untold
        (self._untold.add if batch.producer_id == UNTOLD_PRODUCER_ID else self._untold.discard)(key)
        name = "tombstone" if record.is_tombstone else "commit"
        entry = self._entry(event, name, key, before)
        entry.is_untold |= was_untold
        if self.state.profile.is_transactional(batch):
            entry.producer_id = None if batch.producer_id == UNTOLD_PRODUCER_ID else batch.producer_id
            self._open.setdefault(batch.producer_id, []).append(entry)
        if not record.is_tombstone:
            entry.value = offset_and_metadata(record, record_offset, batch.producer_id, batch.producer_epoch)
            if group.holders is None:
                group.holders = holders_of(group.fold.group)
            entry.holders = group.holders

    def _entry(self, event: Event, name: str, key: GroupTopicPartition, before: OffsetAndMetadata | None) -> Entry:
        record = event.record
        entry = Entry(key, name, record.offset, record.timestamp_ms, before, self._effective(key))
        if key in self._untold:
            entry.effective, entry.is_untold = None, True
        self._answered.note(entry)
        self.entries.append(entry)
        return entry

    def _saw_group_record(self, event: Event, record: CoordinatorRecord) -> Iterator[LogEvent]:
        group = self._group(record.group)
        existed = group.fold.group is not None
        before = self._effective_of(group) if record.is_tombstone or not existed else {}
        with suppress(ReplayError):  # as in a replay, the record is skipped
            group.fold.replay(record)
        group.holders = None
        yield event
        exists = group.fold.group is not None
        if existed != exists:
            self._note_others(event, group, before, "group_back" if exists else "group_gone")

    def _saw_marker(self, event: Event, control: ControlRecord) -> Iterator[LogEvent]:
        producer_id = event.batch.producer_id
        is_untold = control.type == UNTOLD
        ends = is_untold or control.ends_transaction or self.state.profile.unknown_marker_aborts
        entries = self._open.pop(producer_id, []) if ends else []
        before = {entry.key: self._effective(entry.key) for entry in entries}
        yield event
        outcome = "unknown" if is_untold else "committed" if control.type == "COMMIT" else "aborted"
        if is_untold:
            self._untold |= before.keys()
        for entry in entries:
            entry.outcome = outcome
        for key, answered in before.items():
            entry = self._entry(event, "transaction_ended" if is_untold else f"transaction_{outcome}", key, answered)
            entry.producer_id, entry.outcome = producer_id, outcome

    def _note_others(
        self,
        event: Event,
        group: _Group,
        before: Mapping[GroupTopicPartition, OffsetAndMetadata | None],
        name: str,
        but: GroupTopicPartition | None = None,
    ) -> None:
        """Note the keys whose answer changed because their group did."""
        for key in sorted(group.keys - {but}):
            if self._effective(key) is not before.get(key):
                self._entry(event, name, key, before.get(key))

    def _effective_of(self, group: _Group) -> dict[GroupTopicPartition, OffsetAndMetadata | None]:
        return {key: self._effective(key) for key in group.keys}


def in_order_of_time(histories: Sequence[Sequence[Entry]]) -> list[tuple[int, Entry]]:
    """Return the entries of several logs, each with its log's number: by `history_order`, and across logs by time.

    Where a key's answer comes from another log than before, it is compared with the answer from there. No log's own
    order is changed.
    """
    latest: dict[tuple[GroupTopicPartition, int], int] = {}
    ordered: list[tuple[tuple[Any, ...], int, Entry]] = []
    logs_of: dict[GroupTopicPartition, set[int]] = {}
    for number, entries in enumerate(histories):
        for entry in sorted(entries, key=history_order):
            reached = max(latest.get((entry.key, number), entry.timestamp_ms), entry.timestamp_ms)
            latest[entry.key, number] = reached
            logs_of.setdefault(entry.key, set()).add(number)
            ordered.append(((*entry.key, reached, number, entry.record_offset), number, entry))
    several = {key for key, logs in logs_of.items() if len(logs) > 1}
    if not several:
        ordered.sort(key=lambda found: history_order(found[2]))
    else:
        ordered.sort(key=lambda found: found[0])
    answered: dict[GroupTopicPartition, OffsetAndMetadata | None] = {}
    last = _Answered()
    for _, _, entry in ordered:
        if entry.key in several and entry.change is not None:
            entry.before = answered.get(entry.key)
            answered[entry.key] = entry.effective
            last.note(entry)
    return [(number, entry) for _, number, entry in ordered]


def history_order(entry: Entry) -> tuple[str, str, int, int]:
    """Return the sort key: group, topic and partition, then log order."""
    return *entry.key, entry.record_offset
