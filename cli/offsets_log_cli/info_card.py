"""The cards of data directories that `info` shows: a block for each, above the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.data_directory.card import IN_ORDER, NOT_IN_ORDER, PULLED
from offsets_log.rows.tables import Row
from offsets_log.words import counted, shown_time

TITLE_WIDTH = 18
WORDS_WIDTH = 100
"""A line longer than this goes on in the next one, at the next separator."""
SEPARATOR = " · "
NOT_KNOWN = "not known"
"""In lines that tell nothing."""
SHUTDOWNS = {IN_ORDER: "clean", NOT_IN_ORDER: "none, or not clean", PULLED: PULLED}
"""What the column ``left`` says → the words for it."""
DIRECTORIES_SHOWN = 4
"""How many directories have a line of their own in the summary."""


def card_lines(rows: Sequence[Row], given: str) -> Iterator[str]:
    """Yield a block of lines for each directory, and what they are together if there are several."""
    for row in rows:
        for title, words in _lines(row):
            yield from _packed(title, words) if words else ()
        yield ""
    if len(rows) > 1:
        yield from (_titled("given", given), "")


def short_card_lines(rows: Sequence[Row], given: str) -> list[str]:
    """Return a line for each fact that is known of a directory; of several, a line for each of the first."""
    if len(rows) == 1:
        return [_titled(title, words) for title, words in _lines(rows[0]) if words and NOT_KNOWN not in words]
    lines = [_titled("data directory", SEPARATOR.join([row["data_directory"], _whose(row)])) for row in rows]
    return [*lines[:DIRECTORIES_SHOWN], *([_titled("given", given)] if rows else [])]


def _titled(title: str, words: str) -> str:
    return f"{title:{TITLE_WIDTH}}{words}"


def _packed(title: str, words: str) -> Iterator[str]:
    """Return a title and its contents, in several lines if they are long."""
    parts = words.split(SEPARATOR)
    line = parts[0]
    for part in parts[1:]:
        if len(line) + len(SEPARATOR) + len(part) > WORDS_WIDTH:
            yield _titled(title, line)
            title, line = "", part
        else:
            line += SEPARATOR + part
    yield _titled(title, line)


def _lines(row: Row) -> list[tuple[str, str]]:
    return [
        ("data directory", row["data_directory"]),
        ("belongs to", _whose(row)),
        ("shutdown", f"{SHUTDOWNS.get(row['left'], NOT_KNOWN)}: {', '.join(row['left_shown_by'])}"),
        ("cluster", _agreed(row)),
        ("partitions", _partitions(row)),
        ("newest records", _newest(row)),
    ]


def _whose(row: Row) -> str:
    parts = [
        row["node_id"] is not None and f"broker {row['node_id']}",
        row["cluster_id"] is not None and f"cluster {row['cluster_id']}",
        row["directory_id"] is not None and f"directory {row['directory_id']}",
        (row["node_directories"] or 0) > 1
        and f"{row['node_directories_given']} of {row['node_directories']} directories of this broker given",
    ]
    return SEPARATOR.join(part for part in parts if part) or f"{NOT_KNOWN}: no meta.properties"


def _agreed(row: Row) -> str:
    if row["metadata_end_offset"] is None:
        return ""
    features = [f"{name} {level}" for name, level in row["features"].items()]
    brokers = ", ".join(map(str, row["brokers"]))
    until = f"metadata up to offset {row['metadata_end_offset']}, {shown_time(row['metadata_timestamp_ms'])}"
    version = row["metadata_version"] or "not told"
    return SEPARATOR.join([f"metadata.version {version}", *features, f"brokers {brokers}", until])


_PARTITIONS = (
    ("deleted_partitions", "being deleted"),
    ("future_partitions", "being moved here"),
    ("stray_partitions", "stray"),
    ("unreadable_logs", "not readable"),
)


def _partitions(row: Row) -> str:
    return SEPARATOR.join(
        [str(row["partitions"]), *(f"{row[name]} {words}" for name, words in _PARTITIONS if row[name])]
    )


def _newest(row: Row) -> str:
    newest = row["newest_timestamp_ms"]
    if not newest:
        return ""
    topics = [f"{topic} {shown_time(time)}" for topic, time in newest.items()]
    apart = counted(row["newest_span_ms"] // 1000, "second")
    return SEPARATOR.join([*topics, *([f"{apart} apart"] if len(topics) > 1 else [])])
