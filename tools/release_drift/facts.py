"""Enums and settings of a release against the tables here; `programs/Facts.java` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from offsets_log.cleaner.settings import Settings
from offsets_log.coordinator.config import OffsetConfig
from offsets_log.kafka_releases import METADATA_VERSIONS
from offsets_log.log_format.control_record import CONTROL_TYPES
from offsets_log.messages.cluster_metadata.config_names import PLAIN
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from offsets_log.protocol.error_codes import NAMES
from offsets_log.release_names import release_asked
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.java import facts_of

RELEASES = "offsets_log/kafka_releases.py"
ENUMS: Mapping[str, tuple[str, Mapping[int, str], str]] = {
    "error": ("errors", NAMES, "offsets_log/protocol/error_codes.py"),
    "control record type": ("control_record_types", CONTROL_TYPES, "offsets_log/log_format/control_record.py"),
    "transaction state": ("transaction_states", TRANSACTION_STATES, "offsets_log/messages/transaction_log.py"),
    "metadata version": (
        "metadata_versions",
        dict(enumerate(METADATA_VERSIONS, start=1)),
        RELEASES,
    ),
}
"""What one of them is called → its name in the facts, number → name here, where that stands."""

CONFIG_NAMES = "offsets_log/messages/cluster_metadata/config_names.py"
WITH_SECRETS = "PASSWORD"

CLEANER_SETTINGS = {
    "delete_retention_ms": ("topic", "delete.retention.ms"),
    "min_compaction_lag_ms": ("topic", "min.compaction.lag.ms"),
    "segment_bytes": ("broker", "offsets.topic.segment.bytes"),
    "segment_index_bytes": ("topic", "segment.index.bytes"),
    "index_interval_bytes": ("topic", "index.interval.bytes"),
    "max_message_bytes": ("topic", "max.message.bytes"),
    "io_buffer_bytes": ("broker", "log.cleaner.io.buffer.size"),
    "cleaner_max_message_bytes": ("broker", "message.max.bytes"),
    "producer_id_expiration_ms": ("broker", "producer.id.expiration.ms"),
}
"""Field of `Settings` → whose setting it is, and its name."""


def enum_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield names and numbers of errors, control records and transaction states that no table here has."""
    for what in ("error", "control record type", "transaction state"):
        yield from _enum(what, jars)


def feature_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield levels of ``metadata.version`` without a name here, and levels of new clusters that no row says."""
    facts = facts_of(jars)
    if not release_asked(jars.version).is_verified:
        yield Finding(f"release {jars.version} is in no row", place=RELEASES)
    yield from _enum("metadata version", jars)
    own = jars.row.features
    kafkas = {name: row["default"] for name, row in facts["features"].items()}
    for name in sorted(kafkas.keys() | own.keys()):
        if kafkas.get(name) != own.get(name):
            yield Finding(f"a new cluster starts with {name} {kafkas.get(name)}, not {own.get(name)}", place=RELEASES)


def _enum(what: str, jars: Jars) -> Iterator[Finding]:
    """Compare one of `ENUMS`; what stands here below a release's first number is of older ones."""
    facts = facts_of(jars)
    key, own, place = ENUMS[what]
    kafkas = {number: name for name, number in facts[key].items()}
    for number, name in sorted(kafkas.items()):
        if number not in own:
            yield Finding(f"{what} {number} {name} is in no table", place=place)
        elif own[number] != name:
            yield Finding(f"{what} {number} is {name}, not {own[number]}", place=place)
    gone = sorted(number for number in own.keys() - kafkas.keys() if number > min(kafkas)) if jars.is_newest else ()
    for number in gone:
        yield Finding(f"{what} {number} {own[number]} is in the table only", place=place)


def setting_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield names of settings that are not known to hold no secret, and defaults that are not those here."""
    settings = facts_of(jars)["settings"]
    for of, rows in settings.items():
        for name, row in rows.items():
            if of == "broker" and not row["is_dynamic"]:
                continue
            if row["type"] == WITH_SECRETS and name in PLAIN:
                yield Finding(f"{of} setting {name} holds a secret", place=CONFIG_NAMES)
            elif row["type"] != WITH_SECRETS and name not in PLAIN:
                yield Finding(f"{of} setting {name} is in no table", (_told(row),), CONFIG_NAMES)
    yield from _defaults(settings)


def _told(row: Mapping[str, Any]) -> str:
    return f"{row['type'].lower()}, default {row['default']!r}"


def _defaults(settings: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[Finding]:
    listed = [
        ("broker", row.name.replace("_", "."), row.default, "offsets_log/coordinator/config.py")
        for row in fields(OffsetConfig)
    ]
    listed += [
        (*CLEANER_SETTINGS[row.name], row.default, "offsets_log/cleaner/settings.py")
        for row in fields(Settings)
        if row.name in CLEANER_SETTINGS
    ]
    for of, name, default, place in listed:
        row = settings[of].get(name)
        if row is None:
            yield Finding(f"{of} setting {name}, whose default is used, is gone", place=place)
        elif row["default"] != str(default):
            yield Finding(f"{of} setting {name} has default {row['default']}, not {default}", place=place)
