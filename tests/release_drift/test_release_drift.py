"""The newest known release has no drift; of altered jars each alteration is told, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from offsets_log.kafka_releases import NEWEST
from tests.coordinator.broker import NotAvailableError
from tests.release_drift.made_up import GROUP, MESSAGE, Changes, altered, constant, described, next_release
from tools.release_drift.__main__ import known_before, main
from tools.release_drift.findings import Cap, Finding, read_caps, uncapped
from tools.release_drift.jars import Jars, jars_of
from tools.release_drift.steps import STEPS

pytestmark = pytest.mark.kafka

QUICK = ("messages", "errors", "settings", "features", "vectors", "classes")
"""Steps without a broker; what the others compare, recordings in the tests hold for this release."""
VERSION = known_before(f"{NEWEST.line[0]}.{NEWEST.line[1]}.0")


@pytest.fixture(scope="module")
def newest() -> Jars:
    try:
        return jars_of(VERSION)
    except NotAvailableError as reason:
        pytest.skip(f"no jars: {reason}")


@cache
def found(step: str, jars: Jars, known: Jars) -> dict[str, Finding]:
    """Line → finding."""
    return {row.what: row for row in uncapped(step, STEPS[step].run(jars, known), read_caps(), tells_idle=False)}


def altered_only(step: str, made: Jars, newest: Jars) -> dict[str, Finding]:
    """What is told of altered jars and not of the real ones."""
    real = found(step, newest, newest)
    return {what: row for what, row in found(step, made, newest).items() if what not in real}


def test_the_newest_known_release_has_no_drift(newest: Jars, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([newest.version, "--steps", ",".join(QUICK)]) == 0
    assert capsys.readouterr().out == ""


TABLES = "offsets_log/kafka_releases.py"


def test_a_made_up_release(newest: Jars, tmp_path: Path) -> None:
    """A field, a record type and an API's version more: as `docs/new-release.md` goes through it."""
    major, minor = NEWEST.line
    made = next_release(newest, tmp_path / "jars", f"{major}.{minor + 1}.0")
    messages = {what: (row.details, row.place) for what, row in altered_only("messages", made, newest).items()}
    api = "offsets_log/protocol/list_groups.py"
    tag = "ConsumerGroupMetadataValue version 0: LastAssignor string, may be null, tag 1, default None is in no table"
    assert messages == {
        tag: ((), "offsets_log/messages/consumer_group.py"),
        "ListGroupsRequest version 6 is in no table": (("IncludeHidden bool",), api),
        "ListGroupsResponse version 6 is in no table": ((), api),
        "ListGroups goes up to version 6, not 5": ((), TABLES),
        "record 24 ConsumerGroupQuotaKey is in no table": (
            ("ConsumerGroupQuotaKey, versions 0:", "  GroupId string"), ""
        ),
        "record 24 ConsumerGroupQuotaValue is in no table": (
            ("ConsumerGroupQuotaValue, versions 0:", "  MaxMembers int32"), ""
        ),
    }  # fmt: skip
    assert altered_only("features", made, newest).keys() == {f"release {made.version} is in no row"}
    assert altered_only("classes", made, newest) == {}


Edit = Callable[[dict[str, Any]], None]


def edited(name: str, **changes: object) -> Edit:
    """A field described otherwise."""

    def change(document: dict[str, Any]) -> None:
        next(field for field in document["fields"] if field["name"] == name).update(changes)

    return change


ZONE = {"name": "Zone", "type": "string", "versions": "0"}
EDITS: dict[str, tuple[str, Edit]] = {
    "GroupMetadataValue": ("versions 0-4: generation has type int64, not int32", edited("generation", type="int64")),
    "OffsetCommitValue": ("version 4: topicId has tag 3, not 0", edited("topicId", tag=3)),
    "StreamsGroupMemberMetadataValue": ("version 0: RackId may not be null", edited("RackId", nullableVersions="none")),
    "StreamsGroupTopologyValue": (
        "version 0: not flexible", lambda document: document.update(flexibleVersions="none"),
    ),
    "ConsumerGroupMemberMetadataValue": (
        "version 0: RebalanceTimeoutMs has default -2, not -1", edited("RebalanceTimeoutMs", default=-2),
    ),
    "ShareGroupMetadataValue": ("has number 40, not 11", lambda document: document.update(apiKey=40)),
    "GroupMetadataKey": ("version 0: Zone string is in no table", lambda document: document["fields"].append(ZONE)),
    "StreamsGroupCurrentMemberAssignmentValue": (
        "version 0: the fields are in another order", lambda document: document["fields"].reverse(),
    ),
}  # fmt: skip
"""Message → what is told of it, and how it was changed."""


