"""The report of a repair: a row for each partition."""

from __future__ import annotations

from offsets_log.repairing.comparing import Compared
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
    Column("missing", "bigint", "offsets in no segment, which nothing explains"),
    Column("undecodable", "bigint", "records that stay, though their key or value cannot be read"),
    Column(
        "changed_offsets",
        "bigint",
        "offsets that a coordinator of --drop-unloadable answers in another way than before; null without that option",
    ),
    Column("changed_groups", "bigint", "and groups"),
)


def repair_row(done: Repaired, compared: Compared | None) -> Row:
    """Return a partition's row: what stays, what is left out by reason, and what is missing.

    Args:
        compared: None if nothing that can be read was left out.
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
        "missing": done.missing,
        "undecodable": len(done.undecodable),
        "changed_offsets": None if compared is None else len(compared.offsets),
        "changed_groups": None if compared is None else len(compared.groups),
    }
