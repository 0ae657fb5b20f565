"""What keeps a broker of an older release from the data directory of a newer cluster: a finding of `check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.checking.findings import NOTE, Finding
from offsets_log.data_directory.card import metadata_version_name
from offsets_log.kafka_releases import FIRST_METADATA_VERSIONS, newest_metadata_version
from offsets_log.replay.releases import Release


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