def test_what_differs_in_messages(newest: Jars, tmp_path: Path) -> None:
    changes: Changes = {GROUP: {f"{MESSAGE}/{name}.json": described(edit) for name, (_, edit) in EDITS.items()}}
    made = altered(newest, tmp_path / "jars", changes)
    assert altered_only("messages", made, newest).keys() == {f"{name} {told}" for name, (told, _) in EDITS.items()}


def test_enums_and_settings(newest: Jars, tmp_path: Path) -> None:
    log = "org/apache/kafka/storage/internals/log"
    changes: Changes = {
        "kafka-clients": {
            "org/apache/kafka/common/protocol/Errors.class": constant("GROUP_DELETION_FAILED", "GROUP_NOT_DELETED"),
            "org/apache/kafka/common/record/internal/ControlRecordType.class": constant("KRAFT_VOTERS", "VOTERS"),
        },
        "kafka-server-common": {
            "org/apache/kafka/server/common/MetadataVersion.class": constant("4.5", "4.6"),
        },
        "kafka-storage": {
            f"{log}/LogConfig.class": constant("segment.jitter.ms", "segment.jitter.minutes"),
            f"{log}/CleanerConfig.class": lambda data: data.replace(b"\3\0\x08\0\0", b"\3\0\x08\0\1"),
        },
    }
    made = altered(newest, tmp_path / "jars", changes)
    assert altered_only("errors", made, newest).keys() == {
        "error 134 is GROUP_NOT_DELETED, not GROUP_DELETION_FAILED",
        "control record type 6 is VOTERS, not KRAFT_VOTERS",
    }
    assert altered_only("settings", made, newest).keys() == {
        "topic setting segment.jitter.minutes is in no table",
        "broker setting log.cleaner.io.buffer.size has default 524289, not 524288",
    }
    assert altered_only("features", made, newest).keys() == {"metadata version 34 is 4.6-IV0, not 4.5-IV0"}


def test_a_class_with_other_code(newest: Jars, tmp_path: Path) -> None:
    """Not one with other checksums alone: a text that no instruction names is no code."""
    loader = "org/apache/kafka/coordinator/common/runtime/CoordinatorLoaderImpl.class"
    offsets = "org/apache/kafka/coordinator/group/OffsetMetadataManager.class"
    changes: Changes = {
        "kafka-coordinator-common": {loader: constant("Coordinator loader is closed.", "It is closed.")},
        GROUP: {offsets: constant("OffsetMetadataManager.java", "Other.java")},
    }
    rows = altered_only("classes", altered(newest, tmp_path / "jars", changes), newest)
    assert rows.keys() == {"class org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl has changed"}
    changed, rules, places = rows.popitem()[1].details
    assert changed.startswith("changed: ")
    assert "J-1" in rules.split(", ")
    assert "offsets_log/broker/written_offsets.py" in places


def test_what_its_own_classes_do_not_write(newest: Jars, tmp_path: Path) -> None:
    converter = "org/apache/kafka/coordinator/group/generated/GroupMetadataValueJsonConverter.class"
    changes: Changes = {GROUP: {converter: constant("generation", "generatiom")}}
    rows = altered_only("vectors", altered(newest, tmp_path / "jars", changes), newest)
    assert rows.keys() == {f"GroupMetadataValue version {n} is not read as it was written" for n in range(5)}


def test_a_cap_that_caps_nothing_is_told() -> None:
    findings = [Finding("API 1 is in no table"), Finding("API 2 is in no table")]
    caps = [Cap("messages", ("API 1 *", "API 3 *"), "why"), Cap("errors", ("API 2 *",), "another step's")]
    assert [row.what for row in uncapped("messages", findings, caps)] == [
        "API 2 is in no table", 'the cap "API 3 *" caps nothing any more',
    ]  # fmt: skip
    assert all(cap.reason and cap.step in STEPS for cap in read_caps())


def test_a_release_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([VERSION, "--jars", str(tmp_path)]) == 2
    assert f"there is no kafka-clients-{VERSION}.jar in {tmp_path}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([VERSION, "--steps", "messages,nothing"])
    with pytest.raises(SystemExit):
        main(["4.2.0"])
