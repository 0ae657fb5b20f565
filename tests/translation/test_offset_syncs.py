"""Offsets by MirrorMaker's syncs: what it writes, played with restarts and lost syncs, and where records then are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from offsets_log.disk.translating import Synced
from offsets_log.errors import Damage
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.mirror_maker import (
    CHECKPOINTS,
    OFFSET_SYNCS,
    MirrorMakerRecord,
    MirrorMakerTopic,
    encode_mirror_maker_record,
)
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer, Later, Untold
from offsets_log.translation.offset_syncs import (
    Checkpoint,
    PartitionSyncs,
    PlainRanges,
    read_checkpoints,
    read_offset_syncs,
)
from tests.translation.test_alignment import examples


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
    assert syncs.translate(100, plain) == Answer(10, EXACT, 0)
    assert syncs.translate(101, plain) == Answer(11, BY_COUNT, 0)
    assert syncs.translate(150, plain) == Answer(60, BY_COUNT, 0)
    assert syncs.translate(150, lambda first, behind: False) == Answer(11, AT_LEAST, 99)
    assert syncs.translate(250, plain) == Answer(155, AT_LEAST, 5)
    assert syncs.translate(299, plain) == Answer(204, AT_LEAST, 1)
    assert syncs.translate(301, plain) == Answer(206, AT_LEAST, None)
    assert syncs.translate(301, plain, 400) == Answer(206, BY_COUNT, 0)
    assert syncs.translate(310, plain, 400) == Answer(206, AT_LEAST, 9)
    assert syncs.translate(310, plain, 205) == syncs.translate(310, plain, 100) == Answer(206, AT_LEAST, None)
    assert syncs.translate(1000, plain, 400) == Answer(206, AT_LEAST, 194)
    assert syncs.translate(1000, plain, 206) == Answer(206, BY_COUNT, 0)
    answers = [syncs.translate(offset, plain) for offset in (100, 150, 250, 299)]
    asked: list[tuple[int, int]] = []
    for offset, end in ((150, None), (250, None), (310, 400)):
        syncs.translate(offset, lambda first, behind: bool(asked.append((first, behind))), end)
    assert asked == [(10, 111), (110, 206), (205, 400)], "both syncs are among what must be plain"
    known = [(answer.before, answer.later) for answer in answers if answer]
    assert known == [(9, None), (10, None), (110, Later(160, 0, 5)), (110, Later(205, 0, 1))]
    assert syncs_of((100, 0)).translate(7, plain) == Answer(0, EXACT, 0)
    assert syncs_of((100, 0), (200, 50)).translate(7, plain) == Answer(0, EXACT, 0)
    assert PartitionSyncs().translate(7, plain) is None
    assert syncs_of((1000, 1000), (1009, 1001)).translate(1003, plain) == Answer(1001, BY_COUNT, 0)
    assert syncs_of((1000, 1000), (1009, 1002)).translate(1003, plain) == Answer(1001, AT_LEAST, 1)
    assert syncs_of((100, 10), (200, 111)).translate(150, plain) == Answer(11, AT_LEAST, 100)
    assert syncs_of((100, 10), (200, 110), (200, 110)).translate(150, plain) == Answer(60, BY_COUNT, 0)


def test_without_a_copy_nothing_is_counted_between_two_syncs() -> None:
    told = Synced(syncs_of((100, 10), (200, 110)), [99, 100, 150], None, None).run().value
    expected = {99: Untold("it is before all offset syncs"), 100: Answer(10, EXACT, 0), 150: Answer(11, AT_LEAST, 99)}
    assert told == expected


def test_a_target_that_began_anew_and_a_source_read_again() -> None:
    assert syncs_of((100, 100), (200, 200), (201, 0)).translate(150, plain) == Answer(0, EXACT, 0)
    assert syncs_of((100, 100), (200, 100)).translate(150, plain) is None
    assert syncs_of((100, 100), (200, 150), (300, 150)).translate(150, plain) is None
    again = syncs_of((100, 100), (140, 140), (121, 151))
    assert again.translate(140, plain) == Answer(152, AT_LEAST, None)
    assert again.translate(110, plain) == Answer(101, AT_LEAST, 50)


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


def copied(data: st.DataObject, source: list[int]) -> Mirror:
    """Copy a source, with restarts after which some records come again."""
    mirror, at = Mirror(), 0
    while at < len(source):
        mirror.copy(source[at])
        at += 1
        if data.draw(st.integers(0, 15)) == 0:
            back = data.draw(st.sampled_from([0, 2, 3, 6]))
            at -= back if back <= at else 0
            mirror.restart()
    return mirror


def kept_syncs(data: st.DataObject, mirror: Mirror) -> PartitionSyncs:
    """Those on disk: a later one may have taken a sync's place while it waited, and the cleaner leaves the last."""
    syncs, is_next = PartitionSyncs(), True
    for i, sync in enumerate(mirror.syncs):
        is_last = i + 1 == len(mirror.syncs)
        fate = "kept" if is_last else data.draw(st.sampled_from(["kept", "kept", "replaced", "cleaned"]))
        if fate == "cleaned":
            is_next = False
        elif fate == "kept":
            syncs.add(*sync, is_next=is_next)
            is_next = True
    return syncs


def check(told: Answer, offset: int, source: list[int], target: list[int]) -> None:
    unread = [number for number in source if number >= offset]
    read = target[told.target_offset :]
    assert set(unread) <= set(read), "a record is skipped"
    if told.how != AT_LEAST and unread:
        assert read[0] == unread[0]
    elif told.reread_at_most is not None:
        assert (read.index(unread[0]) if unread else len(read)) <= told.reread_at_most


