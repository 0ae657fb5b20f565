"""``translate`` where a copy lacks records: what topics' configurations tell of it, and records that may be missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from offsets_log.messages.mirror_maker import OFFSET_SYNCS
from tests.cli.test_translate import RECORDS, SHIFT, run, told, write_log, write_segments, write_source
from tests.data_directories.test_metadata_log import ONE, log, topic, value
from tests.translation.logs import Said, log_of, with_header
from tests.translation.test_offset_syncs import build, sync


def configure(folder: Path, policies: str) -> None:
    """Add the cluster's metadata to a data directory."""
    config = value(4, resource_type=2, resource_name="orders", name="cleanup.policy", value=policies)
    (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=one\n")
    place = folder / "__cluster_metadata-0"
    place.mkdir(parents=True)
    (place / f"{0:020}.log").write_bytes(bytes(log(topic("orders", ONE), config).segments[0].buffer))


@pytest.fixture
def thinned(tmp_path: Path) -> Path:
    """A source that lacks five records, and its whole copy."""
    folder = write_source(tmp_path / "source", {("before", "orders", 0): 39, ("among", "orders", 0): 42})
    log_place = folder / "orders-0"
    log_place.mkdir()
    kept = log_of((at, one) for at, one in enumerate(RECORDS) if at not in range(40, 45))
    (log_place / f"{0:020}.log").write_bytes(bytes(kept.segments[0].buffer))
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    return folder


@pytest.mark.parametrize("policies", [None, "delete", "compact,delete"])
def test_few_records_beside_lost_ones_are_read_again(thinned: Path, tmp_path: Path, policies: str | None) -> None:
    if policies is not None:
        configure(thinned, policies)
    result, rows = run(thinned, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 0
    assert set(told(rows).values()) == {("orders", 1000, "at least", None)}


def test_what_a_compacted_source_lacks_says_nothing_else(thinned: Path, tmp_path: Path) -> None:
    configure(thinned, "compact")
    result, rows = run(thinned, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 0
    assert told(rows) == {"before": ("orders", 1039, "exact", 0), "among": ("orders", 1040, "at least", None)}


def test_records_that_may_be_missed_are_counted(tmp_path: Path) -> None:
    records = [Said(1000 + at, b"k", b"%d" % at) for at in range(4_000)]
    source = write_source(tmp_path / "source", {("before", "orders", 0): 1500, ("among", "orders", 0): 3002})
    (source / "orders-0").mkdir()
    kept = log_of((at, one) for at, one in enumerate(records) if at not in range(3000, 3005))
    (source / "orders-0" / f"{0:020}.log").write_bytes(bytes(kept.segments[0].buffer))
    write_log(tmp_path / "target" / "orders-0", records, SHIFT)
    _, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert told(rows) == {"before": ("orders", 2500, "exact", 0), "among": ("orders", 2975, "at least", None)}
    assert {row["skipped"] for row in rows} == {0}
    again = tmp_path / "again"
    again.mkdir()
    result, rows = run(source, again, "--target", tmp_path / "target", "--allow-skip")
    assert told(rows) == {"before": ("orders", 2500, "exact", 0), "among": ("orders", 4005, "at most", None)}
    assert {row["group"]: row["skipped"] for row in rows} == {"before": 0, "among": 1030}
    assert "1 exact, 1 at most" in result.stderr
    assert "records may be skipped, as was allowed, at most 1030 in all" in (again / "plan" / "README.txt").read_text()


@pytest.mark.parametrize(("policies", "offset", "status"), [("delete", 1040, 3), ("compact", 1060, 0)])
def test_offsets_in_no_segment_of_the_target(tmp_path: Path, policies: str, offset: int, status: int) -> None:
    """Where the topic is compacted they are the cleaner's work, and else are lost."""
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    write_log(source / "orders-0", RECORDS)
    folder = write_segments(tmp_path / "target" / "orders-0", (0, 20, 60, 80))
    if policies == "delete":
        cleaned = log_of([(SHIFT + at, RECORDS[at]) for at in range(80, 100, 3)])
        (folder / f"{SHIFT + 80:020}.log").write_bytes(bytes(cleaned.segments[0].buffer))
    configure(tmp_path / "target", policies)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, told(rows)["g"][1]) == (status, offset)


def test_syncs_tell_no_bound_where_the_target_lacks_its_end(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 60})
    syncs = build(OFFSET_SYNCS, sync(0, 0, 0, SHIFT))
    place = source / "mm2-offset-syncs.west.internal-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(bytes(syncs.segments[0].buffer))
    target = tmp_path / "target"
    write_log(target / "orders-0", RECORDS[:50], SHIFT)
    _, rows = run(source, tmp_path, "--target", target)
    assert told(rows) == {"g": ("orders", 1001, "at least", 49)}
    (target / "replication-offset-checkpoint").write_text("0\n1\norders 0 1100\n")
    again = tmp_path / "again"
    again.mkdir()
    _, rows = run(source, again, "--target", target)
    assert told(rows) == {"g": ("orders", 1001, "at least", None)}


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_first_segment_that_is_empty_is_told(tmp_path: Path, side: str) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 90})
    for name in ("source", "target"):
        write_log(tmp_path / name / "orders-0", RECORDS[50:], 50)
        if name == side:
            write_log(tmp_path / name / "orders-0", [], 0)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, rows[0]["target_offset"] <= 90) == (3, True)
    assert "offsets from 0 to 49 are in no segment" in result.stderr


