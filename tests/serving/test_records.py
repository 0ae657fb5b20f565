"""Records that are fetched: the bytes of the copy's files, up to where a broker gives them, and where times are."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import subprocess
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.cluster.server import Server
from offsets_log.errors import CorruptBatchError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import NO_PIECES, iter_batches, pieces_of
from offsets_log.replay.profile import PROFILES
from offsets_log.replay.topic_names import TopicNames
from offsets_log.serving.answers import respond
from offsets_log.serving.asked import Held
from offsets_log.serving.fetch import MOST_BYTES, MOST_WAIT_MS
from offsets_log.serving.log_reader import LogReader, ServedLogs
from offsets_log.serving.offsets import CommittedOffsets
from offsets_log.serving.state import Ends, Served, Topic
from offsets_log_cli.main import main
from tests.conftest import read_json
from tests.coordinator.broker import NotAvailableError, jars, quick
from tests.data_directories.copies import Recorded, data_directories
from tests.serving.client import ADDRESS, LIST_OFFSETS, ask, frame_of, moments
from tests.serving.test_tools import listening
from tests.sizes import examples
from tests.waiting import PATIENCE_S

FETCH = 1
VECTOR = Path(__file__).with_name("transactions-4.3.json")
"""What a broker 4.3 answered about a log with aborted transactions and an open one."""
ALL = 1 << 30


@dataclass
class Files:
    """A partition in memory: base offset → bytes; small files by name."""

    segments: dict[int, bytes]
    small: dict[str, bytes] = field(default_factory=dict)
    topic: str = "t"
    partition: int = 0
    shown_path: str = "t-0"
    dated_from: int = 0

    def base_offsets(self) -> list[int]:
        return sorted(self.segments)

    def open_segment(self, base_offset: int) -> Any:
        return nullcontext(pieces_of(self.segments[base_offset]))

    def open_index(self, base_offset: int) -> Any:
        return nullcontext(NO_PIECES)

    def read(self, name: str) -> bytes | None:
        return self.small.get(name)


class Logs(ServedLogs):
    def __init__(self, readers: dict[tuple[str, int], LogReader]) -> None:
        super().__init__()
        self._readers.update(readers)


def served_of(logs: dict[int, tuple[Files, Ends]]) -> Served:
    """One topic ``t`` with these partitions."""
    topic = Topic("t", sorted(logs), {number: ends for number, (_, ends) in logs.items()})
    readers = {("t", number): LogReader(files) for number, (files, _) in logs.items()}
    return Served(
        PROFILES["modern"], {}, CommittedOffsets([]), frozenset(), {"t": topic}, TopicNames({}), logs=Logs(readers)
    )


def asking(offsets: dict[int, int], topic: str = "t", most: int = ALL, **more: Any) -> dict[str, Any]:
    rows = [
        {
            "partition": number,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": most,
        }
        for number, offset in offsets.items()
    ]
    topics = [{"topic": topic, "partitions": rows}]
    return {"max_bytes": ALL, "max_wait_ms": 500, "replica_id": -1, "session_epoch": -1, "topics": topics} | more


def rows_of(answer: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row["partition_index"]: row for topic in answer["responses"] for row in topic["partitions"]}


def batch(first: int, count: int = 2, size: int = 10, times: Any = None) -> bytes:
    return build_batch(
        [
            Record(offset=first + i, timestamp_ms=1000 * (first + i) if times is None else times[i], key=None,
                   value=b"v" * size)
            for i in range(count)
        ]
    )  # fmt: skip


def whole(files: Path, end: int) -> bytes:
    """The batches of all segments that end before an offset."""
    found = [item for path in sorted(files.glob("*.log")) for item in iter_batches(path.read_bytes())]
    return b"".join(item.raw for item in found if isinstance(item, RecordBatch) and item.next_offset <= end)


@pytest.mark.parametrize(("name", "copy"), [("kafka-4.3-one", "stopped"), ("kafka-3.9-one", "killed")])
def test_all_that_is_fetched_is_the_bytes_of_the_files(name: str, copy: str, recorded: Recorded) -> None:
    """In every version, in one answer or batch by batch."""
    directories = data_directories(recorded(name), copy)
    with moments(*directories) as (asked, session):
        served = asked.load(session)
        found = [(topic, number, ends) for topic in served.topics.values() for number, ends in topic.ends.items()]
        assert {"__consumer_offsets", "orders", "table", "short"} <= {topic.name for topic, _, _ in found}
        for i, (topic, number, ends) in enumerate(found):
            (folder,) = (path for one in directories for path in one.glob(f"{topic.name}-{number}"))
            records, offset = b"", ends.start_offset
            while offset < ends.end_offset:
                body = asking({number: offset}, topic.name, ALL if i % 2 else 1)
                row = rows_of(ask(served, FETCH, body, 4 + i % 9))[number]
                assert (row["error_code"], row["high_watermark"]) == (0, ends.end_offset)
                if not row["records"]:
                    break
                records += row["records"]
                offset = [one.next_offset for one in iter_batches(row["records"]) if isinstance(one, RecordBatch)][-1]
            assert records.endswith(whole(folder, ends.end_offset)[-len(records) :])
            if ends.start_offset == 0:
                assert records == whole(folder, ends.end_offset)


def test_transactions_and_times_are_told_as_the_broker_told_them() -> None:
    told = read_json(VECTOR)
    small = {f"{0:020}.timeindex": base64.b64decode(told["timeindex"])}
    for beside in (small, {}):
        served = served_of({0: (Files({0: base64.b64decode(told["log"])}, beside), Ends(0, 126, 0))})
        for expected in told["fetched"]:
            level = expected["isolation_level"]
            row = rows_of(ask(served, FETCH, asking({0: expected["fetch_offset"]}, isolation_level=level)))[0]
            aborted = row["aborted_transactions"]
            assert row["error_code"] == expected["error_code"]
            assert row["high_watermark"] == expected["high_watermark"]
            assert hashlib.sha256(row["records"]).hexdigest() == expected["records_sha256"]
            assert (aborted and [[one["producer_id"], one["first_offset"]] for one in aborted]) == expected["aborted"]
            if level:
                assert row["last_stable_offset"] == expected["last_stable_offset"]
        for expected in told["listed"]:
            asked = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": expected["timestamp"]}]
            (topic,) = ask(served, LIST_OFFSETS, {"topics": [{"name": "t", "partitions": asked}]})["topics"]
            (row,) = topic["partitions"]
            names = {"timestamp": "answered_timestamp"}
            assert all(row[name] == expected[names.get(name, name)] for name in row if name != "partition_index")


@given(st.data())
@examples(60)
def test_a_time_leads_to_the_first_record_as_late(data: st.DataObject) -> None:
    """Whatever the order of times, the segments, where the log begins and ends; and with any time index."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    times = data.draw(st.lists(st.integers(0, 30), min_size=sum(sizes), max_size=sum(sizes)))
    segments: dict[int, bytes] = {}
    offset = base = 0
    for size in sizes:
        base = offset if data.draw(st.booleans()) else base
        segments[base] = segments.get(base, b"") + batch(offset, size, times=times[offset : offset + size])
        offset += size
    start, end = sorted((data.draw(st.integers(0, offset)), data.draw(st.integers(0, offset))))
    small = {}
    for first, raw in segments.items() if data.draw(st.booleans()) else ():
        entries, largest = b"", -1
        for one in iter_batches(raw):
            assert isinstance(one, RecordBatch)
            if one.max_timestamp_ms > largest:
                largest = one.max_timestamp_ms
                entries += largest.to_bytes(8) + (one.last_offset - first).to_bytes(4)
        small[f"{first:020}.timeindex"] = entries + bytes(24)
    log = LogReader(Files(segments, small))
    asked = data.draw(st.integers(0, 31))
    expected = next(((at, times[at]) for at in range(start, offset) if times[at] >= asked), None)
    found = log.at_time(asked, start, end)
    assert (found and found[:2]) == (expected if expected and expected[0] < end else None)


