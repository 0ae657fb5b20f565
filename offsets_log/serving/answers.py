"""Requests and their answers, as frames: which APIs are served, up to which version, and by what.

Versions end before topics are named by their ids, which a log of offsets seldom has: a client goes by the highest
version that both sides know. Nothing that writes is among them, so that a client knows before it asks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from offsets_log.errors import CorruptRecordError, OffsetsLogError
from offsets_log.kafka_releases import row_of
from offsets_log.protocol.api import Api
from offsets_log.protocol.api_names import api_name
from offsets_log.protocol.error_codes import NO_ERROR, REBOOTSTRAP_REQUIRED, UNSUPPORTED_VERSION
from offsets_log.protocol.registry import APIS
from offsets_log.serving import cluster_answers, fetch, groups, offset_answers
from offsets_log.serving.asked import Asked, Body, Held
from offsets_log.serving.state import Served

Answer = Callable[[Served, Body, Asked], Body]

FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR = 1, 2, 3, 9, 10
API_VERSIONS, SASL_HANDSHAKE = 18, 17

ANSWERS: Mapping[int, Answer] = {
    FETCH: fetch.fetch,
    LIST_OFFSETS: offset_answers.list_offsets,
    METADATA: cluster_answers.metadata,
    OFFSET_FETCH: offset_answers.fetch_offsets,
    FIND_COORDINATOR: cluster_answers.find_coordinator,
    15: groups.describe_groups,
    16: groups.list_groups,
    32: cluster_answers.describe_configs,
    35: cluster_answers.describe_log_dirs,
    60: cluster_answers.describe_cluster,
    69: groups.consumer_groups,
    75: cluster_answers.describe_topic_partitions,
    77: groups.share_groups,
    89: groups.streams_groups,
    90: offset_answers.share_offsets,
}
"""API key → what answers it."""

LAST_VERSIONS: Mapping[int, int] = {OFFSET_FETCH: 9, FETCH: 12}
"""Those below the last of their tables, because later ones name topics by their ids."""

PRODUCE, PRODUCE_VERSIONS = 0, range(3, 8)
"""Told to clients that are made of librdkafka, which read no batches of magic 2, nor zstd, from a broker that does not
take them, too. One that is sent is refused as everything that writes."""
_LIBRDKAFKA = "rdkafka"
"""Stands in the name or the version of such a client."""

NOT_KEPT = frozenset({FETCH})
"""Answers that are too large to be kept."""
_HEAD = struct.Struct(">hhih")
_CORRELATION = slice(4, 8)


class NotServedError(OffsetsLogError):
    """A request after which the connection is closed, as a broker does; the message says why."""


class Question(NamedTuple):
    """A request's header; the message begins ``at``."""

    api: Api
    version: int
    correlation_id: int
    at: int


@cache
def versions_of(key: int, release: tuple[int, int]) -> range:
    """Return the versions that are served by the rules of a release: none that its brokers do not have."""
    first, last = APIS[key].versions
    newest = row_of(release).apis.get(APIS[key].name, -1)
    return range(first, min(last, newest, LAST_VERSIONS.get(key, last)) + 1)


def respond(served: Served, frame: bytes, address: tuple[str, int]) -> bytes:
    """Return the frame of the answer to a request; a `Held` one for a client that waits.

    Args:
        frame: without its size.
        address: host and port to reach this broker at.

    Raises:
        NotServedError: the request is not one that is served, or not well-formed.
    """
    asked = _question(served, frame)
    kept = (frame[:4], frame[asked.at :], address)
    found = served.answered.get(kept)
    if found is None:
        found = _answer(served, frame, asked, address)
        if asked.api.key not in NOT_KEPT:
            served.answered.keep(kept, found)
    if isinstance(found, Held):
        return found
    return b"".join((found[:4], frame[_CORRELATION], found[8:]))


def _question(served: Served, frame: bytes) -> Question:
    """Read a request's header; raise NotServedError."""
    if len(frame) < _HEAD.size:
        raise NotServedError(f"a request of {len(frame)} bytes has no header")
    key, version, correlation_id, size = _HEAD.unpack_from(frame)
    if key == SASL_HANDSHAKE:
        raise NotServedError("a client wants to log in (SASL), which is not needed here: security.protocol=PLAINTEXT")
    if key != API_VERSIONS and key not in ANSWERS:
        raise NotServedError(f"{api_name(key)} is not served: only what reads is")
    at = _HEAD.size + max(size, 0)
    versions = versions_of(key, served.profile.release)
    if version not in versions and key != API_VERSIONS:
        raise NotServedError(f"version {version} of {APIS[key].name} is not served, {_in_words(versions, served)}")
    if size < -1 or at > len(frame):
        raise NotServedError(f"the client id of a request to {APIS[key].name} is longer than it")
    return Question(APIS[key], version, correlation_id, at)


def _in_words(versions: range, served: Served) -> str:
    release = ".".join(map(str, served.profile.release))
    return f"only {versions[0]} to {versions[-1]}" if versions else f"as brokers of {release} do not know it"


def _answer(served: Served, frame: bytes, asked: Question, address: tuple[str, int]) -> bytes:
    api, version = asked.api, asked.version
    if api.key == API_VERSIONS:
        return _api_versions(served, frame, asked)
    try:
        _, body = api.decode_request(frame)
    except CorruptRecordError as error:
        raise NotServedError(f"a request to {api.name} is not well-formed: {error}") from None
    answer = ANSWERS[api.key](served, body, Asked(version, *address))
    found = api.encode_response(asked.correlation_id, version, answer)
    return Held(found, wait_ms / 1000) if (wait_ms := answer.get("wait_ms", 0)) else found


def _api_versions(served: Served, frame: bytes, asked: Question) -> bytes:
    """Answer ApiVersions: of a version that is not known in version 0, with an error, from which clients learn.

    A client that takes this broker for another one, which was at the address before, is to begin again (KIP-1242).
    """
    error = UNSUPPORTED_VERSION
    told: Body = {}
    if is_known := asked.version in versions_of(API_VERSIONS, served.profile.release):
        try:
            _, told = asked.api.decode_request(frame)
        except CorruptRecordError as problem:
            raise NotServedError(f"a request to {asked.api.name} is not well-formed: {problem}") from None
        error = REBOOTSTRAP_REQUIRED if _is_another(served, told) else NO_ERROR
    versions = {} if error == REBOOTSTRAP_REQUIRED else _told_versions(served, told)
    body = {
        "error_code": error,
        "api_keys": [
            {"api_key": key, "min_version": span[0], "max_version": span[-1]} for key, span in versions.items()
        ],
        "throttle_time_ms": 0,
        "supported_features": [],
        "finalized_features_epoch": -1,
        "finalized_features": [],
        "zk_migration_ready": False,
    }
    return asked.api.encode_response(asked.correlation_id, asked.version if is_known else 0, body)


def _is_another(served: Served, told: Body) -> bool:
    """Whether a client means a broker of another cluster, or another one of this."""
    meant = told.get("cluster_id"), told.get("node_id")
    return meant[0] is not None and meant != (served.cluster.cluster_id, served.cluster.node_id)


def _told_versions(served: Served, told: Body) -> dict[int, range]:
    of_all = {key: versions_of(key, served.profile.release) for key in sorted({*ANSWERS, API_VERSIONS})}
    versions = {key: span for key, span in of_all.items() if span}
    is_librdkafka = any(_LIBRDKAFKA in told.get(f"client_software_{what}", "") for what in ("name", "version"))
    return {PRODUCE: PRODUCE_VERSIONS} | versions if is_librdkafka else versions
