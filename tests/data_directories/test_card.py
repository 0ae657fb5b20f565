"""Cards of recorded data directories, mixed-up ones, and what commands take from the cluster's metadata."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offsets_log.data_directory.card import METADATA_VERSIONS, metadata_version_name
from offsets_log.data_directory.directory import DataDirectory, identify, iter_mixed_up
from offsets_log.disk.reader import open_logs
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.data_directories.copies import COPIES, Recorded, data_directories, words

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def run(*arguments: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return result


def cards(*paths: Path, status: int = 0) -> list[dict[str, Any]]:
    return list(json_lines(run("info", "--card", *paths, status=status).stdout))


def copied(folder: Path, copy: str, to: Path) -> Path:
    """A broker's only data directory, to be changed; the two long indexes of its metadata log not among it."""
    shutil.copytree(
        folder / "copies" / copy / "data", to, ignore=lambda at, names: [n for n in names if n.endswith("timeindex")]
    )
    return to


# ------------------------------------------------------------------------------------------------ cards


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_cards_are_what_admin_client_said(recorded: Recorded, name: str, copy: str) -> None:
    said: Any = words(recorded(name), copy)
    directories = data_directories(recorded(name), copy)
    found = cards(*directories)
    assert [Path(card["data_directory"]) for card in found] == directories
    for card in found:
        assert card["cluster_id"] == said["cluster_id"]
        assert card["node_id"] in said["brokers"]
        assert metadata_version_name(said["features"]["metadata.version"]) == card["metadata_version"]
        assert card["features"] == {k: v for k, v in said["features"].items() if k != "metadata.version"}
        assert set(said["brokers"]) <= set(card["brokers"])
        assert card["node_directories"] == card["node_directories_given"] == len(directories)
        assert card["left"] == ("stopped in order" if copy == "stopped" else "running or killed")
        assert (card["future_partitions"], card["stray_partitions"], card["unreadable_logs"]) == (0, 0, 0)
        folders = {path.name for path in Path(card["data_directory"]).iterdir() if path.is_dir()}
        assert card["partitions"] + card["deleted_partitions"] == len(folders)
        assert card["newest_timestamp_ms"]["__consumer_offsets"] <= max(card["newest_timestamp_ms"].values())
        assert card["newest_span_ms"] >= 0
    assert len({card["directory_id"] for card in found}) == len(found)


@pytest.mark.parametrize("copy", ["running", "stopped"])
def test_the_page_begins_with_the_card_and_rows_are_what_they_were(recorded: Recorded, copy: str) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), copy)
    page = run("info", directory, "-o", "table").stdout
    block, rest = page.split("\n\n", 1)
    assert block.startswith("data directory    ")
    assert f"broker 1 · cluster {CLUSTER} · directory " in block
    assert "metadata.version 4.3-IV0 · eligible.leader.replicas.version 1 · " in block
    assert ("shutdown          clean: .kafka_cleanshutdown is there" in block) is (copy == "stopped")
    assert rest.lstrip().startswith("offsets")
    (first, *_) = json_lines(run("info", directory, "-o", "jsonl").stdout)
    assert first["offsets_partition"] == 0
    assert "cluster_id" not in first


def test_no_secret_is_on_a_card(recorded: Recorded) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    shown = run("info", "--card", directory, "-o", "table").stdout + json.dumps(cards(directory))
    assert "password" not in shown
    assert "invented-secret" not in shown
    assert "scram" not in shown.lower()


def test_directories_of_several_brokers_are_told_together(recorded: Recorded) -> None:
    folder = recorded("kafka-4.3-three")
    paths = [path for copy in ("broker-1", "broker-2", "broker-3") for path in data_directories(folder, copy)]
    found = run("info", "--card", *paths, "-o", "table").stdout
    assert "given             4 data directories of 3 brokers of 1 cluster" in found
    assert found.count("2 of 2 directories of this broker given") == 2
    (alone,) = cards(paths[0])
    assert (alone["node_directories"], alone["node_directories_given"]) == (2, 1)


def test_a_copy_without_hidden_files_does_not_tell_how_it_was_left(recorded: Recorded, tmp_path: Path) -> None:
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    (data / ".kafka_cleanshutdown").unlink()
    (card,) = cards(data)
    assert (card["left"], card["left_shown_by"][0]) == (None, "neither .kafka_cleanshutdown nor .lock is there")


