"""What became of share groups' offsets in time: the records of the share coordinator's log in the copy."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from offsets_log.data_directory.share_groups import ShareStates
from offsets_log.data_directory.share_history import REWOUND, SHARE_HISTORY_COLUMNS, iter_share_history
from offsets_log.disk.reader import open_partitions
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.questions.question import FewRows
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.session.session import Session


class ShareHistory(FewRows):
    """The question, as `questions.question.Question`; rows are sorted by group, topic, partition and record offset.

    Args:
        topic_partition: only these partitions of the consumed topics; empty for all.
        rewinds: whether only rows are shown at which the start offset went back.
    """

    columns: Sequence[Column] = SHARE_HISTORY_COLUMNS
    needed = Needed(
        ("group", "topic", "partition", "start_offset", "timestamp_ms"),
        ("change", "event"),
    )  # fmt: skip

    def __init__(self, session: Session, topic_partition: Set[int] = frozenset(), *, rewinds: bool = False) -> None:
        self._session, self._partitions, self._only_rewinds = session, topic_partition, rewinds
        self._rows: list[Row] = []

    def rows(self) -> list[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        session, inputs, states = self._session, self._session.inputs, ShareStates()
        if not inputs.has_or_lacks(SHARE_GROUP_STATE):
            session.account.say(
                "no __share_group_state lies beside these partitions: give the broker's whole data directory"
            )
        with open_partitions(inputs.copied_logs.chosen(SHARE_GROUP_STATE)) as logs:
            found = iter_share_history(logs, states, inputs.topic_ids, self._shows)
            self._rows = [row for row in found if not self._only_rewinds or row["change"] == REWOUND]
        missing = (*inputs.copied_logs.short(SHARE_GROUP_STATE), *inputs.lacking(SHARE_GROUP_STATE))
        for damage in (*states.damages, *missing):
            session.account.on_damage(damage)
        self._rows.sort(key=lambda row: (row["group"], row["topic"] or "", row["partition"], row["record_offset"]))
        return self._rows

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        keys = {(row["group"], row["topic_id"], row["partition"]) for row in self._rows}
        self._session.account.finish(
            f"{counted(len(self._rows), 'record')} of {counted(len(keys), 'share offset')} of "
            f"{counted(len({row['group'] for row in self._rows}), 'group')}",
            found=len(self._rows),
        )

    def _shows(self, group: str, topic: str, partition: int) -> bool:
        inputs = self._session.inputs
        is_asked = not self._partitions or partition in self._partitions
        return is_asked and inputs.shows_group(group) and inputs.shows_topic(topic)
