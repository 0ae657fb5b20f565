"""Batches by their headers alone, as a broker's classes see them: beside what decoding them whole tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from offsets_log.broker.batches import FileBatch, PlainMarker, entry_at, entry_in_memory
from offsets_log.broker.failures import BrokerError, InvalidBatchError
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, decode_batch_header
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.record import Record, iter_records
from tests.builders import TIME
from tests.columnar.test_lengths_and_numbers import headers

BEFORE = b"\1" * 30


def file_batch(raw: bytes, behind: bytes = b"") -> FileBatch:
    view = memoryview(BEFORE + raw + behind)
    found = entry_at("file", view, len(BEFORE), len(view))
    assert found is not None
    return found


@pytest.mark.parametrize("raw", list(headers()), ids=lambda raw: f"magic {raw[16]}")
def test_a_batch_in_a_file_says_what_the_decoded_one_does(raw: bytes) -> None:
    batch, found = decode_batch_header(raw), file_batch(raw, b"\1" * 70)
    names = (
        "last_offset", "next_offset", "max_timestamp_ms", "producer_id", "producer_epoch", "partition_leader_epoch",
        "records_count", "delete_horizon_ms", "last_sequence", "is_transactional", "is_control",
    )  # fmt: skip
    assert {name: getattr(found, name) for name in names} == {name: getattr(batch, name) for name in names}
    assert (found.raw(), found.end, found.is_legacy) == (raw, len(BEFORE) + len(raw), batch.magic < 2)
    assert found.attributes == (batch.attributes if batch.magic == 2 else 0)
    assert replace(found.whole(), position=0) == batch
    (first, *_) = iter_records(batch)
    assert isinstance(first, Record)
    assert found.base_offset == first.offset
    found.ensure_valid()
    for at in range(17 if batch.magic == 2 else 12, len(raw)):
        with pytest.raises(InvalidBatchError, match="checksum"):
            file_batch(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]).ensure_valid()


RAW = build_batch([Record(offset=5, timestamp_ms=TIME, key=b"k", value=b"v")])
HEAD = RAW[:8], RAW[12:]


def entry(size: int, magic: int = 2, room: int = 200) -> bytes:
    return (HEAD[0] + size.to_bytes(4, signed=True) + HEAD[1][:4] + bytes([magic]) + bytes(room))[:room]


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (entry(14), 26),
        (entry(188), 200),
        (entry(189), None),
        (entry(14, room=26), 26),
        (entry(14, room=25), None),
        (entry(14, room=17), None),
        (entry(13, room=17), None),
        (entry(0x7FFFFFFF), None),
        (b"", None),
    ],
)
def test_an_entry_of_a_file_is_there_where_its_size_fits(data: bytes, size: int | None) -> None:
    found = entry_at("file", memoryview(data), 0, len(data))
    assert (found and found.size_bytes) == size


@pytest.mark.parametrize("size", [13, 0, -1, -(1 << 31)])
def test_a_size_below_any_entrys_is_refused(size: int) -> None:
    """``D-9``."""
    for read in (entry_at, entry_in_memory):
        with pytest.raises(InvalidBatchError, match=f"an entry of {size} bytes, where none has fewer than 14"):
            read("file", memoryview(entry(size)), 0, 200)


@pytest.mark.parametrize(
    ("data", "size", "problem"),
    [
        (entry(14), 26, None),
        (entry(188), 200, None),
        (entry(189), None, None),
        (entry(14, room=16), None, None),
        (entry(14, room=11), None, None),
        (entry(13, room=12), None, "an entry of 13 bytes"),
        (entry(14, magic=3), None, "magic 3"),
        (entry(14, magic=0xFF), None, "magic -1"),
        (entry(14, magic=0), 26, None),
        (entry(0x7FFFFFFF - 12), None, None),
        (entry(0x7FFFFFFF - 11), None, "a batch of 2147483648 bytes"),
    ],
)
def test_an_entry_in_memory_is_looked_at_more_closely(data: bytes, size: int | None, problem: str | None) -> None:
    """``D-4``, ``D-5``."""
    if problem is not None:
        with pytest.raises(BrokerError, match=problem):
            entry_in_memory("file", memoryview(data), 0, len(data))
    else:
        found = entry_in_memory("file", memoryview(data), 0, len(data))
        assert (found and found.size_bytes) == size


def test_a_header_that_is_cut_off_is_refused_where_it_is_asked() -> None:
    """``D-9``: in a file its fields may be read up to the end, in memory up to the batch's."""
    small = entry(BATCH_HEADER_SIZE - 13, room=BATCH_HEADER_SIZE)
    in_file = entry_at("file", memoryview(small), 0, len(small))
    in_memory = entry_in_memory("file", memoryview(small), 0, len(small))
    assert in_file is not None
    assert in_memory is not None
    assert in_file.last_offset == 5
    with pytest.raises(BrokerError, match="cut off"):
        _ = in_memory.last_offset
    with pytest.raises(InvalidBatchError, match="too few"):
        in_file.ensure_valid()


@pytest.mark.parametrize(("is_commit", "kind"), [(True, "COMMIT"), (False, "ABORT")])
@pytest.mark.parametrize("epoch", [0, 7, 1 << 20])
def test_a_marker_as_coordinators_write_it_is_told_at_once(is_commit: bool, kind: str, epoch: int) -> None:
    """One that is compressed, stamped by its broker, or of another form is not."""
    raw = build_marker(3, commit=is_commit, producer_id=7, producer_epoch=1, timestamp_ms=TIME, coordinator_epoch=epoch)
    assert file_batch(raw).plain_marker() == PlainMarker(kind, epoch, TIME)
    for attributes in (1, 2, 4, 8):
        changed = raw[:22] + bytes([raw[22] | attributes]) + raw[23:]
        assert file_batch(changed).plain_marker() is None
    for at in (60, 61, 64, 65, 70, len(raw) - 1):
        assert file_batch(raw[:at] + bytes([raw[at] ^ 0x83]) + raw[at + 1 :]).plain_marker() is None
    assert file_batch(RAW).plain_marker() is None
