"""Represent folders of named, readable files, and parse Kafka's names: the seam between file systems and the rules.

A disk, an archive and a pipe each return `Folder`s; the code that uses them does not know which it was.

References: ``LocalLog.java`` (``parseTopicPartitionName``), ``LogFileUtils.java``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from offsets_log.data_directory.checkpoints import decode_offset_checkpoint
from offsets_log.data_directory.directory import LOCK, Opener
from offsets_log.data_directory.told_ends import LOG_ENDS
from offsets_log.disk.left_beside import reached_beside
from offsets_log.errors import CorruptFileError, InputError
from offsets_log.log_format.completeness import Missing, missing_partition
from offsets_log.log_format.file_names import (
    CLEAN_SHUTDOWN,
    CLEANED_UNTIL,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)
from offsets_log.log_format.partition_log import Checkpoints
from offsets_log.messages.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC

CHECKPOINTS = {
    "cleaned_until": CLEANED_UNTIL,
    "high_watermark": HIGH_WATERMARKS,
    "log_start_offset": LOG_STARTS,
    "recovery_point": RECOVERY_POINTS,
}
"""Attribute of `Checkpoints` → file of a data directory with one line for each partition."""

IN_DATA_DIRECTORY = frozenset({*CHECKPOINTS.values(), CLEAN_SHUTDOWN, LOG_ENDS, META_PROPERTIES})
"""Files of a data directory itself that are read; a directory with any of them is a data directory."""

SEGMENT = re.compile(r"([0-9]{20})\.log(\.deleted|\.cleaned|\.swap)?(\.gz|\.zst)?")
CLEANED = re.compile(r"([0-9]{20})\..*\.cleaned")
_DIRECTORY = re.compile(r"(.+)-([0-9]+)(\.[^.]*-(?:delete|future|stray))?")
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_NEVER_A_SEGMENT = re.compile(
    r".*\.(?:index|timeindex|txnindex|snapshot)(?:\.deleted|\.cleaned|\.swap)?"
    r"|.*-checkpoint|partition\.metadata|meta\.properties|\.lock|\.kafka_cleanshutdown"
)
_OF_OTHER_TOPICS = re.compile(r"[0-9]{20}\.(?:log|index)|[0-9]{20}-[0-9]{10}\.checkpoint|leader-epoch-checkpoint")
_BESIDE = re.compile(
    r"[0-9]{20}\.(?:(?:index|timeindex|txnindex)(?:\.swap)?|snapshot|log\.deleted)|leader-epoch-checkpoint"
)


@dataclass(slots=True)
class Folder:
    """A directory and those of its files that may matter.

    Attributes:
        prefix: text before a file's name when it is shown: ``data/__consumer_offsets-3/``, ``a.tar!``.
        name: the directory's last component, which contains topic and partition.
        files: name → how to read it.
        named: files the user named one by one; they are read even where files of such names in a directory are not.
        beside: name → how to read what a broker keeps beside the segments: indexes, producer snapshots.
        above: name → how to read the checkpoints of the directory above.
        own: the same of this one, if it is a data directory in an archive or a store.
        kept_from: name of a segment of which an archive gave only the end → the first offset there.
        zeros_behind: name of a file that was read → number of zero bytes after its contents that were never written.
        modified_ms: name of a file that was read → when it was last written, in epoch milliseconds, as far as its
            disk or archive tells.
        is_choice: whether only some of a partition's files were named, or files whose partition is unknown.
    """

    prefix: str
    name: str
    files: dict[str, Opener] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    beside: dict[str, Opener] = field(default_factory=dict)
    above: Mapping[str, Opener] = field(default_factory=dict)
    own: Mapping[str, Opener] = field(default_factory=dict)
    kept_from: dict[str, int] = field(default_factory=dict)
    zeros_behind: dict[str, int] = field(default_factory=dict)
    modified_ms: dict[str, int] = field(default_factory=dict)
    is_choice: bool = False

    def shown(self, name: str) -> str:
        """Return a file's name with its place, as text; bytes that are not UTF-8 become U+FFFD."""
        return (self.prefix + name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    @property
    def shown_path(self) -> str:
        """The path of the folder itself, to show."""
        return self.prefix.rstrip("/!") or self.name


@dataclass(frozen=True, slots=True)
class DirectoryName:
    """A directory's parsed name: ``<topic>-<partition>``, with a suffix while a broker deletes or moves it.

    Attributes:
        topic: "" for a name not of this form, perhaps a user's own folder.
        partition: −1 without a topic.
        leftover: ``.<id>-delete``, ``-future`` or ``-stray``, else "".
    """

    topic: str
    partition: int
    leftover: str

    @classmethod
    def parse(cls, name: str) -> DirectoryName:
        """Parse a directory's name; the partition follows the last ``-``."""
        match = _DIRECTORY.fullmatch(name)
        return cls(match[1], int(match[2]), match[3] or "") if match else cls("", -1, "")

    @property
    def is_offsets(self) -> bool:
        """Whether it is a partition of ``__consumer_offsets``, or what is left of one."""
        return self.topic == OFFSETS_TOPIC

    @property
    def is_foreign(self) -> bool:
        """Whether it is another topic's partition; a topic's name has no blank."""
        return not self.is_offsets and bool(_TOPIC.fullmatch(self.topic))

    @property
    def is_renamed(self) -> bool:
        """Whether it ends like an offsets partition's name, after other text."""
        return not self.is_offsets and self.topic.endswith(OFFSETS_TOPIC)

    @property
    def may_be_offsets(self) -> bool:
        """Whether it is a partition of ``__consumer_offsets``, or may be one under another name."""
        return self.is_offsets or self.is_renamed

    def is_named_by(self, glob: str) -> bool:
        """Return whether a glob that fits this name says which kind of leftover is meant, as ``*-delete`` does."""
        return bool(self.leftover) and glob.endswith(self.leftover[self.leftover.rindex("-") :])


def folder_above(prefix: str) -> str:
    """Return the folder above one in an archive, or the archive."""
    own = prefix.rstrip("/")
    return own[: max(own.rfind("/"), own.rfind("!")) + 1]


def is_in(path: str, named: str, depth: int = 0) -> bool:
    """Return whether a folder's path in an archive is the one that is named, perhaps as a glob, or lies below it.

    Args:
        depth: how many folders the one that is named lies in.
    """
    parts, asked = path.split("/")[depth:], named.split("/")
    return len(parts) >= len(asked) and all(map(fnmatchcase, parts, asked))


def never_a_segment(name: str) -> bool:
    """Return whether Kafka keeps a file of this name beside segments (``records:L3``)."""
    return bool(_NEVER_A_SEGMENT.fullmatch(name))


def matters(name: str) -> bool:
    """Return whether a partition directory's file can be part of its log; ``.deleted`` is ignored (``records:L2``)."""
    match = SEGMENT.fullmatch(name)
    return match[2] != ".deleted" if match else bool(CLEANED.fullmatch(name))


def lies_beside(name: str) -> bool:
    """Return whether a file of a partition directory decides what a broker recovers at its start."""
    return bool(_BESIDE.fullmatch(name))


def lies_in(folder: str, name: str) -> bool:
    """Return whether a file is no segment but belongs beside the segments of a partition folder with this name."""
    return lies_beside(name) or (name == PARTITION_METADATA and DirectoryName.parse(folder).may_be_offsets)


def matters_in(directory: str, name: str) -> bool:
    """Return whether a file of an archive has to be read.

    Args:
        directory: last component of the directory that holds the file.
    """
    parsed = DirectoryName.parse(directory)
    if name in IN_DATA_DIRECTORY:
        return True
    if parsed.is_foreign and not parsed.is_renamed:
        return name == PARTITION_METADATA or (not parsed.leftover and bool(_OF_OTHER_TOPICS.fullmatch(name)))
    return name == LOCK or matters(name) or (parsed.may_be_offsets and lies_in(directory, name))


def link_data_directories(folders: Mapping[str, Folder]) -> None:
    """Set which folders are data directories, and which lie in one.

    Args:
        folders: by their paths in an archive or a store.
    """
    for folder in folders.values():
        folder.own = {name: read for name, read in folder.files.items() if name in IN_DATA_DIRECTORY}
    for path, folder in folders.items():
        above = folders.get(posixpath.dirname(path)) if path else None
        if above is not None:
            folder.above = above.own


def is_read_for_its_end(directory: str, name: str) -> bool:
    """Whether a file is a segment of which only the end of its log matters: of a topic that no coordinator writes."""
    parsed = DirectoryName.parse(directory)
    is_other = parsed.is_foreign and not parsed.is_renamed and parsed.topic not in INTERNAL_TOPICS
    return is_other and bool(SEGMENT.fullmatch(name))


def checkpoints(folder: Folder) -> Checkpoints:
    """Return what the data directory above says of a partition, or nothing for the remains of a moved or deleted one.

    For such remains, the checkpoints describe the partition that took their place.
    """
    parsed = DirectoryName.parse(folder.name)
    told = {} if parsed.leftover else all_checkpoints(folder.above)
    nothing = Checkpoints(stopped_cleanly=CLEAN_SHUTDOWN in folder.above if folder.above else None)
    return _with_reached(told.get(parsed.partition, nothing), folder)


def _with_reached(told: Checkpoints, folder: Folder) -> Checkpoints:
    """Add what the files beside a folder's segments say."""
    reached, by = reached_beside(folder.files, folder.beside, told.high_watermark) or (None, "")
    return replace(told, reached=reached, reached_by=by)


def all_checkpoints(above: Mapping[str, Opener]) -> dict[int, Checkpoints]:
    """Return what a data directory says of each offsets partition that it names.

    A checkpoint that is empty, of another version or malformed says nothing.

    Args:
        above: the directory's own files.
    """
    told: dict[int, dict[str, Any]] = {}
    for attribute, name in CHECKPOINTS.items():
        for partition, offset in _offsets_in(above[name]).items() if name in above else ():
            told.setdefault(partition, {}).setdefault(attribute, offset)
    return {
        partition: Checkpoints(**offsets, stopped_cleanly=CLEAN_SHUTDOWN in above)
        for partition, offsets in sorted(told.items())
    }


def _offsets_in(checkpoint: Opener) -> Mapping[int, int]:
    """Return the partitions of the offsets topic in a checkpoint file, each with its offset."""
    try:
        return _offsets_of_offsets_topic(bytes(checkpoint()))
    except (InputError, CorruptFileError):
        return {}


@lru_cache(maxsize=len(CHECKPOINTS))
def _offsets_of_offsets_topic(text: bytes) -> Mapping[int, int]:
    """Parse a checkpoint file; cached, as all partitions of a data directory ask for the same few files."""
    offsets = decode_offset_checkpoint(text, "checkpoint")
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == OFFSETS_TOPIC}


