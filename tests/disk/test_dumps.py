"""Files that are no segments, opened beside some: which are read as what, and the logs that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from offsets_log.disk.dumps import Dumps
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from tests.disk.logs import name, numbers, offsets, partition, segment


def consumed(*record_offsets: int, partition: int = 3) -> str:
    """What kcat prints of records, one a line."""
    return "".join(
        f'{{"topic":"__consumer_offsets","partition":{partition},"offset":{at},"tstype":"create","ts":5,"broker":0,'
        '"key":"k","payload":"v"}\n'
        for at in record_offsets
    )


def test_a_file_is_what_it_begins_like_unless_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(consumed(0, 1))
    (tmp_path / "b.bin").write_bytes(segment(5, 6))
    with open_logs([str(tmp_path / "a.json"), str(tmp_path / "b.bin")], as_partition=9) as disk:
        assert numbers(disk.logs) == [3, 9]
        assert [offsets(log) for log in disk.logs] == [[0, 1], [5, 6]]
    with open_logs([str(tmp_path / "b.bin")], as_partition=9, input_format="segments") as disk:
        assert offsets(disk.logs[0]) == [5, 6]
    with open_logs([str(tmp_path / "a.json")], as_partition=9, input_format="segments") as disk:
        assert (numbers(disk.logs), offsets(disk.logs[0])) == ([9], [])


def test_segments_are_not_what_was_said_and_a_dump_of_nothing_is_refused(tmp_path: Path) -> None:
    folder = partition(tmp_path, 3, {name(0): segment(0)})
    with pytest.raises(InputError, match=f"^{folder}: it holds segments, not kcat; name the files"):
        open_logs([str(folder)], input_format="kcat")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(InputError, match=f"^{tmp_path / 'empty'}: no kcat records are in it"):
        open_logs([str(tmp_path / "empty")], input_format="kcat")


@pytest.mark.parametrize(
    ("columns", "told"),
    [(None, True), ({"leader_epoch", "producer_id"}, True), ({"group"}, False), (set(), False)],
)
def test_columns_that_a_dump_does_not_tell_are_named_if_the_answer_has_them(
    columns: set[str] | None, told: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(consumed(0))
    with open_logs([str(tmp_path / "a.json")], columns=columns) as disk:
        assert any("producer_id" in note for note in disk.notes) is told
        assert sum("has null for" in note for note in disk.notes) == told


def test_remarks_about_a_dump_name_its_file(tmp_path: Path) -> None:
    for file in ("a.json", "b.json"):
        (tmp_path / file).write_text(consumed(0))
    with open_logs([str(tmp_path / "a.json"), str(tmp_path / "b.json")]) as disk:
        markers = [note for note in disk.notes if "no transaction markers are told" in note]
        assert [note.split(": ")[0] for note in markers] == [str(tmp_path / "a.json"), str(tmp_path / "b.json")]


def test_dumps_of_one_partition_are_one_log_unless_they_repeat_a_segment() -> None:
    def read(*made: tuple[int | None, int | None]) -> list[tuple[int | None, list[int | None]]]:
        """Partition and base offset of each dump → the logs, with those of their segments."""
        dumps = Dumps(None)
        dumps._logs = [PartitionLog(number, (Segment("x", base, b""),)) for number, base in made]
        return [(log.offsets_partition, [one.base_offset for one in log.segments]) for log in dumps.logs(7)]

    assert read((3, 5), (3, 0), (4, 5), (3, 9)) == [(3, [0, 5, 9]), (4, [5])]
    assert read((3, 1), (3, 0)) == [(3, [0, 1])]
    assert read((3, 0), (3, 0)) == [(3, [0]), (3, [0])]
    assert read((3, 0), (3, None), (3, None)) == [(3, [0]), (3, [None]), (3, [None])]
    assert read((None, 0), (7, 2)) == [(7, [0, 2])]
