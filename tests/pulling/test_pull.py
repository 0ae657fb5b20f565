"""A copy equals the log whatever happens on the way, and a log that is another one is never added to it."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from offsets_log.broker.recovery import open_log
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.protocol.api import Header
from offsets_log.protocol.registry import APIS
from offsets_log.pulling import copy as copies
from offsets_log.pulling import folder, run
from tests.builders import LogBuilder
from tests.coordinator.broker import free_port
from tests.pulling.brokers import OFFSETS, Brokers, Log, batch

FETCH, EPOCHS = 1, 23
READS = {18, 3, 2, 1, 23}


@pytest.fixture(autouse=True)
def _impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "client.properties").write_text("default.api.timeout.ms=1500\nrequest.timeout.ms=3000\n")


def pull(brokers: Brokers, path: Path, *more: str) -> Result:
    words = ["pull", "--bootstrap-server", brokers.address, "--to", str(path / "copy"), *more]
    return CliRunner().invoke(main, [*words, "--command-config", str(path / "client.properties")])


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def copied(path: Path, partition: int = 0, topic: str = OFFSETS) -> bytes:
    """All batches of a copy."""
    return b"".join(file.read_bytes() for file in sorted((path / "copy" / f"{topic}-{partition}").glob("*.log")))


def offsets_log(**logs: Log) -> dict[tuple[str, int], Log]:
    return {(OFFSETS, int(name[1:])): log for name, log in logs.items()}


def test_a_copy_is_the_log_byte_for_byte_and_only_reads_are_sent(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(50), p1=Log(), p2=Log(start=90, end=90).fill(7, 11))
    logs["orders", 0] = Log(start=5, end=9)
    with Brokers(logs, topic_ids={"orders": Uuid(b"o" * 16), OFFSETS: Uuid(b"c" * 16)}).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 0, result.stderr
    for partition in range(3):
        assert copied(tmp_path, partition) == logs[OFFSETS, partition].raw
    told = {row["partition"]: row for row in rows(result)}
    assert [told[2][name] for name in ("start_offset", "end_offset", "high_watermark", "whole")] == [90, 167, 167, True]
    assert {key for _, key, _ in brokers.requests} == {18, 3, 2, 1} <= READS
    assert not any(key not in APIS for _, key, _ in brokers.requests)
    ends = json.loads((tmp_path / "copy" / "log-ends.json").read_text())
    assert ends["topics"] == [{"topic": "orders", "topic_id": str(Uuid(b"o" * 16)), "partitions": [[0, 5, 9]]}]
    assert (tmp_path / "copy" / f"{OFFSETS}-2" / f"{90:020}.log").exists()
    assert json.loads((tmp_path / "copy" / "pull.json").read_text())["cluster_id"] == "one"


def test_a_later_run_adds_what_came_since_and_reads_nothing_twice_but_a_batch(tmp_path: Path) -> None:
    log = Log().fill(40)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        assert rows(pull(brokers, tmp_path))[0]["pulled_bytes"] == 0
        before = len(log.raw)
        log.fill(5)
        log.lead(0, 4)
        log.fill(5)
        asked = len(brokers.requests)
        (row,) = rows(pull(brokers, tmp_path))
        assert row["pulled_bytes"] == len(log.raw) - before
        offsets = [
            body["topics"][0]["partitions"][0]["fetch_offset"] for _, k, body in brokers.requests[asked:] if k == 1
        ]
        assert offsets[0] == 117
    assert copied(tmp_path) == log.raw


def transactions() -> list[bytes]:
    """Batches of plain commits, of open, committed and aborted transactions."""
    built = LogBuilder()
    for i in range(60):
        built.commit(i).commit(i, producer=7 + i % 3, partition=1)
        if i % 2:
            built.end(7 + i % 3, commit=bool(i % 4 - 1), epoch=0)
    return built.batches


def log_of(batches: list[bytes]) -> Log:
    log = Log()
    for raw in batches:
        last = int.from_bytes(raw[:8]) + int.from_bytes(raw[23:27])
        log.batches.append((last, raw))
        log.end = last + 1
    return log


def beside(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "copy" / f"{OFFSETS}-0").iterdir())}


@pytest.mark.parametrize("seed", range(4))
def test_cut_anywhere_and_gone_on_with_all_files_are_those_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Indexes, aborted transactions and snapshots of producers too, in segments of any size, as a broker has them."""
    chance = random.Random(seed)
    monkeypatch.setattr(copies, "SEGMENT_BYTES", chance.choice([600, 3000, 1 << 20]))
    log = log_of(transactions())
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "client.properties").write_text("")
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path / "a").exit_code == 0
        for _ in range(6):
            brokers.most_bytes = chance.randrange(1, 4000)
            brokers.fault = cutting_after(chance.randrange(1, 6))
            with monkeypatch.context() as killed:
                killed.setattr(folder.PartitionFolder, "close", folder.PartitionFolder.abandon)  # as kill -9 leaves it
                killed.setattr(run.Pulling, "say_once", stop)
                pull(brokers, tmp_path / "b")
            tear(tmp_path / "b", chance)
        brokers.fault = lambda *_: None
        result = pull(brokers, tmp_path / "b")
        assert result.exit_code == 0, result.stderr
    assert beside(tmp_path / "b") == beside(tmp_path / "a")
    names = sorted(name for name in beside(tmp_path / "a") if name.endswith(".log"))
    segments = tuple(Segment(name, int(name[:20]), beside(tmp_path / "a")[name]) for name in names)
    opened = open_log(PartitionLog(0, segments), stopped_cleanly=False, finds_by_base_offset=True)
    assert opened.end_offset == log.end


