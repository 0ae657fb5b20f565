"""Open the logs of offsets partitions from what a user names: the only way into the files.

data directory ─┐
partition, glob ┼─► `Folder`s, on disk or in memory ─► segments (`records:L2`) ─► replicas ─► `PartitionLog`s
archive, pipe  ─┘                                   └► dumps of other tools, made segments (`dumps`) ┘

Everything is opened read-only; `DiskLogs` holds the mappings and closes them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Protocol, Self

from offsets_log.columnar.large import is_large
from offsets_log.data_directory.copied_logs import CopiedPartition
from offsets_log.data_directory.directory import Opener, iter_mixed_up, node_of
from offsets_log.data_directory.metadata_copies import Clusters
from offsets_log.data_directory.told_ends import LOG_ENDS, ToldEnds, decode_told_ends
from offsets_log.disk.alike import Alike
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import MAX_DEPTH, Finder
from offsets_log.disk.folder import (
    SEGMENT,
    DirectoryName,
    Folder,
    all_checkpoints,
    checkpoints,
)
from offsets_log.disk.local import Place
from offsets_log.disk.nameless import pieces_joined
from offsets_log.disk.no_log import refuse_no_logs
from offsets_log.disk.one_topic import other_topics, refuse_several_topics
from offsets_log.disk.other_brokers import find_in, redpanda_error, refuse_named
from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.disk.replicas import Advance, Leader, choose_replica
from offsets_log.disk.segments import select_segments
from offsets_log.disk.set_aside import with_policy, with_set_aside
from offsets_log.disk.stored import Stored, read_ahead
from offsets_log.disk.urls import without_secrets
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.disk.wrapped import as_before_the_terminal
from offsets_log.errors import Damage, InputError, OffsetsLogError
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

_TOPIC_ID = re.compile(rb"^topic_id:[ \t]*([A-Za-z0-9_-]{22})[ \t\r]*$", re.MULTILINE)
_NO_TOPIC_ID = bytes(16)

NAMED = "only files that were named are read"
OTHER_TOPIC = "this is another topic, from which records may be deleted"
"""Why nothing is reported missing around segments."""


Comparing = Callable[[int], AbstractContextManager[Advance]]


class Choosing(Protocol):
    """Makes one log of the copies of a partition, as `choose_replica` does."""

    def __call__(
        self,
        replicas: Sequence[PartitionLog],
        leader: Leader | None,
        alike: Alike,
        advance: Advance,
        *,
        in_bulk: bool | None = None,
    ) -> PartitionLog:
        """Return the log. Raises InputError."""


class DiskLogs:
    """Open logs; a context manager. After it closes their buffers must not be used.

    Attributes:
        logs: sorted by offsets partition; those of an unknown one come last.
        notes: what was left out, one sentence each. Notes about one log are in the log itself.
        damages: what could not be read of dumps (the position is the line) and of archives.
        files: real paths of the files that were opened; no output may replace them.
        user_partitions: directories of other topics' partitions in data directories.
        clusters: whose the data directories are, and what the metadata in them says.
        named_partitions: all partitions that checkpoints of data directories name.
        absent: partitions that a data directory names and that were asked for, but that have no segment.
        has_broken_files: whether a checkpoint, or what tells whose a data directory is, cannot be read; notes say it.
        are_of_dumps: whether some were made from dumps: their files have other bytes.
        copies_in_doubt: whether copies of a partition disagree, or one goes on where the chosen one ends; notes say it.
    """

    def __init__(
        self,
        logs: list[PartitionLog],
        dumps: Dumps,
        finder: Finder,
        stack: ExitStack,
        absent: Sequence[Missing] = (),
    ) -> None:
        self.logs = logs
        self.absent = absent
        self.clusters = finder.clusters
        self.are_of_dumps = dumps.have_been_read
        self.copies_in_doubt = False
        is_restored = any(segment.is_restored for log in logs for segment in log.segments)
        is_broken = bool(finder.broken) or any(one.damage for one in self.clusters.identities)
        self.has_broken_files = is_broken or is_restored
        self.notes = [*finder.notes, *dumps.notes, *iter_mixed_up(self.clusters.identities), *self.clusters.namesakes]
        self.damages = finder.damages + dumps.damages
        self.files = sorted(finder.files)
        self.user_partitions = finder.user_partitions
        self._data_directories = finder.data_directories
        self.named_partitions = {number for one in finder.data_directories for number in all_checkpoints(one.files)}
        self._topic_files = finder.topic_files
        self._stack = stack

    @cached_property
    def told_ends(self) -> tuple[ToldEnds, list[Damage]]:
        """Where logs begin and end by the ``log-ends.json`` of pulled copies, and what of these cannot be read."""
        told, damages = ToldEnds(), []
        for directory in self._data_directories:
            if LOG_ENDS in directory.files:
                try:
                    told.add(decode_told_ends(directory.files[LOG_ENDS](), f"{directory.shown_path}/{LOG_ENDS}"))
                except OffsetsLogError as error:
                    damages.append(Damage(error, b""))
        return told, damages

    @cached_property
    def topic_ids(self) -> dict[bytes, str]:
        """Topic id (16 bytes) → name, from other topics' ``partition.metadata``, else from the clusters' metadata.

        Of a pulled copy, whose cluster told them, from its ``log-ends.json``. Unreadable files are ignored.
        """
        ids: dict[str, bytes] = dict(self.told_ends[0].topic_ids)
        for topic, read in self._topic_files:
            if topic not in ids and (topic_id := _topic_id_in(read)):
                ids[topic] = topic_id
        return self.clusters.topic_names | {topic_id: topic for topic, topic_id in ids.items()}

    def locate(self, damage: Damage) -> None:
        """Set the position of damage in a segment made from a dump to the line of the dump."""
        error = damage.error
        for segment in (segment for log in self.logs for segment in log.segments if segment.lines):
            if segment.file == error.file and error.record_offset is not None:
                error.position = segment.lines.get(error.record_offset, error.position)

    def close(self) -> None:
        """Close the mappings."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_logs(
    paths: Sequence[str | Place],
    *,
    as_partition: int | None = None,
    partitions: Collection[int] = (),
    input_format: str | None = None,
    may_lack_offsets: bool = False,
    columns: Set[str] | None = None,
    comparing: Comparing = lambda size_bytes: nullcontext(lambda size_bytes: None),
    choosing: Choosing = choose_replica,
) -> DiskLogs:
    """Find and open all segments in data and partition directories, files, globs, archives, URLs of stores and ``-``.

    Args:
        as_partition: offsets partition of files whose directory's name has none.
        partitions: offsets partitions to open; empty for all.
        input_format: format of files without a segment's name: ``segments`` or one of `dumps.formats.FORMATS`; None to
            guess it from their first bytes.
        may_lack_offsets: whether directories with other topics' partitions alone will do.
        columns: those of the answer, of which notes name what dumps do not tell; None to name all.
        comparing: takes the size of all copies of partitions that have several; gives what is called as they are read.
        choosing: makes one log of them.

    Raises:
        InputError: nothing was found, something cannot be read, folders are of several topics, or files of unknown
            partitions contradict each other.
    """
    refuse_named(paths)
    with ExitStack() as stack:
        finder, dumps = Finder(partitions, stack), Dumps(input_format, columns)
        for path in dict.fromkeys(paths):
            finder.add(path)
        logs: dict[int | None, list[PartitionLog]] = {}
        above: dict[int, Mapping[str, Opener]] = {}
        folders = finder.folders(as_partition)
        refuse_several_topics(folders)
        for folder in folders:
            dumps.take(folder)
            parsed = DirectoryName.parse(folder.name)
            offsets_partition = parsed.partition if parsed.is_offsets else as_partition
            if not partitions or offsets_partition in partitions:
                own = _logs_in(folder, offsets_partition, finder.damages)
                logs.setdefault(offsets_partition, []).extend(own)
                above |= {id(log): folder.above for log in own}
                finder.note_broken(folder)
        for log in dumps.logs(as_partition):
            if not partitions or log.offsets_partition in partitions:
                logs.setdefault(log.offsets_partition, []).append(log)
        unknown = pieces_joined(logs.pop(None, []))
        alike = Alike()
        size_bytes = sum(log.bytes_to_read for found in logs.values() if len(found) > 1 for log in found)
        in_bulk = is_large(size_bytes, "scan.batch_rows._note")
        with comparing(size_bytes) as advance:
            known = [
                choosing(found, leader_of(found, above, finder.clusters), alike, advance, in_bulk=in_bulk)
                for _, found in sorted(logs.items(), key=_partition)
                if found
            ]
        is_enough = known or unknown or dumps.damages or (may_lack_offsets and finder.user_partitions)
        if not is_enough:
            raise _nothing_found(paths, partitions, finder)
        if all(log.selection == NAMED for log in (*known, *unknown)):
            refuse_no_logs([*known, *unknown])
        finder.notes += alike.notes
        absent = finder.absent([log.offsets_partition for log in known if log.offsets_partition is not None])
        starting = [with_policy(with_start(log, finder), finder.clusters.metadata) for log in known]
        opened = DiskLogs(starting + unknown, dumps, finder, stack, absent)
        opened.copies_in_doubt = alike.are_in_doubt
        opened._stack = stack.pop_all()  # last: what the logs ask of the finder opens files into the finder's stack
        return opened


