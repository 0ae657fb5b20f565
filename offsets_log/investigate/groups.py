"""Find which groups exist, what they are, and which have not been used for long (`groups`, `where --of`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.partition_log import OUTCOMES, UNRECORDED_GROUPS
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS
from offsets_log.rows.missing_columns import with_following, without_missing_columns
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    Column,
    Row,
    to_base64,
)

GROUPS_COLUMNS = (
    GROUP_COLUMN,
    Column("type", "string", "classic, consumer, share or streams"),
    Column("protocol_type", "string", "protocol type of a classic group; null if it only has offsets"),
    Column("state", "string", "state after a load, as the coordinator names it"),
    Column("members", "int", "members in the log, who may have left since"),
    Column("offsets", "bigint", "committed offsets served"),
    Column("pending", "bigint", "offsets of open transactions"),
    Column("last_commit_timestamp_ms", "bigint", "time of the newest served offset; null without one"),
    Column("commit_age_ms", "bigint", "age of that commit at the time of --now"),
    Column("last_activity_timestamp_ms", "bigint", "time of the newest record that the group wrote"),
    OFFSETS_PARTITION_COLUMN,
)

FOLLOWING = {
    "commit_timestamp_ms": {"last_commit_timestamp_ms", "commit_age_ms"},
    "committed_offset": {"offsets", "pending"},
    "is_transactional": {"pending"},
}
OF_UNTOLD = frozenset({"offsets", "pending", "last_commit_timestamp_ms", "commit_age_ms"})
"""Columns of a group of which an offset is untold."""
"""A column of `compact`, `decode` or `rebuild` that a source lacks → the columns here that depend on it."""


def groups_rows(
    state: CoordinatorState, offsets_partition: int | None, last_ms: Mapping[str, int], now_ms: int
) -> list[Row]:
    """Return `GROUPS_COLUMNS` of every group that exists.

    Columns that a log's source lacks are null.

    Args:
        last_ms: group → time of its last activity, in epoch milliseconds.
        now_ms: the time from which ages are counted, in epoch milliseconds.
    """
    commits: dict[str, list[int]] = {}
    for value in state.iter_served():
        commits.setdefault(value.group, []).append(value.commit_timestamp_ms)
    pending: dict[str, int] = {}
    for value in state.pending:
        pending[value.group] = pending.get(value.group, 0) + 1
    untold = {group for group, _, _ in state.untold}
    rows = []
    for group_id, group in state.groups.items():
        last_commit_ms = max(commits.get(group_id, ()), default=None)
        row = {
            "group": group_id,
            "type": group.kind,
            "protocol_type": group.protocol_type if group.kind == CLASSIC else group.kind,
            "state": group.state(state.profile),
            "members": len(group.members),
            "offsets": len(commits.get(group_id, ())),
            "pending": pending.get(group_id, 0),
            "last_commit_timestamp_ms": last_commit_ms,
            "commit_age_ms": None if last_commit_ms is None else now_ms - last_commit_ms,
            "last_activity_timestamp_ms": last_ms.get(group_id),
            "offsets_partition": offsets_partition,
        }
        row |= {"group_base64": to_base64(group_id.raw)} if isinstance(group_id, MalformedString) else {}
        missing_columns = with_following(state.missing_columns_of(group), FOLLOWING)
        rows.append(without_missing_columns(row, missing_columns | (OF_UNTOLD if group_id in untold else set())))
    return rows


def groups_row_order(row: Row) -> tuple[str, int]:
    """Return the sort key: group in code point order, then offsets partition."""
    return row["group"], row["offsets_partition"] or 0


# ---------------------------------------------------------------------------------------------- deletion

DELETED_BY = {
    CLASSIC: "kafka-consumer-groups.sh",
    CONSUMER: "kafka-consumer-groups.sh",
    SHARE: "kafka-share-groups.sh",
    STREAMS: "kafka-streams-groups.sh",
}
"""Kind of group → the tool that deletes it."""

GROUPS_OF_A_COMMAND = 100


NEEDED_FOR_DELETION = frozenset({"state", "is_transactional", OUTCOMES, UNRECORDED_GROUPS})
"""Columns without which it is unknown whether a group can be deleted."""


def is_stale(row: Row, before_ms: int) -> bool:
    """Return whether a group has written nothing since a time; False for a group without a known time."""
    return row["last_activity_timestamp_ms"] is not None and row["last_activity_timestamp_ms"] < before_ms


def can_be_deleted(row: Row) -> bool:
    """Return whether a broker deletes the group (``E-19``: it is Empty) and cancels no open transaction with it."""
    return row["state"].lower() == "empty" and not row["pending"]


def deletion_command(rows: Iterable[Row], bootstrap_server: str) -> str:
    """Return the command line that deletes groups of one tool, quoted for bash."""
    rows = list(rows)
    names = " ".join(f"--group {bash_word(row['group'])}" for row in rows)
    return f"{DELETED_BY[rows[0]['type']]} --bootstrap-server {bash_word(bootstrap_server)} --delete {names}"


def deletion_commands(rows: Iterable[Row], bootstrap_server: str) -> Iterator[str]:
    """Yield as few command lines as delete all these groups, each for one tool.

    A command line has at most `GROUPS_OF_A_COMMAND` groups.
    """
    by_tool = sorted(rows, key=lambda row: DELETED_BY[row["type"]])
    for _, found in groupby(by_tool, key=lambda row: DELETED_BY[row["type"]]):
        same = list(found)
        for i in range(0, len(same), GROUPS_OF_A_COMMAND):
            yield deletion_command(same[i : i + GROUPS_OF_A_COMMAND], bootstrap_server)


_UNSEEN = re.compile(r"[^\x20-\x7e\u00a1-\ud7ff\ue000-\U0010ffff]|[\u2028-\u202e\u200b-\u200f\u2060-\u206f\ufeff]")


def bash_word(text: str) -> str:
    """Return one word of a command line, on one line; invisible characters become escapes in bash's ``$'…'``."""
    if not _UNSEEN.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _UNSEEN.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in found[0].encode()), escaped) + "'"