def test_an_answer_is_bounded_but_for_its_first_batch() -> None:
    made = [batch(2 * i, size=100) for i in range(10)]
    size = len(made[0])
    files = Files({0: b"".join(made[:6]), 12: b"".join(made[6:])})
    served = served_of({number: (files, Ends(0, 20)) for number in range(4)})
    whole_log = rows_of(ask(served, FETCH, asking({0: 0})))[0]["records"]
    assert whole_log == b"".join(made[:6])
    row = rows_of(ask(served, FETCH, asking({0: 3}, most=size * 2 + 5)))[0]
    assert row["records"] == made[1] + made[2]
    rows = rows_of(ask(served, FETCH, asking({0: 0, 1: 14, 2: 0, 3: 0}, max_bytes=size * 8)))
    assert [len(rows[number]["records"]) // size for number in range(4)] == [6, 2, 0, 0]
    rows = rows_of(ask(served, FETCH, asking({0: 0, 1: 0}, max_bytes=0, most=0)))
    assert [len(rows[number]["records"]) // size for number in range(2)] == [1, 0]
    large = batch(0, 1, MOST_BYTES + 1)
    served = served_of({0: (Files({0: large}), Ends(0, 1))})
    assert rows_of(ask(served, FETCH, asking({0: 0})))[0]["records"] == large


def test_batches_behind_the_end_are_not_given() -> None:
    files = Files({0: batch(0, 3) + batch(3, 3) + batch(6, 3)})
    for end, given_batches in ((9, 3), (8, 2), (6, 2), (5, 1), (2, 0)):
        row = rows_of(ask(served_of({0: (files, Ends(0, end))}), FETCH, asking({0: 0})))[0]
        assert len([*iter_batches(row["records"])]) == given_batches


@pytest.mark.parametrize(("number", "offset", "code"), [(0, 21, 1), (0, 1, 1), (0, -1, 1), (7, 0, 3), (-1, 0, 3)])
def test_what_is_not_there_is_told(number: int, offset: int, code: int) -> None:
    served = served_of({0: (Files({0: b"".join(batch(2 * i) for i in range(10))}), Ends(2, 20))})
    assert rows_of(ask(served, FETCH, asking({number: offset})))[number]["error_code"] == code
    assert rows_of(ask(served, FETCH, asking({0: 2}, "other")))[0]["error_code"] == 3
    assert ask(served, FETCH, asking({0: 2}, session_id=5))["error_code"] == 70


def test_what_is_no_batch_is_told_behind_what_is_read() -> None:
    raw = batch(0) + batch(2)[:8] + b"\0\0\0\1" + bytes(range(40))
    served = served_of({0: (Files({0: raw, 9: batch(9)}), Ends(0, 11))})
    assert rows_of(ask(served, FETCH, asking({0: 0})))[0]["records"] == batch(0)
    assert rows_of(ask(served, FETCH, asking({0: 2})))[0]["error_code"] == 2
    assert rows_of(ask(served, FETCH, asking({0: 9})))[0]["records"] == batch(9)
    with pytest.raises(CorruptBatchError):
        LogReader(Files({0: raw})).read(2, 9, 100, is_first=True)


def test_of_a_log_of_which_only_the_end_is_here_the_rest_is_refused() -> None:
    """Not passed over, as if there were no earlier records."""
    log = LogReader(Files({0: batch(6) + batch(8)}, dated_from=6))
    assert log.read(6, 10, ALL, is_first=True) == batch(6) + batch(8)
    assert log.at_time(7000, 6, 10) == (7, 7000, 0)
    for ask_log in (
        lambda: log.read(5, 10, ALL, is_first=True),
        lambda: log.at_time(0, 0, 10),
        lambda: log.at_largest_time(0, 10),
        lambda: log.last_stable_offset(10),
    ):
        with pytest.raises(CorruptBatchError):
            ask_log()
    assert LogReader(Files({6: batch(6)}, dated_from=6)).read(0, 10, ALL, is_first=True) == batch(6)


def test_a_client_at_the_end_waits_as_long_as_it_says() -> None:
    served = served_of({0: (Files({0: batch(0)}), Ends(0, 2))})

    def wait(offset: int, **more: Any) -> float:
        answer = respond(served, frame_of(FETCH, 12, asking({0: offset}, **more)), ADDRESS)
        return answer.wait_s if isinstance(answer, Held) else 0.0

    assert wait(2, min_bytes=1) == 0.5
    assert wait(2, min_bytes=0) == 0
    assert wait(0, min_bytes=1) == 0
    assert wait(0, min_bytes=1 << 20) == 0
    assert wait(3, min_bytes=1) == 0
    assert wait(2, min_bytes=1, max_wait_ms=1 << 30) == MOST_WAIT_MS / 1000
    assert wait(2, min_bytes=1, max_wait_ms=-5) == 0


def test_what_follows_an_answer_that_is_held_back_comes_behind_it() -> None:
    async def run() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        server = Server(lambda frame, address: Held(frame, 3) if frame == b"slow" else frame, lambda words: None)
        reader, writer = await asyncio.open_connection(*await server.listen(("127.0.0.1", 0)))
        began = loop.time()
        for frame in (b"one.", b"slow", b"two."):
            writer.write(len(frame).to_bytes(4) + frame)
        assert await reader.readexactly(4) == b"one."
        assert loop.time() - began < 3
        writer.write(b"\0\0\0\4last")
        found = await reader.readexactly(12), loop.time() - began
        writer.close()
        server.close()
        return found

    answered, seconds = asyncio.run(run())
    assert answered == b"slowtwo.last"
    assert seconds > 2.9


def test_a_copy_of_the_copy_is_the_same_bytes(recorded: Recorded, tmp_path: Path) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    with moments(directory) as (asked, session), listening(asked.load(session)) as address:
        pulled = CliRunner().invoke(main, ["pull", "--bootstrap-server", address, "--to", str(tmp_path / "copy")])
    assert pulled.exit_code == 0, pulled.stderr
    originals = sorted(directory.glob("__consumer_offsets-*"))
    assert originals
    for folder in originals:
        logs = sorted((tmp_path / "copy" / folder.name).glob("*.log"))
        assert b"".join(path.read_bytes() for path in logs) == whole(folder, ALL)


@pytest.mark.kafka
def test_kafkas_own_consumer_reads_the_records_of_the_files(recorded: Recorded) -> None:
    try:
        libs = jars()
    except NotAvailableError as error:
        pytest.skip(str(error))
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    expected = [
        f"Offset:{record.offset}\t{(record.value or b'null').decode()}"
        for one in iter_batches(whole(directory / "orders-0", ALL))
        if isinstance(one, RecordBatch) and not one.is_control
        for record in iter_records(one)
        if isinstance(record, Record)
    ]
    command = ["java", *quick(libs), "-Dlog4j2.level=OFF", "-cp", f"{libs}/*"]
    command += ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", "orders", "--partition", "0"]
    command += ["--offset", "earliest", "--max-messages", str(len(expected))]
    command += ["--timeout-ms", str(1000 * PATIENCE_S), "--formatter-property", "print.offset=true"]
    with moments(directory) as (asked, session), listening(asked.load(session)) as address:
        ran = subprocess.run(
            [*command, "--bootstrap-server", address], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert ran.stdout.splitlines() == expected != []


def test_only_clients_of_librdkafka_are_told_of_produce() -> None:
    served = served_of({})
    for name, version, is_told in (
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", True),
        ("librdkafka", "2.15.0", True),
        ("apache-kafka-java", "4.3.0", False),
    ):
        named = {"client_software_name": name, "client_software_version": version, "cluster_id": None}
        answer = ask(served, 18, named)
        assert (0 in {row["api_key"] for row in answer["api_keys"]}) == is_told


def test_at_an_earlier_end_transactions_are_open_that_ended_later() -> None:
    """The first transaction of the broker's log is aborted by offset 5, the last is open from 120 on."""
    log = LogReader(Files({0: base64.b64decode(read_json(VECTOR)["log"])}))
    assert [log.last_stable_offset(end) for end in (126, 121, 120, 6, 5, 0)] == [120, 120, 120, 6, 0, 0]
    assert len(log.aborted(0, 126, 126)) == 7
    assert log.aborted(0, 6, 6)[0].first_offset == 0
    assert log.aborted(0, 5, 5) == []
    served = served_of({0: (Files({0: base64.b64decode(read_json(VECTOR)["log"])}), Ends(0, 126))})
    for level, expected in ((0, 126), (1, 120)):
        asked = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
        body = {"isolation_level": level, "topics": [{"name": "t", "partitions": asked}]}
        assert ask(served, LIST_OFFSETS, body)["topics"][0]["partitions"][0]["offset"] == expected
