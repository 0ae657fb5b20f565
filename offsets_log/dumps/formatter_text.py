"""Take the text of a console formatter apart: objects, entries that are whole, and what else stands there.

People paste these texts: with a prompt before an entry, blanks, lines of a program's log, marks of a ticket. What
stands beside an entry never changes it. An entry is whole on its own line if it can be; only one that is not goes on
over line breaks of its metadata, as far as the next entry begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

from offsets_log.dumps.cut_text import lost_of
from offsets_log.dumps.dump_log_text import NotTold
from offsets_log.dumps.json_text import DECODER
from offsets_log.dumps.source import Remark, damaged_line
from offsets_log.errors import Damage

LINE_END = r"[ \t\r]*$"
NULL = r"NULL"
OFFSET_KEY = re.compile(
    r",(?P<topic>[^,\n]*),(?P<partition>-?\d{1,10})\]::(?=NULL|OffsetAndMetadata[(\[]|\[OffsetMetadata\[)"
)
OFFSET_VALUES = (
    NULL,
    r"OffsetAndMetadata\(offset=(?P<offset>-?\d+), leaderEpoch=Optional(?:\.empty|\[(?P<epoch>\d+)\]),"
    r" metadata=(?P<metadata>.*?), commitTimestamp=(?P<commit>-?\d+),"
    r" expireTimestamp=(?:None|Some\((?P<expire>-?\d+)\))\)",
    r"\[OffsetMetadata\[(?P<offset>-?\d+),(?P<metadata>.*?)\] ?,? ?"
    r"CommitTime (?P<commit>-?\d+),? ?ExpirationTime (?P<expire>-?\d+)\]",
    r"OffsetAndMetadata\[(?P<offset>-?\d+),(?P<metadata>.*?),(?P<commit>-?\d+)\]",
)
GROUP_KEY = re.compile(r"::(?=GroupMetadata\(groupId=|\[.{0,999}?,(?:None|Some\()|NULL[ \t\r]*$)", re.MULTILINE)
GROUP_VALUES = (
    NULL,
    r"GroupMetadata\(groupId=(?P<group>.*?), generation=(?P<generation>-?\d{1,10}), "
    r"protocolType=(?:None|Some\((?P<type>.*?)\)), currentState=\w+, members=(?:\w*Map)\((?P<members>.*?)\)\)",
    r"\[(?P<group>.*?),(?:None|Some\((?P<type>[^)]*)\)),\w+,(?:\w*Map)\((?P<members>.*?)\)\]",
)


def _forms(values: tuple[str, ...], end: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(value + end, re.DOTALL | re.MULTILINE) for value in values)


OFFSETS, OFFSETS_IN_LINE = _forms(OFFSET_VALUES, LINE_END), _forms(OFFSET_VALUES, r"(?!\w)")
GROUPS = _forms(GROUP_VALUES, LINE_END)
NO_OFFSET = re.compile(r"\[.*,.*,.*\]\Z|(?:\A|,)-?\d*\]\Z|\A\Z")
"""What is taken for a damaged key of an offset before NULL, although a group may have such a name."""
OTHER_ENTRY = re.compile(
    r"OffsetAndMetadata[(\[]|\[OffsetMetadata\[|\]::NULL|, commitTimestamp=-?\d+, expireTimestamp=|\],CommitTime -?\d"
)
"""What metadata holds if another entry may be in it."""
NAMES_OF_GROUPS = re.compile(r"::(?:GroupMetadata\(groupId=(.{0,999}?), generation=|\[(.{0,999}?),(?:None|Some\())")

RECORD_IN_JSON = re.compile(r'\{"key":\s*(?:\{"(?:type|version)"|null)')
JSON_BEGINS = re.compile(r'\{\s*"')
OBJECT = re.compile(r'\{\s*"key"\s*:')
RECORD_SEPARATOR = "\x1e"
"""What ``jq --seq`` prints before each object."""
AROUND_OBJECTS = re.compile(r'[\s,\[\]\x1e]+(?=\{\s*"|\Z)')

SUMMARY = re.compile(r"(?:\^C)*Processed a total of \d+ messages?")
FORMATTERS = re.compile(r"GroupMetadataManager|\w*MessageFormatter")
"""Names in the commands that print such texts."""
SIGNS = re.compile(
    r"::|OffsetAndMetadata|OffsetMetadata\[|GroupMetadata|MemberMetadata|(?:commit|expire)Timestamp=|leaderEpoch="
    r'|CommitTime |ExpirationTime |supportedProtocols=|clientHost=|,-?\d+\]$|"(?:key|value)"\s*:'
)
"""What a piece of a record holds."""
IN_JSON = re.compile(r'"\w+"\s*:')
PIECE_OF_JSON = re.compile(r'(?!\{).*"\w+"\s*:|\}')
CUT_BEGINNING = re.compile(r"\S*\)|.*\d\]|:?N?U?L?L")
"""The end of an entry, shorter than a sign."""
CUT_END = re.compile(r"\[(?!.*\] ).*\w.*|\{(?!.*\}\Z).*", re.DOTALL)
CUT_GROUP = re.compile(r"[^\s^]*\w[^\s^]*")
"""The beginning of an offset's entry or an object, and that of a group's."""
PROMPT = re.compile(r".*[#$%>]")
BRACKETS_OF_OTHERS = re.compile(r"\[\d{4}-\d\d-\d\d[^\[\]]*\]|\[[^\[\]]*\][#$%>]|\[[^\[\]\s]+/[^\[\]\s]+\] ")
"""A time of log4j, a shell's prompt and a pod's name."""
MOST_SHOWN, SHOWN_LENGTH = 4, 40
MOST_BREAKS = 40
"""How many breaks a terminal may have put into one entry."""
MOST_FOLDED = 1 << 16
"""How many letters of an object breaks are looked for in."""
MOST_TRIED = 8
"""How many keys on a line may be that of an entry."""
TWO = "two entries are on one line, unless the first one's metadata holds the second"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record.

    Attributes:
        group: the key's group.
        topic, partition: those of an offset's key; None and −1 for a group's.
        facts: the value, by what is in the text; None for a tombstone.
        is_doubtful: whether its metadata may be another entry.
    """

    group: str
    topic: str | None
    partition: int
    facts: dict[str, Any] | None
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry and where it begins and ends; what is to be said of it."""

    entry: Entry
    begin: int
    end: int
    problem: str = ""


def is_formatter_within(text: str) -> bool:
    """Return whether a record of a formatter is in a text, wherever on its line."""
    return bool(OFFSET_KEY.search(text) or RECORD_IN_JSON.search(text))


def iter_parts(text: str) -> Iterator[tuple[int, dict[str, Any] | Entry | Damage | Remark]]:
    """Yield objects, entries, what cannot be read and remarks, each with its line number."""
    return _Text(text).parts()


class _Text:
    """A text that is taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.foreign: list[tuple[int, str]] = []
        self.has_groups = False

    @cached_property
    def groups(self) -> set[str]:
        """Groups whose values name them."""
        return {name for found in NAMES_OF_GROUPS.finditer(self.text) for name in found.groups() if name}

    def parts(self) -> Iterator[tuple[int, dict[str, Any] | Entry | Damage | Remark]]:
        text, at, line, counted = self.text, 0, 1, 0
        while at < len(text):
            if text[at].isspace() or text[at] == RECORD_SEPARATOR:
                at += 1
                continue
            line, counted = line + text.count("\n", counted, at), at
            if JSON_BEGINS.match(text, at):
                item, at = self._object(line, at)
                yield from ((line, one) for one in (item,) if one is not None)
                continue
            if around := AROUND_OBJECTS.match(text, at):
                at = around.end()
                continue
            end = _line_end(text, at)
            found = self._entry(at, end)
            if found is None:
                at, stop = self._after_foreign(at, end), at
                item = self._foreign(line, stop, at)
                yield from ((line, one) for one in (item,) if one is not None)
                continue
            before = self._foreign(line, at, found.begin)
            yield from ((line, one) for one in (before, *_said(line, found, text)) if one is not None)
            yield line, found.entry
            at = found.end
        if self.foreign:
            yield line, Remark(_in_words(self.foreign))

    def _object(self, line: int, at: int) -> tuple[dict[str, Any] | Damage | None, int]:
        """Return a JSON object, and where it ends; None for one that is no record's."""
        text = self.text
        try:
            item, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if (folded := self._folded(at)) is not None:
                return folded
            following = re.compile(r'\{\s*"key"\s*:|\n').search(text, at + 1)
            end = following.start() if following else len(text)
            raw = text[at:end]
            return damaged_line(line, raw.encode(errors="replace"), f"it is no JSON: {error}{lost_of(raw)}"), end
        return (item, end) if "key" in item else (self._foreign(line, at, end), end)

    def _folded(self, at: int) -> tuple[dict[str, Any], int] | None:
        """Return an object that breaks of a console go through, and where it ends: JSON has none within a word."""
        text, joined, tried, most = self.text, "", 0, at + MOST_FOLDED
        while tried < MOST_BREAKS and (end := text.find("\n", at, most)) >= 0:
            joined += text[at:end].rstrip("\r")
            at, end = end + 1, min(_line_end(text, end + 1), most)
            if at >= len(text) or OBJECT.match(text, at):
                return None
            if "}" in text[at:end]:
                tried += 1
                with suppress(ValueError, RecursionError):
                    item, length = DECODER.raw_decode(joined + text[at:end])
                    return (item, at + length - len(joined)) if "key" in item else None
        return None

    def _after_foreign(self, at: int, end: int) -> int:
        """Return where something that is no entry ends: before the next object, or with its line."""
        following = OBJECT.search(self.text, at, end)
        return following.start() if following else end

    def _foreign(self, line: int, begin: int, end: int) -> Damage | None:
        """Note what no formatter prints; return it as damage where it may have been a record."""
        raw = self.text[begin:end]
        piece = raw.strip()
        if not piece.strip(",[] \t\r\n") or SUMMARY.fullmatch(piece):
            return None
        if SIGNS.search(FORMATTERS.sub("", piece)) or self._is_cut(line, piece, end):
            what = "whole JSON" if IN_JSON.search(piece) else "formatter's line"
            return damaged_line(line, raw.encode(errors="replace"), f"it is no {what}{lost_of(piece)}")
        self.foreign.append((line, piece))
        return None

    def _is_cut(self, line: int, piece: str, end: int) -> bool:
        """Return whether a piece may be what is left of an entry that was cut: in a text's first line or its last."""
        if PIECE_OF_JSON.match(piece) or (line == 1 and CUT_BEGINNING.fullmatch(piece)):
            return True
        is_unended = end == len(self.text) and not PROMPT.fullmatch(piece)
        return is_unended and bool(CUT_END.fullmatch(piece) or (self.has_groups and CUT_GROUP.fullmatch(piece)))

    # ------------------------------------------------------------------------------------------ entries

    def _entry(self, at: int, end: int) -> _Found | None:
        """Return the first entry that is whole, of those that begin in a line."""
        offsets = islice(OFFSET_KEY.finditer(self.text, at, end), MOST_TRIED)
        groups = islice(GROUP_KEY.finditer(self.text, at, end), MOST_TRIED)
        tried = chain((self._offset(key, at, end) for key in offsets), (self._group(key, at, end) for key in groups))
        return next((found for found in tried if found is not None), None)

    def _offset(self, key: re.Match[str], at: int, end: int) -> _Found | None:
        begin = _opening(self.text[at : key.start()])
        if begin is None:
            return None
        begin += at
        group, topic, partition = self.text[begin + 1 : key.start()], key["topic"], int(key["partition"])
        others = BRACKETS_OF_OTHERS.sub("", self.text[at:begin])
        problem = (
            f"{self.text[at:begin].strip()[:SHOWN_LENGTH]!r} before it may be part of the group's name"
            if "[" in others
            else ""
        )

        def made(
            value: re.Match[str], *, is_doubtful: bool = False, why: str = problem, at: int | None = None
        ) -> _Found:
            facts = value.groupdict() if value.lastgroup else None
            stop = value.end() if at is None else at
            return _Found(Entry(group, topic, partition, facts, is_doubtful), begin, stop, why)

        in_line = _match(OFFSETS_IN_LINE, self.text, key.end(), end)
        if in_line is not None and _holds_another(in_line):
            in_line = None
        if in_line is not None and self._is_followed(in_line.end(), end):
            return made(in_line, why=TWO)
        whole = _match(OFFSETS, self.text, key.end(), end) or _match(
            OFFSETS, self.text, key.end(), self._block_end(end)
        )
        if whole is not None and not _holds_another(whole):
            return made(whole)
        if in_line is not None and (whole is None or whole.end() > end):
            return made(in_line)
        if whole is not None:
            return made(whole, is_doubtful=True)
        wrapped = self._unwrapped(OFFSETS, key.end(), end)
        return None if wrapped is None or _holds_another(wrapped[0]) else made(wrapped[0], at=wrapped[1])

    def _unwrapped(self, forms: tuple[re.Pattern[str], ...], at: int, end: int) -> tuple[re.Match[str], int] | None:
        """Return a value that a terminal or a book has broken into lines, and where it ends; None if none fits.

        A break is where nothing was, or a blank.
        """
        text, block_end, breaks = self.text, self._block_end(end), 0
        while end < block_end and breaks < MOST_BREAKS:
            end, breaks = _line_end(text, end + 1), breaks + 1
            lines = [line.strip("\r") for line in text[at:end].split("\n")]
            stripped = [lines[0], *(line.lstrip() for line in lines[1:])]
            for joined in ("".join(stripped), " ".join(line.rstrip() for line in stripped)):
                if (value := _match(forms, joined, 0, len(joined))) is not None and value.lastgroup:
                    return value, end
        return None

    def _is_followed(self, at: int, end: int) -> bool:
        """Return whether another whole entry stands behind one on its line."""
        key = OFFSET_KEY.search(self.text, at, end)
        is_key = key is not None and _opening(self.text[at : key.start()]) is not None
        return is_key and key is not None and _match(OFFSETS_IN_LINE, self.text, key.end(), end) is not None

    def _group(self, key: re.Match[str], at: int, end: int) -> _Found | None:
        name = self.text[at : key.start()]
        value = _match(GROUPS, self.text, key.end(), end)
        if value is None:
            value = _match(GROUPS, self.text, key.end(), self._block_end(end))
        stop = -1 if value is None else value.end()
        if value is None and (wrapped := self._unwrapped(GROUPS, key.end(), end)) is not None:
            value, stop = wrapped
        if value is None or (not value.lastgroup and NO_OFFSET.search(name)):
            return None
        facts = value.groupdict() if value.lastgroup else None
        group = self._deleted(name) if facts is None else facts["group"]
        if not name.endswith(group.lstrip()):
            return None
        self.has_groups = True
        return _Found(Entry(group, None, -1, facts), key.start() - len(group.lstrip()), stop)

    def _deleted(self, name: str) -> str:
        """Return the group of a tombstone, which names it once: another begins its line where that is no group."""
        if name in self.groups:
            return name
        ends = (name[blank.end() :] for blank in re.finditer(r"\s+", name))
        return next((end for end in ends if end in self.groups), name)

    def _block_end(self, end: int) -> int:
        """Return where the lines end that may continue an entry."""
        text = self.text
        while end < len(text):
            begin = end + 1
            end = _line_end(text, begin)
            is_other = OBJECT.match(text, begin) or SUMMARY.match(text, begin)
            if is_other or OFFSET_KEY.search(text, begin, end) or GROUP_KEY.search(text, begin, end):
                return begin - 1
        return end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _match(forms: tuple[re.Pattern[str], ...], text: str, at: int, end: int) -> re.Match[str] | None:
    return next((found for form in forms if (found := form.match(text, at, end))), None)