def test_unused_room_in_the_metadata_logs_index_shows_no_kill(recorded: Recorded, tmp_path: Path) -> None:
    """``K44-23``: a broker of 4.4 that was stopped in order leaves it; in other indexes it leaves none."""
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    (data / ".kafka_cleanshutdown").unlink()
    (index, *_) = sorted((data / "__cluster_metadata-0").glob("*.index"), reverse=True)
    index.write_bytes(index.read_bytes() + bytes(10 << 20))
    (card,) = cards(data)
    assert (card["left"], len(card["left_shown_by"])) == (None, 1)
    (index, *_) = sorted((data / "__consumer_offsets-0").glob("*.index"), reverse=True)
    index.write_bytes(index.read_bytes() + bytes(800))
    (card,) = cards(data)
    assert card["left"] == "running or killed"
    assert "1 of 1 active index have unused room" in card["left_shown_by"]


def test_names_of_metadata_versions() -> None:
    assert METADATA_VERSIONS[21 - 1] == "3.9-IV0"
    assert [metadata_version_name(level) for level in (None, 1, 30, 99, 0)] == [None, "3.0-IV1", "4.3-IV0", "99", "0"]


# -------------------------------------------------------------------------------------------- mixed up


def mixed_up(*texts: str, **leftovers: int) -> list[str]:
    found = [
        identify(
            DataDirectory(
                shown_path=f"d{number}", files={"meta.properties": lambda text=text: text.encode()}, leftovers=leftovers
            )
        )
        for number, text in enumerate(texts)
    ]
    return list(iter_mixed_up(found))


META = "version=1\nnode.id={}\ncluster.id={}\ndirectory.id={}\n"
ONE, TWO = "AHGKGpjBPkdH0CuHmhdWGw", "K1FPrRFz4qQU9VjmJzK1Sw"


def test_what_belongs_together_is_not_told() -> None:
    assert not mixed_up(META.format(1, "a", ONE), META.format(1, "a", TWO))
    assert not mixed_up("version=0\nbroker.id=1\n", "version=0\nbroker.id=1\n")


def test_directories_of_two_clusters_and_one_given_twice() -> None:
    assert mixed_up(META.format(1, "a", ONE), META.format(1, "b", ONE)) == [
        "these data directories are of 2 clusters, of each partition one's copy is read: a: d0; b: d1"
    ]
    assert mixed_up(META.format(1, "a", ONE), META.format(1, "a", ONE)) == [
        f"these are 2 copies of one data directory, {ONE}: d0, d1"
    ]


def test_stray_and_future_folders() -> None:
    told = mixed_up(META.format(1, "a", ONE), stray=1, future=2, delete=5)
    assert told == [
        "d0 has 1 stray partition (which the broker found to be not its own when it started), left out",
        "d0 has 2 partitions (being moved into this directory from another one of the broker), left out",
    ]


ANOTHER = "AnotherClusterAnother1"


def of_another_cluster(data: Path) -> Path:
    """Let a data directory name another cluster."""
    meta = data / "meta.properties"
    meta.write_text(meta.read_text().replace(CLUSTER, ANOTHER))
    return data


def without_topic_ids(data: Path) -> Path:
    for file in data.glob("__consumer_offsets-*/partition.metadata"):
        file.unlink()
    return data


