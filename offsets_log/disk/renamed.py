"""Folders of offsets partitions that got another name: text before Kafka's, as of a broker or of a copy.

A name with a blank or another sign that no topic's has is nobody else's. ``us-east.__consumer_offsets-0`` may be a
topic of its own, as MirrorMaker 2 makes them: it is read for what its end says if nothing has a partition's own name.

References: ``Topic.java`` (``LEGAL_CHARS``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from offsets_log.disk.folder import DirectoryName, Folder, folder_above
from offsets_log.disk.local import Place
from offsets_log.errors import InputError
from offsets_log.messages.internal_topics import OFFSETS_TOPIC


def iter_renamed(folders: Mapping[Place | str, Folder], as_partition: int | None) -> Iterator[str]:
    """Give folders the partition's own name if theirs ends so; yield a sentence for each.

    Args:
        folders: by their places on a disk, or by their prefixes in an archive.
        as_partition: the partition that the user says they are of.
    """
    parsed = [(place, folder, DirectoryName.parse(folder.name)) for place, folder in folders.items() if folder.files]
    is_sure = any(name.is_offsets for _, _, name in parsed)
    for place, folder, name in parsed:
        if not name.is_renamed or (is_sure and name.is_foreign):
            continue
        partition = name.partition if as_partition is None else as_partition
        folder.name = f"{OFFSETS_TOPIC}-{partition}{name.leftover}"
        if _is_beside(place, f"{OFFSETS_TOPIC}-{partition}", folders):
            folder.above = {}  # checkpoints there are of the one with the right name
        if as_partition is None:
            why = "--as-partition N tells another"
            yield f"{folder.shown_path} is read as offsets partition {partition}, as its name ends; {why}"


def _is_beside(place: Place | str, name: str, folders: Mapping[Place | str, Folder]) -> bool:
    if isinstance(place, str):
        return f"{folder_above(place)}{name}/" in folders
    with suppress(OSError, InputError):
        return (place.parent / name).is_dir()
    return False
