"""A log that is not the one that was copied, or is damaged, or answered wrongly: told, and never added to the copy."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from offsets_log.log_format.primitives import Uuid
from offsets_log.protocol.api import Header
from offsets_log.protocol.registry import APIS
from tests.pulling.brokers import OFFSETS, Brokers, Log, batch
from tests.pulling.copies import FETCH, copied, first_pull, offsets_log, problem, pull, rows


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
        assert "the topic was made again" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == before


def test_a_topic_made_anew_is_told_of_where_its_log_is_shorter(tmp_path: Path) -> None:
    log = Log().fill(20)
    with Brokers(offsets_log(p0=log), topic_ids={OFFSETS: Uuid(b"a" * 16)}).running() as brokers:
        first_pull(brokers, tmp_path)
        brokers.topic_ids = {OFFSETS: Uuid(b"b" * 16)}
        log.truncate(12)
        assert "the topic was made again" in problem(pull(brokers, tmp_path))


def test_a_topic_that_is_gone_on_the_way_is_told(tmp_path: Path) -> None:
    brokers = Brokers(offsets_log(p0=Log().fill(20)))
    brokers.most_bytes = 200

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key == FETCH:
            brokers.logs.clear()
        return None

    brokers.fault = fault
    with brokers.running():
        assert problem(pull(brokers, tmp_path))


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
