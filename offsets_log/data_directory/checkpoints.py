"""The checkpoints of a data directory, and that of a partition's leader epochs (``CL-48``, ``CL-50``).

All have one form: a version, how many lines follow, and these lines. A broker takes none of a file that breaks it.

References: ``CheckpointFile.java``, ``OffsetCheckpointFile.java``, ``LeaderEpochCheckpointFile.java``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets_log.broker.failures import BrokerError
from offsets_log.broker.leader_epochs import LeaderEpochs, check_leader_epochs, decode_leader_epochs
from offsets_log.data_directory.texts import lines_of, number_in, refused, shown
from offsets_log.errors import CorruptFileError
from offsets_log.log_format.segment import Buffer

VERSION = 0


class NotNumbersError(CorruptFileError):
    """A line has its three parts, and its numbers are none: a broker throws another exception then (``ST-5``)."""


TopicPartition = tuple[str, int]


def decode_offset_checkpoint(data: Buffer, file: str) -> dict[TopicPartition, int]:
    """Return topic and partition → offset. If a partition stands twice, its last line holds; an empty file has none.

    Raises:
        CorruptFileError: with the line.
    """
    lines = lines_of(data, file)
    if lines and number_in(lines[0], 32) != VERSION:
        raise refused(f"the version is {shown(lines[0])}, not {VERSION}", file, 1)
    if len(lines) < 2:
        return {}
    declared = number_in(lines[1], 32)
    if declared is None:
        raise refused(f"{shown(lines[1])} is no number of entries", file, 2)
    offsets = dict(_entry(line, file, number) for number, line in enumerate(lines[2:], 3))
    if declared != len(lines) - 2:
        raise refused(f"{declared} entries are declared, {len(lines) - 2} follow", file, 2)
    return offsets


def _entry(line: str, file: str, number: int) -> tuple[TopicPartition, int]:
    parts = line.split()
    if len(parts) == 3:
        partition, offset = number_in(parts[1], 32), number_in(parts[2], 64)
        if partition is not None and offset is not None:
            return (parts[0], partition), offset
        raise NotNumbersError(f"line {number}: {shown(line)} has no numbers as partition and offset", file=file)
    raise refused(f"{shown(line)} is no topic, partition and offset", file, number)


def encode_offset_checkpoint(offsets: Iterable[tuple[TopicPartition, int]] | Mapping[TopicPartition, int]) -> str:
    """Return the file's text, its lines by topic and partition; a broker writes them in no order."""
    entries = sorted(offsets.items() if isinstance(offsets, Mapping) else offsets)
    lines = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in entries)
    return f"{VERSION}\n{len(entries)}\n{lines}"


def decode_leader_epoch_checkpoint(data: Buffer, file: str) -> LeaderEpochs:
    """Return leader epoch → the first offset in it, epochs rising.

    Each start of a leader that then gets records leaves an entry.

    Raises:
        CorruptFileError: it is not of that form.
    """
    try:
        check_leader_epochs(data)
    except BrokerError as error:
        raise refused(error.problem, file) from None
    return decode_leader_epochs(data)
