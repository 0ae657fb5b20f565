"""Small logs for tests of semantics: one call a batch, real bytes, read through the whole pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from offsets_log.log_format.building import build_batch, build_marker, encode_legacy_message
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.control_record import CONTROL_KEY
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import ZERO_UUID, build
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.profile import Profile

TIME = 1_700_000_000_000


def record_bytes(
    record_type: int, key: dict[str, Any], value: dict[str, Any] | None, version: int
) -> tuple[bytes, Any]:
    """A record's key and value; rows the value lacks get the schema's defaults."""
    layout = next(RECORD_TYPES[record_type].layouts(version))
    full = None if value is None else layout.from_json({}, version) | value
    return encode_coordinator_record(
        CoordinatorRecord(
            record_type=record_type, key=key, value=full, value_version=None if full is None else version, layout=layout
        )
    )


def member(member_id: str, **facts: Any) -> dict[str, Any]:
    """A member row of type 2."""
    row = {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout": 1000,
        "session_timeout": 2000,
        "subscription": b"",
        "assignment": b"",
    }
    return row | facts


class LogBuilder:
    """Batches of one offsets partition, one call each; every method returns the builder."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.offset = 0

    def add(self, *records: tuple[bytes | None, bytes | None], times: Sequence[int] = (), **facts: Any) -> Self:
        """A batch of raw keys and values at the next offset, written at these times in turn, or at one."""
        times = times or (TIME + self.offset,)
        made = [
            Record(offset=self.offset + i, timestamp_ms=times[i % len(times)], key=key, value=value)
            for i, (key, value) in enumerate(records)
        ]
        self.batches.append(build_batch(made, **facts))
        self.offset += len(records)
        return self

    def wrap(self, *records: tuple[int, tuple[bytes | None, bytes | None]], magic: int = 1) -> Self:
        """A compressed message at the next offset, around messages of any offsets."""
        codec = CODEC_NAMED["gzip"]
        inner = b"".join(
            encode_legacy_message(magic=magic, offset=offset, timestamp_ms=TIME, attributes=0, key=key, value=value)
            for offset, (key, value) in records
        )
        value = codec.compress(inner, magic)
        self.batches.append(
            encode_legacy_message(
                magic=magic, offset=self.offset, timestamp_ms=TIME, attributes=codec.id, key=None, value=value
            )
        )
        self.offset += 1
        return self

    def skip(self, count: int) -> Self:
        """A gap, as the cleaner leaves."""
        self.offset += count
        return self

    def commit(
        self, offset: int | None, *, group: str = "g", topic: str = "t", partition: int = 0, producer: int = -1,
        type_: int = 1, version: int | None = None, **value: Any,
    ) -> Self:  # fmt: skip
        """An offset commit, or (offset None) its tombstone; of a transaction if a producer is given."""
        key = {"group": group, "topic": topic, "partition": partition}
        fields = None
        if offset is not None:
            fields = {"offset": offset, "leader_epoch": -1, "metadata": "", "commit_timestamp": TIME} | value
            fields |= {"expire_timestamp": -1, "topic_id": ZERO_UUID} | value
        version = (0 if type_ == 0 else 4) if version is None else version
        return self.add(record_bytes(type_, key, fields, version), **self.transaction(producer))

    @staticmethod
    def transaction(producer: int) -> dict[str, Any]:
        """Batch facts of a producer's transaction; nothing for −1."""
        if producer == -1:
            return {}
        return {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}

    def end(self, producer: int, *, commit: bool = True, epoch: int = 1) -> Self:
        """A transaction marker."""
        self.batches.append(
            build_marker(
                self.offset, commit=commit, producer_id=producer, producer_epoch=epoch, timestamp_ms=TIME + self.offset
            )
        )
        self.offset += 1
        return self

    def control(self, producer: int, *types: int) -> Self:
        """A control batch with one record for each type number, as no broker writes it."""
        keys = [build(CONTROL_KEY, {"version": 0, "type": number}, "key") for number in types]
        return self.add(
            *((key, bytes(6)) for key in keys), **self.transaction(producer) | {"base_sequence": -1}, is_control=True
        )

    def group(
        self, *members: dict[str, Any], group: str = "g", version: int = 3, gone: bool = False, **facts: Any
    ) -> Self:
        """A type 2 record, or its tombstone."""
        value = {
            "protocol_type": "consumer",
            "generation": 1,
            "protocol": "range" if members else None,
            "leader": members[0]["member_id"] if members else None,
            "current_state_timestamp": TIME,
            "members": list(members),
        }
        return self.add(record_bytes(2, {"group": group}, None if gone else value | facts, version))

    def newer(
        self, type_: int, value: dict[str, Any] | None, *, group: str = "g", member_id: str | None = None
    ) -> Self:
        """A record of a newer kind of group."""
        key = {"group_id": group} if member_id is None else {"group_id": group, "member_id": member_id}
        return self.add(record_bytes(type_, key, value, 0))

    @property
    def log(self) -> PartitionLog:
        """What was built."""
        return PartitionLog(0, (Segment("built.log", 0, b"".join(self.batches)),))

    def load(self, profile: Profile) -> CoordinatorState:
        """What a coordinator makes of it."""
        return finish(replay(iter_events(self.log), profile, on_damage=lambda damage: None))

    def served(self, profile: Profile) -> dict[str, int]:
        """group/topic/partition → committed offset."""
        return {
            f"{value.group}/{value.topic}/{value.partition}": value.committed_offset
            for value in self.load(profile).iter_served()
        }


UNKNOWN = (b"\0\x63x", b"")
"""A record of no known type: kernels leave its batch to the slow path."""


class PartlySlow(LogBuilder):
    """Of so many batches of records one is read on the slow path: it has a record of an unknown type, too."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every

    def add(self, *records: tuple[bytes | None, bytes | None], **facts: Any) -> Self:
        is_slow = self.every and len(self.batches) % self.every == 0
        return super().add(*records, *[UNKNOWN] * bool(is_slow), **facts)
