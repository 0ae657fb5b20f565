"""Numbers of every size, and lengths that do not fit their value, are read by kernels as by the construct path."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from offsets_log.columnar.scan.interner import are_names_utf8, is_plain_text, is_utf8, same_bytes
from offsets_log.columnar.scan.reading import Reading
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import hash_bytes
from offsets_log.events import LogEvent
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, CRC_POSITION, RecordBatch, decode_batch_header
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import INT64_MAX, INT64_MIN, Record, as_int64
from offsets_log.replay.profile import CLASSIC, MODERN, Profile
from tests.builders import TIME, LogBuilder, member, record_bytes
from tests.columnar.engines import columnar_answer, columnar_rows, construct_answer, construct_rows

KEY = {"group": "g", "topic": "t", "partition": 0}
VALUE = {"offset": 5, "metadata": "some", "commit_timestamp": TIME, "expire_timestamp": -1, "leader_epoch": 3}
METADATA_AT = {0: 10, 1: 10, 2: 10, 3: 14}
"""Version of an offset commit's value → where the length of its metadata stands."""


def commit(version: int) -> tuple[bytes, bytes]:
    key, value = record_bytes(1, KEY, VALUE, version)
    assert value is not None
    return key, value


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bits", [5, 6, 13, 14, 20, 21, 27, 34, 41, 48, 55, 62])
def test_times_of_any_distance(bits: int, sign: int) -> None:
    key, value = commit(1)
    times = [0, sign * (1 << bits), sign * ((1 << bits) - 1), 1]
    records = [Record(offset=at, timestamp_ms=time, key=key, value=value) for at, time in enumerate(times)]
    log = PartitionLog(0, (Segment("built.log", 0, build_batch(records)),))
    rows, seen = columnar_rows(log)
    assert (rows, seen) == construct_rows(log)
    assert [row["timestamp_ms"] for row in rows] == times


@pytest.mark.parametrize("profile", [MODERN, CLASSIC], ids=lambda profile: profile.name)
@pytest.mark.parametrize("change", [-6, -5, -4, -1, 0, 1, 2, 8, 9, 16, 17, 100, 0x7FFF - 4])
@pytest.mark.parametrize("version", METADATA_AT)
def test_lengths_of_metadata_that_do_not_fit(version: int, change: int, profile: Profile) -> None:
    """A text ends inside its value, in front of the fields behind it, or the value is damaged."""
    key, value = commit(version)
    at = METADATA_AT[version]
    assert value[at : at + 2] == b"\0\4"
    changed = value[:at] + (4 + change).to_bytes(2, signed=True) + value[at + 2 :]
    log = LogBuilder().commit(1).add((key, changed)).commit(7, partition=1).log
    expected = construct_answer(log, profile)
    assert columnar_answer(log, profile) == expected
    assert columnar_rows(log) == construct_rows(log)
    assert bool(expected["seen"]) == (change > 0 or 4 + change < 0)


@pytest.mark.parametrize("flips", [1, 2, 0x7F, 0x80, 0xFF])
def test_markers_of_other_lengths_and_numbers(flips: int) -> None:
    """Each byte of a marker's record in turn, under a checksum that is right."""
    before = LogBuilder().commit(1, producer=7)
    marker = build_marker(1, commit=True, producer_id=7, producer_epoch=0, timestamp_ms=TIME)
    behind = LogBuilder().skip(2).commit(2, partition=1)
    for at in range(BATCH_HEADER_SIZE, len(marker)):
        changed = bytearray(marker)
        changed[at] ^= flips
        crc = decode_batch_header(bytes(changed)).computed_crc()
        changed[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4)
        data = b"".join((*before.batches, bytes(changed), *behind.batches))
        log = PartitionLog(0, (Segment("built.log", 0, data),))
        assert columnar_answer(log, MODERN) == construct_answer(log, MODERN)


@pytest.mark.parametrize("size", range(1, 40))
def test_texts_that_differ_in_one_byte_have_other_hashes(size: int) -> None:
    """Tables are quick only then."""
    texts = [bytes(size), *(bytes(at) + b"\1" + bytes(size - at - 1) for at in range(size))]
    with np.errstate(over="ignore"):
        hashes = {int(hash_bytes(np.frombuffer(text, np.uint8), 0, np.int64(size), np.int64(5))) for text in texts}
    assert len(hashes) == len(texts)


