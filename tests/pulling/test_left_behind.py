"""What another run does to a copy, or left in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from offsets_log.broker.failures import InvalidBatchError
from offsets_log.errors import CorruptFileError
from offsets_log.following import metrics
from offsets_log.pulling import copy
from offsets_log.pulling.copy import open_copy
from offsets_log.pulling.facts import PartitionFacts, PullFacts, decode_facts
from offsets_log.pulling.folder import PartitionFolder
from offsets_log.pulling.partition import ENDLESS, DivergedError, PulledPartition, UnsureError
from tests.pulling.brokers import OFFSETS, Brokers, Log, batch
from tests.pulling.copies import copied, offsets_log, problem, pull, refusing_ends, rows


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("")


def test_a_copy_that_another_run_writes_is_not_written(tmp_path: Path) -> None:
    with Brokers(offsets_log(p0=Log().fill(5))).running() as brokers:
        with open_copy(str(tmp_path / "copy")):
            result = pull(brokers, tmp_path)
            assert result.exit_code != 0
            assert "another run writes it" in result.stderr
        assert pull(brokers, tmp_path).exit_code == 0


def test_half_written_files_of_a_run_that_was_killed_go(tmp_path: Path) -> None:
    log = Log().fill(5)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        left = [folder / ".leader-epoch-checkpoint.tmp" for folder in (tmp_path / "copy").rglob("") if folder.is_dir()]
        for path in left:
            path.write_bytes(b"half")
        assert pull(brokers, tmp_path).exit_code == 0
    assert len(left) == 2
    assert not any(path.exists() for path in left)
    assert copied(tmp_path) == log.raw


@pytest.mark.parametrize("suffix", [".swap", ".gz"])
def test_a_copy_goes_on_behind_its_own_segments_only(suffix: str, tmp_path: Path) -> None:
    log = Log().fill(5)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        (segment,) = (tmp_path / "copy").rglob("*.log")
        segment.with_name(f"{9:020}.log{suffix}").write_bytes(b"of somebody else")
        log.fill(2)
        assert pull(brokers, tmp_path).exit_code == 0
    assert segment.read_bytes() == log.raw


def test_segments_are_as_large_as_brokers_make_those_of_the_offsets_topic() -> None:
    """``offsets.topic.segment.bytes``."""
    assert copy.SEGMENT_BYTES == 104_857_600


def test_a_refused_partition_has_no_damage(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(3))
    logs[OFFSETS, 0].error = 29
    with Brokers(logs).running() as brokers:
        (row,) = rows(pull(brokers, tmp_path))
    assert (row["damaged"], row["pulled_bytes"], row["bytes"], row["whole"]) == (0, 0, 0, False)


def test_a_whole_copy_is_not_called_whole_where_its_log_cannot_be_asked(tmp_path: Path) -> None:
    with Brokers(offsets_log(p1=Log().fill(3))).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        brokers.answers[2] = refusing_ends(29, 1 << 30)
        assert "ends is not known: TOPIC_AUTHORIZATION_FAILED" in problem(pull(brokers, tmp_path))
        (facts,) = json.loads((tmp_path / "copy" / "pull.json").read_text())["partitions"]
    assert not facts["whole"]


# -------------------------------------------------------------------------------------------------- what pull.json says

WHOLE = PartitionFacts(OFFSETS, 3, "id", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, whole=True, problem="p")


def test_what_is_known_of_a_copy_is_read_as_it_was_written() -> None:
    for facts in (PullFacts(), PullFacts("c", partitions=[WHOLE, PartitionFacts("t", 0)]), PullFacts(began_ms=0)):
        assert decode_facts(facts.encode(), "pull.json") == facts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "the version is 2, not 1"),
        ({"version": None}, "the version is None"),
        ({"partitions": None}, "partitions is no list"),
        ({"partitions": {}}, "partitions is no list"),
        ({"partitions": [1]}, "partitions is no list"),
        ({"cluster_id": 5}, "cluster_id is no text"),
        ({"began_ms": "x"}, "began_ms is 'x'"),
        ({"began_ms": True}, "began_ms is True"),
        ({"partitions": [{}]}, "no topic and number"),
        ({"partitions": [{"topic": "t"}]}, "no topic and number"),
        ({"partitions": [{"partition": 0}]}, "no topic and number"),
        ({"partitions": [{"topic": 5, "partition": 0}]}, "topic is 5"),
        ({"partitions": [{"topic": "t", "partition": True}]}, "partition is True"),
        ({"partitions": [{"topic": "t", "partition": 0, "end_offset": "x"}]}, "end_offset is 'x'"),
        ({"partitions": [{"topic": "t", "partition": 0, "whole": 1}]}, "whole is 1"),
        ({"partitions": [{"topic": "t", "partition": 0, "problem": 1}]}, "problem is 1"),
    ],
)
def test_another_form_of_what_is_known_is_refused(change: dict[str, Any], words: str) -> None:
    good = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "of": "a later release"}]}
    assert decode_facts(json.dumps(good).encode(), "pull.json").partitions == [PartitionFacts("t", 0)]
    with pytest.raises(CorruptFileError, match=re.escape(words)):
        decode_facts(json.dumps(good | change).encode(), "pull.json")


# --------------------------------------------------------------------------------------------- a partition on its way


Begun = Callable[..., PulledPartition]


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    """``begun(target)``: a new copy from offset 5 on; ``begun(target, log)`` one of that log."""
    with ExitStack() as stack:

        def begin(target: int, log: Log | None = None) -> PulledPartition:
            folder = PartitionFolder(tmp_path / "p", 1 << 20)
            stack.callback(folder.abandon)
            folder.begin(5, None)
            if log is not None:
                folder.writer.write_all(log.raw, 0, log.end)
            return PulledPartition(PartitionFacts(OFFSETS, 0), folder, target, first_offset=5, is_sure=log is None)

        yield begin


def answer(records: bytes = b"", high_watermark: int = 5, stable: int = -1, start: int = 0) -> dict[str, Any]:
    offsets = {"high_watermark": high_watermark, "last_stable_offset": stable, "log_start_offset": start}
    return offsets | {"records": records}


@pytest.mark.parametrize(("stable", "start", "epoch"), [(-1, -1, -1), (0, 0, 0), (3, 2, 1)])
def test_what_a_broker_says_of_a_partition_is_kept(stable: int, start: int, epoch: int, begun: Begun) -> None:
    """−1 says nothing; of the stable offset it says that there is none."""
    one = begun(5)
    one.facts.leader_epoch = one.facts.log_start_offset = one.facts.last_stable_offset = 9
    one.take(answer(stable=stable, start=start), epoch, is_empty=True)
    assert one.facts.high_watermark == 5
    assert one.facts.last_stable_offset == (None if stable < 0 else stable)
    assert one.facts.log_start_offset == (9 if start < 0 else start)
    assert one.facts.leader_epoch == (9 if epoch < 0 else epoch)


def test_a_copy_is_done_where_its_target_is_reached_and_whole_where_a_broker_said_so(begun: Begun) -> None:
    log = Log(end=5, start=5).fill(2)
    one = begun(11)
    assert (one.is_done, one.is_whole, one.fetch_offset) == (False, False, 5)
    one.take(answer(log.batches[0][1], 11), 0, is_empty=False)
    one.flush()
    assert (one.is_done, one.end_offset, one.has_gaps) == (False, 8, False)
    one.take(answer(log.batches[1][1], 11), 0, is_empty=False)
    one.flush()
    assert (one.is_done, one.is_whole, one.is_followed) == (True, True, False)
    assert (one.facts.end_offset, one.facts.bytes, one.pulled_bytes) == (11, len(log.raw), len(log.raw))
    one.doubt()
    assert (one.is_sure, one.is_done, one.fetch_offset) == (False, False, 8)
    one.problem = "gone"
    assert (one.is_done, one.is_whole) == (True, False)


def test_three_answers_without_a_batch_of_a_broker_that_has_all_end_a_copy(begun: Begun) -> None:
    """One that has not all yet, or had no room in its answer, says nothing."""
    one = begun(11)
    for high_watermark, is_empty in (
        (11, True),
        (11, True),
        (10, True),
        (11, True),
        (11, False),
        (11, True),
        (12, True),
    ):
        one.take(answer(high_watermark=high_watermark), 0, is_empty=is_empty)
        assert not one.is_done
    one.take(answer(high_watermark=11), 0, is_empty=True)
    assert one.is_done


def test_a_copy_that_is_followed_is_never_done(begun: Begun) -> None:
    one = begun(ENDLESS)
    assert not one.is_whole
    for _ in range(5):
        one.take(answer(), 0, is_empty=True)
    assert (one.is_followed, one.is_done, one.is_whole) == (True, False, True)


def test_a_copy_goes_on_behind_its_last_batch_where_that_is_met_again(begun: Begun) -> None:
    log = Log(end=5, start=5).fill(2)
    one = begun(14, log)
    assert (one.end_offset, one.fetch_offset, one.is_sure) == (11, 8, False)
    log.add(3)
    with pytest.raises(UnsureError):
        one.take(answer(log.batches[2][1], 14), 0, is_empty=False)
    one.take(answer(log.batches[1][1] + log.batches[2][1], 14), 0, is_empty=False)
    assert (one.end_offset, one.is_sure, one.is_done) == (14, True, True)
    one.take(answer(log.raw, 14), 0, is_empty=False)
    assert one.end_offset == 14, "what lies before the end is given again"
    with pytest.raises(DivergedError, match="a batch from 12 to 15 where the copy ends at 14"):
        one.take(answer(batch(12, 4), 16), 0, is_empty=False)


def test_a_batch_that_is_damaged_twice_is_in_the_copy(begun: Begun) -> None:
    """Once it may have gone wrong on its way."""
    one = begun(8)
    raw = bytearray(batch(5, 3))
    raw[-1] ^= 1
    with pytest.raises(InvalidBatchError):
        one.take(answer(bytes(raw), 8), 0, is_empty=False)
    assert (one.end_offset, one.facts.damaged, one.refused_at) == (5, 0, 5)
    one.take(answer(bytes(raw), 8), 0, is_empty=False)
    assert (one.end_offset, one.facts.damaged) == (8, 1)


def test_a_segment_is_on_the_disk_before_the_next_one_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of a folder when it is closed; the last segment has its indexes only then."""
    synced: list[str] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    log = Log(end=5, start=5).fill(4)
    names = [f"{base:020}.log" for base in (5, 8, 11, 14)]
    folder = PartitionFolder(tmp_path / "p", len(log.batches[0][1]))
    folder.begin(5, "id")
    for number, (_, raw) in enumerate(log.batches):
        folder.writer.write_all(raw, 0, log.end)
        folder.flush()
        assert [name for name in synced if name.endswith(".log")] == names[:number]
        assert not (tmp_path / "p" / names[number]).with_suffix(".index").exists()
    folder.close()
    assert [name for name in synced if name.endswith(".log")] == names
    assert folder.size_bytes == len(log.raw) == sum((tmp_path / "p" / name).stat().st_size for name in names)
    assert {path.suffix for path in (tmp_path / "p").glob(f"{14:020}.*")} == {
        ".log",
        ".index",
        ".timeindex",
        ".snapshot",
    }
    assert (tmp_path / "p" / "partition.metadata").read_text() == "version: 0\ntopic_id: id\n"
    again = PartitionFolder(tmp_path / "p", 1 << 20)
    assert (again.end_offset, again.size_bytes) == (17, len(log.raw))
    again.abandon()


@pytest.mark.parametrize(("high_watermark", "behind"), [(4, 0), (5, 0), (9, 4)])
def test_what_is_measured_of_a_copy(high_watermark: int, behind: int, begun: Begun) -> None:
    one = begun(5)
    assert {name for name, *_ in one.samples()}.isdisjoint({metrics.PULLED_BEHIND, metrics.PULLED_HIGH_WATERMARK})
    one.take(answer(high_watermark=high_watermark, stable=3), 0, is_empty=True)
    found = {name: value for name, labels, value in one.samples() if labels == (OFFSETS, 0)}
    assert found.pop(metrics.PULLED_DELAY) >= 0
    assert found == {
        metrics.PULLED_END: 5,
        metrics.PULLED_BYTES: 0,
        metrics.PULLED_PROBLEM: 0.0,
        metrics.PULLED_HIGH_WATERMARK: high_watermark,
        metrics.PULLED_BEHIND: behind,
        metrics.PULLED_STABLE: 3,
    }
    one.problem = "gone"
    assert {value for name, _, value in one.samples() if name == metrics.PULLED_PROBLEM} == {1.0}
