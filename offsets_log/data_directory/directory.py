"""The data directories that were given: whose each is, and whether they belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from offsets_log.data_directory.identity import MetaProperties, decode_meta_properties
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.file_names import META_PROPERTIES
from offsets_log.log_format.segment import Buffer
from offsets_log.words import counted

Opener = Callable[[], Buffer]
"""Returns a file's whole contents; nothing is read before. Raises InputError."""

LOCK = ".lock"
FUTURE, STRAY = "future", "stray"
"""Suffixes of partition folders beside ``delete``: being moved here; not of this broker, as its start found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFolder:
    """A folder in a data directory, by its name, and what a broker's start reads of it.

    Attributes:
        names: of its files.
        topic_id: how to read its ``partition.metadata``; None without one.
        quorum_state: the same of ``quorum-state``.
        leader_epochs: the same of ``leader-epoch-checkpoint``.
    """

    name: str
    names: Sequence[str]
    topic_id: Opener | None = None
    quorum_state: Opener | None = None
    leader_epochs: Opener | None = None


@dataclass(frozen=True, kw_only=True)
class DataDirectory:
    """A data directory.

    Attributes:
        shown_path: to show.
        files: its own files: name → how to read it.
        has_lock: whether ``.lock`` lies in it; None where that is not known.
        leftovers: ``delete``, `FUTURE` or `STRAY` → how many folders.
        list_folders: lists all folders in it; None where only some are known.
        read_bootstrap: reads its ``bootstrap.checkpoint``; None without one.
    """

    shown_path: str
    files: Mapping[str, Opener]
    has_lock: bool | None = None
    leftovers: Mapping[str, int] = field(default_factory=dict)
    list_folders: Callable[[], Sequence[ListedFolder]] | None = field(default=None, compare=False, repr=False)
    read_bootstrap: Opener | None = field(default=None, compare=False, repr=False)

    @cached_property
    def folders(self) -> Sequence[ListedFolder]:
        """All folders in it; none where only some are known."""
        return () if self.list_folders is None else self.list_folders()

    def has_folder(self, name: str) -> bool:
        """Whether a folder of this name is known to be in it."""
        return any(folder.name == name for folder in self.folders)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose a data directory is.

    Attributes:
        meta: None where no ``meta.properties`` tells.
        damage: why it cannot be read.
    """

    directory: DataDirectory
    meta: MetaProperties | None = None
    damage: Damage | None = None

    @property
    def cluster_id(self) -> str | None:
        """None where it is not told."""
        return None if self.meta is None else self.meta.cluster_id

    @property
    def node_id(self) -> int | None:
        """None where it is not told."""
        return None if self.meta is None else self.meta.node_id

    @property
    def home(self) -> str:
        """The broker that the directory belongs to; where that is not told, the directory itself."""
        return self.directory.shown_path if self.node_id is None else f"{self.cluster_id}/{self.node_id}"


def identify(directory: DataDirectory) -> Identity:
    """Read whose it is."""
    if META_PROPERTIES not in directory.files:
        return Identity(directory)
    try:
        data = directory.files[META_PROPERTIES]()
        return Identity(directory, decode_meta_properties(data, f"{directory.shown_path}/{META_PROPERTIES}"))
    except OffsetsLogError as error:
        return Identity(directory, None, Damage(error, b""))


def node_of(files: Mapping[str, Opener]) -> int | None:
    """Return the broker that a data directory belongs to, by its own files; None where they do not tell."""
    return identify(DataDirectory(shown_path="", files=files)).node_id


def iter_mixed_up(found: Sequence[Identity]) -> Iterator[str]:
    """Yield what of these directories does not belong together or cannot be told, one sentence each."""
    for identity in found:
        if identity.damage is not None:
            yield f"whose directory this is, is not known: {identity.damage.error}"
    yield from _of_several_clusters(found)
    yield from _given_twice(found)
    for identity in found:
        yield from _folders_aside(identity.directory)


def clusters(found: Sequence[Identity]) -> dict[str, list[Identity]]:
    """Return cluster id → its directories, those that tell it."""
    by_cluster: dict[str, list[Identity]] = {}
    for identity in found:
        if identity.cluster_id is not None:
            by_cluster.setdefault(identity.cluster_id, []).append(identity)
    return by_cluster


def _of_several_clusters(found: Sequence[Identity]) -> Iterator[str]:
    by_cluster = clusters(found)
    if len(by_cluster) > 1:
        named = "; ".join(f"{cluster}: {_paths(own)}" for cluster, own in by_cluster.items())
        yield f"these data directories are of {len(by_cluster)} clusters, of each partition one's copy is read: {named}"


def _given_twice(found: Sequence[Identity]) -> Iterator[str]:
    by_id: dict[object, list[Identity]] = {}
    for identity in found:
        if identity.meta is not None and identity.meta.directory_id is not None:
            by_id.setdefault((identity.cluster_id, identity.meta.directory_id), []).append(identity)
    for (_, directory_id), same in ((key, same) for key, same in by_id.items() if isinstance(key, tuple)):
        if len(same) > 1:
            yield f"these are {len(same)} copies of one data directory, {directory_id}: {_paths(same)}"


def _paths(found: Sequence[Identity]) -> str:
    return ", ".join(identity.directory.shown_path for identity in found)


_ASIDE = {
    STRAY: ("stray partition", "stray partitions", "which the broker found to be not its own when it started"),
    FUTURE: ("partition", "partitions", "being moved into this directory from another one of the broker"),
}


def _folders_aside(directory: DataDirectory) -> Iterator[str]:
    for kind, (one, many, what) in _ASIDE.items():
        if count := directory.leftovers.get(kind, 0):
            yield f"{directory.shown_path} has {counted(count, one, many)} ({what}), left out"
