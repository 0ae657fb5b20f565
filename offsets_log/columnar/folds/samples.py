"""The samples of a run of records: thinned where there are too many, and joined with those of the run that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.sampling import (
    BOOK_SIZE,
    COLUMNS,
    COMMITS,
    GENERATION_FIELDS,
    GENERATIONS,
    LINE_AT,
    LINE_MASK,
    OLDER,
    PRODUCER_AT,
    RECORD_OFFSET,
    RECORDS,
    SHIFT,
    TAG,
    TIME,
    USED,
    BookArrays,
)
from offsets_log.events import Event
from offsets_log.log_format.record import INT64_MAX, INT64_MIN
from offsets_log.rows.activity import written_ms

MOST = {COMMITS: 1_500_000, GENERATIONS: 20_000}
"""Samples held of all lines together, or one for each line where there are more lines."""
FIRST_SHIFT = 12
"""Narrower buckets leave out next to nothing."""
WIDEST_SHIFT = 40
WIDE_SHIFT = 27
"""More than a day: where even such buckets leave out nothing, wider ones do not either."""
LEAST_ROOM, MANY = 1 << 12, 1 << 16

Samples = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]


def told(event: Event) -> tuple[int, int, int | None] | None:
    """Return the kind of a sample, its time and its value, from a data record; None if it is no sample."""
    record = event.decoded
    if record is None:
        return None
    kind, value = (COMMITS, "offset") if record.is_offset_commit else (GENERATIONS, "")
    if kind == GENERATIONS:
        if record.record_type not in GENERATION_FIELDS:
            return None
        value = GENERATION_FIELDS[record.record_type]
    return kind, written_ms(event), None if record.value is None else record.value[value]


def offset_of(event: Event) -> int:
    """Return the record's offset within 64 bits, as that of a hostile one need not be."""
    return min(max(event.record.offset, INT64_MIN), INT64_MAX)


# --------------------------------------------------------------------------------------------- thinning


def lines_of(samples: Samples) -> Samples:
    """Return the lines of samples."""
    return samples[:, TAG] >> LINE_AT & LINE_MASK


def set_lines(samples: Samples, numbers: Samples) -> None:
    """Give the lines other numbers."""
    lines = lines_of(samples)
    samples[:, TAG] += (numbers[lines] - lines) << LINE_AT


def producers_of(samples: Samples) -> Samples:
    """Return the producers that samples wait for; NOTHING if they do not wait."""
    return (samples[:, TAG] >> PRODUCER_AT) - 1


def thin(samples: Samples, shift: int, most: int, *, first_shift: int = FIRST_SHIFT) -> tuple[int, int]:
    """Keep of each line, and of each producer that it waits for, the sample with the highest record offset in each
    bucket; where there are too many, in wider ones as long as these leave out any.

    What is kept comes first then, by line, else as it was.

    Args:
        shift: the least width of buckets.
        most: that are not too many.
        first_shift: the next width, unless that is less.

    Returns:
        How many are kept, and the width.
    """
    if not samples[:, RECORDS].all():
        kept = np.flatnonzero(samples[:, RECORDS])
        _keep(samples, kept)
        samples = samples[: len(kept)]
    if not len(samples):
        return 0, shift
    lines, times, offsets = _small(samples[:, TAG] >> LINE_AT), samples[:, TIME].copy(), samples[:, RECORD_OFFSET]
    order = _small(_by_line(lines))
    is_other, settled = _steps(lines[order]), lines[order] <= LINE_MASK
    in_time = times[order]
    is_in_order = not _falls(is_other, offsets[order]) and not _falls(is_other, in_time)
    if not is_in_order:  # times go back, as they may
        in_time = times[np.lexsort((times, lines))]
    shift = _width(is_other, in_time, settled, shift, most, first_shift)
    if not is_in_order:
        order = np.lexsort((offsets, times >> shift, lines))
        in_time = times[order]
    begins = np.flatnonzero(_begins(is_other, in_time >> shift))
    del lines, in_time, is_other, settled
    records = np.add.reduceat(samples[:, RECORDS].take(order), begins)
    _keep(samples, order[np.append(begins[1:], len(order)) - 1])
    samples[: len(begins), RECORDS] = records
    return len(begins), shift


def _small(numbers: Numbers) -> Numbers:
    """Return numbers of samples or lines in half the memory, if they fit."""
    return numbers if int(numbers.max()) > np.iinfo(np.int32).max else numbers.astype(np.int32)


def _width(is_other: Flags, times: Samples, settled: Flags, shift: int, most: int, first_shift: int) -> int:
    """Return the least width that leaves few enough, or the least of those that leave out nothing more.

    What waits is held as open transactions are, and is not counted.
    """

    def count(shift: int) -> int:
        return int(np.count_nonzero(_begins(is_other, times >> shift) & settled))

    while (found := count(shift)) > most and shift < WIDEST_SHIFT:
        wider = max(first_shift, shift + 1)
        if wider > WIDE_SHIFT and count(wider) == found:
            break
        shift = wider
    return shift


def _keep(samples: Samples, places: Numbers) -> None:
    """Move samples to the front: as rows, for one by one their columns take four times as long."""
    samples[: len(places)] = samples.take(places, axis=0)


