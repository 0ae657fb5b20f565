"""The rest of a log after records are chosen by their offsets, by the kernels of pass 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.bulk import KeyTable, Sifting
from offsets_log.cleaner.choice import NO_OFFSET, CutPiece, Named, Run
from offsets_log.cleaner.kept import LATEST, MARKERS_WITH_DATA, TOMBSTONES_AT_WORK, Kept, why_in_deep
from offsets_log.columnar.cleaning import round_state as d

REASONS = {LATEST: d.KEPT_LATEST, TOMBSTONES_AT_WORK: d.KEPT_TOMBSTONES, MARKERS_WITH_DATA: d.KEPT_MARKERS}


class Editing(Sifting):
    """One segment on its way into pieces of a new log."""

    def __init__(self, map: KeyTable, file: LogFile, named: Named) -> None:
        super().__init__(map, file, file.base_offset)
        self._named = named
        self._pieces: list[CutPiece] = []
        self._begin = 0
        self.chosen = np.array(sorted(named.offsets), np.int64)
        round_state = map.round_state
        round_state.rule = d.CHOSEN_STAY if named.stay else d.CHOSEN_GO
        round_state.until_offset, round_state.latest = named.until_offset, d.NO_HORIZON
        round_state.last_at = round_state.allowed_at = -1

    def pass_on(self, position: int) -> int:
        """Take a run of plain batches from a position on; where it ends."""
        self._begin = position
        self.map.open.tell(self._named.with_data, self._named.open_from)
        reached = self.go(position, self.file.size_bytes)
        self._named.with_data = self.map.open.learn(self._named.with_data)
        return reached

    def taken(self) -> Run:
        """Return what was taken since the last call."""
        at = int(self.map.round_state.last_at)
        last = None if at < 0 else entry_in_memory(self.file.file, self.file.view, at, self.file.size_bytes)
        pieces, self._pieces, self.map.round_state.last_at = self._pieces, [], -1
        return Run(pieces, last)

    def hand_over(self, raw: bytes) -> None:
        round_state = self.map.round_state
        begin, self._begin = self._begin, int(round_state.position)
        if raw:
            is_copied = not round_state.changed
            base_offset, last_offset = int(round_state.first_kept), int(round_state.last_kept)
            view = self.file.view[begin : self._begin] if is_copied else raw
            self._pieces.append(CutPiece(view, base_offset, last_offset, self.file, is_copied))


def edit(opened: OpenLog, named: Named) -> Iterator[tuple[Editing, FileBatch | None]]:
    """Yield each batch that no kernel takes, and None at the end of a segment, with what takes the others of it."""
    with closing(KeyTable()) as found:
        for file in opened.files.values():
            editing = Editing(found, file, named)
            for batch in batches(file, passing=editing.pass_on):
                yield editing, batch
            yield editing, None


def count_kept(opened: OpenLog) -> Kept:
    """Count why each batch is in a log that was cleaned deeply, as `why_in_deep` says of each."""
    kept = Kept()
    open_since = opened.producers.open_since()
    named = Named(frozenset(), stay=False, open_from=min(open_since.values(), default=NO_OFFSET))
    for editing, batch in edit(opened, named):
        if batch is None:
            editing.tell_kept(kept, REASONS)
        else:
            found = list(records(batch))
            kept.count(why_in_deep(batch, found, open_since), batch.size_bytes, len(found))
    return kept
