"""All APIs that there are tables of, by key."""

from __future__ import annotations

from collections.abc import Mapping

from offsets_log.protocol.api import Api
from offsets_log.protocol.api_versions import API_VERSIONS
from offsets_log.protocol.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from offsets_log.protocol.describe_cluster import DESCRIBE_CLUSTER
from offsets_log.protocol.describe_configs import DESCRIBE_CONFIGS
from offsets_log.protocol.describe_groups import DESCRIBE_GROUPS
from offsets_log.protocol.describe_log_dirs import DESCRIBE_LOG_DIRS
from offsets_log.protocol.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from offsets_log.protocol.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from offsets_log.protocol.fetch import FETCH
from offsets_log.protocol.find_coordinator import FIND_COORDINATOR
from offsets_log.protocol.leader_epochs import OFFSET_FOR_LEADER_EPOCH
from offsets_log.protocol.list_groups import LIST_GROUPS
from offsets_log.protocol.list_offsets import LIST_OFFSETS
from offsets_log.protocol.metadata import METADATA
from offsets_log.protocol.offset_fetch import OFFSET_FETCH
from offsets_log.protocol.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from offsets_log.protocol.share_group_describe import SHARE_GROUP_DESCRIBE
from offsets_log.protocol.streams_group_describe import STREAMS_GROUP_DESCRIBE

APIS: Mapping[int, Api] = {
    api.key: api
    for api in (
        FETCH,
        LIST_OFFSETS,
        METADATA,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        SASL_HANDSHAKE,
        API_VERSIONS,
        OFFSET_FOR_LEADER_EPOCH,
        DESCRIBE_CONFIGS,
        DESCRIBE_LOG_DIRS,
        SASL_AUTHENTICATE,
        DESCRIBE_CLUSTER,
        CONSUMER_GROUP_DESCRIBE,
        DESCRIBE_TOPIC_PARTITIONS,
        SHARE_GROUP_DESCRIBE,
        STREAMS_GROUP_DESCRIBE,
        DESCRIBE_SHARE_GROUP_OFFSETS,
    )
}
"""Key → API. Each reads: none changes anything in a cluster."""
