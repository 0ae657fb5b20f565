"""Find who held partitions, for kernels that count: answer `columnar.folds.holding` once for many records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.arrays import KEY_TYPES, Bytes
from offsets_log.columnar.folds import holding
from offsets_log.columnar.folds.holding import MOST_NUMBERS, NOBODY, NOBODYS_NAME, NUMBER_SIZE
from offsets_log.columnar.folds.ledgers import KernelKeys, LedgerPiece, LedgerReplay, LedgerState
from offsets_log.columnar.folds.state import canonical_key
from offsets_log.columnar.jit.compiled import Kernel
from offsets_log.columnar.ledger.ledger import Question
from offsets_log.columnar.scan.waiting import new_waiting, taken
from offsets_log.errors import ReplayError
from offsets_log.events import Event
from offsets_log.investigate.clients import Clients
from offsets_log.investigate.holders import Holder, Holders, holders_of
from offsets_log.investigate.writer_counts import WriterCounts
from offsets_log.investigate.writers import HELD, Writer, name_of, nobody
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.replay.fold import TakesNothing
from offsets_log.replay.group import Group
from offsets_log.replay.groups import GROUP_METADATA, GroupFold
from offsets_log.replay.profile import Profile
from offsets_log.rows.shown import Shown

VERSION_NAME = NOBODYS_NAME + b"v"
"""Beginning of a version's name; its number follows."""


