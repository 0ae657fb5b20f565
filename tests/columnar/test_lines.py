"""Text of all records, in bulk and one by one: the same bytes, words and exit status."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.events.chunk import Room
from offsets_log.columnar.events.export import Destination, Export
from offsets_log.columnar.jit.modes import IS_CHECKED, IS_PYTHON
from offsets_log.columnar.scan.reading import Threads
from offsets_log.columnar.sinks import lines
from offsets_log.columnar.sinks.forms import dump_log_form, form_of_rows
from offsets_log.columnar.sinks.lines import Press
from offsets_log.disk.spool import Spool
from offsets_log.events import Event
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, TIMESTAMP_TYPE_MASK, decode_batch_header, encode_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.group_metadata import GROUP_METADATA_VALUE
from offsets_log.pipeline import iter_events
from offsets_log.questions.text_parts import Parts
from offsets_log.rows.dump_log import iter_lines
from offsets_log.rows.shown import ALL, Shown
from offsets_log.rows.tables import DECODE_COLUMNS
from offsets_log_cli import records as cli_records
from offsets_log_cli.main import main
from offsets_log_cli.output import TEXT_FORMATS
from offsets_log_cli.text_table import View, fields_of
from tests.builders import LogBuilder, member
from tests.columnar.test_equal_engines import STEPS, build
from tests.conftest import NEVER, PACKED, BulkFrom
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

NAMES = [column.name for column in DECODE_COLUMNS]
LINES = {name: form(NAMES).line for name, form in TEXT_FORMATS.items()} | {
    "table": fields_of(cli_records.TABLE_COLUMNS, View())
}
FORMATS = tuple(LINES)
EXPANDED = tuple(f"{name} --expand" for name in FORMATS)
ALL_FORMATS = (*FORMATS, *EXPANDED, "dump-log")
PRESSED = ("jsonl --expand", "csv", "table --expand", "dump-log") if IS_PYTHON or IS_CHECKED else ALL_FORMATS
"""One kernel writes them all: in other modes than the usual it writes each kind of text once."""
SEEDS = ("kafka-4.3-mixed", "kafka-4.3-compressed", "kafka-0.11-compacted", "kafka-4.3-modern-groups")
DAMAGED = Path(__file__).parents[1] / "broker" / "damaged.tar.xz"
BROKERS = (
    "clean-501-1-3.9.1",
    "clean-501-1-4.3.0",
    "clean-502-1-3.9.1",
    "clean-502-1-4.3.0",
    "recovery-point-501-1-4.3.0",
    "recovery-point-502-1-4.3.0",
    "unclean-501-1-4.3.0",
    "unclean-502-1-4.3.0",
    "unclean-no-index-501-1-4.3.0",
    "unclean-no-index-502-1-4.3.0",
)
"""Which brokers read the damaged logs, each a folder."""
NASTY = [
    "consumer",
    "AQAAAAAAAAAB",
    '"',
    "\\",
    ",",
    "\n\r\t\b\f\0\x1f\x7f",
    "é€😀\u2028",
    "ab" * 40,
    "",
    "'",
    ":",
    '":"',
    "null",
]


# ---------------------------------------------------------------------------------------------- one log


Release = tuple[int, int] | None


def lines_one_by_one(log: PartitionLog, press: Press, release: Release = None) -> bytes:
    if press.form.batch_line is not None:
        return b"".join(line.encode() + b"\n" for line in iter_lines(iter_events(log, release=release)))
    events = iter_events(log, release=release)
    return b"".join(press.form.line(event) for event in events if isinstance(event, Event))


def lines_in_bulk(
    log: PartitionLog, press: Press, threads: int = 1, shown: Shown = ALL, release: Release = None
) -> bytes:
    with Parts() as parts:
        export = Export(
            Destination(parts.keep, part_bytes=3000),
            chunk=press.chunk,
            note=lambda log: lambda item: None,
            shown=shown,
            release=release,
            threads=Threads(threads),
        )
        return b"".join(bytes(piece) for number, _ in export.parts([log]) for piece in parts.take(number))


@pytest.fixture(scope="module", params=PRESSED)
def press(request: pytest.FixtureRequest) -> Press:
    return press_of(request.param)


def press_of(form: str, **room: Any) -> Press:
    """What makes lines of a format."""
    if form == "dump-log":
        return Press(dump_log_form(lambda damage: None), **room)
    name, _, expand = form.partition(" ")
    return Press(form_of_rows(LINES[name], expand=bool(expand)), **room)


def assert_equal(log: PartitionLog, press: Press, threads: int = 1, release: Release = None) -> None:
    assert lines_in_bulk(log, press, threads, release=release) == lines_one_by_one(log, press, release)


@examples(40)
@given(steps=STEPS)
def test_generated_logs(steps: list[Any], press: Press) -> None:
    assert_equal(build(steps).log, press)


def test_hostile_segments(press: Press) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 25), so_many(150)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), press)


def test_hostile_segments_in_a_row(press: Press) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 26), so_many(60)))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f'"{n}",.log', base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(None, files), press, threads=2)


CHOSEN = {
    "csv": TEXT_FORMATS["csv"](["value"]).line,
    "csv, nothing of keys and values": TEXT_FORMATS["csv"](["record_offset", "is_control", "trailing_hex"]).line,
    "jsonl": TEXT_FORMATS["jsonl"](NAMES).with_only(["key", "unknown_tags", "metadata_base64"]).line,
    "table": fields_of(["key_hex", "is_transactional", "control", "error", "timestamp_ms"], View()),
}


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("form", CHOSEN)
def test_chosen_columns(form: str, expand: bool) -> None:
    press = Press(form_of_rows(CHOSEN[form], expand=expand))
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 27), so_many(40)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), press)
    log = LogBuilder().commit(1, metadata='",').commit(1, metadata="").commit(1, metadata="AQAAAAAAAAAB")
    log.group(member("m")).add((b"\0\1", None), (b"", b"x"), (b"\0\2" + _text("g"), b"\0\3x")).end(8, commit=False)
    assert_equal(log.log, press)


@pytest.mark.parametrize("output", ["jsonl", "json", "csv", "table"])
def test_chosen_columns_of_small_and_large_inputs_are_the_same(
    output: str, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    log = LogBuilder().commit(1, metadata="m").group(member("m")).add((b"", b"x")).end(8, commit=True)
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join(log.batches))
    names = "record_offset,is_control,key_hex,value,timestamp_ms,control,name,topic_base64"
    found = []
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        found.append(CliRunner().invoke(main, ["records", str(file), "-o", output, "--columns", names, "--wide"]))
    assert found[0].stdout == found[1].stdout
    assert found[0].stderr == found[1].stderr
    assert "COMMIT" in found[0].stdout


NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 9, 10, 99, 100, 10**18 - 1, 10**18, 10**18 + 1, (1 << 63) - 1, -(1 << 63)]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
CHARACTERS = st.one_of(st.sampled_from(NASTY), st.text(max_size=20))
MEMBERS = st.lists(
    st.tuples(CHARACTERS, st.one_of(st.none(), CHARACTERS), st.binary(max_size=9), st.binary(max_size=9)), max_size=3
)


def encodable(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


@examples(60)
@given(
    names=st.lists(st.tuples(CHARACTERS, CHARACTERS, CHARACTERS, NUMBERS, NUMBERS), min_size=1, max_size=12),
    version=st.integers(0, 4),
)
def test_any_values(names: list[tuple[str, str, str, int, int]], version: int, press: Press) -> None:
    """Texts of all characters and numbers of all sizes, malformed ones too."""
    log = LogBuilder()
    for group, topic, metadata, number, other in names:
        key = b"\0\1" + _text(group) + _text(topic) + (number & 0xFFFFFFFF).to_bytes(4)
        text = bytes([len(encodable(metadata)) + 1]) if version == 4 else len(encodable(metadata)).to_bytes(2)
        value = version.to_bytes(2) + number.to_bytes(8, signed=True)
        value += (other & 0xFFFFFFFF).to_bytes(4) if version >= 3 else b""
        value += text + encodable(metadata) + other.to_bytes(8, signed=True)
        value += number.to_bytes(8, signed=True) if version == 1 else b""
        value += b"\0" if version == 4 and number % 2 else b"\1\0\x10" + bytes(15) + b"\7" if version == 4 else b""
        log.add((key, value), (key, None))
    assert_equal(log.log, press)


@examples(60)
@given(groups=st.lists(st.tuples(CHARACTERS, st.integers(0, 4), MEMBERS), min_size=1, max_size=6), more=st.binary())
def test_any_groups(groups: list[tuple[str, int, Any]], more: bytes, press: Press) -> None:
    """Classic groups of all versions, with bytes behind the last field too."""
    log = LogBuilder()
    for i, (name, version, members) in enumerate(groups):
        value = GROUP_METADATA_VALUE.zeros(version) | {
            "protocol_type": name,
            "generation": i - 1,
            "protocol": None if i % 2 else name,
            "leader": name if i % 3 else None,
        }
        for member_id, instance, subscription, assignment in members:
            fields = {
                "member_id": member_id,
                "group_instance_id": instance,
                "client_id": name,
                "client_host": "/",
                "rebalance_timeout": -1,
                "session_timeout": 5,
                "subscription": subscription,
                "assignment": assignment,
            }
            value["members"].append(fields)
        try:
            raw = version.to_bytes(2) + GROUP_METADATA_VALUE.struct(version).build(value)
        except UnicodeEncodeError:
            continue
        log.add((b"\0\2" + _text(name), raw), (b"\0\2" + _text(name), raw + more), (b"\0\2" + _text(name), None))
    assert_equal(log.log, press)


def _text(text: str) -> bytes:
    return len(encodable(text)).to_bytes(2) + encodable(text)


def test_a_time_beyond_64_bits_wraps_around(press: Press) -> None:
    log = LogBuilder()
    key = b"\0\1" + _text("g") + _text("t") + bytes(4)
    log.add((key, None), (key, None)).add((key, None))
    for time in (1 << 63) - 1, -(1 << 63):
        for is_append_time in (False, True):
            batch = decode_batch_header(log.batches[0])
            records = bytearray(batch.raw[BATCH_HEADER_SIZE:])
            assert records[2] == 0
            records[2] = 9 if time < 0 else 10  # the first record's delta, -5 or 5
            attributes = TIMESTAMP_TYPE_MASK * is_append_time
            changed = replace(batch, base_timestamp_ms=time, max_timestamp_ms=time, attributes=attributes)
            other = LogBuilder()
            other.batches = [encode_batch(changed, bytes(records)), log.batches[1]]
            assert_equal(other.log, press)
            told = lines_one_by_one(other.log, press)
            wrapped = (1 << 63) - 5 if time < 0 else -(1 << 63) + 4
            assert (str(wrapped).encode() in told) != is_append_time


def assert_made_by_the_kernel(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that coordinators up to the classic groups of 4.3 write is written by the kernel."""

    def slow_path(*arguments: object) -> None:
        raise AssertionError("made on the slow path")

    log = LogBuilder()
    for version in range(5):
        log.commit(version, version=version, metadata="u" if press.form.beyond else "ü", producer=7)
    log.commit(None).commit(9, version=4, topic_id=bytes(range(16))).commit(3, type_=0)
    log.end(7, commit=True).end(8, commit=False)
    log.group(member("m"), member("n"), group="g").group(group="g").group(group="g", gone=True)
    assert_equal(log.log, press)
    monkeypatch.setattr(lines.LineChunk, "row", slow_path)
    monkeypatch.setattr(lines.LineChunk, "_line", slow_path)
    assert_equal(log.log, press)


