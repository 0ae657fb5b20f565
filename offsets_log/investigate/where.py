"""Find the offsets partition that a group belongs to, for names as text or as JSON Lines (`where`; ``records:H1``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from offsets_log.errors import InputError
from offsets_log.log_format.java_text import MalformedString, decode_string
from offsets_log.replay.partition_for import partition_for
from offsets_log.rows.tables import GROUP_COLUMN, OFFSETS_PARTITION_COLUMN, Column, Row, to_base64

WHERE_COLUMNS = (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
)

KEY_COLUMNS = (
    Column("key", "string", "the key of a message"),
    Column("partition", "int", "the partition that a producer sends it to"),
)
OF_COLUMNS = (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    Column("type", "string", "classic, consumer, share or streams"),
    Column("state", "string", "state, as the coordinator names it after a load"),
    Column("members", "int", "how many members there are"),
    Column("offsets", "int", "how many committed offsets there are"),
    Column("last_commit_timestamp_ms", "bigint", "when the latest of these was committed"),
)

Question = tuple[str, int | None]
"""A group, and how many partitions `__consumer_offsets` has; None if unknown."""


def where_row(group: str, partitions: int) -> Row:
    """Return one row of `WHERE_COLUMNS`."""
    row = {"group": group, "offsets_partition": partition_for(group, partitions)}
    return row | ({"group_base64": to_base64(group.raw)} if isinstance(group, MalformedString) else {})


def read_lines(lines: Iterable[bytes], partitions: int | None) -> Iterator[Question]:
    """Yield the group of each line: split at ``\\n`` only, nothing is stripped, an empty line is the empty group."""
    for line in lines:
        yield decode_string(line.removesuffix(b"\n")), partitions


def read_json_lines(lines: Iterable[bytes], partitions: int | None, file: str) -> Iterator[Question]:
    """Yield a question for each line ``{"group": …, "partitions": …}``.

    Args:
        partitions: taken where a line has none.

    Raises:
        InputError: a line is anything else.
    """
    for number, line in enumerate(lines, 1):
        try:
            asked = json.loads(line.decode())
            group, count = asked["group"], asked.get("partitions", partitions)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f'line {number} is not {{"group": …, "partitions": …}}', file=file) from None
        if not isinstance(group, str) or _has_lone_surrogate(group):
            raise InputError(f"line {number}: group is no text that a group can be named", file=file)
        if count is not None and (type(count) is not int or count < 1):
            raise InputError(f"line {number}: partitions is not a number from 1 on", file=file)
        yield group, count


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