class HeldState(TakesNothing, LedgerState):
    """A ledger with holders; of a replay it keeps only the keys.

    Attributes:
        decode: decodes a record that kernels have found valid.

    Args:
        per: `client` or `member`.
        topic_ids: topic id → name, known from elsewhere.
    """

    def __init__(
        self, profile: Profile, question: Question, *, per: str, topic_ids: Mapping[bytes, str], **how: Any
    ) -> None:
        super().__init__(profile, question, **how)
        self._per = per
        self._clients = Clients(topic_ids)
        self.decode = RepeatedRecords(self.release).decode
        self.held = holding.Held(
            np.zeros(holding.COUNTS, np.int64), new_waiting(), np.zeros(MOST_NUMBERS * NUMBER_SIZE, np.uint8)
        )
        self.counts = self.held.counts
        self.counts[holding.PER_MEMBER] = per == "member"
        self.counts[holding.NAMES_TOLD] = self._clients.names_told
        self._contents: dict[int, Group | None] = {}
        self._writers: dict[Writer, int] = {}
        self._versions: dict[tuple[Any, ...], int] = {}
        self.numbers_of([NOBODYS_NAME])

    def numbers_of(self, names: Sequence[bytes]) -> list[int]:
        """Return the numbers of names, new or known."""
        if not names:
            return []
        data = np.frombuffer(b"".join(names), np.uint8)
        ends, numbers = np.cumsum([len(name) for name in names]), np.zeros(len(names), np.int64)
        while not holding.number(self.arrays.all, data, ends, numbers):
            self.grow()
        return numbers.tolist()

    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of the raw key; that of a newer group's record is a key of its group."""
        if record.record_type < KEY_TYPES:
            return super().row_of(event, record)
        assert event.record.key is not None
        return self.raw_row(event.record.key, canonical_key(GROUP_METADATA, (plain(record.group),)))

    # ---------------------------------------------------------------------------------- by the kernel

    def answer(self, key: bytes, value: bytes | None) -> None:
        why, asked = self.counts[[holding.WHY, holding.ASKED]].tolist()
        match why:
            case holding.OF_CONTENT:
                self.arrays.groups[asked].version = self._content(asked, self.decode(key, value))
            case holding.OF_TOPIC_ID:
                self._catch_up()
                self._saw(self.decode(key, value))
                self.arrays.groups[asked].is_named = 1
            case holding.OF_GROUP:
                self._catch_up()
                group_id = self.decode(key, value).group
                version = self._version(group_id, self._clients.holders(group_id))
                self.arrays.groups[asked].now = version
            case holding.OF_RECORD:
                self._catch_up()
                self._saw_of(asked, self.decode(key, value))
                self.counts[holding.IS_SEEN] = 1

    def _catch_up(self) -> None:
        """Read the records that wait."""
        for one in taken(self.held.waiting):
            self._saw_of(one.group, self.decode(one.key, one.value))
        self.counts[holding.NAMES_WAIT] = 0

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
            version_name = VERSION_NAME + len(self._versions).to_bytes(NUMBER_SIZE)
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
        while held and not kernel(self.arrays.all, self.held.text, names, rows, version):
            self.grow()

    def _names(self, group_id: str, holders: Iterable[Holder]) -> list[Writer]:
        """Return the writers that holders are."""
        group = [plain(group_id)] if self._per == "member" else []
        return [(*group, *name_of(holder, self._per)) for holder in holders]

    def _numbers(self, names: list[Writer], *others: bytes) -> list[int]:
        """Return the numbers of other names, then those of writers."""
        new = [*dict.fromkeys(name for name in names if name not in self._writers)]
        numbers = self.numbers_of([*others, *(NOBODYS_NAME + json.dumps(name).encode() for name in new)])
        self._writers.update(zip(new, numbers[len(others) :], strict=True))
        return [*numbers[: len(others)], *(self._writers[name] for name in names)]

    def _sender(self, record: CoordinatorRecord, batch: RecordBatch) -> int:
        """Return the number of the writer of a commit."""
        holder = self._clients.holder(record, batch)
        if holder is not None:
            return self._numbers(self._names(record.group, [holder]))[0]
        return self.numbers_of([plain(record.group).encode()])[0] if self._per == "member" else NOBODY

    # ---------------------------------------------------------------------------------------- on the slow path

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Add the row of a record as `LedgerState.count` does, after those that wait were read."""
        self._catch_up()
        super().count(event, size_bytes)

    def holder_of(self, event: Event) -> int:
        record = event.decoded
        if record is None:
            return NOBODY
        self._saw_of(self._group(event, record), record)
        return self._sender(record, event.batch)

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
        self.counts[holding.NAMES_TOLD] = self._clients.names_told


class HeldPiece(LedgerPiece):
    """A log on its way into a ledger with holders: the kernel may ask who wrote a record."""

    state: HeldState

    def scan_on(self, data: Bytes) -> int:
        state = self.state
        while True:
            outcome = int(holding.scan(state.held, state.arrays.all, self.scanner.buffers, data, state.ledger))
            if outcome != oc.NEEDS_ANSWER:
                return outcome
            staged = self.scanner.staged[self.scan_state.flushed]
            source = self.scanner.window if self.scan_state.in_window else data
            state.answer(staged.raw_key(source), staged.raw_value(source))


class HeldReplay(LedgerReplay):
    """One log, read with a ledger that has holders."""

    piece = HeldPiece


def holder_name(per: str, keys: KernelKeys, number: int) -> Writer:
    """Return somebody who held a partition; a group's name alone stands for a member that is not known."""
    name = keys.raw_name(number)
    if name.startswith(NOBODYS_NAME):
        return tuple(json.loads(name[len(NOBODYS_NAME) :]))
    return name.decode(), *nobody(per, None)[1:]


def counting(per: str, shown: Shown, topic_ids: Mapping[bytes, str]) -> Callable[..., LedgerReplay]:
    """Return what makes replays that count writers: their states have `WriterCounts` as question.

    Args:
        per: a key of `writers.WRITER_COLUMNS`.
        topic_ids: topic id → name, known from elsewhere.
    """
    if per not in HELD:
        return partial(LedgerReplay, question=partial(WriterCounts, per, shown))
    question = partial(WriterCounts, per, shown, partial(holder_name, per))
    return partial(HeldReplay, question=question, state=partial(HeldState, per=per, topic_ids=topic_ids))
