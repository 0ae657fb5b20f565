"""Tell of entries which columns are there, and look at their texts, in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.jit.compiled import U, kernel
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, LongRows, Number
from offsets_log.columnar.scan.interner import is_plain_text, is_utf8
from offsets_log.columnar.sinks.writers import says_more
from offsets_log.log_format.batch import NO_TIMESTAMP

Mask = npt.NDArray[np.bool_]

AT_ONCE = 1 << 12
"""How many rows are turned to columns at a time, in a processor's cache."""

MEMBERS_AT = e.ENTRY_SIZE
"""Where the columns of members begin in a run, after those of entries."""
NOTHING = {
    "timestamp_ms": (e.TIMESTAMP, NO_TIMESTAMP), "leader_epoch": (e.LEADER_EPOCH, -1),
    "effective_offset": (e.EFFECTIVE_RECORD, a.NEVER),
}  # fmt: skip
"""Which column of an entry has which number where one of these is null."""


class Run:
    """Entries, one after the other.

    Args:
        numbers: of the entries.
        entries, keys, members: rows of all, with the columns of `entries`.

    Attributes:
        longs: int64[columns, n], the columns of entries and of their members.
        keys: int32[columns, n], those of their keys.
        events, outcomes, changes: parts of their marks.
        there: column of a history, if it may be null → in which entries it is not.
    """

    def __init__(self, numbers: a.Int64s, entries: a.Int64s, keys: a.Int64s, members: a.Int64s) -> None:
        self.longs = np.empty((MEMBERS_AT + e.MEMBER_SIZE, len(numbers)), np.int64)
        for begin in range(0, len(numbers), AT_ONCE):
            part = self.longs[:, begin : begin + AT_ONCE]
            part[:MEMBERS_AT] = entries.take(numbers[begin : begin + AT_ONCE], axis=0).T
            part[MEMBERS_AT:] = members.take(part[e.MEMBER], axis=0).T
        self.keys = np.ascontiguousarray(keys.take(self.longs[e.KEY], axis=0).T, np.int32)
        self.events, self.outcomes, self.changes = (
            self.longs[e.MARKS] // part & e.MASK for part in (e.EVENT, e.OUTCOME, e.CHANGE)
        )
        commits, in_transaction = self.events == e.COMMIT, self.outcomes != e.PLAIN
        timed, led, answered = (self.longs[column] != nothing for column, nothing in NOTHING.values())
        held = self.longs[e.MEMBER] != e.NOBODY
        self.there: dict[str, Mask] = {
            "timestamp_ms": timed,
            **dict.fromkeys(("committed_offset", "commit_timestamp_ms", "metadata"), commits),
            "leader_epoch": commits & led,
            **dict.fromkeys(("producer_id", "transaction"), in_transaction),
            **dict.fromkeys(("effective_offset", "effective_record_offset"), answered),
            "change": self.changes != e.NONE,
            "rewound_by": np.isin(self.changes, e.GOES_BACK),
            **dict.fromkeys(("member_id", "client_id", "host", "member_epoch"), held),
            "group_instance_id": held & (self.longs[MEMBERS_AT + e.INSTANCE_ID + 1] >= 0),
        }

    def __len__(self) -> int:
        return self.longs.shape[1]

    def entry(self, place: int) -> list[int]:
        """Return the columns of an entry, as it stands among all."""
        found: list[int] = self.longs[:MEMBERS_AT, place].tolist()
        return found

    def may_say_more(self, texts: a.Bytes, escapes: a.Bytes) -> Mask:
        """Return of which entries the metadata may contain more than text; see `writers.says_more`."""
        more = np.zeros(len(self), np.uint8)
        find_more(self.longs, texts, escapes, more)
        return more.view(np.bool_)


@kernel
def are_utf8(entries: LongRows, count: Number, texts: Bytes) -> Any:
    """Return whether the metadata of all entries is UTF-8."""
    for n in range(count):
        start, size = entries[U(n), e.METADATA_AT], entries[U(n), e.METADATA_SIZE]
        if not is_plain_text(texts, start, size) and not is_utf8(texts, start, size):
            return np.int64(0)
    return np.int64(1)


@kernel
def find_more(longs: LongRows, texts: Bytes, escapes: ByteRows, more: Bytes) -> None:
    """Note of which entries of a run the metadata may contain more than text."""
    for n in range(len(more)):
        start, size = longs[e.METADATA_AT, U(n)], longs[e.METADATA_SIZE, U(n)]
        more[U(n)] = says_more(texts, start, size, escapes)
