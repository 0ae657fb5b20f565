"""The offsets of share groups, from the share coordinator's log in the copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from offsets_log.data_directory.share_offsets import SHARE_OFFSET_COLUMNS
from offsets_log.questions.question import FewRows
from offsets_log.rows.needed import Needed
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.share_offsets import say_of_orphans, share_offsets_of
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session


class ShareOffsets(FewRows):
    """The question, as `questions.question.Question`; none are known before the copy's end.

    Args:
        lag: whether rows have ends of partitions; None where the copy has the logs for it.
    """

    columns = SHARE_OFFSET_COLUMNS
    needed = Needed(
        ("group", "topic", "partition", "start_offset"),
        ("lag", "status", "available", "acknowledged", "archived", "write_timestamp_ms"),
    )  # fmt: skip

    def __init__(self, session: Session, lag: bool | None = None) -> None:
        self._session = session
        self._logs = lag_logs(session, lag)
        self._rows: list[Row] | None = None

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        found = share_offsets_of(self._session, self._logs)
        if found is None:
            self._session.account.say(
                "no __share_group_state lies beside these partitions: give the broker's whole data directory"
            )
            return []
        self._rows = found.rows()
        return self._rows

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        rows = self._rows or []
        say_of_lag(self._session, self._logs)
        say_of_orphans(self._session, rows)
        groups = len({row["group"] for row in rows})
        told = f"{counted(len(rows), 'share offset')} of {counted(groups, 'group')}"
        self._session.account.finish(told, found=None if self._rows is None else len(rows))
