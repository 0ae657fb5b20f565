"""The facts in kafka-dump-log's lines: ``name: value`` pairs of a batch or a record, and readings of broken lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from offsets_log.errors import CorruptRecordError

FACT = re.compile(r"(\w+): (\[[^\]]*\]|[^\s}]+)\}?(?: |$)")
CONTENT = re.compile(r"(?:^| )(?:key: |payload: )")
MARKER = re.compile(r"endTxnMarker: (?P<type>COMMIT|ABORT) coordinatorEpoch: (?P<epoch>-?\d{1,10})$")
CONTROL = re.compile(r" (?:endTxnMarker|controlType): .*$", re.DOTALL)

TIMESTAMP_TYPES = {"CreateTime": "create", "LogAppendTime": "log_append", "NoTimestampType": "none"}
CODEC_NAMES = {"nocompressioncodec": "none", "gzipcompressioncodec": "gzip", "snappycompressioncodec": "snappy",
               "lz4compressioncodec": "lz4", "zstdcompressioncodec": "zstd"}  # fmt: skip
KEY_SIZES = ("keySize", "keysize")
VALUE_SIZES = ("valueSize", "valuesize", "payloadsize")

Facts = dict[str, str]


def facts_in(text: str) -> Facts | None:
    """Return the ``name: value`` pairs of a text; None if it holds anything else."""
    facts: Facts = {}
    end = 0
    for found in FACT.finditer(text):
        if found.start() != end:
            return None
        end = found.end()
        facts.setdefault(found[1], found[2])
    return None if text[end:].strip() else facts


def facts_of_record(text: str) -> Facts | None:
    """Return the facts before a record's contents."""
    text = text.removeprefix("| ")
    content = CONTENT.search(text) or CONTROL.search(text)
    return facts_in(text[: content.start()] if content else text)


def have_same_batch(one: Facts, other: Facts) -> bool:
    """Return whether two records' lines, of which no batch has a line, are of one batch.

    Compressed records have their batch's position; an uncompressed message of magic 0 and 1 has its own. Lines of 3.0
    and later tell nothing of their batch.
    """
    names = ("position", "magic", "producerId", "isTransactional", "baseOffset")
    return "position" in one and all(one.get(name) == other.get(name) for name in names)


def lies_in(batch: Facts, record: Facts) -> bool:
    """Return whether a record's offset, if it is told, is one of the batch's."""
    if "offset" not in record or "lastOffset" not in batch:
        return True
    return number_in(batch, "baseOffset") <= number_in(record, "offset") <= number_in(batch, "lastOffset")


NO_TRANSACTION = (
    {"isTransactional": "false"},
    {"magic": "0"},
    {"magic": "1"},
    {"sequence": "-1"},
    {"producerEpoch": "-1"},
)
"""Facts of a record's line by which no transaction holds it: a producer's records have a sequence and an epoch from 0
on (``MemoryRecordsBuilder.validateProducerState``)."""


def tells_transaction(facts: Facts) -> bool:
    """Return whether a record's line alone tells whether a transaction holds the record, and whose."""
    is_of_none = any(facts.items() >= told.items() for told in NO_TRANSACTION)
    return is_of_none or facts.keys() >= {"isTransactional", "producerId"}


def is_dense(facts: Facts) -> bool:
    """Return whether the records of a batch fill all its offsets, so that each offset follows from the order."""
    span = number_in(facts, "lastOffset", default=0) - number_in(facts, "baseOffset", default=0) + 1
    return number_in(facts, "count", default=1) == span


def time_in(facts: Facts) -> int:
    """Return the time of a line; −1 if it has none."""
    return next((number_in(facts, name) for name in TIMESTAMP_TYPES if name in facts), -1)


def number_in(facts: Facts, *names: str, default: int | None = None) -> int:
    """Return a fact as a number, under the first of the names that is present.

    Raises:
        CorruptRecordError: the fact is no number, or it is missing and there is no default.
    """
    name = next((name for name in names if name in facts), names[0])
    text = facts.get(name)
    if text is None:
        if default is None:
            raise CorruptRecordError(f"it does not tell its {name}")
        return default
    if not re.fullmatch(r"-?\d{1,19}", text):
        raise CorruptRecordError(f"{name} is {text}, no number")
    return int(text)


def readings(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Yield readings of an entry of several lines, the most likely first, each with the number of lines it takes."""
    yield (whole := "\n".join(lines)), len(lines)
    if len(lines) == 1:
        return
    if (stripped := whole.rstrip()) != whole:
        yield stripped, len(lines)
    yield "".join(lines), len(lines)
    width = max(map(len, lines))
    yield "".join(text if len(text) == width else f"{text}\n" for text in lines).rstrip("\n"), len(lines)
    yield " ".join(text.strip() for text in lines), len(lines)
    yield lines[0], 1