def test_folders_of_two_topics_or_clusters_are_refused(recorded: Recorded, tmp_path: Path) -> None:
    """The topic id decides, and where a folder has none the cluster id."""
    one = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "one")
    other = of_another_cluster(copied(recorded("kafka-3.9-one"), "stopped", tmp_path / "other"))
    ids = [
        re.findall("topic_id: (.*)", (data / "__consumer_offsets-0" / "partition.metadata").read_text())[0]
        for data in (one, other)
    ]
    for command in ("compact", "groups", "info", "check", "decode"):
        told = run(command, one, other, status=1).stderr
        assert told == (
            "offsets-log: error: these are folders of 2 topics, and no replicas of one __consumer_offsets: "
            f"{one}/__consumer_offsets-0 has topic id {ids[0]}, {other}/__consumer_offsets-0 has {ids[1]}. Give those "
            "of one at a time\n"
        )
    run("rescue", one, other, "--to", tmp_path / "rescued", status=1)
    assert not (tmp_path / "rescued").exists()
    run("compact", one / "__consumer_offsets-0", other / "__consumer_offsets-1", status=1)
    segments = [next((data / "__consumer_offsets-0").glob("*.log")) for data in (one, other)]
    run("compact", *segments, status=1)
    run("compact", one, without_topic_ids(other), status=1)
    told = run("compact", without_topic_ids(one), other, status=1).stderr
    assert f"has cluster id {CLUSTER}, {other}/__consumer_offsets-0 has {ANOTHER}. Give" in told
    (other / "meta.properties").unlink()
    run("compact", one, other, "-q", status=3)


def test_every_command_tells_mixed_up_disks(recorded: Recorded, tmp_path: Path) -> None:
    """Of one topic by its id, as where a meta.properties was made again."""
    one = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "one")
    other = of_another_cluster(copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "other"))
    (one / "orders-9.0123456789abcdef0123456789abcdef-stray").mkdir()
    for command in ("compact", "groups", "info"):
        told = run(command, one, other, status=3).stderr
        assert (
            f"these data directories are of 2 clusters, of each partition one's copy is read: {CLUSTER}: {one}; "
            in told
        )
        assert f"{one} has 1 stray partition" in told
    again = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "again")
    assert "these are 2 copies of one data directory, " in run("compact", one, again).stderr
    linked = tmp_path / "linked"
    linked.symlink_to(again)
    assert "copies of one data directory" not in run("compact", again, linked).stderr
    assert len(cards(again, linked)) == 1


# ------------------------------------------------------------------------- what commands take from it


def test_the_number_of_offsets_partitions_is_known(recorded: Recorded, tmp_path: Path) -> None:
    """Two of eight partitions: groups alone do not show how many there are."""
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    for number in (1, 2, 4, 5, 6, 7):
        shutil.rmtree(data / f"__consumer_offsets-{number}")
    checked = json.loads(run("check", data, "-o", "json", status=3).stdout)
    assert checked["partitions"] == {"count": 8, "source": "metadata"}
    assert json.loads(run("check", data, "--partitions", "9", "-o", "json", status=3).stdout)["partitions"] == {
        "count": 9,
        "source": "option",
    }
    run("rescue", data, "--to", tmp_path / "out", status=3)
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["offsets_partitions"] == {"count": 8, "source": "metadata", "absent": [1, 2, 4, 5, 6, 7]}
    told = run("where", "--of", data, "g-behind", "no-group", status=3).stderr
    assert re.search(
        r"(g-behind|no-group) belongs to offsets partition [124567] of 8 \(as the cluster's metadata", told
    )


def test_ids_of_deleted_topics_have_names(recorded: Recorded) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    with open_logs([str(directory)]) as disk:
        metadata = disk.clusters.metadata
        assert metadata is not None
        former = metadata.replay.former_topics
        assert {topic.name for topic in former.values()} == {"gone", "reborn"}
        for topic_id, topic in former.items():
            assert disk.topic_ids[bytes(topic_id)] == topic.name
        assert metadata.partition_count("orders") == 3
        assert metadata.partition_count("gone") is None
        led = metadata.partition("__consumer_offsets", 0)
        assert led is not None
        assert (led.leader, led.last_leader) == (-1, 1)


def test_folders_go_before_the_metadata_and_the_option_before_both(recorded: Recorded, tmp_path: Path) -> None:
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    with open_logs([str(data)]) as disk:
        orders = next(topic_id for topic_id, topic in disk.topic_ids.items() if topic == "orders")
    for folder in data.glob("orders-*"):
        folder.rename(data / folder.name.replace("orders", "renamed"))
    with open_logs([str(data)]) as disk:
        assert disk.topic_ids[orders] == "renamed"
        assert disk.clusters.topic_names[orders] == "orders"
    for folder in data.glob("renamed-*"):
        shutil.rmtree(folder)
    with open_logs([str(data)]) as disk:
        assert disk.topic_ids[orders] == "orders"


