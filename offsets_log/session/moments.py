"""The states that `serve` answers from: the logs of a run replayed up to one moment or another."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from offsets_log.broker.home import at_home
from offsets_log.columnar.materialize.arrow import served_table, table_of_rows
from offsets_log.columnar.materialize.values import finish
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.data_directory.share_offsets import initialized_share_offsets
from offsets_log.disk.urls import without_secrets
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import Retention
from offsets_log.replay.group import SHARE
from offsets_log.replay.partition_count import PartitionCount, doubt_in_words
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import COMPACT_COLUMNS, committed_rows
from offsets_log.serving.expired import unexpired
from offsets_log.serving.log_reader import ServedLogs
from offsets_log.serving.offsets import CommittedOffsets
from offsets_log.serving.state import Cluster, Ends, OffsetsPartitions, Served
from offsets_log.serving.topics import assigned_partitions, end_of, group_configs_of, topics_of
from offsets_log.session.homes import all_groups
from offsets_log.session.session import Session
from offsets_log.session.share_offsets import share_offsets_of, share_topics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from offsets_log.columnar.scan.time_bound import Stop

Part = tuple[PartitionLog, CoordinatorState, pa.Table]
"""A log, the state it leads to, of which the committed offsets may be in the table alone."""


@dataclass(frozen=True)
class Moments:
    """A run's logs, which may be asked for the state at any moment.

    Attributes:
        profile: the rules to answer by.
        given_names: topic id → name, by the user.
        end_offsets: one of `serving.topics.END_OFFSETS`.
        expiry: the moment and the retention by which offsets have expired; None where nothing has.
        failures: offsets partition → what would end its load, by the state loaded last.
    """

    session: Session
    profile: Profile
    given_names: Mapping[bytes, str]
    end_offsets: str
    expiry: tuple[int, Retention] | None = None
    failures: dict[int | None, Problem | None] = field(default_factory=dict)

    @cached_property
    def logs(self) -> ServedLogs:
        """The logs themselves, whatever the moment."""
        return ServedLogs(self.session.inputs.copied_logs, self.session.inputs.logs, self._tell)

    def _tell(self, words: str) -> None:
        """Say what of the logs could not be served, which the exit status says too."""
        self.session.account.is_wrong = True
        self.session.account.say(words)

    def beyond(self, at: int | None) -> str | None:
        """Say that a moment is before the logs begin or after they end; None for any other. Raises OffsetsLogError."""
        return None if at is None else self.session.inputs.beyond(at)

    def stops_at(self, at: int | None) -> list[tuple[PartitionLog, Stop]]:
        """Return the logs that end too early at a moment, as `Inputs.stops`. Raises OffsetsLogError."""
        return [] if at is None else self._bounded(at).inputs.stops

    def at(self, until_time: int | None) -> Served:
        """Return the state at a moment, of which nothing is reported; None is where the run's own bounds are."""
        return self.load(self._bounded(until_time))

    def _bounded(self, until_time: int | None) -> Session:
        return self.session.bounded(self.session.inputs.scope.until_offset, until_time)

    def load(self, session: Session) -> Served:
        """Return the state within the bounds of a session; damage is reported there. Raises OffsetsLogError."""
        inputs = self.session.inputs
        parts = list(self._parts(session, self.profile))
        self.failures.update({log.offsets_partition: state.failure for log, state, _ in parts})
        loaded = {log.offsets_partition: state for log, state, _ in parts}
        count = inputs.count_of(loaded.items())
        if words := doubt_in_words(count, [(number, all_groups(state)) for number, state in loaded.items()]):
            self.session.account.is_wrong = True
            self.session.account.say_once(words)
        homes = at_home(loaded, count)
        states = [(log, homes[log.offsets_partition], table) for log, _, table in parts]
        offsets = CommittedOffsets([(table, state.groups) for _, state, table in states])
        ends = {
            log.offsets_partition: Ends(log.segments[0].base_offset or 0, state.end_offset)
            for log, state, _ in states
            if log.offsets_partition is not None
        }
        groups = {group_id: group for _, state, _ in states for group_id, group in state.groups.items()}
        pending = frozenset(value.key for _, state, _ in states for value in state.pending)
        share_groups = {group_id for group_id, group in groups.items() if group.kind == SHARE}
        shares = share_offsets_of(session, inputs.copied_logs)
        names = TopicNames(self.given_names, inputs.topic_ids, *(state.topic_names for _, state, _ in states))
        topics = topics_of(
            inputs.copied_logs,
            inputs.metadata,
            offsets.highest(),
            {*assigned_partitions(groups.values(), self.profile, names), *(key[1:] for key in pending)},
            ends,
            end_of(inputs.copied_logs, self.logs, self.end_offsets, session.inputs.scope.until_time),
        )
        return Served(
            profile=self.profile,
            groups=dict(sorted(groups.items())),
            offsets=offsets,
            pending=pending,
            topics=topics,
            names=names,
            cluster=self._cluster(),
            offsets_partitions=offsets_partitions_of(loaded.keys(), count),
            share_offsets=initialized_share_offsets(
                share_topics_of(session, share_groups), () if shares is None else shares.rows()
            ),
            has_share_states=shares is not None,
            group_configs=group_configs_of(inputs.metadata),
            logs=self.logs,
        )

    def _parts(self, session: Session, profile: Profile) -> Iterator[Part]:
        if self.expiry is None:
            yield from _parts(session, profile)
            return
        shows = (session.inputs.shows_group, session.inputs.shows_topic)
        for log, state, _ in session.engine.load_whole(profile, whole_groups=True):
            yield _of_values(log, unexpired(state, *self.expiry).showing(*shows))

    def _cluster(self) -> Cluster:
        identities = self.session.inputs.clusters.identities
        told = next((one for one in identities if one.meta is not None), None)
        if told is None:
            return Cluster(directory=without_secrets(self.session.inputs.scope.paths[0]))
        plain = Cluster(directory=told.directory.shown_path)
        node_id = plain.node_id if told.node_id is None or told.node_id < 0 else told.node_id
        return replace(plain, node_id=node_id, cluster_id=told.cluster_id or plain.cluster_id)


