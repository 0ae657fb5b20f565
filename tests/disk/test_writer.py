import errno
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from offsets_log.disk import folders
from offsets_log.disk.folders import DiskPlace
from offsets_log.disk.writer import atomic_directory, atomic_output, ensure_place, left_beside, output_errors
from offsets_log.errors import OutputError


def listing(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def test_atomic_output_well_ended_appears_with_usual_mode(tmp_path):
    target = tmp_path / "out.json"
    with atomic_output(target) as file:
        file.write(b"first")
        assert not target.exists()
    with atomic_output(str(target)) as file:
        file.write(b"second")
        assert target.read_bytes() == b"first"
    (tmp_path / "plain").touch()
    assert target.read_bytes() == b"second"
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert listing(tmp_path) == ["out.json", "plain"]


def test_atomic_output_is_synced_before_rename(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append("sync"))
    real_replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: steps.append("rename") or real_replace(path, to))
    with atomic_output(tmp_path / "out") as file:
        file.write(b"x")
    assert steps == ["sync", "rename", "sync"]


def test_atomic_output_closed_by_the_writer_appears(tmp_path):
    with atomic_output(tmp_path / "out") as file:
        file.write(b"x")
        file.close()
    assert (tmp_path / "out").read_bytes() == b"x"


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt()])
def test_atomic_output_failing_block_leaves_the_old_file(tmp_path, error):
    (tmp_path / "out").write_bytes(b"old")

    def write_half():
        with atomic_output(tmp_path / "out") as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert listing(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_atomic_output_full_disk_is_output_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught, atomic_output(tmp_path / "out") as file:
        file.write(b"x")
    assert str(caught.value) == f"{tmp_path}/out: cannot be written: No space left on device"
    assert listing(tmp_path) == []


def test_atomic_output_really_full_device_is_output_error(tmp_path, monkeypatch):
    monkeypatch.setattr("offsets_log.disk.writer._beside", lambda target: Path("/dev/full"))
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok: None)
    real_open = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode: real_open(path, mode.replace("x", "w")))
    with pytest.raises(OutputError, match="No space left on device"), atomic_output(tmp_path / "out") as file:
        file.write(b"x" * 100_000)


