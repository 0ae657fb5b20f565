"""What a cluster is by its metadata records: topics, partitions, configurations, features, brokers.

`ClusterImage.apply` has a rule for each record that changes one of these, as brokers apply it. Others
(credentials, quotas, access control lists, producer ids) are passed over.

References: ``MetadataDelta.java``, ``TopicsDelta.java``, ``PartitionRegistration.java``, ``ClusterDelta.java``,
``ConfigurationsDelta.java``, ``FeaturesDelta.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from offsets_log.errors import ReplayError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.cluster_metadata.config_names import is_sensitive
from offsets_log.messages.cluster_metadata.registry import MetadataRecord
from offsets_log.messages.cluster_metadata.settings import CONFIG_RESOURCE_TYPES
from offsets_log.messages.cluster_metadata.topics import UNCHANGED_LEADER, UNCHANGED_RECOVERY
from offsets_log.messages.schema import REDACTED

METADATA_VERSION = "metadata.version"
NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """One partition.

    Attributes:
        leader: −1 without one.
        partition_epoch: how often anything of it was changed.
        replicas, isr: node ids, the preferred leader first.
        directories: of each replica the id of the directory it lies in; empty before 3.7.
        leader_recovery_state: 1 after an unclean election, until the leader has recovered.
        last_leader, last_leader_epoch: who led it last, and in which epoch; −1 where no record that was read tells.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    last_leader: int = field(default=NO_LEADER, compare=False)
    last_leader_epoch: int = field(default=-1, compare=False)


