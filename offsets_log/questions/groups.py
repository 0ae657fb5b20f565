"""All groups: kind and state, when they last did something, and which can go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from offsets_log.data_directory.lag import GROUP_LAG_COLUMNS, with_lags
from offsets_log.errors import InputError
from offsets_log.investigate import groups as g
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.questions.question import FewRows
from offsets_log.replay.group import SHARE
from offsets_log.rows.lost import End, lost_until, of_group
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.session.decide import Open, say_of_hanging
from offsets_log.session.homes import Places
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.newest import counted_to, iter_ahead
from offsets_log.session.rules import Rules
from offsets_log.words import counted, shown_duration, shown_time

if TYPE_CHECKING:
    from offsets_log.session.session import Session

DOUBTFUL = Column("doubtful", "string", "why it may not be the latest state; null if nothing says so")
COMMAND = Column("command", "string", "the command line that deletes the group, quoted for bash")
OF_WHOLE_GROUPS = "is about whole groups, which topics do not choose"
"""Why which can be deleted is not asked of topics."""


@dataclass(frozen=True, kw_only=True)
class GroupsAsked:
    """What is asked of the groups.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        now_ms: until when ages are counted; None for the end of the copy.
        stale_ms: only groups that have written nothing for this long and can be deleted, with `COMMAND`; None for all.
        lag: whether rows have `GROUP_LAG_COLUMNS`; None where the copy has the logs for it.
        bootstrap_server: named in commands.
        doubtful: whether the last column says which groups may have changed since.
    """

    profile: str | None = None
    now_ms: int | None = None
    stale_ms: int | None = None
    lag: bool | None = None
    bootstrap_server: str = "localhost:9092"
    doubtful: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """Columns without which nothing can be answered."""
        return frozenset() if self.stale_ms is None else g.NEEDED_FOR_DELETION


class Groups(FewRows):
    """The question, as `questions.question.Question`; rows are sorted by group."""

    needed = Needed(
        ("group", "state", "members", "offsets"),
        ("lag", "commit_age_ms", "type", "pending", "max_lag", "last_commit_timestamp_ms"),
    )  # fmt: skip

    def __init__(self, session: Session, asked: GroupsAsked) -> None:
        if asked.stale_ms is not None and session.inputs.scope.topic:
            raise InputError(f"which groups are stale {OF_WHOLE_GROUPS}: choose no topics")
        self._session, self._asked = session, asked
        self._counted_to = counted_to(session.inputs, asked.now_ms)
        self._now_ms = self._counted_to.ms
        self._rules = Rules(session, asked.profile)
        self._opened: Open = []
        self._ends: list[End] = []
        self._lag = lag_logs(session, asked.lag)

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        lag = () if self._lag is None else GROUP_LAG_COLUMNS
        command = () if self._asked.stale_ms is None else (COMMAND,)
        return (*g.GROUPS_COLUMNS, *lag, *command, *((DOUBTFUL,) if self._asked.doubtful else ()))

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        server = self._asked.bootstrap_server
        found = self._found
        if self._asked.stale_ms is not None:
            found = [row | {COMMAND.name: g.deletion_command([row], server)} for row in found]
        if self._asked.doubtful:
            lost = lost_until(self._ends, self._session.account.lost, self._session.account.damages)
            found = [row | {DOUBTFUL.name: of_group(lost[row["offsets_partition"]])} for row in found]
        return found

    def commands(self) -> Iterator[str]:
        """Yield as few command lines as delete the groups that can be deleted, if these are asked for."""
        if self._asked.stale_ms is not None:
            yield from g.deletion_commands(self._found, self._asked.bootstrap_server)

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, rows = self._session, self._all
        count = counted(len(rows), "group")
        if self._asked.stale_ms is not None:
            silent = f"wrote nothing for {shown_duration(self._asked.stale_ms)}"
            count = f"{len(self._found)} of {count} {silent} and can be deleted at {shown_time(self._now_ms)}"
            for words in self._of_stale():
                session.account.say(words)
        say_of_lag(session, self._lag)
        for words in self._counted_to.words if rows else ():
            session.account.say(words)
        say_of_hanging(session, self._opened)
        for words in (*self._of_wrong_clocks(), *self._of_later()):
            session.account.say(words)
        session.account.tell_loads(self._rules.profile.name, {row["offsets_partition"] for row in self._found})
        newest_ms = max((row["last_activity_timestamp_ms"] or 0 for row in rows), default=0)
        newest = f"; the newest activity is of {shown_time(newest_ms)}" if newest_ms else ""
        of_topics = bool(session.inputs.scope.topic)
        session.account.finish(
            f"{count}, {session.inputs.partitions_read}{newest}{self._rules.in_words()}",
            found=sum((row["offsets"] or 0) + (row["pending"] or 0) for row in rows) if of_topics else len(rows),
        )

    @cached_property
    def _all(self) -> list[Row]:
        session = self._session
        rows: list[Row] = []
        places = Places(session, self._rules.profile, "row")
        for log, state, last_ms in places.passing(session.engine.load_active(self._rules.profile)):
            session.account.note_load(log, state.failure)
            self._ends.append((log, state.end_offset))
            self._opened.append((log, (*state.pending, *state.hidden_pending)))
            found = g.groups_rows(state, log.offsets_partition, last_ms, self._now_ms)
            rows += with_lags(self._lag, state, found)
        return sorted(self._with_share_offsets(places.settled(rows)), key=g.groups_row_order)

    @cached_property
    def _found(self) -> list[Row]:
        """The rows that are asked for."""
        return self._all if self._asked.stale_ms is None else [row for row in self._stale if g.can_be_deleted(row)]

    @property
    def _stale(self) -> list[Row]:
        return [row for row in self._all if g.is_stale(row, self._now_ms - (self._asked.stale_ms or 0))]

    def _with_share_offsets(self, rows: list[Row]) -> list[Row]:
        """Return rows with the offsets of share groups, which the offsets topic does not have."""
        if not any(row["type"] == SHARE for row in rows):
            return rows
        from offsets_log.data_directory.share_offsets import group_share_offsets
        from offsets_log.session.share_offsets import share_offsets_of

        found = share_offsets_of(self._session, self._lag)
        told = {} if found is None else group_share_offsets(found.rows(), with_lag=self._lag is not None)
        return [row | told.get(row["group"], {}) if row["type"] == SHARE else row for row in rows]

    def _of_stale(self) -> Iterator[str]:
        """Yield what is to be known before groups are deleted."""
        account = self._session.account
        if self._counted_to.words:
            yield "a group may have written since then: look at the cluster before you delete one"
        if kept := len(self._stale) - len(self._found):
            yield (
                f"{counted(kept, 'group is as old but has', 'groups are as old but have')} members or open "
                "transactions in the log: a broker does not delete a group that has members, and a delete would "
                "cancel its open transactions"
            )
        if timeless := sum(row["last_activity_timestamp_ms"] is None for row in self._all):
            yield f"when {counted(timeless, 'group')} last wrote is not known: not listed"
        if account.corrupt or account.unsupported:
            yield "what could not be read may be newer than what is listed: look at it before you delete"

    def _of_wrong_clocks(self) -> Iterator[str]:
        """Yield a sentence for each log with activity far beyond its end."""
        newest: dict[int | None, int] = {}
        for row in self._all if self._asked.now_ms is None else ():
            partition, time_ms = row["offsets_partition"], row["last_activity_timestamp_ms"] or NO_TIMESTAMP
            newest[partition] = max(time_ms, newest.get(partition, NO_TIMESTAMP))
        return iter_ahead(self._session.inputs, newest)

    def _of_later(self) -> Iterator[str]:
        """Yield a sentence if commits are later than the time from which their ages count."""
        if later := sum((row.get("commit_age_ms") or 0) < 0 for row in self._found):
            has = "the last commit of 1 group is" if later == 1 else f"the last commits of {later} groups are"
            yield (
                f"{has} later than {shown_time(self._now_ms)}, from which ages count: their age is below zero; the "
                "clock of the broker or of this machine is wrong, or --now is before the copy's end"
            )