def _steps(values: Numbers) -> Flags:
    """Return where values change, including the first one."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _begins(is_other: Flags, buckets: Samples) -> Flags:
    """Return where another line or bucket begins."""
    found = _steps(buckets)
    found |= is_other
    return found


def _falls(is_other: Flags, values: Samples) -> bool:
    """Return whether values fall within a line."""
    return bool(np.any(~is_other[1:] & (values[1:] < values[:-1])))


def by_record(samples: Samples) -> Samples:
    """Return samples ordered by line, and within a line by record, from samples ordered by line."""
    lines, record_offsets = lines_of(samples), samples[:, RECORD_OFFSET]
    if not _falls(_steps(lines), record_offsets):
        return samples
    return samples[np.lexsort((record_offsets, lines))]


def _by_line(lines: Numbers) -> Samples:
    """Return a stable order by line, 16 bits at a time."""
    order = np.argsort(lines.astype(np.uint16), kind="stable")
    highest, bits = int(lines.max(initial=0)), 16
    while highest >> bits:
        order = order[np.argsort((lines >> bits).astype(np.uint16)[order], kind="stable")]
        bits += 16
    return order


# ---------------------------------------------------------------------------------------------- a book

Marks = Mapping[int, npt.NDArray[np.int64]]
"""Kind → by line, where its last sample is, and one more."""
Shows = Callable[[int, npt.NDArray[np.int64]], npt.NDArray[np.bool_]]
"""A kind and lines of it → whether they are asked for."""


class Book:
    """The samples of a run of records.

    Attributes:
        counts: a book, see above.
        samples: kind → samples, with room for more.
        shows: what is asked for; None for all.
    """

    def __init__(self, shows: Shows | None = None) -> None:
        self.counts = np.zeros(BOOK_SIZE, np.int64)
        self.samples = {kind: np.zeros((LEAST_ROOM, COLUMNS), np.int64) for kind in MOST}
        self.shows = shows

    @property
    def arrays(self) -> BookArrays:
        """The arrays together, as kernels take them."""
        return BookArrays(self.counts, self.samples[COMMITS], self.samples[GENERATIONS])

    def used(self, kind: int) -> Samples:
        """Return the samples without free room."""
        return self.samples[kind][: self.counts[kind + USED]]

    def settled(self, kind: int) -> Samples:
        """Return the samples that count; the book is not used afterwards."""
        self.samples[kind].resize((int(self.counts[kind + USED]), COLUMNS), refcheck=False)  # gives back what is behind
        found = self.samples[kind]
        counts = (found[:, TAG] >> PRODUCER_AT == 0) & (found[:, RECORDS] > 0)
        return found if counts.all() else found[counts]

    def has_room(self, count: int) -> bool:
        """Return whether there is room for a number of further samples of each kind."""
        return all(self.counts[kind + USED] + count <= len(samples) for kind, samples in self.samples.items())

    def make_room(self, count: int, marks: Marks, heads: Samples) -> None:
        """Thin samples if there are too many, and make room for a number of further ones.

        Args:
            heads: where a producer's newest sample that waits is, and one more, by producer.
        """
        for kind in MOST:
            needed = int(self.counts[kind + USED]) + count
            if needed > len(self.samples[kind]):
                if needed > _room(MOST[kind]):
                    self._thin(kind, marks, heads)
                self._widen(kind, count)

    def _thin(self, kind: int, marks: Marks, heads: Samples) -> None:
        found = self.used(kind)
        if self.shows is not None:
            found[~self.shows(kind, lines_of(found)), RECORDS] = 0
        used, self.counts[kind + SHIFT] = thin(found, int(self.counts[kind + SHIFT]), MOST[kind])
        self.counts[kind + USED] = used
        marks[kind][:] = 0
        if kind == COMMITS:
            self._link(heads)

    def _widen(self, kind: int, count: int) -> None:
        used = self.used(kind)
        room = len(used) + count
        if room > len(self.samples[kind]):
            # Beyond a few samples all the room there may be: what is not used costs nothing.
            more = room if room < MANY else max(_room(MOST[kind]) - room, room // 4)
            self._put(kind, used, room + more)

    def _put(self, kind: int, samples: Samples, room: int) -> None:
        larger = np.zeros((room, COLUMNS), np.int64)
        larger[: len(samples)] = samples
        self.samples[kind] = larger

    def _link(self, heads: Samples) -> None:
        """Chain the samples that wait, by producer."""
        samples = self.used(COMMITS)
        heads[:] = 0
        waiting = np.flatnonzero(samples[:, TAG] >> PRODUCER_AT)
        producers = producers_of(samples[waiting])
        order = np.argsort(producers, kind="stable")
        waiting, producers = waiting[order], producers[order]
        is_first = np.diff(producers, prepend=a.NOTHING) != 0
        samples[waiting, OLDER] = np.where(is_first, 0, np.roll(waiting, 1) + 1)
        heads[producers] = waiting + 1


def _room(most: int) -> int:
    """Return arrays for new samples, before they are thinned."""
    return most + most // 2
