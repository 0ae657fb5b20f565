"""The smallest log with the same answers, of the whole log: the active segment too, and at the end of all times.

    log ─► `answers` ─► `survivors` ─► `editing` ─► `answers` of what is left ─► the same?
                            ▲                                  no: keep more        │ yes
                            └───────────────────────────────────────┘               ▼
                                                                            segments, indexes made again

Nothing is taken on trust: the bytes that are written were replayed, by the rules of every profile, and answer as
those that were read. Records keep their offsets, and batches of committed transactions their markers: a row of
`compact` tells both. A second time nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.answers import Answers, differences
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.bounds import bounds_of
from offsets_log.cleaner.editing import Store, packed, pieces_of
from offsets_log.cleaner.kept import TOMBSTONES_AT_WORK, Kept, why_in_deep
from offsets_log.cleaner.needs import Needs
from offsets_log.cleaner.opening import as_opened, reopened
from offsets_log.cleaner.round import CLEANED, Round
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.survivors import Surviving, survivors
from offsets_log.log_format.partition_log import PartitionLog


@dataclass(slots=True)
class Deep:
    """The rest of a log after a deep cleaning.

    Attributes:
        opened: the log as a broker opens it, with all indexes.
        kept: why.
    """

    log: PartitionLog
    opened: OpenLog
    kept: Kept = field(default_factory=Kept)


def clean_deep(
    log: PartitionLog, opened: OpenLog, settings: Settings, store: Store = b"".join, *, in_bulk: bool = False
) -> Deep:
    """Clean a log that a broker has opened.

    Args:
        in_bulk: whether kernels do it, which is worth their start for a large log.

    Raises:
        OffsetsLogError: some of it cannot be read, so nobody knows what it answers.
    """
    base = as_opened(log, opened)
    before = Answers.of(base, in_bulk=in_bulk)
    needs = Needs.of(before)
    rules = replace(settings.rules, makes_magic_2=False)
    first = next(iter(opened.files.values()))
    while True:
        choice = Surviving(survivors(base, needs, in_bulk=in_bulk))
        pieces = pieces_of(opened, choice, rules, opened.end_offset or 0, in_bulk=in_bulk)
        left = packed(log, pieces, settings.segment_bytes, first=first, store=store)
        found = differences(before, Answers.of(left, in_bulk=in_bulk))
        if not found:
            break
        needs.grow(found, before)
    after = reopened(left, settings, in_bulk=in_bulk)
    return Deep(left, after, _kept(after, in_bulk))


def round_of(deep: Deep, settings: Settings) -> Round:
    """Return a deep cleaning as a round that came to the log's end, as nothing held it."""
    bounds = bounds_of(deep.opened, deep.log.checkpoints, settings)
    end = bounds.log_end
    whole = replace(bounds, first_uncleanable=end, held_at=end, held_by=None)
    return Round(deep.opened, whole, settings, CLEANED, end, kept=deep.kept, next_dirty=_first_at_work(deep))


def _first_at_work(deep: Deep) -> int:
    """Return where the first tombstone that stays, or the first open transaction, begins; else the log's end.

    A broker takes it that below its checkpoint no key is there twice (``CL-2``): it would drop the tombstone in time,
    but not what it covers, which would be answered again.
    """
    found = [*deep.opened.producers.open_since().values(), deep.opened.end_offset or 0]
    if TOMBSTONES_AT_WORK in deep.kept.reasons:
        every = (batch for file in deep.opened.files.values() for batch in batches(file) if not batch.is_control)
        found += next(([one.offset] for one in every if any(record.value is None for record in records(one))), [])
    return min(found)


def _kept(opened: OpenLog, in_bulk: bool) -> Kept:
    """Return why each batch is kept."""
    if in_bulk:
        from offsets_log.cleaner.bulk_editing import count_kept

        return count_kept(opened)
    kept = Kept()
    open_since = opened.producers.open_since()
    for batch in (batch for file in opened.files.values() for batch in batches(file)):
        found = list(records(batch))
        kept.count(why_in_deep(batch, found, open_since), batch.size_bytes, len(found))
    return kept
