"""Offsets and generations over time: of each line the last record in each bucket of time.

A *line* is a group's topic and partition, whose samples are commits, or a group, whose samples are the records with its
generation, or its epoch. Buckets are as wide as it takes to keep few enough; a sample has its own time, not the
bucket's, and tells how many records it stands for.

A transactional commit counts if its transaction committed, at its own record offset (``J-11``); one that aborted or is
open does not. Until its marker comes a sample *waits*: it knows its producer, and the samples of a producer that wait
are a chain. Which record is in a transaction, and which marker ends one, is told by a replay.

`add` and `settle` are called by kernels, and by Python for records that are read on the slow path. They need room for
one more sample (`Book.make_room`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.kinds import LongRows, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64, uvarint
from offsets_log.columnar.wire.programs import SIZES
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import Message, Scalar

# Columns of samples. One whose transaction aborted stands for no records.
TAG, RECORD_OFFSET, TIME, VALUE, RECORDS, OLDER, COLUMNS = range(7)

# Bits of a tag, from the lowest: whether it is a tombstone, the line, and of what waits the producer and one more.
LINE_AT, PRODUCER_AT = 1, 33
LINE_MASK, SETTLED_MASK = (1 << PRODUCER_AT - LINE_AT) - 1, (1 << PRODUCER_AT) - 1

# Kinds of samples, and where the counts of a book have what belongs to them.
COMMITS, GENERATIONS = 0, 2
USED, SHIFT = range(2)  # samples; the width of a bucket in ms, as a power of two
BOOK_SIZE = 4


class Line(Record):
    """What is known of a line. Records of other types have these fields, too."""

    last_sample: Long  # where it is, and one more; 0 where that is not known
    untimed: Long  # records of which nothing tells the time


GENERATION_FIELDS = {2: "generation", 3: "epoch", 11: "epoch", 17: "epoch"}
"""Record type → the field with the generation of a classic group, or the epoch of a newer one."""


# ------------------------------------------------------------------------------- where a value has its fields

NO_STRING, SHORT, COMPACT = range(3)


def _places() -> a.Int64s:
    """Return where fields stand in values, by record type and value version.

    That is how many bytes stand before the field, or before the one string right before it, and which string that is;
    NOTHING if there is no such field.
    """
    places = np.full((a.RECORD_TYPES, a.VERSIONS, 2), a.NOTHING, np.int64)
    commits = dict.fromkeys(range(a.COMMIT_TYPES), "commit_timestamp")
    for number, name in (commits | GENERATION_FIELDS).items():
        for version in range(a.VERSIONS):
            found = {_place(layout, version, name) for layout in RECORD_TYPES[number].layouts(version)}
            assert len(found) <= 1
            for place in found:
                places[number, version] = place
    return places


def _place(layout: Message, version: int, name: str) -> tuple[int, int]:
    before, string = 0, NO_STRING
    for field in layout.fields_of(version):
        if field.name == name:
            break
        assert isinstance(field.type, Scalar)
        assert string == NO_STRING
        if field.type.name == "string":
            string = COMPACT if layout.is_flexible(version) else SHORT
        else:
            before += SIZES[field.type.name]
    return before, string


PLACES = _places()
HAS_GENERATION = np.array([number in GENERATION_FIELDS for number in range(a.RECORD_TYPES)], np.int64)


@part
def place_in(source: Any, number: Any, value: Any, size: Any) -> Any:
    """Return where the field of `PLACES` stands in a value that a program has read."""
    version = be16(source, value)
    at, string = value + 2 + PLACES[number, version, 0], PLACES[number, version, 1]
    if string == SHORT:
        at += 2 + be16(source, at)
    elif string == COMPACT:
        length, at = uvarint(source, at, value + size)
        at += length - 1
    return at


@part
def commit_time(source: Any, number: Any, value: Any, size: Any) -> Any:
    """Return when an offset commit says that it was made."""
    return be64(source, place_in(source, number, value, size))


@inlined
def written_at(source: Any, staged: Table[a.Staged], i: Any, time: Any) -> Any:
    """Return when a staged record with a value was written, from its own time, as `rows.activity.written_ms` does."""
    record_type = be16(source, staged[i].key_at)
    if bt.has_time(time) or record_type >= a.COMMIT_TYPES:
        return time
    return commit_time(source, record_type, staged[i].value_at, staged[i].value_size)


@part
def generation_of(source: Any, number: Any, value: Any, size: Any) -> Any:
    """Return the generation or epoch in a group's value."""
    return be32(source, place_in(source, number, value, size))


# -------------------------------------------------------------------------------------------- on the way


class Sample(NamedTuple):
    """What a record tells of a line.

    Attributes:
        producer: of the transaction it belongs to, else NOTHING.
        is_null: whether it is a tombstone.
    """

    line: Number
    producer: Number
    record_offset: Number
    time: Number
    value: Number
    is_null: Number


class BookArrays(NamedTuple):
    """The arrays of a book: how many samples there are of each kind and how wide buckets are, and the samples."""

    counts: Longs
    commits: LongRows
    generations: LongRows


@part
def add(counts: Any, kind: Any, samples: Any, known: Any, heads: Any, owner: Any, sample: Sample) -> None:
    """Add a sample to a line.

    Args:
        known: what is known of the line, a record with the fields of `Line`.
        heads, owner: where the newest sample that waits for the producer's marker is, and one more.
    """
    time, producer = sample.time, sample.producer
    if time <= NO_TIMESTAMP:  # nor do lines begin before 1970
        known.untimed += 1
        return
    shift = counts[kind + SHIFT]
    tag = (producer + 1 << PRODUCER_AT) + (sample.line << LINE_AT) + sample.is_null
    last = known.last_sample - 1
    if last >= 0:
        i = U(last)
        is_same = samples[i, TAG] >> LINE_AT == tag >> LINE_AT and samples[i, TIME] >> shift == time >> shift
        if is_same and samples[i, RECORDS] > 0:
            samples[i, RECORDS] += 1
            if sample.record_offset >= samples[i, RECORD_OFFSET]:
                samples[i, TAG] = tag
                samples[i, RECORD_OFFSET] = sample.record_offset
                samples[i, TIME] = time
                samples[i, VALUE] = sample.value
            return
    used = counts[kind + USED]
    i = U(used)
    samples[i, TAG] = tag
    samples[i, RECORD_OFFSET] = sample.record_offset
    samples[i, TIME] = time
    samples[i, VALUE] = sample.value
    samples[i, RECORDS] = 1
    if producer >= 0:
        samples[i, OLDER] = heads[owner]
        heads[owner] = used + 1
    known.last_sample = used + 1
    counts[kind + USED] = used + 1


@part
def settle(samples: Any, heads: Any, owner: Any, commits: Any) -> None:
    """Settle by a marker: samples that wait for it count, or are void."""
    number = heads[owner]
    while number != 0:
        i = U(number - 1)
        samples[i, TAG] &= SETTLED_MASK
        if not commits:
            samples[i, RECORDS] = 0
        number = samples[i, OLDER]
    heads[owner] = 0
