"""Logs that grow step by step, streamed with deaths at random: the tables are what `compact` and `groups` say."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.errors import InputError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from spark_jobs import growing
from spark_jobs.growing import Folder
from spark_jobs.levels import columns_of
from spark_jobs.options import parse
from spark_jobs.source import OffsetsLogReader
from spark_jobs.streaming import LogStreamReader
from tests.builders import LogBuilder
from tests.following.grown import rolled
from tests.spark.streams import Stream, answer, grow, replayed, table
from tests.spark.streams import reader_of as reader_with
from tests.stores.servers import s3_server

OFFSETS = "__consumer_offsets-0"
CASES = [
    ("kafka-4.3-mixed", "modern", 1),
    ("kafka-lifetime", "modern", 2),
    ("kafka-3.9-classic", "classic", 3),
    ("kafka-4.3-modern-groups", "modern", 4),
    ("kafka-4.3-mixed", "modern-3.7", 5),
]


@pytest.mark.parametrize(("name", "profile", "seed"), CASES)
def test_tables_are_those_of_a_replay(
    recording: Callable[[str], Path], tmp_path: Path, name: str, profile: str, seed: int
) -> None:
    rng = random.Random(seed)
    data, to = tmp_path / "data", tmp_path / "to"
    stream = None
    for _ in grow(recording(name) / "log", data, rng, steps=8, rolls=3):
        if stream is None:
            stream = Stream(str(to), rng, paths=str(data), profile=profile)
        stream.step(rng.choice((None, 1, 3000)))
    assert stream is not None
    while stream.step():
        pass
    for kind, command, changes in (("offsets", "compact", "offset_changes"), ("groups", "groups", "group_changes")):
        expected = answer(command, data, profile)
        assert table(to, kind) == expected
        assert replayed(to, changes) == expected


@pytest.fixture
def store() -> Iterator[tuple[Any, str, str]]:
    """An S3 server: its files, a bucket, and how its URLs end."""
    import s3fs

    with s3_server() as (host, port):
        files = s3fs.S3FileSystem(key="k", secret="s", endpoint_url=f"http://{host}:{port}")
        files.mkdir("growing")
        yield files, "growing", f"?scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"


@pytest.fixture
def data(recording: Callable[[str], Path], tmp_path: Path) -> Path:
    """A partition of several segments, one of which is larger than what is passed unread."""
    rolled(recording("kafka-4.3-mixed") / "log" / OFFSETS, tmp_path / "data" / OFFSETS, random.Random(3), 4)
    return tmp_path / "data"


def reader_of(data: Path | str, **options: str) -> LogStreamReader:
    return reader_with(**{"path": str(data), "level": "raw_records", **options})


def rows(reader: LogStreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [row for batch in found for row in batch.to_pylist()]


def batches(reader: LogStreamReader, limit: ReadLimit) -> list[Any]:
    """The offsets of a stream, as they are kept."""
    offsets = [reader.initialOffset()]
    while (end := json.loads(json.dumps(reader.latestOffset(offsets[-1], limit)))) != offsets[-1]:
        offsets.append(end)
    return offsets


@pytest.mark.parametrize("level", ["records", "raw_records"])
def test_rows_are_those_of_a_read_at_once_and_the_same_when_planned_anew(data: Path, level: str) -> None:
    """In batches of few bytes; files, positions and all."""
    reading = parse({"path": str(data), "level": level})
    source = OffsetsLogReader(reading, schema_of(columns_of(reading)))
    expected = [row for part in source.partitions() for batch in source.read(part) for row in batch.to_pylist()]
    found: list[dict[str, Any]] = []
    offsets = batches(reader_of(data, level=level), ReadMaxBytes(3000))
    assert len(offsets) > 4
    for start, end in pairwise(offsets):
        found += rows(reader_of(data, level=level), start, end)
    assert found == expected
    assert rows(reader_of(data, level=level), {}, offsets[-1]) == expected


def test_segments_that_others_follow_are_passed_by_their_ends(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reads little of them; what is planned, and what is read then, is the same."""
    steps = batches(reader_of(data), ReadMaxBytes(1))
    expected = rows(reader_of(data), {}, steps[-1])
    asked: Counter[str] = Counter()
    piece = Folder.piece

    def counted(folder: Folder, name: str, position: int, size_bytes: int) -> bytes:
        asked[name] += size_bytes
        return piece(folder, name, position, size_bytes)

    monkeypatch.setattr(growing, "TAIL_BYTES", 500)
    monkeypatch.setattr(growing, "SLICE_BYTES", 1000)
    monkeypatch.setattr(Folder, "piece", counted)
    passed = reader_of(data).latestOffset({}, ReadAllAvailable())
    _, *followed, _ = sorted((data / OFFSETS).glob("*.log"))
    assert max(asked[path.name] for path in followed) <= 500 < max(path.stat().st_size for path in followed)
    assert [(p["base_offset"], p["position"], p["next_offset"]) for p in passed.values()] == [
        (p["base_offset"], p["position"], p["next_offset"]) for p in steps[-1].values()
    ]
    assert rows(reader_of(data), {}, passed) == expected


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxBytes(1000)])
def test_a_segment_whose_records_the_one_before_has_gives_none(data: Path, limit: ReadLimit) -> None:
    """As where the cleaner has joined two of them and is about to remove the second."""
    first, second, *_ = sorted((data / OFFSETS).glob("*.log"))
    expected = [row["offset"] for row in rows(reader_of(data), {}, batches(reader_of(data), limit)[-1])]
    first.write_bytes(first.read_bytes() + second.read_bytes())
    found = [row["offset"] for row in rows(reader_of(data), {}, reader_of(data).latestOffset({}, ReadAllAvailable()))]
    assert found == expected