def test_gaps_are_told_where_headers_tell_offsets(tmp_path: Path) -> None:
    """Copies that came again may lack there: nothing is counted."""
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    records = [with_header(one, "x-original-offset", at.to_bytes(8, "little")) for at, one in enumerate(RECORDS)]
    records[45] = with_header(RECORDS[40], "x-original-offset", (40).to_bytes(8, "little"))
    for first in (0, 80):
        write_log(tmp_path / "target" / "orders-0", records[first : first + 60 - first // 2], first)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, told(rows)) == (3, {"g": ("orders", 42, "at least", None)})
    assert "offsets from 60 to 79 are in no segment" in result.stderr


def test_damage_in_a_partition_that_one_side_has_alone_is_told(tmp_path: Path) -> None:
    """Records that lack in others may be there, beside one that is."""
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    write_log(source / "orders-0", RECORDS)
    write_log(tmp_path / "target" / "orders-0", RECORDS[:50] + RECORDS[51:])
    write_log(tmp_path / "target" / "orders-1", [RECORDS[50], Said(0, None, b"last")], batch=1)
    file = tmp_path / "target" / "orders-1" / f"{0:020}.log"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    result, _ = run(source, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 3
    assert str(file) in result.stderr


def test_gaps_of_one_side_are_told_beside_damage_of_the_other(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    file = write_log(source / "orders-0", RECORDS) / f"{0:020}.log"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    write_segments(tmp_path / "target" / "orders-0", (0, 20, 40, 80))
    result, _ = run(source, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 3
    assert str(file) in result.stderr
    assert "offsets from 1060 to 1079 are in no segment" in result.stderr


@pytest.mark.parametrize(("stop", "how"), [("clean", "exact"), ("none", "at least")])
@pytest.mark.parametrize("beyond", [len(RECORDS) + 1, 5000])
def test_an_offset_beyond_the_end_proves_nothing_missing_after_an_orderly_stop(
    tmp_path: Path, stop: str, how: str, beyond: int
) -> None:
    """Else records may be missing at the source's end, and it is said of the source."""
    source = write_source(tmp_path / "source", {("among", "orders", 0): 42, ("beyond", "orders", 0): beyond})
    write_log(source / "orders-0", RECORDS)
    if stop == "clean":
        (source / ".kafka_cleanshutdown").touch()
        (source / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {len(RECORDS)}\n")
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert {row["group"]: row["how"] for row in rows} == {"among": how, "beyond": "at least"}
    assert (f"ends at offset {len(RECORDS)}, and a group has committed {beyond}" in result.stderr) is (how != "exact")
