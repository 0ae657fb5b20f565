"""Files that somebody named and that are no log at all: an error, not an empty answer."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of

OTHER_TEXT = (
    "this is text, and no form of it is known: what kafka-dump-log --offsets-decoder, the console formatters, "
    "kcat -J and clients print is read, and lines PARTITION OFFSET TIMESTAMP KEY VALUE with key and value as "
    "hexadecimal or base64; offsets-log records --key-hex HEX --value-hex HEX shows a single record"
)
NO_BATCH = (
    "no batch of Kafka is in it: this is no log. Give a broker's data directory (log.dirs), or of its directories "
    "those named __consumer_offsets-N"
)


def refuse_no_logs(logs: Sequence[PartitionLog]) -> None:
    """Refuse files if none of them is a log; one among logs is damage like other damage.

    A segment by its name is one, whatever it holds, unless it is text.

    Args:
        logs: of files that were named, each by itself.

    Raises:
        InputError: none is a log.
    """
    segments = [segment for log in logs for segment in log.segments]
    if not segments or not all(log.segments for log in logs):
        return
    why = [_why_no_log(log, segment) for log in logs for segment in log.segments]
    if all(why):
        raise InputError(why[0] or "", file=segments[0].file)


def _why_no_log(log: PartitionLog, segment: Segment) -> str | None:
    from offsets_log.dumps.formats import is_other_text, known_format

    buffer = segment.buffer
    if segment.lines or not len(memoryview(buffer)):
        return None
    if is_other_text(buffer):
        return OTHER_TEXT
    is_plausible = segment.base_offset is not None or known_format(buffer) is not None
    return None if is_plausible or next(batches_of(log), None) is not None else NO_BATCH