def stop(self: run.Pulling, words: str) -> None:
    raise KeyboardInterrupt


def cutting_after(count: int) -> Any:
    """Fetches are answered so many times, and then cut."""
    left = [count]

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        left[0] -= header.api_key == FETCH
        return b"" if left[0] < 0 else None

    return fault


def tear(path: Path, chance: random.Random) -> None:
    """Bytes behind the last batch, as of one that was being written."""
    logs = sorted((path / "copy" / f"{OFFSETS}-0").glob("*.log"))
    if logs and chance.random() < 0.7:
        with logs[-1].open("ab") as file:
            file.write(batch(0)[: chance.randrange(1, 60)])


def test_brokers_come_and_go_and_the_copy_is_whole(tmp_path: Path) -> None:
    """Leaders change, connections are cut in the middle of a response, answers are slow or errors."""
    chance = random.Random(5)
    logs = offsets_log(**{f"p{i}": Log(leader=i % 3).fill(30 + i) for i in range(6)})
    brokers = Brokers(logs, nodes=3, most_bytes=700)

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        kind = chance.random()
        if header.api_key != FETCH or kind > 0.4:
            return None
        log = chance.choice(list(logs.values()))
        if kind < 0.1:
            log.lead((log.leader + 1) % 3, log.epoch + 1)
        elif kind < 0.2:
            whole = brokers.answer(APIS[FETCH], header, node, body)
            return whole[: chance.randrange(len(whole))]
        elif kind < 0.25:
            time.sleep(0.05)
        elif kind < 0.3:
            log.error = chance.choice([3, 6, 9, 74, 75, 78, 13])
            return None
        for one in logs.values():
            one.error = 0
        return None

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    for partition in range(6):
        assert copied(tmp_path, partition) == logs[OFFSETS, partition].raw


def problem(result: Result) -> str:
    assert result.exit_code == 3, (result.stdout, result.stderr)
    (row,) = [row for row in rows(result) if row["problem"]]
    assert not row["whole"]
    assert row["problem"] in result.stderr
    return str(row["problem"])


def first_pull(brokers: Brokers, path: Path) -> bytes:
    assert pull(brokers, path).exit_code == 0
    return copied(path)


def test_a_truncated_log_is_told_and_nothing_is_added(tmp_path: Path) -> None:
    log = Log().fill(20)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        before = first_pull(brokers, tmp_path)
        log.truncate(30)
        assert "before the end of the copy, 60: it was truncated" in problem(pull(brokers, tmp_path))
        log.lead(0, 3)
        log.fill(30)
        assert "records of leader epoch 0 end at 30 there" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == before


def test_a_log_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    log = Log(leader=0).fill(20)
    brokers = Brokers(offsets_log(p0=log), nodes=2, most_bytes=300)

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key == FETCH and body["topics"][0]["partitions"][0]["fetch_offset"] > 30 and log.leader == 0:
            log.truncate(12)
            log.lead(1, 2)
            log.fill(30, filler=b"another")
        return None

    brokers.fault = fault
    with brokers.running():
        said = problem(pull(brokers, tmp_path))
    assert "it was truncated" in said
    assert log.raw.startswith(copied(tmp_path)[: len(batch(0, 3)) * 4])


