"""A log that is written is one that a broker opens as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from offsets_log.broker.failures import BrokerError
from offsets_log.broker.log_writer import PartitionLogWriter
from offsets_log.broker.recovery import open_log
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from tests.builders import LogBuilder
from tests.cleaner.cases import all_cases

NAMES = ("transactions-mixed-r1", "codecs-r1", "legacy-r1", "idempotent-r1", "grouping-span-empty", "plain-1")


@pytest.mark.parametrize("segment_bytes", [1, 900, 1 << 20])
@pytest.mark.parametrize("name", NAMES)
def test_indexes_and_snapshots_are_those_of_recovery(name: str, segment_bytes: int) -> None:
    """``CL-41``, ``CL-42``, ``CL-43``: in segments of any size."""
    files: dict[str, bytes] = {}

    def emit(segment: SegmentWriter) -> None:
        for suffix, pieces in segment.files():
            files[f"{segment.base_offset:020}.{suffix}"] = b"".join(map(bytes, pieces))

    writer = PartitionLogWriter(emit, segment_bytes=segment_bytes, index_interval_bytes=200)
    batches = [item for _, item in iter_log(all_cases()[name].log) if isinstance(item, RecordBatch)]
    for batch in batches:
        writer.write(batch.raw)
    writer.close()
    segments = [Segment(name, int(name[:20]), data) for name, data in sorted(files.items()) if name.endswith(".log")]
    assert b"".join(bytes(segment.buffer) for segment in segments) == b"".join(batch.raw for batch in batches)
    log = PartitionLog(0, tuple(segments))
    opened = open_log(log, stopped_cleanly=False, finds_by_base_offset=True, index_interval_bytes=200)
    assert opened.refusal is None
    assert opened.end_offset == writer.end_offset
    for base_offset, file in opened.files.items():
        made = {"index": file.index.encode(), "timeindex": file.times.encode(), "txnindex": file.aborted.encode()}
        assert made == {suffix: files.get(f"{base_offset:020}.{suffix}", b"") for suffix in made}
    written, found = writer.producers.snapshots.by_offset, opened.producers.snapshots.by_offset
    assert written.keys() == {*list(opened.files)[1:], writer.end_offset}
    assert {offset: found[offset] for offset in written.keys() & found.keys()} == {
        offset: written[offset] for offset in written.keys() & found.keys()
    }
    assert opened.producers.entries == writer.producers.entries


def test_a_writer_refuses_what_is_no_batch_or_goes_back() -> None:
    writer = PartitionLogWriter(lambda segment: None)
    (batch,) = LogBuilder().commit(1).batches
    writer.write(batch)
    for wrong in (batch, batch[:-1], batch + batch, b""):
        with pytest.raises(BrokerError):
            writer.write(wrong)


@pytest.mark.parametrize("segment_bytes", [1, 900, 1 << 20])
@pytest.mark.parametrize("name", NAMES)
def test_whole_buffers_make_the_files_of_single_batches(name: str, segment_bytes: int) -> None:
    """In buffers that end anywhere, of which the rest comes again with the next one."""
    raws = [item.raw for _, item in iter_log(all_cases()[name].log) if isinstance(item, RecordBatch)]
    whole, step = b"".join(raws), 1 + max(map(len, raws))

    def single(writer: PartitionLogWriter) -> None:
        for raw in raws:
            writer.write(raw)

    def buffers(writer: PartitionLogWriter) -> None:
        at = 0
        while at < len(whole):
            at += writer.write_all(whole[at : at + step])

    assert written(buffers, segment_bytes) == written(single, segment_bytes)


def written(write: Callable[[PartitionLogWriter], None], segment_bytes: int) -> dict[str, object]:
    """All that a writer makes."""
    files: dict[str, object] = {}

    def emit(segment: SegmentWriter) -> None:
        for suffix, pieces in segment.files():
            files[f"{segment.base_offset:020}.{suffix}"] = b"".join(map(bytes, pieces))

    writer = PartitionLogWriter(emit, segment_bytes=segment_bytes, index_interval_bytes=200)
    write(writer)
    files |= {"last": writer.last_batch, "epochs": writer.leader_epochs, "records": writer.records}
    writer.close()
    return files | {"producers": writer.producers.snapshots.by_offset, "end": writer.end_offset}


def test_a_buffer_is_taken_up_to_what_is_wrong_and_to_a_bound() -> None:
    built = LogBuilder()
    for offset in range(8):
        built.commit(offset)
    whole = b"".join(built.batches)
    for bound in range(1, 9):
        writer = PartitionLogWriter(lambda segment: None)
        assert writer.write_all(whole, until_offset=bound) == sum(map(len, built.batches[:bound]))
        assert writer.end_offset == bound
    for wrong in (whole[:-1] + b"!", whole + built.batches[0], whole + bytes(99)):
        writer = PartitionLogWriter(lambda segment: None)
        with pytest.raises(BrokerError):
            writer.write_all(wrong)
        assert writer.end_offset in (7, 8)
