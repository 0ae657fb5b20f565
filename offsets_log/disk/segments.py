"""Choose the files of a partition directory that are its log, and decide how they fit together.

A starting broker deletes the files that do not belong to the log. This reader leaves the same files out instead
(``records:L2``): what an interrupted cleaning left behind (``.cleaned``), and the segments that a finished one replaces
(``.swap``).

References: ``LogLoader.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from offsets_log.disk.folder import CLEANED, SEGMENT, DirectoryName, Folder
from offsets_log.log_format.batch import LAST_OFFSET_DELTA_POSITION, LOG_OVERHEAD, MAGIC_POSITION, MIN_SIZE, RecordBatch
from offsets_log.log_format.segment import Buffer, iter_batches


@dataclass(frozen=True, slots=True, order=True)
class SegmentFile:
    """A file with a segment's name. A packed one (``.log.gz``) sorts after its plain twin."""

    base_offset: int
    suffix: str
    packing: str
    name: str


LEFTOVERS = {
    "delete": "its broker was deleting it, so another folder may be newer",
    "future": "its broker was making this copy, which may lack the newest records",
    "stray": "its broker had put it aside, and served another folder or nothing",
}


def select_segments(folder: Folder) -> tuple[list[SegmentFile], list[str]]:
    """Return the files of a partition's log, by base offset, and notes on files that a suffix rule left out.

    If no named file is a plain segment, all files the user named are read. Otherwise the rules hold for named files
    too, but a named ``.deleted`` file is read unless one of the segments covers it.
    """
    files, notes = _segment_files(folder)
    kind = DirectoryName.parse(folder.name).leftover.rpartition("-")[2]
    if kind:
        notes.insert(0, f"{folder.shown_path} is read as it was named: {LEFTOVERS[kind]}")
    plain = [file for file in files if file.suffix == ""]
    if not plain and folder.named.issuperset(file.name for file in files):
        return files, notes
    first_cleaned = min((int(m[1]) for m in map(CLEANED.fullmatch, folder.files) if m), default=None)
    swaps = []
    for file in files:
        if file.suffix == ".swap" and first_cleaned is not None and file.base_offset >= first_cleaned:
            notes.append(f"{folder.shown(file.name)} is left out: a .cleaned file says that its cleaning did not end")
        elif file.suffix == ".swap":
            swaps.append(file)
    kept = _without_replaced(folder, plain, swaps, notes) + swaps
    for file in files:
        if file.suffix == ".deleted" and file.name in folder.named:
            if _is_covered(folder, file, kept):
                notes.append(f"{folder.shown(file.name)} is left out: a segment beside it covers its offsets")
            else:
                kept.append(file)
    return sorted(kept), notes


def _segment_files(folder: Folder) -> tuple[list[SegmentFile], list[str]]:
    matches = [match for match in map(SEGMENT.fullmatch, folder.files) if match]
    files = sorted(SegmentFile(int(m[1]), m[2] or "", m[3] or "", m[0]) for m in matches)
    twins = {b for a, b in pairwise(files) if (a.base_offset, a.suffix) == (b.base_offset, b.suffix)}
    notes = [f"{folder.shown(file.name)} is left out: the same segment lies beside it" for file in sorted(twins)]
    return [file for file in files if file not in twins], notes


def _without_replaced(
    folder: Folder, plain: list[SegmentFile], swaps: list[SegmentFile], notes: list[str]
) -> list[SegmentFile]:
    """Return the plain segments outside [first swap's base, last swap's next offset): no finished swap covers them."""
    if not swaps:
        return plain
    swapped = {swap.base_offset for swap in swaps}
    end = max(_next_whole_offset(folder.files[swap.name](), swap.base_offset) for swap in swaps)
    replaced = [file for file in plain if min(swapped) <= file.base_offset < end or file.base_offset in swapped]
    for_whom = ", ".join(file.name for file in replaced) or "no other file"
    notes.extend(f"{folder.shown(swap.name)} is read: cleaned and complete" for swap in swaps)
    notes.append(f"left out in {folder.shown_path}, as .swap files replace them: {for_whom}")
    return [file for file in plain if file not in replaced]


def _next_whole_offset(buffer: Buffer, base_offset: int) -> int:
    batches = (item for item in iter_batches(buffer) if isinstance(item, RecordBatch))
    return max((batch.next_offset for batch in batches), default=base_offset)


def _is_covered(folder: Folder, file: SegmentFile, kept: list[SegmentFile]) -> bool:
    end = next_offset(folder.files[file.name](), file.base_offset)
    for other in kept:
        if end is not None and other.base_offset <= file.base_offset:
            other_end = next_offset(folder.files[other.name](), other.base_offset)
            if other_end is not None and end <= other_end:
                return True
    return False


def next_offset(buffer: Buffer, base_offset: int) -> int | None:
    """Return the offset where the log continues after a segment, from batch headers alone, without checksums.

    Args:
        base_offset: base offset of the file, which is the answer for an empty one.

    Returns:
        None where the headers do not lead to the very end of the file: it is torn or damaged.
    """
    view, position, found = memoryview(buffer), 0, base_offset
    while len(view) - position > MAGIC_POSITION:
        length = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], signed=True)
        magic = view[position + MAGIC_POSITION]
        end = position + LOG_OVERHEAD + length
        if length < MIN_SIZE.get(magic, len(view)) or end > len(view):
            return None
        found = int.from_bytes(view[position : position + 8], signed=True) + 1
        if magic == 2:
            at = position + LAST_OFFSET_DELTA_POSITION
            found += int.from_bytes(view[at : at + 4], signed=True)
        position = end
    return found if position == len(view) else None
