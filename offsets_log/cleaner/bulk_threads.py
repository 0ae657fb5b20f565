"""Both passes by several threads, each over a part of the log.

Of the transactions where a part begins it is guessed what they are. Where the part before it has ended otherwise, the
work is thrown away and done again, with what they really are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from operator import attrgetter

from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.bulk import KeyTable
from offsets_log.cleaner.group_cleaning import GroupCleaning, NewSegment, ends_of
from offsets_log.cleaner.kept import Kept
from offsets_log.cleaner.offset_map import OffsetMap, enter_segments
from offsets_log.cleaner.transactions import Aborted, Transactions
from offsets_log.errors import OffsetsLogError

# ------------------------------------------------------------------------------------------------ pass 1


def enter_in_parts(
    found: OffsetMap,
    segments: Sequence[tuple[LogFile, int]],
    first_dirty: int,
    transactions: Transactions,
    threads: int,
) -> None:
    """Do as `enter_segments`, with a map for each thread, which then become one.

    Raises:
        OffsetsLogError: something cannot be read; the error is that of the first part that has one.
    """
    assert isinstance(found, KeyTable)
    # The pool ends before tables are closed: after an error, and where a guess was wrong, threads still work in theirs.
    with ExitStack() as stack, ThreadPoolExecutor(threads) as pool:

        def enter(part: Sequence[tuple[LogFile, int]], table: KeyTable, state: Transactions) -> Future[None]:
            return pool.submit(enter_segments, part, first_dirty, table, state)

        first, *others = _parts(segments, threads)
        ended = transactions.copy()
        task = enter(first, found, ended)
        working = []
        for part in others:
            begin = part[0][0].base_offset
            table, guessed = stack.enter_context(closing(found.beside(begin))), _at(transactions.coming, begin)
            state = guessed.copy()
            working.append((part, guessed, table, state, enter(part, table, state)))
        task.result()
        for part, guessed, table, state, task in working:
            if (guessed.aborted, guessed.coming) != (ended.aborted, ended.coming):
                table, state = stack.enter_context(closing(found.beside(part[0][0].base_offset))), ended.copy()
                task = enter(part, table, state)
            task.result()
            found.take_in(table)
            ended = state


def _at(entries: Iterable[AbortedTransaction], begin: int) -> Transactions:
    """Return the transactions at an offset of a log in which all that abort have data and a marker."""
    coming = sorted(entries, key=attrgetter("first_offset"))
    begun = [entry for entry in coming if entry.first_offset < begin]
    aborted = {entry.producer_id: Aborted(entry, is_seen=True) for entry in begun if entry.last_offset >= begin}
    return Transactions(None, coming[len(begun) :], aborted)


def _parts(segments: Sequence[tuple[LogFile, int]], count: int) -> list[list[tuple[LogFile, int]]]:
    """Cut segments into so many parts of about the same size, or fewer."""
    total = sum(file.size_bytes for file, _ in segments) or 1
    parts: dict[int, list[tuple[LogFile, int]]] = {}
    before = 0
    for file, next_offset in segments:
        parts.setdefault((before + file.size_bytes // 2) * count // total, []).append((file, next_offset))
        before += file.size_bytes
    return [*parts.values()]


# ------------------------------------------------------------------------------------------------ pass 2


def clean_in_threads(
    cleaning: GroupCleaning, groups: Sequence[Sequence[LogFile]], threads: int
) -> Iterator[tuple[NewSegment, Kept]]:
    """Yield what `GroupCleaning.clean` returns of each group; a few wait for being taken. Raises as it does."""
    waiting: deque[tuple[_Group, Future[tuple[NewSegment, Kept]]]] = deque()
    ended = cleaning.transactions
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number, (group, guessed) in enumerate(zip(groups, _guesses(cleaning, groups), strict=True), 1):
                begun = _Group(cleaning, group, guessed)
                waiting.append((begun, pool.submit(begun.clean)))
                while waiting and (len(waiting) > threads or number == len(groups)):
                    begun, task = waiting.popleft()
                    if begun.guessed != ended.copy():
                        begun = _Group(cleaning, begun.group, ended)
                        task = pool.submit(begun.clean)
                    yield task.result()
                    ended = begun.transactions
        finally:
            for _, task in waiting:
                task.cancel()


class _Group:
    """A group on its way in a thread.

    Args:
        guessed: the transactions where it begins; they stay as they are.
    """

    def __init__(self, cleaning: GroupCleaning, group: Sequence[LogFile], guessed: Transactions) -> None:
        assert isinstance(cleaning.map, KeyTable)
        self.group, self.guessed, self.transactions = group, guessed, guessed.copy()
        self._map = cleaning.map.reader()
        self._cleaning = replace(cleaning, map=self._map, transactions=self.transactions)

    def clean(self) -> tuple[NewSegment, Kept]:
        """Clean it."""
        with closing(self._map):
            return self._cleaning.clean(self.group)


def _guesses(cleaning: GroupCleaning, groups: Iterable[Sequence[LogFile]]) -> Iterator[Transactions]:
    """Yield the transactions where each group begins, as far as pass 1 and the indexes tell."""
    entries: list[AbortedTransaction] = []
    for group in groups:
        begin = group[0].base_offset
        entries = _at(entries, begin).coming
        yield cleaning.map.begins.get(begin, Transactions()).copy(entries)
        with suppress(OffsetsLogError):  # of which the group itself fails
            for file, end in ends_of(group):
                entries += cleaning.expected(file, file.read_next_offset() if end is None else end)
