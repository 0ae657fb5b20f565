"""Opening files: their bytes, what cannot be opened, pipes."""

import gzip
import io
import os
import resource
import tarfile
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from offsets_log.disk import local
from offsets_log.disk.archives import unpack
from offsets_log.disk.local import open_pieces
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from tests.disk.logs import batch, name, numbers, offsets, partition, pipe_in, segment


def test_open_logs_empty_file_gives_empty_buffer(tmp_path):
    directory = partition(tmp_path, 1, {name(0): b""})
    with open_logs([str(directory)]) as disk:
        assert disk.logs[0].segments[0].buffer == b""


def test_open_logs_growing_file_keeps_length_at_opening(data):
    file = data / "__consumer_offsets-12" / name(0)
    with open_logs([str(data)]) as disk:
        with file.open("ab") as active:
            active.write(segment(1))
        assert offsets(disk.logs[1]) == [0]


def test_open_logs_buffers_are_read_only(data):
    with open_logs([str(data)]) as disk:
        assert memoryview(disk.logs[0].segments[0].buffer).readonly


def test_close_view_still_held_keeps_the_bytes(data):
    with open_logs([str(data)]) as disk:
        held = memoryview(disk.logs[1].segments[0].buffer)[:]
    assert bytes(held) == segment(0)


def test_open_logs_vanishing_file_names_it(data, monkeypatch):
    file = data / "__consumer_offsets-3" / name(2)
    real_open = Path.open

    def open_later(path, *args, **kwargs):
        file.unlink(missing_ok=True)
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", open_later)
    with pytest.raises(InputError, match="No such file") as caught:
        open_logs([str(data)])
    assert caught.value.file == str(file)


def test_open_logs_forbidden_file_names_reason(data, monkeypatch):
    def refuse(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError) as caught:
        open_logs([str(data)])
    problem = "cannot be read: Permission denied: run this as a user who may read it"
    assert str(caught.value) == f"{data}/__consumer_offsets-12/{name(0)}: {problem}"


def forbid(monkeypatch, directory):
    """Let directories of a name not be listed."""
    real_scandir = os.scandir

    def refuse(path):
        if Path(path).name == directory:
            raise PermissionError(13, "Permission denied")
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)


def test_open_logs_forbidden_directory_is_noted_beside_others(tmp_path, monkeypatch):
    partition(tmp_path / "a", 1, {name(0): segment(0)})
    (tmp_path / "lost+found").mkdir()
    forbid(monkeypatch, "lost+found")
    with open_logs([str(tmp_path)]) as disk:
        assert numbers(disk.logs) == [1]
        assert "lost+found" in disk.notes[0]


def test_open_logs_forbidden_partition_is_an_error(data, monkeypatch):
    """A forbidden partition may hold what is asked for, so nothing is read without it."""
    forbid(monkeypatch, "__consumer_offsets-12")
    with pytest.raises(InputError, match="__consumer_offsets-12: cannot be read: Permission denied"):
        open_logs([str(data)])


def test_another_topic_that_cannot_be_listed_is_not_said_to_be_there(tmp_path, monkeypatch):
    for topic in ("orders", "payments"):
        (tmp_path / f"{topic}-0").mkdir()
        (tmp_path / f"{topic}-0" / name(0)).write_bytes(segment(0))
    forbid(monkeypatch, "orders-0")
    with pytest.raises(InputError, match=r"other topics only \(payments\)"):
        open_logs([str(tmp_path)])


def test_what_may_not_be_looked_at_is_no_file(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert local.is_file(tmp_path / "file")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert not local.is_file(tmp_path / "file")


def test_a_pipe_has_no_hole_at_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=(b"data" + bytes(9),))
    writer.start()
    with ExitStack() as stack:
        buffer, zeros = local.map_data(tmp_path / "pipe", stack)
        assert (bytes(buffer), zeros) == (b"data" + bytes(9), 0)
    writer.join()


