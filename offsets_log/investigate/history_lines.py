"""Turn entries of `bulk_history` to lines of text in bulk, as `history_row` and a format's writer make them.

No format is written down here. A line is made of an entry whose values are marks, and cut at these; what a line
contains for each byte of a text is learnt from lines of such texts. Entries whose metadata can be decoded, and names
that are not UTF-8, get their lines one by one.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history import lines as ln
from offsets_log.columnar.sinks import writers as wr
from offsets_log.columnar.sinks.marks import Values, note_what_says_more, split
from offsets_log.investigate.bulk_history import OrderedHistory, entry_with, offset_of
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import NOBODY, Holder, Holders, TopicIds
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import Row

Line = Callable[[Row], bytes]
_Made = tuple[a.Bytes, int]
"""A buffer with text in it, and how many bytes are used."""

STEP = 1 << 12
TEXT_BYTES = 1 << 21
"""Approximate number of bytes of lines that are passed on at a time."""


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
        self._templates = Templates(ordered, line)
        self._cells = Cells(line)
        self._letters = self._cells.letters()
        self._spare: list[a.Bytes] = []
        self.go_on(ordered)

    def go_on(self, ordered: OrderedHistory) -> None:
        """Go on with other entries of the same logs."""
        self.ordered, history = ordered, self.history
        ln.find_odd(history.members.array, history.members_count, history.texts.array, self._letters)
        self._names, self._places = self._named()

    def _named(self) -> tuple[a.Bytes, a.Int64s]:
        """Return all names as they appear in lines, joined, and where each begins and ends, by kind and number."""
        kinds = self.history.keys.groups.texts, self.history.keys.topics.texts
        names = [[*map(self._cells.of, texts)] for texts in kinds]
        places = np.zeros((len(names), max(map(len, names)) + 1, 2), np.int64)
        at = 0
        for kind, texts in enumerate(names):
            ends = at + np.cumsum([0, *map(len, texts)], dtype=np.int64)
            places[kind, : len(texts), 0], places[kind, : len(texts), 1] = ends[:-1], ends[1:]
            at = int(ends[-1])
        return np.frombuffer(b"".join(b"".join(texts) for texts in names), np.uint8), places

    def pieces(self, *, only_rewinds: bool) -> Iterator[memoryview]:
        """Yield all lines, many at a time; each piece is valid until the next."""
        make = partial(self._lines, only_rewinds=only_rewinds)
        for made in self.ordered.side_by_side(make, step=self.step, threads=self.threads):
            for room, used in made:
                yield room[:used].data
                if len(room) == TEXT_BYTES:
                    self._spare.append(room)

    def _room(self) -> a.Bytes:
        try:
            return self._spare.pop()
        except IndexError:
            return np.zeros(TEXT_BYTES, np.uint8)

    def _lines(self, begin: int, end: int, *, only_rewinds: bool) -> list[_Made]:
        """Return the lines of some entries."""
        history, order, templates = self.history, self.ordered.order, self._templates
        made: list[_Made] = []
        out = self._room()
        progress = np.zeros(ln.PROGRESS_SIZE, np.int64)
        progress[[ln.ROW, ln.END_ROW, ln.ONLY_REWINDS]] = begin, end, only_rewinds
        shown = ln.Shown(
            history.entries.array, history.keys.columns, history.texts.array, history.members.array, self._names,
            self._places,
        )  # fmt: skip
        while True:
            made_by = ln.Templates(templates.begins, *templates.programs, self._letters)
            outcome = ln.write(wr.Output(progress, out), made_by, shown, order)
            used = int(progress[ln.USED])
            if outcome == oc.FINISHED:
                return [*made, (out, used)]
            if outcome == oc.NEEDS_TEMPLATE:
                templates.make(int(progress[ln.KIND]))
            elif outcome == oc.FULL and not used:
                out = np.zeros(2 * len(out), np.uint8)
            else:
                line = self._line(int(progress[ln.ROW])) if outcome == oc.NOT_PLAIN else b""
                if not line or used + len(line) > len(out):
                    made.append((out, used))
                    out, used = self._room(), 0
                if len(line) > len(out):
                    made.append((np.frombuffer(line, np.uint8), len(line)))
                    line = b""
                out[used : used + len(line)] = np.frombuffer(line, np.uint8)
                progress[ln.USED] = used + len(line)
                progress[ln.ROW] += outcome == oc.NOT_PLAIN

    def _line(self, place: int) -> bytes:
        """Return the line of an entry, made on the slow path."""
        return self.line(self.ordered.row(self.ordered.entry(place)))


class Templates:
    """The templates of all kinds of entries, made when they are needed. Threads may share it.

    Attributes:
        begins: where each begins, by the number of its log and its kind.
        programs: the templates one after the other, int64[n, `lines.OP_COLUMNS`], and the bytes that they write.
    """

    def __init__(self, ordered: OrderedHistory, line: Line) -> None:
        self.logs = [read.log for read in ordered.history.logs]
        self.line = line
        self.begins = np.full(len(self.logs) * ln.KINDS, ln.UNKNOWN, np.int64)
        self.programs = np.zeros((0, ln.OP_COLUMNS), np.int64), np.zeros(0, np.uint8)
        self._lock = threading.Lock()

    def make(self, number: int) -> None:
        """Make one more template, unless another thread has made it."""
        with self._lock:
            if self.begins[number] == ln.UNKNOWN:
                log, kind = divmod(number, ln.KINDS)
                begin = len(self.programs[0])
                self._add(*self._template(kind, self.logs[log]))
                self.begins[number] = begin

    def _add(self, literals: list[bytes], operations: list[tuple[int, int]]) -> None:
        ops, bytes_before = self.programs
        ends = len(bytes_before) + np.cumsum([0, *map(len, literals)])
        added = np.column_stack([np.array(operations, np.int64), ends[:-1], np.diff(ends)])
        literal = np.frombuffer(b"".join(literals), np.uint8)
        self.programs = np.concatenate([ops, added]), np.concatenate([bytes_before, literal])

    def _template(self, kind: int, log: PartitionLog) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Return the literals of a line, and the operation after each."""
        marks = Values()
        group, topic = marks.text(ln.NAME, ln.GROUP), marks.text(ln.NAME, ln.TOPIC)
        key = (group, topic, marks.number(ln.PARTITION))
        is_commit = kind // k.EVENT & k.MASK == k.COMMIT
        in_transaction = kind // k.OUTCOME & k.MASK != k.PLAIN
        value = None
        if is_commit:
            value = offset_of(
                key,
                _number(marks, k.COMMITTED),
                0,
                leader_epoch=_number(marks, k.LEADER_EPOCH) if kind & ln.HAS_LEADER else None,
                metadata=marks.text(ln.METADATA),
                commit_timestamp_ms=_number(marks, k.COMMIT_TIMESTAMP),
            )
        entry = entry_with(
            key=key,
            marks=kind,
            record_offset=_number(marks, k.RECORD_OFFSET),
            timestamp_ms=_number(marks, k.TIMESTAMP) if kind & ln.HAS_TIME else NO_TIMESTAMP,
            effective=(_number(marks, k.EFFECTIVE), _number(marks, k.EFFECTIVE_RECORD))
            if kind & ln.HAS_ANSWER
            else None,
            rewound_by=_number(marks, k.REWOUND_BY) if kind // k.CHANGE & k.MASK in k.GOES_BACK else 0,
            value=value,
            producer_id=_number(marks, k.PRODUCER_ID) if in_transaction else None,
            holders=Holders({key[1:]: _holder(kind, marks)}) if kind & ln.HAS_MEMBER else NOBODY,
        )
        row = history_row(entry, log.offsets_partition, TopicIds(), log.missing_columns)
        literals, found = split(self.line(row), marks)
        return literals, [*((mark.op, mark.argument) for mark in found), (ln.END, 0)]


