"""Test what ``check`` finds besides loads: doubts, damage, missing log."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from offsets_log.checking import loads as checking
from offsets_log.checking.offsets import LONGEST_TRANSACTION_MS
from offsets_log.checking.places import FindingPlace, find_places
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, decode_batch_header, encode_batch
from offsets_log.log_format.building import build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.partition_count import partition_count
from offsets_log.replay.partition_for import java_hash, partition_for
from offsets_log.replay.profile import RELEASES
from offsets_log.replay.releases import release_named
from tests.cli.checked import (
    SAMPLE,
    G,
    Recording,
    batch,
    check,
    commit,
    deletion,
    findings,
    group_in,
    pair,
    run,
    transaction,
    write,
)
from tests.conftest import NEVER, VECTORS, BulkFrom, json_lines, read_partitions


def test_open_transactions_of_the_sample() -> None:
    """``C-1``: two in partition 1, one of which pins the last stable offset; their age ends with the newest record."""
    document = check(SAMPLE, "--loads-on", "4.3.0", status=0)
    found = {(row["offsets_partition"], row["detail"]["producer_id"]): row for row in findings(document, rule="C-1")}
    assert {
        place: (row["record_offset"], row["detail"]["pins_last_stable_offset"]) for place, row in found.items()
    } == {
        (0, 9): (122, True),
        (1, 9): (277, True),
        (1, 10): (279, False),
    }
    assert all(row["severity"] == "note" and row["detail"]["pending"] == 1 for row in found.values())
    assert all(0 <= row["detail"]["age_ms"] < 60_000 for row in found.values())


def test_a_transaction_older_than_any_may_be_is_doubtful() -> None:
    since = check(SAMPLE, status=0)
    (first, *_) = findings(since, rule="C-1")
    begin = first["detail"]["first_timestamp_ms"]
    assert run(SAMPLE, "-p", "0", "--now", str(begin + LONGEST_TRANSACTION_MS)).exit_code == 0
    document = check(SAMPLE, "-p", "0", "--now", str(begin + LONGEST_TRANSACTION_MS + 1), status=3)
    (old,) = findings(document, rule="C-1")
    assert (old["severity"], old["detail"]["age_ms"]) == ("doubt", LONGEST_TRANSACTION_MS + 1)


@pytest.mark.parametrize("is_bulk", [False, True], ids=["by record", "in bulk"])
def test_committed_offsets_below_zero_are_notes(tmp_path: Path, bulk_from: BulkFrom, is_bulk: bool) -> None:
    """``DD-6``: those that are stored still, each with its record; they are no damage."""
    batches = [
        batch(commit(G, "gone", offset=-7), commit(G, "u", offset=-1001), commit(G, "v"), commit(G, "gone")),
        batch(commit(G, "w", offset=-1), first=4),
    ]
    bulk_from(0 if is_bulk else NEVER)
    document = check(write(tmp_path, batches), "--loads-on", "4.3.0", status=0)
    found = findings(document, rule="DD-6")
    told = [(row["severity"], row["group"], row["record_offset"], row["detail"]) for row in found]
    assert told == [
        ("note", G, 1, {"topic": "u", "partition": 0, "committed_offset": -1001}),
        ("note", G, 4, {"topic": "w", "partition": 0, "committed_offset": -1}),
    ]
    assert "u-0 is -1001" in run(tmp_path, "-o", "table").stdout


def test_a_marker_ends_a_transaction_and_a_tombstone_its_offset(tmp_path: Path) -> None:
    """``J-10``, ``J-12``, ``J-13``."""
    batches = [
        transaction(commit(G), commit(G, "u"), first=0),
        transaction(commit(G), first=2, producer_id=6),
        batch(deletion(G, "u"), first=3),
        build_marker(4, commit=True, producer_id=5, producer_epoch=1, timestamp_ms=2000),
    ]
    document = check(write(tmp_path, batches[:3]), "--loads-on", "4.3.0", status=0)
    assert [(row["detail"]["producer_id"], row["detail"]["pending"]) for row in findings(document, rule="C-1")] == [
        (5, 1),
        (6, 1),
    ]
    document = check(write(tmp_path, batches), status=0)
    (left,) = findings(document, rule="C-1")
    assert (left["detail"]["producer_id"], left["detail"]["first_offset"]) == (6, 2)
    assert left["detail"]["pins_last_stable_offset"]


def test_what_is_pending_is_what_each_release_holds(tmp_path: Path) -> None:
    """A plain tombstone: Java from 3.8 on cancels what is pending (``J-12``), Scala and 3.7 do not (``L-18``)."""
    log = write(tmp_path, [transaction(commit(G), first=0), batch(deletion(G), first=1)])
    states = {
        profile: finish(replay(iter_events(read_partitions(log)[0]), profile, on_damage=lambda damage: None))
        for profile in RELEASES.values()
    }
    for name in ("3.4.1", "4.3.0"):
        (found,) = findings(check(log, "--loads-on", name, status=0), rule="C-1")
        assert found["detail"]["pending"] == len(states[release_named(name).profile].pending)
        assert found["releases"] is None
    document = check(log, "--loads-on", "3.4.1,3.7-java,3.8-java,4.3.0", status=0)
    assert [(row["releases"], row["detail"]["pending"]) for row in findings(document, rule="C-1")] == [
        (["3.4.1", "3.7-java"], 1),
        (["3.8-java", "4.3.0"], 0),
    ]
    document = check(log, "--loads-on", "0.10.2", status=3)
    assert [row["detail"]["pending"] for row in findings(document, rule="C-1")] == [None], "it does not load there"


def test_groups_in_the_wrong_partition(tmp_path: Path) -> None:
    """``H1``, ``H3``."""
    write(tmp_path, [batch(commit(G), commit(group_in(7)))])
    document = check(tmp_path, "--partitions", "50", status=3)
    (wrong,) = findings(document, rule="records:H1")
    assert (wrong["group"], wrong["record_offset"], wrong["severity"]) == (group_in(7), 1, "doubt")
    assert document["partitions"] == {"count": 50, "source": "option"}
    assert run(tmp_path, "--partitions", "1").exit_code == 0
    assert findings(check(tmp_path, "-g", G, "--partitions", "50", status=0), rule="records:H1") == []


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
def test_a_name_that_is_not_utf_8_leads_where_it_does_as_it_is_read(
    least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``H1``, ``P5``: clients know no other name."""
    bulk_from(least_bytes)
    write(tmp_path, [batch(*((key.replace(b"z\x01q", b"z\xffq"), value) for key, value in [commit("z\x01q")]))])
    (wrong,) = findings(check(tmp_path, "--partitions", "50", status=3), rule="records:H1")
    assert (wrong["group"], wrong["detail"]["expected_partition"]) == ("z\ufffdq", partition_for("z\ufffdq", 50))


