"""The groups that offsets partitions hold: what would be lost with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from offsets_log.investigate.groups import groups_row_order, groups_rows
from offsets_log.investigate.where import OF_COLUMNS
from offsets_log.questions.question import FewRows
from offsets_log.session.homes import Places, all_groups
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session


class HeldGroups(FewRows):
    """The question, as `questions.question.Question`; rows are sorted by group.

    Args:
        profile: whose rules to follow; None for what the files show.
        only: these groups; None for all.
    """

    columns = OF_COLUMNS

    def __init__(self, session: Session, profile: str | None, only: Collection[str] | None = None) -> None:
        self._session, self._only = session, only
        self._rules = Rules(session, profile)
        self._groups: set[str] = set()
        self._count = self._offsets = 0

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        found: list[Row] = []
        places = Places(self._session, self._rules.profile, "group")
        for log, state, _ in self._session.engine.load_all(self._rules.profile):
            places.add(log, [group for group in all_groups(state) if self._only is None or group in self._only])
            found += groups_rows(state, log.offsets_partition, {}, 0)
        if places.has_something:
            places.tell_of_groups("groups are shown wherever they are")
        names = (*(column.name for column in OF_COLUMNS), "group_base64")
        rows = [
            {name: row[name] for name in names if name in row}
            for row in sorted(found, key=groups_row_order)
            if self._only is None or row["group"] in self._only
        ]
        self._groups, self._count = {row["group"] for row in rows}, len(rows)
        self._offsets = sum(row["offsets"] or 0 for row in rows)
        return rows

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, asked = self._session, set(self._only or ())
        if absent := sorted(asked - self._groups):
            for sentence in session.inputs.iter_elsewhere(absent):
                session.account.say(sentence)
            session.account.say(f"not among the groups of these partitions: {', '.join(absent)}")
        session.account.finish(
            f"{counted(self._count, 'group')} with {counted(self._offsets, 'offset')}, "
            f"{session.inputs.partitions_read}{self._rules.in_words()}",
            found=self._count,
            names=sorted(asked),
        )
