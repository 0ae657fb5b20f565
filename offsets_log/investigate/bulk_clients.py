"""Find who held partitions, for kernels that count: answer `columnar.folds.holding` once for many records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from offsets_log.columnar.folds import holding
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds.writers import WritersState
from offsets_log.columnar.jit.compiled import Kernel
from offsets_log.columnar.scan.waiting import taken
from offsets_log.errors import ReplayError
from offsets_log.events import Event
from offsets_log.investigate.clients import Clients
from offsets_log.investigate.holders import Holder, Holders, holders_of
from offsets_log.investigate.writers import Writer, name_of
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.group import Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.profile import Profile

VERSION_NAME = nm.NOBODYS_NAME + b"v"
"""Beginning of a version's name; its number follows."""


class HeldWriters(WritersState):
    """Counts by clients or members.

    Args:
        topic_ids: topic id → name, known from elsewhere.
    """

    def __init__(self, profile: Profile, per: int, topic_ids: Mapping[bytes, str], **how: Any) -> None:
        super().__init__(profile, per, **how)
        self._per = "member" if per == nm.PER_MEMBER else "client"
        self._clients = Clients(topic_ids)
        self.counts[nm.NAMES_TOLD] = self._clients.names_told
        self._contents: dict[int, Group | None] = {}
        self._writers: dict[Writer, int] = {}
        self._versions: dict[tuple[Any, ...], int] = {}

    # ---------------------------------------------------------------------------------- by the kernel

    def answer(self, key: bytes, value: bytes | None) -> None:
        why, asked = self.counts[[nm.WHY, nm.ASKED]].tolist()
        match why:
            case nm.OF_CONTENT:
                self.arrays.groups[asked].version = self._content(asked, self.decode(key, value))
            case nm.OF_TOPIC_ID:
                self._catch_up()
                self._saw(self.decode(key, value))
                self.arrays.groups[asked].is_named = 1
            case nm.OF_GROUP:
                self._catch_up()
                group_id = self.decode(key, value).group
                version = self._version(group_id, self._clients.holders(group_id))
                self.arrays.groups[asked].now = version
            case nm.OF_RECORD:
                self._catch_up()
                self._saw_of(asked, self.decode(key, value))
                self.counts[nm.IS_SEEN] = 1

    def _catch_up(self) -> None:
        """Read the records that wait."""
        for one in taken(self.waiting):
            self._saw_of(one.group, self.decode(one.key, one.value))
        self.counts[nm.NAMES_WAIT] = 0

    def _saw_of(self, group: int, record: CoordinatorRecord) -> None:
        """Take in what Python reads of a group, whose records before it do not wait any more."""
        self.arrays.groups[group].waits = 0
        self._take_over(group, record)
        self._saw(record)

    def _content(self, content: int, record: CoordinatorRecord) -> int:
        """Return what the kernel needs to know of a type 2 value: 1 + the version it makes, or REFUSED."""
        fold = GroupFold(record.group, self.profile)
        try:
            fold.replay(record)
        except ReplayError:
            return holding.REFUSED
        self._contents[content] = fold.group
        return 1 + self._version(record.group, holders_of(fold.group))

    def _version(self, group_id: str, holders: Holders) -> int:
        """Return the number by which the kernel knows who holds what; 0 where nobody holds anything."""
        if holders.only is None and not holders.by_name and not holders.by_id:
            return 0
        by_name = {**holders.by_name, **self._clients.named(holders.by_id)}
        only = [] if holders.only is None else [holders.only]
        names = self._names(group_id, [*only, *by_name.values(), *holders.by_id.values()])
        facts = (tuple(by_name), tuple(holders.by_id), tuple(names))
        number = self._versions.get(facts)
        if number is None:
            version_name = VERSION_NAME + len(self._versions).to_bytes(nm.NUMBER_SIZE)
            number, *writers = self._numbers(names, version_name)
            self._versions[facts] = number
            if only:
                self.arrays.groups[number].only = writers.pop(0) + 1
            self._hold(number, by_name, writers[: len(by_name)])
            self._hold_ids(number, holders.by_id, writers[len(by_name) :])
        self.arrays.groups[number].by_id = 1 + self._clients.names_told if holders.by_id else 0
        return number

    def _hold(self, version: int, held: Iterable[tuple[str, int]], writers: list[int]) -> None:
        data, ends = bytearray(), []
        for topic, partition in held:
            raw = plain(topic).encode()
            data += len(raw).to_bytes(4)[2:] + raw + partition.to_bytes(4, signed=True)
            ends.append(len(data))
        self._note(holding.hold, version, bytes(data), [*zip(ends, writers, strict=True)])

    def _hold_ids(self, version: int, held: Iterable[tuple[bytes, int]], writers: list[int]) -> None:
        ids, partitions = b"".join(topic_id for topic_id, _ in held), [partition for _, partition in held]
        self._note(holding.hold_ids, version, ids, [*zip(partitions, writers, strict=True)])

    def _note(self, kernel: Kernel[Any], version: int, data: bytes, held: list[tuple[int, int]]) -> None:
        """Have a kernel note who holds what in a version."""
        names, rows = np.frombuffer(data, np.uint8), np.array(held, np.int64).reshape(-1, 2)
        while held and not kernel(self.arrays.all, self.text, names, rows, version):
            self.grow()

    def _names(self, group_id: str, holders: Iterable[Holder]) -> list[Writer]:
        """Return the writers that holders are."""
        group = [plain(group_id)] if self._per == "member" else []
        return [(*group, *name_of(holder, self._per)) for holder in holders]

    def _numbers(self, names: list[Writer], *others: bytes) -> list[int]:
        """Return the numbers of other names, then those of writers."""
        new = [*dict.fromkeys(name for name in names if name not in self._writers)]
        numbers = self.numbers_of([*others, *(nm.NOBODYS_NAME + json.dumps(name).encode() for name in new)])
        self._writers.update(zip(new, numbers[len(others) :], strict=True))
        return [*numbers[: len(others)], *(self._writers[name] for name in names)]

    def _sender(self, record: CoordinatorRecord, batch: RecordBatch) -> int:
        """Return the number of the writer of a commit."""
        holder = self._clients.holder(record, batch)
        if holder is not None:
            return self._numbers(self._names(record.group, [holder]))[0]
        return self.numbers_of([plain(record.group).encode()])[0] if self._per == "member" else nm.NOBODY

    # ---------------------------------------------------------------------------------------- on the slow path

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Count a record as `WritersState.count` does."""
        self._catch_up()
        self.counts[nm.HOLDER] = nm.NOBODY
        if event is not None and event.decoded is not None:
            record = event.decoded
            self._saw_of(self._group(event, record), record)
            if not self.counts[nm.IS_LEARNING]:
                self.counts[nm.HOLDER] = self._sender(record, event.batch)
        if not self.counts[nm.IS_LEARNING]:
            super().count(event, size_bytes)

    def _group(self, event: Event, record: CoordinatorRecord) -> int:
        row = self.row_of(event, record)
        return int(self.arrays.rows[row].group)

    def _take_over(self, group: int, record: CoordinatorRecord) -> None:
        """Take over what the kernel read of a group."""
        content = int(self.arrays.groups[group].content)
        if content:
            known = self._contents.get(content)
            self._clients.take(record.group, known and replace(known, group_id=record.group))
            self.arrays.groups[group].content = 0
        if not record.is_offset_commit:
            self.arrays.groups[group].now = holding.UNKNOWN

    def _saw(self, record: CoordinatorRecord) -> None:
        self._clients.saw(record)
        self.counts[nm.NAMES_TOLD] = self._clients.names_told
