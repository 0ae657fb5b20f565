"""kafka-dump-log's text read by kernels, and line by line: the same segments, damage and remarks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from offsets_log.columnar import large
from offsets_log.dumps import dump_log
from offsets_log.dumps.formats import build_segments
from offsets_log.log_format.batch import TIMESTAMP_TYPE_MASK, decode_batch_header, encode_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events
from offsets_log.rows.dump_log import iter_lines
from tests.builders import LogBuilder, member
from tests.columnar.test_equal_engines import STEPS, build
from tests.conftest import DISTINCT
from tests.dumps.runs import DATA, captured
from tests.sizes import examples

TEXTS = sorted(file.name.removesuffix(".txt.gz") for file in DATA.glob("dump-log-*.gz"))


def built(text: bytes, least_bytes: int) -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "BULK_FROM_BYTES", least_bytes)
        made = build_segments("text", text, "dump-log")
    segments = [
        (segment.file, segment.base_offset, bytes(segment.buffer), segment.missing_columns, dict(segment.lines))
        for log in made.logs()
        for segment in log.segments
    ]
    damages = [(type(damage.error), str(damage.error), damage.raw) for damage in made.damages]
    return segments, damages, made.remarks


def assert_equal(text: bytes) -> None:
    assert built(text, 0) == built(text, 1 << 60)


def assert_equal_without_holes(text: bytes) -> None:
    """Damaged bytes of a segment are in no batch of its text: these alone are missing."""
    segments, damages, remarks = built(text, 0)
    assert (segments, damages, remarks) == built(text, 1 << 60)
    has_holes = any("are not in the text: " in words for _, words, _ in damages)
    assert has_holes == (b"\nError at position " in text)


def text_of(log: PartitionLog) -> bytes:
    return "".join(line + "\n" for line in iter_lines(iter_events(log))).encode()


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_kafka(name: str) -> None:
    text = captured(name)
    assert_equal_without_holes(text)
    assert_equal_without_holes(text.replace(b"\n", b"\r\n"))


@examples(50)
@given(steps=STEPS)
def test_generated_logs(steps: list[Any]) -> None:
    assert_equal(text_of(build(steps).log))


def some_log() -> LogBuilder:
    log = LogBuilder()
    for i in range(40):
        log.commit(
            i, group=f"g{i % 7}", topic="t", version=i % 5, metadata=["", "m", "\u00fc\U0001f600", "x" * 300][i % 4]
        )
    log.commit(1, producer=7).commit(None, producer=7).end(7, commit=True).end(8, commit=False)
    log.group(member("m"), member("n"), group="g").group(group="g").group(group="g", gone=True)
    log.commit(3, type_=0).commit(9, version=4, topic_id=bytes(range(16)))
    return log


HOSTILE = (
    b"9" * 18, b"9" * 19, b"9" * 30, b"-1", b"-0", b"007", b"", b"\xff", b"\r", b"\n", b"\0", b'"', b"\\", b"\\u0041",
    b" payload: ", b"key: ", "\u2028\u0085\x0b".encode(), b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b",", b"null",
    b"2147483648", b"-2147483649", b"1e3", b"1.0", b" ", b"true", b"\nbaseOffset: ", b"\n| offset: ", b"\nDumping x\n",
    b"isvalid: false", b"OptionalLong[-5]", b"OptionalLong[5]", b"consumer", b'{"topics":[]}', b'"AAAA"', b"lz4",
)  # fmt: skip


def mutations(text: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Texts with some places changed: cut, repeated, or something hostile in place of a word."""
    rng = random.Random(seed)
    for _ in range(count):
        made = text
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(made))
            match rng.randrange(5):
                case 0:
                    made = made[:at] + rng.choice(HOSTILE) + made[at:]
                case 1:
                    end = at
                    while end < len(made) and made[end : end + 1].isalnum():
                        end += 1
                    made = made[:at] + rng.choice(HOSTILE) + made[end:]
                case 2:
                    made = made[:at] + made[at + rng.randrange(1, 40) :]
                case 3:
                    made = made[: at + rng.randrange(600)] + made[at:]
                case 4:
                    lines = made.split(b"\n")
                    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
                    lines[one], lines[other] = lines[other], lines[one]
                    made = b"\n".join(lines)
        yield made


