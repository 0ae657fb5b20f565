"""The contents of `info`: a row for each offsets partition, and all of them on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, Any

from offsets_log.data_directory.transactions import outcome_in_words
from offsets_log.log_format.completeness import Missing
from offsets_log.questions.info import SIMPLE
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted, shown_time, visible
from offsets_log_cli.colours import colour_of, coloured
from offsets_log_cli.output import view_of, write_rows
from offsets_log_cli.text_table import cut

if TYPE_CHECKING:
    from offsets_log_cli.options import Output

PAGE_COLUMNS = (
    "offsets_partition", "files", "size_bytes", "batches", "records", "tombstones", "first_offset", "end_offset",
    "gaps", "first_timestamp_ms", "last_timestamp_ms", "cleaned_until", "groups", "offsets", "open_transactions",
    "corrupt", "unsupported",
)  # fmt: skip


NEEDED = Needed(
    ("offsets_partition", "records", "last_timestamp_ms"),
    ("corrupt", "unsupported", "missing_offsets", "groups", "offsets", "open_transactions", "end_offset", "gaps"),
)
TOGETHER = (
    ("records", "record_names"),
    ("groups after a load", "group_kinds"),
    ("batch formats (magic)", "magics"),
    ("compression (batches)", "compression"),
    ("values as written by Kafka", "written_by"),
)
"""What all partitions have together: title and column; the summary has the first two."""
COUNTS_OF_DAMAGE = {"corrupt": "corrupt", "missing offsets": "missing_offsets", "unsupported": "unsupported"}
"""Title → column of the summary, the worst first."""
WORST = tuple(COUNTS_OF_DAMAGE.values())
LEAST_ROWS = 3
LINES_BESIDE = 10
"""Lines of a screen that the table's heading, the remarks below the page and the prompts need."""


def write_page(
    stream: IO[bytes],
    rows: list[Row],
    output: Output,
    absent: Iterable[Missing] = (),
    hidden_groups: Sequence[int | None] = (),
) -> None:
    """Write all partitions as one table, then what they hold together, and which are missing.

    Args:
        hidden_groups: of each partition, as of `Holdings`.
    """
    write_rows(stream, _shown(rows), PAGE_COLUMNS, output, needed=NEEDED)
    lines = ["", *_together(rows, hidden_groups, TOGETHER)]
    for row in rows:
        lines += [_open_transaction(row, transaction) for transaction in row["open_transactions"] or ()]
        lines += row["tails"]
        lines += [_missing(row, missing) for missing in row["missing"] or ()]
    lines += [missing.in_words() for missing in absent]
    lines += _gaps_unexplained(rows)
    write_lines(stream, lines)


def write_lines(stream: IO[bytes], lines: Iterable[str]) -> None:
    """Write lines whole."""
    stream.write("".join(visible(line) + "\n" for line in lines).encode())


def write_summary(
    stream: IO[bytes],
    rows: list[Row],
    output: Output,
    absent: Sequence[Missing],
    hidden_groups: Sequence[int | None],
    card: Sequence[str],
) -> None:
    """Write the card, the partitions that fit the rest of a screen, the worst first, and below them counts of all.

    Args:
        hidden_groups: as of `write_page`.
    """
    for line in card:
        write_line(stream, output, "", line)
    rows = [row | {"missing_offsets": _lost(row)} for row in rows]
    lines = [*_damage(rows, absent), *_together(rows, hidden_groups, TOGETHER[:2])]
    room = max(LEAST_ROWS, get_terminal_size().lines - len(card) - len(lines) - LINES_BESIDE)
    worst = sorted(_shown(rows), key=lambda row: [-(row[name] or 0) for name in WORST])
    shown = worst[:room]
    write_rows(stream, shown, (*PAGE_COLUMNS, "missing_offsets"), output, needed=NEEDED)
    left = worst[len(shown) :]
    if left:
        bad = sum(any(row[name] for name in WORST) for row in left)
        write_line(stream, output, "", f" {counted(len(left), 'more partition')}, {bad or 'none'} of them damaged: -v")
    for line in lines:
        title, _, words = line.partition(": ")
        write_line(stream, output, title, words, column=COUNTS_OF_DAMAGE.get(title, title))


def write_line(stream: IO[bytes], output: Output, title: str, words: str, *, column: str = "") -> None:
    """Write a line, cut at the end of a terminal's; of a column with colours the title has that of a cell."""
    view = view_of(output)
    begin = f"{title}: " if title and words else title
    shown = visible(words) if view.width is None else cut(visible(words), view.width - len(begin))
    if view.is_coloured and column:
        begin = begin.replace(title, coloured(title, colour_of(column, title)), 1)
    stream.write(f"{begin}{shown}\n".encode())


def _lost(row: Row) -> int | None:
    """Return how many offsets are missing and unexplained."""
    if row["missing"] is None:
        return None
    return sum(Missing(offsets_partition=None, **cells).count for cells in row["missing"] if not cells["explained_by"])


def _shown(rows: list[Row]) -> list[Row]:
    return [row | {"open_transactions": _length(row["open_transactions"])} for row in rows]


def _damage(rows: list[Row], absent: Sequence[Missing]) -> Iterator[str]:
    """Yield lines of counts by kind, the worst first."""
    for title, name in COUNTS_OF_DAMAGE.items():
        counts = [row[name] for row in rows if row[name]]
        if counts:
            yield f"{title}: {sum(counts)} in {counted(len(counts), 'partition')}"
    if absent:
        names = ", ".join(partition_name(missing.offsets_partition) for missing in absent)
        yield f"absent: {counted(len(absent), 'partition')} of which nothing is here: {names}"
    if tails := sum(len(row["tails"]) for row in rows):
        yield f"ends of files: {counted(tails, 'file')} with bytes after the last batch"
    opened = [transaction for row in rows for transaction in row["open_transactions"] or ()]
    if opened:
        outcomes = Counter(transaction["outcome"] for transaction in opened if "outcome" in transaction)
        oldest = shown_time(min(transaction["first_timestamp_ms"] for transaction in opened))
        of_them = "".join(f", {count} {outcome}" for outcome, count in outcomes.most_common())
        yield f"open transactions: {len(opened)}{of_them}, the oldest since {oldest}"


def _together(
    rows: list[Row], hidden_groups: Sequence[int | None], contents: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Yield lines of what all partitions hold."""
    for title, name in contents:
        is_told = any(row[name] is not None for row in rows) or not rows
        none = _none_of_groups(hidden_groups) if name == "group_kinds" else "none"
        told = (_counts(rows, name) or none) if is_told else "not told"
        if name == "group_kinds" and SIMPLE in told:
            told += f" ({SIMPLE}: classic, with offsets only)"
        yield f"{title}: {told}"


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
        f"open transaction: offsets partition {partition_name(row['offsets_partition'])}, "
        f"producer id {transaction['producer_id']}, "
        f"{counted(transaction['records'], 'record')} since {shown_time(transaction['first_timestamp_ms'])} "
        f"(record offset {transaction['first_record_offset']})"
    )
    return words + (f": {outcome_in_words(transaction)}" if "outcome" in transaction else "")
