"""Offsets, groups, history, counts, writers and differences once more, in SQL over decoded records.

The queries beside this file share no line with the two engines, and say each rule in a sentence.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import offsets_log as ol
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from tests.conftest import DISTINCT, NEVER, BulkFrom, log_directories
from tests.fuzz.mutation import mutate_records

QUERIES = Path(__file__).parent
REPLAYS = {"modern": "modern", "classic": "classic", "modern-3.7": "3_7"}
IN_TRANSACTION = {"modern": "producer_id >= 0", "classic": "is_transactional", "modern-3.7": "producer_id >= 0"}
"""Profile → which records of a log are in a transaction (J-5, L-11)."""

Answer = list[tuple[Any, ...]]


class Witness:
    """The records of a copy, in the order of the log, and what the queries make of them."""

    def __init__(self, records: pa.Table) -> None:
        self._duckdb = duckdb.connect()
        at = records.schema.get_field_index("timestamp_ms")
        records = records.set_column(at, "timestamp_ms", records["timestamp"].cast(pa.int64()))
        self._duckdb.register("told", records.append_column("n", pa.array(range(len(records)), pa.int64())))

    def asks(self, query: str, profile: str = "modern", before: int | None = None) -> Answer:
        """The rows of a query over what the views of `values.sql` show.

        Args:
            before: only records with smaller offsets.
        """
        bound = "" if before is None else f"where record_offset < {before}"
        transactional = IN_TRANSACTION[profile]
        self._duckdb.execute(
            f"create or replace temp view records as select *, {transactional} as in_transaction from told {bound}"
        )
        self._duckdb.execute(text_of("values"))
        return self._duckdb.sql(text_of(query)).fetchall()

    def keeps(self, name: str, before: int | None = None) -> None:
        """Keep the offsets of groups that exist as a table."""
        self.asks("groups", before=before)
        self._duckdb.execute(
            f"create or replace temp table {name} as with offsets as ({text_of('replay_modern')}), "
            f"found as ({text_of('groups')}) from offsets semi join found using (offsets_partition, g)"
        )


def text_of(query: str) -> str:
    return (QUERIES / f"{query}.sql").read_text(encoding="utf-8")


def rows_of(table: ol.Table, *columns: str) -> Answer:
    return in_order(tuple(row[column] for column in columns) for row in table.rows())


def in_order(rows: Iterable[tuple[Any, ...]]) -> Answer:
    return sorted(rows, key=lambda row: [(cell is not None, cell) for cell in row])


def is_at_home(group: str, offsets_partition: int, partitions: int) -> bool:
    """Whether a coordinator answers for a group from this partition: `String.hashCode` modulo their number."""
    number = 0
    for unit in struct.unpack(f">{len(group.encode('utf-16-be')) // 2}H", group.encode("utf-16-be")):
        number = (31 * number + unit) % (1 << 32)
    return min(number, (1 << 32) - number) % (1 << 31) % partitions == offsets_partition


def offsets_agree(copy: ol.Copy, witness: Witness) -> None:
    many = len({row["offsets_partition"] for row in copy.info().rows()})
    for profile, query in REPLAYS.items():
        found = copy.offsets(orphans=True, profile=profile)
        committed = in_order(row[:6] for row in witness.asks(f"replay_{query}", profile))
        if profile != "classic":
            committed = [row for row in committed if many == 1 or is_at_home(row[1], row[0], many)]
        assert committed == rows_of(found, *KEY, "record_offset", "committed_offset"), profile


KEY = ("offsets_partition", "group", "topic", "partition")
SERVED = ("effective_offset", "effective_record_offset")


def history_agrees(copy: ol.Copy, witness: Witness) -> None:
    """Of groups that were removed for a while, only what is written: in between nothing is served."""
    found = copy.history(group="*", profile="modern").rows()
    removed = {row["group"] for row in found if row["event"] == "group_gone"}
    columns = (*KEY, "event", "record_offset", "timestamp_ms", "committed_offset", "transaction")
    told = in_order(
        (*(row[name] for name in columns), *(row[name] for name in SERVED if row["group"] not in removed))
        for row in found
        if not row["event"].startswith("group_")
    )
    assert in_order(row[: len(columns)] if row[1] in removed else row for row in witness.asks("history")) == told


def counts_agree(copy: ol.Copy, witness: Witness) -> None:
    columns = ("records", "tombstones", "first_timestamp_ms", "last_timestamp_ms")
    counted = [row for row in rows_of(copy.info(), "offsets_partition", *columns) if row[1]]
    assert in_order(witness.asks("counts")) == counted

    columns = ("records", "commits", "tombstones", "noop_commits", "first_timestamp_ms", "last_timestamp_ms")
    top = in_order(
        (*(row[name] for name in ("group", *columns)), row["peak_commits_per_second"])
        for row in copy.top().rows()
        if row["group"] is not None
    )
    writers = ((*row[:-1], row[-1] and round(row[-1] / 60, 3)) for row in witness.asks("writers"))
    assert in_order(writers) == top


def groups_agree(copy: ol.Copy, witness: Witness) -> None:
    assert in_order(witness.asks("groups")) == rows_of(
        copy.groups(profile="modern"), "offsets_partition", "group", "type"
    )


def differences_agree(copy: ol.Copy, witness: Witness, at: int) -> None:
    witness.keeps("earlier", before=at)
    witness.keeps("later")
    found = rows_of(
        copy.diff(since_offset=at, profile="modern"),
        "group",
        "topic",
        "partition",
        "change",
        "from_offset",
        "to_offset",
    )
    changes = {name: name for name in ("new", "deleted", "advanced", "rewound")} | {"expired": "deleted"}
    moved = in_order((*row[:3], changes[row[3]], *row[4:]) for row in found if row[3] in changes)
    assert in_order(witness.asks("differences")) == moved


@pytest.mark.parametrize(("turn", "name"), [*enumerate(DISTINCT)])
def test_recordings(turn: int, name: str, recording: Callable[[str], Path], bulk_from: BulkFrom) -> None:
    bulk_from((0, NEVER)[turn % 2])
    with ol.open(log_directories(recording(name))[0]) as copy:
        witness = Witness(copy.records().to_arrow())
        offsets_agree(copy, witness)
        history_agrees(copy, witness)
        counts_agree(copy, witness)
        if name != "load-fails":  # records of one group by several coordinators, which no broker loads
            groups_agree(copy, witness)
            differences_agree(copy, witness, at=40)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_records(seed: int, recording: Callable[[str], Path], bulk_from: BulkFrom, tmp_path: Path) -> None:
    """Records of random logs changed below their checksums: what cannot be read is in neither answer."""
    bulk_from((0, NEVER)[seed % 2])
    dice = random.Random(seed)
    for folder in log_directories(recording("random-java"))[0].iterdir():
        (tmp_path / folder.name).mkdir()
        for segment in folder.glob("*.log"):
            data = b"".join(
                mutate_records(batch, dice) if isinstance(batch, RecordBatch) and dice.random() < 0.05 else batch.raw
                for batch in iter_batches(segment.read_bytes())
            )
            (tmp_path / folder.name / segment.name).write_bytes(data)
    with ol.open(tmp_path) as copy:
        witness = Witness(copy.records().to_arrow())
        assert not copy.offsets().is_complete
        offsets_agree(copy, witness)
        history_agrees(copy, witness)
        counts_agree(copy, witness)


def test_the_page_shows_the_query_that_is_tested() -> None:
    page = (QUERIES.parents[1] / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert f"```sql\n{text_of('replay_modern')}```" in page