def as_array(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


# ------------------------------------------------------------------------------------------------------------- texts

LEADS = (
    0x00,
    0x7F,
    0x80,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xEC,
    0xED,
    0xEE,
    0xEF,
    0xF0,
    0xF1,
    0xF3,
    0xF4,
    0xF5,
    0xFF,
)
SECONDS = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF)
LATER = (0x7F, 0x80, 0xBF, 0xC0)


def is_decoded(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("lead", LEADS)
def test_utf_8_is_what_python_decodes(lead: int) -> None:
    """At the bounds of each byte, cut off anywhere, behind ASCII and before it (``B-7``)."""
    for second, third, fourth in product(SECONDS, LATER, LATER):
        whole = bytes((lead, second, third, fourth))
        for text in (whole[:1], whole[:2], whole[:3], whole, b"ab" + whole[:3], whole[:2] + b"a", whole[:3] + b"a"):
            data = as_array(b"\xff" + text + b"\x80\x80\x80")
            assert is_utf8(data, np.int64(1), np.int64(len(text))) == is_decoded(text), text


def test_names_of_a_key_are_utf_8_only_if_each_is() -> None:
    names = (b"", b"a", "\u00fc".encode(), b"\xff", b"\xc3")
    for first, second in product(names, names):
        key = b"".join(len(name).to_bytes(2) + name for name in (first, second))
        found = are_names_utf8(as_array(key + b"\xbc"), np.int64(0), np.int64(len(key)))
        assert found == (is_decoded(first) and is_decoded(second))


@pytest.mark.parametrize("size", range(20))
def test_plain_text_is_ascii_alone(size: int) -> None:
    behind = bytes([0xFF] * 9)
    assert is_plain_text(as_array(b"\xff" + b"\x7f" * size + behind), np.int64(1), np.int64(size))
    for at in range(size):
        data = b"\xff" + b"a" * at + b"\x80" + b"a" * (size - at - 1) + behind
        assert not is_plain_text(as_array(data), np.int64(1), np.int64(size))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 47, 63, 64, 65, 72, 80])
def test_bytes_are_the_same_if_each_is(size: int) -> None:
    text = bytes(range(1, size + 1))
    one, other = as_array(b"\xee" * 3 + text + b"\x01" * 8), as_array(b"\xdd" * 5 + text + b"\x02" * 8)
    assert same_bytes(one, np.int64(3), other, np.int64(5), np.int64(size))
    for at in range(size):
        changed = other.copy()
        changed[5 + at] ^= 0x80
        assert not same_bytes(one, np.int64(3), changed, np.int64(5), np.int64(size))


# ----------------------------------------------------------------------------------------------------------- headers


def headers() -> Iterator[bytes]:
    """Batches of all magics whose fields differ from each other."""
    records = [Record(offset=10 + i, timestamp_ms=TIME + 3 * i, key=b"key", value=b"value") for i in range(3)]
    for magic in (0, 1, 2):
        for kind, codec in product(("create", "log_append"), ("none", "gzip", "lz4")):
            yield build_batch(
                records[: 1 if codec == "none" else 3], magic=magic, compression=codec, timestamp_type=kind
            )
    yield build_batch(
        records, producer_id=-5, producer_epoch=-3, base_sequence=0x7FFFFFFF, is_transactional=True, last_offset=99,
        partition_leader_epoch=4,
    )  # fmt: skip
    yield build_batch(records, producer_id=1 << 40, producer_epoch=7, base_sequence=9, is_control=True)


