"""What changed between two copies, or between two moments of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from offsets_log.investigate import diff as d
from offsets_log.questions.question import FewRows
from offsets_log.replay.topic_names import TopicNames
from offsets_log.session.inputs import read_topic_ids
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.events import LogEvent, Wants
    from offsets_log.investigate.copies import ComparedPartition
    from offsets_log.investigate.removal import Removal
    from offsets_log.questions.compared import Comparison
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.partial import GroupTopicPartition
    from offsets_log.rows.tables import Column, Row

OFFSETS = "offsets"
OF_GROUPS = {
    "groups": (d.group_changes, d.GROUPS_DIFF_COLUMNS, d.GROUP_FACTS),
    "members": (d.member_changes, d.MEMBERS_DIFF_COLUMNS, d.MEMBER_FACTS),
}
"""Table → what compares its rows, its columns, and what of it is compared."""


@dataclass(frozen=True, kw_only=True)
class DiffAsked:
    """What is asked of two states.

    Attributes:
        table: offsets, groups or members.
        retention_ms: the broker's ``offsets.retention.minutes``, which tells expired offsets from deleted ones.
        why: whether rows of offsets have `WHY_COLUMNS`.
        topic_ids: a file with a JSON object of topic ids and names, besides those in the files; None for no more.
    """

    table: str = OFFSETS
    retention_ms: int | None = None
    why: bool = False
    topic_ids: str | None = None


class Differences(FewRows):
    """The question, as `questions.question.Question`."""

    def __init__(self, comparison: Comparison, asked: DiffAsked) -> None:
        self._comparison, self._asked = comparison, asked
        self._unchanged = self._found = 0
        self._words = ""

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        if self._asked.table != OFFSETS:
            return OF_GROUPS[self._asked.table][1]
        return *d.DIFF_COLUMNS, *(d.WHY_COLUMNS if self._asked.why else ())

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        rows = self._of_offsets() if self._asked.table == OFFSETS else self._of_groups()
        self._found = len(rows)
        return rows

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        comparison = self._comparison
        comparison.session.account.finish(
            f"{self._words}, {counted(len(comparison.parts), 'partition')}{comparison.rules.in_words()}",
            found=self._found + self._unchanged,
        )

    def _of_offsets(self) -> list[Row]:
        comparison, asked = self._comparison, self._asked
        _say_not_compared(comparison, d.ANSWER)
        rows: list[Row] = []
        unknown = of_retention = 0
        for part in comparison.parts:
            before, after = part.before.state, part.after.state
            changes, same = d.changes_between(before, after)
            self._unchanged += same
            gone = {change.key for change in changes if change.is_removal}
            removals = _removals(comparison, part, gone, asked.retention_ms)
            unknown += sum(not removal.is_known for removal in removals.values())
            of_retention += sum(removal.is_of_retention for removal in removals.values())
            for change in changes:
                removal = removals.get(change.key)
                row = d.diff_row(change, removal, before, after)
                rows.append(row | d.why_columns(change, removal, after) if asked.why else row)
        rows.sort(key=itemgetter("group", "topic", "partition"))
        if unknown:
            comparison.session.account.say(
                f"the log does not show whether {unknown} of the deleted offsets expired; "
                + ("--retention with the broker's own would tell" if of_retention else "--why says more")
            )
        counts = Counter(row["change"] for row in rows)
        words = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
        self._words = f"{words or 'no change'}; {counted(self._unchanged, 'offset')} unchanged"
        return rows

    def _of_groups(self) -> list[Row]:
        comparison, table = self._comparison, self._asked.table
        compare, _, facts = OF_GROUPS[table]
        learned = [held.state.topic_names for part in comparison.parts for held in (part.after, part.before)]
        names = TopicNames(read_topic_ids(self._asked.topic_ids), comparison.topic_ids, *learned)
        before, after = (
            [row for part in comparison.parts for row in _group_rows(comparison, part, held(part).state, names)]
            for held in (attrgetter("before"), attrgetter("after"))
        )
        _say_not_compared(comparison, facts)
        rows, self._unchanged = compare(before, after, comparison.missing_columns)
        self._words = f"{len(rows)} {table} changed, {self._unchanged} unchanged"
        return rows


def _removals(
    comparison: Comparison, part: ComparedPartition, gone: set[GroupTopicPartition], retention: int | None
) -> dict[GroupTopicPartition, Removal]:
    from offsets_log.investigate.removal import of_damaged_log, removals
    from offsets_log.replay.expiry import ERAS

    if not gone:
        return {}
    session = comparison.session
    if (end_offset := part.after.end_offset) is not None:
        session = session.bounded(((None, end_offset),))
    else:
        session = session.bounded(session.inputs.scope.until_offset, session.inputs.scope.until_time)

    def read(selection: Selection, wants: Wants) -> Iterator[LogEvent]:
        if len(part.after.logs) > 1:  # one of them may remove a group that is in the next
            selection = replace(selection, key=None)
        for log in part.after.logs:
            yield from session.engine.selected(log, selection, wants, part.start or 0)

    era, release = ERAS[comparison.rules.name], session.inputs.scope.kafka
    found = removals(read, part.before.state, part.after.state, part.start, gone, era, retention, release)
    return found if all(map(comparison.session.account.has_read_all_of, part.after.logs)) else of_damaged_log(found)


def _group_rows(
    comparison: Comparison, part: ComparedPartition, state: CoordinatorState, names: TopicNames
) -> Iterator[Row]:
    """Return rows of one copy's groups; a copy without offsets cannot show groups that only have offsets."""
    from offsets_log.rows.groups import group_row

    for group in state.groups.values():
        if group.has_record or "committed_offset" not in comparison.missing_columns:
            yield group_row(group, state.profile, names, part.offsets_partition, state.missing_columns_of(group))


def _say_not_compared(comparison: Comparison, facts: Iterable[str]) -> None:
    if missing_columns := sorted(comparison.missing_columns.intersection(facts)):
        comparison.session.account.say(f"not compared, because the inputs do not tell it: {', '.join(missing_columns)}")
