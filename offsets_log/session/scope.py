"""What a run reads, and how far."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from offsets_log.words import given_time


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What to read, and how far.

    Attributes:
        paths: directories, files, archives or URLs; ``-`` is standard input.
        as_partition: the offsets partition of a segment that nothing tells it of.
        offsets_partition: only these; empty for all.
        partitions: how many the offsets topic has; None for what the files tell.
        group: globs or names; empty for all. ``topic`` likewise.
        until_offset: offsets partition, None for any, and the record offset before which reading stops.
        until_time: epoch ms; from the first later batch on nothing is read.
        kafka: the release that wrote the log, where record layouts are ambiguous.
        input_format: what the input is; None to guess it.
        threads: how many read; None for one a processor.
        strict: whether the first damage is an error.
        quarantine: a file that gets the pieces that cannot be read.
        verbose: whether every damaged piece is named, not only the first.
    """

    paths: tuple[str, ...]
    as_partition: int | None = None
    offsets_partition: tuple[int, ...] = ()
    partitions: int | None = None
    group: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    until_offset: tuple[tuple[int | None, int], ...] = ()
    until_time: int | None = None
    kafka: tuple[int, int] | None = None
    input_format: str | None = None
    threads: int | None = None
    strict: bool = False
    quarantine: str | None = None
    verbose: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether less than the whole log is read: other topics only tell the state at its end."""
        return bool(self.until_offset) or self.until_time is not None

    @property
    def filters(self) -> list[str]:
        """The options that leave out groups and topics, as they may be given."""
        named = [(option, glob) for option, globs in (("-g", self.group), ("-t", self.topic)) for glob in globs]
        return [f"{option} {shlex.quote(glob)}" for option, glob in named]

    @property
    def bounds(self) -> list[str]:
        """The options that leave out later records, as they may be given."""
        told = [f"--until-offset {'' if at is None else f'{at}:'}{offset}" for at, offset in self.until_offset]
        return told if self.until_time is None else [*told, f"--until-time {given_time(self.until_time)}"]


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """Whether a broker's answer is asked for, and how it was stopped before.

    Attributes:
        shutdown: clean or unclean; None for what the data directory tells.
    """

    as_broker: bool = False
    shutdown: str | None = None
