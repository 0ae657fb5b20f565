"""Write ``TOPIC PARTITION OFFSET`` lines for ``rpk group seek GROUP --to-file FILE``.

The form comes from redpanda-data/redpanda, src/go/rpk/pkg/cli/group/seek.go, ``parseSeekFile``: three fields separated
by single spaces (or tabs), no header, blank lines are skipped. The offsets are committed as they are, without leader
epoch and metadata, to a group without members; topics the group did not consume before need no option. Tested with the
client it commits through (twmb/franz-go, kadm 1.19) against Kafka 4.3.0: it accepts the empty group too.
"""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.restore.names import file_name, refused_by_all, refused_in_arguments, shell_word
from offsets_log.restore.rows import Files, by_group
from offsets_log.rows.tables import Row

NAME = "rpk"


def refusal(row: Row) -> str | None:
    """Return why the tool cannot take this row, or should not; None if it may."""
    if row["committed_offset"] < 0:
        return "the tool would commit a negative offset, which clients take for none"
    return refused_by_all(row) or refused_in_arguments(row["group"])


def group_file(group: str) -> str:
    """Return the path of a group's file."""
    return f"{NAME}/{file_name(group)}.txt"


def files(rows: Sequence[Row]) -> Files:
    """Yield one file for each group."""
    for group, own in by_group(rows):
        yield group_file(group), (f"{row['topic']} {row['partition']} {row['committed_offset']}\n" for row in own)


def command(group: str) -> str:
    """Return the command that sets one group."""
    return f"rpk group seek -X brokers=HOST:PORT --to-file {shell_word(group_file(group))} -- {shell_word(group)}"
