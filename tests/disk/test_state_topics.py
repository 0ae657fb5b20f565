"""Which folders a topic of coordinators has in a data directory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from offsets_log.disk.state_topics import open_topic, topic_of
from offsets_log.errors import InputError
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record

TOPIC = "__transaction_state"
FOLDERS = (
    f"{TOPIC}-10",
    f"{TOPIC}-3",
    f"{TOPIC}-4.0a1b-delete",
    "__share_group_state-5",
    "__consumer_offsets-6",
    "logs",
)


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(
            build_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")])
        )
    return tmp_path


@pytest.mark.parametrize(("wanted", "partitions"), [((), [3, 10]), ((10, 6), [10])])
def test_a_data_directory_has_the_folders_of_a_topic_but_not_those_of_others_or_deleted_ones(
    wanted: tuple[int, ...], partitions: list[int], data_directory: Path
) -> None:
    with open_topic([str(data_directory)], TOPIC, wanted) as opened:
        assert [(log.topic, log.offsets_partition) for log in opened.logs] == [(TOPIC, number) for number in partitions]


def test_a_folder_or_its_file_is_a_partition(data_directory: Path) -> None:
    for path in (data_directory / f"{TOPIC}-3", data_directory / f"{TOPIC}-3" / f"{0:020}.log"):
        assert topic_of([str(path)]) == TOPIC
        with open_topic([str(path)], TOPIC) as opened:
            assert [log.offsets_partition for log in opened.logs] == [3]


def test_a_topics_packed_segments_that_are_cut_off_are_damage_told_by_number(data_directory: Path) -> None:
    folders = [data_directory / f"{TOPIC}-3", data_directory / f"{TOPIC}-10"]
    whole = gzip.compress((folders[0] / f"{0:020}.log").read_bytes())
    for packed, is_cut in ((whole, False), (whole[:-9], True)):
        for folder in folders:
            (folder / f"{1:020}.log.gz").write_bytes(packed)
        with open_topic([str(data_directory)], TOPIC) as opened:
            assert [Path(str(damage.error.file)).parent for damage in opened.damages] == folders * is_cut


def test_a_topics_checkpoint_that_cannot_be_read_is_told(data_directory: Path) -> None:
    with open_topic([str(data_directory)], TOPIC) as opened:
        assert not opened.has_broken_files
    (data_directory / "recovery-point-offset-checkpoint").write_text("no checkpoint")
    with open_topic([str(data_directory)], TOPIC) as opened:
        assert opened.has_broken_files


def test_a_topic_that_is_not_there_is_no_answer(data_directory: Path) -> None:
    with pytest.raises(InputError, match="no segment of __other was found in"):
        open_topic([str(data_directory)], "__other")


def test_paths_have_a_topic_if_all_are_of_the_same_that_can_be_decoded(data_directory: Path) -> None:
    (data_directory / "orders-0").mkdir()
    folders = {name: str(data_directory / name) for name in (*FOLDERS, "orders-0")}
    ours = [folders[f"{TOPIC}-3"], folders[f"{TOPIC}-10"]]
    assert topic_of(ours) == TOPIC
    assert topic_of([*ours, folders["__share_group_state-5"]]) is None
    assert [topic_of([folders[name]]) for name in ("orders-0", "logs", "__share_group_state-5")] == [
        None, None, "__share_group_state"
    ]  # fmt: skip
    assert topic_of([str(data_directory)]) is None
    (data_directory / f"{TOPIC}-3" / "logs").mkdir()
    assert topic_of([f"{ours[0]}/logs"]) is None, "only of a file the folder around it tells the topic"


def test_where_nothing_is_found_three_places_are_named(data_directory: Path) -> None:
    places = [str(data_directory / name) for name in ("logs", "__consumer_offsets-6", "__share_group_state-5", "a")]
    (data_directory / "a").mkdir()
    with pytest.raises(InputError) as caught:
        open_topic(places, "__other")
    assert str(caught.value) == f"no segment of __other was found in {', '.join(places[:3])}"
