"""Where committed offsets are in the target by a map: a CSV of pairs, or the report of kafka-backup.

A pair says that the record at an offset of the source is at an offset of the target. A map need not have all pairs.
Between two of them it is counted, if both sides go on by the same number; else the record behind the first is taken.
What a map only bounds, from where to where, is not enough: offsets are not in proportion.

References: ``OffsetMapping`` in kafka-backup's ``manifest.rs``.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from offsets_log.errors import InputError
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer, Told, Untold

Pairs = list[tuple[int, int]]
OffsetMap = dict[tuple[str, int], Pairs]
"""Topic and partition → pairs of offsets in the source and in the target, rising."""

COLUMNS = ("topic", "partition", "source_offset", "target_offset")
_INT64 = 1 << 63


def decode_map(data: bytes, file: str) -> OffsetMap:
    """Parse a map file.

    Raises:
        InputError: it is no such file, or its pairs contradict each other.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"it is no map of offsets: no UTF-8: {error.reason}", file=file) from None
    found = _pairs_of_json(text, file) if text.lstrip().startswith("{") else _pairs_of_csv(text, file)
    offsets: OffsetMap = {}
    for topic, partition, source, target in found:
        offsets.setdefault((topic, partition), []).append((source, target))
    return {key: _rising(key, pairs, file) for key, pairs in offsets.items()}


def translate(pairs: Sequence[tuple[int, int]], committed: int) -> Told:
    """Return where a committed offset is by the pairs of its partition."""
    at = bisect_left(pairs, (committed, -1))
    after = pairs[at] if at < len(pairs) else None
    if after is not None and after[0] == committed:
        return Answer(after[1], EXACT, 0)
    if not at:
        return Untold("the map begins behind it")
    source, target = pairs[at - 1]
    if after is None:
        how = EXACT if committed == source + 1 else AT_LEAST
        return Answer(target + 1, how, committed - source - 1, is_own=False)
    if after[0] - source == after[1] - target:
        return Answer(target + committed - source, BY_COUNT, 0)
    return Answer(target + 1, AT_LEAST, min(committed - source, after[1] - target) - 1)


def _rising(key: tuple[str, int], pairs: Pairs, file: str) -> Pairs:
    """Return the pairs in order; of records that were copied twice the first copy."""
    first: dict[int, int] = {}
    for source, target in pairs:
        first[source] = min(target, first.get(source, target))
    ordered = sorted(first.items())
    for (source, target), (later, place) in pairwise(ordered):
        if place <= target:
            raise InputError(
                f"{key[0]}-{key[1]}: source offset {source} is at {target}, and {later} at {place}, which is not "
                "behind it: these records were not copied in their order",
                file=file,
            )
    return ordered


def _pairs_of_csv(text: str, file: str) -> Iterable[tuple[str, int, int, int]]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if rows.fieldnames is None or not set(COLUMNS) <= set(rows.fieldnames):
        raise InputError(f"it is no map of offsets: its first line must name {', '.join(COLUMNS)}", file=file)
    known: dict[tuple[str, int, int], int] = {}
    try:
        for row in rows:
            topic, partition, source, target = _pair(row["topic"], *(_number(row[name], name) for name in COLUMNS[1:]))
            if known.setdefault((topic, partition, source), target) != target:
                places = f"{known[topic, partition, source]} and at {target}"
                raise ValueError(f"source offset {source} of {topic}-{partition} is at {places}")
    except csv.Error:
        raise InputError(f"line {rows.line_num}: it is no line of a CSV", file=file) from None
    except ValueError as error:
        raise InputError(f"line {rows.line_num}: {error}", file=file) from None
    return [(*place, target) for place, target in known.items()]


def _number(text: str | None, name: str) -> int:
    if text is None or not re.fullmatch(r" *[0-9]{1,19} *", text):
        raise ValueError(f"{name} is no whole number: {'nothing' if not text else repr(text)}")
    return int(text)


def _pairs_of_json(text: str, file: str) -> Iterable[tuple[str, int, int, int]]:
    try:
        document = json.loads(text)
        mappings: Mapping[str, Any] = document["detailed_mappings"]
        found = [
            _pair(*_place(name), int(pair["source_offset"]), int(pair["target_offset"]))
            for name, pairs in mappings.items()
            for pair in pairs
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"it is no offset-mapping.json with detailed_mappings: {error!r}", file=file) from None
    if not found:
        raise InputError("its detailed_mappings are empty: only a restore makes them", file=file)
    return found


def _place(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("/")
    return topic, int(partition)


def _pair(topic: str, partition: int, source: int, target: int) -> tuple[str, int, int, int]:
    if not topic or not 0 <= partition < 1 << 31 or not (0 <= source < _INT64 and 0 <= target < _INT64):
        raise ValueError(f"{topic!r}, {partition}, {source}, {target} are no topic, partition and offsets")
    return topic, partition, source, target
