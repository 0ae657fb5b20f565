"""Which topics are served, and where their logs end: by the copy, and by the offsets that were committed in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.internal_topics import CLUSTER_METADATA, INTERNAL_TOPICS, OFFSETS_TOPIC
from offsets_log.replay.group import STREAMS, Group
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import group_row
from offsets_log.serving.state import Ends, Topic

if TYPE_CHECKING:
    from offsets_log.data_directory.metadata_copies import ClusterMetadata

DATA_DIR, COMMITTED, UNKNOWN = END_OFFSETS = ("data-dir", "committed", "unknown")
"""What tells ends: the logs in the copy; these, else the highest committed offset; nothing."""

_GAPS = 256
"""So many partitions more than twice the known ones may be without an offset."""


def topics_of(
    logs: CopiedLogs,
    metadata: ClusterMetadata | None,
    highest: Mapping[str, Mapping[int, int]],
    assigned: Iterable[TopicPartition],
    offsets_topic: Mapping[int, Ends],
    end_offsets: str,
) -> dict[str, Topic]:
    """Return all topics by name, rising.

    Args:
        highest: topic → partition → the highest committed offset.
        assigned: partitions that members hold, and that are in open transactions.
        offsets_topic: ends of the offsets partitions that were read.
        end_offsets: of `END_OFFSETS`.
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
    if end_offsets != UNKNOWN:
        logs.find(copied)
    ends = {name: _ends(logs, name, known[name], highest.get(name, {}), end_offsets) for name in known}
    if end_offsets != UNKNOWN:
        ends[OFFSETS_TOPIC] = dict(offsets_topic)
    return {
        name: Topic(
            name=name,
            partitions=partitions_of(known[name]),
            ends=ends[name],
            topic_id=images[name].topic_id if name in images else logs.topic_id(name, first.get(name, 0)) or ZERO_UUID,
            is_internal=name in INTERNAL_TOPICS,
            configs=configs.get(("topic", name), {}),
        )
        for name in sorted(known)
    }


def assigned_partitions(groups: Iterable[Group], profile: Profile, names: TopicNames) -> Iterator[TopicPartition]:
    """Yield the partitions that members hold or are to hold; of streams groups, whose members hold tasks, none."""
    for group in groups:
        if group.kind == STREAMS:
            continue
        for member in group_row(group, profile, names, None)["members"]:
            yield from map(tuple, (*member["assignment"], *(member["target_assignment"] or ())))


def _ends(
    logs: CopiedLogs, topic: str, partitions: set[int], highest: Mapping[int, int], end_offsets: str
) -> dict[int, Ends]:
    if end_offsets == UNKNOWN:
        return {}
    found: dict[int, Ends] = {}
    for partition in partitions:
        ends = logs.ends(topic, partition)
        if ends is not None:
            found[partition] = Ends(ends.log_start_offset, ends.end_offset, ends.leader_epoch)
        elif end_offsets == COMMITTED and highest.get(partition, -1) >= 0:
            found[partition] = Ends(0, highest[partition])
    return found


def partitions_of(known: set[int]) -> Collection[int]:
    """Return the partitions of a topic of which some are known: all up to the highest, if these are not too many.

    A hostile log may name partition 2³¹ − 1: then there are only those that it names.
    """
    numbers = sorted(number for number in known if number >= 0)
    highest = numbers[-1] if numbers else -1
    return range(highest + 1) if highest < 2 * len(numbers) + _GAPS else dict.fromkeys(numbers).keys()