@pytest.mark.parametrize("path", ["missing", "missing*", "", "a\0b", "loop", "dangling"])
def test_open_logs_bad_path_is_input_error(tmp_path, monkeypatch, path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        open_logs([path])


def test_what_the_system_refuses_without_a_number_is_told_in_its_words(tmp_path):
    for opens in (open_pieces, lambda path: local.map_file(Path(path), ExitStack())):
        with pytest.raises(InputError) as caught:
            opens(f"{tmp_path}/a\0b")
        assert str(caught.value) == f"{tmp_path}/a\0b: cannot be read: embedded null byte"


@pytest.mark.parametrize(
    ("path", "words"),
    [("missing", "no such file or directory"), *((path, "no file matches") for path in ("a*", "a?", "a[b]", "*?[b]"))],
)
def test_expand_of_nothing_says_whether_a_file_or_a_pattern_was_named(tmp_path, path, words):
    with pytest.raises(InputError) as caught:
        local.expand(str(tmp_path / path))
    assert str(caught.value) == f"{tmp_path / path}: {words}"


@pytest.mark.parametrize("files", [{}, {f"{0:020}.index": b"", name(0, ".deleted"): segment(0)}])
def test_open_logs_without_segments_says_what_to_try(tmp_path, files):
    directory = partition(tmp_path, 1, files)
    with pytest.raises(InputError, match=r"__consumer_offsets-N .* Give a broker's data directory"):
        open_logs([str(directory)])


def test_open_logs_no_path_is_input_error():
    with pytest.raises(InputError, match="no path at all"):
        open_logs([])


def test_open_logs_more_files_than_allowed_raises_the_limit(tmp_path):
    directory = partition(tmp_path, 1, {name(at): segment(at) for at in range(40)})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 20, hard))
    try:
        with open_logs([str(directory)]) as disk:
            assert offsets(disk.logs[0]) == list(range(40))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_open_pieces_that_cannot_leaves_the_limit_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "setrlimit", lambda *what: pytest.fail("the limit was changed"))
    with pytest.raises(InputError):
        open_pieces(str(tmp_path / "missing"))
    with pytest.raises(InputError, match="no regular file"):
        open_pieces(str(tmp_path))


# --------------------------------------------------------------------------------------- pipes


def test_open_logs_stdin_segment_is_read(monkeypatch):
    pipe_in(monkeypatch, segment(0, 1))
    with open_logs(["-", "-"], as_partition=2) as disk:
        assert numbers(disk.logs) == [2]
        assert offsets(disk.logs[0]) == [0, 1]
        assert disk.logs[0].segments[0].file == "-"


def test_open_logs_stdin_empty_is_an_error(monkeypatch):
    """A failed command at the other end of the pipe must not look like a cluster without groups."""
    pipe_in(monkeypatch, b"")
    with pytest.raises(InputError, match="it is empty"):
        open_logs(["-"])


def test_open_logs_links_to_nothing_are_told(tmp_path):
    directory = partition(tmp_path, 3, {name(0): segment(0)})
    (directory / name(5)).symlink_to(tmp_path / "gone")
    (tmp_path / "__consumer_offsets-4").symlink_to(tmp_path / "gone")
    with open_logs([str(tmp_path)]) as disk:
        assert offsets(disk.logs[0]) == [0]
        assert len([note for note in disk.notes if "leads to no" in note]) == 2


def test_open_logs_links_in_a_circle_are_one_message(tmp_path):
    partition(tmp_path, 3, {name(0): segment(0)})
    for link, to in (("a", "b"), ("b", "c"), ("c", "a"), ("__consumer_offsets-4", "__consumer_offsets-4")):
        (tmp_path / link).symlink_to(to)
    with open_logs([str(tmp_path)]) as disk:
        assert offsets(disk.logs[0]) == [0]
        (note,) = disk.notes
        assert "a, " in note
        assert note.endswith("and 1 more: left out, these links lead in a circle")