def test_a_topic_made_anew_is_told(tmp_path: Path) -> None:
    log = Log().fill(20)
    with Brokers(offsets_log(p0=log), topic_ids={OFFSETS: Uuid(b"a" * 16)}).running() as brokers:
        before = first_pull(brokers, tmp_path)
        brokers.topic_ids = {OFFSETS: Uuid(b"b" * 16)}
        log.fill(20)
        assert "the topic was made anew" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == before


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    with Brokers(offsets_log(p0=Log().fill(20))).running() as brokers:
        before = first_pull(brokers, tmp_path)
        brokers.cluster_id = "two"
        result = pull(brokers, tmp_path)
    assert result.exit_code == 1
    assert "this copy is of cluster one" in result.stderr
    assert copied(tmp_path) == before


def test_a_log_that_was_cleaned_meanwhile_is_gone_on_with(tmp_path: Path) -> None:
    """Its last batch has fewer records, or is gone: leader epochs say that what follows is its continuation."""
    for name, cleaned in (("fewer", [0]), ("gone", [])):
        log = Log().fill(20)
        (tmp_path / name).mkdir()
        (tmp_path / name / "client.properties").write_text("default.api.timeout.ms=1500\n")
        with Brokers(offsets_log(p0=log)).running() as brokers:
            before = first_pull(brokers, tmp_path / name)
            log.batches = [(59, batch(57, 3, filler=b"shorter"))] * len(cleaned)
            log.fill(4)
            log.lead(0, 2)
            log.fill(4)
            tail = b"".join(raw for last, raw in log.batches if last >= 60)
            result = pull(brokers, tmp_path / name)
        assert result.exit_code == 0, result.stderr
        assert copied(tmp_path / name) == before + tail


def test_a_log_whose_beginning_went_beyond_the_copy_is_told(tmp_path: Path) -> None:
    log = Log().fill(20)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        before = first_pull(brokers, tmp_path)
        log.start, log.batches = 90, []
        log.end = 90
        log.fill(2)
        assert "the log begins at 90 now, behind the end of the copy, 60" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == before


def test_a_batch_damaged_on_the_brokers_disk_is_in_the_copy_and_told(tmp_path: Path) -> None:
    log = Log().fill(20)
    last, raw = log.batches[7]
    log.batches[7] = last, raw[:-1] + b"\xff"
    with Brokers(offsets_log(p0=log)).running() as brokers:
        result = pull(brokers, tmp_path)
    assert result.exit_code == 3
    assert [row["damaged"] for row in rows(result)] == [1]
    assert copied(tmp_path) == log.raw


def test_bytes_that_went_wrong_once_are_asked_for_again(tmp_path: Path) -> None:
    log = Log().fill(20)
    good = log.batches[7]
    log.batches[7] = good[0], good[1][:-1] + b"\xff"
    brokers = Brokers(offsets_log(p0=log))
    fetches = []

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key == FETCH:
            fetches.append(body)
            log.batches[7] = good if len(fetches) > 1 else log.batches[7]
        return None

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert copied(tmp_path) == log.raw


