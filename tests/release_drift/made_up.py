"""Jars of a release that never was: those of a real one with some entries changed, or more of them.

    python -m tests.release_drift.made_up FOLDER

fills a folder with jars of a made-up release, the next minor one after the newest that is known: a tagged field, a
record type and a version of an API more. ``make release-drift KAFKA=… JARS=FOLDER`` finds them; nothing else is new.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from offsets_log.kafka_releases import NEWEST
from tools.release_drift.__main__ import known_before
from tools.release_drift.jars import Jars, description, jars_of

Change = Callable[[bytes], bytes]
Changes = Mapping[str, Mapping[str, Change]]
"""Jar without its version → entry → what becomes of its bytes; an entry that is not there begins empty."""


def altered(real: Jars, folder: Path, changes: Changes, version: str | None = None) -> Jars:
    """Fill a folder with a release's jars, some entries changed; the others are links.

    Args:
        version: what the release is called; None for the same name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    version = version or real.version
    kafkas = {path.name: path.name.removesuffix(f"-{real.version}.jar") for path in real.kafkas}
    for path in real.folder.glob("*.jar"):
        module = kafkas.get(path.name)
        place = folder / (path.name if module is None else f"{module}-{version}.jar")
        if module in changes:
            _rewrite(path, place, changes[module])
        else:
            place.symlink_to(path)
    return Jars(folder, version)


def _rewrite(path: Path, place: Path, changes: Mapping[str, Change]) -> None:
    with zipfile.ZipFile(path) as jar, zipfile.ZipFile(place, "w") as made:
        for name in (*jar.namelist(), *(name for name in changes if name not in jar.NameToInfo)):
            data = jar.read(name) if name in jar.NameToInfo else b""
            made.writestr(name, changes[name](data) if name in changes else data)


def described(change: Callable[[dict[str, Any]], None]) -> Change:
    """A change of a message's description."""

    def changed(data: bytes) -> bytes:
        document = description(data)
        change(document)
        return json.dumps(document).encode()

    return changed


def written(document: dict[str, Any]) -> Change:
    """A description that there was not."""
    return lambda _: json.dumps(document).encode()


def constant(old: str, new: str) -> Change:
    """A change of a text among a class's constants, which must hold it once."""

    def changed(data: bytes) -> bytes:
        before, after = (b"\1" + len(text.encode()).to_bytes(2) + text.encode() for text in (old, new))
        assert data.count(before) == 1, f"{old!r} is there {data.count(before)} times"
        return data.replace(before, after)

    return changed


GROUP = "kafka-group-coordinator"
MESSAGE = "common/message"


def next_release(real: Jars, folder: Path, version: str) -> Jars:
    """A release with a tagged field of ConsumerGroupMetadata, a record type 24, and ListGroups one version higher."""

    def more_states(document: dict[str, Any]) -> None:
        last = int(document["validVersions"].rpartition("-")[2]) + 1
        document["validVersions"] = f"0-{last}"
        field = {"name": "IncludeHidden", "type": "bool", "versions": f"{last}+", "default": "false"}
        if document["type"] == "request":
            document["fields"].append(field)

    def assignor(document: dict[str, Any]) -> None:
        tag = 1 + max((int(field.get("tag", -1)) for field in document["fields"]), default=-1)
        field = {"name": "LastAssignor", "type": "string", "versions": "0+", "taggedVersions": "0+", "tag": tag}
        document["fields"].append(field | {"nullableVersions": "0+", "default": "null"})

    name = "ConsumerGroupQuota"
    key = {"apiKey": 24, "type": "coordinator-key", "name": f"{name}Key", "validVersions": "0"}
    key |= {"flexibleVersions": "none", "fields": [{"name": "GroupId", "type": "string", "versions": "0"}]}
    value = {"apiKey": 24, "type": "coordinator-value", "name": f"{name}Value", "validVersions": "0"}
    value |= {"flexibleVersions": "0+", "fields": [{"name": "MaxMembers", "type": "int32", "versions": "0+"}]}
    changes: Changes = {
        GROUP: {
            f"{MESSAGE}/ConsumerGroupMetadataValue.json": described(assignor),
            f"{MESSAGE}/{name}Key.json": written(key),
            f"{MESSAGE}/{name}Value.json": written(value),
        },
        "kafka-clients": {
            f"{MESSAGE}/ListGroupsRequest.json": described(more_states),
            f"{MESSAGE}/ListGroupsResponse.json": described(more_states),
        },
    }
    return altered(real, folder, changes, version)


if __name__ == "__main__":
    newest = known_before(f"{NEWEST.line[0]}.{NEWEST.line[1]}.0")
    made = next_release(jars_of(newest), Path(sys.argv[1]), f"{NEWEST.line[0]}.{NEWEST.line[1] + 1}.0")
    sys.stdout.write(f"make release-drift KAFKA={made.version} JARS={made.folder}\n")
