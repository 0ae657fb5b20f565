"""Names of the topics that brokers themselves write to."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA})