@pytest.mark.parametrize("raw", list(headers()), ids=lambda raw: f"magic {raw[16]}")
def test_a_header_says_the_same_to_kernels(raw: bytes) -> None:
    """A batch in the middle of others; its own end is asked for, and one that is too near."""
    batch = decode_batch_header(raw)
    data, at, end = as_array(b"\1" * 70 + raw + raw), np.int64(70), np.int64(70 + len(raw))
    assert bt.size_at(data, at, end) == bt.batch_at(data, at, end) == bt.size_of(data, at) == len(raw)
    assert bt.size_at(data, at, end + 5) == len(raw)
    for short in (1, len(raw) - 20, len(raw)):
        assert bt.size_at(data, at, end - short) < 0
    told = {
        "last_offset": batch.last_offset,
        "max_timestamp": batch.max_timestamp_ms,
        "producer_of": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "leader_epoch": batch.partition_leader_epoch,
        "checksum_of": batch.crc,
        "is_older": batch.magic < 2,
    }
    assert {name: getattr(bt, name)(data, at) for name in told} == told
    attributes = np.array([bt.attributes_of(data, at)])
    assert (attributes & 0x7F).tolist() == [batch.attributes]
    assert bt.magics(attributes).tolist() == [batch.magic]
    assert [bt.TIMESTAMP_TYPES[i] for i in bt.timestamp_types(attributes)] == [batch.timestamp_type]
    for at_byte in range(17 if batch.magic == 2 else 12, len(raw)):
        changed = data.copy()
        changed[70 + at_byte] ^= 1
        assert bt.batch_at(changed, at, end) < 0, at_byte


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_time_of_a_record_is_that_of_the_construct_path(magic: int) -> None:
    """Deltas of either sign, sums beyond 64 bits, and the one time of a batch that was stamped by its broker."""
    for kind, base, delta in product(("create", "log_append"), (0, TIME, INT64_MAX, INT64_MIN), (0, 1, -1, 1 << 40)):
        raw = build_batch([Record(offset=0, timestamp_ms=0, key=b"k", value=b"v")], magic=magic, timestamp_type=kind)
        changed = bytearray(raw)
        if magic == 2:
            changed[27:35], changed[35:43] = base.to_bytes(8, signed=True), TIME.to_bytes(8)
        with np.errstate(over="ignore"):
            found = int(bt.time_at(as_array(bytes(changed)), np.int64(0), np.int64(delta)))
        if magic < 2:
            assert found == delta
        elif kind == "log_append":
            assert found == TIME
        else:
            assert found == as_int64(base + delta)


# ---------------------------------------------------------------------------------------- what is left to the slow path


def left_by_hand(log: LogBuilder, monkeypatch: pytest.MonkeyPatch, profile: Profile = MODERN) -> int:
    """How many batches kernels leave to the construct path."""
    left: list[int] = []
    events = Reading.events

    def counted(self: Reading, index: int, batch: RecordBatch) -> Iterator[LogEvent]:
        left.append(batch.base_offset)
        return events(self, index, batch)

    monkeypatch.setattr(Reading, "events", counted)
    assert columnar_answer(log.log, profile) == construct_answer(log.log, profile)
    return len(left)


ADDED = [commit(3)] * 3
PLAIN: dict[str, LogBuilder] = {
    "commits of all versions": LogBuilder().commit(1, version=0).commit(2, version=1).commit(3, version=2).commit(4),
    "a topic id": LogBuilder().commit(1, topic_id=bytes(15) + b"\1"),
    "a name that is UTF-8": LogBuilder().commit(1, group="\u00fc", topic="\U0001f600"),
    "tombstones": LogBuilder().commit(1).commit(None).commit(None, producer=7).group(gone=True).newer(3, None),
    "transactions": LogBuilder().commit(1, producer=7).end(7).commit(2, producer=7).end(7, commit=False).end(8),
    "groups": LogBuilder().group(member("m"), member("n")).group(version=1).group(version=0).group(gone=True),
    "newer kinds": LogBuilder().newer(3, {"epoch": 2}).newer(6, {"assignment_epoch": 3}).newer(3, {"epoch": 3}),
    "type 0": LogBuilder().commit(1, type_=0).commit(None, type_=0),
    "gaps": LogBuilder().commit(1).skip(100).commit(2),
    "several records": LogBuilder().add(*ADDED).commit(1),
} | {
    f"magic {magic}, {codec}": LogBuilder().add(*[commit(0)] * 3, magic=magic, compression=codec).commit(1)
    for magic in (0, 1, 2)
    for codec in ("none", "snappy", "lz4")
}


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_of_a_plain_log_is_left_to_the_slow_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer alone would not tell: what kernels refuse is read by the construct path."""
    assert left_by_hand(PLAIN[name], monkeypatch) == 0


def test_what_is_not_plain_is_left_to_the_slow_path_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = LogBuilder().commit(1).add((b"\0\x63x", b"\0\0")).commit(2).control(7, 9).commit(3).control(7, 0, 1).commit(4)
    assert left_by_hand(odd, monkeypatch) == 3