@pytest.mark.parametrize("seed", range(4))
def test_hostile_texts(seed: int) -> None:
    log = some_log()
    consumers = captured("dump-log-4.3.0-two-files").split(b"\n")
    text = text_of(log.log) + b"\n".join(consumers[:60]) + b"\n"
    for made in mutations(text, 60, seed):
        assert_equal(made)


def test_a_log_of_append_time_and_horizons() -> None:
    log = some_log()
    batches = []
    for i, raw in enumerate(log.batches):
        batch = decode_batch_header(raw)
        records = raw[61:]
        attributes = batch.attributes | (TIMESTAMP_TYPE_MASK if i % 2 else 0x40 if i % 3 else 0)
        batches.append(encode_batch(decode_batch_header(_with_attributes(raw, attributes)), records))
    data = b"".join(batches)
    assert_equal(text_of(PartitionLog(0, (Segment("x.log", 0, data),))))


def _with_attributes(raw: bytes, attributes: int) -> bytes:
    return raw[:21] + attributes.to_bytes(2) + raw[23:]


def test_plain_batches_need_no_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that coordinators up to 4.3 write by default."""
    log = LogBuilder()
    for i in range(40):
        log.commit(i, group=f"g{i % 7}", version=i % 5, metadata="m\u00fc")
    log.commit(1, producer=7).commit(None, producer=7).end(7, commit=True).end(8, commit=False)
    log.group(member("m"), member("n"), group="g").group(group="g").group(group="g", gone=True)
    log.commit(9, version=4, topic_id=bytes(range(16)))
    text = text_of(log.log)
    expected = built(text, 1 << 60)

    def slow_path(*arguments: object) -> None:
        raise AssertionError("read on the slow path")

    monkeypatch.setattr(dump_log._Reader, "_record", slow_path)
    assert built(text, 0) == expected


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go out where there is no more room, a large one gets more."""
    from offsets_log.columnar.sinks import known
    from offsets_log.columnar.texts import reading

    monkeypatch.setattr(reading, "OUT_BYTES", 300)
    monkeypatch.setattr(reading, "PAIR_ROWS", 3)
    monkeypatch.setattr(known, "LEAST_KNOWN", 2)
    monkeypatch.setattr(known, "MOST_KNOWN", 4)
    text = text_of(some_log().log)
    assert_equal(text)
    monkeypatch.setattr(reading, "MOST_OUT_BYTES", 500)
    assert_equal(text)


def test_whole_batches_that_are_missing() -> None:
    text = text_of(some_log().log)
    batches = re.split(rb"^(?=baseOffset)", text, flags=re.MULTILINE)
    for left_out in (slice(1, 2), slice(1, 9), slice(7, 8), slice(20, 25), slice(-3, -1)):
        some = batches.copy()
        del some[left_out]
        assert_equal(b"".join(some))
        damages = built(b"".join(some), 0)[1]
        missing = re.search(r"position (\d+), .* not in the text: (\d+) bytes", damages[-1][1])
        assert missing is not None
        sizes = [
            int(size) for batch in batches[left_out] for size in re.findall(rb" size: (\d+)", batch.split(b"\n")[0])
        ]
        line = b"".join(batches[: left_out.indices(len(batches))[0]]).count(b"\n") + 1
        assert (int(missing[1]), int(missing[2])) == (line, sum(sizes))


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Any) -> None:
    from offsets_log.disk.reader import open_logs
    from tests.conftest import log_directories

    for directory in log_directories(recording(name)):
        with open_logs([str(Path(directory))]) as opened:
            for log in opened.logs:
                assert_equal_without_holes(text_of(log))
