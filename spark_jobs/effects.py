"""What the records of a slice do, as a few rows: what is shuffled to those that keep the state of a partition.

The groups of an offsets partition are spread over *buckets*, each of which has a state of its own: markers of
transactions are all that groups share, so every bucket gets those.
"""

from __future__ import annotations

import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.errors import Damage
from offsets_log.following.growth import GrownPiece
from offsets_log.following.pieces import PieceReader, Written
from offsets_log.replay.partial import PartialState, ProducerState
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Column, damage_row, to_json
from spark_jobs.options import SourceOptions

BUCKETS = 16
"""Of each offsets partition. A checkpoint depends on it."""
DAMAGE = -1
"""In place of a bucket: what could not be read."""
UNKNOWN = -1
"""In place of the number of an offsets partition that has none."""
FAST = 1
"""Level of zlib."""

EFFECT_COLUMNS = (
    Column("offsets_partition", "int", "partition of __consumer_offsets; -1 if it is unknown"),
    Column("bucket", "int", "bucket of the groups, or -1 for a piece that could not be read"),
    Column("begin", "bigint", "the last offset before the slice: slices are in this order"),
    Column("held", "binary", "what the records do, or the row of such a piece as JSON"),
)

Effect = tuple[PartialState, dict[str, int]]
"""What records do, and when each group last wrote."""


def effect_table(piece: GrownPiece, scanner: Scanner, reading: SourceOptions) -> pa.Table:
    """Return what the records of a piece do as `EFFECT_COLUMNS`."""
    number = UNKNOWN if piece.log.offsets_partition is None else piece.log.offsets_partition
    begin = piece.cursor.last_offset
    damages: list[Damage] = []

    def note(seen: Any) -> None:
        if isinstance(seen, Damage):
            damages.append(seen)

    written = Written()
    effect = PieceReader(scanner, reading.kafka).effect(piece, reading.rules, note, written)
    rows = [(number, bucket, begin, packed(parts)) for bucket, parts in _by_bucket(effect, written.last_ms)]
    rows += [(number, DAMAGE, begin, to_json(damage_row(damage)).encode()) for damage in damages]
    schema = schema_of(EFFECT_COLUMNS)
    return pa.Table.from_arrays(
        [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)], schema=schema
    )


def packed(what: Any) -> bytes:
    """Return plain data as bytes."""
    return zlib.compress(pickle.dumps(what, pickle.HIGHEST_PROTOCOL), FAST)


def unpacked(data: bytes) -> Any:
    """Return what `packed` has packed; of a checkpoint and of tasks of the same stream only."""
    return pickle.loads(zlib.decompress(data))


def effect_of(data: bytes, profile: Profile) -> Effect:
    """Return an effect from the bytes of its row."""
    state = PartialState(profile)
    state.keys, state.producers, state.timelines, last_ms = unpacked(data)
    return state, last_ms


def bucket_of(group: str) -> int:
    """Return the bucket of a group."""
    return zlib.crc32(group.encode(errors="surrogatepass")) % BUCKETS


def _by_bucket(effect: PartialState, last_ms: dict[str, int]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the parts of an effect for each bucket for which there is anything."""
    keys: Any = defaultdict(dict)
    timelines: Any = defaultdict(dict)
    times: Any = defaultdict(dict)
    producers: Any = defaultdict(dict)
    for key, held in effect.keys.items():
        keys[bucket_of(key[0])][key] = held
    for group, timeline in effect.timelines.items():
        timelines[bucket_of(group)][group] = timeline
    for group, time_ms in last_ms.items():
        times[bucket_of(group)][group] = time_ms
    for producer_id, producer in effect.producers.items():
        if producer.head is not None:
            for bucket in range(BUCKETS):
                producers[bucket][producer_id] = ProducerState(producer.head)
        for key in producer.cancelled:
            producers[bucket_of(key[0])].setdefault(producer_id, ProducerState()).cancelled.add(key)
        for key, value in producer.open.items():
            producers[bucket_of(key[0])].setdefault(producer_id, ProducerState()).open[key] = value
    for bucket in sorted({*keys, *timelines, *times, *producers}):
        yield bucket, (keys[bucket], producers[bucket], timelines[bucket], times[bucket])
