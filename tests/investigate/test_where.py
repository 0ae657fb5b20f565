"""`where` against Kafka's own ``partitionFor`` (vectors) and against the folders that brokers put groups in."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.replay.partition_for import partition_for
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.conftest import VECTORS, json_lines, read_json
from tests.investigate.test_groups import folder_of
from tests.replay.test_compact_recordings import Recording

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log" / "__consumer_offsets-3"


def run(*arguments: object, stdin: bytes | str = b"") -> Result:
    return CliRunner().invoke(main, ["where", *map(str, arguments)], input=stdin, catch_exceptions=False)


def vectors() -> list[dict[str, Any]]:
    return list(json_lines(lzma.decompress((VECTORS / "partition-for.jsonl.xz").read_bytes()).decode()))


def test_json_lines_are_answered_as_kafka_answers() -> None:
    given = lzma.decompress((VECTORS / "partition-for.jsonl.xz").read_bytes())
    result = run("-", "--input-format", "jsonl", stdin=given)
    assert result.exit_code == 0
    assert list(json_lines(result.stdout)) == [
        {"group": row["group"], "offsets_partition": row["partition"]} for row in vectors()
    ]


def test_lines_are_split_at_line_feeds_only_and_nothing_is_stripped() -> None:
    names = ["a", "", " a ", "b\r", "tab\t", "\u2028", "\x0b\x0c\x1c\x85", "😀", ""]
    result = run("-", "--partitions", 50, stdin="\n".join(names) + "\n")
    assert list(json_lines(result.stdout)) == [
        {"group": name, "offsets_partition": partition_for(name, 50)} for name in names
    ]
    assert run("-", stdin=b"").stdout == ""
    assert [row["group"] for row in json_lines(run("-", stdin=b"\n").stdout)] == [""]
    assert [row["group"] for row in json_lines(run("-", stdin=b"\nx").stdout)] == ["", "x"]


def test_names_of_the_command_line_in_their_order() -> None:
    fifty = [row for row in vectors() if row["partitions"] == 50][:20]
    found = list(json_lines(run("--", *(row["group"] for row in fifty)).stdout))
    assert [row["offsets_partition"] for row in found] == [row["partition"] for row in fifty]


def test_keys_are_placed_as_kafkas_producer_places_them() -> None:
    cases = list(json_lines(lzma.decompress((VECTORS / "murmur2.jsonl.xz").read_bytes()).decode()))
    asked = [case for case in cases if case["key_hex"] and bytes.fromhex(case["key_hex"]).isascii()][:10]
    assert len(asked) == 10
    for case in asked:
        key = bytes.fromhex(case["key_hex"]).decode()
        if "\0" not in key:
            (row,) = json_lines(run(f"--key={key}", "--partitions", case["partitions"]).stdout)
            assert row == {"key": key, "partition": case["partition"]}
    assert run("--key", "k", "group").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (("a",), b"", "__consumer_offsets has 50 partitions; --partitions N"),
        (("-",), b"a\n", "__consumer_offsets has 50 partitions; --partitions N"),
        (("a", "--partitions", 50), b"", None),
        (("a", "--offsets-topic-partitions", 50), b"", None),
        (("a", "-q"), b"", None),
        (("-", "--input-format", "jsonl"), b'{"group":"a","partitions":50}\n', None),
        (("-", "--input-format", "jsonl"), b'{"group":"b"}\n{"group":"a","partitions":50}\n', "50 partitions"),
        (("--key", "k"), b"", "the topic has 50 partitions; --topic-partitions N"),
        (("--key", "k", "--topic-partitions", 50), b"", None),
        (("--of", SAMPLE), b"", None),
    ],
)
def test_what_it_assumes_is_said(arguments: tuple[object, ...], stdin: bytes, told: str | None) -> None:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0
    assert list(json_lines(result.stdout))
    assert ("assuming" in result.stderr) == (told is not None)
    assert told is None or told in result.stderr


def test_a_copy_shows_how_many_partitions_there_are(tmp_path: Path) -> None:
    """By the cluster's metadata beside the log, else by its groups; an option counts more; a name is no copy."""
    by_metadata, by_groups = str(SAMPLE.parents[2] / "kafka-4.3-data-directory"), SAMPLE.parent
    for copy, count, words in ((by_metadata, 8, "the cluster's metadata says"), (by_groups, 4, "the groups here show")):
        result = run("billing", copy)
        assert list(json_lines(result.stdout)) == list(json_lines(run("billing", "--partitions", count).stdout))
        assert f"{count} partitions, as {words}" in result.stderr
        assert run("-", copy, stdin=b"billing\n").stdout == result.stdout
    assert run("billing", by_metadata, "--partitions", 5).stdout == run("billing", "--partitions", 5).stdout
    lone = tmp_path / "__consumer_offsets-0"
    lone.mkdir()
    (lone / "00000000000000000000.log").write_bytes(b"")
    assert "assuming that __consumer_offsets has 50" in run("billing", lone).stderr
    assert run(by_metadata).exit_code == 2


