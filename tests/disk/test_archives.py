import gzip
import io
import random
import stat
import subprocess
import tarfile
import zipfile
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.disk import packed
from offsets_log.disk.archives import unpack
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import iter_log
from tests.disk.logs import TOPIC_ID, batch, name, names, numbers, offsets, partition, pipe_in, segment
from tests.sizes import examples

PREALLOCATED = bytes(2**20) + b"entry" + bytes(3 << 20)
FILES = {
    f"data/__consumer_offsets-3/{name(0)}": segment(0, 1),
    f"data/__consumer_offsets-3/{name(2)}": segment(2),
    f"data/__consumer_offsets-3/{name(0, '.deleted')}": b"ignored",
    f"data/__consumer_offsets-3/{0:020}.index": PREALLOCATED,
    f"data/__consumer_offsets-12/{name(0)}": segment(0),
    f"data/__consumer_offsets-9.0a1b-delete/{name(0)}": segment(0),
    f"data/orders-0/{name(0)}": segment(0),
    "data/orders-0/partition.metadata": b"version: 0\ntopic_id: " + TOPIC_ID,
    "data/cleaner-offset-checkpoint": b"0\n1\n__consumer_offsets 3 2\n",
}


def make_tar(files, *, format=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def make_zip(files, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return out.getvalue()


def zstd(data):
    return bytes(cramjam.zstd.compress(data))


MAKERS = {
    "a.tar": make_tar,
    "ustar.tar": lambda files: make_tar(files, format=tarfile.USTAR_FORMAT),
    "a.tar.gz": lambda files: gzip.compress(make_tar(files)),
    "a.tgz": lambda files: gzip.compress(make_tar(files, format=tarfile.GNU_FORMAT)),
    "a.tar.zst": lambda files: zstd(make_tar(files)),
    "frames.tzst": lambda files: b"".join(zstd(part) for part in (make_tar(files)[:700], make_tar(files)[700:])),
    "a.zip": make_zip,
    "stored.zip": lambda files: make_zip(files, zipfile.ZIP_STORED),
    "name-says-nothing": lambda files: gzip.compress(make_tar(files)),
}


@pytest.fixture(params=MAKERS)
def archive(request, tmp_path):
    path = tmp_path / request.param
    path.write_bytes(MAKERS[request.param](FILES))
    return path


# --------------------------------------------------------------------------------------- reading


def test_open_logs_archive_gives_what_the_directory_gives(archive):
    with open_logs([str(archive)]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert [offsets(log) for log in disk.logs] == [[0, 1, 2], [0]]
        assert [log.cleaned_until for log in disk.logs] == [2, None]
        assert bytes(disk.logs[0].beside[f"{0:020}.index"]()) == PREALLOCATED
        assert disk.logs[0].segments[0].file == f"{archive}!data/__consumer_offsets-3/{name(0)}"
        assert list(disk.topic_ids.values()) == ["orders"]
        assert len(disk.notes) == 1
        assert "-delete" in disk.notes[0]
        assert disk.files == [str(archive)]


def test_open_logs_archive_from_stdin_is_read(archive, monkeypatch):
    pipe_in(monkeypatch, archive.read_bytes())
    with open_logs(["-"]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert disk.logs[0].segments[0].file == f"-!data/__consumer_offsets-3/{name(0)}"


def test_open_logs_archive_with_filter_reads_one_partition(archive):
    with open_logs([str(archive)], partitions=[12]) as disk:
        assert numbers(disk.logs) == [12]
    with pytest.raises(InputError, match="partitions found: 3, 9, 12"):
        open_logs([str(archive)], partitions=[5])


def test_open_logs_archive_beside_directory_is_a_replica(archive, tmp_path):
    partition(tmp_path / "b", 3, {name(0): segment(0, 1, 2, 3)})
    with open_logs([str(archive), str(tmp_path / "b")]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert offsets(disk.logs[0]) == [0, 1, 2, 3]
        assert any("2 replicas" in note and "it has the same batches where both reach" in note for note in disk.notes)


def test_open_logs_archive_suffix_rules_hold(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(make_tar({f"./__consumer_offsets-1/{n}": s for n, s in (
        (name(0), segment(0)), (name(0, ".swap"), segment(1)), (name(2), segment(2)),
        (f"{2:020}.index.cleaned", b""), (name(2, ".swap"), segment(3)),
    )}))  # fmt: skip
    with open_logs([str(path)]) as disk:
        assert names(disk.logs[0]) == [name(0, ".swap"), name(2)]


def test_open_logs_archive_of_bare_segments_needs_partition(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(make_zip({name(0): segment(0), name(1): segment(1)}))
    with open_logs([str(path)], as_partition=6) as disk:
        assert numbers(disk.logs) == [6]
        assert disk.logs[0].segments[1].file == f"{path}!{name(1)}"


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])
def test_open_logs_packed_segments_are_read(tmp_path, pack):
    suffix = ".gz" if pack is gzip.compress else ".zst"
    directory = partition(tmp_path, 3, {name(0, suffix): pack(segment(0, 1)), name(2): segment(2)})
    dump = tmp_path / f"dump{suffix}"
    dump.write_bytes(pack(segment(7)))
    with open_logs([str(directory)]) as disk, open_logs([str(directory / name(0, suffix)), str(dump)]) as lone:
        assert offsets(disk.logs[0]) == [0, 1, 2]
        assert [(log.offsets_partition, offsets(log)) for log in lone.logs] == [(3, [0, 1]), (None, [7])]


def test_open_logs_archive_links_and_devices_are_ignored(tmp_path):
    out = io.BytesIO()
    path = f"__consumer_offsets-3/{name(0)}"
    with tarfile.open(fileobj=out, mode="w") as archive:
        for at, kind in enumerate((tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)):
            info = tarfile.TarInfo(f"__consumer_offsets-{at}/{name(0)}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("../../" + path)
        info.size = len(segment(0))
        archive.addfile(info, io.BytesIO(segment(0)))
        info = tarfile.TarInfo(f"/__consumer_offsets-8/{name(0)}")
        info.type, info.linkname = tarfile.LNKTYPE, "../../" + path
        archive.addfile(info)
    for file, content in (("a.tar", out.getvalue()), ("a.tar.gz", gzip.compress(out.getvalue()))):
        (tmp_path / file).write_bytes(content)
        with open_logs([str(tmp_path / file)]) as disk:
            assert numbers(disk.logs) == [3, 8]
            assert offsets(disk.logs[1]) == [0]


def test_open_logs_zip_link_is_ignored(tmp_path):
    link = zipfile.ZipInfo(f"__consumer_offsets-1/{name(0)}")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr(f"__consumer_offsets-2/{name(0)}", segment(0))
    with open_logs([str(path)]) as disk:
        assert numbers(disk.logs) == [2]


# --------------------------------------------------------------------------------------- broken and hostile


MANY = range(999)
LARGE = {
    f"data/__consumer_offsets-3/{0:020}.index": PREALLOCATED[1 << 20 :][:30_000],
    f"data/__consumer_offsets-3/{name(0)}": segment(*range(500), value=random.Random(1).randbytes(1000)),
    f"data/__consumer_offsets-4/{name(0)}": b"".join(batch(i, value=random.Random(i).randbytes(500)) for i in MANY),
    f"data/__consumer_offsets-5/{name(0)}": segment(7, 8),
}
WHOLE = {3: list(range(500)), 4: list(MANY), 5: [7, 8]}


@pytest.mark.parametrize("maker", MAKERS)
def test_open_logs_cut_archive_is_read_as_far_as_it_goes(maker, tmp_path):
    path = tmp_path / maker
    content = MAKERS[maker](LARGE)
    end = len(content.rstrip(b"\0")) if path.suffix == ".tar" else len(content)  # a tar's end is padding
    read = []
    for cut in (end * 3 // 10, end // 2, end * 9 // 10, end - 9):
        path.write_bytes(content[:cut])
        with open_logs([str(path)]) as disk:
            (damage,) = disk.damages
            assert (damage.error.file, damage.error.position) == (str(path), cut)
            assert "the archive is broken" in damage.error.problem
            found = {log.offsets_partition: offsets(log) for log in disk.logs}
            assert all(WHOLE[number][: len(have)] == have for number, have in found.items())
            assert len(disk.logs[0].beside[f"{0:020}.index"]()) == 30_000
            read.append(sum(map(len, found.values())))
    assert 0 < read[0] < read[1] < read[2] <= read[3]
    assert read[2] > 1000
    path.write_bytes(content)
    with open_logs([str(path)]) as disk:
        assert {log.offsets_partition: offsets(log) for log in disk.logs} == WHOLE
        assert disk.damages == []


def test_open_logs_archive_cut_before_its_first_segment_is_one_input_error(archive):
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(InputError, match=r"broken|no archive") as caught:
        open_logs([str(archive)])
    assert caught.value.file == str(archive)
    assert "\n" not in str(caught.value)


def test_of_a_cut_member_nothing_but_a_segment_is_taken():
    """Take no part of an index or checkpoint: half of one says something false."""
    for path in (f"__consumer_offsets-3/{0:020}.index", "cleaner-offset-checkpoint"):
        for maker in ("a.tar", "a.tar.gz", "a.zip", "stored.zip"):
            told = []
            content = MAKERS[maker](FILES_BEFORE | {path: random.Random(1).randbytes(100_000)})
            folders = unpack("a", content[:50_000], on_damage=told.append)
            assert [sorted({**folder.files, **folder.beside}) for folder in folders] == [[name(0)]]
            assert len(told) == 1


FILES_BEFORE = {f"__consumer_offsets-3/{name(0)}": segment(0)}


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])
@pytest.mark.parametrize("inside", [False, True], ids=["a file", "in a tar"])
def test_open_logs_cut_packed_segment_is_torn(tmp_path, pack, inside):
    data = LARGE[f"data/__consumer_offsets-4/{name(0)}"]
    packed_data = pack(data)
    cut = packed_data[: len(packed_data) // 2]
    file = name(0, ".gz" if pack is gzip.compress else ".zst")
    directory = partition(tmp_path, 4, {file: cut})
    (tmp_path / "a.tar").write_bytes(make_tar({f"__consumer_offsets-4/{file}": cut}))
    with open_logs([str(tmp_path / "a.tar" if inside else directory)]) as disk:
        (damage,) = disk.damages
        place = f"{tmp_path}/a.tar!__consumer_offsets-4" if inside else directory
        assert damage.error.file == f"{place}/{file}"
        assert damage.error.position == len(cut)
        assert 300 < len(offsets(disk.logs[0])) < 999
        *_, (_, last) = iter_log(disk.logs[0])
        assert last.kind == "torn"


def test_open_logs_tar_with_bad_header_inside_is_read_up_to_it(tmp_path):
    content = bytearray(make_tar(FILES))
    at = content.index(b"data/__consumer_offsets-12")
    content[at + 3] ^= 1
    places = {"a.tar": at, "a.tar.gz": None, "a.tzst": None}
    for file, damaged in (("a.tar", bytes(content)), ("a.tar.gz", gzip.compress(content)), ("a.tzst", zstd(content))):
        (tmp_path / file).write_bytes(damaged)
        with open_logs([str(tmp_path / file)]) as disk:
            (damage,) = disk.damages
            assert "bad checksum" in damage.error.problem
            assert places[file] is None or damage.error.position == places[file] + 512
            assert numbers(disk.logs) == [3]
            assert offsets(disk.logs[0]) == [0, 1, 2]


def test_open_logs_tar_without_end_is_told(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(make_tar({"__consumer_offsets-3/" + name(0): bytes(512)})[: 512 + 512])
    with open_logs([str(path)]) as disk:
        assert [damage.error.position for damage in disk.damages] == [1024]


def test_open_logs_zip_with_a_damaged_member_has_the_others(tmp_path):
    content = bytearray(MAKERS["stored.zip"](FILES))
    content[content.index(segment(2)) + 20] ^= 1
    (tmp_path / "a.zip").write_bytes(content)
    with open_logs([str(tmp_path / "a.zip")]) as disk:
        assert len(disk.damages) == 1
        assert name(2) in str(disk.damages[0].error)
        assert offsets(disk.logs[0]) == [0, 1]


def test_zip_without_a_directory_whose_sizes_follow_the_members():
    """Read a zip as it is written into a pipe."""

    class Pipe(io.RawIOBase):
        def __init__(self):
            self.content = b""

        def writable(self):
            return True

        def write(self, data):
            self.content += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in LARGE.items():
            archive.writestr(path, content)
    cut = pipe.content.index(b"PK\1\2")
    told = []
    folders = unpack("a.zip", pipe.content[:cut], on_damage=told.append)
    assert {folder.name: list(folder.files) for folder in folders} == {
        f"__consumer_offsets-{number}": [name(0)] for number in WHOLE
    }
    assert bytes(folders[1].files[name(0)]()) == LARGE[f"data/__consumer_offsets-4/{name(0)}"]
    assert [damage.error.position for damage in told] == [cut]


def test_of_a_zip_without_a_directory_nothing_is_taken_behind_what_is_no_member():
    content = make_zip(FILES, zipfile.ZIP_STORED)
    cut = content.index(b"PK\1\2")
    second = content.index(b"PK\3\4", 4)
    told = []
    folders = unpack("a.zip", content[:second] + b"none" + content[second:cut], on_damage=told.append)
    assert [list(folder.files) for folder in folders] == [[name(0)]]
    assert len(told) == 1


@pytest.mark.parametrize("file", ["a.tar", "a.tar.gz", "a.zip", "x.log.zst", "a.tar.xz"])
@pytest.mark.parametrize("content", [b"", bytes(10240), b"\0garbage" * 100])
def test_open_logs_archive_name_over_other_bytes_is_refused(tmp_path, file, content):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match="no archive we read"):
        open_logs([str(tmp_path / file)])


def test_open_logs_archive_under_segment_name_is_refused(tmp_path):
    directory = partition(tmp_path, 1, {name(0, ".gz"): gzip.compress(make_tar(FILES))})
    with pytest.raises(InputError, match="under the name of a segment"):
        open_logs([str(directory)])


def test_open_logs_encrypted_zip_is_refused(tmp_path):
    content = bytearray(make_zip({f"__consumer_offsets-1/{name(0)}": segment(0)}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="encrypted"):
        open_logs([str(tmp_path / "a.zip")])


BOMBS = [("a.tar.gz", "MAX_MEMBER_BYTES"), ("a.zip", "MAX_MEMBER_BYTES")] + [
    (maker, limit) for maker in ("a.tar.gz", "a.tar.zst", "a.zip") for limit in ("MAX_UNPACKED_BYTES", "FREE_BYTES")
]


@pytest.mark.parametrize(("maker", "limit"), BOMBS)
def test_unpack_bomb_is_refused(monkeypatch, maker, limit):
    monkeypatch.setattr(packed, limit, 1 << 20)
    if limit == "FREE_BYTES":
        monkeypatch.setattr(packed, "MAX_RATIO", 10)
    content = MAKERS[maker]({f"__consumer_offsets-1/{name(0)}": bytes(8 << 20)})
    with pytest.raises(InputError, match="too many bytes") as caught:
        unpack("bomb", content)
    assert caught.value.file == "bomb"


def test_unpack_huge_tar_header_is_refused():
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    with pytest.raises(InputError, match="a header of 8589934592 bytes"):
        unpack("a.tar.gz", gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)))


@pytest.mark.parametrize("topic", ["__consumer_offsets", "orders"])
def test_unpack_sparse_member_has_its_holes(tmp_path, topic):
    content = segment(0) + bytes(1 << 20)
    source = tmp_path / f"{topic}-1"
    source.mkdir()
    with (source / name(0)).open("wb") as file:
        file.write(segment(0))
        file.truncate(len(content))
    subprocess.run(["tar", "-C", tmp_path, "-S", "-cf", tmp_path / "a.tar", source.name], check=True)
    assert (tmp_path / "a.tar").stat().st_size < 1 << 20
    for file, pack in (("a.tar", bytes), ("a.tar.gz", gzip.compress)):
        (folder,) = unpack(file, pack((tmp_path / "a.tar").read_bytes()))
        data = bytes(folder.files[name(0)]())
        assert data == (content if topic == "__consumer_offsets" else content[: len(data)])
        assert data.startswith(segment(0))


@examples(300)
@given(st.sampled_from(sorted(MAKERS)), st.data())
def test_unpack_mutated_archive_gives_folders_or_input_error(maker, data):
    content = bytearray(MAKERS[maker](FILES))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))]
    told = []
    with suppress(InputError):
        found = unpack(maker, bytes(content), on_damage=data.draw(st.sampled_from([None, told.append])))
        folders = found if isinstance(found, list) else []
        assert all(len(read()) >= 0 for folder in folders for read in folder.files.values())