def test_the_number_of_partitions_follows_from_the_groups() -> None:
    """``H1``–``H3``."""

    def spread(count: int, partitions: int, wanted: Sequence[int]) -> dict[int, list[str]]:
        names = [f"group-{i}" for i in range(count)]
        return {p: [name for name in names if partition_for(name, partitions) == p] for p in wanted}

    assert partition_count({}) == (50, "default")
    assert partition_count({3: [group_in(3)]}) == (50, "default")
    assert partition_count({0: ["a"]}) == (50, "guess"), "one group shows nothing"
    assert partition_count(spread(40, 4, range(4))) == (4, "data")
    assert partition_count(spread(400, 40, range(40))) == (40, "data")
    assert partition_count(spread(400, 50, range(50))) == (50, "default")
    assert partition_count(spread(400, 50, [3, 17])) == (50, "default")
    assert partition_count(spread(900, 100, [60, 61, 70])) == (100, "data"), "a broker that holds some partitions"
    assert partition_count({70: []}) == (71, "guess")
    some_are_wrong = spread(400, 4, range(4))
    some_are_wrong[0].append(group_in(1, 4, prefix="wrong"))
    assert partition_count(some_are_wrong) == (4, "data")
    assert check(SAMPLE, status=0)["partitions"] == {"count": 4, "source": "data"}
    assert check(SAMPLE, "-p", "3", status=0)["partitions"] == {"count": 4, "source": "data"}
    guessed = check(SAMPLE, "-p", "2", status=0)
    assert guessed["partitions"] == {"count": 50, "source": "guess"}
    assert {row["severity"] for row in findings(guessed, rule="records:H1")} == {"note"}


def test_java_hashes() -> None:
    """``H1``, with Kafka's own answers."""
    lines = lzma.decompress((VECTORS / "partition-for.jsonl.xz").read_bytes()).decode()
    checked = 0
    for row in json_lines(lines):
        assert java_hash(row["group"]) == row["hash"]
        assert partition_for(row["group"], row["partitions"]) == row["partition"]
        checked += 1
    assert checked > 1000
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert partition_for("polygenelubricants", 50) == 0


def test_orphans_are_told_for_the_releases_that_do_not_serve_them(tmp_path: Path) -> None:
    """``J-15``; the Scala coordinator makes a group of them (``L-36``)."""
    write(tmp_path, [batch(commit(G), commit(G, "u"), pair(2, {"group": G}))])
    document = check(tmp_path, "--loads-on", "3.9.1,4.0.0,4.3.0", status=3)
    (orphans,) = findings(document, rule="J-15")
    assert (orphans["releases"], orphans["detail"]["offsets"], orphans["position"] > 0) == (["4.0.0", "4.3.0"], 2, True)
    assert run(tmp_path, "--loads-on", "2.8").exit_code == 0


