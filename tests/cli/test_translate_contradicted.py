"""``translate`` where offset syncs or headers are of another pair of clusters, as records show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from offsets_log.messages.mirror_maker import OFFSET_SYNCS
from tests.cli.test_translate import RECORDS, SHIFT, run, write_log, write_source
from tests.translation.logs import Said, log_of, with_header
from tests.translation.test_offset_syncs import build

LACKING = [None if at < 60 or at == 69 else one for at, one in enumerate(RECORDS)]
"""What begins late, and lacks the record before the committed one."""


def write_thinned(folder: Path, records: Sequence[Said | None]) -> None:
    """A partition's directory with the records that are not None, by their offsets."""
    folder.mkdir(parents=True)
    log = log_of((at, one) for at, one in enumerate(records) if one is not None)
    (folder / f"{60:020}.log").write_bytes(bytes(log.segments[0].buffer))


def write_syncs(folder: Path, shift: int) -> None:
    """A topic of offset syncs that has each tenth record so far behind its offset."""
    syncs = [
        (at, {"topic": "orders", "partition": 0}, {"upstream_offset": source, "downstream_offset": source + shift})
        for at, source in enumerate(range(60, 100, 10))
    ]
    place = folder / "mm2-offset-syncs.us.internal-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(bytes(build(OFFSET_SYNCS, *syncs).segments[0].buffer))


@pytest.mark.parametrize(
    ("shift", "how", "said"),
    [
        (SHIFT, "exact", ""),
        (SHIFT + 5, "at least", "and it was found at 10"),
        (SHIFT - 5, "at least", "they have the record of offset 70 at 1065, and it was found at 1070"),
        (SHIFT + 900, "at least", "at 1961, and the target's log ends at 1100"),
    ],
)
def test_syncs_that_the_records_contradict_are_not_used(tmp_path: Path, shift: int, how: str, said: str) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 70})
    write_thinned(source / "orders-0", LACKING)
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    write_syncs(source, shift)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert [(row["target_offset"], row["how"]) for row in rows] == [(1069 if said else 1070, how)]
    assert said in result.stderr
    assert ("the offset syncs are not used for orders-0" in result.stderr) == bool(said)


@pytest.mark.parametrize("is_in_source", [True, False])
def test_headers_of_an_earlier_life_are_not_used(tmp_path: Path, *, is_in_source: bool) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 70})
    records = [with_header(one, "x-original-offset", b"%d" % (at - 50)) for at, one in enumerate(RECORDS[60:], 60)]
    write_thinned(source / "orders-0", [*LACKING[:60], *records[:9], None, *records[10:]] if is_in_source else LACKING)
    write_log(tmp_path / "target" / "orders-0", [*RECORDS[:60], *records], SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert [(row["target_offset"], row["how"]) for row in rows] == [(1069, "at least")]
    assert "the headers with offsets" in result.stderr