def test_partitions_of_the_keys_topic_have_an_option_of_their_own() -> None:
    (row,) = json_lines(run("--key", "k", "--topic-partitions", 7).stdout)
    assert [row] == list(json_lines(run("--key", "k", "--partitions", 7).stdout)), "the older spelling"
    assert run("a", "--topic-partitions", 7).exit_code == 2


def test_malformed_utf_8_is_read_as_the_broker_reads_it() -> None:
    """``B-7``."""
    (row,) = json_lines(run("-", stdin=b"a\xed\xa0\x80b").stdout)
    assert row == {"group": "a\ufffdb", "offsets_partition": partition_for("a\ufffdb", 50), "group_base64": "Ye2ggGI="}


@pytest.mark.parametrize(
    "line",
    ["x", "1", "[]", "{}", '{"group":1}', '{"group":"a","partitions":0}', '{"group":"a","partitions":true}',
     '{"group":"\\ud800"}', "[" * 100_000, '{"group":"a","partitions":"50"}', "\xff"],
)  # fmt: skip
def test_other_json_lines_are_one_error_with_their_number(line: str) -> None:
    result = run("-", "--input-format", "jsonl", stdin=b'{"group":"a"}\n' + line.encode("latin-1") + b"\n")
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert len(result.stderr.strip().split("\n")) == 1


def test_what_is_asked_without_a_group_is_wrong_usage() -> None:
    assert run().exit_code == 2
    assert run("a", "--partitions", 0).exit_code == 2


def test_no_kernel_and_no_arrow_is_loaded_for_it() -> None:
    script = (
        "import sys; sys.argv = ['offsets-log', 'where', 'g']\n"
        "from offsets_log_cli.main import main\n"
        "main(standalone_mode=False)\n"
        "assert not {'numba', 'numpy', 'pyarrow', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups"])
def test_groups_that_go_with_a_partition_are_those_the_broker_answers_for(name: str, recording: Recording) -> None:
    folder = recording(name)
    answer = read_json(folder / "answers" / "restart.json")
    partitions = len(answer["end_offsets"])
    lost = 1
    found = list(json_lines(run("--of", folder / "log" / f"__consumer_offsets-{lost}").stdout))
    expected = {
        group["group"]: group["state"]
        for group in answer["groups"]
        if group["type"] is not None and partition_for(group["group"], partitions) == lost
    }
    assert {row["group"]: row["state"] for row in found} == expected
    assert expected
    offsets = [row["group"] for row in answer["offsets"]]
    assert all(row["offsets"] == offsets.count(row["group"]) for row in found)
    one = found[0]["group"]
    assert [row["group"] for row in json_lines(run("--of", folder / "log", "--", one, "nobody").stdout)] == [one]


def test_quiet_says_nothing(recording: Recording) -> None:
    result = run("--of", recording("kafka-2.8") / "log", "--quiet")
    assert result.stdout
    assert result.stderr == ""


def test_of_lists_the_groups_of_the_coordinator_that_is_named(tmp_path: Path) -> None:
    """A Scala coordinator serves offsets again that a removed group had (``L-34``)."""
    log = LogBuilder().commit(5).group(generation=2).group(gone=True).commit(7, group="h")
    folder = folder_of(log, tmp_path)
    classic = run("--of", folder, "--profile", "classic", "-o", "jsonl")
    assert [row["group"] for row in json_lines(classic.stdout)] == ["g", "h"]
    assert "by the rules of Kafka up to 3.9" in classic.stderr
    modern = run("--of", folder, "-o", "jsonl")
    assert [row["group"] for row in json_lines(modern.stdout)] == ["h"]
    assert "profile" not in modern.stderr, "the records are as only releases with a Java coordinator write them"
