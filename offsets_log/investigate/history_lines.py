"""Turn entries of `bulk_history` to lines of text in bulk, as `history_row` and a format's writer make them.

No format is written down here: templates are made of entries whose values are marks. Entries whose metadata can be
decoded, and names that are not UTF-8, get their lines one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from offsets_log.columnar.events.columns import TEXTS
from offsets_log.columnar.history import columns as co
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.letters import Letters
from offsets_log.columnar.sinks.marks import NoTemplateError, Values
from offsets_log.columnar.sinks.templates import Operation, Templates, program_of
from offsets_log.columnar.sinks.text import Names, Text
from offsets_log.investigate.bulk_history import OrderedHistory, Read, entry_with
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import Holder, TopicIds
from offsets_log.rows.tables import Row

Line = Callable[[Row], bytes]

STEP = 1 << 12
TEXT_BYTES = 1 << 21
"""Approximate number of bytes of lines that are passed on at a time."""

NAMES = ("group", "topic", "metadata", "member_id", "group_instance_id", "client_id", "host")
OPTIONAL = ("timestamp_ms", "leader_epoch", "effective_offset", "member_id", "group_instance_id")
"""Columns that may be null whatever an entry's marks are: the kind of its line is its marks, and which of these it has;
IS_SLOW where it has no template."""
IS_SLOW = k.ALL_MARKS << len(OPTIONAL)
KINDS = 2 * IS_SLOW


class HistoryLines:
    """The lines of entries in a format.

    Args:
        line: a row of `history_row` as text, with what ends it.
        threads: that make them.
        step: entries that a thread makes lines of at a time.
    """

    def __init__(self, ordered: OrderedHistory, line: Line, *, threads: int = 1, step: int = STEP) -> None:
        self.ordered, self.history, self.line, self.threads = ordered, ordered.history, line, threads
        self.step = step
        keys = self.history.keys
        self._letters = Letters(lambda text: line(dict.fromkeys(NAMES, text)))
        self._names = Names([keys.groups.texts, keys.topics.texts], self._letters)
        self._templates = Templates(partial(_program, self.history.logs, line), KINDS * len(self.history.logs))

    def pieces(self, *, only_rewinds: bool) -> Iterator[memoryview]:
        """Yield all lines, many at a time."""
        make = partial(self._lines, only_rewinds=only_rewinds)
        for made in self.ordered.side_by_side(make, step=self.step, threads=self.threads):
            yield from made

    def _lines(self, begin: int, end: int, *, only_rewinds: bool) -> list[memoryview]:
        """Return the lines of some entries."""
        run = self.ordered.run(begin, end, only_rewinds=only_rewinds)
        text = Text(self._letters, size=TEXT_BYTES)
        pieces = text.rows(
            self._columns(run), range(len(run)), self._templates,
            lambda row: self.line(self.ordered.row(run.entry(row))),
        )  # fmt: skip
        return [*pieces, text.flushed()]

    def _columns(self, run: co.Run) -> sk.Columns:
        texts = self.history.texts.array
        kinds = (run.longs[k.MARKS] + KINDS * run.keys[k.LOG]).astype(np.int32)
        for bit, name in enumerate(OPTIONAL):
            kinds[run.there[name]] |= k.ALL_MARKS << bit
        kinds[run.may_say_more(texts, self._letters.escapes) | (run.keys[k.IS_MALFORMED] != 0)] |= IS_SLOW
        return sk.Columns(
            kinds=kinds,
            longs=run.longs,
            ints=run.keys,
            texts=np.zeros((TEXTS, 0), np.uint8),
            ends=np.zeros((TEXTS, len(run)), np.int32),
            whole=texts,
            names=self._names.data,
            places=self._names.places,
        )


def _program(logs: Sequence[Read], line: Line, number: int) -> list[Operation]:
    """Return the program of a kind of entries of one of the logs. Raises NoTemplateError."""
    log_number, kind = divmod(number, KINDS)
    if kind & IS_SLOW:
        raise NoTemplateError
    log, marks = logs[log_number].log, Values()
    has = {name for bit, name in enumerate(OPTIONAL) if kind & k.ALL_MARKS << bit}
    key = (marks.text(sk.NAME, k.GROUP), marks.text(sk.NAME, k.TOPIC), marks.number(sk.INT, k.KEY_PARTITION))
    numbers = [marks.number(sk.LONG, column) for column in range(k.ENTRY_SIZE)]
    numbers[k.MARKS] = kind % k.ALL_MARKS
    for name, (column, nothing) in co.NOTHING.items():
        if name not in has:
            numbers[column] = nothing
    metadata, holder = marks.text(sk.TEXT, k.METADATA_AT), _holder(marks, has) if "member_id" in has else None
    entry = entry_with(numbers, key, metadata=metadata, topic_id=None, holder=holder)
    row = history_row(entry, log.offsets_partition, TopicIds(), log.missing_columns)
    return program_of(line(row), marks)


def _holder(marks: Values, has: set[str]) -> Holder:
    """Return a member whose values are marks."""
    member_id, instance_id, client_id, host = (
        marks.text(sk.TEXT, co.MEMBERS_AT + column) for column in (k.MEMBER_ID, k.INSTANCE_ID, k.CLIENT_ID, k.HOST)
    )
    epoch = marks.number(sk.LONG, co.MEMBERS_AT + k.EPOCH)
    return Holder(member_id, instance_id if "group_instance_id" in has else None, client_id, host, epoch)
