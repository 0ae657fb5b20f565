"""Find Kafka releases by name, and the rules of each: ``3.9.1`` has those of ``RELEASES["3.4.1"]``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from offsets_log.replay.profile import RELEASES, Profile

NEWEST_MINOR = {0: 11, 1: 1, 2: 8, 3: 9, 4: 3}
"""Major → newest minor of that major."""

FIRST_JAVA = (4, 0, 0, 0)
"""The first release whose only coordinator is the Java one."""

_NAME = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?(-java)?")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was asked for.

    Attributes:
        name: the name that was asked for.
        version: four numbers.
        rules: the entry of `RELEASES` whose rules it has.
    """

    name: str
    version: Version
    rules: str

    @property
    def profile(self) -> Profile:
        """The profile with its rules."""
        return RELEASES[self.rules]

    @property
    def other_coordinator(self) -> str | None:
        """The name of the same release with its other coordinator, in 3.7 to 3.9; None of any other."""
        if not _is_released(self.version, is_preview=True):
            return None
        return self.name.removesuffix("-java") if self.name.endswith("-java") else f"{self.name}-java"

    @property
    def reads_large_batches(self) -> bool:
        """Whether the load buffer grows for larger batches (``L-6``)."""
        return self.version >= (2,)

    @property
    def serves_what_it_read(self) -> bool:
        """Whether records before the end of a failed load are served: they went straight to the cache (``L-10``)."""
        return self.version < (0, 10, 1)


def _parse(name: str) -> tuple[Version, bool] | None:
    """Return (version, whether it is the preview of the Java coordinator); None if it is no release's name."""
    match = _NAME.fullmatch(name)
    return None if match is None else (tuple(int(number or 0) for number in match.groups()[:4]), match[5] is not None)


def _is_released(version: Version, is_preview: bool) -> bool:
    major, minor = version[:2]
    if is_preview:
        return (3, 7) <= (major, minor) <= (3, 9)
    return minor <= NEWEST_MINOR.get(major, -1)


def release_named(name: str) -> Release:
    """Return the release ``X.Y`` or ``X.Y.Z``; ``-java`` asks for the Java coordinator's preview in 3.7 to 3.9.

    Raises:
        ValueError: its rules are not known.
    """
    found = _parse(name)
    if found is not None and _is_released(*found):
        version, is_preview = found
        is_java = is_preview or version >= FIRST_JAVA
        rules = None
        for entry in RELEASES:
            first, entry_is_preview = _parse(entry) or ((), False)
            if first <= version and (entry_is_preview or first >= FIRST_JAVA) == is_java:
                rules = entry
        if rules is not None:
            return Release(name, version, rules)
    raise ValueError(
        f"{name!r} is no release whose rules are known; known are {', '.join(RELEASES)}, "
        "and each stands for the releases up to the next"
    )


def known_releases() -> tuple[Release, ...]:
    """Return one release for each set of rules: the first that had them."""
    return tuple(release_named(name) for name in RELEASES)
