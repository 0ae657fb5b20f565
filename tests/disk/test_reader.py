import base64
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from offsets_log.disk.folder import DirectoryName, Folder
from offsets_log.disk.reader import NAMED, OTHER_TOPIC, open_logs
from offsets_log.errors import CorruptRecordError, Damage, InputError
from offsets_log.log_format.partition_log import Checkpoints
from tests.disk.logs import TOPIC_ID, name, names, numbers, offsets, partition, segment


def test_open_logs_data_directory_gives_partitions_in_order(data):
    (data / "orders-0").mkdir()
    (data / "orders-0" / name(0)).write_bytes(segment(0))
    with open_logs([str(data)]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert offsets(disk.logs[0]) == [0, 1, 2]
        assert names(disk.logs[0]) == [name(0), name(2)]
        assert disk.logs[0].segments[0].file == str(data / "__consumer_offsets-3" / name(0))
        assert disk.notes == []


@pytest.mark.parametrize("below", ["broker-1", "backup/broker-1"])
def test_open_logs_nested_data_directory_is_found(tmp_path, below):
    partition(tmp_path / below, 5, {name(0): segment(0)})
    with open_logs([str(tmp_path)]) as disk:
        assert numbers(disk.logs) == [5]


def test_open_logs_other_directories_of_a_data_directory_are_not_searched(data):
    """A copy kept in a data directory is not the broker's log."""
    partition(data / "old", 7, {name(0): segment(0)})
    with open_logs([str(data)]) as disk:
        assert numbers(disk.logs) == [3, 12]


def test_open_logs_too_deep_directory_finds_nothing(tmp_path):
    partition(tmp_path / "a/b/c", 5, {name(0): segment(0)})
    with pytest.raises(InputError, match=r"no segment of __consumer_offsets.*up to 3 levels"):
        open_logs([str(tmp_path)])


@pytest.mark.parametrize(("count", "shown"), [(3, "p0, p1, p2:"), (4, "p0, p1, p2, …:")])
def test_open_logs_nothing_found_names_three_paths(count, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [f"p{i}" for i in range(count)]
    for path in paths:
        Path(path).mkdir()
    with pytest.raises(InputError, match=f"was found in {shown}"):
        open_logs(paths)


def test_open_logs_partition_directory_gives_its_number(data, monkeypatch):
    monkeypatch.chdir(data / "__consumer_offsets-12")
    with open_logs(["."]) as disk, open_logs([name(0)], as_partition=9) as lone:
        assert numbers(disk.logs) == numbers(lone.logs) == [12]
        assert disk.logs[0].segments[0].file == name(0)


def test_open_logs_directory_behind_link_takes_the_name_that_tells(data, tmp_path):
    (tmp_path / "link").symlink_to(data / "__consumer_offsets-3")
    (tmp_path / "__consumer_offsets-7").symlink_to(data / "__consumer_offsets-12")
    with open_logs([str(tmp_path / "link"), str(tmp_path / "__consumer_offsets-7")]) as disk:
        assert numbers(disk.logs) == [3, 7]


def test_a_data_directory_given_by_two_names_is_one(data, tmp_path):
    (data / "meta.properties").write_bytes(b"version=1\nnode.id=1\ncluster.id=c\n")
    (data / "orders-0").mkdir()
    (tmp_path / "link").symlink_to(data)
    with open_logs([str(data), str(tmp_path / "link"), f"{data}/"]) as disk:
        assert [one.node_id for one in disk.clusters.identities] == [1]
        assert sorted(one.partition for one in disk.user_partitions) == [0, 3, 12]
        assert disk.notes == []


@pytest.mark.parametrize("leftover", ["0a1b-delete", "0a1b-future", "0a1b-stray"])
def test_open_logs_leftover_directory_is_read_where_it_is_named(data, leftover, monkeypatch):
    """The checkpoints beside a leftover directory describe another partition."""
    directory = (data / "__consumer_offsets-3").rename(data / f"__consumer_offsets-3.{leftover}")
    (data / "cleaner-offset-checkpoint").write_text("0\n1\n__consumer_offsets 3 7\n")
    expected = offsets(open_logs([str(directory / name(0))]).logs[0])
    for given in (str(directory), f"{directory}/", f"{directory}/."):
        with open_logs([given]) as disk:
            (log,) = disk.logs
            assert (log.offsets_partition, log.cleaned_until, disk.notes) == (3, None, [])
            assert offsets(log)[: len(expected)] == expected
            (note,) = log.notes
            assert f"{leftover} is read as it was named: its broker" in note
    monkeypatch.chdir(directory)
    with open_logs(["."]) as disk:
        assert numbers(disk.logs) == [3]
    with pytest.raises(InputError, match=r"left out.*name it"):
        open_logs([str(data / "*-3.*")])
    with open_logs([str(data / f"*-{leftover.split('-')[1]}")]) as disk:
        assert numbers(disk.logs) == [3]


@pytest.mark.parametrize("leftover", ["0a1b-delete", "0a1b-future", "0a1b-stray"])
def test_open_logs_leftover_directory_is_left_out_with_note(data, leftover):
    (data / "__consumer_offsets-3").rename(data / f"__consumer_offsets-3.{leftover}")
    with open_logs([str(data)]) as disk:
        assert numbers(disk.logs) == [12]
        assert len(disk.notes) == 1
        assert leftover in disk.notes[0]


def test_open_logs_lone_file_takes_partition_from_parent_then_option(data, tmp_path):
    (tmp_path / "x.log").write_bytes(segment(0))
    lone = [str(tmp_path / "x.log")]
    with open_logs(lone) as disk:
        assert numbers(disk.logs) == [None]
        assert disk.logs[0].segments[0].base_offset is None
    with open_logs([*lone, str(data / "__consumer_offsets-3" / name(2))], as_partition=8) as disk:
        assert numbers(disk.logs) == [3, 8]
        assert names(disk.logs[0]) == [name(2)]


def test_open_logs_lone_files_of_one_directory_are_one_log(tmp_path):
    for file, content in ((name(4), segment(4)), (name(0), segment(0)), ("dump.bin", segment(9))):
        (tmp_path / file).write_bytes(content)
    paths = [str(tmp_path / file) for file in (name(4), "dump.bin", name(0))]
    with open_logs(paths) as disk:
        assert [names(log) for log in disk.logs] == [[name(0), name(4)], ["dump.bin"]]


def test_open_logs_own_directory_of_segments_is_read(tmp_path):
    case = tmp_path / "case-17"
    case.mkdir()
    (case / name(0)).write_bytes(segment(0))
    with open_logs([str(case)]) as disk:
        assert numbers(disk.logs) == [None]
    with open_logs([str(case)], as_partition=4) as disk:
        assert numbers(disk.logs) == [4]


@pytest.mark.parametrize(
    ("count", "note"),
    [(1, "1 directory of another topic is left out"), (3, "3 directories of other topics are left out")],
)
def test_open_logs_glob_over_all_topics_reads_offsets_only(count, note, data):
    for number in range(count):
        (data / f"orders-{number}").mkdir()
        (data / f"orders-{number}" / name(0)).write_bytes(segment(0))
    with open_logs([str(data / "*")]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert disk.notes == [note]


def test_open_logs_glob_of_segments_skips_what_is_no_segment(data):
    (data / "__consumer_offsets-3" / f"{0:020}.index").write_bytes(bytes(8))
    with open_logs([str(data / "__consumer_offsets-3" / "*"), str(data / "__consumer_offsets-1?/*")]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert names(disk.logs[0]) == [name(0), name(2)]


def test_open_logs_glob_relative_is_expanded(data, monkeypatch):
    monkeypatch.chdir(data.parent)
    with open_logs(["*/__consumer_offsets-3"]) as disk:
        assert disk.logs[0].segments[0].file == f"data/__consumer_offsets-3/{name(0)}"


def test_open_logs_same_file_twice_is_read_once(data, tmp_path):
    (tmp_path / "link").symlink_to(data)
    file = data / "__consumer_offsets-3" / name(0)
    with open_logs([str(data), str(file), str(tmp_path / "link"), str(data / "__consumer_offsets-3")]) as disk:
        assert [names(log) for log in disk.logs] == [[name(0), name(2)], [name(0)]]
        assert all(log.notes == () for log in disk.logs)


def test_open_logs_partitions_filter_opens_no_other_file(data):
    with open_logs([str(data)], partitions=[12]) as disk:
        assert numbers(disk.logs) == [12]
        assert disk.files == [str(data / "__consumer_offsets-12" / name(0))]


def test_open_logs_partitions_filter_without_match_says_what_there_is(data):
    with pytest.raises(InputError, match=r"partition 7 was found; partitions found: 3, 12"):
        open_logs([str(data)], partitions=[7])


def test_open_logs_partition_without_segment_is_noted(data):
    partition(data, 4, {name(0, ".deleted"): segment(0)})
    with open_logs([str(data)]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert disk.notes == [f"{data}/__consumer_offsets-4 holds no segment"]


def test_open_logs_nothing_found_tells_the_first_three_notes(tmp_path):
    for number in range(4):
        partition(tmp_path, number, {name(0, ".deleted"): segment(0)})
    with pytest.raises(InputError) as raised:
        open_logs([str(tmp_path)])
    assert str(raised.value).count("holds no segment") == 3


def test_open_logs_other_log_file_in_partition_is_noted(data):
    (data / "__consumer_offsets-3" / "x.log").write_bytes(b"")
    with open_logs([str(data)]) as disk:
        assert "x.log is left out" in disk.notes[0]


# --------------------------------------------------------------------------------------- beside segments


def test_topic_ids_data_directory_gives_other_topics(data):
    for directory, text in (
        ("my-orders-0", b"version: 0\ntopic_id: " + TOPIC_ID),
        ("junk-0", b"\xff\x00"),
        ("zero-0", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
        ("gone-0.0a1b-delete", b"version: 0\ntopic_id: vWNc3WTQSUGmg4G1GIeA9A"),
        ("__consumer_offsets-3", b"version: 0\ntopic_id: tMnA3AqLRtGnGHwltGv9kw"),
    ):
        (data / directory).mkdir(exist_ok=True)
        (data / directory / "partition.metadata").write_bytes(text)
    with open_logs([str(data)]) as disk:
        assert disk.topic_ids == {bytes.fromhex("485bb7cb79604c168263f37f3fecc9fa"): "my-orders"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0\n2\n__consumer_offsets 3 185\n__consumer_offsets 1 7\n", 185),
        (b"", None),
        (b"0\n0\n", None),
        (b"1\n1\n__consumer_offsets 3 185\n", None),
        (b"0\n1\n__consumer_offsets 3\nother 3 5\n__consumer_offsets 3 x\n", None),
        (b"\xff\xfe\x00garbage", None),
    ],
)
def test_cleaned_until_checkpoint_above_partition_is_read(data, text, expected):
    (data / "cleaner-offset-checkpoint").write_bytes(text)
    for path in (data, data / "__consumer_offsets-3", data / "__consumer_offsets-3" / name(0)):
        with open_logs([str(path)]) as disk:
            assert disk.logs[0].cleaned_until == expected


def test_checkpoints_and_clean_shutdown_beside_the_partitions_are_read(data):
    told = {"replication": 41, "log-start": 5, "recovery-point": 17, "cleaner": 9}
    (data / ".kafka_cleanshutdown").write_text('{"version":0}')
    for kind, offset in told.items():
        (data / f"{kind}-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 3 {offset}\n")
    with open_logs([str(data / "__consumer_offsets-3")]) as disk:
        assert disk.logs[0].checkpoints == Checkpoints(
            high_watermark=41, log_start_offset=5, recovery_point=17, cleaned_until=9, stopped_cleanly=True
        )


def test_without_clean_shutdown_any_file_of_a_data_directory_tells_an_unclean_stop(data):
    with open_logs([str(data)]) as disk:
        assert disk.logs[0].checkpoints.stopped_cleanly is None
    (data / "meta.properties").write_text("version=1\n")
    with open_logs([str(data)]) as disk:
        assert disk.logs[0].checkpoints.stopped_cleanly is False


def test_why_nothing_is_missing_around_segments_of_another_topic_or_named_ones(data):
    orders = (data / "__consumer_offsets-3").rename(data / "orders-3")
    folder = data / "__consumer_offsets-12"
    (folder / name(9)).write_bytes(segment(9))
    for given, told in ((orders, OTHER_TOPIC), (orders / name(2), NAMED), (folder, None), (folder / name(9), NAMED)):
        with open_logs([str(given)], as_partition=3) as disk:
            assert [log.selection for log in disk.logs] == [told]


def test_logs_without_a_segments_name_are_told_where_segments_should_be(data):
    """Files of other kinds, and logs in other folders, are nobody's business; one that was named is read."""
    folder = data / "__consumer_offsets-12"
    (data / "server.log").write_text("a line\n")
    for file in ("notes.txt", "old.log.gz", "copy.log"):
        (folder / file).write_bytes(segment(0))
    with open_logs([str(folder / name(0)), str(data)]) as disk:
        assert disk.notes == [f"{folder}/copy.log is left out: no segment's name; name the file to read it"]


def test_files_beside_segments_are_handed_over(data):
    (data / "__consumer_offsets-12" / f"{0:020}.index").write_bytes(bytes(8))
    with open_logs([str(data)]) as disk:
        beside = disk.logs[1].beside
        assert set(beside) == {f"{0:020}.index", "leader-epoch-checkpoint"}
        assert bytes(beside[f"{0:020}.index"]()) == bytes(8)


def test_other_topics_alone_are_enough_where_that_is_said(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(InputError, match="no segment"):
        open_logs([str(tmp_path)], may_lack_offsets=True)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / name(0)).write_bytes(segment(0))
    with pytest.raises(InputError, match="other topics only"):
        open_logs([str(tmp_path)])
    with open_logs([str(tmp_path)], may_lack_offsets=True) as disk:
        assert disk.logs == []
        assert [one.topic for one in disk.user_partitions] == ["orders"]


def test_a_data_directory_without_offsets_partitions_is_known_by_its_own_files(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    for folder in ("orders-0", "__cluster_metadata-0"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name(0)).write_bytes(segment(0))
    with open_logs([str(tmp_path)], may_lack_offsets=True) as disk:
        assert [one.home for one in disk.clusters.identities] == ["abc/1"]
        assert list(disk.clusters.by_id) == ["abc"]


@pytest.mark.parametrize("is_packed", [False, True])
def test_partitions_of_a_data_directory_are_its_folders_of_such_names(is_packed, data, tmp_path):
    """Whatever else lies there: one that a broker deletes or moves is none, nor is one in another folder."""
    for path in ("orders-0", "orders-1.0a1b-delete", "a-b-12", "lost+found", "orders", "backup/orders-2"):
        (data / path).mkdir(parents=True)
        (data / path / name(0)).write_bytes(segment(0))
    given = tmp_path / "a.tar"
    if is_packed:
        with tarfile.open(given, "w") as archive:
            archive.add(data, "data")
    with open_logs([str(given if is_packed else data)]) as disk:
        found = sorted((one.topic, one.partition) for one in disk.user_partitions)
    assert found == [("__consumer_offsets", 3), ("__consumer_offsets", 12), ("a-b", 12), ("orders", 0)]


def test_a_directory_of_no_topic_has_no_partition():
    for file in ("orders", "orders-", "orders-x", ""):
        assert DirectoryName.parse(file) == DirectoryName("", -1, "")
    assert [Folder(prefix, "f").shown_path for prefix in ("", "/", "a.tar!", "a/f/")] == ["f", "f", "a.tar", "a/f"]


@pytest.mark.parametrize(("count", "shown"), [(1, "a"), (3, "a, b, c"), (4, "a, b, c, …")])
def test_open_logs_nothing_found_names_three_other_topics(count, shown, tmp_path):
    for topic in "abcd"[:count]:
        (tmp_path / f"{topic}-0").mkdir()
        (tmp_path / f"{topic}-0" / name(0)).write_bytes(segment(0))
    for topic in "A" + "abcd"[:count]:  # of the first one no segment is here
        (tmp_path / f"{topic}-0").mkdir(exist_ok=True)
        (tmp_path / f"{topic}-0" / f"{0:020}.index").touch()
    with pytest.raises(InputError) as caught:
        open_logs([str(tmp_path)])
    assert f"Here are other topics only ({shown}): " in str(caught.value)


def test_topic_ids_are_those_of_files_that_tell_them(data):
    """Whatever else lies there: another word, zeros, nothing."""
    files = {
        "told": b"version: 0\ntopic_id: " + TOPIC_ID + b"\n",
        "zeros": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n",
        "short": b"version: 0\ntopic_id: AAAA\n",
        "empty": b"",
    }
    for topic, text in files.items():
        (data / f"{topic}-0").mkdir()
        (data / f"{topic}-0" / "partition.metadata").write_bytes(text)
    with open_logs([str(data)]) as disk:
        assert disk.topic_ids == {base64.urlsafe_b64decode(TOPIC_ID + b"=="): "told"}


def test_what_a_copy_tells_of_ends_and_is_broken_is_damage(data):
    with open_logs([str(data)]) as disk:
        assert disk.told_ends[1] == []
    (data / "log-ends.json").write_text("[]")
    with open_logs([str(data)]) as disk:
        (damage,) = disk.told_ends[1]
        assert damage.error.file == f"{data}/log-ends.json"
        assert damage.raw == b""


def test_damage_in_a_segment_of_a_dump_is_located_at_the_line_of_its_record(data):
    with open_logs([str(data / "__consumer_offsets-3")]) as disk:
        (log,) = disk.logs
        disk.logs = [replace(log, segments=(replace(log.segments[0], lines={0: 7, 1: 9}), *log.segments[1:]))]
        made, other = (part.file for part in log.segments)
        for file, record_offset, expected in ((made, 1, 9), (made, 2, 70), (made, None, 70), (other, 1, 70)):
            error = CorruptRecordError("bad", file=file, position=70, record_offset=record_offset)
            disk.locate(Damage(error, b""))
            assert error.position == expected


def test_open_logs_a_renamed_partition_in_a_data_directory_is_told(data):
    copy = data / "__consumer_offsets-4.bak"
    copy.mkdir()
    (copy / name(0)).write_bytes(segment(0))
    with open_logs([str(data)]) as disk:
        assert numbers(disk.logs) == [3, 12]
        assert disk.notes == [f"{copy} is left out: no name of a partition's directory; name it to read it"]
