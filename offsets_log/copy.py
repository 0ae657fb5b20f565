"""The library's face: a copy that is open, and the questions to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from offsets_log.asked_time import OfLog
from offsets_log.opened import Moment, Names, OpenedCopy, moment_of, names_of
from offsets_log.session.decide import DecideOptions
from offsets_log.session.listener import Remarks
from offsets_log.session.scope import Scope
from offsets_log.session.session import Session

if TYPE_CHECKING:
    from offsets_log.table import Table


class Copy(OpenedCopy):
    """A copy of ``__consumer_offsets``: files of a broker, an archive, a dump, or a store. Nothing is written to it.

    It is opened when the first question is read, and closed at the end of a with statement. Each method is a question
    that the command line has too, by the same name, and returns a `Table` with the same rows.
    """

    def offsets(self, *, group: Names = None, topic: Names = None, **asked: Any) -> Table:
        """Return the latest committed offset of every group, topic and partition.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            asked: more, as of `questions.offsets_asked.OffsetsAsked`.
        """
        from offsets_log.questions.offsets import Offsets
        from offsets_log.questions.offsets_asked import NEEDS, OffsetsAsked

        question = OffsetsAsked(doubtful=True, **asked)
        return self._table(lambda session: Offsets(session, question), needs=NEEDS, group=group, topic=topic)

    def history(
        self, group: Names = None, *, topic: Names = None, from_time: Moment | None = None, **asked: Any
    ) -> Table:
        """Return every commit in order, what was served after each, and who held the partition then.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            from_time: only rows of that time and later.
            asked: more, as of `questions.history.HistoryAsked`.

        Raises:
            ValueError: ``from_time`` is no time.
        """
        from offsets_log.questions.history import NEEDS, HistoryAsked, OffsetHistory

        question = HistoryAsked(from_time=None if from_time is None else self._ms(from_time), **asked)
        return self._table(lambda session: OffsetHistory(session, question), needs=NEEDS, group=group, topic=topic)

    def share_history(
        self,
        group: Names = None,
        *,
        topic: Names = None,
        topic_partition: Iterable[int] = (),
        rewinds: bool = False,
    ) -> Table:
        """Return the records about share groups in ``__share_group_state``, and where each group stood after them.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            topic_partition: only these partitions of them.
            rewinds: only records by which a start offset went back.
        """
        from offsets_log.questions.share_history import ShareHistory

        partitions = frozenset(topic_partition)
        return self._table(lambda session: ShareHistory(session, partitions, rewinds=rewinds), group=group, topic=topic)

    def records(self, columns: Iterable[str] | None = None, *, group: Names = None, topic: Names = None) -> Table:
        """Return every record in log order, decoded; batches of it are read while they are asked for.

        Args:
            columns: names of those that are wanted, in this order; None for all.
            group: only records of these groups; markers of transactions belong to none.
            topic: only offsets of these topics.
        """
        from offsets_log.questions.records import NEEDS, Records

        names = None if columns is None else tuple(columns)
        wanted = None if names is None else {*names, *(f"{name}_ms" for name in names)}
        return self._table(
            lambda session: Records(session, wanted), needs=NEEDS, group=group, topic=topic, columns=names
        )

    def rebalances(self, group: Names = None, **asked: Any) -> Table:
        """Return the timeline of every group: generations, members that join and leave, partitions that move.

        Args:
            group: only these groups; globs, or names as they are.
            asked: more, as of `questions.rebalances.RebalancesAsked`.
        """
        from offsets_log.questions.rebalances import Rebalances, RebalancesAsked

        question = RebalancesAsked(**asked)
        return self._table(lambda session: Rebalances(session, question), group=group)

    def raw_records(self, columns: Iterable[str] | None = None) -> Table:
        """Return every record in log order as Kafka's clients see it, with raw keys and values.

        Batches of it are read while they are asked for. The columns have the names of Spark's Kafka source.

        Args:
            columns: names of those that are wanted, in this order; None for all.
        """
        from offsets_log.questions.raw_records import RawRecords
        from offsets_log.questions.records import NEEDS

        return self._table(RawRecords, needs=NEEDS, columns=columns)

    def check(self, *, group: Names = None, topic: Names = None, **asked: Any) -> Table:
        """Return whether each partition would load on releases of Kafka, and what else is wrong with it.

        Args:
            group: only findings of these groups; globs, or names as they are.
            topic: only findings about offsets of these topics.
            asked: more, as of `questions.check.CheckAsked`.
        """
        from offsets_log.questions.check import NEEDS, Check, CheckAsked

        question = CheckAsked(**asked)
        return self._table(lambda session: Check(session, question), needs=NEEDS, group=group, topic=topic)

    def groups(self, group: Names = None, *, topic: Names = None, **asked: Any) -> Table:
        """Return all groups: kind and state, members, number of offsets, when they last did something.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only offsets of these topics are counted.
            asked: more, as of `questions.groups.GroupsAsked`.
        """
        from offsets_log.questions.groups import Groups, GroupsAsked

        question = GroupsAsked(doubtful=True, **asked)
        return self._table(lambda session: Groups(session, question), needs=question.needs, group=group, topic=topic)

    def members(self, group: Names = None, **asked: Any) -> Table:
        """Return the members of all groups, with what they subscribe to and have.

        Args:
            group: only these groups; globs, or names as they are.
            asked: more, as of `questions.state.StateAsked`.
        """
        return self._of_state("members", group, None, asked)

    def pending(self, group: Names = None, *, topic: Names = None, **asked: Any) -> Table:
        """Return the offsets of open transactions.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            asked: more, as of `questions.state.StateAsked`.
        """
        return self._of_state("pending", group, topic, asked)

    def state(self, group: Names = None, *, topic: Names = None, **asked: Any) -> dict[str, Any]:
        """Return all that a coordinator holds after loading, as the document of `rebuild`.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only offsets of these topics.
            asked: more, as of `questions.state.StateAsked`.

        Raises:
            OffsetsLogError: nothing can be read there.
        """
        from offsets_log.questions.state import State, StateAsked

        return State(self._begun(self._asking(group, topic), Remarks()), StateAsked(**asked)).document

    def transactions(self, group: Names = None, *, topic: Names = None, **asked: Any) -> Table:
        """Return what is open: of whom, since when, what it keeps from being cleaned, and what ends it.

        Args:
            group: only transactions with offsets of these groups; globs, or names as they are.
            topic: only those with offsets of these topics.
            asked: more, as of `questions.transactions.Transactions`.
        """
        from offsets_log.questions.transactions import NEEDS, Transactions

        return self._table(lambda session: Transactions(session, **asked), needs=NEEDS, group=group, topic=topic)

    def info(self, *, group: Names = None, topic: Names = None, **asked: Any) -> Table:
        """Return what is there, a row for each offsets partition: spans, gaps, damage, kinds of records and groups.

        Args:
            group: only these groups are counted; globs, or names as they are.
            topic: only offsets of these topics are counted.
            asked: more, as of `questions.info.Info`.
        """
        from offsets_log.questions.info import Info

        return self._table(lambda session: Info(session, **asked), group=group, topic=topic)

    def cards(self) -> Table:
        """Return whose data directories these are, and how their brokers were stopped: a row for each directory."""
        from offsets_log.questions.info import Cards

        return self._table(Cards)

    @property
    def problems(self) -> Table:
        """What was damaged, missing or doubtful, piece by piece."""
        from offsets_log.questions.problems import Problems

        return self._table(Problems)

    @property
    def tables(self) -> Mapping[str, Callable[[], Table]]:
        """Name of each table in SQL → the question that it is."""
        return {
            "offsets": lambda: self.offsets(unstable=True),
            "pending": self.pending,
            "groups": self.groups,
            "members": self.members,
            "records": self.records,
            "history": self.history,
            "transactions": self.transactions,
            "checks": self.check,
            "partitions": self.info,
            "problems": lambda: self.problems,
        }

    def sql(self, query: str) -> Table:
        """Return the answer of DuckDB (extra ``sql``) to a query of `tables`; only those that it names are read.

        Raises:
            SqlError: DuckDB is not installed; or, when the table is read, the query is wrong.
        """
        from offsets_log.sql import answered

        return answered(self.tables, query)

    def share_offsets(self, *, group: Names = None, topic: Names = None, lag: bool | None = None) -> Table:
        """Return where share groups are in their topics, as the copy of ``__share_group_state`` has it at its end.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            lag: whether there are ends of partitions; None where the copy has the logs for it.
        """
        from offsets_log.questions.share_offsets import ShareOffsets

        return self._table(lambda session: ShareOffsets(session, lag), group=group, topic=topic)

    def expire(self, *, group: Names = None, topic: Names = None, **asked: Any) -> Table:
        """Return when expiry would remove each offset and group, and by which rule.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only offsets of these topics.
            asked: more, as of `questions.expiry.ExpiryAsked`.
        """
        from offsets_log.questions.expiry import Expiry, ExpiryAsked
        from offsets_log.replay.expiry import NEEDED_COLUMNS

        question = ExpiryAsked(**asked)
        question.check()
        needs = frozenset(NEEDED_COLUMNS)
        return self._table(lambda session: Expiry(session, question), needs=needs, group=group, topic=topic)

    def top(self, *, group: Names = None, topic: Names = None, **asked: Any) -> Table:
        """Return who writes to the topic: records, bytes, garbage, no-op commits, commits per second.

        Args:
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            asked: more, as of `questions.top.TopAsked`.
        """
        from offsets_log.questions.top import Top, TopAsked

        question = TopAsked(**asked)
        return self._table(lambda session: Top(session, question), needs=question.needs, group=group, topic=topic)

    def diff(
        self,
        after: Copy | None = None,
        *,
        since: Moment | None = None,
        since_offset: int | None = None,
        group: Names = None,
        topic: Names = None,
        profile: str | None = None,
        **asked: Any,
    ) -> Table:
        """Return what changed between this copy and a later one, or between an earlier moment of it and its end.

        Args:
            after: the later copy; None for this one, of which ``since`` or ``since_offset`` is the earlier moment.
            since: the state before the first batch that is later than this.
            since_offset: the state before this record offset, in every partition.
            group: only these groups; globs, or names as they are.
            topic: only these topics.
            profile: whose rules to follow; None for what the files show.
            asked: more, as of `questions.differences.DiffAsked`.

        Raises:
            ValueError: there are not two states, or more, or ``since`` is no time.
        """
        from offsets_log.questions.compared import copies_of, moments_of
        from offsets_log.questions.differences import DiffAsked, Differences
        from offsets_log.questions.since import Since

        from_offset = () if since_offset is None else ((None, since_offset),)
        earlier = Since(from_time=None if since is None else self._ms(since), from_offset=from_offset)
        if earlier.is_given == (after is not None):
            raise ValueError("give a later copy, or since or since_offset for two moments of this one")
        question, decide = DiffAsked(**asked), DecideOptions()
        needs = earlier.needs(question.table)

        def of_copies(session: Session) -> Differences:
            before = self._begun(self._asking(group, topic), Remarks(), needs)
            return Differences(copies_of(before, session, profile, decide), question)

        def of_moments(session: Session) -> Differences:
            return Differences(moments_of(session, profile, earlier, decide), question)

        if after is None:
            return self._table(of_moments, needs=needs, group=group, topic=topic)
        return after._table(of_copies, needs=needs, group=group, topic=topic)

    def _of_state(self, table: str, group: Names, topic: Names, asked: dict[str, Any]) -> Table:
        from offsets_log.questions.state import State, StateAsked

        question = StateAsked(**asked)
        return self._table(lambda session: State(session, question, table), group=group, topic=topic)


def open(
    *paths: str | os.PathLike[str],
    until: Moment | None = None,
    until_offset: int | None = None,
    group: Names = None,
    topic: Names = None,
    offsets_partition: int | Iterable[int] = (),
    **more: Any,
) -> Copy:
    """Open a copy: a broker's data directory, segments, an archive, a dump, or a URL of a store; several are one copy.

    Args:
        paths: where it is.
        until: from the first batch later than this on, nothing is read.
        until_offset: record offset before which reading stops, in every partition.
        group: globs or names of groups; a question may ask for others. ``topic`` likewise.
        offsets_partition: only these partitions of ``__consumer_offsets``.
        more: fields of `session.scope.Scope`.

    Raises:
        ValueError: there is no path, or ``until`` is no time.
    """
    if not paths:
        raise ValueError("give the path of a copy: a broker's data directory, an archive, or a URL")
    partitions = (offsets_partition,) if isinstance(offsets_partition, int) else tuple(offsets_partition)
    moment = None if until is None else moment_of(until)
    scope = Scope(
        paths=tuple(os.fspath(path) for path in paths),
        until_time=None if isinstance(moment, OfLog) else moment,
        until_offset=() if until_offset is None else ((None, until_offset),),
        group=names_of(group),
        topic=names_of(topic),
        offsets_partition=partitions,
        **more,
    )
    return Copy(scope, moment if isinstance(moment, OfLog) else None)
