"""Releases with the rules by which their coordinators load: ``3.9.1`` has those of ``RELEASES["3.4.1"]``."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.kafka_releases import KafkaRelease, Version, version_of
from offsets_log.release_names import AskedRelease, release_asked
from offsets_log.replay.profile import MODERN, PROFILES, RELEASES, Profile


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was asked for, with one of its coordinators.

    Attributes:
        asked: the release itself.
        rules: the entry of `RELEASES` whose rules it has.
    """

    asked: AskedRelease
    rules: str

    @property
    def name(self) -> str:
        """Its name in verdicts, which says if its rules are those of an older one, not verified."""
        return self.asked.shown

    @property
    def version(self) -> Version:
        """Four numbers."""
        return self.asked.version

    @property
    def row(self) -> KafkaRelease:
        """What is known of it."""
        return self.asked.row

    @property
    def profile(self) -> Profile:
        """The profile with its rules."""
        return RELEASES[self.rules]

    @property
    def other_coordinator(self) -> str | None:
        """The name of the same release with its other coordinator, in 3.7 to 3.9; None of any other."""
        if self.row.scala is None or self.row.java is None:
            return None
        name = self.asked.name
        return name.removesuffix("-java") if self.asked.is_preview else f"{name}-java"

    @property
    def reads_large_batches(self) -> bool:
        """Whether the load buffer grows for larger batches (``L-6``)."""
        return bool(self.row.load["reads_large_batches"])

    @property
    def ends_without_data(self) -> bool:
        """Whether a load ends where nothing can be read, though the log goes on (``L-4``)."""
        return bool(self.row.load["ends_without_data"])

    @property
    def serves_what_it_read(self) -> bool:
        """Whether records before the end of a failed load are served: they went straight to the cache (``L-10``)."""
        return bool(self.row.load["serves_what_it_read"])


def release_named(name: str) -> Release:
    """Return the release ``X.Y`` or ``X.Y.Z``; ``-java`` asks for the Java coordinator's preview in 3.7 to 3.9.

    Raises:
        ValueError: there is no such release.
    """
    asked = release_asked(name, previews=True)
    is_java = asked.is_preview or asked.row.scala is None
    entries = (
        entry
        for entry, profile in RELEASES.items()
        if profile.offsets_make_groups != is_java and version_of(entry) <= asked.row.version
    )
    return Release(asked, list(entries)[-1])


def profile_of(asked: str | None) -> str:
    """Return the name of the profile that a release is of, or of a profile itself; the newest one's of None."""
    if asked is None or asked in PROFILES:
        return asked or MODERN.name
    return release_named(asked).asked.profile


def known_releases() -> tuple[Release, ...]:
    """Return one release for each set of rules: the first that had them."""
    return tuple(release_named(name) for name in RELEASES)
