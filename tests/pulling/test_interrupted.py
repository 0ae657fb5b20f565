"""A copy whose making is interrupted is gone on with, and in the end equals one that was made at once."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from offsets_log.broker.recovery import open_log
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.protocol.api import Header
from offsets_log.protocol.registry import APIS
from offsets_log.pulling import copy as copies
from offsets_log.pulling import folder, run
from tests.builders import LogBuilder
from tests.pulling.brokers import OFFSETS, Brokers, Log, batch
from tests.pulling.copies import FETCH, READS, copied, cutting_after, offsets_log, pull, pull_beside, rows, stop
from tests.waiting import wait_for


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
    # A response that is cut leaves the client waiting: it may do so often before anything grows.
    (tmp_path / "client.properties").write_text("default.api.timeout.ms=60000\nrequest.timeout.ms=1000\n")
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    for partition in range(6):
        assert copied(tmp_path, partition) == logs[OFFSETS, partition].raw


def test_a_followed_copy_grows_with_the_log_until_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "NOTE_EVERY_S", 0.05)
    logs = offsets_log(p0=Log().fill(5), p1=Log(), p2=Log().fill(3))

    def noted() -> list[int]:
        return [row["end_offset"] for row in json.loads((tmp_path / "copy" / "pull.json").read_text())["partitions"]]

    def write() -> None:
        for batches in (1, 2, 3):
            for (_, partition), log in sorted(logs.items()):
                log.fill(batches)
                wait_for(
                    f"partition {partition} is copied",
                    lambda raw=log.raw, partition=partition: copied(tmp_path, partition) == raw,  # type: ignore[misc]
                )
        wait_for("the ends are noted", lambda: noted() == [33, 18, 27])

    with Brokers(logs).running() as brokers:
        result = pull_beside(write, brokers, tmp_path)
        assert result.exit_code == 0, result.stderr
        assert [(row["end_offset"], row["whole"]) for row in rows(result)] == [(33, True), (18, True), (27, True)]
        assert {key for _, key, _ in brokers.requests} <= READS
        logs[OFFSETS, 2].truncate(9)
        again = pull(brokers, tmp_path, "--follow", "-p", "2")  # ends by itself: nothing is left to follow
        assert again.exit_code == 3
        assert "truncated" in again.stderr
