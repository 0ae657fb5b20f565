"""Entries of `bulk_history` as lines of text: what `history_row` and a format's writer make of each, in bulk.

Nothing of a line is written down here: the line of an entry whose values are marks is cut at these. What a row tells
of metadata beyond its text, and names that are not UTF-8, are for lines made one by one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.history import lines as ln
from offsets_log.investigate.bulk_history import OrderedHistory, entry_with, is_malformed, offset_of
from offsets_log.investigate.history import HISTORY_COLUMNS, history_row
from offsets_log.investigate.holders import NOBODY, Holder, Holders, TopicIds
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.commit_metadata import FORMATS
from offsets_log.tables import Row

Line = Callable[[Row], bytes]

TEXT_BYTES = 1 << 20
"""Of lines that are handed over at once, more or less."""
PRINTED = frozenset(b"\t\n\r") | frozenset(range(0x20, 0x7F))
"""Bytes of metadata that is text; others are looked at one by one."""

# What the template of an entry depends on beside its marks.
HAS_TIME, HAS_LEADER, HAS_ANSWER = (1 << 9 << bit for bit in range(3))


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands in a line of marks for a value."""

    text: bytes
    op: int
    argument: int = 0


class _Marks:
    """Values that stand for others."""

    def __init__(self) -> None:
        self.made: list[_Mark] = []

    def number(self, column: int) -> int:
        """In place of a column."""
        number = 10**29 + secrets.randbelow(10**29)
        self.made.append(_Mark(str(number).encode(), ln.NUMBER, column))
        return number

    def text(self, op: int, argument: int = 0) -> str:
        """In place of a name, or of metadata."""
        text = f"mark{10**29 + secrets.randbelow(10**29)}"
        self.made.append(_Mark(text.encode(), op, argument))
        return text