def test_plain_records_need_no_hand(monkeypatch: pytest.MonkeyPatch, press: Press) -> None:
    assert_made_by_the_kernel(press, monkeypatch)


@pytest.mark.parametrize("form", CHOSEN)
def test_chosen_columns_need_no_hand(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_made_by_the_kernel(Press(form_of_rows(CHOSEN[form])), monkeypatch)


def consumer_bytes(count: int) -> bytes:
    """What a member subscribes to, or is assigned, with user data of the sticky assignor."""
    topics = b"".join(_text(f"topic{i}") + (1).to_bytes(4) + i.to_bytes(4) for i in range(count))
    return b"\0\0" + count.to_bytes(4) + topics + (0xFFFFFFFF).to_bytes(4)


EMBEDDED = [
    b"", b"\0", *map(consumer_bytes, range(3)),
    b"\0\0" + (1).to_bytes(4) + _text("t") + (9).to_bytes(4) + b"\0\0\0\1tttt\1",
    b'{"host":"\xc3\xa9","version":1}', b"[" * 200, b"\0\0" + _text("http://a") + bytes(8),
]  # fmt: skip


@examples(40)
@given(
    groups=st.lists(
        st.tuples(
            st.sampled_from(["consumer", "connect", "sr", "other", ""]),
            st.sampled_from([None, "", "range", "sticky", "cooperative-sticky", "stream", "default"]),
            st.lists(st.tuples(st.sampled_from(EMBEDDED), st.sampled_from(EMBEDDED)), max_size=3),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_members_of_all_protocols(groups: list[Any], press: Press) -> None:
    """The same bytes are another thing in a group with another protocol type or protocol."""
    log = LogBuilder()
    for protocol_type, protocol, members in groups:
        rows = [
            member(f"m{i}", subscription=subscription, assignment=assignment)
            for i, (subscription, assignment) in enumerate(members)
        ]
        log.group(*rows, protocol_type=protocol_type, protocol=protocol)
    assert_equal(log.log, press)


SMALL = Room(rows=50, most_entries=400)


def test_room(press: Press) -> None:
    """Text goes out where it is full; a line may need more room than there is."""
    log = LogBuilder()
    for i in range(600):
        log.commit(i, group=f"g{i}", topic=f"t{i % 3}", metadata='"' * (i * 7 % 90))
    log.group(*[member(f"m{i}", client_id="x" * 50) for i in range(200)], group="large")
    assert_equal(log.log, Press(press.form, room=SMALL, text_bytes=1000, most_templates=1))


def test_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts go out whole and in the order asked for, larger ones from disk; what is written again is void."""
    monkeypatch.setattr("offsets_log.disk.spool.BYTES_IN_MEMORY", 10)
    with Spool() as spool:
        spool.write(1, [b"one" * 20])
        spool.write(0, [b"void"])
        spool.write(0, [b"ze", memoryview(b"ro")])
        spool.write(2, [b"left"])
        assert b"".join([*spool.take(0), *spool.take(1)]) == b"zero" + b"one" * 20
