"""The group coordinator as a library object: what a broker has in memory for the offsets partitions it leads.

    from offsets_log.coordinator.log import MemoryLog
    from offsets_log.coordinator.records import OffsetCommit

    log = MemoryLog()
    cache = GroupCoordinatorCache(log, clock=lambda: 1_700_000_000_000, release="4.3")
    cache.startup()
    for partition in range(50):
        cache.on_election(partition, leader_epoch=0)
    cache.commit_offsets("billing", {("invoices", 0): OffsetCommit(42)})
    cache.fetch_offsets("billing", [("invoices", 0)])

An error of a whole request is raised as a `CoordinatorError`; an error of one topic's partition is in the answer, as in
Kafka's responses. Every change is written to the log as one batch before it is applied in memory. Use it from one
thread only. A group is looked up in its own partition only, as the Java coordinator does (``B-5``).

Over 400 lines: one class, whose methods are the requests that a coordinator answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby

from offsets_log.coordinator.answers import (
    NO_OFFSET,
    UNSTABLE,
    Answers,
    Coordinator,
    Cycle,
    FetchedOffset,
    ListedGroup,
    TopicPartition,
    fetched,
)
from offsets_log.coordinator.config import GroupConfig, OffsetConfig, retention_of, writes_of
from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.coordinator.log import OffsetsLog
from offsets_log.coordinator.partition import LoadState, OffsetsPartition
from offsets_log.coordinator.records import (
    NO_PRODUCER,
    OffsetCommit,
    Producer,
    group_tombstones,
    offset_record,
    offset_tombstone,
)
from offsets_log.coordinator.validation import (
    NOBODY,
    MemberIdentity,
    require_empty,
    require_group_id,
    utf16_length,
    validate_commit,
    validate_fetch,
    validate_offset_delete,
)
from offsets_log.kafka_releases import NEWEST
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import tombstones
from offsets_log.replay.group import CLASSIC, SHARE, Group
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import group_row
from offsets_log.rows.tables import Row


class GroupCoordinatorCache:
    """The groups and offsets of the partitions that this broker leads.

    Args:
        log: the log to load from and write to.
        clock: returns the time in epoch milliseconds.
        release: the release whose rules hold: ``4.3``, ``2.8.2``, or ``3.9-java`` for the Java coordinator's preview.
        offset_config: configuration of offsets; by default the release's own.
        group_config: configuration of groups; by default the release's own.
        leaders: offsets partition → broker, for `find_coordinator`; not copied, so that its owner may change it.
    """

    def __init__(
        self,
        log: OffsetsLog,
        clock: Callable[[], int],
        *,
        release: str = NEWEST.name,
        offset_config: OffsetConfig | None = None,
        group_config: GroupConfig | None = None,
        leaders: Mapping[int, int] | None = None,
    ) -> None:
        named = release_named(release)
        self.profile = named.profile
        self.offset_config = offset_config or OffsetConfig.for_release(release)
        self.group_config = group_config or GroupConfig.for_release(release)
        self.leaders = {} if leaders is None else leaders
        self.is_active = False
        self._log = log
        self._clock = clock
        self._version = named.version
        self._is_java = named.asked.is_java
        self._writes = writes_of(named)
        self._retention = retention_of(named, self.offset_config)
        self._expires = False
        self._next_cycle_ms = 0
        self._partitions: dict[int, OffsetsPartition] = {}

    # ----------------------------------------------------------------------------- starting and leading

    def startup(self, enable_metadata_expiration: bool = True) -> None:
        """Begin to answer; before that, all but elections is answered with COORDINATOR_NOT_AVAILABLE.

        Args:
            enable_metadata_expiration: whether `tick` removes what has expired.
        """
        self.is_active = True
        self._expires = enable_metadata_expiration
        self._next_cycle_ms = self._clock()

    def shutdown(self) -> None:
        """Stop to answer; nothing is written."""
        self.is_active = False

    def on_election(self, partition: int, leader_epoch: int) -> bool:
        """Load a partition that this broker leads now, unless the epoch is old (``L-44``); return whether it was.

        A record that ends the load raises nothing: the partition's load state and failure tell it.
        """
        found = self.partition(partition)
        if not found.on_election(leader_epoch):
            return False
        found.next_cycle_ms = self._clock() + self.offset_config.offsets_retention_check_interval_ms
        return True

    def on_resignation(self, partition: int, leader_epoch: int | None = None) -> bool:
        """Forget a partition that another broker leads (``L-43``), unless the epoch is old (``L-44``).

        None never is.
        """
        return self.partition(partition).on_resignation(leader_epoch)

    def partition(self, number: int) -> OffsetsPartition:
        """Return a partition for reading: its load state, failure and damages."""
        if number not in self._partitions:
            self._partitions[number] = OffsetsPartition(
                number, self._log, self.profile, self._writes, self.offset_config
            )
        return self._partitions[number]

    def state(self, partition: int) -> CoordinatorState:
        """Return all that is in memory for a partition, as a finished replay has it; read it before any change."""
        return self.partition(partition).live.state()

    def partition_for(self, group: str) -> int:
        """Return the offsets partition of a group (``records:H1``)."""
        return partition_for(group, self.offset_config.offsets_topic_num_partitions)

    def find_coordinator(self, group: str) -> Coordinator:
        """Return the broker to ask for a group; COORDINATOR_NOT_AVAILABLE if its partition has no leader."""
        number = self.partition_for(group)
        if number not in self.leaders:
            raise CoordinatorError(Errors.COORDINATOR_NOT_AVAILABLE, f"offsets partition {number} has no leader")
        return Coordinator(number, self.leaders[number])

    # ---------------------------------------------------------------------------------------- committing

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetCommit],
        *,
        who: MemberIdentity = NOBODY,
        retention_ms: int | None = None,
    ) -> Answers:
        """Answer OffsetCommit: write all that is not too large as one batch (``W-1``, ``W-7``–``W-10``).

        Args:
            who: the member that commits; NOBODY for a group without members.
            retention_ms: an explicit retention, as requests of version 2 to 4 may have.

        Returns:
            NONE or OFFSET_METADATA_TOO_LARGE by partition; the others are stored all the same (``W-8``).

        Raises:
            CoordinatorError: for the whole request; nothing was stored.
        """
        return self._commit(group, offsets, who, NO_PRODUCER, retention_ms)

    def commit_transactional_offsets(
        self,
        group: str,
        producer: Producer,
        offsets: Mapping[TopicPartition, OffsetCommit],
        *,
        who: MemberIdentity = NOBODY,
    ) -> Answers:
        """Answer TxnOffsetCommit: as `commit_offsets`, but pending until `write_txn_marker` (``W-3``)."""
        require_group_id(group, may_be_empty=False)
        plain = {
            key: OffsetCommit(each.committed_offset, each.metadata, each.leader_epoch) for key, each in offsets.items()
        }
        return self._commit(group, plain, who, producer, None)

    def _commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetCommit],
        who: MemberIdentity,
        producer: Producer,
        retention_ms: int | None,
    ) -> Answers:
        partition = self._partition_of(group)
        validate_commit(
            group,
            partition.live.group(group),
            who,
            transactional=producer.is_transactional,
            is_java=self._is_java,
        )
        now_ms = self._clock()
        if retention_ms is None and self._writes.always_expires:
            retention_ms = self.offset_config.retention_ms
        expire_timestamp_ms = None if retention_ms is None else now_ms + retention_ms
        answers: Answers = {}
        records = []
        for (topic, number), commit in offsets.items():
            if utf16_length(commit.metadata or "") > self.offset_config.offset_metadata_max_bytes:
                answers[topic, number] = Errors.OFFSET_METADATA_TOO_LARGE
                continue
            answers[topic, number] = Errors.NONE
            records.append(offset_record(self._writes, (group, topic, number), commit, now_ms, expire_timestamp_ms))
        partition.append(records, now_ms, producer)
        return answers

    def write_txn_marker(
        self,
        producer: Producer,
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        partitions: Collection[int] | None = None,
    ) -> dict[int, Errors]:
        """Answer WriteTxnMarkers: end a producer's transaction (``W-4``–``W-6``, ``L-13``, ``J-11``).

        Args:
            partitions: offsets partitions; by default the loaded ones in which the transaction is open.

        Returns:
            NONE or what went wrong, by offsets partition.
        """
        self._require_active()
        if partitions is None:
            partitions = [
                each.number
                for each in self._loaded()
                if (writer := each.live.writers.get(producer.producer_id)) is not None and writer.in_transaction
            ]
        answers = {}
        for number in partitions:
            try:
                self.partition(number).append_marker(
                    producer, commit=commit, coordinator_epoch=coordinator_epoch, now_ms=self._clock()
                )
                answers[number] = Errors.NONE
            except CoordinatorError as error:
                answers[number] = error.error
        return answers

    # ------------------------------------------------------------------------------------------ fetching

    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        who: MemberIdentity = NOBODY,
    ) -> dict[TopicPartition, FetchedOffset]:
        """Answer OffsetFetch: the committed offsets if the group exists, else none (``J-15``, ``B-17``).

        Args:
            partitions: which; by default all that the group has committed.
            require_stable: UNSTABLE_OFFSET_COMMIT where an open transaction has an offset, whether the group exists
                or not (``B-2``); 3.7's Java coordinator never says so (``B-8``).
        """
        live = self._partition_of(group).live
        found = live.group(group)
        if found is not None:
            validate_fetch(found, who)
        has_offsets = found is not None and found.kind != SHARE
        if partitions is None:
            partitions = [(topic, number) for _, topic, number in live.committed_keys(group)] if has_offsets else []
        asks = require_stable and not (self._is_java and self._version < (3, 8))
        answers = {}
        for topic, number in partitions:
            key = (group, topic, number)
            if asks and live.is_pending(key):
                answers[topic, number] = UNSTABLE
            else:
                answers[topic, number] = fetched(live.committed(key)) if has_offsets else NO_OFFSET
        return answers

    def list_groups(self, *, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """Answer ListGroups over the loaded partitions, by id; states and types may be in any case.

        Raises:
            CoordinatorError: COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded.
        """
        self._require_active()
        wanted_states, wanted_types = {name.lower() for name in states}, {name.lower() for name in types}
        rows = [
            ListedGroup(group.group_id, group.kind, _protocol_type(group), group.state(self.profile))
            for partition in self._partitions.values()
            if partition.load_state in (LoadState.LOADED, LoadState.LOADING)
            for group in partition.live.groups().values()
        ]
        return sorted(
            (
                row
                for row in rows
                if (not wanted_states or row.state.lower() in wanted_states)
                and (not wanted_types or row.type in wanted_types)
            ),
            key=lambda row: row.group,
        )

    def describe_group(self, group: str) -> Row:
        """Return a group with its members, as `rows.groups.group_row` describes it.

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND, as DescribeGroups 6 says it.
        """
        partition = self._partition_of(group)
        found = self._existing(partition, group)
        return group_row(found, self.profile, TopicNames(partition.live.topic_names), partition.number)

    # ------------------------------------------------------------------------------------------ deleting

    def delete_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> Answers:
        """Answer OffsetDelete (``E-20``).

        Returns:
            NONE or GROUP_SUBSCRIBED_TO_TOPIC by partition; NONE also where there was no offset.

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and others.
        """
        require_group_id(group, may_be_empty=False)
        partition = self._partition_of(group)
        found = self._existing(partition, group)
        is_subscribed = validate_offset_delete(found)
        answers = {
            (topic, number): Errors.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed(topic) else Errors.NONE
            for topic, number in partitions
        }
        keys = {(group, *key) for key, error in answers.items() if error is Errors.NONE}
        live = partition.live
        gone = [key for key in sorted(keys) if live.committed(key) or (self._is_java and live.is_pending(key))]
        records = [offset_tombstone(self._writes, key) for key in gone]
        if not self._is_java and not found.members and not live.pending_keys(group):
            left = set(live.committed_keys(group)).difference(gone)
            records += [] if left else self._group_tombstones(found)  # cleanupGroupMetadata, E-14
        partition.append(records, self._clock())
        return answers

    def delete_group(self, group: str) -> None:
        """Answer DeleteGroups for one group: its offsets' tombstones, then its own, in one batch (``E-19``, ``J-17``).

        Raises:
            CoordinatorError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and others.
        """
        partition = self._partition_of(group)
        found = self._existing(partition, group)
        require_empty(found)
        keys = partition.live.committed_keys(group)
        if self._is_java:
            keys += [key for key in partition.live.pending_keys(group) if key not in keys]
        records = [offset_tombstone(self._writes, key) for key in keys]
        partition.append(records + self._group_tombstones(found), self._clock())

    def _group_tombstones(self, group: Group) -> list[CoordinatorRecord]:
        """Return a group's tombstones; Scala writes none for one that never rebalanced (``E-14``, ``E-15``)."""
        return group_tombstones(group) if self._is_java or group.generation > 0 else []

    # ------------------------------------------------------------------------------------------- expiry

    def tick(self, now_ms: int | None = None) -> Cycle:
        """Run the delete-expired-group-metadata task where it is due; call this now and then.

        A partition of the Java coordinator has its first cycle one ``offsets.retention.check.interval.ms`` after its
        load; the Scala one visits all at startup, and then at each interval (``E-1``). A group's tombstones are one
        batch (``E-17``).

        Args:
            now_ms: the time; the clock's by default.
        """
        now_ms = self._clock() if now_ms is None else now_ms
        cycle = Cycle()
        if not (self.is_active and self._expires):
            return cycle
        interval_ms = self.offset_config.offsets_retention_check_interval_ms
        is_due = now_ms >= self._next_cycle_ms
        for partition in self._loaded():
            if now_ms >= partition.next_cycle_ms if self._is_java else is_due:
                partition.next_cycle_ms = now_ms + interval_ms
                self._expire(partition, now_ms, cycle)
        if is_due:
            self._next_cycle_ms = now_ms + interval_ms
        return cycle

    def _expire(self, partition: OffsetsPartition, now_ms: int, cycle: Cycle) -> None:
        keys = tombstones(partition.live.state(), now_ms, self._retention)
        records = [decode_coordinator_record(key, value) for key, value in keys]
        for _, of_group in groupby(records, key=lambda record: record.group):
            batch = list(of_group)
            try:
                partition.append(batch, now_ms)
            except CoordinatorError as error:
                cycle.failed[partition.number] = error
            else:
                cycle.written.setdefault(partition.number, []).extend(batch)

    # ---------------------------------------------------------------------------------------- the parts

    def _require_active(self) -> None:
        if not self.is_active:
            raise CoordinatorError(Errors.COORDINATOR_NOT_AVAILABLE, "the coordinator has not been started")

    def _partition_of(self, group: str) -> OffsetsPartition:
        self._require_active()
        return self.partition(self.partition_for(require_group_id(group, may_be_empty=True)))

    def _loaded(self) -> Iterator[OffsetsPartition]:
        return (each for each in list(self._partitions.values()) if each.load_state is LoadState.LOADED)

    @staticmethod
    def _existing(partition: OffsetsPartition, group: str) -> Group:
        found = partition.live.group(group)
        if found is None:
            raise CoordinatorError(Errors.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
        return found


def _protocol_type(group: Group) -> str:
    return group.protocol_type or "" if group.kind == CLASSIC else group.kind