def test_atomic_output_without_sync_of_directories_goes_on(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with atomic_output(tmp_path / "out") as file:
        file.write(b"x")
    assert (tmp_path / "out").read_bytes() == b"x"


def test_atomic_output_missing_directory_is_output_error(tmp_path):
    with (
        pytest.raises(OutputError, match=r"No such file or directory: there is no directory .*/no, make it first"),
        atomic_output(tmp_path / "no" / "out"),
    ):
        raise AssertionError


def test_a_file_that_is_missing_in_a_directory_that_is_there_needs_no_directory(tmp_path):
    with (
        pytest.raises(OutputError, match=r"cannot be written: No such file or directory$"),
        output_errors(tmp_path / "out"),
    ):
        (tmp_path / "no" / "other").read_bytes()


def test_atomic_output_broken_pipe_inside_stays_one(tmp_path):
    with pytest.raises(BrokenPipeError), atomic_output(tmp_path / "out"):
        raise BrokenPipeError
    assert listing(tmp_path) == []


def test_atomic_output_over_input_is_refused(tmp_path, monkeypatch):
    (tmp_path / "in.log").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("in.log")
    monkeypatch.chdir(tmp_path)
    for path in ("in.log", "link", str(tmp_path / "in.log")):
        with pytest.raises(OutputError, match="one of the inputs"), atomic_output(path, inputs=["link"]):
            raise AssertionError
    assert (tmp_path / "in.log").read_bytes() == b"precious"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_atomic_output_over_no_regular_file_is_refused(tmp_path, make):
    make(tmp_path / "out")
    with pytest.raises(OutputError, match="no regular file"), atomic_output(tmp_path / "out"):
        raise AssertionError


def test_atomic_output_through_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with atomic_output(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("exists", [False, True])
def test_atomic_directory_well_ended_appears_whole(tmp_path, exists):
    target = tmp_path / "out"
    if exists:
        target.mkdir()
    with atomic_directory(target) as made:
        (made / "below").mkdir()
        (made / "below" / "x.csv").write_bytes(b"x")
        assert made.parent == tmp_path
        assert not target.exists() or listing(target) == []
    assert listing(tmp_path) == ["out", "out/below", "out/below/x.csv"]


def test_atomic_directory_is_synced_with_its_files_before_rename_and_its_place_after(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append(os.fstat(descriptor).st_ino))
    real_replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: steps.append("rename") or real_replace(path, to))
    with atomic_directory(tmp_path / "out") as made:
        (made / "below").mkdir()
        (made / "below" / "x.csv").write_bytes(b"x")
    *before, rename, behind = steps
    out = tmp_path / "out"
    assert sorted(before) == sorted(path.stat().st_ino for path in (out, out / "below", out / "below" / "x.csv"))
    assert (rename, behind) == ("rename", tmp_path.stat().st_ino)


def test_atomic_directory_that_its_block_removes_is_not_made(tmp_path):
    with atomic_directory(tmp_path / "out") as made:
        made.rmdir()
    assert list(tmp_path.iterdir()) == []


def test_atomic_directory_failing_block_leaves_nothing(tmp_path):
    def make_half():
        with atomic_directory(tmp_path / "out") as made:
            (made / "x").write_bytes(b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_half()
    assert listing(tmp_path) == []


def test_atomic_directory_not_empty_or_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(OutputError, match="not an empty directory"), atomic_directory(path):
            raise AssertionError
    assert listing(tmp_path) == ["file"]


def test_atomic_directory_of_many_files_syncs_each_once_and_leaves_none_open(tmp_path, monkeypatch):
    """Where the system takes no advice, too."""

    def refuse(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    def open_below() -> list[str]:
        open_files = [str(number.readlink()) for number in Path("/proc/self/fd").iterdir() if os.path.lexists(number)]
        return [name for name in open_files if name.startswith(str(tmp_path))]

    names = [f"{number}.log" for number in range(40)]
    for advises in (True, False):
        synced = []
        monkeypatch.setattr(os, "fsync", lambda descriptor, seen=synced: seen.append(os.fstat(descriptor).st_ino))
        if not advises:
            monkeypatch.setattr(os, "posix_fadvise", refuse)
        with atomic_directory(tmp_path / str(advises)) as made:
            for name in names:
                (made / name).touch()
        below = [path.stat().st_ino for path in (tmp_path / str(advises)).iterdir()]
        assert sorted(synced) == sorted([*below, (tmp_path / str(advises)).stat().st_ino, tmp_path.stat().st_ino])
        assert not open_below()


def test_a_place_is_refused_at_once_where_it_would_be_in_the_end(tmp_path, monkeypatch):
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    for free in ("empty", "file", "new"):
        ensure_place(tmp_path / free, [tmp_path / "full" / "x"])
    with pytest.raises(OutputError, match="one of the inputs"):
        ensure_place(tmp_path / "file", [tmp_path / "file"])
    with pytest.raises(OutputError, match="not an empty directory"):
        ensure_place(tmp_path / "full")
    with pytest.raises(OutputError, match=r"No such file or directory: there is no directory .*/no, make it first"):
        ensure_place(tmp_path / "no" / "out")
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    with pytest.raises(OutputError, match="Permission denied"):
        ensure_place(tmp_path / "new")
    assert asked == [(tmp_path, os.W_OK | os.X_OK)]


def test_left_beside_names_what_a_killed_run_left_of_this_output(tmp_path):
    """Names of ours for that output alone, and for one whose name is as long as it may be."""
    long = "x" * 255
    for target in ("out.json", long):
        (tmp_path / f".{target[:200]}.0123abcd.tmp").touch()
    for other in (".out.json.0123abcd", ".out.json.0123ABCD.tmp", ".out.json.0123abc.tmp", ".outXjson.0123abcd.tmp"):
        (tmp_path / other).touch()
    assert left_beside(tmp_path / "out.json") == [tmp_path / ".out.json.0123abcd.tmp"]
    assert left_beside(tmp_path / long) == [tmp_path / f".{long[:200]}.0123abcd.tmp"]
    assert left_beside(tmp_path / "none") == left_beside(tmp_path / "no" / "out") == []


@pytest.mark.parametrize("made", [atomic_output, atomic_directory])
def test_left_beside_names_what_is_being_written(made, tmp_path):
    with made(tmp_path / "out"):
        assert [str(found) for found in left_beside(tmp_path / "out")] == [str(tmp_path / listing(tmp_path)[0])]
    assert left_beside(tmp_path / "out") == []


@pytest.mark.parametrize("modified_ms", [None, 1_700_000_000_123])
def test_write_file_joins_pieces_under_a_new_name_with_their_time(tmp_path, monkeypatch, modified_ms):
    monkeypatch.setattr(folders, "WRITTEN_AT_ONCE", 3)
    place = DiskPlace(str(tmp_path))
    place.write("below/x", [b"abcdefg", b"", memoryview(b"h")], modified_ms)
    place.write("y", [], modified_ms)
    assert (tmp_path / "below" / "x").read_bytes() == b"abcdefgh"
    assert (tmp_path / "y").read_bytes() == b""
    if modified_ms is not None:
        assert (tmp_path / "y").stat().st_mtime_ns == modified_ms * 1_000_000
    with pytest.raises(FileExistsError):
        place.write("y", [b"again"])


@pytest.mark.parametrize(
    ("target", "given", "is_refused"),
    [
        ("data/out", "data", True),
        ("data", "data", True),
        ("out", "data", False),
        ("database", "data", False),
        ("data/__consumer_offsets-1/out", "data/__consumer_offsets-1/x.log", True),
        ("data/out", "data/__consumer_offsets-1/x.log", True),
        ("copy/__consumer_offsets-1/out", "copy/__consumer_offsets-1/x.log", True),
        ("copy/out", "copy/__consumer_offsets-1/x.log", False),
        ("own/out", "own/x.log", False),
        ("own/x.log", "own/x.log", False),
    ],
)
def test_an_output_inside_of_inputs_is_refused(tmp_path, target, given, is_refused):
    """Inside of a directory that was named, of a partition's, or of the data directory around that; a file is none."""
    for folder in ("data/__consumer_offsets-1", "copy/__consumer_offsets-1", "own"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.log").touch()
    (tmp_path / "data" / "meta.properties").touch()
    files = [str(tmp_path / given)] if given.endswith(".log") else []
    with pytest.raises(OutputError, match="which is an input") if is_refused else nullcontext():
        folders.refuse_inside_inputs(str(tmp_path / target), [str(tmp_path / given)], files)


def test_a_file_where_a_directory_should_be_is_no_directory_to_make(tmp_path):
    (tmp_path / "file").touch()
    for below in ("x", "x/y"):
        with (
            pytest.raises(OutputError, match=r"cannot be written: Not a directory$"),
            output_errors(tmp_path / "file" / below),
        ):
            (tmp_path / "file" / below).write_text("")
