"""Write a script: ``kafkactl reset offset GROUP --topic T --partition P --offset N`` for each partition.

The form comes from deviceinsight/kafkactl, cmd/reset/reset-consumer-group-offset.go, ``newResetOffsetCmd``, and
internal/consumergroupoffsets, ``OffsetResettingConsumer``. Without ``--execute`` the tool only shows what it would do.
It joins the group as a consumer, refuses offsets outside the partition's log, and takes −1 for "no offset given".
Tested against Kafka 4.3.0: the empty group is refused; after a failure the tool's own member keeps the group Stable
until its session times out, and until then further commands for the group are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.restore.names import refused_by_all, refused_in_arguments, shell_word
from offsets_log.restore.rows import Files
from offsets_log.rows.tables import Row

NAME = "kafkactl"

_SCRIPT = """#!/bin/sh
# Sets offsets, one command a partition. The groups must have no members. Without --execute nothing is changed:
#   ./run.sh [--execute] [--context NAME] [--config-file FILE]
# Exits with 1 if a command failed. KAFKACTL names the tool if it is not in the PATH.
tool=${KAFKACTL:-kafkactl}
status=0
"""


def refusal(row: Row) -> str | None:
    """Return why the tool cannot take this row; None if it can."""
    if row["group"] == "":
        return "the tool joins the group, and brokers let nobody join the empty one (INVALID_GROUP_ID)"
    if row["committed_offset"] < 0:
        return "the tool takes a negative offset for none given"
    return refused_by_all(row) or refused_in_arguments(row["group"])


def files(rows: Sequence[Row]) -> Files:
    """Yield run.sh."""
    yield f"{NAME}/run.sh", _script(rows)


def _script(rows: Sequence[Row]) -> Iterator[str]:
    yield _SCRIPT
    for row in rows:
        yield (
            f'"$tool" reset offset "$@" --topic={row["topic"]} --partition={row["partition"]} '
            f"--offset={row['committed_offset']} -- {shell_word(row['group'])} || status=1\n"
        )
    yield 'exit "$status"\n'
