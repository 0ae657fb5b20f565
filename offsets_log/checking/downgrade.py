"""What an older release makes of a newer cluster, besides its loads: findings of `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from offsets_log.checking.findings import NOTE, Finding
from offsets_log.checking.places import FindingPlace
from offsets_log.data_directory.card import metadata_version_name
from offsets_log.kafka_releases import FIRST_METADATA_VERSIONS, newest_metadata_version
from offsets_log.messages.streams_group import DESCRIPTIONS, DESCRIPTIONS_SINCE
from offsets_log.replay.group import NO_EPOCH, STREAMS, Group
from offsets_log.replay.releases import Release
from offsets_log.words import counted

METADATA, MEMBER = 17, 19
"""The types of a streams group's records that hold what is lost."""


def downgrade_findings(level: int | None, releases: Iterable[Release]) -> Iterator[Finding]:
    """Yield that releases do not know the cluster's ``metadata.version``: their brokers do not start (``K44-15``).

    Args:
        level: the cluster's; None where its metadata does not say it.
    """
    if level is None:
        return
    newest = {
        release.name: newest_metadata_version(release.row)
        for release in releases
        if release.row.version >= FIRST_METADATA_VERSIONS.version
    }
    older = {name: known for name, known in newest.items() if known < level}
    if older:
        known = ", ".join(f"{name} up to {last}" for name, last in older.items())
        yield Finding(
            severity=NOTE,
            rule="K44-15",
            problem=f"the cluster's metadata.version is {metadata_version_name(level)}, level {level}, which these "
            f"releases do not know ({known}): their brokers do not start on this data directory; they load its folders "
            "of __consumer_offsets in a cluster of their own release",
            releases=tuple(older),
            detail={"level": level},
        )


def may_lose(types: Collection[int]) -> bool:
    """Return whether a log with records of these types has anything to lose (``K44-14``)."""
    return METADATA in types or MEMBER in types


def losing(releases: Iterable[Release]) -> list[Release]:
    """Return the releases that load streams groups and do not know all that is in them (``K44-14``)."""
    return [one for one in releases if METADATA in one.profile.known_types and one.row.line < DESCRIPTIONS_SINCE]


def streams_findings(groups: Iterable[Group], releases: Sequence[Release]) -> Iterator[Finding]:
    """Yield what releases lose of streams groups, a note for each group that loses anything (``K44-14``).

    Args:
        groups: those at the end of the log, by the rules of the newest release.
        releases: those of `losing`.
    """
    names = tuple(release.name for release in releases)
    for group in sorted(groups, key=lambda group: group.group_id):
        epochs: dict[str, int] = {name: getattr(group, name) for name in DESCRIPTIONS}
        static = sorted(filter(None, (member.group_instance_id for member in group.members.values())))
        lost = []
        if any(epoch != NO_EPOCH for epoch in epochs.values()):
            lost.append(_FORGOTTEN)
        if static:
            lost.append(f"heartbeats of {counted(len(static), 'static member')}, which stay in the log, are refused")
        if group.kind == STREAMS and lost:
            yield Finding(
                severity=NOTE,
                rule="K44-14",
                problem=f"on {', '.join(names)} {'; '.join(lost)}",
                place=FindingPlace(group=group.group_id),
                releases=names,
                detail={**epochs, "static_members": static},
            )


_FORGOTTEN = (
    "the next record of the group forgets what became of its topology's description: the plugin's copy stays, nobody "
    "deletes it, and after the upgrade clients are asked for it again"
)