def test_a_batch_is_planned_anew_from_segments_that_were_cleaned(data: Path) -> None:
    """By offsets: what is left of its records, and nothing else."""
    _, before, _, end, *_ = batches(reader_of(data), ReadMaxBytes(1000))
    expected = [row["offset"] for row in rows(reader_of(data), before, end)]
    *cleaned, _ = sorted((data / OFFSETS).glob("*.log"))
    joined = b"".join(file.read_bytes() for file in cleaned)
    for file in cleaned[1:]:
        file.unlink()
    items = [item for item in iter_batches(joined) if isinstance(item, RecordBatch)]
    gone = next(item for item in items if item.base_offset > expected[0])
    cleaned[0].write_bytes(b"".join(item.raw for item in items[1:] if item is not gone))
    again = [row["offset"] for row in rows(reader_of(data), before, end)]
    assert again == [offset for offset in expected if not gone.base_offset <= offset <= gone.last_offset] != expected


def damaged(how: str, file: Path) -> None:
    content = file.read_bytes()
    if how == "cut off":
        file.write_bytes(content[: len(content) // 2])
    elif how == "written again":
        file.write_bytes(LogBuilder().skip(int(file.stem)).commit(1).batches[0])
    elif how == "gone":
        file.unlink()
    else:
        shutil.rmtree(file.parent)


@pytest.mark.parametrize("how", ["cut off", "written again", "gone", "directory gone"])
@pytest.mark.parametrize("when", ["before it goes on", "before it is planned again"])
def test_another_log_is_told(data: Path, monkeypatch: pytest.MonkeyPatch, how: str, when: str) -> None:
    monkeypatch.setattr(growing, "SECOND_LOOK_S", 0)
    (data / "__consumer_offsets-7").mkdir()
    shutil.copy(*(data / name / f"{0:020}.log" for name in (OFFSETS, "__consumer_offsets-7")))
    *_, before, end = batches(reader_of(data), ReadMaxBytes(4000))
    damaged(how, max((data / OFFSETS).glob("*.log")))
    reader = reader_of(data)
    with pytest.raises(InputError, match=r"another log than the one|is not there any more"):
        reader.latestOffset(end, ReadAllAvailable()) if when == "before it goes on" else rows(reader, before, end)


def test_bytes_that_change_behind_a_plan_are_not_taken(data: Path) -> None:
    reader = reader_of(data)
    end = reader.latestOffset({}, ReadAllAvailable())
    parts = reader.partitions({}, end)
    file = min((data / OFFSETS).glob("*.log"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="since this batch was planned"):
        list(chain.from_iterable(map(reader.read, parts)))


def test_what_comes_after_the_beginning_of_a_run_waits_for_the_next(data: Path) -> None:
    """As ``availableNow`` wants it."""
    file = max((data / OFFSETS).glob("*.log"))
    content = file.read_bytes()
    file.write_bytes(content[:-200])
    reader = reader_of(data)
    reader.prepareForTriggerAvailableNow()
    file.write_bytes(content)
    offsets = batches(reader, ReadMaxBytes(3000))
    later = batches(reader_of(data), ReadAllAvailable())
    assert offsets[-1]["0"]["next_offset"] < later[-1]["0"]["next_offset"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": "offsets"}, "a stream has the levels records and raw_records"),
        ({"until_offset": "5"}, "until_offset does not go with a stream"),
        ({"maxBytesPerTrigger": "0"}, "a number of bytes above 0"),
        ({"kafka.bootstrap.servers": "h:1"}, "there is no option 'kafka.bootstrap.servers'"),
    ],
)
def test_options_that_make_no_sense(data: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        reader_of(data, **options)


def test_a_store_that_grows(recording: Callable[[str], Path], tmp_path: Path, store: tuple[Any, str, str]) -> None:
    """From it, and into it."""
    files, bucket, query = store
    rng = random.Random(9)
    data = tmp_path / "data"
    url, to = (f"s3://k:s@{bucket}/{name}{query}" for name in ("in", "to"))
    stream = None
    for _ in grow(recording("kafka-4.3-mixed") / "log", data, rng, steps=4, rolls=2):
        for path in data.rglob("*.log"):
            files.put_file(str(path), f"{bucket}/in/{path.relative_to(data)}")
        stream = stream or Stream(to, rng, paths=url)
        stream.step()
    assert stream is not None
    stream.step()
    files.get(f"{bucket}/to/", f"{tmp_path}/to/", recursive=True)
    for kind, command in (("offsets", "compact"), ("groups", "groups")):
        assert table(tmp_path / "to", kind) == answer(command, data, "modern")