def test_orphans_are_not_told_for_a_release_whose_load_does_not_serve_all(tmp_path: Path) -> None:
    """A record that ends the load is told, and not what would have been of the offsets (``J-15``)."""
    write(tmp_path, [batch(commit(G), pair(2, {"group": G}), (None, b"v"))])
    document = check(tmp_path, "--loads-on", "4.3.0", status=3)
    assert document["loads"]["0"]["4.3.0"]["served"] == "nothing"
    assert findings(document, rule="J-15") == []


@pytest.mark.parametrize("wanted", [(), (0,), (1,), (0, 3), (2, 9), (3, 4), (0, 1, 2, 3)])
def test_places_are_those_of_the_records_that_are_asked_for(wanted: tuple[int, ...]) -> None:
    """One that its batch lacks has the batch's place; one that is in no batch has none."""
    first, second = batch(commit("a"), commit("b")), batch(commit("c"), first=3)
    lone = replace(decode_batch_header(first), last_offset=2)
    data = encode_batch(lone, lone.raw[BATCH_HEADER_SIZE:]) + second
    found = find_places(PartitionLog(0, (Segment("f", 0, data),)), wanted)
    groups = {0: "a", 1: "b", 2: None, 3: "c"}
    assert {offset: (place.record_offset, place.group) for offset, place in found.items()} == {
        offset: (offset, groups[offset]) for offset in wanted if offset in groups
    }
    assert found.get(2, FindingPlace("f", 0, 2)) == FindingPlace("f", 0, 2)


def test_a_deleted_offset_under_a_type_0_key_may_return(tmp_path: Path) -> None:
    """``C-20``: the cleaner takes type 0 and type 1 keys for different ones."""
    buried = [batch(commit(G, record_type=0), commit(G), deletion(G))]
    (zombie,) = findings(check(write(tmp_path, buried), status=3), rule="C-20")
    assert (zombie["group"], zombie["record_offset"], zombie["severity"]) == (G, 0, "doubt")
    live = [*buried, batch(commit(G), first=3)]
    assert findings(check(write(tmp_path, live), status=0), rule="C-20") == []
    ended = [*buried, batch(deletion(G, record_type=0), first=3)]
    assert findings(check(write(tmp_path, ended), status=0), rule="C-20") == []


def test_names_that_are_read_as_one(tmp_path: Path) -> None:
    """``P5``, ``B-7``."""
    pairs = [commit("gr\x01"), commit("gr\x02"), commit("gr\x02", "u")]
    raw = [(key.replace(b"gr\x01", b"gr\xfe").replace(b"gr\x02", b"gr\xff"), value) for key, value in pairs]
    document = check(write(tmp_path, [batch(*raw)]), status=3)
    (collision,) = findings(document, rule="records:P5")
    assert collision["group"] == "gr\ufffd"
    assert collision["detail"]["names_hex"] == ["6772fe", "6772ff"]
    assert findings(document, rule="records:H1") == [], "the name as it is read leads here"
    assert findings(check(write(tmp_path, [batch(*raw[1:])]), status=0), rule="records:P5") == []


