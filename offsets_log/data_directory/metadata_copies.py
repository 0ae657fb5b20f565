"""The copies of ``__cluster_metadata-0`` in data directories, and what the newest one that is whole says.

It is an extra to whoever reads the offsets topic: what is damaged in it is told, and what it would have said is not
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.copied_logs import CopiedPartition, LeaderCopies
from offsets_log.data_directory.directory import DataDirectory, Identity, identify, node_of
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.file_names import CLEAN_SHUTDOWN
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import CLUSTER_METADATA
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.data_directory.cluster_image import PartitionImage, TopicImage
    from offsets_log.data_directory.metadata_log import MetadataReplay
    from offsets_log.data_directory.start import BrokerStart


class MetadataPartition(CopiedPartition, Protocol):
    """The directory of a copy."""

    def open_log(self, base_offset: int) -> AbstractContextManager[Buffer]:
        """Open a segment for its whole contents. Raises InputError."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files in it. Raises InputError."""
        ...


RETENTION = ("retention.ms", "retention.bytes", "segment.ms")
"""Configurations of a topic that decide when its policy deletes."""


@dataclass(frozen=True, slots=True)
class MetadataCopy:
    """One copy.

    Attributes:
        directory: the folder, to show.
        cluster_id: of the data directory it lies in; None where that is not told.
        batches: as `metadata_batches` tells them.
    """

    directory: str
    cluster_id: str | None
    replay: MetadataReplay
    batches: Mapping[tuple[int, int], int]

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Whole ones before those with damage, then the newest."""
        return not self.replay.damages, not self.replay.is_partial, self.replay.end_offset


@dataclass(frozen=True)
class ClusterMetadata:
    """What the copies of one cluster's metadata say.

    Attributes:
        chosen: the copy that is believed.
        copies: all of them.
    """

    chosen: MetadataCopy
    copies: Sequence[MetadataCopy]

    @property
    def replay(self) -> MetadataReplay:
        """The state at the end of the copy that is believed."""
        return self.chosen.replay

    @cached_property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, of topics that are there or once were, as any copy says."""
        names: dict[bytes, str] = {}
        for copy in (*self.copies, self.chosen):  # the last word is its
            names |= copy.replay.topic_names
        return names

    @cached_property
    def _topics(self) -> dict[str, TopicImage]:
        return {topic.name: topic for topic in self.replay.image.topics.values()}

    def partition_count(self, topic: str) -> int | None:
        """Return how many partitions a topic has; None if there is none, or not all of its partitions are known."""
        found = self._topics.get(topic)
        if found is None or sorted(found.partitions) != list(range(len(found.partitions))):
            return None
        return len(found.partitions) or None

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """Return a partition; None if it is not there."""
        found = self._topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def cleanup_policies(self, topic: str) -> frozenset[str]:
        """What happens to a topic's old records by its own configuration; empty where that is not known."""
        if self.replay.damages or self.replay.is_partial:
            return frozenset()
        policies = self.replay.image.configs.get(("topic", topic), {}).get("cleanup.policy", "")
        return frozenset(policies.split(",")) - {""}

    def deletes(self, topic: str) -> str:
        """Say by which configuration a topic's old records are deleted; nothing if they are not, or if nobody knows."""
        if "delete" not in self.cleanup_policies(topic):
            return ""
        configs = self.replay.image.configs[("topic", topic)]
        told = [f"{name}={configs[name]}" for name in RETENTION if name in configs]
        bounds = f", with {', '.join(told)}" if told else ", with the broker's retention"
        return f"the topic's cleanup.policy is {configs['cleanup.policy']}{bounds}, so that old segments are deleted"

    def notes(self) -> list[str]:
        """Return what is to be told: which copy is believed, and what of it could not be read; one sentence each."""
        chosen, replay = self.chosen, self.replay
        told: list[str] = []
        if len(self.copies) > 1:
            why = "the newest" if chosen.rank[:2] == (True, True) else "the best, though no copy is whole"
            told.append(f"{len(self.copies)} copies of the cluster's metadata: {chosen.directory} is read, {why}")
        if replay.damages:
            pieces = counted(len(replay.damages), "piece")
            told.append(
                f"{pieces} of the cluster's metadata in {chosen.directory} cannot be read, so that names, partitions "
                f"and leaders may be wrong or missing: {replay.damages[0].error}"
            )
        return told + [f"{chosen.directory}: {note}" for note in replay.notes]


