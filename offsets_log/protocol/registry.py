"""All APIs that there are tables of, by key."""

from __future__ import annotations

from collections.abc import Mapping

from offsets_log.protocol.api import Api
from offsets_log.protocol.api_versions import API_VERSIONS
from offsets_log.protocol.fetch import FETCH
from offsets_log.protocol.leader_epochs import OFFSET_FOR_LEADER_EPOCH
from offsets_log.protocol.list_offsets import LIST_OFFSETS
from offsets_log.protocol.metadata import METADATA
from offsets_log.protocol.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE

APIS: Mapping[int, Api] = {
    api.key: api
    for api in (
        FETCH,
        LIST_OFFSETS,
        METADATA,
        SASL_HANDSHAKE,
        API_VERSIONS,
        OFFSET_FOR_LEADER_EPOCH,
        SASL_AUTHENTICATE,
    )
}
"""Key → API. Each reads: none changes anything in a cluster. Those of `share_group_offsets` are not among them."""