WRONG = {
    "no batch": b"\x00" * 100,
    "goes back": batch(0, 3),
    "magic": batch(6, 3)[:16] + b"\x09" + batch(6, 3)[17:],
    "a size": batch(6, 3)[:8] + b"\x7f\xff\xff\xff" + batch(6, 3)[12:],
    "text": b"HTTP/1.1 400 Bad Request\r\n" * 9,
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_batch_ends_a_partition_where_it_begins(tmp_path: Path, name: str) -> None:
    log = Log().fill(2)
    log.batches.append((8, WRONG[name]))
    log.end = 9
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == b"".join(raw for _, raw in log.batches[:2])


@pytest.mark.parametrize(
    "frame",
    [b"\x7f\xff\xff\xff" + b"x" * 50, b"\xff\xff\xff\xff", b"\x00\x00\x00\x02ab", b"\x00\x00\x00\x20" + b"\xff" * 32],
)
def test_a_broker_that_speaks_nonsense_is_given_up(tmp_path: Path, frame: bytes) -> None:
    brokers = Brokers(offsets_log(p0=Log().fill(2)))
    brokers.fault = lambda node, header, body: frame if header.api_key == FETCH else None
    with brokers.running():
        began = time.monotonic()
        assert "no progress" in problem(pull(brokers, tmp_path))
        assert time.monotonic() - began < 15


@pytest.mark.parametrize("seed", range(3))
def test_mutated_answers_never_add_what_is_no_part_of_the_log(tmp_path: Path, seed: int) -> None:
    """Batches have checksums; of what stands around them a wrong bit can stop the copy, but not fill it with more."""
    chance = random.Random(seed)
    log = Log().fill(60)
    brokers = Brokers(offsets_log(p0=log), most_bytes=500)

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key != FETCH or chance.random() < 0.5:
            return None
        whole = bytearray(brokers.answer(APIS[FETCH], header, node, body))
        begins = [whole.find(raw) for _, raw in log.batches if raw in whole]
        unchecked = {at + i for at in begins for i in range(17)}  # before the checksum
        for at in chance.sample(range(4, len(whole)), chance.randrange(1, 4)):
            whole[at] = whole[at] if at in unchecked else chance.randrange(256)
        return bytes(whole)

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code in (0, 3), result.stderr
    if not any(row["damaged"] for row in rows(result)):
        assert log.raw.startswith(copied(tmp_path))


def test_old_brokers_are_asked_in_their_versions(tmp_path: Path) -> None:
    """Those of Kafka 0.11: no leader epochs, no topic ids, no start of the log in a response."""
    log = Log().fill(30)
    newest = {18: 1, 3: 4, 2: 2, 1: 4, 23: 0}
    with Brokers(offsets_log(p0=log), newest=newest).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 0, result.stderr
        log.fill(3)
        assert pull(brokers, tmp_path).exit_code == 0
    assert copied(tmp_path) == log.raw
    with Brokers(offsets_log(p0=log), newest={1: 3}).running() as brokers:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "client.properties").write_text("default.api.timeout.ms=500\n")
        assert "no version of Fetch that both sides know" in problem(pull(brokers, tmp_path / "new"))


def test_a_quota_is_waited_for(tmp_path: Path) -> None:
    """A broker that holds a client back answers nothing, and says for how long (``ClientQuotaManager``)."""
    log, fetches = Log().fill(30), []
    brokers = Brokers(offsets_log(p0=log))

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key != FETCH or len(fetches) > 8:
            return None
        fetches.append(body)
        empty = {"throttle_time_ms": 20, "error_code": 0, "session_id": 0, "responses": []}
        return APIS[FETCH].encode_response(header.correlation_id, header.version, empty)

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "holds this client back" in result.stderr
    assert copied(tmp_path) == log.raw


def test_the_end_of_a_log_that_holds_nothing_more_is_found(tmp_path: Path) -> None:
    """Of a log whose last batches are gone, and whose last segment is empty."""
    log = Log().fill(5)
    log.end = 40
    with Brokers(offsets_log(p0=log)).running() as brokers:
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert copied(tmp_path) == log.raw


def test_the_rate_is_kept(tmp_path: Path) -> None:
    log = Log().fill(40, filler=b"x" * 5000)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        began = time.monotonic()
        assert pull(brokers, tmp_path, "--max-bytes-per-second", "300000").exit_code == 0
        assert time.monotonic() - began >= len(log.raw) / 300_000 - 0.3


def test_directories_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine.txt").write_text("x")
    with Brokers(offsets_log(p0=Log())).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 1
        assert "no pull has written it" in result.stderr
        (tmp_path / "copy" / "mine.txt").rename(tmp_path / "copy" / "pull.json")
        assert pull(brokers, tmp_path).exit_code == 1


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with Brokers({("orders", 0): Log()}).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 1
        assert "shows no topic __consumer_offsets to this user" in result.stderr
    with Brokers(offsets_log(p0=Log())).running() as brokers:
        result = pull(brokers, tmp_path, "-p", "7")
        assert result.exit_code == 1
        assert "has no partition 7; it has 1" in result.stderr


def test_a_refused_partition_is_told_at_once(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(3), p1=Log().fill(3))
    logs[OFFSETS, 1].error = 29
    with Brokers(logs).running() as brokers:
        assert "TOPIC_AUTHORIZATION_FAILED" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == logs[OFFSETS, 0].raw


def test_a_nearer_replica_is_read_and_its_leader_again_when_that_goes_away(tmp_path: Path) -> None:
    """KIP-392."""
    log = Log(follower=1).fill(40)
    brokers = Brokers(offsets_log(p0=log), nodes=2, most_bytes=400)

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key == FETCH and node == 1 and body["topics"][0]["partitions"][0]["fetch_offset"] > 60:
            log.follower = -1
            return b""
        return None

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path, "--rack", "here")
    assert result.exit_code == 0, result.stderr
    assert {node for node, key, _ in brokers.requests if key == FETCH} == {0, 1}
    assert copied(tmp_path) == log.raw


