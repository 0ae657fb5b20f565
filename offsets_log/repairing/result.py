"""The report of a repair: a row for each partition."""

from __future__ import annotations

from collections.abc import Iterable

from offsets_log.repairing.comparing import Compared
from offsets_log.repairing.completing import Taken
from offsets_log.repairing.writing import Repaired
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row

REPAIR_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("segments", "int", "segments that were written"),
    Column("batches", "bigint", "batches in them"),
    Column("bytes", "bigint", "size of the segments"),
    Column(
        "rewritten", "bigint", "batches that lost some of their records; all others are as they were, byte for byte"
    ),
    Column("log_start_offset", "bigint", "the first offset that clients may read"),
    Column("log_end_offset", "bigint", "where the log goes on"),
    Column("last_stable_offset", "bigint", "where the oldest open transaction begins; the log's end without one"),
    Column("left_out", "list", "what was left out: reason, pieces, records, bytes"),
    Column(
        "taken",
        "list",
        "what was taken of other copies, batch by batch: copy, file, position, first_offset, last_offset, "
        "batches (more than 1 of many that follow each other), records, bytes, checksum; null if one copy was given",
    ),
    Column("missing", "bigint", "offsets in no segment, which nothing explains"),
    Column("undecodable", "bigint", "records that stay, though their key or value cannot be read"),
    Column(
        "changed_offsets",
        "bigint",
        "offsets that a coordinator of --drop-unloadable answers in another way than before; null without that option",
    ),
    Column("changed_groups", "bigint", "and groups"),
)


def repair_row(done: Repaired, compared: Compared | None, taken: Iterable[tuple[str, Taken]] | None = None) -> Row:
    """Return a partition's row: what stays, what is left out by reason, what is of other copies, and what is missing.

    Args:
        compared: None if nothing that can be read was left out.
        taken: copies, in words, and what was taken of them; None if there is one only.
    """
    return {
        "offsets_partition": done.log.offsets_partition,
        "segments": done.segments,
        "batches": done.batches,
        "bytes": done.size_bytes,
        "rewritten": done.rewritten,
        "log_start_offset": done.start_offset,
        "log_end_offset": done.end_offset,
        "last_stable_offset": done.last_stable_offset,
        "left_out": [
            {"reason": reason, "pieces": summed.pieces, "records": summed.records, "bytes": summed.size_bytes}
            for reason, summed in done.left_out.items()
        ],
        "taken": None
        if taken is None
        else [
            {
                "copy": copy,
                "file": one.file,
                "position": one.position,
                "first_offset": one.first_offset,
                "last_offset": one.last_offset,
                "batches": one.batches,
                "records": one.records,
                "bytes": one.size_bytes,
                "checksum": one.checksum,
            }
            for copy, one in taken
        ],
        "missing": done.missing,
        "undecodable": len(done.undecodable),
        "changed_offsets": None if compared is None else len(compared.offsets),
        "changed_groups": None if compared is None else len(compared.groups),
    }
