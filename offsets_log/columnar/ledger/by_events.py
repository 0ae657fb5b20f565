"""The ledger of a log that is read record by record: the rows that kernels make, of the events of `pipeline`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.kinds import LongRows
from offsets_log.columnar.ledger.ledger import Batch, Ledger, Question, own_topic_id, says_who_holds
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.rows.batch_bytes import counted


class PlainKeys:
    """Keys and names by their numbers, in the order in which they came, as `ledger.Keys`."""

    def __init__(self) -> None:
        self._keys: dict[bytes, int] = {}
        self._named: list[tuple[int, int, int]] = []
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._topic_ids = {bytes(ZERO_UUID): 0}

    def key(self, raw_key: bytes, record: CoordinatorRecord) -> int:
        """Return the number of the raw key of a record."""
        number = self._keys.setdefault(raw_key, len(self._keys))
        if number == len(self._named):
            topic, partition = (record.key["topic"], record.key["partition"]) if record.is_offset_commit else (None, -1)
            topic_number = a.NOTHING if topic is None else self._number(plain(topic))
            self._named.append((self._number(plain(record.group)), topic_number, partition))
        return number

    def __len__(self) -> int:
        return len(self._keys)

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def named(self) -> LongRows:
        """Implement `Keys.named`."""
        return np.array(self._named, np.int64).reshape(-1, 3)

    def name(self, number: int) -> str:
        """Implement `Keys.name`."""
        return self._names[number]

    def number_topic_id(self, topic_id: bytes) -> int:
        """Return the number of a topic id; zeros are none."""
        return self._topic_ids.setdefault(topic_id, len(self._topic_ids))

    def topic_id(self, number: int) -> bytes:
        """Implement `Keys.topic_id`."""
        return [*self._topic_ids][number]


def with_ledger(events: Iterable[LogEvent], question: Question) -> Iterator[LogEvent]:
    """Give a question the rows of one log while passing its events on."""
    keys, empty_bytes, records = PlainKeys(), 0, list[tuple[int, CoordinatorRecord]]()

    def take(batch: Batch) -> None:
        question.take(batch._replace(records=[*records]), keys)
        records.clear()

    ledger = Ledger(question.columns, take)

    def count(event: Event | None, size_bytes: int) -> None:
        nonlocal empty_bytes
        if event is None:
            empty_bytes += size_bytes
            return
        raw_key, record, key, topic_id = event.record.key, event.decoded, a.NOTHING, 0
        if record is not None and raw_key is not None:
            key = keys.key(raw_key, record)
            ledger.fit(len(keys))
            if question.takes_records and says_who_holds(record):
                records.append((ledger.make_ready(), record))
                topic_id = keys.number_topic_id(own_topic_id(record))
        ledger.add(key, event, size_bytes, topic_id)

    yield from counted(events, count)
    ledger.hand_over()
    question.end(keys, empty_bytes)
