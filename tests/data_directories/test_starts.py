"""What real brokers of three releases did at their start on changed data directories, and what is foretold of each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log.broker.shutdowns import outcomes_by_shutdown
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.replay.releases import release_named
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.data_directories.starts import SECOND, VARIANTS, made
from tests.shared_files import unpacked

HERE = Path(__file__).parent
RECORDED = {path.stem.removeprefix("starts-"): json.loads(path.read_bytes()) for path in HERE.glob("starts-*.json")}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sound directory of each release."""
    folder = tmp_path_factory.mktemp("bases")
    return {release: unpacked(HERE / f"start-{release}.tar.xz", folder / release) / "data" for release in RECORDED}


def foretold(paths: list[Path], release: str) -> dict[str, Any]:
    """The same words as the recording's."""
    profile = release_named(release).profile
    starts, asides, served = True, [], {}
    with open_logs(list(map(str, paths))) as opened:
        for log in opened.logs:
            outcomes = outcomes_by_shutdown(log, [profile], is_damaged=True)
            (outcome,) = {id(one[profile]): one[profile] for one in outcomes.values()}.values()
            starts &= outcome.starts
            if outcome.at_start is not None and outcome.at_start.rule == "ST-7":
                asides.append(f"__consumer_offsets-{log.offsets_partition}")
            served |= {group: offset for (group, *_), offset in outcome.served().items()}
    return {"starts": starts, "asides": sorted(asides), "served": served if starts else {}}


ASIDE_UNREAD = (
    "folder-of-the-same-offsets-partition-empty",
    "second-has-the-same-empty",
    "second-has-the-same-without-id",
)
"""Variants in which another folder is put aside than the one that is read."""
REFUSED = "second-has-the-same-with-another-id"
"""The variant whose folders are not read together, as they are no copies of one partition."""


@pytest.mark.parametrize("name", [name for name in (*VARIANTS, *SECOND) if name != REFUSED])
def test_what_brokers_did_is_foretold(name: str, bases: dict[str, Path], tmp_path: Path) -> None:
    """ST-1, ST-2, ST-3, ST-4, ST-5, ST-6, ST-7, ST-8."""
    for release, recorded in RECORDED.items():
        paths = made(name, bases[release], tmp_path / release)
        theirs = {word: recorded[name][word] for word in ("starts", "served")}
        theirs["asides"] = [folder for folder in recorded[name]["asides"] if folder.startswith("__consumer_offsets")]
        theirs["asides"] = [] if name in ASIDE_UNREAD else theirs["asides"]
        assert foretold(paths, release) == theirs, (release, recorded[name]["says"])


