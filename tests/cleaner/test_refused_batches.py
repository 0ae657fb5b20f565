"""Batches that Kafka's builder does not write: what of them is wrong ends a round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from offsets_log.broker.batches import FileBatch
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.rewriting import rewritten
from offsets_log.cleaner.settings import Rules
from offsets_log.log_format.batch import decode_batch_header
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record, iter_records

RULES = Rules.of((4, 4))
MAX_INT32 = (1 << 31) - 1
ONE = Record(offset=4, timestamp_ms=1000, key=b"k", value=b"v")
OF_TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}


def batch_of(**facts: Any) -> FileBatch:
    raw = build_batch([ONE], **facts)
    return FileBatch("f", memoryview(raw), 0, len(raw), 4, raw[16], len(raw))


@pytest.mark.parametrize(
    ("records", "refused"),
    [
        ([ONE], None),
        ([ONE, replace(ONE, offset=5)], None),
        ([ONE, ONE], "offset 4 behind offset 4"),
        ([replace(ONE, offset=6), replace(ONE, offset=5)], "offset 5 behind offset 6"),
        ([replace(ONE, timestamp_ms=-1)], None),
        ([replace(ONE, timestamp_ms=-2)], "the timestamp -2"),
        ([replace(ONE, offset=4 + MAX_INT32)], None),
        ([replace(ONE, offset=5 + MAX_INT32)], f"offset {5 + MAX_INT32} in a batch from 4 on"),
    ],
)
def test_records_that_cannot_be_in_one_batch(records: list[Record], refused: str | None) -> None:
    if refused is None:
        made = rewritten(batch_of(), records, -1, RULES)
        assert list(iter_records(decode_batch_header(made.raw)))
        assert made.largest_offset == records[-1].offset
        return
    with pytest.raises(CleaningError, match=f"the cleaner cannot write {refused}"):
        rewritten(batch_of(), records, -1, RULES)


@pytest.mark.parametrize(
    ("facts", "refused"),
    [
        ({}, None),
        (OF_TRANSACTION, None),
        (OF_TRANSACTION | {"producer_id": -1}, "a transaction without a producer"),
        (OF_TRANSACTION | {"producer_epoch": -1}, "a producer without an epoch"),
        (OF_TRANSACTION | {"base_sequence": -1}, "a producer without a sequence number"),
        (OF_TRANSACTION | {"base_sequence": -1, "is_control": True}, None),
        ({"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}, None),
    ],
)
def test_producers_that_no_batch_has(facts: dict[str, Any], refused: str | None) -> None:
    batch = batch_of(**facts)
    if refused is None:
        assert rewritten(batch, [ONE], -1, RULES).largest_offset == 4
        return
    with pytest.raises(CleaningError, match=refused):
        rewritten(batch, [ONE], -1, RULES)
