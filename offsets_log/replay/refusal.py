"""Decide whether a coordinator replays a record, skips it, or ends the load because of it.

References: ``CoordinatorLoaderImpl``, ``GroupMetadataManager.scala``.

Reading is liberal (see `messages.registry`); the limits of each release are decided here.
"""

from __future__ import annotations

from enum import Enum

from offsets_log.errors import CorruptRecordError, OffsetsLogError, UnsupportedVersionError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.primitives import parse_prefix
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import INT16, RECORD_TYPES, CoordinatorRecord, decode_value, record_type_of
from offsets_log.messages.schema import Message
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile


class Verdict(Enum):
    """What happens to a record that does not end the load."""

    REPLAY = "replay"
    SKIP = "skip"


def refusal_of_batch(batch: RecordBatch, profile: Profile) -> Problem | None:
    """Return the problem of a batch that the release cannot read at all (``records:M1``); None if it can."""
    if batch.magic > profile.newest_magic:
        return Problem(batch.base_offset, "records:M1", f"the batch has magic {batch.magic}")
    if batch.compression == "zstd" and not profile.reads_zstd:
        return Problem(batch.base_offset, "records:M1", "the batch is compressed with zstd")
    return None


def verdict_on(
    record: Record, decoded: CoordinatorRecord | None, error: OffsetsLogError | None, profile: Profile
) -> Verdict | Problem:
    """Return what the release does with a data record.

    Args:
        decoded: the decoded record; None where it could not be decoded, and then ``error`` says why.
    """
    number = record_type_of(record.key)
    group = decoded.group if decoded is not None else None
    why = error.problem if error is not None else ""
    if number is None:
        return Problem(record.offset, "L-16" if record.key is None else "J-3", why)
    if profile.skips(number):
        return Verdict.SKIP
    if number not in profile.known_types:
        return Problem(record.offset, "L-21", f"unknown record type {number}", group)
    if decoded is None:
        if isinstance(error, UnsupportedVersionError) and _is_read_as_newest(record, number, profile):
            return Verdict.REPLAY
        rule = "records:Y4" if isinstance(error, UnsupportedVersionError) else "J-3"
        return Problem(record.offset, rule, why)
    if decoded.value_version is None:
        return Verdict.REPLAY
    refused = _refused_value(record, decoded, profile)
    if refused is None:
        return Verdict.REPLAY
    rule, problem = refused
    return Problem(record.offset, rule, problem, group)


Kind = tuple[int, int | None, int]
"""The type of a record, the version of its value, and its layout as an object."""


def kind_of(record: CoordinatorRecord) -> Kind:
    """Return what a record has in common with others, of which the first one may tell a release's verdict."""
    return record.record_type, record.value_version, id(record.layout)


def is_told_by_kind(record: CoordinatorRecord, profile: Profile) -> bool:
    """Whether a record's kind alone decides if the release refuses it.

    A value in a layout of another release may be read in the release's own one, or not: its bytes decide (``B-9``), as
    they do where it has a tag that the release does not know (``records:P6``).
    """
    layout, version = record.layout, record.value_version
    if layout is None or record.record_type not in profile.known_types:
        return True
    has_later_tags = version is not None and layout.has_later_tags(version, profile.release)
    return layout.is_written_by(profile.release) and not has_later_tags


def _is_read_as_newest(record: Record, number: int, profile: Profile) -> bool:
    """Whether a value of an unknown newer version reads as the newest one this release knows (``records:Y4``)."""
    if not profile.reads_newer_as_newest or record.value is None or record.value[:1] > b"\x7f":
        return False
    newest = profile.newest_value_version(number).to_bytes(2)
    try:
        decode_value(RECORD_TYPES[number], newest + record.value[2:], profile.release, only_release=True)
    except OffsetsLogError:
        return False
    return True


def _refused_value(record: Record, decoded: CoordinatorRecord, profile: Profile) -> tuple[str, str] | None:
    version = decoded.value_version
    assert version is not None
    assert record.value is not None
    if decoded.record_type == 0 and version > 0 and profile.type_0_needs_version_0:
        return "records:Y6", f"unknown value version {version} for record type 0"
    if version > profile.newest_value_version(decoded.record_type) and not profile.reads_newer_as_newest:
        return "records:Y4", f"unknown value version {version} for record type {decoded.record_type}"
    if decoded.layout is not None and not decoded.layout.is_written_by(profile.release):
        try:
            decode_value(RECORD_TYPES[decoded.record_type], record.value, profile.release, only_release=True)
        except CorruptRecordError as error:
            return "B-9", f"the value has the layout of another release: {error.problem}"
    return _refused_tag(record.value, decoded.layout, version, profile)


def _refused_tag(value: bytes, layout: Message | None, version: int, profile: Profile) -> tuple[str, str] | None:
    """Return why a release that goes by the size of a tag cannot read what later ones read by its type."""
    if layout is None or not layout.has_later_tags(version, profile.release):
        return None
    try:
        parse_prefix(layout.struct_known_to(version, profile.release), value[INT16.size :], "value")
    except CorruptRecordError as error:
        return "records:P6", f"a tagged field that the release does not know has not its size: {error.problem}"
    return None
