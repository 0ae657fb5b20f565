"""Rows and texts from which records were left out, by a choice of names or by a cut: what is told, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.dumps.positions import DecodedBatch, RowPlaces
from tests.cli.runs import run
from tests.dumps.runs import rows
from tests.dumps.test_kcat import as_json, consumed

Recordings = Callable[[str], Path]

TRANSACTIONAL = "tx-inter-metrics"


@pytest.fixture
def mixed(recording: Recordings) -> Path:
    return recording("kafka-4.3-mixed") / "log"


def decoded(*arguments: object) -> list[str]:
    return run("decode", *map(str, arguments), "-o", "jsonl").stdout.splitlines()


def compacted(lines: Iterable[str]) -> tuple[int, dict[tuple[Any, ...], int | None], str]:
    """Exit status, offsets by key, and what is said."""
    result = run("compact", "-", "-o", "jsonl", stdin="\n".join(lines).encode())
    found = map(json.loads, filter(None, result.stdout.split("\n")))
    offsets = {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in found}
    return result.exit_code, offsets, result.stderr


def test_transactions_without_their_ends_are_unknown_and_not_open(mixed: Path, tmp_path: Path) -> None:
    right = {key for key in compacted(decoded(mixed, "-p", 3))[1] if key[0] == TRANSACTIONAL}
    assert len(right) == 3
    chosen = decoded(mixed, "-p", 3, "-g", TRANSACTIONAL)
    status, offsets, said = compacted(chosen)
    assert (status, offsets) == (3, dict.fromkeys(right))
    assert "may have been aborted: the ends of their transactions are left out" in said
    assert "nothing is committed there yet" not in said
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(chosen))
    assert rows("transactions", file, status=3) == []
    run("decode", mixed, "-p", 3, "-g", TRANSACTIONAL, "-o", "parquet", "--to", tmp_path / "table")
    found = rows("compact", tmp_path / "table", status=3)
    assert {(row["group"], row["topic"], row["partition"]) for row in found} == right
    assert {row["committed_offset"] for row in found} == {None}


def test_what_no_transaction_holds_is_answered_whatever_was_chosen(mixed: Path) -> None:
    whole = compacted(decoded(mixed, "-p", 3))[1]
    plain = next(key[0] for key in whole if key[0] not in {row["key"]["group"] for row in held(mixed)})
    status, offsets, said = compacted(decoded(mixed, "-p", 3, "-g", plain))
    assert (status, offsets) == (0, {key: offset for key, offset in whole.items() if key[0] == plain})
    assert "right if they were chosen, as by offsets-log records -g" in said


def held(log: Path) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, decoded(log, "-p", 3)) if row["is_transactional"] and not row["is_control"]]


@pytest.mark.parametrize("name", ["kafka-0.11-compacted", "kafka-2.8", "kafka-4.3-cleaned", "kafka-4.3-compressed"])
def test_nothing_is_missing_of_rows_that_are_all_there(name: str, recording: Recordings) -> None:
    """Of compacted logs too, whose offsets leap, and of open transactions in partitions without any end."""
    log = recording(name) / "log"
    status, offsets, said = compacted(decoded(log))
    assert status == 0, said
    assert "left out" not in said.replace("is left out", "")
    expected = {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in rows("compact", log)}
    assert offsets == expected


@pytest.mark.parametrize(("begin", "end"), [(49, 60), (0, 97), (30, 31)])
def test_rows_that_were_cut_out_are_told(begin: int, end: int, mixed: Path, tmp_path: Path) -> None:
    lines = decoded(mixed, "-p", 3)
    left = [*lines[:begin], *lines[end:]]
    status, _, said = compacted(left)
    assert status == 3
    assert f"position {begin + 1}, " in said
    assert "not in the text" in said
    (file := tmp_path / "rows.jsonl").write_text("\n".join(left))
    found = [row for row in rows("check", file, status=3) if row["kind"] == "finding" and row["severity"] == "doubt"]
    assert [(row["offsets_partition"], row["position"]) for row in found] == [(3, begin + 1)]


def test_rows_cut_out_of_a_table_are_told(mixed: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run("decode", mixed, "-p", 3, "-o", "parquet", "--to", tmp_path / "table")
    (part,) = (tmp_path / "table").glob("*.parquet")
    table = pq.read_table(part)
    pq.write_table(table.filter([not 50 <= i < 60 for i in range(len(table))]), part)
    assert "not in the text" in run("compact", tmp_path / "table", "-o", "jsonl").stderr


def places(*batches: tuple[int, int, int]) -> RowPlaces:
    """Batches of one record each: position of the batch, its size, and its offset."""
    found = RowPlaces("f", 0)
    for begin, size, offset in batches:
        found.saw(DecodedBatch(1, 1, begin + 61, begin + 61, 0, size - 61, 1, offset, offset, is_exact=True))
    return found


def test_batches_without_records_are_no_hole() -> None:
    """Of which there are no rows; as many as offsets are missing at most."""
    assert places((0, 100, 0), (100 + 2 * 61, 100, 5)).is_whole
    assert places((0, 100, 0), (100 + 2 * 61, 100, 2)).left_out_bytes == 122
    assert places((0, 100, 0), (100, 90, 40)).is_whole  # cleaned
    assert places((0, 100, 0), (190, 90, 1)).is_whole  # offsets decide
    assert places((0, 100, 0), (190, 90, 4)).left_out_bytes == 90
    assert not places((70, 100, 9)).is_whole


def test_rows_whose_place_is_not_told_are_whole_only_without_a_leap() -> None:
    found = RowPlaces("f", 0)
    found.saw(DecodedBatch(1, 1, -1, -1, 0, 0, 2, 0, 1, is_exact=True))
    found.saw(DecodedBatch(1, 1, -1, -1, 0, 0, 1, 2, 2, is_exact=True))
    assert found.is_whole
    found.saw(DecodedBatch(1, 1, -1, -1, 0, 0, 1, 9, 9, is_exact=True))
    assert (found.is_whole, found.holes) == (False, [])


def test_a_consumers_text_with_leaps_is_told_what_may_be_wrong(mixed: Path) -> None:
    lines = [as_json(partition, record).decode("latin-1") for partition, record in consumed(mixed) if partition == 3]
    for left in (lines[50:], [*lines[:50], *lines[60:]]):
        result = run("compact", "-", "-o", "jsonl", stdin="\n".join(left).encode("latin-1"))
        assert "before and between its records are not in it" in result.stderr


def test_no_load_is_foretold_of_a_text_that_is_damaged(recording: Recordings) -> None:
    """What ends a load may be what is left of a broken line."""
    lines = decoded(recording("load-fails") / "log", "-p", 2)
    assert "would not load offsets partition 2" in compacted(lines)[2]
    status, _, said = compacted([*lines, lines[-1][:99]])
    assert (status, "would not load" in said) == (3, False)


def entry(group: str, offset: int) -> str:
    facts = f"offset={offset}, leaderEpoch=Optional.empty, metadata=m, commitTimestamp=1570536122165"
    return f"[{group},t,0]::OffsetAndMetadata({facts}, expireTimestamp=None)"


def of_group(group: str) -> str:
    facts = f"groupId={group}, generation=2, protocolType=Some(consumer), currentState=Empty, members=Map()"
    return f"{group}::GroupMetadata({facts})"


@pytest.mark.parametrize("offsets_first", [True, False])
def test_of_two_consumers_texts_nothing_tells_what_came_first(offsets_first: bool) -> None:
    offsets, groups = [entry("g", 5), entry("h", 6)], [of_group("g"), "g::NULL", of_group("h")]
    status, found, said = compacted([*offsets, *groups] if offsets_first else [*groups, *offsets])
    assert (status, found) == (3, {("g", "t", 0): None, ("h", "t", 0): 6})
    assert "nothing tells which of these came first" in said


WRAPPED = entry("g", 5)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{WRAPPED[:at]}\n{WRAPPED[at:]}" for at in (30, 50, 60, 80)),  # a terminal's, within words
        WRAPPED.replace(", ", ", \n"),
        WRAPPED.replace(", ", ",\n  "),
        "[g,t,0]::[OffsetMetadata[5,NO_METADATA]\n  ,CommitTime 1479708539051,ExpirationTime 1480313339051]",
        "[g,t,0]::[OffsetMetadata[5,NO_METADATA]\nCommitTime 1623034799990 ExpirationTime 1623639599990]",
    ],
)
def test_lines_that_were_wrapped_are_joined(text: str) -> None:
    status, found, said = compacted([text, entry("h", 6)])
    assert (status, found) == (0, {("g", "t", 0): 5, ("h", "t", 0): 6}), said
