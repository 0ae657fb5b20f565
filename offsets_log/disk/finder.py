"""Turn paths of all kinds into the folders that may hold segments of ``__consumer_offsets``."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from functools import cache, cached_property, partial
from pathlib import Path

from offsets_log.data_directory.directory import LOCK, DataDirectory, Opener, identify
from offsets_log.data_directory.metadata_copies import Clusters
from offsets_log.disk.archives import ARCHIVE_SUFFIXES, unpack, unpack_one
from offsets_log.disk.folder import (
    IN_DATA_DIRECTORY,
    SEGMENT,
    DirectoryName,
    Folder,
    absent_partitions,
    broken_checkpoints,
    folder_above,
    lies_in,
    matters,
    matters_in,
    never_a_segment,
)
from offsets_log.disk.links import dead_links, leads_up
from offsets_log.disk.local import (
    Place,
    contents_of,
    expand,
    in_archive,
    input_errors,
    is_file,
    list_directory,
    list_folders,
    map_data,
    map_file,
    modified_ms,
    place_of,
    real_path,
    spool,
    stored,
)
from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.disk.renamed import iter_renamed
from offsets_log.disk.stored import StorePath
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.disk.wrapped import FROM_TERMINAL, named_in, unwrapped
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.file_names import BOOTSTRAP, PARTITION_METADATA
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.words import counted

STDIN = "-"
NAME_IT = "; name it to read it"
PACKED = (".gz", ".zst")
"""Suffixes of segments that are compressed as a whole."""
PARQUET_SUFFIX = ".parquet"
"""Suffix of the tables that `decode -o parquet` writes; a directory of them is read whole."""
MAX_DEPTH = 2
"""How many levels below a given directory a data directory may lie."""


class Finder:
    """Collect folders from one given path after the other; a file named twice is found once.

    Attributes:
        notes: directories and files that were left out, one sentence each.
        broken: what was noted of checkpoints that cannot be used.
        damages: what could not be read of cut or broken archives; the position is in the archive's bytes.
        files: real paths of the files that were opened.
        user_partitions: directories of other topics' partitions in data directories.
        topic_files: topics other than ``__consumer_offsets``, each with how to read its ``partition.metadata``.
        partitions_seen: partitions of ``__consumer_offsets``, whether asked for or not.
        data_directories: those given, or below one given.
        foreign: directories named like another topic's partition, each with its topic.
    """

    def __init__(self, partitions: Collection[int], stack: ExitStack) -> None:
        self.notes: list[str] = []
        self.broken: dict[str, None] = {}
        self.damages: list[Damage] = []
        self.files: set[str] = set()
        self.topic_files: list[tuple[str, Opener]] = []
        self.user_partitions: list[UserPartition | PackedPartition] = []
        self.partitions_seen, self.known_deleted = set[int](), set[int]()
        self.data_directories: list[DataDirectory] = []
        self.foreign: list[tuple[Place | Folder, str]] = []
        self._partitions = frozenset(partitions)
        self._stack = stack
        self._folders: dict[Place | str, Folder] = {}
        self._openers: dict[Place, Opener] = {}
        self._walked: set[Place] = set()

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters of the data directories that were found, with what their metadata says."""
        return Clusters([identify(directory) for directory in self.data_directories], self.user_partitions)

    def folders(self, as_partition: int | None = None) -> list[Folder]:
        """Return the folders that were found; those named like another topic's partition if there is nothing else.

        Args:
            as_partition: offsets partition of folders whose name has none, or another's.
        """
        self.notes += iter_renamed(self._folders, as_partition)
        for path, folder in self._folders.items():
            folder.is_choice = bool(folder.named) and self._is_choice(path, folder)
        found = [folder for folder in self._folders.values() if folder.files]
        sure = [folder for folder in found if folder.named or not DirectoryName.parse(folder.name).is_foreign]
        if sure and len(sure) < len(found):
            others = counted(len(found) - len(sure), "directory of another topic is", "directories of other topics are")
            self.notes.append(f"{others} left out")
        parsed = [DirectoryName.parse(folder.name) for folder in sure]
        self.partitions_seen.update(name.partition for name in parsed if name.is_offsets)
        return sure or found

    def absent(self, known: Collection[int]) -> list[Missing]:
        """Return the partitions that were asked for and of which no segment is here.

        Args:
            known: partitions of which there are some.
        """
        parsed = [(folder, DirectoryName.parse(folder.name)) for folder in self._folders.values()]
        without = [(folder, name) for folder, name in parsed if name.is_offsets and name.partition not in known]
        emptied = [folder for folder, name in without if not name.leftover]
        above = [one.files for one in self.data_directories]
        return absent_partitions(above, emptied, self.known_deleted.union(known), self._partitions)

    def _is_choice(self, path: Place | str, folder: Folder) -> bool:
        if isinstance(path, str) or not DirectoryName.parse(folder.name).is_offsets:
            return True
        with suppress(InputError):
            names, _, _ = list_directory(path)
            return any(SEGMENT.fullmatch(name) and matters(name) and name not in folder.files for name in names)
        return True

    def add(self, given: str | Place) -> None:
        """Find what a user's path, URL, glob or ``-`` (standard input) names. Raises InputError."""
        if given == STDIN:
            with input_errors(STDIN):
                contents = spool(sys.stdin.buffer, self._stack)
            self._add_contents(STDIN, STDIN, contents, self._folders.setdefault(STDIN, Folder("", "")))
            return
        archive, inner = in_archive(given) if isinstance(given, str) else (Path(), "")
        if inner:
            self._add_inside(archive, inner)
            return
        own = place_of(given) if isinstance(given, str) else given
        for path in expand(given) if isinstance(given, str) else [own]:
            with input_errors(path):
                is_directory = path.is_dir()
            if is_directory:
                self._walk(path, 0, is_named=path == own or DirectoryName.parse(path.name).is_named_by(own.name))
            else:
                self._add_file(path)

    def _add_file(self, path: Place) -> None:
        real = real_path(path)
        folder = self._folder_at(path.parent)
        if never_a_segment(path.name) or (real in self._openers and path.name not in folder.beside):
            return
        if SEGMENT.fullmatch(path.name):
            folder.files[path.name] = self._opener(path, folder)
            folder.named.add(path.name)
            metadata = path.parent / PARTITION_METADATA
            if lies_in(folder.name, PARTITION_METADATA) and is_file(metadata):
                folder.beside[PARTITION_METADATA] = self._opener(metadata)
        else:
            self._openers[real] = lambda: b""
            self._add_contents(str(path), path.name, self._map(path, folder), folder)

    def _add_inside(self, archive: Path, inner: str) -> None:
        """Add folders of an archive that the user named, even if a broker is about to delete or move them."""
        found = self._contents(str(archive), self._map(archive, self._folder_at(archive.parent)))
        self._add_folders(named_in(str(archive), found, inner), are_named=True)

    def _add_contents(self, file: str, name: str, buffer: Buffer, folder: Folder) -> None:
        """Add an archive's folders, or a file without a segment's name to the folder it lies in."""
        contents = self._contents(file, buffer)
        if isinstance(contents, list):
            self._add_folders(contents)
            return
        if not len(contents):
            raise InputError("it is empty", file=file)
        folder.files[name] = lambda: contents
        folder.named.add(name)

    def _contents(self, file: str, buffer: Buffer) -> list[Folder] | Buffer:
        """Return the folders of an archive, or the contents of another file."""
        inner, words = unwrapped(file, buffer)
        if words:
            self.notes.append(words)
            self.broken |= {words: None} if FROM_TERMINAL in words else {}
        return unpack(file, inner, self._is_wanted, self.damages.append)

    def _add_folders(self, folders: list[Folder], *, are_named: bool = False) -> None:
        """Add the folders of an archive; a data directory is one as on a disk.

        Args:
            are_named: whether the user named them; then they are read even if a broker is about to delete or move them.
        """
        data_directories = {folder_above(one.prefix) for one in folders if DirectoryName.parse(one.name).is_offsets}
        for folder in folders:
            if folder.own:
                below = [other for other in folders if other.above is folder.own]
                named = [DirectoryName.parse(other.name) for other in below]
                self._note_data_directory(folder.shown_path, folder.own, list(folder.files), named)
        for folder in folders:
            parsed = DirectoryName.parse(folder.name)
            if told := folder.files.get(PARTITION_METADATA) or folder.beside.get(PARTITION_METADATA):
                self._add_metadata(parsed, told)
            is_in_data_directory = bool(folder.above) or folder_above(folder.prefix) in data_directories
            if parsed.topic and not parsed.leftover and is_in_data_directory:
                self.user_partitions.append(PackedPartition(parsed.topic, parsed.partition, folder))
            if parsed.leftover and not are_named and PARTITION_METADATA not in folder.files:
                self._note_leftover(parsed, folder.shown_path, f"{NAME_IT}: {shlex.quote(folder.shown_path)}")
            elif not parsed.is_foreign or (are_named and parsed.is_renamed):
                self._folders[folder.prefix] = folder
            else:
                self.foreign.append((folder, parsed.topic))

    def note_broken(self, folder: Folder) -> None:
        """Note the checkpoints above a partition that cannot be used, each once."""
        found = [note for note in broken_checkpoints(folder) if note not in self.broken]
        self.broken |= dict.fromkeys(found)
        self.notes += found

    def _walk(self, path: Place, depth: int, *, is_named: bool = False) -> None:
        """Add a directory and, unless it is a partition's, those below it.

        A data directory is recognised by its offsets partitions; of its other directories only the topic ids are read.

        Args:
            is_named: whether the user named it directly, or by a glob that ends so; then it is read even if a
                broker is about to delete or move it.
        """
        if depth and leads_up(path):
            self.notes.append(f"{path} is left out: it leads back to a directory that it lies in")
            return
        folder = self._folder_at(path)
        parsed = DirectoryName.parse(folder.name)
        if parsed.is_offsets and not self._is_asked_for(parsed, folder.shown_path, is_named):
            return
        try:
            names, directories, broken = list_directory(path)
        except InputError as error:
            if depth == 0 or parsed.is_offsets:
                raise
            self.notes.append(f"{error} (left out)")
            return
        if depth == 0 or not parsed.is_foreign:
            self._add_listed(path, folder, names)
            self.notes += dead_links(path, folder, broken)
        if PARTITION_METADATA in names:
            self._add_metadata(parsed, self._opener(path / PARTITION_METADATA))
        if parsed.is_offsets:
            return
        below = [(path / name, DirectoryName.parse(name)) for name in directories]
        own = {name: self._opener(path / name) for name in names if name in IN_DATA_DIRECTORY}
        is_new = real_path(path) not in self._walked
        self._walked.add(real_path(path))
        if own and is_new:
            named = [name for _, name in below]
            self._note_data_directory(folder.shown_path, own, names, named, path)
        self._walk_below(below, depth, own, is_new=is_new)

    def _walk_below(
        self, below: list[tuple[Place, DirectoryName]], depth: int, own: dict[str, Opener], *, is_new: bool
    ) -> None:
        """Add the directories below one.

        Args:
            own: that directory's files, if it is a data directory.
            is_new: whether it was not met before under another name.
        """
        is_data_directory = any(name.is_offsets for _, name in below)
        for child, name in below:
            if name.is_foreign:
                self.foreign.append((child, name.topic))
            if is_new and name.topic and not name.leftover and (own or is_data_directory):
                self.user_partitions.append(UserPartition(name.topic, name.partition, child, own))
            if name.is_offsets or (not is_data_directory and depth < MAX_DEPTH):
                self._walk(child, depth + 1)
            elif not name.is_foreign and OFFSETS_TOPIC in child.name:
                self.notes.append(f"{child} is left out: no name of a partition's directory{NAME_IT}")
            elif name.is_foreign and is_file(child / PARTITION_METADATA):  # few are read, of thousands
                self._add_metadata(name, partial(self._read_once, child / PARTITION_METADATA))

    def _note_data_directory(
        self,
        shown_path: str,
        own: Mapping[str, Opener],
        names: list[str],
        below: list[DirectoryName],
        path: Place | None = None,
    ) -> None:
        leftovers = Counter(name.leftover.rpartition("-")[2] for name in below if name.leftover)
        bootstrap = None if path is None or BOOTSTRAP not in names else partial(contents_of, path / BOOTSTRAP)
        self.data_directories.append(
            DataDirectory(
                shown_path=shown_path,
                files=own,
                has_lock=LOCK in names,
                leftovers=leftovers,
                list_folders=None if path is None else partial(list_folders, path),
                read_bootstrap=bootstrap,
            )
        )

    def _add_listed(self, path: Place, folder: Folder, names: list[str]) -> None:
        for name in names:
            if matters(name) and real_path(path / name) not in self._openers:
                folder.files[name] = self._opener(path / name, folder)
            elif lies_in(folder.name, name):
                folder.beside[name] = self._opener(path / name)
            elif name.endswith(PARQUET_SUFFIX):
                folder.files[name] = self._opener(path / name)
                folder.named.add(name)
            elif name.endswith(".log") and not SEGMENT.fullmatch(name) and OFFSETS_TOPIC in folder.name:
                self.notes.append(f"{folder.shown(name)} is left out: no segment's name; name the file to read it")
        if OFFSETS_TOPIC in folder.name and not folder.files:
            self.notes.append(f"{folder.shown_path} holds no segment")

    def _is_asked_for(self, parsed: DirectoryName, shown_path: str, is_named: bool) -> bool:
        if parsed.leftover and not is_named:
            self._note_leftover(parsed, shown_path, NAME_IT)
            return False
        return self._passes_filter(parsed)

    def _is_wanted(self, directory: str, name: str) -> bool:
        """Return whether to read a member of an archive."""
        parsed, words = DirectoryName.parse(directory), f"{name} is an archive in an archive: unpack it, and give it"
        self.notes += [words] * (name.endswith(ARCHIVE_SUFFIXES) and words not in self.notes)
        return matters_in(directory, name) and (not parsed.is_offsets or self._passes_filter(parsed))

    def _passes_filter(self, parsed: DirectoryName) -> bool:
        self.partitions_seen.add(parsed.partition)
        return not self._partitions or parsed.partition in self._partitions

    def _note_leftover(self, parsed: DirectoryName, shown_path: str, how: str) -> None:
        if parsed.is_offsets and parsed.leftover.endswith("-delete"):
            self.known_deleted.add(parsed.partition)
        self.notes.append(f"{shown_path} is left out: a partition being deleted or moved, or a stray one{how}")

    def _add_metadata(self, parsed: DirectoryName, read: Opener) -> None:
        if parsed.is_foreign and not parsed.leftover:
            self.topic_files.append((parsed.topic, read))

    def _folder_at(self, path: Place) -> Folder:
        """Return the folder of a directory on disk; all links to one directory give the same folder."""
        real = real_path(path)
        if real not in self._folders:
            name = path.name if DirectoryName.parse(path.name).topic else real.name  # "." and links say nothing
            folder = Folder(str(path / "_")[:-1], name)
            above = path.absolute().parent
            folder.above = {
                name: self._opener(above / name) for name in sorted(IN_DATA_DIRECTORY) if is_file(above / name)
            }
            self._folders[real] = folder
        return self._folders[real]

    def _opener(self, path: Place, folder: Folder | None = None) -> Opener:
        if folder is None or isinstance(path, Path) or path.suffix in PACKED:
            return self._openers.setdefault(real_path(path), cache(partial(self._read, path, folder)))
        self._note_time(path, folder)
        if path not in self._openers:
            self._openers[path] = stored(path, self._stack)
        return self._openers[path]

    @staticmethod
    def _note_time(path: StorePath, folder: Folder | None) -> None:
        if folder is not None and path.modified_ms is not None:
            folder.modified_ms[path.name] = path.modified_ms

    def _read_once(self, path: Place) -> Buffer:
        return self._opener(path)()

    def _read(self, path: Place, folder: Folder | None) -> Buffer:
        buffer = self._map(path, folder)
        return unpack_one(str(path), buffer, self.damages.append) if path.suffix in PACKED else buffer

    def _map(self, path: Place, folder: Folder | None) -> Buffer:
        """Map a file's contents; a hole at its end is noted in the folder that the segment belongs to."""
        if isinstance(path, StorePath):
            self._note_time(path, folder)
            return map_file(path, self._stack)
        self.files.add(str(real_path(path)))
        if folder is None:
            return map_file(path, self._stack)
        buffer, zeros = map_data(path, self._stack)
        folder.modified_ms[path.name] = modified_ms(path)
        if zeros:
            folder.zeros_behind[path.name] = zeros
        return buffer