def read_copies(partitions: Iterable[MetadataPartition]) -> tuple[list[MetadataCopy], list[str]]:
    """Replay all copies among these directories; and those that cannot be opened, one sentence each."""
    copies: list[MetadataCopy] = []
    problems: list[str] = []
    for partition in partitions:
        if (partition.topic, partition.partition) != (CLUSTER_METADATA, 0):
            continue
        try:
            replay, batches = _replayed(partition)
        except OffsetsLogError as error:
            problems.append(f"the cluster's metadata is left out: {error}")
            continue
        if replay.end_offset:
            cluster_id = identify(DataDirectory(shown_path="", files=partition.above)).cluster_id
            copies.append(MetadataCopy(partition.shown_path, cluster_id, replay, batches))
        elif replay.damages:
            problems.append(f"the cluster's metadata in {partition.shown_path} is left out: {replay.damages[0].error}")
    return copies, problems


def _replayed(partition: MetadataPartition) -> tuple[MetadataReplay, dict[tuple[int, int], int]]:
    from offsets_log.data_directory.metadata_log import SNAPSHOT, metadata_batches, replay_metadata_log

    with ExitStack() as stack:
        files = {name: partial(_contents, partition, name) for name in partition.names() if SNAPSHOT.fullmatch(name)}
        log = _log(partition, stack)
        is_still = CLEAN_SHUTDOWN in partition.above
        return replay_metadata_log(log, files, is_still=is_still), metadata_batches(log)


def _log(partition: MetadataPartition, stack: ExitStack) -> PartitionLog:
    return PartitionLog(
        None,
        tuple(
            Segment(f"{partition.shown_path}/{base:020}.log", base, stack.enter_context(partition.open_log(base)))
            for base in partition.base_offsets()
        ),
    )


def _contents(partition: MetadataPartition, name: str) -> Buffer:
    return partition.read(name) or b""


def _node(copy: CopiedPartition, known: dict[int, int | None]) -> int | None:
    """Return the broker of a copy; each data directory is asked once."""
    if id(copy.above) not in known:
        known[id(copy.above)] = node_of(copy.above)
    return known[id(copy.above)]


def leader_copies(
    partitions: Iterable[CopiedPartition], metadata: Callable[[], ClusterMetadata | None]
) -> dict[TopicPartition, LeaderCopies]:
    """Return who led partitions with several copies last, and which copies are that broker's, where that is told.

    Args:
        metadata: asked if there are any.
    """
    copies: dict[TopicPartition, list[CopiedPartition]] = {}
    for copy in partitions:
        copies.setdefault((copy.topic, copy.partition), []).append(copy)
    several = {key: some for key, some in copies.items() if len(some) > 1}
    known = metadata() if several else None
    if known is None:
        return {}
    nodes: dict[int, int | None] = {}
    found: dict[TopicPartition, LeaderCopies] = {}
    for key, some in several.items():
        led = known.partition(*key)
        if led is not None and led.last_leader >= 0:
            own = [copy.shown_path for copy in some if _node(copy, nodes) == led.last_leader]
            found[key] = LeaderCopies(led.last_leader, led.last_leader_epoch, frozenset(own))
    return found


