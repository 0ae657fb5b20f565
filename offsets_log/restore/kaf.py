"""Write one JSON object for each topic, for ``kaf group commit GROUP --topic TOPIC --offset-map JSON``.

The form comes from birdayz/kaf, cmd/kaf/group.go, ``createGroupCommitOffsetCmd``: partition numbers are keys, offsets
are values (``map[int32]int64``). The tool joins the group as a consumer of the topic and commits with OffsetCommit
version 1 (``resetHandler.Setup``), without looking at the errors of single partitions. Tested against Kafka 4.3.0: that
version was removed in 4.0 and the tool fails ("EOF"); the empty group is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.restore.names import file_name, refused_by_all, refused_in_arguments, shell_word
from offsets_log.restore.rows import Files, by_group, by_topic, offsets_by_partition
from offsets_log.rows.tables import Row, to_json

NAME = "kaf"


def refusal(row: Row) -> str | None:
    """Return why the tool cannot take this row, or should not; None if it may."""
    if row["group"] == "":
        return "the tool joins the group, and brokers let nobody join the empty one (INVALID_GROUP_ID)"
    if row["committed_offset"] < 0:
        return "the tool would commit a negative offset, which clients take for none"
    return refused_by_all(row) or refused_in_arguments(row["group"])


def topic_file(group: str, topic: str) -> str:
    """Return the path of the file of a group's topic."""
    return f"{NAME}/{file_name(group)}/{file_name(topic)}.json"


def files(rows: Sequence[Row]) -> Files:
    """Yield one file for each group and topic."""
    for group, own in by_group(rows):
        for topic, some in by_topic(own):
            yield topic_file(group, topic), (to_json(offsets_by_partition(some)), "\n")


def command(group: str, topic: str) -> str:
    """Return the command that sets one topic of a group."""
    path = shell_word(topic_file(group, topic))
    return (
        f'kaf -b HOST:PORT group commit --noconfirm --topic={topic} --offset-map="$(cat {path})" -- {shell_word(group)}'
    )