def _holds_another(value: re.Match[str]) -> bool:
    return bool(value.lastgroup and OTHER_ENTRY.search(value["metadata"]))


def _opening(before: str) -> int | None:
    """Return the bracket that opens an entry's key, in what stands on its line before the topic.

    A group's name may hold brackets. One that an entry's own bracket closes, before another opens, is none.
    """
    unmatched, closed = [], 0
    for i in range(len(before) - 1, -1, -1):
        if before[i] == "]":
            closed += 1
        elif before[i] == "[" and closed:
            closed -= 1
        elif before[i] == "[":
            unmatched.append(i)
    if before[:1] == "[" and (not unmatched or unmatched[-1] == 0):
        return 0
    first = before.find("[")
    return unmatched[0] if unmatched else None if first < 0 else first


def _said(line: int, found: _Found, text: str) -> Iterator[Damage]:
    """Yield what is said of an entry that may be another one."""
    entry = found.entry
    shown = f"group {entry.group!r}, topic {entry.topic!r}, partition {entry.partition}"
    raw = text[found.begin : found.end].encode(errors="replace")
    if found.problem:
        yield Damage(NotTold(f"{found.problem}; it is read as {shown}", position=line), raw)
    if entry.is_doubtful:
        words = f"the metadata holds what another entry looks like, so the offset is unknown (null): {shown}"
        yield Damage(NotTold(f"{words}; rescue leaves it out", position=line), raw)


def _in_words(foreign: list[tuple[int, str]]) -> str:
    shown = ", ".join(f"line {line} {piece[:SHOWN_LENGTH]!r}" for line, piece in foreign[:MOST_SHOWN])
    more = f" and {len(foreign) - MOST_SHOWN} more" if len(foreign) > MOST_SHOWN else ""
    return f"what no formatter prints is left out: {shown}{more}"
