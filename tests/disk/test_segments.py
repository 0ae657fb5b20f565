import pytest

from offsets_log.disk.reader import open_logs
from offsets_log.disk.segments import next_offset
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from tests.disk.logs import batch, name, names, offsets, partition, segment


def opened(directory, *files):
    """Return names of the segments read, and notes."""
    with open_logs([str(directory / file) for file in files] or [str(directory)]) as disk:
        (log,) = disk.logs
        return names(log), list(log.notes)


PLAIN = {name(0): segment(0, 1), name(2): segment(2, 3), name(4): segment(4)}


# --------------------------------------------------------------------------------------- records:L2


def test_select_deleted_files_are_ignored_silently(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(9, ".deleted"): segment(9), f"{0:020}.index.deleted": b""})
    assert opened(directory) == ([name(0), name(2), name(4)], [])


def test_select_no_index_is_read(tmp_path):
    """An index is never read, whatever its contents and length (``records:L3``)."""
    directory = partition(tmp_path, 0, PLAIN | {f"{0:020}.index": b"\xff" * 17, f"{4:020}.index": bytes(1 << 16)})
    assert opened(directory) == ([name(0), name(2), name(4)], [])


def test_select_cleaned_files_are_dropped(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(0, ".cleaned"): segment(0)})
    assert opened(directory) == ([name(0), name(2), name(4)], [])


def test_select_complete_swap_replaces_segments_up_to_its_end(tmp_path):
    """A complete swap replaces the segments up to its end (``CL-46``)."""
    directory = partition(tmp_path, 0, PLAIN | {name(0, ".swap"): segment(1, 3)})
    read, notes = opened(directory)
    assert read == [name(0, ".swap"), name(4)]
    assert f"{name(0)}, {name(2)}" in notes[-1]


def test_select_several_swaps_replace_all_between(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(0, ".swap"): segment(1), name(4, ".swap"): segment(4)})
    assert opened(directory)[0] == [name(0, ".swap"), name(4, ".swap")]


def test_select_swap_from_cleaned_offset_on_is_dropped(tmp_path):
    """A swap at or after the cleaned offset is dropped (``records:L2``)."""
    files = PLAIN | {name(0, ".swap"): segment(1), f"{2:020}.index.cleaned": b"", name(2, ".swap"): segment(3)}
    read, notes = opened(partition(tmp_path, 0, files))
    assert read == [name(0, ".swap"), name(2), name(4)]
    assert f"{name(2, '.swap')} is left out" in notes[0]


def test_select_swap_and_cleaned_of_same_base_leaves_plain(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(0, ".swap"): segment(3), name(0, ".cleaned"): b""})
    read, notes = opened(directory)
    assert read == [name(0), name(2), name(4)]
    assert len(notes) == 1


def test_select_swap_ends_at_its_last_whole_batch(tmp_path):
    torn = segment(0, 1) + batch(2, 9)[:-5]
    assert opened(partition(tmp_path, 0, PLAIN | {name(0, ".swap"): torn}))[0] == [name(0, ".swap"), name(2), name(4)]


def test_select_empty_swap_replaces_its_own_name_only(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(2, ".swap"): b""})
    assert opened(directory)[0] == [name(0), name(2, ".swap"), name(4)]


def test_select_swap_alone_is_the_log(tmp_path):
    read, notes = opened(partition(tmp_path, 0, {name(0, ".swap"): segment(0)}))
    assert read == [name(0, ".swap")]
    assert "no other file" in notes[-1]


@pytest.mark.parametrize("suffix", [".deleted", ".swap", ".cleaned"])
def test_select_named_suffix_file_is_read(tmp_path, suffix):
    directory = partition(tmp_path, 0, PLAIN | {name(0, suffix): segment(0)})
    assert opened(directory, name(0, suffix)) == ([name(0, suffix)], [])


def test_select_named_deleted_file_is_read_unless_covered(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(0, ".deleted"): segment(0, 1), name(5, ".deleted"): segment(5)})
    read, notes = opened(directory, "*")
    assert read == [name(0), name(2), name(4), name(5, ".deleted")]
    assert len(notes) == 1
    assert f"{name(0, '.deleted')} is left out" in notes[0]


def test_select_directory_and_its_deleted_file_reads_both(tmp_path):
    directory = partition(tmp_path, 0, PLAIN | {name(5, ".deleted"): segment(5)})
    with open_logs([str(directory), str(directory / name(5, ".deleted"))]) as disk:
        assert offsets(disk.logs[0]) == [0, 1, 2, 3, 4, 5]


def test_select_packed_twin_is_left_out_with_note(tmp_path):
    directory = partition(tmp_path, 0, {name(0): segment(0), name(0, ".gz"): b"not even opened"})
    read, notes = opened(directory)
    assert read == [name(0)]
    assert "same segment" in notes[0]


# --------------------------------------------------------------------------------------- headers


def legacy(offset, magic):
    return build_batch([Record(offset=offset, timestamp_ms=1, key=b"k", value=b"v")], magic=magic)


@pytest.mark.parametrize(
    ("buffer", "expected"),
    [
        (b"", 7),
        (batch(7, 9) + batch(20, 24), 25),
        (legacy(7, 0) + legacy(9, 1), 10),
        (batch(7, 9) + batch(10)[:-1], None),
        (batch(7, 9) + bytes(100), None),
        (batch(7, 9) + b"\xff" * 100, None),
        (batch(7, 9) + bytes(5), None),
        (b"x", None),
        (bytes(8) + b"\x7f\xff\xff\xff" + bytes(4) + b"\x02" + bytes(60), None),
        (bytes(8) + b"\x80\x00\x00\x00" + bytes(4) + b"\x02" + bytes(60), None),
    ],
)
def test_next_offset_headers_lead_to_end_or_none(buffer, expected):
    assert next_offset(buffer, 7) == expected
    assert next_offset(memoryview(buffer), 7) == expected
