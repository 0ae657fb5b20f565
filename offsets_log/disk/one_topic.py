"""Refuse folders of several topics that are all named ``__consumer_offsets``: their logs are no replicas.

The topic id in ``partition.metadata`` decides, and where a folder has none the cluster id in ``meta.properties``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from offsets_log.data_directory.directory import DataDirectory, Opener, identify
from offsets_log.data_directory.identity import topic_id_of
from offsets_log.disk.folder import SEGMENT, DirectoryName, Folder
from offsets_log.disk.local import Place, list_directory
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import META_PROPERTIES
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

By = dict[str, dict[str | None, Folder]]
"""An id → the first folder that tells it, for each of the other ids beside it."""


def refuse_several_topics(folders: Iterable[Folder]) -> None:
    """Refuse folders of several topics.

    Those of several clusters are of several topics, unless all tell one topic id, as after a ``meta.properties`` was
    made again. Of one whole data directory none is refused: its broker's start tells which are put aside (``ST-7``).

    Raises:
        InputError: names two of the ids, with a folder of each.
    """
    topics, clusters = By(), By()
    known: dict[int, str | None] = {}
    folders = list(folders)
    places = {folder.prefix.rstrip("/").rpartition("/")[0] for folder in folders}
    if len(places) == 1 and all(META_PROPERTIES in folder.above for folder in folders):
        return
    for folder in folders:
        if DirectoryName.parse(folder.name).is_offsets:
            topic_id, cluster_id = (
                topic_id_of(folder.beside) or topic_id_of(folder.files),
                _cluster_id(folder.above, known),
            )
            if topic_id is not None:
                topics.setdefault(topic_id, {}).setdefault(cluster_id, folder)
            if cluster_id is not None:
                clusters.setdefault(cluster_id, {}).setdefault(topic_id, folder)
    if len(topics) > 1:
        raise _refused(topics, "topic id", "topics")
    if len(clusters) > 1 and any(None in told for told in clusters.values()):
        raise _refused(clusters, "cluster id", "clusters")


def other_topics(foreign: Iterable[tuple[Place | Folder, str]]) -> list[str]:
    """Return the topics of which directories with segments were met, in order, from all that were met."""

    def has_segments(place: Place | Folder) -> bool:
        if isinstance(place, Folder):
            return bool(place.files or place.beside)
        with suppress(InputError):
            return any(map(SEGMENT.fullmatch, list_directory(place)[0]))
        return False

    return sorted({topic for place, topic in foreign if has_segments(place)})


def _cluster_id(above: Mapping[str, Opener], known: dict[int, str | None]) -> str | None:
    """Return the cluster id of a data directory, each of which is asked once."""
    if id(above) not in known:
        known[id(above)] = identify(DataDirectory(shown_path="", files=above)).cluster_id
    return known[id(above)]


def _refused(by_id: By, what: str, kind: str) -> InputError:
    places = {one: next(iter(told.values())).shown_path for one, told in by_id.items()}
    (one, here), (other, there) = [*places.items()][:2]
    more = f", and others have {len(places) - 2} more" if len(places) > 2 else ""
    return InputError(
        f"these are folders of {len(places)} {kind}, and no replicas of one {OFFSETS_TOPIC}: {here} has {what} {one}, "
        f"{there} has {other}{more}. Give those of one at a time"
    )
