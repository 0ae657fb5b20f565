"""Repaired logs: what stays is as it was, what is left out is told, and a broker finds nothing to mend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import google_crc32c
import pytest

from offsets_log.broker.hand_over import hand_over
from offsets_log.cleaner.answers import Answers, differences
from offsets_log.data_directory.identity import of_topic
from offsets_log.disk.folder import CHECKPOINTS
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, decode_batch_header, encode_batch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.repairing.bulk_refusals import problems_in_bulk
from offsets_log.repairing.refusals import find_unloadable
from offsets_log.replay.profile import PROFILES
from offsets_log.replay.releases import release_named
from tests.builders import LogBuilder, record_bytes
from tests.conftest import DISTINCT, log_directories, read_partitions
from tests.fuzz.mutation import RECORDINGS as PACKED
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.repairing.repaired import RELEASES, batches_of, check_repaired, must_hold, read_again, repaired
from tests.sizes import so_many

NAME = f"{0:020}.log"
OFFSET = record_bytes(
    1, {"group": "g", "topic": "t", "partition": 0}, {"offset": 5, "metadata": "", "commit_timestamp": 1}, 1
)
UNREADABLE = (b"\x00\x01\x00", b"\x00\x03")
"""A record that no release reads."""


def log_of(*batches: bytes, base_offset: int | None = 0) -> PartitionLog:
    return PartitionLog(0, (Segment("built.log", base_offset, b"".join(batches)),))


def reasons(log: PartitionLog, release: str | None = None) -> dict[str, int]:
    """Reason → pieces."""
    done, _ = must_hold(log, release)
    return {reason: summed.pieces for reason, summed in done.left_out.items()}


@pytest.mark.parametrize("name", DISTINCT)
def test_a_sound_log_stays_as_it_is(name: str, recording: Callable[[str], Path]) -> None:
    """Segments byte for byte, and indexes as the broker had them (``CL-41``–``CL-43``)."""
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            done, files = must_hold(log)
            kept = {name: data for name, data in files.items() if name.endswith(".log")}
            there = {f"{segment.base_offset:020}.log": bytes(segment.buffer) for segment in log.segments}
            if not done.left_out:
                assert kept.items() <= {name: data[: len(kept.get(name, data))] for name, data in there.items()}.items()
                assert all(not any(data[len(kept.get(name, b"")) :]) for name, data in there.items()), "but for zeros"


@pytest.mark.parametrize("seed", range(4))
def test_hostile_segments_become_logs_with_nothing_to_repair(seed: int) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in ("kafka-lifetime", "kafka-4.3-mixed")]))
    found = [check_repaired(data) for data in islice(hostile_segments(seeds, seed), so_many(500))]
    assert sum(batches for batches, _ in found) > 20
    assert sum(pieces for _, pieces in found) > 100


def test_a_broken_batch_is_left_out_and_the_others_stay() -> None:
    builder = LogBuilder().commit(1).commit(2, topic="u").commit(3, topic="v")
    first, second, third = builder.batches
    broken = second[:-1] + bytes([second[-1] ^ 1])
    done, files = must_hold(log_of(first, broken, third))
    assert files[NAME] == first + third
    assert (done.end_offset, done.batches, done.rewritten) == (3, 2, 0)
    (summed,) = done.left_out.values()
    assert (summed.pieces, summed.size_bytes) == (1, len(second))


def test_what_is_left_out_is_named() -> None:
    first, second, third = LogBuilder().commit(1).commit(2).commit(3).batches
    assert reasons(log_of(first, b"\xff" * 100, third)) == {"no batch": 1}
    assert reasons(log_of(first, second, third[:-5])) == {"torn tail": 1}
    assert reasons(log_of(first, second, second, third)) == {"offsets that were read already": 1}
    assert reasons(log_of(first, (1 << 40).to_bytes(8) + second[8:], third)) == {"offsets out of place": 1}
    assert reasons(log_of(first, second, third, bytes(300))) == {}, "zeros at the end are nothing"


def test_segments_that_overlap_are_cut_where_the_one_before_ends() -> None:
    """``C-24``."""
    batches = LogBuilder().commit(1).commit(2).commit(3).batches
    log = PartitionLog(0, (Segment("a", 0, b"".join(batches[:2])), Segment("b", 1, b"".join(batches[1:]))))
    done, files = must_hold(log)
    assert [name for name in sorted(files) if name.endswith(".log")] == [NAME, f"{2:020}.log"]
    assert done.left_out["offsets that were read already"].pieces == 1


def test_empty_segments_go_and_the_last_offset_is_that_of_an_empty_batch() -> None:
    """A broker loads a log that only the name of an empty segment ends, and answers nothing from it."""
    (batch,) = LogBuilder().commit(1).batches
    log = PartitionLog(0, (Segment("a", 0, batch), Segment("b", 5, b""), Segment("c", 9, b"")))
    done, files = must_hold(log)
    assert [name for name in sorted(files) if name.endswith(".log")] == [NAME]
    assert [(found.base_offset, found.records_count) for found in batches_of(files[NAME])] == [(0, 1), (8, 0)]
    assert (done.start_offset, done.end_offset) == (0, 9)


def test_a_log_of_nothing_becomes_an_empty_one() -> None:
    done, files = must_hold(log_of(b"\xff" * 200, base_offset=7))
    assert files[f"{7:020}.log"] == b""
    assert (done.start_offset, done.end_offset, done.batches) == (7, 7, 0)


def test_a_damaged_record_goes_out_of_its_batch() -> None:
    builder = LogBuilder().add(OFFSET, (b"\x00\x01key", b"value"), OFFSET)
    (raw,) = builder.batches
    at = raw.index(b"\x00\x01key")
    raw = raw[: at - 1] + b"\x7f" + raw[at:]  # its key would be longer than the record
    crc = google_crc32c.value(raw[21:]).to_bytes(4)
    done, files = must_hold(log_of(raw[:17] + crc + raw[21:]))
    (batch,) = batches_of(files[NAME])
    assert (batch.records_count, batch.base_offset, batch.last_offset, done.rewritten) == (2, 0, 2, 1)


@pytest.mark.parametrize("producer", [-1, 7])
def test_records_that_end_a_load_are_taken_out(producer: int) -> None:
    """A transaction keeps its batch, though it is empty, and its marker (``CL-35``)."""
    builder = LogBuilder().commit(1).add(UNREADABLE, **LogBuilder.transaction(producer)).commit(2, topic="u")
    if producer > 0:
        builder.end(producer)
    assert reasons(builder.log) == {}, "the batch is sound"
    done, files, left_out = repaired(builder.log, "4.3.0")
    must_hold(builder.log, "4.3.0")
    assert [one.reason for one in left_out] == ["ends the load"]
    assert left_out[0].damage.raw == (builder.batches[1] if producer < 0 else b"".join(UNREADABLE))
    assert left_out[0].damage.error.record_offset == 1
    found = list(batches_of(files[NAME]))
    assert [batch.records_count for batch in found] == ([1, 1] if producer < 0 else [1, 0, 1, 1])
    assert done.rewritten == (producer > 0)
    served = LogBuilder()
    served.batches = [files[NAME]]
    assert served.served(PROFILES["modern"]) == {"g/t/0": 1, "g/u/0": 2}


def test_records_that_end_a_load_by_what_stands_before_them_are_found_too() -> None:
    """A group of another kind (``J-19``); what stands behind the record that is taken out is sound then."""
    builder = LogBuilder().group(group="g").newer(3, {"epoch": 1}).newer(3, {"epoch": 2}).commit(4)
    done, files = must_hold(builder.log, "4.3.0")
    assert done.left_out["ends the load"].pieces == 2
    assert [batch.offset for batch in batches_of(files[NAME])] == [0, 3]
    assert reasons(builder.log, "3.9.1") == {}, "the Scala coordinator passes over them"


@pytest.mark.parametrize("name", DISTINCT)
def test_kernels_find_the_records_that_end_a_load(name: str, recording: Callable[[str], Path]) -> None:
    """Of groups, too, one of whose records is refused though it can be decoded; of random logs by one release for each.

    By a quarter of the releases for each other log, in turn.
    """
    releases = [release_named(release) for release in RELEASES if release]
    for directory in log_directories(recording(name)):
        for turn, log in enumerate(read_partitions(directory).values(), DISTINCT.index(name)):
            is_random = name == "random-java"
            for release in [releases[turn % len(releases)]] if is_random else releases[turn % 4 :: 4]:
                found = problems_in_bulk(log, release, {})
                assert found is None or find_unloadable(log, release, in_bulk=True) == find_unloadable(log, release)


def test_a_group_is_sound_without_a_record_that_is_refused() -> None:
    builder = LogBuilder().group(group="g").newer(3, {"epoch": 1}, group="n").group(group="n").commit(4)
    for name in ("3.7.2-java", "2.0.0", "4.3.0"):
        release = release_named(name)
        found = find_unloadable(builder.log, release, in_bulk=True)
        assert found == find_unloadable(builder.log, release)
        assert problems_in_bulk(builder.log, release, {}) is not None


def test_kernels_find_the_records_that_end_a_load_in_what_stays_of_a_damaged_log() -> None:
    """A record of another kind ends it, unless it, or its group's first record, was in the broken batch (``J-19``)."""
    builder = LogBuilder().group(group="g").commit(1).newer(3, {"epoch": 1}, group="g").group(group="n")
    builder.newer(3, {"epoch": 1}, group="n").commit(4)
    release = release_named("4.3.0")
    found = []
    for broken in range(len(builder.batches)):
        batches = list(builder.batches)
        batches[broken] = batches[broken][:-1] + bytes([batches[broken][-1] ^ 0xFF])
        log = log_of(*batches)
        assert problems_in_bulk(log, release, {}) is not None
        in_bulk = find_unloadable(log, release, in_bulk=True)
        assert in_bulk == find_unloadable(log, release)
        found.append(sorted(in_bulk.problems))
    assert found == [[4], [2, 4], [4], [2], [2], [2, 4]], "the second record of another kind, of groups g and n"


