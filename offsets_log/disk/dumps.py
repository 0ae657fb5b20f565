"""Read files that are not segments but describe some: dumps of other tools, and our own tables."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from operator import attrgetter

from offsets_log.disk.folder import SEGMENT, Folder
from offsets_log.disk.no_log import OTHER_TEXT
from offsets_log.disk.spool import Growing
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.partition_log import BYTES, POSITION, PartitionLog
from offsets_log.log_format.segment import Buffer


class Dumps:
    """Take dumps out of folders, file by file, and return the logs they describe.

    Attributes:
        damages: what could not be read; the position is the line number.
        notes: remarks about the sources, one sentence each.
    """

    def __init__(self, input_format: str | None, columns: Set[str] | None = None) -> None:
        """Args:
        columns: those that notes name if a source does not tell them; None for all.
        """
        self.input_format = input_format
        self.columns = columns
        self.damages: list[Damage] = []
        self.notes: list[str] = []
        self._logs: list[PartitionLog] = []

    @property
    def have_been_read(self) -> bool:
        """Whether there was any."""
        return bool(self._logs or self.damages)

    def take(self, folder: Folder) -> None:
        """Read the folder's dumps, and leave its other files where they are. Raises InputError."""
        named = [name for name in folder.files if name in folder.named]
        if self.input_format is None:
            named = [name for name in named if not SEGMENT.fullmatch(name)]
        if named or self.input_format is not None:
            self._take(folder, named)

    def _take(self, folder: Folder, named: list[str]) -> None:
        from offsets_log.dumps.formats import SEGMENTS, guess_format, is_other_text

        if self.input_format == SEGMENTS:
            return
        for name in named:
            buffer, shown = folder.files[name](), folder.shown(name)
            format_name = self.input_format or guess_format(buffer)
            if format_name == SEGMENTS and is_other_text(buffer):
                self.notes.append(f"{shown}: {OTHER_TEXT}")
            if format_name != SEGMENTS:
                del folder.files[name]
                self._read(shown, buffer, format_name)
        if self.input_format is not None and folder.files:
            raise InputError(f"it holds segments, not {self.input_format}; name the files", file=folder.shown_path)

    def _read(self, shown: str, buffer: Buffer, format_name: str) -> None:
        from offsets_log.dumps.formats import build_segments

        try:
            built = build_segments(shown, buffer, format_name, Growing)
        except InputError as error:
            raise error.at(file=shown) from None
        logs = built.logs()
        self.damages += built.damages
        self.notes += [f"{shown}: {words}" for words in built.remarks]
        missing = frozenset().union(*(log.missing_columns for log in logs)) - {POSITION, BYTES}
        shown_columns = missing if self.columns is None else missing & self.columns
        if missing_columns := sorted(filter(str.islower, shown_columns)):
            self.notes.append(
                f"{shown}: this source does not tell, and the answer has null for: {', '.join(missing_columns)}"
            )
        if not logs and not built.damages:
            raise InputError(f"no {format_name} records are in it: --input-format says what else it is", file=shown)
        self._logs += logs

    def logs(self, as_partition: int | None) -> list[PartitionLog]:
        """Return the logs that were read; segments of one partition are joined, a repeated segment is a replica.

        Args:
            as_partition: the offsets partition of logs whose source names none.
        """
        joined: list[PartitionLog] = []
        for log in self._logs:
            if log.offsets_partition is None:
                log = replace(log, offsets_partition=as_partition)
            at = next((i for i, other in enumerate(joined) if _goes_with(log, other)), None)
            if at is None:
                joined.append(log)
            else:
                segments = sorted((*joined[at].segments, *log.segments), key=attrgetter("base_offset"))
                joined[at] = replace(joined[at], segments=tuple(segments))
        return joined


def _goes_with(log: PartitionLog, other: PartitionLog) -> bool:
    bases = {segment.base_offset for segment in other.segments}
    own = {segment.base_offset for segment in log.segments}
    return log.offsets_partition == other.offsets_partition and None not in bases | own and not bases & own
