"""Transactions lent to the kernels of both passes, and taken back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.cleaner.transactions import NO_MORE, Aborted, Transactions
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.records import Table


class OpenTransactions:
    """What kernels know of transactions.

    Args:
        round_state: the one that they share.
    """

    def __init__(self, round_state: d.RoundState) -> None:
        self._round_state = round_state
        self._slots = np.zeros(2 * d.MOST_OPEN + d.MOST_COMING, np.int64)
        self._aborting = Table(d.Aborting, d.MOST_OPEN + d.MOST_COMING)
        self._lent: Sequence[AbortedTransaction] = ()

    @property
    def arrays(self) -> tuple[a.Int64s, Table[d.Aborting]]:
        """The arrays that kernels take."""
        return self._slots, self._aborting

    def tell(self, committed: Collection[int], next_aborted: int) -> None:
        """Let kernels know of transactions; with too many of them they take no data of any.

        Args:
            committed: their producers.
            next_aborted: where the next one begins of which it is not to be taken that it commits.
        """
        round_state = self._round_state
        are_few = len(committed) < d.MOST_OPEN
        round_state.next_aborted = next_aborted if are_few else d.NEVER_BEFORE
        round_state.aborted = round_state.aborting = round_state.begun = round_state.ended = 0
        if are_few:
            round_state.committed = len(committed)
            self._slots[: len(committed)] = [*committed]

    def lend(self, transactions: Transactions) -> None:
        """Let kernels follow transactions, until they are taken back."""
        open_, coming = transactions.aborted, transactions.coming
        if len(open_) >= d.MOST_OPEN:
            self.tell((), d.NEVER_BEFORE)
            return
        some = coming[: d.MOST_COMING]
        behind = coming[len(some)].first_offset if len(some) < len(coming) else NO_MORE
        self.tell(transactions.committed, behind)
        round_state, kept = self._round_state, transactions.kept
        if round_state.next_aborted == d.NEVER_BEFORE or not (open_ or some):
            return
        self._lent = [*(one.entry for one in open_.values()), *some]
        seen = [*(one.is_seen for one in open_.values()), *(False for _ in some)]
        self._aborting.rows[: len(self._lent)] = [
            (entry.first_offset, entry.last_offset, entry.producer_id, is_seen, 0)
            for entry, is_seen in zip(self._lent, seen, strict=True)
        ]
        round_state.aborted = round_state.begun = len(open_)
        self._slots[d.MOST_OPEN : d.MOST_OPEN + len(open_)] = range(len(open_))
        round_state.aborting = len(self._lent)
        round_state.last_ended = kept.entries[-1].last_offset if kept is not None and kept.entries else d.NEVER_BEFORE

    def take_back(self, transactions: Transactions) -> None:
        """Write what kernels found back into the transactions."""
        round_state = self._round_state
        transactions.committed = self.learn(transactions.committed)
        count = int(round_state.aborting)
        if not count:
            return
        open_ = self._slots[d.MOST_OPEN : d.MOST_OPEN + round_state.aborted].tolist()
        del transactions.coming[: int(round_state.begun) - len(transactions.aborted)]
        transactions.aborted = {
            int(self._aborting[row].producer_id): Aborted(self._lent[row], bool(self._aborting[row].is_seen))
            for row in open_
        }
        if transactions.kept is not None:
            for _, row in sorted((turn, row) for row in range(count) if (turn := self._aborting[row].ended_as)):
                transactions.kept.append(self._lent[row])

    def learn(self, committed: set[int]) -> set[int]:
        """Return the producers with data in open transactions, by the kernels if they know of transactions."""
        if self._round_state.next_aborted == d.NEVER_BEFORE:
            return committed
        return set(self._slots[: self._round_state.committed].tolist())