class HistoryLines:
    """The lines of entries in a format.

    Args:
        line: a row of `history_row` as text, with what ends it.
    """

    def __init__(self, ordered: OrderedHistory, line: Line) -> None:
        self.ordered, self.history, self.line = ordered, ordered.history, line
        self._programs: dict[tuple[int, int], int] = {}
        self._ops = np.zeros((0, ln.OP_COLUMNS), np.int64)
        self._literals = np.zeros(0, np.uint8)
        self._cells = Cells(line)
        self._plain = np.array([byte in PRINTED and self._cells.is_plain(byte) for byte in range(256)], np.uint8)
        self._formats = np.array([byte in FORMATS for byte in range(256)], np.uint8)
        self._fragments = _Fragments(line)
        self._number_keys()

    # ----------------------------------------------------------------------------------------- names

    def _number_keys(self) -> None:
        """Groups and topics of keys as numbers, and their partitions; as cells of a line."""
        groups: dict[str, int] = {}
        topics: dict[str, int] = {}
        pairs: dict[tuple[str, int], int] = {}
        rows = [
            (-1, -1, -1, 0, -1)
            if key is None
            else (
                groups.setdefault(key[0], len(groups)),
                topics.setdefault(key[1], len(topics)),
                key[2],
                is_malformed(key),
                pairs.setdefault(key[1:], len(pairs)),
            )
            for key in self.history.keys
        ]
        self._keys = np.array(rows, np.int64).reshape(-1, 5)
        self._by_name = _ByName(self.history.holders, pairs, self._fragments)
        self._names = [[*map(self._cells.of, names)] for names in (groups, topics)]

    def _name_table(self) -> tuple[a.Bytes, a.Int64s]:
        """All names behind each other, and where each begins and ends by its kind and number."""
        kinds = [*self._names, self._fragments.made]
        places = np.zeros((len(kinds), max(map(len, kinds)) + 1, 2), np.int64)
        at = 0
        for kind, names in enumerate(kinds):
            ends = at + np.cumsum([*map(len, names)], dtype=np.int64)
            places[kind, : len(names), 1] = ends
            places[kind, : len(names), 0] = [at, *ends[:-1]][: len(names)]
            at = int(ends[-1]) if len(names) else at
        return np.frombuffer(b"".join(b"".join(names) for names in kinds), np.uint8), places

    # ----------------------------------------------------------------------------------------- lines

    def pieces(self, *, only_rewinds: bool) -> Iterator[memoryview | bytes]:
        """All lines, many at a time; each piece is good until the next."""
        out = np.zeros(TEXT_BYTES, np.uint8)
        desk = np.zeros(ln.DESK, np.int64)
        for values in self.ordered.chunks(only_rewinds=only_rewinds):
            programs = self._prepared(values)
            names, places = self._name_table()
            desk[ln.ROW] = 0
            while True:
                outcome = ln.write(
                    desk, out, programs, self._ops, self._literals, values, self.history.texts.array, names, places
                )
                used = int(desk[ln.USED])
                if outcome == ln.FULL and not used:
                    out = np.zeros(2 * len(out), np.uint8)
                    continue
                if outcome != ln.FINISHED and used:
                    yield out[:used].data
                    desk[ln.USED] = 0
                if outcome == ln.NEEDS_HAND:
                    yield self.line(self.ordered.row(values[int(desk[ln.ROW])].tolist()))
                    desk[ln.ROW] += 1
                elif outcome == ln.FINISHED:
                    break
        yield out[: int(desk[ln.USED])].data

    def _prepared(self, values: a.Int64s) -> a.Int64s:
        """The other columns of some entries, and where the template of each begins, NOTHING for those made by hand."""
        keys = self._keys[values[:, k.KEY]]
        values[:, ln.NAMES + ln.GROUP : ln.NAMES + ln.TOPIC + 1] = keys[:, :2]
        values[:, ln.PARTITION] = keys[:, 2]
        values[:, ln.NAMES + ln.HOLDER] = self._holders(values)
        is_commit = values[:, k.MARKS] // k.EVENT & k.MASK == k.COMMIT
        kinds = values[:, k.MARKS].copy()
        kinds += HAS_TIME * (values[:, k.TIMESTAMP] != NO_TIMESTAMP)
        kinds += HAS_LEADER * (is_commit & (values[:, k.LEADER_EPOCH] != -1))
        kinds += HAS_ANSWER * (values[:, k.EFFECTIVE_RECORD] != a.NEVER)
        of_log = kinds * len(self.history.logs) + self.ordered.log_of(values[:, k.KEY])
        programs = np.empty(len(values), np.int64)
        for number in np.unique(of_log).tolist():
            programs[of_log == number] = self._program(*divmod(number, len(self.history.logs)))
        is_text = np.zeros(len(values), np.uint8)
        ln.find_texts(values, self.history.texts.array, self._plain, self._formats, is_text)
        programs[(is_text == 0) | (keys[:, 3] != 0)] = a.NOTHING
        return programs

    def _holders(self, values: a.Int64s) -> a.Int64s:
        """The number of the fragment that tells who held the partition, of each entry."""
        columns = (k.HOLDERS, k.KEY, k.TOPIC_ID)
        is_plain = values[:, k.MARKS] // k.OUTCOME & k.MASK == k.PLAIN
        found = self._by_name.find(values[:, k.HOLDERS], self._keys[values[:, k.KEY], 4], is_plain)
        asked = np.flatnonzero(found < 0)
        what = np.column_stack([values[asked][:, columns], is_plain[asked]])
        if not len(what):
            return found
        order = np.lexsort(what.T[::-1])
        is_first = np.ones(len(what), np.bool_)
        is_first[1:] = (what[order[1:]] != what[order[:-1]]).any(axis=1)
        of = self.history.holder_of
        numbers = [self._fragments.of(of(values[at].tolist(), self.ordered.ids)) for at in asked[order[is_first]]]
        found[asked[order]] = np.array(numbers, np.int64)[np.cumsum(is_first) - 1]
        return found

    # --------------------------------------------------------------------------------------- templates

    def _program(self, kind: int, log: int) -> int:
        """Where the template of a kind of entries begins."""
        if (kind, log) not in self._programs:
            self._programs[kind, log] = len(self._ops)
            self._add(self._template(kind, self.history.logs[log].log))
        return self._programs[kind, log]

    def _add(self, template: list[tuple[bytes, _Mark | None]]) -> None:
        at, rows = len(self._literals), []
        for literal, mark in template:
            rows.append((ln.END, 0) if mark is None else (mark.op, mark.argument))
            rows[-1] += (at, len(literal))  # type: ignore[assignment]
            at += len(literal)
        added = np.frombuffer(b"".join(literal for literal, _ in template), np.uint8)
        self._literals = np.concatenate([self._literals, added])
        self._ops = np.concatenate([self._ops, np.array(rows, np.int64)])

    def _template(self, kind: int, log: PartitionLog) -> list[tuple[bytes, _Mark | None]]:
        """The literals of a line, each with the mark behind it; the last has none."""
        marks = _Marks()
        key = (marks.text(ln.NAME, ln.GROUP), marks.text(ln.NAME, ln.TOPIC), marks.number(ln.PARTITION))
        is_commit = kind // k.EVENT & k.MASK == k.COMMIT
        in_transaction = kind // k.OUTCOME & k.MASK != k.PLAIN
        value = None
        if is_commit:
            value = offset_of(
                key,
                marks.number(k.COMMITTED),
                0,
                leader_epoch=marks.number(k.LEADER_EPOCH) if kind & HAS_LEADER else None,
                metadata=marks.text(ln.METADATA),
                commit_timestamp_ms=marks.number(k.COMMIT_TIMESTAMP),
            )
        entry = entry_with(
            key=key,
            marks=kind,
            record_offset=marks.number(k.RECORD_OFFSET),
            timestamp_ms=marks.number(k.TIMESTAMP) if kind & HAS_TIME else NO_TIMESTAMP,
            effective=(marks.number(k.EFFECTIVE), marks.number(k.EFFECTIVE_RECORD)) if kind & HAS_ANSWER else None,
            value=value,
            producer_id=marks.number(k.PRODUCER_ID) if in_transaction else None,
            holders=NOBODY,
        )
        row = history_row(entry, log.offsets_partition, TopicIds(), log.untold)
        line = self._fragments.marked(row, marks) if is_commit else self.line(row)
        by_text = {mark.text: mark for mark in marks.made}
        pieces = re.split(b"(" + b"|".join(map(re.escape, by_text)) + b")", line)
        return list(zip(pieces[::2], [*(by_text[text] for text in pieces[1::2]), None], strict=True))