def with_start(log: PartitionLog, finder: Finder) -> PartitionLog:
    """Return a log that knows the start of the broker whose data directory it lies in, if that was given."""
    place = log.segments[0].file.rpartition("/")[0].rpartition("/")[0] if log.segments else ""
    directory = next((one for one in finder.data_directories if one.shown_path == place), None)
    partition = log.offsets_partition
    if directory is None or partition is None:
        return log

    def at_start(release: tuple[int, int], asks_metadata: bool) -> OffsetsLogError | None:
        start = finder.clusters.start_of(directory, asks_metadata=asks_metadata)
        return start.error(directory, OFFSETS_TOPIC, partition, release)

    return replace(log, at_start=at_start)


def leader_of(
    replicas: Sequence[PartitionLog], above: Mapping[int, Mapping[str, Opener]], clusters: Clusters
) -> Leader | None:
    """Return who led a partition last; None if there is one copy only, or no cluster metadata tells it.

    Args:
        above: ``id`` of a log → the files of the data directory it lies in.
    """
    partition = replicas[0].offsets_partition
    if len(replicas) == 1 or partition is None or clusters.metadata is None:
        return None
    led = clusters.metadata.partition(OFFSETS_TOPIC, partition)
    if led is None or led.last_leader < 0:
        return None
    copies = {i for i, log in enumerate(replicas) if node_of(above.get(id(log), {})) == led.last_leader}
    return Leader(led.last_leader, led.last_leader_epoch, copies)