@pytest.mark.parametrize("to", [".", "../.."])
def test_open_logs_link_to_a_directory_above_is_one_message(tmp_path, to):
    log = tmp_path / "a" / "b"
    partition(log, 3, {name(0): segment(0)})
    (tmp_path / "a" / "loop").symlink_to(to)
    with open_logs([str(tmp_path)]) as disk:
        assert [offsets(one) for one in disk.logs] == [[0]]
        assert [note for note in disk.notes if "loop" in note] == [
            f"{tmp_path}/a/loop is left out: it leads back to a directory that it lies in"
        ]


def test_open_logs_path_that_is_not_utf8_is_shown_as_text(tmp_path):
    directory = partition(tmp_path / os.fsdecode(b"caf\xe9"), 3, {name(0): segment(0)})
    with open_logs([str(directory)]) as disk:
        assert "caf\ufffd" in disk.logs[0].segments[0].file


def test_open_logs_lone_files_that_follow_each_other_are_one_log(tmp_path):
    for first, second in (((0, 1), (3, 4)), ((0, 1), (2, 3))):
        (tmp_path / "second.bin").write_bytes(segment(*second))
        (tmp_path / "first.bin").write_bytes(segment(*first))
        with open_logs([str(tmp_path / "second.bin"), str(tmp_path / "first.bin")], as_partition=3) as disk:
            (log,) = disk.logs
            assert offsets(log) == [*first, *second]


def test_open_logs_packed_segments_in_an_archive_are_read(tmp_path):
    packed = tmp_path / "backup.tar"
    with tarfile.open(packed, "w") as archive:
        data = gzip.compress(segment(0, 1))
        info = tarfile.TarInfo(f"__consumer_offsets-3/{name(0)}.gz")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    with open_logs([str(packed)]) as disk:
        assert offsets(disk.logs[0]) == [0, 1]


def test_open_logs_named_pipe_is_read_to_its_end(tmp_path):
    reader, writer = os.pipe()
    try:
        os.write(writer, batch(0, 3))
        os.close(writer)
        with open_logs([f"/dev/fd/{reader}"]) as disk:
            assert offsets(disk.logs[0]) == [0]
    finally:
        os.close(reader)


