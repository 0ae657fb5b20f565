"""The console formatters' lines and objects: the last word on every key, as the text has it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.dumps.formats import build_segments, guess_format
from tests.cli.runs import run
from tests.conftest import RECORDINGS
from tests.dumps.runs import Row, captured, rows
from tests.sizes import examples

Recordings = Callable[[str], Path]
Key = tuple[str, str, int]

CAPTURED = (
    ("0.9.0.1", "kafka-0.10.2"),
    ("0.10.2.2", "kafka-0.10.2"),
    ("1.1.1", "kafka-1.1"),
    ("2.4.1", "kafka-1.1"),
    ("2.8.2", "kafka-2.8"),
    ("3.7.2", "kafka-2.8"),
)


def last_words(records: list[Row]) -> dict[Key, tuple[int, str, int]]:
    """The last value of every key in the order of records, tombstones observed, transactions not."""
    found: dict[Key, tuple[int, str, int]] = {}
    for record in records:
        if record["is_control"] or record["record_type"] not in (0, 1):
            continue
        key = (record["key"]["group"], record["key"]["topic"], record["key"]["partition"])
        found.pop(key, None)
        if (value := record["value"]) is not None:
            found[key] = (value["offset"], value["metadata"], value["commitTimestamp"])
    return found


def told(found: list[Row]) -> dict[Key, tuple[int, str, int]]:
    return {
        (row["group"], row["topic"], row["partition"]): (
            row["committed_offset"],
            row["metadata"],
            row["commit_timestamp_ms"],
        )
        for row in found
    }


@pytest.mark.parametrize(("release", "name"), CAPTURED)
def test_lines_of_offsets(release: str, name: str, recording: Recordings) -> None:
    text = captured(f"offsets-formatter-{release}-of-{name}")
    found = rows("compact", "--input-format", "formatter", "-", stdin=text)
    assert told(found) == last_words(rows("decode", recording(name) / "log"))
    assert {(row["record_offset"], row["topic_id"], row["offsets_partition"]) for row in found} == {(None, None, None)}
    assert guess_format(text) == "formatter"


@pytest.mark.parametrize(("release", "name"), CAPTURED[1:])
def test_lines_of_groups(release: str, name: str, recording: Recordings) -> None:
    text = captured(f"groups-formatter-{release}-of-{name}")
    found = {row["group"]: row for row in rows("rebuild", "-", "--table", "members", stdin=text)}
    log = recording(name) / "log"
    expected = {row["group"]: row for row in rows("rebuild", log, "--table", "members")}
    assert found.keys() == expected.keys()
    assert found
    for group, row in found.items():
        names = ["member_id", "group_instance_id", "client_id", "host", "session_timeout_ms"]
        names += ["rebalance_timeout_ms"] * (release != "0.10.2.2")
        assert [row[name] for name in names] == [expected[group][name] for name in names]
        assert row["assignment"] is row["subscribed_topics"] is None
    groups = {row["group"]: row for row in rows("rebuild", log, "--table", "groups")}
    for row in rows("rebuild", "-", "--table", "groups", stdin=text):
        assert row["protocol_type"] in (groups[row["group"]]["protocol_type"], None)
        assert row["leader"] is row["protocol"] is None
        assert row["generation"] == (None if release == "0.10.2.2" else groups[row["group"]]["generation"])


JSON_RECORDINGS = [name for name in RECORDINGS if name.startswith(("kafka-3.9", "kafka-4"))]


@pytest.mark.parametrize("name", JSON_RECORDINGS)
def test_concatenated_json(name: str, recording: Recordings) -> None:
    folder = recording(name)
    text = gzip.decompress((folder / "answers/console/offsets.json.gz").read_bytes())
    found = rows("compact", "-", stdin=text)
    assert told(found) == last_words(rows("decode", folder / "log"))
    ours = {
        (row["group"], row["topic"], row["partition"], row["record_offset"]): row
        for row in rows("compact", folder / "log", "--profile", "modern")
    }
    same = {(key[:3], value["leader_epoch"], value["topic_id"]) for key, value in ours.items()}
    shown = {((row["group"], row["topic"], row["partition"]), row["leader_epoch"], row["topic_id"]) for row in found}
    assert len(shown & same) >= len(ours) * 3 // 4  # others were committed in transactions


@pytest.mark.parametrize("width", [60, 80, 132])
def test_objects_that_a_console_has_folded(width: int, recording: Recordings) -> None:
    """Breaks within words and numbers, whether objects begin lines or follow each other."""
    folder = recording("kafka-4.3-mixed")
    text = gzip.decompress((folder / "answers/console/offsets.json.gz").read_bytes()).decode()
    for apart in (text, text.replace('{"key"', '\n{"key"')):
        lines = apart.split("\n")
        folded = "\n".join(line[at : at + width] for line in lines for at in range(0, len(line) or 1, width))
        assert rows("compact", "-", stdin=folded.encode()) == rows("compact", "-", stdin=text.encode())
    cut = text.index('{"key"', len(text) // 2)
    broken = text[: cut - 9] + "\n" + text[cut:]
    result = run("compact", "-", stdin=broken.encode())
    assert (result.exit_code, result.stderr.count("it is no JSON")) == (3, 1)


def test_of_which_groups_a_formatter_is_silent(recording: Recordings) -> None:
    """Its classes print one kind of groups each."""
    folder = recording("kafka-4.3-mixed") / "answers/console"
    words = "prints classic groups alone"
    assert words in run("groups", "-", stdin=gzip.decompress((folder / "groups.json.gz").read_bytes())).stderr
    assert words not in run("compact", "-", stdin=gzip.decompress((folder / "offsets.json.gz").read_bytes())).stderr


@pytest.mark.parametrize("name", JSON_RECORDINGS)
def test_members_in_json(name: str, recording: Recordings) -> None:
    folder = recording(name)
    text = gzip.decompress((folder / "answers/console/groups.json.gz").read_bytes())
    members = ("--table", "members", "--profile", "modern")
    expected = {row["member_id"]: row for row in rows("rebuild", folder / "log", *members)}
    for row in rows("rebuild", "-", *members, stdin=text):
        if row["member_id"] in expected and expected[row["member_id"]]["member_epoch"] is None:
            assert row == expected[row["member_id"]]


def test_0_8_2(recording: Recordings) -> None:
    folder = recording("kafka-0.8.2")
    text = gzip.decompress((folder / "answers/console-formatter.txt.gz").read_bytes())
    lines = text.split(b" ERROR ")[0].rsplit(b"\n", 1)[0]  # at the end it was left waiting
    assert told(rows("compact", "-", stdin=lines)) == told(rows("compact", folder / "log"))


def test_markers_are_said_to_be_missing() -> None:
    result = run("compact", "-", stdin=b"[g,t,0]::OffsetAndMetadata[1,NO_METADATA,5]\n")
    assert "no transaction markers are told" in result.stderr
    assert "the answer has null for: record_offset, topic_id\n" in result.stderr


def test_damage_has_its_line_and_the_rest_goes_on() -> None:
    good = '{"key":{"type":1,"data":{"group":"%s","topic":"t","partition":0}},"value":null}'
    value = {"version": 3, "data": {"offset": 1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 2}}
    last = json.loads(good % "b") | {"value": value}
    text = good % "a" + '\n{"key":{"type":1,"da' + good % "c" + "\n[g,t,x]::NULL\n" + json.dumps(last)
    result = run("compact", "--input-format", "formatter", "-", "-o", "jsonl", stdin=text.encode())
    assert (result.exit_code, json.loads(result.stdout)["group"]) == (3, "b")
    assert "position 2: it is no JSON" in result.stderr
    assert "position 3: it is no formatter's line" in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        '{"key":{"type":99,"data":"unknown"},"value":null}',
        '{"key":{"version":1,"data":{"group":"g","topic":"t","partition":0}},"value":{"version":9,"data":"unknown"}}',
        '{"key":{"type":1,"data":{"group":"g","topic":"t"}},"value":null}',
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":"0"}},"value":null}',
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":0,"x":1}},"value":null}',
        '{"key":{"type":true,"data":{}},"value":null}',
        '{"key":[],"value":null}',
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":0}},"value":{"version":3,"data":{"offset":1e3}}}',
        '{"key":{"type":2,"data":{"group":"g"}},"value":{"version":3,"data":{"members":[1]}}}',
        '{"key":' + "[" * 100_000,
        "[g,t,99999999999]::NULL",
        "[g,t,0]::OffsetAndMetadata[99999999999999999999999,,1]",
        "g::GroupMetadata(groupId=g, generation=1, protocolType=None, currentState=Empty, members=Map(x))",
    ],
)
def test_odd_lines_are_damage(text: str) -> None:
    built = build_segments("x", text.encode(), "formatter")
    assert [damage.error.position for damage in built.damages] == [1]
    assert not built.logs()


TEXTS = tuple(f"{kind}-formatter-{release}-of-{name}" for release, name in CAPTURED for kind in ("offsets", "groups"))


@examples(150)
@given(st.sampled_from(TEXTS), st.data())
def test_mutated_lines_are_read_or_damage(name: str, data: st.DataObject) -> None:
    lines = captured(name).split(b"\n")
    start = data.draw(st.integers(0, len(lines) - 1))
    text = bytearray(b"\n".join(lines[start : start + 5]))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    for damage in build_segments("x", bytes(text), "formatter").damages:
        assert damage.error.position


OFFSET = {"version": 3, "data": {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 5}}
GROUP = {
    "version": 3,
    "data": {
        "protocolType": "consumer", "generation": 3, "protocol": None, "leader": None, "currentStateTimestamp": 5,
        "members": [],
    },
}  # fmt: skip


def of_both(offsets: str, groups: str) -> bytes:
    """Objects of both formatters, of groups with names of a letter."""
    keys = [(1, {"group": name, "topic": "t", "partition": 0}, OFFSET) for name in offsets]
    keys += [(2, {"group": name}, GROUP) for name in groups]
    objects = ({"key": {"version": kind, "data": key}, "value": value} for kind, key, value in keys)
    return "".join(map(json.dumps, objects)).encode()


@pytest.mark.parametrize(("offsets", "groups"), [("s", "o"), ("so", "o"), ("abc", "bd"), ("o", "o"), ("o", "op")])
def test_a_group_without_its_record_in_a_text_of_both_is_unknown(offsets: str, groups: str, tmp_path: Path) -> None:
    text = of_both(offsets, groups)
    found = {row["group"]: row for row in rows("groups", "-", stdin=text)}
    unknown = {*offsets} - {*groups}
    assert found.keys() == {*offsets, *groups}
    for name, row in found.items():
        facts = row["type"], row["state"], row["members"]
        assert facts == ((None, None, None) if name in unknown else ("classic", "Empty", 0))
    held = {row["group"]: row["state"] for row in rows("rebuild", "-", "--table", "groups", stdin=text)}
    assert held == {name: row["state"] for name, row in found.items()}
    for command in (("groups", "--now", "1"), ("rescue", "--to", tmp_path / "to")):
        words = run(*command, "-", stdin=text).stderr
        assert ("no record of its own, is unknown" in words) is bool(unknown), command
    readme = (tmp_path / "to" / "README.txt").read_text()
    assert ("Which had some is not told" in readme) is bool(unknown)
    assert ("No group had members then" in readme) is (not unknown)
    expired = run("expire", "-", "--now", "1", stdin=text)
    assert ("what groups without records are" in expired.stderr, expired.exit_code == 1) == (bool(unknown),) * 2


def test_a_rescue_of_both_texts_together(tmp_path: Path) -> None:
    """Lines of members tell no assignment."""
    names = (f"{kind}-formatter-2.8.2-of-kafka-2.8" for kind in ("offsets", "groups"))
    result = run("rescue", "--to", tmp_path / "to", "-", stdin=b"".join(map(captured, names)))
    assert result.exit_code in (0, 3), result.stderr
    assert "groups of which nothing tells whether consumers are running" in (tmp_path / "to/README.txt").read_text()


STATE_KEYS = {
    "__share_group_state": {"groupId": "s", "topicId": "Uj5wn_FqTXirEASvVZRY1w", "partition": 0},
    "__transaction_state": {"transactionalId": "t"},
}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("value", [None, {"version": 0, "data": {"leaderEpoch": 0}}])
@pytest.mark.parametrize("topic", STATE_KEYS)
@pytest.mark.parametrize("name", ["type", "version"])
def test_objects_of_other_topics_are_said_to_be_theirs(topic: str, name: str, value: object, number: int) -> None:
    """The formatters of share groups' states and of transactions (KAFKA-17633) print the same form."""
    other = json.dumps({"key": {name: number, "data": STATE_KEYS[topic]}, "value": value}).encode()
    alone = run("compact", "-", stdin=other * 2)
    assert (alone.exit_code, f"this is another topic, {topic}: no group" in alone.stderr) == (1, True)
    beside = run("compact", "-", stdin=other + of_both("a", "a") + other)
    assert (beside.exit_code, beside.stderr.count(f"2 objects are left out, of another topic: {topic}")) == (0, 1)
    assert beside.stdout == run("compact", "-", stdin=of_both("a", "a")).stdout
    assert run("compact", "-", stdin=other + b'{"key":{"type":1').exit_code == 3
