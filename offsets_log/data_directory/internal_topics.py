"""The topics that brokers themselves write to."""

from offsets_log.messages.state_topics import SHARE_GROUP_STATE, TRANSACTION_STATE

OFFSETS_TOPIC = "__consumer_offsets"
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA})