def test_a_batch_larger_than_the_load_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``L-6``: up to 1.1 a load never gets past it."""
    monkeypatch.setattr(checking, "LOAD_BUFFER_BYTES", 200)
    write(tmp_path, [batch(commit(G)), batch(*[commit(G)] * 4, first=1)])
    document = check(tmp_path, "--loads-on", "1.1,2.0,4.3", status=3)
    verdict = document["loads"]["0"]["1.1"]
    assert (verdict["rule"], verdict["record_offset"], verdict["served"]) == ("records:Y4", 0, "nothing")
    old = [pair(1, {"group": G, "topic": "t", "partition": 0}, 1, VERSION_1)] * 6
    document = check(write(tmp_path, [batch(old[0]), batch(*old, first=1)]), "--loads-on", "1.1,2.0,4.3", status=3)
    assert {name: row["rule"] for name, row in document["loads"]["0"].items()} == {
        "1.1": "L-6",
        "2.0": None,
        "4.3": None,
    }
    assert document["loads"]["0"]["1.1"]["record_offset"] == 1
    assert [row["severity"] for row in findings(document, rule="L-6")] == ["fails", "note"]


VERSION_1 = {"offset": 1, "metadata": "", "commit_timestamp": 1, "expire_timestamp": -1}


# ------------------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize("part", ["torn", "zeros"])
def test_damaged_ends_of_a_copied_log(part: str, recording: Recording) -> None:
    """``T1``–``T6``: every damage and every tail is told with its file and position."""
    folder = recording("kafka-4.3-live-copy")
    document = check(folder / f"log-{part}", "--loads-on", "4.3.0", status=0)
    tails = findings(document, rule="records:T6")
    assert {row["detail"]["tail"] for row in tails} == {part}
    assert all(row["severity"] == "note" and row["file"] and row["position"] is not None for row in tails)
    assert findings(document, severity="damage") == []


def test_damage_in_the_middle_is_told_with_its_place_and_what_a_broker_does(tmp_path: Path) -> None:
    """``L-7``, ``T1``, ``T4``, ``T5``, ``D-4``, ``J-3``."""
    good = [batch(commit(G), first=i) for i in range(3)]
    wrong_crc = bytearray(good[1])
    wrong_crc[-1] ^= 0xFF
    document = check(write(tmp_path, [good[0], bytes(wrong_crc), good[2]]), status=3)
    (damage,) = findings(document, severity="damage")
    assert (damage["rule"], damage["position"], damage["record_offset"]) == ("L-7", len(good[0]), 1)
    assert "records:T4" in damage["detail"]["broker"]
    wrong_magic = bytearray(good[1])
    wrong_magic[16] = 9
    document = check(write(tmp_path, [good[0], bytes(wrong_magic), good[2]]), status=3)
    (doubt,) = (row for row in findings(document) if row["severity"] in ("damage", "doubt"))
    assert (doubt["rule"], "(D-4)" in doubt["detail"]["broker"]) == ("records:T5", True)
    assert "the log ends here" not in doubt["detail"]["broker"]
    too_long = bytearray(good[1])
    too_long[8:12] = (1 << 20).to_bytes(4)
    document = check(write(tmp_path, [good[0], bytes(too_long), good[2]]), status=3)
    assert [row["rule"] for row in findings(document) if row["severity"] in ("damage", "doubt")] == ["records:T1"]
    cut = batch((commit(G)[0], b"\x00"), first=1)
    document = check(write(tmp_path, [good[0], cut, good[2]]), "--loads-on", "4.3", status=3)
    (damage,) = findings(document, severity="damage")
    assert (damage["rule"], damage["group"], damage["record_offset"]) == ("J-3", G, 1)
    assert document["loads"]["0"]["4.3"]["group"] == G


def test_missing_log_and_overlaps_between_segments(tmp_path: Path) -> None:
    """``C-24``, ``D-10``; below the cleaner's checkpoint a gap is the cleaner's, above it a file is missing."""
    write(tmp_path, [batch(commit(G), commit(G))])
    write(tmp_path, [batch(commit(G), first=9)], file="00000000000000000009.log")
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    for cleaned_until, parts in (
        (None, [("doubt", 2, 8)]),
        (5, [("doubt", 5, 8), ("note", 2, 4)]),
        (9, [("note", 2, 8)]),
    ):
        if cleaned_until is not None:
            checkpoint.write_text(f"0\n1\n__consumer_offsets 0 {cleaned_until}\n")
        document = check(tmp_path, status=0 if cleaned_until == 9 else 3)
        found = findings(document, rule="D-10")
        assert [
            (row["severity"], row["detail"]["first_offset"], row["detail"]["last_offset"]) for row in found
        ] == parts
        assert all(row["record_offset"] == row["detail"]["first_offset"] for row in found)
        assert all(row["file"].endswith("00000000000000000009.log") for row in found)
        explained = {"doubt": None, "note": f"the cleaner had come to {cleaned_until}"}
        assert all(row["detail"]["explained_by"] == explained[row["severity"]] for row in found)
    other = tmp_path / "other"
    write(other, [batch(commit(G), commit(G))])
    write(other, [batch(commit(G), first=1), batch(commit(G), first=2)], file="00000000000000000001.log")
    document = check(other, status=3)
    assert {row["severity"] for row in findings(document, rule="C-24")} == {"damage", "doubt"}
    assert not findings(document, rule="D-10")


def test_a_log_that_does_not_begin_at_zero_is_doubted(tmp_path: Path) -> None:
    write(tmp_path, [batch(commit(G), first=40)], file="00000000000000000040.log")
    (found,) = findings(check(tmp_path, status=3), rule="D-10")
    assert (found["severity"], found["detail"]["missing_offsets"]) == ("doubt", 40)
    assert "begins at 40 instead of 0" in found["problem"]


def test_strict_and_quarantine_are_as_elsewhere(tmp_path: Path) -> None:
    wrong_crc = bytearray(batch(commit(G)))
    wrong_crc[-1] ^= 0xFF
    write(tmp_path / "data", [bytes(wrong_crc), batch(commit(G), first=1)])
    assert run(tmp_path / "data", "--strict").exit_code == 1
    assert run(tmp_path / "data", "--quarantine", tmp_path / "kept.jsonl").exit_code == 3
    assert len(list(json_lines((tmp_path / "kept.jsonl").read_text()))) == 1