@dataclass(slots=True)
class TopicImage:
    """One topic.

    Attributes:
        partitions: by number.
        created_at_ms: when the record that makes it was written, in the log or in the snapshot that was read.
        removed_at_ms: when the record that deletes it was written; None of a topic that is there.
    """

    name: str
    topic_id: Uuid
    partitions: dict[int, PartitionImage] = field(default_factory=dict)
    created_at_ms: int | None = field(default=None, compare=False)
    removed_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    """A broker as it registered last, with what was changed since.

    Attributes:
        end_points: name of the listener → host and port.
        log_dirs: ids of its directories; empty before 3.7.
        features: name → the lowest and the highest level that it supports.
    """

    broker_id: int
    broker_epoch: int
    incarnation_id: Uuid
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    end_points: Mapping[str, tuple[str, int]]
    log_dirs: tuple[Uuid, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    cordoned_log_dirs: tuple[Uuid, ...] = ()


ConfigResource = tuple[str, str]
"""``topic``, ``broker``, ``group`` or ``client_metrics``, and the name; a broker without a name is all of them."""


@dataclass(slots=True)
class ClusterImage:
    """The state after some records.

    Attributes:
        topics: that are there, by id.
        removed_topics: that were deleted by a record that was applied, by id.
        configs: what was set, without defaults; values that may be secrets are redacted.
        features: name → level that the cluster has agreed on, ``metadata.version`` among them.
        brokers, controllers: by id; of a controller its listeners' hosts and ports.
        next_producer_id: the first that no broker has been given.
    """

    topics: dict[Uuid, TopicImage] = field(default_factory=dict)
    removed_topics: dict[Uuid, TopicImage] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    controllers: dict[int, Mapping[str, tuple[str, int]]] = field(default_factory=dict)
    next_producer_id: int | None = None

    @property
    def metadata_version(self) -> int | None:
        """The feature level of ``metadata.version``; None before 3.3 and where it is not said."""
        return self.features.get(METADATA_VERSION)

    def topic_named(self, name: str) -> TopicImage | None:
        """Return the topic that has this name now."""
        return next((topic for topic in self.topics.values() if topic.name == name), None)

    def apply(self, record: MetadataRecord, timestamp_ms: int) -> None:
        """Change the state as the record says.

        Raises:
            ReplayError: it is about a topic, partition or broker that is not there; nothing was changed.
        """
        rule = _RULES.get(record.api_key)
        if rule is not None and record.fields is not None:
            rule(self, record.fields, timestamp_ms)

    def _topic(self, topic_id: Uuid) -> TopicImage:
        if topic_id not in self.topics:
            raise _not_there(f"topic {topic_id}")
        return self.topics[topic_id]

    def _broker(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.broker_epoch != epoch:
            raise _not_there(f"broker {broker_id} of epoch {epoch}")
        return broker


def _not_there(what: str) -> ReplayError:
    return ReplayError(f"a record is about {what}, which is not there", rule="metadata")


Fields = Mapping[str, Any]


def _add_topic(image: ClusterImage, fields: Fields, timestamp_ms: int) -> None:
    topic_id = fields["topic_id"]
    image.topics[topic_id] = TopicImage(fields["name"], topic_id, created_at_ms=timestamp_ms)


def _remove_topic(image: ClusterImage, fields: Fields, timestamp_ms: int) -> None:
    topic = image._topic(fields["topic_id"])
    del image.topics[topic.topic_id]
    topic.removed_at_ms = timestamp_ms
    image.removed_topics[topic.topic_id] = topic
    image.configs.pop(("topic", topic.name), None)


_OF_PARTITION = (
    "replicas", "isr", "removing_replicas", "adding_replicas", "directories", "eligible_leader_replicas",
    "last_known_elr",
)  # fmt: skip
"""Lists that a partition's records have; null or absent in a change is what stays as it is."""


def _lists(fields: Fields) -> dict[str, Any]:
    return {name: tuple(fields[name]) for name in _OF_PARTITION if fields.get(name) is not None}


def _add_partition(image: ClusterImage, fields: Fields, _: int) -> None:
    image._topic(fields["topic_id"]).partitions[fields["partition_id"]] = PartitionImage(
        leader=fields["leader"],
        leader_epoch=fields["leader_epoch"],
        partition_epoch=fields["partition_epoch"],
        leader_recovery_state=fields["leader_recovery_state"],
        last_leader=fields["leader"],
        last_leader_epoch=fields["leader_epoch"] if fields["leader"] != NO_LEADER else -1,
        **_lists(fields),
    )


def _change_partition(image: ClusterImage, fields: Fields, _: int) -> None:
    """Change a partition; a leader that is given, the same one too, begins a new leader epoch."""
    topic, number = image._topic(fields["topic_id"]), fields["partition_id"]
    if number not in topic.partitions:
        raise _not_there(f"partition {number} of {topic.name}")
    before = topic.partitions[number]
    changes = _lists(fields)
    if fields["leader"] != UNCHANGED_LEADER:
        changes |= {"leader": fields["leader"], "leader_epoch": before.leader_epoch + 1}
        if fields["leader"] != NO_LEADER:
            changes |= {"last_leader": fields["leader"], "last_leader_epoch": before.leader_epoch + 1}
    if fields["leader_recovery_state"] != UNCHANGED_RECOVERY:
        changes["leader_recovery_state"] = fields["leader_recovery_state"]
    topic.partitions[number] = replace(before, partition_epoch=before.partition_epoch + 1, **changes)


def _clear_eligible(image: ClusterImage, fields: Fields, _: int) -> None:
    name = fields["topic_name"]
    topics = [topic for topic in image.topics.values() if name in ("", topic.name)]
    if name and not topics:
        raise _not_there(f"topic {name}")
    for topic in topics:
        for number, before in topic.partitions.items():
            if before.eligible_leader_replicas or before.last_known_elr:
                topic.partitions[number] = replace(before, eligible_leader_replicas=(), last_known_elr=())


def _set_config(image: ClusterImage, fields: Fields, _: int) -> None:
    kind = CONFIG_RESOURCE_TYPES.get(fields["resource_type"], str(fields["resource_type"]))
    resource, name, value = (kind, fields["resource_name"]), fields["name"], fields["value"]
    known = image.configs.setdefault(resource, {})
    if value is None:
        known.pop(name, None)
    else:
        known[name] = REDACTED if is_sensitive(name) else value
    if not known:
        del image.configs[resource]


def _set_feature(image: ClusterImage, fields: Fields, _: int) -> None:
    if fields["feature_level"]:
        image.features[fields["name"]] = fields["feature_level"]
    else:
        image.features.pop(fields["name"], None)


def _end_points(fields: Fields) -> dict[str, tuple[str, int]]:
    return {row["name"]: (row["host"], row["port"]) for row in fields["end_points"]}


def _register_broker(image: ClusterImage, fields: Fields, _: int) -> None:
    image.brokers[fields["broker_id"]] = BrokerImage(
        broker_id=fields["broker_id"],
        broker_epoch=fields["broker_epoch"],
        incarnation_id=fields["incarnation_id"],
        rack=fields["rack"],
        fenced=bool(fields["fenced"]),
        in_controlled_shutdown=bool(fields.get("in_controlled_shutdown", False)),
        end_points=_end_points(fields),
        log_dirs=tuple(fields.get("log_dirs") or ()),
        features={
            row["name"]: (row["min_supported_version"], row["max_supported_version"])
            for row in fields.get("features") or ()
        },
        cordoned_log_dirs=tuple(fields.get("cordoned_log_dirs") or ()),
    )


def _unregister_broker(image: ClusterImage, fields: Fields, _: int) -> None:
    image.brokers.pop(fields["broker_id"], None)


def _fence_broker(image: ClusterImage, fields: Fields, _: int) -> None:
    image.brokers[fields["id"]] = replace(image._broker(fields["id"], fields["epoch"]), fenced=True)


def _unfence_broker(image: ClusterImage, fields: Fields, _: int) -> None:
    image.brokers[fields["id"]] = replace(image._broker(fields["id"], fields["epoch"]), fenced=False)


def _change_broker(image: ClusterImage, fields: Fields, _: int) -> None:
    changes: dict[str, Any] = {}
    if fields["fenced"]:
        changes["fenced"] = fields["fenced"] > 0
    if fields.get("in_controlled_shutdown"):
        changes["in_controlled_shutdown"] = True
    if fields.get("log_dirs"):
        changes["log_dirs"] = tuple(fields["log_dirs"])
    if fields.get("cordoned_log_dirs") is not None:
        changes["cordoned_log_dirs"] = tuple(fields["cordoned_log_dirs"])
    before = image._broker(fields["broker_id"], fields["broker_epoch"])
    image.brokers[before.broker_id] = replace(before, **changes)


def _register_controller(image: ClusterImage, fields: Fields, _: int) -> None:
    image.controllers[fields["controller_id"]] = _end_points(fields)


def _unregister_controller(image: ClusterImage, fields: Fields, _: int) -> None:
    image.controllers.pop(fields["controller_id"], None)


def _give_producer_ids(image: ClusterImage, fields: Fields, _: int) -> None:
    image.next_producer_id = fields["next_producer_id"]


_RULES: dict[int, Callable[[ClusterImage, Fields, int], None]] = {
    0: _register_broker,
    1: _unregister_broker,
    2: _add_topic,
    3: _add_partition,
    4: _set_config,
    5: _change_partition,
    7: _fence_broker,
    8: _unfence_broker,
    9: _remove_topic,
    12: _set_feature,
    15: _give_producer_ids,
    17: _change_broker,
    27: _register_controller,
    28: _clear_eligible,
    29: _unregister_controller,
}
"""API key → rule."""
