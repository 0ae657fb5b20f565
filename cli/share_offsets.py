"""Writing what the share coordinator's log in the copy holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cli.options import Output
    from offsets_log.rows.tables import Column, Row
    from offsets_log.session.session import Session


def write_columns(session: Session, output: Output, rows: list[Row], columns: Sequence[Column]) -> None:
    """Write rows in the format that is asked for."""
    from cli.output import chosen_format, destination, write_rows

    if chosen_format(output) == "parquet":
        from cli.parquet import write_table_of

        write_table_of(session, output, rows, columns)
        return
    with destination(output, session.inputs.files) as stream:
        write_rows(stream, rows, [column.name for column in columns], chosen_format(output))


def write_history(session: Session, output: Output, shows: Callable[[str, str, int], bool], only_rewinds: bool) -> None:
    """Write the records about the groups in the share coordinator's log, by group, topic, partition and offset."""
    from offsets_log.data_directory.share_groups import ShareStates
    from offsets_log.data_directory.share_history import REWOUND, SHARE_HISTORY_COLUMNS, iter_share_history
    from offsets_log.disk.reader import open_partitions
    from offsets_log.messages.internal_topics import SHARE_GROUP_STATE

    inputs, states = session.inputs, ShareStates()
    if not inputs.has_or_lacks(SHARE_GROUP_STATE):
        session.account.say(
            "no __share_group_state lies beside these partitions: give the broker's whole data directory"
        )
    with open_partitions(inputs.copied_logs.chosen(SHARE_GROUP_STATE)) as logs:
        found = iter_share_history(logs, states, inputs.topic_ids, shows)
        rows = [row for row in found if not only_rewinds or row["change"] == REWOUND]
    missing = (*inputs.copied_logs.short(SHARE_GROUP_STATE), *inputs.lacking(SHARE_GROUP_STATE))
    for damage in (*states.damages, *missing):
        session.account.on_damage(damage)
    rows.sort(key=lambda row: (row["group"], row["topic"] or "", row["partition"], row["record_offset"]))
    write_columns(session, output, rows, SHARE_HISTORY_COLUMNS)
    keys = {(row["group"], row["topic_id"], row["partition"]) for row in rows}
    session.account.finish(
        f"{counted(len(rows), 'record')} of {counted(len(keys), 'share offset')} of "
        f"{counted(len({row['group'] for row in rows}), 'group')}",
        found=len(rows),
    )
