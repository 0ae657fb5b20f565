"""Offsets by MirrorMaker's syncs: what it writes, played with restarts and lost syncs, and where records then are."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import Damage
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.mirror_maker import (
    CHECKPOINTS,
    OFFSET_SYNCS,
    MirrorMakerRecord,
    MirrorMakerTopic,
    encode_mirror_maker_record,
)
from offsets_log.translation.offset_syncs import (
    AT_LEAST,
    BY_COUNT,
    EXACT,
    Checkpoint,
    PartitionSyncs,
    PlainRanges,
    Translated,
    read_checkpoints,
    read_offset_syncs,
)


def syncs_of(*pairs: tuple[int, int]) -> PartitionSyncs:
    syncs = PartitionSyncs()
    for upstream, downstream in pairs:
        syncs.add(upstream, downstream, is_next=True)
    return syncs


def plain(first: int, behind: int) -> bool:
    return True


def test_each_way() -> None:
    syncs = syncs_of((100, 10), (200, 110), (300, 205))
    assert syncs.translate(99, plain) is None
    assert syncs.translate(100, plain) == Translated(10, EXACT, 0)
    assert syncs.translate(101, plain) == Translated(11, EXACT, 0)
    assert syncs.translate(150, plain) == Translated(60, BY_COUNT, 0)
    assert syncs.translate(150, lambda first, behind: False) == Translated(11, AT_LEAST, 49)
    assert syncs.translate(250, plain) == Translated(155, AT_LEAST, 5)
    assert syncs.translate(299, plain) == Translated(204, AT_LEAST, 1)
    assert syncs.translate(301, plain) == Translated(206, EXACT, 0)
    assert syncs.translate(1000, plain) == Translated(206, AT_LEAST, 699)
    assert syncs_of((100, 0)).translate(7, plain) == Translated(0, EXACT, 0)
    assert PartitionSyncs().translate(7, plain) is None


def test_a_target_that_began_anew_and_a_source_read_again() -> None:
    assert syncs_of((100, 100), (200, 200), (201, 0)).translate(150, plain) == Translated(0, EXACT, 0)
    assert syncs_of((100, 100), (200, 100)).translate(150, plain) is None
    again = syncs_of((100, 100), (140, 140), (121, 151))
    assert again.translate(140, plain) == Translated(152, AT_LEAST, 18)
    assert again.translate(110, plain) == Translated(101, AT_LEAST, 50)


@dataclass
class Mirror:
    """MirrorMaker over a source: what is in the target, and its syncs with whether the one before is known."""

    target: list[int] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    lag: int = 5
    previous: int = -9
    synced: int = -1

    def copy(self, source: int) -> None:
        """``OffsetSyncWriter.PartitionState.update``."""
        at = len(self.target)
        self.target.append(source)
        if self.synced == -1 or at - (self.synced + 1) >= self.lag or source - self.previous != 1:
            self.synced = at
            self.syncs.append((source, at))
        self.previous = source

    def restart(self) -> None:
        self.previous, self.synced = -9, -1


@given(st.data())
def test_no_record_is_skipped_and_no_more_are_read_again_than_said(data: st.DataObject) -> None:
    """Sources with gaps, restarts that copy records again, syncs lost to a full queue or to the cleaner."""
    source = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1)))
    mirror, at = Mirror(), 0
    is_first_after_restart = set()
    while at < len(source):
        mirror.copy(source[at])
        at += 1
        if data.draw(st.integers(0, 15)) == 0:
            at = max(0, at - data.draw(st.integers(0, 6)))
            mirror.restart()
            is_first_after_restart.add(len(mirror.syncs))
    syncs, is_next = PartitionSyncs(), True
    for i, sync in enumerate(mirror.syncs):
        is_last_of_a_life = i + 1 == len(mirror.syncs) or i + 1 in is_first_after_restart
        fate = "kept" if is_last_of_a_life else data.draw(st.sampled_from(["kept", "kept", "replaced", "cleaned"]))
        if fate == "cleaned":
            is_next = False
        elif fate == "kept" or i in is_first_after_restart:
            syncs.add(*sync, is_next=is_next)
            is_next = True
    for offset in range(63):
        told = syncs.translate(offset, plain)
        if told is None:
            continue
        first_unread = [i for i, number in enumerate(mirror.target) if number >= offset]
        later = [number for number in source if number >= offset]
        assert set(later) <= set(mirror.target[told.target_offset :]), "a record is skipped"
        if told.how != AT_LEAST and offset <= source[-1]:
            assert told.target_offset in first_unread
            assert mirror.target[told.target_offset] == later[0]
        elif told.how == AT_LEAST:
            assert told.reread_at_most is not None
            read = mirror.target[told.target_offset :]
            again = [number for number in read[: read.index(later[0]) if later else None] if number < offset]
            assert len(set(again)) <= told.reread_at_most


def build(topic: MirrorMakerTopic, *records: tuple[int, dict[str, object], dict[str, object] | None]) -> PartitionLog:
    batches = []
    for offset, key, value in records:
        record = MirrorMakerRecord(topic=topic, key=key, value=value, value_version=0)
        key_bytes, value_bytes = encode_mirror_maker_record(record)
        batches.append(build_batch([Record(offset=offset, timestamp_ms=1, key=key_bytes, value=value_bytes)]))
    return PartitionLog(None, (Segment("log", 0, b"".join(batches)),))


def sync(
    offset: int, partition: int, upstream: int, downstream: int
) -> tuple[int, dict[str, object], dict[str, object]]:
    key: dict[str, object] = {"topic": "orders", "partition": partition}
    return offset, key, {"upstream_offset": upstream, "downstream_offset": downstream}


def test_syncs_are_read_with_what_the_cleaner_took() -> None:
    """Between syncs of one partition others may lie; a missing offset may have been any sync."""
    damages: list[Damage] = []
    rows = [sync(0, 0, 0, 0), sync(1, 1, 5, 5), sync(2, 0, 50, 50), sync(9, 0, 90, 90), sync(10, 1, 9, -1)]
    found = read_offset_syncs(build(OFFSET_SYNCS, *rows), damages)
    assert damages == []
    assert found["orders", 0].translate(20, plain) == Translated(20, BY_COUNT, 0)
    assert found["orders", 0].translate(70, plain) == Translated(51, AT_LEAST, 39)
    assert found["orders", 1].translate(9, plain) == Translated(6, AT_LEAST, 3)


def test_damage_among_syncs_is_told_and_closes_nothing() -> None:
    damages: list[Damage] = []
    log = build(OFFSET_SYNCS, sync(0, 0, 0, 0), sync(1, 0, 50, 50), sync(2, 0, 90, 90))
    broken = bytearray(bytes(log.segments[0].buffer))
    size = len(broken) // 3
    broken[size + size - 1] ^= 0xFF
    found = read_offset_syncs(PartitionLog(None, (Segment("log", 0, bytes(broken)),)), damages)
    assert len(damages) == 1
    assert found["orders", 0].translate(20, plain) == Translated(1, AT_LEAST, 89)


def test_checkpoints() -> None:
    key: dict[str, object] = {"group": "g", "topic": "a.orders", "partition": 1}
    values = [{"upstream_offset": up, "downstream_offset": up - 3, "metadata": "m"} for up in (40, 50)]
    damages: list[Damage] = []
    found = read_checkpoints(build(CHECKPOINTS, (0, key, values[0]), (1, key, values[1])), damages)
    assert (found, damages) == ({("g", "a.orders", 1): Checkpoint(50, 47, "m")}, [])
    point = found["g", "a.orders", 1]
    assert point.translate(49) is None
    assert point.translate(60) == Translated(47, AT_LEAST, None)
    gone = read_checkpoints(build(CHECKPOINTS, (0, key, values[0]), (1, key, None)), damages)
    assert gone == {}


def test_ranges_without_transactions() -> None:
    ranges = PlainRanges()
    for first, last in ((10, 19), (20, 29), (40, 49)):
        ranges.add(first, last)
    assert ranges.covers(10, 30)
    assert ranges.covers(15, 16)
    assert not ranges.covers(9, 12)
    assert not ranges.covers(25, 41)
    assert not ranges.covers(45, 51)
    assert not PlainRanges().covers(0, 1)