def test_what_stays_because_something_else_ends_a_load_is_looked_at_too() -> None:
    """A message within another, whose offset is one of a batch that is left out."""
    key, value = UNREADABLE
    first = build_batch([Record(offset=5, timestamp_ms=1, key=key, value=value)], last_offset=9)
    within = [
        Record(offset=8, timestamp_ms=1, key=key, value=value),
        Record(offset=10, timestamp_ms=1, key=OFFSET[0], value=OFFSET[1]),
    ]
    second = build_batch(within, magic=1, compression="gzip")
    log, release = log_of(first, second), release_named("2.8.0")
    for in_bulk in (False, True):
        assert sorted(find_unloadable(log, release, in_bulk=in_bulk).problems) == [5, 8]
    must_hold(log, "2.8.0")


def test_batches_that_a_release_does_not_read_are_left_out_whole() -> None:
    """``records:M1``."""
    builder = LogBuilder().add(UNREADABLE, magic=1).commit(1)
    builder.batches[0] = LogBuilder().commit(3, type_=0).batches[0]
    assert reasons(builder.log, "0.10.2.0") == {"ends the load": 2}


def test_a_transaction_whose_marker_is_broken_stays_open() -> None:
    builder = LogBuilder().commit(1, producer=7).end(7).commit(2)
    marker = builder.batches[1]
    done, _ = must_hold(log_of(builder.batches[0], marker[:-1] + bytes([marker[-1] ^ 1]), builder.batches[2]))
    assert (done.last_stable_offset, done.end_offset) == (0, 3)
    assert must_hold(builder.log)[0].last_stable_offset == 3


