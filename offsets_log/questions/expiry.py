"""When a coordinator's expiry would remove each offset and group, and by which rule."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.errors import AskedError
from offsets_log.questions.question import FewRows
from offsets_log.replay.expiry import ERAS, cycle_of
from offsets_log.rows.expiry import EXPIRY_COLUMNS
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import with_raw_texts
from offsets_log.session.brokers import Brokers
from offsets_log.session.homes import Places
from offsets_log.session.rules import Rules
from offsets_log.session.scope import BrokerOptions
from offsets_log.words import shown_duration, shown_time

if TYPE_CHECKING:
    from offsets_log.replay.expiry import Era, GroupExpiry
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

RETENTION = "offsets.retention.minutes"
"""The setting cannot be changed while a broker runs, so that the metadata does not have it
(``DynamicBrokerConfig.java``)."""


@dataclass(frozen=True, kw_only=True)
class ExpiryAsked:
    """What is asked of expiry.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        era: a key of `ERAS`, whose rules of expiry; None for those of the profile.
        now_ms: the time of the expiry; None for now.
        retention_ms: the broker's ``offsets.retention.minutes``; None for the era's default.
        expired_only: whether only what would be removed is shown.
        broker: whether the answer is that of a broker which starts with these files.
    """

    profile: str | None = None
    era: str | None = None
    now_ms: int | None = None
    retention_ms: int | None = None
    expired_only: bool = False
    broker: BrokerOptions = field(default_factory=BrokerOptions)

    def check(self) -> None:
        """Raise AskedError if the era is of another profile than the one that is asked for."""
        if self.era is not None:
            era_of(self.profile, self.era)


class Expiry(FewRows):
    """The question, as `questions.question.Question`; rows are sorted as offsets are, each group after its own."""

    columns = EXPIRY_COLUMNS
    needed = Needed(
        ("group", "topic", "partition", "expired", "expires_at_ms"),
        ("committed_offset", "kind", "reason"),
    )  # fmt: skip

    def __init__(self, session: Session, asked: ExpiryAsked) -> None:
        self._session, self._asked = session, asked
        self._now_ms = int(time.time() * 1000) if asked.now_ms is None else asked.now_ms
        self.rules = Rules(session, asked.profile if asked.era is None else era_of(asked.profile, asked.era).profile)
        self._era = era_of(self.rules.name, asked.era)
        self._retention = self._era.retention(asked.retention_ms)
        self._counts, self._found = "", 0
        if asked.retention_ms is None and any(one.meta for one in session.inputs.clusters.identities):
            session.account.say(
                f"the retention is this era's default: the broker's own {RETENTION} stands in server.properties, which "
                "is in no data directory, nor in the cluster's metadata; give it with --retention"
            )

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        inputs, broker = self._session.inputs, self._asked.broker
        rows: list[Row] = []
        brokers = Brokers(self._session, self.rules.profile, broker)
        # All topics, for a group goes with the last of all its offsets.
        places = Places(self._session, brokers.profile, "row")
        for part in places.passing(brokers.load(all_topics=True)):
            brokers.say(part)
            log, state, *_ = part
            for expiry in cycle_of(state, self._now_ms, self._retention):
                rows += _rows(expiry, log.offsets_partition)
        rows = rows if broker.as_broker else places.settled(rows)
        if inputs.scope.topic:
            rows = [row for row in rows if row["kind"] == "offset" and inputs.shows_topic(row["topic"])]
        self._counts, self._found = ", ".join(_count(rows, kind) for kind in ("offset", "group")), len(rows)
        if self._asked.expired_only:
            rows = [row for row in rows if row["expired"]]
        return sorted(rows, key=_order)

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        self._session.account.finish(
            f"{self._counts} expired at {shown_time(self._now_ms)} with a retention of "
            f"{shown_duration(self._retention.retention_ms)}, {self._session.inputs.partitions_read}"
            f"{self.rules.in_words()}; expiry as in {self._era.releases}",
            found=self._found,
        )


def era_of(profile: str | None, name: str | None) -> Era:
    """Return the era; it decides the profile too, unless another one was asked for. Raises AskedError."""
    era = ERAS[name or profile or ""]
    if profile is not None and era.profile != profile:
        raise AskedError(f"--era {era.name} is of --profile {era.profile}, not {profile}: leave --profile out")
    return era


def _rows(expiry: GroupExpiry, offsets_partition: int | None) -> list[Row]:
    rows: list[Row] = []
    for offset in expiry.offsets:
        value = offset.value
        row = {
            "kind": "offset",
            "group": value.group,
            "topic": value.topic,
            "partition": value.partition,
            "committed_offset": value.committed_offset,
            "commit_timestamp_ms": value.commit_timestamp_ms,
            "expired": offset.expired,
            "expires_at_ms": offset.expires_at_ms,
            "rule": offset.rule,
            "reason": offset.reason,
            "offsets_partition": offsets_partition,
        }
        rows.append(with_raw_texts(row, ("group", "topic")))
    row = {
        "kind": "group",
        "group": expiry.group.group_id,
        "expired": expiry.removed,
        "expires_at_ms": expiry.removed_at_ms,
        "rule": expiry.rule,
        "reason": expiry.reason,
        "offsets_partition": offsets_partition,
    }
    rows.append(with_raw_texts({column.name: row.get(column.name) for column in EXPIRY_COLUMNS}, ("group",)))
    return rows


def _count(rows: list[Row], kind: str) -> str:
    expired = [row["expired"] for row in rows if row["kind"] == kind]
    return f"{sum(expired)} of {len(expired)} {kind}s"


def _order(row: Row) -> tuple[str, bool, str, int, int]:
    """Return a sort key as in `compact`, with each group after its offsets."""
    is_group = row["kind"] == "group"
    return row["group"], is_group, row["topic"] or "", row["partition"] or 0, row["offsets_partition"] or 0