def test_a_copy_of_some_files_only_is_no_damage_of_the_original(bases: dict[str, Path], tmp_path: Path) -> None:
    """Where no folder has the file that tells its topic, it was left out by who copied: one sentence says so (ST-7)."""
    copy = tmp_path / "copy"
    shutil.copytree(bases["4.4.0"], copy, ignore=shutil.ignore_patterns("partition.metadata", "__cluster_metadata-0"))
    result = CliRunner().invoke(main, ["compact", str(copy), "-o", "jsonl"])
    assert len(list(json_lines(result.stdout))) == 8
    (told,) = [line for line in result.stderr.splitlines() if "ST-7" in line]
    assert "this copy lacks partition.metadata in all its folders: a broker started on it would" in told
    assert "the original may have these files" in told
    checked = CliRunner().invoke(main, ["check", str(copy), "--loads-on", "4.4.0", "-o", "jsonl"])
    loads = [row for row in json_lines(checked.stdout) if row["kind"] == "load"]
    assert {(row["rule"], row["served"]) for row in loads} == {("ST-7", "nothing")}
    (told,) = [line for line in checked.stderr.splitlines() if "this copy lacks" in line]
    assert told.startswith("offsets partitions 0, 1, 2, 3: on 4.4.0 the load")
    (copy / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    result = CliRunner().invoke(main, ["compact", str(copy), "-o", "jsonl"])
    assert "__consumer_offsets-0 has no partition.metadata" in result.stderr


@pytest.mark.parametrize(
    ("contents", "rule", "starts"), [(b"", "ST-6", False), (bytes(40), "ST-6", False), (None, "ST-7", True)]
)
def test_a_folder_without_its_topic_id_is_judged_without_meta_properties(
    contents: bytes | None, rule: str, starts: bool, recording: Callable[[str], Path], tmp_path: Path
) -> None:
    """Brokers of Kafka 4 know no ZooKeeper, whatever lies beside the folder; older ones may have one. `repair` and
    `clean` take the id from the topic's other folders."""
    data = tmp_path / "data"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", data)
    broken = data / "__consumer_offsets-1" / "partition.metadata"
    whole = broken.read_bytes()
    broken.unlink() if contents is None else broken.write_bytes(contents)
    checked = CliRunner().invoke(main, ["check", str(data), "--release", "4.3.0", "--release", "3.9.1", "-o", "jsonl"])
    loads = [row for row in json_lines(checked.stdout) if row["kind"] == "load" and row["offsets_partition"] == 1]
    told = {release: (row["rule"], row["starts"]) for row in loads for release in row["releases"]}
    assert (checked.exit_code, told) == (3, {"4.3.0": (rule, starts), "3.9.1": (None, True)})
    for command in ("repair", "clean"):
        result = CliRunner().invoke(main, [command, str(data), "--to", str(tmp_path / command)])
        assert (result.exit_code, "the topic's other folders have" in result.stderr) == (
            3 if contents is not None else 0,
            True,
        )
        assert (tmp_path / command / "__consumer_offsets-1" / "partition.metadata").read_bytes() == whole


def test_copies_of_logs_alone_are_not_judged_by_their_topic_ids(
    recording: Callable[[str], Path], tmp_path: Path
) -> None:
    """ST-7: `check` says so. A file that holds no id is left out by `repair`, which says so too."""
    data = tmp_path / "data"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", data, ignore=shutil.ignore_patterns("partition.metadata"))
    checked = CliRunner().invoke(main, ["check", str(data), "-o", "jsonl"])
    assert checked.exit_code == 0
    assert "no folder here has partition.metadata" in checked.stderr
    (data / "__consumer_offsets-0" / "partition.metadata").write_bytes(bytes(8))
    result = CliRunner().invoke(main, ["repair", str(data), "--to", str(tmp_path / "new")])
    assert result.exit_code == 3
    assert "offsets partition 0: partition.metadata holds no topic id (ST-6)" in result.stderr
    assert not list((tmp_path / "new").rglob("partition.metadata"))


def test_folders_of_one_broker_with_several_topic_ids_are_refused(bases: dict[str, Path], tmp_path: Path) -> None:
    """The broker puts aside the one that its metadata does not have (ST-7): which that is, is for the user to say."""
    given = made(REFUSED, bases["4.4.0"], tmp_path)
    with pytest.raises(InputError, match="are folders of 2 topics"), open_logs(list(map(str, given))):
        pass


@pytest.mark.parametrize("name", ["folder-lost-and-found", "second-has-the-same", "high-watermarks-of-zeros"])
def test_a_start_that_fails_is_one_finding_of_check(name: str, bases: dict[str, Path], tmp_path: Path) -> None:
    """However many partitions are in the directory; its detail names them."""
    given = map(str, made(name, bases["4.4.0"], tmp_path))
    found = CliRunner().invoke(main, ["check", *given, "--loads-on", "4.4.0,4.3.1", "-o", "jsonl"])
    rows = [row for row in json_lines(found.stdout) if (row["rule"] or "").startswith("ST-")]
    assert [row["offsets_partition"] for row in rows if row["kind"] == "load"] == [0, 0, 1, 1, 2, 2, 3, 3]
    (finding,) = [row for row in rows if row["kind"] == "finding"]
    assert (finding["offsets_partition"], finding["detail"]["offsets_partitions"]) == (None, [0, 1, 2, 3])
    assert finding["releases"] == ["4.4.0", "4.3.1"]


@pytest.mark.parametrize("name", ["id-missing", "folder-lost-and-found", "high-watermarks-of-zeros", "meta-missing"])
def test_commands_say_it_and_end_with_3(name: str, bases: dict[str, Path], tmp_path: Path) -> None:
    """`check`, `compact --as-broker` and `rebuild` have one verdict, and `compact` says what a broker would do."""
    (data,) = made(name, bases["4.3.1"], tmp_path)
    runner = CliRunner()
    asked = (("check", "--loads-on", "4.3.1"), ("compact", "--as-broker"), ("rebuild",), ("compact",))
    checked, served, rebuilt, read = (runner.invoke(main, [*words, str(data), "-o", "jsonl"]) for words in asked)
    assert [one.exit_code for one in (checked, served, rebuilt)] == [3, 3, 3]
    loads = {row["offsets_partition"]: row for row in json_lines(checked.stdout) if row["kind"] == "load"}
    assert loads[3]["served"] == "nothing"
    assert loads[3]["rule"].startswith("ST-")
    assert not [row for row in json_lines(served.stdout) if row["offsets_partition"] == 3]
    verdict = json.loads(rebuilt.stdout)["loads"]["3"]
    assert (verdict["ok"], verdict["rule"][:3]) == (False, "ST-")
    assert len(list(json_lines(read.stdout))) == 8
    assert f": {verdict['rule']}: " in read.stderr


def test_a_repaired_folder_gets_the_topic_id_of_the_metadata_beside_it(bases: dict[str, Path], tmp_path: Path) -> None:
    """Without it the broker would put the folder aside (ST-7)."""
    sound, changed = bases["4.3.1"], made("all-ids-of-another-cluster", bases["4.3.1"], tmp_path)[0]
    for command in ("repair", "clean"):
        result = CliRunner().invoke(main, [command, str(changed), "--to", str(tmp_path / command)])
        assert result.exit_code in (0, 3), result.stderr
        for folder in (tmp_path / command).glob("__consumer_offsets-*"):
            wanted = (sound / folder.name / "partition.metadata").read_text().strip()
            assert (folder / "partition.metadata").read_text().strip() == wanted
