"""Hostile segments made from real ones: what the fuzzer and its test share.

The invariant: any bytes give events or `Damage` with file, position and field; no other exception, no endless loop, no
memory beyond the bound. Checksums are put right for most inputs, for behind a wrong one nothing is read.
"""

from __future__ import annotations

import json
import random
import struct
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from offsets_log.broker.outcome import on_brokers
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch, decode_batch_header, encode_batch
from offsets_log.log_format.building import encode_legacy_message
from offsets_log.log_format.compression import CODECS
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import iter_batches
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import PROFILES
from offsets_log.rows import dump_log
from offsets_log.rows.tables import damage_row, decoded_row, offset_row

FORGED = (0, 1, -1, -2, 2, 13, 14, 49, 0x7F, 0x80, 0x7FFF, -0x8000, 0xFFFF, 1 << 20, 0x7FFFFFFF, -0x80000000)
FILE = "fuzz.log"
RECORDINGS = Path(__file__).parent.parent / "recordings"


def recorded_segments(archives: Sequence[Path] = ()) -> Iterator[bytes]:
    """Segment files of the packed recordings, or of some of them."""
    for archive in archives or sorted(RECORDINGS.glob("*.tar.xz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.endswith(".log") and (file := tar.extractfile(member)) is not None:
                    yield file.read()


def seeds_of(segments: Iterable[bytes]) -> list[RecordBatch]:
    """The whole batches of recorded segments, one of each shape and not the large ones."""
    shapes: dict[tuple[object, ...], RecordBatch] = {}
    for data in segments:
        for item in iter_batches(data):
            if isinstance(item, RecordBatch) and item.size_bytes < 2000:
                kind = item.raw[65:72] if item.codec.id == 0 else b""
                shapes.setdefault((item.magic, item.attributes, item.size_bytes // 64, kind), item)
    return list(shapes.values())


def _flip(data: bytearray, dice: random.Random) -> None:
    for _ in range(dice.choice((1, 1, 1, 2, 4, 16))):
        if data:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _forge(data: bytearray, dice: random.Random) -> None:
    form = dice.choice((">b", ">h", ">i", ">q"))
    size = struct.calcsize(form)
    if len(data) >= size:
        bits = 8 * size - 1
        value = max(-(1 << bits), min((1 << bits) - 1, dice.choice(FORGED)))
        struct.pack_into(form, data, dice.randrange(len(data) - size + 1), value)


def _forge_varint(data: bytearray, dice: random.Random) -> None:
    if data:
        at = dice.randrange(len(data))
        data[at : at + dice.choice((0, 1, 2))] = dice.choice(
            (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80" * 9 + b"\x01", b"\xff" * 11, b"\x01", b"\x00")
        )


def _cut(data: bytearray, dice: random.Random) -> None:
    if data:
        at = dice.randrange(len(data))
        if dice.random() < 0.5:
            del data[at:]
        else:
            del data[at : at + dice.choice((1, 2, 4, 8, 40))]


def _grow(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.choice(
        (b"\x00" * dice.randrange(1, 64), dice.randbytes(dice.randrange(1, 40)), bytes(data[:30]))
    )


MUTATIONS = (_flip, _flip, _forge, _forge, _forge_varint, _cut, _grow)


def mutate(data: bytes, dice: random.Random) -> bytes:
    mutable = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3))):
        dice.choice(MUTATIONS)(mutable, dice)
    return bytes(mutable)


def with_right_checksum(raw: bytes) -> bytes:
    """The same bytes under their own length and checksum, if there is a header at all."""
    if len(raw) < b.BATCH_HEADER_SIZE:
        return raw
    length = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    raw = raw[:8] + length + raw[12:]
    if raw[b.MAGIC_POSITION] > 2:
        return raw
    crc = decode_batch_header(raw).computed_crc().to_bytes(4)
    at = b.CRC_POSITION if raw[b.MAGIC_POSITION] == 2 else b.LEGACY_CRC_POSITION
    return raw[:at] + crc + raw[at + 4 :]


def mutate_records(batch: RecordBatch, dice: random.Random) -> bytes:
    """Change the records of a batch below its checksum and its compression."""
    if batch.magic < 2:
        return _mutate_messages(batch, dice)
    try:
        body = batch.codec.decompress(batch.raw[b.BATCH_HEADER_SIZE :], 2)
    except OffsetsLogError:
        return batch.raw
    codec_id = dice.randrange(len(CODECS)) if dice.random() < 0.3 else batch.codec.id
    changed = replace(batch, attributes=batch.attributes & ~7 | codec_id)
    return encode_batch(changed, mutate(body, dice))


def _mutate_messages(batch: RecordBatch, dice: random.Random) -> bytes:
    """The same of magic 0 and 1, of which only the messages inside of others are compressed."""
    if batch.codec.id == 0:
        return with_right_checksum(mutate(batch.raw, dice))
    key_and_size = 8
    try:
        inner = batch.codec.decompress(batch.raw[b.LEGACY_HEADER_SIZE[batch.magic] + key_and_size :], batch.magic)
    except OffsetsLogError:
        return batch.raw
    codec = dice.choice(CODECS[1:4]) if dice.random() < 0.3 else batch.codec
    return encode_legacy_message(
        magic=batch.magic,
        offset=batch.last_offset,
        timestamp_ms=batch.max_timestamp_ms,
        attributes=batch.attributes & ~7 | codec.id,
        key=None,
        value=codec.compress(mutate(inner, dice), batch.magic),
    )


def _nest(batch: RecordBatch, dice: random.Random) -> bytes:
    """A wrapper message around whole batches of any magic, compressed once or twice."""
    magic, codec = dice.randrange(2), dice.choice(CODECS[1:4])
    inner = batch.raw if dice.random() < 0.5 else mutate(batch.raw, dice)
    for _ in range(dice.choice((1, 1, 2))):
        inner = codec.compress(inner, magic)
    return encode_legacy_message(
        magic=magic, offset=batch.last_offset, timestamp_ms=0, attributes=codec.id, key=None, value=inner
    )


def hostile_segments(seeds: Sequence[RecordBatch], seed: int) -> Iterator[bytes]:
    """Endless hostile segments; the same for the same seed."""
    dice = random.Random(seed)
    while True:
        pieces = []
        for _ in range(dice.choice((1, 1, 2, 3))):
            batch = dice.choice(seeds)
            match dice.randrange(6):
                case 0:
                    pieces.append(batch.raw)
                case 1:
                    pieces.append(_nest(batch, dice))
                case 2 | 3:
                    pieces.append(mutate_records(batch, dice))
                case 4:
                    pieces.append(mutate(batch.raw, dice))
                case _:
                    pieces.append(with_right_checksum(mutate(batch.raw, dice)))
        data = b"".join(pieces)
        yield mutate(data, dice) if dice.random() < 0.15 else data


def check_segment(data: bytes) -> tuple[int, int]:
    """Read a segment in every way there is; (events, damaged pieces). Raises AssertionError if the invariant breaks."""
    log = PartitionLog(0, (Segment(FILE, 0, data),))
    damages: list[Damage] = []
    events = list(iter_events(log))
    for event in events:
        if isinstance(event, Event):
            json.dumps(decoded_row(event, expand=True), ensure_ascii=False).encode()
    for line in dump_log.iter_lines(events):
        line.encode()
    for profile in PROFILES.values():
        damages = []
        state = finish(replay(events, profile, on_damage=damages.append))
        for value in (*state.committed, *state.pending):
            json.dumps(offset_row(value, 0), ensure_ascii=False).encode()
    for stopped_cleanly in (True, False):
        for profile, outcome in on_brokers(log, PROFILES.values(), (stopped_cleanly,))[stopped_cleanly].items():
            assert outcome.ok == (outcome.starts and outcome.ends and outcome.failure is None), profile.name
            for value in outcome.state.committed:
                json.dumps(offset_row(value, 0), ensure_ascii=False).encode()
    for damage in damages:
        error = damage.error
        place = (error.file, error.position, error.field)
        assert None not in place, f"{error!r} does not say where: {place}"
        assert 0 <= error.position <= len(data), error
        json.dumps(damage_row(damage))
    return len(events), len(damages)
