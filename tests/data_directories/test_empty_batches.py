"""What batches without records say of transactions."""

from __future__ import annotations

from offsets_log.data_directory.decisions import first_offsets
from offsets_log.log_format.building import empty_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of
from offsets_log.serving.log_reader import LogReader
from tests.builders import LogBuilder
from tests.serving.test_records import Files


def test_an_empty_control_batch_ends_no_transaction() -> None:
    """What is left of a marker when its record was cleaned away (``CL-58``); an empty batch of data begins one."""
    log = LogBuilder().commit(1, producer=7).commit(2, producer=7).end(7).commit(3, producer=7)
    emptied = [empty_batch(batch) for batch in batches_of(log.log)]
    whole = log.batches
    for batches, begin in ([*whole], 3), ([*whole[:2], emptied[2], whole[3]], 0), ([emptied[0], *whole[1:2]], 0):
        read = PartitionLog(0, (Segment("f", 0, b"".join(batches)),))
        assert first_offsets(batches_of(read), {7}) == {7: begin}
        end = list(batches_of(read))[-1].last_offset + 1
        assert LogReader(Files({0: b"".join(batches)})).last_stable_offset(end) == begin