def test_pieces_of_a_file_are_those_that_are_asked_for(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    with open_pieces(str(tmp_path / "file")) as (size_bytes, read_at):
        assert size_bytes == 10
        assert [read_at(*asked) for asked in ((0, 3), (8, 5), (10, 1), (4, 0))] == [b"012", b"89", b"", b""]
    with pytest.raises(InputError, match="Bad file descriptor"):
        read_at(0, 1)
    with open_pieces(str(tmp_path / "none"), is_optional=True) as (size_bytes, read_at):
        assert (size_bytes, read_at(0, 5)) == (0, b"")
    with pytest.raises(InputError, match="No such file"):
        open_pieces(str(tmp_path / "none"))
    for is_optional in (True, False):
        with pytest.raises(InputError, match="no regular file"):
            open_pieces(str(tmp_path), is_optional=is_optional)


@pytest.mark.parametrize("path", ["file/below", "loop", "a\0b"])
def test_a_file_that_need_not_be_there_is_refused_for_any_other_reason(tmp_path, path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="cannot be read"):
        open_pieces(str(tmp_path / path), is_optional=True)


def test_what_was_mapped_is_given_back_when_it_is_closed(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    with ExitStack() as stack:
        buffer = local.map_file(tmp_path / "file", stack)
        assert buffer == b"data"
    with pytest.raises(ValueError, match="released"):
        bytes(buffer)


def test_a_broken_checkpoint_is_told_of_once_for_all_partitions_below_it(tmp_path):
    for place in ("one", "other"):
        for number in (3, 4):
            partition(tmp_path / place, number, {name(0): segment(0)})
        (tmp_path / place / "log-start-offset-checkpoint").write_bytes(b"1")
    with open_logs([str(tmp_path)]) as disk:
        broken = [note for note in disk.notes if "is broken and says nothing" in note]
    assert [note.partition("/log-start")[0] for note in broken] == [f"{tmp_path}/one", f"{tmp_path}/other"]


@pytest.mark.parametrize("extents", [[], [(0, 1)], [(1, 2)], [(0, 1), (3, 1)], [(0, 4)]])
def test_the_hole_at_the_end_of_a_file_is_not_mapped(tmp_path, monkeypatch, extents):
    """As far as its file system tells; what is before the last written byte always is."""
    monkeypatch.setattr(local, "HOLE_KEPT_BYTES", 5)
    block, blocks = 1 << 16, 8
    with (tmp_path / "file").open("wb") as file:
        file.truncate(blocks * block)
        for at, count in extents:
            file.seek(at * block)
            file.write(b"x" * (count * block))
    end = max((at + count for at, count in extents), default=0) * block
    with ExitStack() as stack, (tmp_path / "file").open("rb") as file:
        assert local.end_of_data(file.fileno(), blocks * block) == end
        buffer, zeros = local.map_data(tmp_path / "file", stack)
        assert (len(buffer), zeros) == (end + 5, blocks * block - end - 5)
        assert bytes(buffer) == (tmp_path / "file").read_bytes()[: end + 5]
        assert len(local.map_file(tmp_path / "file", stack)) == blocks * block


def test_when_a_file_was_written_is_told_in_milliseconds(tmp_path):
    (tmp_path / "file").touch()
    os.utime(tmp_path / "file", ns=(0, 1_700_000_000_123_999_999))
    assert local.modified_ms(tmp_path / "file") == 1_700_000_000_123
    with pytest.raises(InputError, match="No such file"):
        local.modified_ms(tmp_path / "none")


@pytest.mark.parametrize("seconds", [0, 1, 1_700_000_000.25, 1 << 33, -1, (1 << 33) + 1])
def test_a_tar_tells_when_its_files_were_written(seconds):
    """Times that no file system has are not believed."""
    info = tarfile.TarInfo(f"__consumer_offsets-1/{name(0)}")
    info.size, info.mtime = len(segment(0)), seconds
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(info, io.BytesIO(segment(0)))
    (folder,) = unpack("a.tar", out.getvalue())
    assert folder.modified_ms == ({name(0): int(seconds * 1000)} if 0 <= seconds <= 1 << 33 else {})


@pytest.mark.parametrize(
    ("paths", "is_chosen"),
    [
        (["__consumer_offsets-0"], False),
        (["__consumer_offsets-0/0.log"], True),
        (["__consumer_offsets-0/0.log", "__consumer_offsets-0/2.log"], False),
        (["backup"], False),
        (["backup/0.log"], True),
    ],
)
def test_of_files_that_are_named_nothing_is_missing_unless_they_are_all(paths, is_chosen, tmp_path):
    """Whether they are all is not known of a directory that tells no partition."""
    partition(tmp_path, 0, {name(0): segment(0, 1), name(2): segment(2)})
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / name(0)).write_bytes(segment(0))
    named = [path.replace("0.log", name(0)).replace("2.log", name(2)) for path in paths]
    with open_logs([str(tmp_path / path) for path in named]) as disk:
        assert [log.selection is not None for log in disk.logs] == [is_chosen]


def test_a_file_that_is_named_is_a_choice_where_the_others_cannot_be_listed(data, monkeypatch):
    named = data / "__consumer_offsets-12" / name(0)
    for is_forbidden in (False, True):
        if is_forbidden:
            forbid(monkeypatch, "__consumer_offsets-12")
        with open_logs([str(named)]) as disk:
            assert [log.selection is not None for log in disk.logs] == [is_forbidden]


def test_a_segment_that_is_a_link_to_what_no_rule_looks_at_is_told(tmp_path):
    with tarfile.open(tmp_path / "a.tar", mode="w") as archive:
        info = tarfile.TarInfo(f"__consumer_offsets-3/{name(0)}")
        info.type, info.linkname = tarfile.LNKTYPE, "snapshots/1.bin"
        archive.addfile(info)
    with pytest.raises(InputError, match=r"is a link to snapshots/1.bin"), open_logs([str(tmp_path / "a.tar")]):
        pass
