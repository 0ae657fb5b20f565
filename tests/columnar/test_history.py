"""History in bulk: the rows, their order and their lines are those of the history that is read record by record."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from offsets_log.columnar.history.slow_path import BeyondError
from offsets_log.disk.scratch import Scratch
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Event, TailFound, Until
from offsets_log.investigate.bulk_history import BulkHistory, OrderedHistory
from offsets_log.investigate.history import History, history_order
from offsets_log.investigate.history_lines import HistoryLines
from offsets_log.investigate.history_rows import HISTORY_COLUMNS, history_row
from offsets_log.investigate.history_tables import HistoryTables, table_of_history
from offsets_log.investigate.holders import TopicIds
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, Embedded, encode_embedded
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import PROFILES
from offsets_log_cli.answers import values_of
from offsets_log_cli.history import SELDOM
from offsets_log_cli.main import main
from offsets_log_cli.output import TEXT_FORMATS
from offsets_log_cli.text_table import TextTable
from tests.builders import LogBuilder, member
from tests.columnar import test_newer
from tests.columnar.engines import what
from tests.columnar.test_equal_engines import SEEDS, STEPS, build
from tests.conftest import NEVER, PACKED, BulkFrom
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.replay.test_rules_newer import CONSUMER_MEMBER, current
from tests.sizes import examples, so_many

ShowsKey = Callable[[tuple[str, str, int]], bool]
SAMPLE = Path(__file__).parents[2] / "samples/kafka-4.3-mixed/log"
COLUMNS = [column.name for column in HISTORY_COLUMNS]
TABLE_COLUMNS = [name for name in COLUMNS if name not in SELDOM]
LINES = (
    *(form(COLUMNS).line for form in TEXT_FORMATS.values()),
    TEXT_FORMATS["csv"](["metadata"]).line,
    TEXT_FORMATS["csv"](["record_offset", "host"]).line,
    TEXT_FORMATS["jsonl"](COLUMNS).with_only(["metadata_decoded", "effective_offset", "topic_base64"]).line,
)


def text_of(add: Callable[[TextTable, Any], None], content: Any) -> bytes:
    """A table for people."""
    stream = io.BytesIO()
    with TextTable(TABLE_COLUMNS) as text:
        add(text, content)
        text.write(stream)
    return stream.getvalue()


class Asked:
    """Logs, and what is asked of their history."""

    def __init__(
        self,
        logs: Sequence[PartitionLog],
        profile: str = "modern",
        until: Until = EVERYTHING,
        shows_group: Callable[[str], bool] = lambda name: True,
        shows_key: ShowsKey | None = None,
        chunk: int = 1 << 12,
    ) -> None:
        self.chunk = chunk
        self.logs, self.profile, self.until = logs, PROFILES[profile], until
        self.shows_group, self.shows_key = shows_group, shows_key
        self.seen: list[Any] = []
        self.goes_back: list[bool] = []

    def one_by_one(self) -> list[dict[str, Any]]:
        found = []
        for log in self.logs:
            history = History(self.profile, self.shows_group, self.shows_key or (lambda key: True))
            events = []
            for event in iter_events(log, until=self.until):
                damage = event.damage if isinstance(event, Event) else event
                if isinstance(damage, Damage | TailFound | Missing):
                    self.seen.append(what(damage))
                events.append(event)
            history.read(events, on_damage=lambda damage: None)
            found.append((log, history))
        ids = TopicIds(*(history.state.topic_names for _, history in found))
        entries = sorted(
            ((log, entry) for log, history in found for entry in history.entries),
            key=lambda each: history_order(each[1]),
        )
        self.goes_back = [entry.goes_back for _, entry in entries]
        return [history_row(entry, log.offsets_partition, ids, log.missing_columns) for log, entry in entries]

    def in_bulk(self, stack: ExitStack) -> tuple[OrderedHistory, list[Any]]:
        seen: list[Any] = []
        history = BulkHistory(
            self.profile, self.shows_group, self.shows_key, lambda kind, shape: Scratch(stack, kind, shape), self.chunk
        )
        for log in self.logs:
            history.read(
                log, note=lambda it: seen.append(what(it)), until=self.until, release=None, advance=lambda size: None
            )
        return history.ordered(), seen

    def check(self) -> list[dict[str, Any]]:
        rows = self.one_by_one()
        with ExitStack() as stack:
            try:
                ordered, seen = self.in_bulk(stack)
            except BeyondError:
                return rows
            assert seen == self.seen
            assert list(ordered.rows(only_rewinds=False)) == rows
            assert list(ordered.rows(only_rewinds=True)) == self.shown(rows, only_rewinds=True)
            for line in LINES:
                for only_rewinds in (False, True):
                    lines = HistoryLines(ordered, line, step=self.chunk)
                    pieces = [bytes(piece) for piece in lines.pieces(only_rewinds=only_rewinds)]
                    kept = self.shown(rows, only_rewinds=only_rewinds)
                    assert b"".join(pieces) == b"".join(map(line, kept))
            self.check_tables(ordered, rows)
        return rows

    def shown(self, rows: list[dict[str, Any]], *, only_rewinds: bool) -> list[dict[str, Any]]:
        return [row for row, goes_back in zip(rows, self.goes_back, strict=True) if goes_back or not only_rewinds]

    def check_tables(self, ordered: OrderedHistory, rows: list[dict[str, Any]]) -> None:
        for only_rewinds in (False, True):
            kept = self.shown(rows, only_rewinds=only_rewinds)
            tables = HistoryTables(ordered, only_rewinds=only_rewinds, threads=2, rows=self.chunk)
            more = [name for name in tables.schema.names if name not in COLUMNS]
            assert only_rewinds or more == sorted({name for row in kept for name in row} - set(COLUMNS))
            made = pa.concat_tables([tables.schema.empty_table(), *tables])
            assert made.to_pylist() == table_of_history(kept, more).to_pylist()
            assert made.schema == table_of_history(kept, more).schema
            assert text_of(TextTable.add_columns, [values_of(made[name]) for name in TABLE_COLUMNS]) == text_of(
                TextTable.add, kept
            )


@examples(150)
@given(
    steps=STEPS,
    profile=st.sampled_from(list(PROFILES)),
    shows=st.sampled_from(["", "g", "h"]),
    parts=st.sampled_from([None, 0, 1]),
    bound=st.none() | st.integers(0, 30),
    chunk=st.sampled_from([1, 7, 1 << 15]),
)
def test_generated_logs(steps: Any, profile: str, shows: str, parts: int | None, bound: int | None, chunk: int) -> None:
    log = build(steps).log
    shows_key: ShowsKey | None = None if parts is None else lambda key: key[2] % 2 == parts
    Asked([log, log], profile, Until(record_offset=bound), lambda name: shows in name, shows_key, chunk).check()


@examples(60)
@given(
    steps=st.lists(test_newer.STEP, max_size=40),
    profile=st.sampled_from(list(PROFILES)),
    shows=st.sampled_from(["", "consumer", "s"]),
    chunk=st.sampled_from([7, 1 << 15]),
)
def test_newer_kinds_of_groups(steps: Any, profile: str, shows: str, chunk: int) -> None:
    log = test_newer.build(steps).log
    Asked([log, log], profile, shows_group=lambda name: shows in name, chunk=chunk).check()


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 17), so_many(150)):
        Asked([PartitionLog(0, (Segment("fuzz.log", 0, data),))]).check()


def test_what_begins_lower_after_a_deletion_goes_back() -> None:
    """A tombstone, a group that is gone, a transaction that is decided while it is: each in both engines."""
    log = LogBuilder().group(member("m")).commit(50).commit(None).commit(7)
    log.commit(70, partition=1).commit(None, partition=1).commit(80, partition=1).commit(None, partition=1)
    log.commit(60, partition=1, producer=3).end(3)
    log.commit(9, partition=2).commit(4, partition=2, producer=4).group(gone=True).end(4).group(member("n"))
    log.commit(None, partition=3).commit(-1, partition=3)
    asked = Asked([log.log])
    rows = asked.shown(asked.check(), only_rewinds=True)
    assert [(row["partition"], row["effective_offset"], row["change"], row["rewound_by"]) for row in rows] == [
        (0, 7, "new", 43), (1, 60, "new", 20), (2, 4, "new", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "rewound_by"),
    [(50, 7, 43), (7, 50, None), (7, 7, None), (7, -1, 8), (2**63 - 1, -1, 2**63 - 1), (2**63 - 1, 0, 2**63 - 1)],
)
def test_by_how_much_an_answer_goes_back(before: int, after: int, rewound_by: int | None) -> None:
    """A difference that no 64-bit number holds is the largest one."""
    of_markers = LogBuilder().group(member("m")).commit(before).commit(after, producer=3).end(3)
    for log in (LogBuilder().group(member("m")).commit(before).commit(after), of_markers):
        assert Asked([log.log]).check()[-1]["rewound_by"] == rewound_by


def test_groups_that_go_and_come_back() -> None:
    log = LogBuilder().group(member("m")).commit(5).commit(6, partition=1).group(gone=True)
    log.commit(7, producer=3).commit(4, partition=1).end(3).commit(None).group(gone=True).group(member("n"))
    rows = Asked([log.log]).check()
    assert {"new", "advanced", "rewound", "deleted"} == {row["change"] for row in rows}
    assert {"group_gone", "group_back", "tombstone"} <= {row["event"] for row in rows}


def test_who_held_a_partition() -> None:
    """By name, by a topic id that is named later, and where there is one member only."""
    topic_id = Uuid(bytes(15) + b"\1")
    owned = [{"topic_id": topic_id, "partitions": [0], "assignment_epochs": []}]
    assignment = encode_embedded(
        Embedded(
            CONSUMER_PROTOCOL_ASSIGNMENT,
            0,
            {"assigned_partitions": [{"topic": "t", "partitions": [0, 9]}], "user_data": None},
        )
    )
    log = LogBuilder().group(member("a", assignment=assignment), member("b", group_instance_id="i"))
    log.commit(1).commit(1, partition=1).group(member("b", group_instance_id="i"), generation=2).commit(2)
    log.commit(2, producer=5).end(5)
    log.newer(3, {"epoch": 1}, group="n").newer(5, CONSUMER_MEMBER, group="n", member_id="c")
    log.newer(8, current(1, 0) | {"assigned_partitions": owned}, group="n", member_id="c")
    log.commit(3, group="n").newer(5, CONSUMER_MEMBER, group="n", member_id="d").commit(4, group="n").commit(
        4, group="n", topic="u"
    )
    log.commit(5, group="other", topic_id=topic_id)
    held = [(row["committed_offset"], row["member_id"]) for row in Asked([log.log]).check()]
    assert (1, "a") in held
    assert (1, None) in held
    assert {(2, "b"), (2, None), (3, "c"), (4, "c"), (4, None)} <= set(held)


def classic(assignment: bytes = b"", count: int = 1, **columns: Any) -> list[dict[str, Any]]:
    """Members with an assignment, named by their places."""
    return [member(f"m{number}", assignment=assignment, **columns) for number in range(count)]


def assigned(*partitions: int, topic: str = "t") -> bytes:
    rows = [{"topic": topic, "partitions": list(partitions)}]
    fields = {"assigned_partitions": rows, "user_data": None}
    return encode_embedded(Embedded(CONSUMER_PROTOCOL_ASSIGNMENT, 0, fields))


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize(
    "members",
    [
        [],
        classic(),
        classic(b"\0"),
        classic(b"\0\0\xff\xff\xff\xff"),
        classic(assigned(0, 1)[:-1]),
        classic(assigned(0) + b"behind"),
        classic(b"\0\7" + assigned(0)[2:]),
        classic(b"\xff\xff" + assigned(0)[2:]),
        classic(assigned(0, topic="\xe9")),
        classic(assigned(0), count=2),
        classic(assigned(0), count=300),
        classic(assigned(0), count=2, group_instance_id="i"),
        [member("m", assignment=assigned(0)), member("m", assignment=assigned(1))],
        [member("m", assignment=assigned(0), client_id='a"b,c', client_host="\n")],
        [member("m", assignment=assigned(0), group_instance_id="m")],
    ],
    ids=str,
)
def test_members_as_kernels_and_python_read_them(members: list[dict[str, Any]], profile: str) -> None:
    """Between records of which only Python, or only a kernel takes the group."""
    log = LogBuilder().commit(1).group(*classic(assigned(0, 1)), generation=1).commit(2).commit(2, partition=1)
    log.group(*members, generation=2).commit(3).commit(3, partition=1).commit(3, partition=2, producer=4)
    log.newer(3, {"epoch": 1}).commit(4).group(*members, generation=3).commit(5).newer(3, {"epoch": 2}).commit(6)
    log.group(gone=True).newer(3, {"epoch": 3}).commit(7).group(*members, generation=4).commit(8, partition=1).end(4)
    Asked([log.log, log.log], profile).check()


METADATA = (
    "",
    "plain",
    "a,b",
    'a"b',
    "two\nlines",
    "tab\t",
    "é",
    "\u2028",
    "AQAAAAAAAAAB",
    "\x01",
    "=AAA",
    "AAAA",
    "\\",
)


@pytest.mark.parametrize("metadata", METADATA)
def test_metadata(metadata: str) -> None:
    log = LogBuilder().commit(1, metadata=metadata).commit(0, metadata=metadata * 3)
    assert {row["metadata"] for row in Asked([log.log]).check()} == {metadata, metadata * 3}


@pytest.mark.parametrize("name", ["a,b", 'a"b', "two\nlines", "é", "\x7f", ""])
def test_names(name: str) -> None:
    log = LogBuilder().group(member(f"m{name}"), group=name).commit(1, group=name, topic=name).commit(2, group=name)
    assert len(Asked([log.log]).check()) == 2


def test_many_keys_find_room() -> None:
    log = LogBuilder()
    for number in range(9000):
        log.commit(1, group=f"g{number % 5000}", partition=number % 7, producer=number if number % 2 else -1)
    assert len(Asked([log.log]).check()) == 9000


def test_parquet_of_small_and_large_inputs_is_the_same(tmp_path: Path, bulk_from: BulkFrom) -> None:
    found = []
    for least_bytes in (NEVER, 0):
        file = tmp_path / f"{least_bytes}.parquet"
        bulk_from(least_bytes)
        done = CliRunner().invoke(main, ["history", str(SAMPLE), "-g", "*", "-o", "parquet", "--to", str(file)])
        assert done.exit_code == 0, done.stderr
        found.append(parquet.read_table(file))
    assert found[0].schema == found[1].schema
    assert found[0].to_pylist() == found[1].to_pylist()
    assert len(found[0])