def _number(marks: Values, column: int) -> int:
    return marks.number(ln.NUMBER, column)


def _holder(kind: int, marks: Values) -> Holder:
    """Return a member whose values are marks."""
    instance_id = marks.text(ln.MEMBER_TEXT, k.INSTANCE_ID) if kind & ln.HAS_INSTANCE_ID else None
    member_id, client_id, host = (marks.text(ln.MEMBER_TEXT, column) for column in (k.MEMBER_ID, k.CLIENT_ID, k.HOST))
    return Holder(member_id, instance_id, client_id, host, marks.number(ln.EPOCH))


class Cells:
    """Texts as they appear in a line."""

    def __init__(self, line: Line) -> None:
        self.line = line
        mark = f"mark{secrets.randbits(90)}"
        before, after = line({"group": mark}).split(mark.encode())
        self._before, self._after = len(before), len(after)
        self._odd = re.compile(
            "[" + "".join(re.escape(chr(byte)) for byte in range(128) if not self.is_plain(byte)) + "]"
        )

    def is_plain(self, byte: int) -> bool:
        """Return whether a byte appears in a line unchanged wherever it is in a text; all bytes above 127 do."""
        if byte >= 128:
            return True
        texts = (chr(byte), f"{chr(byte)}a", f"a{chr(byte)}a", f"a{chr(byte)}")
        return all(self._made(text) == text.encode() for text in texts)

    def _made(self, text: str) -> bytes:
        line = self.line({"group": text})
        return line[self._before : len(line) - self._after]

    def of(self, text: str) -> bytes:
        """Return a text as it appears in a line."""
        return self._made(text) if self._odd.search(text) else "".join(text).encode()

    def letters(self) -> npt.NDArray[np.uint8]:
        """Return what appears in a line for each byte of a text, in the form of `lines`."""
        letters = says_more_letters()
        for byte in range(256):
            escaped = bytes([byte])
            if not self.is_plain(byte):
                letters[byte, ln.IS_ODD] = True
                made = self._made(f"a{chr(byte)}a")
                quote, escaped = made[: made.index(b"a")], made[made.index(b"a") + 1 : made.rindex(b"a")]
                letters[ln.QUOTE, : len(quote)] = list(quote)
                letters[ln.QUOTE, wr.MOST_ESCAPED] = len(quote)
            letters[byte, : len(escaped)] = list(escaped)
            letters[byte, wr.MOST_ESCAPED] = len(escaped)
        return letters


def says_more_letters() -> npt.NDArray[np.uint8]:
    """Return which bytes show that metadata may hold more than its text, in the form of `lines`."""
    letters = np.zeros((ln.QUOTE + 1, ln.LETTER_COLUMNS), np.uint8)
    note_what_says_more(letters)
    return letters
