"""What is there: a row for each offsets partition, and a card for each data directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from offsets_log.data_directory.card import CARD_COLUMNS, card_rows, given_in_words
from offsets_log.errors import Damage
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE, TRANSACTION_STATE
from offsets_log.questions.question import FewRows
from offsets_log.rows.missing_columns import with_following, without_missing_columns
from offsets_log.rows.survey import INFO_COLUMNS, Survey, written_by_later
from offsets_log.rows.tables import Column, Row
from offsets_log.session.decide import outcomes_of
from offsets_log.session.newest import iter_ahead
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.data_directory.decisions import Outcomes
    from offsets_log.log_format.completeness import Missing
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.coordinator_state import Holdings
    from offsets_log.replay.group import Group
    from offsets_log.session.session import Session


class Info(FewRows):
    """The question about partitions, as `questions.question.Question`.

    Args:
        profile: whose rules to follow; None for what the files show.
        now_ms: the time at which open transactions have timed out; None for none.
    """

    columns: Sequence[Column] = INFO_COLUMNS

    def __init__(self, session: Session, profile: str | None = None, now_ms: int | None = None) -> None:
        self._session = session
        self._outcomes = outcomes_of(session, now_ms)
        report_lacking(session, but_transactions=self._outcomes is not None)
        self._profile = Rules(session, profile).profile

    @cached_property
    def _surveyed(self) -> list[tuple[Row, int | None]]:
        surveyed = self._session.engine.survey_all(self._profile)
        return [(info_row(log, found, held, self._outcomes), held.hidden_groups) for log, found, held in surveyed]

    def rows(self) -> list[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return [row for row, _ in self._surveyed]

    @property
    def hidden_groups(self) -> list[int | None]:
        """Of each partition, as of `Holdings`."""
        return [hidden for _, hidden in self._surveyed]

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, rows, counted_in = self._session, self.rows(), "records"
        if session.inputs.scope.group or session.inputs.scope.topic:
            counted_in = "offsets" if session.inputs.scope.topic else "groups"
            session.account.say(
                "only groups and offsets are chosen by -g and -t: records and all else are of whole logs"
            )
        for words in iter_ahead(session.inputs, {row["offsets_partition"]: row["last_timestamp_ms"] for row in rows}):
            session.account.say(words)
        session.account.finish(
            f"{session.inputs.partitions_read}, {counted(sum(row['records'] for row in rows), 'record')}",
            found=sum(row[counted_in] for row in rows),
        )


class Cards(FewRows):
    """The question about data directories, as `questions.question.Question`.

    Attributes:
        given: what they are together, in words.
    """

    columns: Sequence[Column] = CARD_COLUMNS

    def __init__(self, session: Session) -> None:
        self._session = session
        self.given = given_in_words(session.inputs.clusters.identities)

    @cached_property
    def _found(self) -> list[Row]:
        found = cards_of(self._session)
        report_lacking(self._session)
        return found

    def rows(self) -> list[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return self._found

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        self._session.account.finish(self.given)


def cards_of(session: Session) -> list[Row]:
    """Return the cards of all given data directories; report and count what cannot be read of them."""
    damages: list[Damage] = []
    rows = list(card_rows(session.inputs.clusters, session.inputs.user_partitions, damages))
    for damage in damages:
        session.account.on_damage(damage)
    return rows


def report_lacking(session: Session, *, but_transactions: bool = False) -> None:
    """Report and count the logs of the coordinators' topics that should be here and are not.

    Args:
        but_transactions: leave out those of transactions, which were reported.
    """
    for topic in (SHARE_GROUP_STATE, *(() if but_transactions else (TRANSACTION_STATE,))):
        for damage in session.inputs.lacking(topic):
            session.account.on_damage(damage)


FOLLOWING = {
    "bytes": {"size_bytes"},
    "batch_base_offset": {"batches"},
    "record_offset": {"first_offset", "end_offset", "gaps", "missing_offsets", "missing"},
    "committed_offset": {"offsets", "orphans"},
    "state": {"group_kinds"},
    "magic": {"magics"},
    "value_version": {"written_by"},
    "is_transactional": {"open_transactions"},
}
"""A column of other commands that a source may lack → the columns here that depend on it."""


def info_row(log: PartitionLog, found: Survey, held: Holdings, outcomes: Outcomes | None = None) -> Row:
    """Return the row of one offsets partition: its contents and what a load makes of them; null for unknown facts.

    Args:
        outcomes: tells what becomes of open transactions; None if nothing does.
    """
    kinds = found.kinds
    told = {} if outcomes is None else outcomes.cells(log, held.pending)
    row = {
        "offsets_partition": found.offsets_partition,
        "files": found.files,
        "size_bytes": found.size_bytes,
        "batches": found.batches,
        "records": found.records,
        "tombstones": kinds.tombstones,
        "first_offset": found.first_offset,
        "end_offset": found.end_offset,
        "gaps": found.gaps,
        "missing_offsets": found.missing_offsets,
        "first_timestamp_ms": kinds.first_timestamp_ms,
        "last_timestamp_ms": kinds.last_timestamp_ms,
        "cleaned_until": log.cleaned_until,
        "groups": len(held.groups),
        "offsets": held.offsets,
        "orphans": held.orphans,
        "corrupt": kinds.corrupt,
        "unsupported": kinds.unsupported,
        "record_names": dict(kinds.record_names.most_common()),
        "group_kinds": _kinds(held.groups),
        "magics": {str(magic): count for magic, count in sorted(kinds.magics.items())},
        "compression": dict(kinds.codecs.most_common()),
        "written_by": dict((kinds.releases + written_by_later(held.groups)).most_common()),
        "open_transactions": [
            {"producer_id": producer_id, "first_record_offset": offset, "first_timestamp_ms": time, "records": count}
            | told.get(producer_id, {})
            for producer_id, (offset, time, count) in sorted(found.open_transactions.items())
        ],
        "tails": list(found.tails),
        "missing": [missing_cells(missing) for missing in found.missing],
    }
    return without_missing_columns(row, with_following(log.missing_columns, FOLLOWING))


def missing_cells(missing: Missing) -> dict[str, Any]:
    """Return missing log in the form that JSON has."""
    return {
        "first_offset": missing.first_offset,
        "last_offset": missing.last_offset,
        "shown_by": missing.shown_by,
        "explained_by": missing.explained_by,
    }


SIMPLE = "simple"
"""What groups are called here that `groups`, as Kafka does, lists as classic."""


def _kinds(groups: Iterable[Group]) -> dict[str, int]:
    """Return how many groups there are of each kind, ordered by name where counts are equal."""
    counts = Counter(SIMPLE if group.is_simple else group.kind for group in groups)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
