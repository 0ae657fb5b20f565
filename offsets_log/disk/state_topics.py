"""The logs of another internal topic, found in data directories, or given as their folders or files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from offsets_log.disk.alike import Alike
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.local import Place, expand, list_directory, place_of
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.replicas import choose_replica
from offsets_log.disk.urls import without_secrets
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.state_topics import is_decoded_topic


def topic_of(paths: Sequence[str]) -> str | None:
    """Return the topic of `is_decoded_topic` to which all paths belong by their names; None if there is none."""
    topics = {name.topic for path in paths for name in [_name_of(place_of(path))]}
    return topics.pop() if len(topics) == 1 and all(map(is_decoded_topic, topics)) else None


def open_topic(paths: Sequence[str], topic: str, partitions: Collection[int] = ()) -> DiskLogs:
    """Open a topic's partitions in data directories, its folders, or their files.

    Args:
        partitions: those to open; empty for all.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    with ExitStack() as stack:
        found: dict[int, list[PartitionLog]] = {}
        files: set[str] = set()
        notes: list[str] = []
        damages: list[Damage] = []
        is_broken = False
        for path in (place for given in paths for one in expand(given) for place in _places(one, topic)):
            partition = _name_of(path).partition
            if partitions and partition not in partitions:
                continue
            opened = stack.enter_context(open_logs([path], input_format="segments"))
            files.update(opened.files)
            notes += opened.notes
            damages += opened.damages
            is_broken |= opened.has_broken_files
            found.setdefault(partition, []).extend(
                replace(log, offsets_partition=partition, topic=topic) for log in opened.logs
            )
        if not found:
            raise InputError(f"no segment of {topic} was found in {', '.join(map(without_secrets, paths[:3]))}")
        alike = Alike()
        logs = [choose_replica(same, alike=alike) for _, same in sorted(found.items())]
        notes += alike.notes
        result = DiskLogs(logs, Dumps(None), Finder((), stack), stack.pop_all())
        result.files, result.notes = sorted(files), list(dict.fromkeys(notes))
        result.damages, result.has_broken_files = damages, is_broken
        return result


def _name_of(path: Place) -> DirectoryName:
    """Return the name of the folder, which tells topic and partition; for a file, that of the folder it is in."""
    own = DirectoryName.parse(path.absolute().name)
    return own if own.topic or path.is_dir() else DirectoryName.parse(path.absolute().parent.name)


def _places(path: Place, topic: str) -> Iterator[Place]:
    """Yield a topic's folders in a data directory, by number; or the path itself, if it is such a folder or file."""
    if not path.is_dir() or _name_of(path).topic == topic:
        yield path
        return
    _, directories, _ = list_directory(path)
    names = {name: DirectoryName.parse(name) for name in directories}
    wanted = [name for name, parsed in names.items() if parsed.topic == topic and not parsed.leftover]
    yield from (path / name for name in sorted(wanted, key=lambda name: names[name].partition))
