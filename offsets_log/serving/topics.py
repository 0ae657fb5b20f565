"""Which topics are served, and where their logs end: by the copy, and by the offsets that were committed in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.internal_topics import CLUSTER_METADATA, INTERNAL_TOPICS, OFFSETS_TOPIC
from offsets_log.replay.group import STREAMS, Group
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import group_row
from offsets_log.serving.log_reader import ServedLogs
from offsets_log.serving.state import Ends, Topic

if TYPE_CHECKING:
    from offsets_log.data_directory.metadata_copies import ClusterMetadata

COMMITTED, UNKNOWN = "committed", "unknown"
END_OFFSETS = ("data-dir", COMMITTED, UNKNOWN)
"""What tells ends: the logs in the copy; these, else the highest committed offset; nothing."""

_GAPS = 256
"""So many partitions more than twice the known ones may be without an offset."""


def topics_of(
    logs: CopiedLogs,
    metadata: ClusterMetadata | None,
    highest: Mapping[str, Mapping[int, int]],
    assigned: Iterable[TopicPartition],
    offsets_topic: Mapping[int, Ends],
    end_of: EndOf | None,
) -> dict[str, Topic]:
    """Return all topics by name, rising.

    Args:
        highest: topic → partition → the highest committed offset.
        assigned: partitions that members hold, and that are in open transactions.
        offsets_topic: ends of the offsets partitions that were read.
        end_of: tells ends; None where none is told.
    """
    known: dict[str, set[int]] = {topic: set(partitions) for topic, partitions in highest.items()}
    copied = [key for key in logs.partitions() if key[0] != CLUSTER_METADATA]
    for topic, partition in (*copied, *assigned):
        known.setdefault(topic, set()).add(partition)
    first = dict(reversed(copied))
    known[OFFSETS_TOPIC] = known.get(OFFSETS_TOPIC, set()) | set(offsets_topic)
    images = {} if metadata is None else {image.name: image for image in metadata.replay.image.topics.values()}
    configs = {} if metadata is None else metadata.replay.image.configs
    for name, image in images.items():
        known.setdefault(name, set()).update(image.partitions)
    ends: dict[str, dict[int, Ends]] = {}
    if end_of is not None:
        logs.find(copied)
        ends = {name: _ends(end_of, name, known[name], highest.get(name, {})) for name in known}
        ends[OFFSETS_TOPIC] = dict(offsets_topic)
    return {
        name: Topic(
            name=name,
            partitions=partitions_of(known[name]),
            ends=ends.get(name, {}),
            topic_id=images[name].topic_id if name in images else logs.topic_id(name, first.get(name, 0)) or ZERO_UUID,
            is_internal=name in INTERNAL_TOPICS,
            configs=configs.get(("topic", name), {}),
        )
        for name in sorted(known)
    }


def group_configs_of(metadata: ClusterMetadata | None) -> dict[str, dict[str, str]]:
    """Return what was set for groups, by their ids."""
    configs = {} if metadata is None else metadata.replay.image.configs
    return {name: told for (kind, name), told in configs.items() if kind == "group"}


def assigned_partitions(groups: Iterable[Group], profile: Profile, names: TopicNames) -> Iterator[TopicPartition]:
    """Yield the partitions that members hold or are to hold; of streams groups, whose members hold tasks, none."""
    for group in groups:
        if group.kind == STREAMS:
            continue
        for member in group_row(group, profile, names, None)["members"]:
            yield from map(tuple, (*member["assignment"], *(member["target_assignment"] or ())))


EndOf = Callable[[str, int, int | None], Ends | None]
"""Topic, partition and the highest committed offset → its ends; None where they are not known."""


def end_of(logs: CopiedLogs, served: ServedLogs, end_offsets: str, until_time: int | None) -> EndOf | None:
    """Return what tells ends.

    Args:
        served: the same logs, for the place of a time in them.
        end_offsets: one of `END_OFFSETS`.
        until_time: the moment at which they are asked for; None for the end of the copy.
    """

    def told(topic: str, partition: int, highest: int | None) -> Ends | None:
        ends = logs.ends(topic, partition)
        if ends is not None:
            found = Ends(ends.log_start_offset, ends.end_offset, ends.leader_epoch)
            if until_time is None or (ends.newest_timestamp_ms or 0) <= until_time:
                return found
            return _at_time(found, served, (topic, partition), until_time)
        return Ends(0, highest) if end_offsets == COMMITTED and highest is not None and highest >= 0 else None

    return None if end_offsets == UNKNOWN else told


def _at_time(ends: Ends, served: ServedLogs, key: TopicPartition, until_time: int) -> Ends:
    """Return where a log ended at a moment: before its first record that is later; as it is, if it cannot be read."""
    try:
        log = served.of(*key)
        later = None if log is None else log.at_time(until_time + 1, ends.start_offset, ends.end_offset)
    except OffsetsLogError:
        return ends
    return ends if later is None else ends._replace(end_offset=later.offset)


def _ends(end_of: EndOf, topic: str, partitions: set[int], highest: Mapping[int, int]) -> dict[int, Ends]:
    told = ((partition, end_of(topic, partition, highest.get(partition))) for partition in partitions)
    return {partition: ends for partition, ends in told if ends is not None}


def partitions_of(known: set[int]) -> Collection[int]:
    """Return the partitions of a topic of which some are known: all up to the highest, if these are not too many.

    A hostile log may name partition 2³¹ − 1: then there are only those that it names.
    """
    numbers = sorted(number for number in known if number >= 0)
    highest = numbers[-1] if numbers else -1
    return range(highest + 1) if highest < 2 * len(numbers) + _GAPS else dict.fromkeys(numbers).keys()