def offsets_partitions_of(read: Collection[int | None], count: PartitionCount) -> OffsetsPartitions:
    """Return which offsets partitions are there; without the number of all, where that is a guess."""
    present = frozenset(partition for partition in read if partition is not None)
    return OffsetsPartitions(None if count.is_guess or None in read else count.number, present)


def _parts(session: Session, profile: Profile) -> Iterator[Part]:
    """Replay all partitions up to the bounds, as far as filters show them."""
    engine, inputs = session.engine, session.inputs
    if not engine.is_bulk:
        for log in inputs.logs:
            yield _of_values(log, engine.load(log, profile, Survey.of(log)))
        return
    shows = (inputs.shows_group, inputs.shows_topic)
    for replayed in engine.replay_in_bulk(profile):
        with Scanner() as scanner:
            table = served_table(
                replayed.layout,
                replayed.state,
                scanner,
                shows_group=shows[0],
                shows_topic=shows[1],
                orphans=True,
            )
            state = finish(replayed.layout, replayed.state, scanner, with_offsets=table is None).showing(*shows)
        yield _of_values(replayed.log, state) if table is None else (replayed.log, state, table)


def shown_moment(moment_ms: int) -> str:
    """Return a time as --at takes it; milliseconds beyond the calendar."""
    try:
        return datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{moment_ms} ms"


def _of_values(log: PartitionLog, state: CoordinatorState) -> Part:
    rows = list(committed_rows(state, log.offsets_partition, orphans=True, unstable=False))
    return log, state, table_of_rows(rows, COMPACT_COLUMNS)