def test_without_kafka_python_only_a_login_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installation without the extra."""
    monkeypatch.setitem(sys.modules, "kafka", None)
    monkeypatch.setitem(sys.modules, "kafka.net.sasl", None)
    log = Log().fill(3)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b\n"
        (tmp_path / "client.properties").write_text(login)
        result = pull(brokers, tmp_path)
    assert result.exit_code == 1
    assert "a login by SASL needs kafka-python: pip install 'offsets-log[restore]'" in result.stderr
    assert copied(tmp_path) == log.raw


def test_a_cluster_that_is_not_reached_leaves_nothing_behind(tmp_path: Path) -> None:
    words = ["pull", "--bootstrap-server", f"127.0.0.1:{free_port()}", "--to", str(tmp_path / "copy")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "nothing listens on port" in result.stderr
    assert not (tmp_path / "copy").exists()


def test_topics_of_the_other_coordinators_come_on_request(tmp_path: Path) -> None:
    """Filters of partitions are of the offsets topic alone."""
    logs = offsets_log(p0=Log().fill(3), p1=Log().fill(4))
    others = [("__transaction_state", 1), ("__share_group_state", 2)]
    logs |= {key: Log().fill(5 + key[1]) for key in others}
    with Brokers(logs).running() as brokers:
        result = pull(brokers, tmp_path, "-p", "1", "--with-transaction-state", "--with-share-state")
    assert result.exit_code == 0, result.stderr
    pulled = [(row["topic"], row["partition"]) for row in rows(result)]
    assert pulled == sorted([(OFFSETS, 1), *others])
    for topic, partition in pulled:
        assert copied(tmp_path, partition, topic) == logs[topic, partition].raw


def test_a_followed_copy_grows_with_the_log_until_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "NOTE_EVERY_S", 0.05)
    logs = offsets_log(p0=Log().fill(5), p1=Log(), p2=Log().fill(3))

    def noted() -> list[int]:
        return [row["end_offset"] for row in json.loads((tmp_path / "copy" / "pull.json").read_text())["partitions"]]

    def until(is_so: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not is_so():
            assert time.monotonic() - began < 30
            time.sleep(0.02)

    def write() -> None:
        try:
            for batches in (1, 2, 3):
                for (_, partition), log in sorted(logs.items()):
                    log.fill(batches)
                    until(lambda raw=log.raw, partition=partition: copied(tmp_path, partition) == raw)
            until(lambda: noted() == [33, 18, 27])
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    with Brokers(logs).running() as brokers, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        result = pull(brokers, tmp_path, "--follow")
        writing.result()
        assert result.exit_code == 0, result.stderr
        assert [(row["end_offset"], row["whole"]) for row in rows(result)] == [(33, True), (18, True), (27, True)]
        assert {key for _, key, _ in brokers.requests} <= READS
        logs[OFFSETS, 2].truncate(9)
        again = pull(brokers, tmp_path, "--follow", "-p", "2")  # ends by itself: nothing is left to follow
        assert again.exit_code == 3
        assert "truncated" in again.stderr


def test_a_topic_that_is_not_there_does_not_keep_the_others(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(5))
    with Brokers(logs).running() as brokers:
        result = pull(brokers, tmp_path, "--with-share-state", "--with-transaction-state")
    assert copied(tmp_path) == logs[OFFSETS, 0].raw
    assert "there has been no share group yet" in result.stderr
    assert "nobody has begun a transaction yet" in result.stderr
    assert result.exit_code == 3


def test_the_same_command_is_named_only_where_it_helps(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(9))
    with Brokers(logs).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        logs[OFFSETS, 0].truncate(12)
        truncated = pull(brokers, tmp_path)
        assert "another directory" in truncated.stderr
        assert "the same command goes on" not in truncated.stderr


def test_partitions_that_come_while_a_copy_is_followed_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "NOTE_EVERY_S", 0.05)
    logs = offsets_log(p0=Log().fill(5))

    def write() -> None:
        try:
            while copied(tmp_path) != logs[OFFSETS, 0].raw:
                time.sleep(0.02)
            logs[OFFSETS, 1] = Log().fill(1)
            time.sleep(0.5)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    with Brokers(logs).running() as brokers, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        result = pull(brokers, tmp_path, "--follow")
        writing.result()
    assert "has more than 1 partition now" in result.stderr