@pytest.mark.parametrize("count", [2, 3, 1 << 20])
def test_a_marker_with_a_wrong_count_ends_its_transaction_as_for_a_load(count: int) -> None:
    """A broker takes the first record of a control batch and looks no further (``records:C2``)."""
    builder = LogBuilder().commit(1, producer=7).end(7).commit(2)
    header = decode_batch_header(builder.batches[1])
    builder.batches[1] = encode_batch(replace(header, records_count=count), header.raw[BATCH_HEADER_SIZE:])
    done, files = must_hold(builder.log)
    assert (done.last_stable_offset, done.rewritten) == (3, 1)
    (summed,) = done.left_out.values()
    assert (summed.pieces, summed.records) == (1, 0)
    answers = [Answers.of(log, passes_damage=True) for log in (builder.log, read_again(done, files))]
    assert not differences(*answers)
    assert answers[0].states[0].standing.record_offsets


def test_a_batch_that_is_left_out_is_told_with_the_records_that_it_has() -> None:
    """Whatever number its header tells."""
    builder = LogBuilder().commit(1, producer=7)
    builder.add(OFFSET, OFFSET, OFFSET, producer_id=7, producer_epoch=0, base_sequence=1)
    done, _ = must_hold(builder.log)
    assert {reason: summed.records for reason, summed in done.left_out.items()} == {"refused at a broker's start": 3}
    header = decode_batch_header(builder.batches[1])
    wrong = encode_batch(replace(header, records_count=2), header.raw[BATCH_HEADER_SIZE:])
    builder.batches[1] = wrong
    done, _ = must_hold(builder.log)
    assert done.left_out["refused at a broker's start"].records == 2


def test_what_no_broker_starts_over_is_left_out() -> None:
    """A producer that writes outside of its open transaction, a control record of another type (``D-8``)."""
    builder = LogBuilder().commit(1, producer=7)
    builder.add(OFFSET,
                producer_id=7, producer_epoch=0, base_sequence=1)  # fmt: skip
    builder.control(8, 4).commit(2)
    assert reasons(builder.log) == {"refused at a broker's start": 2}


