"""Find the contents of files that were carried in something else: a ticket, base64, a terminal."""

from __future__ import annotations

from offsets_log.disk.archives import is_archive
from offsets_log.disk.folder import Folder, is_in
from offsets_log.errors import CorruptRecordError, Damage, InputError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import Buffer, iter_batches
from offsets_log.words import counted

FROM_TERMINAL = (
    "every 0A in it has a 0D before it, as a copy through a terminal leaves it (kubectl exec -t, docker exec -t, FTP "
    "in text mode); copy it again without -t"
)


def unwrapped(file: str, buffer: Buffer) -> tuple[Buffer, str]:
    """Return the contents of a file that has no segment's name, and a sentence about what was around them.

    Returns:
        The buffer itself and "" where nothing was.

    Raises:
        InputError: the text of a hexdump lacks lines.
    """
    from offsets_log.dumps.wrapping import FROM_TERMINAL as COPIED
    from offsets_log.dumps.wrapping import HEAD_BYTES, from_terminal, unwrap

    if is_archive(memoryview(buffer)[:HEAD_BYTES].tobytes()) and from_terminal(buffer) is None:
        return buffer, ""
    from offsets_log.dumps.formats import SEGMENTS, known_format

    if known_format(buffer) == SEGMENTS:
        return buffer, ""
    try:
        found = unwrap(buffer, lambda head: is_archive(head) or known_format(head) is not None)
    except CorruptRecordError as error:
        raise InputError(
            f"the text of a hexdump is damaged in line {error.position}: {error.problem}", file=file
        ) from None
    if not found.around:
        return buffer, ""
    words = ", then ".join(words for words in found.around if words is not COPIED)
    taken = [f"read without what is around its contents: {words}"] if words else []
    return found.data, f"{file}: {'; '.join([*taken, *[FROM_TERMINAL] * (COPIED in found.around)])}"


NAMES_SHOWN = 5


def named_in(archive: str, found: list[Folder] | Buffer, named: str) -> list[Folder]:
    """Return the folders of an archive that a path or glob in it names, from its root on or else from any folder on.

    Raises:
        InputError: there is none.
    """
    paths = {folder.shown_path.removeprefix(f"{archive}!"): folder for folder in found if isinstance(folder, Folder)}
    depths = range(1 + max((path.count("/") for path in paths), default=0))
    found_at = ([folder for path, folder in paths.items() if is_in(path, named, depth)] for depth in depths)
    chosen = next(filter(None, found_at), [])
    if not chosen:
        there = ", ".join([*paths][:NAMES_SHOWN]) or "nothing that could be one"
        raise InputError(f"no folder in the archive is named {named}; there are: {there}", file=archive)
    return chosen


def as_before_the_terminal(file: str, buffer: Buffer) -> tuple[Buffer, str] | None:
    """Return a segment as it was before it was copied through a terminal, and a sentence that says so.

    Its batches prove it: more of them have a right checksum then, and no more damage is left.

    Returns:
        None if it was not copied so.
    """
    from offsets_log.dumps.wrapping import from_terminal

    before = from_terminal(buffer)
    if before is None:
        return None
    (found, damaged), (whole, still_damaged) = _batches_of(buffer), _batches_of(before)
    if whole <= found or still_damaged > damaged:
        return None
    proof = f"{counted(whole, 'batch has', 'batches have')} the right checksum so, {still_damaged} not"
    words = (
        f"{file}: {FROM_TERMINAL}. It is read with 0A for 0D 0A, {len(before)} bytes: {proof}. A broker cannot use the "
        "file as it is: offsets-log repair writes it as it was"
    )
    return before, words


def _batches_of(buffer: Buffer) -> tuple[int, int]:
    """Return how many whole batches a segment has, and how many pieces that are none."""
    items = [*iter_batches(buffer)]
    return sum(isinstance(item, RecordBatch) for item in items), sum(isinstance(item, Damage) for item in items)
