"""``<offset>.snapshot`` of a partition: the producers that were known up to that offset (``CL-57``)."""

from __future__ import annotations

from offsets_log.broker.producers import ProducerEntry, Producers, decode_snapshot
from offsets_log.data_directory.texts import refused
from offsets_log.log_format.segment import Buffer


def decode_producer_snapshot(data: Buffer, file: str) -> Producers:
    """Return producer id → what is known of it.

    Raises:
        CorruptFileError: a broker would delete it: another version, a wrong checksum, or it is cut off.
    """
    producers = decode_snapshot(data)
    if producers is None:
        raise refused("it is no whole snapshot of producers: its version, checksum or count does not fit", file)
    return producers


def open_transactions(producers: Producers) -> dict[int, ProducerEntry]:
    """Return those producers that had a transaction open there."""
    return {producer_id: entry for producer_id, entry in producers.items() if entry.first_offset >= 0}