def test_leader_epochs_are_those_of_the_file_where_batches_agree() -> None:
    """``CL-50``."""
    builder = LogBuilder().add(OFFSET, partition_leader_epoch=2).skip(8).add(OFFSET, partition_leader_epoch=5)

    def written(told: bytes) -> bytes:
        beside = {"leader-epoch-checkpoint": lambda: told}
        return repaired(replace(builder.log, beside=beside))[1]["leader-epoch-checkpoint"]

    assert written(b"0\n3\n2 0\n4 3\n5 8\n") == b"0\n3\n2 0\n4 3\n5 8\n", "one whose batches are gone stays"
    for other in (b"", b"nonsense", b"0\n1\n2 0\n", b"0\n2\n2 0\n7 5\n"):
        assert written(other) == b"0\n2\n2 0\n5 9\n"


def test_checkpoints_that_make_no_sense_are_not_said_again() -> None:
    """A log start behind the end would delete all (``CL-2``)."""
    log = LogBuilder().commit(1).commit(2).log
    for told, kept in (((1, 2), (1, 2)), ((9, 9), (None, None)), ((None, None), (None, None))):
        checkpoints = Checkpoints(log_start_offset=told[0], cleaned_until=told[1])
        done, files = must_hold(replace(log, checkpoints=checkpoints))
        again = done.checkpoints()
        assert (again.log_start_offset, again.cleaned_until) == kept
        assert (again.high_watermark, again.recovery_point) == (2, 2)
        assert read_again(done, files).checkpoints == again


def test_a_topic_id_is_written_as_a_broker_writes_it(recording: Callable[[str], Path]) -> None:
    """``CL-51``."""
    (told, *_) = [path.read_bytes() for path in recording("kafka-4.3-mixed").rglob("partition.metadata")]
    log = of_topic(LogBuilder().commit(1).log, told.rpartition(b" ")[2].decode())
    assert repaired(log)[1]["partition.metadata"] == told
    assert of_topic(log, None) is log


def test_a_folder_comes_with_the_steps_to_put_it_under_a_broker() -> None:
    """``CL-54``."""
    text = hand_over([12, 3], "HCJdBQf7Qv-GGlbH64RFkg")
    assert "__consumer_offsets-3, __consumer_offsets-12" in text
    assert "says topic id HCJdBQf7Qv-GGlbH64RFkg" in text
    assert "--topic-id" in hand_over([0], None)
    assert "before anything else: __consumer_offsets-3, __consumer_offsets-12\n" in hand_over([12, 3, 4], None, [12, 3])
    for name in (*CHECKPOINTS.values(), ".kafka_cleanshutdown", "partition.metadata", "-stray", "in sync"):
        assert name in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_the_end_of_a_log_stays_where_it_was_whatever_ends_the_load_there() -> None:
    builder = LogBuilder().commit(1).add(UNREADABLE).add(UNREADABLE)
    done, files = must_hold(builder.log, "4.3.0")
    assert (done.end_offset, done.batches) == (3, 2)
    assert [(found.base_offset, found.records_count) for found in batches_of(files[NAME])] == [(0, 1), (2, 0)]


def test_a_release_that_reads_no_such_batch_gets_an_empty_segment_at_the_end() -> None:
    """``CL-55``."""
    old = build_batch([Record(offset=0, key=OFFSET[0], value=OFFSET[1])], magic=1)
    lost = build_batch([Record(offset=1, key=UNREADABLE[0], value=UNREADABLE[1])], magic=1)
    done, files = must_hold(log_of(old + lost), "0.10.2")
    assert (done.end_offset, done.batches) == (2, 1)
    assert files[f"{2:020}.log"] == b""


def test_messages_inside_of_one_stay_within_its_offsets() -> None:
    """One of magic 0 beyond them would be looked for for ever (``D-7``)."""
    records = [Record(offset=offset, key=OFFSET[0], value=OFFSET[1]) for offset in (0, 1, 2)]
    wrapper = build_batch(records, magic=0, compression="gzip")
    assert reasons(log_of(wrapper)) == {}
    lower = (1).to_bytes(8) + wrapper[8:]  # its offset is covered by no checksum
    done, files = must_hold(log_of(lower))
    assert done.left_out["offsets out of place"].records == 1
    (batch,) = batches_of(files[NAME])
    assert (batch.last_offset, done.end_offset) == (1, 2)


def test_a_message_that_loses_its_last_one_ends_before_it() -> None:
    keys = [OFFSET, OFFSET, UNREADABLE]
    records = [Record(offset=offset, key=key, value=value) for offset, (key, value) in enumerate(keys)]
    done, files = must_hold(log_of(build_batch(records, magic=1, compression="gzip")), "4.3.0")
    batch, end = batches_of(files[NAME])
    assert (batch.last_offset, end.base_offset, done.end_offset, done.rewritten) == (1, 2, 3, 1)


def test_records_that_cannot_be_understood_are_found_on_the_way(recording: Callable[[str], Path]) -> None:
    found = 0
    for directory in log_directories(recording("load-fails")):
        for log in read_partitions(directory).values():
            found += len(must_hold(log)[0].undecodable)
    assert found > 10