def test_the_copies_of_the_last_leaders_are_read(recorded: Recorded) -> None:
    """The third broker was killed before the others went on; its metadata is old too."""
    folder = recorded("kafka-4.3-three")
    said: Any = words(folder, "broker-1")
    leaders = {row["partition"]: row["leader"] for row in said["topics"]["__consumer_offsets"]["partitions"]}
    paths = [path for copy in ("broker-3", "broker-1", "broker-2") for path in data_directories(folder, copy)]
    result = run("groups", *paths)
    read = re.findall(r"broker-(\d)\S*/__consumer_offsets-(\d+) is read, .* and this is its copy", result.stderr)
    alike = re.findall(r"(\d+) partitions? ha\w+ copies with the same batches: read in \S*broker-(\d)", result.stderr)
    told = Counter(int(broker) for broker, _ in read)
    told.update(int(broker) for count, broker in alike for _ in range(int(count)))
    assert {int(partition): int(broker) for broker, partition in read}.items() <= leaders.items()
    assert told == Counter(leaders.values())
    assert "3 copies of the cluster's metadata: " in result.stderr
    found = r"\d+ partitions of other topics have several copies: \d+ times that of the last leader counts"
    assert re.search(found, result.stderr)


@pytest.mark.parametrize("file", ["00000000000000000000.log", "snapshots"])
def test_damaged_metadata_is_told_and_counts_where_it_is_asked(recorded: Recorded, tmp_path: Path, file: str) -> None:
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    folder = data / "__cluster_metadata-0"
    for path in folder.glob("*.checkpoint") if file == "snapshots" else [folder / file]:
        raw = bytearray(path.read_bytes())
        raw[-5] ^= 1
        path.write_bytes(raw)
    told = run("rebuild", data, "--table", "groups", status=0 if file == "snapshots" else 3).stderr
    run("compact", data, status=0 if file == "snapshots" else 3)
    if file == "snapshots":
        assert "is left out: it has no end, or cannot be read" in told
        run("info", "--card", data)
    else:
        assert f"1 piece of the cluster's metadata in {folder} cannot be read" in told
        assert f"{folder}/{file}" in told
        run("info", "--card", data, status=3)


def test_metadata_of_which_nothing_can_be_read_is_told(recorded: Recorded, tmp_path: Path) -> None:
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    folder = data / "__cluster_metadata-0"
    for path in folder.iterdir():
        path.write_bytes(b"\xff" * path.stat().st_size)
    assert (
        f"the cluster's metadata in {folder} is left out: "
        in run("rebuild", data, "--table", "groups", status=3).stderr
    )
    (card,) = cards(data, status=3)
    assert (card["metadata_version"], card["node_id"]) == (None, 1)


def test_a_meta_properties_that_makes_no_sense_is_told_with_its_line(recorded: Recorded, tmp_path: Path) -> None:
    data = copied(recorded("kafka-4.3-one"), "stopped", tmp_path / "data")
    (data / "meta.properties").write_text("version=1\nnode.id=one\n")
    assert f"{data}/meta.properties: node.id is 'one', which is no number" in run("compact", data, status=3).stderr
    (card,) = cards(data, status=3)
    assert (card["cluster_id"], card["node_id"], card["left"]) == (None, None, "stopped in order")


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_hostile_files_end_no_command(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = copied(recorded("kafka-4.3-one"), "stopped", tmp_path_factory.mktemp("hostile") / "data")
    names = ["meta.properties", "replication-offset-checkpoint", "__cluster_metadata-0/00000000000000000000.log"]
    for name in names:
        raw = bytearray((directory / name).read_bytes())
        for _ in range(data.draw(st.integers(0, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        (directory / name).write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    for arguments in (("info", "--card"), ("rebuild", "--table", "groups"), ("where", "--of")):
        result = CliRunner().invoke(main, [*arguments, str(directory)], catch_exceptions=False)
        assert result.exit_code in (0, 3)
    shutil.rmtree(directory)


def test_expire_says_that_no_data_directory_holds_the_retention(recorded: Recorded) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    assert "stands in server.properties" in run("expire", directory).stderr
    assert "server.properties" not in run("expire", directory, "--retention", "7d").stderr
