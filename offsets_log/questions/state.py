"""What a coordinator holds after loading: groups, members, committed and pending offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from offsets_log.coordinator_document import MEMORY_COLUMNS, Memory
from offsets_log.data_directory.lag import LAG_COLUMNS, with_lag
from offsets_log.questions.offsets import Offsets
from offsets_log.rows.groups import nested_member
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.session.brokers import Brokers
from offsets_log.session.decide import DecideOptions, begin_to_decide, say_of_decided
from offsets_log.session.homes import Places
from offsets_log.session.inputs import read_topic_ids
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.rules import Rules
from offsets_log.session.scope import BrokerOptions
from offsets_log.session.share_offsets import share_offsets_of
from offsets_log.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.session.session import Session

NEEDED = {
    "groups": Needed(("group", "state", "generation"), ("members", "protocol", "type", "leader")),
    "members": Needed(("group", "client_id"), ("host", "assignment", "member_id")),
}
"""Table → its columns in the order of need; the others are tables of offsets."""
TABLES = tuple(MEMORY_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class StateAsked:
    """What is asked of the state.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        expand: whether members have what else their subscriptions and assignments contain.
        decide: whether open transactions whose outcome is certain are ended.
        topic_ids: a file with a JSON object of topic ids and names, for records that name topics by id only.
        lag: whether offsets have `LAG_COLUMNS`; None where the copy has the logs for it.
        now_ms: the time to which ages count, and at which transactions have timed out; None for that of the newest
            record, and for none.
        broker: whether the state is that of a broker which starts with these files.
    """

    profile: str | None = None
    expand: bool = False
    decide: bool = False
    topic_ids: str | None = None
    lag: bool | None = None
    now_ms: int | None = None
    broker: BrokerOptions = field(default_factory=BrokerOptions)


class State:
    """The question, as `questions.question.Question`; one of its `TABLES` is its rows, all of it is its document."""

    def __init__(self, session: Session, asked: StateAsked, table: str = TABLES[0]) -> None:
        self._session, self._asked, self._table = session, asked, table
        self._lag = lag_logs(session, asked.lag)
        outcomes = begin_to_decide(session, DecideOptions(asked.decide, asked.now_ms))
        self._rules = Rules(session, asked.profile)
        self.memory = Memory(self._rules.profile, outcomes, share_offsets_of(session, self._lag))

    @cached_property
    def document(self) -> Row:
        """The whole answer, in the form that JSON has. Raises OffsetsLogError."""
        session, asked, memory = self._session, self._asked, self.memory
        places = Places(session, memory.profile, "row")
        for part in places.passing(Brokers(session, memory.profile, asked.broker).load()):
            memory.add(*part)
            session.account.is_wrong |= any(outcome.at_start is not None for outcome in part[3].values())
        memory.name_topics(read_topic_ids(asked.topic_ids), session.inputs.topic_ids)
        document = memory.document(session.account.damages, expand=asked.expand)
        if not asked.broker.as_broker:
            document |= places.settled_document(document)
        if self._lag is not None:
            document["offsets"] = list(with_lag(self._lag, document["offsets"], asked.now_ms))
        return document

    @property
    def needed(self) -> Needed:
        """The columns in the order of need."""
        return NEEDED.get(self._table, Offsets.needed)

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows; those of groups have more in JSON."""
        more = LAG_COLUMNS if self._lag is not None and self._table == "offsets" else ()
        return (*self.memory.columns(self._table, expand=self._asked.expand), *more)

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return self.memory.rows(self.document, self._table, expand=self._asked.expand)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as one Arrow table. Raises OffsetsLogError."""
        from offsets_log.columnar.materialize.arrow import table_of_rows

        rows = list(self.rows())
        yield table_of_rows([*map(nested_member, rows)] if self._table == "members" else rows, self.columns)

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, document = self._session, self.document
        for words in self.memory.warnings():
            session.account.say(words)
        say_of_lag(session, self._lag)
        say_of_decided(session)
        offsets, pending = len(document["offsets"]), len(document["pending"])
        session.account.finish(
            f"{counted(len(document['groups']), 'group')}, {counted(offsets, 'offset')}, "
            f"{pending} pending, {session.inputs.partitions_read}{self._rules.in_words()}",
            found=offsets + pending + (0 if session.inputs.scope.topic else len(document["groups"])),
        )