def broken_checkpoints(folder: Folder) -> Iterator[str]:
    """Yield a sentence for each checkpoint above a partition that a broker or this reader cannot use."""
    place = folder.prefix.rstrip("/").rpartition("/")[0]
    for name in CHECKPOINTS.values():
        if name not in folder.above:
            continue
        shown = f"{place}/{name}".encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        try:
            if (problem := _problem_of(bytes(folder.above[name]()))) is not None:
                yield f"{shown} is broken and says nothing: {problem}"
        except InputError as error:
            yield f"{shown} says nothing: it {error.problem}"


def _problem_of(checkpoint: bytes) -> str | None:
    """Return what a broker says against a checkpoint (``CL-48``)."""
    try:
        decode_offset_checkpoint(checkpoint, "checkpoint")
    except CorruptFileError as error:
        return error.problem
    return None


def absent_partitions(
    data_directories: Iterable[Mapping[str, Opener]],
    emptied: Iterable[Folder],
    known: Collection[int],
    asked: Collection[int],
) -> list[Missing]:
    """Return the partitions that a data directory names, or that have a folder, but of which no segment was found.

    Args:
        data_directories: for each data directory its own files.
        emptied: folders of partitions in which no segment is.
        known: partitions that were found, in whatever state.
        asked: partitions that were asked for; empty for all.
    """
    told = [item for above in data_directories for item in all_checkpoints(above).items()]
    told += [(DirectoryName.parse(folder.name).partition, checkpoints(folder)) for folder in emptied]
    absent: dict[int, Missing] = {}
    for partition, one in told:
        if partition not in known and (not asked or partition in asked):
            for missing in missing_partition(partition, one):
                absent[partition] = max(absent.get(partition, missing), missing, key=lambda one: one.last_offset)
    return [missing for _, missing in sorted(absent.items())]
