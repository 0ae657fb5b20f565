"""Records what Kafka's own tools say of a real broker over the offsets partitions of recordings: `tools-4.4.0.json.xz`.

    python -m tests.serving.record_tools FOLDER

FOLDER holds the recordings, unpacked. The broker is asked before members' sessions end. Its topology plugin has no
description any more, as a copy has none.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from offsets_log.log_format.primitives import Uuid
from tests.conftest import read_json
from tests.coordinator.broker import Broker, compiled, jars, quick
from tests.waiting import PATIENCE_S

VERSION = "4.4.0"
HERE = Path(__file__).parent
SAID = HERE / f"tools-{VERSION}.json.xz"
TOOLS = HERE.parent / "data_directories" / "Tools.java"
RECORDINGS = ("kafka-4.4-mixed", "kafka-4.4-modern-groups")
GROUPS, SHARES, STREAMS = (
    "consumer.group.ConsumerGroupCommand",
    "consumer.group.ShareGroupCommand",
    "streams.StreamsGroupCommand",
)
ALL = ("--describe", "--all-groups")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "groups-list": (GROUPS, "--list", "--type"),
    "groups-offsets": (GROUPS, *ALL, "--offsets"),
    "groups-state": (GROUPS, *ALL, "--state"),
    "groups-members": (GROUPS, *ALL, "--members", "--verbose"),
    "get-offsets-earliest": ("GetOffsetShell", "--time", "-2"),
    "get-offsets-latest": ("GetOffsetShell", "--time", "-1"),
    "share-groups-offsets": (SHARES, *ALL, "--offsets", "--verbose"),
    "share-groups-state": (SHARES, *ALL, "--state"),
    "share-groups-members": (SHARES, *ALL, "--members", "--verbose"),
}
"""Name of a recorded text → the tool that said it, and its arguments."""
STREAMS_QUESTIONS: dict[str, tuple[str, ...]] = {
    "streams-groups-list": (STREAMS, "--list"),
    **{
        f"streams-groups-{what}{'-verbose' * len(verbose)}": (STREAMS, *ALL, f"--{what}", *verbose)
        for what in ("state", "members", "offsets")
        for verbose in ((), ("--verbose",))
    },
    "streams-groups-topology": (STREAMS, *ALL, "--topology"),
}
"""The same of the tool of streams groups."""
SETTINGS = {
    "group.streams.topology.description.plugin.class": "NoDescriptions",
    **{
        f"group.{kind}.{bound}session.timeout.ms": 3_600_000
        for kind in ("consumer", "share", "streams")
        for bound in ("", "max.")
    },
}


class MadeTopic(NamedTuple):
    """A topic that a recording's groups know.

    Attributes:
        ends: where each partition ends.
    """

    topic_id: str
    ends: list[int]


def ask(libs: Path, address: str, folder: Path, questions: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """What tools say of the broker at an address."""
    work = [
        "\t".join([f"{folder}/{name}.txt", tool, "--bootstrap-server", address, *arguments])
        for name, (tool, *arguments) in questions.items()
    ]
    command = ["java", *quick(libs), "-Dlog4j2.level=ERROR", "-cp", f"{libs}/*:{compiled(libs, TOOLS)}", "Tools"]
    subprocess.run(command, input="\n".join([*work, ""]).encode(), check=True, timeout=PATIENCE_S, capture_output=True)
    return {name: (folder / f"{name}.txt").read_text() for name in questions}


def questions(recording: Path) -> dict[str, tuple[str, ...]]:
    """What is asked about a recording: of groups by their names, too, if one has none, for which tools fail."""
    found, listed = QUESTIONS | STREAMS_QUESTIONS, _listed(recording)
    if "" not in listed:
        return found
    named = [word for name in listed if name and "\t" not in name for word in ("--group", name)]
    return found | {
        f"{name}-named": (GROUPS, "--describe", *named, *words[1 + len(ALL) :])
        for name, words in QUESTIONS.items()
        if words[: 1 + len(ALL)] == (GROUPS, *ALL)
    }


def _listed(recording: Path) -> list[str]:
    """The groups that the tool of consumer groups lists."""
    groups = read_json(recording / "answers" / "restart.json")["groups"]
    return [row["group"] for row in groups if row["type"] and row["protocol_type"] in ("", "consumer")]


def data_directory(recording: Path, data: Path) -> dict[str, MadeTopic]:
    """Add to a folder the offsets partitions of a recording, and logs without records of the topics that it names.

    They begin at 0, and end some records behind the highest offset that was committed.
    """
    facts, answer = read_json(recording / "recording.json"), read_json(recording / "answers" / "restart.json")
    shutil.copytree(recording / "log", data, dirs_exist_ok=True)
    (offsets_id,) = {_topic_id(folder) for folder in data.glob("__consumer_offsets-*")}
    highest: dict[str, dict[int, int]] = {}
    for row in answer["offsets"]:
        partitions = highest.setdefault(row["topic"], {})
        partitions[row["partition"]] = max(partitions.get(row["partition"], 0), row["committed_offset"])
    found = {}
    for name in sorted({*facts["topics"], *highest}):
        known, told = highest.get(name, {}), facts["topics"].get(name, {})
        count = told.get("partitions", max(known, default=0) + 1)
        made_id = str(Uuid(hashlib.sha256(name.encode()).digest()[:16]))
        found[name] = MadeTopic(told.get("id", made_id), [known.get(n, 0) + n for n in range(count)])
        for number, end in enumerate(found[name].ends):
            folder = data / f"{name}-{number}"
            folder.mkdir()
            (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {found[name].topic_id}")
            for base_offset in {0, end}:
                (folder / f"{base_offset:020}.log").touch()
    for path in data.glob("*-checkpoint"):
        path.unlink()
    return found | {"__consumer_offsets": MadeTopic(offsets_id, [0] * facts["offsets_partitions"])}


def _topic_id(folder: Path) -> str:
    return (folder / "partition.metadata").read_text().split()[-1]


def _record(recording: Path, work: Path) -> dict[str, str]:
    libs = jars(VERSION)
    made = Broker(libs, work, partitions=read_json(recording / "recording.json")["offsets_partitions"])
    topics = data_directory(recording, made.data)
    with made.properties.open("a") as properties:
        properties.writelines(f"{name}={value}\n" for name, value in SETTINGS.items())
    made.class_path += f":{compiled(libs, HERE / 'NoDescriptions.java')}"
    (checkpoint,) = made.data.glob("__cluster_metadata-0/*.checkpoint")
    lines = "".join(f"{name}\t{topic.topic_id}\t{len(topic.ends)}\n" for name, topic in topics.items())
    command = ["java", *quick(libs), "-cp", f"{libs}/*:{compiled(libs, HERE / 'Topics.java')}", "Topics"]
    subprocess.run([*command, str(checkpoint)], input=lines.encode(), check=True, timeout=PATIENCE_S)
    with made.running():
        address, listing = f"127.0.0.1:{made.port}", {"list": (GROUPS, "--list")}
        while len(ask(libs, address, work, listing)["list"].splitlines()) < len(_listed(recording)):
            pass  # it is loading
        return ask(libs, address, work / "said", questions(recording))


def main(recordings: Path) -> None:
    """Make the file."""
    found: dict[str, Any] = {}
    for name in RECORDINGS:
        with tempfile.TemporaryDirectory() as work:
            found[name] = _record(recordings / name, Path(work))
    SAID.write_bytes(lzma.compress(json.dumps(found, indent=1).encode(), preset=9 | lzma.PRESET_EXTREME))
    sys.stdout.write(f"{SAID.name}: {SAID.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
