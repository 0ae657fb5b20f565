"""Releases that users name: which row of the table one has, and which never were.

One that is newer than all is answered as the newest that is known, a build before a release (``4.4.0-rc1``) as that
release, and its name then says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.kafka_releases import BEFORE_RELEASE, NEWEST, OLDEST, TABLE, KafkaRelease, Version, row_of, version_of

FIRST_PREVIEW = (3, 7)
"""The line whose preview of the Java coordinator has record layouts and rules of its own."""
NOT_VERIFIED = "not verified"
"""Stands in verdicts by the rules of another release than the one that was asked for."""


@dataclass(frozen=True, slots=True)
class AskedRelease:
    """A release that was asked for by name.

    Attributes:
        name: the name that was asked for.
        is_preview: whether its preview of the Java coordinator is meant.
        is_verified: false if it is newer than what is known of its line, or of all, or a build before a release.
    """

    name: str
    version: Version
    is_preview: bool = False
    is_verified: bool = True

    @property
    def row(self) -> KafkaRelease:
        """What is known of it: the last row at or before it."""
        return row_of(self.version)

    @property
    def is_java(self) -> bool:
        """Whether its coordinator is the Java one, as a preview too."""
        return self.is_preview or self.row.scala is None

    @property
    def profile(self) -> str:
        """The name of its coordinator's profile, in `replay.profile.PROFILES`."""
        if not self.is_java:
            return "classic"
        return "modern-3.7" if self.row.scala is not None and self.row.line == FIRST_PREVIEW else "modern"

    @property
    def era(self) -> str:
        """The name of its era of expiry, in `replay.expiry.ERAS`."""
        return (self.row.java_era if self.is_java else self.row.scala_era) or ""

    @property
    def shown(self) -> str:
        """The name for verdicts, which says whose rules are taken for one that is not known."""
        return self.name if self.is_verified else f"{self.name} (as {self.row.name}, {NOT_VERIFIED})"

    @property
    def doubts(self) -> list[str]:
        """A sentence for the user if it is not verified."""
        is_build = BEFORE_RELEASE.search(self.name) is not None
        what = "a build before a release" if is_build else "newer than the releases that are known here"
        return [] if self.is_verified else [f"{self.name} is {what}: it is answered as {self.row.name}, {NOT_VERIFIED}"]


RULES_OF = {"modern": "Kafka 4", "modern-3.7": "the preview in Kafka 3.7", "classic": "Kafka up to 3.9"}
"""A coordinator's profile → the releases with its rules, in words."""


def rules_in_words(name: str) -> str:
    """Return the releases with a profile's rules, or the one that was asked for by its name."""
    return RULES_OF.get(name, f"Kafka {name}")


def release_asked(name: str, *, previews: bool = False) -> AskedRelease:
    """Return the release ``X.Y`` or ``X.Y.Z``; ``-java`` asks for the Java coordinator's preview in 3.7 to 3.9.

    ``X`` alone is one if it is newer than all that are known. A line that is newer than all, a patch release beyond the
    known ones of its line, and a build before a release have the rules of the row at or before them, not verified.

    Args:
        previews: whether a preview may be asked for.

    Raises:
        ValueError: there is no such release: no name of one, before the first, or a line that never was.
    """
    version, is_preview = version_of(name), name.endswith("-java")
    row = row_of(version)
    known = max((version_of(one.until or one.name) for one in TABLE if one.line == version[:2]), default=None)
    is_new = known is None and version > NEWEST.version
    if "." not in name and not is_new:
        known = None
    has_preview = previews and row.scala is not None and row.java is not None
    if version < OLDEST.version or (known is None and not is_new) or (is_preview and not has_preview):
        also = "; 3.7-java to 3.9-java are previews of the Java coordinator" if previews else ""
        raise ValueError(
            f"{name!r} is no release of Kafka: there are {lines_in_words()}, and what is newer is answered as "
            f"{NEWEST.name}, {NOT_VERIFIED}{also}"
        )
    is_verified = known is not None and version <= known and not BEFORE_RELEASE.search(name)
    return AskedRelease(name, version, is_preview, is_verified)


def lines_in_words() -> str:
    """Return all release lines that there were, a range for each major."""
    by_major: dict[int, list[str]] = {}
    for row in TABLE:
        by_major.setdefault(row.version[0], []).append(".".join(map(str, row.line)))
    by_major[OLDEST.version[0]][0] = OLDEST.name
    return ", ".join(f"{lines[0]} to {lines[-1]}" for lines in by_major.values())
