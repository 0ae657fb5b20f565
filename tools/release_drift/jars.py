"""The jars of a Kafka release: fetched from Maven Central once, and what stands in them without starting a JVM."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from offsets_log.kafka_releases import NEWEST, KafkaRelease, row_of, version_of
from tests.coordinator.broker import NotAvailableError, download
from tests.shared_files import cached

Document = dict[str, Any]
ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-streams", "connect-runtime")
LOGGING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3")
_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OF_KAFKA = re.compile(r"(kafka|connect|trogdor)[-_].*")


@dataclass(frozen=True)
class Jars:
    """The jars of one release.

    Attributes:
        folder: holds all of them, others that they need too.
        version: of the release.
    """

    folder: Path
    version: str

    @property
    def row(self) -> KafkaRelease:
        """What is known of the release."""
        return row_of(version_of(self.version))

    @property
    def is_newest(self) -> bool:
        """Whether none is known that is newer: of an older one tables say more than it has."""
        return self.row is NEWEST

    @cached_property
    def kafkas(self) -> tuple[Path, ...]:
        """The jars that were built with this release, by name."""
        ending = f"-{self.version}.jar"
        return tuple(
            path
            for path in sorted(self.folder.iterdir())
            if path.name.endswith(ending) and _OF_KAFKA.fullmatch(path.name.removesuffix(ending) + "-")
        )

    @cached_property
    def messages(self) -> dict[str, tuple[str, Document]]:
        """Name of a message → its jar without the version, and its description."""
        return {document["name"]: (module, document) for module, document in self._documents()}

    def _documents(self) -> Iterator[tuple[str, Document]]:
        for path in self.kafkas:
            with zipfile.ZipFile(path) as jar:
                for name in jar.namelist():
                    if (name.endswith(".json") and "message/" in name) or re.match(r"common/metadata/.*\.json", name):
                        yield path.name.removesuffix(f"-{self.version}.jar"), description(jar.read(name))

    @cached_property
    def classes(self) -> dict[str, frozenset[tuple[str, int]]]:
        """Name of a top class → its class files with their checksums, in whatever jar they are.

        Builds are reproducible: equal code has equal checksums. What Kafka generates from messages, and what others
        wrote, is not among them.
        """
        found: dict[str, set[tuple[str, int]]] = {}
        for path in self.kafkas:
            with zipfile.ZipFile(path) as jar:
                for entry in jar.infolist():
                    if entry.filename.endswith(".class") and _is_written(entry.filename):
                        top = entry.filename.removesuffix(".class").partition("$")[0].replace("/", ".")
                        found.setdefault(top, set()).add((entry.filename, entry.CRC))
        return {name: frozenset(files) for name, files in found.items()}


def description(text: bytes) -> Document:
    """Parse Kafka's description of a message, which is JSON with comments."""
    found: Document = json.loads(_TEXT_OR_COMMENT.sub(r"\1", text.decode()))
    return found


def _is_written(name: str) -> bool:
    return name.startswith(("org/apache/kafka/", "kafka/")) and not re.search(
        r"/(shaded|generated)/|common/(message|metadata)/", name
    )


def jars_of(version: str, folder: Path | None = None) -> Jars:
    """Return the jars of a release, fetched if they are not on this machine.

    Args:
        folder: where they are; None for the user's cache folder.

    Raises:
        NotAvailableError: they are not in the folder, or cannot be fetched.
    """
    named = f"kafka-clients-{version}.jar"
    if folder is None:
        wanted = (*(("org.apache.kafka", name, version) for name in ARTIFACTS), LOGGING)
        folder = download(cached(f"release-{version}"), wanted)
    if not (folder / named).exists():
        raise NotAvailableError(f"there is no {named} in {folder}: give KAFKA= the version that its jars are named by")
    return Jars(folder, version)
