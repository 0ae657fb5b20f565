"""The contents of `info`: a row for each offsets partition, and all of them on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO, Any

from cli.output import write_rows
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.data_directory.transactions import outcome_in_words
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import Holdings
from offsets_log.replay.group import Group
from offsets_log.rows.survey import Survey, written_by_later
from offsets_log.rows.tables import Row, partition_name, without_missing_columns
from offsets_log.words import counted, shown_time, visible

PAGE_COLUMNS = (
    "offsets_partition", "files", "size_bytes", "batches", "records", "tombstones", "first_offset", "end_offset",
    "gaps", "first_timestamp_ms", "last_timestamp_ms", "cleaned_until", "groups", "offsets", "open_transactions",
    "corrupt", "unsupported",
)  # fmt: skip

FOLLOWING = {
    "bytes": {"size_bytes"},
    "batch_base_offset": {"batches"},
    "record_offset": {"first_offset", "end_offset", "gaps", "missing_offsets", "missing"},
    "committed_offset": {"offsets", "orphans"},
    "state": {"group_kinds"},
    "magic": {"magics"},
    "value_version": {"written_by"},
    "is_transactional": {"open_transactions"},
}
"""A column of other commands that a source may lack → the columns here that depend on it."""


def info_row(log: PartitionLog, found: Survey, held: Holdings, outcomes: Outcomes | None = None) -> Row:
    """Return the row of one offsets partition: its contents and what a load makes of them; null for unknown facts.

    Args:
        outcomes: tells what becomes of open transactions; None if nothing does.
    """
    kinds = found.kinds
    told = {} if outcomes is None else outcomes.cells(log, held.pending)
    row = {
        "offsets_partition": found.offsets_partition,
        "files": found.files,
        "size_bytes": found.size_bytes,
        "batches": found.batches,
        "records": found.records,
        "tombstones": kinds.tombstones,
        "first_offset": found.first_offset,
        "end_offset": found.end_offset,
        "gaps": found.gaps,
        "missing_offsets": found.missing_offsets,
        "first_timestamp_ms": kinds.first_timestamp_ms,
        "last_timestamp_ms": kinds.last_timestamp_ms,
        "cleaned_until": log.cleaned_until,
        "groups": len(held.groups),
        "offsets": held.offsets,
        "orphans": held.orphans,
        "corrupt": kinds.corrupt,
        "unsupported": kinds.unsupported,
        "record_names": dict(kinds.record_names.most_common()),
        "group_kinds": _kinds(held.groups),
        "magics": {str(magic): count for magic, count in sorted(kinds.magics.items())},
        "compression": dict(kinds.codecs.most_common()),
        "written_by": dict((kinds.releases + written_by_later(held.groups)).most_common()),
        "open_transactions": [
            {"producer_id": producer_id, "first_record_offset": offset, "first_timestamp_ms": time, "records": count}
            | told.get(producer_id, {})
            for producer_id, (offset, time, count) in sorted(found.open_transactions.items())
        ],
        "tails": list(found.tails),
        "missing": [missing_cells(missing) for missing in found.missing],
    }
    return without_missing_columns(
        row, log.missing_columns.union(*(FOLLOWING.get(column, ()) for column in log.missing_columns))
    )


def missing_cells(missing: Missing) -> dict[str, Any]:
    """Return missing log in the form that JSON has."""
    return {
        "first_offset": missing.first_offset,
        "last_offset": missing.last_offset,
        "shown_by": missing.shown_by,
        "explained_by": missing.explained_by,
    }


SIMPLE = "simple"
"""What groups are called here that `groups`, as Kafka does, lists as classic."""


def _kinds(groups: Iterable[Group]) -> dict[str, int]:
    """Return how many groups there are of each kind, ordered by name where counts are equal."""
    counts = Counter(SIMPLE if group.is_simple else group.kind for group in groups)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def write_page(
    stream: IO[bytes], rows: list[Row], absent: Iterable[Missing] = (), hidden_groups: Sequence[int | None] = ()
) -> None:
    """Write all partitions as one table, then what they hold together, and which are missing.

    Args:
        hidden_groups: of each partition, as of `Holdings`.
    """
    shown = [row | {"open_transactions": _length(row["open_transactions"])} for row in rows]
    write_rows(stream, shown, PAGE_COLUMNS, "table")
    lines = [""]
    for title, name in (
        ("records", "record_names"),
        ("groups after a load", "group_kinds"),
        ("batch formats (magic)", "magics"),
        ("compression (batches)", "compression"),
        ("values as written by Kafka", "written_by"),
    ):
        is_told = any(row[name] is not None for row in rows) or not rows
        none = _none_of_groups(hidden_groups) if name == "group_kinds" else "none"
        told = (_counts(rows, name) or none) if is_told else "not told"
        if name == "group_kinds" and SIMPLE in told:
            told += f" ({SIMPLE}: classic, with offsets only)"
        lines.append(f"{title}: {told}")
    for row in rows:
        lines += [_open_transaction(row, transaction) for transaction in row["open_transactions"] or ()]
        lines += row["tails"]
        lines += [_missing(row, missing) for missing in row["missing"] or ()]
    lines += [missing.in_words() for missing in absent]
    lines += _gaps_unexplained(rows)
    stream.write("".join(visible(line) + "\n" for line in lines).encode())


def _none_of_groups(hidden: Sequence[int | None]) -> str:
    """Say that there is no group, or that there are some and none is shown."""
    if None in hidden:
        return "none that fits"
    return f"none of {count} fits" if (count := sum(filter(None, hidden))) else "none"


def _gaps_unexplained(rows: list[Row]) -> list[str]:
    """Return one line if offsets are left out and no file says that the cleaner did it."""
    partitions = [
        row["offsets_partition"]
        for row in rows
        if row["gaps"] and not row["cleaned_until"] and not row["missing"]  # what is missing is reported already
    ]
    if not partitions:
        return []
    return [
        "gaps: no cleaner-offset-checkpoint was found for offsets partition "
        f"{', '.join(map(partition_name, partitions))}: whether records in these gaps "
        "were compacted away or lost is not known; copy that file from the data directory too"
    ]


def _length(values: list[Row] | None) -> int | None:
    return None if values is None else len(values)


def _counts(rows: list[Row], name: str) -> str:
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row[name] or {})
    return " · ".join(f"{what} {count}" for what, count in total.most_common())


def _missing(row: Row, cells: dict[str, Any]) -> str:
    return Missing(offsets_partition=row["offsets_partition"], **cells).in_words()


def _open_transaction(row: Row, transaction: dict[str, Any]) -> str:
    words = (
        f"open transaction: offsets partition {row['offsets_partition']}, producer id {transaction['producer_id']}, "
        f"{counted(transaction['records'], 'offset')} since {shown_time(transaction['first_timestamp_ms'])} "
        f"(record offset {transaction['first_record_offset']})"
    )
    return words + (f": {outcome_in_words(transaction)}" if "outcome" in transaction else "")