@contextmanager
def open_partitions(directories: Iterable[CopiedPartition]) -> Iterator[list[PartitionLog]]:
    """Open logs of another topic's partitions; `offsets_partition` is the number of each.

    Raises:
        InputError: one cannot be read.
    """
    with ExitStack() as stack:
        logs: list[PartitionLog] = []
        for directory in directories:
            if not isinstance(directory, UserPartition):
                assert isinstance(directory, PackedPartition)
                logs.append(directory.log())
                continue
            opened = stack.enter_context(open_logs([directory.path], as_partition=directory.partition))
            logs += opened.logs
        yield logs


def _partition(item: tuple[int | None, list[PartitionLog]]) -> int:
    return item[0] or 0


def _logs_in(folder: Folder, offsets_partition: int | None, damages: Sequence[Damage]) -> list[PartitionLog]:
    """Return the segments of a folder as one log, and each named file without a segment's name as a log of its own.

    Args:
        damages: what could not be read of archives so far; what is met here is added.
    """
    told = checkpoints(folder)  # read first: segments opened later hold at least what these say, also in a live log
    files, notes = select_segments(folder)
    segments = tuple(_segment(folder, f.name, f.base_offset, damages, notes) for f in files)
    selection = NAMED if folder.is_choice else OTHER_TOPIC if DirectoryName.parse(folder.name).is_foreign else None
    read_ahead(segments)
    logs = (
        [PartitionLog(offsets_partition, segments, tuple(notes), told, folder.beside, selection=selection)]
        if segments
        else []
    )
    logs = [with_set_aside(log, folder) for log in logs]
    others = [name for name in folder.files if name in folder.named and not SEGMENT.fullmatch(name)]
    for name in others:
        notes = []
        lone = _segment(folder, name, None, damages, notes)
        logs.append(PartitionLog(offsets_partition, (lone,), tuple(notes), selection=NAMED))
    return logs


def _segment(
    folder: Folder, name: str, base_offset: int | None, damages: Sequence[Damage], notes: list[str]
) -> Segment:
    """Return a file as a segment; what is odd about its bytes is added to the notes."""
    read, shown = folder.files[name], folder.shown(name)
    buffer = read if isinstance(read, Stored) else read()
    restored = None if isinstance(buffer, Stored) else as_before_the_terminal(shown, buffer)
    if restored:
        buffer, words = restored
        notes.append(words)
    return Segment(
        shown,
        base_offset,
        buffer,
        zeros_behind=folder.zeros_behind.get(name, 0),
        modified_ms=folder.modified_ms.get(name),
        is_of_broken=any(f"{shown}!".startswith(f"{damage.error.file}!") for damage in damages),
        is_restored=restored is not None,
    )


def _topic_id_in(read: Opener) -> bytes | None:
    """Return the topic id in a ``partition.metadata``; None if there is none or the file cannot be read."""
    try:
        match = _TOPIC_ID.search(bytes(read()))
    except InputError:
        return None
    topic_id = base64.urlsafe_b64decode(match[1] + b"==") if match else _NO_TOPIC_ID
    return None if topic_id == _NO_TOPIC_ID else topic_id


def _nothing_found(paths: Sequence[str | Place], partitions: Collection[int], finder: Finder) -> InputError:
    if partitions:
        asked = ", ".join(map(str, sorted(partitions)))
        seen = ", ".join(map(str, sorted(finder.partitions_seen)))
        there = f"partitions found: {seen}" if seen else f"no directory names a partition: --as-partition {asked} does"
        return InputError(f"no segment of offsets partition {asked} was found; {there}")
    if (other := find_in(paths)) is not None:
        return redpanda_error(other)
    shown = ", ".join(without_secrets(str(path)) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
    problem = (
        f"no segment of __consumer_offsets was found in {shown or 'no path at all'}: looked for directories "
        f"__consumer_offsets-N up to {MAX_DEPTH + 1} levels down and for files <20 digits>.log. "
    )
    if others := other_topics(finder.foreign):
        named = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        how = "name it to read it, or " if any(topic.endswith(OFFSETS_TOPIC) for topic in others) else ""
        problem += (
            f"Here are other topics only ({named}): {how}try each directory of the broker's log.dirs, and other brokers"
        )
    else:
        problem += (
            "Give a broker's data directory (log.dirs), a partition directory, segment files or an archive of them"
        )
    return InputError("; ".join([problem, *finder.notes[:3]]))