@examples(100)
@given(st.data())
def test_no_record_is_skipped_and_no_more_are_read_again_than_said(data: st.DataObject) -> None:
    source = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1)))
    mirror = copied(data, source)
    syncs, ranges = kept_syncs(data, mirror), PlainRanges()
    for i, number in enumerate(mirror.target):
        ranges.add(i, i, number, number)
    target_end = data.draw(st.sampled_from([None, len(mirror.target)]))
    for offset in range(63):
        told = syncs.translate(offset, ranges.covers, target_end)
        if told is not None:
            check(told, offset, source, mirror.target)


def build(topic: MirrorMakerTopic, *records: tuple[int, dict[str, object], dict[str, object] | None]) -> PartitionLog:
    batches = [build_batch([record_of(topic, *record)]) for record in records]
    return PartitionLog(None, (Segment("log", 0, b"".join(batches)),))


def record_of(topic: MirrorMakerTopic, offset: int, key: dict[str, object], value: dict[str, object] | None) -> Record:
    record = MirrorMakerRecord(topic=topic, key=key, value=value, value_version=0)
    key_bytes, value_bytes = encode_mirror_maker_record(record)
    return Record(offset=offset, timestamp_ms=1, key=key_bytes, value=value_bytes)


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
    assert found["orders", 0].translate(20, plain) == Answer(20, BY_COUNT, 0)
    assert found["orders", 0].translate(70, plain) == Answer(51, AT_LEAST, 39)
    assert found["orders", 1].translate(9, plain) == Answer(6, AT_LEAST, None)


def test_damage_among_syncs_is_told_and_closes_nothing() -> None:
    damages: list[Damage] = []
    log = build(OFFSET_SYNCS, sync(0, 0, 0, 0), sync(1, 0, 50, 50), sync(2, 0, 90, 90))
    broken = bytearray(bytes(log.segments[0].buffer))
    size = len(broken) // 3
    broken[size + size - 1] ^= 0xFF
    found = read_offset_syncs(PartitionLog(None, (Segment("log", 0, bytes(broken)),)), damages)
    assert len(damages) == 1
    assert found["orders", 0].translate(20, plain) == Answer(1, AT_LEAST, 89)


def test_a_sync_that_is_none_is_told_and_those_behind_it_are_read() -> None:
    """Also behind a partition's tombstone, a sync of no offset, and a control batch."""
    damages: list[Damage] = []
    key: dict[str, object] = {"topic": "orders", "partition": 0}
    before = build(OFFSET_SYNCS, sync(0, 0, 7, 7), (1, key, None), sync(2, 0, 10, 10), sync(3, 0, -1, 5))
    behind = build(OFFSET_SYNCS, sync(6, 0, 50, 50), sync(7, 1, 3, 3))
    bad = build_batch([Record(offset=4, timestamp_ms=1, key=b"\0\0\0", value=b"\0")])
    marker = build_marker(5, commit=True, producer_id=1, producer_epoch=0, timestamp_ms=1)
    data = b"".join((bytes(before.segments[0].buffer), bad, marker, bytes(behind.segments[0].buffer)))
    found = read_offset_syncs(PartitionLog(None, (Segment("log", 0, data),)), damages)
    assert [(one.error.file, one.error.record_offset, one.raw) for one in damages] == [("log", 4, b"\0\0\0\0")]
    assert list(found["orders", 0].upstream) == [10, 50]
    assert list(found["orders", 0].closed) == [False, False]
    assert list(found["orders", 1].upstream) == [3]


def test_behind_a_record_that_cannot_be_read_its_batch_is_read_on() -> None:
    """The offset of the second would be that of the first; syncs on either side of it do not follow each other."""
    damages: list[Damage] = []
    rows = [record_of(OFFSET_SYNCS, *sync(0, 0, at, at)) for at in (0, 9, 50)]
    records = [replace(row, offset=offset) for row, offset in zip(rows, (0, 0, 1), strict=True)]
    found = read_offset_syncs(PartitionLog(None, (Segment("log", 0, build_batch(records)),)), damages)
    assert [one.error.file for one in damages] == ["log"]
    assert list(found["orders", 0].upstream) == [0, 50]


def test_checkpoints() -> None:
    key: dict[str, object] = {"group": "g", "topic": "a.orders", "partition": 1}
    values = [{"upstream_offset": up, "downstream_offset": up - 3, "metadata": "m"} for up in (40, 50)]
    damages: list[Damage] = []
    found = read_checkpoints(build(CHECKPOINTS, (0, key, values[0]), (1, key, values[1])), damages)
    assert (found, damages) == ({("g", "a.orders", 1): Checkpoint(50, 47, "m")}, [])
    point = found["g", "a.orders", 1]
    assert point.translate(49) is None
    assert point.translate(60) == Answer(47, AT_LEAST, None)
    assert Checkpoint(0, 0, "").translate(0) == Answer(0, AT_LEAST, None)
    assert Checkpoint(-1, 0, "").translate(0) is None
    assert Checkpoint(0, -1, "").translate(0) is None
    gone = read_checkpoints(build(CHECKPOINTS, (0, key, values[0]), (1, key, None)), damages)
    assert gone == {}


def test_ranges_without_transactions() -> None:
    ranges = PlainRanges()
    for first, last, ms in ((10, 19, 5), (20, 29, 6), (40, 49, 7), (50, 59, 6), (60, 69, 6)):
        ranges.add(first, last, ms, ms)
    assert ranges.covers(10, 30)
    assert ranges.covers(15, 16)
    assert ranges.covers(40, 50)
    assert ranges.covers(50, 70)
    assert not ranges.covers(9, 12)
    assert not ranges.covers(25, 41)
    assert not ranges.covers(45, 51), "the second batch is copied again"
    assert not PlainRanges().covers(0, 1)
