"""The jars of a Kafka release: fetched from Maven Central once, and what stands in them without starting a JVM."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from offsets_log.kafka_releases import NEWEST, KafkaRelease, row_of, version_of

Document = dict[str, Any]
ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-streams", "connect-runtime")
LOGGING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3")
DOWNLOAD_SECONDS = 600
_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OF_KAFKA = re.compile(r"(kafka|connect|trogdor)[-_].*")


class NotAvailableError(Exception):
    """Why there is nothing to compare with, in one line."""


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
        folder = Path.home() / ".cache" / "offsets-log" / f"release-{version}"
        if not (folder / named).exists():
            _fetch(version, folder)
    if not (folder / named).exists():
        raise NotAvailableError(f"there is no {named} in {folder}: give KAFKA= the version that its jars are named by")
    return Jars(folder, version)


def _fetch(version: str, folder: Path) -> None:
    """Fill a folder from Maven Central; of several processes that do so at once, one leaves its own."""
    if shutil.which("mvn") is None:
        raise NotAvailableError(f"Kafka's jars are not in {folder}, and there is no mvn to fetch them")
    wanted = (*(("org.apache.kafka", name, version) for name in ARTIFACTS), LOGGING)
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in wanted
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        (Path(work) / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
        try:
            subprocess.run(command, cwd=work, check=True, timeout=DOWNLOAD_SECONDS, capture_output=True)
        except (subprocess.SubprocessError, OSError):
            raise NotAvailableError(f"mvn cannot fetch Kafka {version} from Maven Central") from None
        with contextlib.suppress(OSError):
            (Path(work) / "libs").rename(folder)