class _ByName:
    """Who holds what by topics' names, for many entries at once.

    Args:
        pairs: (topic, partition) → its number.
    """

    def __init__(self, holders: Sequence[Holders], pairs: Mapping[tuple[str, int], int], fragments: _Fragments) -> None:
        self._pairs = max(1, len(pairs))
        self._only = np.array([fragments.of(each.only) for each in holders], np.int64)
        self._by_id = np.array([bool(each.by_id) for each in holders], np.bool_)
        found = [
            (number * self._pairs + pairs[pair], fragments.of(holder))
            for number, each in enumerate(holders)
            for pair, holder in each.by_name.items()
            if pair in pairs
        ]
        table = np.array(sorted(found), np.int64).reshape(-1, 2)
        self._places, self._fragments = np.append(table[:, 0], np.iinfo(np.int64).max), np.append(table[:, 1], 0)

    def find(self, holders: a.Int64s, pairs: a.Int64s, is_plain: npt.NDArray[np.bool_]) -> a.Int64s:
        """The fragment of each entry, below 0 where topic ids must be asked.

        Args:
            holders: their numbers, below 0 for entries that are no commits.
            pairs: of topic and partition.
        """
        place = holders * self._pairs + pairs
        at = np.searchsorted(self._places, place)
        found = np.where(is_plain, self._only[holders], 0)
        found[self._by_id[holders]] = a.NOTHING
        found = np.where(self._places[at] == place, self._fragments[at], found)
        found[holders < 0] = 0
        return found


class Cells:
    """Texts as they stand in a line."""

    def __init__(self, line: Line) -> None:
        self.line = line
        mark = f"mark{secrets.randbits(90)}"
        before, after = line({"group": mark}).split(mark.encode())
        self._before, self._after = len(before), len(after)
        self._odd = re.compile(
            "[" + "".join(re.escape(chr(byte)) for byte in range(128) if not self.is_plain(byte)) + "]"
        )

    def is_plain(self, byte: int) -> bool:
        """Whether it stands there as it is, wherever in a text; of more than 7 bits all do."""
        if byte >= 128:
            return True
        texts = (chr(byte), f"{chr(byte)}a", f"a{chr(byte)}a", f"a{chr(byte)}")
        return all(self._made(text) == text.encode() for text in texts)

    def _made(self, text: str) -> bytes:
        line = self.line({"group": text})
        return line[self._before : len(line) - self._after]

    def of(self, text: str) -> bytes:
        """A text as it stands in a line."""
        return self._made(text) if self._odd.search(text) else "".join(text).encode()


class _Fragments:
    """What lines tell of who held a partition: the columns of a member, which stand together.

    Attributes:
        made: fragments by their numbers; the first is that of nobody.
    """

    COLUMNS = ("member_id", "group_instance_id", "client_id", "host", "member_epoch")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.empty: Row = dict.fromkeys(column.name for column in HISTORY_COLUMNS)
        nobody, somebody = line(self.empty), line(self.empty | self._columns(Holder("m", "i", "c", "h", 9)))
        self._before, self._after = _alike(nobody, somebody)
        self.made = [nobody[self._before : len(nobody) - self._after]]
        self._numbers: dict[Holder, int] = {}

    def _columns(self, holder: Holder) -> Row:
        told = (holder.member_id, holder.group_instance_id, holder.client_id, holder.host, holder.epoch)
        return dict(zip(self.COLUMNS, told, strict=True))

    def of(self, holder: Holder | None) -> int:
        """The number of a member's fragment."""
        if holder is None:
            return 0
        if holder not in self._numbers:
            line = self.line(self.empty | self._columns(holder))
            self._numbers[holder] = len(self.made)
            self.made.append(line[self._before : len(line) - self._after])
        return self._numbers[holder]

    def marked(self, row: Row, marks: _Marks) -> bytes:
        """The line of a row of nobody, with a mark for the fragment."""
        mark = marks.text(ln.NAME, ln.HOLDER)
        nobody, somebody = self.line(row), self.line(row | self._columns(Holder("m", "i", "c", "h", 9)))
        before, after = _alike(nobody, somebody)
        return nobody[:before] + mark.encode() + nobody[len(nobody) - after :]


def _alike(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes two lines that differ begin and end alike."""
    begin = next(i for i, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    end = next(i for i, (left, right) in enumerate(zip(one[::-1], other[::-1], strict=False)) if left != right)
    return begin, end
