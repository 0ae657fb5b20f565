"""The contents of `info`: a row for each offsets partition, and all of them on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO, Any

from offsets_log.data_directory.transactions import outcome_in_words
from offsets_log.log_format.completeness import Missing
from offsets_log.questions.info import SIMPLE
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted, shown_time, visible
from offsets_log_cli.output import write_rows

PAGE_COLUMNS = (
    "offsets_partition", "files", "size_bytes", "batches", "records", "tombstones", "first_offset", "end_offset",
    "gaps", "first_timestamp_ms", "last_timestamp_ms", "cleaned_until", "groups", "offsets", "open_transactions",
    "corrupt", "unsupported",
)  # fmt: skip


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