class Clusters:
    """Whose data directories are, and what the metadata in them says, replayed when it is asked for.

    Attributes:
        identities: of the data directories.
        notes: what was told of the metadata since it was asked for, one sentence each.
        is_damaged: whether some of it could not be read, of what was asked for.
    """

    def __init__(self, identities: Sequence[Identity], partitions: Sequence[MetadataPartition]) -> None:
        """Args:
        partitions: all of them, of all topics.
        """
        self.identities = identities
        self.notes: list[str] = []
        self.is_damaged = False
        self._partitions = partitions
        self._starts: dict[tuple[int, ...], BrokerStart] = {}

    @cached_property
    def by_id(self) -> dict[str | None, ClusterMetadata]:
        """Cluster id → what its metadata says; None for copies that do not tell their cluster."""
        copies, problems = read_copies(self._partitions)
        found: dict[str | None, list[MetadataCopy]] = {}
        for copy in copies:
            found.setdefault(copy.cluster_id, []).append(copy)
        metadata = {
            cluster: ClusterMetadata(max(some, key=lambda one: one.rank), some) for cluster, some in found.items()
        }
        self.is_damaged |= bool(problems) or any(one.replay.damages for one in metadata.values())
        self.notes += [*problems, *(note for one in metadata.values() for note in one.notes())]
        return metadata

    def topics_made(self) -> list[TopicImage]:
        """Return topics that any copy's log makes (`metadata_log.topics_made`); what cannot be read of it is noted."""
        from offsets_log.data_directory import metadata_log

        made: list[TopicImage] = []
        for partition in self._partitions:
            if (partition.topic, partition.partition) != (CLUSTER_METADATA, 0):
                continue
            try:
                with ExitStack() as stack:
                    topics, damages = metadata_log.topics_made(_log(partition, stack))
            except OffsetsLogError as error:
                topics, damages = {}, [Damage(error, b"")]
            made += topics.values()
            if damages:
                self.is_damaged = True
                self.notes.append(
                    f"{counted(len(damages), 'piece')} of the cluster's metadata in {partition.shown_path} cannot be "
                    "read, so that offsets of former topics may not be known as such (DD-4): "
                    f"{damages[0].error}"
                )
        return made

    @property
    def are_mixed(self) -> bool:
        """Whether the data directories are of several clusters."""
        return len({identity.cluster_id for identity in self.identities} - {None}) > 1 or bool(self.namesakes)

    @cached_property
    def namesakes(self) -> list[str]:
        """What tells that directories of one cluster id are of several clusters, one sentence each."""
        return [*self._same_places(), *self._other_batches()]

    def _same_places(self) -> Iterator[str]:
        """Yield directories of one broker that both hold the cluster's metadata and other partitions, as none do.

        Where one alone holds the metadata, they are one broker's, which does not start over them (``ST-8``).
        """
        held: dict[int, set[TopicPartition]] = {}
        for copy in self._partitions:
            held.setdefault(id(copy.above), set()).add((copy.topic, copy.partition))
        for one, other in combinations(self.identities, 2):
            is_named = one.meta is not None and other.meta is not None and one.node_id is not None
            if not is_named or one.home != other.home:
                continue
            assert one.meta is not None
            assert other.meta is not None
            if one.meta.directory_id is not None and one.meta.directory_id == other.meta.directory_id:
                continue  # copies of one directory
            both = held.get(id(one.directory.files), set()) & held.get(id(other.directory.files), set())
            if (CLUSTER_METADATA, 0) in both and len(both) > 1:
                both.discard((CLUSTER_METADATA, 0))
                topic, partition = min(both)
                yield (
                    f"{one.directory.shown_path} and {other.directory.shown_path} are of broker {one.node_id} of "
                    f"cluster {one.cluster_id} by their own words, and both hold {topic}-{partition} and "
                    f"{len(both) - 1} more partitions, as no broker's directories do: they are of two clusters with "
                    "the same ids, or copies of different times"
                )

    def _other_batches(self) -> Iterator[str]:
        """Yield copies of one cluster's metadata that have different batches in the same place."""
        if sum((one.topic, one.partition) == (CLUSTER_METADATA, 0) for one in self._partitions) < 2:
            return
        for cluster, metadata in self.by_id.items():
            whole = [copy for copy in metadata.copies if not copy.replay.damages]
            for one, other in combinations(whole, 2):
                places = one.batches.keys() & other.batches.keys()
                different = [place for place in places if one.batches[place] != other.batches[place]]
                if cluster is not None and different:
                    offset, epoch = min(different)
                    yield (
                        f"{one.directory} and {other.directory} are of cluster {cluster} by their own words, and have "
                        f"different batches at offset {offset} of epoch {epoch}: they are of two clusters with the "
                        "same id, and neither tells leaders, topics and counts"
                    )

    @property
    def metadata(self) -> ClusterMetadata | None:
        """What the metadata of the one cluster says; None where there is none, or there are several clusters."""
        found = list(self.by_id.values())
        return found[0] if len(found) == 1 and not self.are_mixed else None

    @property
    def sure_metadata(self) -> MetadataReplay | None:
        """The same, where it is read whole."""
        found = self.metadata
        return None if found is None or found.replay.damages or found.replay.is_partial else found.replay

    def start_of(self, directory: DataDirectory, *, asks_metadata: bool) -> BrokerStart:
        """Return the start of the broker that a data directory is of.

        Args:
            asks_metadata: whether the metadata is read for it, if nobody has yet.
        """
        from offsets_log.data_directory.start import BrokerStart

        directories = self._of_broker(directory)
        is_asked = asks_metadata or "by_id" in vars(self)
        key = (is_asked, *map(id, directories))
        if key not in self._starts:
            self._starts[key] = BrokerStart(directories, self.sure_metadata if is_asked else None)
        return self._starts[key]

    def _of_broker(self, directory: DataDirectory) -> list[DataDirectory]:
        """Return the data directories of the broker that one is of, itself among them.

        Those that do not tell whose they are belong to the one broker that the others tell; copies of one directory,
        or of one broker at different times, are each a broker's only one.
        """
        homes = {one.home for one in self.identities if one.node_id is not None}
        own = next(one for one in self.identities if one.directory is directory)
        if own.node_id is None and len(homes) != 1:
            return [directory]
        home = own.home if own.node_id is not None else next(iter(homes))
        found = [one for one in self.identities if (one.node_id is None and len(homes) == 1) or one.home == home]
        ids = [one.meta.directory_id for one in found if one.meta is not None and one.meta.directory_id is not None]
        return [directory] if len(set(ids)) < len(ids) or self.namesakes else [one.directory for one in found]

    @property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, of all clusters."""
        return {topic_id: name for one in self.by_id.values() for topic_id, name in one.topic_names.items()}
